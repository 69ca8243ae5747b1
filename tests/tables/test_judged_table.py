"""The judged table: what judge, with_rank, relevant and the helpers give."""

import math
from math import log2

import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf

RUN = pl.DataFrame(
    {"user": [2, 1, 1], "item": [5, 7, 8], "rank": [1, 2, 1], "minutes": [1.0, 2.0, 3.0]}
)
TRUTH = pl.DataFrame(
    {"user": [1, 1, 3], "item": [7, 9, 5], "relevance": [2, 1, 0], "genre": ["x", "y", "z"]}
)


def test_judge_is_the_full_join_in_a_known_order():
    judged = RUN.rank.judge(TRUTH)
    assert judged.columns == ["user", "item", "rank", "relevance", "minutes", "genre"]
    assert judged.rows() == [
        (1, 8, 1, None, 3.0, None),
        (1, 7, 2, 2, 2.0, "x"),
        (1, 9, None, 1, None, "y"),
        (2, 5, 1, None, 1.0, None),
        (3, 5, None, 0, None, "z"),
    ]
    lazy = RUN.lazy().rank.judge(TRUTH)
    assert isinstance(lazy, pl.LazyFrame)
    assert_frame_equal(lazy.collect(), judged, check_row_order=False)


def test_index_with_a_name_is_a_column():
    import rankframe.pandas  # noqa: F401

    run, truth = RUN.to_pandas(), TRUTH.to_pandas()
    expected = RUN.rank.per_user("ap", "precision", truth=TRUTH)
    for index in ("user", ["user", "item"]):
        got = run.set_index(index).ranking.per_user("ap", "precision", truth=truth.set_index(index))
        assert_frame_equal(pl.from_pandas(got), expected, check_dtypes=False)


def test_truth_that_has_the_by_column_is_joined_on_it():
    run = RUN.with_columns(fold=pl.Series([1, 1, 2]))
    truth = TRUTH.with_columns(fold=pl.Series([1, 1, 2]))
    assert run.rank.judge(truth, by="fold").select(
        "fold", "user", "item", "rank", "relevance"
    ).rows() == [
        (1, 1, 7, 2, 2),
        (1, 1, 9, None, 1),
        (1, 2, 5, 1, None),
        (2, 1, 8, 1, None),
        (2, 3, 5, None, 0),
    ]


def test_truth_that_lacks_the_by_column_judges_every_group():
    run = pl.concat([RUN.with_columns(model=pl.lit("a")), RUN[1:].with_columns(model=pl.lit("b"))])
    judged = run.rank.judge(TRUTH, by="model")
    for model, rows in (("a", RUN), ("b", RUN[1:])):
        expected = rows.rank.judge(TRUTH)
        assert_frame_equal(judged.filter(model=model).drop("model"), expected)


def test_truth_may_have_one_of_two_by_columns():
    """A model that has nothing in a fold has misses there."""
    run = pl.DataFrame(
        {
            "model": ["a", "a", "b"],
            "fold": [1, 2, 1],
            "user": [1, 2, 1],
            "item": [7, 7, 7],
            "rank": [1, 1, 1],
        }
    )
    truth = pl.DataFrame({"fold": [1, 2], "user": [1, 2], "item": [7, 7]})
    got = run.rank.evaluate("hit@1", truth=truth, by=["model", "fold"])
    assert got.rows() == [("a", 1, 1, 1.0), ("a", 2, 1, 1.0), ("b", 1, 1, 1.0), ("b", 2, 1, 0.0)]


def test_group_that_the_truth_knows_nothing_of_has_no_users():
    run = RUN.with_columns(fold=pl.Series([3, 1, 1]))
    truth = TRUTH.with_columns(fold=pl.Series([1, 1, 2]))
    got = run.rank.evaluate("ap", "gmap", truth=truth, by="fold")
    assert got["fold"].to_list() == [1, 2, 3]
    assert got["users"].to_list() == [1, 0, 0]
    assert got["ap"].to_list() == [0.25, None, None]
    lazy = run.lazy().rank.evaluate("ap", "gmap", truth=truth, by="fold")
    assert_frame_equal(lazy.collect(), got)


def test_truth_without_relevance_is_1_in_every_row():
    judged = RUN.rank.judge(TRUTH.drop("relevance", "genre"))
    assert judged.drop_nulls("relevance")["relevance"].to_list() == [1, 1, 1]


@pytest.mark.parametrize("dtype", [pl.Boolean, pl.UInt8, pl.Float32, pl.Decimal(5, 2), pl.Int128])
def test_relevance_may_be_of_any_number_type_or_boolean(dtype):
    truth = TRUTH.with_columns(pl.col("relevance").clip(upper_bound=1).cast(dtype))
    expected = TRUTH.with_columns(pl.col("relevance").clip(upper_bound=1))
    metrics = ["ap", "ndcg", "dcg(gain=exponential)", "cg(gain=1:5)"]
    got = RUN.rank.evaluate(*metrics, truth=truth)
    assert_frame_equal(got, RUN.rank.evaluate(*metrics, truth=expected))
    judged = RUN.rank.judge(truth).rank.evaluate(*metrics)
    assert_frame_equal(got, judged)


def test_float_grades_keep_their_fractions():
    judged = pl.DataFrame(
        {"user": [1, 1], "item": [1, 2], "rank": [2, None], "relevance": [0.5, 1.5]}
    )
    got = judged.rank.evaluate("dcg", "ndcg", "ap", relevant_at=0.75).row(0, named=True)
    assert got["dcg"] == pytest.approx(0.5 / math.log2(3))
    assert got["ndcg"] == pytest.approx(0.5 / math.log2(3) / (1.5 + 0.5 / math.log2(3)))
    assert got["ap"] == 0


# ------------------------------------------------------------------ with_rank


def test_with_rank_keeps_rows_and_makes_ranks():
    run = pl.DataFrame(
        {
            "model": ["a", "a", "b", "a", "a"],
            "user": [1, 1, 1, 2, 1],
            "item": ["x", "y", "x", "x", "z"],
            "score": [0.5, 0.7, 0.1, 0.3, None],
        }
    )
    got = run.rank.with_rank(by="model")
    assert_frame_equal(got.drop("rank"), run)
    assert got["rank"].to_list() == [2, 1, 1, 1, None]
    assert got["rank"].dtype == pl.Int64
    assert_frame_equal(run.lazy().rank.with_rank(by="model").collect(), got)


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [
        # by bytes, descending: "9" < "b" < "é"; by value for integers
        (pl.String, {"é": 1, "b": 2, "9": 3, "10": 4}),
        (pl.Categorical, {"é": 1, "b": 2, "9": 3, "10": 4}),
        (pl.Enum(["é", "10", "b", "9"]), {"é": 1, "b": 2, "9": 3, "10": 4}),
        (pl.Int32, {10: 1, 9: 2, 3: 3, 2: 4}),
        (pl.UInt64, {10: 1, 9: 2, 3: 3, 2: 4}),
    ],
    ids=str,
)
@pytest.mark.parametrize("descending", [True, False])
def test_ties_go_by_item_descending(dtype, expected, descending):
    items = list(expected)
    for shift in range(4):
        order = items[shift:] + items[:shift]
        run = pl.DataFrame({"user": 1, "item": pl.Series(order, dtype=dtype), "score": 0.5})
        got = run.rank.with_rank(descending=descending)
        assert dict(zip(order, got["rank"].to_list(), strict=True)) == expected


@pytest.mark.parametrize("descending", [True, False])
def test_ties_go_by_order_when_asked(descending):
    run = pl.DataFrame(
        {"user": [1, 2] * 3, "item": [3, 3, 1, 1, 2, 2], "score": [0.5, 0.5, 0.5, 0.1, 0.5, 0.5]}
    )
    got = run.rank.with_rank(ties="order", descending=descending)
    second = [1, 3, 2] if descending else [2, 1, 3]
    assert got.filter(user=1)["rank"].to_list() == [1, 2, 3]
    assert got.filter(user=2)["rank"].to_list() == second


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt8, pl.UInt64, pl.Float32, pl.Decimal(6, 2)])
@pytest.mark.parametrize("descending", [True, False])
def test_scores_of_any_number_type(dtype, descending):
    scores = pl.Series([3, 0, 7, 1, 2], dtype=dtype)
    run = pl.DataFrame({"user": 1, "item": range(5), "score": scores})
    ranks = [2, 5, 1, 4, 3] if descending else [4, 1, 5, 2, 3]
    assert run.rank.with_rank(descending=descending)["rank"].to_list() == ranks


def test_minus_zero_equals_zero():
    run = pl.DataFrame({"user": 1, "item": [1, 2, 3], "score": [0.0, -0.0, 0.0]})
    assert run.rank.with_rank()["rank"].to_list() == [3, 2, 1]


def test_rank_is_replaced():
    run = RUN.with_columns(score=pl.Series([0.1, 0.9, 0.2]))
    assert run.rank.with_rank()["rank"].to_list() == [1, 1, 2]
    assert run.rank.with_rank(score="minutes")["rank"].to_list() == [1, 2, 1]
    placed = run.rename({"rank": "place"}).rank.with_rank(rank="place")
    assert placed.columns == ["user", "item", "minutes", "score", "rank"]


def test_with_rank_of_pandas_keeps_the_index():
    import rankframe.pandas  # noqa: F401

    run = RUN.drop("rank").to_pandas()
    run.index = ["c", "a", "b"]
    got = run.ranking.with_rank(score="minutes")
    assert got.index.to_list() == ["c", "a", "b"]
    assert got["rank"].to_list() == [1, 2, 1]
    named = run.set_index(["user", "item"])
    got = named.ranking.with_rank(score="minutes")
    assert got.index.equals(named.index)
    assert list(got.columns) == ["minutes", "rank"]


def test_unknown_ties_are_reported(refused):
    run = pl.DataFrame({"user": 1, "item": [1], "score": [0.0]})
    refused(run.rank.with_rank, ties="random")


def test_run_with_a_score_is_ranked_on_the_way():
    run = pl.DataFrame({"user": [1, 1, 1], "item": [1, 2, 3], "score": [0.1, math.nan, 0.9]})
    truth = pl.DataFrame({"user": [1, 1], "item": [1, 2]})
    ranked = run.rank.with_rank()
    assert run.rank.evaluate("ap", truth=truth)["ap"].item() == 0.25
    assert ranked.rank.evaluate("ap", truth=truth)["ap"].item() == 0.25
    named = run.rename({"score": "points"})
    assert named.rank.evaluate("ap", truth=truth, score="points")["ap"].item() == 0.25
    judged = run.with_columns(relevance=pl.Series([1, 1, None]))
    assert judged.rank.evaluate("ap")["ap"].item() == 0.25


# ------------------------------------------------------------------ relevant


def test_relevant_returns_the_vocabulary():
    judged = pl.DataFrame(
        {
            "user": [1, 1, 1, 1, 1, 2],
            "item": [1, 2, 3, 4, 5, 1],
            "rank": [4, 1, 2, None, 3, None],
            "relevance": [3, 1, 0, 2, None, 2],
            "genre": list("abcdef"),
        }
    )
    rows = rf.metrics.rows(judged, relevant_at=2)
    counts = ["hits", "ideal_rank", "ideal_place", "total"]
    numbers = ["ideal_relevance", "rank_discount", "place_discount"]
    assert set(rows.columns) == {*judged.columns, "relevant", *counts, *numbers}
    for rank, place, own, ideal in rows.select("rank", "ideal_place", *numbers[1:]).rows():
        assert own == (None if rank is None else pytest.approx(1 / log2(rank + 1)))
        assert ideal == pytest.approx(1 / log2(place + 1))
    assert rows.select("user", "item", "relevant", *counts, "ideal_relevance").rows() == [
        (1, 2, False, 0, 3, 1, 2, 3.0),
        (1, 1, True, 1, 1, 2, 2, 2.0),
        (1, 4, True, None, 2, 3, 2, 1.0),
        (2, 1, True, None, 1, 1, 1, 2.0),
    ]
    assert set(rows.select(counts).dtypes) == {pl.Int64}


def test_list_lengths_are_counted_for_who_reads_them():
    judged = pl.DataFrame(
        {"user": [1, 1, 2], "item": [1, 2, 1], "rank": [1, 2, None], "relevance": [1, 0, 1]}
    )
    assert "retrieved" not in rf.metrics.rows(judged, "precision@1").columns
    rows = rf.metrics.rows(judged, "precision")
    assert rows.select("user", "retrieved").rows() == [(1, 2), (2, 0)]
    assert rows.schema["retrieved"] == pl.Int64


def test_plan_of_judge_is_evaluated_as_its_tables():
    """Unless the lists are split otherwise."""
    run = pl.concat([RUN.with_columns(model=pl.lit(m)) for m in "ab"])
    judged = run.lazy().rank.judge(TRUTH, by="model")
    by_model = judged.rank.evaluate("ap", by="model").collect()
    assert_equal(by_model, run.rank.evaluate("ap", truth=TRUTH, by="model"))
    assert_equal(judged.rank.evaluate("ap").collect(), by_model)
    filtered = judged.filter(model="a").rank.evaluate("ap", by="model")
    assert_equal(filtered.collect(), by_model[:1])


# ------------------------------------------------------------------ lists and dicts


def test_from_lists():
    lists = pl.DataFrame(
        {
            "model": ["a", "b"],
            "uid": [1, 1],
            "items": [["x", "y"], ["z"]],
            "score": [[0.9, 0.8], [0.7]],
        }
    )
    long = lists.rank.from_lists(user="uid", item="items")
    assert long.rows() == [
        ("a", 1, "x", 0.9, 1),
        ("a", 1, "y", 0.8, 2),
        ("b", 1, "z", 0.7, 1),
    ]
    lazy = lists.lazy().rank.from_lists(user="uid", item="items")
    assert_equal(lazy.collect(), long)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"uid": [1], "item": [[1]]}, "frame of lists: no column 'user' for user; it has 'uid'"),
        ({"user": [1], "item": [1]}, "frame of lists, column 'item': Int64 is not a list of items"),
        (
            {"user": [1], "item": [[1]], "rank": [1]},
            "frame of lists, column 'rank': from_lists makes the rank",
        ),
        (
            {"user": [1, 2], "item": [[1], [1, 2]], "score": [[0.1], [0.2]]},
            "frame of lists, column 'score': scores and items differ in number: give each item "
            "one score. Offending row: user=2",
        ),
    ],
)
def test_bad_lists_are_reported(table, message):
    for frame in (pl.DataFrame(table), pl.LazyFrame(table)):
        with pytest.raises(rf.RankingDataError) as error:
            frame.rank.from_lists().lazy().collect()
        assert str(error.value).startswith(message)


def test_empty_list_is_named_and_its_cure_counts_the_user():
    lists = pl.DataFrame({"user": [1, 2, 3], "item": [["a", "b"], [], None]})
    message = "frame of lists, column 'item': empty or null list, for which a long run has no row"
    for rows, user in ((lists, 2), (lists[[0, 2]], 3)):
        for frame in (rows, rows.lazy(), rows.to_pandas()):
            with pytest.raises(rf.RankingDataError) as error:
                rf.from_lists(frame).lazy().collect()
            assert str(error.value).startswith(message)
            assert str(error.value).endswith(f"Offending row: user={user}")
    run = rf.from_lists(lists.filter(pl.col("item").list.len() > 0))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": ["a", "a", "a"]})
    means = {"truth": (3, 1 / 3), "judged": (3, 1 / 3), "all": (3, 1 / 3)}
    means |= {"run": (1, 1.0), "both": (1, 1.0)}
    for users, expected in means.items():
        assert rf.evaluate(run, "rr", truth=truth, users=users).row(0) == expected


def test_empty_dict_is_an_empty_run():
    empty = rf.from_scores({})
    assert empty.columns == ["user", "item", "score"]
    with pytest.raises(rf.RankingDataError, match="run: it is empty"):
        empty.rank.evaluate("ap", truth=TRUTH)


def test_scores_that_only_64_bits_distinguish():
    """The higher id is first among equals; 32-bit floats make these equal."""
    run = pl.DataFrame({"user": 1, "item": [1, 2], "score": [1 + 1e-12, 1.0]})
    truth = pl.DataFrame({"user": 1, "item": [1]})
    for single, expected in ((False, [1, 2]), (True, [2, 1])):
        own = {"single_precision": single}
        judged = rf.judge(run, truth, preset=own)
        ranked = rf.with_rank(run, preset=own)
        assert judged.sort("item")["rank"].to_list() == ranked["rank"].to_list() == expected
    scored = pl.DataFrame({**run.to_dict(), "relevance": [1, None]})
    for table, keywords in ((run, {"truth": truth}), (scored, {})):
        for single, expected in ((False, 1.0), (True, 0.5)):
            got = rf.evaluate(table, "rr", preset={"single_precision": single}, **keywords)
            assert got["rr"].item() == expected


def test_overlap_with_the_ideal_list_is_of_items_with_a_grade():
    judged = pl.DataFrame({"user": 1, "item": [1, 2], "rank": [1, 2], "relevance": [0, 1]})
    reads = (pl.col("judged").sum() + pl.col("common_weight").sum()).alias("x")
    rows = rf.metrics.rows(judged, reads)
    assert rows["common_weight"].is_null().to_list() == [True, False]
