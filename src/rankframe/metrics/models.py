"""Measures of the literature that model a reader, or weigh grades."""

from typing import Literal

import polars as pl

from rankframe.labels import Gain, as_text, labelled
from rankframe.metrics.gains import stop_chance
from rankframe.metrics.words import (
    R,
    blended_ratio,
    blended_ratios,
    certain,
    count_within,
    hits,
    judged,
    listed,
    misplaced,
    rank,
    relevance,
    share,
    where_relevant,
    within,
)

__all__ = [
    "auc",
    "err_at",
    "judged_at",
    "nerr_at",
    "o_measure",
    "p_measure",
    "p_plus",
    "q_measure",
]


@labelled("err")
def err_at(k: int | None = None, *, max_grade: float | None = None) -> pl.Expr:
    """
    Expected reciprocal rank: Σ stop / rank · Π (1 − stop) over the items above, at rank ≤ k.

    The reader stops at an item with the chance (2^grade − 1) / 2^max_grade.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    max_grade
        The highest grade of the scale; None takes the highest grade in the truth.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``err@k``. Null for a user without an item of grade > 0.

    Raises
    ------
    ValueError
        If k is no whole number from 1, or ``max_grade`` is no number from 0. A grade above
        ``max_grade`` is a RankingDataError.

    Notes
    -----
    Reads ``relevance``, ``rank``, ``top_grade`` and ``survival``. Chapelle, Metzler, Zhang and
    Grinspan, *CIKM* 2009.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [0, 1, 2]}
    ... )
    >>> judged.rank.evaluate(rf.err_at()).item(0, "err")
    0.3125
    """
    return _err(rank, "survival", k, max_grade)


@labelled("nerr")
def nerr_at(k: int | None = None, *, max_grade: float | None = None) -> pl.Expr:
    """
    Normalised ERR: ERR@k / ERR@k of the ideal list.

    Parameters
    ----------
    k
        Cut-off of both lists; None means the whole lists.
    max_grade
        The highest grade of the scale; None takes the highest grade in the truth.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``nerr@k``. Null for a user without an item of grade > 0.

    Raises
    ------
    ValueError
        If k is no whole number from 1, or ``max_grade`` is no number from 0. A grade above
        ``max_grade`` is a RankingDataError.

    Notes
    -----
    Reads ``relevance``, ``rank``, ``ideal_rank``, ``top_grade``, ``survival`` and
    ``ideal_survival``. Chapelle, Metzler, Zhang and Grinspan, *CIKM* 2009.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [2, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.nerr_at(1), rf.nerr_at(2)).row(0)
    (1, 0.0, 0.4)
    """
    ideal = _err(pl.col("ideal_rank"), "ideal_survival", k, max_grade)
    ratio = _err(rank, "survival", k, max_grade) / ideal
    return pl.when(ideal != 0).then(ratio.clip(upper_bound=1))


@labelled("q")
def q_measure(k: int | None = None, *, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    Q-measure: Σ of the blended ratio over the hits at rank ≤ k / min(k, R).

    The blended ratio at a rank is (hits + β·gains) / (rank + β·ideal gains).

    Parameters
    ----------
    k
        Cut-off; None means the whole list, and divides by R.
    beta
        Weight of the gains; with 0 it is average precision.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``q@k``. Null for a user without a relevant item.

    Raises
    ------
    ValueError
        If k is no whole number from 1, β no number from 0, or ``gain`` unknown.

    Notes
    -----
    Reads ``relevant``, ``rank``, ``hits``, ``gains`` and ``ideal_gains``. Sakai, *NTCIR-4* 2004;
    the cut-off as in NTCIREVAL.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [2, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.q_measure()).item(0, "q")
    0.25
    """
    best = R if k is None else pl.min_horizontal(R, k)
    return where_relevant(blended_ratios(beta, gain, k) / best)


@labelled("o_measure")
def o_measure(*, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    O-measure: the blended ratio at the first hit; 0 without one.

    Parameters
    ----------
    beta
        Weight of the gains.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``o_measure``. Null for a user without a relevant item.

    Raises
    ------
    ValueError
        If β is no number from 0, or ``gain`` unknown.

    Notes
    -----
    Reads ``relevant``, ``rank``, ``hits``, ``gains`` and ``ideal_gains``. Sakai, *AIRS* 2006.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [2, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.o_measure()).item(0, "o_measure")
    0.5
    """
    first = blended_ratio(beta, gain).filter(within(None) & (hits == 1)).max()
    return where_relevant(first.fill_null(0.0))


@labelled("p_measure")
def p_measure(*, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    P-measure: the blended ratio at the first item of the list's highest grade; 0 without a hit.

    Parameters
    ----------
    beta
        Weight of the gains.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``p_measure``. Null for a user without a relevant item.

    Raises
    ------
    ValueError
        If β is no number from 0, or ``gain`` unknown.

    Notes
    -----
    Reads what ``o_measure`` reads, and ``best_rank``. Sakai, *AIRS* 2006.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 2]})
    >>> judged.rank.evaluate(rf.p_measure()).item(0, "p_measure")
    1.0
    """
    preferred = blended_ratio(beta, gain).filter(within(None) & (rank == pl.col("best_rank"))).max()
    return where_relevant(preferred.fill_null(0.0))


@labelled("p_plus")
def p_plus(*, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    P⁺-measure: the mean blended ratio over the hits down to the first item of the highest grade.

    Parameters
    ----------
    beta
        Weight of the gains.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``p_plus``; 0 without a hit. Null for a user without a relevant
        item.

    Raises
    ------
    ValueError
        If β is no number from 0, or ``gain`` unknown.

    Notes
    -----
    Reads what ``p_measure`` reads. Sakai, *AIRS* 2006.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 2]})
    >>> round(judged.rank.evaluate(rf.p_plus()).item(0, "p_plus"), 4)
    0.8333
    """
    down = blended_ratio(beta, gain).filter(within(None) & (rank <= pl.col("best_rank")))
    return where_relevant(down.mean().fill_null(0.0))


@labelled("judged")
def judged_at(k: int) -> pl.Expr:
    """
    Judged: the share of the first min(k, n) items that have a judgment, of any grade.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``judged@k``; 0 for an empty list. Null for a user without a row in
        the truth.

    Raises
    ------
    ValueError
        If k is no whole number from 1.

    Notes
    -----
    Reads ``judged``, ``relevance``, ``rank`` and ``retrieved``. A negative grade counts as judged
    here, as in ir_measures; not so in ``unjudged_at``, as in trec_eval.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, None]}
    ... )
    >>> judged.rank.evaluate(rf.judged_at(10)).item(0, "judged@10")
    0.5
    """
    return share(count_within(judged.is_not_null(), k), listed(k))


@labelled("auc")
def auc(k: int | None = None, *, only_hits: Literal["null", "one"] = "null") -> pl.Expr:
    """
    Area under the ROC curve within the list: share of (hit, miss) pairs in the right order.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    only_hits
        A list of nothing but hits has no pair: ``"null"``, or ``"one"`` as in RePlay.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``auc@k``. Null where the first k have no hit, or nothing but hits.

    Raises
    ------
    ValueError
        If k is no whole number from 1, or ``only_hits`` is unknown.

    Notes
    -----
    Reads ``relevant``, ``rank``, ``hits`` and ``retrieved``; what was not retrieved does not count.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.auc()).item(0, "auc")
    0.5
    """
    pairs = certain(k) * (listed(k) - certain(k))
    in_order = pl.when(pairs > 0).then(1 - misplaced(k) / pairs)
    return in_order if only_hits == "null" else in_order.when(certain(k) > 0).then(1.0)


def _err(position: pl.Expr, survival: str, k: int | None, max_grade: float | None) -> pl.Expr:
    stop = stop_chance("top" if max_grade is None else as_text(max_grade))
    column = survival if max_grade is None else f"{survival}({as_text(max_grade)})"
    reached = stop * pl.col(column) / position
    inside = position.is_not_null() if k is None else position <= k
    total = pl.when(inside).then(reached).otherwise(0.0 * stop).sum()
    return pl.when((relevance > 0).any()).then(total)
