"""Runs, truths and reports that several modules of tests read; each report is made once."""

import functools
import random

import polars as pl

import rankframe as rf

METRICS = ["ndcg@5", "recall@5", "map"]
EVIL = "<script>window.stolen = 1;alert(1)</script>"
WORSE = '"\'><img src=x onerror="window.stolen = 2">{{ 7 * 7 }}</script><!--'


def run_of(rows):
    return pl.DataFrame(rows, schema=["model", "user", "item", "rank"], orient="row")


def correlated(users=40, seed=3):
    """A difference of all metrics that is shown alone, but not after correction."""
    draw = random.Random(seed)
    rows = [
        (model, user, item, rank)
        for user in range(users)
        for model in ("old", "new")
        for rank, item in enumerate(draw.sample(range(4 if model == "new" else 6), 2), 1)
    ]
    return {"run": run_of(rows), "truth": pl.DataFrame({"user": range(users), "item": 0})}


def made(users=60, served=24, seed=1):
    """Lists of an old system for all users, and of a new one for some, which are as good."""
    draw = random.Random(seed)
    run, truth = [], []
    for user in range(users):
        wanted = draw.sample(range(40), draw.choice([2, 3, 5, 12]))
        truth += [
            (user, item, draw.choice([1, 2, 3]), "NO" if user % 3 else "SE") for item in wanted
        ]
        for model in ["old", "new"] if user < served else ["old"]:
            scores = {item: draw.random() + 0.6 * (item in wanted) for item in range(40)}
            best = sorted(scores, key=scores.get, reverse=True)[:8]
            run += [(model, user, item, rank) for rank, item in enumerate(best, 1)]
    return (
        run_of(run),
        pl.DataFrame(truth, schema=["user", "item", "relevance", "country"], orient="row"),
    )


RUN, TRUTH = made()
ASKED = {"truth": TRUTH, "baseline": "old", "k": 5, "relevant_at": 2}
KEPT = {"truth": TRUTH, "baseline": "old", "relevant_at": 2}


@functools.cache
def report():
    return rf.report(RUN, *METRICS, **ASKED, by="country")


@functools.cache
def hostile():
    """A report of which every name comes from somebody who means harm."""
    items = pl.DataFrame({"item": [str(i) for i in range(40)]}).with_columns(
        title=pl.format("{}{}", pl.lit(WORSE), "item")
    )
    cast = pl.format("{}{}", pl.lit(EVIL), pl.col("item").cast(pl.String))
    run = RUN.with_columns(item=cast, model=pl.format("{}{}", pl.lit(EVIL), "model"))
    truth = TRUTH.with_columns(
        item=cast, country=pl.format("{}{}", "country", pl.lit(WORSE))
    ).rename({"country": EVIL})
    items = items.with_columns(item=pl.format("{}{}", pl.lit(EVIL), "item"))
    run, truth = (
        frame.with_columns(user=pl.format("{}{}", pl.lit(WORSE), pl.col("user").cast(pl.String)))
        for frame in (run, truth)
    )
    metric = rf.metrics.ndcg_at(5).alias(WORSE)
    return rf.report(
        *(run, metric, "recall@5"), truth=truth, baseline=f"{EVIL}old", k=5, by=EVIL,
        items=items, history=truth, explore=20, note=WORSE,
    )  # fmt: skip


@functools.cache
def explored():
    """A report whose page has half of the users that both systems serve."""
    history = RUN.filter(model="old").with_columns(item=pl.col("item") + 40, time=-pl.col("rank"))
    items = pl.DataFrame({"item": range(90)}).with_columns(title=pl.format("film {}", "item"))
    more = {"by": "country", "items": items, "history": history, "seed": 3, "explore": 12}
    return rf.report(RUN, *METRICS, **ASKED, **more)


@functools.cache
def page_of(report, *, static=False):
    return report.html(static=static)
