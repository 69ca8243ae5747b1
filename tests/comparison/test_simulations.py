"""Small versions of the simulations in ``benchmarks/``: each promise, on systems as life has them.

The full ones, with 1,000 runs of each case, are on the page of the benchmarks.
"""

from math import sqrt

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from benchmarks import coverage, false_positives, weekly
from rankframe._comparison import statistics, trials

CASES = [*false_positives.CASES, *coverage.of_levels(), *coverage.of_differences()]
SMALL = [  # and the number of runs
    ("t, cluster=", "two models", "10 clusters", 100),
    ("paired=False, 50% in both", "kNN, popularity", 60, 100),
    ("gate", "share 0.01 lose", 300, 200),
    ("gate, interval, at_least=", "hits", 50, 200),
    ("max_t, all pairs", "10 copies, 1 other", 50, 16),
    ("bold", "10 copies, 1 other", 50, 20),
    ("4 metrics, primary=", "two models", 50, 20),
    ("compare_segments", "SVD, popularity", "50 × 5", 16),
    ("sequential, a range", "5 % buyers, at most 20", 1000, 100),
    ("auto", "hits, rate 0.02", 50, 200),
    ("relative, Fieller", "two models", 50, 80),
]


def case_of(*name):
    (case,) = [case for case in CASES if case[:3] == name]
    return case


def rate(case, runs):
    """How often the event of a case happens to the system that it hits most often."""
    return case.find(np.random.default_rng(1), runs).mean(axis=-1).max()


@pytest.mark.parametrize(("test", "values", "users", "runs"), SMALL)
def test_promise_holds(test, values, users, runs):
    case = case_of(test, values, users)
    side, promised = case.promised.split()
    error = sqrt(float(promised) * (1 - float(promised)) / runs)
    beyond = rate(case, runs) - float(promised)
    assert (beyond if side == "≤" else -beyond) <= 3 * error


@pytest.mark.parametrize(
    ("name", "least"),
    [
        (("t, clusters ignored", "two models", "30 clusters"), 0.1),
        (("t, no range", "kNN, popularity", 1000), 0.3),
    ],
    ids=str,
)
def test_simulations_see_what_does_not_hold(name, least):
    assert rate(case_of(*name), 20) > least


# ------------------------------------------------------------------ exact: neither more nor less


def outcomes(test, matrix):
    """One call for many data sets: its columns."""
    resampling, sample = trials.Resampling(1000, 0), statistics.Sample(matrix)
    if test == "randomization":
        p = statistics.randomization(sample, lambda _: None, resampling).p
        return statistics.t_test(sample, 0.95)._replace(p=p)
    return getattr(statistics, "t_test" if test == "t" else test)(sample, 0.95)


@pytest.mark.parametrize("users", [10, 20, 50, 200])
@pytest.mark.parametrize("rate", [0.02, 0.1, 0.5])
def test_wilsons_interval_covers_without_chance(rate, users):
    hits = np.arange(users + 1)
    got = outcomes("wilson", (np.arange(users)[:, None] < hits).astype(float))
    covers = (got.low <= rate) & (got.high >= rate)
    assert (stats.binom.pmf(hits, users, rate) * covers).sum() >= 0.92


@pytest.mark.parametrize("test", ["t", "randomization"])
def test_false_positives_are_as_many_as_said(test):
    old, new = np.random.default_rng(2).beta(2, 3, (2, 40, 2000))
    assert 0.035 <= (outcomes(test, new - old).p <= 0.05).mean() <= 0.065


@pytest.mark.parametrize("margin", [0.1, -0.1])
def test_difference_of_the_margin_passes_as_seldom_as_said(margin):
    """The true difference is at one end of ± 0.1: within it by one chance in twenty."""
    old, new = np.random.default_rng(4).beta(2, 3, (2, 60, 2000))
    change = new - old + margin
    inward = 0.1 - change if margin > 0 else change + 0.1
    p = statistics.estimate(statistics.Sample(inward)).p_above(cautious=False)
    assert 0.035 <= (p <= 0.05).mean() <= 0.065


def test_year_of_weekly_tests_has_few_alarms():
    """At a level of 0.05/52 per week; at 0.05, most years without a change have an alarm."""
    year = weekly.years(np.random.default_rng(1), 300, 200)
    planned, welch, unplanned = (
        (p < level).any(axis=1).mean()
        for p, level in (
            (year.compare, weekly.LEVEL / weekly.WEEKS),
            (year.welch, weekly.LEVEL / weekly.WEEKS),
            (year.compare, weekly.LEVEL),
        )
    )
    assert planned <= 0.05 + 3 * sqrt(0.05 * 0.95 / 300)
    assert welch <= planned  # returning users correlate positively
    assert unplanned > 0.8
    seen = weekly.years(np.random.default_rng(2), 300, 1000, weeks=1, drop=0.3)
    assert (seen.compare[:, -1] < weekly.LEVEL / weekly.WEEKS).mean() > 0.9


def test_simulated_weeks_are_tested_as_compare_does():
    rng = np.random.default_rng(3)
    taste = rng.normal(size=(1, 90))
    before = weekly.values(rng, taste)
    now = weekly.values(rng, np.concatenate([taste[:, 45:], rng.normal(size=(1, 45))], axis=1))
    compared, welch, difference = weekly.tests(before, now, 45)
    values = pl.DataFrame(
        {
            "week": [1] * 90 + [2] * 90,
            "user": [*range(90), *range(45, 135)],
            "x": [*before[0], *now[0]],
        }
    )
    row = rf.compare(values, "x", model="week", baseline=1, paired=False, details=True).row(
        0, named=True
    )
    assert (row["p_value"], row["difference"]) == pytest.approx((compared[0], difference[0]))
    alone = values.with_columns(user=pl.int_range(180))
    p = rf.compare(alone, "x", model="week", baseline=1, paired=False, details=True)[
        "p_value"
    ].item()
    assert p == pytest.approx(welch[0])
    assert p == pytest.approx(stats.ttest_ind(now[0], before[0], equal_var=False).pvalue)
