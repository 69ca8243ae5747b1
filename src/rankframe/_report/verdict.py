"""Says what a comparison of a report shows: an outcome, the claim that is its title, a sentence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, log10
from typing import Any, NamedTuple

import polars as pl

from rankframe._comparison import decision, notes, numerals, trials
from rankframe._comparison.notes import Note
from rankframe._report import facts, nouns, strips
from rankframe._report.facts import Numbers
from rankframe._report.strips import Change
from rankframe._tables import column_roles

FEW_USERS = 30
_PAIR = 2
_PAD = 0.2  # of the card's strip, so that "no change" is below its line
#: Outcomes that show a difference, and those that show none.
DIRECTIONS = ("better", "worse", "higher", "lower")
_OPEN = ("undecided", "untested")
#: The common metrics whose question the page has.
_QUESTIONS = {
    **{n: n for n in ("ndcg", "precision", "recall", "hit", "map", "mrr")},
    "ap": "map",
    "rr": "mrr",
}
#: Why nothing is tested, as the outcome says it.
REASONS = (*trials.UNTESTED, trials.NO_PAIR, trials.NO_VALUE, "no_value_in_one", "all_have")
_SIGNIFICANT = 4  # digits of a mean
SAME = 12  # decimals: what is below are the last bits of a sum


class Outcome(NamedTuple):
    """What a comparison shows: its kind, the claim, and the sentence that tells how much."""

    kind: str  # an outcome of ``decide``, or "mixed" or "unjudged"
    title: str
    sentence: str
    step: str = ""  # a template of what follows, if it is not that of the kind
    few: bool = False  # whether it is open for want of users, as the title says


def say(
    numbers: Numbers,
    part: str,
    kind: str,
    row: Mapping[str, Any] | None = None,
    /,
    **values: Any,
) -> str:
    """Write a sentence by its template, with the nouns of the page and the values of a row."""
    fields: dict[str, Any] = {"metric": numbers.decides, "k": numbers.call.k}
    fields |= {"baseline": baseline_of(numbers), "sure": f"{100 * numbers.trial.confidence:.10g}%"}
    if row is not None:
        fields |= {"system": text_of(row[numbers.call.by]), "metric": row["metric"]}
        fields |= {"number": row["users"]}
    return numbers.nouns.write(notes.templates(part)[kind], **{**fields, **values})


def question(numbers: Numbers, metric: str) -> str:
    """Write what a metric asks, if it is a common one; empty otherwise."""
    name, _, k = metric.partition("@")
    if name not in _QUESTIONS or k == "1":
        return ""
    if not facts.is_label(numbers.values.metric(metric), numbers.call):
        return ""
    first = say(numbers, "questions", "first" if k else "whole", k=k)
    return say(numbers, "questions", _QUESTIONS[name], first=first)


# ------------------------------------------------------------------ the outcome


def outcome_of(numbers: Numbers, system: object) -> Outcome:
    """Choose the first outcome that holds, by all metrics of a comparison."""
    rows = [numbers.row(numbers.compared, system, name) for name in numbers.names]
    rows, decides = [*filter(None, rows)], numbers.row(numbers.compared, system)
    kind: str = decides[decision.OUTCOME]
    if all(row[decision.OUTCOME] == "identical" for row in rows):
        return _identical(rows, numbers)
    if direction_of(decides) and may_turn(numbers, system, numbers.trial.baseline):
        return _unjudged(numbers, decides)
    ways = {"better": 0, "worse": 0}
    names = {way: [row["metric"] for row in rows if direction_of(row) == way] for way in ways}
    if all(names.values()):
        return _mixed(numbers, decides, [row for row in rows if direction_of(row)], names)
    if kind == "identical":
        return _identical([decides], numbers)
    return _plain(numbers, decides, kind)


def _plain(numbers: Numbers, row: Mapping[str, Any], kind: str) -> Outcome:
    """Write the outcome of one metric."""
    title = kind
    adjusted, alpha = row["p_adjusted"], numbers.trial.alpha
    lost = kind == "undecided" and decision.shows(row["p_value"], alpha)
    lost = lost and not decision.shows(adjusted, alpha)
    differ = few_differ(row)
    if kind == "undecided" and not lost:
        title = "few_differ" if differ else "few"
    elif kind == "untested" and row["users"] == 1:
        title = "few"
    values: dict[str, Any] = {
        **_of_margin(numbers, row, kind),
        "why": _why(numbers, row) if kind == "untested" else None,
        **({"p": row["p_value"], "adjusted": adjusted, "family": numbers.family} if lost else {}),
    }
    claim = say(numbers, "titles", title, row, differ=differ, overall=_overall(row, kind, numbers))
    why = why_of(row)
    step = why.kind if why is not None and why.kind in (trials.NO_PAIR, trials.NO_VALUE) else ""
    return Outcome(kind, claim, moved(numbers, row, **values), step, title.startswith("few"))


def _of_margin(numbers: Numbers, row: Mapping[str, Any], kind: str) -> dict[str, str]:
    """Say what is shown of the margin: that a loss of it is excluded, or is not."""
    margin, p = margin_of(numbers, row), row["p_not_worse"]
    if margin is None or kind in ("worse", "untested"):
        return {}
    if kind in ("same", "worse within the margin") or not _has_direction(numbers, row):
        return {"margin": margin[1]}
    excluded = p is not None and decision.shows(p, numbers.trial.alpha / 2)
    return {"excluded" if excluded else "possible": margin[1]}


def _has_direction(numbers: Numbers, row: Mapping[str, Any]) -> bool:
    return numbers.values.directions.get(row["metric"]) is not None


def why_of(row: Mapping[str, Any]) -> Note | None:
    """Return the note that says why nothing is tested; None if something is."""
    if row[decision.OUTCOME] != "untested":
        return None
    said = notes.unpacked(row["note"])
    return next((note for note in said if note.kind in REASONS), [*said, None][0])


def _why(numbers: Numbers, row: Mapping[str, Any]) -> str:
    why = why_of(row)
    if why is None or why.kind == trials.ONE_USER:
        return say(numbers, "sentences", "no_test" if why is None else "one_user")
    return (notes.text([why], numbers.nouns) or "").removeprefix("no test: ")


def moved(numbers: Numbers, row: Mapping[str, Any], **values: Any) -> str:
    """Write both means, the change, its interval, and what else is given."""
    change = strips.change_of(row)
    if change is None:
        return say(numbers, "sentences", "untested", row, **values)
    low, high = change.ends or (None, None)
    crosses = change.low is not None and change.high is not None and change.low <= 0 <= change.high
    open_ = row[decision.OUTCOME] == "undecided" and crosses
    before, after = _means(row)
    groups = {} if numbers.trial.paired else {"new": row["users"], "old": row["baseline_users"]}
    alike = row["effect_size"] is None and values.get("why") is None
    shown = {
        "before": before,
        "after": after,
        "size": change.size,
        "low": low,
        "high": high,
        "rise": int(change.value > 0),
        "alike": row["users"] if alike and low is None else None,
        "around": "" if open_ else None,
    }
    if before == after:
        shown |= {"before": None, "after": after, "about": after}
    kind = "moved" if round(row["difference"], SAME) else "stays"
    return say(numbers, "sentences", kind, row, **shown, **groups, **values)


def _means(row: Mapping[str, Any]) -> list[str]:
    """Write both means with so many digits that they differ, but at most four significant ones."""
    means: list[float] = [row["baseline_mean"], row["mean"]]
    difference: float = abs(round(row["difference"], SAME))
    largest = max(map(abs, means))
    most = max(0, _SIGNIFICANT - 1 - floor(log10(largest))) if largest else _SIGNIFICANT
    digits = max(3, 1 - floor(log10(difference))) if difference else 3
    return [numerals.number(mean, min(most, digits)) for mean in means]


def _identical(rows: Sequence[Mapping[str, Any]], numbers: Numbers) -> Outcome:
    """Write that no value differs, and whether the data could show a difference."""
    first, *others = rows
    if facts.nothing_judged(numbers):
        sentence = say(numbers, "sentences", "nothing_judged")
        return Outcome("unjudged", say(numbers, "titles", "unjudged", first), sentence, "same_ids")
    metrics = "both metrics" if len(others) == 1 else f"all {len(rows)} metrics"
    step, users = "identical", max(row["users"] for row in rows)
    if len(numbers.names) > len(rows) or not facts.same_lists(numbers, first[numbers.call.by]):
        step = "other_metric"
    values = {row["mean"] for row in rows}
    kind = "identical"
    if users > 1 and len(values) == 1 and all(_is_constant(row, numbers) for row in rows):
        kind, metrics = "constant", numerals.listed([row["metric"] for row in rows])
    of = {"metrics": metrics if others else first["metric"], "value": values.pop()}
    title = say(numbers, "titles", kind, first, **({"metric": metrics} if others else {}))
    sentence = say(numbers, "sentences", kind, first, **{**of, "number": users})
    return Outcome("identical", title, sentence, step)


def _is_constant(row: Mapping[str, Any], numbers: Numbers) -> bool:
    rows = numbers.values.rows
    return row["metric"] in rows.columns and rows[row["metric"]].drop_nulls().n_unique() == 1


def _unjudged(numbers: Numbers, row: Mapping[str, Any]) -> Outcome:
    """Write that the judgments of unjudged items could reverse the order of two systems."""
    names = [row[numbers.call.by], numbers.trial.baseline]
    names.sort(key=lambda name: -numbers.unjudged[name].share)
    most, least = (numbers.unjudged[name] for name in names)
    means = [numbers.row(numbers.means, name)["mean"] for name in names]
    now, then = (
        " against ".join(numerals.number(value, 3) for value in values)
        for values in (means, [most.value, least.value])
    )
    shares = {"share": most.share, "other": least.share, "now": now, "then": then}
    of = dict(zip(("most", "least"), map(text_of, names), strict=True))
    sentence = say(numbers, "sentences", "unjudged", row, **of, **shares)
    return Outcome("unjudged", say(numbers, "titles", "unjudged", row), sentence, "judge")


def _mixed(
    numbers: Numbers,
    row: Mapping[str, Any],
    rows: Sequence[Mapping[str, Any]],
    names: Mapping[str, Sequence[str]],
) -> Outcome:
    title = say(
        numbers, "titles", "mixed", row, **{n: numerals.listed(of) for n, of in names.items()}
    )
    changes = numerals.listed([change_in_words(numbers, of) for of in rows])
    step = "mixed" if numbers.trial.primary is None else "weigh"
    return Outcome("mixed", title, say(numbers, "sentences", "mixed", changes=changes), step)


def change_in_words(numbers: Numbers, row: Mapping[str, Any]) -> str:
    change = strips.change_of(row)
    if change is None:
        return ""
    values = {"rise": int(change.value > 0), "size": change.size}
    return say(numbers, "sentences", "change", row, **values)


def direction_of(row: Mapping[str, Any]) -> str:
    """Return the direction that is proved; empty if none is."""
    kind: str = row[decision.OUTCOME].partition(" within")[0]
    return kind if kind in DIRECTIONS else ""


def few_differ(row: Mapping[str, Any]) -> int:
    """Return how many of many users differ, if they are too few for an estimate."""
    from rankframe._comparison import statistics

    differ = (row["higher"] or 0) + (row["lower"] or 0)
    few = row["users"] >= FEW_USERS and differ < min(statistics.FEW_USERS, row["users"] / 4)
    return differ if few and row["p_adjusted"] is not None else 0


def margin_of(numbers: Numbers, row: Mapping[str, Any]) -> tuple[float | None, str] | None:
    """Return the margin of a row in the unit of its change, and in words; None without one."""
    margin, metric = numbers.trial.margin, row["metric"]
    bound = trials.bound_of(margin.get(metric) if isinstance(margin, Mapping) else margin)
    change, mean = strips.change_of(row), row["baseline_mean"]
    if bound is None or change is None or bound.relative == change.in_percent:
        return bound and (bound.size, str(bound))
    if mean is None or mean <= 0:
        return None, str(bound)
    size = bound.size / mean if change.in_percent else bound.size * mean
    return size, f"{change.write(size, sign=False)} ({bound})"


def strip_of(numbers: Numbers, outcome: Outcome, row: Mapping[str, Any]) -> str:
    """Draw the interval of the metric that decides; of an open order, what judgments can do."""
    change = strips.change_of(row)
    if change is None or outcome.step == "same_ids" or outcome.kind == "identical":
        return ""
    if outcome.kind == "unjudged":
        change = _bounds(numbers, row)
    elif margin := margin_of(numbers, row):
        change = change._replace(margin=margin[0])
    kind = "" if outcome.kind == "unjudged" else direction_of(row)
    rising = numbers.values.directions.get(row["metric"])
    direction = 0 if rising is None else 1 if rising else -1
    axis = strips.axis_of([change], pad=_PAD)
    return strips.strip(change, axis, kind, large=True, direction=direction)


def _bounds(numbers: Numbers, row: Mapping[str, Any]) -> Change:
    """Return the difference, and what it would be with each unjudged item relevant."""
    raised = [
        numbers.unjudged[name].value for name in (row[numbers.call.by], numbers.trial.baseline)
    ]
    now, then = row["difference"], (raised[0] or 0.0) - (raised[1] or 0.0)
    return Change(now, min(now, then), max(now, then), in_percent=False, decimals=3)


def shown_by(kind: str) -> str:
    """Return what a kind of outcome shows: two show nothing."""
    return "undecided" if kind in _OPEN else kind


# ------------------------------------------------------------------ groups of users


def groups_of(
    numbers: Numbers, row: Mapping[str, Any]
) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the rows of each outcome in the groups of users, as the page has them."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, table in numbers.groups.items():
        of_system = pl.lit(row[numbers.call.by], dtype=table.schema[numbers.call.by])
        rows = table.filter(pl.col(numbers.call.by) == of_system).to_dicts()
        for of_group in rows if len(rows) > 1 else []:
            groups.setdefault(name, {}).setdefault(of_group[decision.OUTCOME], []).append(of_group)
    return groups


def _overall(row: Mapping[str, Any], kind: str, numbers: Numbers) -> str | None:
    """Return a value if another outcome is proved in a group than for all users."""
    kinds = {kind for rows in groups_of(numbers, row).values() for kind in rows}
    quiet = {*_OPEN, "not worse"}
    if kind not in DIRECTIONS:
        quiet |= {"same", "identical"}
    return "" if kinds - {kind, *quiet} else None


# ------------------------------------------------------------------ unjudged items


def said_of(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Return the verdict of a row; open where unjudged items could reverse it."""
    decides = row["metric"] == numbers.decides and direction_of(row)
    if decides and may_turn(numbers, row[numbers.call.by], numbers.trial.baseline):
        return "open: too few judgments"
    return row["verdict"] or "no test"


def may_turn(numbers: Numbers, *systems: object) -> bool:
    """Return whether the smallest relevant grade for unjudged items would reverse two systems."""
    pairs = [
        (unjudged.value, numbers.row(numbers.means, name)["mean"])
        for name in systems
        if (unjudged := numbers.unjudged.get(name)) and unjudged.value is not None
    ]
    if len(pairs) < _PAIR:
        return False
    (raised, mean), (raised_other, mean_other) = pairs
    return bool((raised - raised_other) * (mean - mean_other) < 0)


# ------------------------------------------------------------------ names


def baseline_of(numbers: Numbers) -> str:
    return text_of(numbers.trial.baseline)


def name_of(numbers: Numbers, segment: str) -> str:
    """Write what a segment is: a column of the caller, or one that the report makes."""
    items = numbers.nouns.words["items"]
    names = {facts.RELEVANT: f"number of relevant {items}", facts.SEEN: f"relevant {items}"}
    return names.get(segment, segment)


def text_of(value: object) -> str:
    return "none" if value is None else nouns.named(column_roles.in_words(value))
