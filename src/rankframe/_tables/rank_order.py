"""Ranks, the order inside lists, and joins, by packed numbers: the code written for speed.

Stage of the pipeline: the frames that ``judgment`` puts into ``Joined`` get their order and ranks.

The roads from scores to ranks:

======================== ============================================= ========================
road                     when                                          time
======================== ============================================= ========================
``with_positions``       if no other road is open                      1.7 joins; by windows, 5
``_with_ranks_in_order`` only ids and ranks are read, from a table in  to see this, 1/20 of a
                         memory that is already in order               sort
``_ranked_by_score``     the same, in any order; floats and integers   1/2 of a sort of rows
``ranked``, by windows   ``ties="expected"``: one rank for each block
``with_places``          ranks with gaps, such as after ``exclude=``
``arrays.ranked_cells``  a matrix: some rows at a time, in NumPy       1/5 of a partition
======================== ============================================= ========================

User and item make one number to join on, list and place one to sort by; positions are differences
of row numbers. With 128 bits these are exact for 64-bit ids whatever their values. If bounds of the
values are known, as in a table in memory, 64 bits are as exact.

Comments give what each fast path gained in CPU time of five metrics in November 2026, on shape (c),
or (b), of ``benchmarks/data.py``. ``python -m benchmarks.paths`` measures them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypeAlias

import polars as pl

from rankframe import _sizes
from rankframe._request.types import Types
from rankframe._tables import adapters
from rankframe._tables.table import Table

#: The least and the greatest value of integer columns.
IdRanges: TypeAlias = Mapping[str, tuple[int, int]]

Ties: TypeAlias = Literal["item", "order", "expected", "pessimistic", "optimistic"]
#: those that read grades: the lowest of equal scores comes first, or the highest
BY_GRADE: tuple[Ties, ...] = ("pessimistic", "optimistic")

INDEX = "__rankframe_index"
#: where the places of a group begin, in rows of :func:`numbered_groups`
GROUP = "__rankframe_group"
#: the grade of a row of the run, null if it is not judged, where equal scores are ordered by it
GRADE = "__rankframe_grade"
_BEFORE, _AFTER = "__rankframe_before", "__rankframe_after"
_KEY, _ROW = "__rankframe_key", "__rankframe_row"
_START, _BLOCK = "__rankframe_start", "__rankframe_block"
_PACKED = "__rankframe_packed"
_NEW, _ALONE = "__rankframe_new", "__rankframe_alone"
#: whether the item above has the same rank, or neither is in the list and their numbers are equal,
#: in the result of :func:`in_rank_order`: true for each duplicate of the truth, rarely for others,
#: and not for an item of the run at two ranks, which makes more rows than the truth has
SHARES_RANK = "__rankframe_shares_rank"
#: users of text as categories, in the same result
USER_CODE = "__rankframe_user_code"
ORDER_COLUMNS = SHARES_RANK, USER_CODE
_ROWS = 1 << 32  # more than a table has
_HALF = 1 << 64  # the list makes the upper half of a packed number, the order in it the lower
_FIRST, _LAST = -(1 << 63), (1 << 63) - 1
_FACTOR = 0x1E3779B97F4A7C15  # odd: numbers of different pairs are rarely equal
#: Places for hits, and as many for misses, in one number with the group; 16 million groups fit.
#: Hits further down share the last place, as duplicates do, which raises a flag.
PLACES = 1 << 39

_row = pl.col(_ROW).cast(pl.Int64)
_position = _row - pl.col(_START) + 1


# ------------------------------------------------------------------ from scores to ranks


def ranked(
    frame: pl.LazyFrame,
    table: Table,
    *,
    descending: bool = True,
    ties: Ties = "item",
    single_precision: bool = False,
) -> pl.LazyFrame:
    """Rank by score; order ties by item id descending, input order or GRADE, or keep blocks."""
    assert table.score is not None
    score, dtype = pl.col(table.score), table.schema[table.score]
    if dtype.is_float():
        score = score.fill_nan(None)
    elif dtype == pl.Null:
        score = score.cast(pl.Float64)
    if single_precision:
        score = score.cast(pl.Float32)
    placed = score.is_not_null()
    tie = [-pl.col(INDEX).cast(pl.Int64) if ties == "order" else tie_of(table)]
    if ties in BY_GRADE:
        grade = pl.col(GRADE).clip(lower_bound=0).fill_null(0)
        tie = [grade if ties == "optimistic" else 0 - grade, *tie]
    if not descending:
        # negation overflows unsigned integers and is undefined for some types
        score = ~score if dtype.is_integer() else -score
    if ties == "expected":
        blocks = score.rank("min", descending=True).over(table.keys).cast(pl.Int64)
        size = pl.len().over([*table.keys, "rank"]).cast(pl.Int64)
        ranked = frame.with_columns(rank=pl.when(placed).then(blocks))
        return ranked.with_columns(tied=pl.when(pl.col("rank").is_not_null()).then(size))
    ranked = with_positions(frame, table.keys, table.schema, score, *tie)
    return ranked.with_columns(rank=pl.when(placed).then("rank"))


def ranked_alone(run: Table, types: Types, *, single_precision: bool) -> pl.LazyFrame | None:
    """Rank lists in memory that nothing else reads; return None if this may not be exact."""
    if run.score is None or run.rows is None or run.by:
        return None
    user, item, scores = (run.rows[name] for name in (run.user, run.item, run.score))
    scores = scores.cast(pl.Float32) if single_precision else scores
    floats = scores.dtype.is_float()
    if scores.null_count() or (floats and scores.is_nan().any()):
        return None
    plain = all(ids.dtype.is_integer() or ids.dtype == pl.String for ids in (user, item))
    apart = adapters.are_lists_apart(run.rows)
    # 1.7, (b) 1.2; of a dict 1.9
    if plain and _in_score_order(user, item, scores, apart=apart):
        ids = run.frame.select(pl.col(name).cast(types[name]) for name in (run.user, run.item))
        return _with_ranks_in_order(ids, run.user)
    if not floats:
        return None
    score = pl.col(run.score).cast(scores.dtype)
    return _ranked_by_score(run, types, score)


def with_positions(
    rows: pl.LazyFrame, keys: Sequence[str], types: Types, score: pl.Expr, *ties: pl.Expr
) -> pl.LazyFrame:
    """Add ``rank``, the position in the list by score, then ties: all descending, null last."""
    # 100 k users × 100: about 1.7 of the time of a bare join, a window over all rows about 5
    cached = rows.cache()
    numbers = _numbers_in_order(cached, keys, types, score)
    ordered = numbers
    if ordered is None:
        number = (-_number(score.cast(pl.Float64))).fill_null(_LAST)
        ordered = _ordered(rows, keys, types, number)
    new = (_row == pl.col(_START)) | pl.col(_KEY).ne_missing(pl.col(_KEY).shift(1))
    # only rows whose numbers are equal need the exact rule
    alone = new & new.shift(-1, fill_value=True)
    ordered = ordered.with_columns(new.alias(_NEW), alone.alias(_ALONE))
    block = _first(pl.col(_NEW))
    if numbers is not None:
        places = ordered.select(INDEX, _START, _ALONE, block.alias(_ROW)).sort(INDEX).drop(INDEX)
        # as "horizontal", of which the oldest Polars warns
        ordered, block = pl.concat([cached, places], how="horizontal_extend"), _row
    # cached, else it is sorted twice, since its readers need different columns
    ordered = ordered.cache()
    exact = pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over(
        _BLOCK, order_by=[score, *ties], descending=True, nulls_last=True
    )
    apart = ordered.filter(pl.col(_ALONE)).with_columns(rank=_position)
    equal = ordered.filter(~pl.col(_ALONE)).with_columns(block.alias(_BLOCK))
    equal = equal.with_columns(rank=pl.col(_BLOCK) - pl.col(_START) + exact).drop(_BLOCK)
    own = _KEY, _ROW, _START, _NEW, _ALONE
    return pl.concat([apart, equal]).drop(own, strict=False)


def _numbers_in_order(
    rows: pl.LazyFrame, keys: Sequence[str], types: Types, score: pl.Expr
) -> pl.LazyFrame | None:
    """Sort lists of users of text by score, without moving any text; ``INDEX`` has the rows.

    List, score in 32 bits and row make one number. It may tie scores that 64 bits tell apart.
    Return None for users of other types.
    """
    # shuffled 1.0, (b) 1.05, and 12 M rows take 0.6 GB less; integers 0.95
    *groups, user = keys
    if types[user] != pl.String:
        return None
    code = pl.col(user).cast(pl.Categorical).to_physical().fill_null(0)  # null breaks a rule
    bits = score.cast(pl.Float64).cast(pl.Float32).reinterpret(dtype=pl.Int32).cast(pl.Int64)
    place = pl.when(bits < 0).then(bits + _ROWS // 2).otherwise(-bits).fill_null(_ROWS // 2 - 1)
    packed = code.cast(pl.Int128) * _HALF + (1 << 63) + (place * _ROWS + _row)
    ordered = rows.with_row_index(_ROW).select(*groups, packed.alias(_KEY)).sort(*groups, _KEY)
    key = pl.col(_KEY)
    index = key.cast(pl.Int64, wrap_numerical=True) & (_ROWS - 1)
    parts = {user: key & -_HALF, _KEY: key & -_ROWS, INDEX: index.cast(pl.UInt32)}
    return _with_starts(ordered.select(*groups, **parts), keys)


def with_places(
    lists: pl.LazyFrame, keys: Sequence[str], *, tied: bool, suffix: str = "", rank: str = "rank"
) -> pl.LazyFrame:
    """Number the places of each list from 1 in the order of ``rank``; blocks of ties stay blocks.

    With a suffix, the numbers are in columns of their own.
    """
    # a place that several items share, against the rules, counts once: no rank falls below 1
    place = pl.col(rank).rank("min" if tied else "dense").over(keys).cast(pl.Int64)
    columns = [place.alias(f"{rank}{suffix}")]
    if tied:
        size = pl.len().over([*keys, rank]).cast(pl.Int64)
        columns.append(pl.when(pl.col(rank).is_not_null()).then(size).alias(f"tied{suffix}"))
    return lists.with_columns(columns)


def moved_up(
    lists: pl.LazyFrame,
    keys: Sequence[str],
    removed: Callable[[pl.LazyFrame], pl.LazyFrame],
    *,
    tied: bool,
    rank: str = "rank",
) -> pl.LazyFrame:
    """Remove rows from the lists, and move up those below; gaps that were there stay."""
    kept = removed(with_places(lists, keys, tied=tied, suffix=_BEFORE, rank=rank))
    kept = with_places(kept, keys, tied=tied, suffix=_AFTER, rank=rank)
    names = [rank, *(["tied"] if tied else [])]
    moved = [pl.col(n) - (pl.col(f"{n}{_BEFORE}") - pl.col(f"{n}{_AFTER}")) for n in names]
    return kept.with_columns(moved).drop(f"{n}{end}" for n in names for end in (_BEFORE, _AFTER))


def tie_of(table: Table) -> pl.Expr:
    """Return the item id by which equal scores are ordered, descending: categories as text."""
    return as_comparable(table.item, table.schema[table.item])


def as_comparable(name: str, dtype: pl.DataType) -> pl.Expr:
    """Read ids in the order of their values; categories are numbered as they appear."""
    column = pl.col(name)
    return column.cast(pl.String) if isinstance(dtype, pl.Categorical | pl.Enum) else column


def _in_score_order(
    user: pl.Series, item: pl.Series, score: pl.Series, *, apart: bool = False
) -> bool:
    """Return whether lists are in order: by user, then score and item, both descending.

    Lists that are known to lie ``apart`` may have their users in any order.
    """
    few = 1_000
    if len(user) > few and not _in_score_order(user[:few], item[:few], score[:few], apart=apart):
        return False
    above, below = slice(0, -1), slice(1, None)
    same = user[below] == user[above]
    falls = (user[below] > user[above] if not apart else ~same) | (
        same & (score[below] < score[above])
    )
    rest = (~falls).arg_true()
    if len(rest) > len(user) / 4:  # sorting takes no longer than looking further
        return False
    tied = same.gather(rest) & (score[below].gather(rest) == score[above].gather(rest))
    return (tied & (item[below].gather(rest) <= item[above].gather(rest))).all()


def _with_ranks_in_order(rows: pl.LazyFrame, user: str) -> pl.LazyFrame:
    """Add ``rank`` to lists that are in order."""
    placed = _with_starts(rows, [user])
    return placed.with_columns(rank=_position).drop(_ROW, _START)


def _ranked_by_score(run: Table, types: Types, score: pl.Expr) -> pl.LazyFrame | None:
    """Return user, item and rank by score, for equal scores by item, descending, in rank order.

    Return None if list, score and item may not fit in 128 bits. No score may be null.
    """
    user, item, id_ranges = run.user, run.item, id_ranges_of_lists(run)
    if not {user, item} <= id_ranges.keys():
        return None
    (first, last), (least, most) = id_ranges[user], id_ranges[item]
    width = (most - least).bit_length()
    if (last - first).bit_length() + 64 + width > 126:
        return None
    # sorting only numbers, which have no ties and hold everything: 2.2
    place = (-_number(score.cast(pl.Float64))).cast(pl.Int128) + (1 << 63)
    code = (pl.col(user).cast(pl.Int128) - first) * _HALF + place
    packed = code * (1 << width) + (most - pl.col(item).cast(pl.Int64))
    ordered = run.frame.select(packed.alias(_PACKED)).sort(_PACKED)
    low = pl.col(_PACKED).cast(pl.Int64, wrap_numerical=True) & ((1 << width) - 1)
    ids = ordered.select(
        ((pl.col(_PACKED) // (_HALF << width)).cast(pl.Int64) + first)
        .cast(types[user])
        .alias(user),
        (most - low).cast(types[item]).alias(item),
    )
    return _with_ranks_in_order(ids, user)


# ------------------------------------------------------------------ ranges of ids in memory


def id_ranges_of(run: Table, truth: Table) -> dict[str, tuple[int, int]]:
    """Look up ranges of the ids of the truth, ranks and grades, in tables that are in memory."""
    id_ranges: dict[str, tuple[int, int]] = {}
    if truth.rows is not None:
        for name in (truth.user, truth.item):
            id_ranges |= _id_range(truth.rows, name, name)
        if truth.relevance is not None:
            id_ranges |= _id_range(truth.rows, truth.relevance, "relevance")
    if truth.relevance is None:
        id_ranges["relevance"] = 1, 1
    if run.rows is not None and run.rank is not None:
        id_ranges |= _id_range(run.rows, run.rank, "rank")
    elif run.rows is not None:  # made from a score
        id_ranges["rank"] = 1, run.rows.height
    return id_ranges


def id_ranges_of_lists(run: Table) -> dict[str, tuple[int, int]]:
    """Look up ranges of ids in lists that are in memory."""
    if run.rows is None:
        return {}
    return _id_range(run.rows, run.user, run.user) | _id_range(run.rows, run.item, run.item)


def _id_range(rows: pl.DataFrame, column: str, name: str) -> dict[str, tuple[int, int]]:
    values = rows[column]
    if values.dtype == pl.Boolean:
        return {name: (0, 1)}
    least, most = (values.min(), values.max()) if values.dtype.is_integer() else (None, None)
    if not (isinstance(least, int) and isinstance(most, int)):
        return {}
    return {name: (least, most)} if least >= -(1 << 63) and most < 1 << 63 else {}


# ------------------------------------------------------------------ order inside lists


def in_rank_order(
    rows: pl.LazyFrame,
    keys: Sequence[str],
    item: str,
    types: Types,
    id_ranges: IdRanges = MappingProxyType({}),
    *,
    numbered: Sequence[str] = (),
) -> pl.LazyFrame:
    """Sort the lists by rank, null last; add ``ideal_place`` and ``ideal_relevance``.

    Items that were not retrieved follow by a number of their id, the same in whatever order the
    rows came. Duplicates are neighbors. ``numbered`` names the groups that ``GROUP`` numbers.
    """
    user = keys[-1]
    if types[user] == pl.String:  # to sort and group text takes twice the time
        coded = rows.with_columns(pl.col(user).cast(pl.Categorical))
        types = {**types, user: pl.Categorical()}
        coded = in_rank_order(coded, keys, item, types, id_ranges, numbered=numbered)
        return coded.with_columns(pl.col(user).alias(USER_CODE), pl.col(user).cast(pl.String))
    # 1 M users × 10, grouping included: 1.06 of the CPU time of a bare join, with windows 1.58
    number = _number_of_item(item, types[item])
    if numbered:
        # of a sort by two columns, half of the time and 0.6 of the memory
        miss = PLACES + (number.hash() & (PLACES - 1)).cast(pl.Int64)
        place = (pl.col("rank") - 1).clip(upper_bound=PLACES - 1).fill_null(miss)
        ordered = _ordered(rows, keys, types, pl.col(GROUP) + place, numbered=numbered)
    else:
        by_ranges = _by_id_ranges(rows, keys, item, types, id_ranges)
        place = (pl.col("rank") - 1 + _FIRST).fill_null(number)
        ordered = _ordered(rows, keys, types, place) if by_ranges is None else by_ranges
    above = pl.col(_KEY) == pl.col(_KEY).shift(1)
    placed = ordered.with_columns(
        (above & (_row != pl.col(_START))).alias(SHARES_RANK),
        ideal_place=_position,
        ideal_relevance=_ideal(id_ranges.get("relevance", (0, 1))),
    )
    return placed.drop(_KEY, _ROW, _START, *([GROUP] if numbered else []))


def grouped_by_list(
    ordered: pl.LazyFrame, keys: Sequence[str], types: Types, aggregates: Sequence[pl.Expr]
) -> pl.LazyFrame:
    """Reduce each list in the result of :func:`in_rank_order` to one row."""
    *groups, user = keys
    if types[user] != pl.String:
        return ordered.group_by(keys).agg(aggregates)
    lists = ordered.group_by(*groups, USER_CODE).agg(aggregates)
    return lists.with_columns(pl.col(USER_CODE).cast(pl.String).alias(user))


def _by_id_ranges(
    rows: pl.LazyFrame, keys: Sequence[str], item: str, types: Types, id_ranges: IdRanges
) -> pl.LazyFrame | None:
    """Sort by list and place in 64 bits, or return None if they may not fit."""
    # 1.0, (b) 1.2, with groups 1.1, (b) 1.1
    user = keys[-1]
    if not {user, item, "rank"} <= id_ranges.keys() or id_ranges[item][0] < 0:
        return None
    first, last = id_ranges[user]
    deepest = max(id_ranges["rank"][1], id_ranges[item][1] + 1, 1)
    half = 1 << deepest.bit_length()  # hits, then misses
    if (last - first + 1) * 2 * half > _LAST:
        return None
    place = (pl.col("rank") - 1).fill_null(pl.col(item).cast(pl.Int64) + half)
    code = (pl.col(user).cast(pl.Int64) - first) * (2 * half)
    return _ordered(rows, keys, types, place, code)


def _ideal(grades: tuple[int, int]) -> pl.Expr:
    """Return the grades of each list, best first: sorted numbers keep each list in place."""
    relevance = pl.col("relevance").cast(pl.Float64)
    grade = pl.when(relevance > 0).then(relevance).otherwise(0.0)
    if grades[0] == grades[1]:  # 1.1, (b) 1.2
        return grade
    number = grade.reinterpret(dtype=pl.Int64)  # in the order of the grades, and ≥ 0
    start = pl.col(_START).cast(pl.Int128) * _HALF
    best_first = start - (start - number).sort()
    return best_first.cast(pl.Int64).reinterpret(dtype=pl.Float64)


def numbered_groups(groups: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Add ``GROUP``, with which one number holds user, group and place, up to 16 million."""
    # three groups: 1.2 to 1.4, (b) 1.4
    start = pl.col(GROUP).cast(pl.Int128) * (2 * PLACES) + _FIRST
    return groups.sort(names).with_row_index(GROUP).with_columns(start.cast(pl.Int64))


def distinct(rows: pl.LazyFrame, names: Sequence[str]) -> pl.LazyFrame:
    """Return what the rows have in these columns once."""
    # a row with the values of the row above adds nothing; 1,000 groups: 1.8
    new = [(pl.col(name) != pl.col(name).shift(1)).fill_null(value=True) for name in names]
    is_new = pl.any_horizontal(pl.lit(value=False), *new)
    # not LazyFrame.filter: Polars 1.44 panics where it pushes one down to a cache
    return rows.select(pl.col([*names]).filter(is_new)).unique()


def are_distinct(table: Table) -> bool:
    """Return whether lists in memory lie together, in rank order, and have no item twice.

    False also where looking for this would take longer than counting distinct items.
    """
    if adapters.are_lists_apart(table.rows):  # 1.1
        return True
    ids = [table.user, table.item]
    codes = [_code(name, table.schema[name]) for name in ids if table.schema[name].is_integer()]
    user, item = codes if len(codes) == 2 else (None, None)
    if table.rows is None or table.by or table.subtopic or user is None or item is None:
        return False
    rows = table.rows.select([*ids, *([] if table.rank is None or table.tied else [table.rank])])
    if len(rows) < _sizes.ROWS_COMPARED or any(column.null_count() for column in rows):
        return False
    for part in (rows.head(_sizes.FIRST_ROWS), rows):
        lists = part[table.user].rle().struct.unnest()
        if len(lists) * 4 > len(part) or not _are_in_rank_order(part):
            return False
    longest: Any = lists["len"].max()
    if longest > _sizes.ITEMS_COMPARED or lists["value"].n_unique() < len(lists):
        return False
    # lists of 10: 1.1 to 1.2. Two rows of a list are less than its length apart
    pair = user.cast(pl.Int64) * _FACTOR + item.cast(pl.Int64)
    # the lower half is compared in a third of the time, and rarely equal for different pairs
    pairs = rows.select(pair.cast(pl.Int32, wrap_numerical=True)).to_series()
    return not any((pairs[far:] == pairs[:-far]).any() for far in range(1, longest))


def _are_in_rank_order(rows: pl.DataFrame) -> bool:
    """Return whether each row of user, item and perhaps rank has another user or a greater rank."""
    user, _, *ranks = rows
    below, above = slice(1, None), slice(0, -1)
    return all(((user[below] != user[above]) | (rank[below] > rank[above])).all() for rank in ranks)


def pair_codes(
    user: str, item: str, types: Types, id_ranges: IdRanges
) -> tuple[pl.Expr, pl.Expr] | None:
    """Return one number for each pair of integer ids in the lists, and in the truth.

    Return None if one of the ids is not an integer of at most 64 bits.
    """
    # instead of a join on both columns, which are row-encoded for it: 1.3, (b) 1.3
    if not (types[user].is_integer() and types[item].is_integer()):
        return None
    upper, lower = _code(user, types[user]), _code(item, types[item])
    if upper is None or lower is None:
        return None
    if {user, item} <= id_ranges.keys() and pl.UInt64 not in (types[user], types[item]):
        first, last = id_ranges[user]
        least, most = id_ranges[item]
        if (last - first + 1) * (most - least + 1) <= _LAST:  # 1.1 to 1.3, (b) 1.3
            rest = lower.cast(pl.Int64) - least
            code = (upper.cast(pl.Int64) - first) * (most - least + 1) + rest
            inside = upper.is_between(first, last) & lower.is_between(least, most)
            return pl.when(inside).then(code).otherwise(-1), code
    wide = upper.cast(pl.Int128) * _HALF + lower.cast(pl.Int128)  # wraps, and stays exact
    return wide, wide


def _ordered(
    rows: pl.LazyFrame,
    keys: Sequence[str],
    types: Types,
    number: pl.Expr,
    list_code: pl.Expr | None = None,
    numbered: Sequence[str] = (),
) -> pl.LazyFrame:
    """Sort by the keys, then by a signed 64-bit number, and note where each list starts.

    With ``list_code``, the sum of both has the order. The number tells ``numbered`` groups apart.
    """
    *groups, user = keys
    groups = [name for name in groups if name not in numbered]
    code = _code(user, types[user])
    if list_code is not None:
        number = list_code + number
        of_group = _code(groups[-1], types[groups[-1]]) if groups else None
        if of_group is not None:  # a sort by two columns: 1.06, (a) 1.15, (b) 1.0
            groups.pop()
            number = of_group.cast(pl.Int128) * _HALF + number
        ordered = rows.with_columns(number.alias(_KEY)).sort(*groups, _KEY)
    elif code is None:
        ordered = rows.with_columns(number.alias(_KEY)).sort(*groups, user, _KEY)
    else:
        packed = code.cast(pl.Int128) * _HALF + (1 << 63) + number  # from -2^127 to 2^127 - 1
        ordered = rows.with_columns(packed.alias(_KEY)).sort(*groups, _KEY)
    return _with_starts(ordered, keys)


def _with_starts(ordered: pl.LazyFrame, keys: Sequence[str]) -> pl.LazyFrame:
    new = pl.any_horizontal([pl.col(name).ne_missing(pl.col(name).shift(1)) for name in keys])
    return ordered.with_row_index(_ROW).with_columns(_first(new).alias(_START))


def _first(new: pl.Expr) -> pl.Expr:
    """Return the number of the last row that was new."""
    return pl.when(new).then(_row).otherwise(0).cum_max()


def _number(value: pl.Expr) -> pl.Expr:
    """Return whole numbers in the order of the floats; 0.0 and -0.0 are one."""
    bits = value.reinterpret(dtype=pl.Int64)
    return pl.when(bits < 0).then(-(1 << 63) - bits).otherwise(bits)


def _number_of_item(item: str, dtype: pl.DataType) -> pl.Expr:
    """Return a number ≥ 0 for each item, the same for equal ones and rarely for others."""
    if dtype.is_integer() and (code := _code(item, dtype)) is not None:
        return code.cast(pl.Int64) & _LAST
    return (as_comparable(item, dtype).hash() // 2).cast(pl.Int64)


def _code(user: str, dtype: pl.DataType) -> pl.Expr | None:
    """Return a signed 64-bit number for each user, or None where the type has none."""
    if dtype == pl.String:
        return pl.col(user).cast(pl.Categorical).to_physical()
    if isinstance(dtype, pl.Categorical | pl.Enum) or dtype.is_temporal():
        return pl.col(user).to_physical()
    if dtype == pl.UInt64:
        return pl.col(user).reinterpret(signed=True)
    wide = isinstance(dtype, pl.Int128 | pl.UInt128)
    return pl.col(user) if dtype.is_integer() and not wide else None
