"""Draw metrics over cut-offs: their means at each k, and precision against recall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, log
from typing import Any

import altair as alt
import polars as pl

from rankframe._comparison import sentences
from rankframe._request.keywords import Options
from rankframe.plot import _colors, _marks, _panels, _tables
from rankframe.plot._colors import Systems


def at_k(
    means: pl.DataFrame,
    labels: pl.DataFrame,
    groups: Sequence[str],
    options: Options,
    *,
    confidence: float | None,
    together: bool = False,
    order: tuple[Sequence[str], str] | None = None,
    baseline: str | None = None,
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the means of labels at cut-offs, with intervals of a confidence.

    In the narrow columns of a page, ``order`` has its systems and what their order is by. The
    ``baseline`` is gray.
    """
    names, cutoffs = _tables.texts(labels["metric"]), labels["k"].unique().sort().to_list()
    table = _means_by_panel(means, labels, groups, together=together)
    _tables.check_values(table["mean"], ", ".join(names))
    _tables.check_rows(table, "points", "fewer cut-offs")
    systems = _systems_of(table.filter(k=cutoffs[-1]), labels, groups, order)
    has_names = not together and systems.column is not None
    systems = systems._replace(
        baseline=baseline, legend=systems.legend if systems.are_many or not has_names else False
    )
    limits = _tables.shared_limits(_tables.requested_at(labels), table["mean"])
    panels = _tables.texts(table["panel"])
    three = len(panels) == 3 and not systems.are_many
    if systems.are_many:
        table = _tables.best_last(table, systems.names)
        places = {name: place for place, name in enumerate(panels)}
        table = table.sort(pl.col("panel").replace_strict(places), maintain_order=True)
    if has_names:
        best = systems.best if systems.are_many else systems.names
        table = _tables.with_names(table, best, limits[1], bands=not systems.are_many)
    by = f"{names[0]}@{cutoffs[-1]}" if order is None else order[1]
    leader = _tables.leader_of(table, _tables.requested_at(labels))
    title = _panels.title_of(
        f"{', '.join(f'{name}@k' for name in names)} at k = {_tables.as_text(cutoffs)}{leader}",
        *_subtitle(table, systems, by, options, confidence),
        *_tables.missed(means, groups, "selected"),
        narrow=order is not None,
    )
    return _panels.in_panels(
        _curves(table, systems, cutoffs, limits, confidence),
        table,
        title,
        width=175 if three else 280,
        height=220 if three else 300,
        columns=3 if three else 2,
    )


def _means_by_panel(
    means: pl.DataFrame, labels: pl.DataFrame, groups: Sequence[str], *, together: bool
) -> pl.DataFrame:
    """Put each metric and segment in a panel, or all metrics of a segment ``together``."""
    numbers = ("k", "users", "mean", "ci_low", "ci_high")
    table = means.select(
        *sentences.system_and_segment(means, groups), pl.col("metric").alias("label"), *numbers[1:]
    )
    table = table.join(labels, on="label", how="left", maintain_order="left")
    table = table.with_columns(metric=pl.format("{}@k", "metric"))
    if together:
        return table.select(pl.col("segment").alias("panel"), "system", "metric", *numbers)
    return table.select(_tables.panel_of("metric"), "system", *numbers)


def _systems_of(
    last: pl.DataFrame,
    labels: pl.DataFrame,
    groups: Sequence[str],
    order: tuple[Sequence[str], str] | None,
) -> Systems:
    """Order the systems by the first metric in the first panel at the last cut-off."""
    first = last.filter(panel=last["panel"][0])
    if order is not None:
        names = [name for name in order[0] if name in {*first["system"]}]
        return _colors.systems_of(names, groups, order[0], _colors.legend_above(names))
    first = first.filter(metric=first["metric"][0]) if "metric" in first.columns else first
    higher = _tables.requested_at(labels)[0].traits.higher_is_better
    names = _tables.best_first(first, "mean", higher_is_better=higher)
    return _colors.systems_of(names, groups)


def _subtitle(
    table: pl.DataFrame, systems: Systems, by: str, options: Options, confidence: float | None
) -> list[str]:
    mean = f"{_tables.mean_of(options)} over {sentences.users(table['users'])}"
    has_bands, many = confidence is not None, systems.are_many
    lines = [mean if confidence is None else f"{mean}, with {confidence * 100:.10g}% intervals"]
    if many:
        lines += [_tables.selectable(by, interval=has_bands)]
    elif has_bands and len(systems.names) > 1:
        lines += ["overlapping bands are not a test: see compare"]
    if many and "metric" in table.columns:
        lines += [_colors.dashes_of(_tables.texts(table["metric"]))]
    return lines


def _curves(
    table: pl.DataFrame,
    systems: Systems,
    cutoffs: Sequence[int],
    limits: tuple[float, float],
    confidence: float | None,
) -> list[alt.Chart]:
    """Draw lines and points of means, their intervals, and of many systems the best names."""
    panels, many = _tables.texts(table["panel"]), systems.are_many
    metrics = _tables.texts(table["metric"]) if "metric" in table.columns else []
    panel = {"segment": "panel", "metric": "metric"} if metrics else {"metric": "panel"}
    words: dict[str, str | Sequence[str]] = {"system": "system", **panel, "k": "k", "mean": "mean"}
    words |= {_marks.sure(confidence or 0): ("ci_low", "ci_high"), "users": "users"}
    title = None
    if len(panels) == 1:
        title = "mean" if metrics else f"mean {panels[0]}"
    up: dict[str, Any] = {"title": title, "scale": _scale(table, limits)}
    y = alt.Y("mean:Q", axis=_marks.axis_of(), **up)
    has_names = "name_at" in table.columns
    x = _cutoff_axis(cutoffs, room=has_names)
    base = alt.Chart().encode(x=x, **_colors_of(systems, metrics))
    base = _marks.described(base, table, words)
    lines = _marks.lines_of(base, systems).encode(y=y)
    if metrics:  # a long legend of systems leaves no room for theirs
        lines = lines.encode(**_marks.dash_of(metrics, legend=not many))
    pointed = alt.selection_point(
        name="pointed",
        fields=["system"],
        on="pointerover",
        clear="pointerout",
        nearest=True,
        empty=False,
    )
    points = _marks.points_of(base, systems, 36, _marks.chosen(), pointed).encode(y=y)
    shown = cutoffs[:: -(-len(cutoffs) // 30)]
    points = points.transform_filter(alt.FieldOneOfPredicate("k", shown))
    layers = [lines]
    if confidence is not None:
        band = _band(base, table, limits, up, opacity=0.25 if many else 0.15)
        band = band.encode(detail="metric:N") if metrics else band
        layers = [band.transform_filter(pointed) if many else band, lines]
    layers.insert(0 if many else len(layers), points)  # selections are in the first layer
    if has_names:
        names_at = base.encode(y=alt.Y("name_at:Q", **up))
        layers += _names_beside(names_at, 130 if len(panels) == 1 else 75, chosen=many)
    return layers


def _scale(table: pl.DataFrame, limits: tuple[float, float]) -> alt.Scale:
    """Let a single panel reach to round numbers, also where bands of many are not drawn yet."""
    if table["panel"].n_unique() > 1:
        return alt.Scale(zero=False)
    low, high = table["ci_low"].clip(limits[0]), table["ci_high"].clip(upper_bound=limits[1])
    values = pl.concat([values.alias("value") for values in (table["mean"], low, high)])
    domain = _tables.round_ends(*_tables.bounds(values.drop_nulls()), limits)
    return alt.Scale(zero=False, domain=list(domain), nice=False)


def _band(
    base: alt.Chart,
    table: pl.DataFrame,
    limits: tuple[float, float],
    up: Mapping[str, Any],
    *,
    opacity: float,
) -> alt.Chart:
    """Draw intervals within limits, which Student's may exceed."""
    low, high = "ci_low", "ci_high"
    band = base.mark_area(opacity=opacity)
    if table["k"].n_unique() == 1:
        band = base.mark_rule(strokeWidth=1.5)
    if (table[low] < limits[0]).any() or (table[high] > limits[1]).any():
        band = band.transform_calculate(low=_within(low, limits), high=_within(high, limits))
        low, high = "low", "high"
    drawn: alt.Chart = band.encode(y=alt.Y(f"{low}:Q", axis=_marks.axis_of(), **up), y2=f"{high}:Q")
    return drawn


def _within(name: str, limits: tuple[float, float]) -> str:
    """Write the value of a column within limits, as an expression of Vega."""
    least, most = limits
    text = f"datum.{name}"
    text = f"max({text}, {least})" if least > -inf else text
    return f"min({text}, {most})" if most < inf else text


def _colors_of(systems: Systems, metrics: Sequence[str]) -> dict[str, Any]:
    """Color the systems, or the metrics of a single one."""
    if systems.column is not None or not metrics:
        return _marks.color_of(systems)
    inks = [_marks.COLORS[n % len(_marks.COLORS)] for n in range(len(metrics))]
    scale = alt.Scale(domain=list(metrics), range=inks)
    return {"color": alt.Color("metric:N", scale=scale, legend=_marks.legend_of("metric"))}


def _cutoff_axis(cutoffs: Sequence[int], *, room: bool) -> alt.X:
    """Make the axis of cut-offs, with room for names to the right of the lines if requested."""
    first, last = cutoffs[0], cutoffs[-1]
    end = last + 0.4 * max(last - first, 1) if room else last
    values: dict[str, Any] = {"tickMinStep": 1}
    if room:
        values = {"values": _spread_out(cutoffs, (last - first) / 6)}
    axis = _marks.axis_of(format="d", grid=False, **values)
    scale = alt.Scale(domain=[first, end], nice=False, padding=8)
    return alt.X("k:Q", title="k", axis=axis, scale=scale)


def _spread_out(cutoffs: Sequence[int], least: float) -> list[int]:
    """Choose cut-offs whose numbers do not touch, the last among them."""
    *rest, last = cutoffs
    chosen = [last]
    for k in reversed(rest):
        chosen += [k] if chosen[-1] - k >= least else []
    return [*reversed(chosen)]


def _names_beside(base: alt.Chart, limit: float, *, chosen: bool = True) -> list[alt.Chart]:
    """Write the names of the best systems, or of the chosen, to the right of their lines."""
    base = base.transform_filter("isValid(datum.name)")
    if chosen:
        shown = alt.when(_marks.chosen()).then(alt.value(1)).otherwise(alt.value(0))
        base = base.encode(opacity=shown)
    look: dict[str, Any] = {"align": "left", "dx": 16, "fontSize": 11, "fontWeight": "bold"}
    bullet = base.mark_point(filled=True, opacity=1, shape="circle", size=45, xOffset=9)
    return [bullet, *_marks.with_halo(base, "name:N", limit=limit, **look)]


def precision_recall(
    means: pl.DataFrame, cutoffs: Sequence[int], groups: Sequence[str], options: Options
) -> alt.HConcatChart:
    """Draw the interpolated curve, and the path of both means over k."""
    shared = sentences.text_of(means, groups).alias("system"), pl.col("users")
    curve = pl.concat(
        means.select(*shared, pl.lit(level).alias("recall"), pl.col(name).alias("precision"))
        for name, level in _tables.INTERPOLATED.items()
    )
    path = pl.concat(
        means.select(
            *shared,
            pl.lit(k).alias("k"),
            *(pl.col(f"{name}@{k}").alias(name) for name in _tables.AXES),
        )
        for k in cutoffs
    )
    _tables.check_values(path["precision"], "precision@k")
    _tables.check_rows(path, "points", "fewer cut-offs")
    f1 = 2 * pl.col("precision") * pl.col("recall") / (pl.col("precision") + pl.col("recall"))
    last = path.filter(k=cutoffs[-1]).with_columns(f1=f1.fill_nan(0))
    names = _tables.best_first(last, "f1", higher_is_better=True)
    systems = _colors.systems_of(names, groups)
    counted = f"{_tables.mean_of(options)} over {sentences.users(means['users'])}"
    lines = [f"{counted}; gray: equal F1 of the two means"]
    if systems.are_many:
        lines += [_tables.selectable(f"F1 at k = {cutoffs[-1]}", interval=False)]
    title = _panels.title_of(
        f"Precision and recall, at k = {_tables.as_text(cutoffs)} and interpolated",
        *lines,
        *_tables.missed(means, groups),
    )
    return alt.hconcat(_interpolated(curve, systems), _path(path, systems), title=title)


def _interpolated(table: pl.DataFrame, systems: Systems) -> alt.LayerChart:
    shared: dict[str, Any] = {"scale": _marks.FROM_0_TO_1, "axis": _marks.axis_of()}
    base = alt.Chart().encode(
        x=alt.X("recall:Q", title="recall", **shared),
        y=alt.Y("precision:Q", title="mean interpolated precision", **shared),
        **_marks.color_of(systems),
    )
    words = {"system": "system", "recall": "recall"}
    words |= {"mean interpolated precision": "precision", "users": "users"}
    base = _marks.described(base, table, words)
    points = _marks.points_of(base, systems, 30, _marks.chosen())
    picture: alt.LayerChart = _panels.layered(
        *(points, _marks.lines_of(base, systems), _head_room()),
        data=table,
        width=270,
        height=270,
        title="Interpolated, whole lists",
    )
    return picture


def _path(table: pl.DataFrame, systems: Systems) -> alt.LayerChart:
    """Draw the path of both means over k, on contours of equal F1."""
    many = systems.are_many
    x_end, y_end = (
        min(1.0, room * (_tables.greatest(table, name) or 0.1))
        for name, room in zip(_tables.AXES, (1.6 if many else 1.15, 1.15), strict=True)
    )
    across, up = (alt.Scale(domain=[0, end], nice=False) for end in (x_end, y_end))
    quiet = _marks.axis_of(grid=False, tickCount=5)
    x = alt.X("recall:Q", title="mean recall@k", scale=across, axis=quiet)
    quiet = _marks.axis_of(grid=False)
    y = alt.Y("precision:Q", title="mean precision@k", scale=up, axis=quiet)
    contours = alt.Chart(_contours(x_end, y_end)).encode(x=x, y=y)
    curves = contours.mark_line(color=_marks.PALE, strokeWidth=1.5)
    marks = contours.mark_text(align="right", baseline="bottom", dx=-3, dy=-2, color=_marks.GRAY)
    table = _tables.path_names(table, systems.best if many else [], y_end / 22)
    words = {"system": "system", "k": "k", "mean recall@k": "recall"}
    words |= {"mean precision@k": "precision", "users": "users"}
    base = alt.Chart().encode(x=x, y=y, **_marks.color_of(systems))
    described = _marks.described(base, table, words)
    layers = [
        _head_room(),
        curves.encode(detail="f1:N", order="recall:Q"),
        marks.transform_filter("isValid(datum.label)").encode(text="label:N"),
        _marks.lines_of(described, systems).encode(order="k:Q"),
        _marks.points_of(described, systems, 30),
    ]
    for row in table.drop_nulls("at").iter_rows(named=True):
        side: dict[str, Any] = {"baseline": "top", "dy": 7}
        if row["above"]:
            side = {"baseline": "bottom", "dy": -7}
        side |= {"align": "left" if row["recall"] < x_end / 2 else "right"}
        corner = alt.Chart().transform_filter(alt.datum.at == row["at"]).encode(x=x, y=y)
        layers += _marks.with_halo(corner, "at:N", fontSize=10, **side)
    if many:
        layers += _names_beside(base.encode(y=alt.Y("name_at:Q", scale=up)), 95)
    picture: alt.LayerChart = _panels.layered(
        *layers, data=table, width=310 if many else 270, height=270, title="Path over k"
    )
    return picture


def _head_room() -> alt.Chart:
    """Draw nothing above the frame, so that the titles of panels align."""
    rule: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rule(opacity=0)
    return rule.encode(y=alt.value(-8))


def _contours(x_end: float, y_end: float) -> pl.DataFrame:
    """Return points of equal F1 = f: (recall − f/2)·(precision − f/2) = f²/4."""
    best = 2 * x_end * y_end / (x_end + y_end)
    step = _tables.round_step(best / 6)
    curves: list[pl.DataFrame] = []
    for place in range(1, int(best / step - 1e-9) + 1):
        half = place * step / 2
        begin, end = log(half**2 / (y_end - half)), log(x_end - half)
        along = pl.Series([begin + (end - begin) * part / 30 for part in range(31)]).exp()
        curve = pl.DataFrame({"recall": along + half, "precision": half**2 / along + half})
        last = pl.int_range(pl.len()) == pl.len() - 1
        label = pl.when(last).then(pl.lit(f"F1 {2 * half:.3g}")).alias("label")
        curves.append(curve.with_columns(pl.lit(2 * half).alias("f1"), label))
    return pl.concat(curves)
