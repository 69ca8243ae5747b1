"""Segments that no table has: users by activity or relevant items, and items by popularity.

Stage of the pipeline: before the tables are read, a ``Question`` gets their columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import polars as pl

from rankframe import errors
from rankframe._request import keywords
from rankframe._request.question import Question
from rankframe._request.segment_names import MEANINGS, Segment, is_of_items, segment_of
from rankframe._request.types import Frame
from rankframe._tables import adapters, readers
from rankframe._tables.table import Table
from rankframe.errors import Problem, RankingDataError, option, table_code

_NUMBER, _BIN = "__rankframe_number", "__rankframe_bin"


def with_columns(question: Question) -> Question:
    """Add the columns of the segments that the call names, to the run and to the truth."""
    present = [name for name in question.by if segment_of(name) is None]
    for segment in filter(None, map(segment_of, question.by)):
        question = _with_column(question, segment, present)
        present.append(segment.name)
    return question


def number_of_bin(value: pl.Expr, bins: int) -> pl.Expr:
    """Number the quantile bins of values, from 0; equal values are in the same bin."""
    smaller = value.rank("min").cast(pl.Int64) - 1
    return smaller * bins // pl.len()


def _with_column(question: Question, segment: Segment, by: Sequence[str]) -> Question:
    frames, columns = (question.frame, question.truth), question.settings.columns
    _refuse(question, segment)
    tables = readers.read_run_and_truth(*frames, by, columns, run_alone=question.lists_alone)
    last, value = tables[-1], pl.col(_NUMBER).fill_null(0)
    counts, keys = _counts(question, segment, tables)
    edges = segment.edges
    if edges is None:
        ids = (
            last.frame.select(keys).unique().join(_of_type(counts, keys, last), on=keys, how="left")
        )
        numbers = ids.select(value, number_of_bin(value, segment.bins).alias(_BIN))
        edges = numbers.group_by(_BIN).min().collect()[_NUMBER].sort().to_list()[1:]
        if not edges and segment.bins > 1:
            by, example = option("by", segment.name), option("by", f"{segment.kind}(5,20)")
            msg = f"{by}: all fall into one bin, since most have the same number: try {example}"
            errors.warn(msg)
    ends = [str(edge - 1) for edge in edges]
    starts = ["0", *map(str, edges)]
    names = [
        start if start == end else f"{start}-{end}"
        for start, end in zip(starts, ends, strict=False)
    ]
    names.append(f"{starts[-1]}+")
    number = pl.sum_horizontal(pl.lit(0), *((value >= edge).cast(pl.Int64) for edge in edges))
    label = number.replace_strict(range(len(names)), names, return_dtype=pl.Enum(names))

    def extended(frame: Frame, table: Table) -> Frame:
        opened = adapters.to_polars(frame, table.name)
        numbers = _of_type(counts, keys, table)
        rows = opened.lazy().join(numbers, on=keys, how="left", maintain_order="left")
        rows = rows.with_columns(label.alias(segment.name)).drop(_NUMBER)
        longer = rows.collect() if isinstance(opened, pl.DataFrame) else rows
        adapters.keep_notes(longer, opened)
        return longer

    truth = None if question.truth is None else extended(cast("Frame", question.truth), last)
    # a list is in the segment of each item that its user wants
    lacks = is_of_items(segment.name) or not {*keys} <= {
        *adapters.column_names(question.frame, "run")
    }
    frame = question.frame if lacks else extended(question.frame, tables[0])
    return question.of(frame, truth, question.totals)


def _refuse(question: Question, segment: Segment) -> None:
    """Raise if a table has the column of a segment, or if options contradict what it means."""
    settings, by = question.settings, option("by", segment.name)
    beside: dict[str, Frame | None]
    beside = {name: getattr(settings, name) for name in keywords.INPUTS}
    beside |= {readers.stage_name(name): frame for name, frame in settings.stages.items()}
    tables = {"run": question.frame, "truth": cast("Frame | None", question.truth), **beside}
    for name, frame in tables.items():
        table = f"{name}= table" if name in beside else name
        if frame is not None and segment.name in adapters.column_names(frame, table):
            title = option(name) if name in beside else name
            meaning = f"{by} also means {MEANINGS[segment.kind]}"
            msg = f"{title}, column {segment.name!r}: {meaning}: rename the column"
            raise RankingDataError(msg)
    if segment.name in question.reading.reserved:
        same = option("by", f"{segment.name}(bins={segment.bins})")
        msg = f"{by}: a metric reads a column of this name: write {same}, the same bins"
        raise ValueError(Problem(msg))
    if not is_of_items(segment.name):
        return
    if settings.unjudged != "miss":
        what = "in each bin, items of all other bins would be unjudged"
        msg = f"{option('unjudged', settings.unjudged)}: {what} with {by}: leave one of them out"
        raise ValueError(Problem(msg))
    if settings.users in ("run", "all"):
        what = "includes users who are not in the truth, whose items have the segments of"
        msg = f"{option('users', settings.users)} {what} {by}: leave one of them out"
        raise ValueError(Problem(msg))


def _counts(
    question: Question, segment: Segment, tables: Sequence[Table]
) -> tuple[pl.LazyFrame, list[str]]:
    """Count for each user, or each item, what puts it into a segment; return its columns, too.

    A column of ``by`` that the counted table has limits them to its group, as in metrics.
    """
    settings, table, last = question.settings, tables[-1], tables[-1]
    of_history = segment.kind != "relevant_items"
    needs = {"history": of_history and settings.history is None}
    needs["truth"] = segment.kind != "activity" and question.truth is None
    needs["truth"] &= of_history or table.relevance is None
    for name in (name for name, is_missing in needs.items() if is_missing):
        meaning = f"{option('by', segment.name)} means {MEANINGS[segment.kind]}"
        msg = f"{meaning}: pass {option(name)}, with users and items"
        if name == "truth" and table.relevance is not None:
            msg += _apart(table)
        raise RankingDataError(msg)
    if settings.history is not None and of_history:
        table = readers.read_beside("history", settings.history, tables[0], settings.columns)
    rows, key, other = table.frame, table.user, table.item
    groups = [n for n in table.by if n != table.model and segment_of(n) is None]
    for name in groups:
        if name not in last.schema:
            msg = (
                f"{table.name}, column {name!r}: the truth has no such column of {option('by')}: "
                f"add it there, or drop it from {table.name}"
            )
            raise RankingDataError(msg)
    if is_of_items(segment.name):
        key, other = other, key
    elif table.relevance is not None:
        grade, level = pl.col(table.relevance).cast(pl.Float64), settings.relevant_at
        rows = rows.filter(grade > 0 if level is None else grade >= level)
    number = pl.col(other).n_unique().cast(pl.Int64).alias(_NUMBER)
    return rows.group_by(*groups, key).agg(number), [*groups, key]


def _apart(judged: Table) -> str:
    """Write how a judged table becomes a run and its truth."""
    groups = [name for name in judged.by if name != judged.model]
    ids, grade = [*groups, judged.user, judged.item], judged.relevance
    names, truth = [*ids, grade], "truth=judged"
    polars = f".drop({grade!r}), {truth}.select({names}).drop_nulls({grade!r}).unique()"
    pandas = f".drop(columns={grade!r}), {truth}[{names}].dropna().drop_duplicates()"
    return f"; they are{table_code('judged', polars, pandas)}"


def _of_type(counts: pl.LazyFrame, keys: Sequence[str], table: Table) -> pl.LazyFrame:
    """Cast the ids to the type of a table; what does not fit is an error when all are read."""
    types = [pl.col(key).cast(table.schema[key], strict=False) for key in keys]
    return counts.with_columns(types).drop_nulls(keys)
