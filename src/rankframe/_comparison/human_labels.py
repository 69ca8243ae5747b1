"""Corrects a judge's means by human labels of some users: values of both in, a ``Sample`` out.

The mean is λ·F̄ over the users with the judge's values F alone, plus the mean of Y − λF over those
with human values Y too: prediction-powered inference, in which λ is tuned. A. N. Angelopoulos, J.
C. Duchi and T. Zrnic, *PPI++: Efficient Prediction-Powered Inference*, arXiv 2311.01453, 2023.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from rankframe._comparison import statistics
from rankframe._comparison.statistics import Sample

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Bits, Places


class Both(NamedTuple):
    """A column of values by the judge, and by humans: one per row, NaN where there is none."""

    judge: Array
    human: Array


def mean_by(values: Array, weights: Array | None) -> float:
    """Return the mean of the values that are there."""
    has = ~np.isnan(values)
    sample = Sample(values[has], None if weights is None else weights[has])
    return float(statistics.mean_of(sample))


def planned_error(both: Both, number: int, deviation: float) -> float:
    """Return the error if ``number`` of the judge's users have human values of this deviation."""
    judge = both.judge[~np.isnan(both.judge)]
    values = np.stack(both)[:, ~np.isnan(np.add(*both))]
    others = 1 - number / len(judge)
    if not (others > 0 and values.size and (spread := judge.var(ddof=1)) > 0):
        return float(deviation / np.sqrt(number))
    product = np.cov(values, ddof=0)[0, 1]
    tuned = np.clip(product / spread * others, 0, 1)
    explained = 2 * tuned * product - tuned**2 * spread / others
    return float(np.sqrt(max(deviation**2 - explained, 0.0) / number))


class _Sums(NamedTuple):
    """Σ w·x of each observation, by humans (0 of the others) and by the judge."""

    human: Array
    judge: Array


def corrected(
    columns: Sequence[Both], labelled: Bits, weights: Array | None, units: Places | None
) -> list[Sample] | None:
    """Return a sample per column, whose mean, error, skew and freedom are those of the estimate.

    λ is tuned for the first column, and taken for all, so the mean of a difference is that of the
    means. None if the human labels alone are the estimate: λ is 0, or there are too few values.

    The mean is Σ w·x over Σ w, each estimated so, over ``units``, the observations: thus users with
    a value by the judge alone, or by humans alone, have their part in it. The error is that of the
    jackknife over the observations of both kinds, with λ tuned anew: that λ is known holds for many
    labels only. The values of the sample are the jackknife's.
    """
    of_rows = np.arange(len(labelled)) if units is None else units
    own = np.ones(len(labelled)) if weights is None else weights
    has = [~np.isnan(values) & (own > 0) for values in columns[0]]
    has[1] &= labelled
    agree = bool((has[0] == has[1])[labelled].all())

    def sums(judge: Array, human: Array) -> _Sums:
        of_judge, of_human = (
            np.bincount(of_rows, np.where(kept, own * values, 0.0))[counted].astype(np.float64)
            for kept, values in zip(has, (judge, human), strict=True)
        )
        return _Sums(of_human, of_judge)

    # without a value by both, a user is none of these, unless the other kind may have one
    counted = np.bincount(of_rows, has[0] if agree else own > 0) > 0
    with_human = (np.bincount(of_rows, labelled & (own > 0)) > 0)[counted]
    sizes = sums(*np.ones((2, len(own))))
    number, others = int(with_human.sum()), int((~with_human).sum())
    if number < 2 or others < 2:
        return None
    first = sums(*columns[0])
    if not sizes.human.any():
        return None
    tuned = _tuned(first, sizes, with_human)
    if not tuned[0].any():
        return None
    freedom = statistics.effective_size(sizes.human[with_human]) - 1
    return [_sample(sums(*column), sizes, with_human, tuned, freedom) for column in columns]


def _tuned(first: _Sums, sizes: _Sums, with_human: Bits) -> tuple[Array, Array]:
    """Return λ, and λ without each observation: the slope of human values on the judge's."""
    mean = first.human.sum() / sizes.human.sum()
    judge = first.judge - mean * sizes.judge
    human = (first.human - mean * sizes.human)[with_human]
    number, others = len(human), len(judge) - len(human)
    all_far, far = judge - judge.mean(), judge[with_human] - judge[with_human].mean()
    products = (human - human.mean()) * far
    total, squares = products.sum(), (all_far**2).sum()
    without = squares - (number + others) / (number + others - 1) * all_far**2
    left = np.full(len(judge), total)
    left[with_human] -= number / (number - 1) * products

    def slope(
        total: Array | float, squares: Array | float, number: Array | int, others: Array | int
    ) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            of_all = total / number / (squares / (number + others - 1)) / (1 + number / others)
        return np.asarray(np.clip(np.nan_to_num(of_all), 0, 1), np.float64)

    unit = with_human.astype(np.float64)
    of_one = slope(left, without, number - unit, others - 1 + unit)
    return slope(total, squares, number, others), of_one


def _sample(
    sums: _Sums, sizes: _Sums, with_human: Bits, tuned: tuple[Array, Array], freedom: float
) -> Sample:
    """Make the jackknife's values of an estimate; their mean and their error are its own."""
    whole, of_one = tuned
    mean = _mean(sums, with_human, whole) / _mean(sizes, with_human, whole)
    without = _without(sums, with_human, of_one) / _without(sizes, with_human, of_one)
    size = np.full(len(without), np.abs(np.concatenate(sums)).max())
    values = np.full(len(without), float(mean))
    for kind in (with_human, ~with_human):
        number = int(kind.sum())
        far = statistics.rounded(without[kind] - without[kind].mean(), size[kind])
        # the factors of one sample are replaced by those of each kind
        values[kind] -= np.sqrt(len(values) * (len(values) - 1) * (number - 1) / number) * far
    return Sample(values + (float(mean) - values.mean()), freedom=freedom)


def _mean(sums: _Sums, with_human: Bits, tuned: Array) -> Array:
    both = sums.human[with_human] - tuned * sums.judge[with_human]
    return np.asarray(both.mean() + tuned * sums.judge[~with_human].mean(), np.float64)


def _without(sums: _Sums, with_human: Bits, tuned: Array) -> Array:
    """Return the mean without each observation."""

    def means(values: Array, kind: Bits) -> Array:
        number, total = kind.sum(), values[kind].sum()
        return np.asarray((total - kind * values) / (number - kind), np.float64)

    of_human, of_both = means(sums.human, with_human), means(sums.judge, with_human)
    return np.asarray(of_human + tuned * (means(sums.judge, ~with_human) - of_both), np.float64)
