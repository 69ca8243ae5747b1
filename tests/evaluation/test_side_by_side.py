"""``lists``: two systems' lists of one user, against lists in plain Python."""

import polars as pl
import pytest
import reference
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal

import rankframe as rf

OLD = pl.DataFrame({"user": [1, 1, 1, 2], "item": [*"abca"], "rank": [1, 2, 3, 1]})
NEW = pl.DataFrame({"user": [1, 1, 1, 3], "item": [*"cadb"], "rank": [1, 2, 3, 1]})
TRUTH = pl.DataFrame({"user": [1, 1, 2], "item": ["c", "d", "a"], "relevance": [2, 1, 1]})
RUNS = {"old": OLD, "new": NEW}
WORKED = [
    (1, "a", None, "c", 2, 2),
    (2, "b", None, "a", None, -1),
    (3, "c", 2, "d", 1, None),
]

ITEMS = st.lists(st.integers(1, 9), unique=True, max_size=8)


def side_by_side(old, new, grades, k):
    """Write the rows by hand."""
    rows = []
    for place in range(min(k, max(len(old), len(new)))):
        mine, its = ([*one, *[None] * 9][place] for one in (old, new))
        moved = old.index(its) - place if its in old else None
        rows.append((place + 1, mine, grades.get(mine), its, grades.get(its), moved))
    return rows


@given(ITEMS, ITEMS, st.dictionaries(st.integers(1, 9), st.integers(0, 3)), st.integers(1, 9))
@settings(deadline=None, max_examples=reference.drawn(80))
def test_lists_are_those_of_plain_python(old, new, grades, k):
    if not (old or new):
        return
    # a second user, of the same items, must not be seen
    tables = [(1, "old", old), (1, "new", new), (2, "old", [9, 1]), (2, "new", [1, 9])]
    rows = [
        (model, user, item, -float(place))
        for user, model, items in tables
        for place, item in enumerate(items)
    ]
    schema = ["model", "user", "item", "score"]
    run = pl.DataFrame(rows, schema=schema, orient="row").sample(fraction=1, shuffle=True, seed=k)
    truth = pl.DataFrame(
        [(1, 99, 0), (2, 1, 3), *((1, item, grade) for item, grade in grades.items())],
        schema=["user", "item", "relevance"],
        orient="row",
    )
    got = rf.runs.side_by_side(run, 1, k, truth=truth, baseline="old")
    assert got.columns == ["rank", "old", "old_grade", "new", "new_grade", "moved"]
    assert got.rows() == side_by_side(old, new, grades, k)
    assert rf.runs.side_by_side(
        rf.with_rank(run, by="model"), 1, k, truth=truth, baseline="old"
    ).equals(got)


def test_side_by_side_of_a_dict_a_table_and_a_judged_table():
    expected = rf.runs.side_by_side(RUNS, 1, truth=TRUTH, baseline="old")
    assert expected.rows() == WORKED
    run = rf.runs.stack(RUNS)
    assert_frame_equal(run.rank.runs.side_by_side(1, 10, truth=TRUTH, baseline="old"), expected)
    judged = rf.judge(run, TRUTH, by="model")
    assert_frame_equal(rf.runs.side_by_side(judged, 1, baseline="old"), expected)


def test_lists_without_a_truth_have_no_grades():
    assert rf.runs.side_by_side(RUNS, 1, baseline="old").columns == ["rank", "old", "new", "moved"]


def test_side_by_side_of_one_list_needs_no_system():
    assert rf.runs.side_by_side(OLD, 1, 2).rows() == [(1, "a"), (2, "b")]
    assert rf.runs.side_by_side(OLD, 1, 1, truth=TRUTH).columns == ["rank", "item", "grade"]
    assert rf.runs.side_by_side({"old": OLD}, 1, 1).columns == ["rank", "old"]


def test_item_moves_within_the_whole_list_of_the_baseline():
    got = rf.runs.side_by_side(RUNS, 1, 1, baseline="old")
    assert got.rows() == [(1, "a", "c", 2)]


def test_systems_that_are_not_named_come_in_the_order_of_the_dict_or_of_their_names():
    assert rf.runs.side_by_side(RUNS, 1).columns == ["rank", "old", "new", "moved"]
    assert rf.runs.side_by_side(RUNS, 1, baseline="new").columns == ["rank", "new", "old", "moved"]
    text = pl.concat(run.with_columns(model=pl.lit(name)) for name, run in RUNS.items())
    assert rf.runs.side_by_side(text, 1).columns == ["rank", "new", "old", "moved"]


def test_side_by_side_keeps_two_of_three_systems():
    run = rf.runs.stack({**RUNS, "other": NEW})
    with pytest.raises(ValueError, match="there are 3, 'old', 'new', 'other': keep two") as error:
        rf.runs.side_by_side(run, 1, baseline="old")
    kept = eval(str(error.value).partition("such as ")[2], {"run": run, "pl": pl})
    assert rf.runs.side_by_side(kept, 1, baseline="new").columns == ["rank", "new", "old", "moved"]


def test_user_of_one_system_has_nulls_in_the_other():
    got = rf.runs.side_by_side(RUNS, 2, truth=TRUTH, baseline="old")
    assert got.rows() == [(1, "a", 1, None, None, None)]
    got = rf.runs.side_by_side(RUNS, 3, truth=TRUTH, baseline="old")
    assert got.rows() == [(1, None, None, "b", None, None)]


def test_text_of_the_catalogue_rides_along():
    items = pl.DataFrame({"item": [*"abc"], "title": [*"ABC"], "year": 2026, "tags": [[""]] * 3})
    got = rf.runs.side_by_side(RUNS, 1, 2, truth=TRUTH, baseline="old", items=items)
    assert got.columns[1:7] == ["old", "old_title", "old_grade", "new", "new_title", "new_grade"]
    assert got["old_title"].to_list() == ["A", "B"]
    assert rf.runs.side_by_side(OLD, 1, 1, items=items).rows() == [(1, "a", "A")]
    with pytest.raises(rf.RankingDataError, match="duplicate"):
        rf.runs.side_by_side(OLD, 1, 1, items=pl.concat([items, items]))


def test_folds_have_lists_of_their_own():
    run = pl.concat([OLD.with_columns(fold=1), NEW.with_columns(fold=2)])
    run = pl.concat([run.with_columns(model=pl.lit(name)) for name in ("x", "y")])
    truth = TRUTH.with_columns(fold=2)
    got = rf.runs.side_by_side(run, 1, 1, truth=truth, by=["model", "fold"], baseline="x")
    assert got.rows() == [(1, 1, "a", None, "a", None, 0), (2, 1, "c", 2, "c", 2, 0)]


def test_user_comes_by_position():
    with pytest.raises(TypeError, match=r"needs a user, by position .* side_by_side\(frame, 7\)"):
        rf.runs.side_by_side(pl.DataFrame(), user=1)


@pytest.mark.parametrize("dtype", [pl.Categorical, pl.Enum(["1", "2", "3"]), pl.UInt8, pl.Float64])
def test_ids_of_users_have_any_type(dtype):
    text = not pl.Series([], dtype=dtype).dtype.is_numeric()
    runs = {
        name: run.with_columns(
            pl.col("user").cast(pl.String).cast(dtype) if text else pl.col("user").cast(dtype)
        )
        for name, run in RUNS.items()
    }
    user = "1" if text else 1
    assert rf.runs.side_by_side(runs, user, baseline="old")["old"].to_list() == ["a", "b", "c"]


def test_systems_have_any_type():
    run = pl.concat([OLD.with_columns(model=1), NEW.with_columns(model=2)])
    assert rf.runs.side_by_side(run, 1, baseline=2).columns == ["rank", "2", "1", "moved"]
    of_text = rf.runs.stack(RUNS).with_columns(pl.col("model").cast(pl.Categorical))
    assert rf.runs.side_by_side(of_text, 1, baseline="old")["new"].to_list() == ["c", "a", "d"]


@pytest.mark.parametrize(
    ("user", "options"),
    [
        (9, {}),
        ("1", {}),
        (1, {"baseline": "odl"}),
        (1, {"k": 0}),
    ],
)
def test_side_by_side_refuses_what_it_cannot_show(user, options, refused):
    refused(rf.runs.side_by_side, RUNS, user, **options)


def test_system_none_cannot_be_named(refused):
    refused(rf.runs.side_by_side, OLD, 1, baseline="old")


@pytest.mark.parametrize("name", ["rank", "moved", "old_grade"])
def test_system_named_like_a_column_that_is_made_raises(name, refused):
    refused(rf.runs.side_by_side, {"old": OLD, name: NEW}, 1, truth=TRUTH, baseline="old")


def test_bad_rows_of_the_user_raise_and_those_of_others_do_not(refused):
    bad = OLD.with_columns(rank=pl.Series([1, 2, 2, 0]))
    refused(rf.runs.side_by_side, bad, 1)
    refused(rf.runs.side_by_side, bad, 2)
    assert rf.runs.side_by_side(OLD.with_columns(rank=pl.Series([1, 2, 3, 0])), 1).height == 3
    refused(rf.runs.side_by_side, OLD.with_columns(tied=1), 1)
    refused(lambda: rf.runs.side_by_side(rf.runs.stack(RUNS).clear(), 1))


def test_item_of_several_subtopics_is_shown_once():
    truth = pl.DataFrame(
        {"user": 1, "item": ["c", "c"], "subtopic": ["x", "y"], "relevance": [1, 2]}
    )
    assert rf.runs.side_by_side(OLD, 1, truth=truth)["grade"].to_list() == [None, None, 2]
    assert rf.runs.side_by_side(rf.judge(OLD, truth), 1)["grade"].to_list() == [None, None, 2]


def test_text_of_the_query_comes_first():
    queries = pl.DataFrame({"user": [1, 3], "text": ["red shoes", "boots"], "hits": [7, 8]})
    got = rf.runs.side_by_side(RUNS, 1, 2, truth=TRUTH, baseline="old", queries=queries)
    assert got.columns[:3] == ["text", "rank", "old"]
    assert got["text"].to_list() == ["red shoes"] * 2
    plain = rf.runs.side_by_side(RUNS, 1, 2, truth=TRUTH, baseline="old")
    assert_frame_equal(got.drop("text"), plain)
    lazy = rf.runs.side_by_side(OLD.lazy(), 2, queries=queries.lazy()).collect()
    assert lazy.rows() == [(None, 1, "a")]  # the table lacks the query


@pytest.mark.parametrize(
    "queries",
    [
        pl.DataFrame({"query": [1], "text": ["shoes"]}),
        pl.DataFrame({"user": [1], "hits": [2]}),
        pl.DataFrame({"user": [1, 1], "text": ["shoes", "boots"]}),
        pl.DataFrame({"user": [1, None], "text": ["shoes", "boots"]}),
        pl.DataFrame({"user": ["1"], "text": ["shoes"]}),
        pl.DataFrame({"user": [1], "text": ["a"]}).clear(),
        pl.DataFrame({"user": [1], "moved": ["a"]}),
    ],
)
def test_queries_that_cannot_be_read_raise(queries, refused):
    refused(rf.runs.side_by_side, RUNS, 1, queries=queries)
    if "moved" not in queries:
        refused(rf.report, RUNS, "rr", truth=TRUTH, baseline="old", queries=queries)


def test_dict_of_texts_names_the_frame_to_pass():
    queries = {1: "red shoes"}
    with pytest.raises(TypeError, match="queries= is a dict, not a frame") as caught:
        rf.runs.side_by_side(RUNS, 1, queries=queries)
    cure = str(caught.value).partition("pass ")[2]
    got = rf.runs.side_by_side(RUNS, 1, queries=eval(cure, {"pl": pl, "queries": queries}))
    assert got["text"].to_list()[0] == "red shoes"
    with pytest.raises(TypeError, match=r"dict of columns, not a frame: pass pl.DataFrame\(quer"):
        rf.runs.side_by_side(RUNS, 1, queries={"user": [1], "text": ["a"]})


def test_user_of_several_columns_is_a_tuple_or_a_dict():
    site = pl.lit("a").alias("site")
    runs = {name: run.with_columns(site) for name, run in RUNS.items()}
    truth = TRUTH.with_columns(site)
    queries = pl.DataFrame({"site": ["a"], "user": [1], "text": ["red shoes"]})
    asked = {"truth": truth, "baseline": "old", "queries": queries, "user": ["site", "user"]}
    got = rf.runs.side_by_side(runs, ("a", 1), **asked)
    assert got["text"].to_list()[0] == "red shoes"
    plain = rf.runs.side_by_side(RUNS, 1, truth=TRUTH, baseline="old")
    assert_frame_equal(got.drop("text"), plain)
    assert_frame_equal(rf.runs.side_by_side(runs, {"user": 1, "site": "a"}, **asked), got)
    with pytest.raises(ValueError, match="user 1: name a value of each column of user="):
        rf.runs.side_by_side(runs, 1, **asked)
