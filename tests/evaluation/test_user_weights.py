"""Weights of users: the formula by hand, the bootstrap by SciPy, and all that is refused."""

import itertools
import math
import random

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from two_models import assert_equal
from user_values import FEW, VALUE

import rankframe as rf

VALUES = [0.1, 0.4, 0.35, 0.8, 0.9, 0.2, 0.6]
OTHERS = [0.3, 0.2, 0.45, 0.7, 0.4, 0.1, 0.6]
WEIGHTS = [1.0, 2.5, 3.0, 0.5, 10.0, 4.0, 2.0]

RUN = pl.DataFrame(
    {
        "user": [1, 1, 1, 2, 2, 2, 3, 3],
        "item": ["a", "b", "c", "a", "b", "c", "x", "a"],
        "rank": [1, 2, 3, 1, 2, 3, 1, 2],
    }
)
TRUTH = pl.DataFrame(
    {
        "user": [1, 2, 2, 3, 4],
        "item": ["a", "b", "c", "a", "a"],
        "impressions": [10, 3, 3, 5, 2],
    }
)


def table(weights, *systems):
    """A judged table in which the metric VALUE of user u is systems[m][u]; None is undefined."""
    rows = [
        {"model": f"m{m}", "user": u, "item": 0, "rank": 1, "relevance": 1, "value": x, "w": w}
        for m, values in enumerate(systems)
        for u, (x, w) in enumerate(zip(values, weights, strict=True))
    ]
    return pl.DataFrame(rows, schema_overrides={"value": pl.Float64, "w": pl.Float64})


def by_hand(values, weights, confidence=0.95):
    """Mean, deviation, standard error, interval, t and p of a weighted mean, in plain Python."""
    n, total = len(values), math.fsum(weights)
    mean = math.fsum(w * x for w, x in zip(weights, values, strict=True)) / total
    pairs = [(w, (x - mean) ** 2) for w, x in zip(weights, values, strict=True)]
    without = [  # the jackknife
        math.fsum(w * x for j, (w, x) in enumerate(zip(weights, values, strict=True)) if j != i)
        / (total - weights[i])
        for i in range(n)
    ]
    error = math.sqrt((n - 1) / n * math.fsum((x - mean) ** 2 for x in without))
    spread = math.sqrt(n / (n - 1) * math.fsum(w * d for w, d in pairs) / total)
    size = total**2 / math.fsum(w * w for w in weights)
    margin = stats.t.ppf((1 + confidence) / 2, size - 1) * error
    p = 2 * stats.t.sf(abs(mean) / error, size - 1)
    return {
        "mean": mean,
        "std": spread,
        "ci_low": mean - margin,
        "ci_high": mean + margin,
        "p": p,
        "size": size,
    }


# ------------------------------------------------------------------ means


def test_gauc_is_the_auc_weighted_by_impressions():
    """AUC of user 1: both misses are below the hit; of 2 and 3 above; 4 has no list, so no pair."""
    run = pl.concat([RUN, pl.DataFrame({"user": [3], "item": ["y"], "rank": [3]})])
    values = run.rank.per_user("auc", truth=TRUTH)["auc"].to_list()
    assert values == [1.0, 0.0, 0.5, None]
    got = run.rank.evaluate("auc", truth=TRUTH, weights="impressions")
    assert got.columns == ["users", "auc"]
    assert got.row(0) == (4, pytest.approx((10 * 1 + 3 * 0 + 5 * 0.5) / (10 + 3 + 5), abs=1e-15))


def test_ndcg_weighted_by_traffic_is_the_sum_by_hand():
    second = 1 / math.log2(3)
    ideal = 1 + second
    values = [1.0, (second + 0.5) / ideal, second, 0.0]
    expected = sum(w * x for w, x in zip([10, 3, 5, 2], values, strict=True)) / 20
    got = RUN.rank.evaluate("ndcg@3", truth=TRUTH, weights="impressions")
    assert got["ndcg@3"].item() == pytest.approx(expected, abs=1e-15)


@pytest.mark.parametrize("seed", range(5))
def test_means_of_groups_and_totals_are_those_by_hand(seed):
    rng = random.Random(seed)
    rows = [
        {"g": g, "user": f"{g}{u}", "x": rng.choice([rng.random(), None]), "w": rng.random() * 9}
        for g in "ab"
        for u in range(9)
    ]
    judged = pl.DataFrame(rows, schema_overrides={"x": pl.Float64}).with_columns(
        item=0, rank=1, relevance=1
    )
    x = pl.col("x").filter("relevant").first()
    got = judged.rank.evaluate(x, by="g", total=True, weights="w")
    for group, users, value in got.rows():
        chosen = [r for r in rows if group in (None, r["g"])]
        known = [r for r in chosen if r["x"] is not None]
        expected = sum(r["w"] * r["x"] for r in known) / sum(r["w"] for r in known)
        assert (users, value) == (len(chosen), pytest.approx(expected, rel=1e-14))


def test_equal_weights_change_nothing():
    plain = RUN.rank.evaluate("ndcg@3", "map", "gmap", "hit@1", truth=TRUTH)
    for weight in (1, 2, 0.25, 1e-12, 1e15, 5e-324, 1.7e308):
        truth = TRUTH.with_columns(impressions=pl.lit(weight))
        got = RUN.rank.evaluate(
            "ndcg@3", "map", "gmap", "hit@1", truth=truth, weights="impressions"
        )
        assert got.row(0) == pytest.approx(plain.row(0), rel=1e-14)


@pytest.mark.filterwarnings("ignore:In Polars 2.0, the default:DeprecationWarning")
def test_whole_weights_count_users_several_times():
    copies = TRUTH.select("user", copy=pl.int_ranges(pl.col("impressions"))).unique("user")
    copies = copies.explode("copy")
    name = (pl.col("user") * 100 + pl.col("copy")).alias("user")
    runs, truths = (frame.join(copies, on="user").with_columns(name) for frame in (RUN, TRUTH))
    for metric in ("ndcg@3", "map", "gmap"):
        expected = runs.rank.evaluate(metric, truth=truths)[metric].item()
        got = RUN.rank.evaluate(metric, truth=TRUTH, weights="impressions")[metric].item()
        assert got == pytest.approx(expected, rel=1e-13)


def test_order_of_rows_does_not_change_a_bit():
    rng = np.random.default_rng(3)
    weights, values = rng.gamma(0.3, size=997) * 1000, rng.random(997)
    judged = table(weights.tolist(), values.tolist())
    got = {
        judged.sample(fraction=1, shuffle=True, seed=s)
        .rank.evaluate(VALUE, weights="w")["value"]
        .item()
        for s in range(8)
    }
    assert len(got) == 1
    expected = math.fsum(weights * values) / math.fsum(weights)
    assert got.pop() == pytest.approx(expected, rel=1e-15)


def test_weight_may_be_of_the_run_or_of_a_judged_table():
    expected = RUN.rank.evaluate(
        "map", truth=TRUTH.filter(pl.col("user") < 4), weights="impressions"
    )
    of_users = TRUTH.select("user", "impressions").unique()
    run = RUN.join(of_users, on="user")
    truth = TRUTH.drop("impressions")
    got = run.rank.evaluate("map", truth=truth, users="both", weights="impressions")
    assert_equal(got, expected)
    judged = RUN.rank.judge(TRUTH)
    assert judged["impressions"].null_count() > 0
    whole = RUN.rank.evaluate("map", truth=TRUTH, weights="impressions")
    assert_equal(judged.rank.evaluate("map", weights="impressions"), whole)
    lazy = RUN.lazy().rank.judge(TRUTH.lazy()).rank.evaluate("map", weights="impressions")
    assert_equal(lazy.collect(), whole)


def test_lists_alone_are_weighted():
    run = RUN.with_columns(w=pl.col("user") ** 2, price=pl.col("rank") * 2.0)
    price = pl.col("price").filter("listed").mean().alias("price")
    got = run.rank.evaluate(price, weights="w")["price"].item()
    assert got == pytest.approx((1 * 4 + 4 * 4 + 9 * 3) / 14)


def test_truth_with_folds_has_a_weight_per_fold():
    run = pl.concat([RUN.with_columns(fold=f) for f in (1, 2)])
    truth = pl.concat(
        [TRUTH.with_columns(fold=f, impressions=pl.col("impressions") * f) for f in (1, 2)]
    )
    got = run.rank.evaluate("map", truth=truth, by="fold", weights="impressions")
    one = RUN.rank.evaluate("map", truth=TRUTH, weights="impressions")["map"].item()
    assert got["map"].to_list() == pytest.approx([one, one])


def test_bounds_are_weighted():
    got = RUN.rank.evaluate("precision@2", truth=TRUTH, unjudged="bounds", weights="impressions")
    values = RUN.rank.per_user("precision@2", truth=TRUTH, unjudged="bounds")
    weights = pl.Series([10, 3, 5, 2])
    for name in ("precision@2", "precision@2_low", "precision@2_high"):
        expected = (values[name] * weights).sum() / 20
        assert got[name].item() == pytest.approx(expected)


def test_undefined_value_has_no_weight():
    judged = table([1.0, 100.0, 3.0], [0.5, None, 1.0])
    assert judged.rank.evaluate(VALUE, weights="w").row(0) == ("m0", 3, pytest.approx(3.5 / 4))
    got = judged.rank.evaluate(VALUE, weights="w", undefined=0.0)["value"].item()
    assert got == pytest.approx(3.5 / 104)


# ------------------------------------------------------------------ intervals and tests


@pytest.mark.parametrize("confidence", [0.95, 0.6])
def test_interval_is_the_formula_by_hand(confidence):
    judged = table(WEIGHTS, VALUES)
    options = {"weights": "w", "confidence": confidence, "method": "t"}
    got = judged.rank.summarize(VALUE, **options).row(0, named=True)
    expected = by_hand(VALUES, WEIGHTS, confidence)
    for name in ("mean", "std", "ci_low", "ci_high"):
        assert got[name] == pytest.approx(expected[name], rel=1e-12)
    size = f"{expected['size']:.4g}"
    few = f"too few users for a sure interval: {size}"
    assert got["note"] == f"effective users: {size}; {few}"
    assert (got["min"], got["median"], got["max"]) == (0.1, 0.4, 0.9)


def test_t_test_is_the_formula_by_hand():
    change = [b - a for a, b in zip(VALUES, OTHERS, strict=True)]
    expected = by_hand(change, WEIGHTS)
    got = table(WEIGHTS, VALUES, OTHERS).rank.compare(
        VALUE, baseline="m0", weights="w", details=True
    )
    row = got.row(0, named=True)
    assert row["difference"] == pytest.approx(expected["mean"], rel=1e-12)
    assert row["mean"] == pytest.approx(by_hand(OTHERS, WEIGHTS)["mean"], rel=1e-12)
    assert row["baseline_mean"] == pytest.approx(by_hand(VALUES, WEIGHTS)["mean"], rel=1e-12)
    assert row["p_value"] == pytest.approx(expected["p"], rel=1e-9)
    ends = expected["ci_low"], expected["ci_high"]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx(ends, rel=1e-9)
    assert row["effect_size"] == pytest.approx(expected["mean"] / expected["std"], rel=1e-9)
    assert (row["users"], row["higher"], row["equal"], row["lower"]) == (7, 2, 1, 4)
    few = "no exact test with weights, though only 6 users differ"
    assert row["note"] == f"{few}; effective users: {expected['size']:.4g}"


@pytest.mark.parametrize("method", ["t", "auto"])
def test_equal_weights_give_the_plain_interval(method):
    plain = table(WEIGHTS, VALUES).rank.summarize(VALUE, method=method, resamples=FEW)
    judged = table([3.0] * 7, VALUES)
    got = judged.rank.summarize(VALUE, method=method, resamples=FEW, weights="w")
    for name in ("mean", "std", "ci_low", "ci_high"):
        assert got[name].item() == pytest.approx(plain[name].item(), rel=1e-10)
    chosen = "auto: Student's t, 7 users, skewness 0.21; " * (method == "auto")
    assert got["note"].item() == f"effective users: 7; {chosen}too few users for a sure interval: 7"


@pytest.mark.parametrize("weight", [0.125, 1e-300, 1e300])
@pytest.mark.parametrize("test", ["t", "randomization"])
def test_equal_weights_give_the_plain_test(test, weight):
    options = {"test": test, "resamples": FEW, "baseline": "m0"}
    plain = (
        table(WEIGHTS, VALUES, OTHERS)
        .rank.compare(VALUE, **options, details=True)
        .row(0, named=True)
    )
    judged = table([weight] * 7, VALUES, OTHERS)
    got = judged.rank.compare(VALUE, weights="w", **options, details=True).row(0, named=True)
    for name in ("difference", "ci_low", "ci_high", "p_value", "effect_size"):
        assert got[name] == pytest.approx(plain[name], rel=1e-9)


def test_randomization_flips_the_weighted_differences():
    parts = [round(w * (b - a) * 1e6) for w, a, b in zip(WEIGHTS, VALUES, OTHERS, strict=True)]
    sums = [
        abs(sum(s * p for s, p in zip(signs, parts, strict=True)))
        for signs in itertools.product([1, -1], repeat=7)
    ]
    expected = sum(value >= abs(sum(parts)) for value in sums) / len(sums)
    got = table(WEIGHTS, VALUES, OTHERS).rank.compare(
        VALUE, test="randomization", weights="w", details=True
    )
    assert got["p_value"].item() == pytest.approx(expected, abs=1e-12)


def test_users_of_weight_0_are_no_observations():
    weights = [*WEIGHTS, 0.0, 0.0]
    wide = table(weights, [*VALUES, 0.7, 0.9], [*OTHERS, 0.1, 0.2])
    narrow = table(WEIGHTS, VALUES, OTHERS)
    got = wide.rank.compare(VALUE, weights="w", details=True)
    assert_equal(got, narrow.rank.compare(VALUE, weights="w", details=True))
    names = ["mean", "std", "ci_low", "ci_high", "note"]
    summaries = [frame.rank.summarize(VALUE, by="model", weights="w") for frame in (wide, narrow)]
    assert_frame_equal(summaries[0].select(names), summaries[1].select(names), rel_tol=1e-12)
    assert summaries[0]["users"].to_list() == [9, 9]


def test_metrics_of_different_users_have_their_own_weights():
    judged = table(WEIGHTS, VALUES).with_columns(
        other=pl.when(pl.col("user") > 2).then(pl.col("value") ** 2)
    )
    other = pl.col("other").filter("relevant").first()
    for method in ("t", "auto"):
        options = {"method": method, "resamples": FEW, "weights": "w"}
        both = judged.rank.summarize(VALUE, other, **options)
        alone = judged.rank.summarize(other, **options)
        assert both[1].equals(alone)
    expected = by_hand([x**2 for x in VALUES[3:]], WEIGHTS[3:])
    assert judged.rank.summarize(other, weights="w")["mean"].item() == pytest.approx(
        expected["mean"]
    )


def test_counts_are_averaged_by_weight_in_summaries():
    got = RUN.rank.summarize("num_hits", truth=TRUTH, weights="impressions")["mean"].item()
    assert got == pytest.approx((10 * 1 + 3 * 2 + 5 * 1 + 2 * 0) / 20)


def test_geometric_mean_is_weighted():
    values = RUN.rank.per_user("ap", truth=TRUTH)["ap"].to_list()
    logs = [w * math.log(x + 1e-5) for w, x in zip([10, 3, 5, 2], values, strict=True)]
    expected = math.exp(sum(logs) / 20) - 1e-5
    for verb in (rf.evaluate, rf.summarize):
        got = verb(RUN, "gmap", truth=TRUTH, weights="impressions")
        assert got[
            {"evaluate": "gmap", "summarize": "mean"}[verb.__name__]
        ].item() == pytest.approx(expected)


def test_weight_of_one_user_alone_is_one_user():
    judged = table([0.0, 2.0, 0.0], [0.1, 0.2, 0.3], [0.3, 0.5, 0.3])
    row = judged.rank.summarize(VALUE, by="model", weights="w").row(0, named=True)
    assert (row["mean"], row["std"], row["ci_low"]) == (pytest.approx(0.2), None, None)
    assert row["note"] == "one user; effective users: 1"
    row = judged.rank.compare(VALUE, weights="w", details=True).row(0, named=True)
    assert (row["users"], row["p_value"]) == (1, None)
    by_name = "systems are sorted by name, unless baseline= names one"
    assert row["note"] == f"one user; effective users: 1; {by_name}"


# ------------------------------------------------------------------ charts and the command


def test_charts_are_weighted():
    run = pl.concat([RUN.with_columns(model=pl.lit(m)) for m in "ab"])
    expected = RUN.rank.evaluate("ndcg@2", truth=TRUTH, weights="impressions")["ndcg@2"].item()
    options = {"truth": TRUTH, "weights": "impressions"}
    chart = run.rank.plot.at_k("ndcg", k=[2], **options)
    assert chart.data["mean"].to_list() == pytest.approx([expected] * 2)
    assert "Mean weighted by impressions over 4 users" in chart.to_json(format="vega-lite")
    placed = options | {"truth": TRUTH.with_columns(land=pl.lit("x"))}
    points = run.rank.plot.segments("ndcg@2", by="land", **placed).data
    assert points["value"].to_list() == pytest.approx([expected] * 2)
    points = run.rank.plot.trade_off("ndcg@2", "map", **options).data
    assert points["x"].to_list() == pytest.approx([expected] * 2)
    pairs = run.rank.plot.compare("ndcg@2", **options).data
    assert pairs["mean"].item() == pytest.approx(expected)
    for draw in (
        lambda: run.rank.plot.per_user("ndcg@2", **options),
        lambda: run.rank.plot.who_gained(2, baseline="a", **options),
    ):
        with pytest.raises(ValueError, match="leave (out weights=|it out)"):
            draw()


# ------------------------------------------------------------------ what is refused


def weighed(weights, **options):
    truth = TRUTH.with_columns(pl.Series("impressions", weights, strict=False))
    return RUN.rank.evaluate("map", truth=truth, weights="impressions", **options)


@pytest.mark.parametrize(
    ("weights", "text"),
    [
        (
            [1, -3, -3, 5, 2],
            "negative weight: a weight is a finite number ≥ 0. Offending row: user=2",
        ),
        ([1.0, float("nan"), 1.0, 5, 2], "NaN or infinite weight"),
        ([1.0, float("inf"), 1.0, 5, 2], "NaN or infinite weight"),
        ([1, None, 1, 5, 2], "null weight"),
        ([1, 3, 4, 5, 2], "several weights of one user: .*Offending row: user=2, impressions=4"),
        (["a"] * 5, "String cannot be a weight: cast it to numbers"),
    ],
)
@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_bad_weights_are_reported(weights, text, kind):
    truth = TRUTH.with_columns(pl.Series("impressions", weights, strict=False))
    with pytest.raises(rf.RankingDataError, match=f"truth, column 'impressions': {text}"):
        if kind == "lazy":
            RUN.lazy().rank.evaluate("map", truth=truth, weights="impressions").collect()
        else:
            RUN.rank.evaluate("map", truth=truth, weights="impressions")
    with pytest.raises(rf.RankingDataError, match=f"truth, column 'impressions': {text}"):
        RUN.rank.summarize("map", truth=truth, weights="impressions")


def test_weights_that_are_all_0_have_no_mean():
    with pytest.raises(
        rf.RankingDataError, match="every user with a value of 'map' has the weight 0"
    ):
        weighed([0, 0, 0, 0, 0])
    for verb in ("summarize", "compare"):
        judged = table([0.0] * 7, VALUES, OTHERS)
        with pytest.raises(rf.RankingDataError, match="has the weight 0"):
            getattr(judged.rank, verb)(VALUE, by="model", weights="w")
    run = pl.concat([RUN.with_columns(day=d) for d in (1, 2)])
    truth = pl.concat(
        [TRUTH.with_columns(day=d, impressions=pl.col("impressions") * (d - 1)) for d in (1, 2)]
    )
    with pytest.raises(rf.RankingDataError, match="Offending row: day=1"):
        run.rank.evaluate("map", truth=truth, by="day", weights="impressions")


def test_run_has_no_weights_of_users_whom_it_misses():
    run = RUN.join(TRUTH.select("user", "impressions").unique(), on="user")
    truth = TRUTH.drop("impressions")
    with pytest.raises(
        rf.RankingDataError,
        match="run, column 'impressions': a user in the mean has no weight: join the weights "
        "to the truth, .*users='both'. Offending row: user=4",
    ):
        run.rank.evaluate("map", truth=truth, weights="impressions")
    missed = pl.concat([run.with_columns(model=pl.lit("a")), run.with_columns(model=pl.lit("b"))])
    missed = missed.filter(~((pl.col("model") == "b") & (pl.col("user") == 3)))
    got = missed.rank.evaluate(
        "map", truth=truth.filter(pl.col("user") < 4), by="model", weights="impressions"
    )
    assert got["users"].to_list() == [3, 3]  # user 3 has the weight of the other model


def test_user_without_a_value_needs_no_weight():
    run = pl.concat([RUN, pl.DataFrame({"user": [9], "item": ["a"], "rank": [1]})])
    got = run.rank.evaluate("map", truth=TRUTH, users="all", weights="impressions")
    expected = RUN.rank.evaluate("map", truth=TRUTH, weights="impressions")
    assert got["map"].item() == expected["map"].item()
    with pytest.raises(rf.RankingDataError, match="only the truth has weights: use users='truth'"):
        run.rank.evaluate("map", truth=TRUTH, users="all", undefined=0.0, weights="impressions")


@pytest.mark.parametrize("test", ["max_t", "sequential"])
def test_tests_without_a_weighted_form_refuse(test, refused):
    refused(lambda: table(WEIGHTS, VALUES, OTHERS).rank.compare(VALUE, test=test, weights="w"))


def test_numbers_that_are_no_mean_refuse_weights(refused):
    options = {"truth": TRUTH, "weights": "impressions"}
    refused(RUN.rank.evaluate, "num_hits", **options)
    items = pl.DataFrame({"item": ["a", "b", "c", "x"]})
    for verb in (rf.evaluate, rf.summarize):
        refused(verb, RUN, "coverage@2", items=items, **options)
    refused(RUN.rank.per_user, "map", **options)
    refused(RUN.rank.precision_at, 1, **options)
    run = pl.concat([RUN.with_columns(model=pl.lit(m)) for m in "ab"])
    refused(run.rank.stats.who_gained, 2, baseline="a", **options)


def test_column_that_is_no_weight_is_reported(refused):
    refused(RUN.rank.evaluate, "map", truth=TRUTH, weights="views")
    refused(RUN.rank.evaluate, "map", truth=TRUTH, weights=3)
    refused(RUN.rank.evaluate, "map", truth=TRUTH, weights="rank")
    refused(
        lambda: RUN.with_columns(impressions=1).rank.evaluate(
            "map", truth=TRUTH, weights="impressions"
        )
    )


def test_rules_of_tables_come_before_those_of_weights():
    with pytest.raises(rf.RankingDataError, match="a rank that is not an integer ≥ 1"):
        RUN.with_columns(pl.col("rank") - 1).rank.evaluate(
            "map", truth=TRUTH, weights="impressions"
        )
