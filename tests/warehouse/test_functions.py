"""Functions on arrays have the values of ``per_user`` of the same lists."""

from itertools import pairwise

import duckdb
import polars as pl
import pytest
import reference
import sqlglot
from lists_in_arrays import ARRAYS, EVERY, LABELS, compare
from sql_labels import translations, written

import rankframe as rf
from rankframe._request import labels
from rankframe._warehouse import scopes


@pytest.mark.sample(4)
@pytest.mark.parametrize("part", range(4))
def test_functions_have_the_values_of_per_user(part):
    assert compare(1, LABELS[part::4]) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("part", range(12))
def test_functions_of_labels_have_the_values_of_per_user(part):
    assert compare(2, EVERY[part::12]) == {}


OPTIONS = [
    {"undefined": 0.5},
    {"depth": 3, "preset": "ranx"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options_of_functions(options):
    asked = ["ndcg@3", "ap", "num_hits", "filled@3", "q", "err", "hit@2"]
    assert compare(2, asked, **options) == {}


@pytest.mark.parametrize(
    ("arguments", "recall"),
    [
        ("[1, 1, 2], [1, 2]", 0.5),  # the second 1 keeps its place, and 2 stays at the third
        ("[1, 1, 2], [1, 1, 1]", 1.0),
        ("[3, 3, 1], [1]", 0.0),
        ("[3, NULL, 1], [1, NULL]", 0.0),
        ("[3, 1], [1, NULL]", 1.0),
        ("[]::INT[], [1]", 0.0),
        ("NULL::INT[], [1]", 0.0),
        ("[1], []::INT[]", None),
        ("[1], NULL::INT[]", None),
        ("NULL::INT[], NULL::INT[]", None),
    ],
)
def test_arrays_that_are_empty_or_have_an_item_again(arguments, recall):
    for undefined in (None, 7.0):
        with duckdb.connect() as connection:
            connection.execute(rf.sql("recall@2", as_function=True, undefined=undefined))
            got = connection.sql(f"SELECT recall_at_2({arguments})").fetchall()
        assert got == [(undefined if recall is None else recall,)]


def test_items_below_one_that_comes_again_move_up():
    with duckdb.connect() as connection:
        connection.execute(rf.sql("recall@2", as_function=True, duplicates="first"))
        assert connection.sql("SELECT recall_at_2([1, 1, 2], [1, 2])").fetchall() == [(1.0,)]


def test_columns_of_the_caller_may_have_any_name():
    names = ["item", "rank", "relevance", "user", "array", "relevant", "items", "grades"]
    with duckdb.connect() as connection:
        connection.execute(rf.sql("ndcg", as_function=True))
        for first, second in pairwise(names):
            lists = f'(SELECT [1, 2] AS "{first}", [2] AS "{second}")'
            call = f'ndcg("{first}", "{second}")'
            got = connection.sql(f"SELECT {call} FROM {lists}").fetchall()
            assert got == [(pytest.approx(0.6309297535714575),)]


@pytest.mark.parametrize("dialect", ["duckdb", "bigquery"])  # Postgres runs them
def test_dialects_parse_a_function_of_each_label(dialect):
    """One dialect parses half of the labels and one the others, with ``--thorough`` both all."""
    every = [written(label) for label, query, _ in translations() if query is not None]
    every = [label for label in every if labels.parse_metric(label).per_user]
    assert len(every) > 50
    every = every if reference.thorough else every[dialect == "duckdb" :: 2]
    text = rf.sql(*every, as_function=True, dialect=dialect)
    created = sqlglot.parse(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    assert len(created) == len(every)
    for statement, label in zip(created, every, strict=True):
        assert isinstance(statement, sqlglot.exp.Create)
        assert statement.this.this.name == scopes.snake_name(label)
        assert [parameter.name for parameter in statement.this.expressions] == ARRAYS
        assert statement.expression.find(sqlglot.exp.With)


@pytest.mark.parametrize(
    "name", ["'; DROP TABLE x; --", "$$ $rankframe$", "*/ ` \\ x", "{0} %s", "ü😀", "hits"]
)
def test_function_of_a_hostile_name_is_one_statement(name):
    metric, called = pl.len().alias(name), scopes.snake_name(name)
    for dialect in ("duckdb", "postgres"):
        text = rf.sql(metric, as_function=True, dialect=dialect)
        assert len(sqlglot.parse(text, read=dialect)) == 1
    with duckdb.connect() as connection:
        connection.execute(rf.sql(metric, as_function=True))
        assert connection.sql(f'SELECT "{called}"([1, 2], [3])').fetchall() == [(1,)]


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        *((["map"], {"dialect": dialect}) for dialect in ("spark", "sqlite", "snowflake")),
        (["map"], {"as_function": "macro"}),
        (["map"], {"check": True}),
        (["map"], {"by": "day"}),
        (["map"], {"score": "score"}),
        (["map"], {"users": "both"}),
        (["map"], {"average": "pooled"}),
        (["map"], {"schema": {"run": {"user": pl.Int64}}}),
        (["map"], {"run": "recs", "per_user": True}),
        (["map"], {"unjudged": "drop"}),
        (["map"], {"relevant_at": 2}),
        (["gmap"], {}),
        (["novelty@5"], {}),
        ([pl.col("price").sum().alias("x")], {}),
        ([pl.len().alias("Items")], {}),
        (["ndcg@5", pl.len().alias("ndcg_at_5")], {}),
        (["map"], {}),  # a function of DuckDB
        ([pl.len().alias("Map")], {}),
    ],
)
def test_functions_refuse_what_arrays_do_not_have(metrics, options, refused):
    refused(rf.sql, *metrics, **{"as_function": True, **options})


def test_cures_of_functions_work():
    for metric, cure in (
        ("map", {"dialect": "bigquery", "as_function": True}),
        (pl.len().alias("number"), {"as_function": True}),
        ("ap", {"as_function": True}),
        ("map", {"dialect": "postgres", "as_function": True}),
    ):
        assert "CREATE OR REPLACE" in rf.sql(metric, **cure)
