"""Writes the verdict of a report: every sentence of its box, from the rows of a comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any, NamedTuple

import polars as pl

from rankframe._comparison import decision, notes, numerals, power, sentences, summaries, trials
from rankframe._comparison.trials import Bound
from rankframe._evaluation import user_choice
from rankframe._report import facts, nouns, results
from rankframe._report.facts import Numbers
from rankframe._report.markup import Page, Verdict
from rankframe._tables import column_roles

_FEW_USERS = 30
_PAIR = 2
MANY = 6  # systems that fit beside each other
_MOST_NEEDED = 10_000_000
_MOST = 10  # a relative change beyond it says nothing: the raw one is written
#: What a summary of many systems calls each outcome, in this order.
_OUTCOMES = {
    **{kind: kind for kind in ("better", "higher", "worse", "lower")},
    "worse within the margin": "worse within the margin",
    "mixed": "mixed",
    "same": "the same",
    "identical": "identical",
    "not worse": "not worse by the margin",
    "few": "with too few {users} to tell",
    "unjudged": "with too few judgments to tell",
}
_KINDS = {
    "worse within the margin": "worse",
    **dict.fromkeys(("not worse", "undecided", "untested"), "few"),
}
#: The common metrics whose question the box has.
_QUESTIONS = {
    **{n: n for n in ("ndcg", "precision", "recall", "hit", "map", "mrr")},
    "ap": "map",
    "rr": "mrr",
}
#: Why nothing is tested, as the outcome says it.
_REASONS = (*trials.UNTESTED, trials.NO_PAIR, trials.NO_VALUE, "no_value_in_one")
#: Notes of a comparison that other sentences of the box say, or that are of the method alone.
_SAID = (
    *(*_REASONS, "no_list", "few_users", "primary", "secondary", "looks", "small_effect"),
    *("negative_baseline", "one_share", *trials.EXACT, "cut", "cut_difference"),
)
_MOST_NAMES = 4  # groups of one outcome whose names fit in a sentence


class Outcome(NamedTuple):
    """What a comparison shows: one of nine kinds, and the sentence that says it."""

    kind: str  # a key of _OUTCOMES
    sentence: str
    step: str = ""  # what follows, if it is not that of the kind


def say(numbers: Numbers, kind: str, row: Mapping[str, Any] | None = None, /, **values: Any) -> str:
    """Write a sentence by its template, with the nouns of the page and the values of a row."""
    fields: dict[str, Any] = {"metric": numbers.decides, "k": numbers.call.k}
    fields |= {"baseline": baseline_of(numbers), "sure": _confidence(numbers)}
    if row is not None:
        fields |= {"system": text_of(row[numbers.call.by]), "metric": row["metric"]}
        fields |= {"number": row["users"], "change": _change(row)}
    return numbers.nouns.write(notes.templates("verdicts")[kind], **{**fields, **values})


def text_of_page(page: Page) -> str:
    """Write the verdict as lines of text, in three parts."""
    lines: list[str] = []
    for verdict in page.verdicts:
        lines += [verdict.lead, *verdict.text]
    lines += ["What could be wrong:", *(f"- {line}" for line in page.doubts)]
    lines += ["What to do next:", *(f"- {line}" for line in page.steps)]
    return nouns.in_text("\n".join([*lines, *page.fine]))


# ------------------------------------------------------------------ the outcome


def outcome_of(numbers: Numbers, system: object) -> Outcome:
    """Choose the first outcome that holds, by all metrics of a comparison."""
    rows = [numbers.row(numbers.compared, system, name) for name in numbers.names]
    rows, decides = [*filter(None, rows)], numbers.row(numbers.compared, system)
    if all(_kind(row) == "identical" for row in rows):
        return _identical(rows, numbers)
    if _direction(decides) and _may_turn(numbers, system, numbers.trial.baseline):
        return _too_few_judgments(numbers, decides)
    changes = [(_direction(row), f"{row['metric']} ({_change(row)})") for row in rows]
    better, worse = ([text for way, text in changes if way == word] for word in ("better", "worse"))
    if better and worse:
        both = {"better": numerals.listed(better), "worse": numerals.listed(worse)}
        return Outcome("mixed", say(numbers, "mixed", decides, **both))
    kind = _kind(decides)
    if kind == "identical":
        return _identical([decides], numbers)
    if kind == "few":
        return Outcome(kind, _undecided(decides, numbers))
    bounded = kind == "same" or decides[decision.OUTCOME] == "worse within the margin"
    shown = {
        **_interval_of(decides),
        "direction": kind,
        "overall": _overall(decides, kind, numbers),
        "margin": _margin(numbers, decides["metric"]) if bounded else None,
        "alike": decides["users"] if decides["effect_size"] is None else None,  # without a spread
    }
    template = {"worse": "better", "lower": "higher"}.get(kind, kind)
    return Outcome(kind, say(numbers, template, decides, **shown))


def _identical(rows: Sequence[Mapping[str, Any]], numbers: Numbers) -> Outcome:
    """Write that no value differs, and whether the data could show a difference."""
    first, *others = rows
    if facts.nothing_judged(numbers):
        return Outcome("unjudged", say(numbers, "nothing_judged", first), say(numbers, "same_ids"))
    metrics = "both metrics" if len(others) == 1 else f"all {len(rows)} metrics"
    kind, step, users = "identical", "next_identical", max(row["users"] for row in rows)
    if len(numbers.names) > len(rows) or not facts.same_lists(numbers, first[numbers.call.by]):
        step = "other_metric"
    values = {row["mean"] for row in rows}
    if users > 1 and len(values) == 1 and all(_is_constant(row, numbers) for row in rows):
        kind, metrics = "constant", numerals.listed([row["metric"] for row in rows])
    of = {"metrics": metrics if others else first["metric"], "value": values.pop()}
    return Outcome("identical", say(numbers, kind, first, number=users, **of), say(numbers, step))


def _is_constant(row: Mapping[str, Any], numbers: Numbers) -> bool:
    rows = numbers.values.rows
    return row["metric"] in rows.columns and rows[row["metric"]].drop_nulls().n_unique() == 1


def _too_few_judgments(numbers: Numbers, row: Mapping[str, Any]) -> Outcome:
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
    users = numerals.listed([text_of(user) for user in most.users])
    step = say(numbers, "judge", number=len(most.users), names=users)
    return Outcome("unjudged", say(numbers, "few_judgments", row, **of, **shares), step)


def _interval_of(row: Mapping[str, Any]) -> dict[str, Any]:
    low, high = _ends(row) or (None, None)
    return {"change": _change_and_size(row), "low": low, "high": high}


def _overall(row: Mapping[str, Any], kind: str, numbers: Numbers) -> str | None:
    """Write that the outcome is that of all users, where another one is proved in a group."""
    kinds = {kind for rows in _groups(numbers, row).values() for kind in rows}
    quiet = {"few", "same", "identical"} if kind in ("few", "same") else {"few"}
    return " overall" if kinds - {kind, *quiet} else None


def _undecided(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Write what fits, why it is not enough, and what these users would show."""
    said, differ, p = notes.unpacked(row["note"]), _few_differ(row), row["p_adjusted"]
    why = next((note for note in said if note.kind in _REASONS), [*said, None][0])
    kind = None if why is None else why.kind
    subject = "no_spread" if kind == "all_have" else "too_few_differ" if differ else "too_few"
    claim = {
        "subject": say(numbers, subject, row, differ=differ),
        "overall": _overall(row, "few", numbers),
    }
    if p is None:
        reason = notes.text([why], numbers.nouns) or "no difference can be tested"
        reason = "one has no test" if kind == trials.ONE_USER else reason
        change = None if row["difference"] is None else _change(row)
        return say(numbers, "untested", row, **claim, why=reason, change=change)
    alpha, size = numbers.trial.alpha, None
    lost = decision.shows(row["p_value"], alpha) and not decision.shows(p, alpha)
    least, width = row["detectable"], numbers.values.metric(row["metric"]).traits.width
    if not differ and least is not None and least < width:
        share, raw = row["baseline_mean"] and least / row["baseline_mean"], numerals.number(least)
        size = numerals.percent(share) if share and share > 0 else raw
        size += f" ({raw})" * (size != raw and round(least, 4) > 0)
    excluded = row[decision.OUTCOME] == "not worse"
    margin = _margin(numbers, row["metric"]) if excluded else None
    p_values = {"p": row["p_value"] if lost else None, "adjusted": p, "family": numbers.family}
    shown = {**_interval_of(row), **p_values, "margin": margin, "detectable": size}
    return say(numbers, "undecided", row, **claim, **shown)


def _few_differ(row: Mapping[str, Any]) -> int:
    """Return how many of many users differ, if they are too few for an estimate."""
    from rankframe._comparison import statistics

    differ = (row["higher"] or 0) + (row["lower"] or 0)
    few = row["users"] >= _FEW_USERS and differ < min(statistics.FEW_USERS, row["users"] / 4)
    return differ if few and row["p_adjusted"] is not None else 0


def _kind(row: Mapping[str, Any]) -> str:
    """Return what a summary calls the outcome of one metric."""
    outcome: str = row[decision.OUTCOME]
    return _KINDS.get(outcome, outcome)


def _direction(row: Mapping[str, Any]) -> str:
    """Return the direction that is proved; empty if none is."""
    kind = _kind(row)
    return kind if kind in ("better", "worse", "higher", "lower") else ""


def _margin(numbers: Numbers, metric: str) -> Bound | None:
    margin = numbers.trial.margin
    return trials.bound_of(margin.get(metric) if isinstance(margin, Mapping) else margin)


def _change_and_size(row: Mapping[str, Any]) -> str:
    """Write a difference in percent, and on the scale of the metric."""
    raw = numerals.signed(row["difference"])
    return _change(row) + (
        "" if raw == _change(row) or not round(row["difference"], 4) else f" ({raw})"
    )


def _change(row: Mapping[str, Any]) -> str:
    """Write a difference in percent of the baseline, or without a positive one as it is."""
    if row["relative"] is None or not row["baseline_mean"] > 0 or abs(row["relative"]) > _MOST:
        return numerals.signed(row["difference"])
    return numerals.signed_percent(row["relative"], _decimals(row))


def _ends(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Write both ends of the interval, in percent where the difference is."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return None
    if (decimals := _decimals(row)) is not None:
        low, high = (
            numerals.signed_percent(row[f"relative_{end}"], decimals) for end in ("low", "high")
        )
        return low, high
    return numerals.signed(row["ci_low"]), numerals.signed(row["ci_high"])


def _decimals(row: Mapping[str, Any]) -> int | None:
    """Return the decimals that show two digits of the interval's half-width, if it is in percent.

    An end below −100% comes from an uncertain baseline: the absolute interval is shown.
    """
    low, high = row["relative_low"], row["relative_high"]
    if low is None or low < -1 or high > _MOST or not row["baseline_mean"] > 0:
        return None
    half = 50 * (high - low)
    return min(2, max(0, 1 - floor(log10(half)))) if half > 0 else 0


def _confidence(numbers: Numbers) -> str:
    return f"{100 * numbers.trial.confidence:.10g}%"


# ------------------------------------------------------------------ the box


def said_of(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Return the verdict of a row; open where unjudged items could reverse it."""
    decides = row["metric"] == numbers.decides and _direction(row)
    if decides and _may_turn(numbers, row[numbers.call.by], numbers.trial.baseline):
        return "open: too few judgments"
    return row["verdict"] or "no test"


def verdicts(numbers: Numbers) -> list[Verdict]:
    if not numbers.pairs:
        return [_only(numbers)]
    summary = [_summary(numbers)] if len(numbers.systems) > _PAIR else []
    first, *rest = summary + [_verdict(numbers, system) for system in numbers.shown]
    return [first._replace(text=[*_question(numbers), *first.text]), *rest]


def _question(numbers: Numbers) -> list[str]:
    """Write what the metric that decides asks, if it is a common one."""
    name, _, k = numbers.decides.partition("@")
    metric = numbers.values.metric(numbers.decides)
    if name not in _QUESTIONS or k == "1" or not facts.is_label(metric, numbers.call):
        return []
    first = f"the first {k} {numbers.nouns.words['items']}" if k else "the list"
    return [say(numbers, "question", words=say(numbers, _QUESTIONS[name], first=first))]


def _only(numbers: Numbers) -> Verdict:
    """Report the mean of a single system."""
    row = numbers.row(numbers.means, numbers.systems[0])
    ends = numerals.interval(row["ci_low"], row["ci_high"]) or None
    lead = say(numbers, "only", system=text_of(numbers.systems[0]), mean=row["mean"], ends=ends)
    return Verdict("open", lead, [say(numbers, "no_comparison")])


def _summary(numbers: Numbers) -> Verdict:
    """Count the outcomes of many systems."""
    systems: dict[str, list[str]] = {}
    for system in numbers.systems[1:]:
        kind, row = outcome_of(numbers, system).kind, numbers.row(numbers.compared, system)
        shown = row[decision.OUTCOME]  # a margin tells more than the kind, unless metrics do
        kind = shown if shown in _OUTCOMES and _KINDS.get(shown) == kind else kind
        systems.setdefault(kind, []).append(text_of(system))
    words = [
        f"{len(names)} {numbers.nouns.write(words)}"
        + (f" ({', '.join(names)})" if len(names) <= _MOST_NAMES else "")
        for kind, words in _OUTCOMES.items()
        if (names := systems.get(kind))
    ]
    number = len(numbers.systems) - 1
    lead = say(numbers, "summary", number=number, outcomes=numerals.listed(words))
    if len(numbers.shown) == number:
        return Verdict("open", lead)
    direction, why = numbers.values.directions.get(numbers.decides), "is the first of them by name"
    if direction is not None:
        why = f"has the {'highest' if direction else 'lowest'} mean of them"
    text = say(numbers, "chosen", system=text_of(numbers.chosen), why=why)
    return Verdict("open", lead, [text])


def _verdict(numbers: Numbers, system: object) -> Verdict:
    """Report how a system compares with the baseline."""
    outcome, row = outcome_of(numbers, system), numbers.row(numbers.compared, system)
    lines: list[str] = []
    if outcome.kind not in ("identical", "unjudged"):
        lines += _for_whom(row, numbers, outcome) + _mixes(row, numbers)
        lines += _wins(row, numbers) + _harm(numbers, system)
    if outcome.kind != "mixed":
        lines += _others(numbers, system)
    return Verdict(outcome.kind, outcome.sentence, lines)


def _groups(numbers: Numbers, row: Mapping[str, Any]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the rows of each outcome in the groups of users, as the page has them."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, table in numbers.groups.items():
        of_system = pl.lit(row[numbers.call.by], dtype=table.schema[numbers.call.by])
        rows = table.filter(pl.col(numbers.call.by) == of_system).to_dicts()
        for of_group in rows if len(rows) > 1 else []:
            groups.setdefault(name, {}).setdefault(_kind(of_group), []).append(of_group)
    return groups


def _for_whom(row: Mapping[str, Any], numbers: Numbers, outcome: Outcome) -> list[str]:
    """Write the outcome of each group of users."""
    lines: list[str] = []
    metric = numbers.decides if outcome.kind == "mixed" else None
    for name, groups in _groups(numbers, row).items():
        parts: list[str] = []
        for kind in sorted({*_OUTCOMES} & {*groups}, key=[outcome.kind, *_OUTCOMES].index):
            rows, words = groups[kind], "undecided" if kind == "few" else _OUTCOMES[kind]
            words = "but " * ({kind, outcome.kind} == {"better", "worse"}) + words
            names = [
                f"{text_of(group[name])} ({_in_group(group, kind, numbers)})"
                for group in rows[:_MOST_NAMES]
            ]
            if len(rows) > _MOST_NAMES:
                names[-1] = f"{len(rows) - _MOST_NAMES + 1} more"
            parts.append(f"{words} for {numerals.listed(names)}")
            if len(groups) == 1:
                parts = [_alike(rows, name, words, kind)]
        whom = {"name": name_of(numbers, name), "metric": metric, "parts": "; ".join(parts)}
        lines.append(say(numbers, "for_whom", **whom))
    return lines


def _alike(rows: Sequence[Mapping[str, Any]], name: str, words: str, kind: str) -> str:
    """Write the one outcome of all groups."""
    changes = numerals.listed([f"{_change(row)} for {text_of(row[name])}" for row in rows])
    if len(rows) > _MOST_NAMES:
        higher = sum((row["difference"] or 0) > 0 for row in rows)
        changes = f"higher in {higher} of {len(rows)} groups"
    if kind == "few":
        return f"undecided in each group alone ({changes})"
    return f"{words} in each group" + ("" if kind in ("identical", "same") else f": {changes}")


def _mixes(row: Mapping[str, Any], numbers: Numbers) -> list[str]:
    """Write which group's share explains a mean that moves against each group's."""
    lines: list[str] = []
    for name, kinds in _groups(numbers, row).items() if not numbers.trial.paired else ():
        ways = {*kinds} & {"better", "worse", "higher", "lower"}
        if len(kinds) != 1 or ways != {*kinds} or {_kind(row)} == ways:
            continue
        ((kind, rows),) = kinds.items()
        if any((of["difference"] or 0) * row["difference"] >= 0 for of in rows):
            continue
        new, old = (sum(of[which] for of in rows) for which in ("users", "baseline_users"))
        shares = [(of["users"] / new, of["baseline_users"] / old, of[name]) for of in rows]
        share, before, group = max(shares, key=lambda of: abs(of[0] - of[1]))
        of = {"kind": kind, "name": name, "group": text_of(group), "share": share, "before": before}
        moves = "rises" if row["difference"] > 0 else "falls"
        lines.append(say(numbers, "mix", row, moves=moves, **of))
    return lines


def _in_group(row: Mapping[str, Any], kind: str, numbers: Numbers) -> str:
    users = numbers.nouns.counted(row["users"])
    tells = kind not in ("identical", "same") and row["difference"] is not None
    return f"{_change(row)}, {users}" if tells else users


def _wins(row: Mapping[str, Any], numbers: Numbers) -> list[str]:
    if row["higher"] is None or row["users"] < 2:
        return []
    higher_is_better = numbers.values.directions.get(row["metric"])
    words = ("higher", "lower") if higher_is_better is None else ("better", "worse")
    up, down = row["higher"], row["lower"]
    if higher_is_better is False:
        up, down = down, up
    users, same = row["users"], row["equal"]
    more, less = (count / users if count else None for count in (up, down))
    changes = numbers.changes.get(row[numbers.call.by])
    zero = round(changes.zero * users) if changes else 0
    counts = {"up": up, "down": down, "same": same, "more": more, "less": less}
    counts |= {"zero": zero if zero > same / 2 else None, "better": words[0], "worse": words[1]}
    return [say(numbers, "wins", row, **counts)]


def _harm(numbers: Numbers, system: object) -> list[str]:
    """Write how many users gain and lose much."""
    row = numbers.row(numbers.harm, system)
    if not row or not row["users"]:
        return []
    lost = [numerals.percent(row[name]) for name in ("share", "share_low", "share_high")]
    won = [*map(numerals.percent, numbers.changes[system].gained)]
    ends = f"{_confidence(numbers)} intervals: {won[1]} to {won[2]}, {lost[1]} to {lost[2]}"
    shares = {"won": won[0], "lost": lost[0], "much": row["more_than"] or None, "ends": ends}
    return [say(numbers, "harm", **shares)]


def _others(numbers: Numbers, system: object) -> list[str]:
    """List the verdicts in the other metrics."""
    metrics: dict[str, list[str]] = {}
    primary = numbers.trial.primary
    gate = primary and numbers.row(numbers.compared, system, primary)
    is_open = not gate or bool(_direction(gate))
    for metric in numbers.names:
        row = numbers.row(numbers.compared, system, metric)
        if metric != numbers.decides and row and _kind(row) != "identical":
            direction = _direction(row)
            change = f" ({_change(row)})" if direction or not is_open else ""
            metrics.setdefault(direction or said_of(row, numbers), []).append(metric + change)
    if not is_open and metrics:
        names = [name for names in metrics.values() for name in names]
        text = f"Other metrics, which count only if {primary} shows a difference"
        return [f"{text}: {numerals.listed(names)}."]
    words = [f"{said} in {numerals.listed(names)}" for said, names in metrics.items()]
    may_turn = _may_turn(numbers, system, numbers.trial.baseline)
    if_missed = numbers.nouns.write(", if unjudged {items} are not relevant") * may_turn
    return [f"Other metrics{if_missed}: {'; '.join(words)}."] if words else []


def fine_print(numbers: Numbers) -> list[str]:
    """Write how p is computed, and for how many comparisons it is adjusted; intervals are not."""
    if numbers.compared is None or sentences.untested(numbers.compared):
        return []
    trial, primary = numbers.trial, numbers.trial.primary
    family, table, p = numbers.family, numbers.compared, None
    if len(numbers.systems) == _PAIR:
        decides = table.filter(metric=numbers.decides)
        table = decides if decides["p_value"].count() else table
        p = decides["p_adjusted"].item()
    how = sentences.test_in_words(trial, table, numbers.nouns)
    how = how[0].upper() + how[1:] + ("" if p is None else f", {numerals.p_in_words(p)}")
    kind = "fine_family"
    if primary is not None and (family < 2 or trial.correction is None):
        kind = "fine_alone"
    elif trial.correction is None or family < 2:
        kind = "fine" if family < 2 else "fine_raw"
    elif trial.test == "max_t":
        kind = "fine_joint"
    words = {"how": how, "primary": primary, "family": family}
    words |= {"others": primary if len(numbers.names) > 1 else None}
    words |= {"pairs": sentences.family_of(trial)}
    correction = None if trial.correction is None else sentences.CORRECTIONS[trial.correction]
    return [say(numbers, kind, **words, correction=correction)]


# ------------------------------------------------------------------ what could be wrong


def doubts(numbers: Numbers) -> list[str]:
    """Report what may mislead, the worst first."""
    without_relevant = user_choice.left_out(numbers.values.values.source)
    return [
        *_served(numbers),
        *([without_relevant] if without_relevant else []),
        *_unjudged(numbers),
        *_missed(numbers),
        *_ties(numbers),
        *([say(numbers, "few", number=numbers.users)] if numbers.users <= _FEW_USERS else []),
        *_rare_losses(numbers),
        *_small_effects(numbers),
        *_noted(numbers),
        *_undefined(numbers),
    ]


def _served(numbers: Numbers) -> list[str]:
    """Write the outcome on the users whom both serve, if it is another one."""
    # their groups are not compared
    served = numbers._replace(compared=numbers.served, segments={}, of_relevant=None)
    systems = [system for system in numbers.shown if numbers.row(numbers.served, system)]
    pairs = [(outcome_of(numbers, system), outcome_of(served, system)) for system in systems]
    return [
        say(numbers, "served", sentence=alone.sentence)
        for whole, alone in pairs
        if whole.kind != alone.kind
    ]


def _unjudged(numbers: Numbers) -> list[str]:
    """Write how many of the first items nobody judged, where the systems differ in it."""
    if not numbers.unjudged:
        return []
    means = {name: numbers.row(numbers.means, name)["mean"] for name in numbers.unjudged}
    least = min(numbers.unjudged, key=lambda name: numbers.unjudged[name].share)
    low, raised, _ = numbers.unjudged[least]
    lines: list[str] = []
    for name, (share, value, _) in numbers.unjudged.items():
        if share == low or value is None or raised is None or _may_turn(numbers, name, least):
            continue  # the last is an outcome of its own
        both = ((name, value), (least, raised))
        would = " and ".join(
            f"{numerals.number(new)} for {text_of(n)} (not {numerals.number(means[n])})"
            for n, new in both
        )
        of = {"share": share, "system": text_of(name), "least": text_of(least), "low": low}
        lines.append(say(numbers, "unjudged", **of, would=would))
    return lines


def _may_turn(numbers: Numbers, *systems: object) -> bool:
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


def _missed(numbers: Numbers) -> list[str]:
    rows = [(text_of(name), "", numbers.users, count) for name, count in numbers.missed.items()]
    schema = ["system", "segment", "users", "num_missed"]
    zero = ""
    if (numbers.call.settings.users or "truth") in ("truth", "judged"):
        zero = "; no list counts as 0"
    table = pl.DataFrame(rows, schema=schema, orient="row")
    lines = sentences.missed_lines(table, nouns=numbers.nouns)
    return [f"{line}{zero}." for line in lines]


def _ties(numbers: Numbers) -> list[str]:
    """Write which systems have many lists whose first items depend on the order of ties."""
    tied = numbers.health.filter(
        pl.col("what") == "ties_at_the_cut", pl.col("share") >= facts.MATTERS
    )
    shares = {**{row[numbers.call.by]: row["share"] for row in tied.to_dicts()}, **numbers.tied}
    return [
        say(numbers, "ties", share=share, system=text_of(name))
        for name, share in [*shares.items()][:3]
    ]


def _rare_losses(numbers: Numbers) -> list[str]:
    """Write that losses too rare for these users to show one would turn a proved gain."""
    width = numbers.values.metric(numbers.decides).traits.width
    lines: list[str] = []
    for system in numbers.shown:
        row = numbers.row(numbers.compared, system)
        harm = numbers.row(numbers.harm, system)
        if not harm or harm["share"] != 0 or _direction(row) != "better":
            continue
        loss = abs(row["difference"]) / harm["share_high"]
        if isfinite(width) and loss <= width:
            of = {"much": harm["more_than"], "most": harm["share_high"], "loss": loss}
            lines.append(say(numbers, "rare_losses", row, **of))
    return lines


def _small_effects(numbers: Numbers) -> list[str]:
    """Write that many users prove a difference that may not matter, in place of the note."""
    rows = [numbers.row(numbers.compared, system) for system in numbers.shown]
    small = [row for row in rows if "small_effect" in notes.kinds(row["note"]) and _direction(row)]
    return [say(numbers, "small_effect", row) for row in small]


def _noted(numbers: Numbers) -> list[str]:
    """Write the notes of the comparisons that decide, such as left-out users."""
    if numbers.compared is None:
        return []
    by, decides = numbers.call.by, pl.col("metric") == numbers.decides
    table = numbers.compared.filter(decides & pl.col(by).is_in(numbers.shown))
    left = notes.without(table["note"], _SAID)
    table = table.with_columns(notes.in_words(left, numbers.nouns))
    if len(numbers.shown) > 1:
        return [f"{line}." for line in results.lines_of_notes(table, [by])]
    return [f"{note}." for note in table["note"].drop_nulls()]


def _undefined(numbers: Numbers) -> list[str]:
    left_out = numbers.means.filter(
        pl.col("num_left_out") >= facts.MATTERS * summaries.SELECTED, pl.col("num_left_out") > 0
    )
    most = left_out.group_by("metric", maintain_order=True).agg(pl.col("num_left_out").max())
    return [say(numbers, "undefined", metric=name, number=count) for name, count in most.rows()]


# ------------------------------------------------------------------ what to do next


def steps(numbers: Numbers) -> list[str]:
    """Write what follows from the outcome."""
    if not numbers.pairs:
        return [say(numbers, "report_both")]
    lines: dict[str, list[str]] = {}
    first = [say(numbers, "judge_all")]
    for system in numbers.shown:
        outcome, row = outcome_of(numbers, system), numbers.row(numbers.compared, system)
        step = outcome.step or _more_users(numbers, row, outcome.kind)
        if outcome.kind == "mixed" and numbers.trial.primary is not None:
            step = say(numbers, "weigh")
        if outcome.kind in ("same", "few") and (number := _differing_groups(row, numbers)):
            step = say(numbers, "confirm_one" if number == 1 else "confirm", number=number)
        if _mixes(row, numbers):
            step = say(numbers, "equal_shares")
        if outcome.kind == "better" and row["higher"] is not None:
            lost = row["lower"] if numbers.values.directions[row["metric"]] else row["higher"]
            step = step if lost else say(numbers, "no_loss")
        lines.setdefault(step, []).append(text_of(system))
    several = len(lines) > 1
    ends = [f" ({numerals.listed(names)})." if several else "." for names in lines.values()]
    turned = any(_may_turn(numbers, name, numbers.trial.baseline) for name in numbers.shown)
    return first * (bool(numbers.unjudged) and not turned) + [
        *map("".join, zip(lines, ends, strict=True))
    ]


def _differing_groups(row: Mapping[str, Any], numbers: Numbers) -> int:
    """Count the groups that differ, where the whole is not shown to."""
    kinds = ("better", "worse", "higher", "lower")
    return sum(len(of.get(kind, [])) for of in _groups(numbers, row).values() for kind in kinds)


def _more_users(numbers: Numbers, row: Mapping[str, Any], kind: str) -> str:
    """Write what follows: of too few users, how many a difference of the observed size needs."""
    needed = _needed(numbers, row) if kind == "few" else None
    if needed is not None and needed > _MOST_NEEDED:
        return say(numbers, "next_margin", number=_MOST_NEEDED)
    size = 10 ** max(0, len(str(needed)) - 2)
    about = None if needed is None else f"{-(-needed // size) * size:,}"
    return say(numbers, f"next_{kind}", row, needed=about)


def _needed(numbers: Numbers, row: Mapping[str, Any]) -> int | None:
    """Return the number of users by ``power``, for one of the comparisons adjusted.

    The difference of a few users is no estimate to plan with.
    """
    trial, settings = numbers.trial, numbers.call.settings
    if not trial.paired or settings.weights is not None or not row["detectable"]:
        return None
    if row["users"] < _FEW_USERS or not row["difference"] or _few_differ(row):
        return None
    family = 1 if trial.correction is None else max(1, numbers.family)
    by = numbers.call.by
    rows = numbers.values.rows.filter(pl.col(by).is_in([trial.baseline, row[by]]))
    plan = power.plan_of(
        numbers.values.only([row["metric"]], rows),
        trials.Trial(trial.baseline, confidence=trial.confidence, cluster=trial.cluster),
        trials.POWER,
        abs(row["difference"]),
        family,
    )
    needed = plan.collect()["needed"].item()
    return _MOST_NEEDED + 1 if needed is None else needed


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
