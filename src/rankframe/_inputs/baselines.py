"""Runs that need no model: popular items, a user's own items, random items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, Unpack, cast

import polars as pl

from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns, IdColumns
from rankframe._request.types import Frame, FrameT
from rankframe._tables import (
    adapters,
    column_roles,
    guards,
    rank_order,
    readers,
    rules,
    side_tables,
)
from rankframe._tables.table import Table

_NUMBER, _NEED, _TOTAL, _ROWS, _DRAW, _HASH = (
    f"{labels.PREFIX}{name}" for name in ("number", "need", "total", "rows", "draw", "hash")
)
_number = pl.col(_NUMBER)


@adapters.takes_any_frame
def baselines(
    history: FrameT,
    /,
    *,
    users: Frame | Sequence[Any],
    k: int = 10,
    exclude: Frame | None = None,
    seed: int = 0,
    **columns: Unpack[IdColumns],
) -> FrameT:
    """
    Make the runs that a model must beat: popular items, a user's own items, and random items.

    Parameters
    ----------
    history
        Past interactions: user and item; other columns are not read.
    users
        The users who get lists: a frame with the column of users, such as the truth, a Series or a
        list of users. Each counts once.
    k
        The length of the lists, which are shorter if there are fewer items.
    exclude
        Rows of user and item to keep out of the lists, such as the history. The next items fill up
        the list.
    seed
        The seed of the random lists, ≥ 0. With the same version of Polars, a user gets the same
        list in any order of the rows and with any other users.
    **columns
        ``user=``, ``item=``: the columns that play these roles, if they have other names. ``user=``
        may be a list of columns.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One run of three systems, sorted unless lazy: ``model`` (String), user, item, ``rank``
        (Int64). ``"popular"``: the items with most distinct users in the history. ``"repeat"``: the
        items of the user's own history, those with most rows first, then the most popular; a user
        without a history has no list. ``"random"``: distinct items of the history, each order of
        them equally likely. Equally popular items are in descending order of their ids.

    Raises
    ------
    RankingDataError
        If a table is empty, has no column for a role, or a null id.

    Notes
    -----
    With ``exclude=history``, ``"repeat"`` has no list, so the run has two systems. Verbs that
    compare take the run as it is, or concatenated to a run with a ``model``.

    Examples
    --------
    >>> history = pl.DataFrame({"user": [1, 2, 2, 3], "item": ["a", "a", "b", "c"]})
    >>> floors = rf.runs.baselines(history, users=[1, 4], k=2, exclude=history)
    >>> floors.filter(model="popular").rows()
    [('popular', 1, 'c', 1), ('popular', 1, 'b', 2), ('popular', 4, 'a', 1), ('popular', 4, 'c', 2)]
    """
    k = keywords.whole_number("k", k)
    seed = keywords.whole_number("seed", seed, least=0)
    frames: dict[str, Frame] = {"history": history}
    frames |= {} if exclude is None else {"exclude": exclude}
    frames |= {"users": users} if adapters.is_frame(users) else {}
    ids = column_roles.with_ids(cast("Columns", columns), (), frames)
    user, item = keywords.user_of(ids), ids.get("item", "item")
    rules.raise_if_taken("baselines", ("model", "rank"), (user, item))
    if "users" not in frames:
        frames["users"] = _listed(users, user)
    stub = Table("history", pl.LazyFrame(), pl.Schema(), [], user, item)
    tables = {name: readers.read_beside(name, of, stub, ids) for name, of in frames.items()}
    flags: list[pl.LazyFrame] = []
    for table in tables.values():
        flags += guards.rule_flags(table.frame, list(side_tables.rules_of(table)), empty=True)
    runs = _runs(_of_common_types(tables), user, item, k, seed)
    run = guards.guarded(runs, flags, partial(side_tables.raise_beside, tables))
    order = ["model", user, "rank"]
    return adapters.to_caller_type(run, like=history, beside=frames.values(), sort=order)


def _listed(users: Any, user: str) -> pl.DataFrame:
    """Make a frame of users in a list."""
    values = None
    with suppress(TypeError, pl.exceptions.PolarsError):
        values = pl.Series(user, [*users] if adapters.is_dict(users) else users)
    if values is None or users is None or isinstance(users, str):
        msg = (
            f"users must be a frame with the column {user!r}, a Series or a list of users, not "
            f"{adapters.kind(users)}"
        )
        if isinstance(users, list | tuple):
            kinds = sorted({type(value).__name__ for value in cast("Sequence[Any]", users)})
            msg = f"users: {' and '.join(kinds)}: ids need one type that polars supports"
        raise TypeError(msg)
    return values.to_frame()


def _of_common_types(tables: Mapping[str, Table]) -> dict[str, pl.LazyFrame]:
    """Return the ids of each table, in types that all have in common."""
    history = tables["history"]
    types = {name: history.schema[name] for name in history.ids}
    for table in tables.values():
        own = replace(history, schema=pl.Schema({**history.schema, **types}))
        types |= rules.same_types(own, table)
    return {
        name: table.frame.select(pl.col(column).cast(types[column]) for column in table.ids)
        for name, table in tables.items()
    }


def _runs(
    frames: Mapping[str, pl.LazyFrame], user: str, item: str, k: int, seed: int
) -> pl.LazyFrame:
    """Plan the lists of all systems."""
    had, out = frames["history"], frames.get("exclude")
    items = had.group_by(item).agg(pl.col(user).n_unique().alias(_ROWS))
    # numbered from the most popular one, in whatever order the rows came
    tie = rank_order.as_comparable(item, had.collect_schema()[item])
    items = items.sort(_ROWS, tie, descending=True).drop(_ROWS)
    items = items.with_columns(pl.int_range(pl.len(), dtype=pl.UInt64).alias(_NUMBER))
    need = pl.lit(k, pl.UInt64)
    wanted = frames["users"].unique()
    if out is not None:
        excluded = out.unique().group_by(user).agg(pl.len().alias(_NEED))
        wanted = wanted.join(excluded, on=user, how="left")
        need += pl.col(_NEED).fill_null(0)
    wanted = wanted.join(items.select(pl.len().cast(pl.UInt64).alias(_TOTAL)), how="cross")
    # a minimum of both would have one row before Polars 2
    wanted = wanted.with_columns(pl.col(_TOTAL).clip(upper_bound=need).alias(_NEED))

    def lists(rows: pl.LazyFrame, order: Sequence[pl.Expr]) -> pl.LazyFrame:
        """Order the items of each user, without those that are excluded."""
        rows = rows if out is None else rows.join(out, on=[user, item], how="anti")
        place = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(user, order_by=order)
        return rows.select(user, item, rank=place).filter(pl.col("rank") <= k)

    first = _with_range(wanted, pl.col(_NEED), _NUMBER)
    own = had.join(wanted, on=user, how="semi")
    own = own.group_by(user, item).agg(pl.len().cast(pl.Int64).alias(_ROWS)).join(items, on=item)
    drawn = _drawn(wanted, user, seed)
    runs = {
        "popular": lists(first.join(items, on=_NUMBER), [_number]),
        "repeat": lists(own, [-pl.col(_ROWS), _number]),
        "random": lists(drawn.join(items, on=_NUMBER), [pl.col(_DRAW)]),
    }
    return pl.concat(
        run.select(pl.lit(name).alias("model"), user, item, "rank") for name, run in runs.items()
    )


def _with_range(users: pl.LazyFrame, length: pl.Expr, name: str) -> pl.LazyFrame:
    """Repeat each user, with numbers from 0."""
    numbers = pl.int_ranges(0, length, dtype=pl.UInt64).alias(name)
    return users.with_columns(numbers).explode(name, empty_as_null=False, keep_nulls=True)


def _drawn(users: pl.LazyFrame, user: str, seed: int) -> pl.LazyFrame:
    """Draw numbers of items for each user, of which no number of excluded ones leaves too few.

    Of many items, numbers are drawn until enough of them differ, as twice as many nearly surely do;
    of few, all are shuffled.
    """
    draw, total, need = pl.col(_DRAW), pl.col(_TOTAL), pl.col(_NEED)
    few = need * 4 >= total
    rows = _with_range(users, pl.when(few).then(total).otherwise(need * 2 + 60), _DRAW)
    own = rank_order.as_comparable(user, users.collect_schema()[user])
    rows = rows.with_columns((own.hash(seed) ^ draw).hash(seed).alias(_HASH))
    number = pl.when(few).then(draw).otherwise(pl.col(_HASH) % total)
    place = pl.when(few).then(_HASH).otherwise(draw)
    return rows.group_by(user, number.alias(_NUMBER)).agg(place.min().alias(_DRAW))
