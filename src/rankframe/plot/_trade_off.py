"""Draw one metric against another, one point per system."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import sentences, summaries
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.errors import RankingDataError
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _names, _panels
from rankframe.plot._colors import Systems


@adapters.takes_any_frame
def trade_off(
    frame: Runs[Frame],
    /,
    x: Metric,
    y: Metric,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    confidence: float = 0.95,
    **options: Unpack[StatisticsOptions],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw one metric against another, one point per system, with intervals both ways.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    x
        The metric of the horizontal axis: a label or an expression, as in ``summarize``; also a
        metric of all lists together, such as ``"coverage@10"``.
    y
        The metric of the vertical axis, as ``x``.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    confidence
        The probability that a single interval covers the true value.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One point per system, with the intervals of ``summarize``. If there are more than six
        systems, only the best three by ``x`` are colored and named. The
        drawn numbers are in ``chart.data``: ``panel``, ``system``, ``users``, ``x``, ``x_low``,
        ``x_high``, ``y``, ``y_low``, ``y_high`` and ``front``, true if no other point is better in
        both.

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
    call = _call.read_call(frame, truth, by, options)
    summary = call.compute(summaries.summarize, x, y, confidence=confidence)
    requested = call.requested((x, y))
    limits = _marks.limits_of(requested)
    names = list(limits)
    table = _both_ways(summary, call.groups, names)
    if table.is_empty():
        msg = f"metrics {names[0]!r} and {names[1]!r}: no system has a value of both"
        raise RankingDataError(msg)
    _call.check_rows(table, "points", "fewer segments")
    panels = _panels.texts(table["panel"])
    _call.check_panels(panels)
    higher = requested[0].traits.higher_is_better
    systems = _colors.systems_of(table, call.groups, "x", higher_is_better=higher)
    size = (460, 340) if len(panels) == 1 else (280, 230)
    domains = {
        axis: _padded(table, axis, limits[name]) for axis, name in zip("xy", names, strict=True)
    }
    table = _panels.best_last(table, systems)
    table = table.with_columns(front=_on_front(table, requested))
    named = systems.best if systems.are_many else systems.names
    table = _names.at_ends(
        table,
        pl.col("system").is_in(list(named)),
        "y",
        span=domains["y"],
        height=size[1],
        names=systems.short,
    )
    across, up = map(sentences.one_line, names)
    front = "; dashed: none beats them in both" if table["front"].sum() > 1 else ""
    return _panels.in_panels(
        _layers(table, systems, requested, domains, confidence),
        table,
        _panels.title_of(
            f"{up} against {across}",
            f"{sentences.users(table['users'])}{_panels.weighted_by(call.options)}; "
            f"lines: {confidence * 100:.10g}% intervals, not corrected{front}",
            f"colored: the best {_colors.BEST} by {across}" if systems.are_many else "",
            systems.short.key,
            *_panels.missed(summary, call.groups),
        ),
        width=size[0],
        wide=size[0],
        height=size[1],
    )


def _both_ways(summary: pl.DataFrame, groups: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Put the numbers of two metrics side by side, one row per system that has both."""
    system, segment = sentences.system_and_segment(summary, groups)
    ends = {"": "mean", "_low": "ci_low", "_high": "ci_high"}
    keys = [segment.alias("panel"), system, pl.col("metric", "users")]
    x, y = (
        summary.select(*keys, **{f"{axis}{end}": name for end, name in ends.items()})
        .filter(metric=metric)
        .drop("metric")
        for axis, metric in zip("xy", names, strict=True)
    )
    on = ["panel", "system"]
    both = x.join(y.drop("users"), on=on, nulls_equal=True, maintain_order="left")
    return both.drop_nulls(["x", "y"])


def _padded(table: pl.DataFrame, axis: str, limits: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds of an axis, with room beside the outermost intervals within a range."""
    least, greatest = _marks.bounds(*table.select(f"^{axis}(_low|_high)?$"))
    room = 0.08 * (greatest - least) or 0.1 * abs(least) or 0.1
    low, high = _marks.within(limits, table[axis])
    return max(least - room, low), min(greatest + room, high)


def _layers(
    table: pl.DataFrame,
    systems: Systems,
    requested: Sequence[RequestedMetric],
    domains: Mapping[str, tuple[float, float]],
    confidence: float,
) -> list[alt.Chart]:
    """Draw points and their intervals both ways."""
    words: dict[str, str | Sequence[str]] = {"segment": "panel", "system": "system"}
    for axis, metric in zip("xy", requested, strict=True):
        text = sentences.one_line(metric.name)
        ends = (f"{axis}_low", f"{axis}_high")
        words |= {text: axis, f"{_marks.sure(confidence)} of {text}": ends}
    words["users"] = "users"
    base = _marks.described(alt.Chart().encode(**_marks.color_of(systems)), table, words)
    bare = _marks.axis_of(tickCount=5, format=".3~g")
    axes: dict[str, Any] = {}
    for axis, title in zip("xy", _axis_titles(requested), strict=True):
        scale = alt.Scale(domain=list(domains[axis]), nice=False, zero=False)
        axes[axis] = {"title": title, "scale": scale}
    x, y = alt.X("x:Q", axis=bare, **axes["x"]), alt.Y("y:Q", axis=bare, **axes["y"])
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
    points = _marks.points_of(base, systems, 70)
    if table["front"].sum() > 1:
        best = alt.Chart().mark_line(color=_marks.GRAY, strokeDash=[4, 3], strokeWidth=1)
        layers.append(best.transform_filter("datum.front").encode(x=x, y=y, order="x:Q"))
    named = base.transform_filter("isValid(datum.name)").encode(y=alt.Y("name_at:Q", **axes["y"]))
    middle = sum(domains["x"]) / 2
    for side, align, dx in (
        (f"datum.x < {middle}", "left", 9),
        (f"datum.x >= {middle}", "right", -9),
    ):
        look: dict[str, Any] = {"align": align, "dx": dx, "fontSize": 11, "baseline": "middle"}
        layers += _marks.with_halo(named.transform_filter(side), "name:N", **look)
    return [*layers, points]


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


def _axis_titles(requested: Sequence[RequestedMetric]) -> list[str]:
    """Return titles of metrics: whether they are means, and which direction is better."""
    titles: list[str] = []
    for metric in requested:
        title = sentences.one_line(metric.name)
        title = f"{title} of all lists" if metric.is_of_all_lists else f"mean {title}"
        better = {True: " (higher is better)", False: " (lower is better)", None: ""}
        titles.append(title + better[metric.traits.higher_is_better])
    return titles
