"""One row per question with two lists; dicts of lists and of sets."""

import random

import pandas
import polars as pl
import pytest
from two_models import assert_equal

import rankframe as rf

ANSWERS = pl.DataFrame(
    {
        "question": ["a", "b", "c", "d"],
        "retrieved": [["x", "y"], [], None, ["z"]],
        "expected": [["y", "w"], ["x"], ["x", "y"], []],
        "topic": [1, 2, 3, 3],
    }
)
NAMES = {"user": "question", "item": "retrieved", "truth": "expected"}
ROWS = [
    ("a", "x", 1, None, 1),
    ("a", "y", 2, 1, 1),
    ("a", "w", None, 1, 1),
    ("b", "x", None, 1, 2),
    ("c", "x", None, 1, 3),
    ("c", "y", None, 1, 3),
    ("d", "z", 1, None, 3),
]


def test_columns_of_two_lists_are_a_judged_table():
    judged = rf.from_lists(ANSWERS, **NAMES)
    assert judged.columns == ["user", "item", "rank", "relevance", "topic"]
    assert judged.rows() == ROWS
    assert rf.from_lists(ANSWERS.lazy(), **NAMES).collect().rows() == ROWS
    assert_equal(ANSWERS.rank.from_lists(**NAMES), judged)
    assert pl.from_pandas(rf.from_lists(ANSWERS.to_pandas(), **NAMES))["item"].equals(
        judged["item"]
    )


def test_columns_of_lists_that_no_keyword_names_are_pointed_to():
    with pytest.raises(rf.RankingDataError, match="'retrieved' and 'expected' hold lists: item= "):
        rf.evaluate(ANSWERS, "rr", user="question")
    assert rf.evaluate(ANSWERS, "rr", **NAMES).item(0, "rr") == pytest.approx(1 / 6)


@pytest.mark.parametrize("lazy", [False, True])
def test_empty_list_is_a_miss_and_users_decides_who_has_none(lazy):
    judged = rf.from_lists(ANSWERS.lazy() if lazy else ANSWERS, **NAMES)

    def mean(**options):
        return judged.rank.evaluate("recall@2", "rr", **options).lazy().collect().row(0)

    assert mean() == (3, pytest.approx(1 / 6), pytest.approx(1 / 6))
    assert mean(users="all", undefined=0.0) == (4, 0.125, 0.125)
    assert mean(users="run") == (2, 0.5, 0.5)
    by_topic = judged.rank.evaluate("recall@2", by="topic").lazy().collect()
    assert by_topic.rows() == [(1, 1, 0.5), (2, 1, 0.0), (3, 1, 0.0)]


def test_structs_have_ids_with_scores_and_grades():
    rows = pl.DataFrame(
        {
            "user": [1],
            "item": [[{"id": "x", "score": 0.9}, {"id": "y", "score": 0.1}]],
            "wanted": [[{"grade": 3, "doc": "y"}, {"grade": 0, "doc": "x"}]],
        }
    )
    judged = rf.from_lists(rows, truth="wanted")
    assert judged.rows() == [(1, "x", 1, 0, 0.9), (1, "y", 2, 3, 0.1)]
    pairs = rows.with_columns(wanted=pl.Series([[{"what": "y", "how": 2.5}]]))
    assert rf.from_lists(pairs, truth="wanted").rows() == [
        (1, "x", 1, None, 0.9),
        (1, "y", 2, 2.5, 0.1),
    ]


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(("name", "number"), [("docId", "weight"), ("chunk", "grade")])
def test_id_of_two_numbers_is_the_one_with_its_name(first, name, number):
    pair = {name: 7, number: 3} if first else {number: 3, name: 7}
    rows = pl.DataFrame({"user": [1], "item": [[7, 8]], "wanted": [[pair]]})
    assert rf.from_lists(rows, truth="wanted").rows() == [(1, 7, 1, 3), (1, 8, 2, None)]


@pytest.mark.parametrize(
    "wanted",
    [
        [{"id": "y", "grade": 2, "by": 1}],
        [{"chunk": 7, "weight": 2}],
        [{"id": "y"}],
        7,
        [["y"]],
    ],
)
def test_shapes_without_ids_are_refused_with_a_cure(wanted, refused):
    rows = pl.DataFrame({"user": [1], "item": [["y"]], "wanted": [wanted]})
    refused(rf.from_lists, rows, truth="wanted")


def test_set_is_no_list_and_a_column_has_one_role():
    frame = pandas.DataFrame({"user": [1], "found": [{"a", "b"}], "gold": [{"a"}]})
    with pytest.raises(rf.RankingDataError, match="column 'found': a set has no order"):
        rf.from_lists(frame, item="found", truth="gold")
    assert len(rf.from_lists(frame.assign(found=[["a"]]), item="found", truth="gold")) == 1
    with pytest.raises(ValueError, match="truth='retrieved' names a column that has another role"):
        rf.from_lists(ANSWERS, user="question", item="retrieved", truth="retrieved")


def test_integers_of_two_types_meet():
    rows = pl.DataFrame(
        {"user": [1], "item": [[1, 2]], "wanted": [[2, 3]]},
        schema_overrides={"wanted": pl.List(pl.Int8)},
    )
    assert rf.from_lists(rows, truth="wanted").rows() == [
        (1, 1, 1, None),
        (1, 2, 2, 1),
        (1, 3, None, 1),
    ]
    nothing = rows.with_columns(item=pl.Series([[]], dtype=pl.List(pl.Null)))
    assert rf.from_lists(nothing, truth="wanted").rows() == [(1, 2, None, 1), (1, 3, None, 1)]


@pytest.mark.parametrize("lazy", [False, True])
def test_document_that_comes_twice_is_an_error(lazy):
    """Such as the document of two chunks: recall would count it twice."""
    for column in ("retrieved", "expected"):
        twice = ANSWERS.head(1).with_columns(pl.Series(column, [["y", "y"]]))
        judged = rf.from_lists(twice.lazy() if lazy else twice, **NAMES)
        with pytest.raises(rf.RankingDataError, match="duplicate .* item='y'"):
            judged.rank.evaluate("recall@2").lazy().collect()


def test_random_lists_give_what_a_run_and_its_truth_give():
    draw = random.Random(34)
    lists = [[draw.sample(range(9), draw.randint(1, 6)) for _ in range(60)] for _ in range(2)]
    frame = pl.DataFrame({"user": range(60), "item": lists[0], "wanted": lists[1]})
    run = rf.from_lists(frame.drop("wanted"))
    truth = rf.from_lists(frame.select("user", item="wanted")).drop("rank")
    metrics = "ndcg@3", "recall@3", "ap", "rr", "unjudged@3"
    expected = run.rank.per_user(*metrics, truth=truth)
    assert_equal(rf.from_lists(frame, truth="wanted").rank.per_user(*metrics), expected)


def test_score_beside_truth_is_refused(refused):
    refused(rf.from_lists, ANSWERS.with_columns(s=[[0.1, 0.2]] * 4), score="s", **NAMES)
    refused(rf.from_lists, ANSWERS, user="question", item="retrieved", truth="gold")


def test_dicts_of_lists_and_of_sets():
    run = rf.from_lists({"q1": ["b", "a"], "q2": ("c",), "q3": []})
    assert run.rows() == [("q1", "b", 1), ("q1", "a", 2), ("q2", "c", 1)]
    truth = rf.from_grades({"q2": {"c"}, "q1": frozenset({"b", "a"})}, user="qid")
    assert truth.rows() == [("q1", "a"), ("q1", "b"), ("q2", "c")]
    truth = truth.rename({"qid": "user"})
    assert rf.evaluate(run, "recall@1", truth=truth).row(0) == (2, 0.75)
    with pytest.raises(rf.RankingDataError, match="items are Struct.*, and must be ids"):
        rf.from_lists({"q1": [{"id": "a", "score": 1.0}]})
    with pytest.raises(rf.RankingDataError, match="users are str and items int, str: each needs"):
        rf.from_lists({"q1": ["a", 1]})


CHATTY = pl.DataFrame(
    {"q": [1, 2, 3, 4], "found": [["x"]] * 4, "wanted": [["x"], ["y"], [], []], "topic": [*"aabb"]}
)
ABSTAINS = CHATTY.with_columns(
    found=pl.when(pl.col("wanted").list.len() > 0).then("found").otherwise(pl.lit([]))
)
OF_Q = {"user": "q", "item": "found", "truth": "wanted"}


@pytest.mark.parametrize("lazy", [False, True])
def test_questions_keep_a_row_so_that_systems_have_one_denominator(lazy):
    systems = {"chatty": CHATTY, "abstains": ABSTAINS}
    if lazy:
        systems = {name: frame.lazy() for name, frame in systems.items()}
    judged = rf.from_lists(systems, **OF_Q)
    rows = judged.lazy().collect()
    assert rows["model"].unique(maintain_order=True).to_list() == ["chatty", "abstains"]
    assert rows.filter(model="abstains")["user"].to_list() == [1, 2, 2, 3, 4]
    assert rows.filter(pl.col("item").is_null())["user", "rank", "relevance"].rows() == [
        (3, None, None),
        (4, None, None),
    ]
    means = judged.rank.evaluate("hit@5", by="model", users="all", undefined=0.0)
    assert {*means.lazy().collect().rows()} == {("chatty", 4, 0.25), ("abstains", 4, 0.25)}


def test_row_of_a_user_alone_is_taken_by_each_verb():
    judged = rf.from_lists(ABSTAINS, **OF_Q)
    rf.check(judged)
    values = judged.rank.per_user("hit@5", "num_ret", users="all")
    assert values.rows() == [(1, 1.0, 1), (2, 0.0, 1), (3, None, None), (4, None, None)]
    by_topic = judged.rank.evaluate("hit@5", by="topic", users="all", undefined=0.0)
    assert by_topic.rows() == [("a", 2, 0.5), ("b", 2, 0.0)]
    assert judged.rank.evaluate("hit@5", users="run").row(0) == (2, 0.5)
    only = {"unjudged": "drop", "users": "all", "undefined": 0.0}
    assert judged.rank.evaluate("hit@5", **only).row(0) == (4, 0.25)
    other = pl.DataFrame({"user": [1], "item": ["z"]})
    assert judged.rank.evaluate("hit@5", exclude=other, users="all").row(0) == (4, 0.5)
    found = rf.health(judged)
    counts = dict(found["what", "count"].iter_rows())
    assert counts["neither_rank_nor_relevance"] == counts["null_items"] == 0
    with pytest.raises(rf.RankingDataError, match="null item"):
        rf.check(judged.with_columns(rank=pl.col("rank").fill_null(2)))
    with pytest.raises(rf.RankingDataError, match="neither rank nor relevance"):
        rf.check(judged.with_columns(item=pl.col("item").fill_null("w")))
    with pytest.raises(rf.RankingDataError, match="duplicate"):
        rf.check(pl.concat([judged, judged.tail(1)]))


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_of_one_question_are_an_error(lazy, refused):
    twice = pl.DataFrame(
        {"q": ["a", "a", "b"], "found": [["x"], ["w"], ["k"]], "wanted": [["x"], ["z"], ["k"]]}
    )
    twice = twice.with_columns(day=pl.Series([1, 2, 2]))
    frame = twice.lazy() if lazy else twice
    refused(lambda: rf.from_lists(frame, **OF_Q).lazy().collect())
    judged = rf.from_lists(frame, by="day", **OF_Q)
    assert len(judged.rank.evaluate("hit@1", by="day").lazy().collect()) == 2
    numbered = rf.from_lists(frame.with_row_index("row").drop("q"), **OF_Q | {"user": "row"})
    assert numbered.rank.evaluate("hit@1").lazy().collect().row(0) == (3, pytest.approx(2 / 3))
    refused(rf.from_lists, frame, by="week", **OF_Q)


@pytest.mark.parametrize("lazy", [False, True])
def test_scores_that_contradict_the_order_are_an_error(lazy, refused):
    def judged(name, *numbers):
        found = [[{"id": item, name: number} for item, number in zip("xyz", numbers, strict=True)]]
        frame = pl.DataFrame({"q": ["a"], "found": found, "wanted": [["y"]]})
        return rf.from_lists(frame.lazy() if lazy else frame, **OF_Q).lazy().collect()

    assert judged("score", 0.9, None, 0.9)["score"].to_list() == [0.9, None, 0.9]
    assert judged("distance", 0.1, 0.1, 0.5)["score"].to_list() == [-0.1, -0.1, -0.5]
    refused(judged, "score", 0.9, None, 0.95)
    refused(judged, "distance", 0.3, 0.1, 0.5)


@pytest.mark.parametrize("lazy", [False, True])
def test_list_of_scores_that_contradicts_the_order_is_an_error(lazy, refused):
    def run(name, *numbers):
        frame = pl.DataFrame({"user": [1], "item": [["x", "y", "z"]], name: [numbers]})
        return rf.from_lists(frame.lazy() if lazy else frame, score=name).lazy().collect()

    assert run("score", 0.9, None, 0.9)["rank"].to_list() == [1, 2, 3]
    assert run("distance", 1, 1, 5)["distance"].to_list() == [1, 1, 5]
    refused(run, "score", 0.1, None, 0.9)
    refused(run, "distance", 5, 1, 1)


def test_list_is_no_truth():
    lists = rf.from_lists({"q": ["a"]})
    with pytest.raises(rf.RankingDataError, match="truth, column 'rank'.* drop the column"):
        rf.evaluate(lists, "rr", truth=lists)


def test_parts_take_rows_of_a_user_alone():
    judged = rf.from_lists({"chatty": CHATTY, "abstains": ABSTAINS}, **OF_Q)
    for options in ({"users": "all", "undefined": 0.0}, {"users": "truth"}, {"users": "run"}):
        metrics = ["hit@5", "num_ret", "ndcg@3", "map"]
        want = judged.rank.evaluate(*metrics, by="model", **options).sort("model")
        meter = rf.Meter(*metrics, by="model", **options)
        pieces = judged.partition_by("user")
        for piece in pieces:
            meter.update(piece)
        assert meter.compute().sort("model").rows() == want.rows()
        sums = [
            rf.parts.sums(piece, *metrics, by="model", part=str(key), **options)
            for key, piece in enumerate(pieces)
        ]
        assert rf.parts.combine(sums).sort("model").rows() == want.rows()
    assert judged.rank.evaluate("hit@5", users="all", undefined=0.0)["users"].to_list() == [4, 4]


@pytest.mark.parametrize("lazy", [False, True])
def test_rows_of_a_user_alone_count_where_all_else_was_retrieved(lazy):
    found = pl.DataFrame({"q": [1, 2, 3], "found": [["x"], ["y"], []]})
    grades = pl.Series("wanted", [[{"id": "x", "grade": 1}], [{"id": "y", "grade": 0}], []])
    frame = found.with_columns(grades)
    judged = rf.from_lists(frame.lazy() if lazy else frame, **OF_Q)
    with pytest.warns(rf.errors.RankingWarning, match="2 of 3 users have no relevant item"):
        assert judged.rank.evaluate("hit@1").lazy().collect().row(0) == (3, pytest.approx(1 / 3))
    assert judged.rank.evaluate("hit@1", users="truth").lazy().collect().row(0) == (1, 1.0)
    missed = rf.from_lists({"chatty": CHATTY, "abstains": ABSTAINS}, **OF_Q)  # an item is missed
    assert missed.rank.evaluate("hit@5", by="model")["users"].to_list() == [2, 2]


SUBMISSION = pl.DataFrame({"user": [1, 2, 3], "item": ["0706 11\n 12", "7", "9 8"]})
SOLUTION = pl.DataFrame({"user": [1, 2, 4], "item": ["11 99", "7", "1"]})
KINDS = {
    "polars": lambda frame: frame,
    "lazy": pl.DataFrame.lazy,
    "pandas": pl.DataFrame.to_pandas,
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_texts_of_ids_are_split_at_white_space(kind):
    """As Kaggle writes them; ids remain text, and one id is a list."""
    run = rf.from_lists(kind(SUBMISSION))
    rows = pl.DataFrame(run.collect() if kind is KINDS["lazy"] else run).rows()
    assert rows == [
        (1, "0706", 1),
        (1, "11", 2),
        (1, "12", 3),
        (2, "7", 1),
        (3, "9", 1),
        (3, "8", 2),
    ]
    both = SUBMISSION.join(SOLUTION.rename({"item": "actual"}), on="user")
    got = rf.evaluate(kind(both), "mapk@12", truth="actual")
    got = got.collect() if kind is KINDS["lazy"] else got
    assert pl.DataFrame(got).row(0) == (2, 0.625)
    lists = both.with_columns(pl.col("actual").str.split(" "))
    assert_equal(rf.from_lists(lists, truth="actual"), rf.from_lists(both, truth="actual"))


def test_mapk_is_the_mean_over_the_solution():
    """Users 1 and 2 find one of two, and one of one; user 4 has no list."""
    truth = rf.from_lists(SOLUTION).drop("rank")
    got = rf.from_lists(SUBMISSION).rank.evaluate("mapk@12", "apk@1", truth=truth)
    assert got.row(0) == (3, pytest.approx((1 / 4 + 1 + 0) / 3), pytest.approx(1 / 3))
    long = pl.DataFrame({"user": [1] * 20, "item": [f"{i}" for i in range(20)]})
    perfect = rf.from_lists({1: long["item"].to_list()})
    assert perfect.rank.evaluate("mapk@12", "map@12", truth=long).row(0) == (1, 1.0, 12 / 20)


@pytest.mark.parametrize("text", ["[10, 11]", "10,11", "10;11", "('10' '11')"])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_other_texts_are_no_ids_and_the_cure_reads_them(text, kind):
    lists = kind(pl.DataFrame({"user": [1], "item": [text]}))
    with pytest.raises(rf.RankingDataError) as raised:
        rf.from_lists(lists).lazy().collect()
    said = str(raised.value)
    assert said.startswith("frame of lists, column 'item': a text of ids is split at white space")
    cure = said.partition("make lists: ")[2].partition(". Offending")[0]
    made = rf.from_lists(eval(cure, {"pl": pl, "lists": lists}))
    assert pl.DataFrame(made.collect() if kind is KINDS["lazy"] else made).rows() == [
        (1, "10", 1),
        (1, "11", 2),
    ]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_empty_text_is_an_empty_list_and_the_cure_drops_it(kind):
    lists = kind(pl.DataFrame({"user": [1, 2, 3], "item": [" ", "7", None]}))
    with pytest.raises(rf.RankingDataError, match="column 'item': empty or null list") as raised:
        rf.from_lists(lists).lazy().collect()
    cure = str(raised.value).partition("drop it: ")[2].partition(". users=")[0]
    made = rf.from_lists(eval(cure, {"pl": pl, "lists": lists}))
    assert pl.DataFrame(made.collect() if kind is KINDS["lazy"] else made).rows() == [(2, "7", 1)]


def test_texts_of_one_user_are_no_lists():
    """As in a long table without a rank."""
    with pytest.raises(rf.RankingDataError, match="two rows have the same 'user'"):
        rf.from_lists(pl.DataFrame({"user": [1, 1], "item": ["a", "b"]}))


@pytest.mark.parametrize("option", ["over", "average"])
def test_columns_that_are_averaged_tell_lists_apart(option):
    lists = pl.DataFrame(
        {"user": [1, 1], "seed": [1, 2], "found": [["a", "b"], ["b", "a"]], "wanted": [["a"]] * 2}
    )
    run = rf.from_lists(lists, item="found", truth="wanted", by="seed")
    expected = rf.summarize(run, "rr", users="truth", **{option: "seed"})
    assert expected["mean"].item() == 0.75
    for frame in (lists, lists.lazy()):
        got = rf.summarize(frame, "rr", item="found", truth="wanted", **{option: "seed"})
        assert got.lazy().collect().equals(expected)
