"""Write a table of cells: one ``Grid`` in, text, Markdown, LaTeX and HTML out."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rankframe._comparison import numerals

NOTE = "*"  # at a cell with a note
BOLD_IN_TEXT = "•"
_RULE = "2px solid"  # in the color of the text, on any background
_LEFT = "padding:0.3em 0.8em;text-align:left"
_RIGHT = "padding:0.3em 0.8em;text-align:right;font-variant-numeric:tabular-nums"


class Cell(NamedTuple):
    """A cell of a table: its text, a smaller second line, its color class, and its marks."""

    text: str
    small: str = ""
    kind: str = ""
    mark: str = ""
    note: str = ""
    more: str = ""  # the interval of the mark, on cards

    @property
    def is_best(self) -> bool:
        return self.kind == "best"

    @property
    def marks(self) -> str:
        """What stands after the text."""
        return self.mark + self.note


class Grid(NamedTuple):
    """A table: the first cells of each row are its headers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    folded: bool = False
    kind: str = ""
    words: Sequence[str] = ()  # the heads of columns of text
    notes: Sequence[str] = ()  # lines below it
    keys: int = 1  # headers of each row


def as_text(grid: Grid, note: str) -> str:
    return "\n".join([*aligned(grid), "", note])


def aligned(grid: Grid) -> list[str]:
    """Write the lines of a table, its columns aligned for a font of one width."""
    # every cell of a table has as many places for marks, so that digits align
    marks = [_marks_in_text(cell) for row in grid.rows for cell in row]
    places = [max(map(len, of_kind)) for of_kind in zip(*marks, strict=True)]
    rows = _texts(grid, lambda cell: _in_text(cell, places), _in_one_line)
    rows[0] = list(grid.head)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_padded(row, widths, grid)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def as_markdown(grid: Grid, note: str) -> str:
    rows = _texts(grid, _in_markdown, _escaped_in_markdown)
    widths = [max(3, *map(len, column)) for column in zip(*rows, strict=True)]
    lines = [f"| {' | '.join(_padded(row, widths, grid))} |" for row in rows]
    rule = [
        ":" + "-" * (width + 1) if place < grid.keys else "-" * (width + 1) + ":"
        for place, width in enumerate(widths)
    ]
    lines.insert(1, f"|{'|'.join(rule)}|")
    return "\n".join([*lines, "", _escaped_in_markdown(note)])


def as_latex(grid: Grid, note: str, caption: str | None = None, label: str | None = None) -> str:
    head, *rows = (" & ".join(row) + r" \\" for row in _texts(grid, _in_latex, _escaped_in_latex))
    columns = "l" * grid.keys + "r" * (len(grid.head) - grid.keys)
    table = [
        rf"\begin{{tabular}}{{{columns}}}",
        r"\toprule",
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        "",
        rf"\smallskip{{\footnotesize {_escaped_in_latex(note)}}}",
    ]
    if caption is not None:
        named = [] if label is None else [rf"\label{{{label}}}"]
        above = [r"\begin{table}", r"\centering", rf"\caption{{{_escaped_in_latex(caption)}}}"]
        table = [*above, *named, *table, r"\end{table}"]
    return "\n".join(table)


def as_html(grid: Grid, note: str) -> str:
    """Write HTML with its style in it, since mail and notebooks drop a style sheet."""
    head = "".join(
        f'<th scope="col" style="{_LEFT if place < grid.keys else _RIGHT}">{html.escape(name)}</th>'
        for place, name in enumerate(grid.head)
    )
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in _texts(grid, _in_html, _key_in_html)[1:])
    foot = f'<tfoot><tr><td colspan="{len(grid.head)}" style="{_LEFT};border-top:{_RULE}">'
    foot += f"<small>{html.escape(note)}</small></td></tr></tfoot>"
    return (
        f'<table style="border-collapse:collapse;color:inherit;border-top:{_RULE}">'
        f'<thead style="border-bottom:1px solid"><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        f"{foot}</table>"
    )


def _texts(
    grid: Grid, write: Callable[[Cell], str], write_key: Callable[[str], str]
) -> list[list[str]]:
    """Write the head, the keys and the cells of each row."""
    rows = [
        [*(write_key(cell.text) for cell in row[: grid.keys]), *map(write, row[grid.keys :])]
        for row in grid.rows
    ]
    return [[write_key(name) for name in grid.head], *rows]


def _padded(row: Sequence[str], widths: Sequence[int], grid: Grid) -> list[str]:
    """Align keys and words to the left, and numbers to the right."""
    left = [place < grid.keys or name in grid.words for place, name in enumerate(grid.head)]
    return [
        text.ljust(width) if is_left else text.rjust(width)
        for text, width, is_left in zip(row, widths, left, strict=True)
    ]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _in_text(cell: Cell, places: Sequence[int]) -> str:
    marks = map(str.ljust, _marks_in_text(cell), places)
    return f"{cell.text}{''.join(marks)}{' ' * bool(cell.small)}{cell.small}"


def _marks_in_text(cell: Cell) -> tuple[str, str, str]:
    return BOLD_IN_TEXT * cell.is_best, cell.mark, cell.note


def _in_markdown(cell: Cell) -> str:
    bold = f"**{cell.text}**" if cell.is_best else cell.text
    interval = f" {cell.small}" if cell.small else ""
    return bold + cell.marks.replace(NOTE, rf"\{NOTE}") + interval


def _in_latex(cell: Cell) -> str:
    number = cell.text.replace("-", "$-$").replace(numerals.DASH, "--")
    bold = rf"\textbf{{{number}}}" if cell.is_best else number
    note = r"\textsuperscript{*}" if cell.note else ""
    interval = cell.small.replace("-", "$-$")
    interval = rf" {{\footnotesize {interval}}}" if interval else ""
    return bold + _escaped_in_latex(cell.mark) + note + interval


def _in_html(cell: Cell) -> str:
    text = html.escape(cell.text)
    bold = f"<strong>{text}</strong>" if cell.is_best else text
    interval = f" <small>{cell.small}</small>" if cell.small else ""
    return f'<td style="{_RIGHT}">{bold}{cell.marks}{interval}</td>'


def _key_in_html(text: str) -> str:
    return f'<th scope="row" style="{_LEFT};font-weight:normal">{html.escape(text)}</th>'


# a [ or * at the start of a row would be read as an option of the \\ before it
_IN_LATEX = {mark: f"\\{mark}" for mark in "&%#_${}"} | {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "[": "{[}",
    "]": "{]}",
    "*": "{*}",
    "†": r"\textsuperscript{\dag}",
    "‡": r"\textsuperscript{\ddag}",
    "↑": r"$\uparrow$",
    "↓": r"$\downarrow$",
    "−": "$-$",
    "≥": r"$\ge$",
    "Σ": r"$\Sigma$",
    "–": "--",
}
_LATEX_MARKS = str.maketrans(_IN_LATEX)


def _escaped_in_latex(text: str) -> str:
    return _in_one_line(text).translate(_LATEX_MARKS)


_MARKDOWN_MARKS = re.compile(
    r"[\\`*\[\]|~$]|<(?=[A-Za-z/!?])"  # special anywhere
    r"|(?<![^\W_])_|_(?![^\W_])"  # an underscore is special only at the edge of a word
    r"|&(?=#?\w+;)|^[#+-](?=\s|$)"
)


def _escaped_in_markdown(text: str) -> str:
    return _MARKDOWN_MARKS.sub(r"\\\g<0>", _in_one_line(text))
