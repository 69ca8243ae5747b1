"""Draw comparisons: charts of differences of systems, mean ranks, and agreement of metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal, Unpack

from rankframe._comparison import comparison, many_systems, system_agreement
from rankframe._comparison.trials import Correction, Margin, Test, Trial
from rankframe._request import keywords
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt


@adapters.takes_any_frame
def compare(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    paired: bool = True,
    **options: Unpack[StatisticsOptions],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the differences of systems with their intervals.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        ``"t"`` (paired), ``"wilcoxon"``, ``"randomization"``, ``"bootstrap"``, ``"mcnemar"``
        (values of 0 and 1) or ``"sequential"`` (valid at every look); of all systems at once,
        ``"max_t"``, ``"tukey"`` or ``"friedman"``. The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bonferroni"``,
        ``"bh"`` (Benjamini and Hochberg), or None. Tests of all systems at once have one of their
        own, and take no other.
    confidence
        The probability that a single interval covers the true value.
    margin
        A difference too small to matter, > 0, on the scale of the metric, or a share of the
        baseline's values such as ``"1%"``: one for all metrics, or a mapping such as
        ``{"ndcg@10": 0.01, "mrr": "2%"}``; metrics missing from the mapping have no margin.
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
    paired
        False: compare groups of different users, such as weeks or cohorts with ``model="week"``,
        by Welch's t of all users of each; users in both count with their covariance.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment, one row per pair, sorted by gain in the first panel,
        greatest first. Color and shape are the verdict of ``rankframe.compare``. Except for Tukey's
        tests, intervals are not corrected, so the interval of an undecided pair may exclude 0. A
        gray band shows the differences within ± ``margin``. The drawn numbers are in
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
    trial = Trial(
        *(baseline, test, correction, confidence, margin, primary, resamples, seed, cluster),
        paired=paired,
    )
    _refuse_compared(frame)
    call = _tables.read_call(frame, truth, by, options, "compare")
    values = call.values(metrics, cluster=cluster)
    compared = comparison.comparison_of(values, trial).collect()
    from rankframe.plot import _pair_pictures

    return _pair_pictures.compare(compared, metrics, call, trial)


def _refuse_compared(frame: Runs[Frame]) -> None:
    """Raise if a table is a result of ``compare``, which does not say how it was tested."""
    own = {"metric", "baseline", "difference", "verdict"}
    if not isinstance(frame, Mapping) and own <= {*adapters.column_names(frame, "frame")}:
        msg = (
            "a result of compare does not say how it was tested: draw from what it compared, "
            "rf.plot.compare(runs, 'ndcg@10', truth=truth, baseline=…)"
        )
        raise ValueError(msg)


@adapters.takes_any_frame
def critical_difference(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    confidence: float = 0.95,
    **options: Unpack[StatisticsOptions],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean ranks of systems, with bars under systems that Nemenyi's test does not separate.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    confidence
        Systems are separated if their mean ranks differ by more than the critical difference at
        this confidence, for all pairs of a metric.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

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
    call = _tables.read_call(frame, truth, by, options, "critical_difference")
    ranks = call.compute(many_systems.mean_ranks, *metrics, confidence=confidence)
    from rankframe.plot import _pair_pictures

    return _pair_pictures.critical_difference(ranks, call.groups, confidence=confidence)


@adapters.takes_any_frame
def metric_agreement(
    means: Frame,
    /,
    *metrics: str,
    other: Frame | None = None,
    model: str = "model",
    by: str | Sequence[str] = (),
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
    model
        The column that names the systems.
    by
        Columns of segments, such as country, fold or day.
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
        As ``rankframe.stats.metric_agreement``, or if no two metrics order the systems.
    ValueError
        If there are fewer than two metrics.

    Examples
    --------
    >>> means = pl.DataFrame(
    ...     {"model": ["a", "b", "c"], "rr": [0.1, 0.2, 0.3], "ap": [0.1, 0.3, 0.2]}
    ... )
    >>> drawn = rf.plot.metric_agreement(means).data
    >>> drawn.select("metric", "other", pl.col("kendall_tau").round(3)).rows()
    [('rr', 'ap', 0.333), ('ap', 'rr', 0.333)]
    """
    _tables.check_call()
    keywords.check_choice("coefficient", coefficient, ["kendall_tau", "tau_ap"])
    lazy = adapters.to_lazy(means, "means")
    groups = [model, *(name for name in keywords.group_names(by) if name != model)]
    agreements = system_agreement.metric_agreement(
        lazy, *metrics, other=other, model=model, by=by
    ).collect()
    averaged = _tables.averaged(lazy)
    from rankframe.plot import _pair_pictures

    return _pair_pictures.agreement(
        agreements, groups, coefficient=coefficient, square=other is None, averaged=averaged
    )
