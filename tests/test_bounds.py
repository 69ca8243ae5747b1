"""``bounds=True``: what the unjudged items of the lists leave open."""

import polars as pl
import pytest
from every_metric import EVERY_METRIC, LABELS, SPECIAL_MEANS
from polars.testing import assert_frame_equal
from test_invariants import RUN, TRUTH, A

import rankframe as rf


def assert_same(left, right):
    assert_frame_equal(left, right, check_exact=False, rel_tol=1e-12, abs_tol=1e-12)


def test_worked_by_hand():
    run = pl.DataFrame({"user": [1] * 4, "item": [1, 2, 3, 4], "rank": [1, 2, 3, 4]})
    truth = pl.DataFrame({"user": [1] * 4, "item": [2, 3, 4, 5], "relevance": [3, 0, -1, 1]})
    got = run.rank.evaluate(
        "p@2", "recall@4", "dcg@2", "err(max_grade=3)@1", truth=truth, bounds=True
    )
    assert got.columns[:4] == ["users", "p@2", "p@2_low", "p@2_high"]
    # item 1 is unjudged, item 4 is of negative grade: both may be relevant, item 3 is not
    assert got.row(0)[1:4] == (0.5, 0.5, 1.0)
    assert got.row(0)[4:7] == (0.5, 0.5, 3 / 4)
    assert got["dcg@2_high"].item() - got["dcg@2_low"].item() == pytest.approx(3)
    assert got["err(max_grade=3)@1_high"].item() == 7 / 8


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_the_gap_of_rbp_is_its_residual_within_the_list(p):
    label, residual = f"rbp(p={p})", f"rbp_residual(p={p})"
    got = A.rank.per_user(label, residual, truth=TRUTH, bounds=True)
    lengths = A.group_by("user").agg(n=pl.len().cast(pl.Int64))
    gap = got.join(lengths, on="user", how="left").select(
        gap=pl.col(f"{label}_high") - pl.col(f"{label}_low"),
        # the residual also has what lies below the end of the list
        left=pl.col(residual) - pl.lit(p).pow(pl.col("n").fill_null(0)),
    )
    assert (gap["gap"] - gap["left"]).abs().max() < 1e-12
    assert gap["gap"].max() > 0.1


def test_the_bounds_are_the_metric_of_both_judgments():
    got = A.rank.per_user(*LABELS, truth=TRUTH, bounds=True)
    plain = A.rank.per_user(*LABELS, truth=TRUTH)
    assert_same(got.select(plain.columns), plain)
    unjudged = A.select("user", "item").join(
        TRUTH.filter(pl.col("relevance") >= 0), on=["user", "item"], how="anti"
    )
    kept = TRUTH.drop("genre").join(unjudged, on=["user", "item"], how="anti")
    scenarios = []
    for grade in (0, TRUTH["relevance"].max()):
        filled = pl.concat([kept, unjudged.with_columns(relevance=pl.lit(grade, pl.Int64))])
        values = A.rank.per_user(*LABELS, truth=filled, users="judged")
        scenarios.append(plain.select("user").join(values, on="user", how="left").sort("user"))
    for label in LABELS:
        pair = pl.DataFrame({"a": scenarios[0][label], "b": scenarios[1][label]})
        both = pair["a"].is_not_null() & pair["b"].is_not_null()
        lesser = pair.select(pl.min_horizontal("a", "b")).to_series()
        greater = pair.select(pl.max_horizontal("a", "b")).to_series()
        for name, expected in (("low", lesser), ("high", greater)):
            bound = got[f"{label}_{name}"]
            assert (bound.is_not_null() == both).all(), label
            assert ((bound - expected).drop_nulls().abs() < 1e-12).all(), label


def test_every_way_in_gives_the_same():
    expected = RUN.rank.evaluate(*LABELS, *SPECIAL_MEANS, truth=TRUTH, by="model", bounds=True)
    lazy = RUN.lazy().rank.evaluate(
        *LABELS, *SPECIAL_MEANS, truth=TRUTH.lazy(), by="model", bounds=True
    )
    assert_same(lazy.collect(), expected)
    judged = RUN.rank.judge(TRUTH, by="model")
    assert_same(judged.rank.evaluate(*LABELS, *SPECIAL_MEANS, by="model", bounds=True), expected)
    exprs = RUN.rank.evaluate(*EVERY_METRIC.values(), truth=TRUTH, by="model", bounds=True)
    assert_same(exprs, expected.select(exprs.columns))
    # grouping with "users" and gmap: their bounds, too, are means over users
    assert {"gmap_low", "num_users_high"} <= {*expected.columns}


def test_condensed_lists_are_bounded_by_the_full_ones():
    got = A.rank.evaluate("p@5", truth=TRUTH, judged_only=True, bounds=True)
    full = A.rank.evaluate("p@5", truth=TRUTH, bounds=True)
    condensed = A.rank.evaluate("p@5", truth=TRUTH, judged_only=True)
    assert_same(got.select("p@5_low", "p@5_high"), full.select("p@5_low", "p@5_high"))
    assert_same(got.select("users", "p@5"), condensed)


def test_a_complete_truth_leaves_nothing_open():
    items = A.select("user", "item").join(TRUTH, on=["user", "item"], how="anti")
    complete = pl.concat(
        [TRUTH.drop("genre"), items.with_columns(relevance=pl.lit(0, pl.Int64))]
    ).with_columns(pl.col("relevance").clip(0))
    got = A.rank.per_user(*LABELS, truth=complete, bounds=True)
    for label in LABELS:
        low, high = got[f"{label}_low"], got[f"{label}_high"]
        assert low.null_count() == high.null_count()
        assert ((low - high).drop_nulls().abs() < 1e-12).all(), label


def test_with_ties():
    tied = A.with_columns(score=pl.col("minutes").round()).rank.with_rank(ties="expected")
    got = tied.rank.per_user("p@3", "ap", truth=TRUTH, bounds=True)
    assert (got["p@3_low"] <= got["p@3_high"] + 1e-12).all()
    assert_same(got.select("user", "p@3"), tied.rank.per_user("p@3", truth=TRUTH))


def test_bad_calls_are_told():
    with pytest.raises(TypeError, match="bounds must be True or False"):
        A.rank.evaluate("ap", truth=TRUTH, bounds=1)
    with pytest.raises(ValueError, match="two output columns are called 'ap_low'"):
        A.rank.evaluate("ap", rf.metric("rr").alias("ap_low"), truth=TRUTH, bounds=True)
    text = pl.col("genre").first().alias("genre_first")
    with pytest.raises(ValueError, match="genre_first"):
        A.rank.per_user(text, truth=TRUTH, bounds=True)


def test_the_means_are_over_the_same_users():
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": list("abcd"), "rank": [1, 2, 1, 2]})
    truth = pl.DataFrame({"user": [1, 1, 2], "item": list("abc"), "relevance": [1, 1, 0]})
    got = run.rank.evaluate("precision@2", truth=truth, users="judged", bounds=True)
    assert got.row(0) == (2, 1.0, 1.0, 1.0)  # of user 2 nothing is known, and nothing counts
    filled = run.rank.evaluate("p@2", truth=truth, users="judged", bounds=True, undefined=0.0)
    assert filled.row(0) == (2, 0.5, 0.5, 0.75)


def test_metrics_of_judged_items_take_the_verdict():
    run = pl.DataFrame({"user": [1, 1], "item": ["u", "a"], "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1], "item": ["a"], "relevance": [1]})
    got = run.rank.per_user("bpref", "num_nonrelevant", truth=truth, bounds=True)
    assert got.row(0) == (1, 1.0, 0.0, 1.0, 0, 0, 1)
