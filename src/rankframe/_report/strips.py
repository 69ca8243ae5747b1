"""Writes a difference with its interval, and draws it: on the card, and in the rows of tables."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from math import ceil, floor, log10
from typing import Any, NamedTuple

from rankframe._comparison import numerals

_MOST = 10  # a relative change beyond it says nothing: the raw one is written
_MOST_DECIMALS = 6
_PAD = 0.1  # of an axis, beyond what it shows
_LEAST_STEP = 0.24  # of an axis between two ticks, so that their texts do not touch on a phone
_EDGE = 7  # percent of the width where a text does not fit on both sides of its place


class Change(NamedTuple):
    """A difference, or another number, and its interval, in percent or as they are."""

    value: float
    low: float | None
    high: float | None
    in_percent: bool
    decimals: int | None  # that show two digits of the interval's half-width
    what: str = "difference"
    has_sign: bool = True
    margin: float | None = None  # on both sides of 0

    def write(self, value: float, *, sign: bool = True) -> str:
        """Write a number of this unit."""
        if self.in_percent:
            return (numerals.signed_percent if sign else numerals.percent)(value, self.decimals)
        return (numerals.signed if sign else numerals.number)(value, self._digits)

    @property
    def text(self) -> str:
        return self.write(self.value, sign=self.has_sign)

    @property
    def size(self) -> str:
        return self.write(abs(self.value), sign=False)

    @property
    def ends(self) -> tuple[str, str] | None:
        """Both ends of the interval, with signs unless both are gains."""
        if self.low is None or self.high is None:
            return None
        sign = self.low < 0 or self.value < 0
        return self.write(self.low, sign=sign), self.write(self.high, sign=sign)

    @property
    def heard(self) -> str:
        """The description of a strip."""
        ends = "" if self.ends is None else f", interval {' to '.join(self.ends)}"
        margin = "" if self.margin is None else f", margin {self.write(self.margin, sign=False)}"
        return f"{self.what} {self.text}{ends}{margin}"

    @property
    def _digits(self) -> int:
        return 4 if self.decimals is None else self.decimals


class Axis(NamedTuple):
    """The range of strips below each other, and its ticks with their texts."""

    low: float
    high: float
    ticks: Sequence[tuple[float, str]]
    step: float  # between two ticks, of which the range may have one alone

    def place(self, value: float) -> float:
        """Return where a value is, in percent of the width; at an end if it is beyond it."""
        return round(min(100, max(0, 100 * (value - self.low) / (self.high - self.low))), 2)


def change_of(row: Mapping[str, Any], *, in_percent: bool = True) -> Change | None:
    """Return the difference of a row of a comparison; None if it has none.

    It is in percent if that says something: not of a baseline of 0, and not beyond ±1000%.
    An end below −100% comes from an uncertain baseline.
    """
    if row["difference"] is None:
        return None
    low, high, share = row["ci_low"], row["ci_high"], row["relative"]
    least, most = row["relative_low"], row["relative_high"]
    has_ends = low is not None or high is not None
    if in_percent and share is not None and row["baseline_mean"] > 0:
        says = min(share, least or 0) >= -1 and max(share, most or 0) <= _MOST
        if says and (least is not None or not has_ends):
            return Change(share, least, most, in_percent=True, decimals=_decimals(least, most, 100))
    decimals = _decimals(low, high, 1)
    return Change(row["difference"], low, high, in_percent=False, decimals=decimals)


def number_of(
    value: float, low: float | None, high: float | None, what: str, *, has_sign: bool = False
) -> Change:
    """Return another number with its interval, such as a mean."""
    decimals = _decimals(low, high, 1)
    return Change(
        value, low, high, in_percent=False, decimals=decimals, what=what, has_sign=has_sign
    )


def _decimals(low: float | None, high: float | None, unit: int) -> int | None:
    half = 0.0 if low is None or high is None else unit * (high - low) / 2
    return min(_MOST_DECIMALS, max(0, 1 - floor(log10(half)))) if half > 0 else None


def axis_of(changes: Iterable[Change], *, most: float | None = None, pad: float = _PAD) -> Axis:
    """Return an axis with 0 that shows changes of one unit, at most as far as ``most``."""
    changes = [*changes]
    shown = [0.0]
    for change in changes:
        margins = () if change.margin is None else (-change.margin, change.margin)
        values = (change.value, change.low, change.high, *margins)
        shown += [value for value in values if value is not None]
    if most is not None:
        shown = [min(most, max(-most, value)) for value in shown]
    low, high = min(shown), max(shown)
    beyond = pad * (high - low) or 1.0
    low, high = low - beyond, high + beyond
    unit = 100 if any(change.in_percent for change in changes) else 1
    step = _step(_LEAST_STEP * (high - low) * unit) / unit
    decimals = max(0, -floor(log10(step * unit) + 1e-9))
    ticks: list[tuple[float, str]] = []
    for place in range(ceil(low / step), floor(high / step) + 1):
        sign = "+" * any(change.has_sign for change in changes)
        text = f"{place * step * unit:{sign},.{decimals}f}" + "%" * (unit > 1)
        ticks.append((place * step, numerals.with_minus(text) if place else "0"))
    return Axis(low, high, ticks, step)


def _step(least: float) -> float:
    """Return the smallest round number that is not below one."""
    power = 10.0 ** floor(log10(least))
    return power * next((factor for factor in (1, 2, 5) if factor * power >= least), 10)


def strip(
    change: Change, axis: Axis, kind: str = "", *, large: bool = False, direction: int = 0
) -> str:
    """Draw an interval as SVG, as wide as its box: its places are in percent, its texts are not.

    A large one has the axis, the change as text and, by the direction that is better, two colors.
    """
    zero, point = axis.place(0), axis.place(change.value)
    top, middle, radius, height = (12, 27, 8, 62) if large else (0, 9, 4.5, 18)
    parts: list[str] = []
    if large and direction:
        left, right = ("bad", "good") if direction > 0 else ("good", "bad")
        parts += [_band(left, 0, zero), _band(right, zero, 100)]
    parts.append(_line("zero", zero, zero, top, 2 * middle - top))
    for side in () if change.margin is None else (-change.margin, change.margin):
        parts.append(_line("margin", axis.place(side), axis.place(side), top, 2 * middle - top))
    if change.low is not None and change.high is not None:
        ends = axis.place(change.low), axis.place(change.high)
        parts.append(_line("ends", *ends, middle, middle))
        parts += [_arrow(0, middle)] * (change.low < axis.low)
        parts += [_arrow(100, middle)] * (change.high > axis.high)
    parts.append(f'<circle cx="{point}%" cy="{middle}" r="{radius}"/>')
    if large:
        parts += [_text(point, 9, change.text, "value"), *_texts(axis, height - 3, "no change")]
    return (
        f'<svg class="strip {kind}" width="100%" height="{height}" role="img" '
        f'aria-label="{html.escape(change.heard)}">{"".join(parts)}</svg>'
    )


def scale(axis: Axis) -> str:
    """Draw the ticks of an axis, for the head of a column of strips."""
    texts = "".join(_texts(axis, 12, "0"))
    return f'<svg class="strip" width="100%" height="16" aria-hidden="true">{texts}</svg>'


def _texts(axis: Axis, y: int, zero: str) -> list[str]:
    return [_text(axis.place(at), y, text if at else zero) for at, text in axis.ticks]


def _text(place: float, y: int, text: str, kind: str = "") -> str:
    anchor = "start" if place < _EDGE else "end" if place > 100 - _EDGE else "middle"
    name = f' class="{kind}"' if kind else ""
    return f'<text{name} x="{place}%" y="{y}" text-anchor="{anchor}">{html.escape(text)}</text>'


def _line(kind: str, x1: float, x2: float, y1: float, y2: float) -> str:
    return f'<line class="{kind}" x1="{x1}%" x2="{x2}%" y1="{y1:g}" y2="{y2:g}"/>'


def _band(kind: str, low: float, high: float) -> str:
    return f'<rect class="{kind}" x="{low}%" y="14" width="{round(high - low, 2)}%" height="26"/>'


def _arrow(place: float, y: int) -> str:
    """Draw that an interval goes on beyond the axis."""
    way = 1 if place else -1
    path = f'<path d="M{-7 * way},-5 L0,0 L{-7 * way},5"/>'
    return f'<svg x="{place:g}%" y="{y}" overflow="visible">{path}</svg>'
