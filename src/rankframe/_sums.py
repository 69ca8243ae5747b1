"""Means that are the same to the last bit, in whatever order the values are added up."""

import polars as pl

#: Values are cut into a multiple of each; the sums of these are exact, so their order is free.
_UNITS = (2.0**-28, 2.0**-58, 2.0**-88)
_GREATEST_SUM, _LEAST = 2.0**24, 2.0**-7


def order_free_mean(values: pl.Expr) -> pl.Expr:
    """Take the mean of Float64 values by exact sums, or the plain mean where they do not fit.

    They fit where there are at most 2^24, number · greatest |value| ≤ 2^24, and the greatest is 0
    or at least 2^-7. Nothing is cut off a value of 2^-35 or more.
    """
    sums: list[pl.Expr] = []
    rest = values
    for unit in _UNITS:
        part = _multiple_of(unit, rest)
        sums.append(part.sum())
        rest = rest - part
    coarse, fine, finest = sums
    number, greatest = values.count(), pl.max_horizontal(values.max(), -values.min())
    fits = pl.max_horizontal(greatest, 1.0) * number <= _GREATEST_SUM
    fits &= (greatest >= _LEAST) | (greatest == 0)
    exact = (coarse + (fine + finest)) / number
    return pl.when(fits).then(exact).otherwise(values.mean())


def _multiple_of(unit: float, value: pl.Expr) -> pl.Expr:
    """Round to the nearest multiple: floats of the size of ``last`` have no finer digits."""
    last = 1.5 * 2.0**52 * unit
    return (value + last) - last
