"""Learning to rank: tables without items, and the numbers of LightGBM, XGBoost and CatBoost."""

import json
import math
from pathlib import Path

import polars as pl
import pytest

import rankframe as rf
from rankframe._command.main import main

FILE = Path(__file__).parents[2] / "benchmarks" / "rankers.json"
CONTENT = json.loads(FILE.read_text())
GROUPS = pl.DataFrame(
    {"qid": number, "label": label, "score": score}
    for number, group in enumerate(CONTENT["groups"])
    for label, score in zip(group["label"], group["score"], strict=True)
)
TOOLS = ("lightgbm", "xgboost", "catboost")


def undefined_of(tool, label):
    """CatBoost scores a group without a positive as 0, except in nDCG."""
    zero = tool == "catboost" and not label.startswith("ndcg")
    return {"undefined": 0.0} if zero else {}


def test_file_is_small_and_has_the_cases_that_differ():
    assert FILE.stat().st_size <= 50_000
    labels = GROUPS.group_by("qid").agg("label", pl.col("score").is_duplicated().any())
    assert not labels["score"].any()
    sizes = labels["label"].list.len()
    assert sizes.min() == 1
    assert ((sizes > 1) & (sizes < 10) & (labels["label"].list.max() == 0)).sum() >= 2
    assert ((labels["label"].list.n_unique() == 1) & (labels["label"].list.max() > 1)).any()


@pytest.mark.parametrize("tool", TOOLS)
def test_presets_have_the_numbers_of_the_tools(tool):
    printed = CONTENT[tool]
    for label, value in printed["all"].items():
        options = {"preset": tool, **undefined_of(tool, label)}
        each = GROUPS.rank.per_user(label, **options)
        assert each["qid"].to_list() == list(range(len(printed["each"])))
        expected = [values[label] for values in printed["each"]]
        assert each[label].to_list() == pytest.approx(expected, abs=1e-9), label
        mean = GROUPS.rank.evaluate(label, **options)
        assert mean.row(0) == (len(expected), pytest.approx(value, abs=1e-9)), label


@pytest.mark.parametrize("kind", ["polars", "pandas", "Arrow", "dict of runs"])
def test_rows_are_the_items_of_any_frame(kind):
    frame = {
        "polars": lambda: GROUPS,
        "pandas": GROUPS.to_pandas,
        "Arrow": GROUPS.to_arrow,
        "dict of runs": lambda: {"a": GROUPS, "b": GROUPS},
    }[kind]()
    with_items = GROUPS.with_columns(item=pl.int_range(pl.len()))
    expected = with_items.rank.evaluate("ndcg@5", "ap", preset="lightgbm").row(0)
    got = rf.evaluate(frame, "ndcg@5", "ap", preset="lightgbm")
    assert pl.DataFrame(got).row(0)[-3:] == expected
    if kind == "dict of runs":
        assert rf.compare(frame, "ndcg@5", preset="xgboost")["difference"].to_list() == [0.0]


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
def test_equal_scores_keep_the_order_of_rows():
    rows = pl.DataFrame({"qid": 1, "label": [0, 1, 0, 1], "score": [0.5, 0.5, 0.9, 0.5]})
    assert rows.rank.evaluate("rr", "ndcg@2").row(0)[1] == 1 / 3
    assert rows.reverse().rank.evaluate("rr").row(0)[1] == 1 / 2
    many = pl.DataFrame({"qid": 1, "label": [0] * 500 + [1] + [0] * 500, "score": 1.0})
    assert many.rank.evaluate("rr").row(0)[1] == 1 / 501
    repeated = [many.head(n).rank.evaluate("rr").row(0)[1] for n in (501, 600, 700)]
    assert repeated == [1 / 501] * 3
    tied = rf.metrics.rows(many, "rr")
    assert tied.select("qid", "rank", "row_from_end").row(0) == (1, 501, 501)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: GROUPS.lazy().rank.evaluate("ap"),
            "a lazy table needs it, and a DataFrame with a",
        ),
        (
            lambda: GROUPS.drop("score").rank.evaluate("ap"),
            "'item' for item, 'rank' for rank; it has 'qid', 'label'",
        ),
        (
            lambda: GROUPS.rename({"label": "relevance"}).rank.evaluate("gini(of=shown)"),
            "'item' for item, which 'gini(of=shown)' reads; its rows are numbered instead: name",
        ),
        (
            lambda: GROUPS.rank.evaluate("ap", exclude=pl.DataFrame({"qid": 1, "item": 2})),
            "no column 'item' for item, which exclude= reads; its rows are numbered instead",
        ),
        (
            lambda: rf.runs.side_by_side(GROUPS, 1),
            "no column 'item' for item, which side_by_side reads",
        ),
        (lambda: GROUPS.drop("label").rank.with_rank(), "run: no column 'item' for item"),
        (
            lambda: GROUPS.rename({"qid": "q"}).rank.evaluate("ap"),
            "no column 'user' for user, 'item'",
        ),
        (
            lambda: GROUPS.with_columns(doc_id=1, item_id=2).rank.evaluate("ap"),
            "perhaps 'item_id' or 'doc_id' is meant",
        ),
    ],
)
def test_metrics_that_need_items_say_so(call, message):
    with pytest.raises(rf.RankingDataError) as raised:
        call()
    assert message in str(raised.value)


LOG = pl.DataFrame(
    {
        "session": [1, 1, 1, 2, 2, 3],
        "position": [1, 2, 3, 1, 2, 1],
        "clicked": [True, False, True, False, True, False],
    }
)


@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")
@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize("clicks", [pl.Boolean, pl.Int8, pl.Float64])
@pytest.mark.parametrize("kind", ["polars", "lazy", "pandas"])
def test_impressions_are_a_judged_table(items, clicks, kind):
    """Session 1 clicks on 1 and 3, session 2 on 2, session 3 on nothing."""
    log = LOG.with_columns(pl.col("clicked").cast(clicks))
    log = log.with_columns(item=pl.lit("i") + pl.col("position").cast(pl.String)) if items else log
    frame = {"polars": log, "lazy": log.lazy(), "pandas": log.to_pandas()}[kind]
    names = {"user": "session", "rank": "position", "relevance": "clicked"}
    labels = "ndcg@10", "mrr", "num_hits@1"
    if kind == "lazy" and not items:
        with pytest.raises(rf.RankingDataError, match="a lazy table needs it, and a DataFrame"):
            rf.evaluate(frame, *labels, **names)
        return
    got = rf.evaluate(frame, *labels, **names)
    ndcg = (1 + 1 / 2) / (1 + 1 / math.log2(3)), 1 / math.log2(3), 0
    row = pl.DataFrame(got.collect() if kind == "lazy" else got).row(0)
    assert row == (3, pytest.approx(sum(ndcg) / 3), pytest.approx(0.5), 1)


@pytest.mark.parametrize("items", [False, True])
@pytest.mark.parametrize("grade", ["label", "relevance"])
def test_parts_and_meters_take_it(items, grade):
    frame = GROUPS.rename({"label": grade})
    frame = frame.with_columns(item=pl.int_range(pl.len())) if items else frame
    labels = "ndcg@5", "ap", "ndcg(ideal=perfect)@3"  # the last reads the highest grade of all
    expected = frame.rank.evaluate(*labels, preset="lightgbm")
    options = {"preset": "lightgbm", "facts": rf.parts.facts(frame)}
    meter = rf.Meter(*labels, **options)
    parts = frame.partition_by("qid")
    for part in parts:
        meter.update(part)
    assert meter.compute().rows() == [pytest.approx(expected.row(0))]
    sums = [rf.parts.sums(p, *labels, part=str(key), **options) for key, p in enumerate(parts)]
    assert rf.parts.combine(sums).rows() == [pytest.approx(expected.row(0))]


def test_columns_that_are_asked_for_are_values():
    values = GROUPS.unique("qid")
    assert rf.summarize(values, "score")["mean"].item() == pytest.approx(values["score"].mean())
    assert rf.plot.per_user(values, "score").to_dict()
    with pytest.raises(rf.RankingDataError, match="a lazy table needs it, and a DataFrame"):
        rf.summarize(GROUPS.lazy(), "ap").collect()


def test_charts_tables_and_the_report_take_it():
    runs, truth = (
        {"a": GROUPS, "b": GROUPS.with_columns(score=-pl.col("score"))},
        {"users": "truth"},
    )
    assert rf.plot.per_user(GROUPS, "ndcg@3", **truth).to_dict()
    mean = rf.evaluate(runs, "ndcg@3", **truth)["ndcg@3"].to_list()
    drawn = rf.plot.compare(runs, "ndcg@3", baseline="a", **truth).to_dict()
    assert drawn
    told = rf.report(runs, "ndcg@3", baseline="a", **truth).verdict
    assert f"from {mean[0]:.3f} to {mean[1]:.3f}" in told


def test_models_are_not_one_list():
    pooled = pl.DataFrame({"model": [*"oonn"], "qid": 1, "label": [1, 0, 1, 0]})
    pooled = pooled.with_columns(score=pl.Series([0.9, 0.1, 0.1, 0.9]))
    assert rf.evaluate(pooled, "rr").rows() == [("n", 1, 0.5), ("o", 1, 1.0)]
    assert rf.evaluate(pooled.to_pandas(), "rr")["rr"].to_list() == [0.5, 1.0]
    cars = pooled.rename({"model": "car"})
    assert rf.evaluate(cars, "rr")["users"].item() == 1


@pytest.mark.parametrize("frame", [GROUPS, GROUPS.to_pandas(), {"a": GROUPS, "b": GROUPS}])
def test_health_reads_what_check_reads(frame):
    rf.check(frame)
    counts = pl.DataFrame(rf.health(frame)).filter(pl.col("count") > 0)
    rows = counts.filter(what="rows", table="run")
    assert set(rows["count"]) == {GROUPS.height}


def test_command_says_that_it_needs_ids(tmp_path, capsys):
    file = tmp_path / "scored.csv"
    GROUPS.write_csv(file)
    assert main(["evaluate", str(file), "-m", "ndcg@5"]) == 2
    told = "name it with --item; the command needs it, and Python does not"
    assert told in capsys.readouterr().err
