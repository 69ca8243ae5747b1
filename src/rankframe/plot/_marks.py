"""Make the parts of charts: colors for light and dark backgrounds, axes, legends and layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import TYPE_CHECKING, Any, Literal

import polars as pl

from rankframe.plot import _colors, _panels, _tables

if TYPE_CHECKING:
    import altair as alt
_SHARES = ("share", "target", "exposure", "values", "zeros")  # columns that are read in percent
_P_VALUES = ("p_value", "p_adjusted", "p_equivalent", "p_not_worse")


# ------------------------------------------------------------------ layers


def axis_of(**options: Any) -> alt.Axis:
    """Make an axis whose grid is paler than the data, in every theme."""
    import altair as alt

    return alt.Axis(**{"gridColor": _colors.ink(_colors.PALE), **options})


def change_axis(**options: Any) -> alt.Axis:
    """Make an axis of differences: signed, except for 0."""
    return axis_of(labelExpr="datum.value === 0 ? '0' : datum.label", **options)


def halo() -> dict[str, Any]:
    """Outline text in the background color, so that it is readable on lines."""
    import altair as alt

    return {"stroke": alt.expr("background || 'white'"), "strokeWidth": 3, "opacity": 0.8}


def margin_band(title: str) -> alt.Chart:
    """Draw the differences within the margin, once per panel."""
    import altair as alt

    low = alt.datum.margin * -1
    band: alt.Chart = (
        alt.Chart().mark_rect(color=_colors.ink(_colors.PALE)).transform_calculate(low=low)
    )
    return band.transform_filter("isValid(datum.margin)").encode(
        x=alt.X("min(low):Q", title=title), x2="max(margin):Q"
    )


def cutoff_axis(cutoffs: Sequence[int], *, room: bool) -> alt.X:
    """Make the axis of cut-offs, with room for names to the right of the lines if requested."""
    import altair as alt

    first, last = cutoffs[0], cutoffs[-1]
    end = last + 0.4 * max(last - first, 1) if room else last
    values: dict[str, Any] = {"tickMinStep": 1}
    if room:
        every = max(1, -(-(last - first) // 6))
        values = {"values": sorted({*range(first, last + 1, every), last})}
    axis = axis_of(format="d", grid=False, **values)
    scale = alt.Scale(domain=[first, end], nice=False, padding=8)
    return alt.X("k:Q", title="k", axis=axis, scale=scale)


def described(
    chart: alt.Chart, table: pl.DataFrame, rows: Mapping[str, str | Sequence[str]]
) -> alt.Chart:
    """Add a tooltip in words: a title and a column per row, or the columns that it joins."""
    import altair as alt

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


def compared_words(confidence: float) -> dict[str, str | Sequence[str]]:
    """Return the rows of the tooltip of a comparison."""
    return {
        "systems": "pair",
        "metric": "panel",
        "difference": "difference",
        sure(confidence): ("ci_low", "ci_high"),
        "verdict": "verdict",
        "p, adjusted": "p_adjusted",
        "p, not adjusted": "p_value",
        "users": "users",
        "users higher / equal / lower": ("wins", "ties", "losses"),
        "mean": "mean",
        "mean of the baseline": "baseline_mean",
        "margin": "margin",
        "p of equivalence": "p_equivalent",
        "p of not worse": "p_not_worse",
        "detectable difference": "detectable",
        "note": "note",
    }


def head_room() -> alt.Chart:
    """Draw nothing above the frame, so that the titles of panels align."""
    import altair as alt

    rule: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rule(opacity=0)
    return rule.encode(y=alt.value(-8))


def zero_line() -> alt.Chart:
    """Draw a single line, not one per row of the table."""
    import altair as alt

    rule: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rule(
        color=_colors.ink(_colors.GRAY), strokeDash=[4, 3]
    )
    return rule


# ------------------------------------------------------------------ whole pictures


def change_chart(
    cells: pl.DataFrame, means: pl.DataFrame, k: int, deepest: int, baseline: str
) -> alt.FacetChart:
    """Draw cells of users and means of bins on the range that k and R allow."""
    import altair as alt

    in_bins = means.drop_nulls("relevant_low")
    overall = means.filter(pl.col("relevant_low").is_null() & (pl.col("users") > 0))
    reach = min(1.0, 1.15 * (_tables.greatest(cells, *_tables.AXES) or 1 / k))
    domain = (
        _tables.bounds(in_bins["relevant_low"])[0] / 1.2,
        _tables.bounds(in_bins["relevant_high"])[1] * 1.2,
    )
    table = _tables.change_table(cells, in_bins, k, deepest, domain, reach)
    panels = _tables.texts(overall.select(_tables.panel_of("system"))["panel"])
    _tables.check_rows(table, "points", "fewer segments")

    y = alt.Scale(domain=[-reach, reach], nice=False)
    x = alt.Scale(type="log", domain=list(domain), nice=False)
    x_title = "R, relevant items of a user"
    shared = f"change from {baseline}"
    if _colors.LETTER * len(shared) > 210 * len(panels):
        shared = "change"
    area = alt.Chart().mark_area(color=_colors.ink(_colors.PALE), opacity=0.7)
    area = area.transform_filter("isValid(datum.top)").encode(
        x=alt.X("bound:Q", title=x_title, scale=x),
        y=alt.Y("top:Q", title=None, scale=y),
        y2="bottom:Q",
    )
    circles = alt.Chart().mark_circle(color=_colors.ink(_colors.USERS), opacity=0.6)
    circles = circles.transform_filter("isValid(datum.count)").encode(
        x=alt.X("relevant:Q", title=x_title, axis=axis_of(format="d", tickCount=5, grid=False)),
        y=alt.Y(
            "change:Q",
            title=None,
            axis=change_axis(format="+.2~f", tickCount=7),
        ),
        size=alt.Size("count:Q", title="users", scale=alt.Scale(range=[12, 400], zero=False)),
    )
    words = {"users": "count", "relevant items, mean": "relevant", "change, mean": "change"}
    circles = described(circles, table.drop_nulls("count"), words)
    # a bar that covers a single R would have no length
    bars = alt.Chart().mark_bar(color=_colors.ink(), height=4, cornerRadius=2)
    bars = bars.transform_filter("isValid(datum.mean)").transform_calculate(
        begin="datum.relevant_low / 1.1", end="datum.relevant_high * 1.1"
    )
    bars = bars.encode(
        x=alt.X("begin:Q", title=x_title),
        x2="end:Q",
        y=alt.Y("mean:Q", title=None),
    )
    ends = ("relevant_low", "relevant_high")
    of_bin = {"relevant items": ends, "users": "users", "change, mean": "mean"}
    bars = described(bars, table.drop_nulls("mean"), of_bin)
    layers = _panels.layered(area, zero_line().encode(y=alt.YDatum(0)), circles, bars, data=table)
    circled = (
        f"{_tables.user_count(overall['users'])} in {len(cells):,} circles, by similar R and change"
    )
    return _panels.in_grid(
        layers.properties(width=270, height=210),
        row=_panels.panels_by("panel", panels, shared),
        column=_panels.panels_by("measure", _tables.texts(table["measure"])),
        title=_panels.title_of(
            f"Change from {baseline} among the first {k} items, user by user",
            circled,
            "bars: means; gray: what k and R allow",
            *_tables.readings_of(overall, k),
        ),
    )


def path_chart(
    table: pl.DataFrame, systems: Sequence[str], groups: Sequence[str], chosen: Any
) -> alt.LayerChart:
    """Draw the path of both means over k, on contours of equal F1."""
    import altair as alt

    room = 1.6 if chosen is not None else 1.15
    ends = [_tables.greatest(table, name) or 0.1 for name in _tables.AXES]
    x_end, y_end = min(1.0, room * ends[0]), min(1.0, 1.15 * ends[1])
    scales = [alt.Scale(domain=[0, end], nice=False) for end in (x_end, y_end)]
    x = alt.X(
        "recall:Q",
        title="mean recall@k",
        scale=scales[0],
        axis=axis_of(grid=False, tickCount=5),
    )
    y = alt.Y("precision:Q", title="mean precision@k", scale=scales[1], axis=axis_of(grid=False))
    curves = alt.Chart(_tables.contours(x_end, y_end))
    lines = curves.mark_line(color=_colors.ink(_colors.PALE), strokeWidth=1.5).encode(
        x=x, y=y, detail="f1:N", order="recall:Q"
    )
    marks = curves.mark_text(
        align="right", baseline="bottom", dx=-3, dy=-2, color=_colors.ink(_colors.GRAY)
    )
    marks = marks.transform_filter("isValid(datum.label)").encode(x=x, y=y, text="label:N")
    table = _tables.path_names(table, systems if chosen is not None else [], y_end / 22)
    lines_look = {} if chosen is None else _colors.of_many(systems, chosen)
    points_look = {} if chosen is None else _colors.points_of_many(systems, chosen)
    base = alt.Chart().encode(x=x, y=y, **_colors.color_of(systems, groups))
    words = {"system": "system", "k": "k", "mean recall@k": "recall"}
    words |= {"mean precision@k": "precision", "users": "users"}
    path = described(base.mark_line(), table, words).encode(order="k:Q", **lines_look)
    points = base.mark_point(filled=True, opacity=1, size=30)
    points = described(points, table, words)
    points = points.encode(**_colors.shape_of(systems, groups), **points_look)
    layers = [head_room(), lines, marks, path, points]
    for row in table.drop_nulls("at").iter_rows(named=True):
        up: dict[str, Any] = {"baseline": "bottom", "dy": -7}
        down: dict[str, Any] = {"baseline": "top", "dy": 7}
        inward: Literal["left", "right"] = "left" if row["recall"] < x_end / 2 else "right"
        for behind in (halo(), {}):
            side = up if row["above"] else down
            text = alt.Chart().mark_text(
                fontSize=10, color=_colors.ink(), align=inward, **side, **behind
            )
            text = text.transform_filter(alt.datum.at == row["at"])
            layers.append(text.encode(x=x, y=y, text="at:N"))
    if chosen is not None:
        layers += names_beside(base.encode(y=alt.Y("name_at:Q", scale=scales[1])), chosen, 95)
    width = 270 if chosen is None else 310
    picture: alt.LayerChart = _panels.layered(
        *layers, data=table, width=width, height=270, title="Path over k"
    )
    return picture


def names_beside(base: alt.Chart, chosen: Any, limit: float) -> list[alt.Chart]:
    """Write the names of the best systems to the right of the ends of their lines."""
    import altair as alt

    layers: list[alt.Chart] = []
    for behind in (halo(), {}):
        text = base.mark_text(
            align="left", dx=8, fontSize=11, fontWeight="bold", limit=limit, **behind
        )
        shown = alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0))
        text = text.transform_filter("isValid(datum.name)")
        layers.append(text.encode(text="name:N", opacity=shown))
    return layers


def histogram_layers(table: pl.DataFrame, systems: Sequence[str], title: str) -> alt.LayerChart:
    """Draw bars of users, their mean, and a box filled to the share of exact zeros."""
    import altair as alt

    filled = table.filter(pl.col("low") != pl.col("high"))
    has_zeros = len(filled) < len(table)
    lowest, highest = _ends(table if has_zeros else filled, "low", "high", "mean")
    span = highest - lowest
    left, right = lowest - 0.17 * span, lowest - 0.07 * span
    top = _tables.bounds(filled["share"])[1] if len(filled) else 1.0
    x = alt.X(
        "low:Q",
        bin="binned",
        title=title,
        axis=axis_of(labelFlush=False, labelOverlap=True, **_ticks(lowest, highest)),
        scale=alt.Scale(domain=[left if has_zeros else lowest, highest], nice=False, zero=False),
    )
    y = alt.Scale(domain=[0, 1.2 * top if has_zeros else top])  # with room for a number
    color = _colors.color_of(systems, ["system"] if len(systems) > 1 else [], legend=False)
    base = alt.Chart().encode(**color)
    of = {"system": "system", "segment": "segment"}
    words = {**of, title: ("low", "high"), "users": "users", "share of users": "share"}
    bars = described(base.mark_bar(binSpacing=1), filled, words)
    bars = bars.transform_filter("datum.low !== datum.high")
    # away from the box, which has its own scale
    percent = axis_of(format="%", tickCount=3, orient="right" if has_zeros else "left")
    layers = [bars.encode(x=x, x2="high:Q", y=alt.Y("share:Q", title=None, axis=percent, scale=y))]
    # the first row of each histogram
    first = table.drop_nulls("mean")
    line = alt.Chart().mark_rule(strokeWidth=2, color=_colors.ink(), strokeDash=[5, 2])
    line = described(line, first, {**of, "mean": "mean"}).transform_filter("isValid(datum.mean)")
    layers.append(line.encode(x=alt.X("mean:Q", title=title)))
    if has_zeros:
        box = base.transform_filter("isValid(datum.mean)").transform_calculate(
            zeros="datum.low === datum.high ? datum.share : 0", level=f"datum.zeros * {top}"
        )
        words = {**of, "users at exactly 0": "zeros", "mean": "mean"}
        box = described(box, first.with_columns(zeros="share"), words)
        ends: dict[str, Any] = {"x": alt.XDatum(left, title=title), "x2": alt.X2Datum(right)}
        end = alt.YDatum(top, title=None)
        whole = box.mark_rect(
            fill=_colors.ink(_colors.GRAY),
            fillOpacity=0,
            stroke=_colors.ink(_colors.GRAY),
            strokeWidth=1,
        )
        text = box.mark_text(baseline="bottom", dy=-2, fontSize=10, align="left")
        layers += [
            box.mark_rect(opacity=0.6).encode(
                y=alt.Y("level:Q", title=None), y2=alt.Y2Datum(0), **ends
            ),
            whole.encode(y=end, y2=alt.Y2Datum(0), **ends),
            text.encode(
                x=ends["x"],
                y=end,
                text=alt.Text("zeros:Q", format=".0%"),
                color=alt.value(_colors.ink()),
            ),
        ]
    picture: alt.LayerChart = _panels.layered(*layers, data=table)
    return picture


def strip_layers(table: pl.DataFrame, systems: Sequence[str], title: str) -> alt.LayerChart:
    """Draw one row per system: quantiles of users, their mean, and the share of exact zeros."""
    import altair as alt

    has_zeros = bool((table["zeros"] > 0).any())
    lowest, highest = _ends(table, "low", "high", "mean")
    lowest = min(lowest, 0.0) if has_zeros else lowest
    span = highest - lowest
    left, right = lowest - 0.27 * span, lowest - 0.06 * span
    x: dict[str, Any] = {
        "title": title,
        "scale": alt.Scale(
            domain=[left if has_zeros else lowest, highest + 0.02 * span], nice=False, zero=False
        ),
        "axis": axis_of(labelFlush=False, labelOverlap=True, **_ticks(lowest, highest)),
    }
    y = alt.Y("system:N", title=None, sort=list(systems), axis=axis_of(labelLimit=280))
    words: dict[str, str | Sequence[str]] = {
        "system": "system",
        "mean": "mean",
        "users at exactly 0": "zeros",
        "others, 5% to 95%": ("low", "high"),
        "others, 25% to 75%": ("lower quarter", "upper quarter"),
        "others, median": "median",
        "users": "users",
    }
    base = described(alt.Chart().encode(y=y), table, words)
    quantiles = base.transform_filter("isValid(datum.low)")
    layers = [
        quantiles.mark_rule(color=_colors.ink(_colors.COLORS[0])).encode(
            x=alt.X("low:Q", **x), x2="high:Q"
        ),
        quantiles.mark_bar(color=_colors.ink(_colors.COLORS[0]), height=9).encode(
            x=alt.X("lower quarter:Q", **x), x2="upper quarter:Q"
        ),
        quantiles.mark_tick(color=alt.expr("background || 'white'"), thickness=2, height=9).encode(
            x=alt.X("median:Q", **x)
        ),
        base.mark_point(
            shape="diamond", filled=True, opacity=1, size=60, color=_colors.ink(_colors.COLORS[1])
        ).encode(x=alt.X("mean:Q", **x)),
    ]
    if has_zeros:
        vessel = base.transform_calculate(
            left=str(left), right=str(right), filled=f"{left} + datum.zeros * {right - left}"
        )
        start = alt.X("left:Q", **x)
        text = vessel.mark_text(
            align="left", dx=3, fontSize=9, baseline="middle", color=_colors.ink()
        )
        layers += [
            vessel.mark_bar(height=13, color=_colors.ink(_colors.USERS), opacity=0.6).encode(
                x=start, x2="filled:Q"
            ),
            vessel.mark_bar(
                height=13,
                fill=_colors.ink(_colors.GRAY),
                fillOpacity=0,
                stroke=_colors.ink(_colors.GRAY),
                strokeWidth=1,
            ).encode(x=start, x2="right:Q"),
            text.encode(x=start, text=alt.Text("zeros:Q", format=".0%")),
        ]
    picture: alt.LayerChart = _panels.layered(*layers, data=table)
    return picture


def _ends(table: pl.DataFrame, *names: str) -> tuple[float, float]:
    """Return the least and the greatest number in the columns; 0 and 1 if there is none."""
    values = pl.concat([table[name].alias("value") for name in names]).drop_nulls()
    if not len(values):
        return 0.0, 1.0
    least, most = _tables.bounds(values)
    return (least, most) if most > least else (least - 0.5, most + 0.5)


def _ticks(lowest: float, highest: float) -> dict[str, Any]:
    """Choose the ticks of an axis whose left end has no meaning."""
    step = _tables.round_step((highest - lowest) / 6)
    first, last = ceil(lowest / step - 1e-9), floor(highest / step + 1e-9)
    return {"values": [round(place * step, 10) for place in range(first, last + 1)]}


def pair_cells(
    table: pl.DataFrame, systems: Sequence[str], look: dict[str, Any], confidence: float
) -> list[alt.Chart]:
    """Draw one cell per pair of systems: color is the verdict, opacity how small p is."""
    import altair as alt

    depths = _tables.depths_of(confidence)
    labels: dict[str, Any] = {
        "labelLimit": 200,
        "labelOverlap": False,
        "ticks": False,
        "domain": False,
    }
    order = list(systems)
    base = alt.Chart().encode(
        x=alt.X("baseline:N", title=None, sort=order, axis=alt.Axis(labelAngle=-90, **labels)),
        y=alt.Y("system:N", title=None, sort=order, axis=alt.Axis(**labels)),
    )
    base = described(base, table, compared_words(confidence))
    scale = alt.Scale(type="ordinal", domain=depths, range=[1, 0.7, 0.4, 0.1])
    # the opacity of its swatches is what it explains
    swatches = alt.Legend(title="adjusted p", padding=8, symbolFillColor=_colors.ink())
    depth = alt.Opacity("depth:N", title="adjusted p", scale=scale, legend=swatches)
    deep = alt.FieldOneOfPredicate("depth", depths[:2])
    on_cell = alt.when(deep).then(alt.value(alt.expr("background || 'white'")))
    return [
        base.mark_rect(stroke=_colors.ink(_colors.PALE), strokeWidth=1).encode(
            color=look["color"], opacity=depth
        ),
        base.mark_point(filled=True, size=24, opacity=1).encode(
            shape=look["shape"], color=on_cell.otherwise(alt.value(_colors.ink()))
        ),
    ]


def ranked_layers(table: pl.DataFrame, systems: int) -> list[alt.Chart]:
    """Draw stems from the axis to names on both sides, bars of groups and the scale."""
    import altair as alt

    end = max(float(systems), _tables.greatest(table, "high"))
    ticks = alt.Axis(orient="top", format="d", grid=False, values=[*range(1, systems + 1)])
    x = alt.X(
        "low:Q",
        title="mean rank, 1 is best",
        axis=ticks,
        scale=alt.Scale(domain=[1, end], nice=False, zero=False),
    )
    rows = alt.Scale(domain=[0, _tables.greatest(table, "row") + 0.5], reverse=True)
    y = alt.Y("row:Q", title=None, axis=None, scale=rows)
    bare = alt.Chart().encode(x=x, y=y)
    base = described(bare, table, {"system": "system", "mean rank": "low", "users": "users"})
    layers = [
        base.mark_rule(color=_colors.ink(_colors.GRAY))
        .transform_filter("datum.part == 'system'")
        .encode(y2=alt.Y2Datum(0))
    ]
    sides: list[tuple[str, Any, Any, int]] = [
        ("left", 0, "right", -5),
        ("right", "width", "left", 5),
    ]
    for side, edge, align, shift in sides:
        own = base.transform_filter(f"datum.side == '{side}'")
        layers.append(own.mark_rule(color=_colors.ink(_colors.GRAY)).encode(x2=alt.value(edge)))
        names = own.mark_text(
            align=align, color=_colors.ink(), dx=shift, baseline="middle", limit=205
        )
        layers.append(names.encode(x=alt.value(edge), text="text:N"))
    groups = {"not separated": "system", "mean ranks": ("low", "high"), "users": "users"}
    bars = described(
        bare.mark_rule(strokeWidth=5, color=_colors.ink(_colors.COLORS[0])), table, groups
    )
    bars = bars.transform_filter("datum.part == 'group'")
    scale = bare.transform_filter("datum.part == 'scale'")
    layers += [
        bars.encode(x2="high:Q"),
        scale.mark_rule(strokeWidth=2, color=_colors.ink()).encode(x2="high:Q", y=alt.value(-46)),
        scale.mark_text(align="left", color=_colors.ink()).encode(text="text:N", y=alt.value(-55)),
    ]
    return layers
