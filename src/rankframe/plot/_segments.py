"""Draw the means of systems in segments, or their differences from a baseline."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import comparison, sentences, summaries
from rankframe._comparison import segments as segments_tests
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, column_roles
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _panels
from rankframe.plot._call import Call
from rankframe.plot._colors import Systems

_MOST = 40  # segments of a readable chart
_SHRUNKEN = "__rankframe_shrunken"
_BEFORE = {"mean": " ", "difference": " in "}  # the name of a metric


@adapters.takes_any_frame
def segments(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    confidence: float = 0.95,
    cluster: str | None = None,
    **options: Unpack[StatisticsOptions],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean of each segment, or with a baseline the difference, with its interval.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default their means are drawn.
    confidence
        The probability that a single interval covers the true value.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric, one row per segment, one point per system. The numbers are those of
        ``summarize``, or with a baseline those of ``compare``; the drawn ones are in
        ``chart.data``: ``panel``, ``segment``, ``system``, ``users``, ``value``, ``low`` and
        ``high``, and with a baseline ``shrunken``, a hollow point: the ``shrunken`` difference of
        ``stats.compare_segments``, if it takes these metrics and segments. Segments are in the
        order of their type, such as that of an Enum. If there are more than 40, those with the most
        users are drawn.

    Raises
    ------
    ValueError
        If ``by`` names no segments.

    Notes
    -----
    Overlapping intervals, or an interval that excludes 0, do not show whether segments differ:
    ``rf.stats.compare_segments`` tests it. The lowest of many differences is mostly chance, and its
    hollow point is the better guess.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7], "country": ["DE", "FR"]})
    >>> chart = rf.plot.segments(run, "rr", truth=truth, by="country")
    >>> chart.data.select("segment", "value").rows()
    [('DE', 0.5), ('FR', 1.0)]
    """
    call = _call.read_call(frame, truth, by, options)
    names = [name for name in call.groups if name == call.options.get("model")]
    columns = [name for name in call.groups if name not in names]
    if not columns:
        msg = "by= names no segments: name their columns, such as by='country'"
        raise ValueError(msg)
    statistics: dict[str, Any] = {"confidence": confidence, "cluster": cluster}
    if baseline is None:
        drawn, rows = "mean", call.compute(summaries.summarize, *metrics, **statistics)
    else:
        statistics["baseline"] = baseline
        drawn, rows = "difference", call.compute(comparison.compare, *metrics, **statistics)
        rows = _with_shrunken(rows, call, metrics, statistics)
    table = rows_of(rows.sort(columns, maintain_order=True), columns, names, drawn)
    panels = _panels.texts(table["panel"])
    _call.check_values(table["value"], ", ".join(panels[:3]))
    counts = table.group_by("segment", maintain_order=True).agg(pl.col("users").max())
    most = counts.top_k(_MOST, by="users").select("segment")
    table = table.join(most, on="segment", how="semi", maintain_order="left")
    _call.check_rows(table, "points", "fewer segments")
    counted = f"{sentences.users(table['users'])} in each{_panels.weighted_by(options)}"
    if len(most) < len(counts):
        counted = f"{len(most)} of {len(counts):,} segments, those with the most users: {counted}"
    text = "Means of"
    if baseline is not None:
        text = f"Differences from {sentences.one_line(column_roles.in_words(baseline))} in"
    where = f"{', '.join(panels)} by {', '.join(columns)}"
    systems = _colors.systems_of(table, names, "value", higher_is_better=True)
    height = height_of(table)
    if systems.are_many:  # each in a row with its name, in panels of segments
        table = table.with_columns(_panels.panel_of("panel"))
        _call.check_panels(_panels.texts(table["panel"]))
        height = 18 * len(systems.names)
    return _panels.in_panels(
        layers_of(table, systems, drawn, confidence),
        table,
        _panels.title_of(
            f"{text} {sentences.one_line(where)}",
            f"{counted}; {_marks.sure(confidence)}s, not corrected",
            "hollow: shrunken differences" if _has_shrunken(table) else "",
            systems.short.key,
        ),
        width=240,
        height=height,
        resolve="x",
    )


def rows_of(
    numbers: pl.DataFrame, columns: Sequence[str], names: Sequence[str], drawn: str
) -> pl.DataFrame:
    """Take what is drawn from a frame of ``summarize`` or ``compare``."""
    return numbers.select(
        pl.col("metric").alias("panel"),
        segment=sentences.text_of(numbers, columns),
        system=sentences.text_of(numbers, names),
        users="users",
        value=drawn,
        low="ci_low",
        high="ci_high",
        **({"shrunken": _SHRUNKEN} if _SHRUNKEN in numbers.columns else {}),
    )


def _with_shrunken(
    rows: pl.DataFrame, call: Call, metrics: Sequence[Metric], statistics: Mapping[str, Any]
) -> pl.DataFrame:
    """Add the shrunken differences, if ``compare_segments`` takes what ``compare`` took."""
    once: dict[str, Any] = {**statistics, "resamples": 1}  # the overall test is not drawn
    try:
        tested = call.compute(segments_tests.compare_segments, *metrics, **once)
    except ValueError:  # such as users of several segments, or a metric without values of users
        return rows
    keys = [*call.groups, "metric"]
    tested = tested.select(*keys, pl.col("shrunken").alias(_SHRUNKEN))
    return rows.join(tested, on=keys, how="left", maintain_order="left")


def _has_shrunken(table: pl.DataFrame) -> bool:
    return "shrunken" in table.columns and table["shrunken"].count() > 0


def height_of(table: pl.DataFrame) -> int:
    return (18 * table["system"].n_unique() + 10) * table["segment"].n_unique()


def layers_of(
    table: pl.DataFrame, systems: Systems, drawn: str, confidence: float
) -> list[alt.Chart]:
    """Draw a point and an interval per segment and system, and 0 if they are differences."""
    panels = _panels.texts(table["panel"])
    title = drawn if len(panels) > 1 else f"{drawn}{_BEFORE[drawn]}{panels[0]}"
    order, row, axis = list(systems.names), "segment", _marks.axis_of(labelLimit=160)
    several = len(order) > 1 and not systems.are_many
    if systems.are_many:
        row, axis = "system", _marks.axis_of(labelLimit=200, labelExpr=systems.short.label)
    y = alt.Y(f"{row}:N", sort=_panels.texts(table[row]), title=None, axis=axis)
    base = alt.Chart().encode(y=y, **_marks.color_of(systems, legend=several))
    if several:
        base = base.encode(yOffset=alt.YOffset("system:N", sort=order))
    ends = {_marks.sure(confidence): ("low", "high")}
    words: dict[str, str | Sequence[str]] = {"metric": "panel", "segment": "segment"}
    words |= {"system": "system", drawn: "value", **ends, "shrunken": "shrunken", "users": "users"}
    base = _marks.described(base, table, words)
    lines = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.low)")
    points = base.mark_point(filled=True, size=60, opacity=1)
    layers = [
        lines.encode(x=alt.X("low:Q", title=title), x2="high:Q"),
        points.encode(
            x=alt.X("value:Q", title=title, axis=_marks.axis_of(tickCount=6)),
            **_marks.shape_of(systems, legend=several),
        ),
    ]
    if _has_shrunken(table):
        hollow = _marks.hollow(base).transform_filter("isValid(datum.shrunken)")
        shape = _marks.shape_of(systems, legend=several)
        layers.insert(1, hollow.encode(x=alt.X("shrunken:Q", title=title), **shape))
    if drawn == "difference":
        layers.insert(0, _marks.zero_line().encode(x=alt.XDatum(0)))
    return layers
