"""The lists of one user, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import NamedTuple, Unpack

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns, Duplicates, Settings
from rankframe._request.question import Totals
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import (
    adapters,
    guards,
    judgment,
    rank_order,
    readers,
    rules,
    run_dicts,
    side_tables,
)
from rankframe._tables.table import Table, Tables
from rankframe.errors import RankingDataError

_BEFORE = "__rankframe_before"


class _Side(NamedTuple):
    """A list in the result: its system, and the names of its columns."""

    system: object
    items: str
    grade: str


@adapters.takes_any_frame
def side_by_side(
    frame: Runs[FrameT],
    user_id: object = ...,
    /,
    k: int = 10,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    items: Frame | None = None,
    queries: Frame | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Return the lists of two systems for one user, side by side.

    Parameters
    ----------
    frame
        A run (user, item, rank or score), or a judged table; or a dict of these by name, as
        ``runs.stack`` takes it.
    user_id
        The user whose lists are shown, by position; of several columns, a tuple of their values, or
        a dict of these by name.
    k
        Cut-off.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as fold or day, with lists of their own.
    baseline
        The system of the first list, by default the first one; the other is the second list.
    items
        The catalogue, whose columns of text, such as a title, are added.
    queries
        The texts of the queries (or of other users), one row per query: its columns of text come
        before the ranks.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per rank, up to k or the end of the longer list: groups…, ``rank`` (Int64), the
        baseline's items in a column with its name, ``<baseline>_grade``, the system's items in a
        column with its name, ``<system>_grade``, and ``moved`` (Int64): how many ranks higher the
        item is than in the whole list of the baseline, negative if lower, null if it is not there.
        A grade is null if the item is unjudged; without a truth there are no grades. Each column of
        text follows its items as ``<system>_<column>``. A single list has ``rank``, its items,
        ``grade`` and the text; for a run without systems, the column of items keeps its name.
        Sorted unless lazy.

        If only one of the systems has a list for the user, the columns of the other are null.

    Raises
    ------
    RankingDataError
        If the rows of the user break a rule (see ``check``), or a system has the name of a column
        of the result.
    ValueError
        If neither system has a list of the user, or there are more than two systems.

    Notes
    -----
    The names of the systems are columns of the result, so those of a LazyFrame are read at the
    call. Only the rows of the user are checked.

    Examples
    --------
    >>> old = pl.DataFrame({"user": 1, "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> new = pl.DataFrame({"user": 1, "item": ["c", "a", "d"], "rank": [1, 2, 3]})
    >>> truth = pl.DataFrame({"user": 1, "item": ["c", "d"], "relevance": [2, 1]})
    >>> rf.runs.side_by_side({"old": old, "new": new}, 1, 3, truth=truth, baseline="old")
    shape: (3, 6)
    ┌──────┬─────┬───────────┬─────┬───────────┬───────┐
    │ rank ┆ old ┆ old_grade ┆ new ┆ new_grade ┆ moved │
    │ ---  ┆ --- ┆ ---       ┆ --- ┆ ---       ┆ ---   │
    │ i64  ┆ str ┆ i64       ┆ str ┆ i64       ┆ i64   │
    ╞══════╪═════╪═══════════╪═════╪═══════════╪═══════╡
    │ 1    ┆ a   ┆ null      ┆ c   ┆ 2         ┆ 2     │
    │ 2    ┆ b   ┆ null      ┆ a   ┆ null      ┆ -1    │
    │ 3    ┆ c   ┆ 2         ┆ d   ┆ 1         ┆ null  │
    └──────┴─────┴───────────┴─────┴───────────┴───────┘
    """
    if user_id is ...:
        msg = (
            "side_by_side needs a user, by position behind the frame, as in "
            "side_by_side(frame, 7); user= names the column of users"
        )
        raise TypeError(msg)
    k = keywords.whole_number("k", k)
    frame, groups, columns = run_dicts.as_frame(frame, by, columns, duplicates=duplicates)
    settings = Settings(items=items, duplicates=duplicates, columns=columns)
    both = readers.read_run_and_truth(
        frame, truth, groups, columns, reads=(), run_alone=True, any_name=True
    )
    beside: dict[str, Table] = {}
    if queries is not None:
        beside["queries"] = side_tables.read_queries(queries, both[0], columns)
    tables = readers.with_tables_beside(both, settings, beside)
    run = tables.run
    if run.item == readers.ROW_NUMBER:
        raise readers.without_items(what="side_by_side")
    rules.raise_if_tied(run)
    sides = _sides(run, baseline)
    texts, of_query = (
        side_tables.texts_of(tables.beside[name]) if name in tables.beside else []
        for name in ("items", "queries")
    )
    outer_groups = run.segments
    _check_names(run, sides, texts, of_query)
    parts = [_of_user(table, user_id) for table in tables.both]
    whole = _with_texts(_graded(parts), tables, texts)
    result = _shown(whole, tables, sides, k, texts)
    if of_query:
        own = _of_user(tables.beside["queries"], user_id).frame.select(of_query).head(1)
        text = own.with_columns(pl.lit(1).alias(_BEFORE))  # null if the table lacks the query
        result = result.with_columns(pl.lit(1).alias(_BEFORE)).join(text, on=_BEFORE, how="left")
        result = result.select(
            *outer_groups, *of_query, pl.exclude(*outer_groups, *of_query, _BEFORE)
        )

    chosen = pl.concat([_of_system(whole, run, side) for side in sides])
    flags = [flag(part) for flag in (guards.table_flag, guards.lists_flag) for part in parts]
    flags += side_tables.flags_of(tables, {}, whole)
    flags.append(guards.flag(chosen, pl.len() == 0))
    flags += [guards.table_flag(table) for table in tables.both if table.ungraded is not None]
    raise_broken = partial(_raise_broken, parts, tables, chosen, user_id, sides)
    checked = guards.guarded(result, flags, raise_broken)
    return adapters.to_caller_type(
        checked, like=frame, beside=[truth, items, queries], sort=[*outer_groups, "rank"]
    )


def _sides(run: Table, baseline: object) -> list[_Side]:
    """Choose the systems that are shown, the baseline first."""
    model = run.model
    if model is None:
        if baseline is not None:
            msg = f"baseline={baseline!r}: the run has no systems; name their column with model="
            raise ValueError(msg)
        return [_Side(None, run.item, "grade")]
    column = run.frame.select(pl.col(model).drop_nulls().unique()).collect().to_series()
    systems = column.sort().to_list()
    if not systems:
        msg = "run: it is empty"
        raise RankingDataError(msg)
    if baseline is not None and baseline not in systems:
        msg = f"baseline must be one of {', '.join(map(repr, systems))}, not {baseline!r}"
        raise ValueError(msg)
    if len(systems) > 2:
        msg = (
            f"side_by_side shows two systems, and there are {len(systems)}, "
            f"{', '.join(map(repr, systems))}: keep two of them, such as "
            f"run.filter(pl.col({model!r}).is_in({systems[:2]!r}))"
        )
        raise ValueError(msg)
    if len(systems) == 1:
        return [_Side(systems[0], str(systems[0]), "grade")]
    first, second = reversed(systems) if baseline == systems[1] else systems
    return [
        _Side(first, str(first), f"{first}_grade"),
        _Side(second, str(second), f"{second}_grade"),
    ]


def _check_names(
    run: Table, sides: Sequence[_Side], texts: Sequence[str], of_query: Sequence[str]
) -> None:
    """Check that no two columns of the result have one name."""
    own = [*run.segments, "rank", "moved" if len(sides) > 1 else "grade"]
    parts = [(f"queries=, column {name!r}", [name]) for name in of_query]
    for side in sides:
        what = f"run, system {side.system!r}" if run.model else f"run, column {side.items!r}"
        names = [side.items, *(f"{side.items}_{name}" for name in texts)]
        parts.append((what, names + ([side.grade] if side.grade != "grade" else [])))
    for what, names in parts:
        if taken := next((name for name in names if name in own), None):
            msg = f"{what}: side_by_side would make two columns {taken!r}: rename it"
            raise RankingDataError(msg)
        own += names


def _of_user(table: Table, user: object) -> Table:
    """Keep the rows of the user; the rules on whole tables do not hold of them."""
    dtype = table.schema[table.user]
    try:
        frame = table.frame.filter(_is(table.user, dtype, user))
    except (TypeError, OverflowError, ValueError, pl.exceptions.PolarsError):
        msg = f"user {user!r}: the ids of column {table.user!r} are {dtype}"
        raise ValueError(msg) from None
    return replace(table, frame=frame, rows=None, totals=Totals(None, None))


def _is(name: str, dtype: pl.DataType, value: object) -> pl.Expr:
    """Whether a column has this value, of its type."""
    own = pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype
    column = rank_order.as_comparable(name, dtype)
    return column == pl.lit(pl.Series([value], dtype=own)).first()


def _graded(parts: Sequence[Table]) -> pl.LazyFrame:
    """Return the whole lists: keys, item and rank, and the relevance if there is one."""
    run = parts[0]
    rows = judgment.normalize_columns(run)
    if len(parts) == 1:
        grades = [pl.col("relevance").max()] if run.relevance is not None else []
        rows = rows.group_by(run.ids).agg(pl.col("rank").min(), *grades)
        return rows.filter(pl.col("rank").is_not_null())
    truth = parts[1]
    types = [pl.col(name).cast(dtype) for name, dtype in rules.same_types(run, truth).items()]
    judgments = judgment.normalize_columns(truth).with_columns(types)
    judgments = judgments.group_by(truth.ids).agg(pl.col("relevance").max())
    rows = rows.filter(pl.col("rank").is_not_null()).select(*run.ids, "rank").with_columns(types)
    return rows.join(judgments, on=truth.ids, how="left")


def _with_texts(rows: pl.LazyFrame, tables: Tables, texts: Sequence[str]) -> pl.LazyFrame:
    if not texts:
        return rows
    items = tables.beside["items"]
    keys = items.ids
    ids = [pl.col(name).cast(tables.types[name]) for name in keys]
    catalogue = items.frame.group_by(keys).agg(pl.col(texts).first())
    catalogue = catalogue.with_columns(ids).rename({name: _ridden(name) for name in texts})
    return rows.with_columns(ids).join(catalogue, on=keys, how="left")


def _ridden(name: str) -> str:
    return f"__rankframe_text_{name}"


def _of_system(rows: pl.LazyFrame, run: Table, side: _Side) -> pl.LazyFrame:
    if run.model is None:
        return rows
    return rows.filter(_is(run.model, run.schema[run.model], side.system))


def _shown(
    rows: pl.LazyFrame, tables: Tables, sides: Sequence[_Side], k: int, texts: Sequence[str]
) -> pl.LazyFrame:
    """Put the lists side by side, rank by rank."""
    run = tables.run
    on = [*run.segments, "rank"]
    item = pl.col(run.item)
    of_sides: list[pl.LazyFrame] = []
    for side in sides:
        columns = [item.alias(side.items)]
        columns += [pl.col(_ridden(name)).alias(f"{side.items}_{name}") for name in texts]
        columns += [pl.col("relevance").alias(side.grade)] if tables.has_truth else []
        listed = _of_system(rows, run, side).filter(pl.col("rank") <= k)
        if side is not sides[0]:
            pairs = [*run.segments, run.item]
            before = _of_system(rows, run, sides[0])
            before = before.select(*pairs, pl.col("rank").alias(_BEFORE))
            listed = listed.join(before, on=pairs, how="left")
            columns.append((pl.col(_BEFORE) - pl.col("rank")).alias("moved"))
        of_sides.append(listed.select(*on, *columns))
    if len(of_sides) == 1:
        return of_sides[0]
    return of_sides[0].join(of_sides[1], on=on, how="full", coalesce=True, nulls_equal=True)


def _raise_broken(
    parts: list[Table], tables: Tables, chosen: pl.LazyFrame, user: object, sides: list[_Side]
) -> None:
    """Raise for the rule that is broken, or a user without a list."""
    for part in parts:
        rules.raise_if_ungraded(part)
    rules.raise_in_tables(parts)
    side_tables.raise_beside(tables.beside)
    run = tables.run
    if chosen.head(1).collect().is_empty():
        names = " or ".join(repr(side.system) for side in sides)
        of = f" of {names}" if run.model else ""
        example = run.frame.select(pl.col(run.user).min()).collect().item()
        msg = f"user {user!r} has no list{of}; the run has users like {example!r}"
        raise ValueError(msg)
