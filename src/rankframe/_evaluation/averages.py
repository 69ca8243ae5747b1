"""Which mean is taken of the values of users, by ``average=``: of users, pooled, or of groups.

``pooled``: Σ numerators / Σ denominators, so each user's denominator is the weight of the value. A
column: the mean of the means of its groups, so the weight of a user is a share of the group. Stage
of the pipeline: after the reduction, ``Values`` get these weights, or the group of each user.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rankframe._evaluation.user_columns import WEIGHT
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.keywords import Settings
from rankframe._request.labels import Divisor, RequestedMetric
from rankframe._request.question import Question
from rankframe._tables.judgment import Joined
from rankframe.errors import Problem, RankingDataError, option, wording

#: The group of a user whose mean is averaged with those of the others.
GROUP = f"{labels.PREFIX}averaged"
_NOT_FILLED = wording("undefined=None", command="and no --undefined")
_SHARE, _DIVISOR = f"{labels.PREFIX}share_of_", f"{labels.PREFIX}divisor_of_"


def divisors(joined: Joined, requested: Sequence[RequestedMetric]) -> list[RequestedMetric]:
    """Return what the values of users are divided by, if they are pooled and it is no constant."""
    metrics: list[RequestedMetric] = []
    for metric, divisor in of_users(requested, joined.tables.settings, joined):
        name, has_relevant = divisor_name(metric.name), pl.col("relevant").any()
        expr = pl.when(has_relevant).then(divisor.of_user).alias(name)
        level = metric.relevant_at
        metrics.append(RequestedMetric(name, expr, labels.MEAN, per_user=True, relevant_at=level))
    return metrics


def with_average(values: Values, question: Question) -> Values:
    """Give each user the weights of a pooled mean, or the group whose mean is averaged."""
    settings = values.settings
    pooled = of_users(values.requested, settings, values.joined)
    if settings.average == "users":
        return values
    if settings.averaged_by is not None:
        *by, column = values.by
        user = pl.struct(column, values.user).alias(values.user)
        rows = values.rows.with_columns(pl.col(column).alias(GROUP), user)
        return values._replace(rows=rows, by=by, checks=values.checks.with_more(()))
    weight = 1.0 if values.weights is None else pl.col(WEIGHT)
    columns: list[pl.Expr] = []
    names = {metric.name for metric in question.requested}
    for metric, divisor in pooled:
        name = metric.name
        own = divisor_name(name if name in names else name.rpartition("_")[0])  # that of chance
        of_user = pl.col(own).fill_null(divisor.unmet or 0).cast(pl.Float64) * weight
        columns.append(pl.when(pl.col(name).is_not_null()).then(of_user).alias(divisor_name(name)))
    rows = values.rows.with_columns(columns)
    weights = {metric.name: divisor_name(metric.name) for metric, _ in pooled}
    return values._replace(rows=rows, pooled=weights, checks=values.checks.with_more(()))


def divisor_name(metric: str) -> str:
    """Name the column of what the values of a metric are divided by."""
    return _DIVISOR + metric


def pooled_mean(name: str, unmet: int | None) -> pl.Expr:
    """Take Σ value·divisor / Σ divisor of the users with a value, for SQL, where x/0 is null."""
    value, whole = pl.col(name), pl.col(divisor_name(name)).fill_null(unmet or 0)
    return (value * whole).sum() / pl.when(value.is_not_null()).then(whole).sum()


def weight_of(values: Values, name: str) -> str | None:
    """Name the column of rows with each user's weight in the mean of a metric, if there is one."""
    return values.pooled.get(name, None if values.weights is None else WEIGHT)


def weight_with_shares(values: Values, name: str) -> str | None:
    """Name the same column, or that of ``shares_of``."""
    return _SHARE + name if values.in_groups else weight_of(values, name)


def shares_of(values: Values, by: Sequence[str]) -> list[pl.Expr]:
    """Return each user's share of a group, so that the groups of a group of ``by`` count alike."""
    if not values.in_groups:
        return []
    weight = pl.lit(1.0) if values.weights is None else pl.col(WEIGHT)
    own = {name: pl.when(pl.col(name).is_not_null()).then(weight) for name in values.names_per_user}
    whole = {name: of_user.sum().over(*by, GROUP) for name, of_user in own.items()}
    return [(own[name] / whole[name]).fill_nan(None).alias(_SHARE + name) for name in own]


def of_users(
    requested: Sequence[RequestedMetric], settings: Settings, joined: Joined | None
) -> list[tuple[RequestedMetric, Divisor]]:
    """Return the metrics whose pooled mean has weights, with their divisors; check all metrics."""
    pairs: list[tuple[RequestedMetric, Divisor]] = []
    average = option("average", settings.average)
    if settings.averaged_by is not None:
        for metric in requested:
            if metric.over_users.epsilon is not None:
                msg = f"metric {metric.name!r}: a geometric mean does not support {average}"
                raise ValueError(Problem(f"{msg}: leave it out"))
    if settings.average != "pooled":
        return pairs
    for table in joined.tables.both if joined else ():
        if "pooled" in table.schema:
            msg = f"{table.name}: {average} could mean the column 'pooled': rename it"
            raise RankingDataError(msg)
    for metric in requested:
        if metric.over_users.aggregate == "sum":
            continue
        divisor = labels.divisor_of(metric, tied=joined is not None and joined.tables.tied)
        lacking = settings.undefined is not None or (joined and joined.tables.users == "rows")
        if divisor.unmet is None and lacking:
            msg = (
                f"metric {metric.name!r}, {average}: users without a relevant "
                "item count here, and the length of their lists is not known: leave them out by "
                f"{option('users', 'truth')}, {_NOT_FILLED}"
            )
            raise ValueError(Problem(msg))
        if divisor.of_user.meta.root_names():  # else the pooled mean is that of users
            pairs.append((metric, divisor))
    return pairs
