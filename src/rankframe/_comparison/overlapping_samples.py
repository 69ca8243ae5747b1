"""Computes Welch's t of two samples of users, some of whom may be in both.

Without common users, Welch's t; if all users are common, the paired t. The degrees of freedom are
those of partially overlapping samples (Derrick et al. 2017).
"""

from __future__ import annotations

from math import nan, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankframe._comparison import relative_differences, statistics
from rankframe._comparison.decision import Estimate, quantile
from rankframe._comparison.relative_differences import Moments
from rankframe._comparison.statistics import Sample

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Places


class Overlap(NamedTuple):
    """Two means, and what their difference, or that from a multiple of the second, has of error."""

    moments: Moments
    of_system: float  # the variance of the mean of the system
    numbers: tuple[float, float]  # of users, with weights the effective ones
    common: float
    cubes: Array  # Σ a³, Σ a²b, Σ ab², Σ b³ of what users add to both means

    def error(self, share: float = 0.0) -> float:
        """Return the standard error of mean − (1 + share) · baseline's mean."""
        _, _, of_difference, of_both, of_baseline = self.moments
        return sqrt(max(of_difference - 2 * share * of_both + share**2 * of_baseline, 0.0))

    def freedom(self, share: float = 0.0) -> float:
        """Return the degrees of freedom: γ is Welch's, and n − 1 if all n users are common."""
        first, second = self.of_system, (1 + share) ** 2 * self.moments.of_baseline
        parts = [
            variance**2 / (number - 1)
            for variance, number in zip((first, second), self.numbers, strict=True)
        ]
        common, welch = self.common, float(self.numbers[1] - 1)  # the limit, of −100 %
        if first + second > 0:
            welch = (first + second) ** 2 / sum(parts)
        alone = max(sum(self.numbers) - 2 * common, 0.0)
        return common - 1 + (welch - common + 1) * alone / sum(self.numbers)

    def estimate(self, share: float = 0.0) -> Estimate:
        """Estimate mean − (1 + share) · baseline's mean.

        Hall's t holds for two samples: from the third central moment of a mean follow the same bias
        and skewness of t.
        """
        error, factor = self.error(share), 1 + share
        cube = self.cubes @ [1, -3 * factor, 3 * factor**2, -(factor**3)]
        mean = self.moments.difference - share * self.moments.baseline
        numbers = (mean, error, self.freedom(share), cube / error**3)
        return Estimate(*(np.asarray(number, np.float64) for number in numbers))

    def relative_interval(self, confidence: float) -> tuple[float, float]:
        """Return Fieller's interval; at each end, the freedom is that of this end."""
        moments, users = self.moments, self.numbers[1]
        far = float(quantile(confidence, users - 1)) * sqrt(moments.of_baseline)
        if not abs(moments.baseline) > far:
            return nan, nan
        ends = [0.0, 0.0]
        for side in (0, 1):
            for _ in range(_MOST_STEPS):
                before = ends[side]
                reach = float(quantile(confidence, self.freedom(before)))
                ends[side] = relative_differences.fieller(moments, reach)[side]
                if not abs(ends[side] - before) > 1e-13 * abs(ends[side]):
                    break
        return (nan, nan) if np.isnan(ends).any() else (ends[0], ends[1])


_MOST_STEPS = 100


def overlap(system: Sample, baseline: Sample, common: tuple[Places, Places]) -> Overlap | None:
    """Estimate both means; None if their difference has no spread, or a sample only one user.

    ``common`` are the places of the common users in both samples.
    """
    numbers, number = (len(system.values), len(baseline.values)), len(common[0])
    if min(numbers) < 2:
        return None
    first, second = statistics.estimate(system), statistics.estimate(baseline)
    change = statistics.differences(np.array([first.mean]), np.array([second.mean])).item()
    a, b = _shares(system), _shares(baseline)
    first_part, second_part = a[common[0]], b[common[1]]
    covariance = float(first_part @ second_part)
    of_system, of_baseline = (float(np.nan_to_num(mean.error) ** 2) for mean in (first, second))
    of_difference = of_system + of_baseline - 2 * covariance
    if numbers == (number, number) and (paired := _paired(system, baseline, common)) is not None:
        of_pairs = statistics.estimate(paired)
        change, of_difference = float(of_pairs.mean), float(of_pairs.error**2)
    if not of_difference > 0:
        return None
    of_both = covariance - of_baseline
    moments = Moments(change, float(second.mean), of_difference, of_both, of_baseline)
    sizes = statistics.number_of(system), statistics.number_of(baseline)
    cubes = np.array(
        [(a**3).sum(), first_part**2 @ second_part, first_part @ second_part**2, (b**3).sum()]
    )
    return Overlap(moments, of_system, sizes, _common(system, baseline, common), cubes)


def _common(system: Sample, baseline: Sample, common: tuple[Places, Places]) -> float:
    """Return the number of common users, with weights the effective number."""
    if (system.weights is None and baseline.weights is None) or not len(common[0]):
        return len(common[0])
    weights = np.ones(len(common[0]))
    for sample, places in zip((system, baseline), common, strict=True):
        if sample.weights is not None:
            weights = weights * np.sqrt(sample.weights[places])
    return statistics.effective_size(weights)


def _shares(sample: Sample) -> Array:
    """Return what users add to the deviation of the mean; their squares sum to its variance.

    So common users have a covariance of their own, whether or not they vary like the others.
    """
    number = len(sample.values)
    return statistics.influences(*sample[:2]) * sqrt((number - 1) / number)


def _paired(system: Sample, baseline: Sample, common: tuple[Places, Places]) -> Sample | None:
    """Return the differences of users who are all common, unless their weights differ."""
    weights, others = (
        None if sample.weights is None else sample.weights[places]
        for sample, places in zip((system, baseline), common, strict=True)
    )
    if (weights is None) != (others is None):
        return None
    if weights is not None and others is not None and not np.array_equal(weights, others):
        return None
    change = statistics.differences(system.values[common[0]], baseline.values[common[1]])
    return Sample(change, weights)
