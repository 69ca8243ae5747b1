"""The first lines of a file of a run or a truth, and the format that they show."""

from __future__ import annotations

import contextlib
import csv
import gzip
import io
import re
import zlib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import IO, Literal, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe import _sizes

#: The role of a file; TREC has no format for other tables than run and truth.
FileRole: TypeAlias = Literal["run", "truth", "table"]

GZIP, ZSTD = b"\x1f\x8b", b"\x28\xb5\x2f\xfd"
#: Compression by file suffix.
PACKINGS: dict[str, Literal["gzip", "zstd"]] = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}
#: The columns of BEIR's truth files by the roles that they play.
BEIR = {"user": "query-id", "item": "corpus-id", "relevance": "score"}

_FORMS = {"\t": "tsv", ",": "csv", None: "trec"}
_HEAD, _LINES = 1 << 16, 200
_SPACES = " \t\n\r\f\v"  # as C's isspace: a no-break space is part of an id
_NUMBER = re.compile(
    r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf|nan", re.IGNORECASE
)
_INTEGER = re.compile(r"[+-]?[0-9]+")
_GRADE = re.compile(r"[+-]?[0-9]{1,3}")  # a longer number may be a time or an id


class Stream:
    """A reader of an open file that can look at its next bytes without opening it again.

    A pipe returns what its writer has written so far. So ``read`` repeats until it has the
    requested size: otherwise a compressed file could be overlooked, or pieces could be small.
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

    def peek_all(self) -> bytes:
        """Return all bytes that are left; ``read`` returns them again."""
        self._held = self.read_all()
        return self._held

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

    def read_all(self) -> bytes:
        """Read all bytes that are left."""
        return b"".join(iter(lambda: self.read(_sizes.BYTES_READ), b""))


class Line(NamedTuple):
    """A line that holds data, and its number from 1."""

    number: int
    text: str

    @property
    def words(self) -> list[str]:
        """The fields, split at whitespace."""
        return split(self.text, None)


class Header(NamedTuple):
    """A line with the names of the columns; the separator None means whitespace."""

    number: int
    names: list[str]
    separator: str | None


# ------------------------------------------------------------------ the start of a file


def first_lines(stream: Stream) -> list[Line]:
    """Return the first lines that hold data, of text that may be compressed."""
    lines = _head(stream).decode(errors="replace").split("\n")
    if len(lines) > 1:
        lines.pop()  # it is empty, or cut off
    numbered = (Line(number, line.removeprefix("\ufeff")) for number, line in enumerate(lines, 1))
    return [line for line in numbered if line.words and not line.words[0].startswith("#")]


def _head(stream: Stream) -> bytes:
    """Return the first bytes of text; none if it cannot be decompressed."""
    start = stream.peek(_HEAD)
    if start.startswith(GZIP):
        return b"".join(_unpacked(start))
    if not start.startswith(ZSTD):
        return start
    # the standard library decompresses zstd only from Python 3.14 on
    source = stream.path or io.BytesIO(stream.peek_all())
    with contextlib.suppress(pl.exceptions.PolarsError):
        lines = pl.scan_lines(source, glob=False).head(_LINES).collect().to_series()
        return "".join(f"{line}\n" for line in lines).encode()
    return b""


def _unpacked(start: bytes) -> Iterator[bytes]:
    """Decompress as much as the start of a gzip file allows."""
    size = 0
    with (
        contextlib.suppress(EOFError, OSError, zlib.error),
        gzip.GzipFile(fileobj=io.BytesIO(start)) as file,
    ):
        while size < _HEAD and (part := file.read1(_HEAD)):
            size += len(part)
            yield part


# ------------------------------------------------------------------ lines


def split(text: str, separator: str | None) -> list[str]:
    """Split a line into its fields; those between tabs or commas may be quoted as in CSV."""
    if separator is None:
        return [word for word in re.split(f"[{_SPACES}]+", text) if word]
    try:
        return next(csv.reader([text.rstrip("\r\n")], delimiter=separator))
    except csv.Error:  # a field of megabytes
        return [text]


def header_of(line: Line, names: Collection[str]) -> Header | None:
    """Read a line as a header, if it has these names."""
    for separator in _FORMS:
        fields = split(line.text, separator)
        if all(name in fields for name in names):
            return Header(line.number, fields, separator)
    return None


def is_trec(words: Sequence[str], kind: FileRole) -> bool:
    """Whether these are the words of a line of a TREC run, or of TREC qrels."""
    if kind == "run":
        return len(words) >= 5 and bool(_NUMBER.fullmatch(words[4]))
    return kind == "truth" and len(words) == 4 and bool(_INTEGER.fullmatch(words[3]))


def has_three_fields(lines: Sequence[Line]) -> bool:
    """Whether the first line is two ids and a number."""
    words = lines[0].words if lines else []
    return len(words) == 3 and bool(_NUMBER.fullmatch(words[2]))


def has_graded_pairs(lines: Sequence[Line]) -> bool:
    """Whether the lines are two ids and a grade: qrels without the second field."""
    thirds = [line.words[2] for line in lines if has_three_fields([line])]
    return has_three_fields(lines) and all(map(_GRADE.fullmatch, thirds))


def is_number(text: str) -> bool:
    return bool(_NUMBER.fullmatch(text.strip(_SPACES)))


def text_format(lines: Sequence[Line], kind: FileRole) -> str | None:
    """Tell TREC from CSV by the first lines; None if they may be something else."""
    first = lines[0] if lines else Line(0, "")
    if is_trec(first.words, kind):  # the field that TREC does not use is Q0 or 0
        seconds = {line.words[1].upper() for line in lines if len(line.words) > 3}
        return "trec" if seconds <= {"Q0", "0"} else None
    if kind == "truth" and has_graded_pairs(lines):
        return "trec"
    separators = [separator for separator in "\t," if separator in first.text]
    if len(separators) != 1 or first.text.startswith(("{", "[", "PAR1", "ARROW1")):
        return None
    has_number = any(map(is_number, split(first.text, separators[0])))
    return None if has_number else _FORMS[separators[0]]
