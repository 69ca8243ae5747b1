"""Spark gives what one machine gives, and says what it says."""

import contextlib
import doctest
import functools
import gc
import io
import os
import re
import shlex
import signal
import subprocess
import sys
from contextlib import redirect_stdout
from pathlib import Path

import engines
import every_metric
import extension
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from requirements import need_spark
from two_models import EXACT_CALLS, RUN, TRUTH, A, assert_same, many_users

import rankframe as rf

# Spark leaves its sockets to the garbage collector
pytestmark = pytest.mark.filterwarnings("ignore::ResourceWarning")
FEW = ["ndcg@3", "map", "precision(divide_by=returned)@3", "err@10", "num_hits"]
RUN_3 = A.select("user", "item", "rank")
TRUTH_3 = TRUTH.select("user", "item", "relevance")
SOME = list(every_metric.OF_EACH_COLUMN.values())
DISTANT = ["precision@3", "rr@1"]  # metrics that let ranks below 3 stay at home


@pytest.fixture(scope="module")
def spark():
    need_spark()
    os.environ["PYSPARK_PYTHON"] = sys.executable
    from pyspark.sql import SparkSession

    options = {
        "spark.driver.memory": "1g",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.codegen.wholeStage": "false",  # to compile a plan takes longer than few rows
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "Asia/Tokyo",
        "spark.sql.warehouse.dir": "/nonexistent",
    }
    builder = SparkSession.builder.master("local[2,2]")  # a task may fail once
    session = builder.config(map=options).getOrCreate()
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
    gc.collect()  # while its warnings are ignored


@pytest.fixture(scope="module")
def rs(spark):
    import rankframe.spark

    return rankframe.spark


@pytest.fixture(scope="module")
def bring(spark):
    def to_spark(frame):
        return spark.createDataFrame(frame.to_arrow(compat_level=pl.CompatLevel.oldest()))

    return to_spark


@pytest.fixture(scope="module")
def run(bring):
    return bring(RUN).cache()


@pytest.fixture(scope="module")
def a(bring):
    return bring(A).cache()


@pytest.fixture(scope="module")
def truth(bring):
    return bring(TRUTH).cache()


def take(frame, *keys):
    found = pl.from_arrow(frame.toArrow())
    # Spark shows times in the zone of its session
    found = found.with_columns(pl.selectors.datetime(time_zone="*").dt.convert_time_zone("UTC"))
    return found.sort(keys, nulls_last=True) if keys else found


# ------------------------------------------------------------------ the same numbers


def test_values_of_each_kind_of_metric_equal_the_local_ones(rs, run, truth):
    got = take(rs.per_user(run, *SOME, truth=truth, partitions=2), "model", "user")
    assert_same(got, rf.per_user(RUN, *SOME, truth=TRUTH), check_dtypes=True)


def test_partitions_have_the_bits_of_evaluate(rs, bring):
    local, judgments = many_users(3)
    metrics = ["rr", "gmap@1", "auc", (pl.col("relevance").max() >= 2).alias("high")]
    options = EXACT_CALLS[-1]
    expected = rf.evaluate(local, *metrics, truth=judgments, **options)
    frame, truth = bring(local), bring(judgments)
    for partitions in (3, None):
        got = take(rs.evaluate(frame, *metrics, truth=truth, partitions=partitions, **options))
        assert_frame_equal(got, expected, check_exact=True)


def test_tables_beside_run_and_truth(spark, rs, run, truth):
    shown = sorted(set(RUN["item"]) | set(TRUTH["item"]))
    items = pl.DataFrame({"item": shown, "genre": [[str(i % 3)] for i in range(len(shown))]})
    history = TRUTH.select("user", "item").unique().with_columns(pl.col("item").reverse())
    history = history.unique()
    metrics = [
        "novelty@3",
        "unseen@3",
        "popularity_lift",
        "ild@3",
        "epc@3",
        "miscalibration",
        "map",
    ]
    in_spark = {"items": items, "history": spark.createDataFrame(history.to_pandas())}
    local = {"items": items, "history": history}
    metrics += ["coverage@3", "gini@3", "personalization@3", "disparity(of=genre)"]
    options = {"by": "model", "total": True}
    got = take(rs.evaluate(run, *metrics, truth=truth, **in_spark, **options))
    expected = RUN.rank.evaluate(*metrics, truth=TRUTH, **local, **options)
    assert_same(got.sort("model"), expected.sort("model"))
    of_users = ["disparity(of=genre, target=truth)", "disparity(of=genre, target=candidates)"]
    got = take(rs.evaluate(run, *of_users, truth=truth, by="model", **in_spark))
    assert_same(got, RUN.rank.evaluate(*of_users, truth=TRUTH, by="model", **local))
    with pytest.raises(ValueError, match="coverage@3 is one number for all lists: its interval"):
        rs.summarize(run, "coverage@3", truth=truth, items=items, by="model")
    with pytest.raises(rf.RankingDataError, match="'unseen': pass history=.*; it reads 'seen'"):
        rs.per_user(run, "unseen", truth=truth)


def test_workers_know_what_others_registered(rs, run, truth):
    from pyspark import cloudpickle

    with extension.registered() as acme:
        cloudpickle.register_pickle_by_value(acme)  # its module is not on the workers' path
        metrics = ["first_half@4", "fh_2", acme.widest_gap, acme.pages]
        got = take(rs.per_user(run, *metrics, truth=truth, by="model"), "model", "user")
        expected = RUN.rank.per_user(*metrics, truth=TRUTH, by="model")
        assert_same(got, expected)


@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        (FEW, {"users": "both", "relevant_at": 2, "depth": 4}),
        (
            ["recall@3", "err@10", "num_hits"],
            {"unjudged": "bounds", "users": "all", "partitions": 5},
        ),
        (["map"], {"preset": {"defaults": {"map": {"divide_by": "hits"}}}, "unjudged": "drop"}),
        (
            [
                pl.col("minutes")
                .filter(pl.col("relevant") & (pl.col("rank") <= 3))
                .sum()
                .alias("x.y"),
                pl.col("genre").filter("relevant").n_unique().alias("X"),
                *DISTANT,
            ],
            {"users": "judged", "undefined": 0.5, "count_users": True, "total": True},
        ),
    ],
)
def test_options_and_metrics_of_ones_own(rs, run, truth, metrics, options):
    local = {name: value for name, value in options.items() if name != "partitions"}
    got = take(rs.evaluate(run, *metrics, truth=truth, by="model", **options))
    assert_same(got, rf.evaluate(RUN, *metrics, truth=TRUTH, by="model", **local))
    assert truth.storageLevel.useMemory  # what the caller keeps in memory stays there


def test_a_judged_table_equals_run_and_truth(rs, run, truth):
    judged = rs.judge(run, truth, by="model").cache()
    local = rf.judge(RUN, TRUTH, by="model")
    assert judged.columns == local.columns
    assert_same(take(judged, "model", "user", "rank", "item"), local, check_dtypes=True)
    got = take(rs.evaluate(judged, *FEW, by="model", users="truth"))
    assert_same(got, rf.evaluate(local, *FEW, by="model"))


def test_a_judged_table_asks_who_counts(rs, bring):
    rows = {"user": [1, 1, 2], "item": [1, 2, 1], "rank": [1, 2, 1], "relevance": [0, 0, 1]}
    judged = bring(pl.DataFrame(rows))
    for verb in (rs.evaluate, rs.per_user, rs.summarize):
        with pytest.raises(ValueError, match="pass users='all', undefined=0.0 if .* users='truth'"):
            take(verb(judged, "hit@2"))
    (row,) = take(rs.evaluate(judged, "hit@2", users="all", undefined=0.0)).rows()
    assert row == (2, 0.5)  # user 1 counts as 0, as by default on one machine


def test_a_group_that_only_rows_show_that_do_not_matter(rs, bring):
    fold = (pl.col("user") % 4).alias("fold")
    low = pl.when(pl.col("user") % 4 == 1).then(0).otherwise("relevance").alias("relevance")
    local, judgments = A.with_columns(fold), TRUTH.with_columns(fold, low)
    judgments = judgments.filter(fold != 2)
    local = local.filter((fold != 2) | (pl.col("rank") > 3)).filter(fold != 1)
    frame, truth = bring(local), bring(judgments)
    got = take(rs.evaluate(frame, *DISTANT, truth=truth, by="fold"))
    expected = rf.evaluate(local, *DISTANT, truth=judgments, by="fold")
    assert expected["users"].to_list()[1:3] == [0, 0]
    assert_same(got, expected)
    judged = rf.judge(local, judgments, by="fold")
    got = take(rs.evaluate(bring(judged), *DISTANT, by="fold", users="truth"))
    assert_same(got, expected)


def test_a_truth_of_polars_or_pandas(rs, a):
    expected = rf.evaluate(A, *FEW, truth=TRUTH)
    wide = TRUTH.with_columns(pl.col("user").cast(pl.UInt64), pl.col("item").cast(pl.Int128))
    for truth in (TRUTH.to_pandas(), wide.lazy().cast({"relevance": pl.Float32})):
        assert_same(take(rs.evaluate(a, *FEW, truth=truth)), expected)


# ------------------------------------------------------------------ types and nulls


def text(name):
    return pl.format("u{}", pl.col(name).cast(pl.String).str.zfill(2)).alias(name)


ids = pl.col("user", "item")
ID_TYPES = {
    "byte": [ids.cast(pl.Int8)],
    "short": [ids.cast(pl.Int16)],
    "int": [ids.cast(pl.Int32)],
    "double": [ids.cast(pl.Float64) / 2],
    "decimal": [ids.cast(pl.Decimal(20, 3))],
    "text": [text("user"), text("item")],
    "binary": [text("user").cast(pl.Binary), text("item").cast(pl.Binary)],
    "date": [ids.cast(pl.Int32).cast(pl.Date)],
    "time": [ids.cast(pl.Datetime("us", "UTC"))],
    "boolean": [pl.col("item") > 15, (pl.col("user") * 100 + pl.col("item")).alias("user")],
}


@pytest.mark.sample(8)
@pytest.mark.parametrize("name", ID_TYPES)
def test_types_of_ids(rs, bring, name):
    local, judgments = A.with_columns(ID_TYPES[name]), TRUTH.with_columns(ID_TYPES[name])
    if name == "boolean":  # as an item: few lists have no item twice
        local, judgments = (x.unique(["user", "item"]) for x in (local, judgments))
    got = take(rs.per_user(bring(local), *FEW, truth=bring(judgments)), "user")
    assert_same(got, rf.per_user(local, *FEW, truth=judgments), check_dtypes=True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum([f"u{n:02}" for n in range(40)])])
def test_ids_from_a_dictionary(rs, bring, dtype):
    local, judgments = A.with_columns(ID_TYPES["text"]), TRUTH.with_columns(ID_TYPES["text"])
    of_dictionary = judgments.with_columns(ids.cast(dtype))
    got = take(rs.evaluate(bring(local), *FEW, truth=of_dictionary))
    assert_same(got, rf.evaluate(local, *FEW, truth=judgments))


@pytest.mark.sample(3)
@pytest.mark.parametrize("left", [pl.Int8, pl.Int32, pl.Int64])
def test_integers_of_any_width_meet(rs, bring, left):
    """Spark hashes an int and a bigint differently."""
    local, judgments = A.cast({"user": left}), TRUTH.cast({"user": pl.Int16, "item": pl.Int32})
    run = bring(local).repartition(3, "user")
    truth = bring(judgments).repartition(3, "user")
    got = take(rs.per_user(run, *FEW, truth=truth, partitions=3), "user")
    assert_same(got, rf.per_user(local, *FEW, truth=judgments), check_dtypes=True)


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", [pl.Float32, pl.Decimal(12, 3)])
def test_ranks_from_scores_of_any_type(rs, bring, truth, dtype):
    """With ties, and with nulls and NaN, which are not retrieved."""
    score = (pl.col("minutes").cast(pl.Int32) // 3).cast(dtype)
    score = pl.when(pl.col("item") % 5 > 0).then(score)
    if dtype.is_float():
        score = pl.when(pl.col("item") % 7 > 0).then(score).otherwise(float("nan"))
    local = A.drop("rank").with_columns(score.alias("score"))
    got = take(rs.evaluate(bring(local), *FEW, truth=truth))
    assert_same(got, rf.evaluate(local, *FEW, truth=TRUTH))


def test_blocks_of_ties(rs, bring, truth):
    score = pl.col("minutes").cast(pl.Int32) // 4
    local = A.drop("rank").with_columns(score=score).rank.with_rank(ties="expected")
    got = take(rs.evaluate(bring(local), "ndcg@3", "map", truth=truth))
    assert_same(got, rf.evaluate(local, "ndcg@3", "map", truth=TRUTH))


def test_columns_go_by_name(rs, bring):
    names = {"user": "U.id", "item": "u.ID", "rank": "the rank", "relevance": "Grade`"}
    retrieved = pl.when(pl.col("rank") != 2).then("rank").alias("rank")  # a null rank is none
    local = A.with_columns(retrieved).rename(names, strict=False)
    local = local.with_columns(Minutes=pl.lit("no role"))
    judgments = TRUTH.rename(names, strict=False)
    got = take(
        rs.per_user(bring(local[:, ::-1]), *FEW, truth=bring(judgments[:, ::-1]), **names), "U.id"
    )
    assert_same(got, rf.per_user(local, *FEW, truth=judgments, **names), check_dtypes=True)


def test_types_that_only_polars_has_come_out_wider(rs, a, truth):
    last = pl.col("genre").filter("relevant").max()
    metrics = [
        pl.len().cast(pl.UInt8).alias("u8"),
        pl.len().cast(pl.UInt64).alias("u64"),
        last.cast(pl.Categorical).alias("category"),
        pl.duration(minutes=pl.len()).alias("time"),
        pl.lit(None).alias("nothing"),
    ]
    got = take(rs.per_user(a, *metrics, truth=truth), "user")
    expected = rf.per_user(A, *metrics, truth=TRUTH)
    types = {"u8": pl.Int16, "u64": pl.Decimal(20, 0), "category": pl.String}
    assert_same(got, expected.cast(types), check_dtypes=True)


# ------------------------------------------------------------------ partitions


def plan_of(frame):
    printed = io.StringIO()
    with redirect_stdout(printed):
        frame.explain()
    return printed.getvalue()


def test_what_cannot_matter_stays_out_of_the_shuffle(rs, a, truth):
    def sent(*metrics, **options):
        values = rs.per_user(a, *metrics, truth=truth, **options)
        sides = values._jdf.queryExecution().optimizedPlan().children().head().children().head()
        return str(sides)

    plan = sent("precision@3")
    assert re.search(r"> 3\b", plan)
    assert re.search(r"<= 0\.0", plan)
    assert "minutes" not in plan.partition("InMemoryRelation")[0]
    assert not re.search(r"> 3\b", sent("precision@3", "map"))
    assert not re.search(r"<= 0\.0", sent("precision@3", "bpref"))


def test_items_that_nobody_judged_stay_out_of_the_shuffle(rs, spark, a, truth):
    """If the keys of the truth can be broadcast; the numbers of both roads are the same."""
    few = [*FEW[:2], "num_hits", "rr"]
    for limit, joined in {"1m": True, "-1": False}.items():
        spark.conf.set("spark.sql.autoBroadcastJoinThreshold", limit)
        try:
            values = rs.per_user(a, *few, truth=TRUTH, users="judged")
            assert ("BroadcastHashJoin" in plan_of(values)) == joined
            got = rs.evaluate(a, *few, truth=truth, users="judged")
            assert_same(take(got), rf.evaluate(A, *few, truth=TRUTH, users="judged"))
        finally:
            spark.conf.unset("spark.sql.autoBroadcastJoinThreshold")
    values = rs.per_user(a, *few, truth=truth, users="judged")
    assert "BroadcastHashJoin" not in plan_of(values)  # who knows what is read next time


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("metric", "options"), [("precision", {}), ("bpref", {}), ("num_ret", {"users": "run"})]
)
def test_items_that_nobody_judged_are_there_for_metrics_that_read_them(rs, a, metric, options):
    values = rs.per_user(a, metric, truth=TRUTH, **options)
    assert "BroadcastHashJoin" not in plan_of(values)


MISSED = A.filter(pl.col("user") > 3).with_columns(pl.col("rank") + pl.col("user") % 3)


def test_who_has_a_list_is_known_though_its_rows_stay_at_home(rs, bring, truth):
    """Lists begin at any rank, and have no judged item, or none above the cut-off."""
    misses = MISSED.filter(pl.col("user") < 9).with_columns(pl.col("item") + 1000)
    b = pl.concat([misses, MISSED.filter(pl.col("user") > 12)])
    local = pl.concat([MISSED.with_columns(model=pl.lit("a")), b.with_columns(model=pl.lit("b"))])
    run, few = bring(local), ["precision@2", "rr"]
    options = {"by": "model", "users": "all"}
    got = take(rs.evaluate(run, *few, "missed", "num_missed", truth=truth, **options))
    assert_same(got, rf.evaluate(local, *few, "missed", "num_missed", truth=TRUTH, **options))
    got = take(rs.compare(run, *few, truth=truth, depth=2, details=True))
    assert got["num_missed"].max() > 0
    assert_same(got, rf.compare(local, *few, truth=TRUTH, depth=2, details=True))


@pytest.mark.thorough
def test_nothing_stays_in_memory(rs, spark, a, truth):
    def kept():
        return spark.sparkContext._jsc.getPersistentRDDs().size()

    a.count(), truth.count()  # these are cached for all tests
    before = kept()
    take(rs.evaluate(a, "map", truth=truth.where("relevance < 9")))
    rs.summarize(a, "map", truth=truth.where("relevance < 9"))
    told(rs.evaluate, a.selectExpr("user", "item", "0 AS rank"), "map", truth=truth)
    assert kept() == before


def test_sizes_as_spark_writes_them(rs):
    class Session:
        def __init__(self, said):
            self.conf = {"spark.sql.autoBroadcastJoinThreshold": said}

    sizes = {"10485760b": 10 << 20, "10MB": 10 << 20, "1g": 1 << 30, "64 k": 64 << 10, "7": 7}
    for said, size in {**sizes, "-1": 0, "-1b": 0, "1kib": 1 << 10}.items():
        assert rs._shuffle._most_keys(Session(said)) == size // 8


@pytest.mark.thorough
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="the system has no SIGKILL")
def test_a_worker_killed_within_a_task_changes_nothing(rs, a, truth, tmp_path):
    marker = tmp_path / "killed"
    here = os.getpid()

    def die_once(column):
        if os.getpid() != here and len(column) and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return column

    metric = pl.col("rank").map_batches(die_once, return_dtype=pl.Int64).sum().alias("sum")
    got = take(rs.evaluate(a, metric, "map", truth=truth, partitions=2))
    assert marker.exists()
    expected = rf.evaluate(A, pl.col("rank").sum().alias("sum"), "map", truth=TRUTH)
    assert_same(got, expected)


# ------------------------------------------------------------------ what is wrong is said once


def row(**values):
    return pl.DataFrame({"user": [1], "item": [99], "rank": [50], **values}).cast(
        {"user": pl.Int64, "item": pl.Int64, "rank": pl.Int64}
    )


hit = A.join(TRUTH.filter(pl.col("relevance") > 0), on=["user", "item"]).row(0, named=True)
BAD_RUNS = {
    "null user": row(user=[None]),
    "null item": row(item=[None]),
    "rank 0": row(rank=[0]),
    "twice": row(user=[hit["user"]], item=[hit["item"]]),
    "shared": row(user=[hit["user"]], rank=[hit["rank"]]),
}
BAD_TRUTHS = {
    "null relevance": {"relevance": [None]},
    "null user": {"user": [None], "relevance": [-1.0]},
    "NaN": {"relevance": [float("nan")]},
    "-inf": {"relevance": [float("-inf")]},
}


def told(call, *args, **options):
    with pytest.raises(rf.RankingDataError) as raised:
        call(*args, **options)
    return raised.value


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", BAD_RUNS)
def test_a_bad_row_of_the_run(rs, bring, truth, name):
    """Below the deepest cut-off, too: there a row stays at home only if it is good by itself."""
    from pyspark.errors import PythonException

    local = pl.concat([RUN_3, BAD_RUNS[name]])
    metrics = ["map"] if name in ("twice", "shared") else ["rr@1"]
    if name == "shared":  # a second hit at this rank
        judged = pl.concat([TRUTH_3, pl.DataFrame({**hit, "item": 99}).select(TRUTH_3.columns)])
        truth = bring(judged)
    else:
        judged = TRUTH_3
    expected = str(told(rf.evaluate, local, *metrics, truth=judged))
    error = told(rs.evaluate, bring(local), *metrics, truth=truth, partitions=1)
    assert str(error).partition("Offending")[0] == expected.partition("Offending")[0]
    assert isinstance(error.__cause__, PythonException)
    if name not in ("twice", "shared"):  # which of two rows it names is open
        assert str(error) == expected


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", BAD_TRUTHS)
def test_a_bad_row_of_the_truth(rs, bring, name):
    bad = pl.DataFrame({"user": [1], "item": [99], **BAD_TRUTHS[name]})
    local = TRUTH_3.cast({"relevance": pl.Float64})
    local = pl.concat([local, bad.cast(dict(local.schema))])
    error = told(rs.evaluate, bring(RUN_3), "rr@1", truth=bring(local))
    assert str(error) == str(told(rf.evaluate, RUN_3, "rr@1", truth=local))


def test_other_errors_pass(rs, a, truth):
    from pyspark.errors import PythonException

    def broken(_):
        raise OSError("a disk is gone")

    metric = pl.col("rank").map_batches(broken, return_dtype=pl.Int64).sum().alias("sum")
    with pytest.raises(PythonException, match="a disk is gone"):
        rs.evaluate(a, metric, truth=truth, partitions=1)


folds = {"by": "fold"}
WHOLE_TABLES = {
    "empty run": (RUN_3.clear(), TRUTH_3, {}),
    "empty truth": (RUN_3, TRUTH_3.clear(), {}),
    "no rank": (RUN_3.with_columns(rank=pl.lit(None, pl.Int64)), TRUTH_3, {}),
    "apart": (RUN_3, TRUTH_3.with_columns(pl.col("user") + 1000), {}),
    "days apart": (
        RUN_3.with_columns(day=2),
        TRUTH_3.with_columns(day=pl.lit(1, pl.Int64)),
        {"by": "day"},
    ),
    "grades of an unknown name": (
        RUN_3,
        TRUTH_3.select("user", "item", n=3, is_click=pl.int_range(pl.len()) % 2),
        {},
    ),
    "flags of an unknown name": (
        RUN_3,
        TRUTH_3.select("user", "item", bought=pl.int_range(pl.len()) % 2 == 0),
        {},
    ),
    "folds": (RUN_3.with_columns(fold=pl.col("user") % 3), TRUTH_3, folds),
    "folds of users who return": (
        pl.concat([RUN_3.with_columns(fold=1), RUN_3.with_columns(fold=2)]),
        TRUTH_3,
        folds,
    ),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", WHOLE_TABLES)
def test_rules_on_the_whole_are_kept_and_reported_once(rs, bring, name):
    local, judgments, options = WHOLE_TABLES[name]
    frame, truth = bring(local), bring(judgments)
    expected = str(told(rf.evaluate, local, "rr", truth=judgments, **options))
    errors = [told(rs.evaluate, frame, "rr", truth=truth, **options)]
    if name == "empty run":  # for all verbs in one place
        errors.append(told(rs.per_user, frame, "rr", truth=truth, **options))
        errors.append(told(rs.judge, frame, truth, **options))
    for error in errors:
        assert str(error).partition("Offending")[0] == expected.partition("Offending")[0]


def test_grades_that_the_call_reads_or_that_are_flat_in_a_partition_pass(rs, bring):
    is_first = pl.col("user") == pl.col("user").min()
    truth = TRUTH_3.select("user", "item", w=is_first.cast(pl.Int64))
    got = take(rs.evaluate(bring(RUN_3), "rr", truth=bring(truth), weights="w"))
    assert_same(got, rf.evaluate(RUN_3, "rr", truth=truth, weights="w"))
    with pytest.raises(rf.RankingDataError, match="truth, column 'w': 0 and 1 but no relevance"):
        rs.evaluate(bring(RUN_3), "rr", truth=truth, partitions=8)


# ------------------------------------------------------------------ weights and totals

WEIGHED = TRUTH.with_columns(w=pl.col("user") % 5 / 2 + 0.5)
DISTANT_AND_NEAR = [*DISTANT, "gmap", "ndcg@3"]


def test_weights_are_those_of_one_machine(rs, run, bring):
    options = {"by": "model", "weights": "w"}
    truth = bring(WEIGHED)
    expected = rf.evaluate(RUN, *DISTANT_AND_NEAR, truth=WEIGHED, total=True, **options)
    got = take(rs.evaluate(run, *DISTANT_AND_NEAR, truth=truth, total=True, **options))
    assert_same(got, expected)
    got = take(rs.compare(run, "ndcg@3", truth=truth, weights="w"))
    assert_same(got, rf.compare(RUN, "ndcg@3", truth=WEIGHED, weights="w"))
    local = A.join(WEIGHED.select("user", "w").unique(), on="user")
    got = take(rs.evaluate(bring(local), *DISTANT, truth=TRUTH, users="both", weights="w"))
    assert_same(got, rf.evaluate(local, *DISTANT, truth=TRUTH, users="both", weights="w"))


def test_a_partition_without_weight_is_no_mistake_and_a_group_is(rs, a, bring):
    first = pl.when(pl.col("user") == pl.col("user").min()).then(1.0).otherwise(0.0)
    some = TRUTH.with_columns(w=first)
    got = take(rs.evaluate(a, "map", truth=bring(some), weights="w", partitions=8))
    assert_same(got, rf.evaluate(A, "map", truth=some, weights="w"))
    none = TRUTH.with_columns(w=0.0)
    expected = str(told(rf.evaluate, A, "map", truth=none, weights="w"))
    assert str(told(rs.evaluate, a, "map", truth=bring(none), weights="w")) == expected
    with pytest.raises(TypeError, match="per_user gives one value per user"):
        rs.per_user(a, "map", truth=bring(some), weights="w")


@pytest.mark.filterwarnings("ignore:.*no item of:rankframe.errors.RankingWarning")
def test_users_who_meet_without_a_hit_are_no_mistake(rs, bring):
    """Nor are users whom only rows show that stay at home."""
    below = RUN_3.with_columns(pl.col("rank") + 20)
    misses = TRUTH_3.with_columns(pl.col("item") + 100)
    for local, judgments in ((below, TRUTH_3), (RUN_3, misses)):
        got = take(rs.evaluate(bring(local), "rr@3", truth=bring(judgments)))
        assert_same(got, rf.evaluate(local, "rr@3", truth=judgments))


def test_one_group_is_no_split_of_the_users(rs, bring, truth):
    local = RUN_3.with_columns(fold=1)
    got = take(rs.evaluate(bring(local), "rr", truth=truth, by="fold"))
    assert_same(got, rf.evaluate(local, "rr", truth=TRUTH_3, by="fold"))


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("metrics", "options"),
    [
        (["ndgc@10"], {}),
        ([], {}),
        (["gmap"], {"users": "everyone"}),
        (["map"], {"by": "fold"}),
        (["map"], {"user": "uid"}),
        (["map"], {"user": 3}),
        (["map"], {"colour": "red"}),
        (["map"], {"by": 3}),
        (["map", "map"], {}),
        (["map"], {"depth": 0}),
        ([pl.col("nowhere").sum()], {}),
        ([pl.col("genre").filter("relevant").first()], {}),
        (["map"], {"relevance": "genre"}),
        (["map"], {"score": "minutes"}),
    ],
)
def test_a_wrong_call_is_reported_as_locally(rs, a, truth, metrics, options):
    with pytest.raises((ValueError, TypeError)) as expected:
        rf.evaluate(A, *metrics, truth=TRUTH, **options)
    with pytest.raises(expected.type) as raised:
        rs.evaluate(a, *metrics, truth=truth, **options)
    said, local = (str(error.value).partition("; it takes")[0] for error in (raised, expected))
    assert said == local  # Spark has a keyword of its own


def test_ids_of_two_types_do_not_meet(rs, a, bring):
    """Spark would turn numbers into text, and find nothing or too much."""
    judgments = TRUTH.with_columns(pl.col("user").cast(pl.String))
    error = told(rs.evaluate, a, "map", truth=bring(judgments))
    assert str(error) == str(told(rf.evaluate, A, "map", truth=judgments))


def test_frames_and_partitions_that_do_not_fit(rs, a, truth):
    with pytest.raises(TypeError, match="takes a Spark DataFrame, not polars DataFrame"):
        rs.evaluate(A, "map", truth=TRUTH)
    with pytest.raises(TypeError, match="the truth must be a Spark DataFrame, a polars DataFrame"):
        rs.evaluate(a, "map", truth=[1])
    with pytest.raises(TypeError, match="pyspark DataFrame, which rankframe.spark takes"):
        rf.evaluate(a, "map", truth=TRUTH)
    stream = a.sparkSession.readStream.format("rate").load()
    with pytest.raises(TypeError, match="not streams: use it inside foreachBatch"):
        rs.judge(a, stream)
    with pytest.raises(ValueError, match="partitions must be an integer ≥ 1"):
        rs.evaluate(a, "map", truth=truth, partitions=0)
    twice = a.select("user", "item", "rank", "rank")
    assert "two columns have this name" in str(told(rs.evaluate, twice, "map", truth=truth))


def test_types_that_python_is_not_given(rs, a, truth):
    odd = a.selectExpr("*", "INTERVAL '1' YEAR AS age")
    error = told(rs.judge, odd, truth)
    message = "Spark cannot transfer type interval year to Python; cast or drop the column"
    assert str(error) == f"column 'age': {message}"
    assert_same(take(rs.evaluate(odd, "map", truth=truth)), rf.evaluate(A, "map", truth=TRUTH))


LACKS_RANKFRAME = """
import sys

class Finder:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name == "rankframe":
            raise ModuleNotFoundError("No module named 'rankframe'", name=name)

sys.meta_path.insert(0, Finder)
"""


@pytest.mark.sample(2)
@pytest.mark.skipif(sys.platform == "win32", reason="the other Python is a shell script")
@pytest.mark.parametrize("seen", [True, False])
def test_workers_without_rankframe(rs, spark, a, truth, tmp_path, monkeypatch, seen):
    """Before the job where the workers' Python can be asked, else out of the job's error."""
    (tmp_path / "sitecustomize.py").write_text(LACKS_RANKFRAME)
    python = tmp_path / "python3"
    own = shlex.quote(sys.executable)
    python.write_text(f'#!/bin/sh\nPYTHONPATH={tmp_path}:$PYTHONPATH exec {own} "$@"\n')
    python.chmod(0o755)
    monkeypatch.setattr(spark.sparkContext, "pythonExec", str(python))
    if not seen:
        monkeypatch.setattr(rs._workers, "_lacking", lambda _: None)
    with pytest.raises(ModuleNotFoundError, match="has no module 'rankframe': .*PYSPARK_PYTHON"):
        rs.evaluate(a, "map", truth=truth, partitions=1)


def test_which_module_a_python_lacks(rs, tmp_path):
    assert rs._workers._lacking(sys.executable) is None
    assert rs._workers._lacking(str(tmp_path / "nowhere")) is None
    other = tmp_path / "python3"
    other.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -I -S "$@"\n')
    other.chmod(0o755)
    assert rs._workers._lacking(str(other)) == "rankframe"


@pytest.mark.sample(2)
@pytest.mark.parametrize("name", ["item", "user"])
def test_times_that_spark_would_merge_are_refused(rs, bring, name):
    at = pl.datetime(2026, 1, 1, time_unit="ns", time_zone="UTC")
    fine = at + pl.duration(nanoseconds=pl.col(name), time_unit="ns")
    frame = bring(A.with_columns(fine.dt.cast_time_unit("us").alias(name)))
    error = str(told(rs.evaluate, frame, "map", truth=TRUTH.with_columns(fine.alias(name))))
    assert error.startswith(f"truth, column {name!r}: a time finer than a microsecond")
    assert "dt.epoch('ns')" in error
    whole = (at + pl.duration(seconds=pl.col(name), time_unit="ns")).alias(name)
    in_us = whole.dt.cast_time_unit("us")
    got = take(rs.evaluate(bring(A.with_columns(in_us)), "map", truth=TRUTH.with_columns(whole)))
    assert_same(got, rf.evaluate(A, "map", truth=TRUTH))


@pytest.mark.thorough
def test_text_that_spark_collates_compares_byte_by_byte(rs, spark):
    run = spark.createDataFrame(
        [("u", "x", 1), ("v", "X", 1)], "user string, item string, rank int"
    )
    truth = run.selectExpr("user", "lower(item) AS item")
    collated = run.selectExpr(
        "user COLLATE UTF8_LCASE AS user", "item COLLATE UNICODE_CI AS item", "rank"
    )
    assert take(rs.evaluate(collated, "map", truth=truth))["map"].item() == 0.5
    assert rs.judge(collated, truth).count() == 3


def test_a_column_without_a_name(rs, run, a):
    judgments = TRUTH_3.rename({"relevance": ""})
    assert_same(
        take(rs.evaluate(a, "map", truth=judgments, relevance="")),
        rf.evaluate(A, "map", truth=judgments, relevance=""),
    )
    assert "" in rs.judge(a.selectExpr("*", "1 AS ``"), TRUTH_3).columns


def test_a_metric_that_is_not_finite(rs, a, truth):
    metric = rf.metrics.ndcg_at(3, gain={1: 1, 2: 3})
    error = told(rs.evaluate, a, metric, truth=truth, partitions=1)
    expected = told(rf.evaluate, A, metric, truth=TRUTH)
    assert str(error).partition(":")[0] == str(expected).partition(":")[0]
    assert "it is not a finite number" in str(error)


# ------------------------------------------------------------------ statistics


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("verb", "options"),
    [
        ("compare", {"test": "zz"}),
        ("compare", {"correction": "zz"}),
        ("compare", {"seed": "q"}),
        ("compare", {"model": None, "by": ()}),
        ("summarize", {"confidence": 5}),
        ("summarize", {"method": "zz"}),
        ("summarize", {"resamples": -1}),
    ],
)
def test_a_wrong_call_is_reported_before_spark_works(rs, spark, run, truth, verb, options):
    name = f"{verb} {options}"
    spark.sparkContext.setJobGroup(name, "a call that must not run")
    by_model = {"by": "model"} | options
    with pytest.raises(ValueError, match="must be|needs") as expected:
        getattr(rf, verb)(RUN, "map", truth=TRUTH, **by_model)
    with pytest.raises(ValueError, match="must be|needs") as raised:
        getattr(rs, verb)(run, "map", truth=truth, **by_model)
    assert str(raised.value) == str(expected.value)
    jobs = functools.partial(spark.sparkContext.statusTracker().getJobIdsForGroup, name)
    before = len(jobs())
    spark.range(1).count()
    assert (before, len(jobs()) > 0) == (0, True)
    spark.sparkContext.setLocalProperty("spark.jobGroup.id", None)


def test_tables_of_values_are_refused(rs, spark):
    values = spark.createDataFrame([("a", 1, 0), ("b", 1, 1)], "model string, user int, v int")
    for verb in (rs.summarize, rs.compare):
        with pytest.raises(ValueError, match=r"a table of values.*pass frame.toPandas\(\)"):
            verb(values, "v", by="model")


def test_evaluate_in_groups_with_totals(rs, run, bring):
    """The truth alone has a country, and the run a model."""
    judgments = TRUTH.with_columns(country=pl.col("user") % 3)
    metrics = [*FEW, "ndcg@5,7", "ap(rel=2)@3", "gmap@3"]
    options = {"by": ["model", "country"], "total": True}
    got = take(rs.evaluate(run, *metrics, truth=bring(judgments), **options))
    assert_same(got, rf.evaluate(RUN, *metrics, truth=judgments, **options), check_dtypes=True)


def test_summarize_of_a_group_without_users(rs, run, bring):
    judgments = TRUTH.with_columns(model=pl.lit("a"))
    metrics = ["ndcg@3", "map", "gmap", "num_hits", "precision(divide_by=returned)@3"]
    got = take(rs.summarize(run, *metrics, truth=bring(judgments), by="model"))
    expected = rf.summarize(RUN, *metrics, truth=judgments, by="model")
    assert_same(got, expected, check_dtypes=True)


def test_compare(rs, run, truth):
    options = {"test": "randomization", "baseline": "b", "resamples": 500, "seed": 3}
    metrics = ["ndcg@3", "map", "gmap@3,5", "ap(rel=2)@3"]
    got = take(rs.compare(run, *metrics, truth=truth, **options))
    expected = rf.compare(RUN, *metrics, truth=TRUTH, **options)
    assert_same(got, expected, check_dtypes=True)
    assert got.columns == expected.columns
    with pytest.raises(ValueError, match="'num_users' is a mean over users"):
        rs.compare(run, "num_users", truth=truth)


# ------------------------------------------------------------------ the doors


def test_doors_lists(rs, bring, spark):
    lists = pl.DataFrame(
        {
            "user_id": [1, 2, 3],
            "a.b": ["x", "y", "z"],
            "item_id": [["a", "b"], ["c"], ["a", "c", "b"]],
            "score": [[0.5, 0.25], [1.0], [3.0, 2.0, 1.0]],
        }
    )
    got = take(rs.from_lists(bring(lists)), "user_id", "rank")
    assert_same(got, rf.from_lists(lists), check_dtypes=True)
    frame = spark.createDataFrame([(1, []), (2, ["a"])], "user int, item array<string>")
    text = "column 'item': empty or null list.*Offending row: user=1"
    with pytest.raises(rf.RankingDataError, match=text), rs.plain_errors():
        rs.from_lists(frame.coalesce(1)).collect()
    with pytest.raises(rf.RankingDataError, match="Int64 is not a list of items"):
        rs.from_lists(bring(pl.DataFrame({"user": [1], "item": [1]})))
    with pytest.raises(TypeError, match="rankframe.spark takes a Spark DataFrame, not polars"):
        rs.from_lists(lists)


SCORES = A.select("user", "item", score=1.0 / pl.col("rank")).with_columns(pl.col("score").round(1))
SEEN_3 = A.filter(pl.col("rank") == 1).select("user", "item")


@pytest.mark.parametrize(
    "options",
    [
        {"ties": "expected", "descending": False, "preset": {"single_precision": True}},
        {"close_gaps": True, "exclude": SEEN_3},
    ],
    ids=str,
)
def test_doors_ranks(rs, bring, options):
    frame = RUN_3 if "close_gaps" in options else SCORES
    in_spark = bring(frame)
    got = take(rs.with_rank(in_spark, **options), "user", "item")
    expected = rf.with_rank(frame, **options).sort("user", "item")
    assert_same(got, expected, check_dtypes=True)


def test_doors_ranks_refuse(rs, bring):
    scores = bring(SCORES)
    with pytest.raises(ValueError, match="ties='order' reads the order of the rows, which Spark"):
        rs.with_rank(scores, ties="order")
    with pytest.raises(ValueError, match="ties='pessimistic' reads a truth, which Spark's"):
        rs.with_rank(scores, ties="pessimistic")
    with pytest.raises(
        rf.RankingDataError, match="no column 'rank' for rank.*leave out close_gaps"
    ):
        rs.with_rank(scores, close_gaps=True)
    with pytest.raises(rf.RankingDataError, match="run: it is empty"):
        rs.with_rank(bring(SCORES.clear()))
    twice = rs.with_rank(bring(pl.concat([SCORES, SCORES])))
    with pytest.raises(rf.RankingDataError, match="duplicate"), rs.plain_errors():
        twice.collect()


def test_doors_exclude(rs, a, bring, truth):
    options = {"truth": TRUTH, "exclude": SEEN_3}
    expected = rf.per_user(A, *FEW, **options)
    got = take(rs.per_user(a, *FEW, truth=truth, exclude=bring(SEEN_3)), "user")
    assert_same(got, expected)
    gaps = RUN_3.with_columns(pl.col("rank") * 3)
    got = take(rs.judge(bring(gaps), bring(TRUTH_3), exclude=SEEN_3), "user", "item")
    assert_same(got, rf.judge(gaps, TRUTH_3, exclude=SEEN_3).sort("user", "item"))


@pytest.mark.parametrize("duplicates", ["first", "occupy"])
def test_doors_have_each_item_once(rs, bring, duplicates):
    again, options = A.with_columns(pl.col("item") % 7), {"duplicates": duplicates}
    scores = again.select("user", "item", score=1 / pl.col("rank"))
    for run in (again, scores):
        frame = bring(run)
        got = take(rs.per_user(frame, "ap", "rr", "precision@2", truth=TRUTH, **options), "user")
        assert_same(got, rf.per_user(run, "ap", "rr", "precision@2", truth=TRUTH, **options))
    got = take(rs.judge(frame, bring(TRUTH), **options), "user", "item")
    want = rf.judge(scores, TRUTH, **options).sort("user", "item")
    assert_same(got.select(want.columns), want)
    got = take(rs.with_rank(frame, **options), "user", "item")
    assert_same(got, rf.with_rank(scores, **options).sort("user", "item"))


def test_doors_dict_of_runs(rs, bring):
    other = A.with_columns(pl.col("rank").reverse().over("user")).select("rank", "item", "user")
    runs, truth = {"a": RUN_3, "b": other}, bring(TRUTH_3)
    in_spark = {name: bring(run) for name, run in runs.items()}
    expected = rf.evaluate(runs, *FEW, truth=TRUTH_3)
    assert_same(take(rs.evaluate(in_spark, *FEW, truth=truth)), expected)
    for bad, error, text in [
        ({}, ValueError, "the dict of runs is empty"),
        ({1: in_spark["a"]}, TypeError, "the names of runs must be text"),
        ({"a": in_spark["a"], "b": RUN_3}, TypeError, "takes a Spark DataFrame, not polars"),
        (
            {"a": in_spark["a"], "b": bring(RUN_3.drop("rank"))},
            rf.RankingDataError,
            "run 'b': no column 'rank', which run 'a' has",
        ),
        (
            {"a": in_spark["a"], "b": bring(RUN_3.with_columns(pl.col("item").cast(pl.Float64)))},
            rf.RankingDataError,
            "column 'item': it is .* in run 'a' and Float64 in run 'b'",
        ),
    ]:
        with pytest.raises(error, match=text):
            rs.evaluate(bad, "map", truth=truth)


def test_doors_names(rs, bring):
    names = {"user": "user_id", "item": "docno"}
    run = RUN_3.rename({**names, "rank": "position"}).with_columns(label=pl.lit("x"))
    judgments = TRUTH_3.rename({**names, "relevance": "grade"})
    got = take(rs.evaluate(bring(run), *FEW, truth=bring(judgments)))
    assert_same(got, rf.evaluate(RUN_3, *FEW, truth=TRUTH_3))
    stars = judgments.rename({"grade": "stars"})
    for table in (stars, bring(stars)):
        with pytest.raises(rf.RankingDataError, match="truth, column 'stars': ratings but no"):
            rs.evaluate(bring(run), "map", truth=table)


@pytest.mark.thorough
def test_the_examples(rs, spark):
    found = doctest.DocTestFinder().find(rs, extraglobs={"spark": spark, "rankframe": rf})
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    for test in found:
        runner.run(test)
    assert runner.tries > 10
    assert runner.failures == 0


PAGE = (Path(__file__).parents[2] / "notebooks" / "past_one_machine.md").read_text()
CODE, SHOWN = re.search(r"```py\n(.*?)```\n\n```text\n(.*?)```", PAGE, re.DOTALL).groups()


def printed_by(code):
    printed = io.StringIO()
    with redirect_stdout(printed):
        exec(code, {})
    return printed.getvalue().strip()


def test_the_readme(spark):
    assert printed_by(CODE) == SHOWN.strip()


CONNECTED = """
import polars as pl
from pyspark.sql import SparkSession

import rankframe as rf
from test_spark import BAD_RUNS, CODE, FEW, RUN_3, SHOWN, TRUTH_3, printed_by, take, told
from two_models import RUN, TRUTH, assert_same

options = {"spark.driver.memory": "1g", "spark.ui.enabled": "false"}
options["spark.sql.shuffle.partitions"] = "4"
spark = SparkSession.builder.remote("local[2]").config(map=options).getOrCreate()
assert "connect" in type(spark).__module__
assert printed_by(CODE) == SHOWN.strip()

import rankframe.spark as rs

run = spark.createDataFrame(RUN.to_arrow(compat_level=pl.CompatLevel.oldest()))
by = {"by": "model"}
values = take(rs.per_user(run, *FEW, truth=TRUTH, **by), "model", "user")
assert_same(values, rf.per_user(RUN, *FEW, truth=TRUTH, **by))
means = take(rs.evaluate(run, *FEW, truth=TRUTH, count_users=True, **by))
assert_same(means, rf.evaluate(RUN, *FEW, truth=TRUTH, count_users=True, **by))

local = pl.concat([RUN_3, BAD_RUNS["rank 0"]])
bad = spark.createDataFrame(local.to_arrow(compat_level=pl.CompatLevel.oldest()))
expected = str(told(rf.evaluate, local, "map", truth=TRUTH_3))
assert str(told(rs.evaluate, bad, "map", truth=TRUTH_3)) == expected
assert str(told(rs.evaluate, run, "map", truth=TRUTH.clear(), **by)) == "truth: it is empty"
spark.stop()
print("all is well")
"""


@pytest.mark.thorough
def test_spark_connect():
    """In a process of its own: one that has run Spark's classic session cannot connect."""
    need_spark()
    paths = [str(Path(__file__).parent), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(
        [sys.executable, "-c", CONNECTED],
        env={**environment, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.stdout.strip().endswith("all is well"), done.stderr[-3000:]


def _in_spark(spark, run, truth, labels, *, per_user, **options):
    """Run the text of ``sql``, and compare with one machine."""
    for name, frame in {"run": run, "truth": truth}.items():
        spark.createDataFrame(frame.to_arrow()).createOrReplaceTempView(name)
    text = rf.sql(*labels, by="model", dialect="spark", per_user=per_user, **options)
    got = pl.from_arrow(spark.sql(text).toArrow())
    verb = rf.per_user if per_user else rf.evaluate
    want = verb(run, *labels, truth=truth, by="model", **options)
    keys = ["model", *(["user"] if per_user else [])]
    assert engines.differences(got, want, keys) == {}


def test_text_of_sql_has_the_values_of_evaluate(spark):
    labels, options = ["precision@3", "mrr", "ndcg@3", "err"], {"users": "both", "depth": 3}
    _in_spark(spark, *engines.tables(4), labels, per_user=False, **options)


@pytest.mark.thorough
def test_the_text_of_sql_has_the_values_of_every_label(spark):
    run, truth = engines.tables(4)
    labels = []
    for label in every_metric.EVERY_METRIC:
        with contextlib.suppress(ValueError):
            rf.sql(label)
            labels.append(label)
    for part in range(0, len(labels), 8):  # plans of more are larger than the memory here
        _in_spark(spark, run, truth, labels[part : part + 8], per_user=True)


# ------------------------------------------------------------------ several columns as one user

USER = ["wiki", "day"]


def in_two_columns(frame):
    """Name a user by text, of which some needs an escape, and a day."""
    words = ['d"e', "f\\\\r", "\x1fé"]
    wiki = (pl.col("user") % 3).replace_strict(dict(enumerate(words)), return_dtype=pl.String)
    day = pl.date(2026, 11, 1) + pl.duration(days=pl.col("user") // 3)
    return frame.select(pl.exclude("user"), wiki.alias("wiki"), day.alias("day"))


def test_several_columns_are_one_user(rs, bring):
    run, truth = map(in_two_columns, (RUN, TRUTH))
    seen = in_two_columns(RUN).filter(rank=1).select(*USER, "item").unique()
    named = truth.rename({"wiki": "w", "item": "page"})
    call = {
        "truth": bring(named),
        "user": USER,
        "exclude": bring(seen),
        "truth_user": ["w", "day"],
        "truth_item": "page",
        "partitions": 2,
    }
    here = {"truth": truth, "user": USER, "exclude": seen}
    got = take(rs.per_user(bring(run), *FEW, **call), "model", *USER)
    assert_same(got, rf.per_user(run, *FEW, **here).sort("model", *USER), check_dtypes=True)
    call |= {"truth": named, "exclude": seen}  # of this machine
    assert_same(take(rs.evaluate(bring(run), *FEW, **call)), rf.evaluate(run, *FEW, **here))
    one, keys = run.filter(model="a").drop("model"), [*USER, "item"]
    scored = one.select(*keys, (-pl.col("rank")).cast(pl.Float64).alias("score"))
    got = take(rs.with_rank({"a": bring(scored)}, user=USER), *keys)
    assert_same(got, rf.with_rank({"a": scored}, user=USER).sort(keys))
    lists = one.group_by(USER).agg("item")
    got = take(rs.from_lists(bring(lists), user=USER), *keys)
    assert_same(got.select(*keys, "rank"), rf.from_lists(lists, user=USER).sort(keys))
    with pytest.raises(rf.RankingDataError, match="truth: no column 'wiki' for user; it has"):
        rs.evaluate(bring(run), "rr", truth=bring(truth.drop("wiki")), user=USER)
