"""Numbers hold: no order of rows, chunks, engine, threads or types of columns shows in them."""

import json
import math
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest
from every_metric import LABELS, OF_EACH_COLUMN, OF_TIER, SPECIAL_MEANS

import rankframe as rf

ENGINES = ["streaming", "in-memory"]
ASKED = [*OF_TIER, *SPECIAL_MEANS]
SOME = [*OF_EACH_COLUMN, *SPECIAL_MEANS]


def tables(users=300, length=12):
    """Lists with unjudged, missed and negative items, scores and grades drawn by a plain rule."""
    rows = pl.select(user=pl.int_range(users)).join(pl.select(n=pl.int_range(length)), how="cross")
    draw = (pl.col("user") * 7919 + pl.col("n") * 104_729) % 10_007
    run = rows.select(
        "user",
        item=pl.col("n") * 3 % 17,
        score=(draw * 37 % 1_009).cast(pl.Float64) / 1_009 + pl.col("n") / 7,
        model=pl.when(pl.col("user") % 3 == 0).then(pl.lit("x")).otherwise(pl.lit("y")),
    )
    grade = pl.when(draw % 5 == 0).then(-1).otherwise(draw % 4)
    judged = rows.filter(draw % 11 != 0)
    return run, judged.select("user", item=pl.col("n") * 5 % 19, relevance=grade)


def means(run, truth, engine=None, asked=ASKED):
    run = run.drop("model")
    lazy = run.lazy().rank.evaluate(*asked, truth=truth.lazy(), preset="trec_eval")
    return lazy.collect(engine=engine) if engine else lazy.collect()


def assert_same(got, expected):
    assert got.columns == expected.columns
    for name in got.columns:
        assert got[name].item() == pytest.approx(expected[name].item(), rel=1e-12, abs=1e-12), name


@pytest.fixture(scope="module")
def expected():
    return means(*tables())


@pytest.mark.thorough
def test_means_are_those_of_users_added_without_rounding(expected):
    run, truth = tables()
    per_user = run.drop("model").rank.per_user(*LABELS, truth=truth, preset="trec_eval")
    assert len(per_user) == 300
    assert per_user.drop("user").null_count().sum_horizontal().item() == 0
    for name in LABELS:
        total = math.fsum(per_user[name])
        value = total if name.startswith("num_") else total / 300
        assert expected[name].item() == pytest.approx(value, rel=1e-12, abs=1e-12), name
    assert sum(expected[name].item() not in (0, 1) for name in LABELS) > 0.9 * len(LABELS)


@pytest.mark.sample(2)
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("seed", [1, 2])
def test_order_of_rows_does_not_show(expected, engine, seed):
    shuffled = (table.sample(fraction=1, shuffle=True, seed=seed) for table in tables())
    assert_same(means(*shuffled, engine), expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_chunks_do_not_show(expected, engine):
    def cut(table):
        parts = [table[:1], table[1:100], table[100:100], table[100:2_000], table[2_000:]]
        chunked = pl.concat(parts, rechunk=False)
        assert chunked.n_chunks() > 3
        return chunked

    got = means(*map(cut, tables()), engine, SOME)
    assert_same(got, expected.select(got.columns))


def test_groups_are_what_each_is_alone():
    run, truth = tables()
    truth = truth.join(run.select("user", "model").unique(), on="user")
    grouped = run.rank.evaluate(*SOME, truth=truth, by="model", preset="trec_eval")
    assert grouped["users"].to_list() == [100, 200]
    for model in ("x", "y"):
        mine = run.filter(model=model), truth.filter(model=model).drop("model")
        alone = means(*mine, asked=SOME)
        assert_same(grouped.filter(model=model).drop("model"), alone)


_CHILD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import polars as pl
from test_determinism import SOME, means, tables
print(json.dumps([pl.thread_pool_size(), means(*tables(), asked=SOME).row(0)]))
"""


@pytest.mark.parametrize("threads", [1, 7])
def test_number_of_threads_does_not_show(expected, threads):
    command = [sys.executable, "-W", "error", "-c", _CHILD, str(Path(__file__).parent)]
    environment = {**os.environ, "POLARS_MAX_THREADS": str(threads)}
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, timeout=120, env=environment
    )
    assert done.stderr == ""
    used, row = json.loads(done.stdout)
    assert used == threads
    some = expected.select("users", *SOME)
    assert_same(pl.DataFrame([row], schema=some.schema, orient="row"), some)


# ------------------------------------------------------------------ types


@pytest.mark.parametrize("engine", ENGINES)
def test_32_bits_in_are_64_bits_out(engine):
    run, truth = tables()
    narrow = {
        "run": run.cast({"score": pl.Float32, "user": pl.Int16, "item": pl.UInt8}),
        "truth": truth.cast({"relevance": pl.Float32, "user": pl.UInt32, "item": pl.Int8}),
    }
    wide = {
        "run": narrow["run"].cast({"score": pl.Float64, "user": pl.Int64, "item": pl.Int64}),
        "truth": narrow["truth"].cast(
            {"relevance": pl.Float64, "user": pl.Int64, "item": pl.Int64}
        ),
    }
    got, expected = (means(*given.values(), engine, SOME) for given in (narrow, wide))
    assert got.schema == expected.schema
    assert set(got.dtypes) == {pl.Int64, pl.Float64}
    assert_same(got, expected)


@pytest.mark.parametrize(
    "dtype", [pl.Float32, pl.Float64, pl.UInt8, pl.Int8, pl.Int16, pl.UInt64, pl.Decimal(9, 3)]
)
def test_types_of_grades_and_ranks_do_not_show(dtype):
    # 120 items of grade 100: sums of 8 and 16 bits would wrap
    items = range(1, 121)
    run = pl.DataFrame({"user": 1, "item": items, "rank": pl.Series(items).cast(dtype)})
    truth = pl.DataFrame(
        {"user": 1, "item": items, "relevance": pl.Series([100] * 120).cast(dtype)}
    )
    labels = ["cg", "dcg", "ndcg", "cg(gain=exponential)", "q", "g", "rbp(gain=graded)"]
    got = run.rank.evaluate(*labels, truth=truth).row(0, named=True)
    assert got["cg"] == 12_000
    assert got["dcg"] == pytest.approx(math.fsum(100 / math.log2(i + 1) for i in items), rel=1e-13)
    assert got["cg(gain=exponential)"] == pytest.approx(120 * (2**100 - 1), rel=1e-13)
    assert got["ndcg"] == got["q"] == got["g"] == pytest.approx(1)
    assert got["rbp(gain=graded)"] == pytest.approx(1 - 0.8**120)


def test_long_sum_does_not_creep():
    # 100 k items of one user; naive 32-bit sums of 0.1 are off in the 4th digit
    items = pl.int_range(1, 100_001, eager=True)
    run = pl.DataFrame({"user": 1, "item": items, "rank": items})
    truth = pl.select(user=1, item=items, relevance=pl.repeat(0.1, 100_000, dtype=pl.Float32))
    grade = truth["relevance"][0]
    got = run.rank.evaluate("cg", "dcg", truth=truth).row(0, named=True)
    assert got["cg"] == pytest.approx(math.fsum([grade] * 100_000), rel=1e-11)
    dcg = math.fsum(grade / math.log2(i + 1) for i in range(1, 100_001))
    assert got["dcg"] == pytest.approx(dcg, rel=1e-11)


# ------------------------------------------------------------------ many users

# A mean over all users is added in blocks (pairwise), and its error does not grow with their
# number: 2e-16 for 10^8 values of 0.1. A mean by groups is added one by one: its error grows as
# the square root of the number of users when the last bits are random, and faster only when they
# are all alike: 10^8 values of 0.1, the worst kind, are off by 5e-11, 10^7 by 9e-11.


@pytest.mark.parametrize("alike", [True, False])
def test_mean_over_very_many_users_keeps_10_digits(alike):
    many = 1_000_000
    values = pl.repeat(0.1, many) if alike else 1 / (pl.int_range(many) % 1_000 + 1)
    frame = pl.select(value=values, group=0)
    exact = math.fsum(frame["value"]) / many
    for engine in ENGINES:
        plan, mean = frame.lazy(), pl.col("value").mean()
        alone = plan.select(mean).collect(engine=engine).item()
        assert alone == pytest.approx(exact, rel=1e-14)
        grouped = plan.group_by("group").agg(mean).collect(engine=engine)["value"].item()
        assert grouped == pytest.approx(exact, rel=1e-10)


def test_million_users():
    run = pl.select(user=pl.int_range(1_000_000), item=0, rank=pl.int_range(1_000_000) % 30 + 1)
    truth = run.select("user", "item")
    users, rr, dcg = run.rank.evaluate("rr", "dcg", truth=truth).row(0)
    ranks = [i % 30 + 1 for i in range(1_000_000)]
    assert users == 1_000_000
    assert rr == pytest.approx(math.fsum(1 / rank for rank in ranks) / 1e6, rel=1e-12)
    assert dcg == pytest.approx(math.fsum(1 / math.log2(r + 1) for r in ranks) / 1e6, rel=1e-12)


# ------------------------------------------------------------------ gains beyond all numbers

BINARY = ("err_ia", "nerr_ia")
GRADED = [
    name
    for name in LABELS
    if "@" not in name and ("exponential" in name or "err" in name) and not name.startswith(BINARY)
]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("grade", [1_024, 10**6])
@pytest.mark.parametrize(
    "name", ["cg(gain=exponential)", "dcg(gain=exponential)", "ndcg(gain=exponential)@10"]
)
def test_gains_that_overflow_are_reported(name, grade, engine):
    run = pl.LazyFrame({"user": [1, 2], "item": [7, 7], "rank": [1, 1]})
    truth = pl.LazyFrame({"user": [1, 2], "item": [7, 7], "relevance": [1, grade]})
    message = rf"it is not a finite number for a user. The grades present are 1, {grade}: give"
    for plan in (run.rank.evaluate(name, truth=truth), run.rank.per_user(name, truth=truth)):
        with pytest.raises(rf.RankingDataError, match=message):
            plan.collect(engine=engine)


@pytest.mark.parametrize("name", GRADED)
@pytest.mark.parametrize("grade", [1_000, 10**6])
@pytest.mark.parametrize("rank", [1, 5, None])
def test_numbers_are_finite_whatever_the_grade(name, grade, rank):
    judged = pl.DataFrame(
        {"user": [1, 1, 2], "item": [7, 8, 7], "rank": [rank, 2, 1], "relevance": [grade, 1, 3]}
    )
    message = "is not a finite number for a user. The grades present"
    if (grade, rank) == (10**6, 1):
        with pytest.raises(rf.RankingDataError, match=message):
            judged.rank.per_user(name)
        return
    try:
        values = judged.rank.per_user(name)[name].to_list()
    except rf.RankingDataError as error:
        assert message in str(error)  # noqa: PT017
    else:
        most = 1e302 if name.startswith(("cg", "dcg")) else 1
        assert all(0 <= value <= most for value in values)


def test_geometric_mean_of_zeros_is_zero():
    """exp(ln ε) − ε rounds to less than 0 for many ε."""
    run = pl.DataFrame({"user": [1, 2], "item": [7, 7], "rank": [1, 1]})
    truth = pl.DataFrame({"user": [1, 2], "item": [8, 8]})
    labels = ["gmap", *(f"gmap(epsilon={n / 1000})" for n in range(1, 60))]
    with pytest.warns(rf.errors.RankingWarning, match="no item of the run is in the truth"):
        means = run.rank.evaluate(*labels, truth=truth).drop("users").row(0)
    assert min(means) >= 0
    assert max(means) == pytest.approx(0, abs=1e-15)
