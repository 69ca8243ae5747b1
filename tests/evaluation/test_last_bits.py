"""The last bit: shares equal Python's, and equal calls give equal bits."""

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from every_metric import EVERY_METRIC, OF_TIER
from hypothesis import given
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from two_models import RUN, TRUTH

import rankframe as rf
from rankframe._evaluation.sums import order_free_mean

DEEPEST = 200


def _lists(k: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """User h of 0 … k has h hits first in a list of k, and k relevant items."""
    users = pl.DataFrame({"user": range(k + 1)})
    run = users.join(pl.DataFrame({"rank": range(1, k + 1)}), how="cross").with_columns(
        item=pl.when(pl.col("rank") <= pl.col("user")).then("rank").otherwise(-pl.col("rank"))
    )
    truth = users.join(pl.DataFrame({"item": range(1, k + 1)}), how="cross")
    return run, truth


@pytest.mark.parametrize("k", [*range(1, DEEPEST, 7), 3, 5, 10, 20, 49, 100, DEEPEST])
def test_share_of_k_is_the_quotient_to_the_last_bit(k):
    run, truth = _lists(k)
    labels = [f"precision@{k}", f"recall@{k}", f"attainable_precision@{k}", f"unjudged@{k}"]
    found = rf.per_user(run, *labels, truth=truth)
    for user, precision, recall, attainable, unjudged in found.rows():
        assert (precision, recall) == (user / k, user / k)
        assert (attainable, unjudged) == (1.0, (k - user) / k)


def test_shares_of_every_k_up_to_200():
    """One user per (h, k), so that all cut-offs meet in one call per k."""
    run, truth = _lists(DEEPEST)
    cuts = range(1, DEEPEST + 1)
    found = rf.per_user(run, *(f"precision@{k}" for k in cuts), truth=truth)
    for user, *precisions in found.rows():
        assert precisions == [min(user, k) / k for k in cuts]
    liked = truth.filter(pl.col("item") <= pl.col("user")).with_columns(rank="item")
    labels = [f"attainable_precision@{k}" for k in cuts]
    wanted = rf.per_user(liked.with_columns(relevance=1), *labels)
    for user, *attainable in wanted.rows():
        assert attainable == [min(user, k) / k for k in cuts]


@pytest.mark.filterwarnings("ignore:.*no item of the run is in the truth")  # the subject is another
def test_user_has_the_same_bits_alone_and_in_company():
    run, truth = _lists(10)
    for label in ("precision@10", "unjudged@10", "ap(divide_by=k)@10", "attainable_precision@10"):
        together = rf.per_user(run, label, truth=truth)
        for user, value in together.rows():
            mine = rf.per_user(
                run.filter(user=user), label, truth=truth.filter(user=user), users="all"
            )
            assert mine[label].to_list() == [value]
    assert together.height == 11


def test_filter_of_the_report_keeps_both_users():
    run = pl.DataFrame({"user": [0] * 10 + [1] * 10, "rank": [*range(1, 11)] * 2})
    run = run.with_columns(item="rank")
    truth = pl.DataFrame({"user": [0, 0, 0, 1], "item": [1, 2, 3, 5]})
    precision = run.rank.per_user("precision@10", truth=truth)
    assert precision["precision@10"].to_list() == [0.3, 0.1]
    assert precision.filter(pl.col("precision@10") <= 0.3).height == 2


def test_average_precision_divided_by_k_is_the_quotient():
    run, truth = _lists(10)
    found = rf.per_user(run, "ap(divide_by=k)@10", truth=truth)
    assert [value for _, value in found.rows()] == [hits / 10 for hits in range(11)]


def _divisions(node: Any) -> Iterator[dict[str, Any]]:
    if isinstance(node, dict):
        if node.get("op") in ("TrueDivide", "Divide"):
            yield node
        for child in node.values():
            yield from _divisions(child)
    elif isinstance(node, list):
        for child in node:
            yield from _divisions(child)


def _has_column(node: Any) -> bool:
    return '"Column"' in json.dumps(node)


@pytest.mark.filterwarnings("ignore")  # the format is not stable, but it is the only one to read
def test_metrics_divide_no_column_by_a_number():
    """Polars would multiply by its reciprocal; of a power of 2 that is exact."""
    for label, metric in EVERY_METRIC.items():
        for division in _divisions(json.loads(metric.meta.serialize(format="json"))):
            left, right = division["left"], division["right"]
            if _has_column(left) and not _has_column(right):
                literal = right.get("Literal", {}).get("Dyn", {"": 3})
                assert math.frexp(*literal.values())[0] == 0.5, (label, right)


# ------------------------------------------------------------------ from call to call


def _mean(values: list[float | None]) -> float | None:
    frame = pl.LazyFrame({"value": values}, schema={"value": pl.Float64})
    return frame.select(order_free_mean(pl.col("value"))).collect().item()


@given(st.lists(st.none() | st.floats(0, 1), min_size=1, max_size=300), st.randoms())
def test_mean_is_the_same_in_any_order_and_right(values, random):
    values = [*values, 2.0**-7]  # where all are less, the mean is a plain one
    first = _mean(values)
    random.shuffle(values)
    assert _mean(values) == first
    there = [value for value in values if value is not None]
    assert first == pytest.approx(math.fsum(there) / len(there), rel=1e-14)


@pytest.mark.parametrize("value", [0.1, 1 / 3, -0.7, 1e308, 1e-300, 5e-324, 1e9, 0.0, 2.0**-7])
@pytest.mark.parametrize("number", [1, 2, 1000])
def test_mean_of_one_value_is_the_value(value, number):
    if value == 1e308 and number > 1:
        assert _mean([value] * number) == math.inf  # as a plain mean: its sum leaves the floats
    else:
        assert _mean([value] * number) == pytest.approx(value, rel=1e-12, abs=0)
    if abs(value) < 1e3 and value > 1e-3:
        assert _mean([value] * number) == value


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([math.inf, 1.0], math.inf),
        ([math.nan, 1.0], math.nan),
        ([2e7, 1.5], 10000000.75),
        ([], None),
    ],
)
def test_values_that_do_not_fit_have_a_plain_mean(values, expected):
    assert repr(_mean(values)) == repr(expected)


CALLS = """
import sys
import polars as pl
import rankframe as rf

rows = pl.DataFrame({"user": range(20_000)}).join(pl.DataFrame({"rank": range(1, 8)}), how="cross")
model = pl.col("user") % 3
run = rows.with_columns(item=pl.struct("user", "rank").hash(seed=1) % 40, model=model)
run = run.unique(["user", "item"], maintain_order=True)
truth = rows.select("user", item=pl.struct("user", "rank").hash(seed=2) % 40, model=model).unique()
metrics = ["precision@7", "recall@7", "hit@3", "rr", "f1@7", "r_precision", "attainable_recall@7"]
for call in range(int(sys.argv[2])):
    frames = [
        rf.evaluate(run.drop("model").lazy(), *metrics, truth=truth.drop("model").lazy()),
        rf.evaluate(run.lazy(), *metrics, truth=truth.lazy(), by="model"),
        rf.per_user(run.lazy(), *metrics, truth=truth.lazy(), by="model"),
    ]
    print([frame.collect(engine=sys.argv[1]).hash_rows().sum() for frame in frames])
"""


@pytest.mark.thorough
def test_counts_and_their_means_are_the_same_from_call_to_call_on_any_number_of_threads():
    """50 calls: 1, 2 and 4 threads, on both engines."""
    found = set()
    for threads, engine, calls in [
        ("1", "streaming", "5"), ("2", "streaming", "15"), ("4", "streaming", "20"),
        ("2", "in-memory", "10"),
    ]:  # fmt: skip
        environment = {**os.environ, "POLARS_MAX_THREADS": threads}
        command = [sys.executable, "-c", CALLS, engine, calls]
        printed = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True
        )
        lines = printed.stdout.splitlines()
        assert len(lines) == int(calls)
        found |= {*lines}
    assert len(found) == 1


def test_mean_of_one_user_is_the_users_value():
    run, truth = _lists(DEEPEST)
    cuts = [3, 7, 10, 67, 107, 133, 199]
    labels = [f"precision@{k}" for k in cuts]
    for user in (1, 2, 3, 5, 66, 199):
        mine, wanted = run.filter(user=user), truth.filter(user=user)
        means = rf.evaluate(mine, *labels, truth=wanted).row(0)[1:]
        assert list(means) == [min(user, k) / k for k in cuts]


@pytest.mark.sample(2)
@pytest.mark.parametrize("by", ["model", ()])
def test_plan_of_few_rows_has_the_values_of_the_optimized_one(by):
    """An eager call on few rows runs its plan as written."""
    run = RUN if by else RUN.filter(model="a")
    metrics = OF_TIER.values()
    eager = rf.evaluate(run, *metrics, truth=TRUTH, by=by)
    lazy = rf.evaluate(run.lazy(), *metrics, truth=TRUTH.lazy(), by=by)
    optimized = lazy.collect(engine="in-memory")
    assert_frame_equal(eager, optimized, rel_tol=1e-12, abs_tol=1e-15)
