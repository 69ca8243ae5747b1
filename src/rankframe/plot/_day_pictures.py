"""Draw means over time, and the users without a list below them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import altair as alt
import polars as pl

from rankframe._comparison import sentences
from rankframe._request import labels
from rankframe.plot import _colors, _marks, _panels, _tables
from rankframe.plot._colors import Systems

_MOST_POINTS = 60  # times whose means are marked
_FEW_DAYS = timedelta(days=12)  # which all have a label
_WIDTH = 560


def trend(
    table: pl.DataFrame,
    metric: str,
    time: str,
    groups: Sequence[str],
    floor: float | None,
    *,
    confidence: float,
) -> alt.LayerChart | alt.VConcatChart:
    """Draw the means of a metric, and below them the users without a list, if there are any."""
    higher, *limits = labels.traits_of_name(metric)
    systems = _colors.systems_of(_tables.best_first(table, "mean", higher_is_better=higher), groups)
    has_band = table["ci_low"].count() > 0
    counted = f"Mean over {sentences.users(table['users'].drop_nulls())}"
    lines = [f"{counted}, with {confidence * 100:.10g}% intervals" if has_band else counted]
    if "times" in table.columns:
        lines.append(f"a point averages {table['times'][0]} times (no list: their greatest share)")
    if systems.are_many:
        lines.append(_tables.selectable("mean", interval=False))
    elif has_band and len(systems.names) > 1:
        lines.append("overlapping bands are not a test: see compare")
    name = sentences.one_line(time)
    title = _panels.title_of(f"{sentences.one_line(metric)} by {name}", *lines)
    below = bool((table["missed"] > 0).any())
    wide = _WIDTH if below else None
    up = f"mean {sentences.one_line(metric)}"
    upper = means(table, systems, None if below else name, up, (limits[0], limits[1]), floor=floor)
    if not below:
        return _panels.alone(upper, table, title, wide=wide, height=300)
    charts = [
        _panels.alone(upper, table, alt.TitleParams(""), wide=wide, height=260),
        _panels.alone(
            missed(table, systems, name), table, alt.TitleParams(""), wide=wide, height=70
        ),
    ]
    return alt.vconcat(*charts, data=table, title=title, spacing=8)


def means(
    table: pl.DataFrame,
    systems: Systems,
    time: str | None,
    title: str,
    limits: tuple[float, float],
    *,
    floor: float | None = None,
) -> list[alt.Chart]:
    """Draw lines and points of means on their bands."""
    drawn = table.select("mean", "ci_low", "ci_high", floor=pl.lit(floor, pl.Float64))
    low, high = drawn.select(
        pl.min_horizontal(pl.all().min()), high=pl.max_horizontal(pl.all().max())
    ).row(0)
    domain = _tables.round_ends(low, high, limits)
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    up: dict[str, Any] = {"title": title, "scale": scale, "axis": _marks.axis_of()}
    base = _base(table, systems, time)
    lines = _marks.lines_of(base, systems).encode(y=alt.Y("mean:Q", **up))
    points = _marks.points_of(base, systems, 28, _marks.chosen()).encode(y=alt.Y("mean:Q", **up))
    if table["time"].n_unique() > _MOST_POINTS:  # those without neighbors have no line
        points = points.transform_filter("datum.alone")
    layers = [points, lines]  # Altair looks for selections in the first layer
    if not systems.are_many:
        band = base.mark_area(opacity=0.15 if len(systems.names) < 4 else 0.1)
        layers = [band.encode(y=alt.Y("ci_low:Q", **up), y2="ci_high:Q"), lines, points]
    if floor is not None:
        rule = alt.Chart(alt.InlineData([{}]))
        at = alt.YDatum(floor)
        layers.append(rule.mark_rule(color=_marks.INK, strokeDash=[6, 3]).encode(y=at))
        side: dict[str, Any] = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "x": 0}
        label = rule.transform_calculate(floor=f"'floor {floor:g}'").encode(y=at)
        layers += _marks.with_halo(label, "floor:N", **side)
    return layers


def missed(table: pl.DataFrame, systems: Systems, time: str) -> list[alt.Chart]:
    """Draw the share of users without a list."""
    base = _base(table, systems._replace(legend=False), time)
    axis = _marks.axis_of(format="%", tickCount=3)
    y = alt.Y("missed:Q", title="no list", axis=axis, scale=alt.Scale(domainMin=0))
    alone = base.mark_point(filled=True, size=28, opacity=1).transform_filter("datum.alone")
    return [_marks.lines_of(base, systems).encode(y=y), alone.encode(y=y)]


def _base(table: pl.DataFrame, systems: Systems, time: str | None) -> alt.Chart:
    dtype = table.schema["time"]
    kind = "T" if dtype.is_temporal() else "Q" if dtype.is_numeric() else "O"
    own: dict[str, Any] = {"format": "d", "tickMinStep": 1} if kind == "Q" else {}
    first, last = pl.col("time").min(), pl.col("time").max()
    if dtype == pl.Date and table.select(last - first < _FEW_DAYS).item():
        own = {"format": "%b %d", "tickCount": {"interval": "day", "step": 1}}
    axis = _marks.axis_of(grid=False, labels=time is not None, labelOverlap=True, **own)
    scale = alt.Scale(zero=False, nice=False) if kind == "Q" else alt.Undefined
    base = alt.Chart().encode(
        x=alt.X(f"time:{kind}", title=time, axis=axis, scale=scale, sort=None),
        **_marks.color_of(systems),
    )
    words: dict[str, str | Sequence[str]] = {"system": "system", "time": "at", "mean": "mean"}
    words |= {"interval": ("ci_low", "ci_high"), "no list": "missed", "users": "users"}
    return _marks.described(base, table, words)
