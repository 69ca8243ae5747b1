"""Writes numbers as text: of the report, its tables and charts, and the command line."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Context, Decimal
from math import floor, isfinite, log10

DASH = "–"  # where a number is undefined
_MINUS = "\u2212"
_LEVELS = (0.1, 0.05, 0.01)
_HALF_UP = Context(prec=400, rounding=ROUND_HALF_UP)


def fixed(value: float | None, digits: int, absent: str = DASH) -> str:
    """Write a number with as many decimals; one that rounds to 0 has no sign."""
    return absent if value is None else f"{value:z.{digits}f}"


def number(value: float | None, digits: int = 4) -> str:
    """Write a number: four decimals, fewer if it is large."""
    if value is None:
        return DASH
    size = abs(value)
    digits = digits if size < 10 else 2 if size < 1_000 else 1
    return _rounded(value, 0 if isinstance(value, int) else digits)


def _rounded(value: float, digits: int) -> str:
    """Round half up, as charts do; what is not 0 is not written as 0."""
    if not isfinite(value):
        return with_minus(f"{value}")
    if not round(value, 12):  # the last bits of a sum, or -0
        value = 0.0
    elif abs(value) < 0.5 / 10**digits:
        digits = -floor(log10(abs(value)))
    rounded = Decimal(value).quantize(Decimal(1).scaleb(-digits), context=_HALF_UP)
    return with_minus(f"{rounded:,f}")


def with_minus(text: str) -> str:
    """Write the minus sign of a number, in place of a hyphen."""
    return text.replace("-", _MINUS)


def signed(value: float | None, digits: int = 4) -> str:
    """Write a change with its sign."""
    return _with_sign(value, number(value, digits))


def _with_sign(value: float | None, text: str) -> str:
    is_zero = not any(digit in text for digit in "123456789")
    return text if value is None or value < 0 or is_zero else f"+{text}"


def interval(low: float | None, high: float | None, *, sign: bool = False) -> str:
    """Write both ends of an interval; nothing if there is none."""
    if low is None or high is None:
        return ""
    write = signed if sign else number
    return f"{write(low)} to {write(high)}"


def percent(share: float | None, decimals: int | None = None) -> str:
    """Write a share in percent: by default without decimals, unless it is small."""
    if share is None:
        return DASH
    size = abs(share := round(share, 12))
    if decimals is None and 0.995 <= size < 1:  # 100% is all
        share, decimals = floor(1000 * size) / 1000 * (1 if share > 0 else -1), 1
    if decimals is None:
        decimals = 0 if share == 0 or size >= 0.0095 else 1 if size >= 0.00095 else 2
    return f"{_rounded(100 * share, decimals)}%"


def signed_percent(share: float, decimals: int | None = None) -> str:
    """Write a relative change in percent with its sign."""
    return _with_sign(share, percent(share, decimals))


def p_value(p: float | None, absent: str = DASH) -> str:
    """Write a p-value, which is never 0."""
    if p is None:
        return absent
    return "<0.0001" if p < 0.0001 else _beside_levels(p)


def _beside_levels(p: float) -> str:
    """Write a p-value with four decimals, or more if it would read as a level that it is not."""
    digits = range(4, 9 if p not in _LEVELS else 5)
    texts = (f"{p:.{count}f}" for count in digits)
    return next((text for text in texts if float(text) not in _LEVELS), f"{p:.4f}")


def counted(count: int, singular: str, plural: str | None = None) -> str:
    """Write a count and what is counted."""
    return f"{count:,} {singular if count == 1 else plural or singular + 's'}"


def listed(words: Sequence[str]) -> str:
    """Join words: one, two and three."""
    *first, last = words
    return f"{', '.join(first)} and {last}" if first else last
