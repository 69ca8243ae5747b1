"""Popular, repeated and random items, against plain Python."""

import random
from collections import Counter

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf

HISTORY = pl.DataFrame({"user": [1, 2, 2, 2, 3], "item": ["a", "a", "b", "b", "c"]})
SYSTEMS = ("popular", "repeat", "random")


def make_history(rng, users=30, items=25, rows=300):
    """Interactions that come twice and more, of items that are not equally popular."""
    rows = [
        (rng.randrange(users), min(rng.randrange(items), rng.randrange(items))) for _ in range(rows)
    ]
    return pl.DataFrame(rows, schema=["user", "item"], orient="row")


def brute_force(history, users, k, out=()):
    """The lists of popular and of repeated items by user."""
    rows, out = history.rows(), set(out)
    popular = Counter(item for _, item in set(rows))
    order = sorted(popular, key=lambda item: (popular[item], item), reverse=True)
    lists = {}
    for user in users:
        own = Counter(item for u, item in rows if u == user)
        again = sorted(own, key=lambda item: (own[item], popular[item], item), reverse=True)
        for system, items in (("popular", order), ("repeat", again)):
            lists[system, user] = [item for item in items if (user, item) not in out][:k]
    return {key: items for key, items in lists.items() if items}


def lists_of(run):
    """The items by system and user, of ranks from 1."""
    lists = {}
    for system, user, item, rank in run.sort("model", "user", "rank").rows():
        lists.setdefault((system, user), []).append(item)
        assert rank == len(lists[system, user])
    return lists


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("k", [1, 4, 40])
def test_lists_equal_plain_python(k, text):
    rng = random.Random(k)
    history = make_history(rng)
    users = [*range(34)]
    pairs = [(user, item) for user in users for item in range(25) if rng.random() < 0.4]
    pairs += [(7, item) for item in range(25)]  # all items: no list
    out = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    if text:
        history, out = history.cast(pl.String), out.cast(pl.String)
        users, pairs = [*map(str, users)], [(str(user), str(item)) for user, item in pairs]
    every = {*history["item"]}
    for options, excluded in (({}, set()), ({"exclude": out}, set(pairs))):
        run = rf.runs.baselines(history, users=users, k=k, **options)
        assert run.columns == ["model", "user", "item", "rank"]
        lists = lists_of(run)
        drawn = {user: lists.pop(("random", user), []) for user in users}
        assert lists == brute_force(history, users, k, excluded)
        for user, items in drawn.items():
            left = {item for item in every if (user, item) not in excluded}
            assert len(items) == len({*items}) == min(k, len(left))
            assert {*items} <= left


def test_random_items_do_not_depend_on_the_order_of_rows_or_on_other_users():
    history = make_history(random.Random(1), items=200, rows=2_000)
    for k in (3, 60):
        run = rf.runs.baselines(history, users=history, k=k).filter(model="random")
        shuffled = rf.runs.baselines(history.reverse(), users=[5, 3, 5], k=k)
        same = run.filter(pl.col("user").is_in([3, 5]))
        assert_frame_equal(shuffled.filter(model="random"), same)
        others = rf.runs.baselines(history, users=history, k=k, seed=1).filter(model="random")
        assert not others.equals(run)
        assert rf.runs.baselines(history, users=history, k=k).filter(model="random").equals(run)


@pytest.mark.parametrize("number", [12, 60])  # few are shuffled, many are drawn
def test_random_items_are_uniform(number):
    users = 12_000
    history = pl.DataFrame({"user": [0] * number, "item": range(number)})
    out = pl.DataFrame({"user": range(users), "item": 0})
    run = rf.runs.baselines(history, users=range(users), k=4, exclude=out, seed=3)
    run = run.filter(model="random")
    places = run.pivot("rank", index="user", values="item")
    assert not places.drop("user").null_count().sum_horizontal().item()
    left = number - 1
    for names, cells in ((["1"], left), (["4"], left), (["1", "2"], left * (left - 1))):
        counts = places.group_by(names).len()["len"]
        expected = users / cells
        square = ((counts - expected) ** 2 / expected).sum() + (cells - len(counts)) * expected
        assert abs(square - (cells - 1)) < 4.5 * (2 * (cells - 1)) ** 0.5


def test_random_lists_are_at_chance():
    """The mean of their precision is the share of relevant items, within its interval."""
    rng = random.Random(4)
    history = pl.DataFrame({"user": 0, "item": range(50)})
    truth = [(user, item) for user in range(3_000) for item in rng.sample(range(50), 5)]
    truth = pl.DataFrame(truth, schema=["user", "item"], orient="row")
    run = rf.runs.baselines(history, users=truth, k=10).filter(model="random")
    row = rf.summarize(run, "precision@10", truth=truth, confidence=0.999).row(0, named=True)
    assert row["ci_low"] < 0.1 < row["ci_high"]


def test_ways_in_give_the_same_lists():
    expected = rf.runs.baselines(HISTORY, users=[1, 4], k=2, exclude=HISTORY)
    truth = pl.DataFrame({"user": [4, 1, 4], "item": ["x", "y", "z"]})
    narrow = truth.cast({"user": pl.Int16})
    for users in (truth, truth["user"], {4: ["x"], 1: ["y"]}, narrow):
        got = rf.runs.baselines(HISTORY, users=users, k=2, exclude=HISTORY)
        assert_frame_equal(got, expected)
    pandas = HISTORY.to_pandas()
    got = rf.runs.baselines(pandas, users=truth.to_pandas()["user"], k=2, exclude=pandas)
    assert_frame_equal(pl.from_pandas(got), expected)
    assert_frame_equal(HISTORY.rank.runs.baselines(users=[1, 4], k=2, exclude=HISTORY), expected)
    other = {"user": "uid", "item": "sku"}
    got = rf.runs.baselines(
        HISTORY.rename(other),
        users=truth.rename(other),
        k=2,
        exclude=HISTORY.rename(other),
        **other,
    )
    assert_frame_equal(got.rename({"uid": "user", "sku": "item"}), expected)
    found = {"user": "user_id", "item": "item_id"}
    got = rf.runs.baselines(HISTORY.rename(found), users=[1, 4], k=2, exclude=HISTORY.rename(found))
    assert got.columns == ["model", "user_id", "item_id", "rank"]


def test_a_user_of_several_columns_and_categories():
    history = HISTORY.with_columns(day=pl.lit(7))
    got = rf.runs.baselines(history, users=history, k=1, user=["user", "day"])
    assert got.columns == ["model", "user", "day", "item", "rank"]
    plain = rf.runs.baselines(HISTORY, users=HISTORY, k=1).filter(pl.col("model") != "random")
    assert_frame_equal(got.filter(pl.col("model") != "random").drop("day"), plain)
    levels = HISTORY.with_columns(pl.col("item").cast(pl.Enum(["c", "b", "a"])))
    levels = rf.runs.baselines(levels, users=HISTORY, k=3)
    text = rf.runs.baselines(HISTORY, users=HISTORY, k=3)
    assert_frame_equal(levels.with_columns(pl.col("item").cast(pl.String)), text)


def test_verbs_take_the_run():
    truth = pl.DataFrame({"user": [1, 2, 3], "item": ["b", "a", "b"]})
    floors = rf.runs.baselines(HISTORY, users=truth, k=2)
    means = rf.evaluate(floors, "recall@2", truth=truth)
    assert means["model"].to_list() == ["popular", "random", "repeat"]
    assert means["users"].to_list() == [3, 3, 3]
    new = truth.with_columns(model=pl.lit("new"), rank=1)
    both = pl.concat([new, floors], how="diagonal_relaxed")
    compared = rf.compare(both, "recall@2", truth=truth, baseline="popular")
    assert {*compared["model"]} == {"new", "random", "repeat"}
    alone = rf.runs.baselines(HISTORY, users=truth, k=2, exclude=HISTORY)
    assert {*alone["model"]} == {"popular", "random"}


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        ({"users": "user"}, TypeError, "users must be a frame with the column 'user', a Series or"),
        ({"users": 3}, TypeError, "a list of users, not int"),
        ({"users": None}, TypeError, "a list of users, not NoneType"),
        ({"users": [1, "a"]}, TypeError, "users: int and str: ids need one type"),
        ({"users": []}, rf.RankingDataError, "users=: it is empty"),
        (
            {"users": [1, None]},
            rf.RankingDataError,
            "users=, column 'user': null user: drop the row",
        ),
        ({"users": ["1"]}, rf.RankingDataError, "column 'user': it is Int64 in the history= and"),
        ({"users": HISTORY.drop("user")}, rf.RankingDataError, "users=: no column 'user' for user"),
        ({"exclude": HISTORY.clear()}, rf.RankingDataError, "exclude=: it is empty"),
        ({"exclude": HISTORY.drop("item")}, rf.RankingDataError, "exclude=: no column 'item'"),
        ({"k": 0}, ValueError, "k must be an integer ≥ 1, not 0"),
        ({"seed": -1}, ValueError, "seed must be an integer ≥ 0, not -1"),
        ({"users": [1], "item": "rank"}, rf.RankingDataError, "rank"),
    ],
)
def test_wrong_calls(change, error, text):
    with pytest.raises(error, match=text):
        rf.runs.baselines(HISTORY, **{"users": [1], **change})


def test_wrong_rows_of_a_lazy_history():
    history = pl.LazyFrame({"user": [1, None], "item": ["a", "b"]})
    run = rf.runs.baselines(history, users=[1])
    with pytest.raises(rf.RankingDataError, match="history=, column 'user': null user"):
        run.collect()
