"""A small call that repeats another runs its plan: on its own tables, or not at all."""

import random
from concurrent.futures import ThreadPoolExecutor

import extension
import polars as pl
import pytest
from every_metric import OF_TIER
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe import _sizes
from rankframe._evaluation import kept_plans

METRICS = ["ndcg@5", "ap", "precision@3", "rr"]


@pytest.fixture(autouse=True)
def _no_plans(monkeypatch):
    monkeypatch.setattr(kept_plans, "_PLANS", {})
    with extension.unchanged_registry():
        yield


def tables(seed, users=20):
    draw = random.Random(seed)
    run = [(u, i, r) for u in range(users) for r, i in enumerate(draw.sample(range(30), 8), 1)]
    truth = [(u, i, draw.randint(0, 3)) for u in range(users) for i in draw.sample(range(30), 5)]
    return (
        pl.DataFrame(run, ["user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, ["user", "item", "relevance"], orient="row"),
    )


def in_groups(run):
    return run.with_columns(model=pl.col("user") % 2)


CALLS = [
    lambda run, truth: rf.evaluate(run, *METRICS, truth=truth),
    lambda run, truth: rf.per_user(run, *METRICS, truth=truth),
    lambda run, truth: rf.evaluate(in_groups(run), *METRICS, truth=truth, by="model", users="both"),
    lambda run, truth: rf.evaluate(
        in_groups(run), *METRICS, truth=truth, by="model", users="both", total=True
    ),
    lambda run, truth: rf.evaluate(run.with_columns(relevance=1), "rr", users="all"),
    lambda run, truth: rf.evaluate(
        run.drop("rank").with_columns(score=-run["rank"]), "ap", truth=truth
    ),
]


@pytest.mark.parametrize("call", CALLS)
def test_kept_plan_reads_the_tables_of_its_call(call):
    fresh = []
    for seed in range(4):
        kept_plans._PLANS.clear()
        fresh.append(call(*tables(seed, users=10 + seed)))
    kept_plans._PLANS.clear()
    calls = [(call, seed) for seed in (*range(4), *range(4))]
    again = [call(*tables(seed, users=10 + seed)) for call, seed in calls]
    (kept,) = kept_plans._PLANS.values()
    assert kept is not None
    for result, expected in zip(again, fresh * 2, strict=True):
        assert_frame_equal(result, expected, rel_tol=1e-12)


def test_plans_keep_no_table():
    for _ in range(2):
        rf.evaluate(tables(1)[0], *METRICS, truth=tables(1)[1])
    ((held, _),) = kept_plans._PLANS.values()
    assert held == {}


def test_types_and_options_have_plans_of_their_own():
    run, truth = tables(1)
    calls = [
        (run, {}),
        (run, {"undefined": 0}),
        (run, {"undefined": 0.0}),
        (run, {"users": "all"}),
        (run.cast({"user": pl.Int32}), {}),
        (run.select("item", "user", "rank"), {}),
    ]
    for table, options in calls:
        rf.evaluate(table, "rr", truth=truth.cast({"user": table.schema["user"]}), **options)
    assert len(kept_plans._PLANS) == len(calls)


def test_error_names_the_rows_of_its_call(refused):
    run, truth = tables(1)
    for _ in range(2):
        rf.evaluate(run, *METRICS, truth=truth)
    broken = run.with_columns(rank=pl.when(pl.col("user") == 7).then(0).otherwise("rank"))
    for _ in range(2):
        refused(rf.evaluate, broken, *METRICS, truth=truth)
        assert rf.evaluate(run, *METRICS, truth=truth).height == 1


def test_registration_empties_them():
    run, truth = tables(1)

    def register(value):
        @rf.register_metric("kept_constant")
        def kept_constant() -> pl.Expr:
            """A constant."""
            return pl.col("relevant").any().cast(pl.Float64) * value

    values = []
    for value in (1.0, 2.0):
        register(value)
        for _ in range(2):
            means = rf.evaluate(run, "kept_constant", truth=truth)
            values.append(means["kept_constant"].item())
    assert values == [1.0, 1.0, 2.0, 2.0]


def test_threads_do_not_share_a_plan():
    calls = [tables(seed) for seed in range(8)]
    fresh = [rf.evaluate(run, *METRICS, truth=truth) for run, truth in calls]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda n: CALLS[0](*calls[n % 8]), range(200)))
    for n, result in enumerate(results):
        assert_frame_equal(result, fresh[n % 8], rel_tol=1e-12)


def test_plans_are_kept_in_part():
    run, truth = tables(1, users=3)
    for k in range(1, _sizes.PLANS_KEPT + 10):
        rf.evaluate(run, f"precision@{k}", truth=truth)
    assert len(kept_plans._PLANS) == _sizes.PLANS_KEPT


def test_calls_that_differ_are_planned_anew(monkeypatch):
    run, truth = tables(1)
    rf.evaluate(run.lazy(), "rr", truth=truth).collect()
    rf.evaluate(run, (rf.metrics.reciprocal_rank() + 0).alias("rr"), truth=truth)
    rf.evaluate(run, "coverage@3", truth=truth, items=pl.DataFrame({"item": range(30)}))
    rf.evaluate(run, "gini(of=shown)@3", truth=truth)
    monkeypatch.setattr(_sizes, "ROWS_KEPT", 100)
    rf.evaluate(run, "rr", truth=truth)
    assert kept_plans._PLANS == {}


def plans_of(*calls):
    kept_plans._PLANS.clear()
    run, truth = tables(1)
    results = [rf.evaluate(run, metric, truth=truth, **options) for metric, options in calls]
    return len(kept_plans._PLANS), [result.item(0, 1) for result in results]


def test_calls_that_mean_the_same_have_one_plan():
    expr = rf.metrics.average_precision(2).alias("ap@2")
    attainable = {"defaults": {"map": {"divide_by": "attainable"}}}
    assert plans_of(("ap@2", {}), (expr, {}), ("ap@2", {"preset": {"defaults": {}}}))[0] == 1
    assert plans_of(("ndcg@5", {}), (rf.metrics.ndcg_at(5), {}))[0] == 1
    written = {"users": "judged", "undefined": 0.0}
    assert plans_of(("rr", {"preset": written}), ("rr", written), ("rr", written))[0] == 1
    number, (plain, other, again) = plans_of(
        ("ap@2", {}), ("ap@2", {"preset": attainable}), ("ap(divide_by=attainable)@2", {})
    )
    assert number == 3
    assert plain != other == again


def test_defaults_that_change_in_place_change_the_metric():
    own = {"ndcg": {"gain": {1: 1, 2: 1, 3: 1}}}
    first = [("ndcg@5", {"preset": {"defaults": own}})] * 3
    _, before = plans_of(*first)
    own["ndcg"]["gain"][3] = 9
    _, after = plans_of(*first)
    assert len({*before}) == len({*after}) == 1
    assert before[0] != after[0]


def test_kept_plans_have_the_same_values_of_each_metric():
    run, truth = tables(1)
    labels_of_all = list(OF_TIER)
    first, *others = (rf.per_user(run, *labels_of_all, truth=truth) for _ in range(3))
    assert any(kept_plans._PLANS.values())
    for other in others:
        assert_frame_equal(other, first, rel_tol=1e-12, abs_tol=1e-14)


def test_registered_column_may_read_what_changes():
    worth = {"hit": 1.0}

    @rf.metrics.register_column("kept_worth", "what a hit is worth")
    def kept_worth(_rows):
        return pl.lit(worth["hit"])

    @rf.register_metric("kept_worth_found")
    def kept_worth_found() -> pl.Expr:
        """Worth found: the sum over the hits."""
        return pl.col("kept_worth").filter(pl.col("rank").is_not_null()).sum()

    run, truth = tables(1)
    hits = rf.per_user(run, "num_hits", truth=truth)["num_hits"]
    for value in (1.0, 1.0, 5.0):
        worth["hit"] = value
        found = rf.per_user(run, "kept_worth_found", truth=truth)["kept_worth_found"]
        assert found.to_list() == (value * hits).to_list()
