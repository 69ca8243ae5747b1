"""Scan the files of the command, in all their formats: lazy frames with columns by role."""

import argparse
import contextlib
import csv
import glob
import gzip
import io
import itertools
import json
import re
import sys
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, TypeVar, cast
from urllib.parse import unquote

import polars as pl

from rankframe._command import inputs
from rankframe._command.inputs import Input
from rankframe._inputs import judgment_files
from rankframe._request import keywords
from rankframe._request.keywords import Columns
from rankframe._tables import adapters, column_roles, run_dicts, side_tables
from rankframe.trec import _formats, _lines
from rankframe.trec._formats import Fit, Kind, Line, Stream

T = TypeVar("T")

FORMATS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv",),
    "tsv": (".tsv",),
    "ipc": (".arrow", ".ipc", ".feather"),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "trec": (".trec", ".run", ".qrels", ".txt"),
}
_SEPARATORS = {"csv": ",", "tsv": "\t", "trec": None}
FILE_ROLES = {
    "run": ("user", "item", "rank", "score"),
    "truth": ("user", "item", "relevance", "subtopic"),
}
#: The files of further tables.
BESIDE = (*side_tables.INPUT_MEANINGS, "queries")
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # of a folder whose rows have a null


class Tables(NamedTuple):
    """The tables of a call, with the columns that play roles."""

    runs: dict[str, pl.LazyFrame]
    truth: pl.LazyFrame | None
    beside: dict[str, pl.LazyFrame]
    columns: Columns
    tag: str  # the run name in the first file


def read_files(arguments: argparse.Namespace, columns: Columns) -> Tables:
    """Scan runs, truth and further tables; give each id one type, and parse numbers in CSV.

    The returned columns include the common names that were found.
    """
    users: list[str] = arguments.user
    columns = {**columns, "user": users[-1]} if users else columns
    runs: list[Input] = arguments.runs
    paths = {name: getattr(arguments, name) for name in BESIDE}
    beside = {name: path for name, path in paths.items() if path is not None}
    judged = _if_any(arguments.truth)
    inputs.check_inputs([*runs, *judged, *beside.values()])
    weights = _if_any(arguments.weights)
    as_run, as_truth = _layout("run", arguments, columns), _layout("truth", arguments, columns)
    files = [_scan(path, as_run) for path in runs]
    truths = [_scan(path, as_truth) for path in judged]
    both = _named_alike([*files, *truths], arguments, columns)
    files, truths = both[: len(files)], both[len(files) :]
    columns = _with_names(arguments, columns, files, truths)
    ids = ids_of(arguments, columns)
    files = [
        _with_numbers(file, [*_placing(file, arguments, columns), *weights], without=ids)
        for file in files
    ]
    if not judged:  # a run that has a relevance is a judged table
        grades = [columns.get("relevance", "relevance")]
        files = [_with_numbers(file, grades, without=ids, booleans=True) for file in files]
    files += [
        _with_grades(_without_folders(truth, as_truth, arguments, columns), arguments, columns)
        for truth in truths
    ]
    for name, path in beside.items():
        files.append(_with_numbers(_scan(path, _layout(name, arguments, columns)), [], without=ids))
    if getattr(arguments, "time", None) is not None:
        files = _with_times(files, arguments.time, without=ids)
    for name in ids:
        files = list(_of_one_type(name, *files))
    frames = [file.frame for file in files]
    names = inputs.names_of(runs, [file.tag for file in files[: len(runs)]])
    return Tables(
        dict(zip(names, frames[: len(runs)], strict=True)),
        frames[len(runs)] if judged else None,
        dict(zip(beside, frames[len(runs) + len(judged) :], strict=True)),
        {**columns, "user": users} if len(users) > 1 else columns,
        files[0].tag or names[0],
    )


def _if_any(value: T | None) -> list[T]:
    return [] if value is None else [value]


def _with_grades(truth: "_File", arguments: argparse.Namespace, columns: Columns) -> "_File":
    """Parse the numbers of the truth: grades, or otherwise each column that may have them."""
    subtopic = columns.get("subtopic", "subtopic")
    names = truth.frame.collect_schema().names()
    roles = column_roles.with_roles(columns, arguments.by, names, ["relevance"])
    grades = roles.get("relevance", "relevance")
    weights = _if_any(arguments.weights)
    ids = ids_of(arguments, columns)
    read = [*ids, subtopic, *weights, getattr(arguments, "cluster", None)]
    possible = (*column_roles.RATINGS, *column_roles.GRADES)
    numbers = [grades]
    if grades not in names:
        numbers = list(dict.fromkeys([*_numeric(truth, possible), *_flags(truth, read)]))
    (typed,) = _of_one_type(subtopic, truth)
    typed = _with_numbers(typed, numbers, without=ids, booleans=True)
    return _with_numbers(typed, weights, without=[*ids, grades])


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
    return [
        file._replace(frame=file.frame.rename(change, strict=False)) if file.is_unnamed else file
        for file in files
    ]


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


def _with_times(files: list["_File"], time: str, *, without: Sequence[str]) -> list["_File"]:
    """Parse times of CSV as numbers if all of them are, since 999 is before 1000."""
    texts = [file for file in files if file.is_text and time in file.frame.collect_schema()]
    if not all(_numeric(file, [time]) for file in texts):
        return files
    return [_with_numbers(file, [time], without=without) for file in files]


def _numeric(file: "_File", names: Sequence[str]) -> list[str]:
    """Return the columns of a CSV file that contain only numbers."""
    candidates = [name for name in names if file.is_text and name in file.frame.collect_schema()]
    columns = map(pl.col, candidates)
    fits = [of.cast(pl.Float64, strict=False).count() == of.count() for of in columns]
    return _that_fit(file, candidates, fits)


def _flags(file: "_File", without: Sequence[str | None]) -> list[str]:
    """Return the columns of a CSV file that contain only 0 and 1, or only true and false."""
    names = file.frame.collect_schema().names() if file.is_text else []
    has_ids = {*without[:2]} <= {*names}  # otherwise, it may be a file of another format
    candidates = [name for name in names if name not in without] if has_ids else []
    texts = [pl.col(name).str.strip_chars(" \t").str.to_lowercase() for name in candidates]
    words = (["0", "1", "0.0", "1.0"], ["true", "false"])
    fits = [pl.any_horizontal(text.is_in(pair).all() for pair in words) for text in texts]
    return _that_fit(file, candidates, fits)


def _that_fit(file: "_File", names: Sequence[str], fits: Sequence[pl.Expr]) -> list[str]:
    """Return the columns of which an expression of the file is true."""
    named = [fit.alias(str(place)) for place, fit in enumerate(fits)]
    return list(itertools.compress(names, file.read(*named).row(0))) if names else []


def _placing(file: "_File", arguments: argparse.Namespace, columns: Columns) -> list[str]:
    """Return the columns of a run that are read as numbers: the rank, or otherwise the score."""
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    by_rank = rank in file.frame.collect_schema() and getattr(arguments, "ties", None) is None
    return [rank, "tied"] if by_rank else [score]


def of_systems(
    runs: Mapping[str, pl.LazyFrame], arguments: argparse.Namespace, columns: Columns
) -> pl.LazyFrame:
    """Stack the runs, with the name of each in the column of the systems."""
    model = run_dicts.model_of_dict(columns)
    of_users = [arguments.weights, getattr(arguments, "cluster", None)]
    ids = [name for name in ids_of(arguments, columns) if name != model]
    read = [*ids, *filter(None, of_users)]
    rank, score = columns.get("rank", "rank"), columns.get("score", "score")
    first, *others = (run.collect_schema() for run in runs.values())
    own = [  # what metrics may read
        name
        for name, dtype in first.items()
        if name not in (*read, rank, score, model)
        and all(name in other and other[name] == dtype for other in others)
    ]
    frames: list[pl.LazyFrame] = []
    used: set[str | None] = set()
    for name, run in runs.items():
        has = run.collect_schema().names()
        order = next((column for column in (rank, score) if column in has), None)
        used.add(order)
        frame = run.select(*(name for name in (*read, order) if name in has), *own)
        frames.append(frame.with_columns(pl.lit(name, pl.Enum(list(runs))).alias(model)))
    if len(used) > 1:
        msg = f"only some runs have {rank!r}: add it to all runs, or leave only {score!r} in all"
        raise ValueError(msg)
    return pl.concat(frames, how="diagonal_relaxed")


def ids_of(arguments: argparse.Namespace, columns: Columns) -> list[str]:
    *more, user = arguments.user or [keywords.user_of(columns)]
    return [user, columns.get("item", "item"), *more, *arguments.by]


class _Layout(NamedTuple):
    """What the caller declares about a file."""

    table: str
    kind: Kind
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

    def option(self, fit: Fit) -> str:
        """Return the option that selects a format."""
        if self.table in FILE_ROLES:
            fields = fit.form == "fields"
            return f"--{self.table}-" + (f"fields {fit.fields}" if fields else f"format {fit.form}")
        if fit.form == "fields":
            return "add a header"
        return f"end its name in {FORMATS[fit.form][0]}"


class _File(NamedTuple):
    name: str
    form: str
    frame: pl.LazyFrame
    names: Mapping[str, str] = {}  # names in the file of columns that have been renamed
    source: Path | bytes | None = None
    tag: str | None = None  # of a run of TREC
    parts: Sequence["_File"] = ()  # of a table of several files
    folders: Sequence[str] = ()  # columns that come from the path

    @property
    def is_unnamed(self) -> bool:
        """Whether the format has no names of columns, or those of BEIR, whose roles are known."""
        is_beir = self.names.get("user") == _formats.BEIR["user"]
        return is_beir or self.form in ("trec", "judgments")

    @property
    def is_text(self) -> bool:
        """Whether all columns are read as text, whatever they contain."""
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
        msg = f"{name}: {one_line(error)}"
        raise ValueError(msg) from None


def _layout(table: str, arguments: argparse.Namespace, columns: Columns) -> _Layout:
    own = {role: getattr(arguments, f"{table}_{role}") for role in FILE_ROLES.get(table, ())}
    shared = {role: str(name) for role, name in columns.items()}
    *more, own["user"] = own.get("user") or [None]
    if table in FILE_ROLES:
        more = _more_of_user(table, [*more, own["user"]], arguments.user)
        own |= {f"user {place}": name for place, name in enumerate(more)}
        shared |= {f"user {place}": name for place, name in enumerate(arguments.user[:-1])}
    form = getattr(arguments, f"{table}_format", None) or arguments.format
    if form == "auto" or (form == "trec" and table not in FILE_ROLES):
        form = None
    kinds: dict[str, Kind] = {"truth": "truth", "items": "table", "queries": "table"}
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
            f"--{table}-user names {len(named)} column{'s' * (len(named) > 1)} and --user "
            f"{len(shared)}: name as many, each with an option of its own"
        )
        raise ValueError(msg)
    return named[:-1]


def _scan(source: Input, layout: _Layout) -> _File:
    """Scan an input; columns of CSV files are read as text, and those with roles are renamed."""
    if source.is_remote:
        file = _in_roles(_scan_remote(source, layout), layout)
        return file if _is_remote_table(source) else _with_folders(file, source)
    if not source.is_table:
        file = _scan_file(source, layout)
        return file if source.is_stdin else _with_folders(file, source)
    files = source.files()
    if empty := [path for path in files if not path.stat().st_size]:
        msg = f"{empty[0]}: it is empty: write it again, or remove it if it has no rows"
        raise ValueError(msg)
    first, *_ = parts = [_scan_file(Input(str(path)), layout) for path in files]
    _check_alike(source, parts, layout)
    names = first.frame.collect_schema().names()
    folders = _folders(source, files, as_text=first.is_text)
    frames = [
        part.frame.select(names).with_columns(
            pl.lit(values[place], values.dtype).alias(name) for name, values in folders.items()
        )
        for place, part in enumerate(parts)
    ]
    frame = pl.concat(frames, how="vertical_relaxed")
    added = [name for name in folders if name not in names]
    return first._replace(name=str(source), frame=frame, source=None, parts=parts, folders=added)


def _check_alike(source: Input, parts: Sequence[_File], layout: _Layout) -> None:
    """Check that the files of a table have one format, and the same columns of like types."""
    first, *rest = parts
    for part in rest:
        if part.form != first.form:
            forms = f"{first.name} is {first.form}, {part.name} is {part.form}"
            msg = f"{source}: files of one table must have one format: {forms}"
            raise ValueError(msg)
        lacking = {*first.frame.collect_schema()} ^ {*part.frame.collect_schema()}
        if lacking:
            name = min(lacking)
            has, no = (first, part) if name in first.frame.collect_schema() else (part, first)
            columns = "files of one table must have the same columns"
            msg = f"{no.name}: no column {name!r}, which {has.name} has: {columns}"
            raise ValueError(msg)
    ids = {*layout.names.values()}
    seen: dict[str, tuple[str, pl.DataType]] = {}
    for part in parts:
        for name, dtype in part.frame.collect_schema().items():
            if dtype == pl.Null:
                continue
            file, other = seen.setdefault(name, (part.name, dtype))
            if _kind(dtype, is_id=name in ids) != _kind(other, is_id=name in ids):
                msg = (
                    f"{source}, column {name!r}: it is {adapters.type_words(other, dtype)} in "
                    f"{file} and {adapters.type_words(dtype, other)} in {part.name}: files of one "
                    "table must have the same types: write one again"
                )
                raise ValueError(msg)


def _kind(dtype: pl.DataType, *, is_id: bool) -> object:
    """Return what types of one kind share; a score may be whole in one file, and an id may not."""
    if isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return pl.String
    if dtype.is_numeric():
        return dtype.is_integer() if is_id else "number"
    return type(dtype)


def _with_folders(file: _File, source: Input) -> _File:
    """Add the columns of the folders in the path of a single file that it does not have."""
    has = file.frame.collect_schema()
    folders = _folders(source, [source.path], as_text=file.is_text)
    added = {name: values for name, values in folders.items() if name not in has}
    frame = file.frame.with_columns(
        pl.lit(values[0], values.dtype).alias(name) for name, values in added.items()
    )
    return file._replace(frame=frame, folders=[*added])


def _without_folders(
    truth: _File, layout: _Layout, arguments: argparse.Namespace, columns: Columns
) -> _File:
    """Drop the columns of folders that no option names: shard=0 and shard=1 are no grades."""
    named = {
        *(keywords.MODEL, *ids_of(arguments, columns)),
        *(getattr(arguments, option, None) for option in ("weights", "cluster")),
        *(*layout.names.values(), *columns.values(), *column_roles.SEARCHED),
    }
    labels = " ".join(getattr(arguments, "metrics", ()))
    unnamed = [name for name in truth.folders if name not in named]
    unused = [name for name in unnamed if not re.search(rf"\b{re.escape(name)}\b", labels)]
    return truth._replace(frame=truth.frame.drop(unused)) if unused else truth


def _folders(source: Input, files: Sequence[Path], *, as_text: bool) -> dict[str, pl.Series]:
    """Return the columns that Hive keeps in names of folders, such as day=2026-11-01."""
    pairs = [dict(part.split("=", 1) for part in file.parts[:-1] if "=" in part) for file in files]
    for file, pair in zip(files, pairs, strict=True):
        if lacking := {*pairs[0]} ^ {*pair}:
            msg = f"{source}: only one of {files[0]} and {file} is in a folder {min(lacking)}=…"
            raise ValueError(msg)
    return {
        name: _typed(name, [pair[name] for pair in pairs], as_text=as_text) for name in pairs[0]
    }


def _typed(name: str, texts: Sequence[str], *, as_text: bool) -> pl.Series:
    """Read the names of folders as integers, dates, or otherwise text, as Polars does."""
    column = pl.Series(name, [None if text == _NO_VALUE else unquote(text) for text in texts])
    if as_text:
        return column
    numbers = column.cast(pl.Int64, strict=False)
    dates = column.str.to_date("%Y-%m-%d", strict=False)
    fit = (read for read in (numbers, dates) if read.null_count() == column.null_count())
    return next(fit, column)


def _is_remote_table(source: Input) -> bool:
    return bool(inputs.PATTERN.search(source.text)) or source.text.endswith("/")


def _scan_remote(source: Input, layout: _Layout) -> _File:
    """Scan an address; it has the format of its suffix, or otherwise is Parquet."""
    form = layout.form or _format_of_suffix(source.path) or "parquet"
    if form in ("trec", "json") or layout.fields is not None:
        msg = f"{source}: only Parquet, CSV, TSV, Arrow IPC and JSON Lines are read from an address"
        raise ValueError(msg)
    with _named_in_errors(str(source)):
        frame = _frame(source.text, form, folders=_is_remote_table(source))
        frame.collect_schema()
    return _File(str(source), form, frame)


def _frame(content: str | Path | bytes, form: str, *, folders: bool | None = None) -> pl.LazyFrame:
    """Scan a source of a format; the name of a local file is no pattern."""
    remote = isinstance(content, str)
    if form == "parquet":
        return pl.scan_parquet(content, glob=remote, hive_partitioning=folders or None)
    if form == "ipc":
        return pl.scan_ipc(content, glob=remote)
    if form == "json":
        return pl.read_json(_unpacked(content), infer_schema_length=None).lazy()
    if form == "jsonl":
        source = glob.escape(str(content)) if isinstance(content, Path) else content
        return pl.scan_ndjson(source, infer_schema_length=None)
    separator = _SEPARATORS[form] or ","
    return pl.scan_csv(content, separator=separator, infer_schema=False, glob=remote)


def _scan_file(file: Input, layout: _Layout) -> _File:
    name = str(file)
    with _named_in_errors(name):
        with _opened(file) as stream:
            lines = [] if _formats.binary_format(stream) else _formats.first_lines(stream)
            form = _format_of(file.path, stream, lines, layout)
            source = file.path if stream.path is not None else stream
            if form == "trec" or layout.fields is not None:
                return _scan_lines(name, form, source, lines, layout)
            content = source.read_all() if isinstance(source, Stream) else source
        if layout.kind == "truth" and form in ("json", "jsonl"):
            read = content if isinstance(content, bytes) else content.read_bytes()
            judgments = judgment_files.read_nested(name, read)
            if judgments is not None:
                roles = {role: layout.shared.get(role, role) for role in judgments.columns}
                return _File(name, "judgments", judgments.lazy().rename(roles), source=content)
        try:
            frame = _frame(content, form)
            frame.collect_schema()
        except pl.exceptions.PanicException as error:
            msg = f"{name}: {adapters.why_unreadable(error)}"
            raise ValueError(msg) from None
        except pl.exceptions.PolarsError:
            if form == "jsonl":
                _raise_at_broken_json(name, content)
            raise
    return _in_roles(_File(name, form, frame, source=content), layout)


def _scan_lines(
    name: str, form: str, source: Path | Stream, lines: Sequence[Line], layout: _Layout
) -> _File:
    """Scan lines of TREC, or fields without a header."""
    if form not in _SEPARATORS:
        msg = (
            f"{name}: --{layout.table}-fields names the columns of text without a header, "
            f"and this file is of format {form}"
        )
        raise ValueError(msg)
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
    _check_has(name, layout.table, more, has)
    change |= {column: layout.shared[role] for role, column in more.items()}
    return _File(name, "trec", frame.rename(change), tag=_tag_of(lines, layout))


def _tag_of(lines: Sequence[Line], layout: _Layout) -> str | None:
    """Return the name of a run of TREC: the last field of its first line."""
    words = lines[0].words if lines and layout.fields is None and layout.kind == "run" else []
    return words[5] if len(words) == 6 else None


def _in_roles(file: _File, layout: _Layout) -> _File:
    """Rename the columns that play roles in this file to their names in all files."""
    has = file.frame.collect_schema().names()
    _check_has(file.name, layout.table, layout.own, has)
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


def _check_has(file: str, table: str, roles: Mapping[str, str], has: Sequence[str]) -> None:
    for role, name in roles.items():
        if name not in has:
            names, word = ", ".join(map(repr, has)), role.partition(" ")[0]
            msg = f"{file}: no column {name!r} for --{table}-{word}; it has {names}"
            raise ValueError(msg)


def _format_of(path: Path, stream: Stream, lines: Sequence[Line], layout: _Layout) -> str:
    """Find the format of a file: the declared one, that of its content, or of its suffix."""
    form = layout.form or _formats.binary_format(stream) or _formats.json_format(lines)
    if form in (None, "csv", "tsv") and _formats.has_semicolons(lines, layout.kind):
        problem = "the separator is ';': write the file with commas or tabs"
        raise _at_line(stream.name, lines[0], problem)
    if form not in (None, "trec") or layout.fields is not None:
        return form or "trec"
    if layout.table in FILE_ROLES and _formats.is_of_other_kind(lines, layout.kind):
        other = "qrels" if layout.kind == "run" else "a run"
        problem = (
            f"a line of {other}, not of the {layout.table}: pass the run first, then the truth"
        )
        raise _at_line(stream.name, lines[0], problem)
    if form is not None and not (layout.kind == "run" and _formats.has_three_fields(lines)):
        return form
    return _format_of_text(path, stream, lines, layout)


def _format_of_text(path: Path, stream: Stream, lines: Sequence[Line], layout: _Layout) -> str:
    """Find the only format that fits the lines; otherwise, the suffix decides."""
    suffix = _format_of_suffix(path)
    fits = _formats.text_fits(lines, layout.kind, layout.names.values())
    if len(fits) > 1:
        fits = [fit for fit in fits if fit.form == suffix and fit.by_suffix] or fits
    if len(fits) == 1:
        return fits[0].form
    if fits:
        choices = " or ".join(f"{fit.meaning} ({layout.option(fit)})" for fit in fits)
        raise _at_line(stream.name, lines[0], f"it may be {choices}")
    if not stream.peek(1):
        msg = f"{stream.name}: it is empty"
        raise ValueError(msg)
    if suffix is not None and not (suffix == "trec" and layout.kind == "table"):
        return suffix
    prefix = f"{layout.table}-" if layout.table in FILE_ROLES else ""
    problem = f"its content shows no format; pass --{prefix}format {'|'.join(FORMATS)}"
    if lines:
        raise _at_line(stream.name, lines[0], problem)
    msg = f"{stream.name}: {problem}"
    raise ValueError(msg)


def _format_of_suffix(path: Path) -> str | None:
    unpacked = path.with_suffix("") if path.suffix.lower() in _formats.PACKINGS else path
    suffix = unpacked.suffix.lower()
    return next((form for form, suffixes in FORMATS.items() if suffix in suffixes), None)


def _at_line(name: str, line: Line, problem: str) -> ValueError:
    return ValueError(f"{name}, line {line.number}: {problem}: {line.text[:200]!r}")


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


def _with_numbers(
    file: _File, names: Sequence[str], *, without: Sequence[str], booleans: bool = False
) -> _File:
    """Parse columns of CSV as numbers, whichever row has the first fraction.

    A column whose values are all written as integers becomes integers, which are exact, and any
    other becomes floats; with ``booleans`` it may also contain true and false.
    """
    if not file.is_text:
        return file
    has = file.frame.collect_schema().names()
    present = [name for name in names if name in has and name not in without]
    readings = {
        name: _readings(name, booleans=booleans)
        for name in present
        if not pl.col(name).meta.has_multiple_outputs()  # a pattern: the checks raise for it
    }
    chosen: list[pl.Expr] = []
    for (name, of_column), fit in zip(readings.items(), _fits(file, readings), strict=True):
        if not any(fit):
            for part in file.parts:  # the error has the file and its line
                if part.read(pl.len()).item():
                    _with_numbers(part, [name], without=(), booleans=booleans)
            raise _not_a_number(file, name, of_column)
        chosen.append(next(itertools.compress(of_column, fit)))
    return file._replace(frame=file.frame.with_columns(chosen))


def _fits(file: _File, readings: Mapping[str, Sequence[pl.Expr]]) -> list[list[bool]]:
    """Return which readings of each column parse all of its values."""
    wanted = [pl.len().alias("rows")]
    for place, (name, of_column) in enumerate(readings.items()):
        fits = pl.concat_list(reading.count() == pl.col(name).count() for reading in of_column)
        wanted.append(fits.alias(str(place)))
    every = pl.sum_horizontal(pl.all().count()).alias("every")
    try:  # polars counts the fields of a line only if all columns are read
        rows, *fitting, _ = file.frame.select(*wanted, every).collect().row(0)
    except (OSError, pl.exceptions.PolarsError) as error:
        if "more fields than" in str(error):
            for part in file.parts or [file]:
                _raise_at_long_line(part)
        rows, *fitting = file.read(*wanted).row(0)
    if not rows:
        msg = f"{file.name}: it is empty"
        raise ValueError(msg)
    return fitting


def _readings(name: str, *, booleans: bool) -> list[pl.Expr]:
    """Cast a column of text to each type, the most exact first; null for values that do not fit."""
    text = pl.col(name).str.strip_chars(" \t")
    numbers = [text.cast(dtype, strict=False) for dtype in (pl.Int64, pl.Int128, pl.Float64)]
    if not booleans:
        return numbers
    words = {"true": True, "false": False}
    lower = text.str.to_lowercase()
    return [*numbers, lower.replace_strict(words, default=None, return_dtype=pl.Boolean)]


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


def broken_file(paths: Sequence[Path]) -> str | None:
    """Read each file alone, since Polars does not name the one that cannot be read."""
    for path in paths:
        form = _format_of_suffix(path)
        if form in ("parquet", "ipc"):
            try:
                _frame(path, form).collect()
            except (OSError, pl.exceptions.PolarsError) as error:
                text = one_line(error)
                return text if str(path) in text else f"{path}: {text}"
    return None


def _raise_at_long_line(file: _File) -> None:
    """Raise for the first line of CSV with more fields than the header, if one is found."""
    source = file.source
    if source is None:  # at an address
        return
    with contextlib.suppress(csv.Error), _lines_of(source) as lines:
        text = io.TextIOWrapper(lines, encoding="utf-8", errors="replace", newline="")
        rows = csv.reader(text, delimiter=_SEPARATORS[file.form] or ",")
        columns, line = len(next(rows)), rows.line_num + 1
        for row in rows:
            if len(row) > columns:
                msg = (
                    f"{file.name}, line {line}: it has {len(row)} fields and the header "
                    f"{columns}: quote a field that holds the separator: {','.join(row)[:200]!r}"
                )
                raise ValueError(msg)
            line = rows.line_num + 1


def _raise_at_broken_json(name: str, content: Path | bytes) -> None:
    """Raise for the first line of JSON Lines that is no JSON, if one is found."""
    with _lines_of(content) as lines:
        for number, line in enumerate(lines, start=1):
            if line.startswith(_formats.ZSTD):
                return
            try:
                json.loads(line) if line.strip() else None
            except ValueError:
                text = line.decode(errors="replace").strip()
                msg = f"{name}, line {number}: it is not JSON: {text[:200]!r}"
                raise ValueError(msg) from None


def _not_a_number(file: _File, name: str, readings: Sequence[pl.Expr]) -> ValueError:
    """Report the first value of a column that cannot be parsed, and the line of its row."""
    has_value, number = pl.col(name).is_not_null(), readings[2]
    breaks = pl.sum_horizontal(pl.all().str.count_matches("\n", literal=True).fill_null(0))
    header = [file.names.get(column, column) for column in file.frame.collect_schema().names()]
    before = 1 + sum(column.count("\n") for column in header)
    rows = file._replace(
        frame=file.frame.select(
            value=pl.col(name),
            line=pl.int_range(1, pl.len() + 1) + breaks.cum_sum() - breaks + before,
            mixed=has_value & number.is_null(),
            unknown=has_value & pl.all_horizontal(reading.is_null() for reading in readings),
        ).filter("mixed"),
    )
    first = rows.read(pl.all().sort_by("unknown", descending=True, maintain_order=True).first())
    value, line, _, unknown = first.row(0)
    if not unknown:
        problem = "is in a column that also has numbers"
    elif len(readings) > 3:
        problem = "is neither a number nor true or false"
    else:
        problem = "is not a number (leave the field of a missing one empty)"
    column = file.names.get(name, name)
    where = file.name if file.parts else f"{file.name}, line {line}"
    return ValueError(f"{where}, column {column!r}: {value[:200]!r} {problem}")


def _of_one_type(name: str, *files: _File) -> tuple[_File, ...]:
    """Convert an id to the same type in all files.

    CSV and TREC files do not declare whether 7 is a number. Ids are integers if another file
    declares integers, or if all files are CSV, and all ids are written as integers (007 is not).
    Otherwise they are text.
    """
    types = [file.frame.collect_schema().get(name) for file in files]
    has_id = [dtype is not None for dtype in types]
    in_text = [has and file.is_text for has, file in zip(has_id, files, strict=True)]
    number, text = pl.col(name).cast(pl.Int64, strict=False), pl.col(name).cast(pl.String)
    alike = number.cast(pl.String).eq_missing(pl.col(name)).all()
    declared = [dtype for dtype, is_text in zip(types, in_text, strict=True) if not is_text]
    if all(dtype is None or dtype.is_integer() for dtype in declared) and all(
        file.read(alike).item() for file in itertools.compress(files, in_text)
    ):
        change, changed = number, in_text
    else:
        change, changed = text, has_id if pl.String in types else [False] * len(files)
    return tuple(
        file._replace(frame=file.frame.with_columns(change)) if is_changed else file
        for file, is_changed in zip(files, changed, strict=True)
    )


def one_line(error: Exception) -> str:
    return printable((str(error).strip().partition("\n")[0] or type(error).__name__)[:500])


def printable(text: str) -> str:
    return "".join(char if char.isprintable() else "?" for char in text)
