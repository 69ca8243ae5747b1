"""Dicts of users: what from_scores, from_grades and from_lists read, and verbs in their place."""

import numpy as np
import polars as pl
import pytest
from two_models import assert_equal

import rankframe as rf

SCORES = {"q1": {"a": 0.9, "b": 0.5}, "q2": {"a": 1, "c": 0.1}}
LISTS = {"q1": ["a", "b"], "q2": ("a", "c")}
GRADES = {"q1": {"b": 2, "c": 1, "a": 0}, "q2": {"a": 1}, "q3": {"z": 1}}
RELEVANT = {"q1": ["b", "c"], "q2": ["a"], "q3": ["z"]}
RAG = pl.DataFrame(
    {
        "question": ["q1", "q2", "q3"],
        "retrieved": [["a", "b"], ["a", "c"], ["x"]],
        "expected": [["b", "c"], ["a"], ["z"]],
    }
)
LABELS = ["ndcg@2", "map", "recall@1"]


def test_constructors():
    assert rf.from_scores(SCORES).rows() == [
        ("q1", "a", 0.9),
        ("q1", "b", 0.5),
        ("q2", "a", 1.0),
        ("q2", "c", 0.1),
    ]
    assert rf.from_scores(SCORES, user="q", item="d", score="s").columns == ["q", "d", "s"]
    assert rf.from_lists(LISTS, user="q").rows() == [
        ("q1", "a", 1),
        ("q1", "b", 2),
        ("q2", "a", 1),
        ("q2", "c", 2),
    ]
    assert rf.from_grades(GRADES).columns == ["user", "item", "relevance"]
    assert rf.from_grades(RELEVANT).columns == ["user", "item"]
    sets = {user: {*items} for user, items in RELEVANT.items()}
    assert rf.from_grades(sets).rows() == rf.from_grades(RELEVANT).rows()
    for empty in (rf.from_scores({}), rf.from_scores({"q": {}}), rf.from_lists({"q": []})):
        assert empty.is_empty()


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.int64, np.float16])
def test_scalars_of_numpy_are_numbers(kind):
    run = rf.from_scores({np.int64(1): {7: kind(2), 8: 1.5, 9: 1, 6: None}})
    assert run["score"].to_list() == [2, 1.5, 1, None]
    assert run.schema == {"user": pl.Int64, "item": pl.Int64, "score": pl.Float64}


@pytest.mark.parametrize("run", [SCORES, LISTS, rf.from_lists(LISTS, user="qid", item="docid")])
@pytest.mark.parametrize("truth", [GRADES, RELEVANT, rf.from_grades(GRADES)])
def test_verb_takes_what_the_constructors_take(run, truth):
    graded = truth is not RELEVANT
    if not isinstance(run, dict) and not isinstance(truth, dict):
        run = run.rename({"qid": "user", "docid": "item"})
    expected = rf.evaluate(
        rf.from_lists(LISTS), *LABELS, truth=rf.from_grades(GRADES if graded else RELEVANT)
    )
    assert_equal(rf.evaluate(run, *LABELS, truth=truth), expected)
    assert_equal(rf.evaluate(run, LABELS[:2], LABELS[2], truth=truth), expected)


def test_names_of_roles_are_those_of_the_call():
    names = {"user": "query", "item": "doc"}
    judged = rf.judge(SCORES, GRADES, **names)
    assert judged.columns == ["query", "doc", "rank", "relevance", "score"]
    values = rf.per_user(LISTS, "rr", truth=GRADES, relevance="grade", rank="place", **names)
    assert values.columns == ["query", "rr"]


def test_verbs_take_dicts_by_name():
    lists = {"q1": ["b", "a"], "q2": ["c"]}
    frames = {"scores": rf.from_scores(SCORES), "lists": rf.from_lists(lists)}
    frames["frame"] = frames["scores"]
    runs = {"scores": SCORES, "lists": lists, "frame": frames["frame"]}
    truth = rf.from_grades(GRADES)
    for verb in (rf.evaluate, rf.summarize, rf.compare, rf.table):
        got, expected = (
            verb(run, "ndcg@2", "rr", truth=judgments)
            for run, judgments in ((runs, GRADES), (frames, truth))
        )
        if verb is rf.table:
            got, expected = got.frame, expected.frame
        assert_equal(got, expected)
    assert rf.health(runs, truth=GRADES).equals(rf.health(frames, truth=truth))
    assert rf.check(runs, truth=GRADES).equals(rf.check(frames, truth=truth))
    assert rf.runs.rbo(SCORES, LISTS)["rbo"].to_list() == [1.0, 1.0]
    meter = rf.Meter(["ndcg@2", "rr"])
    meter.update(runs, GRADES)
    assert_equal(meter.compute(), rf.evaluate(frames, "ndcg@2", "rr", truth=truth))


def test_user_without_items_has_no_row():
    run, truth = {**SCORES, "q3": {}}, {**GRADES, "q4": {}}
    expected = rf.evaluate(SCORES, "rr", truth=GRADES)
    assert_equal(rf.evaluate(run, "rr", truth=truth), expected)


@pytest.mark.parametrize("form", ["eager", "lazy", "pandas", "dict"])
def test_columns_of_lists(form):
    frame = {"eager": RAG, "lazy": RAG.lazy(), "dict": RAG}.get(form)
    frame = RAG.to_pandas() if form == "pandas" else frame
    names = {"user": "question", "item": "retrieved"}
    expected = rf.per_user(LISTS | {"q3": ["x"]}, "recall@5", "rr", truth=RELEVANT)
    for truth in ("expected", RELEVANT, rf.from_grades(RELEVANT, user="question")):
        runs = {"rag": frame} if form == "dict" else frame
        values = rf.per_user(runs, "recall@5", "rr", truth=truth, **names)
        values = pl.from_pandas(values) if form == "pandas" else values.lazy().collect()
        assert values.columns == ["model"] * (form == "dict") + ["question", "recall@5", "rr"]
        assert values.drop("model", strict=False).rows() == expected.rows()
    if form != "lazy":
        meter = rf.Meter("recall@5", users="truth", **names)
        meter.update(runs, "expected")
        assert [*pl.DataFrame(meter.compute()).rows()[0]][-2:] == [3, 0.5]


REFUSALS = [
    (lambda: rf.from_scores({"q": ["a"]}), "the dict has lists: rf.from_lists makes a run"),
    (lambda: rf.from_lists({"q": {"a": 1}}), "number per item: rf.from_scores makes a run"),
    (lambda: rf.from_lists({"q": {"a"}}), "sets, which have no order: rf.from_grades makes"),
    (lambda: rf.from_grades({"m": {"q": {"a": 1}}}), "the dict has dicts of users: only the run"),
    (lambda: rf.from_grades({"q": ["a"], "r": {"a": 1}}), "the dict has dict, list: rf.from_sco"),
    (lambda: rf.evaluate({"q": ["a"], "r": {"a": 1}}, "rr", truth=GRADES), "run: the dict has d"),
    (lambda: rf.evaluate({"q": {"a"}}, "rr", truth=GRADES), "run: the dict has sets, which have"),
    (lambda: rf.evaluate({"x": {"m": SCORES}}, "rr", truth=GRADES), "run: the dict has dicts of"),
    (lambda: rf.evaluate(SCORES, "rr", truth={"m": GRADES}), "truth: the dict has dicts of users"),
    (lambda: rf.evaluate(SCORES, "rr", truth={"m": RAG}), "truth: the dict has polars DataFrame"),
    (lambda: rf.evaluate(LISTS, "rr", truth=GRADES, exclude={"q": {"a"}}), "rf.from_grades makes"),
    (lambda: rf.from_scores(SCORES, k=3), "k= is for a matrix: leave it out for a dict"),
    (lambda: rf.from_lists(LISTS, score="s"), "leave out all but user=, item="),
    (lambda: rf.evaluate({"q": ["a", 1]}, "rr", truth=GRADES), "items int, str: each needs one"),
    (lambda: rf.evaluate(LISTS | {1: ["a"]}, "rr", truth=GRADES), "users are int, str and items"),
    (
        lambda: rf.evaluate(RAG, "rr", truth="expected"),
        "no column 'item' for item; it has 'question'",
    ),
    (lambda: rf.evaluate(RAG, "rr", truth="gold"), "not str: read the file, as in pl.read_parquet"),
]


@pytest.mark.parametrize(("call", "message"), REFUSALS)
def test_objects_that_are_neither_name_the_constructor(call, message):
    with pytest.raises((TypeError, ValueError)) as raised:
        call()
    assert message in str(raised.value)


@pytest.mark.parametrize("falls", [True, False])
@pytest.mark.parametrize("tie", [0, 3])
def test_order_of_users_and_items_in_a_dict_changes_nothing(falls, tie):
    names = [f"d{i}" for i in range(9)]
    scores = {u: [(i * 7 + u) % 9 // (1 + tie) for i in range(9)] for u in range(40)}
    run = {f"u{u}": dict(zip(names, map(float, row), strict=True)) for u, row in scores.items()}
    if falls:  # as with_rank puts them
        run = {
            user: {d: s for s, d in sorted(((s, d) for d, s in row.items()), reverse=True)}
            for user, row in run.items()
        }
    truth = {user: {"d4": 1, "d7": 2} for user in run}
    mixed = {user: run[user] for user in sorted(run, key=lambda user: (len(user), user[::-1]))}
    labels = ["ndcg@3", "ap", "err", "ndcg(gain=exponential)@5"]
    expected = rf.per_user(rf.from_scores(run), *labels, truth=truth)
    assert_equal(rf.per_user(run, *labels, truth=truth), expected)
    assert_equal(rf.per_user(mixed, *labels, truth=truth), expected)
