"""Compares metrics: means of systems in, the agreement of their orders out."""

from __future__ import annotations

from itertools import permutations

import polars as pl

from rankframe._comparison import summaries
from rankframe._comparison.packages import statistics
from rankframe._request import keywords, labels
from rankframe._request.types import FrameT
from rankframe._tables import adapters
from rankframe.errors import RankingDataError

_AGREEMENT = dict.fromkeys(("metric", "other"), pl.String()) | {
    "systems": pl.Int64(),
    **dict.fromkeys(("kendall_tau", "tau_ap"), pl.Float64()),
}


@adapters.takes_any_frame
def metric_agreement(means: FrameT, /, *metrics: str, model: str = keywords.MODEL) -> FrameT:
    """
    Compare the orders in which metrics put systems: Kendall's τ and AP correlation.

    Parameters
    ----------
    means
        A frame of ``evaluate``: one row per system, one column per metric. For the orders on other
        users or judgments, join their frame: ``means.join(other, on="model", suffix="_other")``.
    *metrics
        The columns to compare; by default all numeric columns except ``users``.
    model
        The column that names the systems.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per ordered pair of columns: ``metric``, ``other``, ``systems`` (with a value in
        both; the others are left out), ``kendall_tau`` (τ_b, adjusted for ties) and ``tau_ap``,
        null if all systems tie, or there is only one. ``tau_ap`` = 2/(n − 1)·Σ (systems correctly
        above it in the order of ``metric``) / (all systems above it) − 1, summed over all systems
        but the first: ``other`` is the truth, and the top of the order of ``metric`` counts most.
        It is not symmetric: the exchanged pair is another row.

    Raises
    ------
    RankingDataError
        If a column is missing, or a system is duplicated or null.
    ValueError
        If there are fewer than two metrics to compare.

    Notes
    -----
    A column whose name is the label of a metric for which lower is better is ordered from its
    lowest value; all others from their highest. Values that agree to 14 significant digits tie. For
    systems that tie in ``metric``, ``tau_ap`` is the mean over all their orders; a pair that ties
    in ``other`` counts as half correct. E. Yilmaz, J. A. Aslam and S. Robertson, *SIGIR* 2008;
    J. Urbano and M. Marrero, *ICTIR* 2017: it equals their τ_AP,a if only ``metric`` has ties.

    Examples
    --------
    >>> means = pl.DataFrame(
    ...     {
    ...         "model": ["als", "bpr", "knn", "pop"],
    ...         "users": [301] * 4,
    ...         "ndcg@10": [0.31, 0.33, 0.28, 0.1],
    ...         "mrr": [0.35, 0.32, 0.2, 0.22],
    ...     }
    ... )
    >>> rf.stats.metric_agreement(means).select(
    ...     "metric", "other", pl.col("kendall_tau", "tau_ap").round(3)
    ... )
    shape: (2, 4)
    ┌─────────┬─────────┬─────────────┬────────┐
    │ metric  ┆ other   ┆ kendall_tau ┆ tau_ap │
    │ ---     ┆ ---     ┆ ---         ┆ ---    │
    │ str     ┆ str     ┆ f64         ┆ f64    │
    ╞═════════╪═════════╪═════════════╪════════╡
    │ ndcg@10 ┆ mrr     ┆ 0.333       ┆ 0.111  │
    │ mrr     ┆ ndcg@10 ┆ 0.333       ┆ 0.111  │
    └─────────┴─────────┴─────────────┴────────┘
    """
    summaries.check_packages()
    lazy = adapters.to_lazy(means, "means")
    types = lazy.collect_schema()
    numeric = [name for name, kind in types.items() if kind.is_numeric() and name != "users"]
    names = [*dict.fromkeys(metrics)] or [name for name in numeric if name != model]
    for name in (model, *names):
        if name not in types or name not in (model, *numeric):
            kind = "" if name == model else "numeric "
            msg = f"means: no {kind}column {name!r}: pass a frame of evaluate, one row per system"
            raise RankingDataError(msg)
    if len(names) < 2:
        msg = f"agreement needs two metrics to compare, not only {', '.join(map(repr, names))}"
        raise ValueError(msg)

    def reduce(table: pl.DataFrame) -> pl.DataFrame:
        systems = table[model]
        if systems.null_count() or systems.is_duplicated().any():
            msg = f"means, column {model!r}: duplicate or null system: filter one segment"
            raise RankingDataError(msg)
        rows = [(*p, *agreement(table.select(p), p)) for p in permutations(names, 2)]
        return pl.DataFrame(rows, schema=_AGREEMENT, orient="row").fill_nan(None)

    table = lazy.select(model, *names).map_batches(reduce, schema=_AGREEMENT)
    return adapters.to_caller_type(table, like=means)


def agreement(means: pl.DataFrame, metrics: tuple[str, str]) -> tuple[int, float, float]:
    """Compare two columns, of these metrics, over systems with both: their number, τ and τ_AP."""
    both = means.cast(pl.Float64).fill_nan(None).drop_nulls()
    signs = [-1 if labels.traits_of_name(name).higher_is_better is False else 1 for name in metrics]
    orders = [
        sign * statistics.rounded(values.to_numpy())
        for sign, values in zip(signs, both, strict=True)
    ]
    return len(both), statistics.kendall_tau(*orders), statistics.tau_ap(*orders)
