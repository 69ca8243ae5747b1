"""What calls refuse: each error as the golden file ``tests/<room>/errors.txt`` says it.

``pytest tests/<room> --golden`` writes the file again; a person reads what changed.
"""

import functools
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import rankframe as rf

_written: dict[Path, dict[str, list[str]]] = {}


def golden_file(path: Path) -> Path:
    return path.with_name("errors.txt")


@functools.cache
def golden(file: Path) -> dict[str, list[str]]:
    """Read the errors of each test."""
    found: dict[str, list[str]] = {}
    for part in file.read_text("utf-8").split("\n## ")[1:] if file.exists() else []:
        name, *errors = part.rstrip("\n").split("\n> ")
        found[name] = errors
    return found


@pytest.fixture
def refused(request: pytest.FixtureRequest) -> Iterator[Callable[..., None]]:
    """Give a function that makes a call, and holds its error against the golden text."""
    said: dict[str, None] = {}  # what several verbs say alike stands once
    name = re.sub(r"\s", " ", f"{request.path.name}::{request.node.name}")

    def call(function: Callable[..., Any], /, *args: Any, **options: Any) -> None:
        with pytest.raises((rf.RankingDataError, ValueError, TypeError)) as error:
            function(*args, **options)
        text = str(error.value)
        if "tmp_path" in request.fixturenames:
            text = text.replace(str(request.getfixturevalue("tmp_path")), "TMP")
        text = re.sub(rf"{tempfile.gettempdir()}/tmp\w+|/dev/fd/\d+", "TMP", text)
        text = re.sub(r"0x[0-9A-F]+", "0x…", text)
        said[f"{type(error.value).__name__}: {text}"] = None

    yield call
    file = golden_file(request.path)
    if request.config.getoption("--golden"):
        _written.setdefault(file, {})[name] = [*said]
    else:
        assert [*said] == golden(file).get(name), (
            "pytest --golden writes the errors of a room again"
        )


def _function(name: str) -> str:
    return name.partition("::")[2].partition("[")[0]


def write() -> None:
    """Write the golden files: what ran, and what did not run but is still there."""
    for file, ran in _written.items():
        source = "".join(path.read_text("utf-8") for path in file.parent.glob("test_*.py"))
        functions = {_function(name) for name in ran}
        kept = {
            name: errors
            for name, errors in golden(file).items()
            if _function(name) not in functions and f"def {_function(name)}(" in source
        }
        tests = kept | ran
        parts = ["\n> ".join([f"## {name}", *tests[name]]) for name in sorted(tests)]
        file.write_text("What calls are refused with.\n\n" + "\n".join(parts) + "\n", "utf-8")
