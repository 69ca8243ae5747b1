"""Small frames of parts: numbers that add up, and the recipe that turns them into metrics.

A small frame has one row per number: the group of ``by`` as JSON, the kind of number (``entry``),
what it belongs to (``of``), and the number. No value is null and no type depends on the data, so
that frames survive every file format and can be concatenated.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe._evaluation import system_metrics, user_choice
from rankframe._evaluation.system_metrics import OfLists
from rankframe._evaluation.values import Values
from rankframe._request import keywords, share_names
from rankframe._request.keywords import Settings, Users
from rankframe._request.labels import label_of, parse_metric
from rankframe._request.share_names import Kind
from rankframe._tables import rules, run_dicts
from rankframe._tables.table import Table
from rankframe._vocabulary import share_rows
from rankframe.errors import RankingDataError
from rankframe.parts import _partitions
from rankframe.parts._partitions import Request, RequestedMean

SCHEMA = pl.Schema(
    {"group": pl.String(), "entry": pl.String(), "of": pl.String(), "number": pl.Float64()}
)
RECIPE, SEEN, PART = "recipe", "seen", "part"
_ENTRIES = {_partitions.SUM: "sum", _partitions.COUNT: "count", _partitions.KNOWN: "known"}
_USERS, _COUNTED, _USERS_OF = "users", "counted", "_users"
#: the same in all parts, so it is not summed: the catalogue, and what users had before
_SAME = (";catalogue)", ";uniform)", ";history)")
_PLAIN = {
    dtype.__name__: dtype
    for dtype in (
        *(pl.Boolean, pl.String, pl.Binary, pl.Categorical, pl.Date, pl.Time, pl.Null),
        *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.Float32, pl.Float64),
        *(pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128),
    )
}


#: What happens to a part that comes twice.
Duplicates: TypeAlias = Literal["error", "last"]


class Recipe(NamedTuple):
    """What the numbers of small frames are, and how they become metrics."""

    asked: Request
    types: dict[str, pl.DataType]  # of the columns of by
    labels: dict[str, str]  # of the metrics of all lists
    grouped: bool  # whether a table beside run and truth has columns of by
    facts: dict[str, Any] | None
    options: dict[str, Any]  # keywords that parts must share


def in_json(recipe: Recipe) -> str:
    request = recipe.asked
    means = [{**mean._asdict(), "dtype": type_in_json(mean.dtype)} for mean in request.means]
    record = {
        **recipe._asdict(),
        "asked": {**request._asdict(), "means": means},
        "types": {name: type_in_json(dtype) for name, dtype in recipe.types.items()},
    }
    return json.dumps(record, ensure_ascii=False)


def from_json(text: str) -> Recipe:
    record: dict[str, Any] = json.loads(text)
    request: dict[str, Any] = record["asked"]
    means: list[dict[str, Any]] = request["means"]
    for mean in means:
        mean["dtype"] = type_from_json(mean["dtype"])
    request["means"] = [RequestedMean(**mean) for mean in means]
    record["asked"] = Request(**request)
    record["types"] = {name: type_from_json(dtype) for name, dtype in record["types"].items()}
    return Recipe(**record)


# ------------------------------------------------------------------ types and groups as JSON


def type_in_json(dtype: pl.DataType) -> Any:
    """Write a type for JSON: its name and its parameters."""
    name = dtype.base_type().__name__
    if isinstance(dtype, pl.Datetime):
        return [name, dtype.time_unit, dtype.time_zone]
    if isinstance(dtype, pl.Duration):
        return [name, dtype.time_unit]
    if isinstance(dtype, pl.Decimal):
        return [name, dtype.precision, dtype.scale]
    if isinstance(dtype, pl.Enum):
        return [name, dtype.categories.to_list()]
    return name


def type_from_json(value: Any) -> pl.DataType:
    if isinstance(value, str):
        return _PLAIN[value]()
    name, *parameters = cast("list[Any]", value)
    parametric: dict[str, Callable[..., pl.DataType]] = {
        "Datetime": pl.Datetime,
        "Duration": pl.Duration,
        "Decimal": pl.Decimal,
        "Enum": pl.Enum,
    }
    return parametric[name](*parameters)


def common_types_of_groups(
    left: Mapping[str, pl.DataType], right: Mapping[str, pl.DataType]
) -> dict[str, pl.DataType]:
    """Return the common type of each column of ``by``, or raise."""
    types: dict[str, pl.DataType] = {}
    for name, dtype in left.items():
        common = run_dicts.common_type(dtype, right[name])
        if common is None or (dtype != right[name] and common.is_float()):
            msg = (
                f"parts, column {name!r}: it is {dtype} in one part and {right[name]} in another: "
                "cast it to one type in all parts"
            )
            raise RankingDataError(msg)
        types[name] = common
    return types


def groups_in_json(groups: pl.DataFrame) -> list[list[Any]]:
    """Write rows of groups as values for JSON."""
    columns = [_values_in_json(column) for column in groups]
    return [list(row) for row in zip(*columns, strict=True)]


def groups_from_json(
    groups: Sequence[Sequence[Any]], types: Mapping[str, pl.DataType]
) -> pl.DataFrame:
    columns = {
        name: _values_from_json([row[place] for row in groups], dtype).alias(name)
        for place, (name, dtype) in enumerate(types.items())
    }
    return pl.DataFrame(columns)


def _values_in_json(values: pl.Series) -> list[Any]:
    dtype = values.dtype
    if isinstance(dtype, pl.Datetime | pl.Duration | pl.Time):
        return values.to_physical().to_list()
    if isinstance(dtype, pl.Date | pl.Categorical | pl.Enum | pl.Decimal):
        return values.cast(pl.String).to_list()
    return (values.bin.encode("hex") if dtype == pl.Binary else values).to_list()


def _values_from_json(values: list[Any], dtype: pl.DataType) -> pl.Series:
    if isinstance(dtype, pl.Datetime | pl.Duration | pl.Time):
        return pl.Series(values, dtype=pl.Int64).cast(dtype)
    if isinstance(dtype, pl.Date):
        return pl.Series(values, dtype=pl.String).str.to_date()
    if isinstance(dtype, pl.Categorical | pl.Enum | pl.Decimal):
        return pl.Series(values, dtype=pl.String).cast(dtype)
    if dtype == pl.Binary:
        return pl.Series(values, dtype=pl.String).str.decode("hex")
    return pl.Series(values, dtype=dtype)


def _with_group(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Put the group of each row into one column, as text."""
    if not by:
        return rows.with_columns(group=pl.lit("[]"))
    groups = rows.select(pl.col(by).alias(f"by{place}") for place, by in enumerate(by)).unique()
    texts = [json.dumps(group, ensure_ascii=False) for group in groups_in_json(groups)]
    lookup = groups.with_columns(pl.Series("group", texts, pl.String))
    return rows.join(lookup, left_on=by, right_on=groups.columns, how="left", nulls_equal=True)


def with_types_of_groups(
    frame: pl.DataFrame | pl.LazyFrame, groups: pl.DataFrame
) -> tuple[pl.DataFrame | pl.LazyFrame, pl.DataFrame]:
    """Cast the columns of ``by`` to types that fit the frame and the groups."""
    schema = frame.collect_schema()
    own = {name: schema[name] for name in groups.columns}
    common = common_types_of_groups(dict(groups.schema), own)
    differ = [pl.col(name).cast(dtype) for name, dtype in common.items() if dtype != own[name]]
    frame = frame.with_columns(differ) if differ else frame  # polars panics at no column
    return frame, groups.cast(pl.Schema(common))


def of_late_groups(
    absent: pl.DataFrame, late: pl.DataFrame, by: Sequence[str], lacking: Sequence[str]
) -> pl.DataFrame:
    """Return, for groups that appear late, the sums of users without a list in them.

    ``absent`` has these sums, grouped by the columns of ``by`` that the truth has.
    """
    texts = absent["group"].unique().to_list()
    kept = [name for name in by if name not in lacking]
    rows: list[tuple[str, str]] = []
    for values in groups_in_json(late):
        for text in texts:
            group = {**dict(zip(lacking, values, strict=True))}
            group |= dict(zip(kept, json.loads(text), strict=True))
            rows.append((text, json.dumps([group[name] for name in by], ensure_ascii=False)))
    pairs = pl.DataFrame(rows, {"group": pl.String, "late": pl.String}, orient="row")
    return absent.join(pairs, on="group").select(pl.col("late").alias("group"), *list(SCHEMA)[1:])


# ------------------------------------------------------------------ numbers of a part


def of_sums(rows: pl.DataFrame, request: Request) -> pl.DataFrame:
    """Write the sums of a part, one row per group, as rows of a small frame."""
    names = {_USERS: (_USERS, "")}
    for place, mean in enumerate(request.means):
        for column, entry in _ENTRIES.items():
            names[f"{column}{place}"] = entry, mean.name
    for name in request.counted:
        names[f"{name}{_USERS_OF}"] = _COUNTED, name
    names = {column: entry for column, entry in names.items() if column in rows.columns}
    rows = rows.with_columns(pl.col([*names]).fill_null(0))  # of a group without users
    return _long(_with_group(rows, request.by), names)


def _long(rows: pl.DataFrame, names: Mapping[str, tuple[str, str]]) -> pl.DataFrame:
    frames = [
        rows.select(
            "group", pl.lit(entry).alias("entry"), pl.lit(of).alias("of"), number=pl.col(column)
        ).cast(SCHEMA)
        for column, (entry, of) in names.items()
    ]
    return pl.concat(frames) if frames else pl.DataFrame(schema=SCHEMA)


def of_values(rows: pl.DataFrame, kind: Kind, by: Sequence[str]) -> pl.DataFrame:
    """Write the sums of values, one row per group and value, as rows of a small frame."""
    of = (
        pl.col(share_rows.VALUE).bin.encode("hex")
        if rows.schema[share_rows.VALUE] == pl.Binary
        else pl.col(share_rows.VALUE)
    )
    rows = _with_group(rows.with_columns(of.cast(pl.String).alias("of")), by)
    frames = [pl.DataFrame(schema=SCHEMA)]
    for name in rows.columns:
        if name.startswith(("exposure(", "target(")):
            number = rows.select("group", pl.lit(name).alias("entry"), "of", number=pl.col(name))
            frames.append(number.cast(SCHEMA))
    counts = {name: (f"{kind.of}: {name}", "") for name in rows.columns if _is_count(name)}
    frames.append(_long(rows.unique("group", keep="any").fill_null(0), counts))
    return pl.concat(frames)


def _is_count(name: str) -> bool:
    return name.startswith(("values(", "lists("))


def of_recipe(recipe: Recipe) -> pl.DataFrame:
    """Write a recipe as the row of a small frame."""
    row = {"group": "", "entry": RECIPE, "of": in_json(recipe), "number": 1.0}
    return pl.DataFrame(row, schema=SCHEMA)


def labels_of(of_lists: OfLists | None) -> dict[str, str]:
    """Return the labels of metrics of all lists, from which they can be made again."""
    labels: dict[str, str] = {}
    for metric in [] if of_lists is None else of_lists.requested:
        label = label_of(metric.expr)
        if label is None:
            msg = (
                f"metric {metric.name!r}: an expression of your own over all lists has no label "
                "for a part to store: register it with rf.register_metric, and request it by its "
                "label"
            )
            raise ValueError(msg)
        labels[metric.name] = label
    return labels


def small_frame(plan: Values, settings: Settings, facts: dict[str, Any] | None) -> pl.LazyFrame:
    """Plan the numbers of a part."""
    request, tables = _partitions.request_of(plan), plan.prepared.tables
    types = {name: plan.prepared.types[name] for name in request.by}
    inputs = plan.prepared.inputs.values()
    grouped = any(name in request.by for table in inputs for name in table.by)
    labels, options = labels_of(plan.of_lists), shared_options(settings)
    recipe = Recipe(request, types, labels, grouped, facts, options)
    seen = _partitions.seen_of(tables).select(
        group=pl.lit(""), entry=pl.lit(SEEN), of="of", number="number"
    )
    frames = [
        of_recipe(recipe).lazy(),
        _partitions.summed(plan).map_batches(partial(of_sums, request=request), schema=SCHEMA),
        seen,
    ]
    if plan.of_lists is not None:
        groups = user_choice.groups_of(plan.prepared, request.by)
        for kind in plan.of_lists.kinds():
            write = partial(of_values, kind=kind, by=request.by)
            frames.append(plan.of_lists.additive(kind, groups).map_batches(write, schema=SCHEMA))
    return pl.concat(frames)


def shared_options(settings: Settings) -> dict[str, str]:
    """Write the options that change values, except tables and columns."""
    plain = Settings()
    names = [f.name for f in fields(Settings) if f.name not in (*keywords.INPUTS, "columns")]
    options = {name: repr(getattr(settings, name)) for name in names}
    options = {name: text for name, text in options.items() if text != repr(getattr(plain, name))}
    return {**options, **dict.fromkeys(sorted(settings.inputs - {"exclude", "other"}), "a table")}


# ------------------------------------------------------------------ parts that come twice


class _Part(NamedTuple):
    """A part in one of several frames: its key, and what tells it from parts without a key."""

    frame: int
    part: str | None
    users: int  # the number of (group, user)
    hash: str


def of_part(tables: Sequence[Table], part: str | None) -> pl.LazyFrame:
    """Write the key of a part and a hash of its groups and users as the row of a small frame."""
    return _partitions.units_of(tables).map_batches(partial(_part_row, part=part), schema=SCHEMA)


def _part_row(units: pl.DataFrame, part: str | None) -> pl.DataFrame:
    """Hash the sorted text of all groups and users: stable in all versions of Polars."""
    untold = pl.selectors.binary().bin.encode("hex"), pl.selectors.duration().cast(pl.Int64)
    texts = units.with_columns(*untold).cast(pl.String)
    rows = texts.select(unit=pl.concat_str(pl.all().fill_null(""), separator="\0")).sort("unit")
    digest = hashlib.blake2b(digest_size=16)
    for some in rows.iter_slices(100_000):
        digest.update(some.write_csv(include_header=False).encode())
    fingerprint = {"part": part, "users": units.height, "hash": digest.hexdigest()}
    row = {
        "group": "",
        "entry": PART,
        "of": json.dumps(fingerprint, ensure_ascii=False),
        "number": 1.0,
    }
    return pl.DataFrame(row, schema=SCHEMA)


def single_parts(small: pl.DataFrame, duplicates: Duplicates) -> pl.DataFrame:
    """Raise if a part comes twice in concatenated frames, or keep the last frame that has it."""
    entry = pl.col("entry")
    recipes, keys = (small.filter(entry == name)["number"].sum() for name in (RECIPE, PART))
    if recipes != keys or not recipes:
        counts = " and ".join(
            f"{number:.0f} row{'' if number == 1 else 's'} {name!r}"
            for name, number in ((RECIPE, recipes), (PART, keys))
        )
        msg = (
            f"parts: {counts}, but each part has one of each: rows are missing, or another version "
            "made them: make them again with rf.parts.sums"
        )
        raise RankingDataError(msg)
    frames = small.with_columns(frame=(entry == RECIPE).cum_sum().cast(pl.Int64) - 1)
    rows = frames.filter(entry == PART)
    parts = [_Part(frame, **json.loads(of)) for frame, of in rows.select("frame", "of").rows()]
    again = dict(_repeated(parts))
    if not again:
        return small
    if duplicates == "error":
        _common(frames.filter(entry == RECIPE)["of"].unique().to_list())  # the greater fault first
        part, other = next(iter(again.items()))
        raise _told_twice(part, other)
    whole = rows["frame"].unique().equals(frames["frame"].unique())
    if not whole or frames.select("frame", "group", "entry", "of").is_duplicated().any():
        msg = (
            "parts: the rows of several frames are mixed, so none of them is the last: pass a "
            "list of the frames, or concatenate them in order"
        )
        raise RankingDataError(msg)
    replaced = {part.frame for part in again}
    for part in parts:
        alone = part.part is None and not part.users  # without users, it adds nothing
        if part.frame in replaced and part not in again and not alone:
            old = next(each for each in again if each.frame == part.frame)
            msg = (
                f"parts: {_named(old)} comes again, but its first sums are merged with those of "
                f"{_named(part)}: keep the last one before you merge"
            )
            raise RankingDataError(msg)
    return frames.filter(~pl.col("frame").is_in(list(replaced))).drop("frame")


def _repeated(parts: Sequence[_Part]) -> Iterator[tuple[_Part, _Part]]:
    """Find the parts that a later frame has, too, each with the later one.

    Two keys decide whether parts are the same; where one has no key, their groups and users do.
    """
    by_key: dict[str, _Part] = {}
    by_hash: dict[str, _Part] = {}
    without_key: dict[str, _Part] = {}
    for part in reversed(parts):
        if part.part is None:
            other = by_hash.get(part.hash)
        else:
            other = by_key.get(part.part) or without_key.get(part.hash)
        if other is not None:
            yield part, other
        if part.part is not None:
            by_key[part.part] = part
        if part.users:  # parts without users are no part twice
            by_hash[part.hash] = part
            if part.part is None:
                without_key[part.hash] = part


def _told_twice(part: _Part, other: _Part) -> RankingDataError:
    if part.part is not None and part.part == other.part:
        return comes_twice(_named(part))
    users = "user" if part.users == 1 else f"{part.users} users"
    same = (
        f": frames {part.frame} and {other.frame} have the same {users} in the same groups: name "
        "parts that differ, such as days, with part= in sums; of a part that was computed again,"
    )
    rows = ". If the rows of users are split, put all rows of a user into one part"
    return comes_twice(_named(part), same, rows)


def comes_twice(part: str, why: str = ":", cure: str = "") -> RankingDataError:
    """Make the error for a part that comes twice."""
    msg = f"parts: {part} comes twice{why} leave one out, or keep the later one with "
    return RankingDataError(f"{msg}duplicates='last'{cure}")


def _named(part: _Part) -> str:
    return "a part without a key" if part.part is None else f"part {part.part!r}"


# ------------------------------------------------------------------ numbers of all parts


def added(small: pl.DataFrame) -> pl.DataFrame:
    """Add up the numbers of concatenated small frames."""
    recipes = small.filter(pl.col("entry") == RECIPE)
    numbers = numbers_alone(small)
    if recipes.is_empty():
        return numbers
    number = pl.lit(recipes["number"].sum(), pl.Float64)
    common = of_recipe(_common(recipes["of"].unique().to_list())).with_columns(number=number)
    return pl.concat([common, numbers])


def numbers_alone(small: pl.DataFrame) -> pl.DataFrame:
    """Add up the numbers, without their recipe."""
    number, same = pl.col("number"), _is_same(pl.col("entry"))
    rows = small.filter(pl.col("entry") != RECIPE).group_by("group", "entry", "of")
    # sorted, so that the order of parts does not change the last bits
    added_up = pl.when(same.first()).then(number.max()).otherwise(number.sort().sum())
    return rows.agg(number=added_up).sort("group", "entry", "of")


def _is_same(entry: pl.Expr) -> pl.Expr:
    ends = [entry.str.ends_with(end) for end in _SAME]
    return pl.any_horizontal(*ends, entry.str.contains(": values(", literal=True))


def raise_if_whole_is_broken(
    small: pl.DataFrame,
    groups: pl.DataFrame,
    users: int | None = None,
    *,
    policy: Users | None = None,
) -> None:
    """Raise if all parts together break a rule that no part alone can break.

    ``groups`` are all groups, ``users`` is the number of users, if known, and ``policy`` the option
    of the call that says which users count.
    """
    rows = small.filter(pl.col("entry") == SEEN)
    seen = dict(zip(rows["of"], rows["number"].cast(pl.Int64), strict=True))
    for name in ("run", "truth"):
        if seen.get(name) == 0:
            msg = f"parts, the {name}: it is empty in every part"
            raise RankingDataError(msg)
    rules.raise_if_counted_ungraded(seen, [of.removeprefix("values: ") for of in seen])
    if users is not None and users != seen["users"]:
        msg = (
            f"parts: they have {seen['users']} users, but the facts have {users}: a part is "
            "missing or duplicated, or a user is in several parts: combine each part once, and "
            "put all rows of a user into one part"
        )
        raise RankingDataError(msg)
    if seen.get("shared") == 0:
        msg = (
            "parts: no user of the run is in the truth of the same part: ids may differ, or run "
            "and truth were split differently: split both tables by user in the same way"
        )
        raise RankingDataError(msg)
    if seen.get("pairs") == 0 and policy != "run":
        msg = (
            "parts: no user of the run is in the truth in the same group: make the values of the "
            "columns of by= the same in both tables, such as days of one time zone"
        )
        raise RankingDataError(msg)
    for of, number in seen.items():
        name = of.removeprefix("several: ")
        if name != of and groups[name].n_unique() > 1:
            _raise_if_diluted(name, number, misses_count=rules.counts_misses(policy))


def _raise_if_diluted(name: str, several: int, *, misses_count: bool) -> None:
    if several == 0:
        if not misses_count:
            return
        msg = (
            f"parts, column {name!r}: no user is in two of its groups, and the truth has no such "
            "column, so each user would count as a miss in every other group: join the column to "
            "the truth"
        )
        raise RankingDataError(msg)
    if rules.is_fold(name):
        msg = (
            f"parts, column {name!r}: users are in several folds, and the truth has no such "
            "column, so each fold would be judged by the whole truth: add the column to the truth, "
            "or rename it if one truth judges all folds"
        )
        raise RankingDataError(msg)


def recipe_of(small: pl.DataFrame) -> Recipe:
    return from_json(small.filter(pl.col("entry") == RECIPE)["of"].item())


def _common(texts: Sequence[str]) -> Recipe:
    """Return the recipe of all parts, or raise if they come from different calls."""
    first, *rest = map(from_json, texts)
    for other in rest:
        for name in ("asked", "facts", "labels", "grouped", "options"):
            ours, theirs = getattr(first, name), getattr(other, name)
            if name == "asked":
                ours, theirs = _untyped(ours), _untyped(theirs)
            if ours != theirs:
                what = _MEANT[name]
                both = "" if name == "facts" else f", {_shown(ours)} and {_shown(theirs)}"
                msg = f"parts: {what} differ{both}: make all parts with the same call"
                raise RankingDataError(msg)
        types = common_types_of_groups(first.types, other.types)
        first = first._replace(types=types, asked=_with_known_types(first.asked, other.asked))
    return first


def _with_known_types(request: Request, other: Request) -> Request:
    """Take the type of a mean from the part that knows it: in an empty one it may be Null."""
    pairs = zip(request.means, other.means, strict=True)
    return request._replace(means=[b if a.dtype == pl.Null else a for a, b in pairs])


_MEANT = {
    "asked": "metrics or columns of by=",
    "facts": "facts",
    "labels": "metrics of all lists",
    "grouped": "columns of by= in the tables beside run and truth",
    "options": "options",
}


def _shown(value: object) -> str:
    return repr((value.columns, value.by) if isinstance(value, Request) else value)


def _untyped(request: Request) -> Request:
    """Leave out the types of means, which an empty part may not know."""
    return request._replace(means=[mean._replace(dtype=pl.Null()) for mean in request.means])


def means_of_numbers(small: pl.DataFrame, *, total: bool) -> pl.DataFrame:
    """Return the metrics, from numbers that are already summed."""
    recipe = recipe_of(small)
    request = recipe.asked
    if not recipe.labels:
        return _partitions.means_of_sums(_wide(small, recipe), request, total=total)

    def numbers(by: Sequence[str]) -> pl.DataFrame:
        return _numbers(small, recipe, by)

    return _partitions.means_of_sums(_wide(small, recipe), request, numbers, total=total)


def groups_of_numbers(small: pl.DataFrame, recipe: Recipe) -> pl.DataFrame:
    """Read each group of the numbers."""
    texts = small.filter(~pl.col("entry").is_in([RECIPE, SEEN, PART]))["group"].unique()
    groups = groups_from_json([json.loads(text) for text in texts], recipe.types)
    return groups.hstack([texts.alias("group")]) if groups.columns else texts.to_frame("group")


def _wide(small: pl.DataFrame, recipe: Recipe) -> pl.DataFrame:
    """Make one row per group, with a column per sum."""
    request = recipe.asked
    wanted = [(_USERS, "", _USERS)]
    for place, mean in enumerate(request.means):
        wanted += [(entry, mean.name, f"{column}{place}") for column, entry in _ENTRIES.items()]
    counts = [f"{name}{_USERS_OF}" for name in request.counted]
    wanted += [(_COUNTED, name, count) for name, count in zip(request.counted, counts, strict=True)]
    names = pl.DataFrame(wanted, ["entry", "of", "column"], orient="row")
    numbers = small.join(names, on=["entry", "of"])
    columns = [column for _, _, column in wanted]
    rows = numbers.pivot("column", on_columns=columns, index="group", values="number")
    rows = rows.with_columns(pl.col(_USERS, *counts).cast(pl.Int64))
    return rows.join(groups_of_numbers(small, recipe), on="group").drop("group")


def _numbers(small: pl.DataFrame, recipe: Recipe, by: Sequence[str]) -> pl.DataFrame:
    """Return the numbers of all lists, one row per group of ``by``."""
    kinds: dict[Kind, list[Any]] = {}
    for name, label in recipe.labels.items():
        metric = parse_metric(label)
        metric = metric._replace(name=name, expr=metric.expr.alias(name))
        kind = share_names.kind_of(metric)
        assert kind is not None
        kinds.setdefault(kind, []).append(metric)
    frames: list[pl.DataFrame] = []
    for kind, some in kinds.items():
        reads = {name for metric in some for name in metric.reads}
        frames.append(
            system_metrics.numbers_of_sums(*_of_kind(small, recipe, kind, reads, by), some, by)
        )
    first, *rest = frames
    for each in rest:
        if by:
            first = first.join(each, on=by, how="full", coalesce=True, nulls_equal=True)
        else:
            first = first.join(each, how="cross")
    return first


def _of_kind(
    small: pl.DataFrame, recipe: Recipe, kind: Kind, reads: set[str], by: Sequence[str]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Return the sums of the values of a kind, and the counts of values and lists."""
    entry, number = pl.col("entry"), pl.col("number")
    groups = groups_of_numbers(small, recipe)
    head = f"{kind.of};{kind.over};"
    pairs = small.filter(
        entry.str.starts_with(f"exposure({head}") | entry.str.starts_with(f"target({head}")
    )
    names = sorted({*pairs["entry"], *share_rows.columns_of_sums(reads)})
    names = names or [f"exposure({head}none;)"]
    pairs = pairs.join(groups, on="group", nulls_equal=True)

    def of(name: str, at: pl.Expr) -> pl.Expr:
        values = number.filter(at)
        same = name.endswith(_SAME) or "values(" in name
        return (values.max() if same else values.sort().sum()).alias(name)

    sums = pairs.group_by(*by, pl.col("of").alias(share_rows.VALUE)).agg(
        of(name, entry == name).fill_null(0.0) for name in names
    )
    counts = small.join(groups, on="group", nulls_equal=True)
    wanted = sorted({name for name in reads if _is_count(name)} | {system_metrics.LISTS})
    columns = [
        of(name, entry == f"{kind.of}: {name}").fill_null(0.0).cast(pl.Int64).alias(name)
        for name in wanted
    ]
    counted = counts.group_by(by).agg(columns) if by else counts.select(columns)
    return sums, counted
