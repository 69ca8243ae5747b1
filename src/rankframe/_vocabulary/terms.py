"""The terms of derivations: rank, grade, and running sums over a list."""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from rankframe._request import gain_functions

rank = pl.col("rank")
relevance = pl.col("relevance")
relevant = pl.col("relevant")
is_judged = relevance >= 0
is_graded = relevance > 0
is_listed = rank.is_not_null()
#: What lists are put in ideal order by: an unjudged item is below all judged ones.
grade = pl.when(is_judged).then(relevance.cast(pl.Float64)).otherwise(-1.0)


def ideal_discounted() -> pl.Expr:
    """Discounted gain at its place in the ideal list."""
    return gain_functions.gain_of("linear") * gain_functions.discount(pl.col("ideal_rank"))


def running(value: pl.Expr, keys: Sequence[str], order: str = "rank") -> pl.Expr:
    """Running sum in the order of a rank, null where the item has none."""
    above = value.cum_sum().over(keys, order_by=order, nulls_last=True)
    return pl.when(pl.col(order).is_not_null()).then(above)


def product_above(factor: pl.Expr, keys: Sequence[str], order: str) -> pl.Expr:
    """Product over the rows above this one."""
    return factor.cum_prod().shift(1, fill_value=1.0).over(keys, order_by=order, nulls_last=True)


def count(number: pl.Expr) -> pl.Expr:
    """Cast a count to Int64: below 0, unsigned counts of Polars wrap around."""
    return number.cast(pl.Int64)
