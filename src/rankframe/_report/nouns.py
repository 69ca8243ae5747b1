"""Writes the caller's nouns: query and document, say, where the page has user and item."""

from __future__ import annotations

import re
from typing import cast

from rankframe._comparison import sentences
from rankframe._comparison.notes import Nouns

_USERS = {r"query|query_id|qid": "query", r"session.*": "session"}
_ITEMS = {r"doc.*": "document", r"passage.*": "passage"}
_WORD = re.compile(r"^[^\W\d_][\w -]*$")
#: What encloses a name in the text of a page: ``<bdi>`` in HTML, and signs of Unicode in text.
OPEN, CLOSE = "\ue000", "\ue001"
_MARKERS = str.maketrans("", "", OPEN + CLOSE)


def named(text: str) -> str:
    """Enclose a name, which stays as it is, and whose direction moves no text beside it."""
    return f"{OPEN}{plain(text)}{CLOSE}"


def plain(text: str) -> str:
    """Leave out what encloses names."""
    return text.translate(_MARKERS)


def in_text(text: str) -> str:
    """Enclose only names from right to left, by signs of Unicode."""
    return re.sub(f"{OPEN}([^{CLOSE}]*){CLOSE}", lambda name: sentences.isolated(name[1]), text)


def nouns_of(chosen: tuple[str, str] | None, user: str, item: str) -> Nouns:
    """Take the caller's nouns, or those that fit the names of the columns."""
    if chosen is None:
        return Nouns(_fitting(user, _USERS, "user"), _fitting(item, _ITEMS, "item"))
    words = [] if isinstance(cast("object", chosen), str) else [*map(str, chosen)]
    if len(words) != 2 or not all(map(_WORD.match, words)):
        msg = f"nouns must be two words such as ('query', 'document'), not {chosen!r}"
        raise ValueError(msg)
    return Nouns(words[0], words[1])


def _fitting(column: str, patterns: dict[str, str], default: str) -> str:
    lower = column.lower()
    return next((noun for form, noun in patterns.items() if re.fullmatch(form, lower)), default)
