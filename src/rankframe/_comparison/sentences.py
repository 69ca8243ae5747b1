"""Writes sentences: frames of results in, text for tables, charts, report and command line out."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import polars as pl

from rankframe._comparison import trials
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


def tested_in_words(trial: Trial, compared: pl.DataFrame) -> str:
    """Name the test and the correction of a comparison, or why nothing is tested."""
    if why := untested(compared):
        return f"not tested: {why}"
    return f"{test_in_words(trial, compared)}, p {correction_in_words(trial, compared)}"


def test_in_words(trial: Trial, compared: pl.DataFrame) -> str:
    """Name the test of a comparison, and the exact one that was run in its place."""
    if not trial.paired:
        return "Welch's t test"
    noted = pl.col("note").str.contains(trials.EXACT, literal=True).fill_null(value=False)
    exact = compared.filter(pl.col("p_value").is_not_null()).select(noted)["note"]
    if exact.all():
        return "exact randomization test"
    return f"{TESTS[trial.test]}{', exact where fewer than 20 users differ' * exact.any()}"


def untested(compared: pl.DataFrame) -> str:
    """Return why no difference is tested; empty if one is."""
    if compared["p_value"].count():
        return ""
    if (compared["users"].max() or 0) == 0:
        return "no user in common"
    notes = compared["note"].fill_null("").unique(maintain_order=True).to_list()
    reasons = (trials.NOBODY_DIFFERS, trials.ALL_DIFFER_ALIKE, trials.ONE_USER)
    common = (why for why in reasons if all(why in note for note in notes))
    return next(common, "no difference can be tested")


def users(numbers: pl.Series) -> str:
    return f"{span(numbers)} user" + ("" if numbers.max() == 1 else "s")


def span(numbers: pl.Series) -> str:
    """Write a number, or the least and the greatest."""
    least, most = (f"{value:.4g}" if value % 1 else f"{value:,.0f}" for value in ends(numbers))
    return most if least == most else f"{least} to {most}"


def ends(numbers: pl.Series) -> tuple[float, float]:
    values: list[float] = numbers.drop_nulls().to_list()
    return min(values, default=0), max(values, default=0)


#: With fewer clusters, intervals are too short, most of all those of the bootstrap.
FEW_CLUSTERS = 10
#: Below this share of their number, the effective number of clusters is noted.
_AS_GOOD = 0.9


def notes_of_clusters(sample: Sample, merged: Sample) -> list[str]:
    """Write into how many clusters users were merged, and why there is no interval."""
    values = merged.values
    if len(values) < 2:
        return ["one cluster"] if len(sample.values) > 1 else []
    few = ", too few for a sure interval" if len(values) < FEW_CLUSTERS else ""
    equal = ""
    if merged.weights is not None:
        effective = merged.weights.sum() ** 2 / (merged.weights**2).sum()
        if effective < _AS_GOOD * len(values):
            equal = f", as good as {effective:.2g} equal ones"
    notes = [f"{len(values)} clusters{equal}{few}"]
    if sample.values.min() < sample.values.max() and not values.min() < values.max():
        notes.append("every cluster has the same mean")
    return notes


def noted(sentence: pl.Expr) -> pl.Expr:
    """Add a sentence to the notes, where it is not null."""
    both = pl.concat_str("note", sentence, separator="; ", ignore_nulls=True)
    return pl.when(sentence.is_null()).then("note").otherwise(both).alias("note")


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


def missed_lines(table: pl.DataFrame, by: Sequence[str] = (keywords.MODEL,)) -> list[str]:
    """List systems that have no list for many users: those with the most, at most three.

    The groups of any other column of ``by``, such as days, are groups of users.
    """
    share = pl.col("num_missed") / pl.nth(2)
    most = table.filter(pl.col("num_missed") > 0).sort(share, descending=True, maintain_order=True)
    most = most.unique(["system", "segment"], keep="first", maintain_order=True)
    notes = [
        note
        for system, segment, users, missed in most.iter_rows()
        for note in notes_of_missed(
            missed,
            users,
            " · ".join(filter(None, (system, segment))) or None,
            next((name for name in by[:1] if name != keywords.MODEL), None),
        )
    ]
    if (rest := len(notes) - 3) <= 0:
        return [" ".join(note.split()) for note in notes]
    what = "system" if most["segment"].replace("", None).is_null().all() else "system or segment"
    first = [" ".join(note.split()) for note in notes[:3]]
    return [*first, f"and {rest} more {what}{'s' * (rest != 1)}"]


def missed_counts(values: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Count the users without a list in each group."""
    of_groups = values.select(
        *system_and_segment(values, groups), values.columns[len(groups)], user_columns.MISSED
    )
    counts = pl.col(of_groups.columns[2]).count().alias("users"), user_columns.number_missed()
    return of_groups.group_by("system", "segment", maintain_order=True).agg(counts)


#: The share of users without a list, or in one of two groups only, that a note names.
WORTH_A_NOTE = 0.05


def notes_of_lists(missed: Sequence[int], users: int, systems: Sequence[object]) -> list[str]:
    """Write how many users have no list of each of several systems."""
    notes: list[str] = []
    for number, system in zip(missed, systems, strict=True):
        notes += notes_of_missed(number, users, system)
    return notes


def name_in_note(name: object) -> str:
    """Write a name that moves no text, and does not end a note: these are separated by "; "."""
    return isolated(column_roles.in_words(name).replace("; ", ";\N{NO-BREAK SPACE}"))


def notes_of_missed(
    missed: int, users: int, system: object = None, column: str | None = None
) -> list[str]:
    """Write how many users have no list of ``system``, or of those of a ``column``, if many."""
    if not users or missed < WORTH_A_NOTE * users:
        return []
    verb = "has" if missed == 1 else "have"
    whose = "" if system is None else f" of {name_in_note(system)}"
    if whose and column is not None:
        of_group = f" of {name_in_note(column)}{whose.removeprefix(' of')}"
        return [f"{missed:,} of {users:,} users{of_group} {verb} no list"]
    return [f"{missed:,} of {users:,} users {verb} no list{whose}"]
