"""A training loop that measures each batch: ``python -m benchmarks.meter``.

1,000 batches of 256 users, each with 20 scored items of which 5 are relevant, and five metrics:
``Meter`` after each batch, all batches once at the end, and torchmetrics. Each way runs in a
process of its own, in turn; what counts is the median. torchmetrics has an environment of its own;
it keeps all scores, and loops over users in Python when it computes.
"""

# /// script
# requires-python = ">=3.11"
# dependencies = ["torch==2.15.0", "torchmetrics==1.9.0", "numpy"]
# ///

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

GOAL = 3.0  # milliseconds of an update
METRICS = ("ndcg@10", "recall@10", "precision@10", "rr", "ap")
Batch = tuple[np.ndarray, np.ndarray, np.ndarray]


def batches(options: argparse.Namespace) -> Iterator[Batch]:
    """Draw users, their scores, and which items are relevant."""
    random = np.random.default_rng(1)
    shape = options.users, options.items
    for batch in range(options.batches):
        users = batch * options.users + np.arange(options.users)
        relevant = random.random(shape).argsort(axis=1) < options.relevant
        yield users, random.random(shape, dtype=np.float32), relevant


def _truth(users: np.ndarray, relevant: np.ndarray) -> Any:
    import polars as pl

    rows, items = relevant.nonzero()
    return pl.DataFrame({"user": users[rows], "item": items})


def of_meter(drawn: list[Batch]) -> tuple[float, list[float], list[float]]:
    """Measure each batch when it is there."""
    import rankframe as rf

    meter, updates, spent = rf.Meter(*METRICS), [], 0.0
    for users, scores, relevant in drawn:
        truth = _truth(users, relevant)
        begin = perf_counter()
        run = rf.from_scores(scores, user_ids=users)
        middle = perf_counter()
        meter.update(run, truth)
        updates.append(perf_counter() - middle)
        spent += perf_counter() - begin
    begin = perf_counter()
    values = list(meter.compute().row(0)[1:])
    return spent + perf_counter() - begin, values, updates


def of_the_end(drawn: list[Batch]) -> tuple[float, list[float], list[float]]:
    """Keep the scores, and measure all batches at once."""
    import polars as pl

    import rankframe as rf

    truth = pl.concat([_truth(users, relevant) for users, _, relevant in drawn])
    begin = perf_counter()
    run = pl.concat([rf.from_scores(scores, user_ids=users) for users, scores, _ in drawn])
    values = list(rf.evaluate(run, *METRICS, truth=truth).row(0)[1:])
    return perf_counter() - begin, values, []


def of_torchmetrics(drawn: list[Batch]) -> tuple[float, list[float], list[float]]:
    """Update five metrics of torchmetrics."""
    import torch
    from torchmetrics import retrieval

    metrics = [
        retrieval.RetrievalNormalizedDCG(top_k=10),
        retrieval.RetrievalRecall(top_k=10),
        retrieval.RetrievalPrecision(top_k=10),
        retrieval.RetrievalMRR(),
        retrieval.RetrievalMAP(),
    ]
    updates, spent = [], 0.0
    for users, scores, relevant in drawn:
        predicted, target = torch.from_numpy(scores).ravel(), torch.from_numpy(relevant).ravel()
        indexes = torch.from_numpy(users).repeat_interleave(scores.shape[1])
        begin = perf_counter()
        for metric in metrics:
            metric.update(predicted, target, indexes=indexes)
        updates.append(perf_counter() - begin)
        spent += updates[-1]
    begin = perf_counter()
    values = [float(metric.compute()) for metric in metrics]
    return spent + perf_counter() - begin, values, updates


WAYS: dict[str, Callable[[list[Batch]], tuple[float, list[float], list[float]]]] = {
    "Meter": of_meter,
    "once at the end": of_the_end,
    "torchmetrics": of_torchmetrics,
}


def measure(way: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run the loop in this process, warm by ten batches."""
    drawn = list(batches(options))
    WAYS[way](drawn[:10])
    seconds, values, updates = WAYS[way](drawn)
    each = 1000 * median(updates) if updates else None
    return {"update": each, "all": 1000 * seconds / len(drawn), "values": values}


def main() -> None:
    """Measure all ways in turn, or one of them in this process."""
    options = _options()
    if options.measure:
        print(json.dumps(measure(options.measure, options)))
        return
    import polars as pl

    from benchmarks import report

    runs: dict[str, list[dict[str, Any]]] = {way: [] for way in options.ways}
    for _ in range(options.rounds):
        for way in options.ways:
            runs[way].append(_elsewhere(way, options))
            print(way, runs[way][-1], file=sys.stderr, flush=True)
    values = [run["values"] for each in runs.values() for run in each]
    if not np.allclose(values, values[0], rtol=1e-5):  # torchmetrics has 32-bit floats
        sys.exit(f"not the same metrics: {values}")
    rows = []
    for way, each in runs.items():
        updates = [run["update"] for run in each if run["update"] is not None]
        row: dict[str, Any] = {
            "way": way,
            "ms per update": round(median(updates), 2) if updates else "",
        }
        row["ms per batch, with compute"] = round(median(run["all"] for run in each), 2)
        late = way == "Meter" and median(updates) > GOAL
        rows.append(
            {
                **row,
                "goal of an update": GOAL if way == "Meter" else "",
                "": "missed" if late else "",
            }
        )
    print(report.markdown(pl.DataFrame(rows, strict=False)))


def _elsewhere(way: str, options: argparse.Namespace) -> Any:
    """Measure a way in a fresh process, in the environment of its library."""
    python = options.torch if way == "torchmetrics" else sys.executable
    if not python:
        from pathlib import Path

        from benchmarks import environments
        from benchmarks.data import CACHE

        python = str(environments.interpreter(Path(__file__), CACHE / "environments"))
    names = ("batches", "users", "items", "relevant")
    command = [python, "-P", __file__, f"--measure={way}"]
    command += [f"--{name}={getattr(options, name)}" for name in names]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.meter",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--batches", type=int, default=1_000)
    add("--users", type=int, default=256)
    add("--items", type=int, default=20)
    add("--relevant", type=int, default=5)
    add("--rounds", type=int, default=3)
    add("--ways", nargs="+", choices=[*WAYS], default=[*WAYS])
    add("--torch", default="", help="a Python that has torchmetrics")
    add("--measure", choices=[*WAYS], help=argparse.SUPPRESS)
    return parser.parse_args()


if __name__ == "__main__":
    main()
