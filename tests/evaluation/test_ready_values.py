"""Ready values of users: the same statistics as of metrics, and what is no value."""

import polars as pl
import pytest
from user_values import FEW, TESTS, VALUE, judged, sample

import rankframe as rf


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
    got = rf.compare_values(ready(*systems), "rmse", **options)
    expected = rf.compare(judged(*systems), VALUE.alias("rmse"), **options)
    assert got.equals(without_lists(expected))
    got = ready(*systems).rank.compare_values("rmse", baseline="m1", **options)
    expected = rf.compare(judged(*systems), VALUE.alias("rmse"), baseline="m1", **options)
    assert got.equals(without_lists(expected))


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_values_are_described_as_metrics_are(method):
    systems = sample(5, 30, systems=2)
    options = {"method": method, "resamples": FEW, "by": "model"}
    got = ready(*systems).rank.summarize_values("rmse", **options)
    expected = rf.summarize(judged(*systems), VALUE.alias("rmse"), **options)
    assert got.equals(without_lists(expected))
    alone = rf.summarize_values(ready(*systems[:1]), "rmse", method=method, resamples=FEW)
    assert alone.row(0) == got.drop("model").row(0)


def test_segments_and_names_are_the_callers():
    values = ready(*sample(6, 20)).with_columns(
        country=pl.col("user") % 2, clicks=pl.col("user") % 5, bought=pl.col("user") % 3 == 0
    )
    values = values.rename({"user": "uid", "model": "system"})
    got = rf.compare_values(
        values, "rmse", "clicks", "bought", by=["country", "system"], user="uid", baseline="m0"
    )
    assert got.select("country", "metric", "system").rows() == [
        (c, metric, "m1") for c in (0, 1) for metric in ("rmse", "clicks", "bought")
    ]
    assert got.filter(metric="clicks")["note"].to_list() == ["no user differs"] * 2
    part = values.filter(country=1)
    alone = rf.compare_values(part, "rmse", by="system", user="uid", baseline="m0")
    found = got.filter(country=1, metric="rmse")
    assert found["difference"].item() == alone["difference"].item()
    assert found["ci_low"].item() == alone["ci_low"].item()


def test_a_null_is_undefined_and_a_user_of_one_system_is_not_a_pair():
    values = ready([1.0, None, 3.0, 7.0], [2.0, 5.0, 5.0, 1.0]).filter(
        ~((pl.col("model") == "m1") & (pl.col("user") == 3))
    )
    row = rf.compare_values(values, "rmse", baseline="m0").row(0, named=True)
    assert (row["users"], row["difference"]) == (2, 1.5)
    summary = rf.summarize_values(values, "rmse", by="model")
    assert summary.select("users", "undefined", "mean").rows() == [
        (4, 1, pytest.approx(11 / 3)),
        (3, 0, 4.0),
    ]


def test_what_per_user_returns_can_be_joined_and_compared():
    run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "w": [1, 2, 3]})
    values = run.rank.per_user("rr", truth=truth, by="model")
    expected = run.rank.compare("rr", truth=truth, baseline="old")
    assert rf.compare_values(values, "rr", baseline="old").equals(without_lists(expected))
    weighted = values.join(truth.select("user", "w"), on="user")
    got = rf.compare_values(weighted, "rr", baseline="old", weights="w")
    expected = run.rank.compare("rr", truth=truth, baseline="old", weights="w")
    assert got.equals(without_lists(expected))
    got = rf.summarize_values(weighted, "rr", by="model", weights="w")
    expected = run.rank.summarize("rr", truth=truth, by="model", weights="w")
    assert got.equals(without_lists(expected))


def test_every_kind_of_frame():
    pandas = pytest.importorskip("pandas")
    import rankframe.pandas  # noqa: F401

    values = ready(*sample(7, 12))
    for verb, options in (("compare_values", {}), ("summarize_values", {"by": "model"})):
        eager = getattr(values.rank, verb)("rmse", **options)
        lazy = getattr(values.lazy().rank, verb)("rmse", **options)
        assert isinstance(lazy, pl.LazyFrame)
        assert lazy.collect_schema() == eager.schema
        assert lazy.collect().equals(eager)
        frame = getattr(values.to_pandas().ranking, verb)("rmse", **options)
        assert isinstance(frame, pandas.DataFrame)
        assert pl.from_pandas(frame).equals(eager)


# ------------------------------------------------------------------ what is refused

GOOD = ready([1.0, 2.0], [3.0, 5.0]).with_columns(w=pl.lit(1.0))
NAN, INF = float("nan"), float("inf")


def put(name, values, **options):
    return GOOD.with_columns(pl.Series(name, values, strict=False, **options))


@pytest.mark.parametrize(
    ("frame", "text"),
    [
        (pl.concat([GOOD, GOOD[:1]]), r"column 'user': duplicate \(model, user\): .*user=0"),
        (put("rmse", [1, NAN, 2, 3]), "column 'rmse': NaN or infinite value: use null where"),
        (put("rmse", [1, 2, INF, 3]), "column 'rmse': NaN or infinite value.*rmse=inf"),
        (put("rmse", list("abcd")), "column 'rmse': String is not a number: cast it"),
        (put("user", [0, None, 0, 1]), "column 'user': null user: drop the row"),
        (put("model", ["a", "a", None, "b"]), "column 'model': null group"),
        (put("user", [[1], [2], [1], [2]]), "column 'user': List.Int64. cannot be an id"),
        (GOOD.clear(), "table of values: it is empty"),
        (GOOD.drop("rmse"), "no column 'rmse'; it has 'model', 'user', 'w'"),
        (GOOD.drop("user"), "no column 'user'"),
        (put("w", [1, -1, 1, 1]), "column 'w': negative weight"),
        (put("w", [1, None, 1, 1]), "column 'w': null weight"),
        (put("w", [1, NAN, 1, 1]), "column 'w': NaN or infinite weight"),
        (put("w", list("abcd")), "column 'w': String cannot be a weight"),
        (put("w", [0, 0, 0, 0]), "every user with a value of 'rmse' has the weight 0"),
    ],
)
@pytest.mark.parametrize("kind", ["eager", "lazy"])
@pytest.mark.parametrize("verb", [rf.compare_values, rf.summarize_values])
def test_bad_tables_are_reported(verb, kind, frame, text):
    frame = frame.lazy() if kind == "lazy" else frame
    with pytest.raises(rf.RankingDataError, match=text):
        verb(frame, "rmse", by="model", weights="w").lazy().collect()


def test_a_user_has_one_weight_in_all_systems():
    with pytest.raises(
        rf.RankingDataError, match="column 'w': several weights of one user.*Offending row: user=1"
    ):
        rf.compare_values(put("w", [1, 2, 1, 3]), "rmse", weights="w")


def test_bad_calls_are_reported():
    for verb in (rf.compare_values, rf.summarize_values):
        with pytest.raises(ValueError, match='at least one column of values, for example "rmse"'):
            verb(GOOD, by="model")
        with pytest.raises(ValueError, match="column 'user' is named twice"):
            verb(GOOD, "user", by="model")
        with pytest.raises(TypeError, match="the name of a column of values must be text, not 3"):
            verb(GOOD, 3, by="model")
        with pytest.raises(ValueError, match="weights='user': this column has another role"):
            verb(GOOD, "rmse", by="model", weights="user")
        with pytest.raises(TypeError, match="table of values must be a polars DataFrame"):
            verb({"rmse": [1]}, "rmse", by="model")
    with pytest.raises(ValueError, match="compare_values needs the column that identifies"):
        rf.compare_values(GOOD.drop("model")[:2], "rmse")
    with pytest.raises(rf.RankingDataError, match="only one system"):
        rf.compare_values(GOOD[:2], "rmse")
    with pytest.raises(ValueError, match="baseline must be one of 'm0', 'm1', not 'm7'"):
        rf.compare_values(GOOD, "rmse", baseline="m7")
    with pytest.raises(rf.RankingDataError, match="summarize_values makes a column of this name"):
        rf.summarize_values(GOOD.rename({"model": "mean"}), "rmse", by="mean")
