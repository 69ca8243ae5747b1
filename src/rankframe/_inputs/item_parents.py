"""The parents of items, such as documents of chunks, in the places of these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import polars as pl

from rankframe._inputs import dicts
from rankframe._request.types import Frame
from rankframe._tables import adapters, rules, run_dicts
from rankframe.errors import RankingDataError

#: The parent of each item: a dict, or a table with the columns of the items and ``parent``.
Parents: TypeAlias = "Mapping[Any, Any] | Frame | None"
_CHILD, _PARENT = "__rankframe_child", "__rankframe_parent"


def in_place(
    rows: pl.LazyFrame, parent: Parents, name: str, user: str, item: str, rank: str
) -> pl.LazyFrame:
    """Put parents in the places of items: each has its best place, and those below move up.

    ``name`` is the column of the items in a table of parents, and in errors of a dict.
    """
    if parent is None:
        return rows
    parents, types = _table_of(parent, name), rows.collect_schema()
    own, other = (
        pl.String() if isinstance(dtype, pl.Categorical | pl.Enum) else dtype
        for dtype in (types[item], parents.collect_schema()[_CHILD])
    )
    common = run_dicts.common_type(own, other)
    if common is None:
        msg = f"parent=: its items are {other}, and those of the lists {own}: cast one"
        raise RankingDataError(msg)
    rows, parents = rows.cast({item: common}), parents.cast({_CHILD: common})
    joined = rows.join(parents, left_on=item, right_on=_CHILD, how="left", maintain_order="left")
    text = "no parent: add the item to parent=, also one that is its own parent"
    alone = rules.Rule("frame of lists", item, text, pl.col(_PARENT).is_null())
    named = rules.checked(joined, [alone], [item]).drop(item).rename({_PARENT: item})
    best = named.filter(pl.struct(user, item).is_first_distinct())
    closed = pl.col(rank).rank("ordinal").over(user).cast(pl.Int64)
    return best.with_columns(closed).select(types.names())


def _table_of(parent: Mapping[Any, Any] | Frame, item: str) -> pl.LazyFrame:
    """Read the parent of each item, which has one."""
    if isinstance(parent, Mapping):
        columns = {_CHILD: [*parent], _PARENT: [*parent.values()]}
        return dicts.columns_of("from_lists: parent=", columns, ("items", "parents")).lazy()
    if hasattr(parent, "to_dict") and not adapters.is_frame(parent):
        msg = "parent= is a Series: pass its .to_dict(), if its index has the items"
        raise TypeError(msg)
    if item == "parent":
        msg = f"parent=: a table needs two columns, of items and parents, and item={item!r} names "
        msg += "that of the parents: pass a dict, {item: parent}"
        raise RankingDataError(msg)
    table = adapters.to_lazy(parent, "parent= table")
    has = table.collect_schema().names()
    if lacking := [name for name in (item, "parent") if name not in has]:
        msg = f"parent=: no column {lacking[0]!r}; it has {', '.join(map(repr, has))}: rename one"
        raise RankingDataError(msg)
    text = "an item with two rows: keep one, as an item has one parent"
    twice = rules.Rule("parent=", item, text, pl.col(item).is_duplicated())
    table = rules.checked(table.select(item, "parent"), [twice], [item])
    return table.rename({item: _CHILD, "parent": _PARENT})
