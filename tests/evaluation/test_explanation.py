"""Explain a number: the code of each class of conventions gives the value beside it."""

import random
from collections.abc import Sequence
from typing import Any

import polars as pl
import pytest
import reference
from every_metric import FEW
from lists_and_shares import OF_ALL, OF_USERS, WORLD, labels_at

import rankframe as rf
from rankframe.typing import Explanation


def _tables(seed: int, placed_by: str) -> dict[str, pl.DataFrame]:
    """Make tables with ties, misses of grade 0, users without a list, and lists without a truth."""
    draw = random.Random(seed)
    lists = [
        {"user": user, "item": item, "score": draw.choice([0.25, 0.5, 0.75]), "rank": rank}
        for user in range(1, 7)
        for rank, item in enumerate(draw.sample("abcdefghij", draw.randint(3, 8)), start=1)
    ]
    truth = [
        {"user": user, "item": item, "relevance": draw.choice([0, 1, 1, 2, 3])}
        for user in range(3, 9)
        for item in draw.sample("abcdefghij", draw.randint(1, 6))
    ]
    run = pl.DataFrame(lists).drop("score" if placed_by == "rank" else "rank")
    return {"run": run, "truth": pl.DataFrame(truth)}


def _check(explanation: Explanation, metrics: Sequence[str], **tables: Any) -> None:
    """Run the code of some classes, and compare its value with the one in the row."""
    rows = explanation.frame.rows(named=True)
    if not reference.thorough:
        rows = rows[:2] + random.Random(0).sample(rows[2:], min(6, len(rows[2:])))
    assert rows
    for row in rows:
        values = eval(row["call"], {"rf": rf, "pl": pl, **tables}).to_dicts()[0]
        found = [value for name, value in values.items() if name not in ("users", "model")]
        assert found == pytest.approx([row[name] for name in metrics], rel=1e-12, abs=1e-12), row


def _explained(number: Any, *metric: str, run: pl.DataFrame, **options: Any) -> Explanation:
    return rf.explain(number, *metric, run, **options)


def _number(metric: str, tables: dict[str, Any]) -> float:
    """Return the value of a metric, or any number in its range."""
    *_, value = rf.evaluate(
        tables["run"], metric, **{n: tables[n] for n in tables if n != "run"}
    ).row(0)
    return 0.5 if value is None else value


#: Of each kind: with and without a cut-off, pooled, geometric, a sum, without a form under ties.
LABELS = ["ndcg@3", "precision", "ap(rel=2)@3", "gmap@3", "num_hits@3", "rbp@3", "bpref"]
LISTS = ["tail@3", "coverage(of=genre)@3", "ild(of=genre)@3"]
if reference.thorough:
    LABELS += [*FEW, "gm_bpref"]
    LISTS += [*labels_at(3, OF_USERS), *labels_at(3, OF_ALL)]


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("placed_by", ["rank", "score"])
@pytest.mark.parametrize("label", LABELS)
def test_code_gives_the_value(label: str, placed_by: str) -> None:
    tables = _tables(len(label), placed_by)
    found = _explained(_number(label, tables), label, digits=0, **tables)
    _check(found, [label], **tables)


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("label", LISTS)
def test_code_gives_the_value_of_lists(label: str) -> None:
    tables = WORLD.tables()
    found = _explained(_number(label, tables), label, digits=0, **tables)
    _check(found, [label], **tables)
