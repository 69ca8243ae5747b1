"""How often tests find what is not there: a simulation, ``python -m benchmarks.false_positives``.

Systems are drawn whose true means are equal (with a margin: differ by it), 2,000 times for each
number of users. A test that says 5 % should find a difference 5 times in 100, or less often: over
all pairs, metrics or segments of its family, where it has one. Values are like nDCG of real users:
three of ten are 0, the others skewed, and systems agree by nature for half of the users. What is
done is kept in ``benchmarks/.cache``, so that a run goes on where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from functools import partial
from math import ceil, sqrt
from pathlib import Path
from statistics import NormalDist
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import polars as pl

import rankframe as rf
from benchmarks import report
from benchmarks.data import CACHE
from rankframe._comparison import statistics, system_statistics

USERS = [20, 50, 200]
RUNS = 2000
RESAMPLES = 999
PART = 25  # runs that share them
LEVEL = 0.05
SYSTEMS = 4
CLUSTER = 4  # users
MARGIN = 0.1
KEPT = CACHE / "false_positives.json"

Found = statistics.Bits  # for each run


class Case(NamedTuple):
    """Simulate runs of some users, and tell in which of them a difference is found."""

    name: str
    find: Callable[[np.random.Generator, int, int], Found]
    share: float = 1.0  # of the runs: slow cases make fewer
    claims: bool = True  # to hold the level


def ndcg(rng: np.random.Generator, size: tuple[int, ...]) -> statistics.Array:
    """Draw values of users."""
    return np.where(rng.random(size) < 0.3, 0.0, rng.beta(0.7, 2, size))


def equal(rng: np.random.Generator, users: int, runs: int, systems: int = 2) -> statistics.Array:
    """Draw the values of each system: half of them are the user's own, whatever the system."""
    size = systems, users, runs
    return np.where(rng.random(size) < 0.5, ndcg(rng, size[1:]), ndcg(rng, size))


def dependent(rng: np.random.Generator, users: int, runs: int) -> statistics.Array:
    """Draw the values of two systems: half of them are those of the cluster."""
    of_clusters = np.repeat(ndcg(rng, (2, users // CLUSTER, runs)), CLUSTER, axis=1)
    size = 2, users // CLUSTER * CLUSTER, runs
    return np.where(rng.random(size) < 0.55, of_clusters, ndcg(rng, size))


def found_in(of_systems: statistics.Array, column: str = "p_adjusted", **options: Any) -> Found:
    """Compare systems, each run being a metric, and find the runs with a p-value below 5 %."""
    parts = enumerate(in_parts(of_systems))
    return np.concatenate([_found(part, column, seed=seed, **options) for seed, part in parts])


def in_parts(matrix: statistics.Array) -> list[statistics.Array]:
    """Split the runs, so that only a few of them share the resamples."""
    return np.split(matrix, range(PART, matrix.shape[-1], PART), axis=-1)


def _found(of_systems: statistics.Array, column: str, **options: Any) -> Found:
    _, users, runs = of_systems.shape
    names = [f"run {number}" for number in range(runs)]
    weight, number = np.arange(users) % 5 + 1, np.arange(users)
    frames = [
        pl.DataFrame(matrix, schema=names, orient="row").with_columns(
            model=pl.lit(f"system {place}"),
            user=pl.Series(number),
            weight=pl.Series(weight),
            cluster=pl.Series(number // CLUSTER),
        )
        for place, matrix in enumerate(of_systems)
    ]
    given: dict[str, Any] = {"resamples": RESAMPLES, "correction": None, **options}
    found = rf.compare_values(pl.concat(frames), *names, **given)
    least = found.group_by("metric").agg(pl.col(column).min().fill_null(1.0))
    ordered = pl.DataFrame({"metric": names}).join(least, on="metric", how="left")
    return np.asarray(ordered[column].to_numpy() <= LEVEL, np.bool_)


# ------------------------------------------------------------------ cases


def pair(rng: np.random.Generator, users: int, runs: int, **options: Any) -> Found:
    """Compare two systems."""
    return found_in(equal(rng, users, runs), **options)


def hits(rng: np.random.Generator, users: int, runs: int) -> Found:
    """Compare the hits of two systems."""
    of_systems = equal(rng, users, runs) > 0.2
    return found_in(of_systems.astype(np.float64), test="mcnemar")


def interval(rng: np.random.Generator, users: int, runs: int) -> Found:
    """Ask if the studentized interval of the differences leaves out 0."""
    found: list[Found] = []
    for seed, (system, baseline) in enumerate(in_parts(equal(rng, users, runs))):
        sample = statistics.Sample(statistics.differences(system, baseline))
        outcome = statistics.studentized(
            sample, 1 - LEVEL, statistics.Resampling(RESAMPLES, seed), _silent
        )
        found.append((outcome.low > 0) | (outcome.high < 0))
    return np.concatenate(found)


def clustered(rng: np.random.Generator, users: int, runs: int, **options: Any) -> Found:
    """Compare two systems on clusters of four users, whose differences are correlated by 0.3."""
    return found_in(dependent(rng, users, runs), **options)


def looks(rng: np.random.Generator, users: int, runs: int, test: str) -> Found:
    """Look after each user."""
    system, baseline = equal(rng, users, runs)
    change = statistics.differences(system, baseline)
    found = np.zeros(runs, np.bool_)
    for number in range(2, users + 1):
        sample = statistics.Sample(change[:number])
        tested = statistics.sequential if test == "sequential" else statistics.t_test
        found |= tested(sample, 1 - LEVEL).p <= LEVEL
    return found


def family(rng: np.random.Generator, users: int, runs: int, **options: Any) -> Found:
    """Compare all pairs of four systems: is any found to differ."""
    return found_in(equal(rng, users, runs, SYSTEMS), correction="holm", **options)


def distances(rng: np.random.Generator, users: int, runs: int, test: str) -> Found:
    """Do the same by the critical distance, which saves SciPy's slow studentized range."""
    joint = (
        system_statistics.friedman
        if test == "friedman"
        else partial(system_statistics.tukey, confidence=1 - LEVEL)
    )
    found: list[bool] = []
    for matrix in equal(rng, users, runs, SYSTEMS).transpose(2, 1, 0):
        tested = joint(np.ascontiguousarray(matrix))
        limit = system_statistics.critical(1 - LEVEL, SYSTEMS, tested.freedom)
        found.append(bool(tested.distance.max() >= limit))
    return np.array(found)


def equivalent(rng: np.random.Generator, users: int, runs: int, test: str) -> Found:
    """Take for equivalent what differs by the margin."""
    of_systems = equal(rng, users, runs)
    of_systems[0] += MARGIN
    return found_in(of_systems, "p_equivalent", test=test, margin=MARGIN)


def not_worse(rng: np.random.Generator, users: int, runs: int, test: str) -> Found:
    """Take for not worse what is worse by the margin."""
    found: list[Found] = []
    for seed, (system, baseline) in enumerate(in_parts(equal(rng, users, runs))):
        sample = statistics.Sample(system - MARGIN - baseline + MARGIN)
        if test == "t":
            p = statistics.above_zero(
                statistics.t_test(sample, 1 - LEVEL).p, sample.values.sum(axis=0)
            )
        else:
            drawn = statistics.Resampling(RESAMPLES, seed), _silent
            p = statistics.bootstrap_test(sample, 1 - LEVEL, *drawn, one_sided=True).p
        found.append(np.asarray(p <= LEVEL, np.bool_))
    return np.concatenate(found)


def segments(rng: np.random.Generator, users: int, runs: int, part: str) -> Found:
    """Ask if the difference itself differs between four segments."""
    system, baseline = equal(rng, users, runs)
    change = statistics.differences(system, baseline)
    inside = np.arange(users) % 4 == np.arange(4)[:, None]
    found: list[bool] = []
    for column in change.T:
        own = [statistics.estimate(statistics.Sample(column[one])) for one in inside]
        if part == "F":
            found.append(statistics.heterogeneity(own).p <= LEVEL)
            continue
        rest = [statistics.estimate(statistics.Sample(column[~one])) for one in inside]
        contrasts = zip(own, rest, strict=True)
        p = np.array([statistics.contrast(*both, 1 - LEVEL).p for both in contrasts])
        found.append(bool((statistics.corrected(p, "holm") <= LEVEL).any()))
    return np.array(found)


def best(rng: np.random.Generator, users: int, runs: int, method: str) -> Found:
    """Leave out the best system: here each is."""
    of_systems = equal(rng, users, runs, SYSTEMS)
    found: list[bool] = []
    for run in range(runs):
        matrix = np.ascontiguousarray(of_systems[:, :, run].T)
        if method == "mcb":
            lead = system_statistics.lead(matrix, 1 - LEVEL)
        else:
            drawn = statistics.Resampling(RESAMPLES, run), _silent
            lead = system_statistics.lead_by_bootstrap(matrix, 1 - LEVEL, *drawn)
        found.append(not lead.may_be_best[0])
    return np.array(found)


def gatekeeper(rng: np.random.Generator, users: int, runs: int, primary: str | None) -> Found:
    """Compare two systems by four metrics: is any difference found."""
    names = ["a", "b", "c", "d"]
    found: list[bool] = []
    for _ in range(runs):
        of_metrics = equal(rng, users, len(names))
        frames = [
            pl.DataFrame(matrix, schema=names).with_columns(
                model=pl.lit(f"system {place}"), user=pl.Series(np.arange(users))
            )
            for place, matrix in enumerate(of_metrics)
        ]
        compared = rf.compare_values(pl.concat(frames), *names, primary=primary)
        found.append(bool((compared["p_adjusted"].fill_null(1.0) <= LEVEL).any()))
    return np.array(found)


def swaps(rng: np.random.Generator, users: int, runs: int) -> Found:
    """Swap whole lists of two systems that draw from one catalogue: does Gini differ."""
    chance = 1 / np.arange(1, 31)
    found: list[bool] = []
    for _ in range(runs):
        drawn = rng.exponential(1, (2, users, len(chance))) / chance
        item = drawn.argsort(axis=2)[:, :, :3]
        run = pl.DataFrame(
            {
                "model": np.repeat(["new", "old"], users * 3),
                "user": np.tile(np.repeat(np.arange(users), 3), 2),
                "item": item.ravel(),
                "rank": np.tile([1, 2, 3], 2 * users),
            }
        )
        compared = rf.compare(
            run, "gini(of=shown)", test="randomization", resamples=99, seed=len(found)
        )
        found.append(bool((compared["p_value"].fill_null(1.0) <= LEVEL).any()))
    return np.array(found)


def _silent(_: int) -> None:
    """Show no progress."""


OF_MEANS = ("t", "randomization", "bootstrap")
CASES = [
    *(Case(test, partial(pair, test=test)) for test in ("t", "wilcoxon", *OF_MEANS[1:])),
    Case("mcnemar, hits", hits),
    Case("studentized interval", interval),
    *(Case(f"{test}, weights", partial(pair, test=test, weights="weight")) for test in OF_MEANS),
    *(
        Case(f"{test}, clusters of {CLUSTER}", partial(clustered, test=test, cluster="cluster"))
        for test in OF_MEANS
    ),
    Case(f"t, clusters of {CLUSTER} ignored", partial(clustered, test="t"), claims=False),
    Case("sequential, a look per user", partial(looks, test="sequential")),
    Case("t, a look per user", partial(looks, test="t"), claims=False),
    *(
        Case(f"{test}, {SYSTEMS} systems", partial(distances, test=test))
        for test in ("tukey", "friedman")
    ),
    Case(f"randomized_tukey, {SYSTEMS} systems", partial(family, test="randomized_tukey")),
    *(
        Case(f"{name}, {test}", partial(find, test=test))
        for name, find in (("equivalent", equivalent), ("not worse", not_worse))
        for test in ("t", "bootstrap")
    ),
    Case("compare_segments, F of 4", partial(segments, part="F")),
    Case("compare_segments, 4 contrasts", partial(segments, part="contrasts")),
    *(
        Case(f"best_systems, {method}", partial(best, method=method))
        for method in ("mcb", "bootstrap")
    ),
    Case("primary and 3 metrics", partial(gatekeeper, primary="a")),
    Case("Holm, 4 metrics", partial(gatekeeper, primary=None)),
    Case("swapped lists, Gini", swaps, share=0.2),
]


# ------------------------------------------------------------------ the table


def simulated(case: Case, users: int, runs: int) -> dict[str, Any]:
    """Simulate a case, or read what was simulated before."""
    runs = ceil(case.share * runs)
    key = f"{case.name}; {users} users; {runs} runs"
    kept: dict[str, list[float]] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if key not in kept:
        begin = perf_counter()
        rng = np.random.default_rng([users, *case.name.encode()])
        found = int(case.find(rng, users, runs).sum())
        kept[key] = [found, perf_counter() - begin]
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        KEPT.write_text(json.dumps(kept, indent=1))
    found = int(kept[key][0])
    low, high = _monte_carlo(found / runs, runs)
    row = {
        "test": case.name,
        "users": users,
        "runs": runs,
        "false positives": round(found / runs, 4),
        "99 % interval": f"{low:.3f} to {high:.3f}",
        "": ("held" if low <= LEVEL else "missed") if case.claims else "claims nothing",
    }
    print(*row.values(), f"{kept[key][1]:.1f} s", sep="\t", file=sys.stderr, flush=True)
    return row


def _monte_carlo(share: float, runs: int) -> tuple[float, float]:
    """Wilson's interval: what the number of runs leaves open."""
    z = NormalDist().inv_cdf(0.995)
    middle = (share + z**2 / (2 * runs)) / (1 + z**2 / runs)
    margin = z * sqrt(share * (1 - share) / runs + (z / (2 * runs)) ** 2) / (1 + z**2 / runs)
    return middle - margin, middle + margin


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.false_positives", description=__doc__
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="for each number of users")
    runs = parser.parse_args().runs
    rows = [simulated(case, users, runs) for case in CASES for users in USERS]
    frame = pl.DataFrame(rows)
    missed = frame.filter(pl.col("") == "missed").height
    claims = frame.filter(pl.col("") != "claims nothing").height
    text = f"{report.markdown(frame)}\n\nMissed: {missed} of {claims}."
    print(text)
    if runs == RUNS:
        report.fill(Path(__file__).parent / "README.md", "false positives", text)


if __name__ == "__main__":
    main()
