"""After the reduction: chance and ceiling, the values of the lists in other orders."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import polars as pl

from rankframe._evaluation import group_means, reduction
from rankframe._evaluation.values import Values
from rankframe._request import labels, registry
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question
from rankframe._tables import guards, judgment
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Tables
from rankframe._vocabulary import scope_rows, terms
from rankframe.errors import Problem, option


def check(metric: RequestedMetric, tables: Tables) -> None:
    """Check that a metric has an expectation in random order, and that the best order is known."""
    if why := why_none(metric, tables):
        of = option("chance", value=True)
        msg = f"{of}: metric {metric.name!r} has no chance: {why}: leave it out"
        raise ValueError(Problem(msg))


def why_none(metric: RequestedMetric, tables: Tables) -> str:
    """Say why a metric has no chance and no ceiling; empty if it has."""
    has_subtopics, why = tables.has_subtopics, ""
    reading = registry.reading_of(metric.reads, has_subtopics=has_subtopics, inputs=tables.beside)
    if metric.is_of_all_lists:
        why = "it is one number for all lists"
    elif not metric.per_user and metric.over_users.epsilon is not None:
        why = "a geometric mean has no exact expectation"
    elif reading.scope == "subtopic":
        why = "which order of subtopics is the best is not known"
    elif reading.lists_alone or metric.distribution is not None:
        why = "it reads no grade of an item, by which an order is the best"
    elif metric.traits.higher_is_better is None:
        why = "it is not declared whether higher or lower is better"
    else:
        of_ranks = [name for name, column in registry.COLUMNS.items() if column.in_ties == "ranks"]
        reads = sorted(labels.in_ties(metric).reads)
        if name := next((name for name in reads if name.partition("(")[0] in of_ranks), None):
            why = f"it reads {name!r}, which has no exact expectation in random order"
    return why


def with_chance(values: Values, question: Question) -> Values:
    """Add what a random order of each list gives, and what its ideal order gives, if requested."""
    if not question.settings.chance:
        return values
    return _with_orders(values, question.requested, ("chance", "ceiling"))


def reach(values: Values, name: str, floor: object) -> dict[object, float]:
    """Return how far each system is from a floor to the best order of its own lists, as a share.

    Only those above the floor have one, in a metric that has a ceiling.
    """
    metric, joined = next((m for m in values.requested if m.name == name), None), values.joined
    if metric is None or joined is None or len(values.by) != 1:
        return {}
    if values.settings.average != "users" or joined.tables.tied or why_none(metric, joined.tables):
        return {}
    alone = values._replace(requested=[metric], system_metrics=None)
    means = group_means.means_of_groups(_with_orders(alone, [metric], ("ceiling",)), values.by)
    rows = means.select(*values.by, name, f"{name}_ceiling").drop_nulls().collect().rows()
    low = next((value for system, value, _ in rows if system == floor), None)
    ended = {system for system, value, best in rows if math.isclose(value, best)}
    if low is None or len(ended) == len(rows):  # the order changes nothing
        return {}
    sign = 1 if metric.traits.higher_is_better else -1
    return {
        system: 1.0 if system in ended else (value - low) / (best - low)
        for system, value, best in rows
        if sign * low < sign * value and (sign * value < sign * best or system in ended)
    }


def _with_orders(
    values: Values, metrics: Sequence[RequestedMetric], orders: Sequence[str]
) -> Values:
    """Add the values of the lists in other orders, behind those of each metric."""
    rows, requested = values.rows, [*values.requested]
    for end in orders:
        tied, added = end == "chance", list[RequestedMetric]()
        for metric in metrics:
            form, name = labels.in_ties(metric) if tied else metric, f"{metric.name}_{end}"
            added.append(replace(form, name=name, expr=form.expr.alias(name)))
        labels.check_names([*requested, *added], values.keys)
        other = reduction.reduced(reordered(values.source, tied=tied), added).rows
        # a user of whom only the value is known has no list, or a value for undefined ones
        own = [
            pl.coalesce(new.name, metric.name).alias(new.name)
            for metric, new in zip(metrics, added, strict=True)
        ]
        rows = rows.join(other, on=values.keys, how="left").with_columns(own)
        requested += added
    places = {metric.name: place for place, metric in enumerate(values.requested)}
    requested.sort(key=lambda m: places.get(m.name, places.get(m.name.rpartition("_")[0], 0)))
    types = rows.collect_schema()
    broken = pl.any_horizontal(pl.lit(value=False), *reduction.infinite(types, values.keys))
    flag = guards.flag(rows, broken)
    raiser = partial(reduction.raise_not_finite, rows, values.source)
    checks = values.checks.with_more([flag], raiser)
    return values._replace(requested=requested, rows=rows, types=types, checks=checks)


def reordered(joined: Joined, *, tied: bool) -> Joined:
    """Put all items of each list into one block of ties, or into the order of their grades."""
    settings, keys, run = joined.tables.settings, joined.keys, joined.tables.run
    rows = scope_rows.with_final_lists(joined)
    length = terms.count(terms.rank.count().over(keys))
    # the keys of a sort need names of their own before Polars 2
    unlisted = terms.rank.is_null().alias(f"{labels.PREFIX}unlisted")
    order = [unlisted, -terms.grade, terms.rank]
    place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(keys, order_by=order)
    places = {"rank": pl.lit(1, pl.Int64), "tied": length} if tied else {"rank": place}
    rows = rows.drop("tied", strict=False).with_columns(
        pl.when(terms.is_listed).then(value).alias(name) for name, value in places.items()
    )
    settings = replace(
        settings, preset=None, users="all", undefined=None, unjudged="miss", depth=None
    )
    types = {name: dtype for name, dtype in run.schema.items() if name != "tied"}
    schema = pl.Schema({**types, **dict.fromkeys(places, pl.Int64())})
    # its own rows have neither these ranks nor this order
    run = replace(run, rank="rank", score=None, schema=schema, rows=None)
    tables = replace(joined.tables, run=run, settings=settings)
    joined = judgment.with_items(joined.with_plans(tables=tables), rows)
    return joined.with_plans(placed=rows.filter(terms.is_listed))
