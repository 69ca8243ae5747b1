"""The words of the formulas: what the metrics of all families say about one user's rows."""

import polars as pl

from rankframe.labels import Discount, Gain

rank = pl.col("rank")
relevance = pl.col("relevance")
relevant = pl.col("relevant")
hits = pl.col("hits")
total = pl.col("total")
#: R, the number of relevant items
R = relevant.sum().cast(pl.Int64)
#: n, the length of the list
n = pl.col("retrieved").max()


def within(k: int | None) -> pl.Expr:
    """A relevant item among the first k."""
    return relevant & (rank.is_not_null() if k is None else rank <= k)


def found(k: int | None) -> pl.Expr:
    """Number of relevant items among the first k."""
    return within(k).sum().cast(pl.Int64)


def listed(k: int | None) -> pl.Expr:
    """min(k, length of the list)."""
    return n if k is None else pl.min_horizontal(n, k)


def attainable(k: int | None) -> pl.Expr:
    """min(k, R); without k, the length of the list stands for it."""
    return pl.min_horizontal(R, n if k is None else k)


def gain_of(gain: Gain, of: pl.Expr = relevance) -> pl.Expr:
    """The gain of a grade, 0 if it is ≤ 0; NaN where a mapping does not know the grade."""
    if gain == "binary":
        return relevant.cast(pl.Float64)
    grade = of.cast(pl.Float64).clip(lower_bound=0)
    if gain == "linear":
        return grade
    if gain == "exponential":
        return pl.lit(2.0).pow(grade) - 1
    gains = dict(gain)
    nan = float("nan")
    if len(gains) > 100:  # a chain of so many tests is slow, but replace_strict does not stream
        return grade.replace_strict({0.0: 0.0, **gains}, default=nan, return_dtype=pl.Float64)
    mapped = pl.when(grade == 0).then(0.0).otherwise(nan)
    for known, value in gains.items():
        mapped = pl.when(of == known).then(value).otherwise(mapped)
    return mapped


def gain_sum(gain: Gain, weight: pl.Expr, position: pl.Expr, k: int | None) -> pl.Expr:
    """Σ gain·weight over the rows at position ≤ k."""
    gains = gain_of(gain)
    inside = position.is_not_null() if k is None else position <= k
    # 0·gain, not 0: a grade without a gain (NaN) must show wherever it stands
    return pl.when(inside).then(gains * weight).otherwise(0.0 * gains).sum()


def stop_chance(max_grade: str) -> pl.Expr:
    """Chance that a reader stops at a row, (2^g − 1) / 2^max; NaN for a grade above the maximum."""
    top = pl.col("top_grade") if max_grade == "top" else pl.lit(float(max_grade))
    grade = relevance.cast(pl.Float64).clip(lower_bound=0)
    chance = (pl.lit(2.0).pow(grade) - 1) / pl.lit(2.0).pow(top)
    return pl.when(grade <= top).then(chance).otherwise(float("nan"))


def discount(position: pl.Expr, form: Discount = "log2") -> pl.Expr:
    """1 / log2(position + 1), or clipped, 1 / max(1, log2(position))."""
    place = position.cast(pl.Float64)
    if form == "log2_clipped":
        return 1 / place.log(2).clip(lower_bound=1)
    return 1 / (place + 1).log(2)


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Part / whole, and 0 where the whole is 0."""
    return pl.when(whole > 0).then(part / whole).otherwise(0.0)


def floored_geometric_mean(value: pl.Expr) -> pl.Expr:
    """Give exp(mean(ln(max(value, 1e-5)))) over users, as in trec_eval."""
    return value.clip(lower_bound=1e-5).log().mean().exp()


def where_relevant(value: pl.Expr) -> pl.Expr:
    """Null for a user without a relevant item: 0/0 is not 0."""
    return pl.when(relevant.any()).then(value)
