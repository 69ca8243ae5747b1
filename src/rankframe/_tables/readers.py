"""The tables of a call: roles, names and types are checked here, and no row is read.

Stage of the pipeline: each table becomes a ``Table``, and all of them ``Tables``.

Rules on rows are in :mod:`rankframe._tables.rules`: each plan computes cheap flags (``guarded``). A
raised flag only means that a rule may be broken. One function, ``raise_in_tables``, then reads
every row of both tables, finds out and writes the message. So eager and lazy calls, polars and
pandas, and ``check`` itself raise the same errors.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe._request import keywords, labels, registry, segment_names
from rankframe._request.keywords import Columns, Settings
from rankframe._request.question import Question, Totals
from rankframe._request.types import By, Frame, Truth
from rankframe._tables import adapters, column_roles, repeated_items, rules
from rankframe._tables.table import TRUTH, TRUTHS, Table, Tables
from rankframe.errors import RankingDataError, code, option, table_code, wording

#: A table beside another one, with its name.
Beside: TypeAlias = "tuple[str, Frame] | None"
_ROLES = (*keywords.ROLES, "tied")
#: The items of a judged table without a column of items.
ROW_NUMBER = "row_from_end"


def read_tables(question: Question) -> Tables:
    """Read all tables of a call that returns metrics alone."""
    reading, settings = question.reading, question.settings
    reads = {*reading.names, *settings.of_users}
    _check_averaged(question)
    tables = read_all(
        question.frame,
        question.truth,
        question.by,
        settings,
        reads=reads,
        run_alone=question.lists_alone,
        totals=question.totals,
        name=question.truth_name,
    )
    for name in reading.reserved:
        for table in tables.both:
            if name in table.schema:
                raise _reserved(table, name)
    return replace(tables, reads=reads)


def _check_averaged(question: Question) -> None:
    """Check that there is a column of the groups or the runs whose means are averaged."""
    name, column = question.settings.averaged
    tables = [question.frame] if name == "over" else [question.frame, question.truth]
    if column is not None:
        names = [adapters.column_names(table, "table") for table in tables if table is not None]
        has = dict.fromkeys(name for of_table in names for name in of_table)
        if column not in has:
            columns = ", ".join(map(repr, has))
            msg = f"{option(name, column)}: no column of this name; the columns are {columns}"
            raise RankingDataError(msg)


def read_all(
    frame: Frame,
    truth: Truth | None,
    by: By,
    settings: Settings,
    *,
    reads: Collection[str] | None = None,
    run_alone: bool = False,
    totals: Totals | None = None,
    name: str = TRUTH,
) -> Tables:
    """Read all tables of a call; a lazy judged table goes back to those that it was made from.

    ``reads`` names the columns that metrics read; None means that every column is returned.
    """
    origin = _origin(frame, by, settings) if truth is None and totals is None else None
    if origin is not None:
        of_judge = "exclude" if settings.exclude is None else "judge's exclude"
        excluded = {of_judge: origin.beside["exclude"]} if origin.exclusions else {}
        tables = with_tables_beside(origin.both, settings, excluded)
    else:
        both = read_run_and_truth(
            frame, truth, by, settings.columns, reads=reads, run_alone=run_alone, name=name
        )
        both = both if totals is None else [replace(table, totals=totals) for table in both]
        tables = with_tables_beside(both, settings)
    return replace(tables, from_judged=True) if truth is None and tables.has_truth else tables


def read_run_and_truth(
    frame: Frame,
    truth: Truth | None,
    by: By,
    columns: Columns,
    *,
    reads: Collection[str] | None = None,
    run_alone: bool = False,
    any_name: bool = False,
    name: str = TRUTH,
) -> list[Table]:
    """Read ``[judged table]``, ``[run, truth]``, or with ``run_alone`` perhaps ``[run]``."""
    truth = cast("Frame | None", truth)  # of another kind, it is refused when it is opened
    kind = "judged table" if truth is None and not run_alone else "run"
    columns = column_roles.with_ids(columns, by, {kind: frame, name: truth})
    if truth is None:
        is_run = run_alone and not has_relevance(frame, by, columns, any_name=any_name)
        return [read("run" if is_run else "judged table", frame, by, columns)]
    groups = keywords.group_names(by)
    truth_groups = _groups_of_truth(frame, truth, groups)
    of_run = [group for group in groups if group not in truth_groups]
    run, beside = read("run", frame, of_run, columns, beside=(name, truth)), ("run", frame)
    judgments = read(TRUTH, truth, by, columns, name=name, beside=beside, reads=reads or ())
    run, judgments = _without_shared(run, judgments, reads)
    if truth_groups:
        run = _with_truth_groups(run, judgments, groups, truth_groups)
    return [run, judgments]


def with_tables_beside(
    tables: Sequence[Table],
    settings: Settings,
    excluded: Mapping[str, Table] = MappingProxyType({}),
) -> Tables:
    """Read the tables beside run and truth, and find the types that the ids of all have."""
    run, *truth = tables
    single = settings.single_precision
    run = repeated_items.once(run, settings.duplicates, single_precision=single)
    beside = {**excluded, **read_tables_beside(run, settings)}
    types = {name: run.schema[name] for name in run.ids}
    types["relevance"] = type_of_relevance(tables[-1])
    types |= common_types(run, [*truth, *beside.values()])
    return Tables(run, truth[0] if truth else None, beside, types, settings)


def read_tables_beside(run: Table, settings: Settings) -> dict[str, Table]:
    """Read the tables of ``items=``, ``history=`` and ``exclude=``."""
    beside = [*settings.inputs, *(["stages"] if settings.stages else [])]
    if beside and run.item == ROW_NUMBER:
        raise without_items(min(beside) + "=")
    frames: dict[str, Frame | None] = {name: getattr(settings, name) for name in keywords.INPUTS}
    frames |= {stage_name(name): frame for name, frame in settings.stages.items()}
    return {
        name: read_beside(name, frame, run, settings.columns)
        for name, frame in frames.items()
        if frame is not None
    }


def stage_name(name: str) -> str:
    """Name the table of a stage among those beside run and truth."""
    return f"stages[{name!r}]"


def is_stage(name: str) -> bool:
    """Whether a table is a source of candidates, which may have nothing for these users."""
    return name.startswith("stages[")


def common_types(run: Table, tables: Iterable[Table]) -> dict[str, pl.DataType]:
    """Return the common type of each id of the lists and the other tables, or raise."""
    types: dict[str, pl.DataType] = {}
    for table in tables:
        lists = replace(run, name="run", schema=pl.Schema({**run.schema, **types}))
        types |= rules.same_types(lists, table)
    return types


def _groups_of_truth(run: Frame, truth: Truth, groups: Sequence[str]) -> list[str]:
    """Name the groups that only the truth has."""
    names = adapters.column_names(run, "run") if groups else []
    lacking = [name for name in groups if name not in names]
    truth_names = adapters.column_names(truth, "truth") if lacking else []
    return [name for name in lacking if name in truth_names]


def read_runs(run: Frame, other: Frame, by: By, columns: Columns) -> list[Table]:
    """Read two runs; the other one need not have the columns ``by``."""
    columns = column_roles.with_ids(columns, by, {"run": run, "other run": other})
    return [
        read("run", run, by, columns, beside=("other run", other)),
        read("run", other, by, columns, name="other run", beside=("run", run)),
    ]


class Shape(NamedTuple):
    """The roles of a kind of table, in addition to user, item and groups."""

    needs: Sequence[str] = ()
    may_have: Sequence[str] = ()  # missed only if the caller names it, or if two columns fit
    refuses: Mapping[str, str] = MappingProxyType({})  # a role, with the text of the error
    replaces: Sequence[str] = ()  # columns that the verb makes, so they can play no other role
    allows: Sequence[str] = ()  # reserved names of columns without a role


#: Each kind of table; a placing is a rank or a score.
SHAPES: Mapping[str, Shape] = {
    "run": Shape(
        needs=("placing",),
        refuses={
            "relevance": "a relevance in a run: drop the column, or pass "
            + wording("a judged table without truth=", command="the table alone, without a truth")
        },
    ),
    "truth": Shape(may_have=("relevance", "subtopic")),
    "judged table": Shape(needs=("relevance", "placing"), may_have=("subtopic",)),
    "scored run": Shape(needs=("score",), replaces=("rank", "tied"), allows=("relevance",)),
    "graded run": Shape(needs=("score", "relevance"), replaces=("rank", "tied")),
    "ranked run": Shape(needs=("rank",), allows=("relevance",)),
}


def read(
    kind: str,
    frame: Frame,
    by: By,
    columns: Columns,
    *,
    name: str | None = None,
    beside: Beside = None,
    reads: Collection[str] = (),
) -> Table:
    """Read a table of a kind that ``SHAPES`` declares; errors call it by its name.

    The ids of a table with another one ``beside`` it are those that ``with_ids`` found in both.
    ``reads`` names columns that are no grades under another name.
    """
    shape, title = SHAPES[kind], name or ("run" if kind.endswith("run") else kind)
    if beside is None:
        columns = column_roles.with_ids(columns, by, {title: frame})
    table = _opened(title, frame, by, columns)
    roles = [*shape.needs, *shape.may_have]
    columns = column_roles.with_roles(columns, by, table.schema, roles)
    if kind in ("judged table", "graded run"):
        table, columns = _with_row_numbers(table, columns)
    names = {role: cast("Mapping[str, str]", columns).get(role, role) for role in _ROLES}
    placing = _placing_role(table, columns)
    roles = [placing if role == "placing" else role for role in roles]
    needed = [
        role
        for role in roles
        if role not in shape.may_have
        or role in columns
        or column_roles.fitting(role, columns, by, table.schema)
    ]
    _raise_if_missing(table, needed, columns, beside, kind)
    present = {role: names[role] for role in roles if names[role] in table.schema}
    table = replace(table, **cast("Any", present))
    _raise_if_refused(table, shape, columns, names)
    if kind == "truth" and table.relevance is None:
        _refuse_ratings(table, by, columns)
        table = replace(table, ungraded=_ungraded(table, by, columns, reads))
    replaced = map(names.__getitem__, shape.replaces)
    return _typed(table, allow=(*shape.allows, *shape.replaces, *replaced))


def _raise_if_refused(
    table: Table, shape: Shape, columns: Columns, names: Mapping[str, str]
) -> None:
    """Raise if a table has a role that its kind refuses, or a column that a verb will make."""
    if "placing" in shape.needs and table.rank is not None and "score" in columns:
        cure = wording(
            "call with_rank to make it from the score", command=f"rank by it with {option('ties')}"
        )
        text = f"a rank in addition to {option('score')}: drop the rank, or {cure}"
        raise _refused(table, table.rank, text)
    for role, text in shape.refuses.items():
        if names[role] in table.schema:
            raise _refused(table, names[role], text)
    for name in map(names.__getitem__, shape.replaces):
        if name in (*table.keys, table.item, table.score):
            verb = wording("with_rank", command=option("ties"))
            text = f"{verb} makes this column, so it cannot play another role: rename it"
            raise _refused(table, name, text)
    if table.subtopic is not None and table.score is not None:
        cure = wording(
            "call with_rank before judge", command=f"rank the run first, with {option('ties')}"
        )
        text = f"an item has one row per subtopic, so ranks cannot be made from scores: {cure}"
        raise _refused(table, table.subtopic, text)


def _refuse_ratings(table: Table, by: By, columns: Columns) -> None:
    """Raise if a truth has ratings or grades but no relevance: each row would be relevant."""
    for name in (*column_roles.RATINGS, *column_roles.GRADES):
        dtype, is_rating = table.schema.get(name), name in column_roles.RATINGS
        if dtype is None or not column_roles.is_free(name, columns, by):
            continue
        if dtype.is_numeric() or (dtype == pl.Boolean and not is_rating):
            what, done, worst, good = "grades", "judged", "one of grade 0", "relevant"
            if is_rating:
                what, done, worst, good = "ratings", "rated", "a disliked one", "liked"
            also = f" and {option('relevant_at')} the lowest rating of a liked item" * is_rating
            drop = table_code(table.name, f".drop({name!r})", f".drop(columns={name!r})")
            text = (
                f"{what} but no relevance, so every {done} item would be relevant, even {worst}: "
                f"pass {option('relevance', name)}{also}; if every {done} item is {good}, drop the "
                f"column{drop}"
            )
            raise _refused(table, name, text)


def _ungraded(
    table: Table, by: By, columns: Columns, reads: Collection[str]
) -> pl.LazyFrame | None:
    """Select the columns that nothing reads and that may hold grades, if there are any."""
    own = [*table.row, *reads]
    names = [
        name
        for name, dtype in table.schema.items()
        if (dtype.is_numeric() or dtype == pl.Boolean)
        and name not in own
        and column_roles.is_free(name, columns, by)
        and not column_roles.is_pattern(name)
    ]
    return table.frame.select(*table.row, *names) if names else None


def _with_row_numbers(table: Table, columns: Columns) -> tuple[Table, Columns]:
    """Take the rows of a judged table in memory for items, if it has places, grades and no item.

    They are numbered from the end: equal scores, in descending order of items, keep that of rows.
    """
    names = cast("Mapping[str, str]", columns)
    roles = (_placing_role(table, columns), "relevance")
    placed = {table.user, *(names.get(role, role) for role in roles)} <= {*table.schema}
    unnamed = column_roles.lacks_items(columns, table.by, table.schema)
    if table.rows is None or not (placed and unnamed):
        return table, columns
    rows = table.rows.with_columns(pl.int_range(pl.len(), 0, -1).alias(ROW_NUMBER))
    table = replace(table, rows=rows, frame=rows.lazy(), schema=rows.schema, item=ROW_NUMBER)
    return table, {**columns, "item": ROW_NUMBER}


def without_items(what: str) -> RankingDataError:
    """Return the error for a call that compares items, of a table whose rows are its items."""
    return RankingDataError(
        f"judged table: no column 'item' for item, which {what} reads; its rows are numbered "
        f"instead: name the column with {option('item')}"
    )


def _opened(kind: str, frame: Frame, by: By, columns: Columns) -> Table:
    """Open a table, and name its user, item and groups; they are not checked yet."""
    opened = adapters.to_polars(frame, kind)
    schema = opened.collect_schema()
    groups = keywords.group_names(by)
    user, item = keywords.user_of(columns), columns.get("item", "item")
    if kind in (*TRUTHS, "other run"):
        groups = [name for name in groups if name in schema]
    rows = opened if isinstance(opened, pl.DataFrame) else None
    model = columns.get("model")
    return Table(
        *(kind, opened.lazy(), schema, groups, user, item),
        rows=rows,
        model=model if model in groups else None,
    )


def _placing_role(table: Table, columns: Columns) -> str:
    """Return the role, rank or score, that orders the items of this table."""
    if "rank" in columns or columns.get("rank", "rank") in table.schema:
        return "rank"
    if "score" in columns or columns.get("score", "score") in table.schema:
        return "score"
    return "rank"


def _raise_if_missing(
    table: Table, roles: Sequence[str], columns: Columns, beside: Beside, kind: str
) -> None:
    """Raise if columns that play a role are missing; one error names all of them.

    The table ``beside`` this one, with its name, may have an id under another name.
    """
    name_of = cast("Mapping[str, str]", columns)
    names = [(role, name_of.get(role, role)) for role in ("user", "item", *roles)]
    names += [("by", name) for name in table.by]
    missing = [(role, name) for role, name in names if name not in table.schema]
    if not missing:
        return
    segment_names.refuse_segments([name for role, name in missing if role == "by"])
    has = ", ".join(map(repr, table.schema.names()))
    absent = ", ".join(f"{name!r} for {role}" for role, name in missing)
    cures = "".join(_cures(table, missing, columns, beside, kind)) if has else ""
    needs_truth = table.name == "judged table" and "relevance" in dict(missing)
    cure = wording("pass truth=, or call judge(run, truth)", command="name its file last")
    first = f"; a run needs its truth: {cure}" * needs_truth
    msg = f"{table.name}: no column {absent}{first}; it has {has or 'no columns'}{cures}"
    raise RankingDataError(msg)


def _cures(
    table: Table, missing: Sequence[tuple[str, str]], columns: Columns, beside: Beside, kind: str
) -> Iterator[str]:
    """Yield what may bring the missing columns, as the rest of a sentence."""
    other, frame = beside or ("", None)
    other_names = [] if frame is None else adapters.column_names(frame, "frame")
    apart = _named_apart(table, columns, other_names)
    unknown = [role for role, _ in missing if role not in ("by", *apart)]
    yield from _keywords(table, unknown, columns, other_names, kind)
    if apart:
        has = [repr(theirs) for _, theirs in apart.values() if theirs is not None]
        yield f"; the {other} has {' and '.join(has)}"
        pasted = wording(", ", command=" ").join(_pasted(table, apart, columns))
        yield f": pass {pasted}" if "other run" not in (table.name, other) else ": rename one"
    if missing[-1][0] == "by":
        yield f"; join it to a table, or leave out {option('by')}"


def _pasted(
    table: Table, apart: Mapping[str, tuple[str | None, str | None]], columns: Columns
) -> Iterator[str]:
    """Yield the keywords with which run and truth may name their ids differently."""
    for role, (own, theirs) in apart.items():
        run, truth = (own, theirs) if table.name == "run" else (theirs, own)
        if run is None or run != columns.get(role, role):
            yield option(role, run) if run else f"{option(role)} (a column of the run)"
        role = f"truth_{role}"
        yield option(role, truth) if truth else f"{option(role)} (a column of the truth)"


def _keywords(
    table: Table, roles: Sequence[str], columns: Columns, other_names: Sequence[str], kind: str
) -> Iterator[str]:
    """Yield the keywords that name columns of these roles, and what else may be passed."""
    if roles:
        yield f"; name {'it' if len(roles) == 1 else 'them'} with "
        yield ", ".join(map(option, roles))
    if "rank" in roles and kind == "ranked run":
        yield ", or leave out close_gaps=True to make ranks from a score"
    elif "rank" in roles and "rank" not in columns:
        yield f", or name a score with {option('score')}"
        yield code(", or call with_rank")
    if "score" in roles and columns.get("rank", "rank") in table.schema:
        yield code(", or pass close_gaps=True to with_rank to read the existing rank")
    if meant := _meant(table, roles, columns, other_names):
        yield f"; perhaps {' or '.join(map(repr, meant))} is meant"
    lists = [repr(n) for n, dtype in table.schema.items() if isinstance(dtype, pl.List)]
    if "item" in roles and lists:
        yield f"; {' and '.join(lists)} hold lists: {option('item')} names those of the items, and "
        yield f"{option('truth')} the relevant ones, if they are here"
    elif "item" in roles and table.name == "judged table":
        yield f"; {_why_not_numbered(table, columns)}"


def _why_not_numbered(table: Table, columns: Columns) -> str:
    """Tell why the rows of a judged table are not its items."""
    named = cast("Mapping[str, str]", columns)
    roles = ("rank", "score")
    places = {
        name
        for role in roles
        for name in (named.get(role, role), *column_roles.COMMON_NAMES.get(role, ()))
    }
    if table.rows is None and places.intersection(table.schema):
        text = "a lazy table needs it, and a DataFrame with a rank or score, and a grade, does not"
        return wording(text, command="the command needs it, and Python does not")
    return "only a DataFrame with a rank or score, and a grade, may lack it"


def _named_apart(
    table: Table, columns: Columns, other_names: Sequence[str]
) -> dict[str, tuple[str | None, str | None]]:
    """Find the ids that both tables have under two names, of which one may be unknown."""
    named = cast("Mapping[str, str]", columns)
    names = {role: named.get(role, role) for role in ("user", "item")}
    other = dict.fromkeys(other_names)
    pairs: dict[str, tuple[str | None, str | None]] = {}
    for role, name in names.items():
        fit = column_roles.fitting(role, columns, table.by, other_names)
        if name in table.schema:
            if name not in other:
                pairs[role] = name, _likely_id(role, columns, table.by, other)
        elif name in other or (len(fit) == 1 and fit[0] not in table.schema):
            theirs = name if name in other else fit[0]
            pairs[role] = _likely_id(role, columns, table.by, table.schema), theirs
    if not other or {*names.values()} <= {*table.schema}:  # no id is missing here
        return {}
    if len(own := {name for name, _ in pairs.values()}) < len(pairs) and None not in own:
        return {role: (None, theirs) for role, (_, theirs) in pairs.items()}  # one for both
    return pairs


def _likely_id(
    role: str, columns: Columns, by: By, schema: Mapping[str, pl.DataType | None]
) -> str | None:
    """Return the one column that is probably the user, or the item; None if there is none."""
    others = cast("Columns", {key: name for key, name in columns.items() if key != role})
    roles = (*column_roles.SEARCHED, *keywords.ROLES)
    free = [
        name
        for name, dtype in schema.items()
        if (dtype is None or dtype.is_integer() or dtype == pl.String)
        and name not in roles
        and column_roles.is_free(name, others, by)
    ]
    fit = [role] if role in schema else column_roles.fitting(role, others, by, schema)
    fit = fit or [name for name in free if name.lower().endswith("id")] or free
    return fit[0] if len(fit) == 1 else None


def _meant(
    table: Table, unknown: Sequence[str], columns: Columns, other_names: Sequence[str]
) -> list[str]:
    """Find the columns that may play a missing role."""
    names = dict.fromkeys(table.schema)
    of_both = names | dict.fromkeys(other_names)
    roles = {"user": of_both, "item": of_both, "rank": names, "score": names, "relevance": names}
    missing = [*unknown, *(["score"] if "rank" in unknown else [])]
    return [
        name
        for role, choices in roles.items()
        if role in missing
        for name in column_roles.fitting(role, columns, table.by, choices)
    ]


def _typed(table: Table, allow: Sequence[str] = ()) -> Table:
    """Check that no column plays two roles or has a reserved name, and that types fit."""
    roles = {"rank": table.rank, "score": table.score, "relevance": table.relevance}
    numbers = {role: name for role, name in roles.items() if name is not None}
    _check_names(table, [*table.row, *numbers.values()], allow)
    for name in table.row:
        if not column_roles.can_be_id(table.schema[name]):
            raise _wrong_type(table, name, "an id or group: use text or integers")
    if table.tied and not table.schema["tied"].is_numeric():
        raise _wrong_type(table, "tied", "the size of a block of ties: cast it to integers")
    types = {"rank": "integers", "score": "numbers", "relevance": "numbers or booleans"}
    for role, name in numbers.items():
        if not column_roles.can_be_number(table.schema[name], role):
            cure = f"cast it to {types[role]}"
            # the caller may not have named it
            if role == "relevance" and name in column_roles.COMMON_NAMES[role]:
                cure += ", or rename it if it is not one"
            raise _wrong_type(table, name, f"a {role}: {cure}")
    return table


def _check_names(table: Table, names: Sequence[str], allow: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise _refused(table, name, "it has two roles: name a different column for one of them")
        if column_roles.is_pattern(name):
            raise _refused(table, name, "polars reads this name as a pattern: rename it")
    if inner := [name for name in table.schema if name.startswith(labels.PREFIX)]:
        text = (
            f"names that begin with {labels.PREFIX!r} are reserved for internal columns: rename or "
            "drop the column"
        )
        raise _refused(table, inner[0], text)
    own = {"rank": table.rank, "relevance": table.relevance, "subtopic": table.subtopic}
    own["tied"] = "tied" if table.tied else None
    for name in table.schema.names():
        allowed = own.get(name) == name or name in allow
        if name in registry.COLUMNS and registry.COLUMNS[name].always_reserved and not allowed:
            raise _reserved(table, name)


def has_relevance(frame: Frame, by: By, columns: Columns, *, any_name: bool = False) -> bool:
    """Whether a table is judged: it names a relevance, or has one.

    A grade under a common name makes a run a judged table with ``any_name``, or if the table
    has no items.
    """
    names = adapters.column_names(frame, "run")
    if "relevance" in columns or "relevance" in names:
        return True
    grade = column_roles.with_roles(columns, by, names, ("relevance",)).get("relevance")
    if grade is None or not (any_name or column_roles.lacks_items(columns, by, names)):
        return False
    dtype = adapters.to_polars(frame, "run").collect_schema()[grade]
    return column_roles.can_be_number(dtype, "relevance")


def lacks_items_but_grades(frame: Frame, by: By, columns: Columns) -> bool:
    """Whether a table has grades and no items, so that its rows are its items."""
    names = adapters.column_names(frame, "run")
    lacks = column_roles.lacks_items(columns, keywords.group_names(by), names)
    return lacks and has_relevance(frame, by, columns)


def with_items(frame: Frame, truth: Truth | None, by: By, options: Mapping[str, Any]) -> Frame:
    """Number the rows of a judged table without items before it becomes lazy; leave any other."""
    roles = {role: name for role, name in options.items() if role in keywords.ROLES}
    columns = cast("Columns", roles)
    names = adapters.column_names(frame, "run") if truth is None else ()
    groups = keywords.group_names(by)
    if truth is not None or not column_roles.lacks_items(columns, groups, names):
        return frame
    columns = column_roles.with_ids(columns, groups, {"run": frame})
    table = _opened("judged table", frame, groups, columns)
    columns = column_roles.with_roles(columns, groups, names, ("placing", "relevance"))
    table, _ = _with_row_numbers(table, columns)
    return frame if table.item != ROW_NUMBER or table.rows is None else table.rows


def _reserved(table: Table, name: str) -> RankingDataError:
    text = "this name is reserved for the vocabulary of the metrics: rename or drop the column"
    return _refused(table, name, text)


def _wrong_type(table: Table, name: str, role: str) -> RankingDataError:
    return _refused(table, name, f"{table.schema[name]} cannot be {role}")


def _refused(table: Table, name: str, text: str) -> RankingDataError:
    return RankingDataError(f"{table.name}, column {name!r}: {text}")


def _without_shared(run: Table, truth: Table, reads: Collection[str] | None) -> tuple[Table, Table]:
    """Drop the columns that both tables have; raise if a metric reads one of them."""
    rules.same_types(run, truth)
    roles = (*truth.row, truth.relevance)
    shared = [name for name in truth.schema if name in run.schema and name not in roles]
    for name in shared:
        if reads is None or name in reads:
            msg = (
                f"column {name!r}: both the run and the truth have it; "
                f"name it in {option('by')}, or rename or drop one"
            )
            raise RankingDataError(msg)
    of_run = [name for name in shared if name not in (run.rank, run.score)]
    return _without(run, of_run), _without(truth, shared)


def _without(table: Table, names: Sequence[str]) -> Table:
    if not names:
        return table
    frame = table.frame.drop(names)
    return replace(table, frame=frame, schema=frame.collect_schema())


def type_of_relevance(table: Table) -> pl.DataType:
    """Return the type of the relevance that ``judgment.normalize_columns`` makes."""
    if table.relevance is None:
        return pl.Int64()
    dtype = table.schema[table.relevance]
    if dtype.is_integer() or dtype.is_float():
        return dtype
    return pl.Float64() if dtype.is_decimal() else pl.Int8()


def read_beside(name: str, frame: Frame, run: Table, columns: Columns) -> Table:
    """Read a table of items or users, or of both, whose ids have the names of the run's."""
    opened = adapters.to_polars(frame, f"{name}= table")
    schema = opened.collect_schema()
    roles = {"item": run.item, "user": run.user}
    if name in ("items", "queries", "users"):
        roles.pop("user" if name == "items" else "item")
    user, item = roles.get("user", run.item), roles.get("item", run.user)
    for role, column in roles.items():
        if column not in schema:
            has = ", ".join(map(repr, schema.names()))
            rename = f"name it with {option(role)}, or " if role not in columns else ""
            msg = (
                f"{option(name)}: no column {column!r} for {role}; it has {has}; {rename}rename "
                "it: names must be the same in all tables"
            )
            raise RankingDataError(msg)
        if not column_roles.can_be_id(schema[column]):
            msg = f"{option(name)}, column {column!r}: {schema[column]} cannot be an id: use text"
            raise RankingDataError(msg)
    groups = [column for column in run.by if column in schema and column not in roles.values()]
    rows = opened if isinstance(opened, pl.DataFrame) else None
    return Table(option(name), opened.lazy(), schema, groups, user, item, rows=rows)


# When a lazy ``judge`` result is evaluated, go back to its inputs: checking the joined table would
# materialize the full join.


def remember(judged: Frame, tables: Tables) -> None:
    """Note on a result of ``judge`` the tables that it was made from, or its segments alone."""
    if isinstance(judged, pl.LazyFrame):
        judged._rankframe_tables = tables  # type: ignore[attr-defined]  # pyright: ignore
    elif isinstance(judged, pl.DataFrame):
        judged._rankframe_segments = tables.run.truth_groups  # type: ignore[attr-defined]  # pyright: ignore
    elif tables.run.truth_groups:
        judged.attrs["rankframe_segments"] = list(tables.run.truth_groups)


def _origin(frame: Frame, by: By, settings: Settings) -> Tables | None:
    """Return the tables of a lazy judged table, if its columns still play the same roles."""
    tables: Tables | None = getattr(frame, "_rankframe_tables", None)
    if tables is None:
        return None
    columns, run = settings.columns, tables.run
    columns = cast("Columns", {role: name for role, name in columns.items() if role != "model"})
    if (run.user, run.item) != ("user", "item"):
        columns = column_roles.with_ids(columns, by, {"judged table": frame})
    roles = {"user": "user", "item": "item", "rank": "rank", "relevance": "relevance", **columns}
    same = {"user": run.user, "item": run.item, "rank": "rank", "relevance": "relevance"}
    return tables if keywords.group_names(by) == run.by and roles == same else None


def segments_of(frame: Frame, run: Table) -> list[str]:
    """Return the columns of ``by`` that only the truth had; lists of other users are left out."""
    origin: Tables | None = getattr(frame, "_rankframe_tables", None)
    segments: Sequence[str] = getattr(frame, "_rankframe_segments", ())
    if origin is not None:
        segments = origin.run.truth_groups
    elif not isinstance(frame, pl.DataFrame | pl.LazyFrame):
        segments = frame.attrs.get("rankframe_segments", ())
    return [name for name in run.by if name in (*run.truth_groups, *segments)]


def _with_truth_groups(
    run: Table, truth: Table, by: list[str], truth_groups: Sequence[str]
) -> Table:
    """Add to each list of the run the groups that the truth has for its user.

    They are null for a user who is not in the truth.
    """
    types = rules.same_types(run, truth)
    shared = [name for name in truth.keys if name not in truth_groups]
    users = truth.frame.select(*truth.keys)
    users = users.with_columns(pl.col(name).cast(types[name]) for name in shared).unique()
    lists = run.frame.with_columns(pl.col(name).cast(dtype) for name, dtype in types.items())
    frame = lists.join(users, on=shared, how="left", build_side="force_right")
    return replace(
        run, frame=frame, schema=frame.collect_schema(), by=by, truth_groups=truth_groups
    )
