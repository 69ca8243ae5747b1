"""Means that are the same to the last bit, in whatever order the values are added up."""

import polars as pl

#: Values are cut into whole multiples of this, whose sums are exact, so their order is free.
_UNIT = 2.0**-88
_GREATEST_SUM, _LEAST_MEAN = 2.0**38, 2.0**-36


def order_free_mean(values: pl.Expr) -> pl.Expr:
    """Take the mean of Float64 values by an exact sum, or the plain mean where they do not fit.

    They fit where Σ |value| ≤ 2^38, and their mean size is above 2^-36: then what is cut off does
    not change the mean. Nothing is cut off a value of 2^-35 or more.
    """
    size, number = values.abs().sum(), values.count()
    units = (values / _UNIT).cast(pl.Int128, wrap_numerical=True).sum()
    exact = units.cast(pl.Float64) * _UNIT / number
    fits = size.is_between(number * _LEAST_MEAN, _GREATEST_SUM, closed="right")
    return pl.when(fits).then(exact).otherwise(values.mean())
