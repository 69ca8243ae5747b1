"""TREC text files: runs (``user Q0 item rank score tag``) and qrels (``user 0 item relevance``).

Fields are separated by any spaces and tabs. The rank column of a run is ignored, as in trec_eval,
and the score is used. Blank lines and lines that begin with ``#`` are skipped. Files may be
compressed with gzip or zstd, whatever their name, and are read piece by piece. Pipes and binary
file objects are read once, to their end.
"""

from __future__ import annotations

import errno
import gzip
import io
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias, Unpack, cast

import polars as pl
from polars.io.plugins import register_io_source

from rankframe._checks import Table, as_rank, format_row, raise_first_broken
from rankframe._checks import read_run as run_table
from rankframe._checks import read_truth as truth_table
from rankframe._frames import Frame, kind, to_lazy
from rankframe._options import Columns, check_flag
from rankframe._table import Ties, with_rank
from rankframe.errors import RankingDataError

Target: TypeAlias = str | os.PathLike[str]
Source: TypeAlias = Target | IO[bytes]

# Whitespace is what C's isspace accepts, as in trec_eval: a no-break space is part of an id.
_GAP, _WORD = r"[ \t\n\r\f\v]", r"[^ \t\n\r\f\v]+"
_USER = r"[^ \t\n\r\f\v#\x{feff}][^ \t\n\r\f\v]*"
_SKIPPED = rf"^{_GAP}*(?:#.*)?$"

_GZIP, _ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
_PIECE = 1 << 22
#: How a file is compressed, by the end of its name.
PACKINGS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


#: Polars 1 makes a ComputeError of whatever a source raises.
_SOURCES_MAY_RAISE = not pl.__version__.startswith("1.")

#: Gives the batches of a scan: the columns, the filter, the number of rows and of rows at once.
_Batches: TypeAlias = Callable[
    [list[str] | None, pl.Expr | None, int | None, int | None], Iterator[pl.DataFrame]
]
#: Text in memory, or a zstd file in memory or on disk.
_Lines: TypeAlias = bytes | io.BytesIO | Path


class _Form(NamedTuple):
    """A kind of line: its description, its pattern, and the name and type of its value."""

    description: str
    pattern: str
    value: str
    dtype: pl.DataType
    texts: tuple[str, ...] = ("user", "item")

    @property
    def schema(self) -> dict[str, pl.DataType]:
        return {**dict.fromkeys(self.texts, pl.String()), self.value: self.dtype}


# a pattern that can match in only one way needs no backtracking: twice as fast
_HEAD = rf"^{_GAP}*(?<user>{_USER}){_GAP}+{_WORD}{_GAP}+(?<item>{_WORD}){_GAP}+"
_RUN = _Form(
    "user Q0 item rank score tag",
    rf"{_HEAD}{_WORD}{_GAP}+(?<score>{_WORD})(?:{_GAP}.*)?$",
    "score",
    pl.Float64(),
)
_QRELS = _Form(
    "user 0 item relevance (an integer)",
    rf"{_HEAD}(?<relevance>{_WORD}){_GAP}*$",
    "relevance",
    pl.Int64(),
)
_SUBTOPICS = _Form(
    "user subtopic item relevance (an integer)",
    rf"^{_GAP}*(?<user>{_USER}){_GAP}+(?<subtopic>{_WORD}){_GAP}+(?<item>{_WORD}){_GAP}+"
    rf"(?<relevance>{_WORD}){_GAP}*$",
    "relevance",
    pl.Int64(),
    ("user", "item", "subtopic"),
)


def scan_run(source: Source) -> pl.LazyFrame:
    """
    Scan a TREC run file, plain or compressed with gzip or zstd.

    Parameters
    ----------
    source
        Path of a file or pipe (``/dev/stdin``, a named pipe), or a file object open in binary
        mode (``sys.stdin.buffer``), which stays open.

    Returns
    -------
    LazyFrame
        user (String), item (String), score (Float64), in the order of the lines. A regular file
        is read when the plan runs. A pipe, a device or a file object can be read only once, so the
        call reads it to its end, and the LazyFrame holds its rows in memory.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    IsADirectoryError
        If the path is a directory.
    TypeError
        If the source is neither a path nor a file object open for reading in binary mode.
    RankingDataError
        At the first line that is not a line of a run, with its number, or if the file cannot be
        decompressed: when the plan runs, or at the call if the call reads the source.

    Notes
    -----
    Reads ``user Q0 item rank score tag``, separated by any spaces and tabs. The tag may be missing,
    and words after it are ignored, as in trec_eval. A line of a plain or gzip file must be shorter
    than 4 MB. Polars decompresses zstd files, and holds their longest line in memory.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.run").write_text("q1 Q0 d7 1 0.5 bm25")
    ...     trec.scan_run(Path(folder, "a.run")).collect()
    shape: (1, 3)
    ┌──────┬──────┬───────┐
    │ user ┆ item ┆ score │
    │ ---  ┆ ---  ┆ ---   │
    │ str  ┆ str  ┆ f64   │
    ╞══════╪══════╪═══════╡
    │ q1   ┆ d7   ┆ 0.5   │
    └──────┴──────┴───────┘
    """
    return _scan(source, _RUN)


def scan_qrels(source: Source, *, subtopics: bool = False) -> pl.LazyFrame:
    """
    Scan a TREC qrels file, plain or compressed with gzip or zstd.

    Parameters
    ----------
    source
        Path of a file or pipe, or a file object open in binary mode; see :func:`scan_run`.
    subtopics
        Read the second word of a line as the ``subtopic`` of the item, as in diversity tasks.

    Returns
    -------
    LazyFrame
        user (String), item (String), with ``subtopics`` subtopic (String), and relevance (Int64),
        in the order of the lines. The call reads anything but a regular file, as in
        :func:`scan_run`.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    IsADirectoryError
        If the path is a directory.
    TypeError
        If the source is neither a path nor a file object open for reading in binary mode.
    RankingDataError
        At the first line that is not a line of qrels, with its number, or if the file cannot be
        decompressed: when the plan runs, or at the call if the call reads the source.

    Notes
    -----
    Reads ``user 0 item relevance``, separated by any spaces and tabs. The second word is a subtopic
    only in the qrels of diversity tasks.
    """
    check_flag("subtopics", subtopics)
    return _scan(source, _SUBTOPICS if subtopics else _QRELS)


def read_run(source: Source) -> pl.DataFrame:
    """Read a TREC run file, pipe or binary file object; see :func:`scan_run`."""
    return scan_run(source).collect()


def read_qrels(source: Source, *, subtopics: bool = False) -> pl.DataFrame:
    """Read a TREC qrels file, pipe or binary file object; see :func:`scan_qrels`."""
    return scan_qrels(source, subtopics=subtopics).collect()


def write_run(
    run: Frame, path: Target, *, tag: str = "rankframe", **columns: Unpack[Columns]
) -> None:
    """
    Write a TREC run file.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and score or rank. A row without a score (null
        or NaN), or in a run with ranks without a rank, was not retrieved and is left out.
    path
        Path of the file. The ending ``.gz`` compresses it with gzip, ``.zst`` or ``.zstd`` with
        zstd.
    tag
        Name of the run, one word.
    **columns
        ``user=``, ``item=``, ``rank=``, ``score=``: the columns that play these roles, if they
        have other names.

    Raises
    ------
    RankingDataError
        If the run breaks a rule (see ``check``), an id is not a word that TREC files can hold,
        different scores are equal as 64-bit floats, or the ranks are not those that a reader of the
        file makes from the scores.
    ValueError
        If the tag is not one word.

    Notes
    -----
    Rows keep their order. Scores are written as 64-bit floats with all their digits, so
    :func:`read_run` returns the same numbers. Ids are written as text: integer ids with equal
    scores, which are ordered by value in memory, are ordered as text in the file. A run with ranks
    and no scores gets −rank as its score.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "score": [0.1, 0.25]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trec.write_run(run, Path(folder, "a.run"), tag="bm25")
    ...     print(Path(folder, "a.run").read_text(), end="")
    1 Q0 7 2 0.1 bm25
    1 Q0 8 1 0.25 bm25
    """
    if not isinstance(cast("object", tag), str) or tag.split() != [tag]:
        msg = f"tag must be one word, not {tag!r}"
        raise ValueError(msg)
    table = run_table(to_lazy(run, "run").collect(), (), columns)
    raise_first_broken([table])
    given = pl.lit(None) if table.rank is None else as_rank(table.rank)
    scored = table.score or "score"
    score = pl.col(scored) if scored in table.schema else -given
    lists = table.frame.select(*_words(table), score=score, given=given)
    if table.rank is not None:
        lists = lists.filter(pl.col("given").is_not_null())
    ties: Ties = "expected" if table.tied else "item"
    ranked = with_rank(lists, ties=ties).collect()
    _check_order(ranked, table)
    if not table.schema.get(scored, pl.Float64()).is_float():
        as_read = lists.with_columns(pl.col("score").cast(pl.Float64))
        _check_digits(ranked, with_rank(as_read, ties=ties).collect(), scored)
    lines = ranked.filter(pl.col("rank").is_not_null()).select(
        "user",
        pl.lit("Q0").alias("Q0"),
        "item",
        "rank",
        pl.col("score").cast(pl.Float64),
        pl.lit(tag).alias("tag"),
    )
    _write(lines, path)


def write_qrels(truth: Frame, path: Target, **columns: Unpack[Columns]) -> None:
    """
    Write a TREC qrels file.

    Parameters
    ----------
    truth
        One row per judged item: user, item, relevance (integers or booleans; without the column it
        is 1 in every row). With a column ``subtopic``, one row per subtopic of an item; the
        subtopic is written where ``read_qrels(subtopics=True)`` reads it.
    path
        Path of the file. The ending ``.gz`` compresses it with gzip, ``.zst`` or ``.zstd`` with
        zstd.
    **columns
        ``user=``, ``item=``, ``relevance=``, ``subtopic=``: the columns that play these roles, if
        they have other names.

    Raises
    ------
    RankingDataError
        If the truth breaks a rule (see ``check``), an id is not a word that TREC files can hold, or
        a relevance is not an integer.

    Notes
    -----
    Rows keep their order; :func:`read_qrels` returns them, with ids as text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [7, 8], "relevance": [2, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trec.write_qrels(truth, Path(folder, "a.qrels"))
    ...     print(Path(folder, "a.qrels").read_text(), end="")
    1 0 7 2
    1 0 8 0
    """
    table = truth_table(to_lazy(truth, "truth").collect(), (), columns)
    raise_first_broken([table])
    given = pl.lit(1) if table.relevance is None else pl.col(table.relevance)
    subtopic = pl.lit("0") if table.subtopic is None else pl.col(table.subtopic).cast(pl.String)
    judged = table.frame.select(
        *_words(table),
        subtopic=subtopic,
        given=given,
        relevance=given.cast(pl.Int64, strict=False),
    ).collect()
    wrong = judged.filter(pl.col("relevance").ne_missing(pl.col("given").cast(pl.Float64)))
    if not wrong.is_empty():
        row = format_row(wrong.select("user", "item", relevance="given").head(1))
        msg = (
            f"truth, column {table.relevance!r}: a relevance that is not a 64-bit integer: round "
            f"or rescale it, as TREC files hold integers. Offending row: {row}"
        )
        raise RankingDataError(msg)
    _write(judged.select("user", "subtopic", "item", "relevance"), path)


# ------------------------------------------------------------------ reading


def can_be_scanned(path: Path) -> bool:
    """Whether a file can be read several times; raise if it does not exist."""
    if path.as_posix().startswith(("/dev/stdin", "/dev/fd/")):
        return False  # the descriptor may refer to another file when a plan runs
    return stat.S_ISREG(path.stat().st_mode)


def _scan(source: Source, form: _Form) -> pl.LazyFrame:
    if not isinstance(source, str | os.PathLike):
        file = _binary(source)
        return _read_at_once(file, _name(file), form)
    path = Path(source)
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if not can_be_scanned(path):
        with path.open("rb", buffering=0) as file:
            return _read_at_once(file, str(path), form)
    with path.open("rb"):  # raise at the call if it cannot be opened
        pass

    def batches(
        columns: list[str] | None, predicate: pl.Expr | None, most: int | None, _: int | None
    ) -> Iterator[pl.DataFrame]:
        left = most
        with path.open("rb", buffering=0) as file:
            for rows in _rows(_Stream(file, path.name, path), form):
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
    """Scan with a column that is null but for a row that stands for an error, which is raised."""
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


def _read_at_once(file: IO[bytes], name: str, form: _Form) -> pl.LazyFrame:
    empty = pl.DataFrame(schema=form.schema)
    return pl.concat([empty, *_rows(_Stream(file, name), form)]).lazy()


def _binary(source: object) -> IO[bytes]:
    """Check that a source is a file object to read bytes from."""
    wanted = "source must be a path or a file object open in binary mode"
    if not callable(getattr(source, "read", None)):
        msg = f"{wanted}, not {kind(source)}"
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


class _Stream:
    """A reader of an open file that can look at its next bytes without opening it again.

    A pipe returns what its writer has written so far. So ``read`` repeats until it has the size
    that it is asked for: otherwise a compressed file is missed, or pieces are small.
    """

    def __init__(self, file: IO[bytes], name: str, path: Path | None = None) -> None:
        self.name = name
        self.path = path  # of a regular file
        self._file = file
        self._held = b""
        self._ended = False

    def peek(self, size: int) -> bytes:
        """Return the next bytes; ``read`` returns them again."""
        start = self.read(size)
        self._held = start + self._held
        return start

    def read(self, size: int) -> bytes:
        """Read ``size`` bytes; fewer only at the end of the file."""
        parts, left = [self._held], size - len(self._held)
        while left > 0 and not self._ended:
            part = cast("bytes | None", self._file.read(left))
            if part is None:
                msg = "it is in non-blocking mode and has nothing to read yet"
                raise BlockingIOError(msg)
            parts.append(part)
            left -= len(part)
            self._ended = not part  # bytes after an end are from another writer
        received = b"".join(parts)
        self._held = received[size:]
        return received[:size]


def _rows(stream: _Stream, form: _Form) -> Iterator[pl.DataFrame]:
    """Read a file piece by piece; errors name the file and the line."""
    try:
        for piece, first in _pieces(stream):
            try:
                yield from _parsed(stream.name, form, piece, first)
            except pl.exceptions.ComputeError:
                _raise_if_no_text(stream.name, piece, first)
                raise
    except (EOFError, OSError, zlib.error, pl.exceptions.PolarsError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of the system: the file is gone, or a disk is broken
        msg = f"{stream.name}: it cannot be read to its end: {error}"
        raise RankingDataError(msg) from None


def _pieces(stream: _Stream) -> Iterator[tuple[_Lines, int]]:
    """
    Cut a file at line ends; yield each piece with the number of its first line.

    Polars cannot stop within an endless line, so it reads pieces. Each piece begins with the
    preceding line end, so polars cannot mistake text for a compressed file.
    """
    start = stream.peek(len(_ZSTD))
    if start == _ZSTD:  # the standard library decompresses it only from Python 3.14 on
        yield stream.path or io.BytesIO(b"".join(iter(lambda: stream.read(_PIECE), b""))), 1
        return
    compressed = start.startswith(_GZIP)
    file = gzip.GzipFile(fileobj=cast("IO[bytes]", stream)) if compressed else stream
    rest, number = b"\n", 0
    while more := file.read(_PIECE):
        piece = rest + more
        end = piece.rfind(b"\n")
        if end == 0 and len(piece) > _PIECE:
            raise _bad_line(stream.name, number + 1, f"it is longer than {_PIECE >> 20} MB")
        yield piece[:end], number
        number += piece.count(b"\n", 0, end)
        rest = piece[end:]
    yield rest, number


def _parsed(name: str, form: _Form, piece: _Lines, first: int) -> Iterator[pl.DataFrame]:
    lines = pl.scan_lines(piece, row_index_name="number", row_index_offset=first, glob=False)
    lines = lines.with_columns(pl.col("line").str.strip_prefix("\ufeff"))
    fields = pl.col("line").str.extract_groups(form.pattern).alias("fields")
    value = pl.col(form.value).cast(form.dtype, strict=False)
    rows = lines.with_columns(fields).unnest("fields").with_columns(value)
    bad = pl.col(form.value).is_null()
    rows = rows.filter(~bad | ~pl.col("line").str.contains(_SKIPPED))
    for batch in rows.collect_batches(engine="streaming"):
        for number, line in batch.filter(bad).select("number", "line").iter_rows():
            problem = f"it is not of the form '{form.description}': {line[:200]!r}"
            raise _bad_line(name, number, problem)
        yield batch.select(*form.schema)


def _raise_if_no_text(name: str, piece: _Lines, first: int) -> None:
    if isinstance(piece, bytes):
        try:
            piece.decode()
        except UnicodeDecodeError as error:
            number = first + piece.count(b"\n", 0, error.start)
            raise _bad_line(name, number, f"it is not UTF-8 text: {error.reason}") from None


def _bad_line(name: str, number: int, problem: str) -> RankingDataError:
    return RankingDataError(f"{name}, line {number}: {problem}")


# ------------------------------------------------------------------ writing


def _words(table: Table) -> list[pl.Expr]:
    """Return the ids as text, if TREC files can hold them."""
    words = [("user", table.user, _USER), ("item", table.item, _WORD)]
    if table.subtopic is not None:
        words.append(("subtopic", table.subtopic, _WORD))
    for role, name, pattern in words:
        if isinstance(table.schema[name], pl.Binary | pl.Duration):
            msg = f"{table.name}, column {name!r}: TREC files hold text, so cast it to pl.String"
            raise RankingDataError(msg)
        text = pl.col(name).cast(pl.String)
        wrong = table.frame.filter(~text.str.contains(f"^{pattern}$")).select(table.row).head(1)
        if not (row := wrong.collect()).is_empty():
            or_hash = ", or begins with #" if role == "user" else ""
            msg = (
                f"{table.name}, column {name!r}: {role} that is empty or has white space{or_hash}: "
                f"rename it, as TREC files cannot hold it. Offending row: {format_row(row)}"
            )
            raise RankingDataError(msg)
    return [
        pl.col(table.user).cast(pl.String).alias("user"),
        pl.col(table.item).cast(pl.String).alias("item"),
    ]


def _check_order(ranked: pl.DataFrame, table: Table) -> None:
    """Check that the ranks given are those that the scores make."""
    wrong = ranked.filter(
        pl.col("given").is_not_null() & pl.col("given").ne_missing(pl.col("rank"))
    )
    if not wrong.is_empty():
        row = wrong.select("user", "item", "score", rank="given", made="rank").head(1)
        msg = (
            f"run, column {table.rank!r}: a rank that differs from the one that readers of TREC "
            "files make from the score (ties by item, descending; no gaps): drop the rank or the "
            f"score, or close the gaps. Offending row: {format_row(row)}"
        )
        raise RankingDataError(msg)


def _check_digits(ranked: pl.DataFrame, as_read: pl.DataFrame, score: str) -> None:
    """Check that scores are in the same order as floats."""
    wrong = ranked.filter(pl.col("rank").ne_missing(as_read["rank"])).head(1)
    if not wrong.is_empty():
        msg = (
            f"run, column {score!r}: different scores that are equal as 64-bit floats, which TREC "
            "files hold: call with_rank and drop the score. "
            f"Offending row: {format_row(wrong.select('user', 'item', 'score'))}"
        )
        raise RankingDataError(msg)


def _write(lines: pl.DataFrame, path: Target) -> None:
    lines.write_csv(
        Path(path),
        include_header=False,
        separator=" ",
        quote_style="never",
        compression=PACKINGS.get(Path(path).suffix.lower(), "uncompressed"),
        check_extension=False,
    )
