"""``rel=`` and ``-l``: one label's own level of relevance, and spellings of other tools."""

import random
import re
from functools import partial

import polars as pl
import pytest
from every_metric import EVERY_METRIC, FEW
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf


def make_tables():
    """Two models; grades from -1 to 3, short lists, missed users, users without a grade of 2."""
    rng = random.Random(3)
    run, truth = [], []
    for user in range(25):
        for model in "ab":
            if user % 8 == (0 if model == "a" else 1):
                continue
            items = rng.sample(range(20), rng.randint(1, 12))
            run += [(model, user, item, rank) for rank, item in enumerate(items, start=1)]
        top = 1 if user % 5 == 0 else 3
        for item in rng.sample(range(20), rng.randint(2, 10)):
            truth.append((user, item, rng.randint(-1, top)))
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    )


RUN, TRUTH = make_tables()
OPTIONS = {"truth": TRUTH, "by": "model", "users": "judged"}


def at_level(label, level=2):
    """Write the level into a label."""
    name, at, k = label.partition("@")
    inside = f"{name[:-1]}, rel={level})" if name.endswith(")") else f"{name}(rel={level})"
    return f"{inside}{at}{k}"


def same(left, right):
    assert_frame_equal(left, right, abs_tol=1e-12, rel_tol=1e-12)


def test_metrics_take_a_level_of_their_own():
    expected = rf.per_user(RUN, *FEW, **OPTIONS, relevant_at=2)
    got = rf.per_user(RUN, *(at_level(label) for label in FEW), **OPTIONS)
    assert got.columns[2:] == [at_level(label) for label in FEW]
    same(got.rename({at_level(label): label for label in FEW}), expected)


def test_labels_with_and_without_a_level_stand_in_one_call():
    asked = ["AP(rel=2)", "ndcg@10", "P(rel=3)@5", "map", "RR(rel=2)@10", "bpref-l2", "judged@3"]
    for relevant_at in (None, 2, 3):
        got = rf.evaluate(RUN, *asked, **OPTIONS, relevant_at=relevant_at)
        assert got.columns == ["model", "users", *asked]
        for label, plain, level in [
            ("AP(rel=2)", "ap", 2),
            ("ndcg@10", "ndcg@10", relevant_at),
            ("P(rel=3)@5", "precision@5", 3),
            ("map", "map", relevant_at),
            ("RR(rel=2)@10", "rr@10", 2),
            ("bpref-l2", "bpref", 2),
            ("judged@3", "judged@3", relevant_at),
        ]:
            alone = rf.evaluate(RUN, plain, **OPTIONS, relevant_at=level)
            same(got.select("model", "users", label), alone.rename({plain: label}))


@pytest.mark.parametrize("label", ["ndcg@10-l2", "dcg@5-l2", "cg-l2", "q-l2", "kendall_tau_b-l2"])
def test_ranx_takes_the_gain_of_lower_grades_as_well(label):
    text = (
        f"metric '{label}': in ranx, -l also removes the gain of lower grades: leave it out, and "
    )
    text += "pass truth=truth.filter(pl.col('relevance') >= 2)"
    with pytest.raises(ValueError, match=re.escape(text)):
        rf.evaluate(RUN, label, **OPTIONS)


@pytest.mark.parametrize("users", ["judged", "both", "run", "all"])
@pytest.mark.parametrize("undefined", [None, 0.0])
def test_averaged_users_do_not_change(users, undefined):
    options = {**OPTIONS, "users": users, "undefined": undefined}
    got = rf.per_user(RUN, "ap(rel=2)", "rr(rel=3)", **options)
    two, three = (
        rf.per_user(RUN, x, **options, relevant_at=at) for x, at in [("ap", 2), ("rr", 3)]
    )
    same(got.select("model", "user", "ap(rel=2)"), two.rename({"ap": "ap(rel=2)"}))
    same(got.select("model", "user", "rr(rel=3)"), three.rename({"rr": "rr(rel=3)"}))


def test_verbs_take_a_level():
    for verb in (rf.summarize, partial(rf.compare, details=True)):
        got = verb(RUN, "map", "ap(rel=2)", "gmap@5-l2", **OPTIONS)
        alone = verb(RUN, "ap", "gmap@5", **OPTIONS, relevant_at=2)
        names = pl.col("metric").replace({"ap": "ap(rel=2)", "gmap@5": "gmap@5-l2"})
        if verb is rf.summarize:
            assert_frame_equal(
                got.filter(pl.col("metric") != "map"), alone.with_columns(names), rel_tol=1e-9
            )
        else:
            numbers = ["metric", "users", "difference", "ci_low", "p_value"]
            kept = got.filter(pl.col("metric") != "map").select(numbers)
            assert_frame_equal(kept, alone.with_columns(names).select(numbers), rel_tol=1e-9)
    tidy = rf.stats.at_k(RUN, "recall", "recall(rel=2)", "recall-l2", k=[3], **OPTIONS)
    one, two, three = (
        tidy.filter(metric=x)["mean"] for x in ("recall", "recall(rel=2)", "recall-l2")
    )
    assert two.to_list() == three.to_list() != one.to_list()


def test_bounds_ties_and_judged_tables_keep_the_level():
    for options in (
        {"unjudged": "bounds"},
        {"unjudged": "drop"},
        {"depth": 3},
    ):
        got = rf.evaluate(RUN, "recall@3", "recall(rel=2)@3", **OPTIONS, **options)
        alone = rf.evaluate(RUN, "recall@3", **OPTIONS, **options, relevant_at=2)
        wanted = [name for name in got.columns if name.startswith("recall(rel=2)@3")]
        assert len(wanted) == len(alone.columns) - 2
        same(
            got.select(wanted),
            alone.drop("model", "users").rename(dict(zip(alone.columns[2:], wanted, strict=True))),
        )
    scored = RUN.with_columns(score=-(pl.col("rank") // 3)).drop("rank")
    tied = scored.rank.with_rank(by="model", ties="expected")
    got = tied.rank.evaluate("ap", "ap(rel=2)", **OPTIONS)
    same(
        got.select("ap(rel=2)"),
        tied.rank.evaluate("ap", **OPTIONS, relevant_at=2).select(pl.col("ap").alias("ap(rel=2)")),
    )
    judged = RUN.rank.judge(TRUTH, by="model")
    expected = rf.evaluate(RUN, "ap(rel=2)", "ndcg", **OPTIONS)
    same(judged.rank.evaluate("ap(rel=2)", "ndcg", by="model"), expected)
    lazy = rf.evaluate(RUN.lazy(), "ap(rel=2)", "ndcg", truth=TRUTH.lazy(), by="model")
    same(lazy.collect(), expected)


def test_counts_of_a_level_are_summed():
    got = rf.evaluate(RUN, "num_hits(rel=2)@5", "NumRet(rel=2)", "NumRet", **OPTIONS)
    alone = rf.evaluate(RUN, "num_hits@5", "num_hits", "num_ret", **OPTIONS, relevant_at=2)
    assert got.rows() == alone.rows()


def test_duplicate_is_found_at_the_level_too():
    doubled = pl.concat([RUN, RUN.head(1).with_columns(rank=pl.lit(99, pl.Int64))])
    liked = TRUTH.with_columns(relevance=pl.lit(2))
    truth = pl.concat([liked, RUN.head(1).select("user", "item", relevance=pl.lit(2))]).unique(
        ["user", "item"]
    )
    for labels in (["ap(rel=2)"], ["rr", "ap(rel=2)"], ["ap(rel=2)", "ndcg(rel=3)@5"]):
        with pytest.raises(rf.RankingDataError, match="run, column 'item': duplicate"):
            rf.evaluate(doubled, *labels, truth=truth, by="model")


@pytest.mark.parametrize(
    "label",
    [
        "ap(rel=0)",
        "ap(rel=-1)",
        "ap(rel=nan)",
        "ap(rel=x)",
        "ap(rel=)",
        "ap(rel=1, rel=2)",
        "ap(rel=1)@5-l2",
        "ap-l0",
        "ndgc(rel=2)@5",
        "coverage(rel=2)@5",
    ],
)
def test_bad_level_is_reported(label, refused):
    refused(rf.evaluate, RUN, label, **OPTIONS, items=RUN.select("item").unique())


def test_expressions_hold_no_level():
    text = "its own level of relevance, .* pass the label to the verb, or pass relevant_at=2"
    for label in ("ap(rel=2)", "map@10-l2"):
        with pytest.raises(ValueError, match=text):
            rf.metrics.of_label(label)


def test_rel_and_names_that_end_in_a_level_are_no_metrics_of_ones_own():
    with pytest.raises(TypeError, match="every label takes rel=: rename the parameter"):

        @rf.register_metric("mine")
        def mine(rel: float = 1) -> pl.Expr:
            return pl.col("rank").max() + rel

    with pytest.raises(ValueError, match="'mine-l2' ends like ranx's level of relevance"):

        @rf.register_metric("mine-l2")
        def mine_two() -> pl.Expr:
            return pl.col("rank").max()


# ------------------------------------------------------------------ spellings of other tools


@pytest.mark.parametrize(
    ("spelling", "expr", "level"),
    [
        # ir_measures
        ("AP(rel=2)", rf.metrics.average_precision(), 2),
        ("AP(rel=2)@100", rf.metrics.average_precision(100), 2),
        ("nDCG@10", rf.metrics.ndcg_at(10), None),
        ("P(rel=2)@5", rf.metrics.precision_at(5), 2),
        ("RR(rel=2)@10", rf.metrics.reciprocal_rank(10), 2),
        ("R(rel=2)@10", rf.metrics.recall_at(10), 2),
        ("Success(rel=2)@5", rf.metrics.hit_at(5), 2),
        ("SetP", rf.metrics.precision_at(), None),
        ("SetP(rel=2)", rf.metrics.precision_at(), 2),
        ("SetRelP", rf.metrics.precision_at(divide_by="attainable"), None),
        ("SetR", rf.metrics.recall_at(), None),
        ("SetF", rf.metrics.f_at(), None),
        ("SetF(beta=4)", rf.metrics.f_at(beta=2), None),
        ("SetAP(rel=2)", rf.metrics.set_average_precision(), 2),
        ("NumRet", rf.metrics.num_retrieved(), None),
        ("NumRet(rel=2)", rf.metrics.num_hits(), 2),
        ("NumRelRet", rf.metrics.num_hits(), None),
        ("NumRel", rf.metrics.num_relevant(), None),
        ("IPrec@0.1", rf.metrics.interpolated_precision(0.1), None),
        ("IPrec(rel=2)@0.5", rf.metrics.interpolated_precision(0.5), 2),
        ("Judged@10", rf.metrics.judged_at(10), None),
        ("Rprec(rel=2)", rf.metrics.r_precision(), 2),
        ("Bpref(rel=2)", rf.metrics.bpref(), 2),
        ("RBP(rel=2, p=0.9)", rf.metrics.rank_biased_precision(0.9), 2),
        # ranx
        ("map@100-l2", rf.metrics.average_precision(100), 2),
        ("mrr-l2", rf.metrics.reciprocal_rank(), 2),
        ("num_hits@10-l3", rf.metrics.num_hits(10), 3),
        # MTEB
        ("precision_at_10", rf.metrics.precision_at(10), None),
        ("ndcg_at_10", rf.metrics.ndcg_at(10), None),
        ("mrr_at_10", rf.metrics.reciprocal_rank(10), None),
        ("map_at_5", rf.metrics.average_precision(5), None),
        # spoken
        ("mean_average_precision@5", rf.metrics.average_precision(5), None),
        ("mean_reciprocal_rank", rf.metrics.reciprocal_rank(), None),
        ("f1_score@10", rf.metrics.f_at(10), None),
        ("fmeasure", rf.metrics.f_at(), None),
        ("hitrate@5", rf.metrics.hit_at(5), None),
        ("r-precision", rf.metrics.r_precision(), None),
        ("arhr@5", rf.metrics.arhr_at(5), None),
    ],
)
def test_spelling_of_another_tool_is_a_metric(spelling, expr, level):
    plain = expr.meta.output_name()
    got = rf.evaluate(RUN, spelling, **OPTIONS)
    expected = rf.evaluate(RUN, expr, **OPTIONS, relevant_at=level)
    assert got.columns[-1] == spelling
    same(got, expected.rename({plain: spelling}))
    if level is None:
        named = expr if plain == spelling else expr.alias(spelling)
        assert rf.metrics.of_label(spelling).meta.eq(named)


@pytest.mark.parametrize(
    ("label", "nearest"),
    [
        ("ndgc_at_10", "'ndcg@10'"),
        ("fmeasur@5", "'fmeasure@5'"),
        ("f1score@10", "'f1_score@10'"),
        ("hit_rates@5", "'hit_rate@5'"),
        ("num_hit@5", "'num_hits@5'"),
        ("arh@5", "'arhr@5'"),
        ("gmaps@5", "'gmap@5'"),
        ("mean_avg_precision", "'mean_average_precision'"),
        ("r_precison", "'r_precision'"),
        ("ndcg10", "'ndcg@10'"),
    ],
)
def test_nearest_names_are_sensible(label, nearest):
    with pytest.raises(ValueError, match=f"unknown metric {label!r}; the nearest are") as error:
        rf.evaluate(RUN, label, **OPTIONS)
    assert nearest in str(error.value)


@pytest.mark.parametrize(("label", "asked"), [("gauc", "auc"), ("GAUC@10", "auc@10")])
def test_gauc_names_weights(label, asked):
    text = f"metric '{label}' is the AUC weighted by user: use '{asked}' with weights="
    for call in (lambda: rf.metrics.of_label(label), lambda: rf.evaluate(RUN, label, **OPTIONS)):
        with pytest.raises(ValueError, match=text):
            call()


@pytest.mark.parametrize(
    ("spelling", "label"),
    [
        ("accuracy@2", "hit@2"),
        ("top_k_accuracy@2", "hit@2"),
        ("accuracy_at_2", "hit@2"),
        ("recall_any@2", "hit@2"),
        ("R_cap@2", "recall(divide_by=attainable)@2"),
        ("rprecision", "r_precision"),
        ("roc_auc", "auc"),
        ("ROC_AUC@2", "auc@2"),
    ],
)
def test_words_of_other_tools_are_aliases(spelling, label):
    assert rf.metrics.of_label(spelling).meta.output_name() == spelling
    assert (
        rf.metrics.of_label(spelling)
        .meta.undo_aliases()
        .meta.eq(rf.metrics.of_label(label).meta.undo_aliases())
    )
    named = rf.evaluate(RUN, spelling, **OPTIONS)
    assert_equal(named.rename({spelling: label}), rf.evaluate(RUN, label, **OPTIONS))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("hole@10", "a share of the results of all queries together: use 'unjudged@10', which"),
        ("mean_rank", "a mean over all relevant items: use 'mean_hit_rank', which is over a"),
        (
            "hits@10",
            "use 'hit@10', the share of users with a relevant item there, or 'num_hits@10'",
        ),
        ("MR@5", "a mean over all relevant items: use 'mean_hit_rank@5', which is over a"),
        ("context_precision@5", "use 'precision@5', the relevant share of the first, or 'ap"),
        ("context_precision@5", "or 'ap(divide_by=hits)@5', the mean of precision at each"),
        ("context_recall", "the share of the relevant items that are retrieved: use 'recall'"),
        ("user_coverage", "the share of users with a list: use 'missed', the share without one"),
        (
            "cosine_ndcg@10",
            "has the name of a similarity, which the scores have already: use 'ndcg@10'",
        ),
        ("dot_accuracy@3", "which the scores have already: use 'accuracy@3'"),
    ],
)
def test_words_without_a_metric_name_the_label_and_the_difference(label, text):
    with pytest.raises(ValueError) as raised:
        rf.evaluate(RUN, label, **OPTIONS)
    assert str(raised.value).startswith(f"metric '{label}' ")
    assert text in str(raised.value)
    offered = re.findall("'([^']+)'", str(raised.value))[1:]
    assert rf.evaluate(RUN, *offered, **OPTIONS).height == 2


def test_arhr_is_the_sum_of_reciprocal_ranks_of_the_hits():
    run = pl.DataFrame({"user": [1] * 4 + [2], "item": [1, 2, 3, 4, 9], "rank": [1, 2, 3, 4, 1]})
    truth = pl.DataFrame({"user": [1, 1, 1, 2, 3], "item": [2, 4, 7, 9, 1]})
    got = rf.per_user(run, "arhr", "arhr@2", truth=truth)
    assert got.rows() == [(1, 0.75, 0.5), (2, 1.0, 1.0), (3, 0.0, 0.0)]


def test_false_positives_are_the_items_that_are_not_relevant_judged_or_not():
    run = pl.DataFrame({"user": [1] * 4 + [2], "item": [1, 2, 3, 4, 9], "rank": [1, 2, 3, 4, 1]})
    truth = pl.DataFrame({"user": [1, 1, 2, 3], "item": [2, 3, 8, 1], "relevance": [1, 0, 1, 1]})
    names = ["num_hits@3", "num_nonrelevant@3", "num_nonrelevant", "num_nonrelevant(of=judged)@3"]
    got = rf.per_user(run, *names, truth=truth)
    assert got.rows() == [(1, 1, 2, 3, 1), (2, 0, 1, 1, 0), (3, 0, 0, 0, 0)]
    assert rf.evaluate(run, *names, truth=truth).row(0) == (3, 1, 3, 4, 1)
    renamed = rf.metrics.num_hits(3).alias("found")
    assert rf.evaluate(run, renamed, truth=truth).row(0) == (3, 1)


def test_labels_without_a_level_of_their_own_are_few():
    assert not any("rel=" in label for label in EVERY_METRIC)
