"""``duplicates=``: an item that comes several times in a list has its best place; oracle: lists."""

import random
import re

import polars as pl
import pytest
from every_metric import OF_EACH_COLUMN
from kinds import eager
from polars.testing import assert_frame_equal

import rankframe as rf

ITEMS = 9
METRICS = ["ndcg@5", "recall@3", "precision@5", "rr", "ap", "hit@2", "bpref", "rbp"]
COUNTING = ["judged@5", "filled@5", "auc", "precision(divide_by=returned)@5"]


def lists_of(seed, users=25, longest=12):
    draw = random.Random(seed)
    return {u: draw.choices(range(ITEMS), k=draw.randint(1, longest)) for u in range(users)}


def truth_of(seed, users=27):
    draw = random.Random(seed)
    rows = [(u, i, draw.randrange(3)) for u in range(users) for i in draw.sample(range(12), 5)]
    return pl.DataFrame(rows, schema=["user", "item", "relevance"], orient="row")


def placed(lists):
    """Give a run; None holds a place without an item."""
    rows = [
        (u, i, place)
        for u, items in lists.items()
        for place, i in enumerate(items, 1)
        if i is not None
    ]
    schema = {"user": pl.Int64, "item": pl.Int64, "rank": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")


def first(items):
    return [*dict.fromkeys(items)]


def occupied(items):
    return [None if item in items[:place] else item for place, item in enumerate(items)]


def replaced(items):
    """Put an id that is never relevant at each repeated place."""
    return [100 + place if i in items[:place] else i for place, i in enumerate(items)]


BY_HAND = {"first": first, "occupy": occupied}


def by_hand(lists, duplicates):
    return placed({user: BY_HAND[duplicates](items) for user, items in lists.items()})


def shuffled(run):
    return run.sample(fraction=1, shuffle=True, seed=3)


def scored(run):
    return run.select("user", "item", score=1 / pl.col("rank"))


WAYS = {
    "ranks": lambda run: run,
    "small ranks": lambda run: run.with_columns(pl.col("rank").cast(pl.UInt8)),
    "ranks as floats": lambda run: run.with_columns(pl.col("rank").cast(pl.Float64)),
    "scores": scored,
    "lazy": lambda run: run.lazy(),
    "lazy scores": lambda run: scored(run).lazy(),
    "pandas": lambda run: run.to_pandas(),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("duplicates", BY_HAND)
@pytest.mark.parametrize("seed", range(3))
def test_values_are_those_of_lists_without_repetitions(seed, duplicates, way):
    lists, truth = lists_of(seed), truth_of(seed)
    run = WAYS[way](shuffled(placed(lists)))
    truth = truth.to_pandas() if way == "pandas" else truth
    got = eager(rf.per_user(run, *METRICS, *COUNTING, truth=truth, duplicates=duplicates))
    want = rf.per_user(WAYS[way](by_hand(lists, duplicates)), *METRICS, *COUNTING, truth=truth)
    assert_frame_equal(got, eager(want), rel_tol=1e-14)


@pytest.mark.parametrize("seed", range(3))
def test_an_occupied_place_is_a_miss(seed):
    lists, truth = lists_of(seed), truth_of(seed)
    got = rf.per_user(placed(lists), *METRICS, truth=truth, duplicates="occupy")
    misses = placed({user: replaced(items) for user, items in lists.items()})
    assert_frame_equal(got, rf.per_user(misses, *METRICS, truth=truth), check_exact=True)


@pytest.mark.parametrize("duplicates", BY_HAND)
@pytest.mark.parametrize("options", [{"depth": 3}, {"unjudged": "drop"}, {"exclude": True}])
def test_repetitions_go_first(options, duplicates):
    lists, truth = lists_of(5), truth_of(5)
    if "exclude" in options:
        options = {"exclude": pl.DataFrame({"user": [*range(25)], "item": [3] * 25})}
    run, options = shuffled(placed(lists)), {**options, "truth": truth}
    got = rf.per_user(run, *METRICS, *COUNTING, duplicates=duplicates, **options)
    want = rf.per_user(by_hand(lists, duplicates), *METRICS, *COUNTING, **options)
    assert_frame_equal(got, want, check_exact=True)


@pytest.mark.parametrize("duplicates", BY_HAND)
@pytest.mark.parametrize("kind", ["clone", "lazy"])
def test_judged_tables(kind, duplicates):
    lists, truth = lists_of(6), truth_of(6)
    run = getattr(shuffled(placed(lists)), kind)()
    want = rf.per_user(by_hand(lists, duplicates), *METRICS, *COUNTING, truth=truth)
    judged = rf.judge(run, getattr(truth, kind)(), duplicates=duplicates)
    assert_frame_equal(eager(rf.per_user(judged, *METRICS, *COUNTING)), want, rel_tol=1e-14)
    again = rf.per_user(judged, *METRICS, duplicates=duplicates)
    assert_frame_equal(eager(again), want.select("user", *METRICS), rel_tol=1e-14)
    joined = placed(lists).join(truth, on=["user", "item"], how="full", coalesce=True)
    got = rf.per_user(getattr(joined, kind)(), *METRICS, duplicates=duplicates, users="truth")
    assert_frame_equal(eager(got), want.select("user", *METRICS), rel_tol=1e-14)


def test_rows_of_a_judged_table_with_several_grades_are_an_error():
    rows = {"user": [1] * 4, "item": [*"aabc"], "rank": [1, 3, 2, None]}
    judged = pl.DataFrame({**rows, "relevance": [1, 1, 0, 1]})
    for grades in ([1, 0, 0, 1], [0, None, 0, 1]):
        broken = judged.with_columns(relevance=pl.Series(grades))
        for duplicates in BY_HAND:
            with pytest.raises(rf.RankingDataError, match="rows differ in their grade"):
                rf.evaluate(broken, "rr", duplicates=duplicates)
    unranked = judged.with_columns(rank=pl.Series([1, None, 2, None]))
    with pytest.raises(rf.RankingDataError, match="or one has no rank: keep one"):
        rf.evaluate(unranked, "rr", duplicates="first")
    assert rf.evaluate(judged, "ap", "judged@2", duplicates="first").row(0) == (1, 0.5, 1.0)


@pytest.mark.parametrize("duplicates", BY_HAND)
def test_duplicates_of_the_truth_and_shared_ranks_stay_errors(duplicates):
    lists, truth = placed({1: [1, 1, 2]}), pl.DataFrame({"user": [1, 1], "item": [2, 2]})
    with pytest.raises(rf.RankingDataError, match="^truth, column 'item': duplicate"):
        rf.evaluate(lists, "rr", truth=truth, duplicates=duplicates)
    shared = lists.with_columns(rank=pl.Series([1, 2, 1]))
    with pytest.raises(rf.RankingDataError, match="same rank"):
        rf.check(shared, truth=truth[:1], duplicates=duplicates)
    for column, value, text in [("rank", 0, "rank that is"), ("item", None, "null item")]:
        broken = lists.with_columns(pl.Series(column, [1, value, 2]))
        with pytest.raises(rf.RankingDataError, match=text):
            rf.evaluate(broken, "rr", truth=truth[:1], duplicates=duplicates)


@pytest.mark.parametrize("label", OF_EACH_COLUMN)
def test_without_repetitions_each_value_has_the_same_bits(label):
    lists, truth = {u: first(items) for u, items in lists_of(8).items()}, truth_of(8)
    run = placed(lists)
    for frame in (run, scored(run)):
        plain = rf.per_user(frame, OF_EACH_COLUMN[label], truth=truth)
        for duplicates in BY_HAND:
            got = rf.per_user(frame, OF_EACH_COLUMN[label], truth=truth, duplicates=duplicates)
            assert_frame_equal(got, plain, check_exact=True)


def test_ranks_of_their_own_keep_their_gaps():
    run = pl.DataFrame({"user": [1] * 4, "item": [*"aaba"], "rank": [2, 4, 7, 9]})
    truth = pl.DataFrame({"user": [1], "item": ["b"]})
    ranks = [
        rf.per_user(run, "mean_hit_rank", truth=truth, duplicates=how).item(0, "mean_hit_rank")
        for how in BY_HAND
    ]
    assert ranks == [6, 7]


@pytest.mark.parametrize("ties", ["item", "order", "pessimistic"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("excluded", [[], [3]])
def test_with_rank(ties, descending, excluded):
    draw, lists = random.Random(9), lists_of(9)
    rows = [(u, i, draw.randrange(4)) for u, items in lists.items() for i in items]
    run = pl.DataFrame(rows, schema=["user", "item", "score"], orient="row")
    exclude = pl.DataFrame({"user": [*lists], "item": [3] * len(lists)}) if excluded else None
    truth = run.filter(pl.col("item") > 3).select("user", "item", relevance="item").unique()
    graded = {"ties": ties, **({"truth": truth} if ties == "pessimistic" else {})}
    orders = {}
    for user in lists:
        places = [n for n, (u, *_) in enumerate(rows) if u == user]
        # items below 4 are not judged; the grade of another is its number
        places.sort(key=lambda n: n if ties == "order" else -rows[n][1])
        places.sort(key=lambda n: rows[n][1] * (rows[n][1] > 3) * (ties == "pessimistic"))
        places.sort(key=lambda n: rows[n][2], reverse=descending)
        orders[user] = [rows[n][1] for n in places]
    for duplicates, keep in BY_HAND.items():
        got = rf.with_rank(
            run, descending=descending, exclude=exclude, duplicates=duplicates, **graded
        )
        expected = {}
        for user, items in orders.items():
            kept = [i for i in keep(items) if i is None or i not in excluded]
            expected |= {(user, i): n for n, i in enumerate(kept, 1) if i is not None}
        assert {
            (u, i): rank for u, i, rank in got.select("user", "item", "rank").rows()
        } == expected
        assert got.join(run, on=got.columns[:3], how="anti").is_empty()
    in_pandas = rf.with_rank(run.to_pandas(), descending=descending, duplicates="first", **graded)
    plain = rf.with_rank(run, descending=descending, duplicates="first", **graded)
    assert_frame_equal(pl.DataFrame(in_pandas), plain)


def test_with_rank_of_blocks_and_ranks():
    run = pl.DataFrame({"user": [1] * 5, "item": [*"aabac"], "score": [5.0, 3, 3, 3, 1]})
    blocks = rf.with_rank(run, ties="expected", duplicates="first")
    assert blocks.select("item", "rank", "tied").rows() == [("a", 1, 1), ("b", 2, 1), ("c", 3, 1)]
    ranked = pl.DataFrame({"user": [1] * 4, "item": [*"aaba"], "rank": [2, 4, 7, 9]})
    closed = rf.with_rank(ranked, close_gaps=True, duplicates="first")
    assert closed.select("item", "rank").rows() == [("a", 1), ("b", 2)]
    for options in ({"close_gaps": True}, {"ties": "expected"}):
        frame = ranked if "close_gaps" in options else run
        with pytest.raises(ValueError, match="use 'first'"):
            rf.with_rank(frame, duplicates="occupy", **options)
    tied = rf.with_rank(run[2:], ties="expected")
    lower = tied[:1].with_columns(rank=pl.lit(4, pl.Int64), tied=pl.lit(1, pl.Int64))
    doubled = pl.concat([tied, lower])
    truth = pl.DataFrame({"user": [1], "item": ["c"]})
    assert rf.evaluate(doubled, "rr", truth=truth, duplicates="first").item(0, "rr") == 1 / 3
    with pytest.raises(rf.RankingDataError, match="for duplicates='occupy' to keep"):
        rf.evaluate(doubled, "rr", truth=truth, duplicates="occupy")


def test_cure_of_the_error_gives_the_right_value_when_pasted():
    """A list of a, a, b finds b at 2, or at 3 if the second a keeps its place."""
    run = pl.DataFrame({"user": [1] * 3, "item": [*"aab"], "score": [0.9, 0.8, 0.7]})
    truth = pl.DataFrame({"user": [1], "item": ["b"]})
    with pytest.raises(rf.RankingDataError, match="duplicate") as raised:
        rf.evaluate(run, "recall@2", truth=truth)
    cures = re.findall(r"duplicates='\w+'", str(raised.value))
    values = {}
    for cure in cures:
        pasted = f"rf.evaluate(run, 'recall@2', 'rr', truth=truth, {cure})"
        values[cure] = eval(pasted, {"rf": rf, "run": run, "truth": truth}).row(0)
    assert values == {
        "duplicates='first'": (1, 1.0, 0.5),
        "duplicates='occupy'": (1, 0.0, 1 / 3),
    }


def test_a_wrong_value():
    run, truth = placed({1: [1]}), pl.DataFrame({"user": [1], "item": [1]})
    text = "duplicates must be one of 'error', 'first', 'occupy', not 'last'"
    for call in (
        lambda: rf.evaluate(run, "rr", truth=truth, duplicates="last"),
        lambda: rf.runs.rbo(run, run, duplicates="last"),
        lambda: rf.sql("rr", check=True, duplicates="last"),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            call()


@pytest.mark.parametrize("duplicates", BY_HAND)
def test_the_other_doors(duplicates, tmp_path):
    lists, others, truth = lists_of(11), lists_of(12), truth_of(11)
    both = {"a": placed(lists), "b": placed(others)}
    hand = {"a": by_hand(lists, duplicates), "b": by_hand(others, duplicates)}
    options = {"truth": truth, "duplicates": duplicates}

    def same(verb, *args, **more):
        got = verb(both, *args, **more, **options)
        assert_frame_equal(got, verb(hand, *args, truth=truth, **more), check_exact=True)

    same(rf.evaluate, "ap", "ndcg@5")
    same(rf.compare, "ap")
    same(rf.summarize, "ap")
    same(rf.stats.at_k, "ndcg", k=[1, 3])
    same(rf.runs.side_by_side, 3)
    same(rf.runs.to_judge, 3, budget=9)
    rows = [
        rf.metrics.rows(run, "ap", truth=truth, **more).select(
            "model", "user", "item", "rank", "relevance", "hits"
        )
        for run, more in [(both, {"duplicates": duplicates}), (hand, {})]
    ]
    assert_frame_equal(*rows)
    assert rf.report(both, "ap", **options).verdict == rf.report(hand, "ap", truth=truth).verdict
    mixed = {"a": scored(both["a"]), "b": both["b"]}
    assert_frame_equal(
        rf.evaluate(mixed, "ap", **options), rf.evaluate(hand, "ap", truth=truth), check_exact=True
    )
    for verb, args in [(rf.runs.rbo, ()), (rf.runs.overlap, ())]:
        more = {"k": 4} if verb is rf.runs.overlap else {}
        got = verb(both["a"], both["b"], *args, duplicates=duplicates, **more)
        assert_frame_equal(got, verb(hand["a"], hand["b"], *args, **more), check_exact=True)
    got = rf.runs.fuse(both, duplicates=duplicates)
    assert_frame_equal(got, rf.runs.fuse(hand), check_exact=True)
    items = pl.DataFrame({"item": [*range(ITEMS)]})
    exposed = rf.stats.exposure(both["a"], of="item", items=items, duplicates=duplicates)
    assert_frame_equal(exposed, rf.stats.exposure(hand["a"], of="item", items=items), rel_tol=1e-14)
    assert rf.check(both["a"], **options) is not None
    made = rf.provenance(both["a"], "ap", **options)
    assert made["rows"]["run"] == both["a"].height
    assert made["options"]["duplicates"] == duplicates


def test_a_file_of_trec_has_each_item_once(tmp_path):
    from rankframe import trec

    lists = lists_of(13)
    trec.write_run(placed(lists), tmp_path / "a.run", duplicates="first")
    read = trec.read_run(tmp_path / "a.run").select(pl.col("user", "item").cast(pl.Int64))
    assert read.rows() == by_hand(lists, "first").select("user", "item").rows()
    with pytest.raises(ValueError, match="duplicates must be one of 'error', 'first'"):
        trec.write_run(placed(lists), tmp_path / "a.run", duplicates="occupy")


@pytest.mark.parametrize("duplicates", BY_HAND)
def test_parts_and_repeated_calls(duplicates):
    lists, truth = lists_of(14), truth_of(14)
    run, want = placed(lists), rf.evaluate(by_hand(lists, duplicates), *METRICS, truth=truth)
    halves = [pl.col("user") < 10, pl.col("user") >= 10]
    parts = [
        rf.parts.sums(
            *(run.filter(half), *METRICS),
            truth=truth.filter(half),
            duplicates=duplicates,
            part=str(number),
        )
        for number, half in enumerate(halves)
    ]
    assert_frame_equal(rf.parts.combine(pl.concat(parts)), want, check_exact=True)
    for _ in range(3):  # the third runs a kept plan
        got = rf.evaluate(run, *METRICS, truth=truth, duplicates=duplicates)
        assert_frame_equal(got, want, check_exact=True)
    plain = rf.evaluate(run, "rr", truth=truth, duplicates=duplicates)
    other = next(how for how in BY_HAND if how != duplicates)
    assert not plain.equals(rf.evaluate(run, "rr", truth=truth, duplicates=other))


@pytest.mark.parametrize("duplicates", BY_HAND)
@pytest.mark.parametrize("way", ["ranks", "scores"])
def test_health_counts_what_the_lists_are(way, duplicates):
    lists, truth = lists_of(15), truth_of(15)
    run, hand = WAYS[way](placed(lists)), by_hand(lists, duplicates)
    got = rf.health(run, truth=truth, k=3, duplicates=duplicates)
    want = rf.health(hand, truth=truth, k=3)
    names = ["rows", "items", "short_lists", "gaps", "unjudged_at_3", "missed_users"]
    counts = [
        frame.filter(pl.col("what").is_in(names)).select("table", "what", "count", "share")
        for frame in (got, want)
    ]
    assert_frame_equal(*counts)
    assert "duplicates" not in got.filter(table="run")["what"].to_list()
