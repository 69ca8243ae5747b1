"""Draw metrics over cut-offs: charts of means at each k, and of precision against recall."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Unpack

from rankframe._comparison import cutoff_curves
from rankframe._evaluation import evaluation
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.metrics import core
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt


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
    call = _tables.read_call(frame, truth, by, options)
    keywords.check_flag("together", together)
    labels = cutoff_curves.labels_at(names, cutoff_curves.cutoffs(k))
    values = call.values(labels["label"].to_list())
    means = cutoff_curves.means_of(values, interval=interval, confidence=confidence).collect()
    from rankframe.plot import _cutoff_pictures

    band = confidence if interval else None
    return _cutoff_pictures.at_k(
        means, labels, call.groups, options, confidence=band, together=together
    )


@adapters.takes_any_frame
def precision_recall(
    frame: Runs[Frame],
    /,
    *,
    k: Iterable[int] = range(1, 21),
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[Options],
) -> alt.HConcatChart:
    """
    Draw precision against recall: the interpolated curve, and the path over k.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    k
        The cut-offs.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.HConcatChart
        On the left, the mean ``interpolated_precision`` of the whole lists at recall 0, 0.1, … 1;
        on the right, the mean precision@k against the mean recall@k, on contours of equal F1. If
        there are more than six systems, only the best three by F1 at the last cut-off are colored
        and named; click the legend to select systems. ``at_k("precision", "recall",
        together=True)`` draws both over k.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> curve, path = rf.plot.precision_recall(run, k=[1, 2], truth=truth, by=()).hconcat
    >>> path.data.select("k", "recall", "precision").rows()
    [(1, 0.5, 0.5), (2, 1.0, 0.5)]
    """
    call = _tables.read_call(frame, truth, by, options)
    cutoffs = cutoff_curves.cutoffs(k)
    metrics: list[Metric] = [*_tables.INTERPOLATED]
    metrics += [core.recall_at(k).alias(f"recall@{k}") for k in cutoffs]
    metrics += [core.precision_at(k).alias(f"precision@{k}") for k in cutoffs]
    means = call.compute(evaluation.evaluate, *metrics, core.num_missed())
    from rankframe.plot import _cutoff_pictures

    return _cutoff_pictures.precision_recall(means, cutoffs, call.groups, options)
