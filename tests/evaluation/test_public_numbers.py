"""Numbers that tools and their pages print: ``explain`` finds their convention, or says none."""

import polars as pl
import pytest
from metrics import test_peers as peers

import rankframe as rf

SIX = {  # printed by these tools, whose other figures are in tests/metrics/test_peers.py
    "trec_eval": 0.3891,  # as yours
    "RecTools": 0.2463,
    "RePlay": 0.4404,
    "Spark": 0.5505,
    "LensKit": 0.5683,
    "scikit-learn": 0.4694,
}


def value_of(call: str, run: pl.DataFrame, truth: pl.DataFrame) -> float:
    return eval(call, {"rf": rf, "run": run, "truth": truth})[:, -1].item()


@pytest.mark.parametrize("tool", SIX)
def test_tool_is_found_by_its_figure(tool):
    found = rf.explain(SIX[tool], "ndcg@5", peers.RUN, truth=peers.TRUTH)
    (first,) = found.frame.rows(named=True)
    assert tool in first["preset"].split(", ")
    assert first["fits"]
    value = value_of(first["call"], peers.RUN, peers.TRUTH)
    assert value == pytest.approx(first["ndcg@5"], abs=1e-12)
    word = "as you compute it" if tool == "trec_eval" else "is explained by"
    assert word in found.sentence


# ------------------------------------------------------------------ printed in public pages

#: Apache Spark, RankingMetricsSuite.scala: lists, and the items that are right; user 3 has none.
OF_SPARK = rf.from_lists(
    {
        1: [1, 6, 2, 7, 8, 3, 9, 10, 4, 5],
        2: [4, 1, 5, 6, 2, 7, 3, 8, 9, 10],
        3: [1, 2, 3, 4, 5],
    }
)


def test_spark_counts_a_user_without_truth_as_0():
    """Its preset is of an inner join; its own test hands it such a user."""
    truth = rf.from_grades({1: dict.fromkeys(range(1, 6), 1), 2: dict.fromkeys(range(1, 4), 1)})
    printed = {"map": 0.355026, "ndcg@10": 0.487913}
    found = rf.explain(printed, OF_SPARK, truth=truth)
    first = found.frame.row(0, named=True)
    assert first["fits"]
    assert first["words"] == "over users with a list, undefined values as 0"
    assert "users='run', undefined=0.0" in first["call"]
    assert "Yours (0.532540, 0.731869)" in found.sentence


def test_spark_has_exponential_gains():
    """Its test allows 0.00001: 0.511959 is 0.51196, so five digits are compared."""
    grades = {1: dict(zip(range(1, 6), [3, 2, 1, 1, 1], strict=True)), 2: {1: 2, 2: 0, 3: 0}}
    printed = {"ndcg@3": 0.51196, "ndcg@10": 0.5187}
    found = rf.explain(printed, OF_SPARK, truth=rf.from_grades(grades), digits=5)
    first = found.frame.row(0, named=True)
    assert first["fits"]
    assert first["call"].count("gain=exponential") == 2
    assert "users='run', undefined=0.0" in first["call"]


#: The README of ranx 0.3.21.
OF_RANX = {
    "q_1": {"d_12": 0.9, "d_23": 0.8, "d_25": 0.7, "d_36": 0.6, "d_32": 0.5, "d_35": 0.4},
    "q_2": {"d_12": 0.9, "d_11": 0.8, "d_25": 0.7, "d_36": 0.6, "d_22": 0.5, "d_35": 0.4},
}
QRELS_OF_RANX = {"q_1": {"d_12": 5, "d_25": 3}, "q_2": {"d_11": 6, "d_22": 1}}


def test_readme_of_ranx():
    run, truth = rf.from_scores(OF_RANX), rf.from_grades(QRELS_OF_RANX)
    found = rf.explain({"ndcg@5": 0.7861, "mrr": 0.75}, run, truth=truth)
    assert "as you compute" in found.sentence
    assert "ranx" in found.frame["preset"][0].split(", ")


def test_digits_that_are_cut_off():
    """It prints 0.6416, and the value is 0.641667."""
    run, truth = rf.from_scores(OF_RANX), rf.from_grades(QRELS_OF_RANX)
    found = rf.explain(0.6416, "map@5", run, truth=truth)
    first = found.frame.row(0, named=True)
    assert first["fits"]
    assert (first["departures"], first["map@5"]) == (0, pytest.approx(0.641667, abs=1e-6))
    assert found.sentence.startswith("0.6416, cut off and not rounded, is map@5 as you compute it")
    assert not rf.explain(0.6418, "map@5", run, truth=truth).frame["fits"].any()


def test_scikit_learn_averages_over_ties():
    """The example of its ndcg_score, version 1.9.1."""
    judged = pl.DataFrame({"user": 1, "item": [*"abcde"], "relevance": [10, 0, 0, 1, 5]})
    run = judged.select("user", "item", score=pl.Series([1, 0, 0, 0, 1]))
    found = rf.explain(0.75, "ndcg@1", run, truth=judged, digits=2)
    assert "expected" in " ".join(found.frame.filter("fits")["call"])


def test_torchmetrics_is_found_by_the_figures_of_its_documentation():
    """One table of scores and targets (version 1.9.0)."""
    table = pl.DataFrame(
        {
            "user": [0, 0, 0, 1, 1, 1, 1],
            "item": range(7),
            "score": [0.2, 0.3, 0.5, 0.1, 0.3, 0.5, 0.2],
            "relevance": [0, 0, 1, 0, 1, 0, 1],
        }
    )
    printed = {"map": 0.7917, "mrr": 0.75, "ndcg": 0.8467, "precision@2": 0.5, "recall@2": 0.75}
    first = rf.explain(printed, table, digits=4).frame.row(0, named=True)
    assert first["fits"]
    assert "torchmetrics" in first["preset"].split(", ")
