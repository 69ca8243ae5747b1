"""Lists in memory whose rows lie together: neighbors show what else would be counted in each."""

from __future__ import annotations

import polars as pl

from rankframe._request.labels import PREFIX
from rankframe._tables import rank_order, rules
from rankframe._tables.table import Table

#: The number of rows of a list.
ROWS = f"{PREFIX}rows"
_START, _GROUP = f"{PREFIX}start", f"{PREFIX}group"
_LAST = (1 << 63) - 1


def items_and_lists(table: Table, **any_of: pl.Expr) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    """Return the items, and the lists with ``ROWS`` and whether ``any_of`` their rows is so.

    Return None unless each list is one block of rows with the ranks 1, 2, 3, …, and its items are
    integers, none of which it has twice.
    """
    keys, item, ranges = table.keys, table.item, rank_order.id_ranges_of_lists(table)
    names = [*keys, item, *([] if table.rank is None else [table.rank])]
    rows, other = table.rows, table.tied or table.score is not None or item not in ranges
    if rows is None or other or not {*names} <= {*rows.columns}:
        return None
    if any(rows[name].null_count() or rows.schema[name].is_float() for name in names):
        return None
    # 0.5 and 0.4 of the time of ``health`` (November 2026)
    new = pl.any_horizontal(pl.col(name) != pl.col(name).shift(1) for name in keys)
    is_new = rows.select(new.fill_null(value=True)).to_series()
    if table.rank is not None:
        rank, is_whole = rules.as_rank(table.rank), rows.schema[table.rank].is_integer()
        place = pl.when(is_new).then(1).otherwise(rank.shift(1) + 1)
        if not is_whole or not rows.select(rank.eq_missing(place).all()).item():
            return None
    start, group = pl.col(_START), pl.lit(0)
    lists = rows.select(keys).with_row_index(_START).filter(is_new)
    lists = lists.with_columns((start.shift(-1, fill_value=len(rows)) - start).alias(ROWS))
    groups = lists.select(group.alias(_GROUP), *table.by).unique()
    if table.by:
        groups = groups.with_columns(pl.int_range(pl.len()).alias(_GROUP))
        lists = lists.join(groups, on=table.by, maintain_order="left")
        group = pl.col(_GROUP)
    (least, most), number = ranges[item], len(lists)
    width = most - least + 1
    if lists.select(keys).n_unique() < number or width * len(groups) * number > _LAST:
        return None
    # one number holds group, item and list
    of_list = lists.select(group * width * number + pl.int_range(number)).to_series()
    list_of = is_new.cum_sum() - 1
    codes = (rows[item].cast(pl.Int64) - least) * number + of_list.gather(list_of)
    codes = codes.sort()
    if (codes[1:] == codes[:-1]).any():
        return None
    codes //= number
    codes = codes.filter(codes.ne_missing(codes.shift(1)))
    items = groups[codes // width].with_columns((codes % width + least).alias(item))
    # what is so in a row is so in its list
    marks = table.frame.select(**any_of).collect(engine="in-memory")
    for mark in marks:
        ids = list_of.filter(mark).unique()
        lists = lists.with_columns(pl.int_range(number).is_in(ids.implode()).alias(mark.name))
    return items.select(*table.by, item), lists
