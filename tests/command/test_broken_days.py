"""A night's tables in every broken form: what ``check`` and ``run`` say of the day."""

import random
import shutil
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from rankframe._command.main import main
from rankframe._command.text_tables import replaced

DRAW = random.Random(3)
USERS, ITEMS = range(60), [f"i{n}" for n in range(40)]
RUN = pl.DataFrame(
    [
        (model, user, item, DRAW.random() + 0.05 * (model == "next"))
        for model in ("live", "next", "old")
        for user in USERS
        for item in DRAW.sample(ITEMS, 12)
    ],
    ["model", "user", "item", "score"],
    orient="row",
)
TRUTH = pl.DataFrame(
    [(user, item, DRAW.randint(0, 3)) for user in USERS for item in DRAW.sample(ITEMS, 6)],
    ["user", "item", "relevance"],
    orient="row",
)
OTHER_DAY = pl.concat(
    TRUTH.filter(user=user).with_columns(item=pl.Series(DRAW.sample(ITEMS, 6))) for user in USERS
)
CONFIG = """
run = "run/*.parquet"
truth = "truth/*.parquet"
by = "model"
relevance = "relevance"
metrics = ["ndcg@10", "recall@10"]
baseline = "live"
systems = ["live", "next", "old"]
out = "gate.csv"
[[gates]]
metrics = "ndcg@10"
margin = 0.2
[[gates]]
metrics = "recall@10"
at_least = 0.05
"""
USER, ITEM, SCORE, NEXT = pl.col("user"), pl.col("item"), pl.col("score"), pl.col("model") == "next"
ONE = USER == 1


def tables(run=RUN, truth=TRUTH):
    for name, frame in (("run", run), ("truth", truth)):
        shutil.rmtree(name, ignore_errors=True)
        Path(name).mkdir()
        frame.write_parquet(f"{name}/0.parquet")


def cut_off():
    tables()
    content = Path("run/0.parquet").read_bytes()
    Path("run/0.parquet").write_bytes(content[: len(content) // 2])


def corrupt():
    tables()
    content = bytearray(Path("run/0.parquet").read_bytes())
    content[len(content) // 4 : len(content) // 2] = bytes(len(content) // 2 - len(content) // 4)
    Path("run/0.parquet").write_bytes(content)


def beside(frame):
    tables()
    frame.write_parquet("run/1.parquet") if frame is not None else Path("run/1.parquet").touch()


def lost(table):
    tables()
    shutil.rmtree(table)


def alike(**columns):
    tables(RUN.with_columns(**columns), TRUTH.with_columns(**columns))


def truth(**columns):
    tables(truth=TRUTH.with_columns(**columns))


def run(**columns):
    tables(RUN.with_columns(**columns))


def where(condition, value, otherwise="score"):
    return pl.when(condition).then(value).otherwise(otherwise)


FLOATS = USER.cast(pl.Float64)
HUGE = pl.DataFrame({"item": [f"x{n}" for n in range(50_000)]}).select(
    model=pl.lit("next"), user=pl.lit(1, pl.Int64), item="item", score=pl.lit(2.0)
)
TWICE = "duplicate (model, user, item)"
ONE_SCORE = "100.0% of the lists of two or more items of model='"
#: What a day is, the exit codes of check and run, and what each says; "" is nothing but the gates.
DAYS = {
    "good": (tables, 0, 0, ""),
    "no truth": (lambda: lost("truth"), 2, 2, "truth/*.parquet: no such file"),
    "no run": (lambda: lost("run"), 2, 2, "run/*.parquet: no such file"),
    "empty truth": (lambda: tables(truth=TRUTH.clear()), 2, 2, "truth: it is empty"),
    "relevance renamed": (
        lambda: tables(truth=TRUTH.rename({"relevance": "label"})),
        *(2, 2, "truth: no column 'relevance' for relevance; it has 'user', 'item', 'label'"),
    ),
    "score renamed": (
        lambda: tables(RUN.rename({"score": "points"})),
        *(2, 2, "run: no column 'rank' for rank; it has 'model', 'user', 'item', 'points'"),
    ),
    "run twice": (lambda: tables(pl.concat([RUN, RUN])), 2, 2, TWICE),
    "second day mixed in": (lambda: beside(RUN.with_columns(score=1 - SCORE)), 2, 2, TWICE),
    "NaN scores": (
        lambda: run(score=where(ONE, float("nan"))),
        *(0, 0, "warning: run, column 'score': of 2,160 scores, 36 NaN"),
    ),
    "corrupt page": (corrupt, 2, 2, "run/0.parquet: parquet: "),
    "truncated file": (cut_off, 2, 2, "run/0.parquet: parquet: "),
    "file of 0 bytes beside": (lambda: beside(None), 2, 2, "run/1.parquet: it is empty"),
    "float users in the truth": (
        lambda: truth(user=FLOATS),
        *(2, 2, "column 'user': it is Int64 in the run and Float64 in the truth"),
    ),
    "float users in both": (
        lambda: alike(user=FLOATS),
        *(0, 0, "warning: column 'user': the ids of users are floats"),
    ),
    "users as text in the truth": (lambda: truth(user=USER.cast(pl.String)), 0, 0, ""),
    "types drift": (
        lambda: beside(RUN.head(1).with_columns(user=pl.lit("x"))),
        *(2, 2, "it is Int64 in run/0.parquet and String in run/1.parquet"),
    ),
    "grades as text": (
        lambda: truth(relevance=pl.col("relevance").cast(pl.String)),
        *(2, 2, "column 'relevance': String cannot be a relevance"),
    ),
    "a null user": (
        lambda: run(user=where(ONE, None, "user")),
        *(2, 2, "column 'user': null user"),
    ),
    "all scores equal": (lambda: run(score=pl.lit(0.5)), 0, 0, f"{ONE_SCORE}live' (and of 2 more)"),
    "scores of a model negated": (  # no rule can see it; a floor may
        lambda: run(score=where(NEXT, -SCORE)),
        *(0, 0, ""),
    ),
    "other users": (
        lambda: truth(user=USER + 1000),
        *(2, 2, "no user of the run is in the truth, which has users like 1000"),
    ),
    "judgments of another day": (lambda: tables(truth=OTHER_DAY), 0, 0, ""),  # a floor may see it
    "other items": (lambda: truth(item="j" + ITEM), 2, 2, "no item of the run is in the truth"),
    "half absent in a model": (
        lambda: tables(RUN.filter((USER >= 32) | ~NEXT)),
        *(0, 1, "32 of 60 users", "too many missed: 32 of 60 users"),
    ),
    "a model absent": (
        lambda: tables(RUN.filter(~NEXT)),
        *(0, 1, "", "no list of 'next': the systems are 'live', 'old'"),
    ),
    "grades of 0": (lambda: truth(relevance=0), 2, 2, "no grade is > 0 (the greatest is 0)"),
    "a list of 50,000": (lambda: tables(pl.concat([RUN, HUGE])), 0, 0, ""),
    "days of another time zone": (
        lambda: tables(RUN.with_columns(day=pl.date(2026, 11, 1)), truth_of(pl.date(2026, 10, 31))),
        *(2, 2, "make the values of 'day' the same in both tables, such as days of one time zone"),
    ),
    "some users a day later": (
        lambda: tables(
            RUN.with_columns(day=pl.date(2026, 11, 1)),
            truth_of(where(USER >= 10, pl.date(2026, 11, 1), pl.date(2026, 11, 2))),
        ),
        *(2, 2, "column 'day': a group in which no user is in the run"),
    ),
    "times with a zone in one table": (
        lambda: tables(
            RUN.with_columns(day=pl.datetime(2026, 11, 1, time_zone="UTC")),
            truth_of(pl.datetime(2026, 11, 1)),
        ),
        *(2, 2, "column 'day': it is Datetime(time_unit='us', time_zone='UTC') in the run"),
    ),
}


DATED = ("days of another time zone", "some users a day later", "times with a zone in one table")


def truth_of(day):
    return TRUTH.with_columns(day=day)


def said_by(capsys, *words):
    code = main([*words])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.sample(3)
@pytest.mark.parametrize("day", DAYS)
def test_a_broken_day_is_seen(tmp_path, monkeypatch, capsys, day):
    monkeypatch.chdir(tmp_path)
    make, checks, runs, of_check, *of_run = DAYS[day]
    make()
    by = ["model", *(["day"] if day in DATED else [])]
    Path("day.toml").write_text(CONFIG.replace('"model"', str(by).replace("'", '"')))
    files = ["run/*.parquet", "truth/*.parquet", "--relevance", "relevance"]
    groups = [word for name in by for word in ("--by", name)]
    code, out, err = said_by(capsys, "check", *files, *groups)
    assert (code, of_check in out + err) == (checks, True), err
    assert of_check or (err, out.count("\n")) == ("", 1)
    code, out, err = said_by(capsys, "run", "day.toml")
    assert (code, (of_run or [of_check])[0] in err) == (runs, True), err
    assert of_check or "warning" not in err
    assert Path("gate.csv").exists() == (code < 2)


# ------------------------------------------------------------------ days of the job itself

JOB = """
import os, signal, sys
from rankframe._command import text_tables
from rankframe._command.main import main
from rankframe._command.text_tables import replaced

outputs = 0

def sync(_):
    global outputs
    outputs += 1
    if outputs == {killed_at}:
        os.kill(os.getpid(), signal.SIGKILL)

text_tables.os.fsync = sync
sys.exit(main(["run", "day.toml"]))
"""


@pytest.fixture
def day(tmp_path, monkeypatch):
    """A good day whose outputs are there, in a folder of their own."""
    monkeypatch.chdir(tmp_path)
    tables()
    Path("out").mkdir()
    config = CONFIG.replace("gate.csv", "out/gate.csv").replace(
        "[[gates]]", 'provenance = "out/made.json"\n[[gates]]', 1
    )
    Path("day.toml").write_text(config)
    assert main(["run", "day.toml"]) == 0
    return outputs()


def outputs():
    return {path.name: path.read_bytes() for path in Path("out").glob("[!.]*")}


def are_whole(day):
    """Whether outputs are those of the day, but for the last bits of numbers."""
    assert outputs().keys() == day.keys()
    assert outputs()["made.json"] == day["made.json"]
    assert_frame_equal(pl.read_csv("out/gate.csv"), pl.read_csv(day["gate.csv"]))


def test_two_jobs_at_once_leave_whole_outputs(day):
    with replaced(Path("out/gate.csv")) as first, replaced(Path("out/gate.csv")) as second:
        for path in (second, first):
            path.write_bytes(day["gate.csv"])
            assert outputs() == day
    assert outputs() == day
    assert not [*Path("out").glob(".*")]


@pytest.mark.skipif(sys.platform == "win32", reason="no such signal")
def test_a_job_that_is_killed_leaves_the_old_outputs(day):
    job = [sys.executable, "-c", JOB.format(killed_at=2)]
    assert subprocess.run(job, check=False).returncode == -9
    assert outputs() == day
    assert main(["run", "day.toml"]) == 0  # what the other job left does not matter
    are_whole(day)


def test_a_folder_that_is_read_only_is_named(day, monkeypatch, capsys):
    def refuse(path, **_):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)  # root may write to any folder
    code, _, err = said_by(capsys, "run", "day.toml")
    assert (code, "Permission denied: " in err, "out/" in err) == (2, True, True)
    assert outputs() == day
