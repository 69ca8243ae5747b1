"""The tables besides run and truth: the catalogue, the history, another run, exclusions.

Stage of the pipeline: ``items=``, ``history=``, ``other=`` and ``exclude=`` are read and checked;
each becomes a ``Table``, and all together ``Inputs``. The columns that come from them are in
:mod:`rankframe._vocabulary.list_columns`, the shares of the catalogue in
:mod:`rankframe._vocabulary.share_rows`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple

import polars as pl

from rankframe._request.keywords import Columns, InputName, Settings
from rankframe._request.types import Frame
from rankframe._tables import adapters, column_roles, guards, readers, rules
from rankframe._tables.rules import Rule
from rankframe._tables.table import Input, Table
from rankframe.errors import RankingDataError

INPUT_MEANINGS = {
    "items": "the catalogue, one row per item",
    "history": "the table of past interactions (user, item)",
    "other": "another run (user, item, rank or score)",
    "exclude": "the table of rows to remove from the lists (user, item)",
}
#: The long form of a catalogue has one row per item and value of this column.
LONG = "category"


_FIRST = 10_000


class Inputs(NamedTuple):
    """The tables that a call passes besides run and truth."""

    items: Table | None = None
    history: Table | None = None
    other: Table | None = None
    exclude: Table | None = None

    def tables(self) -> dict[str, Table]:
        """List the tables that are passed."""
        return {name: table for name, table in self._asdict().items() if table is not None}


def read_inputs(settings: Settings, run: Table) -> Inputs:
    """Read the tables of a call: roles and types."""
    columns = settings.columns
    return Inputs(
        items=_read("items", settings.items, run, columns),
        history=_read("history", settings.history, run, columns),
        other=_read_other(settings.other, run, columns),
        exclude=_read("exclude", settings.exclude, run, columns),
    )


def common_types(inputs: Inputs, schema: pl.Schema) -> dict[str, pl.DataType]:
    """Return the common type of each id of the lists and the tables, or raise."""
    types: dict[str, pl.DataType] = {}
    for table in inputs.tables().values():
        run = table._replace(name="run", schema=pl.Schema({**schema, **types}))
        types.update(rules.same_types(run, table))
    return types


def as_input(table: Table, frame: pl.LazyFrame, types: dict[str, pl.DataType]) -> Input:
    """Return the rows that columns are derived from, with ids of these types."""
    schema = table.schema
    if table.name != "items=":  # the caller's other columns would clash with derived ones
        frame = frame.select(
            *table.keys, table.item, *(["rank"] if table.name == "other run" else [])
        )
    ids = [*table.keys, table.item]
    differ = [pl.col(n).cast(t) for n, t in types.items() if n in ids and schema[n] != t]
    frame = frame.with_columns(differ)
    if _is_long(table):
        rest = [n for n in schema.names() if n not in (*table.keys, LONG)]
        # as text: a list of numbers would be a vector
        kept = [pl.col(rest).first(), pl.col(LONG).drop_nulls().cast(pl.String)]
        frame = frame.group_by(table.keys, maintain_order=True).agg(kept)
        schema = frame.collect_schema()
    return Input(frame, schema, table.by)


def raise_first_broken_input(inputs: Inputs, reads: Collection[str]) -> None:
    """Raise for the first rule that a table breaks."""
    if inputs.other is not None:
        rules.raise_first_broken([inputs.other])
    for table in (inputs.items, inputs.history, inputs.exclude):
        if table is None:
            continue
        if table.frame.head(1).collect().is_empty():
            msg = f"{table.name}: it is empty"
            raise RankingDataError(msg)
        shown = dict.fromkeys([*table.keys, table.item])
        rules.raise_first(list(_rules(table, reads)), table.frame, list(shown))


def raise_if_nothing_meets(inputs: Mapping[str, Input], run: Table, lists: pl.LazyFrame) -> None:
    """Raise if no item of the lists is in the catalogue, or no user in the history."""
    for name, column in [] if run.totals is not None else _meetings(inputs, run):
        ids = inputs[name].frame.select(column)
        if lists.join(ids, on=column, how="semi").head(1).collect().is_empty():
            role = "item" if column == run.item else "user"
            example = ids.head(1).collect().item()
            text = f"no {role} of the {run.name} is in {name}=, which has {role}s like {example!r}"
            row = lists.select(*run.keys, run.item).head(1).collect()
            raise rules.broken_row(run.name, column, text, row)


def raise_if_unknown(inputs: Mapping[str, Input], run: Table, lists: pl.LazyFrame) -> None:
    """Raise if an item of the lists is not in the catalogue: it counts in no share."""
    if "items" not in inputs:
        return
    keys = [*inputs["items"].by, run.item]
    unknown = lists.join(inputs["items"].frame.select(keys), on=keys, how="anti")
    row = unknown.select(*run.keys, run.item).head(1).collect()
    if not row.is_empty():
        text = "an item that items= lacks: add it to the catalogue, or drop the row"
        raise rules.broken_row(run.name, run.item, text, row)


def inputs_flags(
    beside: Inputs,
    inputs: Mapping[str, Input],
    reads: Collection[str],
    run: Table,
    lists: pl.LazyFrame,
) -> list[pl.LazyFrame]:
    """Flag rules on the data that the tables may break."""
    sources = (beside.items, beside.history, beside.exclude)
    tables = [table for table in sources if table is not None]
    flags = [
        flag
        for table in tables
        for flag in guards.rule_flags(table.frame, list(_rules(table, reads)), empty=True)
    ]
    if beside.other is not None:
        flags += [guards.table_flag(beside.other), guards.lists_flag(beside.other)]
    for name, column in [] if run.totals is not None else _meetings(inputs, run):
        # the first rows nearly always match; if they do not, all are read
        first = inputs[name].frame.select(column).head(_FIRST)
        met = lists.join(first, on=column, how="semi")
        flags.append(guards.flag(met, pl.len() == 0))
    return flags


# ------------------------------------------------------------------ reading


def _read(name: InputName, frame: Frame | None, run: Table, columns: Columns) -> Table | None:
    if frame is None:
        return None
    lazy = adapters.to_lazy(frame, f"{name}= table")
    schema = lazy.collect_schema()
    user = run.item if name == "items" else run.user
    roles = {"item": run.item, **({} if name == "items" else {"user": user})}
    for role, column in roles.items():
        if column not in schema:
            has = ", ".join(map(repr, schema.names()))
            rename = f"name it with {role}=, or " if role not in columns else ""
            msg = (
                f"{name}=: no column {column!r} for {role}; it has {has}; {rename}rename it: names "
                "must be the same in all tables"
            )
            raise RankingDataError(msg)
        if not column_roles.can_be_id(schema[column]):
            msg = f"{name}=, column {column!r}: {schema[column]} cannot be an id: use text"
            raise RankingDataError(msg)
    groups = [column for column in run.by if column in schema and column not in roles.values()]
    return Table(f"{name}=", lazy, schema, groups, user, run.item, None, None, None)


def _read_other(frame: Frame | None, run: Table, columns: Columns) -> Table | None:
    if frame is None:
        return None
    lazy = adapters.to_lazy(frame, "other= run")
    groups = [name for name in run.by if name in lazy.collect_schema()]
    ids: Columns = {"user": run.user, "item": run.item}
    table = readers.read_run(lazy, groups, {**columns, **ids}, kind="other run")
    if table.tied:
        msg = (
            "other run, column 'tied': blocks of ties, whose items have no single rank: call "
            "with_rank(ties='item')"
        )
        raise RankingDataError(msg)
    return table


def _is_long(table: Table) -> bool:
    """Whether a catalogue may have several rows per item, one for each category."""
    is_items = table.name == "items="
    return is_items and LONG in table.schema and not table.schema[LONG].is_nested()


def _meetings(inputs: Mapping[str, Input], run: Table) -> list[tuple[str, str]]:
    """Pair each table with the id by which it must meet the lists."""
    pairs = {"items": run.item, "history": run.user, "other": run.user, "exclude": run.user}
    return [(name, column) for name, column in pairs.items() if name in inputs]


# ------------------------------------------------------------------ rules on the data


def _rules(table: Table, reads: Collection[str]) -> Iterator[Rule]:
    """Return the rules that a table must keep, for metrics that read these columns."""
    for name in dict.fromkeys([*table.keys, table.item]):
        yield from rules.missing_rules(table, name, name, "drop the row")
    if table.name == "items=":
        yield from _rules_of_items(table)
    if table.name == "history=" and {"popularity", "history_users"} <= {*reads}:
        # two counts per user, since looking for equal rows takes several times as long
        counts = table.frame.group_by(table.keys).agg(
            suspect=pl.col(table.item).n_unique() < pl.len()
        )
        text = (
            "duplicate (user, item), so popularity is not a number of users: keep one row per user "
            "and item, or divide by the rows of the history (out_of=rows)"
        )
        twice = pl.struct([*table.keys, table.item]).is_duplicated()
        flag = guards.flag(counts, pl.col("suspect").any())
        yield Rule(table.name, table.item, text, twice, flag)


def _rules_of_items(table: Table) -> Iterator[Rule]:
    row = [*table.keys, *([LONG] if _is_long(table) else [])]
    text = (
        f"duplicate ({', '.join(row)}): keep one row per item; put several values of an item "
        f"into a list, or one per row into a column {LONG!r}"
    )
    flag = guards.flag(table.frame, pl.struct(row).n_unique() < pl.len())
    yield Rule(table.name, table.item, text, pl.struct(row).is_duplicated(), flag)
    rest = [name for name in table.schema.names() if name not in row]
    if _is_long(table) and rest:
        varied = (pl.struct(rest).n_unique() > 1).over(table.keys)
        text = f"rows of one item that differ in more than {LONG!r}: make them equal"
        yield Rule(table.name, table.item, text, varied)
