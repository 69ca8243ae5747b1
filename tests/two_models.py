"""Two models on forty users, and parts of their users."""

import random

import polars as pl
from polars.testing import assert_frame_equal

MODELS = ["a", "b"]


def make_tables():
    """Two models on forty users: some missed by a model, absent, unjudged, or without a hit."""
    rng = random.Random(7)
    run, truth = [], []
    for user in range(40):
        for model in MODELS:
            if user % 10 == 0 or (model == "b" and user % 7 == 0):
                continue
            items = rng.sample(range(30), rng.randint(1, 15))
            for rank, item in enumerate(items, start=1):
                run.append((model, user, item, rank, rng.random() * 10, rng.choice("xy")))
        if user % 9 != 1:
            for item in rng.sample(range(30), rng.randint(1, 12)):
                truth.append((user, item, rng.choice([-1, 0, 1, 1, 2, 3]), rng.choice("pq")))
    names = ["model", "user", "item", "rank", "minutes", "device"]
    return (
        pl.DataFrame(run, schema=names, orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance", "genre"], orient="row"),
    )


RUN, TRUTH = make_tables()
A = RUN.filter(model="a").drop("model")
# user 20 is in no run, user 1 in no truth, 99 in neither; the part of 9 has only grades up to 1
USERS = [[20], [1, 2, 3, 7, 8], [9, 17], [99]]
USERS += [[*range(4, 7), *range(10, 17), 18, 19, *range(21, 40), 0]]


def split(run, truth, places=USERS):
    for some in places:
        mine = pl.col("user").is_in(some)
        yield run.filter(mine), truth.filter(mine)


def assert_same(left, right, **options):
    options = {"check_dtypes": False, "abs_tol": 1e-12, "rel_tol": 1e-12, **options}
    assert_frame_equal(left, right, check_exact=False, **options)


def assert_equal(left, right):
    """Compare separate calls: the order of a sum may change the last bit of a mean."""
    assert_same(left, right, check_dtypes=True)


#: metrics of every type of value
OWN = [
    (pl.col("relevance").max() >= 2).alias("high"),
    pl.duration(microseconds=pl.col("item").filter("relevant").sum()).alias("time"),
    pl.len().cast(pl.Int32).alias("rows"),
    (pl.col("item").filter("relevant").mean() - 15).alias("signed"),
    pl.lit(None).alias("nothing"),
]
#: metrics whose value of a user is one quotient, and so the same bits in every order of rows
WITH_WEIGHTS = ["rr", "gmap@1", "precision@3", "recall", "auc", OWN[0], *OWN[2:]]
EXACT = [*WITH_WEIGHTS, "num_hits", OWN[1]]


def many_users(seed, users=150):
    """Two models with gaps, grades of 0 to 3, and weights of many sizes."""
    rng = random.Random(seed)
    run = [
        (model, user, item, rank)
        for model in "ab"
        for user in range(users)
        if rng.random() < 0.9
        for rank, item in enumerate(rng.sample(range(30), rng.randint(1, 6)), 1)
    ]
    truth = [
        (user, f"c{user % 3}", item, rng.choice([0, 1, 1, 2, 3]), weight)
        for user in range(users)
        for weight in [rng.choice([0.0, 1.0, rng.random(), rng.random() * 1000])]
        for item in rng.sample(range(30), rng.randint(1, 12))
    ]
    return (
        pl.DataFrame(run, ["model", "user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, ["user", "country", "item", "relevance", "w"], orient="row"),
    )


#: calls whose parts have the bits of the whole
EXACT_CALLS = [
    {"by": []},
    {"by": ["model", "country"], "total": True},
    {"by": "model", "undefined": 0.1, "users": "all", "count_users": True},
    {"by": "model", "total": True, "weights": "w"},
]
