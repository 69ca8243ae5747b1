"""Draw how the exposure in lists is shared among genres, providers or items."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil
from typing import Any, Unpack, cast

import polars as pl

from rankframe._comparison import sentences
from rankframe._evaluation import row_verbs
from rankframe._request import keywords
from rankframe._request.keywords import Columns, Duplicates, Options
from rankframe._request.share_names import Target
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, column_roles, run_dicts
from rankframe.errors import RankingDataError
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _marks, _panels
from rankframe.plot._call import Call

_TARGETS: dict[str, str] = {
    "catalogue": "the share in the catalogue",
    "uniform": "equal shares",
    "history": "the share in the history",
    "truth": "the share in the relevant items",
    "judged": "the share in the judged items",
    "candidates": "the share in the catalogue without each user's history",
}
_DISCOUNTS: dict[str | float, str] = {
    "log2": "1/log2(rank + 1)",
    "clipped": "1/log2(max(rank, 2))",
    "hit": "1 if relevant",
    "norm": "1/√n, n items in the list",
    "inverse": "1/n, n items in the list",
}
_MOST_VALUES = 10  # values of a column whose shares are drawn; the others are summed


@adapters.takes_any_frame
def exposure(
    run: Runs[Frame],
    /,
    *,
    of: str | None = None,
    k: int | None = None,
    discount: str | float = "none",
    target: Target | None = "catalogue",
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw how the exposure in lists is shared among genres, providers or items.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all. May be
        left out where ``items`` has one column of lists.
    k
        Cut-off; None means the whole list.
    discount
        The discount of a position: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    target
        What a share should be: the share in the ``"catalogue"``, ``"uniform"``, the share in the
        ``"history"``, in the relevant items of the ``"truth"``, among ``"candidates"`` (the
        catalogue without each user's past items), or None.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One bar per value, for all lists of a system together, and at most ten values: those
        furthest from the target in any panel, furthest first, or without a target those with the
        highest share. For one system, a bar is its share, with a tick at the target. Several
        systems or segments have a panel each, where a bar is the share minus the target, in
        percentage points. The subtitle reports the greatest difference or share of the other
        values. The drawn numbers are in ``chart.data``: ``panel``, ``value``, ``system``,
        ``share``, ``target``, ``difference``.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing, or no value is exposed.
    ValueError
        If there are more than twelve systems and segments.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abc"], "genre": ["x", "y", "z"]})
    >>> chart = rf.plot.exposure(run, of="genre", items=items, target="uniform", by=())
    >>> chart.data.select("value", pl.col("share", "target").round(3)).rows()
    [('x', 0.667, 0.333), ('z', 0.0, 0.333), ('y', 0.333, 0.333)]
    """
    call = read_call(run, truth, by, columns, duplicates)
    tables = {"items": items, "history": history, "exclude": exclude}
    options = {"of": of, "k": k, "discount": discount, "target": target, **tables}
    exposures = call.compute(row_verbs.exposure, **options)
    lists, counted = lists_to(k), counted_lists(call, exclude, discount)
    groups = call.groups
    column = exposures.columns[len(groups)]
    name = sentences.one_line(column)
    table, others = _shares_by_panel(exposures, groups, column)
    panels, values = _panels.texts(table["panel"]), _panels.texts(table["value"])
    _call.check_panels(panels, "systems and segments")
    drawn, axis = "share", _marks.axis_of(format="~%", tickCount=5)
    if len(panels) > 1 and target is not None:
        in_points = "datum.value === 0 ? '0' : format(100 * datum.value, '+.3~g')"
        drawn, axis = "difference", _marks.axis_of(labelExpr=in_points, tickCount=5)
    ended = ["share", "target"] if drawn == "share" else [drawn]
    ends = _marks.bounds(pl.Series([0.0]), *table.select(ended))
    scale = alt.Scale(domain=[end * 1.03 for end in ends], nice=False)
    titles = {"share": "share of exposure", "difference": "points from the target"}
    left = alt.Axis(labelLimit=120, titlePadding=10)
    base = alt.Chart().encode(y=alt.Y("value:N", title=name, sort=values, axis=left))
    words = {"system": "panel", name: "value", "share of exposure": "share", "target": "target"}
    base = _marks.described(base, table, words)
    x = alt.X(f"{drawn}:Q", title=titles[drawn], scale=scale, axis=axis)
    layers = [base.mark_bar(height={"band": 0.75}).encode(x=x, color=alt.value(_marks.COLORS[0]))]
    lines = [*filter(None, (counted, others))]
    if target is not None:
        what = "target:" if drawn == "difference" else "ticks: target,"
        lines.append(f"{what} {_TARGETS[target]}")
    if drawn == "difference":
        layers.append(_marks.zero_line().encode(x=alt.XDatum(0)))
    else:
        halo: dict[str, Any] = {"stroke": _marks.BACKGROUND, "strokeWidth": 1}
        ticks = base.mark_tick(color=_marks.INK, thickness=4, size=17, opacity=1, **halo)
        ticks = ticks.transform_filter("isValid(datum.target)").encode(x=alt.X("target:Q"))
        layers.append(ticks)
    return _panels.in_panels(
        layers,
        table,
        _panels.title_of(f"Exposure of each {name} in {lists}", *lines),
        width=180,
        height=20 * len(values),
        columns=2 if len(panels) == 4 else 3,
        resolve="x",
    )


def _shares_by_panel(
    exposures: pl.DataFrame, groups: Sequence[str], column: str
) -> tuple[pl.DataFrame, str]:
    """Keep the values furthest from their target, or with the highest share, and tell of others."""
    target = pl.col("target") if "target" in exposures.columns else pl.lit(None, pl.Float64)
    rows = exposures.sort(groups)
    value = sentences.text_of(rows, [column]).alias("value")
    rows = rows.select(
        *sentences.system_and_segment(rows, groups), value, "share", target.alias("target")
    )
    rows = rows.with_columns(difference=pl.col("share") - pl.col("target"))
    check_exposed(rows["share"], column)
    is_far = rows["target"].count() > 0
    far = pl.col("difference").abs() if is_far else pl.col("share")
    order = rows.group_by("value").agg(far.max().round(9).alias("far"))
    order = order.sort("far", "value", descending=[True, False], nulls_last=True)
    kept = order.select("value").head(_MOST_VALUES)
    table = kept.join(rows, on="value", maintain_order="left_right").select(
        _panels.panel_of("system"), "value", pl.exclude("segment", "value")
    )
    if len(order) == len(kept):
        return table, ""
    most = f"{ceil(1000 * (order['far'][_MOST_VALUES] or 0)) / 10:.1f}"
    others = f"differ by at most {most} points" if is_far else f"have at most {most}% each"
    return table, f"{_MOST_VALUES} of {len(order):,} values: the others {others}"


def read_call(
    run: Runs[Frame],
    truth: Truth | None,
    by: str | Sequence[str],
    columns: Columns,
    duplicates: Duplicates,
) -> Call:
    """Read a call whose first frame is a run, with or without a truth."""
    keywords.check_columns(columns)
    frame, by, columns = run_dicts.as_frame(run, by, columns, duplicates=duplicates)
    call = _call.read_call(frame, frame, by, {"model": columns.get("model")})
    options = cast("Options", {**columns, "duplicates": duplicates})
    return call._replace(truth=truth, options=options)


def counted_lists(call: Call, exclude: Frame | None, discount: str | float) -> str:
    """Write how many users have a list, and the discount of its ranks."""
    columns: Any = call.options
    ids = column_roles.with_ids(columns, call.groups, {"run": call.frame, "truth": call.truth})
    user = pl.col(keywords.user_of(ids)).n_unique().alias("__rankframe_users")
    of_lists = pl.col("listed").any().alias("served")
    rows = row_verbs.rows(
        call.frame, of_lists, truth=call.truth, exclude=exclude, by=call.groups, **columns
    ).filter("listed")
    counts = rows.group_by(call.groups).agg(user) if call.groups else rows.select(user)
    text = sentences.users(counts.collect()["__rankframe_users"])
    if discount == "none":
        return text
    return f"{text}; discount of a rank: {_DISCOUNTS.get(discount, f'{discount}^(rank − 1)')}"


def lists_to(k: int | None) -> str:
    return "the whole lists" if k is None else f"the first {k} items" if k > 1 else "the first item"


def check_exposed(shares: pl.Series, name: str) -> None:
    if shares.null_count() == len(shares):
        msg = f"no list exposes a value of {name!r}: no share to draw"
        raise RankingDataError(msg)
