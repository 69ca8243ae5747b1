"""Writes sentences: frames of results in, text for tables, charts, report and command line out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import isnan
from typing import TYPE_CHECKING, Any

import polars as pl

from rankframe._comparison import notes, trials
from rankframe._comparison.notes import USERS, Note, Nouns
from rankframe._comparison.trials import Correction, Test, Trial
from rankframe._evaluation import user_columns
from rankframe._request import keywords
from rankframe._tables import column_roles

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Sample

#: What tests and corrections are called in a sentence.
TESTS: Mapping[Test, str] = {
    "t": "paired t test",
    "randomization": "paired randomization test",
    "sequential": "sequential test",
    "max_t": "max-t test of flipped signs",
}
CORRECTIONS: Mapping[Correction, str] = {
    "holm": "Holm's correction",
    "bh": "Benjamini and Hochberg's correction",
}


def correction_in_words(trial: Trial, compared: pl.DataFrame) -> str:
    """Name a correction, and for how many comparisons it is, apart from the primary metric."""
    correction, primary = trial.correction, trial.primary
    tests, family = compared["p_value"].count(), tests_of(compared, primary)
    decides = "" if primary is None else f", primary metric {primary}"
    if trial.test == "max_t":
        return f"corrected over {family_of(trial)}{decides}"
    if correction is None:
        return "without correction" + (f" for {tests} comparisons" if tests > 1 else "") + decides
    after = f"after {CORRECTIONS[correction]}"
    words = f"{after} for {family} comparisons" if family > 1 else "without correction"
    if primary is None:
        return words
    others = f"{after} " if family == 1 else ""
    rest = f", and {others}for {tests - family} in the others" if tests > family else ""
    return f"{words} in {primary}, the primary metric{rest}"


def family_of(trial: Trial) -> str:
    """Name the pairs over which a test of all systems at once is corrected."""
    own = (trial.baseline, trial.needed_by) != (None, None)
    return "all pairs with the baseline" if own else "all pairs"


def tests_of(compared: pl.DataFrame, primary: str | None) -> int:
    """Count the tests whose p is corrected together: those of the primary metric, or all."""
    family = pl.col("metric") == primary if primary is not None else pl.lit(value=True)
    return compared.filter(family)["p_value"].count()


def tested_in_words(trial: Trial, compared: pl.DataFrame, nouns: Nouns) -> str:
    """Name the test and the correction of a comparison, or why nothing is tested."""
    if why := untested(compared, nouns):
        return f"not tested: {why}"
    return f"{test_in_words(trial, compared, nouns)}, p {correction_in_words(trial, compared)}"


def test_in_words(trial: Trial, compared: pl.DataFrame, nouns: Nouns) -> str:
    """Name the test of a comparison, and the exact one that was run in its place."""
    if not trial.paired:
        return "Welch's t test"
    if trial.over is not None:
        return nouns.write("t test over {users} and training runs")
    tested = compared.filter(pl.col("p_value").is_not_null())["note"]
    exact = [not notes.kinds(note).isdisjoint(trials.EXACT) for note in tested]
    if all(exact):
        return "exact randomization test"
    where = f", exact where fewer than 20 {nouns.words['users']} differ" * any(exact)
    return f"{TESTS[trial.test]}{where}"


def untested(compared: pl.DataFrame, nouns: Nouns = USERS) -> str:
    """Return why no difference is tested; empty if one is."""
    if compared["p_value"].count():
        return ""
    if (compared["users"].max() or 0) == 0:
        return nouns.write("no {user} in common")
    why = notes.text(map(notes.note, common_reasons(compared)), nouns)
    return why or "no difference can be tested"


def common_reasons(compared: pl.DataFrame) -> list[str]:
    """Return why nothing is tested, if it is the same in all rows: the kind of a note."""
    kinds = [notes.kinds(note) for note in compared["note"].unique()]
    return [why for why in trials.UNTESTED if all(why in of_row for of_row in kinds)]


def users(numbers: pl.Series) -> str:
    return f"{span(numbers)} user" + ("" if numbers.max() == 1 else "s")


def span(numbers: pl.Series) -> str:
    """Write a number, or the least and the greatest."""
    least, most = (f"{value:.4g}" if value % 1 else f"{value:,.0f}" for value in ends(numbers))
    return most if least == most else f"{least} to {most}"


def ends(numbers: pl.Series) -> tuple[float, float]:
    values: list[float] = numbers.drop_nulls().to_list()
    return min(values, default=0), max(values, default=0)


#: With fewer clusters, intervals are too short.
FEW_CLUSTERS = 10
#: Below this share of their number, the effective number of clusters is noted.
_AS_GOOD = 0.9


def notes_of_clusters(sample: Sample, merged: Sample) -> list[Note]:
    """Write into how many clusters users were merged, and why there is no interval."""
    values = merged.values
    if len(values) < 2:
        return [notes.note("one_cluster")] if len(sample.values) > 1 else []
    kind, effective = "few_clusters" if len(values) < FEW_CLUSTERS else "clusters", None
    if merged.weights is not None:
        effective = merged.weights.sum() ** 2 / (merged.weights**2).sum()
        effective = effective if effective < _AS_GOOD * len(values) else None
    said = [notes.note(kind, number=len(values), effective=effective)]
    if sample.values.min() < sample.values.max() and not values.min() < values.max():
        said.append(notes.note("clusters_alike"))
    return said


def note_of_judge(number: int, correction: float, what: str) -> Note:
    """Note by how much a judge is wrong, and how many users with human labels tell it."""
    if not number:
        return notes.note(trials.NO_VALUE, whose=notes.OF_HUMAN)
    if isnan(correction):
        return notes.note("no_judge", what=what, number=number)
    if abs(correction) <= trials.NOTHING:
        return notes.note("judge_is_right", number=number)
    word = "high" if correction > 0 else "low"
    return notes.note("judge", what=what, word=word, size=abs(correction), number=number)


def system_and_segment(table: pl.DataFrame, groups: Sequence[str]) -> list[pl.Expr]:
    """Rename the first column of ``by`` to system, and combine the others in segment."""
    return [text_of(table, groups[:1]).alias("system"), text_of(table, groups[1:]).alias("segment")]


def text_of(table: pl.DataFrame, groups: Sequence[str]) -> pl.Expr:
    columns = [_text_of(table, name) for name in groups]
    return pl.concat_str(columns, separator=" · ") if columns else pl.lit("")


def _text_of(table: pl.DataFrame, name: str) -> pl.Expr:
    """Write a column as text, with control characters escaped: Vega and browsers fail at some."""
    if table.schema[name] == pl.Duration:
        return pl.col(name).dt.to_string("polars")
    texts = table[name].unique().cast(pl.String).drop_nulls()
    hidden = ["", *filter(column_roles.HIDDEN.search, texts)]
    return pl.col(name).cast(pl.String).replace({x: column_roles.in_words(x) for x in hidden})


def one_line(text: object) -> str:
    """Write a name in one line: Vega cannot parse a title with a line break."""
    return isolated(" ".join(column_roles.in_words(text).split()))


_FROM_RIGHT = "[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]"


def isolated(name: str) -> str:
    """Enclose a name from right to left, which would move the numbers beside it."""
    return f"\u2068{name}\u2069" if re.search(_FROM_RIGHT, name) else name


def isolated_names(names: pl.Expr) -> pl.Expr:
    """Enclose names from right to left in a column."""
    enclosed = pl.format("\u2068{}\u2069", names)
    return pl.when(names.str.contains(_FROM_RIGHT)).then(enclosed).otherwise(names)


def missed_lines(
    table: pl.DataFrame, by: Sequence[str] = (keywords.MODEL,), nouns: Nouns = USERS
) -> list[str]:
    """List systems that have no list for many users: those with the most, at most three.

    The groups of any other column of ``by``, such as days, are groups of users.
    """
    share = pl.col("num_missed") / pl.nth(2)
    most = table.filter(pl.col("num_missed") > 0).sort(share, descending=True, maintain_order=True)
    most = most.unique(["system", "segment"], keep="first", maintain_order=True)
    column = next((name for name in by[:1] if name != keywords.MODEL), None)
    lines = [
        " ".join((notes.text([note], nouns) or "").split())
        for system, segment, users, missed in most.iter_rows()
        for note in notes_of_missed(
            missed, users, " · ".join(filter(None, (system, segment))) or None, column
        )
    ]
    if (rest := len(lines) - 3) <= 0:
        return lines
    what = "system" if most["segment"].replace("", None).is_null().all() else "system or segment"
    return [*lines[:3], f"and {rest} more {what}{'s' * (rest != 1)}"]


def missed_counts(values: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Count the users without a list in each group."""
    of_groups = values.select(
        *system_and_segment(values, groups), values.columns[len(groups)], user_columns.MISSED
    )
    counts = pl.col(of_groups.columns[2]).count().alias("users"), user_columns.number_missed()
    return of_groups.group_by("system", "segment", maintain_order=True).agg(counts)


def notes_of_lists(
    missed: Sequence[int],
    users: int,
    systems: Sequence[object],
    *,
    least: float = notes.WORTH_A_NOTE,
) -> list[Note]:
    """Write how many users have no list of each of several systems."""
    return [
        note
        for number, system in zip(missed, systems, strict=True)
        for note in notes_of_missed(number, users, system, least=least)
    ]


def name_in_note(name: object) -> str:
    """Write a name that moves no text."""
    return isolated(column_roles.in_words(name))


def missed_by_baseline(row: Mapping[str, Any]) -> str:
    """Say of a row of a comparison that the baseline misses users whom the system answers."""
    shares = [
        (row.get(f"{of}num_missed") or 0) / (row.get(f"{of}users") or 1) for of in ("baseline_", "")
    ]
    if shares[0] <= shares[1]:
        return ""
    missed, number = row["baseline_num_missed"], row["baseline_users"]
    said = notes.note("no_list", missed=missed, number=number, system=name_in_note(row["baseline"]))
    return f"; {notes.text([said])}, which counts as its loss"


def notes_of_missed(
    missed: int,
    users: int,
    system: object = None,
    column: str | None = None,
    *,
    least: float = notes.WORTH_A_NOTE,
) -> list[Note]:
    """Note how many users have no list of ``system``, or of those of a ``column``, if many."""
    if not missed or missed < least * users:
        return []
    name = None if system is None else name_in_note(system)
    if name is not None and column is not None:
        of = f"{name_in_note(column)} {name}"
        return [notes.note("no_list_in", missed=missed, number=users, group=of)]
    return [notes.note("no_list", missed=missed, number=users, system=name)]
