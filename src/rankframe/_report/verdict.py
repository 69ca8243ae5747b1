"""The box of the report: the verdict in words, and what could be wrong with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl

from rankframe._comparison import sentences, trials
from rankframe._report import facts, markup
from rankframe._report.facts import Numbers
from rankframe._report.markup import Figure, Page, Verdict
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
_NO_CHANGE = ("no difference seen", "unchanged")  # readings that claim nothing
MANY = 6  # systems that fit beside each other
#: Counts that are wrong if above 0, and counts that may do harm if they are large.
WRONG = ("null_", "invalid_", "nonfinite_", "duplicates", "shared_ranks", "user_ids", "item_ids")
MAY_HARM = (
    *("missed_users", "groups_without", "short_lists", "gaps", "ties_at_the_cut"),
    "users_unknown",
)


def verdict_of(page: Page) -> str:
    """Write the verdicts as lines of text."""
    lines = [
        line
        for verdict in page.verdicts
        for line in (verdict.lead, verdict.served, *verdict.text)
        if line
    ]
    return "\n".join(lines)


# ------------------------------------------------------------------ the verdict


def said_of(row: Mapping[str, Any]) -> str:
    """Return the verdict of a row."""
    return row["verdict"] or "no test"


def row_of(table: pl.DataFrame, numbers: Numbers, system: object, metric: str) -> dict[str, Any]:
    by = numbers.call.by
    of_system = pl.col(by) == pl.lit(system, dtype=table.schema[by])
    rows = table.filter(of_system & (pl.col("metric") == metric)).to_dicts()
    return rows[0] if rows else {}


def verdicts(numbers: Numbers) -> list[Verdict]:
    if not numbers.pairs:
        return [_best(numbers)]
    summary = [_summary(numbers)] if _several(numbers) else []
    return summary + [_verdict(numbers, system) for system in numbers.shown]


def _several(numbers: Numbers) -> bool:
    return len(numbers.systems) > _PAIR


def _best(numbers: Numbers) -> Verdict:
    """Report which mean is best if nothing is compared."""
    name, metric = numbers.systems[0], numbers.decides
    row = row_of(numbers.means, numbers, name, metric)
    ends = markup.interval(row["ci_low"], row["ci_high"])
    mean = f"{markup.number(row['mean'])}{f' ({ends})' if ends else ''}"
    if len(numbers.systems) == 1:
        alone = "No comparison: there is only one system."
        return Verdict("open", f"{text_of(name)} has a mean {metric} of {mean}.", [alone])
    which = _extreme(numbers)
    lead = f"{text_of(name)} has the {which} mean {metric}, {mean}."
    if which is None:
        lead = f"{len(numbers.systems)} systems, not compared."
    return Verdict("open", lead, ["No test: name a system in baseline= to compare the others."])


def _summary(numbers: Numbers) -> Verdict:
    """Count the verdicts of many systems."""
    assert numbers.compared is not None
    rows = numbers.compared.filter(pl.col("metric") == numbers.decides).to_dicts()
    counts: dict[str, int] = {}
    for row in rows:
        counts[said_of(row)] = counts.get(said_of(row), 0) + 1
    order = (
        "better",
        "higher",
        "ranks higher",
        "not worse",
        "equivalent",
        "undecided",
        "worse",
        "lower",
        "ranks lower",
        "no test",
    )
    words = [f"{counts[verdict]} {verdict}" for verdict in order if verdict in counts]
    lead = (
        f"Of {len(rows)} systems against {baseline_of(numbers)} in {numbers.decides}: "
        f"{markup.listed_words(words)}."
    )
    corrected = [f"{why}." for why in [_corrected(numbers)] if why]
    if len(numbers.shown) == len(numbers.systems) - 1:
        return Verdict("open", lead, corrected)
    which = _extreme(numbers)
    why = f"has the {which} mean of them" if which else "is the first of them by name"
    text = f"{text_of(numbers.chosen)} {why}; the details below are for this system."
    return Verdict("open", lead, [text, *corrected])


def _corrected(numbers: Numbers) -> str:
    """Write for how many comparisons the p of the verdict is corrected; intervals are not."""
    assert numbers.compared is not None
    trial, primary = numbers.trial, numbers.trial.primary
    family = sentences.tests_of(numbers.compared, primary)
    tests = numbers.compared["p_value"].count()
    if tests < 2 or not family:
        return ""
    if trial.correction is None:
        return f"p is without correction for {tests} comparisons"
    if family < 2:
        return (
            f"{primary} is the primary metric: its p is not corrected for the others, which "
            "count only where it shows a difference"
        )
    alone = "the interval is of this comparison alone"
    if _several(numbers):
        alone = "each interval is of its comparison alone"
    if trial.test in trials.JOINT_TESTS:
        alone = "" if trial.test in trials.SIMULTANEOUS else f"; {alone}"
        return f"p is corrected over {sentences.family_of(trial)}{alone}"
    of_primary = "" if primary is None else f" in {primary}, the primary metric"
    words = f"{sentences.CORRECTIONS[trial.correction]} for {family} comparisons{of_primary}"
    return f"p is after {words}; {alone}"


def _is_corrected(numbers: Numbers) -> bool:
    assert numbers.compared is not None
    family = sentences.tests_of(numbers.compared, numbers.trial.primary)
    return numbers.trial.correction is not None and family > 1


def _extreme(numbers: Numbers) -> str | None:
    """Return the better end of the metric, if there is one."""
    direction = numbers.directions.get(numbers.decides)
    return None if direction is None else "highest" if direction else "lowest"


def _verdict(numbers: Numbers, system: object) -> Verdict:
    """Report how a system compares with the baseline, also on the users whom both serve."""
    assert numbers.compared is not None
    row = row_of(numbers.compared, numbers, system, numbers.decides)
    said = said_of(row)
    kind = said if said in ("better", "worse") else "open"
    parts = [f"{_claim(row, numbers)}: {_difference(row, numbers, share=True)}."]
    served, turned = _served(numbers, system, said)
    corrected = "" if _several(numbers) else _corrected(numbers)
    lines = [f"{line}." for line in [corrected] if line]
    lines += [
        *_wins(row),
        *_harm(numbers, system),
        *_other_verdicts(numbers, system),
        *_by_relevant(numbers, system, said),
    ]
    if served and not turned:
        lines = [served, *lines]
    return Verdict(kind, " ".join(parts), lines, served if turned else "")


def _claim(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Write the verdict as a sentence, without its numbers."""
    system, baseline = text_of(row[numbers.call.by]), text_of(row["baseline"])
    metric = row["metric"]
    return {
        "better": f"{system} is better than {baseline} in {metric}",
        "worse": f"{system} is worse than {baseline} in {metric}",
        "higher": f"{system} has a higher {metric} than {baseline}",
        "lower": f"{system} has a lower {metric} than {baseline}",
        "ranks higher": f"{system} ranks higher than {baseline} in {metric}",
        "ranks lower": f"{system} ranks lower than {baseline} in {metric}",
        "equivalent": f"{system} is equivalent to {baseline} in {metric}, within the margin",
        "not worse": f"{system} is not worse than {baseline} in {metric} by the margin",
        "undecided": f"No difference between {system} and {baseline} is shown in {metric}",
        "no test": f"{system} and {baseline} are not tested in {metric}",
    }[said_of(row)]


def _difference(row: Mapping[str, Any], numbers: Numbers, *, share: bool = False) -> str:
    of_base = of_ends = ""
    if share and row["relative"] is not None and row["baseline_mean"] > 0:
        of_base = f" ({_signed_percent(row['relative'])})"
        if row["relative_low"] is not None:
            ends_of_base = map(_signed_percent, (row["relative_low"], row["relative_high"]))
            of_ends = f" ({' to '.join(ends_of_base)})"
    parts = [f"{markup.signed(row['difference'])}{of_base}"]
    if ends := markup.interval(row["ci_low"], row["ci_high"], sign=True):
        parts.append(f"{100 * numbers.trial.confidence:.10g}% interval {ends}{of_ends}")
    if row["p_adjusted"] is not None:
        p = "corrected p" if _is_corrected(numbers) else "p"
        overruled = row["p_value"] < 1 - numbers.trial.confidence <= row["p_adjusted"]
        alone = f" ({markup.p_value(row['p_value'])} without correction)" if overruled else ""
        parts.append(f"{p} {markup.p_value(row['p_adjusted'])}{alone}".replace("p <", "p < "))
    elif row["note"]:
        parts.append(row["note"].partition("; primary metric: ")[0])
    return ", ".join(parts)


def _signed_percent(share: float) -> str:
    return f"{'+' if share > 0 else ''}{markup.percent(share)}"


def _wins(row: Mapping[str, Any]) -> list[str]:
    if row["wins"] is None:
        return []
    return [
        (
            f"Of {markup.counted(row['users'], 'user')}, its value is higher for {row['wins']:,}, "
            f"lower for {row['losses']:,} and equal for {row['ties']:,}."
        )
    ]


def _harm(numbers: Numbers, system: object) -> list[str]:
    """Write how many users lose much, and how much the worst of them lose."""
    row = {} if numbers.harm is None else row_of(numbers.harm, numbers, system, numbers.decides)
    if not row or not row["users"]:
        return []
    much = f" more than {row['more_than']:.4g}" if row["more_than"] else ""
    ends = f"{markup.percent(row['share_low'])} to {markup.percent(row['share_high'])}"
    line = f"{markup.percent(row['share'])} of users ({ends}) lose{much}"
    if row["worst_mean"] is not None:
        worst = markup.interval(row["worst_low"], row["worst_high"], sign=True)
        line += (
            f"; the worst 5% of differences have the mean {markup.signed(row['worst_mean'])}"
            f"{f' ({worst})' if worst else ''}"
        )
    return [f"{line}."]


def _served(numbers: Numbers, system: object, said: str) -> tuple[str, bool]:
    """Compare on the users whom both serve, and return whether this changes the verdict."""
    if numbers.served is None or numbers.compared is None:
        return "", False
    row = row_of(numbers.served, numbers, system, numbers.decides)
    whole = row_of(numbers.compared, numbers, system, numbers.decides)
    if not row or row["users"] == whole["users"]:
        return "", False
    verdict = said_of(row)
    turned = verdict != said
    few = row["users"] > (1 - facts.MATTERS) * whole["users"]
    if few and not turned:
        return "", False
    also = "" if turned else "also "
    word = {
        "undecided": "no difference is shown",
        "no test": "there is no test",
        "equivalent": f"it is {also}equivalent",
        "not worse": f"it is {also}not worse by the margin",
    }.get(verdict, f"it is {also}{verdict}")
    users = markup.counted(row["users"], "user")
    return f"On the {users} whom both serve, {word}: {_difference(row, numbers)}.", turned


def _other_verdicts(numbers: Numbers, system: object) -> list[str]:
    """List the verdicts in the other metrics."""
    assert numbers.compared is not None
    metrics_by_verdict: dict[str, list[str]] = {}
    for metric in numbers.names:
        row = row_of(numbers.compared, numbers, system, metric)
        if metric != numbers.decides and row:
            metrics_by_verdict.setdefault(said_of(row), []).append(metric)
    if not metrics_by_verdict:
        return []
    words = [
        f"{verdict} in {markup.listed_words(metrics)}"
        for verdict, metrics in metrics_by_verdict.items()
    ]
    return [f"By the other metrics: {'; '.join(words)}."]


def _by_relevant(numbers: Numbers, system: object, said: str) -> list[str]:
    """Report the reading of ``diagnose``, whose tests are corrected over two changes only."""
    if numbers.diagnosis is None:
        return []
    by = numbers.call.by
    of_system = pl.col(by) == pl.lit(system, dtype=numbers.diagnosis.schema[by])
    overall = numbers.diagnosis.filter(of_system & pl.col("relevant_low").is_null())
    reading = next(iter(overall["reading"].to_list()[::-1]), None)
    k = numbers.call.k
    if not reading:
        return []
    alone = ""
    if said == "undecided" and _is_corrected(numbers) and not reading.startswith(_NO_CHANGE):
        alone = ", by tests that are not corrected for the comparisons above"
    return [f"By precision@{k} and recall@{k} together{alone}: {reading}."]


# ------------------------------------------------------------------ warnings


def warnings(numbers: Numbers) -> list[str]:
    """Report what may mislead: users without a list, few users, undefined values."""
    lines: list[str] = []
    users = numbers.users
    lacking = [
        (name, numbers.missed.get(name, 0))
        for name in numbers.systems
        if users and numbers.missed.get(name, 0) >= facts.MATTERS * users
    ]
    zero = ""
    if (numbers.call.settings.users or "truth") in ("truth", "judged"):
        zero = " Each counts as 0 in the means."
    for name, missed in lacking[:4]:
        lines.append(
            f"{text_of(name)} has no list for {missed:,} of {markup.counted(users, 'user')} "
            f"({markup.percent(missed / users)}).{zero}"
        )
    if len(lacking) > 4:
        rest = markup.counted(len(lacking) - 4, "more system")
        lines.append(f"{rest} without a list for at least 5% of the users: see Data health.")
    if users < _FEW_USERS:
        lines.append(f"Only {markup.counted(users, 'user')}: intervals and tests are rough.")
    undefined = numbers.means.filter(
        pl.col("undefined") >= facts.MATTERS * pl.col("users"), pl.col("undefined") > 0
    )
    most = undefined.group_by("metric", maintain_order=True).agg(pl.col("undefined").max())
    for name, number_of_users in most.rows():
        users_left = markup.counted(number_of_users, "user")
        lines.append(
            f"{name} is undefined for up to {users_left} per system; its mean leaves them out."
        )
    return lines


def tested(numbers: Numbers) -> str:
    assert numbers.compared is not None
    return sentences.tested_in_words(numbers.trial, numbers.compared)


def figures(charts: Sequence[str], name: str, alt: str) -> list[Figure]:
    return [Figure(name, alt)] if name in charts else []


def system_names(numbers: Numbers) -> str:
    names = [text_of(name) for name in numbers.systems]
    return markup.listed_words(names) if len(names) <= 3 else f"{len(names)} systems"


def baseline_of(numbers: Numbers) -> str:
    return text_of(numbers.trial.baseline)


def text_of(value: object) -> str:
    return "none" if value is None else column_roles.in_words(value)
