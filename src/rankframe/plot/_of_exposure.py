"""Draw exposure, and one metric against another: charts of shares, trade-offs and Lorenz curves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Unpack

import polars as pl

from rankframe._comparison import summaries
from rankframe._evaluation import row_verbs
from rankframe._request import keywords
from rankframe._request.keywords import Columns, StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.share_names import Target
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.plot import _tables
from rankframe.plot._tables import Call

if TYPE_CHECKING:
    import altair as alt


@adapters.takes_any_frame
def exposure(
    run: Runs[Frame],
    /,
    *,
    of: str | None = None,
    k: int | None = None,
    discount: str | float = "none",
    target: Target | None = "catalogue",
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    **columns: Unpack[Columns],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw how the exposure in lists is shared among genres, providers or items.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all. May be
        left out where ``items`` has one column of lists.
    k
        Cut-off; None means the whole list.
    discount
        The discount of a position: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    target
        What a share should be: the share in the ``"catalogue"``, ``"uniform"``, the share in the
        ``"history"``, in the relevant items of the ``"truth"``, among ``"candidates"`` (the
        catalogue without each user's past items), or None.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions. A column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. Rows
        that match no list are ignored. The truth stays as it is, so an excluded item that is in the
        truth is a miss.
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, for popularity, novelty and profiles: user and item. A repeated row is
        one user: distinct users are counted.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``model=None`` ignores the run's.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One bar per value, for all lists of a system together, and at most ten values: those
        furthest from the target in any panel, furthest first, or without a target those with the
        highest share. Of one system, a bar is its share, with a tick at the target. Several systems
        or segments have a panel each, where a bar is the share minus the target, in points. The
        subtitle reports the greatest difference or share of the other values. The drawn numbers are
        in ``chart.data``: ``panel``, ``value``, ``system``, ``share``, ``target``, ``difference``.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing, or no value is exposed.
    ValueError
        If there are more than twelve systems and segments.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abc"], "genre": ["x", "y", "z"]})
    >>> chart = rf.plot.exposure(run, of="genre", items=items, target="uniform", by=())
    >>> chart.data.select("value", pl.col("share", "target").round(3)).rows()
    [('x', 0.667, 0.333), ('z', 0.0, 0.333), ('y', 0.333, 0.333)]
    """
    call = _read_call(run, truth, by, columns)
    tables = {"items": items, "history": history, "exclude": exclude}
    options = {"of": of, "k": k, "discount": discount, "target": target, **tables}
    exposures = call.compute(row_verbs.exposure, **options)
    lists, counted = _tables.lists_to(k), _tables.counted_lists(call, exclude, discount)
    from rankframe.plot import _exposure_pictures

    return _exposure_pictures.shares(
        exposures, call.groups, target=target, lists=lists, counted=counted
    )


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
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    x
        The metric of the horizontal axis: a label or an expression, as in ``summarize``; also a
        metric of all lists together, such as ``"coverage@10"``.
    y
        The metric of the vertical axis, as ``x``.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
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
        One point per system, with the intervals of ``summarize``. A legend is added if points are
        too close together to write all names. If there are more than six systems, only the best
        three by ``x`` are colored and named; click the legend to select systems. Equal points share
        one name, such as "a, b" or "a, b and 2 more". The drawn numbers are in ``chart.data``:
        ``panel``, ``system``, ``users``, ``x``, ``x_low``, ``x_high``, ``y``, ``y_low``,
        ``y_high``, ``label``, the name, and ``place``, the side of the point where it is.

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
    call = _tables.read_call(frame, truth, by, options)
    summary = call.compute(summaries.summarize, x, y, confidence=confidence)
    from rankframe.plot import _exposure_pictures

    return _exposure_pictures.trade_off(summary, (x, y), call, confidence=confidence)


@adapters.takes_any_frame
def lorenz(
    run: Runs[Frame],
    /,
    *,
    of: str = "item",
    k: int | None = None,
    discount: str | float = "none",
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    **columns: Unpack[Columns],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the Lorenz curve of exposure: how few items of the catalogue have most of it.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all.
    k
        Cut-off; None means the whole list.
    discount
        The discount of a position: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions. A column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. Rows
        that match no list are ignored. The truth stays as it is, so an excluded item that is in the
        truth is a miss.
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, for popularity, novelty and profiles: user and item. A repeated row is
        one user: distinct users are counted.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``model=None`` ignores the run's.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One line per system, for all its lists together: the share of exposure of the items that
        are exposed most, by their number, on a logarithmic scale; the title has the number that
        has half of it. It is the Lorenz curve, read from its upper end. Dashed is even exposure;
        the Gini coefficient is twice the area between the diagonal and the Lorenz curve. The drawn
        numbers are in ``chart.data``: ``panel``, ``system``, ``values`` (the share of items, least
        exposed first), ``exposure`` (their share of exposure), ``above`` (the number of other
        items), ``gini``, ``half``, and ``marked``, true where the
        line has the shape of its system. A line of many items is drawn through at most about 200
        points. If there are more than six systems, only the three most even ones are colored; click
        the legend to select systems.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing, or nothing is exposed.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> chart = rf.plot.lorenz(run, items=pl.DataFrame({"item": [*"abcd"]}), by=())
    >>> chart.data.select("values", pl.col("exposure", "gini").round(3)).rows()
    [(0.0, 0.0, 0.583), (0.5, 0.0, 0.583), (0.75, 0.333, 0.583), (1.0, 1.0, 0.583)]
    """
    call = _read_call(run, truth, by, columns)
    tables = {"items": items, "history": history, "exclude": exclude}
    options = {"of": of, "k": k, "target": None, **tables}
    exposures = call.compute(row_verbs.exposure, discount=discount, **options)
    if of == "shown":  # at rank ≤ k, with a hit or without, as gini counts them
        shown = call.compute(row_verbs.exposure, discount="none", **options)
        keys = exposures.columns[: len(call.groups) + 1]
        exposures = exposures.join(shown.filter(pl.col("exposure") > 0), on=keys, how="semi")
    lists, counted = _tables.lists_to(k), _tables.counted_lists(call, exclude, discount)
    from rankframe.plot import _exposure_pictures

    return _exposure_pictures.lorenz(exposures, call.groups, of=of, lists=lists, counted=counted)


def _read_call(
    run: Runs[Frame],
    truth: Truth | None,
    by: str | Sequence[str],
    columns: Columns,
) -> Call:
    """Read a call whose first frame is a run, with or without a truth."""
    keywords.check_columns(columns)
    frame, by, columns = run_dicts.as_frame(run, by, columns)
    call = _tables.read_call(frame, frame, by, {"model": columns.get("model")})
    return call._replace(truth=truth, options=columns)
