"""Lists as arrays, and the functions in SQL that read them."""

import duckdb
import polars as pl
from engines import KEYS, differences, is_translated, tables
from every_metric import EVERY_METRIC, FEW

import rankframe as rf
from rankframe._warehouse import scopes

ARRAYS = ["items", "relevant"]
LABELS = [*filter(is_translated, FEW)]
EVERY = [*filter(is_translated, EVERY_METRIC)]


def in_arrays(run, truth):
    """Write each list as an array, with null where a list has no item of that rank."""
    ranked = run.drop_nulls("rank")
    places = ranked.group_by(KEYS).agg(rank=pl.int_range(1, pl.col("rank").max() + 1))
    places = places.explode("rank", empty_as_null=False).join(
        ranked, on=[*KEYS, "rank"], how="left"
    )
    lists = places.sort("rank").group_by(KEYS).agg(items="item")
    judged = truth.group_by("user").agg(relevant="item")
    pairs = run.select("model").unique().join(judged, how="cross")
    return pairs.join(lists, on=KEYS, how="full", coalesce=True)


def question(asked):
    """Write the query that calls the functions of labels."""
    calls = [f'"{scopes.snake_name(name)}"({", ".join(ARRAYS)}) AS "{name}"' for name in asked]
    return f'SELECT model, "user", {", ".join(calls)} FROM lists'


def in_duckdb(text, query, frame):
    with duckdb.connect() as connection:
        connection.execute(text)
        connection.register("lists", frame)
        return connection.sql(query).pl()


def compare(seed, asked, answer=in_duckdb, dialect="duckdb", **options):
    """Name the first value of each label that is not that of ``per_user``."""
    run, truth = tables(seed, text=seed % 2 == 0)
    truth = truth.filter(pl.col("relevance") > 0).with_columns(relevance=1)
    text = rf.sql(*asked, as_function=True, dialect=dialect, **options)
    got = answer(text, question(asked), in_arrays(run, truth))
    want = rf.per_user(run, *asked, truth=truth, by="model", users="all", **options)
    return differences(got, want, KEYS)
