"""Dicts of runs in the place of a frame."""

from functools import partial

import polars as pl
import pytest
from kinds import eager, given
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf

POP = pl.DataFrame({"user": [1, 1, 2, 3], "item": ["a", "b", "a", "a"], "rank": [1, 2, 1, 1]})
KNN = pl.DataFrame({"user": [1, 1, 2, 3], "item": ["b", "c", "b", "c"], "rank": [1, 2, 1, 1]})
TRUTH = pl.DataFrame({"user": [1, 2, 3, 3], "item": ["b", "a", "c", "a"]})
RUNS = {"pop": POP, "knn": KNN}
STACKED = pl.concat([POP.with_columns(model=pl.lit("pop")), KNN.with_columns(model=pl.lit("knn"))])
ORDERED = STACKED.with_columns(pl.col("model").cast(pl.Enum([*RUNS])))
ITEMS = pl.DataFrame({"item": [*"abc"], "genre": ["x", "y", "x"]})

#: Each verb on a frame with the column ``model``; ``by`` is added where it is not there.
VERBS = {
    "evaluate": lambda f, **by: rf.evaluate(f, "ap", "rr", truth=TRUTH, **by),
    "per_user": lambda f, **by: rf.per_user(f, "ap", truth=TRUTH, **by),
    "summarize": lambda f, **by: rf.summarize(f, "ap", truth=TRUTH, **by),
    "compare": lambda f, **by: rf.compare(f, "ap", truth=TRUTH, **by),
    "who_gained": lambda f, **by: rf.stats.who_gained(f, 1, truth=TRUTH, baseline="pop", **by),
    "judge": lambda f, **by: rf.judge(f, TRUTH, **by),
    "relevant": lambda f, **by: rf.metrics.rows(rf.judge(f, TRUTH, **by), by="model"),
    "with_rank": lambda f, **by: rf.with_rank(f, close_gaps=True, **by),
    "listed": lambda f, **by: rf.metrics.rows(f, **by),
    "exposure": lambda f, **by: rf.stats.exposure(f, of="genre", items=ITEMS, **by),
    "rbo": lambda f, **by: rf.runs.rbo(f, POP, **by),
    "overlap": lambda f, **by: rf.runs.overlap(f, POP, k=1, **by),
    "fuse": lambda f, **by: rf.runs.fuse(f, **by),
    "health": lambda f, **by: rf.health(f, truth=TRUTH, **by),
    "at_k": lambda f, **by: rf.stats.at_k(f, "recall", k=[1, 2], truth=TRUTH, **by),
    "harm": lambda f, **by: rf.stats.harm(f, "ap", truth=TRUTH, baseline="pop", **by),
    "differences": lambda f, **by: rf.stats.differences(f, "ap", truth=TRUTH, baseline="pop", **by),
    "power": lambda f, **by: rf.stats.power(f, "ap", truth=TRUTH, baseline="pop", **by),
    "gate": lambda f, **by: rf.gate(f, "ap", truth=TRUTH, at_least=0.5, **by),
    "check": lambda f, **by: rf.check(f, truth=TRUTH, **by),
    "side_by_side": lambda f, **by: rf.runs.side_by_side(f, 1, truth=TRUTH, **by),
    "to_judge": lambda f, by=(), **roles: rf.runs.to_judge(f, truth=TRUTH, budget=9, **roles),
}


KINDS = pytest.mark.parametrize("kind", ["eager", "lazy", "pandas"])


@KINDS
def test_rows_stay_in_order_and_the_name_comes_first(kind):
    runs = {name: given(run, kind) for name, run in RUNS.items()}
    table = rf.runs.stack(runs)
    assert type(table) is type(runs["pop"])
    assert eager(table).columns == ["model", "user", "item", "rank"]
    assert eager(table).equals(STACKED.select("model", "user", "item", "rank"))
    assert eager(rf.runs.stack(runs, model="system")).columns[0] == "system"


@KINDS
@pytest.mark.parametrize("verb", VERBS)
def test_verb_takes_a_dict_as_the_table_of_its_runs(verb, kind):
    runs = {name: given(run, kind) for name, run in RUNS.items()}
    call = VERBS[verb]
    text = given(STACKED.select("model", pl.exclude("model")), kind)
    ordered = given(ORDERED.select("model", pl.exclude("model")), "lazy" if kind == "lazy" else "")
    got, expected, named = call(runs), call(text, by="model"), call(text)
    assert type(got) is type(runs["pop"])
    assert_frame_equal(eager(named), eager(expected), check_row_order=kind == "eager")
    in_order = eager(call(ordered)).with_columns(pl.selectors.enum().cast(pl.String))
    assert_frame_equal(eager(got), in_order, check_row_order=kind != "lazy", check_dtypes=False)
    assert eager(got).schema.get("model", pl.String) == pl.String
    if verb != "check":  # of a dict, it returns what runs.stack makes
        again = call(rf.runs.stack(runs))
        assert_frame_equal(eager(again), eager(got), check_row_order=kind != "lazy")


@KINDS
def test_order_of_the_dict_decides_who_is_compared_with_whom(kind):
    """The alphabet would compare the old system with the new one, and call it worse."""
    truth = pl.DataFrame({"user": range(10), "item": "a"})
    ranks = {"prod": [2, 3, 4, 2, 5, 4, 3, 2, 6, 1], "next": [1, 1, 2, 1, 2, 3, 1, 1, 2, 1]}
    runs = {
        name: given(pl.DataFrame({"user": range(10), "item": "a", "rank": places}), kind)
        for name, places in ranks.items()
    }
    for frame in (runs, rf.runs.stack(runs)):
        means = eager(rf.evaluate(frame, "rr", truth=truth))
        assert means["model"].to_list() == ["prod", "next"]
        row = eager(rf.compare(frame, "rr", truth=truth)).row(0, named=True)
        assert (row["model"], row["baseline"], row["verdict"]) == ("next", "prod", "better")
        assert row["difference"] == pytest.approx(0.38, abs=0.005)
    back = dict(reversed(runs.items()))
    assert eager(rf.evaluate(back, "rr", truth=truth))["model"].to_list() == ["next", "prod"]


@KINDS
def test_table_beside_may_name_the_runs_as_text(kind):
    runs = {name: given(run, kind) for name, run in RUNS.items()}
    seen = pl.DataFrame({"model": ["knn", "other"], "user": [1, 1], "item": ["b", "b"]})
    got = eager(rf.evaluate(runs, "ap", truth=TRUTH, exclude=seen)).sort("model")
    text = rf.evaluate(STACKED, "ap", truth=TRUTH, by="model", exclude=seen)
    assert_frame_equal(got, text)
    truth = pl.concat(TRUTH.with_columns(model=pl.lit(name)) for name in RUNS)
    assert_equal(
        eager(rf.evaluate(runs, "ap", truth=truth)).sort("model"),
        rf.evaluate(STACKED, "ap", truth=truth, by="model"),
    )


#: The verbs whose result names the systems, and which need no system of a certain name.
OF_SYSTEMS = sorted(
    VERBS.keys()
    - {
        "fuse",
        "who_gained",
        "harm",
        "differences",
        "power",
        "side_by_side",
        "to_judge",
        "check",
    }
)


@KINDS
@pytest.mark.parametrize("verb", OF_SYSTEMS)
def test_verb_shows_the_systems_in_the_order_of_the_dict(verb, kind):
    """Names in reverse, in the order of the alphabet, and in neither: the dict alone decides."""
    for names in (["z", "y", "x"], ["y", "z", "x"]):
        tables = (POP, KNN, POP.with_columns(item=pl.lit("b")).unique(["user"]))
        runs = {name: given(run, kind) for name, run in zip(names, tables, strict=True)}
        call = VERBS[verb]
        for frame in (runs, rf.runs.stack(runs)):
            got = eager(call(frame))
            assert got.schema["model"] == pl.String
            if kind != "lazy" or verb not in ("judge", "relevant", "with_rank", "listed"):
                shown = got["model"].unique(maintain_order=True).drop_nulls().to_list()
                assert shown == [name for name in names if name in shown], verb


@KINDS
def test_result_and_a_truth_with_the_names_as_text_keep_the_order(kind):
    runs = {name: given(run, kind) for name, run in RUNS.items()}
    for made in (rf.judge(runs, TRUTH), rf.with_rank(runs, close_gaps=True)):
        truth = {} if "relevance" in eager(made).columns else {"truth": TRUTH}
        got = eager(rf.evaluate(made, "ap", **truth))
        assert got["model"].to_list() == ["pop", "knn"]
        assert eager(rf.compare(made, "ap", **truth)).row(0)[:3] == ("knn", "ap", "pop")
    names = [*RUNS, "other", "absent"]
    truth = pl.concat(TRUTH.with_columns(model=pl.lit(name)) for name in names)
    if kind == "lazy":
        return  # the names in a plan are not known: by name
    for _ in range(3):  # a plan of the second call would be kept
        got = eager(rf.evaluate(runs, "ap", truth=truth))
        assert got["model"].to_list() == ["pop", "knn", "absent", "other"]
        assert got.schema["model"] == pl.String
    one = truth.filter(pl.col("model") != "other")
    assert len(rf.evaluate(runs, "ap", truth=one)) == 3
    found = eager(rf.health(runs, truth=truth)).filter(pl.col("what") == "missed_users")
    assert [row[1:3] for row in found.rows()] == [
        ("absent", "missed_users"),
        ("other", "missed_users"),
        ("pop", "missed_users"),
        ("knn", "missed_users"),
    ]


def test_systems_of_a_dict_are_not_one():
    """Each hits other users: together they would have twice the value of either."""
    rows = [
        (m, u, "want" if k == 1 and (u < 20 if m == "a" else u >= 30) else f"{m}{k}", k)
        for u in range(50)
        for m in "ab"
        for k in (1, 2, 3)
    ]
    run = pl.DataFrame(rows, schema=["model", "user", "item", "rank"], orient="row")
    truth = pl.DataFrame({"user": range(50), "item": "want"})
    expected = [("a", 50, 0.4, 0.4), ("b", 50, 0.4, 0.4)]
    assert run.rank.evaluate("rr", "hit@3", truth=truth).rows() == expected
    scored = run.with_columns(score=1 / pl.col("rank")).drop("rank")
    assert scored.rank.evaluate("rr", "hit@3", truth=truth).rows() == expected
    parts = [scored.filter(pl.col("user") % 2 == part) for part in (0, 1)]
    meter = rf.Meter("rr", "hit@3")
    for part, number in zip(parts, (0, 1), strict=True):
        meter.update(part, truth=truth.filter(pl.col("user") % 2 == number))
    assert meter.compute().rows() == expected


def test_column_model_that_has_another_role_or_table_names_no_system():
    shop = POP.rename({"item": "model"})
    truth = TRUTH.rename({"item": "model"})
    got = rf.evaluate(shop, "ap", truth=truth, item="model")
    assert_equal(got, rf.evaluate(POP, "ap", truth=TRUTH))
    labels = TRUTH.with_columns(model=pl.lit("judge 1"))
    assert_equal(rf.evaluate(POP, "ap", truth=labels), got)


def test_check_returns_the_table():
    assert rf.check(RUNS, truth=TRUTH).equals(rf.runs.stack(RUNS))
    bad = {**RUNS, "knn": KNN.with_columns(rank=pl.lit(0))}
    with pytest.raises(rf.RankingDataError, match="Offending row: model='knn', user=1"):
        rf.check(bad, truth=TRUTH)


def test_judged_tables_are_taken_too():
    judged = {name: rf.judge(run, TRUTH) for name, run in RUNS.items()}
    got = rf.evaluate(judged, "ap")
    assert_equal(got, rf.evaluate(RUNS, "ap", truth=TRUTH))
    lazy = {name: rf.judge(run.lazy(), TRUTH) for name, run in RUNS.items()}
    assert_frame_equal(rf.evaluate(lazy, "ap").collect(), got)


@pytest.mark.parametrize("by", ["day", ["day"], ["day", "model"], ["model", "day"], ()])
def test_groups_gain_the_column_of_models(by):
    runs = {name: run.with_columns(day=pl.col("user") % 2) for name, run in RUNS.items()}
    truth = TRUTH.with_columns(day=pl.col("user") % 2, relevance=1)
    groups = [by] if isinstance(by, str) else list(by)
    expected = ["model", *(name for name in groups if name != "model")]
    got = rf.evaluate(runs, "ap", truth=truth, by=by)
    assert got.columns[: len(expected)] == expected
    assert got.equals(rf.evaluate(rf.runs.stack(runs), "ap", truth=truth, by=expected))


@pytest.mark.parametrize(
    "chart",
    [
        lambda f, **by: rf.plot.at_k(f, "recall", k=[1, 2], truth=TRUTH, **by),
        lambda f, **by: rf.plot.per_user(f, "rr", truth=TRUTH, **by),
        lambda f, **by: rf.plot.compare(f, "rr", truth=TRUTH, **by),
        lambda f, **by: rf.plot.who_gained(f, 1, truth=TRUTH, baseline="pop", **by),
        lambda f, **by: rf.plot.trade_off(f, "rr", "recall@1", truth=TRUTH, **by),
        lambda f, **by: rf.plot.exposure(f, of="genre", items=ITEMS, **by),
        lambda f, **by: rf.plot.lorenz(f, items=ITEMS, **by),
        lambda f, **by: rf.plot.precision_recall(f, k=[1, 2], truth=TRUTH, **by).hconcat[0],
    ],
)
def test_chart_takes_a_dict(chart):
    text = pl.selectors.enum().cast(pl.String)
    expected = chart(ORDERED).data.with_columns(text)
    lazy = {name: run.lazy() for name, run in RUNS.items()}
    # the names of the runs are always a group
    assert_equal(chart(lazy, by=()).data.with_columns(text), expected)


def test_order_of_columns_and_widths_of_numbers_may_differ():
    narrow = KNN.select("rank", "item", pl.col("user").cast(pl.Int8))
    assert rf.runs.stack({"pop": POP, "knn": narrow}).equals(rf.runs.stack(RUNS))
    wide = KNN.with_columns(score=pl.lit(0.5))
    scored = POP.with_columns(score=pl.lit(0.5, pl.Float32))
    assert rf.runs.stack({"a": scored, "b": wide}).schema["score"] == pl.Float64
    nothing = POP.with_columns(note=pl.lit(None))
    assert rf.runs.stack({"a": nothing, "b": KNN.with_columns(note=1)}).schema["note"] == pl.Int32


SCORED = pl.DataFrame(
    {
        "query": ["1", "1", "1", "2", "2"],
        "doc": [*"abcab"],
        "score": [0.5, 0.9, 0.5, 0.1, 0.1],
    }
)
QRELS = pl.DataFrame({"query": ["1", "2"], "doc": ["c", "b"]})


@KINDS
@pytest.mark.parametrize("name", ["rank", "place"])
def test_runs_with_scores_and_runs_with_ranks_are_one_dict(kind, name):
    """Each has the value that it has alone: ranks as given, with gaps, and scores by the rule."""
    ranked = pl.DataFrame({"query": ["1", "1", "2"], "doc": [*"bca"], name: [1, 5, 3]})
    fused = rf.runs.fuse({"a": SCORED, "b": SCORED.with_columns(-pl.col("score"))})
    both = fused.rename({"rank": name}) if name != "rank" else fused
    role = {} if name == "rank" else {"rank": name}
    for other in (ranked, both):
        tables = {"bm25": (SCORED, {}), "other": (other, role)}
        runs = {system: given(table, kind) for system, (table, _) in tables.items()}
        got = eager(rf.evaluate(runs, "rr", "map", truth=QRELS, **role))
        alone = [
            rf.evaluate(table, "rr", "map", truth=QRELS, **own).with_columns(model=pl.lit(system))
            for system, (table, own) in tables.items()
        ]
        expected = pl.concat(alone).select(got.columns)
        assert_frame_equal(got, expected, check_row_order=False)
    assert eager(rf.health(runs, truth=QRELS, **role)).height


def test_runs_read_and_runs_fused_fit_in_one_dict(tmp_path):
    """The first thing that a hybrid needs."""
    from rankframe import trec

    names = "bm25", "tasb"
    for place, name in enumerate(names):
        rows = SCORED.with_columns(pl.col("score") * (1 - 3 * place))
        lines = [f"{q} Q0 {d} 0 {s} {name}" for q, d, s in rows.rows()]
        (tmp_path / f"{name}.txt").write_text("\n".join(lines) + "\n")
    runs = {name: trec.read_run(tmp_path / f"{name}.txt") for name in names}
    runs["rrf"] = rf.runs.fuse(runs)
    truth = QRELS.rename({"query": "user", "doc": "item"})
    got = rf.evaluate(runs, "ndcg@10", truth=truth)
    assert got["model"].to_list() == ["bm25", "tasb", "rrf"]
    for name, run in runs.items():
        (value,) = got.filter(model=name)["ndcg@10"]
        assert value == rf.evaluate(run, "ndcg@10", truth=truth)["ndcg@10"].item()
    assert len(rf.compare(runs, "ndcg@10", truth=truth)) == 3
    with pytest.raises(rf.RankingDataError, match="runs\\['bm25'\\] = rf.with_rank") as raised:
        rf.runs.stack(runs)
    for cure in 2 * [str(raised.value).partition(": runs")[2].removesuffix(" makes it")]:
        scope = {"rf": rf, "runs": runs}
        exec(f"runs{cure}", scope)
        runs = {**runs, "tasb": rf.with_rank(runs["tasb"])}
    assert rf.evaluate(rf.runs.stack(runs), "ndcg@10", truth=truth).equals(got)


@pytest.mark.parametrize("single_precision", [True, False])
def test_days_and_precision_rank_each_run_of_a_dict_as_alone(single_precision):
    scored = pl.concat(
        SCORED.with_columns(day=day, score=1e-9 * pl.col("score") + 1) for day in (1, 2)
    )
    ranked = rf.with_rank(scored, by="day").drop("score")
    options = {"by": "day", "truth": QRELS, "preset": {"single_precision": single_precision}}
    got = rf.evaluate({"a": scored, "b": ranked}, "rr", "map", **options)
    alone = [rf.evaluate(run, "rr", "map", **options) for run in (scored, ranked)]
    assert got.drop("model").equals(pl.concat(alone))


def test_score_that_is_not_finite_is_named_with_its_run():
    bad = SCORED.with_columns(score=float("inf"))
    ranked = pl.DataFrame({"query": ["1"], "doc": ["a"], "rank": [1]})
    for frame in (bad, bad.lazy()):
        other = ranked if frame is bad else ranked.lazy()
        with pytest.raises(rf.RankingDataError, match="^run 'a', column 'score'"):
            rf.evaluate({"a": frame, "b": other}, "rr", truth=QRELS).lazy().collect()


@pytest.mark.parametrize("kind", [pl.DataFrame, pl.LazyFrame, "pandas"])
def test_empty_run_is_an_error_and_not_a_system_less(kind):
    runs = {"pop": POP, "none": POP.clear()}
    if kind == "pandas":
        runs = {name: run.to_pandas() for name, run in runs.items()}
    else:
        runs = {name: kind(run) for name, run in runs.items()}
    with pytest.raises(rf.RankingDataError, match="^run 'none': it is empty"):
        means = rf.evaluate(runs, "rr", truth=TRUTH)
        means.collect()  # only a LazyFrame gets here


def test_dict_of_one_run_is_enough_and_frames_are_not_changed():
    before = POP.clone()
    assert rf.evaluate({"pop": POP}, "rr", truth=TRUTH).rows() == [("pop", 3, 0.8333333333333334)]
    assert POP.equals(before)
    assert POP.columns == ["user", "item", "rank"]


MODEL = POP.with_columns(model=pl.lit("x"))


@pytest.mark.parametrize(
    "runs",
    [
        {},
        {1: POP},
        {"a": MODEL},
        {"a": POP, "b": MODEL},
        {"a": POP, "b": KNN.drop("rank")},
        {"a": POP, "b": KNN.drop("rank").with_columns(hits=1)},
        {"a": POP, "b": KNN.with_columns(score=1.0)},
        {"a": POP, "b": KNN.with_columns(pl.col("user").cast(pl.String))},
        {"a": POP, "b": KNN.with_columns(pl.col("user").cast(pl.Float64))},
        {"a": POP, "b": KNN.lazy()},
        {"a": POP, "b": [1]},
    ],
)
def test_bad_dict_is_one_clear_error(runs, refused):
    for call in (rf.runs.stack, lambda runs: rf.evaluate(runs, "ap", truth=TRUTH)):
        refused(call, runs)


def test_from_runs_takes_a_dict_and_one_name():
    with pytest.raises(TypeError, match="runs.stack takes a dict of runs, {name: run}, not polars"):
        rf.runs.stack(POP)
    with pytest.raises(TypeError, match="model must be the name of a column, not \\['a'\\]"):
        rf.runs.stack(RUNS, model=["a"])
    with pytest.raises(rf.RankingDataError, match="run 'pop', column 'user': the names of the"):
        rf.runs.stack(RUNS, model="user")


# ------------------------------------------------------------------ the role ``model``


ENGINES = STACKED.rename({"model": "engine"})


@KINDS
@pytest.mark.parametrize("verb", [verb for verb in VERBS if verb != "relevant"])
def test_model_is_the_column_of_this_name_or_the_one_that_is_named(verb, kind):
    call, same = VERBS[verb], {"check_row_order": kind != "lazy"}
    expected = eager(call(given(STACKED, kind))).drop("example", strict=False)
    for run, options in (
        (STACKED, {"by": "model"}),
        (ENGINES, {"model": "engine"}),
        (ENGINES, {"model": "engine", "by": "engine"}),  # named twice, it counts once
    ):
        got = eager(call(given(run, kind), **options)).drop("example", strict=False)
        assert run is STACKED or "model" not in got.columns
        assert_frame_equal(got.rename({"engine": "model"}, strict=False), expected, **same)


def test_model_that_is_ignored_or_of_the_truth_is_no_role():
    alone = STACKED.filter(model="pop")
    expected = rf.evaluate(alone.drop("model"), "ap", truth=TRUTH)
    assert_equal(rf.evaluate(alone, "ap", truth=TRUTH, model=None), expected)
    cars = TRUTH.with_columns(model=pl.lit("Golf"))
    assert_equal(rf.evaluate(alone.drop("model"), "ap", truth=cars), expected)
    per_car = rf.evaluate(alone.drop("model"), "ap", truth=cars, by="model")
    assert_equal(per_car.drop("model"), expected)
    with pytest.raises(ValueError, match="the column that names the systems"):
        rf.compare(alone.drop("model"), "ap", truth=cars, by="model")


def test_names_of_a_dict_are_the_models_whatever_their_column_is_called():
    runs = {name: run.with_columns(model=pl.lit("v1")) for name, run in RUNS.items()}
    with pytest.raises(rf.RankingDataError, match="column 'model'.* or name theirs with model="):
        rf.evaluate(runs, "ap", truth=TRUTH)
    got = rf.evaluate(runs, "ap", truth=TRUTH, model="engine")
    assert_equal(got.rename({"engine": "model"}), rf.evaluate(RUNS, "ap", truth=TRUTH))
    stacked = rf.runs.stack(runs, model="engine")
    assert_equal(rf.evaluate(stacked, "ap", truth=TRUTH, model="engine"), got)
    with pytest.raises(ValueError, match="model=None, of a dict of runs"):
        rf.evaluate(RUNS, "ap", truth=TRUTH, model=None)


def test_model_that_is_not_there_is_an_error(refused):
    refused(rf.evaluate, STACKED, "ap", truth=TRUTH, model="engine")
    refused(rf.evaluate, STACKED, "ap", truth=TRUTH, model=["model"])


def test_meters_and_queries_have_the_role():
    meter = rf.Meter("ap", model="engine")
    meter.update(ENGINES, TRUTH)
    options = {"truth": TRUTH, "model": "engine"}
    assert_equal(meter.compute(), rf.evaluate(ENGINES, "ap", **options))
    assert rf.sql("ap", model="engine").endswith('GROUP BY "engine"\n')


OLD = pl.DataFrame({"user": range(10), "item": "a", "rank": [2, 3, 4, 2, 5, 4, 3, 2, 6, 1]})
NEW = OLD.with_columns(rank=pl.Series([1, 1, 2, 1, 2, 3, 1, 1, 2, 1]))
LIKED = OLD.select("user", "item")


def as_text(runs):
    return pl.concat(eager(run).with_columns(model=pl.lit(name)) for name, run in runs.items())


#: The verbs that need a baseline, and the column that says which one they took.
OF_BASELINE = {
    "gate": (partial(rf.gate, margin=0.1), "note"),
    "harm": (rf.stats.harm, "note"),
    "power": (rf.stats.power, "note"),
    "who_gained": (
        lambda frame, _metric, **options: rf.stats.who_gained(frame, 3, **options),
        "reading",
    ),
}


@KINDS
@pytest.mark.parametrize("verb", OF_BASELINE)
def test_first_system_of_a_dict_is_the_baseline_and_a_column_of_text_needs_its_name(verb, kind):
    runs = {name: given(run, kind) for name, run in {"old": OLD, "new": NEW}.items()}
    text = as_text(runs)
    ordered = text.with_columns(pl.col("model").cast(pl.Enum(["gone", "old", "new"])))
    call, said = OF_BASELINE[verb]
    named = call(text, "rr", truth=LIKED, baseline="old")
    without = pl.col(said).str.replace("(; )?baseline: 'old', the first system$", "")
    for frame in (runs, rf.runs.stack(runs), ordered):
        got = eager(call(frame, "rr", truth=LIKED)).with_columns(pl.col("model").cast(pl.String))
        assert got[said].last().endswith("baseline: 'old', the first system")
        got = got.with_columns(pl.col("^baseline$").cast(pl.String), without.replace("", None))
        assert_frame_equal(got, named, check_dtypes=kind != "pandas")
    with pytest.raises(ValueError, match="^column 'model' has 'new', 'old', .* baseline='new'"):
        eager(call(given(text, kind), "rr", truth=LIKED))


def test_page_and_a_chart_take_the_first_system_and_say_so():
    runs = {"old": OLD, "new": NEW}
    made = rf.report(runs, "rr", truth=LIKED)
    assert made.verdict.startswith("new is better than old")
    assert "10 users · baseline: <bdi>old</bdi>, the first system" in made.html()
    assert "the first system" not in rf.report(runs, "rr", truth=LIKED, baseline="old").html()
    title = rf.plot.who_gained(runs, 3, truth=LIKED).to_dict()["title"]
    assert title["text"].startswith("Change from old")
    with pytest.raises(ValueError, match="baseline of report: name it"):
        rf.report(as_text(runs), "rr", truth=LIKED)


def test_compare_says_that_names_of_text_are_in_the_order_of_the_alphabet():
    runs = {"old": OLD, "new": NEW}
    text = as_text(runs)
    got = rf.compare(text, "rr", truth=LIKED)
    assert got["model"].item() == "old"
    assert got["note"].item().endswith("; systems are sorted by name, unless baseline= names one")
    for frame, options in ((runs, {}), (text, {"baseline": "old"})):
        assert "order" not in rf.compare(frame, "rr", truth=LIKED, **options)["note"].item()


def test_floors_alone_compare_nothing():
    runs = {"old": OLD, "new": NEW}
    got = rf.gate(runs, "rr", truth=LIKED, at_least=0.5)
    assert got.select("model", "passed").rows() == [("old", False), ("new", True)]
    assert "baseline" not in got.columns
    both = rf.gate(runs, "rr", truth=LIKED, at_least=0.5, margin="1%")
    assert both.select("model", "baseline", "at_least").rows() == [
        ("new", "old", None),
        ("old", None, 0.5),
        ("new", None, 0.5),
    ]
