"""Values of users under systems whose true means are equal, and whose covariances are not.

All functions draw many runs at once, and return an array of systems × users × runs; of two systems,
the second is the baseline. The numbers of
``recommenders`` are those of 16 recommenders on MovieLens-100K, nDCG@10 of 920 users: popularity
(``"pop"``), truncated SVDs (``"svd"``) and item-kNN with several settings (``"knn"``).
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from rankframe._comparison.statistics import Array

#: The correlation of two systems, before values below 0 become 0.
CORRELATION = {
    ("knn", "knn"): 0.9,
    ("svd", "svd"): 0.75,
    ("pop", "pop"): 0.98,
    ("knn", "svd"): 0.72,
    ("knn", "pop"): 0.42,
    ("pop", "svd"): 0.38,
}
#: The share of users whose value is 0; the deviation of all others is alike.
ZEROS = {"knn": 0.15, "svd": 0.17, "pop": 0.34}
DEVIATION = 0.28

#: A grid of settings of one model beside one other model: nearly all differences are small.
NEAR_COPIES = ("knn",) * 10 + ("pop",)


#: Users of the pool from which tilted ones are drawn.
POOL = 2000


def tilted_recommenders(
    rng: np.random.Generator, users: int, runs: int, kinds: Sequence[str] = NEAR_COPIES
) -> Array:
    """Draw users of whom all systems are equally good; a value of 0 stays 0, and ties are ties."""
    return tilted(rng, recommenders(rng, POOL, 1, kinds, centered=False)[..., 0], users, runs)


def recommenders(
    rng: np.random.Generator,
    users: int,
    runs: int,
    kinds: Sequence[str] = NEAR_COPIES,
    *,
    centered: bool = True,
) -> Array:
    """Draw values like nDCG, by default less their true mean, so that of every system is 0."""
    correlation = np.array(
        [
            [1.0 if i == j else CORRELATION[min(a, b), max(a, b)] for j, b in enumerate(kinds)]
            for i, a in enumerate(kinds)
        ]
    )
    normal = rng.standard_normal((len(kinds), users * runs))
    latent = (np.linalg.cholesky(correlation) @ normal).reshape(-1, users, runs)
    for values, kind in zip(latent, kinds, strict=True):
        center, density = -NormalDist().inv_cdf(ZEROS[kind]), NormalDist().pdf
        mean = center * (1 - ZEROS[kind]) + density(center) if centered else 0.0
        values[:] = DEVIATION * (np.maximum(values + center, 0) - mean)
    return latent


def asymmetric(rng: np.random.Generator, users: int, runs: int, skewness: float = 0.5) -> Array:
    """Draw two systems: the first gains much for a few users, and loses little for most.

    The differences are gamma distributed; SVD − popularity has a skewness of 0.43.
    """
    baseline = recommenders(rng, users, runs, ["knn"])
    shape = (2 / skewness) ** 2
    change = (rng.standard_gamma(shape, (1, users, runs)) - shape) / np.sqrt(shape)
    return np.concatenate([baseline + DEVIATION * change, baseline])


def rare_losses(
    rng: np.random.Generator,
    users: int,
    runs: int,
    rate: float = 0.01,
    hits: float = 0.4,
    noise: float = 0.0,
) -> Array:
    """Draw hits of two systems: the first loses a hit of this share of the users, and gains none.

    The true difference is −rate. With noise, the values of all users differ a little, evenly.
    """
    baseline = rng.random((users, runs)) < hits
    lost = rng.random((users, runs)) < rate / hits
    drawn = np.array([baseline & ~lost, baseline], np.float64)
    if noise:
        drawn = (1 - 2 * noise) * drawn + noise * (1 + rng.uniform(-1, 1, drawn.shape))
    return drawn


def revenue(
    rng: np.random.Generator, users: int, runs: int, buyers: float = 0.05, most: float = np.inf
) -> Array:
    """Draw log-normal values of two systems, of which all but a few users have 0."""
    size = 2, users, runs
    return np.where(rng.random(size) < buyers, np.minimum(rng.lognormal(3, 1, size), most), 0.0)


def two_models(rng: np.random.Generator, users: int, runs: int) -> Array:
    """Draw nDCG of a model that does well for 30 % of the users, and of one that serves 70 % badly.

    Both means are 0.15.
    """
    found, other = rng.random((2, users, runs))
    found_too = np.where(rng.random(found.shape) < 0.5, found, other)
    well = np.where(found < 0.3, rng.beta(2, 2, found.shape), 0.0)
    badly = np.where(found_too < 0.7, rng.beta(0.9, 3.3, found.shape), 0.0)
    return np.array([well, badly])


def clusters(rng: np.random.Generator, sizes: Array, runs: int) -> Array:
    """Draw the same two models for users of clusters of these sizes, who depend on each other."""
    cluster = np.repeat(np.arange(len(sizes)), sizes.astype(int))
    of_clusters = two_models(rng, len(sizes), runs)[:, cluster]
    users = len(cluster)
    return np.where(rng.random((users, runs)) < 0.55, of_clusters, two_models(rng, users, runs))


def unequal_sizes(
    rng: np.random.Generator, *shape: int, spread: float = 1.2, median: float = 5
) -> Array:
    """Draw log-normal sizes of clusters."""
    return np.asarray(np.ceil(median * np.exp(rng.normal(0, spread, shape))), np.float64)


def hits(rng: np.random.Generator, users: int, runs: int, rate: float = 0.3) -> Array:
    """Draw hits of two systems that agree by nature for half of the users."""
    drawn = rng.random((3, users, runs)) < rate
    agreed = rng.random((users, runs)) < 0.5
    return np.where(agreed, drawn[2], drawn[:2]).astype(np.float64)


def log_normal(
    rng: np.random.Generator, users: int, runs: int, share: float = 1.0, most: float = np.inf
) -> Array:
    """Draw log-normal values of all users or of a share; the others have their mean, the baseline.

    So those of whom both systems are alike tie.
    """
    cut = np.log(most)
    mean = np.exp(0.5) * NormalDist().cdf(cut - 1)
    if cut < np.inf:
        mean += most * (1 - NormalDist().cdf(cut))
    size = users, runs
    drawn = np.minimum(rng.lognormal(0, 1, size), most)
    values = np.where(rng.random(size) < share, drawn, mean)
    return np.array([values, np.full_like(values, mean)])


def few_lose(
    rng: np.random.Generator,
    users: int,
    runs: int,
    amount: float = 0.5,
    rate: float = 0.02,
    gain: float = 0.0,
) -> Array:
    """Draw two systems: a share of the users loses an amount, and the others differ by ±0.02.

    These gain on average what makes up for the loss, up to a true difference of ``gain``.
    """
    baseline = rng.uniform(0.6, 0.8, (users, runs))
    lost = rng.random((users, runs)) < rate
    rest = (rate * amount + gain) / (1 - rate)
    change = np.where(lost, -amount, rest + rng.uniform(-0.02, 0.02, lost.shape))
    return np.array([baseline + change, baseline])


def tilted(
    rng: np.random.Generator, pool: Array, users: int, runs: int, difference: float = 0.0
) -> Array:
    """Draw users of a pool so that each system's true difference from the last is exactly this one.

    Users have probabilities tilted exponentially by their differences: values, ties and skewness
    stay those of the pool, where subtracting a mean turns ties into many equal tiny differences.
    """
    change = pool[:-1] - pool[-1] - difference
    tilt = np.zeros(len(change))
    for _ in range(100):  # Newton's method
        weights = np.exp(tilt @ change - (tilt @ change).max())
        chances = weights / weights.sum()
        mean = change @ chances
        tilt -= np.linalg.lstsq((change * chances) @ change.T - np.outer(mean, mean), mean)[0]
    drawn = rng.choice(pool.shape[1], (users, runs), p=chances)
    return np.asarray(pool[:, drawn], np.float64)


def unequal_clusters(rng: np.random.Generator, clusters: int, runs: int) -> tuple[Array, Array]:
    """Draw the mean differences and the sizes of clusters whose sizes are log-normal.

    Both are arrays of clusters × runs. Users of a cluster share an effect as large as their own.
    """
    sizes = unequal_sizes(rng, clusters, runs)
    effects, noise = rng.normal(0, 0.1, (2, clusters, runs))
    return effects + noise / np.sqrt(sizes), sizes
