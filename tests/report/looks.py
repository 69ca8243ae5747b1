"""Reports of every outcome, whose data have nothing to doubt, for a browser to measure."""

import random

import polars as pl

import rankframe as rf
from tests.report.samples import run_of

DEPTH = 5  # of all lists


def of_places(truth=None, **places):
    """Lists of full length, in which each user's one relevant item has a place; None: nowhere."""
    rows = [
        (model, user, "it" if place == rank else f"other {rank}", rank)
        for model, of_users in places.items()
        for user, place in enumerate(of_users)
        for rank in range(1, DEPTH + 1)
    ]
    users = max(map(len, places.values()))
    return {
        "run": run_of(rows),
        "truth": truth if truth is not None else pl.DataFrame({"user": range(users), "item": "it"}),
        "baseline": next(iter(places)),
        "k": DEPTH,
    }


def drawn(seed, users, places):
    return random.Random(seed).choices(places, k=users)


OLD = [2, 3, 1, 4, 2, 3] * 20
NEW = [1, 2, 1, 2, 2, 4] * 20


def unjudged():
    """Lists of new have items that nobody judged, which could turn the order."""
    lists = {"old": ["no", "it", "no 2", "no 3", "no 4"], "new": ["x", "y", "it", "z", "w"]}
    rows = [
        (model, user, item, rank)
        for model, items in lists.items()
        for user in range(60)
        for rank, item in enumerate(items, 1)
    ]
    truth = [
        (user, item, int(item == "it"))
        for user in range(60)
        for item in ["it", *lists["old"][2:], "no"]
    ]
    return {
        "run": run_of(rows),
        "truth": pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
        "baseline": "old",
        "k": DEPTH,
    }


ITEMS = pl.DataFrame({"item": ["it", *(f"other {n}" for n in range(1, DEPTH + 1))]})
MEAN_RANK = pl.when(pl.col("relevance") > 0).then("rank").mean().alias("mean rank")
#: the kind of the card, the metrics and the call
OUTCOMES = {
    "better": (["ndcg@5", "rr"], of_places(old=OLD, new=NEW)),
    "worse": (["ndcg@5", "rr"], of_places(old=NEW, new=OLD)),
    "worse within the margin": (
        ["rr"],
        {**of_places(old=[1] * 100, new=[2] * 20 + [1] * 80), "margin": 0.3},
    ),
    "higher": ([MEAN_RANK], of_places(old=NEW, new=OLD)),
    "lower": ([MEAN_RANK], of_places(old=OLD, new=NEW)),
    "same": (["rr"], {**of_places(old=OLD, new=[2, 3, 1, 4, 3, 2] * 20), "margin": "10%"}),
    "not worse": (
        ["rr"],
        {**of_places(old=OLD, new=[1, 3, 1, 4, 2, 3, 3, 4, 1, 4, 2, 3] * 10), "margin": 0.03},
    ),
    "identical": (["ndcg@5", "rr"], of_places(old=OLD, new=OLD)),
    "undecided": (
        ["rr", "hit@1"],
        of_places(old=drawn(1, 40, range(1, 6)), new=drawn(2, 40, range(1, 6))),
    ),
    "untested": (["coverage@1"], {**of_places(old=[1, 2] * 20, new=[1] * 40), "items": ITEMS}),
    "unjudged": (["rr"], unjudged()),
    "mixed": (["hit@1", "hit@5"], of_places(old=[1, 1, None, None] * 25, new=[1, 2, 3, 3] * 25)),
}


def report_of(metrics, call, **more):
    call = {**call, **more}
    return rf.report(call.pop("run"), *metrics, **call)
