"""Odd names, types and orders of calls: the right number, or one clear error."""

import datetime
import re
from functools import partial

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
from rankframe import trec as rf_trec

RUN = pl.DataFrame({"user": [1, 1, 2, 2], "item": [10, 11, 10, 12], "rank": [1, 2, 1, 2]})
TRUTH = pl.DataFrame({"user": [1, 2, 2, 3], "item": [11, 10, 13, 10], "relevance": [1, 2, 1, 1]})
BAD = RUN.with_columns(rank=pl.Series([1, 2, 0, 2]))
DOUBLE = pl.concat([RUN, RUN]).with_columns(points=pl.lit(0.5))


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
@pytest.mark.parametrize(
    "look",
    [
        lambda q: q.head(1),
        lambda q: q.first(),
        lambda q: q.slice(0, 1),
        lambda q: q.select(pl.first().first()),
        lambda q: q.group_by(1).agg(pl.all().first()),
        lambda q: q.tail(1),
        lambda q: q.filter(pl.first() == 1),
        lambda q: q.select(pl.len()),
    ],
)
@pytest.mark.parametrize(
    "make",
    [
        lambda: BAD.lazy().rank.evaluate("map", truth=TRUTH),
        lambda: DOUBLE.lazy().rank.evaluate("map", truth=TRUTH),
        lambda: RUN.lazy().rank.evaluate("map", truth=TRUTH.with_columns(pl.col("user") + 100)),
        lambda: BAD.lazy().rank.per_user("map", truth=TRUTH),
        lambda: BAD.lazy().rank.judge(TRUTH),
        lambda: rf.metrics.rows(BAD.lazy().rank.judge(TRUTH)),
        lambda: BAD.lazy().rank.check(truth=TRUTH),
        lambda: DOUBLE.lazy().rank.with_rank(score="points"),
    ],
)
def test_checks_are_passed_by_no_look_at_a_lazy_result(make, look, engine):
    with pytest.raises(rf.RankingDataError):
        look(make()).collect(engine=engine)


def test_judged_plan_has_roles_like_any_judged_table():
    run = RUN.rename({"user": "session"})
    truth = TRUTH.rename({"user": "session"}).with_columns(user=pl.Series(["a", "a", "b", "b"]))
    judged = run.lazy().rank.judge(truth, user="session")
    expected = run.rank.evaluate("map", truth=truth, user="session")
    assert_equal(judged.rank.evaluate("map", user="session").collect(), expected)
    by_user = run.rank.judge(truth, user="session")
    for frame in (by_user, judged):
        with pytest.raises(rf.RankingDataError, match="null user"):  # unjudged items have none
            frame.rank.evaluate("map").lazy().collect()
    judged = run.lazy().rank.judge(truth.drop("user"), user="session")
    with pytest.raises(rf.RankingDataError, match="no column 'user' for user"):
        judged.rank.evaluate("map")


@pytest.mark.parametrize("grades", [[0, 0, 1], [1, 0, 1]])
def test_dropping_sees_items_that_are_judged_in_duplicate(grades):
    run = pl.DataFrame({"user": [1, 1], "item": [10, 11], "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1, 1, 1], "item": [10, 10, 11], "relevance": grades})
    for frame in (run, run.lazy(), run.select("user", "item", score=-pl.col("rank"))):
        with pytest.raises(rf.RankingDataError, match="truth, column 'item': duplicate"):
            frame.rank.per_user("rr", truth=truth, unjudged="drop").lazy().collect()


@pytest.mark.parametrize("lazy", [False, True])
def test_relevant_rows_count_no_row_twice(lazy):
    truth = pl.DataFrame({"user": [1, 1], "item": [10, 12], "relevance": [0, 1]})
    for run, judgments in [
        (pl.DataFrame({"user": 1, "item": [9, 9, 12], "rank": [1, 2, 3]}), truth),
        (pl.DataFrame({"user": 1, "item": [9, 10, 12], "rank": [1, 2, 3]}), truth[[0, 0, 1]]),
    ]:
        judged = (run.lazy() if lazy else run).rank.judge(judgments)
        with pytest.raises(rf.RankingDataError, match="duplicate"):
            rf.metrics.rows(judged, "precision").lazy().collect()


def test_means_are_finite():
    with pytest.raises(ValueError, match="undefined must be None or ≥ 0 for a geometric mean"):
        RUN.rank.evaluate("gmap", truth=TRUTH, users="judged", undefined=-1)
    huge = TRUTH.with_columns(relevance=pl.lit(1e308))
    with pytest.raises(rf.RankingDataError, match="metric 'cg': its mean over users is not a fin"):
        RUN.rank.evaluate("cg", truth=huge)


def test_undefined_stands_for_booleans_too():
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [10, 99, 10], "relevance": [1, 0, 0]})
    top = (pl.col("rank").min() <= 1).alias("top")
    got = RUN.rank.evaluate(top, "hit@1", truth=truth, users="judged", undefined=0.0)
    assert got.row(0) == pytest.approx((3, 1 / 3, 1 / 3))


def test_perfect_lists_are_never_better_than_1():
    items = range(1, 31)
    run = pl.DataFrame({"user": u, "item": items, "rank": items} for u in range(300))
    run = run.explode("item", "rank", empty_as_null=False)
    grade = ((pl.col("user") * 7 + 1) % 9 + (31 - pl.col("item"))) // 7 + 1
    truth = run.select("user", "item", relevance=grade.cast(pl.Int64))
    ideal = truth.with_columns(pl.col("relevance").cast(pl.Float64) / 3)
    labels = ["ndcg", "ndcg(gain=exponential)@10", "f(beta=0.3)", "e(beta=0.3)"]
    got = run.rank.per_user(*labels, truth=ideal)
    assert all(got[label].max() <= 1 for label in labels)
    assert got["ndcg"].min() > 1 - 1e-12
    assert got.select(pl.col("e(beta=0.3)").min()).item() >= 0


def test_name_may_be_empty():
    named = TRUTH.with_columns(relevance=pl.Series([0, 2, 0, 0])).rename({"relevance": ""})
    assert RUN.rank.evaluate("map", truth=named, relevance="").row(0) == (1, 1.0)
    for role in ("rank", "score"):
        run = RUN.with_columns(score=-pl.col("rank")).rename({role: ""})
        run = run.drop("rank", strict=False) if role == "score" else run
        got = run.rank.evaluate("map", truth=TRUTH, **{role: ""})
        assert_equal(got, RUN.rank.evaluate("map", truth=TRUTH))


@pytest.mark.parametrize("name", ["*", "^item$"])
def test_names_that_are_patterns_are_reported(name):
    run, truth = RUN.rename({"item": name}), TRUTH.rename({"item": name})
    with pytest.raises(rf.RankingDataError, match="polars reads this name as a pattern"):
        run.rank.evaluate("map", truth=truth, item=name)


@pytest.mark.parametrize("name", ["rows", "suspect", "row", "count", "len", "literal", "keys"])
def test_names_that_we_use_inside_are_free(name):
    run, truth = RUN.rename({"user": name}), TRUTH.rename({"user": name})
    got = run.rank.per_user("map", "precision", truth=truth, user=name, unjudged="drop")
    expected = RUN.rank.per_user("map", "precision", truth=TRUTH, unjudged="drop")
    assert_frame_equal(got.rename({name: "user"}), expected)
    by = RUN.with_columns(pl.lit("x").alias(name)).rank.evaluate("precision", truth=TRUTH, by=name)
    assert by.columns == [name, "users", "precision"]


@pytest.mark.parametrize(
    ("options", "column"),
    [
        ({"score": "rank"}, "rank"),
        ({"rank": "user"}, "user"),
        ({"rank": "item"}, "item"),
        ({"rank": "score"}, "score"),
        ({"by": "rank"}, "rank"),
    ],
)
def test_with_rank_replaces_no_other_role(options, column):
    run = RUN.with_columns(score=pl.lit(0.5))
    with pytest.raises(rf.RankingDataError, match=f"run, column '{column}': with_rank makes"):
        run.rank.with_rank(**options)


@pytest.mark.parametrize("descending", [True, False])
def test_ranks_are_null_without_any_score(descending):
    run = RUN.drop("rank").with_columns(score=pl.lit(None))
    assert run.rank.with_rank(descending=descending)["rank"].to_list() == [None] * 4


def test_lists_may_be_arrays():
    arrays = pl.DataFrame(
        {"user": [1, 2], "item": [[1, 2], [3, 4]], "score": [[0.9, 0.8], [0.7, 0.6]]},
        schema_overrides={"item": pl.Array(pl.Int64, 2), "score": pl.Array(pl.Float64, 2)},
    )
    assert arrays.rank.from_lists().rows() == [
        (1, 1, 0.9, 1),
        (1, 2, 0.8, 2),
        (2, 3, 0.7, 1),
        (2, 4, 0.6, 2),
    ]


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (
            lambda: RUN.rank.from_lists(foo="x"),
            TypeError,
            "from_lists has no keyword 'foo'; it takes",
        ),
        (lambda: RUN.rank.from_lists(score="no"), ValueError, "no column 'no' for score"),
        (lambda: RUN.rank.with_rank(descending="no"), TypeError, "must be True or False"),
        (lambda: RUN.rank.evaluate("map", TRUTH), TypeError, "pass the truth as truth="),
        (lambda: rf.compare(RUN, RUN, "map"), TypeError, 'two runs as {"old": old, "new": new}'),
        (
            lambda: rf.metrics.of_label("ndcg(gain=linear,gain=linear)"),
            ValueError,
            "duplicate parameter 'gain'",
        ),
        (lambda: rf.metrics.of_label("cg(gain=1:1;1:5)"), ValueError, "gain cannot be read from"),
        (
            lambda: RUN.rank.evaluate(pl.col("rank").name.keep(), truth=TRUTH),
            ValueError,
            "needs a name",
        ),
    ],
)
def test_slip_is_reported(call, error, message):
    with pytest.raises(error) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("slip", "offered"),
    [
        ("averge_precision@10", "'average_precision@10'"),
        ("reciprocal_ranks", "'reciprocal_rank'"),
        ("precision10", "'precision@10'"),
        ("prec@10", "'precision@10'"),
        ("NDGC@5", "'ndcg@5'"),
        ("11pt_avgs", "'11pt_avg'"),
    ],
)
def test_offered_labels_can_be_read(slip, offered):
    with pytest.raises(ValueError, match="the nearest (is|are) ") as error:
        rf.metrics.of_label(slip)
    names = re.split("the nearest (?:is|are) ", str(error.value))[1].split(" or ")
    assert offered in names
    for name in names:
        rf.metrics.of_label(name.strip("'"))


def test_function_names_are_labels():
    assert rf.metrics.of_label("average_precision@5").meta.eq(
        rf.metrics.average_precision(5).alias("average_precision@5")
    )
    assert RUN.rank.evaluate("precision_at@2", "hit_at@1", truth=TRUTH).width == 3


def test_gain_mappings_may_be_long():
    grades = list(range(1, 2001))
    judged = pl.DataFrame({"user": 1, "item": grades, "rank": grades, "relevance": grades})
    got = judged.rank.evaluate(rf.metrics.cg_at(gain={grade: 2 * grade for grade in grades}))
    assert got.item(0, 1) == 2 * sum(grades)
    with pytest.raises(rf.RankingDataError, match="not a finite number"):
        judged.rank.evaluate(rf.metrics.cg_at(gain={grade: grade for grade in grades[1:]}))


def test_gain_mappings_know_float32_grades():
    truth = TRUTH.with_columns(relevance=pl.Series([0.1, 0.7, 0.1, 0.7], dtype=pl.Float32))
    gain = {0.1: 1, 0.7: 2}
    assert RUN.rank.evaluate(rf.metrics.cg_at(gain=gain), truth=truth).row(0) == (3, 1.0)


# ------------------------------------------------------------------ pandas


@pytest.fixture
def pandas():
    import pandas

    import rankframe.pandas  # noqa: F401

    return pandas


def test_labels_of_pandas_columns_may_be_anything(pandas):
    expected = RUN.rank.evaluate("map", truth=TRUTH)
    for label in (0, 1.5, datetime.date(2024, 1, 1), None, ("a", "b")):
        run = RUN.to_pandas()
        run[label] = 1
        got = run.ranking.evaluate("map", truth=TRUTH.to_pandas())
        assert_equal(pl.from_pandas(got), expected)
        ranked = run.assign(points=0.5).ranking.with_rank(score="points")
        assert [*ranked.columns] == [*run.columns, "points"]


def test_wide_and_unsigned_ids_meet_in_pandas(pandas):
    run = RUN.to_pandas()
    truth = TRUTH.to_pandas().astype({"user": "uint64"})
    got = run.ranking.per_user("map", truth=truth)
    assert pl.from_pandas(got)["map"].equals(RUN.rank.per_user("map", truth=TRUTH)["map"])
    big = truth.assign(user=truth["user"] + 2**63)
    judged = run.assign(user=(run["user"].astype("uint64") + 2**63)).ranking.judge(big)
    assert judged["user"].min() == 2**63 + 1


def test_with_rank_of_pandas_keeps_types(pandas):
    run = RUN.drop("rank").to_pandas()
    run = run.assign(flag=pandas.array([True, None, True, False], dtype="boolean"))
    run["tag"] = pandas.Categorical(list("abab"))
    run["points"] = run["item"] / 10
    got = run.ranking.with_rank(score="points")
    assert got.drop(columns="rank").dtypes.equals(run.dtypes)
    assert got["rank"].to_list() == [2, 1, 2, 1]


def test_wide_unsigned_ids_meet():
    wide = RUN.with_columns(pl.lit(2**100, pl.UInt128).alias("item") + pl.col("item"))
    truth = TRUTH.with_columns(pl.lit(2**100, pl.UInt128).alias("item") + pl.col("item"))
    assert_equal(wide.rank.evaluate("map", truth=truth), RUN.rank.evaluate("map", truth=TRUTH))


def test_preset_reaches_the_methods():
    run = pl.DataFrame({"user": [1] * 3, "item": list("abc"), "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1, 1], "item": ["b", "z"], "relevance": [2, 3]})
    for label, method in (("ndcg@5", run.rank.ndcg_at), ("precision@5", run.rank.precision_at)):
        for preset in ("rectools", "lenskit"):
            asked = run.rank.per_user(label, truth=truth, preset=preset)
            assert method(5, truth=truth, preset=preset).equals(asked)


def test_items_and_subtopics_do_not_mix_in_one_metric():
    run = pl.DataFrame({"user": [1] * 3, "item": list("abc"), "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1] * 3, "item": list("aab"), "subtopic": list("xyx")})
    mixed = (rf.metrics.alpha_ndcg_at(2) + rf.metrics.average_precision()).alias("sum")
    with pytest.raises(ValueError, match="reads both columns of items and"):
        run.rank.per_user(mixed, truth=truth)


@pytest.mark.parametrize("role", ["user", "item", "score", "by"])
def test_with_rank_needs_the_name_tied(role):
    run = pl.DataFrame({"user": [1], "item": ["a"], "score": [1.0], "model": ["m"]})
    renamed = run.rename({"model" if role == "by" else role: "tied"})
    with pytest.raises(rf.RankingDataError, match="with_rank makes this column"):
        rf.with_rank(renamed, ties="expected", **{role: "tied"})


@pytest.mark.parametrize("defaults", ["x", {1: {}}, {"map": None}, [], {"map": []}])
def test_defaults_are_mappings(defaults):
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1]})
    with pytest.raises(TypeError, match="defaults are like"):
        judged.rank.evaluate("map", preset={"defaults": defaults})


@pytest.mark.parametrize(
    "column",
    [
        *("common_weight(1)", "ideal_weight(0)", "gains(foo)", "gains(1:2;2:1)", "survival(x)"),
        *("survival(0)", "eagerness(0;3)", "diverse_rank(a;b)", "diverse_rank(2)"),
        *("diverse_hits(0.5;2.5)", "diverse_hits(0.5;0)", "gains(linear"),
        *("discounts(x)", "discounts(0)", "discounts(;1)"),
    ],
)
def test_parameters_in_names_of_columns_are_checked(column):
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1]})
    with pytest.raises(ValueError, match="is not a parameter of"):
        judged.rank.per_user(pl.col(column).max().alias("v"))


def test_set_f_takes_a_square():
    with pytest.raises(ValueError, match="the square of β"):
        rf.metrics.of_label("set_F.-1")


def test_subtopics_of_qrels(tmp_path):
    path = tmp_path / "d.qrels"
    path.write_text("1 2 doc 1\n1 3 doc 0\n")
    frame = rf_trec.read_qrels(path, subtopics=True)
    assert frame.rows() == [("1", "doc", "2", 1), ("1", "doc", "3", 0)]
    assert rf_trec.read_qrels(path).columns == ["user", "item", "relevance"]


def test_keywords_go_before_a_preset():
    run = pl.DataFrame({"user": [1] * 3, "item": list("abc"), "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1, 1], "item": ["b", "z"], "relevance": [2, 3]})
    given = run.rank.ndcg_at(5, gain="linear", ideal="truth", truth=truth, preset="rectools")
    assert_equal(given, run.rank.per_user("ndcg@5", truth=truth))
    tied = run.with_columns(tied=1).rank.ndcg_at(5, truth=truth, preset="rectools")
    assert tied["ndcg@5"].item() == pytest.approx(
        run.rank.ndcg_at(5, truth=truth, preset="rectools")["ndcg@5"].item()
    )


@pytest.mark.parametrize("verb", [rf.per_user, rf.evaluate, rf.summarize, rf.provenance])
def test_none_that_is_given_goes_before_a_preset(verb):
    run = pl.DataFrame({"user": [1, 2], "item": ["a", "a"], "rank": [1, 1]})
    truth = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "b", "a"], "relevance": [1, 0, 1]})
    ranx, call = rf.presets.PRESETS["ranx"], partial(verb, run, "rr", truth=truth)
    for name in ("users", "undefined"):
        own = {key: value for key, value in ranx.items() if key != name}
        given, wanted = call(preset="ranx", **{name: None}), call(preset=own)
        assert str(given) == str(wanted) != str(call(preset="ranx"))


def test_gaps_above_a_hit_count_as_misses_of_a_pair():
    truth = pl.DataFrame({"user": [1], "item": [1]})
    for ranks, expected in {(1, 10): 0.0, (10, 1): 1.0, (20, 10): 0.0}.items():
        run = pl.DataFrame({"user": [1, 1], "item": [5, 1], "rank": ranks})
        assert run.rank.evaluate("auc", truth=truth)["auc"].item() == expected


@pytest.mark.parametrize(
    "metric", ["judged@2", "unjudged@2", "num_nonrelevant", "bpref", "rbp_residual"]
)
@pytest.mark.parametrize("lazy", [False, True])
def test_judgments_that_are_counted_are_there_once(metric, lazy):
    run = pl.DataFrame({"user": [1, 1, 1], "item": [9, 5, 1], "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1] * 3, "item": [1, 9, 9], "relevance": [1, 0, 0]})
    for frame, judgments, table in [(run, truth, "truth"), (run[[0, 0, 1, 2]], truth[:2], "run")]:
        if table == "run":
            frame = frame.with_columns(rank=pl.int_range(1, 5))
        with pytest.raises(rf.RankingDataError, match=f"{table}, column 'item': duplicate"):
            (frame.lazy() if lazy else frame).rank.per_user(
                metric, truth=judgments
            ).lazy().collect()


def test_dict_has_ids_of_one_type():
    with pytest.raises(
        rf.RankingDataError, match="users are str, items int, str and numbers int: each needs"
    ):
        rf.from_scores({"q": {"a": 1, 2: 1}})
    for slip in ([1], None, "ab", {"q": "a"}):
        with pytest.raises((TypeError, rf.RankingDataError)):
            rf.from_scores(slip)
    with pytest.raises(ValueError, match="user, item and score need different names"):
        rf.from_scores({}, user="id", item="id")


@pytest.mark.parametrize(
    "make",
    [
        rf.metrics.err_at,
        rf.metrics.nerr_at,
        rf.metrics.insq_at,
        rf.metrics.inst_at,
        rf.metrics.ndcg_at,
    ],
)
def test_grade_of_zero_is_never_the_highest(make):
    option = "base" if make is rf.metrics.ndcg_at else "max_grade"
    for zero in (0, 0.0, False):
        with pytest.raises(ValueError, match=f"{option} must be a number > 0, not {zero}"):
            make(**{option: zero})
