"""The vocabulary: every column that metrics are written on, each derived in one place.

A metric reduces the rows of one user: the items of grade > 0, retrieved or not. One that reads
``judged`` reduces all rows of the truth instead; where items have subtopics, one that reads a
column of these reduces a row for each. What a metric reads is seen in its expression.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from math import ceil, log
from typing import TYPE_CHECKING

import polars as pl

from rankframe._order import in_rank_order
from rankframe.labels import check_gain, gain_from, is_number, whole_number
from rankframe.metrics.gains import (
    discount,
    gain_of,
    has_gain_of_zero,
    need,
    stop_chance,
    usefulness,
)

if TYPE_CHECKING:
    from rankframe.table import Street

#: What each column means; the names are reserved in a judged table.
VOCABULARY = {
    "rank": "1-based position in the list; null = not retrieved",
    "relevance": "the grade",
    "relevant": "the grade reaches relevant_at (by default: is > 0)",
    "hits": "relevant items at or above this rank; null where rank is",
    "ideal_rank": "position in the ideal list, highest grade first; null where the grade is ≤ 0; "
    "in the order of another gain, null where that is 0: ideal_rank(1:3;2:9;4:4.5)",
    "returned_ideal_rank": "position among the items of grade > 0 of the list, highest grade "
    "first; in the order of another gain: returned_ideal_rank(1:3;2:9;4:4.5)",
    "ideal_place": "number of the row among the user's in rank order, as a place of the ideal list",
    "ideal_relevance": "the grade at that place of the ideal list; 0 where that has ended",
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
    "shared": "Σ of the smaller gain of each pair of this item and one at or above: "
    "shared(exponential)",
    "eagerness": "INST's Π (1 − gain / need) over the items above; of 2 goals and a highest grade "
    "of 4: eagerness(2;4)",
    "common_weight": "Σ p^(d − 1)/d over the depths d at which this list and the ideal list both "
    "hold the item, equal grades in the order of this list; for p = 0.9: common_weight(0.9)",
    "ideal_weight": "the same of the ideal list alone: ideal_weight(0.9)",
    "subtopic": "the subtopic of the row, where the truth has a row for each of an item",
    "subtopics": "S, the number of subtopics with a relevant item; 1 where the truth has none",
    "subtopic_hits": "relevant items of the subtopic at or above this rank; null where rank is",
    "subtopic_total": "number of relevant items of the subtopic",
    "diverse_rank": "position in alpha-nDCG's greedy ideal list; of another alpha and at most "
    "20 deep: diverse_rank(0.7;20)",
    "diverse_hits": "items of the subtopic at or above in that list: diverse_hits(0.7;20)",
    "level_weight": "Σ 1/IDCG(p) over the ends p ≥ rank of the grades in the ideal list",
    "tied": "size of the item's block of equal scores; it stands beside a rank",
    "block": "with ties, instead of rank: first position of the block; null = not retrieved",
    "tied_hits": "with ties: relevant items in the block",
    "hits_above": "with ties: relevant items above the block",
    "tied_nonrelevant": "with ties: judged items in the block that are not relevant",
    "nonrelevant_above": "with ties: judged items above the block that are not relevant",
    "tied_gains": "with ties: gain of the items in the block: tied_gains(exponential)",
    "gains_above": "with ties: gain of the items above the block: gains_above(exponential)",
    "tied_shared": "with ties: Σ of the smaller gain of each pair of the item and one in its block",
    "shared_above": "with ties: the same with the items above the block: shared_above(exponential)",
    "ideal_gains_along": "with ties: ideal_gains at each position of the block, as a list",
    "level_weight_along": "with ties: level_weight at each position of the block, as a list",
    "discounts": "with ties: Σ 1/log2(i + 1) over the block's positions; to 10: discounts(10), "
    "with base 2: discounts(;2)",
}

#: What ``relevant`` gives unasked.
BASIC = (
    *("rank", "relevance", "relevant", "hits", "total"),
    *("ideal_rank", "ideal_place", "ideal_relevance"),
)

#: Columns that take a parameter, with its default.
_PARAMETERS = {
    "ideal_rank": "linear",
    "returned_ideal_rank": "linear",
    "gains": "linear",
    "ideal_gains": "linear",
    "tied_gains": "linear",
    "gains_above": "linear",
    "tied_shared": "linear",
    "shared_above": "linear",
    "ideal_gains_along": "linear",
    "survival": "top",
    "ideal_survival": "top",
    "shared": "linear",
    "eagerness": "1;top",
    "common_weight": "0.95",
    "ideal_weight": "0.95",
    "diverse_rank": "0.5",
    "diverse_hits": "0.5",
    "discounts": "",
}

_ANY_ORDER = ("ideal_rank", "returned_ideal_rank")  # these take gains that fall, or of grade 0
_OVERLAP = {"common_weight", "ideal_weight"}  # these read "retrieved"
_SUBTOPIC = {
    "subtopic",
    "subtopics",
    "subtopic_hits",
    "subtopic_total",
    "diverse_rank",
    "diverse_hits",
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
    "ideal_place",
    "ideal_relevance",
    "total",
    "graded",
    "top_grade",
    "gains",
    "ideal_gains",
    "discounted_gains",
    "ideal_discounted_gains",
    "survival",
    "ideal_survival",
    "shared",
    "eagerness",
    "level_weight",
    "judged",
    "judged_hits",
    "pooled_hits",
    "nonrelevant",
}
_IN_ORDER = {"hits", "ideal_place", "ideal_relevance"}
_IDEAL = {"ideal_gains", "ideal_discounted_gains", "level_weight"}  # these cost a join

_rank = pl.col("rank")
_relevance = pl.col("relevance")
_judged = _relevance >= 0


def reads_subtopics(metric: pl.Expr) -> bool:
    """Tell if a metric reads subtopics, so that it reduces a row for each subtopic of an item."""
    return not _SUBTOPIC.isdisjoint(_bases(metric.meta.root_names()))


def mixes_subtopics(metric: pl.Expr) -> bool:
    """Tell if a metric reads subtopics beside what is counted by items."""
    bases = _bases(metric.meta.root_names())
    shared = {"rank", "relevance", "relevant", "retrieved", *_SUBTOPIC}
    return not _SUBTOPIC.isdisjoint(bases) and not (bases & VOCABULARY.keys()) <= shared


def reads_rank_order(metric: pl.Expr) -> bool:
    """Tell if a metric reads what takes rows in rank order."""
    return not _IN_ORDER.isdisjoint(metric.meta.root_names())


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
    judged, listed = _cut(street.items, depth), _cut(street.run, depth)
    if judged_only:
        judged = listed = _condensed(judged, keys, tied=tied)
    for name in reads:
        _check_parameter(name)
    _check_gains_of_zero(reads)
    bases = _bases(reads)
    split = street.has_subtopics and not _SUBTOPIC.isdisjoint(bases)
    if split:
        judged = _split(street, judged)
    wide = reads_irrelevant(reads)
    rows = judged.filter(_relevance.is_not_null() if wide else _relevance > 0)
    line = _relevance > 0 if relevant_at is None else _relevance >= relevant_at
    rows = rows.with_columns(relevant=line)
    if wide:
        rows = _with_judged(rows, keys)
        rows = _with_judged_blocks(rows, keys) if tied else _with_judged_ranks(rows, keys)
        if "judged" not in reads:
            rows = rows.filter(_relevance > 0)
    rows = in_rank_order(rows, keys)
    rows = _with_ideal_ranks(rows, keys, reads, top_grade(street))
    if tied:
        rows = _with_blocks(rows, keys, reads)
    else:
        every_row_counts = relevant_at is None and "judged" not in reads
        rows = rows.with_columns(hits=_numbered() if every_row_counts else _hits(keys))
        rows = _with_ranks(rows, keys, reads)
    if not (tied or _SUBTOPIC.isdisjoint(bases)):
        rows = _with_subtopics(rows, keys, reads, street.tables[0].item if split else None)
    if "retrieved" in reads:
        lengths = listed.filter(_rank.is_not_null()).group_by(keys).agg(retrieved=_count(pl.len()))
        rows = rows.join(lengths, on=keys, how="left")
        rows = rows.with_columns(pl.col("retrieved").fill_null(0))
    if not (tied or _OVERLAP.isdisjoint(bases)):
        rows = _with_overlap(rows, keys, reads)
    return rows


def reads_irrelevant(reads: Collection[str]) -> bool:
    """Tell if what is read takes the rows of the truth that are not relevant."""
    return not _WIDE.isdisjoint(reads)


def reads_whole_list(reads: Collection[str]) -> bool:
    """Tell if what is read of an item may depend on the list below it."""
    return not _bases(reads) <= _ABOVE


def reads_top_grade(reads: Collection[str]) -> bool:
    """Tell if what is read depends on the highest grade of the whole truth."""
    return "top_grade" in reads or any(_parameter(name)[1].endswith("top") for name in reads)


def top_grade(street: Street) -> pl.Expr:
    """The highest grade of the whole truth."""
    whole = street.tables[0].whole
    return _relevance.max() if whole is None else pl.lit(whole.top_grade)


def _bases(reads: Iterable[str]) -> set[str]:
    """Name the columns that are read, without their parameters."""
    return {name.partition("(")[0] for name in reads}


def _split(street: Street, items: pl.LazyFrame) -> pl.LazyFrame:
    """Give a row for each subtopic of an item, at the item's rank."""
    item = [*street.tables[0].keys, street.tables[0].item]
    subtopics = street.judged.filter(_relevance.is_not_null()).drop("rank")
    return subtopics.join(items.select(*item, "rank"), on=item, how="left")


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
        *(
            _survival(parameter, keys, "ideal_rank").alias(name)
            for name, parameter in _parameters(reads, "ideal_survival").items()
        ),
        *_ideal_ranks_of_gains(reads, keys),
    )


def _ideal_ranks_of_gains(reads: Collection[str], keys: Sequence[str]) -> Iterator[pl.Expr]:
    """Order the items with a gain, and those of them in the list, highest gain first."""
    for base in _ANY_ORDER:
        for name, parameter in _parameters(reads, base).items():
            if name != base:
                gain = gain_of(gain_from(parameter))
                there = pl.lit(value=True) if base == "ideal_rank" else _rank.is_not_null()
                kept = pl.when(gain > 0, there).then(gain)
                yield _count(kept.rank("ordinal", descending=True).over(keys)).alias(name)


def _with_ranks(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Derive what tells of the list down to a rank."""
    rows = rows.with_columns(
        *(
            _running(gain_of(gain_from(parameter)), keys).alias(name)
            for name, parameter in _parameters(reads, "gains").items()
        ),
        *(
            _survival(parameter, keys, "rank").alias(name)
            for name, parameter in _parameters(reads, "survival").items()
        ),
        discounted_gains=_running(gain_of("linear") * discount(_rank), keys),
    )
    bases = _bases(reads)
    if "best_rank" in bases:
        rows = _with_best_rank(rows, keys)
    if "shared" in bases:
        down = _count(_rank.rank("max").over([*keys, "relevance"]))
        rows = _with_shared(rows, keys, reads, "shared", down)
    if "eagerness" in bases:
        rows = _with_eagerness(rows, keys, reads)
    if not _IDEAL.isdisjoint(bases):
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
    for name, parameter in _parameters(reads, "tied_gains").items():
        gain = gain_of(gain_from(parameter))
        rows = rows.with_columns(gain.sum().over(block).alias(name))
    for name, parameter in _parameters(reads, "gains_above").items():
        rows = _with_above(rows, gain_of(gain_from(parameter)), keys, name)
    if "tied_shared" in _bases(reads):
        level = [*keys, "relevance"]
        inside = _count(pl.len().over([*level, "rank"]))
        above = _count(_rank.rank("min").over(level)) - 1
        rows = _with_shared(rows, keys, reads, "tied_shared", inside)
        rows = _with_shared(rows, keys, reads, "shared_above", above)
    along = [
        blocks.select(*block, _discounts(parameter).alias(name))
        for name, parameter in _parameters(reads, "discounts").items()
    ]
    for column in ("ideal_gains", "level_weight"):
        names = _parameters(reads, f"{column}_along")
        along += [_along(blocks, rows, keys, name) for name in names]
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
    return _product_above(1 - stop_chance(max_grade), keys, order)


def _parameter(name: str) -> tuple[str, str]:
    """Read ``gains(exponential)`` or plain ``gains``."""
    base, _, parameter = name.removesuffix(")").partition("(")
    return base, parameter or _PARAMETERS.get(base, "")


def _check_parameter(name: str) -> None:
    """Check what a column of the vocabulary carries in its name."""
    base, given, _ = name.partition("(")
    if base not in _PARAMETERS or not given:
        return
    _, parameter = _parameter(name)
    first, _, second = parameter.partition(";")
    try:
        if _PARAMETERS[base] == "linear":
            check_gain(gain_from(parameter), any_order=base in _ANY_ORDER)
            good = True
        elif base.endswith("survival"):
            good = parameter == "top" or float(parameter) > 0
        elif base == "eagerness":
            good = float(first) >= 0.5 and (second == "top" or float(second) > 0)
        elif base in _OVERLAP:
            good = 0 < float(parameter) < 1
        elif base == "discounts":
            good = (not first or int(first) > 0) and (not second or float(second) > 1)
        else:
            good = 0 <= float(first) <= 1 and (not second or int(second) > 0)
    except ValueError:
        good = False
    if not (good and name.endswith(")")):
        msg = f"column {name!r}: {parameter!r} is no parameter of {base!r}, {VOCABULARY[base]}"
        raise ValueError(msg)


def _check_gains_of_zero(reads: Collection[str]) -> None:
    """Check that the rows of grade 0 are there for the columns in which they have a gain."""
    for base in _ANY_ORDER:
        for name, parameter in _parameters(reads, base).items():
            if has_gain_of_zero(gain_from(parameter)) and "judged" not in reads:
                msg = (
                    f"column {name!r} gives grade 0 a gain, but the rows of grade 0 come only "
                    "where 'judged' is read: let the metric read that, too"
                )
                raise ValueError(msg)


def _parameters(reads: Collection[str], base: str) -> dict[str, str]:
    """Give the parameter of each column of this kind that is read."""
    read = {name: _parameter(name) for name in reads}
    return {name: parameter for name, (kind, parameter) in read.items() if kind == base}


def _with_best_rank(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    best = _relevance.filter(_rank.is_not_null()).max().over(keys).alias("__rankframe_best")
    first = _rank.filter(_relevance == pl.col("__rankframe_best")).min().over(keys)
    return rows.with_columns(best).with_columns(best_rank=first).drop("__rankframe_best")


def _with_shared(
    rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str], base: str, number: pl.Expr
) -> pl.LazyFrame:
    """Two items share the gain of the lower grade: what each level adds that both reach.

    ``number`` counts the others that reach a level: it is taken over the items that do.
    """
    grade, others = "__rankframe_grade", "__rankframe_others"
    gains = {n: gain_of(gain_from(gain)) for n, gain in _parameters(reads, base).items()}
    listed = rows.filter(_rank.is_not_null(), _relevance > 0)
    levels = (
        listed.select(*keys, "relevance", "relevant")
        .unique()
        .with_columns(
            (gain - gain.shift(1, fill_value=0.0).over(keys, order_by="relevance")).alias(name)
            for name, gain in gains.items()
        )
    )
    shared = (
        listed.select(*keys, "rank", _relevance.alias(grade))
        .join(levels, on=keys)
        .filter(_relevance <= pl.col(grade))
        .with_columns(number.alias(others))
        .unique([*keys, "rank", grade, "relevance"])  # equal grades in a block share alike
        .group_by(*keys, "rank", grade)
        .agg((pl.col(name) * pl.col(others)).sum() for name in gains)
    )
    left, right = [*keys, "rank", "relevance"], [*keys, "rank", grade]
    return rows.join(shared, left_on=left, right_on=right, how="left")


def _with_eagerness(
    rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]
) -> pl.LazyFrame:
    gains = _running(gain_of("linear"), keys).alias("__rankframe_gains")
    columns: list[pl.Expr] = []
    for name, parameter in _parameters(reads, "eagerness").items():
        goals, _, top = parameter.partition(";")
        kept = 1 - usefulness(top) / need(float(goals), top, pl.col("__rankframe_gains"))
        columns.append(_product_above(kept, keys, "rank").alias(name))
    return rows.with_columns(gains).with_columns(columns).drop("__rankframe_gains")


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
        for name, parameter in _parameters(reads, "ideal_gains").items()
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


def overlap_tails(p: float) -> pl.LazyFrame:
    """Σ p^(d − 1)/d over all depths d from a ``place`` on, as far down as it is more than 0."""
    deepest = ceil(log(1e-18) / log(p)) + 1
    if deepest > 1_000_000:
        msg = f"p={p} reads deeper than 1,000,000 ranks: take a smaller one"
        raise ValueError(msg)
    place = pl.int_range(1, deepest + 1)
    tail = (pl.lit(p).pow(place - 1) / place).cum_sum(reverse=True)
    return pl.select(place=place, tail=tail).lazy()


def with_tail(rows: pl.LazyFrame, tails: pl.LazyFrame, place: str, name: str) -> pl.LazyFrame:
    """Look up the tail from a place on."""
    rows = rows.join(tails.rename({"place": place, "tail": name}), on=place, how="left")
    return rows.with_columns(pl.when(pl.col(place).is_not_null()).then(pl.col(name).fill_null(0.0)))


def _with_overlap(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Compare with the ideal list nearest to this one: equal grades in the order of this list."""
    order = [-_relevance.cast(pl.Float64), _rank]
    nearest = pl.int_range(1, pl.len() + 1).over(keys, order_by=order, nulls_last=True)
    ideal, both, end = (f"__rankframe_{place}" for place in ("ideal", "both", "end"))
    rows = rows.with_columns(
        pl.when(_relevance > 0).then(_count(nearest)).alias(ideal),
        (pl.max_horizontal("retrieved", "graded") + 1).alias(end),
    )
    listed = pl.when(_rank.is_not_null(), _relevance > 0)  # max_horizontal passes over nulls
    rows = rows.with_columns(listed.then(pl.max_horizontal("rank", ideal)).alias(both))
    for base, place in (("common_weight", both), ("ideal_weight", ideal)):
        for name, parameter in _parameters(reads, base).items():
            tails = overlap_tails(float(parameter))
            rows = with_tail(rows, tails, place, name)
            rows = with_tail(rows, tails, end, "__rankframe_tail")
            within = (pl.col(name) - pl.col("__rankframe_tail")).clip(lower_bound=0)
            rows = rows.with_columns(within.alias(name)).drop("__rankframe_tail")
    return rows.drop(ideal, both, end)


def _with_subtopics(
    rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str], item: str | None
) -> pl.LazyFrame:
    """Without rows for subtopics (no ``item``) all items are of one, and any order is ideal."""
    relevant = pl.col("relevant")
    aspect = keys if item is None else [*keys, "subtopic"]
    some = relevant.any() if item is None else pl.col("subtopic").filter(relevant).n_unique()
    rows = rows.with_columns(
        subtopics=_count(some.over(keys)),
        subtopic_hits=_running(relevant.cast(pl.Int64), aspect),
        subtopic_total=_count(relevant.sum().over(aspect)),
    )
    ranks, seen = (_parameters(reads, base) for base in ("diverse_rank", "diverse_hits"))
    places = {parameter: f"__rankframe_place({parameter})" for parameter in (ranks | seen).values()}
    if item is None:
        any_order = pl.when(relevant).then("ideal_rank")
        rows = rows.with_columns(any_order.alias(place) for place in places.values())
    elif places:
        ideals = _greedy_ideals(rows.filter(relevant), [*keys], item, places)
        rows = rows.join(ideals, on=[*keys, item], how="left")
    rows = rows.with_columns(
        *(pl.col(places[parameter]).alias(name) for name, parameter in ranks.items()),
        *(
            _running(relevant.cast(pl.Int64), aspect, places[parameter]).alias(name)
            for name, parameter in seen.items()
        ),
    )
    return rows.drop(places.values())


def _greedy_ideals(
    relevant: pl.LazyFrame, keys: list[str], item: str, places: Mapping[str, str]
) -> pl.LazyFrame:
    """Order the items of each user by what they add to those above, for each alpha and depth.

    This is the one thing that is no expression: what an item adds hangs on all that were taken
    before it. It is made only where a metric reads it.
    """
    subtopics = relevant.select(*keys, item, "subtopic")
    schema = subtopics.collect_schema()
    ordered = {name: schema[name] for name in (*keys, item)}

    def order(rows: pl.DataFrame) -> pl.DataFrame:
        ideals = rows.select(*ordered).unique()
        for parameter, place in places.items():
            alpha, _, depth = parameter.partition(";")
            deepest = int(depth) if depth else rows.height
            ideal = _greedy_ideal(rows, keys, item, float(alpha), deepest)
            ideals = ideals.join(ideal.rename({"place": place}), on=[*ordered], how="left")
        return ideals

    return subtopics.map_batches(
        order,
        schema={**ordered, **dict.fromkeys(places.values(), pl.Int64())},
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _greedy_ideal(
    left: pl.DataFrame, keys: list[str], item: str, alpha: float, depth: int
) -> pl.DataFrame:
    """Take the next item of all users in one pass; of equals the higher one, as in ndeval."""
    tie = pl.col(item)
    if isinstance(left.schema[item], pl.Categorical | pl.Enum):
        tie = tie.cast(pl.String)
    taken = [left.select(*keys, item, place=pl.lit(0, pl.Int64)).clear()]
    left = left.with_columns(gain=1.0)
    while not left.is_empty() and len(taken) <= depth:
        # sums of equal gains in another order round apart
        adds = left.group_by(*keys, item).agg(pl.col("gain").sum().round(12))
        best = adds.sort("gain", tie, descending=True).unique(
            keys, keep="first", maintain_order=True
        )
        best = best.select(*keys, item, place=pl.lit(len(taken), pl.Int64))
        taken.append(best)
        covered = left.join(best, on=[*keys, item]).select(*keys, "subtopic", covered=True)
        left = left.join(best, on=[*keys, item], how="anti")
        left = left.join(covered, on=[*keys, "subtopic"], how="left").with_columns(
            pl.when("covered").then(pl.col("gain") * (1 - alpha)).otherwise("gain").alias("gain")
        )
        left = left.drop("covered")
    return pl.concat(taken)


def _running(value: pl.Expr, keys: Sequence[str], order: str = "rank") -> pl.Expr:
    """Running sum in the order of a rank, null where the item has none."""
    above = value.cum_sum().over(keys, order_by=order, nulls_last=True)
    return pl.when(pl.col(order).is_not_null()).then(above)


def _product_above(factor: pl.Expr, keys: Sequence[str], order: str) -> pl.Expr:
    """Product over the rows above this one."""
    return factor.cum_prod().shift(1, fill_value=1.0).over(keys, order_by=order, nulls_last=True)


def _hits(keys: Sequence[str]) -> pl.Expr:
    return _running(pl.col("relevant").cast(pl.Int64), keys)


def _numbered() -> pl.Expr:
    """The running count of rows that are all relevant: their number, at half the price."""
    return pl.when(_rank.is_not_null()).then("ideal_place")


def _count(number: pl.Expr) -> pl.Expr:
    """Counts are unsigned in polars, and wrap."""
    return number.cast(pl.Int64)
