"""``bounds=True`` and ``scenarios=True``: what the unjudged items of the lists leave open."""

import itertools

import polars as pl
import pytest
from every_metric import EVERY_METRIC, FEW, SPECIAL_MEANS
from polars.testing import assert_frame_equal
from two_models import RUN, TRUTH, A

import rankframe as rf
from rankframe._request.labels import extremes_of

BOUNDED = {label: e for label, e in EVERY_METRIC.items() if extremes_of(e)[0]}


def assert_same(left, right):
    assert_frame_equal(left, right, check_exact=False, rel_tol=1e-12, abs_tol=1e-12)


def test_worked_by_hand():
    run = pl.DataFrame({"user": [1] * 4, "item": [1, 2, 3, 4], "rank": [1, 2, 3, 4]})
    truth = pl.DataFrame({"user": [1] * 4, "item": [2, 3, 4, 5], "relevance": [3, 0, -1, 1]})
    got = run.rank.evaluate(
        "p@2", "recall@4", "dcg@2", "err(max_grade=3)@1", truth=truth, bounds=True
    )
    assert got.columns[:4] == ["users", "p@2", "p@2_low", "p@2_high"]
    # item 1 is unjudged, item 4 is of negative grade: both may be relevant, item 3 is not
    assert got.row(0)[1:4] == (0.5, 0.5, 1.0)
    assert got.row(0)[4:7] == (0.5, 0.5, 3 / 4)
    assert got["dcg@2_high"].item() - got["dcg@2_low"].item() == pytest.approx(3)
    assert got["err(max_grade=3)@1_high"].item() == 7 / 8


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_the_gap_of_rbp_is_its_residual_within_the_list(p):
    label, residual = f"rbp(p={p})", f"rbp_residual(p={p})"
    got = A.rank.per_user(label, truth=TRUTH, bounds=True)
    got = got.join(A.rank.per_user(residual, truth=TRUTH), on="user")
    lengths = A.group_by("user").agg(n=pl.len().cast(pl.Int64))
    gap = got.join(lengths, on="user", how="left").select(
        gap=pl.col(f"{label}_high") - pl.col(f"{label}_low"),
        # the residual also has what lies below the end of the list
        left=pl.col(residual) - pl.lit(p).pow(pl.col("n").fill_null(0)),
    )
    assert (gap["gap"] - gap["left"]).abs().max() < 1e-12
    assert gap["gap"].max() > 0.1


def test_scenarios_are_the_metric_of_both_judgments():
    got = A.rank.per_user(*FEW, truth=TRUTH, scenarios=True)
    plain = A.rank.per_user(*FEW, truth=TRUTH)
    assert_same(got.select(plain.columns), plain)
    unjudged = A.select("user", "item").join(
        TRUTH.filter(pl.col("relevance") >= 0), on=["user", "item"], how="anti"
    )
    kept = TRUTH.drop("genre").join(unjudged, on=["user", "item"], how="anti")
    scenarios = []
    for grade in (0, TRUTH["relevance"].max()):
        filled = pl.concat([kept, unjudged.with_columns(relevance=pl.lit(grade, pl.Int64))])
        values = A.rank.per_user(*FEW, truth=filled, users="judged")
        scenarios.append(plain.select("user").join(values, on="user", how="left").sort("user"))
    for label in FEW:
        pair = pl.DataFrame({"a": scenarios[0][label], "b": scenarios[1][label]})
        both = pair["a"].is_not_null() & pair["b"].is_not_null()
        for name, expected in (("if_none", pair["a"]), ("if_all", pair["b"])):
            bound = got[f"{label}_{name}"]
            assert (bound.is_not_null() == both).all(), label
            assert ((bound - expected).filter(both).abs() < 1e-12).all(), label


@pytest.mark.parametrize("option", ["bounds", "scenarios"])
def test_every_way_in_gives_the_same(option):
    labels = {"bounds": [*BOUNDED][::5], "scenarios": [*[*FEW][::2], *SPECIAL_MEANS]}[option]
    options = {"by": "model", option: True}
    expected = RUN.rank.evaluate(*labels, truth=TRUTH, **options)
    lazy = RUN.lazy().rank.evaluate(*labels, truth=TRUTH.lazy(), **options)
    assert_same(lazy.collect(), expected)
    judged = RUN.rank.judge(TRUTH, by="model")
    assert_same(judged.rank.evaluate(*labels, **options), expected)
    own = [EVERY_METRIC[label] for label in labels if label in EVERY_METRIC]
    exprs = RUN.rank.evaluate(*own, truth=TRUTH, **options)
    assert_same(exprs, expected.select(exprs.columns))
    if option == "scenarios":  # of gmap, too, they are means over users
        assert {"gmap_if_none", "num_users_if_all"} <= {*expected.columns}


def test_condensed_lists_have_scenarios_of_the_full_ones():
    got = A.rank.evaluate("p@5", truth=TRUTH, judged_only=True, scenarios=True)
    full = A.rank.evaluate("p@5", truth=TRUTH, scenarios=True)
    condensed = A.rank.evaluate("p@5", truth=TRUTH, judged_only=True)
    assert_same(got.select(pl.col("^p@5_.*$")), full.select(pl.col("^p@5_.*$")))
    assert_same(got.select("users", "p@5"), condensed)


def test_a_complete_truth_leaves_nothing_open():
    items = A.select("user", "item").join(TRUTH, on=["user", "item"], how="anti")
    complete = pl.concat(
        [TRUTH.drop("genre"), items.with_columns(relevance=pl.lit(0, pl.Int64))]
    ).with_columns(pl.col("relevance").clip(0))
    for option, labels, names in (
        ("bounds", BOUNDED, ("low", "high")),
        ("scenarios", FEW, ("if_none", "if_all")),
    ):
        got = A.rank.per_user(*labels, truth=complete, **{option: True})
        for label in labels:
            one, other = (got[f"{label}_{name}"] for name in names)
            assert one.null_count() == other.null_count()
            assert ((one - other).drop_nulls().abs() < 1e-12).all(), label


def test_with_ties():
    tied = A.with_columns(score=pl.col("minutes").round()).rank.with_rank(ties="expected")
    got = tied.rank.per_user("p@3", "ap", truth=TRUTH, scenarios=True)
    assert (got["p@3_if_none"] <= got["p@3_if_all"] + 1e-12).all()
    assert_same(got.select("user", "p@3"), tied.rank.per_user("p@3", truth=TRUTH))
    bounds = tied.rank.per_user("p@3", truth=TRUTH, bounds=True)
    assert_same(
        bounds["p@3_low", "p@3_high"],
        got.select(low="p@3_if_none", high="p@3_if_all").rename(
            {"low": "p@3_low", "high": "p@3_high"}
        ),
    )
    with pytest.raises(ValueError, match=r"'recall@3': no bounds are proven for it under ties"):
        tied.rank.per_user("recall@3", truth=TRUTH, bounds=True)


def test_bad_calls_are_reported():
    with pytest.raises(TypeError, match="bounds must be True or False"):
        A.rank.evaluate("ap", truth=TRUTH, bounds=1)
    with pytest.raises(TypeError, match="scenarios must be True or False"):
        A.rank.evaluate("ap", truth=TRUTH, scenarios="no")
    with pytest.raises(ValueError, match="two output columns are called 'p@1_low'"):
        A.rank.evaluate("p@1", rf.metrics.of_label("rr").alias("p@1_low"), truth=TRUTH, bounds=True)
    with pytest.raises(ValueError, match="judged_only=True drops the unjudged items"):
        A.rank.evaluate("p@1", truth=TRUTH, bounds=True, judged_only=True)
    with pytest.raises(ValueError, match="no bounds are proven with undefined=1"):
        A.rank.evaluate("p@1", truth=TRUTH, bounds=True, undefined=1)
    for label in ("ap", "ndcg@10", "bpref", "gmap", "r_precision", "ap(divide_by=hits)"):
        message = "no bounds are proven for it; scenarios=True reports"
        with pytest.raises(ValueError, match=message) as error:
            A.rank.evaluate("p@1", label, truth=TRUTH, bounds=True)
        assert str(error.value).startswith(f"metric {label!r}: ")
    with pytest.raises(ValueError, match="since an unjudged item may have any subtopics"):
        A.rank.evaluate("alpha_ndcg", truth=TRUTH.with_columns(subtopic=1), scenarios=True)
    text = pl.col("genre").filter("relevant").first().alias("genre_first")
    with pytest.raises(ValueError, match="genre_first"):
        A.rank.per_user(text, truth=TRUTH, bounds=True)


def test_the_means_are_over_the_same_users():
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": list("abcd"), "rank": [1, 2, 1, 2]})
    truth = pl.DataFrame({"user": [1, 1, 2], "item": list("abc"), "relevance": [1, 1, 0]})
    got = run.rank.evaluate("precision@2", truth=truth, users="judged", bounds=True)
    assert got.row(0) == (2, 1.0, 1.0, 1.0)  # of user 2 nothing is known, and nothing counts
    filled = run.rank.evaluate("p@2", truth=truth, users="judged", bounds=True, undefined=0.0)
    assert filled.row(0) == (2, 0.5, 0.5, 0.75)


def test_metrics_of_judged_items_take_the_verdict():
    run = pl.DataFrame({"user": [1, 1], "item": ["u", "a"], "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1], "item": ["a"], "relevance": [1]})
    counted = "num_nonrelevant(of=judged)"
    got = run.rank.per_user("bpref", counted, truth=truth, scenarios=True)
    assert got.row(0) == (1, 1.0, 0.0, 1.0, 0, 1, 0)
    got = run.rank.per_user(counted, "judged@1", truth=truth, bounds=True)
    assert got.row(0) == (1, 0, 0, 1, 0.0, 0.0, 1.0)
    got = run.rank.per_user("num_nonrelevant", "num_nonrelevant@1", truth=truth, bounds=True)
    assert got.row(0) == (1, 1, 0, 1, 1, 0, 1)


# ------------------------------------------------------------------ all judgments


def _tables():
    """Lists of five, of which up to three items are unjudged, one with a gap and one cut short."""
    judged = {
        1: ("abcde", {"a": 2, "d": 0, "x": 1}),
        2: ("abcde", {"b": 1, "c": -1, "x": 2, "y": 1, "e": 1}),
        3: ("abc", {"x": 1, "b": 0}),
        4: ("abcde", {"c": 0, "d": 0, "y": 0}),  # nothing relevant, but what is unjudged may be
        5: ("cab", {"a": 2, "b": 1, "x": -1}),
        6: ("abc", {}),
    }
    run = pl.DataFrame(
        [(user, item, 2 * rank if user == 2 and rank > 3 else rank)
         for user, (items, _) in judged.items() for rank, item in enumerate(items, 1)],
        schema=["user", "item", "rank"], orient="row",
    )  # fmt: skip
    truth = pl.DataFrame(
        [
            (user, item, grade)
            for user, (_, known) in judged.items()
            for item, grade in known.items()
        ],
        schema=["user", "item", "relevance"],
        orient="row",
    )
    return run, truth


def _worlds(run, truth):
    """Give the truth under all judgments of each user's unjudged items: open, 0, 1 or 2."""
    top, number = truth["relevance"].max(), itertools.count()
    open_items = run.join(truth.filter(pl.col("relevance") >= 0), on=["user", "item"], how="anti")
    frames = []
    for (user,), items in open_items.group_by("user", maintain_order=True):
        known = truth.filter(user=user)
        for grades in itertools.product([None, *range(top + 1)], repeat=items.height):
            given = items.select("user", "item").with_columns(
                relevance=pl.Series(grades, dtype=pl.Int64)
            )
            given = given.drop_nulls()
            kept = known.join(given, on=["user", "item"], how="anti")
            world = pl.concat([kept, given]).with_columns(world=pl.lit(next(number)))
            frames.append(world)
    return pl.concat(frames)


@pytest.mark.sample(2)
@pytest.mark.parametrize("options", [{}, {"undefined": 0.0}, {"relevant_at": 2}, {"depth": 3}])
def test_bounds_are_the_extremes_over_all_judgments(options):
    run, truth = _tables()
    assert len(BOUNDED) > 60
    got = run.rank.per_user(*BOUNDED, truth=truth, bounds=True, users="all", **options)
    # the list is cut first: what is below is not open
    worlds = _worlds(run.filter(pl.col("rank") <= options.get("depth", 9)), truth)
    lists = worlds.select("user", "world").unique().join(run, on="user")
    values = rf.per_user(lists, *BOUNDED, truth=worlds, by="world", users="all", **options)
    values = pl.concat([values.drop("world"), got.select("user", *BOUNDED)])  # as it is, too
    least = values.group_by("user").agg(pl.col([*BOUNDED]).min()).sort("user")
    greatest = values.group_by("user").agg(pl.col([*BOUNDED]).max()).sort("user")
    for label in BOUNDED:
        defined = got[label].is_not_null()
        for name, expected in (("low", least), ("high", greatest)):
            bound = got[f"{label}_{name}"]
            assert (bound.is_not_null() == defined).all(), label
            assert ((bound - expected[label]).filter(defined).abs() < 1e-12).all(), (label, name)


def test_whole_truths_bound_recall_by_its_closed_form():
    """Low h/(R + z), high (h + a)/(R + a): a and z unjudged items above and below k."""
    run, truth = _tables()
    got = run.rank.per_user("recall@3", truth=truth, bounds=True).rows()
    assert got[0] == (1, 1 / 2, 1 / 3, 3 / 4)  # h = 1, R = 2, a = 2 (b, c), z = 1 (e)


def test_the_map_of_the_report_is_refused_and_its_scenarios_are_not_bounds():
    run = pl.DataFrame({"user": [1] * 3, "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    with pytest.raises(ValueError, match="metric 'map': no bounds are proven for it"):
        run.rank.evaluate("map", truth=truth, bounds=True)
    got = run.rank.evaluate("map", truth=truth, scenarios=True)
    assert got.row(0) == (1, 1.0, 1.0, 1.0)
    either = pl.DataFrame({"user": [1, 1], "item": ["a", "c"]})
    assert run.rank.evaluate("map", truth=either)["map"].item() == pytest.approx(5 / 6)


def test_a_geometric_mean_takes_no_undefined_value_below_0():
    for metrics in (["gmap"], ["rr", "gmap"]):
        with pytest.raises(ValueError, match="undefined must be None or ≥ 0 for a geometric mean"):
            A.rank.evaluate(*metrics, truth=TRUTH, undefined=-1.0)
    assert A.rank.evaluate("rr", truth=TRUTH, users="all", undefined=-1.0)["rr"].item() < 1
