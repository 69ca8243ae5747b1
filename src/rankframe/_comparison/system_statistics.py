"""Tests many systems at once: a matrix in; ``Joint``, ``Flips``, ``Variance``, ``Lead`` out."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import ceil, inf, log, log2, nan, sqrt
from typing import NamedTuple

import numpy as np
from scipy import optimize, special, stats

from rankframe._comparison import statistics
from rankframe._comparison.statistics import (
    Advance,
    Array,
    Joint,
    Lead,
    Resampling,
    Variance,
)
from rankframe._request import keywords


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
    return Joint(distance, freedom, margin, note_of_variances(matrix), means)


def residuals(matrix: Array) -> Array:
    """Return what systems and users do not explain: exactly 0 where they explain all."""
    from_first = statistics.differences(matrix, matrix[:, :1])
    centered = from_first - from_first.mean(axis=1, keepdims=True)
    of_systems = centered.mean(axis=0)
    size = np.maximum(np.abs(matrix).max(axis=1, keepdims=True), np.abs(of_systems))
    return statistics.rounded(centered - of_systems, 10 * size)


#: Beside pairs of one variance, Tukey's intervals of a pair that varies so much more are too short.
MOST_VARIANCE = 2.0


def note_of_variances(matrix: Array, cure: str = "test='max_t'") -> str | None:
    """Write that the differences of one pair of systems vary far more than those of the others."""
    if len(matrix) < 2 or not (left := residuals(matrix)).any():
        return None
    covariance = np.cov(left.T)
    own = np.diag(covariance)
    variances = (own[:, None] + own - 2 * covariance)[np.triu_indices(len(own), 1)]
    ratio = float(variances.max() / variances.mean())
    if ratio <= MOST_VARIANCE:
        return None
    return (
        f"assumes that all pairs vary alike: the largest variance of a pair is {ratio:.2g} times "
        f"the mean one: take {cure}"
    )


class Flips(NamedTuple):
    """All pairs of systems at once: shares of the patterns of signs that are as extreme."""

    alone: Array
    adjusted: Array


def max_t(matrix: Array, resampling: Resampling, advance: Advance) -> Flips:
    """Flip the signs of whole rows, and compare each |t| with the greatest (Westfall and Young).

    One row per user, one column per pair, each with a value that is not 0. Signs do not change
    Σ d², so |t| grows with z = |Σ d| / √(Σ d²). Pairs step down: each is compared with the greatest
    among itself and those behind it.
    """
    scaled = _of_length_one(matrix)
    observed = np.abs(scaled.sum(axis=0))
    order = observed.argsort(kind="stable")
    scaled = scaled[:, order]
    least = observed[order] - statistics.ROUNDING * np.abs(scaled).sum(axis=0)
    pairs, patterns = matrix.shape[1], _patterns(scaled, resampling, advance)
    alone, among = np.zeros(pairs), np.zeros(pairs)
    for signs in patterns.blocks:
        z = np.abs(signs @ patterns.matrix)
        alone += (z >= least).sum(axis=0)
        np.maximum.accumulate(z, axis=1, out=z)
        among += (z >= least).sum(axis=0)
    among = np.maximum.accumulate(among[::-1])[::-1]
    p, adjusted = np.empty(pairs), np.empty(pairs)
    p[order], adjusted[order] = (
        (number + patterns.own) / patterns.number for number in (alone, among)
    )
    return Flips(p, adjusted)


#: Of fewer users, the patterns of signs have too few values of t for an interval.
FEWEST_USERS = 6


def max_t_reach(
    centered: Array, confidence: float, resampling: Resampling, advance: Advance
) -> tuple[float, str | None]:
    """Return how many standard errors all intervals reach, and why if they have no end (NaN).

    The greatest |t| of all pairs is that of differences without their means. With their means, a
    baseline far from all other systems would make all pairs move together, and the intervals too
    short. t² = z²·(n − 1)/(n − z²).
    """
    users = len(centered)
    if users < FEWEST_USERS:
        return nan, _TOO_FEW
    patterns = _patterns(_of_length_one(centered), resampling, advance)
    greatest = np.concatenate(
        [np.abs(signs @ patterns.matrix).max(axis=1) for signs in patterns.blocks]
    )
    reached = ceil(confidence * patterns.number - 1e-9)
    if reached > len(greatest):
        return nan, "too few resamples for an interval"
    z = float(np.sort(greatest)[reached - 1])
    remaining = users - z * z
    if remaining < statistics.ROUNDING * users:
        return nan, _TOO_FEW
    return z * sqrt((users - 1) / remaining), None


_TOO_FEW = "too few users for an interval"


def _of_length_one(matrix: Array) -> Array:
    scaled = matrix / np.abs(matrix).max(axis=0)
    return np.asarray(scaled / np.sqrt((scaled**2).sum(axis=0)), np.float64)


class _Patterns(NamedTuple):
    """Patterns of signs: blocks of rows for the rows of a matrix, all patterns or drawn ones."""

    matrix: Array
    blocks: Iterator[Array]
    own: int  # 1 if the observed signs count as one more of drawn patterns
    number: int


def _patterns(matrix: Array, resampling: Resampling, advance: Advance) -> _Patterns:
    moved = matrix[matrix.any(axis=1)]
    if len(moved) <= log2(resampling.times):
        return _Patterns(moved, statistics.all_signs(moved.shape), 0, 2 ** len(moved))
    blocks = statistics.drawn_signs(matrix.shape, resampling, advance)
    return _Patterns(matrix, blocks, 1, resampling.times + 1)


def two_way(matrix: Array) -> Variance:
    """Analyze the variance of the columns, with users as blocks, without replication."""
    users, systems = matrix.shape
    if not users:
        return Variance(*(np.full(3, np.nan) for _ in Variance._fields))
    middle = np.asarray(matrix.mean())
    of_systems, of_users = matrix.mean(axis=0), matrix.mean(axis=1)
    left = residuals(matrix)
    squares = np.array(
        [
            users * (statistics.differences(of_systems, middle) ** 2).sum(),
            systems * (statistics.differences(of_users, middle) ** 2).sum(),
            (left**2).sum(),
        ]
    )
    freedom = np.array([systems - 1.0, users - 1.0, (systems - 1.0) * (users - 1.0)])
    mean_square = np.divide(squares, freedom, where=freedom > 0, out=np.full(3, np.nan))
    error = mean_square[2]
    f = mean_square / error if error > 0 else np.full(3, np.nan)
    f[2] = np.nan
    epsilon = np.array([_epsilon(left), np.nan, np.nan])
    shares = np.nan_to_num(epsilon, nan=1.0)
    p = np.asarray(stats.f.sf(f, shares * freedom, shares * freedom[2]), np.float64)
    return Variance(squares, freedom, mean_square, f, epsilon, p)


def _epsilon(left: Array) -> float:
    """Greenhouse and Geisser's ε = (tr S)² / ((m − 1) · Σ S²), S the covariance of residuals.

    It is 1 where all pairs of systems vary alike, and at least 1/(m − 1).
    """
    products = left.T @ left
    squares = (products**2).sum()
    if not squares > 0:
        return nan
    return min(1.0, float(np.trace(products) ** 2 / (len(products) - 1) / squares))


def lead(matrix: Array, confidence: float) -> Lead:
    """Hsu's multiple comparisons with the best, the greatest mean; the users are blocks."""
    users, systems = matrix.shape
    if users < 2 or not (left := residuals(matrix)).any():
        return no_lead(matrix)
    freedom = (users - 1) * (systems - 1)
    error = float(np.sqrt(2 * (left**2).sum() / freedom / users))
    means = np.asarray(matrix.mean(axis=0), np.float64)
    behind = -_ahead(means) / error
    p = np.array([dunnett(float(distance), systems - 1, freedom) for distance in behind])
    limit = _dunnett_critical(confidence, systems - 1, freedom)
    return _constrained(means, np.full((systems, 1), limit * error), p, confidence)


def lead_by_pairs(means: Array, errors: Array, freedom: float, confidence: float) -> Lead:
    """Compare each system with all others by t, each pair with its own standard error.

    Bonferroni's correction is for the other systems. A pair whose error is NaN is left out: how far
    it is apart by chance has no limit.
    """
    rivals = len(means) - 1
    distance = (means - means[:, None]) / errors
    tails = np.asarray(stats.t.sf(distance, freedom), np.float64)
    least = np.nan_to_num(tails, nan=inf).min(axis=1)
    p = np.where(least < inf, np.minimum(rivals * least, 1), nan)
    limit = float(stats.t.isf(keywords.alpha_of(confidence) / rivals, freedom))
    width = np.nan_to_num(limit * errors, nan=inf)
    return _constrained(means, width, p, confidence)


def lead_by_bootstrap(
    matrix: Array, confidence: float, resampling: Resampling, advance: Advance
) -> Lead:
    """Compare with the best by resampling users; the differences may have unequal variances."""
    users, systems = matrix.shape
    if users < 2 or not residuals(matrix).any():
        return no_lead(matrix)
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
    return _constrained(means, width[:, None], p, confidence)


def _ahead(means: Array) -> Array:
    """Return how far each mean is above the greatest of the others."""
    return np.array(
        [mean - np.delete(means, place).max() for place, mean in enumerate(means)], np.float64
    )


def _constrained(means: Array, width: Array, p: Array, confidence: float) -> Lead:
    """Make the intervals of Edwards and Hsu: an interval that excludes a system ends at 0.

    ``width`` is how far the others, in columns, exceed the best system, in rows, by chance.
    """
    ahead, others = _ahead(means), ~np.eye(len(means), dtype=bool)
    apart = means[:, None] - means
    excluded = (p <= keywords.alpha_of(confidence)) & (ahead < 0)
    highest = np.where(others, apart + width, inf).min(axis=1)
    high = np.where(excluded, 0, np.maximum(highest, 0))
    lowest = np.where(others & ~excluded, apart - width.T, inf).min(axis=1)
    low = np.minimum(lowest, 0)
    low, high = (np.where(np.isinf(ends), nan, ends) for ends in (low, high))
    size = np.asarray(np.abs(means).max())
    return Lead(
        statistics.rounded(ahead, size),
        statistics.rounded(low, size),
        statistics.rounded(high, size),
        p,
        ~excluded,
    )


def no_lead(matrix: Array) -> Lead:
    """Return means without a comparison."""
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
        return dunnett(distance, rivals, freedom) - keywords.alpha_of(confidence)

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
