"""``unjudged="bounds"``: what the unjudged items of the lists leave open."""

import itertools

import polars as pl
import pytest
import reference
from every_metric import EVERY_METRIC
from two_models import RUN, TRUTH, A, assert_equal

import rankframe as rf
from rankframe._request.labels import extremes_of, parse_metric


@pytest.fixture(scope="module")
def bounded():
    return {label: expr for label, expr in EVERY_METRIC.items() if extremes_of(parse_metric(expr))}


def test_bounds_worked_by_hand():
    run = pl.DataFrame({"user": [1] * 4, "item": [1, 2, 3, 4], "rank": [1, 2, 3, 4]})
    truth = pl.DataFrame({"user": [1] * 4, "item": [2, 3, 4, 5], "relevance": [3, 0, -1, 1]})
    got = run.rank.evaluate(
        "p@2", "recall@4", "dcg@2", "err(max_grade=3)@1", truth=truth, unjudged="bounds"
    )
    assert got.columns[:4] == ["users", "p@2", "p@2_low", "p@2_high"]
    # item 1 is unjudged, item 4 is of negative grade: both may be relevant, item 3 is not
    assert got.row(0)[1:4] == (0.5, 0.5, 1.0)
    assert got.row(0)[4:7] == (0.5, 0.5, 3 / 4)
    assert got["dcg@2_high"].item() - got["dcg@2_low"].item() == pytest.approx(3)
    assert got["err(max_grade=3)@1_high"].item() == 7 / 8


@pytest.mark.parametrize("p", [0.5, 0.9])
def test_gap_of_rbp_is_its_residual_within_the_list(p):
    label, residual = f"rbp(p={p})", f"rbp_residual(p={p})"
    got = A.rank.per_user(label, truth=TRUTH, unjudged="bounds")
    got = got.join(A.rank.per_user(residual, truth=TRUTH), on="user")
    lengths = A.group_by("user").agg(n=pl.len().cast(pl.Int64))
    gap = got.join(lengths, on="user", how="left").select(
        gap=pl.col(f"{label}_high") - pl.col(f"{label}_low"),
        # the residual also has what lies below the end of the list
        left=pl.col(residual) - pl.lit(p).pow(pl.col("n").fill_null(0)),
    )
    assert (gap["gap"] - gap["left"]).abs().max() < 1e-12
    assert gap["gap"].max() > 0.1


def test_bounds_are_the_same_by_every_way_in(bounded):
    labels = [*bounded][::15]
    options = {"by": "model", "unjudged": "bounds"}
    expected = RUN.rank.evaluate(*labels, truth=TRUTH, **options)
    lazy = RUN.lazy().rank.evaluate(*labels, truth=TRUTH.lazy(), **options)
    assert_equal(lazy.collect(), expected)
    judged = RUN.rank.judge(TRUTH, by="model")
    assert_equal(judged.rank.evaluate(*labels, **options), expected)
    exprs = RUN.rank.evaluate(*map(bounded.get, labels), truth=TRUTH, **options)
    assert_equal(exprs, expected.select(exprs.columns))


def test_complete_truth_leaves_nothing_open(bounded):
    items = A.select("user", "item").join(TRUTH, on=["user", "item"], how="anti")
    complete = pl.concat(
        [TRUTH.drop("genre"), items.with_columns(relevance=pl.lit(0, pl.Int64))]
    ).with_columns(pl.col("relevance").clip(0))
    got = A.rank.per_user(*bounded, truth=complete, unjudged="bounds")
    for label in bounded:
        one, other = got[f"{label}_low"], got[f"{label}_high"]
        assert one.null_count() == other.null_count()
        assert ((one - other).drop_nulls().abs() < 1e-12).all(), label


def test_bounds_with_ties():
    tied = A.with_columns(score=pl.col("minutes").round()).rank.with_rank(ties="expected")
    got = tied.rank.per_user("p@3", truth=TRUTH, unjudged="bounds")
    assert_equal(got.select("user", "p@3"), tied.rank.per_user("p@3", truth=TRUTH))
    unjudged = A.join(TRUTH.filter(pl.col("relevance") >= 0), on=["user", "item"], how="anti")
    kept = TRUTH.join(unjudged, on=["user", "item"], how="anti").select("user", "item", "relevance")
    for end, grade in (("low", 0), ("high", TRUTH["relevance"].max())):
        filled = unjudged.select("user", "item", relevance=pl.lit(grade, pl.Int64))
        want = tied.rank.per_user("p@3", truth=pl.concat([kept, filled]), users="all")
        both = got.filter(pl.col("p@3").is_not_null()).join(want, on="user", suffix="_want")
        assert (both[f"p@3_{end}"] - both["p@3_want"].fill_null(0)).abs().max() < 1e-12
    with pytest.raises(ValueError, match=r"'recall@3': it has no proven bounds under ties"):
        tied.rank.per_user("recall@3", truth=TRUTH, unjudged="bounds")


def test_bounds_report_bad_calls():
    with pytest.raises(ValueError, match="unjudged must be one of 'miss', 'drop', 'bounds', not 1"):
        A.rank.evaluate("ap", truth=TRUTH, unjudged=1)
    for verb in (rf.summarize, rf.compare, rf.table, rf.plot.at_k):
        with pytest.raises(
            ValueError, match="unjudged='bounds': only per_user and evaluate accept it;"
        ):
            verb(RUN, "precision", truth=TRUTH, unjudged="bounds")
    with pytest.raises(ValueError, match="two output columns are called 'p@1_low'"):
        A.rank.evaluate(
            "p@1", rf.metrics.of_label("rr").alias("p@1_low"), truth=TRUTH, unjudged="bounds"
        )
    with pytest.raises(ValueError, match="no bounds are proven with undefined=1"):
        A.rank.evaluate("p@1", truth=TRUTH, unjudged="bounds", undefined=1)
    for label in ("ap", "ndcg@10", "bpref", "gmap", "r_precision", "ap(divide_by=hits)"):
        message = "it has no proven bounds: add its unjudged items to the truth, once as"
        with pytest.raises(ValueError, match=message) as error:
            A.rank.evaluate("p@1", label, truth=TRUTH, unjudged="bounds")
        assert str(error.value).startswith(f"metric {label!r}: ")
    with pytest.raises(ValueError, match="since an unjudged item may have any subtopics"):
        A.rank.evaluate("alpha_ndcg", truth=TRUTH.with_columns(subtopic=1), unjudged="bounds")
    text = pl.col("genre").filter("relevant").first().alias("genre_first")
    with pytest.raises(ValueError, match="genre_first"):
        A.rank.per_user(text, truth=TRUTH, unjudged="bounds")


def test_means_are_over_the_same_users():
    run = pl.DataFrame({"user": [1, 1, 2, 2], "item": list("abcd"), "rank": [1, 2, 1, 2]})
    truth = pl.DataFrame({"user": [1, 1, 2], "item": list("abc"), "relevance": [1, 1, 0]})
    got = run.rank.evaluate("precision@2", truth=truth, users="judged", unjudged="bounds")
    assert got.row(0) == (2, 1.0, 1.0, 1.0)  # of user 2 nothing is known, and nothing counts
    filled = run.rank.evaluate("p@2", truth=truth, users="judged", unjudged="bounds", undefined=0.0)
    assert filled.row(0) == (2, 0.5, 0.5, 0.75)


def test_metrics_of_judged_items_take_the_verdict():
    run = pl.DataFrame({"user": [1, 1], "item": ["u", "a"], "rank": [1, 2]})
    truth = pl.DataFrame({"user": [1], "item": ["a"], "relevance": [1]})
    counted = "num_nonrelevant(of=judged)"
    got = run.rank.per_user(counted, "judged@1", truth=truth, unjudged="bounds")
    assert got.row(0) == (1, 0, 0, 1, 0.0, 0.0, 1.0)
    got = run.rank.per_user("num_nonrelevant", "num_nonrelevant@1", truth=truth, unjudged="bounds")
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
def test_bounds_are_the_extremes_over_all_judgments(bounded, options):
    run, truth = _tables()
    assert len(bounded) > 60
    if options and not reference.thorough:
        bounded = {label: bounded[label] for label in [*bounded][::5]}
    got = run.rank.per_user(*bounded, truth=truth, unjudged="bounds", users="all", **options)
    # the list is cut first: what is below is not open
    worlds = _worlds(run.filter(pl.col("rank") <= options.get("depth", 9)), truth)
    lists = worlds.select("user", "world").unique().join(run, on="user")
    values = rf.per_user(lists, *bounded, truth=worlds, by="world", users="all", **options)
    values = pl.concat([values.drop("world"), got.select("user", *bounded)])  # as it is, too
    least = values.group_by("user").agg(pl.col([*bounded]).min()).sort("user")
    greatest = values.group_by("user").agg(pl.col([*bounded]).max()).sort("user")
    for label in bounded:
        defined = got[label].is_not_null()
        for name, expected in (("low", least), ("high", greatest)):
            bound = got[f"{label}_{name}"]
            assert (bound.is_not_null() == defined).all(), label
            assert ((bound - expected[label]).filter(defined).abs() < 1e-12).all(), (label, name)


def test_whole_truths_bound_recall_by_its_closed_form():
    """Low h/(R + z), high (h + a)/(R + a): a and z unjudged items above and below k."""
    run, truth = _tables()
    got = run.rank.per_user("recall@3", truth=truth, unjudged="bounds").rows()
    assert got[0] == (1, 1 / 2, 1 / 3, 3 / 4)  # h = 1, R = 2, a = 2 (b, c), z = 1 (e)


def test_map_of_the_report_is_refused(refused):
    run = pl.DataFrame({"user": [1] * 3, "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    truth = pl.DataFrame({"user": [1], "item": ["a"]})
    refused(run.rank.evaluate, "map", truth=truth, unjudged="bounds")


def test_geometric_mean_takes_no_undefined_value_below_0():
    for metrics in (["gmap"], ["rr", "gmap"]):
        with pytest.raises(ValueError, match="undefined must be None or ≥ 0 for a geometric mean"):
            A.rank.evaluate(*metrics, truth=TRUTH, undefined=-1.0)
    assert A.rank.evaluate("rr", truth=TRUTH, users="all", undefined=-1.0)["rr"].item() < 1
