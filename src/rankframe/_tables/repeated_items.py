"""Items that come several times in a list: each has its best place, and the others go.

Stage of the pipeline: a ``Table`` that was read becomes one whose lists have each item once.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, get_args

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Duplicates
from rankframe._tables import rank_order, rules
from rankframe._tables.rank_order import INDEX
from rankframe._tables.table import Table
from rankframe.errors import option

_APART = "__rankframe_apart"


def once(table: Table, duplicates: Duplicates, **ranking: Any) -> Table:
    """Keep the best row of each item of a list; one with scores gets its places as ``rank``.

    The options of ``ranking`` are those of ``rank_order.ranked``. Rows that break a rule stay, and
    so do those of a judged table that have another grade or no rank: a flag is raised for each.
    """
    keywords.check_choice("duplicates", duplicates, get_args(Duplicates))
    if duplicates == "error" or table.passed is not None:
        return table
    if duplicates == "occupy":
        rules.raise_if_tied(table, f" for {option('duplicates', 'occupy')} to keep")
    rows, rank, row = table.frame, table.rank or "rank", table.row
    apart = pl.any_horizontal(rule.broken for rule in rules.row_rules(table))
    if table.rank is None:
        rows = rank_order.ranked(rows.with_row_index(INDEX), table, **ranking)
        rows = rows.sort(INDEX).drop(INDEX)
    if table.relevance is not None:
        row = [*row, table.relevance]
        apart |= pl.col(rank).is_null()
    rows = rows.with_columns(pl.when(apart).then(pl.int_range(pl.len())).alias(_APART))
    best = pl.col(rank).eq_missing(pl.col(rank).min().over(row)) | pl.col(_APART).is_not_null()

    def kept(lists: pl.LazyFrame) -> pl.LazyFrame:
        first = lists.filter(best).unique([*row, _APART], keep="first", maintain_order=True)
        return first.drop(_APART)

    if duplicates == "first":
        rows = rank_order.moved_up(rows, table.keys, kept, tied=table.tied, rank=rank)
    else:
        rows = kept(rows)
    return replace(table, frame=rows.cache(), rows=None, passed=table.frame)
