"""Distances inside lists, on numpy arrays: each item against the sum of those above it.

A sum over the pairs of a list is a sum over its items of what they have in common with all items
above, so no pair is ever made: the cost is that of the values themselves.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
import polars as pl

from rankframe import _sizes
from rankframe._tables import rules
from rankframe.errors import option

Array: TypeAlias = npt.NDArray[Any]


def pairs_above(first: pl.Series) -> pl.Series:
    """Count the rows of the list above each row; ``first`` marks where lists begin."""
    return pl.Series(_place(first.to_numpy()), dtype=pl.Int64)


def distances_above(
    items: pl.DataFrame, of: str, places: pl.Series, first: pl.Series, distance: str
) -> pl.Series:
    """Add up the distance of each row's item to those above, by their places in ``items``."""
    dtype, begins, rows = items.schema[of], first.to_numpy(), places.to_numpy()
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    if isinstance(inner, pl.DataType) and inner.is_numeric():
        total = _of_vectors(_vectors(items, of), rows, begins, distance)
        return pl.Series(total, dtype=pl.Float64)
    values, counts = _codes(items[of])
    number = int(values.max(initial=0)) + 1
    if distance == "hamming" and number <= _sizes.VALUES_AS_COLUMNS:  # integers are not rounded
        flags = np.zeros((len(counts), number))
        flags[np.repeat(np.arange(len(counts)), counts), values] = 1
        return pl.Series(_of_vectors(flags, rows, begins, "euclidean2"), dtype=pl.Float64)
    common = _common_of_sets(values, counts, rows, begins, by_size=distance == "cosine")
    above = _place(begins)
    if distance == "cosine":
        return pl.Series(np.maximum(above - common, 0), dtype=pl.Float64)
    own = counts[rows].astype(np.float64)  # |A Δ B| = |A| + |B| − 2|A ∩ B|
    return pl.Series(above * own + _sum_above(own, begins) - 2 * common, dtype=pl.Float64)


def _common_of_sets(
    values: Array, counts: Array, rows: Array, begins: Array, *, by_size: bool
) -> Array:
    """Add up how many values, or what share of them (cosine), each set has of those above."""
    number = int(values.max(initial=0)) + 1
    starts = np.cumsum(counts) - counts
    mine = counts[rows]
    row = np.repeat(np.arange(len(rows)), mine)
    inside = np.arange(len(row)) - np.repeat(np.cumsum(mine) - mine, mine)
    value = values[np.repeat(starts[rows], mine) + inside]
    key = (np.cumsum(begins) - 1)[row] * number + value
    order = np.argsort(key, kind="stable")  # by list and value, in each in rank order
    key, row = key[order], row[order]
    weight = 1 / np.sqrt(mine[row]) if by_size else np.ones(len(row))
    new = np.empty(len(key), np.bool_)
    new[:1], new[1:] = True, key[1:] != key[:-1]
    shared = weight * _sum_above(weight, new)
    return np.bincount(row, weights=shared, minlength=len(rows))


def _of_vectors(vectors: Array, rows: Array, begins: Array, distance: str) -> Array:
    """Compare each vector with the sum of those above it, some lists at a time."""
    cosine = distance == "cosine"
    if cosine:
        vectors = _unit(vectors)
    total = np.zeros(len(rows))
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(rows)))
    longest_first = np.argsort(-lengths, kind="stable")
    at_a_time = max(1, _sizes.CELLS_OF_DISTANCES // max(1, vectors.shape[1]))
    for begin in range(0, len(starts), at_a_time):
        lists = longest_first[begin : begin + at_a_time]
        origin = vectors[rows[starts[lists]]]  # distances from the first: close ones do not cancel
        sums, squares = np.zeros_like(origin), np.zeros(len(lists))
        for place in range(int(lengths[lists[0]])):
            list_count = int(np.searchsorted(-lengths[lists], -place, side="left"))
            row = starts[lists[:list_count]] + place
            row_vectors = vectors[rows[row]] if cosine else vectors[rows[row]] - origin[:list_count]
            common = np.einsum("ij,ij->i", row_vectors, sums[:list_count])
            sums[:list_count] += row_vectors
            if cosine:
                total[row] = place - common
                continue
            # ‖x − y‖² = ‖x‖² + ‖y‖² − 2x·y
            own = np.einsum("ij,ij->i", row_vectors, row_vectors)
            total[row] = place * own + squares[:list_count] - 2 * common
            squares[:list_count] += own
    return np.maximum(total, 0)


def _unit(vectors: Array) -> Array:
    """Scale vectors to length 1; zero vectors stay."""
    largest = np.abs(vectors).max(axis=1, keepdims=True, initial=0)
    scaled = np.divide(vectors, largest, out=np.zeros_like(vectors), where=largest > 0)
    length = np.sqrt(np.einsum("ij,ij->i", scaled, scaled))[:, None]
    unit: Array = np.divide(scaled, length, out=scaled, where=length > 0)
    return unit


def _sum_above(values: Array, begins: Array) -> Array:
    """Add up the values above each row of a list, as integers: sums of lists do not mix."""
    starts = np.flatnonzero(begins)
    lengths = np.diff(np.append(starts, len(values)))
    _, exponent = np.frexp(values.max(initial=1.0))
    bits = min(50, 62 - int(lengths.max(initial=1)).bit_length()) - int(exponent)
    units = np.round(np.ldexp(values, bits)).astype(np.int64)
    above = np.cumsum(units) - units  # integers wrap, but their differences are right
    return np.ldexp((above - np.repeat(above[starts], lengths)).astype(np.float64), -bits)


def _place(begins: Array) -> Array:
    """Count the rows of the list above each row."""
    row = np.arange(len(begins))
    return row - np.repeat(row[begins], np.diff(np.append(row[begins], len(begins))))


def _codes(values: pl.Series) -> tuple[Array, Array]:
    """Number the values of sets; returns them all in a row, and how many each set has."""
    if not isinstance(values.dtype, pl.List | pl.Array):
        values = values.reshape((-1, 1))
    if isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    values = values.list.drop_nulls().list.unique()
    flat = values.explode(empty_as_null=False)
    codes = flat.rank("dense").to_numpy() if len(flat) else np.zeros(0)
    return codes.astype(np.int64), values.list.len().to_numpy().astype(np.int64)


def _vectors(items: pl.DataFrame, of: str) -> Array:
    """Make one matrix of all vectors, and check them."""
    values = items[of]
    if isinstance(values.dtype, pl.Array):
        values = values.arr.to_list()
    lengths = values.list.len()
    length = lengths[0] if len(lengths) else 0
    flat = values.explode(empty_as_null=False).cast(pl.Float64)
    finite = flat.is_finite().fill_null(value=False)
    if len(lengths) and (lengths != length).any():
        _raise_bad_vector(items, of, lengths != length, f"its length is not {length}, as of others")
    if length == 0 and len(lengths):
        _raise_bad_vector(items, of, lengths == 0, "its length is 0")
    if not finite.all():
        bad = finite.reshape((-1, length)).arr.all()
        _raise_bad_vector(items, of, ~bad, "it has a number that is null or not finite")
    return flat.to_numpy().reshape(len(values), length)


def _raise_bad_vector(items: pl.DataFrame, of: str, bad: pl.Series, why: str) -> None:
    rows = items.filter(bad).drop("__rankframe_place")
    rules.raise_if_any(rows, option("items"), of, f"a vector cannot be compared: {why}")
