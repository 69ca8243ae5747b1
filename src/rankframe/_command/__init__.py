"""Run rankframe from the command line, on files: printed tables, or files."""

import contextlib
import sys
from collections.abc import Generator, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader


class _LazyFinder:
    """Find modules of rooms, which run when one of their names is first used."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, _target: object = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path) if name.startswith("rankframe._") else None
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec


@contextlib.contextmanager
def imported_when_used() -> Generator[None]:
    """Import in this block only what is used: a command needs a third of the modules."""
    sys.meta_path.insert(0, _LazyFinder)
    try:
        yield
    finally:
        sys.meta_path.remove(_LazyFinder)
