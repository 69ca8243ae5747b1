"""Draw computed numbers, for charts and for reports: Altair charts of means and of users."""

from __future__ import annotations

from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import polars as pl

from rankframe._comparison import sentences, trials
from rankframe._evaluation import user_columns
from rankframe._request.keywords import Options
from rankframe.errors import RankingDataError
from rankframe.plot import _colors, _marks, _panels, _tables

if TYPE_CHECKING:
    import altair as alt

_MOST_LINES = 40  # systems whose names fit in a legend


def at_k_picture(
    means: pl.DataFrame,
    labels: pl.DataFrame,
    groups: Sequence[str],
    options: Options,
    *,
    confidence: float | None,
    together: bool = False,
    order: tuple[Sequence[str], str] | None = None,
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the means of labels at cut-offs, with intervals of a confidence.

    In the narrow columns of a page, ``order`` has its systems and what their order is by.
    """
    import altair as alt

    names, cutoffs = _tables.texts(labels["metric"]), labels["k"].unique().sort().to_list()
    numbers = ("users", "mean", "ci_low", "ci_high")
    missed = sentences.missed_lines(
        means.select(*sentences.system_and_segment(means, groups), "selected", "num_missed")
    )
    table = means.select(
        *sentences.system_and_segment(means, groups), pl.col("metric").alias("label"), *numbers
    )
    table = table.join(labels, on="label", how="left", maintain_order="left")
    table = table.with_columns(name=pl.format("{}@k", "metric"))
    if together:
        table = table.select(
            pl.col("segment").alias("panel"),
            "system",
            pl.col("name").alias("metric"),
            "k",
            *numbers,
        )
    else:
        table = table.select(_tables.panel_of("name"), "system", "k", *numbers)
    _tables.check_values(table["mean"], ", ".join(names))
    _tables.check_rows(table, "points", "fewer cut-offs")
    (higher, *_) = _tables.directions(labels["label"].to_list()).values()
    first_label = f"{names[0]}@{cutoffs[-1]}"
    first = table.filter(panel=table["panel"][0], k=cutoffs[-1])
    first = first.filter(metric=first["metric"][0]) if together else first
    systems = _tables.best_first(first, "mean", higher_is_better=higher)
    narrow = order is not None
    if order is not None:
        drawn, first_label = set(systems), order[1]
        systems = [name for name in order[0] if name in drawn]
    check_lines(systems, groups)
    many = _colors.are_many(systems)
    panels = _tables.texts(table["panel"])
    words: dict[str, str | Sequence[str]] = {
        "system": "system",
        "segment" if together else "metric": "panel",
        **({"metric": "metric"} if together else {}),
        "k": "k",
        "mean": "mean",
        _marks.sure(confidence or 0): ("ci_low", "ci_high"),
        "users": "users",
    }
    three = len(panels) == 3 and not many
    height = 220 if three else 300
    limit = 130 if len(panels) == 1 else 75  # pixels of a name
    ranges = _tables.limits_of(labels["label"].to_list()).values()
    limits = min(low for low, _ in ranges), max(high for _, high in ranges)
    limits = _tables.within(limits, table["mean"])
    if many:
        # the last layer is on top
        back = {name: place for place, name in enumerate(reversed(systems))}
        table = table.sort(pl.col("system").replace_strict(back), maintain_order=True)
        table = table.sort(pl.col("panel").replace_strict(_places(panels)), maintain_order=True)
        systems_with_names = [] if together else systems
        table = _tables.with_names(table, systems_with_names, 1.35 * 13 / height, limits[1])
    chosen, pointed = _colors.selections()
    look: dict[str, Any] = _colors.of_many(systems, chosen) if many else {}
    faint = _colors.points_of_many(systems, chosen) if many else {}
    legend = _colors.legend_above(systems) if narrow else True
    among = None if order is None else order[0]
    colors = _colors.color_of(systems, groups, legend=legend, among=among)
    metrics: list[str] = []
    if together:
        metrics = _tables.texts(table["metric"])
        look |= _colors.dash_of(metrics, legend=not many)  # a long legend of systems leaves no room
        colors |= {} if groups else {"color": _colored_metrics(metrics)}
    x = _marks.cutoff_axis(cutoffs, room=many and not together)
    axis_title = (f"mean {panels[0]}" if not together else "mean") if len(panels) == 1 else None
    base = _marks.described(alt.Chart().encode(x=x, **colors), table, words)
    scale, axis = alt.Scale(zero=False), _marks.axis_of()
    low, high = pl.col("ci_low"), pl.col("ci_high")
    inside = table.select("mean", low.clip(limits[0]), high.clip(upper_bound=limits[1]))
    if len(panels) == 1:  # also where the bands of many are not drawn yet
        drawn_ends = pl.concat(
            [inside["mean"], inside["ci_low"].rename("mean"), inside["ci_high"].rename("mean")]
        )
        domain = _tables.round_ends(*_tables.bounds(drawn_ends.drop_nulls()), limits)
        scale = alt.Scale(zero=False, domain=list(domain), nice=False)
    y = alt.Y("mean:Q", title=axis_title, scale=scale, axis=axis)
    every = -(-len(cutoffs) // 30)
    points = base.mark_point(filled=True, opacity=1, size=36)
    points = points.transform_filter(alt.FieldOneOfPredicate("k", cutoffs[::every]))
    points = points.encode(
        y=y, **_colors.shape_of(systems, groups, legend=legend, among=among), **faint
    )
    area = base.mark_area(opacity=0.25 if many else 0.15)
    area = area if len(cutoffs) > 1 else base.mark_rule(strokeWidth=1.5)
    band_low, band_high = "ci_low", "ci_high"
    if not inside.equals(table.select("mean", low, high)):  # Student's intervals may exceed a range
        band_low, band_high = "low", "high"
        area = area.transform_calculate(
            low=_between("ci_low", limits), high=_between("ci_high", limits)
        )
    band = area.encode(
        y=alt.Y(f"{band_low}:Q", title=axis_title, axis=axis, scale=scale), y2=f"{band_high}:Q"
    )
    if together:
        band = band.encode(detail="metric:N")
    layers = [base.mark_line().encode(y=y, **look)]
    if confidence is not None:
        layers.insert(0, band.transform_filter(pointed) if many else band)
    # Altair looks for selections in the first layer
    layers.insert(
        0 if many else len(layers), points.add_params(chosen, pointed) if many else points
    )
    if many and not together:
        names_at = alt.Y("name_at:Q", title=axis_title, scale=scale)
        layers += _marks.names_beside(base.encode(y=names_at), chosen, limit)
    mean = f"{_tables.mean_of(options)} over {_tables.user_count(table['users'])}"
    lines = [f"{mean}, with {confidence * 100:.10g}% intervals" if confidence is not None else mean]
    if many:
        lines += [selectable(first_label, interval=confidence is not None)]
    elif confidence is not None and len(systems) > 1:
        lines += ["overlapping bands are not a test: see compare"]
    if together and many:
        lines += [_colors.dashes_of(metrics)]
    title = _panels.title_of(
        f"{', '.join(f'{name}@k' for name in names)} at k = {_tables.as_text(cutoffs)}",
        *lines,
        *missed,
        narrow=narrow,
    )
    return _panels.in_panels(
        layers,
        table,
        title,
        width=175 if three else 280,
        height=height,
        columns=3 if three else 2,
    )


def users_picture(
    values: pl.DataFrame, groups: Sequence[str], *, higher_is_better: bool | None, bins: int = 20
) -> alt.FacetChart:
    """Draw the distribution of the users' values, which are in the second-to-last column."""
    values = values.sort(values.columns[: len(groups) + 1])
    missed = sentences.missed_lines(sentences.missed_counts(values, groups))
    values = values.drop(user_columns.MISSED).drop_nulls(values.columns[len(groups)])
    name = values.columns[-1]
    values = values.select(
        *sentences.system_and_segment(values, groups),
        _tables.number_of(values, name).alias("value"),
    )
    defined = values.drop_nulls("value")
    _tables.check_values(defined["value"], name)
    means = defined.group_by("system", maintain_order=True).agg(pl.col("value").mean())
    systems = _tables.texts(values["system"])
    in_strips = len(systems) >= _tables.MOST_COLORED
    if in_strips:
        means = means.sort(
            "value", descending=higher_is_better is not False, nulls_last=True, maintain_order=True
        )
        systems = means["system"].to_list()
    table = _tables.strips(defined) if in_strips else _tables.histograms(defined, bins)
    _tables.check_rows(
        table, "rows" if in_strips else "bars", "fewer systems" if in_strips else "fewer bins"
    )
    axis_title = f"{sentences.one_line(name)} per user"
    segments = _tables.texts(table["segment"])
    counts = table.group_by("system", "segment").agg(pl.col("users").sum())["users"]
    undefined = len(values) - len(defined)
    left_out = f"; {undefined:,} without a value left out" if undefined else ""
    zeros = bool((defined["value"] == 0).any())
    if in_strips:
        layers = _marks.strip_layers(table, systems, axis_title)
        width, height = max(150, 480 // len(segments)), 21 * len(systems)
        lines = [f"{_tables.user_count(counts)} in each row{left_out}"]
        rest = "users not at 0" if zeros else "users"
        lines += [f"{rest}: line 5 to 95%, bar 25 to 75%, gap median; diamond: mean of all"]
    else:
        layers = _marks.histogram_layers(table, systems, axis_title)
        width, height = max(90, 600 // len(segments)), 80
        lines = [f"{_tables.user_count(counts)} in each panel; dashed line: mean{left_out}"]
    if zeros:
        lines += ["box on the left: filled to the share of users whose value is exactly 0"]
    rows = {} if in_strips else {"row": _panels.panels_by("system", systems, "share of users")}
    return _panels.in_grid(
        layers.properties(width=width, height=height),
        **rows,
        column=_panels.panels_by("segment", segments),
        title=_panels.title_of(f"{sentences.one_line(name)}, user by user", *lines, *missed),
        spacing=14,
    )


def change_picture(
    values: pl.DataFrame,
    means: pl.DataFrame,
    groups: Sequence[str],
    k: int,
    baseline: object,
    options: Options,
) -> alt.FacetChart:
    """Draw the changes of users, and the means of bins that ``diagnose`` returns."""
    means = means.remove(pl.col("reading").str.starts_with(trials.NO_LIST))
    if len(groups) > 1:  # the rows of all segments have no panel
        means = means.drop_nulls(groups)
    means = means.select(*sentences.system_and_segment(means, groups), pl.exclude(groups))
    pairs = _tables.changes_of(values, groups, baseline)
    if pairs.is_empty():
        msg = f"column {groups[0]!r}: no system shares a user with {baseline!r}"
        raise RankingDataError(msg)
    panels = pairs.select("system", "segment").n_unique()
    if panels > _tables.MOST_PANELS:
        msg = f"{panels} systems and segments are too many for one chart: filter the frame"
        raise ValueError(msg)
    deepest = min(k, options.get("depth") or k)
    return _marks.change_chart(
        _tables.cells_of(pairs, k), means, k, deepest, sentences.one_line(baseline)
    )


def check_lines(systems: Sequence[str], groups: Sequence[str]) -> None:
    if len(systems) > _MOST_LINES:
        msg = (
            f"column {groups[0]!r}: {len(systems)} systems, but the legend of a chart has room for "
            f"{_MOST_LINES}: filter the frame"
        )
        raise ValueError(msg)


def _between(name: str, limits: tuple[float, float]) -> str:
    """Write the value of a column within limits, as an expression of Vega."""
    least, most = limits
    text = f"datum.{name}"
    text = f"max({text}, {least})" if least > -inf else text
    return f"min({text}, {most})" if most < inf else text


def _places(names: Sequence[str]) -> dict[str, int]:
    return {name: place for place, name in enumerate(names)}


def _colored_metrics(metrics: Sequence[str]) -> alt.Color:
    """Color the metrics of a single system."""
    import altair as alt

    colors = [
        _colors.ink(_colors.COLORS[place % len(_colors.COLORS)]) for place in range(len(metrics))
    ]
    scale = alt.Scale(domain=list(metrics), range=colors)
    return alt.Color("metric:N", scale=scale, legend=_colors.legend_of("metric"))


def selectable(by: str, *, interval: bool) -> str:
    """Explain the colors of many systems, and the interactions of a page."""
    bands = ", hover to show a band" if interval else ""
    return f"colored: the best {_tables.BEST} by {by}; click the legend to select{bands}"
