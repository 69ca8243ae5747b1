"""From score matrices to lists, against other ways: ``python -m benchmarks.matrices``.

100 k users × 10 k items in 20 blocks, the 100 best of each user. One block of random scores stands
for all, so that no time goes into making them. Each way runs in a process of its own, in turn, warm
by a block of fewer users; what counts is the median. RecTools and ranx run in the environments of
their scripts in ``peers``: RecTools ranks one user after the other, ranx takes a dict of what NumPy
gives.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

HERE = Path(__file__).parent
Batches = Iterator[tuple[np.ndarray, np.ndarray]]


def of_rankframe(batches: Batches, k: int) -> float:
    """Make a run of rankframe."""
    import polars as pl

    import rankframe as rf

    run = pl.concat([rf.from_scores(block, k=k, user_ids=users) for users, block in batches])
    return float(run["score"].cast(float).sum())


def of_numpy(batches: Batches, k: int) -> float:
    """Make the same columns by hand, ties by chance: argpartition, a sort, one long table."""
    import polars as pl

    parts = []
    for users, block in batches:
        best, scores = _best(block, k)
        columns = {
            "user": np.repeat(users, k),
            "item": best.ravel(),
            "score": scores.ravel(),
            "rank": np.tile(np.arange(1, k + 1), len(users)),
        }
        parts.append(pl.DataFrame(columns))
    return float(pl.concat(parts, rechunk=True)["score"].cast(float).sum())


def of_rectools(batches: Batches, k: int) -> float:
    """Make the table that RecTools' metrics take, by its own function."""
    import pandas as pd
    from rectools import Columns
    from rectools.models.utils import recommend_from_scores

    users, items, scores = [], [], []
    for of_batch, block in batches:
        for user, row in zip(of_batch, block, strict=True):
            best, values = recommend_from_scores(row, k)
            users.append(np.repeat(user, k))
            items.append(best)
            scores.append(values)
    columns = [Columns.User, Columns.Item, Columns.Score]
    values = map(np.concatenate, (users, items, scores))
    table = pd.DataFrame(dict(zip(columns, values, strict=True)))
    table[Columns.Rank] = table.groupby(Columns.User, sort=False).cumcount() + 1
    return float(table[Columns.Score].astype(float).sum())


def of_ranx(batches: Batches, k: int) -> float:
    """Make ranx' Run of text ids."""
    from ranx import Run

    found = {}
    total = 0.0
    for users, block in batches:
        best, scores = _best(block, k)
        total += float(scores.astype(float).sum())
        for user, items, values in zip(users, best, scores, strict=True):
            found[str(user)] = dict(zip(map(str, items), values.tolist(), strict=True))
    Run(found)
    return total


WAYS: dict[str, Callable[[Batches, int], float]] = {
    "rankframe": of_rankframe,
    "numpy": of_numpy,
    "rectools": of_rectools,
    "ranx": of_ranx,
}


def _best(block: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    best = np.argpartition(block, -k, axis=1)[:, -k:]
    scores = np.take_along_axis(block, best, axis=1)
    order = np.argsort(-scores, axis=1)
    return np.take_along_axis(best, order, axis=1), np.take_along_axis(scores, order, axis=1)


def measure(way: str, options: argparse.Namespace) -> dict[str, float]:
    """Make the lists in this process."""
    block = np.random.default_rng(1).random((options.batch, options.items), dtype=np.float32)
    WAYS[way](iter([(np.arange(100), block[:100])]), options.k)
    begin = perf_counter()
    starts = range(0, options.users, options.batch)
    total = WAYS[way](((start + np.arange(len(block)), block) for start in starts), options.k)
    spent = perf_counter() - begin
    return {"seconds": spent, "sum": total, "peak_mb": _peak()}


def _peak() -> float:
    """Give the kernel's high-water mark of memory; NaN where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1000 for line in lines if line[:6] == "VmHWM:"), np.nan)


def main() -> None:
    """Measure all ways in turn, or one of them in this process."""
    options = _options()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return
    import polars as pl

    from benchmarks import report

    runs: dict[str, list[dict[str, float]]] = {way: [] for way in options.ways}
    for _ in range(options.rounds):
        for way in options.ways:
            runs[way].append(_elsewhere(way, options))
            print(way, runs[way][-1], file=sys.stderr, flush=True)
    sums = [run["sum"] for each in runs.values() for run in each]
    if not np.allclose(sums, sums[0], rtol=1e-9):
        sys.exit(f"not the same lists: {sums}")
    own = median(run["seconds"] for run in runs["rankframe"])
    rows = []
    for way, each in runs.items():
        seconds = median(run["seconds"] for run in each)
        row = {"way": way, "seconds": round(seconds, 2), "ratio": round(seconds / own, 2)}
        rows.append(row | {"peak MB": round(max(run["peak_mb"] for run in each))})
    print(report.markdown(pl.DataFrame(rows)))


def _elsewhere(way: str, options: argparse.Namespace) -> Any:
    """Measure a way in a fresh process, in the environment of its library."""
    from benchmarks import environments
    from benchmarks.data import CACHE

    python = sys.executable
    if way in ("rectools", "ranx"):
        script = HERE / "peers" / f"{way}.py"
        python = str(environments.interpreter(script, CACHE / "environments"))
    asked = [f"--{name}={getattr(options, name)}" for name in ("users", "items", "batch", "k")]
    command = [python, "-P", __file__, f"--measure={way}", *asked]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.matrices",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--users", type=int, default=100_000)
    add("--items", type=int, default=10_000)
    add("--batch", type=int, default=5_000)
    add("--k", type=int, default=100)
    add("--rounds", type=int, default=3)
    add("--ways", nargs="+", choices=[*WAYS], default=[*WAYS])
    add("--measure", choices=[*WAYS], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
