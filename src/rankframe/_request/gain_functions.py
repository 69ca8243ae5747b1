"""Gains of grades and discounts of positions."""

from collections.abc import Sequence
from typing import TypeAlias

import polars as pl

from rankframe import _sizes
from rankframe._request.parameters import Gain

_relevance = pl.col("relevance")


def gain_of(gain: Gain, of: pl.Expr = _relevance) -> pl.Expr:
    """The gain of a grade: 0 for an unmapped grade ≤ 0, NaN for an unmapped grade > 0.

    ``"binary"`` reads ``relevant`` whatever ``of`` is.
    """
    if gain == "binary":
        return pl.col("relevant").cast(pl.Float64)
    grade = of.cast(pl.Float64).clip(lower_bound=0)
    if gain == "linear":
        return grade
    if gain == "exponential":
        return pl.lit(2.0).pow(grade) - 1
    gains = dict(gain)
    nan = float("nan")
    if len(gains) > _sizes.WEIGHTS_IN_CHAIN:
        return grade.replace_strict({0.0: 0.0, **gains}, default=nan, return_dtype=pl.Float64)
    mapped = pl.when(grade == 0).then(0.0).otherwise(nan)
    for level, value in gains.items():
        mapped = pl.when(of == level).then(value).otherwise(mapped)
    return mapped


def divided(part: pl.Expr, whole: pl.Expr | float) -> pl.Expr:
    """Part / whole, exact to the last bit even if the whole is a literal."""
    # Polars multiplies by the reciprocal of a literal: 3 hits of 10 would be 0.30000000000000004
    return part / (part * 0 + whole)


def stop_chance(max_grade: float | None) -> pl.Expr:
    """Chance that a reader stops at a row, (2^g − 1) / 2^max; NaN for a grade above the maximum."""
    top = top_of(max_grade)
    grade = _relevance.cast(pl.Float64).clip(lower_bound=0)
    chance = divided(pl.lit(2.0).pow(grade) - 1, pl.lit(2.0).pow(top))
    return pl.when(grade <= top).then(chance).otherwise(float("nan"))


def usefulness(max_grade: float | None) -> pl.Expr:
    """The grade of a row as a share of the highest; NaN for a grade above the maximum."""
    grade, top = gain_of("linear"), top_of(max_grade)
    return pl.when(grade <= top).then(divided(grade, top)).otherwise(float("nan"))


def top_of(max_grade: float | None) -> pl.Expr:
    """The highest grade of the scale: a number, or the highest of the truth."""
    return pl.col("top_grade") if max_grade is None else pl.lit(float(max_grade))


def need(goals: float, max_grade: float | None, gains: pl.Expr) -> pl.Expr:
    """The remaining need of INST's reader at a rank: rank − 1 + 2·goals − usefulness above."""
    return pl.col("rank") - 1 + 2 * goals - divided(gains - gain_of("linear"), top_of(max_grade))


#: A discount of positions: 1 / log2(position + 1), one with a base, "rank", or a list of weights.
Discounting: TypeAlias = float | str | tuple[float, ...] | None


def discount(position: pl.Expr, by: Discounting = None) -> pl.Expr:
    """1 / log2(position + 1); with a base b, 1 / log_b(position), and 1 above position b.

    ``"rank"`` is 1 / position; of a list of weights, each position has its own, and 0 below.
    """
    if isinstance(by, tuple):
        weights = dict(enumerate(by, 1))
        if len(weights) > _sizes.WEIGHTS_IN_CHAIN:
            return position.replace_strict(weights, default=0.0, return_dtype=pl.Float64)
        weight = pl.lit(0.0)
        for number, value in weights.items():
            weight = pl.when(position == number).then(value).otherwise(weight)
        return weight
    place = position.cast(pl.Float64)
    if isinstance(by, str):
        return 1 / place
    return 1 / ((place + 1).log(2) if by is None else place.log(by).clip(lower_bound=1))


def discounting(base: float | None, discount: str | Sequence[float]) -> Discounting:
    """Take the base of a logarithm and a discount, of which one may be given, as one."""
    if discount == "log2":
        return base
    return discount if isinstance(discount, str) else tuple(discount)
