"""Differences between segments: Welch's F by hand and by SciPy, contrasts, permutations."""

import inspect
import itertools
import math

import numpy as np
import polars as pl
import pytest
from scipy import stats
from user_values import VALUE

import rankframe as rf
from rankframe import _sizes
from rankframe._comparison import segment_statistics
from rankframe._comparison import statistics as st
from rankframe._comparison.decision import Estimate

BY = ["model", "country"]
COLUMNS = """model country metric baseline users difference rest_users rest_difference f p_value
    shrunken shrunken_low shrunken_high note contrast ci_low ci_high p_adjusted""".split()


def table(changes, **columns):
    """A judged table of m0 and m1 in which the users of a country change by these values."""
    rows = [
        {"model": f"m{m}", "country": country, "user": f"{country}{u}", "value": 0.5 + m * change}
        for country, values in changes.items()
        for u, change in enumerate(values)
        for m in (0, 1)
    ]
    frame = pl.DataFrame(rows, schema_overrides={"value": pl.Float64})
    return frame.with_columns(item=0, rank=1, relevance=1, **columns)


def some_changes(seed=0, sizes=(12, 30, 7, 19), spreads=(1.0, 0.3, 2.0, 0.5)):
    rng = np.random.default_rng(seed)
    pairs = zip("abcd", zip(sizes, spreads, strict=False), strict=False)
    return {name: rng.normal(0.1, spread, size).round(3).tolist() for name, (size, spread) in pairs}


def welch_by_hand(groups):
    """Welch's F, in plain Python."""
    sizes = [len(group) for group in groups]
    means = [math.fsum(group) / len(group) for group in groups]
    variances = [
        math.fsum((x - mean) ** 2 for x in group) / (len(group) - 1)
        for group, mean in zip(groups, means, strict=True)
    ]
    weights = [n / v for n, v in zip(sizes, variances, strict=True)]
    total, k = sum(weights), len(groups)
    center = sum(w * m for w, m in zip(weights, means, strict=True)) / total
    between = sum(w * (m - center) ** 2 for w, m in zip(weights, means, strict=True)) / (k - 1)
    lacking = sum((1 - w / total) ** 2 / (n - 1) for w, n in zip(weights, sizes, strict=True))
    return between / (1 + 2 * (k - 2) / (k * k - 1) * lacking)


@pytest.mark.parametrize("seed", range(3))
def test_f_is_the_one_by_hand_and_that_of_scipy(seed):
    changes = some_changes(seed, sizes=(30, 41, 35, 90))
    got = table(changes).rank.stats.compare_segments(VALUE, by=BY)
    whole = got.filter(pl.col("country").is_null()).row(0, named=True)
    f = welch_by_hand(list(changes.values()))
    assert whole["f"] == pytest.approx(f, rel=1e-10)
    assert whole["p_adjusted"] == whole["p_value"]
    everyone = list(itertools.chain(*changes.values()))
    assert whole["users"] == len(everyone)
    assert whole["difference"] == pytest.approx(np.mean(everyone))
    if "equal_var" in inspect.signature(stats.f_oneway).parameters:
        expected = stats.f_oneway(*changes.values(), equal_var=False)
        assert f == pytest.approx(expected.statistic)
        assert whole["p_value"] == pytest.approx(expected.pvalue, abs=0.03)


@pytest.mark.parametrize("confidence", [0.95, 0.8])
def test_contrasts_are_the_t_of_welch_against_the_rest(confidence):
    changes = some_changes(4)
    got = table(changes).rank.stats.compare_segments(VALUE, by=BY, confidence=confidence)
    assert got.columns == COLUMNS
    parts = got.drop_nulls("country")
    assert parts["country"].to_list() == list("abcd")
    for row in parts.iter_rows(named=True):
        own = changes[row["country"]]
        rest = list(itertools.chain(*(v for name, v in changes.items() if name != row["country"])))
        test = stats.ttest_ind(own, rest, equal_var=False)
        interval = test.confidence_interval(confidence)
        assert (row["users"], row["rest_users"]) == (len(own), len(rest))
        expected = (np.mean(own), np.mean(rest), test.pvalue, interval.low, interval.high)
        names = ("difference", "rest_difference", "p_value", "ci_low", "ci_high")
        assert tuple(row[name] for name in names) == pytest.approx(expected, rel=1e-10)
        assert row["contrast"] == pytest.approx(row["difference"] - row["rest_difference"])
    expected = st.corrected(parts["p_value"].to_numpy(), "holm")
    assert parts["p_adjusted"].to_list() == pytest.approx(expected.tolist())


def test_differences_are_those_of_compare():
    frame = table(some_changes(1))
    got = frame.rank.stats.compare_segments(VALUE, by=BY)
    expected = frame.rank.compare(VALUE, by=BY, total=True)
    names = ["model", "country", "metric", "baseline", "users"]
    assert got.select(names).equals(expected.select(names))
    assert got["difference"].to_list() == pytest.approx(expected["difference"].to_list())


def test_tests_of_two_segments_are_one():
    changes = some_changes(2, sizes=(30, 44))
    got = table(changes).rank.stats.compare_segments(VALUE, by=BY)
    p = stats.ttest_ind(*changes.values(), equal_var=False).pvalue
    for name in ("p_value", "p_adjusted"):
        assert got[name].to_list() == [pytest.approx(p)] * 2 + [pytest.approx(p, abs=0.03)]
    assert got["f"][2] == pytest.approx(stats.ttest_ind(*changes.values(), equal_var=False)[0] ** 2)


def test_corrections_are_within_a_metric_and_pair_and_of_f_over_them():
    frame = table(some_changes(5))
    third = frame.filter(model="m1").with_columns(model=pl.lit("m2"), value=pl.col("value") ** 2)
    frame = pl.concat([frame, third])
    metrics = [VALUE.alias("x"), (VALUE**3).alias("y")]
    got = frame.rank.stats.compare_segments(*metrics, by=BY, correction="bh")
    assert got.height == 5 * 2 * 3
    parts = got.drop_nulls("country")
    whole = got.filter(pl.col("country").is_null())
    families = [whole, *parts.partition_by("metric", "model", "baseline")]
    assert [len(rows) for rows in families] == [6, *[4] * 6]
    for rows in families:
        expected = stats.false_discovery_control(rows["p_value"].to_numpy())
        assert rows["p_adjusted"].to_list() == pytest.approx(expected.tolist())
    plain = frame.rank.stats.compare_segments(*metrics, by=BY, correction=None)
    assert plain["p_adjusted"].equals(plain["p_value"])
    one = frame.filter(pl.col("model") != "m2").rank.stats.compare_segments(metrics[1], by=BY)
    row = got.filter(metric="y", model="m1", country="b").row(0, named=True)
    assert row["p_value"] == one.filter(country="b")["p_value"].item()
    only = frame.rank.stats.compare_segments(*metrics, by=BY, baseline="m2")
    assert only["baseline"].unique().to_list() == ["m2"]


def test_weights_and_clusters_are_those_of_compare():
    changes = some_changes(6)
    frame = table(changes).with_columns(
        w=pl.col("user").str.slice(1).cast(pl.Float64) % 4 + 0.5,
        customer=pl.col("country") + (pl.col("user").str.slice(1).cast(pl.Int64) // 2).cast(str),
    )
    for options in ({"weights": "w"}, {"cluster": "customer"}):
        got = frame.rank.stats.compare_segments(VALUE, by=BY, **options).drop_nulls("country")
        each = frame.rank.compare(VALUE, by=BY, baseline="m0", **options, details=True)
        assert got["difference"].to_list() == pytest.approx(each["difference"].to_list())
        assert got["note"].equals(each["note"].str.replace("^no exact test[^;]*; ", ""))
        row = got.row(0, named=True)
        rest = frame.filter(pl.col("country") != "a").rank.compare(VALUE, **options, details=True)
        assert row["rest_difference"] == pytest.approx(rest["difference"].item())
        inside = pl.col("country") == "a"
        count = []
        for part in (frame.filter(inside), frame.filter(~inside)):
            one = part.filter(model=part["model"][0])
            w = one.group_by(options.get("cluster", "user")).agg(
                pl.col("w").sum() if "weights" in options else pl.len().alias("w")
            )["w"]
            count.append(w.sum() ** 2 / (w.cast(float) ** 2).sum())
        errors = [
            (t["ci_high"][0] - t["difference"][0]) / stats.t.ppf(0.975, n - 1)
            for t, n in zip((each, rest), count, strict=True)
        ]
        squares = [e * e for e in errors]
        freedom = sum(squares) ** 2 / sum(
            s * s / (n - 1) for s, n in zip(squares, count, strict=True)
        )
        p = 2 * stats.t.sf(abs(row["contrast"]) / sum(squares) ** 0.5, freedom)
        assert row["p_value"] == pytest.approx(p, rel=1e-9)


def test_segments_of_the_truth_and_of_several_columns():
    users = list(range(24))
    run = pl.concat(
        pl.DataFrame(
            {"model": m, "user": users, "item": 7, "rank": [u * (3 + j) % 5 + 1 for u in users]}
        )
        for j, m in enumerate(["old", "new"])
    )
    truth = pl.DataFrame({"user": users, "item": 7, "country": ["no", "se"] * 12})
    truth = truth.with_columns(device=pl.col("user") % 3)
    got = run.rank.stats.compare_segments(
        "rr", "hit@2", truth=truth, by=["model", "country", "device"], baseline="old"
    )
    assert got.columns == ["model", "country", "device", *COLUMNS[2:]]
    assert got.height == 2 * (6 + 1)
    changes = rf.per_user(run, "rr", truth=truth, by=["model", "country", "device"])
    changes = changes.pivot("model", index=["country", "device", "user"], values="rr")
    changes = changes.with_columns(change=pl.col("new") - pl.col("old"))
    groups = [g["change"].to_list() for g in changes.partition_by("country", "device")]
    whole = got.filter(pl.col("country").is_null(), metric="rr")
    assert whole["f"].item() == pytest.approx(welch_by_hand(groups))


def test_segments_without_a_test_say_so():
    changes = {"a": [0.1, 0.3, 0.2], "b": [0.4], "c": [0.25] * 4, "d": [0.5, 0.1, 0.2, 0.7]}
    got = table(changes).rank.stats.compare_segments(VALUE, by=BY)
    assert got["note"].to_list() == [
        None,
        "one user",
        "no spread here",
        None,
        "F leaves out 2 of 4 segments: no variance",
    ]
    # four users who agree by chance would differ from all others for certain
    assert got["p_value"].is_null().to_list() == [False, True, True, False, False]
    assert got["ci_low"].is_null().to_list() == [False, True, True, False, True]
    assert got["f"][-1] == pytest.approx(welch_by_hand([changes["a"], changes["d"]]))
    same = table({"a": [0.25] * 3, "b": [0.25] * 2}).rank.stats.compare_segments(VALUE, by=BY)
    spread = "no spread here and in the other segments"
    no_test = "no test: fewer than two segments have a variance"
    assert same["note"].to_list() == [spread, spread, no_test]
    few = table({"a": [0.1, 0.4], "b": [0.25]}).rank.stats.compare_segments(VALUE, by=BY)
    assert few["note"].to_list() == [
        "one observation has a value in the other segments",
        "one user",
        no_test,
    ]
    nobody = table(changes).with_columns(pl.col("value").replace(0.9, None))
    got = nobody.rank.stats.compare_segments(VALUE, by=BY).filter(country="b").row(0, named=True)
    assert (got["users"], got["difference"]) == (0, None)
    assert got["note"] == "no user has a value in both"


def test_bad_segments_are_reported():
    frame = table(some_changes(8))
    with pytest.raises(
        ValueError, match=r"segments in addition to the systems.*by=\['model', 'country'\]"
    ):
        frame.rank.stats.compare_segments(VALUE)
    with pytest.raises(rf.RankingDataError, match="only one segment, country='a'"):
        frame.filter(country="a").rank.stats.compare_segments(VALUE, by=BY)
    with pytest.raises(rf.RankingDataError, match="only one system"):
        frame.filter(model="m0").rank.stats.compare_segments(VALUE, by=BY)
    several = pl.concat([frame, frame.filter(user="a3").with_columns(country=pl.lit("z"))])
    with pytest.raises(
        rf.RankingDataError,
        match="column 'user': a user is in several segments.*Offending row: user='a3', country='z'",
    ):
        several.rank.stats.compare_segments(VALUE, by=BY)
    clusters = frame.with_columns(customer=pl.col("user").str.slice(1))
    with pytest.raises(
        rf.RankingDataError, match="column 'customer': a cluster is in several segments"
    ):
        clusters.rank.stats.compare_segments(VALUE, by=BY, cluster="customer")
    for options, message in [
        ({"confidence": 2}, "confidence must be a number between 0 and 1"),
        ({"correction": "x"}, "correction must be one of"),
        ({"baseline": "m7"}, "baseline must be one of 'm0', 'm1', not 'm7'"),
    ]:
        with pytest.raises(ValueError, match=message):
            frame.rank.stats.compare_segments(VALUE, by=BY, **options)
    with pytest.raises(ValueError, match="gmap"):
        frame.rank.stats.compare_segments("gmap", by=BY)
    with pytest.raises(rf.RankingDataError, match="compare_segments adds a column with this name"):
        frame.rename({"country": "contrast"}).rank.stats.compare_segments(
            VALUE, by=["model", "contrast"]
        )


# ------------------------------------------------------------------ permutations


def test_users_are_permuted_with_their_weights_and_clusters_as_a_whole():
    rng = np.random.default_rng(4)
    weighted = [(rng.normal(0, 1, size), rng.uniform(1, 3, size)) for size in (5, 9, 7)]
    samples = [st.Sample(*segment) for segment in weighted]
    got = segment_statistics.permuted(samples, st.Resampling(300, 6), lambda _: None)
    orders = np.random.default_rng(6).permuted(np.tile(np.arange(21), (300, 1)), axis=1)
    values, weights = (np.concatenate(parts) for parts in zip(*weighted, strict=True))

    def f_of(order):
        parts = [np.split(column[order], [5, 14]) for column in (values, weights)]
        return segment_statistics.permuted(
            [st.Sample(*part) for part in zip(*parts, strict=True)],
            st.Resampling(1, 0),
            lambda _: None,
        )[0]

    observed, *drawn = map(f_of, [np.arange(21), *orders])
    assert got == pytest.approx((observed, (np.sum(np.array(drawn) >= observed) + 1) / 301, 300))
    changes = some_changes(6, sizes=(16, 30, 22, 40))
    frame = table(changes).with_columns(
        w=pl.col("user").str.slice(1).cast(pl.Float64) % 4 + 0.5,
        customer=pl.col("country") + (pl.col("user").str.slice(1).cast(pl.Int64) // 2).cast(str),
    )
    for options in ({"weights": "w"}, {"cluster": "customer"}):
        options["resamples"] = 500
        first, same, other = (
            frame.rank.stats.compare_segments(VALUE, by=BY, seed=seed, **options)
            for seed in (1, 1, 2)
        )
        assert first.equals(same)
        assert first.item(-1, "p_value") == pytest.approx(other.item(-1, "p_value"), abs=0.12)
        assert first.drop("p_value", "p_adjusted").equals(other.drop("p_value", "p_adjusted"))


@pytest.mark.parametrize("number", [3, 20])
def test_skewed_differences_are_no_difference_between_segments(number):
    """F alone finds .3 to .4 at 50 × 5 and 50 × 30."""
    runs, found = 150, []
    for seed in range(runs):
        rng = np.random.default_rng([seed, number])
        samples = [st.Sample(row) for row in rng.lognormal(size=(number, 20))]
        drawn = st.Resampling(99, seed), lambda _: None
        found.append(segment_statistics.permuted(samples, *drawn)[1])
    assert 0 < np.mean(np.array(found) <= 0.05) <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / runs)


def test_permutations_are_fewer_for_very_many_users(monkeypatch):
    monkeypatch.setattr(_sizes, "VALUES_PERMUTED", 68 * 1500)
    got = table(some_changes(2)).rank.stats.compare_segments(VALUE, by=BY)
    assert got.item(-1, "note") == "p from only 1,500 permutations, because there are many users"


# ------------------------------------------------------------------ shrunken values


def estimates(means, errors, freedom):
    means, errors, freedom = (np.array(x, float) for x in (means, errors, freedom))
    return Estimate(means, errors, freedom + 0 * means, 0 * means)


@pytest.mark.parametrize(
    ("means", "squares", "between", "center"),
    [
        # statsmodels 0.15.0: combine_effects(means, squares, method_re="iterated", atol=1e-15)
        (
            [0.12, -0.05, 0.3, 0.02, 0.08],
            [0.004, 0.01, 0.02, 0.001, 0.006],
            0.0041696154722836234,
            0.06710887975585168,
        ),
        ([0.12, 0.1, 0.13], [0.04, 0.01, 0.02], 0.0, 0.11142857142857143),
    ],
)
def test_segments_are_shrunken_as_by_paule_and_mandel(means, squares, between, center):
    means, squares = np.array(means), np.array(squares)
    got = segment_statistics.spread_between(means, squares, np.array([len(means) - 1.0]))
    assert got == pytest.approx([between], rel=1e-10)
    # so many users that the errors are known
    many = estimates(means, squares**0.5, 1e9)
    share = between / (between + squares)
    expected = center + share * (means - center)
    assert segment_statistics.shrunken(many, 0.95)[0] == pytest.approx(expected, rel=1e-7)


def test_shrunken_intervals_cover_nineteen_segments_in_twenty():
    rng = np.random.default_rng(1)
    covered = {0.0: 0.0, 0.05: 0.0, 0.15: 0.0}
    raw = shrunken = 0.0
    for spread in covered:
        for _ in range(25):
            users = rng.integers(2, 40, 12)
            truth = 0.03 + spread * rng.normal(size=12)
            groups = [rng.normal(mean, 0.2, n) for mean, n in zip(truth, users, strict=True)]
            means = np.array([group.mean() for group in groups])
            errors = [group.std(ddof=1) / len(group) ** 0.5 for group in groups]
            value, low, high = segment_statistics.shrunken(
                estimates(means, errors, users - 1), 0.95
            )
            covered[spread] += ((low <= truth) & (truth <= high)).mean() / 25
            if not spread:
                raw, shrunken = (
                    error + np.square(x - truth).mean()
                    for error, x in ((raw, means), (shrunken, value))
                )
    assert all(share >= 0.94 for share in covered.values())
    assert shrunken < 0.2 * raw


def test_small_segments_are_shrunken_with_the_spread_of_all():
    changes = {"a": [0.1, 0.3, -0.1, 0.2], "b": [0.9], "c": [0.2, 0.2], "d": []}
    got = table(changes).rank.stats.compare_segments(VALUE, by=BY)
    rows = {row["country"]: row for row in got.iter_rows(named=True)}
    assert 0.1 < rows["c"]["shrunken"] < rows["b"]["shrunken"] < 0.9
    assert rows["b"]["shrunken_low"] < rows["b"]["shrunken"] < rows["b"]["shrunken_high"]
    assert rows[None]["shrunken"] is None
    alike = table({"a": [0.1, 0.1], "b": [0.9]}).rank.stats.compare_segments(VALUE, by=BY)
    assert alike["shrunken"].null_count() == 3  # no spread: nothing says what chance explains


def test_segments_of_zeros_do_not_pull_the_mean_to_them():
    """Few users differ, so a segment of none has the least variance."""
    random, covered, means = np.random.default_rng(1), [], []
    for _ in range(40):
        segments = np.where(random.random((20, 10)) < 0.1, 0.5, 0.0)  # the mean is 0.05 in each
        spread = segments.std(axis=1, ddof=1) / 10**0.5
        error = np.where(spread > 0, spread, np.nan)
        nines = np.full(20, 9.0)
        values = Estimate(segments.mean(axis=1), error, nines, 0 * nines)
        shrunken, low, high = segment_statistics.shrunken(values, 0.95)
        covered.append(np.mean((low <= 0.05) & (high >= 0.05)))
        means.append(shrunken.mean())
    assert np.mean(covered) > 0.93
    assert np.mean(means) > 0.04


def test_one_bad_segment_is_shrunken_but_shown():
    rng = np.random.default_rng(0)
    changes = {name: rng.normal(0.03, 0.2, 25).tolist() for name in "abcdefghij"}
    changes["z"] = rng.normal(-0.3, 0.2, 25).tolist()
    rows = table(changes).rank.stats.compare_segments(VALUE, by=BY)
    bad = rows.row(by_predicate=pl.col("country") == "z", named=True)
    assert bad["difference"] < bad["shrunken"] < bad["shrunken_high"] < 0
    assert bad["p_adjusted"] < 0.001
