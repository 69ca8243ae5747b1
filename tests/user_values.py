"""A metric VALUE whose values of users are given, and calls that compare them."""

import numpy as np
import polars as pl

import rankframe as rf
from rankframe._comparison import trials

TESTS = ["t", "wilcoxon", "randomization", "bootstrap", "tukey", "max_t", "friedman"]
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
    return rf.compare(judged(*systems), VALUE, **options)


def one(*systems, **options):
    return compared(*systems, **{"baseline": "m0", **options}).row(0, named=True)


def sample(seed, users, systems=2, spread=1.0):
    """Skewed values with a part that is the user's own."""
    rng = np.random.default_rng(seed)
    return rng.gamma(2.0, size=users) + spread * rng.gamma(1.0, size=(systems, users))


def uncorrected(test):
    """The option that leaves p-values as they are; tests of all systems have a correction."""
    return {} if test in trials.JOINT_TESTS else {"correction": None}
