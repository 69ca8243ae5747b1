"""Errors of the workers, as the library's own, and what their Python lacks."""

from __future__ import annotations

import contextlib
import functools
import re
import shutil
import subprocess
import sys
from collections.abc import Generator

from pyspark import SparkContext
from pyspark.errors import PythonException
from pyspark.sql import SparkSession

from rankframe.errors import RankingDataError


@contextlib.contextmanager
def plain_errors() -> Generator[None, None, None]:
    """
    Raise a worker's error about bad data as ``RankingDataError``, with Spark's error as its cause.

    Raises
    ------
    RankingDataError
        If Spark, computing a result of ``judge`` or ``per_user``, finds a row that breaks a rule.
    ModuleNotFoundError
        If the Python of Spark's workers lacks rankframe, Polars or PyArrow.

    Examples
    --------
    >>> run = spark.createDataFrame([(1, 7, 0)], "user int, item int, rank int")
    >>> values = rankframe.spark.per_user(run, "rr", truth=pl.DataFrame({"user": [1], "item": [7]}))
    >>> with rankframe.spark.plain_errors():
    ...     values.show()
    Traceback (most recent call last):
        ...
    rankframe.errors.RankingDataError: run, column 'rank': a rank that is not an integer ≥ 1: \
ranks start at 1; add 1 if yours start at 0. Offending row: user=1, item=7, rank=0
    """
    try:
        yield
    except PythonException as error:
        name = re.escape(f"{RankingDataError.__module__}.{RankingDataError.__qualname__}")
        if line := re.search(rf"^{name}: (.*)$", str(error), re.MULTILINE):
            raise RankingDataError(line[1]) from error
        if lacks := _LACKS.search(str(error)):
            raise _not_on_the_workers(lacks[1]) from error
        raise


_LACKS = re.compile(r"No module named '(rankframe|polars|pyarrow)\b")


def _not_on_the_workers(module: str, python: str = "") -> ModuleNotFoundError:
    """Make the error of workers whose Python lacks a module."""
    path = f", {python}," if python else ""
    msg = (
        f"the Python of Spark's workers{path} has no module {module!r}: before the session "
        "starts, set the environment variable PYSPARK_PYTHON to a Python that has it, on one "
        f"machine os.environ['PYSPARK_PYTHON'] = {sys.executable!r}; on a cluster, install "
        "rankframe[spark] on every worker, or send an environment with spark.archives"
    )
    return ModuleNotFoundError(msg, name=module)


def check_workers(session: SparkSession) -> None:
    """Check that workers on this machine find rankframe; elsewhere only a job shows it."""
    context = getattr(session, "sparkContext", None)  # Spark Connect has none
    if context is None or not str(context.master).startswith("local") or _sends_files(context):
        return
    if shutil.which(context.pythonExec) == sys.executable:
        return
    if lacking := _lacking(context.pythonExec):
        raise _not_on_the_workers(lacking, context.pythonExec)


def _sends_files(context: SparkContext) -> bool:
    """Whether a session sends Python files to its workers, which may have the modules."""
    return bool(getattr(context, "_python_includes", ()))


@functools.cache  # a start of Python takes 20 ms
def _lacking(python: str) -> str | None:
    """Name the module that a Python lacks; None if it has all, or does not start."""
    code = (
        "import importlib.util as u\n"
        "print(next((n for n in ('rankframe', 'polars', 'pyarrow') if not u.find_spec(n)), ''))"
    )
    try:
        process = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return process.stdout.strip() or None
