"""Several cut-offs: in one label, and as the tidy frame of ``at_k``."""

import subprocess
import sys

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf

RUN = pl.DataFrame(
    {
        "model": ["a"] * 8 + ["b"] * 6,
        "user": [1] * 4 + [2] * 4 + [1] * 3 + [3] * 3,
        "item": [1, 2, 3, 4, 1, 2, 3, 5, 4, 2, 1, 1, 2, 3],
        "rank": [1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 1, 2, 3],
    }
)
TRUTH = pl.DataFrame(
    {"user": [1, 1, 2, 2, 3, 3], "item": [2, 4, 5, 6, 1, 2], "relevance": [1, 3, 2, 1, 0, 1]}
)
ITEMS = pl.DataFrame({"item": range(1, 9)})


@pytest.mark.parametrize(
    ("label", "apart"),
    [
        ("ndcg@1,2,4", ["ndcg@1", "ndcg@2", "ndcg@4"]),
        (
            " ndcg (gain=exponential) @ 2 , 1",
            ["ndcg (gain=exponential)@2", "ndcg (gain=exponential)@1"],
        ),
        ("gmap@1,3", ["gmap@1", "gmap@3"]),
        ("map@1,3-l2", ["map@1-l2", "map@3-l2"]),
        ("IPrec@0,0.5", ["IPrec@0", "IPrec@0.5"]),
    ],
)
def test_label_with_several_cut_offs_is_several_metrics(label, apart):
    for verb in (rf.evaluate, rf.summarize, rf.compare):
        options = {"truth": TRUTH, "by": "model"}
        assert_equal(verb(RUN, "map", label, **options), verb(RUN, "map", *apart, **options))
    if label[0] != "g":
        expected = RUN.rank.per_user(*apart, truth=TRUTH, by="model")
        assert_equal(RUN.rank.per_user(label, truth=TRUTH, by="model"), expected)
        assert expected.columns == ["model", "user", *apart]


def test_labels_with_commas_of_their_own_are_one_metric():
    labels = ["utility.1,-1,0,0", "ndcg.1=1,2=3,3=7", "11pt_avg.0.25,0.5"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, by="model")
    assert got.columns == ["model", "users", *labels]


def test_several_cut_offs_under_ties_of_lists_and_in_bounds():
    scored = RUN.drop("rank").with_columns(score=-pl.col("item") // 3)
    tied = scored.rank.with_rank(by="model", ties="expected")
    got = tied.rank.evaluate("precision@1,2", truth=TRUTH, by="model")
    assert_equal(got, tied.rank.evaluate("precision@1", "precision@2", truth=TRUTH, by="model"))
    got = RUN.rank.evaluate("coverage@1,2", items=ITEMS, by="model")
    assert_equal(got, RUN.rank.evaluate("coverage@1", "coverage@2", items=ITEMS, by="model"))
    got = RUN.rank.evaluate("hit@1,2", truth=TRUTH, by="model", unjudged="bounds")
    apart = ["hit@1", "hit@2"]
    expected = RUN.rank.evaluate(*apart, truth=TRUTH, by="model", unjudged="bounds")
    assert_equal(got, expected)


@pytest.mark.parametrize(
    "label",
    [
        "ndcg@5,5",
        "ndcg@5,x",
        "ndcg@5,0",
        "ndcg@5,",
        "ndgc@5,10",
    ],
)
def test_bad_cut_offs_are_reported_one_by_one(label, refused):
    refused(RUN.rank.evaluate, label, truth=TRUTH, by="model")


def test_expression_has_one_cut_off():
    text = "metric 'ndcg@5,10' has 2 cut-offs, but an expression has one: use 'ndcg@5' or 'ndcg"
    with pytest.raises(ValueError, match=text):
        rf.metrics.of_label("ndcg@5,10")


def test_metrics_may_be_in_a_list():
    for some in (["ndcg@10"], ("ndcg@10", "map")):
        got = RUN.rank.evaluate(some, truth=TRUTH, by="model")
        assert_frame_equal(got, RUN.rank.evaluate(*some, truth=TRUTH, by="model"))


# ------------------------------------------------------------------ the tidy frame


def test_at_k_is_summarize_in_a_tidy_frame():
    got = RUN.rank.stats.at_k("ndcg", "recall", k=[4, 1, 2, 2], truth=TRUTH, by="model")
    assert got.columns == ["model", "metric", "k", "users", "mean", "ci_low", "ci_high"]
    summary = RUN.rank.summarize("ndcg@1,2,4", "recall@1,2,4", truth=TRUTH, by="model")
    expected = summary.select(
        "model",
        pl.col("metric").str.extract("^(.*)@"),
        pl.col("metric").str.extract("@(.*)$").cast(pl.Int64).alias("k"),
        "users",
        "mean",
        "ci_low",
        "ci_high",
    )
    assert_frame_equal(got, expected)


def test_means_without_intervals_are_the_same_and_the_ends_null():
    asked = ["num_hits", "map", "gmap", "ndcg(rel=2)", "coverage"]
    options = {"k": range(1, 4), "truth": TRUTH, "by": "model", "items": ITEMS}
    whole = rf.stats.at_k(RUN, *asked, **options)
    bare = rf.stats.at_k(RUN, *asked, interval=False, **options)
    assert_frame_equal(bare.drop("ci_low", "ci_high"), whole.drop("ci_low", "ci_high"))
    assert bare["ci_low"].null_count() == bare["ci_high"].null_count() == bare.height
    assert bare.schema == whole.schema
    assert bare["metric"].unique(maintain_order=True).to_list() == asked
    known = RUN.rank.evaluate("coverage@2", truth=TRUTH, by="model", items=ITEMS).sort("model")
    for table in (whole, bare):  # a number of all lists counts all users: none is undefined
        number = table.filter(metric="coverage", k=2).sort("model")
        assert number["users"].to_list() == known["users"].to_list() != [None, None]
        assert number["mean"].to_list() == known["coverage@2"].to_list()
    counts = RUN.rank.per_user("num_hits@2", truth=TRUTH, by="model").group_by("model").mean()
    hits = bare.filter(pl.col("metric") == "num_hits", pl.col("k") == 2)
    assert dict(hits.select("model", "mean").rows()) == dict(
        counts.select("model", "num_hits@2").rows()
    )


def test_users_are_those_whose_values_make_the_mean():
    got = rf.stats.at_k(
        RUN, "recall", k=[2], truth=TRUTH, by="model", relevant_at=2, interval=False
    )
    assert got["users"].to_list() == [2, 2]  # user 3 has no item of grade 2


def test_chart_draws_it():
    expected = rf.stats.at_k(RUN, "ndcg", k=[1, 3], truth=TRUTH, by="model")
    data = RUN.rank.plot.at_k("ndcg", k=[1, 3], truth=TRUTH).data
    same = ["k", "users", "mean", "ci_low", "ci_high"]
    assert data.select(same).equals(expected.select(same))
    assert data["panel"].unique().to_list() == ["ndcg@k"]
    bare = RUN.rank.plot.at_k("ndcg", k=[1, 3], truth=TRUTH, interval=False)
    assert bare.data["ci_low"].null_count() == 4


def test_means_without_intervals_need_no_scipy():
    code = """
import sys
sys.modules["scipy"] = sys.modules["numpy"] = None
import polars as pl, rankframe as rf
run = pl.DataFrame({"user": [1, 1], "item": [1, 2], "rank": [1, 2]})
truth = pl.DataFrame({"user": [1], "item": [2]})
got = rf.stats.at_k(run, "recall", "gmap", k=[1, 2], truth=truth, interval=False)
assert got["mean"].to_list()[:2] == [0.0, 1.0], got
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True, timeout=60)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (["ndcg@10"], {}),
        ([rf.metrics.ndcg_at(10)], {}),
        (["r_precision"], {}),
        ([], {}),
        (["ndcg"], {"k": 10}),
        (["ndcg"], {"k": "10"}),
        (["ndcg"], {"k": None}),
        (["ndcg"], {"k": []}),
        (["ndcg"], {"k": [0]}),
        (["ndcg"], {"interval": 1}),
        (["ndcg"], {"confidence": 2}),
        (["ndcg"], {"by": ["model", "k"]}),
        (["ndcg"], {"unjudged": "bounds"}),
    ],
)
def test_labels_with_cut_offs_report_bad_calls(names, options, refused):
    run = RUN.with_columns(k=pl.lit(1))
    refused(rf.stats.at_k, run, *names, **{"k": [1], "truth": TRUTH, "by": "model", **options})
