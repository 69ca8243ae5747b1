"""Measures of the order of grades, and measures that treat hits and misses as decisions."""

from math import inf

import polars as pl

from rankframe._request.labels import labelled
from rankframe.metrics._building_blocks import (
    R,
    chance_within,
    count_within,
    divisor_hits,
    gain_sum,
    hit_ranks,
    hits_within,
    judged,
    list_length,
    n,
    places_left,
    precisions,
    relevant,
    where_graded,
    where_relevant,
)

__all__ = [
    "concordance",
    "fallout_at",
    "kendall_tau_b",
    "label_ranking_average_precision",
    "mcc_at",
    "mean_hit_rank",
    "mean_percentile_rank",
]

#: pairs of judged items of the list that differ in grade, and those with the higher grade above
_pairs = pl.col("lower_graded").sum()
_pairs_in_order = pl.col("lower_graded_below").sum()


@labelled("concordance", in_words="Of two judged items, how often is the better one above?")
def concordance() -> pl.Expr:
    """
    Concordance: the share of pairs of different grades in which the higher grade is ranked above.

    The pairs are those of the judged items of the list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``concordance``. Null where no two judged items of the list differ
        in grade.

    Notes
    -----
    The C index of Harrell, Califf, Pryor, Lee and Rosati, *JAMA* 247(18), 1982, and per user the
    fraction of concordant pairs of Koren and Sill, *IJCAI* 2013. Unjudged items and items that were
    not retrieved do not count. Under ties, a pair within a block counts one half.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [2, 0, 3]}
    ... )
    >>> round(judged.rank.evaluate(rf.metrics.concordance()).item(0, "concordance"), 4)
    0.3333
    """
    return pl.when(_pairs > 0).then(_pairs_in_order / _pairs)


@labelled(
    "kendall_tau_b",
    aliases={"tau_b": "kendall_tau_b"},
    value_range=(-1, 1),
    in_words="How well does the order of the list agree with the order of the grades?",
)
def kendall_tau_b() -> pl.Expr:
    """
    Kendall's τ_b of order and grades: (C − D) / √(n·(n − 1)/2 · (C + D)).

    Among the n judged items of the list, C pairs have the higher grade above, and D have it below.

    Returns
    -------
    Expr
        Float64 in [−1, 1], named ``kendall_tau_b``. Null where no two judged items of the list
        differ in grade.

    Notes
    -----
    Kendall, *Biometrika* 33(3), 1945; SciPy: ``kendalltau(-rank, grade)`` per user. Under ties it
    is the mean over the orders of each block, whereas SciPy treats equal scores as one place and
    divides by fewer pairs.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [2, 0, 3]}
    ... )
    >>> round(judged.rank.evaluate(rf.metrics.kendall_tau_b()).item(0, "kendall_tau_b"), 4)
    -0.3333
    """
    items = count_within(judged, None)
    every_pair = items * (items - 1) / 2
    surplus = 2 * _pairs_in_order - _pairs
    value = surplus / (every_pair * _pairs).sqrt()
    return pl.when(_pairs > 0).then(value.clip(-1, 1))  # rounding may exceed 1


@labelled("fallout", higher_is_better=False, in_words="How much of what is unwanted do we show?")
def fallout_at(k: int | None = None, *, collection: int | None = None) -> pl.Expr:
    """
    Fallout: nonrelevant items at rank ≤ k / all nonrelevant items.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    collection
        How many items could be recommended to a user. Unjudged ones are then not relevant. By
        default only judged items count.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``fallout@k``. Null for a user without a relevant item, or without
        a nonrelevant one.

    Raises
    ------
    RankingDataError
        If ``collection`` is smaller than the user's list and relevant items together.

    Notes
    -----
    Van Rijsbergen, *Information Retrieval*, 1979; torchmetrics: ``RetrievalFallOut``, for lists
    in which every item is judged.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.fallout_at(2)).item(0, "fallout@2")
    0.5
    >>> judged.rank.evaluate("fallout(collection=11)@2").item(0, "fallout(collection=11)@2")
    0.1
    """
    if collection is None:
        missed = judged & ~relevant
        misses = missed.sum().cast(pl.Int64)
        return where_relevant(pl.when(misses > 0).then(count_within(missed, k) / misses))
    misses = float(collection) - R
    value = pl.when(misses > 0).then((list_length(k) - hits_within(k)) / misses)
    return where_relevant(_if_held(collection, value))


@labelled(
    "mcc",
    value_range=(-1, 1),
    in_words="How well do the first places separate wanted from unwanted items?",
)
def mcc_at(k: int | None = None, *, collection: int) -> pl.Expr:
    """
    Matthews correlation coefficient: (h·D − m·R) / √(m·R·(D − m)·(D − R)), h = hits@k.

    The m items at rank ≤ k, of the D of the collection, are the predicted positives, so it is
    (TP·TN − FP·FN) / √((TP + FP)·(TP + FN)·(TN + FP)·(TN + FN)).

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    collection
        D, how many items could be recommended to a user.

    Returns
    -------
    Expr
        Float64 in [−1, 1], named ``mcc(collection=1000)@k``. Null for a user without a relevant
        item or without a nonrelevant one; 0 for an empty list, and for one of the whole collection.

    Raises
    ------
    RankingDataError
        If ``collection`` is smaller than the user's list and relevant items together.

    Notes
    -----
    Matthews, *Biochimica et Biophysica Acta* 405(2), 1975; scikit-learn: ``matthews_corrcoef``;
    RecTools: ``MCC``, for lists of at least k items.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    ... )
    >>> label = "mcc(collection=6)@2"
    >>> judged.rank.evaluate(rf.metrics.mcc_at(2, collection=6)).item(0, label)
    0.25
    """
    items, size = list_length(k).cast(pl.Float64), float(collection)
    product = (items * (size - items)) * (R * (size - R))
    value = (hits_within(k) * size - items * R) / product.sqrt()
    value = value.clip(-1, 1)  # rounding may exceed 1
    defined = pl.when(size > R).then(pl.when(product > 0).then(value).otherwise(0.0))
    return where_relevant(_if_held(collection, defined))


@labelled(
    "mean_hit_rank",
    value_range=(1, inf),
    higher_is_better=False,
    in_words="At which rank are wanted items on average?",
)
def mean_hit_rank(k: int | None = None) -> pl.Expr:
    """
    Mean rank of the hits: Σ rank of the hits among the first k / hits@k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 ≥ 1, named ``mean_hit_rank@k``. Null for a user without a hit, so its mean covers
        fewer users than that of ``hit@k``: read both.

    Notes
    -----
    If each user has one relevant item, and all are found, it is the mean rank of Bordes, Usunier,
    Garcia-Durán, Weston and Yakhnenko, *NIPS* 2013.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [2, 5, None], "relevance": [1, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.mean_hit_rank()).item(0, "mean_hit_rank")
    3.5
    """
    divisor = divisor_hits(k)
    return pl.when(divisor > 0).then(hit_ranks(k) / divisor)


@labelled(
    "mpr",
    higher_is_better=False,
    in_words="How far down the whole collection are wanted items on average?",
)
def mean_percentile_rank(*, collection: int) -> pl.Expr:
    """
    Mean percentile rank: Σ grade · (rank − 1) / (D − 1) / Σ grade; 0 is the top of the collection.

    A relevant item outside the list has the mean place of the items outside the list, halfway
    between its end and that of the collection: an empty list and a random one have 0.5.

    Parameters
    ----------
    collection
        D, how many items could be recommended to a user.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``mpr(collection=1000)``; lower is better. Null for a user without
        an item of grade > 0.

    Raises
    ------
    RankingDataError
        If ``collection`` is smaller than the user's list and relevant items together.

    Notes
    -----
    Hu, Koren and Volinsky, *ICDM* 2008, who divide one sum over all users by another.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 3, 1]}
    ... )
    >>> judged.rank.evaluate("mpr(collection=5)").item(0, "mpr(collection=5)")
    0.375
    """
    most = float(max(collection - 1, 1))
    rest = (most - n) / 2  # below an item that the list lacks, on average
    grades, of_list = gain_sum("linear", pl.lit(1.0)), gain_sum("linear", chance_within(None))
    below_list = gain_sum("linear", places_left(collection).fill_null(0.0)) - of_list
    below = (below_list + (grades - of_list) * rest) / (grades * most)
    return where_graded(_if_held(collection, 1 - below))


@labelled("lrap", in_words="Among the items down to a wanted one, how many are wanted?")
def label_ranking_average_precision() -> pl.Expr:
    """
    Label ranking average precision: Σ hits / rank over the hits / number of hits of the list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``lrap``. Null for a user without a hit, which scikit-learn counts
        as 1: ``users="run", undefined=1.0`` returns its number.

    Notes
    -----
    The items of the list are the labels; relevant items outside it do not count. It equals
    ``ap(divide_by=hits)``, except that the latter is 0 without a hit. Under ties it is the mean
    over the orders of each block, whereas scikit-learn puts an item at the end of its block.
    Schapire and Singer, *Machine Learning* 39(2), 2000; scikit-learn:
    ``label_ranking_average_precision_score``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate("lrap").item(0, "lrap")
    0.5
    """
    divisor = divisor_hits(None)
    # n is never below the divisor; it is read so that the ranks of misses are checked
    return pl.when((n > 0) & (divisor > 0)).then(precisions(None) / divisor)


def _if_held(collection: int, value: pl.Expr) -> pl.Expr:
    """NaN where the collection does not hold the list and the relevant items."""
    items = n + R - hits_within(None)
    return pl.when(items <= collection).then(value).otherwise(float("nan"))
