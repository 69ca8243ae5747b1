"""A package of somebody else's, with metrics and columns of its own: tests import it."""

from typing import Literal

import polars as pl

import rankframe as rf
from rankframe.typing import Gain

relevant, rank = pl.col("relevant"), pl.col("rank")


def first_half_in_ties(k: int, *, weight: float = 1) -> pl.Expr:
    """The expectation of ``first_half_at``."""
    block, tied = pl.col("block"), pl.col("tied")
    places = (k // 2 - block + 1).clip(0, tied)
    return weight * (places / tied).filter(relevant).sum() / k


@rf.register_metric(
    "first_half", aliases={"fh_{}": "first_half@{}"}, value_range=(0, 2), in_ties=first_half_in_ties
)
def first_half_at(k: int, *, weight: float = 1) -> pl.Expr:
    """Hits among the first k / 2 items, times the weight, per k."""
    return weight * (relevant & (rank <= k // 2)).sum() / k


@rf.register_metric("mean_price", value_range=(0, float("inf")), higher_is_better=None)
def mean_price_at(
    k: int | None = None, *, of: Literal["listed", "hits"] = "listed", gain: Gain = "linear"
) -> pl.Expr:
    """The mean price of the first k items of the list, or of the hits among them."""
    del gain  # only to show that labels carry it
    chosen = pl.col("listed") if of == "listed" else pl.col("listed") & relevant
    if k is not None:
        chosen &= rank <= k
    return pl.col("price").filter(chosen).mean()


@rf.metrics.register_column(
    "gap_above", "Rank minus the rank of the relevant item above, or minus 0"
)
def gap_above(keys: list[str]) -> pl.Expr:
    """Distance to the hit above."""
    hit = pl.when("relevant").then("rank")
    above = hit.shift(1).forward_fill().over(keys, order_by="rank", nulls_last=True)
    return rank - above.fill_null(0)


def _positive(text: str) -> None:
    if int(text) < 1:
        raise ValueError


@rf.metrics.register_column(
    "page",
    "The page of the item, of ten items each, or as many as the parameter says: page(20)",
    scope="listed",
    reads=("rank",),
    parameter=_positive,
    default="10",
    in_ties=True,
)
def page(keys: list[str], text: str) -> pl.Expr:
    """Page number, from 1."""
    del keys
    return (rank - 1) // int(text) + 1


widest_gap = pl.col("gap_above").max().alias("widest gap")
pages = pl.col("page(2)").max().alias("pages")
