"""``from_lists(parent=)`` against lists made by hand."""

import random
import re

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf

PARENTS = {f"d{d}#{n}": f"d{d}" for d in range(4) for n in range(5)}


def lists_of(seed):
    draw = random.Random(seed)
    return {u: draw.choices([*PARENTS], k=draw.randint(1, 9)) for u in range(20)}


def by_hand(items):
    """Give items with their places."""
    return [(item, place) for place, item in enumerate(dict.fromkeys(items), 1)]


def frame_of(lists):
    return pl.DataFrame({"user": [*lists], "chunk": [*lists.values()], "note": "kept"})


PARENT_TABLES = {
    "dict": PARENTS,
    "frame": pl.DataFrame({"chunk": [*PARENTS], "parent": [*PARENTS.values()], "more": 1}),
    "lazy": pl.LazyFrame({"chunk": [*PARENTS], "parent": [*PARENTS.values()]}),
    "pandas": pl.DataFrame({"chunk": [*PARENTS], "parent": [*PARENTS.values()]}).to_pandas(),
}


@pytest.mark.parametrize("parent", PARENT_TABLES)
@pytest.mark.parametrize("kind", ["dict", "frame", "lazy", "pandas"])
def test_long_runs(kind, parent):
    lists = lists_of(1)
    frame = {
        "dict": lists,
        "frame": frame_of(lists),
        "lazy": frame_of(lists).lazy(),
        "pandas": frame_of(lists).to_pandas(),
    }[kind]
    got = rf.from_lists(frame, item="chunk", parent=PARENT_TABLES[parent])
    assert isinstance(got, pl.DataFrame if kind == "dict" else type(frame))
    got = pl.DataFrame(got.collect() if kind == "lazy" else got)
    expected = []
    for user, items in lists.items():
        expected += [(user, *place) for place in by_hand([PARENTS[item] for item in items])]
    assert got.select("user", "chunk", "rank").rows() == expected
    assert kind == "dict" or got.columns == ["user", "chunk", "note", "rank"]
    assert got.schema["rank"] == pl.Int64


@pytest.mark.parametrize("scores", [False, True])
def test_judged_tables_have_the_truth_of_parents(scores):
    lists, draw = lists_of(2), random.Random(2)
    wanted = {user: draw.sample(["d0", "d1", "d2", "d3", "d9"], 2) for user in lists}
    found = [*lists.values()]
    if scores:
        found = [[{"id": c, "score": 1 / n} for n, c in enumerate(f, 1)] for f in found]
    frame = pl.DataFrame({"user": [*lists], "chunk": found, "expected": [*wanted.values()]})
    got = rf.from_lists(frame, item="chunk", truth="expected", parent=PARENTS)
    run = rf.from_lists(lists, parent=PARENTS)
    truth = rf.from_grades(wanted)
    metrics = ["ndcg@10", "recall@3", "precision@3", "rr", "judged@3"]
    assert_frame_equal(
        rf.per_user(got, *metrics, users="truth"), rf.per_user(run, *metrics, truth=truth)
    )
    assert ("score" in got.columns) == scores


def test_scores_are_those_of_the_best_chunk():
    frame = pl.DataFrame(
        {"user": [1], "item": [["d1#0", "d2#1", "d1#2"]], "score": [[0.9, 0.7, 0.2]]}
    )
    got = rf.from_lists(frame, parent=PARENTS)
    assert got.rows() == [(1, "d1", 0.9, 1), (1, "d2", 0.7, 2)]


def test_chunks_of_two_rows_of_a_user_are_two_lists():
    frame = pl.DataFrame({"user": [1, 1], "day": [1, 2], "item": [["d1#0"], ["d1#1", "d1#0"]]})
    rows = [(1, 1, "d1", 1), (1, 2, "d1", 1)]
    assert rf.from_lists(frame, by="day", parent=PARENTS).rows() == rows
    assert rf.from_lists(frame, parent=PARENTS).rows() == rows
    several = rf.from_lists(frame, user=["user", "day"], parent=PARENTS)
    assert several.rows() == rows
    named = {"a": frame[:1].drop("day"), "b": frame[1:].drop("day")}
    got = rf.from_lists(named, parent=PARENTS)
    assert got.select("model", "user", "item", "rank").rows() == [
        ("a", 1, "d1", 1),
        ("b", 1, "d1", 1),
    ]


@pytest.mark.parametrize("kind", ["dict", "frame"])
def test_cure_of_an_item_without_a_parent_works(kind):
    lists = {1: ["d1#0", "d7", "d1#1"]}
    frame = lists if kind == "dict" else frame_of(lists)
    with pytest.raises(rf.RankingDataError) as raised:
        rf.from_lists(frame, item="chunk", parent=PARENTS)
    assert str(raised.value) == (
        "frame of lists, column 'chunk': no parent: add the item to parent=, also one that is its "
        "own parent. Offending row: chunk='d7'"
    )
    item = re.search(r"chunk='(\w+)'", str(raised.value))[1]
    got = rf.from_lists(frame, item="chunk", parent={**PARENTS, item: item})
    assert got.select("chunk", "rank").rows() == [("d1", 1), ("d7", 2)]


@pytest.mark.parametrize(
    ("parent", "text"),
    [
        ({"a": 1, "b": "c"}, "from_lists: parent=: items are str and parents int, str: each needs"),
        ({1: "a"}, "parent=: its items are Int64, and those of the lists String: cast one"),
        (
            pl.DataFrame({"item": ["a"], "doc": ["d"]}),
            "parent=: no column 'parent'; it has 'item', 'doc': rename one",
        ),
        (
            pl.DataFrame({"item": ["a", "a"], "parent": ["b", "c"]}),
            "parent=, column 'item': an item with two rows: keep one, as an item has one parent. "
            "Offending row: item='a'",
        ),
        (
            pl.DataFrame({"item": ["a"], "parent": [None]}, schema_overrides={"parent": pl.String}),
            "frame of lists, column 'item': no parent: add the item to parent=",
        ),
    ],
)
def test_wrong_parents(parent, text):
    with pytest.raises(rf.RankingDataError, match=re.escape(text)):
        rf.from_lists({1: ["a"]}, parent=parent)


def test_wrong_values():
    with pytest.raises(TypeError, match="the parent= table must be a polars DataFrame"):
        rf.from_lists({1: ["a"]}, parent=7)


def test_integers_of_two_types_meet():
    lists = pl.DataFrame({"user": [1], "item": [[1, 2, 3]]}, schema_overrides={"user": pl.Int8})
    parent = pl.DataFrame(
        {"item": [1, 2, 3], "parent": [7, 7, 8]}, schema={"item": pl.Int8, "parent": pl.UInt16}
    )
    assert rf.from_lists(lists, parent=parent).rows() == [(1, 7, 1), (1, 8, 2)]


def test_items_may_be_called_parent_or_be_categories():
    lists = pl.DataFrame({"user": [1], "parent": [["c1", "c2"]]})
    parents = {"c1": "D", "c2": "D"}
    assert rf.from_lists(lists, item="parent", parent=parents).rows() == [(1, "D", 1)]
    table = pl.DataFrame({"parent": ["c1", "c2"]})
    with pytest.raises(rf.RankingDataError, match=r"item='parent' names .*: pass a dict"):
        rf.from_lists(lists, item="parent", parent=table)
    for dtype in (pl.Categorical, pl.Enum(["c1", "c2"])):
        frame = lists.cast({"parent": pl.List(dtype)})
        assert rf.from_lists(frame, item="parent", parent=parents).rows() == [(1, "D", 1)]


def test_a_series_is_no_table_of_parents():
    series = pl.DataFrame(PARENT_TABLES["frame"]).to_pandas().set_index("chunk")["parent"]
    frame = frame_of(lists_of(3))
    with pytest.raises(TypeError, match=r"parent= is a Series: pass its \.to_dict\(\)"):
        rf.from_lists(frame, item="chunk", parent=series)
    cured = rf.from_lists(frame, item="chunk", parent=series.to_dict())
    assert_frame_equal(cured, rf.from_lists(frame, item="chunk", parent=PARENTS))
