"""Geometric means over users: evaluated, described, compared and drawn as other metrics are."""

import math

import polars as pl
import pytest
from scipy import stats
from two_models import assert_equal

import rankframe as rf
from rankframe._command.main import _MODELS, _RELEVANT
from rankframe.presets import PRESETS

USERS = range(10)


def article():
    """The article's two recommenders, and what its ten users want."""
    runs = [
        rf.from_lists(
            pl.DataFrame({"user": USERS, "item": [list(items) for items in lists]})
        ).with_columns(model=pl.lit(model))
        for model, lists in _MODELS.items()
    ]
    liked = rf.from_lists(pl.DataFrame({"user": USERS, "item": [list(x) for x in _RELEVANT]}))
    return pl.concat(runs), liked.drop("rank")


RUN, TRUTH = article()


def values_of(label, run=RUN, truth=TRUTH, **options):
    """The values of users by model, in the order of the users."""
    table = rf.per_user(run, label, truth=truth, by="model", **options)
    return {
        name[0]: part[label].to_list()
        for name, part in table.partition_by("model", as_dict=True).items()
    }


def geometric(values, epsilon):
    return math.exp(math.fsum(math.log(x + epsilon) for x in values) / len(values)) - epsilon


def t_ends(values, confidence):
    """Student's interval of a mean, by the formula."""
    n, mean = len(values), math.fsum(values) / len(values)
    error = math.sqrt(math.fsum((x - mean) ** 2 for x in values) / (n - 1) / n)
    margin = stats.t.ppf((1 + confidence) / 2, n - 1) * error
    return mean - margin, mean + margin


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


def test_article_ends_in_a_test():
    means = RUN.rank.evaluate("map", "gmap", truth=TRUTH, by="model")
    assert means.select(pl.col("map", "gmap").round(3)).rows() == [(0.369, 0.32), (0.352, 0.121)]
    got = RUN.rank.compare("map", "gmap", truth=TRUTH, baseline="M1", details=True).rows_by_key(
        "metric", named=True, unique=True
    )["gmap"]
    first, second = values_of("ap").values()
    logs = [math.log(b + 1e-5) - math.log(a + 1e-5) for a, b in zip(first, second, strict=True)]
    low, high = t_ends(logs, 0.95)
    base = geometric(first, 1e-5) + 1e-5
    ratio = math.exp(math.fsum(logs) / 10)
    assert got["baseline_mean"] == close(geometric(first, 1e-5))
    assert got["mean"] == close(geometric(second, 1e-5))
    assert (
        got["difference"] == close(got["mean"] - got["baseline_mean"]) == close(base * (ratio - 1))
    )
    assert (got["ci_low"], got["ci_high"]) == (
        close(base * (math.exp(low) - 1)),
        close(base * (math.exp(high) - 1)),
    )
    assert got["p_value"] == 1.0  # of both signs of one difference; Student's is 0.343
    assert got["note"] == (
        f"ratio {ratio:.3g}, 95% interval {math.exp(low):.3g} to {math.exp(high):.3g}"
        "; exact test: only 1 user differs"
    )
    assert got["note"].startswith("ratio 0.378, 95% interval 0.042")
    assert (got["higher"], got["equal"], got["lower"], got["users"]) == (0, 9, 1, 10)
    assert got["effect_size"] == close(math.fsum(logs) / 10 / pl.Series(logs).std())


@pytest.mark.parametrize(
    ("label", "of_user", "epsilon"),
    [
        ("gmap@3", "ap@3", 1e-5),
        ("gmap(epsilon=0.01)@3", "ap@3", 0.01),
        ("gmap(rel=1)@3", "ap@3", 1e-5),
    ],
)
def test_gmap_is_a_geometric_mean(label, of_user, epsilon):
    got = RUN.rank.evaluate(label, truth=TRUTH, by="model")
    expected = [geometric(values, epsilon) for values in values_of(of_user).values()]
    assert got[label].to_list() == [close(value) for value in expected]
    lazy = rf.evaluate(RUN.lazy(), label, truth=TRUTH, by="model").collect()
    assert lazy[label].to_list() == [close(value) for value in expected]


def test_geometric_mean_of_any_metric_is_a_recipe():
    """The line that the page of recipes has."""
    values = RUN.rank.per_user("ap@3", truth=TRUTH, by="model")
    mean = (pl.col("ap@3") + 1e-5).log().mean().exp() - 1e-5
    got = values.group_by("model", maintain_order=True).agg(mean)["ap@3"]
    want = RUN.rank.evaluate("gmap@3", truth=TRUTH, by="model")["gmap@3"]
    assert got.to_list() == [close(value) for value in want]


def test_gmap_is_the_geometric_mean_of_ap():
    for defaults in ({}, {"ap@k": {"divide_by": "attainable"}}, PRESETS["lenskit"]["defaults"]):
        got = RUN.rank.evaluate("gmap@5", truth=TRUTH, by="model", preset={"defaults": defaults})
        expected = values_of("map@5", preset={"defaults": defaults}).values()
        assert got["gmap@5"].to_list() == [close(geometric(x, 1e-5)) for x in expected]


@pytest.mark.parametrize("label", ["gmap", "gm_map", "gmap(epsilon=0.1)@3"])
def test_summarize_gives_the_interval_on_the_scale_of_the_metric(label):
    epsilon = {"gmap": 1e-5, "gm_map": 0.0}.get(label, 0.1)
    of_user = "ap@3" if "@" in label else "ap"
    got = RUN.rank.summarize(label, truth=TRUTH, confidence=0.9, method="t")
    for row, values in zip(got.to_dicts(), values_of(of_user).values(), strict=True):
        floored = [max(x, 1e-5) for x in values] if label == "gm_map" else values
        low, high = t_ends([math.log(x + epsilon) for x in floored], 0.9)
        assert row["mean"] == close(geometric(floored, epsilon))
        assert row["ci_low"] == close(max(math.exp(low) - epsilon, 0))
        assert row["ci_high"] == close(min(math.exp(high) - epsilon, 1))
        assert (row["min"], row["max"]) == (min(values), max(values))  # of the users' values
        assert ("interval cut" in row["note"]) == (math.exp(high) - epsilon > 1)


@pytest.mark.parametrize("test", ["t", "randomization", "max_t"])
def test_tests_of_geometric_means_are_of_logarithms(test):
    third = RUN.filter(model="M1").with_columns(model=pl.lit("M3"), rank=6 - pl.col("rank"))
    run = pl.concat([RUN, third])
    mine = (rf.metrics.average_precision() + 1e-5).log().alias("log")
    options = {"truth": TRUTH, "test": test, "resamples": 300}
    logs = run.rank.compare(mine, **options, details=True)
    got = run.rank.compare("gmap", **options, details=True)
    same = ["users", "p_value", "p_adjusted", "effect_size", "higher", "equal", "lower"]
    for name in same:
        expected = [None if x is None else close(x) for x in logs[name]]
        assert got[name].to_list() == expected, name
    for row, log in zip(got.to_dicts(), logs.to_dicts(), strict=True):
        base = row["baseline_mean"] + 1e-5
        if log["ci_low"] is None:
            assert row["ci_low"] is None
            continue
        low, high = (base * (math.exp(log[name]) - 1) for name in ("ci_low", "ci_high"))
        assert (row["ci_low"], row["ci_high"]) == (close(max(low, -1)), close(min(high, 1)))
        assert row["ci_low"] < row["difference"] < row["ci_high"]
        assert row["note"].startswith("ratio ")
        notes = (log["note"] or "").split("; ")
        found = "; ".join(n for n in notes if not n.startswith(("relative ", "systems ")))
        assert found in row["note"]
        assert "relative" not in row["note"]
        assert ("interval cut at the greatest difference" in row["note"]) == (high > 1)


def test_metrics_beside_it_are_compared_as_ever():
    alone = RUN.rank.compare("map", "ndcg@5", truth=TRUTH, correction=None)
    got = RUN.rank.compare("map", "gmap@5", "ndcg@5", truth=TRUTH, correction=None)
    assert_equal(got.filter(pl.col("metric") != "gmap@5"), alone)
    assert got["metric"].to_list() == ["map", "gmap@5", "ndcg@5"]


def test_systems_that_do_not_differ_have_the_ratio_1():
    run = pl.concat(
        [RUN.filter(model="M1"), RUN.filter(model="M1").with_columns(model=pl.lit("M2"))]
    )
    got = run.rank.compare("gmap@3", truth=TRUTH, details=True).row(0, named=True)
    assert got["difference"] == 0
    assert (got["ci_low"], got["ci_high"], got["p_value"]) == (None, None, None)
    by_name = "systems are sorted by name, unless baseline= names one"
    assert got["note"] == f"ratio 1; no user differs; {by_name}"


def test_value_of_0_has_no_logarithm_without_epsilon():
    got = RUN.rank.summarize("gmap(epsilon=0)", truth=TRUTH, method="t")
    assert got["mean"].to_list() == [close(0.3203790), 0.0] or got["mean"][1] == 0.0
    few = "too few users for a sure interval: 7 of 10 have another value than the most frequent one"
    assert got["note"].to_list() == [few, "no interval: 0 has no logarithm; use epsilon > 0"]
    assert got["ci_low"].null_count() == 1
    with pytest.raises(
        rf.RankingDataError, match=r"a value of 0, .* epsilon > 0.*model='M2', user=9"
    ):
        RUN.rank.compare("gmap(epsilon=0)", truth=TRUTH, details=True)


def test_charts_and_at_k_take_them():
    got = rf.stats.at_k(RUN, "gmap", "map", k=[3, 5], truth=TRUTH, by="model")
    summary = RUN.rank.summarize("gmap@3,5", "map@3,5", truth=TRUTH, by="model")
    names = ["mean", "ci_low", "ci_high"]
    assert got.select(names).equals(summary.select(names))
    chart = RUN.rank.plot.at_k("gmap", k=[3, 5], truth=TRUTH)
    gmap = got.filter(metric="gmap")
    assert chart.data.select(names).equals(gmap.select(names))
    drawn = RUN.rank.plot.compare("gmap@5", truth=TRUTH).data
    found = drawn["difference"].to_list()
    assert found == RUN.rank.compare("gmap@5", truth=TRUTH, details=True)["difference"].to_list()


def test_geometric_mean_has_no_value_per_user():
    judged = RUN.filter(model="M1").drop("model").rank.judge(TRUTH)
    text = (
        r"'gmap@5' is a mean over users, not a value per user: use evaluate, summarize, compare or "
        r"at_k; it is the geometric mean of 'ap@5'"
    )
    for refused in (lambda: judged.rank.per_user("gmap@5"), lambda: rf.metrics.of_label("gmap@5")):
        with pytest.raises(ValueError, match=text):
            refused()


def test_undefined_values_are_not_below_0():
    for verb in (rf.evaluate, rf.summarize, rf.compare):
        with pytest.raises(ValueError, match="undefined must be None or ≥ 0 for a geometric mean"):
            verb(RUN, "gmap@3", truth=TRUTH, by="model", undefined=-1)


def test_ties_have_no_expected_geometric_mean():
    scored = RUN.select("model", "user", "item", score=pl.lit(1.0))
    tied = scored.rank.with_rank(by="model", ties="expected")
    with pytest.raises(ValueError, match="a geometric mean has no exact expectation under ties"):
        tied.rank.evaluate("gmap@3", truth=TRUTH, by="model")
