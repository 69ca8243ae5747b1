"""Equal to trec_eval 10 to the last digits, on the runs and qrels that NIST published."""

import re

import polars as pl
import pytest

import rankframe as rf
from rankframe import trec
from rankframe.cli import main

DATA_SETS = ["trec_sample", "web12_catb"]
BOTH = {"users": "both", "undefined": 0.0}
OPTIONS = {
    "expected_trec": BOTH,
    "expected_trec_c": rf.TREC_EVAL,
    "expected_trec_l2": {**BOTH, "relevant_at": 2},
    "expected_trec_c_l2": {**rf.TREC_EVAL, "relevant_at": 2},
    "expected_trec_M10": {**BOTH, "depth": 10},
    "expected_trec_J": {**BOTH, "judged_only": True},
    "expected_trec_params": BOTH,
}
MEASURE = re.compile(
    r"((P|recall|map_cut|ndcg_cut|success|relative_P)_\d+|map|ndcg|recip_rank|Rprec|gm_map"
    r"|set_(P|recall|relative_P|F|F\.\d\.\d))"
)


def tables(shared, name):
    run = pl.read_parquet(shared / name / "run.parquet").drop("rank")
    return run, pl.read_parquet(shared / name / "qrels.parquet")


def expected_values(shared, name, file):
    expected = pl.read_parquet(shared / name / f"{file}.parquet")
    measures = [m for m in expected["measure"].unique(maintain_order=True) if MEASURE.fullmatch(m)]
    return expected.filter(pl.col("measure").is_in(measures)), measures


def worst(expected, per_user, means):
    got = pl.concat(
        [
            per_user.unpivot(index="user", variable_name="measure", value_name="got"),
            means.drop("users")
            .with_columns(user=pl.lit("all"))
            .unpivot(index="user", variable_name="measure", value_name="got"),
        ]
    )
    joined = expected.join(got, on=["measure", "user"], how="left")
    assert joined["got"].null_count() == 0
    # trec_eval has no line for users that it leaves out, nor have we
    assert per_user["user"].to_list() == sorted(set(expected["user"]) - {"all"})
    return joined.select((pl.col("got") - pl.col("value")).abs().max()).item()


@pytest.mark.parametrize("file", OPTIONS)
@pytest.mark.parametrize("name", DATA_SETS)
def test_measures_equal_trec_eval(shared, name, file):
    run, truth = tables(shared, name)
    expected, measures = expected_values(shared, name, file)
    assert len(measures) > (20 if file == "expected_trec_params" else 50)
    single = [measure for measure in measures if measure != "gm_map"]
    per_user = run.rank.per_user(*single, truth=truth, **OPTIONS[file])
    means = run.rank.evaluate(*measures, truth=truth, **OPTIONS[file])
    assert worst(expected, per_user, means) < 1e-12


@pytest.mark.parametrize("file", ["expected_trec", "expected_trec_c"])
def test_the_command_on_trec_files_equals_trec_eval(shared, tmp_path, file):
    expected, measures = expected_values(shared, "trec_sample", file)
    single = [measure for measure in measures if measure != "gm_map"]
    folder = shared / "trec_sample"
    options = ["--trec-eval"] if file.endswith("_c") else ["--users", "both", "--undefined", "0"]
    written = {}
    for out, wanted, extra in [
        ("per_user.parquet", single, ["--per-user"]),
        ("means.csv", measures, []),
    ]:
        metrics = [part for measure in wanted for part in ("-m", measure)]
        files = [str(folder / "run.trec"), str(folder / "qrels.trec")]
        target = tmp_path / out
        assert main(["evaluate", *files, *metrics, *options, *extra, "--out", str(target)]) == 0
        written[out] = target
    per_user = pl.read_parquet(written["per_user.parquet"])
    assert worst(expected, per_user, pl.read_csv(written["means.csv"])) < 1e-12


def test_trec_files_hold_what_the_parquet_files_hold(shared):
    run, truth = tables(shared, "trec_sample")
    folder = shared / "trec_sample"
    assert trec.read_run(folder / "run.trec").sort("user", "item").equals(run.sort("user", "item"))
    qrels = trec.read_qrels(folder / "qrels.trec")
    assert qrels.sort("user", "item").equals(truth.sort("user", "item"))


@pytest.mark.parametrize("name", DATA_SETS)
def test_ranks_from_scores_are_those_of_trec_eval(shared, name):
    run = pl.read_parquet(shared / name / "run.parquet")
    ranked = run.drop("rank").rank.with_rank()
    assert ranked["rank"].equals(run["rank"].cast(pl.Int64))
