"""Orders of systems against SciPy, ircor and enumeration; how many pairs a metric separates."""

import itertools

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from user_values import FEW, VALUE, judged, sample, uncorrected

import rankframe as rf
from rankframe._comparison import statistics as st

COLUMNS = ["metric", "other", "systems", "kendall_tau", "tau_ap", "note"]
POWER = ["metric", "pairs", "separated", "share", "note"]

# the worked example of ircor's README, whose digits were made with R
TRUE = [0.06, 0.2, 0.27, 0.37, 0.57, 0.63, 0.66, 0.9, 0.91, 0.94]
SEEN = [0.37, 0.06, 0.2, 0.27, 0.57, 0.66, 0.63, 0.91, 0.9, 0.94]


def means_of(**columns):
    systems = [f"m{place}" for place in range(len(next(iter(columns.values()))))]
    return pl.DataFrame({"model": systems, "users": 301, **columns})


def one(left, right):
    """Judge the order ``left`` by the truth ``right``."""
    got = rf.stats.metric_agreement(means_of(left=left, right=right))
    return got.row(by_predicate=pl.col("metric") == "left", named=True)


# ------------------------------------------------------------------ two orders


def test_the_worked_example_of_ircor():
    got = one(SEEN, TRUE)
    assert list(got) == COLUMNS
    assert (got["metric"], got["other"], got["systems"]) == ("left", "right", 10)
    assert got["kendall_tau"] == pytest.approx(0.7777778, abs=5e-8)
    assert got["tau_ap"] == pytest.approx(0.7491182, abs=5e-8)
    rounded = [round(value * 5) / 5 for value in SEEN]
    assert one(rounded, TRUE)["tau_ap"] == pytest.approx(0.6074515, abs=5e-8)  # τ_AP,a
    both = one(rounded, [round(value * 5) / 5 for value in TRUE])
    assert both["kendall_tau"] == pytest.approx(0.75, abs=5e-8)


def test_equal_and_turned_orders():
    values = [0.5, 0.1, 0.3, 0.2]
    assert one(values, [value * 7 for value in values])["tau_ap"] == pytest.approx(1)
    got = one(values, [-value for value in values])
    assert (got["kendall_tau"], got["tau_ap"]) == (pytest.approx(-1), pytest.approx(-1))


def test_what_is_wrong_at_the_top_counts_most():
    """By hand: of three systems, 2/(3 − 1)·(C₂/1 + C₃/2) − 1."""
    truth = [3.0, 2.0, 1.0]
    assert one([2.0, 3.0, 1.0], truth)["tau_ap"] == pytest.approx(0 + 1 - 1)
    assert one([3.0, 1.0, 2.0], truth)["tau_ap"] == pytest.approx(1 + 1 / 2 - 1)
    assert one([2.0, 3.0, 1.0], truth)["kendall_tau"] == pytest.approx(1 / 3)
    assert one([3.0, 1.0, 2.0], truth)["kendall_tau"] == pytest.approx(1 / 3)


def orders_of(values):
    """Return every order that ties allow, best first."""
    blocks = [
        [place for place, value in enumerate(values) if value == level]
        for level in sorted(set(values), reverse=True)
    ]
    for parts in itertools.product(*(itertools.permutations(block) for block in blocks)):
        yield [place for part in parts for place in part]


def by_definition(order, true_order):
    rank = {system: place for place, system in enumerate(true_order)}
    total = sum(
        sum(rank[above] < rank[system] for above in order[:place]) / place
        for place, system in enumerate(order)
        if place
    )
    return 2 * total / (len(order) - 1) - 1


@pytest.mark.parametrize("seed", range(20))
def test_ap_correlation_is_the_mean_over_all_orders_of_what_ties(seed):
    rng = np.random.default_rng(seed)
    left, right = rng.integers(0, 3, (2, rng.integers(2, 7))) / 7
    if len(set(left)) == 1 or len(set(right)) == 1:
        left[0], right[0] = 9, 9
    values = [by_definition(order, true) for order in orders_of(left) for true in orders_of(right)]
    got = one(left, right)
    assert got["tau_ap"] == pytest.approx(np.mean(values), abs=1e-12)
    assert got["kendall_tau"] == pytest.approx(stats.kendalltau(left, right).statistic, abs=1e-12)


def test_random_orders_agree_by_nothing():
    rng = np.random.default_rng(3)
    values = [st.tau_ap(*rng.normal(0, 1, (2, 8))) for _ in range(3000)]
    assert abs(np.mean(values)) < 3 * np.std(values) / np.sqrt(3000)


def test_rounding_makes_no_order():
    got = one([0.3, 0.1 + 0.2, 0.5], [1.0, 2.0, 3.0])
    assert got["kendall_tau"] == pytest.approx(stats.kendalltau([1, 1, 2], [1, 2, 3]).statistic)


# ------------------------------------------------------------------ frames of evaluate


def test_every_pair_of_metrics_both_ways():
    means = means_of(rr=[0.1, 0.2, 0.3], ap=[0.3, 0.2, 0.1], hit=[0.1, 0.3, 0.2])
    got = rf.stats.metric_agreement(means)
    assert got.columns == COLUMNS
    assert got.select("metric", "other").rows() == list(
        itertools.permutations(["rr", "ap", "hit"], 2)
    )
    assert got["kendall_tau"].to_list() == pytest.approx([-1, 1 / 3, -1, -1 / 3, 1 / 3, -1 / 3])
    assert rf.stats.metric_agreement(means, "hit", "rr").select("metric", "other").rows() == [
        ("hit", "rr"),
        ("rr", "hit"),
    ]


def test_lower_is_better_turns_the_order():
    names = {"ndcg@10": [0.1, 0.2, 0.3], "e@10": [0.9, 0.8, 0.7], "price": [3.0, 2.0, 1.0]}
    got = rf.stats.metric_agreement(means_of(**names))
    taus = {row["metric"]: row["kendall_tau"] for row in got.filter(other="ndcg@10").to_dicts()}
    assert taus == {"e@10": pytest.approx(1), "price": pytest.approx(-1)}


def test_a_second_frame_is_the_other_judge():
    means = means_of(rr=[0.1, 0.2, 0.3, 0.4], ap=[0.1, 0.2, 0.4, 0.3])
    other = means_of(rr=[0.2, 0.1, 0.3, 0.4], hit=[1.0, 1.0, 0.0, 0.0]).sort("users")
    got = rf.stats.metric_agreement(means, other=other.reverse())
    assert got.select("metric", "other").rows() == list(
        itertools.product(["rr", "ap"], ["rr", "hit"])
    )
    expected = stats.kendalltau(means["rr"], other["rr"]).statistic
    assert got["kendall_tau"][0] == pytest.approx(expected)
    (same,) = rf.stats.metric_agreement(means, "rr", other=other).rows(named=True)
    assert (same["metric"], same["other"], same["kendall_tau"]) == (
        "rr",
        "rr",
        got["kendall_tau"][0],
    )
    assert same["tau_ap"] == pytest.approx(
        by_definition([3, 2, 1, 0], [3, 2, 0, 1])  # the last two are exchanged
    )


def test_a_run_evaluated_and_compared_in_each_segment():
    table = judged(*sample(2, 30, systems=5)).with_columns(
        country=pl.when(pl.col("user") < 13).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    both = ["model", "country"]
    median = pl.col("value").filter("relevant").first().sqrt().alias("root")
    means = table.rank.evaluate(VALUE, median, by=both)
    got = means.rank.stats.metric_agreement(by=both)
    assert got.columns == ["country", *COLUMNS]
    assert got["country"].to_list() == ["x", "x", "y", "y"]
    for country in "xy":
        own = means.filter(country=country)
        alone = rf.stats.metric_agreement(own.drop("country"))
        assert_frame_equal(got.filter(country=country).drop("country"), alone)
        expected = stats.kendalltau(own["value"], own["root"]).statistic
        assert alone["kendall_tau"].to_list() == pytest.approx([expected] * 2)


def test_every_kind_of_frame():
    means = means_of(rr=[0.1, 0.2, 0.3], ap=[0.3, 0.2, None])
    expected = rf.stats.metric_agreement(means)
    lazy = rf.stats.metric_agreement(means.lazy())
    assert lazy.collect_schema() == expected.schema
    assert_frame_equal(lazy.collect(), expected)
    pandas = pytest.importorskip("pandas")
    got = rf.stats.metric_agreement(means.to_pandas(), other=means)
    assert isinstance(got, pandas.DataFrame)
    assert got["systems"].tolist() == [3, 2, 2, 2]


def test_systems_without_a_value_are_left_out():
    got = one([0.1, 0.2, None, 0.4], [0.1, None, 0.3, 0.0])
    assert (got["systems"], got["kendall_tau"], got["note"]) == (2, -1, None)


@pytest.mark.parametrize(
    ("left", "right", "note"),
    [
        ([None, 0.2], [0.1, None], "no system has both"),
        ([0.1, 0.2], [0.1, None], "one system has both"),
        ([0.1, 0.2], [0.3, 0.3], "every system has the same right"),
        ([0.3, 0.3, 0.3], [0.1, 0.3, 0.2], "every system has the same left"),
        ([0.3, 0.1 + 0.2], [0.1, 0.3], "every system has the same left"),
    ],
)
def test_too_little_to_order_is_reported(left, right, note):
    got = one(left, right)
    assert (got["kendall_tau"], got["tau_ap"], got["note"]) == (None, None, note)


def test_bad_frames_say_what_is_wrong():
    means = means_of(rr=[0.1, 0.2], ap=[0.3, 0.2])
    error = rf.RankingDataError
    with pytest.raises(
        error, match="means: no column 'system'; it has 'model', 'users', 'rr', 'ap'"
    ):
        rf.stats.metric_agreement(means, model="system")
    with pytest.raises(error, match="means: no column 'ndcg'; it has"):
        rf.stats.metric_agreement(means, "ndcg", "rr")
    with pytest.raises(
        error, match="means, column 'name': String is not numeric: cast it or leave it out"
    ):
        rf.stats.metric_agreement(means.with_columns(name=pl.lit("x")), "name", "rr")
    with pytest.raises(ValueError, match="agreement needs two metrics to compare, not only 'rr'"):
        rf.stats.metric_agreement(means, "rr")
    with pytest.raises(TypeError, match="a metric of agreement is the name of a column, not Expr"):
        rf.stats.metric_agreement(means, rf.metrics.reciprocal_rank())
    with pytest.raises(
        error, match="means, column 'model': duplicate system 'm0': name the columns"
    ):
        rf.stats.metric_agreement(pl.concat([means, means]))
    with pytest.raises(
        error, match="means, column 'model': null is not a system: leave out the row"
    ):
        rf.stats.metric_agreement(means.with_columns(model=pl.lit(None, pl.String)))
    with pytest.raises(error, match="means, column 'model': 'm1' is not in other: keep the same"):
        rf.stats.metric_agreement(means, other=means.head(1))
    with pytest.raises(error, match="other, column 'model': 'm1' is not in means: keep the same"):
        rf.stats.metric_agreement(means.head(1), other=means)
    with pytest.raises(error, match="means, column 'ap': NaN found: replace it"):
        rf.stats.metric_agreement(means.with_columns(ap=pl.lit(float("nan"))))
    with pytest.raises(
        error, match="other, column 'model': Categorical.*, but String in means: cast"
    ):
        rf.stats.metric_agreement(
            means, other=means.with_columns(pl.col("model").cast(pl.Categorical))
        )
    with pytest.raises(
        error, match="column 'note': metric_agreement makes a column of this name: rename"
    ):
        rf.stats.metric_agreement(means.rename({"model": "note"}), model="note")
    with pytest.raises(TypeError, match="the means must be a polars DataFrame or LazyFrame"):
        rf.stats.metric_agreement([1])


# ------------------------------------------------------------------ discriminative power


@pytest.mark.parametrize("test", ["t", "bootstrap", "tukey", "max_t"])
def test_power_is_the_share_of_pairs_that_compare_separates(test):
    values = sample(5, 40, systems=5, spread=2.0)
    values[3] += 3
    table = judged(*values)
    square = (VALUE**2).alias("square")
    options = {"test": test, "resamples": FEW, "seed": 3}
    got = rf.stats.discriminative_power(table, VALUE, square, **options)
    assert got.columns == POWER
    pairs = rf.compare(table, VALUE, square, **options, **uncorrected(test))
    for row in got.rows(named=True):
        own = pairs.filter(metric=row["metric"])
        separated = (own["p_adjusted"] < 0.05).sum()
        assert (row["pairs"], row["separated"], row["note"]) == (10, separated, None)
        assert row["share"] == separated / 10
        assert 0 < separated < 10


def test_a_confidence_moves_the_bound():
    table = judged(*sample(6, 30, systems=6))
    shares = [
        rf.stats.discriminative_power(table, VALUE, test="t", confidence=level)["separated"].item()
        for level in (0.2, 0.8, 0.999)
    ]
    p = table.rank.compare(VALUE, correction=None)["p_value"]
    assert shares == [(p < 1 - level).sum() for level in (0.2, 0.8, 0.999)]
    assert shares[0] > shares[2]


def test_the_curve_has_every_pair_least_level_first():
    table = judged(*sample(7, 20, systems=4)).with_columns(
        country=pl.when(pl.col("user") < 9).then(pl.lit("x")).otherwise(pl.lit("y"))
    )
    square = (VALUE**2).alias("square")
    both = ["model", "country"]
    got = table.rank.stats.discriminative_power(square, VALUE, by=both, test="t", curve=True)
    names = ["model", "country", "metric", "baseline", "place", "difference", "p_value"]
    assert got.columns == names
    assert got["place"].to_list() == [1, 2, 3, 4, 5, 6] * 4
    assert got["metric"].to_list() == (["square"] * 6 + ["value"] * 6) * 2
    pairs = table.rank.compare(square, VALUE, by=both, correction=None)
    for (country, metric), part in got.group_by("country", "metric"):
        own = pairs.filter(country=country, metric=metric).sort("p_value")
        assert part["p_value"].to_list() == own["p_value"].to_list()
        assert part["model"].to_list() == own["model"].to_list()
    shares = table.rank.stats.discriminative_power(square, VALUE, by=both, test="t")
    counted = got.group_by("country", "metric", maintain_order=True).agg(
        separated=(pl.col("p_value") < 0.05).sum().cast(pl.Int64)
    )
    assert_frame_equal(shares.select("country", "metric", "separated"), counted)


def test_pairs_without_a_p_value_are_not_separated():
    old, new = sample(8, 20)
    got = rf.stats.discriminative_power(judged(old, old + 1, new), VALUE, test="t").row(
        0, named=True
    )
    assert (got["pairs"], got["note"]) == (3, "1 without a p-value")
    curve = rf.stats.discriminative_power(judged(old, old + 1, new), VALUE, test="t", curve=True)
    assert curve["p_value"][2] is None
    assert curve["place"].to_list() == [1, 2, 3]


def test_equal_systems_are_separated_by_chance_only():
    values = np.random.default_rng(9).beta(2, 3, (21, 60))
    got = rf.stats.discriminative_power(judged(*values), VALUE, test="t").row(0, named=True)
    assert got["pairs"] == 210
    assert got["share"] < 0.15
    jointly = rf.stats.discriminative_power(judged(*values), VALUE, test="max_t", resamples=FEW)
    assert jointly["separated"].item() == 0


def test_power_of_every_kind_of_frame():
    table = judged(*sample(10, 20, systems=3))
    for curve in (False, True):
        expected = rf.stats.discriminative_power(table, VALUE, test="t", curve=curve)
        lazy = rf.stats.discriminative_power(table.lazy(), VALUE, test="t", curve=curve)
        assert lazy.collect_schema() == expected.schema
        assert_frame_equal(lazy.collect(), expected)
        pandas = pytest.importorskip("pandas")
        got = rf.stats.discriminative_power(table.to_pandas(), VALUE, test="t", curve=curve)
        assert isinstance(got, pandas.DataFrame)
        assert got.shape == expected.shape


def test_bad_calls_of_power_say_what_is_wrong():
    table = judged([1.0, 2.0, 4.0], [2.0, 1.0, 1.0])
    with pytest.raises(TypeError, match="curve must be True or False, not 1"):
        rf.stats.discriminative_power(table, VALUE, curve=1)
    with pytest.raises(ValueError, match="test must be one of 't', .*, not 'anova'"):
        rf.stats.discriminative_power(table, VALUE, test="anova")
    with pytest.raises(ValueError, match="discriminative_power needs the column that names the"):
        rf.stats.discriminative_power(table.rename({"model": "system"}), VALUE)
    with pytest.raises(rf.RankingDataError, match="only one system, 'm0': a comparison needs two"):
        rf.stats.discriminative_power(table.filter(model="m0"), VALUE)
    renamed = table.rename({"model": "pairs"})
    with pytest.raises(
        rf.RankingDataError, match="column 'pairs': discriminative_power makes a co"
    ):
        rf.stats.discriminative_power(renamed, VALUE, model="pairs")
