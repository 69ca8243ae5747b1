"""The most common measures."""

from collections.abc import Sequence
from math import inf, sqrt
from typing import Literal

import polars as pl

from rankframe._request.gain_functions import (
    Discounting,
    discount,
    discounting,
    divided,
    gain_of,
)
from rankframe._request.labels import (
    SUM,
    Divisor,
    Extremes,
    Mean,
    geometric_mean_of,
    labelled,
    labelled_mean,
)
from rankframe._request.parameters import Discount, Gain
from rankframe.metrics._building_blocks import (
    R,
    all_within,
    any_within,
    attainable,
    chance_within,
    discount_down_to,
    discount_within,
    divisor_hits,
    first_reciprocal,
    floored_geometric_mean,
    gain_sum,
    hits_within,
    ideal_gain_sum,
    list_length,
    n,
    n_of_judged,
    precisions,
    relevant,
    returned,
    share,
    total,
    where_graded,
    where_relevant,
)

__all__ = [
    "abstention_recall",
    "all_at",
    "attainable_precision_at",
    "attainable_recall_at",
    "average_precision",
    "cg_at",
    "dcg_at",
    "e_at",
    "f_at",
    "hit_at",
    "missed",
    "ndcg_at",
    "num_missed",
    "precision_at",
    "r_precision",
    "recall_at",
    "reciprocal_rank",
]


_DEEPEST_PERFECT = 1_000_000


def _trec_beta(squared: str) -> str:
    """Read trec_eval's ``set_F.b``, where b = β²."""
    if float(squared) < 0:
        msg = f"set_F.{squared}: b, the square of β, must be a number ≥ 0"
        raise ValueError(msg)
    return f"f(beta={sqrt(float(squared))!r})"


def _trec_gains(pairs: str) -> str:
    """Read trec_eval's ``ndcg.0=1,1=4``; here it must name every grade > 0 in the data."""
    return f"ndcg(gain={pairs.replace('=', ':').replace(',', ';')})"


def _of_shares(k: int | None, divide_by: str) -> Extremes:  # noqa: ARG001
    return "above or below k" if divide_by in ("relevant", "attainable") else "none or all"


def _of_average_precision(k: int | None, divide_by: str) -> Extremes | None:  # noqa: ARG001
    return "none or all" if divide_by == "k" else None


def _of_ndcg(k: int | None, ideal: str, **_: object) -> Extremes | None:
    return "none or all" if ideal == "perfect" and k is not None else None


def _of_precision(k: int | None, divide_by: str) -> Divisor:
    if divide_by == "attainable":
        return Divisor(attainable(k), 0)
    by_length = k is None or divide_by == "returned"
    return Divisor(list_length(k), None) if by_length else Divisor(pl.lit(k), k)


def _of_recall(k: int | None, divide_by: str) -> Divisor:
    return Divisor(R if divide_by == "relevant" else attainable(k), 0)


def _of_f(k: int | None, beta: float) -> Divisor:
    return Divisor(beta * beta * R + (n if k is None else k), k)


def _of_r_precision(multiple: float) -> Divisor:
    return Divisor(_last(multiple).max(), 0)


@labelled(
    "precision",
    extremes=_of_shares,
    divisor=_of_precision,
    aliases={
        "p": "precision",
        "P_{}": "precision@{}",
        "set_P": "precision",
        "SetP": "precision",
        "relative_P_{}": "precision(divide_by=attainable)@{}",
        "set_relative_P": "precision(divide_by=attainable)",
        "SetRelP": "precision(divide_by=attainable)",
    },
    in_words="How much of what we show is wanted?",
)
def precision_at(
    k: int | None = None, *, divide_by: Literal["k", "returned", "attainable"] = "k"
) -> pl.Expr:
    """
    Precision: hits@k / k, the share of the first k items that are relevant.

    Parameters
    ----------
    k
        Cut-off; None means the whole list, and divides by its length.
    divide_by
        ``"k"`` (missing items of a short list count as misses, as in trec_eval), ``"returned"`` =
        the number of items at rank ≤ k, or ``"attainable"`` = min(k, R), so that 1 can be reached.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``precision@k``. Null for a user without a relevant item; 0
        for an empty list if the divisor is its length.

    Notes
    -----
    trec_eval: ``P_k``, ``set_P``, ``relative_P_k``, ``set_relative_P``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.precision_at(2)).item(0, "precision@2")
    0.5
    """
    if k is not None and divide_by == "k":
        return where_relevant(divided(hits_within(k), k))
    return where_relevant(share(hits_within(k), _of_precision(k, divide_by).of_user))


@labelled(
    "recall",
    aliases={
        "r": "recall",
        "recall_{}": "recall@{}",
        "set_recall": "recall",
        "SetR": "recall",
        "R_cap": "recall(divide_by=attainable)",
    },
    extremes=_of_shares,
    divisor=_of_recall,
    in_words="How much of what users want do we show?",
)
def recall_at(
    k: int | None = None, *, divide_by: Literal["relevant", "attainable"] = "relevant"
) -> pl.Expr:
    """
    Recall: hits@k / R, the share of the relevant items that are among the first k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    divide_by
        ``"relevant"`` = R, or ``"attainable"`` = min(k, R), so that 1 can be reached
        (without k: min(length of the list, R)).

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``recall@k``. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``recall_k``, ``set_recall``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.recall_at(1)).item(0, "recall@1")
    0.5
    """
    return where_relevant(share(hits_within(k), _of_recall(k, divide_by).of_user))


@labelled(
    "f",
    plain="f1",
    extremes="above or below k",
    divisor=_of_f,
    aliases={
        "f{}": "f(beta={})",
        "f{}@{}": "f(beta={})@{}",
        "f1_score": "f1",
        "fmeasure": "f1",
        "f_measure": "f1",
        "set_F": "f1",
        "set_F.{}": _trec_beta,
        "SetF": "f1",
        "SetF(beta={})": _trec_beta,
    },
    in_words="One number for both: showing only what is wanted, and all of it.",
)
def f_at(k: int | None = None, beta: float = 1) -> pl.Expr:
    """
    F-measure: (1 + β²)·hits@k / (β²·R + k), the weighted harmonic mean of precision and recall.

    Parameters
    ----------
    k
        Cut-off; None means the whole list, with its length as k.
    beta
        Recall counts β times as much as precision; ≥ 0. (trec_eval's ``set_F.b`` and ir_measures'
        ``SetF(beta=b)`` take b = β².)

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``f1@k`` or ``f(beta=2)@k``. Null for a user without a relevant
        item.

    Notes
    -----
    C. J. van Rijsbergen, *Information Retrieval*, 1979. trec_eval: ``set_F``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.f_at(2)).item(0, "f1@2")
    0.5
    """
    return where_relevant(_f(k, beta))


@labelled(
    "e",
    plain="e(beta=1)",
    higher_is_better=False,
    divisor=_of_f,
    in_words="How far is the list from showing exactly what is wanted?",
)
def e_at(k: int | None = None, beta: float = 1) -> pl.Expr:
    """
    E-measure: 1 − F, van Rijsbergen's effectiveness loss (0 is best).

    Parameters
    ----------
    k
        Cut-off; None means the whole list, with its length as k.
    beta
        Recall counts β times as much as precision; ≥ 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``e(beta=1)@k``. Null for a user without a relevant item.

    Notes
    -----
    C. J. van Rijsbergen, *Information Retrieval*, 1979.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.e_at(2)).item(0, "e(beta=1)@2")
    0.5
    """
    return where_relevant(1 - _f(k, beta))


@labelled(
    "hit",
    aliases={
        **dict.fromkeys(("hit_rate", "hitrate", "hit_ratio", "hr", "success"), "hit"),
        **dict.fromkeys(("accuracy", "top_k_accuracy", "recall_any"), "hit"),
        "success_{}": "hit@{}",
    },
    extremes="none or all",
    in_words="How often does a user find at least one wanted item?",
)
def hit_at(k: int | None = None) -> pl.Expr:
    """
    Hit: 1 if a relevant item is among the first k, else 0; its mean is the hit rate.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64, 0 or 1, named ``hit@k``. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``success_k``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.hit_at(1), rf.metrics.hit_at(2)).row(0)
    (1, 0.0, 1.0)
    """
    return where_relevant(any_within(k))


@labelled(
    "all",
    aliases={"recall_all": "all", "full_recall": "all"},
    extremes="above or below k",
    in_words="How often does a user find everything wanted?",
)
def all_at(k: int | None = None) -> pl.Expr:
    """
    All: 1 if every relevant item is among the first k, else 0, such as all evidence of an answer.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64, 0 or 1, named ``all@k``. Null for a user without a relevant item.

    Notes
    -----
    It is 1 where ``recall@k`` is 1. If one item of each group of evidence is enough, give the truth
    a column ``subtopic``: then ``subtopic_recall@k`` is 1. ``all@k`` is ``recall_all`` of
    LongMemEval (D. Wu et al., *ICLR* 2025).

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 3, 2], "relevance": [1, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.all_at(2), rf.metrics.all_at(3)).row(0)
    (2, 0.5, 1.0)
    """
    return where_relevant(all_within(k))


@labelled(
    "ap",
    aliases={
        **dict.fromkeys(("map", "mean_average_precision"), "ap"),
        **dict.fromkeys(("mapk", "apk"), "ap(divide_by=attainable)"),
        "map_cut_{}": "ap@{}",
    },
    extremes=_of_average_precision,
    in_words="Are wanted items above unwanted ones, all the way down to the last wanted one?",
)
def average_precision(
    k: int | None = None,
    *,
    divide_by: Literal["relevant", "attainable", "returned", "hits", "k"] = "relevant",
) -> pl.Expr:
    """
    Average precision: Σ hits / rank over the relevant items at rank ≤ k, divided by R.

    Parameters
    ----------
    k
        Cut-off of the sum; None means the whole list.
    divide_by
        ``"relevant"`` = R (the definition), ``"attainable"`` = min(k, R) (without k: min(length
        of the list, R)), ``"returned"`` = min(number of items at rank ≤ k, R), ``"hits"`` = the
        relevant items found, or ``"k"`` (without k: the length of the list).

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``ap@k``; its mean over users is MAP. Null for a user without a
        relevant item; 0 if the divisor is 0 because nothing was returned or found.

    Notes
    -----
    trec_eval: ``map``, ``map_cut_k``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.average_precision()).item(0, "ap")
    0.25
    """
    divisor = {
        "relevant": lambda: R,
        "attainable": lambda: attainable(k),
        "returned": lambda: pl.min_horizontal(R, list_length(k)),
        "hits": lambda: divisor_hits(k),
        "k": lambda: n,
    }
    if divide_by == "k" and k is not None:
        return where_relevant(divided(precisions(k), k))
    return where_relevant(share(precisions(k), divisor[divide_by]()))


@labelled(
    "rr",
    aliases={"mrr": "rr", "mean_reciprocal_rank": "rr", "recip_rank": "rr"},
    extremes="none or all",
    in_words="How soon does a user meet the first wanted item?",
)
def reciprocal_rank(k: int | None = None) -> pl.Expr:
    """
    Reciprocal rank: 1 / rank of the first relevant item, 0 if none is among the first k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``rr@k``; its mean over users is MRR. Null for a user without a
        relevant item.

    Notes
    -----
    trec_eval: ``recip_rank``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.reciprocal_rank()).item(0, "rr")
    0.5
    """
    return where_relevant(first_reciprocal(k))


@labelled(
    "cg",
    extremes="none or all",
    value_range=(0, inf),
    in_words="How much value do the first places hold, in any order?",
)
def cg_at(k: int | None = None, *, gain: Gain = "linear") -> pl.Expr:
    """
    Cumulated gain: Σ gain over the items at rank ≤ k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping from every grade > 0 in the data to its gain ≥ 0, which must not fall as
        the grade rises.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``cg@k``. Null for a user without an item of grade > 0.

    Notes
    -----
    ``relevant_at`` affects the binary gain only. Järvelin and Kekäläinen, *ACM TOIS* 20(4),
    2002.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [3, 1, 2]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.cg_at()).item(0, "cg")
    4.0
    """
    return where_graded(gain_sum(gain, chance_within(k)))


@labelled(
    "dcg",
    extremes="none or all",
    value_range=(0, inf),
    in_words="How much value does the list hold, when higher places count more?",
)
def dcg_at(
    k: int | None = None,
    *,
    gain: Gain = "linear",
    base: float | None = None,
    discount: Discount = "log2",
) -> pl.Expr:
    """
    Discounted cumulated gain: Σ gain / log2(rank + 1) over the items at rank ≤ k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping from every grade > 0 in the data to its gain ≥ 0, which must not fall as
        the grade rises.
    base
        A base b > 1 discounts by 1 / log_b(rank) instead, with no discount above rank b, as in the
        paper.
    discount
        ``"log2"`` = 1 / log2(rank + 1), ``"rank"`` = 1 / rank, or the weights of the ranks from 1
        to k: a list of numbers ≥ 0 that do not rise. Not together with ``base``.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``dcg@k``. Null for a user without an item of grade > 0.

    Notes
    -----
    ``relevant_at`` affects the binary gain only. Järvelin and Kekäläinen, *ACM TOIS* 20(4),
    2002. Without ``base`` the discount is trec_eval's; with ``base=2`` it is LensKit's.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 3, None], "relevance": [3, 1, 2]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.dcg_at(3)).item(0, "dcg@3")
    3.5
    """
    by = _discounting(k, base, discount)
    return where_graded(gain_sum(gain, discount_within(k, by)))


@labelled(
    "ndcg",
    aliases={"ndcg_cut_{}": "ndcg@{}", "ndcg.{*}": _trec_gains},
    extremes=_of_ndcg,
    in_words="How close is the order of the list to the best possible order?",
)
def ndcg_at(
    k: int | None = None,
    *,
    gain: Gain = "linear",
    base: float | None = None,
    ideal: Literal["truth", "returned", "perfect", "same_length"] = "truth",
    discount: Discount = "log2",
) -> pl.Expr:
    """
    Normalized DCG: DCG@k / DCG@k of the ideal list of all the user's items of gain > 0.

    Parameters
    ----------
    k
        Cut-off of both lists; None means the whole lists.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping from every grade > 0 in the data to its gain ≥ 0, which must not fall as
        the grade rises.
    base
        A base b > 1 discounts by 1 / log_b(rank) instead, with no discount above rank b, as in the
        paper.
    ideal
        The items of the ideal list, highest gain first. ``"truth"``: all items of the truth,
        retrieved or not. ``"returned"``: only those of the list, at any rank, so that missing
        items cost nothing. ``"perfect"``: k items of the truth's highest grade for every user
        (without k: as many as the user has). ``"same_length"``: of all items of the truth, only as
        many as the list has down to k.
    discount
        ``"log2"`` = 1 / log2(rank + 1), ``"rank"`` = 1 / rank, or the weights of the ranks from 1
        to k: a list of numbers ≥ 0 that do not rise. Not together with ``base``.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``ndcg@k``. Null for a user without an item of gain > 0; 0
        with ``ideal="returned"`` if no such item was returned, and with ``"same_length"`` if none
        was.

    Notes
    -----
    ``relevant_at`` affects the binary gain only. Järvelin and Kekäläinen, *ACM TOIS* 20(4), 2002.
    trec_eval: ``ndcg``, ``ndcg_cut_k``, and ``ndcg.1=3,2=9``, where the gain of a grade that is not
    named is the grade; here each grade must be named. Gains that fall,
    such as ``1=3,2=9,4=4.5``, are given to the truth for grades: the error has the line.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [3, None], "relevance": [1, 1]}
    ... )
    >>> result = judged.rank.evaluate(rf.metrics.ndcg_at(3))
    >>> round(result.item(0, "ndcg@3"), 4)
    0.3066
    """
    by = _discounting(k, base, discount)
    best = ideal_gain_sum(gain, k, by)
    divisor = {
        "truth": lambda: best,
        "returned": lambda: gain_sum(gain, discount_down_to(k, pl.col("returned_ideal_rank"), by)),
        "perfect": lambda: _perfect_ideal(k, gain, by),
        "same_length": lambda: ideal_gain_sum(gain, returned(k), by),
    }[ideal]()
    ratio = gain_sum(gain, discount_within(k, by)) / divisor
    if ideal in ("returned", "same_length"):
        ratio = pl.when(divisor != 0).then(ratio).otherwise(0.0)
    # not `> 0`: NaN, which marks a grade without a gain, must pass
    return pl.when(best != 0).then(ratio.clip(upper_bound=1))  # rounding may exceed 1


@labelled(
    "r_precision",
    aliases={
        **dict.fromkeys(("rprec", "rprecision", "r-precision"), "r_precision"),
        "Rprec_mult_{}": "r_precision(multiple={})",
    },
    divisor=_of_r_precision,
    in_words="If we show as many items as a user wants, how many of them are right?",
)
def r_precision(*, multiple: float = 1) -> pl.Expr:
    """
    R-precision: hits among the first K items / K, where K = R, the number of relevant items.

    Parameters
    ----------
    multiple
        K is ⌊multiple·R + 0.9⌋, as in trec_eval; ≥ 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``r_precision``. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``Rprec``, ``Rprec_mult_x``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 3, 2], "relevance": [1, 1, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.r_precision()).item(0, "r_precision")
    0.5
    """
    divisor = _of_r_precision(multiple).of_user
    return where_relevant(share(hits_within(_last(multiple)), divisor))


def _last(multiple: float) -> pl.Expr:
    return total if multiple == 1 else (multiple * total + 0.9).floor()


@labelled(
    "attainable_precision",
    extremes="none or all",
    higher_is_better=None,
    in_words="What is the highest precision that this user allows?",
)
def attainable_precision_at(k: int) -> pl.Expr:
    """
    Attainable precision: min(1, R/k), the best precision@k that this user's R allows.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``attainable_precision@k``. Null for a user without a relevant
        item.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 3, 2], "relevance": [1, 1, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.attainable_precision_at(5)).item(
    ...     0, "attainable_precision@5"
    ... )
    0.4
    """
    return where_relevant(divided(pl.min_horizontal(R, k), k))


@labelled(
    "attainable_recall",
    higher_is_better=None,
    in_words="What is the highest recall that this user allows?",
)
def attainable_recall_at(k: int) -> pl.Expr:
    """
    Attainable recall: min(1, k/R), the best recall@k that this user's R allows.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``attainable_recall@k``. Null for a user without a relevant item.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 3, 2], "relevance": [1, 1, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.attainable_recall_at(1)).item(0, "attainable_recall@1")
    0.5
    """
    return where_relevant(pl.min_horizontal(R, k) / R)


@labelled(
    "missed",
    extremes="none or all",
    higher_is_better=False,
    in_words="How many users receive no list at all?",
)
def missed() -> pl.Expr:
    """
    Missed: 1 for a user without a list, else 0; its mean over users is their share.

    Returns
    -------
    Expr
        Float64, 0 or 1, named ``missed``. Null for a user without a row in the truth.

    Notes
    -----
    A user also counts as missed if ``exclude``, ``depth`` or ``unjudged`` leaves nothing of the
    list. Other metrics are 0 for these users, so a low mean may be due to missing lists rather than
    bad ones.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1], "item": [7], "rank": [1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [7, 7]})
    >>> run.rank.evaluate(rf.metrics.missed(), truth=truth).item(0, "missed")
    0.5
    """
    return (n_of_judged() == 0).cast(pl.Float64)


@labelled(
    "abstention_recall",
    in_words="How many questions without an answer do we leave without a list?",
)
def abstention_recall() -> pl.Expr:
    """
    Abstention recall: 1 without a list, else 0, for users without a relevant item.

    Its mean over users is the share of the unanswerable questions that were left unanswered.

    Returns
    -------
    Expr
        Float64, 0 or 1, named ``abstention_recall``. Null for a user with a relevant item, or
        without a row in the truth. So the mean is null, with a warning, with the users that count
        by default, those with a relevant item: pass ``users="judged"``.

    Notes
    -----
    The truth has rows of an unanswerable question, all of grade 0: one is enough, of any item.
    ``recall@k`` is of the other users. Kirichenko, Ibrahim, Chaudhuri and Bell, *arXiv*
    2506.09038, 2025.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1], "item": [7], "rank": [1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [7, 8], "relevance": [0, 0]})
    >>> found = run.rank.evaluate(rf.metrics.abstention_recall(), truth=truth, users="judged")
    >>> found.item(0, "abstention_recall")
    0.5
    """
    return pl.when(~relevant.any()).then(missed())


@labelled(
    "num_missed",
    over_users=SUM,
    extremes="none or all",
    value_range=(0, inf),
    higher_is_better=False,
    in_words="How many users receive no list at all?",
)
def num_missed() -> pl.Expr:
    """
    Number of users without a list: the sum of ``missed`` over users.

    Returns
    -------
    Expr
        Int64, named ``num_missed``: 1 for a user without a list, else 0. Null for a user without a
        row in the truth.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1], "item": [7], "rank": [1]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> run.rank.evaluate(rf.metrics.num_missed(), truth=truth).item(0, "num_missed")
    2
    """
    return (n_of_judged() == 0).cast(pl.Int64)


@labelled_mean(
    "gmap", in_words="Average precision, with the most weight on the users who are served worst."
)
def gmap(k: int | None = None, *, epsilon: float = 1e-5) -> Mean:
    """
    Geometric MAP: exp(mean(ln(AP + ε))) − ε.

    Parameters
    ----------
    k
        Cut-off of AP; None means the whole list.
    epsilon
        ε; ≥ 0.

    Returns
    -------
    Mean
        One number over users, named ``gmap@k``. Null where no user has an AP.

    Notes
    -----
    It follows the ``defaults`` of ``ap``. ``summarize`` and ``compare`` compute intervals and tests
    on ln(AP + ε), and return them on the scale of AP. S. Robertson, *CIKM* 2006.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2], "item": [7, 8], "rank": [1, 4]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [7, 8]})
    >>> round(run.rank.evaluate("gmap(epsilon=0)@5", truth=truth).item(0, "gmap(epsilon=0)@5"), 4)
    0.5
    """
    label = "ap" if k is None else f"ap@{k}"
    return geometric_mean_of(average_precision(k), label, epsilon)


@labelled_mean(
    "gm_map", in_words="Average precision, with the most weight on the users who are served worst."
)
def gm_map() -> Mean:
    """trec_eval's geometric MAP: exp(mean(ln(max(AP, 1e-5))))."""
    return Mean(average_precision(), floored_geometric_mean)


def _perfect_ideal(k: int | None, gain: Gain, by: Discounting) -> pl.Expr:
    """DCG of k items of the highest grade."""
    top = pl.lit(1.0) if gain == "binary" else gain_of(gain, pl.col("top_grade")).max()
    if k is None:
        weights = pl.when(gain_of(gain) > 0).then(discount(pl.col("ideal_rank"), by)).sum()
    elif k > _DEEPEST_PERFECT:
        msg = f"ndcg_at: with ideal='perfect', k must not be above {_DEEPEST_PERFECT}, not {k}"
        raise ValueError(msg)
    else:
        positions = pl.int_range(1, k + 1)
        weights = pl.lit(pl.select(discount(positions, by).sum()).item())
    return top * weights


def _f(k: int | None, beta: float) -> pl.Expr:
    measure = share((1 + beta * beta) * hits_within(k), _of_f(k, beta).of_user)
    return measure.clip(upper_bound=1)  # 1 + β² may round up


def _discounting(k: int | None, base: float | None, discount: str | Sequence[float]) -> Discounting:
    """Make one value of base= and discount=, checked against each other and the cut-off."""
    if base is not None and base <= 1:
        msg = f"base must be a number > 1, not {base}"
        raise ValueError(msg)
    if base is not None and discount != "log2":
        msg = f"base={base} and discount={discount!r} are two discounts: leave out one"
        raise ValueError(msg)
    if not isinstance(discount, str) and (k is None or len(discount) < k):
        cut = "there is no cut-off k" if k is None else f"k is {k}"
        weights = f"{len(discount)} weight{'s' * (len(discount) != 1)}"
        msg = f"discount has {weights}, and {cut}: give at least k weights, of ranks 1 to k"
        raise ValueError(msg)
    return discounting(base, discount)
