"""Draw a metric over time: a log of results, or a summary by day."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from math import isfinite
from typing import Any

import polars as pl
import polars.selectors as cs

from rankframe._comparison import sentences, summaries
from rankframe._evaluation import provenance
from rankframe._request import keywords, labels
from rankframe._request.types import Frame
from rankframe._tables import adapters, rules
from rankframe.errors import RankingDataError
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _names, _panels
from rankframe.plot._colors import Systems

_TABLE = "log"
_MOST_TIMES = 250  # of a line
_OPTIONAL = ("std", "ci_low", "ci_high", "missed", "num_missed", "num_left_out")
_MOST_POINTS = 60  # times whose means are marked
_FEW_DAYS = timedelta(days=12)  # which all have a label
#: how times are written, by their span; each label names its month
_FORMATS = {
    timedelta(days=2): "%b %d, %H:%M",
    timedelta(days=300): "%b %d",
    timedelta.max: "%b %Y",
}
_WIDTH = 560


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
        The column of the time: dates, times, integers, or text. Text such as ``"2026-11-01"`` is
        read as dates, and other text is drawn in the order of the rows.
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
        ``total=True``, is called ``all``. Below them is the share of users without a list, if there
        are any. The drawn numbers are in ``chart.data``: ``time``, ``at`` (as text), ``system``,
        ``users``, ``mean``, ``ci_low``, ``ci_high``, ``missed``. With more than 250 times,
        neighbors are averaged (days to weeks), weighted by users, as are their intervals;
        ``missed`` is then the greatest share. The title says so.

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
    _call.check_call()
    keywords.check_confidence(confidence)
    if floor is not None and not (keywords.is_number(floor) and isfinite(floor)):
        msg = f"floor must be a finite number, not {floor!r}"
        raise ValueError(msg)
    rows = adapters.to_lazy(frame, _TABLE).collect()
    groups = [name for name in keywords.group_names(by) if name != model]
    if model is not None and (model in rows.columns or model != keywords.MODEL):
        groups = [model, *groups]
    traits = labels.traits_of_name(metric)
    higher, limits = traits.higher_is_better, traits[1:]
    of_metric = _checked(rows, metric, time, groups)
    table = over_time(of_metric, time, groups, limits, confidence=confidence)
    systems = _colors.systems_of(table, groups, "mean", higher_is_better=higher)
    below = bool((table["missed"] > 0).any())
    height = systems.height(260 if below else 300)
    domain = domain_of(table, limits, floor)
    table = _panels.best_last(with_names(table, systems, domain, height), systems)
    mean = f"Mean over {sentences.users(table['users'].drop_nulls())}"
    band = None if systems.are_many or table["ci_low"].count() == 0 else confidence
    lines = _panels.counted(mean, systems, "mean", band)
    if "times" in table.columns:
        lines.append(f"a point averages {table['times'][0]} times (no list: their greatest share)")
    name = sentences.one_line(time)
    title = _panels.title_of(f"{sentences.one_line(metric)} by {name}", *lines)
    wide = _WIDTH if below else None
    up = f"mean {sentences.one_line(metric)}"
    upper = means(table, systems, None if below else name, up, domain, floor=floor)
    if not below:
        return _panels.alone(upper, table, title, wide=wide, height=height)
    lower = missed(table, systems, name)
    charts = [
        _panels.alone(layers, table, alt.TitleParams(""), wide=wide, height=height)
        for layers, height in ((upper, height), (lower, 70))
    ]
    return alt.vconcat(*charts, data=table, title=title, spacing=8)


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
            msg = f"{_TABLE}: {what}: drop the row, or fix it. Offending row: {row}"
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
    missed, margin = pl.lit(None, pl.Float64), pl.lit(None, pl.Float64)
    if "missed" in rows.columns:
        missed = pl.col("missed")
    elif "num_missed" in rows.columns:
        selected = summaries.SELECTED if "num_left_out" in rows.columns else pl.col("users")
        missed = pl.col("num_missed") / selected
    if "ci_low" not in rows.columns and "std" in rows.columns:
        margin = _marks.margins(rows, confidence)
    ends = {"ci_low": pl.col("mean") - margin, "ci_high": pl.col("mean") + margin}
    if {*ends} <= {*rows.columns}:
        ends = {name: pl.col(name) for name in ends}
    table = rows.select(
        _dates_of(rows[time]).alias("time"),
        sentences.text_of(rows, groups).fill_null("all").alias("system"),
        "users",
        "mean",
        *(end.clip(*limits).alias(name) for name, end in ends.items()),
        missed=missed,
    )
    table = _with_gaps(table)
    drawn = pl.col("mean").is_not_null()
    beside = [drawn.shift(step, fill_value=False).over("system") for step in (1, -1)]
    return table.with_columns(
        cs.enum().cast(pl.String),
        at=pl.col("time").cast(pl.String),
        alone=drawn & ~pl.any_horizontal(beside),
    )


def _dates_of(when: pl.Series) -> pl.Series:
    """Read text as dates; other text is in the order of its rows."""
    if when.dtype != pl.String:
        return when
    dates = when.str.to_date("%Y-%m-%d", strict=False)
    return when.cast(pl.Enum(when.unique(maintain_order=True))) if dates.has_nulls() else dates


def _with_gaps(table: pl.DataFrame) -> pl.DataFrame:
    """Add the times that the usual step skips and those of other systems; average too many."""
    times = table["time"].unique().sort()
    usual = None
    if len(times) > 1 and (times.dtype.is_temporal() or times.dtype.is_integer()):
        usual = times.diff().drop_nulls().mode().min()
        skipped = times.filter(times.diff().shift(-1) > usual) + usual
        times = pl.concat([times, skipped.cast(times.dtype)]).unique().sort()
    systems = table.select("system").unique(maintain_order=True)
    grid = times.to_frame().join(systems, how="cross")
    table = grid.join(table, on=["time", "system"], how="left", maintain_order="left")
    every = -(-len(times) // _MOST_TIMES)
    if every == 1:
        return table
    days = times.dtype == pl.Date and usual == timedelta(days=1)
    return _averaged(table, -(-every // 7) * 7 if days else every)


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


def domain_of(
    table: pl.DataFrame, limits: tuple[float, float], floor: float | None = None
) -> tuple[float, float]:
    """Return round ends of the axis of means, with their intervals and the floor."""
    drawn = table.select("mean", "ci_low", "ci_high", floor=pl.lit(floor, pl.Float64))
    return _marks.round_ends(*_marks.bounds(*drawn), limits)


def with_names(
    table: pl.DataFrame, systems: Systems, domain: tuple[float, float], height: int
) -> pl.DataFrame:
    """Add the names of systems at the last mean of each."""
    later = pl.col("mean").is_not_null().cum_sum(reverse=True).over("system")
    last = pl.col("mean").is_not_null() & (later == 1)
    return _names.at_ends(table, last, "mean", span=domain, height=height, names=systems.short)


def means(
    table: pl.DataFrame,
    systems: Systems,
    time: str | None,
    title: str,
    domain: tuple[float, float],
    *,
    floor: float | None = None,
) -> list[alt.Chart]:
    """Draw lines and points of means on their bands, and the names at their ends."""
    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    up: dict[str, Any] = {"title": title, "scale": scale, "axis": _marks.axis_of()}
    base = _base(table, systems, time)
    lines = _marks.lines_of(base, systems).encode(y=alt.Y("mean:Q", **up))
    points = _marks.points_of(base, systems, 28).encode(y=alt.Y("mean:Q", **up))
    if table["time"].n_unique() > _MOST_POINTS:  # those without neighbors have no line
        points = points.transform_filter("datum.alone")
    layers = [lines, points]
    if systems.column is not None:
        layers += _marks.names_beside(base, systems, "mean", up)
    if not systems.are_many:
        band = base.mark_area(opacity=0.15 if len(systems.names) < 4 else 0.1)
        layers.insert(0, band.encode(y=alt.Y("ci_low:Q", **up), y2="ci_high:Q"))
    if floor is not None:
        rule = alt.Chart(alt.InlineData([{}]))
        at = alt.YDatum(floor)
        layers.append(rule.mark_rule(color=_marks.INK, strokeDash=[6, 3]).encode(y=at))
        side: dict[str, Any] = {"align": "left", "baseline": "bottom", "dx": 4, "dy": -3, "x": 0}
        label = rule.transform_calculate(floor=f"'floor {floor:g}'").encode(y=at)
        layers += _marks.with_halo(label, "floor:N", **side)
    return layers


def missed(table: pl.DataFrame, systems: Systems, time: str) -> list[alt.Chart]:
    """Draw the share of users without a list."""
    base = _base(table, systems, time)
    axis = _marks.axis_of(format="%", tickCount=3)
    y = alt.Y("missed:Q", title="no list", axis=axis, scale=alt.Scale(domainMin=0))
    alone = base.mark_point(filled=True, size=28, opacity=1).transform_filter("datum.alone")
    return [_marks.lines_of(base, systems).encode(y=y), alone.encode(y=y)]


def _base(table: pl.DataFrame, systems: Systems, time: str | None) -> alt.Chart:
    dtype = table.schema["time"]
    kind = "T" if dtype.is_temporal() else "Q" if dtype.is_numeric() else "O"
    own: dict[str, Any] = {"format": "d", "tickMinStep": 1} if kind == "Q" else {}
    if kind == "T":
        span: timedelta = table.select(pl.col("time").max() - pl.col("time").min()).item()
        own = {"format": next(form for most, form in _FORMATS.items() if span < most)}
        if dtype == pl.Date and span < _FEW_DAYS:
            own["tickCount"] = {"interval": "day", "step": 1}
    axis = _marks.axis_of(grid=False, labels=time is not None, labelOverlap=True, **own)
    scale = alt.Scale(zero=False, nice=False) if kind == "Q" else alt.Undefined
    base = alt.Chart().encode(
        x=alt.X(f"time:{kind}", title=time, axis=axis, scale=scale, sort=None),
        **_marks.color_of(systems),
    )
    words: dict[str, str | Sequence[str]] = {"system": "system", "time": "at", "mean": "mean"}
    words |= {"interval": ("ci_low", "ci_high"), "no list": "missed", "users": "users"}
    return _marks.described(base, table, words)
