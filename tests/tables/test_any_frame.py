"""Frames of other packages: read once, through Arrow, at the start of the call."""

import inspect
import re
from pathlib import Path

import duckdb
import narwhals
import numpy as np
import pandas as pd
import polars as pl
import pyarrow
import pytest
import scipy.sparse
from every_metric import OF_TIER
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
import rankframe.trec
from rankframe._rooms import ROOMS, VERBS
from rankframe._tables import adapters

RUN = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "c"], "rank": [1, 2, 1]})
TRUTH = pl.DataFrame({"user": [1, 2, 2], "item": ["b", "c", "d"], "relevance": [2, 1, 1]})
RUNS = pl.concat([RUN.with_columns(model=pl.lit(name)) for name in "xy"])


class Stream:
    """It can be read once, and has nothing but the protocol."""

    def __init__(self, frame):
        self._frames = [frame]

    def __arrow_c_stream__(self, requested_schema=None):
        return self._frames.pop().__arrow_c_stream__()


def in_pyarrow(frame):
    return frame.to_arrow()


def in_batches(frame):
    return frame.to_arrow().to_reader()


def in_duckdb(frame):
    return duckdb.connect().from_arrow(frame.to_arrow())


def in_narwhals(frame):
    return narwhals.from_native(frame)


KINDS = [Stream, in_pyarrow, in_batches, in_duckdb, in_narwhals]


@pytest.mark.parametrize("kind", KINDS)
def test_frames_of_any_kind_are_read_and_the_result_is_of_polars(kind):
    expected = rf.evaluate(RUN, "ndcg@2", "rr", truth=TRUTH)
    result = rf.evaluate(kind(RUN), "ndcg@2", "rr", truth=kind(TRUTH))
    assert type(result) is pl.DataFrame
    assert_equal(result, expected)
    assert_equal(
        rf.evaluate(RUN.lazy(), "rr", truth=kind(TRUTH)).collect(), expected.drop("ndcg@2")
    )
    by_name = rf.evaluate({"x": kind(RUN), "y": kind(RUN)}, "rr", truth=kind(TRUTH))
    assert_equal(by_name, rf.evaluate({"x": RUN, "y": RUN}, "rr", truth=TRUTH))
    history = {"history": kind(RUN), "exclude": kind(RUN.head(1))}
    assert rf.evaluate(kind(RUN), "novelty@1", **history).height == 1


def verbs():
    """Name every public function that takes a frame."""
    yield from ((name, getattr(rf, name)) for name in [*VERBS, "as_dict"])
    rooms = ((room, getattr(rf, room), names) for room, names in ROOMS.items())
    yield from ((f"{room}.{n}", getattr(module, n)) for room, module, names in rooms for n in names)
    yield from [("runs.stack", rf.runs.stack), ("metrics.rows", rf.metrics.rows)]
    names = "facts", "sums", "values", "combine"
    yield from ((f"parts.{name}", getattr(rf.parts, name)) for name in names)
    yield from [("Meter", rf.Meter.__init__), ("Meter.update", rf.Meter.update)]
    yield from [("from_scores", rf.from_scores), ("trec.write_run", rf.trec.write_run)]


@pytest.mark.parametrize(("name", "verb"), [*verbs()])
def test_verbs_read_streams_at_their_start(name, verb):
    takers = adapters.takes_any_frame, adapters.takes_arrow
    assert verb.__code__ in [take(verbs).__code__ for take in takers]
    assert inspect.signature(verb) == inspect.signature(verb.__wrapped__)


CALLS = {
    "judge": lambda frame: rf.judge(frame(RUN), frame(TRUTH)),
    "check": lambda frame: rf.check(frame(RUN), truth=frame(TRUTH)),
    "compare": lambda frame: rf.compare(frame(RUNS), "rr", truth=frame(TRUTH), baseline="x"),
    "lists": lambda frame: rf.runs.side_by_side(frame(RUNS), 1, truth=frame(TRUTH), by="model"),
    "health": lambda frame: rf.health({"x": frame(RUN)}, truth=frame(TRUTH), history=frame(RUN)),
    "listed": lambda frame: rf.metrics.rows(frame(RUN), "popularity", history=frame(RUN)),
    "overlap": lambda frame: rf.runs.overlap(frame(RUN), frame(RUN), k=1),
    "plot": lambda frame: rf.plot.compare(frame(RUNS), "rr", truth=frame(TRUTH)).data,
    "sums": lambda frame: rf.parts.combine(rf.parts.sums(frame(RUN), "rr", truth=frame(TRUTH))),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_verbs_give_what_they_give_for_polars(call):
    expected = call(lambda frame: frame)
    assert_equal(call(Stream), expected)


USERS = pl.DataFrame({"user": range(24), "item": 7}).with_columns(
    w=pl.col("user") % 3 + 0.5, who=pl.col("user") // 4, country=pl.col("user") % 2, relevance=1
)
LISTS = pl.concat(
    USERS.select("user", "item", rank=pl.col("user") % n + 1, model=pl.lit(name))
    for n, name in ((3, "old"), (4, "new"), (5, "mid"))
)
VALUES = rf.per_user(LISTS, "rr", truth=USERS).join(USERS.drop("item", "relevance"), on="user")
TEXTS = USERS.select("user", text=pl.lit("words"))
MEANS = rf.evaluate(LISTS, "rr", "hit@2", truth=USERS, by="model")
JUDGED = pl.concat(
    USERS.select("user", "item", relevance=pl.col("user") % n, judge=pl.lit(name))
    for n, name in ((2, "us"), (3, "llm"))
)
PAIRED = {"truth": USERS, "baseline": "old"}
SEEN = LISTS.filter(rank=1).select("user", "item").unique()
SEEDS = pl.concat(LISTS.with_columns(pl.col("rank") + n, seed=n) for n in range(3))
#: the verb, its table and its other arguments, of which frames become other frames
EVERY_VERB = {
    "evaluate": (
        rf.evaluate,
        LISTS,
        ["map", "gmap"],
        {"truth": USERS, "weights": "w", "by": "model"},
    ),
    "per_user": (rf.per_user, LISTS, ["ap"], {"truth": USERS, "by": "model"}),
    "average": (rf.evaluate, LISTS, ["rr"], {"truth": USERS, "by": "model", "average": "country"}),
    "chance": (rf.evaluate, LISTS, ["rr"], {"truth": USERS, "by": "model", "chance": True}),
    "exclude": (rf.evaluate, LISTS, ["rr"], {"truth": USERS, "by": "model", "exclude": SEEN}),
    "judge": (rf.judge, LISTS, [USERS], {"by": "model"}),
    "judge, exclude": (rf.judge, LISTS, [USERS], {"by": "model", "exclude": SEEN}),
    "baselines": (rf.runs.baselines, USERS, [], {"users": SEEN, "k": 2, "exclude": SEEN}),
    "to_judge": (rf.runs.to_judge, LISTS, [2], {"truth": USERS.head(4), "budget": 9}),
    "side_by_side": (rf.runs.side_by_side, LISTS.filter(pl.col("model") != "mid"), [1], PAIRED),
    "rbo": (rf.runs.rbo, LISTS, [LISTS.filter(model="old").drop("model")], {"by": "model"}),
    "summarize": (rf.summarize, LISTS, ["rr", "hit@1"], {"truth": USERS, "by": "model"}),
    "compare": (rf.compare, LISTS, ["rr", "hit@1"], PAIRED),
    "compare, clusters": (rf.compare, LISTS, ["rr"], PAIRED | {"cluster": "who"}),
    "compare, human": (rf.compare, LISTS, ["rr"], PAIRED | {"human": USERS.gather_every(2)}),
    "compare, seeds": (rf.compare, SEEDS, ["rr"], PAIRED | {"over": "seed"}),
    "compare, values": (rf.compare, VALUES, ["rr"], {"baseline": "old"}),
    "gate": (rf.gate, LISTS, ["rr"], PAIRED | {"undecided": "pass"}),
    "power": (rf.stats.power, LISTS, ["rr"], PAIRED | {"difference": "1%"}),
    "differences": (rf.stats.differences, LISTS, ["rr"], PAIRED | {"queries": TEXTS}),
    "who_gained": (rf.stats.who_gained, LISTS, [2], PAIRED),
    "at_k": (rf.stats.at_k, LISTS, ["ndcg", "gmap"], {"k": [1, 3], "truth": USERS, "by": "model"}),
    "segments": (rf.stats.compare_segments, VALUES, ["rr"], {"by": ["model", "country"]}),
    "conventions": (rf.stats.conventions, LISTS, ["hit@2"], {"truth": USERS}),
    "judges": (rf.stats.judges, JUDGED, [LISTS, "rr"], {"baseline": "us"}),
    "agreement": (rf.stats.metric_agreement, MEANS, [], {}),
}


@pytest.mark.parametrize(
    ("verb", "table", "others", "options"), EVERY_VERB.values(), ids=EVERY_VERB
)
def test_lazy_and_pandas_frames_give_the_same(verb, table, others, options):

    def called(kind):
        def of(value):
            return kind(value) if isinstance(value, pl.DataFrame) else value

        return verb(kind(table), *map(of, others), **{name: of(x) for name, x in options.items()})

    before, expected = table.clone(), called(lambda frame: frame)
    lazy = called(pl.DataFrame.lazy)
    assert isinstance(lazy, pl.LazyFrame)
    assert lazy.collect_schema() == expected.schema
    keys = expected.columns[:3]
    assert_equal(lazy.collect().sort(keys), expected.sort(keys))
    got = called(pl.DataFrame.to_pandas)
    assert isinstance(got, pd.DataFrame)
    assert_frame_equal(pl.from_pandas(got), expected, check_dtypes=False)
    assert table.equals(before)


def test_meter_reads_streams():
    meter = rf.Meter("rr", "novelty@1", history=Stream(RUN))
    meter.update(Stream(RUN), Stream(TRUTH))
    assert_equal(meter.compute(), rf.evaluate(RUN, "rr", "novelty@1", truth=TRUTH, history=RUN))


def test_pandas_stays_pandas_beside_any_frame():
    result = rf.evaluate(RUN.to_pandas(), "rr", truth=Stream(TRUTH))
    assert isinstance(result, pd.DataFrame)


class SparkFrame:
    """As pyspark's: it has the method, which would collect all rows."""

    __module__ = "pyspark.sql.dataframe"

    def __arrow_c_stream__(self, requested_schema=None):
        msg = "collected"
        raise AssertionError(msg)

    def collect(self):
        msg = "collected"
        raise AssertionError(msg)


class OwnSparkFrame(SparkFrame):
    __module__ = "ours"


@pytest.mark.parametrize("kind", [SparkFrame, OwnSparkFrame])
def test_spark_frame_is_never_collected(kind):
    if kind is SparkFrame:
        with pytest.raises(TypeError, match="SparkFrame, which rankframe.spark takes in evaluate"):
            rf.evaluate(kind(), "rr", truth=TRUTH)
    for call in (
        lambda: rf.evaluate(kind(), "rr", truth=TRUTH),
        lambda: rf.evaluate(RUN, "rr", truth=kind()),
        lambda: rf.evaluate({"a": kind()}, "rr", truth=TRUTH),
        lambda: rf.evaluate(RUN, "popularity", history=kind()),
    ):
        with pytest.raises(TypeError, match="must be a polars DataFrame"):
            call()


class Lazy:
    __module__ = "narwhals.dataframe"

    def collect(self):
        raise AssertionError


class Dask:
    __module__ = "dask.dataframe"

    def compute(self):
        raise AssertionError


MATRICES = "pass rf.from_scores(scores), and the truth as truth=rf.from_grades(grades)"


@pytest.mark.parametrize(
    ("frame", "cure"),
    [
        (Lazy(), "not narwhals Lazy: call .collect()"),
        (Dask(), "not dask Dask: call .compute()"),
        ("run.parquet", "not str: read the file, as in pl.read_parquet(path)"),
        ("a.qrels", "not str: read the file, as in rankframe.trec.read_qrels(path)"),
        (Path("run.parquet"), ": read the file, as in pl.read_parquet(path)"),
        ([{"user": 1, "item": "a", "rank": 1}], "not list: pl.DataFrame(…) makes one"),
        ([RUN, RUN], 'not list: name the runs, {"old": old, "new": new}'),
        ({"a"}, "not set: a set has no order; rf.from_grades makes a truth of {user: {items}}"),
        (RUN.to_dicts(), "not list: pl.DataFrame(…) makes one"),
        *(
            (matrix, f"{name}: {MATRICES}")
            for name, matrix in (
                ("not list", [[0.0, 1.0]]),
                ("not numpy ndarray", np.eye(2)),
                ("not scipy csr_matrix", scipy.sparse.csr_matrix(np.eye(2))),
                ("not scipy dok_matrix", scipy.sparse.dok_matrix(np.eye(2))),
            )
        ),
    ],
)
def test_objects_that_are_no_frame_are_named_with_the_call_that_makes_one(frame, cure):
    for call in (
        lambda: rf.evaluate(frame, "rr", truth=TRUTH),
        lambda: rf.evaluate(RUN, "rr", truth=frame),
    ):
        with pytest.raises(TypeError) as raised:
            call()
        assert str(raised.value).endswith(cure)


def test_lists_without_users_are_answered_with_what_from_lists_reads():
    cure = "not list: from_lists reads {user: [items]}, or a frame of a list per user"
    with pytest.raises(TypeError, match=re.escape(cure)):
        rf.from_lists([["a"], ["b"]])


def test_run_is_needed():
    with pytest.raises(TypeError, match="not NoneType$"):
        rf.evaluate(None, "rr", truth=TRUTH)


@pytest.mark.parametrize(
    "call", [rf.runs.stack, lambda frame: rf.evaluate(frame, "rr", truth=TRUTH)]
)
def test_dict_of_columns_is_no_dict_of_runs(call):
    with pytest.raises(TypeError) as raised:
        call(RUN.to_dict(as_series=False))
    assert str(raised.value) == (
        "a dict of columns, 'user', 'item', 'rank': pl.DataFrame(…) makes a frame of it; "
        "rf.from_lists reads {user: [items]}; a dict of runs is {name: run}"
    )
    for column in (lambda column: column, pl.Series.to_numpy, pl.Series.to_pandas):
        with pytest.raises(TypeError, match="a dict of columns"):
            call({name: column(RUN[name]) for name in RUN.columns})


def test_dictionaries_are_text_and_huge_integers_are_integers():
    expected = rf.evaluate(RUN, "ndcg@2", "rr", truth=TRUTH)
    table = pyarrow.table(RUN)
    items = table["item"].dictionary_encode()
    runs = [table.set_column(1, "item", items)]
    connection = duckdb.connect()
    connection.register("run", table)
    for columns in ("user::HUGEINT AS user, item", "user, item::ENUM('a', 'b', 'c') AS item"):
        runs.append(connection.sql(f"SELECT {columns}, rank FROM run"))
    for run in runs:
        assert_equal(rf.evaluate(run, "ndcg@2", "rr", truth=TRUTH), expected)
    wide = adapters._of_arrow(connection.sql("SELECT 1::HUGEINT << 100 AS user"))
    assert wide.schema["user"].is_decimal()


CODED = pl.DataFrame(
    {
        "user": ["b", "b", "b", "b", "a", "a", "c", "c", "d"],
        "item": ["z", "x", "y", "w", "x", "z", "y", "x", "v"],
        "score": [2.0, 1.0, 1.0, 1.0, 3.0, 3.0, 0.5, 0.5, 1.0],
        "team": ["low", "low", "low", "low", "high", "high", "mid", "mid", "high"],
    }
)
GRADED = pl.DataFrame(
    {
        "user": ["b", "b", "b", "a", "a", "c", "e"],
        "item": ["y", "q", "z", "z", "x", "x", "p"],
        "relevance": [2, 1, 0, 1, 3, 1, 1],
    }
)


def with_categories(frame, *names, ordered=False):
    """Give each table codes of its own: from the last name to the first, behind one of no row."""
    frame = frame.to_pandas()
    for name in names:
        kind = pd.CategoricalDtype(
            ["unused", *sorted(frame[name].dropna().unique())[::-1]], ordered
        )
        frame[name] = frame[name].astype(kind)
    return frame


@pytest.mark.parametrize("ordered", [False, True])
@pytest.mark.parametrize("options", [{}, {"by": "team", "users": "both"}])
def test_categories_of_pandas_give_what_their_names_give(options, ordered):
    run = with_categories(CODED, "user", "item", "team", ordered=ordered)
    labels = [*OF_TIER]
    expected = rf.per_user(CODED, *labels, truth=GRADED, **options)
    for truth in (with_categories(GRADED, "user", "item", ordered=ordered), GRADED.to_pandas()):
        values = rf.per_user(run, *labels, truth=truth, **options)
        names = {"user", "team"} & {*values}
        assert {str(values[name].dtype) for name in names} == {"category"}
        assert_frame_equal(adapters.to_polars(values, "values"), expected)
        means = rf.evaluate(run, *labels, truth=truth, **options)
        assert_frame_equal(
            adapters.to_polars(means, "means"), rf.evaluate(CODED, *labels, truth=GRADED, **options)
        )
    index = run.set_index(["user", "item"])
    values = rf.per_user(index, *labels, truth=GRADED.to_pandas(), **options)
    assert_frame_equal(adapters.to_polars(values, "values"), expected)


def test_categories_of_pandas_have_the_type_of_their_names():
    numbers = pd.DataFrame({"n": pd.Categorical([2, None, 1]), "none": pd.Categorical([None] * 3)})
    assert adapters.to_polars(numbers, "run").to_dict(as_series=False) == {
        "n": [2, None, 1],
        "none": [None, None, None],
    }
    assert adapters.to_polars(numbers, "run").dtypes == [pl.Int64, pl.Null]


def test_errors_name_categories_of_pandas():
    twice = pd.concat([with_categories(CODED, "user", "item", "team")] * 2)
    with pytest.raises(rf.RankingDataError, match="'b'") as error:
        rf.evaluate(twice, "ndcg", truth=with_categories(GRADED, "user", "item"))
    assert "unused" not in str(error.value)


def test_columns_of_one_name_are_an_error(refused):
    table = pyarrow.Table.from_arrays([pyarrow.array([1])] * 3, names=["user", "user", "item"])
    refused(rf.evaluate, table, "rr", truth=TRUTH)


@pytest.mark.parametrize("role", ["user", "item", "extra"])
def test_type_that_polars_cannot_read_is_an_error(role, refused):
    columns = {"user": "1", "item": "'a'", "extra": "2", role: "INTERVAL 1 DAY"}
    select = ", ".join(f"{value} AS {name}" for name, value in columns.items())
    run = duckdb.connect().sql(f"SELECT 1 AS rank, {select}")
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    refused(rf.evaluate, run, "rr", truth=truth)


def test_the_cure_is_of_the_table_that_it_names():
    """The table may be in a dict, and the other one of another package."""
    run = {"user": [1, 1], "item": [10, 11], "rank": [1, 2], "day": ["x", None]}
    judged = {"user": [1, 1], "item": [10, 11], "c": [0, 1]}
    in_pandas = pd.DataFrame(run)
    for frame in (in_pandas, in_pandas.astype({"day": "category"}), pl.DataFrame(run)):
        for own in ({}, {"model": "system"}):
            runs = {"a": frame, "b": frame}
            with pytest.raises(rf.RankingDataError) as got:
                rf.runs.fuse(runs, by="day", **own)
            cure = re.search(r"fill in the group: (.*)\. Off", str(got.value))[1]
            assert ("fillna" in cure) == isinstance(frame, pd.DataFrame)
            assert [*eval(cure)["day"]] == ["x", "unknown"] * len(runs)
    for truth, cure in ((pl.DataFrame(judged), "drop('c')"), (pd.DataFrame(judged), "columns='c'")):
        for frame in (pl.DataFrame, pd.DataFrame):
            plain = frame({"user": [1, 1], "item": [10, 11], "rank": [1, 2]})
            with pytest.raises(rf.RankingDataError, match=re.escape(cure)):
                rf.evaluate(plain, "rr", truth=truth)
    for make in (pl.DataFrame, pd.DataFrame):
        frame = make({"user": [1, 2], "item": [["a", "b"], []]})
        with pytest.raises(rf.RankingDataError) as got:
            rf.from_lists(frame)
        cure = re.search(r"drop it: lists(.*?)\. users=", str(got.value))[1]
        assert len(rf.from_lists(eval(f"frame{cure}"))) == 2
        items = make({"item": [10, 10, 11]})
        with pytest.raises(rf.RankingDataError) as got:
            rf.evaluate(plain, "coverage@2", items=items)
        assert len(eval(re.search(r"one row per item: (.*?)\. Off", str(got.value))[1])) == 2
