"""The text: what six dialects parse, one form for each trap, names that cannot do harm."""

import re
import sqlite3
from contextlib import closing
from functools import partial

import duckdb
import polars as pl
import pytest
import reference
import sqlglot
from engines import ENGINES, differences, in_duckdb, in_sqlite, need, tables
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_labels import PAGE, translations, updated, written

import rankframe as rf
from rankframe._evaluation import trees
from rankframe._request import labels
from rankframe._warehouse import dialects

DIALECTS = [*dialects._DIALECTS]
FIVE = ["precision@10", "recall@10", "map", "mrr", "ndcg@10"]


def statements(text, dialect):
    """Parse a text; what a dialect lacks is an error."""
    parsed = sqlglot.parse(text, read=dialect, error_level=sqlglot.ErrorLevel.RAISE)
    for statement in parsed:
        statement.sql(dialect=dialect, unsupported_level=sqlglot.ErrorLevel.RAISE)
    return parsed


_OTHERWISE = {"over", "filter", "order_by", "evaluate", "cum_sum", "shift"}
_ARGUMENTS = {"cast": [pl.Float64], "fill_null": [0], "clip": [1, 9], "log": [2], "rank": ["min"]}
_ARGUMENTS |= {"is_between": [1, 2]}


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_read_a_text_as_it_is(dialect):
    text = "it's a \\ 'b'\n"
    (literal,) = sqlglot.parse_one(
        f"SELECT {dialects._DIALECTS[dialect].literal(text)}", read=dialect
    ).expressions
    assert literal.this == text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_dialects_parse_every_label(dialect):
    options = {"by": "model", "dialect": dialect, "users": "both", "exclude": "bought"}
    every = [written(label) for label, query, _ in translations() if query is not None]
    asked = every if reference.thorough else every[DIALECTS.index(dialect) % 3 :: 3]
    (query,) = statements(rf.sql(*asked, **options, names="snake"), dialect)
    assert isinstance(query, sqlglot.exp.Select)
    assert not query.args.get("order")
    assert query.named_selects[:2] == ["model", "users"]
    (query,) = statements(
        rf.sql("ndcg(gain=1:1;2:3)@10", by="model", dialect=dialect, check=True), dialect
    )
    assert query.named_selects == ["source", "field", "problem", "num_rows"]


@pytest.mark.parametrize("dialect", DIALECTS)
def test_five_metrics_are_read_as_they_were_reviewed(dialect):
    text = rf.sql(*FIVE, run="recs", truth="labels", by="model", dialect=dialect)
    path = PAGE.parents[1] / "tests" / "warehouse" / "golden" / f"{dialect}.sql"
    assert text == path.read_text(encoding="utf-8"), "read it, then write it to the file"


# ------------------------------------------------------------------ one form for each trap


def form_of(metric, dialect="duckdb", **options):
    return rf.sql(metric, dialect=dialect, per_user=True, names="snake", **options)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_divisions_are_of_doubles_and_by_no_zero(dialect):
    text = form_of((pl.col("relevant").sum() / pl.col("rank").max()).alias("x"), dialect)
    double = dialects.dialect_named(dialect).types[0]
    assert re.search(rf"CAST\(\S+ AS {double}\) / NULLIF\(", text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_number_with_a_point_is_no_decimal(dialect):
    text = form_of((pl.col("rank") * 0.3).sum().alias("x"), dialect)
    assert f"CAST(0.3 AS {dialects.dialect_named(dialect).types[0]})" in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_least_value_passes_over_nulls(dialect):
    text = form_of(
        pl.min_horizontal(pl.col("rank").max(), pl.col("rank").sum()).alias("x"), dialect
    )
    least = "MIN" if dialect == "sqlite" else "LEAST"
    assert re.search(rf"COALESCE\({least}\((.+), (.+)\), \1, \2\)", text)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_logarithms_are_natural(dialect):
    text = form_of("dcg@10", dialect)
    assert re.search(r"LN\(.rank. \+ 1\) / LN\(2\)", text)
    assert "LOG" not in text


@pytest.mark.parametrize("dialect", DIALECTS)
def test_null_ranks_come_last_in_windows_without_words_that_a_dialect_lacks(dialect):
    below = pl.col("rank").cum_sum().over("user", order_by="rank", nulls_last=True)
    text = form_of(pl.when(pl.col("rank").is_null()).then(below).max().alias("x"), dialect)
    assert re.search(r"ORDER BY CASE WHEN .rank. IS NULL THEN 1 ELSE 0 END, .rank.", text)
    assert "NULLS" not in text


def test_step_has_no_column_twice():
    least = pl.col("rank").min().over("model", "user")
    text = form_of((pl.col("rank") - least).sum().alias("x"), by="model")
    assert [text.count(name) for name in ('r."model",', 't."user",')] == [1, 1]


def test_ids_of_text_are_ordered_by_their_bytes():
    schema = {"run": {"user": pl.Int64, "item": pl.String, "score": pl.Float64}}
    text = form_of("rr", "postgres", score="score", schema=schema)
    assert 'r."item" COLLATE "C" DESC' in text
    schema["run"]["item"] = pl.Int64
    assert "COLLATE" not in form_of("rr", "postgres", score="score", schema=schema)
    with pytest.raises(ValueError, match="whether item is text"):
        form_of("rr", "postgres", score="score")


def test_scores_that_are_nan_are_not_retrieved():
    assert "NOT IS_NAN(" in form_of("rr", "bigquery", score="score")
    for dialect in ("duckdb", "spark", "snowflake"):
        assert "CAST('NaN' AS DOUBLE" in form_of("rr", dialect, score="score")


@pytest.mark.parametrize("dialect", ENGINES)
def test_sums_of_nothing_are_0_and_means_null(dialect):
    need(dialect)
    run = pl.DataFrame({"user": [1], "item": [9], "rank": [1]})
    truth = pl.DataFrame({"user": [1, 2, 2], "item": [8, 8, 9], "relevance": [1, 1, 1]})
    own = [pl.col("rank").sum().alias("sum"), pl.col("rank").mean().alias("mean")]
    text = rf.sql("dcg", *own, per_user=True, dialect=dialect)
    got = ENGINES[dialect](text, run=run, truth=truth)
    assert differences(got, rf.per_user(run, "dcg", *own, truth=truth), ["user"]) == {}


def test_keywords_are_quoted():
    for dialect in DIALECTS:
        quote = dialects.dialect_named(dialect).quote
        assert not re.search(
            rf"(?<![{quote}\w])(user|rank)(?![{quote}\w])", _code(form_of("map", dialect))
        )


def test_names_stay_as_they_are_written_where_unquoted_ones_are_upper_case():
    text = form_of("rr", "snowflake", run="DB.RECS", user="USER", item="ITEM", rank="RANK")
    assert 'CAST(r."RANK" AS BIGINT) AS "rank"' in text
    assert 'FROM "DB"."RECS" AS r' in text
    assert '"USER"' in text
    assert '"user"' not in text


def test_bigquery_has_snake_names():
    assert "AS `ndcg_at_10`" in rf.sql("ndcg@10", dialect="bigquery")
    assert 'AS "ndcg_at_10"' in rf.sql("ndcg@10", names="snake")
    with pytest.raises(ValueError, match="allows no @"):
        rf.sql("ndcg@10", dialect="bigquery", names="label")
    with pytest.raises(ValueError, match="two output columns are called 'ndcg_at_10'"):
        rf.sql("ndcg@10", rf.metrics.recall_at(5).alias("ndcg_at_10"), names="snake")


def _code(text):
    return "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("--"))


def test_page_names_methods_that_have_a_form():
    (words,) = re.findall(
        r"\*\*Your own expressions\*\* (.*?)\n- ", PAGE.read_text("utf-8"), re.DOTALL
    )
    names = [word for word in re.findall(r"`([a-z_]+)`", words) if word not in _OTHERWISE]
    assert len(names) > 20
    for name in names:
        value = getattr(
            pl.col("relevance") > 1 if name in ("any", "all") else pl.col("rank"), name
        )(*_ARGUMENTS.get(name, ()))
        if name not in trees.AGGREGATES:
            value = value.sum()
        rf.sql(value.alias("x"))


# ------------------------------------------------------------------ header and refusals


def test_header_tells_call_assumptions_and_users():
    text = rf.sql("ndcg@10", "map", run="a.recs", by="model", depth=20)
    comments = [line for line in text.splitlines()[:14] if line.startswith("--")]
    assert comments[1] == "-- rf.sql('ndcg@10', 'map', run='a.recs', by='model', depth=20)"
    assert any(line.startswith("-- Users: all with an item of grade > 0") for line in comments)
    assert any("ranks are integers from 1" in line for line in comments)


def test_labels_are_translated_or_refused_with_a_reason():
    every = {label: (query, reason) for label, query, reason in translations()}
    assert every.keys() == labels.every_label().keys()
    assert sum(query is not None for query, _ in every.values()) == 59
    for label, (query, reason) in every.items():
        assert query is not None or f"{written(label)!r} cannot be written in SQL: it " in reason


def test_page_has_the_current_table_of_labels():
    text = PAGE.read_text(encoding="utf-8")
    assert updated(text) == text, "python -m tests.sql_labels"


@pytest.mark.parametrize(
    ("metrics", "options"),
    {
        "subtopics": (["alpha_ndcg@5"], {}),
        "history": (["novelty@5"], {}),
        "all lists": (["gini"], {}),
        "a node": ([pl.col("rank").median().alias("x")], {}),
        "a column": ([pl.col("price").sum().alias("x")], {}),
        "not reduced": ([(pl.col("rank") * 2).alias("x")], {}),
        "tied": (["map"], {"schema": {"run": ["tied", "rank"]}}),
        "subtopic": (["map"], {"schema": {"truth": ["relevance", "subtopic"]}}),
        "dialect": (["map"], {"dialect": "oracle"}),
        "names": (["map"], {"names": "upper"}),
        "table": (["map"], {"schema": {"runs": []}}),
        "both": ([(pl.col("listed") & (pl.col("relevance") > 2)).sum().alias("x")], {}),
        "a name": (["map"], {"run": "a\nb"}),
        "a boolean": (["map"], {"item": "TRUE", "dialect": "sqlite"}),
        "an empty part": (["map"], {"run": "a..b"}),
        "case": (["map"], {"by": "User"}),
        "a user": ([pl.len().alias("User")], {}),
        "a group": ([pl.len().alias("MODEL")], {"by": "model"}),
        "two labels": ([pl.len().alias("MAP"), "map"], {}),
        "users": (["map"], {"by": "users"}),
        "nulls in any": ([(pl.col("rank") < 3).any(ignore_nulls=False).alias("x")], {}),
        "label": (["nddcg@10"], {}),
    }.values(),
)
def test_sql_refuses_what_it_cannot_say_at_once(metrics, options, refused):
    schema = options.get("schema")
    if schema:
        ids = dict.fromkeys(("user", "item"), pl.Int64)
        schema = {name: ids | dict.fromkeys(more, pl.Int64) for name, more in schema.items()}
        options = {**options, "schema": schema}
    refused(rf.sql, *metrics, **options)


FRAME = pl.DataFrame({"user": [1], "item": [1], "rank": [1]})


@pytest.mark.parametrize(
    "options",
    {
        "a frame": {"run": FRAME},
        "none": {"run": None},
        "a number": {"run": 5},
        "no parts": {"run": ()},
        "a schema": {"schema": FRAME},
        "weights": {"weights": FRAME},
        "total": {"total": True},
        "history": {"history": FRAME},
        "databricks": {"dialect": "databricks"},
        "postgresql": {"dialect": "postgresql"},
    }.values(),
)
def test_wrong_options_are_one_clear_error(options, refused):
    refused(rf.sql, "map", **options)
    refused(rf.sql, **options, check=True)


def test_wrong_names_of_excluded_rows_and_options_that_change_no_rule(refused):
    refused(rf.sql, "map", exclude=FRAME)
    refused(rf.sql, "map", preset="pytrec_eval")
    found = rf.sql(users="both", check=True).partition("SELECT")[2]
    assert found == rf.sql(check=True).partition("SELECT")[2]


class Relation:
    """A query that runs when it is read, as DuckDB and Ibis have them."""

    def __init__(self, rows=None):
        self.rows = rows

    def limit(self, number):
        return Relation(number)

    def __arrow_c_stream__(self, requested_schema=None):
        assert self.rows == 0
        schema = {"user": pl.Int64, "item": pl.String, "score": pl.Float64}
        return pl.DataFrame(schema=schema).__arrow_c_stream__(requested_schema)


def test_relation_says_what_a_table_has_without_its_rows():
    text = rf.sql("rr", score="score", dialect="postgres", schema={"run": Relation()})
    assert 'COLLATE "C"' in text


# ------------------------------------------------------------------ safety

HOSTILE = st.one_of(
    st.sampled_from(
        [
            '"; DROP TABLE canary; --',
            "`; DROP TABLE canary; --",
            "'; DROP TABLE canary; --",
            "*/ DROP TABLE canary /*",
            "{{ x }}; DROP TABLE canary",
            "{{ x }} }} {{",
            "{% raw %}",
            "\\",
            '\\"; DROP TABLE canary; --',
            "a.b",
            "lists",
            "judgments",
            "hits",
            "$$",
            "q'[",
            "--",
            "a b",
            "ü😀",
            "%s{0}",
        ]
    ),
    st.text(st.characters(codec="utf-8", exclude_categories=["Cs"]), min_size=1, max_size=12),
)


@settings(max_examples=reference.drawn(40), deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_hostile_names_make_one_statement(table, column, label, value):
    for dialect in DIALECTS:
        own = (pl.col("country") == value).sum().alias(label)
        above = (pl.col(value) > pl.col(value).mean()).sum().alias("above")
        truth = {"user": pl.Int64, column: pl.Int64, "relevance": pl.Int64, "country": pl.String}
        truth |= {value: pl.Int64} if value not in truth else {}
        run = {"user": pl.Int64, column: pl.Int64, "rank": pl.Int64}
        options = {"run": table, "item": column, "schema": {"run": run, "truth": truth}}
        try:
            text = rf.sql(own, above, "map", **options, dialect=dialect, names=None)
            check = rf.sql(**options, dialect=dialect, check=True)
        except (ValueError, TypeError, rf.RankingDataError):  # not a name, or a reserved one
            continue
        if dialects.is_jinja(table):
            continue
        for query in (text, check):
            (parsed,) = statements(query, dialect)
            assert isinstance(parsed, sqlglot.exp.Select)
            assert all(line.isprintable() for line in query.splitlines() if line.startswith("--"))


@settings(max_examples=reference.drawn(25), deadline=None)
@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_hostile_names_have_the_right_numbers(table, item, label, value):
    run, truth = tables(1, groups=1)
    run, truth = (
        frame.drop("model", strict=False).rename({"item": item}) for frame in (run, truth)
    )
    truth = truth.with_columns(country=pl.when(pl.col("user") < 4).then(pl.lit(value)))
    own = (pl.col("country") == value).sum().alias(label)
    path, options = (table,), {"item": item, "per_user": True}
    try:
        want = rf.per_user(run, own, "map", truth=truth, item=item)
        schema = {"run": run, "truth": truth}
        texts = {
            d: rf.sql(own, "map", run=path, schema=schema, dialect=d, **options) for d in ENGINES
        }
    except (ValueError, rf.RankingDataError):
        return
    with closing(sqlite3.connect(":memory:")) as lite, duckdb.connect() as duck:
        for connection in (lite, duck):
            connection.execute("CREATE TABLE canary (x INT)")
            for name, frame in ((table, run), ("truth", truth)):
                if name == "canary":
                    return
                kinds = {pl.String: "TEXT", pl.Int64: "BIGINT"}
                columns = ", ".join(f"{_quoted(n)} {kinds[t]}" for n, t in frame.schema.items())
                connection.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
                holes = ", ".join("?" * frame.width)
                connection.executemany(
                    f"INSERT INTO {_quoted(name)} VALUES ({holes})", frame.rows()
                )
        got = {"sqlite": lite.execute(texts["sqlite"]), "duckdb": duck.execute(texts["duckdb"])}
        for dialect, cursor in got.items():
            rows = {row[0]: row[1:] for row in cursor.fetchall()}
            assert rows.keys() == {*want["user"]}, dialect
            for user, number, value_of_map in want.iter_rows():
                assert rows[user] == (number, pytest.approx(value_of_map, rel=1e-12))
        for connection in (lite, duck):
            connection.execute("SELECT * FROM canary")


def _quoted(name):
    return '"' + name.replace('"', '""') + '"'


@pytest.mark.parametrize(
    "name", ["lists", "judgments", "hits", "relevant", "per_user", "main.users"]
)
def test_table_is_not_hidden_by_a_step_of_its_name(name):
    run, truth = tables(1)
    text = rf.sql("map", run=name, by="model", users="judged")
    want = rf.evaluate(run, "map", truth=truth, by="model", users="judged")
    with duckdb.connect() as connection:
        connection.register("r", run)
        connection.register("truth", truth)
        table = name.rpartition(".")[2]
        connection.execute(f'CREATE TABLE "{table}" AS SELECT * FROM r')
        assert differences(connection.sql(text).pl(), want, ["model"]) == {}


@pytest.mark.parametrize(
    ("name", "text"),
    {
        "one expression": ('{{ ref("recs") }}', '{{ ref("recs") }}'),
        "dotted": ("a.recs", '"a"."recs"'),
        "parts": (("a.b", "recs"), '"a.b"."recs"'),
        "two": ("{{ a }} {{ b }}", '"{{ a }} {{ b }}"'),
        "a semicolon": ("{{ a; }}", '"{{ a; }}"'),
        "a comment": ("{{ a }} --", '"{{ a }} --"'),
        "inside": ("{{ a -- }}", '"{{ a -- }}"'),
        "a block": ("{{ a /* }}", '"{{ a /* }}"'),
        "a quote": ('re"cs', '"re""cs"'),
    }.values(),
)
def test_table_is_quoted_unless_it_is_one_jinja_expression(name, text):
    assert dialects.dialect_named("duckdb").table(name) == text


def test_rules_find_what_is_broken():
    run = pl.DataFrame(
        {"user": [1, 1, 1, 2, None], "item": [7, 7, 8, 9, 9], "rank": [1, 2, 2, 0, 1]}
    )
    nan = float("nan")
    truth = pl.DataFrame(
        {"user": [1, 1, 1, 5], "item": [7, 7, 8, 9], "relevance": [nan, 1, None, 9]}
    )
    got = in_duckdb(
        rf.sql("err(max_grade=4)", schema={"run": run, "truth": truth}, check=True),
        run=run,
        truth=truth,
    )
    broken = {(s, f, p.partition(":")[0].partition(" (")[0], n) for s, f, p, n in got.rows()}
    assert broken == {
        ("run", "user", "null user", 1),
        ("run", "rank", "a rank that is not an integer ≥ 1", 1),
        ("run", "item", "duplicate", 2),
        ("run", "rank", "two items of one user have the same rank", 2),
        ("truth", "relevance", "NaN or infinite relevance", 1),
        ("truth", "relevance", "null relevance", 1),
        ("truth", "relevance", "a grade above max_grade=4", 2),
        ("truth", "item", "duplicate", 2),
    }


@pytest.mark.parametrize("dialect", ENGINES)
def test_rules_of_good_tables_are_an_empty_result(dialect):
    need(dialect)
    run, truth = tables(1, text=True)
    text = rf.sql("ndcg(gain=1:1;2:2;3:5)", by="model", dialect=dialect, check=True)
    assert ENGINES[dialect](text, run=run, truth=truth).is_empty()
    apart = truth.with_columns(pl.col("user") + "x")
    problems = ENGINES[dialect](text, run=run, truth=apart)["problem"].to_list()
    assert problems == ["no user of the run is in the truth"]
    empty = ENGINES[dialect](text, run=run.head(0), truth=truth)["problem"].to_list()
    assert "it is empty, or 'rank' is null in every row" in empty


@pytest.mark.parametrize("dialect", ENGINES)
def test_groups_that_the_truth_lacks_have_the_same_users(dialect):
    need(dialect)
    run, truth = tables(1)
    run = run.rename({"model": "fold"})
    text = rf.sql(by="fold", dialect=dialect, check=True)
    (problem,) = ENGINES[dialect](text, run=run, truth=truth)["problem"]
    assert problem.startswith("users are in several folds")
    split = run.filter((pl.col("user") < 4) == (pl.col("fold") == "m0"))
    (problem,) = ENGINES[dialect](text, run=split, truth=truth)["problem"]
    assert problem.startswith("no user is in two of its groups")


@pytest.mark.parametrize(
    "options",
    [{"by": "modle"}, {"relevance": "grade"}, {"user": "usr"}, {"rank": "place"}],
    ids=str,
)
def test_sqlite_reads_no_unknown_column_as_a_text(options):
    need("sqlite")
    run, truth = tables(1, groups=1)
    for verb, metrics in ((rf.sql, ["hit@5"]), (partial(rf.sql, check=True), [])):
        with pytest.raises(sqlite3.OperationalError, match="no such column"):
            in_sqlite(verb(*metrics, **options, dialect="sqlite"), run=run, truth=truth)


@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("rank", [1.5, float("inf"), 1e19, float("nan")])
def test_ranks_that_are_no_integers_break_a_rule(rank, dialect):
    need(dialect)
    if dialect == "sqlite" and rank != rank:
        pytest.skip("it has no NaN")
    run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1.0, rank]})
    truth = pl.DataFrame({"user": [1], "item": [7], "relevance": [1]})
    got = ENGINES[dialect](rf.sql(dialect=dialect, check=True), run=run, truth=truth)
    assert got["num_rows"].to_list() == [1]
    assert "not an integer" in got.item(0, "problem")


@pytest.mark.parametrize("dialect", ENGINES)
def test_tables_have_items_and_users_of_each_group_in_common(dialect):
    need(dialect)
    run, truth = tables(1)
    other = truth.with_columns(pl.col("item") + 100)
    (problem,) = ENGINES[dialect](
        rf.sql(by="model", dialect=dialect, check=True), run=run, truth=other
    )["problem"]
    assert problem == "no item of the run is in the truth"
    new = run.head(1).with_columns(model=pl.lit("new"), user=pl.lit(77).cast(pl.Int64))
    text = rf.sql(by="model", dialect=dialect, check=True)
    (row,) = ENGINES[dialect](text, run=pl.concat([run, new]), truth=truth).rows()
    assert row[:2] == ("run", "model")
    assert row[2].startswith("a group in which no user is in the truth")
    judged = pl.concat([truth.with_columns(model=pl.lit(name)) for name in ("m0", "m1", "m2")])
    text = rf.sql(by="model", dialect=dialect, schema={"run": run, "truth": judged}, check=True)
    (row,) = ENGINES[dialect](text, run=run, truth=judged).rows()
    assert row[:2] == ("truth", "model")
    assert row[2].startswith("a group in which no user is in the run")


def test_run_that_is_said_to_have_systems_has_a_row_for_each():
    schema = {"run": dict.fromkeys(("model", "user", "item", "rank"), pl.String)}
    schema["run"]["rank"] = pl.Int64
    both = [
        rf.sql("ap", run="recs", truth="labels", schema=schema, **by)
        for by in ({}, {"by": "model"})
    ]
    assert both[0].split("SELECT", 1)[1] == both[1].split("SELECT", 1)[1]


@pytest.mark.parametrize("function", [rf.sql, partial(rf.sql, check=True)])
def test_judged_table_is_named_twice(function):
    judged = pl.DataFrame(
        {"user": ["a", "a", "b"], "item": ["x", "y", "x"], "rank": [1, 2, 1], "grade": [0, 1, 0]}
    )
    schema = {"run": judged}
    cure = r"name it twice, as in run='judged', truth='judged', .*users='judged', undefined=0\.0"
    with pytest.raises(ValueError, match=rf"^truth=None: SQL reads .*{cure}"):
        function("hit@3", run="judged", truth=None)
    with pytest.raises(ValueError, match=rf"^schema\['run'\], column 'grade': .*{cure}"):
        function("hit@3", run="judged", truth="judged", schema=schema, relevance="grade")


def test_cure_for_a_judged_table_gives_the_values_of_evaluate():
    judged = pl.DataFrame(
        {"user": ["a", "a", "b"], "item": ["x", "y", "x"], "rank": [1, 2, 1], "grade": [0, 1, 0]}
    )
    names = {"run": "judged", "truth": "judged", "relevance": "grade"}
    assert duckdb.sql(rf.sql("hit@3", **names)).pl().rows() == [(1, 1.0)]
    text = rf.sql("hit@3", **names, users="judged", undefined=0.0)
    with pytest.warns(rf.errors.RankingWarning, match="1 of 2 users have|1 of 2 users has"):
        own = judged.rank.evaluate("hit@3", relevance="grade")
    assert duckdb.sql(text).pl().rows() == own.rows() == [(2, 0.5)]
