"""Tests all pairs of systems at once: a matrix of differences in, ``Flips`` out."""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, log2, nan, sqrt
from typing import NamedTuple

import numpy as np

from rankframe._comparison import statistics
from rankframe._comparison.statistics import Advance, Array
from rankframe._comparison.trials import Resampling


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
        return nan, "resamples"
    z = float(np.sort(greatest)[reached - 1])
    remaining = users - z * z
    if remaining < statistics.ROUNDING * users:
        return nan, _TOO_FEW
    return z * sqrt((users - 1) / remaining), None


_TOO_FEW = "users"


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
