"""Metrics of tables in parts: for Dask, Ray, mapped tasks, processes or days.

All rows of a user are in one part, those of the run and those of the truth. Then ``sums`` of each
part, put together by ``combine``, are what ``evaluate`` returns for the whole tables, and the rows
of ``values`` are what ``summarize`` and ``compare`` take. ``facts`` are what a part must know about
the whole.

``items=`` and ``history=`` are facts of the whole as well: pass them whole to each part. A part may
be empty, may lack a model, and may share no user with its truth. ``part=`` gives it a key, such as
its day, which tells it from other parts: a user who is in two of them counts twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Unpack, cast, get_args, overload

import polars as pl

from rankframe import _rooms
from rankframe._evaluation import evaluation, user_columns
from rankframe._request import keywords, wrong_keywords
from rankframe._request.keywords import Options, Settings
from rankframe._request.labels import Metric
from rankframe._request.question import ask
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, readers, run_dicts
from rankframe.errors import RankingDataError
from rankframe.parts import _facts, _numbers, _partitions, _recipes
from rankframe.parts._facts import Facts
from rankframe.parts._recipes import Repeated

__all__ = ["combine", "facts", "merge", "sums", "values"]

_rooms.open_door(__name__)


@adapters.takes_any_frame
def facts(
    frame: Runs[Frame],
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    part: str | None = None,
    count_users: bool = False,
    **options: Unpack[Options],
) -> Facts:
    """Return what parts must know about the whole tables: highest grade, groups and number of
    users.

    Parameters
    ----------
    frame
        The whole run or judged table, as ``evaluate`` takes it, or a part of it: see ``merge``.
    truth
        The truth that judges the run: whole, or of the same part.
    by
        Columns of segments, such as country, fold or day.
    part
    count_users
    **options
        The keywords of ``sums``, so that both take the same ones; they are checked, and only the
        columns that play the roles are read.

    Returns
    -------
    dict
        ``users``, their number in either table, where each (day, user) counts as one if both tables
        have the column of ``by``; ``top_grade``, the highest grade of the truth; ``by``, the
        columns of ``by`` that the truth lacks; ``groups``, the values of these columns, as Arrow in
        base64. For a truth without a relevance, ``ungraded`` has the number of values 0 and 1 of
        its other numeric columns, which are grades if they have both and no other value.
        It can be stored as JSON.

    Raises
    ------
    RankingDataError
        If columns do not fit.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 3], "item": [8, 7], "relevance": [2, 1]})
    >>> rf.parts.facts(run, truth=truth)
    {'users': 3, 'top_grade': 2, 'by': [], 'groups': ''}
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, whole=False)
    _check_part(part)
    settings = keywords.read_options(options, takes_bounds=True, count_users=count_users)
    return _facts.facts_of(_partitions.tables_of(frame, truth, by, settings.columns))


@overload
def merge(parts: Iterable[Facts]) -> Facts: ...
@overload
def merge(parts: Iterable[FrameT], *, repeated: Repeated = "error") -> FrameT: ...
@wrong_keywords.checked
def merge(parts: Iterable[Any], *, repeated: Repeated = "error") -> Any:
    """
    Merge facts of parts into facts of the whole, or sums of parts into sums of them together.

    Parameters
    ----------
    parts
        What ``facts`` returned for each part, if no process sees the whole; or what ``sums``
        returned, each with its key, for a tree of tasks. Merged ones can be merged again, in any
        order.
    repeated
        What happens to a part whose key comes twice. ``"error"`` raises an error; with ``"last"``,
        the later frame replaces the earlier one as a whole. Facts have no keys.

    Returns
    -------
    dict, DataFrame, LazyFrame or pandas.DataFrame
        Facts as ``facts`` returns them, or sums as ``sums`` does, which ``combine`` takes and which
        keep the keys of all parts. A LazyFrame gives a LazyFrame of what was collected at the call.

    Raises
    ------
    RankingDataError
        If the parts are from different calls, a part comes twice, or one of several has no key.
    ValueError
        If there is no part.

    Examples
    --------
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7], "relevance": [2, 1]})
    >>> run = truth.select("user", "item", rank=1)
    >>> days = [rf.parts.facts(run.filter(user=u), truth=truth.filter(user=u)) for u in (1, 2)]
    >>> rf.parts.merge(days)
    {'users': 2, 'top_grade': 2, 'by': [], 'groups': ''}
    """
    keywords.check_choice("repeated", repeated, get_args(Repeated))
    several = adapters.frames_of_parts(parts)
    if any(isinstance(part, Mapping) for part in several):
        if repeated != "error":
            msg = f"repeated={repeated!r}: facts have no key: leave out those that come twice"
            raise ValueError(msg)
        return _facts.merged([_facts.checked(part) for part in several])
    with adapters.cures_of_caller(several, {}):
        small, first = _stacked(several, repeated)
        return adapters.to_caller_type(_recipes.added(small).lazy(), like=first)


@adapters.takes_any_frame
def sums(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    facts: Facts | None = None,
    part: str | None = None,
    count_users: bool = False,
    **options: Unpack[Options],
) -> FrameT:
    """
    Add up the metrics of a part of the users, for ``combine`` to add up all parts.

    Parameters
    ----------
    frame
        All rows of some users of a run or a judged table, as ``evaluate`` takes it.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        All rows of the same users of the truth.
    by
        Columns of segments, such as country, fold or day.
    facts
        The facts of the whole tables. They may be left out where no metric reads the highest grade
        of the truth, and the truth has the columns ``by``.
    part
        The key of the part, such as its day: ``part="2026-11-01"``. By the key, ``combine`` and
        ``merge`` recognize a part that was computed again. They take several parts only if each has
        a key.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.
        ``items`` and ``history`` are whole tables.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        A small frame, one row per number, with the same columns for every call: ``group`` (the
        values of ``by`` as JSON), ``kind`` (what the number is), ``metric``, ``value`` (of an
        item's column, for metrics of all lists), ``count``, ``sum``, ``size`` (the sum of absolute
        values), ``units`` (the exact sum), ``exponent`` (of weights); and rows for the call, the
        key, and the groups. Its size depends on the groups and metrics, and for metrics of all
        lists on the catalogue. No value is null, so it survives Parquet, Arrow, CSV and pandas.
        Several can be concatenated into one.

    Raises
    ------
    RankingDataError
        If the part has a grade or a group that the facts lack.
    ValueError
        If facts are needed and not passed.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> small = rf.parts.sums(run.filter(user=1), "rr", truth=truth.filter(user=1))
    >>> small.filter(kind="mean").select("metric", "count", "sum").rows()
    [('rr', 1, 0.5)]
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, whole=False)
    settings = keywords.read_options(options, takes_bounds=True, count_users=count_users)
    _check_part(part)
    opened = _opened(frame, truth, by, settings)
    own = _facts.part_of(opened, truth, by, settings, facts)
    question = ask(own.frame, metrics, truth, by, settings, totals=own.totals)
    _facts.check_needs(question.requested, settings, facts)
    plan = evaluation.plan_means(question)
    _facts.check_grades(plan, facts)
    key = _numbers.row_of(_numbers.PART, part or "").lazy()
    small = [*own.checks(_numbers.SCHEMA), _recipes.small_frame(plan, settings, facts), key]
    return adapters.to_caller_type(pl.concat(small), like=frame, beside=question.beside)


@adapters.takes_any_frame
def combine(
    parts: FrameT | Iterable[FrameT], *, total: bool = False, repeated: Repeated = "error"
) -> FrameT:
    """
    Return the means over all users from the sums of all parts.

    Parameters
    ----------
    parts
        What ``sums`` returned for each part, in any order, or ``merge`` for some of them; or one
        frame of them all, such as ``pl.read_parquet("sums/*.parquet")``.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    repeated
        What happens to a part whose key comes twice. ``"error"`` raises an error; with ``"last"``,
        the later frame replaces the earlier one as a whole.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The frame of ``evaluate`` for the whole tables: the same rows, users and counts, and the
        same bits of means. A LazyFrame gives a LazyFrame of what was collected at the call.

    Raises
    ------
    RankingDataError
        If the parts are from different calls, a part comes twice, one of several has no key, a
        table is empty in all of them, no user is in both tables, or the number of users differs
        from that in the facts: a part is missing, or a user is in several parts.
    ValueError
        If there is no part.

    Notes
    -----
    Without facts of the whole, or with facts that were merged from the same parts, a user in two
    parts counts twice: split by a hash of the user, never by rows.

    Parts have exact sums, which are rounded once, as in ``evaluate``. Where exact sums do not fit,
    means agree only in about 15 significant digits: if the sizes of all values add up to more than
    2^38, or their mean size is below 2^-36; or if a weight times its value is below 2^-35 of the
    greatest weight. Metrics of all lists agree in about 15 digits as well.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> parts = [
    ...     rf.parts.sums(run.filter(user=u), "rr", truth=truth.filter(user=u), part=str(u))
    ...     for u in (1, 2)
    ... ]
    >>> rf.parts.combine(parts).equals(rf.evaluate(run, "rr", truth=truth))
    True
    """
    keywords.check_switch("total", total)
    keywords.check_choice("repeated", repeated, get_args(Repeated))
    several = adapters.frames_of_parts(parts)
    with adapters.cures_of_caller(several, {}):
        return cast("FrameT", _combined(several, repeated, total=total))


def _combined(several: Sequence[Any], repeated: Repeated, *, total: bool) -> Any:
    small, first = _stacked(several, repeated)
    small = _recipes.added(small)
    call = _recipes.call_of(small)
    keywords.check_total(call.request.by, total=total)
    if total and call.grouped and call.labels:
        name = next(iter(call.labels))
        msg = (
            f"metric {name!r}: items= or history= has a column of by=, and parts keep no number of "
            "all groups: ask for it in a call with fewer columns in by="
        )
        raise ValueError(msg)
    users = None if call.facts is None else call.facts["users"]
    _recipes.raise_if_whole_is_broken(small, users, policy=call.options.get("users"))
    return adapters.to_caller_type(_recipes.means_of(small, total=total).lazy(), like=first)


@adapters.takes_any_frame
def values(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    facts: Facts | None = None,
    cluster: str | None = None,
    **options: Unpack[Options],
) -> FrameT:
    """
    Compute the metrics of a part of the users, one row per user.

    Parameters
    ----------
    frame
        All rows of some users of a run or a judged table, as ``evaluate`` takes it.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        All rows of the same users of the truth.
    by
        Columns of segments, such as country, fold or day.
    facts
        The facts of the whole tables. They may be left out where no metric reads the highest grade
        of the truth, and the truth has the columns ``by``.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.
        ``items`` and ``history`` are whole tables.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, user and one column per metric, sorted; with ``weights`` and ``cluster`` also these
        columns. The concatenated rows of all parts are those of ``per_user`` for the whole tables,
        and what ``summarize`` and ``compare`` take, which also detect a user in two parts. Their
        ``num_missed`` is null, and their notes name no missed users, since values do not show who
        has no list. They also do not show days of the run that the truth does not have, for which
        ``combine`` raises an error.

    Raises
    ------
    RankingDataError
        As in ``sums``.
    ValueError
        As in ``sums``, and for metrics that have no value per user.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "rank": [1, 2, 4]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> rows = pl.concat(
    ...     rf.parts.values(run.filter(user=user), "rr", truth=truth.filter(user=user))
    ...     for user in (1, 2, 3)
    ... )
    >>> rows.sort("user").equals(rf.per_user(run, "rr", truth=truth))
    True
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, whole=False)
    settings = keywords.read_options(options, cluster=cluster, takes_bounds=True)
    own = _facts.part_of(_opened(frame, truth, by, settings), truth, by, settings, facts)
    question = ask(own.frame, metrics, truth, by, settings, per_user=True, totals=own.totals)
    _facts.check_needs(question.requested, settings, facts)
    plan = evaluation.plan_values(question)
    _facts.check_grades(plan, facts)
    names = {user_columns.WEIGHT: settings.weights, user_columns.CLUSTER: settings.cluster}
    rows = plan.rows.rename({key: name for key, name in names.items() if name is not None})
    checked = plan.checks.guarded(rows)
    schema = checked.collect_schema()
    result = pl.concat([*own.checks(dict(schema)), checked]).sort(plan.keys)
    return adapters.to_caller_type(result, like=frame, beside=question.beside)


def _opened(
    frame: Frame, truth: Truth | None, by: str | Sequence[str], settings: Settings
) -> pl.DataFrame | pl.LazyFrame:
    frame = readers.with_items(frame, truth, by, settings.columns)
    return adapters.to_polars(frame, "run" if truth is not None else "judged table")


def _check_part(part: object) -> None:
    if part is not None and not (isinstance(part, str) and part):
        msg = f"part must be text, such as '2026-11-01', not {part!r}"
        raise TypeError(msg) if not isinstance(part, str) else ValueError(msg)


def _damaged_error(why: str) -> RankingDataError:
    return RankingDataError(f"parts: a cell is damaged ({why}): recreate them with rf.parts.sums")


def _stacked(several: Sequence[Any], repeated: Repeated) -> tuple[pl.DataFrame, Any]:
    """Concatenate small frames without parts that come twice, and return one of the caller's."""
    if not several:
        msg = "there is no part: pass the results of facts or sums"
        raise ValueError(msg)
    frames = [adapters.to_lazy(part, "part") for part in several]
    for place, frame in enumerate(frames):
        lacking = [name for name in _numbers.SCHEMA if name not in frame.collect_schema()]
        if lacking:
            msg = (
                f"part {place}: no column {lacking[0]!r}: parts are what rf.parts.sums returned; "
                "values are put together with pl.concat"
            )
            raise RankingDataError(msg)
    stacked = [
        frame.select(pl.col(name).cast(t) for name, t in _numbers.SCHEMA.items())
        for frame in frames
    ]
    try:
        small = pl.concat(stacked).collect()
    except pl.exceptions.InvalidOperationError as error:
        raise _damaged_error(str(error).partition("\n")[0]) from None
    if small.null_count().sum_horizontal().item():
        why = next(f"column {c.name!r} has a null" for c in small if c.null_count())
        raise _damaged_error(why)
    if small.is_empty():
        msg = "the parts have no row: pass what rf.parts.sums returned for each"
        raise RankingDataError(msg)
    return _recipes.single_parts(small, repeated), several[0]
