"""Warnings on what breaks no rule: missing and constant scores, and ids that are floats."""

import warnings

import polars as pl
import pytest

import rankframe as rf

SCORES = [0.9, 0.8, 0.7] * 10
RUN = pl.DataFrame(
    {
        "model": ["old"] * 15 + ["new"] * 15,
        "user": [n // 3 % 5 for n in range(30)],
        "item": [*"abc"] * 10,
        "score": SCORES,
    }
)
TRUTH = pl.DataFrame({"user": range(5), "item": [*"abcab"]})
NEW = pl.col("model") == "new"


def said_by(call):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught if one.category is rf.errors.RankingWarning]


def checked(run, truth=TRUTH):
    return said_by(lambda: rf.check(run, truth=truth, by="model"))


def scored(score):
    return RUN.with_columns(score=score)


@pytest.mark.parametrize(
    ("run", "says"),
    [
        (RUN, None),
        (
            scored(0.5),
            "column 'score': 100.0% of the lists of two or more items of model='new' (and of 1 ",
        ),
        (
            scored(pl.when(NEW).then(1).otherwise("score")),
            "100.0% of the lists of two or more items of model='new' have",
        ),
        (scored(pl.when(NEW, user=2).then(1).otherwise("score")), "20.0% of the lists"),
        (
            scored(pl.when(NEW, user=2).then(float("nan")).otherwise("score")),
            "of 30 scores, 3 NaN: their items count as not retrieved. Example: model='new', user=2",
        ),
        (
            scored(pl.when(user=4, item=pl.lit("a")).then(None).otherwise("score")),
            "30 scores, 2 null",
        ),
        (RUN.group_by("model", "user").first().with_columns(score=0.5), None),  # lists of one item
        (scored(1).with_columns(rank=pl.int_range(1, 4).over("model", "user")), None),
    ],
)
@pytest.mark.parametrize("lazy", [False, True])
def test_check_warns_of_scores(run, says, lazy):
    said = (
        said_by(lambda: rf.check(run.lazy(), truth=TRUTH, by="model").collect())
        if lazy
        else checked(run)
    )
    assert len(said) == (says is not None), said
    assert says is None or says in said[0]


def test_lists_of_one_score_are_counted_by_health_alone_if_few():
    many = pl.concat(RUN.with_columns(pl.col("user") + 5 * n) for n in range(5))
    run = many.with_columns(score=pl.when(NEW, user=2).then(1).otherwise("score"))
    assert checked(run) == []
    counts = rf.health(run, truth=TRUTH, by="model").filter(what="constant_scores")
    assert counts["count"].to_list() == [1, 0]
    assert counts["share"].to_list() == [1 / 25, 0]


@pytest.mark.parametrize("verb", [rf.evaluate, rf.per_user, rf.summarize])
@pytest.mark.parametrize("lazy", [False, True])
def test_verbs_warn_of_one_score_in_the_whole_table(verb, lazy):
    run = scored(0.5).lazy() if lazy else scored(0.5)

    def call():
        result = verb(run, "rr", "ndcg@2", truth=TRUTH, by="model")
        return result.collect() if lazy else result

    (said,) = said_by(call)
    assert "have the same score for all items" in said
    few = scored(0.5).head(6)
    assert said_by(lambda: verb(few, "rr", truth=TRUTH, by="model")) == []  # may be chance


def test_null_score_in_a_judged_table_is_an_item_that_was_missed():
    judged = RUN.head(15).with_columns(relevance=1, score=pl.when(item=pl.lit("a")).then("score"))
    assert said_by(lambda: rf.check(judged, by="model")) == []
    nan = judged.with_columns(pl.col("score").fill_null(float("nan")))
    assert "10 NaN" in said_by(lambda: rf.check(nan, by="model"))[0]


def test_check_warns_of_ids_that_are_floats_in_all_tables():
    floats = pl.col("user").cast(pl.Float64)
    (said,) = checked(RUN.with_columns(floats), TRUTH.with_columns(floats))
    assert said.startswith("column 'user': the ids of users are floats, and above 2^53 two ids may")
