"""Compare rankframe with its peers: ``python -m benchmarks.run``.

Each peer in its own environment, on the same files. For each data set, set of metrics and peer:

1. Both sides compute once. What does not agree is not timed, and is named.
2. Peer and rankframe take turns, each time in a fresh process, on the metrics that agree.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import tempfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks import environments, report
from benchmarks.data import CACHE, SHAPES, Files, files
from benchmarks.suites import SUITES
from benchmarks.worker import parts

HERE = Path(__file__).parent
PEERS = ["polars_join", "rectools", "pytrec_eval", "ranx", "replay", "spark", "scikit_learn"]
#: How far means of doubles may be apart, relatively.
TOLERANCE = 1e-9


def main() -> None:
    """Measure cell by cell, a data set and a set of metrics, and show the results."""
    options = _options()
    where = CACHE / "small" if options.small else HERE
    where.mkdir(parents=True, exist_ok=True)
    kept = where / "results.csv"
    for shape, ids, suite in _cells(options):
        made = files(shape, ids, small=options.small)
        cell = {"shape": shape, "ids": ids, "suite": suite}
        rows = []
        for peer in options.peers:
            print(shape, ids, suite, peer, flush=True)
            rows.append({**cell, "peer": _title(peer)})
            try:
                rows[-1] |= compare(peer, made, SUITES[suite], options)
            except RuntimeError as error:  # the others go on
                rows[-1]["remark"] = str(error)
        report.keep(kept, rows, cell)
    report.show(report.read(kept), where, readme=None if options.small else HERE / "README.md")


def compare(
    peer: str, made: Files, labels: list[str], options: argparse.Namespace
) -> dict[str, Any]:
    """Compare a peer's numbers with rankframe's, then time both on what they share."""
    theirs = ask(peer, made, labels)
    twins = theirs["twins"]
    ours = ask("rankframe", made, list(twins.values()))["numbers"]
    numbers = [(label, number, ours[twins[label]]) for label, number in theirs["numbers"].items()]
    same = [label for label, number, own in numbers if _agree(number, own)]
    found = {
        "metrics": len(same),
        "missing": _listed(parts(label)[0] for label in labels if label not in twins),
        "different": _listed(
            f"{label} = {number}, not {own}" for label, number, own in numbers if label not in same
        ),
    }
    if not same:
        return found
    if theirs["first_seconds"] > options.patience:
        return found | {"remark": f"one pass took {theirs['first_seconds']:.0f} s: not timed"}

    measured = (options.repeats, options.seconds)
    turns = [
        (
            ask(peer, made, same, *measured),
            ask("rankframe", made, [twins[label] for label in same], *measured),
        )
        for _ in range(options.rounds)
    ]
    return found | _figures(*zip(*turns, strict=True))


def _agree(number: float | None, own: float) -> bool:
    """Tell if two means are the same; None is the floor's, which computes none."""
    return number is None or math.isclose(number, own, rel_tol=TOLERANCE)


def _listed(texts: Iterable[str]) -> str | None:
    return ", ".join(dict.fromkeys(texts)) or None


def _figures(them: tuple[dict[str, Any], ...], us: tuple[dict[str, Any], ...]) -> dict[str, float]:
    """Reduce what the processes saw: medians of seconds, the highest peak of memory."""
    convert = _median(them, lambda timed: timed[0])
    compute = _median(them, lambda timed: timed[1])
    seconds, own = _median(them, sum), _median(us, sum)
    return {
        "convert_seconds": convert,
        "compute_seconds": compute,
        "seconds": seconds,
        "rankframe_seconds": own,
        "ratio": seconds / own,
        "ratio_without_conversion": compute / own,
        "peak_mb": max(one["peak_mb"] for one in them),
        "rankframe_peak_mb": max(one["peak_mb"] for one in us),
        "loaded_mb": max(one["loaded_mb"] for one in them),
        "import_seconds": median(one["import_seconds"] for one in them),
        "read_seconds": median(one["read_seconds"] for one in them),
    }


def _median(processes: tuple[dict[str, Any], ...], part: Callable[[Any], float]) -> float:
    """Take the median within each process, then that of the processes."""
    return median(median(map(part, one["timed"])) for one in processes)


def ask(peer: str, made: Files, labels: list[str], repeats: int = 0, seconds: float = 0.0) -> Any:
    """Let a fresh process of the peer's environment measure.

    Raises ``RuntimeError`` with the last line of what the process or pip has to say.
    """
    python = environments.interpreter(_script(peer), CACHE / "environments")
    request = {
        "peer": peer,
        "run": str(made.run),
        "truth": str(made.truth),
        "labels": labels,
        "repeats": repeats,
        "seconds": seconds,
    }
    with tempfile.TemporaryDirectory() as folder:
        asked, answered = Path(folder, "request.json"), Path(folder, "answer.json")
        asked.write_text(json.dumps(request))
        command = [str(python), "-m", "benchmarks.worker", str(asked), str(answered)]
        ended = subprocess.run(
            command, cwd=HERE.parent, capture_output=True, text=True, check=False
        )
        if ended.returncode:
            said = ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"]
            msg = f"{peer}: {said[-1]}"
            raise RuntimeError(msg)
        return json.loads(answered.read_text())


def _script(peer: str) -> Path:
    return HERE / "peers" / f"{peer}.py"


def _title(peer: str) -> str:
    """Name the peer's distribution and version."""
    if peer == "polars_join":
        return "bare join"
    return str(environments.metadata(_script(peer))["dependencies"][0]).replace("==", " ")


def _cells(options: argparse.Namespace) -> Iterator[tuple[str, Any, str]]:
    """Go through the cells: all shapes with integers, (c) also with strings, unless told."""
    for shape in options.shapes:
        for ids in options.ids or (["integer", "string"] if shape == "c" else ["integer"]):
            for suite in options.suites:
                yield shape, ids, suite


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.run",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--small", action="store_true", help="1/50 of the users; the results are not kept")
    add("--peers", nargs="+", choices=PEERS, default=PEERS)
    add("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    add("--ids", nargs="+", choices=["integer", "string"], help="by default both for (c) only")
    add("--suites", nargs="+", choices=list(SUITES), default=list(SUITES))
    add("--rounds", type=int, default=5, help="fresh processes of each side")
    add("--repeats", type=int, default=5, help="measurements in a process, at most")
    add("--seconds", type=float, default=10, help="a process begins no further one after so long")
    add("--patience", type=float, default=300, help="who takes longer for one pass is not timed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
