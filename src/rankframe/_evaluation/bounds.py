"""After the reduction: bounds, the values under other judgments (wider ``Values``)."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import reduction
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question
from rankframe._tables import judgment
from rankframe._tables.judgment import Joined


class _Judgments(NamedTuple):
    """Which of the unjudged items of the lists are relevant: those down to k, those below."""

    inside: bool
    below: bool
    k: int | None = None


_NONE, _ALL = _Judgments(inside=False, below=False), _Judgments(inside=True, below=True)


def extreme_judgments(requested: RequestedMetric, *, tied: bool) -> tuple[_Judgments, _Judgments]:
    """Return the judgments that make a metric least and greatest, in either order."""
    kind, k = labels.extremes_of(requested), requested.option("k")
    if kind == "none or all":
        return _NONE, _ALL
    if kind == "above or below k" and not tied:
        inside = _Judgments(inside=True, below=False, k=k)
        below = _Judgments(inside=False, below=True, k=k)
        return (_NONE, _ALL) if k is None else (below, inside)
    under = " under ties" if kind and tied else ""
    msg = (
        f"metric {requested.name!r}: it has no proven bounds{under}: add its unjudged items "
        "to the truth, once as relevant and once as not (a recipe of the guide), or leave it out"
    )
    raise ValueError(msg)


def with_bounds(values: Values, question: Question) -> Values:
    """Add the least and the greatest value that judgments can give, if requested."""
    if question.settings.unjudged != "bounds":
        return values
    keys, joined = values.keys, values.source
    columns: list[pl.Expr] = []
    requested: list[RequestedMetric] = []
    read: dict[_Judgments, list[RequestedMetric]] = {}
    for plain, metric in zip(question.requested, values.requested, strict=True):
        extremes = extreme_judgments(plain, tied=joined.tables.tied)
        for judgments in extremes:
            read.setdefault(judgments, []).append(metric)
        names = [metric.name, *(_name_under(judgments, metric) for judgments in extremes)]
        values_of = pl.col(metric.name), pl.min_horizontal(names), pl.max_horizontal(names)
        for end, value in zip(("", "_low", "_high"), values_of, strict=True):
            requested.append(replace(metric, name=f"{metric.name}{end}"))
            defined = pl.when(pl.col(metric.name).is_not_null()).then(value)
            columns.append(defined.alias(requested[-1].name))
    labels.check_names(requested, keys)
    rows, checks = values.rows, values.checks
    for judgments, metrics in read.items():
        other = reduction.reduced(_judged_in(judgments, joined), metrics)
        under = {metric.name: _name_under(judgments, metric) for metric in metrics}
        rows = rows.join(other.rows.rename(under), on=keys, how="left")
        checks = checks.with_more(other.checks.flags, *other.checks.raisers)
    rows = rows.select(*keys, *columns)
    return values._replace(
        requested=requested, rows=rows, types=rows.collect_schema(), checks=checks
    )


def _name_under(judgments: _Judgments, requested: RequestedMetric) -> str:
    """Name the column of a metric under other judgments."""
    return f"{labels.PREFIX}{judgments.inside}_{judgments.below}_{judgments.k}_{requested.name}"


def _judged_in(judgments: _Judgments, joined: Joined) -> Joined:
    """Set the grade of unjudged items of the lists to the highest one, or to 0."""
    depth = joined.tables.settings.depth
    grade, rank = pl.col("relevance"), pl.col("rank")
    listed = rank.is_not_null() if depth is None else (rank <= depth)
    unjudged = listed & ~(grade >= 0).fill_null(value=False)
    inside = pl.lit(value=True) if judgments.k is None else rank <= judgments.k
    top = joined.top_grade
    substitute = (
        pl.when(inside)
        .then(top if judgments.inside else 0)
        .otherwise(top if judgments.below else 0)
    )
    return judgment.with_grades(joined, pl.when(unjudged).then(substitute).otherwise(grade))
