"""Writes the verdict of a report: every sentence of its box, from the rows of a comparison."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from rankframe._comparison import sentences, summaries, trials
from rankframe._comparison.trials import Bound
from rankframe._report import facts, markup, results
from rankframe._report.facts import Numbers
from rankframe._report.markup import Page, Verdict
from rankframe._request import labels
from rankframe._request.keywords import Users
from rankframe._tables import column_roles

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
    "users_unknown",
)
#: A difference that matters to nobody, where the caller gives no margin: of the baseline's mean.
_NEGLIGIBLE = Bound(0.01, relative=True)
_MOST_NEEDED = 10_000_000
DOUBTS = "{problems} of {number} checks of the data found what may do harm: see Data health."
NO_DOUBT = "No check of the data found a problem: Data health says what was checked."
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
}
_NEXT = {
    "better": "Look at the lists of those who lose before you decide",
    "worse": "Look at the lists of those who lose, to see what changed",
    "higher": "Decide whether a higher value is wanted",
    "lower": "Decide whether a lower value is wanted",
    "mixed": "Name the metric that decides in primary=, before the next comparison",
    "same": "Decide by what the values do not show, such as cost",
    "identical": "Check that the two systems are not one file, read twice",
}
_NO_LOSS = "Decide by what the values do not show, such as cost"
_WEIGH = "Weigh the metric that gains against the one that loses"
_LOOK_AT_GROUPS = "Decide group by group: they differ"
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
#: Notes of a comparison that other sentences of the box say, or that are of the method alone.
_SAID = re.compile(
    r"[\d,]+ of [\d,]+ users? ha(s|ve) no list of |\d+ users?, too few|(primary|secondary) metric: "
    rf"|always valid: |relative |Friedman: |{summaries.CUT}"
)
_MOST_NAMES = 4  # groups of one outcome whose names fit in a sentence


class Outcome(NamedTuple):
    """What a comparison shows: one of eight kinds, and the sentence that says it."""

    kind: str  # a key of _OUTCOMES
    sentence: str


def text_of_page(page: Page) -> str:
    """Write the verdict as lines of text, in three parts."""
    lines: list[str] = []
    for verdict in page.verdicts:
        lines += [verdict.lead, *verdict.text]
    lines += ["What could be wrong:", *(f"- {line}" for line in page.doubts)]
    lines += ["What to do next:", *(f"- {line}" for line in page.steps)]
    return "\n".join([*lines, *page.fine])


# ------------------------------------------------------------------ the outcome


def outcome_of(table: pl.DataFrame, numbers: Numbers, system: object) -> Outcome | None:
    """Choose the first outcome that holds, by all metrics of a comparison; None without a row."""
    rows = [row for name in numbers.names if (row := row_of(table, numbers, system, name))]
    decides = row_of(table, numbers, system, numbers.decides)
    if not decides:
        return None
    names = text_of(system), baseline_of(numbers)
    if all(_is_identical(row, numbers) for row in rows):
        return _identical(rows, names)
    changes = [(_direction(row, numbers), f"{row['metric']} ({_change(row)})") for row in rows]
    better, worse = ([text for way, text in changes if way == word] for word in ("better", "worse"))
    if better and worse:
        claim = f"{names[0]} is better than {names[1]} in {markup.listed_words(better)}"
        claim += f", and worse in {markup.listed_words(worse)}"
        return Outcome("mixed", f"The result is mixed: {claim}.")
    kind = _kind(decides, numbers)
    if kind == "identical":
        return _identical([decides], names)
    if kind == "few":
        return Outcome(kind, _undecided(table, decides, names, numbers))
    if kind == "same":
        low, high = _ends(decides) or ("", "")
        claim = f"{names[0]} and {names[1]} are the same for practical purposes"
        where = f"in {decides['metric']}: the difference is between {low} and {high}."
        return Outcome(kind, f"{claim}{_overall(decides, kind, numbers)} {where}")
    return Outcome(kind, _proved(decides, kind, names, numbers))


def _identical(rows: Sequence[Mapping[str, Any]], names: tuple[str, str]) -> Outcome:
    metrics = rows[0]["metric"] if len(rows) == 1 else f"all {len(rows)} metrics"
    metrics = metrics.replace("all 2", "both")
    users = markup.counted(max(row["users"] for row in rows), "user")
    sentence = f"{names[0]} and {names[1]} are identical in {metrics}, for each of {users}."
    return Outcome("identical", sentence)


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
    if (row["verdict"] or "").startswith("ranks"):
        claim += ", by ranks"
    margin = _margin(numbers, metric)
    if row["verdict"] == "equivalent" or _is_within(row, margin or _NEGLIGIBLE):
        claim += ", but by less than " + (f"the margin ({margin})" if margin else "1%")
    ends = _ends(row)
    parts = [_change_and_size(row)]
    if ends:
        parts.append(f"{_confidence(numbers)} interval {ends[0]} to {ends[1]}")
    if row["verdict"] is None:
        parts.append(f"for each of {markup.counted(row['users'], 'user')} alike (sign test)")
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
    users = markup.counted(row["users"], "user")
    verb = "is" if row["users"] == 1 else "are"
    overall = _overall(row, "few", numbers)
    claim = f"{users} {verb} too few to tell {names[0]} from {names[1]}{overall} in {row['metric']}"
    if row["p_adjusted"] is None:
        why = (row["note"] or "no difference can be tested").partition("; ")[0]
        shown = "" if row["difference"] is None else f" ({_change(row)})"
        if why == trials.ALL_DIFFER_ALIKE:
            claim = claim.replace(f"{users} {verb} too few", "There are too few different changes")
        why = why.replace(trials.ONE_USER, "one has no test")
        return f"{claim}: {why}{shown}."
    ends = _ends(row)
    parts = [f"{claim}: {_change_and_size(row)}"]
    if ends:
        parts[0] += f", {_confidence(numbers)} interval {ends[0]} to {ends[1]}"
    alpha = numbers.trial.alpha
    if row["p_value"] < alpha <= row["p_adjusted"]:
        family = sentences.tests_of(table, numbers.trial.primary)
        parts.append(
            f"p {markup.p_value(row['p_value'])} is not enough among {family} comparisons "
            f"(adjusted: {markup.p_value(row['p_adjusted'])})"
        )
    if row["verdict"] == "not worse":
        parts.append(f"a loss of the margin ({_margin(numbers, row['metric'])}) is excluded")
    (metric,) = [metric for metric in numbers.values.requested if metric.name == row["metric"]]
    if row["detectable"] is not None and row["detectable"] < labels.traits_of(metric).width:
        share = row["baseline_mean"] and row["detectable"] / row["baseline_mean"]
        raw = markup.number(row["detectable"])
        size = f"{markup.percent(share)} ({raw})" if share and share > 0 else raw
        parts.append(f"they show a difference of {size} 8 times in 10")
    return "; ".join(parts) + "."


def _kind(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Return the outcome of one metric."""
    if direction := _direction(row, numbers):
        return direction
    if _is_identical(row, numbers):
        return "identical"
    return "same" if _is_same(row, numbers) else "few"


def _direction(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Return the direction that is proved at the reported level; empty if none is."""
    verdict, alpha = row["verdict"], numbers.trial.alpha
    if verdict in (None, "undecided", "not worse") and not _is_alike(row, numbers):
        return ""
    verdict = verdict or ""
    if verdict == "equivalent" and not (row["difference"] and row["p_adjusted"] < alpha):
        return ""
    rises = row["difference"] > 0
    if verdict.startswith("ranks"):
        rises = verdict == "ranks higher"
    higher_is_better = numbers.directions.get(row["metric"])
    if higher_is_better is None:
        return "higher" if rises else "lower"
    return "better" if rises is higher_is_better else "worse"


def _is_alike(row: Mapping[str, Any], numbers: Numbers) -> bool:
    """Return whether all users differ by one amount, which has no t but more than chance."""
    assert numbers.compared is not None
    alike = row["verdict"] is None and trials.ALL_DIFFER_ALIKE in (row["note"] or "")
    by_chance = 2.0 ** (1 - row["users"]) * len(numbers.compared)
    return alike and bool(row["difference"]) and by_chance < numbers.trial.alpha


def _is_identical(row: Mapping[str, Any], numbers: Numbers) -> bool:
    changed = (row["wins"] or 0) + (row["losses"] or 0)
    same_users = numbers.trial.paired and row["users"] > 0
    return same_users and row["difference"] == 0 and changed == 0


def _is_same(row: Mapping[str, Any], numbers: Numbers) -> bool:
    """Return whether all that matters is excluded: by the margin's test, or 1% by the interval."""
    if row["verdict"] == "equivalent":
        return True
    margin = _margin(numbers, row["metric"])
    if margin is not None and row.get("p_equivalent") is not None:
        return False
    return _is_within(row, margin or _NEGLIGIBLE)


def _is_within(row: Mapping[str, Any], bound: Bound) -> bool:
    """Return whether the whole interval is within a bound."""
    ends = row["ci_low"], row["ci_high"]
    if bound.relative and row["relative_low"] is not None:
        ends = row["relative_low"], row["relative_high"]
    elif bound.relative:
        mean = abs(row["baseline_mean"] or 0)
        if not mean:
            return False
        bound = Bound(bound.size * mean)
    return all(end is not None and abs(end) <= bound.size for end in ends)


def _margin(numbers: Numbers, metric: str) -> Bound | None:
    margin = numbers.trial.margin
    return trials.bound_of(margin.get(metric) if isinstance(margin, Mapping) else margin)


def _change_and_size(row: Mapping[str, Any]) -> str:
    """Write a difference in percent, and on the scale of the metric."""
    raw = markup.signed(row["difference"])
    return _change(row) + ("" if raw == _change(row) or not raw.strip("0.") else f" ({raw})")


def _change(row: Mapping[str, Any]) -> str:
    """Write a difference in percent of the baseline, or without a positive one as it is."""
    if row["relative"] is None or not row["baseline_mean"] > 0:
        return markup.signed(row["difference"])
    return _signed_percent(row["relative"])


def _ends(row: Mapping[str, Any]) -> tuple[str, str] | None:
    """Write both ends of the interval, in percent where the difference is."""
    if row["ci_low"] is None or row["ci_high"] is None:
        return None
    # an end below −100% comes from an uncertain baseline: the absolute interval is shown
    if (row["relative_low"] or -2) >= -1 and row["baseline_mean"] > 0:
        return _signed_percent(row["relative_low"]), _signed_percent(row["relative_high"])
    return markup.signed(row["ci_low"]), markup.signed(row["ci_high"])


def _signed_percent(share: float) -> str:
    text = markup.percent(share)
    return f"+{text}" if share > 0 and text.strip("0.%") else text


def _confidence(numbers: Numbers) -> str:
    return f"{100 * numbers.trial.confidence:.10g}%"


# ------------------------------------------------------------------ the box


def said_of(row: Mapping[str, Any]) -> str:
    """Return the verdict of a row."""
    return row["verdict"] or "no test"


def row_of(table: pl.DataFrame, numbers: Numbers, system: object, metric: str) -> dict[str, Any]:
    by = numbers.call.by
    of_system = pl.col(by) == pl.lit(system, dtype=table.schema[by])
    rows = table.filter(of_system & (pl.col("metric") == metric)).to_dicts()
    return rows[0] if rows else {}


def verdicts(numbers: Numbers) -> list[Verdict]:
    if numbers.compared is None:
        return [_best(numbers)]
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


def _best(numbers: Numbers) -> Verdict:
    """Report which mean is best if nothing is compared."""
    row = row_of(numbers.means, numbers, numbers.systems[0], numbers.decides)
    ends = markup.interval(row["ci_low"], row["ci_high"])
    mean = f"{markup.number(row['mean'])}{f' ({ends})' if ends else ''}"
    name, which = text_of(numbers.systems[0]), _extreme(numbers)
    if len(numbers.systems) == 1:
        lead = f"{name} has a mean {numbers.decides} of {mean}."
        return Verdict("open", lead, ["No comparison: there is only one system."])
    lead = f"{name} has the {which} mean {numbers.decides}, {mean}."
    if which is None:
        lead = f"{len(numbers.systems)} systems, not compared."
    return Verdict("open", lead, ["Nothing is tested."])


def _extreme(numbers: Numbers) -> str | None:
    """Return the better end of the metric, if there is one."""
    direction = numbers.directions.get(numbers.decides)
    return None if direction is None else "highest" if direction else "lowest"


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
        f"{numbers.decides}: {markup.listed_words(words)}."
    )
    if len(numbers.shown) == len(numbers.systems) - 1:
        return Verdict("open", lead)
    which = _extreme(numbers)
    why = f"has the {which} mean of them" if which else "is the first of them by name"
    text = f"{text_of(numbers.chosen)} {why}; the details below are for this system."
    return Verdict("open", lead, [text])


def _verdict(numbers: Numbers, system: object) -> Verdict:
    """Report how a system compares with the baseline."""
    assert numbers.compared is not None
    outcome = outcome_of(numbers.compared, numbers, system)
    assert outcome is not None
    row = row_of(numbers.compared, numbers, system, numbers.decides)
    lines: list[str] = []
    if outcome.kind != "identical":
        lines = [*_for_whom(row, numbers, outcome), *_wins(row, numbers), *_harm(numbers, system)]
    if outcome.kind != "mixed":
        lines += _others(numbers, system)
    lead = outcome.sentence
    if _may_turn(numbers, system, numbers.trial.baseline):
        metric = f" in {numbers.decides}"
        lead = lead.replace(f"{metric}:", f"{metric} by the items that were judged:", 1)
    return Verdict(outcome.kind, lead, lines)


def _groups(numbers: Numbers, row: Mapping[str, Any]) -> dict[str, dict[str, list[dict[str, Any]]]]:
    """Return the rows of each outcome in the groups of users, as the page has them."""
    groups: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for name, table in numbers.groups.items():
        of_system = pl.lit(row[numbers.call.by], dtype=table.schema[numbers.call.by])
        rows = table.filter(pl.col(numbers.call.by) == of_system).to_dicts()
        for of_group in rows if len(rows) > 1 else []:
            groups.setdefault(name, {}).setdefault(_kind(of_group, numbers), []).append(of_group)
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
            parts.append(f"{words} for {markup.listed_words(names)}")
            if len(groups) == 1:
                parts = [_alike(rows, name, words, kind)]
        lines.append(f"For whom, by {name}{where}: {'; '.join(parts)}.")
    return lines


def _alike(rows: Sequence[Mapping[str, Any]], name: str, words: str, kind: str) -> str:
    """Write the one outcome of all groups."""
    changes = markup.listed_words([f"{_change(row)} for {text_of(row[name])}" for row in rows])
    if len(rows) > _MOST_NAMES:
        higher = sum((row["difference"] or 0) > 0 for row in rows)
        changes = f"higher in {higher} of {len(rows)} groups"
    if kind == "few":
        return f"undecided in each group alone ({changes})"
    return f"{words} in each group" + ("" if kind in ("identical", "same") else f": {changes}")


def _in_group(row: Mapping[str, Any], kind: str) -> str:
    users = markup.counted(row["users"], "user")
    tells = kind not in ("identical", "same") and row["difference"] is not None
    return f"{_change(row)}, {users}" if tells else users


def _wins(row: Mapping[str, Any], numbers: Numbers) -> list[str]:
    if row["wins"] is None or row["users"] < 2:
        return []
    higher_is_better = numbers.directions.get(row["metric"])
    up, down = row["wins"], row["losses"]
    words = ("have a higher value", "a lower one")
    if higher_is_better is not None:
        up, down = (up, down) if higher_is_better else (down, up)
        words = ("do better", "worse")
    users, same = row["users"], row["ties"]
    more, less = (f" ({markup.percent(count / users)})" for count in (up, down))
    changes = numbers.changes.get(row[numbers.call.by])
    zero = round(changes.zero * users) if changes else 0
    both = f" ({zero:,} have 0 with both)" if zero > same / 2 else ""
    of_users = f"{up:,} of {markup.counted(users, 'user')} {words[0]}{more}"
    rest = f"{down:,} {words[1]}{less}, and {same:,} the same{both}"
    return [f"In {row['metric']}, {of_users}, {rest}."]


def _harm(numbers: Numbers, system: object) -> list[str]:
    """Write how many users gain and lose much, and how much the worst of them lose."""
    row = {} if numbers.harm is None else row_of(numbers.harm, numbers, system, numbers.decides)
    if not row or not row["users"]:
        return []
    much = f" more than {row['more_than']:.4g}" if row["more_than"] else ""
    lost = [markup.percent(row[name]) for name in ("share", "share_low", "share_high")]
    won = [*map(markup.percent, numbers.changes[system].gained)]
    line = f"{won[0]} of users ({won[1]} to {won[2]}) gain{much}"
    line += f", and {lost[0]} ({lost[1]} to {lost[2]}) lose{much}"
    if row["worst_mean"] and row["share"]:
        ends = markup.interval(row["worst_low"], row["worst_high"], sign=True)
        line += f"; the worst 5% of differences average {markup.signed(row['worst_mean'])}"
        line += f" ({ends})" if ends else ""
    return [f"{line}."]


def _others(numbers: Numbers, system: object) -> list[str]:
    """List the verdicts in the other metrics."""
    assert numbers.compared is not None
    metrics: dict[str, list[str]] = {}
    primary = numbers.trial.primary
    gate = primary and row_of(numbers.compared, numbers, system, primary)
    is_open = not gate or bool(_direction(gate, numbers))
    for metric in numbers.names:
        row = row_of(numbers.compared, numbers, system, metric)
        if metric != numbers.decides and row and not _is_identical(row, numbers):
            direction = _direction(row, numbers)
            change = f" ({_change(row)})" if direction or not is_open else ""
            metrics.setdefault(direction or said_of(row), []).append(metric + change)
    if not is_open and metrics:
        names = [name for names in metrics.values() for name in names]
        text = f"Other metrics, which count only if {primary} shows a difference"
        return [f"{text}: {markup.listed_words(names)}."]
    words = [f"{said} in {markup.listed_words(names)}" for said, names in metrics.items()]
    return [f"Other metrics: {'; '.join(words)}."] if words else []


def fine_print(numbers: Numbers) -> list[str]:
    """Write how p is computed, and for how many comparisons it is adjusted; intervals are not."""
    if numbers.compared is None or sentences.untested(numbers.compared):
        return []
    trial, primary = numbers.trial, numbers.trial.primary
    family = sentences.tests_of(numbers.compared, primary)
    how = sentences.test_in_words(trial)
    how = how[0].upper() + how[1:]
    if len(numbers.systems) == _PAIR:
        row = row_of(numbers.compared, numbers, numbers.chosen, numbers.decides)
        if row["p_adjusted"] is not None:
            how = f"{how}, p {markup.p_value(row['p_adjusted'])}".replace("p <", "p < ")
    if primary is not None and (family < 2 or trial.correction is None):
        others = len(numbers.names) > 1
        rest = f"; the other metrics count only if {primary} shows a difference" if others else ""
        return [f"{how}: {primary} is the primary metric, and tested alone{rest}."]
    if trial.correction is None or family < 2:
        return [f"{how}." if family < 2 else f"{how}; p is not adjusted for {family} comparisons."]
    if trial.test in trials.JOINT_TESTS:
        alone = "" if trial.test in trials.SIMULTANEOUS else "; intervals are not"
        return [f"{how}; p is adjusted over {sentences.family_of(trial)}{alone}."]
    of_primary = "" if primary is None else f" in {primary}, the primary metric"
    name = sentences.CORRECTIONS[trial.correction]
    return [
        f"{how}; p is adjusted for {family} comparisons{of_primary} ({name}); the interval is not."
    ]


def about_percent(numbers: Numbers) -> list[str]:
    """Write why an interval in percent is not the other one, divided by the baseline's mean."""
    if numbers.compared is None:
        return []
    rows = [row_of(numbers.compared, numbers, name, numbers.decides) for name in numbers.shown]
    if not any((ends := _ends(row)) and ends[0].endswith("%") for row in rows):
        return []
    return ["The interval in percent also allows for the error of the baseline's mean."]


# ------------------------------------------------------------------ what could be wrong


def doubts(numbers: Numbers) -> list[str]:
    """Report what may mislead, the worst first."""
    return [
        *_served(numbers),
        *_unjudged(numbers),
        *_missed(numbers),
        *_ties(numbers),
        *_few_users(numbers),
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
        served = outcome_of(numbers.served, numbers, system)
        if whole is None or served is None or whole.kind == served.kind:
            continue
        sentence = served.sentence.replace(" overall ", " ", 1)  # its groups are not compared
        lines.append(f"The answer changes among the users with a list from both: {sentence}")
    return lines


def _unjudged(numbers: Numbers) -> list[str]:
    """Write how many of the first items nobody judged, where the systems differ in it."""
    if not numbers.unjudged:
        return []
    k, decides = numbers.call.k, numbers.decides
    means = {n: row_of(numbers.means, numbers, n, decides)["mean"] for n in numbers.unjudged}
    least = min(numbers.unjudged, key=lambda name: numbers.unjudged[name].share)
    low, raised = numbers.unjudged[least]
    lines: list[str] = []
    for name, (share, value) in numbers.unjudged.items():
        if share == low or value is None or raised is None:
            continue
        both = ((name, value), (least, raised))
        would = " and ".join(
            f"{markup.number(new)} for {text_of(n)} (not {markup.number(means[n])})"
            for n, new in both
        )
        lines.append(
            f"{markup.percent(share)} of the first {k} items of {text_of(name)} were never judged "
            f"({text_of(least)}: {markup.percent(low)}); each counts as not relevant. With the "
            f"smallest relevant grade for each, {decides} would be {would}"
            f"{': the reverse order' if _may_turn(numbers, name, least) else ''}."
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
        f"{markup.percent(share)} of the lists of {text_of(name)} have ties among the first "
        f"{numbers.call.k}: which items come first is arbitrary."
        for name, share in [*shares.items()][:3]
    ]


def _few_users(numbers: Numbers) -> list[str]:
    if numbers.users >= _FEW_USERS:
        return []
    return [f"Only {markup.counted(numbers.users, 'user')}: intervals and tests are rough."]


def _noted(numbers: Numbers) -> list[str]:
    """Write the notes of the comparisons that decide, such as left-out users."""
    if numbers.compared is None:
        return []
    by, decides = numbers.call.by, pl.col("metric") == numbers.decides
    table = numbers.compared.filter(decides & pl.col(by).is_in(numbers.shown))
    table = table.filter(pl.col("p_value").is_not_null())
    notes = [
        "; ".join(part for part in (note or "").split("; ") if not _SAID.match(part)) or None
        for note in table["note"]
    ]
    table = table.with_columns(note=pl.Series(notes, dtype=pl.String))
    if len(numbers.shown) > 1:
        return [f"{line}." for line in results.lines_of_notes(table, [by])]
    return [f"{note}." for note in table["note"].drop_nulls()]


def _undefined(numbers: Numbers) -> list[str]:
    undefined = numbers.means.filter(
        pl.col("undefined") >= facts.MATTERS * pl.col("users"), pl.col("undefined") > 0
    )
    most = undefined.group_by("metric", maintain_order=True).agg(pl.col("undefined").max())
    return [
        f"{name} is undefined for up to {markup.counted(count, 'user')} per system; its mean "
        "leaves them out."
        for name, count in most.rows()
    ]


# ------------------------------------------------------------------ what to do next


def steps(numbers: Numbers) -> list[str]:
    """Write what follows from the outcome."""
    if numbers.compared is None:
        if len(numbers.systems) == 1:
            return ["Compare it with another system: name that one in baseline=."]
        return ["Name a system in baseline= to test the others against it."]
    lines: dict[str, list[str]] = {}
    first = ["Judge the unjudged items, or leave them out (judged_only=True)."]
    for system in numbers.shown:
        outcome = outcome_of(numbers.compared, numbers, system)
        assert outcome is not None
        row = row_of(numbers.compared, numbers, system, numbers.decides)
        step = _NEXT.get(outcome.kind) or _more_users(numbers, row)
        if outcome.kind == "mixed" and numbers.trial.primary is not None:
            step = _WEIGH
        if outcome.kind in ("same", "few") and " overall " in outcome.sentence:
            step = _LOOK_AT_GROUPS
        if outcome.kind == "better" and row["wins"] is not None:
            lost = row["losses"] if numbers.directions[row["metric"]] else row["wins"]
            step = step if lost else _NO_LOSS
        if outcome.kind == "identical" and f" in {row['metric']}," in outcome.sentence:
            step = _OTHER_METRIC if len(numbers.names) > 1 else step
        lines.setdefault(step, []).append(text_of(system))
    several = len(lines) > 1
    ends = [f" ({markup.listed_words(names)})." if several else "." for names in lines.values()]
    return first * bool(numbers.unjudged) + [*map("".join, zip(lines, ends, strict=True))]


def _more_users(numbers: Numbers, row: Mapping[str, Any]) -> str:
    """Write how many users a difference of the observed size needs."""
    needed = _needed(numbers, row)
    if needed is None:
        return "Compare on more users"
    if needed > _MOST_NEEDED:
        return (
            "Give margin=, the difference that matters: one of this size needs more than "
            f"{_MOST_NEEDED:,} users"
        )
    size = 10 ** max(0, len(str(needed)) - 2)
    return (
        f"Compare on more users: a difference of this size ({_change(row)}) needs about "
        f"{-(-needed // size) * size:,}"
    )


def _needed(numbers: Numbers, row: Mapping[str, Any]) -> int | None:
    """Compute the number of users as ``power`` does, for one of the comparisons adjusted."""
    if not row["detectable"] or row["users"] < 2 or not row["difference"]:
        return None
    from rankframe._comparison import power_statistics
    from rankframe._comparison.power_statistics import Design

    assert numbers.compared is not None
    family = 1
    if numbers.trial.correction is not None:
        family = sentences.tests_of(numbers.compared, numbers.trial.primary)
    level = power_statistics.of_family(numbers.trial.confidence, max(1, family))
    design = Design(level, trials.POWER)
    users = row["users"]
    deviation = row["detectable"] * users**0.5 / power_statistics.least_distance(users, design)
    needed = power_statistics.needed_users(abs(row["difference"]), deviation, design)
    return _MOST_NEEDED + 1 if needed is None else needed


# ------------------------------------------------------------------ names


def tested(numbers: Numbers) -> str:
    assert numbers.compared is not None
    return sentences.tested_in_words(numbers.trial, numbers.compared)


def system_names(numbers: Numbers) -> str:
    names = [text_of(name) for name in numbers.systems]
    return markup.listed_words(names) if len(names) <= 3 else f"{len(names)} systems"


def baseline_of(numbers: Numbers) -> str:
    return text_of(numbers.trial.baseline)


def text_of(value: object) -> str:
    return "none" if value is None else column_roles.in_words(value)
