"""Who counts in a judged table: its rows decide, once per call."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

import rankframe as rf

SHOWN = pl.DataFrame({"user": [1, 1, 2, 2, 3, 3, 4, 4], "item": [*"abababab"], "rank": [1, 2] * 4})
CLICKS = pl.DataFrame({"user": [1, 2], "item": ["a", "b"], "relevance": [1, 1]})
CLICKED = SHOWN.join(CLICKS, on=["user", "item"], how="left")
GRADED = CLICKED.with_columns(pl.col("relevance").fill_null(0))
WARNED = r"2 of 4 users have (judged items, none relevant|no relevant item): each counts as 0; "


def systems():
    """Return 50 questions of two systems; one has no hit for half of them."""
    grades = [int((q * 7 + i * 3) % 10 < 3) for q in range(50) for i in range(3)]
    good = pl.DataFrame(
        {
            "user": [q for q in range(50) for _ in range(3)],
            "item": [0, 1, 2] * 50,
            "rank": [1, 2, 3] * 50,
            "relevance": grades,
        }
    )
    bad = good.with_columns(relevance=pl.when(pl.col("user") < 25).then(0).otherwise("relevance"))
    return pl.concat(
        [good.with_columns(model=pl.lit("good")), bad.with_columns(model=pl.lit("bad"))]
    )


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("table", [CLICKED, GRADED], ids=["null", "0"])
def test_users_of_retrieved_rows_count(table, lazy):
    frame = table.lazy() if lazy else table
    with pytest.warns(rf.errors.RankingWarning, match=WARNED + "users='truth' leaves them out"):
        got = rf.evaluate(frame, "hit@2", "rr", "recall@2", "ap", "precision@2").lazy().collect()
    assert got.row(0) == (4, 0.5, 0.375, 0.5, 0.375, 0.25)
    assert rf.evaluate(table, "hit@2", "rr", users="truth").row(0) == (2, 1.0, 0.75)


def test_unjudged_item_is_a_miss_or_is_dropped():
    with pytest.warns(rf.errors.RankingWarning, match=WARNED):
        got = rf.evaluate(CLICKED, "rr", "hit@1", unjudged="drop")
    assert got.row(0) == (4, 0.5, 0.5)


def test_worst_value_is_that_of_the_metric():
    labels = ["e@2", "ndcg@2", "mean_hit_rank", "hit@2"]
    words = "each counts as 0, and as 1 in 'e@2', and as null in 'mean_hit_rank'; users='truth'"
    with pytest.warns(rf.errors.RankingWarning, match=words):
        got = rf.per_user(GRADED, *labels)
    assert got.filter(pl.col("user") > 2).rows() == [
        (3, 1.0, 0.0, None, 0.0),
        (4, 1.0, 0.0, None, 0.0),
    ]
    labels = ["kendall_tau_b", "mcc(collection=9)", "hit@2"]  # no -1 for what nobody put in order
    with pytest.warns(
        rf.errors.RankingWarning, match="each counts as null, and as 0 in 'hit@2'; users"
    ):
        got = rf.per_user(GRADED, *labels)
    assert got.filter(pl.col("user") > 2).rows() == [(u, None, None, 0.0) for u in (3, 4)]
    labels = ["e@2", "ndcg@2", "mean_hit_rank", "hit@2"]
    with pytest.warns(rf.errors.RankingWarning, match="each counts as 0.25"):
        filled = rf.per_user(GRADED, *labels, undefined=0.25)
    assert filled.filter(pl.col("user") > 2).rows() == [(u, *[0.25] * 4) for u in (3, 4)]


def test_user_with_a_relevant_item_keeps_an_undefined_value():
    all_liked = GRADED.with_columns(relevance=(pl.col("user") < 3).cast(pl.Int64))
    with pytest.warns(rf.errors.RankingWarning, match=WARNED):
        got = rf.per_user(all_liked, "auc")
    assert got["auc"].to_list() == [None, None, 0.0, 0.0]


def test_label_with_its_own_level_has_its_own_users_without_a_relevant_item():
    with pytest.warns(rf.errors.RankingWarning, match=WARNED):
        got = rf.per_user(GRADED, "hit(rel=2)@2", "hit@2")
    assert got["hit(rel=2)@2"].to_list() == [0.0] * 4
    with pytest.warns(rf.errors.RankingWarning, match="4 of 4 users"):
        assert rf.evaluate(GRADED, "hit@2", relevant_at=2).row(0) == (4, 0.0)


@pytest.mark.parametrize("lazy", [False, True])
def test_half_of_the_questions_of_a_broken_system_count(lazy):
    table = systems()
    lost = table.group_by("user", "model").agg(pl.col("relevance").max())
    number = lost.filter(pl.col("relevance") == 0)["user"].n_unique()
    words = f"{number} of 50 users have judged items, none relevant, in a group of 'model'"
    labels = ["precision@3", "hit@3"]
    with pytest.warns(rf.errors.RankingWarning, match=words) as warned:
        got = rf.evaluate(table.lazy() if lazy else table, *labels, by="model").lazy().collect()
    assert len(warned) == 1
    want = rf.evaluate(table, *labels, by="model", users="all", undefined=0.0)
    assert_frame_equal(got, want)
    with pytest.warns(rf.errors.RankingWarning, match=words):
        compared = rf.compare(table, "precision@3", baseline="good", details=True)
    assert compared["verdict"].item() == "worse"
    with pytest.warns(rf.errors.RankingWarning, match=words):
        assert not rf.gate(table, "precision@3", baseline="good", undecided="pass")["passed"].item()
    named = dict(
        zip(("good", "bad"), table.partition_by("model", maintain_order=True), strict=True)
    )
    named = {name: frame.drop("model") for name, frame in named.items()}
    with pytest.warns(rf.errors.RankingWarning, match=words):
        assert_frame_equal(rf.evaluate(named, *labels).sort("model"), want)


@pytest.mark.parametrize("lazy", [False, True])
def test_judged_row_without_a_rank_decides_for_all_systems(lazy):
    run = SHOWN.with_columns(model=pl.lit("a"))
    truth = CLICKS.vstack(pl.DataFrame({"user": [1], "item": ["z"], "relevance": [1]}))
    table = rf.judge(run.lazy() if lazy else run, truth, by="model")
    labels = ["hit@2", "recall@2", "ndcg@2", "e@2"]
    got = rf.evaluate(table, *labels, by="model").lazy().collect()
    assert_frame_equal(got, rf.evaluate(run, *labels, truth=truth, by="model"))
    assert got["users"].item() == 2


def test_lists_judged_by_themselves_beside_one_miss_are_named():
    missed = pl.DataFrame({"user": [1], "item": ["z"], "rank": [None], "relevance": [1]})
    table = GRADED.vstack(missed.cast(dict(GRADED.schema)))
    words = "2 of 4 users have judged items, none relevant, and are left out, such as 3"
    with pytest.warns(rf.errors.RankingWarning, match=words):
        assert rf.evaluate(table, "hit@2").row(0) == (2, 1.0)
    assert rf.evaluate(table, "hit@2", users="truth").row(0) == (2, 1.0)


def test_user_who_is_left_out_of_many_is_named():
    shown = pl.DataFrame({"user": range(200), "item": "a", "rank": 1, "relevance": 1})
    rows = {"user": [200, 0], "item": ["a", "z"], "rank": [1, None], "relevance": [0, 1]}
    words = "1 of 201 users has judged items, none relevant, and is left out, such as 200"
    with pytest.warns(rf.errors.RankingWarning, match=words):
        assert rf.evaluate(shown.vstack(pl.DataFrame(rows, shown.schema)), "hit@2").row(0) == (
            200,
            1.0,
        )


def test_excluded_item_is_not_missed_by_the_lists():
    with pytest.warns(rf.errors.RankingWarning, match=WARNED):
        got = rf.evaluate(GRADED, "hit@2", exclude=CLICKS.filter(user=1).drop("relevance"))
    assert got.row(0) == (4, 0.25)


def test_parts_of_a_judged_table_need_users():
    with pytest.raises(
        ValueError, match="parts of a judged table.*pass users='all', undefined=0.0"
    ):
        rf.parts.sums(GRADED, "hit@2")
    small = rf.parts.sums(GRADED, "hit@2", users="all", undefined=0.0)
    assert rf.parts.combine(small).row(0) == (4, 0.5)


def test_recall_of_retrieved_rows_has_a_note():
    table = systems()
    note = "no relevant item is known beyond the lists"
    labels = ["recall@2", "r_precision", "precision@2", "all@3", "f1@2", "e@2"]
    for users in ("truth", "all"):
        options = {"by": "model", "users": users, "undefined": 0.0}
        results = [
            rf.summarize(table, *labels, **options),
            rf.compare(table, *labels, baseline="good", users=users, undefined=0.0),
            rf.gate(table, *labels, baseline="good", undecided="pass", users=users, undefined=0.0),
        ]
        for result in results:
            noted = result.filter(pl.col("note").str.contains(note, literal=True))["metric"]
            assert {*noted} == {*labels} - {"precision@2"}
    missed = {"user": 1, "item": 9, "rank": None, "relevance": 1, "model": "bad"}
    more = table.vstack(pl.DataFrame([missed], schema=table.schema))
    assert (
        not rf.summarize(more, "recall@2", by="model", users="truth")["note"]
        .str.contains(note)
        .any()
    )


def test_report_names_the_users_without_a_relevant_item():
    table = systems()
    with pytest.warns(rf.errors.RankingWarning, match="of 50 users"):
        verdict = str(rf.report(table, "precision@3", baseline="good").verdict)
    assert "users have judged items, none relevant, and count with the worst value." in verdict
    assert "bad is worse" in verdict
    verdict = str(rf.report(table, "precision@3", baseline="good", users="truth").verdict)
    assert "users have judged items, none relevant, and are left out." in verdict


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.evaluate(GRADED, "rr"),
        lambda: rf.evaluate(GRADED.lazy(), "rr").collect(),
        lambda: rf.evaluate(GRADED.lazy(), "rr").collect(engine="streaming"),
        lambda: rf.per_user(GRADED, "rr"),
        lambda: rf.summarize(GRADED, "rr"),
        lambda: rf.gate(GRADED, "rr", at_least=0.1),  # which reads the table twice
        lambda: rf.report(GRADED, "rr"),
    ],
)
def test_call_warns_once_at_the_line_of_the_caller(call):
    """Also where polars calls us from a thread of its own, which has no caller."""
    for _ in range(3):
        with pytest.warns(rf.errors.RankingWarning) as warned:
            call()
        (warning,) = warned
        place = warning.filename, warning.lineno
        assert place == (__file__, call.__code__.co_firstlineno)
