"""Gains of grades by the caller, and the levels of 11-point averages."""

from math import log2

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import TRUTH, A, assert_same

import rankframe as rf
from rankframe._request import registry

FALLING = {1: 3.0, 2: 9.0, 4: 4.5}


@pytest.mark.parametrize("gain", ["linear", "exponential", {1: 1, 2: 2, 3: 2}, {0: 0, 1: 0, 2: 5}])
def test_gains_read_the_places_of_grades(gain):
    own, ideal = "relevance", "ideal_relevance"
    if gain != "linear":  # derived once for all cut-offs
        own, ideal = (registry.name(column, gain=gain) for column in ("gain", "ideal_gain"))
    of_list, of_ideal = {own, "rank_discount", "rank"}, {ideal, "place_discount", "ideal_place"}
    assert {*rf.metrics.ndcg_at(10, gain=gain).meta.root_names()} == of_list | of_ideal
    returned = rf.metrics.ndcg_at(10, gain=gain, ideal="returned").meta.root_names()
    assert {*returned} == of_list | of_ideal | {"returned_ideal_rank"}
    assert {*rf.metrics.dcg_at(10, gain=gain).meta.root_names()} == of_list | {"relevance"}


def test_grade_that_a_mapping_does_not_know_is_reported(refused):
    for label in ("ndcg(gain=1:2;2:3)@2", "dcg(gain=1:2;2:3)", "cg(gain=1:2;2:3)@1"):
        refused(A.rank.evaluate, label, truth=TRUTH)


@pytest.mark.parametrize(
    ("label", "gain"),
    [
        ("ndcg.1=3,2=9,4=4.5", FALLING),
        ("dcg(gain=0:1;1:2)", {0: 1, 1: 2}),
        ("q(gain=-1:2)", {-1: 2}),
    ],
)
def test_gains_of_a_function_are_those_of_a_truth(label, gain):
    """The line of the error gives the linear gain of the truth these values."""
    run = pl.DataFrame({"user": 1, "item": list("abcdef"), "rank": range(1, 7)})
    truth = rf.from_grades({1: {"a": 0, "b": 4, "d": 1, "e": -1, "g": 2}})
    with pytest.raises(
        ValueError, match="must (not fall as the grade rises|be of grades > 0)"
    ) as got:
        run.rank.evaluate(label, truth=truth)
    line = str(got.value).partition("linear gain: ")[2]
    mapped = eval(line, {"truth": truth, "pl": pl})
    gains = {"a": 0.0, "b": 4.0, "d": 1.0, "g": 2.0}
    gains = {item: gain.get(grade, grade) for item, grade in gains.items()}
    found = discounted(
        *(gains.get(item, gain.get(-1, 0) if item == "e" else 0) for item in "abcdef")
    )
    assert run.rank.evaluate("dcg", truth=mapped)["dcg"].item() == pytest.approx(found)


def discounted(*gains):
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def test_numbers_of_trec_evals_own_test(shared):
    """Of the two topics whose judgments are here, all relevant ones of grade 1 as in that test."""
    run = pl.read_parquet(shared / "trec_sample" / "run.parquet").drop("rank")
    truth = pl.read_parquet(shared / "trec_sample" / "qrels.parquet")
    truth = truth.filter(pl.col("user") != "303").with_columns(pl.col("relevance").clip(0, 1))
    gains = truth.with_columns(pl.col("relevance").cast(pl.Float64).replace(FALLING))
    labels = ["ndcg", "11pt_avg..25,.5,.75"]  # of -mndcg.1=3,2=9,4=4.5
    got = run.rank.per_user(*labels, truth=gains, preset="trec_eval_9", users="both")
    assert [[round(x, 4) for x in row[1:]] for row in got.rows()] == [
        [0.1584, 0.0],
        [0.6617, 0.4306],
    ]


@pytest.mark.parametrize("name", ["trec_sample", "web12_catb"])
def test_levels_are_the_mean_of_what_trec_eval_gives_at_each(shared, name):
    run = pl.read_parquet(shared / name / "run.parquet").drop("rank")
    truth = pl.read_parquet(shared / name / "qrels.parquet")
    printed = pl.read_parquet(shared / name / "expected_trec_params.parquet")
    levels = [f"iprec_at_recall_{level}" for level in ("0.05", "0.25", "0.50", "0.75")]
    printed = printed.filter(pl.col("measure").is_in(levels), pl.col("user") != "all")
    expected = printed.group_by("user").agg(pl.col("value").mean()).sort("user")
    label = "11pt_avg..05,.25,.5,.75"
    got = run.rank.per_user(label, truth=truth, preset="trec_eval", users="both")
    assert_same(got.rename({label: "value"}), expected)


def test_levels_are_those_of_interpolated_precision():
    for points in ("nearest", "floor"):
        each = [rf.metrics.interpolated_precision(level, points=points) for level in (0.2, 0.55, 1)]
        both = rf.metrics.eleven_point_precision(points=points, levels=[1, 0.2, 0.55])
        got = A.rank.per_user(*each, both, truth=TRUTH)
        assert got.columns[-1].endswith("levels=0.2;0.55;1)")
        mean = got.select("user", pl.mean_horizontal(got.columns[1:-1]).alias(got.columns[-1]))
        assert_same(got.select("user", got.columns[-1]), mean)
    given = rf.metrics.eleven_point_precision(levels=[i / 10 for i in range(11)])
    assert given.meta.eq(rf.metrics.eleven_point_precision())
    assert given.meta.output_name() == "eleven_point_precision"
    assert_frame_equal(
        A.rank.per_user(
            "11pt_avg", truth=TRUTH, preset={"defaults": {"11pt_avg": {"levels": [0.5]}}}
        ),
        A.rank.per_user("11pt_avg..5", truth=TRUTH).rename({"11pt_avg..5": "11pt_avg"}),
    )
