"""Types and groups of ``by`` as JSON, so that they survive every file format."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import polars as pl

from rankframe._request import labels
from rankframe._tables import run_dicts
from rankframe.errors import RankingDataError

GROUP = f"{labels.INNER}group"  # the column of groups as text
#: The types that JSON can name, with their parameters.
_TYPES: Mapping[type[pl.DataType], tuple[str, ...]] = {
    **dict.fromkeys((pl.Boolean, pl.String, pl.Binary, pl.Categorical, pl.Date, pl.Time), ()),
    **dict.fromkeys((pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.Null), ()),
    **dict.fromkeys((pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64, pl.UInt128), ()),
    **dict.fromkeys((pl.Float32, pl.Float64), ()),
    pl.Datetime: ("time_unit", "time_zone"),
    pl.Duration: ("time_unit",),
    pl.Decimal: ("precision", "scale"),
    pl.Enum: ("categories",),
}
_BY_NAME: Mapping[str, Callable[..., pl.DataType]] = {dtype.__name__: dtype for dtype in _TYPES}


def type_in_json(dtype: pl.DataType) -> Any:
    """Write a type for JSON: its name and its parameters."""
    name = dtype.base_type().__name__
    values = [getattr(dtype, parameter) for parameter in _TYPES.get(dtype.base_type(), ())]
    values = [value.to_list() if isinstance(value, pl.Series) else value for value in values]
    return [name, *values] if values else name


def type_from_json(value: Any) -> pl.DataType:
    name, *parameters = [value] if isinstance(value, str) else cast("list[Any]", value)
    return _BY_NAME[name](*parameters)


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


def with_group(rows: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Put the group of each row into the column ``GROUP``, as text."""
    if not by:
        return rows.with_columns(pl.lit("[]").alias(GROUP))
    groups = rows.select(by).unique()
    texts = [json.dumps(group, ensure_ascii=False) for group in groups_in_json(groups)]
    lookup = groups.with_columns(pl.Series(GROUP, texts, pl.String))
    return rows.join(lookup, on=by, how="left", nulls_equal=True)


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
