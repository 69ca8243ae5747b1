"""Charts: the frame that a function returns, drawn with Altair.

Each function returns the chart and does not show it. Users are counted or binned before they are
drawn, so charts are small for any number of users. Colors follow the background of the theme. The
first chart imports Altair.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import polars as pl

from rankframe._agreement import agreement as agreement_of
from rankframe._chart_tables import (
    BEST,
    GAP,
    MOST_VALUES,
    SIDES,
    as_text,
    as_triangle,
    averaged,
    averages_of,
    axis_titles,
    best_first,
    both_ways,
    check_exposed,
    check_panels,
    check_rows,
    check_values,
    computed,
    counted_lists,
    directions,
    first_values,
    gini_texts,
    greatest,
    groups_of,
    left_over,
    limits_of,
    lists_to,
    lorenz_points,
    mean_of,
    missed_lines,
    missed_of_pairs,
    named,
    number_of,
    one_line,
    padded,
    pair_order,
    panel_of,
    ranked,
    system_count,
    system_order,
    text_of,
    texts,
    user_count,
    verdicts,
    weight_text,
    weighted_by,
    with_places,
)
from rankframe._charts import (
    COLORS,
    GRAY,
    PALE,
    are_many,
    axis_of,
    change_axis,
    check_call,
    color_of,
    compared_words,
    described,
    halo,
    head_room,
    in_panels,
    ink,
    layered,
    margin_band,
    of_many,
    pair_cells,
    path_chart,
    points_of_many,
    ranked_layers,
    selections,
    shape_of,
    sure,
    title_of,
    verdict_look,
    zero_line,
)
from rankframe._compare import (
    SIMULTANEOUS,
    Correction,
    Margin,
    Test,
    diagnose,
    groups_by_systems,
    of_metrics,
)
from rankframe._compare import compare as compare_systems
from rankframe._cutoffs import cutoffs as read_cutoffs
from rankframe._cutoffs import labels_at, means_of
from rankframe._evaluate import evaluate, per_user, user_values
from rankframe._frames import Frame, to_lazy
from rankframe._labels import Metric, parse_metrics
from rankframe._options import (
    Columns,
    Options,
    check_choice,
    check_columns,
    check_flag,
    group_names,
    read_options,
    systems_groups,
    whole_number,
)
from rankframe._pictures import (
    at_k_picture,
    change_picture,
    check_lines,
    selectable,
    users_picture,
)
from rankframe._results import tested_in_words
from rankframe._rows import shares as shares_of
from rankframe._runs import as_frame
from rankframe._shares import Target
from rankframe._summarize import summarize
from rankframe._systems import mean_ranks
from rankframe.errors import RankingDataError
from rankframe.metrics.core import num_missed, precision_at, recall_at
from rankframe.metrics.trec import num_relevant

if TYPE_CHECKING:
    import altair as alt

__all__ = [
    "agreement",
    "at_k",
    "change",
    "compare",
    "critical_difference",
    "heatmap",
    "lorenz",
    "precision_recall",
    "shares",
    "trade_off",
    "users",
]

_MOST_PAIRED = 12  # systems for which each pair has its own row
_MOST_SEGMENTS = 40  # rows of a readable heatmap
_COEFFICIENTS = {"kendall_tau": "Kendall's τ", "tau_ap": "τ_AP"}
_READINGS = {
    "kendall_tau": "pairs of systems in the same order minus pairs in opposite order, without ties",
    "tau_ap": "row: the evaluated order; column: the truth",
}
_FULL, _OPPOSED = ("#08519C", "#2B7BC4"), ("#A63603", "#C25A14")  # the ends of scales
_TARGETS: dict[str, str] = {
    "catalogue": "the share in the catalogue",
    "uniform": "equal shares",
    "history": "the share in the history",
    "truth": "the share in the relevant items",
    "judged": "the share in the judged items",
    "candidates": "the share in the catalogue without each user's history",
}


def at_k(
    frame: Frame | Mapping[str, Frame],
    /,
    *names: str,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
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
    together
        Draw all metrics on one axis, each with its own dashes: precision and recall over k.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment; a single panel is as wide as the page. The drawn numbers
        are in ``chart.data``: ``panel``, ``system``, ``k``, ``users``, ``mean``, ``ci_low``,
        ``ci_high``, as in ``rf.at_k``, with ``together`` also ``metric``. If there are more than
        six systems, only the best three at the last cut-off are colored and named (``name``,
        ``name_at``); click the legend to select systems, hover over one to show its band.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``).
    ValueError
        If a name already has a cut-off or cannot have one, a parameter is unknown or out of range,
        or there are more than 40 systems.
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
    check_call(options)
    check_flag("together", together)
    cutoffs = read_cutoffs("ks", ks)
    labels = labels_at(names, cutoffs)
    groups = groups_of(frame, truth, by)
    values = user_values(
        to_lazy(frame, "judged table" if truth is None else "run"),
        labels["label"].to_list(),
        truth,
        groups,
        read_options(options, count_missed=True),
        per_user=False,
        all_lists=True,
    )
    means = means_of(values, interval=interval, confidence=confidence).collect()
    return at_k_picture(
        means,
        labels,
        groups,
        options,
        confidence=confidence if interval else None,
        together=together,
    )


def precision_recall(
    frame: Frame | Mapping[str, Frame],
    /,
    *,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **options: Unpack[Options],
) -> alt.HConcatChart:
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
        on the right, the mean precision@k against the mean recall@k, on contours of equal F1. If
        there are more than six systems, only the best three by F1 at the last cut-off are colored
        and named; click the legend to select systems. ``at_k("precision", "recall",
        together=True)`` draws both over k.

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
    check_call(options)
    import altair as alt

    cutoffs, levels = read_cutoffs("ks", ks), [step / 10 for step in range(11)]
    groups = groups_of(frame, truth, by)
    curves = {f"interpolated_precision(recall={level})": level for level in levels}
    measures = {"recall": recall_at, "precision": precision_at}
    metrics: list[Metric] = [*curves]
    metrics += [
        metric(k).alias(f"{name}@{k}") for name, metric in measures.items() for k in cutoffs
    ]
    metrics.append(num_missed())
    means = computed(evaluate, frame, *metrics, truth=truth, by=groups, **options)
    shared = text_of(means, groups).alias("system"), pl.col("users")
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
    check_values(path["precision"], "precision@k")
    check_rows(path, "points", "fewer cut-offs")
    last = path.filter(k=cutoffs[-1])
    f1 = 2 * pl.col("precision") * pl.col("recall") / (pl.col("precision") + pl.col("recall"))
    systems = best_first(last.with_columns(f1=f1.fill_nan(0)), "f1", higher_is_better=True)
    check_lines(systems, groups)
    many = are_many(systems)
    chosen, _ = selections()
    look = of_many(systems, chosen) if many else {}
    faint = points_of_many(systems, chosen) if many else {}
    from_0_to_1 = alt.Scale(domain=[0, 1])
    lines = alt.Chart().encode(
        x=alt.X("recall:Q", title="recall", scale=from_0_to_1, axis=axis_of()),
        y=alt.Y(
            "precision:Q", title="mean interpolated precision", scale=from_0_to_1, axis=axis_of()
        ),
        **color_of(systems, groups),
    )
    words = {"system": "system", "recall": "recall"}
    words |= {"mean interpolated precision": "precision", "users": "users"}
    lines = described(lines, curve, words)
    points = lines.mark_point(filled=True, opacity=1, size=30)
    points = points.encode(**shape_of(systems, groups), **faint)
    points = points.add_params(chosen) if many else points
    drawn = [points, lines.mark_line().encode(**look), head_room()]
    left = layered(*drawn, data=curve, width=270, height=270, title="Interpolated, whole lists")
    subtitle = [
        f"{mean_of(options)} over {user_count(means['users'])}; gray: equal F1 of the two means"
    ]
    if many:
        subtitle += [selectable(f"F1 at k = {cutoffs[-1]}", interval=False)]
    subtitle += missed_lines(means.select(*named(means, groups), "users", "num_missed"))
    title = title_of(f"Precision and recall, at k = {as_text(cutoffs)} and interpolated", *subtitle)
    right = path_chart(path, systems, groups, chosen if many else None)
    return alt.hconcat(left, right, title=title)


def users(
    frame: Frame | Mapping[str, Frame],
    /,
    metric: Metric,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    bins: int = 20,
    **options: Unpack[Options],
) -> alt.FacetChart:
    """
    Draw the distribution of a metric over users, per system.

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
        One histogram per system and segment, with the mean as a line, and on its left a box
        filled to the share of users whose value is exactly 0. The drawn numbers are in
        ``chart.data``: ``system``, ``segment``, ``low`` ≤ value < ``high`` (the last bin also
        includes its upper end; ``low`` = ``high`` = 0 is exactly 0, which the other bins exclude),
        ``users``, their ``share``, and the ``mean`` in the first row of each histogram. With six
        systems or more, one row per system, best mean first, with quantiles of the users who are
        not exactly 0: ``system``, ``segment``, ``users``, ``zeros`` (the share of users at exactly
        0), ``low`` (5%), ``lower quarter``, ``median``, ``upper quarter``, ``high`` (95%) and the
        ``mean`` of all users.

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
    check_call(options)

    bins = whole_number("bins", bins)
    if options.pop("weights", None) is not None:
        msg = "weights= given to the chart of users, which counts users equally: leave it out"
        raise ValueError(msg)
    groups = groups_of(frame, truth, by)
    kind = "judged table" if truth is None else "run"
    settings = read_options(options, count_missed=True)
    values = user_values(to_lazy(frame, kind), [metric], truth, groups, settings).rows.collect()
    (higher,) = directions([metric]).values()
    return users_picture(values, groups, higher_is_better=higher, bins=bins)


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
) -> alt.LayerChart | alt.FacetChart:
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
    by
        The columns of the systems and of segments, as in ``rankframe.compare``.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        The test, as in ``rankframe.compare``.
    correction
        The correction for the number of comparisons, as in ``rankframe.compare``.
    confidence
        The probability that a single interval covers the true difference.
    margin
        A difference too small to matter, as in ``rankframe.compare``.
    primary
        The metric that decides, whose p-value is not corrected for the others, as in
        ``rankframe.compare``.
    resamples
        Number of sign patterns, permutations or bootstrap resamples.
    seed
        Seed of the resamples.
    cluster
        A column of the truth or the run whose users depend on each other, as in
        ``rankframe.compare``.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment, one row per pair, sorted by gain in the first panel,
        greatest first. Color and shape are the verdict of ``rankframe.compare``, with "better" and
        "worse" instead of "higher" and "lower" if the metric has a better direction. Except for
        Tukey's tests, intervals are not corrected, so the interval of an undecided pair may exclude
        0. A gray band shows the differences within ± ``margin``. The drawn numbers are in
        ``chart.data``: ``panel``, ``system``, ``pair``, ``verdict``, the ``margin`` if there is
        one, and the numbers of ``rankframe.compare``. Without a baseline, more than 12 systems are
        drawn as one cell per pair: the row is the system that is better in the first panel,
        ``baseline`` the column, and ``depth`` the grade of ``p_adjusted``.

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
    check_call(options)
    import altair as alt

    groups = groups_by_systems(frame, truth, by, baseline)
    compared = computed(
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
    found = directions(metrics)
    margins = of_metrics("margin", margin, [*found])
    bound = pl.lit(None, pl.Float64)
    for name, value in margins.items():
        bound = pl.when(metric=name).then(pl.lit(value, pl.Float64)).otherwise(bound)
    unasked = () if margins else ("margin", "p_equivalent", "p_not_worse")
    systems = text_of(compared, groups[:1]), text_of(compared, ["baseline"])
    table = compared.select(
        *named(compared, groups),
        pl.format("{} − {}", *systems).alias("pair"),
        verdicts(found).alias("verdict"),
        bound.alias("margin"),
        text_of(compared, ["baseline"]).alias("baseline"),
        pl.exclude(*groups, "baseline", "verdict"),
    ).select(panel_of("metric"), pl.exclude("segment", "metric", *unasked))
    check_values(table["difference"], ", ".join(texts(table["panel"])[:3]))
    check_rows(table, "pairs", "a baseline")
    panels, names = texts(table["panel"]), list(found)
    higher = found[names[0]]
    look = verdict_look(found, margins, f"p < {1 - confidence:.2g}")
    what = ", ".join(names if len(names) < 4 else [*names[:3], f"{len(names) - 3} more"])
    alone = "simultaneous" if test in SIMULTANEOUS else "not corrected"
    tested = tested_in_words(test, correction, compared, primary)
    missed = missed_lines(missed_of_pairs(compared, groups))
    counted = f"{user_count(table['users'])}{weighted_by(options)}"
    compared_systems = texts(pl.concat([table["system"], table["baseline"]]))
    if baseline is None and len(compared_systems) > _MOST_PAIRED:
        order = system_order(table, higher_is_better=higher)
        table = as_triangle(table, order, confidence)
        return in_panels(
            pair_cells(table, order, look, confidence),
            table,
            title_of(
                f"Differences of {len(compared_systems)} systems in {what}",
                f"{counted}; row − column, best first; darker cells: smaller p",
                tested,
                *missed,
            ),
            width=19 * len(order),
            wide=22 * len(order),
            height=(22 if len(panels) == 1 else 19) * len(order),
            columns=1 if len(order) > 16 else 2,
            resolve="x",
        )
    order = pair_order(table, higher_is_better=higher)
    pairs = table.select("pair", "system", "baseline").unique("pair", maintain_order=True)
    row, title = "pair", f"Differences of systems in {what}"
    if len(pairs) == 1:
        title = f"{order[0]}: {what}"
    elif baseline is not None:
        row, title = "system", f"Differences from {one_line(baseline)} in {what}"
        system_of = dict(pairs.select("pair", "system").rows())
        order = [system_of[pair] for pair in order]
    axis_title = "difference" + (f" in {panels[0]}" if len(panels) == 1 else "")
    two_lines = row == "pair" and max(map(len, order)) > 30
    axis: dict[str, Any] = {"labelLimit": 240}
    if two_lines:
        axis["labelExpr"] = "split(replace(datum.label, ' − ', '\\n− '), '\\n')"
    if len(pairs) == 1:
        axis |= {"labels": False, "ticks": False}
    table = table.drop("baseline")
    base = alt.Chart().encode(
        y=alt.Y(f"{row}:N", title=None, sort=order, axis=axis_of(**axis)),
        color=look["color"],
    )
    base = described(base, table, compared_words(confidence))
    bars = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.ci_low)")
    bars = bars.encode(x=alt.X("ci_low:Q", title=axis_title), x2="ci_high:Q")
    points = base.mark_point(filled=True, opacity=1, size=80).encode(
        x=alt.X(
            "difference:Q",
            title=axis_title,
            axis=change_axis(format="+.3~g", tickCount=4, labelOverlap=True),
            scale=alt.Scale(padding=10),
        ),
        shape=look["shape"],
    )
    zero = zero_line().encode(x=alt.XDatum(0))
    return in_panels(
        [*([margin_band(axis_title)] if margins else []), zero, bars, points],
        table,
        title_of(
            title,
            counted,
            f"{confidence * 100:.10g}% intervals, {alone}; {tested}",
            *missed,
        ),
        width=180,
        height=(34 if two_lines else 24) * max(2, len(order)),
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
) -> alt.FacetChart:
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
        ``chart.data``; in rows with a ``count``, ``relevant`` and ``change`` are means over this
        number of users.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), there are fewer than two systems, or the systems
        share no user.
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
    check_call(options)
    k = whole_number("k", k)
    groups = groups_by_systems(frame, truth, by, baseline)
    means = computed(
        diagnose, frame, k, truth=truth, by=groups, baseline=baseline, bins=bins, **options
    )
    metrics = [num_relevant().alias("relevant"), precision_at(k).alias("precision")]
    metrics += [recall_at(k).alias("recall")]
    values = computed(per_user, frame, *metrics, truth=truth, by=groups, **options)
    return change_picture(values, means, groups, k, baseline, options)


def heatmap(
    frame: Frame | Mapping[str, Frame],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
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
        The columns of the segments, by default ``model``. With several columns and several metrics,
        the last column defines the rows and the others the panels: ``by=["model", "country"]`` has
        one panel per model and one row per country. With one metric, it is one grid: models by
        countries, the more numerous ones in rows.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One row per segment, one column per metric, or for one metric and several columns a grid of
        their values. The color is the mean as a share of the metric's
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
    check_call(options)
    import altair as alt

    groups = groups_of(frame, truth, None) if by is None else group_names(by)
    if not groups:
        msg = "by= is empty, but a heatmap needs segments: name their columns in by="
        raise ValueError(msg)
    means = computed(evaluate, frame, *metrics, truth=truth, by=groups, **options)
    names = means.columns[len(groups) + 1 :]
    wide = means.select(
        text_of(means, groups[:-1]).alias("panel"),
        text_of(means, groups[-1:]).alias("segment"),
        "users",
        pl.struct(number_of(means, name).alias(name) for name in names).alias("means"),
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
    check_values(table["mean"], ", ".join(names))
    check_rows(table, "cells", "fewer metrics")
    panels, in_rows = texts(table["panel"]), [*texts(segments["segment"])]
    is_grid = len(panels) > 1 and len(names) == 1
    row, column, in_columns = "segment", "metric", names
    row_title, column_title = one_line(groups[-1]), None
    if is_grid:
        in_rows = [name for name in in_rows if name in {*table["segment"]}]
        column, in_columns, column_title = "panel", panels, ", ".join(map(one_line, groups[:-1]))
        if len(panels) >= len(in_rows):
            row, column, in_rows, in_columns = column, row, in_columns, in_rows
            row_title, column_title = column_title, row_title
    slant = 0 if max(map(len, in_columns)) <= 13 else -30
    if is_grid:
        slant = 0 if max(map(len, in_columns)) <= 8 else -40
    base = alt.Chart().encode(
        x=alt.X(
            f"{column}:N",
            title=column_title,
            sort=in_columns,
            axis=alt.Axis(labelAngle=slant, labelLimit=180 if is_grid else 260),
        ),
        y=alt.Y(
            f"{row}:N",
            title=row_title if is_grid or len(panels) == 1 else None,
            sort=in_rows,
            axis=alt.Axis(titlePadding=12, labelLimit=260),
        ),
    )
    words = {", ".join(map(one_line, groups[:-1])): "panel", one_line(groups[-1]): "segment"}
    words |= {"metric": "metric", averages_of(metrics)[:-1].lower(): "mean", "users": "users"}
    words |= {"share of the greatest": "share"}
    base = described(base, table, words)
    color = alt.Color(
        "share:Q",
        title=["share of the", "metric's", "greatest"],
        scale=alt.Scale(range=[ink(PALE), ink(_FULL)], domain=[0, 1]),
        legend=alt.Legend(format="%", padding=8),
    )
    strong = alt.when("datum.share > 0.6").then(alt.value("white")).otherwise(alt.value(ink()))
    text = base.mark_text().encode(text="text:N", color=strong)
    of_metric = f" of {one_line(names[0])}" if is_grid else ""
    selection = (
        f"{len(drawn)} of {len(segments):,} segments, those with the most users: "
        if len(segments) > _MOST_SEGMENTS
        else ""
    )
    return in_panels(
        [base.mark_rect().encode(color=color), text],
        table,
        title_of(
            f"{averages_of(metrics)}{of_metric} by {', '.join(map(one_line, groups))}"
            f"{weighted_by(options)}",
            f"{selection}up to {user_count(table['users'].top_k(1))} in each",
        ),
        width=78 * len(names),
        wide=(56 if is_grid else 96) * len(in_columns),
        height=24 * len(in_rows),
        joined=is_grid,
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
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw how the exposure in lists is shared among genres, providers or items.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``from_runs`` takes it.
    of
        Whose shares are drawn, as in ``rankframe.shares``.
    k
        The cut-off, as in ``rankframe.shares``; all lists of a system count together.
    weight
        The weight of each rank, as in ``rankframe.shares``.
    target
        What the shares are measured against, as in ``rankframe.shares``.
    truth
        The truth, as in ``rankframe.shares``.
    items
        The catalogue.
    history
        The earlier events of users.
    exclude
        Rows that leave the lists, as in ``rankframe.shares``.
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
        the subtitle reports the share of the others. The drawn numbers are in ``chart.data``:
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
    check_call({})
    import altair as alt

    groups = groups_of(run, run, by)
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
        *named(rows, groups), text_of(rows, [name]).alias("value"), "share", "target"
    ).select(pl.col("segment").alias("panel"), "value", "system", "share", "target")
    check_exposed(rows["share"], name)
    table, number = first_values(rows)
    most = len(COLORS)
    if (found_systems := table["system"].n_unique()) > most:
        msg = (
            f"column {groups[0]!r}: {found_systems} systems, but bars have only {most} different "
            "colors: filter the frame"
        )
        raise ValueError(msg)
    check_rows(table, "bars", "fewer segments")
    panels, systems = texts(table["panel"]), texts(table["system"])
    check_panels(panels)
    values = texts(table["value"])
    end = float(table.select(pl.max_horizontal(pl.col("share", "target").max())).item())
    x_title, scale = "share of exposure", alt.Scale(domain=[0, end * 1.03], nice=False)
    offset: dict[str, Any] = {}
    if len(systems) > 1:
        offset = {"yOffset": alt.YOffset("system:N", sort=systems)}
    base = alt.Chart().encode(
        y=alt.Y(
            "value:N",
            title=one_line(name),
            sort=values,
            axis=alt.Axis(labelLimit=120, titlePadding=10),
            scale=alt.Scale(paddingInner=0.3, paddingOuter=0.15),
        ),
        **offset,
    )
    words = {"segment": "panel", one_line(name): "value", "system": "system"}
    words |= {"share of exposure": "share", "target": "target"}
    base = described(base, table, words)
    axis = axis_of(format="~%", tickCount=5)
    bars = base.mark_bar().encode(
        x=alt.X("share:Q", title=x_title, scale=scale, axis=axis),
        **color_of(systems, groups, distinct=True),
    )
    thick = min(11.0, 48 / len(systems))
    ticks = base.mark_tick(color=ink(), thickness=2, size=thick, opacity=1)
    ticks = ticks.transform_filter("isValid(datum.target)").encode(x=alt.X("target:Q"))
    lines = [counted_lists(lists, groups, truth, exclude, columns) + weight_text(weight)]
    if number > MOST_VALUES:
        what = "share" if target is None else "target"
        first = f"{MOST_VALUES} of {number:,} values, those with the highest {what}"
        lines += [first, f"the others have {left_over(table)} of exposure"]
    if target is not None:
        lines.append(f"ticks: target, {_TARGETS[target]}")
    return in_panels(
        [bars, ticks],
        table,
        title_of(f"Exposure of each {one_line(name)} in {lists_to(k)}", *lines),
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
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    x
        The metric of the horizontal axis: a label or an expression, as in ``summarize``; also a
        metric of all lists together, such as ``"coverage@10"``.
    y
        The metric of the vertical axis, as ``x``.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, whose names are beside their points: by default
        ``model``, or ``()``, a single system, if there is no such column. Further columns are
        segments, each with its own panel; of several, one called ``model`` identifies the systems,
        else the first.
    confidence
        The probability that a single interval covers the true value.
    **options
        All other keywords of ``per_user``: ``users``, ``items``, ``history``, ``relevant_at``…, and
        the columns that play the roles.

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
    check_call(options)
    import altair as alt

    groups = groups_of(frame, truth, by)
    metrics = (x, y)
    names = [one.name for one in parse_metrics(metrics, per_user=False)]
    summary = computed(
        summarize, frame, *metrics, truth=truth, by=groups, confidence=confidence, **options
    )
    table = both_ways(summary, groups, names)
    if table.is_empty():
        msg = f"metrics {names[0]!r} and {names[1]!r}: no system has a value of both"
        raise RankingDataError(msg)
    check_rows(table, "points", "fewer segments")
    panels = texts(table["panel"])
    check_panels(panels)
    width, height = (460, 340) if len(panels) == 1 else (280, 230)
    limits = limits_of(metrics)
    domains = {
        axis: padded(table, axis, limits[name]) for axis, name in zip("xy", names, strict=True)
    }
    higher = directions([x])[names[0]]
    systems = best_first(table, "x", higher_is_better=higher)
    check_lines(systems, groups)
    many = are_many(systems)
    table = with_places(table, domains, width, height, systems[:BEST] if many else None)
    all_named = not groups or table["place"].null_count() == 0
    among = systems if many else texts(summary.select(*named(summary, groups))["system"])
    look: dict[str, Any] = {"legend": not all_named, "among": among}
    chosen, _ = selections()
    titles = axis_titles(metrics)
    axes: dict[str, Any] = {
        axis: {
            "title": title,
            "scale": alt.Scale(domain=list(domains[axis]), nice=False, zero=False),
        }
        for axis, title in zip("xy", titles, strict=True)
    }
    quiet = axis_of(tickCount=5, format=".3~g")
    across, up = (
        alt.X("x:Q", **axes["x"], axis=quiet),
        alt.Y("y:Q", **axes["y"], axis=quiet),
    )
    words: dict[str, str | Sequence[str]] = {"segment": "panel", "system": "system"}
    for axis, name in zip("xy", map(one_line, names), strict=True):
        words |= {name: axis, f"{sure(confidence)} of {name}": (f"{axis}_low", f"{axis}_high")}
    words["users"] = "users"
    base = described(alt.Chart().encode(**color_of(systems, groups, **look)), table, words)
    bars = base.mark_rule(strokeWidth=1.5, opacity=0.6, clip=True)
    points = base.mark_point(filled=True, opacity=1, size=70)
    points = points.encode(x=across, y=up, **shape_of(systems, groups, **look))
    if many:
        back = {name: place for place, name in enumerate(reversed(systems))}
        table = table.sort(pl.col("system").replace_strict(back), maintain_order=True)
        bars = base.mark_rule(strokeWidth=1.5, clip=True)
        bars = bars.encode(opacity=alt.when(chosen).then(alt.value(0.6)).otherwise(alt.value(0.1)))
        points = points.encode(**points_of_many(systems, chosen)).add_params(chosen)
    layers = [
        bars.transform_filter("isValid(datum.x_low)").encode(
            x=alt.X("x_low:Q", **axes["x"]), x2="x_high:Q", y=up
        ),
        bars.transform_filter("isValid(datum.y_low)").encode(
            x=across, y=alt.Y("y_low:Q", **axes["y"]), y2="y_high:Q"
        ),
    ]
    layers.insert(0 if many else 2, points)
    for place in texts(table["place"].drop_nulls()):
        right, above = SIDES[place]
        side: dict[str, Any] = {
            "align": "left" if right else "right",
            "baseline": "bottom" if above else "top",
            "dx": GAP if right else -GAP,
            "dy": -GAP if above else GAP,
        }
        for look in (halo(), {}):
            text = base.mark_text(fontSize=11, fontWeight="bold", **side, **look)
            text = text.transform_filter(f"datum.place === '{place}'")
            layers.append(text.encode(x=across, y=up, text="system:N"))
    return in_panels(
        layers,
        table,
        title_of(
            f"{one_line(names[1])} against {one_line(names[0])}",
            f"{user_count(table['users'])}{weighted_by(options)}; lines: {confidence * 100:.10g}% "
            "intervals, not corrected",
            *([selectable(names[0], interval=False)] if many else []),
            *missed_lines(summary.select(*named(summary, groups), "users", "num_missed")),
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
        Whose exposure is drawn, as in ``rankframe.shares``; ``"shown"`` leaves out items that are
        never shown.
    k
        The cut-off, as in ``rankframe.shares``; all lists of a system count together.
    weight
        The weight of each rank, as in ``rankframe.shares``.
    truth
        The truth, as in ``rankframe.shares``.
    items
        The catalogue.
    history
        The earlier events of users.
    exclude
        Rows that leave the lists, as in ``rankframe.shares``.
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
        One line per system: items are sorted by exposure, lowest first, including those never
        shown, and the line is their cumulative share of exposure. The diagonal is even exposure;
        the Gini coefficient is twice the area between it and the line. The drawn numbers are in
        ``chart.data``: ``panel``, ``system``, ``values`` (the share of items), ``exposure`` (their
        share of exposure), ``gini``, and ``marked``, true where the line has the shape of its
        system. A line of many items is drawn through at most about 200 points. If there are more
        than six systems, only the three most even ones are colored; click the legend to select
        systems.

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
    check_call({})
    import altair as alt

    groups = groups_of(run, run, by)
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
    rows = rows.select(*named(rows, groups), "exposure", "share").select(
        pl.col("segment").alias("panel"), pl.exclude("segment")
    )
    check_exposed(rows["share"], name)
    table = lorenz_points(rows)
    check_rows(table, "points", "fewer segments")
    panels = texts(table["panel"])
    check_panels(panels)
    what = "items shown at all" if of == "shown" else f"values of {one_line(name)}"
    if of == "item":
        what = "items"
    percent, from_0_to_1 = axis_of(format="~%", tickCount=5), alt.Scale(domain=[0, 1])
    systems = best_first(table, "gini", higher_is_better=False)
    check_lines(systems, groups)
    many = are_many(systems)
    among = systems if many else texts(rows["system"])
    chosen, _ = selections()
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
    even = alt.Chart(ends).mark_line(color=ink(GRAY), strokeDash=[4, 3], strokeWidth=1)
    even = even.encode(**axes)
    base = alt.Chart().encode(
        **axes,
        **color_of(systems, groups, among=among),
        order="values:Q",
    )
    words = {"segment": "panel", "system": "system", f"share of {what}": "values"}
    words |= {"share of exposure": "exposure", "Gini": "gini"}
    base = described(base, table, words)
    # a shape at each fifth of the exposure distinguishes lines without color
    points = base.mark_point(filled=True, opacity=1, size=30).transform_filter("datum.marked")
    points = points.encode(**shape_of(systems, groups, among=among))
    line = base.mark_line()
    if many:
        look = of_many(systems, chosen)
        points = points.encode(**points_of_many(systems, chosen)).add_params(chosen)
        line = line.encode(**look)
    fifth = (pl.col("exposure") * 5).floor()
    is_new = (fifth != fifth.shift(1).over("panel", "system")).fill_null(value=False)
    table = table.with_columns(marked=is_new & (pl.col("exposure") < 1))
    layers = [points, even, line] if many else [even, line, points]
    curves = table.group_by("panel", "system", maintain_order=True).agg(pl.col("gini").first())
    return in_panels(
        layers,
        table,
        title_of(
            f"Lorenz curve of exposure in {lists_to(k)}",
            counted_lists(lists, groups, truth, exclude, columns) + weight_text(weight),
            *gini_texts(curves, systems),
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
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean ranks of systems, with bars under systems that Nemenyi's test does not separate.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    *metrics
        Labels or expressions, as in ``per_user``. Rank 1 is the best system for a user: the lowest
        value if lower is better, and the highest for an expression of your own.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments, each with its own panel.
    confidence
        Systems are separated if their mean ranks differ by more than the critical difference at
        this confidence, for all pairs of a metric.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles. ``weights`` raise an error: ranks have no weighted form.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment. The drawn numbers are in ``chart.data``: ``panel``,
        ``part``, ``system``, ``users``, ``low``, ``high``, and the positions of text. If ``part``
        is "system", ``low`` and ``high`` are its mean rank; for a "group" of systems that are not
        separated, the least and the greatest mean rank; for the "scale", ``high`` − ``low`` is the
        critical difference.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), there are fewer than two systems, or the ranks of
        systems do not vary.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, a metric has no better
        direction or is not a value per user, such as the geometric mean ``gmap``, ``weights`` are
        given, or there are more than 40 systems.
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
    check_call(options)
    import altair as alt

    groups = groups_by_systems(frame, truth, by, None)
    ranks = computed(
        mean_ranks, frame, *metrics, truth=truth, by=groups, confidence=confidence, **options
    )
    ranks = ranks.select(*named(ranks, groups), pl.exclude(groups)).select(
        panel_of("metric"), pl.exclude("segment", "metric")
    )
    panels = texts(ranks["panel"])
    check_panels(panels)
    table = pl.concat(map(ranked, ranks.partition_by("panel", maintain_order=True)))
    systems = ranks["system"].n_unique()
    what = f"{one_line(panels[0])}: m" if len(panels) == 1 else "M"
    notes = texts(ranks["note"].drop_nulls()) if len(panels) == 1 else []
    return in_panels(
        ranked_layers(table, systems),
        table,
        title_of(
            f"{what}ean ranks of {systems} systems on {user_count(ranks['users'])}",
            f"bars: systems not separated by Nemenyi's test at {confidence * 100:.10g}% confidence",
            *notes,
        ),
        width=370,
        wide=370,
        height=20 * (greatest(table, "row") + 0.5),
        columns=1,
        view=alt.ViewBackground(stroke=None),
    )


def agreement(
    means: Frame,
    /,
    *metrics: str,
    other: Frame | None = None,
    by: str | Sequence[str] | None = None,
    coefficient: Literal["kendall_tau", "tau_ap"] = "kendall_tau",
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw a matrix of agreement between the orders in which metrics put systems.

    Parameters
    ----------
    means
        A frame of ``evaluate``: one row per system, one column per metric.
    *metrics
        The columns to compare; by default all numeric columns except ``users``.
    other
        A second frame of ``evaluate``, as in ``rankframe.agreement``.
    by
        The columns of systems and segments, as in ``rankframe.agreement``; each segment has its own
        panel.
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
    check_call({})
    check_choice("coefficient", coefficient, list(_COEFFICIENTS))
    import altair as alt

    lazy = to_lazy(means, "means")
    groups = systems_groups(by, lazy.collect_schema().names())
    found = agreement_of(lazy, *metrics, other=other, by=by).collect()
    segment = text_of(found, groups[1:]).alias("panel")
    table = found.select(segment, "metric", "other", "systems", coefficient)
    check_values(table[coefficient], ", ".join(texts(table["metric"])[:3]))
    check_rows(table, "cells", "fewer metrics")
    panels = texts(table["panel"])
    check_panels(panels)
    rows, columns = texts(table["metric"]), texts(table["other"])
    if other is None:
        columns = rows
    slant = 0 if max(map(len, columns)) <= 8 else -30
    base = alt.Chart().encode(
        x=alt.X("other:N", title=None, sort=columns, axis=alt.Axis(labelAngle=slant)),
        y=alt.Y("metric:N", title=None, sort=rows, axis=alt.Axis(labelLimit=180)),
    )
    words = {"segment": "panel", "metric": "metric", "other metric": "other"}
    words |= {_COEFFICIENTS[coefficient]: coefficient, "systems": "systems"}
    base = described(base, table, words)
    color = alt.Color(
        f"{coefficient}:Q",
        title=_COEFFICIENTS[coefficient],
        scale=alt.Scale(range=[ink(_OPPOSED), ink(PALE), ink(_FULL)], domain=[-1, 0, 1]),
        legend=alt.Legend(padding=8),
    )
    strong = alt.when(f"abs(datum.{coefficient}) > 0.6").then(alt.value("white"))
    text = base.mark_text().encode(
        text=alt.Text(f"{coefficient}:Q", format=".2f"), color=strong.otherwise(alt.value(ink()))
    )
    known = f"isValid(datum.{coefficient})"
    return in_panels(
        [base.mark_rect().encode(color=color), text.transform_filter(known)],
        table,
        title_of(
            f"Agreement of metrics on the order of {system_count(table['systems'])}",
            *averaged(lazy),
            _READINGS[coefficient],
        ),
        width=max(54 * len(columns), 120),
        wide=max(64 * len(columns), 160),
        height=26 * len(rows),
    )


def __dir__() -> list[str]:
    return [*__all__]
