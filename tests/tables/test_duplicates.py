"""A duplicate item is an error wherever it stands, whatever the types and the plan."""

import datetime
import itertools
import random

import polars as pl
import pytest
import reference
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
from rankframe import _sizes
from rankframe._tables import rank_order, readers
from rankframe.errors import RankingDataError

FIRST = datetime.date(2026, 1, 1)
IDS = {
    "integers": lambda n: n,
    "small integers": lambda n: n,
    "negative integers": lambda n: -n,
    "unsigned": lambda n: (1 << 63) + n,
    "128 bits": lambda n: (1 << 80) + n,
    "text": lambda n: f"id-{n:020}",
    "categories": lambda n: f"id-{n}",
    "dates": lambda n: FIRST + datetime.timedelta(days=n),
    "floats": lambda n: n + 0.5,
}
TYPES = {
    "small integers": pl.Int16(),
    "unsigned": pl.UInt64(),
    "128 bits": pl.Int128(),
    "categories": pl.Categorical(),
}
#: user, item, rank; relevant are the items below 5
LISTS = [(u, i, r) for u in range(6) for r, i in enumerate([1, 7, 2, 8], 1)]
#: user, item, relevance; the items 3 and 4 are in no list
JUDGMENTS = [(u, i, 1 + (u + i) % 3) for u in range(6) for i in (1, 2, 3, 4)]
DUPLICATES = {
    "a hit in the run": ([(4, 2, 5)], []),
    "a hit in the run, between others": ([(4, 1, 9)], []),
    "a hit in the truth": ([], [(4, 1, 3)]),
    "a hit in the truth, of the same grade": ([], [(4, 1, 1 + 5 % 3)]),
    "a miss in the truth": ([], [(4, 4, 1)]),
    "a miss in the truth, of the same grade": ([], [(4, 4, 1 + 8 % 3)]),
    "a hit in both": ([(4, 2, 5)], [(4, 2, 1)]),
}


def tables(ids, kind=None, *, users="integers"):
    """Give run and truth with ids of this type, and a duplicate of this kind."""
    extra_run, extra_truth = DUPLICATES[kind] if kind else ([], [])
    user, item = IDS[users], IDS[ids]
    types = {"user": TYPES.get(users), "item": TYPES.get(ids)}
    made = []
    for rows, value in ((LISTS + extra_run, "rank"), (JUDGMENTS + extra_truth, "relevance")):
        frame = pl.DataFrame(
            {
                "user": [user(u) for u, _, _ in rows],
                "item": [item(i) for _, i, _ in rows],
                value: [v for *_, v in rows],
            },
            schema_overrides={name: dtype for name, dtype in types.items() if dtype is not None},
        )
        made.append(frame.sample(fraction=1, shuffle=True, seed=5))
    return made


def eager(run, truth):
    return {"frame": run, "truth": truth}


def lazy(run, truth):
    return {"frame": run.lazy(), "truth": truth.lazy()}


def by_of_both(run, truth):
    both = [frame.with_columns(model=pl.lit("a")) for frame in (run, truth)]
    return {"frame": both[0], "truth": both[1], "by": "model"}


def by_of_the_run(run, truth):
    other = run.filter(pl.len().over("user", "item") == 1).with_columns(model=pl.lit("b"))
    models = pl.concat([other, run.with_columns(model=pl.lit("a"))])
    return {"frame": models, "truth": truth, "by": "model"}


def by_of_the_truth(run, truth):
    return {"frame": run, "truth": truth.with_columns(country=pl.lit("x")), "by": "country"}


def judged(run, truth):
    keys = ["user", "item"]
    return {"frame": run.join(truth, on=keys, how="full", coalesce=True)}


def judged_later(run, truth):
    return {"frame": rf.judge(run.lazy(), truth)}


def scored(run, truth):
    return {"frame": run.select("user", "item", score=-pl.col("rank")), "truth": truth}


WAYS = [eager, lazy, by_of_both, by_of_the_run, by_of_the_truth, judged, judged_later, scored]


@pytest.mark.parametrize("metric", ["ap", "precision@3", "ndcg@3", "bpref"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", DUPLICATES)
def test_duplicate_of_any_kind_is_seen_by_any_way(kind, way, metric):
    for verb in (rf.evaluate, rf.per_user):
        with pytest.raises(RankingDataError, match="duplicate"):
            verb(frame_of(way, kind), metric, **rest_of(way, kind)).lazy().collect()


def frame_of(way, kind, ids="integers"):
    return way(*tables(ids, kind))["frame"]


def rest_of(way, kind, ids="integers"):
    return {n: value for n, value in way(*tables(ids, kind)).items() if n != "frame"}


@pytest.mark.parametrize("users", ["integers", "unsigned", "text"])
@pytest.mark.parametrize("ids", IDS)
@pytest.mark.parametrize("kind", DUPLICATES)
def test_duplicate_of_any_type_is_seen(kind, ids, users):
    run, truth = tables(ids, kind, users=users)
    for metric in ("ap", "precision@3"):
        with pytest.raises(RankingDataError, match="duplicate"):
            rf.evaluate(run, metric, truth=truth)


@pytest.mark.parametrize("ids", IDS)
def test_numbers_are_those_of_any_other_ids(ids):
    metrics = ["ap", "precision@3", "ndcg@3", "rr", "recall"]
    expected = rf.evaluate(tables("integers")[0], *metrics, truth=tables("integers")[1])
    for users in ("integers", "negative integers", "unsigned", "text"):
        run, truth = tables(ids, users=users)
        assert_equal(rf.evaluate(run, *metrics, truth=truth), expected)


def test_ids_of_any_width_meet():
    run, truth = tables("integers")
    narrow = truth.with_columns(pl.col("user").cast(pl.UInt8), pl.col("item").cast(pl.Int16))
    wide = truth.with_columns(pl.col("user", "item").cast(pl.UInt64))
    expected = rf.evaluate(run, "ap", "ndcg", truth=truth)
    assert_equal(rf.evaluate(run, "ap", "ndcg", truth=narrow), expected)
    assert_equal(rf.evaluate(run, "ap", "ndcg", truth=wide), expected)


def test_pairs_at_the_ends_of_their_types_stay_apart():
    ends = [-(1 << 63), -1, 0, 1, (1 << 63) - 1]
    pairs = [(user, item) for user in ends for item in ends]
    run = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    run = run.with_columns(rank=pl.int_range(1, pl.len() + 1).over("user"))
    for number, (user, item) in enumerate(pairs):
        truth = pl.DataFrame({"user": [user], "item": [item]})
        found = rf.per_user(run, "rr", truth=truth)
        assert found.rows() == [(user, 1 / (number % len(ends) + 1))]


def test_items_that_share_a_number_are_not_duplicates(monkeypatch):
    """Every 64-bit id has a twin with the same number: they are looked at, and pass."""
    twins = [7, 7 - (1 << 63)]
    run = pl.DataFrame({"user": [1, 1], "item": [1, 2], "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1, 1, 1], "item": [2, *twins]})
    assert rf.evaluate(run, "ap", truth=truth).item(0, "ap") == pytest.approx(0.5 / 3)
    looks = []
    look = rank_order._number_of_item
    monkeypatch.setattr(
        rank_order, "_number_of_item", lambda *args: looks.append(args) or look(*args) * 0
    )
    for ids in IDS:
        run, truth = tables(ids)
        assert rf.evaluate(run, "ap", "ndcg", truth=truth)["ap"].item() > 0
    assert looks
    for kind in DUPLICATES:
        run, truth = tables("text", kind)
        with pytest.raises(RankingDataError, match="duplicate"):
            rf.evaluate(run, "ap", truth=truth)


@pytest.mark.parametrize("users", IDS)
@pytest.mark.parametrize("kind", [None, *DUPLICATES])
def test_groups_of_scanned_tables_are_judged_like_those_in_memory(kind, users):
    """The truth that all groups share is joined once, and a number of the group is sorted by."""
    run, truth = tables("integers", kind, users=users)
    by_model = by_of_the_run(run, truth)
    frame, truth = by_model["frame"], truth.with_columns(pl.col("relevance") - 1)
    options = {"by": "model", "relevant_at": 2}
    for metrics in (["ap", "ndcg@3", "precision"], ["bpref"]):
        call = [rf.per_user, frame.lazy(), metrics, truth.lazy(), options]
        if kind is None:
            whole = rf.per_user(frame, *metrics, truth=truth, **options)
            assert_frame_equal(_lazily(*call).sort("model", "user"), whole, rel_tol=1e-12)
        elif metrics == ["bpref"]:
            with pytest.raises(RankingDataError, match="duplicate"):
                _lazily(*call)


def _lazily(verb, frame, metrics, truth, options):
    return verb(frame, *metrics, truth=truth, **options).collect()


ORDERS = {
    "list by list": lambda run: run.sort("user", "rank"),
    "rank by rank": lambda run: run.sort("rank", "user"),
    "model by model": lambda run: run.sort("model", "user", "rank"),
    "shuffled": lambda run: run.sample(fraction=1, shuffle=True, seed=5),
}
BROKEN = {
    "duplicate": {"user": 4, "item": 7, "rank": 5},
    "same rank": {"user": 4, "item": 9, "rank": 4},
}


@pytest.mark.parametrize("by", [[], ["model"]])
@pytest.mark.parametrize("order", ORDERS)
def test_lists_on_disk_are_checked_in_any_order(order, by, tmp_path):
    """Rows of a list that follow each other are checked alone, and other tables as a whole."""
    lists, truth = tables("integers")
    other = lists.filter(pl.col("rank") < 3) if by else lists.clear()
    run = pl.concat([lists.with_columns(model=1), other.with_columns(model=2)])

    def scanned(run, name):
        ORDERS[order](run).write_parquet(tmp_path / name)
        return pl.scan_parquet(tmp_path / name)

    options = {"truth": truth.lazy(), "by": by}
    result = rf.evaluate(scanned(run, "good"), "precision", "ap", **options).collect()
    expected = rf.evaluate(run, "precision", "ap", **options).lazy().collect()
    assert_frame_equal(result, expected, rel_tol=1e-12)
    for kind, row in BROKEN.items():
        bad = pl.concat([run, pl.DataFrame({**row, "model": 1}, schema=run.schema)])
        with pytest.raises(RankingDataError, match=kind):
            rf.evaluate(scanned(bad, kind), "precision", "ap", **options).collect()


def test_lists_that_lie_apart_are_held_to_find_duplicates(tmp_path, monkeypatch):
    lists, truth = tables("integers")
    passes, collect = [], pl.LazyFrame.collect

    def counted(frame, **how):
        passes.append(frame)
        return collect(frame, **how)

    monkeypatch.setattr(pl.LazyFrame, "collect", counted)
    for run, number in ((lists.sort("user", "rank"), 1), (lists.sort("rank"), 2)):
        passes.clear()
        rf.evaluate(run.lazy(), "precision", truth=truth.lazy()).collect()
        assert len(passes) == number


# ------------------------------------------------------------------ large tables in memory


@pytest.fixture
def as_if_large(monkeypatch):
    monkeypatch.setattr(_sizes, "ROWS_COMPARED", 0)


def random_lists(seed):
    """Give lists that lie together, in order, without a duplicate; but for one row."""
    draw = random.Random(seed)
    rows = []
    for user in draw.sample(range(-4, 5), 4):
        length = draw.randrange(4, 12)
        ranks = sorted(draw.sample(range(1, 30), length))
        items = draw.sample(range(-9, 9), length)
        rows += [(user, item, rank) for item, rank in zip(items, ranks, strict=True)]
    place, other = draw.randrange(len(rows)), draw.choice(rows)
    user, item, rank = rows[place]
    rows[place] = draw.choice(
        [
            *[rows[place]] * 3,
            (user, other[1], rank),
            (user, item, other[2]),
            (other[0], item, rank),
            (user, None, rank),
        ]
    )
    return rows


def test_lists_in_order_without_a_duplicate_are_recognized(as_if_large):
    recognized = 0
    examples = reference.drawn(500)
    for seed in range(examples):
        rows = random_lists(seed)
        blocks = [user for user, _ in itertools.groupby(user for user, _, _ in rows)]
        plain = (
            len({*blocks}) == len(blocks) <= len(rows) / 4
            and all(a[0] != b[0] or a[2] < b[2] for a, b in itertools.pairwise(rows))
            and len({(user, item) for user, item, _ in rows}) == len(rows)
            and all(item is not None for _, item, _ in rows)
        )
        run = pl.DataFrame(rows, schema=["user", "item", "rank"], orient="row")
        for types in ((), (pl.Int8, pl.Int16), (pl.Int32, pl.Int64)):
            casts = [pl.col(n).cast(t) for n, t in zip(["user", "item"], types, strict=False)]
            table = readers.read("run", run.with_columns(casts), (), {})
            assert rank_order.are_distinct(table) == plain, (seed, types)
        recognized += plain
    assert examples / 5 < recognized < examples * 4 / 5


@pytest.mark.parametrize(("column", "message"), [("item", "duplicate"), ("rank", "the same rank")])
def test_lists_in_order_break_the_same_rules(as_if_large, column, message):
    pairs = [(user, item) for user in range(9) for item in range(1, 10)]
    history = pl.DataFrame(pairs, schema=["user", "item"], orient="row")
    lists = history.with_columns(rank="item")
    labels = ["novelty@3", "coverage@3"]
    assert rf.evaluate(lists, *labels, history=history).row(0) == (9, 0.0, 3 / 9)
    broken = pl.when((pl.col("user") == 5) & (pl.col("rank") == 9)).then(2).otherwise(column)
    with pytest.raises(RankingDataError, match=message):
        rf.evaluate(lists.with_columns(broken.alias(column)), *labels, history=history)
