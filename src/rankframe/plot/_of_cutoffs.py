"""Draw metrics over cut-offs: charts of means at each k, and of precision against recall."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Unpack

import polars as pl

from rankframe._comparison import cutoff_curves, sentences
from rankframe._evaluation import evaluation
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.question import ask
from rankframe._request.types import Frame
from rankframe._tables import adapters, run_dicts
from rankframe.metrics import core
from rankframe.plot import _colors, _marks, _panels, _pictures, _tables

if TYPE_CHECKING:
    import altair as alt


def at_k(
    frame: Frame | Mapping[str, Frame],
    /,
    *names: str,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    interval: bool = True,
    confidence: float = 0.95,
    together: bool = False,
    **options: Unpack[Options],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the mean of metrics at each cut-off, with its interval.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *names
        Metrics without their cut-off: ``"ndcg"``, ``"precision(divide_by=returned)"``, ``"gmap"``.
    ks
        The cut-offs.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The column that identifies the systems: by default ``"model"``, or ``()``, a single system,
        if there is no such column; further columns are segments. Of several columns, the one called
        ``model`` identifies the systems, else the first one.
    interval
        Draw the interval of the mean (Student's) as a band.
    confidence
        The probability that a single interval covers the true value.
    together
        Draw all metrics on one axis, each with its own dashes: precision and recall over k.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment; a single panel is as wide as the page. The drawn numbers
        are in ``chart.data``: ``panel``, ``system``, ``k``, ``users``, ``mean``, ``ci_low``,
        ``ci_high``, as in ``rf.at_k``, with ``together`` also ``metric``. If there are more than
        six systems, only the best three at the last cut-off are colored and named (``name``,
        ``name_at``); click the legend to select systems, hover over one to show its band.

    Raises
    ------
    ValueError
        If a name already has a cut-off or cannot have one, a parameter is unknown or out of range,
        or there are more than 40 systems.
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> chart = rf.plot.at_k(run, "recall", ks=[1, 2], truth=truth, by=())
    >>> chart.data["mean"].to_list()
    [0.5, 1.0]
    """
    frame, by = run_dicts.as_frame(frame, by)
    _panels.check_call(options)
    keywords.check_flag("together", together)
    cutoffs = cutoff_curves.cutoffs("ks", ks)
    labels = cutoff_curves.labels_at(names, cutoffs)
    groups = _tables.groups_of(frame, truth, by)
    lists = adapters.to_lazy(frame, "judged table" if truth is None else "run")
    settings = keywords.read_options(options, count_missed=True)
    values = evaluation.user_values(ask(lists, labels["label"].to_list(), truth, groups, settings))
    means = cutoff_curves.means_of(values, interval=interval, confidence=confidence).collect()
    return _pictures.at_k_picture(
        means,
        labels,
        groups,
        options,
        confidence=confidence if interval else None,
        together=together,
    )


def precision_recall(
    frame: Frame | Mapping[str, Frame],
    /,
    *,
    ks: Iterable[int] = range(1, 21),
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    **options: Unpack[Options],
) -> alt.HConcatChart:
    """
    Draw precision against recall: the interpolated curve, and the path over k.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    ks
        The cut-offs.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        Columns that identify the systems: by default ``"model"``, or ``()``, a single system, if
        there is no such column.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.HConcatChart
        On the left, the mean ``interpolated_precision`` of the whole lists at recall 0, 0.1, … 1;
        on the right, the mean precision@k against the mean recall@k, on contours of equal F1. If
        there are more than six systems, only the best three by F1 at the last cut-off are colored
        and named; click the legend to select systems. ``at_k("precision", "recall",
        together=True)`` draws both over k.

    Raises
    ------
    ImportError
        Without Altair: ``pip install 'rankframe[plot]'``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> curve, path = rf.plot.precision_recall(run, ks=[1, 2], truth=truth, by=()).hconcat
    >>> path.data.select("k", "recall", "precision").rows()
    [(1, 0.5, 0.5), (2, 1.0, 0.5)]
    """
    frame, by = run_dicts.as_frame(frame, by)
    _panels.check_call(options)
    import altair as alt

    cutoffs, levels = cutoff_curves.cutoffs("ks", ks), [step / 10 for step in range(11)]
    groups = _tables.groups_of(frame, truth, by)
    curves = {f"interpolated_precision(recall={level})": level for level in levels}
    measures = {"recall": core.recall_at, "precision": core.precision_at}
    metrics: list[Metric] = [*curves]
    metrics += [
        metric(k).alias(f"{name}@{k}") for name, metric in measures.items() for k in cutoffs
    ]
    metrics.append(core.num_missed())
    means = _tables.computed(
        evaluation.evaluate, frame, *metrics, truth=truth, by=groups, **options
    )
    shared = sentences.text_of(means, groups).alias("system"), pl.col("users")
    curve = pl.concat(
        means.select(*shared, pl.lit(level).alias("recall"), pl.col(name).alias("precision"))
        for name, level in curves.items()
    )
    path = pl.concat(
        means.select(
            *shared,
            pl.lit(k).alias("k"),
            *(pl.col(f"{name}@{k}").alias(name) for name in measures),
        )
        for k in cutoffs
    )
    _tables.check_values(path["precision"], "precision@k")
    _tables.check_rows(path, "points", "fewer cut-offs")
    last = path.filter(k=cutoffs[-1])
    f1 = 2 * pl.col("precision") * pl.col("recall") / (pl.col("precision") + pl.col("recall"))
    systems = _tables.best_first(last.with_columns(f1=f1.fill_nan(0)), "f1", higher_is_better=True)
    _pictures.check_lines(systems, groups)
    many = _colors.are_many(systems)
    chosen, _ = _colors.selections()
    look = _colors.of_many(systems, chosen) if many else {}
    faint = _colors.points_of_many(systems, chosen) if many else {}
    from_0_to_1 = alt.Scale(domain=[0, 1])
    lines = alt.Chart().encode(
        x=alt.X("recall:Q", title="recall", scale=from_0_to_1, axis=_marks.axis_of()),
        y=alt.Y(
            "precision:Q",
            title="mean interpolated precision",
            scale=from_0_to_1,
            axis=_marks.axis_of(),
        ),
        **_colors.color_of(systems, groups),
    )
    words = {"system": "system", "recall": "recall"}
    words |= {"mean interpolated precision": "precision", "users": "users"}
    lines = _marks.described(lines, curve, words)
    points = lines.mark_point(filled=True, opacity=1, size=30)
    points = points.encode(**_colors.shape_of(systems, groups), **faint)
    points = points.add_params(chosen) if many else points
    drawn = [points, lines.mark_line().encode(**look), _marks.head_room()]
    left = _panels.layered(
        *drawn, data=curve, width=270, height=270, title="Interpolated, whole lists"
    )
    subtitle = [
        (
            f"{_tables.mean_of(options)} over {_tables.user_count(means['users'])}; "
            "gray: equal F1 of the two means"
        )
    ]
    if many:
        subtitle += [_pictures.selectable(f"F1 at k = {cutoffs[-1]}", interval=False)]
    subtitle += sentences.missed_lines(
        means.select(*sentences.system_and_segment(means, groups), "users", "num_missed")
    )
    title = _panels.title_of(
        f"Precision and recall, at k = {_tables.as_text(cutoffs)} and interpolated", *subtitle
    )
    right = _marks.path_chart(path, systems, groups, chosen if many else None)
    return alt.hconcat(left, right, title=title)
