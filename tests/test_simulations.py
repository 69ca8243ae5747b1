"""Intervals cover and tests reject as often as they say: simulations, slow and without Polars."""

import numpy as np
import pytest

from rankframe import _statistics as st


def outcomes(test, matrix):
    """One call for many data sets: its columns."""
    resampling, sample = st.Resampling(1000, 0), st.Sample(matrix, None)
    if test in ("randomization", "bootstrap"):
        return getattr(st, test)(sample, 0.95, resampling, lambda _: None)
    return getattr(st, "t_test" if test == "t" else test)(sample, 0.95)


@pytest.mark.parametrize("test", ["t", "bootstrap", "percentile"])
def test_intervals_cover(test):
    matrix = np.random.default_rng(1).normal(0.3, 1, (60, 2000))
    if test == "percentile":
        nothing = st.Resampling(1000, 0)
        got = st.bootstrap(st.Sample(matrix, None), 0.95, nothing, lambda _: None, bca=False)
    else:
        got = outcomes(test, matrix)
    assert 0.93 <= ((got.low <= 0.3) & (got.high >= 0.3)).mean() <= 0.97


@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization", "bootstrap"])
def test_false_positives_are_as_many_as_said(test):
    old, new = np.random.default_rng(2).beta(2, 3, (2, 40, 2000))
    assert 0.035 <= (outcomes(test, new - old).p <= 0.05).mean() <= 0.065


@pytest.mark.parametrize("test", ["tukey", "friedman"])
def test_joint_tests_have_as_many_false_positives_as_said(test):
    values = np.random.default_rng(3).beta(2, 3, (2000, 40, 3))
    got = [st.tukey(x, 0.95) if test == "tukey" else st.friedman(x) for x in values]
    assert 0.035 <= np.mean([joint.p((0, 1)) <= 0.05 for joint in got]) <= 0.065
    # p ≤ 0.05 among all pairs is a distance that reaches the critical one
    limit = st.critical(0.95, 3, got[0].freedom)

    assert 0.035 <= np.mean([joint.distance.max() >= limit for joint in got]) <= 0.065
