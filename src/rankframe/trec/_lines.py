"""Lines of text files as rows: TREC runs and qrels, and fields with or without a header.

Files are read piece by piece, and errors name the file and the line.
"""

from __future__ import annotations

import contextlib
import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple, TypeAlias, cast

import polars as pl
from polars.io.plugins import register_io_source

from rankframe import _sizes
from rankframe._request import keywords
from rankframe._request.keywords import RunColumns, TruthColumns
from rankframe._tables import adapters
from rankframe.errors import RankingDataError
from rankframe.trec import _formats
from rankframe.trec._formats import FileRole, Header, Line, Stream

Target: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = Target | IO[bytes]

# White space is what C's isspace accepts, as in trec_eval: a no-break space is part of an id.
_GAP = r"[ \t\n\r\f\v]"
#: Patterns of an id in TREC files.
WORD, USER = r"[^ \t\n\r\f\v]+", r"[^ \t\n\r\f\v#\x{feff}][^ \t\n\r\f\v]*"
_SKIPPED = rf"^{_GAP}*(?:#.*)?$"
_TAG = rf"(?:{_GAP}.*)?"

#: Reserved names of columns: no field has them.
_NUMBER, _LINE, _FIELDS = "__rankframe_number", "__rankframe_line", "__rankframe_fields"
_TYPES: dict[str, pl.DataType] = {
    "rank": pl.Int64(),
    "score": pl.Float64(),
    "relevance": pl.Int64(),
}

#: Polars 1 turns any error of a source into a ComputeError.
_SOURCES_MAY_RAISE = not pl.__version__.startswith("1.")

#: Returns the batches of a scan for columns, a filter, a number of rows and a batch size.
_Batches: TypeAlias = Callable[
    [list[str] | None, pl.Expr | None, int | None, int | None], Iterator[pl.DataFrame]
]
#: Text in memory, or a zstd file in memory or on disk.
_Lines: TypeAlias = bytes | io.BytesIO | Path


class Form(NamedTuple):
    """A kind of line: its description, its pattern, and the columns of its fields by place."""

    description: str
    pattern: str
    fields: tuple[str, ...]  # one that is not read is empty
    schema: dict[str, pl.DataType]
    header: int = 0  # the number of the line that names the columns
    separator: str | None = None  # of fields that may be quoted as in CSV; None means white space
    has_more: bool = False  # whether other fields may follow

    @property
    def captures(self) -> list[str]:
        """The columns captured by the pattern."""
        return [*filter(None, self.fields)]


def _form(description: str, *fields: str, rest: str = f"{_GAP}*") -> Form:
    """Make the form of a TREC file from the roles of its fields; one without a role is empty."""
    # a pattern that can match in only one way needs no backtracking: twice as fast
    words = [_field(None, role, is_first=role == "user", is_kept=bool(role)) for role in fields]
    order = ("user", "item", "subtopic", "score", "relevance")
    schema = {name: _type(name) for name in order if name in fields}
    pattern = _pattern_of_words(words, rest)
    return Form(description, pattern, fields, schema, has_more=rest == _TAG)


def _pattern_of_words(words: Sequence[str], rest: str) -> str:
    return rf"^{_GAP}*{f'{_GAP}+'.join(words)}{rest}$"


def _type(role: str | None) -> pl.DataType:
    return _TYPES.get(role or "", pl.String())


def scan_text(
    source: Source | Stream,
    kind: FileRole,
    *,
    fields: Sequence[str] | None = None,
    separator: str | None = "",
    subtopics: bool = False,
    columns: Mapping[str, str],
) -> pl.LazyFrame:
    """
    Scan the lines of a run or a truth.

    ``fields`` are the names of the fields in a file without a header, and ``columns`` those that
    play the roles. ``separator`` is the text between fields: None means white space; if it is
    empty, it is detected from the first line.
    """
    keywords.check_columns(columns)
    needed = [columns.get(role, role) for role in dict.fromkeys(("user", "item", *columns))]
    if twice := [name for name in needed if needed.count(name) > 1]:
        msg = f"two roles name the same column, {twice[0]!r}"
        raise ValueError(msg)
    if fields is not None:
        _check_fields(fields, kind, columns)

    def form_of(stream: Stream) -> Form:
        with _errors_named(stream.name):
            lines = _formats.first_lines(stream)
        if fields is not None:
            divided_by = _separator(stream.name, lines, fields) if separator == "" else separator
            return _form_of_header(Header(0, [*fields], divided_by), kind, columns)
        form = _form_by_header(stream.name, lines, kind, columns)
        return form or _form_without_header(stream.name, lines, kind, subtopics=subtopics)

    return _scan(source, form_of)


# ------------------------------------------------------------------ the form of a file


def _form_without_header(
    name: str, lines: Sequence[Line], kind: FileRole, *, subtopics: bool
) -> Form:
    if kind == "run" and _formats.has_three_fields(lines):
        problem = (
            "its third field may be the rank or the score: pass fields=['user', 'item', 'rank'] "
            f"or fields=['user', 'item', 'score']: {lines[0].text[:200]!r}"
        )
        raise _bad_line(name, lines[0].number, problem)
    if kind == "run":
        return _RUN
    if subtopics:
        return _SUBTOPICS
    return _PAIRS if _formats.has_graded_pairs(lines) else _QRELS


def _form_by_header(
    name: str, lines: Sequence[Line], kind: FileRole, columns: Mapping[str, str]
) -> Form | None:
    """Read the first line as a header if it is one, as it must be if ``columns`` are named."""
    if not lines or (not columns and _formats.is_trec(lines[0].words, kind)):
        return None
    for names in ({}, _formats.BEIR) if kind == "truth" else ({},):
        roles = {**names, **columns}
        header = _formats.header_of(lines[0], [roles.get(role, role) for role in ("user", "item")])
        if header is not None and not _missing(header.names, kind, roles):
            return _form_of_header(header, kind, roles)
    if not columns:
        return None
    problem = f"no header with {_missing([], kind, columns)}: {lines[0].text[:200]!r}"
    raise _bad_line(name, lines[0].number, problem)


def _missing(names: Sequence[str], kind: FileRole, columns: Mapping[str, str]) -> str:
    """List the columns that a file needs and lacks."""
    needed = [columns.get(role, role) for role in dict.fromkeys(("user", "item", *columns))]
    missing = [repr(name) for name in needed if name not in names]
    if kind == "run" and not {"rank", "score"} & {*names, *columns}:
        missing.append("'rank' or 'score'")
    return ", ".join(missing)


def _check_fields(fields: object, kind: FileRole, columns: Mapping[str, str]) -> None:
    names = cast("Sequence[object]", fields if isinstance(fields, list | tuple) else [None])
    texts = [name for name in names if isinstance(name, str)]
    if len(texts) < len(names):
        msg = f"fields must be a list of the names of all fields, not {fields!r}"
        raise TypeError(msg)
    if missing := _missing(texts, kind, columns):
        msg = f"fields must name the fields of a line, including {missing}, not {fields!r}"
        raise ValueError(msg)
    if twice := [name for name in _roles(kind, columns) if texts.count(name) > 1]:
        msg = f"fields has a duplicate name, {twice[0]!r}"
        raise ValueError(msg)


def _separator(name: str, lines: Sequence[Line], fields: Sequence[str]) -> str | None:
    """Find the separator that divides the first line into the named fields."""
    for line in lines[:1]:
        for separator in ("\t", ",", None):
            if len(_formats.split(line.text, separator)) == len(fields):
                return separator
        problem = f"it does not have the fields {', '.join(fields)}: {line.text[:200]!r}"
        raise _bad_line(name, line.number, problem)
    return None


def _roles(kind: FileRole, columns: Mapping[str, str]) -> dict[str, str]:
    """Return the role of each column that may play one."""
    own = RunColumns if kind == "run" else TruthColumns
    unnamed = {role: role for role in own.__annotations__ if role not in columns}
    return unnamed | {name: role for role, name in columns.items()}


def _form_of_header(header: Header, kind: FileRole, columns: Mapping[str, str]) -> Form:
    """Make the pattern of lines whose fields have names; those without a role are text."""
    roles = _roles(kind, columns)
    names, played = header.names, {role for name, role in roles.items() if name in header.names}
    fields: list[str] = []
    parts: list[str] = []
    for place, name in enumerate(names):
        role = roles.get(name)
        is_kept = role or (name and names.count(name) == 1 and name not in played)
        parts.append(_field(header.separator, role, is_first=place == 0, is_kept=bool(is_kept)))
        fields.append((role or name) if is_kept else "")
    notes = {"rank": " (an integer)", "relevance": " (an integer)"}
    words = [name + notes.get(roles.get(name, ""), "") for name in names]
    if header.separator is None:
        pattern = _pattern_of_words(parts, f"{_GAP}*")
    else:
        pattern = rf"^{header.separator.join(parts)}\r?$"
    of_tabs = ", separated by tabs" if header.separator == "\t" else ""
    return Form(
        ("," if header.separator == "," else " ").join(words) + of_tabs,
        pattern,
        tuple(fields),
        {name: _type(name if name in played else None) for name in filter(None, fields)},
        header.number,
        header.separator,
    )


def _field(separator: str | None, role: str | None, *, is_first: bool, is_kept: bool) -> str:
    """Make the pattern of a field."""
    if separator is None:
        field = USER if is_first else WORD
    else:
        field = rf'"(?:[^"]|"")*"|[^"{separator}\r][^{separator}\r]*'
        field += "" if role else "|"
    return f"({field})" if is_kept else f"(?:{field})"


_RUN = _form("user Q0 item rank score tag", "user", "", "item", "", "score", rest=_TAG)
_QRELS = _form("user 0 item relevance (an integer)", "user", "", "item", "relevance")
_SUBTOPICS = _form(
    "user subtopic item relevance (an integer)", "user", "subtopic", "item", "relevance"
)
_PAIRS = _form("user item relevance (an integer)", "user", "item", "relevance")


# ------------------------------------------------------------------ reading


def can_be_scanned(path: Path) -> bool:
    """Return whether a file can be read several times; raise if it does not exist."""
    if path.as_posix().startswith(("/dev/stdin", "/dev/fd/")):
        return False  # the descriptor may refer to another file when a plan runs
    return stat.S_ISREG(path.stat().st_mode)


def _scan(source: Source | Stream, form_of: Callable[[Stream], Form]) -> pl.LazyFrame:
    if isinstance(source, Stream):
        return _read_at_once(source, form_of)
    if not isinstance(source, str | os.PathLike):
        file = _binary(source)
        return _read_at_once(Stream(file, _name(file)), form_of)
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not can_be_scanned(path):
        with path.open("rb", buffering=0) as file:
            return _read_at_once(Stream(file, str(path)), form_of)
    with path.open("rb", buffering=0) as file:  # raise at the call if it cannot be opened
        form = form_of(Stream(file, path.name, path))

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = most
        with path.open("rb", buffering=0) as file:
            for rows in _rows(Stream(file, path.name, path), form):
                wanted = rows.slice(0, left)
                left = None if left is None else left - len(wanted)
                wanted = wanted if predicate is None else wanted.filter(predicate)
                yield wanted if columns is None else wanted.select(columns)
                if left == 0:
                    return

    if _SOURCES_MAY_RAISE:
        return register_io_source(batches, schema=form.schema, is_pure=True)
    return _raised_in_the_next_step(batches, form.schema)


def _raised_in_the_next_step(batches: _Batches, schema: Mapping[str, pl.DataType]) -> pl.LazyFrame:
    """Scan with a column that is null except in a row that marks an error; then raise the error."""
    column, errors = "__rankframe_error", list[Exception]()
    marked = {**schema, column: pl.Int64()}

    def rows_and_error(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, size: int | None
    ) -> Iterator[pl.DataFrame]:
        wanted = [*schema] if columns is None else [name for name in columns if name in schema]
        try:
            for rows in batches(wanted, predicate, most, size):
                yield rows.with_columns(pl.lit(None, pl.Int64).alias(column))
        except Exception as error:  # noqa: BLE001  (raised below)
            errors.append(error)
            yield pl.DataFrame([{column: len(errors) - 1}], schema=marked).select(*wanted, column)

    def raised(rows: pl.DataFrame) -> pl.DataFrame:
        for number in rows[column].drop_nulls():
            raise errors[number]
        return rows.drop(column)

    scanned = register_io_source(rows_and_error, schema=marked, is_pure=True)
    return scanned.map_batches(
        raised, schema=dict(schema), streamable=True, projection_pushdown=False
    )


def _read_at_once(stream: Stream, form_of: Callable[[Stream], Form]) -> pl.LazyFrame:
    form = form_of(stream)
    return pl.concat([pl.DataFrame(schema=form.schema), *_rows(stream, form)]).lazy()


def _binary(source: object) -> IO[bytes]:
    """Check that a source is a file object that returns bytes."""
    wanted = "source must be a path or a file object open in binary mode"
    if not callable(getattr(source, "read", None)):
        msg = f"{wanted}, not {adapters.kind(source)}"
        raise TypeError(msg)
    file = cast("IO[bytes]", source)
    try:
        content = cast("object", file.read(0))
    except io.UnsupportedOperation:
        msg = f"{wanted}, not one open for writing only"
        raise TypeError(msg) from None
    if not isinstance(content, bytes):
        msg = f"{wanted}, not one in text mode: open it with 'rb', or pass its .buffer"
        raise TypeError(msg)
    return file


def _name(file: object) -> str:
    name = getattr(file, "name", None)  # a number if the file was opened by its descriptor
    return Path(name).name if isinstance(name, str) and name else f"<{type(file).__name__}>"


def _rows(stream: Stream, form: Form) -> Iterator[pl.DataFrame]:
    """Read a file piece by piece; errors name the file and the line."""
    with _errors_named(stream.name):
        for piece, first in _pieces(stream):
            try:
                rows = _plain(form, piece, first)
                yield from _parsed(stream.name, form, piece, first) if rows is None else [rows]
            except pl.exceptions.ComputeError:
                _raise_if_no_text(stream.name, piece, first)
                raise


@contextlib.contextmanager
def _errors_named(name: str) -> Generator[None]:
    """Name the file in errors that are not the operating system's."""
    try:
        yield
    except (EOFError, OSError, zlib.error, pl.exceptions.PolarsError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the operating system, such as a missing file or a broken disk
        msg = f"{name}: it cannot be read to the end: {error}"
        raise RankingDataError(msg) from None


def _pieces(stream: Stream) -> Iterator[tuple[_Lines, int]]:
    """
    Cut a file at line ends; yield each piece with the number of its first line.

    Polars cannot stop within an endless line, so it parses pieces. Each piece begins with the
    preceding line end, so Polars cannot mistake text for a compressed file.
    """
    start = stream.peek(len(_formats.ZSTD))
    if start == _formats.ZSTD:  # the standard library decompresses it only since Python 3.14
        yield stream.path or io.BytesIO(stream.read_all()), 1
        return
    compressed = start.startswith(_formats.GZIP)
    file = gzip.GzipFile(fileobj=cast("IO[bytes]", stream)) if compressed else stream
    rest, number = b"\n", 0
    while more := file.read(_sizes.BYTES_READ):
        piece = rest + more
        end = piece.rfind(b"\n")
        if end == 0 and len(piece) > _sizes.BYTES_READ:
            raise _bad_line(
                stream.name, number + 1, f"it is longer than {_sizes.BYTES_READ >> 20} MB"
            )
        yield piece[:end], number
        number += piece.count(b"\n", 0, end)
        rest = piece[end:]
    yield rest, number


def _plain(form: Form, piece: _Lines, first: int) -> pl.DataFrame | None:
    """Read lines of one separator, all of as many fields and none empty; None of other lines.

    1 M lines of a run take a third of the time of the pattern.
    """
    separator = form.separator or " "
    odd = b'#"\r\f\v\t'.replace(separator.encode(), b"")
    if not isinstance(piece, bytes) or first < form.header or not piece.isascii():
        return None
    if any(byte in piece for byte in odd):
        return None
    count = piece[: piece.find(b"\n", 1)].count(separator.encode()) + 1
    if count < len(form.fields) or (count > len(form.fields) and not form.has_more):
        return None
    names = {f"column_{place}": name for place, name in enumerate(form.fields, 1) if name}
    texts = {f"column_{place}": pl.String() for place in range(1, count + 1)}
    try:
        rows = pl.read_csv(
            piece,
            separator=separator,
            has_header=False,
            skip_rows=1,  # the line end before the first line
            quote_char=None,
            schema=texts,
        )
    except pl.exceptions.PolarsError:
        return None
    if piece.count(separator.encode()) > (count - 1) * rows.height:
        return None  # Polars drops an empty field too many from the last line
    types = {old: form.schema[name] for old, name in names.items()}
    typed = rows.with_columns(
        pl.col(name).cast(dtype, strict=False) for name, dtype in types.items()
    )
    is_odd = typed.null_count().sum_horizontal().item()
    return None if is_odd else typed.rename(names).select(*form.schema)


def _parsed(name: str, form: Form, piece: _Lines, first: int) -> Iterator[pl.DataFrame]:
    numbers = [column for column, dtype in form.schema.items() if dtype.is_numeric()]
    lines = pl.scan_lines(
        piece, name=_LINE, row_index_name=_NUMBER, row_index_offset=first, glob=False
    )
    if form.header:
        lines = lines.filter(pl.col(_NUMBER) > form.header)
    lines = lines.with_columns(pl.col(_LINE).str.strip_prefix("\ufeff"))
    fields = pl.col(_LINE).str.extract_groups(form.pattern).struct.rename_fields(form.captures)
    rows = lines.with_columns(fields.alias(_FIELDS)).unnest(_FIELDS)
    if form.separator is not None:
        rows = rows.with_columns(map(_unquoted, form.captures))
    rows = rows.with_columns(pl.col(name).cast(form.schema[name], strict=False) for name in numbers)
    bad = pl.any_horizontal(pl.col(name).is_null() for name in numbers or ["user"])
    rows = rows.filter(~bad | ~pl.col(_LINE).str.contains(_SKIPPED))
    for batch in rows.collect_batches(engine="streaming"):
        for number, line in batch.filter(bad).select(_NUMBER, _LINE).iter_rows():
            problem = f"it is not of the form '{form.description}': {line[:200]!r}"
            raise _bad_line(name, number, problem)
        yield batch.select(*form.schema)


def _unquoted(name: str) -> pl.Expr:
    text = pl.col(name)
    inside = text.str.slice(1, text.str.len_chars() - 2).str.replace_all('""', '"', literal=True)
    return pl.when(text.str.starts_with('"')).then(inside).otherwise(text).alias(name)


def _raise_if_no_text(name: str, piece: _Lines, first: int) -> None:
    if isinstance(piece, bytes):
        try:
            piece.decode()
        except UnicodeDecodeError as error:
            number = first + piece.count(b"\n", 0, error.start)
            raise _bad_line(name, number, f"it is not UTF-8 text: {error.reason}") from None


def _bad_line(name: str, number: int, problem: str) -> RankingDataError:
    return RankingDataError(f"{name}, line {number}: {problem}")
