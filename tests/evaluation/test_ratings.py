"""Ratings: what is relevant at ``relevant_at``, and how many users each mean is made of."""

import random
import re
import warnings

import polars as pl
import pytest
from two_models import assert_equal

import rankframe as rf
from rankframe._evaluation.evaluation import plan_means
from rankframe._request.keywords import Settings
from rankframe._request.question import ask
from rankframe.parts._numbers import added, means_of_plan, numbers_of

FROM_2 = {"relevant_at": 2}


def make_tables(low=(1,), all_grades=(-1, 0, 0, 1, 1, 2, 3)):
    """Forty users; some of them give low grades alone."""
    rng = random.Random(11)
    run, truth = [], []
    for user in range(40):
        for model in "ab":
            if user % 8 and not (model == "b" and user % 7 == 0):
                items = rng.sample(range(30), rng.randint(1, 15))
                run += [(model, user, item, rank) for rank, item in enumerate(items, start=1)]
        grades = low if user % 5 == 0 else all_grades
        for item in rng.sample(range(30), rng.randint(1, 14)):
            truth.append((user, item, rng.choice(grades)))
    return (
        pl.DataFrame(run, schema=["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    )


RUN, TRUTH = make_tables()
A = RUN.filter(model="a").drop("model")
HAVE_2 = TRUTH.filter(pl.col("relevance") >= 2).select("user").unique()


def test_users_is_the_number_behind_the_mean():
    run = pl.DataFrame({"user": [1, 2, 3, 4], "item": "a", "rank": 1})
    rated = pl.DataFrame({"user": [1, 2, 3, 4], "item": "a", "stars": [5, 5, 1, 2]})
    options = {"truth": rated, "relevance": "stars", "relevant_at": 4}
    got = rf.evaluate(run, "precision@1", "ndcg@1", **options, count_users=True)
    assert got.row(0) == (2, 1.0, 2, 1.0, 2)
    assert rf.evaluate(run, "precision@1", users="judged", **options).row(0) == (4, 1.0)
    assert rf.evaluate(run, "precision(rel=4)@1", truth=rated, relevance="stars").row(0) == (4, 1.0)
    small = rf.parts.sums(run, "precision@1", "gmap", **options)
    want = rf.evaluate(run, "precision@1", "gmap", **options)
    assert_equal(rf.parts.combine(small), want)


# ------------------------------------------------------------------ how many users


def test_users_are_counted_where_they_differ():
    labels = ["precision@5", "dcg@5", "ndcg@5", "auc", "num_hits"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", count_users=True, **FROM_2)
    names = [name for label in labels for name in (label, f"{label}_users")]
    assert got.columns == ["model", "users", *names]
    assert set(got.select(pl.col("^.*_users$")).dtypes) == {pl.Int64()}
    plain = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", **FROM_2)
    assert_equal(got.select(plain.columns), plain)
    values = RUN.rank.per_user(*labels, truth=TRUTH, by="model", **FROM_2)
    for label in labels:
        want = values.group_by("model").agg(pl.col(label).count()).sort("model")[label]
        assert got[f"{label}_users"].to_list() == want.to_list()
    assert got["ndcg@5_users"].to_list() == got["users"].to_list() == [HAVE_2.height] * 2
    assert (got["dcg@5_users"] == got["ndcg@5_users"]).all()


def test_mean_over_fewer_users_is_warned_of_once():
    labels = ["mean_hit_rank", "precision@5", "num_hits", "auc"]
    counted = RUN.rank.evaluate(*labels, truth=TRUTH, count_users=True)
    kept_plan = [{"undefined": 0}, {"count_users": True}, {}, {}]
    for options in kept_plan:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            got = RUN.rank.evaluate(*labels, truth=TRUTH, **options)
        if options:
            assert caught == []
            continue
        assert_equal(got, counted.select(got.columns))
        fewest = {name: counted.sort(f"{name}_users").row(0, named=True) for name in labels}
        first, second = (
            f"'{name}' is over {row[f'{name}_users']} of {row['users']} users "
            f"(model={row['model']!r})"
            for name, row in fewest.items()
            if name in ("mean_hit_rank", "auc")
        )
        assert [(each.filename, str(each.message)) for each in caught] == [
            (
                __file__,
                f"means leave out users without a value: {first}, {second}: count_users=True adds "
                "these numbers, and undefined=0 counts the others as 0",
            )
        ]


def test_ratings_without_a_warning():
    run = pl.DataFrame({"user": [1], "item": [8], "rank": [1]})
    truth = pl.DataFrame({"user": [1, 2], "item": [7, 8]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        A.lazy().rank.evaluate("mean_hit_rank", truth=TRUTH).collect()
        A.rank.summarize("mean_hit_rank", truth=TRUTH)
        no_mean = run.rank.evaluate("mean_hit_rank", truth=truth)
    assert no_mean["mean_hit_rank"].item() is None


def test_names_of_counts_are_free_without_count_users():
    ap_users = pl.col("relevance").max().alias("mean_hit_rank_users")
    text = "over 1 of 2 users (day=1): count"
    run = pl.DataFrame({"user": [1, 2], "item": [7, 8], "rank": [1, 1], "day": [1, 1]})
    truth = pl.DataFrame({"user": [1, 2], "item": [7, 9]})
    with pytest.warns(rf.errors.RankingWarning, match=re.escape(text)):
        got = run.rank.evaluate("mean_hit_rank", ap_users, truth=truth, by="day")
    assert got.columns == ["day", "users", "mean_hit_rank", "mean_hit_rank_users"]


def test_they_are_those_of_summarize():
    labels = ["ndcg@5", "auc", "gmap"]
    got = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", count_users=True, relevant_at=2)
    summary = RUN.rank.summarize(*labels, truth=TRUTH, by="model", relevant_at=2)
    for label in labels:
        assert got[f"{label}_users"].to_list() == summary.filter(metric=label)["users"].to_list()


def test_gains_of_lower_grades_go_with_their_rows():
    liked = TRUTH.filter(pl.col("relevance") >= 2)
    mapped = "ndcg(gain=1:0;2:2;3:3)@5"
    got = A.rank.evaluate("ndcg@5", truth=liked)
    assert got.row(0) == pytest.approx(A.rank.evaluate(mapped, truth=TRUTH, **FROM_2).row(0))
    assert got["users"].item() == HAVE_2.height


def test_ratings_without_groups_lazily_and_with_totals():
    labels = ["ndcg@5", "auc"]
    one = A.rank.evaluate(*labels, truth=TRUTH, count_users=True)
    lazy = A.lazy().rank.evaluate(*labels, truth=TRUTH.lazy(), count_users=True)
    assert lazy.collect_schema() == one.schema
    assert_equal(lazy.collect(), one)
    values = A.rank.per_user(*labels, truth=TRUTH)
    assert one["auc_users"].item() == values["auc"].count() < one["users"].item()
    total = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", total=True, count_users=True)
    assert total["auc_users"].to_list()[2] == sum(total["auc_users"].to_list()[:2])


def test_filled_values_count_and_a_group_without_users_has_0():
    filled = A.rank.evaluate("auc", truth=TRUTH, undefined=0.0, count_users=True)
    assert filled["auc_users"].item() == filled["users"].item()
    run = pl.DataFrame({"day": [1, 2], "user": [1, 9], "item": [1, 1], "rank": [1, 1]})
    truth = pl.DataFrame({"day": [1], "user": [1], "item": [1]})
    got = run.rank.evaluate("ap", "ndcg", truth=truth, by="day", count_users=True)
    assert got.rows() == [(1, 1, 1.0, 1, 1.0, 1), (2, 0, None, 0, None, 0)]


def test_beside_bounds_and_numbers_of_all_lists():
    got = A.rank.evaluate("precision@5", truth=TRUTH, unjudged="bounds", count_users=True)
    names = ["precision@5", "precision@5_users", "precision@5_low", "precision@5_high"]
    assert got.columns == ["users", *names]
    items = pl.DataFrame({"item": range(30)})
    both = A.rank.evaluate("auc", "coverage@5", truth=TRUTH, items=items, count_users=True)
    assert both.columns == ["users", "auc", "auc_users", "coverage@5"]
    assert both["auc_users"].item() < both["users"].item()


def test_ratings_refuse_bad_calls(refused):
    refused(A.rank.evaluate, "ap", truth=TRUTH, count_users=1)
    own = pl.col("relevance").max().alias("ap_users")
    refused(A.rank.evaluate, "ap", own, truth=TRUTH, count_users=True)
    refused(A.rank.summarize, "ap", truth=TRUTH, count_users=True)


@pytest.mark.parametrize("total", [False, True])
def test_parts_add_up(total):
    """As Spark's workers and its driver do it."""
    labels = ["ndcg@5", "auc", "num_hits"]
    options = {"relevant_at": 2, "count_users": True}
    settings = Settings(**options)
    question = ask(RUN, labels, TRUTH, "model", settings)
    parts = [
        numbers_of(
            question,
            RUN.filter(pl.col("user") % 2 == half).lazy(),
            TRUTH.filter(pl.col("user") % 2 == half).lazy(),
            None,
        ).collect()
        for half in (0, 1)
    ]
    plan = plan_means(question)
    got = means_of_plan(added(pl.concat(parts)), plan, total=total)
    want = RUN.rank.evaluate(*labels, truth=TRUTH, by="model", total=total, **options)
    assert_equal(got, want)


def test_totals_are_last_of_lazy_tables():
    got = RUN.lazy().rank.evaluate("rr", truth=TRUTH.lazy(), by="model", total=True).collect()
    assert got["model"].to_list() == [*sorted(RUN["model"].unique()), None]
