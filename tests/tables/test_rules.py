"""Every rule of the tables: its bad row once on a hit and once on a miss, in one voice."""

import math
import re

import odd_input
import pandas
import polars as pl
import pytest
from every_metric import EVERY_METRIC, RANGES
from kinds import eager
from two_models import assert_equal

import rankframe as rf
from rankframe._request.registry import reading_of
from rankframe._tables import rules

nan, inf = math.nan, math.inf

RUN = {"user": [1, 1, 1, 2, 2], "item": [1, 2, 3, 1, 2], "rank": [1, 2, 3, 1, 2]}
SCORED = {"user": RUN["user"], "item": RUN["item"], "score": [0.9, 0.8, 0.7, 0.9, 0.8]}
# of user 1, item 2 is a hit, 1 and 3 are misses; item 4 is relevant and not retrieved
TRUTH = {"user": [1, 1, 1, 2], "item": [2, 4, 5, 2], "relevance": [1.0, 2.0, 0.0, 1.0]}
JUDGED = {
    "user": [1, 1, 1, 1, 1, 2, 2],
    "item": [1, 2, 3, 4, 5, 1, 2],
    "rank": [1, 2, 3, None, None, 1, 2],
    "relevance": [None, 1.0, None, 2.0, 0.0, None, 1.0],
}
HIT, MISS = 1, 2  # rows of RUN


def put(table, column, row, value):
    """Give the table with one value changed."""
    values = list(table[column])
    values[row] = value
    return {**table, column: values}


def add(table, **row):
    return {name: [*values, row[name]] for name, values in table.items()}


def floats(table, column):
    return {**table, column: [None if v is None else float(v) for v in table[column]]}


AGAIN = odd_input.AGAIN.removeprefix("run, ").strip()
#: What errors say up to the row, on the page of odd input; of a judged table, too.
ON_THE_PAGE = {
    text.partition("Offending row: ")[0]
    for section in odd_input.cases().values()
    for one in section
    for text in (one.gives, one.in_pandas)
    if isinstance(text, str)
}
ON_THE_PAGE |= {f"judged table{text[3:]}" for text in ON_THE_PAGE if text.startswith("run")}


def case(table, truth, message, options={}, seen_by="always"):  # noqa: B006
    """Fill in what the page of odd input says between the beginning of a message and the row."""
    begin, is_short, row = message.partition(" …")
    if is_short:
        (message,) = (text for text in ON_THE_PAGE if text.startswith(begin))
        message += f"Offending row:{row}" * bool(row)
    return table, truth, options, message, seen_by


CASES = {
    "null user, hit": case(
        put(floats(RUN, "user"), "user", HIT, None),
        floats(TRUTH, "user"),
        "run, column 'user': null user … user=null, item=2, rank=2",
    ),
    "null user, miss": case(
        put(floats(RUN, "user"), "user", MISS, None),
        floats(TRUTH, "user"),
        "run, column 'user': null user … user=null, item=3, rank=3",
    ),
    "null item, miss": case(
        put(floats(RUN, "item"), "item", MISS, None),
        floats(TRUTH, "item"),
        "run, column 'item': null item … user=1, item=null, rank=3",
    ),
    "null item of the truth": case(
        floats(RUN, "item"),
        put(floats(TRUTH, "item"), "item", 1, None),
        "truth, column 'item': null item … user=1, item=null, relevance=2.0",
    ),
    "null user of the truth, grade 0": case(
        floats(RUN, "user"),
        put(floats(TRUTH, "user"), "user", 2, None),
        "truth, column 'user': null user … user=null, item=5, relevance=0.0",
    ),
    "null by": case(
        {**RUN, "model": ["a", "a", None, "a", "a"]},
        TRUTH,
        "run, column 'model': null group … model=null, user=1, item=3, rank=3",
        options={"by": "model"},
    ),
    "rank 0, hit": case(
        put(RUN, "rank", HIT, 0),
        TRUTH,
        "run, column 'rank': a rank that is not an integer ≥ 1 … user=1, item=2, rank=0",
    ),
    "rank 0, miss": case(
        put(RUN, "rank", MISS, 0),
        TRUTH,
        "run, column 'rank': a rank that is not an integer ≥ 1 … user=1, item=3, rank=0",
    ),
    "negative rank, miss of a judged table": case(
        put(floats(JUDGED, "rank"), "rank", 2, -1.0),
        None,
        "judged table, column 'rank': a rank that is not an integer ≥ 1 … user=1, item=3, "
        "rank=-1.0, relevance=null",
    ),
    "fractional rank, hit": case(
        put(floats(RUN, "rank"), "rank", HIT, 2.5),
        TRUTH,
        "run, column 'rank': a rank that is not an integer ≥ 1 … user=1, item=2, rank=2.5",
    ),
    "fractional rank, miss": case(
        put(floats(RUN, "rank"), "rank", MISS, 3.5),
        TRUTH,
        "run, column 'rank': a rank that is not an integer ≥ 1 … user=1, item=3, rank=3.5",
    ),
    "infinite rank, miss": case(
        put(floats(RUN, "rank"), "rank", MISS, inf),
        TRUTH,
        "run, column 'rank': a rank that is not an integer ≥ 1 … user=1, item=3, rank=inf",
    ),
    "two hits at one rank": case(
        put(RUN, "rank", HIT, 1),
        add(TRUTH, user=1, item=1, relevance=1.0),
        "run, column 'rank': two items of one user have the same rank … user=1, item=1, rank=1",
    ),
    "two hits at one rank of a judged table": case(
        put(put(floats(JUDGED, "rank"), "rank", 0, 2.0), "relevance", 0, 3.0),
        None,
        "judged table, column 'rank': two items of one user have the same rank … user=1, item=1, "
        "rank=2.0, relevance=3.0",
    ),
    "a hit and a miss at one rank": case(
        put(RUN, "rank", MISS, 2),
        TRUTH,
        "run, column 'rank': two items of one user have the same rank … user=1, item=2, rank=2",
        seen_by="check",
    ),
    "two misses at one rank": case(
        put(RUN, "rank", MISS, 1),
        TRUTH,
        "run, column 'rank': two items of one user have the same rank … user=1, item=1, rank=1",
        seen_by="check",
    ),
    "a hit twice": case(
        add(RUN, user=1, item=2, rank=9),
        TRUTH,
        f"run, {AGAIN} Offending row: user=1, item=2, rank=2",
    ),
    "a miss twice": case(
        add(RUN, user=1, item=3, rank=9),
        TRUTH,
        f"run, {AGAIN} Offending row: user=1, item=3, rank=3",
        seen_by="check",
    ),
    "a hit twice in a group": case(
        {**add(RUN, user=1, item=2, rank=9), "model": ["a"] * 6},
        TRUTH,
        "run, column 'item': duplicate (model, user, item): name a column of folds or days in "
        "by=; otherwise pass duplicates='first': the best place of an item counts, and items below "
        "its others move up; or duplicates='occupy': its other places stay empty. "
        "Offending row: model='a', user=1, item=2, rank=2",
        options={"by": "model"},
    ),
    "a hit twice in the truth": case(
        RUN,
        add(TRUTH, user=1, item=2, relevance=3.0),
        "truth, column 'item': duplicate (user … user=1, item=2, relevance=1.0",
    ),
    "a relevant item that was not retrieved, twice in the truth": case(
        RUN,
        add(TRUTH, user=1, item=4, relevance=2.0),
        "truth, column 'item': duplicate (user … user=1, item=4, relevance=2.0",
    ),
    "grade 0 twice in the truth": case(
        RUN,
        add(TRUTH, user=1, item=5, relevance=0.0),
        "truth, column 'item': duplicate (user … user=1, item=5, relevance=0.0",
        seen_by="check",
    ),
    "a hit twice in a judged table": case(
        add(floats(JUDGED, "rank"), user=1, item=2, rank=9.0, relevance=1.0),
        None,
        f"judged table, {AGAIN.removesuffix('.')} (rows of one item need one grade). "
        "Offending row: user=1, item=2, rank=2.0, relevance=1.0",
    ),
    "a miss twice where rank is made from score": case(
        add(SCORED, user=1, item=3, score=0.1),
        TRUTH,
        f"run, {AGAIN} Offending row: user=1, item=3, score=0.7",
    ),
    "infinite score, hit": case(
        put(SCORED, "score", HIT, inf),
        TRUTH,
        "run, column 'score': infinite score … user=1, item=2, score=inf",
    ),
    "infinite score, miss": case(
        put(SCORED, "score", MISS, -inf),
        TRUTH,
        "run, column 'score': infinite score … user=1, item=3, score=-inf",
    ),
    "infinite relevance, hit": case(
        RUN,
        put(TRUTH, "relevance", 0, inf),
        "truth, column 'relevance': NaN or infinite relevance … user=1, item=2, relevance=inf",
    ),
    "negative infinite relevance, not retrieved": case(
        RUN,
        put(TRUTH, "relevance", 2, -inf),
        "truth, column 'relevance': NaN or infinite relevance … user=1, item=5, relevance=-inf",
    ),
    "infinite relevance in a judged table": case(
        put(floats(JUDGED, "rank"), "relevance", 1, inf),
        None,
        "judged table, column 'relevance': NaN or infinite relevance: use a finite grade, or null "
        "if the item is unjudged. Offending row: user=1, item=2, rank=2.0, relevance=inf",
    ),
    "null relevance in the truth": case(
        RUN,
        put(TRUTH, "relevance", 1, None),
        "truth, column 'relevance': null relevance … user=1, item=4, relevance=null",
    ),
    "neither rank nor relevance": case(
        put(floats(JUDGED, "rank"), "rank", 2, None),
        None,
        "judged table, column 'relevance': neither rank nor relevance: drop the row, or fill in "
        "one of the two. Offending row: user=1, item=3, rank=null, relevance=null",
    ),
    "empty run": case({name: [] for name in RUN}, TRUTH, "run: it is empty"),
    "empty truth": case(RUN, {name: [] for name in TRUTH}, "truth: it is empty"),
    "empty judged table": case({name: [] for name in JUDGED}, None, "judged table: it is empty"),
    "nothing retrieved": case(
        {**floats(RUN, "rank"), "rank": [None] * 5},
        TRUTH,
        "run, column 'rank': it is null in every row",
    ),
    "no score at all": case(
        {**SCORED, "score": [nan, None, nan, nan, None]},
        TRUTH,
        "run, column 'score': it is null in every row",
    ),
    "no common user": case(
        RUN,
        {**TRUTH, "user": [8, 8, 8, 9]},
        "run, column 'user': no user of the run is in the truth, which has users like 8. "
        "Offending row: user=1, item=1, rank=1",
    ),
    "groups that split the users": case(
        {**RUN, "fold": [1, 1, 1, 2, 2]},
        TRUTH,
        "run, column 'fold': no user is in two of its groups, and the truth has no such column, "
        "so each user would count as a miss in every other group: join the column to the truth, "
        "or pass users='both'. Offending row: fold=1, user=1, item=1, rank=1",
        options={"by": "fold"},
    ),
    # at the call: roles and types
    "no user column": case(
        {"uid": [1], "item": [1], "rank": [1]},
        TRUTH,
        "run: no column 'user' for user; it has 'uid', 'item', 'rank'; the truth has 'user': pass "
        "user='uid', truth_user='user'",
        seen_by="call",
    ),
    "no rank and no score": case(
        {"user": [1], "item": [1]},
        TRUTH,
        "run: no column 'rank' for rank; it has 'user' …",
        seen_by="call",
    ),
    "no relevance in a judged table": case(
        RUN,
        None,
        "judged table: no column 'relevance' for relevance; a run needs its truth: pass truth=, or "
        "call judge(run, truth); it has 'user', 'item', 'rank'; name it with relevance=",
        seen_by="call",
    ),
    "a relevance that was named and is not there": case(
        RUN,
        {"user": [1], "item": [2]},
        "truth: no column 'grade' for relevance; it has 'user', 'item'; name it with relevance=",
        options={"relevance": "grade"},
        seen_by="call",
    ),
    "no by column": case(
        RUN,
        TRUTH,
        "run: no column 'model' for by; it has 'user' …",
        options={"by": "model"},
        seen_by="call",
    ),
    "a run with a relevance": case(
        JUDGED, TRUTH, "run, column 'relevance': a relevance in a run …", seen_by="call"
    ),
    "score= beside a rank": case(
        {**RUN, "points": SCORED["score"]},
        TRUTH,
        "run, column 'rank': a rank in addition to score= …",
        options={"score": "points"},
        seen_by="call",
    ),
    "two roles": case(
        RUN,
        TRUTH,
        "run, column 'user': it has two roles: name a different column for one of them",
        options={"item": "user"},
        seen_by="call",
    ),
    "a name of the vocabulary": case(
        {**RUN, "hits": [0] * 5},
        TRUTH,
        "run, column 'hits': this name is reserved for the vocabulary of the metrics …",
        seen_by="call",
    ),
    "a rank beside another rank": case(
        {**RUN, "place": RUN["rank"]},
        TRUTH,
        "run, column 'rank': this name is reserved for the vocabulary of the metrics: "
        "rename or drop the column",
        options={"rank": "place"},
        seen_by="call",
    ),
    "ids of different types": case(
        {**RUN, "item": ["1", "2", "3", "1", "2"]},
        TRUTH,
        "column 'item': it is String in the run and Int64 in the truth …",
        seen_by="call",
    ),
    "lists and judgments of different days": case(
        {**RUN, "day": [2] * 5},
        {**TRUTH, "day": [1] * 4},
        "run, column 'day': no (day … day=2, user=1, item=1, rank=1",
        options={"by": "day"},
    ),
    "one day without judgments": case(
        {**RUN, "day": [1, 1, 1, 2, 2]},
        {**TRUTH, "day": [1] * 4},
        "run, column 'day': a group in which no user is in the truth: add its rows to the truth, "
        "or leave the group out of both tables. Offending row: day=2, user=2, item=1, rank=1",
        options={"by": "day"},
        seen_by="check",
    ),
    "one day without lists": case(
        {**RUN, "day": [1] * 5},
        {**TRUTH, "day": [1, 1, 1, 2]},
        "truth, column 'day': a group in which no user is in the run: add its rows to the run, "
        "or leave the group out of both tables. Offending row: day=2, user=2",
        options={"by": "day"},
        seen_by="check",
    ),
    "grades under a name that nobody reads": case(
        RUN,
        {"user": TRUTH["user"], "item": TRUTH["item"], "is_click": [0, 1, 1, 1]},
        "truth, column 'is_click': 0 and 1 but no relevance … user=1, item=2, is_click=0",
    ),
    "flags under a name that nobody reads": case(
        RUN,
        {"user": TRUTH["user"], "item": TRUTH["item"], "bought": [True, True, False, True]},
        "truth, column 'bought': False and True but no relevance … user=1, item=5, bought=False",
    ),
    "a group called users": case(
        {**RUN, "users": ["a"] * 5},
        TRUTH,
        "column 'users': evaluate counts users under this name: rename the column",
        options={"by": "users"},
        seen_by="evaluate",
    ),
    "rank as text": case(
        {**RUN, "rank": ["1"] * 5},
        TRUTH,
        "run, column 'rank': String cannot be a rank …",
        seen_by="call",
    ),
    "rank as boolean": case(
        {**RUN, "rank": [True] * 5},
        TRUTH,
        "run, column 'rank': Boolean cannot be a rank: cast it to integers",
        seen_by="call",
    ),
    "score as text": case(
        {**SCORED, "score": ["0.5"] * 5},
        TRUTH,
        "run, column 'score': String cannot be a score …",
        seen_by="call",
    ),
    "relevance as text": case(
        RUN,
        {**TRUTH, "relevance": ["yes"] * 4},
        "truth, column 'relevance': String cannot be a relevance …",
        seen_by="call",
    ),
}

KINDS = ["eager", "lazy", "pandas"]


def frame(table, kind):
    """Make a frame of the kind; in pandas a null is NaN."""
    if kind == "pandas":
        import rankframe.pandas  # noqa: F401

        return pandas.DataFrame(table)
    made = pl.DataFrame(table, strict=False)
    return made.lazy() if kind == "lazy" else made


def space(made):
    return made.rank if isinstance(made, pl.DataFrame | pl.LazyFrame) else made.ranking


@pytest.mark.filterwarnings("ignore:.*are floats")  # of ids with NaN; errors are the subject
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("case", CASES)
def test_broken_rule_has_the_same_error_everywhere(case, kind):
    table, truth, options, message, seen_by = CASES[case]
    message = odd_input.said_in(kind, message)
    made = frame(table, kind)
    judging = {} if truth is None else {"truth": frame(truth, kind)}

    def checked():
        return eager(space(made).check(**judging, **options))

    def evaluated(verb="evaluate", metric="ndcg@3"):
        return eager(getattr(space(made), verb)(metric, **judging, **options))

    if seen_by == "evaluate":
        checked()  # tells nothing
        with pytest.raises(rf.RankingDataError) as error:
            evaluated()
        assert str(error.value) == message
        return
    with pytest.raises(rf.RankingDataError) as error:
        checked()
    assert str(error.value) == message
    if seen_by == "check":
        evaluated()  # tells nothing
        return
    for call in (evaluated, lambda: evaluated("per_user", "precision@3")):
        with pytest.raises(rf.RankingDataError) as error:
            call()
        assert str(error.value) == message


@pytest.mark.parametrize("case", CASES)
def test_lazy_call_raises_it_when_it_is_collected(case):
    table, truth, options, message, seen_by = CASES[case]
    run = frame(table, "lazy")
    judging = {} if truth is None else {"truth": frame(truth, "lazy")}
    if seen_by == "call":
        with pytest.raises(rf.RankingDataError):
            run.rank.evaluate("ap", **judging, **options)
    if seen_by == "always":
        query = run.rank.evaluate("ap", **judging, **options)
        for engine in ("streaming", "in-memory"):
            with pytest.raises(rf.RankingDataError) as error:
                query.collect(engine=engine)
            assert str(error.value) == message


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("case", [c for c, (*_, seen_by) in CASES.items() if seen_by == "always"])
def test_judging_and_composing_raise_it_too(case, lazy):
    table, truth, options, message, _ = CASES[case]
    made = frame(table, "lazy" if lazy else "eager")
    keys = [options["by"], "user"] if options else ["user"]
    with pytest.raises(rf.RankingDataError) as error:
        judged = made if truth is None else made.rank.judge(frame(truth, "lazy"), **options)
        rows = rf.metrics.rows(judged, **options)
        eager(rows.group_by(keys).agg(rf.metrics.precision_at(3)))
    assert str(error.value) == message


def test_sink_raises_it_too(tmp_path):
    table, truth, _, message, _ = CASES["rank 0, miss"]
    query = frame(table, "lazy").rank.per_user("ap", truth=frame(truth, "lazy"))
    with pytest.raises(rf.RankingDataError) as error:
        query.sink_parquet(tmp_path / "out.parquet")
    assert str(error.value) == message


@pytest.mark.parametrize("option", [{"depth": 2}, {"unjudged": "drop"}, {"relevant_at": 2}])
@pytest.mark.parametrize("case", ["two hits at one rank", "a hit twice", "rank 0, miss"])
def test_options_hide_nothing(case, option):
    table, truth, _, message, _ = CASES[case]
    with pytest.raises(rf.RankingDataError) as error:
        frame(table, "eager").rank.evaluate("ap", truth=frame(truth, "eager"), **option)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("metric", "options"),
    [("precision(divide_by=returned)@3", {}), ("f1", {}), ("ap", {"unjudged": "drop"})],
)
def test_duplicate_miss_is_reported_where_rows_are_counted(metric, options):
    table, truth, _, message, _ = CASES["a miss twice"]
    for kind in ("eager", "lazy"):
        with pytest.raises(rf.RankingDataError) as error:
            eager(frame(table, kind).rank.evaluate(metric, truth=frame(truth, kind), **options))
        assert str(error.value) == message


def test_check_returns_the_frame():
    run, truth = pl.DataFrame(RUN), pl.DataFrame(TRUTH)
    assert run.rank.check(truth=truth) is run
    assert run.lazy().rank.check(truth=truth).collect().equals(run)
    judged = run.rank.judge(truth)
    assert judged.rank.check() is judged


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"item": pl.Series(["1", "2", "3", "1", "2"], dtype=pl.Categorical)},
            "column 'item': it is Categorical in the run and String in the truth",
        ),
        ({"item": [[1], [2], [3], [1], [2]]}, "run, column 'item': List(Int64) cannot be an id"),
        ({"item": [{"a": 1}] * 5}, "run, column 'item': Struct({'a': Int64}) cannot be an id"),
        ({"item": pl.Series([1.0, 2, 3, 1, 2])}, "column 'item': it is Float64 in the run"),
    ],
)
def test_types_that_cannot_be_ids(change, message):
    truth = pl.DataFrame(TRUTH).with_columns(pl.col("item").cast(pl.String))
    with pytest.raises(rf.RankingDataError) as error:
        pl.DataFrame({**RUN, **change}).rank.evaluate("ap", truth=truth)
    assert str(error.value).startswith(message)


def test_columns_of_pandas_without_a_type_are_an_error():
    import rankframe.pandas  # noqa: F401

    truth = pandas.DataFrame({**TRUTH, "item": ["2", "4", "5", "2"]})
    mixed = pandas.DataFrame({**RUN, "item": [1, "2", 3, 1, 2]})
    with pytest.raises(
        rf.RankingDataError, match="run, column 'item': its values have no common polars"
    ):
        mixed.ranking.evaluate("ap", truth=truth)
    twice = pandas.DataFrame([[1, 1, 1, 1]], columns=["user", "item", "rank", "rank"])
    with pytest.raises(rf.RankingDataError, match="run, column 'rank': two columns have this name"):
        twice.ranking.evaluate("ap", truth=truth)


def test_nan_and_null_scores_are_items_that_were_not_retrieved():
    run = {**SCORED, "score": [0.9, nan, 0.7, None, 0.8]}
    expected = pl.DataFrame(run).drop_nulls("score").filter(pl.col("score").is_not_nan())
    truth = pl.DataFrame(TRUTH)
    for kind in KINDS:
        made = frame(run, kind)
        per_user = eager(space(made).per_user("ap", "precision", truth=truth))
        assert_equal(per_user, expected.rank.per_user("ap", "precision", truth=truth))


def test_whole_floats_are_ranks():
    run, truth = pl.DataFrame(RUN), pl.DataFrame(TRUTH)
    for dtype in (pl.Float32, pl.Float64, pl.UInt8, pl.UInt64, pl.Decimal(10, 2)):
        cast = run.with_columns(pl.col("rank").cast(dtype))
        assert_equal(cast.rank.per_user("ap", truth=truth), run.rank.per_user("ap", truth=truth))


@pytest.mark.parametrize(
    ("metric", "message"),
    [
        (
            rf.metrics.ndcg_at(3, gain={1: 1}),
            "metric 'ndcg(gain=1:1)@3': it is not a finite number for a user. The grades present "
            "are 1.0, 2.0: give each a finite gain, for example gain={1: 1, 2: 3}. With "
            "max_grade=, use one that no grade exceeds. With collection=, count at least the "
            "items of every user. An expression of your own must be null where it is undefined. "
            "Offending row: user=1, ndcg(gain=1:1)@3=nan",
        ),
        (
            rf.metrics.dcg_at(3, gain={1: 1}).alias("mine"),
            "metric 'mine': it is not a finite number",
        ),
        ("cg(gain=1:1)@1", "metric 'cg(gain=1:1)@1': it is not a finite number"),
        (
            (pl.lit(0.0) / pl.lit(0.0)).alias("x"),
            "metric 'x': it is not a finite number for a user. An expression of your own must be",
        ),
    ],
)
@pytest.mark.parametrize("verb", ["per_user", "evaluate"])
def test_metric_that_is_not_a_number_is_reported(metric, message, verb):
    judged = pl.DataFrame(JUDGED)
    with pytest.raises(rf.RankingDataError) as error:
        getattr(judged.rank, verb)(metric)
    assert str(error.value).startswith(message)
    with pytest.raises(rf.RankingDataError) as error:
        getattr(judged.lazy().rank, verb)(metric).collect()
    assert str(error.value).startswith(message)


def test_exponential_gains_that_overflow_are_reported():
    judged = pl.DataFrame({"user": [1], "item": [1], "rank": [1], "relevance": [1025]})
    for metric in ("dcg(gain=exponential)", "ndcg(gain=exponential)"):
        with pytest.raises(rf.RankingDataError, match="it is not a finite number"):
            judged.rank.evaluate(metric)


def test_metric_that_reads_a_column_that_is_not_there():
    judged = pl.DataFrame(JUDGED)
    with pytest.raises(rf.RankingDataError) as error:
        judged.rank.evaluate(pl.col("minutes").sum())
    assert str(error.value).startswith(
        "metric 'minutes' reads a column 'minutes'; the rows have 'user', 'item', 'rank',"
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        (
            {"users": "everyone"},
            ValueError,
            "users must be one of 'truth', 'judged', 'both', 'run'",
        ),
        ({"undefined": "0"}, ValueError, "undefined must be None or a finite number, not '0'"),
        ({"undefined": nan}, ValueError, "undefined must be None or a finite number, not nan"),
        ({"undefined": inf}, ValueError, "undefined must be None or a finite number, not inf"),
        ({"relevant_at": 0}, ValueError, "relevant_at must be a number > 0, not 0"),
        ({"relevant_at": "2"}, ValueError, "relevant_at must be a number > 0, not '2'"),
        (
            {"unjudged": "no"},
            ValueError,
            "unjudged must be one of 'miss', 'drop', 'bounds', not 'no'",
        ),
        (
            {"user": ["u"]},
            rf.RankingDataError,
            "run: no column 'u' for user; it has 'user', 'item'",
        ),
        ({"by": None}, TypeError, "by must be the name of a column, or a list of names, not None"),
        ({"depth": 0}, ValueError, "depth must be an integer ≥ 1, not 0"),
        ({"depth": 2.5}, ValueError, "depth must be an integer ≥ 1, not 2.5"),
        ({"by": pl.col("user")}, TypeError, "by must be the name of a column, or a list of names"),
        ({"by": [1]}, TypeError, "by must be the name of a column, or a list of names, not [1]"),
        ({"usr": "uid"}, TypeError, "evaluate has no keyword 'usr'; the nearest is 'user'"),
    ],
)
def test_bad_options_are_reported_at_the_call(options, error, message):
    with pytest.raises(error) as raised:
        pl.LazyFrame(JUDGED).rank.evaluate("ap", **options)
    assert str(raised.value).startswith(message)


def test_objects_that_are_not_frames_are_reported():
    with pytest.raises(TypeError, match="the judged table must be a polars DataFrame or LazyFrame"):
        rf.evaluate([1], "ap")
    with pytest.raises(TypeError, match=r"a dict of columns, 'user', .*: pl.DataFrame\(…\) makes"):
        pl.DataFrame(RUN).rank.evaluate("ap", truth=TRUTH)
    with pytest.raises(TypeError, match="a dict of columns, 'user', 'item': .* grades are {user"):
        rf.from_grades({"user": [1, 2], "item": [3, 4]})


def test_mean_needs_numbers():
    judged = pl.DataFrame({**JUDGED, "genre": ["x"] * 7})
    first = pl.col("genre").filter("relevant").first()
    assert judged.rank.per_user(first)["genre"].to_list() == ["x", "x"]
    with pytest.raises(ValueError, match="metric 'genre' is String for each user, which has no"):
        judged.rank.evaluate(first)


def test_tables_of_the_caller_are_not_changed():
    run, truth = pl.DataFrame(SCORED), pl.DataFrame(TRUTH)
    before = run.hash_rows().sum(), truth.hash_rows().sum(), run.columns, truth.columns
    run.rank.with_rank()
    run.rank.judge(truth)
    run.rank.evaluate("ap", "precision", truth=truth, unjudged="drop", depth=2)
    assert before == (run.hash_rows().sum(), truth.hash_rows().sum(), run.columns, truth.columns)


TIED_RANKS = {
    "dense": [1, 1, 2, 3, 3, 3],
    "min": [1, 1, 3, 4, 4, 4],
    "competition": [2, 2, 3, 6, 6, 6],
}
READINGS = {label: reading_of(metric.meta.root_names()) for label, metric in EVERY_METRIC.items()}
COUNTING = {
    label: reading
    for label, reading in READINGS.items()
    if reading.counts_judged or reading.counts_listed
}
FORMS = ["run and truth", "judged table"]


def with_shared_ranks(kinds, form):
    """Hits share their ranks with misses: for each kind of ranks two users, one list reversed."""
    lists = [ranks for kind in kinds for ranks in (TIED_RANKS[kind], TIED_RANKS[kind][::-1])]
    run = pl.DataFrame({"user": range(len(lists)), "item": [[*range(6)]] * len(lists)})
    run = run.with_columns(rank=pl.Series(lists)).explode("item", "rank", empty_as_null=False)
    truth = pl.concat(
        pl.DataFrame(
            {
                "user": [user] * 4 + [user + 1] * 3,
                "item": [1, 2, 5, 9, 0, 4, 8],
                "relevance": [2, 1, 1, 3, 1, 0, 2],
            }
        )
        for user in range(0, len(lists), 2)
    )
    judged = run.join(truth, on=["user", "item"], how="full", coalesce=True)
    tables = [judged] if form == "judged table" else [run, truth]

    def call(*metrics, reverse):
        frame, *other = (table.reverse().lazy() if reverse else table.lazy() for table in tables)
        plan = rf.per_user(frame, *metrics, truth=other[0] if other else None)
        return plan.collect(engine="in-memory")  # which adds up lists in one go

    return call


@pytest.mark.sample(2)
@pytest.mark.parametrize("form", FORMS)
def test_shared_ranks_give_the_same_bits_in_any_order(form):
    call = with_shared_ranks(TIED_RANKS, form)
    tried = [label for label in EVERY_METRIC if label not in COUNTING]
    assert len(tried) > 100
    values = call(*tried, reverse=False)
    assert values.height == 6
    assert values.equals(call(*tried, reverse=True))
    for label in tried:
        assert values[label].is_between(*RANGES[label]).all(), label


@pytest.mark.sample(2)
@pytest.mark.parametrize("ranks", TIED_RANKS)
@pytest.mark.parametrize("form", FORMS)
def test_metrics_that_count_rows_or_judgments_refuse_shared_ranks(ranks, form):
    call = with_shared_ranks([ranks], form)
    asked = {reading.names: label for label, reading in COUNTING.items()}
    assert len(asked) > 15
    for label in asked.values():
        for reverse in (False, True):
            with pytest.raises(
                rf.RankingDataError, match="two items of one user have the same rank"
            ):
                call(label, reverse=reverse)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("column", ["score", "rank"])
def test_judged_table_without_a_single_list_is_refused_like_a_run(column, lazy):
    nothing = pl.DataFrame(
        {"user": [1, 1], "item": [7, 8], column: [None, None], "relevance": [1, 1]},
        schema_overrides={column: pl.Float64},
    )
    for judged in (nothing, *([nothing.fill_null(nan)] if column == "score" else [])):
        with pytest.raises(rf.RankingDataError, match=f"'{column}': it is null in every row"):
            rf.evaluate(judged.lazy() if lazy else judged, "ap").lazy().collect()


def test_user_without_a_list_beside_others_is_a_miss():
    judged = pl.DataFrame(
        {"user": [1, 2], "item": [7, 8], "score": [0.5, nan], "relevance": [1, 1]}
    )
    assert rf.per_user(judged, "ap")["ap"].to_list() == [1.0, 0.0]


@pytest.mark.parametrize("kind", ["eager", "lazy", "pandas"])
@pytest.mark.parametrize("users", ["run", "all"])
def test_segments_of_the_truth_alone_take_no_other_users(kind, users):
    run = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "rank": [1, 1, 1]})
    truth = pl.DataFrame({"user": [1, 2], "item": [7, 8], "country": ["x", "y"]})
    if kind == "lazy":
        run, truth = run.lazy(), truth.lazy()
    if kind == "pandas":
        run, truth = run.to_pandas(), truth.to_pandas()
    judged = rf.judge(run, truth, by="country")
    message = "only the truth has the column 'country' of by=: join it to the run"
    for call in (
        lambda: rf.evaluate(judged, "rr", by="country", users=users),
        lambda: rf.evaluate(run, "rr", by="country", users=users, truth=truth),
    ):
        with pytest.raises(ValueError, match=message):
            call()
    rf.evaluate(judged, "rr", by="country", users="both")


def test_check_sees_that_no_item_meets():
    chunks = pl.DataFrame(RUN).with_columns(item=pl.format("d{}#0", "item"))
    documents = pl.DataFrame(TRUTH).with_columns(item=pl.format("d{}", "item"))
    message = (
        "run, column 'item': no item of the run is in the truth, which has items like 'd2'. "
        "Offending row: user=1, item='d1#0', rank=1"
    )
    for frame in (chunks, chunks.lazy()):
        with pytest.raises(rf.RankingDataError, match=re.escape(message)):
            rf.check(frame, truth=documents).lazy().collect()
        with pytest.warns(rf.errors.RankingWarning, match=re.escape(message)):
            means = rf.evaluate(frame, "ap", truth=documents.lazy()).lazy().collect()
        assert means["ap"].item() == 0
    some = chunks.with_columns(
        item=pl.when(pl.col("user") == 2).then(pl.lit("d2")).otherwise("item")
    )
    rf.check(some.unique(["user", "item"]), truth=documents)


SHARED = {"day": [1, 2, 3, 4, 5], "note": ["a"] * 5}
OTHER = {"day": [1.5] * 4, "note": [0] * 4}


@pytest.mark.parametrize("lazy", [False, True])
def test_columns_that_both_tables_have_stop_nobody_who_does_not_read_them(lazy):
    run, truth = pl.DataFrame({**RUN, **SHARED}), pl.DataFrame({**TRUTH, **OTHER})
    run, truth = (run.lazy(), truth.lazy()) if lazy else (run, truth)
    plain = pl.DataFrame(RUN), pl.DataFrame(TRUTH)
    for call in (
        lambda run, truth: rf.evaluate(run, "ap", "ndcg@2", truth=truth),
        lambda run, truth: rf.per_user(run, "ap", "bpref", truth=truth, users="all"),
        lambda run, truth: rf.summarize(run, "ap", truth=truth),
    ):
        assert_equal(call(run, truth).lazy().collect(), call(*plain))
    models = pl.concat([run.with_columns(model=pl.lit(name)) for name in "ab"])
    assert rf.compare(models, "ap", truth=truth, details=True).lazy().collect()["equal"].item() == 2
    assert rf.stats.who_gained(models, 2, baseline="a", truth=truth).lazy().collect().height
    rf.check(run, truth=truth).lazy().collect()
    message = "column 'day': both the run and the truth have it"
    for refusing in (
        lambda: rf.judge(run, truth),
        lambda: rf.evaluate(run, pl.col("day").max().alias("last"), truth=truth),
    ):
        with pytest.raises(rf.RankingDataError, match=message):
            refusing()


def test_score_beside_the_rank_and_in_the_truth_does_not_clash():
    run = pl.DataFrame({**RUN, "score": [0.5] * 5})
    truth = pl.DataFrame({**TRUTH, "score": [1] * 4})
    assert_equal(
        rf.evaluate(run, "ap", truth=truth),
        rf.evaluate(pl.DataFrame(RUN), "ap", truth=pl.DataFrame(TRUTH)),
    )
    scored = run.drop("rank").with_columns(score=-pl.col("item"))
    assert_equal(
        rf.evaluate(scored, "ap", truth=truth), rf.evaluate(scored, "ap", truth=truth.drop("score"))
    )


@pytest.mark.parametrize(
    ("run", "truth", "columns", "message"),
    [
        (
            {"u": [1], "i": [2], "points": [0.5]},
            {"u": [1], "i": [2]},
            {},
            "run: no column 'user' for user, 'item' for item, 'rank' for rank; it has 'u', 'i', "
            "'points'; name them with user=, item=, rank=, or name a score with score=, or call "
            "with_rank",
        ),
        (
            {"u": [1], "item": [2], "rank": [1]},
            {"user": [1], "item": [2]},
            {"user": "u"},
            "truth: no column 'u' for user; it has 'user', 'item'; the run has 'u': pass "
            "truth_user='user'",
        ),
        (
            {"u": [1], "item": [2], "rank": [1]},
            {"user": [1], "item": [2]},
            {"user": "user"},
            "run: no column 'user' for user; it has 'u', 'item', 'rank'; the truth has 'user': "
            "pass user='u', truth_user='user'",
        ),
        (
            {"user": [1], "item": [2], "rank": [1]},
            {"user": [1], "item": [2]},
            {"relevance": "grade", "subtopic": "topic"},
            "truth: no column 'grade' for relevance, 'topic' for subtopic; it has 'user', 'item'; "
            "name them with relevance=, subtopic=",
        ),
    ],
)
def test_missing_roles_are_named_at_once(run, truth, columns, message):
    with pytest.raises(rf.RankingDataError) as error:
        rf.evaluate(pl.DataFrame(run), "ap", truth=pl.DataFrame(truth), **columns)
    assert str(error.value) == message


@pytest.mark.parametrize("name", ["__rankframe_key", "__rankframe_row", "__rankframe_x"])
def test_names_of_inner_columns_are_refused(name):
    run, truth = pl.DataFrame(RUN), pl.DataFrame(TRUTH)
    message = f"column '{name}': names that begin with '__rankframe_'"
    for call in (
        lambda: rf.evaluate(run.with_columns(pl.lit(1).alias(name)), "ap", truth=truth),
        lambda: rf.evaluate(run, "ap", truth=truth.with_columns(pl.lit(1).alias(name))),
        lambda: rf.evaluate(
            run.rename({"user": name}), "ap", truth=truth.rename({"user": name}), user=name
        ),
        lambda: rf.with_rank(pl.DataFrame(SCORED).with_columns(pl.lit(1).alias(name))),
        lambda: rf.runs.rbo(run.with_columns(pl.lit(1).alias(name)), run),
        lambda: rf.per_user(pl.DataFrame(JUDGED).with_columns(pl.lit(1).alias(name)), "ap"),
    ):
        with pytest.raises(rf.RankingDataError, match=message):
            call()
    with pytest.raises(ValueError, match=f"metric '{name}': names that begin with"):
        rf.evaluate(run, pl.col("rank").min().alias(name), truth=truth)


@pytest.mark.parametrize("undefined", [10**400, -(10**400)])
def test_integer_that_no_float_holds_is_a_value_error(undefined):
    with pytest.raises(ValueError, match="undefined must be None or a finite number"):
        rf.evaluate(pl.DataFrame(RUN), "ap", truth=pl.DataFrame(TRUTH), undefined=undefined)


def test_block_that_reaches_into_the_next_rank_is_seen_at_once():
    """The rule compares with the row just above: this block is not there as a whole."""
    run = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2], "tied": [3, 1]})
    with pytest.raises(rf.RankingDataError, match="a rank inside the block of ties above it"):
        rf.evaluate(run, "ap", truth=pl.DataFrame({"user": [1], "item": ["a"]}))


@pytest.mark.parametrize("labels", [["ap", "judged@2"], ["num_retrieved"]], ids=str)
def test_tables_without_a_fault_are_not_read_for_messages(labels, monkeypatch):
    monkeypatch.setattr(rules, "raise_in_tables", pytest.fail)
    for options in ({}, {"unjudged": "drop"}, {"users": "judged"}):
        rf.evaluate(pl.DataFrame(RUN), *labels, truth=pl.DataFrame(TRUTH), **options)


@pytest.mark.parametrize("metric", ["bpref", "judged@2", "precision", "auc"])
@pytest.mark.parametrize("bad", [1, 2])
def test_user_with_a_shared_rank_is_enough(metric, bad):
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [7, 8, 7, 8], "rank": [1, 2, 1, 2]})
    run = run.with_columns(rank=pl.when(pl.col("user") == bad).then(1).otherwise("rank"))
    truth = pl.DataFrame({"user": [1, 2], "item": [7, 7]})
    with pytest.raises(rf.RankingDataError, match=f"same rank.*user={bad}, item=7, rank=1"):
        rf.evaluate(run, metric, truth=truth)


def test_shared_columns_do_not_meet_the_names_that_a_join_makes():
    run = pl.DataFrame({**RUN, "day": [1] * 5, "day_right": [2] * 5})
    truth = pl.DataFrame({**TRUTH, "day": [3] * 4})
    own = pl.col("day_right").filter("relevant").max().alias("last")
    got = rf.evaluate(run, "ap", own, truth=truth)
    assert_equal(got.drop("last"), rf.evaluate(pl.DataFrame(RUN), "ap", truth=pl.DataFrame(TRUTH)))
    assert got["last"].item() == 2


def test_judged_table_without_users_is_not_said_to_lack_its_truth():
    judged = pl.DataFrame(JUDGED).rename({"user": "uid"})
    with pytest.raises(rf.RankingDataError) as error:
        rf.evaluate(judged, "ap")
    assert str(error.value) == (
        "judged table: no column 'user' for user; it has 'uid', 'item', 'rank', 'relevance'; name "
        "it with user="
    )


@pytest.mark.parametrize("name", ["user$", "^user"])
def test_half_a_pattern_is_a_name(name):
    run, truth = (pl.DataFrame(table).rename({"user": name}) for table in (RUN, TRUTH))
    got = rf.evaluate(run, "ap", truth=truth, user=name)
    assert_equal(got, rf.evaluate(pl.DataFrame(RUN), "ap", truth=pl.DataFrame(TRUTH)))


# ------------------------------------------------------------------ groups without common users

DAYS = pl.DataFrame({"day": [1, 1, 2], "user": [1, 2, 1], "item": [*"aba"], "rank": [1, 1, 2]})
JUDGED_DAYS = pl.DataFrame({"day": [1, 1, 3], "user": [1, 2, 1], "item": [*"aba"]})


def test_groups_without_a_common_user_keep_their_rows():
    got = rf.evaluate(DAYS, "rr", "missed", truth=JUDGED_DAYS, by="day")
    assert got.rows() == [(1, 2, 1.0, 0.0), (2, 0, None, None), (3, 1, 0.0, 1.0)]
    found = rf.health(DAYS, truth=JUDGED_DAYS, by="day").filter(what="groups_without_common_users")
    assert found.select("table", "day", "count", "example").rows() == [
        ("both", 2, 1, "day=2"),
        ("both", 3, 1, "day=3"),
        ("both", 1, 0, None),
    ]


def test_segments_of_users_may_have_no_list():
    truth = JUDGED_DAYS.filter(day=1).select("user", "item", country=pl.Series([*"xy"]))
    run = DAYS.filter(day=1, user=1).drop("day")
    assert rf.check(run, truth=truth, by="country").equals(run)
    got = rf.evaluate(run, "missed", truth=truth, by="country")
    assert got.rows() == [("x", 1, 0.0), ("y", 1, 1.0)]


def test_model_without_a_common_user_is_named():
    far = DAYS.filter(day=1).with_columns(pl.col("user") + 100)
    runs = {"near": DAYS.filter(day=1).drop("day"), "far": far.drop("day")}
    truth = JUDGED_DAYS.filter(day=1).drop("day")
    both = {**runs, "again": runs["near"]}
    got = rf.evaluate(both, "rr", truth=truth)
    assert sorted(got.rows()) == [("again", 2, 1.0), ("far", 2, 0.0), ("near", 2, 1.0)]
    with pytest.raises(rf.RankingDataError, match="^run, column 'model': a group in which no user"):
        rf.check(both, truth=truth)


def test_days_apart_concern_only_users_of_the_truth():
    late = DAYS.with_columns(pl.col("day") + 10)
    got = rf.evaluate(late, "filled@1", truth=JUDGED_DAYS, by="day", users="run")
    assert got.filter(pl.col("users") > 0).rows() == [(11, 2, 1.0), (12, 1, 0.0)]
    assert rf.evaluate(late, "filled@1", by="day")["users"].to_list() == [2, 1]
    for users in ("truth", "judged", "both", "all"):
        with pytest.raises(rf.RankingDataError, match="^run, column 'day': no \\(day, user\\)"):
            rf.evaluate(late, "rr", truth=JUDGED_DAYS, by="day", users=users)


def test_models_with_days_apart_name_the_days():
    run = pl.concat(DAYS.with_columns(model=pl.lit(m), day=pl.col("day") + 10) for m in "ab")
    truth = pl.concat(JUDGED_DAYS.with_columns(model=pl.lit(m)) for m in "ab")
    for judged in (JUDGED_DAYS, truth):
        for by in (["model", "day"], ["day", "model"]):
            with pytest.raises(rf.RankingDataError, match="^run, column 'day': no .*'day'"):
                rf.evaluate(run, "rr", truth=judged, by=by)


def days_in_parts(run, truth):
    """Both tables in parts, one per user, in each of which lists and judgments are apart."""
    return [(run.filter(user=user), truth.filter(user=user)) for user in (1, 2)]


def test_parts_and_batches_of_days_apart_are_no_tables_apart():
    run = DAYS.filter(day=1)
    day = pl.when(pl.col("user") == 2).then(1).otherwise(3)
    truth = JUDGED_DAYS.filter(day=1).with_columns(day=day)
    whole = rf.evaluate(run, "rr", truth=truth, by="day")
    meter, small = rf.Meter("rr", by="day"), []
    for part, judged in days_in_parts(run, truth):
        meter.update(part, judged)
        small.append(rf.parts.sums(part, "rr", truth=judged, by="day", part=str(len(small))))
    assert_equal(meter.compute(), whole)
    assert_equal(rf.parts.combine(small), whole)
    assert_equal(rf.parts.combine(rf.parts.merge(small)), whole)


@pytest.mark.parametrize("users", ["truth", "run"])
def test_parts_together_know_that_the_days_are_apart(users):
    run, truth = DAYS.with_columns(pl.col("day") + 10), JUDGED_DAYS
    meter, small = rf.Meter("filled@1", by="day", users=users), []
    for part, judged in days_in_parts(run, truth):
        meter.update(part, judged)
        options = {"by": "day", "users": users, "part": str(len(small))}
        small.append(rf.parts.sums(part, "filled@1", truth=judged, **options))
    for call in (meter.compute, lambda: rf.parts.combine(small)):
        if users == "run":
            assert call().filter(pl.col("users") > 0).rows() == [(11, 2, 1.0), (12, 1, 0.0)]
            continue
        with pytest.raises(rf.RankingDataError, match="parts: no user of the run is in the truth"):
            call()


# ------------------------------------------------------------------ grades of an unknown name

PLAIN_RUN = pl.DataFrame({"user": [1, 1, 2], "item": [*"aba"], "rank": [1, 2, 1]})
CLICKS = pl.DataFrame({"user": [1, 1, 2], "item": [*"aba"], "click": [0, 1, 1]})
TWO = {
    "integers": pl.Series([0, 1, 1]),
    "bytes": pl.Series([0, 1, 1], dtype=pl.UInt8),
    "floats": pl.Series([0.0, 1.0, None]),
    "decimals": pl.Series([0, 1, 1]).cast(pl.Decimal(4, 2)),
    "booleans": pl.Series([False, True, None]),
}
NOT_TWO = {
    "all 1": pl.Series([1, 1, 1]),
    "all 0": pl.Series([0, 0, 0]),
    "1 and null": pl.Series([1, None, 1]),
    "nulls": pl.Series([None, None, None], dtype=pl.Int64),
    "three values": pl.Series([0, 1, 2]),
    "a fraction": pl.Series([0.0, 1.0, 0.5]),
    "a NaN": pl.Series([0.0, 1.0, float("nan")]),
    "1 and 2": pl.Series([1, 2, 1]),
    "text": pl.Series([*"010"]),
    "all true": pl.Series([True, True, None]),
}


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("kind", TWO)
def test_grades_of_any_name_and_type_are_not_left_unread(kind, lazy):
    truth = CLICKS.with_columns(click=TWO[kind])
    judged = truth.lazy() if lazy else truth
    run = PLAIN_RUN.lazy() if lazy else PLAIN_RUN
    for call in (
        lambda: rf.evaluate(run, "ap", truth=judged),
        lambda: rf.per_user(run, "precision@1", truth=judged),
        lambda: rf.judge(run, judged),
        lambda: rf.check(run, truth=judged),
        lambda: rf.runs.side_by_side(run, 1, 2, truth=judged),
        lambda: rf.runs.to_judge(run, budget=2, truth=judged),
    ):
        with pytest.raises(rf.RankingDataError, match="^truth, column 'click': .* but no rel"):
            eager(call())
    counted = rf.health(PLAIN_RUN, truth=truth).filter(what="unread_grades")
    assert "click=" in counted["example"].item()
    all_relevant = rf.evaluate(PLAIN_RUN, "ap", truth=truth.drop("click"))
    beside = truth.with_columns(relevance=1)
    assert_equal(rf.evaluate(PLAIN_RUN, "ap", truth=beside), all_relevant)
    graded = truth.drop_nulls()
    assert rf.evaluate(PLAIN_RUN, "ap", truth=graded, relevance="click")["ap"].item() < 1


@pytest.mark.parametrize("kind", NOT_TWO)
def test_columns_without_a_role_stay_unread(kind):
    truth = CLICKS.with_columns(click=NOT_TWO[kind])
    plain = CLICKS.drop("click")
    got = rf.evaluate(PLAIN_RUN, "ap", truth=truth)
    assert_equal(got, rf.evaluate(PLAIN_RUN, "ap", truth=plain))
    assert rf.check(PLAIN_RUN, truth=truth).equals(PLAIN_RUN)
    assert rf.health(PLAIN_RUN, truth=truth).equals(rf.health(PLAIN_RUN, truth=plain))


def test_columns_that_a_call_reads_are_no_grades():
    of_user = CLICKS.with_columns(click=pl.col("user") - 1)
    own = pl.col("click").filter(pl.col("relevant")).sum().alias("clicks")
    for metric, truth, options in (
        ("ap", of_user, {"by": "click"}),
        ("ap", of_user, {"weights": "click"}),
        ("ap", CLICKS, {"subtopic": "click"}),
        (own, CLICKS, {}),
    ):
        assert rf.evaluate(PLAIN_RUN, metric, truth=truth, **options).height
    assert rf.summarize(PLAIN_RUN, "ap", truth=of_user, cluster="click").height == 1
    more = CLICKS.with_columns(bought=pl.col("click"))
    with pytest.raises(rf.RankingDataError, match="^truth, column 'bought'"):
        rf.evaluate(PLAIN_RUN, own, truth=more)


def test_column_that_the_run_has_too_is_a_grade():
    with pytest.raises(rf.RankingDataError, match="^truth, column 'click': 0 and 1 but no rel"):
        rf.evaluate(PLAIN_RUN.with_columns(click=1), "ap", truth=CLICKS)


def test_parts_together_know_the_grades():
    """In the first part all are 1, and the second has a 0."""
    truth = CLICKS.with_columns(click=pl.Series([1, 1, 0]))
    said = "^truth, column 'click': 0 and 1 but no relevance"
    flat = truth.with_columns(click=1)
    facts = rf.parts.facts(PLAIN_RUN, truth=truth)
    merged = rf.parts.merge(
        rf.parts.facts(run, truth=judged) for run, judged in days_in_parts(PLAIN_RUN, truth)
    )
    assert merged == facts
    meter, small = rf.Meter("ap"), []
    for run, judged in days_in_parts(PLAIN_RUN, truth):
        meter.update(run, judged)
        small.append(rf.parts.sums(run, "ap", truth=judged, part=str(len(small))))
        for verb in (rf.parts.sums, rf.parts.values):
            with pytest.raises(rf.RankingDataError, match=said):
                verb(run, "ap", truth=judged, facts=facts)
            assert verb(run, "ap", truth=judged, facts=facts, weights="click").height
    for call in (meter.compute, lambda: rf.parts.combine(small)):
        with pytest.raises(rf.RankingDataError, match=said):
            call()
    assert rf.parts.combine(small[:1])["ap"].item() == 1.0
    facts = rf.parts.facts(PLAIN_RUN, truth=flat)
    both = [
        rf.parts.sums(run, "ap", truth=judged, facts=facts, part=str(key))
        for key, (run, judged) in enumerate(days_in_parts(PLAIN_RUN, flat))
    ]
    assert rf.parts.combine(both)["ap"].item() == 1.0


ONE = pl.DataFrame({"user": ["u"], "item": ["i"]})
LONG = "n" * 5_000


@pytest.mark.parametrize(
    "call",
    [
        lambda: rf.check(pl.concat([ONE, ONE]).with_columns(item=pl.lit(LONG), rank=1), truth=ONE),
        lambda: rf.check(ONE.with_columns(user=pl.lit(LONG), rank=1), truth=ONE),
        lambda: rf.evaluate(ONE.with_columns(rank=1), "rr", truth=ONE, user=LONG),
        lambda: rf.evaluate(ONE.with_columns(rank=1), "rr", truth=ONE, users=LONG),
        lambda: rf.metrics.of_label(LONG),
        lambda: rf.metrics.of_label(LONG[:999]),
        lambda: rf.metrics.of_label(f"ndcg({','.join(['gain=2'] * 5_000)})"),
    ],
)
def test_long_text_is_shown_in_part(call):
    with pytest.raises(ValueError, match="n{100}|gain=2,") as error:
        call()
    shown = re.findall(r"['\"]([^'\"]*)…['\"]", f"{error.value}")
    assert {len(text) for text in shown} == {200}
    assert len(f"{error.value}") < 1_000
