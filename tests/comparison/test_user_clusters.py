"""Clusters of users: the formula by hand, the bootstrap and signs of clusters, what is refused."""

import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import FEW, VALUE

import rankframe as rf
from rankframe._comparison import statistics as st

OLD = [0.1, 0.4, 0.35, 0.8, 0.9, 0.2, 0.6, 0.55]
NEW = [0.3, 0.2, 0.45, 0.7, 0.4, 0.1, 0.6, 0.95]
WHOSE = ["a", "a", "b", "c", "c", "c", "d", "b"]
WEIGHTS = [1.0, 2.5, 3.0, 0.5, 10.0, 4.0, 2.0, 1.5]
BY_NAME = "; systems are sorted by name, unless baseline= names one"


def table(clusters, *systems, weights=None):
    """A judged table in which the metric VALUE of user u is systems[m][u]; None is undefined."""
    weights = [1.0] * len(clusters) if weights is None else weights
    rows = [
        {"model": f"m{m}", "user": u, "item": 0, "rank": 1, "relevance": 1, "value": x}
        | {"customer": clusters[u], "w": weights[u]}
        for m, values in enumerate(systems)
        for u, x in enumerate(values)
    ]
    return pl.DataFrame(rows, schema_overrides={"value": pl.Float64, "w": pl.Float64})


def values_of(frame):
    return frame.select("model", "user", "customer", "w", value="value")


def by_hand(values, clusters, weights=None, confidence=0.95):
    """Mean, interval and p of the jackknife over clusters (CR3), in plain Python.

    The degrees of freedom are the effective number of clusters − 1.
    """
    weights = [1.0] * len(values) if weights is None else weights
    rows = list(zip(values, clusters, weights, strict=True))

    def mean_without(name):
        kept = [(w * x, w) for x, c, w in rows if c != name]
        return math.fsum(x for x, _ in kept) / math.fsum(w for _, w in kept)

    names, mean = sorted(set(clusters)), mean_without(None)
    number = len(names)
    left = math.fsum((mean_without(name) - mean) ** 2 for name in names)
    error, freedom = math.sqrt((number - 1) / number * left), effective(clusters, weights) - 1
    margin = stats.t.ppf((1 + confidence) / 2, freedom) * error
    p = 2 * stats.t.sf(abs(mean) / error, freedom)
    return mean, mean - margin, mean + margin, p


def effective(clusters, weights=None):
    """(Σ w)² / Σ w² of the weights of clusters."""
    weights = [1.0] * len(clusters) if weights is None else weights
    sizes = {}
    for c, w in zip(clusters, weights, strict=True):
        sizes[c] = sizes.get(c, 0.0) + w
    return math.fsum(sizes.values()) ** 2 / math.fsum(size**2 for size in sizes.values())


@pytest.mark.parametrize("weighted", [False, True])
def test_t_of_clusters_is_the_formula_by_hand(weighted):
    options = {"cluster": "customer"} | ({"weights": "w"} if weighted else {})
    change = [b - a for a, b in zip(OLD, NEW, strict=True)]
    mean, low, high, p = by_hand(change, WHOSE, WEIGHTS if weighted else None)
    judged = table(WHOSE, OLD, NEW, weights=WEIGHTS)
    got = judged.rank.compare(VALUE, **options, details=True).row(0, named=True)
    numbers = ("difference", "ci_low", "ci_high", "p_value")
    assert [got[name] for name in numbers] == pytest.approx([mean, low, high, p], rel=1e-12)
    assert (got["users"], got["higher"], got["equal"], got["lower"]) == (8, 3, 1, 4)
    assert "4 clusters" in got["note"]
    assert ("as good as 2.4 equal ones" in got["note"]) is weighted
    ready = values_of(judged).rank.compare("value", **options, details=True).row(0, named=True)
    assert ready == {**got, "num_missed": None, "baseline_num_missed": None}
    mean, low, high, _ = by_hand(NEW, WHOSE, WEIGHTS if weighted else None)
    for summary in (
        judged.rank.summarize(VALUE, by="model", **options),
        values_of(judged).rank.summarize("value", by="model", **options),
    ):
        row = summary.row(1, named=True)
        assert [row[name] for name in ("mean", "ci_low", "ci_high")] == pytest.approx(
            [mean, low, high], rel=1e-12
        )
        assert (row["users"], "too few for a sure interval; auto: " in row["note"]) == (8, True)


def test_description_of_users_does_not_change():
    judged = table(WHOSE, OLD, NEW)
    told = ["p_value", "p_adjusted", "ci_low", "ci_high", "note", "detectable"]
    told += ["relative_low", "relative_high"]
    got, plain = (
        judged.rank.compare(VALUE, cluster="customer", details=True),
        judged.rank.compare(VALUE, details=True),
    )
    assert got.drop(told).equals(plain.drop(told))
    assert got.schema == plain.schema
    got, plain = (
        judged.rank.summarize(VALUE, by="model", **c) for c in ({"cluster": "customer"}, {})
    )
    assert got.drop(told[2:5]).equals(plain.drop(told[2:5]))


@pytest.mark.parametrize("weighted", [False, True])
def test_margins_and_detectable_differences_are_those_of_clusters(weighted):
    options = {"cluster": "customer"} | ({"weights": "w"} if weighted else {})
    change = [b - a for a, b in zip(OLD, NEW, strict=True)]
    _, low, high, _ = by_hand(change, WHOSE, WEIGHTS if weighted else None)
    freedom = effective(WHOSE, WEIGHTS if weighted else None) - 1
    far = stats.t.ppf(0.975, freedom)
    error, margin = (high - low) / 2 / far, 0.3
    judged = table(WHOSE, OLD, NEW, weights=WEIGHTS)
    got = judged.rank.compare(VALUE, margin=margin, **options, details=True).row(0, named=True)
    assert got["p_equivalent"] is None
    assert "of 4 clusters differ, too few for the test" in got["note"]
    distance = got["detectable"] / error
    power = stats.ncf.sf(far**2, 1, freedom, distance**2)  # of t²
    assert power == pytest.approx(0.8, abs=1e-6)


@pytest.mark.parametrize("test", ["t", "randomization"])
def test_clusters_of_one_user_change_nothing(test):
    judged = table(list("abcdefgh"), OLD, NEW)
    options = {"test": test, "resamples": FEW}
    got = judged.rank.compare(VALUE, cluster="customer", **options)
    exact = "exact test: only 7 clusters differ; " * (test == "t")
    assert got["note"].item() == f"{exact}8 clusters, too few for a sure interval{BY_NAME}"
    assert got.drop("note").equals(judged.rank.compare(VALUE, **options).drop("note"))


def test_randomization_flips_all_differences_of_a_cluster():
    judged = table(WHOSE, OLD, NEW)
    got = judged.rank.compare(VALUE, cluster="customer", test="randomization", details=True)
    change = [b - a for a, b in zip(OLD, NEW, strict=True)]
    signs = itertools.product([1, -1], repeat=4)
    sums = [
        abs(
            sum(
                dict(zip("abcd", s, strict=True))[c] * d for c, d in zip(WHOSE, change, strict=True)
            )
        )
        for s in signs
    ]
    assert got["p_value"].item() == np.mean([s >= abs(sum(change)) - 1e-12 for s in sums])


def test_cluster_may_have_lists_of_every_model_and_users_may_return():
    days = [
        table(WHOSE, OLD, NEW).with_columns(day=1),
        table(WHOSE, NEW, OLD[::-1]).with_columns(day=2),
    ]
    judged = pl.concat(days)
    got = judged.rank.compare(
        VALUE, by=["model", "day"], total=True, cluster="customer", details=True
    )
    change = [b - a for a, b in zip(OLD + NEW, NEW + OLD[::-1], strict=True)]
    mean, low, high, p = by_hand(change, WHOSE * 2)
    row = got.filter(pl.col("day").is_null()).row(0, named=True)
    numbers = ("difference", "ci_low", "ci_high", "p_value")
    assert [row[name] for name in numbers] == pytest.approx([mean, low, high, p], rel=1e-12)
    merged = "8 users in several groups, one observation each"
    clusters = "4 clusters, as good as 3.6 equal ones, too few for a sure interval"
    few = "no exact test of clusters, though only 4 clusters differ"
    assert row["note"] == f"{few}; {merged}; {clusters}{BY_NAME}"
    got = judged.rank.summarize(VALUE, by=["model", "day"], total=True, cluster="customer")
    mean, low, high, _ = by_hand(NEW + OLD[::-1], WHOSE * 2)
    row = got.filter(pl.col("day").is_null(), model="m1").row(0, named=True)
    assert (row["mean"], row["ci_low"], row["ci_high"]) == pytest.approx((mean, low, high))


def test_clusters_come_from_the_truth_or_the_run():
    run = pl.DataFrame(
        {"user": [1, 2, 3, 4] * 2, "item": [7] * 8, "rank": [1, 2, 4, 1, 2, 3, 1, 1]}
    )
    run = run.with_columns(model=pl.Series(["old"] * 4 + ["new"] * 4))
    truth = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7] * 4, "who": ["x", "y", "y", None]})
    truth = truth.with_columns(pl.col("who").fill_null("z"))
    got = run.rank.compare("rr", truth=truth, baseline="old", cluster="who")
    moved = run.join(truth.select("user", "who"), on="user")
    plain = truth.drop("who")
    assert moved.rank.compare("rr", truth=plain, baseline="old", cluster="who").equals(got)
    assert (
        run.rank.judge(truth, by="model")
        .rank.compare("rr", baseline="old", cluster="who")
        .equals(got)
    )
    change = [1 / 2 - 1, 1 / 3 - 1 / 2, 1 - 1 / 4, 0]
    assert got["ci_low"].item() == max(by_hand(change, list("xyyz"))[1], -1)
    for dtype in (pl.Categorical, pl.Enum(["x", "y", "z"])):
        typed = truth.with_columns(pl.col("who").cast(dtype))
        assert run.rank.compare("rr", truth=typed, baseline="old", cluster="who").equals(got)
    codes = truth.with_columns(pl.col("who").replace_strict({"x": 1.5, "y": 2.5, "z": 3.5}))
    assert run.rank.compare("rr", truth=codes, baseline="old", cluster="who").equals(got)


def test_charts_take_clusters():
    users = pl.DataFrame({"user": range(12), "item": 7})
    runs = {f"m{m}": users.with_columns(rank=pl.col("user") % (3 + m) + 1) for m in (0, 1)}
    truth = users.with_columns(who=pl.format("w{}", pl.col("user") // 3))
    expected = rf.compare(runs, "rr", truth=truth, cluster="who")
    few = "no exact test of clusters, though only 3 clusters differ"
    assert few in expected["note"].item()
    chart = rf.plot.compare(runs, "rr", truth=truth, cluster="who")
    assert chart.data["ci_low"].item() == expected["ci_low"].item()


def test_notes_say_why_there_is_no_interval():
    judged = table(["a", "a", "b", "b"], [0.0] * 4, [0.1, -0.1, 0.3, -0.3])
    got = judged.rank.compare(VALUE, cluster="customer", details=True).row(0, named=True)
    assert (got["p_value"], got["ci_low"]) == (None, None)
    why = "2 clusters, too few for a sure interval; every cluster has the same mean"
    assert got["note"] == f"{why}{BY_NAME}"
    assert got["effect_size"] is not None
    undefined = table(["a", "a", "b", "b"], [0.0] * 4, [0.1, 0.2, None, None])
    got = undefined.rank.compare(VALUE, cluster="customer", details=True).row(0, named=True)
    assert (got["p_value"], got["note"], got["difference"]) == (
        None,
        f"one cluster; 2 of 4 users are left out: they have a value with one system only{BY_NAME}",
        0.15000000000000002,
    )
    summary = undefined.rank.summarize(VALUE, by="model", cluster="customer")
    assert summary["note"].to_list()[1] == "one cluster"


# ------------------------------------------------------------------ what is refused


def test_test_of_independent_users_refuses_clusters(refused):
    refused(
        lambda: table(WHOSE, OLD, NEW).rank.compare(VALUE, cluster="customer", test="sequential")
    )


def test_bad_clusters_are_reported(refused):
    judged = table(WHOSE, OLD, NEW)
    values = values_of(judged)
    one = pl.lit("a").alias("customer")
    null = pl.when(pl.col("user") != 2).then("customer").alias("customer")
    two = pl.when((pl.col("user") == 2) & (pl.col("model") == "m1")).then(pl.lit("z"))
    two = two.otherwise("customer").alias("customer")
    nested = pl.concat_list("customer").alias("customer")
    cases = [
        one,
        null,
        two,
        nested,
    ]
    for change in cases:
        for verb in (rf.compare, rf.summarize):
            refused(verb, judged.with_columns(change), VALUE, by="model", cluster="customer")
        refused(rf.compare, values.with_columns(change), "value", cluster="customer")
    refused(rf.summarize, values.with_columns(one), "value", by="model", cluster="customer")


def test_bad_clusters_of_a_truth_are_reported(refused):
    run = pl.DataFrame({"user": [1, 2] * 2, "item": [7] * 4, "rank": [1, 2, 2, 1]})
    run = run.with_columns(model=pl.Series(["old"] * 2 + ["new"] * 2))
    truth = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "who": ["x", "x", "y"]})
    cases = [
        truth.with_columns(who=pl.Series(["x", None, "y"])),
        truth.with_columns(who=pl.Series(["x", "z", "y"])),
        truth.with_columns(who=pl.Series([1.0, float("nan"), 2.0])),
        truth.drop("who"),
    ]
    for frame in cases:
        refused(run.rank.compare, "rr", truth=frame, cluster="who")
    more = run.join(truth.unique("user").select("user", "who"), on="user")
    refused(
        more[:3].rank.compare,
        "rr",
        truth=pl.DataFrame({"user": [1, 2, 3], "item": [7] * 3}),
        cluster="who",
    )


def test_clusters_report_bad_calls():
    judged = table(WHOSE, OLD, NEW)
    with pytest.raises(ValueError, match="cluster='user': this column has another role"):
        judged.rank.compare(VALUE, cluster="user")
    with pytest.raises(ValueError, match="cluster='user': this column has another role"):
        values_of(judged).rank.compare("value", cluster="user")
    with pytest.raises(rf.RankingDataError, match="no column 'shop'; it has"):
        values_of(judged).rank.compare("value", cluster="shop")
    for verb in (judged.rank.compare, judged.rank.summarize):
        with pytest.raises(TypeError, match="cluster must be the name of a column, not 3"):
            verb(VALUE, cluster=3)
        with pytest.raises(ValueError, match="is one number for all lists, and cluster="):
            verb("coverage@1", by="model", cluster="customer", items=pl.DataFrame({"item": [0]}))
    with pytest.raises(TypeError, match="evaluate has no keyword 'cluster'"):
        judged.rank.evaluate(VALUE, cluster="customer")


def test_user_who_returns_in_another_cluster_is_reported(refused):
    judged = table(WHOSE, OLD, NEW)
    other = judged.with_columns(day=2, customer=pl.lit("q"))
    values = values_of(judged).with_columns(day=1)
    both = pl.concat([values, values_of(other).with_columns(day=2)])
    options = {"by": ["model", "day"], "cluster": "customer"}
    assert both.rank.compare("value", **options).height == 2
    for verb in (rf.compare, rf.summarize):
        refused(verb, both, "value", total=True, **options)


# ------------------------------------------------------------------ coverage


def clustered(rng, number, times, shift=0.0):
    """Values of users whose clusters, of 1 to 9 users, share 0.3 of their variance."""
    sizes = rng.integers(1, 10, number)
    clusters = np.repeat(np.arange(number), sizes)
    shared = rng.normal(0, 0.3**0.5, (number, times))[clusters]
    return clusters, shared + rng.normal(0, 0.7**0.5, (len(clusters), times)) + shift


@pytest.mark.parametrize("test", ["t", "randomization"])
def test_intervals_of_clusters_cover_where_those_of_users_do_not(test):
    clusters, matrix = clustered(np.random.default_rng(5), 60, 1000, shift=0.2)
    samples = [st.of_clusters(clusters, st.Sample(column)) for column in matrix.T]
    resampling = st.Resampling(500, 0)

    def reduce(sample, advance):
        of_t = st.t_test(sample, 0.95)
        if test == "t":
            return of_t
        return of_t._replace(p=st.randomization(sample, advance, resampling).p)

    got = st.in_matrices(samples, reduce, lambda _: None)
    assert 0.93 <= ((got.low <= 0.2) & (got.high >= 0.2)).mean() <= 0.97
    naive = st.t_test(st.Sample(matrix), 0.95)
    assert ((naive.low <= 0.2) & (naive.high >= 0.2)).mean() < 0.9
    null = [st.of_clusters(clusters, st.Sample(column - 0.2)) for column in matrix.T]
    assert 0.03 <= (st.in_matrices(null, reduce, lambda _: None).p <= 0.05).mean() <= 0.07


def studentized_by_hand(values, clusters, times, seed, confidence=0.95):
    """Draw whole clusters, and take the t of each resample in plain Python."""
    names = sorted(set(clusters))
    of_each = [[x for x, c in zip(values, clusters, strict=True) if c == name] for name in names]
    number = len(names)

    def mean_and_error(groups):
        users = sum(map(len, groups))
        mean = math.fsum(map(math.fsum, groups)) / users
        squares = math.fsum((math.fsum(group) - len(group) * mean) ** 2 for group in groups)
        return mean, math.sqrt(number / (number - 1) * squares) / users

    mean, error = mean_and_error(of_each)
    ts = []
    for places in np.random.default_rng(seed).integers(0, number, (times, number)):
        of_resample, spread = mean_and_error([of_each[place] for place in places])
        if spread > 1e-5 * abs(of_resample - mean):
            ts.append((of_resample - mean) / spread)
    tail = (1 - confidence) / 2
    high, low = np.quantile(ts, [tail, 1 - tail])
    return mean - low * error, mean - high * error


def test_studentized_bootstrap_draws_whole_clusters():
    rng = np.random.default_rng(2)
    clusters = [f"c{number:02}" for number in np.sort(rng.integers(0, 12, 40))]
    values = rng.exponential(1, 40).round(6).tolist()
    options = {"resamples": FEW, "cluster": "customer", "by": "model"}
    frame = values_of(table(clusters, values))
    sample = st.of_clusters(
        np.unique(clusters, return_inverse=True)[1], st.Sample(np.array(values))
    )
    columns = [None if part is None else part[:, None] for part in sample]
    got = st.widened(st.Sample(*columns), 0.95, st.Resampling(FEW, 0), lambda _: None)
    low, high = studentized_by_hand(values, clusters, FEW, 0)
    t = st.t_test(st.Sample(*columns), 0.95)
    assert got.low[0] == pytest.approx(min(low, t.low[0]), rel=1e-9)
    assert got.high[0] == pytest.approx(max(high, t.high[0]), rel=1e-9)
    number = len(set(clusters))
    auto = frame.rank.summarize("value", method="auto", **options)
    t = frame.rank.summarize("value", method="t", **options)
    assert auto.drop("note").equals(t.drop("note"))
    assert f"auto: Student's t, {number} clusters, skewness" in auto["note"].item()


def test_auto_counts_clusters_and_takes_no_wilson():
    hits = [0.0, 1.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0]
    options = {"cluster": "customer", "by": "model"}
    frame = values_of(table(WHOSE, hits))
    got = frame.rank.summarize("value", method="auto", **options)
    assert "auto: Student's t, fewer than 5 clusters" in got["note"].item()
    student = frame.rank.summarize("value", **options)
    assert got.drop("note").equals(student.drop("note"))


def test_auto_gives_no_reason_for_an_interval_that_is_null():
    frame = values_of(table(list("aabb"), [0.0, 1.0, 0.0, 1.0]))
    got = frame.rank.summarize("value", by="model", cluster="customer", method="auto")
    assert got["ci_low"].item() is None
    found = got["note"].item()
    assert found == "2 clusters, too few for a sure interval; every cluster has the same mean"


# ------------------------------------------------------------------ plans


def test_plan_counts_clusters():
    rng = np.random.default_rng(3)
    alone = [list(rng.random(30)), list(rng.random(30))]
    options = {"baseline": "m0", "difference": 0.1}
    plain = table([*range(30)], *alone).rank.stats.power(VALUE, **options).row(0, named=True)
    # four users of one value: only the number of customers tells
    same = table(
        [n // 4 for n in range(120)], *([v for v in of_each for _ in range(4)] for of_each in alone)
    )
    got = same.rank.stats.power(VALUE, cluster="customer", **options).row(0, named=True)
    assert got["users"] == 120
    assert got["detectable"] == pytest.approx(plain["detectable"])
    assert got["needed"] == 4 * plain["needed"]
    effect = 4 * 119 / 120 * 30 / 29
    assert got["note"] == f"30 clusters; design effect {effect:.3g}"
    single = (
        same.with_columns(alone="user")
        .rank.stats.power(VALUE, cluster="alone", **options)
        .row(0, named=True)
    )
    free = same.rank.stats.power(VALUE, **options).row(0, named=True)
    assert {**single, "note": None} == free
    compared = same.rank.compare(VALUE, baseline="m0", cluster="customer", details=True)
    assert compared["detectable"].item() == pytest.approx(got["detectable"])
    one = same.with_columns(customer=1)
    with pytest.raises(rf.RankingDataError, match="only one cluster"):
        one.rank.stats.power(VALUE, cluster="customer", **options)


def test_cluster_of_most_users_is_no_evidence():
    """20 clusters, one of 60 users and 19 of 2: an effect of each, and equal means."""
    rng, sizes = np.random.default_rng(0), [60] + [2] * 19
    whose = np.repeat(np.arange(20), sizes)
    frames = []
    for run in range(50):
        change = np.repeat(rng.normal(0, 0.1, 20), sizes) + rng.normal(0, 0.1, len(whose))
        frames += [
            pl.DataFrame({"run": run, "model": m, "user": range(98), "v": 0.5 + x, "shop": whose})
            for m, x in (("old", 0 * change), ("new", change))
        ]
    options = {"by": ["model", "run"], "baseline": "old", "cluster": "shop", "details": True}
    got = rf.compare(pl.concat(frames), "v", correction=None, **options)
    assert got["note"].str.contains("20 clusters, as good as 2.6 equal ones").all()
    assert (got["p_value"] < 0.05).sum() <= 2  # by CR1 with 19 degrees of freedom, about 23
