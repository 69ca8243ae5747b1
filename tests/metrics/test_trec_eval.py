"""Equal to trec_eval 10 to the last digits, on the runs and qrels that NIST published."""

import json

import polars as pl
import pytest
import quoted

from rankframe import trec
from rankframe._command.main import main

OVER_USERS = {"gm_map", "gm_bpref", "num_q"}
DATA_SETS = ["trec_sample", "web12_catb"]
TEN, NINE = "trec_eval", "trec_eval_9"
OPTIONS = {
    "expected_trec": {"preset": TEN, "users": "both"},
    "expected_trec_c": {"preset": TEN},
    "expected_trec_l2": {"preset": TEN, "users": "both", "relevant_at": 2},
    "expected_trec_c_l2": {"preset": TEN, "relevant_at": 2},
    "expected_trec_M10": {"preset": TEN, "users": "both", "depth": 10},
    "expected_trec_J": {"preset": TEN, "users": "both", "unjudged": "drop"},
    "expected_trec_params": {"preset": TEN, "users": "both"},
    "expected_trec_v9": {"preset": NINE, "users": "both"},
    "expected_trec_v9_c": {"preset": NINE},
}
#: what is not ours to equal
EXCEPTIONS = {
    "rbp": "trec_eval reads variables that it never sets",
    "num_rel": "under -c the sum counts grades > 0 whatever -l says",
}


def tables(shared, name):
    run = pl.read_parquet(shared / name / "run.parquet").drop("rank")
    return run, pl.read_parquet(shared / name / "qrels.parquet")


def expected_values(shared, name, file):
    expected = pl.read_parquet(shared / name / f"{file}.parquet")
    odd = {"rbp"} | ({"num_rel"} if file == "expected_trec_c_l2" else set())
    assert odd <= set(EXCEPTIONS)
    expected = expected.filter(~pl.col("measure").is_in(odd))
    if file == "expected_trec_J":  # NaN where the condensed list is empty; ours is 0
        expected = expected.filter(pl.col("value").is_finite())
    return expected, expected["measure"].unique(maintain_order=True).to_list()


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
    assert len(measures) > (40 if file == "expected_trec_params" else 90)
    single = [measure for measure in measures if measure not in OVER_USERS]
    per_user = run.rank.per_user(*single, truth=truth, **OPTIONS[file])
    means = run.rank.evaluate(*measures, truth=truth, **OPTIONS[file])
    assert worst(expected, per_user, means) < 1e-12


@pytest.mark.parametrize("file", ["expected_trec_c", "expected_trec_v9"])
def test_command_on_trec_files_equals_trec_eval(shared, tmp_path, file):
    expected, measures = expected_values(shared, "trec_sample", file)
    single = [measure for measure in measures if measure not in OVER_USERS]
    folder = shared / "trec_sample"
    options = ["--preset", NINE if "_v9" in file else TEN]
    options += [] if file.endswith("_c") else ["--users", "both"]
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


def test_quoted_numbers_are_these(shared):
    found = [expected_values(shared, name, file) for name in DATA_SETS for file in OPTIONS]
    numbers = sum(expected.height for expected, _ in found)
    measures = {measure for _, names in found for measure in names}
    stored = json.loads(quoted.STORED.read_text())
    assert (stored["numbers"], stored["measures"]) == (f"{numbers:,}", f"{len(measures)}")
