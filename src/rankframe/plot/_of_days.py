"""Draw a metric over time: a log of results, or a summary by day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import isfinite
from typing import TYPE_CHECKING

import polars as pl
import polars.selectors as cs

from rankframe._comparison import sentences, summaries
from rankframe._evaluation import provenance
from rankframe._request import keywords, labels
from rankframe._request.types import Frame
from rankframe._tables import adapters, rules
from rankframe.errors import RankingDataError
from rankframe.plot import _tables

if TYPE_CHECKING:
    import altair as alt

_TABLE = "log"
_MOST_TIMES = 250  # of a line
_OPTIONAL = ("std", "ci_low", "ci_high", "missed", "num_missed", "undefined")


@adapters.takes_any_frame
def trend(
    frame: Frame,
    metric: str,
    /,
    *,
    time: str = "day",
    model: str | None = "model",
    by: str | Sequence[str] = (),
    floor: float | None = None,
    confidence: float = 0.95,
) -> alt.LayerChart | alt.VConcatChart:
    """
    Draw the mean of a metric over time, with its interval, and the users who have no list.

    Parameters
    ----------
    frame
        A log of results, or what ``summarize`` returns: one row per time, system and metric, with
        the columns ``metric``, ``mean`` and ``users``; and, for what they draw, ``ci_low`` and
        ``ci_high`` or ``std``, and ``missed`` (a share) or ``num_missed``.
    metric
        The metric to draw: a value of the column ``metric``.
    time
        The column of the time: dates, times, integers, or text, of which dates such as
        ``"2026-11-01"`` are read as dates and others are drawn in the order of their rows.
    model
        The column that names the systems.
    by
        Columns of segments, such as country, fold or day.
    floor
        A value that the means should not cross, drawn as a line.
    confidence
        The probability that a single interval covers the true value, where the frame has ``std``
        and no intervals.

    Returns
    -------
    altair.LayerChart or altair.VConcatChart
        Means as lines with bands. A time without a row is a gap: one that other systems have, or
        that the usual step between times skips. A system that is null, as in the rows of
        ``total=True``, is called ``all``. Below, if any user has no list, the share of such
        users. The drawn numbers are in ``chart.data``: ``time``, ``at`` (as text), ``system``,
        ``users``, ``mean``, ``ci_low``, ``ci_high``, ``missed``. Of more than 250 times, several
        are averaged (weeks of days), weighted by users, as are their intervals; ``missed`` is then
        the greatest share. The title says so.

    Raises
    ------
    RankingDataError
        If the frame has no row of the metric, a row without a time, two rows of one time and
        system, different ``conventions``, or numbers that are text or NaN.
    ValueError
        If ``floor`` is not a finite number.

    Examples
    --------
    >>> log = pl.DataFrame(
    ...     {"day": ["2026-11-01", "2026-11-02"], "metric": "rr", "mean": [0.5, 0.4], "users": 9}
    ... )
    >>> chart = rf.plot.trend(log, "rr")
    >>> chart.data.select("at", "mean").rows()
    [('2026-11-01', 0.5), ('2026-11-02', 0.4)]
    """
    _tables.check_call()
    keywords.check_confidence(confidence)
    if floor is not None and not (keywords.is_number(floor) and isfinite(floor)):
        msg = f"floor must be a finite number, not {floor!r}"
        raise ValueError(msg)
    rows = adapters.to_lazy(frame, _TABLE).collect()
    groups = [name for name in keywords.group_names(by) if name != model]
    if model is not None and (model in rows.columns or model != keywords.MODEL):
        groups = [model, *groups]
    limits = labels.traits_of_name(metric)[1:]
    of_metric = _checked(rows, metric, time, groups)
    table = over_time(of_metric, time, groups, limits, confidence=confidence)
    from rankframe.plot import _day_pictures

    return _day_pictures.trend(table, metric, time, groups, floor, confidence=confidence)


def _checked(rows: pl.DataFrame, metric: str, time: str, groups: Sequence[str]) -> pl.DataFrame:
    """Return the rows of a metric, which are one per time and system."""
    keys = [time, *groups]
    if missing := [name for name in (*keys, "metric", "mean", "users") if name not in rows.columns]:
        has = ", ".join(map(repr, rows.columns))
        msg = f"{_TABLE}: no column {', '.join(map(repr, missing))}; it has {has}"
        raise RankingDataError(msg)
    of_metric = rows.filter(metric=metric)
    _check_columns(of_metric, time)
    if of_metric["mean"].count() == 0:
        names = ", ".join(map(repr, rows["metric"].unique(maintain_order=True)))
        msg = f"{_TABLE}: no mean of {metric!r}; its metrics are {names}"
        raise RankingDataError(msg)
    provenance.raise_if_mixed(of_metric, _TABLE, keys)
    if not (twice := of_metric.filter(of_metric.select(keys).is_duplicated())).is_empty():
        row = rules.format_row(twice.select(keys).head(1))
        msg = f"{_TABLE}: two rows of {metric!r} at {row}: keep one, or name more columns in by="
        raise RankingDataError(msg)
    return of_metric


def _check_columns(rows: pl.DataFrame, time: str) -> None:
    """Check that each row has a time, and that numbers are numbers."""
    for name in {"mean", "users", *_OPTIONAL} & {*rows.columns}:
        dtype = rows.schema[name]
        if not dtype.is_numeric() and dtype != pl.Null:
            msg = f"{_TABLE}, column {name!r}: its type is {dtype}: cast it to a number"
            raise RankingDataError(msg)
    wrong = {
        "the time is null": rows[time].is_null(),
        "the mean is NaN": rows["mean"].cast(pl.Float64).is_nan(),
    }
    for what, of_rows in wrong.items():
        if not (broken := rows.filter(of_rows)).is_empty():
            row = rules.format_row(broken.head(1))
            msg = f"{_TABLE}: {what}: leave the row out, or repair it. Offending row: {row}"
            raise RankingDataError(msg)


def over_time(
    rows: pl.DataFrame,
    time: str,
    groups: Sequence[str],
    limits: tuple[float, float],
    *,
    confidence: float = 0.95,
) -> pl.DataFrame:
    """Return one row per time and system, in order; a time without a row has nulls."""
    none = pl.lit(None, pl.Float64)
    has, missed = {*rows.columns}, none
    if "missed" in has or "num_missed" in has:
        selected = summaries.SELECTED if "undefined" in has else pl.col("users")
        missed = pl.col("missed") if "missed" in has else pl.col("num_missed") / selected
    margin = none
    if "ci_low" not in has and "std" in has:
        margin = _tables.margins(rows, confidence)
    ends = {"ci_low": pl.col("mean") - margin, "ci_high": pl.col("mean") + margin}
    if {*ends} <= has:
        ends = {name: pl.col(name) for name in ends}
    when = rows[time]
    if when.dtype == pl.String:
        dates = when.str.to_date("%Y-%m-%d", strict=False)
        texts = pl.Enum(when.unique(maintain_order=True))  # whose order is that of the rows
        when = when.cast(texts) if dates.has_nulls() else dates
    table = rows.select(
        when.alias("time"),
        sentences.text_of(rows, groups).fill_null("all").alias("system"),
        "users",
        "mean",
        *(end.clip(*limits).alias(name) for name, end in ends.items()),
        missed=missed,
    )
    times = table.select("time").unique().sort("time")["time"]
    usual = None
    if len(times) > 1 and (when.dtype.is_temporal() or when.dtype.is_integer()):
        usual = times.diff().drop_nulls().mode().min()
        skipped = times.filter(times.diff().shift(-1) > usual) + usual
        times = pl.concat([times, skipped.cast(times.dtype)]).unique().sort()
    systems = table.select("system").unique(maintain_order=True).sort("system")
    grid = times.to_frame().join(systems, how="cross")
    table = grid.join(table, on=["time", "system"], how="left", maintain_order="left")
    every = -(-len(times) // _MOST_TIMES)
    if every > 1:
        days = when.dtype == pl.Date and usual == timedelta(days=1)
        table = _averaged(table, -(-every // 7) * 7 if days else every)
    drawn = pl.col("mean").is_not_null()
    beside = [drawn.shift(step, fill_value=False).over("system") for step in (1, -1)]
    return table.with_columns(
        cs.enum().cast(pl.String),
        at=pl.col("time").cast(pl.String),
        alone=drawn & ~pl.any_horizontal(beside),
    )


def _averaged(table: pl.DataFrame, every: int) -> pl.DataFrame:
    """Average several times by users; so are bands, as users may return, but not missed users."""
    users, numbers = pl.col("users"), ("mean", "ci_low", "ci_high")
    weighted = [
        ((pl.col(name) * users).sum() / users.filter(pl.col(name).is_not_null()).sum())
        .fill_nan(None)
        .alias(name)
        for name in numbers
    ]
    return (
        table.with_columns(place=pl.col("time").rle_id() // every)
        .with_columns(time=pl.col("time").first().over("place"), times=every)
        .group_by("time", "system", "times", maintain_order=True)
        .agg(users.mean().round().cast(pl.Int64), *weighted, pl.col("missed").max())
    )
