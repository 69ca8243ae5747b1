"""How often tests find what is not there: a simulation, ``python -m benchmarks.false_positives``.

Systems are drawn whose true means are equal, or differ by exactly a margin, 1,000 times each. A
family of pairs, metrics or segments counts as one if any of it is found. The nulls are those of
life: users are tilted, not values centered, and clusters have unequal sizes: see
``benchmarks/systems.py``.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import polars as pl

import rankframe as rf
from benchmarks import simulation, systems
from benchmarks.simulation import Array, Bits, Case, Draw
from rankframe._comparison import always_valid, statistics

LEVEL = 0.05
RESAMPLES = 999
BASELINE = "system 01"  # of a pair


# ------------------------------------------------------------------ pairs of systems


def pair(
    rng: np.random.Generator,
    runs: int,
    draw: Draw,
    users: int,
    *,
    name: str = "value",
    **trial: Any,
) -> Bits:
    """Compare two systems: each run is a segment, with its own test."""
    found = [
        simulation.least(compared(part, name, seed=seed, **trial), "p_value", part.shape[-1])
        for seed, part in enumerate(simulation.parts(draw(rng, users, runs)))
    ]
    return np.concatenate(found) <= LEVEL


def compared(of_systems: Array, name: str = "value", **trial: Any) -> pl.DataFrame:
    """Compare systems in each run, without a correction over runs."""
    users = of_systems.shape[1]
    cluster = trial.pop("of_users", np.arange(users))
    weight = np.random.default_rng(users).lognormal(0, 1, users)
    frame = simulation.frame_of({name: of_systems}, weight=weight, cluster=cluster)
    options = {"by": ["model", "run"], "resamples": RESAMPLES, "correction": None, **trial}
    return rf.compare(frame, name, details=True, **options)


def clustered(rng: np.random.Generator, runs: int, number: int, **trial: Any) -> Bits:
    """Compare two systems by users of clusters of unequal sizes, which change every 50 runs."""
    found: list[Array] = []
    for seed in range(0, runs, 50):
        sizes, few = systems.unequal_sizes(rng, number), min(50, runs - seed)
        of_users = np.repeat(np.arange(number, dtype=np.float64), sizes.astype(int))
        drawn = systems.clusters(rng, sizes, few)
        rows = compared(drawn, seed=seed, of_users=of_users, **trial)
        found.append(simulation.least(rows, "p_value", few))
    return np.concatenate(found) <= LEVEL


def unpaired(
    rng: np.random.Generator,
    runs: int,
    draw: Draw,
    users: int,
    *,
    common: float,
    margin: float | None = None,
) -> Bits:
    """Compare two weeks: a share of the users come in both, and the second has a third as many."""
    new, old = draw(rng, users, runs)
    other = draw(rng, users, runs)[0]
    number = users // 3
    shared = round(common * number)
    second = np.concatenate([new[:shared], other[users - number + shared :]])
    rows = [
        pl.DataFrame(
            {
                "week": week,
                "user": np.repeat(user, runs),
                "run": np.tile(np.arange(runs), len(user)),
                "value": values.ravel(),
            }
        )
        for week, user, values in (
            ("w1", np.arange(users), old),
            ("w2", np.r_[:shared, users : users + number - shared], second),
        )
    ]
    options = {"model": "week", "by": "run", "baseline": "w1", "paired": False}
    if margin is None:
        found = rf.compare(pl.concat(rows), "value", correction=None, **options, details=True)
        return simulation.least(found, "p_value", runs) <= LEVEL
    options |= {"margin": margin, "higher_is_better": {"value": True}}
    return rf.gate(pl.concat(rows), "value", **options).sort("run")["passed"].to_numpy()


# ------------------------------------------------------------------ metrics and countries


def metrics(rng: np.random.Generator, runs: int, users: int, *, primary: str | None) -> Bits:
    """Compare two systems by four metrics, of which the last two are dependent."""
    drawn = {name: systems.two_models(rng, users, runs) for name in "abcd"}
    drawn["d"] = (drawn["c"] + drawn["d"]) / 2
    least = [
        rf.compare(frame, *drawn, primary=primary)["p_adjusted"].min() for frame in _by_run(drawn)
    ]
    return np.array(least, np.float64) <= LEVEL


def detected(rng: np.random.Generator, runs: int, users: int, number: int) -> Bits:
    """Find a difference of the size ``detectable`` in one of several metrics."""
    kinds = ["svd", "knn"]
    drawn = {f"m{n}": systems.tilted_recommenders(rng, users, runs, kinds) for n in range(number)}
    few = [
        rf.compare(frame, *drawn, details=True).row(0, named=True)
        for frame in islice(_by_run(drawn), 30)
    ]
    drawn["m0"][0] += np.mean([row["detectable"] for row in few])
    p = np.array([compared(values).sort("run")["p_value"] for values in drawn.values()])
    return np.array([statistics.corrected(of_run, "holm")[0] for of_run in p.T]) <= LEVEL


def _by_run(metrics: dict[str, Array]) -> Iterator[pl.DataFrame]:
    """Make a table of each run."""
    for run in range(next(iter(metrics.values())).shape[-1]):
        yield simulation.frame_of(
            {name: values[:, :, run : run + 1] for name, values in metrics.items()}
        )


def countries(rng: np.random.Generator, runs: int, number: int, users: int, **rule: Any) -> Bits:
    """Gate an equal system in each of many countries: does any fail."""
    drawn = systems.two_models(rng, number * users, runs)
    country = np.arange(number * users) // users
    found = []
    for run in range(runs):
        frame = simulation.frame_of({"ndcg@10": drawn[:, :, run : run + 1]}, country=country)
        by = ["model", "country"]
        decided = rf.gate(frame, "ndcg@10", by=by, baseline=BASELINE, undecided="pass", **rule)
        found.append(not decided["passed"].all())
    return np.array(found)


# ------------------------------------------------------------------ margins


def gated(rng: np.random.Generator, runs: int, draw: Draw, users: int, **rule: Any) -> Bits:
    """Gate a system that is worse by exactly the margin, or at the floor: does it pass."""
    name = rule.pop("name", "hit@1")
    frame = simulation.frame_of({name: draw(rng, users, runs)})
    rule = {"by": ["model", "run"], "baseline": BASELINE, **rule}
    decided = rf.gate(frame, name, **rule)
    return decided.sort("model", "run")["passed"].to_numpy().reshape(-1, runs)


def margin(
    rng: np.random.Generator, runs: int, draw: Draw, users: int, column: str, **trial: Any
) -> Bits:
    """Take a system for equivalent, or for not worse, that is worse by the margin."""
    drawn = draw(rng, users, runs)
    found = [
        simulation.least(
            compared(part, "ndcg@10", seed=seed, baseline=BASELINE, **trial), column, part.shape[-1]
        )
        for seed, part in enumerate(simulation.parts(drawn))
    ]
    return np.concatenate(found) <= LEVEL / 2


# ------------------------------------------------------------------ many systems


def family(rng: np.random.Generator, runs: int, draw: Draw, users: int, test: str) -> Bits:
    """Compare all pairs: is any found to differ, at its corrected level."""
    drawn = draw(rng, users, runs)
    p: list[Array] = []
    for seed, part in enumerate(simulation.parts(drawn)):
        if test == "max_t":
            found = compared(part, test=test, seed=seed, correction="holm")
            p.append(simulation.least(found, "p_adjusted", part.shape[-1]))
        else:  # Holm's correction of each run alone
            found = compared(part, seed=seed).sort("run")["p_value"].to_numpy()
            of_runs = found.reshape(part.shape[-1], -1)
            p.append(np.array([statistics.corrected(one, "holm").min() for one in of_runs]))
    return np.concatenate(p) <= LEVEL


def left_out(rng: np.random.Generator, runs: int, draw: Draw, users: int) -> Bits:
    """Leave a system out of the bold ones, where all are equal: runs of each kind of system."""
    drawn = draw(rng, users, runs)
    found: list[Array] = []
    for part in simulation.parts(drawn):
        frame = simulation.frame_of({"dcg@10": part})
        best = rf.table(frame, "dcg@10", by=["model", "run"], baseline=BASELINE).frame
        found.append(~best.sort("model", "run")["best"].to_numpy().reshape(len(part), -1))
    return np.concatenate(found, axis=1)


# ------------------------------------------------------------------ segments


def segments(
    rng: np.random.Generator,
    runs: int,
    number: int,
    users: int,
    *,
    draw: Draw,
    unequal: bool = False,
) -> Bits:
    """Ask if the difference itself differs between segments: each run is a metric."""
    change = np.subtract(*draw(rng, number * users, runs))
    segment = np.arange(number * users) // users
    if unequal:
        change *= (1 + 3 * (segment % 2))[:, None]
    names = [f"run {run}" for run in range(runs)]
    columns = {"user": np.arange(len(change)), "segment": segment}
    frame = pl.concat(
        [
            pl.DataFrame(values, schema=names, orient="row").with_columns(
                model=pl.lit(model), **{key: pl.Series(column) for key, column in columns.items()}
            )
            for model, values in (("old", np.zeros_like(change)), ("new", change))
        ]
    )
    found = rf.stats.compare_segments(
        frame, *names, by=["model", "segment"], baseline="old", correction=None, resamples=RESAMPLES
    )
    whole = found.filter(pl.col("segment").is_null())
    ordered = pl.DataFrame({"metric": names}).join(whole, on="metric", how="left")
    return ordered["p_value"].fill_null(1.0).to_numpy() <= LEVEL


# ------------------------------------------------------------------ looks


def bets(rng: np.random.Generator, runs: int, draw: Draw, users: int, width: float) -> Bits:
    """Look after each user at a metric with a range: is a difference ever found."""
    change = np.subtract(*draw(rng, users, runs)) / width
    of_looks = always_valid.log_factors(change).cumsum(axis=1)
    wealth = np.exp(of_looks).mean(axis=0)
    return np.asarray((wealth >= 1 / LEVEL).any(axis=0), np.bool_)


def looks(rng: np.random.Generator, runs: int, draw: Draw, users: int) -> Bits:
    """Look after each user by Student's t."""
    change = np.subtract(*draw(rng, users, runs))
    found = np.zeros(runs, np.bool_)
    for number in range(2, users + 1):
        found |= statistics.t_test(statistics.Sample(change[:number]), 1 - LEVEL).p <= LEVEL
    return found


# ------------------------------------------------------------------ the cases

AT_MOST = f"≤ {LEVEL}"


GRID = [*["knn"] * 10, *["svd"] * 4, *["pop"] * 2]
PAIRS: dict[str, Draw] = {
    "near copies": partial(systems.tilted_recommenders, kinds=["knn", "knn"]),
    "kNN, popularity": partial(systems.tilted_recommenders, kinds=["pop", "knn"]),
    "hits": systems.hits,
    "log-normal": systems.log_normal,
    "5 % buyers": partial(systems.log_normal, share=0.05),
    "2 % lose": systems.few_lose,
}
FAMILIES: list[tuple[str, Draw, int]] = [
    ("10 copies, 1 other", systems.tilted_recommenders, 50),
    ("10 copies, 1 other", systems.tilted_recommenders, 300),
    ("16 recommenders", partial(systems.tilted_recommenders, kinds=GRID), 50),
]
OF_MEANS = ("t", "randomization")
RARE = [(20, 0.05), (50, 0.02), (100, 0.02), (300, 0.01), (1000, 0.05), (5000, 0.02)]


def of_pairs() -> list[Case]:
    """Two systems: each test on each kind of values."""
    cases = [
        Case(test, kind, users, AT_MOST, partial(pair, draw=draw, users=users, test=test))
        for test in OF_MEANS
        for kind, draw in PAIRS.items()
        for users in (20, 300)
    ]
    for test in OF_MEANS:
        find = partial(pair, draw=systems.two_models, users=80, test=test, weights="weight")
        cases.append(Case(f"{test}, weights=", "two models", 80, AT_MOST, find))
        for number in (10, 30):
            find = partial(clustered, number=number, test=test, cluster="cluster")
            size = f"{number} clusters"
            cases.append(Case(f"{test}, cluster=", "two models", size, AT_MOST, find))
    find = partial(clustered, number=30, test="t")
    return [*cases, Case("t, clusters ignored", "two models", "30 clusters", None, find)]


def of_different_users() -> list[Case]:
    """Two weeks, the second with a third as many users."""
    kinds: dict[str, Draw] = {name: PAIRS[name] for name in ("kNN, popularity", "hits")}
    cases: list[Case] = []
    for common, draws in ((0.0, kinds), (0.5, kinds | {"users in both vary less": steady})):
        name = f"paired=False, {common:.0%} in both"
        cases += [
            Case(
                name, kind, users, AT_MOST, partial(unpaired, draw=draw, users=users, common=common)
            )
            for kind, draw in draws.items()
            for users in (60, 300)
        ]
    for users in (300, 900):
        draw = partial(systems.few_lose, amount=0.45, rate=1 / 9, gain=-0.05)
        find = partial(unpaired, draw=draw, users=users, common=0.0, margin=0.05)
        cases.append(Case("gate, paired=False", "11% lose 0.45", users, "≤ 0.025", find))
    return cases


def steady(rng: np.random.Generator, users: int, runs: int) -> Array:
    """Draw near copies, whose first sixth of the users vary less than the others."""
    spread = np.where(np.arange(users) < users // 6, 0.3, 1.0)
    return systems.recommenders(rng, users, runs, ["knn", "knn"]) * spread[:, None]


def of_margins() -> list[Case]:
    """A system that is worse by exactly the margin, or exactly at the floor."""
    cases: list[Case] = []
    for noise in (0.0, 0.001):
        name = "ndcg@10" if noise else "hit@1"
        for users, rate in RARE[1 if noise else 0 :]:
            draw = partial(systems.rare_losses, rate=rate, noise=noise)
            loss = rate * (1 - 2 * noise)
            find = partial(gated, draw=draw, users=users, margin=loss, name=name)
            kind = f"share {rate:g} lose{', noise' if noise else ''}"
            cases.append(Case("gate", kind, users, "≤ 0.025", find))
    for amount, users, loss in ((0.3, 300, 0.05), (0.45, 300, 0.05), (0.45, 1000, 0.02)):
        draw = partial(systems.few_lose, amount=amount, rate=loss / amount, gain=-loss)
        find = partial(gated, draw=draw, users=users, margin=loss, name="ndcg@10")
        cases.append(Case("gate", f"{loss / amount:.0%} lose {amount}", users, "≤ 0.025", find))
    floor: dict[str, Any] = {"baseline": None, "interval": True}
    for users in (50, 300):
        find = partial(gated, draw=worse, users=users, margin=0.1, name="ndcg@10")
        cases.append(Case("gate", "two models", users, "≤ 0.025", find))
        draw = partial(systems.hits, rate=0.9)
        find = partial(gated, draw=draw, users=users, at_least=0.9, **floor)
        cases.append(Case("gate, interval, at_least=", "hits", users, "≤ 0.025", find))
        for verdict, column in (("not worse", "p_not_worse"), ("equivalent", "p_equivalent")):
            find = partial(margin, draw=worse, users=users, column=column, margin=0.1)
            cases.append(Case(f"{verdict}, t", "two models", users, "≤ 0.025", find))
    return cases


def worse(rng: np.random.Generator, users: int, runs: int) -> Array:
    """Draw nDCG of two models: the first is a third as good, so 0.1 worse."""
    drawn = systems.two_models(rng, users, runs)
    drawn[0] /= 3
    return drawn


def of_families() -> list[Case]:
    """Many systems, metrics and countries."""
    cases = [
        Case(
            f"{name}, all pairs",
            kind,
            users,
            AT_MOST,
            partial(family, draw=draw, users=users, test=name),
        )
        for name in ("holm", "max_t")
        for kind, draw, users in FAMILIES
    ]
    for kind, draw, users in FAMILIES:
        find = partial(left_out, draw=draw, users=users)
        cases.append(Case("bold", kind, users, AT_MOST, find))
    find = partial(family, draw=systems.few_lose, users=300, test="max_t")
    cases.append(Case("max_t, 2 systems", "2 % lose", 300, None, find))
    for primary in (None, "a"):
        name = "4 metrics, " + ("primary=" if primary else "holm")
        cases.append(
            Case(name, "two models", 50, AT_MOST, partial(metrics, users=50, primary=primary))
        )
    cases += [
        Case(
            f"detectable, {number} comparisons",
            "SVD, kNN",
            users,
            "≥ 0.8",
            partial(detected, users=users, number=number),
        )
        for number, users in [(1, 50), (5, 50), (5, 300), (20, 50)]
    ]
    for correction in (None, "holm"):
        find = partial(countries, number=20, users=20, correction=correction)
        name = f"gate, correction={correction!r}"
        promised = "≤ 0.025" if correction else None
        cases.append(Case(name, "20 countries", 400, promised, find, runs=300))
    return cases


def of_segments() -> list[Case]:
    """The same difference in each segment."""
    cases: list[Case] = []
    for unequal in (False, True):
        kind = "unequal variances" if unequal else "SVD, popularity"
        sizes = [(10, 5), (50, 5), (10, 20), (10, 50), *([] if unequal else [(50, 20)])]
        for number, users in sizes:
            draw = partial(systems.tilted_recommenders, kinds=["svd", "pop"])
            find = partial(segments, number=number, users=users, draw=draw, unequal=unequal)
            promised = None if unequal and users < 30 else AT_MOST
            cases.append(Case("compare_segments", kind, f"{number} × {users}", promised, find))
    skewed = partial(segments, number=50, users=30, draw=systems.log_normal)
    return [*cases, Case("compare_segments", "log-normal", "50 × 30", AT_MOST, skewed)]


def of_looks() -> list[Case]:
    """A look after each of 1,000 users."""
    most = 20.0
    bounded: dict[str, tuple[Draw, float]] = {
        "2 % lose": (systems.few_lose, 1.0),
        "hits": (systems.hits, 1.0),
        "log-normal, at most 20": (partial(systems.log_normal, most=most), most),
        "5 % buyers, at most 20": (partial(systems.log_normal, share=0.05, most=most), most),
    }
    cases = [
        Case(
            "sequential, a range",
            kind,
            1000,
            AT_MOST,
            partial(bets, draw=draw, users=1000, width=width),
        )
        for kind, (draw, width) in bounded.items()
    ]
    for kind in ("kNN, popularity", "log-normal", "5 % buyers"):
        find = partial(looks, draw=PAIRS[kind], users=1000)
        cases.append(Case("t, no range", kind, 1000, None, find))
    return cases


CASES = [
    *of_pairs(),
    *of_different_users(),
    *of_margins(),
    *of_families(),
    *of_segments(),
    *of_looks(),
]


if __name__ == "__main__":
    runs = simulation.options("false_positives", __doc__)
    simulation.show("false_positives", [simulation.table(CASES, "false_positives", runs)], runs)
