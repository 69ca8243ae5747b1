"""The sums of a part as rows of a small frame, and means from the rows of all parts.

Each row is a number of one group (``SCHEMA``): how many values there are, their sum as a float,
Σ |value|, which decides whether the exact sum fits, and this exact sum, in units of 2^-88. Sums of
weighted values are divided by a power of two, whose exponent stands beside them. No value is null
and no type depends on the data, so that frames survive every file format and can be concatenated.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

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
from rankframe.errors import RankingDataError
from rankframe.parts import _groups, _partitions
from rankframe.parts._groups import GROUP

_TEXTS = ("group", "kind", "metric", "value")
SCHEMA = pl.Schema(
    {
        **dict.fromkeys(_TEXTS, pl.String()),
        "count": pl.Int64(),
        "sum": pl.Float64(),
        "size": pl.Float64(),
        "units": pl.Decimal(38, 0),
        "exponent": pl.Int64(),
    }
)
_KEYS = [*_TEXTS, "exponent"]
#: The kinds of rows. Those of a whole part: its call, its key, its groups, counts of its rows.
CALL, PART, GROUPS, SEEN = "call", "part", "groups", "seen"
#: Users of a group, users with a value of a metric, and sums of its values and of their weights.
_USERS, _COUNTED, _MEAN, _WEIGHT = "users", "counted", "mean", "weight"
#: Metrics of all lists: a number per item or value of a column, and numbers of lists and values.
_SHARE, _LISTS = "share", "lists"
_LEAST_EXPONENT = -1022
#: the same in all parts, so it is not summed: the catalogue, and what users had before
_SAME = (";catalogue)", ";uniform)", ";history)")
#: Sums by the kind of their row and their metric.
Entries: TypeAlias = dict[tuple[str, str], dict[str, pl.Expr]]
#: The metrics of all lists, by the shares that they reduce.
Kinds: TypeAlias = Mapping[Distribution, Sequence[RequestedMetric]]
PolarsT = TypeVar("PolarsT", pl.DataFrame, pl.LazyFrame)


class Request(NamedTuple):
    """What is requested from the sums of all parts."""

    by: list[str]
    epsilons: dict[str, float | None]  # of the means over users, which may be geometric
    totals: list[str]  # those of the means that are sums over users
    columns: list[str]  # in the order of the call
    counted: list[str]  # the metrics whose users are counted
    weights: str | None
    undefined: float | None
    types: dict[str, pl.DataType]  # of the means


def request_of(plan: Values) -> Request:
    """Read from a plan what the sums of parts are for."""
    types = group_means.types_of_means(plan._replace(system_metrics=None))
    assert types is not None
    over_users = {metric.name: metric.over_users for metric in plan.requested}
    return Request(
        by=[*plan.by],
        epsilons={name: over.epsilon for name, over in over_users.items()},
        totals=[name for name, over in over_users.items() if over.aggregate == "sum"],
        columns=plan.columns,
        counted=sorted(plan.counted),
        weights=plan.weights,
        undefined=None if plan.system_metrics is None else plan.settings.undefined,
        types={name: types[name] for name in over_users},
    )


# ------------------------------------------------------------------ sums of a part


def numbers_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Add up the metrics of some users, for ``means_of_numbers`` to add up all."""
    return numbers_of_part(evaluation.plan_means(question.of(frame, truth, totals)))


def numbers_of_part(plan: Values, *, counts_users: bool = False) -> pl.LazyFrame:
    """Plan the sums of a part, and counts that show whether whole tables keep the rules."""
    entries: Entries = {(_USERS, ""): {"count": pl.len()}}
    entries |= {(_COUNTED, name): {"count": pl.col(name).count()} for name in sorted(plan.counted)}
    for metric in plan.requested:
        entries |= _sums_of_metric(plan, metric)
    types: dict[str, pl.DataType] = {name: plan.types[name] for name in plan.by}
    types["users"] = pl.Int64()
    aggregates: list[pl.Expr] = []
    for place, numbers in enumerate(entries.values()):
        columns = {
            _column(name, place): (number, sums.TYPES[name]) for name, number in numbers.items()
        }
        aggregates += [number.cast(dtype).alias(name) for name, (number, dtype) in columns.items()]
        types |= {name: dtype for name, (_, dtype) in columns.items()}
    rows = group_means.checked_sums(plan, aggregates, types)
    write = partial(_rows_of_sums, by=plan.by, entries=list(entries))
    seen = _partitions.seen_of(plan.source.tables.both, users=counts_users)
    seen = seen.with_columns(kind=pl.lit(SEEN))
    frames = [rows.map_batches(write, schema=SCHEMA), in_schema(seen)]
    if plan.system_metrics is not None:
        groups = user_choice.groups_of(plan.source, plan.by)
        for kind in plan.system_metrics.kinds():
            write = partial(_rows_of_values, kind=kind, by=plan.by)
            frames.append(
                plan.system_metrics.additive(kind, groups).map_batches(write, schema=SCHEMA)
            )
    return pl.concat(frames)


def _column(name: str, place: int) -> str:
    return f"{labels.PREFIX}{name} {place}"


def _sums_of_metric(plan: Values, metric: RequestedMetric) -> Entries:
    """Add up the values of a metric, and their weights."""
    values = metric.over_users.transform(pl.col(metric.name))
    if isinstance(plan.types[metric.name], pl.Duration):
        values = values.cast(pl.Int64)
    values = values.cast(pl.Float64)
    # a sum over no users has a count of 1, since without groups it is 0
    count = pl.lit(1) if metric.over_users.aggregate == "sum" else values.count()
    if plan.weights is None:
        return {(_MEAN, metric.name): {"count": count, **sums.sums_of_part(values)}}
    weights = pl.when(values.is_not_null()).then(user_columns.WEIGHT)
    shares = sums.scaled(weights, sums.exponent(weights))
    # without a weight, the least exponent leaves that of the other parts
    exponent = sums.exponent(weights).fill_null(_LEAST_EXPONENT)
    more = {"count": count, "exponent": exponent}
    return {
        (_MEAN, metric.name): {**more, **sums.sums_of_part(values * shares)},
        (_WEIGHT, metric.name): {**more, **sums.sums_of_part(shares)},
    }


def _rows_of_sums(
    rows: pl.DataFrame, by: Sequence[str], entries: Sequence[tuple[str, str]]
) -> pl.DataFrame:
    """Write the sums of a part, one row per group and metric, and its groups.

    With five metrics, lists of Python take 0.3 ms, expressions 2.
    """
    groups = rows.select(_groups.key(rows.schema, by).alias(GROUP)).to_series().to_list()
    numbers, zeros = rows.to_dict(as_series=False), [0] * rows.height
    columns: dict[str, list[Any]] = {name: [] for name in ("group", "kind", "metric", *sums.TYPES)}
    for place, (kind, metric) in enumerate(entries):
        columns["group"] += groups
        columns["kind"] += [kind] * rows.height
        columns["metric"] += [metric] * rows.height
        for name in sums.TYPES:
            columns[name] += numbers.get(_column(name, place), zeros)
    long = pl.DataFrame(columns, schema_overrides=sums.TYPES)
    # null in a group without users, whose exponent leaves that of the other parts
    long = long.with_columns(pl.col("exponent").fill_null(_LEAST_EXPONENT)).fill_null(0)
    long = long.with_columns(**sums.exact())
    own = row_of(GROUPS, _groups.as_text(rows.select(by)))
    return pl.concat([in_schema(long), own]) if by else in_schema(long)


def row_of(kind: str, text: str, count: int = 1) -> pl.DataFrame:
    """Write a text of a whole part as the row of a small frame."""
    return in_schema(pl.DataFrame({"kind": kind, "metric": text, "count": count}))


def in_schema(rows: PolarsT) -> PolarsT:
    """Give the rows of a small frame all columns, 0 or empty where they have none."""
    names = rows.collect_schema().names()
    columns: list[pl.Expr] = []
    for name, dtype in SCHEMA.items():
        value = "" if dtype == pl.String else 0
        # null in a group without users
        column = pl.col(name).fill_null(value) if name in names else pl.lit(value).alias(name)
        columns.append(column.cast(dtype))
    return rows.select(columns)


def _rows_of_values(rows: pl.DataFrame, kind: Distribution, by: Sequence[str]) -> pl.DataFrame:
    """Write the sums of values, one row per group and value, as rows of a small frame."""
    value = pl.col(share_rows.VALUE)
    if rows.schema[share_rows.VALUE] == pl.Binary:
        value = value.bin.encode("hex")
    rows = rows.with_columns(_groups.key(rows.schema, by).alias(GROUP))
    of_groups = rows.unique(GROUP, keep="any")
    frames = [
        frame.select(
            group=GROUP, kind=pl.lit(of), metric=pl.lit(name), value=text.cast(pl.String), sum=name
        )
        for frame, of, text, words in (
            (rows, _SHARE, value, ("exposure(", "target(")),
            (of_groups, _LISTS, pl.lit(kind.of), ("lists(", "values(")),
        )
        for name in rows.columns
        if name.startswith(words)
    ]
    return in_schema(pl.concat(frames, how="vertical_relaxed"))


# ------------------------------------------------------------------ sums of all parts


def added(small: pl.DataFrame) -> pl.DataFrame:
    """Add up the sums of concatenated small frames, without their call."""
    numbers, groups = small.filter(~pl.col("kind").is_in([CALL, GROUPS])), groups_of(small)
    keys = [*groups[GROUP], ""]  # of rows of the whole part
    if not numbers["group"].is_in(keys).all():
        msg = "parts: rows 'groups' are missing: recreate the sums with rf.parts.sums"
        raise RankingDataError(msg)
    frames = [in_schema(_added_up(numbers, _KEYS)).sort(_KEYS)]
    if groups.width > 1:
        frames.insert(0, row_of(GROUPS, _groups.as_text(groups.drop(GROUP))))
    return pl.concat(frames)


def rows_wanted(small: pl.DataFrame, request: Request, frames: int) -> pl.DataFrame:
    """List what concatenated small frames do not have as often as they have its group."""
    keys, metrics = ["kind", "metric", "group"], [*request.types]
    pairs = [(_USERS, ""), *((_COUNTED, name) for name in request.counted)]
    kinds = [_MEAN] if request.weights is None else [_MEAN, _WEIGHT]
    pairs += [(kind, name) for kind in kinds for name in metrics]
    wanted = pl.DataFrame(pairs, schema=["kind", "metric"], orient="row")
    groups = pl.DataFrame({"group": "", "frames": frames})
    if request.by:
        tables = [_groups.from_text(text) for text in small.filter(kind=GROUPS)["metric"]]
        if len(tables) != frames:
            numbers = {"frames": frames, "rows": len(tables)}
            return pl.DataFrame({"kind": GROUPS, "metric": "", **numbers})
        own = pl.concat(t.select(group=_groups.key(t.schema, t.columns)) for t in tables)
        groups = own.group_by("group").agg(frames=pl.len().cast(pl.Int64))
    rows = small.group_by(keys).agg(rows=pl.len().cast(pl.Int64))
    wanted = wanted.join(groups, how="cross").join(rows, on=keys, how="left")
    # weighted sums of merged parts have a row per exponent
    of_weights = pl.col("kind").is_in([_MEAN, _WEIGHT]) & (pl.col("rows") > pl.col("frames"))
    several = of_weights if request.weights is not None else pl.lit(value=False)
    wanted = wanted.with_columns(pl.col("rows").fill_null(0))
    wrong = wanted.filter((pl.col("rows") != pl.col("frames")) & ~several)
    return wrong.sort(keys).head(1)


def _added_up(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    kind, metric, total = pl.col("kind").first(), pl.col("metric").first(), pl.col("sum")
    same = [metric.str.ends_with(end) for end in _SAME] + [metric.str.starts_with("values(")]
    is_same = kind.is_in([_SHARE, _LISTS]) & pl.any_horizontal(same)
    # sorted, so that the order of parts does not change the last bits
    size = pl.col("size").sort().sum()
    return rows.group_by(keys).agg(
        pl.col("count").sum(),
        pl.when(is_same).then(total.max()).otherwise(total.sort().sum()).alias("sum"),
        **sums.stored(size, pl.col("units").cast(pl.Int128).sum()),
    )


def groups_of(small: pl.DataFrame) -> pl.DataFrame:
    """Read the groups of concatenated small frames, with their keys in the column ``GROUP``."""
    tables = [_groups.from_text(text) for text in small.filter(kind=GROUPS)["metric"]]
    return _groups.united(tables) if tables else pl.DataFrame({GROUP: [""]})


def means_of_plan(numbers: pl.DataFrame, plan: Values, *, total: bool) -> pl.DataFrame:
    """Return the metrics of a plan, from the sums of all parts."""
    kinds = {} if plan.system_metrics is None else plan.system_metrics.kinds()
    if plan.by and numbers.is_empty():
        types = {name: plan.types[name] for name in plan.by}
        numbers = row_of(GROUPS, _groups.as_text(pl.DataFrame(schema=types)))
    return means_of_numbers(numbers, request_of(plan), kinds, total=total)


def means_of_numbers(
    small: pl.DataFrame, request: Request, kinds: Kinds, *, total: bool
) -> pl.DataFrame:
    """Return the metrics of all users, from sums that are already added up."""
    # other names, since a column of by may be called kind
    names = {f"{labels.PREFIX}by{place}": name for place, name in enumerate(request.by)}
    keys = list(names)
    groups = groups_of(small).rename({name: key for key, name in names.items()})
    numbers = small.filter(~pl.col("kind").is_in([CALL, PART, GROUPS, SEEN]))
    rows = numbers.join(groups, left_on="group", right_on=GROUP)
    frames = [
        _means(rows, request, kinds, by)
        for by in ([keys, group_means.total_by(keys)] if total else [keys])
    ]
    result = pl.concat(frames, how="diagonal").select(*keys, "users", *request.columns)
    result = result.rename(dict(zip(keys, request.by, strict=True)))
    group_means.raise_infinite_mean(result.lazy(), request.by)
    return result.sort(request.by, nulls_last=True) if request.by else result


def _means(rows: pl.DataFrame, request: Request, kinds: Kinds, by: Sequence[str]) -> pl.DataFrame:
    """Return one row per group of some columns of ``by``."""
    rows = rows.with_columns(group=pl.lit(""))  # a key also without by
    keys = [*by, "group"]
    kind, metric, count = pl.col("kind"), pl.col("metric"), pl.col("count")
    counts = {"users": kind == _USERS}
    counts |= {users_of(n): (kind == _COUNTED) & (metric == n) for n in request.counted}
    columns = [count.filter(chosen).sum().alias(name) for name, chosen in counts.items()]
    result = rows.group_by(by).agg(columns) if by else rows.select(columns)
    result = result.with_columns(group=pl.lit(""))
    frames = [_means_over_users(rows, request, keys)] if request.types else []
    frames += [
        _numbers_of_lists(rows, kind, metrics, by).with_columns(group=pl.lit(""))
        for kind, metrics in kinds.items()
    ]
    for frame in frames:
        result = result.join(frame, on=keys, how="left", nulls_equal=True)
    if request.undefined is not None:
        names = [metric.name for metrics in kinds.values() for metric in metrics]
        result = result.with_columns(pl.col(names).fill_null(request.undefined))
    return result


def _means_over_users(rows: pl.DataFrame, request: Request, keys: Sequence[str]) -> pl.DataFrame:
    """Return the means over users, one row per group."""
    top = pl.col("exponent").max().over(*keys, "metric")
    below = top - pl.col("exponent")
    scaled = rows.filter(pl.col("kind").is_in([_MEAN, _WEIGHT])).with_columns(
        sums.scaled(pl.col("sum", "size"), below), sums.shifted(pl.col("units"), below)
    )
    added_up = _added_up(scaled, [*keys, "kind", "metric"])
    of_values, of_weights = (added_up.filter(kind=kind).drop("kind") for kind in (_MEAN, _WEIGHT))
    mean = sums.mean_of_parts(pl.col("count"))
    if request.weights is not None:
        suffix = f"_{_WEIGHT}"
        of_values = of_values.join(
            of_weights, on=[*keys, "metric"], nulls_equal=True, suffix=suffix
        )
        mean = mean / sums.mean_of_parts(pl.col("count"), suffix)
        _check_weights(of_values.filter(pl.col(f"sum{suffix}") == 0), request, keys)
    total = pl.when(pl.col("count") > 0).then(sums.mean_of_parts(pl.lit(1)))
    is_total = pl.col("metric").is_in(request.totals)
    of_values = of_values.with_columns(value=pl.when(is_total).then(total).otherwise(mean))
    wide = of_values.pivot("metric", on_columns=list(request.types), index=keys, values="value")
    return wide.with_columns(
        _in_its_type(name, request.epsilons[name], dtype) for name, dtype in request.types.items()
    )


def _check_weights(zero: pl.DataFrame, request: Request, keys: Sequence[str]) -> None:
    """Check that of the users averaged in each group one has a weight above 0."""
    zero = zero.filter(pl.col("count") > 0)
    for name in request.types:
        groups = zero.filter(metric=name).select(keys[:-1])
        if request.weights is not None and name in zero["metric"]:
            names = dict(zip(keys, request.by, strict=False))
            row = groups.sort(keys[:-1]).head(1).rename(names) if names else None
            user_columns.raise_no_weight(request.weights, name, row)


def _in_its_type(name: str, epsilon: float | None, dtype: pl.DataType) -> pl.Expr:
    value = pl.col(name)
    if epsilon is not None:
        value = labels.undo_logarithm(value, epsilon)
    if isinstance(dtype, pl.Duration):
        value = value.cast(pl.Int64)
    return value.cast(dtype)


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
    column, head = pl.col("metric"), f"{kind.of};{kind.over};"
    own = column.str.starts_with(f"exposure({head}") | column.str.starts_with(f"target({head}")
    pairs = rows.filter(own, kind=_SHARE)
    names = sorted({*pairs["metric"], *share_rows.columns_of_sums(reads)})
    names = names or share_names.share_columns(kind, "none", None, None)[:1]
    exposed = _wide(pairs, [*by, "value"], names).rename({"value": share_rows.VALUE})
    wanted = sorted({n for n in reads if n.startswith(("lists(", "values("))})
    wanted = sorted({*wanted, system_metrics.LISTS})
    is_number = (pl.col("kind") == _LISTS) & (pl.col("value") == kind.of)
    counted = rows.with_columns(metric=pl.when(is_number).then("metric"))  # also of a group without
    counted = _wide(counted, [*by, "group"], wanted).drop("group")
    counted = counted.with_columns(pl.col(wanted).cast(pl.Int64))
    return system_metrics.numbers_of_sums(exposed, counted, metrics, by)


def _wide(rows: pl.DataFrame, keys: Sequence[str], names: Sequence[str]) -> pl.DataFrame:
    """Return one column per metric, 0 where there is none."""
    added_up = _added_up(rows, [*keys, "metric"])
    wide = added_up.pivot("metric", on_columns=names, index=keys, values="sum")
    return wide.with_columns(pl.col(names).fill_null(0.0))
