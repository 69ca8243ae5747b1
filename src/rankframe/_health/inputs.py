"""What of the tables of ``health`` can be read, however odd they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial, reduce
from types import MappingProxyType
from typing import NamedTuple

import polars as pl

from rankframe._inputs import item_lists
from rankframe._request import keywords
from rankframe._request.keywords import Columns, ListColumns, Settings
from rankframe._request.types import Frame
from rankframe._tables import adapters, column_roles, readers, rules, run_dicts
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError

TABLES = ("run", "judged table", "truth", "both", "items", "history")
IDS = ("user", "item")


class Part(NamedTuple):
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


class Call(NamedTuple):
    """The tables and parameters of a call."""

    frames: Mapping[str, pl.LazyFrame]
    problems: Sequence[tuple[str, str]]
    runs: Sequence[str]  # the names of a dict of runs
    by: list[str]
    columns: Columns
    k: int
    time: str | None = None  # of judgments and events
    orders: Mapping[str, Sequence[str]] = MappingProxyType({})  # of the names of groups


def opened(
    tables: Mapping[str, Frame | Mapping[str, Frame] | None], by: Sequence[str], columns: Columns
) -> tuple[dict[str, pl.LazyFrame], list[tuple[str, str]]]:
    """Open the given tables, and return which cannot be read."""
    frames: dict[str, pl.LazyFrame] = {}
    problems: list[tuple[str, str]] = []
    for name, table in tables.items():
        try:
            if isinstance(table, Mapping):
                frames[name] = _stacked(table, problems, by, columns)
            elif table is not None:
                title = f"{name}= table" if name in ("items", "history") else name
                frames[name] = adapters.to_lazy(table, title)
        except (RankingDataError, pl.exceptions.SchemaError) as error:
            problems.append((name, str(error)))
    return frames, problems


def _stacked(
    runs: Mapping[str, Frame],
    problems: list[tuple[str, str]],
    by: Sequence[str],
    columns: Columns,
) -> pl.LazyFrame:
    """Stack runs in one table, also if their columns differ."""
    model, *_ = by
    frames = {name: adapters.to_lazy(run, f"run {name!r}") for name, run in runs.items()}
    try:
        ranked = run_dicts.with_ranks(frames, by, columns)
        frames = {name: run.lazy() for name, run in ranked.items()}
        run_dicts.common_types_of_runs(
            {name: run.collect_schema() for name, run in frames.items()}, model
        )
    except RankingDataError as error:
        problems.append(("run", str(error)))
    tables = [run.with_columns(pl.lit(name).alias(model)) for name, run in frames.items()]
    stacked = pl.concat(tables, how="diagonal_relaxed")
    stacked.collect_schema()
    return stacked


def orders_of(
    by: Sequence[str], runs: Sequence[str], like: Frame, run: pl.LazyFrame | None
) -> dict[str, list[str]]:
    """Return the order of the names in each group that has one: of a dict of runs, or an Enum."""
    schema = pl.Schema() if run is None else run.collect_schema()
    orders = {name: dtype for name in by if isinstance(dtype := schema.get(name), pl.Enum)}
    noted = adapters.order_of(like)
    orders |= {by[0]: pl.Enum(runs)} if runs else {} if noted is None else dict([noted])
    return {name: dtype.categories.to_list() for name, dtype in orders.items()}


def types_of_groups(
    by: Sequence[str], frames: Mapping[str, pl.LazyFrame]
) -> dict[str, pl.DataType]:
    """Return the types of groups in the result; text if no group can be read, or others come in."""
    run, truth = (
        frames[name].collect_schema() if name in frames else pl.Schema()
        for name in ("run", "truth")
    )
    types = {name: run.get(name, pl.String()) for name in by}
    open_ended = [name for name in by if truth.get(name) == pl.String]
    types |= {name: pl.String() for name in open_ended if isinstance(types[name], pl.Enum)}
    is_id = column_roles.can_be_id
    return {name: dtype if is_id(dtype) else pl.String() for name, dtype in types.items()}


def _part(frame: pl.LazyFrame, wanted: Mapping[str, str], by: Sequence[str]) -> Part | None:
    """Select the columns that can play their roles, under normalized names; None without any."""
    schema = frame.collect_schema()
    groups = {f"group {place}": name for place, name in enumerate(by)}
    names = {
        role: name
        for role, name in {**groups, **wanted}.items()
        if name in schema and not column_roles.is_pattern(name) and _fits(role, schema[name])
    }
    if not names:
        return None
    types = {role: schema[name] for role, name in names.items()}
    columns = [_plain(role, name, types[role]).alias(role) for role, name in names.items()]
    rows = frame.select(columns)
    if "given" in names:
        rank = rules.as_rank("given")
        is_rank = (rank == pl.col("given")) & (rank >= 1)
        rows = rows.with_columns(rank=pl.when(is_rank).then(rank))
    return Part(rows, names, types, [group for group in groups if group in names])


def _fits(role: str, dtype: pl.DataType) -> bool:
    if role in ("given", "score", "tied", "relevance"):
        return column_roles.can_be_number(dtype, role)
    return column_roles.can_be_id(dtype)


def _plain(role: str, name: str, dtype: pl.DataType) -> pl.Expr:
    """Cast categories to text, and other numeric types to numbers that Polars can compare."""
    column = pl.col(name)
    if isinstance(dtype, pl.Categorical | pl.Enum):
        return column.cast(pl.String)
    if role in IDS or role.startswith("group") or role == "subtopic":
        return column
    if dtype == pl.Boolean:
        return column.cast(pl.Int8)
    wide = isinstance(dtype, pl.Decimal | pl.Null | pl.Int128 | pl.UInt128)
    return column.cast(pl.Float64) if wide else column


def parts(call: Call) -> tuple[dict[str, Part], list[tuple[str, str]]]:
    """Return the readable tables, with ids of common types, and the problems of the others."""
    frames, columns, by = call.frames, call.columns, call.by
    problems = [*call.problems, *_refused(call)]
    ids = {"user": keywords.user_of(columns), "item": columns.get("item", "item")}
    subtopic = {"subtopic": columns.get("subtopic", "subtopic")}
    wanted: dict[str, dict[str, str]] = {"items": {"item": ids["item"]}}
    time = {} if call.time is None or _without_time(call) else {"time": call.time}
    wanted["history"] = {**ids, **time}
    if "run" in frames:
        placing = column_roles.with_roles(columns, by, frames["run"].collect_schema(), ["placing"])
        rank, score = placing.get("rank", "rank"), placing.get("score", "score")
        wanted["run"] = {**ids, "given": rank, "score": score, "tied": "tied"}
    if "truth" in frames:
        names = column_roles.with_roles(
            columns, by, frames["truth"].collect_schema(), ["relevance"]
        )
        relevance = names.get("relevance", "relevance")
        wanted["truth"] = {**ids, "relevance": relevance, **subtopic, **time}
    elif "run" in frames:
        relevance = columns.get("relevance", "relevance")
        if relevance in frames["run"].collect_schema():
            wanted["run"] |= {"relevance": relevance, **subtopic, **time}
    parts = {name: _part(frame, wanted[name], by) for name, frame in frames.items()}
    return _of_common_types({name: part for name, part in parts.items() if part}), problems


def _refused(call: Call) -> list[tuple[str, str]]:
    """Return the errors that other functions raise at the call, the first of each table."""
    frames, columns, by = call.frames, call.columns, call.by
    run, truth = frames.get("run"), frames.get("truth")
    errors: list[tuple[str, str]] = []
    if run is not None:
        errors += _problem("run", partial(_read_lists, run, columns))
        grade = columns.get("relevance", "relevance")
        alone = truth is not None or grade not in run.collect_schema()
        read = partial(readers.read_run_and_truth, reads=(), run_alone=alone)
        errors += _problem("both", partial(read, run, truth, by, columns))
    if run is not None and truth is not None and errors:
        errors += _problem("run", partial(readers.read, "run", run, by, columns))
    if truth is not None:
        judgments = partial(readers.read, "truth", truth, by, columns)
        errors += _problem("truth", lambda: rules.raise_if_ungraded(judgments()))
    for name in ("items", "history"):
        if name in frames and run is not None:
            errors += _problem(name, partial(_read_input, name, call, run))
    errors += _without_time(call)
    unopened = {name for name, _ in call.problems}
    return [error for error in dict(reversed(errors)).items() if error[0] not in unopened]


def _without_time(call: Call) -> list[tuple[str, str]]:
    """Return the tables without a column of times, or whose times cannot be compared."""
    judged = "truth" if "truth" in call.frames else "run"
    if call.time is None or not {judged, "history"} <= {*call.frames}:
        return []
    schemas = {name: call.frames[name].collect_schema() for name in (judged, "history")}
    for name, schema in schemas.items():
        if call.time not in schema:
            has = ", ".join(map(repr, schema.names()))
            return [(name, f"{name}: no column {call.time!r} for time=; it has {has}")]
    left, right = (schema[call.time] for schema in schemas.values())
    try:
        empty = pl.LazyFrame(schema={"left": left, "right": right})
        empty.select(pl.col("left") >= pl.col("right")).collect()
    except pl.exceptions.PolarsError:
        text = f"column {call.time!r}: it is {left} in the {judged} and {right} in the history"
        return [("history", f"{text}: cast one")]
    return []


def _problem(table: str, read: Callable[[], object]) -> list[tuple[str, str]]:
    """Return which table cannot be read, and why."""
    try:
        read()
    except RankingDataError as error:
        message = str(error)
        return [(next((name for name in TABLES if message.startswith(name)), table), message)]
    return []


def _read_lists(run: pl.LazyFrame, columns: Columns) -> None:
    """Raise what ``from_lists`` raises of a run of lists; it had been made long otherwise."""
    item = columns.get("item", "item")
    own = ListColumns(user=keywords.user_of(columns), item=item)
    if "score" in columns:
        own["score"] = columns["score"]
    is_ranked = columns.get("rank", "rank") in run.collect_schema()
    if adapters.has_lists(run, item) and not is_ranked:
        item_lists.from_lists(run, **own).collect()


def _read_input(name: str, call: Call, run: pl.LazyFrame) -> None:
    columns, schema = call.columns, run.collect_schema()
    user, item = keywords.user_of(columns), columns.get("item", "item")
    table = Table("run", run, schema, call.by, user, item)
    tables: dict[str, pl.LazyFrame] = {name: call.frames[name]}
    settings = Settings(items=tables.get("items"), history=tables.get("history"), columns=columns)
    readers.common_types(table, readers.read_tables_beside(table, settings).values())


def _of_common_types(parts: dict[str, Part]) -> dict[str, Part]:
    """Cast integers of several types to one that holds all; leave other types unchanged."""
    for role in dict.fromkeys(role for part in parts.values() for role in part.names):
        if role not in IDS and not role.startswith("group"):
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


def apart(left: Part, right: Part, role: str) -> bool:
    """Return whether ids cannot be equal, since their types differ."""
    left_type, right_type = left.types[role], right.types[role]
    return left_type != right_type and not (left_type.is_integer() and right_type.is_integer())
