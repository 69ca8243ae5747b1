"""Compare measures beyond accuracy with peers: ``python -m benchmarks.beyond``.

First all libraries compute on a small data set, with short lists. What does not agree is named, and
ends the run. Then peer and rankframe take turns on the same files, each in a process of its own,
warm; what counts is the best of several.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import polars as pl

from benchmarks import environments, report
from benchmarks.beyond_data import files
from benchmarks.run import TOLERANCE, side

HERE = Path(__file__).parent
OWN = "beyond_rankframe"
GENRES, VECTORS = "ild(of=genre, distance=hamming)@10", "ild(of=vector)@10"
#: The labels of rankframe for what each library has.
LABELS = {
    "rectools": ["novelty@10", "popularity@10", "serendipity@10", GENRES, "coverage@10"],
    "replay": [
        "novelty(normalize=true, divide_by=k)@10",
        "unseen@10",
        "coverage@10",
        "categories(of=main)@10",
    ],
    "recommenders": ["coverage@10", "entropy@10", VECTORS],
}
ALL = "all"
COLUMNS = ["metrics", "against", "seconds", "rankframe_seconds", "goal", "ratio", "verdict"]
COLUMNS += ["peak_mb", "rankframe_peak_mb"]

Ask = Callable[[list[str] | None], dict[str, Any]]
Row = dict[str, Any]


class Best(NamedTuple):
    """The best seconds and the highest peak in MB."""

    seconds: float
    peak: float


# ------------------------------------------------------------------ the same numbers


def checked() -> Iterator[Row]:
    """Compare all numbers on the small data set."""
    made = files("check")
    for peer, labels in LABELS.items():
        try:
            with side(f"beyond_{peer}", made) as them, side(OWN, made) as us:
                theirs, ours = them(labels)["numbers"], us(labels)["numbers"]
        except RuntimeError as error:
            print(f"{_title(peer)}: not compared: {error}", file=sys.stderr)
            continue
        for label in labels:
            number, own = theirs[label], ours[label]
            yield {
                "metric": label,
                "against": _title(peer),
                "number": number,
                "rankframe": own,
                "difference": abs(number - own),
                "same": math.isclose(number, own, rel_tol=TOLERANCE),
            }


# ------------------------------------------------------------------ time and memory


def timed(options: argparse.Namespace) -> Iterator[Row]:
    """Time everything, one comparison after the other."""
    million = files("1 M", small=options.small)
    for peer, together in {"rectools": 5.0, "replay": 10.0}.items():
        for labels in [LABELS[peer], *([label] for label in LABELS[peer])]:
            goal = together if peer == "replay" or len(labels) > 1 else 1.0
            yield _against(peer, million, labels, goal, options.rounds)
    yield _vectors(million, options.rounds)


def _against(peer: str, made: tuple[Path, ...], labels: list[str], goal: float, rounds: int) -> Row:
    """Time a peer and rankframe in turn."""
    row = {"metrics": labels[0] if len(labels) == 1 else ALL, "against": _title(peer)}
    try:
        with side(f"beyond_{peer}", made) as them, side(OWN, made) as us:
            them(labels)
            us(labels)
            turns = [(them(None), us(None)) for _ in range(rounds)]
    except RuntimeError as error:
        return row | {"verdict": str(error)}
    return row | _speed(turns, goal)


def _vectors(made: tuple[Path, ...], rounds: int) -> Row:
    """Time the diversity of vectors against that of sets, both by rankframe."""
    with side(OWN, made) as sets, side(OWN, made) as vectors:
        sets([GENRES])
        vectors([VECTORS])
        turns = [(sets(None), vectors(None)) for _ in range(rounds)]
    return {"metrics": VECTORS, "against": "genres, distance=hamming"} | _speed(turns, 0.5)


def _best(turns: tuple[dict[str, float], ...]) -> Best:
    seconds = min(turn["convert"] + turn["compute"] for turn in turns)
    return Best(seconds, max(turn["peak_mb"] for turn in turns))


def _speed(turns: list[tuple[dict[str, float], dict[str, float]]], goal: float) -> Row:
    theirs, ours = (_best(turns) for turns in zip(*turns, strict=True))
    ratio = theirs.seconds / ours.seconds
    return {
        "seconds": theirs.seconds,
        "rankframe_seconds": ours.seconds,
        "goal": f"≥ {goal:.2g}",
        "ratio": ratio,
        "verdict": "met" if ratio >= goal else "missed",
        "peak_mb": theirs.peak,
        "rankframe_peak_mb": ours.peak,
    }


# ------------------------------------------------------------------ the table


def table(rows: list[Row]) -> pl.DataFrame:
    """Make one table, rounded."""
    frame = pl.DataFrame([{name: row.get(name) for name in COLUMNS} for row in rows])
    return frame.with_columns(
        pl.col("seconds", "rankframe_seconds").cast(pl.Float64).round(3),
        pl.col("ratio").cast(pl.Float64).round_sig_figs(2),
        pl.col("peak_mb", "rankframe_peak_mb").cast(pl.Float64).round(0),
    )


def _title(peer: str) -> str:
    """Name the library and its version."""
    asked = environments.metadata(HERE / "peers" / f"beyond_{peer}.py")["dependencies"][0]
    return str(asked).replace("==", " ")


def main() -> None:
    """Compare the numbers, then the times."""
    options = _options()
    numbers = pl.DataFrame(list(checked()))
    print(report.markdown(numbers))
    if not numbers["same"].all():
        sys.exit("not the same numbers: nothing is timed")
    rows: list[Row] = []
    for row in timed(options):
        rows.append(row)
        print(*(row.get(name) for name in COLUMNS), sep="\t", flush=True)
    text = report.markdown(table(rows))
    print(text)
    if not options.small:
        report.fill(HERE / "README.md", "beyond", text)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.beyond",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("--small", action="store_true", help="1/50 of the users and items; keeps no results")
    add("--rounds", type=int, default=3, help="measurements of each side, in turn")
    return parser.parse_args()


if __name__ == "__main__":
    main()
