"""Dicts of users: scores, grades, lists or sets of items become a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Literal, TypeAlias, cast

import polars as pl

from rankframe._tables import adapters, column_roles
from rankframe.errors import RankingDataError

#: What the values of a dict are: dicts of numbers, lists, sets, or dicts of such dicts.
Shape: TypeAlias = Literal["numbers", "lists", "sets", "dicts"]

_KINDS: dict[str, type | tuple[type, ...]] = {
    "dicts": Mapping,
    "lists": (list, tuple),
    "sets": (set, frozenset),
}
#: What a dict has, and what takes it.
_CURES: dict[Shape | None, str] = {
    "numbers": "a number per item: rf.from_scores makes a run, and rf.from_grades a truth, of "
    "{user: {item: number}}",
    "lists": "lists: rf.from_lists makes a run, and rf.from_grades a truth, of {user: [items]}",
    "sets": "sets, which have no order: rf.from_grades makes a truth of {user: {items}}",
    "dicts": "dicts of users: only the run of a verb may be {name: {user: …}}, a dict of runs",
}
MAKERS = (
    "rf.from_scores reads {user: {item: score}}, rf.from_lists {user: [items]}, and rf.from_grades "
    "a truth, {user: {item: grade}}, {user: {items}} or {user: [items]}"
)


def shape_of(mapping: Mapping[Any, Any]) -> Shape | None:
    """Tell what the values of a dict are; None if they are of several kinds, or none of these."""
    values = mapping.values()
    kinds = (name for name, of in _KINDS.items() if all(isinstance(v, of) for v in values))
    kind = next(kinds, None)
    if kind != "dicts":
        return cast("Shape | None", kind)
    numbers = (number for items in values for number in items.values())
    first = next(numbers, None)
    return "dicts" if isinstance(first, Mapping | list | tuple | set | frozenset) else "numbers"


def scores_of(maker: str, mapping: Mapping[Any, Any], names: Sequence[str]) -> pl.DataFrame:
    """Make a run of ``{user: {item: score}}``; ``names`` are those of its columns."""
    return _table_of(maker, mapping, names, ["numbers"])


def truth_of(maker: str, mapping: Mapping[Any, Any], names: Sequence[str]) -> pl.DataFrame:
    """Make a truth of grades, or of relevant items, which have no column of grades."""
    table = _table_of(maker, mapping, names, ["numbers", "lists", "sets"])
    return table.sort(names[:2]) if shape_of(mapping) == "sets" else table


def lists_of(maker: str, mapping: Mapping[Any, Any], names: Sequence[str]) -> pl.DataFrame:
    """Make a run of ``{user: [items]}``, with a rank."""
    table = _table_of(maker, mapping, names, ["lists"])
    ranks = chain.from_iterable(range(1, len(items) + 1) for items in mapping.values())
    return table.with_columns(pl.Series(names[2], [*ranks], dtype=pl.Int64))


def _table_of(
    maker: str, mapping: Mapping[Any, Any], names: Sequence[str], shapes: Sequence[Shape]
) -> pl.DataFrame:
    if len(set(names)) < len(names):
        msg = f"{maker}: the columns need three different names, not {[*names]}"
        raise ValueError(msg)
    shape = shape_of(mapping) if mapping else shapes[0]
    if shape not in shapes:
        kinds = ", ".join(sorted({adapters.kind(value) for value in mapping.values()}))
        content = f"{kinds}: {MAKERS}" if shape is None else _CURES[shape]
        msg = f"{maker}: the dict has {content}"
        raise TypeError(msg)
    table = _quickly(mapping, names, numbers=shape == "numbers")
    if table is not None:
        return table
    values = mapping.values()
    columns = [
        [*chain.from_iterable(map(repeat, mapping, map(len, values)))],
        [*chain.from_iterable(values)],
    ]
    if shape == "numbers":
        columns.append(_of_one_type([*chain.from_iterable(v.values() for v in values)]))
    return columns_of(maker, dict(zip(names, columns, strict=False)))


def _quickly(
    mapping: Mapping[Any, Any], names: Sequence[str], *, numbers: bool
) -> pl.DataFrame | None:
    """Make the table if its values have one type, as they have most often, else return None."""
    # evaluation included, 1.2, (b) 1.05, in November 2026
    filled = {user: items for user, items in mapping.items() if items}
    values = filled.values()
    columns = [[*filled], [*map(len, values)], [*chain.from_iterable(values)]]
    columns += [[*chain.from_iterable(v.values() for v in values)]] if numbers else []
    try:
        users, lengths, *rest = map(pl.Series, columns)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        return None
    kinds = [(pl.String, pl.Int64), (pl.String, pl.Int64), (pl.Int64, pl.Float64)]
    pairs = zip((users, *rest), kinds, strict=False)
    if not values or not all(column.dtype in kind for column, kind in pairs):
        return None
    first = lengths.cum_sum().head(-1)  # the first row of each user but one
    number = pl.zeros(len(rest[0]), pl.Int64, eager=True).scatter(first, 1).cum_sum()
    return pl.DataFrame(dict(zip(names, (users.gather(number), *rest), strict=False)))


def columns_of(
    maker: str, columns: dict[str, list[Any]], roles: Sequence[str] = ("users", "items", "numbers")
) -> pl.DataFrame:
    """Make a table of columns of values, of which the first two are ids; errors call them so."""
    try:
        table = pl.DataFrame(columns)
    except (TypeError, OverflowError, pl.exceptions.PolarsError):
        roles = [f"{roles[0]} are", *roles[1:]]
        kinds = [
            f"{role} {', '.join(sorted({type(value).__name__ for value in column}))}"
            for role, column in zip(roles, columns.values(), strict=False)
        ]
        msg = (
            f"{maker}: {', '.join(kinds[:-1])} and {kinds[-1]}: each needs one type that polars "
            "supports"
        )
        raise RankingDataError(msg) from None
    for role, dtype in zip(roles[:2], table.dtypes, strict=False):
        if not column_roles.can_be_id(dtype):
            msg = f"{maker}: {role} are {dtype}, and must be ids, such as text or integers"
            raise RankingDataError(msg)
    return table


def _of_one_type(numbers: list[Any]) -> list[Any]:
    """Convert scalars of several types to Python's, and integers beside floats to floats.

    A number that no float can hold stays, and is an error.
    """
    if len(set(map(type, numbers))) < 2:
        return numbers
    plain = [number.item() if hasattr(number, "item") else number for number in numbers]
    if set(map(type, plain)) - {type(None)} != {int, float}:
        return plain
    return [float(n) if n is not None and float(n) == n else n for n in plain]
