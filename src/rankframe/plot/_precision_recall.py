"""Draw precision against recall: the interpolated curve, and the path over k."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import log
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import cutoff_curves, sentences
from rankframe._evaluation import evaluation
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.metrics import core
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _names, _panels
from rankframe.plot._colors import Systems

_AXES = ("recall", "precision")
#: the labels of an interpolated curve, and the recall of each
_INTERPOLATED = {f"interpolated_precision(recall={step / 10})": step / 10 for step in range(11)}


@adapters.takes_any_frame
def precision_recall(
    frame: Runs[Frame],
    /,
    *,
    k: Iterable[int] = range(1, 21),
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[Options],
) -> alt.HConcatChart:
    """
    Draw precision against recall: the interpolated curve, and the path over k.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    k
        The cut-offs.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.HConcatChart
        On the left, the mean ``interpolated_precision`` of the whole lists at recall 0, 0.1, … 1;
        on the right, the mean precision@k against the mean recall@k, on contours of equal F1. If
        there are more than six systems, only the best three by F1 at the last cut-off are colored.
        ``at_k("precision", "recall", together=True)`` draws both over k.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> curve, path = rf.plot.precision_recall(run, k=[1, 2], truth=truth, by=()).hconcat
    >>> path.data.select("k", "recall", "precision").rows()
    [(1, 0.5, 0.5), (2, 1.0, 0.5)]
    """
    call = _call.read_call(frame, truth, by, options)
    cutoffs = cutoff_curves.cutoffs(k)
    metrics: list[Metric] = [*_INTERPOLATED]
    metrics += [core.recall_at(k).alias(f"recall@{k}") for k in cutoffs]
    metrics += [core.precision_at(k).alias(f"precision@{k}") for k in cutoffs]
    means = call.compute(evaluation.evaluate, *metrics, core.num_missed())
    groups = call.groups
    shared = sentences.text_of(means, groups).alias("system"), pl.col("users")
    curve = pl.concat(
        means.select(*shared, pl.lit(level).alias("recall"), pl.col(name).alias("precision"))
        for name, level in _INTERPOLATED.items()
    )
    path = pl.concat(
        means.select(
            *shared,
            pl.lit(k).alias("k"),
            *(pl.col(f"{name}@{k}").alias(name) for name in _AXES),
        )
        for k in cutoffs
    )
    _call.check_values(path["precision"], "precision@k")
    _call.check_rows(path, "points", "fewer cut-offs")
    f1 = 2 * pl.col("precision") * pl.col("recall") / (pl.col("precision") + pl.col("recall"))
    last = path.filter(k=cutoffs[-1]).with_columns(f1=f1.fill_nan(0))
    systems = _colors.systems_of(last, groups, "f1", higher_is_better=True)
    mean = f"Mean{_panels.weighted_by(options)} over {sentences.users(means['users'])}"
    mean = f"{mean}; gray: equal F1 of the two means"
    title = _panels.title_of(
        f"Precision and recall, at k = {_panels.as_text(cutoffs)} and interpolated",
        *_panels.counted(mean, systems, f"F1 at k = {cutoffs[-1]}", None),
        *_panels.missed(means, groups),
    )
    curve, path = (_panels.best_last(table, systems) for table in (curve, path))
    pictures = _interpolated(curve, systems), _path(path, systems)
    return alt.hconcat(*pictures, title=title, bounds="flush", spacing=70)


def _interpolated(table: pl.DataFrame, systems: Systems) -> alt.LayerChart:
    shared: dict[str, Any] = {"scale": alt.Scale(domain=[0, 1]), "axis": _marks.axis_of()}
    base = alt.Chart().encode(
        x=alt.X("recall:Q", title="recall", **shared),
        y=alt.Y("precision:Q", title="mean interpolated precision, whole lists", **shared),
        **_marks.color_of(systems),
    )
    words = {"system": "system", "recall": "recall"}
    words |= {"mean interpolated precision": "precision", "users": "users"}
    base = _marks.described(base, table, words)
    points = _marks.points_of(base, systems, 30)
    return _panels.layered(
        *(_marks.lines_of(base, systems), points),
        data=table,
        width=270,
        height=systems.height(270),
    )


def _path(table: pl.DataFrame, systems: Systems) -> alt.LayerChart:
    """Draw the path of both means over k, on contours of equal F1."""
    x_end, y_end = (min(1.0, 1.15 * (_marks.bounds(table[name])[1] or 0.1)) for name in _AXES)
    across, up = (alt.Scale(domain=[0, end], nice=False) for end in (x_end, y_end))
    bare = _marks.axis_of(grid=False, tickCount=5)
    x = alt.X("recall:Q", title="mean recall@k, over k", scale=across, axis=bare)
    y = alt.Y("precision:Q", title="mean precision@k", scale=up, axis=_marks.axis_of(grid=False))
    contours = alt.Chart(_contours(x_end, y_end)).encode(x=x, y=y)
    curves = contours.mark_line(color=_marks.PALE, strokeWidth=1.5)
    marks = contours.mark_text(align="right", baseline="bottom", dx=-3, dy=-2, color=_marks.GRAY)
    table = _path_names(table, systems, y_end)
    words = {"system": "system", "k": "k", "mean recall@k": "recall"}
    words |= {"mean precision@k": "precision", "users": "users"}
    base = alt.Chart().encode(x=x, y=y, **_marks.color_of(systems))
    described = _marks.described(base, table, words)
    layers = [
        curves.encode(detail="f1:N", order="recall:Q"),
        marks.transform_filter("isValid(datum.label)").encode(text="label:N"),
        _marks.lines_of(described, systems).encode(order="k:Q"),
        _marks.points_of(described, systems, 30),
    ]
    ends = alt.Chart().transform_filter("isValid(datum.at)").encode(x=x, y=y)
    layers += _marks.with_halo(ends, "at:N", fontSize=10, align="left", dx=6, dy=-6)
    if systems.column is not None:
        layers += _marks.names_beside(described, systems, "precision", {"scale": up})
    return _panels.layered(*layers, data=table, width=270, height=systems.height(270))


def _path_names(table: pl.DataFrame, systems: Systems, y_end: float) -> pl.DataFrame:
    """Add the first and the last cut-off of the upper line, and the names."""
    first, last = _marks.bounds(table["k"])
    upper = table.filter(k=int(first)).sort("precision", descending=True, nulls_last=True)
    is_end = pl.col("k").is_in([int(first), int(last)]) & (pl.col("system") == upper["system"][0])
    table = table.with_columns(at=pl.when(is_end).then(pl.format("k={}", "k")))
    return _names.at_ends(
        table,
        pl.col("k") == int(last),
        "precision",
        span=(0, y_end),
        height=systems.height(270),
        names=systems.short,
    )


def _contours(x_end: float, y_end: float) -> pl.DataFrame:
    """Return points of equal F1 = f: (recall − f/2)·(precision − f/2) = f²/4."""
    best = 2 * x_end * y_end / (x_end + y_end)
    step = _marks.round_step(best / 6)
    curves: list[pl.DataFrame] = []
    for place in range(1, int(best / step - 1e-9) + 1):
        half = place * step / 2
        begin, end = log(half**2 / (y_end - half)), log(x_end - half)
        along = pl.Series([begin + (end - begin) * part / 30 for part in range(31)]).exp()
        curve = pl.DataFrame({"recall": along + half, "precision": half**2 / along + half})
        last = pl.int_range(pl.len()) == pl.len() - 1
        label = pl.when(last).then(pl.lit(f"F1 {2 * half:.3g}")).alias("label")
        curves.append(curve.with_columns(pl.lit(2 * half).alias("f1"), label))
    return pl.concat(curves)
