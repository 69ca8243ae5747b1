"""Writes the caller's nouns: query and document, say, where the page has user and item."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Collection
from typing import Any, NamedTuple, cast

from rankframe._comparison import sentences
from rankframe._report.tabular import Cell, Grid

_USERS = {r"query|query_id|qid": "query", r"session.*": "session"}
_ITEMS = {r"doc.*": "document", r"passage.*": "passage"}
_NOUN = re.compile(r"([Uu]ser|[Ii]tem)s?|")
_WORD = re.compile(r"^[^\W\d_][\w -]*$")
#: What encloses a name in the text of a page: ``<bdi>`` in HTML, and signs of Unicode in text.
OPEN, CLOSE = "\ue000", "\ue001"
_MARKERS = str.maketrans("", "", OPEN + CLOSE)
#: Fields of a page that are names or data.
_DATA = (
    *("slug", "code", "name", "kind", "user", "key", "values", "history", "missed", "segments"),
    "nouns",
)


def named(text: str) -> str:
    """Enclose a name, which stays as it is, and whose direction moves no text beside it."""
    return f"{OPEN}{plain(text)}{CLOSE}"


def plain(text: str) -> str:
    """Leave out what encloses names."""
    return text.translate(_MARKERS)


def in_text(text: str) -> str:
    """Enclose only names from right to left, by signs of Unicode."""
    return re.sub(f"{OPEN}([^{CLOSE}]*){CLOSE}", lambda name: sentences.isolated(name[1]), text)


class Nouns(NamedTuple):
    """What users and items are called, and the names in the data, which stay as they are."""

    user: str = "user"
    item: str = "item"
    names: Collection[str] = ()

    def write(self, text: str) -> str:
        """Replace the words user and item, and their plurals, outside the names."""
        if (self.user, self.item) == ("user", "item"):
            return text
        # the longest name first; one that is the word alone is known by what encloses it
        names = sorted({*self.names, *map(html.escape, self.names)}, key=len, reverse=True)
        kept = "|".join(re.escape(name) for name in names if not _NOUN.fullmatch(name))
        kept = rf"{OPEN}[^{CLOSE}]*{CLOSE}|" + (rf"(?<!\w)(?:{kept})(?!\w)|" if kept else "")
        word = r"\b(?P<word>[Uu]ser|[Ii]tem)(?P<many>s?)\b"
        return re.sub(kept + word, self._noun, text)

    def _noun(self, match: re.Match[str]) -> str:
        word = match["word"]
        if word is None:
            return match[0]
        noun = self.user if word.lower() == "user" else self.item
        noun = plural(noun) if match["many"] else noun
        return noun[0].upper() + noun[1:] if word[0].isupper() else noun


def nouns_of(
    chosen: tuple[str, str] | None, user: str, item: str, names: Collection[str] = ()
) -> Nouns:
    """Take the caller's nouns, or those that fit the names of the columns."""
    if chosen is None:
        return Nouns(_fitting(user, _USERS, "user"), _fitting(item, _ITEMS, "item"), names)
    words = [] if isinstance(cast("object", chosen), str) else [*map(str, chosen)]
    if len(words) != 2 or not all(map(_WORD.match, words)):
        msg = f"nouns must be two words such as ('query', 'document'), not {chosen!r}"
        raise ValueError(msg)
    return Nouns(words[0], words[1], names)


def _fitting(column: str, patterns: dict[str, str], default: str) -> str:
    lower = column.lower()
    return next((noun for form, noun in patterns.items() if re.fullmatch(form, lower)), default)


def plural(noun: str) -> str:
    """Write the plural of a regular noun."""
    if re.search(r"[^aeiou]y$", noun):
        return f"{noun[:-1]}ies"
    return noun + ("es" if re.search(r"(s|x|z|ch|sh)$", noun) else "s")


def renamed(value: Any, write: Callable[[str], str]) -> Any:
    """Write all text of a page anew, but not its data."""
    if isinstance(value, str):
        return write(value)
    if isinstance(value, Cell) and value.kind == "text data":
        return value
    if isinstance(value, Grid) and value.kind == "lists":
        return value._replace(caption=write(value.caption))
    fields = getattr(cast("Any", value), "_fields", None)
    if fields is not None:
        changed = {
            name: renamed(getattr(value, name), write) for name in fields if name not in _DATA
        }
        return value._replace(**changed)
    if isinstance(value, list | tuple):
        return [renamed(item, write) for item in cast("list[Any]", value)]
    return value
