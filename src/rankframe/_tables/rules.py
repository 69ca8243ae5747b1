"""The rules on the rows of tables, and the thorough messages for broken ones.

Stage of the pipeline: no record comes out; ``guards`` makes flags of the rules of a ``Table``.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from rankframe import _sizes
from rankframe._tables import adapters
from rankframe._tables.table import TRUTH, TRUTHS, Policy, Table
from rankframe.errors import RankingDataError, code, option, table_code, wording


def same_types(left: Table, right: Table) -> dict[str, pl.DataType]:
    """Return the common type of each key column that both tables have, or raise."""
    types: dict[str, pl.DataType] = {}
    for name in [name for name in [*right.keys, right.item] if name in left.schema]:
        in_left, in_right = left.schema[name], right.schema[name]
        if in_left == in_right:
            types[name] = in_left
            continue
        if pl.Null in (in_left, in_right):  # a column of nulls fits any type
            types[name] = in_right if in_left == pl.Null else in_left
            continue
        if name in left.by and isinstance(in_left, pl.Enum) and in_right == pl.String:
            types[name] = _with_levels_of(in_left, right, name)
            continue
        integers = [dtype.is_integer() for dtype in (in_left, in_right)]
        common = common_integer(in_left, in_right) if all(integers) else None
        if common is None:
            rule = "ids must have the same type in both tables, or any two integer types"
            cure = NO_INTEGER if all(integers) else f"cast one; {rule}"
            msg = (
                f"column {name!r}: it is {adapters.type_words(in_left, in_right)} in the "
                f"{left.name} and {adapters.type_words(in_right, in_left)} in the {right.name}: "
                f"{cure}"
            )
            if any(integers) and (in_left.is_float() or in_right.is_float()):
                msg += code(" (pandas turns integers into floats where one is missing)")
            raise RankingDataError(msg)
        types[name] = common
    return types


def _with_levels_of(levels: pl.Enum, table: Table, name: str) -> pl.DataType:
    """Add the texts of a table in memory behind the levels; a plan's are not known: use text."""
    if table.rows is None:
        return pl.String()
    texts = table.rows[name].drop_nulls().unique().sort()
    return pl.Enum(pl.concat([levels.categories, texts]).unique(maintain_order=True))


NO_INTEGER = "no integer type holds both: cast the signed one to UInt128, or both to text"


def common_integer(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    """Return the integer type that holds the values of both, if there is one."""
    wide = {pl.UInt64(), pl.Int128(), pl.UInt128()} & {left, right}
    if not wide:
        return pl.Int64()
    if left.is_unsigned_integer() and right.is_unsigned_integer():
        return pl.UInt128() if pl.UInt128() in wide else pl.UInt64()
    return None if pl.UInt128() in wide else pl.Int128()


# ------------------------------------------------------------------ rules on the data


_FIT_IN_64_BITS = frozenset(
    {pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.UInt8(), pl.UInt16(), pl.UInt32()}
)


_FIT_IN_32_BITS = _FIT_IN_64_BITS - {pl.Int64()}


class Rule(NamedTuple):
    """A rule: ``text`` is what errors say, ``broken`` is true on the rows that break it."""

    table: str  # what errors call it
    column: str
    text: str
    broken: pl.Expr
    flag: pl.LazyFrame | None = None  # if it is cheaper than to look for broken rows
    what: str = ""  # what ``health`` calls the number of these rows
    surplus: pl.Expr | None = None  # this number, as an aggregate of one list


def raise_first(rules: Sequence[Rule], rows: pl.LazyFrame, shown: Sequence[str]) -> None:
    """Read every row, and raise for the first rule that is broken; errors show these columns."""
    flags = rows.select(
        rule.broken.any().alias(str(number)) for number, rule in enumerate(rules)
    ).collect()
    for rule in itertools.compress(rules, flags.row(0)):
        raise_if_any(rows.filter(rule.broken).select(shown), rule.table, rule.column, rule.text)


def as_rank(name: str) -> pl.Expr:
    """Read a rank of any numeric type."""
    return pl.col(name).cast(pl.Int64, strict=False)


def row_rules(table: Table) -> list[Rule]:
    """Rules that a row breaks by itself: every call checks them on every row."""
    rules: list[Rule] = []
    for name in [*table.keys, table.item]:
        if name not in table.truth_groups:
            role = {table.user: "user", table.item: "item"}.get(name, "group")
            cure = f"drop the row, or fill in the {role}"
            if role == "group" and table.name == "judged table":
                cure = f"judge with the same {option('by')}, {cure}"
            if role == "group" and isinstance(table.schema[name], pl.String):
                call = f".with_columns(pl.col({name!r}).fill_null('unknown'))"
                column = f"{{{name!r}: object}}"  # a category takes no new name
                in_pandas = f".astype({column}).fillna({{{name!r}: 'unknown'}})"
                cure += table_code(table.name, call, in_pandas)
            missing = missing_rules(table, name, role, cure)
            if (alone := _is_alone(table, name)) is not None:
                missing = [rule._replace(broken=rule.broken & ~alone) for rule in missing]
            rules += missing
    rules += _rank_rules(table)
    if table.score is not None and table.schema[table.score].is_float():
        text = "infinite score: use a finite one, or null if the item was not retrieved"
        broken = pl.col(table.score).is_infinite()
        rules.append(Rule(table.name, table.score, text, broken, what="infinite_scores"))
    rules += _relevance_rules(table)
    if table.passed is not None and table.relevance is not None:
        rules.append(_rule_of_duplicates(table))
    if table.subtopic is not None:
        judged = True if table.relevance is None else pl.col(table.relevance).is_not_null()
        cure = "drop the row, or fill in the subtopic"
        missing = missing_rules(table, table.subtopic, "subtopic of a judgment", cure)
        rules += [rule._replace(broken=rule.broken & judged) for rule in missing]
    return rules


def _is_alone(table: Table, name: str) -> pl.Expr | None:
    """Whether a row of a judged table has its user alone, who has neither list nor judgments."""
    placing = table.rank if table.rank is not None else table.score
    if name != table.item or table.relevance is None or placing is None:
        return None
    return pl.col(table.relevance).is_null() & pl.col(placing).is_null()


def missing_rules(table: Table, name: str, role: str, cure: str) -> list[Rule]:
    """Return a rule for each way in which a value can be missing."""
    words = {table.user: "users", table.item: "items", table.subtopic: "subtopics"}
    what = f"null_{words.get(name, 'groups')}"
    null = Rule(table.name, name, f"null {role}: {cure}", pl.col(name).is_null(), what=what)
    if not table.schema[name].is_float():
        return [null]
    return [null, Rule(table.name, name, f"NaN {role}: {cure}", pl.col(name).is_nan(), what=what)]


def is_present(table: Table, name: str) -> pl.Expr:
    """Whether an id is neither null nor NaN."""
    value = pl.col(name)
    return (value.fill_nan(None) if table.schema[name].is_float() else value).is_not_null()


NO_RANK = "a rank that is not an integer ≥ 1: ranks start at 1; add 1 if yours start at 0"


def _rank_rules(table: Table) -> Iterator[Rule]:
    if table.rank is None:
        return
    value = pl.col(table.rank)
    if table.schema[table.rank] in _FIT_IN_64_BITS:  # saves three passes
        broken = value < 1
    else:
        rank = as_rank(table.rank)
        broken = value.is_not_null() & (rank.is_null() | (rank != value) | (rank < 1))
    yield Rule(table.name, table.rank, NO_RANK, broken, what="invalid_ranks")
    if table.schema[table.rank] not in _FIT_IN_32_BITS:
        text = "a rank above 2^53: number the places of each list from 1"
        above = value > _sizes.WHOLE
        if table.schema[table.rank].is_float():  # larger ones break the rule of integers
            above &= value < float(1 << 63)
        yield Rule(table.name, table.rank, text, above, what="invalid_ranks")
    if table.tied:
        value, size = pl.col("tied"), as_rank("tied")
        broken = size.is_null() | (size != value) | (size < 1)
        text = f"a block of ties whose size is not an integer ≥ 1: {_CURE_OF_BLOCKS}"
        broken &= pl.col(table.rank).is_not_null()
        yield Rule(table.name, "tied", text, broken, what="invalid_sizes_of_blocks")


def _relevance_rules(table: Table) -> Iterator[Rule]:
    if table.relevance is None:
        return
    relevance = pl.col(table.relevance)
    instead = "drop the row" if table.name in TRUTHS else "null"
    cure = f"use a finite grade, or {instead} if the item is unjudged"
    if table.schema[table.relevance].is_float():
        text = f"NaN or infinite relevance: {cure}"
        broken = ~relevance.is_finite()
        yield Rule(table.name, table.relevance, text, broken, what="nonfinite_relevances")
    if table.name in TRUTHS:
        text, broken = f"null relevance: {cure}", relevance.is_null()
        yield Rule(table.name, table.relevance, text, broken, what="null_relevances")
    elif table.rank is not None:
        text = "neither rank nor relevance: drop the row, or fill in one of the two"
        broken = relevance.is_null() & pl.col(table.rank).is_null()
        broken &= pl.col(table.item).is_not_null()
        what = "neither_rank_nor_relevance"
        yield Rule(table.name, table.relevance, text, broken, what=what)


def table_rules(table: Table) -> Iterator[Rule]:
    """Rules that a row breaks together with others: only ``check`` checks them on every row."""
    if table.passed is None:  # else only a judged table may have one, which is a rule of rows
        yield _rule_of_duplicates(table)
    if table.rank is None:
        return
    if table.tied:
        yield from _rules_of_blocks(table, table.rank)
        return
    rank = pl.col(table.rank)
    shared = pl.struct([*table.keys, table.rank]).is_duplicated()
    ranks = _values_of([table.rank], rank > 0)  # others are invalid
    surplus = ranks.len() - ranks.n_unique()
    if table.subtopic is not None:
        several = rank.n_unique().over([*table.keys, table.item]) > 1
        text = "several ranks of one item: give the rows of all its subtopics the same rank"
        of = rank.is_not_null() & is_present(table, table.item)
        places = _values_of([table.item, table.rank], of).n_unique()
        more = places - _values_of([table.item], of).n_unique()
        yield Rule(table.name, table.rank, text, several, what="several_ranks", surplus=more)
        shared = pl.col(table.item).n_unique().over([*table.keys, table.rank]) > 1
        surplus = places - _values_of([table.rank], of).n_unique()
    cure = wording(
        ", as rank('ordinal') does", command=f", or rank by a score with {option('ties', 'item')}"
    )
    text = f"two items of one user have the same rank: {_of_several(table)}"
    text += f"make ranks without ties{cure}"
    broken = rank.is_not_null() & shared
    yield Rule(table.name, table.rank, text, broken, what="shared_ranks", surplus=surplus)


def _rule_of_duplicates(table: Table) -> Rule:
    one_row = table.row
    text = f"duplicate ({', '.join(one_row)}): {_cure_of_duplicates(table)}"
    broken = pl.struct(one_row).is_duplicated()
    rows = _values_of(one_row[len(table.keys) :], is_present(table, table.item))
    surplus = rows.len() - rows.n_unique()
    return Rule(table.name, table.item, text, broken, what="duplicates", surplus=surplus)


def _values_of(names: Sequence[str], of: pl.Expr) -> pl.Expr:
    """Return the values of columns, together, of some rows of a list."""
    value = pl.col(names[0]) if len(names) == 1 else pl.struct(names)
    return pl.when(of).then(value).drop_nulls()  # filter() takes four times as long in groups


def _rules_of_blocks(table: Table, placing: str) -> Iterator[Rule]:
    rank, tied, block = as_rank(placing), as_rank("tied"), [*table.keys, placing]
    placed = pl.col(placing).is_not_null()
    sizes = (pl.col(table.item).n_unique() > tied) | (tied.min() != tied.max())
    text = f"a block of ties with more items than its size, or of several sizes: {_CURE_OF_BLOCKS}"
    yield Rule(table.name, "tied", text, placed & sizes.over(block), what="wrong_sizes_of_blocks")
    end = (rank + tied).shift(1).over(table.keys, order_by=placing, nulls_last=True)
    before = rank.shift(1).over(table.keys, order_by=placing, nulls_last=True)
    text = f"a rank inside the block of ties above it: {_CURE_OF_BLOCKS}"
    broken = placed & (rank != before) & (rank < end)
    yield Rule(table.name, placing, text, broken, what="ranks_inside_blocks")


_WITH_BLOCKS = wording("with_rank(ties='expected')", command=option("ties", "expected"))
_CURE_OF_BLOCKS = f"make rank and 'tied' with {_WITH_BLOCKS}"


def _cure_of_duplicates(table: Table) -> str:
    row, grade = table.row, table.relevance
    if table.name in TRUTHS and grade is None:
        return "keep one" + table_code(table.name, f".unique({row})", f".drop_duplicates({row})")
    if table.name in TRUTHS:
        call = f".groupby({row}, as_index=False)[{grade!r}].max()"
        call = table_code(table.name, f".group_by({row}).agg(pl.max({grade!r}))", call)
        several = "if items have several events, such as click and buy, name the column in"
        return f"{several} {option('by')}, or keep the highest grade{call}"
    if table.passed is not None:
        return "its rows differ in their grade, or one has no rank: keep one"
    grades = " (rows of one item need one grade)" * (grade is not None)
    first, occupied = (option("duplicates", value) for value in ("first", "occupy"))
    return (
        f"{_of_several(table)}pass {first}: the best place of an item counts, and items below its "
        f"others move up; or {occupied}: its other places stay empty{grades}"
    )


def _of_several(table: Table) -> str:
    """Return the advice to name the column of several lists in ``by``."""
    if not table.by:
        named = f"a column of models in {option('model')}, of folds or days in {option('by')}"
        return f"name {named}; otherwise "
    after = f" after {table.segments[-1]!r}" if table.segments else ""
    return f"name a column of folds or days in {option('by')}{after}; otherwise "


def raise_in_tables(tables: Sequence[Table], users: Policy = "truth") -> None:
    """Read every row of the tables, and raise for the first rule that is broken."""
    for table in tables:
        if table.totals is None:
            raise_if_empty(table)
            raise_if_ungraded(table)
        rules = [*row_rules(table), *table_rules(table)]
        raise_first(rules, table.frame, role_columns(table))
    if len(tables) == 2 and tables[0].totals is None:
        raise_if_no_match(*tables, users=users)


def raise_first_global(tables: Sequence[Table], users: Policy = "truth") -> None:
    """Raise for the first rule on whole tables that is broken; read only keys."""
    for table in tables:
        raise_if_empty(table)
    if len(tables) == 2:
        raise_if_no_match(*tables, users=users)


def checked(lists: pl.LazyFrame, rules: Sequence[Rule], shown: Sequence[str]) -> pl.LazyFrame:
    """Raise when the plan runs and a row breaks a rule."""

    def check(rows: pl.DataFrame) -> pl.DataFrame:
        raise_first(rules, rows.lazy(), shown)
        return rows

    return adapters.in_one_step(lists, check, lists.collect_schema()) if rules else lists


def raise_if_any(rows: pl.DataFrame | pl.LazyFrame, table: str, column: str, text: str) -> None:
    """Raise for the first of the rows that break a rule, if there are any."""
    row = rows.lazy().head(1).collect()
    if not row.is_empty():
        raise broken_row(table, column, text, row)


def raise_if_tied(
    table: Table, purpose: str = "", cure: str = "call with_rank(ties='item')"
) -> None:
    """Raise if the lists have blocks of ties, where ranks are needed."""
    if table.tied:
        msg = (
            f"{table.name}, column 'tied': blocks of ties, whose items have no single rank"
            f"{purpose}: {cure}"
        )
        raise RankingDataError(msg)


def raise_if_taken(
    verb: str, names: Collection[str], taken: Collection[str], table: str = ""
) -> None:
    """Raise if a column that a verb makes has the name of one that the table has."""
    for name in names:
        if name in taken:
            msg = f"{table}column {name!r}: {verb} adds a column with this name: rename yours"
            raise RankingDataError(msg)


def broken_row(table: str, column: str, text: str, row: pl.DataFrame) -> RankingDataError:
    """Make the error of a row that breaks a rule."""
    return RankingDataError(f"{table}, column {column!r}: {text}. Offending row: {format_row(row)}")


def format_row(row: pl.DataFrame) -> str:
    """Format a frame of one row for an error."""
    values = row.row(0, named=True).items()
    return ", ".join(f"{name}={'null' if value is None else repr(value)}" for name, value in values)


def role_columns(table: Table) -> list[str]:
    """Return the names of the columns that play a role."""
    numbers = (table.rank, table.score, table.relevance)
    return [*table.row, *(name for name in numbers if name is not None)]


def raise_if_empty(table: Table) -> None:
    """Raise if a table has no rows, or a run no ranks."""
    placing = table.placing
    if table.frame.select(placing).head(1).collect().is_empty():
        msg = f"{table.name}: it is empty"
        raise RankingDataError(msg)
    if table.name not in TRUTHS and retrieved(table).select(placing).head(1).collect().is_empty():
        msg = f"{table.name}, column {placing!r}: it is null in every row"
        raise RankingDataError(msg)


def counts_misses(users: Policy | None) -> bool:
    """Whether a policy counts users without a list."""
    return users not in ("both", "run")


def raise_if_no_match(run: Table, truth: Table, *, users: Policy = "truth") -> None:
    """Raise if no user, or no pair of user and group, is in both tables.

    Also if one truth judges all groups, and each user is in one group only, or groups are folds.
    """
    types = same_types(run, truth)
    lists, judged = (_in_types(frame, types) for frame in (retrieved(run), truth.frame))
    lacking = [name for name in run.by if name not in truth.by]
    _raise_if_none_meets(run, truth, "user", run.user)
    if truth.by and users != "run" and not _meet(lists, judged, truth.keys):
        raise no_pair(run, truth)
    all_groups = lists
    if run.totals is not None and run.totals.groups is not None:
        all_groups = run.totals.groups.lazy()
    for name in lacking:
        if all_groups.select(pl.col(name).n_unique()).collect().item() == 1:
            continue
        groups = lists.select(run.user, name).unique().group_by(run.user).len()
        if groups.select(pl.col("len").max()).collect().item() == 1:
            if not counts_misses(users):
                continue
            both = f", or pass {option('users', 'both')}" if truth.name in TRUTHS else ""
            text = f"{split_users_text(truth.name)}{both}"
            raise broken_row(run.name, name, text, _first_row(run))
        if is_fold(name):
            raise shared_folds(run, truth, name, _first_row(run))


def _in_types(frame: pl.LazyFrame, types: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Cast the ids and groups that a frame has."""
    names = frame.collect_schema()
    return frame.with_columns(pl.col(n).cast(t) for n, t in types.items() if n in names)


def _meet(left: pl.LazyFrame, right: pl.LazyFrame, on: Sequence[str]) -> bool:
    """Whether a row of one frame has the same ids as one of the other."""
    met = left.select(on).join(right.select(on), on=on, how="semi")
    return not met.head(1).collect().is_empty()


def no_pair(run: Table, truth: Table) -> RankingDataError:
    """Make the error of tables in which no user is in both in the same group."""
    types = same_types(run, truth)
    lists, judged = (_in_types(frame, types) for frame in (retrieved(run), truth.frame))
    apart = [name for name in truth.by if not _meet(lists, judged, [name])]
    pair, groups = ", ".join(truth.keys), " and ".join(map(repr, truth.by))
    example = format_row(truth.frame.select(truth.keys).head(1).collect())
    text = (
        f"no ({pair}) of the {run.name} is in the {truth.name}, which has {example}: make the "
        f"values of {groups} the same in both tables, such as days of one time zone"
    )
    return broken_row(run.name, (apart or truth.by)[-1], text, _first_row(run))


def raise_if_lone_group(run: Table, truth: Table) -> None:
    """Raise if a group of lists has no user in both tables; segments of users may have none."""
    types = same_types(run, truth)
    by = [name for name in run.by if name not in run.truth_groups]
    if not by:
        return
    shared = [name for name in by if name in truth.by]
    lists = _in_types(retrieved(run), types)
    judged = _in_types(truth.frame, types).select(*shared, run.user).unique()
    met = lists.join(judged, on=[*shared, run.user], how="semi")
    lacking = [name for name in by if name not in shared]
    crossed = lists.select(lacking).unique().join(judged, how="cross") if lacking else judged
    where = "both tables" if shared else f"the {run.name}"
    for table, rows in ((run, lists), (truth, crossed)):
        alone = rows.join(met, on=by, how="anti")
        rows = alone.select(role_columns(table) if table is run else [*by, run.user])
        text = lone_group_text(truth if table is run else run, where)
        raise_if_any(rows.sort(pl.all()), table.name, (shared or by)[-1], text)


def lone_group_text(other: Table, where: str) -> str:
    """Tell that a group has no user of the other table."""
    return (
        f"a group in which no user is in the {other.name}: add its rows to the {other.name}, or "
        f"leave the group out of {where}"
    )


def raise_if_ungraded(table: Table) -> None:
    """Raise if a truth without a relevance has grades of two values under another name."""
    if table.ungraded is None:
        return
    for name, dtype in candidates(table).items():
        if are_two_grades(*table.ungraded.select(grade_counts(name, dtype)).collect().row(0)):
            lowest = table.ungraded.filter(pl.col(name) == pl.col(name).min())
            row = lowest.select(*table.row, name).head(1).collect()
            raise ungraded(name, boolean=dtype == pl.Boolean, row=row, truth=table.name)


def raise_if_counted_ungraded(seen: Mapping[str, int], names: Collection[str]) -> None:
    """Raise for the first of some columns with grades of two values, from counts of all parts."""
    for name in names:
        for dtype in (pl.Boolean(), pl.Int64()):
            counts = [seen.get(of, 0) for of in count_names(name, dtype)]
            if are_two_grades(*counts):
                raise ungraded(name, boolean=dtype == pl.Boolean)


def ungraded(
    name: str, *, boolean: bool, row: pl.DataFrame | None = None, truth: str = TRUTH
) -> RankingDataError:
    """Make the error of a truth whose grades have a name that nobody reads."""
    values = "False and True" if boolean else "0 and 1"
    shown = "" if row is None else f". Offending row: {format_row(row)}"
    drop = table_code(truth, f".drop({name!r})", f".drop(columns={name!r})")
    keep = table_code(truth, ".with_columns(relevance=1)", ".assign(relevance=1)")
    return RankingDataError(
        f"{truth}, column {name!r}: {values} but no relevance, so every judged item would be "
        f"relevant: pass {option('relevance', name)}; if every judged item is relevant, drop the "
        f"column{drop}{code(', or keep it beside a relevance of 1')}{keep}{shown}"
    )


def candidates(table: Table) -> dict[str, pl.DataType]:
    """Name the columns of a truth without a relevance that may hold grades, with their types."""
    if table.ungraded is None:
        return {}
    schema = table.ungraded.collect_schema()
    return {name: dtype for name, dtype in schema.items() if name not in table.row}


def grade_counts(name: str, dtype: pl.DataType) -> tuple[pl.Expr, pl.Expr, pl.Expr]:
    """Count the values of a column that are 0 or False, 1 or True, and not null."""
    value = pl.col(name)
    is_one = value if dtype == pl.Boolean else value == 1
    is_zero = ~is_one if dtype == pl.Boolean else value == 0
    pairs = zip((is_zero.sum(), is_one.sum(), value.count()), count_names(name, dtype), strict=True)
    zeros, ones, values = (count.cast(pl.Int64).alias(of) for count, of in pairs)
    return zeros, ones, values


def count_names(name: str, dtype: pl.DataType) -> tuple[str, str, str]:
    """Name the columns of ``grade_counts``."""
    low, high = ("False", "True") if dtype == pl.Boolean else ("0", "1")
    return f"{low}: {name}", f"{high}: {name}", f"values: {name}"


def are_two_grades(zeros: Any, ones: Any, values: Any) -> Any:
    """Whether a column has two values, 0 and 1, both as numbers and as counts in a plan."""
    return (zeros > 0) & (ones > 0) & (zeros + ones == values)


def is_fold(name: str) -> bool:
    """Whether a column has a name of cross-validation folds, each with its own truth."""
    return name.lower() in ("fold", "fold_id", "cv_fold", "split")


def split_users_text(truth: str) -> str:
    """Tell that each user is in one group only, and one truth judges all groups; for SQL, too."""
    return (
        f"no user is in two of its groups, and the {truth} has no such column, so each user "
        f"would count as a miss in every other group: join the column to the {truth}"
    )


def shared_folds_text(truth: str) -> str:
    """Tell that folds share users, and one truth."""
    return (
        f"users are in several folds, and the {truth} has no such column, so each fold would "
        "be judged by the whole truth, and what a user likes in other folds would count as missed: "
        f"add the column to the {truth}, or rename it if one truth judges all folds"
    )


def shared_folds(run: Table, truth: Table, name: str, row: pl.DataFrame) -> RankingDataError:
    """Make the error for folds that share one truth."""
    return broken_row(run.name, name, shared_folds_text(truth.name), row)


def unmatched_systems(tables: Sequence[Table]) -> list[tuple[object, RankingDataError]]:
    """Return the systems of whose lists no item is judged, with the error of each; None: of all."""
    run, truth = tables[0], tables[-1]
    if len(tables) == 1:
        truth = replace(run, name="truth", frame=run.frame.filter(_is_relevant(run)))
        if truth.frame.head(1).collect().is_empty():
            return []
    parts: list[tuple[object, Table]] = [(None, run)]
    if run.model is not None:
        apart = _unmatched_systems(run, truth, run.model)
        parts += [(name, _of_system(run, run.model, name)) for name in apart]
    errors: list[tuple[object, RankingDataError]] = []
    for system, part in parts:
        try:
            raise_if_no_item_meets(part, truth)
        except RankingDataError as error:
            errors.append((system, error))
            if system is None:
                break
    return errors


def _unmatched_systems(run: Table, truth: Table, model: str) -> pl.Series:
    """Return the systems of whose items the truth has none."""
    ids = pl.col(run.item).cast(same_types(run, truth)[run.item])
    lists, judged = retrieved(run).select(model, ids), truth.frame.select(ids)
    met = lists.join(judged, on=run.item, how="semi").select(model).unique()
    systems = lists.select(model).unique()
    apart = systems.join(met, on=model, how="anti", nulls_equal=True)
    return apart.sort(model).collect()[model]


def _of_system(run: Table, model: str, system: object) -> Table:
    return replace(run, frame=run.frame.filter(pl.col(model).eq_missing(pl.lit(system))))


def _is_relevant(table: Table) -> pl.Expr:
    if table.relevance is None:
        return pl.lit(value=True)
    grade = pl.col(table.relevance)
    return grade if table.schema[table.relevance] == pl.Boolean else grade > 0


def raise_if_none_relevant(truth: Table) -> None:
    """Raise if no grade of the truth is greater than 0, so no user has a relevant item."""
    if truth.relevance is None:
        return
    best = pl.col(truth.relevance).cast(pl.Float64).max()
    greatest = truth.frame.select(best).collect().item()
    if greatest is not None and not greatest > 0:
        msg = (
            f"{truth.name}, column {truth.relevance!r}: no grade is > 0 (the greatest is "
            f"{greatest:g}), so nothing is relevant: see that the judgments are complete"
        )
        raise RankingDataError(msg)


def raise_if_no_item_meets(run: Table, truth: Table) -> None:
    """Raise if no item matches, as ids of chunks do not match ids of documents."""
    _raise_if_none_meets(run, truth, "item", run.item)


def _raise_if_none_meets(run: Table, truth: Table, role: str, column: str) -> None:
    """Raise if no id of a role is in both tables."""
    ids = pl.col(column).cast(same_types(run, truth)[column])
    lists, judged = retrieved(run).select(ids), truth.frame.select(ids)
    if not _meet(lists, judged, [column]):
        example = judged.head(1).collect().item()
        other = f"the {truth.name}, which has {role}s like {example!r}"
        text = f"no {role} of the {run.name} is in {other}"
        if run.name == "judged table":  # its relevant rows are the truth
            text = f"no {role} of the lists is a relevant one, such as {example!r}"
        raise broken_row(run.name, column, text, _first_row(run))


def retrieved(table: Table) -> pl.LazyFrame:
    """Keep the rows that are in a list."""
    return table.frame.filter(is_retrieved(table))


def is_retrieved(table: Table) -> pl.Expr:
    placed = pl.col(table.placing)
    floats = table.schema[table.placing].is_float()
    return (placed.fill_nan(None) if floats else placed).is_not_null()


def _first_row(table: Table) -> pl.DataFrame:
    return retrieved(table).select(role_columns(table)).head(1).collect()
