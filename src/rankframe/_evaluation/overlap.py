"""How similar two runs are: rank-biased overlap, and common items of the first k."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Unpack

import polars as pl

from rankframe._request import gain_functions, keywords
from rankframe._request.keywords import Columns, Duplicates
from rankframe._request.types import Frame, FrameT, Runs
from rankframe._tables import adapters, guards, judgment, readers, repeated_items, rules, run_dicts
from rankframe._tables.table import Table
from rankframe._vocabulary import derived_columns
from rankframe.metrics import _building_blocks

_ITEMS, _COMMON = "__rankframe_items", "__rankframe_common"
_MADE = ("rbo", "rbo_min", "rbo_residual")


@adapters.takes_any_frame
def rbo(
    run: Runs[FrameT],
    /,
    other: Frame,
    *,
    p: float = 0.9,
    k: int | None = None,
    by: str | Sequence[str] = (),
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Rank-biased overlap of two runs: (1 − p)·Σ p^(d − 1)·(items both have in their first d) / d.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    other
        The run to compare with; its columns have the same names.
    p
        Persistence: the chance that a reader goes on to the next depth, 0 < p < 1. The first ten
        depths have 86% of the weight for p = 0.9, the first fifty for 0.98.
    k
        Cut both runs to this depth first.
    by
        Columns of segments, such as country, fold or day. If the other run has the column, it is
        joined on it too; otherwise it is compared with every group.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per user of either run, sorted: by…, user, ``rbo``, extrapolated to infinite lists;
        ``rbo_min``, the least value that any continuation of the lists can yield; and
        ``rbo_residual``, the most that a continuation can add to it. All are in [0, 1]. For a user
        missing from one run, they are null, 0 and 1.

    Notes
    -----
    Lists may differ in length: items below the end of the shorter one are unknown, not missing.
    Webber, Moffat and Zobel, *ACM TOIS* 28(4), 2010, call the columns RBO_EXT, RBO_MIN and RBO_RES.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "rank": [1, 2, 3]})
    >>> other = pl.DataFrame({"user": [1, 1, 1], "item": ["b", "a", "d"], "rank": [1, 2, 3]})
    >>> rf.runs.rbo(run, other, p=0.5)
    shape: (1, 4)
    ┌──────┬──────────┬──────────┬──────────────┐
    │ user ┆ rbo      ┆ rbo_min  ┆ rbo_residual │
    │ ---  ┆ ---      ┆ ---      ┆ ---          │
    │ i64  ┆ f64      ┆ f64      ┆ f64          │
    ╞══════╪══════════╪══════════╪══════════════╡
    │ 1    ┆ 0.416667 ┆ 0.386294 ┆ 0.072039     │
    └──────┴──────────┴──────────┴──────────────┘
    """
    run, by, columns = run_dicts.as_frame(run, by, columns, duplicates=duplicates)
    keywords.check_fraction("p", p)
    tables = _opened("rbo", run, other, by, columns, _MADE, duplicates)
    keys, item = tables[0].keys, tables[0].item
    lists, other_lists = _lists(tables, None if k is None else keywords.whole_number("k", k))
    ends = _ends(lists, other_lists, keys, item)
    values = _values(_common(lists, other_lists, [*keys, item]), ends, keys, p)
    checked = _guarded(values, ends, tables)
    return adapters.to_caller_type(checked.sort(keys), like=run, beside=[other])


@adapters.takes_any_frame
def overlap(
    run: Runs[FrameT],
    /,
    other: Frame,
    *,
    k: int,
    by: str | Sequence[str] = (),
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Overlap of two runs: items that both have among their first k / k, and their Jaccard index.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    other
        The run to compare with; its columns have the same names.
    k
        Cut-off.
    by
        Columns of segments, such as country, fold or day. If the other run has the column, it is
        joined on it too; otherwise it is compared with every group.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per user of either run, sorted: by…, user, ``overlap@k`` = common / k and
        ``jaccard@k`` = common / items of either (Float64 in [0, 1]). For a user missing from
        one run, both are 0.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    >>> other = pl.DataFrame({"user": [1, 1], "item": ["b", "d"], "rank": [1, 2]})
    >>> rf.runs.overlap(run, other, k=2).rows()
    [(1, 0.5, 0.3333333333333333)]
    """
    run, by, columns = run_dicts.as_frame(run, by, columns, duplicates=duplicates)
    k = keywords.whole_number("k", k)
    names = f"overlap@{k}", f"jaccard@{k}"
    tables = _opened("overlap", run, other, by, columns, names, duplicates)
    keys, item = tables[0].keys, tables[0].item
    lists, other_lists = _lists(tables, k)
    whole = [rows.select(keys) for rows in _lists(tables, None)]
    ends = _ends(lists, other_lists, keys, item)
    both = lists.join(other_lists, on=[*keys, item]).group_by(keys).agg(pl.len().alias(_COMMON))
    sizes = pl.concat([lists.select(keys), other_lists.select(keys)]).group_by(keys)
    counts = sizes.agg(pl.len().alias(_ITEMS)).join(both, on=keys, how="left")
    users = pl.concat(whole).unique().join(counts, on=keys, how="left")
    users = users.with_columns(pl.col(_ITEMS, _COMMON).fill_null(0).cast(pl.Float64))
    common, either = pl.col(_COMMON), pl.col(_ITEMS) - pl.col(_COMMON)
    values = users.select(
        *keys,
        gain_functions.divided(common, k).alias(names[0]),
        _building_blocks.share(common, either).alias(names[1]),
    )
    checked = _guarded(values, ends, tables)
    return adapters.to_caller_type(checked.sort(keys), like=run, beside=[other])


def _guarded(values: pl.LazyFrame, ends: pl.LazyFrame, tables: Sequence[Table]) -> pl.LazyFrame:
    """Return the values, checked when the plan runs."""
    flags = [
        *map(guards.table_flag, tables),
        guards.flag(ends, guards.any_violation(), doubt=guards.any_doubt(tables)),
    ]
    raise_broken, raise_global = (
        functools.partial(check, tables)
        for check in (rules.raise_in_tables, rules.raise_first_global)
    )
    return guards.guarded(values, flags, raise_broken, raise_global=raise_global)


def _opened(
    verb: str,
    run: Frame,
    other: Frame,
    by: str | Sequence[str],
    columns: Columns,
    names: Sequence[str],
    duplicates: Duplicates,
) -> list[Table]:
    """Read both runs, and check that ``verb`` can compare them."""
    tables = readers.read_runs(run, other, by, columns)
    for table in tables:
        rules.raise_if_tied(table, f" for {verb} to compare")
    rules.raise_if_taken(verb, names, tables[0].keys)
    return [repeated_items.once(table, duplicates) for table in tables]


def _lists(tables: Sequence[Table], k: int | None) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """Reduce both runs to keys, item and rank."""
    run, other = tables
    types = rules.same_types(run, other)
    lists, other_lists = (
        judgment.normalize_columns(table)
        .filter(pl.col("rank").is_not_null() if k is None else pl.col("rank") <= k)
        .select(*table.keys, table.item, "rank")
        .with_columns(pl.col(name).cast(dtype) for name, dtype in types.items())
        for table in tables
    )
    if lacking := [name for name in run.by if name not in other.by]:
        other_lists = other_lists.join(lists.select(lacking).unique(), how="cross")
    return lists, other_lists


def _ends(
    lists: pl.LazyFrame, other_lists: pl.LazyFrame, keys: Sequence[str], item: str
) -> pl.LazyFrame:
    """Depths of the shorter and longer list of each user, and columns for ``any_violation``."""
    ends_of_run, ends_of_other = (
        side.group_by(keys).agg(
            pl.col("rank").max().alias("__rankframe_end"),
            *guards.check_aggregates(
                item, hit=pl.col("rank"), shared=guards.shares_rank(tied=False)
            ),
        )
        for side in (lists, other_lists)
    )
    both = ends_of_run.join(ends_of_other, on=keys, how="full", coalesce=True)

    def pair(name: str) -> list[pl.Expr]:
        return [pl.col(name), pl.col(f"{name}_right")]

    ends = [end.fill_null(0) for end in pair("__rankframe_end")]
    return both.select(
        *keys,
        pl.any_horizontal(pair(guards.DUPLICATE)).alias(guards.DUPLICATE),
        pl.any_horizontal(pair(guards.SHARED)).alias(guards.SHARED),
        pl.all_horizontal(end > 0 for end in ends).alias(guards.HIT),
        __rankframe_short=pl.min_horizontal(ends),
        __rankframe_long=pl.max_horizontal(ends),
    )


def _common(lists: pl.LazyFrame, other_lists: pl.LazyFrame, row: Sequence[str]) -> pl.LazyFrame:
    """Return the items of both lists, with ``place``: the first depth at which both have it."""
    common = lists.join(other_lists, on=row)
    return common.with_columns(__rankframe_place=pl.max_horizontal("rank", "rank_right"))


def _values(
    common: pl.LazyFrame, ends: pl.LazyFrame, keys: Sequence[str], p: float
) -> pl.LazyFrame:
    """A common item counts at every depth from its place on: Σ p^(d − 1)/d, a tail."""
    tails = derived_columns.overlap_tails(p)
    names = ("short", "long", "full", "overlap", "overlap_short", "tails", "place", "tail")
    short, long, full, overlap, overlap_short, summed, place, tail = (
        f"__rankframe_{name}" for name in names
    )
    items = derived_columns.with_tail(common, tails, place, tail).join(
        ends.select(*keys, short), on=keys
    )
    sums = items.group_by(keys).agg(
        pl.len().cast(pl.Int64).alias(overlap),
        (pl.col(place) <= pl.col(short)).sum().cast(pl.Int64).alias(overlap_short),
        pl.col(tail).sum().alias(summed),
    )
    lists = ends.join(sums, on=keys, how="left").with_columns(
        pl.col(overlap, overlap_short, summed).fill_null(0)
    )
    # the depth at which the lists have the same items, if all items that follow are common
    lists = lists.with_columns((pl.col(short) + pl.col(long) - pl.col(overlap)).alias(full))
    for end in (short, long, full):
        lists = lists.with_columns((pl.col(end) + 1).alias(place))
        lists = derived_columns.with_tail(lists, tails, place, f"{end}_tail")

    def power(end: str) -> pl.Expr:
        return pl.lit(p).pow(pl.col(end))

    def tail_below(end: str) -> pl.Expr:
        return (1 - p) * pl.col(f"{end}_tail")

    s, n, x, x_s = pl.col(short), pl.col(long), pl.col(overlap), pl.col(overlap_short)
    least = (1 - p) * pl.col(summed)
    residual = (
        *(power(short), power(long), -power(full)),
        -s * (tail_below(short) - tail_below(full)),
        -n * (tail_below(long) - tail_below(full)),
        -x * tail_below(full),
    )
    # extrapolate the shorter list to the end of the longer one, then both from there
    seen = least - x * tail_below(long)
    extended = x_s / s * (power(short) - power(long)) - x_s * (tail_below(short) - tail_below(long))
    endless = ((x - x_s) / n + x_s / s) * power(long)
    extrapolated = pl.when(s > 0).then(seen + extended + endless)
    return lists.select(
        *keys,
        rbo=extrapolated.clip(0, 1),  # floating-point rounding can leave the range slightly
        rbo_min=least.clip(0, 1),
        rbo_residual=pl.sum_horizontal(residual).clip(0, 1),
    )
