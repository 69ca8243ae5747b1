import math

import numpy
import polars as pl
import pytest
from every_metric import EVERY_METRIC, LABELS, SPECIAL_MEANS
from two_models import RUN, TRUTH, assert_equal

import rankframe as rf
from rankframe._request import labels
from rankframe._request.labels import METRICS, parse_metric


def same(left: pl.Expr, right: pl.Expr) -> bool:
    return left.meta.eq(right)


def test_list_holds_every_public_metric_function():
    assert set(METRICS) <= set(rf.metrics.__all__)
    assert {name for name in rf.metrics.__all__ if name.endswith("_at")} <= set(METRICS)
    assert len(LABELS) > 60


def test_canonical_label_returns_its_expression():
    for label in LABELS:
        found = rf.metrics.of_label(label)
        assert same(found, EVERY_METRIC[label]), label
        assert found.meta.output_name() == label


@pytest.mark.parametrize(
    ("expr", "label"),
    [
        (rf.metrics.precision_at(10), "precision@10"),
        (rf.metrics.precision_at(), "precision"),
        (rf.metrics.precision_at(5, divide_by="attainable"), "precision(divide_by=attainable)@5"),
        (rf.metrics.recall_at(10), "recall@10"),
        (rf.metrics.f_at(3), "f1@3"),
        (rf.metrics.f_at(3, beta=2), "f(beta=2)@3"),
        (rf.metrics.f_at(3, 0.5), "f(beta=0.5)@3"),
        (rf.metrics.e_at(3), "e(beta=1)@3"),
        (rf.metrics.hit_at(1), "hit@1"),
        (rf.metrics.average_precision(), "ap"),
        (rf.metrics.average_precision(10, divide_by="hits"), "ap(divide_by=hits)@10"),
        (rf.metrics.reciprocal_rank(10), "rr@10"),
        (rf.metrics.dcg_at(10), "dcg@10"),
        (rf.metrics.ndcg_at(10, gain="exponential"), "ndcg(gain=exponential)@10"),
        (rf.metrics.ndcg_at(10, gain={2: 3, 1: 0.5}), "ndcg(gain=1:0.5;2:3)@10"),
        (rf.metrics.ndcg_at(10, gain={1: 4, 0: 0}), "ndcg(gain=0:0;1:4)@10"),
        (rf.metrics.cg_at(gain={2: 3.0, 1: 0.5}), "cg(gain=1:0.5;2:3)"),
        (rf.metrics.eleven_point_precision(), "eleven_point_precision"),
        (
            rf.metrics.eleven_point_precision(levels=[0.75, 0.25, 0.5]),
            "eleven_point_precision(levels=0.25;0.5;0.75)",
        ),
        (
            rf.metrics.ndcg_at(10, ideal="perfect", gain="binary"),
            "ndcg(gain=binary, ideal=perfect)@10",
        ),
        (rf.metrics.dcg_at(10, base=2), "dcg(base=2)@10"),
        (rf.metrics.cg_at(), "cg"),
        (rf.metrics.r_precision(), "r_precision"),
        (rf.metrics.attainable_precision_at(10), "attainable_precision@10"),
        (rf.metrics.attainable_recall_at(10), "attainable_recall@10"),
    ],
)
def test_labels_are_those_of_the_documentation(expr, label):
    assert expr.meta.output_name() == label


@pytest.mark.parametrize(
    ("alias", "expr"),
    [
        ("map", rf.metrics.average_precision()),
        ("MAP@10", rf.metrics.average_precision(10)),
        ("map_cut_10", rf.metrics.average_precision(10)),
        ("mrr", rf.metrics.reciprocal_rank()),
        ("MRR@10", rf.metrics.reciprocal_rank(10)),
        ("recip_rank", rf.metrics.reciprocal_rank()),
        ("p@10", rf.metrics.precision_at(10)),
        ("P_10", rf.metrics.precision_at(10)),
        ("set_P", rf.metrics.precision_at()),
        ("relative_P_10", rf.metrics.precision_at(10, divide_by="attainable")),
        ("set_relative_P", rf.metrics.precision_at(divide_by="attainable")),
        ("recall_100", rf.metrics.recall_at(100)),
        ("set_recall", rf.metrics.recall_at()),
        ("f@5", rf.metrics.f_at(5)),
        ("f2@5", rf.metrics.f_at(5, beta=2)),
        ("f0.5@5", rf.metrics.f_at(5, beta=0.5)),
        ("set_F", rf.metrics.f_at()),
        ("set_F.2.0", rf.metrics.f_at(beta=math.sqrt(2))),
        ("e@5", rf.metrics.e_at(5)),
        ("hit_rate@10", rf.metrics.hit_at(10)),
        ("success@10", rf.metrics.hit_at(10)),
        ("success_10", rf.metrics.hit_at(10)),
        ("ndcg_cut_10", rf.metrics.ndcg_at(10)),
        ("nDCG@10", rf.metrics.ndcg_at(10)),
        ("Rprec", rf.metrics.r_precision()),
        ("Rprec_mult_0.20", rf.metrics.r_precision(multiple=0.2)),
        ("iprec_at_recall_0.10", rf.metrics.interpolated_precision(0.1)),
        ("11pt_avg", rf.metrics.eleven_point_precision()),
        ("11pt_avg..25,.5,.75", rf.metrics.eleven_point_precision(levels=(0.25, 0.5, 0.75))),
        ("11pt_avg.0.2,0.5,0.8", rf.metrics.eleven_point_precision(levels=(0.2, 0.5, 0.8))),
        ("infAP", rf.metrics.inferred_average_precision()),
        ("G", rf.metrics.g_measure()),
        ("binG", rf.metrics.binary_g_measure()),
        ("Rndcg", rf.metrics.ndcg_at_levels()),
        ("set_map", rf.metrics.set_average_precision()),
        ("unj_5", rf.metrics.unjudged_at(5)),
        ("utility.2,-1,-1,0", rf.metrics.utility(2, -1, -1, 0)),
        ("ndcg.1=1,2=3", rf.metrics.ndcg_at(gain={1: 1, 2: 3})),
        ("ndcg.0=0,1=4", rf.metrics.ndcg_at(gain={0: 0, 1: 4})),
        ("ndcg.1=3,2=4.5,4=9", rf.metrics.ndcg_at(gain={1: 3, 2: 4.5, 4: 9})),
        ("num_rel_ret", rf.metrics.num_hits()),
        (" ndcg ( gain = exponential ) @ 10", rf.metrics.ndcg_at(10, gain="exponential")),
        ("ndcg(gain=linear)@10", rf.metrics.ndcg_at(10)),
    ],
)
def test_alias_differs_from_its_metric_only_in_its_name(alias, expr):
    found = rf.metrics.of_label(alias)
    assert found.meta.output_name() == alias
    assert same(found, expr.alias(alias))


@pytest.mark.parametrize(
    "label",
    [
        "ndgc@10",
        "precison@5",
        "map_cut_x",
        "",
        "ndcg@",
        "ndcg@ten",
        "ndcg@2.5",
        "ndcg@5(gain=binary)",
        "ndcg(k=5)",
        "ndcg(5)",
        "ndcg@5@6",
        "precision@0",
        "precision@-1",
        "P_0",
        "r_precision@5",
        "ndcg(gian=linear)@5",
        "rr(x=1)",
        "ndcg(gain=cubic)@5",
        "ndcg(gain=1:a)@5",
        "eleven_point_precision(levels=0.5;x)",
        "11pt_avg.2",
        "11pt_avgs",
        "f(beta=x)@5",
        "f(beta=-1)@5",
        "attainable_recall",
        "gmap",
    ],
)
def test_bad_label_is_reported(label, refused):
    refused(rf.metrics.of_label, label)


@pytest.mark.parametrize("k", [0, -1, 2.5, "3", True, 2**63])
def test_bad_cut_off_is_reported_where_the_expression_is_made(k, refused):
    refused(rf.metrics.precision_at, k)


@pytest.mark.parametrize(
    "make",
    [
        lambda: rf.metrics.precision_at(3, divide_by="n"),
        lambda: rf.metrics.f_at(3, beta=-0.1),
        lambda: rf.metrics.f_at(3, beta=float("nan")),
        lambda: rf.metrics.f_at(3, beta=float("inf")),
        lambda: rf.metrics.attainable_recall_at(None),
        lambda: rf.metrics.ndcg_at(10**9, ideal="perfect"),
        lambda: rf.metrics.dcg_at(gain={}),
        lambda: rf.metrics.dcg_at(gain={1: "a"}),
        lambda: rf.metrics.dcg_at(gain={1: -1}),
        lambda: rf.metrics.dcg_at(gain={1: float("inf")}),
        lambda: rf.metrics.q_measure(gain={1: 2, 2: 1}),
        lambda: rf.metrics.q_measure(gain={1: -1}),
        lambda: rf.metrics.q_measure(gain={0: 1, 1: 1}),
        *(
            lambda levels=levels: rf.metrics.eleven_point_precision(levels=levels)
            for levels in ([], (), "0.5", 0.5, None, [-0.1], [1.1], [0.5, math.nan], [True], ["1"])
        ),
        lambda: rf.metrics.eleven_point_precision(levels=[1, 0, 1.0]),
    ],
)
def test_bad_parameter_is_reported_where_the_expression_is_made(make, refused):
    refused(make)


def test_cut_off_may_be_any_whole_number_type():
    assert same(rf.metrics.precision_at(numpy.int64(3)), rf.metrics.precision_at(3))
    assert same(rf.metrics.f_at(3, beta=numpy.float64(2)), rf.metrics.f_at(3, beta=2))


@pytest.mark.parametrize("label", SPECIAL_MEANS)
def test_mean_over_users_has_no_per_user_value(label):
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1]})
    assert parse_metric(label).name == label
    assert judged.rank.evaluate(label).columns == ["users", label]
    for refused in (lambda: judged.rank.per_user(label), lambda: rf.metrics.of_label(label)):
        with pytest.raises(ValueError, match="is a mean over users, not a value per user"):
            refused()


def test_objects_that_are_no_metric_are_reported(refused):
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1]})
    refused(judged.rank.evaluate, {"map"})
    refused(judged.rank.evaluate)
    refused(judged.rank.evaluate, pl.col("rank", "relevance").sum())


@pytest.mark.parametrize(
    "metrics", [("map", "map"), ("ap", rf.metrics.average_precision()), (pl.len().alias("users"),)]
)
def test_duplicate_output_name_is_reported(metrics, refused):
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1]})
    refused(judged.rank.evaluate, *metrics)
    refused(judged.rank.per_user, pl.len().alias("user"))


JUDGED = {"user": [1, 2], "item": [1, 1], "rank": [1, 1], "relevance": [1, 1]}


def test_counts_alone_are_summed_over_users_whatever_they_are_called():
    judged = pl.DataFrame(JUDGED)
    mine = pl.col("rank").max().alias("num_hits")
    assert judged.rank.evaluate(mine).row(0) == (2, 1.0)
    for ours in (
        "num_hits",
        "num_rel_ret",
        rf.metrics.num_hits(),
        rf.metrics.num_hits().alias("found"),
    ):
        assert judged.rank.evaluate(ours).row(0) == (2, 2)


@pytest.mark.parametrize("name", ["ap", "map", "average_precision", "MAP"])
def test_defaults_are_for_a_metric_by_any_of_its_names(name):
    judged = pl.DataFrame({**JUDGED, "user": [1, 1], "item": [1, 2], "rank": [1, None]})
    own = {"defaults": {name: {"divide_by": "hits"}}}
    assert judged.rank.evaluate("map", "ap@5", preset=own).row(0) == (1, 1.0, 1.0)
    stated = judged.rank.evaluate(
        "ap(divide_by=relevant)", rf.metrics.average_precision(), preset=own
    )
    assert stated.row(0) == (1, 0.5, 0.5)


def test_defaults_may_be_for_metrics_with_a_cut_off():
    judged = pl.DataFrame({**JUDGED, "user": [1, 1], "item": [1, 2], "rank": [1, None]})
    own = {"defaults": {"map@k": {"divide_by": "hits"}, "ndcg": {"gain": "binary"}}}
    asked = ["map", "map@5", "map_cut_5", "ap(divide_by=k)@5"]
    assert judged.rank.evaluate(*asked, preset=own).row(0) == (1, 0.5, 1.0, 1.0, 0.2)


@pytest.mark.parametrize(
    "defaults",
    [
        {"r_precision@k": {}},
        {"map@k": {}, "AP@k": {}},
        {"mapp": {}},
        {"ap": {"divide": "hits"}},
        {"ap": {"k": 3}},
        {"P_10": {}},
        {"ap": {}, "map": {}},
    ],
)
def test_bad_defaults_are_reported(defaults, refused):
    refused(lambda: pl.DataFrame(JUDGED).rank.evaluate("ndcg", preset={"defaults": defaults}))


def test_discount_of_a_label_replaces_that_of_a_preset():
    judged = pl.DataFrame({**JUDGED, "user": 1, "item": [1, 2], "rank": [1, 2]})
    for label in ("ndcg(discount=rank)@2", "dcg(discount=rank)@2", "dcg(discount=log2)@2"):
        plain = judged.rank.evaluate(label)
        assert_equal(judged.rank.evaluate(label, preset="lenskit"), plain)
    own = {"discount": "rank"}
    based = judged.rank.evaluate("dcg(base=2)@2")
    assert_equal(judged.rank.evaluate("dcg(base=2)@2", preset={"defaults": {"dcg": own}}), based)
    for wrong in ({"label": "dcg(discount=rank,base=2)@2"}, {"defaults": {"base": 2} | own}):
        options = (
            {"preset": {"defaults": {"dcg": wrong["defaults"]}}} if "defaults" in wrong else {}
        )
        with pytest.raises(ValueError, match="two discounts"):
            judged.rank.evaluate(wrong.get("label", "dcg@2"), **options)


def test_metric_needs_a_name():
    with pytest.raises(ValueError, match=r"metric '': its column would have no name"):
        pl.DataFrame(JUDGED).rank.evaluate(pl.len().alias(""))


def test_which_metrics_are_better_lower():
    entries = {entry.label: entry.higher_is_better for entry in labels.every_entry()}
    assert {label for label, better in entries.items() if better is False} == {
        *("e", "ee_disparity", "ee_loss", "fallout", "gini", "mean_hit_rank", "miscalibration"),
        *("missed", "mpr", "num_missed", "num_nonrelevant"),
    }


def test_labels_are_not_recovered_from_expressions(monkeypatch):
    asked = []
    recovered = labels._call_of
    monkeypatch.setattr(labels, "_call_of", lambda expr: (asked.append(expr), recovered(expr))[1])
    names = ["precision@10", "recall@10", "map", "ndcg@10", "mrr"]
    rf.compare(RUN, *names, truth=TRUTH, baseline="a")
    assert asked == []
    rf.compare(RUN, *map(rf.metrics.of_label, names), truth=TRUTH, baseline="a")
    assert len(asked) == len(names)


def test_none_wins_over_a_preset():
    run = pl.DataFrame({"user": [1, 2], "item": 1, "rank": 1})
    truth = pl.DataFrame({"user": [1, 2], "item": 1, "relevance": [1, 0]})
    for options, users, recall in (
        ({}, 2, 0.5),
        ({"undefined": None}, 2, 1),
        ({"users": None}, 1, 1),
    ):
        got = rf.evaluate(
            run, "recall@1", truth=truth, preset="trec_eval", count_users=True, **options
        )
        assert got.row(0)[:2] == (users, recall)
