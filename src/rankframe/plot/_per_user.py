"""Draw the distribution of a metric over users, per system."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import sentences
from rankframe._comparison.notes import USERS, Nouns
from rankframe._evaluation import user_columns
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _marks, _names, _panels
from rankframe.plot._names import Names

_OUTLINE: dict[str, Any] = {"fill": _marks.GRAY, "fillOpacity": 0, "stroke": _marks.GRAY}


@adapters.takes_any_frame
def per_user(
    frame: Runs[Frame],
    /,
    metric: Metric,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[StatisticsOptions],
) -> alt.FacetChart:
    """
    Draw the distribution of a metric over users, per system.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    metric
        A label or an expression, as in ``per_user``.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.FacetChart
        One row per system, best mean first if there are more than six, with quantiles of the values
        that are not exactly 0, and on its left a box filled to the share of users whose value is 0.
        The drawn numbers are in ``chart.data``: ``system``, ``segment``, ``users``, ``zeros`` (the
        share of users at exactly 0), ``low`` (5%), ``lower quarter``, ``median``, ``upper
        quarter``, ``high`` (95%) and the ``mean`` of all users.

    Raises
    ------
    RankingDataError
        If no user has a value.
    ValueError
        If the metric is not a number.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> drawn = rf.plot.per_user(run, "rr", truth=truth, by=()).data
    >>> drawn.select("users", "zeros", "median", "mean").rows()
    [(2, 0.0, 0.75, 0.75)]
    """
    call = _call.read_call(frame, truth, by, options)
    if options.pop("weights", None) is not None:
        msg = "weights= given to the chart of users, which counts users equally: leave it out"
        raise ValueError(msg)
    values = call.values([metric], per_user=True).rows.collect()
    return picture(values, call.groups)


def picture(
    values: pl.DataFrame,
    groups: Sequence[str],
    *,
    baseline: str | None = None,
    nouns: Nouns = USERS,
) -> alt.FacetChart:
    """Draw the distribution of the users' values, which are in the second-to-last column."""
    values = values.sort(values.columns[: len(groups) + 1])
    missed: list[str] = []
    if user_columns.MISSED in values.columns:  # not of a table of values
        missed = sentences.missed_lines(sentences.missed_counts(values, groups))
    values = values.drop(user_columns.MISSED, strict=False).drop_nulls(values.columns[len(groups)])
    name = values.columns[-1]
    values = values.select(
        *sentences.system_and_segment(values, groups),
        pl.col(name).cast(pl.Float64).alias("value"),
    )
    defined = values.drop_nulls("value")
    _call.check_values(defined["value"], name)
    table = _quantiles(defined)
    _call.check_rows(table, "rows", "fewer systems")
    systems = _panels.texts(defined["system"])
    systems.sort(key=lambda name: name != baseline)  # the baseline is first
    names = _names.short(systems)
    segments = _panels.texts(table["segment"])
    undefined = len(values) - len(defined)
    left_out = f"; {undefined:,} without a value left out" if undefined else ""
    zeros = bool((defined["value"] == 0).any())
    rest = "users not at 0" if zeros else "users"
    lines = [
        f"{sentences.users(table['users'])} in each row{left_out}",
        f"{rest}: line 5 to 95%, bar 25 to 75%, gap median; at the right: mean of all",
    ]
    if zeros:
        lines += ["box on the left: filled to the share of users whose value is exactly 0"]
    strips = _strips(table, systems, names, f"{sentences.one_line(name)} per {nouns.user}")
    return _panels.in_grid(
        strips.properties(width=max(150, 480 // len(segments)), height=21 * len(systems)),
        column=_panels.panels_by("segment", segments),
        title=_panels.title_of(
            f"{sentences.one_line(name)}, user by user", *lines, names.key, *missed
        ),
        spacing=14,
    )


def _quantiles(values: pl.DataFrame) -> pl.DataFrame:
    """Describe each system's users: the share of exact zeros, and quantiles of the others."""
    value = pl.col("value")
    nonzero = value.filter(value != 0)
    names = {"low": 0.05, "lower quarter": 0.25, "median": 0.5, "upper quarter": 0.75, "high": 0.95}
    quantiles = [nonzero.quantile(q, "linear").alias(name) for name, q in names.items()]
    return values.group_by("system", "segment", maintain_order=True).agg(
        pl.len().alias("users"),
        (value == 0).mean().alias("zeros"),
        *quantiles,
        value.mean().alias("mean"),
    )


def _strips(
    table: pl.DataFrame, systems: Sequence[str], names: Names, title: str
) -> alt.LayerChart:
    """Draw one row per system: quantiles of users, their mean, and the share of exact zeros."""
    has_zeros = bool((table["zeros"] > 0).any())
    lowest, highest = _marks.bounds(*table.select("low", "high", "mean"))
    if lowest == highest:
        lowest, highest = lowest - 0.5, highest + 0.5
    lowest = min(lowest, 0.0) if has_zeros else lowest
    span = highest - lowest
    left, right = lowest - 0.27 * span, lowest - 0.06 * span
    domain = [left if has_zeros else lowest, highest + 0.02 * span]
    ticks: dict[str, Any] = {"labelFlush": False, **_marks.ticks(lowest, highest)}
    x: dict[str, Any] = {"title": title, "axis": _marks.axis_of(labelOverlap=True, **ticks)}
    x["scale"] = alt.Scale(domain=domain, nice=False, zero=False)
    axis = _marks.axis_of(labelLimit=280, labelExpr=names.label)
    y = alt.Y("system:N", title=None, sort=list(systems), axis=axis)
    words: dict[str, str | Sequence[str]] = {
        "system": "system",
        "mean": "mean",
        "users at exactly 0": "zeros",
        "others, 5% to 95%": ("low", "high"),
        "others, 25% to 75%": ("lower quarter", "upper quarter"),
        "others, median": "median",
        "users": "users",
    }
    base = _marks.described(alt.Chart().encode(y=y), table, words)
    quantiles = base.transform_filter("isValid(datum.low)")
    line = quantiles.mark_rule(color=_marks.COLORS[0])
    bar = quantiles.mark_bar(color=_marks.COLORS[0], height=9)
    gap = quantiles.mark_tick(color=_marks.BACKGROUND, thickness=2, height=9)
    mean = base.mark_text(align="left", dx=4, color=_marks.INK)
    layers = [
        line.encode(x=alt.X("low:Q", **x), x2="high:Q"),
        bar.encode(x=alt.X("lower quarter:Q", **x), x2="upper quarter:Q"),
        gap.encode(x=alt.X("median:Q", **x)),
        mean.encode(x=alt.value("width"), text=alt.Text("mean:Q", format=".3f")),
    ]
    if has_zeros:
        vessel = base.transform_calculate(
            left=str(left), right=str(right), filled=f"{left} + datum.zeros * {right - left}"
        )
        start = alt.X("left:Q", **x)
        text = vessel.mark_text(align="left", dx=3, fontSize=9, baseline="middle", color=_marks.INK)
        filled = vessel.mark_bar(height=13, color=_marks.USERS, opacity=0.6)
        layers += [
            filled.encode(x=start, x2="filled:Q"),
            vessel.mark_bar(height=13, **_OUTLINE).encode(x=start, x2="right:Q"),
            text.encode(x=start, text=alt.Text("zeros:Q", format=".0%")),
        ]
    return _panels.layered(*layers, data=table)
