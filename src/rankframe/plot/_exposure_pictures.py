"""Draw exposure, and one metric against another: shares, Lorenz curves and trade-offs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt
import polars as pl

from rankframe._comparison import sentences
from rankframe._evaluation import system_metrics
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.share_names import Target
from rankframe.errors import RankingDataError
from rankframe.plot import _colors, _marks, _panels, _tables
from rankframe.plot._colors import Systems
from rankframe.plot._tables import Call

_TARGETS: dict[str, str] = {
    "catalogue": "the share in the catalogue",
    "uniform": "equal shares",
    "history": "the share in the history",
    "truth": "the share in the relevant items",
    "judged": "the share in the judged items",
    "candidates": "the share in the catalogue without each user's history",
}
_MOST_CROSSED = 2  # lines behind a name that is still readable
_FEW = 20  # values on a linear scale
_GAP = 5  # pixels between a point and its name
#: where a name may be: to the right of its point, and above it
_SIDES = {
    "right above": (True, True),
    "left above": (False, True),
    "right below": (True, False),
    "left below": (False, False),
}
#: left, low, right and high ends of a rectangle
_Box: TypeAlias = tuple[float, float, float, float]


def shares(
    exposures: pl.DataFrame,
    groups: Sequence[str],
    *,
    target: Target | None,
    lists: str,
    counted: str,
) -> alt.LayerChart | alt.FacetChart:
    """Draw the numbers of ``shares``; ``lists`` and ``counted`` say of which lists they are."""
    column = exposures.columns[len(groups)]
    name = sentences.one_line(column)
    table, others = _tables.shares_by_panel(exposures, groups, column)
    panels, values = _tables.texts(table["panel"]), _tables.texts(table["value"])
    _tables.check_panels(panels, "systems and segments")
    drawn, axis = "share", _marks.axis_of(format="~%", tickCount=5)
    if len(panels) > 1 and target is not None:
        in_points = "datum.value === 0 ? '0' : format(100 * datum.value, '+.3~g')"
        drawn, axis = "difference", _marks.axis_of(labelExpr=in_points, tickCount=5)
    columns = ["share", "target"] if drawn == "share" else [drawn]
    ends = _tables.bounds(
        pl.concat([pl.Series("", [0.0]), *(table[of].alias("") for of in columns)])
    )
    scale = alt.Scale(domain=[end * 1.03 for end in ends], nice=False)
    titles = {"share": "share of exposure", "difference": "share of exposure − target, points"}
    left = alt.Axis(labelLimit=120, titlePadding=10)
    base = alt.Chart().encode(y=alt.Y("value:N", title=name, sort=values, axis=left))
    words = {"system": "panel", name: "value", "share of exposure": "share", "target": "target"}
    base = _marks.described(base, table, words)
    systems = _colors.systems_of(_tables.texts(table["system"]), groups, legend=False)
    x = alt.X(f"{drawn}:Q", title=titles[drawn], scale=scale, axis=axis)
    layers = [
        base.mark_bar(height={"band": 0.75}).encode(x=x, **_marks.color_of(systems, distinct=True))
    ]
    lines = [counted, *([others] if others else [])]
    if target is not None:
        what = "target:" if drawn == "difference" else "ticks: target,"
        lines.append(f"{what} {_TARGETS[target]}")
    if drawn == "difference":
        layers.append(_marks.zero_line().encode(x=alt.XDatum(0)))
    else:
        halo: dict[str, Any] = {"stroke": _marks.BACKGROUND, "strokeWidth": 1}
        ticks = base.mark_tick(color=_marks.INK, thickness=4, size=17, opacity=1, **halo)
        ticks = ticks.transform_filter("isValid(datum.target)").encode(x=alt.X("target:Q"))
        layers.append(ticks)
    return _panels.in_panels(
        layers,
        table,
        _panels.title_of(f"Exposure of each {name} in {lists}", *lines),
        width=180,
        height=20 * len(values),
        columns=2 if len(panels) == 4 else 3,
        resolve="x",
    )


def lorenz(
    exposures: pl.DataFrame, groups: Sequence[str], *, of: str, lists: str, counted: str
) -> alt.LayerChart | alt.FacetChart:
    """Draw the cumulated exposure of ``shares``, said as in the chart of shares."""
    column = exposures.columns[len(groups)]
    rows = exposures.sort(*groups, "exposure")
    system, segment = sentences.system_and_segment(rows, groups)
    rows = rows.select(segment.alias("panel"), system, "exposure", "share")
    _tables.check_exposed(rows["share"], column)
    table = _tables.lorenz_points(rows)
    _tables.check_rows(table, "points", "fewer segments")
    panels = _tables.texts(table["panel"])
    _tables.check_panels(panels)
    names = _tables.best_first(table, "gini", higher_is_better=False)
    among = names if _colors.are_many(names) else _tables.texts(rows["system"])
    systems = _colors.systems_of(names, groups, among)
    what = {"item": "items", "shown": "items shown at all"}
    text = what.get(of, f"values of {sentences.one_line(column)}")
    curves = table.group_by("panel", "system", maintain_order=True).agg(
        pl.col("gini", "half").first(), pl.col("above").max()
    )
    half, number = (
        " to ".join(dict.fromkeys(f"{end:,.0f}" for end in sentences.ends(curves[name])))
        for name in ("half", "above")
    )
    return _panels.in_panels(
        _lorenz_layers(table, systems, text),
        table,
        _panels.title_of(
            f"Half of the exposure in {lists} goes to {half} of {number} {text}",
            counted,
            *_gini_texts(curves, names),
            "dashed: even exposure, Gini 0",
        ),
        width=260,
        wide=360,
        height=260 if len(panels) > 1 else 360,
    )


def _lorenz_layers(table: pl.DataFrame, systems: Systems, what: str) -> list[alt.Chart]:
    number = int(_tables.greatest(table, "above"))
    is_long = number > _FEW  # on a linear scale, the few that are shown would be one line
    scale = alt.Scale(type="log" if is_long else "linear", domain=[1, max(number, 2)], nice=False)
    shown = _marks.axis_of(format="~s", tickCount=5)
    axes: dict[str, Any] = {
        "x": alt.X(
            "above:Q", title=f"number of {what}, most exposed first", scale=scale, axis=shown
        ),
        "y": alt.Y(
            "top:Q",
            title="share of exposure",
            scale=_marks.FROM_0_TO_1,
            axis=_marks.axis_of(format="~%", tickCount=5),
        ),
    }
    steps = [number ** (step / 40) for step in range(41)]
    ends = alt.InlineData([{"above": step, "top": step / number} for step in steps])
    even = alt.Chart(ends).mark_line(color=_marks.GRAY, strokeDash=[4, 3], strokeWidth=1)
    even = even.encode(**axes)
    base = alt.Chart().transform_filter("datum.above > 0")
    base = base.transform_calculate(top="1 - datum.exposure")
    base = base.encode(**axes, **_marks.color_of(systems), order="values:Q")
    words = {"segment": "panel", "system": "system", f"number of {what}": "above"}
    words |= {"half of the exposure goes to": "half", "Gini": "gini"}
    base = _marks.described(base, table, words)
    points = _marks.points_of(base, systems, 30, _marks.chosen()).transform_filter("datum.marked")
    line = _marks.lines_of(base, systems)
    return [points, even, line] if systems.are_many else [even, line, points]


def trade_off(
    summary: pl.DataFrame, metrics: Sequence[Metric], call: Call, *, confidence: float
) -> alt.LayerChart | alt.FacetChart:
    """Draw the means and intervals of ``summarize``, one metric against the other."""
    requested = call.requested(metrics)
    limits = _tables.limits_of(requested)
    names = list(limits)
    table = _tables.both_ways(summary, call.groups, names)
    if table.is_empty():
        msg = f"metrics {names[0]!r} and {names[1]!r}: no system has a value of both"
        raise RankingDataError(msg)
    _tables.check_rows(table, "points", "fewer segments")
    panels = _tables.texts(table["panel"])
    _tables.check_panels(panels)
    systems = _systems_of(table, summary, requested[0], call.groups)
    size = (460, 340) if len(panels) == 1 else (280, 230)
    domains = {
        axis: _tables.padded(table, axis, limits[name])
        for axis, name in zip("xy", names, strict=True)
    }
    if systems.are_many:
        table = _tables.best_last(table, systems.names)
    table = _with_places(
        _with_labels(table, best_first=systems.are_many),
        domains,
        size,
        systems.best if systems.are_many else None,
    )
    without = table.filter(pl.col("label").is_not_null() & pl.col("place").is_null())
    has_all_names = systems.column is None or without.is_empty()
    table = table.with_columns(front=_on_front(table, requested))
    systems = systems._replace(legend=not has_all_names)
    across, up = map(sentences.one_line, names)
    front = "; dashed: none beats them in both" if table["front"].sum() > 1 else ""
    return _panels.in_panels(
        _trade_off_layers(table, systems, requested, domains, confidence),
        table,
        _panels.title_of(
            f"{up} against {across}",
            f"{sentences.users(table['users'])}{_tables.weighted_by(call.options)}; "
            f"lines: {confidence * 100:.10g}% intervals, not corrected{front}",
            *([_tables.selectable(names[0], interval=False)] if systems.are_many else []),
            *_tables.missed(summary, call.groups),
        ),
        width=size[0],
        wide=size[0],
        height=size[1],
    )


def _systems_of(
    table: pl.DataFrame, summary: pl.DataFrame, across: RequestedMetric, groups: Sequence[str]
) -> Systems:
    """Order the systems of a trade-off; their colors are among those of all systems."""
    higher = across.traits.higher_is_better
    names = _tables.best_first(table, "x", higher_is_better=higher)
    all_systems = _tables.texts(summary.select(sentences.text_of(summary, groups[:1])).to_series())
    return _colors.systems_of(names, groups, names if _colors.are_many(names) else all_systems)


def _trade_off_layers(
    table: pl.DataFrame,
    systems: Systems,
    requested: Sequence[RequestedMetric],
    domains: Mapping[str, tuple[float, float]],
    confidence: float,
) -> list[alt.Chart]:
    """Draw points, their intervals both ways, and the names that have a place."""
    titles = _axis_titles(requested)
    words: dict[str, str | Sequence[str]] = {"segment": "panel", "system": "label"}
    for axis, metric in zip("xy", requested, strict=True):
        text = sentences.one_line(metric.name)
        words |= {
            text: axis,
            f"{_marks.sure(confidence)} of {text}": (f"{axis}_low", f"{axis}_high"),
        }
    words["users"] = "users"
    base = _marks.described(alt.Chart().encode(**_marks.color_of(systems)), table, words)
    quiet = _marks.axis_of(tickCount=5, format=".3~g")
    axes: dict[str, Any] = {
        axis: {
            "title": title,
            "scale": alt.Scale(domain=list(domains[axis]), nice=False, zero=False),
        }
        for axis, title in zip("xy", titles, strict=True)
    }
    x, y = alt.X("x:Q", axis=quiet, **axes["x"]), alt.Y("y:Q", axis=quiet, **axes["y"])
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6, clip=True)
    if systems.are_many:  # crosses of all would hide the points
        bars = bars.transform_filter(alt.FieldOneOfPredicate("system", systems.best))
    layers = [
        bars.transform_filter("isValid(datum.x_low)").encode(
            x=alt.X("x_low:Q", **axes["x"]), x2="x_high:Q", y=y
        ),
        bars.transform_filter("isValid(datum.y_low)").encode(
            x=x, y=alt.Y("y_low:Q", **axes["y"]), y2="y_high:Q"
        ),
    ]
    base = base.encode(x=x, y=y)
    points = _marks.points_of(base, systems, 70, _marks.chosen())
    if table["front"].sum() > 1:
        best = alt.Chart().mark_line(color=_marks.GRAY, strokeDash=[4, 3], strokeWidth=1)
        layers.append(best.transform_filter("datum.front").encode(x=x, y=y, order="x:Q"))
    layers.insert(0 if systems.are_many else 2, points)
    for place in _tables.texts(table["place"].drop_nulls()):
        right, above = _SIDES[place]
        side: dict[str, Any] = {
            "align": "left" if right else "right",
            "baseline": "bottom" if above else "top",
            "dx": _GAP if right else -_GAP,
            "dy": -_GAP if above else _GAP,
        }
        named = base.transform_filter(f"datum.place === '{place}'")
        layers += _marks.with_halo(named, "label:N", fontSize=11, fontWeight="bold", **side)
    return layers


def _on_front(table: pl.DataFrame, requested: Sequence[RequestedMetric]) -> pl.Series:
    """Return which points no other one beats in both metrics; none without two directions."""
    signs = [metric.traits.higher_is_better for metric in requested]
    if None in signs:
        return pl.repeat(value=False, n=len(table), eager=True)
    points = [
        (panel, x if signs[0] else -x, y if signs[1] else -y)
        for panel, x, y in table.select("panel", "x", "y").iter_rows()
    ]
    beaten = [
        any(p == q and u >= x and v >= y and (u, v) != (x, y) for q, u, v in points)
        for p, x, y in points
    ]
    return ~pl.Series(beaten, dtype=pl.Boolean)


def _with_labels(table: pl.DataFrame, *, best_first: bool) -> pl.DataFrame:
    """Join the names of equal points on the last one, which hides the others."""
    equal = table.group_by("panel", pl.col("x", "y").round(9), maintain_order=True)
    systems = equal.agg("system")
    names = pl.col("system").list.reverse() if best_first else pl.col("system")
    number, first = names.list.len(), names.list.head(2).list.join(", ")
    shown = pl.when(number > 3).then(pl.format("{} and {} more", first, number - 2))
    label = shown.otherwise(names.list.join(", ")).alias("label")
    labels_ = systems.select("panel", label, system=pl.col("system").list.last())
    return table.join(labels_, on=["panel", "system"], how="left", maintain_order="left")


def _with_places(
    table: pl.DataFrame,
    domains: Mapping[str, tuple[float, float]],
    frame: tuple[int, int],
    names: Sequence[str] | None,
) -> pl.DataFrame:
    """Choose the side of each point, or those of ``names``, where its name overlaps nothing."""
    places: list[str | None] = []
    for rows in table.partition_by("panel", maintain_order=True):
        pixels: dict[str, list[Any]] = {
            axis + end: _scaled(rows[axis + end], domains[axis], size)
            for axis, size in zip("xy", frame, strict=True)
            for end in ("", "_low", "_high")
        }
        points = list(zip(pixels["x"], pixels["y"], strict=True))
        taken: list[_Box] = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
        lines = _interval_boxes(points, pixels)
        own = zip(rows["system"], rows["label"], points, strict=True)
        for system, label, (x, y) in own:
            boxes = {
                place: _label_box(label, x, y, right=right, above=above)
                for place, (right, above) in _SIDES.items()
                if label is not None and (names is None or system in names)
            }
            place = _freest(boxes, taken, lines, frame)
            taken += [boxes[place]] if place else []
            places.append(place)
    return table.with_columns(pl.Series("place", places, pl.String))


def _scaled(
    values: Iterable[float | None], domain: tuple[float, float], size: int
) -> list[float | None]:
    """Return the pixel of each value."""
    low, high = domain
    return [None if value is None else (value - low) / (high - low) * size for value in values]


def _interval_boxes(
    points: Sequence[tuple[float, float]], pixels: Mapping[str, Sequence[Any]]
) -> list[_Box]:
    """Return the pixels that the intervals of points cover."""
    across = zip(points, pixels["x_low"], pixels["x_high"], strict=True)
    up = zip(points, pixels["y_low"], pixels["y_high"], strict=True)
    boxes = [(low, y - 1, high, y + 1) for (_, y), low, high in across]
    boxes += [(x - 1, low, x + 1, high) for (x, _), low, high in up]
    return [box for box in boxes if None not in box]


def _freest(
    boxes: Mapping[str, _Box], taken: Sequence[_Box], lines: Sequence[_Box], frame: tuple[int, int]
) -> str | None:
    """Choose the box in the frame that meets no name and no point, and the fewest lines."""
    crossed = {
        place: sum(_overlap(box, line) for line in lines)
        for place, box in boxes.items()
        if min(box) >= 0
        and box[2] <= frame[0]
        and box[3] <= frame[1]
        and not any(_overlap(box, other) for other in taken)
    }
    place = min(crossed, key=lambda place: crossed[place], default=None)
    return place if place and crossed[place] <= _MOST_CROSSED else None


def _label_box(text: str, x: float, y: float, *, right: bool, above: bool) -> _Box:
    """Return the pixels that a name beside a point covers: left, low, right, high."""
    length, high = 7.2 * len(text), 13.0
    left = x + _GAP if right else x - _GAP - length
    low = y + _GAP if above else y - _GAP - high
    return left, low, left + length, low + high


def _overlap(box: _Box, other: _Box) -> bool:
    across = box[0] < other[2] and other[0] < box[2]
    return across and box[1] < other[3] and other[1] < box[3]


def _axis_titles(requested: Sequence[RequestedMetric]) -> list[str]:
    """Return titles of metrics: whether they are means, and which direction is better."""
    titles: list[str] = []
    for metric in requested:
        title = sentences.one_line(metric.name)
        title = f"{title} of all lists" if system_metrics.is_of_all(metric) else f"mean {title}"
        better = {True: " (higher is better)", False: " (lower is better)", None: ""}
        titles.append(title + better[metric.traits.higher_is_better])
    return titles


def _gini_texts(curves: pl.DataFrame, systems: Sequence[str]) -> list[str]:
    """Write the Gini coefficients of a few lines, or the least and the greatest of many."""
    if len(curves) <= 4 and curves["panel"].n_unique() == 1:
        coefficients = [
            f"{sentences.one_line(row['system'])} {row['half']:,} ({row['gini']:.3f})".strip()
            for row in curves.to_dicts()
        ]
        return [f"half goes to (Gini): {', '.join(coefficients)}"]
    least, most = _tables.bounds(curves["gini"])
    lines = [f"Gini: {least:.3f} to {most:.3f}"]
    if len(systems) > _tables.MOST_COLORED:
        lines += [f"colored: the {_tables.BEST} most even; click the legend to select"]
    return lines
