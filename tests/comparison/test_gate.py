"""The gate: what fails, what passes, and the exit codes of the command."""

import json
import re
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from scipy import stats

import rankframe as rf
from rankframe._command.main import main

OLD = [1, 1, 2, 1, 2, 3, 1, 1, 2, 1]
#: like the first by chance, and clearly worse
LIKE = [1, 2, 1, 1, 3, 2, 1, 2, 1, 1]
WORSE = [2, 3, 4, 2, 5, 4, 3, 2, 6, 3]
TRUTH = pl.DataFrame({"user": range(10), "item": "a"})


def run(ranks):
    return pl.DataFrame({"user": range(10), "rank": ranks, "item": "a"})


RUNS = {"old": run(OLD), "like": run(LIKE), "worse": run(WORSE)}


def decisions(*metrics, **options):
    frame = rf.gate(RUNS, *metrics, truth=TRUTH, baseline="old", **options)
    return dict(zip(frame["model"], frame["passed"], strict=True))


def interval(ranks):
    change = [1 / new - 1 / old for new, old in zip(ranks, OLD, strict=True)]
    return stats.ttest_1samp(change, 0).confidence_interval(0.95)


def test_it_decides_by_the_interval():
    low, high = interval(WORSE)
    assert high < 0
    just = -high
    assert decisions("rr") == {"like": True, "worse": False}
    assert decisions("rr", margin=just - 1e-6) == {"like": True, "worse": False}
    assert decisions("rr", margin=just + 1e-6) == {"like": True, "worse": True}
    assert decisions("rr", margin=-low - 1e-6, strict=True)["worse"] is False
    assert decisions("rr", margin=-low + 1e-6, strict=True)["worse"] is True


def test_strict_fails_what_is_undecided():
    low, high = interval(LIKE)
    assert low < 0 < high
    assert decisions("rr", strict=True) == {"like": False, "worse": False}
    assert decisions("rr", strict=True, margin=-low + 1e-6)["like"] is True


def test_lower_may_be_better():
    metric = "mean_hit_rank@10"
    assert decisions(metric) == {"like": True, "worse": False}
    frame = rf.gate(RUNS, metric, truth=TRUTH, baseline="worse", strict=True)
    assert frame["passed"].all()
    assert frame["why"].unique().to_list() == ["not worse: interval below 0"]
    why = rf.gate(RUNS, metric, truth=TRUTH, baseline="old", margin=0.1).filter(model="worse")
    assert why["why"].item() == "worse: interval above 0.1"


def test_its_frame():
    frame = rf.gate(RUNS, "rr", "hit@1", truth=TRUTH, baseline="old", margin={"rr": 0.01})
    columns = "metric model baseline users num_left_out margin difference note ci_low ci_high"
    columns += " passed why"
    assert frame.columns == columns.split()
    compared = rf.compare(RUNS, "rr", "hit@1", truth=TRUTH, baseline="old", correction=None)
    for name in ("metric", "model", "baseline", "users", "difference", "ci_low", "ci_high"):
        assert frame[name].equals(compared[name])
    assert frame["margin"].to_list() == [0.01, 0.01, 0, 0]
    assert frame["why"].to_list()[:2] == [
        "undecided: -0.01 in interval",
        "worse: interval below -0.01",
    ]
    assert (
        rf.gate(
            {name: rows.lazy() for name, rows in RUNS.items()}, "rr", truth=TRUTH, baseline="old"
        )
        .collect()
        .height
        == 2
    )


def test_all_users_who_lose_alike_are_an_interval():
    """A metric that falls from 1 to 0 for everybody has no spread, and is worse all the same."""
    runs = {"old": run([1] * 10), "same": run([1] * 10), "none": run([2] * 10)}
    frame = rf.gate(runs, "hit@1", truth=TRUTH, baseline="old", strict=True)
    assert frame.select("model", "ci_low", "ci_high", "passed", "why").rows() == [
        ("none", -1.0, -1.0, False, "worse: every user differs by the same amount"),
        ("same", 0.0, 0.0, True, "not worse: no user differs"),
    ]


def test_without_an_interval_a_system_fails():
    """No users, one user who loses, one who is as before: nothing is known, so nothing passes."""
    runs = {name: rows.filter(user=4) for name, rows in RUNS.items()}
    other = runs | {"worse": runs["worse"].with_columns(user=99)}
    for strict in (False, True):
        options = {"baseline": "old", "strict": strict, "margin": 5.0}
        frame = rf.gate(runs, "rr", truth=TRUTH.filter(user=4), **options)
        assert frame["passed"].to_list() == [False, False]
        assert frame["why"].to_list() == ["no interval: one user"] * 2
        frame = rf.gate(runs | {"like": runs["old"]}, "rr", truth=TRUTH.filter(user=4), **options)
        assert frame["passed"].to_list() == [False, False]
        frame = rf.gate(other, "rr", truth=TRUTH, users="run", **options).filter(model="worse")
        assert frame["passed"].to_list() == [False]
        assert frame["why"].item().startswith("no interval: no user has a value in both")


def test_a_segment_without_users_does_not_hide_the_others():
    truth = TRUTH.with_columns(country=pl.when(pl.col("user") < 9).then(pl.lit("a")))
    truth = truth.with_columns(pl.col("country").fill_null("b"))
    by = ["model", "country"]
    frame = rf.gate(RUNS, "rr", truth=truth, by=by, baseline="old").filter(model="like")
    assert frame.select("country", "passed").rows() == [("a", True), ("b", False)]
    assert frame["why"].to_list()[1] == "no interval: one user"


def test_a_gate_counts_users_in_one_group_only():
    runs = {"old": RUNS["old"], "like": RUNS["like"].filter(pl.col("user") < 4)}
    frame = rf.gate(runs, "rr", truth=TRUTH, users="run", baseline="old")
    assert frame.select("users", "num_left_out", "note").rows() == [
        (4, 6, "6 of 10 users are left out: they are in one group only")
    ]


def test_segments_are_decided_by_themselves():
    truth = TRUTH.with_columns(country=pl.Series(["no", "se"] * 5))
    frame = rf.gate(
        RUNS, "rr", truth=truth, by=["model", "country"], baseline="old", total=True
    ).filter(model="worse")
    assert frame["country"].to_list() == ["no", "se", None]
    assert frame.columns[:3] == ["country", "metric", "model"]


def test_pandas_returns_pandas():
    pandas = pytest.importorskip("pandas")
    runs = {name: rows.to_pandas() for name, rows in RUNS.items()}
    frame = rf.gate(runs, "rr", truth=TRUTH.to_pandas(), baseline="old")
    assert isinstance(frame, pandas.DataFrame)
    assert frame["passed"].tolist() == [True, False]


@pytest.mark.parametrize(
    ("metrics", "options", "message"),
    [
        (
            ["rr"],
            {"baseline": None},
            "gate without a baseline: name the system to compare with in baseline=",
        ),
        (["rr"], {"baseline": "x"}, "baseline must be one of"),
        (["rr"], {"margin": -0.1}, "margin of 'rr' must be a finite number ≥ 0, not -0.1"),
        (["rr"], {"margin": {"ap": 0.1}}, "margin names 'ap'; the metrics are 'rr'"),
        (["num_relevant"], {}, "metric 'num_relevant': neither direction is declared better"),
        ([pl.col("rank").min().alias("x")], {}, "metric 'x': neither direction is declared better"),
        (["personalization@2"], {}, "it is one number of all lists, which has no interval"),
        (["geometric(metric=rr)"], {"margin": 0.1}, "is a geometric mean, whose ratio is tested"),
    ],
)
def test_what_cannot_be_decided_raises(metrics, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        rf.gate(RUNS, *metrics, truth=TRUTH, **{"baseline": "old", **options})


# ------------------------------------------------------------------ the command


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in RUNS.items():
        rows.write_csv(f"{name}.csv")
    TRUTH.write_csv("truth.csv")
    return tmp_path


@pytest.mark.parametrize(
    ("command", "code"),
    [
        ("old.csv worse.csv truth.csv --fail-if-worse rr", 1),
        ("old.csv worse.csv truth.csv --fail-if-worse rr:0.9", 0),
        ("old.csv like.csv truth.csv --fail-if-worse rr", 0),
        ("old.csv like.csv truth.csv --fail-unless-not-worse rr", 1),
        ("old.csv like.csv truth.csv --fail-unless-not-worse rr:0.9", 0),
        ("old.csv same=old.csv truth.csv --fail-unless-not-worse rr", 0),
        ("old.csv worse.csv truth.csv --fail-if-worse mean_hit_rank@10", 1),
        ("worse.csv old.csv truth.csv --fail-if-worse mean_hit_rank@10", 0),
        ("worse.csv old.csv truth.csv --fail-if-worse rr --baseline old", 1),
        ("old.csv worse.csv truth.csv --fail-if-worse rr:x", 2),
        ("old.csv worse.csv truth.csv --fail-if-worse rr:-1", 2),
        ("old.csv worse.csv truth.csv --fail-if-worse nothing", 2),
        ("old.csv none.csv truth.csv --fail-if-worse rr", 2),
        ("old.csv worse.csv truth.csv --fail-if-worse rr --fail-unless-not-worse rr:1", 2),
        ("old.csv worse.csv truth.csv", 2),
    ],
)
def test_exit_codes(folder, capsys, command, code):
    try:
        got = main(["compare", *command.split()])
    except SystemExit as stopped:
        got = stopped.code
    out, err = capsys.readouterr()
    assert got == code
    assert err.count("\n") == 1
    assert (out == "") == (code == 2)
    begin = ["rankframe: gate passed: ", "rankframe: gate failed: ", "rankframe: error: "]
    assert err.startswith(begin[code])


@pytest.mark.thorough
def test_the_process_ends_with_these_codes(folder):
    for other, code, said in [
        ("worse", 1, "rr of worse against old: worse: interval below -0.01"),
        ("like", 0, "gate passed: rr of like against old: undecided: -0.01 in interval"),
        ("none", 2, "none.csv: no such file"),
    ]:
        files = [str(folder / f"{name}.csv") for name in ("old", other, "truth")]
        done = subprocess.run(
            [sys.executable, "-m", "rankframe", "compare", *files, "--fail-if-worse", "rr:0.01"],
            cwd=Path(rf.__file__).parents[1],
            capture_output=True,
            encoding="utf-8",
            timeout=120,
        )
        assert done.returncode == code, done.stderr
        assert said in done.stderr
        assert done.stderr.count("\n") == 1


def test_it_says_why_in_one_line(folder, capsys):
    assert main("compare old.csv worse.csv truth.csv --fail-if-worse rr:0.1".split()) == 1
    low, high = interval(WORSE)
    assert capsys.readouterr().err == (
        "rankframe: gate failed: rr of worse against old: worse: interval below -0.1 (margin 0.1, "
        f"difference {(low + high) / 2:.4f}, interval {low:.4f} to {high:.4f})\n"
    )


def test_several_gates_have_a_line_each(folder, capsys):
    command = "compare old.csv worse.csv like.csv truth.csv -m map --json --fail-if-worse rr:0.01"
    command += " --fail-unless-not-worse hit@1,2:0.05"
    assert main(command.split()) == 1
    out, err = capsys.readouterr()
    rows = json.loads(out)
    assert {row["metric"]: row["margin"] for row in rows} == {
        "map": None,
        "rr": 0.01,
        "hit@1": 0.05,
        "hit@2": 0.05,
    }
    assert err.count("gate failed") == sum(row["passed"] is False for row in rows) > 2
    assert err.count("gate passed") == sum(row["passed"] is True for row in rows)
    assert " of map " not in err


def test_the_margin_of_verdicts_is_not_that_of_the_gate(folder, capsys):
    command = "compare old.csv like.csv truth.csv --margin 0.05 --fail-if-worse rr"
    assert main(command.split()) == 0
    assert "(margin 0 of the gate, not --margin 0.05, difference " in capsys.readouterr().err
    assert main([*command.split()[:-1], "rr:0.05"]) == 0
    assert "(margin 0.05, difference " in capsys.readouterr().err


def test_a_set_gates_what_has_a_direction(folder, capsys):
    command = "compare old.csv worse.csv truth.csv --json --fail-if-worse official"
    assert main(command.split()) == 1
    out, err = capsys.readouterr()
    gated = {row["metric"] for row in json.loads(out)}
    assert {"map", "P_5"} < gated
    assert not {"num_q", "num_ret", "runid"} & gated
    assert err.startswith("rankframe: not compared, as it has no values of users: runid, num_q\n")
    assert "not gated, as neither direction is better: num_ret, num_rel\n" in err


def test_a_colon_of_a_label_is_not_a_margin(folder, capsys):
    label = "dcg(gain=1:2)@10"
    files = "old.csv worse.csv truth.csv --json --fail-if-worse".split()
    for given, margin in [(label, 0), (f"{label}:0.25", 0.25)]:
        assert main(["compare", *files, given]) in (0, 1)
        (row,) = json.loads(capsys.readouterr().out)
        assert (row["metric"], row["margin"]) == (label, margin)


def test_the_same_stem_is_named_by_the_folder(folder, capsys):
    for name in ("a", "b"):
        (folder / name).mkdir()
    RUNS["old"].write_csv("a/run.csv")
    RUNS["worse"].write_csv("b/run.csv")
    RUNS["like"].write_csv("run_2.csv")
    command = "compare a/run.csv b/run.csv run_2.csv truth.csv --fail-if-worse rr --json"
    assert main(command.split()) == 1
    rows = json.loads(capsys.readouterr().out)
    assert [row["model"] for row in rows] == ["b", "run_2"]
    assert [row["passed"] for row in rows] == [False, True]


def test_an_error_of_our_own_is_not_a_failed_gate(folder, capsys, monkeypatch):
    def broken(*_, **__):
        raise KeyError

    monkeypatch.setattr("rankframe._command.main.compare", broken)
    assert main("compare old.csv worse.csv truth.csv --fail-if-worse rr".split()) == 3
    assert "KeyError" in capsys.readouterr().err
