"""Means as a flat dict, by the rules of experiment trackers."""

import json
import math
import re

import polars as pl
import pytest
from every_metric import LABELS
from two_models import RUN, TRUTH, A

import rankframe as rf

#: MLflow: alphanumerics, underscores, dashes, periods, spaces, colons and slashes
MLFLOW = re.compile(r"^[/\w.\- :]*$")
#: Weights & Biases: letters, digits and underscores, and no digit first
WANDB = re.compile(r"^[_a-zA-Z][_a-zA-Z0-9]*$")
ODD = ["ndcg@10", "f(beta=2)@10", "utility.1,-1,0,0", "iprec_at_recall_0.10", "P_5", "map"]


def test_names_are_plain():
    got = rf.as_dict(rf.evaluate(A, *ODD, truth=TRUTH))
    assert list(got) == [
        "users",
        "ndcg_at_10",
        "f_beta_2__at_10",
        "utility_1__1_0_0",
        "iprec_at_recall_0_10",
        "P_5",
        "map",
    ]


def test_labels_have_names_that_trackers_take():
    labels = LABELS[::7]
    got = rf.as_dict(rf.evaluate(A, *labels, truth=TRUTH, undefined=0.0))
    assert len(got) == len(labels) + 1
    for name, number in got.items():
        assert MLFLOW.match(name)
        assert WANDB.match(name)
        assert len(name) <= 250
        assert type(number) in (int, float)


def test_values_of_by_stand_in_front():
    run = RUN.with_columns(day=pl.when(model="a").then(1).otherwise(2)).drop("model")
    means = rf.evaluate(run, "ndcg@10", truth=TRUTH, by="day", total=True)
    got = rf.as_dict(means)
    assert list(got) == [
        *("_1_users", "_1_ndcg_at_10", "_2_users", "_2_ndcg_at_10"),
        *("all_users", "all_ndcg_at_10"),
    ]
    assert list(got.values()) == [value for row in means.rows() for value in row[1:]]
    got = rf.as_dict(means, names="label")
    assert list(got)[:2] == ["1_users", "1_ndcg@10"]
    means = rf.evaluate(RUN, "mrr", truth=TRUTH, by=["model", "device"])
    assert "a_x_mrr" in rf.as_dict(means)


@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas"])
def test_null_is_a_gap_and_can_be_left_out(kind):
    """A tracker keeps the last value that it gets, so yesterday's would look like today's."""
    means = rf.evaluate(A.head(1), "auc", "rr", truth=A.head(1).select("user", "item"))
    assert means["auc"].item() is None
    frame = {"polars": lambda: means, "lazy": means.lazy, "pandas": means.to_pandas}[kind]()
    got = rf.as_dict(frame)
    assert list(got) == ["users", "auc", "rr"]
    assert math.isnan(got["auc"])
    assert rf.as_dict(frame, undefined="omit") == {"users": 1, "rr": 1.0}
    with pytest.raises(ValueError, match="undefined must be one of 'nan', 'omit', not 0"):
        rf.as_dict(frame, undefined=0)


def test_null_of_every_type_is_a_gap():
    means = pl.DataFrame({"users": [1], "ndcg": [None]})
    for dtype in (pl.Null, pl.Float64, pl.Int64):
        got = rf.as_dict(means.cast({"ndcg": dtype}))
        assert got["users"] == 1
        assert math.isnan(got["ndcg"])
    with pytest.raises(rf.RankingDataError, match="column 'ndcg': it is Duration"):
        rf.as_dict(means.cast({"ndcg": pl.Duration}))


def test_names_of_nulls_still_differ(refused):
    """A name that two numbers share is an error on every day, also where one of them is null."""
    means = pl.DataFrame({"users": [1], "ndcg@10": [0.5], "ndcg_at_10": [None]})
    refused(rf.as_dict, means)


def test_dict_is_the_metrics_file_of_dvc():
    means = rf.evaluate(RUN, "mrr", "num_hits", truth=TRUTH, by="model")
    means = means.with_columns(mrr=pl.when(model="a").then("mrr"))
    numbers = rf.as_dict(means, undefined="omit")
    read = json.loads(json.dumps(numbers, allow_nan=False))
    assert read == numbers
    assert "b_mrr" not in read
    assert all(isinstance(number, int | float) for number in read.values())
    with pytest.raises(ValueError, match="not JSON compliant"):
        json.dumps(rf.as_dict(means), allow_nan=False)


def test_frames_of_every_kind():
    means = rf.evaluate(RUN, "mrr", truth=TRUTH, by="model")
    expected = rf.as_dict(means)
    assert rf.as_dict(means.lazy()) == expected
    got = rf.as_dict(means.to_pandas())
    assert got == expected
    assert type(got["a_users"]) is int
    assert rf.as_dict(means.clear()) == {}


def test_labels_of_one_name_raise(refused):
    means = pl.DataFrame({"users": [1], "ndcg@10": [0.5], "ndcg_at_10": [0.6]})
    refused(rf.as_dict, means)
    assert len(rf.as_dict(means, names="label")) == 3
    groups = pl.DataFrame({"model": ["a b", "a-b"], "users": [1, 1]})
    refused(rf.as_dict, groups)


def test_frames_that_are_not_of_means():
    with pytest.raises(rf.RankingDataError, match="no column 'users'"):
        rf.as_dict(rf.per_user(A, "rr", truth=TRUTH))
    with pytest.raises(ValueError, match="names must be one of 'snake', 'label', not 'plain'"):
        rf.as_dict(rf.evaluate(A, "rr", truth=TRUTH), names="plain")
    time = pl.duration(minutes=pl.col("minutes").filter("relevant").max()).alias("time")
    with pytest.raises(rf.RankingDataError, match="column 'time': it is Duration"):
        rf.as_dict(rf.evaluate(A, time, truth=TRUTH))


def test_group_called_all_is_not_the_row_of_totals():
    run = pl.DataFrame({"model": ["all", "b"], "user": 1, "item": 7, "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1], "item": [7]})
    means = rf.evaluate(run, "rr", truth=truth, by="model", total=True)
    with pytest.raises(rf.RankingDataError, match="'all' stands for the row of totals: rename"):
        rf.as_dict(means)


@pytest.mark.parametrize("verb", [rf.compare, rf.summarize])
def test_frames_with_a_row_per_metric_are_refused(verb, refused):
    run = pl.DataFrame({"model": ["a", "b"], "user": 1, "item": 7, "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1], "item": [7]})
    refused(rf.as_dict, verb(run, "rr", truth=truth, by="model"))
