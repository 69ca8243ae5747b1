"""Write results for the command: tables that fit the terminal, JSON, or files."""

import contextlib
import io
import itertools
import json
import os
import re
import secrets
import shutil
import sys
import textwrap
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import polars as pl

from rankframe._comparison import numerals
from rankframe._report import results, tabular
from rankframe._report.tabular import Cell, Grid
from rankframe.plot import _colors

#: the texts of each column by its name
_Columns: TypeAlias = dict[str, list[str]]
_FORMULA = r"[=+\-@\t\r]"
OUTPUTS = (".csv", ".parquet", ".json")
_WIDTH = 80  # if the output is not a terminal
_NARROWEST = 8  # least width of a cut column of names
_LEAST = 20  # width of a column whose texts are wrapped
_ANSI = {"▲": 33, "▼": 208}  # blue and orange that are read on light and on dark
_P_VALUES = ("p_value", "p_adjusted", "p_equivalent", "p_not_worse", "p")


def write(result: pl.DataFrame, out: Path) -> None:
    """Write a result to a file by its suffix."""
    content = io.BytesIO()
    if out.suffix.lower() == ".csv":
        result.write_csv(content)
    elif out.suffix.lower() == ".parquet":
        result.write_parquet(content)
    else:
        result.write_json(content)
    with replaced(out) as path:
        path.write_bytes(content.getvalue())  # Polars, with a pipe, may wait forever


def for_spreadsheets(result: pl.DataFrame) -> pl.DataFrame:
    """Put ' before text, also names of columns, that a spreadsheet would run as a formula."""
    texts = result.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    plain = pl.col(pl.String).str.replace(f"^({_FORMULA})", "'$1")
    return texts.with_columns(plain).rename(lambda name: re.sub(f"^({_FORMULA})", r"'\1", name))


@contextlib.contextmanager
def replaced(out: Path) -> Generator[Path]:
    """Give a path beside a file to write to; the file is replaced only if nothing was raised."""
    if out.exists() and not out.is_file():  # a pipe or a device
        yield out
        return
    real = out.resolve()
    beside = real.with_name(f".{real.stem}.{secrets.token_hex(8)}{real.suffix}")
    beside.touch(exist_ok=False)  # a link that waits under this name is not followed
    try:
        yield beside
        with beside.open("r+b") as file:
            os.fsync(file.fileno())  # the rows are on the disk before the name is
        if real.exists():
            shutil.copymode(real, beside)
        beside.replace(real)
    finally:
        beside.unlink(missing_ok=True)


def print_json(result: pl.DataFrame) -> None:
    """Print a list of rows."""
    print(json.dumps([_with_counts(row) for row in json.loads(result.write_json())]))


def _with_counts(row: Mapping[str, Any]) -> dict[str, Any]:
    counts = {name: value for name, value in row.items() if name.startswith("num_")}
    whole = {n: int(x) for n, x in counts.items() if isinstance(x, float) and x.is_integer()}
    return {**row, **whole}


def print_data(text: str) -> None:
    """Print text for a program: UTF-8, whatever the encoding of the terminal."""
    sys.stdout.flush()
    buffer = getattr(sys.stdout, "buffer", None)
    if buffer is None:  # a stand-in that takes text
        print(text, end="")
    else:
        buffer.write(text.encode())


def print_text(text: str) -> None:
    """Print text for people, with ? for characters that the encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, errors="replace").decode(encoding), end="")


def print_lines(lines: Sequence[str]) -> None:
    """Print sentences, which a terminal does not break within a word."""
    for line in lines:
        print_text(f"{tabular.wrapped(line, width()) if sys.stdout.isatty() else line}\n")


def print_error(line: str) -> None:
    """Print one line on standard error, which a terminal does not break within a word."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    print(tabular.wrapped(line, _columns()) if is_terminal else line, file=sys.stderr)


def show(result: pl.DataFrame, *, numbers: Sequence[str] = (), details: bool = False) -> None:
    """Print a table; if it is too wide, wrap a text that is its last column, and cut the others.

    ``numbers`` are columns of text that are aligned like numbers.
    """
    cells = _in_cells(result, absent="")
    texts = [
        _printable(name)
        for name, dtype in result.schema.items()
        if not dtype.is_numeric() and name not in numbers
    ]
    if details:
        print_text(_drawn(cells, texts))
        return
    if [*cells][-1] in texts:
        cells = _wrapped_last(cells, width())
    print_text(_fitted(cells, width(), texts))


def show_values(result: pl.DataFrame, keys: Sequence[str], *, details: bool = False) -> None:
    """Print one column per metric, or if this is too wide, one row per metric."""
    cells, names = _in_cells(result), [*map(_printable, keys)]
    texts = [_printable(name) for name in keys if not result.schema[name].is_numeric()]
    drawn = _drawn(cells, texts)
    taken = {"metric", "value"} & {*keys}
    if details or taken or _width_of(drawn) <= width():
        print_text(drawn)
        return
    metrics = [name for name in cells if name not in names]
    long = {name: [text for text in cells[name] for _ in metrics] for name in names}
    long["metric"] = metrics * result.height
    long["value"] = [cells[name][row] for row in range(result.height) for name in metrics]
    print_text(_fitted(long, width(), [*texts, "metric"]))


def show_comparison(
    result: pl.DataFrame,
    segments: Sequence[str],
    model: str,
    how: Mapping[str, str],
    *,
    details: bool = False,
) -> None:
    """Print the columns of a comparison that fit, and above them the values that all rows share.

    ``how`` says for some columns how they were made.
    """
    if details:
        show(result, details=True)
        return
    shared = {
        name: result[name][0] for name in ("baseline", "users") if result[name].n_unique() == 1
    }
    head = "Differences"
    if "baseline" in shared:
        head += f" from {_printable(str(shared['baseline']))}"
    if "users" in shared:
        head += f" over {shared['users']} user" + ("" if shared["users"] == 1 else "s")
    breadth = width()
    systems = [*segments, model]
    chosen = _columns_within(_compared(result), systems, shared, breadth)
    said = ", ".join(text for name, text in how.items() if name in chosen)
    head += f"; {said}" if said else ""
    print_text(tabular.wrapped(f"{head} (--details: all columns).", breadth) + "\n")
    texts = [name for name in (*systems, "metric", "baseline", "verdict") if name in chosen]
    print_text(_colored(_fitted(chosen, breadth, texts)))
    named = systems if "baseline" in shared else [*systems, "baseline"]
    print_text(_notes(result, named, breadth))


def _compared(result: pl.DataFrame) -> _Columns:
    """Write the columns of a comparison, and combine some of them."""

    def numbers(name: str, *, signed: bool = False) -> list[str]:
        plus = "+" if signed and _has_signs() else ""
        return [
            plus * (value is not None and value > 0) + _signed(numerals.fixed(value, 4, ""))
            for value in result[name]
        ]

    cells = _in_cells(result, absent="")
    marks = [_colors.mark_of(verdict) if _has_signs() else "" for verdict in result["verdict"]]
    notes = [tabular.NOTE if note else "" for note in result["note"]]
    places = [2 * any(marks), 2 * any(notes)]  # so that digits align
    signed = zip(numbers("difference", signed=True), marks, notes, strict=True)
    ends = zip(numbers("ci_low", signed=True), numbers("ci_high", signed=True), strict=True)
    counts = zip(*(cells[name] for name in ("higher", "equal", "lower")), strict=True)
    cells |= {
        "mean": numbers("mean"),
        "baseline_mean": numbers("baseline_mean"),
        "difference": [
            n + mark.rjust(places[0]) + note.rjust(places[1]) for n, mark, note in signed
        ],
        "interval": [f"{low} to {high}" if low else "" for low, high in ends],
        "p": cells["p_adjusted"],
        "higher/equal/lower": [*map("/".join, counts)],
    }
    return cells


#: The columns of a comparison that may be displayed beside the names of its rows, in their order.
_SHOWN = (
    *("baseline", "users", "mean", "baseline_mean", "difference", "interval", "p"),
    *("p_not_worse", "verdict", "higher/equal/lower"),
)
#: Those that are left out if the table is too wide, the least needed first.
_OPTIONAL = ("baseline_mean", "higher/equal/lower", "mean", "users", "p_not_worse", "p")
_NEEDED = ("interval", "baseline")  # which stay as long as names can be cut for them


def _columns_within(
    cells: _Columns, systems: Sequence[str], shared: Mapping[str, object], width: int
) -> _Columns:
    """Leave out columns of a comparison until the table is as narrow as the terminal."""
    *segments, model = systems
    first = [model, *segments, "metric"]
    names = [name for name in _SHOWN if name not in shared and any(cells.get(name, ()))]
    shown = {name: cells[name] for name in (*first, *names)}
    for name in (*_OPTIONAL, *_NEEDED):
        cut = _with_cut(shown, dict.fromkeys({*first, "baseline"} & {*shown}, _NARROWEST))
        if _width_of(_drawn(cut if name in _NEEDED else shown)) <= width:
            break
        shown.pop(name, None)
    return shown


def _notes(result: pl.DataFrame, systems: Sequence[str], width: int) -> str:
    """Write each note once, with the rows that it applies to."""
    lines = [
        f"{tabular.NOTE} {_printable(line)}" for line in results.lines_of_notes(result, systems)
    ]
    return "".join(tabular.wrapped(line, width, after="  ") + "\n" for line in lines)


# ------------------------------------------------------------------ cells


def width() -> int:
    """Return the columns of the terminal, or of what a program reads."""
    return _columns() if sys.stdout.isatty() else _WIDTH


def _columns() -> int:
    return shutil.get_terminal_size((_WIDTH, 24)).columns


def _has_signs() -> bool:
    """Whether − and ▲ can be shown: to people, who do not read them with a program."""
    return sys.stdout.isatty() and (sys.stdout.encoding or "").lower().startswith("utf")


def _colored(text: str) -> str:
    """Color the marks of verdicts on a terminal, unless NO_COLOR or TERM=dumb say no."""
    if not _has_signs() or os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return text
    for mark, color in _ANSI.items():
        text = re.sub(rf"\S+ {mark}", rf"\033[38;5;{color}m\g<0>\033[39m", text)
    return text


def _in_cells(result: pl.DataFrame, absent: str = "null") -> _Columns:
    """Write all values as text."""
    return {
        _printable(name): [_cell(name, value, absent) for value in result[name]]
        for name in result.columns
    }


def _cell(name: str, value: object, absent: str) -> str:
    if value is None:
        return absent
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        if name in _P_VALUES:
            return numerals.p_value(value)
        whole = name.startswith("num_") and value.is_integer()
        return _signed(f"{value:.0f}" if whole else numerals.fixed(value, 6, "null"))
    return _printable(str(value))


def _signed(number: str) -> str:
    return numerals.with_minus(number) if _has_signs() else number


def _printable(text: str) -> str:
    """Return the text in one line, without characters that move the cursor."""
    return "".join(char if char.isprintable() else "?" for char in " ".join(text.split()))


def _fitted(cells: _Columns, width: int | None, texts: Sequence[str]) -> str:
    """Draw a table; if it is too wide, cut its longest columns of text."""
    drawn = _drawn(cells, texts)
    while width is not None and (excess := _width_of(drawn) - width) > 0:
        lengths = {name: max(map(len, [name, *cells[name]])) for name in texts}
        longest = max(lengths, key=lambda name: lengths[name], default="")
        kept = max(_NARROWEST, len(longest), lengths.get(longest, 0) - excess)
        if kept >= lengths.get(longest, 0):
            break
        cells = _with_cut(cells, {longest: kept})
        drawn = _drawn(cells, texts)
    return drawn


def _wrapped_last(cells: _Columns, width: int) -> _Columns:
    """Break the texts of the last column into lines, below which the other cells are empty."""
    *others, last = cells
    room = width - len("  ") - _width_of(_drawn({name: cells[name] for name in others}))
    lines = [textwrap.wrap(text, max(_LEAST, room)) or [""] for text in cells[last]]
    counts = [*map(len, lines)]
    beside = {
        name: [
            text
            for cell, n in zip(cells[name], counts, strict=True)
            for text in (cell, *[""] * (n - 1))
        ]
        for name in others
    }
    return beside | {last: [*itertools.chain(*lines)]}


def _with_cut(cells: _Columns, lengths: Mapping[str, int]) -> _Columns:
    cut = {name: [_cut(text, length) for text in cells[name]] for name, length in lengths.items()}
    return cells | cut


def _cut(text: str, length: int) -> str:
    """Cut the end of a sentence, and the middle of a name: names often differ at their ends."""
    if len(text) <= length:
        return text
    end = 0 if text.count(" ") > 2 else (length - 1) // 2
    return f"{text[: length - 1 - end]}…{text[len(text) - end :]}"


def _width_of(text: str) -> int:
    return max(map(tabular.breadth, text.splitlines()))


def _drawn(cells: _Columns, words: Sequence[str] = ()) -> str:
    rows = [[*map(Cell, row)] for row in zip(*cells.values(), strict=True)]
    grid = Grid("", [*cells], rows, words=words, keys=0)
    return "".join(f"{line}\n" for line in tabular.aligned(grid))
