"""Computes intervals of relative differences: paired samples in, ends as shares out."""

from __future__ import annotations

from math import nan, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankframe._comparison import statistics
from rankframe._comparison.decision import quantile

if TYPE_CHECKING:
    from rankframe._comparison.decision import Estimate
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
    of_difference: Estimate,
    difference: Sample,
    baseline: Array,
    confidence: float,
    reach: float | None = None,
    runs: RunError | None = None,
) -> tuple[float, float]:
    """Fieller's interval of Σd/Σy: all e for which the t test finds no mean in d − e·y.

    NaN if the mean of the baseline may be 0, by the t test at the same confidence. ``reach`` is how
    many standard errors the intervals of another test have. The estimate has the error of ``runs``.
    """
    mean, error, freedom, _ = of_difference
    values, weights, _ = difference
    if not error > 0:
        return nan, nan
    users = len(values)
    first, second = (statistics.influences(column, weights) for column in (values, baseline))
    products = (users - 1) / users * np.array([(first * second).sum(), (second * second).sum()])
    if runs is not None and runs.variance:
        products += -runs.of_baseline, runs.of_baseline
    of_baseline = float(statistics.weighted_mean(baseline, weights))
    moments = Moments(float(mean), of_baseline, float(error) ** 2, *products.tolist())
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
