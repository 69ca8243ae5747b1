"""How often 95 % intervals cover: a simulation, ``python -m benchmarks.coverage``.

Samples of users are drawn whose mean is known, 2,000 for each number of users. An interval that is
null covers nothing. All samples of one size share the resamples.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from benchmarks import report
from rankframe._comparison import statistics as st

USERS = [10, 20, 50, 200]
RUNS = 2000
RESAMPLES = 4000
CONFIDENCE = 0.95
ENOUGH = 20  # users whose value is not 0

_GAINS = 1 / np.log2(1 + np.arange(1, 11))  # nDCG@10 of one relevant item at each rank


class Case(NamedTuple):
    """Values, their mean, and how often the interval is to cover, from a number of users on."""

    name: str
    draw: Callable[[np.random.Generator, tuple[int, int]], st.Array]
    mean: float
    goal: float
    users: int
    hits: bool = False


def zero_inflated(share: float) -> Case:
    """nDCG@10 of users with one relevant item, which this share of them finds at any rank."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> st.Array:
        return np.where(rng.random(size) < share, rng.choice(_GAINS, size), 0.0)

    name, mean = f"nDCG, {share:.0%} are not 0", share * float(_GAINS.mean())
    return Case(name, draw, mean, 0.93, round(ENOUGH / share))


def hits(rate: float) -> Case:
    """Hits of users, for Wilson's interval."""

    def draw(rng: np.random.Generator, size: tuple[int, int]) -> st.Array:
        return (rng.random(size) < rate).astype(np.float64)

    return Case(f"hits, rate {rate:g}", draw, rate, 0.92, 1, hits=True)


CASES = [
    Case("exponential", lambda rng, size: rng.exponential(1, size), 1, 0.93, 20),
    Case("log-normal", lambda rng, size: rng.lognormal(0, 1, size), np.exp(0.5), 0.93, 50),
    Case("beta(½, 2)", lambda rng, size: rng.beta(0.5, 2, size), 0.2, 0.93, 20),
    *(zero_inflated(share) for share in (0.1, 0.3, 0.5)),
    *(hits(rate) for rate in (0.02, 0.1, 0.5)),
]


def coverage(case: Case, users: int, runs: int) -> dict[str, Any]:
    """Draw samples, and give the share of intervals that cover for each method."""
    matrix = case.draw(np.random.default_rng([users, CASES.index(case)]), (users, runs))
    samples = [st.Sample(column) for column in matrix.T]
    chosen = [st.chosen_method(one, may_be_hits=case.hits)[0] for one in samples]
    covers, absent = {}, {}
    for method, outcome in _intervals(st.Sample(matrix), case).items():
        covers[method] = (outcome.low <= case.mean) & (case.mean <= outcome.high)
        absent[method] = np.isnan(outcome.low)
    each = range(runs)
    automatic = np.mean([covers[method][run] for run, method in zip(each, chosen, strict=True)])
    null = np.mean([absent[method][run] for run, method in zip(each, chosen, strict=True)])
    few = not case.hits and np.mean([st.telling_users(one)[0] < st.FEW_USERS for one in samples])
    return {
        "values": case.name,
        "users": users,
        **{method: round(float(found.mean()), 3) for method, found in covers.items()},
        "auto": round(float(automatic), 3),
        "auto, no interval": round(float(null), 3),
        "noted as too few": round(float(few), 3),
        "goal": f"≥ {case.goal}" if users >= case.users else None,
        "": ("met" if automatic >= case.goal else "missed") if users >= case.users else None,
    }


def _intervals(sample: st.Sample, case: Case) -> dict[str, st.Outcome]:
    outcomes = {"t": st.t_test(sample, CONFIDENCE)}
    if case.hits:
        return {**outcomes, "wilson": st.wilson(sample, CONFIDENCE)}
    drawn = CONFIDENCE, st.Resampling(RESAMPLES, 0), _silent
    outcomes["BCa"] = st.bootstrap(sample, *drawn)
    outcomes["studentized"] = st.studentized(sample, *drawn)
    # what "auto" takes where it takes no other method
    return {**outcomes, "auto": st.widened(sample, *drawn)}


def _silent(_: int) -> None:
    """Show no progress."""


def paired(rates: tuple[float, float], users: int, runs: int) -> dict[str, Any]:
    """Draw hits of two systems, half of whose users are those of both, for Newcombe and McNemar."""
    rng = np.random.default_rng([users, *(round(100 * rate) for rate in rates)])
    own, other = rng.random((2, users, runs))
    other = np.where(rng.random((users, runs)) < 0.5, own, other)
    system, baseline = own < rates[0], other < rates[1]
    pairs = zip(system.T.astype(float), baseline.T.astype(float), strict=True)
    found = np.array([st.mcnemar(*pair, CONFIDENCE) for pair in pairs])
    t = st.t_test(st.Sample(system.astype(float) - baseline), CONFIDENCE)
    difference = rates[0] - rates[1]
    covers = (found[:, 1] <= difference) & (difference <= found[:, 2])
    rejects = [p <= 1 - CONFIDENCE for p in (t.p, found[:, 0])] if difference == 0 else []
    return {
        "rates": f"{rates[0]:g} and {rates[1]:g}",
        "users": users,
        "t covers": round(float(((t.low <= difference) & (difference <= t.high)).mean()), 3),
        "Newcombe covers": round(float(covers.mean()), 3),
        "t rejects": round(float(rejects[0].mean()), 3) if rejects else None,
        "McNemar rejects": round(float(rejects[1].mean()), 3) if rejects else None,
    }


PAIRS = [(0.02, 0.02), (0.1, 0.1), (0.5, 0.5), (0.2, 0.1), (0.6, 0.5)]


def main() -> None:
    """Simulate and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--runs", type=int, default=RUNS, help="samples for each number of users")
    runs = parser.parse_args().runs
    rows = [_said(coverage(case, users, runs)) for case in CASES for users in USERS]
    of_pairs = [_said(paired(rates, users, runs)) for rates in PAIRS for users in USERS]
    order = ["values", "users", "t", "BCa", "studentized", "wilson", "auto", "auto, no interval"]
    order += ["noted as too few", "goal", ""]
    frame = pl.DataFrame(rows, infer_schema_length=None).select(order)
    tables = [report.markdown(frame), report.markdown(pl.DataFrame(of_pairs))]
    text = "\n\n".join(tables)
    print(text)
    if runs == RUNS:
        report.fill(Path(__file__).parent / "README.md", "coverage", text)


def _said(row: dict[str, Any]) -> dict[str, Any]:
    """Print a row as soon as it is there."""
    print(*row.values(), sep="\t", file=sys.stderr, flush=True)
    return row


if __name__ == "__main__":
    main()
