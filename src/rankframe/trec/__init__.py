"""TREC text files: runs (``user Q0 item rank score tag``) and qrels (``user 0 item relevance``).

Fields are separated by any spaces and tabs. The rank column of a run is ignored, as in trec_eval,
and the score is used. Blank lines and lines that begin with ``#`` are skipped. Files may be
compressed with gzip or zstd, whatever their name, and are read piece by piece. Pipes and binary
file objects are read once, to their end.

Two other kinds of files can be read: files with a header, such as BEIR's (``query-id corpus-id
score``), and files without one, such as MS MARCO's runs (``fields=["user", "item", "rank"]``).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Unpack, cast

import polars as pl

from rankframe import _rooms
from rankframe._inputs.judgment_files import read_judgments
from rankframe._request import keywords, wrong_keywords
from rankframe._request.keywords import Columns, RunColumns, TruthColumns
from rankframe._request.types import Frame, Truth
from rankframe._tables import adapters, readers, repeated_items, rules, verbs
from rankframe._tables.rank_order import Ties
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.trec import _formats, _lines
from rankframe.trec._lines import Source, Target

__all__ = ["read_judgments", "read_qrels", "read_run", "scan_qrels", "scan_run", "write_qrels"]
__all__ += ["write_run"]

_rooms.open_door(__name__)


@wrong_keywords.checked
def scan_run(
    source: Source, *, fields: Sequence[str] | None = None, **columns: Unpack[RunColumns]
) -> pl.LazyFrame:
    """
    Scan a TREC run file, plain or compressed with gzip or zstd.

    Parameters
    ----------
    source
        Path of a file or pipe (``/dev/stdin``, a named pipe), or a file object open in binary
        mode (``sys.stdin.buffer``), which stays open.
    fields
        Names of all fields of a line, for a file of another kind without a header, such as
        ``["user", "item", "rank"]`` for a run of MS MARCO.
    **columns
        ``user=``, ``item=``, ``rank=``, ``score=``: the fields or the columns of a header that
        play these roles, if they have other names. Without ``fields`` the file must have a header.

    Returns
    -------
    LazyFrame
        user (String), item (String), score (Float64), in the order of the lines. For a file with a
        header or ``fields``, the columns of the file: a rank is Int64, and columns without a role
        are String. A regular file is read when the plan runs. A pipe, a device or a file object can
        be read only once, so the call reads it to its end, and the LazyFrame holds its rows in
        memory.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    IsADirectoryError
        If the path is a directory.
    TypeError
        If the source is neither a path nor a file object open for reading in binary mode, or
        ``fields`` is not a list of names.
    ValueError
        If ``fields`` misses a role.
    RankingDataError
        When the plan runs, or at the call if the call reads the source: if a line is not a line of
        a run (the error has its number), or the file cannot be decompressed. At the call: if a line
        has three fields without names, because the third may be the rank or the score, or if the
        first line is not the header that ``columns`` requires.

    Notes
    -----
    Reads ``user Q0 item rank score tag``, separated by any spaces and tabs. The tag may be missing,
    and words after it are ignored, as in trec_eval. A line of a plain or gzip file must be shorter
    than 4 MB. Polars decompresses zstd files, and holds their longest line in memory.

    A first line with the names of user and item is a header, unless it is also a line of a TREC run
    and no column is named. Fields with names are separated by tabs, commas or whitespace: the first
    of these that yields all names. Fields between tabs or commas may be quoted as in CSV, but must
    not contain a line break.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "a.run").write_text("q1 Q0 d7 1 0.5 bm25")
    ...     trec.scan_run(Path(folder, "a.run")).collect()
    shape: (1, 3)
    ┌──────┬──────┬───────┐
    │ user ┆ item ┆ score │
    │ ---  ┆ ---  ┆ ---   │
    │ str  ┆ str  ┆ f64   │
    ╞══════╪══════╪═══════╡
    │ q1   ┆ d7   ┆ 0.5   │
    └──────┴──────┴───────┘
    """
    return _lines.scan_text(source, "run", fields=fields, columns=cast("dict[str, str]", columns))


@wrong_keywords.checked
def scan_qrels(
    source: Source,
    *,
    subtopics: bool = False,
    fields: Sequence[str] | None = None,
    **columns: Unpack[TruthColumns],
) -> pl.LazyFrame:
    r"""
    Scan a file of TREC qrels or of BEIR, plain or compressed with gzip or zstd.

    Parameters
    ----------
    source
        Path of a file or pipe (``/dev/stdin``, a named pipe), or a file object open in binary mode
        (``sys.stdin.buffer``), which stays open.
    subtopics
        Read the second word of a line as the ``subtopic`` of the item, as in diversity tasks.
    fields
        Names of all fields of a line, for a file of another kind without a header, such as
        ``["user", "item", "rank"]`` for a run of MS MARCO.
    **columns
        ``user=``, ``item=``, ``relevance=``, ``subtopic=``: the fields or the columns of a header
        that play these roles, if they have other names. BEIR's names ``query-id``, ``corpus-id``
        and ``score`` are known.

    Returns
    -------
    LazyFrame
        user (String), item (String), with ``subtopics`` subtopic (String), and relevance (Int64),
        in the order of the lines. For a file with a header or ``fields``, the columns of the file;
        columns without a role are String. The call reads anything but a regular file, as in
        :func:`scan_run`.

    Raises
    ------
    FileNotFoundError
        If the file does not exist.
    IsADirectoryError
        If the path is a directory.
    TypeError
        If the source is neither a path nor a file object open for reading in binary mode, or
        ``fields`` is not a list of names.
    ValueError
        If ``fields`` misses a role.
    RankingDataError
        When the plan runs, or at the call if the call reads the source: if a line is not a line of
        qrels (the error has its number), or the file cannot be decompressed. At the call: if the
        first line is not the header that ``columns`` requires.

    Notes
    -----
    Reads ``user 0 item relevance``, separated by any spaces and tabs. The second word is a subtopic
    only in the qrels of diversity tasks. Lines of three words are ``user item relevance`` if the
    third is an integer of up to three digits on each of the first lines. A header, and fields with
    names, are as in :func:`scan_run`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "test.tsv").write_text("query-id\tcorpus-id\tscore\nq1\td7\t2")
    ...     trec.scan_qrels(Path(folder, "test.tsv")).collect()
    shape: (1, 3)
    ┌──────┬──────┬───────────┐
    │ user ┆ item ┆ relevance │
    │ ---  ┆ ---  ┆ ---       │
    │ str  ┆ str  ┆ i64       │
    ╞══════╪══════╪═══════════╡
    │ q1   ┆ d7   ┆ 2         │
    └──────┴──────┴───────────┘
    """
    keywords.check_switch("subtopics", subtopics)
    roles = cast("dict[str, str]", columns)
    return _lines.scan_text(source, "truth", subtopics=subtopics, fields=fields, columns=roles)


@wrong_keywords.checked
def read_run(
    source: Source, *, fields: Sequence[str] | None = None, **columns: Unpack[RunColumns]
) -> pl.DataFrame:
    """Read a TREC run file, pipe or binary file object; see :func:`scan_run`."""
    return scan_run(source, fields=fields, **columns).collect()


@wrong_keywords.checked
def read_qrels(
    source: Source,
    *,
    subtopics: bool = False,
    fields: Sequence[str] | None = None,
    **columns: Unpack[TruthColumns],
) -> pl.DataFrame:
    """Read a file, pipe or binary file object of TREC qrels or of BEIR; see :func:`scan_qrels`."""
    return scan_qrels(source, subtopics=subtopics, fields=fields, **columns).collect()


@adapters.takes_any_frame
def write_run(
    run: Frame,
    path: Target,
    *,
    tag: str = "rankframe",
    duplicates: Literal["error", "first"] = "error",
    **columns: Unpack[Columns],
) -> None:
    """
    Write a TREC run file.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and score or rank. A row without a score (null
        or NaN), or without a rank if the run has ranks, was not retrieved and is left out.
    path
        Path of the file. The ending ``.gz`` compresses it with gzip, ``.zst`` or ``.zstd`` with
        zstd.
    tag
        Name of the run, one word.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up.
    **columns
        ``user=``, ``item=``, ``rank=``, ``score=``: the columns that play these roles, if they
        have other names.

    Raises
    ------
    RankingDataError
        If an id is not a word that TREC files can hold, different scores are equal as 64-bit
        floats, or the ranks differ from those that a reader of the file derives from the scores.
    ValueError
        If the tag is not one word.

    Notes
    -----
    Rows keep their order. Scores are written as 64-bit floats with all their digits, so
    :func:`read_run` returns the same numbers. Ids are written as text: integer ids with equal
    scores, which are ordered by value in memory, are ordered as text in the file. A run with ranks
    but no scores gets −rank as its score.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "score": [0.1, 0.25]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trec.write_run(run, Path(folder, "a.run"), tag="bm25")
    ...     print(Path(folder, "a.run").read_text(), end="")
    1 Q0 7 2 0.1 bm25
    1 Q0 8 1 0.25 bm25
    """
    if not isinstance(cast("object", tag), str) or tag.split() != [tag]:
        msg = f"tag must be one word, not {tag!r}"
        raise ValueError(msg)
    keywords.check_choice("duplicates", duplicates, ("error", "first"))
    table = readers.read("run", adapters.to_lazy(run, "run").collect(), (), columns)
    table = repeated_items.once(table, duplicates)
    rules.raise_in_tables([table])
    rank = pl.lit(None) if table.rank is None else rules.as_rank(table.rank)
    scored = table.score or "score"
    score = pl.col(scored) if scored in table.schema else -rank
    lists = table.frame.select(*_words(table), score=score, own_rank=rank)
    if table.rank is not None:
        lists = lists.filter(pl.col("own_rank").is_not_null())
    ties: Ties = "expected" if table.tied else "item"
    ranked = verbs.with_rank(lists, ties=ties).collect()
    _check_order(ranked, table)
    if not table.schema.get(scored, pl.Float64()).is_float():
        as_read = lists.with_columns(pl.col("score").cast(pl.Float64))
        _check_digits(ranked, verbs.with_rank(as_read, ties=ties).collect(), scored)
    listed = ranked.filter(pl.col("rank").is_not_null()).with_columns(
        pl.col("score").cast(pl.Float64)
    )
    _write(listed.select("user", pl.lit("Q0"), "item", "rank", "score", tag=pl.lit(tag)), path)


@adapters.takes_any_frame
def write_qrels(truth: Truth, path: Target, **columns: Unpack[Columns]) -> None:
    """
    Write a TREC qrels file.

    Parameters
    ----------
    truth
        One row per judged item: user, item, relevance (integers or booleans; without the column it
        is 1 in every row). With a column ``subtopic``, one row per subtopic of an item; the
        subtopic is written where ``read_qrels(subtopics=True)`` reads it.
    path
        Path of the file. The ending ``.gz`` compresses it with gzip, ``.zst`` or ``.zstd`` with
        zstd.
    **columns
        ``user=``, ``item=``, ``relevance=``, ``subtopic=``: the columns that play these roles, if
        they have other names.

    Raises
    ------
    RankingDataError
        If an id is not a word that TREC files can hold, or a relevance is not an integer.

    Notes
    -----
    Rows keep their order; :func:`read_qrels` returns them, with ids as text.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from rankframe import trec
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [7, 8], "relevance": [2, 0]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     trec.write_qrels(truth, Path(folder, "a.qrels"))
    ...     print(Path(folder, "a.qrels").read_text(), end="")
    1 0 7 2
    1 0 8 0
    """
    table = readers.read("truth", adapters.to_lazy(truth, "truth").collect(), (), columns)
    rules.raise_in_tables([table])
    grade = pl.lit(1) if table.relevance is None else pl.col(table.relevance)
    subtopic = pl.lit("0") if table.subtopic is None else pl.col(table.subtopic).cast(pl.String)
    judged = table.frame.select(
        *_words(table), subtopic=subtopic, grade=grade, relevance=grade.cast(pl.Int64, strict=False)
    ).collect()
    wrong = judged.filter(pl.col("relevance").ne_missing(pl.col("grade").cast(pl.Float64)))
    text = (
        "a relevance that is not a 64-bit integer: round or rescale it, as TREC files hold integers"
    )
    shown = wrong.select("user", "item", relevance="grade")
    rules.raise_if_any(shown, "truth", table.relevance or "relevance", text)
    _write(judged.select("user", "subtopic", "item", "relevance"), path)


# ------------------------------------------------------------------ writing


def _words(table: Table) -> list[pl.Expr]:
    """Return the ids as text, if TREC files can hold them."""
    words = [("user", table.user, _lines.USER), ("item", table.item, _lines.WORD)]
    if table.subtopic is not None:
        words.append(("subtopic", table.subtopic, _lines.WORD))
    for role, name, pattern in words:
        if isinstance(table.schema[name], pl.Binary | pl.Duration):
            msg = f"{table.name}, column {name!r}: TREC files hold text, so cast it to pl.String"
            raise RankingDataError(msg)
        text = pl.col(name).cast(pl.String)
        wrong = table.frame.filter(~text.str.contains(f"^{pattern}$")).select(table.row)
        problem = "is empty or has white space" + ", or begins with #" * (role == "user")
        problem = f"{role} that {problem}: rename it, as TREC files cannot hold it"
        rules.raise_if_any(wrong, table.name, name, problem)
    return [pl.col(name).cast(pl.String).alias(role) for role, name, _ in words[:2]]


def _check_order(ranked: pl.DataFrame, table: Table) -> None:
    """Check that the caller's ranks are those that the scores imply."""
    wrong = ranked.filter(
        pl.col("own_rank").is_not_null() & pl.col("own_rank").ne_missing(pl.col("rank"))
    )
    text = (
        "a rank that differs from the one that readers of TREC files make from the score (ties by "
        "item, descending; no gaps): drop the rank or the score, or close the gaps"
    )
    shown = wrong.select("user", "item", "score", rank="own_rank", made="rank")
    rules.raise_if_any(shown, "run", table.rank or "rank", text)


def _check_digits(ranked: pl.DataFrame, as_read: pl.DataFrame, score: str) -> None:
    """Check that scores keep their order as floats."""
    wrong = ranked.filter(pl.col("rank").ne_missing(as_read["rank"]))
    text = (
        "different scores that are equal as 64-bit floats, which TREC files hold: call with_rank "
        "and drop the score"
    )
    rules.raise_if_any(wrong.select("user", "item", "score"), "run", score, text)


def _write(lines: pl.DataFrame, path: Target) -> None:
    lines.write_csv(
        Path(path),
        include_header=False,
        separator=" ",
        quote_style="never",
        compression=_formats.PACKINGS.get(Path(path).suffix.lower(), "uncompressed"),
        check_extension=False,
    )
