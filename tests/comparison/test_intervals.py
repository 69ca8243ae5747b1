"""Intervals for few and skewed users, against plain Python, SciPy and printed tables."""

import math

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import rankframe as rf
from rankframe._comparison import statistics as st

FEW = 499  # resamples, where their number does not matter


def users_of(*columns, weights=None):
    """One row per model and user; None is undefined."""
    rows = [
        {
            "model": f"m{model}",
            "user": user,
            "x": value,
            "w": None if weights is None else weights[user],
        }
        for model, values in enumerate(columns)
        for user, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema_overrides={"x": pl.Float64, "w": pl.Float64})


def summary(values, method, **options):
    weights = options.pop("weighted", None)
    given = {} if weights is None else {"weights": "w"}
    table = users_of(values, weights=weights)
    got = rf.summarize(table, "x", method=method, **given, **options)
    return got.row(0, named=True)


def skewed(seed, users):
    return np.random.default_rng(seed).exponential(1, users).round(6)


# ------------------------------------------------------------------ studentized bootstrap


def by_hand(values, times, seed, confidence, weights=None):
    """Draw users one after the other, and sum in plain Python."""
    users = len(values)
    weights = [1.0] * users if weights is None else list(weights)

    def mean_and_error(places):
        total = math.fsum(weights[i] for i in places)
        mean = math.fsum(weights[i] * values[i] for i in places) / total
        squares = math.fsum((weights[i] * (values[i] - mean)) ** 2 for i in places)
        return mean, math.sqrt(users / (users - 1) * squares) / total

    mean, error = mean_and_error(range(users))
    drawn = np.random.default_rng(seed).integers(0, users, (times, users))
    kept = []
    for places in drawn:
        if len({values[i] for i in places}) > 1:
            of_resample, its_error = mean_and_error(places)
            kept.append((of_resample - mean) / its_error)
    tail = (1 - confidence) / 2
    low, high = np.quantile(kept, [1 - tail, tail])
    return mean - low * error, mean - high * error, times - len(kept)


def widened(values, times=FEW, seed=0, confidence=0.95, weights=None):
    """Return the ends, and the number of resamples without spread."""
    columns = [None if x is None else np.asarray(x, float)[:, None] for x in (values, weights)]
    drawn = st.Resampling(times, seed), lambda _: None
    got = st.widened(st.Sample(*columns), confidence, *drawn)
    return got.low[0], got.high[0], got.dropped[0]


@pytest.mark.parametrize(
    ("users", "seed", "confidence"), [(5, 0, 0.8), (12, 3, 0.9), (40, 7, 0.95)]
)
@pytest.mark.parametrize("weighted", [False, True])
def test_ends_are_the_farther_ones_of_plain_python_and_student(users, seed, confidence, weighted):
    values, weights = skewed(users, users), np.arange(1.0, users + 1) if weighted else None
    low, high, dropped = by_hand(values, FEW, seed, confidence, weights)
    got = widened(values, FEW, seed, confidence, weights)
    t = summary(values, "t", confidence=confidence, weighted=weights)
    assert got == pytest.approx((min(low, t["ci_low"]), max(high, t["ci_high"]), dropped), rel=1e-8)
    if not weighted:  # these are skewed enough
        assert got[1] == pytest.approx(high, rel=1e-8)


@pytest.mark.parametrize("factor", [1e-9, 1.0, 1e9])
def test_scale_and_the_place_of_values_do_not_matter(factor):
    values = skewed(5, 25)
    ends = [factor * (end + 3) for end in widened(values)[:2]]
    assert widened(factor * (values + 3))[:2] == pytest.approx(ends, rel=1e-7)
    far = [end / 1000 for end in widened(values)[:2]]
    moved = [end - 1e6 for end in widened(values / 1000 + 1e6)[:2]]
    assert moved == pytest.approx(far, abs=1e-7)


def test_resamples_without_spread_are_dropped_and_counted():
    values = [0.0] * 45 + [0.2, 0.4, 0.5, 0.9, 1.0]
    got = summary(values, "auto", resamples=2000)
    _, high, dropped = by_hand(values, 2000, 0, 0.95)
    assert 0 < dropped < 50
    assert got["ci_high"] == pytest.approx(high, rel=1e-8)
    few = "too few users for a sure interval: 5 of 50 have another value than the most frequent one"
    assert got["note"].endswith(f"{few}; {dropped} of 2,000 resamples have no spread")


def test_interval_whose_tail_is_dropped_is_students():
    values = [0.0] * 17 + [0.2, 0.3, 0.7]
    got, t = summary(values, "auto", resamples=2000), summary(values, "t")
    dropped = by_hand(values, 2000, 0, 0.95)[2]
    assert dropped > 50
    assert (got["ci_low"], got["ci_high"]) == (t["ci_low"], t["ci_high"])
    assert f"; Student's t alone: {dropped} of 2,000 resamples have no spread" in got["note"]


def test_metrics_share_their_resamples_and_do_not_change_each_other():
    table = users_of(skewed(8, 30)).with_columns(y=pl.col("x") ** 2, z=pl.lit(1.0))
    options = {"resamples": FEW, "seed": 5}
    together = rf.summarize(table, "x", "y", "z", **options)
    alone = pl.concat(rf.summarize(table, name, **options) for name in "xyz")
    assert_frame_equal(together, alone, rel_tol=1e-14)  # Student's end up to the last bit
    other = rf.summarize(table, "x", **{**options, "seed": 6})
    assert other.item(0, "ci_high") != together.item(0, "ci_high")


# ------------------------------------------------------------------ Wilson


def test_wilson_takes_hits_of_a_metric_and_booleans():
    run = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7, 8, 7, 8], "rank": [1] * 4})
    truth = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7] * 4})
    got = rf.summarize(run, "hit@1", truth=truth).row(0, named=True)
    expected = stats.binomtest(2, 4).proportion_ci(method="wilson")
    assert (got["ci_low"], got["ci_high"]) == pytest.approx((expected.low, expected.high))
    flags = pl.DataFrame({"user": [1, 2, 3, 4], "x": [True, False, None, True]})
    got = rf.summarize(flags, "x").row(0, named=True)
    assert got["ci_high"] == pytest.approx(
        stats.binomtest(2, 3).proportion_ci(method="wilson").high
    )


@pytest.mark.parametrize("users", [1, 2, 10, 30])
@pytest.mark.parametrize("value", [0.0, 0.5, 1.0])
def test_auto_is_exact_where_all_users_have_one_value(value, users):
    """At most a share u of the users may have another one; of hits, this is Clopper and Pearson."""
    table = pl.DataFrame({"user": range(users), "rr": value, "own": value})
    rr, own = rf.summarize(table, "rr", "own").rows(named=True)
    share = 1 - 0.025 ** (1 / users)
    ends = value * (1 - share), value + share * (1 - value)
    assert (rr["ci_low"], rr["ci_high"]) == pytest.approx(ends, abs=1e-12)
    assert rr["note"].endswith(f"auto: exact, every value is {value:g}")
    assert own["ci_low"] is own["ci_high"] is None  # no range is known
    if value == 1:
        exact = stats.binomtest(users, users).proportion_ci(0.95, method="exact")
        assert rr["ci_low"] == pytest.approx(exact.low)
        floor = {"at_least": 0.1, "interval": True}
        if users > 1:
            assert rf.gate(table, "rr", **floor)["ci_low"].item() == pytest.approx(exact.low)


def test_auto_is_exact_with_weights_clusters_and_booleans():
    table = pl.DataFrame({"user": range(10), "c": [*range(5)] * 2, "w": [1.0, 3.0] * 5})
    table = table.with_columns(rr=1.0, flag=pl.lit(value=True))
    for options, number in (
        ({"cluster": "c"}, 5),
        ({"weights": "w"}, 20**2 / 50),
        ({}, 10),
    ):
        low = rf.summarize(table, "rr", "flag", **options)["ci_low"].to_list()
        assert low == pytest.approx([0.025 ** (1 / number)] * 2)


# ------------------------------------------------------------------ auto


@pytest.mark.parametrize(
    ("values", "method", "reason"),
    [
        ([0.1, 0.4, 0.6, 0.7], "t", "auto: Student's t, fewer than 5 users"),
        (np.linspace(0, 1, 10), "t", "auto: Student's t, 10 users, skewness 0"),
        (skewed(1, 1000), "t", "auto: Student's t, 1,000 users, skewness "),
    ],
)
def test_auto_takes_a_method_by_its_rule_and_says_which(values, method, reason):
    got = summary(values, "auto", resamples=FEW)
    expected = summary(values, method, resamples=FEW)
    assert got["note"].startswith(reason)
    assert {**got, "note": None} == {**expected, "note": None}


def of_skewness(target, users):
    """Values with this skewness, by bisection of an exponent."""
    low, high = 0.0, 9.0
    for _ in range(60):
        middle = (low + high) / 2
        skewness = stats.skew(np.exp(middle * np.linspace(0, 1, users)))
        low, high = (middle, high) if skewness < target else (low, middle)
    return np.exp(low * np.linspace(0, 1, users))


@pytest.mark.parametrize("users", [7, 20, 100])
def test_auto_takes_t_within_two_standard_errors_of_the_skewness(users):
    # of the adjusted skewness, whose ratio to its standard error is the same
    error = math.sqrt(6 * users * (users - 1) / ((users - 2) * (users + 1) * (users + 3)))
    least = 2 * error * (users - 2) / math.sqrt(users * (users - 1))
    for values in (of_skewness(0.99 * least, users), -of_skewness(0.99 * least, users)):
        assert summary(values, "auto")["note"].startswith("auto: Student's t, ")
    for values in (of_skewness(1.01 * least, users), -of_skewness(1.01 * least, users)):
        assert summary(values, "auto", resamples=FEW)["note"].startswith("auto: farther ends of ")


@pytest.mark.parametrize("method", ["t", "auto"])
def test_methods_note_that_users_are_too_few(method):
    def noted(values):
        note = summary(values, method, resamples=FEW)["note"] or ""
        return "too few users for a sure interval" in note

    assert noted(skewed(1, 19))
    assert not noted(skewed(1, 20))
    assert noted([0.0] * 49 + [0.5])
    assert not noted([0.0] * 180 + list(skewed(1, 20)))


def test_auto_counts_users_who_tell():
    def noted(values):
        return "too few users" in summary(values, "auto", resamples=FEW)["note"]

    assert noted([0.0] * 181 + list(skewed(1, 19)))
    assert noted([1.0] * 181 + list(skewed(1, 19)))  # the same of values that are mostly 1
    assert not noted([0.0] * 19 + [1.0])  # Wilson's interval holds


def test_users_of_small_weights_do_not_make_them_many():
    values, weights = skewed(1, 40), [100.0] * 5 + [1.0] * 35
    note = summary(values, "t", weighted=weights, resamples=FEW)["note"]
    assert note == "effective users: 5.72; too few users for a sure interval: 5.72"


def test_perfect_score_has_an_interval_by_default():
    rows = pl.DataFrame({"model": "a", "user": range(10), "item": 7, "rank": 1})
    truth = pl.DataFrame({"user": range(10), "item": 7})
    low = stats.binomtest(10, 10).proportion_ci(method="exact").low
    assert low == pytest.approx(0.6915, abs=1e-4)
    ends = pytest.approx((low, 1))
    found = rf.summarize(rows, "hit@1", truth=truth)
    assert found.select("ci_low", "ci_high").row(0) == ends
    curve = rf.stats.at_k(rows, "hit", k=[1], truth=truth)
    assert curve.select("ci_low", "ci_high").row(0) == ends
    cells = rf.table(rows, "hit@1", truth=truth, by="model", interval=True).frame
    assert cells.select("ci_low", "ci_high").row(0) == ends


def test_auto_of_equal_values_depends_on_what_they_may_be():
    run = pl.DataFrame({"user": [1, 2, 3], "item": [8] * 3, "rank": [1] * 3})
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [7] * 3})
    with pytest.warns(rf.errors.RankingWarning, match="no item of the run is in the truth"):
        got = rf.summarize(run, "hit@1", "ndcg@1", "dcg@1", truth=truth, method="auto")
    bound = pytest.approx(stats.binomtest(0, 3).proportion_ci(method="exact").high)
    assert got["ci_low"].to_list() == [0.0, 0.0, None]
    assert got["ci_high"].to_list() == [bound, bound, None]
    assert got.item(2, "note") == "every user has the same value"
    assert summary([0.0] * 3, "auto")["ci_high"] is None
    flags = pl.DataFrame({"user": [1, 2, 3], "x": [False] * 3})
    assert rf.summarize(flags, "x", method="auto").item(0, "ci_high") == bound


def test_auto_with_weights_takes_no_wilson():
    values, weights = [0.0, 1.0] * 10, np.arange(1.0, 21.0)
    got = summary(values, "auto", weighted=weights, resamples=FEW)
    expected = summary(values, "t", weighted=weights)
    assert (got["ci_low"], got["ci_high"]) == (expected["ci_low"], expected["ci_high"])
    assert got["note"].startswith("effective users: 15.37; auto: Student's t, 20 users, ")


def test_skewness_is_that_of_what_users_add():
    values, weights = skewed(1, 30), np.random.default_rng(2).uniform(1, 3, 30)
    added = weights * (values - np.average(values, weights=weights))
    _, reason = st.chosen_method(st.Sample(values, weights), may_be_hits=True)
    expected = ((added**3).mean()) / (added**2).mean() ** 1.5
    assert reason.values["skewness"] == round(expected, 2)
    _, reason = st.chosen_method(st.Sample(values), may_be_hits=True)
    assert reason.values["skewness"] == round(stats.skew(values), 2)


def test_auto_of_undefined_values_and_geometric_means():
    got = summary([None, None], "auto")
    assert got["note"] == "no user has a value"
    assert got["ci_low"] is None
    run = pl.DataFrame({"user": list(range(6)), "item": [7] * 6, "rank": [1, 2, 3, 4, 5, 9]})
    truth = pl.DataFrame({"user": list(range(6)), "item": [7] * 6})
    label = "gmap(epsilon=0.0)"
    got = rf.summarize(run, label, truth=truth, method="auto", resamples=FEW).row(0, named=True)
    logs = [-math.log(rank) for rank in (1, 2, 3, 4, 5, 9)]
    low, high = stats.t.interval(0.95, 5, np.mean(logs), stats.sem(logs))
    ends = (math.exp(low), math.exp(high))
    assert (got["ci_low"], got["ci_high"]) == pytest.approx(ends, rel=1e-7)


def test_auto_where_a_geometric_mean_has_no_interval(recwarn):
    run = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 8], "rank": [1, 2, 1]})
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [7] * 3})
    label = "gmap(epsilon=0.0)"
    for method in ("auto", "t"):
        got = rf.summarize(run, label, truth=truth, method=method)
        assert got.item(0, "note") == "no interval: 0 has no logarithm; use epsilon > 0"
    assert not recwarn.list


def test_auto_of_each_group():
    table = users_of(skewed(1, 30), [0.0, 1.0] * 15)
    options = {"by": "model", "method": "auto", "resamples": FEW}
    got = rf.summarize(table, "x", **options)
    assert got["note"].str.contains("Wilson").to_list() == [False, True]
    total = rf.summarize(table, "x", total=True, **options)
    assert total.height == 3
    assert total.item(2, "ci_low") is not None


def test_interval_of_a_number_of_all_lists():
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [7, 8, 7, 9], "rank": [1, 2, 1, 2]})
    items = pl.DataFrame({"item": [7, 8, 9, 10]})
    t, auto = (rf.summarize(run, "coverage@2", items=items, method=m) for m in ("t", "auto"))
    assert auto.equals(t)


def test_methods_have_names():
    with pytest.raises(ValueError, match="method must be one of 't', 'auto', not 'student'"):
        summary([0.1, 0.2], "student")


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
    drawn = 0.95, st.Resampling(1000, 0), lambda _: None
    t, wide = st.t_test(st.Sample(matrix), 0.95), st.widened(st.Sample(matrix), *drawn)
    takes_t = [
        st.chosen_method(st.Sample(column), may_be_hits=False)[0] == "t" for column in matrix.T
    ]
    ends = (
        np.where(takes_t, one, other) for one, other in ((t.low, wide.low), (t.high, wide.high))
    )
    low, high = ends
    automatic = ((low <= mean) & (mean <= high)).mean()
    assert automatic >= ((t.low <= mean) & (mean <= t.high)).mean()
    assert automatic >= least


# ------------------------------------------------------------------ the range of a metric


def test_intervals_of_levels_end_at_the_range_of_the_metric():
    """Precision's would begin at −0.046 and the geometric mean's end at 1.3, of which none can."""
    users = range(8)
    run = pl.DataFrame({"user": users, "item": [7] * 8, "rank": [1] * 7 + [9]})
    truth = pl.DataFrame({"user": users, "item": [7] * 8})
    labels = ["precision@10", "hit@1", "gmap@10", "dcg@10"]
    got = rf.summarize(run, *labels, truth=truth, method="t")
    values = rf.per_user(run, "hit@1", truth=truth)["hit@1"].to_numpy()
    low, high = stats.t.interval(0.95, 7, values.mean(), stats.sem(values))
    row = got.row(1, named=True)
    assert row["ci_low"] == pytest.approx(low, abs=1e-12)
    assert high > 1 == row["ci_high"]
    cut = "interval cut at the metric's range, 0 to 1"
    assert row["note"].endswith(cut)
    gmap, dcg = got.row(2, named=True), got.row(3, named=True)
    assert gmap["ci_high"] == 1
    assert gmap["note"].endswith(cut)
    assert dcg["ci_high"] > dcg["max"]  # no greatest value, and no cut
    assert "cut" not in (dcg["note"] or "")
    run, truth = (table.with_columns(fold=pl.col("user") % 2 + 1) for table in (run, truth))
    total = rf.summarize(run, "hit@1", truth=truth, by="fold", total=True)
    assert total["ci_high"].max() == 1
    own = rf.metrics.hit_at(1).add(0).alias("own")
    own = rf.summarize(run, own, truth=truth, method="t").row(0, named=True)
    assert own["ci_high"] == pytest.approx(high, abs=1e-12)


def test_intervals_of_differences_end_at_the_width_and_p_values_stay():
    """Two of three users gain a hit: at most 1 can be gained."""
    run = pl.DataFrame({"model": ["a"] * 3 + ["b"] * 3, "user": [1, 2, 3] * 2, "item": [7] * 6})
    run = run.with_columns(rank=pl.Series([2, 2, 2, 1, 1, 2]))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [7] * 3})
    for test in ("t", "randomization"):
        got = rf.compare(run, "hit@1", truth=truth, baseline="a", test=test, details=True).row(
            0, named=True
        )
        assert (got["ci_high"], got["ci_low"] > -1) == (1, True)
        assert got["note"].endswith("interval cut at the greatest difference of the metric, 1")
    values = rf.per_user(run, "hit@1", truth=truth, by="model").rename({"hit@1": "x"})
    plain = rf.compare(values, "x", baseline="a", details=True).row(0, named=True)
    assert plain["ci_high"] > 1
    assert "interval cut" not in plain["note"]
    cut = rf.compare(run, "hit@1", truth=truth, baseline="a", details=True).row(0, named=True)
    for name in ("p_value", "p_adjusted", "ci_low", "verdict", "difference"):
        assert cut[name] == plain[name]
