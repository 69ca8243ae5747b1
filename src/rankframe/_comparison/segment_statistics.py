"""Tests whether segments differ, by permutation, and shrinks their means toward each other."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
from scipy import special

from rankframe import _sizes
from rankframe._comparison.decision import Estimate
from rankframe._comparison.statistics import Advance, Array, Places, Sample
from rankframe._comparison.trials import Resampling

_ROUNDING = 1e-9  # of F, by the order in which values are added
_POOLED = 30.0  # users: with fewer, segments of zeros would pull the mean
_QUANTILES = 20  # of the variance between segments, over which an interval averages
_HALVINGS = 50
_NO_SPREAD = 1e-12  # of the greatest value: a smaller deviation is only rounding


def permuted(
    segments: Sequence[Sample], resampling: Resampling, advance: Advance
) -> tuple[float, float, int]:
    """Permute the observations over segments of the same sizes, and count where F is as great.

    Return F, p and the number of permutations. A permutation in which fewer than two segments have
    a variance counts as great; without a variance, there is no test.
    """
    parts = [segment for segment in segments if len(segment.values) > 1]
    if len(parts) < 2:
        return nan, nan, 0
    values = np.concatenate([part.values for part in parts])
    equal = all(part.weights is None for part in parts)
    weights = np.concatenate(
        [np.ones(len(part.values)) if part.weights is None else part.weights for part in parts]
    )
    sizes = np.array([len(part.values) for part in parts])

    def f_of(orders: Places) -> Array:
        return _f_of_rows(values[orders], None if equal else weights[orders], sizes)

    users = np.arange(len(values))
    observed = float(f_of(users[None])[0])
    if np.isnan(observed):
        return nan, nan, 0
    most = max(_sizes.PERMUTATIONS, _sizes.VALUES_PERMUTED // len(values))
    times, rows = min(resampling.times, most), max(1, _sizes.CELLS_PERMUTED // len(values))
    generator = np.random.default_rng(resampling.seed)
    as_great = 0
    for start in range(0, times, rows):
        orders = np.tile(users, (min(rows, times - start), 1))
        f = f_of(generator.permuted(orders, axis=1))
        as_great += int(np.count_nonzero(~(f < observed * (1 - _ROUNDING))))
        advance(len(f))
    return observed, (as_great + 1) / (times + 1), times


def shrunken(of_segments: Estimate, confidence: float) -> tuple[Array, Array, Array]:
    """Shrink the means of segments toward their weighted mean, by their variance τ² beyond chance.

    Return the values and the ends of their intervals; NaN without two means, or without a spread.
    τ² is Paule's and Mandel's. The variance of an interval is the mean over the quantiles of τ²
    that Cochran's Q allows, and a standard deviation more. Each squared error is averaged with that
    of the users of all segments, as 30 of them: one of few users is a guess, and of one user
    unknown.
    """
    result = np.full((3, of_segments.mean.size), np.nan)
    has = ~np.isnan(of_segments.mean)
    mean, freedom = of_segments.mean[has], of_segments.freedom[has]
    squares, others = np.nan_to_num(of_segments.error[has]) ** 2, has.sum() - 1
    if others < 1 or not squares.any():
        return result[0], result[1], result[2]
    number = freedom + 1
    pooled = (freedom * number * squares).sum() / freedom.sum() / number
    own = (freedom * squares + _POOLED * pooled) / (freedom + _POOLED)
    quantiles = (np.arange(_QUANTILES) + 0.5) / _QUANTILES
    chances = 2 * special.gammaincinv(others / 2, quantiles)  # of χ², the distribution of Q
    between = spread_between(mean, own, np.array([float(others), *chances]))
    weights = 1 / (own + between[:, None])
    total = weights.sum(axis=1, keepdims=True)
    center, share = (weights * mean).sum(axis=1, keepdims=True) / total, own * weights
    values = center + (1 - share) * (mean - center)
    variances = (1 - share) * own + share**2 / total + (values - values[0]) ** 2
    error = (variances[1:].mean(axis=0) + variances[1:].std(axis=0)) ** 0.5  # skewed over τ²
    shrunk = Estimate(values[0], error, freedom + _POOLED, 0 * error)
    result[:, has] = shrunk.mean, *shrunk.interval(confidence)
    return result[0], result[1], result[2]


def spread_between(mean: Array, squares: Array, wanted: Array) -> Array:
    """Find the variance τ² at which Cochran's Q of means is each wanted value; 0 if Q is less."""
    low: Array = np.zeros_like(wanted)
    high: Array = ((mean - mean.mean()) ** 2).sum() / wanted
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        weights = 1 / (squares + middle[:, None])
        center = (weights * mean).sum(axis=1, keepdims=True) / weights.sum(axis=1, keepdims=True)
        is_above = (weights * (mean - center) ** 2).sum(axis=1) > wanted
        low, high = np.where(is_above, middle, low), np.where(is_above, high, middle)
    return np.where(low > 0, high, 0.0)


def _welch(means: Array, variances: Array, freedom: Array) -> Array:
    """Return Welch's F (1951) of groups in the last axis; one without a variance is left out.

    ``variances`` are those of the means.
    """
    has = variances > 0
    number = has.sum(axis=-1)
    least = np.where(has, variances, np.inf).min(axis=-1, keepdims=True)
    weights = np.divide(least, variances, out=np.zeros_like(variances), where=has)
    means = np.where(has, means, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = weights / weights.sum(axis=-1, keepdims=True)
        center = (share * means).sum(axis=-1, keepdims=True)
        between = (weights * (means - center) ** 2 / least).sum(axis=-1) / (number - 1)
        parts = np.divide((1 - share) ** 2, freedom, out=np.zeros_like(share), where=has)
        f = between / (1 + 2 * (number - 2) / (number**2 - 1) * parts.sum(axis=-1))
    return np.asarray(np.where(number > 1, f, np.nan), np.float64)


def _f_of_rows(values: Array, weights: Array | None, sizes: Places) -> Array:
    """Compute F of each row, in which the segments follow each other."""
    starts = np.cumsum(sizes) - sizes
    if weights is None:
        totals, added = sizes.astype(np.float64), values
    else:
        totals, added = np.add.reduceat(weights, starts, axis=1), weights * values
    means = np.add.reduceat(added, starts, axis=1) / totals
    centered = values - np.repeat(means, sizes, axis=1)
    if weights is None:
        freedom, factor = np.asarray(sizes - 1, np.float64), sizes / (sizes - 1)
    else:  # the jackknife's error, as in ``statistics.standard_error``
        centered *= weights / (1 - weights / np.repeat(totals, sizes, axis=1))
        squared = np.add.reduceat(weights**2, starts, axis=1)
        freedom, factor = np.maximum(totals**2 / squared - 1, 1e-9), (sizes - 1) / sizes
    squares = np.add.reduceat(centered**2, starts, axis=1)
    scale = np.abs(values).max() * (1 if weights is None else weights.max())
    squares[squares <= sizes * (_NO_SPREAD * scale) ** 2] = 0
    variances = factor * squares / totals**2
    return _welch(means, np.asarray(variances, np.float64), freedom)
