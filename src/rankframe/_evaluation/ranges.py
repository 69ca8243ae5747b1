"""Compares values with the declared ranges of their metrics, on which intervals and gates rely."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import isfinite

import polars as pl

from rankframe._evaluation.values import Values
from rankframe._request.labels import RequestedMetric
from rankframe._tables import guards, rules
from rankframe.errors import RankingDataError

_DUST = 1e-9  # by which rounding may exceed a range


def outside(metric: RequestedMetric) -> pl.Expr | None:
    """Return which values are outside the range of their metric, if it has one."""
    _, least, greatest = metric.traits
    ends = [abs(end) for end in (least, greatest) if isfinite(end)]
    if not ends:
        return None
    dust = _DUST * max(1.0, *ends)
    value = pl.col(metric.name).cast(pl.Float64)
    return (value < least - dust) | (value > greatest + dust)


def span(metric: RequestedMetric) -> str:
    """Write the range of a metric."""
    _, least, greatest = metric.traits
    return f"{least:g} to {greatest:g}"


def with_registered_checked(values: Values) -> Values:
    """Check the values of registered metrics; a test knows that ours are in their ranges."""
    wrong: dict[str, pl.Expr] = {}
    for metric in values.requested:
        is_registered = metric.call is not None and metric.call.entry.registered
        if is_registered and (broken := outside(metric)) is not None:
            wrong[metric.name] = broken
    if not wrong:
        return values
    flag = guards.flag(values.rows, pl.any_horizontal(broken.any() for broken in wrong.values()))
    raiser = partial(_raise_outside, values.rows, values.keys, values.requested, wrong)
    return values._replace(checks=values.checks.with_more([flag], raiser))


def _raise_outside(
    rows: pl.LazyFrame,
    keys: Sequence[str],
    requested: Sequence[RequestedMetric],
    wrong: Mapping[str, pl.Expr],
) -> None:
    for metric in requested:
        if metric.name not in wrong:
            continue
        row = rows.filter(wrong[metric.name]).sort(keys).select(*keys, metric.name).head(1)
        if not (first := row.collect()).is_empty():
            msg = (
                f"metric {metric.name!r}: a value outside its range, {span(metric)}: correct it, "
                "or declare another, value_range= of rf.register_metric. Offending row: "
                f"{rules.format_row(first)}"
            )
            raise RankingDataError(msg)
