"""Groups of ``by``: a key of text per group, and small tables of them as text."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterable, Mapping, Sequence
from functools import reduce

import polars as pl

from rankframe._request import labels
from rankframe._tables import run_dicts
from rankframe.errors import RankingDataError

GROUP = f"{labels.PREFIX}group"  # the column of keys


def as_text(frame: pl.DataFrame) -> str:
    """Write a small table with its types, Arrow's bytes in base64: it survives every format."""
    file = io.BytesIO()
    frame.rechunk().write_ipc_stream(file)
    return base64.b64encode(file.getvalue()).decode() if frame.width else ""


def from_text(text: str) -> pl.DataFrame:
    try:
        return pl.read_ipc_stream(base64.b64decode(text)) if text else pl.DataFrame()
    except (ValueError, OSError, pl.exceptions.PolarsError):
        msg = f"groups: the text {text!r} is damaged: make the facts or the sums again"
        raise RankingDataError(msg) from None


def key(schema: Mapping[str, pl.DataType], by: Sequence[str]) -> pl.Expr:
    """Write the group of a row as JSON: integers of any width have the same key."""
    if not by:
        return pl.lit("")
    texts = [
        pl.col(name).bin.encode("hex")
        if schema[name] == pl.Binary
        else pl.col(name).to_physical().cast(pl.String)
        if schema[name].is_temporal()
        else pl.col(name).cast(pl.String)
        for name in by
    ]
    return pl.struct(texts).struct.json_encode()


def common_types(
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


def united(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """List the groups of several parts in their common types, sorted, with their keys."""
    schemas: Iterable[Mapping[str, pl.DataType]] = (table.schema for table in tables)
    types = pl.Schema(reduce(common_types, schemas))
    keyed = [
        table.select(key(table.schema, table.columns).alias(GROUP), *table.columns)
        for table in tables
    ]
    own = pl.Schema({GROUP: pl.String(), **types})
    stacked = pl.concat([table.cast(own) for table in keyed])
    return stacked.unique(GROUP).sort(types.names()) if types else stacked.unique(GROUP)


def in_common_types(
    frame: pl.DataFrame | pl.LazyFrame, groups: pl.DataFrame
) -> tuple[pl.DataFrame | pl.LazyFrame, pl.DataFrame]:
    """Cast the columns of ``by`` to types that fit the frame and the groups."""
    schema = frame.collect_schema()
    own = {name: schema[name] for name in groups.columns}
    common = common_types(dict(groups.schema), own)
    differ = [pl.col(name).cast(dtype) for name, dtype in common.items() if dtype != own[name]]
    frame = frame.with_columns(differ) if differ else frame  # polars panics at no column
    return frame, groups.cast(pl.Schema(common))
