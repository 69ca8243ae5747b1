"""The verbs on Spark's DataFrames: the same expressions and checks, inside Spark's workers.

Needs ``pip install 'rankframe[spark]'``, Java 17, and rankframe and Polars on the workers; Spark
Connect works too. Run and truth go through one shuffle by user, whatever the number of metrics, and
each partition is computed as on one machine: see :mod:`rankframe._partitions`.

A worker needs about 200 MB and, per row of its partition, 70 bytes (ranks, integer ids) to 200
(scores, text ids), so a good partition has about 2 million rows. ``partitions=`` sets their number.
By default it is ``spark.sql.shuffle.partitions``, and adaptive execution merges small partitions;
if Spark may broadcast the keys of the judgments, it is one partition per 250,000 judgments, and
``evaluate`` computes up to 2 million of them in the driver (50 bytes each). All rows of a user are
in one partition.
"""

# pyarrow has no types
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportUnknownLambdaType=false, reportMissingTypeStubs=false

from __future__ import annotations

import contextlib
import functools
import inspect
import re
import shutil
import subprocess
import sys
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar, Unpack, cast

import polars as pl
import pyarrow as pa
from pyspark import SparkContext
from pyspark.errors import PySparkTypeError, PythonException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import BooleanType, NumericType, StringType, StructType

from rankframe._checks import (
    Table,
    Totals,
    are_two_grades,
    candidates,
    counts_misses,
    diluted,
    format_row,
    is_fold,
    no_pair,
    raise_if_apart,
    raise_if_empty,
    read_ranked,
    read_scored,
    role_columns,
    ungraded,
)
from rankframe._compare import Correction, Margin, Test, comparison_of
from rankframe._evaluate import (
    Plan,
    UserValues,
    check_served_in_parts,
    in_groups,
    plan_means,
    plan_values,
)
from rankframe._frames import kind, to_lazy
from rankframe._inputs import INPUT_MEANINGS
from rankframe._labels import Metric, parse_metrics
from rankframe._names import SEARCHED, with_relevance
from rankframe._options import (
    ROLES,
    Columns,
    Options,
    Settings,
    Users,
    group_names,
    read_options,
    systems_groups,
    whole_number,
)
from rankframe._partitions import (
    Needs,
    Registered,
    exposures_of,
    gathered,
    is_proved,
    judged_of,
    means_of,
    needs_of,
    ranked_of,
    registered,
    restore,
    rows_of,
    sums_of,
    values_of,
)
from rankframe._runs import MODEL, ByT, check_runs, common_types_of_runs, with_model
from rankframe._summarize import Method, summary_of
from rankframe._table import Ties, prepare_tables, with_inputs
from rankframe._table import from_lists as explode_lists
from rankframe._vocabulary import reading_of
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["compare", "evaluate", "from_lists", "judge", "per_user", "plain_errors", "summarize"]
__all__ += ["with_rank"]

Truth: TypeAlias = "DataFrame | pl.DataFrame | pl.LazyFrame | pd.DataFrame"
Compute: TypeAlias = Callable[[pl.LazyFrame, pl.LazyFrame | None, Totals | None], pl.LazyFrame]

#: Types Spark lacks, and the wider types that hold their values.
_WIDER: dict[type[pl.DataType], pl.DataType] = {
    pl.UInt8: pl.Int16(),
    pl.UInt16: pl.Int32(),
    pl.UInt32: pl.Int64(),
    pl.UInt64: pl.Decimal(20, 0),
    pl.Int128: pl.Decimal(38, 0),
    pl.UInt128: pl.Decimal(38, 0),
    pl.Categorical: pl.String(),
    pl.Enum: pl.String(),
}
T = TypeVar("T")

_KIND = "__rankframe_kind"  # of a row
_OF_RUN, _OF_TRUTH, _OF_LIST = range(3)
_ROWS_PER_BATCH = 2**16
_JUDGMENTS_PER_PARTITION = 250_000
_JUDGMENTS_HERE = 2_000_000  # so few, and their hits, are computed without workers
_HERE = 0  # instead of a number of partitions
_BROKEN = 0  # instead of a hash, for a row of the run that breaks a rule: the join must keep it


def judge(
    run: DataFrame | Mapping[str, DataFrame],
    /,
    truth: Truth,
    *,
    exclude: Truth | None = None,
    by: str | Sequence[str] = (),
    partitions: int | None = None,
    **columns: Unpack[Columns],
) -> DataFrame:
    """
    Join a run and its truth into the judged table.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as in ``rf.from_runs``.
    truth
        One row per judged item: user, item, relevance; of Spark, Polars or pandas.
    exclude
        Rows that leave the lists, as in ``rf.judge``; they go to every worker.
    by
        Columns that split the run into separate lists, as in ``rf.judge``.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``: the columns that play these
        roles, if they have other names.

    Returns
    -------
    DataFrame
        The full outer join, computed when Spark runs it, in no order: by…, user, item, ``rank``
        (null = judged, not retrieved), ``relevance`` (null = retrieved, unjudged), whatever the
        names of these two in the tables, then all other columns.

    Raises
    ------
    RankingDataError
        If columns do not fit, a table is empty, or run and truth share no user. Spark reports
        other broken rules (see ``rf.check``) when it runs; see ``plain_errors``.

    Examples
    --------
    >>> run = spark.createDataFrame([(1, 7, 1), (1, 8, 2)], "user int, item int, rank int")
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [8, 9], "relevance": [2, 1]})
    >>> rankframe.spark.judge(run, truth).orderBy("item").show()
    +----+----+----+---------+
    |user|item|rank|relevance|
    +----+----+----+---------+
    |   1|   7|   1|     NULL|
    |   1|   8|   2|        2|
    |   1|   9|NULL|        1|
    +----+----+----+---------+
    """
    run, by = _as_frame(run, by)
    settings = _read_options(_with_exclude(columns, exclude))
    frames = _frames(run, truth)
    empty = [_empty(frame) for frame in frames]
    prepared = with_inputs(prepare_tables(*_pair(empty), by, columns), settings)
    sides = _sides(frames, empty, prepared.tables)
    _check_grades(sides[-1])
    _check_across_users(sides)
    compute = functools.partial(judged_of, by=by, settings=settings)
    return _computed(sides, compute, partitions)


def with_rank(
    run: DataFrame | Mapping[str, DataFrame],
    /,
    *,
    by: str | Sequence[str] = (),
    descending: bool = True,
    ties: Ties = "item",
    exclude: Truth | None = None,
    close_gaps: bool = False,
    partitions: int | None = None,
    **columns: Unpack[Columns],
) -> DataFrame:
    """
    Make the rank from the score, or close the gaps of a rank.

    Parameters
    ----------
    run
        One row per item of each list: user, item, score; or a dict of runs by name, as in
        ``rf.from_runs``.
    by
        Columns that split the run into separate lists.
    descending
        Whether the highest score is the best, as in ``rf.with_rank``.
    ties
        How equal scores are ranked, as in ``rf.with_rank``. ``"order"`` is refused: rows have no
        order in Spark.
    exclude
        Rows to drop before ranks are made, as in ``rf.with_rank``; of Spark, Polars or pandas. They
        go to every worker.
    close_gaps
        Close the gaps of ranks, as in ``rf.with_rank``.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``.
    **columns
        ``user=``, ``item=``, ``rank=``, ``score=``: the columns that play these roles, if they
        have other names.

    Returns
    -------
    DataFrame
        The frame of ``rf.with_rank``, computed when Spark runs it, in no order.

    Raises
    ------
    RankingDataError
        If columns do not fit, or the run is empty. Spark reports other broken rules (see
        ``rf.with_rank``) when it runs; see ``plain_errors``.
    ValueError
        If an option is unknown or out of range.

    Examples
    --------
    >>> run = spark.createDataFrame([(1, 7, 0.5), (1, 8, 0.9)], "user int, item int, score double")
    >>> rankframe.spark.with_rank(run).orderBy("item").show()
    +----+----+-----+----+
    |user|item|score|rank|
    +----+----+-----+----+
    |   1|   7|  0.5|   2|
    |   1|   8|  0.9|   1|
    +----+----+-----+----+
    """
    run, by = _as_frame(run, by)
    if ties == "order":
        msg = "ties='order' reads the order of the rows, which Spark does not keep: take 'item'"
        raise ValueError(msg)
    compute = functools.partial(
        ranked_of,
        by=by,
        columns=columns,
        descending=descending,
        ties=ties,
        exclude=_read_options(_with_exclude(columns, exclude)).exclude,
        close_gaps=close_gaps,
    )
    (frame,) = _frames(run, None)
    empty = _empty(frame)
    compute(empty, None, None)  # invalid calls fail before any Spark job starts
    table = (read_ranked if close_gaps else read_scored)(empty, by, columns)
    sides = _sides([frame], [empty], [table])
    row = sides[0].fetch_row(sides[0].frame)
    if not _has_row(row):
        raise_if_empty(row)
    return _computed(sides, compute, partitions)


def from_lists(frame: DataFrame, /, **columns: Unpack[Columns]) -> DataFrame:
    """
    Make a long run from one row per user with an array of items in order.

    Parameters
    ----------
    frame
        One row per list: user, item (an array, best first), any other columns, and perhaps
        score (an array of equal length).
    **columns
        ``user=``, ``item=``, ``score=``: the columns that play these roles, if they have other
        names.

    Returns
    -------
    DataFrame
        One row per item, with ``rank`` (long, from 1, in the order of the array), computed when
        Spark runs it, without a shuffle.

    Raises
    ------
    RankingDataError
        If a role has no column, or items are not an array. Spark reports an array that is empty or
        null, or whose scores and items differ in number, when it runs; see ``plain_errors``.

    Examples
    --------
    >>> lists = spark.createDataFrame([(1, ["a", "b"]), (2, ["c"])], "user int, item array<string>")
    >>> rankframe.spark.from_lists(lists).show()
    +----+----+----+
    |user|item|rank|
    +----+----+----+
    |   1|   a|   1|
    |   1|   b|   2|
    |   2|   c|   1|
    +----+----+----+
    """
    (lists,) = _frames(frame, None)
    made = explode_lists(_empty(lists), **columns).collect_schema()
    types = pl.Schema({name: _spark_type(dtype) for name, dtype in made.items()})
    schema = from_arrow_schema(_to_arrow(pl.DataFrame(schema=types)).schema)
    explode = functools.partial(
        _exploded, names=lists.columns, columns=columns, types=types, arrow=_arrow_schema(schema)
    )
    return _numbered(lists).mapInArrow(explode, schema)


def _exploded(
    batches: Iterable[pa.RecordBatch],
    *,
    names: Sequence[str],
    columns: Columns,
    types: pl.Schema,
    arrow: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Make rows of lists, inside a worker."""
    for batch in batches:
        rows = _named(_from_arrow(pa.Table.from_batches([batch])), names)
        long = explode_lists(rows, **columns).select(_cast(types))
        yield from _to_arrow(long).cast(arrow).to_batches()


def per_user(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    bounds: bool = False,
    scenarios: bool = False,
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Compute metrics for every user.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as in
        ``rf.from_runs``.
    *metrics
        Labels or expressions, as in ``rf.per_user``.
    truth
        The truth that judges the run; of Spark, Polars or pandas.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    bounds
        Add ``<metric>_low`` and ``<metric>_high``, as in ``rf.per_user``.
    scenarios
        Add ``<metric>_if_none`` and ``<metric>_if_all``, as in ``rf.per_user``.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``.
    **options
        All other keywords of ``rf.per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    DataFrame
        by…, user and one column per metric, computed when Spark runs it, in no order.

    Raises
    ------
    RankingDataError
        If columns do not fit, a table is empty, or run and truth share no user. Spark reports
        other broken rules (see ``rf.check``) when it runs; see ``plain_errors``.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.

    Notes
    -----
    Rows that cannot change a value are left out of the shuffle: ranks below the deepest cut-off, if
    all metrics have one, and judgments of grade ≤ 0, if no metric reads them. A duplicate or a
    shared rank among these is not detected. Unjudged items are left out too, if the truth is of
    Polars or pandas and Spark may broadcast its keys.

    Examples
    --------
    >>> run = spark.createDataFrame([(1, 7, 1), (1, 8, 2)], "user int, item int, rank int")
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 9]})
    >>> rankframe.spark.per_user(run, "rr", "hit@1", truth=truth).orderBy("user").show()
    +----+---+-----+
    |user| rr|hit@1|
    +----+---+-----+
    |   1|0.5|  0.0|
    |   2|0.0|  0.0|
    +----+---+-----+
    """
    if options.get("weights") is not None:
        msg = "weights= are of means, and per_user gives one value per user: use evaluate"
        raise TypeError(msg)
    frame, by = _as_frame(frame, by)
    settings = replace(_read_options(options), bounds=bounds, scenarios=scenarios)
    plans = functools.partial(plan_values, per_user=True)
    sides, plan = _planned(frame, truth, metrics, by, settings, plans)
    _check_across_users(sides, settings.users)
    compute = functools.partial(values_of, metrics=metrics, by=by, settings=settings)
    needs = needs_of(plan, settings)
    joined = sides
    # a Spark truth may return different rows when it is read again
    if truth is not None and not isinstance(truth, DataFrame):
        broadcast = _broadcastable_truth(sides, needs)
        joined = _semi_joined(sides, broadcast.judgments) if broadcast else sides
    return _computed(sides, compute, partitions, needs, joined)


def evaluate(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    bounds: bool = False,
    scenarios: bool = False,
    count_users: bool = False,
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Compute the mean of metrics over users.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as in
        ``rf.from_runs``.
    *metrics
        Labels or expressions, as in ``rf.evaluate``.
    truth
        The truth that judges the run; of Spark, Polars or pandas.
    by
        Columns that split the run into separate lists, such as model, fold or day; one row per
        group.
    total
        Add the row of all users, as in ``rf.evaluate``.
    bounds
        Add ``<metric>_low`` and ``<metric>_high``, as in ``rf.evaluate``.
    scenarios
        Add ``<metric>_if_none`` and ``<metric>_if_all``, as in ``rf.evaluate``.
    count_users
        Add ``<metric>_users``, as in ``rf.evaluate``.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``, or fewer
        for a small truth.
    **options
        All other keywords of ``rf.evaluate``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    DataFrame
        by…, ``users`` and one column per metric, sorted: a small frame, computed at the call.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``rf.check``), or a metric is not a finite number.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.

    Notes
    -----
    Each partition adds up its users, and the driver adds up these sums: means agree with those of
    ``rf.evaluate`` in about 15 significant digits, and users and counts are the same. Rows that
    cannot change a value are left out of the shuffle, as in ``per_user``; unjudged items are left
    out if Spark may broadcast the keys of the truth. Of up to 2 million judgments, and without
    ``by``, the driver fetches these and the rows of the run that they judge, and computes them by
    itself, without a shuffle or workers; ``partitions=`` sends them to workers.

    Examples
    --------
    >>> run = spark.createDataFrame([(1, 7, 1), (1, 8, 2)], "user int, item int, rank int")
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 9]})
    >>> rankframe.spark.evaluate(run, "mrr", "recall@2", truth=truth).show()
    +-----+----+--------+
    |users| mrr|recall@2|
    +-----+----+--------+
    |    2|0.25|     0.5|
    +-----+----+--------+
    """
    frame, by = _as_frame(frame, by)
    settings = replace(
        _read_options(options), bounds=bounds, scenarios=scenarios, count_users=count_users
    )
    plans = functools.partial(plan_means, total=total)
    sides, plan = _planned(frame, truth, metrics, by, settings, plans)
    compute = functools.partial(sums_of, metrics=metrics, by=by, settings=settings)
    needs = needs_of(plan, settings)
    if partitions is not None:
        whole_number("partitions", partitions)
    with plain_errors(), _read_once(sides, partitions, needs) as (joined, number):
        if number == _HERE:
            parts = _computed_here(joined, compute, needs)
        else:
            parts = _collected(_computed(sides, compute, number, needs, joined))
        exposures = _exposures(sides, joined, number, plan, metrics, by, settings)
    if not is_proved(parts):
        _check_across_users(sides, settings.users)
    return _to_spark(frame.sparkSession, means_of(parts, plan, exposures, total=total))


def summarize(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    confidence: float = 0.95,
    method: Method = "t",
    resamples: int = 10_000,
    seed: int = 0,
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Describe metrics over users: mean, spread and an interval of the mean.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as in
        ``rf.from_runs``.
    *metrics
        Labels or expressions, as in ``rf.summarize``.
    truth
        The truth that judges the run; of Spark, Polars or pandas.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    total
        Add the summary of all segments together, as in ``rf.summarize``.
    confidence
        The probability that a single interval covers the true mean.
    method
        The method of the interval, as in ``rf.summarize``.
    resamples
        Number of bootstrap resamples.
    seed
        Seed of the resamples.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``, or fewer
        for a small truth.
    **options
        All other keywords of ``rf.summarize``.

    Returns
    -------
    DataFrame
        The frame of ``rf.summarize``: small, computed at the call.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``rf.check``), or a metric is not a finite number.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.

    Notes
    -----
    The driver collects the values of all users, 8 bytes per metric and the user's id: medians and
    resamples need all of them.

    Examples
    --------
    >>> run = spark.createDataFrame([(1, 7, 1), (2, 8, 2)], "user int, item int, rank int")
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [7, 8]})
    >>> summary = rankframe.spark.summarize(run, "rr", truth=truth)
    >>> summary.select("metric", "users", "mean", "min", "median", "max").show()
    +------+-----+----+---+------+---+
    |metric|users|mean|min|median|max|
    +------+-----+----+---+------+---+
    |    rr|    2|0.75|0.5|  0.75|1.0|
    +------+-----+----+---+------+---+
    """
    frame, by = _as_frame(frame, by)
    describe = functools.partial(
        summary_of,
        total=total,
        confidence=confidence,
        method=method,
        resamples=resamples,
        seed=seed,
    )
    return _described(
        frame,
        truth,
        metrics,
        by,
        _read_options(options, count_missed=True),
        partitions,
        describe=describe,
    )


def compare(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] | None = None,
    total: bool = False,
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Compare systems on the users that they share: differences, intervals and tests.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as in
        ``rf.from_runs``.
    *metrics
        Labels or expressions, as in ``rf.compare``.
    truth
        The truth that judges the run; of Spark, Polars or pandas.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments. Of several columns, the one called ``model`` identifies the systems, else the
        first one.
    total
        Add the comparison over all segments, as in ``rf.compare``.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        The test, as in ``rf.compare``.
    correction
        The correction for the number of comparisons, as in ``rf.compare``.
    confidence
        The probability that a single interval covers the true difference.
    margin
        A difference too small to matter, as in ``rf.compare``.
    primary
        The metric that decides, whose p-value is not corrected for the others, as in
        ``rf.compare``.
    resamples
        Number of sign patterns, permutations or bootstrap resamples.
    seed
        Seed of the resamples.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``, or fewer
        for a small truth.
    **options
        All other keywords of ``rf.compare``.

    Returns
    -------
    DataFrame
        The frame of ``rf.compare``: small, computed at the call.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``rf.check``), a metric is not a finite number, or there are
        no two systems.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, or ``baseline`` is not a
        system.

    Notes
    -----
    The driver collects the values of all users, as in ``summarize``, to pair those of two systems.

    Examples
    --------
    >>> rows = [("old", 1, 7, 1), ("old", 2, 7, 4), ("new", 1, 7, 1), ("new", 2, 7, 2)]
    >>> run = spark.createDataFrame(rows, "model string, user int, item int, rank int")
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [7, 7]})
    >>> change = rankframe.spark.compare(run, "rr", truth=truth, baseline="old")
    >>> change.select("metric", "model", "difference", "wins", "ties", "losses").show()
    +------+-----+----------+----+----+------+
    |metric|model|difference|wins|ties|losses|
    +------+-----+----------+----+----+------+
    |    rr|  new|     0.125|   1|   1|     0|
    +------+-----+----------+----+----+------+
    """
    frame, by = _as_frame(frame, by)
    describe = functools.partial(
        comparison_of,
        total=total,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        margin=margin,
        primary=primary,
        resamples=resamples,
        seed=seed,
    )
    return _described(
        frame,
        truth,
        metrics,
        systems_groups(by, getattr(frame, "columns", ())),
        _read_options(options, count_missed=True),
        partitions,
        describe=describe,
    )


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
        if found := re.search(rf"^{name}: (.*)$", str(error), re.MULTILINE):
            raise RankingDataError(found[1]) from error
        if lacks := _LACKS.search(str(error)):
            raise _not_on_the_workers(lacks[1]) from error
        raise


# ------------------------------------------------------------------ the workers

_LACKS = re.compile(r"No module named '(rankframe|polars|pyarrow)\b")


def _not_on_the_workers(module: str, python: str = "") -> ModuleNotFoundError:
    """Make the error of workers whose Python lacks a module."""
    named = f", {python}," if python else ""
    msg = (
        f"the Python of Spark's workers{named} has no module {module!r}: before the session "
        "starts, set the environment variable PYSPARK_PYTHON to a Python that has it, on one "
        f"machine os.environ['PYSPARK_PYTHON'] = {sys.executable!r}; on a cluster, install "
        "rankframe[spark] on every worker, or send an environment with spark.archives"
    )
    return ModuleNotFoundError(msg, name=module)


def _check_workers(session: SparkSession) -> None:
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
        asked = subprocess.run(
            [python, "-c", code], capture_output=True, text=True, check=True, timeout=60
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return asked.stdout.strip() or None


# ------------------------------------------------------------------ the tables


class _Side(NamedTuple):
    """A table whose columns are numbered, since names may hold dots or differ only in case.

    Conditions are SQL text: each call on a Column sends a dozen messages to the JVM.
    """

    frame: DataFrame
    names: list[str]
    empty: pl.LazyFrame
    table: Table

    def column(self, name: str) -> str:
        return f"`{self.names.index(name)}`"

    @property
    def roles(self) -> list[str]:
        """The columns that play a role."""
        named = [*role_columns(self.table), *(["tied"] if self.table.tied else [])]
        return [name for name in named if name in self.names]

    @property
    def ranked_rows(self) -> DataFrame:
        """The rows that are in a list; all rows of a truth."""
        name = self.table.rank or self.table.score
        if name is None:
            return self.frame
        column = self.column(name)
        return self.frame.where(f"{column} IS NOT NULL AND NOT isnan(double({column}))")

    def fetch_row(self, rows: DataFrame) -> Table:
        """Fetch the first of the rows, if there is one."""
        row = self.collected(rows.limit(1), self.roles)
        groups = [name for name in self.table.by if name in self.names]
        return self.table._replace(frame=row.lazy(), by=groups)

    def collected(self, rows: DataFrame, names: Sequence[str]) -> pl.DataFrame:
        """Fetch columns of rows, cast to the types of this table: Spark changes the time zone."""
        fetched = _collected(rows.select(*map(self.column, names)).distinct())
        return _named(fetched, names).select(_cast(self.types(names)))

    def types(self, names: Sequence[str]) -> pl.Schema:
        """Return the types of columns."""
        schema = self.empty.collect_schema()
        return pl.Schema({name: schema[name] for name in names})


def _as_frame(frame: DataFrame | Mapping[str, DataFrame], by: ByT) -> tuple[DataFrame, ByT]:
    """Make one frame of a dict of runs, and let ``by`` name its column; leave a frame as it is."""
    if not isinstance(frame, Mapping):
        return frame, by
    check_runs(frame)
    runs = {name: _frames(run, None)[0] for name, run in frame.items()}
    schemas = {name: _empty(run).collect_schema() for name, run in runs.items()}
    names = list(common_types_of_runs(schemas))
    parts = [
        _numbered(run).select(
            F.lit(name).alias(MODEL), *(f"`{run.columns.index(column)}`" for column in names)
        )
        for name, run in runs.items()
    ]
    stacked = functools.reduce(lambda some, more: some.union(more), parts)
    return stacked.toDF(MODEL, *names), cast("ByT", with_model(by))


def _with_exclude(columns: Columns, exclude: Truth | None) -> Options:
    """Put the table that leaves the lists among the options."""
    return cast("Options", {**columns, "exclude": exclude})


def _read_options(options: Options, *, count_missed: bool = False) -> Settings:
    """Read the options; the tables beside run and truth are collected, and go to every worker."""
    settings = read_options(options, count_missed=count_missed)
    local: dict[str, Any] = {}
    for name in INPUT_MEANINGS:
        table = getattr(settings, name)
        if isinstance(table, DataFrame):
            local[name] = _collected(table)
        elif table is not None:
            local[name] = to_lazy(table, f"{name}= table", also="Spark DataFrame, a ").collect()
    return replace(settings, **local)


def _exposures(
    sides: Sequence[_Side],
    joined: Sequence[_Side],
    partitions: int | None,
    plan: Plan,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
) -> list[pl.DataFrame]:
    """Add up, for each kind of shares, what the lists of all partitions give to its values."""
    kinds = [] if plan.of_lists is None else plan.of_lists.kinds()
    return [
        _collected(
            _computed(
                sides,
                functools.partial(
                    exposures_of, metrics=metrics, by=by, settings=settings, place=place
                ),
                partitions,
                needs_of(plan, settings),
                joined,
            )
        )
        for place, _ in enumerate(kinds)
    ]


def _planned(
    frame: DataFrame,
    truth: Truth | None,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
    plans: Callable[..., Plan],
) -> tuple[list[_Side], Plan]:
    """Plan on tables without rows, so that invalid calls fail before any Spark job starts."""
    requested = parse_metrics(metrics, per_user=False, defaults=settings.defaults)
    given = dict(settings.columns)
    wanted = {str(given.get(role, role)) for role in ROLES} | {*group_names(by), "tied"}
    reads = {name for one in requested for name in one.reads}
    wanted |= SEARCHED | reading_of(reads, given=settings.given).names
    wanted |= set() if settings.weights is None else {settings.weights}
    if truth is not None:
        wanted |= _possible_grades(truth, settings.columns, by)
    frames = _frames(frame, truth, wanted)
    empty = [_empty(spark_frame, wanted) for spark_frame in frames]
    run, judgments = _pair(empty)
    plan = plans(run, metrics, judgments, by, settings)
    if settings.users == "served":
        check_served_in_parts(plan.prepared)
    sides = _sides(frames, empty, plan.prepared.tables)
    _check_grades(sides[-1])
    return sides, plan


def _possible_grades(truth: Truth, columns: Columns, by: str | Sequence[str]) -> set[str]:
    """Name the columns of a truth without a relevance that may hold grades."""
    if isinstance(truth, DataFrame):
        types = [(field.name, field.dataType) for field in truth.schema]
        names = {name for name, dtype in types if isinstance(dtype, BooleanType | NumericType)}
    else:
        known = to_lazy(truth, "truth", also="Spark DataFrame, a ").collect_schema()
        names = {name for name, dtype in known.items() if dtype.is_numeric() or dtype == pl.Boolean}
    relevance = with_relevance(columns, by, truth.columns).get("relevance", "relevance")
    return set() if relevance in truth.columns else names


def _described(
    frame: DataFrame,
    truth: Truth | None,
    metrics: Sequence[Metric],
    by: str | Sequence[str],
    settings: Settings,
    partitions: int | None,
    *,
    describe: Callable[[UserValues], pl.LazyFrame],
) -> DataFrame:
    """Collect the values of all users, and describe them."""
    plans = functools.partial(plan_values, per_user=False)
    sides, plan = _planned(frame, truth, metrics, by, settings, plans)
    if plan.of_lists is not None:
        msg = (
            f"{plan.of_lists.requested[0].name} is one number of all lists: its interval needs the "
            "lists in one place; take rankframe.spark.evaluate, or collect the run"
        )
        raise ValueError(msg)
    describe(in_groups(plan))  # invalid calls fail before any Spark job starts
    _check_across_users(sides, settings.users)
    compute = functools.partial(rows_of, metrics=metrics, by=by, settings=settings)
    needs = needs_of(plan, settings)
    with plain_errors(), _read_once(sides, partitions, needs) as (joined, number):
        parts = _collected(_computed(sides, compute, number, needs, joined))
    return _to_spark(frame.sparkSession, describe(gathered(parts, plan)).collect())


def _frames(
    frame: DataFrame, truth: Truth | None, wanted: Collection[str] | None = None
) -> list[DataFrame]:
    """Return the frames of Spark, after moving a truth of Polars or pandas into Spark."""
    if not isinstance(cast("object", frame), DataFrame):
        msg = f"rankframe.spark takes a Spark DataFrame, not {kind(frame)}"
        raise TypeError(msg)
    in_spark = [table for table in (frame, truth) if isinstance(table, DataFrame)]
    if any(table.isStreaming for table in in_spark):
        msg = "rankframe.spark takes tables, not streams: use it inside foreachBatch"
        raise TypeError(msg)
    _check_workers(frame.sparkSession)
    if truth is None or isinstance(truth, DataFrame):
        return in_spark
    local = to_lazy(truth, "truth", also="Spark DataFrame, a ").collect()
    unread = [name for name in local.columns if wanted is not None and name not in wanted]
    _check_times(local.drop(unread))
    local = local.with_columns(pl.lit(None, pl.Int8).alias(name) for name in unread)
    return [frame, _to_spark_in_batches(frame.sparkSession, local)]


def _empty(frame: DataFrame, wanted: Collection[str] | None = None) -> pl.LazyFrame:
    """Return a table without rows in Polars; columns that are not wanted have no type."""
    names = frame.columns
    if duplicates := [name for name in names if names.count(name) > 1]:
        msg = f"column {duplicates[0]!r}: two columns have this name"
        raise RankingDataError(msg)
    fields = [field for field in frame.schema if wanted is None or field.name in wanted]
    for field in fields:
        try:
            _arrow_schema(StructType([field]))
        except PySparkTypeError as error:
            dtype = field.dataType.simpleString()
            msg = (
                f"column {field.name!r}: Spark cannot transfer type {dtype} to Python; cast or "
                "drop the column"
            )
            raise RankingDataError(msg) from error
    types = _from_arrow(_arrow_schema(StructType(fields)).empty_table()).schema
    return pl.LazyFrame(schema={name: types.get(name, pl.Null()) for name in names})


def _sides(
    frames: Sequence[DataFrame], empty: Sequence[pl.LazyFrame], tables: Sequence[Table]
) -> list[_Side]:
    return [
        _Side(_numbered(frame), frame.columns, without_rows, table)
        for frame, without_rows, table in zip(frames, empty, tables, strict=True)
    ]


def _pair(tables: Sequence[T]) -> tuple[T, T | None]:
    """Return a run and its truth, or a judged table and None."""
    return tables[0], tables[1] if len(tables) == 2 else None


def _numbered(frame: DataFrame) -> DataFrame:
    """Number the columns; make text compare byte by byte, as on one machine."""
    numbered = frame.toDF(*map(str, range(len(frame.columns))))
    for place, field in enumerate(frame.schema):
        if isinstance(field.dataType, StringType) and not field.dataType.isUTF8BinaryCollation():
            by_bytes = F.expr(f"`{place}` COLLATE UTF8_BINARY")
            numbered = numbered.withColumn(str(place), by_bytes)
    return numbered


def _named(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    return frame.rename(dict(zip(frame.columns, names, strict=True)))


# ------------------------------------------------------------------ rules across users


def _check_across_users(sides: Sequence[_Side], users: Users | None = None) -> None:
    """Raise if a table is empty, or users of run and truth cannot match."""
    shared = _shared_row(sides[0], sides[1], [sides[0].table.user]) if len(sides) == 2 else None
    if shared is None:
        tables = [side.fetch_row(side.ranked_rows) for side in sides]
        for side, table in zip(sides, tables, strict=True):
            raise_if_empty(table if _has_row(table) else side.fetch_row(side.frame))
        if len(sides) == 2:
            raise_if_apart(*tables)
        return
    run, truth = sides
    judged = truth.fetch_row(truth.frame)
    if judged.by and users != "run" and _shared_row(run, truth, judged.keys) is None:
        raise no_pair(shared, judged)
    groups = _groups(sides)
    if groups is None:
        return
    for name in groups.columns:
        if groups[name].n_unique() == 1:
            continue
        user, group = run.column(run.table.user), run.column(name)
        counted = run.ranked_rows.groupBy(user).agg(F.count_distinct(group).alias("n"))
        if counted.where("n > 1").isEmpty():
            if not counts_misses(users):
                continue
            group_of_shared = shared.frame.collect()[name].item()
            other = run.fetch_row(run.ranked_rows.where(F.col(group) != F.lit(group_of_shared)))
            both = run.table._replace(frame=pl.concat([shared.frame, other.frame]))
            raise_if_apart(both, truth.table._replace(frame=shared.frame))
        elif is_fold(name):
            raise diluted(run.table, truth.table, name, shared.frame.collect())


def _shared_row(run: _Side, truth: _Side, keys: Sequence[str]) -> Table | None:
    """Fetch a row of the run whose keys are in the truth, if there is one."""
    known = {name: f"known{place}" for place, name in enumerate(keys)}
    users = truth.frame.selectExpr(*(f"{truth.column(n)} AS {k}" for n, k in known.items()))
    same = F.expr(" AND ".join(f"{run.column(n)} = {k}" for n, k in known.items()))
    # in almost all tables the first users suffice
    tables = (
        run.fetch_row(run.ranked_rows.join(some_users, same, "left_semi"))
        for some_users in (F.broadcast(users.limit(1000)), users)
    )
    return next(filter(_has_row, tables), None)


def _check_grades(side: _Side) -> None:
    """Raise if a truth without a relevance has grades under another name."""
    exprs: list[str] = []
    for name, dtype in candidates(side.table).items():
        value = side.column(name)
        one = value if dtype == pl.Boolean else f"{value} = 1"
        exprs += [f"count_if({_is_zero_sql(side, name)})", f"count_if({one})", f"count({value})"]
    counts = _collected(side.frame.selectExpr(*exprs)).row(0) if exprs else ()
    for place, (name, dtype) in enumerate(candidates(side.table).items()):
        if are_two_grades(*counts[3 * place : 3 * place + 3]):
            lowest = side.frame.where(_is_zero_sql(side, name)).limit(1)
            row = side.collected(lowest, [*side.table.row, name])
            raise ungraded(name, boolean=dtype == pl.Boolean, row=row)


def _is_zero_sql(side: _Side, name: str) -> str:
    value = side.column(name)
    return f"NOT {value}" if side.types([name])[name] == pl.Boolean else f"{value} = 0"


def _has_row(table: Table) -> bool:
    return not table.frame.collect().is_empty()


def _groups(sides: Sequence[_Side]) -> pl.DataFrame | None:
    """Collect the groups of ``by`` that the truth lacks."""
    run, truth = sides[0], sides[-1]
    lacking = [name for name in run.table.by if name not in truth.table.by]
    if not lacking:
        return None
    return run.collected(run.ranked_rows, lacking)


def _top_grade(sides: Sequence[_Side]) -> float | None:
    side = sides[-1]
    if side.table.relevance is None:
        return 1
    grade = _collected(side.frame.selectExpr(f"max({side.column(side.table.relevance)})")).item()
    if grade is None:
        return None
    return int(grade) if isinstance(grade, int) else float(grade)  # True is an int


# ------------------------------------------------------------------ one shuffle, by user


class _Task(NamedTuple):
    """What a worker computes from a partition, and the types of its columns."""

    compute: Compute
    totals: Totals
    columns: list[str]
    run: pl.Schema
    truth: pl.Schema | None
    made: pl.Schema
    arrow: pa.Schema
    registered: Registered
    row_of_list: list[str]  # the columns that identify it; none if there are no rows of lists


def _computed(
    sides: Sequence[_Side],
    compute: Compute,
    partitions: int | None,
    needs: Needs | None = None,
    joined: Sequence[_Side] = (),
) -> DataFrame:
    """Move all rows of a user into one partition, and compute each partition by itself.

    ``joined`` has the rows of ``sides`` that are needed; a group may have no such row.
    """
    columns_of_sides = [_columns_needed(side, needs) for side in sides]
    columns = list(dict.fromkeys(name for names in columns_of_sides for name in names))
    rows = [
        _rows_needed(side, needs).selectExpr(
            f"tinyint({kind}) AS {_KIND}",
            *(f"{side.column(name)} AS column{columns.index(name)}" for name in names),
        )
        for side, names, kind in zip(
            joined or sides, columns_of_sides, (_OF_RUN, _OF_TRUTH), strict=False
        )
    ]
    if needs and needs.lists:
        rows.append(_first_rows(sides[0], columns))
    stacked = rows[0]
    for other in rows[1:]:
        stacked = stacked.unionByName(other, allowMissingColumns=True)  # columns of the truth last
    user = f"column{columns.index(sides[0].table.user)}"
    # the last step before mapInArrow: a step in between might separate the rows of a user
    if partitions is None:
        partitioned = stacked.repartition(user)
    else:
        partitioned = stacked.repartition(whole_number("partitions", partitions), user)
    top_grade = _top_grade(joined or sides) if needs and needs.top_grade else None
    totals = Totals(top_grade, _groups(sides))
    empty = [side.empty for side in sides]
    made = compute(*_pair(empty), totals).collect_schema()
    types = pl.Schema({name: _spark_type(dtype) for name, dtype in made.items()})
    schema = from_arrow_schema(_to_arrow(pl.DataFrame(schema=types)).schema)
    run, truth = _pair(
        [side.types(names) for side, names in zip(sides, columns_of_sides, strict=True)]
    )
    run_table = sides[0].table
    row_of_list = [*run_table.keys, run_table.item] if needs and needs.lists else []
    arrow, known = _arrow_schema(schema), registered()
    task = _Task(compute, totals, columns, run, truth, types, arrow, known, row_of_list)
    return partitioned.mapInArrow(functools.partial(_computed_partition, task), schema)


def _computed_here(joined: Sequence[_Side], compute: Compute, needs: Needs) -> pl.DataFrame:
    """Fetch the rows that are needed, and compute them: they are one partition."""
    tables: list[pl.LazyFrame] = []
    for side in joined:
        names = _columns_needed(side, needs)
        rows = _collected(_rows_needed(side, needs).select(*map(side.column, names)))
        tables.append(_named(rows, names).lazy().select(_cast(side.types(names))))
    totals = Totals(_top_grade(joined) if needs.top_grade else None, None)
    return compute(*_pair(tables), totals).collect()


def _computed_partition(task: _Task, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Compute a partition, inside a worker."""
    received = list(batches)
    if not received:
        return
    restore(task.registered)
    rows = _named(_from_arrow(pa.Table.from_batches(received)), [_KIND, *task.columns])
    of_run, of_truth, of_lists = (
        rows.lazy().filter(pl.col(_KIND) == kind) for kind in (_OF_RUN, _OF_TRUTH, _OF_LIST)
    )
    if task.row_of_list:
        others = of_lists.join(of_run, on=task.row_of_list, how="anti", nulls_equal=True)
        of_run = pl.concat([of_run, others])
    run = of_run.select(_cast(task.run))
    truth = None if task.truth is None else of_truth.select(_cast(task.truth))
    result = task.compute(run, truth, task.totals).collect()
    # Spark matches columns by position and exact type
    result = result.select(_cast(task.made))
    yield from _to_arrow(result).cast(task.arrow).to_batches()


def _columns_needed(side: _Side, needs: Needs | None) -> list[str]:
    if needs is None:
        return side.names
    return [name for name in side.names if name in side.roles or name in needs.columns]


def _rows_needed(side: _Side, needs: Needs | None) -> DataFrame:
    """Leave out rows that cannot change a value and break no rule by themselves."""
    irrelevant = None if needs is None else _is_irrelevant_sql(side, needs)
    if irrelevant is None:
        return side.frame
    return side.frame.where(f"NOT {_is_valid_sql(side, irrelevant)}")


def _first_rows(run: _Side, columns: Sequence[str]) -> DataFrame:
    """Return the row of the least rank of each list, with its keys, item and rank alone."""
    table = run.table
    names = [name for name in table.keys if name in run.names]
    rank, item = run.column(table.rank or ""), run.column(table.item)
    first = run.ranked_rows.groupBy(*map(run.column, names)).agg(
        F.expr(f"min_by({item}, {rank}) AS item"), F.expr(f"min({rank}) AS rank")
    )
    found = {name: run.column(name) for name in names}
    found |= {table.item: "item", table.rank or "": "rank"}
    return first.selectExpr(
        f"tinyint({_OF_LIST}) AS {_KIND}",
        *(f"{column} AS column{columns.index(name)}" for name, column in found.items()),
    )


def _is_valid_sql(side: _Side, condition: str) -> str:
    """Write the condition that a row has all ids and meets ``condition``; it is never null."""
    table = side.table
    ids = [name for name in side.roles if name not in (table.rank, table.relevance)]
    present = [f"{side.column(name)} IS NOT NULL" for name in ids]
    numbers = [f"NOT isnan({side.column(name)})" for name in ids if table.schema[name].is_float()]
    return f"(({' AND '.join([*present, *numbers, condition])}) <=> true)"


class _BroadcastableTruth(NamedTuple):
    """The judgments that are needed, and their number."""

    judgments: DataFrame
    number: int


def _broadcastable_truth(
    sides: list[_Side], needs: Needs, *, keep: bool = False
) -> _BroadcastableTruth | None:
    """Return the judgments that are needed, if Spark may broadcast their keys.

    With ``keep``, Spark keeps them in memory as it counts them.
    """
    limit = min(_broadcast_limit(sides[0].frame.sparkSession) // 8, 2**31 - 2)
    if not (needs.judged and len(sides) == 2 and all(map(_hash, sides)) and limit):
        return None
    truth = sides[1]
    judgments = _rows_needed(truth, needs).select(*map(truth.column, _columns_needed(truth, needs)))
    if keep:
        judgments.persist()
    number = judgments.count()
    if number <= limit:
        return _BroadcastableTruth(judgments, number)
    judgments.unpersist()
    return None


@contextlib.contextmanager
def _read_once(
    sides: list[_Side], partitions: int | None, needs: Needs
) -> Generator[tuple[list[_Side], int | None], None, None]:
    """Semi-join the run with the truth; Spark keeps the judgments in memory until the exit.

    They are read several times, and a query that runs again may return different rows.
    """
    broadcast = _broadcastable_truth(sides, needs, keep=True)
    if broadcast is None:
        yield sides, partitions
        return
    if partitions is None and not sides[0].table.by:  # there are no more rows than judgments
        here = broadcast.number <= _JUDGMENTS_HERE and not needs.lists
        partitions = _HERE if here else 1 + broadcast.number // _JUDGMENTS_PER_PARTITION
    try:
        yield _semi_joined(sides, broadcast.judgments), partitions
    finally:
        broadcast.judgments.unpersist()


def _semi_joined(sides: list[_Side], judgments: DataFrame) -> list[_Side]:
    """Keep the rows of the run that are judged, and those that break a rule.

    The keys are hashes. A collision only keeps a row that is not needed.
    """
    run, truth = sides
    valid = _is_valid_sql(run, _is_rank_sql(run))
    known = judgments.selectExpr(f"{_hash(truth)} AS known")
    known = known.union(
        known.sparkSession.range(0, 1, 1, 1).selectExpr(f"bigint({_BROKEN}) AS known")
    )
    same = F.expr(f"CASE WHEN {valid} THEN {_hash(run)} ELSE {_BROKEN} END = known")
    judged = run.frame.join(F.broadcast(known), same, "left_semi")
    return [run._replace(frame=judged), truth._replace(frame=judgments)]


def _hash(side: _Side) -> str | None:
    """Write the hash of user and item, of any integer type or text; None for other types."""
    names = [side.table.user, side.table.item]
    types = [side.table.schema[name] for name in names]
    if not all(dtype.is_integer() or dtype == pl.String for dtype in types):
        return None
    wide = (
        f"bigint({side.column(name)})" if dtype.is_integer() else side.column(name)
        for name, dtype in zip(names, types, strict=True)
    )
    return f"xxhash64({', '.join(wide)})"


def _broadcast_limit(session: SparkSession) -> int:
    """Read how many bytes Spark broadcasts by default; 0 if it does not."""
    threshold = str(session.conf.get("spark.sql.autoBroadcastJoinThreshold")).lower()
    number, unit = re.fullmatch(r"(-?\d+) *([kmgtp]?)i?b?", threshold).groups()  # type: ignore[union-attr]
    return max(0, int(number)) << 10 * " kmgtp".index(unit or " ")


def _is_irrelevant_sql(side: _Side, needs: Needs) -> str | None:
    """Write the condition that a row has a valid rank and relevance and cannot change a value."""
    rank, grade = (
        None if name is None else f"double({side.column(name)})"
        for name in (side.table.rank, side.table.relevance)
    )
    if grade is None:
        if rank is None or needs.depth is None:
            return None
        return _is_rank_sql(side, above=needs.depth)
    if not needs.relevant:
        return None
    irrelevant = f"({grade} <= 0 AND {grade} > double('-Infinity'))"
    if rank is None:
        return irrelevant
    ranked = _is_rank_sql(side)
    return f"({irrelevant} AND ({rank} IS NULL OR {ranked}) OR {grade} IS NULL AND {ranked})"


def _is_rank_sql(side: _Side, above: int | None = None) -> str:
    """Write the condition that a rank is an integer ≥ 1, or one above a depth."""
    name = side.table.rank or ""
    least = ">= 1" if above is None else f"> {above}"
    if side.table.schema[name].is_integer():  # the remainder takes a tenth of the call
        return f"({side.column(name)} {least})"
    rank = f"double({side.column(name)})"
    return f"({rank} {least} AND {rank} % 1 = 0)"


# ------------------------------------------------------------------ types


def _collected(frame: DataFrame) -> pl.DataFrame:
    return _from_arrow(frame.toArrow())


def _to_spark(session: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """Convert a small frame of Polars to Spark."""
    table = _to_arrow(_in_types_of_spark(frame))
    return session.createDataFrame(table, from_arrow_schema(table.schema))


def _to_spark_in_batches(session: SparkSession, frame: pl.DataFrame) -> DataFrame:
    """Convert a frame of Polars to Spark as a few long values: Spark makes objects of rows."""
    table = _to_arrow(_in_types_of_spark(frame))
    parts = [_as_bytes(batch) for batch in table.to_batches(max_chunksize=_ROWS_PER_BATCH)]
    sent = session.createDataFrame(pa.table({"part": pa.array(parts, pa.binary())}), "part binary")
    return sent.mapInArrow(_from_bytes, from_arrow_schema(table.schema))


def _check_times(truth: pl.DataFrame) -> None:
    """Check that no time is finer than a microsecond, which is what Spark keeps."""
    for column in truth:
        if column.dtype != pl.Time and getattr(column.dtype, "time_unit", "us") != "ns":
            continue
        finer = (column.to_physical() % 1000 != 0).fill_null(value=False)
        if finer.any():
            row = truth.filter(finer).head(1).with_columns(pl.col(column.name).cast(pl.String))
            msg = (
                f"truth, column {column.name!r}: a time finer than a microsecond, and Spark keeps "
                "microseconds, so that values that differ by less would become one: cast the "
                "column to integers in both tables, pl.col(…).dt.epoch('ns'). "
                f"Offending row: {format_row(row)}"
            )
            raise RankingDataError(msg)


def _as_bytes(batch: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return cast("bytes", sink.getvalue().to_pybytes())


def _from_bytes(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        for part in batch.column(0):
            with pa.ipc.open_stream(part.as_buffer()) as reader:
                yield from reader


def _in_types_of_spark(frame: pl.DataFrame) -> pl.DataFrame:
    return frame.select(
        column.cast(pl.Int64) if _fits(column) else column.cast(_spark_type(column.dtype))
        for column in frame
    )


def _fits(column: pl.Series) -> bool:
    """Whether all integers of a type Spark lacks are in the range of its long."""
    wide = isinstance(column.dtype, pl.UInt64 | pl.Int128 | pl.UInt128)
    return wide and column.cast(pl.Int64, strict=False).null_count() == column.null_count()


def _spark_type(dtype: pl.DataType) -> pl.DataType:
    if isinstance(dtype, pl.Datetime):
        return pl.Datetime("us", dtype.time_zone)
    if isinstance(dtype, pl.Duration):
        return pl.Duration("us")
    if isinstance(dtype, pl.List):
        return pl.List(_spark_type(cast("pl.DataType", dtype.inner)))
    return _WIDER.get(dtype.base_type(), dtype)


def _cast(types: pl.Schema) -> list[pl.Expr]:
    return [pl.col(name).cast(dtype) for name, dtype in types.items()]


def _arrow_schema(schema: StructType) -> pa.Schema:
    """Return the types in which Spark transfers rows to Python; newer versions need a zone."""
    requested = inspect.signature(to_arrow_schema).parameters
    zone: dict[str, Any] = {"timezone": "UTC"} if "timezone" in requested else {}
    return to_arrow_schema(schema, **zone)


def _from_arrow(table: pa.Table) -> pl.DataFrame:
    frame = cast("pl.DataFrame", pl.from_arrow(table))
    frame.columns = table.column_names  # polars renames a column whose name is empty
    return frame


def _to_arrow(frame: pl.DataFrame) -> pa.Table:
    return frame.to_arrow(compat_level=pl.CompatLevel.oldest())
