"""Draw the differences of systems with their intervals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import comparison, notes, pair_tests, sentences, trials
from rankframe._comparison.trials import Bound, Correction, Margin, Test, Trial
from rankframe._request import keywords
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _colors, _marks, _names, _panels
from rankframe.plot._names import Names

_MOST_PAIRED = 12  # systems for which each pair has its own row


@adapters.takes_any_frame
def compare(
    frame: Runs[Frame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    paired: bool = True,
    **options: Unpack[StatisticsOptions],
) -> alt.LayerChart | alt.FacetChart:
    """
    Draw the differences of systems with their intervals.

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
        The system that the others are compared with; by default every pair is compared.
    test
        ``"t"`` (paired), ``"randomization"``, ``"max_t"`` (all systems at once) or
        ``"sequential"`` (valid at every look). The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` corrects by itself, and takes no other.
    confidence
        The probability that a single interval covers the true value.
    margin
        A difference too small to matter, > 0, on the scale of the metric, or a share of the
        baseline's values such as ``"1%"``: one for all metrics, or a mapping such as
        ``{"ndcg@10": 0.01, "mrr": "2%"}``; metrics missing from the mapping have no margin.
    primary
        The metric that decides, such as ``"ndcg@10"``, chosen before the values are seen. Its
        p-value is not corrected for the other metrics.
    resamples
        The number of resamples, for the tests and intervals that draw them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    paired
        False: compare groups of different users, such as weeks or cohorts with ``model="week"``, by
        Welch's t test on all users of each group. Users in both groups enter with their covariance.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    altair.LayerChart or altair.FacetChart
        One panel per metric and segment, one row per pair, in the order of the systems. Color and
        shape are the verdict of ``rankframe.compare``. Except for ``"max_t"``, intervals are not
        corrected, so the interval of an undecided pair may exclude 0. A gray band shows the
        differences within ± ``margin``. The drawn numbers are in
        ``chart.data``: ``panel``, ``system``, ``pair``, ``verdict``, the ``margin`` if there is
        one, and the numbers of ``rankframe.compare``.

    Raises
    ------
    ValueError
        If more than 12 systems have no baseline.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> chart = rf.plot.compare(run, "rr", truth=truth, baseline="old")
    >>> chart.data.select("pair", "verdict").rows()
    [('new − old', 'undecided')]
    """
    trial = Trial(
        *(baseline, test, correction, confidence, margin, primary, resamples, seed, cluster),
        paired=paired,
    )
    _refuse_compared(frame)
    call = _call.read_call(frame, truth, by, options, "compare")
    values = call.values(metrics, cluster=cluster)
    compared = comparison.comparison_of(values, trial, details=True).collect()
    directions = pair_tests.directions_of(call.requested(metrics))
    confidence = trial.confidence
    sizes = comparison.per_metric("margin", trial.margin, [*directions])
    margins = {name: bound for name, size in sizes.items() if (bound := trials.bound_of(size))}
    table = _differences(compared, call.groups, margins)
    names = _panels.texts(table["panel"])
    _call.check_values(table["difference"], ", ".join(names[:3]))
    _call.check_rows(table, "pairs", "a baseline")
    names = list(directions)
    what = ", ".join(names if len(names) < 4 else [*names[:3], f"{len(names) - 3} more"])
    counted = f"{sentences.users(table['users'])}{_panels.weighted_by(call.options)}"
    table = table.with_columns(notes.in_words(table["note"]))
    tested = sentences.tested_in_words(trial, compared, notes.USERS)
    missed = sentences.missed_lines(_missed_of_pairs(compared, call.groups))
    look = _verdict_look(table["verdict"], f"p < {keywords.alpha_of(confidence):.2g}")
    systems = _panels.texts(pl.concat([table["system"], table["baseline"]]))
    short = _names.short(systems)
    if trial.baseline is None and len(systems) > _MOST_PAIRED:
        msg = (
            f"{len(systems)} systems are too many to draw each pair: name a baseline=, or read "
            f"which of them differ in rf.table(…, letters=True)"
        )
        raise ValueError(msg)
    pairs = table.select("pair", "system", "baseline").unique("pair", maintain_order=True)
    counts = table["verdict"].value_counts(sort=True)
    proven = ", ".join(f"{count} {verdict}" for verdict, count in counts.sort("verdict").rows())
    text = f"Differences of systems in {what}"
    if len(pairs) == 1:
        text = f"{pairs['pair'][0]}: {what}"
    elif trial.baseline is not None:
        text = f"Differences from {sentences.one_line(trial.baseline)} in {what}"
        text += f": {proven}"
    alone = "simultaneous" if trial.test == "max_t" else "not corrected"
    intervals = f"{confidence * 100:.10g}% intervals, {alone}"
    title = _panels.title_of(text, counted, f"{intervals}; {tested}", short.key, *missed, width=560)
    row = "pair" if trial.baseline is None or len(pairs) == 1 else "system"
    if row == "pair":
        sides = (pairs[name].replace(short.short) for name in ("system", "baseline"))
        labels = pl.select(_pair_of(*sides)).to_series()
        short = Names(dict(zip(pairs["pair"], labels, strict=True)), short.key)
    return _intervals(table.drop("baseline"), title, look, confidence, row=row, names=short)


def _refuse_compared(frame: Runs[Frame]) -> None:
    """Raise if a table is a result of ``compare``, which does not say how it was tested."""
    own = {"metric", "baseline", "difference", "verdict"}
    if not isinstance(frame, Mapping) and own <= {*adapters.column_names(frame, "frame")}:
        msg = (
            "a result of compare does not say how it was tested: draw from what it compared, "
            "rf.plot.compare(runs, 'ndcg@10', truth=truth, baseline=…)"
        )
        raise ValueError(msg)


def _differences(
    compared: pl.DataFrame, groups: Sequence[str], margins: Mapping[str, Bound]
) -> pl.DataFrame:
    """Name the pairs, panels and verdicts of a comparison, and the margin if there is one."""
    system, baseline = (sentences.text_of(compared, [name]) for name in (groups[0], "baseline"))
    sizes, shares = (
        {name: bound.size for name, bound in margins.items() if bound.relative == relative}
        for relative in (False, True)
    )
    size, share = (
        pl.col("metric").replace_strict(values, default=None, return_dtype=pl.Float64)
        for values in (sizes, shares)
    )
    margin = pl.coalesce(size, share * pl.col("baseline_mean"))
    left_out = () if margins else ("margin", "p_equivalent", "p_not_worse")
    drawn = "difference", "ci_low", "ci_high"
    return compared.select(
        *sentences.system_and_segment(compared, groups),
        _pair_of(system, baseline).alias("pair"),
        pl.col("verdict").fill_null("undecided"),
        margin.alias("margin"),
        baseline.alias("baseline"),
        pl.exclude(*groups, "baseline", "verdict"),
        axis_low=pl.min_horizontal(drawn).min().over("metric"),
        axis_high=pl.max_horizontal(drawn).max().over("metric"),
    ).select(_panels.panel_of("metric"), pl.exclude("segment", "metric", *left_out))


def _pair_of(system: Any, baseline: Any) -> pl.Expr:
    """Name a pair, in expressions or columns."""
    return pl.format("{} − {}", *map(sentences.isolated_names, (system, baseline)))


def _missed_of_pairs(compared: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
    """Count the users without a list for each system of a comparison."""
    sides = [
        compared.select(
            sentences.text_of(compared, [name]).alias("system"),
            sentences.text_of(compared, groups[1:]).alias("segment"),
            "users",
            pl.col(missed).alias("num_missed"),
        )
        for name, missed in ((groups[0], "num_missed"), ("baseline", "baseline_num_missed"))
    ]
    return pl.concat(sides)


def _intervals(
    table: pl.DataFrame,
    title: alt.TitleParams,
    look: Mapping[str, Any],
    confidence: float,
    *,
    row: str,
    names: Names,
) -> alt.LayerChart | alt.FacetChart:
    """Draw one row per pair, or per system if all have the same baseline."""
    panels = _panels.texts(table["panel"])
    axis_title = "difference" + (f" in {panels[0]}" if len(panels) == 1 else "")
    order = _panels.texts(table[row])
    two_lines = row == "pair" and max(map(len, map(names.of, order))) > 30
    axis: dict[str, Any] = {"labelLimit": 240, "labelExpr": names.label}
    if two_lines:
        axis["labelExpr"] = f"split(replace({names.label}, ' − ', '\\n− '), '\\n')"
    if len(order) == 1:
        axis |= {"labels": False, "ticks": False}
    base = alt.Chart().encode(
        y=alt.Y(f"{row}:N", title=None, sort=order, axis=_marks.axis_of(**axis)),
        color=look["color"],
    )
    base = _marks.described(base, table, _words(confidence))
    bars = base.mark_rule(strokeWidth=2).transform_filter("isValid(datum.ci_low)")
    points = base.mark_point(filled=True, opacity=1, size=80)
    signed = _marks.change_axis(format="+.3~g", tickCount=4, labelOverlap=True)
    on_axis: dict[str, Any] = {"title": axis_title, "axis": signed, "scale": alt.Scale(padding=10)}
    layers = [
        _marks.zero_line().encode(x=alt.XDatum(0)),
        bars.encode(x=alt.X("ci_low:Q", title=axis_title), x2="ci_high:Q"),
        points.encode(x=alt.X("difference:Q", **on_axis), shape=look["shape"]),
    ]
    if "margin" in table.columns:
        layers.insert(0, _margin_band(axis_title))
    # without ink: the panels of one metric have one axis
    ends = base.mark_rule(opacity=0, tooltip=None).transform_filter("isValid(datum.axis_low)")
    layers.append(ends.encode(x=alt.X("axis_low:Q", title=axis_title), x2="axis_high:Q"))
    return _panels.in_panels(
        layers,
        table,
        title,
        width=180,
        height=(34 if two_lines else 24) * max(2, len(order)),
        columns=2 if len(panels) == 4 else 3,
        resolve="x",
    )


def _margin_band(title: str) -> alt.Chart:
    """Draw the differences within the margin, once per panel."""
    band = alt.Chart().mark_rect(color=_marks.PALE)
    band = band.transform_calculate(low=alt.datum.margin * -1)
    drawn: alt.Chart = band.transform_filter("isValid(datum.margin)").encode(
        x=alt.X("min(low):Q", title=title), x2="max(margin):Q"
    )
    return drawn


def _words(confidence: float) -> dict[str, str | Sequence[str]]:
    """Return the rows of the tooltip of a comparison."""
    return {
        "systems": "pair",
        "metric": "panel",
        "difference": "difference",
        _marks.sure(confidence): ("ci_low", "ci_high"),
        "verdict": "verdict",
        "p, adjusted": "p_adjusted",
        "p, not adjusted": "p_value",
        "users": "users",
        "users higher / equal / lower": ("higher", "equal", "lower"),
        "mean": "mean",
        "mean of the baseline": "baseline_mean",
        "margin": "margin",
        "p of equivalence": "p_equivalent",
        "p of not worse": "p_not_worse",
        "detectable difference": "detectable",
        "note": "note",
    }


def _verdict_look(verdicts: pl.Series, title: str) -> dict[str, Any]:
    """Assign a color and a shape to each verdict."""
    domain = [verdict for verdict in _colors.VERDICTS if verdict in {*verdicts}]
    pairs, shapes = zip(*(_colors.VERDICTS[verdict] for verdict in domain), strict=True)
    colors = alt.Scale(domain=domain, range=[_colors.ink(pair) for pair in pairs])
    marks, legend = alt.Scale(domain=domain, range=list(shapes)), _marks.legend_of(title)
    return {
        "color": alt.Color("verdict:N", scale=colors, legend=legend),
        "shape": alt.Shape("verdict:N", scale=marks, legend=legend),
    }
