"""What must hold for every metric, from the one list.

What depends on the formula is tested with each value of each option (``OF_TIER``), the rest with a
few metrics that read each column; ``test_determinism`` has the orders of rows and the engines.
"""

import polars as pl
import pytest
from every_metric import (
    CALLS,
    FEW,
    OF_EACH_COLUMN,
    OF_TIER,
    RANGES,
    SPECIAL_MEANS,
)
from two_models import MODELS, RUN, TRUTH, A, assert_same

import rankframe as rf
from rankframe._request.labels import parse_metric
from rankframe._request.registry import BASIC

# one item is no pair, and each user has a relevant item
CONSTANT = {"all@1", "attainable_precision@1", "auc@1", "abstention_recall"}
METRICS, LABELS = list(OF_TIER.values()), list(OF_TIER)
SOME = list(OF_EACH_COLUMN.values())
WIDE = {"judged", "judged_hits", "pooled_hits", "nonrelevant", "lower_graded"}


@pytest.fixture(scope="module")
def values():
    """Per-user values of every metric, by the shortest way."""
    return A.rank.per_user(*METRICS, truth=TRUTH)


@pytest.fixture(scope="module")
def means():
    return A.rank.evaluate(*METRICS, *SPECIAL_MEANS, truth=TRUTH)


def test_data_has_what_the_invariants_need(values):
    assert values.height > 25
    for label in LABELS:
        spread = values[label].n_unique()
        assert spread > 1 or label in CONSTANT, f"{label} is constant"


@pytest.fixture(scope="module")
def some(values):
    return values.select("user", *OF_EACH_COLUMN)


@pytest.fixture(scope="module")
def some_means(means):
    return means.select("users", *OF_EACH_COLUMN, *SPECIAL_MEANS)


@pytest.mark.parametrize("engine", ["streaming", "in-memory"])
def test_lazy_equals_eager_on_both_engines(values, some_means, engine):
    lazy = A.lazy().rank.per_user(*METRICS, truth=TRUTH.lazy())
    assert isinstance(lazy, pl.LazyFrame)
    assert_same(lazy.collect(engine=engine), values)
    lazy = A.lazy().rank.evaluate(*SOME, *SPECIAL_MEANS, truth=TRUTH)
    assert isinstance(lazy, pl.LazyFrame)
    assert_same(lazy.collect(engine=engine), some_means)


def test_judged_table_equals_run_and_truth(some, some_means):
    judged = A.rank.judge(TRUTH)
    assert_same(judged.rank.per_user(*SOME), some)
    assert_same(judged.rank.evaluate(*SOME, *SPECIAL_MEANS), some_means)
    lazy = A.lazy().rank.judge(TRUTH)
    assert_same(lazy.rank.per_user(*SOME).collect(), some)


@pytest.mark.parametrize("by", [[], ["model"]])
def test_composing_by_hand_equals_per_user(by):
    run, few = (RUN, SOME) if by else (A, list(FEW.values()))
    judged = run.rank.judge(TRUTH, by=by)
    expected = judged.rank.per_user(*few, by=by)
    keys = [*by, "user"]
    eager = rf.metrics.rows(judged, *few, by=by).group_by(keys).agg(few).sort(keys)
    # some metrics reduce all rows of the truth, also of users without an item of grade > 0
    assert_same(eager.join(expected, on=keys, how="semi"), expected)
    lazy = rf.metrics.rows(run.lazy().rank.judge(TRUTH, by=by), *few, by=by)
    composed = lazy.group_by(keys).agg(few).sort(keys).collect()
    assert_same(composed.join(expected, on=keys, how="semi"), expected)
    plain = [e for e in few if {*e.meta.root_names()} <= {*BASIC}]
    assert len(plain) > (0 if by else 40)
    rows = rf.metrics.rows(judged, by=by).group_by(keys).agg(plain).sort(keys)
    assert_same(rows, expected.select(rows.columns))


def test_pandas_equals_polars(some, some_means):
    import rankframe.pandas  # noqa: F401

    run, truth = A.to_pandas(), TRUTH.to_pandas()
    per_user = run.ranking.per_user(*SOME, truth=truth)
    assert_same(pl.from_pandas(per_user), some)
    evaluated = run.ranking.evaluate(*SOME, *SPECIAL_MEANS, truth=truth)
    assert_same(pl.from_pandas(evaluated), some_means)
    judged = run.ranking.judge(truth)
    assert_same(pl.from_pandas(judged.ranking.per_user(*SOME)), some)
    composed = pl.from_pandas(rf.metrics.rows(judged, *SOME)).group_by("user").agg(SOME)
    assert_same(composed.join(some, on="user", how="semi").sort("user"), some)


def test_call_of_all_metrics_equals_one_call_each(values, means):
    for label in FEW:
        assert_same(A.rank.per_user(label, truth=TRUTH), values.select("user", label))
    for label in SPECIAL_MEANS:
        assert_same(A.rank.evaluate(label, truth=TRUTH), means.select("users", label))


def test_metrics_are_methods(values):
    for label in {CALLS[label][0]: label for label in FEW}.values():
        name, arguments = CALLS[label]
        got = getattr(A.rank, name)(**arguments, truth=TRUTH)
        assert got.columns == ["user", label]
        assert_same(got, values.select("user", label))


def test_mean_is_the_mean_of_the_users(values, means):
    assert means["users"].item() == values.height
    summed = [label for label in LABELS if label.startswith("num_")]
    others = [label for label in LABELS if label not in summed]
    assert_same(means.select(others), values.select(pl.col(others).mean()))
    assert_same(means.select(summed), values.select(pl.col(summed).sum()))


def test_values_are_in_their_range(values):
    for label in LABELS:
        column = values[label].drop_nulls()
        if column.is_empty():
            assert label in CONSTANT
            continue
        least, greatest = RANGES[label]
        assert least <= column.min() <= column.max() <= greatest, label
        assert column.is_finite().all()


@pytest.mark.sample(2)
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_row_order_changes_nothing(some, seed):
    run = A.sample(fraction=1, shuffle=True, seed=seed)
    truth = TRUTH.sample(fraction=1, shuffle=True, seed=seed)
    assert_same(run.rank.per_user(*SOME, truth=truth), some)
    judged = run.rank.judge(truth).sample(fraction=1, shuffle=True, seed=seed)
    assert_same(judged.rank.per_user(*SOME), some)


def test_chunks_change_nothing(some):
    run = pl.concat([A.slice(i, 17) for i in range(0, A.height, 17)], rechunk=False)
    assert_same(run.rank.per_user(*SOME, truth=TRUTH), some)


def test_extra_columns_change_nothing(some):
    assert_same(A.select("user", "item", "rank").rank.per_user(*SOME, truth=TRUTH), some)
    run = A.with_columns(tags=pl.lit(["x"]), day=pl.lit(None), nested=pl.struct("item"))
    assert_same(run.rank.per_user(*SOME, truth=TRUTH.drop("genre")), some)


ID_TYPES = [
    pl.Int8,
    pl.Int16,
    pl.Int32,
    pl.Int128,
    pl.UInt8,
    pl.UInt16,
    pl.UInt32,
    pl.UInt64,
    pl.String,
    pl.Categorical,
    pl.Enum([f"{number:02}" for number in range(40)]),
    pl.Float64,
    pl.Date,
    pl.Binary,
]


@pytest.mark.sample(2)
@pytest.mark.parametrize("dtype", ID_TYPES, ids=str)
def test_type_of_ids_changes_nothing(some, dtype):
    def convert(name):
        column = pl.col(name)
        if dtype in (pl.String, pl.Categorical, pl.Enum, pl.Binary):
            column = column.cast(pl.String).str.zfill(2)
        return column.cast(pl.Int32).cast(dtype) if dtype == pl.Date else column.cast(dtype)

    ids = [convert("user"), convert("item")]
    got = A.with_columns(ids).rank.per_user(*SOME, truth=TRUTH.with_columns(ids))
    assert got.schema["user"] == dtype
    assert_same(got.drop("user"), some.drop("user"))


@pytest.mark.parametrize("left", [pl.Int8, pl.UInt16, pl.Int64, pl.UInt64])
@pytest.mark.parametrize("right", [pl.UInt8, pl.Int32, pl.UInt64])
def test_integers_of_any_width_meet(some, left, right):
    def ids(dtype):
        return pl.col("user", "item").cast(dtype)

    got = A.with_columns(ids(left)).rank.per_user(*SOME, truth=TRUTH.with_columns(ids(right)))
    assert_same(got, some)


def test_relabelled_ids_change_nothing(some):
    user, item = (1000 - pl.col("user")).alias("user"), (pl.col("item") * 7 + 5) % 31
    run, truth = (frame.with_columns(user, item) for frame in (A, TRUTH))
    got = run.rank.per_user(*SOME, truth=truth)
    assert_same(got.with_columns(user).sort("user"), some)


def test_renamed_columns_change_nothing(some):
    names = {"user": "uid", "item": "sku", "rank": "place", "relevance": "grade"}
    run, truth = A.rename(names, strict=False), TRUTH.rename(names, strict=False)
    got = run.rank.per_user(*SOME, truth=truth, **names)
    assert_same(got.rename({"uid": "user"}), some)
    judged = run.rank.judge(truth, **names)
    assert set(judged.columns) >= {"uid", "sku", "rank", "relevance"}
    assert_same(judged.rank.per_user(*SOME, user="uid", item="sku"), got)


def test_irrelevant_items_below_every_hit_change_nothing_at_a_fixed_k(values):
    """At a fixed k nothing below it counts; list lengths count only where they are named."""
    counts = {x: "retrieved" in expr.meta.root_names() for x, expr in OF_TIER.items()}
    fixed = [label for label in LABELS if "@" in label and not counts[label]]
    fixed += ["ap", "rr", "ndcg", "dcg", "recall", "r_precision", "hit"]
    below = pl.DataFrame(
        {"user": pl.Series(range(40)), "item": 99, "rank": 1000, "minutes": 0.0, "device": "x"},
        schema_overrides={"item": pl.Int64, "rank": pl.Int64},
    )
    got = pl.concat([A, below]).rank.per_user(*fixed, truth=TRUTH)
    assert_same(got, values.select("user", *fixed))


@pytest.mark.parametrize("k", [3, pytest.param(10, marks=pytest.mark.thorough)])
def test_items_below_the_cut_off_change_nothing(k):
    """Where ranks have gaps, what is at rank ≤ k is all that a metric at k counts."""
    kept = (pl.col("rank") * 7 + pl.col("user")) % 3 != 0
    run = A.filter(kept)
    labels = [
        label
        for label, expr in OF_TIER.items()
        # the ideal list of all returned items has those of any rank
        if label.endswith(f"@{k}")
        and parse_metric(expr).call.entry.cut == "rank"
        and "ideal=returned" not in label
    ]
    assert len(labels) > 30
    got = rf.per_user(run, *labels, truth=TRUTH)
    want = rf.per_user(run.filter(pl.col("rank") <= k), *labels, truth=TRUTH)
    assert_same(got, want)


def test_unjudged_and_grade_zero_items_are_the_same(values):
    zero = TRUTH.filter(pl.col("relevance") != 0)
    narrow = {x: e for x, e in OF_TIER.items() if WIDE.isdisjoint(e.meta.root_names())}
    assert len(narrow) < len(METRICS)
    got = A.rank.per_user(*narrow.values(), truth=zero)
    assert_same(got, values.select("user", *narrow))


@pytest.mark.sample(3)
@pytest.mark.parametrize("users", ["truth", "judged", "both", "run", "all"])
def test_by_equals_filtering(users):
    """With a model that misses users, and a truth that lacks the column."""
    options = {"users": users, "undefined": 0.5 if users == "all" else None}
    per_user = RUN.rank.per_user(*SOME, truth=TRUTH, by="model", **options)
    means = RUN.rank.evaluate(*SOME, *SPECIAL_MEANS, truth=TRUTH, by="model", **options)
    for model in MODELS:
        one = RUN.filter(model=model).drop("model")
        assert_same(
            per_user.filter(model=model).drop("model"),
            one.rank.per_user(*SOME, truth=TRUTH, **options),
        )
        assert_same(
            means.filter(model=model).drop("model"),
            one.rank.evaluate(*SOME, *SPECIAL_MEANS, truth=TRUTH, **options),
        )


def test_by_equals_filtering_with_disjoint_folds():
    """With a truth that has the column, and one of two columns."""
    fold = (pl.col("user") % 3).alias("fold")
    run, truth = RUN.with_columns(fold), TRUTH.with_columns(fold)
    means = run.rank.evaluate(*SOME, truth=truth, by=["model", "fold"])
    assert means.select("model", "fold").rows() == [(m, f) for m in MODELS for f in range(3)]
    for model, number in means.select("model", "fold").rows():
        one = run.filter(model=model, fold=number).drop("model", "fold")
        expected = one.rank.evaluate(*SOME, truth=truth.filter(fold=number).drop("fold"))
        assert_same(means.filter(model=model, fold=number).drop("model", "fold"), expected)


def test_user_of_the_composed_way_may_group_by_columns_that_ride_along():
    rows = rf.metrics.rows(A.rank.judge(TRUTH))
    got = (
        rows.group_by("user", "genre")
        .agg(rf.metrics.recall_at(3), rf.metrics.precision_at(3))
        .sort("user", "genre")
    )
    keys = got.select("user", "genre")
    assert keys.is_unique().all()
    for (user, genre), group in rows.group_by("user", "genre"):
        hits = group.filter(pl.col("rank") <= 3).height
        row = got.filter(user=user, genre=genre).row(0, named=True)
        assert row["recall@3"] == pytest.approx(hits / group.height)
        assert row["precision@3"] == pytest.approx(hits / 3)


def test_expression_of_the_users_own_is_a_metric():
    minutes = (
        pl.col("minutes")
        .filter(pl.col("relevant") & (pl.col("rank") <= 3))
        .sum()
        .alias("minutes@3")
    )
    got = A.rank.per_user(minutes, "hit@3", truth=TRUTH)
    positive = TRUTH.filter(pl.col("relevance") > 0)
    hits = A.filter(pl.col("rank") <= 3).join(positive, on=["user", "item"], how="semi")
    sums = hits.group_by("user").agg(pl.col("minutes").sum())
    expected = positive.select("user").unique().join(sums, on="user", how="left").sort("user")
    assert_same(
        got.select("user", "minutes@3"), expected.fill_null(0).rename({"minutes": "minutes@3"})
    )
