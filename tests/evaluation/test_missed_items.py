"""The warning that a mean leaves out missed items: the trap, its cures, and all that is silent."""

import polars as pl
import pytest
from every_metric import OF_TIER
from extension import unchanged_registry

import rankframe as rf
from rankframe._evaluation import missed_items
from rankframe._request import registry

RUN = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "c"], "rank": [1, 2, 1], "price": 5.0})
TRUTH = pl.DataFrame({"user": [1, 1, 2], "item": ["b", "d", "c"], "relevance": [1, 2, 1]})
rank, relevant, listed = pl.col("rank"), pl.col("relevant"), pl.col("listed")
TRAPS = {
    "recall": ((rank <= 2).mean(), "mean", "rank", 2),
    "all": (((rank <= 2) & relevant).all(), "all", "rank", 2),
    "judged": (((rank <= 2) & pl.col("judged")).mean(), "mean", "rank", 2),
    "all, Kleene": ((rank <= 2).all(ignore_nulls=False), "all", "rank", 2),
    "as a number": ((rank <= 2).cast(pl.Float64).mean(), "mean", "rank", 2),
    "not": ((~(rank > 2)).mean(), "mean", "rank", 2),
    "between": (rank.is_between(1, 2).mean(), "mean", "rank", 2),
    "arithmetic": (((rank - 1) / 2 < 1).mean(), "mean", "rank", 10),
    "inside": (1 - (rank > 2).mean(), "mean", "rank", 2),
    "rounded": ((rank <= 2).mean().round(3), "mean", "rank", 2),
    "hits": ((pl.col("hits") >= 1).mean(), "mean", "hits", 10),
    "gains": ((pl.col("gains(exponential)") > 1).all(), "all", "gains(exponential)", 10),
    "of the run": (((pl.col("price") < 9) & relevant).mean(), "mean", "price", 10),
    "one of": (rank.is_in([1, 2]).mean(), "mean", "rank", 10),
    "median": ((rank <= 2).median(), "median", "rank", 2),
    "below": ((rank < 4).mean(), "mean", "rank", 3),
    "flipped": ((pl.lit(3) >= rank).mean(), "mean", "rank", 3),
}
SILENT = [
    pl.col("within(2)").mean(),
    pl.col("within(2)").all(),
    (rank <= 2).fill_null(value=False).mean(),
    (rank.fill_null(99) <= 2).all(),
    (rank <= 2).filter(rank.is_not_null()).mean(),
    (rank <= 2).filter(relevant).all(),
    rank.is_not_null().mean(),
    rank.is_null().mean(),
    (rank <= 2).sum() / pl.len(),
    (rank <= 2).any(),
    (rank <= 2).cast(pl.Float64).sum(),
    rank.mean(),
    rank.filter(rank <= 2).mean(),
    (1 / rank).mean(),
    pl.when(rank <= 2).then(1).otherwise(0).mean(),
    ((rank <= 2) & listed).mean(),
    (listed & (rank <= 2)).all(),
    (pl.col("price") < 9).filter(listed & (rank <= 2)).mean(),
    (pl.col("relevance") > 1).mean(),
    (rank.min() <= 2).cast(pl.Float64),
    rank.eq_missing(1).mean(),
    rank.is_in([1, 2], nulls_equal=True).mean(),
    (rank <= 2).fill_null(value=False).median(),
    rank.median(),
    rank.filter(rank.is_in([1, 2])).mean(),
    (pl.coalesce(rank, 99) <= 2).mean(),
    (pl.col("survival") < 0.5).mean(),
    (rank.max() < pl.col("ideal_rank")).mean(),
]


@pytest.mark.parametrize(("trap", "function", "column", "k"), TRAPS.values(), ids=TRAPS)
def test_trap_warns_with_its_cures(trap, function, column, k):
    with pytest.warns(rf.errors.RankingWarning) as caught:
        rf.evaluate(RUN, "rr", trap.alias("share"), truth=TRUTH, undefined=0)
    (warning,) = caught
    assert str(warning.message) == (
        f"metric 'share': {function}() over a comparison of {column!r} leaves out the items that "
        f"were not retrieved, where it is null: read pl.col('within({k})'), which is never null, "
        f"or add .fill_null(False) before .{function}(); if only retrieved items are meant, say so "
        "with .filter(pl.col('rank').is_not_null())"
    )
    assert warning.filename == __file__


def test_trap_is_not_recall_and_the_cures_are():
    trap = (rank <= 2).mean()
    cures = pl.col("within(2)").mean(), (rank <= 2).fill_null(value=False).mean()
    with pytest.warns(rf.errors.RankingWarning):
        wrong = RUN.rank.evaluate(trap.alias("x"), truth=TRUTH)["x"].item()
    assert wrong == 1.0
    recall = RUN.rank.evaluate("recall@2", truth=TRUTH)["recall@2"].item()
    assert [RUN.rank.evaluate(cure.alias("x"), truth=TRUTH)["x"].item() for cure in cures] == [
        recall,
        recall,
    ]
    assert recall == 0.75


@pytest.mark.parametrize(
    "call",
    [
        lambda trap: rf.summarize(RUN, trap, truth=TRUTH),
        lambda trap: RUN.rank.per_user(trap, truth=TRUTH),
        lambda trap: rf.evaluate(RUN.lazy(), trap, truth=TRUTH),
        lambda trap: rf.evaluate(RUN.rank.judge(TRUTH), trap),
        lambda trap: rf.compare({"a": RUN, "b": RUN}, trap, truth=TRUTH),
    ],
)
def test_verbs_warn_of_missed_items(call):
    with pytest.warns(rf.errors.RankingWarning):
        call((rank <= 2).mean().alias("x"))


def test_registered_metric_warns_under_its_label():
    def top_share(k: int) -> pl.Expr:
        """Share at the top: a trap."""
        return (rank <= k).mean()

    with unchanged_registry():
        rf.register_metric("top_share")(top_share)
        with pytest.warns(rf.errors.RankingWarning, match="metric 'top_share@2'"):
            RUN.rank.evaluate("top_share@2", truth=TRUTH)


@pytest.mark.parametrize("silent", SILENT, ids=str)
def test_expressions_that_read_no_missed_item_are_silent(silent):
    rf.evaluate(RUN, silent.alias("x"), truth=TRUTH)  # a warning is an error here
    assert len(SILENT) >= 20


def test_metrics_of_the_library_are_silent():
    for label, metric in OF_TIER.items():
        assert missed_items.leaving_out(metric, missed_items.NULL) is None, label


def test_columns_are_those_that_missed_items_lack():
    run = pl.DataFrame({"user": [1, 1, 1, 2], "item": [1, 2, 3, 9], "rank": [1, 2, 3, 1]})
    truth = pl.DataFrame(
        {
            "user": [1] * 5 + [2] * 2,
            "item": [2, 3, 4, 5, 1, 9, 8],
            "relevance": [1, 2, 1, 3, 0, 2, 1],
        }
    ).with_columns(subtopic=pl.col("item") % 2)
    null = set()
    for name, column in registry.COLUMNS.items():
        other = column.source or column.scope in ("listed", "shares") or column.in_ties == "blocks"
        if other or column.registered:
            continue
        options = {"subtopic": "subtopic"} if column.scope == "subtopic" else {}
        table = truth if options else truth.drop("subtopic")
        read = pl.col(f"{name}(exponential)" if column.in_parentheses else name)
        missed = read.is_null() & rank.is_null()
        kept = read.is_null() & rank.is_not_null()
        counts = run.rank.judge(table, **options).rank.evaluate(
            missed.sum().alias("missed"),
            kept.sum().alias("kept"),
            rank.is_null().sum().alias("all"),
        )
        if counts["missed"].item() == counts["all"].item() and not counts["kept"].item():
            null.add(name)
    assert null == missed_items.NULL
