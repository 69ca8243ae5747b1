"""Runs, history and catalogue for the measures beyond accuracy: seeded, as Parquet files.

Item x is drawn with a chance of 1 / (x + 1). Every item of the catalogue is in the history, so the
libraries that take the catalogue from there have the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.data import CACHE, SEED

GENRES, NUMBERS, DEPTH = 20, 64, 10
_AT_A_TIME = 100_000  # users


class Size(NamedTuple):
    """Lists, users with a history, items, and the shortest list."""

    lists: int
    known: int
    items: int
    shortest: int = DEPTH

    def small(self) -> Size:
        """Take 1/50 of everything."""
        return Size(self.lists // 50, self.known // 50, self.items // 50, self.shortest)


#: A user with a history has 17 rows of it on the average; lists of the check may be short.
SIZES = {
    "check": Size(2_000, 2_000, 1_500, 3),
    "1 M": Size(100_000, 100_000, 20_000),
}


class Files(NamedTuple):
    """The Parquet files of one data set."""

    run: Path
    other: Path
    truth: Path
    history: Path
    items: Path


def files(name: str, *, small: bool = False) -> Files:
    """Give the files of a size, made if they are not there."""
    size = SIZES[name].small() if small else SIZES[name]
    folder = CACHE / "data" / f"beyond-{name.replace(' ', '')}{'-small' if small else ''}"
    made = Files(*(folder / f"{table}.parquet" for table in Files._fields))
    if not all(path.exists() for path in made):
        folder.mkdir(parents=True, exist_ok=True)
        for path, frame in zip(made, _tables(size), strict=True):
            frame.write_parquet(path)
    return made


def _tables(size: Size) -> Iterator[pl.DataFrame]:
    """Make the tables one by one, in the order of :class:`Files`."""
    rng = np.random.default_rng([SEED, size.lists])
    run = _lists(rng, size)
    yield run
    yield _lists(rng, size)
    hits = run.filter(pl.Series(rng.random(len(run)) < 0.15)).select("user", "item")
    beside = _drawn(rng, size.lists, 4, size.items)
    user = np.repeat(np.arange(size.lists), 4)
    missed = pl.DataFrame({"user": user, "item": beside.ravel()})
    yield pl.concat([hits, missed]).unique(maintain_order=True)
    yield _history(rng, size)
    yield _items(rng, size.items)


def _lists(rng: np.random.Generator, size: Size) -> pl.DataFrame:
    parts: list[pl.DataFrame] = []
    for first in range(0, size.lists, _AT_A_TIME):
        users = np.arange(first, min(first + _AT_A_TIME, size.lists))
        length = rng.integers(size.shortest, DEPTH + 1, size=(len(users), 1))
        kept = np.arange(DEPTH) < length
        place = np.broadcast_to(np.arange(1, DEPTH + 1), kept.shape)[kept]
        item = _drawn(rng, len(users), DEPTH, size.items)[kept]
        user = np.repeat(users, length.ravel())
        # strictly falling
        part = {"user": user, "item": item, "rank": place, "score": 1.0 / place}
        parts.append(pl.DataFrame(part))
    return pl.concat(parts)


def _history(rng: np.random.Generator, size: Size) -> pl.DataFrame:
    users, most = np.arange(size.known), 27
    first = (users % size.items)[:, None]  # every item at least once
    item = _drawn(rng, size.known, most, size.items, first)
    length = rng.integers(7, most + 1, size=(size.known, 1))
    kept = np.arange(most) < length
    return pl.DataFrame({"user": np.repeat(users, length.ravel()), "item": item[kept]})


def _drawn(
    rng: np.random.Generator,
    users: int,
    number: int,
    items: int,
    first: np.ndarray | None = None,
) -> np.ndarray:
    """Draw different items for each user, in random order."""
    chance = np.cumsum(1 / np.arange(1, items + 1))
    drawn = np.searchsorted(chance / chance[-1], rng.random((users, 2 * number)))
    # what is left at the end of the long tail makes up where too few are different
    spare = items - 1 - np.arange(number) + np.zeros((users, 1), np.int64)
    drawn = np.hstack([*([] if first is None else [first]), drawn, spare])
    again = np.zeros(drawn.shape, np.bool_)
    for place in range(1, drawn.shape[1]):
        again[:, place] = (drawn[:, :place] == drawn[:, place : place + 1]).any(axis=1)
    return np.take_along_axis(drawn, again.argsort(axis=1, kind="stable")[:, :number], axis=1)


def _items(rng: np.random.Generator, number: int) -> pl.DataFrame:
    names = np.array([f"g{place:02}" for place in range(GENRES)])
    sets = rng.random((number, GENRES)).argsort(axis=1)
    genres = [
        sorted(names[some[:many]].tolist())
        for some, many in zip(sets, rng.integers(1, 5, size=number), strict=True)
    ]
    vectors = pl.Series(rng.normal(size=(number, NUMBERS)), dtype=pl.Array(pl.Float64, NUMBERS))
    return pl.DataFrame(
        {
            "item": np.arange(number),
            "genre": genres,
            "main": [some[0] for some in genres],
            "vector": vectors,
        }
    )
