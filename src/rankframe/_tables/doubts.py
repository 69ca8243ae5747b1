"""What breaks no rule, and is probably wrong: warnings on the rows of tables."""

from __future__ import annotations

import polars as pl

from rankframe import errors
from rankframe._tables import rules
from rankframe._tables.table import Table, Tables

#: From so many rows on, equal scores in all of them are no chance.
_NO_CHANCE = 20
_WORTH_A_WORD = 0.05  # of the lists of a system


def scores_may_be_equal(table: Table) -> pl.Expr:
    """Whether all scores of a table are equal, which is cheap to see in any number of rows."""
    if table.score is None or table.rank is not None:
        return pl.lit(value=False)
    score = _value(table)
    return (score.count() >= _NO_CHANCE) & (score.min() == score.max())


def warn_of_equal_scores(run: Table) -> None:
    """Warn if lists of two or more items have one score each; name the system with most of them."""
    if run.score is None or run.rank is not None:
        return
    score, system = _value(run), run.by[:1]
    several = score.count() > 1
    equal = several & (score.min() == score.max())
    lists = rules.retrieved(run).group_by(run.keys).agg(equal=equal, several=several)
    counts = pl.col("equal", "several").sum(), pl.col(run.user).filter("equal").min()
    by_system = lists.group_by(system).agg(counts) if system else lists.select(counts)
    share = pl.col("equal") / pl.col("several")
    doubtful = by_system.filter(pl.col("equal") > 0, share >= _WORTH_A_WORD)
    worst = doubtful.sort(-share, *system).collect()
    if worst.is_empty():
        return
    first = worst.row(0, named=True)
    of = f" of {rules.format_row(worst.head(1).select(system))}" if system else ""
    more = f" (and of {len(worst) - 1:,} more)" if len(worst) > 1 else ""
    example = rules.format_row(worst.head(1).select(*system, run.user))
    errors.warn(
        f"{run.name}, column {run.score!r}: {first['equal'] / first['several']:.1%} of the lists "
        f"of two or more items{of}{more} have the same score for all items, so that ties decide "
        f"their order: check that the scores were written. Example: {example}"
    )


def warn_of_missing_scores(run: Table) -> None:
    """Warn of NaN, and in a run of null, scores: their items count as not retrieved."""
    if run.score is None or run.rank is not None:
        return
    value, is_nan = pl.col(run.score), pl.lit(value=False)
    if run.schema[run.score].is_float():
        is_nan = value.is_nan().fill_null(value=False)
    is_null = value.is_null() if run.name == "run" else pl.lit(value=False)
    counts = run.frame.select(nan=is_nan.sum(), null=is_null.sum(), rows=pl.len())
    nans, nulls, rows = counts.collect().row(0)
    if nans or nulls:
        named = [
            f"{number:,} {word}" for number, word in ((nans, "NaN"), (nulls, "null")) if number
        ]
        first = run.frame.filter(is_nan | is_null).select(rules.role_columns(run)).head(1)
        errors.warn(
            f"{run.name}, column {run.score!r}: of {rows:,} scores, {' and '.join(named)}: their "
            f"items count as not retrieved. Example: {rules.format_row(first.collect())}"
        )


def warn_of_float_ids(tables: Tables) -> None:
    """Warn of ids that are floats in all tables, of which those above 2^53 are not told apart."""
    for role, name in (("user", tables.run.user), ("item", tables.run.item)):
        if all(name in t.schema and t.schema[name].is_float() for t in tables.both):
            errors.warn(
                f"column {name!r}: the ids of {role}s are floats, and above 2^53 two ids may be "
                "one: read them as integers or text"
            )


def _value(table: Table) -> pl.Expr:
    score = pl.col(str(table.score))
    return score.fill_nan(None) if table.schema[str(table.score)].is_float() else score
