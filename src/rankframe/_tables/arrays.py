"""Matrices to long tables, on numpy arrays: the best cells of each row, or the cells with a grade.

Several threads process the rows in slices that fit in the processor's cache. Besides the result,
memory holds one block of the caller's and some slices.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from rankframe._tables import adapters, rules
from rankframe.errors import RankingDataError

Array: TypeAlias = npt.NDArray[Any]

_CELLS = 2**19  # of a slice
_GROUPS = 2**9  # of columns, at least
_CROWD = 4  # times k cells of a row are sorted; if there are more, the best are selected first
_MOST_THREADS = 8  # each holds some slices
_ROW, _COLUMN = "__rankframe_row", "__rankframe_column"
_EXACT = 2**53  # floats represent all integers up to here


class Names(NamedTuple):
    """The names of the columns of a result."""

    user: str
    item: str
    value: str


class _Block(NamedTuple):
    """Some rows of the matrix."""

    name: str  # its name in errors
    array: Array
    users: pl.Series | None  # as passed with the block


class _Slice(NamedTuple):
    """Rows of a block that are ranked together."""

    block: str
    first: int  # its first row in the block
    array: Array
    users: pl.Series
    rows: Array | None  # of what is excluded


class _Excluded(NamedTuple):
    """Cells that are not candidates, by rows of a matrix."""

    shape: tuple[int, ...] | None  # None for a table, which has ids of users
    users: pl.DataFrame | None  # of a table: the users of its rows
    cells_of: Callable[[Array], tuple[Array, Array]]  # place among the rows, and column


class _Ties(NamedTuple):
    """How items of equal scores are ordered: the columns in order, and each column's place."""

    order: Array
    place: Array


class _Ranking(NamedTuple):
    """How slices are ranked."""

    k: int
    items: pl.Series
    ties: _Ties
    excluded: _Excluded | None
    names: Names
    descending: bool


class _Best(NamedTuple):
    """The best cells of a slice, row by row: how many of each row, their columns and scores."""

    counts: Array
    columns: Array
    scores: Array


# ------------------------------------------------------------------ scores


def ranked_cells(
    scores: object,
    k: int | None,
    user_ids: object,
    item_ids: object,
    exclude: object,
    names: Names,
    *,
    descending: bool,
) -> pl.DataFrame:
    """Return user, item, score and rank of the k best cells of each row."""
    ids = None if user_ids is None else read_ids(user_ids, "user_ids")
    ranking: _Ranking | None = None
    users: list[pl.Series] = []
    best_cells: list[_Best] = []
    met = False
    with ThreadPoolExecutor(min(pl.thread_pool_size(), _MOST_THREADS)) as pool:
        for block in _blocks(scores):
            if ranking is None:
                width = block.array.shape[1]
                items = _ids_or_places(
                    item_ids, "item_ids", width, f"{block.name} has {{}} columns"
                )
                excluded = _read_excluded(exclude, items, names)
                ranking = _Ranking(k or width, items, _ties(items), excluded, names, descending)
            of_block, rows = _users_of(block, ids, ranking.excluded)
            _check_like_first(block, of_block, len(ranking.items), users, best_cells)
            if ranking.excluded is not None and ranking.excluded.users is not None:
                rows = _rows_of_users(ranking.excluded.users, of_block)
                met = met or bool((rows < len(ranking.excluded.users)).any())
            users.append(of_block)
            parts = [*_slices(block, of_block, rows)]
            best = partial(_best_of_slice, ranking=ranking)
            best_cells += pool.map(best, parts) if len(parts) > 1 else map(best, parts)
            del block, parts  # before the next one is made
    if ranking is None:
        msg = "scores: it is empty: no batch has a row"
        raise RankingDataError(msg)
    if ranking.excluded is not None and ranking.excluded.users is not None and not met:
        raise _no_user_in_common(ranking.excluded.users, users[0])
    return _table(users, ranking.items, best_cells, names)


def _blocks(scores: object) -> Iterator[_Block]:
    """Read one matrix, or batches of its rows."""
    if not _has_batches(scores):
        yield _Block("scores", read_matrix(scores, "scores", "a score"), None)
        return
    number = -1  # enumerate would hold a batch while the next one is made
    for batch in cast("Iterable[object]", scores):
        number += 1
        name = f"scores, batch {number}"
        if not _is_pair(batch):
            msg = (
                f"{name}: it must be a pair, its users and their block, not {adapters.kind(batch)}"
            )
            raise TypeError(msg)
        of_batch, block = batch
        users = read_ids(of_batch, f"{name}, users")
        if len(users) or not isinstance(block, Sized) or len(block):
            array = read_matrix(block, name, "a score")
            del batch, block
            yield _Block(name, array, users)
            del array, users


def _has_batches(scores: object) -> bool:
    """Whether these are batches: neither an array nor a nested list of numbers."""
    if adapters.is_frame(scores) or _is_array(scores) or isinstance(scores, str | bytes | Mapping):
        return False
    if _is_list(scores):
        first = scores[0] if scores else None
        return _is_pair(first) and _dimensions(first[1]) > 1
    return isinstance(scores, Iterable)


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)


def _is_pair(value: object) -> TypeGuard[Sequence[object]]:
    return _is_list(value) and len(value) == 2


def _is_array(value: object) -> bool:
    return _is_sparse(value) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _dimensions(value: object) -> int:
    if _is_list(value):
        return 1 + _dimensions(value[0] if value else None)
    return getattr(value, "ndim", 2 if _is_array(value) else 0)


def _check_like_first(
    block: _Block, ids: pl.Series, first: int, users: Sequence[pl.Series], best: Sequence[_Best]
) -> None:
    """Raise if a batch differs from the first in width or types."""
    width = block.array.shape[1]
    if width != first:
        msg = (
            f"{block.name}: it has {width} columns, and the batches before have {first}: give each "
            "batch one column per item"
        )
        raise RankingDataError(msg)
    name, dtype = block.name, _type_of_result(block.array)
    if best and best[0].scores.dtype != dtype:
        msg = f"{name}: it is {dtype}, and the batches before are {best[0].scores.dtype}: cast one"
        raise RankingDataError(msg)
    if users and (before := users[0].dtype) != ids.dtype:
        msg = f"{name}, users: they are {ids.dtype}, and those before {before}: cast one"
        raise RankingDataError(msg)


def _users_of(
    block: _Block, ids: pl.Series | None, excluded: _Excluded | None
) -> tuple[pl.Series, Array | None]:
    """Return the ids of a block's users and, if they have any, their rows in the whole matrix."""
    height = len(block.array)
    shape = None if excluded is None else excluded.shape
    if ids is not None and shape is not None and shape[0] != len(ids):
        msg = f"exclude=: it has {shape[0]} rows, and user_ids {len(ids)} ids: give one per user"
        raise RankingDataError(msg)
    if shape is not None and shape[1] != block.array.shape[1]:
        msg = (
            f"exclude=: it has {shape[1]} columns, and {block.name} has {block.array.shape[1]}: "
            "give one per item"
        )
        raise RankingDataError(msg)
    if block.users is None:
        if ids is not None:
            _check_length("user_ids", ids, height, "scores has {} rows")
        if shape is not None and shape[0] != height:
            msg = f"exclude=: it has {shape[0]} rows, and scores has {height}: give one per user"
            raise RankingDataError(msg)
        positions = np.arange(height)
        return pl.Series(positions) if ids is None else ids, positions
    _check_length(f"{block.name}, users", block.users, height, "its block has {} rows")
    if ids is not None:
        positions = _positions(block.users, "user_ids", len(ids), block.name)
        return ids.gather(pl.Series(positions)), positions
    if shape is not None:
        return block.users, _positions(block.users, "exclude=", shape[0], block.name)
    return block.users, None


def _positions(users: pl.Series, source: str, number: int, block: str) -> Array:
    """Read the users of a batch as rows of the whole matrix."""
    if not users.dtype.is_integer():
        msg = f"{block}, users: they are {users.dtype}: beside {source} they are row positions"
        raise RankingDataError(msg)
    outside = users.filter((users < 0) | (users >= number))
    if len(outside):
        msg = (
            f"{block}, users: a position that {source} lacks, whose rows are 0 to {number - 1}. "
            f"Offending user: {outside[0]}"
        )
        raise RankingDataError(msg)
    return users.cast(pl.Int64).to_numpy()


def _slices(block: _Block, users: pl.Series, rows: Array | None) -> Iterator[_Slice]:
    height, width = block.array.shape
    step = max(1, _CELLS // width)
    for first in range(0, height, step):
        part = slice(first, first + step)
        of_part = None if rows is None else rows[part]
        yield _Slice(block.name, first, block.array[part], users[part], of_part)


def _table(
    users: Sequence[pl.Series], items: pl.Series, best_cells: Sequence[_Best], names: Names
) -> pl.DataFrame:
    """Put the cells of all slices into one long table."""
    user = pl.concat(users)
    if len(users) > 1 and user.n_unique() < len(user):
        twice = user.filter(user.is_duplicated())[0]
        msg = f"scores: a user is in several batches: keep one row. Offending user: {twice!r}"
        raise RankingDataError(msg)
    counts = np.concatenate([best.counts for best in best_cells])
    row, rank = _numbered(counts)
    if not len(row):
        msg = "scores: no cell is a candidate: each is −inf or excluded"
        raise RankingDataError(msg)
    columns = pl.Series(np.concatenate([best.columns for best in best_cells]))
    return pl.DataFrame(
        {
            names.user: user.gather(pl.Series(row)),
            names.item: items.gather(columns),
            names.value: pl.Series(np.concatenate([best.scores for best in best_cells])),
            "rank": pl.Series(rank + 1),
        }
    )


def _numbered(counts: Array) -> tuple[Array, Array]:
    """Return each cell's row and its place in that row, from the number of cells per row."""
    row = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return row, np.arange(len(row)) - np.repeat(starts, counts)


# ------------------------------------------------------------------ the best of a slice


def _best_of_slice(part: _Slice, ranking: _Ranking) -> _Best:
    values = _comparable(part.array)
    if not ranking.descending:
        values = -values
    if ranking.excluded is not None and part.rows is not None:
        cells = ranking.excluded.cells_of(part.rows)
        if len(cells[0]):
            values = values.copy() if np.may_share_memory(values, part.array) else values
            values[cells] = -np.inf
    k, limits = ranking.k, np.finfo(values.dtype)
    tops = _tops(values, k)
    if not tops.max() <= limits.max:  # NaN is not
        raise _unfit_cell(part, values, ranking)
    bound = np.full((len(values), 1), limits.min)  # −inf is below
    if k < values.shape[1]:
        bound = np.maximum(np.sort(tops, axis=1)[:, -k, None], limits.min)
    kept = values >= bound
    columns, counts = _cells(kept)
    crowded = np.flatnonzero(counts > _CROWD * k)
    if len(crowded):
        kept[crowded] = _exactly(values[crowded], bound[crowded], k, ranking.ties)
        columns, counts = _cells(kept)
    columns, counts = _in_order(values, columns, counts, k, ranking.ties)
    scores = part.array[np.repeat(np.arange(len(counts)), counts), columns]
    return _Best(counts, columns, scores.astype(_type_of_result(part.array), copy=False))


def _comparable(array: Array) -> Array:
    """Return floats in the order of the scores."""
    dtype = array.dtype
    if dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=_type_of_result(array))
    if dtype.itemsize < 8:
        return array.astype(np.float32 if dtype.itemsize < 4 else np.float64, order="C")
    if max(-int(array.min()), int(array.max())) <= _EXACT:
        return array.astype(np.float64, order="C")
    places = np.unique(array, return_inverse=True)[1]
    return places.reshape(array.shape).astype(np.float64)


def _type_of_result(array: Array) -> np.dtype[Any]:
    """Return the type of the scores: half precision becomes single."""
    return np.dtype(np.float32) if array.dtype == np.float16 else array.dtype


def _tops(values: Array, k: int) -> Array:
    """Return the greatest value of each of many groups of columns, if this saves time.

    The k-th greatest of them is at most the k-th greatest value, and rarely much less: with random
    scores, 1.15 k cells reach it. This takes a fifth of the time of a partition of the whole row.
    """
    height, width = values.shape
    groups = max(4 * k, _GROUPS)
    rest = width % groups
    if width < 2 * groups:
        return values
    tops: Array = values[:, : width - rest].reshape(height, -1, groups).max(axis=1)
    tops[:, :rest] = np.maximum(tops[:, :rest], values[:, width - rest :])
    return tops


def _cells(kept: Array) -> tuple[Array, Array]:
    """Return the columns of the cells that are kept, row by row, and how many each row has."""
    width: int = kept.shape[1]
    flat = np.flatnonzero(kept)
    starts = np.arange(len(kept) + 1) * width
    counts: Array = np.diff(np.searchsorted(flat, starts))
    return flat - np.repeat(starts[:-1], counts), counts


def _exactly(values: Array, bound: Array, k: int, ties: _Ties) -> Array:
    """Keep k cells of each row, which reach the bound: equal ones in the order of ties.

    Mostly equal scores, such as zeros, make too many cells: then the bound is the k-th score.
    """
    above = values > bound
    loose = np.flatnonzero(above.sum(axis=1) >= k)
    bound[loose] = np.partition(values[loose], -k, axis=1)[:, -k, None]
    above[loose] = values[loose] > bound[loose]
    free = k - above.sum(axis=1)
    for row, least in enumerate(bound[:, 0]):
        equal = np.flatnonzero(values[row, ties.order] == least)
        above[row, ties.order[equal[: free[row]]]] = True
    return above


def _in_order(
    values: Array, columns: Array, counts: Array, k: int, ties: _Ties
) -> tuple[Array, Array]:
    """Sort the cells of each row by value, descending, equal ones by the order of ties; keep k."""
    deepest = int(counts.max(initial=0))
    if not deepest:
        return columns, counts
    missing = values.shape[1]  # a place after all others
    inside = np.arange(deepest) < counts[:, None]
    places = np.full(inside.shape, missing)
    places[inside] = ties.place[columns]
    places.sort(axis=1)  # those that are missing come last, as in ``inside``
    columns = ties.order[np.minimum(places, missing - 1)]
    key = -np.take_along_axis(values, columns, axis=1)
    key[~inside] = np.inf
    by_value = np.argsort(key, axis=1, kind="stable")[:, :k]
    return np.take_along_axis(columns, by_value, axis=1)[inside[:, :k]], np.minimum(counts, k)


def _ties(items: pl.Series) -> _Ties:
    """Order equal scores by item id, descending, as ``with_rank`` does."""
    if isinstance(items.dtype, pl.Categorical | pl.Enum):
        items = items.cast(pl.String)
    order = items.arg_sort(descending=True).to_numpy().astype(np.int64)
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return _Ties(order, place)


def _unfit_cell(part: _Slice, values: Array, ranking: _Ranking) -> RankingDataError:
    row, column = (int(place[0]) for place in np.nonzero(np.isnan(values) | (values == np.inf)))
    problem = "NaN" if np.isnan(values[row, column]) else "infinite score"
    none = "−inf" if ranking.descending else "inf"
    cure = f"give candidates a finite score and other cells {none}, or pass exclude="
    ids = part.users[row], ranking.items[column]
    place = _place(*ids, part.first + row, column, ranking.names)
    return RankingDataError(f"{part.block}: {problem}: {cure}. Offending cell: {place}")


def _place(user: object, item: object, row: int, column: int, names: Names) -> str:
    ids = pl.DataFrame({names.user: [user], names.item: [item]})
    return f"{rules.format_row(ids)}, at row {row}, column {column}"


# ------------------------------------------------------------------ what is excluded


def _read_excluded(exclude: object, items: pl.Series, names: Names) -> _Excluded | None:
    if exclude is None:
        return None
    if adapters.is_frame(exclude):
        return _excluded_by_table(exclude, items, names)
    if _is_sparse(exclude):
        stored = cast("Any", exclude).tocsr()
        if stored.dtype == np.bool_ and not stored.data.all():
            stored = stored.copy()
            stored.eliminate_zeros()
        by_row = partial(_cells_of_rows, stored.indptr, stored.indices)
        return _Excluded(tuple(stored.shape), None, by_row)
    mask = _as_array(exclude, "exclude=")
    if mask.dtype != np.bool_ or mask.ndim != 2:
        msg = (
            f"exclude=: an array of {mask.ndim} dimensions of {mask.dtype}: it must be a Boolean "
            "matrix, users × items, a sparse matrix, or a table of user and item"
        )
        raise RankingDataError(msg)
    return _Excluded(mask.shape, None, partial(_cells_of_mask, mask))


def _cells_of_mask(mask: Array, rows: Array) -> tuple[Array, Array]:
    row, column = np.nonzero(mask[rows])
    return row, column


def _excluded_by_table(exclude: object, items: pl.Series, names: Names) -> _Excluded:
    """Read a table of user and item; rows of unknown items match nothing."""
    table = adapters.to_polars(cast("Any", exclude), "exclude= table")
    schema = table.collect_schema()
    for role, name in (("user", names.user), ("item", names.item)):
        if name not in schema:
            has = ", ".join(map(repr, schema.names()))
            msg = (
                f"exclude=: no column {name!r} for {role}; it has {has}; rename it, or name it "
                f"with {role}="
            )
            raise RankingDataError(msg)
    pairs = table.lazy().select(names.user, names.item).collect()
    for name in pairs.columns:
        missing = pairs.filter(pl.col(name).is_null())
        rules.raise_if_any(missing, "exclude=", name, "null id: drop the row")
    if pairs.is_empty():
        msg = "exclude=: it is empty"
        raise RankingDataError(msg)
    dtype = _common_type(pairs[names.item].dtype, items.dtype, names.item, "item ids of scores")
    numbers = pl.DataFrame({names.item: items.cast(dtype)}).with_row_index(_COLUMN)
    users = pl.DataFrame({names.user: pairs[names.user].unique()}).with_row_index(_ROW)
    places = (
        pairs.with_columns(pl.col(names.item).cast(dtype))
        .join(numbers, on=names.item)
        .join(users, on=names.user)
        .select(_ROW, _COLUMN)
        .sort(_ROW)
    )
    counts = np.bincount(places[_ROW].to_numpy(), minlength=len(users) + 1)  # the last has none
    starts = np.concatenate([[0], np.cumsum(counts)])
    return _Excluded(None, users, partial(_cells_of_rows, starts, places[_COLUMN].to_numpy()))


def _rows_of_users(table: pl.DataFrame, users: pl.Series) -> Array:
    """Look up the rows of users; those who exclude nothing share the one after the last."""
    name = table.columns[1]
    dtype = _common_type(table.schema[name], users.dtype, name, "user ids of scores")
    wanted = pl.DataFrame({name: users.cast(dtype)})
    table = table.with_columns(pl.col(name).cast(dtype))
    rows = wanted.join(table, on=name, how="left", maintain_order="left")[_ROW]
    return rows.cast(pl.Int64).fill_null(len(table)).to_numpy()


def _no_user_in_common(table: pl.DataFrame, users: pl.Series) -> RankingDataError:
    name = table.columns[1]
    return RankingDataError(
        f"exclude=, column {name!r}: no user of scores is in it; it has users like "
        f"{table[name][0]!r}, and scores has {users[0]!r}: pass the ids of the rows as user_ids="
    )


def _cells_of_rows(starts: Array, columns: Array, rows: Array) -> tuple[Array, Array]:
    """Return the cells of rows of a compressed matrix."""
    counts = starts[rows + 1] - starts[rows]
    row, place = _numbered(counts)
    return row, columns[np.repeat(starts[rows], counts) + place]


def _common_type(dtype: pl.DataType, own: pl.DataType, name: str, other: str) -> pl.DataType:
    """Return the type to compare ids by: they are alike, or any two integers."""
    if dtype == own:
        return dtype
    if dtype.is_integer() and own.is_integer():
        return rules.common_integer(dtype, own)
    msg = (
        f"exclude=, column {name!r}: it is {dtype}, and the {other} are {own}: cast one; ids must "
        "have the same type, or any two integer types"
    )
    raise RankingDataError(msg)


# ------------------------------------------------------------------ grades


def graded_cells(matrix: object, user_ids: object, item_ids: object, names: Names) -> pl.DataFrame:
    """Return user, item and value of the nonzero cells, or of those that a sparse matrix stores."""
    shape, row, column, values = _graded(matrix)
    users = _ids_or_places(user_ids, "user_ids", shape[0], "matrix has {} rows")
    items = _ids_or_places(item_ids, "item_ids", shape[1], "matrix has {} columns")
    dtype = np.int64 if values.dtype == np.bool_ else _type_of_result(values)
    values = values.astype(dtype, copy=False)
    unfit = np.flatnonzero(~np.isfinite(values)) if values.dtype.kind == "f" else np.empty(0)
    if len(unfit):
        first = int(unfit[0])
        at = int(row[first]), int(column[first])
        place = _place(users[at[0]], items[at[1]], *at, names)
        msg = (
            "matrix: NaN or infinite relevance: use a finite grade, or 0 if the item is unjudged. "
            f"Offending cell: {place}"
        )
        raise RankingDataError(msg)
    if not len(values):
        msg = "matrix: it is empty: no cell has a grade"
        raise RankingDataError(msg)
    return pl.DataFrame(
        {
            names.user: users.gather(pl.Series(row)),
            names.item: items.gather(pl.Series(column)),
            names.value: pl.Series(values),
        }
    )


def _graded(matrix: object) -> tuple[tuple[int, ...], Array, Array, Array]:
    """Read the cells of a matrix, row by row."""
    if not _is_sparse(matrix):
        array = read_matrix(matrix, "matrix", "a relevance", flags=True)
        row, column = np.nonzero(array)
        return array.shape, row, column, array[row, column]
    sparse = cast("Any", matrix)
    _check_dimensions("matrix", sparse.ndim)
    stored = sparse.tocsr()
    if not stored.has_canonical_format:  # duplicates, which SciPy adds up, or columns in disorder
        stored = stored.copy()
        stored.sum_duplicates()
    _check_type("matrix", stored.dtype, "a relevance", flags=True)
    counts: Array = np.diff(stored.indptr)
    row = np.repeat(np.arange(len(counts)), counts)
    return stored.shape, row, stored.indices, stored.data


def _ids_or_places(values: object, name: str, number: int, other: str) -> pl.Series:
    """Read the ids of rows or columns, by default their places."""
    if values is None:
        return pl.Series(np.arange(number))
    ids = read_ids(values, name)
    _check_length(name, ids, number, other)
    return ids


# ------------------------------------------------------------------ arrays and ids


def read_matrix(values: object, name: str, role: str, *, flags: bool = False) -> Array:
    """Read a matrix of numbers that NumPy or DLPack reads."""
    if adapters.is_frame(values):
        msg = (
            f"{name}: it is a table, {adapters.kind(values)}: for users × items pass .to_numpy(); "
            "a long table of user, item and number needs no conversion"
        )
        raise TypeError(msg)
    if _is_sparse(values):
        msg = f"{name}: it is sparse, so cells that are not stored have no score: pass .toarray()"
        raise TypeError(msg)
    if not (_is_list(values) or _is_array(values)):
        batches = " or batches, pairs of users and their block" if role == "a score" else ""
        msg = f"{name}: it must be a matrix, users × items{batches}, not {adapters.kind(values)}"
        raise TypeError(msg)
    array = _as_array(values, name)
    if array.ndim and not array.size:
        msg = f"{name}: it is empty"
        raise RankingDataError(msg)
    _check_dimensions(name, array.ndim)
    _check_type(name, array.dtype, role, flags=flags)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _as_array(values: object, name: str) -> Array:
    if isinstance(values, np.ma.MaskedArray):
        msg = f"{name}: it is a masked array: pass its data, and exclude= its mask"
        raise TypeError(msg)
    array = cast("Any", values)
    if callable(getattr(array, "detach", None)) and callable(getattr(array, "cpu", None)):
        array = array.detach().cpu()  # a PyTorch tensor with gradients, or on another device
    dlpack = hasattr(array, "__dlpack__") and not hasattr(array, "__array__")
    try:
        return np.from_dlpack(array) if dlpack else np.asarray(array)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        _raise_if_ragged(values, name)
        why = str(error).partition("\n")[0]
        batches = "; batches are pairs of users and their rows, users × items" * _is_list(values)
        msg = (
            f"{name}: numpy cannot read {adapters.kind(values)} ({why}): convert it first{batches}"
        )
        raise TypeError(msg) from None


def _raise_if_ragged(values: object, name: str) -> None:
    """Raise for the first row of a nested list that is not as long as row 0."""
    rows: Sequence[object] = values if _is_list(values) else ()
    lengths = [len(row) if isinstance(row, Sized) else 1 for row in rows]
    for row, length in enumerate(lengths):
        if length != lengths[0]:
            msg = (
                f"{name}: rows of different lengths: give each row one cell per item. Offending "
                f"row: {row}, which has {length} where row 0 has {lengths[0]}"
            )
            raise RankingDataError(msg)


def _check_type(name: str, dtype: np.dtype[Any], role: str, *, flags: bool) -> None:
    allowed = "iufb" if flags else "iuf"
    if dtype.kind not in allowed or dtype.itemsize > 8:
        msg = f"{name}: {dtype} cannot be {role}: cast it to numbers of at most 64 bits"
        raise RankingDataError(msg)


def _check_dimensions(name: str, number: int) -> None:
    if number != 2:
        dimensions = f"{number} dimension{'s' if number != 1 else ''}"
        batches = "; batches are pairs of users and their rows" * (number > 2)
        msg = f"{name}: it has {dimensions}: it must have two, users × items{batches}"
        raise RankingDataError(msg)


def _check_length(name: str, ids: pl.Series, number: int, other: str) -> None:
    if len(ids) != number:
        msg = f"{name}: it has {len(ids)} ids, and {other.format(number)}: give one id to each"
        raise RankingDataError(msg)


def read_ids(values: object, name: str) -> pl.Series:
    """Read the ids of rows or columns: no nulls, no duplicates."""
    ids = _as_ids(values, name)
    dtype = ids.dtype
    if dtype.is_nested() or dtype.is_object():
        msg = f"{name}: {dtype} cannot be an id: use text or integers"
        raise RankingDataError(msg)
    missing = ids.is_null() | ids.is_nan() if dtype.is_float() else ids.is_null()
    if missing.any():
        msg = f"{name}: null or NaN id: fill it in. Offending place: {missing.arg_true()[0]}"
        raise RankingDataError(msg)
    if ids.n_unique() < len(ids):
        first = ids.filter(ids.is_duplicated())[0]
        places = ", ".join(str(place) for place in (ids == first).arg_true()[:2])
        msg = f"{name}: duplicate id: keep one. Offending id: {first!r}, at {places}"
        raise RankingDataError(msg)
    return ids


def _as_ids(values: object, name: str) -> pl.Series:
    if isinstance(values, pl.Series):
        return values
    ids: Any = values
    if not isinstance(values, list | tuple | range):
        if adapters.is_frame(values) or not _is_array(values):
            msg = (
                f"{name}: it must be a sequence, an array or a Series of ids, "
                f"not {adapters.kind(values)}"
            )
            raise TypeError(msg)
        array = _as_array(values, name)
        if array.ndim != 1:
            msg = f"{name}: it has {array.ndim} dimensions: it must have one"
            raise RankingDataError(msg)
        ids = array.tolist() if array.dtype == object else array
    try:
        return pl.Series(ids)
    except (TypeError, ValueError, OverflowError, pl.exceptions.PolarsError):
        msg = f"{name}: its values have no common polars type: use text or integers"
        raise RankingDataError(msg) from None


def _is_sparse(value: object) -> bool:
    """Whether this is a matrix or an array of scipy.sparse."""
    return hasattr(value, "tocsr") and hasattr(value, "nnz")
