"""Ratios of rankframe to plain polars, and of rankframe to itself: ``python -m benchmarks.ratios``.

All in one process, baseline and candidate in turn, the tables in memory. Ends with status 1 if a
goal is missed.
"""

from __future__ import annotations

import argparse
import compileall
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import NamedTuple

import polars as pl

import rankframe as rf
from benchmarks import report
from benchmarks.data import Ids, files
from benchmarks.suites import FIVE, GRID
from benchmarks.timing import alternate, seconds

EXPRESSIONS = [rf.metrics.of_label(label) for label in FIVE]

Call = Callable[[], object]


class Comparison(NamedTuple):
    """A candidate, its baseline, and how many times as long it may take."""

    name: str
    goal: float
    baseline: Call
    candidate: Call


class Tables(NamedTuple):
    """A run with ranks, the same with scores only, and the truth."""

    run: pl.DataFrame
    scored: pl.DataFrame
    truth: pl.DataFrame

    def join(self) -> object:
        """Find the hits: the floor, as the streaming engine does it, and no metric."""
        joined = self.run.lazy().join(self.truth.lazy(), on=["user", "item"])
        return joined.collect(engine="streaming")

    def five(self) -> object:
        """Evaluate five metrics."""
        return rf.evaluate(self.run, *FIVE, truth=self.truth)

    def grid(self) -> object:
        """Evaluate the grid."""
        return rf.evaluate(self.run, *GRID, truth=self.truth)

    def five_by_score(self) -> object:
        """Evaluate five metrics, the ranks made on the way."""
        return rf.evaluate(self.scored, *FIVE, truth=self.truth)

    def shuffled(self) -> Tables:
        """Put the rows in random order."""
        return Tables(*(frame.sample(fraction=1, shuffle=True, seed=1) for frame in self))


#: Times the streaming join: five metrics, the grid, five metrics from scores, and of text ids.
GOALS = {"a": (1.25, 2.0, 2.5, 1.5), "b": (1.6, 2.8, 2.5, 2.0), "c": (2.0, 3.5, 3.5, 2.0)}


def comparisons(shapes: list[str], *, small: bool) -> Iterator[Comparison]:
    """Give all comparisons, each when it is its turn, so that few tables are in memory."""
    for shape in shapes:
        five, grid, scores, text = GOALS[shape]
        tables = load(shape, "integer", small=small)
        yield Comparison(f"five metrics / join, ({shape})", five, tables.join, tables.five)
        yield Comparison(f"50 metrics / join, ({shape})", grid, tables.join, tables.grid)
        by_score = f"from scores, five metrics / join, ({shape})"
        yield Comparison(by_score, scores, tables.join, tables.five_by_score)
        if shape == "a":
            yield from on_a(tables)
        del tables
        texts = load(shape, "string", small=small)
        yield Comparison(f"text ids, five metrics / join, ({shape})", text, texts.join, texts.five)


def on_a(tables: Tables) -> Iterator[Comparison]:
    """Compare what has a goal on (a) only."""
    mixed = tables.shuffled()
    yield Comparison("five metrics / join, (a) shuffled", 1.35, mixed.join, mixed.five)
    name = "from scores, five metrics / join, (a) shuffled"
    yield Comparison(name, 6.0, mixed.join, mixed.five_by_score)
    del mixed

    judged = rf.judge(tables.run, tables.truth)
    relevant = judged.lazy().filter(pl.col("relevance") > 0).sort("user", "rank")
    grouped = relevant.group_by("user", maintain_order=True).agg(pl.col("rank").sum())
    yield Comparison(
        "judged table, five metrics / sort and grouping of its relevant rows, (a)",
        2.0,
        lambda: grouped.collect(engine="streaming"),
        lambda: rf.evaluate(judged, *FIVE),
    )

    def compose(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rf.metrics.rows(rows).group_by("user").agg(EXPRESSIONS)

    judged_plan = rf.judge(tables.run.lazy(), tables.truth)
    yield Comparison(
        "composed by hand / per_user, (a)",
        1.3,
        lambda: rf.per_user(tables.run, *FIVE, truth=tables.truth),
        lambda: compose(judged_plan).collect(),
    )
    yield Comparison(
        "composed by hand / per_user, (a) judged",
        1.3,
        lambda: rf.per_user(judged, *FIVE),
        lambda: compose(judged.lazy()).collect(),
    )


def small_calls(rounds: int) -> Iterator[list[object]]:
    """Time calls on 100 rows, which people make in loops, against a number of milliseconds."""
    run = pl.DataFrame({"user": [i // 10 for i in range(100)], "item": list(range(100))})
    run = run.with_columns(rank=pl.col("item") % 10 + 1)
    truth = run.select("user", "item").gather_every(3)
    for name, metrics, goal in (("five metrics", FIVE, 4), ("one metric", ["ndcg@10"], 3)):

        def call(metrics: list[str] = metrics) -> object:
            return rf.evaluate(run, *metrics, truth=truth)

        seconds(call)
        spent = median(seconds(call) for _ in range(20 * rounds))
        yield _row(f"100 rows, {name} / {goal} ms", goal / 1e3, spent, 1.0)


def load(shape: str, ids: Ids, *, small: bool) -> Tables:
    """Read the tables of a shape."""
    made = files(shape, ids, small=small)
    run = pl.read_parquet(made.run)
    return Tables(run.drop("score"), run.drop("rank"), pl.read_parquet(made.truth))


# Start-up takes fresh processes, which tell their seconds.

CLOCK = "from time import perf_counter; begin = perf_counter(); {}; print(perf_counter() - begin)"
FIRST_CALL = """
import polars as pl
import rankframe as rf
run = pl.DataFrame({"user": [i // 10 for i in range(100)], "item": list(range(100))})
run = run.with_columns(rank=pl.col("item") % 10 + 1)
truth = run.select("user", "item").gather_every(3)
""" + CLOCK.format(f"run.rank.evaluate(*{FIVE}, truth=truth)")


def start_up(rounds: int) -> Iterator[list[object]]:
    """Compare the imports, and time the first call."""
    compileall.compile_dir(Path(rf.__file__).parent, quiet=1)  # as installed from a wheel
    codes = [CLOCK.format("import polars"), CLOCK.format("import rankframe"), FIRST_CALL]
    turns = [[_fresh(code) for code in codes] for _ in range(rounds + 1)]
    polars, own, call = map(median, zip(*turns[1:], strict=True))  # the first fills disk caches
    yield _row("import rankframe / import polars", polars, own, 1.1)
    yield _row("first call, 100 rows / 15 ms", 0.015, call, 1.0)


def _fresh(code: str) -> float:
    ended = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True
    )
    return float(ended.stdout)


def _row(name: str, baseline: float, candidate: float, goal: float) -> list[object]:
    ratio = candidate / baseline
    verdict = "met" if ratio <= goal else "missed"
    milliseconds = round(baseline * 1e3, 2), round(candidate * 1e3, 2)
    return [name, *milliseconds, goal, f"{ratio:.2f}", verdict]


def main() -> None:
    """Measure and print all ratios."""
    options = _options()
    columns = [
        "candidate / baseline",
        "baseline, ms",
        "candidate, ms",
        "goal",
        "ratio",
        "verdict",
    ]
    rows = []
    for name, goal, baseline, candidate in comparisons(options.shapes, small=options.small):
        rows.append(_row(name, *alternate(baseline, candidate, options.rounds), goal))
        print(*rows[-1], sep="\t", flush=True)
    rows += [*small_calls(options.rounds), *start_up(options.rounds)]
    table = pl.DataFrame(rows, schema=columns, orient="row", strict=False)
    print(report.markdown(table))
    if not options.small:
        report.fill(Path(__file__).parent / "README.md", "ratios", report.markdown(table))
    sys.exit("missed" in table["verdict"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ratios", description=__doc__)
    parser.add_argument("--small", action="store_true", help="1/50 of the users; keeps no results")
    parser.add_argument("--shapes", nargs="+", choices=["a", "b", "c"], default=["a", "b", "c"])
    parser.add_argument("--rounds", type=int, default=9)
    return parser.parse_args()


if __name__ == "__main__":
    main()
