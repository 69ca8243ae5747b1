"""Equal scores by grade: the lowest first, or the highest, in each kind of table."""

import pandas
import polars as pl
import pytest
from commands import said_by
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe._command.main import main

RUN = pl.DataFrame(
    {"user": [1] * 5 + [2] * 3, "item": [*"abcde", *"abc"], "score": [2, 2, 2, 2, 1, 1, 1, 1]}
)
#: c is not judged, and d is below 0: both have grade 0, and d, the greater id, comes first
TRUTH = pl.DataFrame(
    {"user": [1, 1, 1, 1, 2], "item": [*"abdea"], "relevance": [1, 3, -2, 4, 1]},
)
RANKS = {
    "pessimistic": [3, 4, 2, 1, 5, 3, 2, 1],
    "optimistic": [2, 1, 4, 3, 5, 1, 3, 2],
}
JUDGED = RUN.join(TRUTH, on=["user", "item"], how="left", maintain_order="left")


def scores(frame):
    return {
        user: dict(rows.select("item", "score").rows())
        for (user,), rows in frame.partition_by("user", as_dict=True).items()
    }


#: the run and the truth in other shapes, and what names their columns
SHAPES = {
    "eager": (RUN, TRUTH, {}),
    "lazy": (RUN.lazy(), TRUTH.lazy(), {}),
    "lazy run": (RUN.lazy(), TRUTH, {}),
    "dict of users": (scores(RUN), {1: {"a": 1, "b": 3, "e": 4}, 2: {"a": 1}}, {}),
    "other types": (RUN, TRUTH.with_columns(pl.col("user").cast(pl.Int16)), {}),
    "float grades": (RUN, TRUTH.with_columns(pl.col("relevance") / 4), {}),
    "decimal grades": (RUN, TRUTH.cast({"relevance": pl.Decimal(6, 2)}), {}),
    "subtopics": (
        RUN,
        pl.concat(TRUTH.with_columns(pl.col("relevance") - n, subtopic=n) for n in range(2)),
        {},
    ),
    "other names": (
        RUN.rename({"user": "visit", "score": "logit"}),
        TRUTH.rename({"user": "u", "relevance": "stars"}),
        {"user": "visit", "score": "logit", "truth_user": "u", "relevance": "stars"},
    ),
    "a truth wins over a column": (RUN.with_columns(relevance=7), TRUTH, {}),
    "a rank is replaced": (RUN.with_columns(rank=1, tied=1), TRUTH, {}),
    "two columns are the user": (
        RUN.with_columns(wiki=pl.lit("en")),
        TRUTH.with_columns(wiki=pl.lit("en")),
        {"user": ["wiki", "user"]},
    ),
    "grades of its own": (JUDGED, None, {}),
    "a label": (JUDGED.rename({"relevance": "label"}).lazy(), None, {}),
    "stars": (JUDGED.rename({"relevance": "stars"}), None, {"relevance": "stars"}),
}


@pytest.mark.parametrize("ties", RANKS)
@pytest.mark.parametrize("shape", SHAPES)
def test_ranks_by_hand(shape, ties):
    run, truth, names = SHAPES[shape]
    got = rf.with_rank(run, ties=ties, truth=truth, **names).lazy().collect()
    if isinstance(run, pl.DataFrame | pl.LazyFrame):
        left = run.lazy().drop("rank", "tied", strict=False).collect()
        assert_frame_equal(got.drop("rank"), left, check_column_order=False)
    else:  # a dict has no order
        got = got.sort("user", "item")
    assert got["rank"].to_list() == RANKS[ties]


@pytest.mark.parametrize("ties", RANKS)
def test_pandas_keeps_its_index(ties):
    run = RUN.to_pandas().set_index(pandas.Index(range(10, 18)))
    for truth in (TRUTH, TRUTH.to_pandas()):
        got = rf.with_rank(run, ties=ties, truth=truth)
        assert got["rank"].to_list() == RANKS[ties]
        assert got.columns.to_list() == [*run.columns, "rank"]
        assert got.index.to_list() == run.index.to_list()


@pytest.mark.parametrize("ties", RANKS)
def test_rows_without_items_keep_their_order_where_grades_are_equal(ties):
    rows = JUDGED.drop("item")
    got = rf.with_rank(rows, ties=ties)
    assert_frame_equal(got.drop("rank"), rows)
    by_row = {"pessimistic": [3, 4, 1, 2, 5, 3, 1, 2], "optimistic": [2, 1, 3, 4, 5, 1, 2, 3]}
    assert got["rank"].to_list() == by_row[ties]
    assert rf.evaluate(got, "ndcg@2").equals(rf.evaluate(rf.with_rank(JUDGED, ties=ties), "ndcg@2"))


@pytest.mark.parametrize("ties", ["item", "order"])
def test_rows_without_items_keep_their_order_by_default(ties):
    rows = JUDGED.drop("item")
    for frame in (rows, rows.rename({"relevance": "label"})):
        got = rf.with_rank(frame, ties=ties)
        assert_frame_equal(got.drop("rank"), frame)
        assert got["rank"].to_list() == [1, 2, 3, 4, 5, 1, 2, 3]
    with pytest.raises(rf.RankingDataError, match="run: no column 'item' for item"):
        rf.with_rank(rows.drop("relevance"), ties=ties)


@pytest.mark.parametrize("ties", RANKS)
def test_groups_have_the_grades_that_the_truth_has(ties):
    days = pl.concat([RUN.with_columns(day=1), RUN.with_columns(day=2)])
    truths = TRUTH.with_columns(day=1), TRUTH.with_columns(day=2, relevance=-TRUTH["relevance"])
    # on the second day, only d is above 0
    second = {"pessimistic": [3, 2, 1], "optimistic": [3, 2, 1]}
    fourth = {"pessimistic": [3, 2, 1, 4, 5], "optimistic": [4, 3, 2, 1, 5]}
    got = rf.with_rank(days, by="day", ties=ties, truth=pl.concat(truths))
    assert got["rank"].to_list() == [*RANKS[ties], *fourth[ties], *second[ties]]
    shared = rf.with_rank(days, by="day", ties=ties, truth=TRUTH)
    assert shared["rank"].to_list() == RANKS[ties] * 2
    stacked = rf.with_rank({"A": RUN, "B": RUN}, ties=ties, truth=TRUTH)
    assert stacked["rank"].to_list() == RANKS[ties] * 2


@pytest.mark.parametrize("ties", RANKS)
def test_scores_that_32_bits_tie(ties):
    run = RUN.with_columns(pl.col("score") + pl.int_range(pl.len()) * 1e-9)
    got = rf.with_rank(run, ties=ties, truth=TRUTH, preset="trec_eval_9")
    assert got["rank"].to_list() == RANKS[ties]
    assert rf.with_rank(run, ties=ties, truth=TRUTH)["rank"].to_list() == [4, 3, 2, 1, 5, 3, 2, 1]


@pytest.mark.parametrize("ties", RANKS)
def test_distances_and_what_was_not_retrieved(ties):
    run = RUN.with_columns(-pl.col("score"))
    found = rf.with_rank(run, ties=ties, truth=TRUTH, descending=False)["rank"].to_list()
    assert found == RANKS[ties]
    without_b = RUN.with_columns(pl.when(pl.col("item") != "b").then("score"))
    got = rf.with_rank(without_b, ties=ties, truth=TRUTH)["rank"].to_list()
    ranks = {"pessimistic": [3, None, 2, 1, 4], "optimistic": [1, None, 3, 2, 4]}
    assert got[:5] == ranks[ties]


@pytest.mark.parametrize("kind", ["one table", "two files", "two systems"])
@pytest.mark.parametrize("ties", RANKS)
def test_command(kind, ties, tmp_path):
    files = {"run": JUDGED if kind == "one table" else RUN, "again": RUN, "truth": TRUTH}
    for name, frame in files.items():
        frame.write_csv(tmp_path / f"{name}.csv")
    names = {"one table": ["run"], "two files": ["run", "truth"]}.get(kind, [*files])
    paths = [str(tmp_path / f"{name}.csv") for name in names]
    out = tmp_path / "out.parquet"
    assert main(["evaluate", *paths, "-m", "ndcg@2", "--ties", ties, "--out", str(out)]) == 0
    expected = rf.evaluate(rf.with_rank(RUN, ties=ties, truth=TRUTH), "ndcg@2", truth=TRUTH)
    assert set(pl.read_parquet(out)["ndcg@2"]) == {expected["ndcg@2"].item()}
    if kind == "two files":
        said = said_by(["evaluate", paths[0], "-m", "num_ret", "--ties", ties])
        assert f"run: no grades, but --ties {ties} orders equal scores by them: name the" in said


OWN_RULES = {
    "a truth that nobody reads": (
        RUN,
        TRUTH,
        {"ties": "expected"},
        "with_rank(ties='expected') reads no grade: leave out truth=, or use 'pessimistic'",
    ),
    "close_gaps": (RUN, TRUTH, {"close_gaps": True}, "with_rank(close_gaps=True) reads the rank,"),
    "no common user": (
        RUN,
        TRUTH.with_columns(pl.col("user") + 7),
        {},
        "run, column 'user': no user of the run is in the truth, which has users like 8.",
    ),
    "ids of two types": (
        RUN,
        TRUTH.cast({"user": pl.String}),
        {},
        "column 'user': it is Int64 in the run and String in the truth: cast one",
    ),
    "a grade that is no number": (
        RUN,
        TRUTH.with_columns(relevance=float("nan")),
        {},
        "truth, column 'relevance': NaN or infinite relevance:",
    ),
    "an own grade that is no number": (
        JUDGED.with_columns(relevance=float("nan")),
        None,
        {},
        "run, column 'relevance': NaN or infinite relevance:",
    ),
    "an item judged twice": (
        RUN,
        pl.concat([TRUTH, TRUTH]),
        {},
        "truth, column 'item': duplicate (user, item):",
    ),
    "an empty truth": (RUN, TRUTH.clear(), {}, "truth: it is empty"),
    "grades under another name": (
        RUN,
        TRUTH.rename({"relevance": "stars"}),
        {},
        "truth, column 'stars': ratings but no relevance,",
    ),
    "an item twice in a list": (
        pl.concat([RUN, RUN]),
        TRUTH,
        {},
        "run, column 'item': duplicate (user, item):",
    ),
}


@pytest.mark.parametrize("broken", OWN_RULES)
@pytest.mark.parametrize("lazy", [False, True])
def test_broken_rules(broken, lazy):
    run, truth, options, says = OWN_RULES[broken]
    run, truth = (t.lazy() if lazy and t is not None else t for t in (run, truth))
    with pytest.raises((rf.RankingDataError, ValueError)) as error:
        rf.with_rank(run, truth=truth, **{"ties": "pessimistic", **options}).lazy().collect()
    assert str(error.value).startswith(says)


def test_cures_work():
    found = rf.with_rank(
        JUDGED.rename({"relevance": "useful"}), ties="pessimistic", relevance="useful"
    )["rank"].to_list()
    assert found == RANKS["pessimistic"]
    no_groups = RUN.with_columns(day=pl.col("user"), score=1)  # all scores are equal
    got = rf.with_rank(no_groups, by="day", ties="optimistic", truth=TRUTH)
    assert got["rank"].to_list()[5:] == RANKS["optimistic"][5:]
