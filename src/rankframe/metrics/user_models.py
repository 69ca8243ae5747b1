"""Measures from the literature that model a reader or weigh grades."""

from math import inf
from typing import Literal

import polars as pl

from rankframe._request import keywords, registry
from rankframe._request.gain_functions import (
    divided,
    gain_of,
    need,
    stop_chance,
    top_of,
    usefulness,
)
from rankframe._request.labels import labelled
from rankframe._request.parameters import Gain
from rankframe.metrics._building_blocks import (
    R,
    blended_ratio,
    blended_ratios,
    count_within,
    deepest,
    divisor_hits,
    hits,
    hits_within,
    inside,
    judged,
    list_length,
    misplaced,
    n,
    places_left,
    rank,
    reciprocals,
    relevance,
    relevant,
    share,
    shared_gains,
    where_graded,
    where_relevant,
    within,
)

__all__ = [
    "arhr_at",
    "auc",
    "average_recall_at",
    "compatibility",
    "err_at",
    "graded_average_precision",
    "insq_at",
    "inst_at",
    "judged_at",
    "lauc_at",
    "nerr_at",
    "o_measure",
    "p_measure",
    "p_plus",
    "pap_at",
    "pauc_at",
    "q_measure",
]


@labelled(
    "err",
    extremes="none or all",
    in_words="How soon is a reader satisfied if they stop at the first good item?",
)
def err_at(k: int | None = None, *, max_grade: float | None = None) -> pl.Expr:
    """
    Expected reciprocal rank: Σ stop / rank · Π (1 − stop) over the items above, at rank ≤ k.

    The reader stops at an item with chance (2^grade − 1) / 2^max_grade.

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
    RankingDataError
        If a grade is above ``max_grade``.

    Notes
    -----
    Chapelle, Metzler, Zhang and Grinspan, *CIKM* 2009.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [0, 1, 2]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.err_at()).item(0, "err")
    0.3125
    """
    return _err(rank, "survival", k, max_grade)


@labelled("nerr", in_words="How soon is a reader satisfied, compared with the best possible list?")
def nerr_at(k: int | None = None, *, max_grade: float | None = None) -> pl.Expr:
    """
    Normalized ERR: ERR@k / ERR@k of the ideal list.

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
    RankingDataError
        If a grade is above ``max_grade``.

    Notes
    -----
    Chapelle, Metzler, Zhang and Grinspan, *CIKM* 2009.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [2, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.nerr_at(1), rf.metrics.nerr_at(2)).row(0)
    (1, 0.0, 0.4)
    """
    ideal = _err(pl.col("ideal_rank"), "ideal_survival", k, max_grade)
    ratio = _err(rank, "survival", k, max_grade) / ideal
    return pl.when(ideal != 0).then(ratio.clip(upper_bound=1))


@labelled(
    "q", in_words="Average precision for grades: are the best items above the merely good ones?"
)
def q_measure(k: int | None = None, *, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    Q-measure: Σ of the blended ratio over the hits at rank ≤ k, divided by min(k, R).

    The blended ratio at a rank is (hits + β·gains) / (rank + β·ideal gains).

    Parameters
    ----------
    k
        Cut-off; None means the whole list, and the divisor is then R.
    beta
        Weight of the gains, ≥ 0; with 0 it is average precision.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``q@k``. Null for a user without a relevant item.

    Notes
    -----
    Sakai, *NTCIR-4* 2004; the cut-off works as in NTCIREVAL.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [2, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.q_measure()).item(0, "q")
    0.25
    """
    best = R if k is None else pl.min_horizontal(R, k)
    return where_relevant(blended_ratios(beta, gain, k) / best)


@labelled("o_measure", in_words="How good is the first relevant item, and how early does it come?")
def o_measure(*, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    O-measure: the blended ratio at the first hit; 0 without one.

    Parameters
    ----------
    beta
        Weight of the gains, ≥ 0.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``o_measure``. Null for a user without a relevant item.

    Notes
    -----
    Sakai, *AIRS* 2006.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [2, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.o_measure()).item(0, "o_measure")
    0.5
    """
    first = pl.when(within(None) & (hits == 1)).then(blended_ratio(beta, gain)).max()
    return where_relevant(first.fill_null(0.0))


@labelled(
    "p_measure", in_words="How good is the best item of the list, and how early does it come?"
)
def p_measure(*, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    P-measure: the blended ratio at the first item of the list's highest grade; 0 without a hit.

    Parameters
    ----------
    beta
        Weight of the gains, ≥ 0.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``p_measure``. Null for a user without a relevant item.

    Notes
    -----
    Sakai, *AIRS* 2006.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 2]})
    >>> judged.rank.evaluate(rf.metrics.p_measure()).item(0, "p_measure")
    1.0
    """
    preferred = within(None) & (rank == pl.col("best_rank"))
    ratio = pl.when(preferred).then(blended_ratio(beta, gain)).max()
    return where_relevant(ratio.fill_null(0.0))


@labelled("p_plus", in_words="How good is the list, down to its best item?")
def p_plus(*, beta: float = 1, gain: Gain = "linear") -> pl.Expr:
    """
    P⁺-measure: the mean blended ratio over the hits down to the first item of the highest grade.

    Parameters
    ----------
    beta
        Weight of the gains, ≥ 0.
    gain
        ``"linear"`` = the grade, ``"exponential"`` = 2^grade − 1, ``"binary"`` = 1 for a relevant
        item, or a mapping.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``p_plus``; 0 without a hit. Null for a user without a relevant
        item.

    Notes
    -----
    Sakai, *AIRS* 2006.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 2]})
    >>> round(judged.rank.evaluate(rf.metrics.p_plus()).item(0, "p_plus"), 4)
    0.8333
    """
    down_to = within(None) & (rank <= pl.col("best_rank"))
    down = pl.when(down_to).then(blended_ratio(beta, gain))
    return where_relevant(down.mean().fill_null(0.0))


@labelled("gap", in_words="Average precision when users differ in which grade satisfies them.")
def graded_average_precision(k: int | None = None, *, gain: Gain = "linear") -> pl.Expr:
    """
    Graded average precision: Σ shared gain / rank over the items at rank ≤ k, divided by Σ gain.

    The shared gain at an item is the sum, over the items at or above it, of the smaller of the two
    gains. It is the expected average precision if the lowest relevant grade of the user is unknown:
    each grade adds the weight of its threshold to the gain.

    Parameters
    ----------
    k
        Cut-off; None means the whole list. The divisor always covers all items of grade > 0.
    gain
        ``"linear"`` = the grade: the thresholds 1, 2, … have equal weights; ``"exponential"`` =
        2^grade − 1; or a mapping from each grade to the weight of all thresholds up to it:
        the weights .5, .3 and .2 are ``{1: .5, 2: .8, 3: 1}``.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``gap@k``; with one grade it is average precision. Null for a user
        without an item of gain > 0.

    Notes
    -----
    ``relevant_at`` does not affect the gains. Robertson, Kanoulas and Yilmaz, *SIGIR* 2010.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 2]})
    >>> round(judged.rank.evaluate(rf.metrics.graded_average_precision()).item(0, "gap"), 4)
    0.8333
    """
    gains = gain_of(gain)
    # + 0·gain: a grade without a gain (NaN) must show at any rank
    ratio = (shared_gains(gain, k) + 0.0 * gains).sum() / gains.sum()
    return pl.when(gains.sum() != 0).then(ratio.clip(upper_bound=1))


@labelled(
    "insq",
    extremes="none or all",
    in_words="How much does a reader find if they look for about T relevant items?",
)
def insq_at(k: int | None = None, *, goals: float = 1, max_grade: float | None = None) -> pl.Expr:
    """
    INSQ: Σ u / (rank − 1 + 2T)² over the items at rank ≤ k / Σ 1 / (i − 1 + 2T)² over i = 1 … k.

    A reader with T goals goes on from rank i with chance ((i − 1 + 2T) / (i + 2T))², whatever was
    found; u = grade / max_grade.

    Parameters
    ----------
    k
        The rank at which every reader stops; None means that reading never ends.
    goals
        T ≥ 0.5, the number of items that the reader hopes to find.
    max_grade
        The highest grade of the scale; None takes the highest grade in the truth.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``insq@k``. Null for a user without an item of grade > 0.

    Raises
    ------
    RankingDataError
        If a grade is above ``max_grade``.

    Notes
    -----
    Moffat, Scholer and Thomas, *ADCS* 2012; cwl_eval uses ``insq@1000``.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 0]})
    >>> round(judged.rank.evaluate(rf.metrics.insq_at(2)).item(0, "insq@2"), 4)
    0.6923
    """
    _check_goals(goals)
    useful = usefulness(max_grade)
    weight = 1 / (rank - 1 + 2 * goals).pow(2)
    whole = _inverse_squares(pl.lit(2.0 * goals))
    if k is not None:
        whole -= _inverse_squares(pl.lit(2.0 * goals + k))
    return _at_most_1(divided(_over_list(useful * weight, k, useful), whole))


@labelled("inst", in_words="How much does a reader find if they stop after T relevant items?")
def inst_at(k: int | None = None, *, goals: float = 1, max_grade: float | None = None) -> pl.Expr:
    """
    INST: Σ u·reached over the items at rank ≤ k / Σ reached over the ranks 1 … k.

    A reader with T goals goes on from rank i with chance ((w − 1) / w)², w = i + 2T − Σ u down to
    i: the more is found, the sooner the reader stops. The chance that a rank is reached is the
    product of these chances above it; u = grade / max_grade.

    Parameters
    ----------
    k
        The rank at which every reader stops; None means that reading never ends.
    goals
        T ≥ 0.5, the number of items that the reader hopes to find.
    max_grade
        The highest grade of the scale; None takes the highest grade in the truth.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``inst@k``. Null for a user without an item of grade > 0.

    Raises
    ------
    RankingDataError
        If a grade is above ``max_grade``.

    Notes
    -----
    Moffat, Bailey, Scholer and Thomas, *ADCS* 2015; cwl_eval uses ``inst@1000``.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, 0]})
    >>> round(judged.rank.evaluate(rf.metrics.inst_at(2)).item(0, "inst@2"), 4)
    0.8
    """
    _check_goals(goals)
    gains, useful = pl.col("gains"), usefulness(max_grade)
    needed = need(goals, max_grade, gains)
    # at distance w from a hit, with no other hit between, a rank is reached with chance force / w²
    force = (2 * goals * pl.col(registry.name("eagerness", goals=goals, max_grade=max_grade))).pow(
        2
    )
    force_after = force * (1 - useful / needed).pow(2)
    reached = force / needed.pow(2)
    # the sum over all ranks, one stretch between two hits at a time
    start = (2.0 * goals) ** 2 * _inverse_squares(pl.lit(2.0 * goals))
    turn = force_after * _inverse_squares(needed + 1 - useful) - force * _inverse_squares(
        needed + 1
    )
    whole = start + _over_list(turn, k, useful)
    if k is not None:
        graded = (relevance > 0) & (rank <= k)
        last = pl.when(graded).then(force_after).min().fill_null((2.0 * goals) ** 2)
        satisfied = pl.when(graded).then(divided(gains, top_of(max_grade))).max().fill_null(0.0)
        whole -= last * _inverse_squares(k + 2.0 * goals - satisfied)
    return _at_most_1(_over_list(useful * reached, k, useful) / whole)


@labelled(
    "arhr",
    extremes="none or all",
    value_range=(0, inf),
    in_words="How early do wanted items come, summed over all of them?",
)
def arhr_at(k: int | None = None) -> pl.Expr:
    """
    Reciprocal hit rank: Σ 1 / rank over the relevant items at rank ≤ k; its mean is ARHR.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``arhr@k``. Null for a user without a relevant item.

    Notes
    -----
    With one relevant item per user, as in the paper, it is ``rr@k``. M. Deshpande and G. Karypis,
    *ACM TOIS* 22(1), 2004.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 4], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.arhr_at(5)).item(0, "arhr@5")
    1.25
    """
    return where_relevant(reciprocals(k))


@labelled(
    "judged",
    extremes="none or all",
    higher_is_better=None,
    in_words="How much of what we show has a judgment?",
)
def judged_at(k: int) -> pl.Expr:
    """
    Judged: the share of the items at rank ≤ k that have a judgment of any grade.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``judged@k``; 0 without an item at rank ≤ k. Null for a user
        without a row in the truth.

    Notes
    -----
    A negative grade counts as judged here, as in ir_measures, but as unjudged in ``unjudged_at``,
    as in trec_eval.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, None]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.judged_at(10)).item(0, "judged@10")
    0.5
    """
    return share(count_within(judged.is_not_null(), k), list_length(k))


@labelled(
    "auc",
    aliases={"roc_auc": "auc"},
    in_words="Of a wanted and an unwanted item of the list, how often is the wanted one above?",
)
def auc(k: int | None = None, *, only_hits: Literal["null", "one"] = "null") -> pl.Expr:
    """
    Area under the ROC curve within the list: share of (hit, miss) pairs in the right order.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    only_hits
        The value of a list with only hits, which has no pairs: ``"null"``, or ``"one"`` as in
        RePlay.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``auc@k``. Null where the first k have no hit or only hits.

    Notes
    -----
    Items that were not retrieved do not count. Where ranks have gaps, an empty place above a hit
    counts as a miss.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.auc()).item(0, "auc")
    0.5
    """
    pairs = divisor_hits(k) * (deepest(k) - divisor_hits(k))
    in_order = pl.when(pairs > 0).then(1 - misplaced(k) / pairs)
    return in_order if only_hits == "null" else in_order.when(divisor_hits(k) > 0).then(1.0)


@labelled(
    "pauc", cut="misses", in_words="How often is a wanted item above the first unwanted ones?"
)
def pauc_at(k: int) -> pl.Expr:
    """
    Partial AUC: the share of (relevant item, one of the first k misses) pairs in the right order.

    Parameters
    ----------
    k
        How many misses count, from the top. A shorter list is treated as if misses followed.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``pauc@k``. Null for a user without a relevant item.

    Notes
    -----
    Budhiraja, Hiranandani, Yarrabelly, Choure, Koyejo and Jain, *arXiv* 2001.10495, 2020;
    RecTools: ``PartialAUC``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.pauc_at(2)).item(0, "pauc@2")
    0.25
    """
    return where_relevant(_misses_below(k, within(None)) / (float(k) * R))


@labelled(
    "pap",
    cut="misses",
    in_words="Of the first wanted and the first unwanted items, how often is the wanted one above?",
)
def pap_at(k: int) -> pl.Expr:
    """
    pAp: the share of (first k relevant items, first k misses) pairs in the right order.

    It combines partial AUC and precision: only the first min(k, R) relevant items count.

    Parameters
    ----------
    k
        How many misses count, from the top, and how many relevant items at most. A shorter list is
        treated as if misses followed.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``pap@k``. Null for a user without a relevant item.

    Notes
    -----
    Budhiraja, Hiranandani, Yarrabelly, Choure, Koyejo and Jain, *arXiv* 2001.10495, 2020;
    RecTools: ``PAP``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.pap_at(1)).item(0, "pap@1")
    0.0
    """
    counted = within(None) & (hits <= k)
    return where_relevant(_misses_below(k, counted) / (float(k) * pl.min_horizontal(R, k)))


@labelled(
    "lauc",
    in_words="How often is a wanted item above an unwanted one, if only the first places are seen?",
)
def lauc_at(k: int, *, collection: int) -> pl.Expr:
    """
    Limited AUC: Σ share of misses below each hit at rank ≤ k / min(k, R).

    Every nonrelevant item of the collection is a miss, listed or not.

    Parameters
    ----------
    k
        Cut-off.
    collection
        How many items could be recommended to a user. Elliot's LAUC uses the size of the
        catalogue, minus the items that the user had in training, plus 1.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``lauc(collection=1000)@k``. Null for a user without a relevant
        item, or without a miss.

    Raises
    ------
    RankingDataError
        If ``collection`` is smaller than the user's relevant items and the misses above the hits
        together.

    Notes
    -----
    Schröder, Thiele and Lehner, *UCERSTI* 2011; the formula is Elliot's.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.lauc_at(2, collection=6)).item(0, "lauc(collection=6)@2")
    0.375
    """
    misses, above = float(collection) - R, pl.when(within(k)).then(rank - hits)
    in_order = (hits_within(k) - above.sum() / misses) / pl.min_horizontal(R, k)
    holds = above.max().fill_null(0) <= misses
    value = pl.when(holds).then(pl.when(misses > 0).then(in_order)).otherwise(float("nan"))
    return where_relevant(value)


@labelled(
    "average_recall",
    aliases={"mar": "average_recall", "ar": "average_recall"},
    in_words="How much of what users want do we show, averaged over list lengths up to k?",
)
def average_recall_at(k: int) -> pl.Expr:
    """
    Average recall: the mean of recall@1, recall@2, … recall@k.

    Parameters
    ----------
    k
        The last cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``average_recall@k``. Null for a user without a relevant item.

    Notes
    -----
    Elliot: ``MAR``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.average_recall_at(4)).item(0, "average_recall@4")
    0.375
    """
    return where_relevant(pl.when(relevant).then(places_left(k)).sum() / (float(k) * R))


@labelled(
    "compatibility",
    aliases={"compat": "compatibility"},
    in_words="How similar is the list to the nearest ideal list?",
)
def compatibility(p: float = 0.95, *, divide_by: Literal["ideal", "weights"] = "ideal") -> pl.Expr:
    """
    Compatibility: rank-biased overlap with the nearest ideal list / that of the ideal with itself.

    Ideal lists hold the items of grade > 0, highest grades first; the nearest one has equal grades
    in the order of the user's list. The overlap at depth d is the number of items that the first d
    of both lists share / d. It is weighted by p^(d − 1), down to the end of the longer list.

    Parameters
    ----------
    p
        Persistence: the chance that a reader goes on to the next depth, 0 < p < 1.
    divide_by
        ``"ideal"``: the overlap of the ideal list with itself, which is less than 1 where the
        ideal list ends first; ``"weights"``: the sum of the weights, which yields plain
        rank-biased overlap.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``compatibility``. Null for a user without an item of grade > 0.

    Notes
    -----
    Clarke, Vtyurina and Smucker, *ACM TOIS* 39(3), 2021; ir_measures: ``Compat``. ``rbo``
    compares two runs.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [0, 1]})
    >>> round(
    ...     judged.rank.evaluate(rf.metrics.compatibility(0.5)).item(0, "compatibility(p=0.5)"), 4
    ... )
    0.2
    """
    keywords.check_fraction("p", p)
    common, ideal = (
        pl.col(registry.name(column, p=p)).sum() for column in ("common_weight", "ideal_weight")
    )
    depth = pl.max_horizontal(n, pl.col("graded").max())
    weights = divided(1 - pl.lit(p).pow(depth), 1 - p)
    overlap, best = common / weights, ideal / weights
    value = overlap / best if divide_by == "ideal" else overlap
    return _at_most_1(value)


def _misses_below(k: int, items: pl.Expr) -> pl.Expr:
    """Number of pairs of an item and one of the first k misses that have the miss below."""
    return pl.when(items).then((float(k) - (rank - hits)).clip(lower_bound=0)).sum()


def _err(position: pl.Expr, survival: str, k: int | None, max_grade: float | None) -> pl.Expr:
    stop = stop_chance(max_grade)
    reached = stop * pl.col(registry.name(survival, max_grade=max_grade)) / position
    total = pl.when(inside(position, k)).then(reached).otherwise(0.0 * stop).sum()
    return where_graded(total)


def _at_most_1(ratio: pl.Expr) -> pl.Expr:
    return where_graded(ratio.clip(upper_bound=1))  # rounding may exceed 1


def _over_list(value: pl.Expr, k: int | None, grade: pl.Expr) -> pl.Expr:
    """Σ value over the items of grade > 0 at rank ≤ k."""
    counts = (relevance > 0) & inside(rank, k)
    # 0·grade, not 0: a grade above the scale (NaN) must show at any rank
    return pl.when(counts).then(value).otherwise(0.0 * grade).sum()


def _inverse_squares(start: pl.Expr) -> pl.Expr:
    """Return Σ 1/(start + i)² over i = 0, 1, …, the trigamma function, for start ≥ 1."""
    shift = 12  # from here on, the asymptotic series is exact to the last digits
    head = pl.sum_horizontal([(start + i).pow(-2) for i in range(shift)])
    y = 1 / (start + shift)
    square = y * y
    series = 1 / 6 - square * (1 / 30 - square * (1 / 42 - square * (1 / 30 - square * (5 / 66))))
    return head + y + square / 2 + y * square * series


def _check_goals(goals: float) -> None:
    if goals < 0.5:  # else the reader of INSQ and INST would go on with a chance above 1
        msg = f"goals must be a number ≥ 0.5, not {goals}"
        raise ValueError(msg)
