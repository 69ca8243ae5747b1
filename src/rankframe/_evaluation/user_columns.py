"""After the reduction: missed users, weights and clusters, as columns of a ``Plan``."""

from __future__ import annotations

import functools

import polars as pl

from rankframe._evaluation import user_clusters, user_weights
from rankframe._evaluation.reduction import Plan
from rankframe._evaluation.user_weights import Weights
from rankframe._request import labels
from rankframe._tables import guards
from rankframe._vocabulary import scope_rows

#: Whether the run has no list for the user.
MISSED = f"{labels.INNER}missed"


# ------------------------------------------------------------------ users without a list


def with_missed(plan: Plan) -> Plan:
    """Mark the users for whom the run has no list."""
    lists = scope_rows.users_with_lists(plan.prepared)
    lists = lists.with_columns(pl.lit(value=False).alias(MISSED))
    values = plan.values.join(lists, on=plan.keys, how="left")
    values = values.with_columns(pl.col(MISSED).fill_null(value=True))
    return plan._replace(values=values, one_pass=None, marks_missed=True)


def number_missed() -> pl.Expr:
    """Count the users without a list."""
    return pl.col(MISSED).sum().cast(pl.Int64).alias("num_missed")


# ------------------------------------------------------------------ weights


def weighted(plan: Plan, column: str) -> Plan:
    """Add the weight of each user, and flag averaged users without one."""
    if plan.of_lists is not None:
        name = plan.of_lists.requested[0].name
        msg = f"metric {name!r} is one number for all lists, and weights= is for means over users"
        raise ValueError(msg)
    weights = user_weights.weights_of(plan.prepared, column)
    values = plan.values.join(weights.rows, on=weights.on, how="left")
    unweighted = user_weights.is_unweighted([metric.name for metric in plan.requested])
    lacking = values.filter(unweighted).select(plan.keys)
    raise_violation = functools.partial(_raise_weights, plan, weights, lacking)
    return plan._replace(
        values=values,
        flags=[*plan.flags, weights.flag, guards.flag(values, unweighted.any())],
        raise_violation=raise_violation,
        one_pass=None,
        weights=column,
    )


def _raise_weights(plan: Plan, weights: Weights, lacking: pl.LazyFrame) -> None:
    plan.raise_violation()
    weights.raise_first_broken()
    weights.raise_if_any(lacking)


def clustered(plan: Plan, column: str) -> Plan:
    """Add the cluster of each user, and flag users with a value but no cluster."""
    if plan.of_lists is not None:
        name = plan.of_lists.requested[0].name
        msg = f"metric {name!r} is one number for all lists, and cluster= is for means over users"
        raise ValueError(msg)
    clusters = user_clusters.clusters_of(plan.prepared, column)
    values = plan.values.join(clusters.rows, on=clusters.on, how="left")
    alone = user_clusters.has_no_cluster([metric.name for metric in plan.requested])
    lacking = values.filter(alone).select(plan.keys)

    def raise_violation() -> None:
        plan.raise_violation()
        clusters.raise_first_broken()
        clusters.raise_if_any(lacking)

    return plan._replace(
        values=values,
        flags=[*plan.flags, clusters.flag, guards.flag(values, alone.any())],
        raise_violation=raise_violation,
        one_pass=None,
        cluster=column,
    )


def with_weight_watched(plan: Plan, column: str) -> Plan:
    """Flag groups in which no averaged user has a weight above 0."""
    names = [metric.name for metric in plan.requested]
    zero = user_weights.has_no_weight(names)
    by = plan.by
    groups = plan.values.group_by(by).agg(zero) if by else plan.values.select(zero)

    def raise_violation() -> None:
        plan.raise_violation()
        for name in names:
            unweighted = groups.filter(pl.col(name)).collect()
            if not unweighted.is_empty():
                row = unweighted.select(by).sort(by).head(1) if by else None
                user_weights.raise_no_weight(column, name, row)

    watched = guards.flag(groups, pl.any_horizontal(pl.col(names).any()))
    return plan._replace(flags=[*plan.flags, watched], raise_violation=raise_violation)
