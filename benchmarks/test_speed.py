"""The hot calls, guarded against getting slower: see the README."""

from collections.abc import Callable

import polars as pl
import pytest

import rankframe as rf
from benchmarks.data import SHAPES, tables
from benchmarks.suites import FIVE, GRID

RUN, TRUTH = tables(SHAPES["c"])
RANKED, SCORED = RUN.drop("score"), RUN.drop("rank")
TEXTS = tables(SHAPES["c"], "string")
JUDGED = rf.judge(RANKED, TRUTH)
MODELS = pl.concat([RANKED.with_columns(model=pl.lit(name)) for name in ("a", "b")])

MIXED = [frame.sample(fraction=1, shuffle=True, seed=1) for frame in (SCORED, TRUTH)]
HUNDRED = [RANKED.head(100), TRUTH.filter(pl.col("user") == 0)]

CALLS = {
    "evaluate five": lambda: rf.evaluate(RANKED, *FIVE, truth=TRUTH),
    "evaluate one": lambda: rf.evaluate(RANKED, "ndcg@10", truth=TRUTH),
    "evaluate grid": lambda: rf.evaluate(RANKED, *GRID, truth=TRUTH),
    "evaluate string ids": lambda: rf.evaluate(TEXTS[0].drop("score"), *FIVE, truth=TEXTS[1]),
    "evaluate scores": lambda: rf.evaluate(SCORED, *FIVE, truth=TRUTH),
    "evaluate scores, shuffled": lambda: rf.evaluate(MIXED[0], *FIVE, truth=MIXED[1]),
    "evaluate 100 rows": lambda: rf.evaluate(HUNDRED[0], *FIVE, truth=HUNDRED[1]),
    "evaluate one of 100 rows": lambda: rf.evaluate(HUNDRED[0], "ndcg@10", truth=HUNDRED[1]),
    "evaluate by model": lambda: rf.evaluate(MODELS, *FIVE, truth=TRUTH, by="model"),
    "evaluate judged": lambda: rf.evaluate(JUDGED, *FIVE),
    "per_user": lambda: rf.per_user(RANKED, *FIVE, truth=TRUTH),
    "judge": lambda: rf.judge(RANKED, TRUTH),
    "with_rank": lambda: rf.with_rank(SCORED),
    "relevant": lambda: rf.metrics.rows(JUDGED),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS.keys())
def test_speed(benchmark: Callable[..., pl.DataFrame], call: Callable[[], pl.DataFrame]) -> None:
    assert not benchmark(call).is_empty()
