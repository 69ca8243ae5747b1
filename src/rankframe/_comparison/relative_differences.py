"""Computes intervals of relative differences: paired samples in, ends as shares out."""

from __future__ import annotations

from math import nan, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankframe._comparison import statistics
from rankframe._comparison.decision import quantile

if TYPE_CHECKING:
    from rankframe._comparison.run_variance import RunError
    from rankframe._comparison.statistics import Array, Sample


#: The variance that rounding leaves of differences that are all one share of the baseline.
_NO_SPREAD = 1e-12


class Moments(NamedTuple):
    """The means of differences and of the baseline, and the variances of these means."""

    difference: float
    baseline: float
    of_difference: float
    of_both: float  # their covariance
    of_baseline: float


def paired_interval(
    difference: Sample,
    baseline: Array,
    confidence: float,
    reach: float | None = None,
    runs: RunError | None = None,
) -> tuple[float, float]:
    """Fieller's interval of Σd/Σy: all e for which the t test finds no mean in d − e·y.

    NaN if the mean of the baseline may be 0, by the t test at the same confidence. ``reach`` is how
    many standard errors the intervals of another test have.
    """
    values, weights, _ = difference
    users = len(values)
    if users < 2:
        return nan, nan
    means = (
        float(statistics.weighted_mean(values, weights)),
        float(statistics.weighted_mean(baseline, weights)),
    )
    first, second = (statistics.influences(column, weights) for column in (values, baseline))
    factor, freedom = (users - 1) / users, statistics.number_of(difference) - 1
    products = first * first, first * second, second * second
    squares = factor * np.array([product.sum() for product in products])
    if runs is not None and runs.variance:
        freedom = float(runs.added_to(statistics.estimate(difference)).freedom)
        squares += runs.variance, -runs.of_baseline, runs.of_baseline
    moments = Moments(*means, *squares.tolist())
    return fieller(moments, float(quantile(confidence, freedom)) if reach is None else reach)


def fieller(moments: Moments, quantile: float) -> tuple[float, float]:
    """Solve |mean(d) − e·mean(y)| = t · its standard error for e; without spread, both are e."""
    far = quantile**2
    square = moments.baseline**2 - far * moments.of_baseline
    if not square > 0:
        return nan, nan
    share = moments.difference / moments.baseline
    terms = moments.of_difference, share**2 * moments.of_baseline
    if sum(terms) - 2 * share * moments.of_both <= _NO_SPREAD * sum(terms):
        return share, share
    middle = (moments.difference * moments.baseline - far * moments.of_both) / square
    product = (moments.difference**2 - far * moments.of_difference) / square
    half = sqrt(max(middle**2 - product, 0.0))
    low, high = statistics.rounded(np.array([middle - half, middle + half]))
    return float(low), float(high)
