"""TREC text files: runs (``user Q0 item rank score tag``) and qrels (``user 0 item relevance``).

Fields are parted by any spaces and tabs. The rank column of a run is dropped, as in trec_eval:
the score counts. Blank lines and lines that begin with ``#`` are passed over.
"""

import os
from pathlib import Path
from typing import TypeAlias

import polars as pl

from rankframe.checks import guarded
from rankframe.errors import RankingDataError

Source: TypeAlias = str | os.PathLike[str]

_RUN = r"^\x{feff}?\s*(?<user>\S+)\s+\S+\s+(?<item>\S+)\s+\S+\s+(?<score>\S+)(?:\s+\S+)?\s*$"
_QRELS = r"^\x{feff}?\s*(?<user>\S+)\s+\S+\s+(?<item>\S+)\s+(?<relevance>\S+)\s*$"
_PASSED_OVER = r"^\x{feff}?\s*(?:#.*)?$"


def scan_run(source: Source) -> pl.LazyFrame:
    """
    Scan a TREC run file.

    Parameters
    ----------
    source
        Path of the file.

    Returns
    -------
    LazyFrame
        user (String), item (String), score (Float64).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    RankingDataError
        When the plan runs, if a line is no line of a run; the message has the line's number.
    """
    return _scan(source, _RUN, "score", pl.Float64, "user Q0 item rank score tag")


def scan_qrels(source: Source) -> pl.LazyFrame:
    """
    Scan a TREC qrels file.

    Parameters
    ----------
    source
        Path of the file.

    Returns
    -------
    LazyFrame
        user (String), item (String), relevance (Int64).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    RankingDataError
        When the plan runs, if a line is no line of qrels; the message has the line's number.
    """
    return _scan(source, _QRELS, "relevance", pl.Int64, "user 0 item relevance (a whole number)")


def read_run(source: Source) -> pl.DataFrame:
    """Read a TREC run file; see :func:`scan_run`."""
    return scan_run(source).collect()


def read_qrels(source: Source) -> pl.DataFrame:
    """Read a TREC qrels file; see :func:`scan_qrels`."""
    return scan_qrels(source).collect()


def _scan(
    source: Source, pattern: str, value: str, dtype: type[pl.DataType], form: str
) -> pl.LazyFrame:
    path = Path(source)
    if not path.is_file():
        msg = f"no such file: {path}"
        raise FileNotFoundError(msg)
    lines = pl.scan_lines(path, row_index_name="number", row_index_offset=1, glob=False)
    lines = lines.filter(~pl.col("line").str.contains(_PASSED_OVER))
    rows = lines.with_columns(pl.col("line").str.extract_groups(pattern).alias("fields"))
    rows = rows.unnest("fields").with_columns(pl.col(value).cast(dtype, strict=False))
    bad = rows.filter(pl.col(value).is_null())

    def explain() -> None:
        number, line = bad.select("number", "line").head(1).collect().row(0)
        msg = f"{path.name}, line {number}: it is not of the form '{form}': {line!r}"
        raise RankingDataError(msg)

    return guarded(rows.select("user", "item", value), [bad.select(suspect=pl.len() > 0)], explain)
