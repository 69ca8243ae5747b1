"""Draw the values of users: their distribution, and their changes."""

from __future__ import annotations

from collections.abc import Sequence
from math import ceil, floor, log10
from typing import Any

import altair as alt
import polars as pl

from rankframe._comparison import comparison, numerals, sentences, trials
from rankframe._evaluation import user_columns
from rankframe.errors import RankingDataError
from rankframe.plot import _colors, _marks, _panels, _tables
from rankframe.plot._colors import Systems

_HEIGHT = 180  # pixels of a panel of changes
_OUTLINE: dict[str, Any] = {"fill": _marks.GRAY, "fillOpacity": 0, "stroke": _marks.GRAY}


def users(
    values: pl.DataFrame,
    groups: Sequence[str],
    *,
    higher_is_better: bool | None,
    bins: int = 20,
    baseline: str | None = None,
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
        _tables.number_of(values, name).alias("value"),
    )
    defined = values.drop_nulls("value")
    _tables.check_values(defined["value"], name)
    systems = _tables.texts(values["system"])
    in_strips = len(systems) >= _tables.MOST_COLORED
    if in_strips:
        systems = _tables.by_mean(defined, "value", higher_is_better=higher_is_better)
        table = _tables.strips(defined)
        _tables.check_rows(table, "rows", "fewer systems")
    else:
        systems.sort(key=lambda name: name != baseline)  # the baseline is first
        table = _tables.histograms(defined, bins)
        _tables.check_rows(table, "bars", "fewer bins")
    axis_title = f"{sentences.one_line(name)} per user"
    segments = _tables.texts(table["segment"])
    counts = table.group_by("system", "segment").agg(pl.col("users").sum())["users"]
    undefined = len(values) - len(defined)
    left_out = f"; {undefined:,} without a value left out" if undefined else ""
    zeros = bool((defined["value"] == 0).any())
    if in_strips:
        layers = _strips(table, systems, axis_title)
        width, height = max(150, 480 // len(segments)), 21 * len(systems)
        lines = [f"{sentences.users(counts)} in each row{left_out}"]
        rest = "users not at 0" if zeros else "users"
        lines += [f"{rest}: line 5 to 95%, bar 25 to 75%, gap median; at the right: mean of all"]
    else:
        layers = _histograms(table, systems, axis_title, baseline)
        width, height = max(90, 600 // len(segments)), 80
        lines = [f"{sentences.users(counts)} in each panel; dashed line: mean{left_out}"]
    if zeros:
        lines += ["box on the left: filled to the share of users whose value is exactly 0"]
    rows = {} if in_strips else {"row": _panels.panels_by("system", systems, "share of users")}
    return _panels.in_grid(
        layers.properties(width=width, height=height),
        **rows,
        column=_panels.panels_by("segment", segments),
        title=_panels.title_of(f"{sentences.one_line(name)}, user by user", *lines, *missed),
        spacing=14,
    )


def _histograms(
    table: pl.DataFrame, systems: Sequence[str], title: str, baseline: str | None
) -> alt.LayerChart:
    """Draw bars of users, their mean, and a box filled to the share of exact zeros."""
    filled = table.filter(pl.col("low") != pl.col("high"))
    has_zeros = len(filled) < len(table)
    lowest, highest = _ends(table if has_zeros else filled, "low", "high", "mean")
    span = highest - lowest
    left, right = lowest - 0.17 * span, lowest - 0.07 * span
    top = _tables.bounds(filled["share"])[1] if len(filled) else 1.0
    x = alt.X(
        "low:Q",
        bin="binned",
        title=title,
        axis=_marks.axis_of(labelFlush=False, labelOverlap=True, **_ticks(lowest, highest)),
        scale=alt.Scale(domain=[left if has_zeros else lowest, highest], nice=False, zero=False),
    )
    y = alt.Scale(domain=[0, 1.2 * top if has_zeros else top])  # with room for a number
    column = "system" if len(systems) > 1 else None
    base = alt.Chart().encode(
        **_marks.color_of(Systems(systems, column, legend=False, baseline=baseline))
    )
    panel = {"system": "system", "segment": "segment"}
    words = {**panel, title: ("low", "high"), "users": "users", "share of users": "share"}
    bars = _marks.described(base.mark_bar(binSpacing=1), filled, words)
    bars = bars.transform_filter("datum.low !== datum.high")
    # away from the box, which has its own scale
    percent = _marks.axis_of(format="%", tickCount=3, orient="right" if has_zeros else "left")
    layers = [bars.encode(x=x, x2="high:Q", y=alt.Y("share:Q", title=None, axis=percent, scale=y))]
    # the first row of each histogram
    first = table.drop_nulls("mean")
    line = alt.Chart().mark_rule(strokeWidth=2, color=_marks.INK, strokeDash=[5, 2])
    line = _marks.described(line, first, {**panel, "mean": "mean"}).transform_filter(
        "isValid(datum.mean)"
    )
    layers.append(line.encode(x=alt.X("mean:Q", title=title)))
    if has_zeros:
        box = base.transform_filter("isValid(datum.mean)").transform_calculate(
            zeros="datum.low === datum.high ? datum.share : 0", level=f"datum.zeros * {top}"
        )
        words = {**panel, "users at exactly 0": "zeros", "mean": "mean"}
        box = _marks.described(box, first.with_columns(zeros="share"), words)
        ends: dict[str, Any] = {"x": alt.XDatum(left, title=title), "x2": alt.X2Datum(right)}
        end = alt.YDatum(top, title=None)
        whole = box.mark_rect(**_OUTLINE)
        text = box.mark_text(baseline="bottom", dy=-2, fontSize=10, align="left")
        layers += [
            box.mark_rect(opacity=0.6).encode(
                y=alt.Y("level:Q", title=None), y2=alt.Y2Datum(0), **ends
            ),
            whole.encode(y=end, y2=alt.Y2Datum(0), **ends),
            text.encode(
                x=ends["x"],
                y=end,
                text=alt.Text("zeros:Q", format=".0%"),
                color=alt.value(_marks.INK),
            ),
        ]
    picture: alt.LayerChart = _panels.layered(*layers, data=table)
    return picture


def _strips(table: pl.DataFrame, systems: Sequence[str], title: str) -> alt.LayerChart:
    """Draw one row per system: quantiles of users, their mean, and the share of exact zeros."""
    has_zeros = bool((table["zeros"] > 0).any())
    lowest, highest = _ends(table, "low", "high", "mean")
    lowest = min(lowest, 0.0) if has_zeros else lowest
    span = highest - lowest
    left, right = lowest - 0.27 * span, lowest - 0.06 * span
    x: dict[str, Any] = {
        "title": title,
        "scale": alt.Scale(
            domain=[left if has_zeros else lowest, highest + 0.02 * span], nice=False, zero=False
        ),
        "axis": _marks.axis_of(labelFlush=False, labelOverlap=True, **_ticks(lowest, highest)),
    }
    y = alt.Y("system:N", title=None, sort=list(systems), axis=_marks.axis_of(labelLimit=280))
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
    layers = [
        quantiles.mark_rule(color=_marks.COLORS[0]).encode(x=alt.X("low:Q", **x), x2="high:Q"),
        quantiles.mark_bar(color=_marks.COLORS[0], height=9).encode(
            x=alt.X("lower quarter:Q", **x), x2="upper quarter:Q"
        ),
        quantiles.mark_tick(color=_marks.BACKGROUND, thickness=2, height=9).encode(
            x=alt.X("median:Q", **x)
        ),
        base.mark_text(align="left", dx=4, color=_marks.INK).encode(
            x=alt.value("width"), text=alt.Text("mean:Q", format=".3f")
        ),
    ]
    if has_zeros:
        vessel = base.transform_calculate(
            left=str(left), right=str(right), filled=f"{left} + datum.zeros * {right - left}"
        )
        start = alt.X("left:Q", **x)
        text = vessel.mark_text(align="left", dx=3, fontSize=9, baseline="middle", color=_marks.INK)
        layers += [
            vessel.mark_bar(height=13, color=_marks.USERS, opacity=0.6).encode(
                x=start, x2="filled:Q"
            ),
            vessel.mark_bar(height=13, **_OUTLINE).encode(x=start, x2="right:Q"),
            text.encode(x=start, text=alt.Text("zeros:Q", format=".0%")),
        ]
    picture: alt.LayerChart = _panels.layered(*layers, data=table)
    return picture


def _ends(table: pl.DataFrame, *names: str) -> tuple[float, float]:
    """Return the least and the greatest number in the columns; 0 and 1 if there is none."""
    values = pl.concat([table[name].alias("value") for name in names]).drop_nulls()
    if not len(values):
        return 0.0, 1.0
    least, most = _tables.bounds(values)
    return (least, most) if most > least else (least - 0.5, most + 0.5)


def _ticks(lowest: float, highest: float) -> dict[str, Any]:
    """Choose the ticks of an axis whose left end has no meaning."""
    step = _tables.round_step((highest - lowest) / 6)
    first, last = ceil(lowest / step - 1e-9), floor(highest / step + 1e-9)
    return {"values": [round(place * step, 10) for place in range(first, last + 1)]}


def change(
    values: pl.DataFrame,
    means: pl.DataFrame,
    groups: Sequence[str],
    k: int,
    baseline: object,
) -> alt.FacetChart:
    """Draw changes and the means of ``who_gained``; intervals need to know who has no list."""
    means = means.remove(pl.col("reading").str.starts_with(trials.NO_LIST))
    if len(groups) > 1:  # the rows of all segments have no panel
        means = means.drop_nulls(groups)
    means = means.select(*sentences.system_and_segment(means, groups), pl.exclude(groups))
    pairs = _changes_of(values, groups, baseline)
    if pairs.is_empty():
        msg = f"column {groups[0]!r}: no system shares a user with {baseline!r}"
        raise RankingDataError(msg)
    in_panels = pairs.select(_tables.panel_of("system"))["panel"]
    _tables.check_panels(_tables.texts(in_panels), "systems and segments")
    ends = pl.col("relevant_low"), pl.col("relevant_high")
    text = pl.when(ends[0] == ends[1]).then(ends[0].cast(pl.String))
    bins = means.drop_nulls("relevant_low")
    bins = bins.with_columns(text.otherwise(pl.format("{} to {}", *ends)).alias("bin"))
    rows = _users_in_bins(pairs, bins)
    table = pl.concat(
        _changes_in_bins(rows, bins, name).with_columns(measure=pl.lit(f"{name}@{k}"))
        for name in _tables.AXES[::-1]
    )
    _tables.check_rows(table, "points", "fewer segments")
    # the axis fits the intervals and nine of ten users; those beyond are counted in words
    most = [rows[name].quantile(q, "nearest") for name in _tables.AXES for q in (0.05, 0.95)]
    drawn = pl.concat([table[name].alias("y") for name in ("mean", "ci_low", "ci_high")])
    drawn = pl.concat([drawn, pl.Series([*most, 0.0], dtype=pl.Float64)]).drop_nulls()
    domain = _tables.round_ends(*_tables.bounds(drawn), (-1, 1))
    overall = means.filter(pl.col("relevant_low").is_null() & (pl.col("users") > 0))
    panels = _tables.texts(overall.select(_tables.panel_of("system"))["panel"])
    shared = f"change from {sentences.one_line(baseline)}"
    if _colors.LETTER * len(shared) > _HEIGHT * len(panels):
        shared = "change"
    table = _with_those_beyond(table, domain)
    words = f"; points: means with {_marks.sure(comparison.CONFIDENCE)}s; bars: users"
    grid: Any = _panels.in_grid(
        _changes(table, domain).properties(width=280, height=_HEIGHT),
        row=_panels.panels_by("panel", panels, shared),
        column=_panels.panels_by("measure", _tables.texts(table["measure"])),
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
        *(pl.col(name) - pl.col(f"{name} before") for name in _tables.AXES),
        served=~(pl.col(missed) | pl.col(f"{missed} before")),
    )


def _users_in_bins(pairs: pl.DataFrame, bins: pl.DataFrame) -> pl.DataFrame:
    """Find the bin of each user whom both systems serve."""
    keys = ["system", "segment"]
    ends = bins.select(_tables.panel_of("system"), *keys, "relevant_low", "relevant_high", "bin")
    rows = pairs.sort(*keys, "relevant", *_tables.AXES).join(ends, on=keys, maintain_order="left")
    inside = pl.col("relevant").is_between("relevant_low", "relevant_high")
    return rows.filter(inside & pl.col("served").fill_null(value=True))


def _changes_in_bins(rows: pl.DataFrame, bins: pl.DataFrame, name: str) -> pl.DataFrame:
    """Stack the users of similar change in each bin, and the mean of each with its interval."""
    levels = max(6, min(40, _tables.MOST_ROWS // 3 // max(1, len(bins))))
    value = pl.col(name)
    keys = ["panel", "bin", "relevant_low", "relevant_high"]
    similar = rows.group_by(
        *keys, _binned(rows, value.round(9), levels).alias("level"), maintain_order=True
    )
    users = similar.agg(value.mean().alias("change"), pl.len().alias("count")).drop("level")
    spread = rows.group_by(keys).agg(value.filter("served").std().alias("std"))
    means = bins.select(_tables.panel_of("system"), *keys[1:], "users", mean=f"{name}_change")
    means = means.join(spread, on=keys, how="left", maintain_order="left")
    margin = pl.when(pl.col("std") > trials.NOTHING).then(
        _tables.margins(means, comparison.CONFIDENCE)
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
    least, greatest = _tables.bounds(values)
    return ((value - least) / (greatest - least) * bins).floor().clip(0, bins - 1)


def _changes(table: pl.DataFrame, domain: tuple[float, float]) -> Any:
    """Draw the users of each bin, and their mean with its interval."""
    ticks = _ticks(*domain)
    step = _tables.round_step((domain[1] - domain[0]) / 6)
    digits = max(0, -floor(log10(step) + 1e-9))
    y: dict[str, Any] = {
        "title": None,
        "scale": alt.Scale(domain=[*domain], nice=False, clamp=True),
        "axis": _marks.change_axis(format=f"+.{digits}f", grid=False, **ticks),
    }
    order = _tables.texts(table.drop_nulls("bin").sort("relevant_low", "relevant_high")["bin"])
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
    users = _marks.described(base, table.drop_nulls("count"), of_users)
    means = _marks.described(base, table.drop_nulls("mean"), of_mean)
    depth = alt.Scale(type="sqrt", range=[0.35, 1], zero=False)
    users = users.mark_tick(color=_marks.USERS, thickness=3, width={"band": 0.7}).encode(
        y=alt.Y("change:Q", **y), opacity=alt.Opacity("count:Q", scale=depth, legend=None)
    )
    line = means.mark_rule(color=_marks.INK, strokeWidth=2)
    point = means.mark_point(color=_marks.INK, filled=True, size=50, opacity=1)
    return _panels.layered(
        _marks.zero_line().encode(y=alt.YDatum(0)),
        users.transform_filter("isValid(datum.count)"),
        line.transform_filter("isValid(datum.ci_low)").encode(
            y=alt.Y("ci_low:Q", **y), y2="ci_high:Q"
        ),
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
    for row in overall.with_columns(_tables.panel_of("system")).iter_rows(named=True):
        changes = (
            f"{name}@{k} {numerals.signed(row[f'{name}_change'])}" for name in _tables.AXES[::-1]
        )
        lines += [f"{row['panel']}: {', '.join(changes)}: {row['reading']}"]
    return lines
