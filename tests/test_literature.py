"""Equal to slow references written from the papers, and to NTCIREVAL, gdeval and ir_measures."""

import polars as pl
import pytest

import rankframe as rf

DATA_SETS = ["trec_sample", "web12_catb"]
EXP = {"gain": "exponential"}
rbp = rf.rank_biased_precision

REFERENCE = {
    "ERR": rf.err_at(),
    **{f"ERR@{k}": rf.err_at(k) for k in (5, 10, 20)},
    **{f"ERR(max_grade=4)@{k}": rf.err_at(k, max_grade=4) for k in (5, 10, 20)},
    "nERR": rf.nerr_at(),
    "nERR@10": rf.nerr_at(10),
    "Q(beta=1)": rf.q_measure(),
    "Q(beta=10)": rf.q_measure(beta=10),
    "Q(beta=1)@10": rf.q_measure(10),
    "Q(beta=1,exp)": rf.q_measure(**EXP),
    "bpref": rf.bpref(),
    "infAP": rf.inferred_average_precision(),
    **{f"RBP(p={p},binary)": rbp(p) for p in (0.5, 0.8, 0.85, 0.9, 0.95)},
    **{f"RBP(p={p},graded)": rbp(p, gain="graded") for p in (0.5, 0.8, 0.85, 0.9, 0.95)},
    **{f"RBP_residual(p={p})": rf.rank_biased_residual(p) for p in (0.5, 0.8, 0.85, 0.9, 0.95)},
}

#: NTCIREVAL was given the first 100 items of each list
NTCIREVAL = {
    "lin:AP": rf.average_precision(),
    "lin:AP@10": rf.average_precision(10, divide_by="attainable"),
    "lin:Hit@10": rf.hit_at(10),
    "lin:P@10": rf.precision_at(10),
    "lin:RR": rf.reciprocal_rank(),
    "lin:MSnDCG@10": rf.ndcg_at(10),
    "exp:MSnDCG@10": rf.ndcg_at(10, **EXP),
    "lin:O(beta=1)": rf.o_measure(),
    "exp:O(beta=1)": rf.o_measure(**EXP),
    "lin:P(beta=1)": rf.p_measure(),
    "exp:P(beta=1)": rf.p_measure(**EXP),
    "lin:P+(beta=1)": rf.p_plus(),
    "exp:P+(beta=1)": rf.p_plus(**EXP),
    **{f"lin:Q(beta={b})": rf.q_measure(beta=b) for b in (0.1, 1, 10)},
    **{f"exp:Q(beta={b})": rf.q_measure(beta=b, **EXP) for b in (0.1, 1, 10)},
    "exp:Q(beta=1)@10": rf.q_measure(10, **EXP),
    "lin:RBP(p=0.95)": rbp(0.95, gain="graded"),
}

#: gdeval prints five decimals
IR_MEASURES = {
    **{f"judged:Judged@{k}": rf.judged_at(k) for k in (5, 10, 20)},
    **{f"gdeval:ERR@{k}": rf.err_at(k, max_grade=4) for k in (5, 10, 20)},
}


@pytest.mark.parametrize(
    ("program", "metrics", "options", "tolerance"),
    [
        ("reference", REFERENCE, {}, 1e-12),
        ("ntcireval", NTCIREVAL, {"depth": 100}, 1e-12),
        ("ir_measures", IR_MEASURES, {}, 5.1e-6),
    ],
)
@pytest.mark.parametrize("name", DATA_SETS)
def test_metrics_equal_other_programs(shared, name, program, metrics, options, tolerance):
    run = pl.read_parquet(shared / name / "run.parquet").drop("rank")
    truth = pl.read_parquet(shared / name / "qrels.parquet")
    expected = pl.read_parquet(shared / name / f"expected_{program}.parquet")
    expected = expected.filter(pl.col("measure").is_in([*metrics]), pl.col("user") != "all")
    assert expected["measure"].n_unique() == len(metrics)
    named = [expr.alias(measure) for measure, expr in metrics.items()]
    got = run.rank.per_user(*named, truth=truth, users="judged", undefined=0.0, **options)
    tidy = got.unpivot(index="user", variable_name="measure", value_name="got")
    joined = expected.join(tidy, on=["measure", "user"], how="left")
    assert joined["got"].null_count() == 0
    apart = (pl.col("got") - pl.col("value")).abs()
    worst = joined.select("measure", "user", "value", "got", apart=apart).sort("apart").tail(1)
    assert worst["apart"].item() < tolerance, worst.row(0)


def test_a_grade_above_the_scale_is_told():
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [None], "relevance": [5]})
    for metric in (rf.err_at(10, max_grade=4), rf.nerr_at(max_grade=4)):
        with pytest.raises(rf.RankingDataError, match="it is not a finite number"):
            judged.rank.evaluate(metric)


@pytest.mark.parametrize("p", [0, 1, 1.5])
def test_persistence_is_a_chance(p):
    for make in (rf.rank_biased_precision, rf.rank_biased_residual):
        with pytest.raises(ValueError, match="p must be a number between 0 and 1"):
            make(p)


def test_auc_by_hand():
    judged = pl.DataFrame(
        {
            "user": [1] * 5 + [2, 2, 3, 4],
            "item": [1, 2, 3, 4, 5, 1, 2, 1, 1],
            "rank": [1, 2, 3, 4, 5, 1, 2, 1, None],
            "relevance": [0, 1, 0, 1, None, 1, 0, 1, 1],
        }
    )
    # user 1: hits at 2 and 4 against misses at 1, 3, 5: (2 + 1) of 6 pairs in order
    got = judged.rank.per_user("auc")
    assert got["auc"].to_list() == [0.5, 1.0, None, None]


def test_the_top_grade_is_that_of_the_whole_truth():
    judged = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rank": [1, None], "relevance": [1, 3]})
    got = judged.rank.per_user(rf.err_at(), rf.rank_biased_precision(0.5, gain="graded"))
    assert got.row(0) == (1, 1 / 8, 0.5 / 3)
