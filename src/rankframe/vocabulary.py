"""The vocabulary: every column that metrics are written on, each derived in one place.

A metric reduces the rows of one user: the items of grade > 0, retrieved or not. One that reads
``judged`` reduces all rows of the truth instead. What a metric reads is seen in its expression.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

import polars as pl

from rankframe.labels import gain_from, is_number, whole_number
from rankframe.metrics.words import discount, gain_of, need, stop_chance, usefulness

if TYPE_CHECKING:
    from rankframe.table import Street

#: What each column means; the names are reserved in a judged table.
VOCABULARY = {
    "rank": "1-based position in the list; null = not retrieved",
    "relevance": "the grade",
    "relevant": "the grade reaches relevant_at (by default: is > 0)",
    "hits": "relevant items at or above this rank; null where rank is",
    "ideal_rank": "position in the ideal list, highest grade first; null where the grade is ≤ 0",
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
    "level_weight": "Σ 1/IDCG(p) over the ends p ≥ rank of the grades in the ideal list",
}

#: What ``relevant`` gives unasked.
BASIC = ("rank", "relevance", "relevant", "hits", "ideal_rank", "total", "retrieved")

#: Columns that take a parameter, with its default.
_PARAMETERS = {
    "gains": "linear",
    "ideal_gains": "linear",
    "survival": "top",
    "ideal_survival": "top",
    "shared": "linear",
    "eagerness": "1;top",
}

_WIDE = {"judged", "judged_hits", "pooled_hits", "nonrelevant"}
_IDEAL = {"ideal_gains", "ideal_discounted_gains", "level_weight"}  # these cost a join

_rank = pl.col("rank")
_relevance = pl.col("relevance")


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
    keys = street.tables[0].keys
    judged, listed = _cut(street.judged, depth), _cut(street.run, depth)
    if judged_only:
        judged = listed = _condensed(judged, keys)
    wide = not _WIDE.isdisjoint(reads)
    rows = judged.filter(_relevance.is_not_null() if wide else _relevance > 0)
    line = _relevance > 0 if relevant_at is None else _relevance >= relevant_at
    rows = rows.with_columns(relevant=line)
    if wide:
        rows = _with_judged(rows, keys)
        if "judged" not in reads:
            rows = rows.filter(_relevance > 0)
    rows = _with_windows(rows, keys)
    rows = _with_parameters(rows, keys, reads)
    bases = {name.partition("(")[0] for name in reads}
    if "best_rank" in bases:
        rows = _with_best_rank(rows, keys)
    if "shared" in bases:
        rows = _with_shared(rows, keys, reads)
    if "eagerness" in bases:
        rows = _with_eagerness(rows, keys, reads)
    if not _IDEAL.isdisjoint(bases):
        rows = _with_ideal(rows, keys, reads)
    if "retrieved" in reads:
        lengths = listed.filter(_rank.is_not_null()).group_by(keys).agg(retrieved=_count(pl.len()))
        rows = rows.join(lengths, on=keys, how="left")
        rows = rows.with_columns(pl.col("retrieved").fill_null(0))
    return rows


def _cut(judged: pl.LazyFrame, depth: int | None) -> pl.LazyFrame:
    """Cut the lists to ``depth``: what is below was not retrieved."""
    if depth is None:
        return judged
    deepest = whole_number("depth", depth)
    return judged.with_columns(pl.when(_rank <= deepest).then("rank").alias("rank"))


def _condensed(judged: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    """Take the unjudged items and those of negative grade off the lists, and close the ranks."""
    kept = judged.filter(_relevance.is_not_null())
    kept = kept.with_columns(pl.when(_relevance >= 0).then("rank").alias("rank"))
    # "min", not "ordinal": two items at one rank must stay so, for the checks to see them
    return kept.with_columns(_count(_rank.rank("min").over(keys)))


def _with_judged(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    judged = _relevance >= 0
    return rows.with_columns(
        judged=judged,
        judged_hits=_running(judged.cast(pl.Int64), keys),
        pooled_hits=_running(_relevance.is_not_null().cast(pl.Int64), keys),
        nonrelevant=_count((judged & ~pl.col("relevant")).sum().over(keys)),
    )


def _with_windows(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    positive = _relevance > 0
    ideal_rank = _count(_relevance.rank("ordinal", descending=True).over(keys))
    return rows.with_columns(
        hits=_running(pl.col("relevant").cast(pl.Int64), keys),
        ideal_rank=pl.when(positive).then(ideal_rank),
        total=_count(pl.col("relevant").sum().over(keys)),
        graded=_count(positive.sum().over(keys)),
        top_grade=_relevance.max(),
        discounted_gains=_running(gain_of("linear") * discount(_rank), keys),
    )


def _with_parameters(
    rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]
) -> pl.LazyFrame:
    """Derive the columns whose names carry a parameter."""
    columns: list[pl.Expr] = []
    for name in reads:
        base, parameter = _parameter(name)
        if base == "gains":
            columns.append(_running(gain_of(gain_from(parameter)), keys).alias(name))
        elif base in ("survival", "ideal_survival"):
            above = 1 - stop_chance(parameter)
            order = "rank" if base == "survival" else "ideal_rank"
            columns.append(_product_above(above, keys, order).alias(name))
    return rows.with_columns(columns)


def _parameter(name: str) -> tuple[str, str]:
    """Read ``gains(exponential)`` or plain ``gains``."""
    base, _, parameter = name.removesuffix(")").partition("(")
    return base, parameter or _PARAMETERS.get(base, "")


def _parameters(reads: Collection[str], base: str) -> dict[str, str]:
    """Give the parameter of each column of this kind that is read."""
    read = {name: _parameter(name) for name in reads}
    return {name: parameter for name, (kind, parameter) in read.items() if kind == base}


def _with_best_rank(rows: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    best = _relevance.filter(_rank.is_not_null()).max().over(keys).alias("__rankframe_best")
    first = _rank.filter(_relevance == pl.col("__rankframe_best")).min().over(keys)
    return rows.with_columns(best).with_columns(best_rank=first).drop("__rankframe_best")


def _with_shared(rows: pl.LazyFrame, keys: Sequence[str], reads: Collection[str]) -> pl.LazyFrame:
    """Two items share the gain of the lower grade: what each level adds that both reach."""
    grade, above = "__rankframe_grade", "__rankframe_above"
    gains = {n: gain_of(gain_from(gain)) for n, gain in _parameters(reads, "shared").items()}
    listed = rows.filter(_rank.is_not_null(), _relevance > 0)
    levels = (
        listed.select(*keys, "relevance")
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
        .with_columns(_rank.cum_count().over([*keys, "relevance"], order_by="rank").alias(above))
        .group_by(*keys, "rank")
        .agg((pl.col(name) * pl.col(above)).sum() for name in gains)
    )
    return rows.join(shared, on=[*keys, "rank"], how="left")


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

    def down(value: pl.Expr, *, reverse: bool = False) -> pl.Expr:
        return value.cum_sum(reverse=reverse).over(keys, order_by="ideal_rank")

    last = (
        (_relevance != _relevance.shift(-1)).over(keys, order_by="ideal_rank").fill_null(value=True)
    )
    discounted = pl.col("ideal_discounted_gains")
    ideal = (
        rows.filter(_relevance > 0)
        .select(*keys, "relevance", "ideal_rank")
        .with_columns(
            *(
                down(gain_of(gain_from(parameter))).alias(name)
                for name, parameter in _parameters(reads, "ideal_gains").items()
            ),
            ideal_discounted_gains=down(gain_of("linear") * discount(pl.col("ideal_rank"))),
            __rankframe_last=last,
        )
        .with_columns(
            down(
                pl.when("__rankframe_last").then(1 / discounted).otherwise(0.0), reverse=True
            ).alias("level_weight")
        )
        .drop("relevance", "__rankframe_last")
    )
    depth = pl.when(_rank.is_not_null()).then(pl.min_horizontal("rank", "graded"))
    joined = rows.with_columns(depth.alias("__rankframe_depth")).join(
        ideal, left_on=[*keys, "__rankframe_depth"], right_on=[*keys, "ideal_rank"], how="left"
    )
    beyond = _rank > pl.col("graded")
    weight = pl.when(beyond).then(0.0).otherwise("level_weight").alias("level_weight")
    return joined.with_columns(weight).drop("__rankframe_depth")


def _running(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Running sum in rank order, null where the item was not retrieved."""
    above = value.cum_sum().over(keys, order_by="rank", nulls_last=True)
    return pl.when(_rank.is_not_null()).then(above)


def _product_above(factor: pl.Expr, keys: Sequence[str], order: str) -> pl.Expr:
    """Product over the rows above this one."""
    return factor.cum_prod().shift(1, fill_value=1.0).over(keys, order_by=order, nulls_last=True)


def _count(number: pl.Expr) -> pl.Expr:
    """Counts are unsigned in polars, and wrap."""
    return number.cast(pl.Int64)
