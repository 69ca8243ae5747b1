"""Draw the Lorenz curve of exposure: how few items of the catalogue have most of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import sentences
from rankframe._evaluation import row_verbs
from rankframe._request.keywords import Columns, Duplicates
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _exposure, _marks, _panels
from rankframe.plot._colors import Systems

_DUST = 1e-12  # a difference that comes from rounding alone
_FEW = 20  # values on a linear scale


@adapters.takes_any_frame
def lorenz(
    run: Runs[Frame],
    /,
    *,
    of: str = "item",
    k: int | None = None,
    discount: str | float = "none",
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the Lorenz curve of exposure: how few items of the catalogue have most of it.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all.
    k
        Cut-off; None means the whole list.
    discount
        The discount of a position: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
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
        One line per system, for all its lists together: the share of exposure of the items that are
        exposed most, by their number, on a logarithmic scale; the title says how many items have
        half of it. It is the Lorenz curve, read from its upper end. The dashed line is even
        exposure; the Gini coefficient is twice the area between the diagonal and the Lorenz curve.
        The drawn numbers are in ``chart.data``: ``panel``, ``system``, ``values`` (the share of
        items, least exposed first), ``exposure`` (their share of exposure), ``above`` (the number
        of other items), ``gini``, ``half``, and ``marked``, true where the line has the shape of
        its system. A line of many items is drawn through at most about 200 points. If there are
        more than six systems, only the three most even ones are colored.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing, or nothing is exposed.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> chart = rf.plot.lorenz(run, items=pl.DataFrame({"item": [*"abcd"]}), by=())
    >>> chart.data.select("values", pl.col("exposure", "gini").round(3)).rows()
    [(0.0, 0.0, 0.583), (0.5, 0.0, 0.583), (0.75, 0.333, 0.583), (1.0, 1.0, 0.583)]
    """
    call = _exposure.read_call(run, truth, by, columns, duplicates)
    tables = {"items": items, "history": history, "exclude": exclude}
    options = {"of": of, "k": k, "target": None, **tables}
    exposures = call.compute(row_verbs.exposure, discount=discount, **options)
    if of == "shown":  # at rank ≤ k, with a hit or without, as gini counts them
        shown = call.compute(row_verbs.exposure, discount="none", **options)
        keys = exposures.columns[: len(call.groups) + 1]
        exposures = exposures.join(shown.filter(pl.col("exposure") > 0), on=keys, how="semi")
    lists, counted = _exposure.lists_to(k), _exposure.counted_lists(call, exclude, discount)
    groups = call.groups
    column = exposures.columns[len(groups)]
    rows = exposures.sort(*groups, "exposure")
    system, segment = sentences.system_and_segment(rows, groups)
    rows = rows.select(segment.alias("panel"), system, "exposure", "share")
    _exposure.check_exposed(rows["share"], column)
    table = _points(rows)
    _call.check_rows(table, "points", "fewer segments")
    panels = _panels.texts(table["panel"])
    _call.check_panels(panels)
    systems = _colors.systems_of(table, groups, "gini", higher_is_better=False)
    what = {"item": "items", "shown": "items shown at all"}
    text = what.get(of, f"values of {sentences.one_line(column)}")
    curves = table.group_by("panel", "system", maintain_order=True).agg(
        pl.col("gini", "half").first(), pl.col("above").max()
    )
    half, number = (
        " to ".join(dict.fromkeys(f"{end:,.0f}" for end in sentences.ends(curves[name])))
        for name in ("half", "above")
    )
    return _panels.in_panels(
        _layers(_panels.best_last(table, systems), systems, text),
        table,
        _panels.title_of(
            f"Half of the exposure in {lists} goes to {half} of {number} {text}",
            counted,
            *_gini_texts(curves, systems),
            "dashed: even exposure, Gini 0",
        ),
        width=260,
        wide=360,
        height=260 if len(panels) > 1 else 360,
    )


def _points(rows: pl.DataFrame) -> pl.DataFrame:
    """Cumulate exposure over values, least exposed first, and keep enough points of each line.

    ``above`` is the number of values that are exposed more; ``half`` how many have half of it all.
    """
    keys = ["panel", "system"]
    exposed = rows.filter(pl.col("share").is_not_null())
    lines = exposed.select(keys).n_unique()
    steps = max(10, min(100, _call.MOST_ROWS // (2 * lines) - 2))
    curves: list[pl.DataFrame] = []
    for line in exposed.partition_by(keys, maintain_order=True):
        number, total = len(line), float(line["exposure"].sum())
        place = 2 * pl.int_range(1, number + 1, dtype=pl.Int64) - number - 1
        gini = float(line.select((place * pl.col("exposure")).sum()).item()) / (number * total)
        points = line.select(
            values=pl.int_range(1, number + 1) / number,
            exposure=pl.col("exposure").cum_sum() / total,
            above=number - pl.int_range(1, number + 1),
        )
        start = pl.DataFrame({"values": [0.0], "exposure": [0.0], "above": [number]})
        points = pl.concat([start, points])
        bend = (pl.col("exposure") == 0) & (pl.col("exposure").shift(-1) > 0)
        last = pl.int_range(pl.len()) == pl.len() - 1
        spread = [
            (pl.col(name) * steps + 1e-9).floor().is_first_distinct()
            for name in ("values", "exposure")
        ]
        # two points make the line of values that are never shown
        kept = (pl.any_horizontal(spread) & (pl.col("exposure") > 0)) | bend | last
        first = pl.int_range(pl.len()) == 0
        points = points.filter(kept | first).with_columns(
            exposure=pl.when(pl.col("values") == 1).then(1.0).otherwise("exposure"),
            gini=gini,
            half=(line["exposure"].reverse().cum_sum() < total / 2 * (1 - _DUST)).sum() + 1,
        )
        ends = line.select(keys).head(1)
        curves.append(ends.join(points, how="cross"))
    fifth = (pl.col("exposure") * 5).floor()
    is_new = (fifth != fifth.shift(1).over(keys)).fill_null(value=False)
    # a shape at each fifth of the exposure distinguishes lines without color
    return pl.concat(curves).with_columns(marked=is_new & (pl.col("exposure") < 1))


def _layers(table: pl.DataFrame, systems: Systems, what: str) -> list[alt.Chart]:
    number = int(_marks.bounds(table["above"])[1])
    is_long = number > _FEW  # on a linear scale, the few that are shown would be one line
    scale = alt.Scale(type="log" if is_long else "linear", domain=[1, max(number, 2)], nice=False)
    counts, shares = (_marks.axis_of(format=form, tickCount=5) for form in ("~s", "~%"))
    title, whole = f"number of {what}, most exposed first", alt.Scale(domain=[0, 1])
    axes: dict[str, Any] = {
        "x": alt.X("above:Q", title=title, scale=scale, axis=counts),
        "y": alt.Y("top:Q", title="share of exposure", scale=whole, axis=shares),
    }
    steps = [number ** (step / 40) for step in range(41)]
    ends = alt.InlineData([{"above": step, "top": step / number} for step in steps])
    even = alt.Chart(ends).mark_line(color=_marks.GRAY, strokeDash=[4, 3], strokeWidth=1)
    even = even.encode(**axes)
    base = alt.Chart().transform_filter("datum.above > 0")
    base = base.transform_calculate(top="1 - datum.exposure")
    base = base.encode(**axes, **_marks.color_of(systems, legend=True), order="values:Q")
    words = {"segment": "panel", "system": "system", f"number of {what}": "above"}
    words |= {"half of the exposure goes to": "half", "Gini": "gini"}
    base = _marks.described(base, table, words)
    points = _marks.points_of(base, systems, 30, legend=True).transform_filter("datum.marked")
    return [even, _marks.lines_of(base, systems), points]


def _gini_texts(curves: pl.DataFrame, systems: Systems) -> list[str]:
    """Write the Gini coefficients of a few lines, or the least and the greatest of many."""
    if len(curves) <= 4 and curves["panel"].n_unique() == 1:
        coefficients = [
            f"{sentences.one_line(row['system'])} {row['half']:,} ({row['gini']:.3f})".strip()
            for row in curves.to_dicts()
        ]
        return [f"half goes to (Gini): {', '.join(coefficients)}"]
    least, most = _marks.bounds(curves["gini"])
    colored = f"; colored: the {_colors.BEST} most even" if systems.are_many else ""
    return [f"Gini: {least:.3f} to {most:.3f}{colored}", systems.short.key]
