"""The rules of the tables besides run and truth: catalogue, history, exclusions, queries.

Stage of the pipeline: no record comes out, as in ``rules`` and ``guards``. The columns that come
from these tables are in :mod:`rankframe._vocabulary.list_columns`, the shares of the catalogue in
:mod:`rankframe._vocabulary.share_rows`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import polars as pl

from rankframe import _sizes
from rankframe._request.keywords import Columns
from rankframe._request.types import Frame
from rankframe._tables import adapters, guards, readers, rules
from rankframe._tables.rules import Rule
from rankframe._tables.table import Table, Tables
from rankframe.errors import RankingDataError, option, table_code

INPUT_MEANINGS = {
    "items": "the catalogue, one row per item",
    "history": "the table of past interactions (user, item)",
    "exclude": "the table of rows to remove from the lists (user, item)",
}

#: The columns that describe an item or a query best, and the types of all that do.
_TITLES = ("title", "name", "text", "query")
_TEXT = pl.String | pl.Categorical | pl.Enum


def meanings(source: tuple[str, ...]) -> str:
    """Name the tables from which a column may come."""
    return " or ".join(f"{option(name)}, {INPUT_MEANINGS[name]}" for name in source)


def raise_beside(beside: Mapping[str, Table]) -> None:
    """Raise for the first rule that a table breaks."""
    for name, table in beside.items():
        if not readers.is_stage(name) and table.frame.head(1).collect().is_empty():
            msg = f"{table.name}: it is empty"
            raise RankingDataError(msg)
        rules.raise_first(list(rules_of(table)), table.frame, table.ids)


def raise_if_nothing_meets(inputs: Mapping[str, Table], run: Table, lists: pl.LazyFrame) -> None:
    """Raise if no item of the lists is in the catalogue, or no user in the history."""
    for name, column in _meetings(inputs, run):
        ids = inputs[name].frame.select(column)
        if lists.join(ids, on=column, how="semi").head(1).collect().is_empty():
            role = "item" if name == "items" else "user"
            example = ids.head(1).collect().item()
            has = f"which has {role}s like {example!r}"
            text = f"no {role} of the {run.name} is in {option(name)}, {has}"
            row = lists.select(run.ids).head(1).collect()
            raise rules.broken_row(run.name, column, text, row)


def raise_if_unknown(inputs: Mapping[str, Table], run: Table, lists: pl.LazyFrame) -> None:
    """Raise if an item of the lists is not in the catalogue: it counts in no share."""
    if "items" not in inputs:
        return
    keys = [*inputs["items"].by, run.item]
    unknown = lists.join(inputs["items"].frame.select(keys), on=keys, how="anti")
    text = f"an item that is not in {option('items')}: add it to the catalogue, or drop the row"
    rules.raise_if_any(unknown.select(run.ids), run.name, run.item, text)


def flags_of(
    tables: Tables, inputs: Mapping[str, Table], lists: pl.LazyFrame
) -> list[pl.LazyFrame]:
    """Flag rules on the data that the tables may break."""
    beside, run = tables.beside, tables.run
    flags = [
        flag
        for name, table in beside.items()
        for flag in guards.rule_flags(
            table.frame, list(rules_of(table)), empty=not readers.is_stage(name)
        )
    ]
    for name, column in _meetings(inputs, run):
        if _first_rows_meet(run, inputs[name], column):
            continue
        # the first rows nearly always match; if they do not, all are read
        first = inputs[name].frame.select(column).head(_sizes.FIRST_ROWS)
        met = lists.join(first, on=column, how="semi")
        flags.append(guards.flag(met, pl.len() == 0))
    return flags


def read_queries(frame: Frame, run: Table, columns: Columns) -> Table:
    """Read the texts of queries, or of other users."""
    if adapters.is_dict(frame):
        raise TypeError(_cure_of_dict(frame, run.user))
    table = readers.read_beside("queries", frame, run, columns)
    if not texts_of(table):
        others = {name: dtype for name, dtype in table.schema.items() if name not in table.ids}
        has = ", ".join(f"{name!r} ({dtype})" for name, dtype in others.items())
        cure = f"; it has {has}: cast one to text, or add one as 'text'" if has else ": add 'text'"
        msg = f"{option('queries')}: no column of text other than {run.user!r}{cure}"
        raise RankingDataError(msg)
    return table


def check_queries(table: Table, run: Table) -> None:
    """Check the texts of queries against the lists of a run, or the values of its users."""
    raise_beside({"queries": table})
    readers.common_types(run, [table])
    raise_if_nothing_meets({"queries": table}, run, run.frame)


def _cure_of_dict(texts: Mapping[object, object], user: str) -> str:
    """Say which frame a dict means: of columns, or of a text per query."""
    if any(isinstance(value, list | tuple) for value in texts.values()):
        return "queries= is a dict of columns, not a frame: pass pl.DataFrame(queries)"
    frame = f"pl.DataFrame({{{user!r}: [*queries], 'text': [*queries.values()]}})"
    return f"queries= is a dict, not a frame: pass {frame}"


def texts_of(table: Table) -> list[str]:
    """Return the columns that describe an item or a query in words."""
    others = (*table.ids, "category")
    return [
        name
        for name, dtype in table.schema.items()
        if isinstance(dtype, _TEXT) and name not in others
    ]


def text_of_ids(table: Table) -> dict[str, str]:
    """Return the text that describes each id best, by the id as text."""
    texts = sorted(texts_of(table), key=lambda name: [*_TITLES, name].index(name))
    if not texts:
        return {}
    rows = table.frame.select(
        pl.col(table.user).cast(pl.String), pl.coalesce(pl.col(texts).cast(pl.String))
    )
    return dict(reversed(rows.drop_nulls().collect().rows()))


def _meetings(inputs: Mapping[str, Table], run: Table) -> list[tuple[str, str]]:
    """Pair each table with the id by which it must meet the lists, unless these are a part."""
    if run.totals is not None:
        return []
    meeting = [name for name in inputs if not readers.is_stage(name)]
    return [(name, run.item if name == "items" else run.user) for name in meeting]


def _first_rows_meet(run: Table, table: Table, column: str) -> bool:
    """Whether an id is in the first rows of two tables in memory; saves a join with the lists."""
    if run.rows is None or table.rows is None or run.truth_groups:
        return False
    listed = run.rows.head(_sizes.FIRST_ROWS).filter(rules.is_retrieved(run))[column]
    ids = table.rows[column].head(_sizes.FIRST_ROWS)
    return listed.dtype == ids.dtype and listed.is_in(ids.implode()).any()


# ------------------------------------------------------------------ rules on the data


def rules_of(table: Table) -> Iterator[Rule]:
    """Return the rules that a table must keep."""
    for name in table.ids:
        yield from rules.missing_rules(table, name, name, "drop the row")
    if table.name == option("items"):
        yield from _rules_of_items(table)
    if table.name == option("queries"):
        text = f"duplicate {table.user}: keep one row per {table.user}"
        yield Rule(table.name, table.user, text, pl.struct(table.keys).is_duplicated())


def _rules_of_items(table: Table) -> Iterator[Rule]:
    keys = [*table.keys]
    rest = [(name, dtype) for name, dtype in table.schema.items() if name not in keys]
    name, dtype = rest[0] if rest else ("", pl.String())
    # as text: a list of numbers would be a vector
    values = f"pl.col({name!r}).cast(pl.String)" if dtype.is_numeric() else repr(name)
    cast = f".astype({{{name!r}: str}})" * dtype.is_numeric()
    call = f"{cast}.groupby({keys!r}, as_index=False).agg({{{name!r}: list}})"
    call = table_code("items", f".group_by({keys!r}).agg({values})", call)
    text = f"duplicate ({', '.join(keys)}): keep one row per item"
    if rest:
        text += f"; put several values of an item into a list{call}"
    else:
        text += table_code("items", f".unique({keys!r})", f".drop_duplicates({keys!r})")
    flag = guards.flag(table.frame, pl.struct(keys).n_unique() < pl.len())
    surplus = pl.len() - 1  # of the rows of one item
    broken = pl.struct(keys).is_duplicated()
    yield Rule(table.name, table.item, text, broken, flag, what="duplicates", surplus=surplus)
