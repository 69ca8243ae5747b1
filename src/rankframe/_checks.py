"""The rules of the tables: some are checked at the call, the others when its plan runs.

``read_run``, ``read_truth`` and ``read_judged`` check roles and types at the call. Other rules need
the data: each plan also computes cheap flags (``guarded``). A raised flag only means that a rule
may be broken. One function, ``raise_first_broken``, then reads every row of both tables, finds out
and writes the message. So eager and lazy calls, polars and pandas, and ``check`` itself raise the
same errors.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

import polars as pl

from rankframe._frames import Frame, column_names, to_polars, type_words
from rankframe._labels import INNER
from rankframe._names import (
    COMMON_NAMES,
    GRADES,
    RATINGS,
    fitting,
    is_free,
    with_ids,
    with_placing,
    with_relevance,
    with_score,
)
from rankframe._options import Columns, Users, group_names
from rankframe._vocabulary import COLUMNS
from rankframe.errors import RankingDataError


class Totals(NamedTuple):
    """Facts about all users that a part of the tables needs; it has all rows of its users."""

    top_grade: float | None
    groups: pl.DataFrame | None  # the groups of ``by`` that the truth lacks


class Table(NamedTuple):
    """A table from the caller and the names of the columns that play a role in it."""

    name: str
    frame: pl.LazyFrame
    schema: pl.Schema
    by: list[str]
    user: str
    item: str
    rank: str | None
    score: str | None
    relevance: str | None
    # columns of by that only the truth has; they are joined to the run by user
    truth_groups: Sequence[str] = ()
    subtopic: str | None = None
    rows: pl.DataFrame | None = None  # of a table in memory, as passed
    totals: Totals | None = None  # set for a part, which may break rules on whole tables
    # of a truth without a relevance: the columns that may be grades under another name
    ungraded: pl.LazyFrame | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return [*self.by, self.user]

    @property
    def tied(self) -> bool:
        """Whether equal scores form blocks: rank is the first position, ``tied`` the size."""
        return self.rank is not None and "tied" in self.schema

    @property
    def row(self) -> list[str]:
        """The columns that identify a row: the list, the item and, of a judgment, the subtopic."""
        return [*self.keys, self.item, *([] if self.subtopic is None else [self.subtopic])]


# ------------------------------------------------------------------ roles and types, at the call


def read_tables(
    frame: Frame,
    truth: Frame | None,
    by: str | Sequence[str],
    columns: Columns,
    *,
    reads: Collection[str] | None = None,
    reserved: Collection[str] = (),
    run_alone: bool = False,
) -> list[Table]:
    """Read ``[judged table]``, ``[run, truth]``, or with ``run_alone`` perhaps ``[run]``.

    ``reads`` names the columns that metrics read; None means that every column is returned.
    ``reserved`` names the vocabulary columns that are reserved only if metrics read them.
    """
    kind = "judged table" if truth is None and not run_alone else "run"
    columns = with_ids(columns, by, {kind: frame, "truth": truth})
    if truth is None and run_alone and not has_relevance(frame, columns):
        return _unreserved([_read_run(frame, by, columns)], reserved)
    if truth is None:
        return _unreserved([_read_judged(frame, by, columns)], reserved)
    groups = group_names(by)
    names = column_names(frame, "run") if groups else []
    lacking = [name for name in groups if name not in names]
    known = column_names(truth, "truth") if lacking else []
    truth_groups = [name for name in lacking if name in known]
    run = _read_run(
        frame, [name for name in groups if name not in truth_groups], columns, beside=truth
    )
    judgments = _read_truth(truth, by, columns, beside=frame, reads=reads or ())
    run, judgments = _without_shared(run, judgments, reads)
    if truth_groups:
        run = _with_truth_groups(run, judgments, groups, truth_groups)
    return _unreserved([run, judgments], reserved)


def read_runs(run: Frame, other: Frame, by: str | Sequence[str], columns: Columns) -> list[Table]:
    """Read two runs; the other one need not have the columns ``by``."""
    columns = with_ids(columns, by, {"run": run, "other run": other})
    return [
        _read_run(run, by, columns, beside=other),
        _read_run(other, by, columns, kind="other run", beside=run),
    ]


def read_run(frame: Frame, by: str | Sequence[str], columns: Columns, kind: str = "run") -> Table:
    """Read a run: user, item, and rank or score."""
    return _read_run(frame, by, with_ids(columns, by, {kind: frame}), kind)


def _read_run(
    frame: Frame,
    by: str | Sequence[str],
    columns: Columns,
    kind: str = "run",
    *,
    beside: Frame | None = None,
) -> Table:
    table = _opened(kind, frame, by, columns)
    columns = with_placing(columns, by, table.schema)
    _raise_if_missing(table, [_placing_role(table, columns)], columns, beside=beside)
    rank, score = _rank_or_score(table, columns)
    relevance = columns.get("relevance", "relevance")
    if relevance in table.schema:
        msg = (
            f"{kind}, column {relevance!r}: a relevance in a run: drop the column, "
            "or pass a judged table without truth="
        )
        raise RankingDataError(msg)
    return _typed(table._replace(rank=rank, score=score))


def read_truth(frame: Frame, by: str | Sequence[str], columns: Columns) -> Table:
    """Read a truth: user, item, and relevance unless it is 1 in every row."""
    return _read_truth(frame, by, with_ids(columns, by, {"truth": frame}))


def _read_truth(
    frame: Frame,
    by: str | Sequence[str],
    columns: Columns,
    *,
    beside: Frame | None = None,
    reads: Collection[str] = (),
) -> Table:
    table = _opened("truth", frame, by, columns)
    columns = with_relevance(columns, by, table.schema)
    given = [role for role in ("relevance", "subtopic") if role in columns]
    if fitting("relevance", columns, by, table.schema):  # several
        given.append("relevance")
    _raise_if_missing(table, given, columns, beside=beside)
    relevance = columns.get("relevance", "relevance")
    table = table._replace(subtopic=_subtopic(table, columns))
    if relevance not in table.schema:
        _refuse_ratings(table, by, columns)
        return _typed(table._replace(ungraded=_ungraded(table, by, columns, reads)))
    return _typed(table._replace(relevance=relevance))


def _refuse_ratings(table: Table, by: str | Sequence[str], columns: Columns) -> None:
    """Raise if a truth has ratings or grades but no relevance: each row would be relevant."""
    for name in (*RATINGS, *GRADES):
        dtype = table.schema.get(name)
        if dtype is None or not is_free(name, columns, by):
            continue
        if name in RATINGS and dtype.is_numeric():
            msg = (
                f"truth, column {name!r}: ratings but no relevance, so every rated item would be "
                f"relevant, even a disliked one: pass relevance={name!r} and relevant_at= the "
                f"lowest rating of a liked item; if every rated item is liked, drop the column: "
                f"truth.drop({name!r})"
            )
            raise RankingDataError(msg)
        if name in GRADES and (dtype.is_numeric() or dtype == pl.Boolean):
            msg = (
                f"truth, column {name!r}: grades but no relevance, so every judged item would be "
                f"relevant, even one of grade 0: pass relevance={name!r}; if every judged item is "
                f"relevant, drop the column: truth.drop({name!r})"
            )
            raise RankingDataError(msg)


def _ungraded(
    table: Table, by: str | Sequence[str], columns: Columns, reads: Collection[str]
) -> pl.LazyFrame | None:
    """Select the columns that nothing reads and that may hold grades, if there are any."""
    own = [*table.row, *reads]
    names = [
        name
        for name, dtype in table.schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean)
        and name not in own
        and is_free(name, columns, by)
        and not _is_pattern(name)
    ]
    return table.frame.select(*table.row, *names) if names else None


def _read_judged(frame: Frame, by: str | Sequence[str], columns: Columns) -> Table:
    """Read a judged table: user, item, rank or score, and relevance."""
    table = _opened("judged table", frame, by, columns)
    columns = with_placing(columns, by, table.schema)
    given = [role for role in ("subtopic",) if role in columns]
    _raise_if_missing(table, ["relevance", _placing_role(table, columns), *given], columns)
    table = table._replace(subtopic=_subtopic(table, columns))
    relevance = columns.get("relevance", "relevance")
    rank, score = _rank_or_score(table, columns)
    if table.subtopic is not None and rank is None:
        msg = (
            f"judged table, column {table.subtopic!r}: an item has one row per subtopic, so ranks "
            "cannot be made from scores: call with_rank before judge"
        )
        raise RankingDataError(msg)
    return _typed(table._replace(rank=rank, score=score, relevance=relevance))


def read_scored(frame: Frame, by: str | Sequence[str], columns: Columns) -> Table:
    """Read a run whose rank will be made from its score."""
    columns = with_ids(columns, by, {"run": frame})
    table = _opened("run", frame, by, columns)
    columns = with_score(columns, by, table.schema)
    _raise_if_missing(table, ["score"], columns)
    score = columns.get("score", "score")
    made = columns.get("rank", "rank")
    for name in (made, "tied"):
        if name in (*table.keys, table.item, score):
            msg = (
                f"run, column {name!r}: with_rank makes this column, so it cannot play another "
                "role: rename it"
            )
            raise RankingDataError(msg)
    return _typed(table._replace(score=score), allow=("rank", "relevance", "tied", made))


def read_ranked(frame: Frame, by: str | Sequence[str], columns: Columns) -> Table:
    """Read a run that already has ranks, with or without a relevance."""
    columns = with_ids(columns, by, {"run": frame})
    table = _opened("run", frame, by, columns)
    columns = with_placing(columns, by, table.schema)
    _raise_if_missing(table, [], columns)
    rank = columns.get("rank", "rank")
    if rank not in table.schema:
        has = ", ".join(map(repr, table.schema.names()))
        msg = (
            f"run: no column {rank!r} for rank; it has {has}; close_gaps=True reads the rank: name "
            "it with rank=, or leave out close_gaps to make ranks from a score"
        )
        raise RankingDataError(msg)
    return _typed(table._replace(rank=rank), allow=("relevance",))


def same_types(left: Table, right: Table) -> dict[str, pl.DataType]:
    """Return the common type of each key column that both tables have, or raise."""
    types: dict[str, pl.DataType] = {}
    for name in [name for name in [*right.keys, right.item] if name in left.schema]:
        in_left, in_right = left.schema[name], right.schema[name]
        if pl.Null in (in_left, in_right):  # a column of nulls fits any type
            types[name] = in_right if in_left == pl.Null else in_left
            continue
        integers = [dtype.is_integer() for dtype in (in_left, in_right)]
        if in_left != in_right and not all(integers):
            msg = (
                f"column {name!r}: it is {type_words(in_left, in_right)} in the {left.name} and "
                f"{type_words(in_right, in_left)} in the {right.name}: cast one; ids must have the "
                "same type in both tables, or any two integer types"
            )
            if any(integers) and (in_left.is_float() or in_right.is_float()):
                msg += " (pandas turns integers into floats where one is missing)"
            raise RankingDataError(msg)
        types[name] = in_left if in_left == in_right else common_integer(in_left, in_right)
    return types


def _opened(kind: str, frame: Frame, by: str | Sequence[str], columns: Columns) -> Table:
    """Open a table, and name its user, item and groups; they are not checked yet."""
    opened = to_polars(frame, kind)
    schema = opened.collect_schema()
    groups = group_names(by)
    user, item = columns.get("user", "user"), columns.get("item", "item")
    if kind in ("truth", "other run"):
        groups = [name for name in groups if name in schema]
    table = Table(kind, opened.lazy(), schema, groups, user, item, None, None, None)
    return table._replace(rows=opened if isinstance(opened, pl.DataFrame) else None)


def bounds_of(run: Table, truth: Table) -> dict[str, tuple[int, int]]:
    """Look up bounds of ids, ranks and grades in tables that are in memory.

    The ids and the number of ``rows`` are those of the truth.
    """
    bounds: dict[str, tuple[int, int]] = {}
    if truth.rows is not None:
        for name in (truth.user, truth.item):
            bounds |= _bounds(truth.rows, name, name)
        bounds["rows"] = 0, truth.rows.height
        if truth.relevance is None:
            bounds["relevance"] = 1, 1
        else:
            bounds |= _bounds(truth.rows, truth.relevance, "relevance")
    if run.rows is not None and run.rank is not None:
        bounds |= _bounds(run.rows, run.rank, "rank")
    elif run.rows is not None:  # made from a score
        bounds["rank"] = 1, run.rows.height
    return bounds


def bounds_of_lists(run: Table) -> dict[str, tuple[int, int]]:
    """Look up bounds of ids in lists that are in memory."""
    if run.rows is None:
        return {}
    return _bounds(run.rows, run.user, run.user) | _bounds(run.rows, run.item, run.item)


def _bounds(rows: pl.DataFrame, column: str, name: str) -> dict[str, tuple[int, int]]:
    values = rows[column]
    if values.dtype == pl.Boolean:
        return {name: (0, 1)}
    least, most = (values.min(), values.max()) if values.dtype.is_integer() else (None, None)
    if not (isinstance(least, int) and isinstance(most, int)):
        return {}
    return {name: (least, most)} if least >= -(1 << 63) and most < 1 << 63 else {}


def _subtopic(table: Table, columns: Columns) -> str | None:
    """Return the name of the column of subtopics, if there is one."""
    name = columns.get("subtopic", "subtopic")
    return name if name in table.schema else None


def _placing_role(table: Table, columns: Columns) -> str:
    """Return the role, rank or score, that orders the items of this table."""
    if "rank" in columns or columns.get("rank", "rank") in table.schema:
        return "rank"
    if "score" in columns or columns.get("score", "score") in table.schema:
        return "score"
    return "rank"


def _rank_or_score(table: Table, columns: Columns) -> tuple[str | None, str | None]:
    """Return the name of the rank, or else of the score from which it will be made."""
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    if _placing_role(table, columns) == "score":
        return None, score
    if "score" in columns:
        msg = (
            f"{table.name}, column {rank!r}: a rank in addition to score=: drop the rank, or call "
            "with_rank to make it from the score"
        )
        raise RankingDataError(msg)
    return rank, None


def _raise_if_missing(
    table: Table, roles: Sequence[str], columns: Columns, *, beside: Frame | None = None
) -> None:
    """Raise if columns that play a role are missing; one error names all of them.

    A column that the table ``beside`` this one has must have the same name in both.
    """
    given = cast("Mapping[str, str]", columns)
    wanted = [(role, given.get(role, role)) for role in ("user", "item", *roles)]
    wanted += [("by", name) for name in table.by]
    missing = [(role, name) for role, name in wanted if name not in table.schema]
    if not missing:
        return
    others = [] if beside is None else column_names(beside, "frame")
    has = ", ".join(repr(column) for column in table.schema.names())
    absent = ", ".join(f"{name!r} for {role}" for role, name in missing)
    msg = f"{table.name}: no column {absent}; it has {has or 'no columns'}"
    if not has:
        raise RankingDataError(msg)
    unknown = [role for role, name in missing if role != "by" and name not in others]
    apart = _named_apart(table, unknown, columns, others)
    unknown = [role for role in unknown if role not in apart]
    if unknown:
        them = "it" if len(unknown) == 1 else "them"
        msg += f"; name {them} with {', '.join(f'{role}=' for role in unknown)}"
    if "rank" in unknown and "rank" not in columns:
        msg += ", or name a score with score=, or call with_rank"
    if "score" in unknown and columns.get("rank", "rank") in table.schema:
        msg += ", or pass close_gaps=True to with_rank to read the existing rank"
    if meant := _meant(table, unknown, columns, others):
        msg += f"; perhaps {' or '.join(map(repr, meant))} is meant"
    if "relevance" in unknown and table.name == "judged table":
        msg += "; a run needs its truth: pass truth=, or call judge(run, truth)"
    if shared := [name for role, name in missing if role in ("user", "item") and name in others]:
        names = " and ".join(map(repr, shared))
        other = {"run": "truth"}.get(table.name, "run")
        msg += f"; the {other} has {names}, and names must be the same in both tables: rename one"
    other = {"run": "truth"}.get(table.name, "run")
    for role, (here, there) in apart.items():
        msg += (
            f"; the {role} is called {here!r} here and {there!r} in the {other}, and names must be "
            f"the same in both tables: rename one"
        )
    if any(role == "by" for role, _ in missing):
        msg += "; by=() treats all rows as one group"
    raise RankingDataError(msg)


def _named_apart(
    table: Table, roles: Sequence[str], columns: Columns, others: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Find the ids that have one common name in this table and another in the other one."""
    found: dict[str, tuple[str, str]] = {}
    for role in ("user", "item"):
        if role in roles:
            here = fitting(role, columns, table.by, table.schema)
            there = fitting(role, columns, table.by, others)
            if len(here) == 1 and len(there) == 1 and here != there:
                found[role] = here[0], there[0]
    return found


def _meant(
    table: Table, unknown: Sequence[str], columns: Columns, others: Sequence[str]
) -> list[str]:
    """Find the columns that may play a missing role."""
    names = dict.fromkeys(table.schema)
    of_both = names | dict.fromkeys(others)
    roles = {"user": of_both, "item": of_both, "rank": names, "score": names, "relevance": names}
    missing = [*unknown, *(["score"] if "rank" in unknown else [])]
    return [
        name
        for role, known in roles.items()
        if role in missing
        for name in fitting(role, columns, table.by, known)
    ]


def _typed(table: Table, allow: Sequence[str] = ()) -> Table:
    """Check that no column plays two roles or has a reserved name, and that types fit."""
    keys = table.row
    others = [name for name in (table.rank, table.score, table.relevance) if name is not None]
    for name in [*keys, *others]:
        if [*keys, *others].count(name) > 1:
            msg = (
                f"{table.name}, column {name!r}: it has two roles: name a different column for one "
                "of them"
            )
            raise RankingDataError(msg)
        if _is_pattern(name):
            msg = f"{table.name}, column {name!r}: polars reads this name as a pattern: rename it"
            raise RankingDataError(msg)
    if inner := [name for name in table.schema if name.startswith(INNER)]:
        msg = (
            f"{table.name}, column {inner[0]!r}: names that begin with {INNER!r} are reserved for "
            "internal columns: rename or drop the column"
        )
        raise RankingDataError(msg)
    own = {"rank": table.rank, "relevance": table.relevance, "subtopic": table.subtopic}
    own["tied"] = "tied" if table.tied else None
    for name in table.schema.names():
        allowed = own.get(name) == name or name in allow
        if name in COLUMNS and COLUMNS[name].always_reserved and not allowed:
            raise _reserved(table, name)
    for name in keys:
        if table.schema[name].is_nested() or table.schema[name].is_object():
            raise _wrong_type(table, name, "an id or group: use text or integers")
    if table.tied and not table.schema["tied"].is_numeric():
        raise _wrong_type(table, "tied", "the size of a block of ties: cast it to integers")
    for name in others:
        dtype = table.schema[name]
        boolean = name == table.relevance and dtype == pl.Boolean
        if not (dtype.is_numeric() or dtype == pl.Null or boolean):
            roles = {
                table.rank: "a rank: cast it to integers",
                table.score: "a score: cast it to numbers",
            }
            relevance = "a relevance: cast it to numbers or booleans"
            if name in COMMON_NAMES["relevance"]:  # the caller may not have named it
                relevance += ", or rename it if it is not one"
            raise _wrong_type(table, name, roles.get(name, relevance))
    return table


def _is_pattern(name: str) -> bool:
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def has_relevance(frame: Frame, columns: Columns) -> bool:
    """Whether a table is judged: it names a relevance, or has one."""
    if "relevance" in columns:
        return True
    return "relevance" in column_names(frame, "run")


def _unreserved(tables: list[Table], reserved: Collection[str]) -> list[Table]:
    """Check that no column has the name of a vocabulary column that a metric reads."""
    for name in sorted(reserved):
        for table in tables:
            if name in table.schema:
                raise _reserved(table, name)
    return tables


def _reserved(table: Table, name: str) -> RankingDataError:
    return RankingDataError(
        f"{table.name}, column {name!r}: this name is reserved for the vocabulary of the "
        "metrics: rename or drop the column"
    )


def _wrong_type(table: Table, name: str, role: str) -> RankingDataError:
    return RankingDataError(f"{table.name}, column {name!r}: {table.schema[name]} cannot be {role}")


def common_integer(left: pl.DataType, right: pl.DataType) -> pl.DataType:
    """Return the integer type that holds the values of both."""
    wide = {pl.UInt64(), pl.Int128(), pl.UInt128()} & {left, right}
    if not wide:
        return pl.Int64()
    if left.is_unsigned_integer() and right.is_unsigned_integer():
        return pl.UInt128() if pl.UInt128() in wide else pl.UInt64()
    return pl.Int128()


def _without_shared(run: Table, truth: Table, reads: Collection[str] | None) -> tuple[Table, Table]:
    """Drop the columns that both tables have; raise if a metric reads one of them."""
    same_types(run, truth)
    roles = (*truth.keys, truth.item, truth.relevance, truth.subtopic)
    shared = [name for name in truth.schema if name in run.schema and name not in roles]
    for name in shared:
        if reads is None or name in reads:
            msg = (
                f"column {name!r}: both the run and the truth have it; "
                "name it in by=, or rename or drop one"
            )
            raise RankingDataError(msg)
    of_run = [name for name in shared if name not in (run.rank, run.score)]
    return _without(run, of_run), _without(truth, shared)


def _without(table: Table, names: Sequence[str]) -> Table:
    frame = table.frame.drop(names)
    return table._replace(frame=frame, schema=frame.collect_schema()) if names else table


def _with_truth_groups(
    run: Table, truth: Table, by: list[str], truth_groups: Sequence[str]
) -> Table:
    """Add to each list of the run the groups that the truth has for its user.

    They are null for a user who is not in the truth.
    """
    types = [pl.col(name).cast(dtype) for name, dtype in same_types(run, truth).items()]
    shared = [name for name in truth.keys if name not in truth_groups]
    users = truth.frame.select(*truth.keys).with_columns(
        column for column in types if column.meta.output_name() in shared
    )
    frame = run.frame.with_columns(types).join(
        users.unique(), on=shared, how="left", build_side="force_right"
    )
    return run._replace(
        frame=frame, schema=frame.collect_schema(), by=by, truth_groups=truth_groups
    )


# ------------------------------------------------------------------ rules on the data


_FIT_IN_64_BITS = frozenset(
    {pl.Int8(), pl.Int16(), pl.Int32(), pl.Int64(), pl.UInt8(), pl.UInt16(), pl.UInt32()}
)


class _Rule(NamedTuple):
    """A rule: ``text`` is what errors say, ``broken`` is true on the rows that break it."""

    column: str
    text: str
    broken: pl.Expr


def as_rank(name: str) -> pl.Expr:
    """Read a rank of any numeric type."""
    return pl.col(name).cast(pl.Int64, strict=False)


def _row_rules(table: Table) -> Iterator[_Rule]:
    """Rules that a row breaks by itself: every call checks them on every row."""
    for name in [*table.keys, table.item]:
        if name not in table.truth_groups:
            role = {table.user: "user", table.item: "item"}.get(name, "group")
            judge = role == "group" and table.name == "judged table"
            cure = f"{'judge with the same by=, ' * judge}drop the row, or fill in the {role}"
            for missing, broken in missing_kinds(table, name):
                yield _Rule(name, f"{missing} {role}: {cure}", broken)
    if table.rank is not None:
        given, rank = pl.col(table.rank), as_rank(table.rank)
        broken = given.is_not_null() & (rank.is_null() | (rank != given) | (rank < 1))
        if table.schema[table.rank] in _FIT_IN_64_BITS:  # saves three passes
            broken = given < 1
        text = "a rank that is not an integer ≥ 1: ranks start at 1; add 1 if yours start at 0"
        yield _Rule(table.rank, text, broken)
    if table.tied:
        given, size = pl.col("tied"), as_rank("tied")
        broken = size.is_null() | (size != given) | (size < 1)
        text = f"a block of ties whose size is not an integer ≥ 1: {_CURE_OF_BLOCKS}"
        yield _Rule("tied", text, pl.col(table.rank or "").is_not_null() & broken)
    if table.score is not None and table.schema[table.score].is_float():
        text = "infinite score: use a finite one, or null if the item was not retrieved"
        yield _Rule(table.score, text, pl.col(table.score).is_infinite())
    if table.relevance is not None:
        relevance = pl.col(table.relevance)
        instead = "drop the row" if table.name == "truth" else "null"
        cure = f"use a finite grade, or {instead} if the item is unjudged"
        if table.schema[table.relevance].is_float():
            text = f"NaN or infinite relevance: {cure}"
            yield _Rule(table.relevance, text, ~relevance.is_finite())
        if table.name == "truth":
            yield _Rule(table.relevance, f"null relevance: {cure}", relevance.is_null())
        elif table.rank is not None:
            text = "neither rank nor relevance: drop the row, or fill in one of the two"
            yield _Rule(table.relevance, text, relevance.is_null() & pl.col(table.rank).is_null())
    if table.subtopic is not None:
        judged = True if table.relevance is None else pl.col(table.relevance).is_not_null()
        for missing, broken in missing_kinds(table, table.subtopic):
            text = f"{missing} subtopic of a judgment: drop the row, or fill in the subtopic"
            yield _Rule(table.subtopic, text, broken & judged)


def _table_rules(table: Table) -> Iterator[_Rule]:
    """Rules that a row breaks together with others: only ``check`` checks them on every row."""
    one_row = table.row
    text = f"duplicate ({', '.join(one_row)}): {_cure_of_duplicates(table)}"
    yield _Rule(table.item, text, pl.struct(one_row).is_duplicated())
    if table.rank is None:
        return
    placed = pl.col(table.rank).is_not_null()
    if not table.tied:
        shared = pl.struct([*table.keys, table.rank]).is_duplicated()
        if table.subtopic is not None:
            several = pl.col(table.rank).n_unique().over([*table.keys, table.item]) > 1
            text = "several ranks of one item: give the rows of all its subtopics the same rank"
            yield _Rule(table.rank, text, several)
            shared = pl.col(table.item).n_unique().over([*table.keys, table.rank]) > 1
        text = "make ranks without ties, as rank('ordinal') does"
        text = f"two items of one user have the same rank: {_of_several(table)}{text}"
        yield _Rule(table.rank, text, placed & shared)
        return
    rank, tied, block = as_rank(table.rank), as_rank("tied"), [*table.keys, table.rank]
    sizes = (pl.col(table.item).n_unique() > tied) | (tied.min() != tied.max())
    text = f"a block of ties with more items than its size, or of several sizes: {_CURE_OF_BLOCKS}"
    yield _Rule("tied", text, placed & sizes.over(block))
    end = (rank + tied).shift(1).over(table.keys, order_by=table.rank, nulls_last=True)
    before = rank.shift(1).over(table.keys, order_by=table.rank, nulls_last=True)
    text = f"a rank inside the block of ties above it: {_CURE_OF_BLOCKS}"
    yield _Rule(table.rank, text, placed & (rank != before) & (rank < end))


_CURE_OF_BLOCKS = "make rank and 'tied' with with_rank(ties='expected')"


def missing_kinds(table: Table, name: str) -> list[tuple[str, pl.Expr]]:
    """Return each way a value can be missing, with its rows."""
    kinds = [("null", pl.col(name).is_null())]
    if table.schema[name].is_float():
        kinds.append(("NaN", pl.col(name).is_nan()))
    return kinds


def _cure_of_duplicates(table: Table) -> str:
    if table.name == "truth":
        return (
            "if items have several events, such as click and buy, name the column in by=, or keep "
            f"the highest grade: truth.group_by({table.row}).agg(pl.max({table.relevance!r}))"
            if table.relevance is not None
            else f"keep one: truth.unique({table.row}), or drop_duplicates({table.row}) in pandas"
        )
    name = "judged" if table.name == "judged table" else "run"
    best = f"{table.rank!r}" if table.rank is not None else f"{table.score!r}, descending=True"
    cure = (
        f"keep the best: {name}.sort({best}, nulls_last=True)"
        f".unique({table.row}, keep='first', maintain_order=True), or sort_values and "
        "drop_duplicates in pandas"
    )
    return f"{_of_several(table)}{cure}"


def _of_several(table: Table) -> str:
    """Return the advice to name the column of several lists in ``by``."""
    if not table.by:
        return "name a column of models, folds or days in by=; otherwise "
    return f"name a column of folds or days in by= after {table.by[-1]!r}; otherwise "


def raise_first_broken(tables: Sequence[Table], users: Users = "truth") -> None:
    """Read every row of the tables, and raise for the first rule that is broken."""
    for table in tables:
        if table.totals is None:
            raise_if_empty(table)
            raise_if_ungraded(table)
        rules = [*_row_rules(table), *_table_rules(table)]
        flags = table.frame.select(
            rule.broken.any().alias(str(number)) for number, rule in enumerate(rules)
        ).collect()
        for rule in itertools.compress(rules, flags.row(0)):
            row = table.frame.filter(rule.broken).select(role_columns(table)).head(1).collect()
            raise broken_row(table, rule.column, rule.text, row)
    if len(tables) == 2 and tables[0].totals is None:
        raise_if_apart(*tables, users=users)


def raise_first_global(tables: Sequence[Table], users: Users = "truth") -> None:
    """Raise for the first rule on whole tables that is broken; read only keys."""
    for table in tables:
        raise_if_empty(table)
    if len(tables) == 2:
        raise_if_apart(*tables, users=users)


def proves_global_rules(tables: Sequence[Table]) -> bool:
    """Whether one part alone proves that the whole tables keep their rules."""
    try:
        raise_first_global(tables)
    except RankingDataError:
        return False
    return True


def broken_row(table: Table, column: str, text: str, row: pl.DataFrame) -> RankingDataError:
    """Make the error of a row that breaks a rule."""
    return RankingDataError(
        f"{table.name}, column {column!r}: {text}. Offending row: {format_row(row)}"
    )


def format_row(row: pl.DataFrame) -> str:
    """Format a frame of one row for an error."""
    values = row.row(0, named=True).items()
    return ", ".join(f"{name}={'null' if value is None else repr(value)}" for name, value in values)


def role_columns(table: Table) -> list[str]:
    """Return the names of the columns that play a role."""
    named = (table.rank, table.score, table.relevance)
    return [*table.row, *(name for name in named if name is not None)]


def raise_if_empty(table: Table) -> None:
    """Raise if a table has no rows, or a run no ranks."""
    placing = _placing(table)
    if table.frame.select(placing).head(1).collect().is_empty():
        msg = f"{table.name}: it is empty"
        raise RankingDataError(msg)
    if table.name != "truth" and retrieved(table).select(placing).head(1).collect().is_empty():
        msg = f"{table.name}, column {placing!r}: it is null in every row"
        raise RankingDataError(msg)


def counts_misses(users: Users | None) -> bool:
    """Whether a policy counts users without a list."""
    return users not in ("both", "served", "run")


def raise_if_apart(run: Table, truth: Table, *, users: Users = "truth") -> None:
    """Raise if users cannot match: ids or groups differ, or the groups split those who count."""
    types = same_types(run, truth)
    lists, judged = (_in_types(frame, types) for frame in (retrieved(run), truth.frame))
    lacking = [name for name in run.by if name not in truth.by]
    if not _meet(lists, judged, [run.user]):
        example = judged.select(run.user).head(1).collect().item()
        text = f"no user of the {run.name} is in the {truth.name}, which has users like {example!r}"
        raise broken_row(run, run.user, text, _first_row(run))
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
            text = (
                f"no user is in two of its groups, and the {truth.name} has no such column, so "
                "each user would count as a miss in every other group: "
                f"join the column to the {truth.name}"
            )
            raise broken_row(run, name, text, _first_row(run))
        if is_fold(name):
            raise diluted(run, truth, name, _first_row(run))


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
    return broken_row(run, (apart or truth.by)[-1], text, _first_row(run))


def raise_if_a_group_is_apart(run: Table, truth: Table) -> None:
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
    for table, rows in ((run, lists), (truth, crossed)):
        alone = rows.join(met, on=by, how="anti")
        row = alone.select(role_columns(table) if table is run else [*by, run.user])
        if not (first := row.sort(pl.all()).head(1).collect()).is_empty():
            other = truth if table is run else run
            text = (
                f"a group in which no user is in the {other.name}: add its rows to the "
                f"{other.name}, or leave the group out of both tables"
            )
            raise broken_row(table, by[-1], text, first)


def raise_if_ungraded(table: Table) -> None:
    """Raise if a truth without a relevance has grades of two values under another name."""
    if table.ungraded is None:
        return
    for name, dtype in candidates(table).items():
        if are_two_grades(*table.ungraded.select(grade_counts(name, dtype)).collect().row(0)):
            lowest = table.ungraded.filter(pl.col(name) == pl.col(name).min())
            row = lowest.select(*table.row, name).head(1).collect()
            raise ungraded(name, boolean=dtype == pl.Boolean, row=row)


def raise_if_counted_ungraded(seen: Mapping[str, int], names: Collection[str]) -> None:
    """Raise for the first of some columns with grades of two values, from counts of all parts."""
    for name in names:
        for dtype in (pl.Boolean(), pl.Int64()):
            counts = [seen.get(of, 0) for of in count_names(name, dtype)]
            if are_two_grades(*counts):
                raise ungraded(name, boolean=dtype == pl.Boolean)


def ungraded(name: str, *, boolean: bool, row: pl.DataFrame | None = None) -> RankingDataError:
    """Make the error of a truth whose grades have a name that nobody reads."""
    values = "False and True" if boolean else "0 and 1"
    shown = "" if row is None else f". Offending row: {format_row(row)}"
    return RankingDataError(
        f"truth, column {name!r}: {values} but no relevance, so every judged item would be "
        f"relevant: pass relevance={name!r}; if every judged item is relevant, drop the column: "
        f"truth.drop({name!r}), or keep it beside a relevance of 1: "
        f"truth.with_columns(relevance=1){shown}"
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
    one = value if dtype == pl.Boolean else value == 1
    zero = ~one if dtype == pl.Boolean else value == 0
    named = zip((zero.sum(), one.sum(), value.count()), count_names(name, dtype), strict=True)
    zeros, ones, values = (count.cast(pl.Int64).alias(of) for count, of in named)
    return zeros, ones, values


def count_names(name: str, dtype: pl.DataType) -> tuple[str, str, str]:
    """Name the columns of ``grade_counts``."""
    zero, one = ("False", "True") if dtype == pl.Boolean else ("0", "1")
    return f"{zero}: {name}", f"{one}: {name}", f"values: {name}"


def are_two_grades(zeros: Any, ones: Any, values: Any) -> Any:
    """Whether a column has two values, 0 and 1, both as numbers and as counts in a plan."""
    return (zeros > 0) & (ones > 0) & (zeros + ones == values)


def is_fold(name: str) -> bool:
    """Whether a column has a name of cross-validation folds, each with its own truth."""
    return name.lower() in ("fold", "fold_id", "cv_fold", "split")


def diluted(run: Table, truth: Table, name: str, row: pl.DataFrame) -> RankingDataError:
    """Make the error for folds that share one truth."""
    text = (
        f"users are in several folds, and the {truth.name} has no such column, so each fold would "
        "be judged by the whole truth, and what a user likes in other folds would count as missed: "
        f"add the column to the {truth.name}, or rename it if one truth judges all folds"
    )
    return broken_row(run, name, text, row)


def raise_if_no_item_meets(run: Table, truth: Table) -> None:
    """Raise if no item matches, as ids of chunks do not match ids of documents."""
    item = pl.col(run.item).cast(same_types(run, truth)[run.item])
    items_of_truth = truth.frame.select(item)
    items_of_run = retrieved(run).select(item)
    if items_of_run.join(items_of_truth, on=run.item, how="semi").head(1).collect().is_empty():
        example = items_of_truth.head(1).collect().item()
        text = f"no item of the {run.name} is in the {truth.name}, which has items like {example!r}"
        raise broken_row(run, run.item, text, _first_row(run))


def retrieved(table: Table) -> pl.LazyFrame:
    """Keep the rows that are in a list."""
    return table.frame.filter(_is_retrieved(table))


def _is_retrieved(table: Table) -> pl.Expr:
    placed = pl.col(_placing(table))
    floats = table.schema[_placing(table)].is_float()
    return (placed.fill_nan(None) if floats else placed).is_not_null()


def _placing(table: Table) -> str:
    """Return the name of the column whose null means that an item was not retrieved."""
    return next(name for name in (table.rank, table.score, table.item) if name is not None)


def _first_row(table: Table) -> pl.DataFrame:
    return retrieved(table).select(role_columns(table)).head(1).collect()


# ------------------------------------------------------------------ flags in every plan


def guarded(
    result: pl.LazyFrame,
    flags: Iterable[pl.LazyFrame],
    raise_violation: Callable[[], None],
    schema: Mapping[str, pl.DataType] | None = None,
    raise_global: Callable[[], None] | None = None,
) -> pl.LazyFrame:
    """Call ``raise_violation`` when the plan runs and one of the flags is raised.

    If only a rule on whole tables is in doubt, call ``raise_global``, which reads only keys. Each
    flag is a plan of one row (``flag``). Only a callback on these few rows lets our error leave a
    lazy plan with its type and text. It adds no row to the result, and it comes first, so that
    head() cannot skip it. ``schema`` is that of the result, where it is known.
    """
    types = dict(result.collect_schema() if schema is None else schema)

    def verdict(raised: pl.DataFrame) -> pl.DataFrame:
        if raised["suspect"].any() or raised["surplus"].sum() != 0:
            raise_violation()
        elif raised["doubt"].any():
            (raise_global or raise_violation)()
        return pl.DataFrame(schema=types)

    return pl.concat([pl.concat(flags).map_batches(verdict, schema=types), result])


def guarded_row(
    row: pl.LazyFrame,
    flags: Iterable[pl.LazyFrame],
    raise_violation: Callable[[], None],
    schema: Mapping[str, pl.DataType],
    raise_global: Callable[[], None],
) -> pl.LazyFrame:
    """Guard a result of one row, which has its own flag in addition to the columns of ``schema``.

    Its input is then read once; reading it twice would cost as much as a small table.
    """
    types = dict(schema)
    raised = gathered_flags(flags)
    own = [pl.col(name).alias(f"{INNER}{name}") for name in ("suspect", "surplus", "doubt")]

    def verdict(both: pl.DataFrame) -> pl.DataFrame:
        *_, suspect, surplus, doubt, suspects, sum_of_surplus, doubts = both.row(0)
        if suspect or suspects or surplus + sum_of_surplus != 0:
            raise_violation()
        elif doubt or doubts:
            raise_global()
        return both[:, : len(types)]

    both = row.select(*types, *own).join(raised, how="cross")
    return both.map_batches(
        verdict,
        schema=types,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def flag(
    frame: pl.LazyFrame,
    suspect: pl.Expr,
    surplus: pl.Expr | None = None,
    doubt: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Make a flag: whether a rule may be broken, and a term of a sum that is 0 if none is.

    ``doubt`` is whether nothing proves the rules on whole tables.
    """
    part = pl.lit(0) if surplus is None else surplus
    unproved = pl.lit(value=False) if doubt is None else doubt
    return frame.select(suspect=suspect, surplus=part.cast(pl.Int64), doubt=unproved)


def gathered_flags(flags: Iterable[pl.LazyFrame]) -> pl.LazyFrame:
    """Make one flag of several."""
    sums = pl.col("suspect").any(), pl.col("surplus").sum(), pl.col("doubt").any()
    return pl.concat(flags).select(sums)


def table_flag(table: Table, *, count: bool = False) -> pl.LazyFrame:
    """Flag rows that break a rule by themselves, and emptiness.

    ``count`` subtracts the number of rows of grade > 0 from the sum; the join adds its own number.
    """
    broken = [rule.broken.any() for rule in _row_rules(table)]
    frame = table.frame
    if table.totals is None:
        broken.append(pl.len() == 0)
        if table.ungraded is not None:  # it has the columns of the rules as well
            frame = table.ungraded
            broken += [are_two_grades(*grade_counts(*each)) for each in candidates(table).items()]
        # a run with only null scores has no hit, which ``any_doubt`` flags
        if table.rank is not None or table.name == "judged table":
            broken.append(~_is_retrieved(table).any())
    return flag(frame, pl.any_horizontal(broken), -_positive(table) if count else None)


def _positive(table: Table) -> pl.Expr:
    """Count the rows of grade > 0."""
    if table.relevance is None:
        return pl.len().cast(pl.Int64)
    grade = pl.col(table.relevance)
    positive = grade if table.schema[table.relevance] == pl.Boolean else grade > 0
    return positive.sum().cast(pl.Int64)


def table_rules_flag(table: Table) -> pl.LazyFrame:
    """Flag rules that rows break together, over every row.

    Blocks of ties and rows of subtopics need it: once a table has one row per item, no other flag
    can detect what was wrong.
    """
    broken = [rule.broken.any() for rule in _table_rules(table)]
    return flag(table.frame, pl.any_horizontal(broken))


def lists_flag(table: Table, in_order: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Flag duplicate items of a list, and items that share a rank, over every row.

    ``in_order`` has the same rows, user by user, which takes a quarter of the time.
    """
    # 10 M rows: 0.2 s in order of users, 0.7 s shuffled; grouped by item too, 1.3 and 0.6 s
    if in_order is not None:
        # the greatest rank is read so that the optimizer leaves the rows in order
        held = pl.col("rank").max().alias("__rankframe_held")
        lists = in_order.group_by(table.keys).agg(_has_duplicate(table.item), held)
        return flag(
            lists, (pl.col("__rankframe_duplicate") & (pl.col("__rankframe_held") > 0)).any()
        )
    aggregates = [_has_duplicate(*table.row[len(table.keys) :])]
    if table.rank is not None and not table.tied and table.subtopic is None:
        aggregates.append(shares_rank(table.rank, tied=False).alias("__rankframe_shared"))
    lists = table.frame.group_by(table.keys).agg(aggregates)
    return flag(lists, pl.any_horizontal(pl.exclude(table.keys).any()))


def check_aggregates(
    item: str, *, hit: pl.Expr, shared: pl.Expr, count: bool = False
) -> list[pl.Expr]:
    """Reductions over a user's relevant rows that ``any_violation`` and ``any_doubt`` read.

    With ``count``, duplicates show in the number of rows, or as neighbors in the order.
    """
    return [
        pl.len().cast(pl.Int64).alias("__rankframe_rows") if count else _has_duplicate(item),
        shared.alias("__rankframe_shared"),
        (hit.count() > 0).alias("__rankframe_hit"),
    ]


def shares_rank(name: str = "rank", *, tied: bool) -> pl.Expr:
    """Whether two of a user's rows, in any order, have the same rank."""
    rank = pl.col(name)
    return pl.lit(value=False) if tied else rank.drop_nulls().n_unique() < rank.count()


def _has_duplicate(*columns: str) -> pl.Expr:
    row = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    return (row.n_unique() < pl.len()).alias("__rankframe_duplicate")


def any_violation(*, count: bool = False) -> pl.Expr:
    """Whether, by the reductions of ``check_aggregates``, a rule may be broken.

    A list has a duplicate item, or two items at one rank.
    """
    suspects = [pl.col("__rankframe_shared").any()]
    if not count:
        suspects.append(pl.col("__rankframe_duplicate").any())
    return pl.any_horizontal(suspects)


def any_doubt(tables: Sequence[Table], users: Users = "truth") -> pl.Expr:
    """Whether no hit proves that the tables share a user, or that a user is in two groups.

    One group needs no proof. A part of the tables cannot break these rules.
    """
    if len(tables) < 2 or tables[0].totals is not None:
        return pl.lit(value=False)
    run, truth = tables
    hit = pl.col("__rankframe_hit")
    doubts = [~hit.any()]
    for name in run.by:
        if name not in truth.by:
            ids, pairs = pl.col(run.user), pl.struct(run.user, name)
            alone = ids.filter(hit).n_unique() == pairs.filter(hit).n_unique()
            doubt = pl.lit(value=True) if is_fold(name) else alone
            if is_fold(name) or counts_misses(users):
                doubts.append((pl.col(name).n_unique() > 1) & doubt)
    return pl.any_horizontal(doubts)
