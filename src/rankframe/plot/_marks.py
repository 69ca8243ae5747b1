"""Make the parts of charts: colors for light and dark backgrounds, axes, legends and layers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from math import ceil, floor
from textwrap import wrap
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import polars as pl

from rankframe._comparison import sentences
from rankframe._request.keywords import Options
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt

#: a color on a light background, and on a dark one
Pair: TypeAlias = tuple[str, str]

INK: Pair = ("#1A1A1A", "#F2F2F2")
GRAY: Pair = ("#666666", "#BDBDBD")
REST: Pair = ("#8C8C8C", "#9C9C9C")  # systems that are not among the best of many
PALE: Pair = ("#E4E4E4", "#4C4C4C")  # grids and areas behind the data
USERS: Pair = ("#5A7896", "#9DB8D6")
#: of systems: distinct, also under common forms of color blindness; shapes differ, too
COLORS: tuple[Pair, ...] = (
    ("#0072B2", "#56A8E8"),
    ("#D55E00", "#FF8A3D"),
    ("#45137F", "#A98BFF"),
    ("#5E6B00", "#E8E070"),
    ("#C26A86", "#D8A0A8"),
    ("#2B2B2B", "#F5F5F5"),
    ("#2A93BA", "#4FE0E0"),
    ("#8A4A1A", "#C08A5E"),
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
#: of verdicts: different colors than those of systems
_BETTER, _WORSE = ("#005A36", "#7CF2BE"), ("#C2247C", "#F06AAE")
VERDICTS: Mapping[str, tuple[Pair, str]] = {
    "better": (_BETTER, "triangle-up"),
    "higher": (_BETTER, "triangle-up"),
    "not worse": (("#4A55C8", "#9C9CFF"), "diamond"),
    "equivalent": (("#8A7A00", "#D9C95A"), "square"),
    "undecided": (GRAY, "circle"),
    "worse": (_WORSE, "triangle-down"),
    "lower": (_WORSE, "triangle-down"),
}
_DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3], [12, 3])
_DASH_WORDS = ("solid", "dashed", "dotted", "dashes and dots", "sparse dots", "long dashes")
_LETTERS, _NARROW_LETTERS = 84, 46  # characters in a line of a subtitle: 400 and 270 pixels
_NARROW_LEGEND, _NARROW_LABEL = 258, 220  # pixels
_LETTER = 6.7  # pixels of a character
_SHORT_NAME = 12  # characters that leave room for a chart beside the legend of a phone
_SHARES = ("share", "target", "exposure", "values", "zeros")  # columns that are read in percent
_P_VALUES = ("p_value", "p_adjusted", "p_equivalent", "p_not_worse")
_DARK = 0.2  # luminance below which a background needs light colors


# ------------------------------------------------------------------ colors and shapes


def all_pairs() -> dict[str, str]:
    """Map each color on a light background to that on a dark one."""
    verdicts = [pair for pair, _ in VERDICTS.values()]
    return dict([*COLORS, INK, GRAY, REST, PALE, USERS, *verdicts])


def ink(pair: Pair = INK) -> Any:
    """Choose the color that is visible on the background of the theme."""
    import altair as alt

    return alt.expr(f"luminance(background) < {_DARK} ? '{pair[1]}' : '{pair[0]}'")


def are_many(systems: Sequence[str]) -> bool:
    """Return whether only the best systems have their own colors."""
    return len(systems) > _tables.MOST_COLORED


def color_of(
    systems: Sequence[str],
    groups: Sequence[str],
    *,
    legend: bool | Mapping[str, Any] = True,
    distinct: bool = False,
    among: Sequence[str] | None = None,
) -> dict[str, Any]:
    """
    Assign a color to each system; of many, sorted best first, only to the best ones.

    The place of a system ``among`` all systems of a page or a call is its color.
    """
    import altair as alt

    if not groups:
        return {"color": alt.value(ink(COLORS[0]))}
    pairs = [
        REST if place is None else COLORS[place % len(COLORS)]
        for place in _places_of(systems, among, distinct=distinct)
    ]
    scale = alt.Scale(domain=list(systems), range=[ink(pair) for pair in pairs])
    return {
        "color": alt.Color(
            "system:N", scale=scale, legend=_system_legend(systems, groups, legend=legend)
        )
    }


def _places_of(
    systems: Sequence[str], among: Sequence[str] | None, *, distinct: bool
) -> list[int | None]:
    """Return the place of each system among all; none for one of many that is not a best one."""
    every = list(systems if among is None else among)
    kept = len(every) if distinct or not are_many(every) else _tables.BEST
    places = [every.index(name) for name in systems]
    return [place if place < kept else None for place in places]


def _system_legend(
    systems: Sequence[str], groups: Sequence[str], *, legend: bool | Mapping[str, Any]
) -> alt.Legend | None:
    """Make the legend of systems, with own options if they are given."""
    if legend is False:
        return None
    own: Mapping[str, Any] = {} if legend is True else legend
    return legend_of(sentences.one_line(groups[0]), many=len(systems) > len(COLORS), **own)


def legend_above(systems: Sequence[str]) -> bool | dict[str, Any]:
    """Choose the columns of a legend above or below a narrow chart from its longest name."""
    longest = max(map(len, systems), default=1)
    several = are_many(systems)
    if several and longest <= _SHORT_NAME:
        return True  # beside the chart
    longest = min(longest, int(_NARROW_LABEL // _LETTER))
    columns = max(1, int(_NARROW_LEGEND // (_LETTER * longest + 34)))
    return {
        "orient": "bottom" if several else "top",
        "direction": "horizontal",
        "columns": min(columns, len(systems)),
        "labelLimit": _NARROW_LABEL,
        "titleLimit": _NARROW_LEGEND,
        "titleAnchor": "start",
        "columnPadding": 8,
    }


def legend_of(title: str, *, many: bool = False, **options: Any) -> alt.Legend:
    """Make a legend that lists every value."""
    import altair as alt

    room: dict[str, Any] = {"rowPadding": 1} if many else {}
    fixed: dict[str, Any] = {"symbolLimit": 0, "symbolOpacity": 1, "padding": 8, "labelLimit": 220}
    return alt.Legend(title=title, **{**fixed, **room, **options})


def shape_of(
    systems: Sequence[str],
    groups: Sequence[str],
    *,
    legend: bool | Mapping[str, Any] = True,
    distinct: bool = False,
    among: Sequence[str] | None = None,
) -> dict[str, Any]:
    """Assign shapes to the points of systems; of many, a small circle to all but the best."""
    import altair as alt

    if not groups:
        return {}
    shapes = [
        "circle" if place is None else SHAPES[place % len(SHAPES)]
        for place in _places_of(systems, among, distinct=distinct)
    ]
    scale = alt.Scale(domain=list(systems), range=shapes)
    return {
        "shape": alt.Shape(
            "system:N", scale=scale, legend=_system_legend(systems, groups, legend=legend)
        )
    }


def dashes_of(metrics: Sequence[str]) -> str:
    """Write which dashes the lines of each metric have."""
    words = [_DASH_WORDS[place % len(_DASH_WORDS)] for place in range(len(metrics))]
    return "; ".join(f"{word}: {metric}" for word, metric in zip(words, metrics, strict=True))


def dash_of(metrics: Sequence[str], *, legend: bool = True) -> dict[str, Any]:
    """Dash the lines of metrics that share a panel."""
    import altair as alt

    dashes = [_DASHES[place % len(_DASHES)] for place in range(len(metrics))]
    scale = alt.Scale(domain=list(metrics), range=dashes)
    shown = legend_of(
        "metric", symbolType="stroke", symbolSize=500, symbolStrokeColor=ink(), symbolStrokeWidth=2
    )
    return {"strokeDash": alt.StrokeDash("metric:N", scale=scale, legend=shown if legend else None)}


def selections() -> tuple[Any, Any]:
    """Make the selections among many systems: a click in the legend, and the pointer."""
    import altair as alt

    chosen = alt.selection_point(name="chosen", fields=["system"], bind="legend")
    pointed = alt.selection_point(
        name="pointed",
        fields=["system"],
        on="pointerover",
        clear="pointerout",
        nearest=True,
        empty=False,
    )
    return chosen, pointed


def of_many(systems: Sequence[str], chosen: Any) -> dict[str, Any]:
    """Draw the lines of the best of many systems thick, and lines not selected pale."""
    import altair as alt

    best = alt.FieldOneOfPredicate("system", list(systems[: _tables.BEST]))
    return {
        "opacity": alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        "strokeWidth": alt.when(best).then(alt.value(2.5)).otherwise(alt.value(1.2)),
    }


def points_of_many(systems: Sequence[str], chosen: Any) -> dict[str, Any]:
    """Draw the points of the best of many systems large, and points not selected pale."""
    import altair as alt

    best = alt.FieldOneOfPredicate("system", list(systems[: _tables.BEST]))
    return {
        "opacity": alt.when(chosen).then(alt.value(1)).otherwise(alt.value(0.12)),
        "size": alt.when(best).then(alt.value(32)).otherwise(alt.value(6)),
    }


def verdict_look(
    directions: Mapping[str, bool | None], margins: Mapping[str, float], title: str
) -> dict[str, Any]:
    """Assign a color and a shape to each possible verdict."""
    import altair as alt

    goods, bads = [], []
    if any(direction is not None for direction in directions.values()):
        goods, bads = ["better"], ["worse"]
    if None in directions.values():
        goods, bads = [*goods, "higher"], [*bads, "lower"]
    within = ["not worse", "equivalent"] if margins else []
    domain = [*goods, *within, "undecided", *bads]
    pairs, shapes = zip(*(VERDICTS[verdict] for verdict in domain), strict=True)
    colors = alt.Scale(domain=domain, range=[ink(pair) for pair in pairs])
    return {
        "color": alt.Color("verdict:N", scale=colors, legend=legend_of(title)),
        "shape": alt.Shape(
            "verdict:N", scale=alt.Scale(domain=domain, range=list(shapes)), legend=legend_of(title)
        ),
    }


# ------------------------------------------------------------------ layers


def axis_of(**options: Any) -> alt.Axis:
    """Make an axis whose grid is paler than the data, in every theme."""
    import altair as alt

    return alt.Axis(**{"gridColor": ink(PALE), **options})


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
    band: alt.Chart = alt.Chart().mark_rect(color=ink(PALE)).transform_calculate(low=low)
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

    rule: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rule(color=ink(GRAY), strokeDash=[4, 3])
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
    if _LETTER * len(shared) > 210 * len(panels):
        shared = "change"
    area = alt.Chart().mark_area(color=ink(PALE), opacity=0.7)
    area = area.transform_filter("isValid(datum.top)").encode(
        x=alt.X("bound:Q", title=x_title, scale=x),
        y=alt.Y("top:Q", title=None, scale=y),
        y2="bottom:Q",
    )
    circles = alt.Chart().mark_circle(color=ink(USERS), opacity=0.6)
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
    bars = alt.Chart().mark_bar(color=ink(), height=4, cornerRadius=2)
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
    layers = layered(area, zero_line().encode(y=alt.YDatum(0)), circles, bars, data=table)
    circled = (
        f"{_tables.user_count(overall['users'])} in {len(cells):,} circles, by similar R and change"
    )
    return in_grid(
        layers.properties(width=270, height=210),
        row=panels_by("panel", panels, shared),
        column=panels_by("measure", _tables.texts(table["measure"])),
        title=title_of(
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
    lines = curves.mark_line(color=ink(PALE), strokeWidth=1.5).encode(
        x=x, y=y, detail="f1:N", order="recall:Q"
    )
    marks = curves.mark_text(align="right", baseline="bottom", dx=-3, dy=-2, color=ink(GRAY))
    marks = marks.transform_filter("isValid(datum.label)").encode(x=x, y=y, text="label:N")
    table = _tables.path_names(table, systems if chosen is not None else [], y_end / 22)
    lines_look = {} if chosen is None else of_many(systems, chosen)
    points_look = {} if chosen is None else points_of_many(systems, chosen)
    base = alt.Chart().encode(x=x, y=y, **color_of(systems, groups))
    words = {"system": "system", "k": "k", "mean recall@k": "recall"}
    words |= {"mean precision@k": "precision", "users": "users"}
    path = described(base.mark_line(), table, words).encode(order="k:Q", **lines_look)
    points = base.mark_point(filled=True, opacity=1, size=30)
    points = described(points, table, words)
    points = points.encode(**shape_of(systems, groups), **points_look)
    layers = [head_room(), lines, marks, path, points]
    for row in table.drop_nulls("at").iter_rows(named=True):
        up: dict[str, Any] = {"baseline": "bottom", "dy": -7}
        down: dict[str, Any] = {"baseline": "top", "dy": 7}
        inward: Literal["left", "right"] = "left" if row["recall"] < x_end / 2 else "right"
        for behind in (halo(), {}):
            side = up if row["above"] else down
            text = alt.Chart().mark_text(fontSize=10, color=ink(), align=inward, **side, **behind)
            text = text.transform_filter(alt.datum.at == row["at"])
            layers.append(text.encode(x=x, y=y, text="at:N"))
    if chosen is not None:
        layers += names_beside(base.encode(y=alt.Y("name_at:Q", scale=scales[1])), chosen, 95)
    width = 270 if chosen is None else 310
    picture: alt.LayerChart = layered(
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
    color = color_of(systems, ["system"] if len(systems) > 1 else [], legend=False)
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
    line = alt.Chart().mark_rule(strokeWidth=2, color=ink(), strokeDash=[5, 2])
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
        whole = box.mark_rect(fill=ink(GRAY), fillOpacity=0, stroke=ink(GRAY), strokeWidth=1)
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
                color=alt.value(ink()),
            ),
        ]
    picture: alt.LayerChart = layered(*layers, data=table)
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
        quantiles.mark_rule(color=ink(COLORS[0])).encode(x=alt.X("low:Q", **x), x2="high:Q"),
        quantiles.mark_bar(color=ink(COLORS[0]), height=9).encode(
            x=alt.X("lower quarter:Q", **x), x2="upper quarter:Q"
        ),
        quantiles.mark_tick(color=alt.expr("background || 'white'"), thickness=2, height=9).encode(
            x=alt.X("median:Q", **x)
        ),
        base.mark_point(
            shape="diamond", filled=True, opacity=1, size=60, color=ink(COLORS[1])
        ).encode(x=alt.X("mean:Q", **x)),
    ]
    if has_zeros:
        vessel = base.transform_calculate(
            left=str(left), right=str(right), filled=f"{left} + datum.zeros * {right - left}"
        )
        start = alt.X("left:Q", **x)
        text = vessel.mark_text(align="left", dx=3, fontSize=9, baseline="middle", color=ink())
        layers += [
            vessel.mark_bar(height=13, color=ink(USERS), opacity=0.6).encode(
                x=start, x2="filled:Q"
            ),
            vessel.mark_bar(
                height=13, fill=ink(GRAY), fillOpacity=0, stroke=ink(GRAY), strokeWidth=1
            ).encode(x=start, x2="right:Q"),
            text.encode(x=start, text=alt.Text("zeros:Q", format=".0%")),
        ]
    picture: alt.LayerChart = layered(*layers, data=table)
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
    swatches = alt.Legend(title="adjusted p", padding=8, symbolFillColor=ink())
    depth = alt.Opacity("depth:N", title="adjusted p", scale=scale, legend=swatches)
    deep = alt.FieldOneOfPredicate("depth", depths[:2])
    on_cell = alt.when(deep).then(alt.value(alt.expr("background || 'white'")))
    return [
        base.mark_rect(stroke=ink(PALE), strokeWidth=1).encode(color=look["color"], opacity=depth),
        base.mark_point(filled=True, size=24, opacity=1).encode(
            shape=look["shape"], color=on_cell.otherwise(alt.value(ink()))
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
        base.mark_rule(color=ink(GRAY))
        .transform_filter("datum.part == 'system'")
        .encode(y2=alt.Y2Datum(0))
    ]
    sides: list[tuple[str, Any, Any, int]] = [
        ("left", 0, "right", -5),
        ("right", "width", "left", 5),
    ]
    for side, edge, align, shift in sides:
        own = base.transform_filter(f"datum.side == '{side}'")
        layers.append(own.mark_rule(color=ink(GRAY)).encode(x2=alt.value(edge)))
        names = own.mark_text(align=align, color=ink(), dx=shift, baseline="middle", limit=205)
        layers.append(names.encode(x=alt.value(edge), text="text:N"))
    groups = {"not separated": "system", "mean ranks": ("low", "high"), "users": "users"}
    bars = described(bare.mark_rule(strokeWidth=5, color=ink(COLORS[0])), table, groups)
    bars = bars.transform_filter("datum.part == 'group'")
    scale = bare.transform_filter("datum.part == 'scale'")
    layers += [
        bars.encode(x2="high:Q"),
        scale.mark_rule(strokeWidth=2, color=ink()).encode(x2="high:Q", y=alt.value(-46)),
        scale.mark_text(align="left", color=ink()).encode(text="text:N", y=alt.value(-55)),
    ]
    return layers


# ------------------------------------------------------------------ around pictures


def title_of(text: str, *subtitle: str, narrow: bool = False) -> alt.TitleParams:
    """Make a title and subtitle whose lines are short enough for a narrow page or column."""
    import altair as alt

    letters = _NARROW_LETTERS if narrow else _LETTERS
    lines = [part for line in subtitle for part in wrap(line, letters, break_on_hyphens=False)]
    titles = wrap(text, letters * 4 // 5 if narrow else letters, break_on_hyphens=False)
    return alt.TitleParams(
        titles if len(titles) > 1 else text,
        subtitle=lines,
        anchor="start",
        color=ink(),
        subtitleColor=ink(GRAY),
        offset=12,
    )


def panels_by(name: str, order: Sequence[str], title: str | None = None) -> Any:
    """Make one panel per value of a column, without headers if there is only one."""
    import altair as alt

    own: dict[str, Any] = {"labelLimit": 150}
    if name in ("system", "panel"):
        own = {"labelAngle": 0, "labelAlign": "left", "labelLimit": 190}
    header = alt.Header(
        title=title,
        labelFontWeight="bold",
        labels=len(order) > 1,
        labelColor=ink(),
        titleColor=ink(),
        titleFontWeight="bold",
        **own,
    )
    channel = {"system": alt.Row, "panel": alt.Row, "measure": alt.Column, "segment": alt.Column}
    return channel[name](f"{name}:N", sort=list(order), header=header)


def layered(*layers: alt.Chart, **options: Any) -> Any:
    """Layer charts; Altair's types of keywords are too vague."""
    import altair as alt

    return alt.layer(*layers, **options)


def in_grid(layers: Any, **options: Any) -> alt.FacetChart:
    """Put layers in panels; Altair's types of keywords are too vague."""
    grid: alt.FacetChart = layers.facet(**options)
    return grid


def in_panels(
    layers: Sequence[Any],
    table: pl.DataFrame,
    title: alt.TitleParams,
    *,
    width: float,
    height: float,
    wide: float | Literal["container"] = "container",
    columns: int = 2,
    resolve: Literal["x", "y"] = "y",
    joined: bool = False,
    **options: Any,
) -> alt.LayerChart | alt.FacetChart:
    """Draw a single wide panel, or several side by side; ``joined`` draws all panels in one."""
    import altair as alt

    panels = _tables.texts(table["panel"])
    if len(panels) == 1 or joined:
        options |= {"data": table, "height": height, "title": title}
        if wide == "container":
            from rankframe.plot import _wide

            return _wide.wide(*layers, **options)
        single: alt.LayerChart = layered(*layers, width=wide, **options)
        return single
    header = alt.Header(
        title=None, labelFontWeight="bold", labelColor=ink(), labelLimit=max(width, 150)
    )
    facet = alt.Facet("panel:N", sort=list(panels), header=header)
    drawn = layered(*layers, data=table, width=width, height=height, **options)
    faceted: Any = in_grid(drawn, facet=facet, columns=columns, title=title)
    # otherwise axes are drawn below missing panels of the last row
    faceted = faceted.resolve_axis(x="independent")
    grid: alt.FacetChart = faceted.resolve_scale(**{resolve: "independent"})
    return grid


def check_call(options: Mapping[str, object]) -> None:
    """Check that Altair is installed, and that charts accept the keywords."""
    for name in options:
        if name not in Options.__annotations__:
            msg = f"unknown argument {name!r}; charts accept {', '.join(Options.__annotations__)}"
            raise TypeError(msg)
    if find_spec("altair") is None:
        msg = "charts need altair: pip install 'rankframe[plot]'"
        raise ImportError(msg)
