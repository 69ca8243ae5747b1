"""Compares metrics: means of systems in, agreement of orders and discriminative power out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import isnan
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import comparison, summaries, trials
from rankframe._comparison.trials import Test
from rankframe._request import keywords, labels
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array

_USERS, _PLACE, _RIGHT = "users", "__rankframe_place", "__rankframe_right"
_AGREEMENT = {
    **dict.fromkeys(("metric", "other"), pl.String),
    "systems": pl.Int64,
    **dict.fromkeys(("kendall_tau", "tau_ap"), pl.Float64),
    "note": pl.String,
}
_POWER = {
    "metric": pl.String,
    **dict.fromkeys(("pairs", "separated"), pl.Int64),
    "share": pl.Float64,
    "note": pl.String,
}
_CURVE = ("metric", "baseline", "place", "difference", "p_value")


@adapters.takes_any_frame
def metric_agreement(
    means: FrameT,
    /,
    *metrics: str,
    other: Frame | None = None,
    model: str = "model",
    by: str | Sequence[str] = (),
) -> FrameT:
    """
    Compare the orders in which metrics put systems: Kendall's τ and AP correlation.

    Parameters
    ----------
    means
        A frame of ``evaluate``: one row per system, one column per metric.
    *metrics
        The columns to compare; by default all numeric columns except ``users``.
    other
        A second frame of ``evaluate``, with the same systems on other users or judgments; each
        metric of ``means`` is compared with each metric of ``other``. By default the metrics of
        ``means`` are compared with each other.
    model
        The column that names the systems.
    by
        Columns of segments, such as country, fold or day.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment and ordered pair of columns: segments…, ``metric``, ``other``,
        ``systems`` (with a value in both; the others are left out), ``kendall_tau`` (τ_b, adjusted
        for ties), ``tau_ap`` and ``note``, which explains why a number is null. ``tau_ap`` =
        2/(n − 1)·Σ (systems correctly above it in the order of ``metric``) / (all systems above it)
        − 1, summed over all systems but the first: ``other`` is the truth, and the top of the order
        of ``metric`` counts most. It is not symmetric: the exchanged pair is another row.

    Raises
    ------
    RankingDataError
        If a column is missing, is not numeric or has NaN, a system is duplicated or null, or the
        two frames have different systems.
    ValueError
        If ``by`` is empty, or there are fewer than two metrics to compare.

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
    left = adapters.to_lazy(means, "means")
    groups = [model, *(name for name in keywords.group_names(by) if name != model)]
    if model == keywords.MODEL and model not in left.collect_schema():
        msg = (
            f"means: no column {model!r}; agreement takes a frame of evaluate, one row per system: "
            "name the column of the systems with model="
        )
        raise ValueError(msg)
    names = _metrics_of(left, metrics, groups, "means")
    summaries.check_made("metric_agreement", groups, _AGREEMENT)
    if other is None:
        right, other_names = left, names
        pairs = [pair for pair in product(names, names) if pair[0] != pair[1]]
    else:
        right = adapters.to_lazy(other, "other")
        other_names = _metrics_of(right, metrics, groups, "other")
        pairs = [*product(names, other_names)]
    if not pairs:
        msg = f"agreement needs two metrics to compare, not only {', '.join(map(repr, names))}"
        raise ValueError(msg)
    model, *segments = groups
    types = left.collect_schema()
    schema: dict[str, Any] = {**{name: types[name] for name in segments}, **_AGREEMENT}
    of_means = _mark_columns(left, groups, names, 0, types)
    of_other = _mark_columns(right, groups, other_names, 1, types)
    both = pl.concat([of_means, of_other], how="diagonal")

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        _check_systems(rows, model, segments)
        rows = rows.sort(segments) if segments else rows
        groups = rows.partition_by(segments, maintain_order=True) if segments else [rows]
        results: list[dict[str, Any]] = []
        for group in groups:
            of_segment = group.select(segments).row(0, named=True) if segments else {}
            results += [of_segment | orders for orders in _compare_orders(group, model, pairs)]
        return pl.DataFrame(results, schema=schema)

    table = both.map_batches(reduce, schema=schema)
    return adapters.to_caller_type(table, like=means, beside=(other,))


@adapters.takes_any_frame
def discriminative_power(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    test: Test = "bootstrap",
    confidence: float = 0.95,
    curve: bool = False,
    resamples: int = 10_000,
    seed: int = 0,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Discriminative power of metrics: the share of pairs of systems that a test separates.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    test
        A test of ``compare``: tests of a single pair are not corrected, as in the source; tests of
        all systems at once (``"max_t"``, ``"tukey"``, ``"friedman"``) are corrected over the pairs
        of a metric.
    confidence
        A pair is separated if p is below 1 − confidence.
    curve
        Return the curve instead: the p-value of every pair, least first.
    resamples
        Number of resamples: bootstrap samples, permutations or patterns of signs.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment and metric: segments…, ``metric``, ``pairs``, ``separated``, ``share`` =
        separated / pairs, and ``note``, which reports how many pairs have no p-value; these are not
        separated. With ``curve=True``, one row per pair: the system (in the column of the
        model), segments…, ``metric``, ``baseline``, ``place`` (1 = the least p), ``difference`` and
        ``p_value``.

    Notes
    -----
    It measures how sensitive a metric is, not whether it measures what matters. T. Sakai, *SIGIR*
    2006. Of 190 pairs without a difference, 9 or 10 are separated by chance without a correction.

    Geometric means such as ``gmap@10`` are tested on their logarithms.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [9, 5, 8, 1, 1, 2]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> rf.stats.discriminative_power(run, "rr", "hit@5", truth=truth, test="t").rows()
    [('rr', 1, 0, 0.0, None), ('hit@5', 1, 0, 0.0, None)]
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="discriminative_power")
    keywords.check_flag("curve", curve)
    summaries.check_unweighted("discriminative_power", options)
    model, *segments = by
    kind = "run" if truth is not None else "judged table"
    compared = comparison.compare(
        adapters.to_lazy(frame, kind),
        *metrics,
        truth=truth,
        by=by,
        test=test,
        correction="holm" if test in trials.JOINT_TESTS else None,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        **options,
    )
    summaries.check_made("discriminative_power", by, {*_POWER, *_CURVE})
    keys = [*segments, "metric"]
    table = _curve(compared, keys, model) if curve else _shares(compared, keys, confidence)
    return adapters.to_caller_type(
        table, like=frame, beside=(truth, *(options.get(name) for name in keywords.INPUTS))
    )


# ------------------------------------------------------------------ orders of systems


def _metrics_of(
    means: pl.LazyFrame, metrics: Sequence[object], groups: Sequence[str], table: str
) -> list[str]:
    """Return the columns to compare, and check that all are present."""
    types = means.collect_schema()
    columns = [name for name in metrics if isinstance(name, str)]
    if alien := [type(metric).__name__ for metric in metrics if not isinstance(metric, str)]:
        msg = f"a metric of agreement is the name of a column, not {alien[0]}"
        raise TypeError(msg)
    for name in (*groups, *columns):
        if name not in types:
            msg = f"{table}: no column {name!r}; it has {', '.join(map(repr, types))}"
            raise RankingDataError(msg)
        if name in columns and not types[name].is_numeric():
            msg = f"{table}, column {name!r}: {types[name]} is not numeric: cast it or leave it out"
            raise RankingDataError(msg)
    numeric_columns = [
        name for name in types if types[name].is_numeric() and name not in (*groups, _USERS)
    ]
    return list(dict.fromkeys(columns)) or numeric_columns


def _mark_columns(
    means: pl.LazyFrame, groups: Sequence[str], names: Sequence[str], place: int, types: pl.Schema
) -> pl.LazyFrame:
    """Mark the columns of one of the two frames with its number."""
    own = means.collect_schema()
    for name in groups:
        if own[name] != types[name]:
            msg = f"other, column {name!r}: {own[name]}, but {types[name]} in means: cast one"
            raise RankingDataError(msg)
    values = [pl.col(name).cast(pl.Float64).alias(_column_at(place, name)) for name in names]
    return means.select(*groups, pl.lit(place, pl.Int8).alias(_PLACE), *values)


def _column_at(place: int, name: str) -> str:
    return f"__rankframe_{place}_{name}"


def _compare_orders(
    group: pl.DataFrame, model: str, pairs: Sequence[tuple[str, str]]
) -> Iterator[dict[str, Any]]:
    """Compare the orders of the systems of a segment, for each pair of metrics."""
    from rankframe._comparison import statistics

    left, right = (group.filter(pl.col(_PLACE) == place) for place in (0, 1))
    both = left.join(right, on=model, suffix=_RIGHT)
    for metric, other in pairs:
        means = both.select(_column_at(0, metric), _column_at(1, other) + _RIGHT).drop_nulls()
        orders: list[Array] = []
        for name, column in zip((metric, other), means.iter_columns(), strict=True):
            sign = -1 if _lower_is_better(name) else 1
            orders.append(sign * statistics.rounded(column.to_numpy()))
        tau, ap = statistics.kendall_tau(*orders), statistics.tau_ap(*orders)
        yield {
            "metric": metric,
            "other": other,
            "systems": len(means),
            "kendall_tau": None if isnan(tau) else tau,
            "tau_ap": None if isnan(ap) else ap,
            "note": _reason(means, metric, other) if isnan(tau) else None,
        }


def _reason(means: pl.DataFrame, *names: str) -> str:
    """Return why there are no two orders."""
    if len(means) < 2:
        return "one system has both" if len(means) else "no system has both"
    columns = zip(names, means.iter_columns(), strict=True)
    constant = [name for name, column in columns if column.n_unique() == 1]
    return f"every system has the same {[*constant, *names][0]}"


def _lower_is_better(name: str) -> bool:
    """Return whether a column has the name of a metric for which lower is better."""
    try:
        return labels.parse_metric(name).traits.higher_is_better is False
    except ValueError:  # a name of the caller's own
        return False


def _check_systems(rows: pl.DataFrame, model: str, segments: Sequence[str]) -> None:
    """Check that each frame has each system once, and that both have the same systems."""
    tables = [rows.filter(pl.col(_PLACE) == place) for place in (0, 1)]
    keys = [*segments, model]
    for table, own, other_systems in zip(("means", "other"), tables, tables[::-1], strict=True):
        if own[model].null_count():
            msg = f"{table}, column {model!r}: null is not a system: leave out the row of all users"
            raise RankingDataError(msg)
        if twice := own.filter(pl.struct(keys).is_duplicated()).select(keys).rows():
            system = ", ".join(map(repr, twice[0]))
            msg = (
                f"{table}, column {model!r}: duplicate system {system}: name the columns of the "
                "segments in by="
            )
            raise RankingDataError(msg)
        alone = own.join(other_systems, on=keys, how="anti", nulls_equal=True).select(keys).rows()
        if alone:
            absent = "other" if table == "means" else "means"
            system = ", ".join(map(repr, alone[0]))
            msg = f"{table}, column {model!r}: {system} is not in {absent}: keep the same systems"
            raise RankingDataError(msg)
        floats = own.select(pl.selectors.float())
        for name in floats.columns:
            if floats[name].is_nan().any():
                of_metric = name.removeprefix(_column_at(0, "")).removeprefix(_column_at(1, ""))
                msg = f"{table}, column {of_metric!r}: NaN found: replace it with null"
                raise RankingDataError(msg)


# ------------------------------------------------------------------ pairs that are separated


def _shares(compared: pl.LazyFrame, keys: Sequence[str], confidence: float) -> pl.LazyFrame:
    """Count the pairs that a test separates."""
    p = pl.col("p_adjusted")
    without = pl.col("__rankframe_without")
    note = pl.format("{} without a p-value", without)
    counted = compared.group_by(keys, maintain_order=True).agg(
        pairs=pl.len().cast(pl.Int64),
        separated=(p < keywords.alpha_of(confidence)).sum().cast(pl.Int64),
        __rankframe_without=p.null_count(),
    )
    return counted.select(
        *(*keys, "pairs", "separated"),
        share=pl.col("separated") / pl.col("pairs"),
        note=pl.when(without > 0).then(note),
    )


def _curve(compared: pl.LazyFrame, keys: Sequence[str], model: str) -> pl.LazyFrame:
    """Sort the pairs of each metric by their p-value."""
    row = "__rankframe_row"
    family = pl.col(row).min().over(keys)
    ordered = compared.with_row_index(row).sort(family, "p_adjusted", row, nulls_last=True)
    return ordered.select(
        *(model, *keys, "baseline"),
        (pl.int_range(pl.len(), dtype=pl.Int64) + 1).over(keys).alias("place"),
        "difference",
        pl.col("p_adjusted").alias("p_value"),
    )
