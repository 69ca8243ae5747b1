"""Names of systems: short where they are long, and apart where they would overlap."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from os.path import commonprefix
from typing import Any, NamedTuple
from unicodedata import east_asian_width

import polars as pl

_WORD = re.compile(r"[^\W_]+\Z")  # a word that a cut would divide
_LAST = re.compile(r"(?<![^\W_])[^\W\d_][^\W_]*[\W\d_]*\Z")  # it says what a number behind it is
_LEAST = 8  # letters that are worth a cut
LINE = 13  # pixels of a name below another


class Names(NamedTuple):
    """The names that were cut, and a line that says what stands for what."""

    short: Mapping[str, str]
    key: str  # empty if none was cut

    def of(self, name: str) -> str:
        return self.short.get(name, name)

    @property
    def label(self) -> str:
        """Write short names as an expression of Vega."""
        return f"{json.dumps(dict(self.short))}[datum.label] || datum.label"


def short(names: Sequence[str], room: int = 28) -> Names:
    """Cut what all names that are too long have in common, and keep what differs."""
    names = list(dict.fromkeys(names))
    long = [name for name in names if letters(name) > room]
    start = _LAST.sub("", _shared(long))
    end = _shared([name[len(start) :][::-1] for name in long])[::-1]
    cut = {name: name.removeprefix(start).removesuffix(end) for name in long}
    before, after = ("…" if len(part) >= _LEAST else part for part in (start, end))
    cut = {name: _middle(f"{before}{part}{after}", room) for name, part in cut.items()}
    if len({cut.get(name, name) for name in names}) < len(names):
        return Names({}, "")  # two would be one
    shared = [f"{start}…" if before == "…" else "", f"…{end}" if after == "…" else ""]
    return Names(cut, f"… = {' and '.join(filter(None, shared))}" if any(shared) else "")


def letters(text: str) -> int:
    """Return how many letters of a Latin script are as wide."""
    return sum(2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def _shared(names: Sequence[str]) -> str:
    """Return the words that several names begin with."""
    if len(names) < 2:
        return ""
    return _WORD.sub("", commonprefix(list(names)))  # noqa: RUF071  (of letters)


def _middle(name: str, room: int) -> str:
    """Cut the middle of a name that is still too long."""
    half = (room - 1) // (2 if letters(name) == len(name) else 4)
    return name if letters(name) <= room else f"{name[:half]}…{name[-half:]}"


def at_ends(
    table: pl.DataFrame,
    ends: pl.Expr,
    value: str,
    *,
    span: tuple[float, float] | None,
    drawn: Sequence[str] = (),
    height: float,
    names: Names,
    line: str = "system",
) -> pl.DataFrame:
    """Add the names at the ends of lines, ``name`` at ``name_at``, apart within a span.

    Without one, a panel reaches from 0 to the greatest of the ``drawn`` numbers.
    """
    panels: list[pl.DataFrame] = []
    parts = (
        table.partition_by("panel", maintain_order=True) if "panel" in table.columns else [table]
    )
    for rows in parts:
        values = dict(rows.filter(ends).drop_nulls(value).select(line, value).rows())
        greatest: Any = rows.select(pl.max_horizontal(pl.col(*drawn or [value]).max())).item()
        low, high = span or (0.0, float(greatest or 1))
        places = apart(values, LINE * (high - low) / height, low, high)
        name_at = pl.col(line).replace_strict(places, default=None, return_dtype=pl.Float64)
        name_at = pl.when(ends).then(name_at).alias("name_at")
        name = pl.when(name_at.is_not_null()).then(pl.col(line).replace(names.short))
        panels.append(rows.with_columns(name.alias("name"), name_at))
    return pl.concat(panels)


def apart(values: dict[str, float], room: float, low: float, high: float) -> dict[str, float]:
    """Move values apart by at least ``room``, each as little as possible, between two ends."""
    order = sorted(values, key=lambda name: values[name], reverse=True)[::-1]
    blocks: list[list[float]] = []
    for place, name in enumerate(order):
        blocks.append([values[name] - place * room])
        while len(blocks) > 1 and _mean(blocks[-2]) >= _mean(blocks[-1]):
            blocks[-2:] = [blocks[-2] + blocks[-1]]
    starts = [_mean(block) for block in blocks for _ in block]
    most = max(low, high - room * (len(order) - 1))
    return {
        name: min(max(start, low), most) + place * room
        for place, (name, start) in enumerate(zip(order, starts, strict=True))
    }


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
