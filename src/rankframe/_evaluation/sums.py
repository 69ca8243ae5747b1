"""Means that are the same to the last bit, in whatever order and parts values are added up."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import inf

import polars as pl

#: Values are cut into whole multiples of this, whose sums are exact, so their order is free.
_UNIT = 2.0**-88
_GREATEST_SUM, _LEAST_MEAN = 2.0**38, 2.0**-36
#: What is known of the values of a part.
TYPES: Mapping[str, pl.DataType] = {
    "count": pl.Int64(),
    "sum": pl.Float64(),
    "size": pl.Float64(),
    "units": pl.Int128(),
    "size_units": pl.Int128(),
    "exponent": pl.Int64(),
}


def order_free_mean(values: pl.Expr) -> pl.Expr:
    """Take the mean of Float64 values by an exact sum, or the plain mean where they do not fit.

    They fit where Σ |value| ≤ 2^38, and their mean size is above 2^-36: then what is cut off does
    not change the mean. Nothing is cut off a value of 2^-35 or more.
    """
    return _exact_where_it_fits(values, pl.Expr.mean, values.count())


def order_free_sum(values: pl.Expr) -> pl.Expr:
    """Take the sum in the same way."""
    return _exact_where_it_fits(values, pl.Expr.sum, 1)


def sums_of_part(values: pl.Expr) -> dict[str, pl.Expr]:
    """Add up the values of a part, for ``exact``."""
    return {
        "sum": values.sum(),
        "size": values.abs().sum(),
        "units": _units(values),
        "size_units": _units(values.abs()),
    }


def exact() -> dict[str, pl.Expr]:
    """Make sums for ``mean_of_parts`` of columns with those of ``sums_of_part``.

    These are the sum as one float, Σ |value|, which decides what fits, and the exact sum, each the
    same in every order of the values.
    """
    total, size, units = pl.col("sum"), pl.col("size"), pl.col("units")
    size_units = pl.col("size_units")
    exact_size = pl.when(size <= _GREATEST_SUM).then(size_units.cast(pl.Float64) * _UNIT)
    exact_sum = pl.when(_fits(exact_size, 1)).then(units.cast(pl.Float64) * _UNIT)
    return {"sum": exact_sum.otherwise(total), **stored(exact_size.otherwise(inf), units)}


def stored(size: pl.Expr, units: pl.Expr) -> dict[str, pl.Expr]:
    """Keep an exact sum that fits a decimal of 38 digits; the size of others is infinite."""
    fits = size <= _GREATEST_SUM
    return {
        "size": pl.when(fits).then(size).otherwise(inf),
        "units": pl.when(fits).then(units).otherwise(0),
    }


def shifted(units: pl.Expr, exponent: pl.Expr) -> pl.Expr:
    """Divide an exact sum by a power of two."""
    return units.cast(pl.Int128) // pl.lit(2.0).pow(exponent.clip(0, 126)).cast(pl.Int128)


def mean_of_parts(number: pl.Expr, suffix: str = "") -> pl.Expr:
    """Take the mean of all values from columns with the sums of all parts.

    It has the bits of ``order_free_mean``, since the units are the exact sum.
    """
    total, size, units = (pl.col(f"{name}{suffix}") for name in ("sum", "size", "units"))
    exact = units.cast(pl.Float64) * _UNIT / number
    mean = pl.when(_fits(size, number)).then(exact).otherwise(total / number)
    return pl.when(number > 0).then(mean)


def _exact_where_it_fits(
    values: pl.Expr, plain: Callable[[pl.Expr], pl.Expr], number: pl.Expr | int
) -> pl.Expr:
    exact = _units(values).cast(pl.Float64) * _UNIT / number
    fits = _fits(values.abs().sum(), number)
    return pl.when(fits).then(exact).otherwise(plain(values))


def _units(values: pl.Expr) -> pl.Expr:
    return (values / _UNIT).cast(pl.Int128, wrap_numerical=True).sum()


def _fits(size: pl.Expr, number: pl.Expr | int) -> pl.Expr:
    return size.is_between(number * _LEAST_MEAN, _GREATEST_SUM, closed="right")


def weighted_mean(values: pl.Expr, weights: pl.Expr) -> pl.Expr:
    """Take Σ weight·value / Σ weight over the defined values, the same in every order.

    It is null where no weight is above 0.
    """
    defined = pl.when(values.is_not_null()).then(weights)
    shares = scaled(defined, exponent(defined))
    mean = order_free_mean(values.cast(pl.Float64) * shares) / order_free_mean(shares)
    return pl.when(defined.max() > 0).then(mean)


def exponent(weights: pl.Expr) -> pl.Expr:
    """Find the power of two near the greatest weight, which makes weights of any size fit."""
    return weights.max().log(2).floor().clip(-1022, 1022)


def scaled(values: pl.Expr, exponent: pl.Expr) -> pl.Expr:
    """Divide by a power of two, which is exact."""
    return values / pl.lit(2.0).pow(exponent)
