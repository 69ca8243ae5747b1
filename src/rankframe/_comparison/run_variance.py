"""Estimates how much means vary between training runs: an array per run in, ``RunError`` out.

Users and runs are crossed sources of error, and the estimates are those of the method of moments.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankframe._comparison import statistics
from rankframe._comparison.decision import Estimate

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Outcome, Places


class RunError(NamedTuple):
    """What the runs of two systems, or of one, add to the squared error of a mean over users."""

    numbers: list[int]  # of runs, per system
    is_pooled: bool  # whether the runs of all systems are behind it, as one has a single run
    variance: float  # 0 if runs differ no more than their users do
    per_freedom: float  # the sum of its squared terms, each divided by its degrees of freedom
    least: float  # the fewest degrees of freedom of a term
    of_baseline: float  # the part of the variance that is of the baseline

    def added_to(self, mean: Estimate) -> Estimate:
        """Add the runs to the error of a mean over users, with Satterthwaite's freedom."""
        if not self.variance:
            return mean
        own = np.nan_to_num(mean.error) ** 2
        error = own + self.variance
        freedom = error**2 / (own**2 / mean.freedom + self.per_freedom)
        least = np.minimum(mean.freedom, self.least)
        return mean._replace(error=np.sqrt(error), freedom=np.maximum(freedom, least))

    def widen(self, outcome: Outcome, place: int, mean: Estimate, confidence: float) -> None:
        """Take the larger p-value and the farther ends of a test of users and of one with runs."""
        if not self.variance:
            return  # an exact test stays as it is
        of_both = self.added_to(mean)
        low, high = of_both.interval(confidence)
        outcome.p[place] = np.maximum(outcome.p[place], of_both.p())
        outcome.low[place] = np.minimum(outcome.low[place], low)
        outcome.high[place] = np.maximum(outcome.high[place], high)


def error_of(
    runs: Array, systems: Sequence[int], weights: Array | None, clusters: Places | None
) -> RunError:
    """Estimate what the runs add to the error of a difference, or of the mean of one system.

    ``runs`` has a value per run, user and system, and ``systems`` are the places of those that are
    compared, the baseline last. If one has a single run, that of all systems is pooled for it.
    """
    counts = (~np.isnan(runs)).any(axis=1).sum(axis=0)
    numbers = [int(counts[place]) for place in systems]
    places = range(len(counts)) if 1 in numbers else systems
    squares = {p: _squares_of(runs[: counts[p], :, p], weights, clusters) for p in places}
    squares = {place: pair for place, pair in squares.items() if pair[0] > 0}
    freedoms = np.array([counts[place] - 1 for place in squares], np.float64)
    between, residual = np.reshape([*squares.values()], (-1, 2)).T

    def shares(of: Sequence[int]) -> Array:
        single = sum(counts[place] == 1 for place in of) / max(freedoms.sum(), 1)
        own = np.array([(place in of) / counts[place] for place in squares])
        return np.asarray(own + single * freedoms, np.float64)

    variance, own = (
        max(float(shares(of) @ (between - residual)), 0.0) for of in (systems, systems[1:])
    )
    per_freedom = float(((shares(systems) * between) ** 2 / freedoms).sum())
    is_pooled, least = 1 in numbers and len(freedoms) > 0, min(freedoms, default=0.0)
    return RunError(numbers, is_pooled, variance, per_freedom, least, min(own, variance))


def _squares_of(runs: Array, weights: Array | None, clusters: Places | None) -> tuple[float, float]:
    """Return the variance of the means of runs, and what it were if only users differed."""
    users = ~np.isnan(runs).any(axis=0)
    if len(runs) < 2 or users.sum() < 2:
        return 0.0, 0.0
    weights = None if weights is None else weights[users]
    samples = [statistics.Sample(run, weights) for run in (runs - runs.mean(axis=0))[:, users]]
    if clusters is not None:
        samples = [statistics.of_clusters(clusters[users], sample) for sample in samples]
    means = sum(float(statistics.mean_of(sample)) ** 2 for sample in samples)
    errors = sum(float(statistics.standard_error(*sample[:2])) ** 2 for sample in samples)
    return means / (len(runs) - 1), errors / (len(runs) - 1)
