"""Who is harmed: shares of users who lose, against brute force."""

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from scipy import stats

import rankframe as rf

RNG = np.random.default_rng(10)


def values(old, new, **columns):
    users = range(len(old))
    return pl.concat(
        pl.DataFrame({"model": name, "user": users, "v": of_system})
        for name, of_system in (("old", old), ("new", new))
    ).with_columns(**columns)


UP = {"baseline": "old", "higher_is_better": {"v": True}}
DOWN = {"baseline": "old", "higher_is_better": {"v": False}}
OLD = RNG.beta(2, 3, 440)
NEW = OLD + RNG.normal(0.02, 0.1, 440)


def test_share_of_users_who_lose_has_the_exact_interval():
    for more_than in (0.0, 0.1, 0.2, 9.0):
        for options, losses in ((UP, OLD - NEW), (DOWN, NEW - OLD)):
            got = rf.stats.harm(values(OLD, NEW), "v", more_than=more_than, **options)
            got = got.row(0, named=True)
            number = int((losses > more_than).sum())
            exact = stats.binomtest(number, 440).proportion_ci(0.95, "exact")
            assert (got["users"], got["more_than"], got["share"]) == (440, more_than, number / 440)
            assert got["share_low"] == pytest.approx(exact.low, abs=1e-12)
            assert got["share_high"] == pytest.approx(exact.high, abs=1e-12)
    # a loss of the amount does not exceed it, whatever the digits of a difference
    tenth = rf.stats.harm(values([0.3, 0.7, 0.9], [0.2, 0.6, 0.7]), "v", more_than=0.1, **UP)
    assert tenth["share"].item() == pytest.approx(1 / 3)


def test_row_per_segment_metric_and_system():
    runs = pl.DataFrame(
        {"model": ["a", "b", "c"] * 40, "user": sorted([*range(40)] * 3), "item": 7}
    ).with_columns(rank=pl.Series(RNG.integers(1, 6, 120)), land=pl.col("user") % 2)
    truth = pl.DataFrame({"user": range(40), "item": 7}).with_columns(land=pl.col("user") % 2)
    options = {"truth": truth, "by": ["model", "land"], "baseline": "a"}
    amounts = {"rr": 0.1}
    got = rf.stats.harm(runs, "rr", "mean_hit_rank", more_than=amounts, **options)
    assert got.columns[:4] == ["model", "land", "metric", "baseline"]
    told = ["users", "note", "more_than", "share", "share_low", "share_high"]
    assert got.columns[4:] == told
    assert got.select("land", "metric", "model").rows() == [
        (land, metric, model)
        for land in (0, 1)
        for metric in ("rr", "mean_hit_rank")
        for model in "bc"
    ]
    assert got["more_than"].unique().sort().to_list() == [0.0, 0.1]
    compared = rf.compare(runs, "rr", "mean_hit_rank", **options, details=True)
    # a lower rank is better: a loss is a rise
    losers = pl.when(metric="rr").then("lower").otherwise("higher") / pl.col("users")
    free = rf.stats.harm(runs, "rr", "mean_hit_rank", **options)
    assert free["share"].to_list() == compared.select(losers).to_series().to_list()
    lazy = rf.stats.harm(runs.lazy(), "rr", "mean_hit_rank", more_than=amounts, **options)
    assert lazy.collect_schema() == got.schema
    assert_frame_equal(lazy.collect(), got)
    assert runs.rank.stats.harm("rr", "mean_hit_rank", more_than=amounts, **options).equals(got)


def test_harm_reports_wrong_calls(refused):
    table = values(OLD, NEW, w=1.0, shop=pl.col("user") // 2)
    for options in (
        {"higher_is_better": None},
        {"more_than": -0.1},
        {"more_than": {"x": 0.1}},
        {"baseline": None},
        {"weights": "w"},
        {"cluster": "shop"},
        {"total": True},
        {"paired": False},
        {"confidence": 95},
    ):
        refused(rf.stats.harm, table, "v", **UP | options)


def test_report_says_who_is_harmed():
    users = range(400)
    ranks = {"old": [1] * 400, "new": [2 if u < 40 else 1 for u in users]}
    runs = {
        name: pl.DataFrame({"user": users, "item": 7, "rank": of_users})
        for name, of_users in ranks.items()
    }
    truth = pl.DataFrame({"user": users, "item": 7}).with_columns(pl.lit(1.0).alias("w"))
    made = rf.report(runs, "rr", "ndcg@5", truth=truth, baseline="old", resamples=99)
    row = made.tables["harm"].row(0, named=True)
    assert (row["metric"], row["more_than"], row["share"]) == ("rr", 0.1, 0.1)
    assert "of 400 users, in rr; 40 lose more than 0.1." in made.verdict
    weighted = rf.report(runs, "rr", truth=truth, baseline="old", weights="w")
    assert "harm" not in weighted.tables
