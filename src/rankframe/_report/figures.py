"""Draw the charts of a report from its numbers: Altair charts by name."""

from __future__ import annotations

from math import inf
from typing import TYPE_CHECKING

import polars as pl

from rankframe._evaluation import user_columns
from rankframe._report import facts
from rankframe._report.facts import Numbers
from rankframe._request import labels
from rankframe._tables import column_roles
from rankframe.plot import _altair as alt
from rankframe.plot import _at_k, _marks, _panels, _per_user, _segments, _trend
from rankframe.plot._colors import Systems

if TYPE_CHECKING:
    from altair.typing import ChartType

_TIMES = ("day", "date", "week", "month")  # segments that are times, whatever their type
_MOST_ROWS = 60  # of a chart of segments


def charts_of(numbers: Numbers) -> dict[str, ChartType]:
    charts: dict[str, ChartType] = {}
    call, values = numbers.call, numbers.values
    groups, rows = [call.by], values.rows
    if numbers.cut_means is not None:
        cuts = values.cuts.filter(pl.col("label").is_in(numbers.cut_means["metric"].to_list()))
        for place, labels in enumerate(cuts.partition_by("metric", maintain_order=True)):
            means = numbers.cut_means.filter(pl.col("metric").is_in(labels["label"].to_list()))
            charts[f"cut-{place}"] = _at_k.picture(
                means,
                labels,
                groups,
                call.options,
                confidence=call.trial.confidence,
            ).properties(height=210)
    if numbers.of_relevant is not None:
        charts["relevant"] = _by_segment(numbers, facts.RELEVANT, numbers.of_relevant)
    name = numbers.user_metric
    if name is not None and call.settings.weights is None:
        charts["distribution"] = _per_user.picture(
            rows.select(call.by, values.values.user, name, user_columns.MISSED),
            groups,
            baseline=_baseline(numbers),
            nouns=numbers.nouns,
        )
    for place, (name, table) in enumerate(numbers.segments.items()):
        if table.height > 1 and (name in _TIMES or table.schema[name].is_temporal()):
            charts |= _by_time(numbers, name, table, f"segment-{place}")
        elif table.height > 1:
            charts[f"segment-{place}"] = _by_segment(numbers, name, table)
    return charts


def _by_time(numbers: Numbers, name: str, table: pl.DataFrame, chart: str) -> dict[str, ChartType]:
    """Draw the difference, or without a baseline the mean, over time, and users without a list."""
    by, drawn = numbers.call.by, "difference" if "difference" in table.columns else "mean"
    title, limits = f"{drawn} in {numbers.decides}", (-inf, inf)
    if drawn == "mean":
        title, limits = f"mean {numbers.decides}", labels.traits_of_name(numbers.decides)[1:]
    rows = table.filter(pl.col(by).is_in(numbers.shown or numbers.systems)).drop_nulls(name)
    days = _trend.over_time(rows.with_columns(mean=drawn), name, [by], limits)
    look = Systems(days["system"].unique(maintain_order=True).to_list(), by)
    domain = _trend.domain_of(days, limits)
    days = _trend.with_names(days, look, domain, 260)
    layers = _trend.means(days, look, name, title, domain)
    layers += [_marks.zero_line().encode(y=alt.YDatum(0))] if drawn == "difference" else []
    pictures = {chart: layers, f"{chart}-missed": _trend.missed(days, look, name)}
    missed = bool((days["missed"] > 0).any())
    return {
        key: _panels.layered(*layers, data=days, width="container", height=height)
        for (key, layers), height in zip(
            pictures.items(), (260, 70) if missed else (260,), strict=False
        )
    }


def _baseline(numbers: Numbers) -> str | None:
    baseline = numbers.call.trial.baseline
    return None if baseline is None else column_roles.in_words(baseline)


def _by_segment(numbers: Numbers, name: str, table: pl.DataFrame) -> ChartType:
    """Draw the difference, or without a baseline the mean, in each segment with its interval."""
    by, drawn = numbers.call.by, "difference" if "difference" in table.columns else "mean"
    shown = numbers.shown or numbers.systems
    rows = table.filter(pl.col(by).is_in(shown)).head(_MOST_ROWS)
    rows = _segments.rows_of(rows.with_columns(metric=pl.lit(numbers.decides)), [name], [by], drawn)
    look = Systems([*map(column_roles.in_words, shown)], by, baseline=_baseline(numbers))
    layers = _segments.layers_of(rows, look, drawn, numbers.trial.confidence)
    height = _segments.height_of(rows)
    chart: ChartType = _panels.layered(*layers, data=rows, width="container", height=height)
    return chart
