"""Means and sums that are the same to the last bit, in whatever order the values are added up."""

from collections.abc import Callable

import polars as pl

#: Values are cut into whole multiples of this, whose sums are exact, so their order is free.
_UNIT = 2.0**-88
_GREATEST_SUM, _LEAST_MEAN = 2.0**38, 2.0**-36


def order_free_mean(values: pl.Expr) -> pl.Expr:
    """Take the mean of Float64 values by an exact sum, or the plain mean where they do not fit.

    They fit where Σ |value| ≤ 2^38, and their mean size is above 2^-36: then what is cut off does
    not change the mean. Nothing is cut off a value of 2^-35 or more.
    """
    return _exact_where_it_fits(values, pl.Expr.mean, values.count())


def order_free_sum(values: pl.Expr) -> pl.Expr:
    """Take the sum of Float64 values in the same way."""
    return _exact_where_it_fits(values, pl.Expr.sum, pl.lit(1))


def _exact_where_it_fits(
    values: pl.Expr, plain: Callable[[pl.Expr], pl.Expr], divisor: pl.Expr
) -> pl.Expr:
    size, number = values.abs().sum(), values.count()
    units = (values / _UNIT).cast(pl.Int128, wrap_numerical=True).sum()
    exact = units.cast(pl.Float64) * _UNIT / divisor
    fits = size.is_between(number * _LEAST_MEAN, _GREATEST_SUM, closed="right")
    return pl.when(fits).then(exact).otherwise(plain(values))


def weighted_mean(values: pl.Expr, weights: pl.Expr) -> pl.Expr:
    """Take Σ weight·value / Σ weight over the defined values, the same in every order.

    It is null where no weight is above 0. Weights are divided by a power of two near the greatest,
    which is exact, so that weights of any size have sums that fit.
    """
    defined = pl.when(values.is_not_null()).then(weights)
    exponent = defined.max().log(2).floor().clip(-1022, 1022)
    shares = defined / pl.lit(2.0).pow(exponent)
    mean = order_free_mean(values.cast(pl.Float64) * shares) / order_free_mean(shares)
    return pl.when(defined.max() > 0).then(mean)
