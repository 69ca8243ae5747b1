"""Keeps notes as kinds and values, and renders them where a person reads them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cache
from importlib.resources import files
from string import Formatter
from typing import Any, NamedTuple

import polars as pl

from rankframe._comparison import numerals


class Nouns(NamedTuple):
    """What users and items are called."""

    user: str = "user"
    item: str = "item"

    @property
    def words(self) -> dict[str, str]:
        """The nouns as fields of a template, also in the plural, and with a capital."""
        words = {"user": self.user, "item": self.item, "cluster": "cluster"}
        words |= {f"{name}s": plural(noun) for name, noun in words.items()}
        capitals = {name.capitalize(): noun[0].upper() + noun[1:] for name, noun in words.items()}
        return words | capitals

    def counted(self, number: int, name: str = "user") -> str:
        """Write a number of users or items."""
        return f"{number:,} {self.words[name if number == 1 else f'{name}s']}"

    def write(self, template: str, **values: Any) -> str:
        """Fill the fields of a template; what is in brackets is left out with its fields' values.

        ``{number:user}`` counts with the noun, ``{number:is|are}`` chooses by the number; a field
        may have a writer of ``numerals``.
        """
        words = self.words
        if unit := values.get("unit"):
            values |= {"units": words[f"{unit}s"]}
        fields = words | {name: value for name, value in values.items() if value is not None}
        whole = _OPTIONAL.sub(lambda part: part[1] * (_fields_of(part[1]) <= {*fields}), template)
        return _Writer(self, unit or "user").vformat(whole, (), fields)


USERS = Nouns()
_OPTIONAL = re.compile(r"\[([^\]]*)\]")
_WRITERS: dict[str, Callable[[float], str]] = {
    "number": numerals.number,
    "signed": numerals.signed,
    "percent": numerals.percent,
    "p": numerals.p_value,
}


def _fields_of(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


class _Writer(Formatter):
    """Writes a field by the word behind its colon."""

    def __init__(self, nouns: Nouns, unit: str) -> None:
        self._nouns = nouns
        self._units = {name: name for name in ("user", "item", "cluster")} | {"unit": unit}

    def format_field(self, value: Any, format_spec: str) -> str:
        if "|" in format_spec:
            singular, plural = format_spec.split("|")
            return singular if value == 1 else plural
        if format_spec in _WRITERS:
            return _WRITERS[format_spec](value)
        if format_spec in self._units:
            return self._nouns.counted(value, self._units[format_spec])
        return format(value, format_spec or (",d" if isinstance(value, int) else ""))


def plural(noun: str) -> str:
    """Write the plural of a regular noun."""
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return noun + ("es" if re.search(r"(s|x|z|ch|sh)$", noun) else "s")


@cache
def templates(part: str) -> Mapping[str, str]:
    """Read a part of the page of templates, such as notes or verdicts."""
    import tomllib

    page = files("rankframe._comparison").joinpath("templates.toml").read_text(encoding="utf-8")
    of_part: dict[str, str] = tomllib.loads(page)[part]
    return of_part


class Note(NamedTuple):
    """What a row of results says besides its numbers: a kind of the templates, and values."""

    kind: str
    values: Mapping[str, Any]


def note(kind: str, **values: Any) -> Note:
    return Note(kind, values)


#: The share of users without a list, or in one of two groups only, that people should know.
WORTH_A_NOTE = 0.05


def with_lead(note: Note, lead: str | None) -> Note:
    """Say first what a note is the reason of, such as that there is no interval."""
    return note._replace(values={**note.values, "lead": lead})


#: Of whom a note is, if the labels of others are a judge's.
OF_HUMAN = "with human labels"


def of_human(note: Note) -> Note:
    """Say that a note is of the users with human labels."""
    return note._replace(values={**note.values, "whose": OF_HUMAN})


def text(notes: Iterable[Note | None], nouns: Nouns = USERS) -> str | None:
    """Write notes in words; None if there are none."""
    texts = [nouns.write(templates("notes")[note.kind], **note.values) for note in notes if note]
    return "; ".join(texts) or None


# ------------------------------------------------------------------ in a column


def packed(notes: Iterable[Note | None]) -> str | None:
    """Write notes for a column: a line of JSON each."""
    lines = [json.dumps(note, default=lambda number: number.item()) for note in notes if note]
    return "\n".join(lines) or None


def unpacked(lines: str | None) -> list[Note]:
    return [Note(*json.loads(line)) for line in (lines or "").splitlines()]


def with_note(
    table: pl.DataFrame, notes: Iterable[Note | None], *, first: bool = False
) -> pl.DataFrame:
    """Add a note to each row, or None to some; as the last one, or as the first."""
    lines = pl.Series("note", [packed([note]) for note in notes], pl.String)
    return table.with_columns(_joined(lines, "note") if first else _joined("note", lines))


def noted(note: Note | pl.Expr | None, *, first: bool = False) -> pl.Expr:
    """Add one note to all rows, or a column of packed ones."""
    lines = note if isinstance(note, pl.Expr) else pl.lit(packed([note]), pl.String)
    return _joined(lines, "note") if first else _joined("note", lines)


def _joined(*lines: pl.Expr | pl.Series | str) -> pl.Expr:
    both = pl.concat_str(*lines, separator="\n", ignore_nulls=True)
    return pl.when(both != "").then(both).alias("note")


def kinds(lines: str | None) -> set[str]:
    return {note.kind for note in unpacked(lines)}


def without(column: pl.Series, said: Collection[str]) -> pl.Series:
    """Leave out what ``rest_of`` does in each row."""
    rows = [packed(rest_of(lines, said)) for lines in column]
    return pl.Series(column.name, rows, pl.String)


def rest_of(lines: str | None, said: Collection[str]) -> list[Note]:
    """Return notes, without those of some kinds, and those of few users that are left out."""
    return [
        note
        for note in unpacked(lines)
        if note.kind not in said
        if not {"number", "of"} <= {*note.values}
        or note.values["number"] >= WORTH_A_NOTE * note.values["of"]
    ]


def in_words(column: pl.Series, nouns: Nouns = USERS) -> pl.Series:
    """Write the notes of each row as text."""
    rows = [text(unpacked(lines), nouns) for lines in column]
    return pl.Series(column.name, rows, pl.String)


def rendered(table: pl.LazyFrame) -> pl.LazyFrame:
    """Write the notes of a result as text: the last step of a verb."""
    return table.with_columns(
        pl.col("note").map_batches(in_words, return_dtype=pl.String, is_elementwise=True)
    )
