"""Names of segments that no table has: what each counts, and where its bins begin."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rankframe.errors import RankingDataError, option

#: What is counted to put users or items into segments.
MEANINGS: Mapping[str, str] = {
    "activity": "users by their number of items in the history",
    "popularity": "items of the truth by their number of users in the history",
    "relevant_items": "users by their number of relevant items",
}
_BINS = 4
_SPELLING = re.compile(rf"({'|'.join(MEANINGS)})(\(.*)?")


class Segment(NamedTuple):
    """A segment as the caller wrote it, and how it is divided."""

    name: str
    kind: str
    edges: list[int] | None  # the least number of each bin but the first
    bins: int = _BINS


def segment_of(name: str) -> Segment | None:
    """Read ``activity``, with four quantile bins, ``activity(bins=3)`` or ``activity(5,20)``."""
    match = _SPELLING.fullmatch(name)
    if match is None:
        return None
    kind, brackets = match[1], match[2] or f"(bins={_BINS})"
    text = brackets[1:].removesuffix(")").replace(" ", "")
    is_closed = brackets.endswith(")")
    if (number := text.removeprefix("bins=")) != text and number.isdecimal() and int(number):
        edges, bins = None, int(number)
    else:
        edges, bins = [int(edge) if edge.isdecimal() else 0 for edge in text.split(",")], _BINS
    if not is_closed or (edges is not None and (0 in edges or edges != sorted({*edges}))):
        msg = (
            f"by: {name!r} has {'no bins' if is_closed else 'an open bracket'}: write {kind!r} for "
            f"{_BINS} quantile bins, '{kind}(bins=3)' for others, or '{kind}(5,20)' for below 5, "
            "5 to 19 and from 20"
        )
        raise ValueError(msg)
    return Segment(name, kind, edges, bins)


def is_of_items(name: str) -> bool:
    """Whether a name is that of a segment of items, and not of users."""
    segment = segment_of(name)
    return segment is not None and segment.kind == "popularity"


def refuse_segments(names: Sequence[str]) -> None:
    """Raise if a call that makes no segments names one that its table lacks."""
    for name in names:
        if (segment := segment_of(name)) is not None:
            msg = (
                f"{option('by', name)} means {MEANINGS[segment.kind]}, which rf.evaluate, "
                "per_user, summarize, compare, gate and report make, and this call does not: pass "
                "it there, or join a column of your own under another name"
            )
            raise RankingDataError(msg)
