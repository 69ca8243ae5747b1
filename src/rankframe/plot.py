"""Charts: the frame that a verb returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small whatever the number of users. The first chart imports Altair.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.util import find_spec
from math import ceil, floor, log, log10
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack

import polars as pl

from rankframe._agreement import agreement as agreement_of
from rankframe._all_lists import is_of_all
from rankframe._compare import (
    JOINT_TESTS,
    Correction,
    Margin,
    Test,
    diagnose,
    directions_of,
    groups_by_systems,
    of_metrics,
)
from rankframe._compare import compare as compare_systems
from rankframe._cutoffs import cutoffs as read_cutoffs
from rankframe._cutoffs import labels_at, means_of
from rankframe._evaluate import evaluate, per_user, user_values
from rankframe._frames import Frame, column_names, to_lazy
from rankframe._labels import Metric, parse_metrics
from rankframe._names import with_ids
from rankframe._options import (
    Columns,
    Options,
    check_choice,
    check_columns,
    group_names,
    read_options,
    systems_groups,
    whole_number,
)
from rankframe._rows import listed
from rankframe._rows import shares as shares_of
from rankframe._runs import as_frame
from rankframe._shares import Target
from rankframe._summarize import summarize
from rankframe._systems import mean_ranks
from rankframe.errors import RankingDataError
from rankframe.metrics.core import precision_at, recall_at
from rankframe.metrics.trec import num_relevant

if TYPE_CHECKING:
    import altair as alt
    from altair.typing import ChartType

# Okabe and Ito: distinct under every common form of color blindness
_BLUE, _VERMILION, _GREEN, _PURPLE = "#0072B2", "#D55E00", "#009E73", "#CC79A7"
_SKY = "#56B4E9"
_COLORS = (_BLUE, _VERMILION, _GREEN, _PURPLE, "#E69F00", _SKY, "#B8A800", "#000000")
_DASHES = ([1, 0], [6, 3], [2, 2])
_SHAPES = ("circle", "square", "triangle-up")
_GRAY, _PALE = "#767676", "#E4E4E4"
_MOST_ROWS = 4_000  # of a chart's data: less than a megabyte, and below Altair's limit
_AXES = ("recall", "precision")
_MOST_RANKED = 40  # systems whose names fit beside one axis
_COEFFICIENTS = {"kendall_tau": "Kendall's τ", "tau_ap": "τ_AP"}
_READINGS = {
    "kendall_tau": "pairs of systems in the same order less pairs in the other, ties apart",
    "tau_ap": "row: the order that is judged; column: the truth",
}
_MOST_SEGMENTS = 40  # rows of a heatmap that can be read
_MOST_PANELS = 12  # rows of panels
_MOST_VALUES = 20  # of a column whose shares are drawn; the others are added up
_GAP = 5  # pixels between a point and its name
_MOST_CROSSED = 2  # lines behind a name that can still be read
#: where a name may be: to the right of its point, and above it
_SIDES = {
    "right above": (True, True),
    "left above": (False, True),
    "right below": (True, False),
    "left below": (False, False),
}
_TARGETS: dict[str, str] = {
    "catalogue": "the share in the catalogue",
    "uniform": "equal shares",
    "history": "the share in the history",
    "truth": "the share in the relevant items",
    "judged": "the share in the judged items",
    "candidates": "the share in the catalogue less what each user had",
}
_WEIGHTS: dict[str | float, str] = {
    "log": "1/log2(rank + 1)",
    "clipped": "1/log2(max(rank, 2))",
    "hit": "1 if relevant",
    "norm": "1/√n, n items in the list",
    "inverse": "1/n, n items in the list",
}

#: left, low, right and high ends of a rectangle
_Box: TypeAlias = tuple[float, float, float, float]


def at_k(
    frame: Frame | Mapping[str, Frame],
    /,
    *names: str,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    interval: bool = True,
    confidence: float = 0.95,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the mean of metrics at each cut-off, with its interval.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    *names
        Metrics without their cut-off: ``"ndcg"``, ``"precision(divide_by=returned)"``.
    ks
        The cut-offs.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, which have different colors: by default ``model``,
        or ``()``, a single system, if there is no such column. Further columns are segments, each
        with its own panel; of several, one called ``model`` identifies the systems, else the first.
    interval
        Draw the interval of the mean (Student's) as a band.
    confidence
        The probability that the interval covers the true mean.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment. The drawn numbers are in ``chart.data``: ``panel``,
        ``system``, ``k``, ``users``, ``mean``, ``ci_low``, ``ci_high``, as in ``rf.at_k``.

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
    frame, by = as_frame(frame, by)
    _check_call(options)
    import altair as alt

    cutoffs = read_cutoffs("ks", ks)
    labels = labels_at(names, cutoffs)
    groups = _groups(frame, truth, by)
    values = user_values(
        to_lazy(frame, "judged table" if truth is None else "run"),
        labels["label"].to_list(),
        truth,
        groups,
        read_options(options),
        per_user=False,
        all_lists=True,
    )
    means = means_of(values, interval=interval, confidence=confidence).collect()
    numbers = ("users", "mean", "ci_low", "ci_high")
    table = means.select(*_named(means, groups), pl.col("metric").alias("label"), *numbers)
    table = table.join(labels, on="label", how="left", maintain_order="left")
    table = table.with_columns(name=pl.format("{}@k", "metric"))
    table = table.select(_panel("name"), "system", "k", *numbers)
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
    mean = f"{_mean(options)} over {_users(table['users'])}"
    title = _title(
        f"{', '.join(f'{name}@k' for name in names)} at k = {_as_text(cutoffs)}",
        f"{mean}, with {confidence * 100:.10g}% intervals" if interval else mean,
    )
    return _in_panels(layers, panels, title, width=280, wide=520, height=300)


def precision_recall(
    frame: Frame | Mapping[str, Frame],
    /,
    *,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw precision against recall: the interpolated curve, and the path over k.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    ks
        The cut-offs of the path.
    truth
        The truth that judges the run.
    by
        Columns that identify the systems, which have different colors: by default ``model``, or
        ``()``, a single system, if there is no such column.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

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
    frame, by = as_frame(frame, by)
    _check_call(options)
    import altair as alt

    cutoffs, levels = read_cutoffs("ks", ks), [step / 10 for step in range(11)]
    groups = _groups(frame, truth, by)
    curves = {f"interpolated_precision(recall={level})": level for level in levels}
    measures = {"recall": recall_at, "precision": precision_at}
    metrics: list[Metric] = [*curves]
    metrics += [
        metric(k).alias(f"{name}@{k}") for name, metric in measures.items() for k in cutoffs
    ]
    means = _computed(evaluate, frame, *metrics, truth=truth, by=groups, **options)
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
        f"{_mean(options)} over {_users(means['users'])}; gray: equal F1 of the two means",
    )
    return alt.hconcat(left, _path(path, colors, groups), title=title)


def users(
    frame: Frame | Mapping[str, Frame],
    /,
    metric: Metric,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    bins: int = 20,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw how a metric is distributed over users, system by system.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    metric
        A label or an expression, as in ``per_user``.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems: by default ``model``, or ``()``, a single system, if
        there is no such column. Further columns are segments, side by side; of several, one called
        ``model`` identifies the systems, else the first.
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
    frame, by = as_frame(frame, by)
    _check_call(options)
    import altair as alt

    bins = whole_number("bins", bins)
    if options.pop("weights", None) is not None:
        msg = "the chart of users draws each user alike: leave out weights="
        raise ValueError(msg)
    groups = _groups(frame, truth, by)
    values = _computed(per_user, frame, metric, truth=truth, by=groups, **options)
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
    frame: Frame | Mapping[str, Frame],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the differences of systems with their intervals.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    *metrics
        Labels or expressions, as in ``per_user``.
    truth
        The truth that judges the run.
    by, baseline, test, correction, confidence, margin, primary, resamples, seed, cluster
        As in ``rankframe.compare``.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment, one row per pair. Its color is the verdict of
        ``rankframe.compare``, where higher and lower are better or worse if the metric has a better
        direction. Each interval stands by itself, so one may be clear of 0 whose pair is undecided.
        A gray band has the differences within ± ``margin``. ``chart.data`` has what is drawn:
        ``panel``, ``system``, ``pair``, ``verdict``, the ``margin`` if there is one, and the
        numbers of ``rankframe.compare``.

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
    frame, by = as_frame(frame, by)
    _check_call(options)
    import altair as alt

    groups = groups_by_systems(frame, truth, by, baseline)
    compared = _computed(
        compare_systems,
        frame,
        *metrics,
        truth=truth,
        by=groups,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        margin=margin,
        primary=primary,
        resamples=resamples,
        seed=seed,
        cluster=cluster,
        **options,
    )
    directions = _directions(metrics)
    margins = of_metrics("margin", margin, [*directions])
    bound = pl.lit(None, pl.Float64)
    for name, value in margins.items():
        bound = pl.when(metric=name).then(pl.lit(value, pl.Float64)).otherwise(bound)
    unasked = () if margins else ("margin", "p_equivalent", "p_not_worse")
    systems = _text(compared, groups[:1]), _text(compared, ["baseline"])
    table = compared.select(
        *_named(compared, groups),
        pl.format("{} − {}", *systems).alias("pair"),
        _verdict(directions).alias("verdict"),
        bound.alias("margin"),
        pl.exclude(*groups, "baseline", "verdict"),
    ).select(_panel("metric"), pl.exclude("segment", "metric", *unasked))
    _check_values(table["difference"], ", ".join(_texts(table["panel"])[:3]))
    _check_rows(table, "pairs", "a baseline")
    panels = _texts(table["panel"])
    title = "difference" + (f" in {panels[0]}" if len(panels) == 1 else "")
    base = alt.Chart().encode(
        y=alt.Y("pair:N", title=None, sort=_texts(table["pair"]), axis=alt.Axis(labelLimit=260)),
        color=alt.Color(
            "verdict:N",
            legend=alt.Legend(title=f"p < {1 - confidence:.2g}", padding=8),
            scale=_verdict_scale(directions, margins),
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
    corrected = "over all pairs" if test in JOINT_TESTS else correction or "not corrected"
    decides = "" if primary is None else f", primary metric {primary}"
    return _in_panels(
        _layered(*([_band(title)] if margins else []), zero, bars, points, data=table),
        panels,
        _title(
            f"Differences on {_users(table['users'])}{_weighted_by(options)}",
            f"{confidence * 100:.10g}% intervals, each for itself; "
            f"p by {test}, {corrected}{decides}",
        ),
        width=180,
        wide=480,
        height=24 * table["pair"].n_unique(),
        columns=2 if len(panels) == 4 else 3,
        resolve="x",
    )


def change(
    frame: Frame | Mapping[str, Frame],
    /,
    k: int,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    baseline: object,
    bins: int = 8,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw each user's change of precision@k and recall@k against R, and the range that R allows.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    k
        Cut-off.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, by default ``model``; further columns are segments,
        as in ``rankframe.compare``.
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
    frame, by = as_frame(frame, by)
    _check_call(options)
    k = whole_number("k", k)
    groups = groups_by_systems(frame, truth, by, baseline)
    means = _computed(
        diagnose, frame, k, truth=truth, by=groups, baseline=baseline, bins=bins, **options
    )
    if len(groups) > 1:  # the rows of all segments have no panel
        means = means.drop_nulls(groups)
    means = means.select(*_named(means, groups), pl.exclude(groups))
    metrics = [num_relevant().alias("relevant"), precision_at(k).alias("precision")]
    metrics += [recall_at(k).alias("recall")]
    values = _computed(per_user, frame, *metrics, truth=truth, by=groups, **options)
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
    frame: Frame | Mapping[str, Frame],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the mean of metrics in each segment.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    *metrics
        Labels or expressions, as in ``evaluate``.
    truth
        The truth that judges the run.
    by
        The columns of the segments, by default ``model``. With several columns, the last one makes
        the rows and the others make panels: ``by=["model", "country"]`` has one panel per model and
        one row per country.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

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
    frame, by = as_frame(frame, by)
    _check_call(options)
    import altair as alt

    groups = _groups(frame, truth, None) if by is None else group_names(by)
    if not groups:
        msg = "a heatmap needs segments: name their columns in by="
        raise ValueError(msg)
    means = _computed(evaluate, frame, *metrics, truth=truth, by=groups, **options)
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
            f"Means by {', '.join(groups)}{_weighted_by(options)}",
            f"{selection}up to {_users(table['users'].top_k(1))} in each",
        ),
        width=78 * len(names),
        wide=96 * len(names),
        height=24 * len(drawn),
    )


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
) -> ChartType:
    """
    Draw how the exposure that lists give is shared by genres, providers or items.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``from_runs`` takes it.
    of, k, weight, target, truth, items, history, exclude
        As in ``rankframe.shares``; the lists of a system count together.
    by
        The column that identifies the systems, which have different colors: by default ``model``,
        or ``()``, a single system, if there is no such column. Further columns are segments, each
        with its own panel; of several, one called ``model`` identifies the systems, else the first.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``: the columns that play these
        roles, if they have other names.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One bar per value and system, with a tick at the target. Values are sorted by target, or
        without one by share, highest first. If there are more than 20, the first 20 are drawn, and
        the subtitle tells the share of the others. The drawn numbers are in ``chart.data``:
        ``panel``, ``value``, ``system``, ``share``, ``target``.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), one that is needed is missing, or no value is
        exposed.
    ValueError
        If an option is unknown or out of range, or there are more than eight systems.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abc"], "genre": ["x", "y", "z"]})
    >>> chart = rf.plot.shares(run, of="genre", items=items, target="uniform", by=())
    >>> chart.data.select("value", pl.col("share", "target").round(3)).rows()
    [('x', 0.667, 0.333), ('y', 0.333, 0.333), ('z', 0.0, 0.333)]
    """
    run, by = as_frame(run, by)
    check_columns(columns)
    _check_call({})
    import altair as alt

    groups = _groups(run, run, by)
    lists = to_lazy(run, "run")
    found = shares_of(
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
    name = found.columns[len(groups)]
    lacking: list[pl.Expr] = []
    if target is None:
        lacking = [pl.lit(None, pl.Float64).alias("target")]
    rows = found.sort(groups).with_columns(*lacking)
    rows = rows.select(
        *_named(rows, groups), _text(rows, [name]).alias("value"), "share", "target"
    ).select(pl.col("segment").alias("panel"), "value", "system", "share", "target")
    _check_exposed(rows["share"], name)
    table, number = _first_values(rows)
    most = len(_COLORS)
    if (found_systems := table["system"].n_unique()) > most:
        msg = (
            f"column {groups[0]!r} has {found_systems} systems, but bars have only {most} "
            "different colors: filter the frame"
        )
        raise ValueError(msg)
    _check_rows(table, "bars", "fewer segments")
    panels, systems = _texts(table["panel"]), _texts(table["system"])
    _check_panels(panels)
    values = _texts(table["value"])
    end = float(table.select(pl.max_horizontal(pl.col("share", "target").max())).item())
    x_title, scale = "share of exposure", alt.Scale(domain=[0, end * 1.03], nice=False)
    offset: dict[str, Any] = {}
    if len(systems) > 1:
        offset = {"yOffset": alt.YOffset("system:N", sort=systems)}
    base = alt.Chart().encode(
        y=alt.Y(
            "value:N",
            title=_line(name),
            sort=values,
            axis=alt.Axis(labelLimit=120, titlePadding=10),
            scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15),
        ),
        tooltip=_tooltip(table.drop("panel")),
        **offset,
    )
    axis = alt.Axis(format="~%", tickCount=5)
    bars = base.mark_bar().encode(
        x=alt.X("share:Q", title=x_title, scale=scale, axis=axis), **_color(table, groups)
    )
    thick = min(11.0, 48 / len(systems))
    ticks = base.mark_tick(color="black", thickness=2, size=thick, opacity=1)
    ticks = ticks.transform_filter("isValid(datum.target)").encode(x=alt.X("target:Q"))
    lines = [_counted_lists(lists, groups, truth, exclude, columns) + _weighted(weight)]
    if number > _MOST_VALUES:
        what = "share" if target is None else "target"
        first = f"{_MOST_VALUES} of {number:,} values, those of the highest {what}"
        lines.append(f"{first}; the others have {_left_over(table)} of exposure")
    if target is not None:
        lines.append(f"ticks: target, {_TARGETS[target]}")
    return _in_panels(
        _layered(bars, ticks, data=table),
        panels,
        _title(f"Exposure of each {_line(name)} in {_lists_to(k)}", *lines),
        width=210,
        wide=460,
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
) -> ChartType:
    """
    Draw one metric against another, one point per system, with intervals both ways.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    x, y
        Labels or expressions, as in ``summarize``; also metrics of all lists such as
        ``"coverage@10"``.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, whose names are beside their points: by default
        ``model``, or ``()``, a single system, if there is no such column. Further columns are
        segments, each with its own panel; of several, one called ``model`` identifies the systems,
        else the first.
    confidence
        The probability that each interval by itself covers the true value.
    **options
        All other keywords of ``per_user``: ``users``, ``items``, ``history``, ``relevant_at``…, and
        the columns that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One point per system, with the intervals of ``summarize``. A legend is added if points are
        so near each other that not all names can be written. The drawn numbers are in
        ``chart.data``: ``panel``, ``system``, ``users``, ``x``, ``x_low``, ``x_high``, ``y``,
        ``y_low``, ``y_high``, and ``place``, the side of the point where the name is.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or no system has both values.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> items = pl.DataFrame({"item": [7, 8, 9, 10]})
    >>> chart = rf.plot.trade_off(run, "rr", "coverage@2", truth=truth, items=items, by=())
    >>> chart.data.select("x", "y").rows()
    [(0.75, 0.5)]
    """
    frame, by = as_frame(frame, by)
    _check_call(options)
    import altair as alt

    groups = _groups(frame, truth, by)
    metrics = (x, y)
    names = [one.name for one in parse_metrics(metrics, per_user=False)]
    summary = _computed(
        summarize, frame, *metrics, truth=truth, by=groups, confidence=confidence, **options
    )
    table = _both_ways(summary, groups, names)
    if table.is_empty():
        msg = f"metrics {names[0]!r} and {names[1]!r}: no system has a value of both to draw"
        raise RankingDataError(msg)
    _check_rows(table, "points", "fewer segments")
    panels = _texts(table["panel"])
    _check_panels(panels)
    width, height = (460, 340) if len(panels) == 1 else (280, 230)
    domains = {axis: _padded(table, axis) for axis in "xy"}
    table = _with_places(table, domains, width, height)
    all_named = not groups or table["place"].null_count() == 0
    titles = _axis_titles(metrics)
    axes: dict[str, Any] = {
        axis: {
            "title": title,
            "scale": alt.Scale(domain=list(domains[axis]), nice=False, zero=False),
        }
        for axis, title in zip("xy", titles, strict=True)
    }
    quiet = alt.Axis(tickCount=5, format=".3~g")
    across, up = (
        alt.X("x:Q", **axes["x"], axis=quiet),
        alt.Y("y:Q", **axes["y"], axis=quiet),
    )
    base = alt.Chart().encode(
        **_color(table, groups, legend=not all_named, strokes=False),
        tooltip=_tooltip(table.drop("panel", "place")),
    )
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6)
    layers = [
        bars.transform_filter("isValid(datum.x_low)").encode(
            x=alt.X("x_low:Q", **axes["x"]), x2="x_high:Q", y=up
        ),
        bars.transform_filter("isValid(datum.y_low)").encode(
            x=across, y=alt.Y("y_low:Q", **axes["y"]), y2="y_high:Q"
        ),
        base.mark_point(filled=True, opacity=1, size=70).encode(
            x=across, y=up, **_shape(table, groups, legend=not all_named)
        ),
    ]
    for place in _texts(table["place"].drop_nulls()):
        right, above = _SIDES[place]
        side: dict[str, Any] = {
            "align": "left" if right else "right",
            "baseline": "bottom" if above else "top",
            "dx": _GAP if right else -_GAP,
            "dy": -_GAP if above else _GAP,
        }
        behind: dict[str, Any] = {"stroke": "white", "strokeWidth": 3, "opacity": 0.8}
        for look in (behind, {}):
            text = base.mark_text(fontSize=11, fontWeight="bold", **side, **look)
            text = text.transform_filter(f"datum.place === '{place}'")
            layers.append(text.encode(x=across, y=up, text="system:N"))
    return _in_panels(
        _layered(*layers, data=table),
        panels,
        _title(
            f"{_line(names[1])} against {_line(names[0])}",
            f"{_users(table['users'])}{_weighted_by(options)}; lines: {confidence * 100:.10g}% "
            "intervals, each for itself",
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
) -> ChartType:
    """
    Draw the Lorenz curve of exposure: how unevenly lists show the items of the catalogue.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``from_runs`` takes it.
    of, k, weight, truth, items, history, exclude
        As in ``rankframe.shares``; the lists of a system count together. ``of="shown"`` leaves out
        the items that are never shown.
    by
        The column that identifies the systems, which have different colors: by default ``model``,
        or ``()``, a single system, if there is no such column. Further columns are segments, each
        with its own panel; of several, one called ``model`` identifies the systems, else the first.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``: the columns that play these
        roles, if they have other names.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One line per system: with items sorted by exposure, lowest first and never shown ones
        included, the share of exposure that each share of the items has together. The diagonal is
        even exposure; the Gini coefficient is twice the area between it and the line. The drawn
        numbers are in ``chart.data``: ``panel``, ``system``, ``values`` (the share of items),
        ``exposure`` (their share of exposure) and ``gini``. A line of many items is drawn through
        at most about 200 of its points.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), one that is needed is missing, or nothing is
        exposed.
    ValueError
        If an option is unknown or out of range.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> chart = rf.plot.lorenz(run, items=pl.DataFrame({"item": [*"abcd"]}), by=())
    >>> chart.data.select("values", pl.col("exposure", "gini").round(3)).rows()
    [(0.0, 0.0, 0.583), (0.5, 0.0, 0.583), (0.75, 0.333, 0.583), (1.0, 1.0, 0.583)]
    """
    run, by = as_frame(run, by)
    check_columns(columns)
    _check_call({})
    import altair as alt

    groups = _groups(run, run, by)
    lists = to_lazy(run, "run")
    found = shares_of(
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
    ).collect()
    name = found.columns[len(groups)]
    if of == "shown":  # as gini does
        found = found.filter(pl.col("exposure") > 0)
    rows = found.sort(*groups, "exposure")
    rows = rows.select(*_named(rows, groups), "exposure", "share").select(
        pl.col("segment").alias("panel"), pl.exclude("segment")
    )
    _check_exposed(rows["share"], name)
    table = _lorenz_points(rows)
    _check_rows(table, "points", "fewer segments")
    panels = _texts(table["panel"])
    _check_panels(panels)
    what = "items shown at all" if of == "shown" else f"values of {_line(name)}"
    if of == "item":
        what = "items"
    percent, from_0_to_1 = alt.Axis(format="~%", tickCount=5), alt.Scale(domain=[0, 1])
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
    even = alt.Chart(ends).mark_line(color=_GRAY, strokeDash=[4, 3], strokeWidth=1).encode(**axes)
    line = (
        alt.Chart()
        .mark_line()
        .encode(
            **axes,
            **_color(table, groups),
            strokeDash=_dash(table, groups),
            order="values:Q",
            tooltip=_tooltip(table.drop("panel")),
        )
    )
    curves = table.group_by("panel", "system", maintain_order=True).agg(pl.col("gini").first())
    return _in_panels(
        _layered(even, line, data=table),
        panels,
        _title(
            f"Lorenz curve of exposure in {_lists_to(k)}",
            _counted_lists(lists, groups, truth, exclude, columns) + _weighted(weight),
            *_ginis(curves),
            "dashed: even exposure, Gini 0",
        ),
        width=260,
        wide=360,
        height=260 if len(panels) > 1 else 360,
    )


def critical_difference(
    frame: Frame | Mapping[str, Frame],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    confidence: float = 0.95,
    **options: Unpack[Options],
) -> ChartType:
    """
    Draw the mean ranks of systems, with a bar under those that Nemenyi's test does not separate.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    *metrics
        Labels or expressions, as in ``per_user``. Rank 1 is the best system of a user: the lowest
        where lower is better, and the highest for an expression of your own.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments, each with its own panel.
    confidence
        Systems are separated if their mean ranks differ by more than the critical difference of
        this confidence, over all pairs of a metric.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles. ``weights`` raise: ranks have no weighted form.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment. The drawn numbers are in ``chart.data``: ``panel``,
        ``part``, ``system``, ``users``, ``low``, ``high``, and the places of text. If ``part`` is
        "system", ``low`` and ``high`` are its mean rank; for a "group" of systems that are not
        separated, the least and the greatest mean rank; for the "scale", ``high`` − ``low`` is the
        critical difference.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), there are fewer than two systems, or the ranks of
        systems do not vary.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, a metric has no best or
        is not a value per user, such as the geometric mean ``gmap``, ``weights`` are given, or
        there are more than 40 systems.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Notes
    -----
    J. Demšar, *JMLR* 7, 2006. The numbers are those of ``compare(test="friedman")``, over the users
    whom all systems share.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> drawn = rf.plot.critical_difference(run, "rr", truth=truth).data
    >>> drawn.select("part", "system", pl.col("low", "high").round(3)).rows()
    [('system', 'new', 1.167, 1.167), ('system', 'old', 1.833, 1.833),
     ('group', 'new, old', 1.167, 1.833), ('scale', None, 1.0, 1.924)]
    """
    frame, by = as_frame(frame, by)
    _check_call(options)
    groups = groups_by_systems(frame, truth, by, None)
    ranks = _computed(
        mean_ranks, frame, *metrics, truth=truth, by=groups, confidence=confidence, **options
    )
    ranks = ranks.select(*_named(ranks, groups), pl.exclude(groups)).select(
        _panel("metric"), pl.exclude("segment", "metric")
    )
    panels = _texts(ranks["panel"])
    _check_panels(panels)
    table = pl.concat(map(_ranked, ranks.partition_by("panel", maintain_order=True)))
    systems = ranks["system"].n_unique()
    notes = _texts(ranks["note"].drop_nulls()) if len(panels) == 1 else []
    return _in_panels(
        _ranked_layers(table, systems),
        panels,
        _title(
            f"Mean ranks of {systems} systems on {_users(ranks['users'])}",
            f"a bar joins those that Nemenyi's test does not separate at {confidence * 100:.10g}%",
            *notes,
        ),
        width=380,
        wide=380,
        height=20 * (_greatest(table, "row") + 0.5),
        columns=1,
    )


def agreement(
    means: Frame,
    /,
    *metrics: str,
    other: Frame | None = None,
    by: str | Sequence[str] | None = None,
    coefficient: Literal["kendall_tau", "tau_ap"] = "kendall_tau",
) -> ChartType:
    """
    Draw how well the orders in which metrics put systems agree, as a matrix.

    Parameters
    ----------
    means
        A frame of ``evaluate``: one row per system, one column per metric.
    *metrics, other, by
        As in ``rankframe.agreement``; each segment has its own panel.
    coefficient
        ``"kendall_tau"``, or ``"tau_ap"``, for which the column of the matrix is the truth.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One row per ``metric``, one column per ``other``. The drawn numbers are in ``chart.data``:
        ``panel``, ``metric``, ``other``, ``systems`` and the coefficient.

    Raises
    ------
    RankingDataError
        As ``rankframe.agreement``, or if no two metrics order the systems.
    ValueError
        If the coefficient is unknown, or there are fewer than two metrics.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> means = pl.DataFrame(
    ...     {"model": ["a", "b", "c"], "rr": [0.1, 0.2, 0.3], "ap": [0.1, 0.3, 0.2]}
    ... )
    >>> drawn = rf.plot.agreement(means).data
    >>> drawn.select("metric", "other", pl.col("kendall_tau").round(3)).rows()
    [('rr', 'ap', 0.333), ('ap', 'rr', 0.333)]
    """
    _check_call({})
    check_choice("coefficient", coefficient, list(_COEFFICIENTS))
    import altair as alt

    lazy = to_lazy(means, "means")
    groups = systems_groups(by, lazy.collect_schema().names())
    found = agreement_of(lazy, *metrics, other=other, by=by).collect()
    segment = _text(found, groups[1:]).alias("panel")
    table = found.select(segment, "metric", "other", "systems", coefficient)
    _check_values(table[coefficient], ", ".join(_texts(table["metric"])[:3]))
    _check_rows(table, "cells", "fewer metrics")
    panels = _texts(table["panel"])
    _check_panels(panels)
    rows, columns = _texts(table["metric"]), _texts(table["other"])
    if other is None:
        columns = rows
    slant = 0 if max(map(len, columns)) <= 8 else -30
    base = alt.Chart().encode(
        x=alt.X("other:N", title=None, sort=columns, axis=alt.Axis(labelAngle=slant)),
        y=alt.Y("metric:N", title=None, sort=rows, axis=alt.Axis(labelLimit=180)),
        tooltip=_tooltip(table.drop("panel")),
    )
    color = alt.Color(
        f"{coefficient}:Q",
        title=_COEFFICIENTS[coefficient],
        scale=alt.Scale(scheme="blueorange", domain=[-1, 1], reverse=True),
        legend=alt.Legend(padding=8),
    )
    ink = alt.when(f"abs(datum.{coefficient}) > 0.7").then(alt.value("white"))
    text = base.mark_text().encode(
        text=alt.Text(f"{coefficient}:Q", format=".2f"), color=ink.otherwise(alt.value("black"))
    )
    known = f"isValid(datum.{coefficient})"
    layers = _layered(
        base.mark_rect().encode(color=color), text.transform_filter(known), data=table
    )
    return _in_panels(
        layers,
        panels,
        _title(
            f"Agreement of metrics on the order of {_systems(table['systems'])}",
            *_averaged(lazy),
            _READINGS[coefficient],
        ),
        width=max(54 * len(columns), 120),
        wide=max(64 * len(columns), 160),
        height=26 * len(rows),
    )


# ------------------------------------------------------------------ tables to draw


def _groups(frame: Frame, truth: Frame | None, by: str | Sequence[str] | None) -> list[str]:
    """Read ``by=``, with the column of the systems first."""
    return systems_groups(by, column_names(frame, "judged table" if truth is None else "run"))


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


def _directions(metrics: Sequence[Metric]) -> dict[str, bool | None]:
    return directions_of(parse_metrics(metrics, per_user=False))


def _verdict(directions: Mapping[str, bool | None]) -> pl.Expr:
    """Call higher and lower values better or worse, where the metric has a better direction."""
    verdict = pl.col("verdict").fill_null("undecided")
    for name, higher_is_better in directions.items():
        if higher_is_better is not None:
            ends = ("better", "worse") if higher_is_better else ("worse", "better")
            judged = pl.col("verdict").replace(["higher", "lower"], ends)
            verdict = pl.when(metric=name).then(judged.fill_null("undecided")).otherwise(verdict)
    return verdict


def _band(title: str) -> alt.Chart:
    """Draw the differences within the margin, once per panel."""
    import altair as alt

    low = alt.datum.margin * -1
    band: alt.Chart = alt.Chart().mark_rect(color=_PALE).transform_calculate(low=low)
    return band.transform_filter("isValid(datum.margin)").encode(
        x=alt.X("min(low):Q", title=title), x2="max(margin):Q"
    )


def _verdict_scale(
    directions: Mapping[str, bool | None], margins: Mapping[str, float]
) -> alt.Scale:
    import altair as alt

    pairs: list[tuple[str, str]] = []
    if any(known is not None for known in directions.values()):
        pairs.append(("better", "worse"))
    if None in directions.values():
        pairs.append(("higher", "lower"))
    within = {"not worse": _SKY, "equivalent": _GREEN} if margins else {}
    domain = [*(good for good, _ in pairs), *within, "undecided", *(bad for _, bad in pairs)]
    colors = [*(_BLUE for _ in pairs), *within.values(), _GRAY, *(_VERMILION for _ in pairs)]
    return alt.Scale(domain=domain, range=colors)


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


def _first_values(rows: pl.DataFrame) -> tuple[pl.DataFrame, int]:
    """Sort values by target, keep the first ones, and count all."""
    order = rows.group_by("value", maintain_order=True).agg(
        pl.col("target", "share").mean().round(9)
    )
    down, number = [True, True, False], len(order)
    order = order.sort("target", "share", "value", descending=down, nulls_last=True)
    order = order.select("value").head(_MOST_VALUES)
    return order.join(rows, on="value", maintain_order="left_right").select(rows.columns), number


def _left_over(table: pl.DataFrame) -> str:
    """Write the share of exposure that values leave to others, or the range of it."""
    lines = table.drop_nulls("share").group_by("panel", "system")
    least, greatest = _bounds(1 - lines.agg(pl.col("share").sum())["share"])
    texts = [f"{100 * max(0.0, end):.3g}%" for end in (least, greatest)]
    return " to ".join(dict.fromkeys(texts))


def _both_ways(summary: pl.DataFrame, groups: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Put the numbers of two metrics side by side, one row per system that has both."""
    ends = {"mean": "", "ci_low": "_low", "ci_high": "_high"}
    rows = summary.select(
        *_named(summary, groups), "metric", "users", *(pl.col(end) for end in ends)
    ).select(pl.col("segment").alias("panel"), pl.exclude("segment"))
    keys = ["panel", "system", "users"]
    x, y = (
        rows.filter(metric=name).select(
            *keys, *(pl.col(end).alias(axis + suffix) for end, suffix in ends.items())
        )
        for axis, name in zip("xy", names, strict=True)
    )
    shared = ["panel", "system"]
    both = x.join(y.drop("users"), on=shared, nulls_equal=True, maintain_order="left")
    return both.drop_nulls(["x", "y"])


def _padded(table: pl.DataFrame, axis: str) -> tuple[float, float]:
    """Return the bounds of an axis, with room beside the outermost intervals."""
    columns = pl.concat([table[axis], table[f"{axis}_low"], table[f"{axis}_high"]])
    least, greatest = _bounds(columns)
    room = 0.08 * (greatest - least) or 0.1 * abs(least) or 0.1
    return least - room, greatest + room


def _with_places(
    table: pl.DataFrame, domains: Mapping[str, tuple[float, float]], width: int, height: int
) -> pl.DataFrame:
    """Choose the side of each point where its name is clear of other names, points and lines."""
    places: list[str | None] = []
    for rows in table.partition_by("panel", maintain_order=True):
        pixels: dict[str, list[Any]] = {
            name: [
                None if value is None else (value - domains[name[0]][0]) / span * size
                for value in rows[name]
            ]
            for axis, size in (("x", width), ("y", height))
            for span in [domains[axis][1] - domains[axis][0]]
            for name in (axis, f"{axis}_low", f"{axis}_high")
        }
        points = list(zip(pixels["x"], pixels["y"], strict=True))
        dots = [(x - 5, y - 5, x + 5, y + 5) for x, y in points]
        lines: list[_Box] = []
        for (x, y), x0, x1, y0, y1 in zip(
            points,
            *(pixels[f"{axis}_{end}"] for axis in "xy" for end in ("low", "high")),
            strict=True,
        ):
            lines += [(x0, y - 1, x1, y + 1)] if x0 is not None and x1 is not None else []
            lines += [(x - 1, y0, x + 1, y1)] if y0 is not None and y1 is not None else []
        taken: list[_Box] = []
        for system, (x, y) in zip(rows["system"], points, strict=True):
            boxes = {
                place: _label_box(system, x, y, right=right, above=above)
                for place, (right, above) in _SIDES.items()
            }
            crossed = {
                place: sum(_overlap(box, line) for line in lines)
                for place, box in boxes.items()
                if box[0] >= 0
                and box[2] <= width
                and box[1] >= 0
                and box[3] <= height
                and not any(_overlap(box, other) for other in [*taken, *dots])
            }
            free = {place: number for place, number in crossed.items() if number <= _MOST_CROSSED}
            best = min(free, key=lambda place: free[place]) if free else None
            taken += [boxes[best]] if best else []
            places.append(best)
    return table.with_columns(pl.Series("place", places, pl.String))


def _label_box(text: str, x: float, y: float, *, right: bool, above: bool) -> _Box:
    """Return the pixels that a name beside a point covers: left, low, right, high."""
    length, high = 7.2 * len(text), 13.0
    left = x + _GAP if right else x - _GAP - length
    low = y + _GAP if above else y - _GAP - high
    return left, low, left + length, low + high


def _overlap(one: _Box, other: _Box) -> bool:
    across = one[0] < other[2] and other[0] < one[2]
    return across and one[1] < other[3] and other[1] < one[3]


def _lorenz_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Add up exposure over values, least exposed first, and keep enough points of each line."""
    keys = ["panel", "system"]
    exposed = rows.filter(pl.col("share").is_not_null())
    lines = exposed.select(keys).n_unique()
    steps = max(10, min(100, _MOST_ROWS // (2 * lines) - 2))
    curves: list[pl.DataFrame] = []
    for line in exposed.partition_by(keys, maintain_order=True):
        number, total = len(line), float(line["exposure"].sum())
        place = 2 * pl.int_range(1, number + 1, dtype=pl.Int64) - number - 1
        gini = float(line.select((place * pl.col("exposure")).sum()).item()) / (number * total)
        points = line.select(
            values=pl.int_range(1, number + 1) / number,
            exposure=pl.col("exposure").cum_sum() / total,
        )
        start = pl.DataFrame({"values": [0.0], "exposure": [0.0]})
        points = pl.concat([start, points])
        bend = (pl.col("exposure") == 0) & (pl.col("exposure").shift(-1) > 0)
        last = pl.int_range(pl.len()) == pl.len() - 1
        spread = [
            (pl.col(name) * steps + 1e-9).floor().is_first_distinct()
            for name in ("values", "exposure")
        ]
        # of those never shown, two points make the line
        kept = (pl.any_horizontal(spread) & (pl.col("exposure") > 0)) | bend | last
        first = pl.int_range(pl.len()) == 0
        points = points.filter(kept | first).with_columns(
            exposure=pl.when(pl.col("values") == 1).then(1.0).otherwise("exposure"), gini=gini
        )
        ends = line.select(keys).head(1)
        curves.append(ends.join(points, how="cross"))
    return pl.concat(curves)


def _ginis(curves: pl.DataFrame) -> list[str]:
    """Write the Gini coefficients of a few lines, or the least and the greatest of many."""
    if len(curves) <= 4 and curves["panel"].n_unique() == 1:
        texts = [f"{_line(row['system'])} {row['gini']:.3f}".strip() for row in curves.to_dicts()]
        return [f"Gini: {', '.join(texts)}"]
    least, greatest = _bounds(curves["gini"])
    return [f"Gini: {least:.3f} to {greatest:.3f}"]


def _counted_lists(
    lists: pl.LazyFrame,
    groups: Sequence[str],
    truth: Frame | None,
    exclude: Frame | None,
    columns: Columns,
) -> str:
    """Write how many users have a list."""
    ids = with_ids(columns, groups, {"run": lists, "truth": truth})
    user = pl.col(ids.get("user", "user")).n_unique().alias("__rankframe_users")
    rows = listed(lists, truth=truth, exclude=exclude, by=groups, **columns).filter("listed")
    counts = (rows.group_by(groups).agg(user) if groups else rows.select(user)).collect()
    return _users(counts["__rankframe_users"])


def _lists_to(k: int | None) -> str:
    return "the whole lists" if k is None else f"the first {k} items" if k > 1 else "the first item"


def _weighted(weight: str | float) -> str:
    if weight == "none":
        return ""
    return f"; weight of a place: {_WEIGHTS.get(weight, f'{weight}^(rank − 1)')}"


def _axis_titles(metrics: Sequence[Metric]) -> list[str]:
    """Name metrics, whether they are means, and which direction is better."""
    directions = _directions(metrics)
    titles: list[str] = []
    for one in parse_metrics(metrics, per_user=False):
        title = _line(one.name)
        title = f"{title} of all lists" if is_of_all(one) else f"mean {title}"
        better = {True: " (higher is better)", False: " (lower is better)", None: ""}
        titles.append(title + better[directions[one.name]])
    return titles


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


def _color(
    table: pl.DataFrame, groups: Sequence[str], *, legend: bool = True, strokes: bool = True
) -> dict[str, Any]:
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
    # if colors of lines repeat, the legend must show the dashes
    dashed: dict[str, Any] = {"symbolType": "stroke", "symbolSize": 400}
    legend_of_systems = alt.Legend(
        title=_line(groups[0]),
        symbolLimit=0,
        symbolOpacity=1,
        padding=8,
        **(dashed if strokes and len(systems) > len(_COLORS) else {}),
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


def _shape(table: pl.DataFrame, groups: Sequence[str], *, legend: bool) -> dict[str, Any]:
    """Give the points of systems whose color repeats another shape."""
    import altair as alt

    systems = _texts(table["system"])
    if len(systems) <= len(_COLORS):
        return {}
    shapes = [_SHAPES[place // len(_COLORS)] for place in range(len(systems))]
    scale = alt.Scale(domain=systems, range=shapes)
    symbols = alt.Legend(title=_line(groups[0]), symbolLimit=0, padding=8) if legend else None
    return {"shape": alt.Shape("system:N", scale=scale, legend=symbols)}


def _tooltip(table: pl.DataFrame) -> list[alt.Tooltip]:
    import altair as alt

    formats = {True: ".4~f", False: ",d"}
    return [
        alt.Tooltip(f"{name}:Q", format=formats[dtype.is_float()])
        if dtype.is_numeric()
        else alt.Tooltip(f"{name}:N")
        for name, dtype in table.schema.items()
    ]


def _systems(counts: pl.Series) -> str:
    least, greatest = map(int, _bounds(counts))
    return f"{least} systems" if least == greatest else f"{least} to {greatest} systems"


def _averaged(means: pl.LazyFrame) -> list[str]:
    """Write over how many users evaluate averaged, if the frame says so."""
    if "users" not in means.collect_schema():
        return []
    counts = means.select("users").drop_nulls().collect()["users"]
    return [f"Means over {_users(counts)}"] if len(counts) else []


def _ranked(ranks: pl.DataFrame) -> pl.DataFrame:
    """Place systems, groups that are not separated, and the scale, on one axis of mean ranks."""
    panel, reach = ranks["panel"][0], ranks["critical_difference"][0]
    if reach is None:
        msg = f"metric {panel!r}: there are no ranks to compare, since {ranks['note'][0]}"
        raise RankingDataError(msg)
    if len(ranks) > _MOST_RANKED:
        msg = f"{len(ranks)} systems are too many for one chart; filter the frame"
        raise ValueError(msg)
    ranks = ranks.sort("mean_rank", maintain_order=True)
    names, places = ranks["system"].to_list(), ranks["mean_rank"].to_list()
    groups = _joined(places, reach)
    first, half = 0.35 * len(groups) + 0.75, (len(names) + 1) // 2
    rows: list[dict[str, Any]] = []
    for place, (name, rank) in enumerate(zip(names, places, strict=True)):
        left = place < half
        row = first + (place if left else len(names) - 1 - place)
        side, text = "left" if left else "right", f"{_line(name)}  {rank:.2f}"
        ends = {"low": rank, "high": rank}
        rows.append(
            {"part": "system", "system": name, **ends, "row": row, "side": side, "text": text}
        )
    for number, (start, stop) in enumerate(groups, 1):
        together = ", ".join(map(_line, names[start : stop + 1]))
        ends = {"low": places[start], "high": places[stop]}
        rows.append({"part": "group", "system": together, **ends, "row": 0.35 * number})
    text = f"critical difference {reach:.2f}"
    rows.append({"part": "scale", "low": 1.0, "high": 1 + reach, "row": 0.0, "text": text})
    columns: dict[str, Any] = dict.fromkeys(("part", "system"), pl.String)
    columns |= dict.fromkeys(("low", "high", "row"), pl.Float64)
    columns |= dict.fromkeys(("side", "text"), pl.String)
    users = pl.lit(ranks["users"][0]).alias("users")
    drawn = pl.DataFrame(rows, schema=columns)
    return drawn.select(
        pl.lit(panel).alias("panel"), "part", "system", users, pl.exclude("part", "system")
    )


def _joined(places: Sequence[float], reach: float) -> list[tuple[int, int]]:
    """Return the longest stretches of two or more sorted ranks that are within reach."""
    found: list[tuple[int, int]] = []
    for start, low in enumerate(places):
        stop = max(place for place, rank in enumerate(places) if rank - low <= reach)
        if stop > start and (not found or stop > found[-1][1]):
            found.append((start, stop))
    return found


def _ranked_layers(table: pl.DataFrame, systems: int) -> Any:
    """Draw stems from the axis to names on both sides, bars of groups and the scale."""
    import altair as alt

    end = max(float(systems), _greatest(table, "high"))
    ticks = alt.Axis(orient="top", format="d", grid=False, values=[*range(1, systems + 1)])
    x = alt.X(
        "low:Q",
        title="mean rank, 1 is best",
        axis=ticks,
        scale=alt.Scale(domain=[1, end], nice=False, zero=False),
    )
    rows = alt.Scale(domain=[0, _greatest(table, "row") + 0.5], reverse=True)
    y = alt.Y("row:Q", title=None, axis=None, scale=rows)
    base = alt.Chart().encode(x=x, y=y, tooltip=_tooltip(table.select("system", "users", "low")))
    layers = [
        base.mark_rule(color=_GRAY)
        .transform_filter("datum.part == 'system'")
        .encode(y2=alt.Y2Datum(0))
    ]
    sides: list[tuple[str, Any, Any, int]] = [
        ("left", 0, "right", -5),
        ("right", "width", "left", 5),
    ]
    for side, edge, align, shift in sides:
        own = base.transform_filter(f"datum.side == '{side}'")
        layers.append(own.mark_rule(color=_GRAY).encode(x2=alt.value(edge)))
        names = own.mark_text(align=align, dx=shift, baseline="middle", limit=170)
        layers.append(names.encode(x=alt.value(edge), text="text:N"))
    bars = base.mark_rule(strokeWidth=5, color=_BLUE).transform_filter("datum.part == 'group'")
    scale = base.transform_filter("datum.part == 'scale'")
    layers += [
        bars.encode(x2="high:Q"),
        scale.mark_rule(strokeWidth=2).encode(x2="high:Q", y=alt.value(-46)),
        scale.mark_text(align="left").encode(text="text:N", y=alt.value(-55)),
    ]
    return _layered(*layers, data=table, view=alt.ViewBackground(stroke=None))


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


def _mean(options: Mapping[str, Any]) -> str:
    return f"Mean{_weighted_by(options)}"


def _weighted_by(options: Mapping[str, Any]) -> str:
    weights = options.get("weights")
    return "" if weights is None else f" weighted by {_line(weights)}"


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


def _check_exposed(shares: pl.Series, name: str) -> None:
    if shares.null_count() == len(shares):
        msg = f"no list exposes a value of {name!r}: there is no share to draw"
        raise RankingDataError(msg)


def _check_panels(panels: Sequence[str]) -> None:
    if len(panels) > _MOST_PANELS:
        msg = f"{len(panels)} segments are too many for one chart; filter the frame"
        raise ValueError(msg)


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
