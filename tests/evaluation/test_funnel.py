"""Where a metric loses: each stage against plain Python, and against runs made by hand."""

import itertools
import math
import random

import polars as pl
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._evaluation import funnel

K = 3
LABELS = ("ndcg@3", "precision@3", "recall@3", "map@3", "mrr@3", "map", "ndcg", "hit@3")
quick = settings(deadline=None, max_examples=reference.drawn(40))
LISTS = st.lists(st.integers(1, 9), unique=True, min_size=1, max_size=8)
GRADES = st.dictionaries(st.integers(1, 12), st.integers(-1, 3), min_size=1, max_size=8)


def value_of(label, items, grades):
    """One user's value, of the plain definitions."""
    name, _, cut = label.partition("@")
    k = int(cut) if cut else max(len(items), 1)
    ideal = sorted((grade for grade in grades.values() if grade > 0), reverse=True)
    gains = [max(grades.get(item, 0), 0) for item in items[:k]]
    hits = [gain > 0 for gain in gains]
    at = [place for place, hit in enumerate(hits, 1) if hit]
    if name == "ndcg":
        best = ideal[: k if cut else None]
        dcg, idcg = (
            math.fsum(gain / math.log2(place + 1) for place, gain in enumerate(all_gains, 1))
            for all_gains in (gains, best)
        )
        return dcg / idcg
    return {
        "precision": sum(hits) / k,
        "recall": sum(hits) / len(ideal),
        "map": math.fsum(sum(hits[:place]) / place for place in at) / len(ideal),
        "mrr": 1 / at[0] if at else 0.0,
        "hit": float(bool(at)),
    }[name]


def orders_of(items, grades, k=K, more=()):
    """The lists of the four stages, of one user."""

    def best(part):
        return sorted(part, key=lambda item: -grades.get(item, -9))

    k = k or len(items)
    every = [*items, *(item for item in dict.fromkeys(more) if item not in items)]
    positive = best(item for item, grade in grades.items() if grade > 0)
    return [items, [*best(items[:k]), *items[k:]], best(every), positive]


def run_of(lists):
    rows = [(u, item, rank) for u, items in lists.items() for rank, item in enumerate(items, 1)]
    schema = {"user": pl.Int64, "item": pl.Int64, "rank": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def truth_of(judged):
    rows = [(u, item, grade) for u, grades in judged.items() for item, grade in grades.items()]
    return pl.DataFrame(rows, schema=["user", "item", "relevance"], orient="row")


def drawn(seed, users=30):
    """Lists of 8 of 12 items, and judgments of 14 with negative and missing ones."""
    rng = random.Random(seed)
    lists = {u: rng.sample(range(12), rng.randint(1, 8)) for u in range(users)}
    judged = {
        u: {i: rng.choice([-1, 0, 1, 1, 2, 3]) for i in rng.sample(range(14), rng.randint(1, 8))}
        for u in range(3, users + 3)
    }
    return lists, judged


@pytest.mark.filterwarnings("ignore:.*no item of the run is in the truth")
@pytest.mark.parametrize("label", LABELS)
@given(lists=st.lists(LISTS, min_size=1, max_size=4), judged=st.lists(GRADES, min_size=4))
@quick
def test_each_stage_has_the_value_of_its_list(label, lists, judged):
    lists, judged = dict(enumerate(lists)), dict(enumerate(judged))
    relevant = {u: grades for u, grades in judged.items() if max(grades.values()) > 0}
    got = rf.stats.funnel(run_of(lists), label, truth=truth_of(judged))
    k = int(label.partition("@")[2] or 0)
    orders = {u: orders_of(lists.get(u, []), grades, k) for u, grades in relevant.items()}
    assert got["stage"].to_list() == list(funnel.STAGES)
    assert got["users"].to_list() == [len(relevant)] * 4
    if not relevant:
        assert got["value"].null_count() == 4
        return
    expected = [
        math.fsum(value_of(label, orders[u][stage], relevant[u]) for u in relevant) / len(relevant)
        for stage in range(4)
    ]
    assert got["value"].to_list() == pytest.approx(expected, abs=1e-12)
    assert all(gap >= -1e-12 for gap in got["gap"].drop_nulls())
    gaps = [after - before for before, after in itertools.pairwise(expected)]
    assert got["gap"].to_list() == [*(pytest.approx(gap, abs=1e-12) for gap in gaps), None]


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"users": "judged"},
        {"users": "all", "undefined": 0.0},
        {"users": "all", "relevant_at": 2},
        {"depth": 5},
        {"unjudged": "drop"},
        {"weights": "weight"},
        {"preset": "rectools"},
    ],
    ids=str,
)
@pytest.mark.parametrize("label", ["ndcg@3", "f1@3", "precision(divide_by=returned)@3", "gmap"])
def test_it_equals_evaluate_of_runs_made_by_hand(label, options):
    lists, judged = drawn(1)
    truth = truth_of(judged)
    if "weights" in options:
        truth = truth.with_columns(weight=pl.col("user") % 4)
    if options.get("unjudged") == "drop":
        lists = {
            u: [i for i in items if judged.get(u, {}).get(i, -1) >= 0] for u, items in lists.items()
        }
    if "depth" in options:
        lists = {u: items[: options["depth"]] for u, items in lists.items()}
    got = rf.stats.funnel(run_of(drawn(1)[0]), label, truth=truth, **options)
    for place, stage in enumerate(funnel.STAGES):
        k = 0 if label == "gmap" else K
        made = {u: orders_of(items, judged.get(u, {}), k)[place] for u, items in lists.items()}
        if stage == "truth":
            made |= {u: orders_of([], grades)[3] for u, grades in judged.items()}
            made = {u: items or lists.get(u, []) for u, items in made.items()}
        expected = rf.evaluate(run_of(made), label, truth=truth, count_users=True, **options)
        assert got["value"][place] == pytest.approx(expected[label].item(), abs=1e-12), stage


def test_users_of_the_run_are_the_same_at_each_stage():
    lists, judged = drawn(2)
    some = {u: items for u, items in lists.items() if u < 9}
    run, truth = run_of(some), truth_of(judged)
    for users in ("both", "run"):
        got = rf.stats.funnel(run, "precision@3", truth=truth, users=users)
        kept = truth.filter(pl.col("user").is_in(list(some)))
        expected = rf.stats.funnel(run, "precision@3", truth=kept, users="judged")
        assert_frame_equal(got, expected)


def test_segments_and_systems_have_a_block_each():
    lists, judged = drawn(3)
    run, truth = run_of(lists), truth_of(judged).with_columns(odd=pl.col("user") % 2)
    runs = {"b": run, "a": run.filter(pl.col("rank") < 3)}
    got = rf.stats.funnel(runs, "ndcg@3", truth=truth, by="odd")
    assert got.columns == ["model", "odd", "metric", "stage", "value", "gap", "users"]
    blocks = []
    for (name, of_name), odd in ((pair, odd) for pair in runs.items() for odd in (0, 1)):
        own = truth.filter(pl.col("odd") == odd)
        block = rf.stats.funnel(
            of_name.join(own, on="user", how="semi"), "ndcg@3", truth=own.drop("odd")
        )
        blocks.append(
            block.select(pl.lit(name).alias("model"), pl.lit(odd, pl.Int64).alias("odd"), pl.all())
        )
    assert_frame_equal(got, pl.concat(blocks))
    assert_frame_equal(
        rf.stats.funnel(runs["b"].lazy(), "ndcg@3", truth=truth.lazy()).collect(),
        rf.stats.funnel(runs["b"], "ndcg@3", truth=truth),
    )


def test_scores_gaps_and_exclusions_give_the_lists_that_evaluate_has():
    lists, judged = drawn(4)
    run, truth = run_of(lists), truth_of(judged)
    expected = rf.stats.funnel(run, "ndcg@3", truth=truth)
    scored = run.select("user", "item", score=-pl.col("rank"))
    assert_frame_equal(rf.stats.funnel(scored, "ndcg@3", truth=truth), expected)
    judged_table = rf.judge(run, truth)
    assert_frame_equal(rf.stats.funnel(judged_table, "ndcg@3", users="truth"), expected)
    exclude = run.filter(pl.col("rank") == 2).select("user", "item")
    moved = run.join(exclude, on=["user", "item"], how="anti").rank.with_rank(close_gaps=True)
    assert_frame_equal(
        rf.stats.funnel(run, "ndcg@3", truth=truth, exclude=exclude),
        rf.stats.funnel(moved, "ndcg@3", truth=truth),
    )
    gaps = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [2, 4]})
    of_one = pl.DataFrame({"user": [1], "item": [8]})
    got = rf.stats.funnel(gaps, "mrr", truth=of_one)
    assert got["value"].to_list() == [1 / 4, 1 / 2, 1 / 2, 1]  # the ranks of a list stay


def test_the_candidates_have_the_ceiling_of_evaluate():
    lists, judged = drawn(8)
    run, truth = run_of(lists), truth_of(judged)
    got = rf.stats.funnel(run, "ndcg@3", truth=truth).row(2, named=True)
    ceiling = rf.evaluate(run, "ndcg@3", truth=truth, chance=True)["ndcg@3_ceiling"].item()
    assert (got["stage"], got["value"]) == ("candidates", pytest.approx(ceiling, abs=1e-12))


def test_a_metric_of_errors_falls():
    lists, judged = drawn(5)
    got = rf.stats.funnel(run_of(lists), "e(beta=1)@3", truth=truth_of(judged))
    assert all(gap <= 0 for gap in got["gap"].drop_nulls())


# ------------------------------------------------------------------ sources of candidates


def sources_of(seed):
    rng = random.Random(seed)
    names = ("bm25", "dense", "popular")
    return {name: {u: rng.sample(range(14), 5) for u in range(33)} for name in names}


@pytest.mark.parametrize("number", [1, 2, 3])
def test_each_source_against_plain_sets(number):
    lists, judged = drawn(6)
    sources = dict(list(sources_of(7).items())[:number])
    stages = {name: run_of(own).drop("rank") for name, own in sources.items()}
    got = rf.stats.funnel(run_of(lists), "ndcg@3", truth=truth_of(judged), stages=stages)
    positive = {u: {i for i, g in grades.items() if g > 0} for u, grades in judged.items()}
    positive = {u: items for u, items in positive.items() if items}

    def recall(names):
        found = {u: set().union(*(sources[name][u] for name in names)) for u in positive}
        return sum(len(found[u] & positive[u]) / len(positive[u]) for u in positive) / len(positive)

    every = recall(sources)
    assert got["stage"].to_list() == [*sources, "union", *funnel.STAGES]
    assert got["metric"].to_list() == ["recall"] * (number + 1) + ["ndcg@3"] * 4
    for row in got[:number].to_dicts():
        name = row["stage"]
        assert row["value"] == pytest.approx(recall([name]))
        assert row["gap"] == pytest.approx(every - recall([name]))
        assert row["alone"] == pytest.approx(every - recall([n for n in sources if n != name]))
        assert row["users"] == len(positive)
    union = got.row(number, named=True)
    assert (union["value"], union["gap"], union["alone"]) == (pytest.approx(every), None, None)
    more = {u: [i for own in sources.values() for i in own[u]] for u in judged}
    expected = [
        value_of("ndcg@3", orders_of(lists.get(u, []), judged[u], more=more[u])[2], judged[u])
        for u in positive
    ]
    values = dict(got.select("stage", "value").rows())
    assert values["candidates"] == pytest.approx(sum(expected) / len(expected))
    alone = rf.stats.funnel(run_of(lists), "ndcg@3", truth=truth_of(judged))
    same = got.filter(pl.col("stage").is_in(["list", "top", "truth"])).drop("alone", "gap")
    assert_frame_equal(same, alone.filter(pl.col("stage") != "candidates").drop("gap"))


def test_sources_without_excluded_missing_and_foreign_rows():
    run = pl.DataFrame({"user": [1], "item": ["a"], "rank": [1], "day": ["m"]})
    truth = pl.DataFrame({"user": [1, 1, 1, 1], "item": [*"abcd"]})
    source = pl.DataFrame(
        {"user": [1, 1, 1, 2, 1, 1], "item": [*"bcdbbx"], "score": [3.0, 2, None, 3, 3, 1]}
    )
    got = rf.stats.funnel(
        run,
        "recall@2",
        truth=truth,
        by="day",
        stages={"s": source, "t": source.with_columns(day=pl.lit("n"))},
        exclude=pl.DataFrame({"user": [1], "item": ["c"]}),
        depth=1,
    )
    values = {row["stage"]: row["value"] for row in got.to_dicts()}
    assert values["s"] == values["union"] == 1 / 4  # b; c is excluded, and d has no score
    assert values["t"] == 0  # of another day


def test_sources_add_nothing_to_the_top_of_a_metric_without_a_cut_off():
    run = pl.DataFrame({"user": [1] * 5, "item": [*"abcde"], "rank": [1, 2, 3, 4, 5]})
    truth = pl.DataFrame({"user": [1] * 3, "item": [*"bdz"]})
    source = pl.DataFrame({"user": [1], "item": ["z"]})
    got = rf.stats.funnel(run, "map", truth=truth, stages={"s": source})
    assert got["value"].to_list() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 2 / 3, 1, 1])
    without = rf.stats.funnel(run, "map", truth=truth)
    assert without["value"].to_list() == pytest.approx([1 / 3, 2 / 3, 2 / 3, 1])


def test_a_source_that_returned_nothing_has_a_recall_of_0():
    for source in (RUN.clear(), RUN.with_columns(user=2), RUN.with_columns(rank=None)):
        got = rf.stats.funnel(RUN, "rr", truth=TRUTH, stages={"s": source, "t": RUN})
        assert got["value"].to_list() == [0, 1, 1, 0.5, 1, 1, 1]
        assert got["alone"].to_list()[:2] == [0, 1]


# ------------------------------------------------------------------ what it refuses

RUN = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2]})
TRUTH = pl.DataFrame({"user": [1], "item": [8]})


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: rf.stats.funnel(RUN, "ndcg@1,2", truth=TRUTH),
            ValueError,
            "funnel takes one metric",
        ),
        (
            lambda: rf.stats.funnel(RUN, "coverage@2", truth=TRUTH),
            ValueError,
            "metric 'coverage@2' reads",
        ),
        (
            lambda: rf.stats.funnel(RUN, "judged@2", truth=TRUTH),
            ValueError,
            "reads 'judged': the stages",
        ),
        (
            lambda: rf.stats.funnel(
                RUN, "precision(divide_by=returned)@2", truth=TRUTH, stages={"a": RUN}
            ),
            ValueError,
            "reads 'retrieved",
        ),
        (lambda: rf.stats.funnel(RUN, "rr"), rf.RankingDataError, "relevance"),
        (
            lambda: rf.stats.funnel(RUN, "rr", truth=TRUTH, stages=RUN),
            TypeError,
            "stages must be a dict of runs",
        ),
        (
            lambda: rf.stats.funnel(RUN, "rr", truth=TRUTH, stages={"list": RUN}),
            ValueError,
            "another name",
        ),
        (
            lambda: rf.stats.funnel(RUN, "rr", truth=TRUTH, stages={"a": RUN.drop("item")}),
            rf.RankingDataError,
            "no column 'item' for item",
        ),
        (
            lambda: rf.stats.funnel(RUN, "rr", truth=TRUTH, stages={}),
            TypeError,
            "not an empty dict",
        ),
        (
            lambda: rf.stats.funnel(
                RUN.select("user", "rank", relevance=1), "rr", stages={"a": RUN}
            ),
            rf.RankingDataError,
            "no column 'item' for item, which stages= reads",
        ),
        (
            lambda: rf.stats.funnel(
                rf.with_rank(RUN.select("user", "item", score=1.0), ties="expected"),
                "rr",
                truth=TRUTH,
            ),
            rf.RankingDataError,
            "blocks of ties",
        ),
        (
            lambda: rf.stats.funnel(RUN.with_columns(stage=1), "rr", truth=TRUTH, by="stage"),
            rf.RankingDataError,
            "column 'stage': funnel adds a column with this name: rename yours",
        ),
        (
            lambda: rf.stats.funnel(RUN, "rr", truth=TRUTH, unjudged="bounds"),
            ValueError,
            "unjudged='bounds'",
        ),
    ],
)
def test_what_has_no_funnel(call, error, text):
    with pytest.raises(error, match=text.replace("(", r"\(")):
        call()
