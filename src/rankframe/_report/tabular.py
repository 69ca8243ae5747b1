"""Write a table of cells: one ``Grid`` in, text, Markdown, LaTeX and HTML out."""

from __future__ import annotations

import html
import re
import textwrap
import unicodedata
from collections.abc import Callable, Sequence
from typing import NamedTuple

from rankframe._comparison import numerals

NOTE = "*"  # at a cell with a note
#: What stands in plain text for bold and for underlined.
IN_TEXT = {"best": "•", "tied": "◦"}
_ARTICLE = 79  # letters of a row of LaTeX that fit in its article
_WIDTH = 79  # of the lines below a table of plain text
_RULE = "2px solid"  # in the color of the text, on any background
_LEFT = "padding:0.3em 0.8em;text-align:left"
_KEY = f"{_LEFT};white-space:nowrap"
_RIGHT = "padding:0.3em 0.8em;text-align:right;font-variant-numeric:tabular-nums"


class Cell(NamedTuple):
    """A cell of a table: its text, a smaller second line, its color class, and its marks."""

    text: str
    small: str = ""
    kind: str = ""
    mark: str = ""
    note: str = ""


class Grid(NamedTuple):
    """A table: the first cells of each row are its headers."""

    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    kind: str = ""
    words: Sequence[str] = ()  # the heads of columns of text
    notes: Sequence[str] = ()  # lines below it
    keys: int = 1  # headers of each row


def as_text(grid: Grid, lines: Sequence[str]) -> str:
    below = [wrapped(x, _WIDTH, after="  " * x.startswith(NOTE)) for x in lines]
    return "\n".join([*aligned(grid), "", *below])


def wrapped(line: str, length: int, *, after: str = "") -> str:
    """Break a line between words; ``after`` begins the lines after the first."""
    return textwrap.fill(
        line, length, subsequent_indent=after, break_long_words=False, break_on_hyphens=False
    )


def breadth(text: str) -> int:
    """Return how many places a text takes in a font of one width: two per CJK letter."""
    wide = sum(unicodedata.east_asian_width(letter) in "WF" for letter in text)
    return len(text) + wide - sum(map(bool, map(unicodedata.combining, text)))


def aligned(grid: Grid) -> list[str]:
    """Write the lines of a table, its columns aligned for a font of one width."""
    rows = _texts(grid, _in_text, _in_one_line)
    rows[0] = list(grid.head)
    widths = [max(map(breadth, column)) for column in zip(*rows, strict=True)]
    lines = ["  ".join(_padded(row, widths, grid)).rstrip() for row in rows]
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def as_markdown(grid: Grid, note: str) -> str:
    rows = _texts(grid, _in_markdown, _escaped_in_markdown)
    widths = [max(3, *map(breadth, column)) for column in zip(*rows, strict=True)]
    lines = [f"| {' | '.join(_padded(row, widths, grid))} |" for row in rows]
    rule = [
        ":" + "-" * (width + 1) if place < grid.keys else "-" * (width + 1) + ":"
        for place, width in enumerate(widths)
    ]
    lines.insert(1, f"|{'|'.join(rule)}|")
    return "\n".join([*lines, *(f"\n{_escaped_in_markdown(line)}" for line in note.splitlines())])


def as_latex(grid: Grid, note: str, caption: str | None = None, label: str | None = None) -> str:
    """Write LaTeX in small type, with its caption above and its notes below."""
    is_wide = breadth(aligned(grid)[1]) > _ARTICLE
    write = _stack_in_latex if is_wide else _in_latex
    head, *rows = (" & ".join(row) + r" \\" for row in _texts(grid, write, _escaped_in_latex))
    columns = "l" * grid.keys + "r" * (len(grid.head) - grid.keys)
    notes = r" \\ ".join(map(_escaped_in_latex, note.splitlines()))
    table = [
        rf"\small\setlength{{\tabcolsep}}{{{3 if is_wide else 4}pt}}",
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        head,
        r"\midrule",
        *rows,
        r"\bottomrule",
        r"\end{tabular}",
        "",
        rf"\smallskip\parbox{{\linewidth}}{{\raggedright\footnotesize {notes}}}",
    ]
    if caption is None:
        return "\n".join([r"\begingroup", *table, r"\endgroup"])
    named = [] if label is None else [rf"\label{{{label}}}"]
    skips = r"\setlength{\abovecaptionskip}{0pt}\setlength{\belowcaptionskip}{6pt}"
    above = [r"\begin{table}", r"\centering", skips, rf"\caption{{{_escaped_in_latex(caption)}}}"]
    return "\n".join([*above, *named, *table, r"\end{table}"])


def as_html(grid: Grid, note: str) -> str:
    """Write HTML with its style in it, since mail and notebooks drop a style sheet."""
    head = "".join(
        f'<th scope="col" style="{_KEY if place < grid.keys else _RIGHT}">{html.escape(name)}</th>'
        for place, name in enumerate(grid.head)
    )
    rows = "".join(f"<tr>{''.join(row)}</tr>" for row in _texts(grid, _in_html, _key_in_html)[1:])
    foot = f'<tfoot><tr><td colspan="{len(grid.head)}" style="{_LEFT};border-top:{_RULE}">'
    lines = "<br>".join(map(html.escape, note.splitlines()))
    foot += f"<small>{lines}</small></td></tr></tfoot>"
    return (
        f'<table style="border-collapse:collapse;color:inherit;border-top:{_RULE}">'
        f'<thead style="border-bottom:1px solid"><tr>{head}</tr></thead><tbody>{rows}</tbody>'
        f"{foot}</table>"
    )


def _texts(
    grid: Grid, write: Callable[[Cell, Cell], str], write_key: Callable[[str], str]
) -> list[list[str]]:
    """Write the head, the keys and the cells of each row, whose marks take as much room."""
    rooms = [_room(column) for column in zip(*(row[grid.keys :] for row in grid.rows), strict=True)]
    rows = [
        [
            *(write_key(cell.text) for cell in row[: grid.keys]),
            *map(write, row[grid.keys :], rooms),
        ]
        for row in grid.rows
    ]
    return [[write_key(name) for name in grid.head], *rows]


def _room(column: Sequence[Cell]) -> Cell:
    """Return the longest marks of a column, so that digits align."""
    kind = max((IN_TEXT.keys() & {cell.kind for cell in column}), default="")
    mark, note = (max((getattr(c, name) for c in column), key=len) for name in ("mark", "note"))
    return Cell("", kind=kind, mark=mark, note=note)


def _padded(row: Sequence[str], widths: Sequence[int], grid: Grid) -> list[str]:
    """Align keys and words to the left, and numbers to the right."""
    left = [place < grid.keys or name in grid.words for place, name in enumerate(grid.head)]
    return [
        text + " " * (width - breadth(text)) if is_left else " " * (width - breadth(text)) + text
        for text, width, is_left in zip(row, widths, left, strict=True)
    ]


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def _in_text(cell: Cell, room: Cell) -> str:
    marks = IN_TEXT.get(cell.kind, "").ljust(len(IN_TEXT.get(room.kind, "")))
    marks += cell.mark.ljust(len(room.mark)) + cell.note.ljust(len(room.note))
    return f"{cell.text}{marks}{' ' * bool(cell.small)}{cell.small}"


def _in_markdown(cell: Cell, _: Cell) -> str:
    looks = {"best": f"**{cell.text}**", "tied": f"<u>{cell.text}</u>"}
    interval = f" {cell.small}" if cell.small else ""
    marks = (cell.mark + cell.note).replace(NOTE, rf"\{NOTE}")
    return looks.get(cell.kind, cell.text) + marks + interval


def _in_latex(cell: Cell, room: Cell) -> str:
    number = cell.text.replace("-", "$-$").replace(numerals.DASH, "--")
    looks = {"best": rf"\textbf{{{number}}}", "tied": rf"\underline{{{number}}}"}
    marks = _with_room(cell, room, _marks_in_latex, r"\phantom{%s}")
    interval = cell.small.replace("-", "$-$")
    interval = rf" {{\footnotesize {interval}}}" if interval else ""
    return looks.get(cell.kind, number) + marks + interval


def _stack_in_latex(cell: Cell, room: Cell) -> str:
    """Write the interval of a mean below it, where a row would be too long."""
    if not cell.small:
        return _in_latex(cell, room)
    mean, interval = _in_latex(cell, room).split(r" {\footnotesize ")
    return rf"\shortstack[r]{{{mean} \\ {{\footnotesize {interval}}}"


def _marks_in_latex(marks: str) -> str:
    return _escaped_in_latex(marks).replace("{*}", r"\textsuperscript{*}")


def _in_html(cell: Cell, room: Cell) -> str:
    text = html.escape(cell.text)
    looks = {"best": f"<strong>{text}</strong>", "tied": f"<u>{text}</u>"}
    interval = f" <small>{cell.small}</small>" if cell.small else ""
    marks = _with_room(cell, room, str, '<span style="visibility:hidden">%s</span>')
    return f'<td style="{_RIGHT}">{looks.get(cell.kind, text)}{marks}{interval}</td>'


def _with_room(cell: Cell, room: Cell, write: Callable[[str], str], hidden: str) -> str:
    """Write the marks of a cell, and hide those that another cell of its column has."""
    pairs = (cell.mark, room.mark), (cell.note, room.note)
    return "".join(
        write(own) if own else hidden % write(most) if most else "" for own, most in pairs
    )


def _key_in_html(text: str) -> str:
    return f'<th scope="row" style="{_KEY};font-weight:normal">{html.escape(text)}</th>'


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
