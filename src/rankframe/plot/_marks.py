"""Make the parts of pictures: axes, tooltips, and the looks of systems, metrics and verdicts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor, inf, log10
from typing import Any

import polars as pl

from rankframe._comparison import decision, sentences, summaries
from rankframe._request.labels import RequestedMetric
from rankframe.plot import _altair as alt
from rankframe.plot import _colors
from rankframe.plot._colors import Systems

_SHARES = ("share", "target", "exposure", "values", "zeros", "missed")  # read in percent
_P_VALUES = ("p_value", "p_adjusted", "p_equivalent", "p_not_worse")
#: colors that are visible on the background of any theme
INK, GRAY, REST, PALE, USERS = map(
    _colors.ink, (_colors.INK, _colors.GRAY, _colors.REST, _colors.PALE, _colors.USERS)
)
COLORS = [*map(_colors.ink, _colors.COLORS)]
#: white if the theme has no background of its own
BACKGROUND: Any = {"expr": "background || 'white'"}


# ------------------------------------------------------------------ axes and lines


def axis_of(**options: Any) -> alt.Axis:
    """Make an axis whose grid is paler than the data, in every theme."""
    return alt.Axis(**{"gridColor": PALE, **options})


def change_axis(**options: Any) -> alt.Axis:
    """Make an axis of differences: signed, except for 0."""
    return axis_of(labelExpr="datum.value === 0 ? '0' : datum.label", **options)


def with_halo(base: alt.Chart, text: str, **mark: Any) -> list[alt.Chart]:
    """Write text in ink, on its outline in the background color to be readable on lines."""
    outline: dict[str, Any] = {"stroke": BACKGROUND, "strokeWidth": 3, "opacity": 0.8}
    ink = alt.value(INK)
    return [base.mark_text(**mark, **look).encode(text=text, color=ink) for look in (outline, {})]


def zero_line() -> alt.Chart:
    """Draw a single line, not one per row of the table."""
    rule: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rule(color=GRAY, strokeDash=[4, 3])
    return rule


# ------------------------------------------------------------------ tooltips


def described(
    chart: alt.Chart, table: pl.DataFrame, rows: Mapping[str, str | Sequence[str]]
) -> alt.Chart:
    """Add a tooltip in words: a title and a column per row, or the columns that it joins."""
    tips: list[alt.Tooltip] = []
    for title, fields in rows.items():
        names = [fields] if isinstance(fields, str) else [*fields]
        if any(name not in table.columns for name in names):
            continue
        complete_rows = table.select(pl.col(names).cast(pl.String).replace("", None)).drop_nulls()
        if complete_rows.is_empty():
            continue
        formats = [_format_of(name, table.schema[name]) for name in names]
        if len(names) == 1 and formats[0] and len(complete_rows) == len(table):
            tips.append(alt.Tooltip(f"{names[0]}:Q", title=title, format=formats[0]))
            continue
        if len(names) == 1 and not formats[0] and names[0] not in _P_VALUES:
            tips.append(alt.Tooltip(f"{names[0]}:N", title=title))
            continue
        text = f"{' and '.join(names)} in words"
        chart = chart.transform_calculate(**{text: _in_words(names, formats)})
        tips.append(alt.Tooltip(f"{text}:N", title=title))
    described_chart: alt.Chart = chart.encode(tooltip=tips)
    return described_chart


def _format_of(name: str, dtype: pl.DataType) -> str:
    """Return how a tooltip writes a column of numbers; empty for text and for p-values."""
    if not dtype.is_numeric() or name in _P_VALUES:
        return ""
    return ".1~%" if name in _SHARES else ".4~f" if dtype.is_float() else ",d"


def _in_words(names: Sequence[str], formats: Sequence[str]) -> str:
    """Write columns as an expression of Vega: a number, both ends of an interval, or counts."""
    parts: list[str] = []
    for name, own in zip(names, formats, strict=True):
        value = f"datum['{name}']"
        small = f"{value} < 0.0001 ? '<0.0001' : " if name in _P_VALUES else ""
        parts.append(f"({small}format({value}, '{own or '.4f'}'))")
    text = (" + ' to ' + " if len(parts) == 2 else " + ' / ' + ").join(parts)
    if len(parts) == 2:
        text = f"{parts[0]} === {parts[1]} ? {parts[0]} : {text}"
    return f"isValid(datum['{names[0]}']) ? {text} : '–'"


def sure(confidence: float) -> str:
    """Name an interval by its confidence."""
    return f"{confidence * 100:.10g}% interval"


# ------------------------------------------------------------------ looks


def color_of(systems: Systems, *, legend: bool = False) -> dict[str, Any]:
    """Assign a color to each system; of many, only to the best ones."""
    if systems.column is None:
        return {"color": alt.value(COLORS[0])}
    rest = REST if systems.are_many else _colors.ink(_colors.BASELINE)
    return {"color": alt.Color("system:N", **_coded(systems, COLORS, rest, legend=legend))}


def shape_of(systems: Systems, *, legend: bool = False) -> dict[str, Any]:
    """Assign shapes to the points of systems; of many, a circle to all but the best."""
    if systems.column is None:
        return {}
    coded = _coded(systems, _colors.SHAPES, "circle", legend=legend)
    return {"shape": alt.Shape("system:N", **coded)}


def _coded(systems: Systems, codes: Sequence[Any], rest: Any, *, legend: bool) -> dict[str, Any]:
    looks = [rest if at is None else codes[at % len(codes)] for at in systems.places()]
    shown = legend_of(
        sentences.one_line(systems.column),
        labelExpr=systems.short.label,
        **({"values": list(systems.best)} if systems.are_many else {}),
    )
    scale = alt.Scale(domain=list(systems.names), range=looks)
    return {"scale": scale, "legend": shown if legend else None}


def legend_of(title: str, **options: Any) -> alt.Legend:
    """Make a legend that lists every value."""
    fixed: dict[str, Any] = {"symbolLimit": 0, "symbolOpacity": 1, "padding": 8, "labelLimit": 220}
    return alt.Legend(title=title, **{**fixed, **options})


def points_of(
    base: alt.Chart, systems: Systems, size: int, *, legend: bool = False, **mark: Any
) -> alt.Chart:
    """Draw points in the shapes of their systems; of many, smaller ones but of the best."""
    look = {**shape_of(systems, legend=legend), **_emphasis(systems, "size", 40, 24)}
    points: alt.Chart = base.mark_point(filled=True, opacity=1, size=size, **mark).encode(**look)
    return points


def hollow(base: alt.Chart) -> alt.Chart:
    """Draw the outlines of points; filled ones above hide those in the same place."""
    look: dict[str, Any] = {"fill": BACKGROUND, "strokeWidth": 1.5, "opacity": 1}
    points: alt.Chart = base.mark_point(filled=False, size=30, **look)
    return points


def lines_of(base: alt.Chart, systems: Systems, **mark: Any) -> alt.Chart:
    lines: alt.Chart = base.mark_line(**mark).encode(**_emphasis(systems, "strokeWidth", 2.5, 1.2))
    return lines


def _emphasis(systems: Systems, channel: str, best: float, others: float) -> dict[str, Any]:
    """Draw the best of many systems larger."""
    if not systems.are_many:
        return {}
    is_best = alt.FieldOneOfPredicate("system", list(systems.best))
    return {channel: alt.when(is_best).then(alt.value(best)).otherwise(alt.value(others))}


def names_beside(
    base: alt.Chart, systems: Systems, value: str, up: Mapping[str, Any], x: alt.X | None = None
) -> list[alt.Chart]:
    """Write names to the right of the frame, each behind its bullet, and a line from ``x``."""
    named = base.transform_filter("isValid(datum.name)")
    edge = named.encode(x=alt.value("width"), y=alt.Y("name_at:Q", **up))
    bullet = edge.mark_point(filled=True, opacity=1, size=40, xOffset=9).encode(**shape_of(systems))
    text = edge.mark_text(align="left", dx=17, fontSize=11)
    layers = [bullet, text.encode(text="name:N", color=alt.value(INK))]
    if x is None:
        return layers
    leader = named.mark_rule(strokeWidth=0.8, opacity=0.6)
    ends: dict[str, Any] = {"x": x, "x2": alt.value("width"), "y2": "name_at:Q"}
    return [leader.encode(y=alt.Y(f"{value}:Q", **up), **ends), *layers]


def dash_of(metrics: Sequence[str]) -> dict[str, Any]:
    """Dash the lines of metrics that share a panel."""
    dashes = [_colors.DASHES[place % len(_colors.DASHES)] for place in range(len(metrics))]
    scale = alt.Scale(domain=list(metrics), range=dashes)
    return {"strokeDash": alt.StrokeDash("metric:N", scale=scale, legend=None)}


def limits_of(requested: Sequence[RequestedMetric]) -> dict[str, tuple[float, float]]:
    """Return the declared range of each metric; a sum or an own expression has none."""
    limits: dict[str, tuple[float, float]] = {}
    for metric in requested:
        is_sum = metric.over_users.aggregate == "sum"
        limits[metric.name] = (-inf, inf) if is_sum else metric.traits[1:]
        call = metric.call
        if call is not None and call.entry.plain == "coverage" and not metric.option("count"):
            limits[metric.name] = (0, 1)  # its declared range is that of counts
    return limits


def within(limits: tuple[float, float], values: pl.Series) -> tuple[float, float]:
    """Return the limits, without one that a value exceeds: a declared range may be wrong."""
    low, high = bounds(values)
    least, most = limits
    return (least if least <= low else -inf, most if high <= most + 1e-9 else inf)


def round_ends(low: float, high: float, limits: tuple[float, float]) -> tuple[float, float]:
    """Return round ends of an axis that do not exceed the range of a metric."""
    if not high > low:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    step = round_step((high - low) / 8)
    least, most = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
    return round(max(least, limits[0]), 12), round(min(most, limits[1]), 12)


def bounds(*columns: pl.Series) -> tuple[float, float]:
    """Return the least and the greatest number in columns; 0 and 1 if there is none."""
    values = pl.concat([column.cast(pl.Float64).alias("value") for column in columns]).to_frame()
    least, greatest = values.select(low=pl.min("value"), high=pl.max("value")).row(0)
    return (0.0, 1.0) if least is None else (least, greatest)


def round_step(least: float) -> float:
    """Return the least multiple of a power of ten by 1, 2 or 5 that is ≥ ``least``."""
    power = 10.0 ** floor(log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))


def margins(rows: pl.DataFrame, confidence: float) -> pl.Expr:
    """Compute half of Student's intervals from spreads and counts."""
    summaries.check_packages()
    reach = decision.quantile(confidence, rows["users"].to_numpy() - 1.0)
    return (
        pl.lit(pl.Series(reach).fill_nan(None))
        * pl.col("std").fill_nan(None)
        / pl.col("users").sqrt()
    )


def ticks(lowest: float, highest: float) -> dict[str, Any]:
    """Choose the ticks of an axis whose left end has no meaning."""
    step = round_step((highest - lowest) / 6)
    first, last = ceil(lowest / step - 1e-9), floor(highest / step + 1e-9)
    return {"values": [round(place * step, 10) for place in range(first, last + 1)]}
