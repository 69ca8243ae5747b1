"""Draw exposure, and one metric against another: charts of shares, trade-offs and Lorenz curves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import sentences, summaries
from rankframe._evaluation import row_verbs
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns, Options
from rankframe._request.labels import Metric
from rankframe._request.share_names import Target
from rankframe._request.types import Frame
from rankframe._tables import adapters, run_dicts
from rankframe.errors import RankingDataError
from rankframe.plot import _colors, _marks, _panels, _pictures, _tables

if TYPE_CHECKING:
    import altair as alt
_TARGETS: dict[str, str] = {
    "catalogue": "the share in the catalogue",
    "uniform": "equal shares",
    "history": "the share in the history",
    "truth": "the share in the relevant items",
    "judged": "the share in the judged items",
    "candidates": "the share in the catalogue without each user's history",
}


def shares(
    run: Frame | Mapping[str, Frame],
    /,
    *,
    of: str | None = None,
    k: int | None = None,
    weight: str | float = "none",
    target: Target | None = "catalogue",
    truth: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    exclude: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **columns: Unpack[Columns],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw how the exposure in lists is shared among genres, providers or items.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``from_runs`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all. May be
        left out where ``items`` has one column of lists.
    k
        Cut-off; None means the whole list.
    weight
        The weight of a position: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    target
        What a share should be: the share in the ``"catalogue"``, ``"uniform"``, the share in the
        ``"history"``, in the relevant items of the ``"truth"``, among ``"candidates"`` (the
        catalogue without each user's past items), or None.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, one row per user and item: for popularity, novelty and profiles.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions. A column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. Rows
        that match no list are ignored. The truth stays as it is, so an excluded item that is in the
        truth is a miss.
    by
        The column that identifies the systems: by default ``"model"``, or ``()``, a single system,
        if there is no such column; further columns are segments. Of several columns, the one called
        ``model`` identifies the systems, else the first one.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, if they have other names.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One bar per value and system, for all its lists together, with a tick at the target. Values
        are sorted by target, or without one by share, highest first. If there are more than 20, the
        first 20 are drawn, and the subtitle reports the share of the others. The drawn numbers are
        in ``chart.data``: ``panel``, ``value``, ``system``, ``share``, ``target``.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing, or no value is exposed.
    ValueError
        If there are more than eight systems.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abc"], "genre": ["x", "y", "z"]})
    >>> chart = rf.plot.shares(run, of="genre", items=items, target="uniform", by=())
    >>> chart.data.select("value", pl.col("share", "target").round(3)).rows()
    [('x', 0.667, 0.333), ('y', 0.333, 0.333), ('z', 0.0, 0.333)]
    """
    run, by = run_dicts.as_frame(run, by)
    keywords.check_columns(columns)
    _panels.check_call({})
    import altair as alt

    groups = _tables.groups_of(run, run, by)
    lists = adapters.to_lazy(run, "run")
    exposures = row_verbs.shares(
        lists,
        of=of,
        k=k,
        weight=weight,
        target=target,
        truth=truth,
        items=items,
        history=history,
        exclude=exclude,
        by=groups,
        **columns,
    ).collect()
    name = exposures.columns[len(groups)]
    lacking: list[pl.Expr] = []
    if target is None:
        lacking = [pl.lit(None, pl.Float64).alias("target")]
    rows = exposures.sort(groups).with_columns(*lacking)
    rows = rows.select(
        *sentences.system_and_segment(rows, groups),
        sentences.text_of(rows, [name]).alias("value"),
        "share",
        "target",
    ).select(pl.col("segment").alias("panel"), "value", "system", "share", "target")
    _tables.check_exposed(rows["share"], name)
    table, number = _tables.first_values(rows)
    most = len(_colors.COLORS)
    if (system_count := table["system"].n_unique()) > most:
        msg = (
            f"column {groups[0]!r}: {system_count} systems, but bars have only {most} different "
            "colors: filter the frame"
        )
        raise ValueError(msg)
    _tables.check_rows(table, "bars", "fewer segments")
    panels, systems = _tables.texts(table["panel"]), _tables.texts(table["system"])
    _tables.check_panels(panels)
    values = _tables.texts(table["value"])
    end = float(table.select(pl.max_horizontal(pl.col("share", "target").max())).item())
    x_title, scale = "share of exposure", alt.Scale(domain=[0, end * 1.03], nice=False)
    offset: dict[str, Any] = {}
    if len(systems) > 1:
        offset = {"yOffset": alt.YOffset("system:N", sort=systems)}
    base = alt.Chart().encode(
        y=alt.Y(
            "value:N",
            title=sentences.one_line(name),
            sort=values,
            axis=alt.Axis(labelLimit=120, titlePadding=10),
            scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15),
        ),
        **offset,
    )
    words = {"segment": "panel", sentences.one_line(name): "value", "system": "system"}
    words |= {"share of exposure": "share", "target": "target"}
    base = _marks.described(base, table, words)
    axis = _marks.axis_of(format="~%", tickCount=5)
    bars = base.mark_bar().encode(
        x=alt.X("share:Q", title=x_title, scale=scale, axis=axis),
        **_colors.color_of(systems, groups, distinct=True),
    )
    thick = min(11.0, 48 / len(systems))
    ticks = base.mark_tick(color=_colors.ink(), thickness=2, size=thick, opacity=1)
    ticks = ticks.transform_filter("isValid(datum.target)").encode(x=alt.X("target:Q"))
    lines = [
        _tables.counted_lists(lists, groups, truth, exclude, columns) + _tables.weight_text(weight)
    ]
    if number > _tables.MOST_VALUES:
        what = "share" if target is None else "target"
        first = f"{_tables.MOST_VALUES} of {number:,} values, those with the highest {what}"
        lines += [first, f"the others have {_tables.left_over(table)} of exposure"]
    if target is not None:
        lines.append(f"ticks: target, {_TARGETS[target]}")
    return _panels.in_panels(
        [bars, ticks],
        table,
        _panels.title_of(
            f"Exposure of each {sentences.one_line(name)} in {_tables.lists_to(k)}", *lines
        ),
        width=210,
        height=len(values) * (thick * len(systems) + 10),
        resolve="x",
    )


def trade_off(
    frame: Frame | Mapping[str, Frame],
    /,
    x: Metric,
    y: Metric,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw one metric against another, one point per system, with intervals both ways.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    x
        The metric of the horizontal axis: a label or an expression, as in ``summarize``; also a
        metric of all lists together, such as ``"coverage@10"``.
    y
        The metric of the vertical axis, as ``x``.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The column that identifies the systems: by default ``"model"``, or ``()``, a single system,
        if there is no such column; further columns are segments. Of several columns, the one called
        ``model`` identifies the systems, else the first one.
    confidence
        The probability that a single interval covers the true value.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One point per system, with the intervals of ``summarize``. A legend is added if points are
        too close together to write all names. If there are more than six systems, only the best
        three by ``x`` are colored and named; click the legend to select systems. The drawn numbers
        are in ``chart.data``: ``panel``, ``system``, ``users``, ``x``, ``x_low``, ``x_high``,
        ``y``, ``y_low``, ``y_high``, and ``place``, the side of the point where the name is.

    Raises
    ------
    RankingDataError
        If no system has both values.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> items = pl.DataFrame({"item": [7, 8, 9, 10]})
    >>> chart = rf.plot.trade_off(run, "rr", "coverage@2", truth=truth, items=items, by=())
    >>> chart.data.select("x", "y").rows()
    [(0.75, 0.5)]
    """
    frame, by = run_dicts.as_frame(frame, by)
    _panels.check_call(options)
    import altair as alt

    groups = _tables.groups_of(frame, truth, by)
    metrics = (x, y)
    names = [metric.name for metric in labels.parse_metrics(metrics, per_user=False)]
    summary = _tables.computed(
        summaries.summarize,
        frame,
        *metrics,
        truth=truth,
        by=groups,
        confidence=confidence,
        **options,
    )
    table = _tables.both_ways(summary, groups, names)
    if table.is_empty():
        msg = f"metrics {names[0]!r} and {names[1]!r}: no system has a value of both"
        raise RankingDataError(msg)
    _tables.check_rows(table, "points", "fewer segments")
    panels = _tables.texts(table["panel"])
    _tables.check_panels(panels)
    width, height = (460, 340) if len(panels) == 1 else (280, 230)
    limits = _tables.limits_of(metrics)
    domains = {
        axis: _tables.padded(table, axis, limits[name])
        for axis, name in zip("xy", names, strict=True)
    }
    higher = _tables.directions([x])[names[0]]
    systems = _tables.best_first(table, "x", higher_is_better=higher)
    _pictures.check_lines(systems, groups)
    many = _colors.are_many(systems)
    table = _tables.with_places(
        table, domains, width, height, systems[: _tables.BEST] if many else None
    )
    has_all_names = not groups or table["place"].null_count() == 0
    among = (
        systems
        if many
        else _tables.texts(summary.select(*sentences.system_and_segment(summary, groups))["system"])
    )
    look: dict[str, Any] = {"legend": not has_all_names, "among": among}
    chosen, _ = _colors.selections()
    titles = _tables.axis_titles(metrics)
    axes: dict[str, Any] = {
        axis: {
            "title": title,
            "scale": alt.Scale(domain=list(domains[axis]), nice=False, zero=False),
        }
        for axis, title in zip("xy", titles, strict=True)
    }
    quiet = _marks.axis_of(tickCount=5, format=".3~g")
    across, up = (
        alt.X("x:Q", **axes["x"], axis=quiet),
        alt.Y("y:Q", **axes["y"], axis=quiet),
    )
    words: dict[str, str | Sequence[str]] = {"segment": "panel", "system": "system"}
    for axis, name in zip("xy", map(sentences.one_line, names), strict=True):
        words |= {
            name: axis,
            f"{_marks.sure(confidence)} of {name}": (f"{axis}_low", f"{axis}_high"),
        }
    words["users"] = "users"
    base = _marks.described(
        alt.Chart().encode(**_colors.color_of(systems, groups, **look)), table, words
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6, clip=True)
    points = base.mark_point(filled=True, opacity=1, size=70)
    points = points.encode(x=across, y=up, **_colors.shape_of(systems, groups, **look))
    if many:
        back = {name: place for place, name in enumerate(reversed(systems))}
        table = table.sort(pl.col("system").replace_strict(back), maintain_order=True)
        bars = base.mark_rule(strokeWidth=1.5, clip=True)
        bars = bars.encode(opacity=alt.when(chosen).then(alt.value(0.6)).otherwise(alt.value(0.1)))
        points = points.encode(**_colors.points_of_many(systems, chosen)).add_params(chosen)
    layers = [
        bars.transform_filter("isValid(datum.x_low)").encode(
            x=alt.X("x_low:Q", **axes["x"]), x2="x_high:Q", y=up
        ),
        bars.transform_filter("isValid(datum.y_low)").encode(
            x=across, y=alt.Y("y_low:Q", **axes["y"]), y2="y_high:Q"
        ),
    ]
    layers.insert(0 if many else 2, points)
    for place in _tables.texts(table["place"].drop_nulls()):
        right, above = _tables.SIDES[place]
        side: dict[str, Any] = {
            "align": "left" if right else "right",
            "baseline": "bottom" if above else "top",
            "dx": _tables.GAP if right else -_tables.GAP,
            "dy": -_tables.GAP if above else _tables.GAP,
        }
        for look in (_marks.halo(), {}):
            text = base.mark_text(fontSize=11, fontWeight="bold", **side, **look)
            text = text.transform_filter(f"datum.place === '{place}'")
            layers.append(text.encode(x=across, y=up, text="system:N"))
    return _panels.in_panels(
        layers,
        table,
        _panels.title_of(
            f"{sentences.one_line(names[1])} against {sentences.one_line(names[0])}",
            f"{_tables.user_count(table['users'])}{_tables.weighted_by(options)}; "
            f"lines: {confidence * 100:.10g}% intervals, not corrected",
            *([_pictures.selectable(names[0], interval=False)] if many else []),
            *sentences.missed_lines(
                summary.select(
                    *sentences.system_and_segment(summary, groups), "users", "num_missed"
                )
            ),
        ),
        width=width,
        wide=width,
        height=height,
    )


def lorenz(
    run: Frame | Mapping[str, Frame],
    /,
    *,
    of: str = "item",
    k: int | None = None,
    weight: str | float = "none",
    truth: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    exclude: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **columns: Unpack[Columns],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the Lorenz curve of exposure: how unevenly lists show the items of the catalogue.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``from_runs`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all.
    k
        Cut-off; None means the whole list.
    weight
        The weight of a position: ``"none"`` = 1, ``"log"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, one row per user and item: for popularity, novelty and profiles.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions. A column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. Rows
        that match no list are ignored. The truth stays as it is, so an excluded item that is in the
        truth is a miss.
    by
        The column that identifies the systems: by default ``"model"``, or ``()``, a single system,
        if there is no such column; further columns are segments. Of several columns, the one called
        ``model`` identifies the systems, else the first one.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, if they have other names.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One line per system, for all its lists together: items are sorted by exposure, lowest first,
        including those never shown, and the line is their cumulative share of exposure. The
        diagonal is even exposure; the Gini coefficient is twice the area between it and the line.
        The drawn numbers are in ``chart.data``: ``panel``, ``system``, ``values`` (the share of
        items), ``exposure`` (their share of exposure), ``gini``, and ``marked``, true where the
        line has the shape of its system. A line of many items is drawn through at most about 200
        points. If there are more than six systems, only the three most even ones are colored; click
        the legend to select systems.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing, or nothing is exposed.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> chart = rf.plot.lorenz(run, items=pl.DataFrame({"item": [*"abcd"]}), by=())
    >>> chart.data.select("values", pl.col("exposure", "gini").round(3)).rows()
    [(0.0, 0.0, 0.583), (0.5, 0.0, 0.583), (0.75, 0.333, 0.583), (1.0, 1.0, 0.583)]
    """
    run, by = run_dicts.as_frame(run, by)
    keywords.check_columns(columns)
    _panels.check_call({})
    import altair as alt

    groups = _tables.groups_of(run, run, by)
    lists = adapters.to_lazy(run, "run")

    def exposed(weight: str | float) -> pl.DataFrame:
        shares = row_verbs.shares(
            lists,
            of=of,
            k=k,
            weight=weight,
            target=None,
            truth=truth,
            items=items,
            history=history,
            exclude=exclude,
            by=groups,
            **columns,
        )
        return shares.collect()

    table = exposed(weight)
    name = table.columns[len(groups)]
    if of == "shown":  # at rank ≤ k, with a hit or without, as gini counts them
        shown = exposed("none").filter(pl.col("exposure") > 0)
        table = table.join(shown, on=[*groups, name], how="semi")
    rows = table.sort(*groups, "exposure")
    rows = rows.select(*sentences.system_and_segment(rows, groups), "exposure", "share").select(
        pl.col("segment").alias("panel"), pl.exclude("segment")
    )
    _tables.check_exposed(rows["share"], name)
    table = _tables.lorenz_points(rows)
    _tables.check_rows(table, "points", "fewer segments")
    panels = _tables.texts(table["panel"])
    _tables.check_panels(panels)
    what = "items shown at all" if of == "shown" else f"values of {sentences.one_line(name)}"
    if of == "item":
        what = "items"
    percent, from_0_to_1 = _marks.axis_of(format="~%", tickCount=5), alt.Scale(domain=[0, 1])
    systems = _tables.best_first(table, "gini", higher_is_better=False)
    _pictures.check_lines(systems, groups)
    many = _colors.are_many(systems)
    among = systems if many else _tables.texts(rows["system"])
    chosen, _ = _colors.selections()
    axes: dict[str, Any] = {
        "x": alt.X(
            "values:Q",
            title=f"share of {what}, least exposed first",
            scale=from_0_to_1,
            axis=percent,
        ),
        "y": alt.Y("exposure:Q", title="share of exposure", scale=from_0_to_1, axis=percent),
    }
    ends = alt.InlineData([{"values": 0, "exposure": 0}, {"values": 1, "exposure": 1}])
    even = alt.Chart(ends).mark_line(
        color=_colors.ink(_colors.GRAY), strokeDash=[4, 3], strokeWidth=1
    )
    even = even.encode(**axes)
    base = alt.Chart().encode(
        **axes,
        **_colors.color_of(systems, groups, among=among),
        order="values:Q",
    )
    words = {"segment": "panel", "system": "system", f"share of {what}": "values"}
    words |= {"share of exposure": "exposure", "Gini": "gini"}
    base = _marks.described(base, table, words)
    # a shape at each fifth of the exposure distinguishes lines without color
    points = base.mark_point(filled=True, opacity=1, size=30).transform_filter("datum.marked")
    points = points.encode(**_colors.shape_of(systems, groups, among=among))
    line = base.mark_line()
    if many:
        look = _colors.of_many(systems, chosen)
        points = points.encode(**_colors.points_of_many(systems, chosen)).add_params(chosen)
        line = line.encode(**look)
    fifth = (pl.col("exposure") * 5).floor()
    is_new = (fifth != fifth.shift(1).over("panel", "system")).fill_null(value=False)
    table = table.with_columns(marked=is_new & (pl.col("exposure") < 1))
    layers = [points, even, line] if many else [even, line, points]
    curves = table.group_by("panel", "system", maintain_order=True).agg(pl.col("gini").first())
    return _panels.in_panels(
        layers,
        table,
        _panels.title_of(
            f"Lorenz curve of exposure in {_tables.lists_to(k)}",
            _tables.counted_lists(lists, groups, truth, exclude, columns)
            + _tables.weight_text(weight),
            *_tables.gini_texts(curves, systems),
            "dashed: even exposure, Gini 0",
        ),
        width=260,
        wide=360,
        height=260 if len(panels) > 1 else 360,
    )
