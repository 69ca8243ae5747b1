"""After the reduction: bounds and scenarios, values under other judgments (wider ``Values``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import reduction
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question
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
        inside = _Judgments(inside=True, below=False, k=k)
        below = _Judgments(inside=False, below=True, k=k)
        return (_NONE, _ALL) if k is None else (below, inside)
    under = " under ties" if kind and tied else ""
    msg = (
        f"metric {requested.name!r}: no bounds are proven for it{under}; scenarios=True reports "
        "its values if none and if all of the unjudged items are relevant"
    )
    raise ValueError(msg)


def with_judgments(values: Values, question: Question) -> Values:
    """Add the values of metrics under other judgments of the unjudged items, if requested."""
    if not (question.settings.bounds or question.settings.scenarios):
        return values
    keys, judged = values.keys, values.source
    columns: list[pl.Expr] = []
    requested: list[RequestedMetric] = []
    read: dict[_Judgments, list[RequestedMetric]] = {}
    scenarios = (_NONE, _ALL) if question.settings.scenarios else ()
    for plain, metric in zip(question.requested, values.requested, strict=True):
        extremes = extreme_judgments(plain, tied=judged.tied) if question.settings.bounds else ()
        expressions = {metric.name: pl.col(metric.name)}
        expressions |= _between(metric, extremes) | _in_scenarios(metric, scenarios)
        for judgments in dict.fromkeys([*extremes, *scenarios]):
            read.setdefault(judgments, []).append(metric)
        columns += [value.alias(name) for name, value in expressions.items()]
        requested += [metric._replace(name=name) for name in expressions]
    labels.check_names(requested, keys)
    rows, checks = values.rows, values.checks
    for judgments, metrics in read.items():
        other = reduction.reduced(_judged_in(judgments, judged), metrics)
        names = {metric.name: _name_under(judgments, metric) for metric in metrics}
        rows = rows.join(other.rows.rename(names), on=keys, how="left")
        checks = checks.with_more(other.checks.flags, *other.checks.raisers)
    rows = rows.select(*keys, *columns)
    return values._replace(
        requested=requested, rows=rows, types=rows.collect_schema(), checks=checks
    )


def _between(metric: RequestedMetric, extremes: Sequence[_Judgments]) -> dict[str, pl.Expr]:
    if not extremes:
        return {}
    names = [metric.name, *(_name_under(judgments, metric) for judgments in extremes)]
    defined = pl.when(pl.col(metric.name).is_not_null())
    return {
        f"{metric.name}_low": defined.then(pl.min_horizontal(names)),
        f"{metric.name}_high": defined.then(pl.max_horizontal(names)),
    }


def _in_scenarios(metric: RequestedMetric, scenarios: Sequence[_Judgments]) -> dict[str, pl.Expr]:
    if not scenarios:
        return {}
    pair = [_name_under(judgments, metric) for judgments in scenarios]
    # null unless both are defined: their means must be over the same users
    both = pl.when(*(pl.col(name).is_not_null() for name in pair))
    ends = ("if_none", "if_all")
    return {f"{metric.name}_{end}": both.then(name) for end, name in zip(ends, pair, strict=True)}


def _name_under(judgments: _Judgments, requested: RequestedMetric) -> str:
    """Name the column of a metric under other judgments."""
    return f"{labels.INNER}{judgments.inside}_{judgments.below}_{judgments.k}_{requested.name}"


def _judged_in(judgments: _Judgments, judged: Judged) -> Judged:
    """Set the grade of unjudged items of the lists to the highest one, or to 0."""
    depth = judged.settings.depth
    judged = judged._replace(settings=replace(judged.settings, judged_only=False))
    grade, rank = pl.col("relevance"), pl.col("rank")
    listed = rank.is_not_null() if depth is None else (rank <= depth)
    unjudged = listed & ~(grade >= 0).fill_null(value=False)
    inside = pl.lit(value=True) if judgments.k is None else rank <= judgments.k
    top = judged.top_grade
    substitute = (
        pl.when(inside)
        .then(top if judgments.inside else 0)
        .otherwise(top if judgments.below else 0)
    )
    return judgment.with_grades(judged, pl.when(unjudged).then(substitute).otherwise(grade))
