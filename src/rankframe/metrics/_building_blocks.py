"""Building blocks that the metrics of all families share: expressions on one user's rows.

A building block decorated with ``expected_as`` also has an exact expectation under ties. So does
any metric that uses positions only through such blocks.
"""

import functools
from collections.abc import Callable
from typing import ParamSpec

import polars as pl

from rankframe._request import registry
from rankframe._request.gain_functions import (
    Discounting,
    discount,
    divided,
    gain_of,
)
from rankframe._request.labels import Aggregate, in_tie_mode
from rankframe._request.parameters import Gain

P = ParamSpec("P")

rank = pl.col("rank")
relevance = pl.col("relevance")
relevant = pl.col("relevant")
hits = pl.col("hits")
total = pl.col("total")
judged = pl.col("judged")
listed = pl.col("listed")
#: under ties: the first position of the item's block, its size, its relevant items and those above
block = pl.col("block")
tied = pl.col("tied")
tied_hits = pl.col("tied_hits")
hits_above = pl.col("hits_above")

Cut = int | pl.Expr | None
#: R, the number of relevant items
R = relevant.sum().cast(pl.Int64)
#: n, the length of the list
n = pl.col("retrieved").max()


def expected_as(
    expectation: Callable[P, pl.Expr],
) -> Callable[[Callable[P, pl.Expr]], Callable[P, pl.Expr]]:
    """Return the expectation instead when a metric is made for a table with ties."""

    def decorate(plain: Callable[P, pl.Expr]) -> Callable[P, pl.Expr]:
        @functools.wraps(plain)
        def word(*args: P.args, **kwargs: P.kwargs) -> pl.Expr:
            return (expectation if in_tie_mode() else plain)(*args, **kwargs)

        return word

    return decorate


def inside(position: pl.Expr, k: Cut) -> pl.Expr:
    """A position among the first k; without k, any."""
    return position.is_not_null() if k is None else position <= k


def within(k: Cut) -> pl.Expr:
    """A relevant item among the first k."""
    return relevant & inside(rank, k)


def _expected_chance_within(k: Cut) -> pl.Expr:
    """Chance that the item is among the first k."""
    return (_places(k) / tied).fill_null(0.0)


@expected_as(_expected_chance_within)
def chance_within(k: Cut) -> pl.Expr:
    """1 for an item among the first k, else 0."""
    return inside(rank, k).fill_null(value=False).cast(pl.Float64)


def _expected_count_within(which: pl.Expr, k: Cut) -> pl.Expr:
    """Expected number of these items among the first k; without k, the exact number."""
    if k is None:
        return (which & block.is_not_null()).sum().cast(pl.Int64)
    return pl.when(which).then(_expected_chance_within(k)).sum()


@expected_as(_expected_count_within)
def count_within(which: pl.Expr, k: Cut) -> pl.Expr:
    """Number of these items among the first k."""
    return (which & inside(rank, k)).sum().cast(pl.Int64)


def hits_within(k: Cut) -> pl.Expr:
    """Number of relevant items among the first k."""
    return count_within(relevant, k)


def divisor_hits(k: int | None) -> pl.Expr:
    """The same, for use as a divisor or squared: under ties it is exact only without k."""
    return hits_within(None) if k is None else within(k).sum().cast(pl.Int64)


def _expected_any_within(k: int | None) -> pl.Expr:
    """Chance of a relevant item among the first k."""
    return _first_hit(k).list.sum().fill_null(0.0)


@expected_as(_expected_any_within)
def any_within(k: int | None) -> pl.Expr:
    """1 if a relevant item is among the first k, else 0."""
    return (hits_within(k) > 0).cast(pl.Float64)


def _expected_all_within(k: int | None) -> pl.Expr:
    """Chance that all relevant items are among the first k, where one block may be cut."""
    before = pl.int_ranges(0, tied_hits)
    chances = (_places(k) - before) / (tied - before)
    chance = chances.list.eval(pl.element().cum_prod()).list.last()
    return pl.when(relevant).then(chance.fill_null(0.0)).min()


@expected_as(_expected_all_within)
def all_within(k: int | None) -> pl.Expr:
    """1 if every relevant item is among the first k, else 0."""
    return (hits_within(k) == R).cast(pl.Float64)


def _expected_first_reciprocal(k: int | None) -> pl.Expr:
    """Expected 1 / position of the first relevant item among the first k, or 0."""
    places = pl.int_ranges(_first_block(), _first_block() + _first_hit(k).list.len())
    return (_first_hit(k) / places).list.sum().fill_null(0.0)


@expected_as(_expected_first_reciprocal)
def first_reciprocal(k: int | None) -> pl.Expr:
    """1 / rank of the first relevant item among the first k, or 0."""
    first = pl.when(within(None)).then(rank).min()  # one minimum for all cut-offs
    return pl.when(inside(first, k)).then(1 / first).otherwise(0.0)


def _expected_reciprocals(k: int | None) -> pl.Expr:
    """Expected Σ 1 / position over the relevant items among the first k."""
    return pl.when(relevant).then(_harmonic(block, _places(k)) / tied).sum()


@expected_as(_expected_reciprocals)
def reciprocals(k: int | None) -> pl.Expr:
    """Σ 1 / rank over the relevant items among the first k."""
    return pl.when(within(k)).then(1 / rank).sum()


def _expected_precisions(k: int | None) -> pl.Expr:
    """Σ over the relevant items of the expected precision at the item, if that is among k."""
    slope = _at_each_other_place(tied_hits - 1)
    linear = slope * _places(k)
    harmonic = (hits_above + 1 - block * slope) * _harmonic(block, _places(k))
    return pl.when(relevant).then((linear + harmonic) / tied).sum()


@expected_as(_expected_precisions)
def precisions(k: int | None) -> pl.Expr:
    """Σ hits / rank over the relevant items among the first k."""
    return pl.when(within(k)).then(hits / rank).sum()


def _expected_hit_ranks(k: int | None) -> pl.Expr:  # noqa: ARG001  (``divisor_hits`` refuses a cut)
    """Expected Σ rank over the hits."""
    return pl.when(relevant).then(block + (tied - 1) / 2).sum()


@expected_as(_expected_hit_ranks)
def hit_ranks(k: int | None) -> pl.Expr:
    """Σ rank over the relevant items among the first k."""
    return pl.when(within(k)).then(rank).sum()


def _expected_discount_within(k: int | None, by: Discounting = None) -> pl.Expr:
    """Expected discount of the item, 0 below k."""
    named = {"discount": by} if isinstance(by, str | tuple) else {"base": by}
    return (pl.col(registry.name("discounts", k=k, **named)) / tied).fill_null(0.0)


@expected_as(_expected_discount_within)
def discount_within(k: int | None, by: Discounting = None) -> pl.Expr:
    """The discount of an item's rank, 0 below k."""
    if by is not None:
        return discount_down_to(k, rank, by)
    return pl.when(inside(rank, k)).then(pl.col("rank_discount")).otherwise(0.0)


def _expected_persistence(p: float, k: int | None = None) -> pl.Expr:
    """(1 − p)·p^(position − 1) in expectation, 0 below k."""
    weight = pl.lit(p).pow(block - 1) * (1 - pl.lit(p).pow(_places(k))) / tied
    return weight.fill_null(0.0)


@expected_as(_expected_persistence)
def persistence(p: float, k: int | None = None) -> pl.Expr:
    """(1 − p)·p^(rank − 1), the weight of a rank if a reader goes on with chance p; 0 below k."""
    return persistence_down_to(k, rank, p)


def _expected_blended_ratios(beta: float, gain: Gain, k: int | None) -> pl.Expr:
    """Σ over the relevant items of the expected blended ratio at the item, if that is among k."""
    gains = pl.col(registry.name("tied_gains", gain=gain)) - gain_of(gain)
    slope = _at_each_other_place(tied_hits - 1 + beta * gains)
    start = (
        hits_above + 1 + beta * (pl.col(registry.name("gains_above", gain=gain)) + gain_of(gain))
    )
    ideal = pl.col(registry.name("ideal_gains_along", gain=gain)).list.head(_places(k))
    below = pl.int_ranges(0, _places(k))
    ratios = (start + slope * below) / (block + below + beta * ideal)
    return pl.when(relevant).then(ratios.list.sum() / tied).sum()


@expected_as(_expected_blended_ratios)
def blended_ratios(beta: float, gain: Gain, k: int | None) -> pl.Expr:
    """Σ of the blended ratio over the relevant items among the first k."""
    return pl.when(within(k)).then(blended_ratio(beta, gain)).sum()


def blended_ratio(beta: float, gain: Gain) -> pl.Expr:
    """(hits + β·gains) / (rank + β·ideal gains), at a rank."""
    gains, ideal = (pl.col(registry.name(column, gain=gain)) for column in ("gains", "ideal_gains"))
    return (hits + beta * gains) / (rank + beta * ideal)


def _expected_shared_gains(gain: Gain, k: int | None) -> pl.Expr:
    """Expected shared gain / position of the item, 0 below k."""
    own, inside = gain_of(gain), pl.col(registry.name("tied_shared", gain=gain))
    slope = _at_each_other_place(inside - own)
    start = pl.col(registry.name("shared_above", gain=gain)) + own - block * slope
    sum_over_block = slope * _places(k) + start * _harmonic(block, _places(k))
    return (sum_over_block / tied).fill_null(0.0)


@expected_as(_expected_shared_gains)
def shared_gains(gain: Gain, k: int | None) -> pl.Expr:
    """Shared gain / rank, at a rank; 0 below k."""
    shared = pl.col(registry.name("shared", gain=gain))
    return pl.when(inside(rank, k)).then(shared / rank).otherwise(0.0)


def _expected_places_left(k: int) -> pl.Expr:
    """Expected number of cut-offs from the item's position to k."""
    places = _places(k)
    return places * ((k - block + 1) - (places - 1) / 2) / tied


@expected_as(_expected_places_left)
def places_left(k: int) -> pl.Expr:
    """Number of cut-offs from the item's rank to k."""
    return pl.when(rank <= k).then(float(k) - rank + 1)


def _expected_level_gains() -> pl.Expr:
    """Σ gain · discount · level weight, in expectation."""
    discounts = pl.int_ranges(block, block + tied).list.eval(discount(pl.element()))
    weight = (pl.col("level_weight_along") * discounts).list.sum() / tied
    return (gain_of("linear") * weight).sum()


@expected_as(_expected_level_gains)
def level_gains() -> pl.Expr:
    """Σ gain · discount · level weight."""
    return (gain_of("linear") * discount(rank) * pl.col("level_weight")).sum()


def _expected_misplaced(k: int | None) -> pl.Expr:  # noqa: ARG001  (``divisor_hits`` refuses a cut)
    """Expected number of pairs of a relevant item and an irrelevant one above it."""
    above = (block - 1 - hits_above) + (tied - tied_hits) / 2
    return pl.when(relevant).then(above).sum()


@expected_as(_expected_misplaced)
def misplaced(k: int | None) -> pl.Expr:
    """Number of pairs of a relevant item among the first k and an irrelevant one above it."""
    return pl.when(within(k)).then(rank - hits).sum()


def _expected_kept_of_bpref() -> pl.Expr:
    """Σ over the relevant items of 1 − min(judged non-relevant above, R) / min(their number, R)."""
    total, nonrelevant = pl.col("total"), pl.col("nonrelevant")
    above, inside = pl.col("nonrelevant_above"), pl.col("tied_nonrelevant")
    room = total - above  # 0 to ``inside`` more are above, all equally likely
    within = above + (room * (room + 1) / 2 + (inside - room) * room) / (inside + 1)
    expected = pl.when(room >= inside).then(above + inside / 2).otherwise(within)
    expected = pl.when(room <= 0).then(total).otherwise(expected)
    lost = expected / pl.min_horizontal(nonrelevant, total)
    kept = pl.when(above + inside > 0).then(1 - lost).otherwise(1.0)
    return pl.when(relevant & block.is_not_null()).then(kept).sum()


@expected_as(_expected_kept_of_bpref)
def kept_of_bpref() -> pl.Expr:
    """Σ over the relevant items of 1 − min(judged non-relevant above, R) / min(their number, R)."""
    above = pl.col("judged_hits") - hits
    lost = pl.min_horizontal(above, total) / pl.min_horizontal("nonrelevant", total)
    return pl.when(within(None)).then(pl.when(above > 0).then(1 - lost).otherwise(1.0)).sum()


def returned(k: int | None) -> pl.Expr:
    """Number of items at rank ≤ k, in each row; min(k, n) where ranks have no gaps."""
    return pl.col(registry.name("retrieved", k=k))


def list_length(k: int | None) -> pl.Expr:
    """Number of items at rank ≤ k."""
    return returned(k).max()


def n_of_judged(k: int | None = None) -> pl.Expr:
    """The same of every judged user, including users without an item of grade > 0."""
    return pl.when(judged.is_not_null()).then(returned(k)).max()


def _expected_deepest(k: int | None) -> pl.Expr:  # noqa: ARG001  (``divisor_hits`` refuses a cut)
    """Last place of the list."""
    last = pl.when(relevant).then(block + tied - 1).max()
    return pl.max_horizontal(pl.col("retrieved").first(), last)


@expected_as(_expected_deepest)
def deepest(k: int | None) -> pl.Expr:
    """Last place of the list down to k: its number of items, or the rank of a hit below a gap."""
    return pl.max_horizontal(list_length(k), pl.when(within(k)).then(rank).max())


def attainable(k: int | None) -> pl.Expr:
    """min(k, R); without k, min(length of the list, R)."""
    return pl.min_horizontal(R, n if k is None else k)


#: Gains that take no longer than to read a column; the others are derived once.
_SIMPLE = "binary", "linear"


def gain_sum(gain: Gain, weight: pl.Expr) -> pl.Expr:
    """Σ gain·weight; the weight is 0, not null, where a row does not count."""
    # 0·NaN is NaN: a grade without a gain must show at any rank
    own = gain_of(gain) if gain in _SIMPLE else pl.col(registry.name("gain", gain=gain))
    return (own * weight).sum()


def ideal_gain_sum(gain: Gain, k: Cut, by: Discounting = None) -> pl.Expr:
    """Σ gain·discount over the first k places of the ideal list."""
    place, gains = pl.col("ideal_place"), gain_of("linear", pl.col("ideal_relevance"))
    if gain == "binary":  # the first R places hold the relevant items
        gains = (place <= total).cast(pl.Float64)
    elif gain not in _SIMPLE:
        gains = pl.col(registry.name("ideal_gain", gain=gain))
    if by is not None:
        return (gains * discount_down_to(k, place, by)).sum()
    return (gains * pl.when(inside(place, k)).then(pl.col("place_discount")).otherwise(0.0)).sum()


def discount_down_to(k: Cut, position: pl.Expr, by: Discounting = None) -> pl.Expr:
    """The discount of a position, 0 below k."""
    return pl.when(inside(position, k)).then(discount(position, by)).otherwise(0.0)


def persistence_down_to(k: pl.Expr | int | None, position: pl.Expr, p: float) -> pl.Expr:
    """(1 − p)·p^(position − 1), 0 below k."""
    weight = (1 - p) * pl.lit(p).pow(position - 1)
    return pl.when(inside(position, k)).then(weight).otherwise(0.0)


def in_list(k: int | None) -> pl.Expr:
    """An item of the list, down to k."""
    return listed if k is None else listed & (rank <= k)


def _expected_sum_of_list(value: pl.Expr, k: int | None) -> pl.Expr:
    """Σ value · chance to be among the first k."""
    return pl.when(listed).then(value * _expected_chance_within(k)).sum()


@expected_as(_expected_sum_of_list)
def sum_of_list(value: pl.Expr, k: int | None) -> pl.Expr:
    """Σ value over the list down to k."""
    return pl.when(in_list(k)).then(value).sum()


def _expected_length_within(k: int | None) -> pl.Expr:
    """Number of items at rank ≤ k: under ties they are uncertain, but their number is exact."""
    return pl.when(listed).then(_expected_chance_within(k)).sum()


@expected_as(_expected_length_within)
def length_within(k: int | None) -> pl.Expr:
    """Number of items at rank ≤ k."""
    return in_list(k).sum().cast(pl.Float64)


def mean_of_list(value: pl.Expr, k: int | None, divide_by: str = "returned") -> pl.Expr:
    """Mean of a value over the list down to k; ``divide_by="k"`` counts missing items as 0."""
    if divide_by == "k" and k is not None:
        return divided(sum_of_list(value, k), k)
    items = length_within(k)
    return pl.when(items > 0).then(sum_of_list(value, k) / items)


def discount_of_place(discount: str | float) -> pl.Expr:
    """Discount of a place in the list."""
    if discount == "none":
        return pl.lit(1.0) + 0 * rank
    if discount == "log2":
        return 1 / (rank + 1).log(2)
    if discount == "clipped":
        return 1 / pl.max_horizontal(rank, 2).log(2)
    if discount == "hit":
        return relevant.cast(pl.Float64)
    return pl.lit(float(discount)).pow(rank - 1)


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Part / whole, and 0 where the whole is 0."""
    return pl.when(whole > 0).then(part / whole).otherwise(0.0)


def _floored_logarithm(value: pl.Expr) -> pl.Expr:
    return value.clip(lower_bound=1e-5).log()


#: exp(mean(ln(max(value, 1e-5)))) over users, as in trec_eval
floored_geometric_mean = Aggregate(_floored_logarithm, pl.Expr.exp, epsilon=0.0)


def where_relevant(value: pl.Expr) -> pl.Expr:
    """Null for a user without a relevant item: 0/0 is not 0."""
    return pl.when(relevant.any()).then(value)


def where_graded(value: pl.Expr) -> pl.Expr:
    """Null for a user without an item of grade > 0."""
    return pl.when((relevance > 0).any()).then(value)


def _places(k: Cut) -> pl.Expr:
    """Number of places of the block among the first k."""
    return tied if k is None else (k - block + 1).clip(0, tied)


def _at_each_other_place(rest: pl.Expr) -> pl.Expr:
    """Expected value of the others at each place of the block other than the item's own."""
    return pl.when(tied > 1).then(rest / (tied - 1)).otherwise(0.0)


def _first_block() -> pl.Expr:
    return pl.when(relevant).then(block).min()


def _first_hit(k: int | None) -> pl.Expr:
    """Chance, for each place of the first block that has any, that the first hit is there."""
    is_first = relevant & (hits_above == 0)
    size, hits = pl.when(is_first).then(tied).max(), pl.when(is_first).then(tied_hits).max()
    places = size - hits + 1
    if k is not None:
        places = pl.min_horizontal(places, (k + 1 - _first_block()).clip(0))
    before = pl.int_ranges(0, pl.when(hits > 0).then(places))
    missed = (size - hits - before) / (size - before)
    none_above = missed.list.eval(pl.element().cum_prod().shift(1, fill_value=1.0))
    return none_above * hits / (size - before)


def _harmonic(start: pl.Expr, length: pl.Expr) -> pl.Expr:
    """Σ 1/i over ``length`` numbers from ``start`` on, to the last digits.

    ψ(start + length) − ψ(start): twelve steps of the recurrence, then the asymptotic series. Its
    logarithms are combined so that nothing cancels.
    """
    start = start.cast(pl.Float64)  # the products below would overflow 64-bit integers
    steps = pl.sum_horizontal(length / ((start + i) * (start + length + i)) for i in range(12))
    low = start + 12
    high = low + length
    return steps + (length / low).log1p() + length / (2 * low * high) + _tail(low) - _tail(high)


def _tail(x: pl.Expr) -> pl.Expr:
    y = 1 / x**2
    return y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
