"""Packed numbers against the plain rule: every list sorted by itself, in Python."""

import datetime
import random

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polars.testing import assert_frame_equal
from reference import drawn
from two_models import assert_equal

import rankframe as rf
from rankframe._tables.rank_order import SHARES_RANK, USER_CODE, in_rank_order
from rankframe.errors import RankingDataError

DAY = datetime.date(2026, 1, 1)
USERS = {
    "small": ([1, 2, 3, 4], pl.Int64),
    "negative": ([-(2**63), -1, 0, 2**63 - 1], pl.Int64),
    "unsigned": ([0, 2**63 - 1, 2**63, 2**64 - 1], pl.UInt64),
    "narrow": ([-128, 0, 1, 127], pl.Int8),
    "wide": ([-(2**100), 0, 2**64, 2**100], pl.Int128),
    "text": (["", "b", "ä", "a longer name than twelve bytes"], pl.String),
    "categories": (["b", "a", "d", "c"], pl.Categorical),
    "enum": (["b", "a", "d", "c"], pl.Enum(["d", "c", "b", "a"])),
    "dates": ([DAY - datetime.timedelta(days=10**5 * i) for i in range(4)], pl.Date),
    "times": (
        [datetime.timedelta(microseconds=10**15 * i - 7) for i in range(4)],
        pl.Duration("us"),
    ),
    "floats": ([-1.5, 0.0, 1e-300, 1e300], pl.Float64),
    "booleans": ([True, False], pl.Boolean),
    "bytes": ([b"", b"\xff", b"a", b"b"], pl.Binary),
}
GRADES = {
    "few": ([1, 2, 3], pl.Int64),
    "any sign": ([-2, -1, 0, 1, 2], pl.Int8),
    "floats": ([0.1, 0.25, 1e-300, 1e300, 5e-324], pl.Float64),
    "zeros": ([-0.0, 0.0, -1.0, 1.0], pl.Float64),
    "single": ([0.5, 1.5, -3.0], pl.Float32),
    "huge": ([1, 2**40, 2**53], pl.UInt64),
}
RANKS = {"short": range(1, 60), "deep": [2**31 - 1, 2**31, 2**32, 2**40, 2**53, *range(1, 40)]}


def random_rows(seed, users, grades, ranks):
    """Give lists of 0 to 9 ranked and some unranked rows, shuffled, in two groups."""
    draw = random.Random(seed)
    rows = []
    for group in ("x", "y"):
        for user in users[0]:
            placed = draw.sample(list(ranks), draw.randrange(10))
            for rank in [*placed, *[None] * draw.randrange(4)]:
                rows.append((group, user, len(rows), rank, draw.choice(grades[0])))
    draw.shuffle(rows)
    schema = {
        "group": pl.String,
        "user": users[1],
        "item": pl.Int64,
        "rank": pl.Int64,
        "relevance": grades[1],
    }
    return pl.DataFrame(rows, schema=schema, orient="row")


def expected(frame, keys):
    """Give, for each item, its place and the ideal grade there; null ranks share the last ones."""
    places, ideals = {}, {}
    for key, rows in frame.partition_by(keys, as_dict=True).items():
        ranked = sorted((rank, item) for item, rank in rows[["item", "rank"]].rows() if rank)
        places |= {item: place for place, (_, item) in enumerate(ranked, 1)}
        grades = sorted((max(0.0, float(grade)) for grade in rows["relevance"]), reverse=True)
        ideals[key] = grades
    return places, ideals


@pytest.mark.parametrize("keys", [["user"], ["group", "user"]], ids=str)
@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("grades", GRADES)
@pytest.mark.parametrize("users", USERS)
def test_places_and_the_ideal_beside_them(users, grades, ranks, keys):
    frame = random_rows(f"{users}{grades}{ranks}", USERS[users], GRADES[grades], RANKS[ranks])
    frame = frame if "group" in keys else frame.filter(group="x")
    places, ideals = expected(frame, keys)
    rows = in_rank_order(frame.lazy(), keys, "item", frame.schema).collect()
    assert rows.select(frame.columns).sort("item").equals(frame.sort("item"))
    code = [USER_CODE] if users == "text" else []
    assert rows.columns == [*frame.columns, SHARES_RANK, "ideal_place", "ideal_relevance", *code]
    assert not rows[SHARES_RANK].any()
    for key, mine in rows.partition_by(keys, as_dict=True).items():
        assert mine["ideal_place"].to_list() == list(range(1, len(mine) + 1))
        assert mine["ideal_relevance"].to_list() == ideals[key]
    found = dict(rows.filter(pl.col("rank").is_not_null()).select("item", "ideal_place").rows())
    assert found == places


@pytest.mark.parametrize("keys", [["user"], ["group", "user"]], ids=str)
@pytest.mark.parametrize("users", USERS)
def test_shared_ranks_by_user(users, keys):
    frame = random_rows(f"{users}shared", USERS[users], GRADES["few"], RANKS["short"])
    frame = frame.with_columns(rank=pl.col("rank") % 4 + 1)
    rows = in_rank_order(frame.lazy(), keys, "item", frame.schema).collect()
    placed = frame.drop_nulls("rank")
    shared = placed.group_by(keys).agg(extra=pl.len() - pl.col("rank").n_unique())
    assert shared["extra"].sum() > 0
    found = rows.group_by(keys).agg(extra=pl.col(SHARES_RANK).sum())
    both = found.filter(pl.col("extra") > 0).sort(keys)
    assert both.rows() == shared.filter(pl.col("extra") > 0).sort(keys).rows()


def test_table_without_a_row():
    frame = random_rows(0, USERS["small"], GRADES["few"], RANKS["short"]).clear()
    rows = in_rank_order(frame.lazy(), ["user"], "item", frame.schema).collect()
    assert rows.is_empty()
    assert rows.schema["ideal_place"] == pl.Int64
    assert rows.schema["ideal_relevance"] == pl.Float64


def test_filter_that_comes_later_does_not_reach_below_the_order():
    judged = pl.LazyFrame(
        {"user": [1, 1, 1], "item": [7, 8, 9], "rank": [3, 1, 2], "relevance": [1, 2, 3]}
    )
    rows = rf.metrics.rows(judged).filter(pl.col("rank") > 1).sort("rank")
    kept = rows.select("item", "hits", "ideal_place", "ideal_relevance").collect()
    assert kept.rows() == [(9, 2, 2, 2.0), (7, 3, 3, 1.0)]


@pytest.mark.parametrize("relevant_at", [None, 2])
@pytest.mark.parametrize("metrics", [["ap"], ["ap", "num_nonrelevant"]], ids=str)
@pytest.mark.parametrize("users", ["small", "unsigned", "text", "floats", "bytes"])
def test_hits_are_those_at_or_above_the_rank(users, metrics, relevant_at):
    frame = random_rows(users, USERS[users], GRADES["any sign"], RANKS["deep"])
    rows = rf.metrics.rows(frame, *metrics, by="group", relevant_at=relevant_at)
    line = relevant_at or 1
    for mine in rows.partition_by("group", "user"):
        for rank, hits in mine.select("rank", "hits").rows():
            good = (pl.col("rank") <= rank) & (pl.col("relevance") >= line) if rank else None
            assert hits == (mine.filter(good).height if rank else None)


@pytest.mark.parametrize("grade", [2, True, None])
def test_the_ideal_of_one_grade(grade):
    run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    truth = pl.DataFrame({"user": [1, 1, 2, 3], "item": [8, 9, 7, 7]})
    if grade is not None:
        truth = truth.with_columns(relevance=pl.lit(grade))
    labels = "ndcg@1", "ndcg(gain=exponential)", "ap"
    lazy = rf.per_user(run.lazy(), *labels, truth=truth.lazy()).collect()
    assert rf.per_user(run, *labels, truth=truth).equals(lazy.sort("user"))
    rows = rf.metrics.rows(rf.judge(run, truth))
    assert rows["ideal_relevance"].to_list() == [float(grade or 1)] * 4


def test_ndcg_of_grades_that_only_64_bits_distinguish():
    grades = [2.0**-30, 1.0, 1.0 + 2.0**-50]
    judged = pl.DataFrame(
        {"user": [1, 1, 1], "item": [1, 2, 3], "rank": [3, 2, 1], "relevance": grades}
    )
    assert judged.rank.evaluate("ndcg")["ndcg"].item() == 1.0
    assert rf.metrics.rows(judged)["ideal_relevance"].to_list() == sorted(grades, reverse=True)
    assert rf.metrics.rows(judged.with_columns(rank=4 - pl.col("rank")))["hits"].to_list() == [
        1,
        2,
        3,
    ]


# ------------------------------------------------------------------ ranks from scores

NAN = float("nan")
FLOATS = [0.5, -0.5, 0.0, -0.0, 1e300, -1e300, 5e-324, -5e-324, 1.0, 1.0 + 2**-52, NAN, None]
SCORES = {
    "floats": (FLOATS, pl.Float64),
    "single": ([0.1, -0.1, 0.0, -0.0, 3e38, NAN, None], pl.Float32),
    "integers": ([-(2**63), -(2**63) + 1, 0, 2**53, 2**53 + 1, 2**63 - 1, None], pl.Int64),
    "unsigned": ([0, 1, 2**63, 2**64 - 2, 2**64 - 1, None], pl.UInt64),
    "bytes": ([-128, -1, 0, 127, None], pl.Int8),
    "wide": ([-(2**100), -(2**100) + 1, 0, 2**100, 2**100 + 1], pl.Int128),
    "decimals": (["0.10", "0.11", "-0.10", "9999999999999999.98", None], pl.Decimal(18, 2)),
    "nothing": ([None], pl.Null),
    "constant": ([1.0], pl.Float64),
}
ITEMS = {
    "integers": (list(range(-20, 20)), pl.Int64),
    "unsigned": ([*range(20), *range(2**64 - 20, 2**64)], pl.UInt64),
    "text": ([*"abcABCé", "aa", "a ", "", "ä", *map(str, range(30))], pl.String),
    "categories": ([*"zyxabcABCé", *map(str, range(30))], pl.Categorical),
    "floats": ([-1e300, -0.5, 0.0, *range(1, 30)], pl.Float64),
}


def random_run(seed, users, items, scores):
    draw = random.Random(seed)
    rows = []
    for group in ("x", "y"):
        for user in users[0]:
            chosen = draw.sample(items[0], draw.randrange(12))
            rows += [(group, user, item, draw.choice(scores[0])) for item in chosen]
    draw.shuffle(rows)
    columns = {"group": pl.String, "user": users[1], "item": items[1]}
    frame = pl.DataFrame([row[:3] for row in rows], schema=columns, orient="row")
    values = [row[3] for row in rows]
    exact = scores[1] in (pl.Int128, pl.Int64, pl.UInt64)
    given = pl.Series("score", values, dtype=scores[1] if exact else None)
    return frame.with_columns(given.cast(scores[1]))


def by_window(run, keys, *, descending, ties, single_precision=False):
    """Rank by the plain rule, one window over all rows."""
    dtype = run.schema["score"]
    score = pl.col("score").fill_nan(None) if dtype.is_float() else pl.col("score")
    score = score.cast(pl.Float64) if dtype == pl.Null else score
    score = score.cast(pl.Float32) if single_precision else score
    placed = score.is_not_null()
    tie = -pl.col("index").cast(pl.Int64)
    if ties == "item":
        texts = run.schema["item"] == pl.Categorical
        tie = pl.col("item").cast(pl.String) if texts else pl.col("item")
    score = score if descending else (~score if dtype.is_integer() else -score)
    position = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(
        keys, order_by=[score, tie], descending=True, nulls_last=True
    )
    indexed = run.with_row_index("index")
    return indexed.with_columns(rank=pl.when(placed).then(position)).drop("index")


@pytest.mark.parametrize("ties", ["item", "order"])
@pytest.mark.parametrize("descending", [True, False])
@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.parametrize("scores", SCORES)
@pytest.mark.parametrize("users", ["negative", "unsigned", "text", "floats", "bytes"])
def test_ranks_from_scores(users, scores, items, descending, ties):
    run = random_run(f"{users}{scores}{items}", USERS[users], ITEMS[items], SCORES[scores])
    ranked = run.rank.with_rank(by="group", descending=descending, ties=ties)
    plain = by_window(run, ["group", "user"], descending=descending, ties=ties)
    assert_equal(ranked, plain)


#: beside plain scores, those that only 64 bits tell apart, and numbers that no float of 32 bits has
CLOSE = [1.0, 1.0 + 2**-40, 1.0 - 2**-40, 1e300, 2e300, -1e300, 1e-300, 0.0, -0.0]
TYPES = {"text": pl.String, "integers": pl.Int64, "categories": pl.Categorical}


@st.composite
def lists_of_models(draw):
    """Rows of two models and two days, and the types of users and items."""
    types = [draw(st.sampled_from(sorted(TYPES))) for _ in range(2)]
    scores = st.sampled_from([*CLOSE, NAN, None])
    ids = st.tuples(st.sampled_from("ab"), st.integers(1, 2), st.integers(1, 3), st.integers(-9, 9))
    rows = draw(st.lists(st.tuples(ids, scores), min_size=1, max_size=40, unique_by=lambda r: r[0]))
    return types, [(*ids, score) for ids, score in rows]


def by_python(rows, types, keys):
    """Rank each list by itself: by score, then by item, both descending."""
    key = (lambda item: item) if types[1] == "integers" else str
    lists = {}
    for row in rows:
        if row[-1] is not None and row[-1] == row[-1]:
            lists.setdefault(tuple(row[k] for k in keys), []).append(row)
    ranks = {}
    for rows_of_list in lists.values():
        ordered = sorted(rows_of_list, key=lambda r: (r[-1], key(r[-2])), reverse=True)
        ranks |= {row[:-1]: rank for rank, row in enumerate(ordered, 1)}
    return [ranks.get(row[:-1]) for row in rows]


@settings(max_examples=drawn(300))
@given(lists_of_models(), st.sampled_from(["eager", "auto", "streaming", "in-memory"]))
def test_ranks_are_those_of_plain_python(lists, engine):
    types, rows = lists
    names = ["model", "day", "user", "item", "score"]
    run = pl.DataFrame(rows, schema=names, orient="row").cast({"score": pl.Float64})
    for name, kind in zip(names[2:4], types, strict=True):
        wanted = pl.col(name) if kind == "integers" else pl.col(name).cast(pl.String)
        run = run.with_columns(wanted.cast(TYPES[kind]))
    keys = ["model", "day"]
    if engine == "eager":
        ranked = rf.with_rank(run, by=keys)
    else:
        ranked = rf.with_rank(run.lazy(), by=keys).collect(engine=engine)
    assert ranked.drop("rank").equals(run)
    assert ranked["rank"].to_list() == by_python(rows, types, [0, 1, 2])


@pytest.mark.parametrize("single_precision", [True, False])
def test_ranks_on_the_way(single_precision):
    values = [1.0, 1.0 + 2**-40, 0.5, None, NAN]
    run = random_run("way", USERS["text"], ITEMS["text"], (values, pl.Float64))
    plain = by_window(
        run, ["group", "user"], descending=True, ties="item", single_precision=single_precision
    )
    truth = run.select("user", "item").unique().sort("user", "item")[::2]
    asked = [*("ap", "ndcg@3", "rr"), pl.col("rank").sum().alias("ranks")]
    options = {"truth": truth, "by": "group", "users": "both"}
    found = run.rank.per_user(*asked, preset={"single_precision": single_precision}, **options)
    expected = plain.drop("score").rank.per_user(*asked, **options)
    # the streaming engine may add up a list in two parts
    assert_frame_equal(found, expected, rel_tol=0, abs_tol=1e-15)


# ------------------------------------------------------------------ ranks from scores in memory

SCORED_IDS = {
    "integers": int,
    "negative": lambda n: -n,
    "wide": lambda n: (n - 4) * (1 << 60),
    "text": str,
    "bytes": lambda n: bytes([n]),
    "floats": float,
}


@st.composite
def scored_tables(draw):
    """Lists in order, nearly in order or not at all, with ties, gaps and duplicates."""
    scores = st.sampled_from([0.0, -0.0, 0.5, 1.0, 1e-300, -2.0, float("inf"), None, float("nan")])
    if draw(st.booleans()):
        scores = st.sampled_from([0.0, -0.0, 0.5, 0.25, -2.0])
    row = st.tuples(st.integers(1, 4), st.integers(1, 6), scores)
    unique = None if draw(st.integers(0, 9)) == 0 else lambda row: row[:2]
    rows = draw(st.lists(row, min_size=1, max_size=24, unique_by=unique))
    if draw(st.booleans()):
        down = [(u, -1.0 if s is None or s != s else s, i) for u, i, s in rows]
        order = sorted(range(len(rows)), key=lambda n: (down[n][0], -down[n][1], -down[n][2]))
        rows = [rows[n] for n in order]
    make = SCORED_IDS[draw(st.sampled_from(sorted(SCORED_IDS)))]
    number = draw(st.sampled_from([pl.Float64, pl.Float32]))
    run = pl.DataFrame(
        {
            "user": [make(u) for u, *_ in rows],
            "item": [make(i) for _, i, _ in rows],
            "score": pl.Series([s for *_, s in rows], dtype=pl.Float64).cast(number),
        }
    )
    pairs = draw(st.lists(st.tuples(st.integers(1, 5), st.integers(1, 7)), min_size=1, unique=True))
    truth = pl.DataFrame({"user": [make(u) for u, _ in pairs], "item": [make(i) for _, i in pairs]})
    return run, truth


def outcome(call):
    try:
        return call()
    except RankingDataError as error:
        return str(error)


@settings(max_examples=drawn(150))
@given(scored_tables(), st.booleans())
@pytest.mark.filterwarnings("ignore::rankframe.errors.RankingWarning")  # the subject is another
def test_tables_in_memory_are_ranked_like_lazy_ones(tables, single_precision):
    """By one packed number, or not at all where they stand in order: else by rows and ties."""
    run, truth = tables
    metrics, options = ["rr", "ap", "ndcg@2"], {"preset": {"single_precision": single_precision}}
    got = outcome(lambda: rf.per_user(run, *metrics, truth=truth, **options))
    lazily = rf.per_user(run.lazy(), *metrics, truth=truth.lazy(), **options)
    expected = outcome(lazily.collect)
    assert got.equals(expected) if isinstance(got, pl.DataFrame) else got == expected


@pytest.mark.parametrize("make", [int, str], ids=["integers", "text"])
@pytest.mark.parametrize("tied", [(4, 5), (5, 4)])
def test_tie_is_seen_in_lists_that_are_in_order_of_their_scores(tied, make):
    items = [1, 2, 3, *tied, 6, 7, 8]
    scores = [8.0, 7.0, 6.0, 5.0, 5.0, 4.0, 3.0, 2.0]
    run = pl.DataFrame({"user": 1, "item": [make(item) for item in items], "score": scores})
    for item, rank in [(5, 4), (4, 5), (6, 6)]:
        truth = pl.DataFrame({"user": [1], "item": [make(item)]})
        assert rf.evaluate(run, "rr", truth=truth).item(0, "rr") == 1 / rank


# ------------------------------------------------------------------ text


@pytest.mark.parametrize("texts", [("user",), ("item",), ("user", "item")], ids=str)
@pytest.mark.parametrize("by", [(), ("group",)], ids=str)
@pytest.mark.parametrize("lazy", [False, True], ids=["eager", "lazy"])
@pytest.mark.parametrize("more", [(), ("judged@5",)], ids=str)  # this also reads grade 0
def test_text_ids_have_the_values_of_integers(more, lazy, by, texts):
    draw = random.Random(f"{by}{texts}")
    pairs = [(u, i) for u in range(10, 30) for i in draw.sample(range(100, 200), 12)]
    run = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    run = run.with_columns(rank=pl.int_range(pl.len()).over("user") + 1)
    if by:
        other = run.with_columns(group=pl.lit("y"), rank=13 - pl.col("rank"))
        run = pl.concat([run.with_columns(group=pl.lit("x")), other])
    judgments = draw.sample(pairs, 60) + [(u, i) for u in range(20, 35) for i in (7, 8)]
    truth = pl.DataFrame(judgments, schema=["user", "item"], orient="row")
    truth = truth.with_columns(relevance=pl.Series(draw.choices([0, 1, 2], k=truth.height)))
    deepest = pl.col("rank").max().alias("deepest")
    metrics = ["precision@5", "recall@5", "ap", "ndcg@10", deepest, *more]
    expected = rf.per_user(run, *metrics, truth=truth, by=by)
    if "user" in texts:
        expected = expected.with_columns(pl.col("user").cast(pl.String))
    run, truth = (frame.with_columns(pl.col(texts).cast(pl.String)) for frame in (run, truth))
    if lazy:
        run, truth = run.lazy(), truth.lazy()
    found = rf.per_user(run, *metrics, truth=truth, by=by).lazy().collect()
    assert_frame_equal(found, expected)


@pytest.mark.parametrize("metric", ["ap", "bpref", "ndcg"])
def test_ranks_too_deep_for_groups_are_exact_or_refused(metric, refused):
    """One number holds user, group and place; hits below 2^39 would share the last place."""
    deep = 1 << 39
    truth = pl.DataFrame({"user": 1, "item": [1, 2, 3, 4], "relevance": [1, 2, 3, 0]})
    for ranks in ([1, 2, deep, 4], [1, 2, deep + 9, 4], [deep + 40, deep + 30, deep + 20, 1]):
        lists = pl.DataFrame({"user": 1, "item": [1, 2, 3, 4], "rank": ranks})
        value = rf.evaluate(lists, metric, truth=truth).item(0, metric)
        run = pl.concat([lists.with_columns(model=pl.lit(name)) for name in "ab"])
        for _ in range(3):  # later calls run a kept plan
            means = rf.evaluate(run, metric, truth=truth, by="model")
            assert means[metric].to_list() == pytest.approx([value, value], rel=1e-12)
        lazy = rf.evaluate(run.lazy(), metric, truth=truth.lazy(), by="model")
        if min(ranks[:3]) > deep:
            refused(lazy.collect)
        else:
            assert lazy.collect()[metric].to_list() == pytest.approx([value, value], rel=1e-12)
