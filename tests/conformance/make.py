"""Complete the cases of each file: ``python make.py`` writes what follows from the rest.

A case states tables, a metric and a convention. From these, this program derives an expression in
fractions and log2 (``derivation``), its value (``expect``), the values per user and rankframe's
label. It uses no library of metrics: each definition is below, once, for one user and one list.
"""

import ast
import json
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable
from decimal import Decimal, localcontext
from fractions import Fraction
from itertools import chain, groupby, permutations, product
from math import floor, gcd
from pathlib import Path
from struct import pack, unpack
from typing import Any, NamedTuple

HERE = Path(__file__).parent
FILES = sorted(path for path in HERE.glob("*.json") if path.name != "schema.json")

# --- the value of a derivation


def exact(derivation: str) -> Fraction:
    """Evaluate a derivation: fractions exactly, logarithms to 60 digits."""
    return _value(ast.parse(derivation.replace("^", "**"), mode="eval").body)


_OPERATORS = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def _value(node: Any) -> Fraction:
    if isinstance(node, ast.Constant):
        return Fraction(node.value)
    if isinstance(node, ast.BinOp):
        return _OPERATORS[type(node.op)](_value(node.left), _value(node.right))
    values = [_value(argument) for argument in node.args]
    return _log2(values[0]) if node.func.id == "log2" else sum(values, Fraction()) / len(values)


def _log2(number: Fraction) -> Fraction:
    if number.denominator == 1 and number.numerator.bit_count() == 1:
        return Fraction(number.numerator.bit_length() - 1)
    with localcontext(prec=60):
        decimal = Decimal(number.numerator) / Decimal(number.denominator)
        return Fraction(decimal.ln() / Decimal(2).ln())


# --- expressions


def _sum(terms: Iterable[str]) -> str:
    return " + ".join(terms) or "0"


def _ratio(numerator: str, denominator: str) -> str:
    """Divide; a numerator over 1 stays as it is, and nothing over 0 is 0."""
    if denominator in ("0", "1"):
        return "0" if denominator == "0" else numerator
    parts = (numerator, denominator)
    return "/".join(x if re.fullmatch(r"\d+|log2\(\d+\)", x) else f"({x})" for x in parts)


def _mean(values: list[str]) -> str:
    """Write the mean; values that are there equally often are written equally less often."""
    counts = Counter(values)
    common = gcd(*counts.values()) if len(values) > len(counts) else 1
    values = [value for value, count in counts.items() for _ in range(count // common)]
    return values[0] if len(values) == 1 else f"mean({', '.join(values)})"


# --- lists


def orders(case: Any, table: Any, user: str) -> list[list[tuple[int, str]]]:
    """Place the items of a user's list; all orders of equal scores where each of them counts."""
    rows = [(item, number) for owner, item, number in table["run"] if owner == user]
    if table["run_by"] == "rank":
        placed = sorted((number + 1 - case["first_rank"], item) for item, number in rows)
        return [_cut(case, placed if case["gaps"] == "keep" else _closed(placed), table, user)]
    if case["score_precision"] == 32:
        rows = [(item, unpack("f", pack("f", score))[0]) for item, score in rows]
    rows.sort(key=lambda row: row[1], reverse=case["score_order"] == "descending")  # stable
    blocks = [[item for item, _ in block] for _, block in groupby(rows, lambda row: row[1])]
    grades = _grades(table, user)
    each = [_orders_of_ties(block, case["ties"], grades) for block in blocks]
    lists = (list(enumerate(chain(*parts), 1)) for parts in product(*each))
    return [_cut(case, placed, table, user) for placed in lists]


def _orders_of_ties(block: list[str], ties: str | None, grades: Any) -> list[Any]:
    match ties:
        case "expected":
            return list(permutations(block))
        case "item_text_descending" | "item_text_ascending":
            return [sorted(block, key=str.encode, reverse=ties == "item_text_descending")]
        case "item_number_descending":
            return [sorted(block, key=int, reverse=True)]
        case "pessimistic" | "optimistic":
            best = ties == "optimistic"
            return [sorted(block, key=lambda item: max(grades.get(item, 0), 0), reverse=best)]
    if ties is None and len(block) > 1:
        raise ValueError(f"equal scores of {block}: name the convention in ties")
    return [block]  # row_order


def _cut(case: Any, placed: list[tuple[int, str]], table: Any, user: str) -> Any:
    """Apply ``duplicates``, then ``depth``, then ``unjudged``."""
    best = {item: rank for rank, item in reversed(placed)}
    if len(best) < len(placed) and case["duplicates"] is None:
        raise ValueError(f"user {user} has a duplicate: name the convention in duplicates")
    kept = sorted((rank, item) for item, rank in best.items())
    kept = _closed(kept) if case["duplicates"] == "first" else kept
    kept = [(rank, item) for rank, item in kept if case["depth"] is None or rank <= case["depth"]]
    if case["unjudged"] == "drop":
        grades = _grades(table, user)
        kept = _closed([place for place in kept if grades.get(place[1], -1) >= 0])
    return kept


def _closed(placed: list[tuple[int, str]]) -> list[tuple[int, str]]:
    return [(rank, item) for rank, (_, item) in enumerate(placed, 1)]


def _grades(table: Any, user: str) -> dict[str, Fraction]:
    return {item: Fraction(str(grade)) for owner, item, grade in table["truth"] if owner == user}


# --- metrics of one list: numerator and denominator


class Judged(NamedTuple):
    """A list, the grades of its user, and the metric with its parameters."""

    places: list[tuple[int, str]]
    grades: dict[str, Fraction]
    relevant: frozenset[str]
    top_grade: Fraction  # of the whole truth
    metric: Any

    @property
    def R(self) -> int:  # noqa: N802
        """How many items are relevant."""
        return len(self.relevant)

    def down_to(self, k: int | None) -> list[tuple[int, str]]:
        return [place for place in self.places if k is None or place[0] <= k]

    def hits(self, k: int | None) -> list[int]:
        """The ranks of the relevant items down to k."""
        return [rank for rank, item in self.down_to(k) if item in self.relevant]

    def divisor(self) -> str:
        """The denominator that ``divide_by`` names; n counts the items down to k."""
        k = self.metric["k"]
        n, R = len(self.down_to(k)), self.R  # noqa: N806
        sizes = {"k": k, "n": n, "R": R, "hits": len(self.hits(k)), "min(n,R)": min(n, R)}
        sizes["min(k,R)"] = None if k is None else min(k, R)
        return str(sizes[self.metric["divide_by"]])

    def gain(self, item: str) -> str:
        grade, gain = self.grades.get(item, Fraction()), self.metric["gain"]
        if gain == "binary":
            return "1" if item in self.relevant else "0"
        if grade <= 0:
            return "0"
        if isinstance(gain, dict):
            return str(Fraction(str(gain[str(grade)])))
        return f"(2^{grade} - 1)" if gain == "exponential" else str(grade)


def _precision(of: Judged) -> tuple[str, str]:
    return str(len(of.hits(of.metric["k"]))), of.divisor()


def _f(of: Judged) -> tuple[str, str]:
    k, square = of.metric["k"], of.metric["beta"] ** 2
    size = len(of.down_to(None)) if k is None else k
    return f"{1 + square}*{len(of.hits(k))}", f"{square}*{of.R} + {size}"


def _r_precision(of: Judged) -> tuple[str, str]:
    return str(len(of.hits(of.R))), str(of.R)


def _hit(of: Judged) -> tuple[str, str]:
    return str(int(bool(of.hits(of.metric["k"])))), "1"


def _all(of: Judged) -> tuple[str, str]:
    return str(int(len(of.hits(of.metric["k"])) == of.R)), "1"


def _rr(of: Judged) -> tuple[str, str]:
    return next((f"1/{rank}" for rank in of.hits(of.metric["k"])), "0"), "1"


def _arhr(of: Judged) -> tuple[str, str]:
    return _sum(f"1/{rank}" for rank in of.hits(of.metric["k"])), "1"


def _ap(of: Judged) -> tuple[str, str]:
    precisions = (f"{i}/{rank}" for i, rank in enumerate(of.hits(of.metric["k"]), 1))
    return _sum(precisions), of.divisor()


def _interpolated(of: Judged) -> tuple[str, str]:
    level, hits = Fraction(str(of.metric["recall"])) * of.R, of.hits(None)
    half = Fraction(1, 2) if of.metric["points"] == "nearest" else Fraction(9, 10)
    needed = max(floor(level + half), 1)
    return max(
        (f"{i}/{rank}" for i, rank in enumerate(hits, 1) if i >= needed), key=exact, default="0"
    ), "1"


def _dcg(of: Judged) -> tuple[str, str]:
    return _discounted(
        of, [(rank, of.gain(item)) for rank, item in of.down_to(of.metric["k"])]
    ), "1"


def _ndcg(of: Judged) -> tuple[str, str]:
    k, ideal = of.metric["k"], of.metric["ideal"]
    items = [item for _, item in of.places] if ideal == "returned" else of.grades
    gains = sorted((gain for item in items if (gain := of.gain(item)) != "0"), key=exact)[::-1]
    if ideal == "perfect":
        best = of._replace(grades={"": of.top_grade}, relevant=frozenset({""})).gain("")
        gains = [best] * (len(gains) if k is None else k)
    length = len(of.down_to(k)) if ideal == "same_length" else k
    return _dcg(of)[0], _discounted(of, list(enumerate(gains[:length], 1)))


def _discounted(of: Judged, gains: list[tuple[int, str]]) -> str:
    discount, base = of.metric["discount"], of.metric.get("base")

    def term(rank: int, gain: str) -> str:
        if discount == "jarvelin":  # log_base(rank) from rank base on
            scaled = gain if base == 2 else f"{gain}*log2({base})"
            return gain if rank <= base else f"{scaled}/log2({rank})"
        return {"none": gain, "rank": f"{gain}/{rank}"}.get(discount, f"{gain}/log2({rank + 1})")

    return _sum(term(rank, gain) for rank, gain in gains if gain != "0")


def _err(of: Judged) -> tuple[str, str]:
    graded = [(rank, of.grades.get(item, 0)) for rank, item in of.down_to(of.metric["k"])]
    stops = [(rank, f"(2^{g} - 1)/2^{of.metric['max_grade']}") for rank, g in graded if g > 0]
    left = ["".join(f"*(1 - {stop})" for _, stop in stops[:i]) for i in range(len(stops))]
    return _sum(
        f"1/{rank}*{stop}{rest}" for (rank, stop), rest in zip(stops, left, strict=True)
    ), "1"


def _rbp(of: Judged) -> tuple[str, str]:
    p = Fraction(str(of.metric["p"]))
    terms = [f"({p})^{rank - 1}" for rank in of.hits(of.metric["k"])]
    return f"{1 - p}*({_sum(terms)})", "1"


def _bpref(of: Judged) -> tuple[str, str]:
    judged = {item for item, grade in of.grades.items() if grade >= 0}
    misses, above, terms = min(len(judged) - of.R, of.R), 0, []
    for _, item in of.places:
        if item in of.relevant:
            terms.append(f"(1 - {min(above, of.R)}/{misses})" if above else "1")
        above += item in judged and item not in of.relevant
    return _sum(terms), str(of.R)


def _judged(of: Judged) -> tuple[str, str]:
    return str(sum(item in of.grades for _, item in of.down_to(of.metric["k"]))), of.divisor()


def _unjudged(of: Judged) -> tuple[str, str]:
    grades = (of.grades.get(item, -1) for _, item in of.down_to(of.metric["k"]))
    return str(sum(grade < 0 for grade in grades)), of.divisor()


_METRICS: dict[str, Callable[[Judged], tuple[str, str]]] = {
    "precision": _precision,
    "recall": _precision,  # with another divisor
    "f": _f,
    "r_precision": _r_precision,
    "hit": _hit,
    "all": _all,
    "rr": _rr,
    "arhr": _arhr,
    "ap": _ap,
    "interpolated_precision": _interpolated,
    "cg": _dcg,  # without a discount
    "dcg": _dcg,
    "ndcg": _ndcg,
    "err": _err,
    "rbp": _rbp,
    "bpref": _bpref,
    "judged": _judged,
    "unjudged": _unjudged,
}


def _is_defined(of: Judged) -> bool:
    if of.metric["name"] in ("judged", "unjudged"):
        return bool(of.grades)
    if of.metric["name"] in ("cg", "dcg", "ndcg", "err") and of.metric.get("gain") != "binary":
        return any(grade > 0 for grade in of.grades.values())
    return of.R > 0


# --- users


def complete(case: Any, table: Any) -> dict[str, Any]:
    """Derive the number of a case whose convention is whole."""
    truth = table["truth"]
    top_grade = max((Fraction(str(grade)) for *_, grade in truth), default=Fraction())
    values: dict[str, str | None] = {}
    pairs: list[tuple[str, str]] = []
    for user in dict.fromkeys(row[0] for row in truth + table["run"]):
        grades, least = _grades(table, user), case["relevant_at"]
        relevant = frozenset(x for x in grades if grades[x] > 0 and grades[x] >= (least or 0))
        in_run = any(row[0] == user for row in table["run"])
        counts = {
            "with_relevant_item": bool(relevant),
            "judged": bool(grades),
            "in_run": in_run,
            "judged_and_in_run": bool(grades) and in_run,
            "judged_or_in_run": True,
        }
        if not counts[case["users"]]:
            continue
        lists = [
            Judged(places, grades, relevant, top_grade, case["metric"])
            for places in orders(case, table, user)
        ]
        of_lists = [_METRICS[case["metric"]["name"]](of) for of in lists]
        values[user] = None if case["undefined"] is None else str(case["undefined"])
        if _is_defined(lists[0]):
            values[user] = _mean([_ratio(*pair) for pair in of_lists])
        pairs += of_lists if values[user] is not None else []
    defined = [value for value in values.values() if value is not None]
    derivation = f"mean({', '.join(defined)})" if len(defined) > 1 else "".join(defined)
    if case["average"] == "pooled" and pairs:
        derivation = _ratio(*map(_sum, zip(*pairs, strict=True)))
    result = {"expect": _number(derivation or None), "derivation": derivation or "undefined"}
    if len(values) > 1 and case["average"] == "users":
        result["per_user"] = {user: _number(value) for user, value in values.items()}
    return result


def _number(derivation: str | None) -> float | None:
    return None if derivation is None else float(exact(derivation))


# --- labels and files

_WORDS = {
    ("precision", "n"): "divide_by=returned",
    ("precision", "min(k,R)"): "divide_by=attainable",
    ("recall", "min(k,R)"): "divide_by=attainable",
    ("recall", "min(n,R)"): "divide_by=attainable",
    ("ap", "min(k,R)"): "divide_by=attainable",
    ("ap", "min(n,R)"): "divide_by=returned",
    ("ap", "hits"): "divide_by=hits",
    ("ap", "k"): "divide_by=k",
    ("ap", "n"): "divide_by=k",
}
_LEFT_OUT = ("linear", "truth", "log2", "nearest", "jarvelin", "none")
_CHOICES = ("gain", "ideal", "discount", "points")
_NUMBERS = ("base", "beta", "max_grade", "p", "recall")


def label(metric: Any) -> str:
    """Write the metric as rankframe's label."""
    name, k, options = metric["name"], metric.get("k"), list[str]()
    for key, value in metric.items():
        if key == "divide_by":
            options.append(
                _WORDS.get((name, value), "") if (name, k) != ("precision", None) else ""
            )
        elif isinstance(value, dict):
            options.append(f"{key}=" + ";".join(f"{x}:{y}" for x, y in value.items()))
        elif key in (*_NUMBERS, *_CHOICES) and value not in _LEFT_OUT:
            options.append(f"{key}={value}")
    inside = ",".join(filter(None, options))
    name, inside = ("f1", "") if inside == "beta=1" else (name, inside)
    return f"{name}{f'({inside})' if inside else ''}{'' if k is None else f'@{k}'}"


def completed(text: str) -> str:
    """Complete the text of a file; each table and each case is one line."""
    file = json.loads(text)
    for case in file["cases"]:
        whole = file["defaults"] | case
        case.pop("per_user", None)
        case |= {"label": label(case["metric"])} | complete(whole, file["tables"][case["tables"]])
    lines = []
    for key, value in file.items():
        if key == "tables":
            rows = [f"    {json.dumps(name)}: {_line(table)}" for name, table in value.items()]
            lines.append('  "tables": {\n' + ",\n".join(rows) + "\n  }")
        elif key == "cases":
            lines.append('  "cases": [\n' + ",\n".join(f"    {_line(x)}" for x in value) + "\n  ]")
        else:
            lines.append(f"  {json.dumps(key)}: {_line(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    for path in FILES:
        path.write_text(completed(path.read_text()))
