"""The vocabulary: every column that metrics are written on, each a record in one place.

A metric reduces the rows of one user, and its scope says which: ``registry.Scope`` has the list.
``rows_of_scope`` gives the rows, with the columns that are read and no others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil, log
from typing import Annotated, Any

import polars as pl

from rankframe._request import gain_functions, registry
from rankframe._request.parameters import Discount, Fraction, Gain, Interval
from rankframe._request.registry import OWN_RANK, Names, SumOfTruth
from rankframe._vocabulary import steps, terms
from rankframe._vocabulary.scope_rows import Rows

registry.given_column(
    "rank",
    "1-based position in the list; null = not retrieved",
    down_to_rank=True,
    beside_subtopics=True,
    derived_on="lists",
)
registry.given_column(
    "relevance",
    "The grade",
    in_ties="both",
    down_to_rank=True,
    beside_subtopics=True,
    derived_on="all rows",
)


@registry.column(beside_subtopics=True, derived_on="all rows", down_to_rank=True, in_ties="both")
def relevant(rows: Rows) -> pl.Expr:
    """The grade reaches relevant_at (by default: is > 0)."""
    line = rows.joined.tables.settings.relevant_at
    reached = terms.is_graded if line is None else terms.relevance >= line
    return reached.fill_null(value=False) if rows.scope == "listed" else reached


@registry.column(reads=("relevant", "ideal_place"), down_to_rank=True)
def hits(rows: Rows) -> pl.Expr:
    """Relevant items at or above this rank; null without a rank."""
    if rows.joined.tables.settings.relevant_at is None and rows.scope != "judged":
        # if all rows are relevant, their number is the running count, at half the cost
        return pl.when(terms.is_listed).then("ideal_place")
    return terms.running(terms.relevant.cast(pl.Int64), rows.keys)


@registry.column(down_to_rank=True, in_ties="both")
def ideal_rank(rows: Rows) -> pl.Expr:
    """Position in the ideal list, highest grade first; null where the grade is ≤ 0."""
    position = terms.count(terms.relevance.rank("ordinal", descending=True).over(rows.keys))
    return pl.when(terms.is_graded).then(position)


@registry.column(in_ties="both")
def returned_ideal_rank(rows: Rows) -> pl.Expr:
    """Position among the items of grade > 0 of the list, highest grade first."""
    returned = pl.when(terms.is_graded & terms.is_listed).then(terms.relevance)
    return terms.count(returned.rank("ordinal", descending=True).over(rows.keys))


def _place_by_grade(keys: Sequence[str]) -> pl.Expr:
    # sums read place and grade as a pair: the row that has the grade may hold it
    return terms.relevance.rank("ordinal", descending=True).over(keys)


def _grade_or_0(_keys: Sequence[str]) -> pl.Expr:
    return terms.relevance.clip(lower_bound=0)


_given_by_rank = partial(registry.given_column, in_ties="both", down_to_rank=True)
_given_by_rank(
    "ideal_place",
    "Number of the row among the user's rows in rank order, as a position in the ideal list",
    form=_place_by_grade,
)
_given_by_rank(
    "ideal_relevance",
    "The grade at that position of the ideal list; 0 past its end",
    form=_grade_or_0,
)


# Discounts and gains are made once for all metrics and cut-offs of a call; inside a sum, they would
# be made once per metric.


@registry.column(beside_subtopics=True, derived_on="lists", down_to_rank=True)
def rank_discount(_rows: Rows) -> pl.Expr:
    """1 / log2(rank + 1); null without a rank."""
    return gain_functions.discount(terms.rank)


@registry.column(reads=("ideal_place",), down_to_rank=True, in_ties="both")
def place_discount(_rows: Rows) -> pl.Expr:
    """1 / log2(ideal_place + 1)."""
    return gain_functions.discount(pl.col("ideal_place"))


_OF_A_GRADE: Mapping[str, Any] = {
    "parameters": {"gain": (Gain,)},
    "in_parentheses": True,
    "down_to_rank": True,
    "in_ties": "both",
}


@registry.column(beside_subtopics=True, derived_on="all rows", **_OF_A_GRADE)
def gain(_rows: Rows, gain: Gain) -> pl.Expr:
    """The gain of the grade: gain(exponential)."""
    return gain_functions.gain_of(gain)


@registry.column(reads=("ideal_relevance",), **_OF_A_GRADE)
def ideal_gain(_rows: Rows, gain: Gain) -> pl.Expr:
    """The gain of ideal_relevance: ideal_gain(exponential)."""
    return gain_functions.gain_of(gain, pl.col("ideal_relevance"))


@registry.column(reads=("relevant",), derived_on="all rows", down_to_rank=True, in_ties="both")
def total(rows: Rows) -> pl.Expr:
    """R, the number of relevant items of the user."""
    return terms.count(terms.relevant.sum().over(rows.keys))


@registry.column(derived_on="all rows", down_to_rank=True, in_ties="both")
def graded(rows: Rows) -> pl.Expr:
    """Number of items of grade > 0 of the user."""
    return terms.count(terms.is_graded.sum().over(rows.keys))


CUT: Mapping[str, tuple[Any, ...]] = {"k": (int | None, None)}
_GAIN: Mapping[str, tuple[Any, ...]] = {"gain": (Gain, "linear")}
_TOP: Mapping[str, tuple[Any, ...]] = {"max_grade": (float | None, None)}


@registry.column(beside_subtopics=True, derived_on="lists", down_to_rank=True, parameters=CUT)
def within(_rows: Rows, k: int | None) -> pl.Expr:
    """Whether the item is among the first k, never null: within(10); without k, whether it is in
    the list.
    """
    return terms.rank.is_not_null() if k is None else (terms.rank <= k).fill_null(value=False)


def _length_of_list(_keys: Sequence[str], k: int | None) -> pl.Expr:
    return _length(k, tied=False)


@registry.joined_column(
    form=_length_of_list,
    parameters=CUT,
    derived_over="listed",
    beside_subtopics=True,
    derived_on="lists",
    in_ties="both",
)
def retrieved(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """n, the length of the user's list; 0 where there is none; its items at rank ≤ 10:
    retrieved(10).
    """
    tied = rows.joined.tables.tied
    lengths = [_length(k, tied=tied).alias(name) for name, (k,) in names.items()]
    ranked = rows.lists.filter(terms.is_listed).group_by(rows.keys).agg(lengths)
    frame = frame.join(ranked, on=rows.keys, how="left")
    return frame.with_columns(pl.col(list(names)).fill_null(0))


def _length(k: int | None, *, tied: bool) -> pl.Expr:
    """Number of items at rank ≤ k; a block of ties gives as many as it has places there."""
    if k is None:
        return terms.count(pl.len())
    if not tied:
        return terms.count((terms.rank <= k).sum())
    places = (k - terms.rank + 1).clip(0, pl.col("tied"))
    return terms.count((places / pl.col("tied")).sum().round())


@registry.column(scope="judged", derived_on="all rows", down_to_rank=True, in_ties="both")
def judged(_rows: Rows) -> pl.Expr:
    """The grade is ≥ 0; null where there is none; a metric that reads it reduces all rows of the
    truth.
    """
    return terms.is_judged


@registry.column(scope="listed", derived_on="lists", in_ties="both")
def listed(_rows: Rows) -> pl.Expr:
    """The item is in the list; a metric that reads it reduces the whole list."""
    return terms.is_listed


@registry.column(derived_over="judged", down_to_rank=True)
def judged_hits(rows: Rows) -> pl.Expr:
    """Judged items at or above this rank; null without a rank."""
    return terms.running(terms.is_judged.cast(pl.Int64), rows.keys)


@registry.column(derived_over="judged", down_to_rank=True)
def pooled_hits(rows: Rows) -> pl.Expr:
    """Judged items and items of negative grade at or above this rank."""
    return terms.running(terms.relevance.is_not_null().cast(pl.Int64), rows.keys)


@registry.column(
    derived_over="judged",
    reads=("relevant",),
    derived_on="all rows",
    down_to_rank=True,
    in_ties="both",
)
def nonrelevant(rows: Rows) -> pl.Expr:
    """Number of judged items of the user that are not relevant."""
    return terms.count((terms.is_judged & ~terms.relevant).sum().over(rows.keys))


@registry.column(scope="judged", in_ties="both")
def lower_graded(rows: Rows) -> pl.Expr:
    """Judged items of the list that have a lower grade than this one; null without a rank; a metric
    that reads it reduces all rows of the truth.
    """
    grades = pl.when(terms.is_listed & terms.is_judged).then(terms.relevance)
    return terms.count(grades.rank("min").over(rows.keys)) - 1


@registry.joined_column(scope="judged", in_ties="both")
def lower_graded_below(frame: pl.LazyFrame, rows: Rows, _names: Names) -> pl.LazyFrame:
    """Judged items of lower grade below this one; with ties, one in its block counts one half."""
    counted = steps.lower_below(
        rows.unjoined, rows.keys, rows.joined.item, tied=rows.joined.tables.tied
    )
    return frame.join(counted, on=[*rows.keys, rows.joined.item], how="left")


@registry.column(reads=("relevant",), parameters=_GAIN, down_to_rank=True)
def gains(rows: Rows, gain: Gain) -> pl.Expr:
    """Cumulated gain at this rank; null without a rank; of another gain: gains(exponential)."""
    return terms.running(gain_functions.gain_of(gain), rows.keys)


@registry.column(down_to_rank=True)
def discounted_gains(rows: Rows) -> pl.Expr:
    """Discounted cumulated gain at this rank; null without a rank."""
    gain = gain_functions.gain_of("linear")
    return terms.running(gain * gain_functions.discount(terms.rank), rows.keys)


def _gains_to_rank(_keys: Sequence[str], gain: Gain) -> SumOfTruth:
    return SumOfTruth(gain_functions.gain_of(gain), pl.col("ideal_rank") <= OWN_RANK)


def _discounted_to_rank(_keys: Sequence[str]) -> SumOfTruth:
    return SumOfTruth(terms.ideal_discounted(), pl.col("ideal_rank") <= OWN_RANK)


def _weights_from_rank(keys: Sequence[str]) -> SumOfTruth:
    below = terms.relevance.shift(-1).over(keys, order_by="ideal_rank", nulls_last=True)
    last = (terms.relevance != below).fill_null(value=True)
    down_to = terms.running(terms.ideal_discounted(), keys, "ideal_rank")
    return SumOfTruth(pl.when(last).then(1 / down_to), pl.col("ideal_rank") >= OWN_RANK)


_of_ideal_list = partial(
    registry.joined_column, reads=("relevant", "ideal_rank", "graded"), down_to_rank=True
)


@_of_ideal_list(
    "level_weight",
    "Σ 1/IDCG(p) over the ends p ≥ rank of the grades in the ideal list",
    form=_weights_from_rank,
)
@_of_ideal_list(
    "ideal_discounted_gains",
    "Discounted cumulated gain of the ideal list, down to this rank",
    form=_discounted_to_rank,
)
@_of_ideal_list(
    "ideal_gains",
    "The same of the ideal list, down to this rank: ideal_gains(exponential)",
    form=_gains_to_rank,
    parameters=_GAIN,
)
def _ideal_columns(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Look up the sums of the ideal list at each rank; past its end, the final ones."""
    depth = pl.when(terms.is_listed).then(pl.min_horizontal("rank", "graded"))
    joined = frame.with_columns(depth.alias("__rankframe_depth")).join(
        steps.ideal_list(rows.unjoined, rows.keys, names),
        left_on=[*rows.keys, "__rankframe_depth"],
        right_on=[*rows.keys, "ideal_rank"],
        how="left",
    )
    beyond = terms.rank > pl.col("graded")
    weight = pl.when(beyond).then(0.0).otherwise("level_weight").alias("level_weight")
    return joined.with_columns(weight).drop("__rankframe_depth")


@registry.column(derived_on="all rows", down_to_rank=True, in_ties="both")
def top_grade(rows: Rows) -> pl.Expr:
    """The highest grade of the whole truth."""
    return rows.joined.top_grade


def _first_of_the_best(keys: Sequence[str]) -> pl.Expr:
    best = terms.relevance.filter(terms.is_listed).max().over(keys)
    return terms.rank.filter(terms.relevance == best).min().over(keys)


@registry.joined_column(form=_first_of_the_best)
def best_rank(frame: pl.LazyFrame, rows: Rows, _names: Names) -> pl.LazyFrame:
    """The first rank of the highest grade in the user's list."""
    best = terms.relevance.filter(terms.is_listed).max().over(rows.keys).alias("__rankframe_best")
    first = terms.rank.filter(terms.relevance == pl.col("__rankframe_best")).min().over(rows.keys)
    return frame.with_columns(best).with_columns(best_rank=first).drop("__rankframe_best")


@registry.column(parameters=_TOP, down_to_rank=True)
def survival(rows: Rows, top: float | None) -> pl.Expr:
    """ERR's probability of reaching this rank; for a highest grade of 4: survival(4)."""
    return terms.product_above(1 - gain_functions.stop_chance(top), rows.keys, "rank")


@registry.column(reads=("ideal_rank",), parameters=_TOP, down_to_rank=True, in_ties="both")
def ideal_survival(rows: Rows, top: float | None) -> pl.Expr:
    """The same in the ideal list: ideal_survival(4)."""
    return terms.product_above(1 - gain_functions.stop_chance(top), rows.keys, "ideal_rank")


@registry.joined_column(reads=("relevant",), parameters=_GAIN, down_to_rank=True)
def shared(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Σ of the smaller gain of each pair of this item and one at or above: shared(exponential)."""
    down = terms.count(terms.rank.rank("max").over([*rows.keys, "relevance"]))
    return steps.with_shared(frame, rows, names, down)


@registry.joined_column(
    parameters={"goals": (Annotated[float, Interval(0.5)], 1.0), **_TOP}, down_to_rank=True
)
def eagerness(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """INST's Π (1 − gain / need) over the items above; of 2 goals and a highest grade of 4:
    eagerness(2;4).
    """
    gains = terms.running(gain_functions.gain_of("linear"), rows.keys).alias("__rankframe_gains")
    columns: list[pl.Expr] = []
    for name, (goals, top) in names.items():
        need = gain_functions.need(goals, top, pl.col("__rankframe_gains"))
        kept = 1 - gain_functions.usefulness(top) / need
        columns.append(terms.product_above(kept, rows.keys, "rank").alias(name))
    return frame.with_columns(gains).with_columns(columns).drop("__rankframe_gains")


def overlap_tails(p: float) -> pl.LazyFrame:
    """Σ p^(d − 1)/d over all depths d from a ``place`` on, as far down as it is more than 0."""
    deepest = ceil(log(1e-18) / log(p)) + 1
    if deepest > 1_000_000:
        msg = f"p={p} reads deeper than 1,000,000 ranks: use a smaller p"
        raise ValueError(msg)
    place = pl.int_range(1, deepest + 1)
    tail = (pl.lit(p).pow(place - 1) / place).cum_sum(reverse=True)
    return pl.select(place=place, tail=tail).lazy()


def with_tail(rows: pl.LazyFrame, tails: pl.LazyFrame, place: str, name: str) -> pl.LazyFrame:
    """Look up the tail from a place on."""
    rows = rows.join(tails.rename({"place": place, "tail": name}), on=place, how="left")
    return rows.with_columns(pl.when(pl.col(place).is_not_null()).then(pl.col(name).fill_null(0.0)))


@registry.joined_column(
    "ideal_weight",
    "The same of the ideal list alone: ideal_weight(0.9)",
    reads=("retrieved", "graded"),
    parameters={"p": (Fraction, 0.95)},
)
@registry.joined_column(
    "common_weight",
    "Σ p^(d − 1)/d over the depths d at which this list and the ideal list both hold the item, "
    "equal grades in the order of this list; for p = 0.9: common_weight(0.9)",
    reads=("retrieved", "graded"),
    parameters={"p": (Fraction, 0.95)},
)
def _overlap_columns(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Compare with the ideal list nearest to this one: equal grades in the order of this list."""
    # Polars 1 ignores nulls_last where order_by has several columns: no null is left in them
    order = [-terms.relevance.cast(pl.Float64).fill_null(0), terms.rank.fill_null((1 << 63) - 1)]
    nearest = pl.int_range(1, pl.len() + 1).over(rows.keys, order_by=order)
    ideal, both, end = (f"__rankframe_{place}" for place in ("ideal", "both", "end"))
    frame = frame.with_columns(
        pl.when(terms.is_graded).then(terms.count(nearest)).alias(ideal),
        (pl.max_horizontal("retrieved", "graded") + 1).alias(end),
    )
    listed = pl.when(terms.is_listed, terms.is_graded)  # max_horizontal passes over nulls
    frame = frame.with_columns(listed.then(pl.max_horizontal("rank", ideal)).alias(both))
    for name, (p,) in names.items():
        tails = overlap_tails(p)
        frame = with_tail(frame, tails, both if name.startswith("common") else ideal, name)
        frame = with_tail(frame, tails, end, "__rankframe_tail")
        within = (pl.col(name) - pl.col("__rankframe_tail")).clip(lower_bound=0)
        frame = frame.with_columns(within.alias(name)).drop("__rankframe_tail")
    return frame.drop(ideal, both, end)


registry.given_column(
    "subtopic",
    "The subtopic of the row, if the truth has one row per subtopic of an item",
    scope="subtopic",
    in_ties="ranks",
    beside_subtopics=True,
)


@registry.column(scope="subtopic", reads=("relevant",))
def subtopics(rows: Rows) -> pl.Expr:
    """S, the number of subtopics with a relevant item; 1 where the truth has none."""
    split = rows.scope == "subtopic"
    number = pl.col("subtopic").filter(terms.relevant).n_unique() if split else terms.relevant.any()
    return terms.count(number.over(rows.keys))


@registry.column(scope="subtopic", reads=("relevant",))
def subtopic_hits(rows: Rows) -> pl.Expr:
    """Relevant items of the subtopic at or above this rank; null without a rank."""
    return terms.running(terms.relevant.cast(pl.Int64), rows.aspect)


@registry.column(scope="subtopic", reads=("relevant",))
def subtopic_total(rows: Rows) -> pl.Expr:
    """Number of relevant items of the subtopic."""
    return terms.count(terms.relevant.sum().over(rows.aspect))


_GREEDY: Mapping[str, tuple[Any, ...]] = {
    "alpha": (Annotated[float, Interval(0, 1)], 0.5),
    **CUT,
}


@registry.joined_column(scope="subtopic", reads=("relevant", "ideal_rank"), parameters=_GREEDY)
def diverse_rank(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """Position in alpha-nDCG's greedy ideal list; for another alpha, down to rank 20:
    diverse_rank(0.7;20).
    """
    if rows.scope != "subtopic":  # any order is ideal
        any_order = pl.when(terms.relevant).then("ideal_rank")
        return frame.with_columns(any_order.alias(name) for name in names)
    item = rows.joined.item
    ideals = steps.greedy_ideals(frame.filter(terms.relevant), rows.keys, item, names)
    return frame.join(ideals, on=[*rows.keys, item], how="left")


@registry.column(
    scope="subtopic",
    reads=("relevant", "diverse_rank(*)"),
    parameters=_GREEDY,
)
def diverse_hits(rows: Rows, alpha: float, k: int | None) -> pl.Expr:
    """Items of the subtopic at or above this one in that list: diverse_hits(0.7;20)."""
    place = registry.name("diverse_rank", alpha=alpha, k=k)
    return terms.running(terms.relevant.cast(pl.Int64), rows.aspect, place)


@registry.column(derived_on="lists", in_ties="blocks")
def tied(_rows: Rows) -> pl.Expr:
    """Size of the item's block of equal scores, in a table with rank."""
    return pl.when(terms.is_listed).then("tied")


registry.given_column(
    "block",
    "With ties, instead of rank: first position of the block; null = not retrieved",
    in_ties="blocks",
    derived_on="lists",
)


@registry.column(reads=("relevant",), in_ties="blocks")
def tied_hits(rows: Rows) -> pl.Expr:
    """With ties: relevant items in the block."""
    return terms.relevant.cast(pl.Int64).sum().over(rows.block)


@registry.joined_column(reads=("relevant",), in_ties="blocks")
def hits_above(frame: pl.LazyFrame, rows: Rows, _names: Names) -> pl.LazyFrame:
    """With ties: relevant items above the block."""
    return steps.with_above(frame, terms.relevant.cast(pl.Int64), rows, "hits_above")


@registry.column(derived_over="judged", reads=("relevant",), in_ties="blocks")
def tied_nonrelevant(rows: Rows) -> pl.Expr:
    """With ties: judged items in the block that are not relevant."""
    return (terms.is_judged & ~terms.relevant).cast(pl.Int64).sum().over(rows.block)


@registry.joined_column(derived_over="judged", reads=("relevant",), in_ties="blocks")
def nonrelevant_above(frame: pl.LazyFrame, rows: Rows, _names: Names) -> pl.LazyFrame:
    """With ties: judged items above the block that are not relevant."""
    nonrelevant = (terms.is_judged & ~terms.relevant).cast(pl.Int64)
    return steps.with_above(frame, nonrelevant, rows, "nonrelevant_above")


_OF_A_BLOCK: Mapping[str, Any] = {
    "reads": ("relevant",),
    "in_ties": "blocks",
    "parameters": _GAIN,
}


@registry.column(**_OF_A_BLOCK)
def tied_gains(rows: Rows, gain: Gain) -> pl.Expr:
    """With ties: gain of the items in the block: tied_gains(exponential)."""
    return gain_functions.gain_of(gain).sum().over(rows.block)


@registry.joined_column(**_OF_A_BLOCK)
def gains_above(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """With ties: gain of the items above the block: gains_above(exponential)."""
    for name, (gain,) in names.items():
        frame = steps.with_above(frame, gain_functions.gain_of(gain), rows, name)
    return frame


@registry.joined_column(**_OF_A_BLOCK)
def tied_shared(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """With ties: Σ of the smaller gain of each pair of the item and one in its block."""
    inside = terms.count(pl.len().over([*rows.keys, "relevance", "rank"]))
    return steps.with_shared(frame, rows, names, inside)


@registry.joined_column(**_OF_A_BLOCK)
def shared_above(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """With ties: the same with the items above the block: shared_above(exponential)."""
    above = terms.count(terms.rank.rank("min").over([*rows.keys, "relevance"])) - 1
    return steps.with_shared(frame, rows, names, above)


@registry.joined_column(
    "level_weight_along",
    "With ties: level_weight at each position of the block, as a list",
    reads=("relevant", "tied", "ideal_rank", "graded"),
    in_ties="blocks",
)
@registry.joined_column(
    "ideal_gains_along",
    "With ties: ideal_gains at each position of the block, as a list",
    reads=("relevant", "tied", "ideal_rank", "graded"),
    parameters=_GAIN,
    in_ties="blocks",
)
def _columns_along(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    blocks = steps.blocks(rows)
    for name, values in names.items():
        frame = frame.join(steps.along(blocks, rows, name, values), on=rows.block, how="left")
    return frame


@registry.joined_column(
    reads=("tied", "graded"),
    parameters={
        **CUT,
        "base": (Annotated[float, Interval(1, is_open=True)], None),
        "discount": (Discount, "log2"),
    },
    in_ties="blocks",
)
def discounts(frame: pl.LazyFrame, rows: Rows, names: Names) -> pl.LazyFrame:
    """With ties: Σ 1/log2(i + 1) over the block's positions; down to rank 10: discounts(10), with
    base 2: discounts(;2), of 1/i: discounts(;;rank).
    """
    blocks = steps.blocks(rows)
    for name, (k, base, discount) in names.items():
        by = gain_functions.discounting(base, discount)
        sums = blocks.select(*rows.block, steps.sum_of_discounts(k, by).alias(name))
        frame = frame.join(sums, on=rows.block, how="left")
    return frame
