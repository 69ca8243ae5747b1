"""How often 95 % intervals cover: a simulation, ``python -m benchmarks.coverage``.

Samples of users are drawn whose mean is known, 1,000 for each number of users. An interval that is
null covers nothing, unless the promise excludes it: a relative difference has none where the
baseline may be 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import rankframe as rf
from benchmarks import simulation, systems
from benchmarks.simulation import Array, Bits, Case

USERS = [20, 50, 200]
RESAMPLES = 1999
AT_LEAST = "≥ 0.95"
BASELINE = "system 01"
WARNED = "auto warns"

_GAINS = 1 / np.log2(1 + np.arange(1, 11))  # nDCG@10 of one relevant item at each rank


class Level(NamedTuple):
    """Values of users, and their mean; the name of a metric tells the range."""

    draw: Callable[[np.random.Generator, tuple[int, int]], Array]
    mean: float
    metric: str = "value"
    promised: str = AT_LEAST


def zero_inflated(share: float) -> Level:
    """nDCG@10 of users with one relevant item, which this share of them finds at any rank."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Array:
        return np.where(rng.random(size) < share, rng.choice(_GAINS, size), 0.0)

    return Level(draw, share * float(_GAINS.mean()), "ndcg@10")


def hits(rate: float) -> Level:
    """Hits of users; at these rates, Wilson's interval is to cover 0.905 at the least."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Array:
        return (rng.random(size) < rate).astype(np.float64)

    return Level(draw, rate, "hit@1", "≥ 0.905")


def change(*kinds: str) -> Level:
    """Differences of two recommenders."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> Array:
        return np.asarray(np.subtract(*systems.recommenders(rng, *size, kinds)))

    return Level(draw, 0.0)


LEVELS = {
    "exponential": Level(lambda rng, size: rng.exponential(1, size), 1),
    "log-normal": Level(lambda rng, size: rng.lognormal(0, 1, size), float(np.exp(0.5))),
    "beta(½, 2)": Level(lambda rng, size: rng.beta(0.5, 2, size), 0.2),
    "nDCG, 20 % are not 0": zero_inflated(0.2),
    "hits, rate 0.02": hits(0.02),
    "hits, rate 0.1": hits(0.1),
    "kNN − kNN": change("knn", "knn"),
    "kNN − popularity": change("knn", "pop"),
}


def covers(rng: np.random.Generator, runs: int, level: Level, users: int, method: str) -> Bits:
    """Summarize samples: is the mean in the interval, or does the note warn."""
    values = level.draw(rng, (users, runs))[None]
    found: list[Bits] = []
    for seed, part in enumerate(simulation.parts(values)):
        options = {"method": "auto" if method == WARNED else method, "seed": seed}
        summary = rf.summarize(
            simulation.frame_of({level.metric: part}),
            level.metric,
            by="run",
            resamples=RESAMPLES,
            **options,
        ).sort("run")
        if method == WARNED:
            found.append(summary["note"].str.contains("too few users").to_numpy())
        else:
            found.append(_inside(summary, "ci_low", "ci_high", level.mean))
    return np.concatenate(found)


def _inside(frame: pl.DataFrame, low: str, high: str, value: float | Array) -> Bits:
    """Ask which intervals hold a value."""
    low_end, high_end = (frame[name].fill_null(np.nan).to_numpy() for name in (low, high))
    slack = 1e-9  # Clopper and Pearson's ends may be the value itself
    return np.asarray((low_end <= value + slack) & (value <= high_end + slack), np.bool_)


# ------------------------------------------------------------------ intervals of differences


def relative(rng: np.random.Generator, runs: int, users: int, draw: simulation.Draw) -> Bits:
    """Compare with a system that is 1.25 times as good; no interval makes no claim."""
    found = _compared(draw(rng, users, runs) * np.array([0.8, 1])[:, None, None], "value")
    return (
        _inside(found, "relative_low", "relative_high", -0.2)
        | found["relative_low"].is_null().to_numpy()
    )


def _compared(of_systems: Array, name: str, **trial: Any) -> pl.DataFrame:
    frame = simulation.frame_of({name: of_systems})
    trial = {"by": ["model", "run"], "baseline": BASELINE, "correction": None, **trial}
    return rf.compare(frame, name, details=True, **trial).sort("run")


def harmed(rng: np.random.Generator, runs: int, users: int) -> Bits:
    """Ask how many users lose more than 0.1."""
    kinds = ["pop", "knn"]
    of_systems = systems.recommenders(rng, users, runs, kinds)
    many = np.subtract(*systems.recommenders(np.random.default_rng(0), 1_000_000, 1, kinds))
    true = float((many < -0.1).mean())
    found: list[Bits] = []
    for part in simulation.parts(of_systems):
        frame = simulation.frame_of({"value": part})
        table = rf.stats.harm(
            frame,
            "value",
            by=["model", "run"],
            baseline=BASELINE,
            more_than=0.1,
            higher_is_better={"value": True},
        ).sort("run")
        found.append(_inside(table, "share_low", "share_high", true))
    return np.concatenate(found)


# ------------------------------------------------------------------ the cases


def of_levels() -> list[Case]:
    """Every method on every kind of values."""
    return [
        Case(
            method,
            kind,
            users,
            None if method == WARNED else level.promised,
            partial(covers, level=level, users=users, method=method),
        )
        for kind, level in LEVELS.items()
        for users in USERS
        for method in ("t", "auto", WARNED)
    ]


def of_differences() -> list[Case]:
    """Intervals that only differences have."""
    draws: dict[str, simulation.Draw] = {
        "two models": systems.two_models,
        "revenue, 5 % buyers": systems.revenue,
    }
    cases = [
        Case("relative, Fieller", kind, users, AT_LEAST, partial(relative, draw=draw, users=users))
        for kind, draw in draws.items()
        for users in (20, 50, 300)
    ]
    cases += [
        Case("harm, share", "popularity − kNN", users, AT_LEAST, partial(harmed, users=users))
        for users in (20, 300)
    ]
    return cases


def main() -> None:
    """Simulate, print, and fill the page."""
    runs = simulation.options("coverage", __doc__)
    levels = simulation.table(of_levels(), "coverage", runs)
    of_values = ["values", "users", "promised"]
    wide = levels.with_columns(pl.col("promised").max().over("values", "users")).pivot(
        "test", index=of_values, values="measured"
    )
    other = simulation.table(of_differences(), "coverage", runs)
    simulation.show("coverage", [wide, other], runs)


if __name__ == "__main__":
    main()
