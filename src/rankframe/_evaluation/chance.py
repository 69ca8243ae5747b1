"""After the reduction: chance and ceiling, the values of the lists in other orders."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import polars as pl

from rankframe._evaluation import reduction
from rankframe._evaluation.values import Values
from rankframe._request import labels, registry
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question
from rankframe._request.registry import Reading
from rankframe._tables import guards
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Tables
from rankframe._vocabulary import scope_rows, terms
from rankframe.errors import Problem, option


def check(metric: RequestedMetric, reading: Reading, tables: Tables) -> None:
    """Check that a metric has an expectation in random order, and that the best order is known."""
    positions = [] if (why := _why_none(metric, reading, tables)) else _positions(metric)
    if positions:
        why = f"it reads {positions[0]!r}, which has no exact expectation in random order"
    if why:
        msg = (
            f"{option('chance', value=True)}: metric {metric.name!r} has none: {why}: leave it out"
        )
        raise ValueError(Problem(msg))
    labels.direction_of(metric)


def _why_none(metric: RequestedMetric, reading: Reading, tables: Tables) -> str:
    if metric.is_of_all_lists:
        return "it is one number for all lists"
    if not metric.per_user and metric.over_users.epsilon is not None:
        return "a geometric mean has no exact expectation"
    if tables.has_subtopics and reading.scope == "subtopic":
        return "which order of subtopics is the best is not known"
    if reading.lists_alone or metric.distribution is not None:
        return "it reads no grade of an item, by which an order is the best"
    return ""


def _positions(metric: RequestedMetric) -> list[str]:
    """Name the columns that a metric reads, in its form under ties, and that need one rank."""
    of_ranks = [name for name, column in registry.COLUMNS.items() if column.in_ties == "ranks"]
    return sorted(n for n in labels.in_ties(metric).reads if n.partition("(")[0] in of_ranks)


def with_chance(values: Values, question: Question) -> Values:
    """Add what a random order of each list gives, and what its ideal order gives, if requested."""
    if not question.settings.chance:
        return values
    metrics = {metric.name: metric for metric in question.requested}
    rows, requested = values.rows, [*values.requested]
    for end, tied in (("chance", True), ("ceiling", False)):
        added: list[RequestedMetric] = []
        for metric in metrics.values():
            form, name = labels.in_ties(metric) if tied else metric, f"{metric.name}_{end}"
            added.append(replace(form, name=name, expr=form.expr.alias(name)))
        labels.check_names([*requested, *added], values.keys)
        other = reduction.reduced(reordered(values.source, tied=tied), added).rows
        # a user of whom only the value is known has no list, or a value for undefined ones
        own = [
            pl.coalesce(n.name, name).alias(n.name) for name, n in zip(metrics, added, strict=True)
        ]
        rows = rows.join(other, on=values.keys, how="left").with_columns(own)
        requested += added
    places = {metric.name: place for place, metric in enumerate(values.requested)}
    requested.sort(key=lambda m: places.get(m.name, places.get(m.name.rpartition("_")[0], 0)))
    types = rows.collect_schema()
    flag = guards.flag(rows, pl.any_horizontal(*reduction.infinite(types, values.keys)))
    checks = values.checks.with_more(
        [flag], partial(reduction.raise_not_finite, rows, values.source)
    )
    return values._replace(requested=requested, rows=rows, types=types, checks=checks)


def reordered(joined: Joined, *, tied: bool) -> Joined:
    """Put all items of each list into one block of ties, or into the order of their grades."""
    settings, keys, run = joined.tables.settings, joined.keys, joined.tables.run
    rows = scope_rows.with_final_lists(joined)
    length = terms.count(terms.rank.count().over(keys))
    grade = pl.when(terms.is_judged).then(terms.relevance.cast(pl.Float64)).otherwise(-1.0)
    order = [terms.rank.is_null(), -grade, terms.rank]
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
    run = replace(run, rank="rank", score=None, schema=schema)
    tables = replace(joined.tables, run=run, settings=settings)
    plans = dict.fromkeys(("_table", "_items", "_ranked_truth"), rows)
    return joined.with_plans(
        tables=tables,
        placed=rows.filter(terms.is_listed),
        id_ranges={},
        numbered=(),
        counts_show_duplicates=False,
        **plans,
    )
