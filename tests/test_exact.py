"""The last bit: shares equal Python's, and equal calls give equal bits."""

import json
import math
from collections.abc import Iterator
from typing import Any

import polars as pl
import pytest
from every_metric import EVERY_METRIC

import rankframe as rf

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
def test_a_share_of_k_is_the_quotient_to_the_last_bit(k):
    run, truth = _lists(k)
    labels = [f"precision@{k}", f"recall@{k}", f"attainable_precision@{k}", f"unjudged@{k}"]
    found = rf.per_user(run, *labels, truth=truth)
    for user, precision, recall, attainable, unjudged in found.rows():
        assert (precision, recall) == (user / k, user / k)
        assert (attainable, unjudged) == (1.0, (k - user) / k)


def test_every_share_of_every_k_up_to_200():
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


def test_a_user_has_the_same_bits_alone_and_in_company():
    run, truth = _lists(10)
    for label in ("precision@10", "unjudged@10", "ap(divide_by=k)@10", "attainable_precision@10"):
        together = rf.per_user(run, label, truth=truth)
        for user, value in together.rows():
            mine = rf.per_user(
                run.filter(user=user), label, truth=truth.filter(user=user), users="all"
            )
            assert mine[label].to_list() == [value]
    assert together.height == 11


def test_the_filter_of_the_report_keeps_both_users():
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
def test_no_metric_divides_a_column_by_a_number():
    """Polars would multiply by its reciprocal; of a power of 2 that is exact."""
    for label, metric in EVERY_METRIC.items():
        for division in _divisions(json.loads(metric.meta.serialize(format="json"))):
            left, right = division["left"], division["right"]
            if _has_column(left) and not _has_column(right):
                literal = right.get("Literal", {}).get("Dyn", {"": 3})
                assert math.frexp(*literal.values())[0] == 0.5, (label, right)
