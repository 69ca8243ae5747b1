"""The words of the formulas: what the metrics of all families say about one user's rows."""

import polars as pl

from rankframe.labels import Gain

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


def gain_of(gain: Gain) -> pl.Expr:
    """The gain of a row, 0 for a grade ≤ 0; NaN where a mapping does not know the grade."""
    grade = relevance.cast(pl.Float64).clip(lower_bound=0)
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
        mapped = pl.when(relevance == known).then(value).otherwise(mapped)
    return mapped


def gain_sum(gain: Gain, weight: pl.Expr, position: pl.Expr, k: int | None) -> pl.Expr:
    """Σ gain·weight over the rows at position ≤ k."""
    gains = gain_of(gain)
    inside = position.is_not_null() if k is None else position <= k
    # 0·gain, not 0: a grade without a gain (NaN) must show wherever it stands
    return pl.when(inside).then(gains * weight).otherwise(0.0 * gains).sum()


def stop_chance(max_grade: str) -> pl.Expr:
    """Chance that a reader stops at a row, (2^g − 1) / 2^max; NaN for a grade above the maximum."""
    top = top_of(max_grade)
    grade = relevance.cast(pl.Float64).clip(lower_bound=0)
    chance = (pl.lit(2.0).pow(grade) - 1) / pl.lit(2.0).pow(top)
    return pl.when(grade <= top).then(chance).otherwise(float("nan"))


def usefulness(max_grade: str) -> pl.Expr:
    """The grade of a row as a share of the highest; NaN for a grade above the maximum."""
    grade, top = gain_of("linear"), top_of(max_grade)
    return pl.when(grade <= top).then(grade / top).otherwise(float("nan"))


def top_of(max_grade: str) -> pl.Expr:
    """The highest grade of the scale: a number, or ``"top"`` for that of the whole truth."""
    return pl.col("top_grade") if max_grade == "top" else pl.lit(float(max_grade))


def need(goals: float, max_grade: str, gains: pl.Expr) -> pl.Expr:
    """What INST's reader wants at a rank: rank − 1 + 2·goals − the usefulness of what is above."""
    return rank - 1 + 2 * goals - (gains - gain_of("linear")) / top_of(max_grade)


def discount(position: pl.Expr, base: float | None = None) -> pl.Expr:
    """1 / log2(position + 1), or with a base b 1 / log_b(position), and 1 above position b."""
    place = position.cast(pl.Float64)
    return 1 / ((place + 1).log(2) if base is None else place.log(base).clip(lower_bound=1))


def share(part: pl.Expr, whole: pl.Expr) -> pl.Expr:
    """Part / whole, and 0 where the whole is 0."""
    return pl.when(whole > 0).then(part / whole).otherwise(0.0)


def floored_geometric_mean(value: pl.Expr) -> pl.Expr:
    """Give exp(mean(ln(max(value, 1e-5)))) over users, as in trec_eval."""
    return value.clip(lower_bound=1e-5).log().mean().exp()


def where_relevant(value: pl.Expr) -> pl.Expr:
    """Null for a user without a relevant item: 0/0 is not 0."""
    return pl.when(relevant.any()).then(value)


def check_persistence(p: float) -> None:
    """Check the chance that a reader goes on to the next item."""
    if not 0 < p < 1:
        msg = f"p must be a number between 0 and 1, not {p}"
        raise ValueError(msg)
