"""Intervals cover and tests reject as often as they say: simulations, slow and without Polars."""

import numpy as np
import pytest
from scipy import stats

from rankframe._comparison import statistics, system_statistics


def outcomes(test, matrix):
    """One call for many data sets: its columns."""
    resampling, sample = statistics.Resampling(1000, 0), statistics.Sample(matrix)
    if test in ("randomization", "bootstrap", "studentized", "widened"):
        name = "bootstrap_test" if test == "bootstrap" else test
        return getattr(statistics, name)(sample, 0.95, resampling, lambda _: None)
    return getattr(statistics, "t_test" if test == "t" else test)(sample, 0.95)


def covered(outcome, mean):
    return ((outcome.low <= mean) & (outcome.high >= mean)).mean()


@pytest.mark.parametrize("test", ["t", "bootstrap", "studentized"])
def test_intervals_cover(test):
    matrix = np.random.default_rng(1).normal(0.3, 1, (60, 2000))
    assert 0.93 <= covered(outcomes(test, matrix), 0.3) <= 0.97


@pytest.mark.parametrize(
    ("draw", "users", "mean"),
    [
        (lambda rng, size: rng.exponential(1, size), 20, 1),
        (lambda rng, size: rng.beta(0.5, 2, size), 20, 0.2),
        (lambda rng, size: np.where(rng.random(size) < 0.3, rng.random(size), 0), 100, 0.15),
    ],
)
def test_the_studentized_interval_covers_for_skewed_users(draw, users, mean):
    matrix = draw(np.random.default_rng(4), (users, 2000))
    assert 0.93 <= covered(outcomes("studentized", matrix), mean) <= 0.975


def test_it_covers_more_often_than_students_where_values_are_skewed():
    matrix = np.random.default_rng(5).lognormal(0, 1, (50, 2000))
    studentized, t = (covered(outcomes(test, matrix), np.exp(0.5)) for test in ("studentized", "t"))
    assert studentized > t + 0.02
    assert studentized > 0.915


@pytest.mark.parametrize("users", [10, 20, 50, 200])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_wilsons_interval_covers_without_chance(rate, users):
    hits = np.arange(users + 1)
    got = outcomes("wilson", (np.arange(users)[:, None] < hits).astype(float))
    covers = (got.low <= rate) & (got.high >= rate)
    assert (stats.binom.pmf(hits, users, rate) * covers).sum() >= 0.92


@pytest.mark.parametrize(("rate", "users"), [(0.1, 50), (0.5, 20), (0.5, 200)])
def test_newcombes_interval_covers_and_mcnemars_test_rejects_seldom(rate, users):
    old, new, own = np.random.default_rng(7).random((3, users, 1000))
    new = np.where(own < 0.5, old, new)
    pairs = zip((new < rate).T.astype(float), (old < rate).T.astype(float), strict=True)
    p, low, high = np.array([statistics.mcnemar(*pair, 0.95) for pair in pairs]).T
    assert ((low <= 0) & (high >= 0)).mean() >= 0.93
    assert (p <= 0.05).mean() <= 0.06


@pytest.mark.parametrize("test", ["t", "wilcoxon", "randomization", "bootstrap"])
def test_false_positives_are_as_many_as_said(test):
    old, new = np.random.default_rng(2).beta(2, 3, (2, 40, 2000))
    assert 0.035 <= (outcomes(test, new - old).p <= 0.05).mean() <= 0.065


@pytest.mark.parametrize("test", ["t", "bootstrap"])
@pytest.mark.parametrize("margin", [0.1, -0.1])
def test_a_difference_of_the_margin_passes_as_seldom_as_said(test, margin):
    """The true difference is at one end of ± 0.1: within it by one chance in twenty."""
    old, new = np.random.default_rng(4).beta(2, 3, (2, 60, 2000))
    change = new - old + margin
    inward = 0.1 - change if margin > 0 else change + 0.1
    resampling = statistics.Resampling(1000, 0)
    if test == "bootstrap":
        sample = statistics.Sample(inward)
        p = statistics.bootstrap_test(sample, 0.95, resampling, lambda _: None, one_sided=True).p
    else:
        p = statistics.above_zero(outcomes(test, inward).p, inward.sum(axis=0))
    assert 0.035 <= (p <= 0.05).mean() <= 0.065


@pytest.mark.parametrize("test", ["tukey", "friedman"])
def test_joint_tests_have_as_many_false_positives_as_said(test):
    values = np.random.default_rng(3).beta(2, 3, (2000, 40, 3))
    got = [
        system_statistics.tukey(x, 0.95) if test == "tukey" else system_statistics.friedman(x)
        for x in values
    ]
    assert 0.035 <= np.mean([joint.p((0, 1)) <= 0.05 for joint in got]) <= 0.065
    # p ≤ 0.05 among all pairs is a distance that reaches the critical one
    limit = system_statistics.critical(0.95, 3, got[0].freedom)

    assert 0.035 <= np.mean([joint.distance.max() >= limit for joint in got]) <= 0.065


@pytest.mark.parametrize(
    ("draw", "mean", "least"),
    [
        (lambda rng, size: rng.exponential(1, size), 1.0, 0.91),
        # differences of near copies: symmetric, with many zeros and heavy tails
        (
            lambda rng, size: (
                (rng.random(size) < 0.55) * rng.normal(0, 0.1, size) * rng.lognormal(0, 0.7, size)
            ),
            0.0,
            0.95,
        ),
    ],
)
def test_auto_covers_no_less_often_than_t(draw, mean, least):
    matrix = draw(np.random.default_rng(6), (20, 1500))
    t, wide = outcomes("t", matrix), outcomes("widened", matrix)
    takes_t = [
        statistics.chosen_method(statistics.Sample(column), may_be_hits=False)[0] == "t"
        for column in matrix.T
    ]
    ends = (
        np.where(takes_t, one, other) for one, other in ((t.low, wide.low), (t.high, wide.high))
    )
    automatic = covered(t._replace(**dict(zip(("low", "high"), ends, strict=True))), mean)
    assert automatic >= max(covered(t, mean), least)
    assert automatic >= covered(outcomes("studentized", matrix), mean) - 0.02
