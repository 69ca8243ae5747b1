"""Draw the means of metrics at each cut-off."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import cutoff_curves, sentences
from rankframe._request import keywords, labels
from rankframe._request.keywords import Options
from rankframe._request.labels import RequestedMetric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _panels
from rankframe.plot._colors import Systems

_NAME_HEIGHT = 1.35 * 13 / 300  # of a name with room, as a share of a panel
_NAME = 20  # characters of a name beside its line


@adapters.takes_any_frame
def at_k(
    frame: Runs[Frame],
    /,
    *names: str,
    k: Iterable[int] = range(1, 21),
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    interval: bool = True,
    confidence: float = 0.95,
    together: bool = False,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean of metrics at each cut-off, with its interval.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *names
        Metrics without their cut-off: ``"ndcg"``, ``"precision(divide_by=returned)"``, ``"gmap"``.
    k
        The cut-offs.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    interval
        Draw the interval of the mean (Student's) as a band.
    confidence
        The probability that a single interval covers the true value.
    together
        Draw all metrics on one axis, each with its own dashes: precision and recall over k.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment; a single panel is as wide as the page. The drawn numbers
        are in ``chart.data``: ``panel``, ``system``, ``k``, ``users``, ``mean``, ``ci_low``,
        ``ci_high``, as in ``rf.stats.at_k``, with ``together`` also ``metric``. If there are more
        than six systems, only the best three at the last cut-off are colored and named (``name``,
        ``name_at``); click the legend to select systems, hover over one to show its band.

    Raises
    ------
    ValueError
        If a name already has a cut-off or cannot have one, or there are more than 40 systems.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> chart = rf.plot.at_k(run, "recall", k=[1, 2], truth=truth, by=())
    >>> chart.data["mean"].to_list()
    [0.5, 1.0]
    """
    call = _call.read_call(frame, truth, by, options)
    keywords.check_flag("together", together)
    cuts = cutoff_curves.labels_at(names, cutoff_curves.cutoffs(k))
    values = call.values(cuts["label"].to_list())
    means = cutoff_curves.means_of(values, interval=interval, confidence=confidence).collect()
    band = confidence if interval else None
    return picture(means, cuts, call.groups, options, confidence=band, together=together)


def picture(
    means: pl.DataFrame,
    cuts: pl.DataFrame,
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
    names, cutoffs = _panels.texts(cuts["metric"]), cuts["k"].unique().sort().to_list()
    requested = labels.parse_metrics(cuts["label"].to_list(), per_user=False)
    table = _means_by_panel(means, cuts, groups, together=together)
    lows, highs = zip(*_marks.limits_of(requested).values(), strict=True)
    limits = _marks.within((min(lows), max(highs)), table["mean"])
    table = table.with_columns(pl.col("ci_low", "ci_high").clip(*limits))
    _call.check_values(table["mean"], ", ".join(names))
    _call.check_rows(table, "points", "fewer cut-offs")
    systems = _systems_of(table.filter(k=cutoffs[-1]), requested[0], groups, order)
    has_names = not together and systems.column is not None
    systems = systems._replace(
        baseline=baseline, legend=systems.legend if systems.are_many or not has_names else False
    )
    panels = _panels.texts(table["panel"])
    three = len(panels) == 3 and not systems.are_many
    if systems.are_many:
        table = _panels.best_last(table, systems.names)
        places = {name: place for place, name in enumerate(panels)}
        table = table.sort(pl.col("panel").replace_strict(places), maintain_order=True)
    if has_names:
        best = systems.best if systems.are_many else systems.names
        table = _with_names(table, best, limits[1], bands=not systems.are_many)
    mean = f"Mean{_panels.weighted_by(options)} over {sentences.users(table['users'])}"
    by = f"{names[0]}@{cutoffs[-1]}" if order is None else order[1]
    leader, dashes = _leader_of(table, requested), []
    if together and systems.are_many:
        dashes = [_colors.dashes_of([f"{name}@k" for name in names])]
    title = _panels.title_of(
        f"{', '.join(f'{name}@k' for name in names)} at k = {_panels.as_text(cutoffs)}{leader}",
        *_panels.counted(mean, systems, by, confidence),
        *dashes,
        *_panels.missed(means, groups, "selected"),
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
    means: pl.DataFrame, cuts: pl.DataFrame, groups: Sequence[str], *, together: bool
) -> pl.DataFrame:
    """Put each metric and segment in a panel, or all metrics of a segment ``together``."""
    numbers = ("k", "users", "mean", "ci_low", "ci_high")
    table = means.select(
        *sentences.system_and_segment(means, groups), pl.col("metric").alias("label"), *numbers[1:]
    )
    table = table.join(cuts, on="label", how="left", maintain_order="left")
    table = table.with_columns(metric=pl.format("{}@k", "metric"))
    if together:
        return table.select(pl.col("segment").alias("panel"), "system", "metric", *numbers)
    return table.select(_panels.panel_of("metric"), "system", *numbers)


def _systems_of(
    last: pl.DataFrame,
    first_metric: RequestedMetric,
    groups: Sequence[str],
    order: tuple[Sequence[str], str] | None,
) -> Systems:
    """Order the systems by the first metric in the first panel at the last cut-off."""
    first = last.filter(panel=last["panel"][0])
    if order is not None:
        names = [name for name in order[0] if name in {*first["system"]}]
        return _colors.systems_of(names, groups, order[0], _colors.legend_above(names))
    first = first.filter(metric=first["metric"][0]) if "metric" in first.columns else first
    higher = first_metric.traits.higher_is_better
    names = _panels.best_first(first, "mean", higher_is_better=higher)
    return _colors.systems_of(names, groups)


def _leader_of(table: pl.DataFrame, requested: Sequence[RequestedMetric]) -> str:
    """Name the system that is the best at every cut-off and in every panel, if there is one."""
    directions = {metric.traits.higher_is_better for metric in requested}
    means = table.drop_nulls("mean")
    if len(directions) > 1 or None in directions:
        return ""
    if min(means["system"].n_unique(), means["k"].n_unique()) < 2:
        return ""
    sign = 1 if directions == {True} else -1
    keys = [name for name in ("panel", "metric", "k") if name in means.columns]
    best = pl.col("mean") * sign == (pl.col("mean") * sign).max().over(keys)
    leading = means.filter(best)
    if leading["system"].n_unique() > 1 or leading.height < means.select(keys).n_unique():
        return ""
    return f": {sentences.one_line(leading['system'][0])} leads at every k"


def _with_names(
    table: pl.DataFrame, best: Sequence[str], most: float, *, bands: bool
) -> pl.DataFrame:
    """Add names at the line ends of the best systems, apart and at most at ``most``.

    With ``bands``, the axis has room for the intervals, too.
    """
    ends = pl.col("k") == pl.col("k").max()
    panels: list[pl.DataFrame] = []
    for rows in table.partition_by("panel", maintain_order=True):
        names = ("mean", "ci_low", "ci_high") if bands else ("mean",)
        drawn = pl.concat([rows[name].alias("mean") for name in names])
        low, high = _marks.bounds(drawn.drop_nulls()) if drawn.count() else (0.0, 1.0)
        rows_with_names = rows.filter(ends & pl.col("system").is_in(best)).drop_nulls("mean")
        ends_at = dict(rows_with_names.select("system", "mean").rows())
        places = apart(ends_at, _NAME_HEIGHT * (high - low), most)
        panels.append(placed(rows, ends, places))
    return pl.concat(panels)


def apart(values: Mapping[str, float], room: float, most: float = inf) -> dict[str, float]:
    """Move places apart, up and down equally, until names do not overlap, at most to ``most``."""
    order = sorted(values, key=lambda name: values[name])
    places = [values[name] for name in order]
    for _ in range(20):
        for low in range(len(places) - 1):
            lacking = room - (places[low + 1] - places[low])
            if lacking > 0:
                places[low] -= lacking / 2
                places[low + 1] += lacking / 2
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], most)
        most = places[number] - room
    return dict(zip(order, places, strict=True))


def placed(rows: pl.DataFrame, ends: pl.Expr, places: Mapping[str, float]) -> pl.DataFrame:
    name_at = pl.col("system").replace_strict(places, default=None, return_dtype=pl.Float64)
    at_end = pl.when(ends & name_at.is_not_null())
    return rows.with_columns(
        at_end.then(pl.col("system").map_elements(_shortened, pl.String)).alias("name"),
        at_end.then(name_at).alias("name_at"),
    )


def _shortened(name: str) -> str:
    """Cut the middle of a long name: names often differ at their ends."""
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[1 - _NAME // 2 :]}"


def _curves(
    table: pl.DataFrame,
    systems: Systems,
    cutoffs: Sequence[int],
    limits: tuple[float, float],
    confidence: float | None,
) -> list[alt.Chart]:
    """Draw lines and points of means, their intervals, and of many systems the best names."""
    panels, many = _panels.texts(table["panel"]), systems.are_many
    metrics = _panels.texts(table["metric"]) if "metric" in table.columns else []
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
    hover: dict[str, Any] = {"on": "pointerover", "clear": "pointerout", "nearest": True}
    pointed = alt.selection_point(name="pointed", fields=["system"], empty=False, **hover)
    points = _marks.points_of(base, systems, 36, _marks.chosen(), pointed).encode(y=y)
    shown = cutoffs[:: -(-len(cutoffs) // 30)]
    points = points.transform_filter(alt.FieldOneOfPredicate("k", shown))
    layers = [lines]
    if confidence is not None:
        band = base.mark_area(opacity=0.25 if many else 0.15)
        if len(cutoffs) == 1:
            band = base.mark_rule(strokeWidth=1.5)
        band = band.encode(y=alt.Y("ci_low:Q", axis=_marks.axis_of(), **up), y2="ci_high:Q")
        band = band.encode(detail="metric:N") if metrics else band
        layers = [band.transform_filter(pointed) if many else band, lines]
    layers.insert(0 if many else len(layers), points)  # selections are in the first layer
    if has_names:
        names_at = base.encode(y=alt.Y("name_at:Q", **up))
        layers += names_beside(names_at, 130 if len(panels) == 1 else 75, chosen=many)
    return layers


def _scale(table: pl.DataFrame, limits: tuple[float, float]) -> alt.Scale:
    """Let a single panel reach to round numbers, also where bands of many are not drawn yet."""
    if table["panel"].n_unique() > 1:
        return alt.Scale(zero=False)
    values = pl.concat([table[name].alias("value") for name in ("mean", "ci_low", "ci_high")])
    domain = _marks.round_ends(*_marks.bounds(values.drop_nulls()), limits)
    return alt.Scale(zero=False, domain=list(domain), nice=False)


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


def names_beside(base: alt.Chart, limit: float, *, chosen: bool = True) -> list[alt.Chart]:
    """Write the names of the best systems, or of the chosen, to the right of their lines."""
    base = base.transform_filter("isValid(datum.name)")
    if chosen:
        shown = alt.when(_marks.chosen()).then(alt.value(1)).otherwise(alt.value(0))
        base = base.encode(opacity=shown)
    look: dict[str, Any] = {"align": "left", "dx": 16, "fontSize": 11, "fontWeight": "bold"}
    bullet = base.mark_point(filled=True, opacity=1, shape="circle", size=45, xOffset=9)
    return [bullet, *_marks.with_halo(base, "name:N", limit=limit, **look)]
