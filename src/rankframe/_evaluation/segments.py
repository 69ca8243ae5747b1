"""Segments that no table has: users by activity or relevant items, and items by popularity.

Stage of the pipeline: before the tables are read, a ``Question`` gets their columns.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import polars as pl

from rankframe._request.question import Question
from rankframe._request.types import Frame
from rankframe._tables import adapters, readers
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError, option

#: What is counted to put users or items into segments.
_MEANINGS: Mapping[str, str] = {
    "activity": "users by their number of items in the history",
    "popularity": "items of the truth by their number of users in the history",
    "relevant_items": "users by their number of relevant items",
}
_BINS = 4
_SPELLING = re.compile(rf"({'|'.join(_MEANINGS)})(?:\(([^()]*)\))?")
_NUMBER, _BIN = "__rankframe_number", "__rankframe_bin"


class _Segment(NamedTuple):
    name: str  # of the column, as the caller wrote it
    kind: str
    edges: list[int] | None  # the least number of each bin but the first
    bins: int = _BINS


def segment_of(name: str) -> _Segment | None:
    """Read ``activity``, with four quantile bins, ``activity(bins=3)`` or ``activity(5,20)``."""
    match = _SPELLING.fullmatch(name)
    if match is None:
        return None
    kind, text = match[1], (match[2] or f"bins={_BINS}").replace(" ", "")
    if (number := text.removeprefix("bins=")) != text and number.isdecimal() and int(number):
        return _Segment(name, kind, None, int(number))
    edges = [int(edge) if edge.isdecimal() else 0 for edge in text.split(",")]
    if 0 in edges or edges != sorted({*edges}):
        msg = (
            f"by: {name!r} has no bins: write {kind!r} for {_BINS} quantile bins, '{kind}(bins=3)' "
            f"for others, or '{kind}(5,20)' for below 5, 5 to 19 and from 20"
        )
        raise ValueError(msg)
    return _Segment(name, kind, edges)


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


def _with_column(question: Question, segment: _Segment, by: Sequence[str]) -> Question:
    frames, columns = (question.frame, question.truth), question.settings.columns
    for title, frame in zip(("run", "truth"), frames, strict=True):
        if frame is not None and segment.name in adapters.column_names(frame, title):
            meaning = f"{option('by', segment.name)} also means {_MEANINGS[segment.kind]}"
            msg = f"{title}, column {segment.name!r}: {meaning}: rename the column"
            raise RankingDataError(msg)
    tables = readers.read_run_and_truth(*frames, by, columns, run_alone=question.lists_alone)
    counts = _counts(question, segment, tables)
    last, by_item = tables[-1], segment.kind == "popularity"
    key, value = last.item if by_item else last.user, pl.col(_NUMBER).fill_null(0)
    edges = segment.edges
    if edges is None:
        ids = last.frame.select(key).unique().join(_of_type(counts, key, last), on=key, how="left")
        numbers = ids.select(value, number_of_bin(value, segment.bins).alias(_BIN))
        edges = numbers.group_by(_BIN).min().collect()[_NUMBER].sort().to_list()[1:]
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
        numbers = _of_type(counts, key, table)
        rows = opened.lazy().join(numbers, on=key, how="left", maintain_order="left")
        rows = rows.with_columns(label.alias(segment.name)).drop(_NUMBER)
        longer = rows.collect() if isinstance(opened, pl.DataFrame) else rows
        adapters.keep_notes(longer, opened)
        return longer

    truth = None if question.truth is None else extended(cast("Frame", question.truth), last)
    # a list is in the segment of each item that its user wants
    frame = question.frame if by_item else extended(question.frame, tables[0])
    return question.of(frame, truth, question.totals)


def _counts(question: Question, segment: _Segment, tables: Sequence[Table]) -> pl.LazyFrame:
    """Count for each user, or for each item, what puts it into a segment."""
    settings, table = question.settings, tables[-1]
    of_history = segment.kind != "relevant_items"
    needs = {"history": of_history and settings.history is None}
    needs["truth"] = segment.kind != "activity" and question.truth is None
    needs["truth"] &= of_history or table.relevance is None
    for name in (name for name, is_missing in needs.items() if is_missing):
        meaning = f"{option('by', segment.name)} means {_MEANINGS[segment.kind]}"
        msg = f"{meaning}: pass {option(name)}, with users and items"
        raise RankingDataError(msg)
    if settings.history is not None and of_history:
        table = readers.read_beside("history", settings.history, tables[0], settings.columns)
    rows, key, other = table.frame, table.user, table.item
    if segment.kind == "popularity":
        key, other = other, key
    elif table.relevance is not None:
        grade, level = pl.col(table.relevance).cast(pl.Float64), settings.relevant_at
        rows = rows.filter(grade > 0 if level is None else grade >= level)
    return rows.group_by(key).agg(pl.col(other).n_unique().cast(pl.Int64).alias(_NUMBER))


def _of_type(counts: pl.LazyFrame, key: str, table: Table) -> pl.LazyFrame:
    """Cast the ids to the type of a table; what does not fit is an error when all are read."""
    return counts.with_columns(pl.col(key).cast(table.schema[key], strict=False)).drop_nulls(key)
