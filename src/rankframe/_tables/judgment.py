"""The judged table: one row per (by…, user, item), with its rank and its relevance.

Stage of the pipeline: ranks are made, rows excluded, and run and truth joined; the record is
``Judged``. The columns of the relevant rows are described in
:mod:`rankframe._vocabulary.derived_columns`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns, Settings
from rankframe._request.question import Totals
from rankframe._request.types import Frame
from rankframe._tables import column_roles, guards, rank_order, readers, rules, side_tables
from rankframe._tables.rank_order import Bounds
from rankframe._tables.side_tables import Inputs
from rankframe._tables.table import Input, Table
from rankframe.errors import RankingDataError

_PAIR = "__rankframe_pair"
_BEFORE, _AFTER = "__rankframe_before", "__rankframe_after"


class Judged(NamedTuple):
    """Both tables with normalized columns: keys, item, rank, relevance.

    ``items`` is the judged table itself. If that has one row per subtopic, ``items`` has one row
    per item. ``ranked_truth`` has those of its rows that are in the truth.
    """

    tables: list[Table]
    types: Mapping[str, pl.DataType]  # of the keys, the item and the relevance
    run: pl.LazyFrame
    truth: pl.LazyFrame
    judged: pl.LazyFrame
    items: pl.LazyFrame
    ranked_truth: pl.LazyFrame
    bounds: Bounds  # of the rows of the truth, if known
    beside: Inputs = Inputs()
    inputs: Mapping[str, Input] = {}  # their rows, with ids of common types
    whole: pl.LazyFrame | None = None  # the run before ``exclude=`` removed rows
    # keys and ranks of the run, if reading them separately is better than holding the run
    lists: pl.LazyFrame | None = None
    groups: pl.LazyFrame | None = None  # those of the run that the truth lacks
    in_order: pl.LazyFrame | None = None  # the run, if ranking left it in rank order
    changed: bool = False  # whether judgments differ from those of the truth
    settings: Settings = Settings()

    @property
    def has_subtopics(self) -> bool:
        """Whether an item may have several rows."""
        return self.items is not self.judged

    @property
    def tied(self) -> bool:
        """Whether the lists have blocks of ties, so that metrics are expectations."""
        return self.tables[0].tied

    @property
    def counts_show_duplicates(self) -> bool:
        """Whether a duplicate item in a list makes more rows than the truth has."""
        return len(self.tables) == 2 and not (self.has_subtopics or self.changed)

    @property
    def has_truth(self) -> bool:
        """Whether anything is judged; metrics of lists alone need only a run."""
        return len(self.tables) == 2 or self.tables[0].relevance is not None

    @property
    def whole_run(self) -> pl.LazyFrame:
        """The lists as passed, with the rows that ``exclude=`` removes."""
        return self.run if self.whole is None else self.whole

    @property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return self.tables[0].keys

    @property
    def item(self) -> str:
        """The column that identifies the item."""
        return self.tables[0].item

    @property
    def placed(self) -> pl.LazyFrame:
        """The rows of the lists with only keys and rank, or with all columns."""
        return self.run if self.lists is None else self.lists

    @property
    def top_grade(self) -> pl.Expr:
        """The highest grade of the whole truth."""
        totals = self.tables[0].totals
        if totals is None:
            return pl.col("relevance").max()
        # a part without judgments has no grade: an untyped null is not a number
        return pl.lit(totals.top_grade, None if totals.top_grade is not None else pl.Float64)

    @property
    def of_lists(self) -> frozenset[str]:
        """Return the columns outside the vocabulary that only the lists have, if known."""
        if not self.has_truth:
            return frozenset(self.tables[0].schema)
        run, *truth = self.tables
        return frozenset(run.schema) - frozenset(truth[0].schema) if truth else frozenset()


# ------------------------------------------------------------------ the pipeline


def prepare_tables(
    frame: Frame,
    truth: Frame | None,
    by: str | Sequence[str],
    columns: Columns,
    *,
    reads: Collection[str] | None = None,
    reserved: Collection[str] = (),
    run_alone: bool = False,
    ranks_alone: bool = False,
    single_precision: bool = False,
    totals: Totals | None = None,
) -> Judged:
    """Normalize the columns of a run and its truth, of a judged table, or of a run alone.

    With ``ranks_alone``, the run may lose rows without a score and columns that ``reads`` lacks.
    """
    if truth is None and totals is None and (prepared := _remembered(frame, by, columns)):
        return prepared
    tables = readers.read_tables(
        frame, truth, by, columns, reads=reads, reserved=reserved, run_alone=run_alone
    )
    tables = [table._replace(totals=totals) for table in tables]
    types: dict[str, pl.DataType] = {
        name: tables[0].schema[name] for name in (*tables[0].keys, tables[0].item)
    }
    types["relevance"] = _type_of_relevance(tables[-1])
    if len(tables) == 1:
        judged = normalize_columns(tables[0], single_precision=single_precision)
        if tables[0].relevance is None:
            run = judged.filter(pl.col("rank").is_not_null())
            return Judged(tables, types, run, run.clear(), run, run, run, {})
        items = _one_row_per_item(judged, tables[0])
        run = items.filter(pl.col("rank").is_not_null())
        truth_rows = items.filter(pl.col("relevance").is_not_null())
        bounds = readers.bounds_of(tables[0], tables[0])
        return Judged(tables, types, run, truth_rows, judged, items, truth_rows, bounds)
    types |= rules.same_types(*tables)
    run, judgments = (
        _with_types(
            normalize_columns(table, single_precision=single_precision), table.schema, types
        )
        for table in tables
    )
    of_run, of_truth = tables
    in_order = lists = groups = None
    if (
        ranks_alone
        and reads is not None
        and {*of_run.schema}.isdisjoint({*reads} - {of_run.user, of_run.item})
    ):
        in_order = rank_order.ranked_alone(of_run, types, single_precision=single_precision)
    run = run.filter(pl.col("rank").is_not_null()) if in_order is None else in_order
    if of_run.rank is not None and not (of_run.tied or of_run.truth_groups):
        # read separately: otherwise the whole run waits in memory until the join begins
        narrow = of_run._replace(frame=of_run.frame.select(*of_run.keys, of_run.rank))
        schema = {name: of_run.schema[name] for name in of_run.keys}
        lists = _with_types(normalize_columns(narrow), schema, types)
        lists = lists.filter(pl.col("rank").is_not_null())
    if lacking := [name for name in of_run.by if name not in of_truth.by]:
        groups = run.select(lacking).unique()
        if totals is not None and totals.groups is not None:
            groups = totals.groups.lazy()
        judgments = judgments.join(groups, how="cross")
    if of_run.truth_groups:
        run = run.drop_nulls(of_run.truth_groups)
    bounds = readers.bounds_of(of_run, of_truth)
    if lacking:  # each group has all rows of the truth
        bounds.pop("rows", None)
    judged, items, ranked_truth = _judged_tables(run, judgments, tables, types, bounds)
    return Judged(
        tables,
        types,
        run,
        judgments,
        judged,
        items,
        ranked_truth,
        bounds,
        lists=lists,
        groups=groups,
        in_order=in_order,
    )


def _judged_tables(
    run: pl.LazyFrame,
    judgments: pl.LazyFrame,
    tables: Sequence[Table],
    types: Mapping[str, pl.DataType],
    bounds: Bounds,
) -> tuple[pl.LazyFrame, pl.LazyFrame, pl.LazyFrame]:
    """Join the run to the truth: ``judged``, ``items`` and ``ranked_truth`` of ``Judged``."""
    of_run, of_truth = tables
    judged = _joined(run, judgments, of_run)
    items = _one_row_per_item(judgments, of_truth._replace(by=of_run.by))
    ranked_truth = _ranked_truth(run, items, of_run, types, bounds)
    split = items is not judgments
    return judged, _joined(run, items, of_run) if split else judged, ranked_truth


def with_inputs(prepared: Judged, settings: Settings) -> Judged:
    """Add the tables beside run and truth; ids of all tables get their common type."""
    prepared = prepared._replace(settings=settings)
    if not settings.inputs:
        return prepared
    beside = side_tables.read_inputs(settings, prepared.tables[0])
    own_types = prepared.types
    types = side_tables.common_types(beside, pl.Schema(own_types))
    inputs = {
        name: side_tables.as_input(table, normalize_columns(table), types)
        for name, table in beside.tables().items()
    }
    differ = [pl.col(name).cast(dtype) for name, dtype in types.items() if own_types[name] != dtype]
    judged = prepared.judged.with_columns(differ)
    split = prepared.has_subtopics
    prepared = prepared._replace(
        types={**own_types, **types},
        run=prepared.run.with_columns(differ),
        truth=prepared.truth.with_columns(differ),
        judged=judged,
        items=prepared.items.with_columns(differ) if split else judged,
        ranked_truth=prepared.ranked_truth.with_columns(differ),
        lists=None if differ else prepared.lists,
        groups=None if differ else prepared.groups,
        beside=beside,
        inputs=inputs,
    )
    return _without_excluded(prepared) if "exclude" in inputs else prepared


def _without_excluded(prepared: Judged) -> Judged:
    """Remove the rows of ``exclude=`` from the lists, and move up those below; the truth stays."""
    table, *truth = prepared.tables
    whole = rank_order.with_places(prepared.run, table.keys, tied=prepared.tied, suffix=_BEFORE)
    kept = _not_excluded(whole, table, prepared.inputs, prepared.types)
    kept = rank_order.with_places(kept, table.keys, tied=prepared.tied, suffix=_AFTER)
    names = ["rank", *(["tied"] if prepared.tied else [])]
    moved = [pl.col(n) - pl.col(f"{n}{_BEFORE}") + pl.col(f"{n}{_AFTER}") for n in names]
    run = kept.with_columns(moved).drop(f"{n}{end}" for n in names for end in (_BEFORE, _AFTER))
    result = prepared._replace(run=run, whole=prepared.run, lists=None)
    if truth:
        judged, items, ranked_truth = _judged_tables(
            run, prepared.truth, prepared.tables, prepared.types, prepared.bounds
        )
        return result._replace(judged=judged, items=items, ranked_truth=ranked_truth)
    if not prepared.has_truth:
        return result._replace(judged=run, items=run, ranked_truth=run)
    judged = _with_ranks_of(run, prepared.judged, table, tied=prepared.tied)
    items = judged
    if prepared.has_subtopics:
        items = _with_ranks_of(run, prepared.items, table, tied=prepared.tied)
    ranked_truth = items.filter(pl.col("relevance").is_not_null())
    return result._replace(
        judged=judged, items=items, truth=ranked_truth, ranked_truth=ranked_truth
    )


def lists_without(
    exclude: Frame | None, table: Table, rows: pl.LazyFrame, columns: Columns
) -> Judged:
    """Remove the rows of ``exclude=`` from a run whose ranks are not made yet."""
    beside = side_tables.read_inputs(Settings(exclude=exclude, columns=columns), table)
    types = side_tables.common_types(beside, table.schema)
    inputs = {
        name: side_tables.as_input(side_table, side_table.frame, types)
        for name, side_table in beside.tables().items()
    }
    kept = rows if exclude is None else _not_excluded(rows, table, inputs, types)
    lists = Judged([table], types, kept, kept.clear(), kept, kept, kept, {})
    return lists._replace(beside=beside, inputs=inputs, whole=None if exclude is None else rows)


def _not_excluded(
    rows: pl.LazyFrame,
    table: Table,
    inputs: Mapping[str, Input],
    types: Mapping[str, pl.DataType],
) -> pl.LazyFrame:
    excluded = inputs["exclude"]
    keys = [*excluded.by, table.user, table.item]
    of_run = [pl.col(name).cast(types[name]) for name in keys]
    return rows.join(excluded.frame, left_on=of_run, right_on=keys, how="anti")


def _with_ranks_of(
    run: pl.LazyFrame, judged: pl.LazyFrame, table: Table, *, tied: bool
) -> pl.LazyFrame:
    """Set the ranks of a judged table to those of the run, null where it lacks them."""
    row, placed = [*table.keys, table.item], ["rank", *(["tied"] if tied else [])]
    ranked = judged.drop(placed).join(run.select(*row, *placed), on=row, how="left")
    return ranked.filter(pl.col("rank").is_not_null() | pl.col("relevance").is_not_null())


def input_flags(prepared: Judged, reads: Collection[str] = ()) -> list[pl.LazyFrame]:
    """Flags over the tables beside run and truth."""
    run = prepared.tables[0]
    flags = side_tables.inputs_flags(
        prepared.beside, prepared.inputs, reads, run, prepared.whole_run
    )
    if prepared.whole is not None and run.totals is None:
        flags.append(guards.flag(prepared.run, pl.len() == 0))
    return flags


def raise_broken_input(prepared: Judged, reads: Collection[str] = ()) -> None:
    """Raise for the first rule that a table beside run and truth breaks."""
    run = prepared.tables[0]
    side_tables.raise_first_broken_input(prepared.beside, reads)
    side_tables.raise_if_nothing_meets(prepared.inputs, run, prepared.whole_run)
    if prepared.whole is None or run.totals is not None:
        return
    if prepared.run.head(1).collect().is_empty():
        msg = (
            "exclude=: it has every row of the run, so no list has an item left: pass only items "
            "that must not be shown, such as the interactions of the training set"
        )
        raise RankingDataError(msg)


def _type_of_relevance(table: Table) -> pl.DataType:
    """Return the type of the relevance that ``normalize_columns`` makes."""
    if table.relevance is None:
        return pl.Int64()
    dtype = table.schema[table.relevance]
    if dtype.is_integer() or dtype.is_float():
        return dtype
    return pl.Float64() if dtype.is_decimal() else pl.Int8()


def _with_types(
    frame: pl.LazyFrame, schema: Mapping[str, pl.DataType], types: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Cast ids and groups to their common types."""
    differ = {name: dtype for name, dtype in types.items() if schema.get(name, dtype) != dtype}
    return frame.with_columns(pl.col(name).cast(dtype) for name, dtype in differ.items())


def _ranked_truth(
    run: pl.LazyFrame,
    judgments: pl.LazyFrame,
    table: Table,
    types: Mapping[str, pl.DataType],
    bounds: Bounds,
) -> pl.LazyFrame:
    """Add the ranks to the items of the truth: the first step of every metric of relevant items."""
    keys = [*table.keys, table.item]
    pairs = rank_order.pair_codes(table.user, table.item, types, bounds)
    if pairs is None:
        on, drop = keys, list[str]()
    else:
        on, drop = [*table.by, _PAIR], [_PAIR]
        of_run, of_truth = (pair.alias(_PAIR) for pair in pairs)
        run = run.with_columns(of_run).drop(table.user, table.item)
        judgments = judgments.with_columns(of_truth)
    joined = run.join(judgments, on=on, how="right", build_side="force_right")
    return joined.select(*keys, "rank", "relevance", pl.exclude(*keys, "rank", "relevance", *drop))


def _joined(run: pl.LazyFrame, judgments: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    keys = [*table.keys, table.item]
    # otherwise polars holds the run (300 M rows) in memory, instead of the truth (30 M)
    judged = run.join(judgments, on=keys, how="full", coalesce=True, build_side="force_right")
    return judged.select(*keys, "rank", "relevance", pl.exclude(*keys, "rank", "relevance"))


def _one_row_per_item(frame: pl.LazyFrame, table: Table) -> pl.LazyFrame:
    """Keep the row with the highest grade of each item, if the table has one row per subtopic."""
    if table.subtopic is None:
        return frame
    best_first = frame.sort("relevance", "subtopic", descending=True, nulls_last=True)
    best = best_first.unique([*table.keys, table.item], keep="first", maintain_order=True)
    return best.drop("subtopic")


def guarded_judged(prepared: Judged) -> pl.LazyFrame:
    """Return the judged table, checked when the plan runs."""
    flags = [*table_flags(prepared), rows_flag(prepared, prepared.items), *input_flags(prepared)]
    raise_global = partial(rules.raise_first_global, prepared.tables)
    return guards.guarded(prepared.judged, flags, raise_broken(prepared), raise_global=raise_global)


def raise_broken(prepared: Judged) -> Callable[[], None]:
    """Return a callback that raises for the first rule that a table breaks."""

    def raise_broken() -> None:
        rules.raise_first_broken(prepared.tables)
        raise_broken_input(prepared)

    return raise_broken


def table_flags(prepared: Judged, *, count: bool = False) -> list[pl.LazyFrame]:
    """Flags over every row of both tables; with ``count`` they count the relevant rows."""
    run, *truth = prepared.tables
    once = count and bool(truth) and truth[0].by == run.by  # otherwise, each group has all of them
    flags = [guards.table_flag(run), *(guards.table_flag(each, count=once) for each in truth)]
    if count and not once:
        flags.append(_positive_of_groups(prepared, truth[0]))
    if prepared.tied:
        flags.append(guards.table_rules_flag(prepared.tables[0]))
    if prepared.tables[0].score is not None:  # a duplicate item shifts the ranks below it
        flags.append(guards.lists_flag(prepared.tables[0], prepared.in_order))
    flags += [
        guards.table_rules_flag(table) for table in prepared.tables if table.subtopic is not None
    ]
    return flags


def _positive_of_groups(prepared: Judged, truth: Table) -> pl.LazyFrame:
    """Subtract the relevant rows from the sum: each group that the truth lacks has all of them."""
    if prepared.groups is None:
        positive = (pl.col("relevance") > 0).sum().cast(pl.Int64)
        return guards.flag(prepared.truth, pl.lit(value=False), -positive)
    number = prepared.groups.select(groups=pl.len().cast(pl.Int64))
    of_each = guards.table_flag(truth, count=True).select("surplus")
    product = pl.col("surplus") * pl.col("groups")
    return guards.flag(of_each.join(number, how="cross"), pl.lit(value=False), product)


def rows_flag(prepared: Judged, rows: pl.LazyFrame) -> pl.LazyFrame:
    """Flag over the rows of grade > 0."""
    table = prepared.tables[0]
    lists = rows.filter(pl.col("relevance") > 0).group_by(table.keys)
    aggregates = guards.check_aggregates(
        table.item, hit=pl.col("rank"), shared=guards.shares_rank(tied=prepared.tied)
    )
    return guards.flag(
        lists.agg(aggregates), guards.any_violation(), doubt=guards.any_doubt(prepared.tables)
    )


def normalize_columns(table: Table, *, single_precision: bool = False) -> pl.LazyFrame:
    """Rename rank, relevance and subtopic; make the rank Int64 and the relevance a number."""
    frame = table.frame
    if table.rank is not None:
        frame = renamed(frame, table.rank, "rank").with_columns(rules.as_rank("rank"))
        if table.tied:
            frame = frame.with_columns(rules.as_rank("tied"))
    elif table.score is not None:
        frame = rank_order.ranked(frame, table, single_precision=single_precision)
    if table.relevance is not None:
        frame = renamed(frame, table.relevance, "relevance")
        dtype = _type_of_relevance(table)
        if table.schema[table.relevance] != dtype:
            frame = frame.with_columns(pl.col("relevance").cast(dtype))
    elif table.name == "truth":
        frame = frame.with_columns(relevance=pl.lit(1, pl.Int64))
    if table.subtopic is not None:
        frame = renamed(frame, table.subtopic, "subtopic")
    if table.score is not None and table.relevance is not None:
        frame = frame.filter(pl.col("rank").is_not_null() | pl.col("relevance").is_not_null())
    return frame


def renamed(frame: pl.LazyFrame, old: str, new: str) -> pl.LazyFrame:
    return frame if old == new else frame.rename({old: new})


# When a lazy ``judge`` result is evaluated, go back to its two inputs: checking the joined table
# would materialize the full join.


def remember(judged: Frame, prepared: Judged) -> None:
    if isinstance(judged, pl.LazyFrame):
        judged._rankframe_prepared = prepared  # type: ignore[attr-defined]  # pyright: ignore
    elif isinstance(judged, pl.DataFrame):
        judged._rankframe_segments = prepared.tables[0].truth_groups  # type: ignore[attr-defined]  # pyright: ignore
    elif prepared.tables[0].truth_groups:
        judged.attrs["rankframe_segments"] = list(prepared.tables[0].truth_groups)


def segments_of_truth(frame: Frame, prepared: Judged) -> list[str]:
    """Return the columns of ``by`` that only the truth had; lists of other users are left out."""
    table = prepared.tables[0]
    segments: Sequence[str] = getattr(frame, "_rankframe_segments", ())
    remembered: Judged | None = getattr(frame, "_rankframe_prepared", None)
    if remembered is not None:
        segments = remembered.tables[0].truth_groups
    if not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        segments = frame.attrs.get("rankframe_segments", ())
    return [*table.truth_groups, *(name for name in table.by if name in segments)]


def _remembered(frame: Frame, by: str | Sequence[str], columns: Columns) -> Judged | None:
    prepared: Judged | None = getattr(frame, "_rankframe_prepared", None)
    if prepared is None:
        return None
    table = prepared.tables[0]
    roles = {"user": table.user, "item": table.item, "rank": "rank", "relevance": "relevance"}
    if (table.user, table.item) != ("user", "item"):
        columns = column_roles.with_ids(columns, by, {"judged table": frame})
    requested = {**{role: role for role in roles}, **columns}
    return prepared if keywords.group_names(by) == table.by and requested == roles else None
