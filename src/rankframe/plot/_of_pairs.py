"""Draw comparisons: charts of differences of systems, mean ranks, and agreement of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Unpack

import polars as pl

from rankframe._comparison import comparison, many_systems, sentences, system_agreement, trials
from rankframe._comparison.trials import Correction, Margin, Test, Trial
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame
from rankframe._tables import adapters, run_dicts
from rankframe.plot import _colors, _marks, _panels, _tables

if TYPE_CHECKING:
    import altair as alt

_MOST_PAIRED = 12  # systems for which each pair has its own row
_COEFFICIENTS = {"kendall_tau": "Kendall's τ", "tau_ap": "τ_AP"}
_READINGS = {
    "kendall_tau": "pairs of systems in the same order minus pairs in opposite order, without ties",
    "tau_ap": "row: the evaluated order; column: the truth",
}
FULL, _OPPOSED = ("#08519C", "#2B7BC4"), ("#A63603", "#C25A14")  # the ends of scales


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
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments: ``by=["model", "country"]``. Of several columns, the one called ``model``
        identifies the systems, else the one that contains the ``baseline``, unless a table is lazy,
        else the first one.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        ``"t"`` (paired), ``"wilcoxon"``, ``"randomization"``, ``"bootstrap"``, ``"mcnemar"``
        (values of 0 and 1) or ``"sequential"`` (valid at every look); of all systems at once,
        ``"tukey"``, ``"randomized_tukey"`` or ``"friedman"``. The notes of ``rf.compare`` describe
        them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bonferroni"``,
        ``"bh"`` (Benjamini and Hochberg), or None.
    confidence
        The probability that a single interval covers the true value.
    margin
        A difference too small to matter, > 0, on the scale of the metric: one number for all
        metrics, or a mapping such as ``{"ndcg@10": 0.01, "mrr": 0.02}``; metrics missing from the
        mapping have no margin.
    primary
        The metric that decides, such as ``"ndcg@10"``, chosen before the values are seen. Its
        p-value is not corrected for the other metrics.
    resamples
        Number of resamples: bootstrap samples, permutations or patterns of signs.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

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

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> chart = rf.plot.compare(run, "rr", truth=truth, baseline="old")
    >>> chart.data.select("pair", "verdict").rows()
    [('new − old', 'undecided')]
    """
    frame, by = run_dicts.as_frame(frame, by)
    _panels.check_call(options)
    import altair as alt

    groups = comparison.groups_by_systems(frame, truth, by, baseline)
    compared = _tables.computed(
        comparison.compare,
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
    directions = _tables.directions(metrics)
    margins = comparison.per_metric("margin", margin, [*directions])
    bound = pl.lit(None, pl.Float64)
    for name, value in margins.items():
        bound = pl.when(metric=name).then(pl.lit(value, pl.Float64)).otherwise(bound)
    extra_columns = () if margins else ("margin", "p_equivalent", "p_not_worse")
    systems = sentences.text_of(compared, groups[:1]), sentences.text_of(compared, ["baseline"])
    table = compared.select(
        *sentences.system_and_segment(compared, groups),
        pl.format("{} − {}", *systems).alias("pair"),
        _tables.verdicts(directions).alias("verdict"),
        bound.alias("margin"),
        sentences.text_of(compared, ["baseline"]).alias("baseline"),
        pl.exclude(*groups, "baseline", "verdict"),
    ).select(_tables.panel_of("metric"), pl.exclude("segment", "metric", *extra_columns))
    _tables.check_values(table["difference"], ", ".join(_tables.texts(table["panel"])[:3]))
    _tables.check_rows(table, "pairs", "a baseline")
    panels, names = _tables.texts(table["panel"]), list(directions)
    higher = directions[names[0]]
    look = _colors.verdict_look(directions, margins, f"p < {1 - confidence:.2g}")
    what = ", ".join(names if len(names) < 4 else [*names[:3], f"{len(names) - 3} more"])
    alone = "simultaneous" if test in trials.SIMULTANEOUS else "not corrected"
    trial = Trial(test=test, correction=correction, primary=primary)
    tested = sentences.tested_in_words(trial, compared)
    missed = sentences.missed_lines(_tables.missed_of_pairs(compared, groups))
    counted = f"{_tables.user_count(table['users'])}{_tables.weighted_by(options)}"
    compared_systems = _tables.texts(pl.concat([table["system"], table["baseline"]]))
    if baseline is None and len(compared_systems) > _MOST_PAIRED:
        order = _tables.system_order(table, higher_is_better=higher)
        table = _tables.as_triangle(table, order, confidence)
        return _panels.in_panels(
            _marks.pair_cells(table, order, look, confidence),
            table,
            _panels.title_of(
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
    order = _tables.pair_order(table, higher_is_better=higher)
    pairs = table.select("pair", "system", "baseline").unique("pair", maintain_order=True)
    row, title = "pair", f"Differences of systems in {what}"
    if len(pairs) == 1:
        title = f"{order[0]}: {what}"
    elif baseline is not None:
        row, title = "system", f"Differences from {sentences.one_line(baseline)} in {what}"
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
        y=alt.Y(f"{row}:N", title=None, sort=order, axis=_marks.axis_of(**axis)),
        color=look["color"],
    )
    base = _marks.described(base, table, _marks.compared_words(confidence))
    bars = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.ci_low)")
    bars = bars.encode(x=alt.X("ci_low:Q", title=axis_title), x2="ci_high:Q")
    points = base.mark_point(filled=True, opacity=1, size=80).encode(
        x=alt.X(
            "difference:Q",
            title=axis_title,
            axis=_marks.change_axis(format="+.3~g", tickCount=4, labelOverlap=True),
            scale=alt.Scale(padding=10),
        ),
        shape=look["shape"],
    )
    zero = _marks.zero_line().encode(x=alt.XDatum(0))
    return _panels.in_panels(
        [*([_marks.margin_band(axis_title)] if margins else []), zero, bars, points],
        table,
        _panels.title_of(
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
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments: ``by=["model", "country"]``. Of several columns, the one called ``model``
        identifies the systems, else the first one.
    confidence
        Systems are separated if their mean ranks differ by more than the critical difference at
        this confidence, for all pairs of a metric.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

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
        If the ranks of systems do not vary.
    ValueError
        If a metric has no better direction, or there are more than 40 systems.

    Notes
    -----
    J. Demšar, *JMLR* 7, 2006. The numbers are those of ``compare(test="friedman")``, over the users
    whom all systems share.

    Rank 1 is the best system for a user: the lowest value if lower is better, and the highest for
    an expression of your own.

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
    frame, by = run_dicts.as_frame(frame, by)
    _panels.check_call(options)
    import altair as alt

    groups = comparison.groups_by_systems(frame, truth, by, None)
    ranks = _tables.computed(
        many_systems.mean_ranks,
        frame,
        *metrics,
        truth=truth,
        by=groups,
        confidence=confidence,
        **options,
    )
    ranks = ranks.select(*sentences.system_and_segment(ranks, groups), pl.exclude(groups)).select(
        _tables.panel_of("metric"), pl.exclude("segment", "metric")
    )
    panels = _tables.texts(ranks["panel"])
    _tables.check_panels(panels)
    table = pl.concat(map(_tables.ranked, ranks.partition_by("panel", maintain_order=True)))
    systems = ranks["system"].n_unique()
    what = f"{sentences.one_line(panels[0])}: m" if len(panels) == 1 else "M"
    notes = _tables.texts(ranks["note"].drop_nulls()) if len(panels) == 1 else []
    return _panels.in_panels(
        _marks.ranked_layers(table, systems),
        table,
        _panels.title_of(
            f"{what}ean ranks of {systems} systems on {_tables.user_count(ranks['users'])}",
            f"bars: systems not separated by Nemenyi's test at {confidence * 100:.10g}% confidence",
            *notes,
        ),
        width=370,
        wide=370,
        height=20 * (_tables.greatest(table, "row") + 0.5),
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
        A second frame of ``evaluate``, with the same systems on other users or judgments; each
        metric of ``means`` is compared with each metric of ``other``. By default the metrics of
        ``means`` are compared with each other.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments: ``by=["model", "country"]``. Of several columns, the one called ``model``
        identifies the systems, else the first one.
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
        If there are fewer than two metrics.

    Examples
    --------
    >>> means = pl.DataFrame(
    ...     {"model": ["a", "b", "c"], "rr": [0.1, 0.2, 0.3], "ap": [0.1, 0.3, 0.2]}
    ... )
    >>> drawn = rf.plot.agreement(means).data
    >>> drawn.select("metric", "other", pl.col("kendall_tau").round(3)).rows()
    [('rr', 'ap', 0.333), ('ap', 'rr', 0.333)]
    """
    _panels.check_call({})
    keywords.check_choice("coefficient", coefficient, list(_COEFFICIENTS))
    import altair as alt

    lazy = adapters.to_lazy(means, "means")
    groups = keywords.systems_groups(by, lazy.collect_schema().names())
    agreements = system_agreement.agreement(lazy, *metrics, other=other, by=by).collect()
    segment = sentences.text_of(agreements, groups[1:]).alias("panel")
    table = agreements.select(segment, "metric", "other", "systems", coefficient)
    _tables.check_values(table[coefficient], ", ".join(_tables.texts(table["metric"])[:3]))
    _tables.check_rows(table, "cells", "fewer metrics")
    panels = _tables.texts(table["panel"])
    _tables.check_panels(panels)
    rows, columns = _tables.texts(table["metric"]), _tables.texts(table["other"])
    if other is None:
        columns = rows
    slant = 0 if max(map(len, columns)) <= 8 else -30
    base = alt.Chart().encode(
        x=alt.X("other:N", title=None, sort=columns, axis=alt.Axis(labelAngle=slant)),
        y=alt.Y("metric:N", title=None, sort=rows, axis=alt.Axis(labelLimit=180)),
    )
    words = {"segment": "panel", "metric": "metric", "other metric": "other"}
    words |= {_COEFFICIENTS[coefficient]: coefficient, "systems": "systems"}
    base = _marks.described(base, table, words)
    color = alt.Color(
        f"{coefficient}:Q",
        title=_COEFFICIENTS[coefficient],
        scale=alt.Scale(
            range=[_colors.ink(_OPPOSED), _colors.ink(_colors.PALE), _colors.ink(FULL)],
            domain=[-1, 0, 1],
        ),
        legend=alt.Legend(padding=8),
    )
    strong = alt.when(f"abs(datum.{coefficient}) > 0.6").then(alt.value("white"))
    text = base.mark_text().encode(
        text=alt.Text(f"{coefficient}:Q", format=".2f"),
        color=strong.otherwise(alt.value(_colors.ink())),
    )
    has_value = f"isValid(datum.{coefficient})"
    return _panels.in_panels(
        [base.mark_rect().encode(color=color), text.transform_filter(has_value)],
        table,
        _panels.title_of(
            f"Agreement of metrics on the order of {_tables.system_count(table['systems'])}",
            *_tables.averaged(lazy),
            _READINGS[coefficient],
        ),
        width=max(54 * len(columns), 120),
        wide=max(64 * len(columns), 160),
        height=26 * len(rows),
    )
