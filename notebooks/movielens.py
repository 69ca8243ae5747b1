"""MovieLens-100K and two recommenders in Polars, for the notebooks beside this file.

The ratings are those of F. M. Harper and J. A. Konstan, *The MovieLens Datasets*, ACM TiiS 5(4),
2015. Ratings and films are read from the wheel of RecBole, which ships them as an example. To use
your own file, set the environment variable ``MOVIELENS_100K`` to its path, ``u.data`` or
``ml-100k.inter``; the films are then read from ``ml-100k.item`` in the same folder.
"""

import functools
import os
import subprocess
import sys
import tempfile
import zipfile
from datetime import date, timedelta
from pathlib import Path

import polars as pl

import rankframe as rf

RATINGS, FILMS = "ml-100k.inter", "ml-100k.item"


def ratings() -> pl.DataFrame:
    """Read the 100,000 ratings: user, item, rating, time."""
    raw = _file(RATINGS)
    read = pl.read_csv(
        raw,
        separator="\t",
        has_header=False,
        skip_rows=int(raw.startswith(b"user")),
        new_columns=["user", "item", "rating", "time"],
        schema_overrides=[pl.Int32, pl.Int32, pl.Float64, pl.Float64],
    )
    return _whole(read, 100_000)


def films() -> pl.DataFrame:
    """Read the 1,682 films: item, title, and genre as a list, null where the genre is unknown."""
    read = pl.read_csv(
        _file(FILMS),
        separator="\t",
        quote_char=None,
        infer_schema=False,
        new_columns=["item", "title", "year", "genre"],
    )
    genre = pl.col("genre").replace("unknown", None).str.split(" ")
    return _whole(read.select(pl.col("item").cast(pl.Int32), "title", genre=genre), 1682)


def split(rated: pl.DataFrame) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Split the ratings by time: the first 80 % are the history, and the others the future."""
    line = rated["time"].sort()[rated.height * 8 // 10]
    return rated.filter(pl.col("time") < line), rated.filter(pl.col("time") >= line)


def liked(past: pl.DataFrame, future: pl.DataFrame) -> pl.DataFrame:
    """Make the truth of users with a history: 4 stars are grade 1, and 5 stars grade 2."""
    back = future.filter(pl.col("rating") >= 4).join(past, on="user", how="semi")
    return back.select("user", "item", relevance=pl.col("rating") - 3)


def popularity(
    past: pl.DataFrame, users: pl.DataFrame, n: int = 20, counted: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Recommend the films that most users have rated, in the past or among the counted ratings."""
    counts = (past if counted is None else counted).group_by("item").agg(score=pl.len())
    # no user has rated so many that fewer than n of these are left
    most = past.group_by("user").len()["len"].max() + n
    return _first(users.join(counts.top_k(most, by="score"), how="cross"), past, n)


def write_days(lake: Path, rated: pl.DataFrame, first: date, number: int) -> None:
    """Write lists and judgments by day: run/day=…/0.parquet and truth/day=…/0.parquet.

    The lists of a day are for its users and know the ratings before it: the films that most users
    rated (popular), or rated in the last four weeks (recent).
    """
    rated = rated.with_columns(day=pl.from_epoch("time").dt.date())
    for day in (first + timedelta(days=n) for n in range(number)):
        past, today = rated.filter(pl.col("day") < day), rated.filter(pl.col("day") == day)
        users, four_weeks = today.select("user").unique(maintain_order=True), timedelta(days=28)
        recent = past.filter(pl.col("day") >= day - four_weeks)
        lists = {"popular": popularity(past, users), "recent": popularity(past, users, 20, recent)}
        grade = (pl.col("rating") - 3).clip(0).cast(pl.Int32)
        tables = {
            "run": rf.runs.stack(lists),
            "truth": today.select("user", "item", relevance=grade),
        }
        for name, table in tables.items():
            (folder := lake / name / f"day={day}").mkdir(parents=True)
            table.write_parquet(folder / "0.parquet")


def trending(past: pl.DataFrame, users: pl.DataFrame, n: int = 20) -> pl.DataFrame:
    """Recommend the films that most users have rated in the last 30 days."""
    recent = pl.col("time") > pl.col("time").max() - 30 * 24 * 60 * 60
    counts = past.filter(recent).group_by("item").agg(score=pl.len())
    return _first(users.join(counts, how="cross"), past, n)


def item_knn(past: pl.DataFrame, users: pl.DataFrame, n: int = 20) -> pl.DataFrame:
    """Recommend films similar to those that the user liked.

    Two films are similar if the same users liked both: the cosine of their users. A film's score is
    the sum of its similarities to the films that the user liked, of which each has 50 neighbors.
    """
    likes = past.filter(pl.col("rating") >= 4).select("user", "item")
    sizes = likes.group_by("item").agg(size=pl.len())
    near = (
        likes.join(likes, on="user", suffix=" near")
        .filter(pl.col("item") != pl.col("item near"))
        .group_by("item", "item near")
        .agg(both=pl.len())
        .join(sizes, on="item")
        .join(sizes, left_on="item near", right_on="item", suffix=" near")
        .with_columns(cosine=pl.col("both") / (pl.col("size") * pl.col("size near")).sqrt())
        .sort("item", "cosine", "item near", descending=[False, True, False])
        .group_by("item", maintain_order=True)
        .head(50)
    )
    scored = (
        likes.join(users, on="user")
        .join(near, on="item")
        .group_by("user", "item near")
        .agg(score=pl.col("cosine").sum().round(9))
        .rename({"item near": "item"})
    )
    return _first(scored, past, n)


def _first(scored: pl.DataFrame, past: pl.DataFrame, n: int) -> pl.DataFrame:
    """Rank the films that the user has not rated yet, and keep the first n."""
    fresh = scored.join(past, on=["user", "item"], how="anti")
    ranked = rf.with_rank(fresh).filter(pl.col("rank") <= n)
    return ranked.select("user", "item", "rank").sort("user", "rank")


@functools.cache
def _file(name: str) -> bytes:
    """Read a file of the data set from the user's folder, or from RecBole's wheel."""
    path = Path(os.environ.get("MOVIELENS_100K", ""))
    if path.name and (name == RATINGS or path.with_name(name).exists()):
        return path.read_bytes() if name == RATINGS else path.with_name(name).read_bytes()
    return _wheel()[name]


@functools.cache
def _wheel() -> dict[str, bytes]:
    """Download RecBole's wheel, and read both files."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        done = subprocess.run([*pip, "recbole==1.2.1"], capture_output=True, text=True, check=False)
        if done.returncode:
            reason = done.stderr.strip()[-500:]
            msg = f"MovieLens-100K was not found: set MOVIELENS_100K to a path. {reason}"
            raise FileNotFoundError(msg)
        (wheel,) = Path(folder).glob("*.whl")
        with zipfile.ZipFile(wheel) as archive:
            inside = "recbole/dataset_example/ml-100k"
            return {name: archive.read(f"{inside}/{name}") for name in (RATINGS, FILMS)}


def _whole(read: pl.DataFrame, rows: int) -> pl.DataFrame:
    """Check that the file is the one that the notebooks describe."""
    if read.height != rows:
        msg = f"{read.height} rows: MovieLens-100K has {rows}"
        raise ValueError(msg)
    return read
