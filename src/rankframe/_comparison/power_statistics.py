"""Computes power: a ``Design`` in, the difference that users detect, or the users needed, out."""

from __future__ import annotations

from bisect import bisect_left
from functools import cache
from math import nan, sqrt
from typing import NamedTuple

from scipy import optimize, stats

from rankframe._request import keywords

#: Beyond this distance, only the estimate of the variance is uncertain, within 1e-9 of power.
_FAR = 1e5

_MOST_USERS = 10**15


class Design(NamedTuple):
    """The planned test: the paired t, whose square is F.

    The distance of two means, √λ, is in units of their standard error, σ/√n, where σ is the
    deviation of the differences.
    """

    confidence: float
    power: float


def of_family(confidence: float, comparisons: int) -> float:
    """Divide the level by the number of comparisons, of which Holm's first step has as many."""
    return 1 - keywords.alpha_of(confidence) / comparisons


def detectable(error: float, users: float, design: Design) -> float:
    """Return the smallest true difference detected with this power; NaN if there is none.

    ``error`` is the standard error of the mean of so many users.
    """
    if users < 2 or not error > 0 or design.power <= keywords.alpha_of(design.confidence):
        return nan
    return least_distance(users, design) * error


def needed_users(difference: float, deviation: float, design: Design) -> int | None:
    """Return the least number of users that detect the difference with this power.

    None means more than 10¹⁵.
    """
    if not deviation:  # two users are enough
        return 2

    def power_with(users: int) -> float:
        return power_of(difference / deviation * sqrt(users), users, design)

    # the required distance hardly changes with the number of users
    ratio = least_distance(1000, design) * deviation / difference
    if ratio * ratio > _MOST_USERS:
        return None
    high, step = max(2, round(ratio * ratio)), 1
    while power_with(high) < design.power:
        high, step = high + step, 2 * step
    low, step = high - 1, 1
    while low > 1 and power_with(low) >= design.power:
        high, low, step = low, max(1, low - step), 2 * step
    return low + 1 + bisect_left(range(low + 1, high), design.power, key=power_with)


@cache
def least_distance(users: float, design: Design) -> float:
    """Return the distance detected with this power; it decreases slightly with more users."""

    def surplus(distance: float) -> float:
        return power_of(distance, users, design) - design.power

    low, high = 0.0, 1.0
    if 100 < users < 10**7:  # a narrow start: each pair of systems may have different users
        low, high = least_distance(10**9, design), least_distance(100, design)
    while surplus(high) < 0:
        high *= 2
    return float(optimize.brentq(surplus, low, high, xtol=1e-12))


def power_of(distance: float, users: float, design: Design) -> float:
    """Return the probability that a distance is detected."""
    limit, freedom = _limit(users, design), users - 1
    if distance > _FAR:
        ratio = distance / sqrt(limit)
        return float(stats.chi2.cdf(freedom * ratio * ratio, freedom))
    return float(stats.ncf.sf(limit, 1, freedom, distance**2))


@cache
def _limit(users: float, design: Design) -> float:
    """Return the critical value of F."""
    return float(stats.f.isf(keywords.alpha_of(design.confidence), 1, users - 1))
