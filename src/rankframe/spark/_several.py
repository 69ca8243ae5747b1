"""Several columns as one user, in tables of Spark: as in ``_inputs/several_users.py``."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar, cast

import polars as pl
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import DateType, StructType

from rankframe._inputs import arguments, several_users
from rankframe._tables import adapters
from rankframe.spark import _shuffle, _types

VerbT = TypeVar("VerbT", bound=Callable[..., DataFrame])


def takes_users(verb: VerbT) -> VerbT:
    """Let a verb take several columns as the user."""

    @functools.wraps(verb)
    def call(run: Any, *args: Any, **options: Any) -> DataFrame:
        several = isinstance(options.get("user"), list | tuple)
        if not (several or {"truth_user", "truth_item"} & {*options}):
            return verb(run, *args, **options)
        passed = {"run": run, **options}
        if verb.__name__ == "judge" and args:
            passed["truth"], args = args[0], ()
        first = next(iter(run.values()), None) if isinstance(run, Mapping) else run
        _name_truth(passed, getattr(first, "columns", ()))
        if not several:
            return verb(passed.pop("run"), *args, **passed)
        passed["user"] = _Users(options["user"], passed, first)
        close = several_users.with_one(verb.__name__, passed)
        return cast("DataFrame", close(verb(passed.pop("run"), *args, **passed)))

    return cast("VerbT", call)


def _name_truth(passed: dict[str, Any], run: Sequence[str]) -> None:
    """Give the columns of the truth the names that the run has for the same roles."""
    truth: Any = passed.get("truth")
    names = adapters.column_names(truth, "truth") if adapters.is_frame(truth) else None
    if isinstance(truth, DataFrame):
        names = truth.columns
    change = arguments.name_truth(passed, run, names)
    if isinstance(truth, DataFrame):
        passed["truth"] = truth.toDF(*(change.get(name, name) for name in truth.columns))
    elif change:
        passed["truth"] = adapters.renamed(truth, change)


class _Users(several_users.Users):
    """The columns of a user; tables of Polars and pandas go to Spark, which writes all the text."""

    def __init__(self, columns: Sequence[object], options: Mapping[str, Any], run: object) -> None:
        super().__init__(columns, options)
        self.run = run  # the first

    def as_one(self, frame: Any, table: str) -> Any:
        if not isinstance(self.run, DataFrame):
            return frame  # the verb refuses it
        if not isinstance(frame, DataFrame):
            local = adapters.to_lazy(frame, table, also="Spark DataFrame, a ").collect()
            _types.check_times(local)
            frame = _shuffle.to_spark_in_batches(self.run.sparkSession, local)
        names = frame.columns
        several_users.check_columns(self, names, table)
        numbered = _shuffle.numbered(frame)
        own = StructType([frame.schema[names.index(name)] for name in self])
        types = _types.from_arrow(_types.arrow_schema(own).empty_table()).schema
        self.note_types(types, table)
        columns = [f"`{names.index(name)}`" for name in self]
        fields = [
            _plain(F.col(column), dtype).alias(name)
            for column, name, dtype in zip(columns, self, types.values(), strict=True)
        ]
        is_whole = F.expr(" AND ".join(f"{column} IS NOT NULL" for column in columns))
        user = F.when(is_whole, F.to_json(F.struct(*fields)))
        order = self.in_place(names)
        kept = [user if n == self.name else F.col(f"`{names.index(n)}`") for n in order]
        return numbered.select(*kept).toDF(*order)

    def as_several(self, verb: str, result: Any) -> Any:  # noqa: ARG002  (rows have no order)
        names = result.columns
        if self.name not in names:
            return result
        stored = {name: several_users.stored(dtype) for name, dtype in self.types.items()}
        stored_types, types = (
            _types.schemas(pl.LazyFrame(schema=schema))[1] for schema in (stored, self.types)
        )
        place = names.index(self.name)
        decoded = F.from_json(f"`{place}`", stored_types)
        fields = [_typed(decoded.getField(field.name), field.dataType) for field in types]
        numbers = [*map(str, range(len(names)))]
        columns: list[Any] = [f"`{number}`" for number in numbers]
        columns[place : place + 1] = fields
        names[place : place + 1] = self
        return result.toDF(*numbers).select(*columns).toDF(*names)


def _plain(column: Column, dtype: pl.DataType) -> Column:
    """Write a value as text, or as a number."""
    if isinstance(dtype, pl.String):
        return column.cast("string")
    return F.unix_date(column) if dtype == pl.Date else column


def _typed(column: Column, dtype: Any) -> Column:
    return F.date_from_unix_date(column) if isinstance(dtype, DateType) else column.cast(dtype)
