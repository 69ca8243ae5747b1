"""Derivations that take several steps, as joins of frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from rankframe._request import gain_functions, labels
from rankframe._request.gain_functions import Discounting
from rankframe._request.registry import Names
from rankframe._tables import adapters, rank_order
from rankframe._vocabulary import terms
from rankframe._vocabulary.scope_rows import Rows


def with_above(frame: pl.LazyFrame, value: pl.Expr, rows: Rows, name: str) -> pl.LazyFrame:
    """Sum a value over the items above each block."""
    frame = frame.with_columns(terms.running(value, rows.keys).alias(name))
    return frame.with_columns(pl.col(name).max().over(rows.block) - value.sum().over(rows.block))


def blocks(rows: Rows) -> pl.LazyFrame:
    """Return each block of ties once."""
    return rows.unjoined.filter(terms.is_listed).select(*rows.block, "tied", "graded").unique()


def along(blocks: pl.LazyFrame, rows: Rows, name: str, gain: tuple[Any, ...]) -> pl.LazyFrame:
    """List the values of a column of the ideal list at each position of a block."""
    keys, position = rows.keys, "__rankframe_position"
    column = name.replace("_along", "")
    ideal = ideal_list(rows.unjoined, keys, {column: gain}).select(*keys, "ideal_rank", column)
    ranges = pl.int_ranges(terms.rank, terms.rank + pl.col("tied"))
    places = blocks.with_columns(ranges.alias(position)).explode(position, empty_as_null=False)
    deep = pl.min_horizontal(position, "graded").alias("ideal_rank")
    values = places.with_columns(deep).join(ideal, on=[*keys, "ideal_rank"])
    if column == "level_weight":
        inside = pl.col(position) <= pl.col("graded")
        values = values.with_columns(pl.when(inside).then(column).otherwise(0.0))
    return values.group_by(*keys, "rank").agg(pl.col(column).sort_by(position).alias(name))


def sum_of_discounts(k: int | None, by: Discounting) -> pl.Expr:
    """Sum the discount over the positions of a block, down to the cut."""
    end = terms.rank + pl.col("tied")
    end = end if k is None else end.clip(upper_bound=k + 1)
    places = pl.int_ranges(terms.rank, pl.max_horizontal(end, "rank"))
    return places.list.eval(gain_functions.discount(pl.element(), by)).list.sum()


def with_shared(frame: pl.LazyFrame, rows: Rows, names: Names, number: pl.Expr) -> pl.LazyFrame:
    """Two items share the gain of the lower grade: the sum of the steps that both reach.

    ``number`` counts the other items that reach a level, over the items that reach it.
    """
    grade, counts = "__rankframe_grade", "__rankframe_others"
    gains = {name: gain_functions.gain_of(gain) for name, (gain,) in names.items()}
    keys = rows.keys
    listed = rows.unjoined.filter(terms.is_listed, terms.is_graded)
    levels = (
        listed.select(*keys, "relevance", "relevant")
        .unique()
        .with_columns(
            (gain - gain.shift(1, fill_value=0.0).over(keys, order_by="relevance")).alias(name)
            for name, gain in gains.items()
        )
    )
    shared = (
        listed.select(*keys, "rank", terms.relevance.alias(grade))
        .join(levels, on=keys)
        .filter(terms.relevance <= pl.col(grade))
        .with_columns(number.alias(counts))
        .unique([*keys, "rank", grade, "relevance"])  # equal grades in a block share alike
        .group_by(*keys, "rank", grade)
        .agg((pl.col(name) * pl.col(counts)).sum() for name in gains)
    )
    left, right = [*keys, "rank", "relevance"], [*keys, "rank", grade]
    return frame.join(shared, left_on=left, right_on=right, how="left")


def ideal_list(frame: pl.LazyFrame, keys: Sequence[str], names: Names) -> pl.LazyFrame:
    """Return the ideal list, one row for each position, with what is cumulated down to it."""

    def down(value: pl.Expr, *, reverse: bool = False) -> pl.Expr:
        return value.cum_sum(reverse=reverse).over(keys, order_by="ideal_rank")

    last = (terms.relevance != terms.relevance.shift(-1)).over(keys, order_by="ideal_rank")
    level = pl.when("__rankframe_last").then(1 / pl.col("ideal_discounted_gains")).otherwise(0.0)
    gains = (
        down(gain_functions.gain_of(values[0])).alias(name)
        for name, values in names.items()
        if name.startswith("ideal_gains")
    )
    return (
        frame.filter(terms.is_graded)
        .select(*keys, "relevance", "relevant", "ideal_rank")
        .with_columns(
            *gains,
            ideal_discounted_gains=down(terms.ideal_discounted()),
            __rankframe_last=last.fill_null(value=True),
        )
        .with_columns(level_weight=down(level, reverse=True))
        .drop("relevance", "relevant", "__rankframe_last")
    )


def greedy_ideals(relevant: pl.LazyFrame, keys: list[str], item: str, names: Names) -> pl.LazyFrame:
    """Order the items of each user by what they add to those above, for each alpha and depth.

    This is the only column that is not an expression: what an item adds depends on all items taken
    before it. It is made only if a metric reads it.
    """
    subtopics = relevant.select(*keys, item, "subtopic")
    schema = subtopics.collect_schema()
    ordered = {name: schema[name] for name in (*keys, item)}

    def order(rows: pl.DataFrame) -> pl.DataFrame:
        ideals = rows.select(*ordered).unique()
        for name, (alpha, k) in names.items():
            deepest = rows.height if k is None else k
            ideal = _greedy_ideal(rows, keys, item, alpha, deepest)
            ideals = ideals.join(ideal.rename({"place": name}), on=[*ordered], how="left")
        return ideals

    return adapters.in_one_step(subtopics, order, {**ordered, **dict.fromkeys(names, pl.Int64())})


def _greedy_ideal(
    left: pl.DataFrame, keys: list[str], item: str, alpha: float, depth: int
) -> pl.DataFrame:
    """Take the next item of all users in one pass; of equal ones the higher one, as in ndeval."""
    tie = rank_order.as_comparable(item, left.schema[item])
    taken = [left.select(*keys, item, place=pl.lit(0, pl.Int64)).clear()]
    left = left.with_columns(gain=1.0)
    while not left.is_empty() and len(taken) <= depth:
        # summation order changes the last bits of equal sums
        adds = left.group_by(*keys, item).agg(pl.col("gain").sum().round(12))
        adds = adds.sort("gain", tie, descending=True)
        best = adds.unique(keys, keep="first", maintain_order=True)
        best = best.select(*keys, item, place=pl.lit(len(taken), pl.Int64))
        taken.append(best)
        covered = left.join(best, on=[*keys, item]).select(*keys, "subtopic", covered=True)
        left = left.join(best, on=[*keys, item], how="anti")
        left = left.join(covered, on=[*keys, "subtopic"], how="left").with_columns(
            pl.when("covered").then(pl.col("gain") * (1 - alpha)).otherwise("gain").alias("gain")
        )
        left = left.drop("covered")
    return pl.concat(taken)


def lower_below(frame: pl.LazyFrame, keys: list[str], item: str, *, tied: bool) -> pl.LazyFrame:
    """Count the items of lower grade below each judged item of the lists, for any grades.

    Two grades differ first in one binary digit of their places among the user's grades. So each row
    appears once per digit, and counts the pairs that this digit decides.
    """
    names = ("place", "digits", "power", "count")
    place, digits, power, count = (f"{labels.PREFIX}{name}" for name in names)
    number = terms.count(terms.relevance.rank("dense").over(keys)) - 1
    # if a logarithm rounds up, one more digit decides nothing
    most = (pl.col(place).max().over(keys) + 1).log(2).floor().cast(pl.Int64) + 1
    by_digit = (
        frame.filter(terms.is_listed & terms.is_judged)
        .select(*keys, item, "rank", number.alias(place))
        .with_columns(pl.int_ranges(0, most).alias(digits))
        .explode(digits, empty_as_null=False)
        .with_columns(pl.lit(2, pl.Int64).pow(digits).alias(power))
    )
    same = [*keys, digits, pl.col(place) // (2 * pl.col(power))]
    is_lower = 1 - pl.col(place) // pl.col(power) % 2
    below = is_lower.cum_sum(reverse=True).over(same, order_by="rank")
    by_digit = by_digit.with_columns(below.cast(pl.Float64).alias(count))
    if tied:
        block = [*same, "rank"]
        half = is_lower.sum().over(block) / 2
        by_digit = by_digit.with_columns(pl.col(count).max().over(block) - half)
    decided = pl.when(is_lower == 0).then(count)
    return by_digit.group_by(*keys, item).agg(decided.sum().alias("lower_graded_below"))
