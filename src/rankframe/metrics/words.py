"""The words of the formulas: what the metrics of all families say about one user's rows.

A word marked ``expected_as`` has an exact expectation under ties, and so has a metric that knows
positions by such words only.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec

import polars as pl

from rankframe.labels import Aggregate, Gain, made_for_ties
from rankframe.metrics import ties
from rankframe.metrics.gains import (
    discount,
    follows_grades,
    gain_of,
    has_gain_of_zero,
    of_gain,
)

P = ParamSpec("P")

rank = pl.col("rank")
relevance = pl.col("relevance")
relevant = pl.col("relevant")
hits = pl.col("hits")
total = pl.col("total")
judged = pl.col("judged")
#: R, the number of relevant items
R = relevant.sum().cast(pl.Int64)
#: n, the length of the list
n = pl.col("retrieved").max()


def expected_as(
    expectation: Callable[P, pl.Expr],
) -> Callable[[Callable[P, pl.Expr]], Callable[P, pl.Expr]]:
    """Say the expectation instead, where a metric is made for a table with ties."""

    def decorate(plain: Callable[P, pl.Expr]) -> Callable[P, pl.Expr]:
        @functools.wraps(plain)
        def word(*args: P.args, **kwargs: P.kwargs) -> pl.Expr:
            return (expectation if made_for_ties() else plain)(*args, **kwargs)

        return word

    return decorate


def within(k: ties.Cut) -> pl.Expr:
    """A relevant item among the first k."""
    return relevant & _inside(rank, k)


@expected_as(ties.chance_within)
def chance_within(k: ties.Cut) -> pl.Expr:
    """1 for an item among the first k, else 0."""
    return _inside(rank, k).fill_null(value=False).cast(pl.Float64)


@expected_as(ties.count_within)
def count_within(which: pl.Expr, k: ties.Cut) -> pl.Expr:
    """Number of these items among the first k."""
    return (which & _inside(rank, k)).sum().cast(pl.Int64)


def found(k: ties.Cut) -> pl.Expr:
    """Number of relevant items among the first k."""
    return count_within(relevant, k)


def certain(k: int | None) -> pl.Expr:
    """The same, to divide by or to square: under ties only the whole list's number is certain."""
    return found(None) if k is None else within(k).sum().cast(pl.Int64)


@expected_as(ties.any_within)
def any_within(k: int | None) -> pl.Expr:
    """1 if a relevant item is among the first k, else 0."""
    return (found(k) > 0).cast(pl.Float64)


@expected_as(ties.first_reciprocal)
def first_reciprocal(k: int | None) -> pl.Expr:
    """1 / rank of the first relevant item among the first k, or 0."""
    return (1 / rank.filter(within(k)).min()).fill_null(0.0)


@expected_as(ties.precisions)
def precisions(k: int | None) -> pl.Expr:
    """Σ hits / rank over the relevant items among the first k."""
    return (hits / rank).filter(within(k)).sum()


@expected_as(ties.discount_within)
def discount_within(k: int | None, base: float | None = None) -> pl.Expr:
    """The discount of an item's rank, 0 below k."""
    return discount_down_to(k, rank, base)


@expected_as(ties.persistence)
def persistence(p: float, k: int | None = None) -> pl.Expr:
    """(1 − p)·p^(rank − 1), the weight of a rank for one who reads on with chance p; 0 below k."""
    return persistence_down_to(k, rank, p)


@expected_as(ties.blended_ratios)
def blended_ratios(beta: float, gain: Gain, k: int | None) -> pl.Expr:
    """Σ of the blended ratio over the relevant items among the first k."""
    return blended_ratio(beta, gain).filter(within(k)).sum()


def blended_ratio(beta: float, gain: Gain) -> pl.Expr:
    """(hits + β·gains) / (rank + β·ideal gains), at a rank."""
    gains, ideal = pl.col(of_gain("gains", gain)), pl.col(of_gain("ideal_gains", gain))
    return (hits + beta * gains) / (rank + beta * ideal)


@expected_as(ties.shared_gains)
def shared_gains(gain: Gain, k: int | None) -> pl.Expr:
    """Shared gain / rank, at a rank; 0 below k."""
    shared = pl.col(of_gain("shared", gain))
    return pl.when(_inside(rank, k)).then(shared / rank).otherwise(0.0)


@expected_as(ties.places_left)
def places_left(k: int) -> pl.Expr:
    """Number of cut-offs from the item's rank to k."""
    return pl.when(rank <= k).then(float(k) - rank + 1)


@expected_as(ties.level_gains)
def level_gains() -> pl.Expr:
    """Σ gain · discount · level weight."""
    return (gain_of("linear") * discount(rank) * pl.col("level_weight")).sum()


@expected_as(ties.misplaced)
def misplaced(k: int | None) -> pl.Expr:
    """Number of pairs of a relevant item among the first k and one above it that is not."""
    return (rank - hits).filter(within(k)).sum()


@expected_as(ties.kept_of_bpref)
def kept_of_bpref() -> pl.Expr:
    """Σ over the relevant items of 1 − min(judged non-relevant above, R) / min(their number, R)."""
    above = pl.col("judged_hits") - hits
    lost = pl.min_horizontal(above, total) / pl.min_horizontal("nonrelevant", total)
    return pl.when(above > 0).then(1 - lost).otherwise(1.0).filter(within(None)).sum()


def listed(k: int | None) -> pl.Expr:
    """min(k, length of the list)."""
    return n if k is None else pl.min_horizontal(n, k)


@expected_as(ties.deepest)
def deepest(k: int | None) -> pl.Expr:
    """Last place of the list down to k: its length, or a hit's rank that a gap put further down."""
    return pl.max_horizontal(listed(k), rank.filter(within(k)).max())


def attainable(k: int | None) -> pl.Expr:
    """min(k, R); without k, the length of the list stands for it."""
    return pl.min_horizontal(R, n if k is None else k)


def gain_sum(gain: Gain, weight: pl.Expr) -> pl.Expr:
    """Σ gain·weight; the weight is 0, not null, where a row does not count."""
    # 0·NaN is NaN: a grade without a gain must show wherever it stands
    summed = (gain_of(gain) * weight).sum()
    # what reads ``judged`` reduces the rows of grade 0, too, and those of a grade < 0
    return pl.when(judged.any()).then(summed) if has_gain_of_zero(gain) else summed


def ideal_place_of(gain: Gain, column: str = "ideal_rank") -> pl.Expr:
    """The position in the ideal list, highest gain first; null where the gain is 0."""
    return pl.col(column if follows_grades(gain) else of_gain(column, gain))


def ideal_gain_sum(gain: Gain, k: int | None, base: float | None = None) -> pl.Expr:
    """Σ gain·discount over the first k places of the ideal list."""
    if not follows_grades(gain):
        return gain_sum(gain, discount_down_to(k, ideal_place_of(gain), base))
    place, grade = pl.col("ideal_place"), pl.col("ideal_relevance")
    binary = (place <= total).cast(pl.Float64)  # the first R places hold the relevant items
    gains = binary if gain == "binary" else gain_of(gain, grade)
    return (gains * discount_down_to(k, place, base)).sum()


def discount_down_to(k: int | None, position: pl.Expr, base: float | None = None) -> pl.Expr:
    """The discount of a position, 0 below k."""
    return pl.when(_inside(position, k)).then(discount(position, base)).otherwise(0.0)


def persistence_down_to(k: pl.Expr | int | None, position: pl.Expr, p: float) -> pl.Expr:
    """The weight of a position for such a reader, 0 below k."""
    weight = (1 - p) * pl.lit(p).pow(position - 1)
    return pl.when(_inside(position, k)).then(weight).otherwise(0.0)


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Part / whole, and 0 where the whole is 0."""
    return pl.when(whole > 0).then(part / whole).otherwise(0.0)


def _floored_logarithm(value: pl.Expr) -> pl.Expr:
    return value.clip(lower_bound=1e-5).log()


#: exp(mean(ln(max(value, 1e-5)))) over users, as in trec_eval
floored_geometric_mean = Aggregate(of_each=_floored_logarithm, back=pl.Expr.exp)


def where_relevant(value: pl.Expr) -> pl.Expr:
    """Null for a user without a relevant item: 0/0 is not 0."""
    return pl.when(relevant.any()).then(value)


def check_persistence(p: float) -> None:
    """Check the chance that a reader goes on to the next item."""
    if not 0 < p < 1:
        msg = f"p must be a number between 0 and 1, not {p}"
        raise ValueError(msg)


def _inside(position: pl.Expr, k: ties.Cut) -> pl.Expr:
    return position.is_not_null() if k is None else position <= k
