"""Writes the verdict of a report: every sentence of its box, from the rows of a comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import floor, isfinite, log10
from typing import Any, NamedTuple

import polars as pl

from rankframe._comparison import decision, numerals, power, sentences, summaries, trials
from rankframe._comparison.trials import Bound
from rankframe._report import facts, nouns, results
from rankframe._report.facts import Numbers
from rankframe._report.markup import Page, Verdict
from rankframe._tables import column_roles
from rankframe.presets import Users

USERS: Mapping[Users, str] = {
    "truth": "every user with an item of grade > 0; a user without a list counts as 0",
    "judged": "every user with a row in the truth; a user without a list counts as 0",
    "both": "users with a list and a row in the truth",
    "served": "users with a row in the truth and a list of every system",
    "run": "users with a list",
    "all": "users with a list or a row in the truth",
}
_FEW_USERS = 30
_PAIR = 2
MANY = 6  # systems that fit beside each other
#: Counts that are wrong if above 0, and counts that may do harm if they are large.
WRONG = ("null_", "invalid_", "nonfinite_", "duplicates", "shared_ranks", "user_ids", "item_ids")
MAY_HARM = (
    *("missed_users", "groups_without", "short_lists", "gaps", "ties_at_the_cut"),
    *("users_unknown", "truth_in_history"),
)
_MOST_NEEDED = 10_000_000
_MOST = 10  # a relative change beyond it says nothing: the raw one is written
#: Counts that have a doubt of their own.
SAID_CHECKS = ("missed_users", "groups_without", "ties_at_the_cut", "unjudged_at")
#: What a summary of many systems calls each outcome.
_OUTCOMES = {
    "better": "better",
    "higher": "higher",
    "worse": "worse",
    "lower": "lower",
    "mixed": "mixed",
    "same": "the same",
    "identical": "identical",
    "few": "with too few users to tell",
    "unjudged": "with too few judgments to tell",
}
_KINDS = {
    "worse within the margin": "worse",
    **dict.fromkeys(("not worse", "undecided", "untested"), "few"),
}
_NEXT = {
    "better": "Look at the lists of those who lose before you decide",
    "worse": "Look at the lists of those who lose, to see what changed",
    "higher": "Decide whether a higher value is wanted",
    "lower": "Decide whether a lower value is wanted",
    "mixed": "Name the metric that decides in primary=, before the next comparison",
    "same": "These numbers do not separate them: decide by cost, speed or simplicity",
    "identical": "Check that the two systems are not one file, read twice",
}
_NO_LOSS = "Decide by what the values do not show, such as cost"
_WEIGH = "Weigh the metric that gains against the one that loses"
_CONFIRM = "shows a difference that the whole does not: confirm it on new users"
_EQUAL_SHARES = "Compare with equal shares of the groups"
_OTHER_METRIC = "Compare by a metric that can tell them apart"
#: What the common metrics ask.
_QUESTIONS = {
    "ndcg": "how close the order of {first} is to the best possible one",
    "precision": "how much of {first} is wanted",
    "recall": "how much of what users want is in {first}",
    "hit": "how many users find at least one wanted item in {first}",
    **dict.fromkeys(("map", "ap"), "whether wanted items are ranked above unwanted ones"),
    **dict.fromkeys(("mrr", "rr"), "how soon a user meets a wanted item"),
}
_NO_VALUES = trials.NO_PAIR, trials.NO_VALUE
#: Why nothing is tested, as the outcome says it.
_REASONS = (trials.ALL_DIFFER_ALIKE, trials.NOBODY_DIFFERS, trials.ONE_USER, *_NO_VALUES)
#: Notes of a comparison that other sentences of the box say, or that are of the method alone.
_SAID = re.compile(
    r"[\d,]+ of [\d,]+ users? ha(s|ve) no list of |\d+ users?, too few|(primary|secondary) metric: "
    r"|always valid: |no margin was given: |relative "
    rf"|{trials.EXACT}|{summaries.CUT}|{'|'.join(_REASONS)}"
)
_MOST_NAMES = 4  # groups of one outcome whose names fit in a sentence


class Outcome(NamedTuple):
    """What a comparison shows: one of nine kinds, and the sentence that says it."""

    kind: str  # a key of _OUTCOMES
    sentence: str
    step: str = ""  # what follows, if it is not that of the kind


def text_of_page(page: Page) -> str:
    """Write the verdict as lines of text, in three parts."""
    lines: list[str] = []
    for verdict in page.verdicts:
        lines += [verdict.lead, *verdict.text]
    lines += ["What could be wrong:", *(f"- {line}" for line in page.doubts)]
    lines += ["What to do next:", *(f"- {line}" for line in page.steps)]
    return nouns.in_text("\n".join([*lines, *page.fine]))


# ------------------------------------------------------------------ the outcome


def outcome_of(table: pl.DataFrame, numbers: Numbers, system: object) -> Outcome | None:
    """Choose the first outcome that holds, by all metrics of a comparison; None without a row."""
    rows = [row for name in numbers.names if (row := row_of(table, numbers, system, name))]
    decides = row_of(table, numbers, system, numbers.decides)
    if not decides:
        return None
    names = text_of(system), baseline_of(numbers)
    if all(_is_identical(row) for row in rows):
        return _identical(rows, names, numbers, system)
    if _direction(decides) and _may_turn(numbers, system, numbers.trial.baseline):
        return _too_few_judgments(numbers, system)
    changes = [(_direction(row), f"{row['metric']} ({_change(row)})") for row in rows]
    better, worse = ([text for way, text in changes if way == word] for word in ("better", "worse"))
    if better and worse:
        claim = f"{names[0]} is better than {names[1]} in {numerals.listed(better)}"
        claim += f", and worse in {numerals.listed(worse)}"
        return Outcome("mixed", f"The result is mixed: {claim}.")
    kind = _kind(decides)
    if kind == "identical":
        return _identical([decides], names, numbers, system)
    if kind == "few":
        return Outcome(kind, _undecided(table, decides, names, numbers))
    if kind == "same":
        low, high = _ends(decides) or ("", "")
        claim = f"{names[0]} and {names[1]} are the same for practical purposes"
        where = f"in {decides['metric']}: the difference is between {low} and {high}, "
        where += f"within the margin ({_margin(numbers, decides['metric'])})."
        return Outcome(kind, f"{claim}{_overall(decides, kind, numbers)} {where}")
    return Outcome(kind, _proved(decides, kind, names, numbers))


def _identical(
    rows: Sequence[Mapping[str, Any]],
    names: tuple[str, str],
    numbers: Numbers,
    system: object,
) -> Outcome:
    """Write that no value differs, and whether the data could show a difference."""
    metrics = ["both metrics" if len(rows) == _PAIR else f"all {len(rows)} metrics"]
    metrics = [rows[0]["metric"]] if len(rows) == 1 else metrics
    users = max(row["users"] for row in rows)
    all_users = numerals.counted(users, "user")
    if facts.nothing_judged(numbers):
        claim = f"No item of the lists is judged: nothing can tell {names[0]} from {names[1]}."
        return Outcome("unjudged", claim, "Check that the run and the truth have the same ids")
    others = len(numbers.names) > len(rows)
    step = _OTHER_METRIC if others or not facts.same_lists(numbers, system) else ""
    values = {row["mean"] for row in rows}
    if users > 1 and len(values) == 1 and all(_is_constant(row, numbers) for row in rows):
        labels_of = numerals.listed([row["metric"] for row in rows])
        claim = (
            f"{names[0]} and {names[1]} are identical: all {all_users} have {values.pop():g} with "
        )
        return Outcome("identical", f"{claim}both, so {labels_of} cannot tell them apart.", step)
    sentence = f"{names[0]} and {names[1]} are identical in {metrics[0]}, for each of {all_users}."
    return Outcome("identical", sentence, step)


def _is_constant(row: Mapping[str, Any], numbers: Numbers) -> bool:
    rows = numbers.values.rows
    return row["metric"] in rows.columns and rows[row["metric"]].drop_nulls().n_unique() == 1


def _too_few_judgments(numbers: Numbers, system: object) -> Outcome:
    """Write that the judgments of unjudged items could reverse the order of two systems."""
    sides = [(name, numbers.unjudged[name]) for name in (system, numbers.trial.baseline)]
    sides.sort(key=lambda side: -side[1].share)
    (most, of_most), (least, of_least) = ((text_of(name), side) for name, side in sides)
    means = [row_of(numbers.means, numbers, name, numbers.decides)["mean"] for name, _ in sides]
    now, then = (
        " against ".join(numerals.number(value, 3) for value in values)
        for values in (means, [side.value for _, side in sides])
    )
    claim = f"Not enough judgments to tell {text_of(system)} from {baseline_of(numbers)}: "
    claim += (
        f"{numerals.percent(of_most.share)} of the first {numbers.call.k} items of {most} were "
    )
    claim += f"never judged ({least}: {numerals.percent(of_least.share)}). If they count as not "
    claim += f"relevant, {numbers.decides} is {now}; if as relevant, {then}."
    users = numerals.listed([text_of(user) for user in of_most.users])
    noun = "users" if len(of_most.users) > 1 else "user"
    return Outcome("unjudged", claim, f"Judge the first items of these {noun} first: {users}")


def _proved(
    row: Mapping[str, Any], direction: str, names: tuple[str, str], numbers: Numbers
) -> str:
    system, baseline = names
    metric = row["metric"]
    claim = (
        f"{system} is {direction}{_overall(row, direction, numbers)} than {baseline} in {metric}"
    )
    if direction in ("higher", "lower"):
        claim = f"{system} has a {direction} {metric} than {baseline}"
    if row[decision.OUTCOME] == "worse within the margin":
        claim += f", but by less than the margin ({_margin(numbers, metric)})"
    ends = _ends(row)
    parts = [_change_and_size(row)]
    if ends:
        parts.append(f"{_confidence(numbers)} interval {ends[0]} to {ends[1]}")
    if row["effect_size"] is None:  # without a spread
        parts.append(f"the same for all {numerals.counted(row['users'], 'user')}")
    return f"{claim}: {', '.join(parts)}."


def _overall(row: Mapping[str, Any], kind: str, numbers: Numbers) -> str:
    """Write that the outcome is that of all users, where another one is proved in a group."""
    kinds = {kind for rows in _groups(numbers, row).values() for kind in rows}
    quiet = {"few", "same", "identical"} if kind in ("few", "same") else {"few"}
    return " overall" if kinds - {kind, *quiet} else ""


def _undecided(
    table: pl.DataFrame, row: Mapping[str, Any], names: tuple[str, str], numbers: Numbers
) -> str:
    """Write what fits, why it is not enough, and what these users would show."""
    users = numerals.counted(row["users"], "user")
    subject = f"{users} {'is' if row['users'] == 1 else 'are'} too few"
    differ = _few_differ(row)
    if differ:
        subject = f"{differ:,} of {users} {'differs' if differ == 1 else 'differ'}, too few"
    shown = "" if row["difference"] is None else f" ({_change(row)})"
    notes = (row["note"] or "no difference can be tested").split("; ")
    why = next((note for note in notes if note in _REASONS), notes[0])
    if why.startswith("no test: all "):  # two groups of one value each
        subject = "There is too little spread"
    overall = _overall(row, "few", numbers)
    claim = f"{subject} to tell {names[0]} from {names[1]}{overall} in {row['metric']}"
    if row["p_adjusted"] is None:
        return f"{claim}: {'one has no test' if why == trials.ONE_USER else why}{shown}."
    ends = _ends(row)
    parts = [f"{claim}: {_change_and_size(row)}"]
    if ends:
        parts[0] += f", {_confidence(numbers)} interval {ends[0]} to {ends[1]}"
    alpha = numbers.trial.alpha
    if decision.shows(row["p_value"], alpha) and not decision.shows(row["p_adjusted"], alpha):
        family = sentences.tests_of(table, numbers.trial.primary)
        parts.append(
            f"p {numerals.p_value(row['p_value'])} is not enough among {family} comparisons "
            f"(adjusted: {numerals.p_value(row['p_adjusted'])})"
        )
    if row[decision.OUTCOME] == "not worse":
        parts.append(f"a loss of the margin ({_margin(numbers, row['metric'])}) is excluded")
    (metric,) = [metric for metric in numbers.values.requested if metric.name == row["metric"]]
    width = metric.traits.width
    if not differ and row["detectable"] is not None and row["detectable"] < width:
        share = row["baseline_mean"] and row["detectable"] / row["baseline_mean"]
        raw = numerals.number(row["detectable"])
        size = f"{numerals.percent(share)}" if share and share > 0 else raw
        size += f" ({raw})" * (size != raw and round(row["detectable"], 4) > 0)
        parts.append(f"they show a difference of {size} 8 times in 10")
    return "; ".join(parts) + "."


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


def _is_identical(row: Mapping[str, Any]) -> bool:
    return _kind(row) == "identical"


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


def row_of(table: pl.DataFrame, numbers: Numbers, system: object, metric: str) -> dict[str, Any]:
    by = numbers.call.by
    of_system = pl.col(by) == pl.lit(system, dtype=table.schema[by])
    rows = table.filter(of_system & (pl.col("metric") == metric)).to_dicts()
    return rows[0] if rows else {}


def verdicts(numbers: Numbers) -> list[Verdict]:
    if numbers.compared is None:
        return [_only(numbers)]
    summary = [_summary(numbers)] if len(numbers.systems) > _PAIR else []
    first, *rest = summary + [_verdict(numbers, system) for system in numbers.shown]
    return [first._replace(text=[*_question(numbers), *first.text]), *rest]


def _question(numbers: Numbers) -> list[str]:
    """Write what the metric that decides asks, if it is a common one."""
    name, _, k = numbers.decides.partition("@")
    (metric,) = [metric for metric in numbers.values.requested if metric.name == numbers.decides]
    if name not in _QUESTIONS or k == "1" or not facts.is_label(metric, numbers.call):
        return []
    words = _QUESTIONS[name].format(first=f"the first {k} items" if k else "the list")
    return [f"{numbers.decides}: {words}, from 0 to 1."]


def _only(numbers: Numbers) -> Verdict:
    """Report the mean of a single system."""
    row = row_of(numbers.means, numbers, numbers.systems[0], numbers.decides)
    ends = numerals.interval(row["ci_low"], row["ci_high"])
    mean = f"{numerals.number(row['mean'])}{f' ({ends})' if ends else ''}"
    lead = f"{text_of(numbers.systems[0])} has a mean {numbers.decides} of {mean}."
    return Verdict("open", lead, ["No comparison: there is only one system."])


def _summary(numbers: Numbers) -> Verdict:
    """Count the outcomes of many systems."""
    assert numbers.compared is not None
    systems: dict[str, list[str]] = {}
    for system in numbers.systems[1:]:
        if (outcome := outcome_of(numbers.compared, numbers, system)) is not None:
            systems.setdefault(outcome.kind, []).append(text_of(system))
    words = [
        f"{len(names)} {words}" + (f" ({', '.join(names)})" if len(names) <= _MOST_NAMES else "")
        for kind, words in _OUTCOMES.items()
        if (names := systems.get(kind))
    ]
    lead = (
        f"Of {sum(map(len, systems.values()))} systems against {baseline_of(numbers)} in "
        f"{numbers.decides}: {numerals.listed(words)}."
    )
    if len(numbers.shown) == len(numbers.systems) - 1:
        return Verdict("open", lead)
    direction, why = numbers.directions.get(numbers.decides), "is the first of them by name"
    if direction is not None:
        why = f"has the {'highest' if direction else 'lowest'} mean of them"
    text = f"{text_of(numbers.chosen)} {why}; the details below are for this system."
    return Verdict("open", lead, [text])


def _verdict(numbers: Numbers, system: object) -> Verdict:
    """Report how a system compares with the baseline."""
    assert numbers.compared is not None
    outcome = outcome_of(numbers.compared, numbers, system)
    assert outcome is not None
    row = row_of(numbers.compared, numbers, system, numbers.decides)
    lines: list[str] = []
    if outcome.kind not in ("identical", "unjudged"):
        lines = [
            *_for_whom(row, numbers, outcome),
            *_mixes(row, numbers),
            *_wins(row, numbers),
            *_harm(numbers, system),
        ]
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
    where = f" in {numbers.decides}" if outcome.kind == "mixed" else ""
    for name, groups in _groups(numbers, row).items():
        parts: list[str] = []
        for kind in sorted({*_OUTCOMES} & {*groups}, key=[outcome.kind, *_OUTCOMES].index):
            rows, words = groups[kind], "undecided" if kind == "few" else _OUTCOMES[kind]
            words = "but " * ({kind, outcome.kind} == {"better", "worse"}) + words
            names = [
                f"{text_of(group[name])} ({_in_group(group, kind)})" for group in rows[:_MOST_NAMES]
            ]
            if len(rows) > _MOST_NAMES:
                names[-1] = f"{len(rows) - _MOST_NAMES + 1} more"
            parts.append(f"{words} for {numerals.listed(names)}")
            if len(groups) == 1:
                parts = [_alike(rows, name, words, kind)]
        lines.append(f"For whom, by {name}{where}: {'; '.join(parts)}.")
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
        moves = "rises" if row["difference"] > 0 else "falls"
        system = text_of(row[numbers.call.by])
        lines.append(
            f"{system} is {kind} in each {name}; the mean {moves} because "
            f"{numerals.percent(share)} of its users are of {text_of(group)} "
            f"({baseline_of(numbers)}: {numerals.percent(before)})."
        )
    return lines


def _in_group(row: Mapping[str, Any], kind: str) -> str:
    users = numerals.counted(row["users"], "user")
    tells = kind not in ("identical", "same") and row["difference"] is not None
    return f"{_change(row)}, {users}" if tells else users


def _wins(row: Mapping[str, Any], numbers: Numbers) -> list[str]:
    if row["higher"] is None or row["users"] < 2:
        return []
    higher_is_better = numbers.directions.get(row["metric"])
    words = ("higher", "lower") if higher_is_better is None else ("better", "worse")
    up, down = (
        row[name]
        for name in (("lower", "higher") if higher_is_better is False else ("higher", "lower"))
    )
    users, same = row["users"], row["equal"]
    more, less = (f" ({numerals.percent(count / users)})" * (count > 0) for count in (up, down))
    changes = numbers.changes.get(row[numbers.call.by])
    zero = round(changes.zero * users) if changes else 0
    both = f" ({zero:,} {'has' if zero == 1 else 'have'} 0 with both)" if zero > same / 2 else ""
    of_users = f"{words[0]} for {up:,} of {numerals.counted(users, 'user')}{more}"
    rest = f"{words[1]} for {down:,}{less}, and the same for {same:,}{both}"
    return [f"In {row['metric']}, {of_users}, {rest}."]


def _harm(numbers: Numbers, system: object) -> list[str]:
    """Write how many users gain and lose much."""
    row = {} if numbers.harm is None else row_of(numbers.harm, numbers, system, numbers.decides)
    if not row or not row["users"]:
        return []
    much = f" more than {row['more_than']:.4g}" if row["more_than"] else ""
    lost = [numerals.percent(row[name]) for name in ("share", "share_low", "share_high")]
    won = [*map(numerals.percent, numbers.changes[system].gained)]
    ends = f"{_confidence(numbers)} intervals: {won[1]} to {won[2]}, {lost[1]} to {lost[2]}"
    line = f"{won[0]} of users gain{much}, {lost[0]} lose{much} ({ends})"
    return [f"{line}."]


def _others(numbers: Numbers, system: object) -> list[str]:
    """List the verdicts in the other metrics."""
    assert numbers.compared is not None
    metrics: dict[str, list[str]] = {}
    trial, primary = numbers.trial, numbers.trial.primary
    gate = primary and row_of(numbers.compared, numbers, system, primary)
    is_open = not gate or bool(_direction(gate))
    for metric in numbers.names:
        row = row_of(numbers.compared, numbers, system, metric)
        if metric != numbers.decides and row and not _is_identical(row):
            direction = _direction(row)
            change = f" ({_change(row)})" if direction or not is_open else ""
            metrics.setdefault(direction or said_of(row, numbers), []).append(metric + change)
    if not is_open and metrics:
        names = [name for names in metrics.values() for name in names]
        text = f"Other metrics, which count only if {primary} shows a difference"
        return [f"{text}: {numerals.listed(names)}."]
    words = [f"{said} in {numerals.listed(names)}" for said, names in metrics.items()]
    if_missed = ", if unjudged items are not relevant" * _may_turn(numbers, system, trial.baseline)
    return [f"Other metrics{if_missed}: {'; '.join(words)}."] if words else []


def fine_print(numbers: Numbers) -> list[str]:
    """Write how p is computed, and for how many comparisons it is adjusted; intervals are not."""
    if numbers.compared is None or sentences.untested(numbers.compared):
        return []
    trial, primary = numbers.trial, numbers.trial.primary
    family = sentences.tests_of(numbers.compared, primary)
    table = numbers.compared
    if (
        len(numbers.systems) == _PAIR
        and table.filter(decides := pl.col("metric") == numbers.decides)["p_value"].count()
    ):
        table = table.filter(decides)
    how = sentences.test_in_words(trial, table)
    how = how[0].upper() + how[1:]
    if len(numbers.systems) == _PAIR:
        row = row_of(numbers.compared, numbers, numbers.chosen, numbers.decides)
        if row["p_adjusted"] is not None:
            how = f"{how}, p {numerals.p_value(row['p_adjusted'])}".replace("p <", "p < ")
    if primary is not None and (family < 2 or trial.correction is None):
        others = len(numbers.names) > 1
        rest = f"; the other metrics count only if {primary} shows a difference" if others else ""
        return [f"{how}: {primary} is the primary metric, and tested alone{rest}."]
    if trial.correction is None or family < 2:
        return [f"{how}." if family < 2 else f"{how}; p is not adjusted for {family} comparisons."]
    if trial.test == "max_t":
        return [f"{how}; p is adjusted over {sentences.family_of(trial)}."]
    of_primary = "" if primary is None else f" in {primary}, the primary metric"
    name = sentences.CORRECTIONS[trial.correction]
    return [
        f"{how}; p is adjusted for {family} comparisons{of_primary} ({name}); the interval is not."
    ]


# ------------------------------------------------------------------ what could be wrong


def doubts(numbers: Numbers) -> list[str]:
    """Report what may mislead, the worst first."""
    return [
        *_served(numbers),
        *([numbers.without_relevant] if numbers.without_relevant else []),
        *_unjudged(numbers),
        *_missed(numbers),
        *_ties(numbers),
        *_few_users(numbers),
        *_rare_losses(numbers),
        *_small_effects(numbers),
        *_noted(numbers),
        *_undefined(numbers),
    ]


def _served(numbers: Numbers) -> list[str]:
    """Write the outcome on the users whom both serve, if it is another one."""
    if numbers.served is None or numbers.compared is None:
        return []
    lines: list[str] = []
    for system in numbers.shown:
        whole = outcome_of(numbers.compared, numbers, system)
        alone = numbers._replace(segments={}, of_relevant=None)  # its groups are not compared
        served = outcome_of(numbers.served, alone, system)
        if whole is None or served is None or whole.kind == served.kind:
            continue
        among = "The answer changes among the users with a list from both"
        lines.append(f"{among}: {served.sentence}")
    return lines


def _unjudged(numbers: Numbers) -> list[str]:
    """Write how many of the first items nobody judged, where the systems differ in it."""
    if not numbers.unjudged:
        return []
    k, decides = numbers.call.k, numbers.decides
    means = {n: row_of(numbers.means, numbers, n, decides)["mean"] for n in numbers.unjudged}
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
        lines.append(
            f"{numerals.percent(share)} of the first {k} items of {text_of(name)} were never "
            f"judged ({text_of(least)}: {numerals.percent(low)}); each counts as not relevant. "
            f"With the smallest relevant grade for each, {decides} would be {would}."
        )
    return lines


def _may_turn(numbers: Numbers, *systems: object) -> bool:
    """Return whether the smallest relevant grade for unjudged items would reverse two systems."""
    pairs = [
        (unjudged.value, row_of(numbers.means, numbers, name, numbers.decides)["mean"])
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
    lines = sentences.missed_lines(pl.DataFrame(rows, schema=schema, orient="row"))
    return [f"{line}{zero}." for line in lines]


def _ties(numbers: Numbers) -> list[str]:
    """Write which systems have many lists whose first items depend on the order of ties."""
    tied = numbers.health.filter(
        pl.col("what") == "ties_at_the_cut", pl.col("share") >= facts.MATTERS
    )
    shares = {**{row[numbers.call.by]: row["share"] for row in tied.to_dicts()}, **numbers.tied}
    return [
        f"{numerals.percent(share)} of the lists of {text_of(name)} have ties among the first "
        f"{numbers.call.k}: which items come first is arbitrary."
        for name, share in [*shares.items()][:3]
    ]


def _few_users(numbers: Numbers) -> list[str]:
    if numbers.users > _FEW_USERS:
        return []
    return [f"Only {numerals.counted(numbers.users, 'user')}: intervals and tests are rough."]


def _rare_losses(numbers: Numbers) -> list[str]:
    """Write that losses too rare for these users to show one would turn a proved gain."""
    if numbers.harm is None or numbers.compared is None:
        return []
    (metric,) = [metric for metric in numbers.values.requested if metric.name == numbers.decides]
    width = metric.traits.width
    lines: list[str] = []
    for system in numbers.shown:
        row = row_of(numbers.compared, numbers, system, numbers.decides)
        harm = row_of(numbers.harm, numbers, system, numbers.decides)
        if not row or not harm or harm["share"] != 0 or _direction(row) != "better":
            continue
        loss = abs(row["difference"]) / harm["share_high"]
        if isfinite(width) and loss <= width:
            users = numerals.counted(row["users"], "user")
            lines.append(
                f"None of {users} lost more than {harm['more_than']:.4g} with {text_of(system)}, "
                f"but up to {numerals.percent(harm['share_high'])} of all may: a loss of "
                f"{loss:.2g} each would undo the gain."
            )
    return lines


def _small_effects(numbers: Numbers) -> list[str]:
    """Write that many users prove a difference that may not matter, in place of the note."""
    if numbers.compared is None:
        return []
    lines: list[str] = []
    for system in numbers.shown:
        row = row_of(numbers.compared, numbers, system, numbers.decides)
        if row and "no margin was given" in (row["note"] or "") and _direction(row):
            lines.append(
                f"With {numerals.counted(row['users'], 'user')}, even {_change(row)} is proved. "
                "Decide whether it matters; margin= says so in advance."
            )
    return lines


def _noted(numbers: Numbers) -> list[str]:
    """Write the notes of the comparisons that decide, such as left-out users."""
    if numbers.compared is None:
        return []
    by, decides = numbers.call.by, pl.col("metric") == numbers.decides
    table = numbers.compared.filter(decides & pl.col(by).is_in(numbers.shown))
    notes = [
        "; ".join(part for part in (note or "").split("; ") if not _SAID.match(part)) or None
        for note in table["note"]
    ]
    table = table.with_columns(note=pl.Series(notes, dtype=pl.String))
    if len(numbers.shown) > 1:
        return [f"{line}." for line in results.lines_of_notes(table, [by])]
    return [f"{note}." for note in table["note"].drop_nulls()]


def _undefined(numbers: Numbers) -> list[str]:
    left_out = numbers.means.filter(
        pl.col("num_left_out") >= facts.MATTERS * summaries.SELECTED, pl.col("num_left_out") > 0
    )
    most = left_out.group_by("metric", maintain_order=True).agg(pl.col("num_left_out").max())
    return [
        f"{name} is undefined for up to {numerals.counted(count, 'user')} per system; its mean "
        "leaves them out."
        for name, count in most.rows()
    ]


# ------------------------------------------------------------------ what to do next


def steps(numbers: Numbers) -> list[str]:
    """Write what follows from the outcome."""
    if numbers.compared is None:
        return ["Compare it with another system: report both."]
    lines: dict[str, list[str]] = {}
    first = ["Judge the unjudged items, or leave them out (unjudged='drop')."]
    for system in numbers.shown:
        outcome = outcome_of(numbers.compared, numbers, system)
        assert outcome is not None
        row = row_of(numbers.compared, numbers, system, numbers.decides)
        step = outcome.step or _NEXT.get(outcome.kind) or _more_users(numbers, row)
        if outcome.kind == "mixed" and numbers.trial.primary is not None:
            step = _WEIGH
        if outcome.kind in ("same", "few") and (number := _differing_groups(row, numbers)):
            step = f"{number} groups {_CONFIRM.replace('shows', 'show', 1)}"
            step = f"One group {_CONFIRM}" if number == 1 else step
        if _mixes(row, numbers):
            step = _EQUAL_SHARES
        if outcome.kind == "better" and row["higher"] is not None:
            lost = row["lower"] if numbers.directions[row["metric"]] else row["higher"]
            step = step if lost else _NO_LOSS
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


def _more_users(numbers: Numbers, row: Mapping[str, Any]) -> str:
    """Write how many users a difference of the observed size needs."""
    needed = _needed(numbers, row)
    if needed is None:
        return "Compare on more users"
    if needed > _MOST_NEEDED:
        more = f"more than {_MOST_NEEDED:,} users"
        return f"Give margin=, the difference that matters: one of this size needs {more}"
    size = 10 ** max(0, len(str(needed)) - 2)
    return (
        f"Compare on more users: a difference of this size ({_change(row)}), if it is real, needs "
        f"about {-(-needed // size) * size:,}"
    )


def _needed(numbers: Numbers, row: Mapping[str, Any]) -> int | None:
    """Return the number of users by ``power``, for one of the comparisons adjusted.

    The difference of a few users is no estimate to plan with.
    """
    trial, settings = numbers.trial, numbers.call.settings
    if not trial.paired or settings.weights is not None or not row["detectable"]:
        return None
    if row["users"] < _FEW_USERS or not row["difference"] or _few_differ(row):
        return None
    assert numbers.compared is not None
    family = 1
    if trial.correction is not None:
        family = max(1, sentences.tests_of(numbers.compared, trial.primary))
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


def tested(numbers: Numbers) -> str:
    assert numbers.compared is not None
    return sentences.tested_in_words(numbers.trial, numbers.compared)


def system_names(numbers: Numbers) -> str:
    names = [text_of(name) for name in numbers.systems]
    return numerals.listed(names) if len(names) <= 3 else f"{len(names)} systems"


def baseline_of(numbers: Numbers) -> str:
    return text_of(numbers.trial.baseline)


def text_of(value: object) -> str:
    return "none" if value is None else nouns.named(column_roles.in_words(value))
