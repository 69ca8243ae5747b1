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
from rankframe._tables import adapters, column_roles
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _names, _panels
from rankframe.plot._colors import Systems

_FIT = 0.9  # of the changes and their intervals, which the axis shows


@adapters.takes_any_frame
def at_k(
    frame: Runs[Frame],
    /,
    *names: str,
    k: Iterable[int] = range(1, 21),
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    interval: bool = True,
    confidence: float = 0.95,
    together: bool = False,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean of metrics at each cut-off, or its change from a baseline, with its interval.

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
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system from which the change of the others is drawn, in percent of its mean; by default
        means are drawn.
    interval
        Draw the interval of the mean (Student's), or of the paired change, as a band.
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
        ``ci_high``, as in ``rf.stats.at_k``, with ``together`` also ``metric``. With a ``baseline``
        these are ``relative``, ``relative_low`` and ``relative_high`` of ``rf.compare``, and all
        panels have one axis. Names are at the ends of lines. If there are more than six systems,
        the best three at the last cut-off are colored, and no band is drawn.

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
    call = _call.read_call(frame, truth, by, options, None if baseline is None else "at_k")
    keywords.check_switch("together", together)
    cuts = cutoff_curves.labels_at(names, cutoff_curves.cutoffs(k))
    values = call.values(cuts["label"].to_list())
    means = cutoff_curves.means_of(values, interval=interval, confidence=confidence)
    if baseline is not None:
        means = cutoff_curves.changes_of(values, baseline, confidence)
    band = confidence if interval else None
    return picture(
        *(means.collect(), cuts, call.groups, options),
        confidence=band,
        together=together,
        baseline=baseline,
    )


def picture(
    means: pl.DataFrame,
    cuts: pl.DataFrame,
    groups: Sequence[str],
    options: Options,
    *,
    confidence: float | None,
    together: bool = False,
    baseline: object = None,
) -> alt.LayerChart | alt.FacetChart:
    """Draw the means of labels at cut-offs, or their changes from a baseline."""
    names, cutoffs = _panels.texts(cuts["metric"]), cuts["k"].unique().sort().to_list()
    requested = labels.parse_metrics(cuts["label"].to_list(), per_user=False)
    table = _means_by_panel(means, cuts, groups, together=together)
    _call.check_values(table["mean"], ", ".join(names))
    _call.check_rows(table, "points", "fewer cut-offs")
    first = table.filter(k=cutoffs[-1], panel=table["panel"][0], metric=table["metric"][0])
    higher = requested[0].traits.higher_is_better
    systems = _colors.systems_of(first, groups, "mean", higher_is_better=higher)
    panels = _panels.texts(table["panel"])
    confidence = None if systems.are_many or together else confidence
    height = max(300 if len(panels) < 3 else 220, _names.LINE * table["line"].n_unique())
    lows, highs = zip(*_marks.limits_of(requested).values(), strict=True)
    limits = -inf, inf
    if baseline is None:
        limits = _marks.within((min(lows), max(highs)), table["mean"])
    table = table.with_columns(pl.col("ci_low", "ci_high").clip(*limits))
    drawn = ("mean",) if confidence is None else ("mean", "ci_low", "ci_high")
    domain = _domain(table, drawn, limits, is_change=baseline is not None)
    table = _names.at_ends(
        _panels.best_last(table, systems),
        pl.col("k") == cutoffs[-1],
        "mean",
        line="line",
        span=domain,
        drawn=drawn,
        height=height,
        names=systems.short,
    )
    at = f"{', '.join(f'{name}@k' for name in names)} at k = {_panels.as_text(cutoffs)}"
    text, mean = f"{at}{_leader_of(table, requested)}", "Mean"
    if baseline is not None:
        of_baseline = sentences.one_line(column_roles.in_words(baseline))
        text, mean = f"Change from {of_baseline} in {at}", f"Percent of the mean of {of_baseline}"
    mean += f"{_panels.weighted_by(options)} over {sentences.users(table['users'])}"
    title = _panels.title_of(
        text,
        *_panels.counted(mean, systems, f"{names[0]}@{cutoffs[-1]}", confidence),
        _beyond(table, domain, drawn),
        *_panels.missed(means, groups, "selected"),
    )
    is_single = len(panels) == 1 and not together
    table = table.drop("line") if together else table.drop("line", "metric")
    y_title = f"mean {panels[0]}" if is_single else "mean"
    up: dict[str, Any] = {"title": y_title, "axis": _marks.axis_of()}
    if baseline is not None:
        up = {"title": f"change in {panels[0]}" if is_single else "change"}
        up["axis"] = _marks.change_axis(format="+.2~%", tickCount=6)
    up["scale"] = alt.Scale() if domain is None else alt.Scale(domain=[*domain], nice=False)
    layers = _curves(table, systems, cutoffs, up, confidence, is_change=baseline is not None)
    return _panels.in_panels(
        layers,
        table,
        title,
        width=175 if len(panels) == 3 else 250,
        height=height,
        columns=3 if len(panels) == 3 else 2,
        resolve="y",
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
    panel, line = _panels.panel_of("metric"), pl.col("system")
    if together:
        panel, both = pl.col("segment").alias("panel"), pl.format("{} · {}", "system", "metric")
        line = pl.when(line == "").then("metric").otherwise(both)
    return table.select(panel, "system", "metric", *numbers, line.alias("line"))


def _leader_of(table: pl.DataFrame, requested: Sequence[RequestedMetric]) -> str:
    """Name the system that is the best at every cut-off and in every panel, if there is one."""
    directions = {metric.traits.higher_is_better for metric in requested}
    means = table.drop_nulls("mean")
    if len(directions) > 1 or None in directions:
        return ""
    if min(means["system"].n_unique(), means["k"].n_unique()) < 2:
        return ""
    worth = pl.col("mean") * (1 if directions == {True} else -1)
    leading = means.filter(worth == worth.max().over("panel", "metric", "k"))["system"].unique()
    return f": {sentences.one_line(leading[0])} leads at every k" if len(leading) == 1 else ""


def _domain(
    table: pl.DataFrame, drawn: Sequence[str], limits: tuple[float, float], *, is_change: bool
) -> tuple[float, float] | None:
    """Return the ends of the axis of one panel, or of most changes in all; others begin at 0."""
    if table["panel"].n_unique() > 1 and not is_change:
        return None
    low, high = _marks.bounds(*table.select(drawn))
    if is_change:  # an interval is wide where the mean of the baseline is almost 0
        ends = table[drawn[-1]].quantile(_FIT), table[drawn[len(drawn) // 2]].quantile(1 - _FIT)
        low, high = max(low, min(ends[1] or 0, 0)), min(high, max(ends[0] or 0, 0))
        low, high = min(low, 0), max(high, 0)
    return _marks.round_ends(low, high, limits)


def _beyond(table: pl.DataFrame, domain: tuple[float, float] | None, drawn: Sequence[str]) -> str:
    """Write at which cut-offs a number is beyond the axis."""
    beyond = pl.any_horizontal(~pl.col(*drawn).is_between(*(domain or (-inf, inf))))
    ks = table.filter(beyond)["k"].unique().sort().to_list()
    return f"beyond the axis at k = {_panels.as_text(ks)}" if ks else ""


def _curves(
    table: pl.DataFrame,
    systems: Systems,
    cutoffs: Sequence[int],
    up: Mapping[str, Any],
    confidence: float | None,
    *,
    is_change: bool,
) -> list[alt.Chart]:
    """Draw lines and points of means, their intervals, and the names at their ends."""
    metrics = _panels.texts(table["metric"]) if "metric" in table.columns else []
    panel = {"segment": "panel", "metric": "metric"} if metrics else {"metric": "panel"}
    what = "change" if is_change else "mean"
    words: dict[str, str | Sequence[str]] = {"system": "system", **panel, "k": "k", what: "mean"}
    words |= {_marks.sure(confidence or 0): ("ci_low", "ci_high"), "users": "users"}
    x, y = _cutoff_axis(cutoffs), alt.Y("mean:Q", **up)
    base = alt.Chart().encode(x=x, **_marks.color_of(systems))
    base = _marks.described(base, table, words)
    lines = _marks.lines_of(base, systems, clip=is_change).encode(y=y)
    if metrics:
        lines = lines.encode(**_marks.dash_of(metrics))
    shown = cutoffs[:: -(-len(cutoffs) // 30)]
    points = _marks.points_of(base, systems, 36, clip=is_change).encode(y=y)
    points = points.transform_filter(alt.FieldOneOfPredicate("k", shown))
    layers = [lines, points]
    if metrics or systems.column is not None:
        layers += _marks.names_beside(base, systems, "mean", up, x)
    if confidence is not None:
        band = base.mark_area(opacity=0.15, clip=is_change)
        if len(cutoffs) == 1:
            band = base.mark_rule(strokeWidth=1.5, clip=is_change)
        layers.insert(0, band.encode(y=alt.Y("ci_low:Q", **up), y2="ci_high:Q"))
    if is_change:
        layers.insert(0, _marks.zero_line().encode(y=alt.YDatum(0)))
    return layers


def _cutoff_axis(cutoffs: Sequence[int]) -> alt.X:
    """Make the axis of cut-offs, with room for lines to their names."""
    first, last = cutoffs[0], cutoffs[-1]
    at = cutoffs if len(cutoffs) < 9 else [first, *_marks.ticks(first, last)["values"]]
    axis = _marks.axis_of(format="d", grid=False, labelOverlap=True, values=list(at))
    end = last + 0.07 * max(last - first, 1)
    scale = alt.Scale(domain=[first, end], nice=False, padding=8)
    return alt.X("k:Q", title="k", axis=axis, scale=scale)
