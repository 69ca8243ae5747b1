"""Describe: the values of users in a ``Values`` become means, a frame of one row per group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TypeAlias

import polars as pl

from rankframe import errors
from rankframe._evaluation import averages, reduction, sums, user_choice
from rankframe._evaluation.values import SEEN, Values, users_of
from rankframe._request import labels
from rankframe._request.keywords import Settings
from rankframe._request.labels import Aggregate, RequestedMetric
from rankframe._request.question import Question
from rankframe._tables import adapters, guards, rules
from rankframe.errors import Problem, RankingDataError, option

_MOST_NAMES = 3  # of metrics, in a warning
_METRIC = f"{labels.PREFIX}metric"
#: The columns of means: how each is made, and its type.
Means: TypeAlias = dict[str, tuple[pl.Expr, pl.DataType]]


def with_counts(values: Values, question: Question) -> Values:
    """Count the users of each requested metric; metrics of all lists have none."""
    counted = _asked_for(values, question)
    counts = [replace(metric, name=users_of(metric.name)) for metric in counted]
    labels.check_names([*values.requested, *counts], [*values.by, "users"])
    return values._replace(counted=frozenset(metric.name for metric in counted))


def watched(values: Values, question: Question) -> Values:
    """Let a call warn of means over fewer users than count; a sum over users is none."""
    means = [m for m in _asked_for(values, question) if m.over_users.aggregate != "sum"]
    return values._replace(watched=[metric.name for metric in means])


def _asked_for(values: Values, question: Question) -> list[RequestedMetric]:
    """Return the metrics that the caller named: bounds add more."""
    names = {metric.name for metric in question.requested}
    return [metric for metric in values.requested if metric.name in names]


def means_of_groups(
    values: Values,
    by: Sequence[str],
    names: Sequence[str] | None = None,
    means: Means | None = None,
) -> pl.LazyFrame:
    """Return users and metrics of each group of ``by``: means, and metrics of all lists."""
    means = _means(values) if means is None else means
    result = over_users(values, [mean for mean, _ in means.values()], by)
    if values.counted:
        result = result.with_columns(pl.col([*map(users_of, values.counted)]).fill_null(0))
    if values.system_metrics is None:
        return result
    numbers = values.system_metrics.values(by)
    result = result.join(numbers, on=by, how="left") if by else result.join(numbers, how="cross")
    undefined = values.settings.undefined
    if undefined is not None:
        filled = [metric.name for metric in values.system_metrics.requested]
        result = result.with_columns(pl.col(filled).fill_null(undefined))
    return result.select(*by, "users", *(values.columns if names is None else names))


def checked_means(values: Values, *, total: bool) -> pl.LazyFrame:
    """Return the means of all groups, checked when the plan runs."""
    means = _means(values)
    types = types_of_means(values, means)

    def result() -> pl.LazyFrame:
        of_groups = means_of_groups(values, values.by, means=means)
        if not total:
            return of_groups
        of_all = means_of_groups(values, total_by(values.by), means=means)
        return pl.concat([of_groups, of_all], how="diagonal")

    raisers = [*values.checks.raisers, lambda: raise_infinite_mean(result(), values.by)]
    values = values._replace(checks=values.checks._replace(raisers=raisers))
    if len(values.checks.of_users) == 1 and types is not None and not values.by:
        checked = _in_one_pass(values, [mean for mean, _ in means.values()], types)
    else:
        checked = values.checks.guarded(result(), types)
    checked = checked.sort(values.by, nulls_last=True) if values.by else checked
    if not values.watched:
        return checked
    schema = {**(checked.collect_schema() if types is None else types)}
    del schema[SEEN]
    return adapters.in_one_step(checked, partial(_without_seen, by=values.by), schema)


def _without_seen(means: pl.DataFrame, *, by: Sequence[str]) -> pl.DataFrame:
    """Drop the numbers of users behind the means, and warn where they are smaller than ``users``.

    A mean over no user is null, which needs no warning.
    """
    seen: list[dict[str, int] | None] = means[SEEN].to_list()
    pairs = zip(means["users"].to_list(), seen, strict=True)
    if [1 for users, row in pairs for number in (row or {}).values() if 0 < number < users]:
        numbers = means.select(*by, "users").hstack(means[SEEN].struct.unnest())
        errors.warn(_of_fewer(numbers, by))
    return means.drop(SEEN)


def _of_fewer(numbers: pl.DataFrame, by: Sequence[str]) -> str:
    """Write which means are over fewer users than count: per metric the group with the fewest."""
    names = numbers.columns[len(by) + 1 :]
    numbers = numbers.unpivot(names, index=[*by, "users"], variable_name=_METRIC, value_name=SEEN)
    fewer = numbers.filter(pl.col(SEEN) > 0, pl.col(SEEN) < pl.col("users"))
    fewer = fewer.sort(pl.col(SEEN) / pl.col("users"), maintain_order=True)
    fewer = fewer.unique(_METRIC, keep="first", maintain_order=True)
    texts: list[str] = []
    for place in range(min(len(fewer), _MOST_NAMES)):
        row = fewer[place]
        *_, users, name, seen = row.row(0)
        where = f" ({rules.format_row(row.select(by))})" if by else ""
        texts.append(f"{name!r} is over {seen:,} of {users:,} users{where}")
    more = f", and {len(fewer) - len(texts):,} more" if len(fewer) > len(texts) else ""
    return (
        f"means leave out users without a value: {', '.join(texts)}{more}: "
        f"{option('count_users', value=True)} adds these numbers, and {option('undefined', 0)} "
        "counts the others as 0"
    )


def checked_sums(
    values: Values, aggregates: Sequence[pl.Expr], types: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Reduce the values of users to one row per group, checked when the plan runs."""
    if len(values.checks.of_users) == 1 and not values.by:
        return _in_one_pass(values, aggregates, types)
    return values.checks.guarded(over_users(values, aggregates, values.by), types)


def _in_one_pass(
    values: Values, aggregates: Sequence[pl.Expr], types: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Reduce the values of users to one row, with the flags made in the same pass."""
    checks, (flag,) = values.checks, values.checks.of_users
    row = flag.frame.select(
        pl.len().cast(pl.Int64).alias("users"),
        *aggregates,
        **dict(zip(guards.OWN, flag[1:], strict=True)),
    )
    raise_global = checks.raise_global or checks.raise_violation
    return guards.guarded_row(row, checks.of_tables, checks.raise_violation, types, raise_global)


def types_of_means(values: Values, means: Means | None = None) -> dict[str, pl.DataType] | None:
    """Return the types of ``means_of_groups``; None if they must be looked up."""
    if values.system_metrics is not None:
        return None
    types: dict[str, pl.DataType] = {name: values.types[name] for name in values.by}
    types["users"] = pl.Int64()
    return types | {name: dtype for name, (_, dtype) in (means or _means(values)).items()}


def _means(values: Values) -> Means:
    """Return each column of means: how it is made, and its type."""
    columns: Means = {}
    for metric in values.requested:
        columns[metric.name] = _mean(
            metric.name,
            metric.over_users,
            values.types[metric.name],
            averages.weight_with_shares(values, metric.name),
        )
        if metric.name in values.counted:
            columns[users_of(metric.name)] = counted_users(metric.name), pl.Int64()
    if values.watched:
        seen = pl.struct([pl.col(name).count().cast(pl.Int64) for name in values.watched])
        columns[SEEN] = seen.alias(SEEN), pl.Struct(dict.fromkeys(values.watched, pl.Int64()))
    return columns


def counted_users(name: str) -> pl.Expr:
    """Count the users for whom a metric is defined."""
    return pl.col(name).count().cast(pl.Int64).alias(users_of(name))


@lru_cache(maxsize=4096)  # saves 0.5 of 4 ms with five metrics
def _mean(
    name: str, over_users: Aggregate, dtype: pl.DataType, weight: str | None
) -> tuple[pl.Expr, pl.DataType]:
    """Return the mean over users of a metric, and its type."""
    mean: Callable[[pl.Expr], pl.Expr]
    mean = sums.order_free_mean if dtype == pl.Float64 else pl.Expr.mean
    total = sums.order_free_sum if dtype == pl.Float64 else pl.Expr.sum
    mean = mean if weight is None else by_weight(weight)
    column = over_users(pl.col(name), mean, total).alias(name)
    types = {name: dtype, **({} if weight is None else {weight: pl.Float64()})}
    return column, pl.LazyFrame(schema=types).select(column).collect_schema()[name]


def by_weight(weight: str) -> Callable[[pl.Expr], pl.Expr]:
    """Take the mean over users that is weighted by a column."""
    return lambda values: sums.weighted_mean(values, pl.col(weight))


def over_users(values: Values, aggregates: Sequence[pl.Expr], by: Sequence[str]) -> pl.LazyFrame:
    """Reduce the values of users to one row per group, or to one."""
    aggregates = [pl.len().cast(pl.Int64).alias("users"), *aggregates]
    shares = averages.shares_of(values, by)
    rows = values.rows.with_columns(shares) if shares else values.rows
    if not by:
        return rows.select(aggregates)
    reduced = rows.group_by(by).agg(aggregates)
    joined = user_choice.groups_of(values.source, by).join(reduced, on=by, how="left")
    return joined.with_columns(pl.col("users").fill_null(0))


def total_by(by: Sequence[str]) -> Sequence[str]:
    """Name the columns of ``by`` that stay in the row of all users."""
    return by[:1] if len(by) > 1 else []


def check_weighted_means(
    requested: Sequence[RequestedMetric], settings: Settings, types: Mapping[str, pl.DataType]
) -> None:
    """Check that every metric has a weighted mean."""
    if settings.weights is None and settings.averaged_by is None:
        return
    for metric in requested:
        if metric.over_users.aggregate == "sum":
            weights = option("weights" if settings.weights else "average")
            msg = (
                f"metric {metric.name!r}: it is a sum over users, which does not support weights: "
                f"leave out {weights}"
            )
            raise ValueError(Problem(msg))
        if types.get(metric.name) == pl.Duration:
            msg = f"metric {metric.name!r}: it is a duration, which has no weighted mean: cast it"
            raise ValueError(msg)


def check_numeric(values: Values) -> None:
    """Check that a mean can be taken."""
    for metric in values.requested:
        dtype = values.types[metric.name]
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Duration | pl.Null)):
            msg = (
                f"metric {metric.name!r} is {dtype} for each user, which has no mean: use per_user"
            )
            raise ValueError(msg)


def raise_infinite_mean(result: pl.LazyFrame, groups: Sequence[str]) -> None:
    """Raise if a mean of finite values is not finite."""
    flags = result.select(reduction.infinite(result.collect_schema(), groups)).collect()
    for name in flags.columns:
        if flags[name].item():
            msg = f"metric {name!r}: its mean over users is not a finite number"
            raise RankingDataError(msg)
