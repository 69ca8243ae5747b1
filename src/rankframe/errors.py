"""The exception class, the class of warnings, how to warn, and texts for several readers."""

import inspect
import re
import sys
import threading
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from types import FrameType, MappingProxyType
from typing import Self, TypeAlias

__all__ = ["RankingDataError", "RankingWarning"]


def __dir__() -> list[str]:
    return [*__all__]


_QUOTED = re.compile(r"""(?<!\w)(b?(['"]))((?:\\.|(?!\2).)*)\2""", re.DOTALL)
_MOST_SHOWN = 200  # characters of a text in quotes


def shortened(message: str) -> str:
    """Cut each text in quotes, since an id or a label may have any length."""
    return _QUOTED.sub(_cut, message) if len(message) > _MOST_SHOWN else message


def _cut(quoted: re.Match[str]) -> str:
    before, quote, text = quoted.groups()
    return quoted[0] if len(text) <= _MOST_SHOWN else f"{before}{text[:_MOST_SHOWN]}…{quote}"


_READERS = "polars", "pandas", "command", "toml", "sql"  # toml: a file of the command
_OPEN, _NEXT, _CLOSE, _NAME = "\ufdd0", "\ufdd1", "\ufdd2", "\ufdd3"  # no text has them
_PIECE = re.compile(f"{_OPEN}{_NEXT.join(['(.*?)' for _ in ('', *_READERS)])}{_CLOSE}", re.DOTALL)


def wording(polars: str, *, table: str = "", **others: str) -> str:
    """Return a piece of an error that says something else to the readers of these names."""
    if "command" in others:
        others.setdefault("toml", others["command"])
    pieces = (rendered(others.get(reader, polars), reader) for reader in _READERS)
    return f"{_OPEN}{_NEXT.join([table, *pieces])}{_CLOSE}"


def code(text: str) -> str:
    """Return a piece of an error that only readers of Python see: the others see nothing."""
    return wording(text, command="", sql="")


_IN_CODE = {"judged table": "judged", "human labels": "human"}


def table_code(table: str, polars: str, pandas: str) -> str:
    """Return code on a table, by the kind of frame that it is: ``: truth.unique(…)``."""
    table = _IN_CODE.get(table, table)
    call, of_pandas = f": {_NAME}{polars}", f": {_NAME}{pandas}"
    return wording(call, table=table, pandas=of_pandas, command="", sql="")


def keyword(name: str, end: str = "") -> str:
    """Name a keyword: ``at_least``, which is ``--at-least`` in a command."""
    flag = "the truth as the last file" if name == "truth" else f"--{name.replace('_', '-')}"
    return wording(f"{name}{end}", command=flag, toml=name)


def option(name: str, value: object = ...) -> str:
    """Name a keyword, perhaps with its value: ``by='day'``, which is ``--by day`` in a command.

    A file of the command has keys: ``by = 'day'``.
    """
    if value is ...:
        return keyword(name, "=")
    import shlex

    typed = "" if value is True else f" {shlex.quote('none' if value is None else str(value))}"
    flag = f"{rendered(keyword(name), 'command')}{typed}"
    key = f"{name} = {'true' if value is True else repr(value)}"
    return wording(f"{name}={value!r}", command=flag, toml=key)


def marked(text: object) -> str:
    """Return a text, or that of an error or a warning, with what it says to each reader."""
    own: object = text.args[0] if isinstance(text, Exception) and text.args else text
    return own.marked if isinstance(own, Problem) else str(text)


#: How code calls each table of a call, and whose code it is: "polars" or "pandas".
Tables: TypeAlias = Mapping[str, tuple[str, str]]


def rendered(text: object, reader: str, tables: Tables = MappingProxyType({})) -> str:
    """Return what a text, an error or a warning says to a reader, or to the owner of tables."""

    def said(piece: re.Match[str]) -> str:
        name, of_table = tables.get(piece[1], (piece[1], reader))
        return piece[_READERS.index(of_table) + 2].replace(_NAME, name)

    return shortened(_PIECE.sub(said, marked(text)))


class Problem(str):
    """The text of an error or a warning, with what it says to each reader."""

    __slots__ = ("marked",)
    marked: str

    def __new__(cls, text: object, tables: Tables = MappingProxyType({})) -> Self:
        problem = super().__new__(cls, rendered(text, "polars", tables))
        problem.marked = marked(text)
        return problem


class RankingDataError(ValueError):
    """A table breaks a rule: the message names the table, the column, the rule and a row."""

    def __init__(self, message: str) -> None:
        # a copy is made of a text that is shown as its reader has seen it
        super().__init__(message if isinstance(message, Problem) else Problem(message))


class RankingWarning(UserWarning):
    """A call returns a number that may not mean what it seems to."""


_OURS = {"rankframe", "polars", "contextlib"}  # a decorator of ours is a frame of contextlib
_calls: list[set[str]] = []  # of each call that runs: what it warned of
_thread = threading.local()


@contextmanager
def one_call() -> Generator[None]:
    """Let a call, with the calls that it makes, warn once of one thing."""
    if getattr(_thread, "is_inside", False):
        yield
        return
    messages: set[str] = set()
    _thread.is_inside = True
    _calls.append(messages)
    try:
        yield
    finally:
        _thread.is_inside = False
        _calls[:] = [other for other in _calls if other is not messages]


def warn(message: str) -> None:
    """Warn at the line of the caller, outside of this library and of polars."""
    message = Problem(message)
    if len(_calls) == 1:  # of several at once, polars does not tell which one it answers
        if message in _calls[0]:
            return
        _calls[0].add(message)
    # polars may call from its own thread, while the caller's waits in polars
    waiting = sys._current_frames().values()  # pyright: ignore
    stacks = [inspect.currentframe(), *(top for top in waiting if _is_ours(top))]
    frame = next(filter(None, map(_caller, stacks)), None)
    if frame is None:
        warnings.warn(message, RankingWarning, stacklevel=2)
        return
    names = frame.f_globals
    registry = names.setdefault("__warningregistry__", {})
    module = names.get("__name__", "<unknown>")  # of None, Python warns of nothing
    place = frame.f_code.co_filename, frame.f_lineno, module, registry
    warnings.warn_explicit(message, RankingWarning, *place)


def _is_ours(frame: FrameType) -> bool:
    return str(frame.f_globals.get("__name__")).partition(".")[0] in _OURS


def _caller(frame: FrameType | None) -> FrameType | None:
    """Return the first frame of the stack that is neither ours nor of polars."""
    while frame is not None and _is_ours(frame):
        frame = frame.f_back
    return frame
