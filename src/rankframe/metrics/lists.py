"""Properties of a list, whether or not its items are relevant: popularity, novelty, variety.

These metrics reduce the listed rows. Their columns come from the tables ``items=`` and
``history=``; a truth is needed only where a metric reads ``relevant``.
"""

from math import inf
from typing import Literal, TypeAlias

import polars as pl

from rankframe._request import keywords, registry
from rankframe._request.gain_functions import divided
from rankframe._request.labels import labelled
from rankframe._request.parameters import OptionalColumn, PlaceDiscount
from rankframe.metrics._building_blocks import (
    discount_of_place,
    in_list,
    length_within,
    mean_of_list,
    rank,
    relevant,
    sum_of_list,
)

__all__ = [
    "filled_at",
    "ild_at",
    "new_at",
    "novelty_at",
    "popularity_at",
    "popularity_lift_at",
    "popularity_quantile_at",
    "relevant_novelty_at",
    "serendipity_at",
    "tail_at",
    "unseen_at",
]

DivideBy: TypeAlias = Literal["returned", "k"]

_popularity = pl.col("popularity")
_users = pl.col("history_users")
_interactions = pl.col("interactions")
_rows = pl.col("history_rows")


@labelled(
    "popularity",
    aliases={"arp": "popularity"},
    value_range=(0, inf),
    higher_is_better=None,
    in_words="How popular are the items we show?",
)
def popularity_at(
    k: int | None = None,
    *,
    out_of: Literal["rows", "users"] | None = None,
    divide_by: DivideBy = "returned",
) -> pl.Expr:
    """
    Popularity: the mean over the list down to k of popularity, the users of the history per item.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    out_of
        None = the number of users who had the item; or their share of all ``"users"`` of the
        history; or the share of its rows of all ``"rows"``. A repeated row does not count as a
        second user.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``popularity@k``. Null for a user without an item at rank ≤ k
        (with ``divide_by="k"``: without a list).

    Notes
    -----
    Reads ``history=``. Also called average recommendation popularity, ARP, as in Elliot and
    RecBole. RecTools has it too.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> run.rank.evaluate(rf.metrics.popularity_at(2), history=history).item(0, "popularity@2")
    2.0
    """
    whole = {None: None, "rows": _rows, "users": _users}[out_of]
    count = _interactions if out_of == "rows" else _popularity
    value = count if whole is None else count / whole
    return mean_of_list(value, k, divide_by)


@labelled(
    "novelty",
    aliases={"miuf": "novelty"},
    value_range=(0, inf),
    in_words="How surprising are the items we show, given how popular they are?",
)
def novelty_at(
    k: int | None = None,
    *,
    out_of: Literal["users", "rows"] = "users",
    new: Literal["one", "zero", "skip"] = "one",
    normalize: bool = False,
    divide_by: DivideBy = "returned",
) -> pl.Expr:
    """
    Novelty: the mean over the list down to k of −log2(popularity / users), in bits.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    out_of
        ``"users"`` of the history: popularity / users is the chance that a random user knows the
        item; or its ``"rows"``: self-information.
    new
        How an item that nobody had counts: as if ``"one"`` user had it, with a novelty of
        ``"zero"``, or not at all (``"skip"``).
    normalize
        Divide by log2 of the users (or rows), so that the greatest novelty is 1.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``novelty@k``. Null for a user without an item at rank ≤ k
        (with ``divide_by="k"``: without a list), and with ``normalize`` where the history has one
        user (or row).

    Notes
    -----
    Reads ``history=``. A user who had an item more than once counts once, but each of the rows
    counts with ``out_of="rows"``. Also called mean inverse user frequency, MIUF; with ``normalize``
    and ``divide_by="k"``, it is RePlay's surprisal. Castells, Vargas and Wang, *DDR* 2011. Equal
    scores as blocks: ``"skip"`` raises an error.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> run.rank.evaluate(rf.metrics.novelty_at(2), history=history)["novelty@2"].round(4).item()
    1.2075
    """
    whole, had = (_users, _popularity) if out_of == "users" else (_rows, _interactions)
    bits = _bits(whole, had)
    if new == "zero":
        bits = pl.when(_popularity > 0).then(bits).otherwise(0.0)
    if normalize:
        bits = bits / whole.log(2)
    if new == "skip":
        values = pl.when(in_list(k) & (rank > 0) & (_popularity > 0)).then(bits)
        value = divided(values.sum(), k) if divide_by == "k" and k else values.mean()
    else:
        value = mean_of_list(bits, k, divide_by)
    # an empty list has no row: null would not be > 1
    return pl.when(whole.max() <= 1).then(None).otherwise(value) if normalize else value


@labelled(
    "popularity_quantile",
    higher_is_better=None,
    in_words="Where are the items we show in the ranking by popularity?",
)
def popularity_quantile_at(k: int | None = None, *, divide_by: DivideBy = "returned") -> pl.Expr:
    """
    Popularity quantile: the mean over the list down to k of the rank of popularity / items.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``popularity_quantile@k``; 1 = the most popular item of the
        history, 0 = one that nobody had. Null for a user without an item at rank ≤ k
        (with ``divide_by="k"``: without a list).

    Notes
    -----
    Reads ``history=``. Equally popular items have the mean of their ranks. LensKit calls it
    MeanPopRank.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> quantile = rf.metrics.popularity_quantile_at(2)
    >>> run.rank.evaluate(quantile, history=history).item(0, "popularity_quantile@2")
    0.75
    """
    return mean_of_list(pl.col("popularity_quantile"), k, divide_by)


@labelled(
    "tail",
    aliases={"aplt": "tail", "aclt": "tail(count=true)"},
    value_range=(0, inf),
    in_words="How much of what we show comes from outside the bestsellers?",
)
def tail_at(
    k: int | None = None,
    *,
    head: float = 0.8,
    count: bool = False,
    divide_by: DivideBy = "returned",
) -> pl.Expr:
    """
    Long tail: the share of the list down to k that is in the tail, beyond the most popular items.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    head
        The head is the most popular items that hold this share of the rows of the history; equally
        popular ones stay together.
    count
        Return their number instead of their share.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64, a share in [0, 1] or a number, named ``tail@k``. Null for a user without an
        item at rank ≤ k (with ``count`` or ``divide_by="k"``: without a list).

    Notes
    -----
    Reads ``history=``. An item that nobody had is in the tail. Also called APLT, and with
    ``count`` ACLT: Abdollahpouri, Burke and Mobasher, *FLAIRS* 2019; Elliot separates
    equally popular items by their order in the file.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> run.rank.evaluate(rf.metrics.tail_at(2, head=0.5), history=history).item(
    ...     0, "tail(head=0.5)@2"
    ... )
    0.5
    """
    keywords.check_fraction("tail_at: head", head)
    # as numbers, since a sum of booleans is unsigned
    in_tail = pl.col(registry.name("tail", head=head)).cast(pl.Float64)
    if count:
        return sum_of_list(in_tail, k)
    return mean_of_list(in_tail, k, divide_by)


@labelled("unseen", in_words="How much of what we show is new to this user?")
def unseen_at(k: int | None = None, *, divide_by: DivideBy = "returned") -> pl.Expr:
    """
    Unseen: the share of the list down to k that the user did not have before.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``unseen@k``; 1 for a user without a history. Null for a user
        without an item at rank ≤ k (with ``divide_by="k"``: without a list).

    Notes
    -----
    Reads ``history=``. RePlay calls it Novelty.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> run.rank.evaluate(rf.metrics.unseen_at(2), history=history).item(0, "unseen@2")
    0.5
    """
    return mean_of_list((~pl.col("seen")).cast(pl.Float64), k, divide_by)


@labelled("new", in_words="How much of what we show is new to everyone?")
def new_at(k: int | None = None, *, divide_by: DivideBy = "returned") -> pl.Expr:
    """
    New: the share of the list down to k that nobody had before.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``new@k``. Null for a user without an item at rank ≤ k (with
        ``divide_by="k"``: without a list).

    Notes
    -----
    Reads ``history=``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> run.rank.evaluate(rf.metrics.new_at(2), history=history.head(2)).item(0, "new@2")
    0.5
    """
    return mean_of_list((_popularity == 0).cast(pl.Float64), k, divide_by)


@labelled(
    "popularity_lift",
    value_range=(-1, inf),
    higher_is_better=None,
    in_words="Do we show users more popular items than they choose by themselves?",
)
def popularity_lift_at(k: int | None = None) -> pl.Expr:
    """
    Popularity lift: mean popularity of the list down to k / mean popularity of the profile − 1.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.

    Returns
    -------
    Expr
        Float64 ≥ -1, named ``popularity_lift@k``; > 0 where the list is more popular than the items
        that the user had before. Null for a user without an item at rank ≤ k or without a history.

    Notes
    -----
    Reads ``history=``. Abdollahpouri, Mansoury, Burke and Mobasher, *RMSE* 2019.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> run.rank.evaluate(rf.metrics.popularity_lift_at(2), history=history)[
    ...     "popularity_lift@2"
    ... ].item()
    -0.33333333333333337
    """
    return mean_of_list(_popularity, k) / pl.col("profile_popularity").max() - 1


@labelled("filled", in_words="How many of the places do we fill?")
def filled_at(k: int) -> pl.Expr:
    """
    Filled: items of the list down to k / k, the share of k places that are filled.

    Parameters
    ----------
    k
        Cut-off.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``filled@k``. Null for a user without a list.

    Notes
    -----
    RecTools calls it SufficientReco; here it is a value per user.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> run.rank.evaluate(rf.metrics.filled_at(5)).item(0, "filled@5")
    0.4
    """
    return divided(length_within(k), k)


@labelled(
    "relevant_novelty",
    plain="epc",
    aliases={"efd": "relevant_novelty(measure=efd)"},
    value_range=(0, inf),
    in_words="Do we show items that are both wanted and little known?",
)
def relevant_novelty_at(
    k: int | None = None,
    *,
    measure: Literal["epc", "efd"] = "epc",
    discount: PlaceDiscount = "log2",
) -> pl.Expr:
    """
    Relevant novelty: Σ discount·relevant·novelty / Σ discount over the list down to k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    measure
        ``"epc"``, expected popularity complement: the novelty is 1 − popularity / users; or
        ``"efd"``, expected free discovery: −log2(popularity / rows).
    discount
        The discount of a place: ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"none"`` = 1, or a number p: p^(rank − 1).

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``epc@k`` or ``relevant_novelty(measure=efd)@k``, in short ``efd@k``.
        Null for a user without an item at rank ≤ k.

    Notes
    -----
    Reads ``history=`` and the truth. Vargas and Castells, *RecSys* 2011. An item that nobody
    had counts in ``efd`` as if one user had it, and has novelty 1 in ``epc``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> run.rank.evaluate("epc@2", truth=truth, history=history)["epc@2"].round(4).item()
    0.2901
    """
    epc = 1 - _popularity / _users
    novelty = epc if measure == "epc" else _bits(_rows, _interactions)
    worth = pl.when(in_list(k)).then(discount_of_place(discount)).sum()
    novelty_of_hits = discount_of_place(discount) * relevant.cast(pl.Float64) * novelty
    return pl.when(worth > 0).then(pl.when(in_list(k)).then(novelty_of_hits).sum() / worth)


@labelled(
    "serendipity", in_words="Do we show wanted items that a popularity list would have missed?"
)
def serendipity_at(k: int | None = None, *, divide_by: DivideBy = "returned") -> pl.Expr:
    """
    Serendipity: the mean of relevant · max(P(rank) − P(popularity rank), 0), P(r) = (N + 1 − r)/N.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    divide_by
        ``"returned"`` = the number of items at rank ≤ k, or ``"k"``: missing ones count as 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``serendipity@k``; high where relevant items are ranked higher
        than by popularity. Null for a user without an item at rank ≤ k (with
        ``divide_by="k"``: without a list).

    Notes
    -----
    Reads ``history=``, the truth and N, the number of items of the catalogue (``items=``, else the
    history's). P of an item that nobody had is 0. RecTools has it too.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> history = pl.DataFrame({"user": [1, 2, 3, 4], "item": ["a", "a", "b", "a"]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> one = rf.metrics.serendipity_at(1)
    >>> run[1:].with_columns(rank=1).rank.evaluate(one, truth=truth, history=history).item(0, 1)
    0.5
    """
    n = pl.col("catalogue")
    of_rank = (n + 1 - rank) / n
    of_popularity = ((n + 1 - pl.col("popularity_rank")) / n).fill_null(0.0)
    gain = (of_rank - of_popularity).clip(lower_bound=0) * relevant.cast(pl.Float64)
    return mean_of_list(gain, k, divide_by)


@labelled("ild", value_range=(0, inf), in_words="How different are the items within one list?")
def ild_at(
    k: int | None = None,
    *,
    of: OptionalColumn = None,
    distance: Literal["cosine", "hamming", "euclidean2"] = "cosine",
) -> pl.Expr:
    """
    Intra-list diversity: the mean distance between two items of the list down to k.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    of
        The column of ``items=`` with the values of an item: a list of text (genres), text, or a
        list of numbers (a vector). Optional if there is one column of lists.
    distance
        ``"cosine"`` = 1 − cosine; ``"hamming"``, for sets, = the number of values that only one of
        the two has; ``"euclidean2"``, for vectors, = the squared Euclidean distance.

    Returns
    -------
    Expr
        Float64 ≥ 0, named ``ild(of=…)@k``. Null for a user with fewer than two items at rank ≤ k
        whose values are known.

    Notes
    -----
    Reads ``items=``. An item that is missing from it, or has a null value, is in no pair. An empty
    list or a vector of zeros has cosine 0 with all others. Needs NumPy. Ziegler, McNee, Konstan and
    Lausen, *WWW* 2005; RecTools has ``"hamming"``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> genres = [["war", "drama"], ["war"], ["farce"]]
    >>> items = pl.DataFrame({"item": ["a", "b", "c"], "genre": genres})
    >>> run.rank.evaluate("ild(distance=hamming)@3", items=items).item(0, 1)
    2.0
    """
    pairs = pl.when(in_list(k)).then(pl.col(registry.name("pairs_above", of=of))).sum()
    apart = (
        pl.when(in_list(k))
        .then(pl.col(registry.name("distance_above", of=of, distance=distance)))
        .sum()
    )
    return pl.when(pairs > 0).then(apart / pairs)


def _bits(whole: pl.Expr, had: pl.Expr) -> pl.Expr:
    """Return the surprise of an item; one that nobody had counts as if one had it."""
    return (whole / had.fill_null(1).clip(1)).log(2)
