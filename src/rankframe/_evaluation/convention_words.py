"""Conventions in words: what a choice such as ``users="both"`` means, and the names of tools.

A convention maps choices to values: the parameters of a metric by their names, and users,
undefined, average, relevant_at, ties, duplicates, depth, unjudged and ranks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from importlib.resources import files
from typing import Any, TypeAlias

from rankframe._request import parameters

Convention: TypeAlias = Mapping[str, Any]

_plain = partial(str.format, user="user", users="users", item="item", items="items")


@cache
def _templates(part: str) -> Mapping[str, str]:
    """Read a part of the page of words: words of choices, or tools."""
    import tomllib

    page = files("rankframe._evaluation").joinpath("convention_words.toml")
    of_part: dict[str, str] = tomllib.loads(page.read_text(encoding="utf-8"))[part]
    return of_part


def tools(presets: Iterable[str]) -> str:
    """Name presets as their tools are written: ``RecTools, Spark``."""
    return ", ".join(_templates("tools").get(name, name) for name in presets)


def enumeration(texts: Sequence[str]) -> str:
    """Join texts as a sentence does: ``RecTools, Spark and ranx``."""
    return " and ".join([*filter(None, [", ".join(texts[:-1])]), *texts[-1:]])


def departures(convention: Convention, other: Convention) -> Convention:
    """Return the choices of a convention whose values differ from another's."""
    return {name: value for name, value in convention.items() if value != other.get(name)}


def words(convention: Convention, *, write: Callable[..., str] = _plain) -> str:
    """Write each choice of a convention: ``binary gain, over users with a list``."""
    return ", ".join(_words_of(name, value, write) for name, value in convention.items())


def _words_of(name: str, value: object, write: Callable[..., str]) -> str:
    """Write one choice; a value without words as in a label."""
    text, templates = parameters.as_text(value), _templates("words")
    template = templates.get(f"{name}={text}") or templates.get(name) or "{name}={value}"
    return write(template, name=name, value=text)
