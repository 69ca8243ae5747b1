"""The vocabulary: every column that metrics are written on, each derived in one place.

A metric reduces the rows of one user: the items of grade > 0, retrieved or not. One that reads
``judged`` reduces all rows of the truth instead. What a metric reads is seen in its expression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING

import polars as pl

from rankframe.labels import gain_from, is_number, whole_number
from rankframe.metrics.gains import discount, gain_of, stop_chance

if TYPE_CHECKING:
    from rankframe.table import Street

#: What each column means; the names are reserved in a judged table.
VOCABULARY = {
    "rank": "1-based position in the list; null = not retrieved",
    "relevance": "the grade",
    "relevant": "the grade reaches relevant_at (by default: is > 0)",
    "hits": "relevant items at or above this rank; null where rank is",
    "ideal_rank": "position in the ideal list, highest grade first; null where the grade is ≤ 0",
    "returned_ideal_rank": "position among the items of grade > 0 of the list, highest grade first",
    "total": "R, the number of relevant items of the user",
    "graded": "number of items of grade > 0 of the user",
    "retrieved": "n, the length of the user's list; 0 where there is none",
    "judged": "the grade is ≥ 0; a metric that reads it reduces all rows of the truth",
    "judged_hits": "judged items at or above this rank; null where rank is",
    "pooled_hits": "judged items and items of negative grade at or above this rank",
    "nonrelevant": "number of judged items of the user that are not relevant",
    "gains": "cumulated gain at this rank; null where rank is; of another gain: gains(exponential)",
    "discounted_gains": "discounted cumulated gain at this rank; null where rank is",
    "ideal_gains": "the same of the ideal list, as deep as this rank: ideal_gains(exponential)",
    "ideal_discounted_gains": "discounted cumulated gain of the ideal list, as deep as this rank",
    "top_grade": "the highest grade of the whole truth",
    "best_rank": "the first rank of the highest grade in the user's list",
    "survival": "ERR's chance to come down to this rank; for a highest grade of 4: survival(4)",
    "ideal_survival": "the same in the ideal list: ideal_survival(4)",
    "level_weight": "Σ 1/IDCG(p) over the ends p ≥ rank of the grades in the ideal list",
    "tied": "size of the item's block of equal scores; it stands beside a rank",
    "block": "with ties, instead of rank: first position of the block; null = not retrieved",
    "tied_hits": "with ties: relevant items in the block",
    "hits_above": "with ties: relevant items above the block",
    "tied_nonrelevant": "with ties: judged items in the block that are not relevant",
    "nonrelevant_above": "with ties: judged items above the block that are not relevant",
    "tied_gains": "with ties: gain of the items in the block: tied_gains(exponential)",
    "gains_above": "with ties: gain of the items above the block: gains_above(exponential)",
    "ideal_gains_along": "with ties: ideal_gains at each position of the block, as a list",
    "level_weight_along": "with ties: level_weight at each position of the block, as a list",
    "discounts": "with ties: Σ 1/log2(i + 1) over the block's positions; to 10: discounts(10)",
}

#: What ``relevant`` gives unasked.
BASIC = ("rank", "relevance", "relevant", "hits", "ideal_rank", "total", "retrieved")

#: Columns that take a parameter, with its default.
_PARAMETERS = {
    "gains": "linear",
    "ideal_gains": "linear",
    "tied_gains": "linear",
    "gains_above": "linear",
    "ideal_gains_along": "linear",
    "survival": "top",
    "ideal_survival": "top",
}

_WIDE = {
    "judged",
    "judged_hits",
    "pooled_hits",
    "nonrelevant",
    "tied_nonrelevant",
    "nonrelevant_above",
}
#: What an item above a cut-off has is the same whatever the list holds below.
_ABOVE = {
    "rank",
    "relevance",
    "relevant",
    "hits",
    "ideal_rank",
    "total",
    "graded",
    "top_grade",
    "gains",
    "ideal_gains",
    "discounted_gains",
    "ideal_discounted_gains",
    "survival",
    "ideal_survival",
    "level_weight",
    "judged",
    "judged_hits",
    "pooled_hits",
    "nonrelevant",
}
_IDEAL = {"ideal_gains", "ideal_discounted_gains", "level_weight"}  # these cost a join

_rank = pl.col("rank")
_relevance = pl.col("relevance")
_judged = _relevance >= 0


def vocabulary_rows(
    street: Street,
    reads: Collection[str],
    *,
    relevant_at: float | None,
    judged_only: bool = False,
    depth: int | None = None,
) -> pl.LazyFrame:
    """Give the rows that a metric reduces, with the columns that it reads.

    The optimizer drops the windows that nobody reads. Joins it does not drop, and rows of the
    truth that are not relevant it cannot know to be unread: these come only where they are read.
    """
    if relevant_at is not None and not (is_number(relevant_at) and relevant_at > 0):
        msg = f"relevant_at must be a number > 0, not {relevant_at!r}"
        raise ValueError(msg)
    keys, tied = street.tables[0].keys, street.tied
    judged, listed = _cut(street.judged, depth), _cut(street.run, depth)
    if judged_only:
        judged = listed = _condensed(judged, keys, tied=tied)
    wide = reads_irrelevant(reads)
    rows = judged.filter(_relevance.is_not_null() if wide else _relevance > 0)
    line = _relevance > 0 if relevant_at is None else _relevance >= relevant_at
    rows = rows.with_columns(relevant=line)
    if wide:
        rows = _with_judged(rows, keys)
        rows = _with_judged_blocks(rows, keys) if tied else _with_judged_ranks(rows, keys)
        if "judged" not in reads:
            rows = rows.filter(_relevance > 0)
    rows = _with_ideal_ranks(rows, keys, reads, top_grade(street))
    rows = _with_blocks(rows, keys, reads) if tied else _with_ranks(rows, keys, reads)
    if "retrieved" in reads:
        lengths = listed.filter(_rank.is_not_null()).group_by(keys).agg(retrieved=_count(pl.len()))
        rows = rows.join(lengths, on=keys, how="left")
        rows = rows.with_columns(pl.col("retrieved").fill_null(0))
    return rows


def reads_irrelevant(reads: Collection[str]) -> bool:
    """Tell if what is read takes the rows of the truth that are not relevant."""
    return not _WIDE.isdisjoint(reads)


def reads_whole_list(reads: Collection[str]) -> bool:
    """Tell if what is read of an item may depend on the list below it."""
    return not {base for _, base, _ in _parameters(reads)} <= _ABOVE


def reads_top_grade(reads: Collection[str]) -> bool:
    """Tell if what is read depends on the highest grade of the whole truth."""
    return "top_grade" in reads or any(parameter == "top" for _, _, parameter in _parameters(reads))


def top_grade(street: Street) -> pl.Expr:
    """The highest grade of the whole truth."""
    whole = street.tables[0].whole
    return _relevance.max() if whole is None else pl.lit(whole.top_grade)


def _cut(judged: pl.LazyFrame, depth: int | None) -> pl.LazyFrame:
    """Cut the lists to ``depth``: what is below was not retrieved."""
    if depth is None:
        return judged
    deepest = whole_number("depth", depth)
    return judged.with_columns(pl.when(_rank <= deepest).then("rank").alias("rank"))


def _condensed(judged: pl.LazyFrame, keys: Sequence[str], *, tied: bool) -> pl.LazyFrame:
    """Take the unjudged items and those of negative grade off the lists, and close the ranks."""
    kept = judged.filter(_relevance.is_not_null())
    kept = kept.with_columns(pl.when(_relevance >= 0).then("rank").alias("rank"))
    # "min", not "ordinal": two items at one rank must stay so, for the checks to see them
    closed = kept.with_columns(_count(_rank.rank("min").over(keys)))
    return closed.with_columns(tied=_count(pl.len().over(*keys, "rank"))) if tied else closed


def _with_judged(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    nonrelevant = _judged & ~pl.col("relevant")
    return rows.with_columns(judged=_judged, nonrelevant=_count(nonrelevant.sum().over(keys)))


def _with_judged_ranks(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    return rows.with_columns(
        judged_hits=_running(_judged.cast(pl.Int64), keys),
        pooled_hits=_running(_relevance.is_not_null().cast(pl.Int64), keys),
    )


def _with_judged_blocks(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    nonrelevant = (_judged & ~pl.col("relevant")).cast(pl.Int64)
    rows = rows.with_columns(tied_nonrelevant=nonrelevant.sum().over(*keys, "rank"))
    return _with_above(rows, nonrelevant, keys, "nonrelevant_above")


def _with_ideal_ranks(
    rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str], top_grade: pl.Expr
) -> pl.LazyFrame:
    """Derive what no position in the list has a part in."""
    positive = _relevance > 0
    ideal_rank = _count(_relevance.rank("ordinal", descending=True).over(keys))
    returned = pl.when(positive & _rank.is_not_null()).then(_relevance)
    return rows.with_columns(
        ideal_rank=pl.when(positive).then(ideal_rank),
        returned_ideal_rank=_count(returned.rank("ordinal", descending=True).over(keys)),
        total=_count(pl.col("relevant").sum().over(keys)),
        graded=_count(positive.sum().over(keys)),
        top_grade=top_grade,
    ).with_columns(
        _survival(parameter, keys, "ideal_rank").alias(name)
        for name, base, parameter in _parameters(reads)
        if base == "ideal_survival"
    )


def _with_ranks(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Derive what tells of the list down to a rank."""
    rows = rows.with_columns(
        hits=_running(pl.col("relevant").cast(pl.Int64), keys),
        discounted_gains=_running(gain_of("linear") * discount(_rank), keys),
    )
    for name, base, parameter in _parameters(reads):
        if base == "gains":
            gains = _running(gain_of(gain_from(parameter)), keys)
            rows = rows.with_columns(gains.alias(name))
        elif base == "survival":
            rows = rows.with_columns(_survival(parameter, keys, "rank").alias(name))
    if "best_rank" in reads:
        rows = _with_best_rank(rows, keys)
    if not _IDEAL.isdisjoint(base for _, base, _ in _parameters(reads)):
        rows = _with_ideal(rows, keys, reads)
    return rows


def _with_blocks(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Derive, in place of the ranks, what tells of the blocks of ties."""
    block, relevant = [*keys, "rank"], pl.col("relevant").cast(pl.Int64)
    rows = rows.with_columns(
        tied=pl.when(_rank.is_not_null()).then("tied"), tied_hits=relevant.sum().over(block)
    )
    rows = _with_above(rows, relevant, keys, "hits_above")
    blocks = rows.filter(_rank.is_not_null()).select(*block, "tied", "graded").unique()
    along: list[pl.LazyFrame] = []
    for name, base, parameter in _parameters(reads):
        if base == "tied_gains":
            gain = gain_of(gain_from(parameter))
            rows = rows.with_columns(gain.sum().over(block).alias(name))
        elif base == "gains_above":
            rows = _with_above(rows, gain_of(gain_from(parameter)), keys, name)
        elif base == "discounts":
            along.append(blocks.select(*block, _discounts(parameter).alias(name)))
        elif base in ("ideal_gains_along", "level_weight_along"):
            along.append(_along(blocks, rows, keys, name))
    for one in along:
        rows = rows.join(one, on=block, how="left")
    return rows.rename({"rank": "block"})


def _with_above(rows: pl.LazyFrame, value: pl.Expr, keys: Sequence[str], name: str) -> pl.LazyFrame:
    """Sum a value over the items above each block."""
    block = [*keys, "rank"]
    rows = rows.with_columns(_running(value, keys).alias(name))
    return rows.with_columns(pl.col(name).max().over(block) - value.sum().over(block))


def _along(
    blocks: pl.LazyFrame, rows: pl.LazyFrame, keys: Sequence[str], name: str
) -> pl.LazyFrame:
    """List the values of a column of the ideal list at each position of a block."""
    column, position = name.replace("_along", ""), "__rankframe_position"
    ideal = _ideal(rows, keys, [column]).select(*keys, "ideal_rank", column)
    places = blocks.with_columns(pl.int_ranges(_rank, _rank + pl.col("tied")).alias(position))
    deep = pl.min_horizontal(position, "graded").alias("ideal_rank")
    values = places.explode(position).with_columns(deep).join(ideal, on=[*keys, "ideal_rank"])
    if column == "level_weight":
        inside = pl.col(position) <= pl.col("graded")
        values = values.with_columns(pl.when(inside).then(column).otherwise(0.0))
    return values.group_by(*keys, "rank").agg(pl.col(column).sort_by(position).alias(name))


def _discounts(parameter: str) -> pl.Expr:
    """Sum the discount over the positions of a block, down to the cut."""
    cut, _, base = parameter.partition(";")
    end = _rank + pl.col("tied")
    end = end.clip(upper_bound=int(cut) + 1) if cut else end
    places = pl.int_ranges(_rank, pl.max_horizontal(end, "rank"))
    return places.list.eval(discount(pl.element(), float(base) if base else None)).list.sum()


def _survival(max_grade: str, keys: Sequence[str], order: str) -> pl.Expr:
    above = (1 - stop_chance(max_grade)).cum_prod().shift(1, fill_value=1.0)
    return above.over(keys, order_by=order, nulls_last=True)


def _parameters(reads: Collection[str]) -> Iterator[tuple[str, str, str]]:
    """Take the columns apart that may carry a parameter."""
    return ((name, *_parameter(name)) for name in reads)


def _parameter(name: str) -> tuple[str, str]:
    """Read ``gains(exponential)`` or plain ``gains``."""
    base, _, parameter = name.removesuffix(")").partition("(")
    return base, parameter or _PARAMETERS.get(base, "")


def _with_best_rank(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    best = _relevance.filter(_rank.is_not_null()).max().over(keys).alias("__rankframe_best")
    first = _rank.filter(_relevance == pl.col("__rankframe_best")).min().over(keys)
    return rows.with_columns(best).with_columns(best_rank=first).drop("__rankframe_best")


def _with_ideal(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Look up at each rank how far the ideal list has come; below its end, its end."""
    depth = pl.when(_rank.is_not_null()).then(pl.min_horizontal("rank", "graded"))
    joined = rows.with_columns(depth.alias("__rankframe_depth")).join(
        _ideal(rows, keys, reads),
        left_on=[*keys, "__rankframe_depth"],
        right_on=[*keys, "ideal_rank"],
        how="left",
    )
    beyond = _rank > pl.col("graded")
    weight = pl.when(beyond).then(0.0).otherwise("level_weight").alias("level_weight")
    return joined.with_columns(weight).drop("__rankframe_depth")


def _ideal(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Give the ideal list, one row for each position, with what is cumulated down to it."""

    def down(value: pl.Expr, *, reverse: bool = False) -> pl.Expr:
        return value.cum_sum(reverse=reverse).over(keys, order_by="ideal_rank")

    last = (
        (_relevance != _relevance.shift(-1)).over(keys, order_by="ideal_rank").fill_null(value=True)
    )
    level = pl.when("__rankframe_last").then(1 / pl.col("ideal_discounted_gains")).otherwise(0.0)
    gains = (
        down(gain_of(gain_from(parameter))).alias(name)
        for name, base, parameter in _parameters(reads)
        if base == "ideal_gains"
    )
    return (
        rows.filter(_relevance > 0)
        .select(*keys, "relevance", "relevant", "ideal_rank")
        .with_columns(
            *gains,
            ideal_discounted_gains=down(gain_of("linear") * discount(pl.col("ideal_rank"))),
            __rankframe_last=last,
        )
        .with_columns(level_weight=down(level, reverse=True))
        .drop("relevance", "relevant", "__rankframe_last")
    )


def _running(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Running sum in rank order, null where the item was not retrieved."""
    above = value.cum_sum().over(keys, order_by="rank", nulls_last=True)
    return pl.when(_rank.is_not_null()).then(above)


def _count(number: pl.Expr) -> pl.Expr:
    """Counts are unsigned in polars, and wrap."""
    return number.cast(pl.Int64)
