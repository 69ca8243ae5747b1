"""Accuracy from biased observations: biased by popularity, or by sampled negatives."""

from functools import lru_cache
from math import inf, log2, nan
from typing import Literal

import polars as pl

from rankframe._request import keywords
from rankframe._request.labels import labelled
from rankframe._request.parameters import ColumnName
from rankframe.metrics._building_blocks import (
    chance_within,
    discount_within,
    rank,
    relevant,
    where_relevant,
)

__all__ = ["corrected_at", "snips_dcg_at", "snips_recall_at"]


@labelled(
    "snips_recall",
    in_words="How much of what users want do we show, corrected for what they could see?",
)
def snips_recall_at(
    k: int | None = None, *, propensity: ColumnName = "popularity", power: float = 1
) -> pl.Expr:
    """
    Unbiased recall: Σ [rank ≤ k]/p / Σ 1/p, both sums over the relevant items.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    propensity
        A column of the truth: the chance p > 0 that an item's relevance is observed; or
        ``"popularity"``, which reads ``history=``.
    power
        p is the column raised to this power ≥ 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``snips_recall@k``. Null for a user without a relevant item.

    Notes
    -----
    Self-normalized inverse propensity scoring: Yang et al., *RecSys* 2018, where the
    power is (γ + 1)/2. An item that nobody had counts as if one user had it.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 2]})
    >>> truth = pl.DataFrame({"user": 1, "item": ["a", "b"], "seen_by": [0.75, 0.25]})
    >>> recall = rf.metrics.snips_recall_at(1, propensity="seen_by")
    >>> round(run.rank.evaluate(recall, truth=truth).item(0, 1), 4)
    0.25
    """
    return _snips(chance_within(k), propensity, power)


@labelled(
    "snips_dcg",
    value_range=(0, 1),
    in_words="How much value do higher places hold, corrected for what users could see?",
)
def snips_dcg_at(
    k: int | None = None, *, propensity: ColumnName = "popularity", power: float = 1
) -> pl.Expr:
    """
    Unbiased DCG: Σ [rank ≤ k]/(p·log2(rank + 1)) / Σ 1/p, both sums over the relevant items.

    Parameters
    ----------
    k
        Cut-off; None means the whole list.
    propensity
        A column of the truth: the chance p > 0 that an item's relevance is observed; or
        ``"popularity"``, which reads ``history=``.
    power
        p is the column raised to this power ≥ 0.

    Returns
    -------
    Expr
        Float64 in [0, 1], named ``snips_dcg@k``. Null for a user without a relevant item.

    Notes
    -----
    See ``snips_recall``. Yang et al., *RecSys* 2018.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b"], "rank": [1, 3]})
    >>> truth = pl.DataFrame({"user": 1, "item": ["a", "b"], "seen_by": [0.75, 0.25]})
    >>> dcg = rf.metrics.snips_dcg_at(3, propensity="seen_by")
    >>> round(run.rank.evaluate(dcg, truth=truth).item(0, 1), 4)
    0.625
    """
    return _snips(discount_within(k), propensity, power)


@labelled(
    "corrected",
    value_range=(-inf, inf),
    in_words="What would the metric be on the whole catalogue instead of a sample?",
)
def corrected_at(
    k: int | None = None,
    *,
    collection: int,
    sampled: int,
    metric: Literal["ndcg", "recall", "rr"] = "ndcg",
    gamma: float = 0.1,
) -> pl.Expr:
    """
    Corrected sampled metric: the mean over the relevant items of f̂(rank among sampled items).

    Parameters
    ----------
    k
        Cut-off of the metric in the whole catalogue; None means all of it.
    collection
        n, the number of items that a full evaluation would rank, > 1.
    sampled
        m, the number of sampled irrelevant items that each relevant item is ranked among.
    metric
        f, the metric of one relevant item: ``"ndcg"`` = 1/log2(rank + 1), ``"recall"`` = 1,
        ``"rr"`` = 1/rank, each 0 below k.
    gamma
        γ from 0 (no bias) to 1 (least variance).

    Returns
    -------
    Expr
        Float64, named ``corrected(collection=…, sampled=…)@k``; may be < 0 or > 1. Null for a user
        without a relevant item.

    Raises
    ------
    ValueError
        If ``collection`` is not greater than ``sampled``.

    Notes
    -----
    Krichene and Rendle, *KDD* 2020, the bias–variance estimate with a uniform prior: f̂ = ((1 −
    γ)·AᵀA + γ·diag(1ᵀA))⁻¹·Aᵀf, A(r, j) = the chance that j of the m are above, Binomial(m,
    (r − 1)/(n − 1)). A list holds the m sampled items and one relevant item. A full evaluation is
    better than any correction.

    Examples
    --------
    >>> run = pl.DataFrame({"user": 1, "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["a"]})
    >>> recall = rf.metrics.corrected_at(2, collection=10, sampled=2, metric="recall")
    >>> round(run.rank.evaluate(recall, truth=truth).item(0, 1), 4)
    0.8417
    """
    if gamma > 1 or not sampled < collection:
        msg = (
            f"corrected_at: γ must be from 0 to 1 and collection > sampled, not {gamma}, "
            f"{collection} and {sampled}"
        )
        raise ValueError(msg)
    values = _estimate(metric, k, collection, sampled, gamma)
    places = list(range(1, sampled + 2))
    # NaN below rank m + 1, which no list should reach: the call then raises
    at = rank.replace_strict(places, values, default=nan, return_dtype=pl.Float64)
    at = pl.when(rank.is_null()).then(0.0).otherwise(at)
    return where_relevant(pl.when(relevant).then(at).mean())


def _snips(value: pl.Expr, propensity: str, power: float) -> pl.Expr:
    chance = pl.col(propensity).cast(pl.Float64, strict=False)
    if propensity == "popularity":
        chance = chance.clip(lower_bound=1)
    # NaN where p is not a number > 0: the call then raises
    weight = pl.when(chance > 0).then(1 / chance.pow(power)).otherwise(nan)
    worth = pl.when(relevant).then(weight)
    return where_relevant((value * worth).sum() / worth.sum())


@lru_cache(maxsize=64)
def _estimate(metric: str, k: int | None, n: int, m: int, gamma: float) -> list[float]:
    """Estimate of the metric in the whole catalogue, for each rank among sampled items."""
    keywords.need_numpy("corrected metrics")
    import numpy as np

    ranks = range(1, n + 1)
    worth = {"ndcg": [1 / log2(r + 1) for r in ranks], "rr": [1 / r for r in ranks]}
    of_ranks = worth.get(metric, [1.0] * n)
    f = np.array([of_ranks[r - 1] if k is None or r <= k else 0.0 for r in ranks])
    chance = np.arange(n) / (n - 1)
    a = np.zeros((n, m + 1))  # by Pascal's recurrence, so that no factorial overflows
    a[:, 0] = 1
    for _ in range(m):
        above = np.zeros_like(a)
        above[:, 1:] = a[:, :-1]
        a = a * (1 - chance[:, None]) + above * chance[:, None]
    left = (1 - gamma) * a.T @ a + gamma * np.diag(a.sum(axis=0))
    estimate = np.linalg.lstsq(left, a.T @ f, rcond=None)[0]
    return [float(value) for value in estimate]
