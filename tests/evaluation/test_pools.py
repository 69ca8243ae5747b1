"""``runs.to_judge``: whole users at random, and pairs by how much they move the verdict."""

import math
import random
from itertools import combinations

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf

ITEMS = "abcdefghij"


def lists_of(systems, *, users=30, seed=0):
    """Make lists of 0 to 6 items, of which a user may have none in one system."""
    rng = random.Random(seed)
    return {
        name: {user: rng.sample(ITEMS, n) for user in range(users) if (n := rng.randint(0, 6))}
        for name in systems
    }


def pool_of(lists, k):
    """All pairs down to k of any system, by user."""
    pool = {}
    for runs in lists.values():
        for user, items in runs.items():
            pool.setdefault(user, set()).update(items[:k])
    return pool


def moved(lists, pair, k):
    """How much a grade of 1 moves the differences of DCG@k of all pairs of systems, on average."""
    user, item = pair
    each = [runs.get(user, [])[:k] for runs in lists.values()]
    each = each if len(each) > 1 else [*each, []]
    dcgs = [1 / math.log2(items.index(item) + 2) if item in items else 0 for items in each]
    apart = [abs(one - other) for one, other in combinations(dcgs, 2)]
    return math.fsum(apart) / len(apart)


@pytest.mark.parametrize("systems", ["x", "xy", "xyzv"])
@pytest.mark.parametrize(
    ("budget", "share"), [(50, 0.5), (3, 0.5), (7, 0), (60, 1), (10_000, 0.01)]
)
def test_rows_are_whole_users_and_pairs_by_weight(systems, budget, share):
    lists, k, rng = lists_of(systems), 4, random.Random(1)
    pool = pool_of(lists, k)
    every = {(user, item): moved(lists, (user, item), k) for user in pool for item in pool[user]}
    judged = {pair for pair in sorted(every) if rng.random() < 0.3}
    judged |= {(0, item) for item in pool[0]}  # this user needs no more judgments
    truth = {user: {item: 0 for u, item in judged if u == user} for user, _ in sorted(judged)}
    got = rf.runs.to_judge(lists, k, truth=truth, budget=budget, random=share, seed=3)
    assert got.schema == {
        "user": pl.Int64,
        "item": pl.String,
        "drawn": pl.String,
        "weight": pl.Float64,
    }
    for *pair, weight in got.select("user", "item", "weight").rows():
        assert weight == pytest.approx(every[tuple(pair)], abs=1e-12)
    drawn = got.filter(drawn="random")
    assert got["drawn"].to_list() == sorted(got["drawn"], reverse=True)
    users = drawn["user"].unique(maintain_order=True).to_list()
    assert drawn["user"].rle().len() == len(users)  # user by user
    assert {(u, i) for u in users for i in pool[u]} == {*drawn.select("user", "item").rows()}
    open_users = [u for u in pool if {(u, i) for i in pool[u]} - judged]
    assert set(users) <= set(open_users)
    sizes = [len(pool[user]) for user in open_users]
    number = int(share * budget + 1e-9) // (sum(sizes) / len(sizes))
    assert len(users) == min(number, len(open_users))
    chosen = got.filter(drawn="chosen")
    pairs = chosen.select("user", "item").rows()
    rest = [p for p, w in every.items() if w > 0 and p not in judged and p[0] not in users]
    assert set(pairs) <= set(rest)
    left = max(budget - drawn.height, 0) if share < 1 else 0
    assert len(pairs) == min(len(rest), left)
    weights = chosen["weight"].to_list()
    assert weights == sorted(weights, reverse=True)
    assert sorted(weights) == pytest.approx(
        sorted(every[p] for p in rest)[len(rest) - len(pairs) :]
    )


def test_draw_follows_the_seed_and_not_the_rows():
    runs = rf.runs.stack({name: rf.from_lists(lists) for name, lists in lists_of("xy").items()})

    def users(frame, budget=40, **options):
        rows = rf.runs.to_judge(frame, 5, budget=budget, random=1, **options)
        assert set(rows["drawn"]) == {"random"}
        return rows["user"].unique(maintain_order=True).to_list()

    first = users(runs)
    assert users(runs.sample(fraction=1, shuffle=True, seed=1)) == first
    assert users(runs, 100)[: len(first)] == first
    assert len({tuple(users(runs, seed=seed)) for seed in range(4)}) == 4
    often = [user for seed in range(25) for user in users(runs, 12, seed=seed)[:1]]
    assert len(set(often)) > 9  # any user can be first


def test_users_with_many_pairs_are_drawn_as_often_as_others():
    """Half have 2 pairs, half 20, who are .37 or .42 of a draw that ends before the budget does."""
    items = [f"i{item}" for item in range(20)]
    lists = {user: items[: 20 if user % 2 else 2] for user in range(300)}
    run = rf.from_lists(lists)
    for budget in (25, 60):
        draws = [
            rf.runs.to_judge(run, 20, budget=budget, random=1, seed=seed)["user"].unique()
            for seed in range(150)
        ]
        assert {len(users) for users in draws} == {budget // 11}
        large = sum((users % 2).sum() for users in draws)
        number = 150 * (budget // 11)
        assert abs(large / number - 0.5) < 3 * 0.5 / number**0.5
    sizes = {len(rf.runs.to_judge(run, 20, budget=60, seed=seed)) for seed in range(20)}
    assert sizes == {60}  # chosen pairs make room for the drawn, and take what they leave


def test_labelled_rows_are_a_truth_and_are_not_asked_for_again():
    lists = lists_of("xy")
    rows = rf.runs.to_judge(lists, 3, budget=30, seed=1)
    labels = rows.with_columns(relevance=pl.lit(0))
    more = rf.runs.to_judge(lists, 3, budget=30, truth=labels, seed=1)
    again = more.join(rows, on=["user", "item"], how="semi")
    assert set(again["drawn"]) <= {"random"}
    first, second = (set(frame.filter(drawn="random")["user"]) for frame in (rows, more))
    assert first
    assert second
    assert not first & second
    pairs = pl.concat([labels, more.with_columns(relevance=pl.lit(1))], how="vertical_relaxed")
    truth = pairs.unique(["user", "item"], keep="last")
    assert rf.evaluate(lists, "judged@3", truth=truth).height == 2


def test_users_drawn_at_random_are_human_labels():
    lists = lists_of("xy", users=60)
    pairs = [(user, item) for user, items in pool_of(lists, 3).items() for item in sorted(items)]
    judge = pl.DataFrame(pairs, ["user", "item"], orient="row").with_columns(relevance=1)
    human = rf.runs.to_judge(lists, 3, budget=80)
    human = human.with_columns(relevance=(pl.col("item") < "f").cast(int))
    with pytest.raises(rf.RankingDataError, match="^human labels, column 'drawn'") as refused:
        rf.summarize(lists, "precision@3", truth=judge, human=human)
    cure = str(refused.value).partition("keep the others: ")[2].partition(". Offending")[0]
    drawn = eval(cure)  # as it is pasted
    got = rf.summarize(lists, "precision@3", truth=judge, human=drawn)
    assert set(got["users_human"]) == {drawn["user"].n_unique()}
    assert (got["correction"] > 0).all()


@pytest.mark.parametrize("kind", ["stacked", "scores", "judged", "renamed"])
def test_any_table(kind):
    lists, truth = lists_of("xy"), {3: {"a": 1}, 4: {"b": 0}}
    want = rf.runs.to_judge(lists, 4, truth=truth, budget=50)
    runs = rf.runs.stack({name: rf.from_lists(each) for name, each in lists.items()})
    judged, names = rf.from_grades(truth), {}
    if kind == "scores":
        runs = runs.select("model", "user", "item", score=-pl.col("rank").cast(float))
    elif kind == "judged":
        runs, judged = rf.judge(runs, judged, by="model"), None
    elif kind == "renamed":
        names = {"user": "q", "item": "doc", "model": "engine"}
        runs = runs.rename(names)
        judged = judged.rename({"user": "q", "item": "doc"})
    got = rf.runs.to_judge(runs, 4, truth=judged, budget=50, **names)
    assert_frame_equal(got.rename({v: k for k, v in names.items() if k != "model"}), want)


def test_first_labels_may_be_none_and_of_other_users():
    lists = {"x": {1: ["a"]}, "y": {1: ["b"]}}
    plain = rf.runs.to_judge(lists, 1, budget=4)
    assert plain["weight"].to_list() == [1.0, 1.0]
    none = pl.DataFrame(schema={"user": int, "item": str, "relevance": int})
    others = pl.DataFrame({"user": [7], "item": ["a"], "relevance": [0]})
    for truth in (none, others):
        assert_frame_equal(rf.runs.to_judge(lists, 1, budget=4, truth=truth), plain)
    scored = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "score": [0.5, 0.5]})
    assert rf.runs.to_judge(scored, budget=4, truth=others).height == 2
    same = {"x": {1: ["a"]}, "y": {1: ["a"]}}
    assert rf.runs.to_judge(same, 1, budget=4, random=0).is_empty()  # nothing can differ


def test_broken_rows_are_refused():
    run = pl.DataFrame({"user": [1, 1], "item": ["a", "a"], "rank": [1, 2]})
    for frame in (run, run.lazy()):
        with pytest.raises(rf.RankingDataError, match=r"duplicate \(user, item\)"):
            rf.runs.to_judge(frame, 2, budget=2).lazy().collect()
        kept = rf.runs.to_judge(frame, 2, budget=2, duplicates="first").lazy().collect()
        assert kept["item"].to_list() == ["a"]
    with pytest.raises(rf.RankingDataError, match="run: it is empty"):
        rf.runs.to_judge(run.clear(), 2, budget=2)
    with pytest.raises(rf.RankingDataError, match="truth, column 'item': null item"):
        rf.runs.to_judge(run[:1], 2, budget=2, truth=run.select("user", item=None))
