"""Draw the means of metrics in segments: a heatmap."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

import polars as pl

from rankframe._comparison import sentences
from rankframe._evaluation import evaluation
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame
from rankframe._tables import run_dicts
from rankframe.plot import _colors, _marks, _of_pairs, _panels, _tables

if TYPE_CHECKING:
    import altair as alt
_MOST_SEGMENTS = 40  # rows of a readable heatmap


def heatmap(
    frame: Frame | Mapping[str, Frame],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean of metrics in each segment.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The columns of the segments, by default ``model``. With several columns and several metrics,
        the last column defines the rows and the others the panels: ``by=["model", "country"]`` has
        one panel per model and one row per country. With one metric, it is one grid: models by
        countries, the more numerous ones in rows.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One row per segment, one column per metric, or for one metric and several columns a grid of
        their values. The color is the mean as a share of the metric's
        greatest mean, since metrics differ in scale. The drawn numbers are in ``chart.data``:
        ``panel``, ``segment``, ``users``, ``metric``, ``mean``, ``share``. If there are more than
        40 segments, those with the most users are drawn.

    Raises
    ------
    ValueError
        If ``by`` is empty.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7], "country": ["DE", "FR"]})
    >>> chart = rf.plot.heatmap(run, "rr", truth=truth, by="country")
    >>> chart.data.select("segment", "metric", "mean").rows()
    [('DE', 'rr', 0.5), ('FR', 'rr', 1.0)]
    """
    frame, by = run_dicts.as_frame(frame, by)
    _panels.check_call(options)
    import altair as alt

    groups = _tables.groups_of(frame, truth, None) if by is None else keywords.group_names(by)
    if not groups:
        msg = "by= is empty, but a heatmap needs segments: name their columns in by="
        raise ValueError(msg)
    means = _tables.computed(
        evaluation.evaluate, frame, *metrics, truth=truth, by=groups, **options
    )
    names = means.columns[len(groups) + 1 :]
    wide = means.select(
        sentences.text_of(means, groups[:-1]).alias("panel"),
        sentences.text_of(means, groups[-1:]).alias("segment"),
        "users",
        pl.struct(_tables.number_of(means, name).alias(name) for name in names).alias("means"),
    )
    segments = wide.group_by("segment", maintain_order=True).agg(pl.col("users").max())
    drawn = segments.top_k(_MOST_SEGMENTS, by="users")
    wide = wide.join(drawn.select("segment"), on="segment", how="semi", maintain_order="left")
    table = pl.concat(
        wide.select(
            *("panel", "segment", "users"),
            pl.lit(name).alias("metric"),
            pl.col("means").struct.field(name).alias("mean"),
        )
        for name in names
    )
    greatest = pl.col("mean").max().over("metric")
    whole = (pl.col("mean") == pl.col("mean").round()).all().over("metric")
    count = pl.col("mean").cast(pl.Int64).cast(pl.String)
    digits = pl.Series([None if mean is None else f"{mean:.3f}" for mean in table["mean"]])
    table = table.with_columns(
        share=pl.when(greatest > 0).then(pl.col("mean") / greatest),
        text=pl.when(whole).then(count).otherwise(digits),
    )
    _tables.check_values(table["mean"], ", ".join(names))
    _tables.check_rows(table, "cells", "fewer metrics")
    panels, in_rows = _tables.texts(table["panel"]), [*_tables.texts(segments["segment"])]
    is_grid = len(panels) > 1 and len(names) == 1
    row, column, in_columns = "segment", "metric", names
    row_title, column_title = sentences.one_line(groups[-1]), None
    if is_grid:
        in_rows = [name for name in in_rows if name in {*table["segment"]}]
        column, in_columns, column_title = (
            "panel",
            panels,
            ", ".join(map(sentences.one_line, groups[:-1])),
        )
        if len(panels) >= len(in_rows):
            row, column, in_rows, in_columns = column, row, in_columns, in_rows
            row_title, column_title = column_title, row_title
    slant = 0 if max(map(len, in_columns)) <= 13 else -30
    if is_grid:
        slant = 0 if max(map(len, in_columns)) <= 8 else -40
    base = alt.Chart().encode(
        x=alt.X(
            f"{column}:N",
            title=column_title,
            sort=in_columns,
            axis=alt.Axis(labelAngle=slant, labelLimit=180 if is_grid else 260),
        ),
        y=alt.Y(
            f"{row}:N",
            title=row_title if is_grid or len(panels) == 1 else None,
            sort=in_rows,
            axis=alt.Axis(titlePadding=12, labelLimit=260),
        ),
    )
    words = {
        ", ".join(map(sentences.one_line, groups[:-1])): "panel",
        sentences.one_line(groups[-1]): "segment",
    }
    words |= {
        "metric": "metric",
        _tables.averages_of(metrics)[:-1].lower(): "mean",
        "users": "users",
    }
    words |= {"share of the greatest": "share"}
    base = _marks.described(base, table, words)
    color = alt.Color(
        "share:Q",
        title=["share of the", "metric's", "greatest"],
        scale=alt.Scale(
            range=[_colors.ink(_colors.PALE), _colors.ink(_of_pairs.FULL)], domain=[0, 1]
        ),
        legend=alt.Legend(format="%", padding=8),
    )
    strong = (
        alt.when("datum.share > 0.6").then(alt.value("white")).otherwise(alt.value(_colors.ink()))
    )
    text = base.mark_text().encode(text="text:N", color=strong)
    of_metric = f" of {sentences.one_line(names[0])}" if is_grid else ""
    selection = (
        f"{len(drawn)} of {len(segments):,} segments, those with the most users: "
        if len(segments) > _MOST_SEGMENTS
        else ""
    )
    return _panels.in_panels(
        [base.mark_rect().encode(color=color), text],
        table,
        _panels.title_of(
            f"{_tables.averages_of(metrics)}{of_metric} by "
            f"{', '.join(map(sentences.one_line, groups))}{_tables.weighted_by(options)}",
            f"{selection}up to {_tables.user_count(table['users'].top_k(1))} in each",
        ),
        width=78 * len(names),
        wide=(56 if is_grid else 96) * len(in_columns),
        height=24 * len(in_rows),
        joined=is_grid,
    )
