"""Colors and shapes of systems and verdicts, on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import polars as pl

from rankframe.plot import _names
from rankframe.plot._names import Names

#: a color on a light background, and on a dark one
Pair: TypeAlias = tuple[str, str]

INK: Pair = ("#1A1A1A", "#F2F2F2")
GRAY: Pair = ("#666666", "#BDBDBD")
BASELINE: Pair = ("#707070", "#888888")  # between the dark and the light colors
REST: Pair = ("#8C8C8C", "#9C9C9C")  # systems that are not among the best of many
PALE: Pair = ("#E4E4E4", "#4C4C4C")  # grids and areas behind the data
USERS: Pair = ("#5A7896", "#9DB8D6")
#: of systems: neighbors differ in lightness, and so from each other and from the baseline's gray
#: under all common forms of color blindness; shapes differ, too. Blue and orange are the verdicts'.
COLORS: tuple[Pair, ...] = (
    ("#4A1F8A", "#A98BFF"),
    ("#A39400", "#F2E85C"),
    ("#14502A", "#4DB877"),
    ("#D052C0", "#FF9CF0"),
    ("#7E3B5E", "#D58FB5"),
    ("#10A39E", "#8AF5EC"),
    ("#5F7F00", "#B4D65A"),
)
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
#: of verdicts: a pair that survives color blindness, and no color of a system
_BETTER, _WORSE = ("#0060A8", "#6FB7F5"), ("#C24E00", "#FF9A5A")
VERDICTS: Mapping[str, tuple[Pair, str]] = {
    "better": (_BETTER, "triangle-up"),
    "higher": (_BETTER, "triangle-up"),
    "not worse": (("#4C6A8C", "#A9C3E0"), "diamond"),
    "equivalent": (("#1A1A1A", "#F2F2F2"), "square"),
    "undecided": (GRAY, "circle"),
    "worse": (_WORSE, "triangle-down"),
    "worse, by less than the margin": (_WORSE, "triangle-down"),
    "lower": (_WORSE, "triangle-down"),
}
_MARKS = {"triangle-up": "▲", "triangle-down": "▼"}
DASHES = ([1, 0], [6, 3], [2, 2], [8, 2, 2, 2], [1, 3], [12, 3])
MOST_COLORED = 6  # systems with their own colors; if there are more, only the best have one
BEST = 3
_MOST_LINES = 40  # systems whose names fit beside a chart
_DARK = 0.2  # luminance below which a background needs light colors


class Systems(NamedTuple):
    """The systems of a chart, in the caller's order."""

    names: Sequence[str]
    column: str | None  # None: a single system without a name
    best: Sequence[str] = ()  # of many, those with a color of their own
    baseline: str | None = None  # it is gray

    @property
    def are_many(self) -> bool:
        return len(self.names) > MOST_COLORED

    @property
    def short(self) -> Names:
        return _names.short(self.names)

    def height(self, least: int) -> int:
        """Return the pixels of a frame that has room for all names beside it."""
        return max(least, _names.LINE * len(self.names))

    def places(self) -> list[int | None]:
        """Return the place of each in the order of colors; of many, only the best have one."""
        colored = self.best if self.are_many else self.names
        order = [name for name in colored if name != self.baseline]
        return [order.index(name) if name in order else None for name in self.names]


def systems_of(
    table: pl.DataFrame,
    groups: Sequence[str],
    value: str,
    *,
    higher_is_better: bool | None,
) -> Systems:
    """Take the systems of a table in its order; of many, the best by a value have a color."""
    names: list[str] = table["system"].unique(maintain_order=True).to_list()
    if len(names) > _MOST_LINES:
        msg = (
            f"column {groups[0]!r}: {len(names)} systems, but a chart has room for the names of "
            f"{_MOST_LINES}: filter the frame"
        )
        raise ValueError(msg)
    means = table.group_by("system", maintain_order=True).agg(pl.col(value).mean())
    down = higher_is_better is not False
    best = means.sort(value, descending=down, nulls_last=True, maintain_order=True)["system"]
    return Systems(names, groups[0] if groups else None, best.head(BEST).to_list())


def mark_of(verdict: object) -> str:
    """Return the mark of a verdict in text; none for one that shows no difference."""
    return _MARKS.get(VERDICTS[str(verdict)][1], "") if verdict in VERDICTS else ""


def all_pairs() -> dict[str, str]:
    """Map each color on a light background to that on a dark one."""
    verdicts = [pair for pair, _ in VERDICTS.values()]
    return dict([*COLORS, INK, GRAY, BASELINE, REST, PALE, USERS, *verdicts])


def ink(pair: Pair) -> Any:
    """Choose the color that is visible on the background of the theme."""
    return {"expr": f"luminance(background) < {_DARK} ? '{pair[1]}' : '{pair[0]}'"}
