"""One row per question with two lists, what was retrieved and what is expected: a judged table."""

from __future__ import annotations

from typing import NamedTuple, cast

import polars as pl

from rankframe._tables import column_roles, rules, run_dicts
from rankframe.errors import RankingDataError

_ROW, _PLACE = "__rankframe_row", "__rankframe_place"
_FRAME = "frame of lists"
_NUMBERS = (*column_roles.COMMON_NAMES["relevance"], "relevance", "score")
_ITEMS = (*column_roles.COMMON_NAMES["item"], *column_roles.TEXT_NAMES["item"], "item")


class _Ids(NamedTuple):
    """A column of lists of ids, or of structs of an id and a number."""

    column: str
    dtype: pl.DataType  # of the ids
    fields: tuple[str, str] | None  # of a struct: the id and the number


def judged(lists: pl.LazyFrame, user: str, retrieved: str, expected: str) -> pl.LazyFrame:
    """Make by row the full join of both lists, in the order of rows and ranks."""
    schema = lists.collect_schema()
    both = [_ids(schema, retrieved), _ids(schema, expected)]
    dtype = run_dicts.common_type(both[0].dtype, both[1].dtype)
    if dtype is None:
        msg = (
            f"{_FRAME}, column {expected!r}: its ids are {both[1].dtype}, and those of "
            f"{retrieved!r} are {both[0].dtype}: cast one; ids must have the same type, or any two "
            "integer types"
        )
        raise RankingDataError(msg)
    others = [name for name in schema if name not in (user, retrieved, expected)]
    names = ("user", "item", "rank", "relevance")
    rules.raise_if_taken("from_lists", names, others, f"{_FRAME}, ")
    rows = lists.with_row_index(_ROW)
    run, truth = (_exploded(rows, ids, dtype) for ids in both)
    grade = pl.lit(1, pl.Int64)
    if both[1].fields is not None:
        grade = pl.col("__rankframe_struct").struct.field(both[1].fields[1])
    truth = truth.select(_ROW, "item", _PLACE, grade.alias("relevance"))
    run = run.select(_ROW, "item", pl.col(_PLACE).alias("rank"))
    pairs = run.join(truth, on=[_ROW, "item"], how="full", coalesce=True)
    named = rows.select(_ROW, pl.col(user).alias("user"), *others)
    return (
        pairs.join(named, on=_ROW, how="left")
        .sort(_ROW, "rank", _PLACE, nulls_last=True)
        .select("user", "item", "rank", "relevance", *others)
    )


def _exploded(rows: pl.LazyFrame, ids: _Ids, dtype: pl.DataType) -> pl.LazyFrame:
    """Make a row of each element with its place; an empty or null list has none."""
    element = pl.col("__rankframe_struct")
    item = element if ids.fields is None else element.struct.field(ids.fields[0])
    places = pl.int_ranges(1, pl.col(ids.column).list.len().cast(pl.Int64) + 1).alias(_PLACE)
    return (
        rows.select(_ROW, pl.col(ids.column).alias("__rankframe_struct"), places)
        .explode("__rankframe_struct", _PLACE, empty_as_null=False, keep_nulls=False)
        .with_columns(item.cast(dtype).alias("item"))
    )


def _ids(schema: pl.Schema, column: str) -> _Ids:
    dtype = schema[column]
    inner = cast("pl.DataType", dtype.inner) if isinstance(dtype, pl.List) else dtype
    if isinstance(dtype, pl.List) and column_roles.can_be_id(inner):
        return _Ids(column, inner, None)
    if isinstance(dtype, pl.List) and isinstance(inner, pl.Struct):
        fields = pl.Schema(inner.to_schema())
        numbers = _numbers_of(fields)
        if len(fields) == 2 and len(numbers) == 1:
            (name,) = {*fields} - {*numbers}
            return _Ids(column, fields[name], (name, numbers[0]))
        cure = (
            "rename the fields to 'id' and 'score' or 'grade', or keep the ids alone: "
            f"pl.col({column!r}).list.eval(pl.element().struct.field(…))"
        )
    else:
        cure = f"make one, as by pl.concat_list({column!r}), or of JSON by .str.json_decode"
    msg = (
        f"{_FRAME}, column {column!r}: {dtype} is not a list of ids, or of structs of an id and a "
        f"number: {cure}"
    )
    raise RankingDataError(msg)


def _numbers_of(fields: pl.Schema) -> list[str]:
    """Name the fields that can be the number: by their names if both are numbers."""
    numbers = [name for name in fields if fields[name].is_numeric()]
    plain = [name for name in numbers if name in _NUMBERS]
    others = [name for name in numbers if not (name.lower().endswith("id") or name in _ITEMS)]
    return plain or others if len(numbers) > 1 else numbers
