"""The words again, for a table with ties: exact expectations over all orders of each block.

A block is a group of equal scores: ``tied`` items from position ``block`` on, ``tied_hits`` of them
relevant, below ``hits_above`` relevant ones. With blocks of one these are the plain words, which
the tests hold them to. McSherry and Najork, *ECIR* 2008.
"""

import polars as pl

from rankframe.labels import Gain
from rankframe.metrics.gains import discount, gain_of, of_gain

Cut = int | pl.Expr | None

block = pl.col("block")
tied = pl.col("tied")
tied_hits = pl.col("tied_hits")
hits_above = pl.col("hits_above")
relevant = pl.col("relevant")


def chance_within(k: Cut) -> pl.Expr:
    """Chance that the item is among the first k."""
    return (_places(k) / tied).fill_null(0.0)


def count_within(which: pl.Expr, k: Cut) -> pl.Expr:
    """Expected number of these items among the first k; without k it is certain."""
    if k is None:
        return (which & block.is_not_null()).sum().cast(pl.Int64)
    return chance_within(k).filter(which).sum()


def any_within(k: int | None) -> pl.Expr:
    """Chance of a relevant item among the first k."""
    return _first_hit(k).list.sum().fill_null(0.0)


def first_reciprocal(k: int | None) -> pl.Expr:
    """Expected 1 / position of the first relevant item among the first k, or 0."""
    places = pl.int_ranges(_first_block(), _first_block() + _first_hit(k).list.len())
    return (_first_hit(k) / places).list.sum().fill_null(0.0)


def precisions(k: int | None) -> pl.Expr:
    """Σ over the relevant items of the expected precision at the item, if that is among k."""
    others = _at_each_other_place(tied_hits - 1)
    linear = others * _places(k)
    harmonic = (hits_above + 1 - block * others) * _harmonic(block, _places(k))
    return ((linear + harmonic) / tied).filter(relevant).sum()


def discount_within(k: int | None, base: float | None = None) -> pl.Expr:
    """Expected discount of the item, 0 below k."""
    parameters = [str(k or ""), *([] if base is None else [str(base)])]
    column = "discounts" if k is base is None else f"discounts({';'.join(parameters)})"
    return (pl.col(column) / tied).fill_null(0.0)


def persistence(p: float, k: int | None = None) -> pl.Expr:
    """(1 − p)·p^(position − 1) in expectation, 0 below k."""
    weight = pl.lit(p).pow(block - 1) * (1 - pl.lit(p).pow(_places(k))) / tied
    return weight.fill_null(0.0)


def blended_ratios(beta: float, gain: Gain, k: int | None) -> pl.Expr:
    """Σ over the relevant items of the expected blended ratio at the item, if that is among k."""
    gains = pl.col(of_gain("tied_gains", gain)) - gain_of(gain)
    slope = _at_each_other_place(tied_hits - 1 + beta * gains)
    start = hits_above + 1 + beta * (pl.col(of_gain("gains_above", gain)) + gain_of(gain))
    ideal = pl.col(of_gain("ideal_gains_along", gain)).list.head(_places(k))
    below = pl.int_ranges(0, _places(k))
    ratios = (start + slope * below) / (block + below + beta * ideal)
    return (ratios.list.sum() / tied).filter(relevant).sum()


def shared_gains(gain: Gain, k: int | None) -> pl.Expr:
    """Expected shared gain / position of the item, 0 below k."""
    own, inside = gain_of(gain), pl.col(of_gain("tied_shared", gain))
    others = _at_each_other_place(inside - own)
    start = pl.col(of_gain("shared_above", gain)) + own - block * others
    sum_over_block = others * _places(k) + start * _harmonic(block, _places(k))
    return (sum_over_block / tied).fill_null(0.0)


def places_left(k: int) -> pl.Expr:
    """Expected number of cut-offs from the item's position to k."""
    places = _places(k)
    return places * ((k - block + 1) - (places - 1) / 2) / tied


def level_gains() -> pl.Expr:
    """Σ gain · discount · level weight, in expectation."""
    discounts = pl.int_ranges(block, block + tied).list.eval(discount(pl.element()))
    weight = (pl.col("level_weight_along") * discounts).list.sum() / tied
    return (gain_of("linear") * weight).sum()


def misplaced(k: int | None) -> pl.Expr:  # noqa: ARG001  (``certain`` refuses a cut)
    """Expected number of pairs of a relevant item and one above it that is not."""
    above = (block - 1 - hits_above) + (tied - tied_hits) / 2
    return above.filter(relevant).sum()


def deepest(k: int | None) -> pl.Expr:  # noqa: ARG001  (``certain`` refuses a cut)
    """Last place of the list."""
    last = (block + tied - 1).filter(relevant).max()
    return pl.max_horizontal(pl.col("retrieved").first(), last)


def kept_of_bpref() -> pl.Expr:
    """Σ over the relevant items of 1 − min(judged non-relevant above, R) / min(their number, R)."""
    total, nonrelevant = pl.col("total"), pl.col("nonrelevant")
    above, inside = pl.col("nonrelevant_above"), pl.col("tied_nonrelevant")
    room = total - above  # the number above is one of 0…inside more, each with the same chance
    within = above + (room * (room + 1) / 2 + (inside - room) * room) / (inside + 1)
    expected = pl.when(room >= inside).then(above + inside / 2).otherwise(within)
    expected = pl.when(room <= 0).then(total).otherwise(expected)
    lost = expected / pl.min_horizontal(nonrelevant, total)
    kept = pl.when(above + inside > 0).then(1 - lost).otherwise(1.0)
    return kept.filter(relevant & block.is_not_null()).sum()


def _places(k: Cut) -> pl.Expr:
    """Number of places of the block among the first k."""
    return tied if k is None else (k - block + 1).clip(0, tied)


def _at_each_other_place(rest: pl.Expr) -> pl.Expr:
    """Expect at each place of the block but the item's own its share of what the others have."""
    return pl.when(tied > 1).then(rest / (tied - 1)).otherwise(0.0)


def _first_block() -> pl.Expr:
    return block.filter(relevant).min()


def _first_hit(k: int | None) -> pl.Expr:
    """Chance, for each place of the first block that has any, that the first hit is there."""
    is_first = relevant & (hits_above == 0)
    size, hits = tied.filter(is_first).max(), tied_hits.filter(is_first).max()
    places = size - hits + 1
    if k is not None:
        places = pl.min_horizontal(places, (k + 1 - _first_block()).clip(0))
    before = pl.int_ranges(0, pl.when(hits > 0).then(places))
    missed = (size - hits - before) / (size - before)
    none_above = missed.list.eval(pl.element().cum_prod().shift(1, fill_value=1.0))
    return none_above * hits / (size - before)


def _harmonic(start: pl.Expr, length: pl.Expr) -> pl.Expr:
    """Σ 1/i over ``length`` numbers from ``start`` on, to the last digits.

    ψ(start + length) − ψ(start): twelve steps up, then the asymptotic series, its logarithms
    taken together so that nothing cancels.
    """
    start = start.cast(pl.Float64)  # the products below leave 64-bit integers
    steps = pl.sum_horizontal(length / ((start + i) * (start + length + i)) for i in range(12))
    low = start + 12
    high = low + length
    return steps + (length / low).log1p() + length / (2 * low * high) + _tail(low) - _tail(high)


def _tail(x: pl.Expr) -> pl.Expr:
    y = 1 / x**2
    return y * (1 / 12 - y * (1 / 120 - y * (1 / 252 - y * (1 / 240 - y / 132))))
