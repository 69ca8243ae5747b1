"""What others may add: metrics and columns, from a package of their own."""

import extension
import metric_pages
import polars as pl
import pytest
from commands import said_by
from polars.testing import assert_frame_equal
from two_models import assert_equal

import rankframe as rf
import rankframe.pandas
from rankframe._command.main import main

RUN = pl.DataFrame(
    {
        "user": [1, 1, 1, 1, 2, 2],
        "item": [1, 2, 3, 4, 1, 5],
        "rank": [1, 2, 3, 4, 1, 2],
        "price": [4.0, 8.0, 2.0, 2.0, 1.0, 3.0],
    }
)
TRUTH = pl.DataFrame({"user": [1, 1, 1, 2, 3], "item": [2, 4, 9, 5, 1]})


@pytest.fixture(autouse=True)
def acme():
    with extension.registered() as package:
        yield package


@pytest.mark.parametrize("label", ["first_half@4", "fh_4", "first_half_at@4", " first_half @ 4"])
def test_metric_is_asked_for_by_its_label(label):
    got = rf.per_user(RUN, label, truth=TRUTH)
    assert got.rows() == [(1, 0.25), (2, 0.25), (3, 0.0)]


def test_options_are_in_the_label(acme):
    assert acme.first_half_at(4, weight=2).meta.output_name() == "first_half(weight=2)@4"
    assert rf.metrics.of_label("first_half(weight=2)@4").meta.eq(acme.first_half_at(4, weight=2))
    label = acme.mean_price_at(2, of="hits", gain={1: 2}).meta.output_name()
    assert label == "mean_price(of=hits, gain=1:2)@2"
    assert rf.metrics.of_label(label).meta.eq(acme.mean_price_at(2, of="hits", gain={1: 2}))


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("first_half@0", "first_half_at: k must be an integer ≥ 1, not 0"),
        ("first_half", "missing a required argument: 'k'"),
        ("first_half(weight=-1)@4", "first_half_at: weight must be a number"),
        ("first_half(wait=1)@4", "unknown parameter 'wait'; first_half takes weight"),
        ("first_hlf@4", "the nearest are 'first_half@4'"),
        ("mean_price(of=all)@4", "mean_price_at: of must be one of 'listed', 'hits', not 'all'"),
    ],
)
def test_parameters_of_a_registered_metric_are_checked(label, text):
    with pytest.raises(ValueError, match=text.replace("(", r"\(")):
        rf.evaluate(RUN, label, truth=TRUTH)


def test_registered_metric_is_a_method_of_every_frame():
    expected = rf.per_user(RUN, "first_half@4", truth=TRUTH, users="both")
    assert_equal(RUN.rank.first_half_at(4, truth=TRUTH, users="both"), expected)
    assert_equal(RUN.lazy().rank.first_half_at(4, truth=TRUTH, users="both").collect(), expected)
    assert_equal(RUN.rank.first_half(4, truth=TRUTH, users="both"), expected)  # by its label
    got = RUN.to_pandas().ranking.first_half_at(4, truth=TRUTH, users="both")
    assert_frame_equal(pl.from_pandas(got), expected)
    with pytest.raises(AttributeError, match="did you mean 'first_half_at'"):
        _ = RUN.rank.first_hlf_at


def test_expectation_of_a_registered_metric_is_taken_under_ties():
    scored = pl.DataFrame({"user": 1, "item": [1, 2, 3, 4], "score": [2.0, 1.0, 1.0, 0.5]})
    tied = scored.rank.with_rank(ties="expected")
    # item 2 is in second place in one order of two, and item 4 is never among the first two
    assert rf.evaluate(tied, "fh_4", truth=TRUTH.filter(user=1)).item(0, "fh_4") == 0.5 / 4
    got = rf.evaluate(RUN.with_columns(tied=1), "first_half@4", truth=TRUTH)
    assert_equal(got, rf.evaluate(RUN, "first_half@4", truth=TRUTH))


def test_defaults_statistics_and_bounds_know_it():
    got = rf.evaluate(
        RUN, "first_half@4", truth=TRUTH, preset={"defaults": {"first_half": {"weight": 2}}}
    )
    assert got.item(0, "first_half@4") == pytest.approx(2 * (0.25 + 0.25) / 3)
    assert rf.summarize(RUN, "first_half@4", truth=TRUTH)["metric"].to_list() == ["first_half@4"]
    with pytest.raises(ValueError, match="it has no proven bounds"):
        rf.evaluate(RUN, "first_half@4", truth=TRUTH, unjudged="bounds")


def test_parts_and_meters_know_it():
    labels = ["first_half@4", "mean_price@2"]
    pairs = [(RUN.filter(user=user), TRUTH.filter(user=user)) for user in (1, 2, 3)]
    expected = rf.evaluate(RUN, *labels, truth=TRUTH)
    meter = rf.Meter(*labels)
    for run, truth in pairs:
        meter.update(run, truth)
    assert_frame_equal(meter.compute(), expected)
    parts = [
        rf.parts.sums(run, *labels, truth=truth, part=str(key))
        for key, (run, truth) in enumerate(pairs)
    ]
    assert_frame_equal(rf.parts.combine(parts), expected)


def test_charts_know_it():
    run = RUN.with_columns(model=pl.lit("a"))
    chart = run.rank.plot.at_k("first_half", truth=TRUTH, k=[2, 4])
    assert chart.data["mean"].to_list() == [0.0, pytest.approx(1 / 6)]


def test_command_imports_it(tmp_path, capsys, monkeypatch):
    RUN.write_csv(tmp_path / "run.csv")
    TRUTH.write_csv(tmp_path / "truth.csv")
    files = [str(tmp_path / "run.csv"), str(tmp_path / "truth.csv")]
    call = ["--import", "acme_metrics", "evaluate", *files, "-m", "fh_4"]
    assert main(call) == 0
    assert "fh_4" in capsys.readouterr().out
    assert main(["--import", "acme_metrics", "metrics", "first_half@4"]) == 0
    assert "Hits among the first k / 2 items" in capsys.readouterr().out
    assert "no_such_module" in said_by(["--import", "no_such_module", *call[2:]])


def test_reference_lists_it():
    page = "".join(metric_pages.pages().values())
    assert "## first_half_at" in page
    assert "- **Range:** [0, 2]; higher is better" in page
    assert "| `gap_above` | Rank minus the rank of the relevant item above, or minus 0 |" in page


def test_metric_of_the_list_needs_no_truth():
    got = rf.per_user(RUN, "mean_price@2")
    assert got.rows() == [(1, 6.0), (2, 2.0)]
    got = rf.per_user(RUN, "mean_price@2", "mean_price(of=hits)", truth=TRUTH, users="all")
    assert got.rows() == [(1, 6.0, 5.0), (2, 2.0, 3.0), (3, None, None)]


def test_columns_are_derived_where_they_are_read(acme):
    got = rf.per_user(RUN, acme.widest_gap, acme.pages, truth=TRUTH)
    assert got.rows() == [(1, 2, 2), (2, 2, 1), (3, None, None)]
    assert rf.per_user(RUN, acme.pages).rows() == [(1, 2), (2, 1)]
    rows = rf.metrics.rows(rf.judge(RUN, TRUTH), acme.widest_gap)
    assert rows["gap_above"].to_list() == [2, 2, None, 2, None]


def test_bad_parameter_of_a_column_is_an_error():
    with pytest.raises(ValueError, match="column 'page.0.': '0' is not a parameter of 'page'"):
        rf.per_user(RUN, pl.col("page(0)").max().alias("x"))


def test_name_of_a_registered_column_is_reserved_only_where_it_is_read(acme):
    run = RUN.with_columns(page=pl.lit("home"))
    assert_equal(
        rf.per_user(run, "precision@2", truth=TRUTH), rf.per_user(RUN, "precision@2", truth=TRUTH)
    )
    with pytest.raises(rf.RankingDataError, match="run, column 'page': this name is reserved"):
        rf.per_user(run, acme.pages)


def test_columns_under_ties(acme):
    tied = RUN.with_columns(tied=1)
    got = rf.per_user(tied, acme.pages, truth=TRUTH)
    assert_equal(got, rf.per_user(RUN, acme.pages, truth=TRUTH))
    with pytest.raises(ValueError, match="no exact expectation under ties"):
        rf.per_user(tied, acme.widest_gap, truth=TRUTH)


@pytest.mark.parametrize(
    ("label", "text"),
    [
        ("ndcg", "'ndcg' is the name of a metric of rankframe"),
        ("map", "'map' is the name of a metric of rankframe, 'ap'"),
        ("P_10", "is not a label"),
        ("p@5", "is not a label"),
        ("a(b)", "is not a label"),
    ],
)
def test_names_that_are_taken_or_no_labels_are_refused(label, text):
    with pytest.raises(ValueError, match=text):

        @rf.register_metric(label)
        def mine_at(k: int) -> pl.Expr:
            return pl.col("rank").max() + k


def test_parameter_that_no_label_carries_is_refused():
    with pytest.raises(TypeError, match="mine: weights needs an annotation"):

        @rf.register_metric("mine")
        def mine(weights: list) -> pl.Expr:
            return pl.col("rank").max()

    with pytest.raises(ValueError, match="'ndcg_at' is the name of a metric of rankframe"):

        @rf.register_metric("mine")
        def ndcg_at(k: int) -> pl.Expr:
            return pl.col("rank").max() + k


def test_label_registered_again_is_replaced():
    @rf.register_metric("first_half")
    def other_at(k: int) -> pl.Expr:
        return (pl.col("rank") <= k).sum().cast(pl.Float64)

    assert rf.per_user(RUN, "first_half@4", truth=TRUTH)["first_half@4"].to_list() == [2, 1, 0]
    assert "first_half_at" not in dir(RUN.rank)
    with pytest.raises(ValueError, match="unknown metric 'fh_4'"):
        rf.metrics.of_label("fh_4")


@pytest.mark.parametrize(
    ("name", "options", "text"),
    [
        ("hits", {}, "a role or a column of the vocabulary has this name"),
        ("a b", {}, "must be one word"),
        ("mine", {"scope": "all"}, "scope must be one of 'relevant', 'judged', 'listed'"),
        ("mine", {"reads": ["mine"]}, "column 'mine' reads itself"),
    ],
)
def test_columns_that_cannot_be(name, options, text):
    with pytest.raises(ValueError, match=text):
        rf.metrics.register_column(name, "no meaning", **options)


def test_column_derived_from_one_that_is_not_there():
    @rf.metrics.register_column("dear", "The price is above 5")
    def dear(keys: list[str]) -> pl.Expr:
        return pl.col("price") > 5

    assert str(dear([])) == str(pl.col("price") > 5)  # the decorator returns the function
    count = pl.col("dear").filter("relevant").sum().alias("n")
    assert rf.per_user(RUN, count, truth=TRUTH)["n"].to_list() == [1, 0, 0]
    with pytest.raises(rf.RankingDataError, match="metric 'n': a registered column is derived"):
        rf.per_user(RUN.drop("price"), count, truth=TRUTH)


def test_types_for_wrappers():
    import rankframe.typing

    for name in rankframe.typing.__all__:
        assert getattr(rankframe.typing, name) is not None
    assert set(rankframe.typing.Options.__annotations__) > {"users", "depth", "user", "item"}


def test_package_shows_its_public_names():
    shown = repr(RUN.rank)
    assert all(verb in shown for verb in ("evaluate", "per_user", "judge", "compare", "DataFrame"))
    for verb in ("compare", "evaluate", "summarize", "table", "overlap", "report", "sql"):
        with pytest.raises(ModuleNotFoundError):
            __import__(f"rankframe.{verb}")
