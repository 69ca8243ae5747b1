"""Several columns as one user: they become one column on the way in, and several on the way out.

The column is JSON text, such as ``{"wiki":"en","session":3}``, which errors and charts show as it
is. Only a call that names several columns pays for it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeVar, cast

import polars as pl

from rankframe._request.types import Frame
from rankframe._tables import adapters
from rankframe.errors import Problem, RankingDataError, code, option

FrameT = TypeVar("FrameT", bound=Frame)
_ORDER = "__rankframe_group"
#: Options that name columns, which a user's cannot be beside.
_NAME_COLUMNS = ("by", "weights", "cluster", "time", "of", "model", "item", "rank", "score")
#: Verbs whose rows have the order of the caller's.
_IN_ORDER_OF_ROWS = ("with_rank", "check", "from_lists")
#: Columns by which a verb sorts its rows before users.
_SORTED_BY = {"differences": ("difference", "weight")}
#: Tables that have users.
_TABLES = ("run", "truth", "human", "other", "exclude", "history", "queries", "users")


def with_one(verb: str, passed: dict[str, Any]) -> Callable[[Any], Any]:
    """Make one column of several that are the user, and return what turns it back."""
    user = passed["user"]
    users = user if isinstance(user, Users) else Users(user, passed)
    for name in _TABLES:
        table = passed.get(name)
        if name == "run" and adapters.is_dict(table):
            passed[name] = {n: users.as_one(frame, f"run {n!r}") for n, frame in table.items()}
        elif table is not None and not isinstance(table, str):
            passed[name] = users.as_one(table, name)
    if "user_id" in passed:
        passed["user_id"] = users.id_of(passed["user_id"])
    passed["user"] = users.name
    return partial(users.as_several, verb)


class Users(list[str]):
    """The columns of a user, and the one that stands for them in a call."""

    def __init__(self, columns: Sequence[object], options: Mapping[str, Any]) -> None:
        names = [name for name in columns if isinstance(name, str)]
        if not names or len(names) < len(columns):
            msg = f"user= must be the name of a column, or a list of names, not {columns!r}"
            raise TypeError(msg)
        for place, name in enumerate(names):
            if name in names[:place]:
                msg = f"user: column {name!r} is named twice: name it once"
                raise ValueError(msg)
            for keyword in _NAME_COLUMNS:
                value = options.get(keyword)
                if name in (value if isinstance(value, list | tuple) else [value]):
                    call = f", with_columns(pl.col({name!r}).alias({name + '_copy'!r}))"
                    msg = (
                        f"{option(keyword, name)} names a column of {option('user')}: copy it"
                        f"{code(call)}, and name the copy"
                    )
                    raise ValueError(Problem(msg))
        super().__init__(names)
        self.name = " and ".join(names)
        self.types: dict[str, pl.DataType] = {}

    def as_one(self, frame: FrameT, table: str) -> FrameT:
        """Put the one column in the place of the first."""
        if not adapters.is_frame(frame):
            msg = f"{table}: several columns of user= need a frame, not {adapters.kind(frame)}"
            raise TypeError(msg)
        names = adapters.column_names(frame, table)
        check_columns(self, names, table)
        is_polars = isinstance(frame, pl.DataFrame | pl.LazyFrame)
        own: Any = frame if is_polars else cast("Any", frame)[[*self]]
        opened = adapters.to_polars(own, table)
        schema = opened.collect_schema()
        self.note_types({name: schema[name] for name in self}, table)
        fields = [_plain(pl.col(name), schema[name]).alias(name) for name in self]
        text = pl.struct(fields).struct.json_encode()
        is_whole = pl.all_horizontal(pl.col(*self).is_not_null())
        user = pl.when(is_whole).then(text).alias(self.name)
        order = self.in_place(names)
        if isinstance(opened, pl.LazyFrame) or is_polars:
            return cast("FrameT", opened.with_columns(user).select(order))
        values = opened.select(user)[self.name].to_list()
        changed = cast("Any", frame).assign(**{self.name: values})
        return cast("FrameT", changed[order])

    def in_place(self, names: Sequence[str]) -> list[str]:
        """Name the columns of a table after the one is in the place of the first."""
        return [self.name if n == self[0] else n for n in names if n not in self[1:]]

    def note_types(self, types: Mapping[str, pl.DataType], table: str) -> None:
        """Keep the types of the columns, which all tables share."""
        for name, dtype in types.items():
            if _kind(dtype) is None:
                msg = f"{table}, column {name!r}: {dtype} cannot be part of a user: cast it to text"
                raise RankingDataError(msg)
            noted = self.types.setdefault(name, dtype)
            if _kind(noted) != _kind(dtype) and pl.Null not in (noted, dtype):
                msg = (
                    f"column {name!r}: it is {noted} in one table and {dtype} in the {table}: cast "
                    "one; ids must have the same type in all tables, or any two integer types"
                )
                raise RankingDataError(msg)
            if noted != dtype and noted.is_integer():
                self.types[name] = pl.Int64()

    def id_of(self, user: object) -> object:
        """Write the values of one user as the text that the one column has."""
        if isinstance(user, str) or user is ...:
            return user
        values: list[object] = []
        if adapters.is_dict(user):
            values = [user[name] for name in self if name in user]
        elif isinstance(user, list | tuple):
            values = [*cast("Sequence[object]", user)]
        if len(values) != len(self):
            names = ", ".join(map(repr, self))
            msg = f"user {user!r}: name a value of each column of user=, as a tuple: ({names})"
            raise ValueError(msg)
        row = pl.DataFrame({name: [value] for name, value in zip(self, values, strict=True)})
        return self.as_one(row, "user")[self.name].item()

    def as_several(self, verb: str, result: Any) -> Any:
        """Put the columns back in the place of the one, and sort users by them."""
        if not adapters.is_frame(result) or self.name not in adapters.column_names(result, "run"):
            return result
        opened = adapters.to_lazy(result, "result")
        names = opened.collect_schema().names()
        if taken := [name for name in self if name in names]:
            msg = f"user, column {taken[0]!r}: {verb} adds a column with this name: rename yours"
            raise RankingDataError(msg)
        before = names[: names.index(self.name)]
        types = {name: stored(dtype) for name, dtype in self.types.items()}
        decoded = pl.col(self.name).str.json_decode(pl.Struct(types))
        fields = [
            decoded.struct.field(name).cast(dtype).alias(name) for name, dtype in self.types.items()
        ]
        plan = opened.with_columns(fields)
        if verb not in _IN_ORDER_OF_ROWS:
            by = [pl.col(name).round_sig_figs(12) for name in _SORTED_BY.get(verb, ())]
            group = pl.struct(*before, *by).rle_id() if before or by else pl.lit(0)
            keys = [_ORDER, *self]
            plan = plan.with_columns(group.alias(_ORDER)).sort(keys, maintain_order=True)
        place = names.index(self.name)
        plan = plan.select(*names[:place], *self, *names[place + 1 :])
        several = adapters.to_caller_type(plan, like=result)
        adapters.keep_notes(several, result)
        if isinstance(result, pl.DataFrame | pl.LazyFrame) or verb not in _IN_ORDER_OF_ROWS:
            return several
        return cast("Any", several).set_axis(cast("Any", result).index, axis="index")


def text_of(user: object, column: str) -> object:
    """Write the values of a user of several columns, such as ``2, 14``; another as it is."""
    if not isinstance(user, str) or not user.startswith("{"):
        return user
    try:
        values = json.loads(user)
    except ValueError:
        return user
    return ", ".join(map(str, values.values())) if " and ".join(values) == column else user


def check_columns(columns: Sequence[str], names: Sequence[str], table: str) -> None:
    """Check that a table has the columns of the user."""
    for column in columns:
        if column not in names:
            has = ", ".join(map(repr, names))
            msg = f"{table}: no column {column!r} for user; it has {has}"
            raise RankingDataError(msg)


def _kind(dtype: pl.DataType) -> str | None:
    if dtype.is_integer() or dtype == pl.Null:
        return "integer"
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return "text"
    return str(dtype) if isinstance(dtype, pl.Boolean | pl.Date) else None


def _plain(column: pl.Expr, dtype: pl.DataType) -> pl.Expr:
    """Write a value as text, or as a number."""
    return column.cast(pl.String) if _kind(dtype) == "text" else column.cast(stored(dtype))


def stored(dtype: pl.DataType) -> pl.DataType:
    """Return the type of a value inside the text."""
    if _kind(dtype) == "text":
        return pl.String()
    if dtype == pl.Date:
        return pl.Int32()
    return dtype if isinstance(dtype, pl.Boolean | pl.UInt64) else pl.Int64()
