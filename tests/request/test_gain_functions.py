"""Gains that fall as the grade rises, or are of grade 0; and the levels of 11-point averages."""

from math import log2

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import RUN, TRUTH, A, assert_same

import rankframe as rf

FALLING = {1: 7, 2: 3, 3: 1}
OF_ZERO = {0: 1, 1: 2, 2: 2, 3: 7}
BOTH = {0: 3, 1: 7, 2: 0, 3: 1}
OPTIONS = [
    {},
    {"k": 3},
    {"k": 5, "base": 2},
    {"ideal": "returned"},
    {"k": 3, "ideal": "returned", "base": 10},
]


def discounted(*gains):
    return sum(gain / log2(rank + 1) for rank, gain in enumerate(gains, start=1))


def test_worked_by_hand():
    run = pl.DataFrame({"user": 1, "item": list("abcde"), "rank": range(1, 6)})
    grades = {"a": 0, "b": 3, "c": -1, "e": 1, "f": 0, "g": 2, "h": -1}  # d is not judged
    truth = rf.from_grades({1: grades})
    falling, of_zero = {1: 3, 2: 9, 3: 4.5}, {0: 1, 1: 4, 2: 4, 3: 5}
    labels = [
        f"{name}(gain={gain}{more})"
        for name, more in (("dcg", ""), ("ndcg", ""), ("ndcg", ", ideal=returned"))
        for gain in ("1:3;2:9;3:4.5", "0:1;1:4;2:4;3:5")
    ]
    got = run.rank.per_user(*labels, truth=truth).row(0)[1:]
    found = discounted(0, falling[3], 0, 0, falling[1])
    of_judged = discounted(of_zero[0], of_zero[3], 0, 0, of_zero[1])
    assert got == pytest.approx(
        (
            found,
            of_judged,
            found / discounted(9, 4.5, 3),
            of_judged / discounted(5, 4, 4, 1, 1),
            found / discounted(4.5, 3),
            of_judged / discounted(5, 4, 1),
        )
    )
    assert rf.metrics.cg_at(gain=of_zero).meta.output_name() == "cg(gain=0:1;1:4;2:4;3:5)"


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("gain", [FALLING, OF_ZERO, BOTH], ids=str)
def test_it_is_the_linear_gain_of_a_truth_that_has_the_gains_for_grades(gain, options):
    grade = pl.col("relevance").cast(pl.Float64)
    gains = TRUTH.with_columns(grade.replace({float(g): float(gain[g]) for g in gain}))
    for make in (rf.metrics.cg_at, rf.metrics.dcg_at, rf.metrics.ndcg_at):
        some = {name: options[name] for name in options if name in make.__annotations__}
        name = f"{make.__name__}{some}"
        got = A.rank.per_user(make(**some, gain=gain).alias(name), truth=TRUTH, users="judged")
        mapped = A.rank.per_user(make(**some).alias(name), truth=gains, users="judged")
        assert got[name].drop_nulls().n_unique() > 4
        if make is rf.metrics.ndcg_at:
            assert_same(got, mapped)
        else:  # of an item whose gain is 0 there is a sum, but of a grade 0 there is none
            assert_same(got.with_columns(pl.col(name).fill_null(0)), mapped.fill_null(0))


@pytest.mark.parametrize("gain", ["linear", "exponential", {1: 1, 2: 2, 3: 2}, {0: 0, 1: 0, 2: 5}])
def test_a_gain_that_does_not_fall_reads_what_it_always_read(gain):
    of_list, of_ideal = {"relevance", "rank_discount", "rank"}, {"place_discount", "ideal_place"}
    of_ideal.add("ideal_relevance")
    assert {*rf.metrics.ndcg_at(10, gain=gain).meta.root_names()} == of_list | of_ideal
    returned = rf.metrics.ndcg_at(10, gain=gain, ideal="returned").meta.root_names()
    assert {*returned} == of_list | of_ideal | {"returned_ideal_rank"}
    assert {*rf.metrics.dcg_at(10, gain=gain).meta.root_names()} == of_list


def test_only_a_gain_of_grade_0_reads_judged_rows():
    falling = {"relevance", "rank", "rank_discount", "ideal_rank(1:7;2:3;3:1)"}
    assert {*rf.metrics.ndcg_at(gain=FALLING).meta.root_names()} == falling
    ideal = "ideal_rank(0:1;1:2;2:2;3:7)"
    of_zero = {"relevance", "rank", "rank_discount", "judged", ideal}
    assert {*rf.metrics.ndcg_at(gain=OF_ZERO).meta.root_names()} == of_zero
    perfect = rf.metrics.ndcg_at(gain=OF_ZERO, ideal="perfect").meta.root_names()
    assert {*perfect} == of_zero | {"top_grade"}


def test_who_has_a_value():
    grades = {"zero": {"a": 0}, "below": {"a": -1}, "nothing": {"a": 2}, "missed": {"b": 0}}
    truth = rf.from_grades(grades)
    run = pl.DataFrame({"user": ["zero", "below", "nothing"], "item": "a", "rank": 1})
    labels = [f"{name}(gain=0:3;2:0)" for name in ("cg", "dcg", "ndcg")]
    labels.append("ndcg(gain=0:3;2:0, ideal=returned)")
    got = run.rank.per_user(*labels, truth=truth, users="judged")
    assert got.rows() == [
        ("below", None, None, None, None),
        ("missed", 0.0, 0.0, 0.0, 0.0),
        ("nothing", 0.0, 0.0, None, None),
        ("zero", 3.0, 3.0, 1.0, 1.0),
    ]
    # as with every metric of judged rows, users="truth" are those with an item of grade > 0
    assert run.rank.per_user(*labels, truth=truth).rows() == [("nothing", 0.0, 0.0, None, None)]


def test_other_metrics_of_the_call_stay_on_their_rows():
    plain = ["ndcg", "cg", "precision@3", "dcg(gain=exponential)@5"]
    labels = [*plain, "ndcg(gain=0:1;1:2;2:2;3:7)", "cg(gain=1:7;2:3;3:1)@3"]
    got = RUN.rank.per_user(*labels, truth=TRUTH, by="model")
    assert_same(
        got.select("model", "user", *plain), RUN.rank.per_user(*plain, truth=TRUTH, by="model")
    )


def test_a_long_mapping_may_fall_and_be_of_grade_0():
    grades = list(range(-1, 200))
    judged = pl.DataFrame({"user": 1, "item": grades, "rank": range(1, 202), "relevance": grades})
    gain = {grade: 200 - grade for grade in range(200)}
    got = judged.rank.evaluate(rf.metrics.cg_at(gain=gain), rf.metrics.ndcg_at(gain=gain)).row(0)
    best = [*range(200, 0, -1)]
    assert got == pytest.approx((1, sum(best), discounted(0, *best) / discounted(*best)))


@pytest.mark.parametrize("gain", ["1:7;2:3", "0:1;1:2;2:3"])
def test_a_grade_that_a_mapping_does_not_know_is_reported(gain):
    for label in (f"ndcg(gain={gain})@2", f"dcg(gain={gain})", f"cg(gain={gain})@1"):
        with pytest.raises(
            rf.RankingDataError, match="it is not a finite number for a user. The grades"
        ):
            A.rank.evaluate(label, truth=TRUTH)


@pytest.mark.parametrize(
    "make",
    [
        rf.metrics.q_measure,
        rf.metrics.o_measure,
        rf.metrics.p_measure,
        rf.metrics.p_plus,
        rf.metrics.graded_average_precision,
    ],
)
def test_other_formulas_presuppose_that_gains_rise_from_0(make):
    with pytest.raises(ValueError, match="must not fall as the grade rises"):
        make(gain=FALLING)
    with pytest.raises(ValueError, match="gives a gain to a grade ≤ 0, which is not relevant"):
        make(gain=OF_ZERO)


def test_no_list_is_perfect_where_gains_fall():
    for make in (
        lambda: rf.metrics.ndcg_at(3, gain=FALLING, ideal="perfect"),
        lambda: rf.metrics.of_label("ndcg(gain=0:3;1:1, ideal=perfect)"),
    ):
        with pytest.raises(ValueError, match="but the gain falls as the grade rises: .*instead"):
            make()
    # the cure
    gains = TRUTH.with_columns(pl.col("relevance").replace(FALLING))
    linear = A.rank.per_user("ndcg(ideal=perfect)@3", truth=gains)
    perfect = 7 / discounted(7, 7, 7)
    found = A.rank.per_user("dcg(gain=1:7;2:3;3:1)@3", truth=TRUTH).to_series(1)
    assert (linear.to_series(1) - found * perfect / 7).abs().max() < 1e-12


def test_ideal_ranks_of_a_gain_are_columns_of_the_vocabulary():
    judged = pl.DataFrame(
        {"user": 1, "item": range(5), "rank": [1, 2, None, 3, 4], "relevance": [1, 2, 3, 0, -1]}
    )

    def ranks(name, *more):
        expr = pl.col(name).sort_by("item").implode().alias("x")
        return judged.rank.per_user(expr, *more)["x"].item().to_list()

    assert ranks("ideal_rank") == ranks("ideal_rank(linear)") == [3, 2, 1]
    assert ranks("ideal_rank(1:3;2:0;3:1)") == [1, None, 2]
    assert ranks("returned_ideal_rank(1:3;2:9;3:1)") == [2, 1, None]
    of_zero = (pl.col("ideal_rank(0:2;1:3;2:0;3:1)") + 0 * pl.col("judged")).sort_by("item")
    got = judged.rank.per_user(of_zero.implode().alias("x"))["x"].item().to_list()
    assert got == [1, None, 3, 2, None]
    for name in ("ideal_rank(0:2;1:3)", "returned_ideal_rank(0:2;1:3)"):
        with pytest.raises(
            ValueError, match="rows of grade 0 are there only if the metric reads 'judged'"
        ):
            ranks(name)
    for name in ("ideal_rank(-1:2;1:3)", "ideal_rank(1:x)", "gains(1:3;2:1)", "ideal_gains(0:1)"):
        with pytest.raises(ValueError, match="is not a parameter of"):
            ranks(name)


def test_the_numbers_of_trec_evals_own_test(shared):
    """Of the two topics whose judgments are here, all relevant ones of grade 1 as in that test."""
    run = pl.read_parquet(shared / "trec_sample" / "run.parquet").drop("rank")
    truth = pl.read_parquet(shared / "trec_sample" / "qrels.parquet")
    truth = truth.filter(pl.col("user") != "303").with_columns(pl.col("relevance").clip(0, 1))
    labels = ["ndcg.1=3,2=9,4=4.5", "11pt_avg..25,.5,.75"]
    got = run.rank.per_user(*labels, truth=truth, preset="trec_eval_9", users="both")
    assert [[round(x, 4) for x in row[1:]] for row in got.rows()] == [
        [0.1584, 0.0],
        [0.6617, 0.4306],
    ]


@pytest.mark.parametrize("name", ["trec_sample", "web12_catb"])
def test_other_levels_are_the_mean_of_what_trec_eval_gives_at_each(shared, name):
    run = pl.read_parquet(shared / name / "run.parquet").drop("rank")
    truth = pl.read_parquet(shared / name / "qrels.parquet")
    printed = pl.read_parquet(shared / name / "expected_trec_params.parquet")
    levels = [f"iprec_at_recall_{level}" for level in ("0.05", "0.25", "0.50", "0.75")]
    printed = printed.filter(pl.col("measure").is_in(levels), pl.col("user") != "all")
    expected = printed.group_by("user").agg(pl.col("value").mean()).sort("user")
    label = "11pt_avg..05,.25,.5,.75"
    got = run.rank.per_user(label, truth=truth, preset="trec_eval", users="both")
    assert_same(got.rename({label: "value"}), expected)


def test_levels_are_those_of_interpolated_precision():
    for points in ("nearest", "floor"):
        each = [rf.metrics.interpolated_precision(level, points=points) for level in (0.2, 0.55, 1)]
        both = rf.metrics.eleven_point_precision(points=points, levels=[1, 0.2, 0.55])
        got = A.rank.per_user(*each, both, truth=TRUTH)
        assert got.columns[-1].endswith("levels=0.2;0.55;1)")
        mean = got.select("user", pl.mean_horizontal(got.columns[1:-1]).alias(got.columns[-1]))
        assert_same(got.select("user", got.columns[-1]), mean)
    given = rf.metrics.eleven_point_precision(levels=[i / 10 for i in range(11)])
    assert given.meta.eq(rf.metrics.eleven_point_precision())
    assert given.meta.output_name() == "eleven_point_precision"
    assert_frame_equal(
        A.rank.per_user(
            "11pt_avg", truth=TRUTH, preset={"defaults": {"11pt_avg": {"levels": [0.5]}}}
        ),
        A.rank.per_user("11pt_avg..5", truth=TRUTH).rename({"11pt_avg..5": "11pt_avg"}),
    )
