"""Exact expectations under ties: against every order, against references, and where they refuse."""

import itertools
import random
import re
from fractions import Fraction

import metric_pages
import polars as pl
import pytest
import reference
from every_metric import CALLS, EVERY_METRIC, FEW_WITH_FORM, NO_FORM, WITH_FORM
from polars.testing import assert_frame_equal

import rankframe as rf
from rankframe.metrics._building_blocks import _harmonic


def test_reference_says_which_metrics_have_a_form():
    page = "".join(metric_pages.pages().values())
    for name in {function for function, _ in CALLS.values()}:
        section = rf"\n## {name}\n.*?\*\*Equal scores as blocks:\*\* (.*?)\n"
        said = re.search(section, page, re.DOTALL)[1]
        assert said.startswith("the exact expectation") == (name not in NO_FORM), name
        assert said.endswith("else an error") == (name in ("auc", "mean_hit_rank")), name


def assert_same(left, right):
    """Under ties a count down to a cut-off is an expectation, no whole number."""
    counts = pl.selectors.starts_with("num_") & pl.selectors.integer()
    left, right = (frame.with_columns(counts.cast(pl.Float64)) for frame in (left, right))
    assert_frame_equal(left, right, check_exact=False, rel_tol=1e-12, abs_tol=1e-12)


def make_tables():
    """Users with blocks of ties, and one list for each order of the blocks."""
    rng = random.Random(0)
    tied, orders, truth = [], [], []
    for user in range(36):
        items = rng.sample(range(12), rng.randint(2, 7))
        blocks = []
        while items:
            size = min(rng.choice([1, 1, 2, 3, 4]), len(items))
            blocks.append([items.pop() for _ in range(size)])
        rank = 1
        for block in blocks:
            tied += [(user, item, rank, len(block)) for item in block]
            rank += len(block)
        every = itertools.product(*map(itertools.permutations, blocks))
        for number, order in enumerate(every):
            flat = itertools.chain.from_iterable(order)
            orders += [(f"{user}:{number}", item, place) for place, item in enumerate(flat, 1)]
        for item in rng.sample(range(12), rng.randint(3, 9)):
            truth.append((user, item, rng.choice([-1, 0, 0, 1, 1, 2, 3])))
        truth.append((user, 50, 1))
    return (
        pl.DataFrame(tied, schema=["user", "item", "rank", "tied"], orient="row"),
        pl.DataFrame(orders, schema=["user", "item", "rank"], orient="row"),
        pl.DataFrame(truth, schema=["user", "item", "relevance"], orient="row"),
    )


@pytest.mark.parametrize(
    "options", [{}, {"relevant_at": 2}, {"unjudged": "drop"}], ids=["plain", "l2", "judged"]
)
def test_expectation_is_the_mean_over_every_order(options):
    tied, orders, truth = make_tables()
    forms = WITH_FORM if reference.thorough and not options else FEW_WITH_FORM
    got = tied.rank.per_user(*forms, truth=truth, users="judged", **options)
    lists = orders.select(order="user").unique()
    lists = lists.with_columns(user=pl.col("order").str.split(":").list.first().cast(pl.Int64))
    each = lists.join(truth, on="user").drop("user").rename({"order": "user"})
    every = orders.rank.per_user(*forms, truth=each, users="judged", **options)
    owner = pl.col("user").str.split(":").list.first().cast(pl.Int64)
    # undefined is undefined in every order, so that no mean is one over fewer
    counts = every.group_by(owner).agg(pl.exclude("user").null_count() / pl.len())
    assert set(counts.drop("user").unpivot()["value"]) <= {0.0, 1.0}
    expected = every.group_by(owner).agg(pl.exclude("user").cast(pl.Float64).mean()).sort("user")
    assert_same(got.with_columns(pl.exclude("user").cast(pl.Float64)), expected)


#: the metrics that the docs name, binary and graded
RISING = [
    *("precision@2", "precision(divide_by=returned)@3", "recall@2", "f1@3", "hit@2", "rr", "rr@2"),
    *("ap", "ap@3", "ap(divide_by=attainable)@2", "ap(divide_by=returned)@3", "ap(divide_by=k)@3"),
    *("ndcg", "ndcg@2", "ndcg(gain=exponential)@3", "ndcg(gain=binary,discount=rank)@2"),
    *("ndcg(ideal=returned)@2", "ndcg(ideal=perfect)@3", "ndcg(ideal=same_length)@3", "dcg@2"),
    *("r_precision", "rbp", "ap(rel=2)", "rr(rel=2)"),
]


@pytest.mark.parametrize("options", [{}, {"relevant_at": 2}, {"unjudged": "drop"}], ids=str)
def test_no_order_gives_less_than_the_pessimistic_or_more_than_the_optimistic(options):
    tied, orders, truth = make_tables()
    lists = orders.select(order="user").unique()
    lists = lists.with_columns(user=pl.col("order").str.split(":").list.first().cast(pl.Int64))
    each = lists.join(truth, on="user").drop("user").rename({"order": "user"})
    every = orders.rank.per_user(*RISING, truth=each, users="judged", **options)
    owner = pl.col("user").str.split(":").list.first().cast(pl.Int64)
    bounds = {"pessimistic": pl.col(RISING).min(), "optimistic": pl.col(RISING).max()}
    scored = tied.select("user", "item", score=-pl.col("rank")).sample(fraction=1, shuffle=True)
    got = {
        ties: rf.with_rank(
            scored, ties=ties, truth=truth if ties in bounds else None
        ).rank.per_user(*RISING, truth=truth, users="judged", **options)
        for ties in (*bounds, "item", "expected")
    }
    for ties, bound in bounds.items():
        assert_same(got[ties], every.group_by(owner).agg(bound).sort("user"))
    low, high = (got[ties].drop("user").fill_null(0) for ties in bounds)
    if "unjudged" not in options:  # then few blocks are left
        assert all((low[label] < high[label]).any() for label in low.columns)
    for ties in ("item", "expected"):
        middle = got[ties].drop("user").fill_null(0)
        for label in low.columns:
            assert (middle[label] > low[label] - 1e-12).all(), label
            assert (middle[label] < high[label] + 1e-12).all(), label


def test_hits_as_divisor_may_give_more_when_a_hit_falls():
    run = pl.DataFrame({"user": [1] * 4, "item": [*"abcd"], "score": [4, 3, 2, 2]})
    truth = pl.DataFrame({"user": [1, 1], "item": ["a", "d"]})
    ranked = [rf.with_rank(run, ties=ties, truth=truth) for ties in ("pessimistic", "optimistic")]
    values = [rf.evaluate(r, "ap(divide_by=hits)@3", truth=truth).item(0, 1) for r in ranked]
    assert values == [1, pytest.approx((1 + 2 / 3) / 2)]


def test_real_data_equals_the_reference(shared):
    names = {"P": "precision", "F1": "f1", "success": "hit", "Rprec": "r_precision"}
    for folder in ("trec_sample", "web12_catb"):
        tables = {
            name: pl.read_parquet(shared / folder / f"{name}.parquet")
            for name in ("run", "qrels", "expected_reference")
        }
        expected = tables["expected_reference"].filter(
            pl.col("measure").str.starts_with("tie:"), pl.col("user") != "all"
        )
        labels = {}
        for measure in expected["measure"].unique():
            name, _, k = measure.removeprefix("tie:").replace("(exp)", "").partition("@")
            gain = "(gain=exponential)" if "(exp)" in measure else ""
            labels[measure] = names.get(name, name.lower()) + gain + (f"@{k}" if k else "")
        assert len(labels) > 50
        tied = tables["run"].rank.with_rank(ties="expected")
        got = tied.rank.per_user(*labels.values(), truth=tables["qrels"], users="both")
        got = got.unpivot(index="user", variable_name="label", value_name="got")
        both = expected.with_columns(label=pl.col("measure").replace_strict(labels)).join(
            got, on=["user", "label"], how="left"
        )
        assert both["got"].null_count() == 0
        assert (both["got"] - both["value"]).abs().max() < 1e-12


TIED = pl.DataFrame(
    {"user": [1, 1, 1, 1], "item": [1, 2, 3, 4], "rank": [1, 1, 1, 4], "tied": [3, 3, 3, 1]}
)
TRUTH = pl.DataFrame({"user": [1, 1], "item": [2, 9], "relevance": [1, 1]})


def test_metric_without_a_form_refuses():
    for label in EVERY_METRIC.keys() - {*WITH_FORM}:
        with pytest.raises(ValueError, match="has no exact expectation under ties"):
            TIED.rank.per_user(EVERY_METRIC[label], truth=TRUTH)


def test_geometric_means_refuse_and_counts_do_not(refused):
    for label in ("gmap", "gm_map", "gm_bpref"):
        refused(TIED.rank.evaluate, label, truth=TRUTH)
    assert TIED.rank.evaluate("num_users", "num_ret", "num_rel_ret", truth=TRUTH).row(0) == (
        1, 1, 4, 1,
    )  # fmt: skip


def test_expectations_worked_by_hand():
    # the relevant item is at 1, 2 or 3, each with chance 1/3
    got = TIED.rank.per_user("p@1", "p@2", "rr", "ap", "hit@2", "ndcg@1", "recall@3", truth=TRUTH)
    third = Fraction(1, 3)
    rr = third * (1 + Fraction(1, 2) + third)
    assert got.row(0)[1:] == pytest.approx((1 / 3, 1 / 3, rr, rr / 2, 2 / 3, 1 / 3, 1 / 2))


def test_renamed_and_own_expressions():
    own = (pl.col("relevant") / pl.col("tied")).sum().alias("mine")
    steady = pl.col("relevance").max().alias("top")
    got = TIED.rank.per_user(
        rf.metrics.precision_at(1).alias("x").alias("y"), own, steady, truth=TRUTH
    )
    assert got.row(0) == (1, pytest.approx(1 / 3), pytest.approx(1 / 3), 1)
    for bad in (rf.metrics.precision_at(1) * 2, pl.col("rank").min(), pl.col("hits").max()):
        with pytest.raises(ValueError, match="'(rank|hits)', which an item in a block of ties"):
            TIED.rank.per_user(bad.alias("own"), truth=TRUTH)
    with pytest.raises(rf.RankingDataError, match="no single rank to compose metrics on"):
        rf.metrics.rows(TIED.rank.judge(TRUTH))
    for lists in (TIED, TIED.lazy()):
        with pytest.raises(rf.RankingDataError, match="run, column 'tied': .* no single rank to"):
            rf.metrics.rows(lists)
        with pytest.raises(rf.RankingDataError, match="run, column 'tied': .* no single rank to"):
            rf.metrics.rows(lists, "precision@1", truth=TRUTH)


def test_cut_through_a_block_refuses(refused):
    refused(TIED.rank.per_user, "ap", truth=TRUTH, depth=2)
    lazy = TIED.lazy().rank.evaluate("ap", truth=TRUTH, depth=2)
    refused(lazy.collect)
    cut = TIED.rank.per_user("ap", truth=TRUTH, depth=3)
    assert_same(cut, TIED.filter(rank=1).rank.per_user("ap", truth=TRUTH))


@pytest.mark.parametrize(
    "columns",
    [
        {"tied": [2, 2, 2, 1]},
        {"tied": [3, 3, 4, 1]},
        {"tied": [4, 4, 4, 1]},
        {"tied": [3, 3, 3, None]},
        {"tied": [3, 3, 3, 0]},
        {"tied": [3, 3, 3, 1.5]},
        {"tied": ["3", "3", "3", "1"]},
    ],
)
def test_blocks_that_do_not_fit_are_reported(columns, refused):
    run = TIED.with_columns(
        **{name: pl.Series(values, strict=False) for name, values in columns.items()}
    )
    for call in (
        lambda: run.rank.per_user("ap", truth=TRUTH),
        lambda: run.lazy().rank.evaluate("ap", truth=TRUTH).collect(),
        lambda: run.rank.judge(TRUTH),
        lambda: run.rank.check(truth=TRUTH),
    ):
        refused(call)


def test_with_rank_makes_blocks():
    run = pl.DataFrame(
        {"user": [1, 1, 1, 1, 2], "item": list("abcde"), "score": [0.5, 0.9, 0.5, None, 1.0]}
    )
    ranked = run.rank.with_rank(ties="expected")
    assert ranked.columns == ["user", "item", "score", "rank", "tied"]
    assert ranked["rank"].to_list() == [2, 1, 2, None, 1]
    assert ranked["tied"].to_list() == [2, 1, 2, None, 1]
    assert_frame_equal(run.lazy().rank.with_rank(ties="expected").collect(), ranked)
    low = run.rank.with_rank(ties="expected", descending=False)
    assert low["rank"].to_list() == [1, 3, 1, None, 1]
    # the blocks go when another rule makes the ranks
    assert "tied" not in ranked.rank.with_rank().columns


def test_pandas_lazy_and_groups_agree():
    import rankframe.pandas  # noqa: F401

    rng = random.Random(5)
    run = pl.DataFrame(
        [(m, u, i, rng.randint(1, 4)) for m in "ab" for u in range(9) for i in range(8)],
        schema=["model", "user", "item", "score"],
        orient="row",
    )
    truth = pl.DataFrame(
        [(u, i, rng.choice([0, 1, 2])) for u in range(9) for i in range(0, 10, 2)],
        schema=["user", "item", "relevance"],
        orient="row",
    )
    labels = FEW_WITH_FORM[::4]
    tied = run.rank.with_rank(ties="expected", by="model")
    expected = tied.rank.evaluate(*labels, truth=truth, by="model")
    for model in "ab":
        alone = tied.filter(model=model).drop("model").rank.evaluate(*labels, truth=truth)
        assert_same(alone, expected.filter(model=model).drop("model"))
    judged = tied.rank.judge(truth, by="model")
    assert_same(judged.rank.evaluate(*labels, by="model"), expected)
    lazy = run.lazy().rank.with_rank(ties="expected", by="model")
    assert_same(lazy.rank.evaluate(*labels, truth=truth, by="model").collect(), expected)
    pandas = run.to_pandas().ranking.with_rank(ties="expected", by="model")
    got = pandas.ranking.evaluate(*labels, truth=truth.to_pandas(), by="model")
    assert_frame_equal(
        pl.from_pandas(got), expected, check_dtypes=False, rel_tol=1e-12, abs_tol=1e-12
    )


@pytest.mark.parametrize(("start", "length"), [(1, 1), (1, 5), (3, 1), (1, 1000), (10**6, 7)])
def test_harmonic_sums_keep_their_digits(start, length):
    exact = sum(Fraction(1, i) for i in range(start, start + length))
    row = pl.select(start=pl.lit(start), length=pl.lit(length))
    got = row.select(_harmonic(pl.col("start"), pl.col("length"))).item()
    assert got == pytest.approx(float(exact), rel=1e-14)


def test_bpref_where_a_block_has_more_misses_than_count():
    """R is 2, one judged miss is above the block, and three are in it."""
    truth = pl.DataFrame({"user": 1, "item": [0, 1, 2, 3, 4, 9], "relevance": [0, 1, 0, 0, 0, 1]})
    tied = pl.DataFrame(
        {"user": 1, "item": range(5), "rank": [1, 2, 2, 2, 2], "tied": [1, 4, 4, 4, 4]}
    )
    found = []
    for order in itertools.permutations(range(1, 5)):
        run = pl.DataFrame({"user": 1, "item": [0, *order], "rank": range(1, 6)})
        found.append(run.rank.per_user("bpref", truth=truth)["bpref"].item())
    expected = sum(found) / len(found)
    assert tied.rank.per_user("bpref", truth=truth)["bpref"].item() == pytest.approx(expected)


def test_cut_between_blocks_is_one():
    run = pl.DataFrame(
        {"user": 1, "item": range(5), "rank": [1, 2, 2, 4, 4], "tied": [1, 2, 2, 2, 2]}
    )
    for depth in (1, 3, 5, 6):
        kept = run.filter(pl.col("rank") <= depth)
        truth = pl.DataFrame({"user": 1, "item": [0, 2, 4]})
        cut = run.rank.per_user("ap", truth=truth, depth=depth)
        assert_same(cut, kept.rank.per_user("ap", truth=truth))
    for depth in (2, 4):
        with pytest.raises(rf.RankingDataError, match=f"depth={depth} cuts through a block"):
            run.rank.per_user("ap", truth=truth, depth=depth)


def test_ndcg_of_ties_is_at_most_1():
    """All items of a list are tied or in ideal order, so that sums in two orders round apart."""
    users = pl.DataFrame({"user": range(500)}).join(pl.DataFrame({"item": range(9)}), how="cross")
    grades = 1 + (pl.col("user") * 7 + pl.col("item") * pl.col("item")) % 5
    run = users.with_columns(score=grades.cast(pl.Float64)).rank.with_rank(ties="expected")
    truth = users.with_columns(relevance=grades)
    values = run.rank.per_user("ndcg", "ndcg(gain=exponential)", truth=truth)
    assert values["ndcg"].max() == 1
    assert values["ndcg(gain=exponential)"].max() == 1
    assert values["ndcg"].min() > 1 - 1e-12
