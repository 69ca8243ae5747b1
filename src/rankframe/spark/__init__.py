"""The verbs on Spark's DataFrames: the same expressions and checks, inside Spark's workers.

Needs ``pip install 'rankframe[spark]'``, Java 17, and rankframe and Polars on the workers; Spark
Connect works too. Run and truth go through one shuffle by user, whatever the number of metrics, and
each partition is computed as on one machine: see :mod:`rankframe.parts._partitions`.

A worker needs about 200 MB and, per row of its partition, 70 bytes (ranks, integer ids) to 200
(scores, text ids), so a good partition has about 2 million rows. ``partitions=`` sets their number.
By default it is ``spark.sql.shuffle.partitions``, and adaptive execution merges small partitions;
if Spark may broadcast the keys of the judgments, it is one partition per 250,000 judgments. All
rows of a user are in one partition.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Unpack, cast

import polars as pl
import pyarrow as pa
from pyspark.errors import PySparkTypeError
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.types import BooleanType, NumericType, StructType

from rankframe._comparison import comparison, notes, summaries
from rankframe._comparison.summaries import Method
from rankframe._comparison.trials import Correction, Margin, Test, Trial
from rankframe._evaluation import evaluation
from rankframe._evaluation.values import Values
from rankframe._inputs import item_lists
from rankframe._request import keywords, wrong_keywords
from rankframe._request.keywords import Columns, Duplicates, ListColumns, Options, Settings
from rankframe._request.labels import Metric
from rankframe._request.question import Question, ask
from rankframe._tables import (
    adapters,
    column_roles,
    readers,
    rules,
    run_dicts,
    side_tables,
)
from rankframe._tables.rank_order import BY_GRADE, Ties
from rankframe._tables.run_dicts import ColumnsT
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.parts import _numbers, _partitions, _recipes
from rankframe.presets import Preset, PresetName, Users
from rankframe.spark import _needs, _several, _shuffle, _types, _workers
from rankframe.spark._shuffle import Side
from rankframe.spark._types import Truth
from rankframe.spark._workers import plain_errors

__all__ = ["compare", "evaluate", "from_lists", "judge", "per_user", "plain_errors", "summarize"]
__all__ += ["with_rank"]


def __dir__() -> list[str]:
    return [*__all__]


_NO_TABLE = pl.LazyFrame()  # of a question whose tables are Spark's


@wrong_keywords.checked
@_several.takes_users
def judge(
    run: DataFrame | Mapping[str, DataFrame],
    /,
    truth: Truth,
    *,
    by: str | Sequence[str] = (),
    exclude: Truth | None = None,
    duplicates: Duplicates = "error",
    preset: PresetName | Preset | None = None,
    partitions: int | None = None,
    **columns: Unpack[Columns],
) -> DataFrame:
    """
    Join a run and its truth into the judged table.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance. It
        may be of Spark, Polars or pandas.
    by
        Columns of segments, such as country, fold or day.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss. They may be of Spark, Polars or pandas, and go
        to every worker.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    preset
        ``"trec_eval_9"`` or ``"pytrec_eval"`` round scores to 32-bit floats before they are ranked,
        and so does ``{"single_precision": True}``. No other setting of a preset changes rows.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

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
    run, by, columns = _as_frame(run, by, columns)
    options = {"exclude": exclude, "preset": preset, "duplicates": duplicates}
    settings = _read_options(cast("Options", {**columns, **options}))
    frames = _frames(run, truth)
    empty = [_empty(frame) for frame in frames]
    tables = readers.read_all(*_shuffle.pair(empty), by, settings)
    sides = _shuffle.sides(frames, empty, tables.both)
    _check_grades(sides[-1])
    _check_across_users(sides)
    compute = functools.partial(_partitions.judged_of, by=by, settings=settings)
    return _shuffle.computed(sides, compute, partitions)


@wrong_keywords.checked
@_several.takes_users
def with_rank(
    run: DataFrame | Mapping[str, DataFrame],
    /,
    *,
    by: str | Sequence[str] = (),
    descending: bool = True,
    ties: Ties = "item",
    exclude: Truth | None = None,
    close_gaps: bool = False,
    duplicates: Duplicates = "error",
    preset: PresetName | Preset | None = None,
    partitions: int | None = None,
    **columns: Unpack[Columns],
) -> DataFrame:
    """
    Make the rank from the score, or close the gaps of a rank.

    Parameters
    ----------
    run
        One row per item of each list: user, item, score. A null or NaN score means that the item
        was not retrieved. Or a dict of runs by name, as ``runs.stack`` takes it.
    by
        Columns of segments, such as country, fold or day.
    descending
        True if the highest score is the best; False for distances.
    ties
        ``"item"``: equal scores are ordered by item id, descending. ``"expected"``: equal scores
        stay one block; metrics are exact expectations over all orders of the block. ``"order"`` is
        refused, because rows have no order in Spark. ``"pessimistic"`` and ``"optimistic"`` are
        refused, because they read a truth.
    exclude
        Rows to drop before ranks are made, one per user and item, such as past interactions. A
        column of ``by`` limits a row to its group. Rows that are not in the run are ignored. They
        may be of Spark, Polars or pandas, and go to every worker.
    close_gaps
        Read the rank, not the score, and number the items of each list from 1 in the same order.
        Use it after rows were dropped from a ranked run, or together with ``exclude``. Blocks of
        ties stay blocks.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    preset
        ``"trec_eval_9"`` or ``"pytrec_eval"`` round scores to 32-bit floats before they are ranked,
        and so does ``{"single_precision": True}``. No other setting of a preset changes rows.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

    Returns
    -------
    DataFrame
        The frame of ``rf.with_rank``, computed when Spark runs it, in no order.

    Raises
    ------
    RankingDataError
        If columns do not fit, or the run is empty. Spark reports other broken rules (see
        ``rf.with_rank``) when it runs; see ``plain_errors``.

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
    run, by, columns = _as_frame(run, by, columns)
    if ties in BY_GRADE:
        msg = (
            f"ties={ties!r} reads a truth, which Spark's with_rank does not support: use 'expected'"
        )
        raise ValueError(msg)
    if ties == "order":
        msg = "ties='order' reads the order of the rows, which Spark does not keep: use 'item'"
        raise ValueError(msg)
    compute = functools.partial(
        _partitions.ranked_of,
        by=by,
        columns=columns,
        descending=descending,
        ties=ties,
        exclude=_read_options(cast("Options", {**columns, "exclude": exclude})).exclude,
        close_gaps=close_gaps,
        duplicates=duplicates,
        preset=preset,
    )
    (frame,) = _frames(run, None)
    empty = _empty(frame)
    compute(empty, None, None)  # invalid calls fail before any Spark job starts
    table = readers.read("ranked run" if close_gaps else "scored run", empty, by, columns)
    sides = _shuffle.sides([frame], [empty], [table])
    row = sides[0].fetch_row(sides[0].frame)
    if not _has_row(row):
        rules.raise_if_empty(row)
    return _shuffle.computed(sides, compute, partitions)


@wrong_keywords.checked
@_several.takes_users
def from_lists(frame: DataFrame, /, **columns: Unpack[ListColumns]) -> DataFrame:
    """
    Make a long run from one row per user with an array of items in order.

    Parameters
    ----------
    frame
        One row per list: user, item (an array, best first), any other columns, and perhaps
        score (an array of equal length).
    **columns
        ``user=``, ``item=``, ``score=``: the columns that play these roles, if they have other
        names. ``user=`` may be a list of columns.

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
    types, schema = _types.schemas(item_lists.from_lists(_empty(lists), **columns))
    arrow = _types.arrow_schema(schema)
    explode = functools.partial(
        _exploded, names=lists.columns, columns=columns, types=types, arrow=arrow
    )
    return _shuffle.numbered(lists).mapInArrow(explode, schema)


def _exploded(
    batches: Iterable[pa.RecordBatch],
    *,
    names: Sequence[str],
    columns: ListColumns,
    types: pl.Schema,
    arrow: pa.Schema,
) -> Iterator[pa.RecordBatch]:
    """Make rows of lists, inside a worker."""
    for batch in batches:
        rows = _shuffle.with_names(_types.from_arrow(pa.Table.from_batches([batch])), names)
        long = item_lists.from_lists(rows, **columns).select(_types.cast_column(types))
        yield from _types.to_arrow(long).cast(arrow).to_batches()


@wrong_keywords.checked
@_several.takes_users
def per_user(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Compute metrics for every user.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance. It
        may be of Spark, Polars or pandas.
    by
        Columns of segments, such as country, fold or day.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame
        by…, user and one column per metric, computed when Spark runs it, in no order.

    Raises
    ------
    RankingDataError
        If columns do not fit, a table is empty, or run and truth share no user. Spark reports
        other broken rules (see ``rf.check``) when it runs; see ``plain_errors``.

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
    frame, by, options = _as_frame(frame, by, options)
    settings = _read_options(options, takes_bounds=True)
    question = ask(_NO_TABLE, metrics, None, by, settings, per_user=True)
    sides, plan = _planned(frame, truth, question, evaluation.plan_values)
    _check_across_users(sides, settings.users)
    compute = functools.partial(_partitions.values_of, question)
    needs = _needs.needs_of(plan, settings)
    # a Spark truth may return different rows when it is read again
    is_local = truth is not None and not isinstance(truth, DataFrame)
    joined = _shuffle.semi_joined(sides, needs) if is_local else sides
    return _shuffle.computed(sides, compute, partitions, needs, joined)


@wrong_keywords.checked
@_several.takes_users
def evaluate(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    count_users: bool = False,
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Compute the mean of metrics over users.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance. It
        may be of Spark, Polars or pandas.
    by
        Columns of segments, such as country, fold or day.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``, or fewer
        for a small truth.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame
        by…, ``users`` and one column per metric, sorted: a small frame, computed at the call.

    Notes
    -----
    Each partition returns exact sums of its users, and the driver adds them up: means have the bits
    of ``rf.evaluate``, as in ``rf.parts.combine``, and users and counts are the same. Rows that
    cannot change a value are left out of the shuffle, as in ``per_user``; unjudged items are left
    out if Spark may broadcast the keys of the truth.

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
    frame, by, options = _as_frame(frame, by, options)
    settings = _read_options(options, takes_bounds=True, count_users=count_users)
    plans = functools.partial(evaluation.plan_means, total=total)
    question = ask(_NO_TABLE, metrics, None, by, settings)
    sides, plan = _planned(frame, truth, question, plans)
    compute = functools.partial(_numbers.numbers_of, question)
    needs = _needs.needs_of(plan, settings)
    with plain_errors(), _shuffle.read_once(sides, partitions, needs) as (joined, number):
        parts = _shuffle.collected(_shuffle.computed(sides, compute, number, needs, joined))
    numbers = _numbers.added(parts)
    if not _recipes.whole_tables_pass(numbers, settings.users):  # rows left out may show it
        _check_across_users(sides, settings.users)
    means = _numbers.means_of_plan(numbers, plan, total=total)
    return _shuffle.to_spark(frame.sparkSession, means)


@wrong_keywords.checked
@_several.takes_users
def summarize(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    confidence: float = 0.95,
    method: Method = "auto",
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
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance. It
        may be of Spark, Polars or pandas.
    by
        Columns of segments, such as country, fold or day.
    total
        Add a row over all groups, whose ``by`` columns are null, as in ``evaluate``, and the
        columns ``groups``, ``groups_mean`` and ``groups_std``: for ``by=["model", "fold"]`` the
        number of folds with a value, and the mean and standard deviation of the fold means.
    confidence
        The probability that a single interval covers the true value.
    method
        ``"auto"``: chosen by the number and the values of the users, which ``note`` reports;
        ``"t"``: Student's interval.
    resamples
        The number of resamples, for the tests and intervals that draw them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``, or fewer
        for a small truth.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame
        The frame of ``rf.summarize``: small, computed at the call.

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
    frame, by, options = _as_frame(frame, by, options)
    describe = functools.partial(
        summaries.summary_of,
        total=total,
        confidence=confidence,
        method=method,
        resamples=resamples,
        seed=seed,
    )
    _check_lists(frame, truth, by, options)
    question = ask(_NO_TABLE, metrics, None, by, _read_options(options, counts=["missed"]))
    return _described(frame, truth, question, partitions, describe=describe)


@wrong_keywords.checked
@_several.takes_users
def compare(
    frame: DataFrame | Mapping[str, DataFrame],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    paired: bool = True,
    details: bool = False,
    partitions: int | None = None,
    **options: Unpack[Options],
) -> DataFrame:
    """
    Compare systems on the users that they share: differences, intervals and tests.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance. It
        may be of Spark, Polars or pandas.
    by
        Columns of segments, such as country, fold or day.
    total
        Add the comparison over all segments, such as folds, with null in the segment columns: one
        test of the differences within segments.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        ``"t"`` (paired), ``"randomization"``, ``"max_t"`` (all systems at once) or
        ``"sequential"`` (valid at every look). The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` corrects by itself, and takes no other.
    confidence
        The probability that a single interval covers the true value.
    margin
        A difference too small to matter, > 0, on the scale of the metric, or a share of the
        baseline's values such as ``"1%"``: one for all metrics, or a mapping such as
        ``{"ndcg@10": 0.01, "mrr": "2%"}``; metrics missing from the mapping have no margin.
    primary
        The metric that decides, such as ``"ndcg@10"``, chosen before the values are seen. Its
        p-value is not corrected for the other metrics.
    resamples
        The number of resamples, for the tests and intervals that draw them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    paired
        False: compare groups of different users, such as weeks or cohorts with ``model="week"``, by
        Welch's t test on all users of each group. Users in both groups enter with their covariance.
    details
        True: return all columns, such as both means.
    partitions
        The number of partitions of the users; by default ``spark.sql.shuffle.partitions``, or fewer
        for a small truth.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame
        The frame of ``rf.compare``: small, computed at the call.

    Notes
    -----
    The driver collects the values of all users, as in ``summarize``, to pair those of two systems.

    Examples
    --------
    >>> rows = [("old", 1, 7, 1), ("old", 2, 7, 4), ("new", 1, 7, 1), ("new", 2, 7, 2)]
    >>> run = spark.createDataFrame(rows, "model string, user int, item int, rank int")
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [7, 7]})
    >>> change = rankframe.spark.compare(run, "rr", truth=truth, baseline="old")
    >>> change.select("model", "metric", "difference", "verdict").show()
    +-----+------+----------+---------+
    |model|metric|difference|  verdict|
    +-----+------+----------+---------+
    |  new|    rr|     0.125|undecided|
    +-----+------+----------+---------+
    """
    trial = Trial(
        *(baseline, test, correction, confidence, margin, primary, resamples, seed),
        total=total,
        paired=paired,
    )
    frame, by, options = _as_frame(frame, by, options)
    _check_lists(frame, truth, by, options)
    run_dicts.check_model("compare", _empty(frame), by, options)
    question = ask(_NO_TABLE, metrics, None, by, _read_options(options, counts=["missed"]))
    describe = functools.partial(comparison.comparison_of, trial=trial, details=details)
    return _described(frame, truth, question, partitions, describe=describe)


def _as_frame(
    frame: DataFrame | Mapping[str, DataFrame], by: str | Sequence[str], columns: ColumnsT
) -> tuple[DataFrame, list[str], ColumnsT]:
    """Make one frame of a dict of runs, and put the column of its systems first in ``by``."""
    if isinstance(frame, Mapping):
        model = run_dicts.model_of_dict(columns)
        run_dicts.check_runs(frame)
        runs = {name: _frames(run, None)[0] for name, run in frame.items()}
        schemas = {name: _empty(run).collect_schema() for name, run in runs.items()}
        names = list(run_dicts.common_types_of_runs(schemas, model))
        parts = [
            _shuffle.numbered(run).select(
                F.lit(name).alias(model), *(f"`{run.columns.index(column)}`" for column in names)
            )
            for name, run in runs.items()
        ]
        stacked = functools.reduce(lambda stack, part: stack.union(part), parts)
        frame = stacked.toDF(model, *names)
    return frame, *run_dicts.with_model(getattr(frame, "columns", ()), by, columns)


def _check_lists(
    frame: DataFrame, truth: Truth | None, by: str | Sequence[str], options: Options
) -> None:
    """Check that a frame has lists: values of users are what Spark has made already."""
    columns = cast("Columns", options)
    if truth is None and column_roles.lacks_items(columns, by, getattr(frame, "columns", ())):
        msg = (
            "a frame without a column of items, and without truth=, is a table of values, one row "
            "per user, which Spark does not take: collect it, and pass frame.toPandas() to "
            "rankframe's own function; if it has lists, name the column of their items in item="
        )
        raise ValueError(msg)


def _read_options(options: Options, **more: Any) -> Settings:
    """Read the options; the tables beside run and truth are collected, and go to every worker."""
    settings = keywords.read_options(options, **more)
    local: dict[str, Any] = {}
    for name in side_tables.INPUT_MEANINGS:
        table = getattr(settings, name)
        if isinstance(table, DataFrame):
            local[name] = _shuffle.collected(table)
        elif table is not None:
            local[name] = _lazy(table, f"{name}= table").collect()
    return replace(settings, **local)


def _lazy(table: Any, name: str) -> pl.LazyFrame:
    return adapters.to_lazy(table, name, also="Spark DataFrame, a ")


def _planned(
    frame: DataFrame,
    truth: Truth | None,
    question: Question,
    plans: Callable[[Question], Values],
) -> tuple[list[Side], Values]:
    """Plan on tables without rows, so that invalid calls fail before any Spark job starts."""
    by, settings = question.by, question.settings
    roles = dict(settings.columns)
    wanted = {str(roles.get(role, role)) for role in keywords.ROLES} | {*by, "tied"}
    wanted |= column_roles.SEARCHED | question.reading.names
    wanted |= set() if settings.weights is None else {settings.weights}
    if truth is not None:
        wanted |= _possible_grades(truth, settings.columns, by)
    frames = _frames(frame, truth, wanted)
    empty = [_empty(spark_frame, wanted) for spark_frame in frames]
    plan = plans(question.of(*_shuffle.pair(empty)))
    sides = _shuffle.sides(frames, empty, plan.source.tables.both)
    _check_grades(sides[-1])
    return sides, plan


def _possible_grades(truth: Truth, columns: Columns, by: str | Sequence[str]) -> set[str]:
    """Name the columns of a truth without a relevance that may hold grades."""
    if isinstance(truth, DataFrame):
        names = truth.columns
        types = {field.name: field.dataType for field in truth.schema}
        possible = {n for n, dtype in types.items() if isinstance(dtype, BooleanType | NumericType)}
    else:
        schema = _lazy(truth, "truth").collect_schema()
        names = schema.names()
        possible = {n for n, dtype in schema.items() if dtype.is_numeric() or dtype == pl.Boolean}
    roles = column_roles.with_roles(columns, by, names, ["relevance"])
    return set() if roles.get("relevance", "relevance") in names else possible


def _described(
    frame: DataFrame,
    truth: Truth | None,
    question: Question,
    partitions: int | None,
    *,
    describe: Callable[[Values], pl.LazyFrame],
) -> DataFrame:
    """Collect the values of all users, and describe them."""
    sides, plan = _planned(frame, truth, question, evaluation.plan_values)
    if plan.system_metrics is not None:
        msg = (
            f"{plan.system_metrics.requested[0].name} is one number for all lists: its interval "
            "needs the lists in one place; take rankframe.spark.evaluate, or collect the run"
        )
        raise ValueError(msg)
    describe(evaluation.in_groups(plan))  # invalid calls fail before any Spark job starts
    _check_across_users(sides, question.settings.users)
    compute = functools.partial(_partitions.rows_of, question)
    needs = _needs.needs_of(plan, question.settings)
    with plain_errors(), _shuffle.read_once(sides, partitions, needs) as (joined, number):
        parts = _shuffle.collected(_shuffle.computed(sides, compute, number, needs, joined))
    description = notes.rendered(describe(_partitions.gathered(parts, plan)))
    return _shuffle.to_spark(frame.sparkSession, description.collect())


def _frames(
    frame: DataFrame, truth: Truth | None, wanted: Collection[str] | None = None
) -> list[DataFrame]:
    """Return the frames of Spark, after moving a truth of Polars or pandas into Spark."""
    if not isinstance(cast("object", frame), DataFrame):
        msg = f"rankframe.spark takes a Spark DataFrame, not {adapters.kind(frame)}"
        raise TypeError(msg)
    in_spark = [table for table in (frame, truth) if isinstance(table, DataFrame)]
    if any(table.isStreaming for table in in_spark):
        msg = "rankframe.spark takes tables, not streams: use it inside foreachBatch"
        raise TypeError(msg)
    _workers.check_workers(frame.sparkSession)
    if truth is None or isinstance(truth, DataFrame):
        return in_spark
    local = _lazy(truth, "truth").collect()
    unread = [name for name in local.columns if wanted is not None and name not in wanted]
    _types.check_times(local.drop(unread))
    local = local.with_columns(pl.lit(None, pl.Int8).alias(name) for name in unread)
    return [frame, _shuffle.to_spark_in_batches(frame.sparkSession, local)]


def _empty(frame: DataFrame, wanted: Collection[str] | None = None) -> pl.LazyFrame:
    """Return a table without rows in Polars; columns that are not wanted have no type."""
    names = frame.columns
    if duplicates := [name for name in names if names.count(name) > 1]:
        msg = f"column {duplicates[0]!r}: two columns have this name"
        raise RankingDataError(msg)
    fields = [field for field in frame.schema if wanted is None or field.name in wanted]
    for field in fields:
        try:
            _types.arrow_schema(StructType([field]))
        except PySparkTypeError as error:
            dtype = field.dataType.simpleString()
            msg = (
                f"column {field.name!r}: Spark cannot transfer type {dtype} to Python; cast or "
                "drop the column"
            )
            raise RankingDataError(msg) from error
    types = _types.from_arrow(_types.arrow_schema(StructType(fields)).empty_table()).schema
    return pl.LazyFrame(schema={name: types.get(name, pl.Null()) for name in names})


# ------------------------------------------------------------------ rules across users


def _check_across_users(sides: Sequence[Side], users: Users | None = None) -> None:
    """Raise if a table is empty, or users of run and truth cannot match."""
    shared = _shared_row(sides[0], sides[1], [sides[0].table.user]) if len(sides) == 2 else None
    if shared is None:
        tables = [side.fetch_row(side.ranked_rows) for side in sides]
        for side, table in zip(sides, tables, strict=True):
            rules.raise_if_empty(table if _has_row(table) else side.fetch_row(side.frame))
        if len(sides) == 2:
            rules.raise_if_no_match(*tables)
        return
    run, truth = sides
    judged = truth.fetch_row(truth.frame)
    if judged.by and users != "run" and _shared_row(run, truth, judged.keys) is None:
        raise rules.no_pair(shared, judged)
    groups = _shuffle.group_frame(sides)
    split_by = [] if groups is None else [g.name for g in groups if g.n_unique() > 1]
    for name in split_by:
        _check_not_diluted(run, truth, name, shared, users)


def _check_not_diluted(
    run: Side, truth: Side, name: str, shared: Table, users: Users | None
) -> None:
    """Raise if the groups of a column that the truth lacks split users, or folds do not."""
    user, group = run.column(run.table.user), run.column(name)
    counted = run.ranked_rows.groupBy(user).agg(F.count_distinct(group).alias("n"))
    if not counted.where("n > 1").isEmpty():
        if rules.is_fold(name):
            raise rules.shared_folds(run.table, truth.table, name, shared.frame.collect())
    elif rules.counts_misses(users):
        group_of_shared = shared.frame.collect()[name].item()
        other = run.fetch_row(run.ranked_rows.where(F.col(group) != F.lit(group_of_shared)))
        both = replace(run.table, frame=pl.concat([shared.frame, other.frame]))
        rules.raise_if_no_match(both, replace(truth.table, frame=shared.frame))


def _shared_row(run: Side, truth: Side, keys: Sequence[str]) -> Table | None:
    """Fetch a row of the run whose keys are in the truth, if there is one."""
    aliases = {name: f"known{place}" for place, name in enumerate(keys)}
    users = truth.frame.selectExpr(*(f"{truth.column(n)} AS {k}" for n, k in aliases.items()))
    same = F.expr(" AND ".join(f"{run.column(n)} = {k}" for n, k in aliases.items()))
    # in almost all tables the first users suffice
    tables = (
        run.fetch_row(run.ranked_rows.join(some_users, same, "left_semi"))
        for some_users in (F.broadcast(users.limit(1000)), users)
    )
    return next(filter(_has_row, tables), None)


def _check_grades(side: Side) -> None:
    """Raise if a truth without a relevance has grades under another name."""
    exprs: list[str] = []
    for name, dtype in rules.candidates(side.table).items():
        value = side.column(name)
        is_one = value if dtype == pl.Boolean else f"{value} = 1"
        exprs += [f"count_if({_is_zero_sql(side, name)})", f"count_if({is_one})", f"count({value})"]
    counts = _shuffle.collected(side.frame.selectExpr(*exprs)).row(0) if exprs else ()
    for place, (name, dtype) in enumerate(rules.candidates(side.table).items()):
        if rules.are_two_grades(*counts[3 * place : 3 * place + 3]):
            lowest = side.frame.where(_is_zero_sql(side, name)).limit(1)
            row = side.collected(lowest, [*side.table.row, name])
            raise rules.ungraded(name, boolean=dtype == pl.Boolean, row=row)


def _is_zero_sql(side: Side, name: str) -> str:
    value = side.column(name)
    return f"NOT {value}" if side.types([name])[name] == pl.Boolean else f"{value} = 0"


def _has_row(table: Table) -> bool:
    return not table.frame.collect().is_empty()
