"""A metric VALUE whose values of users are given, and calls that compare them."""

import numpy as np
import polars as pl
from scipy import stats

import rankframe as rf

TESTS = ["t", "randomization", "max_t"]
FEW = 999  # resamples, where their number does not matter


def judged(*systems):
    """A table in which the metric VALUE of user u is systems[m][u]; None means undefined."""
    rows = [
        {"model": f"m{m}", "user": u, "item": 0, "rank": 1, "relevance": 1, "value": value}
        for m, values in enumerate(systems)
        for u, value in enumerate(values)
    ]
    return pl.DataFrame(rows, schema_overrides={"value": pl.Float64})


VALUE = pl.col("value").filter("relevant").first()


def compared(*systems, **options):
    return rf.compare(judged(*systems), VALUE, **{"details": True, **options})


def hall(values):
    """One-sided p that a mean is above 0, by Hall's transformation, in plain Python."""
    n, mean = len(values), sum(values) / len(values)
    second, third = (sum((x - mean) ** power for x in values) / n for power in (2, 3))
    t, skew = mean / (second / (n - 1)) ** 0.5, third / second**1.5
    h = t + skew * (t**2 / 3 + 1 / 6) / n**0.5 + skew**2 * t**3 / (27 * n)
    return stats.t.sf(h, n - 1)


def one(*systems, **options):
    return compared(*systems, **{"baseline": "m0", **options}).row(0, named=True)


def sample(seed, users, systems=2, spread=1.0):
    """Skewed values with a part that is the user's own."""
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=users) + spread * rng.gamma(1.0, size=(systems, users))


def uncorrected(test):
    """The option that leaves p-values as they are; tests of all systems have a correction."""
    return {} if test == "max_t" else {"correction": None}
