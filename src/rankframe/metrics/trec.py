"""Further measures of trec_eval, and counts."""

from math import inf
from typing import Any, Literal

import polars as pl

from rankframe._request import keywords
from rankframe._request.gain_functions import divided, gain_of
from rankframe._request.labels import SUM, Aggregate, Extremes, Mean, labelled, labelled_mean
from rankframe._request.parameters import Levels, Signed
from rankframe.metrics import core
from rankframe.metrics._building_blocks import (
    R,
    count_within,
    floored_geometric_mean,
    hits,
    hits_within,
    judged,
    kept_of_bpref,
    level_gains,
    list_length,
    n,
    n_of_judged,
    persistence,
    persistence_down_to,
    rank,
    relevance,
    relevant,
    returned,
    share,
    total,
    where_relevant,
    within,
)

__all__ = [
    "binary_g_measure",
    "bpref",
    "eleven_point_precision",
    "g_measure",
    "inferred_average_precision",
    "interpolated_precision",
    "ndcg_at_levels",
    "ndcg_at_relevant",
    "num_hits",
    "num_nonrelevant",
    "num_relevant",
    "num_retrieved",
    "rank_biased_precision",
    "rank_biased_residual",
    "set_average_precision",
    "unjudged_at",
    "utility",
    "yaap",
]

_judged_hits = pl.col("judged_hits")
#: what is declared of a number of items
_NUMBER: dict[str, Any] = {"over_users": SUM, "extremes": "none or all", "value_range": (0, inf)}


@labelled(
    "interpolated_precision",
    aliases={
        "iprec_at_recall_{}": "interpolated_precision(recall={})",
        "IPrec": "interpolated_precision",
        "IPrec@{}": "interpolated_precision(recall={})",
    },
    in_words="How clean is the list once a user has seen this share of what they want?",
)
def interpolated_precision(
    recall: float, *, points: Literal["nearest", "floor"] = "nearest"
) -> pl.Expr:
    """
    Interpolated precision: the highest hits / rank at any rank that reaches this recall.

    Parameters
    ----------
    recall
        Recall level, from 0 to 1.
    points
        The recall level is reached by ``"nearest"`` = round(recall·R) hits, with halves rounded
        up (trec_eval 10), or by ``"floor"`` = ⌊recall·R + 0.9⌋ (trec_eval 9).

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``interpolated_precision(recall=…)``; 0 where the list never
        reaches the level. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``iprec_at_recall_x``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [0, 1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.interpolated_precision(0.5)).row(0)
    (1, 0.6666666666666666)
    """
    if recall > 1:
        msg = f"interpolated_precision: recall must be a number from 0 to 1, not {recall}"
        raise ValueError(msg)
    return where_relevant(_interpolated(recall, points))


def _trec_levels(levels: str) -> str:
    """Read trec_eval's ``11pt_avg..25,.5,.75``."""
    return f"eleven_point_precision(levels={levels.replace(',', ';')})"


@labelled(
    "eleven_point_precision",
    aliases={"11pt_avg": "eleven_point_precision", "11pt_avg.{*}": _trec_levels},
    in_words="How clean is the list, averaged over all depths of search?",
)
def eleven_point_precision(
    *,
    points: Literal["nearest", "floor"] = "nearest",
    levels: Levels = tuple(i / 10 for i in range(11)),
) -> pl.Expr:
    """
    11-point average: the mean of interpolated precision at recall 0, 0.1, … 1.

    Parameters
    ----------
    points
        As in ``interpolated_precision``.
    levels
        Other recall levels, each from 0 to 1.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``eleven_point_precision``. Null for a user without a relevant
        item.

    Notes
    -----
    trec_eval: ``11pt_avg``, and ``11pt_avg..25,.5,.75`` for the levels 0.25, 0.5 and 0.75.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [0, 1]})
    >>> judged.rank.evaluate(rf.metrics.eleven_point_precision()).item(0, "eleven_point_precision")
    0.5
    """
    return where_relevant(pl.mean_horizontal(_interpolated(level, points) for level in levels))


@labelled("bpref", in_words="How often is a relevant item above the items judged not relevant?")
def bpref() -> pl.Expr:
    """
    Binary preference: Σ (1 − min(v, R) / min(N, R)) over the hits / R.

    v is the number of judged nonrelevant items above the hit, and N the number of all of them.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``bpref``. Null for a user without a relevant item.

    Notes
    -----
    Unjudged items are skipped. Buckley and Voorhees, *SIGIR* 2004. trec_eval: ``bpref``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.bpref()).item(0, "bpref")
    0.5
    """
    return where_relevant(kept_of_bpref() / R)


@labelled(
    "infap",
    value_range=(0, inf),
    in_words="What would average precision be if everything had been judged?",
)
def inferred_average_precision() -> pl.Expr:
    """
    Inferred AP: the expected AP where only a sample of the pool was judged.

    Σ (1 + (p − 1)·(h − 1 + ε) / (j − 1 + 2ε)) / rank over the hits / R, with h, j, p the relevant,
    judged and pooled items at or above the hit, and ε = 1e-5.

    Returns
    -------
    Expr
        Float64, named ``infap``. Null for a user without a relevant item.

    Notes
    -----
    A negative grade means pooled, but not judged. Yilmaz and Aslam, *CIKM* 2006. trec_eval:
    ``infAP``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> round(judged.rank.evaluate(rf.metrics.inferred_average_precision()).item(0, "infap"), 4)
    0.8333
    """
    epsilon = 1e-5
    share_above = (hits - 1 + epsilon) / (_judged_hits - 1 + 2 * epsilon)
    precisions = (1 + (pl.col("pooled_hits") - 1) * share_above) / rank
    return where_relevant(pl.when(within(None)).then(precisions).sum() / R)


@labelled("g", in_words="How much value does a reader find, compared with how far they must read?")
def g_measure() -> pl.Expr:
    """
    G: Σ g / log2(2 + ideal cumulated gain − cumulated gain) over the items found / Σ g.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``g``. Null for a user without an item of grade > 0.

    Notes
    -----
    trec_eval: ``G``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> round(judged.rank.evaluate(rf.metrics.g_measure()).item(0, "g"), 4)
    0.8155
    """
    gain, graded = gain_of("linear"), pl.col("graded")
    beyond = pl.when(rank > graded).then(rank - graded).otherwise(0)
    behind = pl.col("ideal_gains") + beyond - pl.col("gains")
    weighed = pl.when(rank.is_not_null()).then(gain / (2 + behind).log(2))
    return pl.when(gain.sum() > 0).then(weighed.sum() / gain.sum())


@labelled(
    "bin_g",
    aliases={"binG": "bin_g"},
    in_words="How many wanted items does a reader find, compared with how far they must read?",
)
def binary_g_measure() -> pl.Expr:
    """
    Binary G: Σ 1 / log2(2 + rank − hits) over the hits / R.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``bin_g``. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``binG``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.binary_g_measure()).item(0, "bin_g")
    1.0
    """
    return where_relevant(pl.when(within(None)).then(1 / (2 + rank - hits).log(2)).sum() / R)


@labelled("ndcg_rel", in_words="How good is the order of the list, measured at each relevant item?")
def ndcg_at_relevant() -> pl.Expr:
    """
    Mean nDCG at the ranks of items of grade > 0; a missing item counts as nDCG of the whole list.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``ndcg_rel``. Null for a user without an item of grade > 0.

    Notes
    -----
    trec_eval: ``ndcg_rel``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.ndcg_at_relevant()).item(0, "ndcg_rel")
    1.0
    """
    at_found = pl.col("discounted_gains") / pl.col("ideal_discounted_gains")
    is_found = (relevance > 0) & rank.is_not_null()
    items = (relevance > 0).sum().cast(pl.Int64)
    missed = items - is_found.sum().cast(pl.Int64)
    return pl.when(items > 0).then(
        (pl.when(is_found).then(at_found).sum() + missed * core.ndcg_at()) / items
    )


@labelled(
    "rndcg",
    in_words="How good is the order of the list, measured where the ideal list changes grade?",
)
def ndcg_at_levels() -> pl.Expr:
    """
    Mean nDCG at the last rank of each grade in the ideal list (and of the list, if longer by 2).

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``rndcg``. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``Rndcg``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.ndcg_at_levels()).item(0, "rndcg")
    1.0
    """
    positive = relevance > 0
    levels = relevance.filter(positive).n_unique().cast(pl.Int64)
    longer = (n >= positive.sum().cast(pl.Int64) + 2).cast(pl.Int64)
    return where_relevant((level_gains() + longer * core.ndcg_at()) / (levels + longer))


@labelled(
    "set_ap",
    aliases={"set_map": "set_ap", "SetAP": "set_ap"},
    extremes="none or all",
    in_words="How good is the list as a set, without an order?",
)
def set_average_precision() -> pl.Expr:
    """
    Unranked AP: precision times recall of the whole list, hits² / (n·R).

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``set_ap``. Null for a user without a relevant item; 0 for an empty
        list.

    Notes
    -----
    trec_eval: ``set_map``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.set_average_precision()).item(0, "set_ap")
    0.25
    """
    return where_relevant(share(hits_within(None) ** 2, n * R))


@labelled(
    "utility",
    aliases={"utility.{},{},{},{}": "utility(relevant={}, nonrelevant={}, missed={}, rest={})"},
    extremes="none or all",
    value_range=(-inf, inf),
    in_words="What is the list worth, if each right and wrong decision has a price?",
)
def utility(
    relevant: Signed = 1,
    nonrelevant: Signed = -1,
    missed: Signed = 0,
    rest: Signed = 0,
    collection: float = 0,
) -> pl.Expr:
    """
    Linear utility of the set: a·hits + b·(n − hits) + c·(R − hits) + d·(D + hits − n − R).

    Parameters
    ----------
    relevant
        The weight a of a relevant item that is retrieved.
    nonrelevant
        The weight b of a retrieved item that is not relevant.
    missed
        The weight c of a relevant item that is not retrieved.
    rest
        The weight d of an item that is neither relevant nor retrieved.
    collection
        D, the number of items in the collection.

    Returns
    -------
    Expr
        Float64, named ``utility``. Null for a user without a row in the truth.

    Notes
    -----
    trec_eval: ``utility.a,b,c,d``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.utility()).item(0, "utility")
    1.0
    """
    hit = hits_within(None)
    value = relevant * hit + nonrelevant * (n_of_judged() - hit) + missed * (R - hit)
    return (value + rest * (collection + hit - n_of_judged() - R)).cast(pl.Float64)


@labelled(
    "yaap",
    value_range=(-inf, inf),
    in_words="Average precision on a scale that spreads very good and very bad lists.",
)
def yaap() -> pl.Expr:
    """
    Yet another AP: ln((1 + S) / (1 + R − S)), where S = Σ hits / rank over the hits.

    Returns
    -------
    Expr
        Float64, named ``yaap``. Null for a user without a relevant item.

    Notes
    -----
    trec_eval: ``yaap``.

    Examples
    --------
    >>> judged = pl.DataFrame({"user": [1], "item": [7], "rank": [1], "relevance": [1]})
    >>> round(judged.rank.evaluate(rf.metrics.yaap()).item(0, "yaap"), 4)
    0.6931
    """
    precisions = pl.when(within(None)).then(hits / rank).sum()
    return where_relevant(((1 + precisions) / (1 + R - precisions)).log())


def _of_rbp(gain: str, divide_by: str, **_: object) -> Extremes | None:
    return "none or all" if gain != "user" and divide_by == "one" else None


@labelled(
    "rbp",
    extremes=_of_rbp,
    in_words="How many wanted items does a reader see if they may stop after any item?",
)
def rank_biased_precision(
    p: float = 0.8,
    *,
    gain: Literal["binary", "graded", "user"] = "binary",
    max_grade: float | None = None,
    k: int | None = None,
    divide_by: Literal["one", "attainable"] = "one",
) -> pl.Expr:
    """
    Rank-biased precision: (1 − p)·Σ u·p^(rank − 1), u = 1 for a relevant item.

    Parameters
    ----------
    p
        Persistence: the chance that a reader goes on to the next item, 0 < p < 1.
    gain
        ``"binary"``: u = 1 for a relevant item; ``"graded"``: u = grade / max_grade; ``"user"``:
        u = grade / the user's highest grade, as in trec_eval.
    max_grade
        The highest grade of the scale, for ``"graded"``; None takes the highest in the truth.
    k
        Cut-off; None means the whole list.
    divide_by
        ``"attainable"`` divides by the best value of a list of as many items as are at rank ≤ k.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``rbp@k``. Null for a user without a relevant item (of grade > 0).

    Notes
    -----
    A grade above ``max_grade`` has u > 1. With ``max_grade=1``, u is the grade itself, as in ranx.
    Moffat and Zobel, *ACM TOIS* 27(1), 2008.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3], "relevance": [1, 0, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.rank_biased_precision(0.5)).item(0, "rbp(p=0.5)")
    0.625
    """
    keywords.check_fraction("p", p)
    grade = gain_of("binary" if gain == "binary" else "linear")
    top = pl.col("top_grade").max() if max_grade is None else pl.lit(float(max_grade))
    top = {"binary": pl.lit(1.0), "graded": top, "user": grade.max()}[gain]
    value = divided((persistence(p, k) * grade).sum(), top)
    if divide_by == "attainable":
        weight = persistence_down_to(returned(k), pl.col("ideal_rank"), p)
        value = share(value, divided((weight * grade).sum(), top))
    return pl.when(grade.max() > 0).then(value)


@labelled(
    "rbp_residual",
    aliases={"rbp_resid": "rbp_residual"},
    higher_is_better=None,
    in_words="How much could unjudged items still change RBP?",
)
def rank_biased_residual(
    p: float = 0.8, *, counts: Literal["always", "unjudged"] = "always"
) -> pl.Expr:
    """
    Residual of RBP: 1 − (1 − p)·Σ p^(rank − 1) over the judged items, the most that RBP may gain.

    Parameters
    ----------
    p
        Persistence, 0 < p < 1.
    counts
        ``"always"``; or only where an ``"unjudged"`` item was retrieved, else 0, as in trec_eval.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``rbp_residual``. Null for a user without a row in the truth.

    Notes
    -----
    Moffat and Zobel, *ACM TOIS* 27(1), 2008.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, None]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.rank_biased_residual(0.5)).item(0, "rbp_residual(p=0.5)")
    0.5
    """
    keywords.check_fraction("p", p)
    residual = 1 - pl.when(judged).then(persistence(p)).sum()
    if counts == "always":
        return residual
    return pl.when(n > count_within(judged, None)).then(residual).otherwise(0.0)


@labelled(
    "unjudged",
    aliases={"unj_{}": "unjudged@{}"},
    higher_is_better=None,
    in_words="How much of what we show is unjudged?",
)
def unjudged_at(k: int) -> pl.Expr:
    """
    Unjudged: the share of the first k items with no judgment or a negative grade.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``unjudged@k``. Null for a user without a row in the truth.

    Notes
    -----
    Places without an item count as judged. trec_eval: ``unj_k``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, 2], "relevance": [1, None]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.unjudged_at(2)).item(0, "unjudged@2")
    0.5
    """
    return divided(list_length(k) - count_within(judged, k), k)


@labelled(
    "num_retrieved",
    aliases={"num_ret": "num_retrieved", "NumRet": "num_retrieved"},
    **_NUMBER,
    higher_is_better=None,
    in_words="How many items do the lists hold?",
)
def num_retrieved() -> pl.Expr:
    """
    Number of items retrieved; over users, their sum.

    Returns
    -------
    Expr
        Int64, named ``num_retrieved``. Null for a user without a row in the truth.

    Notes
    -----
    trec_eval: ``num_ret``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.num_retrieved()).item(0, "num_retrieved")
    1
    """
    return n_of_judged()


@labelled(
    "num_relevant",
    aliases={"num_rel": "num_relevant", "NumRel": "num_relevant"},
    **_NUMBER,
    higher_is_better=None,
    in_words="How many items do users want?",
)
def num_relevant() -> pl.Expr:
    """
    Number of relevant items, R; over users, their sum.

    Returns
    -------
    Expr
        Int64, named ``num_relevant``. Null for a user without an item of grade > 0.

    Notes
    -----
    trec_eval: ``num_rel`` (its sum under ``-c`` ignores ``-l``).

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.num_relevant()).item(0, "num_relevant")
    2
    """
    return R


@labelled(
    "num_hits",
    aliases={
        "num_rel_ret": "num_hits",
        "NumRelRet": "num_hits",
        "NumRet(rel={})": "num_hits(rel={})",
    },
    **_NUMBER,
    in_words="How many wanted items do we show?",
)
def num_hits(k: int | None = None) -> pl.Expr:
    """
    Number of relevant items among the first k, the true positives; over users, their sum.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Int64, named ``num_hits@k``. Null for a user without an item of grade > 0.

    Notes
    -----
    trec_eval: ``num_rel_ret``. ``hits@k`` of ranx is its mean over users, as ``summarize`` and
    ``at_k`` return it; ``evaluate`` returns the sum.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1], "item": [7, 8], "rank": [1, None], "relevance": [1, 1]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.num_hits()).item(0, "num_hits")
    1
    """
    return hits_within(k)


@labelled(
    "num_nonrelevant",
    aliases={"num_nonrel_judged_ret": "num_nonrelevant(of=judged)"},
    **_NUMBER,
    higher_is_better=False,
    in_words="How many unwanted items do we show?",
)
def num_nonrelevant(k: int | None = None, *, of: Literal["listed", "judged"] = "listed") -> pl.Expr:
    """
    Number of nonrelevant items among the first k, the false positives; over users, their sum.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        ``"listed"``: the items at rank ≤ k that are not hits, unjudged ones included, as elsewhere;
        or only the ``"judged"`` ones of these.

    Returns
    -------
    Expr
        Int64, named ``num_nonrelevant@k``. Null for a user without a row in the truth.

    Notes
    -----
    trec_eval: ``num_nonrel_judged_ret`` is ``num_nonrelevant(of=judged)``.

    Examples
    --------
    >>> judged = pl.DataFrame(
    ...     {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, None], "relevance": [1, 0, 0]}
    ... )
    >>> judged.rank.evaluate(rf.metrics.num_nonrelevant()).item(0, "num_nonrelevant")
    1
    """
    if of == "judged":
        return count_within(judged & ~relevant, k)
    return n_of_judged(k) - hits_within(k)


@labelled_mean(
    "num_users",
    aliases={"num_q": "num_users", "NumQ": "num_users"},
    value_range=(0, inf),
    higher_is_better=None,
    in_words="How many users are counted?",
)
def num_users() -> Mean:
    """Number of users."""

    def unit(count: pl.Expr) -> pl.Expr:
        return (count.is_null() | pl.lit(value=True)).cast(pl.Int64)

    return Mean(R, Aggregate(transform=unit, aggregate="sum"))


@labelled_mean(
    "gm_bpref",
    in_words="Binary preference, with the most weight on the users who are served worst.",
)
def gm_bpref() -> Mean:
    """trec_eval's geometric mean of bpref: exp(mean(ln(max(bpref, 1e-5))))."""
    return Mean(bpref(), floored_geometric_mean)


def _interpolated(recall: float, points: str) -> pl.Expr:
    """The highest precision at a hit that reaches the recall level."""
    level = recall * total
    halves_up = pl.when(level - level.floor() >= 0.5).then(level.ceil()).otherwise(level.floor())
    need = halves_up if points == "nearest" else (level + 0.9).floor()
    return pl.when(within(None) & (hits >= need)).then(hits / rank).max().fill_null(0.0)
