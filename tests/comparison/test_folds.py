"""``by=`` and its folds: which column has the systems, and what is made of all folds together."""

import math
import statistics

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats
from user_values import FEW, TESTS, VALUE, sample, uncorrected

import rankframe as rf

RUN = pl.DataFrame(
    {
        "system": ["pop"] * 3 + ["knn"] * 3,
        "day": [1, 1, 2] * 2,
        "user": [1, 2, 3] * 2,
        "item": ["a"] * 6,
        "rank": [2, 2, 4, 1, 2, 3],
    }
)
TRUTH = pl.DataFrame({"user": [1, 2, 3], "item": ["a"] * 3, "day": [1, 1, 2]})
MODELS = RUN.rename({"system": "model"})


def folded(*systems, folds, users):
    """A judged table in which VALUE of row r is systems[m][r]; None means undefined."""
    rows = [
        {"model": f"m{m}", "fold": f, "user": u, "item": 0, "rank": 1, "relevance": 1, "value": x}
        for m, values in enumerate(systems)
        for x, f, u in zip(values, folds, users, strict=True)
    ]
    return pl.DataFrame(rows, schema_overrides={"value": pl.Float64})


BOTH = ["model", "fold"]
APART = {"folds": [f for f in range(3) for _ in range(8)], "users": range(24)}
AGAIN = {"folds": [f for f in range(3) for _ in range(8)], "users": [*range(8)] * 3}


# ------------------------------------------------------------------ the column of the systems


def test_model_is_the_column_of_this_name_where_there_is_one():
    assert rf.compare(MODELS, "rr", truth=TRUTH).equals(
        rf.compare(MODELS, "rr", truth=TRUTH, by="model")
    )
    assert rf.stats.who_gained(MODELS, 2, truth=TRUTH, baseline="pop").equals(
        rf.stats.who_gained(MODELS, 2, truth=TRUTH, by="model", baseline="pop")
    )
    cure = "there is no column 'model': name it, model='system', or pass a dict of runs"
    for verb, arguments in ((rf.compare, ["rr"]), (rf.stats.who_gained, [2])):
        for run in (RUN, RUN.lazy()):
            with pytest.raises(ValueError, match=cure):
                verb(run, *arguments, truth=TRUTH, baseline="pop")
            with pytest.raises(ValueError, match=cure):
                verb(run, *arguments, truth=TRUTH, baseline="pop", by="system")


def test_charts_draw_a_single_system_without_by():
    alone = RUN.filter(system="pop").drop("system")
    assert alone.rank.plot.at_k("rr", k=[1, 2], truth=TRUTH).data["system"].unique().item() == ""
    assert alone.rank.plot.per_user("rr", truth=TRUTH).data["users"].sum() == 3
    curve, _ = alone.rank.plot.precision_recall(k=[1], truth=TRUTH).hconcat
    assert set(curve.data["system"]) == {""}
    assert alone.rank.plot.trade_off("rr", "map", truth=TRUTH).data.height == 1
    items = pl.DataFrame({"item": ["a", "b"]})
    assert set(alone.rank.plot.lorenz(items=items).data["system"]) == {""}
    assert set(alone.rank.plot.exposure(items=items, of="item").data["system"]) == {""}
    drawn = MODELS.rank.plot.at_k("rr", k=[1], truth=TRUTH).data
    assert drawn["system"].to_list() == ["knn", "pop"]
    swapped = MODELS.rank.plot.at_k("rr", k=[1], truth=TRUTH, by=["day", "model"]).data
    assert set(swapped["system"]) == {"knn", "pop"}
    assert set(swapped["panel"]) == {"rr@k · 1", "rr@k · 2"}
    with pytest.raises(ValueError, match="by= names no segments: name their columns, such as by="):
        alone.rank.plot.segments("rr", truth=TRUTH)
    for draw in (
        lambda: alone.rank.plot.compare("rr", truth=TRUTH),
        lambda: alone.rank.plot.who_gained(2, truth=TRUTH, baseline="pop"),
    ):
        with pytest.raises(ValueError, match="or pass a dict of runs"):
            draw()


@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_column_called_model_has_the_systems_wherever_it_stands(kind):
    run = MODELS.lazy() if kind == "lazy" else MODELS
    for options in ({}, {"baseline": "pop"}):
        got = rf.compare(run, "rr", truth=TRUTH, by=["day", "model"], **options)
        expected = rf.compare(MODELS, "rr", truth=TRUTH, by=["model", "day"], **options)
        assert got.lazy().collect().equals(expected)
    got = rf.stats.who_gained(run, 2, truth=TRUTH, by=["day", "model"], baseline="pop")
    expected = rf.stats.who_gained(MODELS, 2, truth=TRUTH, by=["model", "day"], baseline="pop")
    assert got.lazy().collect().equals(expected)


@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_model_names_the_systems_and_by_the_segments(kind):
    """Also where a segment has the name of the baseline, and where ``by`` names the model too."""
    run = RUN.with_columns(day=pl.Series(["pop", "pop", "sun"] * 2))
    truth = TRUTH.with_columns(day=pl.Series(["pop", "pop", "sun"]))
    named = run.rename({"system": "model"})
    run = run.lazy() if kind == "lazy" else run
    expected = rf.compare(named, "rr", truth=truth, by="day", baseline="pop")
    assert expected.columns[:4] == ["day", "model", "metric", "baseline"]
    for by in ("day", ["day", "system"], ["system", "day"]):
        got = rf.compare(run, "rr", truth=truth, model="system", by=by, baseline="pop")
        assert got.lazy().collect().equals(expected.rename({"model": "system"}))
    got = rf.stats.who_gained(run, 2, truth=truth, model="system", by="day", baseline="pop")
    expected = rf.stats.who_gained(named, 2, truth=truth, by="day", baseline="pop")
    assert got.lazy().collect().equals(expected.rename({"model": "system"}))


def test_baseline_that_nobody_is_called_is_reported(refused):
    refused(rf.compare, RUN, "rr", truth=TRUTH, model="system", by="day", baseline="als")
    refused(rf.compare, RUN, "rr", truth=TRUTH, model="system", by="day", baseline=pl.lit("pop"))


# ------------------------------------------------------------------ one test over all folds


@pytest.mark.parametrize("test", TESTS)
def test_users_in_one_fold_each_are_compared_as_if_there_were_none(test):
    table = folded(*sample(4, 24, systems=3), **APART)
    options = {"test": test, "resamples": FEW, **uncorrected(test)}
    got = rf.compare(table, VALUE, by=BOTH, total=True, **options, details=True)
    assert got["fold"].to_list() == [0] * 3 + [1] * 3 + [2] * 3 + [None] * 3
    whole = rf.compare(table, VALUE, by="model", **options, details=True)
    assert_frame_equal(got.filter(pl.col("fold").is_null()).drop("fold"), whole, rel_tol=1e-12)
    assert got.drop_nulls("fold").equals(rf.compare(table, VALUE, by=BOTH, **options, details=True))


@pytest.mark.parametrize("test", TESTS)
def test_users_in_every_fold_are_one_observation_each(test):
    old, new = sample(6, 24)
    table = folded(old, new, **AGAIN)
    merged = folded(
        *(values.reshape(3, 8).mean(axis=0) for values in (old, new)), folds=[0] * 8, users=range(8)
    )
    options = {"test": test, "resamples": FEW, "baseline": "m0", **uncorrected(test)}
    total = rf.compare(table, VALUE, by=BOTH, total=True, **options, details=True)[-1]
    expected = rf.compare(merged, VALUE, **options, details=True)
    assert_frame_equal(
        total.drop("fold", "note"), expected.drop("note"), rel_tol=1e-9, check_exact=False
    )
    assert total["note"].item().endswith("8 users in several groups, one observation each")
    means = table.rank.evaluate(VALUE, by=BOTH, total=True).filter(pl.col("fold").is_null())
    assert total["mean"].item() == pytest.approx(means.filter(model="m1")["value"].item())


def test_users_who_return_are_permuted_once():
    """The total is the test of the users' means over their folds."""
    systems = sample(5, 24, systems=3)
    got = rf.compare(
        folded(*systems, **AGAIN), VALUE, by=BOTH, total=True, test="max_t", details=True
    )
    means = [np.asarray(values).reshape(3, 8).mean(axis=0) for values in systems]
    merged = folded(*means, folds=[0] * 8, users=range(8)).drop("fold")
    expected = rf.compare(merged, VALUE, test="max_t", details=True)
    total = got.filter(pl.col("fold").is_null())
    for name in ("difference", "ci_low", "ci_high", "p_value", "p_adjusted"):
        assert total[name].to_list() == pytest.approx(expected[name].to_list()), name


def test_users_in_unlike_numbers_of_folds_count_as_often():
    """The difference is that of all rows, its error that of sums of users: the formula by hand."""
    folds, users = [0, 0, 0, 1, 1, 2], [1, 2, 3, 1, 2, 1]
    old, new = [0.1, 0.5, 0.4, 0.3, 0.2, 0.6], [0.4, 0.3, 0.9, 0.5, 0.8, 0.7]
    table = folded(old, new, folds=folds, users=users)
    change = {1: [0.3, 0.2, 0.1], 2: [-0.2, 0.6], 3: [0.5]}
    mean = sum(sum(d) for d in change.values()) / 6
    without = [
        sum(sum(d) for c, d in change.items() if c != user) / (6 - n)
        for user, n in ((user, len(d)) for user, d in change.items())
    ]
    error = math.sqrt(2 / 3 * sum((x - mean) ** 2 for x in without))
    freedom = 36 / (9 + 4 + 1) - 1
    got = rf.compare(
        table, VALUE, by=BOTH, total=True, baseline="m0", correction=None, details=True
    )
    row = got.row(-1, named=True)
    assert (row["users"], row["difference"]) == (3, pytest.approx(mean))
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(mean / error, freedom))
    margin = stats.t.ppf(0.975, freedom) * error
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((mean - margin, mean + margin))
    few = "3 users, too few for a sure test"
    no_test = "no exact test with weights, though only 3 users differ"
    assert row["note"] == f"{no_test}; 3 users in several groups, one observation each; {few}"


def test_pair_needs_both_systems_in_the_same_fold():
    table = folded([1.0, 2.0, None], [2.0, None, 4.0], folds=[0, 0, 1], users=[1, 2, 2])
    row = rf.compare(table, VALUE, by=BOTH, total=True, baseline="m0").row(-1, named=True)
    alone = "1 of 2 users is left out: this user has a value with one system only"
    assert (row["users"], row["difference"], row["note"]) == (1, 1.0, f"one user; {alone}")


def test_totals_are_comparisons_of_the_call():
    table = folded(*sample(3, 24), **APART)
    got = rf.compare(table, VALUE, by=BOTH, total=True, correction="bh", details=True)
    expected = stats.false_discovery_control(got["p_value"].to_list())
    assert got["p_adjusted"].to_list() == pytest.approx(expected.tolist())


def test_totals_are_weighted():
    rng = np.random.default_rng(1)
    old, new = sample(9, 24)
    weights = rng.random(24) + 0.1
    table = folded(old, new, **AGAIN).with_columns(w=pl.Series([*weights, *weights]))
    values = table.select("model", "fold", "user", "value", "w")
    got = rf.compare(values, "value", by=BOTH, total=True, weights="w", baseline="m0", details=True)
    change = (new - old).reshape(3, 8)
    w = weights.reshape(3, 8)
    mean = (w * change).sum() / w.sum()
    parts = (w * (change - mean)).sum(axis=0)
    of_users = w.sum(axis=0)
    error = math.sqrt(7 / 8 * ((parts / (w.sum() - of_users)) ** 2).sum())
    freedom = w.sum() ** 2 / (of_users**2).sum() - 1
    row = got.row(-1, named=True)
    assert row["difference"] == pytest.approx(mean)
    assert row["p_value"] == pytest.approx(2 * stats.t.sf(abs(mean) / error, freedom))
    summary = rf.summarize(values, "value", by=BOTH, total=True, weights="w")
    total = summary.filter(pl.col("fold").is_null(), model="m1").row(0, named=True)
    assert total["mean"] == pytest.approx((weights * new).sum() / weights.sum())


def test_total_needs_segments():
    for verb in (rf.compare, rf.summarize):
        with pytest.raises(ValueError, match="total=True adds a row of overall means to the"):
            one = MODELS if verb is rf.compare else MODELS.filter(model="a").drop("model")
            verb(one, "rr", truth=TRUTH, total=True)
        with pytest.raises(TypeError, match="total must be True or False, not 'yes'"):
            verb(MODELS, "rr", truth=TRUTH, by=["model", "day"], total="yes")
        with pytest.raises(ValueError, match="metric 'coverage@2': it is one number for all lists"):
            verb(
                MODELS,
                "coverage@2",
                truth=TRUTH,
                by=["model", "day"],
                total=True,
                items=pl.DataFrame({"item": ["a"]}),
            )


# ------------------------------------------------------------------ mean and deviation over folds


def test_mean_and_deviation_over_folds():
    table = folded(*sample(5, 24), **APART)
    got = table.rank.summarize(VALUE, by=BOTH, total=True)
    assert got.select("model", "fold").rows() == [
        (m, f) for m in ("m0", "m1") for f in (0, 1, 2, None)
    ]
    assert got.columns[11:14] == ["groups", "groups_mean", "groups_std"]
    plain = table.rank.summarize(VALUE, by=BOTH)
    assert got.drop_nulls("fold").select(plain.columns).equals(plain)
    for model in ("m0", "m1"):
        means = plain.filter(model=model)["mean"].to_list()
        row = got.filter(pl.col("fold").is_null(), model=model).row(0, named=True)
        assert row["groups"] == 3
        assert row["groups_mean"] == pytest.approx(statistics.mean(means))
        assert row["groups_std"] == pytest.approx(statistics.stdev(means))
        whole = table.filter(model=model).rank.summarize(VALUE).row(0, named=True)
        for name, value in whole.items():
            assert row[name] == (pytest.approx(value) if isinstance(value, float) else value)
    assert got.drop_nulls("fold")["groups"].null_count() == 6
    lazy = table.lazy().rank.summarize(VALUE, by=BOTH, total=True)
    assert lazy.collect_schema() == got.schema
    assert lazy.collect().equals(got)


def test_users_who_return_do_not_narrow_the_interval():
    old, _ = sample(7, 24)
    table = folded(old, **AGAIN)
    for method in ("t", "auto"):
        options = {"method": method, "resamples": FEW}
        row = table.rank.summarize(VALUE, by="fold", total=True, **options).row(-1, named=True)
        merged = folded(old.reshape(3, 8).mean(axis=0), folds=[0] * 8, users=range(8))
        expected = merged.rank.summarize(VALUE, **options).row(0, named=True)
        for name in ("mean", "ci_low", "ci_high"):
            assert row[name] == pytest.approx(expected[name])
        assert (row["users"], row["groups"]) == (24, 3)
        assert row["note"].startswith("8 users in several groups, one observation each; ")
        assert row["note"].endswith("; too few users for a sure interval: 8")


def test_fold_without_a_value_is_not_a_group():
    table = folded([1.0, 3.0, None], folds=[0, 1, 2], users=[1, 2, 3])
    row = table.rank.summarize(VALUE, by="fold", total=True).row(-1, named=True)
    assert (row["groups"], row["groups_mean"], row["users"], row["num_left_out"]) == (2, 2.0, 2, 1)


# ------------------------------------------------------------------ a truth without the fold


def cross_validated():
    """Each user likes one item in each of two folds; the lists find it first."""
    rows = [(f, u, f"{u}{f}") for u in range(3) for f in (1, 2)]
    truth = pl.DataFrame(rows, schema=["fold", "user", "item"], orient="row")
    return truth.with_columns(rank=1), truth


@pytest.mark.parametrize("name", ["fold", "Fold", "split"])
@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_truth_without_the_folds_of_returning_users_is_reported(kind, name):
    run, truth = (frame.rename({"fold": name}) for frame in cross_validated())
    assert run.rank.evaluate("recall", truth=truth, by=name)["recall"].to_list() == [1.0, 1.0]
    message = (
        f"run, column '{name}': users are in several folds, and the truth has no such column, .*: "
        "add the column to the truth, or rename it if one truth judges all folds. "
        f"Offending row: {name}=1, user=0"
    )
    run = run.lazy() if kind == "lazy" else run
    for verb in (rf.evaluate, rf.summarize, rf.per_user):
        with pytest.raises(rf.RankingDataError, match=message):
            verb(run, "recall", truth=truth.drop(name), by=name).lazy().collect()
    with pytest.raises(rf.RankingDataError, match=message):
        rf.check(run.lazy().collect(), truth=truth.drop(name), by=name)


def test_groups_of_returning_users_are_judged_by_one_truth():
    run, truth = cross_validated()
    renamed = run.rename({"fold": "seed"})
    got = renamed.rank.evaluate("recall", truth=truth.drop("fold"), by="seed")
    assert got["recall"].to_list() == [0.5, 0.5]
    alone = run.filter(fold=1)
    got = alone.rank.evaluate("recall", truth=truth.drop("fold"), by="fold")
    assert got["recall"].to_list() == [0.5]


def test_users_in_one_fold_each_are_reported_as_before(refused):
    run = pl.DataFrame({"fold": [1, 2], "user": [1, 2], "item": [7, 7], "rank": [1, 1]})
    refused(run.rank.evaluate, "rr", truth=run.select("user", "item"), by="fold")
