"""Colors and shapes of systems and verdicts, on light and dark backgrounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

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
    ("#3B1212", "#C9A08C"),
    ("#D052C0", "#FF9CF0"),
    ("#14502A", "#4DB877"),
    ("#10A39E", "#8AF5EC"),
    ("#7E3B5E", "#D58FB5"),
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
_DASH_WORDS = ("solid", "dashed", "dotted", "dashes and dots", "sparse dots", "long dashes")
_NARROW_LEGEND, _NARROW_LABEL = 258, 220  # pixels
LETTER = 6.7  # pixels of a character
MOST_COLORED = 6  # systems with their own colors; if there are more, only the best have one
BEST = 3
_SHORT_NAME = 12  # characters that leave room for a chart beside the legend of a phone
_MOST_LINES = 40  # systems whose names fit in a legend
_DARK = 0.2  # luminance below which a background needs light colors


class Systems(NamedTuple):
    """The systems of a chart in the order of its legend, and where their colors come from."""

    names: Sequence[str]
    column: str | None  # None: a single system without a name
    among: Sequence[str] | None = None  # all systems of a page or a call, in the order of colors
    legend: bool | Mapping[str, Any] = True  # own options, if it is a mapping
    baseline: str | None = None  # it is gray

    @property
    def are_many(self) -> bool:
        return are_many(self.names)

    @property
    def best(self) -> list[str]:
        """Those with a color of their own, if there are many."""
        return [*self.names[:BEST]]

    def places(self, *, distinct: bool = False) -> list[int | None]:
        """Return the place of each among all systems; of many, only the best have one."""
        all_names = list(self.names if self.among is None else self.among)
        all_names = [name for name in all_names if name != self.baseline]
        kept = len(all_names) if distinct or not are_many(all_names) else BEST
        names = [name if name != self.baseline else None for name in self.names]
        places = [None if name is None else all_names.index(name) for name in names]
        return [None if place is None or place >= kept else place for place in places]


def systems_of(
    names: Sequence[str],
    groups: Sequence[str],
    among: Sequence[str] | None = None,
    legend: bool | Mapping[str, Any] = True,  # noqa: FBT001, FBT002  (a legend or its options)
) -> Systems:
    if len(names) > _MOST_LINES:
        msg = (
            f"column {groups[0]!r}: {len(names)} systems, but the legend of a chart has room for "
            f"{_MOST_LINES}: filter the frame"
        )
        raise ValueError(msg)
    return Systems(names, groups[0] if groups else None, among, legend)


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


def are_many(systems: Sequence[str]) -> bool:
    """Return whether only the best systems have their own colors."""
    return len(systems) > MOST_COLORED


def legend_above(systems: Sequence[str]) -> bool | dict[str, Any]:
    """Choose the columns of a legend above or below a narrow chart from its longest name."""
    longest = max(map(len, systems), default=1)
    several = are_many(systems)
    if several and longest <= _SHORT_NAME:
        return True  # beside the chart
    longest = min(longest, int(_NARROW_LABEL // LETTER))
    columns = max(1, int(_NARROW_LEGEND // (LETTER * longest + 34)))
    return {
        "orient": "bottom" if several else "top",
        "direction": "horizontal",
        "columns": min(columns, len(systems)),
        "labelLimit": _NARROW_LABEL,
        "titleLimit": _NARROW_LEGEND,
        "titleAnchor": "start",
        "columnPadding": 8,
    }


def dashes_of(metrics: Sequence[str]) -> str:
    """Write which dashes the lines of each metric have."""
    words = [_DASH_WORDS[place % len(_DASH_WORDS)] for place in range(len(metrics))]
    return "; ".join(f"{word}: {metric}" for word, metric in zip(words, metrics, strict=True))
