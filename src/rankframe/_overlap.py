"""How alike two runs are: rank-biased overlap."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Unpack

import polars as pl

from rankframe._checks import (
    Table,
    any_violation,
    check_aggregates,
    guarded,
    raise_first_broken,
    read_runs,
    same_types,
    shares_rank,
    table_flag,
)
from rankframe._frames import Frame, FrameT, to_caller_type
from rankframe._options import Columns, is_number, whole_number
from rankframe._table import normalize_columns
from rankframe._vocabulary import overlap_tails, with_tail
from rankframe.errors import RankingDataError
from rankframe.metrics._building_blocks import check_persistence

_MADE = ("rbo", "rbo_min", "rbo_residual")


def rbo(
    run: FrameT,
    /,
    other: Frame,
    *,
    p: float = 0.9,
    k: int | None = None,
    by: str | Sequence[str] = (),
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Rank-biased overlap of two runs: (1 − p)·Σ p^(d − 1)·(items both have in their first d) / d.

    Parameters
    ----------
    run
        One row for each item of each list: user, item, and rank (1 = first) or score.
    other
        The run to compare with, its columns called alike.
    p
        Persistence: the chance that a reader goes on to the next depth, 0 < p < 1. The first ten
        depths have 86 % of the weight for p = 0.9, the first fifty for 0.98.
    k
        Cut both runs to this depth first.
    by
        Columns that split the run into separate lists, such as model, fold or day. Another run
        that has the column is joined on it too; one that lacks it is compared with every group.
    **columns
        ``user=``, ``item=``, ``rank=``, ``score=``: the columns that play these roles, where they
        are not called so.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, user, sorted, for every user of either run: ``rbo``, extrapolated from the lists seen
        to lists without an end; ``rbo_min``, what it is at least whatever follows; and
        ``rbo_residual``, what may be added at most. All are in [0, 1]. A user whom one run misses
        has 0 at least, 1 at most, and null for ``rbo``.

    Raises
    ------
    RankingDataError
        If a table breaks a rule; see ``check``.
    ValueError
        If p is not between 0 and 1, or k not an integer ≥ 1.

    Notes
    -----
    Lists may be of different lengths: what is missing of the shorter one is not known, not a miss.
    Webber, Moffat and Zobel, *ACM TOIS* 28(4), 2010, where these are RBO_EXT, RBO_MIN and RBO_RES.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> other = pl.DataFrame({"user": [1, 1, 1], "item": ["b", "a", "d"], "rank": [1, 2, 3]})
    >>> rf.rbo(run, other, p=0.5)
    shape: (1, 4)
    ┌──────┬──────────┬──────────┬──────────────┐
    │ user ┆ rbo      ┆ rbo_min  ┆ rbo_residual │
    │ ---  ┆ ---      ┆ ---      ┆ ---          │
    │ i64  ┆ f64      ┆ f64      ┆ f64          │
    ╞══════╪══════════╪══════════╪══════════════╡
    │ 1    ┆ 0.416667 ┆ 0.386294 ┆ 0.072039     │
    └──────┴──────────┴──────────┴──────────────┘
    """
    if not is_number(p):
        msg = f"p must be a number between 0 and 1, not {p!r}"
        raise ValueError(msg)
    check_persistence(p)
    tables = read_runs(run, other, by, columns)
    keys, item = tables[0].keys, tables[0].item
    for table in tables:
        if table.tied:
            msg = f"{table.name}, column 'tied': rbo compares ranks, and a block of ties has none"
            raise RankingDataError(msg)
    for name in _MADE:
        if name in keys:
            msg = f"column {name!r}: rbo makes a column of this name: rename it"
            raise RankingDataError(msg)
    mine, theirs = _lists(tables, None if k is None else whole_number("k", k))
    ends = _ends(mine, theirs, keys, item)
    values = _values(_common(mine, theirs, [*keys, item]), ends, keys, p)
    flags = [*map(table_flag, tables), ends.select(suspect=any_violation(tables))]
    checked = guarded(values, flags, functools.partial(raise_first_broken, tables))
    return to_caller_type(checked.sort(keys), like=run)


def _lists(tables: Sequence[Table], k: int | None) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Bring both runs to keys, item and rank."""
    run, other = tables
    types = same_types(run, other)
    mine, theirs = (
        normalize_columns(table)
        .filter(pl.col("rank").is_not_null() if k is None else pl.col("rank") <= k)
        .select(*table.keys, table.item, "rank")
        .with_columns(pl.col(name).cast(dtype) for name, dtype in types.items())
        for table in tables
    )
    if lacking := [name for name in run.by if name not in other.by]:
        theirs = theirs.join(mine.select(lacking).unique(), how="cross")
    return mine, theirs


def _ends(mine: pl.LazyFrame, theirs: pl.LazyFrame, keys: Sequence[str], item: str) -> pl.LazyFrame:
    """Depths of the shorter and the longer list of each user, and what ``any_violation`` reads."""
    one, two = (
        lists.group_by(keys).agg(
            pl.col("rank").max().alias("__rankframe_end"),
            *check_aggregates(item, hit=pl.col("rank"), shared=shares_rank(tied=False)),
        )
        for lists in (mine, theirs)
    )
    both = one.join(two, on=keys, how="full", coalesce=True)

    def pair(name: str) -> list[pl.Expr]:
        return [pl.col(f"__rankframe_{name}"), pl.col(f"__rankframe_{name}_right")]

    ends = [end.fill_null(0) for end in pair("end")]
    return both.select(
        *keys,
        __rankframe_short=pl.min_horizontal(ends),
        __rankframe_long=pl.max_horizontal(ends),
        __rankframe_twice=pl.any_horizontal(pair("twice")),
        __rankframe_shared=pl.any_horizontal(pair("shared")),
        __rankframe_hit=pl.all_horizontal(end > 0 for end in ends),
    )


def _common(mine: pl.LazyFrame, theirs: pl.LazyFrame, row: Sequence[str]) -> pl.LazyFrame:
    """Give the items of both lists, with the ``place`` from which on both have it."""
    common = mine.join(theirs, on=row)
    return common.with_columns(__rankframe_place=pl.max_horizontal("rank", "rank_right"))


def _values(
    common: pl.LazyFrame, ends: pl.LazyFrame, keys: Sequence[str], p: float
) -> pl.LazyFrame:
    """An item that both have counts at all depths from its place on: Σ p^(d − 1)/d, a tail."""
    tails = overlap_tails(p)
    names = ("short", "long", "full", "found", "met", "tails", "place", "tail")
    short, long, full, found, met, summed, place, tail = (f"__rankframe_{n}" for n in names)
    items = with_tail(common, tails, place, tail).join(ends.select(*keys, short), on=keys)
    sums = items.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias(found),
        (pl.col(place) <= pl.col(short)).sum().cast(pl.Int64).alias(met),
        pl.col(tail).sum().alias(summed),
    )
    lists = ends.join(sums, on=keys, how="left").with_columns(
        pl.col(found, met, summed).fill_null(0)
    )
    # where the lists would be all alike if all that follows were
    lists = lists.with_columns((pl.col(short) + pl.col(long) - pl.col(found)).alias(full))
    for end in (short, long, full):
        lists = lists.with_columns((pl.col(end) + 1).alias(place))
        lists = with_tail(lists, tails, place, f"{end}_tail")

    def going(end: str) -> pl.Expr:
        return pl.lit(p).pow(pl.col(end))

    def beyond(end: str) -> pl.Expr:
        return (1 - p) * pl.col(f"{end}_tail")

    s, n, x, x_s = pl.col(short), pl.col(long), pl.col(found), pl.col(met)
    least = (1 - p) * pl.col(summed)
    residual = (
        *(going(short), going(long), -going(full)),
        -s * (beyond(short) - beyond(full)),
        -n * (beyond(long) - beyond(full)),
        -x * beyond(full),
    )
    # the shorter list goes on as it was, then both as they are at the end of the longer
    to_the_end = least - x * beyond(long)
    shorter = x_s / s * (going(short) - going(long)) - x_s * (beyond(short) - beyond(long))
    ever = ((x - x_s) / n + x_s / s) * going(long)
    extrapolated = pl.when(s > 0).then(to_the_end + shorter + ever)
    return lists.select(
        *keys,
        rbo=extrapolated.clip(0, 1),  # the sums round
        rbo_min=least.clip(0, 1),
        rbo_residual=pl.sum_horizontal(residual).clip(0, 1),
    )
