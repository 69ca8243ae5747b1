"""Show the elapsed time of what takes long, in a notebook or on a terminal."""

import contextlib
import sys
import threading
import time
from collections.abc import Callable, Generator
from importlib import import_module
from typing import Any

_PATIENCE = 2.0  # seconds until the time is shown
_shown = threading.local()  # of nested calls, the outermost shows it

#: Shows a text in the place of the one before; an empty one at the end.
Show = Callable[[str], None]


@contextlib.contextmanager
def clock(*, quiet: bool = False, terminal: bool = False) -> Generator[None]:
    """Show the elapsed time of a block that takes more than two seconds."""
    show = None if quiet or getattr(_shown, "is_on", False) else _place(terminal=terminal)
    if show is None:
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tick() -> None:
        if done.wait(_PATIENCE):
            return
        show(f"rankframe: {time.monotonic() - start:.0f} s")
        while not done.wait(1):
            show(f"rankframe: {time.monotonic() - start:.0f} s")
        show("")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    _shown.is_on = True
    try:
        yield
    finally:
        _shown.is_on = False
        done.set()
        ticker.join()


def _place(*, terminal: bool) -> Show | None:
    """Return what shows a text below a notebook's cell, or on standard error, if it is a terminal.

    A library writes to no terminal: only the command line does.
    """
    if terminal:
        is_seen = sys.stderr is not None and sys.stderr.isatty()
        return _on_terminal if is_seen else None
    ipython = sys.modules.get("IPython")
    if ipython is None or getattr(ipython.get_ipython(), "kernel", None) is None:
        return None
    return _below_cell()


def _on_terminal(text: str) -> None:
    print(f"\r{text or chr(27) + '[K'}", end="", file=sys.stderr, flush=True)  # noqa: T201


def _below_cell() -> Show:
    display: Any = import_module("IPython.display").display
    places: list[Any] = []

    def show(text: str) -> None:
        data = {"text/plain": text}
        if places:
            places[0].update(data, raw=True)
        else:
            places.append(display(data, raw=True, display_id=True))

    return show
