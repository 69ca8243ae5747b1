"""The numbers of a part as rows of a small frame, and means from the rows of all parts.

A small frame has one row per number: the group of ``by`` as JSON, the kind of number (``entry``),
what it belongs to (``of``), and the number. No value is null and no type depends on the data, so
that frames survive every file format and can be concatenated.

The exact sum of a metric is four numbers: ``units0`` … ``units3`` are its digits in base 2^32, so
they add up without rounding for two million parts. Sums of weighted values are divided by a power
of two, whose exponent is in the name of the entry: ``units0@12``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from rankframe._evaluation import (
    evaluation,
    group_means,
    sums,
    system_metrics,
    user_choice,
    user_columns,
)
from rankframe._evaluation.values import Values, users_of
from rankframe._request import labels, share_names
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question, Totals
from rankframe._request.share_names import Distribution
from rankframe._vocabulary import share_rows
from rankframe.parts import _groups, _partitions
from rankframe.parts._groups import GROUP

SCHEMA = pl.Schema(
    {"group": pl.String(), "entry": pl.String(), "of": pl.String(), "number": pl.Float64()}
)
RECIPE, SEEN, PART = "recipe", "seen", "part"
_USERS, _COUNTED, _COUNT = "users", "counted", "count"
_EXPONENT, _OF_WEIGHTS = "exponent", "weight "
_DIGITS, _BASE = 4, 2**32
_TYPES = {_COUNT: pl.Int64(), "units": pl.Int128()}
_ENTRY = r"^((?:weight )?(?:sum|size|units)|count)(\d?)(?:@(-?\d+))?$"
#: the same in all parts, so it is not summed: the catalogue, and what users had before
_SAME = (";catalogue)", ";uniform)", ";history)")
#: The metrics of all lists, by the shares that they reduce.
Kinds: TypeAlias = Mapping[Distribution, Sequence[RequestedMetric]]


class RequestedMean(NamedTuple):
    """A requested mean over users, and its type."""

    name: str
    aggregate: Literal["mean", "sum"]
    epsilon: float | None  # of a geometric mean
    dtype: pl.DataType


class Request(NamedTuple):
    """What is requested from the sums of all parts."""

    types: dict[str, pl.DataType]  # of the columns of by
    means: list[RequestedMean]
    columns: list[str]  # in the order of the call
    counted: list[str]  # the metrics whose users are counted
    weights: str | None
    undefined: float | None

    @property
    def by(self) -> list[str]:
        return list(self.types)


def request_of(plan: Values) -> Request:
    """Read from a plan what the sums of parts are for."""
    types = group_means.types_of_means(plan._replace(of_lists=None))
    assert types is not None
    means = [
        RequestedMean(name, over_users.aggregate, over_users.epsilon, types[name])
        for name, over_users in ((metric.name, metric.over_users) for metric in plan.requested)
    ]
    undefined = None if plan.of_lists is None else plan.settings.undefined
    groups = {name: types[name] for name in plan.by}
    return Request(groups, means, plan.columns, sorted(plan.counted), plan.weights, undefined)


# ------------------------------------------------------------------ numbers of a part


def numbers_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Add up the metrics of some users, for ``means_of_numbers`` to add up all."""
    return numbers_of_part(evaluation.plan_means(question.of(frame, truth, totals)))


def numbers_of_part(plan: Values, units: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Plan the numbers of a part; ``units`` are those of ``_partitions.units_of``, if at hand."""
    aggregates = [group_means.counted_users(name) for name in sorted(plan.counted)]
    types = {name: plan.types[name] for name in plan.by}
    types |= dict.fromkeys([_USERS, *map(users_of, sorted(plan.counted))], pl.Int64())
    for metric in plan.requested:
        for name, number in _summed(plan, metric).items():
            column = _column(name, metric.name)
            aggregates.append(number.alias(column))
            types[column] = _TYPES.get(name.removeprefix(_OF_WEIGHTS), pl.Float64())
    rows = group_means.checked_sums(plan, aggregates, types)
    seen = _partitions.seen_of(plan.source.tables.both, units)
    frames = [
        rows.map_batches(partial(_rows_of_sums, plan=plan), schema=SCHEMA),
        seen.select(group=pl.lit(""), entry=pl.lit(SEEN), of="of", number="number"),
    ]
    if plan.of_lists is not None:
        groups = user_choice.groups_of(plan.source, plan.by)
        for kind in plan.of_lists.kinds():
            write = partial(_rows_of_values, kind=kind, by=plan.by)
            frames.append(plan.of_lists.additive(kind, groups).map_batches(write, schema=SCHEMA))
    return pl.concat(frames)


def _column(name: str, metric: str) -> str:
    return f"{labels.INNER}{name} {metric}"


def _summed(plan: Values, metric: RequestedMetric) -> dict[str, pl.Expr]:
    """Add up the values of a metric."""
    values = metric.over_users.transform(pl.col(metric.name))
    if isinstance(plan.types[metric.name], pl.Duration):
        values = values.cast(pl.Int64)
    values = values.cast(pl.Float64)
    # a sum over no users has a count of 1, since without groups it is 0
    of_sum = metric.over_users.aggregate == "sum"
    numbers = {_COUNT: pl.lit(1, pl.Int64) if of_sum else values.count().cast(pl.Int64)}
    if plan.weights is not None:
        weights = pl.when(values.is_not_null()).then(user_columns.WEIGHT)
        numbers[_EXPONENT] = sums.exponent(weights)
        shares = sums.scaled(weights, numbers[_EXPONENT])
        values = values * shares
        of_weights = sums.sums_of_part(shares)
        numbers |= {f"{_OF_WEIGHTS}{name}": number for name, number in of_weights.items()}
    return numbers | sums.sums_of_part(values)


def _rows_of_sums(rows: pl.DataFrame, plan: Values) -> pl.DataFrame:
    """Write the sums of a part, one row per group, as rows of a small frame.

    With five metrics, lists of Python take 0.3 ms, a frame per number 7.
    """
    groups = _groups.with_group(rows, plan.by)[GROUP].to_list()
    numbers = rows.to_dict(as_series=False)
    plain = [""] * len(groups)
    written = [(_USERS, "", plain, numbers[_USERS])]
    written += [(_COUNTED, n, plain, numbers[users_of(n)]) for n in sorted(plan.counted)]
    for name in (metric.name for metric in plan.requested):
        written.append((_COUNT, name, plain, numbers[_column(_COUNT, name)]))
        ends = plain if plan.weights is None else numbers[_column(_EXPONENT, name)]
        for of in ("",) if plan.weights is None else ("", _OF_WEIGHTS):
            for entry in (f"{of}sum", f"{of}size"):
                written.append((entry, name, ends, numbers[_column(entry, name)]))
            units = f"{of}units"
            for place, digits in enumerate(_digits(numbers[_column(units, name)])):
                written.append((f"{units}{place}", name, ends, digits))
    of_entries: dict[str, list[Any]] = {name: [] for name in SCHEMA}
    for entry, of, ends, values in written:
        of_entries["group"] += groups
        of_entries["entry"] += [_with_exponent(entry, end) for end in ends]
        of_entries["of"] += [of] * len(groups)
        # null in a group without users
        of_entries["number"] += [0.0 if value is None else float(value) for value in values]
    return pl.DataFrame(of_entries, SCHEMA).drop_nulls("entry")


def _digits(units: Sequence[int | None]) -> list[list[int]]:
    """Return the digits in base 2^32 of each number; the last one has the sign."""
    numbers = [0 if number is None else number for number in units]
    lower = [[n >> 32 * place & (_BASE - 1) for n in numbers] for place in range(_DIGITS - 1)]
    return [*lower, [number >> 32 * (_DIGITS - 1) for number in numbers]]


def _with_exponent(entry: str, exponent: str | float | None) -> str | None:
    """Write an entry; it is null if no weight is defined."""
    if isinstance(exponent, float):
        return f"{entry}@{exponent:.0f}"
    return None if exponent is None else entry


def _long(rows: pl.DataFrame, entries: Mapping[str, pl.Expr], of: pl.Expr) -> pl.DataFrame:
    """Write columns as rows of a small frame; an entry is null if no value is defined."""
    frames = [
        rows.select(
            pl.col(GROUP).alias("group"),
            entry.alias("entry"),
            of.alias("of"),
            number=pl.col(column).fill_null(0),  # of a group without users
        ).cast(SCHEMA)
        for column, entry in entries.items()
    ]
    return pl.concat(frames).drop_nulls("entry")


def _rows_of_values(rows: pl.DataFrame, kind: Distribution, by: Sequence[str]) -> pl.DataFrame:
    """Write the sums of values, one row per group and value, as rows of a small frame."""
    value = pl.col(share_rows.VALUE)
    if rows.schema[share_rows.VALUE] == pl.Binary:
        value = value.bin.encode("hex")
    rows = _groups.with_group(rows, by)
    names = [name for name in rows.columns if name.startswith(("exposure(", "target("))]
    counts = {name: pl.lit(f"{kind.of}: {name}") for name in rows.columns if _is_count(name)}
    return pl.concat(
        [
            _long(rows, {name: pl.lit(name) for name in names}, value),
            _long(rows.unique(GROUP, keep="any"), counts, pl.lit("")),
        ]
    )


def _is_count(name: str) -> bool:
    return name.startswith(("values(", "lists("))


# ------------------------------------------------------------------ numbers of all parts


def numbers_alone(small: pl.DataFrame) -> pl.DataFrame:
    """Add up the numbers of concatenated small frames, without their recipe."""
    keys = ["group", "entry", "of"]
    return _added_up(small.filter(pl.col("entry") != RECIPE), keys).sort(keys)


def _added_up(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    number, entry = pl.col("number"), pl.col("entry").first()
    same = [entry.str.ends_with(end) for end in _SAME]
    same.append(entry.str.contains(": values(", literal=True))
    # sorted, so that the order of parts does not change the last bits
    total = pl.when(pl.any_horizontal(same)).then(number.max()).otherwise(number.sort().sum())
    return rows.group_by(keys).agg(number=total)


def groups_of_numbers(small: pl.DataFrame, types: Mapping[str, pl.DataType]) -> pl.DataFrame:
    """Read each group of the numbers, and its text in the column ``GROUP``."""
    texts = small.filter(~pl.col("entry").is_in([RECIPE, SEEN, PART]))["group"].unique()
    groups = _groups.groups_from_json([json.loads(text) for text in texts], types)
    return groups.hstack([texts.alias(GROUP)]) if types else texts.to_frame(GROUP)


def means_of_plan(numbers: pl.DataFrame, plan: Values, *, total: bool) -> pl.DataFrame:
    """Return the metrics of a plan, from the numbers of all parts."""
    kinds = {} if plan.of_lists is None else plan.of_lists.kinds()
    return means_of_numbers(numbers, request_of(plan), kinds, total=total)


def means_of_numbers(
    small: pl.DataFrame, request: Request, kinds: Kinds, *, total: bool
) -> pl.DataFrame:
    """Return the metrics of all users, from numbers that are already added up."""
    # other names, since a column of by may be called entry
    names = {f"{labels.INNER}by{place}": name for place, name in enumerate(request.by)}
    keys = list(names)
    groups = groups_of_numbers(small, request.types).rename(
        {name: key for key, name in names.items()}
    )
    rows = small.join(groups, left_on="group", right_on=GROUP)
    frames = [
        _means(rows, request, kinds, by)
        for by in ([keys, group_means.total_by(keys)] if total else [keys])
    ]
    result = pl.concat(frames, how="diagonal").select(*keys, _USERS, *request.columns)
    result = result.rename(dict(zip(keys, request.by, strict=True)))
    group_means.raise_infinite_mean(result.lazy(), request.by)
    return result.sort(request.by, nulls_last=True) if request.by else result


def _means(rows: pl.DataFrame, request: Request, kinds: Kinds, by: Sequence[str]) -> pl.DataFrame:
    """Return one row per group of some columns of ``by``."""
    rows = rows.with_columns(group=pl.lit(""))  # a key also without by
    keys = [*by, "group"]
    number, entry = pl.col("number"), pl.col("entry")
    counts = {_USERS: entry == _USERS}
    for name in request.counted:
        counts[users_of(name)] = (entry == _COUNTED) & (pl.col("of") == name)
    columns = [
        number.filter(chosen).sum().cast(pl.Int64).alias(name) for name, chosen in counts.items()
    ]
    result = rows.group_by(by).agg(columns) if by else rows.select(columns)
    result = result.with_columns(group=pl.lit(""))
    frames = [_means_over_users(rows, request, keys)] if request.means else []
    frames += [
        _numbers_of_lists(rows, kind, metrics, by).with_columns(group=pl.lit(""))
        for kind, metrics in kinds.items()
    ]
    for frame in frames:
        result = result.join(frame, on=keys, how="left", nulls_equal=True)
    if request.undefined is not None:
        of_lists = [metric.name for metrics in kinds.values() for metric in metrics]
        result = result.with_columns(pl.col(of_lists).fill_null(request.undefined))
    return result


def _means_over_users(rows: pl.DataFrame, request: Request, keys: Sequence[str]) -> pl.DataFrame:
    """Return the means over users, one row per group."""
    added_up = _sums(rows, keys)
    mean = sums.mean_of_parts(pl.col(_COUNT))
    if request.weights is not None:
        mean = mean / sums.mean_of_parts(pl.col(_COUNT), _OF_WEIGHTS)
        _check_weights(added_up, request, keys)
    of_sums = [mean.name for mean in request.means if mean.aggregate == "sum"]
    total = pl.when(pl.col(_COUNT) > 0).then(sums.mean_of_parts(pl.lit(1)))
    values = added_up.select(
        *keys, "of", value=pl.when(pl.col("of").is_in(of_sums)).then(total).otherwise(mean)
    )
    names = [mean.name for mean in request.means]
    wide = values.pivot("of", on_columns=names, index=keys, values="value")
    return wide.with_columns(_in_its_type(mean) for mean in request.means)


def _sums(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """Return the sums of each group and metric, one column per kind of number."""
    parts = pl.col("entry").str.extract_groups(_ENTRY)
    parts = parts.struct.rename_fields(["kind", "place", _EXPONENT])
    read = rows.with_columns(parts.alias("entry")).unnest("entry").drop_nulls("kind")
    exponent = pl.col(_EXPONENT).cast(pl.Int64)
    below = (exponent - exponent.max().over(*keys, "of")).fill_null(0)
    place = pl.col("place").cast(pl.Int64, strict=False).fill_null(0)
    number = sums.scaled(pl.col("number"), -below) * pl.lit(float(_BASE)).pow(place)
    kind = pl.col("kind")
    names = [_COUNT, *(f"{of}{name}" for of in ("", _OF_WEIGHTS) for name in sums.NAMES)]
    return (
        read.with_columns(number=number)
        .group_by(*keys, "of")
        .agg(_total(pl.col("number").filter(kind == name), name).alias(name) for name in names)
    )


def _total(numbers: pl.Expr, name: str) -> pl.Expr:
    if name.endswith("units"):
        return numbers.cast(pl.Int128, wrap_numerical=True).sum()
    return numbers.sort().sum()  # sorted, so that the order of parts does not change the last bits


def _check_weights(added_up: pl.DataFrame, request: Request, keys: Sequence[str]) -> None:
    """Check that of the users averaged in each group one has a weight above 0."""
    zero = added_up.filter((pl.col(_COUNT) > 0) & (pl.col(f"{_OF_WEIGHTS}sum") == 0))
    for mean in request.means:
        groups = zero.filter(of=mean.name).select(keys[:-1])
        if request.weights is not None and mean.name in zero["of"]:
            names = dict(zip(keys, request.by, strict=False))
            row = groups.sort(keys[:-1]).head(1).rename(names) if names else None
            user_columns.raise_no_weight(request.weights, mean.name, row)


def _in_its_type(mean: RequestedMean) -> pl.Expr:
    value = pl.col(mean.name)
    if mean.epsilon is not None:
        value = labels.undo_logarithm(value, mean.epsilon)
    if isinstance(mean.dtype, pl.Duration):
        value = value.cast(pl.Int64)
    return value.cast(mean.dtype)


def kinds_of(metric_labels: Mapping[str, str]) -> Kinds:
    """Make the metrics of all lists again, from their names and labels."""
    kinds: dict[Distribution, list[RequestedMetric]] = {}
    for name, label in metric_labels.items():
        metric = labels.parse_metric(label)
        metric = replace(metric, name=name, expr=metric.expr.alias(name))
        kind = metric.distribution
        assert kind is not None
        kinds.setdefault(kind, []).append(metric)
    return kinds


def _numbers_of_lists(
    rows: pl.DataFrame, kind: Distribution, metrics: Sequence[RequestedMetric], by: Sequence[str]
) -> pl.DataFrame:
    """Return the metrics of all lists, one row per group of ``by``."""
    reads = {name for metric in metrics for name in metric.reads}
    entry, head, counts = pl.col("entry"), f"{kind.of};{kind.over};", f"{kind.of}: "
    pairs = rows.filter(
        entry.str.starts_with(f"exposure({head}") | entry.str.starts_with(f"target({head}")
    )
    names = sorted({*pairs["entry"], *share_rows.columns_of_sums(reads)})
    exposed = _wide(
        pairs, [*by, "of"], names or share_names.share_columns(kind, "none", None, None)[:1]
    )
    wanted = sorted({name for name in reads if _is_count(name)} | {system_metrics.LISTS})
    counted = _wide(rows, [*by, "group"], [f"{counts}{name}" for name in wanted])
    counted = counted.drop("group").rename(lambda name: name.removeprefix(counts))
    counted = counted.with_columns(pl.col(wanted).cast(pl.Int64))
    exposed = exposed.rename({"of": share_rows.VALUE})
    return system_metrics.numbers_of_sums(exposed, counted, metrics, by)


def _wide(rows: pl.DataFrame, keys: Sequence[str], entries: Sequence[str]) -> pl.DataFrame:
    """Return one column per entry, 0 where there is none."""
    added_up = _added_up(rows, [*keys, "entry"])
    wide = added_up.pivot("entry", on_columns=entries, index=keys, values="number")
    return wide.with_columns(pl.col(entries).fill_null(0.0))
