"""One shuffle by user: which rows go to which worker, and what each worker computes."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StringType

from rankframe import _sizes
from rankframe._request import keywords
from rankframe._request.question import Totals
from rankframe._tables import rules
from rankframe._tables.table import Table
from rankframe.parts import _partitions
from rankframe.parts._partitions import Registered
from rankframe.spark import _types
from rankframe.spark._needs import Needs
from rankframe.spark._types import Compute

_KIND = "__rankframe_kind"  # of a row
_OF_RUN, _OF_TRUTH, _OF_LIST = range(3)
_BROKEN = 0  # instead of a hash, for a row of the run that breaks a rule: the join must keep it


# ------------------------------------------------------------------ the tables


class Side(NamedTuple):
    """A table whose columns are numbered, since names may hold dots or differ only in case.

    Conditions are SQL text: each call on a Column sends a dozen messages to the JVM.
    """

    frame: DataFrame
    names: list[str]
    empty: pl.LazyFrame
    table: Table

    def column(self, name: str) -> str:
        return f"`{self.names.index(name)}`"

    @property
    def roles(self) -> list[str]:
        """The columns that play a role."""
        columns = [*rules.role_columns(self.table), *(["tied"] if self.table.tied else [])]
        return [name for name in columns if name in self.names]

    @property
    def ranked_rows(self) -> DataFrame:
        """The rows that are in a list; all rows of a truth."""
        name = self.table.rank or self.table.score
        if name is None:
            return self.frame
        column = self.column(name)
        return self.frame.where(f"{column} IS NOT NULL AND NOT isnan(double({column}))")

    def fetch_row(self, rows: DataFrame) -> Table:
        """Fetch the first of the rows, if there is one."""
        row = self.collected(rows.limit(1), self.roles)
        groups = [name for name in self.table.by if name in self.names]
        return replace(self.table, frame=row.lazy(), by=groups)

    def collected(self, rows: DataFrame, names: Sequence[str]) -> pl.DataFrame:
        """Fetch columns of rows, cast to the types of this table: Spark changes the time zone."""
        fetched = collected(rows.select(*map(self.column, names)).distinct())
        return with_names(fetched, names).select(_types.cast_column(self.types(names)))

    def types(self, names: Sequence[str]) -> pl.Schema:
        schema = self.empty.collect_schema()
        return pl.Schema({name: schema[name] for name in names})


def sides(
    frames: Sequence[DataFrame], empty: Sequence[pl.LazyFrame], tables: Sequence[Table]
) -> list[Side]:
    return [
        Side(numbered(frame), frame.columns, without_rows, table)
        for frame, without_rows, table in zip(frames, empty, tables, strict=True)
    ]


def pair(tables: Sequence[_types.T]) -> tuple[_types.T, _types.T | None]:
    """Return a run and its truth, or a judged table and None."""
    return tables[0], tables[1] if len(tables) == 2 else None


def numbered(frame: DataFrame) -> DataFrame:
    """Number the columns; make text compare byte by byte, as on one machine."""
    result = frame.toDF(*map(str, range(len(frame.columns))))
    for place, field in enumerate(frame.schema):
        if isinstance(field.dataType, StringType) and not field.dataType.isUTF8BinaryCollation():
            by_bytes = F.expr(f"`{place}` COLLATE UTF8_BINARY")
            result = result.withColumn(str(place), by_bytes)
    return result


def with_names(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


def group_frame(sides: Sequence[Side]) -> pl.DataFrame | None:
    """Collect the groups of ``by`` that the truth lacks."""
    run, truth = sides[0], sides[-1]
    lacking = [name for name in run.table.by if name not in truth.table.by]
    if not lacking:
        return None
    return run.collected(run.ranked_rows, lacking)


def _top_grade(sides: Sequence[Side]) -> float | None:
    side = sides[-1]
    if side.table.relevance is None:
        return 1
    grade = collected(side.frame.selectExpr(f"max({side.column(side.table.relevance)})")).item()
    if grade is None:
        return None
    return int(grade) if isinstance(grade, int) else float(grade)  # True is an int


# ------------------------------------------------------------------ one shuffle, by user


class _Task(NamedTuple):
    """What a worker computes from a partition, and the types of its columns."""

    compute: Compute
    totals: Totals
    columns: list[str]
    run: pl.Schema
    truth: pl.Schema | None
    types: pl.Schema  # of the result
    arrow: pa.Schema
    registered: Registered
    row_of_list: list[str]  # the columns that identify it; none if there are no rows of lists


def computed(
    sides: Sequence[Side],
    compute: Compute,
    partitions: int | None,
    needs: Needs | None = None,
    joined: Sequence[Side] = (),
) -> DataFrame:
    """Move all rows of a user into one partition, and compute each partition by itself.

    ``joined`` has the rows of ``sides`` that are needed; a group may have no such row.
    """
    names = [_columns_needed(side, needs) for side in sides]
    columns = list(dict.fromkeys(name for of_side in names for name in of_side))
    stacked = _stacked(joined or sides, names, columns, needs)
    if needs and needs.lists:  # also of lists whose rows are not needed
        stacked = stacked.unionByName(_first_rows(sides[0], columns), allowMissingColumns=True)
    user = f"column{columns.index(sides[0].table.user)}"
    # the last step before mapInArrow: a step in between might separate the rows of a user
    if partitions is None:
        partitioned = stacked.repartition(user)
    else:
        partitioned = stacked.repartition(keywords.whole_number("partitions", partitions), user)
    top_grade = _top_grade(joined or sides) if needs and needs.top_grade else None
    totals = Totals(top_grade, group_frame(sides))
    empty = [side.empty for side in sides]
    types, schema = _types.schemas(compute(*pair(empty), totals))
    run, truth = pair([side.types(own) for side, own in zip(sides, names, strict=True)])
    run_table = sides[0].table
    row_of_list = [*run_table.keys, run_table.item] if needs and needs.lists else []
    arrow, registration = _types.arrow_schema(schema), _partitions.registered()
    task = _Task(compute, totals, columns, run, truth, types, arrow, registration, row_of_list)
    return partitioned.mapInArrow(functools.partial(_computed_partition, task), schema)


def _stacked(
    sides: Sequence[Side], names: Sequence[Sequence[str]], columns: list[str], needs: Needs | None
) -> DataFrame:
    """Put the rows of all tables into one frame, with the kind of each row."""
    rows = [
        _rows_needed(side, needs).selectExpr(
            f"tinyint({kind}) AS {_KIND}",
            *(f"{side.column(name)} AS column{columns.index(name)}" for name in own),
        )
        for side, own, kind in zip(sides, names, (_OF_RUN, _OF_TRUTH), strict=False)
    ]
    # columns of the truth last
    return functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), rows)


def _computed_partition(task: _Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute a partition, inside a worker."""
    received = list(batches)
    if not received:
        return
    _partitions.restore(task.registered)
    rows = with_names(_types.from_arrow(pa.Table.from_batches(received)), [_KIND, *task.columns])
    of_run, of_truth, of_lists = (
        rows.lazy().filter(pl.col(_KIND) == kind) for kind in (_OF_RUN, _OF_TRUTH, _OF_LIST)
    )
    if task.row_of_list:
        rest = of_lists.join(of_run, on=task.row_of_list, how="anti", nulls_equal=True)
        of_run = pl.concat([of_run, rest])
    run = of_run.select(_types.cast_column(task.run))
    truth = None if task.truth is None else of_truth.select(_types.cast_column(task.truth))
    result = task.compute(run, truth, task.totals).collect()
    # Spark matches columns by position and exact type
    result = result.select(_types.cast_column(task.types))
    yield from _types.to_arrow(result).cast(task.arrow).to_batches()


def _columns_needed(side: Side, needs: Needs | None) -> list[str]:
    if needs is None:
        return side.names
    return [name for name in side.names if name in side.roles or name in needs.columns]


def _rows_needed(side: Side, needs: Needs | None) -> DataFrame:
    """Leave out rows that cannot change a value and break no rule by themselves."""
    irrelevant = None if needs is None else _is_irrelevant_sql(side, needs)
    if irrelevant is None:
        return side.frame
    return side.frame.where(f"NOT {_is_valid_sql(side, irrelevant)}")


def _first_rows(run: Side, columns: Sequence[str]) -> DataFrame:
    """Return the row of the least rank of each list, with its keys, item and rank alone."""
    table = run.table
    names = [name for name in table.keys if name in run.names]
    rank, item = run.column(table.rank or ""), run.column(table.item)
    first = run.ranked_rows.groupBy(*map(run.column, names)).agg(
        F.expr(f"min_by({item}, {rank}) AS item"), F.expr(f"min({rank}) AS rank")
    )
    exprs = {name: run.column(name) for name in names}
    exprs |= {table.item: "item", table.rank or "": "rank"}
    return first.selectExpr(
        f"tinyint({_OF_LIST}) AS {_KIND}",
        *(f"{column} AS column{columns.index(name)}" for name, column in exprs.items()),
    )


def _is_valid_sql(side: Side, condition: str) -> str:
    """Write the condition that a row has all ids and meets ``condition``; it is never null."""
    table = side.table
    ids = [name for name in side.roles if name not in (table.rank, table.relevance)]
    present = [f"{side.column(name)} IS NOT NULL" for name in ids]
    numbers = [f"NOT isnan({side.column(name)})" for name in ids if table.schema[name].is_float()]
    return f"(({' AND '.join([*present, *numbers, condition])}) <=> true)"


@contextlib.contextmanager
def read_once(
    sides: list[Side], partitions: int | None, needs: Needs
) -> Generator[tuple[list[Side], int | None], None, None]:
    """Semi-join the run with the truth; Spark keeps the judgments in memory until the exit.

    They are read several times, and a query that runs again may return different rows.
    """
    judgments = _hashable_judgments(sides, needs)
    if judgments is not None:
        with _persisted(judgments):
            number = judgments.count()
            if number <= _most_keys(judgments.sparkSession):
                if partitions is None and not sides[0].table.by:
                    partitions = 1 + number // _sizes.JUDGMENTS_OF_PARTITION
                yield _semi_joined(sides, judgments), partitions
                return
    yield sides, partitions


@contextlib.contextmanager
def _persisted(frame: DataFrame) -> Generator[None, None, None]:
    """Let Spark keep a frame in memory until the exit, unless the caller has it keep the frame."""
    level = frame.storageLevel
    if level.useMemory or level.useDisk:
        yield
        return
    frame.persist()
    try:
        yield
    finally:
        frame.unpersist()


def semi_joined(sides: list[Side], needs: Needs) -> list[Side]:
    """Semi-join the run with the truth, if Spark may broadcast the keys of the judgments."""
    judgments = _hashable_judgments(sides, needs)
    if judgments is None or judgments.count() > _most_keys(judgments.sparkSession):
        return sides
    return _semi_joined(sides, judgments)


def _hashable_judgments(sides: list[Side], needs: Needs) -> DataFrame | None:
    """Return the judgments that are needed, if unjudged rows are not and keys are hashable."""
    if not (needs.judged and len(sides) == 2 and all(map(_hash, sides))):
        return None
    truth = sides[1]
    if not _most_keys(truth.frame.sparkSession):
        return None
    return _rows_needed(truth, needs).select(*map(truth.column, _columns_needed(truth, needs)))


def _semi_joined(sides: list[Side], judgments: DataFrame) -> list[Side]:
    """Keep the rows of the run that are judged, and those that break a rule.

    The keys are hashes. A collision only keeps a row that is not needed.
    """
    run, truth = sides
    valid = _is_valid_sql(run, _is_rank_sql(run))
    hashes = judgments.selectExpr(f"{_hash(truth)} AS known")
    hashes = hashes.union(
        hashes.sparkSession.range(0, 1, 1, 1).selectExpr(f"bigint({_BROKEN}) AS known")
    )
    same = F.expr(f"CASE WHEN {valid} THEN {_hash(run)} ELSE {_BROKEN} END = known")
    judged = run.frame.join(F.broadcast(hashes), same, "left_semi")
    return [run._replace(frame=judged), truth._replace(frame=judgments)]


def _hash(side: Side) -> str | None:
    """Write the hash of user and item, of any integer type or text; None for other types."""
    names = [side.table.user, side.table.item]
    types = [side.table.schema[name] for name in names]
    if not all(dtype.is_integer() or dtype == pl.String for dtype in types):
        return None
    wide = (
        f"bigint({side.column(name)})" if dtype.is_integer() else side.column(name)
        for name, dtype in zip(names, types, strict=True)
    )
    return f"xxhash64({', '.join(wide)})"


def _most_keys(session: SparkSession) -> int:
    """Return how many keys of 8 bytes Spark broadcasts by default; 0 if it does not."""
    threshold = str(session.conf.get("spark.sql.autoBroadcastJoinThreshold")).lower()
    number, unit = re.fullmatch(r"(-?\d+) *([kmgtp]?)i?b?", threshold).groups()  # type: ignore[union-attr]
    size = max(0, int(number)) << 10 * " kmgtp".index(unit or " ")
    return int(min(size // 8, 2**31 - 2))


def _is_irrelevant_sql(side: Side, needs: Needs) -> str | None:
    """Write the condition that a row has a valid rank and relevance and cannot change a value."""
    rank, grade = (
        None if name is None else f"double({side.column(name)})"
        for name in (side.table.rank, side.table.relevance)
    )
    if grade is None:
        if rank is None or needs.depth is None:
            return None
        return _is_rank_sql(side, above=needs.depth)
    if not needs.relevant:
        return None
    irrelevant = f"({grade} <= 0 AND {grade} > double('-Infinity'))"
    if rank is None:
        return irrelevant
    ranked = _is_rank_sql(side)
    return f"({irrelevant} AND ({rank} IS NULL OR {ranked}) OR {grade} IS NULL AND {ranked})"


def _is_rank_sql(side: Side, above: int | None = None) -> str:
    """Write the condition that a rank is an integer ≥ 1, or one above a depth."""
    name = side.table.rank or ""
    least = ">= 1" if above is None else f"> {above}"
    if side.table.schema[name].is_integer():  # the remainder takes a tenth of the call
        return f"({side.column(name)} {least})"
    rank = f"double({side.column(name)})"
    return f"({rank} {least} AND {rank} % 1 = 0)"


def collected(frame: DataFrame) -> pl.DataFrame:
    return _types.from_arrow(frame.toArrow())


def to_spark(session: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """Convert a small frame of Polars to Spark."""
    table = _types.to_arrow(_types.in_types_of_spark(frame))
    return session.createDataFrame(table, from_arrow_schema(table.schema))


def to_spark_in_batches(session: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """Convert a frame of Polars to Spark as a few long values: Spark makes objects of rows."""
    table = _types.to_arrow(_types.in_types_of_spark(frame))
    batches = table.to_batches(max_chunksize=_sizes.ROWS_OF_BATCH)
    parts = [*map(_types.as_bytes, batches)]
    sent = session.createDataFrame(pa.table({"part": pa.array(parts, pa.binary())}), "part binary")
    return sent.mapInArrow(_types.from_bytes, from_arrow_schema(table.schema))
