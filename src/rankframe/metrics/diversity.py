"""Measures of diversity: an item may be relevant to several subtopics of what a user wants.

A truth with a column ``subtopic`` has one row per subtopic of an item. These measures reduce the
rows of (item, subtopic). All others reduce items, each with its highest grade. Without such a
column, all items belong to one subtopic.
"""

from collections.abc import Callable
from math import log2

import polars as pl

from rankframe._request import keywords, registry
from rankframe._request.gain_functions import discount
from rankframe._request.labels import labelled
from rankframe.metrics._building_blocks import (
    inside,
    rank,
    relevant,
    where_relevant,
    within,
)

__all__ = [
    "alpha_dcg_at",
    "alpha_ndcg_at",
    "average_precision_ia",
    "err_ia_at",
    "nerr_ia_at",
    "nnrbp",
    "nrbp",
    "precision_ia_at",
    "subtopic_recall_at",
]

_seen = pl.col("subtopic_hits")
#: S, the number of subtopics with a relevant item
_S = pl.col("subtopics").max()
_TERMS = 1_000_000


@labelled(
    "alpha_dcg",
    aliases={"alpha-dcg": "alpha_dcg"},
    in_words="Does the list answer several meanings of a query early, without repeating itself?",
)
def alpha_dcg_at(k: int | None = None, *, alpha: float = 0.5) -> pl.Expr:
    """
    Alpha-DCG: Σ novelty / log2(rank + 1) over the relevant (item, subtopic) at rank ≤ k / a bound.

    The novelty is (1 − α)^h, h = items of the subtopic above. The bound is the same sum for k items
    that are relevant to all S subtopics.

    Parameters
    ----------
    k
        Cut-off; None means the whole list, and the bound is then an infinite sum.
    alpha
        α, the chance that one item fully satisfies the need for its subtopic, from 0 to 1.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``alpha_dcg@k``. Null for a user without a relevant item.

    Notes
    -----
    Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon, *SIGIR* 2008; the bound
    is ndeval's, except that ndeval omits it at k = 1.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> round(judged.rank.evaluate(rf.metrics.alpha_dcg_at(2)).item(0, "alpha_dcg@2"), 4)
    0.7398
    """
    bound = _bound(k, alpha, lambda place: 1 / log2(place + 1))
    return _share_of_bound(_novelty(alpha, discount(rank), k) / (_S * bound))


@labelled(
    "alpha_ndcg",
    aliases={"alpha-ndcg": "alpha_ndcg"},
    in_words="How close is the list to the best one that covers all meanings early?",
)
def alpha_ndcg_at(k: int | None = None, *, alpha: float = 0.5) -> pl.Expr:
    """
    Alpha-nDCG: Σ novelty / log2(rank + 1) over the relevant (item, subtopic) at rank ≤ k / ideal.

    The novelty is (1 − α)^h, h = items of the subtopic above. The ideal list is built greedily,
    since finding the best list is NP-hard.

    Parameters
    ----------
    k
        Cut-off of both lists; None means the whole lists.
    alpha
        α, the chance that one item fully satisfies the need for its subtopic, from 0 to 1.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``alpha_ndcg@k``, or a little above 1 for a list that is better
        than the greedy one. Null for a user without a relevant item.

    Notes
    -----
    At each rank, the ideal list takes the item that adds the most, and the one with the higher id
    among equals, as in ndeval. Clarke, Kolla, Cormack, Vechtomova, Ashkan, Büttcher and MacKinnon,
    *SIGIR* 2008.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> round(judged.rank.evaluate(rf.metrics.alpha_ndcg_at(2)).item(0, "alpha_ndcg@2"), 4)
    0.8406
    """
    return _of_ideal(alpha, discount, k)


@labelled(
    "err_ia",
    aliases={"err-ia": "err_ia"},
    in_words="How soon is a reader satisfied, whichever meaning of the query they have in mind?",
)
def err_ia_at(k: int | None = None, *, alpha: float = 0.5) -> pl.Expr:
    """
    Intent-aware ERR: Σ novelty / rank over the relevant (item, subtopic) at rank ≤ k / a bound.

    The novelty is (1 − α)^h, h = items of the subtopic above. The bound is the same sum for k items
    that are relevant to all S subtopics.

    Parameters
    ----------
    k
        Cut-off; None means the whole list, and the bound is then an infinite sum.
    alpha
        α, the chance that a reader interested in a subtopic stops at an item of it, from 0 to 1.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``err_ia@k``. Null for a user without a relevant item.

    Notes
    -----
    Chapelle, Metzler, Zhang and Grinspan, *CIKM* 2009, for two grades; the bound is
    ndeval's, except that ndeval omits it at k = 1.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> judged.rank.evaluate(rf.metrics.err_ia_at(2)).item(0, "err_ia@2")
    0.7
    """
    bound = _bound(k, alpha, lambda place: 1 / place)
    return _share_of_bound(_novelty(alpha, 1 / rank, k) / (_S * bound))


@labelled(
    "nerr_ia",
    aliases={"nerr-ia": "nerr_ia"},
    in_words="How soon is a reader satisfied, whatever they mean, compared with the best list?",
)
def nerr_ia_at(k: int | None = None, *, alpha: float = 0.5) -> pl.Expr:
    """
    Normalized intent-aware ERR: Σ novelty / rank of (item, subtopic) at rank ≤ k / ideal.

    The novelty and the greedy ideal list are those of alpha-nDCG.

    Parameters
    ----------
    k
        Cut-off of both lists; None means the whole lists.
    alpha
        α, the chance that a reader interested in a subtopic stops at an item of it, from 0 to 1.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``nerr_ia@k``, or a little above 1 for a list that is better than
        the greedy one. Null for a user without a relevant item.

    Notes
    -----
    Chapelle, Metzler, Zhang and Grinspan, *CIKM* 2009, for two grades.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> round(judged.rank.evaluate(rf.metrics.nerr_ia_at(2)).item(0, "nerr_ia@2"), 4)
    0.7778
    """
    return _of_ideal(alpha, lambda position: 1 / position, k)


@labelled(
    "nrbp", in_words="Does a reader who may stop at any place keep meeting new relevant aspects?"
)
def nrbp(alpha: float = 0.5, p: float = 0.5) -> pl.Expr:
    """
    Novelty- and rank-biased precision: (1 − (1 − α)·p) / S · Σ novelty · p^(rank − 1).

    The sum is over the relevant (item, subtopic); the novelty is (1 − α)^h, h = items of the
    subtopic above.

    Parameters
    ----------
    alpha
        α, the chance that one item fully satisfies the need for its subtopic, from 0 to 1.
    p
        Persistence: the chance that a reader goes on to the next item, 0 < p < 1; β in the paper.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``nrbp``. Null for a user without a relevant item.

    Notes
    -----
    Clarke, Kolla and Vechtomova, *ICTIR* 2009.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> judged.rank.evaluate(rf.metrics.nrbp()).item(0, "nrbp")
    0.65625
    """
    keywords.check_fraction("p", p)
    weight = pl.lit(p).pow(rank - 1)
    return _share_of_bound((1 - (1 - alpha) * p) * _novelty(alpha, weight, None) / _S)


@labelled(
    "nnrbp",
    in_words="Does a reader keep meeting new aspects, compared with the best possible list?",
)
def nnrbp(alpha: float = 0.5, p: float = 0.5) -> pl.Expr:
    """
    Normalized NRBP: NRBP / NRBP of the greedy ideal list.

    Parameters
    ----------
    alpha
        α, the chance that one item fully satisfies the need for its subtopic, from 0 to 1.
    p
        Persistence: the chance that a reader goes on to the next item, 0 < p < 1; β in the paper.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``nnrbp``, or a little above 1 for a list that is better than the
        greedy one. Null for a user without a relevant item.

    Notes
    -----
    Clarke, Kolla and Vechtomova, *ICTIR* 2009.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> round(judged.rank.evaluate(rf.metrics.nnrbp()).item(0, "nnrbp"), 4)
    0.7778
    """
    keywords.check_fraction("p", p)
    return _of_ideal(alpha, lambda position: pl.lit(p).pow(position - 1), None)


@labelled(
    "precision_ia",
    aliases={"p_ia": "precision_ia", "p-ia": "precision_ia"},
    in_words="How much of what we show is wanted, averaged over the meanings of a query?",
)
def precision_ia_at(k: int) -> pl.Expr:
    """
    Intent-aware precision: the mean over the S subtopics of precision@k.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``precision_ia@k``. Null for a user without a relevant item.

    Notes
    -----
    Agrawal, Gollapudi, Halverson and Ieong, *WSDM* 2009, with equally weighted subtopics, as
    in ndeval.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> judged.rank.evaluate(rf.metrics.precision_ia_at(2)).item(0, "precision_ia@2")
    0.75
    """
    return where_relevant(within(k).sum() / (float(k) * _S))


@labelled(
    "ap_ia",
    aliases={"map_ia": "ap_ia", "map-ia": "ap_ia"},
    in_words="Average precision, averaged over the meanings of a query.",
)
def average_precision_ia(k: int | None = None) -> pl.Expr:
    """
    Intent-aware average precision: the mean over the S subtopics of AP@k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``ap_ia@k``. Null for a user without a relevant item.

    Notes
    -----
    Agrawal, Gollapudi, Halverson and Ieong, *WSDM* 2009, with equally weighted subtopics, as
    in ndeval.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> judged.rank.evaluate(rf.metrics.average_precision_ia()).item(0, "ap_ia")
    0.75
    """
    precisions = pl.when(within(k)).then(_seen / rank / pl.col("subtopic_total")).sum()
    return where_relevant((precisions / _S).clip(upper_bound=1))  # rounding may exceed 1


@labelled(
    "subtopic_recall",
    aliases={"strec": "subtopic_recall", "strecall": "subtopic_recall"},
    in_words="How many of the meanings of a query does the list answer?",
)
def subtopic_recall_at(k: int | None = None) -> pl.Expr:
    """
    Subtopic recall: the share of the S subtopics that have a hit at rank ≤ k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``subtopic_recall@k``. Null for a user without a relevant item.

    Notes
    -----
    Zhai, Cohen and Lafferty, *SIGIR* 2003; ndeval: ``strec``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": 1, "item": [7, 8, 8], "rank": [1, 2, 2], "subtopic": ["a", "a", "b"]}
    ... ).with_columns(relevance=1)
    >>> judged.rank.evaluate(rf.metrics.subtopic_recall_at(1)).item(0, "subtopic_recall@1")
    0.5
    """
    return where_relevant((within(k) & (_seen == 1)).sum() / _S)


def _novelty(
    alpha: float, weight: pl.Expr, k: int | None, position: pl.Expr = rank, seen: pl.Expr = _seen
) -> pl.Expr:
    """Σ (1 − α)^(items of the subtopic above) · weight over the relevant rows at position ≤ k."""
    if alpha > 1:
        msg = f"alpha must be a number from 0 to 1, not {alpha}"
        raise ValueError(msg)
    counts = relevant & inside(position, k)
    return pl.when(counts).then(pl.lit(1 - alpha).pow(seen - 1) * weight).sum()


def _share_of_bound(share: pl.Expr) -> pl.Expr:
    return where_relevant(share.clip(upper_bound=1))  # rounding may exceed 1


def _of_ideal(alpha: float, weight: Callable[[pl.Expr], pl.Expr], k: int | None) -> pl.Expr:
    """The sum over the list / the sum over the greedy ideal list."""
    place, seen = (
        pl.col(registry.name(column, alpha=alpha, k=k))
        for column in ("diverse_rank", "diverse_hits")
    )
    ratio = _novelty(alpha, weight(rank), k) / _novelty(alpha, weight(place), k, place, seen)
    # summation order may change the last bits; a list may really be better than the greedy one
    return where_relevant(pl.when((ratio - 1).abs() < 1e-12).then(1.0).otherwise(ratio))


def _bound(k: int | None, alpha: float, weight: Callable[[int], float]) -> float:
    """Σ (1 − α)^(place − 1) · weight over the places up to k, until terms no longer matter."""
    bound, novelty, place = 0.0, 1.0, 1
    while novelty > 1e-17 and (k is None or place <= k):
        if place > _TERMS:
            msg = f"alpha={alpha} needs a cut-off k of at most {_TERMS:,}: its bound is not finite"
            raise ValueError(msg)
        bound += novelty * weight(place)
        novelty *= 1 - alpha
        place += 1
    return bound
