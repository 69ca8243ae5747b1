"""Runs and truths of any size: seeded, with a long tail of popularity, as Parquet files.

The catalogue is cut into as many strata of popularity as a list is long, and a list holds one item
of each, in random order: so no item is twice in a list, and the first 1 % of the items take 22 % of
all rows. An item of the truth is in the list with a chance that falls from 0.6 at the top to 0.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
import polars as pl

Ids: TypeAlias = Literal["integer", "string"]

CATALOGUE = 1_000_000
SEED = 20260401

#: Where the data and the peers' environments are kept.
CACHE = Path(os.environ.get("BENCHMARKS_CACHE") or Path(__file__).parent / ".cache")


class Shape(NamedTuple):
    """How many users, how many items a list, and how many relevant items a user at the least."""

    users: int
    depth: int
    fewest: int
    most: int


#: 10 relevant items a user in (a) and (c), 6.5 on the average in (b).
SHAPES = {
    "a": Shape(100_000, 100, 10, 10),
    "b": Shape(1_000_000, 10, 3, 10),
    "c": Shape(10_000, 100, 10, 10),
}


class Files(NamedTuple):
    """The two Parquet files of one data set."""

    run: Path
    truth: Path


def files(name: str, ids: Ids, *, small: bool = False) -> Files:
    """Give the files of a shape, made if they are not there; a small one has 1/50 of the users."""
    shape = SHAPES[name]
    if small:
        shape = shape._replace(users=shape.users // 50)
    folder = CACHE / "data" / f"{name}-{ids}{'-small' if small else ''}"
    return write(folder, lambda: tables(shape, ids))


def write(folder: Path, make: Callable[[], tuple[pl.DataFrame, ...]]) -> Files:
    """Write what ``make()`` gives, once."""
    made = Files(folder / "run.parquet", folder / "truth.parquet")
    if not made.truth.exists():
        folder.mkdir(parents=True, exist_ok=True)
        for frame, path in zip(make(), made, strict=True):
            unfinished = path.with_suffix(".part")
            frame.write_parquet(unfinished)
            unfinished.rename(path)
    return made


def tables(shape: Shape, ids: Ids = "integer", *, first: int = 0) -> tuple[pl.DataFrame, ...]:
    """Make run (user, item, rank, score) and truth (user, item, relevance) of users from first."""
    rng = np.random.default_rng([SEED, first])
    size = (shape.users, shape.depth)
    user = np.arange(first, first + shape.users)
    stratum = rng.random(size).argsort(axis=1)
    listed = _item(stratum, rng.random(size), shape.depth)
    place = np.arange(shape.depth)
    run = pl.DataFrame(
        {
            "user": np.repeat(user, shape.depth),
            "item": listed.ravel(),
            "rank": np.tile(place + 1, shape.users),
            # strictly falling, also in 32 bits
            "score": ((shape.depth - place - 0.9 * rng.random(size)) / shape.depth).ravel(),
        }
    )

    relevant = rng.random(size).argsort(axis=1)[:, : shape.most]
    number = rng.integers(shape.fewest, shape.most + 1, size=(shape.users, 1))
    kept = np.arange(shape.most) < number
    hit = rng.random(relevant.shape) < 0.6 * (1 - relevant / shape.depth)
    rows = np.arange(shape.users)[:, None]
    other = _item(stratum[rows, relevant], rng.random(relevant.shape), shape.depth)
    item = np.where(hit, listed[rows, relevant], other)
    grade = rng.choice([1, 2, 3], p=[0.6, 0.3, 0.1], size=item.shape)
    truth = pl.DataFrame(
        {
            "user": np.repeat(user, number.ravel()),
            "item": item[kept],
            "relevance": grade[kept],
        }
    )
    return (run, truth) if ids == "integer" else (_texts(run), _texts(truth))


def _item(stratum: np.ndarray, place: np.ndarray, strata: int) -> np.ndarray:
    """Draw an item out of its stratum; item x is as popular as x to the power of -2/3."""
    width = CATALOGUE // strata**3
    last = width * (stratum + 1) ** 3 - 1
    popularity: np.ndarray = np.minimum((width * (stratum + place) ** 3).astype(np.int64), last)
    popularity *= 387_420_489  # 3^18: ids do not tell the popularity
    return popularity % CATALOGUE


def _texts(frame: pl.DataFrame) -> pl.DataFrame:
    """Make ids of 13 bytes, one more than a string view of Arrow holds in place."""
    ids = [
        pl.format("{}-{}", pl.lit(name), pl.col(name).cast(pl.String).str.zfill(8)).alias(name)
        for name in ("user", "item")
    ]
    return frame.with_columns(ids)
