"""Tables of values: the same statistics as of metrics, and what is no value."""

import extension
import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal
from two_models import assert_equal
from user_values import FEW, TESTS, VALUE, judged, sample

import rankframe as rf
from rankframe.errors import RankingDataError


def ready(*systems):
    """The values of ``judged``, as a plain table."""
    return judged(*systems).select("model", "user", rmse="value")


def without_lists(table):
    """Take off what values do not show: who has a list."""
    counts = [name for name in table.columns if name.endswith("num_missed")]
    assert counts
    assert table.select(pl.col(counts).sum()).row(0) == (0,) * len(counts)
    return table.with_columns(pl.lit(None, pl.Int64).alias(name) for name in counts)


@pytest.mark.parametrize("test", TESTS)
def test_values_are_compared_as_metrics_are(test):
    systems = sample(4, 30, systems=3)
    options = {"test": test, "resamples": FEW}
    got = rf.compare(ready(*systems), "rmse", **options, details=True)
    expected = rf.compare(judged(*systems), VALUE.alias("rmse"), **options, details=True)
    assert_equal(got, without_lists(expected))
    got = ready(*systems).rank.compare("rmse", baseline="m1", **options, details=True)
    expected = rf.compare(
        judged(*systems), VALUE.alias("rmse"), baseline="m1", **options, details=True
    )
    assert_equal(got, without_lists(expected))


@pytest.mark.parametrize("method", ["t", "auto"])
def test_values_are_described_as_metrics_are(method):
    systems = sample(5, 30, systems=2)
    options = {"method": method, "resamples": FEW, "by": "model"}
    got = ready(*systems).rank.summarize("rmse", **options)
    expected = rf.summarize(judged(*systems), VALUE.alias("rmse"), **options)
    assert_equal(got, without_lists(expected))
    alone = rf.summarize(ready(*systems[:1]), "rmse", method=method, resamples=FEW)
    assert_equal(alone, got.head(1))


def test_segments_and_names_are_the_callers():
    values = ready(*sample(6, 20)).with_columns(
        country=pl.col("user") % 2, clicks=pl.col("user") % 5, bought=pl.col("user") % 3 == 0
    )
    values = values.rename({"user": "uid", "model": "system"})
    options = {"model": "system", "user": "uid", "baseline": "m0"}
    got = rf.compare(values, "rmse", "clicks", "bought", by="country", **options)
    assert got.select("country", "metric", "system").rows() == [
        (c, metric, "m1") for c in (0, 1) for metric in ("rmse", "clicks", "bought")
    ]
    assert got.filter(metric="clicks")["note"].to_list() == ["no user differs"] * 2
    part = values.filter(country=1)
    alone = rf.compare(part, "rmse", **options)
    found = got.filter(country=1, metric="rmse")
    assert found["difference"].item() == alone["difference"].item()
    assert found["ci_low"].item() == alone["ci_low"].item()


def test_null_is_undefined_and_a_user_of_one_system_is_not_a_pair():
    values = ready([1.0, None, 3.0, 7.0], [2.0, 5.0, 5.0, 1.0]).filter(
        ~((pl.col("model") == "m1") & (pl.col("user") == 3))
    )
    row = rf.compare(values, "rmse", baseline="m0", details=True).row(0, named=True)
    assert (row["users"], row["difference"]) == (2, 1.5)
    summary = rf.summarize(values, "rmse", by="model")
    assert summary.select("users", "num_left_out", "mean").rows() == [
        (3, 1, pytest.approx(11 / 3)),
        (3, 0, 4.0),
    ]


def test_values_of_per_user_can_be_joined_and_compared():
    run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "w": [1, 2, 3]})
    values = run.rank.per_user("rr", truth=truth, by="model")
    expected = run.rank.compare("rr", truth=truth, baseline="old", details=True)
    assert_equal(rf.compare(values, "rr", baseline="old", details=True), without_lists(expected))
    weighted = values.join(truth.select("user", "w"), on="user")
    got = rf.compare(weighted, "rr", baseline="old", weights="w", details=True)
    expected = run.rank.compare("rr", truth=truth, baseline="old", weights="w", details=True)
    assert_equal(got, without_lists(expected))
    got = rf.summarize(weighted, "rr", by="model", weights="w")
    expected = run.rank.summarize("rr", truth=truth, by="model", weights="w")
    assert_equal(got, without_lists(expected))


RNG = np.random.default_rng(32)
RUN = pl.DataFrame(
    {"model": ["a", "b", "c"] * 60, "user": sorted([*range(60)] * 3), "item": [7] * 180}
).with_columns(rank=pl.Series(RNG.integers(1, 14, 180)))
TRUTH = pl.DataFrame({"user": range(60), "item": [7] * 60}).with_columns(
    land=pl.Series(["no", "se", "dk"] * 20), w=pl.Series(RNG.integers(1, 4, 60))
)
VERBS = {
    "summarize": {"by": "model"},
    "compare": {"baseline": "a", "margin": 0.3},
    "compare_segments": {"by": ["model", "land"], "baseline": "a"},
    "power": {"baseline": "a", "difference": 0.05},
    "gate": {"baseline": "a", "undecided": "pass", "margin": {"rr": 0.2}},
}


@pytest.mark.parametrize("verb", VERBS)
def test_verb_takes_values_as_it_takes_a_run(verb):
    options = VERBS[verb]
    function = getattr(rf if verb in dir(rf) else rf.stats, verb)
    by = options.get("by", "model")
    values = rf.per_user(RUN, "rr", "ndcg@10", truth=TRUTH, by="model")
    values = values.join(TRUTH.select("user", "land"), on="user")
    run = RUN.join(TRUTH.select("user", "land"), on="user") if "land" in by else RUN
    missed = pl.selectors.ends_with("num_missed")
    expected = function(run, "rr", "ndcg@10", truth=TRUTH, **options).drop(missed)
    got = function(values, "rr", "ndcg@10", **options)
    assert_frame_equal(got.drop(missed), expected)
    lazy = function(values.lazy(), "rr", "ndcg@10", **options)
    assert_frame_equal(lazy.collect(), got)
    names = values["model"].unique(maintain_order=True).to_list()
    runs = {name: values.filter(model=name).drop("model") for name in names}
    assert_frame_equal(function(runs, "rr", "ndcg@10", **options), got)


def test_charts_draw_values_as_they_draw_a_run():
    values = rf.per_user(RUN, "rr", "ndcg@10", truth=TRUTH, by="model")
    both = ("rr", "ndcg@10")
    for chart, metrics, options in (
        (rf.plot.compare, both, {"baseline": "a", "margin": {"rr": 0.1}}),
        (rf.plot.per_user, both[:1], {}),
        (rf.plot.trade_off, both, {}),
    ):
        expected = chart(RUN, *metrics, truth=TRUTH, **options).data
        got = chart(values, *metrics, **options).data
        missed = pl.selectors.ends_with("num_missed")
        assert_frame_equal(got.drop(missed), expected.drop(missed), check_column_order=False)
    minutes = values.select("model", "user", minutes=60 * pl.col("rr")).lazy()
    turned = {"baseline": "a", "higher_is_better": {"minutes": False}}
    assert rf.plot.compare(minutes, "minutes", **turned).data.height == 2
    placed = minutes.with_columns(land=pl.lit("x"))
    assert rf.plot.segments(placed, "minutes", by="land").data.height == 3


def test_column_has_the_direction_that_is_declared():
    olds, news = [1.0, 2.0, 3.0, 1.5, 2.0], [1.1, 2.22, 3.13, 1.64, 2.15]
    values = ready(olds * 4, news * 4)  # fewer than 20 changes have no p of a margin
    options = {"baseline": "m0", "margin": 0.5}
    assert rf.compare(values, "rmse", **options)["p_not_worse"].item() is None
    with pytest.raises(
        ValueError, match="metric 'rmse': it is not declared whether higher or lower is better"
    ):
        rf.gate(values, "rmse", baseline="m0")
    up, down = (
        rf.compare(values, "rmse", **options, higher_is_better={"rmse": higher}).row(0, named=True)
        for higher in (True, False)
    )
    assert up["p_not_worse"] < down["p_not_worse"] < 0.01
    gated = rf.gate(
        values, "rmse", baseline="m0", undecided="pass", higher_is_better={"rmse": False}
    )
    assert gated["why"].item().startswith("worse: interval above 0")
    # a column that is called like a metric has its direction, unless the caller says another
    found = rf.gate(
        values.rename({"rmse": "mean_hit_rank"}),
        "mean_hit_rank",
        baseline="m0",
        undecided="pass",
    )["why"].item()
    assert found == gated["why"].item()
    named = values.with_columns(pl.col("rmse") / 10).rename({"rmse": "ndcg@10"})
    assert rf.gate(named, "ndcg@10", baseline="m0", undecided="pass")["passed"].item()
    turned = {"higher_is_better": {"ndcg@10": False}}
    assert not rf.gate(named, "ndcg@10", baseline="m0", undecided="pass", **turned)["passed"].item()


@pytest.mark.parametrize("kind", ["eager", "lazy"])
def test_value_outside_the_limits_is_an_error_with_its_row(kind, refused):
    values = ready([1.0, None, 3.0], [2.0, 5.0, 5.0])
    values = values.lazy() if kind == "lazy" else values

    def summary(table, name="rmse", **limits):
        return rf.summarize(table, name, by="model", **limits).lazy().collect()

    assert len(summary(values, value_range={"rmse": (1, 5)})) == 2
    refused(summary, values, value_range={"rmse": (1, 4)})
    named = values.rename({"rmse": "ndcg@10"})
    refused(summary, named, "ndcg@10")
    assert len(summary(named, "ndcg@10", value_range={"ndcg@10": (0, 100)})) == 2
    dust = named.with_columns(pl.col("ndcg@10").clip(upper_bound=1 + 1e-12))
    assert len(summary(dust, "ndcg@10")) == 2
    assert len(summary(values.rename({"rmse": "num_hits"}), "num_hits")) == 2  # no greatest value


def test_boolean_column_has_the_range_of_hits():
    bought = pl.DataFrame({"model": ["a"] * 400 + ["b"] * 400, "user": [*range(400)] * 2})
    bought = bought.with_columns(bought=pl.col("user") < 399)
    options = {"baseline": "a", "higher_is_better": {"bought": True}}
    assert rf.gate(bought, "bought", margin=0.01, **options)["passed"].item()
    looked = rf.compare(bought, "bought", test="sequential", **options)["note"].item()
    assert "normal" not in looked


@pytest.mark.parametrize("kind", ["eager", "lazy"])
@extension.unchanged_registry()
def test_registered_metric_outside_its_range_is_an_error_of_statistics(kind):
    @rf.register_metric("lower_hits")
    def lower_hits_after(k: int) -> pl.Expr:
        """The number of hits below rank k."""
        return (pl.col("relevant") & (pl.col("rank") > k)).sum()

    run = pl.DataFrame({"model": ["m0"] * 3 + ["m1"] * 3, "user": 7, "item": [1, 2, 3] * 2})
    run = run.with_columns(rank=pl.Series([1, 2, 3, 1, 3, 2]))
    truth = pl.DataFrame({"user": [7, 7, 8], "item": [2, 3, 1]})
    frames = (run, truth) if kind == "eager" else (run.lazy(), truth.lazy())
    options = {"truth": frames[1], "by": "model"}
    means = rf.evaluate(frames[0], "lower_hits@1", **options).lazy().collect()
    assert means["lower_hits@1"].to_list() == [1, 1]  # user 8 has none
    text = (
        r"metric 'lower_hits@1': a value outside its range, 0 to 1: correct it, or declare another"
        r", value_range= of rf.register_metric. Offending row: model='m0', user=7, lower_hits@1=2"
    )
    for verb in (rf.summarize, rf.compare, rf.gate):
        more = {"at_least": 0.5} if verb is rf.gate else {}
        with pytest.raises(RankingDataError, match=text):
            verb(frames[0], "lower_hits@1", **options, **more).lazy().collect()


@pytest.mark.parametrize(
    "option", [{"higher_is_better": {"rmse": True}}, {"value_range": {"rmse": (0, 9)}}]
)
def test_typo_in_a_column_is_that_of_the_column(option):
    with pytest.raises(
        RankingDataError, match="no column 'rsme'; its columns of numbers are 'rmse'"
    ):
        rf.compare(GOOD, "rsme", **option)


def test_directions_and_limits_that_cannot_be_read_are_reported(refused):
    wrong = [
        {"value_range": {"rsme": (0, 1)}},
        {"value_range": {"rmse": (1, 0)}},
        {"value_range": {"rmse": (0, NAN)}},
        {"value_range": (0, 1)},
        {"higher_is_better": {"rmse": 1}},
        {"higher_is_better": True},
    ]
    for options in wrong:
        refused(rf.compare, GOOD, "rmse", **options)
    for option in ({"value_range": {"rr": (0, 1)}}, {"higher_is_better": {"rr": True}}):
        refused(rf.compare, RUN, "rr", truth=TRUTH, **option)


# ------------------------------------------------------------------ what is refused

GOOD = ready([1.0, 2.0], [3.0, 5.0]).with_columns(w=pl.lit(1.0))
NAN, INF = float("nan"), float("inf")


def put(name, values, **options):
    return GOOD.with_columns(pl.Series(name, values, strict=False, **options))


@pytest.mark.parametrize(
    "frame",
    [
        pl.concat([GOOD, GOOD[:1]]),
        put("rmse", [1, NAN, 2, 3]),
        put("rmse", [1, 2, INF, 3]),
        put("rmse", list("abcd")),
        put("user", [0, None, 0, 1]),
        put("model", ["a", "a", None, "b"]),
        put("user", [[1], [2], [1], [2]]),
        GOOD.clear(),
        GOOD.drop("rmse"),
        GOOD.drop("user"),
        put("w", [1, -1, 1, 1]),
        put("w", [1, None, 1, 1]),
        put("w", [1, NAN, 1, 1]),
        put("w", list("abcd")),
        put("w", [0, 0, 0, 0]),
    ],
)
@pytest.mark.parametrize("kind", ["eager", "lazy"])
@pytest.mark.parametrize("verb", [rf.compare, rf.summarize])
def test_bad_tables_are_reported(verb, kind, frame, refused):
    frame = frame.lazy() if kind == "lazy" else frame
    refused(lambda: verb(frame, "rmse", by="model", weights="w").lazy().collect())


def test_user_has_one_weight_in_all_systems():
    with pytest.raises(
        rf.RankingDataError, match="column 'w': several weights of one user.*Offending row: user=1"
    ):
        rf.compare(put("w", [1, 2, 1, 3]), "rmse", weights="w")


def test_ready_values_report_bad_calls():
    for verb in (rf.compare, rf.summarize):
        with pytest.raises(ValueError, match='at least one column of values, for example "rmse"'):
            verb(GOOD, by="model")
        with pytest.raises(ValueError, match="column 'user' is named twice"):
            verb(GOOD, "user", by="model")
        with pytest.raises(TypeError, match="the name of a column of values must be text, not 3"):
            verb(GOOD, 3, by="model")
        with pytest.raises(ValueError, match="weights='user': this column has another role"):
            verb(GOOD, "rmse", by="model", weights="user")
        with pytest.raises(TypeError, match="judged table must be a polars DataFrame"):
            verb([1], "rmse", by="model")
        with pytest.raises(TypeError, match="takes the names of its columns, not an expression"):
            verb(GOOD, rf.metrics.ndcg_at(10), by="model")
        with pytest.raises(ValueError, match="depth= needs lists of items; this frame has no item"):
            verb(GOOD, "rmse", by="model", depth=3)
        with pytest.raises(ValueError, match="rank= needs lists of items"):
            verb(GOOD, "rmse", by="model", rank="w")
        with pytest.raises(rf.RankingDataError, match="'other'; its columns of numbers are 'rmse'"):
            verb(GOOD, "other", by="model", weights="w")
    with pytest.raises(ValueError, match="compare needs the column that names the systems"):
        rf.compare(GOOD.drop("model")[:2], "rmse", details=True)
    with pytest.raises(rf.RankingDataError, match="only one system"):
        rf.compare(GOOD[:2], "rmse", details=True)
    with pytest.raises(ValueError, match="baseline must be one of 'm0', 'm1', not 'm7'"):
        rf.compare(GOOD, "rmse", baseline="m7", details=True)
    with pytest.raises(rf.RankingDataError, match="summarize adds a column with this name"):
        rf.summarize(GOOD.rename({"model": "mean"}), "rmse", by="mean")
