"""Rows that leave the lists, ranks that move up, and gaps that stay or close."""

import random
from typing import get_args

import pandas
import polars as pl
import pytest
from kinds import eager, given
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
from rankframe._tables.rank_order import BY_GRADE, Ties

RUN = pl.DataFrame({"user": [1, 1, 1, 2, 2], "item": [*"abcab"], "rank": [1, 2, 3, 1, 2]})
TRUTH = pl.DataFrame({"user": [1, 2, 3], "item": [*"bba"], "relevance": [2, 1, 1]})
SEEN = pl.DataFrame({"user": [1, 2, 9], "item": [*"aaz"]})
METRICS = ["precision@2", "recall@1", "ap", "ndcg@3", "rr", "bpref", "judged@2", "num_retrieved"]


def drawn(seed, *, users=30, items=12):
    """Draw a run with scores and equal scores, a truth, and what users have seen."""
    draw = random.Random(seed)
    rows = [
        (user, item, draw.choice([0.25, 0.5, 0.75, draw.random()]))
        for user in range(users)
        for item in draw.sample(range(items), 8)
    ]
    run = pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")
    judged = [
        (user, item, draw.choice([-1, 0, 1, 1, 2]))
        for user in range(2, users + 2)
        for item in draw.sample(range(items), 5)
    ]
    truth = pl.DataFrame(judged, schema=["user", "item", "relevance"], orient="row")
    pairs = [(user, item) for user in range(users + 5) for item in draw.sample(range(items + 5), 3)]
    return run, truth, pl.DataFrame(pairs, schema=["user", "item"], orient="row")


def by_hand(run, seen, keys=("user",)):
    """Filter the lists and number them again, in plain Python."""
    gone = set(seen.select(*keys, "item").rows())
    lists = {}
    for row in sorted(run.rows(named=True), key=lambda row: row["rank"]):
        key = tuple(row[name] for name in keys)
        if (*key, row["item"]) not in gone:
            kept = lists.setdefault(key, [])
            kept.append({**row, "rank": len(kept) + 1})
    return pl.DataFrame([row for rows in lists.values() for row in rows], schema=run.schema)


def test_exclusion_of_a_worked_example():
    got = rf.per_user(RUN, "rr", "precision@1", truth=TRUTH, exclude=SEEN)
    assert got.rows() == [(1, 1.0, 1.0), (2, 1.0, 1.0), (3, 0.0, 0.0)]
    by_antijoin = RUN.join(SEEN, on=["user", "item"], how="anti")
    assert rf.per_user(by_antijoin, "rr", truth=TRUTH)["rr"].to_list() == [0.5, 0.5, 0.0]


@pytest.mark.parametrize("options", [{}, {"depth": 2}, {"unjudged": "drop"}, {"users": "run"}])
@pytest.mark.parametrize("seed", range(3))
def test_exclusion_is_what_filtering_by_hand_gives(seed, options):
    run, truth, seen = drawn(seed)
    ranked = rf.with_rank(run).drop("score")
    expected = rf.per_user(by_hand(ranked, seen), *METRICS, truth=truth, **options)
    for frame in (run, ranked, ranked.lazy(), ranked.sample(fraction=1, shuffle=True, seed=1)):
        got = rf.per_user(frame, *METRICS, truth=truth, exclude=seen, **options)
        assert_frame_equal(eager(got), expected)
    alone = ["num_retrieved", "list_length"][:1]
    got = rf.evaluate(run, *alone, truth=truth, exclude=seen, **options)
    assert_equal(got, rf.evaluate(by_hand(ranked, seen), *alone, truth=truth, **options))


def with_gaps(seed, *, blocks=False):
    """Draw ranks with gaps for the lists of two models, and what is excluded; maybe with blocks."""
    draw = random.Random(seed)
    rows, gone = [], []
    for model in "ab":
        for user in range(20):
            free, rank = [*range(12)], 0
            draw.shuffle(free)
            while len(free) > 4:
                rank += draw.choice([1, 1, 2, 4])
                size = draw.randint(1, 3) if blocks else 1
                held = draw.randint(1, size)  # a list that was cut inside a block has fewer items
                rows += [(model, user, free.pop(), rank, size) for _ in range(held)]
                rank += size - 1
    for user in range(5, 23):
        gone += [(user, item) for item in draw.sample(range(14), draw.randint(0, 5))]
    run = pl.DataFrame(rows, ["model", "user", "item", "rank", "tied"], orient="row")
    gone += gone[:3]  # twice in the table is once
    seen = pl.DataFrame(gone, ["user", "item"], orient="row")
    return (run if blocks else run.drop("tied")), seen


def moved_by_hand(run, seen):
    """Subtract from each rank the removed rows above, in plain Python; from a block its own."""
    gone, rows = set(seen.rows()), run.rows(named=True)
    lost = [r for r in rows if (r["user"], r["item"]) in gone]
    kept = []
    for row in rows:
        if row in lost:
            continue
        own = [r["rank"] for r in lost if (r["model"], r["user"]) == (row["model"], row["user"])]
        there = {"rank": row["rank"] - sum(rank < row["rank"] for rank in own)}
        if "tied" in row:
            there["tied"] = row["tied"] - own.count(row["rank"])
        kept.append({**row, **there})
    return pl.DataFrame(kept, schema=run.schema)


def test_lists_that_lose_nothing_do_not_change_and_gaps_stay():
    run = pl.DataFrame({"user": [1, 1, 2], "item": [*"aba"], "rank": [1, 3, 5]})
    truth = pl.DataFrame({"user": [1, 2], "item": [*"ba"]})
    plain = rf.per_user(run, "rr", truth=truth)
    assert plain["rr"].to_list() == [1 / 3, 1 / 5]
    nothing = pl.DataFrame({"user": [1], "item": ["zz"]})
    assert_equal(rf.per_user(run, "rr", truth=truth, exclude=nothing), plain)
    first = pl.DataFrame({"user": [1], "item": ["a"]})
    got = rf.per_user(run, "rr", truth=truth, exclude=first)
    assert got["rr"].to_list() == [1 / 2, 1 / 5]
    closed = rf.with_rank(run, close_gaps=True, exclude=first)
    assert closed.rows() == [(1, "b", 1), (2, "a", 1)]


@pytest.mark.parametrize("blocks", [False, True], ids=["ranks", "blocks"])
@pytest.mark.parametrize("seed", range(2))
def test_rank_falls_by_the_removed_rows_above_it(seed, blocks):
    run, seen = with_gaps(seed, blocks=blocks)
    expected = moved_by_hand(run, seen)
    assert not expected.equals(run)
    truth = drawn(seed)[1].select("user", "item", "relevance")
    for lists in (run, run.lazy(), run.sample(fraction=1, shuffle=True, seed=seed)):
        if not blocks:
            listed = eager(rf.metrics.rows(lists, by="model", exclude=seen))
            assert_frame_equal(listed.select(run.columns), expected, check_row_order=False)
        judged = eager(rf.judge(lists, truth, by="model", exclude=seen))
        places = judged.filter(pl.col("rank").is_not_null()).select(run.columns)
        assert_frame_equal(places, expected, check_row_order=False)
    names = ["precision@3", "ap", "ndcg@4", "rr"]
    options = {"truth": truth, "by": "model"}
    want = rf.per_user(expected, *names, **options)
    assert_frame_equal(rf.per_user(run, *names, exclude=seen, **options), want)
    judged = rf.judge(run, truth, by="model")
    assert_frame_equal(rf.per_user(judged, *names, by="model", exclude=seen), want)
    means = rf.evaluate(expected, *names, **options)
    assert_frame_equal(rf.evaluate(run, *names, exclude=seen, **options), means)
    known = {"by": "model", "facts": rf.parts.facts(run, truth=truth, by="model")}
    meter = rf.Meter(*names, exclude=seen, **known)
    small, users = [], range(40)
    for rest in range(3):
        of_part = pl.col("user").is_in([user for user in users if user % 3 == rest])
        part, judgments = run.filter(of_part), truth.filter(of_part)
        meter.update(part, judgments)
        known["part"] = str(rest)
        small.append(rf.parts.sums(part, *names, truth=judgments, exclude=seen, **known))
    assert_frame_equal(meter.compute(), means)
    assert_frame_equal(rf.parts.combine(small), means)


def test_ranks_of_scores_have_no_gaps_to_keep():
    run, truth, seen = drawn(8)
    ranked = rf.with_rank(run, exclude=seen).drop("score")
    expected = rf.per_user(ranked, *METRICS, truth=truth)
    assert_frame_equal(rf.per_user(run, *METRICS, truth=truth, exclude=seen), expected)


def test_ranks_that_misses_share_do_not_fall_below_1():
    """They break a rule that is checked on relevant rows alone."""
    run = pl.DataFrame({"user": [1, 1, 1, 2], "item": [*"abca"], "rank": [1, 1, 2, 1]})
    truth = pl.DataFrame({"user": [1, 2], "item": [*"ca"]})
    seen = pl.DataFrame({"user": [1, 1], "item": [*"ab"]})
    got = rf.per_user(run, "rr", truth=truth, exclude=seen)
    assert got.rows() == [(1, 1.0), (2, 1.0)]


@pytest.mark.parametrize("kind", ["eager", "lazy", "pandas"])
@pytest.mark.parametrize("made", ["judge and evaluate", "judged and evaluate", "judge"])
def test_judged_tables_lose_the_rows_too(made, kind):
    run, truth, seen = drawn(4)
    ranked = rf.with_rank(run).drop("score")
    expected = rf.evaluate(by_hand(ranked, seen), *METRICS, truth=truth)
    ranked, truth, seen = (given(frame, kind) for frame in (ranked, truth, seen))
    if made == "judge":
        judged = rf.judge(ranked, truth, exclude=seen)
        assert_frame_equal(eager(rf.evaluate(judged, *METRICS)), expected)
        again = eager(judged).lazy().collect()
        assert_frame_equal(rf.evaluate(again, *METRICS), expected)
        return
    judged = rf.judge(ranked, truth)
    if made == "judged and evaluate":
        judged = eager(judged).to_pandas() if kind == "pandas" else eager(judged)
    assert_frame_equal(eager(rf.evaluate(judged, *METRICS, exclude=seen)), expected)


def test_judged_table_with_subtopics():
    run = RUN.filter(user=1)
    truth = pl.DataFrame({"user": 1, "item": [*"abbc"], "subtopic": [*"xxyz"], "relevance": 1})
    kept = pl.DataFrame({"user": 1, "item": ["b", "c"], "rank": [1, 2]})
    names = ["alpha_ndcg@2", "subtopic_recall@1", "rr"]
    expected = rf.evaluate(kept, *names, truth=truth)
    assert_equal(rf.evaluate(run, *names, truth=truth, exclude=SEEN), expected)
    judged = rf.judge(run, truth)
    assert_equal(rf.evaluate(judged, *names, exclude=SEEN), expected)


def test_blocks_of_ties_are_counted_again():
    run, truth, seen = drawn(5)
    tied = rf.with_rank(run, ties="expected").drop("score")
    kept = run.join(seen, on=["user", "item"], how="anti")
    expected = rf.with_rank(kept, ties="expected")
    names = ["precision@3", "ap", "ndcg@4", "rr"]
    got = rf.per_user(tied, *names, truth=truth, exclude=seen)
    assert_frame_equal(got, rf.per_user(expected, *names, truth=truth))
    row = ["user", "item", "rank", "tied"]
    for frame in (
        rf.with_rank(run, ties="expected", exclude=seen),
        rf.with_rank(tied, close_gaps=True, exclude=seen),
        rf.with_rank(tied.join(seen, on=["user", "item"], how="anti"), close_gaps=True),
    ):
        assert_frame_equal(frame.select(row), expected.select(row))


def test_groups_are_excluded_by_themselves_where_the_table_has_the_column():
    runs = {"old": RUN, "new": RUN}
    of_old = SEEN.with_columns(model=pl.lit("old"))
    got = rf.evaluate(runs, "rr", truth=TRUTH, exclude=of_old)
    assert dict(zip(got["model"], got["rr"], strict=True)) == {
        "old": pytest.approx(2 / 3),
        "new": pytest.approx(1 / 3),
    }
    got = rf.evaluate(runs, "rr", truth=TRUTH, exclude=SEEN)
    assert got["rr"].to_list() == pytest.approx([2 / 3, 2 / 3])


def test_segments_that_the_truth_alone_has():
    truth = TRUTH.with_columns(country=pl.Series([*"xyy"]))
    got = rf.evaluate(RUN, "rr", truth=truth, exclude=SEEN, by="country")
    assert got.rows() == [("x", 1, 1.0), ("y", 2, 0.5)]


def test_bad_exclusion_is_seen_behind_a_lazy_judged_table():
    none = pl.DataFrame({"user": [1, None], "item": ["a", "a"]})
    judged = rf.judge(RUN.lazy(), TRUTH, exclude=none)
    for call in (
        lambda: rf.evaluate(judged, "ap"),
        lambda: rf.evaluate(judged, "ap", history=SEEN),
        lambda: rf.evaluate(judged, "ap", exclude=SEEN),
        lambda: rf.metrics.rows(judged),
        lambda: judged,
    ):
        with pytest.raises(rf.RankingDataError, match="exclude=, column 'user': null user"):
            call().collect()


@pytest.mark.parametrize("ties", ["item", "expected"])
def test_exclusions_are_one_of_all_rows(ties):
    run, truth, seen = drawn(6)
    run = rf.with_rank(run, ties=ties).drop("score")
    names = ["precision@3", "ap", "ndcg@4", "rr"]
    expected = rf.evaluate(run, *names, truth=truth, exclude=seen)
    some, rest = seen[::2].cast({"user": pl.Int32}), seen[1::2]
    for frame in (run, run.lazy()):
        judged = rf.judge(frame, truth, exclude=some)
        assert_frame_equal(eager(rf.evaluate(judged, *names, exclude=rest)), expected)


def test_text_and_categories_are_ids_too():
    run, truth, seen = (
        frame.with_columns(pl.col("user").cast(pl.String), pl.col("item").cast(pl.Categorical))
        for frame in (RUN, TRUTH, SEEN)
    )
    got = rf.per_user(run, "rr", truth=truth, exclude=seen)
    assert got["rr"].to_list() == [1.0, 1.0, 0.0]


def test_group_that_loses_all_its_rows_counts_as_misses():
    of_old = RUN.select("user", "item", model=pl.lit("old"))
    got = rf.evaluate({"old": RUN, "new": RUN}, "rr", truth=TRUTH, exclude=of_old)
    assert got.select("model", "users", "rr").rows() == [("old", 3, 0.0), ("new", 3, 1 / 3)]


def test_excluded_item_of_the_truth_is_a_miss():
    seen = pl.DataFrame({"user": [1], "item": ["b"]})
    got = rf.per_user(RUN, "recall@3", "hit@3", truth=TRUTH, exclude=seen)
    assert got.rows() == [(1, 0.0, 0.0), (2, 1.0, 1.0), (3, 0.0, 0.0)]
    judged = rf.judge(RUN, TRUTH, exclude=seen)
    assert judged.filter(user=1).rows() == [(1, "a", 1, None), (1, "c", 2, None), (1, "b", None, 2)]


def test_verbs_take_an_exclusion():
    kept = rf.with_rank(RUN, exclude=SEEN, close_gaps=True)
    runs, others = {"a": RUN, "b": RUN}, {"a": kept, "b": kept}
    items = pl.DataFrame({"item": [*"abc"], "genre": [*"xyx"]})
    calls = [
        lambda f, **e: rf.summarize(f, "rr", truth=TRUTH, **e),
        lambda f, **e: rf.compare(f, "rr", truth=TRUTH, **e, details=True),
        lambda f, **e: rf.stats.who_gained(f, 1, truth=TRUTH, baseline="a", **e),
        lambda f, **e: rf.judge(f, TRUTH, **e),
        lambda f, **e: rf.metrics.rows(f, **e),
        lambda f, **e: rf.stats.exposure(f, of="genre", items=items, **e),
        lambda f, **e: rf.evaluate(f, "coverage@1", items=items, **e),
        lambda f, **e: rf.evaluate(f, "precision@1", truth=TRUTH, unjudged="bounds", **e),
    ]
    for call in calls:
        assert_frame_equal(call(runs, exclude=SEEN), call(others))
    assert RUN.rank.precision_at(1, truth=TRUTH, exclude=SEEN)["precision@1"].to_list() == [1, 1, 0]
    assert rf.check(RUN, truth=TRUTH, exclude=SEEN).equals(RUN)
    assert rf.check(RUN, exclude=SEEN).equals(RUN)


def test_charts_take_it():
    kept = rf.with_rank(RUN, exclude=SEEN, close_gaps=True)
    items = pl.DataFrame({"item": [*"abc"], "genre": [*"xyx"]})
    for chart in (
        lambda f, **e: rf.plot.per_user(f, "rr", truth=TRUTH, by=(), **e),
        lambda f, **e: rf.plot.exposure(f, of="genre", items=items, by=(), **e),
        lambda f, **e: rf.plot.lorenz(f, items=items, by=(), **e),
    ):
        got, expected = chart(RUN, exclude=SEEN), chart(kept)
        assert got.data.equals(expected.data)
        assert got.title.to_dict() == expected.title.to_dict()


# ------------------------------------------------------------------ with_rank


def test_with_rank_drops_the_rows():
    run, _, seen = drawn(6)
    expected = rf.with_rank(run.join(seen, on=["user", "item"], how="anti", maintain_order="left"))
    assert_frame_equal(rf.with_rank(run, exclude=seen), expected)
    assert_frame_equal(rf.with_rank(run.lazy(), exclude=seen).collect(), expected)


@pytest.mark.parametrize("ties", get_args(Ties))
def test_with_rank_after_an_exclusion_is_with_rank_of_the_rest(ties):
    run, truth, seen = drawn(7)
    left = run.join(seen, on=["user", "item"], how="anti", maintain_order="left")
    options = {"ties": ties, "descending": False}
    options |= {"truth": truth} if ties in BY_GRADE else {}
    got = rf.with_rank(run, exclude=seen, **options)
    assert_frame_equal(got, rf.with_rank(left, **options))


def test_gaps_are_closed_and_rows_stay_in_order():
    run = pl.DataFrame(
        {"user": [2, 1, 1, 1, 1], "item": [*"abcde"], "rank": [4, 9, 2, None, 3], "x": range(5)}
    )
    got = rf.with_rank(run, close_gaps=True)
    assert got.drop("rank").equals(run.drop("rank"))
    assert got["rank"].to_list() == [1, 3, 1, None, 2]
    named = run.rename({"rank": "place"})
    assert rf.with_rank(named, close_gaps=True, rank="place")["rank"].equals(got["rank"])
    assert rf.check(
        got, truth=TRUTH.vstack(pl.DataFrame({"user": [1], "item": ["c"], "relevance": [1]}))
    ).equals(got)


def test_closing_gaps_keeps_the_index_of_pandas():
    run = pandas.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [7, 3]}, index=[5, 9])
    got = rf.with_rank(run, close_gaps=True)
    assert got.index.to_list() == [5, 9]
    assert got["rank"].to_list() == [2, 1]
    assert run["rank"].to_list() == [7, 3]


@pytest.mark.parametrize("options", [{"score": "x"}, {"ties": "order"}, {"descending": False}])
def test_close_gaps_reads_no_score(options):
    with pytest.raises(ValueError, match="close_gaps=True\\) reads the rank, not a score: leave"):
        rf.with_rank(RUN.with_columns(x=1.0), close_gaps=True, **options)


def test_close_gaps_needs_a_rank_that_keeps_the_rules():
    scored = RUN.rename({"rank": "score"})
    with pytest.raises(
        rf.RankingDataError, match="no column 'rank' for rank.*leave out close_gaps"
    ):
        rf.with_rank(scored, close_gaps=True)
    with pytest.raises(rf.RankingDataError, match="no column 'score'.*or pass close_gaps=True"):
        rf.with_rank(RUN, exclude=SEEN)
    with pytest.raises(rf.RankingDataError, match="two items of one user have the same rank"):
        rf.with_rank(RUN.with_columns(rank=1), close_gaps=True)
    with pytest.raises(rf.RankingDataError, match="a rank that is not an integer ≥ 1"):
        rf.with_rank(RUN.with_columns(pl.col("rank") - 1), close_gaps=True)
    with pytest.raises(TypeError, match="close_gaps must be True or False, not 'yes'"):
        rf.with_rank(RUN, close_gaps="yes")


# ------------------------------------------------------------------ bad tables

BAD = {
    "null user": pl.DataFrame({"user": [None, 1], "item": ["a", "a"]}),
    "null item": pl.DataFrame({"user": [1, 1], "item": ["a", None]}),
    "another type": pl.DataFrame({"user": ["1"], "item": ["a"]}),
    "no common user": pl.DataFrame({"user": [7], "item": ["a"]}),
    "empty": SEEN.clear(),
    "no item": SEEN.drop("item"),
    "everything": RUN.select("user", "item"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_table_is_one_clear_error(case, refused):
    for run in (RUN, RUN.lazy()):
        for call, *args in (
            (rf.evaluate, "ap"),
            (rf.judge, TRUTH),
            (rf.with_rank,),
            (rf.check,),
            (rf.metrics.rows,),
        ):
            options = {"exclude": BAD[case]} | ({"truth": TRUTH} if call is rf.evaluate else {})
            refused(lambda c, *given, **more: eager(c(*given, **more)), call, run, *args, **options)


def test_ids_of_two_integer_types_meet_and_keep_theirs():
    narrow = RUN.with_columns(pl.col("user").cast(pl.Int8))
    got = rf.with_rank(narrow, close_gaps=True, exclude=SEEN)
    assert got.schema["user"] == pl.Int8
    assert got.rows() == [(1, "b", 1), (1, "c", 2), (2, "b", 1)]
    got = rf.evaluate(
        narrow, "rr", truth=TRUTH, exclude=SEEN.with_columns(pl.col("user").cast(pl.UInt32))
    )
    assert got["rr"].item() == pytest.approx(2 / 3)


def test_rules_of_the_run_are_seen_behind_an_exclusion():
    shared = RUN.with_columns(rank=pl.Series([1, 2, 2, 1, 2]))
    truth = TRUTH.with_columns(user=pl.lit(1), item=pl.Series([*"bcz"]))
    with pytest.raises(rf.RankingDataError, match="two items of one user have the same rank"):
        rf.evaluate(shared, "ap", truth=truth, exclude=SEEN)
    twice = RUN.with_columns(item=pl.Series([*"abbab"]))
    with pytest.raises(rf.RankingDataError, match="run, column 'item': duplicate"):
        rf.evaluate(twice, "ap", truth=TRUTH, exclude=SEEN)
