"""Time and memory on growing data, LazyFrame over Parquet: ``python -m benchmarks.scale``.

A list of 100 and 10 relevant items per user, in parts of 10 M run rows, made one after the other.
Each measurement is a process of its own, which is asked for its peak of memory at its end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import polars as pl

import rankframe as rf
from benchmarks import report
from benchmarks.data import CACHE, SHAPES, Files, tables, write
from benchmarks.suites import FIVE
from benchmarks.worker import peak

MILLION = 1_000_000
SIZES = [1, 10, 100, 300]
DEPTH = 100
PART = 10  # millions of rows
LARGE = 300  # from here on once is enough

#: Cases against plain: their column, and the goal.
RATIOS = [
    ("by=", "seconds", 1.5),
    ("by=", "peak MB", 1.5),
    ("list length", "seconds", 1.6),
    ("list length", "peak MB", 1.25),
]

Scan = tuple[pl.LazyFrame, pl.LazyFrame]


def bare_join(run: pl.LazyFrame, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Find the hits and read their ranks: the floor."""
    return run.join(truth, on=["user", "item"]).select(pl.col("rank").sum())


def plain(run: pl.LazyFrame, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Evaluate five metrics."""
    return rf.evaluate(run, *FIVE, truth=truth)


def by_model(run: pl.LazyFrame, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Take the upper and the lower half of each list for two models."""
    half = DEPTH // 2
    models = run.with_columns(
        model=pl.when(pl.col("rank") <= half).then(1).otherwise(2),
        rank=(pl.col("rank") - 1) % half + 1,
    )
    return rf.evaluate(models, *FIVE, truth=truth, by="model")


def users_of_both(run: pl.LazyFrame, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Average over users that are in both tables, which needs the users of the run."""
    return rf.evaluate(run, *FIVE, truth=truth, users="both")


def list_length(run: pl.LazyFrame, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Divide by the lengths of the lists, which counts all rows of the run."""
    return rf.evaluate(run, *FIVE, "precision", truth=truth)


def same_truth(run: pl.LazyFrame, truth: pl.LazyFrame) -> pl.LazyFrame:
    """Keep the truth of the first million rows of run, however long the run is."""
    return plain(run, truth.filter(pl.col("user") < MILLION // DEPTH))


CASES: dict[str, Callable[[pl.LazyFrame, pl.LazyFrame], pl.LazyFrame]] = {
    "bare join": bare_join,
    "plain": plain,
    "plain, truth of 0.1 M rows": same_truth,
    "by=": by_model,
    'users="both"': users_of_both,
    "list length": list_length,
}


def scan(millions: int) -> Scan:
    """Scan that many million rows of run, and a tenth of truth."""
    made = parts(millions)
    return pl.scan_parquet([one.run for one in made]), pl.scan_parquet([one.truth for one in made])


def parts(millions: int) -> list[Files]:
    """Give the files of that many million rows of run, made if they are not there."""
    if millions < PART:
        return [_part(0, millions)]
    return [_part(number, PART) for number in range(millions // PART)]


def _part(number: int, millions: int) -> Files:
    users = millions * MILLION // DEPTH
    shape = SHAPES["a"]._replace(users=users)
    folder = CACHE / "data" / f"scale-{millions}M-{number:02}"
    return write(folder, partial(tables, shape, first=number * users))


def measure(case: str, millions: int) -> Any:
    """Evaluate once, in a fresh process."""
    asked = ["--measure", case, "--sizes", str(millions)]
    command = [sys.executable, "-m", "benchmarks.scale", *asked]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def here(case: str, millions: int) -> dict[str, float]:
    """Evaluate once, in this process."""
    run, truth = scan(millions)
    begin = perf_counter()
    CASES[case](run, truth).collect()
    return {"seconds": perf_counter() - begin, "peak_mb": peak()}


def growth(sizes: list[int], rounds: int) -> list[dict[str, Any]]:
    """Measure every case at every size, the cases in turn."""
    rows = []
    for millions in sizes:
        scan(millions)
        seen: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
        for _ in range(rounds if millions < LARGE else 1):
            for case in CASES:
                seen[case].append(measure(case, millions))
        for case, times in seen.items():
            seconds = median(one["seconds"] for one in times)
            rows.append(
                {
                    "case": case,
                    "M rows": millions,
                    "seconds": round(seconds, 3),
                    "seconds / M rows": round(seconds / millions, 5),
                    "peak MB": round(max(one["peak_mb"] for one in times)),
                }
            )
            print(*rows[-1].values(), sep="\t", flush=True)
    return rows


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """Hold the cases against their goals, where the sizes for them were measured."""
    at = {(row["case"], row["M rows"]): row for row in rows}
    said = []
    for large in (100, LARGE):
        if {("plain", 10), ("plain", large)} <= at.keys():
            small, grown = at["plain", 10], at["plain", large]
            ratio = grown["seconds / M rows"] / small["seconds / M rows"]
            said.append(_verdict(f"seconds / M rows at {large} M against 10 M", ratio, 1.1))
        if ("plain", large) in at:
            for case, column, goal in RATIOS:
                ratio = at[case, large][column] / at["plain", large][column]
                name = f"{case}, {large} M rows: {column}, times plain"
                said.append(_verdict(name, ratio, goal))
    if ("plain", LARGE) in at:
        plain_row = at["plain", LARGE]
        said.append(_verdict("plain, 300 M rows: s", plain_row["seconds"], 22))
        said.append(_verdict("plain, 300 M rows: GB", plain_row["peak MB"] / 1e3, 3.5))
        lengths = at["list length", LARGE]["peak MB"] / 1e3
        said.append(_verdict("list length, 300 M rows: GB", lengths, 6))
    return said


def _verdict(name: str, value: float, goal: float) -> str:
    return f"{name}: goal {goal}, value {value:.2f}{'' if value <= goal else ', missed'}"


def main() -> None:
    """Measure and print."""
    options = _options()
    if options.measure:
        print(json.dumps(here(options.measure, *options.sizes)))
        return
    rows = growth(options.sizes, options.rounds)
    table = report.markdown(pl.DataFrame(rows))
    print(table)
    print(*verdicts(rows), sep="\n")
    if options.sizes == SIZES:
        report.fill(Path(__file__).parent / "README.md", "scale", table)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    sizes = "millions of rows of run"
    parser.add_argument("--sizes", type=int, nargs="+", choices=SIZES, default=SIZES, help=sizes)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=list(CASES), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
