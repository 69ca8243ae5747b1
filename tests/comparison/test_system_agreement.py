"""Orders of systems against SciPy, ircor and enumeration."""

import itertools

import numpy as np
import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from rankframe._comparison import statistics as st

COLUMNS = ["metric", "other", "systems", "kendall_tau", "tau_ap"]
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


def test_worked_example_of_ircor():
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


def test_errors_at_the_top_count_most():
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


@pytest.mark.parametrize("number", range(2, 40))
def test_equal_and_reversed_orders_agree_exactly(number):
    truth = [place // 2 / 7 for place in range(number + 2)]
    assert one(truth, truth)["kendall_tau"] == 1
    assert one(truth, [-value for value in truth])["kendall_tau"] == -1


def test_pairs_of_metrics_both_ways():
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


def test_joined_frame_is_the_other_judge():
    means, other = means_of(rr=[0.1, 0.2, 0.3]), means_of(rr=[0.1, 0.3, 0.2])
    joined = means.join(other.drop("users"), on="model", suffix="_other")
    got = rf.stats.metric_agreement(joined)
    assert got.rows() == [
        ("rr", "rr_other", 3, pytest.approx(1 / 3), pytest.approx(0)),
        ("rr_other", "rr", 3, pytest.approx(1 / 3), pytest.approx(0)),
    ]


def test_systems_without_a_value_are_left_out():
    got = one([0.1, 0.2, float("nan"), 0.4], [0.1, None, 0.3, 0.0])
    assert (got["systems"], got["kendall_tau"]) == (2, -1)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ([None, 0.2], [0.1, None]),
        ([0.1, 0.2], [0.1, None]),
        ([0.1, 0.2], [0.3, 0.3]),
        ([0.3, 0.3, 0.3], [0.1, 0.3, 0.2]),
        ([0.3, 0.1 + 0.2], [0.1, 0.3]),
    ],
)
def test_too_little_to_order_has_no_number(left, right):
    got = one(left, right)
    assert (got["kendall_tau"], got["tau_ap"]) == (None, None)


def test_bad_frames_say_what_is_wrong(refused):
    means = means_of(rr=[0.1, 0.2], ap=[0.3, 0.2])
    for columns, options in (((), {"model": "system"}), (("ndcg", "rr"), {})):
        refused(rf.stats.metric_agreement, means, *columns, **options)
    refused(rf.stats.metric_agreement, means.with_columns(name=pl.lit("x")), "name", "rr")
    refused(rf.stats.metric_agreement, means, "rr")
    for twice in (pl.concat([means, means]), means.with_columns(model=pl.lit(None, pl.String))):
        refused(rf.stats.metric_agreement, twice)
    refused(rf.stats.metric_agreement, [1])
