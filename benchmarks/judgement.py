"""Time and memory of judging many systems: ``python -m benchmarks.judgement``.

20 systems, 20 metrics, 100,000 users and lists of 10, over Parquet. ``per_user`` is the floor:
``compare`` evaluates the same, and tests what comes out. With a baseline there are 19 pairs for
each metric, without one 190. Each measurement is a process of its own, which is asked for its peak
of memory at its end.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np
import polars as pl

import rankframe as rf
from benchmarks import report
from benchmarks.data import CACHE, SEED, Shape, tables, write
from benchmarks.worker import peak

USERS = [5_000, 100_000]
SYSTEMS = 20
DEPTH = 10
METRICS = [
    f"{measure}@{k}"
    for measure in ("precision", "recall", "ndcg", "ap", "rr")
    for k in (1, 3, 5, 10)
]
BASELINE = "system-00"


def floor(users: int) -> pl.LazyFrame:
    """Compute the values of users, without a comparison."""
    run, truth = scan(users)
    return rf.per_user(run, *METRICS, truth=truth, by="model")


def with_baseline(users: int) -> pl.LazyFrame:
    """Test 19 pairs for each metric."""
    run, truth = scan(users)
    return rf.compare(run, *METRICS, truth=truth, baseline=BASELINE)


def every_pair(users: int) -> pl.LazyFrame:
    """Test 190 pairs for each metric."""
    run, truth = scan(users)
    return rf.compare(run, *METRICS, truth=truth)


def randomization(users: int) -> pl.LazyFrame:
    """Flip signs 10,000 times for 19 pairs and each metric."""
    run, truth = scan(users)
    return rf.compare(run, *METRICS, truth=truth, baseline=BASELINE, test="randomization")


def ready(users: int) -> pl.LazyFrame:
    """Flip signs of the values of ``per_user``, so that the memory is that of the test."""
    values = pl.scan_parquet(_ready_values(users))
    return rf.compare(values, *METRICS, baseline=BASELINE, test="randomization")


CASES: dict[str, Callable[[int], pl.LazyFrame]] = {
    "per_user": floor,
    "t, 19 pairs": with_baseline,
    "t, 190 pairs": every_pair,
    "randomization, 19 pairs": randomization,
    "randomization of ready values": ready,
}
RESAMPLED = ["randomization, 19 pairs", "randomization of ready values"]  # once is enough


def scan(users: int) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Scan the runs of all systems and their truth, made if they are not there."""
    made = write(CACHE / "data" / f"judgement-{users}", lambda: systems(users))
    return pl.scan_parquet(made.run), pl.scan_parquet(made.truth)


def _ready_values(users: int) -> Path:
    path = CACHE / "data" / f"judgement-{users}" / "values.parquet"
    if not path.exists():
        floor(users).sink_parquet(path)
    return path


def systems(users: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Make the runs: each system has the same lists, in an order of its own."""
    run, truth = tables(Shape(users, DEPTH, 3, 10))
    runs: list[pl.DataFrame] = []
    for number in range(SYSTEMS):
        rng = np.random.default_rng([SEED, number])
        noise = rng.normal(0, 2 + number / SYSTEMS, (users, DEPTH))
        order = (np.arange(DEPTH) + noise).argsort(axis=1).argsort(axis=1) + 1
        model = pl.lit(f"system-{number:02}").alias("model")
        runs.append(run.select("user", "item", model, rank=pl.Series(order.ravel())))
    return pl.concat(runs), truth


def measure(case: str, users: int) -> Any:
    """Run once, in a fresh process."""
    asked = ["--measure", case, "--users", str(users)]
    command = [sys.executable, "-m", "benchmarks.judgement", *asked]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def here(case: str, users: int) -> dict[str, float]:
    """Run once, in this process."""
    import_module("rankframe._comparison.statistics")  # SciPy takes a second to import
    begin = perf_counter()
    CASES[case](users).collect()
    return {"seconds": perf_counter() - begin, "peak_mb": peak()}


def judged(users: int, rounds: int) -> list[dict[str, Any]]:
    """Measure every case, the cases in turn, and divide by the floor."""
    _ready_values(users)
    seen: dict[str, list[dict[str, float]]] = {case: [] for case in CASES}
    for number in range(rounds):
        for case in CASES:
            if number == 0 or case not in RESAMPLED:
                seen[case].append(measure(case, users))
                print(case, *seen[case][-1].values(), sep="\t", file=sys.stderr, flush=True)
    seconds = {case: median(one["seconds"] for one in times) for case, times in seen.items()}
    return [
        {
            "case": case,
            "users": users,
            "seconds": round(seconds[case], 2),
            "times per_user": round(seconds[case] / seconds["per_user"], 2),
            "peak MB": round(max(one["peak_mb"] for one in times)),
        }
        for case, times in seen.items()
    ]


def verdicts(rows: list[dict[str, Any]]) -> list[str]:
    """Hold the cases against their targets."""
    of = {row["case"]: row for row in rows}
    said = [
        _verdict(f"{case}: times per_user", of[case]["times per_user"], 3)
        for case in ("t, 19 pairs", "t, 190 pairs")
    ]
    above = of[RESAMPLED[0]]["peak MB"] / of["per_user"]["peak MB"]
    said.append(_verdict(f"{RESAMPLED[0]}: memory, times per_user", above, 1.1))
    said.append(_verdict(f"{RESAMPLED[1]}: GB", of[RESAMPLED[1]]["peak MB"] / 1e3, 2))
    return said


def _verdict(name: str, value: float, target: float) -> str:
    return f"{name}: {value:.2f}, target {target}: {'pass' if value <= target else 'FAIL'}"


def main() -> None:
    """Measure and print."""
    options = _options()
    if options.measure:
        print(json.dumps(here(options.measure, options.users)))
        return
    rows = judged(options.users, options.rounds)
    table = report.markdown(pl.DataFrame(rows))
    said = verdicts(rows)
    print(table, *said, sep="\n")
    if options.users == USERS[-1]:
        text = "\n\n".join([table, *said])
        report.fill(Path(__file__).parent / "README.md", "judgement", text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.judgement", description=__doc__)
    parser.add_argument("--users", type=int, choices=USERS, default=USERS[-1])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--measure", choices=list(CASES), help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
