"""Arrow, Polars and Spark: types both ways, and batches as bytes."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType

from rankframe._request.question import Totals
from rankframe._tables import rules
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    import pandas as pd

Truth: TypeAlias = "DataFrame | pl.DataFrame | pl.LazyFrame | pd.DataFrame"
Compute: TypeAlias = Callable[[pl.LazyFrame, pl.LazyFrame | None, Totals | None], pl.LazyFrame]

#: Types Spark lacks, and the wider types that hold their values.
_WIDER: dict[type[pl.DataType], pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.UInt128: pl.Decimal(38, 0),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
}
T = TypeVar("T")


def check_times(truth: pl.DataFrame) -> None:
    """Check that no time is finer than a microsecond, which is what Spark keeps."""
    for column in truth:
        if column.dtype != pl.Time and getattr(column.dtype, "time_unit", "us") != "ns":
            continue
        finer = (column.to_physical() % 1000 != 0).fill_null(value=False)
        if finer.any():
            row = truth.filter(finer).head(1).with_columns(pl.col(column.name).cast(pl.String))
            msg = (
                f"truth, column {column.name!r}: a time finer than a microsecond, and Spark keeps "
                "microseconds, so that values that differ by less would become one: cast the "
                "column to integers in both tables, pl.col(…).dt.epoch('ns'). "
                f"Offending row: {rules.format_row(row)}"
            )
            raise RankingDataError(msg)


def as_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return cast("bytes", sink.getvalue().to_pybytes())


def from_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for part in batch.column(0):
            with pa.ipc.open_stream(part.as_buffer()) as reader:
                yield from reader


def in_types_of_spark(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        column.cast(pl.Int64) if _fits(column) else column.cast(spark_type(column.dtype))
        for column in frame
    )


def _fits(column: pl.Series) -> bool:
    """Whether all integers of a type Spark lacks are in the range of its long."""
    wide = isinstance(column.dtype, pl.UInt64 | pl.Int128 | pl.UInt128)
    return wide and column.cast(pl.Int64, strict=False).null_count() == column.null_count()


def spark_type(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", dtype.time_zone)
    if isinstance(dtype, pl.Duration):
        return pl.Duration("us")
    if isinstance(dtype, pl.List):
        return pl.List(spark_type(cast("pl.DataType", dtype.inner)))
    return _WIDER.get(dtype.base_type(), dtype)


def schemas(frame: pl.LazyFrame) -> tuple[pl.Schema, StructType]:
    """Return the types of a frame in Spark, as Polars and Spark write them."""
    dtypes = frame.collect_schema()
    types = pl.Schema({name: spark_type(dtype) for name, dtype in dtypes.items()})
    return types, from_arrow_schema(to_arrow(pl.DataFrame(schema=types)).schema)


def cast_column(types: pl.Schema) -> list[pl.Expr]:
    return [pl.col(name).cast(dtype) for name, dtype in types.items()]


def arrow_schema(schema: StructType) -> pa.Schema:
    """Return the types in which Spark transfers rows to Python; newer versions need a zone."""
    requested = inspect.signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in requested else {}
    return to_arrow_schema(schema, **zone)


def from_arrow(table: pa.Table) -> pl.DataFrame:
    frame = cast("pl.DataFrame", pl.from_arrow(table))
    frame.columns = table.column_names  # polars renames a column whose name is empty
    return frame


def to_arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
