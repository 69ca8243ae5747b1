"""Draw where a metric loses: the value of each stage, and what it loses against the next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import polars as pl

from rankframe._comparison import sentences
from rankframe._evaluation import funnel as stages_of
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _panels


@adapters.takes_any_frame
def funnel(
    frame: Runs[Frame],
    metric: Metric,
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    stages: Mapping[str, Frame] | None = None,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw where a metric loses: the value of each stage, and what it loses against the next.

    Parameters
    ----------
    frame
        A run with its ``truth``, or a judged table; or a dict of these by name: see ``runs.stack``.
        Scores without ranks are ranked as by ``with_rank``.
    metric
        A metric of ranks and grades, such as ``"ndcg@10"``, ``"recall@10"`` or ``"map"``.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    stages
        The runs of the sources of candidates by name, as ``stats.funnel`` takes them.
    **options
        The keywords of ``evaluate`` but ``total``, ``count_users``, ``chance`` and ``average``, and
        columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One bar per stage of ``stats.funnel``, and in orange its gap to the next stage. Several
        systems or segments have a panel each. The drawn numbers are in ``chart.data``: ``panel``,
        ``system``, ``metric``, ``stage``, ``value``, ``gap``, ``next`` (the value of the next
        stage) and ``users``.

    Raises
    ------
    ValueError
        If there are more than twelve systems and segments.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1] * 4, "item": [*"abcd"], "rank": [1, 2, 3, 4]})
    >>> truth = pl.DataFrame({"user": [1] * 3, "item": [*"bdz"]})
    >>> chart = rf.plot.funnel(run, "precision@2", truth=truth)
    >>> chart.data.select("stage", "value", "next").rows()[:2]
    [('list', 0.5, 0.5), ('top', 0.5, 1.0)]
    """
    call = _call.read_call(frame, truth, by, options)
    rows = call.compute(stages_of.funnel, metric, stages=stages)
    table = rows.select(
        *sentences.system_and_segment(rows, call.groups),
        *("metric", "stage", "value", "gap"),
        (pl.col("value") + pl.col("gap")).alias("next"),
        "users",
    )
    table = table.select(_panels.panel_of("system"), pl.exclude("segment"))
    name = table["metric"][-1]
    _call.check_values(table.filter(metric=name)["value"], name)
    panels, order = _panels.texts(table["panel"]), _panels.texts(table["stage"])
    _call.check_panels(panels, "systems and segments")
    (requested,) = call.requested([metric])
    title = sentences.one_line(name) + (", and recall of the sources" if stages else "")
    title += " (lower is better)" if requested.traits.higher_is_better is False else ""
    x = alt.X("value:Q", title=title, axis=_marks.axis_of(tickCount=5))
    axis = alt.Axis(labelLimit=120)
    base = alt.Chart().encode(y=alt.Y("stage:N", title=None, sort=order, axis=axis))
    words = {"system": "panel", "stage": "stage", "metric": "metric", "value": "value"}
    base = _marks.described(base, table, {**words, "the next stage adds": "gap", "users": "users"})
    bars = base.mark_bar(height={"band": 0.75}).encode(x=x, color=alt.value(_marks.COLORS[0]))
    gaps = base.transform_filter("isValid(datum.next)").mark_bar(height={"band": 0.75})
    gaps = gaps.encode(x=x, x2="next:Q", color=alt.value(_colors.ink(_colors.VERDICTS["worse"][0])))
    return _panels.in_panels(
        [bars, gaps],
        table,
        _panels.title_of(
            f"Where {sentences.one_line(name)} loses",
            sentences.users(table["users"]),
            "orange: what a stage loses against the next, by order, cut and retrieval",
            *(
                [f"panels: {sentences.one_line(' · '.join(call.groups))}"]
                if len(panels) > 1
                else []
            ),
        ),
        width=220,
        height=26 * len(order),
        columns=2,
    )
