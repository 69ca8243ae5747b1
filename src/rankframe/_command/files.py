"""Scan the files of the command, in all their formats: lazy frames with columns by role."""

import argparse
import contextlib
import csv
import glob
import gzip
import io
import itertools
import re
import sys
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple, cast

import polars as pl
import polars.selectors as cs

from rankframe import _sizes, errors
from rankframe._command import inputs
from rankframe._command.inputs import Input
from rankframe._inputs import judgment_files
from rankframe._request import keywords
from rankframe._request.keywords import Columns
from rankframe._tables import adapters, column_roles, run_dicts, side_tables
from rankframe.errors import Problem, option
from rankframe.trec import _formats, _lines
from rankframe.trec._formats import FileRole, Line, Stream

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "ipc": (".arrow", ".ipc", ".feather"),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "trec": (".trec", ".run", ".qrels", ".txt"),
}
_BINARY = ("parquet", "ipc")
_MAGIC = {"parquet": b"PAR1", "ipc": b"ARROW1"}  # how their files begin
_SEPARATORS = {"csv": ",", "tsv": "\t", "trec": None}
FILE_ROLES = {
    "run": ("user", "item", "rank", "score"),
    "truth": ("user", "item", "relevance", "subtopic"),
}
#: The files of further tables.
BESIDE = (*side_tables.INPUT_MEANINGS, "queries", "human")


class Tables(NamedTuple):
    """The tables of a call, with the columns that play roles."""

    runs: dict[str, pl.LazyFrame]
    truth: pl.LazyFrame | None
    beside: dict[str, pl.LazyFrame]
    columns: Columns
    tag: str  # the run name in the first file

    def in_memory(self) -> "Tables":
        """Read all files, once for several commands."""
        runs = {name: run.collect().lazy() for name, run in self.runs.items()}
        beside = {name: table.collect().lazy() for name, table in self.beside.items()}
        truth = None if self.truth is None else self.truth.collect().lazy()
        return self._replace(runs=runs, truth=truth, beside=beside)


def read_files(arguments: argparse.Namespace, columns: Columns) -> Tables:
    """Scan runs, truth and further tables, and give each id one type.

    The returned columns include the common names that were found.
    """
    users: list[str] = arguments.user
    columns = {**columns, "user": users[-1]} if users else columns
    runs: list[Input] = arguments.runs
    passed = {name: getattr(arguments, name) for name in ("truth", "human", *BESIDE)}
    passed = {name: source for name, source in passed.items() if source is not None}
    judged = [name for name in passed if name in ("truth", "human")]
    inputs.check_inputs([*runs, *passed.values()])
    both = [
        *(_scan(source, _layout("run", arguments, columns)) for source in runs),
        *(_scan(passed[name], _layout("truth", arguments, columns)) for name in judged),
    ]
    both = _named_alike(both, arguments, columns)
    columns = _with_names(arguments, columns, both[: len(runs)], both[len(runs) :])
    ids = ids_of(arguments, columns)
    texts = [*ids, columns.get("model", keywords.MODEL), columns.get("subtopic", "subtopic")]
    texts += [getattr(arguments, "cluster", None)]
    both = [_typed(file, texts, ids) for file in both]
    files = [_with_numbers(file, _placing(file, arguments, columns)) for file in both[: len(runs)]]
    grades = [columns.get("relevance", "relevance"), arguments.weights]
    if not judged:  # a run that has a relevance is a judged table
        files = [_with_numbers(file, grades) for file in files]
    for truth in both[len(runs) :]:
        names = truth.frame.collect_schema().names()
        roles = column_roles.with_roles(columns, arguments.by, names, ["relevance"])
        (judgments,) = _of_one_type(columns.get("subtopic", "subtopic"), truth)
        judgments = _with_numbers(judgments, [roles.get("relevance", "relevance"), *grades])
        files.append(_without_folders(judgments, arguments, columns))
    for name in [*passed][len(judged) :]:
        files.append(_typed(_scan(passed[name], _layout(name, arguments, columns)), ids, ids))
    for name in ids:
        files = list(_of_one_type(name, *files))
    # text is read once: a plan without a cache reads a run three times
    frames = [file.frame.cache() if file.form in _SEPARATORS else file.frame for file in files]
    names = inputs.names_of(runs, [file.tag for file in files[: len(runs)]])
    beside = dict(zip(passed, frames[len(runs) :], strict=True))
    return Tables(
        dict(zip(names, frames[: len(runs)], strict=True)),
        beside.pop("truth", None),
        beside,
        {**columns, "user": users} if len(users) > 1 else columns,
        files[0].tag or names[0],
    )


def _named_alike(
    files: list["_File"], arguments: argparse.Namespace, columns: Columns
) -> list["_File"]:
    """Give ids the names of the files with a header, where other files have no names."""
    named = [file.frame.collect_schema() for file in files if not file.is_unnamed]
    headers = [name for header in named for name in header]
    change: dict[str, str] = {}
    for role in ("user", "item"):
        names = column_roles.fitting(role, columns, arguments.by, headers)
        change |= {role: names[0]} if len(set(names)) == 1 else {}
    return [file.renamed(change) if file.is_unnamed else file for file in files]


def _with_names(
    arguments: argparse.Namespace,
    columns: Columns,
    runs: Sequence["_File"],
    truths: Sequence["_File"],
) -> Columns:
    """Add the common names of user, item, and rank or score, as a call from Python does."""
    tables = {str(place): file.frame for place, file in enumerate((*runs, *truths))}
    names = [name for run in runs for name in run.frame.collect_schema()]
    with_ids = column_roles.with_ids(columns, arguments.by, tables)
    role = "placing" if getattr(arguments, "ties", None) is None else "score"
    return column_roles.with_roles(with_ids, arguments.by, names, [role])


def _placing(file: "_File", arguments: argparse.Namespace, columns: Columns) -> list[str | None]:
    """Return the columns of a run that are read as numbers: the rank, or otherwise the score."""
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    by_rank = rank in file.frame.collect_schema() and getattr(arguments, "ties", None) is None
    return [*([rank, "tied"] if by_rank else [score]), arguments.weights]


def of_systems(
    runs: Mapping[str, pl.LazyFrame], arguments: argparse.Namespace, columns: Columns
) -> pl.LazyFrame:
    """Stack the runs, with the name of each in the column of the systems."""
    model = run_dicts.model_of_dict(columns)
    of_users = [arguments.weights, getattr(arguments, "cluster", None)]
    ids = [name for name in ids_of(arguments, columns) if name != model]
    read = [*ids, *filter(None, of_users)]
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    schemas = [run.collect_schema() for run in runs.values()]
    own = [  # what metrics may read
        name
        for name in schemas[0]
        if name not in (*read, rank, score, model) and _are_alike(name, schemas)
    ]
    frames: list[pl.LazyFrame] = []
    used: set[str | None] = set()
    for name, run in runs.items():
        has = run.collect_schema().names()
        order = next((column for column in (rank, score) if column in has), None)
        used.add(order)
        names = dict.fromkeys([*read, order])  # a column may be named twice
        frame = run.select(*(name for name in names if name in has), *own)
        frames.append(frame.with_columns(pl.lit(name, pl.Enum(list(runs))).alias(model)))
    if len(used) > 1:
        msg = f"only some runs have {rank!r}: add it to all runs, or leave only {score!r} in all"
        raise ValueError(msg)
    return pl.concat(frames, how="diagonal_relaxed")


def _are_alike(name: str, schemas: Sequence[pl.Schema]) -> bool:
    """Whether all tables have a column, of one type or of numbers."""
    types = {schema.get(name) for schema in schemas}
    return len(types) == 1 or all(dtype is not None and dtype.is_numeric() for dtype in types)


def ids_of(arguments: argparse.Namespace, columns: Columns) -> list[str]:
    *more, user = arguments.user or [keywords.user_of(columns)]
    average, over = getattr(arguments, "average", None), getattr(arguments, "over", None)
    groups = [name for name in (average, over) if name not in (None, "users", "pooled")]
    return [user, columns.get("item", "item"), *more, *arguments.by, *groups]


class _Layout(NamedTuple):
    """What the caller declares about a file."""

    table: str
    kind: FileRole
    form: str | None
    fields: list[str] | None
    own: dict[str, str]  # columns by role, named for this file alone
    shared: dict[str, str]
    subtopics: bool

    @property
    def names(self) -> dict[str, str]:
        """The columns of the file by the roles that they may play."""
        alone = {"items": ("item",), "queries": ("user",)}
        roles = alone.get(self.table, ("user", "item", *self.own))
        return {role: self.own.get(role, self.shared.get(role, role)) for role in roles}


class _File(NamedTuple):
    name: str
    form: str
    frame: pl.LazyFrame
    names: Mapping[str, str] = {}  # names in the file of columns that have been renamed
    sources: Sequence[Path | bytes | str] = ()  # files, what was read at once, or an address
    tag: str | None = None  # of a run of TREC
    whole: Sequence[str] = ()  # ids of CSV that are all written as integers (007 is not)

    def renamed(self, change: Mapping[str, str]) -> "_File":
        """Rename columns that it may have, and remember their names in the file."""
        has = self.frame.collect_schema()
        names = {new: self.names.get(old, old) for old, new in change.items() if old in has}
        kept = {new: old for new, old in self.names.items() if new not in change}
        return self._replace(frame=self.frame.rename(change, strict=False), names=kept | names)

    @property
    def is_unnamed(self) -> bool:
        """Whether the format has no names of columns, or those of BEIR, whose roles are known."""
        return _formats.BEIR["user"] in self.names.values() or self.form in ("trec", "judgments")

    @property
    def is_text(self) -> bool:
        """Whether types of columns are not declared."""
        return self.form in ("csv", "tsv")

    def read(self, *exprs: pl.Expr) -> pl.DataFrame:
        """Compute expressions of the file; an error names the file."""
        with _named_in_errors(self.name):
            return self.frame.select(*exprs).collect()


@contextlib.contextmanager
def _named_in_errors(name: str) -> Generator[None]:
    """Name the file in errors: those of Polars do not."""
    try:
        yield
    except (OSError, judgment_files.TooLargeError, pl.exceptions.PolarsError) as error:
        msg = f"{name}: {errors.marked(error)}"
        raise ValueError(Problem(msg)) from None


def _layout(table: str, arguments: argparse.Namespace, columns: Columns) -> _Layout:
    named = ("user", "item", "relevance") if table == "truth" else ()
    own = {role: getattr(arguments, f"truth_{role}") for role in named}
    shared = {role: str(name) for role, name in columns.items()}
    *more, own["user"] = own.get("user") or [None]
    if table in FILE_ROLES:
        more = _more_of_user(table, [*more, own["user"]], arguments.user)
        own |= {f"user {place}": name for place, name in enumerate(more)}
        shared |= {f"user {place}": name for place, name in enumerate(arguments.user[:-1])}
    form = getattr(arguments, f"{table}_format", None) or arguments.format
    if form == "auto" or (form == "trec" and table not in FILE_ROLES):
        form = None
    kinds: dict[str, FileRole] = {"truth": "truth", "items": "table", "queries": "table"}
    return _Layout(
        table,
        kinds.get(table, "run"),
        form,
        getattr(arguments, f"{table}_fields", None),
        {role: name for role, name in own.items() if name},
        shared,
        arguments.subtopic_qrels,
    )


def _more_of_user(table: str, own: Sequence[str | None], shared: Sequence[str]) -> Sequence[str]:
    """Return the columns of the user in a file, but for the last."""
    named = [name for name in own if name is not None] or shared
    if len(named) != max(1, len(shared)) and named:
        msg = (
            f"{option(f'{table}_user')} names {len(named)} column{'s' * (len(named) > 1)} and "
            f"{option('user')} {len(shared)}: name as many, each with an option of its own"
        )
        raise ValueError(Problem(msg))
    return named[:-1]


def _scan(source: Input, layout: _Layout) -> _File:
    """Scan an input; columns of CSV files are text, and those with roles are renamed."""
    if source.is_remote:
        return _scan_remote(source, layout)
    if not source.is_table:
        return _scan_file(source, layout)
    paths = source.files()
    if empty := [path for path in paths if not path.stat().st_size]:
        msg = f"{empty[0]}: it is empty: write it again, or remove it if it has no rows"
        raise ValueError(msg)
    forms = {_format_of_suffix(path): path for path in paths}
    if len(forms) > 1 and layout.form is None:
        first, other = sorted(map(str, forms.values()))[:2]
        msg = f"{source}: files of one table must have one format, not {first} and {other}"
        raise ValueError(msg)
    start = _scan_file(Input(str(paths[0])), layout)
    if start.form in _BINARY:
        table = _File(str(source), start.form, _frame(paths, start.form))
        return _in_roles(table, layout)._replace(sources=paths)
    parts = [start, *(_scan_file(Input(str(path)), layout) for path in paths[1:])]
    return start._replace(name=str(source), frame=_stacked(parts), sources=paths)


def _stacked(parts: Sequence[_File]) -> pl.LazyFrame:
    """Stack the files of a table, which have the same columns."""
    if len(parts) == 1:
        return parts[0].frame
    first, *rest = (part.frame.collect_schema().names() for part in parts)
    for part, names in zip(parts[1:], rest, strict=True):
        if lacking := {*first} ^ {*names}:
            name = min(lacking)
            has, no = (parts[0], part) if name in first else (part, parts[0])
            columns = "files of one table must have the same columns"
            msg = f"{no.name}: no column {name!r}, which {has.name} has: {columns}"
            raise ValueError(msg)
    return pl.concat([part.frame.select(first) for part in parts], how="vertical_relaxed")


def _without_folders(truth: _File, arguments: argparse.Namespace, columns: Columns) -> _File:
    """Drop the columns of folders that no option names: shard=0 and shard=1 are no grades."""
    options = (getattr(arguments, option, None) for option in ("weights", "cluster"))
    named = {keywords.MODEL, *ids_of(arguments, columns), *options, *column_roles.SEARCHED}
    named |= {*columns.values(), *keywords.ROLES, *truth.names}
    labels = " ".join(getattr(arguments, "metrics", ()))
    folders = _folders(truth.sources[0]) if truth.form in _BINARY else set[str]()
    unused = [name for name in folders - named if not re.search(rf"\b{re.escape(name)}\b", labels)]
    return truth._replace(frame=truth.frame.drop(unused, strict=False))


def _folders(source: Path | bytes | str) -> set[str]:
    """Return the names of Hive's folders in a path, such as day of day=2026-11-01."""
    folders = [] if isinstance(source, bytes) else str(source).split("/")[:-1]
    return {folder.partition("=")[0] for folder in folders if "=" in folder}


def _scan_remote(source: Input, layout: _Layout) -> _File:
    """Scan an address; it has the format of its suffix, or otherwise is Parquet."""
    form = layout.form or _format_of_suffix(source.path) or "parquet"
    if form in ("trec", "json") or layout.fields is not None:
        msg = f"{source}: only Parquet, CSV, TSV, Arrow IPC and JSON Lines are read from an address"
        raise ValueError(msg)
    with _named_in_errors(str(source)):
        frame = _frame(source.text, form)
        frame.collect_schema()
    return _in_roles(_File(str(source), form, frame, sources=[source.text]), layout)


def _frame(source: str | Path | list[Path] | bytes, form: str) -> pl.LazyFrame:
    """Scan a source of a format; the name of a local file is no pattern."""
    is_address = isinstance(source, str)
    if form in _BINARY:
        scan = pl.scan_parquet if form == "parquet" else pl.scan_ipc
        folders = is_address
        if not isinstance(source, str | bytes):  # a column of the file wins over its folder
            own = scan(source, glob=False, hive_partitioning=False).collect_schema()
            first = source if isinstance(source, Path) else source[0]
            folders = _folders(first).isdisjoint(own)
        return scan(source, glob=is_address, hive_partitioning=folders)
    source = cast("str | Path | bytes", source)  # text is scanned file by file
    if form == "json":
        return pl.read_json(_unpacked(source), infer_schema_length=None).lazy()
    if form == "jsonl":
        source = glob.escape(str(source)) if isinstance(source, Path) else source
        return pl.scan_ndjson(source, infer_schema_length=None)
    return _csv(source, form, infer_schema=False)


def _csv(source: str | Path | bytes, form: str, **types: Any) -> pl.LazyFrame:
    separator = _SEPARATORS[form] or ","
    return pl.scan_csv(source, separator=separator, glob=isinstance(source, str), **types)


def _scan_file(file: Input, layout: _Layout) -> _File:
    name = str(file)
    with _named_in_errors(name):
        with _opened(file) as stream:
            form = _format_of(file.path, stream, layout)
            source = file.path if stream.path is not None else stream
            if form == "trec" or layout.fields is not None:
                return _scan_lines(name, form, source, layout)
            content = source.read_all() if isinstance(source, Stream) else source
        if layout.kind == "truth" and form in ("json", "jsonl"):
            read = content if isinstance(content, bytes) else content.read_bytes()
            judgments = judgment_files.read_nested(name, read)
            if judgments is not None:
                roles = {role: layout.shared.get(role, role) for role in judgments.columns}
                return _File(name, "judgments", judgments.lazy().rename(roles))
        try:
            frame = _frame(content, form)
            frame.collect_schema()
        except pl.exceptions.PanicException as error:
            msg = f"{name}: {adapters.why_unreadable(error)}"
            raise ValueError(msg) from None
        except pl.exceptions.PolarsError as error:
            other = option(f"{layout.table}_format" if layout.table in FILE_ROLES else "format")
            msg = f"{name}: {one_line(error)} (read as {form}; {other} names another format)"
            raise ValueError(Problem(msg)) from None
    return _in_roles(_File(name, form, frame, sources=[content]), layout)


def _scan_lines(name: str, form: str, source: Path | Stream, layout: _Layout) -> _File:
    """Scan lines of TREC, or fields without a header."""
    if form not in _SEPARATORS:
        msg = (
            f"{name}: {option(f'{layout.table}_fields')} names the columns of text without a "
            f"header, and this file is of format {form}"
        )
        raise ValueError(Problem(msg))
    lines = _lines_at_start(source)
    header = layout.fields or [word for line in lines[:1] for word in line.words]
    shared = {role: column for role, column in layout.shared.items() if column in header}
    file_roles = FILE_ROLES.get(layout.kind, FILE_ROLES["run"])
    roles = {role: name for role, name in (shared | layout.own).items() if role in file_roles}
    frame = _lines.scan_text(
        source,
        layout.kind,
        fields=layout.fields,
        separator=_SEPARATORS[form] if layout.form else "",
        subtopics=layout.subtopics and layout.kind == "truth",
        columns=roles,
    )
    has = frame.collect_schema().names()
    change = {role: name for role, name in layout.shared.items() if role in has}
    more = {role: column for role, column in layout.own.items() if role not in file_roles}
    _check_has(name, layout, more, has)
    change |= {column: layout.shared[role] for role, column in more.items()}
    return _File(name, "trec", frame.rename(change), tag=_tag_of(lines, layout))


def _tag_of(lines: Sequence[Line], layout: _Layout) -> str | None:
    """Return the name of a run of TREC: the last field of its first line."""
    words = lines[0].words if lines and layout.fields is None and layout.kind == "run" else []
    return words[5] if len(words) == 6 else None


def _in_roles(file: _File, layout: _Layout) -> _File:
    """Rename the columns that play roles in this file to their names in all files."""
    has = file.frame.collect_schema().names()
    _check_has(file.name, layout, layout.own, has)
    played = dict(layout.own)
    if layout.kind == "truth" and set(_formats.BEIR.values()) <= {*has}:
        beir = _formats.BEIR.items()
        played = {r: name for r, name in beir if layout.shared.get(r, r) not in has} | played
    if len({*played.values()}) < len(played):
        twice = max(played.values(), key=[*played.values()].count)
        msg = f"{file.name}: two roles name the same column, {twice!r}"
        raise ValueError(msg)
    change = {name: layout.shared.get(role, role) for role, name in played.items()}
    shadowed = [new for new in change.values() if new in has and new not in change]
    frame = file.frame.drop(shadowed).rename(change)
    return file._replace(frame=frame, names={new: name for name, new in change.items()})


def _check_has(file: str, layout: _Layout, roles: Mapping[str, str], has: Sequence[str]) -> None:
    for role, name in roles.items():
        if name not in has:
            names, word = ", ".join(map(repr, has)), role.partition(" ")[0]
            is_own = layout.table == "truth" and word in layout.own
            flag = option(f"truth_{word}" if is_own else word)
            msg = f"{file}: no column {name!r} for {flag}; it has {names}"
            raise ValueError(Problem(msg))


def _lines_at_start(source: Path | Stream) -> list[Line]:
    if isinstance(source, Stream):
        return _formats.first_lines(source)
    with source.open("rb", buffering=0) as file:
        return _formats.first_lines(Stream(file, str(source), source))


def _format_of(path: Path, stream: Stream, layout: _Layout) -> str:
    """Return the declared format, that of the suffix, or TREC or CSV by the first lines."""
    form = layout.form or _format_of_suffix(path)
    form = None if form == "trec" and layout.kind == "table" else form
    if layout.fields is not None or form not in (None, "trec", "csv", "tsv"):
        return form or "trec"
    lines = _formats.first_lines(stream)
    if form in ("csv", "tsv") and layout.table in FILE_ROLES:
        start = bytes(stream.peek(6))
        for other, magic in _MAGIC.items():
            if start.startswith(magic):
                flag = option(f"{layout.table}_format", other)
                msg = f"{stream.name}: its format is {other}, not {form}: pass {flag}"
                raise ValueError(Problem(msg))
        _check_header(stream.name, lines, form, layout)
    shown = form or _formats.text_format(lines, layout.kind)
    is_triple = layout.kind == "run" and _formats.has_three_fields(lines)
    if shown is not None and not (shown == "trec" and is_triple):
        return shown
    if not stream.peek(1):
        msg = f"{stream.name}: it is empty"
        raise ValueError(msg)
    problem = "its name tells no format, and it is neither TREC nor CSV with a header"
    if layout.table not in FILE_ROLES:
        problem += ": end its name in .csv or .parquet"
    elif is_triple:
        flag = f"{layout.table}_fields"
        fields = (option(flag, f"user,item,{name}") for name in ("rank", "score"))
        problem = f"its third field may be the rank or the score: pass {' or '.join(fields)}"
    else:
        flag = option(f"{layout.table}_format")
        problem += f": pass {flag} {'|'.join(FORMATS)}, or the names of its "
        problem += f"fields in {option(f'{layout.table}_fields')}"
    raise _at_line(stream.name, lines, problem)


def _check_header(name: str, lines: Sequence[Line], form: str, layout: _Layout) -> None:
    """Check that the first line of CSV is no data, which has a number and no known name."""
    fields = _formats.split(lines[0].text, _SEPARATORS[form]) if lines else []
    roles = {*layout.names.values(), *column_roles.SEARCHED}
    if len(fields) == 1 or (roles.isdisjoint(fields) and any(map(_formats.is_number, fields))):
        flags = (option(f"{layout.table}_{name}") for name in ("format", "fields"))
        of_one = f" {'|'.join(_SEPARATORS)}, or ".join(flags)
        cure = f"pass {of_one} with the names of its fields, or write it with commas or tabs"
        problem = f"it is not a header of {form}: {cure}"
        raise _at_line(name, lines, problem)


def _format_of_suffix(path: Path) -> str | None:
    unpacked = path.with_suffix("") if path.suffix.lower() in _formats.PACKINGS else path
    suffix = unpacked.suffix.lower()
    return next((form for form, suffixes in FORMATS.items() if suffix in suffixes), None)


def _at_line(name: str, lines: Sequence[Line], problem: str) -> ValueError:
    if not lines:
        return ValueError(Problem(f"{name}: {problem}"))
    text = f"{name}, line {lines[0].number}: {problem}: {lines[0].text[:200]!r}"
    return ValueError(Problem(text))


@contextlib.contextmanager
def _opened(file: Input) -> Generator[Stream]:
    """Open a file to inspect its start; the same stream then reads a pipe."""
    if file.is_stdin:
        if sys.stdin is None:
            msg = f"{file}: standard input is closed"
            raise ValueError(msg)
        yield Stream(sys.stdin.buffer, str(file))
        return
    with file.path.open("rb", buffering=0) as opened:
        yield Stream(opened, file.text, file.path if _lines.can_be_scanned(file.path) else None)


def _typed(file: _File, texts: Collection[str | None], ids: Collection[str | None]) -> _File:
    """Give columns of CSV the types that Polars infers from all rows; 007 stays text, and is not 7.

    Ids are integers if all are written as integers, until other files show what they are.

    All columns are read once, since Polars counts the fields of a line only then.
    """
    if not file.is_text:
        return file
    with _named_in_errors(file.name):
        counted = None
        if all(map(_is_plain, file.sources)):
            with contextlib.suppress(pl.exceptions.PolarsError):
                counted = _counted(file, texts, ids, _sizes.FIRST_ROWS)
        try:
            rows, typed, is_full = counted or _counted(file, texts, ids, None) or (0, file, True)
        except pl.exceptions.ComputeError as error:
            if "more fields than" in str(error):
                _raise_at_row(file)
            column = re.search(r"at column '(.*)' \(column number", str(error))
            if column is None:
                raise
            # Polars takes digits of any script for numbers, and does not read them
            return _typed(file, {*texts, file.names.get(column[1], column[1])}, ids)
        if not is_full and any(_has_short_line(source, file.form) for source in file.sources):
            _raise_at_row(file)
    if not rows:
        msg = f"{file.name}: it is empty"
        raise ValueError(msg)
    return typed


def _counted(
    file: _File, texts: Collection[str | None], ids: Collection[str | None], most: int | None
) -> tuple[int, _File, bool] | None:
    """Infer types, count rows, and tell whether no field is empty.

    Return None if the first rows may not show the types of all.

    Inferring them from all rows takes four times as long as reading the file.
    """
    names = {file.names.get(name, name): name for name in file.frame.collect_schema()}
    as_text = {name: pl.String for name, new in names.items() if new in texts}
    change = {old: new for old, new in names.items() if old != new}
    schemas: list[dict[str, Any]] = []
    for source in file.sources:
        inferred = _csv(source, file.form, infer_schema_length=most, schema_overrides=as_text)
        has = dict(inferred.collect_schema())  # once, since each plan would infer it again
        if most and any(dtype == pl.String and n not in as_text for n, dtype in has.items()):
            return None
        schemas.append(
            {name: pl.String() if dtype == pl.Int128 else dtype for name, dtype in has.items()}
        )

    def scanned(whole: Collection[str]) -> pl.LazyFrame:
        parts: list[_File] = []
        for source, has in zip(file.sources, schemas, strict=True):
            numbers = {name: pl.Int64() for name in has if names.get(name) in whole}
            frame = _csv(source, file.form, schema=has | numbers)
            unused = [name for name in has if name not in names]
            parts.append(file._replace(frame=frame.drop(unused).rename(change)))
        return _stacked(parts)

    typed = scanned([])
    has = typed.collect_schema()
    has_ids = [name for name in has if name in ids]
    alike = [_as_integer(name).cast(pl.String).eq_missing(pl.col(name)).all() for name in has_ids]
    every = pl.sum_horizontal(pl.all().count()).alias("every")
    finite = pl.all_horizontal(pl.lit(value=True), cs.float().is_finite().all()).alias("finite")
    row = typed.select(pl.len(), every, finite, *alike).collect().row(0)
    if most and not row[2]:  # nan and infinity would be text
        return None
    whole = [*itertools.compress(has_ids, row[3:])]
    return row[0], file._replace(frame=scanned(whole), whole=whole), row[1] == row[0] * len(has)


def _is_plain(source: Path | bytes | str) -> bool:
    """Whether CSV is not packed, and has no byte that a number may have but its type does not."""
    if isinstance(source, str):
        return False
    with io.BytesIO(source) if isinstance(source, bytes) else source.open("rb") as file:
        start = file.read(4)
        pieces = itertools.chain([start], iter(lambda: file.read(_sizes.BYTES_READ), b""))
        is_packed = not start.isascii() or b"\x01" in start
        return not is_packed and not any(byte in piece for piece in pieces for byte in b" +")


def _has_short_line(source: Path | bytes | str, form: str) -> bool:
    """Whether a line may have fewer fields than the first: what it lacks is read as null.

    An address is not read for this.
    """
    if isinstance(source, str):
        return False
    separator = (_SEPARATORS[form] or ",").encode()
    with _lines_of(source) as lines:
        fields = next(lines, b"").count(separator)
        return any(line.count(separator) < fields or b'"' in line for line in lines)


def _as_integer(name: str) -> pl.Expr:
    return pl.col(name).cast(pl.Int64, strict=False)


def _with_numbers(file: _File, names: Collection[str | None]) -> _File:
    """Cast to numbers what spaces, nan and size have kept text, or name the first that is none."""
    schema = file.frame.collect_schema()
    texts = [name for name in schema if name in names and schema[name] == pl.String]
    texts = [name for name in texts if file.is_text and not column_roles.is_pattern(name)]
    for name in texts:
        text = pl.col(name).str.strip_chars(" \t")
        numbers = [text.cast(dtype, strict=False) for dtype in (pl.Int128, pl.Float64)]
        fits = file.read(
            pl.concat_list(number.count() == text.count() for number in numbers)
        ).item()
        number = next(itertools.compress(numbers, fits), None)
        if number is None:
            _raise_at_row(file, file.names.get(name, name))
            msg = f"{file.name}, column {name!r}: a value is not a number"
            raise ValueError(msg)
        file = file._replace(frame=file.frame.with_columns(number))
    return file


def _raise_at_row(file: _File, column: str | None = None) -> None:
    """Raise for the first row of CSV of another length, or without a number in a column."""
    header: list[str] = []
    for where, row in _rows_of(file):
        if not header or row == header:
            header = row
        elif row and len(row) != len(header):
            fields = f"it has {len(row)} field{'s'[: len(row) > 1]} and the header {len(header)}"
            cure = "quote a field that holds the separator"
            if len(row) < len(header):
                cure = "leave the field of a missing value empty"
            msg = f"{where}: {fields}: {cure}: {','.join(row)[:200]!r}"
            raise ValueError(msg)
        elif column is not None and row:
            text = row[header.index(column)]
            if text and not _formats.is_number(text):
                problem = "is not a number (leave the field of a missing one empty)"
                if text.lower() in ("true", "false"):
                    problem = "is in a column that is not of true and false alone"
                msg = f"{where}, column {column!r}: {text[:200]!r} {problem}"
                raise ValueError(msg)


def _rows_of(file: _File) -> Iterator[tuple[str, list[str]]]:
    """Return the rows of CSV with file and line, the header first; none of an address."""
    for source in file.sources:
        if isinstance(source, str):
            continue
        name = file.name if len(file.sources) == 1 else str(source)
        with contextlib.suppress(csv.Error), _lines_of(source) as lines:
            text = io.TextIOWrapper(lines, encoding="utf-8-sig", errors="replace", newline="")
            rows, line = csv.reader(text, delimiter=_SEPARATORS[file.form] or ","), 1
            for row in rows:
                yield f"{name}, line {line}", row
                line = rows.line_num + 1


def _unpacked(content: str | Path | bytes) -> bytes:
    """Read a file, and unpack what gzip has packed."""
    read = content if isinstance(content, bytes) else Path(content).read_bytes()
    return judgment_files.unpacked(read)


@contextlib.contextmanager
def _lines_of(content: Path | bytes) -> Generator[IO[bytes]]:
    """Open a file, or bytes, to read line by line what gzip has packed."""
    with io.BytesIO(content) if isinstance(content, bytes) else content.open("rb") as file:
        packed = file.read(2) == _formats.GZIP
        file.seek(0)
        yield cast("IO[bytes]", gzip.GzipFile(fileobj=file)) if packed else file


def broken_file(sources: Sequence[Input]) -> str | None:
    """Read each file alone, since Polars does not name the one that cannot be read."""
    for source in sources:
        seen: dict[str, tuple[Path, pl.DataType]] = {}
        for path in filter(Path.is_file, source.files()):
            form = _format_of_suffix(path)
            if form not in _BINARY:
                continue
            try:
                schema = _frame(path, form).collect().schema
            except (OSError, pl.exceptions.PolarsError) as error:
                text = one_line(error)
                return text if str(path) in text else f"{path}: {text}"
            for name, dtype in schema.items():
                first, other = seen.setdefault(name, (path, dtype))
                if dtype != other:
                    return (
                        f"{source}, column {name!r}: it is {adapters.type_words(other, dtype)} in "
                        f"{first} and {adapters.type_words(dtype, other)} in {path}: files of one "
                        "table must have the same types: write one again"
                    )
    return None


def _of_one_type(name: str, *files: _File) -> tuple[_File, ...]:
    """Convert an id to the same type in all files.

    CSV and TREC files do not declare whether 7 is a number. Ids are integers if another file
    declares integers, or if all files are CSV, and all ids are written as integers (007 is not).
    Otherwise they are text.
    """
    types = [file.frame.collect_schema().get(name) for file in files]
    has_id = [dtype is not None for dtype in types]
    in_text = [has and file.is_text for has, file in zip(has_id, files, strict=True)]
    number, text = _as_integer(name), pl.col(name).cast(pl.String)
    declared = [dtype for dtype, is_text in zip(types, in_text, strict=True) if not is_text]
    if all(dtype is None or dtype.is_integer() for dtype in declared) and all(
        name in file.whole for file in itertools.compress(files, in_text)
    ):
        change, changed = number, in_text
    else:
        change, changed = (
            text,
            has_id if pl.String in types or any(in_text) else [False] * len(files),
        )
    return tuple(
        file._replace(frame=file.frame.with_columns(change)) if is_changed else file
        for file, is_changed in zip(files, changed, strict=True)
    )


def one_line(error: Warning | Exception | str, reader: str = "command") -> str:
    text = errors.rendered(error, reader).strip().partition("\n")[0]
    return printable((text or type(error).__name__)[:500])


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
