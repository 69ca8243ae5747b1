"""Simulations of what a test or an interval promises: cases in, a table of rates out.

A case draws runs with a seed of its own and says in which of them an event happens. What is done is
kept in ``benchmarks/.cache``, so that a simulation goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from math import sqrt
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from benchmarks import report
from benchmarks.data import CACHE

Array: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]
#: Of a number of users and of runs: systems × users × runs.
Draw: TypeAlias = Callable[[np.random.Generator, int, int], Array]
RUNS = 1000
AGAIN = 4  # times as many runs decide what seems to be missed


class Case(NamedTuple):
    """What is tested on which values, and how often the event may happen, or must."""

    test: str
    values: str
    users: str | int
    promised: str | None  # "≤ 0.05", "≥ 0.95", or None: a claim is not made
    find: Callable[[np.random.Generator, int], Bits]  # of a number of runs; systems in rows
    runs: int = RUNS


def table(cases: Sequence[Case], name: str, runs: int) -> pl.DataFrame:
    """Simulate all cases; of several systems, the one that the event hits most often counts.

    A miss, by more than two errors of the simulation, is simulated anew, and bold if it remains.
    """
    path = CACHE / f"{name}.json"
    kept: dict[str, list[float]] = json.loads(path.read_text()) if path.exists() else {}
    rows: list[dict[str, Any]] = []
    for case in cases:
        for number in (min(runs, case.runs), AGAIN * min(runs, case.runs)):
            key = "; ".join(map(str, [*case[:3], number]))
            if key not in kept:
                begin = perf_counter()
                rng = np.random.default_rng([*f"{case.values} {case.users} {number}".encode()])
                found = case.find(rng, number)
                kept[key] = [float(found.mean(axis=-1).max()), perf_counter() - begin]
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(json.dumps(kept, indent=1, ensure_ascii=False))
            measured, seconds = kept[key]
            error = sqrt(measured * (1 - measured) / number)
            missed = case.promised is not None and _beyond(measured, case.promised) > 2 * error
            if not missed:
                break
        text = f"{measured:.3f}"
        row = dict(zip(("test", "values", "users", "promised"), case[:4], strict=True))
        text = f"**{text}**" if missed else text
        row |= {"measured": text, "error": f"{error:.3f}", "runs": number}
        rows.append(row)
        print(*row.values(), f"{seconds:.1f} s", sep="\t", file=sys.stderr, flush=True)
    return pl.DataFrame(rows, infer_schema_length=None)


def _beyond(measured: float, promised: str) -> float:
    """Return by how much a rate breaks a promise such as ≤ 0.05."""
    side, bound = promised.split()
    return (measured - float(bound)) * (1 if side == "≤" else -1)


def options(name: str, doc: str | None) -> int:
    """Read how many runs a case has at most."""
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=doc)
    parser.add_argument("--runs", type=int, default=RUNS, help="at most, of each case")
    return int(parser.parse_args().runs)


def show(name: str, tables: Sequence[pl.DataFrame], runs: int) -> None:
    """Print tables, and put them into the page."""
    text = "\n\n".join(map(report.markdown, tables))
    print(text)
    if runs == RUNS:
        report.fill(Path(__file__).parent / "README.md", name.replace("_", " "), text)


# ------------------------------------------------------------------ values as tables


def frame_of(metrics: Mapping[str, Array], **of_users: Array) -> pl.DataFrame:
    """Make a table of systems × users × runs of each metric; a run is a segment."""
    shape = next(iter(metrics.values())).shape
    place, user, run = (index.ravel() for index in np.indices(shape))
    names = np.array([f"system {number:02}" for number in range(shape[0])])
    return pl.DataFrame(
        {
            "model": names[place],
            "user": user,
            "run": run,
            **{name: values.ravel() for name, values in metrics.items()},
            **{name: column[user] for name, column in of_users.items()},
        }
    )


def parts(matrix: Array, size: int = 50) -> list[Array]:
    """Split the runs, so that only a few of them share the resamples."""
    return np.split(matrix, range(size, matrix.shape[-1], size), axis=-1)


def least(frame: pl.DataFrame, column: str, runs: int) -> Array:
    """Return the least p-value of each run; 1 where there is none."""
    found = frame.group_by("run").agg(pl.col(column).min().fill_nan(None))
    every = pl.DataFrame({"run": np.arange(runs)}).join(found, on="run", how="left")
    return every.sort("run")[column].fill_null(1.0).to_numpy()
