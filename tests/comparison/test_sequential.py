"""A test for those who look every day: its formula, its width, and what many looks do."""

import numpy as np
import polars as pl
import pytest
from scipy import special, stats

import rankframe as rf
from rankframe._comparison import always_valid, pair_tests, system_pairs, trials
from rankframe._comparison import statistics as st
from rankframe.errors import RankingDataError


def drawn(seed, users, mean=0.0):
    """Differences of users, many of which are 0."""
    rng = np.random.default_rng(seed)
    return mean + np.where(rng.random(users) < 0.5, rng.beta(2, 3, users) - 0.4, 0)


def users_of(values):
    users = pl.DataFrame({"user": np.arange(len(values)), "x": values, "model": "new"})
    return pl.concat([users, users.with_columns(x=0.0, model=pl.lit("old"))])


def compared(values, **options):
    options = {"test": "sequential", "value_range": {"x": (-1, 1)}} | options
    return rf.compare(users_of(values), "x", baseline="old", details=True, **options).row(
        0, named=True
    )


@pytest.mark.parametrize("users", [60, 100, 900, 5000])
def test_sequential_interval_is_wider_than_students_and_p_is_higher(users):
    values = drawn(3, users, 0.01)
    once, always = compared(values, test="t"), compared(values)
    assert always["ci_low"] < once["ci_low"] < once["ci_high"] < always["ci_high"]
    assert always["p_value"] > once["p_value"]
    assert always["difference"] == once["difference"]


def test_columns_that_students_t_fills_are_null():
    row = compared(drawn(6, 50))
    assert row["detectable"] is None
    assert row["verdict"] == "undecided"
    assert row["p_adjusted"] == row["p_value"]


@pytest.mark.parametrize(
    "options",
    [
        {"weights": "w"},
        {"cluster": "w"},
        {"margin": 0.1},
        {},
    ],
)
def test_sequential_test_refuses_what_it_does_not_take(options, refused):
    table = users_of(drawn(1, 30)).with_columns(w=pl.col("user") % 5 + 1)
    refused(rf.compare, table, "x", test="sequential", **options)


def test_users_in_different_numbers_of_segments_have_no_test_in_all():
    table = users_of(drawn(1, 60)).with_columns(day=pl.col("user") % 2)
    returned = table.filter(pl.col("user") < 10).with_columns(day=1 - pl.col("day"))
    options = {"test": "sequential", "value_range": {"x": (-1, 1)}}
    found = rf.compare(
        pl.concat([table, returned]), "x", by=["model", "day"], total=True, **options, details=True
    )
    whole = found.filter(pl.col("day").is_null()).row(0, named=True)
    assert whole["p_value"] is whole["ci_low"] is None
    assert "no test: it does not support weights" in whole["note"]


def test_geometric_means_are_compared_on_logarithms():
    run = pl.DataFrame({"user": [*range(60)] * 2, "item": [7] * 120})
    ranks = np.random.default_rng(1).integers(1, 6, 120)
    run = run.with_columns(rank=pl.Series(ranks), model=pl.Series(["a"] * 60 + ["b"] * 60))
    truth = pl.DataFrame({"user": range(60), "item": [7] * 60})
    row = rf.compare(run, "gmap@5", truth=truth, test="sequential").row(0, named=True)
    assert row["ci_low"] < row["difference"] < row["ci_high"]
    assert "ratio" in row["note"]
    assert "always valid" in row["note"]  # AP is in [0, 1], so its logarithm has a range, too


# ------------------------------------------------------------------ bets


def bet(values, confidence=0.95):
    outcome = always_valid.bets(st.Sample(np.asarray(values, float)[:, None]), confidence)
    return tuple(float(numbers[0]) for numbers in (outcome.p, outcome.low, outcome.high))


def wealth(values, mean=0.0):
    """Play each game as it is described: a stake wins in proportion to what a value costs."""
    y, fair = (1 + np.asarray(values)) / 2, (1 + mean) / 2
    games = [
        np.prod(1 - stake + stake * payoff)
        for stake in (0.96, 0.48, 0.24, 0.12, 0.06, 0.03, 0.015, 0.0075)
        for payoff in (y / fair, (1 - y) / (1 - fair))
    ]
    return np.mean(games)


@pytest.mark.parametrize(("users", "mean"), [(1, 0), (2, 0.1), (40, 0.2), (400, 0.05)])
def test_p_is_the_inverse_of_the_mean_wealth_and_ends_are_worth_1_over_alpha(users, mean):
    values = drawn(users, users, mean)
    p, low, high = bet(values, 0.9)
    assert p == pytest.approx(min(1, 1 / wealth(values)))
    assert -1 <= low < values.mean() < high <= 1
    for end in (low, high):
        assert abs(end) == 1 or wealth(values, end) == pytest.approx(10, rel=1e-6)


def test_fair_game_has_the_mean_wealth_1_whatever_the_values():
    """Values −1, −½, 1 of mean m: over all 3⁴ samples, the expected wealth for m is 1."""
    values, shares = np.array([-1, -0.5, 1]), np.array([0.3, 0.5, 0.2])
    mean = values @ shares
    worth = sum(
        np.prod(shares[list(places)]) * wealth(values[list(places)], mean)
        for places in np.ndindex(3, 3, 3, 3)
    )
    assert worth == pytest.approx(1)
    factors = np.exp(always_valid.log_factors(values, mean)) @ shares
    assert factors == pytest.approx(np.ones(16))


def test_means_that_are_not_rejected_are_one_interval():
    for users, mean in ((3, 0.3), (30, -0.2), (300, 0.1)):
        values = drawn(users, users, mean)
        _, low, high = bet(values)
        means = np.linspace(-0.999, 0.999, 1500)
        with np.errstate(over="ignore"):
            accepted = np.array([wealth(values, mean) < 20 for mean in means])
        assert (accepted == ((low < means) & (means < high))).all()


def test_nine_losses_without_a_gain_decide_whatever_the_number_of_users():
    """The greatest stake, 1 of 16, is worth 1.96⁸/16 = 13.6 after 8 losses and 26.7 after 9."""
    losses = [bet(np.concatenate([np.zeros(1000), -np.ones(number)]))[0] for number in range(11)]
    assert losses[0] == pytest.approx(1)
    assert (np.diff(losses[2:]) < 0).all()
    assert [p < 0.05 for p in losses] == [False] * 9 + [True] * 2


def rr_of(ranks):
    """Reciprocal ranks of two systems; the ranks are those of the new one, the old one has 1."""
    run = pl.DataFrame({"user": range(len(ranks)), "item": 7, "rank": ranks, "model": "new"})
    run = pl.concat([run, run.with_columns(rank=1, model=pl.lit("old")).cast(run.schema)])
    return run, run.select("user", "item").unique(maintain_order=True)


def test_metrics_with_a_range_have_an_interval_at_any_number_without_spread_too():
    """No user differs: the interval is ±(1 − 1/u), where the stakes for u are worth 20."""
    for ranks, note in (([1] * 1000, "no user differs"), ([2] * 30, ALIKE), ([3], "one user")):
        run, truth = rr_of(ranks)
        row = rf.compare(
            run, "rr", truth=truth, baseline="old", test="sequential", details=True
        ).row(0, named=True)
        assert row["note"] == f"{note}; always valid: look as often as you like"
        assert (row["p_value"], row["ci_low"], row["ci_high"]) == pytest.approx(
            bet(1 / np.array(ranks) - 1)
        )
    assert bet(np.zeros(1000))[2] < 0.02


ALIKE = "every user differs by the same amount"


def test_ids_and_rows_change_no_bit():
    ranks = np.random.default_rng(1).integers(1, 6, 200)
    run, truth = rr_of(ranks)
    shuffled = run.sample(fraction=1, shuffle=True, seed=2).with_columns(997 - 3 * pl.col("user"))
    renamed = truth.with_columns(997 - 3 * pl.col("user"))
    options = {"baseline": "old", "test": "sequential"}
    assert rf.compare(run, "rr", truth=truth, **options).equals(
        rf.compare(shuffled, "rr", truth=renamed, **options)
    )


def test_range_that_is_no_unit_scales_the_interval():
    """Kendall's τ is in [−1, 1]: differences in ±2."""
    values = np.random.default_rng(3).uniform(-2, 2, 50)
    pair = pair_of(values)
    trial = trials.Trial(test="sequential", widths={"x": 2.0})
    outcome = pair_tests.test_pairs([pair], trial, lambda _: None).outcome
    p, low, high = bet(values / 2)
    assert (outcome.p[0], outcome.low[0], outcome.high[0]) == pytest.approx((p, 2 * low, 2 * high))
    narrow = trial._replace(widths={"x": 1.5})
    with pytest.raises(RankingDataError, match=r"'x': two values of one user differ by 1\.9"):
        pair_tests.test_pairs([pair], narrow, lambda _: None)


def pair_of(values):
    empty = np.zeros(len(values))
    sample = st.Sample(values)
    rows, names = np.ones(len(values), bool), pl.Series(range(len(values)))
    return system_pairs.Pair(
        *(0, "x", 1, 0, values, empty, values, None, 0, None, sample, None), rows, names
    )


def rare_losses(rng, shape):
    """Lose 1 hit of 100, and gain none: the mean is −.01."""
    return -(rng.random(shape) < 0.01).astype(float), -0.01


def equal_hits(rng, shape):
    return rng.choice([-1.0, 0.0, 1.0], shape, p=[0.1, 0.8, 0.1]), 0.0


def buyers(rng, shape):
    """5 % buy, for at most 20 times the median."""
    spent = [
        np.where(rng.random(shape) < 0.05, rng.lognormal(0, 1.5, shape).clip(0, 20), 0) / 20
        for _ in range(2)
    ]
    return spent[0] - spent[1], 0.0


def cut_lognormal(rng, shape):
    """Differences of log-normal values from their mean, as of a revenue with a declared maximum."""
    values = rng.lognormal(0, 1, shape).clip(0, 10) / 10
    most = (np.log(10) - np.array([0, 1])) @ np.array([0, 1])
    mean = np.exp(0.5) * stats.norm.cdf(most) + 10 * stats.norm.sf(np.log(10))
    return values, mean / 10


@pytest.mark.parametrize("draw", [rare_losses, equal_hits, buyers, cut_lognormal])
def test_look_after_every_user_seldom_rejects_the_true_mean(draw):
    """500 runs of 400 users: the promise is .05, one standard error .01."""
    values, mean = draw(np.random.default_rng(11), (400, 500))
    steps = always_valid.log_factors(values, mean)
    np.cumsum(steps, axis=1, out=steps)
    of_looks = special.logsumexp(steps, axis=0) - np.log(len(steps))
    assert of_looks[-1, 0] == pytest.approx(np.log(wealth(values[:, 0], mean)), abs=1e-9)
    assert (of_looks.max(axis=0) >= np.log(20)).mean() <= 0.05


def test_bets_find_what_is_there():
    """nDCG-like differences, half of them 0, about .02 of a deviation of .19."""
    values = np.column_stack([drawn([9, run], 3000, 0.02) for run in range(30)])
    assert (always_valid.bets(st.Sample(values), 0.95).p <= 0.05).mean() > 0.8
