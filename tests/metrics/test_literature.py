"""Equal to slow references written from the papers, and to NTCIREVAL, gdeval and ir_measures."""

import numpy as np
import polars as pl
import pytest

import rankframe as rf

DATA_SETS = ["trec_sample", "web12_catb"]
EXP = {"gain": "exponential"}
OF_FOUR = {"max_grade": 4}
rbp = rf.metrics.rank_biased_precision

REFERENCE = {
    "ERR": rf.metrics.err_at(),
    **{f"ERR@{k}": rf.metrics.err_at(k) for k in (5, 10, 20)},
    **{f"ERR(max_grade=4)@{k}": rf.metrics.err_at(k, max_grade=4) for k in (5, 10, 20)},
    "nERR": rf.metrics.nerr_at(),
    "nERR@10": rf.metrics.nerr_at(10),
    "Q(beta=1)": rf.metrics.q_measure(),
    "Q(beta=10)": rf.metrics.q_measure(beta=10),
    "Q(beta=1)@10": rf.metrics.q_measure(10),
    "Q(beta=1,exp)": rf.metrics.q_measure(**EXP),
    "GAP(uniform)": rf.metrics.graded_average_precision(),
    "ndcg_jk(b=2)@10": rf.metrics.ndcg_at(10, base=2),
    "ndcg_jk(b=10)@20": rf.metrics.ndcg_at(20, base=10),
    "bpref": rf.metrics.bpref(),
    "infAP": rf.metrics.inferred_average_precision(),
    **{f"RBP(p={p},binary)": rbp(p) for p in (0.5, 0.8, 0.85, 0.9, 0.95)},
    **{f"RBP(p={p},graded)": rbp(p, gain="graded") for p in (0.5, 0.8, 0.85, 0.9, 0.95)},
    **{
        f"RBP_residual(p={p})": rf.metrics.rank_biased_residual(p)
        for p in (0.5, 0.8, 0.85, 0.9, 0.95)
    },
}

#: NTCIREVAL was given the first 100 items of each list
NTCIREVAL = {
    "lin:AP": rf.metrics.average_precision(),
    "lin:AP@10": rf.metrics.average_precision(10, divide_by="attainable"),
    "lin:Hit@10": rf.metrics.hit_at(10),
    "lin:P@10": rf.metrics.precision_at(10),
    "lin:RR": rf.metrics.reciprocal_rank(),
    "lin:MSnDCG@10": rf.metrics.ndcg_at(10),
    "exp:MSnDCG@10": rf.metrics.ndcg_at(10, **EXP),
    "lin:O(beta=1)": rf.metrics.o_measure(),
    "exp:O(beta=1)": rf.metrics.o_measure(**EXP),
    "lin:P(beta=1)": rf.metrics.p_measure(),
    "exp:P(beta=1)": rf.metrics.p_measure(**EXP),
    "lin:P+(beta=1)": rf.metrics.p_plus(),
    "exp:P+(beta=1)": rf.metrics.p_plus(**EXP),
    **{f"lin:Q(beta={b})": rf.metrics.q_measure(beta=b) for b in (0.1, 1, 10)},
    **{f"exp:Q(beta={b})": rf.metrics.q_measure(beta=b, **EXP) for b in (0.1, 1, 10)},
    "exp:Q(beta=1)@10": rf.metrics.q_measure(10, **EXP),
    "lin:RBP(p=0.95)": rbp(0.95, gain="graded"),
    "lin:nDCG_orig(b=2)": rf.metrics.ndcg_at(base=2),
    "lin:nDCG_orig(b=2)@10": rf.metrics.ndcg_at(10, base=2),
    "exp:nDCG_orig(b=10)@20": rf.metrics.ndcg_at(20, base=10, **EXP),
}

#: cwl_eval reads 1,000 items of a list
IR_MEASURES = {
    **{f"judged:Judged@{k}": rf.metrics.judged_at(k) for k in (5, 10, 20)},
    "compat:Compat": rf.metrics.compatibility(),
    "compat:Compat(p=0.8)": rf.metrics.compatibility(0.8),
    "compat:Compat(normalize=False)": rf.metrics.compatibility(divide_by="weights"),
    "cwl_eval:INSQ(max_rel=4)": rf.metrics.insq_at(1000, **OF_FOUR),
    "cwl_eval:INSQ(T=2.0,max_rel=4)": rf.metrics.insq_at(1000, goals=2, **OF_FOUR),
    "cwl_eval:INST(max_rel=4)": rf.metrics.inst_at(1000, **OF_FOUR),
    "cwl_eval:INST(T=2.0,max_rel=4)": rf.metrics.inst_at(1000, goals=2, **OF_FOUR),
}

#: prints five decimals
GDEVAL = {f"gdeval:ERR@{k}": rf.metrics.err_at(k, **OF_FOUR) for k in (5, 10, 20)}

CUTS = (1, 3, 5, 10, 20, 100)
RECTOOLS = {
    **{f"PartialAUC@{k}": rf.metrics.pauc_at(k) for k in CUTS},
    **{f"PAP@{k}": rf.metrics.pap_at(k) for k in CUTS},
}


@pytest.mark.parametrize(
    ("program", "metrics", "options", "tolerance"),
    [
        ("reference", REFERENCE, {}, 1e-12),
        ("ntcireval", NTCIREVAL, {"depth": 100}, 1e-12),
        ("ir_measures", IR_MEASURES, {}, 1e-12),
        ("ir_measures", GDEVAL, {}, 5.1e-6),
        ("rectools", RECTOOLS, {}, 1e-12),
        ("gap_trec", {"GAP(uniform)": rf.metrics.graded_average_precision()}, {}, 1e-12),
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


def test_grade_above_the_scale_is_reported(refused):
    judged = pl.DataFrame({"user": 1, "item": [1, 2], "rank": [None, 1], "relevance": [5, 0]})
    for make in (rf.metrics.err_at, rf.metrics.nerr_at, rf.metrics.insq_at, rf.metrics.inst_at):
        metric = make(10, max_grade=4)
        refused(judged.rank.evaluate, metric)


@pytest.mark.parametrize("p", [0, 1, 1.5])
def test_persistence_is_a_chance(p):
    for make in (
        rf.metrics.rank_biased_precision,
        rf.metrics.rank_biased_residual,
        rf.metrics.compatibility,
    ):
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


def test_top_grade_is_that_of_the_whole_truth():
    judged = pl.DataFrame({"user": [1, 2], "item": [1, 1], "rank": [1, None], "relevance": [1, 3]})
    got = judged.rank.per_user(
        rf.metrics.err_at(), rf.metrics.rank_biased_precision(0.5, gain="graded")
    )
    assert got.row(0) == (1, 1 / 8, 0.5 / 3)


def test_dcg_of_the_paper():
    """Järvelin and Kekäläinen 2002: ⟨3, 2, 3, 0, 0, 1, 2, 2, 3, 0⟩ with base 2."""
    grades = [3, 2, 3, 0, 0, 1, 2, 2, 3, 0]
    judged = pl.DataFrame(
        {"user": 1, "item": list(range(10)), "rank": list(range(1, 11)), "relevance": grades}
    )
    metrics = [rf.metrics.dcg_at(k, base=2) for k in range(1, 11)]
    got = judged.rank.per_user(*metrics).drop("user").row(0)
    assert [round(value, 2) for value in got] == [
        3, 5, 6.89, 6.89, 6.89, 7.28, 7.99, 8.66, 9.61, 9.61
    ]  # fmt: skip
    assert metrics[1].meta.output_name() == "dcg(base=2)@2"


def test_gap_with_threshold_weights_is_the_mean_of_average_precisions():
    """Weights of the thresholds 1, 2, 3; the mean is weighed by how many items reach each."""
    weights, grades = [0.5, 0.3, 0.2], [0, 2, 1, 3, 0, 3, 1]
    judged = pl.DataFrame(
        {"user": 1, "item": list(range(8)), "rank": [*range(1, 8), None], "relevance": [*grades, 2]}
    )
    reached = [sum(grade >= level for grade in [*grades, 2]) for level in (1, 2, 3)]
    precisions = [judged.rank.evaluate("ap", relevant_at=level)["ap"].item() for level in (1, 2, 3)]
    parts = [w * n for w, n in zip(weights, reached, strict=True)]
    expected = sum(p * ap for p, ap in zip(parts, precisions, strict=True)) / sum(parts)
    cumulated = {1: 0.5, 2: 0.8, 3: 1.0}
    got = judged.rank.evaluate(rf.metrics.graded_average_precision(gain=cumulated))
    assert got.row(0) == (1, pytest.approx(expected, abs=1e-15))
    assert got.columns[1] == "gap(gain=1:0.5;2:0.8;3:1)"
    with pytest.raises(rf.RankingDataError, match="it is not a finite number"):
        judged.rank.evaluate("gap(gain=1:1;2:2)@1")


def test_elliots_lauc():
    """Its misses: the items of the catalogue, less those in training and the relevant, plus 1."""
    catalogue, training, relevant, cut = 50, 7, {2, 4, 9}, 4
    places = [place for place, item in enumerate([1, 2, 3, 4, 9][:cut]) if item in relevant]
    misses = catalogue - training - len(relevant) + 1
    summed = sum((misses - place + above) / misses for above, place in enumerate(places))
    judged = pl.DataFrame(
        {
            "user": 1,
            "item": [1, 2, 3, 4, 9],
            "rank": [1, 2, 3, 4, 5],
            "relevance": [0, 1, 0, 1, 1],
        }
    )
    got = judged.rank.evaluate(rf.metrics.lauc_at(cut, collection=catalogue - training + 1))
    assert got.row(0) == (1, pytest.approx(summed / min(cut, len(relevant))))


@pytest.mark.parametrize("collection", [2, 3])
def test_collection_too_small_is_reported(collection, refused):
    judged = pl.DataFrame(
        {"user": 1, "item": [1, 2, 3, 4], "rank": [1, 2, 3, 4], "relevance": [0, 0, 1, 1]}
    )
    refused(lambda: judged.rank.evaluate(rf.metrics.lauc_at(3, collection=collection)))
    assert judged.rank.evaluate(rf.metrics.lauc_at(3, collection=4)).row(0) == (1, 0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rf.metrics.insq_at(goals=0.4),
        lambda: rf.metrics.inst_at(goals=0),
        lambda: rf.metrics.ndcg_at(base=1),
        lambda: rf.metrics.ndcg_at(2, base=2, discount="rank"),
        lambda: rf.metrics.ndcg_at(3, discount=[1, 0.5]),
        lambda: rf.metrics.dcg_at(discount=[1]),
        *(
            lambda weights=weights: rf.metrics.dcg_at(2, discount=weights)
            for weights in ([0.5, 1], [1, -0.5], [0, 0], [], [float("inf"), 1], [1, None], 1)
        ),
        lambda: rf.metrics.dcg_at(base=0.5),
        lambda: rf.metrics.lauc_at(5, collection=0),
        lambda: rf.metrics.of_label("lauc@5"),
    ],
)
def test_metric_reports_a_parameter_out_of_range(make, refused):
    refused(make)


def test_weights_of_ranks_are_a_discount():
    run = pl.DataFrame({"user": 1, "item": [*"abcd"], "rank": [1, 2, 3, 4]})
    truth = pl.DataFrame({"user": 1, "item": [*"adz"], "relevance": [1, 3, 2]})
    weights = [1, 0.6, 0.6, 0.4]
    metric = rf.metrics.ndcg_at(4, discount=weights)
    label = "ndcg(discount=1;0.6;0.6;0.4)@4"
    assert metric.meta.output_name() == label
    got = run.rank.evaluate(metric, truth=truth)[label].item()
    assert got == pytest.approx((1 + 3 * 0.4) / (3 + 2 * 0.6 + 0.6))
    assert run.rank.evaluate(label, truth=truth)[label].item() == got
    by_hand = {
        "dcg(discount=rank)@4": 1 + 3 / 4,
        "ndcg(discount=rank)@4": (1 + 3 / 4) / (3 + 2 / 2 + 1 / 3),
        "ndcg(discount=rank, ideal=same_length)@2": 1 / (3 + 2 / 2),
    }
    values = run.rank.evaluate(*by_hand, truth=truth).row(0, named=True)
    assert values == pytest.approx({"users": 1, **by_hand})
    assert metric.meta.eq(rf.metrics.ndcg_at(4, discount=np.array(weights)))
    many = rf.metrics.dcg_at(4, discount=weights + [0.0] * 200).alias("many")
    few = rf.metrics.dcg_at(4, discount=weights).alias("few")
    for frame in (run, run.lazy()):
        both = rf.per_user(frame, many, few, truth=truth).lazy().collect()
        assert both["many"].to_list() == both["few"].to_list() == [pytest.approx(2.2)]
