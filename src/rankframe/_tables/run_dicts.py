"""Several runs as one table: a dict of frames, and the column that names them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import TypeAlias, TypeVar, cast

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns
from rankframe._request.question import Totals
from rankframe._request.types import Frame, FrameT
from rankframe._tables import adapters, guards, rank_order, readers, rules
from rankframe.errors import RankingDataError

#: The column that names the runs of a dict.
MODEL = "model"

PolarsFrame: TypeAlias = pl.DataFrame | pl.LazyFrame
ByT = TypeVar("ByT", str | Sequence[str], str | Sequence[str] | None)


@adapters.takes_any_frame
def from_runs(runs: Mapping[str, FrameT], /, *, by: str = MODEL) -> FrameT:
    """
    Make one table of several runs, with a column that names them.

    Parameters
    ----------
    runs
        A dict from the name of each run to its frame. All frames are of one kind and have the same
        columns, in any order. They may be judged tables. (Of a dict, a verb ranks runs with scores
        alone by ``with_rank``'s rule if other runs have ranks.)
    by
        The column to make.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        ``by`` (String), then the columns of the first run: the rows of all runs, in their order.
        Verbs that take this frame, the dict, or what a verb returned for them keep the order of the
        dict; any other table made of it has a column of text, whose systems are sorted by name.

    Raises
    ------
    RankingDataError
        If a run is empty or has the column ``by`` already, a column is not in all runs, or its
        types differ. Two integer types, or two float types, get their common type.
    TypeError
        If the runs are not a dict of frames, their names are not text, or the frames are not of one
        kind.
    ValueError
        If there is no run.

    Notes
    -----
    Each verb, chart and Spark verb takes such a dict in place of its frame, as
    ``from_runs(runs)``. It adds ``"model"`` to the front of ``by``, unless ``by`` names it:
    ``evaluate(runs, "map", truth=truth, by="day")`` has ``by=["model", "day"]``. For a column of
    another name, pass ``from_runs(runs, by="system")`` and name it in ``by``.

    Examples
    --------
    >>> pop = pl.DataFrame({"user": [1, 2], "item": ["a", "a"], "rank": [1, 1]})
    >>> knn = pl.DataFrame({"user": [1, 2], "item": ["b", "a"], "rank": [1, 1]})
    >>> rf.from_runs({"pop": pop, "knn": knn}).rows()
    [('pop', 1, 'a', 1), ('pop', 2, 'a', 1), ('knn', 1, 'b', 1), ('knn', 2, 'a', 1)]
    """
    stacked = _stacked(runs, by, whole=True)
    text = adapters.with_names_as_text(stacked, stacked)
    adapters.note_order(text, by, [*runs])
    return text


def _stacked(
    runs: Mapping[str, FrameT],
    column: str = MODEL,
    *,
    by: str | Sequence[str] | None = None,
    roles: Mapping[str, object] | None = None,
    whole: bool,
) -> FrameT:
    """Stack runs; of a part of the users, one may be empty."""
    check_runs(runs, column)
    opened = {name: adapters.to_polars(frame, f"run {name!r}") for name, frame in runs.items()}
    first, *rest = runs
    for name in rest:
        if _kind(runs[name]) != _kind(runs[first]):
            msg = (
                f"run {first!r} is a {_kind(runs[first])}, and run {name!r} a "
                f"{_kind(runs[name])}: convert one; all runs must be of one kind"
            )
            raise TypeError(msg)
    opened = opened if roles is None else with_ranks(opened, with_model(by), roles)
    types = common_types_of_runs({n: frame.collect_schema() for n, frame in opened.items()}, column)
    columns = [pl.col(name).cast(dtype) for name, dtype in types.items()]
    # text in parts, which name the type, and in pandas, which would lose the order of categories
    is_polars = isinstance(runs[first], pl.DataFrame | pl.LazyFrame)
    names = pl.Enum([*runs]) if whole and is_polars else pl.String()
    frames = [
        frame.with_columns(pl.lit(name, names).alias(column)).select(column, *columns)
        for name, frame in opened.items()
    ]
    stacked = pl.concat([frame.lazy() for frame in frames])
    if whole:
        flags = [guards.flag(frame.lazy(), pl.len() == 0) for frame in opened.values()]
        stacked = guards.guarded(stacked, flags, partial(_raise_if_empty, opened))
    table = adapters.to_caller_type(stacked, like=runs[first])
    if whole:
        adapters.note_order(table, column, [*runs])
    return table


def with_ranks(
    runs: Mapping[str, PolarsFrame], by: Sequence[str], roles: Mapping[str, object]
) -> dict[str, PolarsFrame]:
    """Rank the runs that have scores alone by these, if other runs of the dict have ranks."""
    rank, score = str(roles.get("rank", "rank")), str(roles.get("score", "score"))
    schemas = {name: run.collect_schema() for name, run in runs.items()}
    scored = [name for name, schema in schemas.items() if rank not in schema and score in schema]
    if "score" in roles or not scored or not any(rank in schema for schema in schemas.values()):
        return dict(runs)
    columns = cast("Columns", {role: roles[role] for role in keywords.ROLES if role in roles})
    single = roles.get("single_precision") is True
    placed: dict[str, PolarsFrame] = {**runs}
    for name in scored:
        groups = [group for group in by if group in schemas[name]]
        table = readers.read_scored(runs[name], groups, columns, f"run {name!r}")
        table = table._replace(totals=Totals(None, None))  # an empty run is refused elsewhere
        rows = table.frame.with_row_index(rank_order.INDEX)
        ranked = rank_order.ranked(rows, table, single_precision=single).rename({"rank": rank})
        flags = [guards.table_flag(table), guards.lists_flag(table)]
        ranked = ranked.sort(rank_order.INDEX).drop(rank_order.INDEX)
        placed[name] = guards.guarded(ranked, flags, partial(rules.raise_first_broken, [table]))
    if not all(score in schema for schema in schemas.values()):
        return {name: run.drop(score, strict=False) for name, run in placed.items()}
    return placed


def _raise_if_empty(runs: Mapping[str, pl.DataFrame | pl.LazyFrame]) -> None:
    for name, frame in runs.items():
        if frame.lazy().head(1).collect().is_empty():
            msg = (
                f"run {name!r}: it is empty: it would have no row in the result; leave it out, or "
                "give it a list"
            )
            raise RankingDataError(msg)


def as_frame(
    frame: FrameT | Mapping[str, FrameT],
    by: ByT,
    columns: Mapping[str, object] | None = None,
    *,
    roles: Mapping[str, object] | None = None,
    whole: bool = True,
) -> tuple[FrameT, ByT]:
    """Make one frame of a dict of runs, and let ``by`` name the column of its systems.

    That is the column model, also of a frame, unless it plays another role in ``columns``. A verb
    that compares systems passes no ``columns``: its ``by`` says itself what they are; its ``roles``
    tell how to rank runs. Of a part of the users, not the ``whole``, a run may be empty.
    """
    if not isinstance(frame, Mapping):
        is_frame = hasattr(frame, "collect_schema") or hasattr(frame, "columns")
        if columns is not None and is_frame:  # what is no frame is refused later
            names = adapters.column_names(frame, "run")
            by = cast("ByT", with_model(by)) if has_model(names, columns) else by
        return (_in_order(frame) if whole else frame), by
    roles = (columns or {}) if roles is None else roles
    return _stacked(frame, by=by, roles=roles, whole=whole), cast("ByT", with_model(by))


def has_model(names: Collection[str], columns: Mapping[str, object]) -> bool:
    """Return whether a table names its systems: it has a column model, which plays no role."""
    return MODEL in names and all(columns.get(role) != MODEL for role in keywords.ROLES)


def _in_order(frame: FrameT) -> FrameT:
    """Let the names of runs that ``from_runs`` stacked have their order."""
    order = adapters.order_of(frame)
    if order is None or not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return frame
    ordered = adapters.in_order(cast("pl.DataFrame | pl.LazyFrame", frame), *order)
    adapters.keep_notes(ordered, frame)
    return cast("FrameT", ordered)


def with_model(by: str | Sequence[str] | None) -> list[str]:
    """Add the column of the systems to ``by``."""
    groups = [] if by is None else keywords.group_names(by)
    return groups if MODEL in groups else [MODEL, *groups]


def _is_column(value: object) -> bool:
    """Whether a value of a dict is a list or an array of one dimension, and no frame."""
    return isinstance(value, list | tuple) or len(getattr(value, "shape", ())) == 1


def check_runs(runs: object, by: object = MODEL) -> None:
    """Check that runs are a dict that names one or more."""
    if not isinstance(by, str):
        msg = f"by must be the name of a column, not {by!r}"
        raise TypeError(msg)
    if not isinstance(runs, Mapping):
        msg = f"from_runs takes a dict of runs, {{name: run}}, not {adapters.kind(runs)}"
        raise TypeError(msg)
    frames = cast("Mapping[object, object]", runs)
    if not frames:
        msg = "the dict of runs is empty: pass one run or more, {name: run}"
        raise ValueError(msg)
    if all(map(_is_column, frames.values())):
        msg = (
            f"a dict of columns, {', '.join(map(repr, frames))}: pl.DataFrame(…) makes a frame of "
            "it; rf.from_dict reads {user: [items]}; a dict of runs is {name: run}"
        )
        raise TypeError(msg)
    for name in frames:
        if not isinstance(name, str):
            msg = f"the names of runs must be text, not {name!r}"
            raise TypeError(msg)


def common_types_of_runs(
    schemas: Mapping[str, pl.Schema], by: str = MODEL
) -> dict[str, pl.DataType]:
    """Return the common type of each column, in the order of the first run, or raise."""
    first, *rest = schemas
    types = dict(schemas[first])
    for run, schema in schemas.items():
        if by in schema:
            msg = (
                f"run {run!r}, column {by!r}: the names of the runs make a column of this name: "
                "drop or rename it, or name theirs with from_runs(runs, by=…)"
            )
            raise RankingDataError(msg)
    for run in rest:
        schema = schemas[run]
        for name in [*types, *schema]:
            lacking, has = (run, first) if name not in schema else (first, run)
            if name not in schema or name not in types:
                cure = "give all runs the same columns"
                if name == "rank" and "score" in schemas[lacking]:
                    cure = f"runs[{lacking!r}] = rf.with_rank(runs[{lacking!r}]) makes it"
                msg = f"run {lacking!r}: no column {name!r}, which run {has!r} has: {cure}"
                raise RankingDataError(msg)
        for name, dtype in types.items():
            common = common_type(dtype, schema[name])
            if common is None:
                msg = (
                    f"column {name!r}: it is {adapters.type_words(dtype, schema[name])} in run "
                    f"{first!r} and {adapters.type_words(schema[name], dtype)} in run {run!r}: "
                    "cast one; a column must have the same type in all runs, or any two integer "
                    "types or any two float types"
                )
                raise RankingDataError(msg)
            types[name] = common
    return types


def common_type(left: pl.DataType, right: pl.DataType) -> pl.DataType | None:
    if left == right or right == pl.Null:
        return left
    if left == pl.Null:
        return right
    if left.is_integer() and right.is_integer():
        return rules.common_integer(left, right)
    return pl.Float64() if left.is_float() and right.is_float() else None


def _kind(frame: Frame) -> str:
    if isinstance(frame, pl.DataFrame):
        return "polars DataFrame"
    return "polars LazyFrame" if isinstance(frame, pl.LazyFrame) else "pandas DataFrame"
