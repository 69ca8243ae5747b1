"""Prepare what charts draw: the frames behind the pictures, and their texts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from math import ceil, floor, inf, log10
from typing import Any, NamedTuple, cast

import polars as pl

from rankframe._comparison import sentences, summaries
from rankframe._comparison.trials import Bound
from rankframe._evaluation import evaluation, ready_values, row_verbs
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns, Options, Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, column_roles, readers, run_dicts
from rankframe.errors import RankingDataError

MOST_ROWS = 4_000  # of a chart's data: less than a megabyte, and below Altair's limit
MOST_PANELS = 12  # rows of panels
MOST_VALUES = 10  # values of a column whose shares are drawn; the others are summed
MOST_COLORED = 6  # systems with their own colors; if there are more, only the best have one
BEST = 3
AXES = ("recall", "precision")
#: the labels of an interpolated curve, and the recall of each
INTERPOLATED = {f"interpolated_precision(recall={step / 10})": step / 10 for step in range(11)}
_NAME_HEIGHT = 1.35 * 13 / 300  # of a name with room, as a share of a panel
_NAME = 20  # characters of a name beside its line
_DUST = 1e-12  # a difference that comes from rounding alone
_DISCOUNTS: dict[str | float, str] = {
    "log2": "1/log2(rank + 1)",
    "clipped": "1/log2(max(rank, 2))",
    "hit": "1 if relevant",
    "norm": "1/√n, n items in the list",
    "inverse": "1/n, n items in the list",
}


class Call(NamedTuple):
    """What a chart is drawn of; the first of ``groups`` is the column of the systems."""

    frame: pl.LazyFrame
    truth: Truth | None
    groups: list[str]
    options: Options | Columns

    def compute(self, verb: Callable[..., Any], *args: Any, **options: Any) -> pl.DataFrame:
        """Compute the numbers of a verb."""
        options |= {"truth": self.truth, "by": self.groups, **self.options}
        numbers: pl.LazyFrame = verb(self.frame, *args, **options)
        return numbers.collect()

    def values(
        self, metrics: Sequence[Metric], *, per_user: bool = False, cluster: str | None = None
    ) -> Values:
        options = cast("Options", self.options)
        settings = keywords.read_options(options, cluster=cluster, count_missed=True)
        return evaluation.user_values(self._question(metrics, settings, per_user=per_user))

    def requested(self, metrics: Sequence[Metric]) -> list[RequestedMetric]:
        """Read the metrics, or columns of a table of values."""
        return self._question(
            metrics, keywords.read_options(cast("Options", self.options))
        ).requested

    def means(self, metrics: Sequence[Metric]) -> pl.DataFrame:
        """Compute the frame of ``evaluate``, also of a table of values."""
        names = self.frame.collect_schema().names()
        groups, options = self.groups, self.options
        if self.truth is not None or ready_values.has_lists(names, groups, options, metrics):
            return self.compute(evaluation.evaluate, *metrics)
        means = summaries.description_of(self.values(metrics)).with_columns(summaries.SELECTED)
        return means.collect().pivot("metric", index=[*self.groups, "users"], values="mean")

    def _question(
        self, metrics: Sequence[Metric], settings: Settings, *, per_user: bool = False
    ) -> Question:
        return ready_values.ask(
            self.frame, metrics, self.truth, self.groups, settings, per_user=per_user
        )


def read_call(
    frame: Runs[Frame],
    truth: Truth | None,
    by: str | Sequence[str],
    options: Options,
    compares: str | None = None,
) -> Call:
    check_call()
    table, groups, options = run_dicts.as_frame(frame, by, options, compares=compares)
    kind = "judged table" if truth is None else "run"
    table = readers.with_items(table, truth, groups, options)
    return Call(adapters.to_lazy(table, kind), truth, groups, options)


def check_call() -> None:
    """Check that Altair is installed."""
    if find_spec("altair") is None:
        msg = "charts need altair: pip install 'rankframe[plot]'"
        raise ImportError(msg)


def panel_of(name: str) -> pl.Expr:
    """Name a panel after its metric and its segment."""
    alone = pl.col("segment") == ""
    both = pl.format("{} · {}", name, "segment")
    return pl.when(alone).then(pl.col(name)).otherwise(both).alias("panel")


def texts(column: pl.Series) -> list[str]:
    return column.unique(maintain_order=True).to_list()


def as_text(cutoffs: Sequence[int]) -> str:
    """Write cut-offs for a title: a range or a long list by its ends, others in full."""
    first, last = cutoffs[0], cutoffs[-1]
    if 2 < len(cutoffs) == last - first + 1 or len(cutoffs) > 8:
        return f"{first} to {last}"
    return ", ".join(map(str, cutoffs))


def requested_at(cuts: pl.DataFrame) -> list[RequestedMetric]:
    """Read the labels of metrics at cut-offs."""
    return labels.parse_metrics(cuts["label"].to_list(), per_user=False)


def limits_of(requested: Sequence[RequestedMetric]) -> dict[str, tuple[float, float]]:
    """Return the declared range of each metric; a sum or an own expression has none."""
    limits: dict[str, tuple[float, float]] = {}
    for metric in requested:
        is_sum = metric.over_users.aggregate == "sum"
        limits[metric.name] = (-inf, inf) if is_sum else metric.traits[1:]
        call = metric.call
        if call is not None and call.entry.plain == "coverage" and not metric.option("count"):
            limits[metric.name] = (0, 1)  # its declared range is that of counts
    return limits


def within(limits: tuple[float, float], values: pl.Series) -> tuple[float, float]:
    """Return the limits, without one that a value exceeds: a declared range may be wrong."""
    low, high = bounds(values.drop_nulls()) if values.count() else (0.0, 0.0)
    least, most = limits
    return (least if least <= low else -inf, most if high <= most + 1e-9 else inf)


def shared_limits(requested: Sequence[RequestedMetric], values: pl.Series) -> tuple[float, float]:
    """Return the declared range of metrics on one axis, as far as it holds."""
    lows, highs = zip(*limits_of(requested).values(), strict=True)
    return within((min(lows), max(highs)), values)


def round_ends(low: float, high: float, limits: tuple[float, float]) -> tuple[float, float]:
    """Return round ends of an axis that do not exceed the range of a metric."""
    if not high > low:
        low, high = low - 0.05 * (abs(low) or 1), high + 0.05 * (abs(high) or 1)
    step = round_step((high - low) / 8)
    least, most = floor(low / step + 1e-9) * step, ceil(high / step - 1e-9) * step
    return round(max(least, limits[0]), 12), round(min(most, limits[1]), 12)


def averages_of(requested: Sequence[RequestedMetric]) -> str:
    """Return whether metrics are means over users, sums, or some of both."""
    kinds = {metric.over_users.aggregate for metric in requested}
    return "Means and sums" if len(kinds) > 1 else "Sums" if kinds == {"sum"} else "Means"


def number_of(values: pl.DataFrame, name: str) -> pl.Expr:
    dtype = values.schema[name]
    if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)):
        msg = f"metric {name!r} is {dtype} per user: charts need numbers"
        raise ValueError(msg)
    return pl.col(name).cast(pl.Float64)


def histograms(values: pl.DataFrame, bins: int) -> pl.DataFrame:
    """Count users at exactly 0, then the others in bins with round bounds; the mean comes first."""
    nonzero = values.filter(pl.col("value") != 0)
    least, greatest = bounds(nonzero["value"]) if len(nonzero) else (0.0, 0.0)
    step = round_step((greatest - least) / bins if greatest > least else 0.05)
    digits = max(0, -floor(log10(step)))
    # a value on a bound, up to rounding, belongs to the bin above; the greatest to the bin below
    place = (pl.col("value") / step + 1e-9).floor()
    last = ceil(greatest / step - 1e-9) - 1
    place = place.clip(upper_bound=last) if greatest > least else place
    place = pl.when(pl.col("value") != 0).then(place).alias("place")
    first = pl.int_range(pl.len()) == 0
    counted = [
        rows.group_by("system", "segment", place)
        .agg(pl.len().alias("users"))
        .sort("place", nulls_last=False)
        .select(
            *("system", "segment"),
            (pl.col("place") * step).round(digits).fill_null(0.0).alias("low"),
            ((pl.col("place") + 1) * step).round(digits).fill_null(0.0).alias("high"),
            "users",
            (pl.col("users") / len(rows)).alias("share"),
            pl.when(first).then(rows["value"].mean()).alias("mean"),
        )
        for rows in values.partition_by("system", "segment", maintain_order=True)
    ]
    return pl.concat(counted)


def strips(values: pl.DataFrame) -> pl.DataFrame:
    """Describe each system's users: the share of exact zeros, and quantiles of the others."""
    value = pl.col("value")
    nonzero = value.filter(value != 0)
    names = {"low": 0.05, "lower quarter": 0.25, "median": 0.5, "upper quarter": 0.75, "high": 0.95}
    quantiles = [nonzero.quantile(q, "linear").alias(name) for name, q in names.items()]
    return values.group_by("system", "segment", maintain_order=True).agg(
        pl.len().alias("users"),
        (value == 0).mean().alias("zeros"),
        *quantiles,
        value.mean().alias("mean"),
    )


def best_first(table: pl.DataFrame, value: str, *, higher_is_better: bool | None) -> list[str]:
    """Order many systems by a value, best first; a few keep the order of their type."""
    systems = texts(table["system"])
    if len(systems) <= MOST_COLORED:
        return systems
    return by_mean(table, value, higher_is_better=higher_is_better)


def by_mean(table: pl.DataFrame, value: str, *, higher_is_better: bool | None) -> list[str]:
    means = table.group_by("system", maintain_order=True).agg(pl.col(value).mean())
    return _by_value(means, value, higher_is_better=higher_is_better)["system"].to_list()


def _by_value(table: pl.DataFrame, value: str, *, higher_is_better: bool | None) -> pl.DataFrame:
    down = higher_is_better is not False
    return table.sort(value, descending=down, nulls_last=True, maintain_order=True)


def best_last(table: pl.DataFrame, systems: Sequence[str]) -> pl.DataFrame:
    """Sort rows so that the best systems are drawn on top."""
    places = {name: place for place, name in enumerate(reversed(systems))}
    return table.sort(pl.col("system").replace_strict(places), maintain_order=True)


def with_names(
    table: pl.DataFrame, best: Sequence[str], most: float, *, bands: bool
) -> pl.DataFrame:
    """Add names at the line ends of the best systems, apart and at most at ``most``.

    With ``bands``, the axis has room for the intervals, too.
    """
    ends = pl.col("k") == pl.col("k").max()
    panels: list[pl.DataFrame] = []
    for rows in table.partition_by("panel", maintain_order=True):
        names = ("mean", "ci_low", "ci_high") if bands else ("mean",)
        drawn = pl.concat([rows[name].alias("mean") for name in names])
        low, high = bounds(drawn.drop_nulls()) if drawn.count() else (0.0, 1.0)
        rows_with_names = rows.filter(ends & pl.col("system").is_in(best)).drop_nulls("mean")
        ends_at = dict(rows_with_names.select("system", "mean").rows())
        places = _apart(ends_at, _NAME_HEIGHT * (high - low), most)
        panels.append(_placed(rows, ends, places))
    return pl.concat(panels)


def path_names(table: pl.DataFrame, best: Sequence[str], room: float) -> pl.DataFrame:
    """Add the first and the last cut-off of one system each, and the names of the best of many."""
    first, last = bounds(table["k"])
    begin = table.filter(k=int(first)).sort("precision", descending=True, nulls_last=True)
    end = table.filter(k=int(last)).sort("precision", nulls_last=True)
    corners = {(begin["system"][0], int(first)): True, (end["system"][0], int(last)): False}
    keys = list(zip(table["system"], table["k"], strict=True))
    table = table.with_columns(
        pl.Series("at", [f"k={key[1]}" if key in corners else None for key in keys], pl.String),
        pl.Series("above", [corners.get(key) for key in keys], pl.Boolean),
    )
    ends = pl.col("k") == int(last)
    rows = table.filter(ends & pl.col("system").is_in(best)).drop_nulls("precision")
    places = _apart(dict(rows.select("system", "precision").rows()), room)
    return _placed(table, ends, places)


def _apart(values: Mapping[str, float], room: float, most: float = inf) -> dict[str, float]:
    """Move places apart, up and down equally, until names do not overlap, at most to ``most``."""
    order = sorted(values, key=lambda name: values[name])
    places = [values[name] for name in order]
    for _ in range(20):
        for low in range(len(places) - 1):
            lacking = room - (places[low + 1] - places[low])
            if lacking > 0:
                places[low] -= lacking / 2
                places[low + 1] += lacking / 2
    for number in range(len(places) - 1, -1, -1):
        places[number] = min(places[number], most)
        most = places[number] - room
    return dict(zip(order, places, strict=True))


def _placed(rows: pl.DataFrame, ends: pl.Expr, places: Mapping[str, float]) -> pl.DataFrame:
    name_at = pl.col("system").replace_strict(places, default=None, return_dtype=pl.Float64)
    at_end = pl.when(ends & name_at.is_not_null())
    return rows.with_columns(
        at_end.then(pl.col("system").map_elements(_shortened, pl.String)).alias("name"),
        at_end.then(name_at).alias("name_at"),
    )


def _shortened(name: str) -> str:
    """Cut the middle of a long name: names often differ at their ends."""
    return name if len(name) <= _NAME else f"{name[: _NAME // 2]}…{name[1 - _NAME // 2 :]}"


def leader_of(table: pl.DataFrame, requested: Sequence[RequestedMetric]) -> str:
    """Name the system that is the best at every cut-off and in every panel, if there is one."""
    directions = {metric.traits.higher_is_better for metric in requested}
    means = table.drop_nulls("mean")
    if len(directions) > 1 or None in directions:
        return ""
    if min(means["system"].n_unique(), means["k"].n_unique()) < 2:
        return ""
    sign = 1 if directions == {True} else -1
    keys = [name for name in ("panel", "metric", "k") if name in means.columns]
    best = pl.col("mean") * sign == (pl.col("mean") * sign).max().over(keys)
    leading = means.filter(best)
    if leading["system"].n_unique() > 1 or leading.height < means.select(keys).n_unique():
        return ""
    return f": {sentences.one_line(leading['system'][0])} leads at every k"


def differences(
    compared: pl.DataFrame,
    groups: Sequence[str],
    margins: Mapping[str, Bound],
) -> pl.DataFrame:
    """Name the pairs, panels and verdicts of a comparison, and the margin if there is one."""
    system, baseline = (sentences.text_of(compared, [name]) for name in (groups[0], "baseline"))
    names = map(sentences.isolated_names, (system, baseline))
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
        pl.format("{} − {}", *names).alias("pair"),
        pl.col("verdict").fill_null("undecided"),
        margin.alias("margin"),
        baseline.alias("baseline"),
        pl.exclude(*groups, "baseline", "verdict"),
        axis_low=pl.min_horizontal(drawn).min().over("metric"),
        axis_high=pl.max_horizontal(drawn).max().over("metric"),
    ).select(panel_of("metric"), pl.exclude("segment", "metric", *left_out))


def pair_order(table: pl.DataFrame, *, higher_is_better: bool | None) -> list[str]:
    """Order pairs by their difference in the first panel, best first."""
    first = table.filter(panel=table["panel"][0])
    order = _by_value(first, "difference", higher_is_better=higher_is_better)
    return texts(pl.concat([order["pair"], table["pair"]]))


def system_order(table: pl.DataFrame, *, higher_is_better: bool | None) -> list[str]:
    """Order systems by their mean difference from all others in the first panel, best first."""
    first = table.filter(panel=table["panel"][0]).select("system", "baseline", "difference")
    turned = first.select(pl.col("baseline").alias("system"), -pl.col("difference"))
    both = pl.concat([first.drop("baseline"), turned])
    order = pl.Series(by_mean(both, "difference", higher_is_better=higher_is_better))
    return texts(pl.concat([order, table["system"], table["baseline"]]))


def depths_of(confidence: float) -> list[str]:
    """Return the names of the grades of adjusted p, smallest first."""
    alpha = keywords.alpha_of(confidence)
    return [*(f"< {alpha / part:.1g}" for part in (50, 5)), f"< {alpha:.2g}", "not below"]


def as_triangle(table: pl.DataFrame, systems: Sequence[str], confidence: float) -> pl.DataFrame:
    """Turn pairs so that the better system of the first panel is the row, and grade their p."""
    place = {name: number for number, name in enumerate(systems)}
    system, baseline = pl.col("system"), pl.col("baseline")
    row, column = (side.replace_strict(place, return_dtype=pl.Int64) for side in (system, baseline))
    turned = pl.when(row > column)
    # "not worse" has no counterpart for the other system
    words = {"better": "worse", "worse": "better", "higher": "lower", "lower": "higher"}
    words |= {"not worse": "undecided", "worse, by less than the margin": "better"}
    values = {
        "system": baseline,
        "baseline": system,
        "verdict": pl.col("verdict").replace(words),
        "difference": -pl.col("difference"),
        "ci_low": -pl.col("ci_high"),
        "ci_high": -pl.col("ci_low"),
        "effect_size": -pl.col("effect_size"),
        "p_not_worse": pl.lit(None, pl.Float64),
        "relative": pl.when(pl.col("relative") > -1).then(_inverted("relative")),
        "relative_low": pl.when(pl.col("relative_low") > -1).then(_inverted("relative_high")),
        "relative_high": pl.when(pl.col("relative_low") > -1).then(_inverted("relative_low")),
    }
    sides = {"higher": "lower", "mean": "baseline_mean", "num_missed": "baseline_num_missed"}
    if "baseline_users" in table.columns:
        sides["users"] = "baseline_users"
    sides |= {twin: name for name, twin in sides.items()}
    values |= {name: pl.col(twin) for name, twin in sides.items()}
    table = table.with_columns(
        turned.then(value).otherwise(pl.col(name)).alias(name)
        for name, value in values.items()
        if name in table.columns
    )
    smallest, small, below, above = depths_of(confidence)
    alpha, p = keywords.alpha_of(confidence), pl.col("p_adjusted")
    depth = pl.when(p < alpha / 50).then(pl.lit(smallest)).when(p < alpha / 5).then(pl.lit(small))
    graded = depth.when(p < alpha).then(pl.lit(below)).otherwise(pl.lit(above))
    names = (sentences.isolated_names(pl.col(name)) for name in ("system", "baseline"))
    return table.with_columns(pl.format("{} − {}", *names).alias("pair"), graded.alias("depth"))


def _inverted(relative: str) -> pl.Expr:
    """Take the difference from the other system: 1 / (1 + e) − 1."""
    return -pl.col(relative) / (1 + pl.col(relative))


def means_by_segment(
    means: pl.DataFrame,
    groups: Sequence[str],
    names: Sequence[str],
    most: int,
    lower_is_better: Sequence[str] = (),
) -> tuple[pl.DataFrame, list[str]]:
    """Stack the means of metrics in the segments with most users, and list all segments.

    ``share`` is value ÷ greatest, or least ÷ value where lower is better.
    """
    wide = means.select(
        sentences.text_of(means, groups[:-1]).alias("panel"),
        sentences.text_of(means, groups[-1:]).alias("segment"),
        "users",
        pl.struct(number_of(means, name).alias(name) for name in names).alias("means"),
    )
    segments = wide.group_by("segment", maintain_order=True).agg(pl.col("users").max())
    largest = segments.top_k(most, by="users").select("segment")
    wide = wide.join(largest, on="segment", how="semi", maintain_order="left")
    table = pl.concat(
        wide.select(
            *("panel", "segment", "users"),
            pl.lit(name).alias("metric"),
            pl.col("means").struct.field(name).alias("mean"),
        )
        for name in names
    )
    greatest, least = (pl.col("mean").max().over("metric"), pl.col("mean").min().over("metric"))
    of_least = (
        pl.when(pl.col("mean") == least).then(1.0).when(least >= 0).then(least / pl.col("mean"))
    )
    of_greatest = pl.when(greatest > 0).then(pl.col("mean") / greatest)
    whole = (pl.col("mean") == pl.col("mean").round()).all().over("metric")
    count = pl.col("mean").cast(pl.Int64).cast(pl.String)
    digits = pl.Series([None if mean is None else f"{mean:.3f}" for mean in table["mean"]])
    table = table.with_columns(
        share=pl.when(pl.col("metric").is_in(list(lower_is_better)))
        .then(of_least)
        .otherwise(of_greatest),
        text=pl.when(whole).then(count).otherwise(digits),
    )
    in_order = means.sort(groups[-1], maintain_order=True)
    return table, texts(in_order.select(sentences.text_of(means, groups[-1:])).to_series())


def bounds(values: pl.Series) -> tuple[float, float]:
    """Return the least and the greatest of numbers."""
    ends = values.to_frame("value").select(low=pl.min("value"), high=pl.max("value"))
    return ends.cast(pl.Float64).row(0)


def round_step(least: float) -> float:
    """Return the least multiple of a power of ten by 1, 2 or 5 that is ≥ ``least``."""
    power = 10.0 ** floor(log10(least))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= least * (1 - 1e-9))


def margins(rows: pl.DataFrame, confidence: float) -> pl.Expr:
    """Compute half of Student's intervals from spreads and counts."""
    summaries.check_packages()
    import numpy as np
    from scipy import stats

    freedom = rows["users"].to_numpy() - 1.0
    reach = np.asarray(stats.t.ppf((1 + confidence) / 2, freedom))  # pyright: ignore
    return (
        pl.lit(pl.Series(reach).fill_nan(None))
        * pl.col("std").fill_nan(None)
        / pl.col("users").sqrt()
    )


def shares_by_panel(
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
    kept = order.select("value").head(MOST_VALUES)
    table = kept.join(rows, on="value", maintain_order="left_right").select(
        panel_of("system"), "value", pl.exclude("segment", "value")
    )
    if len(order) == len(kept):
        return table, ""
    most = f"{ceil(1000 * (order['far'][MOST_VALUES] or 0)) / 10:.1f}"
    others = f"differ by at most {most} points" if is_far else f"have at most {most}% each"
    return table, f"{MOST_VALUES} of {len(order):,} values: the others {others}"


def both_ways(summary: pl.DataFrame, groups: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Put the numbers of two metrics side by side, one row per system that has both."""
    ends = {"mean": "", "ci_low": "_low", "ci_high": "_high"}
    rows = summary.select(
        *sentences.system_and_segment(summary, groups),
        "metric",
        "users",
        *(pl.col(end) for end in ends),
    ).select(pl.col("segment").alias("panel"), pl.exclude("segment"))
    keys = ["panel", "system", "users"]
    x, y = (
        rows.filter(metric=name).select(
            *keys, *(pl.col(end).alias(axis + suffix) for end, suffix in ends.items())
        )
        for axis, name in zip("xy", names, strict=True)
    )
    shared = ["panel", "system"]
    both = x.join(y.drop("users"), on=shared, nulls_equal=True, maintain_order="left")
    return both.drop_nulls(["x", "y"])


def padded(table: pl.DataFrame, axis: str, limits: tuple[float, float]) -> tuple[float, float]:
    """Return the bounds of an axis, with room beside the outermost intervals within a range."""
    columns = pl.concat([table[axis], table[f"{axis}_low"], table[f"{axis}_high"]])
    least, greatest = bounds(columns)
    room = 0.08 * (greatest - least) or 0.1 * abs(least) or 0.1
    low, high = within(limits, table[axis])
    return max(least - room, low), min(greatest + room, high)


def lorenz_points(rows: pl.DataFrame) -> pl.DataFrame:
    """Cumulate exposure over values, least exposed first, and keep enough points of each line.

    ``above`` is the number of values that are exposed more; ``half`` how many have half of it all.
    """
    keys = ["panel", "system"]
    exposed = rows.filter(pl.col("share").is_not_null())
    lines = exposed.select(keys).n_unique()
    steps = max(10, min(100, MOST_ROWS // (2 * lines) - 2))
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


def counted_lists(call: Call, exclude: Frame | None, discount: str | float) -> str:
    """Write how many users have a list, and the discount of its ranks."""
    columns: Any = call.options
    ids = column_roles.with_ids(columns, call.groups, {"run": call.frame, "truth": call.truth})
    user = pl.col(ids.get("user", "user")).n_unique().alias("__rankframe_users")
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


def greatest(table: pl.DataFrame, *names: str) -> float:
    return float(table.select(pl.max_horizontal(pl.col(*names).abs().max())).item())


def mean_of(options: Mapping[str, Any]) -> str:
    return f"Mean{weighted_by(options)}"


def weighted_by(options: Mapping[str, Any]) -> str:
    weights = options.get("weights")
    return "" if weights is None else f" weighted by {sentences.one_line(weights)}"


def missed_of_pairs(compared: pl.DataFrame, groups: Sequence[str]) -> pl.DataFrame:
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


def missed(means: pl.DataFrame, groups: Sequence[str], users: str = "users") -> list[str]:
    """Write which systems have no list for how many of their users."""
    return sentences.missed_lines(
        means.select(*sentences.system_and_segment(means, groups), users, "num_missed")
    )


def selectable(by: str, *, interval: bool) -> str:
    """Explain the colors of many systems, and the interactions of a page."""
    bands = ", hover to show a band" if interval else ""
    return f"colored: the best {BEST} by {by}; click the legend to select{bands}"


def check_values(values: pl.Series, name: str) -> None:
    if values.null_count() == len(values):
        msg = f"metric {name!r}: no user has a value to draw"
        raise RankingDataError(msg)


def check_exposed(shares: pl.Series, name: str) -> None:
    if shares.null_count() == len(shares):
        msg = f"no list exposes a value of {name!r}: no share to draw"
        raise RankingDataError(msg)


def check_panels(panels: Sequence[str], what: str = "segments") -> None:
    if len(panels) > MOST_PANELS:
        msg = f"{len(panels)} {what} are too many for one chart: filter the frame"
        raise ValueError(msg)


def check_rows(table: pl.DataFrame, what: str, remedy: str) -> None:
    if len(table) > MOST_ROWS:
        msg = f"{len(table):,} {what} are too many for one chart: choose {remedy}"
        raise ValueError(msg)
