"""Show the elapsed time of a command on a terminal."""

import contextlib
import sys
import threading
import time
from collections.abc import Generator

_PATIENCE = 2.0  # seconds until the time is shown


@contextlib.contextmanager
def clock(*, quiet: bool = False) -> Generator[None]:
    """Show the elapsed time of a block that takes more than two seconds."""
    if quiet or sys.stderr is None or not sys.stderr.isatty():
        yield
        return
    done, start = threading.Event(), time.monotonic()

    def tick() -> None:
        wait = _PATIENCE
        while not done.wait(wait):
            _show(f"rankframe: {time.monotonic() - start:.0f} s")
            wait = 1
        if wait == 1:
            _show("\x1b[K")

    ticker = threading.Thread(target=tick, daemon=True)
    ticker.start()
    try:
        yield
    finally:
        done.set()
        ticker.join()


def _show(text: str) -> None:
    print(f"\r{text}", end="", file=sys.stderr, flush=True)
