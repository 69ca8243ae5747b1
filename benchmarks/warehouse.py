"""The text of rf.sql against a query by hand: ``python -m benchmarks.warehouse``.

Five metrics, 10 M rows of the run and 1 M of the truth, in DuckDB (tables in memory, two threads)
and in Spark (Parquet, two cores): CPU seconds of the whole process tree, medians of five turns.
Both give the same numbers. Ends with status 1 if a ratio is above the target.
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import polars as pl

import rankframe as rf
from benchmarks.data import CACHE

FIVE = ["precision@10", "recall@10", "map", "mrr", "ndcg@10"]
TARGET, TURNS = 1.15, 5
HAND = Path(__file__).with_name("by_hand.sql")


def tables(users: int, length: int = 100) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the lists of two models, and ten judgments per user."""
    draw = np.random.default_rng(7)
    half = length // 2
    lists = pl.concat(
        pl.DataFrame(
            {
                "model": model,
                "user_id": np.repeat(np.arange(users), half),
                "item": draw.integers(0, 2_000, users * half),
                "rank": np.tile(np.arange(1, half + 1), users),
            }
        )
        for model in ("a", "b")
    )
    ids = {"user_id": np.repeat(np.arange(users), 10), "item": draw.integers(0, 2_000, users * 10)}
    grades = draw.choice([-1, 0, 1, 2, 3], users * 10)
    truth = pl.DataFrame({**ids, "relevance": grades}).unique(["user_id", "item"])
    run = lists.unique(["model", "user_id", "item"], maintain_order=True)
    return run, truth


def cpu() -> float:
    """CPU seconds of this process and of Spark's Java below it."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text(encoding="utf-8").rpartition(") ")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == os.getpid():
            ticks += int(fields[11]) + int(fields[12])
    return own.ru_utime + own.ru_stime + ticks / os.sysconf("SC_CLK_TCK")


def ratio(answers: dict[str, Callable[[], pl.DataFrame]]) -> list[object]:
    """Time both in turn, after one turn to warm up."""
    seconds: dict[str, list[float]] = {name: [] for name in answers}
    results: dict[str, pl.DataFrame] = {}
    for turn in range(TURNS + 1):
        for name, answer in answers.items():
            start = cpu()
            results[name] = answer().sort("model")
            if turn:
                seconds[name].append(cpu() - start)
    want, got = results.values()
    worst = max(
        abs(left - right)
        for name, other in zip(want.columns[1:], got.columns[1:], strict=True)
        for left, right in zip(want[name], got[other], strict=True)
    )
    assert worst < 1e-12, worst
    hand, text = (statistics.median(values) for values in seconds.values())
    return [f"{hand:.2f}", f"{text:.2f}", f"{text / hand:.2f}", f"{worst:.0e}"]


def in_duckdb(run: pl.DataFrame, truth: pl.DataFrame) -> list[object]:
    """Compare in DuckDB."""
    text = rf.sql(*FIVE, by="model", user="user_id")
    with duckdb.connect(config={"threads": 2}) as connection:
        for name, frame in {"run": run, "truth": truth}.items():
            connection.register("frame", frame)
            connection.execute(f"CREATE TABLE {name} AS SELECT * FROM frame")
        queries = {"by hand": HAND.read_text(encoding="utf-8"), "rf.sql": text}
        answers = {n: lambda q=q: connection.sql(q).pl() for n, q in queries.items()}
        return ratio(answers)


def in_spark(run: pl.DataFrame, truth: pl.DataFrame) -> list[object]:
    """Compare in Spark."""
    from benchmarks import spark

    session = spark.session("4g")
    for name, frame in {"run": run, "truth": truth}.items():
        path = CACHE / f"warehouse_{name}.parquet"
        CACHE.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(path)
        session.read.parquet(str(path)).createOrReplaceTempView(name)
    text = rf.sql(*FIVE, by="model", user="user_id", dialect="spark")
    queries = {"by hand": HAND.read_text(encoding="utf-8"), "rf.sql": text}
    answers = {n: lambda q=q: pl.from_arrow(session.sql(q).toArrow()) for n, q in queries.items()}
    return ratio(answers)


def main() -> int:
    """Print the ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--users", type=int, default=100_000)
    parser.add_argument("--engine", choices=["duckdb", "spark"], action="append")
    arguments = parser.parse_args()
    run, truth = tables(arguments.users)
    every = {"duckdb": in_duckdb, "spark": in_spark}
    rows = {name: every[name](run, truth) for name in arguments.engine or every}
    print("engine, by hand (CPU s), rf.sql (CPU s), ratio, worst difference")
    for name, row in rows.items():
        print(name, *row)
    return int(any(float(str(row[2])) > TARGET for row in rows.values()))


if __name__ == "__main__":
    sys.exit(main())
