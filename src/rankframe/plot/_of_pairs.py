"""Draws differences of systems: the call that the pictures are of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

from rankframe._comparison import comparison
from rankframe._comparison.trials import Correction, Margin, Test, Trial
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
        ``"t"`` (paired), ``"randomization"``, ``"max_t"`` (all systems at once) or
        ``"sequential"`` (valid at every look). The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` has one of its own, and takes no other.
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
        greatest first. Color and shape are the verdict of ``rankframe.compare``. Except for
        ``"max_t"``, intervals are not corrected, so the interval of an undecided pair may exclude
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
