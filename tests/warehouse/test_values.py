"""What a warehouse computes is what ``evaluate`` computes: every label, and every option."""

import polars as pl
import pytest
from engines import (
    ENGINES,
    USER,
    differences,
    in_two_columns,
    is_translated,
    need,
    of_two_columns,
    tables,
)
from every_metric import EVERY_METRIC, FEW, SPECIAL_MEANS

import rankframe as rf

#: several tables, each one a group
STACKED = tuple(
    pl.concat(frames)
    for frames in zip(
        *([frame.with_columns(seed=pl.lit(seed)) for frame in tables(seed)] for seed in range(4)),
        strict=True,
    )
)
BY = ["seed", "model"]
LABELS = [*filter(is_translated, FEW)]
EVERY = [*filter(is_translated, EVERY_METRIC)]
OPTIONS = [
    {},
    *({"users": users} for users in ("judged", "both", "run", "all")),
    {"undefined": 0.5, "users": "all"},
    {"relevant_at": 2, "users": "judged"},
    {"depth": 3, "users": "run", "undefined": 0},
    {"unjudged": "drop"},
    {"unjudged": "drop", "depth": 4, "users": "both"},
]
SOME = ["ndcg@3", "ap", "bpref", "num_retrieved", "judged@3", "err", "q", "rndcg", "filled@3"]
SOME += ["ap(rel=2)@5", "rr-l2@5"]


def compare(dialect, run, truth, *metrics, per_user, by, **options):
    """Run the query in the engine of a dialect, and compare with the library."""
    need(dialect)
    verb = rf.per_user if per_user else rf.evaluate
    excluded = options.pop("exclude", None)
    want = verb(run, *metrics, truth=truth, by=by, exclude=excluded, **options)
    frames = {"run": run, "truth": truth} | ({} if excluded is None else {"exclude": excluded})
    if excluded is not None:
        options["exclude"] = "exclude"
    text = rf.sql(*metrics, by=by, dialect=dialect, per_user=per_user, schema=frames, **options)
    got = ENGINES[dialect](text, **frames)
    user = options.get("user", "user")
    return differences(got, want, [*by, *([user] if per_user else [])])


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("part", range(4))
def test_functions_have_the_values_of_evaluate(part, dialect, per_user):
    labels = LABELS[part::4]
    assert compare(dialect, *STACKED, *labels, per_user=per_user, by=BY) == {}


@pytest.mark.parametrize("dialect", ENGINES)
def test_metrics_of_hits_alone_have_the_values_of_evaluate(dialect):
    """If all metrics of a query do, only hits are joined."""
    some = LABELS[::4]
    of_hits = [label for label in some if "ranked" not in rf.sql(label)]
    assert len(of_hits) > len(some) / 2
    assert compare(dialect, *STACKED, *of_hits, per_user=True, by=BY) == {}


@pytest.mark.thorough
@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("part", range(12))
def test_labels_have_the_values_of_evaluate(part, dialect):
    for per_user in (True, False):
        assert compare(dialect, *STACKED, *EVERY[part::12], per_user=per_user, by=BY) == {}


@pytest.mark.parametrize("dialect", ENGINES)
def test_means_that_are_not_arithmetic(dialect):
    for text in (False, True):
        run, truth = tables(8, text=text)
        assert compare(dialect, run, truth, *SPECIAL_MEANS, per_user=False, by=["model"]) == {}


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_options(options, dialect, per_user):
    run, truth = tables(3, text=True)
    assert compare(dialect, run, truth, *SOME, per_user=per_user, by=["model"], **options) == {}


@pytest.mark.parametrize("users", ["truth", "all"])
@pytest.mark.parametrize("dialect", ENGINES)
def test_other_means(dialect, users):
    pooled = ["recall@3", "f1@3", "r_precision", "precision(divide_by=attainable)@3", "num_hits@3"]
    options = {"per_user": False, "users": users, "undefined": None if users == "truth" else 0.0}
    assert not compare(dialect, *STACKED, *pooled, by=BY, average="pooled", **options)
    assert not compare(dialect, *STACKED, "ndcg@3", "rr", by=["model"], average="seed", **options)
    with pytest.raises(ValueError, match="per_user=True has none"):
        rf.sql("recall@3", average="pooled", per_user=True)


def _forms():
    run, truth = tables(5)
    yield "one list per user", run.filter(model="m0").drop("model"), truth, {"by": []}
    again = truth.filter(pl.col("item") % 5 > 0).with_columns(model=pl.lit("m1"))
    both = pl.concat([truth.with_columns(model=pl.lit("m0")), again])
    yield "a truth of each group", run, both, {"by": ["model"]}
    days = [
        run.with_columns(day=pl.lit(1)),
        run.with_columns(day=pl.lit(2)).filter(pl.col("item") != 3),
    ]
    yield "two columns", pl.concat(days), truth, {"by": ["model", "day"], "users": "both"}
    segments = truth.with_columns(segment=pl.col("user") // 4)
    yield "segments of the truth", run, segments, {"by": ["model", "segment"]}
    excluded = run.filter(pl.col("rank") % 3 == 1).select("user", "item")
    yield "exclude", run, truth, {"by": ["model"], "exclude": excluded, "depth": 5}
    yield (
        "of a group",
        run,
        truth,
        {
            "by": ["model"],
            "exclude": run.filter(model="m1").head(20).select("model", "user", "item"),
        },
    )
    again = run.with_columns(pl.col("item") % 9)
    for duplicates in ("first", "occupy"):
        options = {"by": ["model"], "duplicates": duplicates}
        beside = {"exclude": again.filter(pl.col("rank") == 2).select("user", "item").unique()}
        yield f"repeated items, {duplicates}", again, truth, {**options, **beside, "depth": 5}
        yield (
            f"the same in segments, {duplicates}",
            again,
            segments,
            {**options, "by": ["model", "segment"]},
        )
        scores = tables(6, score=True)[0].with_columns(pl.col("item") % 9)
        yield f"the same with scores, {duplicates}", scores, truth, {**options, "score": "score"}
    other = {"user": "q id", "item": "doc", "rank": "place", "relevance": "grade"}
    named = [frame.rename(other, strict=False) for frame in (run, truth)]
    yield "other names", *named, {"by": ["model"], **other}
    floats = truth.with_columns(pl.col("relevance") * 0.5)
    yield "grades with halves", run, floats, {"by": ["model"]}
    for text in (False, True):
        run, truth = tables(6, text=text, score=True)
        yield f"scores, ids of text: {text}", run, truth, {"by": ["model"], "score": "score"}
    yield "booleans", run, truth.with_columns(pl.col("relevance") > 0), {"by": ["model"]}
    yield (
        "no relevance",
        run,
        truth.filter(pl.col("relevance") > 0).drop("relevance"),
        {"by": ["model"]},
    )


FORMS = {name: case for name, *case in _forms()}


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("form", FORMS)
def test_tables_of_other_forms(form, dialect, per_user):
    run, truth, options = FORMS[form]
    metrics = SOME[: -2 if form in ("booleans", "no relevance") else None]
    assert compare(dialect, run, truth, *metrics, per_user=per_user, **options) == {}


@pytest.mark.parametrize("dialect", ENGINES)
def test_own_expressions(dialect):
    run, truth = tables(7)
    minutes = pl.col("user") + pl.col("item")
    run = run.with_columns(minutes=minutes * 1.5)
    truth = truth.with_columns(price=minutes, country=pl.when(minutes % 2 == 0).then(pl.lit("d'E")))
    hit = pl.col("rank") <= 3
    own = [
        pl.col("price").filter(hit).sum().alias("spent"),
        pl.col("price").max().alias("dearest"),
        (pl.col("rank").min() / pl.col("relevance").mean()).alias("ratio"),
        pl.col("minutes").filter("listed").mean().alias("minutes"),
        pl.col("rank").filter("listed").max().alias("last"),
        (pl.col("country") == "d'E").sum().alias("in country"),
        pl.col("rank").is_not_null().any().alias("any"),
        pl.col("relevance").n_unique().alias("grades"),
        pl.col("rank").n_unique().alias("ranks"),
        pl.col("rank").filter(pl.col("relevance") > 1).n_unique().alias("ranks of the best"),
        (pl.col("rank") - pl.col("rank").min().over("user")).sum().alias("below the first"),
        (pl.col("ideal_gains") - pl.col("ideal_gains").min().over("user")).sum().alias("of others"),
        pl.col("relevance").is_duplicated().sum().alias("of equal grade"),
        pl.when(pl.col("relevance") > pl.col("relevance").mean()).then("rank").min().alias("above"),
        (-pl.col("rank").max()).cast(pl.Float64).alias("negative"),
        (pl.col("relevance").sum() / 2).cast(pl.Int64).alias("whole"),
    ]
    assert compare(dialect, run, truth, *own, per_user=True, by=["model"]) == {}


def test_registered_columns_and_metrics():
    import extension

    with extension.unchanged_registry():

        @rf.metrics.register_column("misses_above", "rank minus hits")
        def misses_above(_keys):
            return pl.col("rank") - pl.col("hits")

        run, truth = tables(2)
        own = pl.col("misses_above").sum().alias("misses")
        assert compare("duckdb", run, truth, own, per_user=True, by=["model"]) == {}


def test_group_without_users_has_none():
    run, truth = tables(2)
    run = pl.concat(
        [run, run.head(2).with_columns(model=pl.lit("new"), user=pl.lit(77).cast(pl.Int64))]
    )
    metrics = ["ndcg@3", "num_hits"]
    assert compare("duckdb", run, truth, *metrics, per_user=False, by=["model"], users="both") == {}


def test_nulls_stay_out_of_the_mean():
    run, truth = tables(2)
    found = compare("duckdb", run, truth, "auc", "ap", per_user=False, by=["model"], users="run")
    assert found == {}


#: expressions that read the whole list, and what SQL and ``evaluate`` must agree on
OF_A_LIST = {
    "rows": pl.col("listed").len(),
    "share": pl.col("listed").mean(),
    "above": (pl.col("listed") & pl.col("within(2)")).mean(),
    "n": (pl.col("listed").cast(pl.Int64) + pl.col("retrieved") * 0).sum(),
    "first": pl.col("rank_discount").filter(pl.col("listed")).max(),
}


@pytest.mark.parametrize("options", [{}, {"unjudged": "drop"}, {"depth": 2}])
@pytest.mark.parametrize("dialect", ENGINES)
def test_expressions_of_the_whole_list_reduce_the_list(dialect, options):
    metrics = [metric.alias(name) for name, metric in OF_A_LIST.items()]
    run = STACKED[0].drop_nulls("rank")
    options = {"users": "run", **options}
    assert compare(dialect, run, STACKED[1], *metrics, per_user=True, by=BY, **options) == {}
    assert compare(dialect, run, STACKED[1], *metrics, per_user=False, by=BY, **options) == {}


@pytest.mark.parametrize("dialect", ENGINES)
def test_large_integers_stay_integers(dialect):
    large = 1234567890123456789
    run = pl.DataFrame({"user": 1, "item": [large, large + 1, large + 2], "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": 1, "item": [large, large + 1, large + 2], "relevance": 1})
    same = (pl.col("item") == large).filter(pl.col("relevant")).sum().alias("same")
    assert rf.per_user(run, same, truth=truth)["same"].item() == 1
    assert compare(dialect, run, truth, same, per_user=True, by=[]) == {}


@pytest.mark.parametrize("dialect", ENGINES)
def test_lengths_of_lists_are_summed_over_rows(dialect):
    metrics = [pl.col("retrieved").sum().alias("a"), pl.col("retrieved(3)").sum().alias("b")]
    assert compare(dialect, *STACKED, *metrics, per_user=True, by=BY) == {}


@pytest.mark.parametrize(
    "metric",
    [
        (pl.col("rank").fill_null(float("-inf")) > float("-inf")).sum(),
        (1 / pl.col("rank").fill_null(float("inf"))).sum(),
        pl.col("place_discount").filter(pl.col("rank") == 1).sum(),
        (pl.col("ideal_place") * pl.col("relevant")).sum(),
        pl.lit(2.0).cast(pl.Float64).len() / (pl.col("relevant").sum() + 1),
        pl.col("rank").filter(pl.lit(0.5).is_null()).min(),
        (pl.col("listed") & pl.col("relevant")).mean(),
    ],
)
def test_sql_refuses_what_would_differ(metric, refused):
    refused(rf.sql, metric.alias("x"))


def differences_of_two_columns(dialect, run, truth, *metrics, per_user, by, **options):
    """Compare users of two columns in SQL with users of one in the library."""
    need(dialect)
    excluded = {name: options.pop(name) for name in ["exclude"] if name in options}
    verb = rf.per_user if per_user else rf.evaluate
    want = verb(run, *metrics, truth=truth, by=by, **excluded, **options)
    frames = {"run": run, "truth": truth, **excluded}
    frames = {name: in_two_columns(frame) for name, frame in frames.items()}
    options |= {name: name for name in excluded}
    frames["truth"] = frames["truth"].rename({"wiki": "w", "item": "page"})
    options |= {"truth_user": ["w", "session"], "truth_item": "page", "user": USER}
    options["schema"] = frames
    text = rf.sql(*metrics, by=by, dialect=dialect, per_user=per_user, **options)
    got = ENGINES[dialect](text, **frames)
    if per_user:
        assert got.columns == [*want.columns[: len(by)], *USER, *want.columns[len(by) + 1 :]]
        got = of_two_columns(got).select(want.columns)
    return differences(got, want, [*by, *(["user"] if per_user else [])])


@pytest.mark.sample(4)
@pytest.mark.parametrize("part", range(4))
def test_users_of_two_columns_have_the_values_of_one(part):
    labels = LABELS[part::4]
    assert differences_of_two_columns("duckdb", *STACKED, *labels, per_user=True, by=BY) == {}


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("dialect", ENGINES)
@pytest.mark.parametrize("options", OPTIONS[::3], ids=str)
def test_options_of_users_of_two_columns(options, dialect, per_user):
    run, truth = tables(3)
    call = {"per_user": per_user, "by": ["model"], **options}
    assert differences_of_two_columns(dialect, run, truth, *SOME, **call) == {}


@pytest.mark.parametrize("per_user", [True, False])
@pytest.mark.parametrize("form", ["one list per user", "a truth of each group", "two columns"])
def test_users_of_two_columns_in_tables_of_other_forms(form, per_user):
    run, truth, options = FORMS[form]
    found = differences_of_two_columns("duckdb", run, truth, *SOME, per_user=per_user, **options)
    assert found == {}
    segments = truth.with_columns(segment=pl.col("user") // 4)
    excluded = {"exclude": run.filter(pl.col("rank") % 3 == 1).select("user", "item").unique()}
    options = {**options, "by": [*options["by"], "segment"], **excluded}
    found = differences_of_two_columns("duckdb", run, segments, *SOME, per_user=per_user, **options)
    assert found == {}


def test_truth_has_a_column_that_is_called_like_the_user_of_the_run():
    run, truth = tables(2)
    other = truth.with_columns(pl.col("user").alias("uid"), pl.lit(0).alias("user"))
    text = rf.sql("ap", by="model", truth_user="uid")
    want = rf.evaluate(run, "ap", truth=truth)
    assert differences(ENGINES["duckdb"](text, run=run, truth=other), want, ["model"]) == {}


def test_table_lacks_a_column_of_the_user():
    run, truth = map(in_two_columns, tables(2))
    frames = {"run": run, "truth": truth.drop("wiki")}
    for check in (False, True):
        with pytest.raises(rf.RankingDataError, match="truth: no column 'wiki' for user; it has"):
            rf.sql("map", user=USER, schema=frames, check=check)
    with pytest.raises(rf.RankingDataError, match="truth: no column 'w', but truth_user='w'"):
        rf.sql("map", truth_user="w", schema={"truth": tables(2)[1]})


@pytest.mark.parametrize("dialect", ENGINES)
def test_rules_find_what_is_broken_in_users_of_two_columns(dialect):
    need(dialect)
    run, truth = map(in_two_columns, tables(4))
    run = run.with_columns(pl.col("rank").fill_null(99)).unique([*USER, "model", "rank"])
    truth = truth.filter(pl.col("relevance") >= 0).rename({"wiki": "w", "item": "page"})
    call = {"user": USER, "truth_user": ["w", "session"], "truth_item": "page"}
    text = rf.sql(**call, by="model", dialect=dialect, check=True)
    assert ENGINES[dialect](text, run=run, truth=truth).is_empty()
    apart = truth.with_columns(session=pl.col("session") + 3)
    got = ENGINES[dialect](text, run=run, truth=apart).rows()
    assert got == [("run", "wiki and session", "no user of the run is in the truth", 1)]
