"""A process of one side, warm once it has answered its first request.

Each line that comes in is a request, each line that goes out its answer, in JSON: labels ask for
numbers (and warm up), null for one measurement of the same.

A peer is a module of ``benchmarks.peers``:

    read(*files)              the tables, as users of the library hold them; not timed
    metric(measure, k)        the library's own metric (k None: over the whole list), or None
    convert(tables)           the tables as the library takes them; timed
    compute(inputs, metrics)  metrics by label -> means by label; timed
    DIFFERS                   measures which, with a cut-off, are another one in rankframe
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any


def main() -> None:
    """Serve requests until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    for answer in serve(*sys.argv[1:]):
        print(json.dumps(answer), file=answers, flush=True)


def serve(peer: str, *files: str) -> Iterator[dict[str, Any]]:
    """Import and read, then answer line by line."""
    start = perf_counter()
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    imported = perf_counter()
    tables = module.read(*map(Path, files))
    started = {"import_seconds": imported - start, "read_seconds": perf_counter() - imported}
    metrics: dict[str, Any] = {}
    for line in sys.stdin:
        labels = json.loads(line)
        if labels is None:
            yield _measured(module, tables, metrics)
            continue
        metrics = {label: module.metric(*parts(label)) for label in labels}
        metrics = {label: metric for label, metric in metrics.items() if metric is not None}
        begin = perf_counter()
        numbers = module.compute(module.convert(tables), metrics)
        yield {
            **started,
            "numbers": numbers,
            "twins": {label: twin(label, module.DIFFERS) for label in metrics},
            "first_seconds": perf_counter() - begin,
            "loaded_mb": reset_peak(),
        }


def _measured(module: Any, tables: Any, metrics: dict[str, Any]) -> dict[str, Any]:
    begin = perf_counter()
    inputs = module.convert(tables)
    converted = perf_counter()
    module.compute(inputs, metrics)
    ended = perf_counter()
    return {"convert": converted - begin, "compute": ended - converted, "peak_mb": peak()}


def parts(label: str) -> tuple[str, int | None]:
    """Split ``ndcg@10`` into measure and cut-off."""
    measure, at, k = label.partition("@")
    return measure, int(k) if at else None


def twin(label: str, differs: dict[str, str]) -> str:
    """Give the label by which rankframe computes the same number."""
    measure, at, k = label.partition("@")
    return differs.get(measure, measure) + at + k if at else label


# The kernel's own high-water mark of memory: exact, where samples miss peaks. Not ru_maxrss, which
# begins at the size of the parent. Spark computes in a child, so children count.


def peak() -> float:
    """Give the peak memory of this process and its children in MB; NaN where there is no /proc."""
    return _status("VmHWM")


def reset_peak() -> float:
    """Let the peak begin anew, and give the memory in use in MB."""
    for pid in _family():
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    return _status("VmRSS")


def _status(field: str) -> float:
    if not Path("/proc/self/status").exists():
        return float("nan")
    lines = [
        line
        for pid in _family()
        for line in Path(f"/proc/{pid}/status").read_text().splitlines()
        if line.startswith(field)
    ]
    return sum(int(line.split()[1]) for line in lines) / 1000


def _family(pid: str = "self") -> Iterator[str]:
    yield pid
    for children in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in children.read_text().split():
            yield from _family(child)


if __name__ == "__main__":
    main()
