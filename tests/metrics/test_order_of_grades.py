"""Pairs of grades, fallout, MCC and their kin: by hand, by brute force, and against other tools."""

import itertools
import random

import polars as pl
import pytest
from scipy import stats
from two_models import assert_equal

import rankframe as rf


def make_tables(grade, users=25, items=40, seed=0):
    """Lists and judgments of random length; ``grade(rng)`` draws one."""
    rng = random.Random(seed)
    run, truth = [], []
    for user in range(users):
        listed = rng.sample(range(items), rng.randint(1, 25))
        run += [(user, item, rank) for rank, item in enumerate(listed, start=1)]
        truth += [(user, item, grade(rng)) for item in rng.sample(range(items), rng.randint(1, 35))]
    return (
        pl.DataFrame(run, schema=["user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row", strict=False),
    )


def judged_lists(run, truth):
    """Of each user the (rank, grade) of the judged items of the list."""
    both = run.join(truth.filter(pl.col("relevance") >= 0), on=["user", "item"])
    pairs = both.group_by("user").agg("rank", "relevance")
    return {
        user: list(zip(ranks, grades, strict=True)) for user, ranks, grades in pairs.iter_rows()
    }


GRADES = {
    "two": lambda rng: rng.choice([0, 1]),
    "some": lambda rng: rng.choice([-1, 0, 0, 1, 2, 3, 4, 5]),
    "any": lambda rng: round(rng.random() * 100, 3),
    "halves": lambda rng: rng.choice([0.0, 0.5, 1.0, 1.5, 4.5, 5.0]),
    "one": lambda rng: 3,
}


@pytest.mark.parametrize("grade", GRADES)
def test_pairs_are_counted_for_any_grades(grade):
    run, truth = make_tables(GRADES[grade])
    got = run.rank.per_user("concordance", truth=truth, users="judged")
    lists = judged_lists(run, truth)
    for user, value in got.iter_rows():
        pairs = itertools.combinations(sorted(lists.get(user, [])), 2)
        in_order = [above > below for (_, above), (_, below) in pairs if above != below]
        if not in_order:
            assert value is None
        else:
            assert value == pytest.approx(sum(in_order) / len(in_order), abs=1e-15)
    assert (
        got["concordance"].n_unique() == 1 if grade == "one" else got["concordance"].n_unique() > 5
    )


@pytest.mark.parametrize("grade", GRADES)
def test_kendall_tau_b_is_that_of_scipy(grade):
    run, truth = make_tables(GRADES[grade], seed=1)
    got = run.rank.per_user("kendall_tau_b", truth=truth, users="judged")
    lists = judged_lists(run, truth)
    compared = 0
    for user, value in got.iter_rows():
        ranks, grades = zip(*lists.get(user, [(1, 0)]), strict=True)
        if len({*grades}) == 1:
            assert value is None
            continue
        expected = stats.kendalltau([-rank for rank in ranks], grades, variant="b").statistic
        assert value == pytest.approx(expected, abs=1e-12)
        compared += 1
    assert compared > 10 or grade == "one"


def test_pairs_of_many_users_and_models_stay_apart():
    run, truth = make_tables(GRADES["some"])
    other, _ = make_tables(GRADES["some"], seed=3)
    both = pl.concat([run.with_columns(model=pl.lit("a")), other.with_columns(model=pl.lit("b"))])
    labels = ["concordance", "kendall_tau_b"]
    got = both.sample(fraction=1, shuffle=True, seed=1).rank.per_user(
        *labels, truth=truth, by="model"
    )
    for model, frame in (("a", run), ("b", other)):
        alone = frame.rank.per_user(*labels, truth=truth)
        assert_equal(got.filter(model=model).drop("model"), alone)


def test_pairs_in_one_block_count_one_half():
    tied = pl.DataFrame(
        {"user": 1, "item": [1, 2, 3, 4], "rank": [1, 2, 2, 2], "tied": [1, 3, 3, 3]}
    )
    truth = pl.DataFrame({"user": 1, "item": [1, 2, 3, 4], "relevance": [1, 2, 0, 0]})
    # (1, 3) and (1, 4) are in order, (1, 2) is not; (2, 3) and (2, 4) are in one block
    got = tied.rank.per_user("concordance", "kendall_tau_b", truth=truth)
    assert got["concordance"].item() == pytest.approx((2 + 2 / 2) / 5)
    assert got["kendall_tau_b"].item() == pytest.approx((2 * 3 - 5) / (6 * 5) ** 0.5)


def test_truth_that_ranks_itself_agrees_and_backwards_does_not():
    _, truth = make_tables(GRADES["any"])
    order = truth.with_columns(score=pl.col("relevance"))
    labels = ["concordance", "kendall_tau_b"]
    best = order.drop("relevance").rank.per_user(*labels, truth=truth)
    worst = order.select("user", "item", score=-pl.col("score")).rank.per_user(*labels, truth=truth)
    assert set(best["kendall_tau_b"].drop_nulls()) == {1.0}
    assert set(worst["kendall_tau_b"].drop_nulls()) == {-1.0}
    assert set(best["concordance"].drop_nulls()) == {1.0}
    assert set(worst["concordance"].drop_nulls()) == {0.0}


def test_grades_of_two_kinds_make_auc():
    run, truth = make_tables(GRADES["two"])
    got = run.rank.per_user("concordance", "auc", truth=truth, unjudged="drop")
    assert got["concordance"].drop_nulls().len() > 10
    assert (got["concordance"] - got["auc"]).abs().max() < 1e-12


def test_fallout_and_mcc_by_hand():
    run = pl.DataFrame({"user": 1, "item": list("abcde"), "rank": range(1, 6)})
    truth = rf.from_grades({1: {"a": 1, "b": 0, "d": 1, "x": 0, "y": 1, "z": -1}})
    labels = ["fallout@3", "fallout", "fallout(collection=13)@3", "mcc(collection=13)@3"]
    got = run.rank.per_user(*labels, "mean_hit_rank", "mean_hit_rank@3", truth=truth).row(0)[1:]
    # b of b and x; b and c of ten; TP 1, FP 2, FN 2, TN 8
    mcc = (1 * 8 - 2 * 2) / (3 * 3 * 10 * 10) ** 0.5
    assert got == pytest.approx((1 / 2, 1 / 2, 2 / 10, mcc, 2.5, 1.0))


@pytest.mark.parametrize("label", ["fallout(collection=5)", "mcc(collection=5)@1"])
def test_collection_that_is_too_small_is_an_error(label, refused):
    run = pl.DataFrame({"user": 1, "item": list("abcd"), "rank": range(1, 5)})
    truth = pl.DataFrame({"user": 1, "item": ["a", "x", "y"]})
    refused(run.rank.evaluate, label, truth=truth)
    assert run.rank.evaluate(label.replace("5", "6"), truth=truth).item(0, 1) is not None


def test_measures_of_order_are_null_where_undefined():
    """User 1 has no hit, user 2 all items, user 3 no list."""
    run = pl.DataFrame({"user": [1, 2, 2], "item": ["a", "a", "b"], "rank": [1, 1, 2]})
    truth = rf.from_grades({1: {"c": 1}, 2: {"a": 1, "b": 1}, 3: {"a": 1}})
    got = run.rank.per_user(
        *("concordance", "kendall_tau_b", "fallout", "fallout(collection=2)@1"),
        *("mcc(collection=2)@1", "mean_hit_rank", "lrap"),
        truth=truth,
    )
    assert got.drop("user").rows() == [
        (None, None, None, 1.0, -1.0, None, None),
        (None, None, None, None, None, 1.5, 1.0),
        (None, None, None, 0.0, 0.0, None, None),
    ]


def test_rank_shared_by_a_hit_and_a_miss_has_no_lrap():
    run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": 1})
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    for rows in (run, run.reverse(), run.lazy()):
        with pytest.raises(rf.RankingDataError, match="two items of one user have the same rank"):
            rf.evaluate(rows, "lrap", truth=truth).lazy().collect()


@pytest.mark.filterwarnings("ignore:In Polars 2.0, the default:DeprecationWarning")
def test_lrap_and_mcc_are_those_of_scikit_learn():
    """scikit-learn 1.9.1, of one row for each list; a row without a hit counts as 1."""
    scores = [[0.9, 0.8, 0.7, 0.6, 0.5, 0.4], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], [3, 1, 2, 6, 5, 4]]
    liked = [[0, 1, 0, 1, 1, 0], [1, 0, 0, 0, 0, 1], [0, 0, 0, 0, 0, 0]]
    frame = pl.DataFrame({"user": range(3), "item": [[*range(6)]] * 3, "score": scores})
    run = frame.explode("item", "score").rank.with_rank()
    truth = pl.DataFrame({"user": range(3), "item": [[*range(6)]] * 3, "relevance": liked})
    truth = truth.explode("item", "relevance")
    got = run.rank.evaluate("lrap", truth=truth, users="run", undefined=1.0)
    assert got["lrap"].item() == pytest.approx(LRAP, abs=1e-15)
    matthews = run.rank.per_user("mcc(collection=6)@3", truth=truth, users="run", undefined=0.0)
    assert matthews.to_series(1).to_list() == pytest.approx(MATTHEWS, abs=1e-15)


LRAP = 0.7333333333333334  # label_ranking_average_precision_score(liked, scores)
MATTHEWS = [-0.3333333333333333, 0.0, 0.0]  # matthews_corrcoef(row, first three) of each row
