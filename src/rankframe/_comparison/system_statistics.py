"""Tests many systems at once: a matrix in; ``Joint``, ``Permuted``, ``Variance``, ``Lead`` out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from itertools import permutations
from math import ceil, inf, lgamma, log, nan

import numpy as np
from scipy import optimize, special, stats

from rankframe._comparison import statistics
from rankframe._comparison.statistics import (
    Advance,
    Array,
    Joint,
    Lead,
    Permuted,
    Places,
    Resampling,
    Variance,
)


def tukey(matrix: Array, confidence: float) -> Joint:
    """Tukey's honest significant differences of the columns, the users being blocks.

    The residuals are those of the two-way analysis of variance; for two systems it is the paired t.
    """
    users, systems = matrix.shape
    if users < 2:
        return no_joint(systems)
    means = matrix.mean(axis=0)
    freedom = (users - 1) * (systems - 1)
    error = np.sqrt((residuals(matrix) ** 2).sum() / freedom / users)
    if not error:
        return no_joint(systems)
    distance = np.abs(np.subtract.outer(means, means)) / error
    margin = critical(confidence, systems, freedom) * float(error)
    return Joint(distance, freedom, margin, None, means)


def residuals(matrix: Array) -> Array:
    """Return what systems and users do not explain: exactly 0 where they explain all."""
    from_first = statistics.differences(matrix, matrix[:, :1])
    centered = from_first - from_first.mean(axis=1, keepdims=True)
    of_systems = centered.mean(axis=0)
    size = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.abs(of_systems))
    return statistics.rounded(centered - of_systems, 10 * size)


def randomized_tukey(
    matrix: Array, confidence: float, resampling: Resampling, advance: Advance
) -> Permuted:
    """Permute each user's values over the columns, and count how often the range is as wide.

    The uncorrected p-value of a pair uses its own distance in the same permutations. All
    permutations are used if there are at most ``resamples``.
    """
    users, systems = matrix.shape
    if not users:
        undefined = np.full((systems, systems), np.nan)
        return Permuted(undefined, undefined, nan, None)
    spread = statistics.differences(matrix.max(axis=1), matrix.min(axis=1))
    centered = (matrix - matrix.mean(axis=1, keepdims=True))[spread > 0]
    totals = centered.sum(axis=0)
    least = np.abs(np.subtract.outer(totals, totals)) - statistics.ROUNDING * spread.sum()
    exact = len(centered) * lgamma(systems + 1) <= log(resampling.times) + 1e-9
    blocks = [_all_totals(centered)] if exact else _totals(centered, resampling, advance)
    alone, ranges = np.zeros((systems, systems)), np.zeros(0)
    for block in blocks:
        for place, column in enumerate(block.T):
            alone[place] += (np.abs(block - column[:, None]) >= least[place]).sum(axis=0)
        ranges = np.concatenate([ranges, np.ptp(block, axis=1)])
    ranges.sort()
    among = len(ranges) - np.asarray(np.searchsorted(ranges, least), np.float64)
    own = 0 if exact else 1  # the observed table counts as one of the permutations
    reached = ceil(confidence * (len(ranges) + own) - 1e-9)
    margin = float(ranges[reached - 1]) / users if reached <= len(ranges) else inf
    few = "too few resamples for an interval" if margin == inf else None
    if not residuals(matrix).any():
        margin, few = nan, None
    number = len(ranges) + own
    return Permuted((alone + own) / number, (among + own) / number, margin, few)


def _all_totals(centered: Array) -> Array:
    """Return the columns' totals under every permutation within rows."""
    systems = centered.shape[1]
    totals = np.zeros((1, systems))
    if not len(centered):
        return totals
    orders = np.array(list(permutations(range(systems))))
    for row in centered:
        totals = (totals[:, None] + row[orders]).reshape(-1, systems)
    return totals


def _totals(centered: Array, resampling: Resampling, advance: Advance) -> Iterator[Array]:
    """Draw permutations within rows, and return blocks of the columns' totals."""
    users, systems = centered.shape
    for orders in _orders(users, systems, resampling, advance):
        yield np.take_along_axis(centered[None], orders, axis=2).sum(axis=1)


def _orders(users: int, systems: int, resampling: Resampling, advance: Advance) -> Iterator[Places]:
    """Draw blocks of random orders of the systems, one per resample and user."""
    source = np.random.PCG64(resampling.seed)
    places = np.arange(systems, dtype=np.uint64)
    low = np.uint64(2 ** (systems - 1).bit_length() - 1)
    for rows in statistics.block_sizes(users * systems, resampling.times):
        # raw bits are the same on every machine; the last ones carry the place
        keys = source.random_raw(rows * users * systems).reshape(rows, users, systems)
        keys = np.sort((keys & ~low) | places, axis=2)
        yield (keys & low).astype(np.intp)
        advance(rows)


def two_way(matrix: Array) -> Variance:
    """Analyze the variance of the columns, with users as blocks, without replication."""
    users, systems = matrix.shape
    if not users:
        return Variance(*(np.full(3, np.nan) for _ in Variance._fields))
    middle = np.asarray(matrix.mean())
    of_systems, of_users = matrix.mean(axis=0), matrix.mean(axis=1)
    squares = np.array(
        [
            users * (statistics.differences(of_systems, middle) ** 2).sum(),
            systems * (statistics.differences(of_users, middle) ** 2).sum(),
            (residuals(matrix) ** 2).sum(),
        ]
    )
    freedom = np.array([systems - 1.0, users - 1.0, (systems - 1.0) * (users - 1.0)])
    mean_square = np.divide(squares, freedom, where=freedom > 0, out=np.full(3, np.nan))
    error = mean_square[2]
    f = mean_square / error if error > 0 else np.full(3, np.nan)
    f[2] = np.nan
    p = np.asarray(stats.f.sf(f, freedom, freedom[2]), np.float64)
    return Variance(squares, freedom, mean_square, f, p)


def lead(matrix: Array, confidence: float) -> Lead:
    """Hsu's multiple comparisons with the best, the greatest mean; the users are blocks."""
    users, systems = matrix.shape
    if users < 2 or not (left := residuals(matrix)).any():
        return _no_lead(matrix)
    freedom = (users - 1) * (systems - 1)
    error = float(np.sqrt(2 * (left**2).sum() / freedom / users))
    means = np.asarray(matrix.mean(axis=0), np.float64)
    behind = -_ahead(means) / error
    p = np.array([dunnett(float(distance), systems - 1, freedom) for distance in behind])
    limit = _dunnett_critical(confidence, systems - 1, freedom)
    return _constrained(means, np.full_like(means, limit * error), p, confidence)


def lead_by_bootstrap(
    matrix: Array, confidence: float, resampling: Resampling, advance: Advance
) -> Lead:
    """Compare with the best by resampling users; the differences may have unequal variances."""
    users, systems = matrix.shape
    if users < 2 or not residuals(matrix).any():
        return _no_lead(matrix)
    means = np.asarray(matrix.mean(axis=0), np.float64)
    blocks = [
        counts @ (matrix - means) / users
        for counts in statistics.counts(users, resampling, advance)
    ]
    # the number of threads changes the last bit of matrix products
    size = np.asarray(np.abs(matrix).max())
    shifts = statistics.rounded(np.concatenate(blocks), size)
    behind, times = -_ahead(means), len(shifts)
    p, width = np.zeros_like(means), np.zeros_like(means)
    reached = ceil(confidence * (times + 1) - 1e-9)
    for place in range(systems):
        excess = np.delete(shifts, place, axis=1).max(axis=1) - shifts[:, place]
        excess.sort()
        least = behind[place] - statistics.ROUNDING * size
        p[place] = (times - np.searchsorted(excess, least) + 1) / (times + 1)
        width[place] = excess[reached - 1] if reached <= times else inf
    return _constrained(means, width, p, confidence)


def _ahead(means: Array) -> Array:
    """Return how far each mean is above the greatest of the others."""
    return np.array(
        [mean - np.delete(means, place).max() for place, mean in enumerate(means)], np.float64
    )


def _constrained(means: Array, width: Array, p: Array, confidence: float) -> Lead:
    """Make the intervals of Edwards and Hsu: an interval that excludes a system ends at 0.

    ``width`` is how far the others exceed the best system by chance.
    """
    ahead = _ahead(means)
    excluded = (p <= 1 - confidence) & (ahead < 0)
    high = np.where(excluded, 0, np.maximum(ahead + width, 0))
    low = np.zeros(len(means))
    for place, mean in enumerate(means):
        rivals = np.flatnonzero(~excluded & (np.arange(len(means)) != place))
        if len(rivals):
            low[place] = min(0.0, float((mean - means[rivals] - width[rivals]).min()))
    size = np.asarray(np.abs(means).max())
    return Lead(
        statistics.rounded(ahead, size),
        statistics.rounded(low, size),
        statistics.rounded(high, size),
        p,
        ~excluded,
    )


def _no_lead(matrix: Array) -> Lead:
    users, systems = matrix.shape
    undefined = np.full(systems, np.nan)
    ahead = _ahead(matrix.mean(axis=0)) if users else undefined
    return Lead(ahead, undefined, undefined, undefined, np.zeros(systems, np.bool_))


def dunnett(distance: float, rivals: int, freedom: float) -> float:
    """Dunnett's one-sided p-value: equal means, one of the others at least this far above one mean.

    The correlation is ½, and the integral is over the common mean and the deviation.
    """
    common = np.linspace(-9, 9, 91)
    weight = np.exp(-(common**2) / 2)
    low, high = log(stats.chi2.ppf(1e-18, freedom)), log(stats.chi2.isf(1e-18, freedom))
    logs = np.linspace(low, high, 241) / 2  # of the deviation
    density = np.exp(freedom * (logs - (np.exp(2 * logs) / freedom - 1) / 2 - log(freedom) / 2))
    deviation = np.exp(logs - log(freedom) / 2)
    reach = common[:, None] + np.sqrt(2) * distance * deviation
    above = -np.expm1(rivals * np.asarray(special.log_ndtr(reach), np.float64))  # pyright: ignore
    return float(weight @ above @ density / weight.sum() / density.sum())


@cache
def _dunnett_critical(confidence: float, rivals: int, freedom: float) -> float:
    def excess(distance: float) -> float:
        return dunnett(distance, rivals, freedom) - (1 - confidence)

    far = 1.0
    while excess(far) > 0:
        far *= 2
    return float(optimize.brentq(excess, -40.0, far, xtol=1e-13))


def mean_ranks(matrix: Array, confidence: float) -> tuple[Array, float, str | None]:
    """Rank the columns per user, 1 for the greatest; return Nemenyi's critical difference, too."""
    users, systems = matrix.shape
    if not users:
        return np.full_like(matrix.sum(axis=0), nan), nan, None
    ranks = np.asarray(stats.rankdata(-statistics.rounded(matrix), axis=1), np.float64)
    joint = friedman(matrix)
    variance = ranks.var(axis=1, ddof=1).mean()
    distance = critical(confidence, systems, inf) * float(np.sqrt(variance / users))
    means = np.asarray(ranks.mean(axis=0), np.float64)
    return means, distance if variance and users > 1 else nan, joint.note


def friedman(matrix: Array) -> Joint:
    """Nemenyi's comparison of the mean ranks of the columns, after Friedman's test.

    Ties reduce the variance of the ranks, as in Friedman's statistic.
    """
    users, systems = matrix.shape
    if users < 2:
        return no_joint(systems)
    ranks = stats.rankdata(statistics.rounded(matrix), axis=1)
    means = ranks.mean(axis=0)
    variance = ranks.var(axis=1, ddof=1).mean()
    if not variance:
        return no_joint(systems)
    distance = np.abs(np.subtract.outer(means, means)) / np.sqrt(variance / users)
    note = None
    if systems > 2:
        omnibus = stats.friedmanchisquare(*ranks.T)
        p = "p < 0.0001" if omnibus.pvalue < 0.0001 else f"p = {omnibus.pvalue:.3g}"
        note = f"Friedman: chi² = {omnibus.statistic:.4g}, {p}"
    return Joint(distance, np.inf, np.nan, note, means)


def no_joint(systems: int, note: str | None = None) -> Joint:
    """Return a result without a test."""
    return Joint(np.full((systems, systems), np.nan), 1, np.nan, note, np.zeros(systems))


@cache
def critical(confidence: float, systems: int, freedom: float) -> float:
    """Return the critical value of the studentized range."""
    return float(stats.studentized_range.ppf(confidence, systems, freedom))
