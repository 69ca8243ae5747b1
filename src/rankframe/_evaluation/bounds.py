"""Bounds and scenarios: the values of metrics under other judgments of unjudged items."""

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
from rankframe._tables.judgment import Judged


class _World(NamedTuple):
    """Which of the unjudged items of the lists are relevant: those down to k, those below."""

    inside: bool
    below: bool
    k: int | None = None


_NONE, _ALL = _World(inside=False, below=False), _World(inside=True, below=True)


def worlds_of(requested: RequestedMetric, *, tied: bool) -> tuple[_World, _World]:
    """Return the judgments that make a metric least and greatest, in either order."""
    kind, k = labels.extremes_of(requested.expr)
    if kind == "none or all":
        return _NONE, _ALL
    if kind == "above or below k" and not tied:
        inside, below = _World(inside=True, below=False, k=k), _World(inside=False, below=True, k=k)
        return (_NONE, _ALL) if k is None else (below, inside)
    under = " under ties" if kind and tied else ""
    msg = (
        f"metric {requested.name!r}: no bounds are proven for it{under}; scenarios=True reports "
        "its values if none and if all of the unjudged items are relevant"
    )
    raise ValueError(msg)


def with_worlds(plan: Plan, extremes: Sequence[tuple[_World, _World]], settings: Settings) -> Plan:
    """Add the values of metrics under other judgments of the unjudged items."""
    keys, prepared = plan.keys, plan.prepared
    columns: list[pl.Expr] = []
    requested: list[RequestedMetric] = []
    read: dict[_World, list[RequestedMetric]] = {}
    for place, one in enumerate(plan.requested):
        made = {one.name: pl.col(one.name)}
        if extremes:
            pair = [_in_world(world, one) for world in extremes[place]]
            defined = pl.when(pl.col(one.name).is_not_null())
            made[f"{one.name}_low"] = defined.then(pl.min_horizontal(one.name, *pair))
            made[f"{one.name}_high"] = defined.then(pl.max_horizontal(one.name, *pair))
        if settings.scenarios:
            pair = [_in_world(world, one) for world in (_NONE, _ALL)]
            # null unless both are defined: their means must be over the same users
            both = pl.when(*(pl.col(name).is_not_null() for name in pair))
            made[f"{one.name}_if_none"], made[f"{one.name}_if_all"] = map(both.then, pair)
        worlds = (*(extremes[place] if extremes else ()), *((_NONE, _ALL) * settings.scenarios))
        for world in dict.fromkeys(worlds):
            read.setdefault(world, []).append(one)
        columns += [value.alias(name) for name, value in made.items()]
        requested += [one._replace(name=name) for name in made]
    labels.check_names(requested, keys)
    values, others = plan.values, list[Plan]()
    for world, some in read.items():
        other = reduction.plan(
            _judged_in(world, prepared, settings.depth), some, replace(settings, judged_only=False)
        )
        named = {one.name: _in_world(world, one) for one in some}
        values = values.join(other.values.rename(named), on=keys, how="left")
        others.append(other)

    def raise_violation() -> None:
        for each in (plan, *others):
            each.raise_violation()

    flags = [one for each in (plan, *others) for one in each.flags]
    values = values.select(*keys, *columns)
    types = dict(values.collect_schema())
    raise_global = plan.raise_global
    return Plan(prepared, requested, values, types, flags, raise_violation, raise_global)


def _in_world(world: _World, requested: RequestedMetric) -> str:
    """Name the column of a metric in another world."""
    return f"{labels.INNER}{world.inside}_{world.below}_{world.k}_{requested.name}"


def _judged_in(world: _World, prepared: Judged, depth: int | None) -> Judged:
    """Set the grade of unjudged items of the lists to the highest one, or to 0."""
    grade, rank = pl.col("relevance"), pl.col("rank")
    listed = rank.is_not_null() if depth is None else (rank <= depth)
    unjudged = listed & ~(grade >= 0).fill_null(value=False)
    inside = pl.lit(value=True) if world.k is None else rank <= world.k
    top = prepared.top_grade
    given = pl.when(inside).then(top if world.inside else 0).otherwise(top if world.below else 0)
    filled = pl.when(unjudged).then(given).otherwise(grade).alias("relevance")
    judged = prepared.judged.with_columns(filled)
    if not prepared.has_subtopics:
        return prepared._replace(
            judged=judged, items=judged, ranked_truth=judged, bounds={}, changed=True
        )
    items = prepared.items.with_columns(filled)
    return prepared._replace(
        judged=judged, items=items, ranked_truth=items, bounds={}, changed=True
    )
