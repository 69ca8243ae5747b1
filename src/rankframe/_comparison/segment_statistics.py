"""Tests whether segments differ: their estimates, or their users, in, Welch's F and its p out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations, islice
from math import comb, nan
from typing import NamedTuple

import numpy as np
from scipy import stats

from rankframe._comparison import statistics
from rankframe._comparison.statistics import Advance, Array, Estimate, Places, Resampling, Sample

#: With fewer users in a segment, the F distribution is only near that of Welch's F.
FEW_USERS = 30
#: More values to permute take too long: 10,000 users with 10,000 resamples take a few seconds.
MOST_PERMUTED = 10**8

_CELLS = 2**18  # of the permuted values that are in memory at a time
_ROUNDING = 1e-9  # of F, by the order in which values are added
_NO_SPREAD = 1e-12  # of the greatest value: a smaller deviation is only rounding


class Heterogeneity(NamedTuple):
    """Welch's F test; the number of permutations is 0 if p is that of the F distribution."""

    f: float
    p: float
    permutations: int = 0
    exact: bool = False


def heterogeneity(estimates: Sequence[Estimate]) -> Heterogeneity:
    """Welch's analysis of variance: are the means of independent groups equal? (Welch 1951).

    A group without a variance is left out.
    """
    if not estimates:
        return Heterogeneity(nan, nan)
    f, number, lacking = _welch(
        *(np.array(part, np.float64) for part in zip(*estimates, strict=True))
    )
    if np.isnan(f):
        return Heterogeneity(nan, nan)
    p = stats.f.sf(f, number - 1, (number**2 - 1) / (3 * lacking))  # pyright: ignore
    return Heterogeneity(float(f), float(p))


def standardized(segments: Sequence[Sample]) -> Sample:
    """Return what the observations add to the means, in standard deviations of their segment."""
    parts: list[Array] = []
    for values, weights in segments:
        if len(values) > 1 and statistics.differs(values):
            added = values - statistics.weighted_mean(values, weights)
            added = added if weights is None else weights * added
            parts.append(added / np.sqrt((added**2).mean()))
    return Sample(np.concatenate(parts))


def permuted(segments: Sequence[Sample], resampling: Resampling, advance: Advance) -> Heterogeneity:
    """Permute the observations over segments of the same sizes, and count where F is as great.

    A permutation in which fewer than two segments have a variance counts as such.
    """
    parts = [segment for segment in segments if len(segment.values) > 1]
    if len(parts) < 2:
        return Heterogeneity(nan, nan)
    values = np.concatenate([part.values for part in parts])
    equal = all(part.weights is None for part in parts)
    weights = np.concatenate(
        [np.ones(len(part.values)) if part.weights is None else part.weights for part in parts]
    )
    sizes = np.array([len(part.values) for part in parts])

    def f_of(orders: Places) -> Array:
        return _f_of_rows(values[orders], None if equal else weights[orders], sizes)

    observed = float(f_of(np.arange(len(values))[None])[0])
    if np.isnan(observed):
        return Heterogeneity(nan, nan)
    exact = _arrangements(sizes) <= resampling.times
    as_great = total = 0
    for orders in _all_orders(sizes) if exact else _drawn_orders(len(values), resampling):
        f = f_of(orders)
        as_great += int(np.count_nonzero(~(f < observed * (1 - _ROUNDING))))
        total += len(f)
        advance(0 if exact else len(f))
    p = as_great / total if exact else (as_great + 1) / (total + 1)
    return Heterogeneity(observed, p, total, exact)


def _welch(means: Array, variances: Array, freedom: Array) -> tuple[Array, Array, Array]:
    """Return F, the number of groups with a variance, and what the degrees of freedom lack.

    Groups are in the last axis; ``variances`` are those of the means.
    """
    has = variances > 0
    number = has.sum(axis=-1)
    least = np.where(has, variances, np.inf).min(axis=-1, keepdims=True)
    weights = np.divide(least, variances, out=np.zeros_like(variances), where=has)
    means = np.where(has, means, 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = weights.sum(axis=-1, keepdims=True)
        share = weights / sums
        center = (share * means).sum(axis=-1, keepdims=True)
        between = (weights * (means - center) ** 2 / least).sum(axis=-1) / (number - 1)
        parts = np.divide((1 - share) ** 2, freedom, out=np.zeros_like(share), where=has)
        lacking = parts.sum(axis=-1)
        f = between / (1 + 2 * (number - 2) / (number**2 - 1) * lacking)
    return np.where(number > 1, f, np.nan), number, lacking


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
    return _welch(means, np.asarray(variances, np.float64), freedom)[0]


def _arrangements(sizes: Places) -> int:
    """Count the ways to place the users in segments of these sizes."""
    number, placed = 1, 0
    for size in sizes.tolist():
        placed += size
        number *= comb(placed, size)
    return number


def _all_orders(sizes: Places) -> Iterator[Places]:
    """Yield each way to place the users in the segments once, in blocks."""

    def ways(rest: tuple[int, ...], segment: int) -> Iterator[tuple[int, ...]]:
        if segment == len(sizes) - 1:
            yield rest
            return
        for own in combinations(rest, int(sizes[segment])):
            inside = set(own)
            for others in ways(tuple(u for u in rest if u not in inside), segment + 1):
                yield own + others

    users = int(sizes.sum())
    every, rows = ways(tuple(range(users)), 0), max(1, _CELLS // users)
    while block := [*islice(every, rows)]:
        yield np.array(block)


def _drawn_orders(users: int, resampling: Resampling) -> Iterator[Places]:
    """Draw orders of the users, one per row, in blocks."""
    generator = np.random.default_rng(resampling.seed)
    rows = max(1, _CELLS // users)
    for start in range(0, resampling.times, rows):
        number = min(rows, resampling.times - start)
        yield generator.permuted(np.tile(np.arange(users), (number, 1)), axis=1)
