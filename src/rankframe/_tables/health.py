"""Counts of what is in the tables: missed users, short lists, duplicates, ids that never match."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from typing import NamedTuple, Unpack

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns, Settings
from rankframe._request.types import Frame, FrameT
from rankframe._tables import (
    adapters,
    column_roles,
    rank_order,
    readers,
    rules,
    run_dicts,
    side_tables,
)
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError

_MADE: dict[str, pl.DataType] = {
    "what": pl.String(),
    "count": pl.Int64(),
    "share": pl.Float64(),
    "example": pl.String(),
}
#: If a truth has more grades than this, only their number is reported.
_MOST_GRADES = 20
_TABLES = ("run", "judged table", "truth", "both", "items", "history")
_IDS = ("user", "item")

_user, _item, _rank, _given = pl.col("user"), pl.col("item"), pl.col("rank"), pl.col("given")
_score, _relevance = pl.col("score"), pl.col("relevance")


def health(
    frame: FrameT | Mapping[str, FrameT],
    /,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    k: int = 10,
    items: Frame | None = None,
    history: Frame | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Count what is in the tables, and what is wrong with them; bad data never raise an error.

    Parameters
    ----------
    frame
        A run (user, item, rank or score), or a judged table; or a dict of these by name, as
        ``from_runs`` takes it, but with any columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        Columns of the run that split it into separate lists, by default ``"model"`` if there is
        one. A truth with these columns is split, too.
    k
        The cut-off for short lists, ties at the cut, unjudged and seen items.
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, one row per user and item: for popularity, novelty and profiles.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, if they have other names.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per table, group and count: ``table`` (String: "run", "judged table", "truth",
        "both" = run and truth, "items", "history"), by… (null if the table is not split),
        ``what`` (String), ``count`` (Int64), ``share`` (Float64, null if ``what`` is a size or
        there is nothing to divide by) and ``example`` (String: the least id or row that is
        counted, null if ``count`` is 0 or a size).

    Raises
    ------
    RankingDataError
        If a column of ``by`` has the name of a column of the result.
    TypeError
        If a table is not a frame, or a keyword is unknown.
    ValueError
        If ``k`` is not an integer ≥ 1.

    Notes
    -----
    A row with count 0 means that nothing was found. Sizes (``rows``, ``users``, ``items``,
    ``grades``) and the rows of each grade describe the tables; all other counts are worth a look:
    ``found.filter(pl.col("count") > 0, ~pl.col("what").str.contains(sizes))`` with ``sizes =
    "^(rows|users|items|grades|grade_.*)$"``. A count is left out if its columns are missing
    or have a type that cannot play their role; the row ``unreadable`` then has the error that other
    functions raise. Null and NaN ids are only in their own counts. A user has a list if at least
    one of the user's rows has a rank, or a score that is not NaN.

    *Run.* Sizes: ``rows``, ``users`` with a list, ``items`` in the lists. Of the rows:
    ``null_groups``, ``null_users``, ``null_items``, ``null_ranks`` or ``null_scores`` (not
    retrieved), ``nan_scores``, ``infinite_scores``, ``invalid_ranks`` (not an integer ≥ 1),
    ``duplicates`` (rows of an item beyond its first in the list) and ``shared_ranks`` (rows of a
    rank beyond its first). Of the lists: ``short_lists`` (fewer than k items), ``gaps`` (a rank is
    skipped) and ``ties_at_the_cut`` (scores or ranks do not determine the first k items).

    *Judged table.* The same counts, of its rows with a rank as table "run", and of its judgments as
    table "truth". Of all rows: ``duplicates`` and ``neither_rank_nor_relevance``.

    *Truth.* Sizes: ``rows``, ``users``, ``items``, ``grades`` (distinct ones). Of the rows:
    ``null_users``, ``null_items``, ``null_relevances``, ``nonfinite_relevances`` (NaN or infinite),
    ``negative_grades``, ``duplicates``, and one count per grade, such as ``grade_0`` (of at most 20
    grades). Of the users: ``users_without_relevant`` (no grade > 0).

    *Both.* ``users`` in both (share of the truth's), ``missed_users`` (without a list, share of the
    truth's users with a grade > 0), ``groups_without_common_users`` (1 for a group of ``by`` in
    which no user is in both tables), ``users_unknown_to_truth`` and ``items_unknown_to_truth``
    (share of the run's users and items), ``items_unknown_to_run`` (share of the truth's items),
    ``unjudged_at_10`` (rows among the first k without a judgment, share of these rows). Of the
    run's users or items: ``user_ids_differ_in_case`` (unknown to the truth, which has the same text
    in another case or with different surrounding spaces), ``user_ids_differ_in_type`` (unknown to
    the truth, which has the same id in another type, 7 and "7", or as text of a float, "7" and
    "7.0"), and the same two for items.

    *Items.* Sizes: ``rows``, ``items``. Of the rows: ``null_items``, ``duplicates``.
    ``items_unknown_to_catalogue`` (share of the run's items), ``items_never_listed`` (share of the
    catalogue's).

    *History.* Sizes: ``rows``, ``users``, ``items``. Of the rows: ``null_users``, ``null_items``,
    ``duplicates`` (repeated events). ``users_unknown_to_history`` and ``items_unknown_to_history``
    (share of the run's), ``seen_at_10`` (rows among the first k with an item that the user had
    before, share of these rows).

    The counts need a few streaming passes. Memory grows with the number of lists, ids and
    judgments, not of rows, unless ranks are computed from scores.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "A"], "rank": [1, 3, 1]})
    >>> truth = pl.DataFrame({"user": [1, 3], "item": ["a", "b"]})
    >>> found = rf.health(run, truth=truth, k=1)
    >>> sizes = "^(rows|users|items|grades|grade_.*)$"
    >>> bad = found.filter(pl.col("count") > 0, ~pl.col("what").str.contains(sizes))
    >>> bad.select("what", "count", "share", "example")
    shape: (6, 4)
    ┌─────────────────────────┬───────┬──────────┬──────────────────────────┐
    │ what                    ┆ count ┆ share    ┆ example                  │
    │ ---                     ┆ ---   ┆ ---      ┆ ---                      │
    │ str                     ┆ i64   ┆ f64      ┆ str                      │
    ╞═════════════════════════╪═══════╪══════════╪══════════════════════════╡
    │ gaps                    ┆ 1     ┆ 0.5      ┆ user=1                   │
    │ missed_users            ┆ 1     ┆ 0.5      ┆ user=3                   │
    │ users_unknown_to_truth  ┆ 1     ┆ 0.5      ┆ user=2                   │
    │ items_unknown_to_truth  ┆ 1     ┆ 0.333333 ┆ item='A'                 │
    │ item_ids_differ_in_case ┆ 1     ┆ 0.333333 ┆ item='A'                 │
    │ unjudged_at_1           ┆ 1     ┆ 0.5      ┆ user=2, item='A', rank=1 │
    └─────────────────────────┴───────┴──────────┴──────────────────────────┘
    """
    k = keywords.whole_number("k", k)
    if isinstance(by, list | tuple):
        by = [name for place, name in enumerate(by) if name not in by[:place]]
    if isinstance(frame, Mapping):
        run_dicts.check_runs(frame)
        like, groups = next(iter(frame.values())), run_dicts.with_model(by)
    else:
        like, groups = frame, keywords.systems_groups(by, adapters.column_names(frame, "run"))
    for name in groups:
        if name == "table" or name in _MADE:
            msg = f"run, column {name!r}: health makes a column of this name: rename it"
            raise RankingDataError(msg)
    columns = column_roles.with_ids(columns, groups, {"run": like, "truth": truth})
    tables = {"run": frame, "truth": truth, "items": items, "history": history}
    opened, problems = _opened(tables)
    runs = [*frame] if isinstance(frame, Mapping) else []
    call = _Call(opened, problems, runs, groups, columns, k)
    schema = {"table": pl.String(), **_types_of_groups(groups, opened.get("run")), **_MADE}
    plan = pl.LazyFrame({"row": [0]}).map_batches(
        partial(_counted, call, schema),
        schema=schema,
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )
    return adapters.to_caller_type(plan, like=like)


# ------------------------------------------------------------------ reading what can be read


class _Part(NamedTuple):
    """A table with normalized columns: groups, ids and other roles, as far as it has them."""

    rows: pl.LazyFrame
    names: Mapping[str, str]  # the caller's names of the columns
    types: Mapping[str, pl.DataType]  # of the caller's columns
    groups: list[str]

    @property
    def keys(self) -> list[str]:
        """The columns that identify a list."""
        return [*self.groups, "user"]

    def has(self, *roles: str) -> bool:
        """Whether all roles have a column."""
        return all(role in self.names for role in roles)

    def missing(self, role: str) -> pl.Expr:
        """Whether a value is null or NaN."""
        value = pl.col(role)
        return value.is_null() | value.is_nan() if self.types[role].is_float() else value.is_null()

    def rows_with(self, *roles: str) -> pl.LazyFrame:
        """Keep the rows whose ids are present."""
        return self.rows.filter(~self.missing(role) for role in roles)


class _Call(NamedTuple):
    """The tables and parameters of a call."""

    frames: Mapping[str, pl.LazyFrame]
    problems: Sequence[tuple[str, str]]
    runs: Sequence[str]  # the names of a dict of runs
    by: list[str]
    columns: Columns
    k: int


def _opened(
    tables: Mapping[str, Frame | Mapping[str, Frame] | None],
) -> tuple[dict[str, pl.LazyFrame], list[tuple[str, str]]]:
    """Open the given tables, and return which cannot be read."""
    frames: dict[str, pl.LazyFrame] = {}
    problems: list[tuple[str, str]] = []
    for name, table in tables.items():
        try:
            if isinstance(table, Mapping):
                frames[name] = _stacked(table, problems)
            elif table is not None:
                frames[name] = adapters.to_polars(table, _title(name)).lazy()
        except (RankingDataError, pl.exceptions.SchemaError) as error:
            problems.append((name, str(error)))
    return frames, problems


def _title(name: str) -> str:
    return f"{name}= table" if name in ("items", "history") else name


def _stacked(runs: Mapping[str, Frame], problems: list[tuple[str, str]]) -> pl.LazyFrame:
    """Stack runs in one table, also if their columns differ."""
    frames = {name: adapters.to_polars(run, f"run {name!r}").lazy() for name, run in runs.items()}
    try:
        run_dicts.common_types_of_runs(
            {name: run.collect_schema() for name, run in frames.items()}, run_dicts.MODEL
        )
    except RankingDataError as error:
        problems.append(("run", str(error)))
    tables = [run.with_columns(pl.lit(name).alias(run_dicts.MODEL)) for name, run in frames.items()]
    stacked = pl.concat(tables, how="diagonal_relaxed")
    stacked.collect_schema()
    return stacked


def _types_of_groups(by: Sequence[str], run: pl.LazyFrame | None) -> dict[str, pl.DataType]:
    """Return the types of groups in the result; text if no group can be read."""
    schema = pl.Schema() if run is None else run.collect_schema()
    types = {name: schema.get(name, pl.String()) for name in by}
    return {name: dtype if _is_id(dtype) else pl.String() for name, dtype in types.items()}


def _is_id(dtype: pl.DataType) -> bool:
    return not (dtype.is_nested() or dtype.is_object())


def _part(frame: pl.LazyFrame, wanted: Mapping[str, str], by: Sequence[str]) -> _Part | None:
    """Select the columns that can play their roles, under normalized names; None without any."""
    schema = frame.collect_schema()
    groups = {f"group {place}": name for place, name in enumerate(by)}
    names: dict[str, str] = {}
    for role, name in {**groups, **wanted}.items():
        pattern = name == "*" or (name.startswith("^") and name.endswith("$"))
        if name in schema and not pattern and _fits(role, schema[name]):
            names[role] = name
    types = {role: schema[name] for role, name in names.items()}
    if not names:
        return None
    columns = [_plain(role, name, types[role]).alias(role) for role, name in names.items()]
    rows = frame.select(columns)
    if "given" in names:
        rank = rules.as_rank("given")
        rows = rows.with_columns(rank=pl.when((rank == _given) & (rank >= 1)).then(rank))
    return _Part(rows, names, types, [group for group in groups if group in names])


def _fits(role: str, dtype: pl.DataType) -> bool:
    if role in ("given", "score", "tied", "relevance"):
        boolean = role == "relevance" and dtype == pl.Boolean
        return boolean or dtype.is_numeric() or dtype == pl.Null
    return _is_id(dtype)


def _plain(role: str, name: str, dtype: pl.DataType) -> pl.Expr:
    """Cast categories to text, and other numeric types to numbers that Polars can compare."""
    column = pl.col(name)
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if role in _IDS or role.startswith("group") or role == "subtopic":
        return column
    if dtype == pl.Boolean:
        return column.cast(pl.Int8)
    wide = isinstance(dtype, pl.Decimal | pl.Null | pl.Int128 | pl.UInt128)
    return column.cast(pl.Float64) if wide else column


def _parts(call: _Call) -> tuple[dict[str, _Part], list[tuple[str, str]]]:
    """Return the readable tables, with ids of common types, and the problems of the others."""
    frames, columns, by = call.frames, call.columns, call.by
    problems = [*call.problems, *_refused(call)]
    ids = {"user": columns.get("user", "user"), "item": columns.get("item", "item")}
    subtopic = {"subtopic": columns.get("subtopic", "subtopic")}
    wanted: dict[str, dict[str, str]] = {
        "items": {"item": ids["item"], "subtopic": side_tables.LONG}
    }
    wanted["history"] = ids
    if "run" in frames:
        placing = column_roles.with_placing(columns, by, frames["run"].collect_schema())
        rank, score = placing.get("rank", "rank"), placing.get("score", "score")
        wanted["run"] = {**ids, "given": rank, "score": score, "tied": "tied"}
    if "truth" in frames:
        names = column_roles.with_relevance(columns, by, frames["truth"].collect_schema())
        relevance = names.get("relevance", "relevance")
        wanted["truth"] = {**ids, "relevance": relevance, **subtopic}
    elif "run" in frames:
        relevance = columns.get("relevance", "relevance")
        if relevance in frames["run"].collect_schema():
            wanted["run"] |= {"relevance": relevance, **subtopic}
    parts = {name: _part(frame, wanted[name], by) for name, frame in frames.items()}
    return _of_common_types({name: part for name, part in parts.items() if part}), problems


def _refused(call: _Call) -> list[tuple[str, str]]:
    """Return the errors that other functions raise at the call."""
    errors: list[tuple[str, str]] = []

    def attempt(table: str, read: Callable[[], object]) -> None:
        try:
            read()
        except RankingDataError as error:
            message = str(error)
            subject = next((name for name in _TABLES if message.startswith(name)), table)
            if subject not in [name for name, _ in (*call.problems, *errors)]:
                errors.append((subject, message))

    frames, columns, by = call.frames, call.columns, call.by
    run, truth = frames.get("run"), frames.get("truth")
    if run is not None:
        alone = truth is not None or "relevance" not in run.collect_schema()
        attempt(
            "both", lambda: readers.read_tables(run, truth, by, columns, reads=(), run_alone=alone)
        )
    if run is not None and truth is not None and errors:
        attempt("run", lambda: readers.read_run(run, by, columns))
    if truth is not None:
        attempt("truth", lambda: rules.raise_if_ungraded(readers.read_truth(truth, by, columns)))
    for name in ("items", "history"):
        if name in frames and run is not None:
            attempt(name, partial(_read_input, name, call, run))
    return errors


def _read_input(name: str, call: _Call, run: pl.LazyFrame) -> None:
    frames: Mapping[str, pl.LazyFrame] = {name: call.frames[name]}
    user, item = call.columns.get("user", "user"), call.columns.get("item", "item")
    schema = run.collect_schema()
    table = Table("run", run, schema, call.by, user, item, None, None, None)
    settings = Settings(
        items=frames.get("items"), history=frames.get("history"), columns=call.columns
    )
    side_tables.common_types(side_tables.read_inputs(settings, table), schema)


def _of_common_types(parts: dict[str, _Part]) -> dict[str, _Part]:
    """Cast integers of several types to one that holds all; leave other types unchanged."""
    for role in dict.fromkeys(role for part in parts.values() for role in part.names):
        if role not in _IDS and not role.startswith("group"):
            continue
        types = {name: part.types[role] for name, part in parts.items() if part.has(role)}
        integers = [dtype for dtype in types.values() if dtype.is_integer()]
        if len({*integers}) > 1:
            common = reduce(rules.common_integer, integers)
            for name, dtype in types.items():
                if dtype.is_integer():
                    rows = parts[name].rows.with_columns(pl.col(role).cast(common, strict=False))
                    parts[name] = parts[name]._replace(rows=rows)
    return parts


def _apart(left: _Part, right: _Part, role: str) -> bool:
    """Return whether ids cannot be equal, since their types differ."""
    left_type, right_type = left.types[role], right.types[role]
    return left_type != right_type and not (left_type.is_integer() and right_type.is_integer())


# ------------------------------------------------------------------ what is counted


class _Sample(NamedTuple):
    """The candidates for an example: those of ``rows`` that are ``broken``.

    If a row is broken together with others, ``among`` defines these rows of a user.
    """

    part: _Part
    rows: pl.LazyFrame
    broken: pl.Expr
    among: pl.Expr | None = None


class _Measure(NamedTuple):
    """A count, its total, and the least id that is counted."""

    what: str
    number: pl.Expr
    of: pl.Expr | None = None
    least: pl.Expr | None = None
    role: str = "user"  # of the id
    sample: _Sample | None = None
    name: str = ""  # the caller's name of the id


class _Section(NamedTuple):
    """Measures of one frame, by groups."""

    table: str
    frame: pl.LazyFrame
    groups: list[str]
    measures: list[_Measure]


def _size(what: str, count: pl.Expr) -> _Measure:
    return _Measure(what, count)


def _among(
    what: str, broken: pl.Expr, part: _Part, role: str, of: pl.Expr | None = None
) -> _Measure:
    """Count the ids, one per row, for which a condition holds; by default as a share of all."""
    share = pl.len() if of is None else of
    least = pl.col(role).filter(broken).min()
    return _Measure(what, broken.sum(), share, least, role, name=part.names[role])


def _of_rows(what: str, broken: pl.Expr, part: _Part, rows: pl.LazyFrame | None = None) -> _Measure:
    """Count rows for which a condition holds, as a share of all."""
    role = next((role for role in _IDS if part.has(role) and what != f"null_{role}s"), "")
    sample = _Sample(part, part.rows if rows is None else rows, broken) if role else None
    least = pl.col(role).filter(broken).min() if role else None
    return _Measure(what, broken.sum(), pl.len(), least, role, sample)


def _nulls(part: _Part) -> Iterator[_Measure]:
    """Count missing ids."""
    if part.groups:
        broken = pl.any_horizontal(part.missing(group) for group in part.groups)
        yield _of_rows("null_groups", broken, part)
    for role in _IDS:
        if part.has(role):
            yield _of_rows(f"null_{role}s", part.missing(role), part)


def _duplicates(part: _Part, rows: pl.LazyFrame, surplus: pl.Expr) -> _Measure:
    twice = pl.struct([*part.keys, *_row(part)]).is_duplicated()
    sample = _Sample(part, rows, ~part.missing("item"), twice)
    least = _user.filter(pl.col("surplus") > 0).min()
    return _Measure("duplicates", surplus, pl.col("rows").sum(), least, "user", sample)


def _row(part: _Part) -> list[str]:
    """Return the columns that identify a row of a list."""
    return [role for role in ("item", "subtopic") if part.has(role)]


def _surplus(part: _Part) -> pl.Expr:
    """Count the rows of a list beyond the first of each item."""
    columns = _row(part)
    row = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    rows = row.filter(~part.missing("item"))
    return (rows.len() - rows.n_unique()).cast(pl.Int64)


def _sections(parts: dict[str, _Part], k: int, groups: pl.LazyFrame | None) -> Iterator[_Section]:
    """Yield everything that can be counted, table by table."""
    run, truth = parts.get("run"), parts.get("truth")
    items, history = parts.get("items"), parts.get("history")
    if run is not None and run.has("relevance"):
        yield from _of_judged(run)
        run, truth = _split(run)
    if run is not None:
        run = _listed(run)
        yield from _of_run(run, k)
    if truth is not None:
        yield from _of_truth(truth)
    if run is not None and truth is not None:
        yield from _of_both(run, truth, k, groups)
    if items is not None:
        yield from _of_items(items, run, groups)
    if history is not None:
        yield from _of_history(history, run, k)


def _of_judged(part: _Part) -> Iterator[_Section]:
    """Count what needs all rows of a judged table."""
    placing = [pl.col(name).is_null() for name in ("given", "score") if part.has(name)]
    if placing:
        broken = placing[0] & _relevance.is_null()
        neither = _of_rows("neither_rank_nor_relevance", broken, part)
        yield _Section("judged table", part.rows, part.groups, [neither])
    if part.has(*_IDS):
        rows = part.rows_with(*_IDS)
        lists = rows.group_by(part.keys).agg(rows=pl.len(), surplus=_surplus(part))
        duplicates = _duplicates(part, rows, pl.col("surplus").sum())
        yield _Section("judged table", lists, part.groups, [duplicates])


def _split(part: _Part) -> tuple[_Part, _Part]:
    """Split a judged table into its lists and its judgments."""
    placing = [name for name in ("given", "score") if part.has(name)]
    of_truth = {role: name for role, name in part.names.items() if role not in ("given", "score")}
    rows = part.rows
    if placing:
        value = pl.col(placing[0])
        floats = placing == ["score"] and part.types["score"].is_float()
        rows = rows.filter((value.fill_nan(None) if floats else value).is_not_null())
    run_names = {role: name for role, name in part.names.items() if role != "relevance"}
    truth = part._replace(rows=part.rows.filter(_relevance.is_not_null()), names=of_truth)
    return part._replace(rows=rows, names=run_names), truth


def _listed(part: _Part) -> _Part:
    """Mark the rows that are in a list, and compute ranks if there are only scores."""
    if part.has("given"):
        return part._replace(rows=part.rows.with_columns(listed=_given.is_not_null()))
    if not part.has("score"):
        return part._replace(rows=part.rows.with_columns(listed=pl.lit(value=True)))
    floats = part.types["score"].is_float()
    score = _score.fill_nan(None) if floats else _score
    rows = part.rows.with_columns(listed=score.is_not_null())
    if not part.has(*_IDS):
        return part._replace(rows=rows)
    rankable = pl.col("listed") & ~part.missing("user") & ~part.missing("item")
    schema = part.rows.collect_schema()
    ranked = rank_order.with_positions(rows.filter(rankable), part.keys, schema, _score, _item)
    rest = rows.filter(~rankable).with_columns(rank=pl.lit(None, pl.Int64))
    return part._replace(rows=pl.concat([ranked, rest.select(ranked.collect_schema().names())]))


def _has_rank(run: _Part) -> bool:
    return "rank" in run.rows.collect_schema()


def _of_run(run: _Part, k: int) -> Iterator[_Section]:
    """Count rows, lists and items of a run."""
    measures = [_size("rows", pl.len()), *_nulls(run)]
    if run.has("given"):
        measures.append(_of_rows("null_ranks", _given.is_null(), run))
        measures.append(_of_rows("invalid_ranks", _given.is_not_null() & _rank.is_null(), run))
    elif run.has("score"):
        measures.append(_of_rows("null_scores", _score.is_null(), run))
        if run.types["score"].is_float():
            measures.append(_of_rows("nan_scores", _score.is_nan(), run))
            measures.append(_of_rows("infinite_scores", _score.is_infinite(), run))
    yield _Section("run", run.rows, run.groups, measures)
    if run.has("user"):
        yield _Section("run", _lists(run, k), run.groups, list(_of_lists(run, k)))
    if run.has("item"):
        listed = run.rows_with("item").filter(pl.col("listed")).select(*run.groups, "item").unique()
        yield _Section("run", listed, run.groups, [_size("items", pl.len())])


def _lists(run: _Part, k: int) -> pl.LazyFrame:
    """Return one row per list: its length, its duplicates, and the items at its cut-off."""
    aggregates = [pl.len().alias("rows"), pl.col("listed").sum().alias("listed")]
    if run.has("item"):
        aggregates.append(_surplus(run).alias("surplus"))
    if _has_rank(run):
        top, crowded = _rank.max(), (_rank <= k).sum() > k
        covered = _rank.drop_nulls().n_unique()
        if run.has("tied"):
            top, covered = (_rank + rules.as_rank("tied") - 1).max(), _rank.count()
        if run.has("score"):
            at, below = (pl.when(_rank == place).then(_score).max() for place in (k, k + 1))
            crowded = crowded | (at == below)
        aggregates += [(top > covered).alias("gap"), crowded.alias("crowded")]
        aggregates.append((_rank.count() - _rank.drop_nulls().n_unique()).alias("shared"))
    return run.rows_with("user").group_by(run.keys).agg(aggregates)


def _of_lists(run: _Part, k: int) -> Iterator[_Measure]:
    listed = pl.col("listed") > 0
    of = listed.sum()
    yield _size("users", of)
    rows = run.rows_with("user")
    if run.has("item"):
        yield _duplicates(run, rows, pl.col("surplus").sum())
    if run.has("given") and not run.has("tied"):
        twice = pl.struct([*run.keys, "rank"]).is_duplicated() & _rank.is_not_null()
        sample = _Sample(run, rows, _rank.is_not_null(), twice)
        shared = pl.col("shared")
        least = _user.filter(shared > 0).min()
        yield _Measure("shared_ranks", shared.sum(), pl.col("rows").sum(), least, "user", sample)
    yield _among("short_lists", listed & (pl.col("listed") < k), run, "user", of)
    if _has_rank(run):
        yield _among("gaps", pl.col("gap"), run, "user", of)
        yield _among("ties_at_the_cut", pl.col("crowded"), run, "user", of)


def _of_truth(truth: _Part) -> Iterator[_Section]:
    """Count rows, grades and users of a truth."""
    groups = truth.groups
    measures = [_size("rows", pl.len()), *_nulls(truth)]
    if truth.has("relevance"):
        measures.append(_of_rows("null_relevances", _relevance.is_null(), truth))
        if truth.types["relevance"].is_float():
            measures.append(_of_rows("nonfinite_relevances", ~_relevance.is_finite(), truth))
        negative = _relevance < 0
        measures.append(_of_rows("negative_grades", negative, truth))
    yield _Section("truth", truth.rows, groups, measures)
    if truth.has("user"):
        aggregates = [pl.len().alias("rows"), _is_relevant(truth)]
        if truth.has("item"):
            aggregates.append(_surplus(truth).alias("surplus"))
        users = truth.rows_with("user").group_by(truth.keys).agg(aggregates)
        counts = [_size("users", pl.len())]
        counts.append(_among("users_without_relevant", ~pl.col("relevant"), truth, "user"))
        if truth.has("item"):
            counts.append(_duplicates(truth, truth.rows_with("user"), pl.col("surplus").sum()))
        yield _Section("truth", users, groups, counts)
    if truth.has("item"):
        items = truth.rows_with("item").select(*groups, "item").unique()
        yield _Section("truth", items, groups, [_size("items", pl.len())])
    yield from _of_grades(truth)


def _is_relevant(truth: _Part) -> pl.Expr:
    """Return whether a user has an item of grade > 0."""
    if not truth.has("relevance"):
        return pl.lit(value=True).alias("relevant")
    floats = truth.types["relevance"].is_float()  # NaN is greater than any number
    grade = _relevance.fill_nan(None) if floats else _relevance
    return (grade > 0).any().alias("relevant")


def _of_grades(truth: _Part) -> Iterator[_Section]:
    """Count the rows of each grade, or if there are many grades, only the grades."""
    rows = (
        truth.rows.with_columns(relevance=pl.lit(1)) if not truth.has("relevance") else truth.rows
    )
    part = truth._replace(rows=rows)
    grades = rows.select(_relevance.unique()).filter(_relevance.is_not_null()).sort("relevance")
    first = grades.head(_MOST_GRADES + 2).collect(engine="streaming").to_series()
    finite = [grade for grade in first.to_list() if math.isfinite(grade)]
    distinct = _relevance.drop_nulls().n_unique()
    yield _Section("truth", rows, truth.groups, [_size("grades", distinct)])
    if len(finite) <= _MOST_GRADES:
        measures = [
            _of_rows(_grade_name(grade), (_relevance == grade).fill_null(value=False), part)
            for grade in finite
        ]
        yield _Section("truth", rows, truth.groups, measures)


def _grade_name(grade: float) -> str:
    return f"grade_{int(grade) if grade == int(grade) else grade!r}"


# ------------------------------------------------------------------ tables side by side


def _marked(
    left: pl.LazyFrame, right: pl.LazyFrame, on: Sequence[str], flag: str, *, apart: bool
) -> pl.LazyFrame:
    """Mark the rows that are in the other table; none if types are incompatible."""
    if apart:
        return left.with_columns(pl.lit(value=False).alias(flag))
    flags = right.select(on).unique().with_columns(pl.lit(value=True).alias(flag))
    marked = left.join(flags, on=on, how="left", nulls_equal=True)
    return marked.with_columns(pl.col(flag).fill_null(value=False))


def _common_groups(left: _Part, right: _Part) -> list[str]:
    """Return the groups by which both tables are split."""
    both = [group for group in left.groups if group in right.groups]
    return [group for group in both if not _apart(left, right, group)]


def _spread(
    ids: pl.LazyFrame, left: _Part, right: _Part, groups: pl.LazyFrame | None
) -> pl.LazyFrame:
    """Return the ids of the other table for each group of the run."""
    shared = _common_groups(left, right)
    rest = [group for group in right.groups if group not in shared]
    ids = ids.drop(rest).unique() if rest else ids
    if groups is None or shared == left.groups:
        return ids
    if not shared:
        return groups.join(ids, how="cross")
    return groups.join(ids, on=shared, nulls_equal=True)


def _unknown(run: _Part, other: _Part, role: str, what: str) -> Iterator[_Section]:
    """Count the ids of the run that another table lacks."""
    if not (run.has(role) and other.has(role)):
        return
    ids = run.rows_with(role).filter(pl.col("listed")).select(*run.groups, role).unique()
    rows, on = other.rows_with(role), [*_common_groups(run, other), role]
    marked = _marked(ids, rows, on, "met", apart=_apart(run, other, role))
    measures = [_among(f"{role}s_unknown_to_{what}", ~pl.col("met"), run, role)]
    if what != "truth":
        yield _Section(what, marked, run.groups, measures)
        return
    for difference, form in (("case", _folded), ("type", _as_text)):
        own_form, other_form = form(role, run.types[role]), form(role, other.types[role])
        alike = pl.lit(value=False)
        text = pl.String in (_plain_type(run, role), _plain_type(other, role))
        if own_form is not None and other_form is not None and (text or _apart(run, other, role)):
            marked = marked.with_columns(own_form.alias("form"))
            forms = rows.with_columns(other_form.alias("form"))
            marked = _marked(marked, forms, [*on[:-1], "form"], difference, apart=False)
            alike = pl.col(difference) & ~pl.col("met")
        measures.append(_among(f"{role}_ids_differ_in_{difference}", alike, run, role))
    yield _Section("both", marked, run.groups, measures)


def _plain_type(part: _Part, role: str) -> pl.DataType:
    categories = isinstance(part.types[role], pl.Categorical | pl.Enum)
    return pl.String() if categories else part.types[role]


def _folded(role: str, dtype: pl.DataType) -> pl.Expr | None:
    """Normalize case and surrounding spaces of an id, if it is text."""
    if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return None
    return pl.col(role).str.strip_chars().str.to_lowercase()


def _as_text(role: str, dtype: pl.DataType) -> pl.Expr | None:
    """Convert an id to text, and whole floats like integers."""
    if isinstance(dtype, pl.Duration | pl.Binary):
        return None
    return pl.col(role).cast(pl.String, strict=False).str.replace(r"^(-?\d+)\.0+$", "${1}")


def _at_cut(run: _Part, other: _Part, what: str, k: int, *, met: bool) -> Iterator[_Section]:
    """Count rows among the first k that are in another table, or missing from it."""
    if not (run.has(*_IDS) and other.has(*_IDS) and _has_rank(run)):
        return
    rows = run.rows_with(*_IDS).filter(_rank <= k)
    on = [*_common_groups(run, other), *_IDS]
    apart = any(_apart(run, other, role) for role in _IDS)
    marked = _marked(rows, other.rows_with(*_IDS), on, "met", apart=apart)
    broken = pl.col("met") if met else ~pl.col("met")
    table = "history" if met else "both"
    yield _Section(table, marked, run.groups, [_of_rows(what, broken, run, marked)])


def _of_both(run: _Part, truth: _Part, k: int, groups: pl.LazyFrame | None) -> Iterator[_Section]:
    """Count ids of the truth missing from the run, and ids of the run missing from the truth."""
    shared = _common_groups(run, truth)
    if run.has("user") and truth.has("user"):
        users = truth.rows_with("user").group_by([*shared, "user"]).agg(_is_relevant(truth))
        users = _spread(users, run, truth._replace(groups=shared), groups)
        lists = run.rows_with("user").filter(pl.col("listed"))
        on, apart = [*run.groups, "user"], _apart(run, truth, "user")
        users = _marked(users, lists, on, "met", apart=apart)
        met, relevant = pl.col("met"), pl.col("relevant")
        measures = [
            _Measure("users", met.sum(), pl.len()),
            _among("missed_users", relevant & ~met, truth, "user", relevant.sum()),
        ]
        yield _Section("both", users, run.groups, measures)
        if groups is not None and run.groups == groups.collect_schema().names():
            both = users.filter(met).select(run.groups)
            marked = _marked(groups, both, run.groups, "met", apart=False)
            alone = _among("groups_without_common_users", ~met, run, run.groups[-1])
            yield _Section("both", marked, run.groups, [alone])
    yield from _unknown(run, truth, "user", "truth")
    yield from _unknown(run, truth, "item", "truth")
    yield from _unlisted(run, truth, "both", "items_unknown_to_run", groups)
    yield from _at_cut(run, truth, f"unjudged_at_{k}", k, met=False)


def _unlisted(
    run: _Part, other: _Part, table: str, what: str, groups: pl.LazyFrame | None
) -> Iterator[_Section]:
    """Count the items of another table that are in no list."""
    if not (run.has("item") and other.has("item")):
        return
    ids = other.rows_with("item").select(*other.groups, "item").unique()
    ids = _spread(ids, run, other, groups)
    lists = run.rows_with("item").filter(pl.col("listed"))
    on, apart = [*run.groups, "item"], _apart(run, other, "item")
    marked = _marked(ids, lists, on, "met", apart=apart)
    yield _Section(table, marked, run.groups, [_among(what, ~pl.col("met"), other, "item")])


def _of_items(items: _Part, run: _Part | None, groups: pl.LazyFrame | None) -> Iterator[_Section]:
    """Count the items in the catalogue, and those missing from it."""
    yield _Section("items", items.rows, items.groups, [_size("rows", pl.len()), *_nulls(items)])
    if not items.has("item"):
        return
    keys = [*items.groups, "item"]
    kept = pl.col("subtopic").n_unique() if items.has("subtopic") else 1
    repeated = (pl.len() - kept).cast(pl.Int64)
    counts = items.rows_with("item").group_by(keys).agg(rows=pl.len(), surplus=repeated)
    surplus, of = pl.col("surplus"), pl.col("rows").sum()
    least = _item.filter(surplus > 0).min()
    duplicates = _Measure("duplicates", surplus.sum(), of, least, "item", name=items.names["item"])
    yield _Section("items", counts, items.groups, [_size("items", pl.len()), duplicates])
    if run is not None:
        for section in _unknown(run, items, "item", "catalogue"):
            yield section._replace(table="items")
        yield from _unlisted(run, items, "items", "items_never_listed", groups)


def _of_history(history: _Part, run: _Part | None, k: int) -> Iterator[_Section]:
    """Count earlier events, and new users and items."""
    rows = [_size("rows", pl.len()), *_nulls(history)]
    yield _Section("history", history.rows, history.groups, rows)
    if history.has(*_IDS):
        counts = {"rows": pl.len(), "surplus": _surplus(history)}
        lists = history.rows_with("user").group_by(history.keys).agg(**counts)
        again = _duplicates(history, history.rows_with("user"), pl.col("surplus").sum())
        yield _Section("history", lists, history.groups, [_size("users", pl.len()), again])
    if history.has("item"):
        items = history.rows_with("item").select(*history.groups, "item").unique()
        yield _Section("history", items, history.groups, [_size("items", pl.len())])
    if run is not None:
        yield from _unknown(run, history, "user", "history")
        yield from _unknown(run, history, "item", "history")
        yield from _at_cut(run, history, f"seen_at_{k}", k, met=True)


# ------------------------------------------------------------------ from plans to rows


def _counted(call: _Call, schema: Mapping[str, pl.DataType], _: pl.DataFrame) -> pl.DataFrame:
    """Run all plans, and return one row per count."""
    parts, problems = _parts(call)
    groups = _groups(call, parts)
    rows: list[pl.DataFrame] = [_unreadable(table, text) for table, text in problems]
    whole = None if groups is None else groups.lazy()
    sections = [section for section in _sections(parts, call.k, whole) if section.measures]
    firsts = _collected([_plan(section) for section in sections])
    filled = [
        _filled(first, groups) if groups is not None and section.groups == groups.columns else first
        for section, first in zip(sections, firsts, strict=True)
    ]
    examples = _examples(sections, filled)
    for place, (section, values) in enumerate(zip(sections, filled, strict=True)):
        for number, measure in enumerate(section.measures):
            example = examples.get((place, number))
            rows.append(_rows_of(section, values, number, measure, example))
    return _in_order(rows, call.by, schema)


def _collected(plans: Sequence[pl.LazyFrame]) -> list[pl.DataFrame]:
    return pl.collect_all(plans, engine="streaming")


def _groups(call: _Call, parts: Mapping[str, _Part]) -> pl.DataFrame | None:
    """List the groups of the run and the truth, for a dict also runs without a row."""
    run, truth = parts.get("run"), parts.get("truth")
    if run is None or not run.groups:
        return None
    groups = run.rows.select(run.groups).unique()
    if truth is not None and _common_groups(run, truth) == run.groups:
        groups = pl.concat([groups, truth.rows.select(run.groups)]).unique()
    result = groups.collect(engine="streaming")
    if call.runs and len(run.groups) == 1:
        runs = pl.DataFrame({run.groups[0]: call.runs}, schema=result.schema)
        result = pl.concat([result, runs]).unique()
    return result.sort(run.groups, nulls_last=True)


def _plan(section: _Section) -> pl.LazyFrame:
    aggregates: list[pl.Expr] = []
    for number, measure in enumerate(section.measures):
        aggregates.append(measure.number.cast(pl.Int64).alias(f"count {number}"))
        if measure.of is not None:
            aggregates.append(measure.of.cast(pl.Int64).alias(f"of {number}"))
        if measure.least is not None:
            aggregates.append(measure.least.alias(f"least {number}"))
    if not section.groups:
        return section.frame.select(aggregates)
    return section.frame.group_by(section.groups).agg(aggregates)


def _filled(values: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Add the groups without a count."""
    joined = groups.join(values, on=groups.columns, how="left", nulls_equal=True)
    return joined.with_columns(pl.col("^(count|of) .*$").fill_null(0))


def _examples(
    sections: Sequence[_Section], values: Sequence[pl.DataFrame]
) -> dict[tuple[int, int], pl.DataFrame]:
    """Fetch the rows that are examples: the least row of the least id."""
    places: list[tuple[int, int]] = []
    plans: list[pl.LazyFrame] = []
    for place, section in enumerate(sections):
        for number, measure in enumerate(section.measures):
            nonzero = values[place].filter(pl.col(f"count {number}") > 0)
            if measure.sample is not None and not nonzero.is_empty():
                sample, groups = measure.sample, section.groups
                least = nonzero.select(*groups, pl.col(f"least {number}").alias(measure.role))
                rows = sample.rows.filter(sample.broken)
                on = [*groups, measure.role]
                rows = rows.join(least.lazy(), on=on, how="semi", nulls_equal=True)
                if sample.among is None:
                    rows = rows.select(_shown(sample.part)).unique()
                places.append((place, number))
                plans.append(rows)
    fetched = dict(zip(places, _collected(plans), strict=True)) if plans else {}
    return {
        (place, number): _first(sections[place].measures[number], sections[place].groups, rows)
        for (place, number), rows in fetched.items()
    }


def _shown(part: _Part) -> list[str]:
    """Return the columns of an example."""
    placing = "given" if part.has("given") else "score"
    roles = ("user", "item", "subtopic", placing, "relevance")
    by_name = {part.names[role]: role for role in (*part.groups, *roles) if part.has(role)}
    return list(by_name.values())


def _first(measure: _Measure, groups: list[str], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the example of each group as text."""
    assert measure.sample is not None
    part, among = measure.sample.part, measure.sample.among
    shown = _shown(part)
    rows = (rows if among is None else rows.filter(among)).sort(shown, nulls_last=True)
    rows = rows.unique(groups, keep="first", maintain_order=True) if groups else rows.head(1)
    plain = rows.select(pl.col(name).alias(part.names[name]) for name in shown)
    texts = [rules.format_row(plain[place]) for place in range(plain.height)]
    return rows.select(*groups, pl.Series("example", texts, dtype=pl.String))


def _rows_of(
    section: _Section,
    values: pl.DataFrame,
    number: int,
    measure: _Measure,
    examples: pl.DataFrame | None,
) -> pl.DataFrame:
    count, of = pl.col(f"count {number}"), pl.col(f"of {number}")
    share = pl.lit(None, pl.Float64)
    if measure.of is not None:
        share = pl.when(of > 0).then(count / of)
    rows = values.select(
        *section.groups,
        pl.lit(section.table).alias("table"),
        pl.lit(measure.what).alias("what"),
        count.alias("count"),
        share.alias("share"),
    )
    if examples is not None:
        if not section.groups:
            return rows.hstack(examples)
        return rows.join(examples, on=section.groups, how="left", nulls_equal=True)
    texts: list[str | None] = [None] * rows.height
    if measure.least is not None and measure.sample is None:
        ids = values.select(pl.col(f"least {number}").alias(measure.name))
        texts = [
            rules.format_row(ids[place]) if values.item(place, f"count {number}") else None
            for place in range(rows.height)
        ]
    return rows.with_columns(pl.Series("example", texts, dtype=pl.String))


def _unreadable(table: str, text: str) -> pl.DataFrame:
    row = {"table": table, "what": "unreadable", "count": 1, "share": None, "example": text}
    return pl.DataFrame(row, schema={"table": pl.String(), **_MADE})


_ORDER = ("unreadable", "rows", "users", "items", "null_groups")


def _in_order(
    frames: Sequence[pl.DataFrame],
    by: Sequence[str],
    schema: Mapping[str, pl.DataType],
) -> pl.DataFrame:
    """Sort tables, groups and counts, and restore the caller's names of groups."""
    groups = {f"group {place}": name for place, name in enumerate(by)}
    if not frames:
        return pl.DataFrame(schema=schema)
    rows = pl.concat(frames, how="diagonal_relaxed")
    absent = [name for name in groups if name not in rows.columns]
    rows = rows.with_columns(pl.lit(None).alias(name) for name in absent)
    tables = {name: place for place, name in enumerate(_TABLES)}
    whats = {what: place for place, what in enumerate(_ORDER)}
    order = pl.col("what").replace_strict(whats, default=len(whats), return_dtype=pl.Int64)
    place = pl.col("table").replace_strict(tables, default=len(tables), return_dtype=pl.Int64)
    rows = rows.with_row_index("row").sort(place, *groups, order, "row", nulls_last=False)
    result = rows.select("table", *(pl.col(a).alias(b) for a, b in groups.items()), *_MADE)
    return result.cast(pl.Schema(schema))
