"""Evaluating partitions: all rows of a user are in the same partition.

The values of a user depend only on the rows of that user, and on the facts about all users in
``Totals``. So an engine that moves all rows of a user into one partition can evaluate each
partition by itself, with the plans and checks of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from rankframe._checks import Totals, guarded, proves_global_rules
from rankframe._evaluate import (
    Plan,
    UserValues,
    by_weight,
    counted_users,
    in_groups,
    over_users,
    plan_means,
    plan_values,
    raise_infinite_mean,
    total_by,
    users_of,
)
from rankframe._labels import (
    Entry,
    Metric,
    RequestedMetric,
    cut_off,
    registered_metrics,
    restore_metrics,
)
from rankframe._options import Settings
from rankframe._table import guarded_judged, plan_ranks, prepare_tables, with_inputs
from rankframe._vocabulary import COLUMNS, Column, reading_of, restore_columns
from rankframe._weights import WEIGHT, raise_no_weight

_PROVED, _SUM, _COUNT = "__rankframe_proved", "__rankframe_sum", "__rankframe_count"
_KNOWN = "__rankframe_known"  # the number of users with a value, where the count is of weights


class Registered(NamedTuple):
    """The metrics and columns that others have registered, for a process that has not."""

    metrics: list[Entry]
    columns: list[Column]


def registered() -> Registered:
    """List what has been registered here."""
    columns = [known for known in COLUMNS.values() if known.registered]
    return Registered(registered_metrics(), columns)


def restore(known: Registered) -> None:
    """Register what has been registered elsewhere."""
    restore_metrics(known.metrics)
    restore_columns(known.columns)


class Needs(NamedTuple):
    """What matters to the metrics that are asked for."""

    columns: set[str]  # those that they read
    top_grade: bool
    depth: int | None = None  # of the run: only ranks down to it; None: all
    relevant: bool = False  # of the truth: only grades > 0
    judged: bool = False  # of the run: only items that the truth has


def judged_of(
    run: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    by: str | Sequence[str],
    settings: Settings,
) -> pl.LazyFrame:
    """Join the run and the truth of some users."""
    prepared = prepare_tables(run, truth, by, settings.columns, totals=totals)
    return guarded_judged(with_inputs(prepared, settings))


def ranked_of(
    run: pl.LazyFrame, _: pl.LazyFrame | None, totals: Totals | None, **options: Any
) -> pl.LazyFrame:
    """Rank the lists of some users."""
    return plan_ranks(run, totals=totals, **options)


def values_of(
    frame: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
) -> pl.LazyFrame:
    """Compute the metrics of some users."""
    plan = plan_values(frame, metrics, truth, by, settings, per_user=True, totals=totals)
    return plan.guarded()


def rows_of(
    frame: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
) -> pl.LazyFrame:
    """Compute what statistics are made of, for some users; ``gathered`` puts it together."""
    plan = plan_values(frame, metrics, truth, by, settings, per_user=False, totals=totals)
    return in_groups(plan).rows


def gathered(parts: pl.DataFrame, plan: Plan) -> UserValues:
    """Put the rows of all users together; only a group without users has a row without one."""
    values = in_groups(plan)
    users = parts.filter(pl.col(values.user).is_not_null())
    if values.by:
        bare = parts.join(users, on=values.by, how="anti").unique(values.by)
        users = pl.concat([users, bare])
    return values._replace(rows=users.lazy())


def sums_of(
    frame: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
) -> pl.LazyFrame:
    """Add up the metrics of some users, for ``means_of`` to add up all."""
    plan = plan_means(frame, metrics, truth, by, settings, totals=totals)
    types = plan.types
    sums = [
        column
        for place, one in enumerate(plan.requested)
        for column in _summed(one, place, types[one.name], weighted=plan.weights is not None)
    ]
    sums += [counted_users(name) for name in sorted(plan.counted)]
    proved = pl.lit(proves_global_rules(plan.prepared.tables)).alias(_PROVED)
    added = over_users(plan, sums, plan.by).with_columns(proved)
    return guarded(added, plan.flags, plan.raise_violation)


def exposures_of(
    frame: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
    place: int,
) -> pl.LazyFrame:
    """Add up what the lists of some users give to values, for metrics of all lists."""
    plan = plan_means(frame, metrics, truth, by, settings, totals=totals)
    assert plan.of_lists is not None
    return plan.of_lists.exposures(list(plan.of_lists.kinds())[place], per_list=False)


def means_of(
    parts: pl.DataFrame,
    plan: Plan,
    exposures: Sequence[pl.DataFrame] = (),
    *,
    total: bool = False,
) -> pl.DataFrame:
    """Give the means over all users, from the sums of each part; ``plan`` has what is asked."""
    mean = pl.Expr.mean if plan.weights is None else by_weight
    means = [one.over_users(pl.col(one.name), mean).alias(one.name) for one in plan.requested]
    types = over_users(plan, means, plan.by).collect_schema()
    if plan.weights is not None:
        _check_weights(parts, plan, plan.weights)
    columns = [_added(one, place, types[one.name]) for place, one in enumerate(plan.requested)]
    counts = [pl.col(users_of(name)).sum() for name in sorted(plan.counted)]
    columns = [pl.col("users").sum(), *columns, *counts]
    result = _with_numbers(_over(parts, columns, plan.by), plan, exposures, plan.by)
    if total:
        by = total_by(plan.by)
        whole = _with_numbers(_over(parts, columns, by), plan, exposures, by)
        result = pl.concat([result, whole], how="diagonal")
    result = result.select(*plan.by, "users", *plan.columns)
    raise_infinite_mean(result.lazy(), plan.by)
    return result.sort(plan.by, nulls_last=True) if plan.by else result


def _with_numbers(
    result: pl.DataFrame, plan: Plan, exposures: Sequence[pl.DataFrame], by: Sequence[str]
) -> pl.DataFrame:
    """Add the numbers of all lists, from the exposures of each part."""
    if plan.of_lists is None:
        return result
    numbers = plan.of_lists.numbers_of(exposures, by).collect()
    result = result.join(numbers, on=by, how="left") if by else result.join(numbers, how="cross")
    return result.select(*by, "users", *plan.columns)


def is_proved(parts: pl.DataFrame) -> bool:
    """Tell if one of the parts shows that all tables keep the rules on whole tables."""
    return bool(parts[_PROVED].any())


def needs_of(plan: Plan, settings: Settings) -> Needs:
    """Name what must go into a shuffle: without the rest nothing comes out differently."""
    prepared, tables = plan.prepared, plan.prepared.tables
    requested = [*plan.requested, *(plan.of_lists.requested if plan.of_lists else ())]
    reads = (name for one in requested for name in one.reads)
    reading = reading_of(reads, given=settings.given)
    other_judgments = settings.bounds or settings.scenarios
    needs = Needs(set(reading.names), top_grade=other_judgments or reading.top_grade)
    if settings.weights is not None:  # a row that changes no value may be all that has the weight
        needs.columns.add(settings.weights)
        return needs
    if other_judgments or prepared.tied or tables[0].rank is None or not prepared.has_truth:
        return needs
    if settings.given or plan.of_lists is not None:
        return needs
    if tables[-1].by:  # a group may have no other rows, and yet it is there
        return needs
    users = settings.users or "truth"
    all_count = settings.judged_only or reading.counts_judged
    relevant = users == "truth" and not all_count and reading.scope != "listed"
    if len(tables) == 1:
        return needs._replace(relevant=relevant and not reading.counts_listed)
    depth = settings.depth
    if depth is None and not (settings.judged_only or reading.depends_on_below):
        cuts = [cut_off(one.expr) for one in plan.requested]
        depth = max((k for k in cuts if k), default=None) if all(cuts) else None
    if users not in ("truth", "judged"):  # a list without a hit counts too
        return needs._replace(relevant=relevant)
    judged = not (all_count or reading.counts_listed)
    return needs._replace(depth=depth, relevant=relevant, judged=judged)


def _check_weights(parts: pl.DataFrame, plan: Plan, column: str) -> None:
    """Check that of the users averaged in each group one has a weight above 0."""
    for place, one in enumerate(plan.requested):
        known, weight = pl.col(f"{_KNOWN}{place}").sum(), pl.col(f"{_COUNT}{place}").sum()
        zero = _over(parts, [((known > 0) & (weight == 0)).alias(_KNOWN)], plan.by).filter(_KNOWN)
        if not zero.is_empty():
            row = zero.select(plan.by).sort(plan.by).head(1) if plan.by else None
            raise_no_weight(column, one.name, row)


def _summed(
    one: RequestedMetric, place: int, dtype: pl.DataType, *, weighted: bool
) -> list[pl.Expr]:
    each = one.over_users.transform(pl.col(one.name))
    if weighted:
        weight = pl.when(each.is_not_null()).then(WEIGHT)
        return [
            (each.cast(pl.Float64) * weight).sum().alias(f"{_SUM}{place}"),
            weight.sum().alias(f"{_COUNT}{place}"),
            each.count().cast(pl.Int64).alias(f"{_KNOWN}{place}"),
        ]
    total = each.cast(pl.Int64) if isinstance(dtype, pl.Duration) else each
    total = total if one.over_users.aggregate == "sum" else total.cast(pl.Float64)
    # a sum counts as one even of no user, as where there are no groups it is 0
    count = pl.lit(1) if one.over_users.aggregate == "sum" else each.count()
    return [total.sum().alias(f"{_SUM}{place}"), count.cast(pl.Int64).alias(f"{_COUNT}{place}")]


def _over(parts: pl.DataFrame, columns: Sequence[pl.Expr], by: Sequence[str]) -> pl.DataFrame:
    return parts.group_by(by).agg(columns) if by else parts.select(columns)


def _added(one: RequestedMetric, place: int, dtype: pl.DataType) -> pl.Expr:
    total, count = pl.col(f"{_SUM}{place}").sum(), pl.col(f"{_COUNT}{place}").sum()
    there = total if one.over_users.aggregate == "sum" else total / count
    value = one.over_users.inverse(pl.when(count > 0).then(there))
    if isinstance(dtype, pl.Duration):
        value = value.cast(pl.Int64)
    return value.cast(dtype).alias(one.name)
