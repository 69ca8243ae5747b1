"""The columns of lists: what the history and the catalogue know about a listed item.

They are records like those of :mod:`rankframe._vocabulary.derived_columns`; each is derived from a
table besides run and truth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Literal

import polars as pl

from rankframe._request import keywords, registry
from rankframe._request.parameters import Fraction, OptionalColumn
from rankframe._request.registry import Names
from rankframe._tables import rank_order
from rankframe._tables.table import Table
from rankframe._vocabulary.scope_rows import Rows
from rankframe.errors import RankingDataError, option

_column = partial(
    registry.joined_column,
    source=("history",),
    derived_on="lists",
    in_ties="both",
)
_PAIR = "__rankframe_pair"
_popularity = pl.col("popularity")


@_column(
    "tail",
    "The item is not among the most popular ones that hold 80% of the rows of the history, nor "
    "as popular as these; another share of the rows: tail(0.9)",
    parameters={"head": (Fraction, 0.8)},
)
@_column(
    "popularity_quantile",
    "Rank of the popularity among the items of the history, 1 = most popular, equal ones averaged, "
    "divided by their number; 0 where nobody had the item",
)
@_column(
    "popularity_rank",
    "Place of the popularity, 1 = most popular, equal ones at one place without gaps; null where "
    "nobody had the item",
)
@_column("interactions", "Rows of the history that have the item; 0 where nobody had it")
@_column("popularity", "Users of the history who had the item; 0 where nobody had it")
def _of_items(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Count the history by item."""
    history, item = rows.joined.inputs["history"], rows.joined.item
    counts = popularities(history, item)
    for name, values in names.items():
        if name.startswith("tail"):
            counts = _with_tail(counts, history.by, name, *values)
    if "popularity_rank" in names:
        place = _popularity.rank("dense", descending=True).cast(pl.Int64)
        counts = counts.with_columns(popularity_rank=_within(place, history.by))
    if "popularity_quantile" in names:
        quantile = _popularity.rank("average") / pl.len()
        counts = counts.with_columns(popularity_quantile=_within(quantile, history.by))
    keys = [*history.by, item]
    frame = frame.join(counts.select(*keys, *names), on=keys, how="left")
    absent: dict[str, Any] = {"interactions": 0, "popularity": 0, "popularity_quantile": 0.0}
    absent |= {name: True for name in names if name.startswith("tail")}
    return frame.with_columns(
        pl.col(name).fill_null(value) for name, value in absent.items() if name in names
    )


def popularities(history: Table, item: str) -> pl.LazyFrame:
    """Count the users and the rows of each item."""
    users = pl.col(history.user).n_unique().cast(pl.Int64)
    return history.frame.group_by([*history.by, item]).agg(
        popularity=users, interactions=pl.len().cast(pl.Int64)
    )


@_column("history_rows", "Rows of the history")
@_column("history_users", "Users of the history")
def _of_history(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Count the whole history."""
    history, user = rows.joined.inputs["history"], rows.keys[-1]
    count = {"history_rows": pl.len(), "history_users": pl.col(user).n_unique()}
    counts = [count[name].cast(pl.Int64).alias(name) for name in names]
    return with_numbers(frame, history.frame, history.by, counts)


@_column(
    "catalogue",
    "Number of items of the catalogue: those of items=, else of the history",
    source=("items", "history"),
)
def _of_catalogue(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Count the items."""
    items, item = catalogue(rows.joined.inputs), rows.joined.item
    counts = [pl.col(item).n_unique().cast(pl.Int64).alias(name) for name in names]
    return with_numbers(frame, items.frame, items.by, counts)


def catalogue(inputs: Mapping[str, Table]) -> Table:
    """Return the table that defines which items exist."""
    return inputs["items"] if "items" in inputs else inputs["history"]


@_column(
    "profile_popularity",
    "Mean popularity of the items that the user had; null for one without a history",
)
def _of_profile(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Look up the popularity of each row of the history."""
    history, item, user = rows.joined.inputs["history"], rows.joined.item, rows.keys[-1]
    counts = popularities(history, item)
    had = history.frame.select(*history.by, user, item).unique()
    history_rows = had.join(counts, on=[*history.by, item])
    profiles = history_rows.group_by([*history.by, user]).agg(
        _popularity.mean().alias(n) for n in names
    )
    return frame.join(profiles, on=[*history.by, user], how="left")


@_column("seen", "The user had the item before")
def _of_pairs(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Look for the pairs of user and item in the history."""
    history = rows.joined.inputs["history"]
    pair, of_lists, of_history = _pairs(rows, history)
    listed = rows.unjoined.with_columns(of_lists).select(pair)
    # only listed pairs are made unique: the whole history would take much longer
    had = history.frame.with_columns(of_history).select(pair)
    had = had.join(listed, on=pair, how="semi").unique()
    had = had.with_columns(pl.lit(value=True).alias(name) for name in names)
    joined = frame.with_columns(of_lists).join(had, on=pair, how="left").drop(_PAIR, strict=False)
    return joined.with_columns(pl.col(name).fill_null(value=False) for name in names)


_OF_PAIRS: dict[str, Any] = {
    "scope": "listed",
    "source": ("items",),
    "derived_on": "lists",
}


@registry.joined_column(
    "distance_above",
    "Σ of the distance to each item above whose values are known: distance_above(genre;cosine)",
    parameters={
        "of": (OptionalColumn, None),
        "distance": (Literal["cosine", "hamming", "euclidean2"],),
    },
    **_OF_PAIRS,
)
@registry.joined_column(
    "pairs_above",
    "Number of items above whose values are known: pairs_above(genre); null where the item's own "
    "values are not",
    parameters={"of": (OptionalColumn, None)},
    **_OF_PAIRS,
)
def _sums_above(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Add up, down each list, what the values of the items above have in common with its own."""
    items, item, keys = rows.joined.inputs["items"], rows.joined.item, rows.keys
    by_column: dict[str, dict[str, str]] = {}
    for name, (of, *kind) in names.items():
        by_column.setdefault(column_of_values(items, item, of), {})[name] = "".join(kind)
    schema, on = dict(frame.collect_schema()), [*items.by, item]
    for of, distances in by_column.items():
        for distance in distances.values():
            _check_distance(items.schema[of], of, distance)
        values = items.frame.select(*on, of).drop_nulls(of)
        schema |= {n: pl.Float64() if distances[n] else pl.Int64() for n in distances}
        add = partial(_with_distances, values=values, on=on, keys=keys, of=of, distances=distances)
        frame = frame.map_batches(add, schema=schema, slice_pushdown=False)
    return frame


def _with_distances(
    frame: pl.DataFrame,
    *,
    values: pl.LazyFrame,
    on: Sequence[str],
    keys: Sequence[str],
    of: str,
    distances: Mapping[str, str],
) -> pl.DataFrame:
    from rankframe._vocabulary import item_distances

    place, row = "__rankframe_place", "__rankframe_row"
    items = values.with_row_index(place).collect()
    listed = frame.with_row_index(row).filter("listed").select(row, *keys, *on[-1:], "rank")
    # most runs are in order; checking this takes a twentieth of the time of a sort
    places = items.select(*on, place)
    listed = listed.join(places, on=on, maintain_order="left")
    if not _are_sorted(listed, [*keys, "rank"]):
        listed = listed.sort(*keys, "rank")
    new = pl.any_horizontal(pl.col(key).ne_missing(pl.col(key).shift(1)) for key in keys)
    first = listed.select(new.fill_null(value=True)).to_series()
    columns = [
        item_distances.distances_above(items, of, listed[place], first, distance).alias(name)
        if distance
        else item_distances.pairs_above(first).alias(name)
        for name, distance in distances.items()
    ]
    distance_rows = listed.select(row, *columns)
    rows = frame.with_row_index(row)
    return rows.join(distance_rows, on=row, how="left", maintain_order="left").drop(row)


def _are_sorted(rows: pl.DataFrame, columns: Sequence[str]) -> bool:
    """Return whether rows are sorted by these columns; with a null, return False."""
    if rows.select(pl.any_horizontal(pl.col(columns).has_nulls())).item():
        return False
    rises = pl.lit(value=True)
    for name in reversed(columns):
        value, before = pl.col(name), pl.col(name).shift(1)
        rises = (before < value) | ((before == value) & rises)
    return bool(rows.select(rises.slice(1).all()).item())


def _check_distance(dtype: pl.DataType, of: str, distance: str) -> None:
    """Check that values of this type have the distance."""
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    of_numbers = isinstance(inner, pl.DataType) and inner.is_numeric()
    if inner.is_nested() or (of_numbers and inner is dtype):  # pyright: ignore
        msg = (
            f"of={of}: {dtype} has no distance: {option('items')} needs a list of text (genres), a "
            "list of numbers (a vector), or text"
        )
        raise RankingDataError(msg)
    wrong = {"hamming": of_numbers, "euclidean2": not of_numbers}
    if wrong.get(distance):
        kind, other = ("vectors", "euclidean2") if of_numbers else ("sets", "hamming")
        msg = f"of={of}: distance={distance} is not one of {kind}: use cosine or {other}"
        raise ValueError(msg)
    keywords.need_numpy("distances")


# ------------------------------------------------------------------ steps of derivations


def _pairs(rows: Rows, table: Table) -> tuple[list[str], list[pl.Expr], list[pl.Expr]]:
    """Return the columns to join on by user and item, and what the lists and a table add to them.

    One number for both ids takes half the time of two columns.
    """
    user, item = rows.keys[-1], rows.joined.item
    id_ranges = rank_order.id_ranges_of_lists(table)
    codes = rank_order.pair_codes(user, item, rows.joined.types, id_ranges)
    if codes is None:
        return [*table.by, user, item], [], []
    of_lists, of_table = (code.alias(_PAIR) for code in codes)
    return [*table.by, _PAIR], [of_lists], [of_table]


def with_numbers(
    frame: pl.LazyFrame, table: pl.LazyFrame, by: Sequence[str], numbers: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """Add numbers of a whole table, or of its groups, to every row."""
    if not by:
        return frame.join(table.select(numbers), how="cross")
    return frame.join(table.group_by(by).agg(numbers), on=by, how="left")


def column_of_values(items: Table, item: str, of: str | None) -> str:
    """Find the column of the catalogue that ``of=`` names, or its only one of lists."""
    if of:
        has = [name for name in items.schema if name not in (item, *items.by)]
        if of not in has:
            from difflib import get_close_matches

            near = get_close_matches(of, has, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            columns = ", ".join(map(repr, has)) or "no column beside the item"
            msg = f"of={of}: {option('items')} has no such column; it has {columns}{hint}"
            raise RankingDataError(msg)
        return of
    nested = [n for n, t in items.schema.items() if t.is_nested() and n not in items.by]
    if len(nested) != 1:
        would = ", ".join(map(repr, nested)) or "none"
        msg = (
            f"of= is left out, but {option('items')} has {len(nested)} columns of lists or vectors "
            f"({would}): name one, for example of=genre"
        )
        raise RankingDataError(msg)
    return nested[0]


def _with_tail(counts: pl.LazyFrame, by: Sequence[str], name: str, head: float) -> pl.LazyFrame:
    """Mark the items beyond the most popular ones; equally popular ones stay together."""
    keys, size = [*by, "popularity"], pl.col("__rankframe_size")
    sizes = counts.group_by(keys).agg(_popularity.sum().alias("__rankframe_size"))
    sizes = sizes.sort(keys, descending=[*(False for _ in by), True])
    above, whole = _within(size.cum_sum(), by) - size, _within(size.sum(), by)
    return counts.join(sizes.select(*keys, (above >= head * whole).alias(name)), on=keys)


def _within(value: pl.Expr, by: Sequence[str]) -> pl.Expr:
    return value.over(by) if by else value
