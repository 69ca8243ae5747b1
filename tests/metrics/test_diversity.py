"""Truths with a row for each subtopic of an item: the measures of diversity, and the others."""

import functools
import math
import random

import polars as pl
import pytest
from every_metric import OF_EACH_COLUMN
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._request.registry import reading_of

ITEMS = {
    label: metric
    for label, metric in (OF_EACH_COLUMN | {"judged@3": rf.metrics.judged_at(3)}).items()
    if reading_of(metric.meta.root_names(), has_subtopics=True).scope != "subtopic"
}
CUTS = (None, 1, 3, 25)


# ------------------------------------------------------------------ an oracle, from the papers


def gain(covers, above, alpha):
    """What an item adds to those above: (1 − α)^(how often seen) for each of its subtopics."""
    seen = {topic: sum(topic in other for other in above) for topic in covers}
    return math.fsum((1 - alpha) ** count for count in seen.values())


def gains(listed, alpha):
    """G[1], G[2], … of a list of sets of subtopics."""
    return [gain(covers, listed[:i], alpha) for i, covers in enumerate(listed)]


@functools.cache
def gains_of_all(topics, alpha, depth):
    """The same of a list whose items cover all subtopics."""
    return gains([set(range(topics))] * depth, alpha)


def greedy_ideal(relevant, alpha):
    """Take next what adds the most, of equals the highest item."""
    left, taken = dict(relevant), []
    while left:
        best = max(left, key=lambda item: (round(gain(left[item], taken, alpha), 9), item))
        taken.append(left.pop(best))
    return taken


def discounted(values, weight, k):
    return math.fsum(value * weight(i) for i, value in enumerate(values[:k], start=1))


WEIGHTS = {
    "alpha_dcg": lambda i: 1 / math.log2(i + 1),
    "err_ia": lambda i: 1 / i,
    "nrbp": lambda i: 0.5 ** (i - 1),
}


def oracle(name, listed, relevant, k=None, alpha=0.5):
    """One measure of one user: `listed` the items from the top, `relevant` {item: subtopics}."""
    topics = {topic for covers in relevant.values() for topic in covers}
    if not topics:
        return None
    found = [relevant.get(item, set()) for item in listed]
    ideal = greedy_ideal(relevant, alpha)
    plain = {"alpha_ndcg": "alpha_dcg", "nerr_ia": "err_ia", "nnrbp": "nrbp"}
    if name in plain:
        weight = WEIGHTS[plain[name]]
        value = discounted(gains(found, alpha), weight, k)
        return value / discounted(gains(ideal, alpha), weight, k)
    if name in WEIGHTS:
        value = discounted(gains(found, alpha), WEIGHTS[name], k)
        everything = gains_of_all(len(topics), alpha, k or 400)
        return value / discounted(everything, WEIGHTS[name], k or 400)
    if name == "subtopic_recall":
        return len(set().union(*found[:k])) / len(topics)
    if name == "precision_ia":
        return sum(len(covers) for covers in found[:k]) / (k * len(topics))
    assert name == "ap_ia"
    precisions = []
    for topic in topics:
        hits = [i for i, covers in enumerate(found, start=1) if topic in covers]
        summed = sum(h / i for h, i in enumerate(hits, start=1) if k is None or i <= k)
        precisions.append(summed / sum(topic in covers for covers in relevant.values()))
    return math.fsum(precisions) / len(topics)


ASKED = {
    **{
        ("alpha_dcg", k, a): rf.metrics.alpha_dcg_at(k, alpha=a)
        for k in CUTS
        for a in (0.5, 0.3, 1)
    },
    **{
        ("alpha_ndcg", k, a): rf.metrics.alpha_ndcg_at(k, alpha=a)
        for k in CUTS
        for a in (0.5, 0.3, 0, 1)
    },
    **{("err_ia", k, a): rf.metrics.err_ia_at(k, alpha=a) for k in CUTS for a in (0.5, 0.3)},
    **{("nerr_ia", k, a): rf.metrics.nerr_ia_at(k, alpha=a) for k in CUTS for a in (0.5, 0.3)},
    **{("nrbp", None, a): rf.metrics.nrbp(a) for a in (0.5, 0.3)},
    **{("nnrbp", None, a): rf.metrics.nnrbp(a) for a in (0.5, 0.3)},
    **{("subtopic_recall", k, 0.5): rf.metrics.subtopic_recall_at(k) for k in CUTS},
    **{("precision_ia", k, 0.5): rf.metrics.precision_ia_at(k) for k in CUTS if k},
    **{("ap_ia", k, 0.5): rf.metrics.average_precision_ia(k) for k in CUTS},
}


def make_tables(seed, users=6, items=12, topics=4):
    """Two models, users missed by one; items of no, one and several subtopics, of any grade."""
    rng = random.Random(seed)
    run, truth = [], []
    for user in range(users):
        for model in "ab":
            if rng.random() < 0.85:
                listed = rng.sample(range(items), rng.randint(1, items))
                run += [(model, user, item, rank) for rank, item in enumerate(listed, start=1)]
        for item in rng.sample(range(items), rng.randint(0, 9)):
            for topic in rng.sample(range(topics), rng.randint(1, topics)):
                truth.append((user, item, topic, rng.choice([-1, 0, 1, 1, 2])))
    truth.append((0, 0, topics, 2))
    rng.shuffle(truth)
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "subtopic", "relevance"], orient="row"),
    )


def relevant_of(truth, user, level):
    found = {}
    for _, item, topic, grade in truth.filter(user=user).rows():
        if grade >= level:
            found.setdefault(item, set()).add(topic)
    return found


def one_row_an_item(truth):
    return truth.group_by("user", "item").agg(pl.col("relevance").max())


@pytest.mark.parametrize("relevant_at", [None, 2])
@pytest.mark.parametrize(("depth", "unjudged"), [(None, "miss"), (5, "miss"), (None, "drop")])
def test_measures_of_diversity_equal_the_oracle(depth, unjudged, relevant_at):
    drawn = [make_tables(seed) for seed in range(2)]
    run, truth = (
        pl.concat(frame.with_columns(pl.col("user") + 10 * i) for i, frame in enumerate(frames))
        for frames in zip(*drawn, strict=True)
    )
    options = {"depth": depth, "unjudged": unjudged, "relevant_at": relevant_at}
    got = run.rank.per_user(*ASKED.values(), truth=truth, by="model", **options)
    assert got.height > 12
    kept = set(truth.filter(pl.col("relevance") >= 0).select("user", "item").rows())
    for row in got.rows(named=True):
        own = run.filter(model=row["model"], user=row["user"]).sort("rank")["item"].to_list()
        if unjudged == "drop":
            own = [item for item in own if (row["user"], item) in kept]
        relevant = relevant_of(truth, row["user"], relevant_at or 1)
        for (name, k, alpha), metric in ASKED.items():
            expected = oracle(name, own[:depth], relevant, k, alpha)
            label = metric.meta.output_name()
            assert row[label] == (expected and pytest.approx(expected, abs=1e-12)), label


def ways(run, truth, *metrics, **options):
    """The ways to one number."""
    judged = run.rank.judge(truth, by="model")
    lazy = run.lazy().rank.judge(truth.lazy(), by="model")
    options["by"] = "model"
    return [
        run.rank.per_user(*metrics, truth=truth, **options),
        run.lazy().rank.per_user(*metrics, truth=truth.lazy(), **options).collect(),
        judged.rank.per_user(*metrics, **options),
        judged.sample(fraction=1, shuffle=True, seed=1).rank.per_user(*metrics, **options),
        lazy.rank.per_user(*metrics, **options).collect(),
        lazy.rank.per_user(*metrics, **options).collect(engine="streaming"),
    ]


@pytest.mark.sample(2)
@pytest.mark.parametrize("unjudged", ["miss", "drop"])
def test_metrics_without_subtopics_reduce_one_row_per_item_of_the_highest_grade(unjudged):
    run, truth = make_tables(11)
    both = [
        *ITEMS.values(),
        rf.metrics.alpha_ndcg_at(3),
        rf.metrics.nrbp(),
        rf.metrics.judged_at(3).alias("mine"),
    ]
    options = {"unjudged": unjudged, "by": "model"}
    expected = run.rank.per_user(*ITEMS.values(), truth=one_row_an_item(truth), **options)
    diverse = run.rank.per_user(
        rf.metrics.alpha_ndcg_at(3), rf.metrics.nrbp(), truth=truth, **options
    )
    mine = expected["judged@3"].alias("mine")
    expected = expected.hstack(diverse.select("alpha_ndcg@3", "nrbp")).with_columns(mine)
    for got in ways(run, truth, *both, unjudged=unjudged):
        assert_frame_equal(got, expected, abs_tol=1e-12, rel_tol=1e-12)


def test_intent_aware_is_the_mean_over_the_subtopics():
    run, truth = make_tables(5)
    run = run.filter(model="a").drop("model")
    truth = truth.filter(pl.col("relevance") > 0)
    single = ["ap", "ap@3", "precision@3", rf.metrics.err_at(3, max_grade=1).alias("err")]
    asked = ["ap_ia", "ap_ia@3", "precision_ia@3", "err_ia@3"]
    each = [
        run.rank.per_user(*single, truth=truth.filter(subtopic=topic).drop("subtopic", "relevance"))
        for topic in truth["subtopic"].unique()
        if run.join(truth.filter(subtopic=topic), on="user", how="semi").height
    ]
    means = pl.concat(each).group_by("user").mean().sort("user")
    got = run.rank.per_user(*asked, truth=truth)
    # a reader of two grades stops at an item with the chance 1/2; the bound is of k such items
    bound = sum(0.5**i / i for i in (1, 2, 3))
    expected = means.with_columns(pl.col("err") / bound)
    assert_frame_equal(got, expected.rename(dict(zip(expected.columns[1:], asked, strict=True))))


def test_example_of_the_paper():
    """Clarke et al. 2008: G = ⟨2, 1/2, 1/4, 0, 2, 1/2, 1⟩; these subtopics give it, α = 1/2."""
    covers = {"a": "xy", "b": "y", "c": "y", "e": "zw", "f": "z", "g": "v", "h": "z"}
    truth = pl.DataFrame(
        [(1, item, topic) for item, topics in covers.items() for topic in topics],
        schema=["user", "item", "subtopic"],
        orient="row",
    )
    run = rf.from_lists(pl.DataFrame({"user": [1], "item": [list("abcdefgh")]}))
    dcg = [2, 2.315, 2.440, 2.440, 3.214, 3.392, 3.726]
    ideal = [2, 3.262, 3.762, 3.977, 4.170, 4.259, 4.343]
    asked = [rf.metrics.alpha_ndcg_at(k) for k in range(1, 8)]
    got = run.rank.per_user(*asked, truth=truth).drop("user").row(0)
    expected = [x / y for x, y in zip(dcg, ideal, strict=True)]
    assert got == pytest.approx(expected, abs=5e-4)


def test_items_without_subtopics_are_of_one():
    run, truth = make_tables(3)
    plain = one_row_an_item(truth)
    got = run.rank.per_user(*ASKED.values(), truth=plain, by="model")
    of_one = plain.with_columns(subtopic=pl.lit("all"))
    expected = run.rank.per_user(*ASKED.values(), truth=of_one, by="model")
    assert_frame_equal(got, expected, abs_tol=1e-12, rel_tol=1e-12)


def test_greedy_ideal_is_not_always_the_best():
    """Three subtopics at once, then one more, lose to two pairs at position 2."""
    covers = {"a": "pqr", "b": "psx", "c": "qry"}
    truth = pl.DataFrame(
        [(1, item, topic) for item, topics in covers.items() for topic in topics],
        schema=["user", "item", "subtopic"],
        orient="row",
    )
    run = pl.DataFrame({"user": 1, "item": ["b", "c"], "rank": [1, 2]})
    truth = truth.vstack(pl.DataFrame({"user": 1, "item": "a", "subtopic": "t"}))
    # greedy: a adds 4, then b 2.5; the list: b adds 3, then c 3
    got = run.rank.per_user(
        rf.metrics.subtopic_recall_at(2), rf.metrics.alpha_ndcg_at(2), truth=truth
    )
    expected = (3 + 3 / math.log2(3)) / (4 + 2.5 / math.log2(3))
    assert got["alpha_ndcg@2"].item() == pytest.approx(expected)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.String, pl.Categorical])
def test_ideal_puts_the_higher_of_equal_items_first(dtype):
    truth = pl.DataFrame(
        {"user": 1, "item": [1, 1, 2, 2, 3, 3], "subtopic": [*"pq", *"rs", *"pr"]}
    ).with_columns(pl.col("item").cast(pl.String).cast(dtype))
    run = pl.DataFrame({"user": 1, "item": [9], "rank": [1]}).with_columns(
        pl.col("item").cast(pl.String).cast(dtype)
    )
    rows = rf.metrics.rows(run.rank.judge(truth), rf.metrics.alpha_ndcg_at(alpha=0.9))
    places = dict(rows.select(pl.col("item").cast(pl.String), "diverse_rank(0.9)").rows())
    # all add 2 at first; then 2 and 1 both add one that is new and one that is not
    assert places == {"3": 1, "2": 2, "1": 3}
    seen = rows.select(pl.col("item").cast(pl.String), "subtopic", "diverse_hits(0.9)").rows()
    counts = [("1", "p", 2), ("1", "q", 1), ("2", "r", 2), ("2", "s", 1), ("3", "p", 1)]
    assert sorted(seen) == [*counts, ("3", "r", 1)]


def test_column_may_have_another_name():
    run, truth = make_tables(8)
    named = truth.rename({"subtopic": "aspect"})
    metrics = ["alpha_ndcg@5", "ndcg@5"]
    expected = run.rank.evaluate(*metrics, truth=truth, by="model")
    options = {"by": "model", "subtopic": "aspect"}
    assert_frame_equal(run.rank.evaluate(*metrics, truth=named, **options), expected)
    judged = run.rank.judge(named, **options)
    assert judged.columns[-1] == "subtopic"
    assert_frame_equal(judged.rank.evaluate(*metrics, by="model"), expected)
    assert run.rank.check(truth=named, **options) is run
    judged.rank.check(by="model")


def test_composing_by_hand():
    run, truth = make_tables(9)
    judged = run.rank.judge(truth, by="model")
    diverse = [rf.metrics.alpha_ndcg_at(5), rf.metrics.subtopic_recall_at(3)]
    got = rf.metrics.rows(judged, *diverse, by="model").group_by("model", "user").agg(diverse)
    expected = judged.rank.per_user(*diverse, by="model")
    assert_frame_equal(got.sort("model", "user"), expected, abs_tol=1e-12)
    rows = rf.metrics.rows(judged, by="model")
    assert not rows.select("model", "user", "item").is_duplicated().any()
    with pytest.raises(
        ValueError, match="some of these metrics reduce items, others the subtopics"
    ):
        rf.metrics.rows(judged, "ndcg", *diverse, by="model")


def test_truth_is_not_changed_and_its_other_columns_ride_along():
    run = pl.DataFrame({"user": 1, "item": [1, 2], "rank": [1, 2]})
    truth = pl.DataFrame(
        {"user": 1, "item": [1, 1, 2], "subtopic": [*"aba"], "relevance": [1, 2, 1], "w": [3, 5, 7]}
    )
    before = truth.clone()
    weight = pl.col("w").sum().alias("w")
    by_topic = (pl.col("w") * pl.col("subtopic_hits")).sum().alias("seen")
    got = run.rank.per_user(weight, by_topic, truth=truth)
    assert got.row(0) == (1, 12, 3 + 5 + 14)
    assert_frame_equal(truth, before)


TRUTH = {"user": [1, 1], "item": [1, 1], "subtopic": ["a", "b"], "relevance": [1, 1]}
JUDGED = {**TRUTH, "rank": [1, 1]}


@pytest.mark.parametrize(
    "table",
    [
        {**TRUTH, "subtopic": ["a", "a"]},
        {**TRUTH, "subtopic": ["a", None]},
        {**TRUTH, "subtopic": [1.0, math.nan]},
        {**TRUTH, "subtopic": [["a"], ["b"]]},
        {**JUDGED, "subtopic": ["a", "a"]},
        {**JUDGED, "subtopic": ["a", None]},
        {**JUDGED, "rank": [1, 2]},
        {**JUDGED, "rank": [1, None]},
        {**JUDGED, "item": [1, 2]},
    ],
)
def test_subtopics_that_break_a_rule_are_reported(table, refused):
    frame, options = pl.DataFrame(table, strict=False), {}
    if "rank" not in table:
        options = {"truth": frame}
        frame = pl.DataFrame({"user": [1, 1], "item": [1, 2], "rank": [1, 2]})
    refused(frame.rank.evaluate, "ndcg", **options)
    refused(frame.rank.check, **options)
    lazy = {name: table.lazy() for name, table in options.items()}
    for metric in ("alpha_ndcg", "num_retrieved"):
        refused(lambda m: frame.lazy().rank.evaluate(m, **lazy).collect(), metric)


def test_role_that_is_missing_is_reported(refused):
    run = pl.DataFrame({"user": [1], "item": [1], "rank": [1]})
    refused(run.rank.evaluate, "ap", truth=pl.DataFrame(TRUTH), subtopic="aspect")
    refused(lambda: pl.DataFrame(JUDGED).rename({"rank": "score"}).rank.evaluate("ap"))
    refused(lambda: run.with_columns(subtopic=1).rank.evaluate("ap", truth=pl.DataFrame(TRUTH)))


@pytest.mark.parametrize(
    "make",
    [
        lambda: rf.metrics.alpha_dcg_at(5, alpha=1.5),
        lambda: rf.metrics.alpha_ndcg_at(alpha=-1),
        lambda: rf.metrics.err_ia_at(alpha=0),
        lambda: rf.metrics.alpha_dcg_at(2**40, alpha=0),
        lambda: rf.metrics.nrbp(p=1),
        lambda: rf.metrics.nnrbp(p=0),
        lambda: rf.metrics.precision_ia_at(None),
    ],
)
def test_measure_of_diversity_reports_a_parameter_out_of_range(make, refused):
    refused(make)


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("alpha-nDCG@20", "alpha_ndcg@20"),
        ("alpha_nDCG(alpha=0.7)@20", "alpha_ndcg(alpha=0.7)@20"),
        ("ERR-IA@20", "err_ia@20"),
        ("nERR-IA@5", "nerr_ia@5"),
        ("P-IA@5", "precision_ia@5"),
        ("MAP-IA", "ap_ia"),
        ("strec@10", "subtopic_recall@10"),
        ("StRecall@10", "subtopic_recall@10"),
        ("NRBP", "nrbp"),
        ("nNRBP", "nnrbp"),
    ],
)
def test_names_of_other_tools_are_read(name, label):
    assert rf.metrics.of_label(name).meta.eq(rf.metrics.of_label(label).alias(name))


def test_relevant_item_makes_the_one_subtopic():
    run = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "rank": [1, 2, 1]})
    truth = pl.DataFrame({"user": [1, 1, 2], "item": [1, 2, 1], "relevance": [1, 2, 1]})
    metrics = ["precision_ia@2", "subtopic_recall@2", "alpha_ndcg@2"]
    got = rf.per_user(run, *metrics, truth=truth, relevant_at=2)
    expected = rf.per_user(
        run, "precision@2", "recall@2", "ndcg(gain=binary)@2", truth=truth, relevant_at=2
    )
    assert [pytest.approx(row) for row in expected.rows()] == got.rows()
    assert got.row(0)[1:3] == (0.5, 1.0)
