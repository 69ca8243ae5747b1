"""What the physical plans of the streaming engine hold, and what they must not."""

import re

import polars as pl
import pytest
from every_metric import OF_TIER, WITH_FORM
from two_models import assert_equal

import rankframe as rf
from rankframe import _sizes

RUN = pl.LazyFrame(
    {
        "model": ["a", "a", "b"],
        "user": [1, 1, 1],
        "item": [1, 2, 1],
        "rank": [1, 2, 1],
        "minutes": [3.0, 4.0, 5.0],
    }
)
TRUTH = pl.LazyFrame({"user": [1, 1, 2], "item": [2, 3, 1], "relevance": [1, 2, 3]})
ONE = RUN.filter(model="a").drop("model")
JUDGED = ONE.collect().rank.judge(TRUTH.collect()).lazy()
FAMILIES = ["precision@10", "recall@10", "hit@10", "rr", "dcg@10", "ap", "ndcg@10"]


class Plan:
    """Nodes of the physical plan, as polars draws it."""

    def __init__(self, query: pl.LazyFrame) -> None:
        drawn = query.show_graph(engine="streaming", plan_stage="physical", raw_output=True)
        assert drawn is not None
        self.labels = dict(re.findall(r'^(\d+) \[label="(.*?)"[,\]]', drawn, re.MULTILINE))
        in_memory = re.findall(r'^(\d+) \[label="[^\n]*fillcolor="0\.0 ', drawn, re.MULTILINE)
        self.in_memory = [self.kind(node) for node in in_memory]
        self.inputs = re.findall(r"^(\d+) -> (\d+);", drawn, re.MULTILINE)
        self.kinds = [self.kind(node) for node in self.labels]
        assert self.kinds

    def kind(self, node: str) -> str:
        return re.split(r"[\\\[ ]", self.labels[node])[0]

    def joins(self) -> list[str]:
        """How the joins of run and truth join, those on the item."""
        return [re.search(r"how: (\w+)", self.labels[n])[1] for n in self.on_item()]

    def on_item(self) -> list[str]:
        on_item = re.compile(r'(item|__rankframe_pair) = col\(\\"(item|__rankframe_pair)\\"\)')
        return [n for n, x in self.labels.items() if "equi-join" in x and on_item.search(x)]

    def below(self, node: str) -> set[str]:
        found = {node}
        for source, target in self.inputs * len(self.labels):
            if target in found:
                found.add(source)
        return found

    def truth_filter_is_below_every_join(self) -> bool:
        joins = self.on_item()
        return bool(joins) and all(
            any(
                re.match(r"filter\\n\w+ = col\(\\\"relevance\\\"\) > 0", self.labels[n])
                for n in self.below(join)
            )
            for join in joins
        )


def queries(metrics, **options):
    """The ways to one number, lazily."""
    by = options.get("by")
    run = RUN if by else ONE
    keys = [by, "user"] if by else ["user"]
    relevant_at = options.get("relevant_at")
    composed = rf.metrics.rows(
        run.rank.judge(TRUTH, by=by or ()), by=by or (), relevant_at=relevant_at
    )
    exprs = [rf.metrics.of_label(m) if isinstance(m, str) else m for m in metrics]
    return {
        "per_user": run.rank.per_user(*metrics, truth=TRUTH, **options),
        "evaluate": run.rank.evaluate(*metrics, truth=TRUTH, **options),
        "judge and per_user": run.rank.judge(TRUTH, by=by or ()).rank.per_user(
            *metrics, users="truth", **options
        ),
        "composed": composed.group_by(keys).agg(exprs),
    }


windows_stream = pytest.mark.polars_2("windows and ranks do not stream")

WAYS = ["per_user", "evaluate", "judge and per_user", "composed"]


@windows_stream
def test_reader_of_plans_sees_what_it_must():
    full = ONE.join(TRUTH, on=["user", "item"], how="full", coalesce=True)
    plan = Plan(full.group_by("user").agg(pl.col("rank").cum_sum().max()))
    assert plan.joins() == ["FULL"]
    assert not plan.truth_filter_is_below_every_join()
    assert plan.in_memory == ["in-memory-map"]
    plan = Plan(full.sort("user").with_row_index().group_by("user").agg(pl.col("index").sum()))
    assert "sort" in plan.kinds
    plan = Plan(full.with_columns(pl.col("rank").cum_sum().over("user", order_by="rank")))
    assert "window" in plan.kinds
    plan = Plan(full.with_columns(pl.len().over("user")))
    assert "scalar-window" in plan.kinds


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"by": "model"},
        pytest.param({"relevant_at": 2}, marks=windows_stream),
    ],
    ids=str,
)
@pytest.mark.parametrize("metric", [*FAMILIES, "all"])
def test_everything_streams_and_the_truth_is_filtered_below_the_join(metric, options, way):
    metrics = FAMILIES if metric == "all" else [metric]
    plan = Plan(queries(metrics, **options)[way])
    # the one callback: the check, on a few rows of flags
    assert plan.in_memory.count("in-memory-map") == 1
    assert set(plan.in_memory) <= {"in-memory-map", "in-memory-source"}
    assert plan.joins() == ["RIGHT"]  # of run and truth, once
    assert plan.truth_filter_is_below_every_join()


@pytest.mark.polars_2("explain does not name the side that a join holds")
@pytest.mark.parametrize("by", ["model", "country"])
def test_truth_is_what_a_join_holds_in_memory(by):
    """Not the run: 300 M rows of it would take 20 GB."""
    truth = TRUTH.with_columns(country=pl.lit("x")) if by == "country" else TRUTH
    run = RUN if by == "model" else RUN.drop("model")
    plan = run.lazy().rank.evaluate("ap", truth=truth, by=by).explain(engine="streaming")
    joins = re.findall(r"(\w+) JOIN:\s+BUILD SIDE: (\w+)", plan)
    if by == "model":  # once for all models, whose rows of the truth meet the hits alone
        assert ("SEMI", "ForceRight") in joins
    held = "ForceLeft" if by == "model" else "ForceRight"
    assert [side for kind, side in joins if kind == "RIGHT"] == [held]
    # the users of the run, put into the countries in which the truth has them
    assert (("LEFT", "ForceRight") in joins) == (by == "country")


@pytest.mark.sample(2)
@windows_stream
@pytest.mark.parametrize("engine_source", ["run and truth", "judged table"])
def test_metrics_stream(engine_source):
    if engine_source == "judged table":
        query = JUDGED.rank.evaluate(*OF_TIER.values())
    else:
        query = ONE.rank.evaluate(*OF_TIER.values(), truth=TRUTH)
    # the check, and two of whole tables: lists and judgments
    assert Plan(query).in_memory.count("in-memory-map") == 3


FIVE = ["precision@10", "recall@10", "ap", "ndcg@10", "rr"]
FIFTY = [
    f"{measure}@{k}"
    for measure in ["precision", "recall", "hit", "ap", "rr", "dcg", "ndcg", "f1"]
    for k in range(1, 7)
] + ["ndcg(gain=exponential)@3", "ndcg(gain=exponential)@5"]


def plan_of_eager_call(call, monkeypatch):
    """The plan that an eager call on more than a few rows collects, which must be one."""
    plans = []
    collect = pl.LazyFrame.collect
    with monkeypatch.context() as patch:
        patch.setattr(_sizes, "ROWS_KEPT", 0)
        patch.setattr(
            pl.LazyFrame,
            "collect",
            lambda frame, **how: plans.append(frame) or collect(frame, **how),
        )
        call()
    (only,) = plans
    return Plan(only)


@windows_stream
@pytest.mark.parametrize("metrics", [FIVE, FIFTY], ids=["five", "fifty"])
@pytest.mark.parametrize("tables", ["lazy", "eager"])
def test_five_metrics_and_fifty_take_one_plan(tables, metrics, monkeypatch):
    run, truth = ONE.collect(), TRUTH.collect()
    if tables == "lazy":
        plan = Plan(rf.evaluate(run.lazy(), *metrics, truth=truth.lazy()))
    else:
        plan = plan_of_eager_call(lambda: rf.evaluate(run, *metrics, truth=truth), monkeypatch)
    once = {"equi-join": 1, "group-by": 1, "sort": 2}
    assert {kind: plan.kinds.count(kind) for kind in once} == once


@windows_stream
def test_lists_that_are_in_order_are_not_sorted(monkeypatch):
    ranked, truth = ONE.collect(), TRUTH.collect()
    run = ranked.select("user", "item", score=1 / pl.col("rank"))

    def sorts(frame):
        plan = plan_of_eager_call(lambda: rf.evaluate(frame, "ap", truth=truth), monkeypatch)
        return plan.kinds.count("sort")

    assert sorts(run) == sorts(ranked)
    assert sorts(run.reverse()) == sorts(ranked) + 1


@pytest.mark.parametrize("engine", [None, "auto", "streaming", "in-memory"])
def test_few_eager_rows_are_computed_in_memory_unless_the_caller_chose(engine, monkeypatch):
    if engine is None:
        monkeypatch.delenv("POLARS_ENGINE_AFFINITY", raising=False)
    else:
        monkeypatch.setenv("POLARS_ENGINE_AFFINITY", engine)
    run, truth = ONE.collect(), TRUTH.collect()
    copies = pl.select(copy=3 * pl.int_range(30_000))
    many = run.join(copies, how="cross").with_columns(pl.col("user") + pl.col("copy"))
    engines = []
    collect = pl.LazyFrame.collect

    def collected(frame, **how):
        engines.append(how["engine"])
        return collect(frame, **how)

    monkeypatch.setattr(pl.LazyFrame, "collect", collected)
    few = "in-memory" if engine in (None, "auto") else "auto"
    for frame, other, wanted in [(run, truth, few), (many, truth, "auto"), (run, TRUTH, "auto")]:
        rf.evaluate(frame, "ap", truth=other)
        assert engines == [wanted]
        engines.clear()
        rf.per_user(frame, "ap", truth=other)
        assert engines == [wanted]
        engines.clear()


def test_joins_of_the_rows_with_themselves_do_not_double_the_plan():
    query = ONE.with_columns(tied=1).rank.per_user(*WITH_FORM, truth=TRUTH)
    # 3,600 lines; 100,000 and more where each join takes what the last one gave twice
    assert query.explain(optimized=False).count("\n") < 6_000


@windows_stream
@pytest.mark.parametrize("ties", ["item", "order"])
def test_ranking_by_score_streams(ties):
    run = ONE.rename({"rank": "score"})
    plan = Plan(run.rank.with_rank(ties=ties))
    assert plan.in_memory.count("in-memory-map") == 2  # of flags, which are few rows


@pytest.fixture
def passes(monkeypatch):
    """The plans that calls collect, whether to answer or to check."""
    passes, collect = [], pl.LazyFrame.collect
    monkeypatch.setattr(
        pl.LazyFrame,
        "collect",
        lambda frame, *args, **options: passes.append(frame) or collect(frame, *args, **options),
    )
    return passes


def test_systems_without_a_hit_take_no_more_passes_if_many(passes):
    """Which of them have no judged item is one question about all."""
    users, numbers = range(80), []
    truth = pl.DataFrame({"user": users, "item": [(user + 1) % 80 for user in users]})
    for systems in (2, 40):
        run = pl.DataFrame({"user": users}).with_columns(model=pl.col("user") % systems, rank=1)
        run = run.with_columns(item=pl.when(pl.col("model") == 1).then(-1).otherwise("user"))
        passes.clear()
        with pytest.warns(rf.errors.RankingWarning, match="model 1: run, column 'item'") as warned:
            run.rank.evaluate("rr", truth=truth, by="model", users="both")
        assert len(warned) == 1
        numbers.append(len(passes))
    assert numbers[0] == numbers[1]


@pytest.mark.xfail(raises=pl.exceptions.PanicException, strict=True)
def test_cached_result_is_collected():
    """Polars 2.1 panics: once this passes, the known issue in notebooks/errors.md has gone."""
    grouped = RUN.group_by("user").agg(pl.col("rank").sum())
    assert grouped.join(grouped, on="user").cache().collect().height == 1


def test_ways_around_the_panic_of_a_cached_result():
    cached = rf.evaluate(ONE, "ap", truth=TRUTH).cache()
    expected = rf.evaluate(ONE, "ap", truth=TRUTH).collect()
    assert_equal(cached.collect(optimizations=pl.QueryOptFlags(comm_subplan_elim=False)), expected)
    assert_equal(cached.select("users", "ap").collect(), expected)
    assert_equal(rf.evaluate(ONE.cache(), "ap", truth=TRUTH.cache()).collect(), expected)


@windows_stream
@pytest.mark.parametrize("metrics", [FIVE, [*FIVE, "precision"]], ids=["five", "list length"])
@pytest.mark.parametrize("by", [None, "model"])
def test_run_is_not_held_in_memory_for_a_second_reader(by, metrics, tmp_path):
    """It is read again: the join begins last, and 300 M rows that wait for it take 6 GB."""
    (RUN if by else ONE).collect().write_parquet(tmp_path / "run.parquet")
    TRUTH.collect().write_parquet(tmp_path / "truth.parquet")
    run, truth = (pl.scan_parquet(tmp_path / f"{name}.parquet") for name in ("run", "truth"))
    plan = rf.evaluate(run, *metrics, truth=truth, by=by or ()).explain(engine="streaming")
    first = {}  # of each that is held, what makes it
    for part in plan.split("CACHE[id: ")[1:]:
        first.setdefault(part[:36], part.split("Parquet SCAN")[0])
    assert first or not by
    assert all("UNIQUE" in part or "AGGREGATE" in part for part in first.values())
