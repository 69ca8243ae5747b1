"""One measurement in a fresh process: reads a request, measures a peer, writes what it saw.

A peer is a module of ``benchmarks.peers``:

    read(run, truth)          the tables, as users of the library hold them; not timed
    metric(measure, k)        the library's own metric (k None: over the whole list), or None
    convert(tables)           the tables as the library takes them; timed
    compute(inputs, metrics)  metrics by label -> means by label; timed
    DIFFERS                   measures which, with a cut-off, are another one in rankframe
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any


def main() -> None:
    """Serve the request in the file given first, into the file given second."""
    request = json.loads(Path(sys.argv[1]).read_text())
    Path(sys.argv[2]).write_text(json.dumps(measure(**request)))


def measure(
    peer: str, run: str, truth: str, labels: list[str], repeats: int, seconds: float
) -> dict[str, Any]:
    """Import, read, warm up by one pass, then measure until ``repeats`` or ``seconds`` is over."""
    start = perf_counter()
    module = importlib.import_module(f"benchmarks.peers.{peer}")
    imported = perf_counter()
    tables = module.read(Path(run), Path(truth))
    read = perf_counter()

    metrics = {label: module.metric(*parts(label)) for label in labels}
    metrics = {label: metric for label, metric in metrics.items() if metric is not None}
    begin = perf_counter()
    numbers = module.compute(module.convert(tables), metrics)
    first = perf_counter() - begin
    loaded = reset_peak()
    timed: list[tuple[float, float]] = []
    while len(timed) < repeats and (not timed or sum(map(sum, timed)) < seconds):
        begin = perf_counter()
        inputs = module.convert(tables)
        converted = perf_counter()
        module.compute(inputs, metrics)
        timed.append((converted - begin, perf_counter() - converted))
        del inputs
    return {
        "numbers": numbers,
        "twins": {label: twin(label, module.DIFFERS) for label in metrics},
        "first_seconds": first,
        "timed": timed,
        "import_seconds": imported - start,
        "read_seconds": read - imported,
        "loaded_mb": loaded,
        "peak_mb": peak(),
    }


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
