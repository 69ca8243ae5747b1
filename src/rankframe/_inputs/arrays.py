"""Matrices to long tables, on numpy arrays: the best cells of each row, or the cells with a grade.

Several threads process the rows in slices that fit in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Sequence, Sized
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeGuard, cast

import numpy as np
import numpy.typing as npt
import polars as pl

from rankframe import _sizes
from rankframe._tables import adapters, rules
from rankframe.errors import RankingDataError

Array: TypeAlias = npt.NDArray[Any]

_BATCHES = "; of batches: pl.concat([rf.from_scores(x, user_ids=ids) for ids, x in batches])"


class Names(NamedTuple):
    """The names of the columns of a result."""

    user: str
    item: str
    value: str


class _Ties(NamedTuple):
    """How items of equal scores are ordered: the columns in order, and each column's place."""

    order: Array
    place: Array


class _Ranking(NamedTuple):
    """How slices are ranked."""

    k: int
    users: pl.Series
    items: pl.Series
    ties: _Ties
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
    names: Names,
    *,
    descending: bool,
) -> pl.DataFrame:
    """Return user, item, score and rank of the k best cells of each row."""
    array = read_matrix(scores, "scores", "a score")
    height, width = array.shape
    users = _ids_or_places(user_ids, "user_ids", height, "scores has {} rows")
    items = _ids_or_places(item_ids, "item_ids", width, "scores has {} columns")
    ranking = _Ranking(k or width, users, items, _ties(items), names, descending)
    step = max(1, _sizes.CELLS_OF_MATRIX // width)
    starts = range(0, height, step)
    slices = [array[first : first + step] for first in starts]
    best_of = partial(_best_of_slice, ranking=ranking)
    with ThreadPoolExecutor(min(pl.thread_pool_size(), _sizes.THREADS)) as pool:
        best = [*pool.map(best_of, starts, slices)]
    row, rank = _numbered(np.concatenate([part.counts for part in best]))
    if not len(row):
        msg = "scores: no cell is a candidate: each is −inf"
        raise RankingDataError(msg)
    return pl.DataFrame(
        {
            names.user: users.gather(pl.Series(row)),
            names.item: items.gather(pl.Series(np.concatenate([part.columns for part in best]))),
            names.value: pl.Series(np.concatenate([part.scores for part in best])),
            "rank": pl.Series(rank + 1),
        }
    )


def _numbered(counts: Array) -> tuple[Array, Array]:
    """Return each cell's row and its place in that row, from the number of cells per row."""
    row = np.repeat(np.arange(len(counts)), counts)
    starts = np.cumsum(counts) - counts
    return row, np.arange(len(row)) - np.repeat(starts, counts)


# ------------------------------------------------------------------ the best of a slice


def _best_of_slice(first: int, array: Array, ranking: _Ranking) -> _Best:
    """Rank some rows, of which this is the first."""
    values = _comparable(array)
    if not ranking.descending:
        values = -values
    k, limits = ranking.k, np.finfo(values.dtype)
    tops = _tops(values, k)
    if not tops.max() <= limits.max:  # NaN is not
        raise _unfit_cell(first, values, ranking)
    bound = np.full((len(values), 1), limits.min)  # −inf is below
    if k < values.shape[1]:
        bound = np.maximum(np.sort(tops, axis=1)[:, -k, None], limits.min)
    kept = values >= bound
    columns, counts = _cells(kept)
    crowded = np.flatnonzero(counts > _sizes.CELLS_PER_ITEM * k)
    if len(crowded):
        kept[crowded] = _exactly(values[crowded], bound[crowded], k, ranking.ties)
        columns, counts = _cells(kept)
    columns, counts = _best_first(values, columns, counts, k, ranking.ties)
    scores = array[np.repeat(np.arange(len(counts)), counts), columns]
    return _Best(counts, columns, scores.astype(_type_of_result(array), copy=False))


def _comparable(array: Array) -> Array:
    """Return floats in the order of the scores."""
    dtype = array.dtype
    if dtype.kind == "f":
        return np.ascontiguousarray(array, dtype=_type_of_result(array))
    if dtype.itemsize < 8:
        return array.astype(np.float32 if dtype.itemsize < 4 else np.float64, order="C")
    if max(-int(array.min()), int(array.max())) <= _sizes.WHOLE:
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
    groups = max(4 * k, _sizes.GROUPS_OF_COLUMNS)
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


def _best_first(
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


def _unfit_cell(first: int, values: Array, ranking: _Ranking) -> RankingDataError:
    row, column = (int(place[0]) for place in np.nonzero(np.isnan(values) | (values == np.inf)))
    problem = "NaN" if np.isnan(values[row, column]) else "infinite score"
    none = "−inf" if ranking.descending else "inf"
    cure = f"give candidates a finite score and other cells {none}"
    row += first
    place = _place(ranking.users[row], ranking.items[column], row, column, ranking.names)
    return RankingDataError(f"scores: {problem}: {cure}. Offending cell: {place}")


def _place(user: object, item: object, row: int, column: int, names: Names) -> str:
    ids = pl.DataFrame({names.user: [user], names.item: [item]})
    return f"{rules.format_row(ids)}, at row {row}, column {column}"


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
        msg = f"{name}: it must be a matrix, users × items, not {adapters.kind(values)}{_BATCHES}"
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
        msg = f"{name}: it is a masked array: fill it, as scores.filled(-np.inf) does"
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
        batches = _BATCHES * _is_list(values)
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
        batches = _BATCHES * (number > 2)
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
    return hasattr(value, "tocsr")


def _is_array(value: object) -> bool:
    return _is_sparse(value) or hasattr(value, "__array__") or hasattr(value, "__dlpack__")


def _is_list(value: object) -> TypeGuard[Sequence[object]]:
    return isinstance(value, list | tuple)
