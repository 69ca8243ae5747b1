"""Compare rankframe with its peers: ``python -m benchmarks.run``.

Each peer in its own environment, on the same files. For each data set, set of metrics and peer:

1. Both sides compute once. What does not agree is not timed, and is named.
2. Peer and rankframe take turns on the metrics that agree, each in a process of its own, warm.
"""

from __future__ import annotations

import argparse
import contextlib
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
PEERS = ["polars_join", "rankframe_pandas", "rectools", "pytrec_eval", "ranx", "replay", "spark"]
PEERS += ["scikit_learn"]
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
    with side(peer, made) as them, side("rankframe", made) as us:
        theirs = them(labels)
        twins = theirs["twins"]
        ours = us(list(twins.values()))
        pairs = [
            (label, number, ours["numbers"][twins[label]])
            for label, number in theirs["numbers"].items()
        ]
        same = [label for label, number, own in pairs if _agree(number, own)]
        differ = [
            f"{label} = {number}, not {own}" for label, number, own in pairs if label not in same
        ]
        found = {
            "metrics": len(same),
            "missing": _listed(parts(label)[0] for label in labels if label not in twins),
            "different": _listed(differ),
        }
        if not same:
            return found
        if theirs["first_seconds"] > options.patience:
            return found | {"remark": f"one pass took {theirs['first_seconds']:.0f} s: not timed"}
        if differ:  # both go on with what is the same, warm
            theirs, ours = them(same), us([twins[label] for label in same])
        turns = [(them(None), us(None)) for _ in range(options.rounds)]
    return found | _figures(theirs, *zip(*turns, strict=True))


def _agree(number: float | None, own: float) -> bool:
    """Tell if two means are the same; None is the floor's, which computes none."""
    return number is None or math.isclose(number, own, rel_tol=TOLERANCE)


def _listed(texts: Iterable[str]) -> str | None:
    return ", ".join(dict.fromkeys(texts)) or None


def _figures(
    started: dict[str, Any], them: tuple[dict[str, float], ...], us: tuple[dict[str, float], ...]
) -> dict[str, float]:
    """Reduce the turns: medians of seconds, the highest peak of memory."""
    convert = median(turn["convert"] for turn in them)
    compute = median(turn["compute"] for turn in them)
    seconds, own = (
        median(turn["convert"] + turn["compute"] for turn in side) for side in (them, us)
    )
    return {
        "convert_seconds": convert,
        "compute_seconds": compute,
        "seconds": seconds,
        "rankframe_seconds": own,
        "ratio": seconds / own,
        "ratio_without_conversion": compute / own,
        "peak_mb": max(turn["peak_mb"] for turn in them),
        "rankframe_peak_mb": max(turn["peak_mb"] for turn in us),
        **{name: started[name] for name in ("loaded_mb", "import_seconds", "read_seconds")},
    }


@contextlib.contextmanager
def side(peer: str, made: Iterable[Path]) -> Iterator[Callable[[list[str] | None], dict[str, Any]]]:
    """Start a process of the peer's environment, which keeps the tables; give what asks it.

    To ask is to wait for the answer; it raises ``RuntimeError`` with the last line that the process
    has to say if it ended. So does an environment that cannot be made.
    """
    python = environments.interpreter(_script(peer), CACHE / "environments")
    command = [python, "-m", "benchmarks.worker", peer, *made]
    with (
        tempfile.TemporaryFile("w+") as errors,  # a pipe that nobody reads fills up
        subprocess.Popen(
            list(map(str, command)),
            cwd=HERE.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):

        def ask(request: list[str] | None) -> dict[str, Any]:
            assert process.stdin
            assert process.stdout
            with contextlib.suppress(BrokenPipeError):  # it has ended: what it said tells why
                print(json.dumps(request), file=process.stdin, flush=True)
            if answer := process.stdout.readline():
                return json.loads(answer)
            status = process.wait()
            errors.seek(0)
            said = errors.read().strip().splitlines() or [f"ended with {status}"]
            msg = f"{peer}: {said[-1]}"
            raise RuntimeError(msg)

        yield ask


def _script(peer: str) -> Path:
    return HERE / "peers" / f"{peer}.py"


def _title(peer: str) -> str:
    """Name the peer's distribution and version."""
    if peer in (named := {"polars_join": "bare join", "rankframe_pandas": "rankframe, pandas"}):
        return named[peer]
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
    add("--rounds", type=int, default=5, help="measurements of each side, in turn")
    add("--patience", type=float, default=300, help="who takes longer for one pass is not timed")
    return parser.parse_args()


if __name__ == "__main__":
    main()
