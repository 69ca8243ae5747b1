"""The systems of a call: a dict of frames as one table, and the column that names them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias, TypeVar, cast

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns
from rankframe._request.question import Totals
from rankframe._request.types import Frame, FrameT, Runs
from rankframe._tables import adapters, column_roles, guards, rank_order, readers, rules
from rankframe.errors import Problem, RankingDataError, option, wording

PolarsFrame: TypeAlias = pl.DataFrame | pl.LazyFrame
ColumnsT = TypeVar("ColumnsT", bound=Mapping[str, object])


@adapters.takes_any_frame
def stack(runs: Mapping[str, FrameT], /, *, model: str = keywords.MODEL) -> FrameT:
    """
    Make one table of several runs, with a column that names them.

    Parameters
    ----------
    runs
        A dict from the name of each run to its frame. All frames are of one kind and have the same
        columns, in any order. They may be judged tables. (In a dict, runs that have only scores are
        ranked as by ``with_rank`` if other runs have ranks.)
    model
        The column that names the systems.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        ``model`` (String), then the columns of the first run: the rows of all runs, in their order.
        Verbs that take this frame, the dict, or what a verb returned for them keep the order of the
        dict; any other table made from it has a column of text, whose systems are sorted by name.

    Raises
    ------
    RankingDataError
        If a run is empty or has the column ``model`` already, a column is not in all runs, or its
        types differ. Two integer types, or two float types, get their common type.
    TypeError
        If the runs are not a dict of frames, their names are not text, or the frames are not of one
        kind.
    ValueError
        If there is no run.

    Notes
    -----
    Each verb, chart and Spark verb takes such a dict in place of its frame, as
    ``runs.stack(runs)``: its names are the models. If the runs have a column ``model`` of their
    own, pass ``model="system"`` to the verb, or to both. Each run may also be
    ``{user: {item: score}}`` or ``{user: [items]}``, and a single one is passed as it is.

    Examples
    --------
    >>> pop = pl.DataFrame({"user": [1, 2], "item": ["a", "a"], "rank": [1, 1]})
    >>> knn = pl.DataFrame({"user": [1, 2], "item": ["b", "a"], "rank": [1, 1]})
    >>> rf.runs.stack({"pop": pop, "knn": knn}).rows()
    [('pop', 1, 'a', 1), ('pop', 2, 'a', 1), ('knn', 1, 'b', 1), ('knn', 2, 'a', 1)]
    """
    return with_names(runs, model)


def with_names(runs: Mapping[str, FrameT], model: str, noun: str = "run") -> FrameT:
    """Stack runs as they are, also frames of lists, which ``stack`` would read."""
    stacked = _stacked(runs, model, whole=True, noun=noun)
    text = adapters.with_names_as_text(stacked, stacked)
    adapters.note_order(text, model, [*runs])
    return text


def _stacked(
    runs: Mapping[str, FrameT],
    model: str,
    *,
    by: Sequence[str] = (),
    roles: Mapping[str, object] | None = None,
    whole: bool,
    guarded: bool = True,
    noun: str = "run",
) -> FrameT:
    """Stack runs, of which one may be empty if the result is not guarded."""
    check_runs(runs, model, noun)
    opened = {name: adapters.to_polars(frame, f"{noun} {name!r}") for name, frame in runs.items()}
    first, *rest = runs
    for name in rest:
        if _kind(runs[name]) != _kind(runs[first]):
            msg = (
                f"{noun} {first!r} is a {_kind(runs[first])}, and {noun} {name!r} a "
                f"{_kind(runs[name])}: convert one; all {noun}s must be of one kind"
            )
            raise TypeError(msg)
    opened = opened if roles is None else with_ranks(opened, by, roles)
    schemas = {name: frame.collect_schema() for name, frame in opened.items()}
    types = common_types_of_runs(schemas, model, noun)
    columns = [pl.col(name).cast(dtype) for name, dtype in types.items()]
    # text in parts, which name the type, and in pandas, which would lose the order of categories
    is_polars = isinstance(runs[first], pl.DataFrame | pl.LazyFrame)
    names = pl.Enum([*runs]) if whole and is_polars else pl.String()
    frames = [
        frame.with_columns(pl.lit(name, names).alias(model)).select(model, *columns)
        for name, frame in opened.items()
    ]
    stacked = pl.concat([frame.lazy() for frame in frames])
    if guarded:
        flags = [guards.flag(frame.lazy(), pl.len() == 0) for frame in opened.values()]
        stacked = guards.guarded(stacked, flags, partial(_raise_if_empty, opened, noun))
    table = adapters.to_caller_type(stacked, like=runs[first])
    if whole:
        adapters.note_order(table, model, [*runs])
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
    once = roles.get("duplicates", "error") != "error"  # by their ranks, later
    single = keywords.read_preset(roles.get("preset")).get("single_precision", False)
    placed: dict[str, PolarsFrame] = {**runs}
    for name in scored:
        groups = [group for group in by if group in schemas[name]]
        table = readers.read("scored run", runs[name], groups, columns, name=f"run {name!r}")
        table = replace(table, totals=Totals(None, None))  # an empty run is refused elsewhere
        rows = table.frame.with_row_index(rank_order.INDEX)
        ranked = rank_order.ranked(rows, table, single_precision=single).rename({"rank": rank})
        flags = [guards.table_flag(table), *([] if once else [guards.lists_flag(table)])]
        ranked = ranked.sort(rank_order.INDEX).drop(rank_order.INDEX)
        placed[name] = guards.guarded(ranked, flags, partial(rules.raise_in_tables, [table]))
    if not all(score in schema for schema in schemas.values()):
        return {name: run.drop(score, strict=False) for name, run in placed.items()}
    return placed


def _raise_if_empty(runs: Mapping[str, PolarsFrame], noun: str) -> None:
    for name, frame in runs.items():
        if frame.lazy().head(1).collect().is_empty():
            msg = (
                f"{noun} {name!r}: it is empty: it would have no row in the result; leave it out, "
                f"or give it {'a list' if noun == 'run' else 'rows'}"
            )
            raise RankingDataError(msg)


def as_frame(  # pyright: ignore[reportGeneralTypeIssues]  # only FrameT has a default
    frame: Runs[FrameT],
    by: str | Sequence[str],
    columns: ColumnsT,
    *,
    whole: bool = True,
    compares: str | None = None,
    preset: object = None,
    duplicates: object = "error",
    may_be_empty: bool = False,
) -> tuple[FrameT, list[str], ColumnsT]:
    """Make one frame of a dict of runs, and put the column of its systems first in ``by``.

    ``columns`` are returned with that column, or None, as their model. A verb that ``compares``
    systems needs one. Of a part of the users, not the ``whole``, a run may be empty.
    """
    runs = cast("FrameT | Mapping[str, FrameT]", frame)  # others were opened before
    if adapters.is_dict(runs):
        roles = {"preset": preset, "duplicates": duplicates, **columns}
        groups = keywords.group_names(by)
        model = model_of_dict(columns)
        guarded = whole and not may_be_empty
        table = _stacked(runs, model, by=groups, roles=roles, whole=whole, guarded=guarded)
    elif not (hasattr(runs, "collect_schema") or hasattr(runs, "columns")):
        return cast("FrameT", runs), keywords.group_names(by), columns  # it is refused later
    else:
        run = cast("FrameT", runs)
        table = _by_order_of_names(run) if whole else run
    names = adapters.column_names(table, "run")
    groups, columns = with_model(names, by, columns)
    if compares is not None:
        check_model(compares, table, by, columns)
    return table, groups, columns


def model_of_dict(columns: Mapping[str, object]) -> str:
    """Return the column that the names of a dict of runs make."""
    model = columns.get("model", keywords.MODEL)
    if model is None:
        msg = "model=None, of a dict of runs, whose names are the models: leave it out"
        raise ValueError(msg)
    keywords.check_columns({"model": model})
    return cast("str", model)


def with_model(
    names: Collection[str], by: str | Sequence[str], columns: ColumnsT
) -> tuple[list[str], ColumnsT]:
    """Put the column of the systems, if a table has one, first in ``by`` and among ``columns``.

    It is the column model, unless the caller names another, or gives that another role.
    """
    groups, model = keywords.group_names(by), columns.get("model", keywords.MODEL)
    keywords.check_columns({"model": model})
    if "model" not in columns and model in map(columns.get, keywords.ROLES):
        model = None
    if isinstance(model, str) and model not in names:
        if "model" in columns:
            has = ", ".join(map(repr, names))
            msg = f"run: no column {model!r} for model; it has {has}"
            raise RankingDataError(msg)
        model = None
    if isinstance(model, str):
        groups = [model, *(name for name in groups if name != model)]
    return groups, cast("ColumnsT", {**columns, "model": model})


def check_model(
    verb: str, frame: Frame, by: str | Sequence[str], columns: Mapping[str, object]
) -> None:
    """Check that the frame of a verb that compares systems names them."""
    if columns.get("model") is not None:
        return
    schema = adapters.to_polars(frame, "run").collect_schema()
    taken = {*column_roles.SEARCHED, *keywords.ROLES, *map(str, columns.values())}
    taken -= {keywords.MODEL}
    text = pl.String | pl.Categorical | pl.Enum
    choices = [name for name in keywords.group_names(by) if name in schema]
    choices += [n for n, dtype in schema.items() if isinstance(dtype, text) and n not in taken]
    named = option("model", *choices[:1])
    msg = (
        f"{verb} needs the column that names the systems, but there is no column "
        f"{keywords.MODEL!r}: name it, {named}, or pass {SEVERAL}"
    )
    raise ValueError(Problem(msg))


def _by_order_of_names(frame: FrameT) -> FrameT:
    """Let the names of runs that ``runs.stack`` stacked have their order."""
    order = adapters.order_of(frame)
    if order is None or not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return frame
    ordered = adapters.with_order_of_names(cast("pl.DataFrame | pl.LazyFrame", frame), *order)
    adapters.keep_notes(ordered, frame)
    return cast("FrameT", ordered)


def _is_column(value: object) -> bool:
    """Whether a value of a dict is a list or an array of one dimension, and no frame."""
    return isinstance(value, list | tuple) or len(getattr(value, "shape", ())) == 1


def check_runs(runs: object, model: object = keywords.MODEL, noun: str = "run") -> None:
    """Check that runs are a dict that names one or more."""
    if not isinstance(model, str):
        msg = f"model must be the name of a column, not {model!r}"
        raise TypeError(msg)
    if not isinstance(runs, Mapping):
        msg = f"runs.stack takes a dict of runs, {{name: run}}, not {adapters.kind(runs)}"
        raise TypeError(msg)
    frames = cast("Mapping[object, object]", runs)
    if not frames:
        msg = f"the dict of {noun}s is empty: pass one {noun} or more, {{name: {noun}}}"
        raise ValueError(msg)
    check_columns_of_dict(frames)
    for name in frames:
        if not isinstance(name, str):
            msg = f"the names of {noun}s must be text, not {name!r}"
            raise TypeError(msg)


SEVERAL = wording("a dict of runs", command="several runs")
_CURE_OF_COLUMNS = "rf.from_lists reads {user: [items]}; a dict of runs is {name: run}"


def check_columns_of_dict(mapping: Mapping[Any, Any], cure: str = _CURE_OF_COLUMNS) -> None:
    """Check that a dict is no table: of arrays, or of lists that are called like the roles."""
    values = mapping.values()
    has_roles = all(
        not {role, *column_roles.COMMON_NAMES[role]}.isdisjoint(mapping)
        for role in ("user", "item")
    )
    are_lists = all(isinstance(value, list | tuple) for value in values)
    if all(map(_is_column, values)) and (has_roles or not are_lists):
        msg = (
            f"a dict of columns, {', '.join(map(repr, mapping))}: pl.DataFrame(…) makes a frame of "
            f"it; {cure}"
        )
        raise TypeError(msg)


def common_types_of_runs(
    schemas: Mapping[str, pl.Schema], model: str, noun: str = "run"
) -> dict[str, pl.DataType]:
    """Return the common type of each column, in the order of the first run, or raise."""
    first, *rest = schemas
    types = dict(schemas[first])
    for run, schema in schemas.items():
        if model in schema:
            msg = (
                f"{noun} {run!r}, column {model!r}: the names of the {noun}s become a column with "
                f"this name: drop or rename it, or name theirs with "
                f"{option('model' if noun == 'run' else noun)}"
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
                any_two = "any two integer types or any two float types"
                cure = f"cast one; a column must have the same type in all {noun}s, or {any_two}"
                if dtype.is_integer() and schema[name].is_integer():
                    cure = rules.NO_INTEGER
                msg = (
                    f"column {name!r}: it is {adapters.type_words(dtype, schema[name])} in {noun} "
                    f"{first!r} and {adapters.type_words(schema[name], dtype)} in {noun} {run!r}: "
                    f"{cure}"
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
