"""How numbers were made: a call in, its conventions and its tables as a dict for JSON out."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Unpack, cast

import polars as pl

from rankframe._evaluation import segments
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns, Options, Settings
from rankframe._request.labels import Metric
from rankframe._request.question import ask
from rankframe._request.segment_names import segment_of
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, readers, rules, run_dicts
from rankframe._tables.table import Table, Tables
from rankframe.errors import RankingDataError, option

#: The column of a log or table of values that says how its numbers were made.
COLUMN = "conventions"
_ROLES = ("user", "item", "rank", "score", "relevance", "subtopic")
#: The odd numbers by which SplitMix64 steps and mixes.
_FACTORS = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
#: Options of ``Settings`` that are no conventions of a metric, or are shown elsewhere.
_ELSEWHERE = (
    *("columns", "preset", "defaults", *keywords.INPUTS, "higher_is_better", "value_range"),
    *("count_users", "chance", "counts", "cluster", "stages"),
)


@adapters.takes_any_frame
def provenance(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    count_users: bool = False,
    chance: bool = False,
    checksums: bool = False,
    **options: Unpack[Options],
) -> dict[str, Any]:
    """
    Describe how a call of ``evaluate`` makes its numbers, as a dict for JSON.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    human
        Labels by humans that correct those of ``truth``, as in ``summarize``.
    by
        Columns of segments, such as country, fold or day.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    chance
        Add ``<metric>_chance`` and ``<metric>_ceiling``: what a random order of each list gives, as
        an exact expectation, and what its ideal order gives, highest grade first.
    checksums
        Add 16 hex digits per table: a sum of its rows in any order, those of the report. Other rows
        change it, except with probability 2⁻⁶⁴; it is no proof against forgery.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    dict
        ``rankframe`` (the version), ``metrics`` (each with all parameters; an expression of your
        own, also a registered one, as Polars prints it), ``options`` (with their defaults),
        ``columns`` (the roles, as found), ``preset`` (its name, or what your own sets, as text;
        what it sets is among the metrics and options), ``rows`` of each table, ``conventions`` and,
        on request, ``checksums``. ``conventions`` are 8 hex digits of metrics, options and columns
        alone: they stay the same, whatever the data and the version, until one of these changes.
        ``conventions_of`` has those of each metric alone: another metric in the call does not
        change them, and two spellings of one label, such as ``"map"`` and ``"ap"``, have the same.

    Notes
    -----
    ``total``, ``unjudged="bounds"``, ``count_users`` and ``chance`` are accepted, so that a call
    takes the keywords of ``evaluate``. They add rows and columns, and are not conventions.

    For equal scores, the conventions show what the run shows: the column ``tied`` of
    ``with_rank(ties="expected")``, or scores that the call ranks itself. Ranks made by ``"item"``
    and by ``"order"`` look the same, so always rank in one way. Names of columns are conventions,
    since another column may be another question: a renamed column begins a new trend.

    Store its ``conventions_of`` beside each number that is compared over time: numbers with
    different conventions are not a trend. It is a hash (SHA-256, cut), so two calls may share it
    with probability 2⁻³².

    A checksum is computed modulo 2⁶⁴. The values of a row are its groups, user, item, subtopic,
    rank or score, and relevance: integers and booleans as they are, times in their unit, the bits
    of floats, and the first 8 bytes of the SHA-256 of text; bytes are hexadecimal text, integers of
    128 bits decimal text. Null and NaN are 0xBF58476D1CE4E5B9. From x = 0, each value v makes
    x = (x + v) * 0x9E3779B97F4A7C15. Then x is mixed by the last three lines of SplitMix64, and the
    sum over rows is printed in hexadecimal.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "rank": [1, 2]})
    >>> truth = pl.DataFrame({"user": [1], "item": ["b"]})
    >>> made = rf.provenance(run, "map", truth=truth)
    >>> made["metrics"], made["rows"], made["conventions"]
    ({'map': 'ap(divide_by=relevant)'}, {'run': 2, 'truth': 1}, 'dc5268e3')
    """
    from importlib.metadata import version

    columns = {"total": total, "count_users": count_users, "chance": chance}
    for name, flag in {**columns, "checksums": checksums}.items():
        keywords.check_switch(name, flag)
    tables, conventions = _conventions(frame, metrics, truth, human, by, options)
    preset = tables.settings.preset
    every = {table.name: table for table in tables.both} | dict(tables.beside)
    counts = pl.collect_all([table.rows_passed.select(pl.len()) for table in every.values()])
    described: dict[str, Any] = {
        "rankframe": version("rankframe"),
        **conventions,
        "preset": None if preset is None else str(preset),
        "rows": {name: count.item() for name, count in zip(every, counts, strict=True)},
        **hashes(conventions),
    }
    if checksums:
        of_human = [table for name, table in tables.beside.items() if name == "human"]
        both = [*tables.both, *of_human]
        described["checksums"] = {table.name: checksum(table)[1] for table in both}
    return described


@adapters.takes_any_frame
def conventions_of(
    frame: Frame,
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[Options],
) -> dict[str, Any]:
    """Return the hashes of a call alone; no row is counted."""
    return hashes(_conventions(frame, metrics, truth, human, by, options)[1])


def hashes(conventions: Mapping[str, Any]) -> dict[str, Any]:
    """Hash the conventions of a call, and those of each of its metrics."""
    texts = conventions["metrics"]  # a label may be spelled in several ways: its text is one
    of_metrics = {
        name: _digits({**conventions, "metrics": {text: True}}) for name, text in texts.items()
    }
    of_all = _digits({**conventions, "metrics": dict.fromkeys(texts.values(), True)})
    return {"conventions": of_all, "conventions_of": of_metrics}


def raise_if_mixed(rows: pl.DataFrame, table: str, keys: Sequence[str]) -> None:
    """Raise if rows of one trend or comparison have different conventions."""
    if COLUMN not in rows.columns or COLUMN in keys or rows[COLUMN].n_unique() < 2:
        return
    first = rows.unique(COLUMN, keep="first", maintain_order=True).select(COLUMN, *keys).head(2)
    rows_of_two = ", but ".join(map(rules.format_row, first.iter_slices(1)))
    msg = (
        f"{table}, column {COLUMN!r}: the rows differ in how they were made: {rows_of_two}: "
        f"keep rows of one value, compute the others again, or name the column in {option('by')}; "
        "the files of rf.provenance, such as those of two days, show what changed"
    )
    raise RankingDataError(msg)


def checksum(table: Table) -> tuple[int, str]:
    """Count the rows of a table, and compute a checksum of them that ignores their order.

    The columns of a row become one number, which is mixed as SplitMix64 does; these are added up.
    Products and sums wrap at 64 bits, so they are the same on every machine and in every version.
    """
    roles = (table.rank or table.score, table.relevance)
    names = [*table.row, *(name for name in roles if name is not None)]
    names = [n for n in names if n not in table.truth_groups and segment_of(n) is None]
    schema, number = table.rows_passed.collect_schema(), pl.lit(0, pl.UInt64)
    for name in dict.fromkeys(names):
        number = (number + _numbers(name, schema[name])) * pl.lit(_FACTORS[0], pl.UInt64)
    rows = table.rows_passed.select(number.alias("number"))
    number = pl.col("number")
    for bits, factor in zip((30, 27, 31), (*_FACTORS[1:], 1), strict=True):
        rows = rows.select((number ^ (number // 2**bits)) * pl.lit(factor, pl.UInt64))
    count, total = rows.select(pl.len(), number.sum()).collect(engine="streaming").row(0)
    return count, f"{total:016x}"


def _numbers(name: str, dtype: pl.DataType) -> pl.Expr:
    """Take integers and times as they are, the bits of floats, and 8 bytes of a text's SHA-256."""
    column = pl.col(name)
    if dtype == pl.Binary:
        column = column.bin.encode("hex")
    elif dtype.is_temporal():
        column, dtype = column.to_physical(), pl.Int64()
    is_wide = isinstance(dtype, pl.Int128 | pl.UInt128)
    if (dtype.is_integer() and not is_wide) or dtype == pl.Boolean:
        numbers = column.cast(pl.UInt64, wrap_numerical=True)
    elif dtype.is_float():
        numbers = column.cast(pl.Float64).fill_nan(None).reinterpret(dtype=pl.UInt64)
    else:
        texts = column.cast(pl.String)
        numbers = texts.map_batches(_of_texts, return_dtype=pl.UInt64, is_elementwise=True)
    return numbers.fill_null(pl.lit(_FACTORS[1], pl.UInt64))


def _of_texts(texts: pl.Series) -> pl.Series:
    different = texts.drop_nulls().unique()
    digests = (hashlib.sha256(text.encode()).digest() for text in different)
    numbers = [int.from_bytes(digest[:8], "big") for digest in digests]
    return texts.replace_strict(different, pl.Series(numbers, dtype=pl.UInt64), default=None)


def table_of_human(human: Truth, tables: Tables) -> Table:
    """Read labels by humans, with the names of the other tables."""
    ids = {"user": tables.run.user, "item": tables.run.item}
    columns = cast("Columns", {**tables.settings.columns, **ids})
    table = readers.read("truth", cast("Frame", human), tables.run.by, columns)
    return replace(table, name="human")


def _conventions(
    frame: Runs[Frame],
    metrics: Sequence[Metric],
    truth: Truth | None,
    human: Truth | None,
    by: str | Sequence[str],
    options: Options,
) -> tuple[Tables, dict[str, Any]]:
    """Read the tables of a call; describe its metrics, options and columns."""
    frame, by, options = run_dicts.as_frame(frame, by, options)
    settings = keywords.read_options(options, takes_bounds=True, takes_average=True)
    question = ask(frame, metrics, truth, by, settings)
    question = segments.with_columns(question)
    tables = readers.read_tables(question)
    texts = labels.spelled_out(metrics, defaults=question.settings.defaults)
    for metric in question.requested:
        if metric.name in texts and metric.call is not None and metric.is_own:  # registered
            texts[metric.name] += f" = {metric.expr}"
    if human is not None:
        of_human = table_of_human(human, tables)
        tables = replace(tables, beside={**tables.beside, "human": of_human})
    return tables, {
        "metrics": texts,
        "options": _options(tables) | ({} if human is None else {"human": True}),
        "columns": _columns(tables),
    }


def _digits(conventions: Mapping[str, Any]) -> str:
    text = json.dumps(_without_defaults(conventions), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _options(tables: Tables) -> dict[str, Any]:
    settings = tables.settings
    elsewhere = (*_ELSEWHERE, *["average"] * (settings.average == "users"))
    names = [f.name for f in fields(Settings) if f.name not in elsewhere]
    options = {name: keywords.plain_number(getattr(settings, name)) for name in names}
    options["unjudged"] = "drop" if settings.unjudged == "drop" else "miss"
    options["users"] = "truth" if tables.users == "rows" else tables.users
    return {**options, "tables": sorted(settings.inputs)}


def _columns(tables: Tables) -> dict[str, Any]:
    """Name the columns of by and of each role that a table has."""
    columns = {
        role: name
        for table in tables.both
        for role in _ROLES
        if (name := getattr(table, role)) is not None
    }
    if tables.run.rank is not None:
        columns.pop("score", None)
    if tables.run.tied:
        columns["tied"] = "tied"
    names = {role: columns[role] for role in (*_ROLES, "tied") if role in columns}
    return {"by": tables.run.by, **names}


def _without_defaults(conventions: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out options that are not set: an option of a later version is not set in this one."""
    return {
        part: {
            name: value
            for name, value in values.items()
            if value is not None and value is not False and value not in ([], "miss", "error")
        }
        for part, values in conventions.items()
    }
