"""One row per user → one row per metric: mean, spread and an interval of the mean."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args

import polars as pl

from rankframe._all_lists import is_of_targets, margins
from rankframe._evaluate import UserValues, user_values
from rankframe._frames import Frame, FrameT, to_caller_type
from rankframe._labels import Metric, RequestedMetric
from rankframe._options import (
    INPUTS,
    Options,
    check_choice,
    check_confidence,
    read_options,
    whole_number,
)
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from rankframe._statistics import Advance, Array, Outcome, Resampling

Method: TypeAlias = Literal["t", "bootstrap", "percentile"]

_MOST_RESAMPLES = 10_000_000  # their shifts are held in memory

_SUMMARY = {
    "metric": pl.String,
    **dict.fromkeys(("users", "undefined"), pl.Int64),
    **dict.fromkeys(("mean", "std", "ci_low", "ci_high", "min", "median", "max"), pl.Float64),
    "note": pl.String,
}


def summarize(
    frame: FrameT,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    confidence: float = 0.95,
    method: Method = "t",
    resamples: int = 10_000,
    seed: int = 0,
    **options: Unpack[Options],
) -> FrameT:
    """
    Describe metrics over users: mean, spread and an interval of the mean.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    *metrics
        Labels or expressions, as in ``evaluate``.
    truth
        The truth that judges the run.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    confidence
        The probability that the interval covers the true mean.
    method
        ``"t"``: Student's interval; ``"bootstrap"``: BCa, which corrects for bias and skewness;
        ``"percentile"``: the plain bootstrap.
    resamples
        Number of bootstrap resamples.
    seed
        Seed of the bootstrap; one seed produces the same numbers everywhere.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per group and metric: by…, ``metric``, ``users`` (the number that the policy
        selects), ``undefined`` (the number of those whose value is null; the columns that follow
        leave them out), ``mean``, ``std``, ``ci_low``, ``ci_high``, ``min``, ``median``, ``max``
        and ``note``, which explains why a number is null. Counts such as ``num_hits`` are averaged.
        For a geometric mean such as ``gmap``, ``mean`` is that mean, without an interval, and the
        other columns describe its per-user metric.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or a metric is not a finite number.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.
    ImportError
        Without SciPy: ``pip install 'rankframe[stats]'``.

    Notes
    -----
    B. Efron, *JASA* 82, 1987, for BCa.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "rank": [1, 2, 4]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> rf.summarize(run, "rr", truth=truth).select("metric", "users", "mean", "ci_low", "ci_high")
    shape: (1, 5)
    ┌────────┬───────┬──────────┬───────────┬──────────┐
    │ metric ┆ users ┆ mean     ┆ ci_low    ┆ ci_high  │
    │ ---    ┆ ---   ┆ ---      ┆ ---       ┆ ---      │
    │ str    ┆ i64   ┆ f64      ┆ f64       ┆ f64      │
    ╞════════╪═══════╪══════════╪═══════════╪══════════╡
    │ rr     ┆ 3     ┆ 0.583333 ┆ -0.365312 ┆ 1.531979 │
    └────────┴───────┴──────────┴───────────┴──────────┘
    """
    values = user_values(
        frame, metrics, truth, by, read_options(options), per_user=False, all_lists=True
    )
    summary = summary_of(
        values, confidence=confidence, method=method, resamples=resamples, seed=seed
    )
    return to_caller_type(
        summary, like=frame, beside=(truth, *(options.get(name) for name in INPUTS))
    )


def summary_of(
    values: UserValues, *, confidence: float, method: Method, resamples: int, seed: int
) -> pl.LazyFrame:
    """Plan a summary of values per user."""
    check_confidence(confidence)
    check_choice("method", method, get_args(Method))
    resampling = asked_resampling(resamples, seed)
    check_numbers(values)
    schema = made_schema("summarize", values, _SUMMARY)
    reduce = partial(
        _summarized, values=values, confidence=confidence, method=method, resampling=resampling
    )
    summary = values.rows.map_batches(reduce, schema=schema)
    if values.of_lists is None:
        return summary
    both = pl.concat([summary, _of_all_lists(values, schema, confidence, method, seed)])
    order = pl.col("metric").replace_strict(
        values.of_lists.asked, list(range(len(values.of_lists.asked)))
    )
    return both.sort(*values.by, order)


_NO_INTERVAL = "one number of all lists; no interval: its target changes with the users"


def _of_all_lists(
    values: UserValues, schema: dict[str, Any], confidence: float, method: Method, seed: int
) -> pl.LazyFrame:
    """Describe the metrics of all lists: one number per group, without a spread over users."""
    of_lists, numbers = values.of_lists, values.numbers
    assert of_lists is not None
    assert numbers is not None
    names = [one.name for one in of_lists.requested]
    numbers = numbers.with_columns(pl.col(names).cast(pl.Float64))
    rows = numbers.unpivot(
        on=names, index=[*values.by, "users"], variable_name="metric", value_name="mean"
    )
    if method == "t":
        spread = margins(of_lists, confidence, seed)
        rows = rows.join(spread, on=[*values.by, "metric"], how="left", nulls_equal=True)
        note = "one number of all lists; interval: jackknife over groups of users"
    else:
        rows = rows.with_columns(margin=pl.lit(None, pl.Float64))
        note = "no interval: resampled users can only lose items; take method='t'"
    fixed = [one.name for one in of_lists.requested if not is_of_targets(one)]
    known = pl.col("metric").is_in(fixed)
    mean, margin = pl.col("mean"), pl.when(known).then("margin")
    noted = pl.when(known).then(pl.lit(note)).otherwise(pl.lit(_NO_INTERVAL))
    rows = rows.with_columns(ci_low=mean - margin, ci_high=mean + margin, note=noted)
    missing = [name for name in schema if name not in rows.collect_schema()]
    nulls = {name: pl.lit(None, schema[name]) for name in missing}
    return rows.with_columns(**nulls).select(list(schema)).cast(pl.Schema(schema))


def _summarized(
    rows: pl.DataFrame,
    *,
    values: UserValues,
    confidence: float,
    method: Method,
    resampling: Resampling,
) -> pl.DataFrame:
    from rankframe import _statistics as st

    check_sizes(rows, values)
    requested, by = values.requested, values.by
    rows = rows.sort(*by, values.user)
    groups = rows.partition_by(by, maintain_order=True) if by else [rows]
    vectors: list[Array] = []
    notes: list[str | None] = []
    for group in groups:
        for metric in requested:
            vector = st.rounded(group[metric.name].cast(pl.Float64).drop_nulls().to_numpy())
            notes.append(_note(metric, vector))
            vectors.append(vector if metric.per_user else vector[:0])

    def interval(matrix: Array, advance: Advance) -> Outcome:
        if method == "t":
            return st.t_test(matrix, confidence)
        return st.bootstrap(matrix, confidence, resampling, advance, bca=method == "bootstrap")

    outcome = st.in_matrices(vectors, interval, resampling.times)
    order = "__rankframe_order"
    tables: list[pl.DataFrame] = []
    for place, metric in enumerate(requested):
        columns = [*_described(metric, values.user), pl.lit(place).alias(order)]
        tables.append(rows.group_by(by).agg(columns) if by else rows.select(columns))
    if not tables:
        return pl.DataFrame(schema=made_schema("summarize", values, _SUMMARY))
    summary = pl.concat(tables).sort(*by, order)
    summary = summary.with_columns(
        pl.Series("ci_low", outcome.low).fill_nan(None),
        pl.Series("ci_high", outcome.high).fill_nan(None),
        pl.Series("note", notes, pl.String),
    )
    return summary.select(*by, *_SUMMARY)


def _described(metric: RequestedMetric, user: str) -> list[pl.Expr]:
    value = pl.col(metric.name).cast(pl.Float64)
    users = pl.col(user).count().cast(pl.Int64)
    mean = value.mean() if metric.per_user else metric.over_users(value).cast(pl.Float64)
    return [
        pl.lit(metric.name).alias("metric"),
        users.alias("users"),
        (users - value.count()).alias("undefined"),
        mean.alias("mean"),
        value.std().alias("std"),
        value.min().alias("min"),
        value.median().alias("median"),
        value.max().alias("max"),
    ]


def _note(metric: RequestedMetric, values: Array) -> str | None:
    """Return why a number is null."""
    if len(values) < 2:
        return "one user" if len(values) else "no user has a value"
    if not metric.per_user:
        return "no interval: not an arithmetic mean"
    return None if values.min() < values.max() else "every user has the same value"


# ------------------------------------------------------------------ checks of every verb here


def made_schema(verb: str, values: UserValues, made: dict[str, Any]) -> dict[str, Any]:
    """Put the columns of ``by`` before those that the verb makes."""
    types = values.rows.collect_schema()
    for name in values.by:
        if name in made:
            msg = f"column {name!r}: {verb} makes a column of this name: rename it"
            raise RankingDataError(msg)
    return {**{name: types[name] for name in values.by}, **made}


def check_sizes(rows: pl.DataFrame, values: UserValues) -> None:
    """Check that values are small enough to be squared: otherwise the variance is infinite."""
    for metric in values.requested:
        greatest = rows.select(pl.col(metric.name).cast(pl.Float64).abs().max()).item()
        if greatest is not None and greatest > 1e100:
            msg = (
                f"metric {metric.name!r}: a value as large as {greatest:.0e} has no finite "
                "variance: rescale the metric"
            )
            raise RankingDataError(msg)


def check_numbers(values: UserValues) -> None:
    """Check that every metric is a number for each user."""
    types = values.rows.collect_schema()
    for metric in values.requested:
        dtype = types[metric.name]
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)):
            msg = f"metric {metric.name!r} is {dtype} for each user; statistics need numbers"
            raise ValueError(msg)


def asked_resampling(resamples: object, seed: object) -> Resampling:
    """Read the options of resampling, and check that the packages it needs are installed."""
    times = whole_number("resamples", resamples)
    if times > _MOST_RESAMPLES:
        msg = f"resamples must not be above {_MOST_RESAMPLES:,}, not {times:,}"
        raise ValueError(msg)
    start = whole_number("seed", seed, least=0)
    check_installed()
    from rankframe._statistics import Resampling

    return Resampling(times, start)


def check_installed() -> None:
    """Check that the packages of the extra ``stats`` are installed."""
    if missing := [name for name in ("numpy", "scipy", "tqdm") if find_spec(name) is None]:
        msg = f"statistics need {' and '.join(missing)}: pip install 'rankframe[stats]'"
        raise ImportError(msg)
