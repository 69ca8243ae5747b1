"""Draw differences of systems, and matrices of numbers."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import altair as alt
import polars as pl

from rankframe._comparison import comparison, pair_tests, sentences, trials
from rankframe._comparison.trials import Trial
from rankframe._request import keywords
from rankframe._request.labels import Metric
from rankframe.plot import _colors, _marks, _panels, _tables
from rankframe.plot._tables import Call

#: of a matrix: the column of the table, its values in order, and the title
_Axis: TypeAlias = tuple[str, list[str], str | None]
_MOST_PAIRED = 12  # systems for which each pair has its own row
_MOST_SEGMENTS = 40  # rows of a readable heatmap
_FULL = ("#08519C", "#2B7BC4")  # the end of the scale
_DARK_CELL = 0.179  # luminance to which white and black have one contrast


def compare(
    compared: pl.DataFrame, metrics: Sequence[Metric], call: Call, trial: Trial
) -> alt.LayerChart | alt.FacetChart:
    """Draw differences, of many systems without a baseline as one cell per pair."""
    directions = pair_tests.directions_of(call.requested(metrics))
    confidence = trial.confidence
    margins = trial._replace(
        margin=comparison.per_metric("margin", trial.margin, [*directions])
    ).margins
    table = _tables.differences(compared, call.groups, margins)
    names = _tables.texts(table["panel"])
    _tables.check_values(table["difference"], ", ".join(names[:3]))
    _tables.check_rows(table, "pairs", "a baseline")
    names = list(directions)
    what = ", ".join(names if len(names) < 4 else [*names[:3], f"{len(names) - 3} more"])
    counted = f"{sentences.users(table['users'])}{_tables.weighted_by(call.options)}"
    tested = sentences.tested_in_words(trial, compared)
    missed = sentences.missed_lines(_tables.missed_of_pairs(compared, call.groups))
    look = _verdict_look(directions, trial, f"p < {keywords.alpha_of(confidence):.2g}")
    systems = _tables.texts(pl.concat([table["system"], table["baseline"]]))
    better = directions[names[0]]
    if trial.baseline is None and len(systems) > _MOST_PAIRED:
        title = _panels.title_of(
            f"Differences of {len(systems)} systems in {what}",
            f"{counted}; row − column, best first; darker cells: smaller p",
            tested,
            *missed,
        )
        return _triangle(table, title, look, confidence, higher_is_better=better)
    pairs = table.select("pair", "system", "baseline").unique("pair", maintain_order=True)
    order = _tables.pair_order(table, higher_is_better=better)
    counts = table["verdict"].value_counts(sort=True)
    proven = ", ".join(
        f"{count} {verdict}" for verdict, count in counts.sort("verdict").iter_rows()
    )
    text = f"Differences of systems in {what}"
    if len(pairs) == 1:
        text = f"{order[0]}: {what}"
    elif trial.baseline is not None:
        text = f"Differences from {sentences.one_line(trial.baseline)} in {what}"
        text += f": {proven}"
        order = pl.Series(order).replace_strict(pairs["pair"], pairs["system"]).to_list()
    alone = "simultaneous" if trial.test == "max_t" else "not corrected"
    intervals = f"{confidence * 100:.10g}% intervals, {alone}"
    title = _panels.title_of(text, counted, f"{intervals}; {tested}", *missed)
    row = "pair" if trial.baseline is None or len(pairs) == 1 else "system"
    return _intervals(table.drop("baseline"), title, look, confidence, row=row, order=order)


def _intervals(
    table: pl.DataFrame,
    title: alt.TitleParams,
    look: Mapping[str, Any],
    confidence: float,
    *,
    row: str,
    order: Sequence[str],
) -> alt.LayerChart | alt.FacetChart:
    """Draw one row per pair, or per system if all have the same baseline."""
    panels = _tables.texts(table["panel"])
    axis_title = "difference" + (f" in {panels[0]}" if len(panels) == 1 else "")
    two_lines = row == "pair" and max(map(len, order)) > 30
    axis: dict[str, Any] = {"labelLimit": 240}
    if two_lines:
        axis["labelExpr"] = "split(replace(datum.label, ' − ', '\\n− '), '\\n')"
    if len(order) == 1:
        axis |= {"labels": False, "ticks": False}
    base = alt.Chart().encode(
        y=alt.Y(f"{row}:N", title=None, sort=list(order), axis=_marks.axis_of(**axis)),
        color=look["color"],
    )
    base = _marks.described(base, table, _words(confidence))
    bars = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.ci_low)")
    points = base.mark_point(filled=True, opacity=1, size=80)
    signed = _marks.change_axis(format="+.3~g", tickCount=4, labelOverlap=True)
    room = alt.Scale(padding=10)
    layers = [
        _marks.zero_line().encode(x=alt.XDatum(0)),
        bars.encode(x=alt.X("ci_low:Q", title=axis_title), x2="ci_high:Q"),
        points.encode(
            x=alt.X("difference:Q", title=axis_title, axis=signed, scale=room), shape=look["shape"]
        ),
    ]
    if "margin" in table.columns:
        layers.insert(0, _margin_band(axis_title))
    # without ink: the panels of one metric have one axis
    ends = base.mark_rule(opacity=0, tooltip=None).transform_filter("isValid(datum.axis_low)")
    layers.append(ends.encode(x=alt.X("axis_low:Q", title=axis_title), x2="axis_high:Q"))
    return _panels.in_panels(
        layers,
        table,
        title,
        width=180,
        height=(34 if two_lines else 24) * max(2, len(order)),
        columns=2 if len(panels) == 4 else 3,
        resolve="x",
    )


def _margin_band(title: str) -> alt.Chart:
    """Draw the differences within the margin, once per panel."""
    band = alt.Chart().mark_rect(color=_marks.PALE)
    band = band.transform_calculate(low=alt.datum.margin * -1)
    drawn: alt.Chart = band.transform_filter("isValid(datum.margin)").encode(
        x=alt.X("min(low):Q", title=title), x2="max(margin):Q"
    )
    return drawn


def _triangle(
    table: pl.DataFrame,
    title: alt.TitleParams,
    look: Mapping[str, Any],
    confidence: float,
    *,
    higher_is_better: bool | None,
) -> alt.LayerChart | alt.FacetChart:
    """Draw one cell per pair of systems: color is the verdict, opacity how small p is."""
    order = _tables.system_order(table, higher_is_better=higher_is_better)
    table = _tables.as_triangle(table, order, confidence)
    depths = _tables.depths_of(confidence)
    axis: dict[str, Any] = {"labelLimit": 200, "labelOverlap": False}
    axis |= {"ticks": False, "domain": False}
    base = alt.Chart().encode(
        x=alt.X("baseline:N", title=None, sort=order, axis=alt.Axis(labelAngle=-90, **axis)),
        y=alt.Y("system:N", title=None, sort=order, axis=alt.Axis(**axis)),
    )
    base = _marks.described(base, table, _words(confidence))
    scale = alt.Scale(type="ordinal", domain=depths, range=[1, 0.7, 0.4, 0.1])
    # the opacity of its swatches is what it explains
    swatches = alt.Legend(title="adjusted p", padding=8, symbolFillColor=_marks.INK)
    depth = alt.Opacity("depth:N", title="adjusted p", scale=scale, legend=swatches)
    deep = alt.FieldOneOfPredicate("depth", depths[:2])
    on_cell = alt.when(deep).then(alt.value(_marks.BACKGROUND))
    cells = base.mark_rect(stroke=_marks.PALE, strokeWidth=1)
    marks = base.mark_point(filled=True, size=24, opacity=1)
    return _panels.in_panels(
        [
            cells.encode(color=look["color"], opacity=depth),
            marks.encode(shape=look["shape"], color=on_cell.otherwise(alt.value(_marks.INK))),
        ],
        table,
        title,
        width=19 * len(order),
        wide=22 * len(order),
        height=(22 if table["panel"].n_unique() == 1 else 19) * len(order),
        columns=1 if len(order) > 16 else 2,
        resolve="x",
    )


def _words(confidence: float) -> dict[str, str | Sequence[str]]:
    """Return the rows of the tooltip of a comparison."""
    return {
        "systems": "pair",
        "metric": "panel",
        "difference": "difference",
        _marks.sure(confidence): ("ci_low", "ci_high"),
        "verdict": "verdict",
        "p, adjusted": "p_adjusted",
        "p, not adjusted": "p_value",
        "users": "users",
        "users higher / equal / lower": ("higher", "equal", "lower"),
        "mean": "mean",
        "mean of the baseline": "baseline_mean",
        "margin": "margin",
        "p of equivalence": "p_equivalent",
        "p of not worse": "p_not_worse",
        "detectable difference": "detectable",
        "note": "note",
    }


def _verdict_look(
    directions: Mapping[str, bool | None], trial: Trial, title: str
) -> dict[str, Any]:
    """Assign a color and a shape to each possible verdict."""
    goods, bads = [], []
    if any(direction is not None for direction in directions.values()):
        goods, bads = ["better"], ["worse"]
    if None in directions.values():
        goods, bads = [*goods, "higher"], [*bads, "lower"]
    within = ["not worse", "equivalent"] if trial.margin else []
    within += [trials.LESS_THAN_MARGIN] if within and bads else []
    domain = [*goods, *within, "undecided", *bads]
    pairs, shapes = zip(*(_colors.VERDICTS[verdict] for verdict in domain), strict=True)
    colors = alt.Scale(domain=domain, range=[_colors.ink(pair) for pair in pairs])
    return {
        "color": alt.Color("verdict:N", scale=colors, legend=_marks.legend_of(title)),
        "shape": alt.Shape(
            "verdict:N",
            scale=alt.Scale(domain=domain, range=list(shapes)),
            legend=_marks.legend_of(title),
        ),
    }


def _cells(base: alt.Chart, color: alt.Color, text: alt.Text, name: str) -> list[alt.Chart]:
    """Draw colored cells, and numbers in the one of black and white that contrasts by 4.5."""
    dark = f"luminance(scale('color', datum.{name})) < {_DARK_CELL}"
    on_cell = alt.when(dark).then(alt.value("white")).otherwise(alt.value("black"))
    return [base.mark_rect().encode(color=color), base.mark_text().encode(text=text, color=on_cell)]


def heatmap(
    means: pl.DataFrame, metrics: Sequence[Metric], call: Call
) -> alt.LayerChart | alt.FacetChart:
    """Draw the means of ``evaluate``, one panel per group of all columns but the last."""
    *outer, inner = map(sentences.one_line, call.groups)
    names = means.columns[len(call.groups) + 1 :]
    directions = pair_tests.directions_of(call.requested(metrics))
    lower = [name for name, higher in directions.items() if higher is False]
    table, segments = _tables.means_by_segment(means, call.groups, names, _MOST_SEGMENTS, lower)
    _tables.check_values(table["mean"], ", ".join(names))
    _tables.check_rows(table, "cells", "fewer metrics")
    panels = _tables.texts(table["panel"])
    is_grid = len(panels) > 1 and len(names) == 1
    averages = _tables.averages_of(call.requested(metrics))
    words = {", ".join(outer): "panel", inner: "segment", "metric": "metric"}
    words |= {averages[:-1].lower(): "mean", "users": "users"}
    kinds = ["best"] * any(higher is not None for higher in directions.values())
    kinds += ["greatest"] * (None in directions.values())
    share = f"relative to the metric's {' or '.join(kinds)} cell"
    words[share] = "share"
    # each name with its users, whose number may differ between panels
    drawn = table["segment"].n_unique()
    keys = ["segment"] if is_grid else ["panel", "segment"]
    counts = table.group_by(keys, maintain_order=True).agg("users")
    named = [
        f"{sentences.isolated(str(row['segment']))} ({sentences.users(pl.Series(row['users']))})"
        for row in counts.rows(named=True)
    ]
    counts = counts.select(*keys, pl.Series("row", named, pl.String))
    table = table.join(counts, on=keys, maintain_order="left")
    place = pl.col("segment").replace_strict(segments, range(len(segments)))
    ordered = _tables.texts(counts.sort(place, maintain_order=True)["row"])
    rows: _Axis = ("row", ordered, inner if len(panels) == 1 else None)
    columns: _Axis = ("metric", names, None)
    if is_grid:  # the more numerous ones in rows
        rows, columns = ("row", ordered, inner), ("panel", panels, ", ".join(outer))
        if len(panels) >= drawn:
            rows, columns = columns, rows
    longest = max(map(len, columns[1]))
    slant = (-40 if longest > 8 else 0) if is_grid else (-30 if longest > 13 else 0)
    across = alt.Axis(labelAngle=slant, labelLimit=180 if is_grid else 260)
    up = alt.Axis(titlePadding=12, labelLimit=260)
    base = alt.Chart().encode(
        x=alt.X(f"{columns[0]}:N", title=columns[2], sort=columns[1], axis=across),
        y=alt.Y(f"{rows[0]}:N", title=rows[2], sort=rows[1], axis=up),
    )
    color = alt.Color(
        "share:Q",
        title=textwrap.wrap(share, 16),
        scale=alt.Scale(range=[*map(_colors.ink, (_colors.PALE, _FULL))], domain=[0, 1]),
        legend=alt.Legend(format="%", padding=8),
    )
    base = _marks.described(base, table, words)
    layers = _cells(base, color, alt.Text("text:N"), "share")
    counted = f"{sentences.users(table['users'])} in each"
    if len(segments) > _MOST_SEGMENTS:
        first = f"{drawn} of {len(segments):,} segments, those with the most users"
        counted = f"{first}: {counted}"
    of_metric = f" of {sentences.one_line(names[0])}" if is_grid else ""
    title = _panels.title_of(
        f"{averages}{of_metric} by {', '.join([*outer, inner])}{_tables.weighted_by(call.options)}",
        counted,
    )
    wide, height = (
        (56 if is_grid else 96) * len(columns[1]),
        24 * (len(rows[1]) if is_grid else drawn),
    )
    if is_grid:
        return _panels.alone(layers, table, title, wide=wide, height=height)
    return _panels.in_panels(layers, table, title, width=78 * len(names), wide=wide, height=height)
