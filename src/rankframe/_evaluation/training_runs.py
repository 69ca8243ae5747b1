"""Training runs of one system, as repetitions: ``Values`` per run in, one row per user out."""

from __future__ import annotations

import polars as pl

from rankframe._evaluation.user_columns import CLUSTER, MISSED, WEIGHT
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe.errors import Problem, option

#: The beginning of the names of columns of lists: a user's values of a metric, one per run.
_RUNS = f"{labels.PREFIX}runs_"


def merged(values: Values) -> Values:
    """Give each user of a system one row: the mean over its runs, beside the value of each run.

    It is null, unless the user has a value in every run of the system.
    """
    over = values.settings.over
    if over is None:
        return values
    for metric in values.all_requested:
        if metric.is_of_all_lists or not metric.per_user:
            said = (
                f"{option('over', over)}: metric {metric.name!r} is not a mean over users: evaluate"
            )
            raise ValueError(Problem(f"{said} it for each run, {option('by', over)}"))
    by, number = values.by[:-1], pl.col(over).n_unique()
    rows = values.rows.with_columns((number.over(by) if by else number).alias(_RUNS))
    has = rows.collect_schema()
    columns = [pl.col(MISSED).any()] if MISSED in has else []
    for name in values.names_per_user:
        value, runs = pl.col(name), pl.col(name).sort_by(over)
        whole = pl.when(value.count() == pl.col(_RUNS).first())
        columns += [whole.then(value.mean()).alias(name), whole.then(runs).alias(_RUNS + name)]
    keys = [*by, values.user, *(name for name in (WEIGHT, CLUSTER) if name in has)]
    return values._replace(by=by, rows=rows.group_by(keys, maintain_order=True).agg(columns))


def columns_of(rows: pl.DataFrame, metric: str) -> list[pl.Expr]:
    """Name a metric's values of the first run of each system, of the second, and so on.

    They are null for a system with fewer runs; without a column of runs there are none.
    """
    name = _RUNS + metric
    most = rows.select(pl.col(name).list.len().max()).item() if name in rows.columns else None
    runs = [pl.col(name).list.get(run, null_on_oob=True) for run in range(most or 0)]
    return [run.cast(pl.Float64) for run in runs]


def values_of(rows: pl.DataFrame, metric: str) -> list[pl.Series]:
    """Return the same values."""
    return [rows.select(run).to_series() for run in columns_of(rows, metric)]
