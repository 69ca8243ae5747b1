"""The engines that run SQL in a test, and tables on which dialects and joins can go wrong."""

import random
import sqlite3
from contextlib import closing

import duckdb
import polars as pl
import pytest

KEYS = ["model", "user"]
USER = ["wiki", "session"]
REFUSED = {
    *("alpha_dcg", "alpha_ndcg", "ap_ia", "err_ia", "nerr_ia", "nnrbp", "nrbp", "precision_ia"),
    *("subtopic_recall", "compatibility", "concordance", "kendall_tau_b", "gap", "inst"),
}


def is_translated(label):
    return label.partition("(")[0].partition("@")[0] not in REFUSED


def tables(seed=1, *, groups=2, text=False, score=False):
    """Gaps, null ranks, users without lists, in one table alone, or with grade 0 and −1 only."""
    draw = random.Random(seed)
    run, truth = [], []
    for model in range(groups):
        for user in range(9):
            if user == 0 or (user == 1 and model == 0):
                continue
            rank = 0
            for item in draw.sample(range(14), draw.randint(1, 13)):
                rank += 1 + (draw.random() < 0.15)
                run.append((f"m{model}", user, item, None if draw.random() < 0.1 else rank))
    for user in [*range(8), 9]:
        for item in draw.sample(range(17), draw.randint(1, 8)):
            grade = draw.choice([-1, 0] if user == 5 else [-1, 0, 1, 1, 2, 3])
            truth.append((user, item, grade))
    draw.shuffle(run)
    run = pl.DataFrame(run, schema=[*KEYS, "item", "rank"], orient="row")
    truth = pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row")
    if text:
        ids = [pl.col("user").cast(pl.String) + "ü", "i" + pl.col("item").cast(pl.String)]
        run, truth = (frame.with_columns(ids[0], ids[1].alias("item")) for frame in (run, truth))
    if score:  # ties, a null and a NaN
        points = (100 - pl.col("rank") // 2).cast(pl.Float64)
        run = run.with_columns(
            score=pl.when(pl.col("rank") != 7).then(points).otherwise(float("nan"))
        )
        run = run.drop("rank")
    return run, truth


def in_two_columns(frame):
    """Name a user by two columns, each of which several users share."""
    parts = [(pl.col("user") // 3).cast(pl.String).alias(USER[0]), (pl.col("user") % 3)]
    return frame.select(parts[0], parts[1].alias(USER[1]), pl.exclude("user"))


def of_two_columns(frame):
    """Put the user back in the place of the two columns."""
    user = pl.col(USER[0]).cast(pl.Int64) * 3 + pl.col(USER[1])
    return frame.with_columns(user.alias("user"))


def in_duckdb(query, **frames):
    with duckdb.connect() as connection:
        for name, frame in frames.items():
            connection.register(name, frame)
        return connection.sql(query).pl()


def in_sqlite(query, **frames):
    with closing(sqlite3.connect(":memory:")) as connection:
        for name, frame in frames.items():
            columns = ", ".join('"' + column.replace('"', '""') + '"' for column in frame.columns)
            connection.execute(f'CREATE TABLE "{name}" ({columns})')
            holes = ", ".join("?" * frame.width)
            connection.executemany(f'INSERT INTO "{name}" VALUES ({holes})', frame.rows())
        return table_of(connection.execute(query))


def table_of(cursor):
    """Read the result of a DB-API cursor."""
    names, rows = [column[0] for column in cursor.description], cursor.fetchall()
    columns = {name: [row[place] for row in rows] for place, name in enumerate(names)}
    return pl.DataFrame(columns, strict=False)


def has_sqlite():
    """Whether SQLite was built with its functions of mathematics."""
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.execute("SELECT ln(1)")
        except sqlite3.OperationalError:
            return False
    return True


ENGINES = {"duckdb": in_duckdb, "sqlite": in_sqlite}


def need(dialect):
    if dialect == "sqlite" and not has_sqlite():
        pytest.skip("SQLite has no ln here")


def differences(got, want, keys):
    """Name the first value of each column that is not the same to 1e-12."""
    assert got.columns == want.columns
    got, want = (frame.sort(keys) if keys else frame for frame in (got, want))
    assert got.select(keys).rows() == want.select(keys).rows()
    apart = {}
    for name in want.columns:
        for left, right in zip(got[name], want[name], strict=True):
            numbers = isinstance(right, int | float) and left is not None
            same = (
                abs(float(left) - right) <= 1e-12 * max(1, abs(right)) if numbers else left == right
            )
            if not same:
                apart[name] = (left, right)
    return apart
