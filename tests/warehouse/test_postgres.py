"""Postgres has the values of ``evaluate``: five labels and the options, or with --thorough all."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import polars as pl
import pytest
import requirements
from engines import USER, differences, in_two_columns, of_two_columns, tables
from every_metric import EVERY_METRIC
from lists_in_arrays import EVERY, compare

import rankframe as rf
from rankframe._warehouse import query

FIVE = ["precision@3", "recall@3", "map", "mrr", "ndcg@3"]
OPTIONS = [
    {},
    {"users": "all", "undefined": 0},
    {"users": "both", "unjudged": "drop"},
    {"relevant_at": 2, "users": "judged"},
    {"depth": 3, "users": "both"},
]


@pytest.fixture(scope="module")
def postgres():
    """Start a server of its own, which listens in a folder alone."""
    programs = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
    if not programs:
        requirements.lacking("there is no Postgres: Debian's postgresql has it")
    folder = Path(tempfile.mkdtemp(prefix="pg"))  # the path of a socket must be short
    as_owner = []
    if os.geteuid() == 0:  # the server refuses to run as root
        as_owner = ["runuser", "-u", "postgres", "--"]
        shutil.chown(folder, "postgres")

    def run(program, *arguments, text=None):
        command = [*as_owner, programs[-1] / program, *arguments]
        done = subprocess.run(
            [*map(str, command)], input=text, capture_output=True, text=True, timeout=120, cwd="/"
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    data = folder / "data"
    run("initdb", "-D", data, "--locale=C.UTF-8", "-E", "UTF8")
    start = [
        "-D",
        data,
        "-w",
        "-l",
        folder / "log",
        "-o",
        f"-k {folder} -c listen_addresses='' -c jit=off",
    ]
    run("pg_ctl", *start, "start")

    def answer(text, **frames):
        loads = []
        for name, frame in frames.items():
            types = {pl.Int64: "bigint", pl.Float64: "float8", pl.String: "text"}
            columns = ", ".join(f'"{n}" {types[t]}' for n, t in frame.schema.items())
            loads.append(f"CREATE TABLE {name} ({columns});\n\\copy {name} FROM STDIN CSV\n")
            loads.append(frame.write_csv(include_header=False) + "\\.\n")
        script = "BEGIN;\n" + "".join(loads) + text.rstrip() + ";\nROLLBACK;\n"
        output = run(
            "psql",
            "-h",
            folder,
            "-d",
            "postgres",
            "-q",
            "--csv",
            "-1",
            "-v",
            "ON_ERROR_STOP=1",
            text=script,
        )
        return pl.read_csv(output.encode(), infer_schema_length=None)

    yield answer
    run("pg_ctl", "-D", data, "-m", "immediate", "stop")
    shutil.rmtree(folder)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_postgres(postgres, options):
    run, truth = tables(4)
    for per_user, verb in ((True, rf.per_user), (False, rf.evaluate)):
        text = rf.sql(*FIVE, by="model", dialect="postgres", per_user=per_user, **options)
        want = verb(run, *FIVE, truth=truth, by="model", **options)
        keys = ["model", *(["user"] if per_user else [])]
        assert differences(postgres(text, run=run, truth=truth), want, keys) == {}


def test_postgres_has_users_of_two_columns(postgres):
    run, truth = tables(4)
    frames = {"run": in_two_columns(run), "truth": in_two_columns(truth).rename({"wiki": "w"})}
    call = {"user": USER, "truth_user": ["w", "session"], "by": "model", "dialect": "postgres"}
    for per_user, verb in ((True, rf.per_user), (False, rf.evaluate)):
        text = rf.sql(*FIVE, per_user=per_user, users="both", **call)
        want = verb(run, *FIVE, truth=truth, by="model", users="both")
        got = postgres(text, **frames)
        got = of_two_columns(got).select(want.columns) if per_user else got
        assert differences(got, want, want.columns[: 1 + per_user]) == {}
    problems = postgres(rf.sql(check=True, **call), **frames)
    assert {*problems["field"]} <= {"rank", "relevance"}


def test_postgres_ranks_by_score(postgres):
    run, truth = tables(4, text=True, score=True)
    options = {"by": "model", "score": "score"}
    text = rf.sql(*FIVE, dialect="postgres", schema={"run": run}, **options)
    want = rf.evaluate(run, *FIVE, truth=truth, **options)
    assert differences(postgres(text, run=run, truth=truth), want, ["model"]) == {}


def test_postgres_finds_what_is_broken(postgres):
    run, truth = tables(4)
    text = rf.sql("ndcg(gain=1:1;2:3)", by="model", dialect="postgres", check=True)
    problems = postgres(text, run=pl.concat([run, run.head(1)]), truth=truth)
    assert {*problems["field"]} == {"item", "rank", "relevance"} - (
        {"rank"} if run["rank"][0] is None else set()
    )


@pytest.fixture
def functions(postgres):
    """Call functions on arrays, which are loaded as texts."""

    def answer(text, query, frame):
        ids = "text[]" if frame.schema["items"].inner == pl.String else "bigint[]"
        types = {"items": ids, "relevant": ids}
        item = pl.element().cast(pl.String).fill_null("NULL")
        texts = [
            pl.format("{{{}}}", pl.col(n).list.eval(item).list.join(",")).alias(n) for n in types
        ]
        read = ", ".join(f"{name}::{kind} AS {name}" for name, kind in types.items())
        query = query.replace("FROM lists", f'FROM (SELECT model, "user", {read} FROM lists) AS l')
        return postgres(text + query, lists=frame.with_columns(texts))

    return answer


@pytest.mark.parametrize("seed", [1, 2])
def test_postgres_has_functions_on_arrays(functions, seed):
    asked = ["num_relevant", "filled@3", *FIVE]
    assert compare(seed, asked, functions, "postgres", undefined=0.5) == {}
    assert compare(seed, asked, functions, "postgres") == {}


@pytest.mark.thorough
def test_postgres_has_a_function_of_every_label(functions):
    for part in range(0, len(EVERY), 40):
        assert compare(1, EVERY[part : part + 40], functions, "postgres") == {}


@pytest.mark.thorough
def test_postgres_has_every_label(postgres):
    run, truth = tables(4)
    every = []
    for label in EVERY_METRIC:
        try:
            query.sql(label)
            every.append(label)
        except ValueError:
            pass
    assert len(every) > 400
    for part in range(0, len(every), 40):
        labels = every[part : part + 40]
        text = rf.sql(*labels, by="model", dialect="postgres", per_user=True)
        want = rf.per_user(run, *labels, truth=truth, by="model")
        assert differences(postgres(text, run=run, truth=truth), want, ["model", "user"]) == {}
