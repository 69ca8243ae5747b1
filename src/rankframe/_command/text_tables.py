"""Write results for the command: tables that fit the terminal, JSON, or files."""

import contextlib
import io
import json
import os
import re
import secrets
import shutil
import sys
import textwrap
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from rankframe._comparison import numerals
from rankframe._report import results, tabular
from rankframe.plot import _colors

_FORMULA = r"[=+\-@\t\r]"
OUTPUTS = (".csv", ".parquet", ".json")
_WIDTH = 80  # if the output is not a terminal
_NARROWEST = 8  # least width of a cut column of names
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
        print_text(f"{wrapped(line, width()) if sys.stdout.isatty() else line}\n")


def print_error(line: str) -> None:
    """Print one line on standard error, which a terminal does not break within a word."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    print(wrapped(line, _columns()) if is_terminal else line, file=sys.stderr)


def wrapped(line: str, length: int, *, after: str = "") -> str:
    """Break a line between words; ``after`` begins the lines after the first."""
    return textwrap.fill(
        line, length, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )


def show(result: pl.DataFrame, *, wide: bool = False) -> None:
    """Print a table; if it is too wide, cut the middle of its texts."""
    texts = [_printable(name) for name, dtype in result.schema.items() if not dtype.is_numeric()]
    print_text(_fitted(_in_cells(result), None if wide else width(), texts))


def show_values(result: pl.DataFrame, keys: Sequence[str], *, wide: bool = False) -> None:
    """Print one column per metric, or if this is too wide, one row per metric."""
    drawn = _boxed(_in_cells(result))
    taken = {"metric", "value"} & {*keys}
    if wide or taken or _breadth(drawn) <= width():
        print_text(drawn)
        return
    cells = _in_cells(result).with_row_index("__rankframe_row")
    long = cells.unpivot(
        on=[_printable(name) for name in result.columns if name not in keys],
        index=["__rankframe_row", *map(_printable, keys)],
        variable_name="metric",
    )
    long = long.sort("__rankframe_row", maintain_order=True).drop("__rankframe_row")
    print_text(_fitted(long, width(), [*map(_printable, keys), "metric"]))


def show_comparison(
    result: pl.DataFrame, segments: Sequence[str], model: str, how: str, *, wide: bool = False
) -> None:
    """Print the columns of a comparison that fit, and above them the values that all rows share."""
    if wide:
        show(result, wide=True)
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
    print_text(wrapped(f"{head}; {how} (--wide: all columns).", breadth) + "\n")
    systems = [*segments, model]
    chosen = _most_that_fits(_compared(result), systems, shared, breadth)
    texts = [name for name in (*systems, "metric", "baseline") if name in chosen.columns]
    print_text(_colored(_fitted(chosen, breadth, texts)))
    print_text(_notes(result, systems, breadth))


def _compared(result: pl.DataFrame) -> pl.DataFrame:
    """Write the columns of a comparison as text, and combine some of them."""

    def numbers(name: str, *, signed: bool = False) -> pl.Series:
        written = [_signed(numerals.fixed(value, 4, "null")) for value in result[name]]
        if signed and _has_signs():
            plus = ["+" if value is not None and value > 0 else "" for value in result[name]]
            written = [before + text for before, text in zip(plus, written, strict=True)]
        return pl.Series(name, written, pl.String)

    cells = _in_cells(result).with_columns(
        *(numbers(name) for name in ("mean", "baseline_mean")),
        *(numbers(name, signed=True) for name in ("difference", "ci_low", "ci_high")),
    )
    noted = [f" {tabular.NOTE}" if note else "" for note in result["note"]]
    marks = [_colors.mark_of(verdict) for verdict in result["verdict"]]
    marked = [f"{mark or ' '} " if any(marks) and _has_signs() else "" for mark in marks]
    low_to_high = pl.concat_str("ci_low", pl.lit(" to "), "ci_high")
    has_interval = pl.Series(result["ci_low"].is_not_null())
    return cells.with_columns(
        interval=pl.when(has_interval).then(low_to_high).otherwise(pl.lit("null")),
        p=pl.col("p_adjusted"),
        difference=pl.concat_str(pl.Series(marked), "difference", pl.Series(noted)),
        **{name: pl.col(name).replace("null", "no gate") for name in {"passed"} & {*cells.columns}},
        **{"higher/equal/lower": pl.concat_str("higher", "equal", "lower", separator="/")},
    )


#: The displayed columns of a comparison, in addition to the system and its segments.
_SHOWN = (
    *("baseline", "users", "mean", "baseline_mean", "difference", "interval", "p"),
    *("verdict", "higher/equal/lower", "passed"),
)
#: Those that are always there, and those that come while there is room, the first ones first.
_NEEDED = ("baseline", "difference", "interval", "p", "passed")
_LESS_NEEDED = ("interval", "baseline", "passed")  # dropped in this order once names are cut
_WELCOME = ("verdict", "users", "mean", "higher/equal/lower", "baseline_mean")


def _most_that_fits(
    cells: pl.DataFrame, systems: Sequence[str], shared: Mapping[str, object], width: int
) -> pl.DataFrame:
    *segments, model = systems
    first = [model, *segments, "metric"]
    candidates = [name for name in _SHOWN if name in cells.columns and name not in shared]
    chosen = [name for name in candidates if name in _NEEDED]
    short = _with_cut(cells, dict.fromkeys([*first, *({"baseline"} & {*chosen})], _NARROWEST))
    for name in _LESS_NEEDED:
        if _breadth(_boxed(short.select(*first, *chosen))) > width:
            chosen = [column for column in chosen if column != name]
    for name in _WELCOME:
        more = [column for column in candidates if column in (*chosen, name)]
        if _breadth(_boxed(cells.select(*first, *more))) <= width:
            chosen = more
    return cells.select(*first, *chosen)


def _notes(result: pl.DataFrame, systems: Sequence[str], width: int) -> str:
    """Write each note once, with the rows that it applies to."""
    lines = [
        f"{tabular.NOTE} {_printable(line)}" for line in results.lines_of_notes(result, systems)
    ]
    return "".join(wrapped(line, width, after="  ") + "\n" for line in lines)


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
        text = re.sub(rf"{mark} \S+", rf"\033[38;5;{color}m\g<0>\033[39m", text)
    return text


def _in_cells(result: pl.DataFrame) -> pl.DataFrame:
    """Write all values as text."""
    return pl.DataFrame(
        pl.Series(_printable(name), [_cell(name, value) for value in result[name]], pl.String)
        for name in result.columns
    )


def _cell(name: str, value: object) -> str:
    if value is None:
        return "null"
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


def _fitted(cells: pl.DataFrame, width: int | None, texts: Sequence[str]) -> str:
    """Draw a table; if it is too wide, cut its longest columns of text."""
    drawn = _boxed(cells)
    while width is not None and (excess := _breadth(drawn) - width) > 0:
        lengths = {name: max(map(len, [name, *cells[name]])) for name in texts}
        longest = max(lengths, key=lambda name: lengths[name], default="")
        kept = max(_NARROWEST, len(longest), lengths.get(longest, 0) - excess)
        if kept >= lengths.get(longest, 0):
            break
        cells = _with_cut(cells, {longest: kept})
        drawn = _boxed(cells)
    return drawn


def _with_cut(cells: pl.DataFrame, lengths: Mapping[str, int]) -> pl.DataFrame:
    return cells.with_columns(
        pl.Series(name, [_cut(text, length) for text in cells[name]], pl.String)
        for name, length in lengths.items()
    )


def _cut(text: str, length: int) -> str:
    """Cut the end of a sentence, and the middle of a name: names often differ at their ends."""
    if len(text) <= length:
        return text
    end = 0 if text.count(" ") > 2 else (length - 1) // 2
    return f"{text[: length - 1 - end]}…{text[len(text) - end :]}"


def _breadth(text: str) -> int:
    return max(len(line) for line in text.splitlines())


def _boxed(cells: pl.DataFrame) -> str:
    unicode = (sys.stdout.encoding or "").lower().startswith("utf")
    with pl.Config(
        tbl_formatting="UTF8_FULL_CONDENSED" if unicode else "ASCII_FULL_CONDENSED",
        tbl_hide_dataframe_shape=True,
        tbl_hide_column_data_types=True,
        tbl_rows=-1,
        tbl_cols=-1,
        tbl_width_chars=10_000,
        fmt_str_lengths=10_000,
    ):
        return f"{cells}\n"
