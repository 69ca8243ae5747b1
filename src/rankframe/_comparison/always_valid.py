"""Computes tests that are valid at every look: a ``Sample`` in, an ``Outcome`` out.

Each p-value is the inverse of a wealth that under equal means is 1 on the average at every look, so
the probability that it ever reaches 1/α is at most α (Ville). Each is symmetric in the users.
"""

from __future__ import annotations

from functools import partial
from math import exp, log
from typing import TYPE_CHECKING

import numpy as np
from scipy import optimize, special

from rankframe._comparison import statistics
from rankframe._request import keywords

if TYPE_CHECKING:
    from collections.abc import Callable

    from rankframe._comparison.statistics import Array, Outcome, Sample

#: Shares of the wealth that are staked, in both directions: great shares find large effects with
#: few users, small shares find small effects with many.
STAKES = 0.96 * 0.5 ** np.arange(8)

_EDGE = 1 - 1e-12  # the greatest mean that is tried, in widths of the range


def bets(sample: Sample, confidence: float) -> Outcome:
    """Stake constant shares on differences in [−1, 1]: exact for each distribution and number.

    p is the inverse of the wealth for the mean 0. The interval contains the means m whose wealth is
    below 1/α. It is one interval: the wealth is convex in m, and at the mean of the sample below 1.
    """
    outcome = statistics.undefined(sample.values.shape[1])
    if sample.weights is not None or not len(sample.values):
        return outcome
    for place, column in enumerate(sample.values.T):
        values, counts = np.unique(column, return_counts=True)  # the order of users is gone
        surplus = partial(_surplus, values, counts.astype(np.float64), confidence)
        mean, users = float(values @ counts / len(column)), len(column)
        mean = min(max(mean, -_EDGE), _EDGE)  # if all lose, or all gain, the whole range
        error = float(np.sqrt(counts @ (values - mean) ** 2)) / users
        outcome.p[place] = exp(min(log(keywords.alpha_of(confidence)) - surplus(0.0), 0.0))
        for ends, side in ((outcome.low, -1), (outcome.high, 1)):
            ends[place] = _end(surplus, mean, side * 4 * (error + 2 / users))
    return outcome


def log_factors(values: Array, mean: float = 0.0) -> Array:
    """Return by how much each value multiplies the wealth of each stake, as a logarithm.

    In y = (1 + d)/2 and μ = (1 + m)/2, a stake c multiplies by 1 + c·(y/μ − 1), or in the other
    direction by 1 + c·((1 − y)/(1 − μ) − 1): for m = 0, by 1 ± c·d. Neither can be below 1 − c.
    """
    up, down = (values - mean) / (1 + mean), (mean - values) / (1 - mean)
    stakes = STAKES.reshape(-1, *[1] * values.ndim)
    return np.asarray(np.log1p(np.concatenate([stakes * up, stakes * down])), np.float64)


def log_wealth(of_stakes: Array) -> float:
    """Return the mean wealth of all stakes, from logarithms to a logarithm."""
    return float(special.logsumexp(of_stakes) - np.log(len(of_stakes)))


def _surplus(values: Array, counts: Array, confidence: float, mean: float) -> float:
    """Return by how much the wealth for a mean exceeds 1/α, as a logarithm."""
    return log_wealth(log_factors(values, mean) @ counts) + log(keywords.alpha_of(confidence))


def _end(surplus: Callable[[float], float], mean: float, step: float) -> float:
    """Find the end of an interval that starts at the mean; the first step may be too short."""
    side = 1.0 if step > 0 else -1.0
    inside = outside = mean
    while surplus(outside) <= 0:
        if side * outside >= _EDGE:
            return side  # no mean on this side is excluded
        inside, outside, step = outside, side * min(side * (outside + step), _EDGE), 2 * step
    return float(optimize.brentq(surplus, inside, outside, xtol=1e-14))
