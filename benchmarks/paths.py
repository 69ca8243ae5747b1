"""What each fast path gives: ``python -m benchmarks.paths``, in CPU time without it and with it.

A path is patched out, and the same call runs without it and with it in turn. A path at 1.05 or less
on every call is code to drop.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from contextlib import nullcontext
from time import process_time
from typing import Any
from unittest.mock import patch

import polars as pl

import rankframe as rf
from benchmarks.data import SHAPES, Ids, tables
from benchmarks.suites import FIVE
from rankframe._evaluation import kept_plans
from rankframe._health import blocks
from rankframe._inputs import dicts
from rankframe._tables import adapters, guards, rank_order
from rankframe._tables.judgment import Joined

Call = Callable[[], object]
_PAIRS = rank_order.pair_codes
_IDEAL = rank_order._ideal


def _always(value: object = None) -> Callable[..., Any]:
    return lambda *_, **__: value


#: What is patched, and by what.
PATHS: dict[str, tuple[object, str, object]] = {
    "pair_codes": (rank_order, "pair_codes", _always()),
    "pair_codes in 64 bits": (rank_order, "pair_codes", lambda *a: _PAIRS(*a[:3], {})),
    "_by_id_ranges": (rank_order, "_by_id_ranges", _always()),
    "one grade": (rank_order, "_ideal", lambda _: _IDEAL((0, 1))),
    "numbered groups": (Joined, "numbered", ()),
    "lists in score order": (rank_order, "_in_score_order", _always(value=False)),
    "_ranked_by_score": (rank_order, "_ranked_by_score", _always()),
    "_numbers_in_order": (rank_order, "_numbers_in_order", _always()),
    "are_distinct": (rank_order, "are_distinct", _always(value=False)),
    "_flag_of_blocks": (guards, "_flag_of_blocks", lambda *parts: parts[-1]),
    "kept plans": (kept_plans, "key_of", _always()),
    "in-memory engine": (adapters, "_engine", _always("auto")),
    "plans as written": (adapters.collected, "__kwdefaults__", {"unoptimized": 0}),
    "dicts in one pass": (dicts, "_quickly", _always()),
    "lists as blocks": (blocks, "items_and_lists", _always()),
}
#: The calls that each path is for.
CALLS: dict[str, tuple[str, ...]] = {
    "ranks": ("pair_codes", "pair_codes in 64 bits", "_by_id_ranges"),
    "no grades": ("one grade",),
    "by": ("numbered groups", "pair_codes"),
    "by, in both tables": ("_by_id_ranges",),
    "scores": ("lists in score order", "are_distinct"),
    "mixed scores": ("_ranked_by_score",),
    "mixed text": ("_numbers_in_order",),
    "lazy scores": ("_flag_of_blocks",),
    "health": ("lists as blocks",),
    "dict": ("dicts in one pass", "lists in score order", "are_distinct"),
    "10,000 rows": ("kept plans", "in-memory engine"),
    "1,000 rows": ("kept plans", "in-memory engine", "plans as written"),
}


def calls(shape: str, users: int) -> dict[str, Call]:
    """Make the calls on so many users of a shape."""

    def of(ids: Ids) -> tuple[pl.DataFrame, ...]:
        run, truth = tables(SHAPES[shape]._replace(users=users), ids)
        return run.drop("score"), run.drop("rank"), truth

    ranks, scores, truth = of("integer")
    _, texts, truth_of_texts = of("string")
    groups = (
        ranks.with_columns(country=pl.col("item") % 3)
        .drop("rank")
        .with_columns(rank=pl.int_range(1, pl.len() + 1).over("user", "country"))
    )
    mixed = scores.sample(fraction=1, shuffle=True, seed=1)
    lists = texts.group_by("user", maintain_order=True).agg("item", "score")
    nested = {u: dict(zip(i, s, strict=True)) for u, i, s in lists.iter_rows()}

    def five(run: Any, truth: Any = truth, **more: Any) -> Call:
        if isinstance(run, pl.LazyFrame):
            return lambda: rf.evaluate(run, *FIVE, truth=truth, **more).collect()
        return lambda: rf.evaluate(run, *FIVE, truth=truth, **more)

    made = {
        "ranks": five(ranks),
        "no grades": five(ranks, truth.drop("relevance")),
        "by": five(groups, by="country"),
        "by, in both tables": five(
            ranks.with_columns(country=pl.col("user") % 3),
            truth.with_columns(country=pl.col("user") % 3),
            by="country",
        ),
        "scores": five(scores),
        "mixed scores": five(mixed),
        "mixed text": five(texts.sample(fraction=1, shuffle=True, seed=1), truth_of_texts),
        "lazy scores": five(scores.lazy(), truth.lazy()),
        "health": lambda: rf.health(ranks, truth=truth),
        "dict": five(nested, truth_of_texts),
    }
    for rows in (10_000, 1_000):
        few = ranks.head(rows)
        made[f"{rows:,} rows"] = five(few, truth.join(few, on="user", how="semi"))
    return made


def least(call: Call, path: str, rounds: int) -> tuple[float, float]:
    """Give the least CPU seconds of a call without a path, and with it, in turn."""
    spent: tuple[list[float], list[float]] = [], []
    for turn in range(2 * rounds + 2):
        with nullcontext() if turn % 2 else patch.object(*PATHS[path]):
            begin = process_time()
            call()
            spent[turn % 2].append(process_time() - begin)
    return min(spent[0][1:]), min(spent[1][1:])


def main() -> None:
    """Print a line per call and path."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paths", description=__doc__)
    parser.add_argument("--shape", choices=["a", "b", "c"], default="c")
    parser.add_argument("--users", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=9)
    options = parser.parse_args()
    for name, call in calls(options.shape, options.users).items():
        for path in CALLS[name]:
            kept = (
                nullcontext()
                if path == "kept plans"
                else patch.object(kept_plans, "key_of", _always())
            )
            with kept:
                out, own = least(call, path, options.rounds)
            print(
                f"{name}\t{path}\t{out * 1e3:.1f} / {own * 1e3:.1f} ms\t{out / own:.2f}", flush=True
            )


if __name__ == "__main__":
    main()
