"""Draw the changes of precision and recall, by the number of relevant items."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10
from typing import Any, Unpack

import polars as pl

from rankframe._comparison import comparison, diagnosis, numerals, sentences, system_pairs, trials
from rankframe._comparison.trials import Trial
from rankframe._evaluation import user_columns
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters
from rankframe.errors import RankingDataError
from rankframe.metrics import core, trec
from rankframe.plot import _altair as alt
from rankframe.plot import _call, _marks, _panels

_HEIGHT = 180  # pixels of a panel of changes
_AXES = ("recall", "precision")


@adapters.takes_any_frame
def who_gained(
    frame: Runs[Frame],
    /,
    k: int,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    bins: int = 8,
    **options: Unpack[Options],
) -> alt.FacetChart:
    """
    Draw the changes of precision@k and recall@k in bins of R, the number of relevant items.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    k
        Cut-off.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    bins
        The greatest number of bins. Users with the same R, their number of relevant items, are in
        the same bin.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    altair.FacetChart
        Two panels per system and segment over R, the number of a user's relevant items: the change
        of precision@k = change of hits / k, and that of recall@k = change of hits / R. Points are
        the means of the bins of ``who_gained``, whose reading is in the subtitle, with 95%
        intervals by Student's t, not corrected. Bars are users, darker where more have a similar
        change. Hollow points are the shrunken changes. The axis fits the intervals and nine of ten
        users; the others are at its ends. The drawn numbers are in ``chart.data``: ``bin``, and in
        rows with a ``count`` the mean ``change`` of this number of users, in the others ``mean``,
        ``ci_low``, ``ci_high`` and ``shrunken`` of ``users``.

    Raises
    ------
    RankingDataError
        If the systems share no user.

    Notes
    -----
    Both panels show the same hits. Read them as ``who_gained`` does: if points are above 0 for
    users with few relevant items and below for users with many, mean recall rises, and mean
    precision falls.

    Examples
    --------
    >>> old = pl.DataFrame({"user": ["A", "A", "B"], "item": [1, 2, 9], "rank": [1, 2, 1]})
    >>> new = pl.DataFrame({"user": ["A", "B"], "item": [101, 101], "rank": [1, 1]})
    >>> run = pl.concat([f.with_columns(model=pl.lit(m)) for f, m in [(old, "old"), (new, "new")]])
    >>> truth = pl.DataFrame({"user": ["A"] * 100 + ["B"] * 20, "item": range(1, 121)})
    >>> drawn = rf.plot.who_gained(run, 10, truth=truth, baseline="old").data
    >>> drawn.drop_nulls("count").select("measure", "bin", "change", "count").rows()
    [('precision@10', '20', 0.1, 1), ('precision@10', '100', -0.2, 1),
     ('recall@10', '20', 0.05, 1), ('recall@10', '100', -0.02, 1)]
    """
    call = _call.read_call(frame, truth, by, options, "who_gained")
    k = keywords.whole_number("k", k)
    metrics = [trec.num_relevant().alias("relevant"), core.precision_at(k).alias("precision")]
    metrics += [core.recall_at(k).alias("recall")]
    values = call.values(metrics, per_user=True).rows.collect()
    trial = Trial(baseline, needed_by="who_gained")
    baseline = system_pairs.systems_in(values, call.groups[0], trial).baseline
    means = call.compute(diagnosis.who_gained, k, baseline=baseline, bins=bins)
    groups = call.groups
    means = means.remove(pl.col("reading").str.starts_with(trials.NO_LIST))
    means = means.select(*sentences.system_and_segment(means, groups), pl.exclude(groups))
    pairs = _changes_of(values, groups, baseline)
    if pairs.is_empty():
        msg = f"column {groups[0]!r}: no system shares a user with {baseline!r}"
        raise RankingDataError(msg)
    in_panels = pairs.select(_panels.panel_of("system"))["panel"]
    _call.check_panels(_panels.texts(in_panels), "systems and segments")
    ends = pl.col("relevant_low"), pl.col("relevant_high")
    text = pl.when(ends[0] == ends[1]).then(ends[0].cast(pl.String))
    in_bins = means.drop_nulls("relevant_low")
    in_bins = in_bins.with_columns(text.otherwise(pl.format("{} to {}", *ends)).alias("bin"))
    rows = _users_in_bins(pairs, in_bins)
    table = pl.concat(
        _changes_in_bins(rows, in_bins, name).with_columns(measure=pl.lit(f"{name}@{k}"))
        for name in _AXES[::-1]
    )
    _call.check_rows(table, "points", "fewer segments")
    # the axis fits the intervals and nine of ten users; those beyond are counted in words
    most = [rows[name].quantile(q, "nearest") for name in _AXES for q in (0.05, 0.95)]
    drawn = *table.select("mean", "ci_low", "ci_high"), pl.Series([*most, 0.0], dtype=pl.Float64)
    domain = _marks.round_ends(*_marks.bounds(*drawn), (-1, 1))
    overall = means.filter(pl.col("relevant_low").is_null() & (pl.col("users") > 0))
    panels = _panels.texts(overall.select(_panels.panel_of("system"))["panel"])
    table = _with_those_beyond(table, domain)
    words = f"; points: means with {_marks.sure(comparison.CONFIDENCE)}s; bars: users"
    words += "; hollow: shrunken changes" if table["shrunken"].count() else ""
    grid: Any = _panels.in_grid(
        _changes(table, domain).properties(width=280, height=_HEIGHT),
        row=_panels.panels_by("panel", panels, "change"),
        column=_panels.panels_by("measure", _panels.texts(table["measure"])),
        title=_panels.title_of(
            f"Change from {sentences.one_line(baseline)} among the first {k} items, user by user",
            sentences.users(overall["users"]) + words,
            *_readings_of(overall, k),
        ),
    )
    chart: alt.FacetChart = grid.resolve_scale(x="independent")
    return chart


def _changes_of(values: pl.DataFrame, groups: Sequence[str], baseline: object) -> pl.DataFrame:
    """Pair each user with the baseline, as ``who_gained`` does; ``served`` is null if not known."""
    model, *segments = groups
    user, missed = values.columns[len(groups)], user_columns.MISSED
    if missed not in values.columns:
        values = values.with_columns(pl.lit(None, pl.Boolean).alias(missed))
    defined = values.filter(pl.col("relevant") > 0)
    of_baseline = pl.col(model) == pl.lit(baseline, dtype=values.schema[model])
    before = defined.filter(of_baseline).drop(model, "relevant")
    paired = defined.remove(of_baseline).join(before, on=[*segments, user], suffix=" before")
    return paired.select(
        *sentences.system_and_segment(paired, groups),
        "relevant",
        *(pl.col(name) - pl.col(f"{name} before") for name in _AXES),
        served=~(pl.col(missed) | pl.col(f"{missed} before")),
    )


def _users_in_bins(pairs: pl.DataFrame, bins: pl.DataFrame) -> pl.DataFrame:
    """Find the bin of each user whom both systems serve."""
    keys = ["system", "segment"]
    ends = bins.select(_panels.panel_of("system"), *keys, "relevant_low", "relevant_high", "bin")
    rows = pairs.sort(*keys, "relevant", *_AXES).join(ends, on=keys, maintain_order="left")
    inside = pl.col("relevant").is_between("relevant_low", "relevant_high")
    return rows.filter(inside & pl.col("served").fill_null(value=True))


def _changes_in_bins(rows: pl.DataFrame, bins: pl.DataFrame, name: str) -> pl.DataFrame:
    """Stack the users of similar change in each bin, and the mean of each with its interval."""
    levels = max(6, min(40, _call.MOST_ROWS // 3 // max(1, len(bins))))
    value = pl.col(name)
    keys = ["panel", "bin", "relevant_low", "relevant_high"]
    similar = rows.group_by(
        *keys, _binned(rows, value.round(9), levels).alias("level"), maintain_order=True
    )
    users = similar.agg(value.mean().alias("change"), pl.len().alias("count")).drop("level")
    spread = rows.group_by(keys).agg(value.filter("served").std().alias("std"))
    drawn = {"mean": f"{name}_change", "shrunken": f"{name}_shrunken"}
    means = bins.select(_panels.panel_of("system"), *keys[1:], "users", **drawn)
    means = means.join(spread, on=keys, how="left", maintain_order="left")
    margin = pl.when(pl.col("std") > trials.NOTHING).then(
        _marks.margins(means, comparison.CONFIDENCE)
    )
    ends = {"ci_low": pl.col("mean") - margin, "ci_high": pl.col("mean") + margin}
    means = means.with_columns(end.clip(-1, 1).alias(end_) for end_, end in ends.items())
    return pl.concat([users, means.drop("std")], how="diagonal")


def _with_those_beyond(table: pl.DataFrame, domain: tuple[float, float]) -> pl.DataFrame:
    """Replace the users beyond either end of the axis by their number in words, per panel."""
    low, high = domain
    change = pl.col("change")
    counts: list[pl.DataFrame] = []
    for sign, verb, beyond in (("▲", "gain", change > high), ("▼", "lose", change < low)):
        number = pl.col("count").sum().alias("number")
        panels = table.filter(beyond).group_by("panel", "measure", maintain_order=True).agg(number)
        many = pl.col("number") > 1
        who = pl.when(many).then(pl.lit(f"users {verb}")).otherwise(pl.lit(f"user {verb}s"))
        text = pl.format(f"{sign} {{}} {{}} more", "number", who)
        counts.append(panels.select("panel", "measure", text.alias("beyond"), side=pl.lit(sign)))
    inside = table.filter(change.is_null() | change.is_between(low, high))
    return pl.concat([inside, *counts], how="diagonal")


def _binned(rows: pl.DataFrame, value: pl.Expr, bins: int) -> pl.Expr:
    """Return the bin of a value, or the value itself if there are few distinct ones."""
    values = rows.select(value).to_series()
    if values.n_unique() <= bins:
        return value
    least, greatest = _marks.bounds(values)
    return ((value - least) / (greatest - least) * bins).floor().clip(0, bins - 1)


def _changes(table: pl.DataFrame, domain: tuple[float, float]) -> Any:
    """Draw the users of each bin, and their mean with its interval."""
    ticks = _marks.ticks(*domain)
    step = _marks.round_step((domain[1] - domain[0]) / 6)
    digits = max(0, -floor(log10(step) + 1e-9))
    y: dict[str, Any] = {
        "title": None,
        "scale": alt.Scale(domain=[*domain], nice=False, clamp=True),
        "axis": _marks.change_axis(format=f"+.{digits}f", grid=False, labelOverlap=False, **ticks),
    }
    order = _panels.texts(table.drop_nulls("bin").sort("relevant_low", "relevant_high")["bin"])
    axis = alt.Axis(labelAngle=-40 if max(map(len, order), default=0) > 3 else 0)
    base = alt.Chart().encode(
        x=alt.X("bin:N", title="relevant items of a user", sort=order, axis=axis)
    )
    words: dict[str, str | Sequence[str]] = {
        "system": "panel",
        "relevant items": ("relevant_low", "relevant_high"),
        "metric": "measure",
    }
    of_users = {**words, "change": "change", "users": "count"}
    of_mean = {**words, "mean change": "mean", "users": "users"}
    of_mean[_marks.sure(comparison.CONFIDENCE)] = ("ci_low", "ci_high")
    of_mean["shrunken"] = "shrunken"
    users = _marks.described(base, table.drop_nulls("count"), of_users)
    means = _marks.described(base, table.drop_nulls("mean"), of_mean)
    depth = alt.Scale(type="sqrt", range=[0.35, 1], zero=False)
    users = users.mark_tick(color=_marks.USERS, thickness=3, width={"band": 0.7}).encode(
        y=alt.Y("change:Q", **y), opacity=alt.Opacity("count:Q", scale=depth, legend=None)
    )
    line = means.mark_rule(color=_marks.INK, strokeWidth=2)
    point = means.mark_point(color=_marks.INK, filled=True, size=50, opacity=1)
    hollow = _marks.hollow(means).encode(color=alt.value(_marks.INK))
    return _panels.layered(
        _marks.zero_line().encode(y=alt.YDatum(0)),
        users.transform_filter("isValid(datum.count)"),
        line.transform_filter("isValid(datum.ci_low)").encode(
            y=alt.Y("ci_low:Q", **y), y2="ci_high:Q"
        ),
        hollow.transform_filter("isValid(datum.shrunken)").encode(y=alt.Y("shrunken:Q", **y)),
        point.transform_filter("isValid(datum.mean)").encode(y=alt.Y("mean:Q", **y)),
        *_words_at_the_ends(),
        data=table,
    )


def _words_at_the_ends() -> list[alt.Chart]:
    """Write how many users are beyond the axis, at the end that they are beyond."""
    layers: list[alt.Chart] = []
    for sign, y in (("▲", 9), ("▼", _HEIGHT - 9)):
        base = alt.Chart().transform_filter(f"datum.side === '{sign}'")
        placed = base.encode(x=alt.value(4), y=alt.value(y))
        layers += _marks.with_halo(placed, "beyond:N", align="left", baseline="middle", fontSize=10)
    return layers


def _readings_of(overall: pl.DataFrame, k: int) -> list[str]:
    """Write the readings of ``who_gained``, one per system."""
    lines: list[str] = []
    for row in overall.with_columns(_panels.panel_of("system")).iter_rows(named=True):
        changes = (f"{name}@{k} {numerals.signed(row[f'{name}_change'])}" for name in _AXES[::-1])
        lines += [f"{row['panel']}: {', '.join(changes)}: {row['reading']}"]
    return lines
