"""What a caller holds, as the frames that verbs take: dicts of users, and frames with lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import polars as pl

from rankframe._inputs import dicts, item_lists, several_users
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns
from rankframe._request.types import By, Frame
from rankframe._tables import adapters, column_roles, run_dicts
from rankframe.errors import Problem, RankingDataError, option, table_code


def opened(
    verb: str,
    names: Sequence[str],
    args: Sequence[Any],
    options: Mapping[str, Any],
) -> adapters.Opened:
    """Open the arguments of a verb, whose own positions have ``names``; metrics follow them."""
    own, metrics = args[: len(names)], labels.flat(args[len(names) :])
    if not own:
        return adapters.Opened(metrics, dict(options), _as_it_is)
    passed = {**dict(zip(names, own, strict=False)), **options}
    passed["run"] = passed.pop(names[0])
    if {"truth_user", "truth_item"} & {*passed}:
        both = next(iter(_runs(passed["run"])), None), passed.get("truth")
        of_run, of_truth = (
            adapters.column_names(table, "table") if adapters.is_frame(table) else None
            for table in both
        )
        change = name_truth(passed, of_run or (), of_truth)
        for name in {"truth", "human"} & {*passed}:
            passed[name] = adapters.renamed(passed[name], change)
    several = isinstance(passed.get("user"), list | tuple)
    close = several_users.with_one(verb, passed) if several else _as_it_is
    beside = ("truth", "human", "other")
    tables: dict[str, Any] = {name: passed[name] for name in beside if name in passed}
    by = passed.get("by", ())
    frames, roles = frames_of(passed["run"], tables, by, passed)
    passed |= {**frames, **roles}
    passed[names[0]] = passed.pop("run")
    values = [passed.pop(name) for name, _ in zip(names, own, strict=False)]
    return adapters.Opened([*values, *metrics], passed, close)


def _as_it_is(result: Any) -> Any:
    return result


def name_truth(
    passed: dict[str, Any], run: Sequence[str], truth: Sequence[str] | None
) -> dict[str, str]:
    """Take ``truth_user=`` and ``truth_item=``, and return the new names of columns of the truth.

    ``run`` and ``truth`` have the names of columns; None is no table.
    """
    change: dict[str, str] = {}
    for role in ("user", "item"):
        if f"truth_{role}" not in passed:
            continue
        named = passed.pop(f"truth_{role}")
        if truth is None:
            msg = f"truth_{role}={named!r} names a column of the truth: pass truth=, a frame"
            raise TypeError(msg)
        if role not in passed:
            roles = ((r, passed.get(r)) for r in keywords.ROLES)
            columns = cast("Columns", {r: name for r, name in roles if isinstance(name, str)})
            runs = {"run": pl.LazyFrame(schema=dict.fromkeys(run, pl.Null()))}
            passed[role] = column_roles.with_ids(columns, (), runs).get(role, role)
        both: list[Any] = [named, passed[role]]
        olds, news = ([x] if isinstance(x, str) else cast("list[str]", [*x]) for x in both)
        if len(olds) != len(news):
            msg = f"truth_{role}={named!r}, and {role}={passed[role]!r}: name as many columns"
            raise ValueError(msg)
        left = [name for name in truth if name not in change]
        for old, new in zip(olds, news, strict=True):
            if old not in left or (new in [*left, *change.values()] and new not in olds):
                has = ", ".join(map(repr, left))
                msg = f"truth: no column {old!r}, but truth_{role}={old!r}: it has {has}"
                if old in left:
                    msg = f"truth: truth_{role}={old!r} becomes {new!r}, and the truth already has "
                    msg += f"this column: pass truth.drop({new!r})"
                raise RankingDataError(msg)
        change.update(zip(olds, news, strict=True))
    return change


def frames_of(
    run: Any,
    tables: Mapping[str, Any],
    by: By,
    options: Mapping[str, Any],
) -> tuple[dict[str, Any], Columns]:
    """Return the run and the tables beside it as frames, by name, and the roles that change."""
    roles = {role: options[role] for role in keywords.ROLES if role in options}
    columns, changed = cast("Columns", roles), Columns()
    frames = {"run": run, **tables}
    if isinstance(tables.get("truth"), str) or any(map(_may_have_lists, _runs(run))):
        frames, changed = _without_lists(frames, by, columns, options)
        columns = cast("Columns", {**columns, **changed})
    if any(map(_is_of_users, frames.values())) or adapters.is_dict(frames.get("truth")):
        every = [*_runs(frames["run"]), *filter(adapters.is_frame, tables.values())]
        beside = {f"table {place}": table for place, table in enumerate(every)}
        ids = column_roles.with_ids(columns, by, beside)
        for name, table in frames.items():
            is_truth = name in ("truth", "human")
            frames[name] = _truth(table, ids) if is_truth else _run(table, ids, by_name=True)
    return frames, changed


def _runs(run: Any) -> list[Frame]:
    """Return the frames of a run, or of a dict of runs."""
    runs: Iterable[Any] = run.values() if adapters.is_dict(run) else [run]
    return [frame for frame in runs if adapters.is_frame(frame)]


def _is_of_users(value: Any) -> bool:
    """Whether a value is a dict of other things than frames."""
    return adapters.is_dict(value) and not all(map(adapters.is_frame, value.values()))


def _run(value: Any, columns: Columns, *, by_name: bool) -> Any:
    """Make a frame of a dict of one run, or a dict of frames of a dict of runs."""
    if not _is_of_users(value):
        return value
    mapping = cast("Mapping[Any, Any]", value)
    run_dicts.check_columns_of_dict(mapping)
    ids = [keywords.user_of(columns), columns.get("item", "item")]
    shape = dicts.shape_of(mapping)
    if shape == "lists":
        return dicts.lists_of("run", mapping, [*ids, columns.get("rank", "rank")])
    are_users = [isinstance(run, Mapping | list | tuple | set) for run in mapping.values()]
    is_of_runs = shape == "dicts" or not all(are_users)  # others are frames, or are refused later
    if by_name and is_of_runs:
        return {name: _run(run, columns, by_name=False) for name, run in mapping.items()}
    table = dicts.scores_of("run", mapping, [*ids, columns.get("score", "score")])
    return adapters.note_lists(table)


def _truth(value: Any, columns: Columns) -> Any:
    """Make a frame of a dict of grades or of relevant items."""
    if not adapters.is_dict(value):
        return value
    ids = [keywords.user_of(columns), columns.get("item", "item")]
    run_dicts.check_columns_of_dict(value, "a dict that is a truth is {user: {item: grade}}")
    return dicts.truth_of("truth", value, [*ids, columns.get("relevance", "relevance")])


def _may_have_lists(frame: Any) -> bool:
    """Whether a table has a column of lists, or of objects, which may be lists."""
    if isinstance(frame, pl.DataFrame | pl.LazyFrame):
        return any(
            isinstance(dtype, pl.List | pl.Array) for dtype in frame.collect_schema().values()
        )
    return adapters.is_frame(frame)


def _without_lists(
    frames: dict[str, Any], by: By, columns: Columns, options: Mapping[str, Any]
) -> tuple[dict[str, Any], Columns]:
    """Explode the lists of items of runs, as ``from_lists``; a truth may name their column."""
    run, truth = frames["run"], frames.get("truth")
    expected = truth if isinstance(truth, str) else None
    first = next(iter(_runs(run)), None)
    ids = _ids_of_lists(first, expected, by, columns) if first is not None else None
    if first is None or ids is None:
        return frames, Columns()
    user, item = ids
    if expected is not None and frames.get("human") is not None:
        both = f"[[{user!r}, {expected!r}]].explode({expected!r})"
        of_pandas = f"{both}.dropna().rename(columns={{{expected!r}: 'item'}})"
        of_polars = f".select({user!r}, pl.col({expected!r}).alias('item'))"
        cure = table_code("run", f"{of_polars}.explode('item').drop_nulls()", of_pandas)
        named = f"{option('truth', expected)} with {option('human')}"
        msg = f"{named}: pass both as tables of pairs, here as truth{cure}"
        raise ValueError(Problem(msg))
    if expected is not None:  # what tells lists apart: groups, and runs or groups to be averaged
        groups, free = keywords.group_names(by), adapters.column_names(first, "run")
        free = [name for name in free if name not in (*groups, user, item, expected)]
        by = [*groups, *(n for n in free if n in (options.get("over"), options.get("average")))]
    own: dict[str, Any] = {n: columns.get(n) for n in ("model", "score") if n in columns}
    own |= {"user": user, "item": item, "truth": expected, "by": () if expected is None else by}
    changed = Columns(user=user)
    names = {"user": user} if expected else {}
    if not adapters.is_frame(truth) or item not in adapters.column_names(truth, "truth"):
        # names of lists, such as "retrieved", may be those of columns that metrics read
        changed, names = Columns(user=user, item="item"), {**names, item: "item"}

    def long(frame: Any) -> Any:
        if not adapters.is_frame(frame):
            return frame
        return adapters.renamed(item_lists.from_lists(frame, **own), names)

    is_dict = adapters.is_dict(run)
    table = {name: long(frame) for name, frame in run.items()} if is_dict else long(run)
    return {**frames, "run": table, **({"truth": None} if expected else {})}, changed


def _ids_of_lists(
    frame: Frame, truth: str | None, by: By, columns: Columns
) -> tuple[str, str] | None:
    """Return the user and the item of a frame of lists of items; None for any other."""
    names = adapters.column_names(frame, "run")
    ids = column_roles.with_ids(columns, by, {"run": frame})
    user, item = keywords.user_of(ids), ids.get("item", "item")
    if truth is None:
        has_rank = columns.get("rank", "rank") in names
        return (user, item) if adapters.has_lists(frame, item) and not has_rank else None
    return (user, item) if truth in names else None


adapters.openers[:] = [opened]
