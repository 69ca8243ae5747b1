"""Charts: the frame that a verb returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small whatever the number of users. The first chart imports Altair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from math import ceil, floor, log, log10
from typing import TYPE_CHECKING, Any, Literal, Unpack

import polars as pl

from rankframe._compare import Correction, Test, diagnose
from rankframe._compare import compare as compare_systems
from rankframe._evaluate import evaluate, per_user
from rankframe._frames import Frame, to_lazy
from rankframe._labels import Metric, entry_of, parse_metrics
from rankframe._options import Options, check_flag, group_names, whole_number
from rankframe._summarize import summarize
from rankframe.errors import RankingDataError
from rankframe.metrics.core import precision_at, recall_at
from rankframe.metrics.trec import num_relevant

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType

# Okabe and Ito: distinct under every common form of color blindness
_BLUE, _VERMILION, _GREEN, _PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_COLORS = (_BLUE, _VERMILION, _GREEN, _PURPLE, "#E69F00", "#56B4E9", "#B8A800", "#000000")
_DASHES = ([1, 0], [6, 3], [2, 2])
_GRAY, _PALE = "#767676", "#E4E4E4"
_MOST_ROWS = 4_000  # of a chart's data: less than a megabyte, and below Altair's limit
_AXES = ("recall", "precision")
_MOST_SEGMENTS = 40  # rows of a heatmap that can be read
_MOST_PANELS = 12  # rows of panels


def at_k(
    frame: Frame,
    /,
    *names: str,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    interval: bool = True,
    confidence: float = 0.95,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the mean of metrics at each cut-off, with its interval.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    *names
        Metrics without their cut-off: ``"ndcg"``, ``"precision(divide_by=returned)"``.
    ks
        The cut-offs.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, which have different colors; further columns are
        segments, each with its own panel. ``()`` for a single system.
    interval
        Draw the interval of the mean (Student's) as a band.
    confidence
        The probability that the interval covers the true mean.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment. The drawn numbers are in ``chart.data``: ``panel``,
        ``system``, ``k``, ``users``, ``mean``, ``ci_low``, ``ci_high``.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``).
    ValueError
        If a name has a cut-off already or takes none, or a parameter is unknown or out of range.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> chart = rf.plot.at_k(run, "recall", ks=[1, 2], truth=truth, by=())
    >>> chart.data["mean"].to_list()
    [0.5, 1.0]
    """
    _check_call(options)
    check_flag("interval", interval)
    import altair as alt

    cutoffs = _cutoffs(ks)
    labels = _at_cutoffs(names, cutoffs)
    summary = _computed(
        summarize, frame, *labels["metric"], truth=truth, by=by, confidence=confidence, **options
    )
    groups = group_names(by)
    counted = pl.col("users") - pl.col("undefined")
    table = summary.select(*_named(summary, groups), "metric", counted, "mean", "ci_low", "ci_high")
    table = table.join(labels, on="metric", how="left", maintain_order="left").select(
        _panel("name"), "system", "k", "users", "mean", "ci_low", "ci_high"
    )
    _check_values(table["mean"], ", ".join(map(str, names)))
    _check_rows(table, "points", "fewer cut-offs")
    panels = _texts(table["panel"])
    axis_title = f"mean {panels[0]}" if len(panels) == 1 else "mean"
    base = alt.Chart().encode(
        x=_cutoff_axis(cutoffs),
        **_color(table, groups),
        tooltip=_tooltip(table),
    )
    line = base.mark_line(point={"size": 25} if len(cutoffs) <= 30 else False).encode(
        y=alt.Y("mean:Q", title=axis_title, scale=alt.Scale(zero=False)),
        strokeDash=_dash(table, groups),
    )
    area = base.mark_area(opacity=0.15) if len(cutoffs) > 1 else base.mark_rule()
    band = area.encode(y=alt.Y("ci_low:Q", title=axis_title), y2="ci_high:Q")
    layers = _layered(*([band] if interval else []), line, data=table)
    mean = f"Mean over {_users(table['users'])}"
    title = _title(
        f"{', '.join(f'{name}@k' for name in names)} at k = {_as_text(cutoffs)}",
        f"{mean}, with {confidence * 100:.10g}% intervals" if interval else mean,
    )
    return _in_panels(layers, panels, title, width=280, wide=520, height=300)


def precision_recall(
    frame: Frame,
    /,
    *,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw precision against recall: the interpolated curve, and the path over k.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    ks
        The cut-offs of the path.
    truth
        The truth that judges the run.
    by
        Columns that identify the systems, which have different colors. ``()`` for a single system.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    altair.HConcatChart
        On the left, the mean ``interpolated_precision`` of the whole lists at recall 0, 0.1, … 1;
        on the right, the mean precision@k over the mean recall@k, on contours of equal F1.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``).
    ValueError
        If a parameter is unknown or out of range.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> curve, path = rf.plot.precision_recall(run, ks=[1, 2], truth=truth, by=()).hconcat
    >>> path.data.select("k", "recall", "precision").rows()
    [(1, 0.5, 0.5), (2, 1.0, 0.5)]
    """
    _check_call(options)
    import altair as alt

    cutoffs, levels = _cutoffs(ks), [step / 10 for step in range(11)]
    groups = group_names(by)
    curves = {f"interpolated_precision(recall={level})": level for level in levels}
    measures = {"recall": recall_at, "precision": precision_at}
    metrics: list[Metric] = [*curves]
    metrics += [
        metric(k).alias(f"{name}@{k}") for name, metric in measures.items() for k in cutoffs
    ]
    means = _computed(evaluate, frame, *metrics, truth=truth, by=by, **options)
    shared = _text(means, groups).alias("system"), pl.col("users")
    curve = pl.concat(
        means.select(*shared, pl.lit(level).alias("recall"), pl.col(name).alias("precision"))
        for name, level in curves.items()
    )
    path = pl.concat(
        means.select(
            *shared,
            pl.lit(k).alias("k"),
            *(pl.col(f"{name}@{k}").alias(name) for name in measures),
        )
        for k in cutoffs
    )
    _check_values(path["precision"], "precision@k")
    _check_rows(path, "points", "fewer cut-offs")
    colors = _color(path, groups)
    lines = alt.Chart(curve, title="Interpolated, whole lists", width=270, height=270)
    from_0_to_1 = alt.Scale(domain=[0, 1])
    left = lines.mark_line(point={"size": 25}).encode(
        x=alt.X("recall:Q", title="recall", scale=from_0_to_1),
        y=alt.Y("precision:Q", title="mean interpolated precision", scale=from_0_to_1),
        **colors,
        strokeDash=_dash(path, groups),
        tooltip=_tooltip(curve),
    )
    title = _title(
        f"Precision and recall, at k = {_as_text(cutoffs)} and interpolated",
        f"Mean over {_users(means['users'])}; gray: equal F1 of the two means",
    )
    return alt.hconcat(left, _path(path, colors, groups), title=title)


def users(
    frame: Frame,
    /,
    metric: Metric,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    bins: int = 20,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw how a metric is distributed over users, system by system.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    metric
        A label or an expression, as in ``per_user``.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems; further columns are segments, side by side. ``()``
        for a single system.
    bins
        Roughly the number of bins; their width is 1, 2 or 5 times a power of ten.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    altair.FacetChart
        One histogram per system and segment, with the mean as a line. The drawn numbers are in
        ``chart.data``: ``system``, ``segment``, ``low`` ≤ value < ``high`` (the last bin also
        includes its upper end), ``users``, their ``share``, and the ``mean`` in the first row of
        each histogram.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or no user has a value.
    ValueError
        If the metric, a parameter or an option is unknown or out of range, or the metric is not a
        number.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> rf.plot.users(run, "rr", truth=truth, by=()).data.select("low", "high", "users").rows()
    [(0.5, 0.55, 1), (0.95, 1.0, 1)]
    """
    _check_call(options)
    import altair as alt

    bins = whole_number("bins", bins)
    groups = group_names(by)
    values = _computed(per_user, frame, metric, truth=truth, by=by, **options)
    name = values.columns[-1]
    values = values.select(*_named(values, groups), _number(values, name).alias("value"))
    defined = values.drop_nulls("value")
    _check_values(defined["value"], name)
    table = _histograms(defined, bins)
    _check_rows(table, "bars", "fewer bins")
    axis_title = f"{_line(name)} of a user"
    axis = alt.Axis(labelFlush=False, labelOverlap=True)
    x = alt.X("low:Q", bin="binned", title=axis_title, axis=axis)
    y = alt.Y("share:Q", title="share of users", axis=alt.Axis(format="%", tickCount=3))
    tooltip = _tooltip(table.drop("mean"))
    bars = (
        alt.Chart()
        .mark_bar()
        .encode(x=x, x2="high:Q", y=y, tooltip=tooltip, **_color(table, groups, legend=False))
    )
    line = alt.Chart().mark_rule(strokeWidth=2).encode(x=alt.X("mean:Q", title=axis_title))
    line = line.encode(tooltip=[alt.Tooltip("mean:Q", format=".4~f")])
    segments = _texts(table["segment"])
    counts = table.group_by("system", "segment").agg(pl.col("users").sum())["users"]
    width = max(90, 600 // len(segments))
    undefined = len(values) - len(defined)
    left_out = f"; {undefined:,} without a value left out" if undefined else ""
    layers = _layered(bars, line.transform_filter("isValid(datum.mean)"), data=table)
    chart: ChartType = layers.properties(width=width, height=80).facet(
        row=_facet("system", _texts(table["system"])),
        column=_facet("segment", segments),
        title=_title(
            f"{_line(name)}, user by user", f"{_users(counts)} in each panel; line: mean{left_out}"
        ),
        spacing=14,
    )
    return chart


def compare(
    frame: Frame,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the differences of systems with their intervals.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    *metrics
        Labels or expressions, as in ``per_user``.
    truth
        The truth that judges the run.
    by, baseline, test, correction, confidence, resamples, seed
        As in ``rankframe.compare``.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment, one row per pair. Its color is the verdict: better or
        worse if p_adjusted < 1 − ``confidence`` (higher or lower for a metric of which neither is
        better, or an expression of your own), else undecided. Each interval stands by itself, so
        one may be clear of 0 whose pair is undecided. ``chart.data`` has what is drawn: ``panel``,
        ``system``, ``pair``, ``verdict`` and the numbers of ``rankframe.compare``.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or there are fewer than two systems.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, or ``baseline`` is not a
        system.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> chart = rf.plot.compare(run, "rr", truth=truth, baseline="old")
    >>> chart.data.select("pair", "verdict").rows()
    [('new − old', 'undecided')]
    """
    _check_call(options)
    import altair as alt

    groups = group_names(by)
    compared = _computed(
        compare_systems,
        frame,
        *metrics,
        truth=truth,
        by=by,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        **options,
    )
    directions = _directions(metrics)
    significant = pl.col("p_adjusted") < 1 - confidence
    verdict = pl.when(significant).then(_verdict(directions)).otherwise(pl.lit("undecided"))
    systems = _text(compared, groups[:1]), _text(compared, ["baseline"])
    table = compared.select(
        *_named(compared, groups),
        pl.format("{} − {}", *systems).alias("pair"),
        verdict.alias("verdict"),
        pl.exclude(*groups, "baseline"),
    ).select(_panel("metric"), pl.exclude("segment", "metric"))
    _check_values(table["difference"], ", ".join(_texts(table["panel"])[:3]))
    _check_rows(table, "pairs", "a baseline")
    panels = _texts(table["panel"])
    title = "difference" + (f" in {panels[0]}" if len(panels) == 1 else "")
    base = alt.Chart().encode(
        y=alt.Y("pair:N", title=None, sort=_texts(table["pair"]), axis=alt.Axis(labelLimit=260)),
        color=alt.Color(
            "verdict:N",
            legend=alt.Legend(title=f"p < {1 - confidence:.2g}", padding=8),
            scale=_verdict_scale(directions),
        ),
        tooltip=_tooltip(table.drop("panel", "pair", "verdict", "system")),
    )
    bars = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.ci_low)")
    bars = bars.encode(x=alt.X("ci_low:Q", title=title), x2="ci_high:Q")
    points = base.mark_point(filled=True, opacity=1, size=70).encode(
        x=alt.X(
            "difference:Q",
            title=title,
            axis=alt.Axis(format="+.3~g", tickCount=4, labelOverlap=True),
            scale=alt.Scale(padding=10),
        )
    )
    zero = _zero().encode(x=alt.XDatum(0))
    joint = test in ("tukey", "friedman")
    corrected = "over all pairs" if joint else correction or "not corrected"
    return _in_panels(
        _layered(zero, bars, points, data=table),
        panels,
        _title(
            f"Differences on {_users(table['users'])}",
            f"{confidence * 100:.10g}% intervals, each for itself; p by {test}, {corrected}",
        ),
        width=180,
        wide=480,
        height=24 * table["pair"].n_unique(),
        columns=2 if len(panels) == 4 else 3,
        resolve="x",
    )


def change(
    frame: Frame,
    /,
    k: int,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    baseline: object,
    bins: int = 8,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw each user's change of precision@k and recall@k against R, and the range that R allows.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    k
        Cut-off.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems; further columns are segments.
    baseline
        The system that the others are compared with.
    bins
        The greatest number of bins of users whose mean is drawn, as in ``diagnose``.
    **options
        All other keywords of ``per_user``: ``users``, ``relevant_at``…, and the columns that play
        the roles.

    Returns
    -------
    altair.FacetChart
        Two panels per system and segment over R, the number of a user's relevant items: the change
        of precision@k = change of hits / k, and that of recall@k = change of hits / R. Circles are
        users of similar R and change, the gray area is the range that k and R allow, and bars are
        the means of ``diagnose``, whose reading is in the subtitle. The drawn numbers are in
        ``chart.data``; in rows with a ``count``, ``relevant`` and ``change`` are means over that
        number of users.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), there are fewer than two systems, or no user is
        shared.
    ValueError
        If k or ``bins`` is not an integer ≥ 1, ``baseline`` is not a system, or an option is
        unknown or out of range.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Notes
    -----
    Both panels show the same hits. Read them as ``diagnose`` does: if the bars rise for users with
    few relevant items and fall for users with many, mean recall rises and mean precision falls.

    Examples
    --------
    >>> old = pl.DataFrame({"user": ["A", "A", "B"], "item": [1, 2, 9], "rank": [1, 2, 1]})
    >>> new = pl.DataFrame({"user": ["A", "B"], "item": [101, 101], "rank": [1, 1]})
    >>> run = pl.concat([f.with_columns(model=pl.lit(m)) for f, m in [(old, "old"), (new, "new")]])
    >>> truth = pl.DataFrame({"user": ["A"] * 100 + ["B"] * 20, "item": range(1, 121)})
    >>> drawn = rf.plot.change(run, 10, truth=truth, baseline="old").data
    >>> drawn.drop_nulls("count").select("measure", "relevant", "change", "count").rows()
    [('precision@10', 20.0, 0.1, 1), ('precision@10', 100.0, -0.2, 1),
     ('recall@10', 20.0, 0.05, 1), ('recall@10', 100.0, -0.02, 1)]
    """
    _check_call(options)
    k = whole_number("k", k)
    groups = group_names(by)
    means = _computed(
        diagnose, frame, k, truth=truth, by=by, baseline=baseline, bins=bins, **options
    )
    means = means.select(*_named(means, groups), pl.exclude(groups))
    metrics = [num_relevant().alias("relevant"), precision_at(k).alias("precision")]
    metrics += [recall_at(k).alias("recall")]
    values = _computed(per_user, frame, *metrics, truth=truth, by=by, **options)
    pairs = _changes(values, groups, baseline)
    if pairs.is_empty():
        msg = f"column {groups[0]!r}: no system shares a user with {baseline!r}"
        raise RankingDataError(msg)
    panels = pairs.select("system", "segment").n_unique()
    if panels > _MOST_PANELS:
        msg = f"{panels} systems and segments are too many for one chart; filter the frame"
        raise ValueError(msg)
    deepest = min(k, options.get("depth") or k)
    return _change_chart(_cells(pairs, k), means, k, deepest, _line(baseline))


def heatmap(
    frame: Frame,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the mean of metrics in each segment.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    *metrics
        Labels or expressions, as in ``evaluate``.
    truth
        The truth that judges the run.
    by
        The columns of the segments. With several columns, the last one makes the rows and the
        others make panels: ``by=["model", "country"]`` has one panel per model and one row per
        country.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One row per segment, one column per metric. The color is the mean as a share of the metric's
        greatest mean, since metrics differ in scale. The drawn numbers are in ``chart.data``:
        ``panel``, ``segment``, ``users``, ``metric``, ``mean``, ``share``. If there are more than
        40 segments, those with the most users are drawn.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``).
    ValueError
        If a metric, a parameter or an option is unknown or out of range, or ``by`` is empty.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7], "country": ["DE", "FR"]})
    >>> chart = rf.plot.heatmap(run, "rr", truth=truth, by="country")
    >>> chart.data.select("segment", "metric", "mean").rows()
    [('DE', 'rr', 0.5), ('FR', 'rr', 1.0)]
    """
    _check_call(options)
    import altair as alt

    groups = group_names(by)
    if not groups:
        msg = "a heatmap needs segments: name their columns in by="
        raise ValueError(msg)
    means = _computed(evaluate, frame, *metrics, truth=truth, by=by, **options)
    names = means.columns[len(groups) + 1 :]
    wide = means.select(
        _text(means, groups[:-1]).alias("panel"),
        _text(means, groups[-1:]).alias("segment"),
        "users",
        pl.struct(_number(means, name).alias(name) for name in names).alias("means"),
    )
    segments = wide.group_by("segment", maintain_order=True).agg(pl.col("users").max())
    drawn = segments.top_k(_MOST_SEGMENTS, by="users")
    wide = wide.join(drawn.select("segment"), on="segment", how="semi", maintain_order="left")
    table = pl.concat(
        wide.select(
            *("panel", "segment", "users"),
            pl.lit(name).alias("metric"),
            pl.col("means").struct.field(name).alias("mean"),
        )
        for name in names
    )
    greatest = pl.col("mean").max().over("metric")
    whole = (pl.col("mean") == pl.col("mean").round()).all().over("metric")
    count = pl.col("mean").cast(pl.Int64).cast(pl.String)
    digits = pl.Series([None if mean is None else f"{mean:.3f}" for mean in table["mean"]])
    table = table.with_columns(
        share=pl.when(greatest > 0).then(pl.col("mean") / greatest),
        text=pl.when(whole).then(count).otherwise(digits),
    )
    _check_values(table["mean"], ", ".join(names))
    _check_rows(table, "cells", "fewer metrics")
    panels = _texts(table["panel"])
    slant = 0 if max(map(len, names)) <= 13 else -30
    base = alt.Chart().encode(
        x=alt.X(
            "metric:N", title=None, sort=names, axis=alt.Axis(labelAngle=slant, labelLimit=260)
        ),
        y=alt.Y(
            "segment:N",
            title=groups[-1],
            sort=_texts(segments["segment"]),
            axis=alt.Axis(titlePadding=12),
        ),
        tooltip=_tooltip(table.drop("text")),
    )
    color = alt.Color(
        "share:Q",
        title=["share of the", "metric's", "greatest"],
        scale=alt.Scale(scheme="blues", domain=[0, 1]),
        legend=alt.Legend(format="%", padding=8),
    )
    ink = alt.when("datum.share > 0.6").then(alt.value("white")).otherwise(alt.value("black"))
    text = base.mark_text().encode(text="text:N", color=ink)
    selection = (
        f"{len(drawn)} of {len(segments):,} segments, those with the most users: "
        if len(segments) > _MOST_SEGMENTS
        else ""
    )
    return _in_panels(
        _layered(base.mark_rect().encode(color=color), text, data=table),
        panels,
        _title(
            "Means by " + ", ".join(groups),
            f"{selection}up to {_users(table['users'].top_k(1))} in each",
        ),
        width=78 * len(names),
        wide=96 * len(names),
        height=24 * len(drawn),
    )


# ------------------------------------------------------------------ tables to draw


def _computed(
    verb: Callable[..., pl.LazyFrame], frame: Frame, *args: Any, **options: Any
) -> pl.DataFrame:
    """Compute the numbers of a verb, for any kind of frame."""
    kind = "run" if options["truth"] is not None else "judged table"
    return verb(to_lazy(frame, kind), *args, **options).collect()


def _named(table: pl.DataFrame, groups: Sequence[str]) -> list[pl.Expr]:
    """Name the first column of ``by`` system, and all others together segment."""
    return [_text(table, groups[:1]).alias("system"), _text(table, groups[1:]).alias("segment")]


def _text(table: pl.DataFrame, groups: Sequence[str]) -> pl.Expr:
    columns = [
        pl.col(name).dt.to_string("polars")
        if table.schema[name] == pl.Duration
        else pl.col(name).cast(pl.String)
        for name in groups
    ]
    return pl.concat_str(columns, separator=" · ") if columns else pl.lit("")


def _panel(name: str) -> pl.Expr:
    """Name a panel after its metric and its segment."""
    alone = pl.col("segment") == ""
    both = pl.format("{} · {}", name, "segment")
    return pl.when(alone).then(pl.col(name)).otherwise(both).alias("panel")


def _texts(column: pl.Series) -> list[str]:
    return column.unique(maintain_order=True).to_list()


def _as_text(cutoffs: Sequence[int]) -> str:
    """Write cut-offs for a title: a range or a long list by its ends, others one by one."""
    first, last = cutoffs[0], cutoffs[-1]
    if 2 < len(cutoffs) == last - first + 1 or len(cutoffs) > 8:
        return f"{first} to {last}"
    return ", ".join(map(str, cutoffs))


def _cutoffs(ks: Iterable[int]) -> list[int]:
    if isinstance(ks, int):
        msg = f"ks takes the cut-offs themselves, such as range(1, {ks + 1}) or [{ks}], not {ks}"
        raise TypeError(msg)
    cutoffs = sorted({whole_number("k", k) for k in ks})
    if not cutoffs:
        msg = "ks has no cut-off: name one, for example ks=range(1, 21)"
        raise ValueError(msg)
    return cutoffs


def _directions(metrics: Sequence[Metric]) -> dict[str, bool | None]:
    """Name for each metric whether higher is better; None where neither is, or nobody said."""
    requested = parse_metrics(metrics, per_user=False)
    entries = {one.name: entry_of(one.expr) for one in requested}
    return {name: entry.higher_is_better if entry else None for name, entry in entries.items()}


def _verdict(directions: Mapping[str, bool | None]) -> pl.Expr:
    """Call a difference better or worse, or higher or lower where neither is."""
    up = pl.col("difference") > 0
    verdict = pl.when(up).then(pl.lit("higher")).otherwise(pl.lit("lower"))
    for name, higher_is_better in directions.items():
        if higher_is_better is not None:
            better = pl.when(up if higher_is_better else ~up).then(pl.lit("better"))
            verdict = (
                pl.when(metric=name).then(better.otherwise(pl.lit("worse"))).otherwise(verdict)
            )
    return verdict


def _verdict_scale(directions: Mapping[str, bool | None]) -> alt.Scale:
    import altair as alt

    pairs: list[tuple[str, str]] = []
    if any(known is not None for known in directions.values()):
        pairs.append(("better", "worse"))
    if None in directions.values():
        pairs.append(("higher", "lower"))
    domain = [*(good for good, _ in pairs), "undecided", *(bad for _, bad in pairs)]
    colors = [*(_BLUE for _ in pairs), _GRAY, *(_VERMILION for _ in pairs)]
    return alt.Scale(domain=domain, range=colors)


def _at_cutoffs(names: Sequence[object], cutoffs: Sequence[int]) -> pl.DataFrame:
    """Write the label of each name at each cut-off."""
    for name in names:
        if not isinstance(name, str) or "@" in name:
            msg = f"at_k takes a metric's name without its cut-off, such as 'ndcg', not {name!r}"
            raise ValueError(msg)
    rows = [(f"{name}@{k}", f"{name}@k", k) for name in names for k in cutoffs]
    return pl.DataFrame(
        rows, schema={"metric": pl.String, "name": pl.String, "k": pl.Int64}, orient="row"
    )


def _number(values: pl.DataFrame, name: str) -> pl.Expr:
    dtype = values.schema[name]
    if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)):
        msg = f"metric {name!r} is {dtype} for each user; charts need numbers"
        raise ValueError(msg)
    return pl.col(name).cast(pl.Float64)


def _histograms(values: pl.DataFrame, bins: int) -> pl.DataFrame:
    """Count users in bins with round bounds; the mean is in the first row of each histogram."""
    least, greatest = _bounds(values["value"])
    step = _round_step((greatest - least) / bins if greatest > least else 0.05)
    digits = max(0, -floor(log10(step)))
    # a value on a bound, up to rounding, belongs to the bin above; the greatest to the bin below
    place = (pl.col("value") / step + 1e-9).floor()
    last = ceil(greatest / step - 1e-9) - 1
    place = (place.clip(upper_bound=last) if greatest > least else place).alias("place")
    first = pl.col("place") == pl.col("place").min()
    counted = [
        values.group_by("system", "segment", place)
        .agg(pl.len().alias("users"))
        .sort("place")
        .select(
            *("system", "segment"),
            (pl.col("place") * step).round(digits).alias("low"),
            ((pl.col("place") + 1) * step).round(digits).alias("high"),
            "users",
            (pl.col("users") / len(values)).alias("share"),
            pl.when(first).then(values["value"].mean()).alias("mean"),
        )
        for values in values.partition_by("system", "segment", maintain_order=True)
    ]
    return pl.concat(counted)


def _bounds(values: pl.Series) -> tuple[float, float]:
    """Return the least and the greatest of numbers."""
    ends = values.to_frame("value").select(low=pl.min("value"), high=pl.max("value"))
    return ends.cast(pl.Float64).row(0)


def _round_step(least: float) -> float:
    """Return the least 1, 2 or 5 times a power of ten that is not below ``least``."""
    power = 10.0 ** floor(log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))


def _changes(values: pl.DataFrame, groups: Sequence[str], baseline: object) -> pl.DataFrame:
    """Pair each user with the baseline, as ``diagnose`` does."""
    model, *segments = groups
    user = values.columns[len(groups)]
    defined = values.filter(pl.col("relevant") > 0)
    of_baseline = pl.col(model) == pl.lit(baseline, dtype=values.schema[model])
    before = defined.filter(of_baseline).drop(model, "relevant")
    paired = defined.remove(of_baseline).join(before, on=[*segments, user], suffix=" before")
    return paired.select(
        *_named(paired, groups),
        "relevant",
        *(pl.col(name) - pl.col(f"{name} before") for name in ("precision", "recall")),
    )


def _cells(pairs: pl.DataFrame, k: int) -> pl.DataFrame:
    """Average users of similar R and similar change, one row per such cell."""
    groups = pairs.select("system", "segment").n_unique()
    bins = max(6, min(40, int((_MOST_ROWS / 3 / groups) ** 0.5)))
    hits = (pl.col("precision") * k).round()
    relevant_bin = _binned(pairs, pl.col("relevant").log(), bins).alias("relevant bin")
    hits_bin = _binned(pairs, hits, bins).alias("hits bin")
    return (
        pairs.group_by("system", "segment", relevant_bin, hits_bin, maintain_order=True)
        .agg(pl.col("relevant", "precision", "recall").mean(), pl.len().alias("count"))
        .sort("relevant bin", "hits bin", maintain_order=True)
        .drop("relevant bin", "hits bin")
    )


def _binned(rows: pl.DataFrame, value: pl.Expr, bins: int) -> pl.Expr:
    """Return the bin of a value, or the value if there are few different ones."""
    values = rows.select(value).to_series()
    if values.n_unique() <= bins:
        return value
    least, greatest = _bounds(values)
    return ((value - least) / (greatest - least) * bins).floor().clip(0, bins - 1)


# ------------------------------------------------------------------ parts of charts


def _change_table(
    cells: pl.DataFrame,
    means: pl.DataFrame,
    k: int,
    deepest: int,
    domain: Sequence[float],
    reach: float,
) -> pl.DataFrame:
    """Stack the cells of users, the means of bins and the range that R allows, for both metrics."""
    panel = _panel("system")
    panels = cells.select(panel).unique(maintain_order=True)
    parts: list[pl.DataFrame] = []
    for name in _AXES[::-1]:
        measure = pl.lit(f"{name}@{k}").alias("measure")
        change, mean = pl.col(name).alias("change"), pl.col(f"{name}_change").alias("mean")
        parts += [
            cells.select(panel, measure, "relevant", change, "count"),
            means.select(panel, measure, "relevant_low", "relevant_high", "users", mean),
            panels.select("panel", measure).join(
                _attainable(name, k, deepest, domain, reach), how="cross"
            ),
        ]
    return pl.concat(parts, how="diagonal")


def _change_chart(
    cells: pl.DataFrame, means: pl.DataFrame, k: int, deepest: int, baseline: str
) -> ChartType:
    """Draw cells of users and means of bins on the range that k and R allow."""
    import altair as alt

    in_bins = means.drop_nulls("relevant_low")
    overall = means.filter(pl.col("relevant_low").is_null() & (pl.col("users") > 0))
    reach = min(1.0, 1.15 * (_greatest(cells, *_AXES) or 1 / k))
    domain = _bounds(in_bins["relevant_low"])[0] / 1.2, _bounds(in_bins["relevant_high"])[1] * 1.2
    table = _change_table(cells, in_bins, k, deepest, domain, reach)
    panels = _texts(table["panel"])
    _check_rows(table, "points", "fewer segments")

    y = alt.Scale(domain=[-reach, reach], nice=False)
    x = alt.Scale(type="log", domain=list(domain), nice=False)
    x_title, y_title = "R, relevant items of a user", f"change from {baseline}"
    area = alt.Chart().mark_area(color=_PALE, opacity=0.7).transform_filter("isValid(datum.top)")
    area = area.encode(
        x=alt.X("bound:Q", title=x_title, scale=x),
        y=alt.Y("top:Q", title=y_title, scale=y),
        y2="bottom:Q",
    )
    circles = alt.Chart().mark_circle(color=_BLUE, opacity=0.45)
    circles = circles.transform_filter("isValid(datum.count)").encode(
        x=alt.X("relevant:Q", title=x_title, axis=alt.Axis(format="d", tickCount=5, grid=False)),
        y=alt.Y(
            "change:Q", title=y_title, axis=alt.Axis(format="+.2~f", tickCount=7, titlePadding=8)
        ),
        size=alt.Size("count:Q", title="users", scale=alt.Scale(range=[12, 400], zero=False)),
        tooltip=_tooltip(table.select("relevant", "change", "count")),
    )
    # a bar that covers a single R would have no length
    bars = alt.Chart().mark_bar(color=_VERMILION, height=4, cornerRadius=2)
    bars = bars.transform_filter("isValid(datum.mean)").transform_calculate(
        begin="datum.relevant_low / 1.1", end="datum.relevant_high * 1.1"
    )
    bars = bars.encode(
        x=alt.X("begin:Q", title=x_title),
        x2="end:Q",
        y=alt.Y("mean:Q", title=y_title),
        tooltip=_tooltip(table.select("relevant_low", "relevant_high", "users", "mean")),
    )
    layers = _layered(area, _zero().encode(y=alt.YDatum(0)), circles, bars, data=table)
    circled = f"{_users(overall['users'])} in {len(cells):,} circles, by similar R and change"
    chart: ChartType = layers.properties(width=270, height=210).facet(
        row=_facet("panel", panels),
        column=_facet("measure", _texts(table["measure"])),
        title=_title(
            f"Change from {baseline} among the first {k} items, user by user",
            f"{circled}; bars: means; gray: what k and R allow",
            *_readings(overall, k),
        ),
    )
    return chart


def _attainable(
    name: str, k: int, deepest: int, domain: Sequence[float], reach: float
) -> pl.DataFrame:
    """Return the greatest change of a metric at each R, within the depth and the chart."""
    low, high = map(log10, domain)
    steps = [10 ** (low + (high - low) * step / 40) for step in range(41)]
    relevant = pl.Series(
        "bound", sorted([*steps, *([deepest] if domain[0] < deepest < domain[1] else [])])
    )
    share = pl.min_horizontal(pl.lit(deepest), "bound") / (
        k if name == "precision" else pl.col("bound")
    )
    top = pl.min_horizontal(share, pl.lit(reach))
    return relevant.cast(pl.Float64).to_frame().with_columns(top=top, bottom=-top)


def _greatest(table: pl.DataFrame, *names: str) -> float:
    return float(table.select(pl.max_horizontal(pl.col(*names).abs().max())).item())


def _readings(overall: pl.DataFrame, k: int) -> list[str]:
    """Write the readings of ``diagnose``, two lines per system."""
    lines: list[str] = []
    for row in overall.with_columns(_panel("system")).iter_rows(named=True):
        changes = f"precision@{k} {row['precision_change']:+.3g}, recall@{k} "
        lines += [f"{row['panel']}: {changes}{row['recall_change']:+.3g}:", row["reading"]]
    return lines


def _path(table: pl.DataFrame, colors: dict[str, Any], groups: Sequence[str]) -> Any:
    """Draw the path of both means over k, on contours of equal F1."""
    import altair as alt

    x_end, y_end = (min(1.0, 1.1 * (_greatest(table, name) or 0.1)) for name in _AXES)
    scales = [alt.Scale(domain=[0, end], nice=False) for end in (x_end, y_end)]
    x, y = (
        alt.X(
            "recall:Q",
            title="mean recall@k",
            scale=scales[0],
            axis=alt.Axis(grid=False, tickCount=5),
        ),
        alt.Y("precision:Q", title="mean precision@k", scale=scales[1], axis=alt.Axis(grid=False)),
    )
    contours = alt.Chart(_contours(x_end, y_end))
    lines = contours.mark_line(color=_PALE, strokeWidth=1.5).encode(
        x=x, y=y, detail="f1:N", order="recall:Q"
    )
    label = alt.Text("label:N")
    marks = contours.mark_text(align="right", baseline="bottom", dx=-3, dy=-2, color=_GRAY)
    marks = marks.transform_filter("isValid(datum.label)").encode(x=x, y=y, text=label)
    base = alt.Chart().encode(x=x, y=y, **colors)
    path = base.mark_line(point={"size": 25}).encode(
        order="k:Q", strokeDash=_dash(table, groups), tooltip=_tooltip(table)
    )
    ends = base.mark_text(align="left", dx=6, dy=-8, fontSize=10).encode(text="at:N")
    # only one system's ends are labeled: labels of near ends would overlap
    longest = table.sort("recall")["system"].last()
    at = pl.col("k").is_in([table["k"].min(), table["k"].max()]) & (pl.col("system") == longest)
    labeled = table.with_columns(at=pl.when(at).then(pl.format("k={}", "k")))
    ends = ends.transform_filter("isValid(datum.at)")
    title = "Path over k"
    layers = [lines, marks, path, ends]
    return _layered(*layers, data=labeled, width=270, height=270, title=title)


def _contours(x_end: float, y_end: float) -> pl.DataFrame:
    """Return points of equal F1 = f: (recall − f/2)·(precision − f/2) = f²/4."""
    best = 2 * x_end * y_end / (x_end + y_end)
    step = _round_step(best / 6)
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


def _cutoff_axis(cutoffs: Sequence[int]) -> alt.X:
    import altair as alt

    domain = [cutoffs[0], cutoffs[-1]]
    axis = alt.Axis(format="d", tickMinStep=1, grid=False)
    return alt.X("k:Q", title="k", axis=axis, scale=alt.Scale(domain=domain, nice=False, padding=8))


def _color(table: pl.DataFrame, groups: Sequence[str], *, legend: bool = True) -> dict[str, Any]:
    """Assign each system a color, in the order of the table."""
    import altair as alt

    systems = _texts(table["system"])
    if len(systems) > len(_COLORS) * len(_DASHES):
        msg = (
            f"column {groups[0]!r} has {len(systems)} systems, but a chart has only "
            f"{len(_COLORS) * len(_DASHES)} different lines: filter the frame"
        )
        raise ValueError(msg)
    if not groups:
        return {"color": alt.value(_BLUE)}
    colors = [_COLORS[place % len(_COLORS)] for place in range(len(systems))]
    scale = alt.Scale(domain=systems, range=colors)
    # if colors repeat, the legend must show the dashes
    strokes: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 400}
    legend_of_systems = alt.Legend(
        title=_line(groups[0]),
        symbolLimit=0,
        symbolOpacity=1,
        padding=8,
        **(strokes if len(systems) > len(_COLORS) else {}),
    )
    scaled: dict[str, Any] = {"scale": scale, "legend": legend_of_systems if legend else None}
    return {"color": alt.Color("system:N", **scaled)}


def _dash(table: pl.DataFrame, groups: Sequence[str]) -> alt.StrokeDash | alt.StrokeDashValue:
    """Dash the lines of systems whose color repeats."""
    import altair as alt

    if not groups:
        return alt.StrokeDashValue(_DASHES[0])
    systems = _texts(table["system"])
    dashes = [_DASHES[place // len(_COLORS)] for place in range(len(systems))]
    title = _line(groups[0])
    return alt.StrokeDash("system:N", title=title, scale=alt.Scale(domain=systems, range=dashes))


def _tooltip(table: pl.DataFrame) -> list[alt.Tooltip]:
    import altair as alt

    formats = {True: ".4~f", False: ",d"}
    return [
        alt.Tooltip(f"{name}:Q", format=formats[dtype.is_float()])
        if dtype.is_numeric()
        else alt.Tooltip(f"{name}:N")
        for name, dtype in table.schema.items()
    ]


def _line(text: object) -> str:
    """Write a name in one line: Vega cannot read a title with a line break."""
    return " ".join(str(text).split())


def _title(text: str, *subtitle: str) -> alt.TitleParams:
    import altair as alt

    return alt.TitleParams(
        text, subtitle=list(subtitle), anchor="start", subtitleColor=_GRAY, offset=12
    )


def _zero() -> alt.Chart:
    """Draw one line, not one per row of the table."""
    import altair as alt

    line: alt.Chart = alt.Chart(alt.InlineData([{}])).mark_rule(color=_GRAY, strokeDash=[4, 3])
    return line


def _users(counts: pl.Series) -> str:
    """Write the number of users, or the least and the greatest number."""
    least, greatest = map(int, _bounds(counts))
    if least == greatest:
        return f"{least:,} user{'s' * (least != 1)}"
    return f"{least:,} to {greatest:,} users"


def _facet(name: str, order: Sequence[str]) -> Any:
    """Make panels of a column, without its name, and without headers if there is only one panel."""
    import altair as alt

    upright: dict[str, Any] = {"labelAngle": 0, "labelAlign": "left"}
    header = alt.Header(
        title=None,
        labelFontWeight="bold",
        labels=len(order) > 1,
        labelLimit=150,
        **(upright if name in ("system", "panel") else {}),
    )
    channel = {"system": alt.Row, "panel": alt.Row, "measure": alt.Column, "segment": alt.Column}
    return channel[name](f"{name}:N", sort=list(order), header=header)


def _layered(*layers: alt.Chart, **options: Any) -> Any:
    """Layer charts; Altair's types for the methods of the result are too vague."""
    import altair as alt

    return alt.layer(*layers, **options)


def _in_panels(
    layers: Any,
    panels: Sequence[str],
    title: alt.TitleParams,
    *,
    width: Any,
    wide: Any,
    height: Any,
    columns: int = 2,
    resolve: Literal["x", "y"] = "y",
) -> ChartType:
    """Draw a single panel wide, or several side by side."""
    import altair as alt

    chart: ChartType
    if len(panels) == 1:
        chart = layers.properties(width=wide, height=height, title=title)
        return chart
    header = alt.Header(title=None, labelFontWeight="bold")
    facet = alt.Facet("panel:N", sort=list(panels), header=header)
    layers = layers.properties(width=width, height=height)
    faceted = layers.facet(facet=facet, columns=columns, title=title)
    # otherwise axes are drawn where the last row has no panel
    faceted = faceted.resolve_axis(x="independent")
    chart = faceted.resolve_scale(**{resolve: "independent"})
    return chart


def _check_values(values: pl.Series, name: str) -> None:
    if values.null_count() == len(values):
        msg = f"metric {name!r}: no user has a value to draw"
        raise RankingDataError(msg)


def _check_rows(table: pl.DataFrame, what: str, remedy: str) -> None:
    if len(table) > _MOST_ROWS:
        msg = f"{len(table):,} {what} are too many for one chart; ask for {remedy}"
        raise ValueError(msg)


def _check_call(options: Mapping[str, object]) -> None:
    """Check that Altair is installed, and that charts take the keywords."""
    for name in options:
        if name not in Options.__annotations__:
            msg = f"unknown argument {name!r}; charts take {', '.join(Options.__annotations__)}"
            raise TypeError(msg)
    if find_spec("altair") is None:
        msg = "charts need altair: pip install 'rankframe[plot]'"
        raise ImportError(msg)
