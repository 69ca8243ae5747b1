"""The nightly job of the guide: broken days, a killed writer, and days that come again."""

import importlib.util
import io
import json
import re
import shutil
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import polars as pl
import pytest

import rankframe as rf

FOLDER = Path(__file__).parents[1] / "notebooks"
SPEC = importlib.util.spec_from_file_location("every_night", FOLDER / "every_night.py")
JOB = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(JOB)


def tables(day, users=30):
    """Two models; each user has a judgment of every grade."""
    run = pl.DataFrame(
        [
            (model, user, item, rank)
            for place, model in enumerate(["live", "next"])
            for user in range(day * 10, day * 10 + users)
            for rank, item in enumerate("abcde", 1)
            if (user + rank + place) % 4
        ],
        schema=["model", "user", "item", "rank"],
        orient="row",
    )
    truth = pl.DataFrame(
        [
            (user, item, grade)
            for user in range(day * 10, day * 10 + users)
            for grade, item in enumerate("abx"[user % 3 :] + "cd"[: user % 3])
        ],
        schema=["user", "item", "relevance"],
        orient="row",
    )
    return {"run": run, "truth": truth}


def put(lake, day, frames):
    for name, frame in frames.items():
        folder = lake / name / f"day={day}"
        folder.mkdir(parents=True, exist_ok=True)
        frame.write_parquet(folder / "0.parquet")


@pytest.fixture
def lake(tmp_path):
    put(tmp_path, "2026-11-01", tables(1))
    return tmp_path


@pytest.fixture(scope="module")
def first_night(tmp_path_factory):
    """A lake of two days after the night of the first, and what the job said."""
    folder = tmp_path_factory.mktemp("lake")
    put(folder, "2026-11-01", tables(1))
    put(folder, "2026-11-02", tables(2))
    with redirect_stdout(io.StringIO()) as said:
        assert JOB.main(str(folder), "2026-11-01") == 0
    return folder, said.getvalue()


@pytest.fixture
def logged(first_night, tmp_path):
    """A lake of two days, of which the first is in the log."""
    return shutil.copytree(first_night[0], tmp_path / "logged")


def test_good_day_is_logged_drawn_and_passes(first_night):
    lake, said = first_night
    log = pl.read_parquet(lake / "log.parquet")
    assert " ".join(log.columns) == "day model metric mean std users missed conventions"
    run, truth = tables(1).values()
    expected = rf.summarize(run, "ndcg@10", truth=truth, by="model")["mean"].to_list()
    assert log.filter(metric="ndcg@10")["mean"].to_list() == expected
    assert {path.name for path in lake.iterdir() if path.is_file()} == {
        *("log.parquet", "trend.svg", "2026-11-01.html", "2026-11-01.json")
    }
    assert "high enough" in said


def test_bad_model_fails_the_gate_and_is_logged(lake, monkeypatch):
    monkeypatch.setitem(JOB.GATE, "at_least", 0.9)
    assert JOB.main(str(lake), "2026-11-01") == 1
    assert (lake / "log.parquet").exists()


def _no_judgments(frames):
    return {"run": frames["run"]}


def _empty_judgments(frames):
    return {**frames, "truth": frames["truth"].clear()}


def _empty_partition(frames):
    return {**frames, "run": frames["run"].clear()}


def _other_time_zone(frames):
    """The judgments of the last hours are of the day before, as are these users."""
    return {**frames, "truth": pl.concat([frames["truth"], tables(0, 8)["truth"]])}


def _other_day(frames):
    return {**frames, "truth": tables(9)["truth"]}


def _renamed(frames):
    return {**frames, "truth": frames["truth"].rename({"relevance": "is_click"})}


def _doubled(frames):
    return {**frames, "run": pl.concat([frames["run"], frames["run"].head(40)])}


def _one_user(frames):
    return {name: frame.filter(user=20) for name, frame in frames.items()}


def _no_system(frames):
    return {**frames, "run": frames["run"].filter(model="live")}


def _no_grade(frames):
    return {**frames, "truth": frames["truth"].with_columns(relevance=pl.lit(0))}


BROKEN = {
    _no_grade: "truth, column 'relevance': no grade is > 0",
    _no_system: "no list of 'next': the systems are 'live': see that the day is complete",
    _no_judgments: "truth: no file: run the job that writes it, then this one again",
    _empty_judgments: "truth: it is empty",
    _empty_partition: "run: it is empty",
    _other_time_zone: "too many missed: 8 of 38 users with a relevant item have no list",
    _other_day: "no user",
    _renamed: "no column 'relevance'",
    _doubled: "duplicate",
    _one_user: "fewer than 5 users: see that the day is complete",
}


@pytest.mark.parametrize("breaks", BROKEN, ids=lambda breaks: breaks.__name__)
def test_broken_day_stops_the_job(lake, capsys, breaks):
    put(lake, "2026-11-02", breaks(tables(2)))
    assert JOB.main(str(lake), "2026-11-02") == 2
    said = capsys.readouterr().err
    assert said.startswith("2026-11-02: ")
    assert BROKEN[breaks] in said
    assert not (lake / "log.parquet").exists()
    assert said.endswith("Nothing is logged: mend the day, and run it again.\n")
    if breaks is _doubled:  # the cure: the same day again
        put(lake, "2026-11-02", tables(2))
        assert JOB.main(str(lake), "2026-11-02") == 0


@pytest.mark.parametrize("step", ["report", "gate", "plot"])
def test_job_that_stops_at_any_step_leaves_the_log(logged, monkeypatch, step):
    """The log is written last."""
    before = (logged / "log.parquet").read_bytes()
    monkeypatch.setattr(JOB.rf, step, None)
    assert JOB.main(str(logged), "2026-11-02") == 2
    assert (logged / "log.parquet").read_bytes() == before


def test_file_that_cannot_be_read_is_named(lake, capsys):
    file = lake / "truth" / "day=2026-11-01" / "1.parquet"
    tables(1)["truth"].cast({"user": pl.String}).write_parquet(file)
    assert JOB.main(str(lake), "2026-11-01") == 2
    assert "truth: its files differ in columns or types" in capsys.readouterr().err
    file.write_bytes(b"PAR1")
    assert JOB.main(str(lake), "2026-11-01") == 2
    assert "2026-11-01: truth: a file cannot be read: " in capsys.readouterr().err


def test_call_without_a_day_is_no_failed_gate(tmp_path):
    call = [sys.executable, str(FOLDER / "every_night.py"), str(tmp_path)]
    done = subprocess.run(call, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (2, f"{JOB.__doc__}\n")


def test_new_metric_starts_without_breaking_the_others(logged, monkeypatch, capsys):
    monkeypatch.setattr(JOB, "METRICS", (*JOB.METRICS, "map"))
    assert JOB.main(str(logged), "2026-11-02") == 0
    log = pl.read_parquet(logged / "log.parquet")
    assert log.group_by("metric").agg(pl.col("conventions").n_unique())["conventions"].sum() == 3
    made = json.loads((logged / "2026-11-02.json").read_text())
    assert set(log["conventions"]) == set(made["conventions_of"].values())
    changed = log.with_columns(conventions=pl.lit("0" * 8))
    JOB.write(logged / "log.parquet", changed)
    assert JOB.main(str(logged), "2026-11-01") == 2
    said = capsys.readouterr().err
    assert "day='2026-11-01'" in said
    assert "day='2026-11-02'" in said
    assert "the files of rf.provenance, such as those of two days, show what changed" in said


def test_late_judgments_are_the_same_day_again(logged, monkeypatch):
    assert JOB.main(str(logged), "2026-11-02") == 0
    first = pl.read_parquet(logged / "log.parquet")
    late = pl.concat(
        [tables(1)["truth"], pl.DataFrame({"user": 10, "item": "e", "relevance": 2})],
        how="vertical_relaxed",
    )
    run = tables(1)["run"].filter(model="live")  # and a model is gone: so are its old rows
    put(logged, "2026-11-01", {"run": run, "truth": late})
    monkeypatch.setitem(JOB.GATE, "systems", ["live"])
    assert JOB.main(str(logged), "2026-11-01") == 0
    log = pl.read_parquet(logged / "log.parquet")
    other = pl.col("day") == "2026-11-02"
    assert log.filter(other).equals(first.filter(other))
    again = log.filter(~other)
    assert again["model"].to_list() == ["live"] * 2
    expected = rf.evaluate(run, "ndcg@10", truth=late)["ndcg@10"].item()
    assert again.filter(metric="ndcg@10")["mean"].item() == pytest.approx(expected)


KILLED = """
import importlib.util, os, signal, sys
import polars as pl

spec = importlib.util.spec_from_file_location("every_night", {job!r})
job = importlib.util.module_from_spec(spec)
spec.loader.exec_module(job)
rows = pl.read_parquet(sys.argv[2])


def kill(*_):
    os.kill(os.getpid(), signal.SIGKILL)


if sys.argv[3] == "in the middle of the write":
    whole = pl.DataFrame.write_parquet

    def write_parquet(frame, file):
        whole(frame, file)
        file.truncate(file.tell() // 2)
        file.flush()
        kill()

    pl.DataFrame.write_parquet = write_parquet
else:
    job.Path.replace = kill
from pathlib import Path

job.write(Path(sys.argv[1]), job.with_day(Path(sys.argv[1]), rows))
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
@pytest.mark.parametrize("when", ["in the middle of the write", "before the new name"])
def test_killed_writer_leaves_the_old_log(tmp_path, when):
    """Run again: no row is lost, and no row is doubled."""
    log, new = tmp_path / "log.parquet", tmp_path / "new.parquet"
    row = {"model": "live", "metric": "rr", "mean": 0.5, "std": 0.1, "users": 9, "missed": 0.0}
    rows = [pl.DataFrame({"day": day, **row, "conventions": "adea965d"}) for day in ("1", "2")]
    JOB.write(log, rows[0])
    before = log.read_bytes()
    rows[1].write_parquet(new)
    code = KILLED.format(job=str(FOLDER / "every_night.py"))
    done = subprocess.run([sys.executable, "-c", code, str(log), str(new), when], check=False)
    assert done.returncode == -signal.SIGKILL
    assert log.read_bytes() == before
    for _ in range(2):
        JOB.write(log, JOB.with_day(log, rows[1]))
        assert pl.read_parquet(log).equals(pl.concat(rows))
    assert {path.name for path in tmp_path.iterdir()} == {"log.parquet", "new.parquet"}


def test_job_is_short():
    text = (FOLDER / "every_night.py").read_text()
    parts = re.split(r"\n(?=def )", text)
    lines = {
        part.split("(")[0]: len([line for line in part.splitlines() if line.strip()])
        for part in parts
    }
    assert lines["def with_day"] + lines["def write"] <= 20
    assert lines["def night"] <= 30
