"""Draw the means of metrics in segments: a heatmap."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt


@adapters.takes_any_frame
def heatmap(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[StatisticsOptions],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean of metrics in each segment.

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
        Columns of segments. The last column, or the model, defines the rows, and the others the
        panels: ``by="country"`` has one panel per model and one row per country. With one metric,
        it is one grid: models by countries, the more numerous ones in rows.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One row per segment, one column per metric, or for one metric and several columns a grid
        of their values. Since metrics differ in scale, the color is the mean as a share of the
        greatest mean of the metric or, where lower is better, the least mean as a share of it: the
        best is darkest. The drawn numbers are in ``chart.data``: ``panel``, ``segment``, ``users``,
        ``metric``, ``mean``, ``share``, and ``row``, the name of the segment with its users.
        Segments are in the order of their type, such as that of an Enum. If there are more than 40
        segments, those with the most users are drawn.

    Raises
    ------
    ValueError
        If ``by`` is empty.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7], "country": ["DE", "FR"]})
    >>> chart = rf.plot.heatmap(run, "rr", truth=truth, by="country")
    >>> chart.data.select("segment", "metric", "mean").rows()
    [('DE', 'rr', 0.5), ('FR', 'rr', 1.0)]
    """
    call = _tables.read_call(frame, truth, by, options)
    if not call.groups:
        msg = "by= is empty, but a heatmap needs segments: name their columns in by="
        raise ValueError(msg)
    means = call.means(metrics)
    from rankframe.plot import _pair_pictures

    return _pair_pictures.heatmap(means, metrics, call)
