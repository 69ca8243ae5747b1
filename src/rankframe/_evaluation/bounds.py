"""After the reduction: bounds and scenarios, values under other judgments (a wider ``Plan``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import reduction
from rankframe._evaluation.reduction import Plan
from rankframe._request import labels
from rankframe._request.keywords import Settings
from rankframe._request.labels import RequestedMetric
from rankframe._tables import judgment
from rankframe._tables.judgment import Judged


class _Judgments(NamedTuple):
    """Which of the unjudged items of the lists are relevant: those down to k, those below."""

    inside: bool
    below: bool
    k: int | None = None


_NONE, _ALL = _Judgments(inside=False, below=False), _Judgments(inside=True, below=True)


def extreme_judgments(requested: RequestedMetric, *, tied: bool) -> tuple[_Judgments, _Judgments]:
    """Return the judgments that make a metric least and greatest, in either order."""
    kind, k = labels.extremes_of(requested.expr)
    if kind == "none or all":
        return _NONE, _ALL
    if kind == "above or below k" and not tied:
        inside, below = (
            _Judgments(inside=True, below=False, k=k),
            _Judgments(inside=False, below=True, k=k),
        )
        return (_NONE, _ALL) if k is None else (below, inside)
    under = " under ties" if kind and tied else ""
    msg = (
        f"metric {requested.name!r}: no bounds are proven for it{under}; scenarios=True reports "
        "its values if none and if all of the unjudged items are relevant"
    )
    raise ValueError(msg)


def with_judgments(
    plan: Plan, extremes: Sequence[tuple[_Judgments, _Judgments]], settings: Settings
) -> Plan:
    """Add the values of metrics under other judgments of the unjudged items."""
    keys, prepared = plan.keys, plan.prepared
    columns: list[pl.Expr] = []
    requested: list[RequestedMetric] = []
    read: dict[_Judgments, list[RequestedMetric]] = {}
    for place, metric in enumerate(plan.requested):
        expressions = {metric.name: pl.col(metric.name)}
        if extremes:
            pair = [_name_under(judgments, metric) for judgments in extremes[place]]
            defined = pl.when(pl.col(metric.name).is_not_null())
            expressions[f"{metric.name}_low"] = defined.then(pl.min_horizontal(metric.name, *pair))
            expressions[f"{metric.name}_high"] = defined.then(pl.max_horizontal(metric.name, *pair))
        if settings.scenarios:
            pair = [_name_under(judgments, metric) for judgments in (_NONE, _ALL)]
            # null unless both are defined: their means must be over the same users
            both = pl.when(*(pl.col(name).is_not_null() for name in pair))
            expressions[f"{metric.name}_if_none"], expressions[f"{metric.name}_if_all"] = map(
                both.then, pair
            )
        all_judgments = (
            *(extremes[place] if extremes else ()),
            *((_NONE, _ALL) * settings.scenarios),
        )
        for judgments in dict.fromkeys(all_judgments):
            read.setdefault(judgments, []).append(metric)
        columns += [value.alias(name) for name, value in expressions.items()]
        requested += [metric._replace(name=name) for name in expressions]
    labels.check_names(requested, keys)
    values, plans = plan.values, list[Plan]()
    for judgments, metrics in read.items():
        other = reduction.plan(
            _judged_in(judgments, prepared, settings.depth),
            metrics,
            replace(settings, judged_only=False),
        )
        names = {metric.name: _name_under(judgments, metric) for metric in metrics}
        values = values.join(other.values.rename(names), on=keys, how="left")
        plans.append(other)

    def raise_violation() -> None:
        for each in (plan, *plans):
            each.raise_violation()

    flags = [flag for each in (plan, *plans) for flag in each.flags]
    values = values.select(*keys, *columns)
    types = dict(values.collect_schema())
    raise_global = plan.raise_global
    return Plan(prepared, requested, values, types, flags, raise_violation, raise_global)


def _name_under(judgments: _Judgments, requested: RequestedMetric) -> str:
    """Name the column of a metric under other judgments."""
    return f"{labels.INNER}{judgments.inside}_{judgments.below}_{judgments.k}_{requested.name}"


def _judged_in(judgments: _Judgments, prepared: Judged, depth: int | None) -> Judged:
    """Set the grade of unjudged items of the lists to the highest one, or to 0."""
    grade, rank = pl.col("relevance"), pl.col("rank")
    listed = rank.is_not_null() if depth is None else (rank <= depth)
    unjudged = listed & ~(grade >= 0).fill_null(value=False)
    inside = pl.lit(value=True) if judgments.k is None else rank <= judgments.k
    top = prepared.top_grade
    substitute = (
        pl.when(inside)
        .then(top if judgments.inside else 0)
        .otherwise(top if judgments.below else 0)
    )
    return judgment.with_grades(prepared, pl.when(unjudged).then(substitute).otherwise(grade))
