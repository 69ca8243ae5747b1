"""The judged table: one row per (by…, user, item), with its rank and its relevance.

Stage of the pipeline: ranks are made, rows excluded, and run and truth joined; the record is
``Joined``. The columns of the relevant rows are described in
:mod:`rankframe._vocabulary.derived_columns`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Literal

import polars as pl

from rankframe import _sizes, errors
from rankframe._request import registry, segment_names
from rankframe._request.registry import Scope
from rankframe._request.types import Types
from rankframe._tables import guards, rank_order, readers, rules, side_tables
from rankframe._tables.rank_order import IdRanges
from rankframe._tables.table import TRUTHS, Table, Tables
from rankframe.errors import RankingDataError, option

_PAIR, _TOP = "__rankframe_pair", "__rankframe_top"


@dataclass(frozen=True, eq=False, repr=False)
class Joined:
    """All tables with normalized columns: keys, item, rank, relevance; ids have common types.

    ``rows`` joins run and truth as a scope needs them; each plan is made when it is first asked.
    """

    tables: Tables
    run: pl.LazyFrame
    whole: pl.LazyFrame  # the run before ``exclude=`` removed rows
    truth: pl.LazyFrame
    inputs: Mapping[str, Table]  # the tables beside run and truth
    # of the truth, if known
    id_ranges: IdRanges = field(default_factory=dict[str, tuple[int, int]])
    groups: pl.LazyFrame | None = None  # those of the run that the truth lacks
    run_in_rank_order: pl.LazyFrame | None = None  # the run, if ranking left it in rank order
    top: str = "relevance"  # the column whose maximum is the highest grade

    def with_plans(self, **values: Any) -> Joined:
        """Return the same tables with some other plans; plans that were made stay."""
        other = copy(self)
        vars(other).update(values)
        return other

    def with_level(self, relevant_at: float | None) -> Joined:
        """Return the same tables with another grade from which items are relevant."""
        if relevant_at == self.tables.settings.relevant_at:
            return self
        settings = replace(self.tables.settings, relevant_at=relevant_at)
        return self.with_plans(tables=replace(self.tables, settings=settings))

    def rows(self, scope: Scope, *, graded: bool = True) -> pl.LazyFrame:
        """Return run and truth as a scope reduces them, with ranks and grades.

        Lists have all rows of both, one per item; subtopics, one per subtopic. Other scopes have
        those of the truth, of which ``graded`` may leave out those of grade 0.
        """
        if scope == "listed":
            return self._items
        if scope == "subtopic":
            return self._table
        if scope == "relevant" and graded and self.numbered:
            return self._graded_truth
        return self._ranked_truth

    @cached_property
    def _table(self) -> pl.LazyFrame:
        """Run and truth, joined; or the judged table."""
        return _joined(self.run, self.truth, self.tables.run)

    @cached_property
    def _items(self) -> pl.LazyFrame:
        of_run, of_truth = self.tables.run, self.tables.both[-1]
        if of_truth.subtopic is None:
            return self._table
        truth = _one_row_per_item(self.truth, replace(of_truth, by=of_run.by))
        return _joined(self.run, truth, of_run)

    @cached_property
    def _ranked_truth(self) -> pl.LazyFrame:
        of_run, of_truth = self.tables.run, self.tables.both[-1]
        if self.numbered:
            return self._in_each_group(_one_row_per_item(_rows(of_truth, self.tables), of_truth))
        truth = _one_row_per_item(self.truth, replace(of_truth, by=of_run.by))
        return _ranked_truth(self.run, truth, self.tables, self.id_ranges)

    @cached_property
    def _graded_truth(self) -> pl.LazyFrame:
        of_truth = self.tables.both[-1]
        truth = _one_row_per_item(_rows(of_truth, self.tables), of_truth)
        return self._in_each_group(truth.filter(pl.col("relevance") > 0))

    def _in_each_group(self, truth: pl.LazyFrame) -> pl.LazyFrame:
        return _ranked_truth(self.run, truth, self.tables, self.id_ranges, self.groups)

    @cached_property
    def placed(self) -> pl.LazyFrame:
        """The rows of the lists with only keys and rank, or with all columns."""
        run, tables = self.tables.run, self.tables
        if tables.truth is None or run.truth_groups or run.rank is None or run.tied:
            return self.run
        if tables.exclusions:
            return self.run
        # read separately: otherwise the whole run waits in memory until the join begins
        narrow = replace(run, frame=run.frame.select(*run.keys, run.rank))
        return _retrieved(_with_types(normalize_columns(narrow), run, run.keys, tables.types))

    @cached_property
    def numbered(self) -> Sequence[str]:
        """The groups that a column of the truth's rows numbers: each has all rows of the truth."""
        few = self.groups is None or _are_few(self.tables)
        return () if few or _counts_lists_alone(self.tables) else self.tables.lacking

    @cached_property
    def rows_as_passed(self) -> pl.LazyFrame:
        """The rows of a judged table with the ranks that it came with."""
        return self._table

    @cached_property
    def counts_show_duplicates(self) -> bool:
        """Whether a duplicate item in a list makes more rows than the truth has."""
        return self.tables.truth is not None and not self.tables.has_subtopics

    @cached_property
    def types(self) -> Types:
        """The types of the keys, the item and the relevance."""
        return self.tables.types

    @cached_property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return self.tables.run.keys

    @cached_property
    def item(self) -> str:
        """The column that identifies the item."""
        return self.tables.run.item

    @property
    def top_grade(self) -> pl.Expr:
        """The highest grade of the whole truth."""
        totals = self.tables.run.totals
        if totals is None:
            return pl.col(self.top).max()
        # a part without judgments has no grade: an untyped null is not a number
        return pl.lit(totals.top_grade, None if totals.top_grade is not None else pl.Float64)

    @property
    def columns_of_lists(self) -> frozenset[str]:
        """Return the columns outside the vocabulary that only the lists have, if known."""
        run, truth = self.tables.run, self.tables.truth
        if not self.tables.has_truth:
            return frozenset(run.schema)
        return frozenset() if truth is None else frozenset(run.schema) - frozenset(truth.schema)


# ------------------------------------------------------------------ the pipeline


def judge(tables: Tables) -> Joined:
    """Rank the lists, remove excluded rows, and join the truth."""
    inputs = {name: _input_rows(table, tables.types) for name, table in tables.beside.items()}
    if tables.truth is None:
        return _judge_alone(tables, inputs)
    of_run, of_truth = tables.run, tables.truth
    run_in_rank_order = _ranked_alone(tables)
    run = _retrieved(_rows(of_run, tables)) if run_in_rank_order is None else run_in_rank_order
    truth, id_ranges = _rows(of_truth, tables), rank_order.id_ranges_of(of_run, of_truth)
    groups, top = None, "relevance"
    if tables.lacking:
        groups = rank_order.distinct(run, tables.lacking).cache()
        if of_run.totals is not None and of_run.totals.groups is not None:
            groups = of_run.totals.groups.lazy()
        if _counts_lists_alone(tables):  # the product would be groups × truth
            lists = rank_order.distinct(run, [of_run.user, *tables.lacking])
            top = _TOP
            truth = truth.with_columns(pl.col("relevance").max().alias(top))
            truth = truth.join(lists, on=of_run.user)
        else:  # each group has all rows of the truth
            _check_product(tables, of_run, of_truth)
            truth = truth.join(groups, how="cross")
    if of_run.truth_groups:
        run = run.drop_nulls(of_run.truth_groups)
    whole, run = run, _moved_up(run, tables, inputs)
    return Joined(tables, run, whole, truth, inputs, id_ranges, groups, run_in_rank_order, top)


def _judge_alone(tables: Tables, inputs: Mapping[str, Table]) -> Joined:
    """Split a judged table, or take a run alone."""
    table = tables.run
    rows = _rows(table, tables)
    items = _one_row_per_item(rows, table)
    whole = _retrieved(items)
    run = _moved_up(whole, tables, inputs)
    if not tables.has_truth:
        return _alone(tables, run, whole, inputs)
    plans = {"rows_as_passed": items} if tables.exclusions else {}
    if tables.exclusions:
        rows = _with_ranks_of(run, rows, table)
        items = _with_ranks_of(run, items, table) if tables.has_subtopics else rows
    truth = items.filter(pl.col("relevance").is_not_null())
    id_ranges = rank_order.id_ranges_of(table, table)
    plans |= {"_table": rows, "_items": items, "_ranked_truth": truth}
    return Joined(tables, run, whole, truth, inputs, id_ranges).with_plans(**plans)


def _alone(
    tables: Tables, run: pl.LazyFrame, whole: pl.LazyFrame, inputs: Mapping[str, Table]
) -> Joined:
    """Return a run without a truth."""
    lists = Joined(tables, run, whole, run.clear(), inputs)
    return lists.with_plans(_table=run, _items=run, _ranked_truth=run)


def with_grades(joined: Joined, grade: pl.Expr, kept: pl.Expr | None = None) -> Joined:
    """Replace the grades of all rows that are kept, which makes each of them one of the truth."""
    by_scope = (joined.rows("subtopic"), joined.rows("listed"))
    table, items = (
        (rows if kept is None else rows.filter(kept)).with_columns(relevance=grade)
        for rows in by_scope
    )
    return with_items(joined, items, table)


def with_items(joined: Joined, items: pl.LazyFrame, table: pl.LazyFrame | None = None) -> Joined:
    """Replace the rows of run and truth, one per item; the users and their groups stay."""
    plans = {"_table": items if table is None else table, "_items": items, "_ranked_truth": items}
    return joined.with_plans(id_ranges={}, numbered=(), counts_show_duplicates=False, **plans)


def unranked(tables: Tables) -> Joined:
    """Remove excluded rows from a run, and number its rows; only empty places make its ranks."""
    inputs = {name: _input_rows(table, tables.types) for name, table in tables.beside.items()}
    rows = tables.run.frame.with_row_index(rank_order.INDEX)
    kept = _moved_up if tables.settings.duplicates == "occupy" else without_excluded
    return _alone(tables, kept(rows, tables, inputs), rows, inputs)


def _counts_lists_alone(tables: Tables) -> bool:
    """Whether judgments of users without a list in a group change none of its numbers."""
    if not tables.lacking or tables.reads is None or tables.run.totals is not None:
        return False
    if rules.counts_misses(tables.settings.users):
        return False
    return registry.reading_of(tables.reads, inputs=tables.beside).scope != "shares"


def _check_product(tables: Tables, run: Table, truth: Table) -> None:
    """Before a product that takes long, check all rules on rows in memory, and warn."""
    if run.rows is None or truth.rows is None or run.totals is not None:
        return
    rows, most = run.rows.height + truth.rows.height, _sizes.TIMES_IN_PRODUCT
    if run.rows.height * truth.rows.height <= most * rows:
        return
    groups = rank_order.distinct(run.frame, tables.lacking).select(pl.len()).collect().item()
    product = groups * truth.rows.height
    if product <= most * rows:
        return
    rules.raise_in_tables(tables.both, tables.users)
    of_users = [name for name in tables.lacking if name != run.model]
    cures = [f"join {', '.join(map(repr, of_users))} to the {truth.name}"] if of_users else []
    if rules.counts_misses(tables.users):
        cures.append(
            f"pass {option('users', 'both')} if a user without a list in a group does not count "
            "there"
        )
    errors.warn(
        f"{option('by')}: each of {groups:,} groups of {', '.join(map(repr, tables.lacking))} is "
        f"judged by the whole {truth.name}, which makes {product:,} rows, {product / rows:,.0f} "
        f"times those of both tables: {', or '.join(cures) or 'evaluate few groups at a time'}"
    )


def _are_few(tables: Tables) -> bool:
    """Whether joining all groups of the truth at once takes less time than one group first."""
    frames = [table.rows for table in tables.both]
    rows = sum(math.inf if frame is None else frame.height for frame in frames)
    return rows <= _sizes.ROWS_JOINED_AT_ONCE


def _rows(table: Table, tables: Tables) -> pl.LazyFrame:
    """Return the rows of a table with normalized columns and common types."""
    frame = normalize_columns(table, single_precision=tables.settings.single_precision)
    return _with_types(frame, table, table.ids, tables.types)


def _ranked_alone(tables: Tables) -> pl.LazyFrame | None:
    """Rank a run of which only ranks are read; it may lose other columns, and unranked rows."""
    run = tables.run
    if tables.reads is None or {*run.schema} & {*tables.reads} - {run.user, run.item}:
        return None
    single_precision = tables.settings.single_precision
    return rank_order.ranked_alone(run, tables.types, single_precision=single_precision)


def _retrieved(rows: pl.LazyFrame) -> pl.LazyFrame:
    return rows.filter(pl.col("rank").is_not_null())


def _input_rows(table: Table, types: Types) -> Table:
    """Return the rows that columns are derived from, with ids of common types."""
    frame = normalize_columns(table)
    if table.name != option("items"):  # the caller's other columns would clash with derived ones
        frame = frame.select(table.ids)
    frame = _with_types(frame, table, table.ids, types)
    return replace(table, frame=frame)


def _moved_up(run: pl.LazyFrame, tables: Tables, inputs: Mapping[str, Table]) -> pl.LazyFrame:
    """Remove the rows of ``exclude=`` from the lists, and move up those below."""
    if not tables.exclusions:
        return run
    kept = partial(without_excluded, tables=tables, inputs=inputs)
    return rank_order.moved_up(run, tables.run.keys, kept, tied=tables.tied)


def without_excluded(
    rows: pl.LazyFrame, tables: Tables, inputs: Mapping[str, Table]
) -> pl.LazyFrame:
    for excluded in map(inputs.__getitem__, tables.exclusions):
        of_run = [pl.col(name).cast(tables.types[name]) for name in excluded.ids]
        rows = rows.join(excluded.frame, left_on=of_run, right_on=excluded.ids, how="anti")
    return rows


def _with_ranks_of(run: pl.LazyFrame, rows: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """Set the ranks of a judged table to those of the run, null where it lacks them."""
    placed = ["rank", *(["tied"] if table.tied else [])]
    ranked = rows.drop(placed).join(run.select(*table.ids, *placed), on=table.ids, how="left")
    return ranked.filter(_is_held(table.item))


def _is_held(item: str) -> pl.Expr:
    """Whether a row is retrieved or judged, or has its user alone."""
    return pl.any_horizontal(pl.col("rank", "relevance").is_not_null(), pl.col(item).is_null())


def input_flags(joined: Joined) -> list[pl.LazyFrame]:
    """Flags over the tables beside run and truth."""
    tables, run = joined.tables, joined.tables.run
    flags = side_tables.flags_of(tables, _meeting_lists(joined), joined.whole)
    if tables.exclusions and run.totals is None:
        flags.append(guards.flag(joined.run, pl.len() == 0))
    return flags


def raise_broken_input(joined: Joined) -> None:
    """Raise for the first rule that a table beside run and truth breaks, and for deep ranks."""
    tables, run = joined.tables, joined.tables.run
    _raise_deep_rank(joined)
    side_tables.raise_beside(tables.beside)
    side_tables.raise_if_nothing_meets(_meeting_lists(joined), run, joined.whole)
    if not tables.exclusions or run.totals is not None:
        return
    if joined.run.head(1).collect().is_empty():
        msg = (
            f"{option('exclude')}: it has every row of the run, so no list has an item left: pass "
            "only items that must not be shown, such as the interactions of the training set"
        )
        raise RankingDataError(msg)


def _meeting_lists(joined: Joined) -> Mapping[str, Table]:
    """Return the tables whose ids must be in the lists: no history that only counts items."""
    tables = joined.tables
    if tables.reads is None or not any(map(segment_names.is_of_items, tables.run.by)):
        return joined.inputs
    columns = registry.reading_of(tables.reads, inputs=tables.beside).columns.values()
    is_read = any("history" in column.source for column in columns)
    return {name: table for name, table in joined.inputs.items() if is_read or name != "history"}


def _raise_deep_rank(joined: Joined) -> None:
    """Raise for a rank that has no room in one number with its group."""
    run = joined.tables.run
    if not joined.numbered or run.rank is None:
        return
    greatest, groups = rank_order.PLACES, ", ".join(joined.numbered)
    text = (
        f"a rank above {greatest:,}, which is too large with {option('by')} ({groups}) and a "
        "truth for all groups: rank the lists from 1, or filter one group at a time"
    )
    deep = rules.Rule(run.name, run.rank, text, rules.as_rank(run.rank) > greatest)
    rules.raise_first([deep], run.frame, rules.role_columns(run))


def _with_types(
    frame: pl.LazyFrame, table: Table, names: Sequence[str], types: Types
) -> pl.LazyFrame:
    """Cast columns of a table to common types."""
    casts = [pl.col(name).cast(types[name]) for name in names if table.schema[name] != types[name]]
    return frame.with_columns(casts) if casts else frame


def _ranked_truth(
    run: pl.LazyFrame,
    judgments: pl.LazyFrame,
    tables: Tables,
    id_ranges: IdRanges,
    groups: pl.LazyFrame | None = None,
) -> pl.LazyFrame:
    """Add the ranks to the items of the truth: the first step of every metric of relevant items.

    Each of the ``groups``, if passed, gets all of the judgments.
    """
    table, keys = tables.run, tables.run.ids
    pairs = rank_order.pair_codes(table.user, table.item, tables.types, id_ranges)
    held: Literal["force_left", "force_right"] = "force_right"
    if pairs is None:
        on, drop = keys, list[str]()
    else:
        on, drop = [*table.by, _PAIR], [_PAIR]
        of_run, of_truth = pairs
        run = run.with_columns(of_run.alias(_PAIR)).drop(table.user, table.item)
        judgments = judgments.with_columns(of_truth.alias(_PAIR))
    if groups is not None:
        # to hold the judgments of all groups took 1.2 times as long, and 1.6 of the memory
        numbers = rank_order.numbered_groups(groups, tables.lacking)
        on = [name for name in on if name not in tables.lacking]
        hits = run.join(judgments.select(on), on=on, how="semi", build_side=held)
        run = hits.join(numbers, on=tables.lacking).drop(tables.lacking)
        judgments = judgments.join(numbers, how="cross")
        on, held = [rank_order.GROUP, *on], "force_left"
    joined = run.join(judgments, on=on, how="right", build_side=held)
    return joined.select(*keys, "rank", "relevance", pl.exclude(*keys, "rank", "relevance", *drop))


def _joined(run: pl.LazyFrame, judgments: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    keys = table.ids
    # otherwise polars holds the run (300 M rows) in memory, instead of the truth (30 M)
    joined = run.join(judgments, on=keys, how="full", coalesce=True, build_side="force_right")
    return joined.select(*keys, "rank", "relevance", pl.exclude(*keys, "rank", "relevance"))


def _one_row_per_item(frame: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """Keep the row with the highest grade of each item, if the table has one row per subtopic."""
    if table.subtopic is None:
        return frame
    best_first = frame.sort("relevance", "subtopic", descending=True, nulls_last=True)
    best = best_first.unique(table.ids, keep="first", maintain_order=True)
    return best.drop("subtopic")


def guarded_judged(joined: Joined) -> pl.LazyFrame:
    """Return the judged table, checked when the plan runs."""
    flags = [*table_flags(joined), rows_flag(joined, joined.rows("listed")), *input_flags(joined)]
    raise_global = partial(rules.raise_first_global, joined.tables.both)
    return guards.guarded(
        joined.rows("subtopic"), flags, partial(raise_broken, joined), raise_global=raise_global
    )


def raise_broken(joined: Joined) -> None:
    """Raise for the first rule that a table breaks."""
    rules.raise_in_tables(joined.tables.both)
    raise_broken_input(joined)


def table_flags(joined: Joined, *, count: bool = False) -> list[pl.LazyFrame]:
    """Flags over every row of both tables; with ``count`` they count the relevant rows."""
    run, truth = joined.tables.run, joined.tables.truth
    once = count and truth is not None and truth.by == run.by  # otherwise, each group has all
    flags = [guards.table_flag(run)]
    if truth is not None:
        flags.append(guards.table_flag(truth, count=once))
        if count and not once:
            flags.append(_positive_of_groups(joined, truth))
    if joined.tables.tied:
        flags.append(guards.table_rules_flag(run))
    if run.score is not None:  # a duplicate item shifts the ranks below it
        flags.append(guards.lists_flag(run, joined.run_in_rank_order))
    if joined.tables.has_subtopics:
        flags.append(guards.table_rules_flag(joined.tables.both[-1]))
    return flags


def _positive_of_groups(joined: Joined, truth: Table) -> pl.LazyFrame:
    """Subtract the relevant rows from the sum: each group that the truth lacks has all of them."""
    if joined.groups is None or _counts_lists_alone(joined.tables):
        positive = (pl.col("relevance") > 0).sum().cast(pl.Int64)
        return guards.flag(joined.truth, pl.lit(value=False), -positive)
    number = joined.groups.select(groups=pl.len().cast(pl.Int64))
    of_each = guards.table_flag(truth, count=True).select("balance")
    product = pl.col("balance") * pl.col("groups")
    return guards.flag(of_each.join(number, how="cross"), pl.lit(value=False), product)


def rows_flag(joined: Joined, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Flag over the rows of grade > 0."""
    table = joined.tables.run
    lists = rows.filter(pl.col("relevance") > 0).group_by(table.keys)
    aggregates = guards.check_aggregates(
        table.item, hit=pl.col("rank"), shared=guards.shares_rank(tied=joined.tables.tied)
    )
    doubt = guards.any_doubt(joined.tables.both)
    return guards.flag(lists.agg(aggregates), guards.any_violation(), doubt=doubt)


def normalize_columns(table: Table, *, single_precision: bool = False) -> pl.LazyFrame:
    """Rename rank, relevance and subtopic; make the rank Int64 and the relevance a number."""
    frame = table.frame
    if table.rank is not None:
        frame = renamed(frame, table.rank, "rank").with_columns(rules.as_rank("rank"))
        if table.tied:
            frame = frame.with_columns(rules.as_rank("tied"))
    elif table.score is not None and table.passed is None:  # else it has places
        frame = rank_order.ranked(frame, table, single_precision=single_precision)
    if table.relevance is not None:
        frame = renamed(frame, table.relevance, "relevance")
        dtype = readers.type_of_relevance(table)
        if table.schema[table.relevance] != dtype:
            frame = frame.with_columns(pl.col("relevance").cast(dtype))
    elif table.name in TRUTHS:
        frame = frame.with_columns(relevance=pl.lit(1, pl.Int64))
    if table.subtopic is not None:
        frame = renamed(frame, table.subtopic, "subtopic")
    if table.score is not None and table.relevance is not None:
        frame = frame.filter(_is_held(table.item))
    return frame


def renamed(frame: pl.LazyFrame, old: str, new: str) -> pl.LazyFrame:
    return frame if old == new else frame.rename({old: new})
