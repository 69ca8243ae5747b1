"""The words of options are the keywords of Python: the same call gives the same table."""

import re

import polars as pl
import pytest
from commands import said_by
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._command.main import main

TRUTH = pl.DataFrame({"user": range(12), "item": 7}).with_columns(
    relevance=pl.col("user") % 3 + 1,
    fold=pl.col("user") % 2 + 1,
    impressions=pl.col("user") % 4 + 1,
    who=pl.format("w{}", pl.col("user") // 3),
)
RUNS = {
    name: TRUTH.select("user", "item", "fold", rank=pl.col("user") % (3 + place) + 1)
    for place, name in enumerate(("old", "new"))
}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, table in {**RUNS, "truth": TRUTH}.items():
        table.write_csv(f"{name}.csv")


CALLS = [
    (
        "evaluate",
        "-m ndcg@5 --relevant-at 2 --count-users",
        {"relevant_at": 2, "count_users": True},
    ),
    ("per_user", "-m ndcg@5 --relevant-at 2 --per-user", {"relevant_at": 2}),
    ("evaluate", "-m map --weights impressions", {"weights": "impressions"}),
    (
        "per_user",
        "-m p@1 -m ndcg --users all --undefined 0.5 --unjudged drop --depth 1 --per-user",
        {"users": "all", "undefined": 0.5, "unjudged": "drop", "depth": 1},
    ),
    (
        "evaluate",
        "-m map --by fold --total --chance",
        {"by": "fold", "total": True, "chance": True},
    ),
    ("evaluate", "-m recall@1 --average pooled", {"average": "pooled"}),
    ("evaluate", "-m ndcg --average fold", {"average": "fold"}),
    ("compare", "-m recall@1 --average pooled", {"average": "pooled"}),
    ("evaluate", "-m ndcg@1,3 -m map", {}),
    ("evaluate", "-m rr --users both --depth 3", {"users": "both", "depth": 3}),
    ("evaluate", "-m rr -m p@2 --duplicates occupy", {"duplicates": "occupy"}),
    ("compare", "-m rr --by fold --total", {"by": "fold", "total": True}),
    ("compare", "-m rr --cluster who", {"cluster": "who"}),
    (
        "compare",
        "-m ndcg@5 -m rr --correction none --confidence 0.9 --margin 0.4 --primary rr --users both",
        {"correction": None, "confidence": 0.9, "margin": 0.4, "primary": "rr", "users": "both"},
    ),
    ("compare", "-m gmap@3,5 --baseline new", {"baseline": "new"}),
    ("differences", "-m rr --n 2 --by fold", {"n": 2, "by": "fold"}),
    ("differences", "-m map --weights impressions", {"weights": "impressions"}),
    ("gate", "-m rr --margin 95% --undecided pass", {"margin": "95%", "undecided": "pass"}),
]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(("verb", "words", "options"), CALLS)
def test_options_are_keywords(verb, words, options):
    several = verb in ("compare", "differences", "gate")
    files = ["old.csv", "new.csv"] if several else ["old.csv"]
    command = "evaluate" if verb == "per_user" else verb
    call = [command, *files, "truth.csv", *words.split(), "--out", "out.parquet"]
    assert main(call) in ((0, 1) if verb == "gate" else (0,))
    metrics = re.findall(r"-m (\S+)", words)
    runs = RUNS if several else RUNS["old"]
    want = getattr(rf.stats if verb == "differences" else rf, verb)(
        runs, *metrics, truth=TRUTH, **options
    )
    got = pl.read_parquet("out.parquet").select(want.columns)
    assert_frame_equal(got, want, check_dtypes=False)


@pytest.mark.usefixtures("folder")
def test_training_runs_are_repetitions():
    runs = {
        name: pl.concat(
            run.with_columns(rank=(pl.col("user") + seed) % (3 + seed) + 1, seed=seed)
            for seed in (1, 2, 3)
        )
        for name, run in RUNS.items()
    }
    for name, run in runs.items():
        run.write_csv(f"{name}.csv")
    call = "compare old.csv new.csv truth.csv -m rr --over seed --out out.parquet"
    assert main(call.split()) == 0
    want = rf.compare(runs, "rr", truth=TRUTH, over="seed")
    got = pl.read_parquet("out.parquet").select(want.columns)
    assert_frame_equal(got, want, check_dtypes=False)
    assert "3 runs of new, 3 of old" in want["note"].item()


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    "words",
    [
        "--count-users --per-user",
        "--chance --per-user",
        "--total --by fold --per-user",
        "--weights impressions --per-user",
        "--weights impressions -q",
        "--average pooled --per-user",
    ],
)
def test_options_that_exclude_each_other(words):
    said = said_by(["evaluate", "old.csv", "truth.csv", "-m", "map", *words.split()])
    assert "cannot be combined with" in said
