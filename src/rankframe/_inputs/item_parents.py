"""Items of lists, of which each may have a parent in its place, and may come once."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from rankframe._inputs import dicts, two_lists
from rankframe._request.keywords import Duplicates
from rankframe._request.types import Frame
from rankframe._tables import adapters, rules, run_dicts
from rankframe.errors import RankingDataError

_CHILD, _PARENT = "__rankframe_child", "__rankframe_parent"


def once(
    rows: pl.LazyFrame,
    lists: str,
    item: str,
    place: str,
    *,
    parent: Mapping[Any, Any] | Frame | None,
    duplicates: Duplicates,
    name: str | None = None,
) -> pl.LazyFrame:
    """Keep each item of a list at its first place; the others close, or stay empty.

    ``name`` is the column of items in a table of parents.
    """
    if parent is not None:
        rows = _with_parents(rows, item, _table_of(parent, name or item))
    elif duplicates == "error":
        return rows
    kept = rows.filter(pl.struct(lists, item).is_first_distinct())
    if duplicates == "occupy":
        return kept
    return kept.with_columns(pl.col(place).rank("ordinal").over(lists).cast(pl.Int64))


def _table_of(parent: Mapping[Any, Any] | Frame, item: str) -> pl.LazyFrame:
    """Read the parent of each item, which has one."""
    if isinstance(parent, Mapping):
        columns = {item: [*parent], "parent": [*parent.values()]}
        parent = dicts.columns_of("from_lists: parent=", columns, ("items", "parents"))
    table = adapters.to_lazy(parent, "parent= table")
    has = table.collect_schema().names()
    if lacking := [name for name in (item, "parent") if name not in has]:
        msg = f"parent=: no column {lacking[0]!r}; it has {', '.join(map(repr, has))}: rename one"
        raise RankingDataError(msg)
    table = table.select(pl.col(item), pl.col("parent").alias(_PARENT))
    text = "an item with two rows: keep one, as an item has one parent"
    twice = rules.Rule("parent=", item, text, pl.col(item).is_duplicated())
    return two_lists.checked(table, [twice], [item]).rename({item: _CHILD})


def _with_parents(rows: pl.LazyFrame, item: str, parents: pl.LazyFrame) -> pl.LazyFrame:
    types, other = rows.collect_schema(), parents.collect_schema()[_CHILD]
    common = run_dicts.common_type(types[item], other)
    if common is None:
        msg = f"parent=: its items are {other}, and those of the lists {types[item]}: cast one"
        raise RankingDataError(msg)
    rows, parents = rows.cast({item: common}), parents.cast({_CHILD: common})
    joined = rows.join(parents, left_on=item, right_on=_CHILD, how="left", maintain_order="left")
    text = "no parent: add the item to parent=, also one that is its own parent"
    alone = rules.Rule("frame of lists", item, text, pl.col(_PARENT).is_null())
    joined = two_lists.checked(joined, [alone], [item])
    return joined.with_columns(pl.col(_PARENT).alias(item)).drop(_PARENT)
