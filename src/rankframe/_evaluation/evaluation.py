"""The verbs: one value per user, and the mean over users.

``relevant rows → expressions → numbers``: the second half of the pipeline.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, Unpack

import polars as pl

from rankframe._evaluation import sums, system_metrics, user_clusters, user_weights
from rankframe._evaluation.system_metrics import OfLists
from rankframe._evaluation.user_weights import Weights
from rankframe._request import gain_functions, keywords, labels, registry
from rankframe._request.keywords import Columns, Defaults, GainsFrom, Settings, Users
from rankframe._request.labels import Aggregate, Metric, RequestedMetric
from rankframe._request.registry import Reading, Scope
from rankframe._request.types import Frame, FrameT
from rankframe._tables import (
    adapters,
    guards,
    judgment,
    rank_order,
    readers,
    rules,
    run_dicts,
    side_tables,
)
from rankframe._tables.judgment import Judged
from rankframe._tables.table import Totals
from rankframe._vocabulary import scope_rows, share_rows, terms
from rankframe._vocabulary.share_rows import Kind
from rankframe.errors import RankingDataError

_HAS_LIST = f"{labels.INNER}has_list"
_SYSTEMS, _NUMBER = f"{labels.INNER}systems", f"{labels.INNER}number"

#: Whether the run has no list for the user.
MISSED = f"{labels.INNER}missed"


def per_user(
    frame: FrameT | Mapping[str, FrameT],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    users: Users | None = None,
    undefined: float | None = None,
    relevant_at: float | None = None,
    gains_from: GainsFrom | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    bounds: bool = False,
    scenarios: bool = False,
    defaults: Defaults | None = None,
    single_precision: bool = False,
    items: Frame | None = None,
    history: Frame | None = None,
    other: Frame | None = None,
    exclude: Frame | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Compute metrics for every user.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    users
        Which users count: ``"truth"``, every user with an item of grade > 0 (a user missing from
        the run scores 0); ``"judged"``, with any row in the truth; ``"both"``, with a row in the
        run and one in the truth; ``"served"``, with a row in the truth and a list of every system
        of ``by``; ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` where there is no
        truth.
    undefined
        The value where a metric (a number or a boolean) is undefined, for example for a user
        without a relevant item or, if the metric reads the list, without a list. By default null,
        which a mean leaves out.
    relevant_at
        The lowest grade that is relevant to the binary measures; > 0. By default every grade > 0
        is. It never changes which users count. A label with ``rel=``, such as ``"ap(rel=2)"``, has
        its own.
    gains_from
        ``"relevant_at"``: grades below ``relevant_at`` count as 0, so that they have no gain in any
        metric, nor in its ideal list. Users with only such grades stay, as with ``relevant_at``. By
        default every grade > 0 has a gain.
    judged_only
        Drop unjudged items and those of negative grade from the lists, after ``exclude``, and close
        the ranks (trec_eval ``-J``).
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal stays whole (trec_eval
        ``-M``).
    bounds
        Add ``<metric>_low`` and ``<metric>_high``: the least and the greatest value that the metric
        can have if any items of the list that are unjudged (or have a negative grade) are judged,
        with any grade up to the highest of the truth.
    scenarios
        Add ``<metric>_if_none`` and ``<metric>_if_all``: its value if all items that ``bounds``
        varies are judged not relevant, and if all have the highest grade of the truth.
    defaults
        Parameters for labels that leave them out, for example
        ``{"map": {"divide_by": "attainable"}}``, by any name of the metric.
    single_precision
        Round scores to 32-bit floats before ranking, which ties some of them (trec_eval 9).
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, one row per user and item: for popularity, novelty and profiles.
    other
        Another run, for ``unexpectedness``.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions. A column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. Rows
        that match no list are ignored. The truth stays as it is, so an excluded item that is in the
        truth is a miss.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, if they have other names.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, user and one column per metric (three with ``bounds``), sorted by by… and user.

    Notes
    -----
    An expression of your own reduces the user's rows of grade > 0, retrieved or not. If it reads
    ``judged``, it reduces all rows of the truth; if it reads ``listed``, the whole list, for which
    a run alone is enough.

    The systems of ``users="served"`` are those of the column ``model``, or else of the first column
    of ``by``, within each group of the other columns; without ``by``, the run is the only system.
    Its lists are what ``exclude``, ``depth`` and ``judged_only`` leave; for all other choices only
    ``exclude`` removes rows, as in trec_eval. A list of which ``depth`` leaves nothing still is a
    list, so that ``depth=k`` and a metric at k have the same users.

    Precision, recall, F, hit, RR, DCG, RBP, ERR and counts have ``bounds``; a metric without proven
    bounds raises an error. They are null where the metric is null. With ``depth``, items below it
    are not part of the list. ``scenarios`` are for any metric except those of diversity; they are
    null where one of the two is undefined, and other judgments may lead to values outside their
    range.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [8, 7, 9]})
    >>> rf.per_user(run, "precision@2", "rr", truth=truth)
    shape: (3, 3)
    ┌──────┬─────────────┬─────┐
    │ user ┆ precision@2 ┆ rr  │
    │ ---  ┆ ---         ┆ --- │
    │ i64  ┆ f64         ┆ f64 │
    ╞══════╪═════════════╪═════╡
    │ 1    ┆ 0.5         ┆ 0.5 │
    │ 2    ┆ 0.5         ┆ 1.0 │
    │ 3    ┆ 0.0         ┆ 0.0 │
    └──────┴─────────────┴─────┘
    """
    if "weights" in columns:
        msg = "weights= applies to means, and per_user returns one value per user: use evaluate"
        raise TypeError(msg)
    frame, by = run_dicts.as_frame(frame, by)
    settings = Settings(
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        gains_from=gains_from,
        judged_only=judged_only,
        depth=depth,
        bounds=bounds,
        scenarios=scenarios,
        defaults=defaults,
        single_precision=single_precision,
        items=items,
        history=history,
        other=other,
        exclude=exclude,
        columns=columns,
    )
    plan = plan_values(frame, metrics, truth, by, settings, per_user=True)
    beside = (truth, items, history, other, exclude)
    return adapters.to_caller_type(plan.guarded().sort(plan.keys), like=frame, beside=beside)


def evaluate(
    frame: FrameT | Mapping[str, FrameT],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    users: Users | None = None,
    undefined: float | None = None,
    weights: str | None = None,
    relevant_at: float | None = None,
    gains_from: GainsFrom | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    bounds: bool = False,
    scenarios: bool = False,
    count_users: bool = False,
    defaults: Defaults | None = None,
    single_precision: bool = False,
    items: Frame | None = None,
    history: Frame | None = None,
    other: Frame | None = None,
    exclude: Frame | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Compute the mean of metrics over users.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    users
        Which users count: ``"truth"``, every user with an item of grade > 0 (a user missing from
        the run scores 0); ``"judged"``, with any row in the truth; ``"both"``, with a row in the
        run and one in the truth; ``"served"``, with a row in the truth and a list of every system
        of ``by``; ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` where there is no
        truth.
    undefined
        The value where a metric (a number or a boolean) is undefined, for example for a user
        without a relevant item or, if the metric reads the list, without a list. By default null,
        which a mean leaves out.
    weights
        The column of the truth or the run with the weight of each user, ≥ 0: the mean is Σ
        weight·value / Σ weight. It has one value per user (or, if the truth has columns of ``by``,
        per user and group), and every averaged user needs one. By default all users have the same
        weight.
    relevant_at
        The lowest grade that is relevant to the binary measures; > 0. By default every grade > 0
        is. It never changes which users count. A label with ``rel=``, such as ``"ap(rel=2)"``, has
        its own.
    gains_from
        ``"relevant_at"``: grades below ``relevant_at`` count as 0, so that they have no gain in any
        metric, nor in its ideal list. Users with only such grades stay, as with ``relevant_at``. By
        default every grade > 0 has a gain.
    judged_only
        Drop unjudged items and those of negative grade from the lists, after ``exclude``, and close
        the ranks (trec_eval ``-J``).
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal stays whole (trec_eval
        ``-M``).
    bounds
        Add ``<metric>_low`` and ``<metric>_high``: the least and the greatest value that the metric
        can have if any items of the list that are unjudged (or have a negative grade) are judged,
        with any grade up to the highest of the truth.
    scenarios
        Add ``<metric>_if_none`` and ``<metric>_if_all``: its value if all items that ``bounds``
        varies are judged not relevant, and if all have the highest grade of the truth.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    defaults
        Parameters for labels that leave them out, for example
        ``{"map": {"divide_by": "attainable"}}``, by any name of the metric.
    single_precision
        Round scores to 32-bit floats before ranking, which ties some of them (trec_eval 9).
    items
        The catalogue, one row per item, shown or not, with any columns, such as genres (a list of
        text), a provider or a vector (a list of numbers); or one row per item and value of a column
        ``category``.
    history
        Past interactions, one row per user and item: for popularity, novelty and profiles.
    other
        Another run, for ``unexpectedness``.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions. A column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. Rows
        that match no list are ignored. The truth stays as it is, so an excluded item that is in the
        truth is a miss.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, if they have other names.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, ``users`` (Int64, the number of users that ``users=`` selects) and one column per
        metric (three with ``bounds``, one more with ``count_users``); one row, or one per group,
        sorted, totals last. A group that the truth does not cover has 0 users and nulls.

    Raises
    ------
    RankingDataError
        If ``weights`` are missing, negative, differ within a user or are all 0.
    ValueError
        If ``weights`` is passed with a metric that is not a mean over users, such as ``num_hits``.

    Notes
    -----
    An expression of your own reduces the user's rows of grade > 0, retrieved or not. If it reads
    ``judged``, it reduces all rows of the truth; if it reads ``listed``, the whole list, for which
    a run alone is enough. Geometric means such as ``"gmap"`` are labels, too.

    A column of ``by`` that is called ``fold`` or ``split`` must be in the truth as well. Each call
    takes a few milliseconds before it reads a row, so stack many small tables, with a column for
    ``by``, and evaluate them in one call instead of a loop.

    With ``users="both"``, each system has a mean over its own users; with ``"served"``, all systems
    have means over the same users. If the run has one batch of users and the truth has all users,
    pass ``"both"``: otherwise the users of other batches count as misses.

    The systems of ``users="served"`` are those of the column ``model``, or else of the first column
    of ``by``, within each group of the other columns; without ``by``, the run is the only system.
    Its lists are what ``exclude``, ``depth`` and ``judged_only`` leave; for all other choices only
    ``exclude`` removes rows, as in trec_eval. A list of which ``depth`` leaves nothing still is a
    list, so that ``depth=k`` and a metric at k have the same users.

    Precision, recall, F, hit, RR, DCG, RBP, ERR and counts have ``bounds``; a metric without proven
    bounds raises an error. They are null where the metric is null. With ``depth``, items below it
    are not part of the list. ``scenarios`` are for any metric except those of diversity; they are
    null where one of the two is undefined, and other judgments may lead to values outside their
    range.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [8, 7, 9]})
    >>> rf.evaluate(run, "precision@2", "mrr", truth=truth)
    shape: (1, 3)
    ┌───────┬─────────────┬─────┐
    │ users ┆ precision@2 ┆ mrr │
    │ ---   ┆ ---         ┆ --- │
    │ i64   ┆ f64         ┆ f64 │
    ╞═══════╪═════════════╪═════╡
    │ 3     ┆ 0.333333    ┆ 0.5 │
    └───────┴─────────────┴─────┘
    """
    frame, by = run_dicts.as_frame(frame, by)
    settings = Settings(
        users=users,
        undefined=undefined,
        weights=weights,
        relevant_at=relevant_at,
        gains_from=gains_from,
        judged_only=judged_only,
        depth=depth,
        bounds=bounds,
        scenarios=scenarios,
        count_users=count_users,
        defaults=defaults,
        single_precision=single_precision,
        items=items,
        history=history,
        other=other,
        exclude=exclude,
        columns=columns,
    )
    plan = plan_means(frame, metrics, truth, by, settings, total=total)
    means = _checked_means(plan, total=total)
    return adapters.to_caller_type(
        means, like=frame, beside=(truth, items, history, other, exclude)
    )


# ------------------------------------------------------------------ plans


class OnePass(NamedTuple):
    """The values and their flags in one frame, for a result that is made of these alone."""

    lists: pl.LazyFrame
    suspect: pl.Expr
    surplus: pl.Expr
    doubt: pl.Expr
    flags: list[pl.LazyFrame]  # of the tables


class Plan(NamedTuple):
    """The values of every user, the flags of their rules, and the function that raises."""

    prepared: Judged
    requested: list[RequestedMetric]  # those with a value per user
    values: pl.LazyFrame
    types: dict[str, pl.DataType]  # of the values
    flags: list[pl.LazyFrame]
    raise_violation: Callable[[], None]
    raise_global: Callable[[], None]  # if only a rule on whole tables is in doubt
    of_lists: OfLists | None = None  # those that are one number of all lists
    one_pass: OnePass | None = None
    weights: str | None = None  # the column of the users' weights
    cluster: str | None = None  # the column of clusters: users who depend on each other
    counted: frozenset[str] = frozenset()  # the metrics whose users are counted
    marks_missed: bool = False  # whether ``MISSED`` is among the values

    @property
    def asked(self) -> list[str]:
        """The names of all metrics, in the order of the call."""
        if self.of_lists is None:
            return [one.name for one in self.requested]
        return self.of_lists.asked

    @property
    def columns(self) -> list[str]:
        """The columns of the means, in the order of the call."""
        columns: list[str] = []
        for name in self.asked:
            columns += [name, users_of(name)] if name in self.counted else [name]
        return columns

    @property
    def by(self) -> list[str]:
        """The columns that split the run into lists."""
        return self.prepared.tables[0].by

    @property
    def keys(self) -> list[str]:
        """The columns of by and the user."""
        return self.prepared.tables[0].keys

    def guarded(self) -> pl.LazyFrame:
        """Return the values, checked when the plan runs."""
        flags, types = self.flags, self.types
        return guards.guarded(self.values, flags, self.raise_violation, types, self.raise_global)


def plan_values(
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Frame | None,
    by: str | Sequence[str],
    settings: Settings,
    *,
    per_user: bool,
    all_lists: bool = False,
    totals: Totals | None = None,
) -> Plan:
    """Plan the values of every user; ``per_user=False`` accepts geometric means, too.

    ``all_lists`` accepts metrics of all lists even if geometric means are refused.
    """
    requested = labels.parse_metrics(metrics, per_user=per_user, defaults=settings.defaults)
    given = settings.inputs
    reading = registry.reading_of(_names(requested), inputs=given)
    if truth is None:
        _check_truth(frame, requested, settings)
    known = {n.partition("(")[0] for n, c in reading.columns.items() if not c.always_reserved}
    prepared = judgment.prepare_tables(
        frame,
        truth,
        by,
        settings.columns,
        reads={*reading.names, *settings.of_users},
        reserved=known,
        run_alone=all(_lists_alone(one, given) for one in requested),
        ranks_alone=True,
        single_precision=settings.single_precision,
        totals=totals,
    )
    prepared = judgment.with_inputs(prepared, settings)
    segments = judgment.segments_of_truth(frame, prepared)
    _check_users(settings.users, prepared, segments, judged_only=settings.judged_only)
    if settings.users == "served":
        _check_systems(prepared, segments)
    _check_means(requested, settings)
    for one in requested:
        _check_scope(one, prepared)
        if settings.gains_from is not None or one.gains_from_there:
            _check_no_gain_of_zero(one)
        if (settings.bounds or settings.scenarios) and prepared.has_subtopics:
            _check_no_subtopics(one)
    extremes = [_worlds_of(one, tied=prepared.tied) for one in requested] if settings.bounds else []
    if prepared.tied:
        requested = labels.in_ties(requested, metrics, defaults=settings.defaults)
    of_lists = None
    if any(system_metrics.is_of_all(one) for one in requested):
        policy = users_policy(settings, prepared)
        whose = None if policy == "run" else _selected(prepared, policy, settings)
        of_lists = system_metrics.of_all_lists(prepared, requested, whose)
    plan = _plan(prepared, requested, settings)._replace(of_lists=of_lists)
    if of_lists is not None:
        _check_of_lists(of_lists, settings, refused=per_user and not all_lists)
    if settings.bounds or settings.scenarios:
        plan = _with_worlds(plan, extremes, settings)
    if settings.weights is not None:
        plan = _weighted(plan, settings.weights)
    if settings.cluster is not None:
        plan = _clustered(plan, settings.cluster)
    return _with_missed(plan) if settings.count_missed else plan


def plan_means(
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Frame | None,
    by: str | Sequence[str],
    settings: Settings,
    *,
    total: bool = False,
    totals: Totals | None = None,
) -> Plan:
    """Plan the values of every user, of which means can be taken."""
    plan = plan_values(frame, metrics, truth, by, settings, per_user=False, totals=totals)
    keywords.check_flag("total", total)
    if total and not plan.by:
        msg = "total=True adds a row of overall means to the groups of by=: name their columns"
        raise ValueError(msg)
    if "users" in plan.by:
        msg = "column 'users': evaluate counts users under this name: rename the column"
        raise RankingDataError(msg)
    if settings.count_users:
        plan = _with_counts(plan, metrics, settings)
    labels.check_names(plan.requested, [*plan.by, "users"])
    _check_numeric(plan)
    if plan.weights is not None:
        _check_weighted_means(plan)
        if totals is None:  # another part may have the weight
            plan = _with_weight_watched(plan, plan.weights)
    return plan


def _with_counts(plan: Plan, metrics: Sequence[Metric], settings: Settings) -> Plan:
    """Count the users of each requested metric; metrics of all lists have none."""
    asked = labels.parse_metrics(metrics, per_user=False, defaults=settings.defaults)
    names = {one.name for one in asked}
    counted = [one for one in plan.requested if one.name in names]
    counts = [one._replace(name=users_of(one.name)) for one in counted]
    labels.check_names([*plan.requested, *counts], [*plan.by, "users"])
    return plan._replace(counted=frozenset(one.name for one in counted))


def means_of_groups(
    plan: Plan, by: Sequence[str], names: Sequence[str] | None = None
) -> pl.LazyFrame:
    """Return users and metrics of each group of ``by``: means, and metrics of all lists."""
    result = over_users(plan, [mean for mean, _ in _means(plan).values()], by)
    if plan.counted:
        result = result.with_columns(pl.col([*map(users_of, plan.counted)]).fill_null(0))
    if plan.of_lists is None:
        return result
    numbers = plan.of_lists.values(by)
    result = result.join(numbers, on=by, how="left") if by else result.join(numbers, how="cross")
    undefined = plan.of_lists.judged.settings.undefined
    if undefined is not None:
        filled = [one.name for one in plan.of_lists.requested]
        result = result.with_columns(pl.col(filled).fill_null(undefined))
    return result.select(*by, "users", *(plan.columns if names is None else names))


def users_of(name: str) -> str:
    """Name the column that counts the users of a metric."""
    return f"{name}_users"


def _checked_means(plan: Plan, *, total: bool) -> pl.LazyFrame:
    """Return the means of all groups, checked when the plan runs."""
    types = types_of_means(plan)
    if plan.one_pass is not None and types is not None and not plan.by:
        return _means_in_one_pass(plan, plan.one_pass, types)
    result = means_of_groups(plan, plan.by)
    if total:
        result = pl.concat([result, means_of_groups(plan, total_by(plan.by))], how="diagonal")
    raise_violation = functools.partial(_raise_violation, plan, result)
    checked = guards.guarded(result, plan.flags, raise_violation, types, plan.raise_global)
    return checked.sort(plan.by, nulls_last=True) if plan.by else checked


def _means_in_one_pass(
    plan: Plan, one_pass: OnePass, types: Mapping[str, pl.DataType]
) -> pl.LazyFrame:
    """Return the means over all users, with the flags made in the same pass."""
    means = [mean for mean, _ in _means(plan).values()]
    users = pl.len().cast(pl.Int64).alias("users")
    flags = {"suspect": one_pass.suspect, "surplus": one_pass.surplus, "doubt": one_pass.doubt}
    row = one_pass.lists.select(users, *means, **flags)
    result = plan.values.select(users, *means)
    raise_violation = functools.partial(_raise_violation, plan, result)
    return guards.guarded_row(row, one_pass.flags, raise_violation, types, plan.raise_global)


def _raise_violation(plan: Plan, result: pl.LazyFrame) -> None:
    plan.raise_violation()
    raise_infinite_mean(result, plan.by)


def types_of_means(plan: Plan) -> dict[str, pl.DataType] | None:
    """Return the types of ``means_of_groups``; None if they must be looked up."""
    if plan.of_lists is not None:
        return None
    types: dict[str, pl.DataType] = {name: plan.prepared.types[name] for name in plan.by}
    types["users"] = pl.Int64()
    return types | {name: dtype for name, (_, dtype) in _means(plan).items()}


def _means(plan: Plan) -> dict[str, tuple[pl.Expr, pl.DataType]]:
    """Return each column of means: how it is made, and its type."""
    made: dict[str, tuple[pl.Expr, pl.DataType]] = {}
    for one in plan.requested:
        made[one.name] = _mean(
            one.name, one.over_users, plan.types[one.name], weighted=plan.weights is not None
        )
        if one.name in plan.counted:
            made[users_of(one.name)] = counted_users(one.name), pl.Int64()
    return made


def counted_users(name: str) -> pl.Expr:
    """Count the users for whom a metric is defined."""
    return pl.col(name).count().cast(pl.Int64).alias(users_of(name))


@functools.lru_cache(maxsize=4096)  # saves 0.5 of 4 ms with five metrics
def _mean(
    name: str, over_users: Aggregate, dtype: pl.DataType, *, weighted: bool
) -> tuple[pl.Expr, pl.DataType]:
    """Return the mean over users of a metric, and its type."""
    mean: Callable[[pl.Expr], pl.Expr]
    mean = sums.order_free_mean if dtype == pl.Float64 else pl.Expr.mean
    mean = by_weight if weighted else mean
    made = over_users(pl.col(name), mean).alias(name)
    types = {name: dtype, user_weights.WEIGHT: pl.Float64()}
    return made, pl.LazyFrame(schema=types).select(made).collect_schema()[name]


def by_weight(values: pl.Expr) -> pl.Expr:
    """Take the weighted mean over users."""
    return sums.weighted_mean(values, pl.col(user_weights.WEIGHT))


def over_users(plan: Plan, aggregates: Sequence[pl.Expr], by: Sequence[str]) -> pl.LazyFrame:
    """Reduce the values of users to one row per group, or to one."""
    aggregates = [pl.len().cast(pl.Int64).alias("users"), *aggregates]
    if not by:
        return plan.values.select(aggregates)
    reduced = plan.values.group_by(by).agg(aggregates)
    joined = groups_of(plan.prepared, by).join(reduced, on=by, how="left")
    return joined.with_columns(pl.col("users").fill_null(0))


def total_by(by: Sequence[str]) -> Sequence[str]:
    """Name the columns of ``by`` that stay in the row of all users."""
    return by[:1] if len(by) > 1 else []


class UserValues(NamedTuple):
    """One row per user; a group without users has one row of nulls."""

    requested: list[RequestedMetric]
    by: list[str]
    user: str
    rows: pl.LazyFrame
    of_lists: OfLists | None = None
    numbers: pl.LazyFrame | None = None  # of all lists, with users, one row per group
    weights: str | None = None  # the column of the users' weights
    cluster: str | None = None  # the column of clusters: users who depend on each other


def user_values(
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Frame | None,
    by: str | Sequence[str],
    settings: Settings,
    *,
    per_user: bool = True,
    all_lists: bool = False,
) -> UserValues:
    """Return the input of the statistics; ``per_user=False`` accepts geometric means, too."""
    plan = plan_values(frame, metrics, truth, by, settings, per_user=per_user, all_lists=all_lists)
    return in_groups(plan)


def in_groups(plan: Plan) -> UserValues:
    """Return the values of all users, with at least one row per group."""
    _check_numeric(plan)
    rows = plan.values
    if plan.by:
        rows = groups_of(plan.prepared, plan.by).join(rows, on=plan.by, how="left")
    *_, user = plan.keys
    checked = guards.guarded(rows, plan.flags, plan.raise_violation, raise_global=plan.raise_global)
    if plan.of_lists is None:
        return UserValues(
            plan.requested, plan.by, user, checked, weights=plan.weights, cluster=plan.cluster
        )
    alone = plan._replace(requested=[])
    numbers = means_of_groups(alone, plan.by, [one.name for one in plan.of_lists.requested])
    if plan.marks_missed:
        missed = over_users(plan, [number_missed()], plan.by).drop("users")
        on: dict[str, Any] = {"on": plan.by, "how": "left"} if plan.by else {"how": "cross"}
        numbers = numbers.join(missed, **on).with_columns(pl.col("num_missed").fill_null(0))
    return UserValues(plan.requested, plan.by, user, checked, plan.of_lists, numbers)


# ------------------------------------------------------------------ users without a list


def _with_missed(plan: Plan) -> Plan:
    """Mark the users for whom the run has no list."""
    lists = scope_rows.users_with_lists(plan.prepared)
    lists = lists.with_columns(pl.lit(value=False).alias(MISSED))
    values = plan.values.join(lists, on=plan.keys, how="left")
    values = values.with_columns(pl.col(MISSED).fill_null(value=True))
    return plan._replace(values=values, one_pass=None, marks_missed=True)


def number_missed() -> pl.Expr:
    """Count the users without a list."""
    return pl.col(MISSED).sum().cast(pl.Int64).alias("num_missed")


# ------------------------------------------------------------------ weights


def _weighted(plan: Plan, column: str) -> Plan:
    """Add the weight of each user, and flag averaged users without one."""
    if plan.of_lists is not None:
        name = plan.of_lists.requested[0].name
        msg = f"metric {name!r} is one number for all lists, and weights= is for means over users"
        raise ValueError(msg)
    weights = user_weights.weights_of(plan.prepared, column)
    values = plan.values.join(weights.rows, on=weights.on, how="left")
    unweighted = user_weights.is_unweighted([one.name for one in plan.requested])
    lacking = values.filter(unweighted).select(plan.keys)
    raise_violation = functools.partial(_raise_weights, plan, weights, lacking)
    return plan._replace(
        values=values,
        flags=[*plan.flags, weights.flag, guards.flag(values, unweighted.any())],
        raise_violation=raise_violation,
        one_pass=None,
        weights=column,
    )


def _raise_weights(plan: Plan, weights: Weights, lacking: pl.LazyFrame) -> None:
    plan.raise_violation()
    weights.raise_first_broken()
    weights.raise_if_any(lacking)


def _clustered(plan: Plan, column: str) -> Plan:
    """Add the cluster of each user, and flag users with a value but no cluster."""
    if plan.of_lists is not None:
        name = plan.of_lists.requested[0].name
        msg = f"metric {name!r} is one number for all lists, and cluster= is for means over users"
        raise ValueError(msg)
    clusters = user_clusters.clusters_of(plan.prepared, column)
    values = plan.values.join(clusters.rows, on=clusters.on, how="left")
    alone = user_clusters.has_no_cluster([one.name for one in plan.requested])
    lacking = values.filter(alone).select(plan.keys)

    def raise_violation() -> None:
        plan.raise_violation()
        clusters.raise_first_broken()
        clusters.raise_if_any(lacking)

    return plan._replace(
        values=values,
        flags=[*plan.flags, clusters.flag, guards.flag(values, alone.any())],
        raise_violation=raise_violation,
        one_pass=None,
        cluster=column,
    )


def _check_weighted_means(plan: Plan) -> None:
    """Check that every metric has a weighted mean."""
    for one in plan.requested:
        if one.over_users.aggregate == "sum":
            msg = (
                f"metric {one.name!r}: it is a sum over users, which has no weighted form: leave "
                "out weights="
            )
            raise ValueError(msg)
        if plan.types[one.name] == pl.Duration:
            msg = f"metric {one.name!r}: it is a duration, which has no weighted mean: cast it"
            raise ValueError(msg)


def _with_weight_watched(plan: Plan, column: str) -> Plan:
    """Flag groups in which no averaged user has a weight above 0."""
    names = [one.name for one in plan.requested]
    zero = user_weights.has_no_weight(names)
    by = plan.by
    groups = plan.values.group_by(by).agg(zero) if by else plan.values.select(zero)

    def raise_violation() -> None:
        plan.raise_violation()
        for name in names:
            found = groups.filter(pl.col(name)).collect()
            if not found.is_empty():
                row = found.select(by).sort(by).head(1) if by else None
                user_weights.raise_no_weight(column, name, row)

    watched = guards.flag(groups, pl.any_horizontal(pl.col(names).any()))
    return plan._replace(flags=[*plan.flags, watched], raise_violation=raise_violation)


# ------------------------------------------------------------------ bounds and scenarios


def _check_no_subtopics(one: RequestedMetric) -> None:
    if registry.reading_of(one.reads, has_subtopics=True).scope == "subtopic":
        msg = (
            f"metric {one.name!r} has no bounds and no scenarios, since an unjudged item may have "
            "any subtopics"
        )
        raise ValueError(msg)


class _World(NamedTuple):
    """Which of the unjudged items of the lists are relevant: those down to k, those below."""

    inside: bool
    below: bool
    k: int | None = None


_NONE, _ALL = _World(inside=False, below=False), _World(inside=True, below=True)


def _worlds_of(requested: RequestedMetric, *, tied: bool) -> tuple[_World, _World]:
    """Return the judgments that make a metric least and greatest, in either order."""
    kind, k = labels.extremes_of(requested.expr)
    if kind == "none or all":
        return _NONE, _ALL
    if kind == "above or below k" and not tied:
        inside, below = _World(inside=True, below=False, k=k), _World(inside=False, below=True, k=k)
        return (_NONE, _ALL) if k is None else (below, inside)
    under = " under ties" if kind and tied else ""
    msg = (
        f"metric {requested.name!r}: no bounds are proven for it{under}; scenarios=True reports "
        "its values if none and if all of the unjudged items are relevant"
    )
    raise ValueError(msg)


def _with_worlds(plan: Plan, extremes: Sequence[tuple[_World, _World]], settings: Settings) -> Plan:
    """Add the values of metrics under other judgments of the unjudged items."""
    keys, prepared = plan.keys, plan.prepared
    columns: list[pl.Expr] = []
    requested: list[RequestedMetric] = []
    read: dict[_World, list[RequestedMetric]] = {}
    for place, one in enumerate(plan.requested):
        made = {one.name: pl.col(one.name)}
        if extremes:
            pair = [_in_world(world, one) for world in extremes[place]]
            defined = pl.when(pl.col(one.name).is_not_null())
            made[f"{one.name}_low"] = defined.then(pl.min_horizontal(one.name, *pair))
            made[f"{one.name}_high"] = defined.then(pl.max_horizontal(one.name, *pair))
        if settings.scenarios:
            pair = [_in_world(world, one) for world in (_NONE, _ALL)]
            # null unless both are defined: their means must be over the same users
            both = pl.when(*(pl.col(name).is_not_null() for name in pair))
            made[f"{one.name}_if_none"], made[f"{one.name}_if_all"] = map(both.then, pair)
        worlds = (*(extremes[place] if extremes else ()), *((_NONE, _ALL) * settings.scenarios))
        for world in dict.fromkeys(worlds):
            read.setdefault(world, []).append(one)
        columns += [value.alias(name) for name, value in made.items()]
        requested += [one._replace(name=name) for name in made]
    labels.check_names(requested, keys)
    values, others = plan.values, list[Plan]()
    for world, some in read.items():
        other = _plan(
            _judged_in(world, prepared, settings.depth), some, replace(settings, judged_only=False)
        )
        named = {one.name: _in_world(world, one) for one in some}
        values = values.join(other.values.rename(named), on=keys, how="left")
        others.append(other)

    def raise_violation() -> None:
        for each in (plan, *others):
            each.raise_violation()

    flags = [one for each in (plan, *others) for one in each.flags]
    values = values.select(*keys, *columns)
    types = dict(values.collect_schema())
    raise_global = plan.raise_global
    return Plan(prepared, requested, values, types, flags, raise_violation, raise_global)


def _in_world(world: _World, requested: RequestedMetric) -> str:
    """Name the column of a metric in another world."""
    return f"{labels.INNER}{world.inside}_{world.below}_{world.k}_{requested.name}"


def _judged_in(world: _World, prepared: Judged, depth: int | None) -> Judged:
    """Set the grade of unjudged items of the lists to the highest one, or to 0."""
    grade, rank = pl.col("relevance"), pl.col("rank")
    listed = rank.is_not_null() if depth is None else (rank <= depth)
    unjudged = listed & ~(grade >= 0).fill_null(value=False)
    inside = pl.lit(value=True) if world.k is None else rank <= world.k
    top = prepared.top_grade
    given = pl.when(inside).then(top if world.inside else 0).otherwise(top if world.below else 0)
    filled = pl.when(unjudged).then(given).otherwise(grade).alias("relevance")
    judged = prepared.judged.with_columns(filled)
    if not prepared.has_subtopics:
        return prepared._replace(
            judged=judged, items=judged, ranked_truth=judged, bounds={}, changed=True
        )
    items = prepared.items.with_columns(filled)
    return prepared._replace(
        judged=judged, items=items, ranked_truth=items, bounds={}, changed=True
    )


# ------------------------------------------------------------------ one row per user


class _Reduction(NamedTuple):
    """Metrics of one scope, reduced to one row per user."""

    rows: pl.LazyFrame
    types: dict[str, pl.DataType]
    lists: pl.LazyFrame  # the same, with the columns that flags read
    suspect: pl.Expr
    surplus: pl.Expr
    doubt: pl.Expr
    counted: bool = False  # whether the surplus counts the relevant rows


def _plan(prepared: Judged, requested: list[RequestedMetric], settings: Settings) -> Plan:
    """Reduce the rows of each scope that metrics name, and join the results."""
    prepared = prepared._replace(settings=settings)
    keys = prepared.tables[0].keys
    labels.check_names(requested, keys)
    reading = registry.reading_of(_names(requested), inputs=prepared.inputs)
    requested = [one for one in requested if not system_metrics.is_of_all(one)]
    by_rows = _by_rows(requested, prepared, settings)
    reductions = [
        _reduced(prepared, some, settings, which, first=place == 0)
        for place, (which, some) in enumerate(by_rows.items())
    ]
    cut = _cut_blocks(prepared, settings.depth)
    counted = any(each.counted for each in reductions)
    flags = judgment.table_flags(prepared, count=counted)
    flags += judgment.input_flags(prepared, reading.names)
    if settings.judged_only or reading.counts_judged:
        flags += [guards.lists_flag(each) for each in prepared.tables]
    elif reading.counts_listed:  # these metrics count rows that are not relevant
        flags.append(guards.lists_flag(prepared.tables[0]))
    if cut is not None:
        flags.append(guards.flag(cut, pl.len() > 0))

    frames = [each.rows for each in reductions]
    users = users_policy(settings, prepared)
    first = "truth" if prepared.has_truth else "run"  # the table of the first reduction
    all_there = users == first and frames and _has_all_users(by_rows)
    values, *others = frames if all_there else [_selected(prepared, users, settings), *frames]
    for other in others:
        values = values.join(other, on=keys, how="left")
    one_pass = None
    if all_there and len(reductions) == 1 and settings.undefined is None:
        only = reductions[0]
        one_pass = OnePass(only.lists, only.suspect, only.surplus, only.doubt, flags)
    own = (guards.flag(each.lists, each.suspect, each.surplus, each.doubt) for each in reductions)
    flags = [*flags, *own]
    names = [*keys, *(one.name for one in requested)]
    types = {name: dtype for each in reductions for name, dtype in each.types.items()}
    types = {name: types.get(name) or prepared.types[name] for name in names}
    values = values.select(names)

    def raise_violation() -> None:
        rules.raise_first_broken(prepared.tables, users)
        judgment.raise_broken_input(prepared, reading.names)
        if cut is not None:
            _raise_cut(cut, settings.depth)
        for frame in frames:
            _raise_not_finite(frame, prepared, keys)

    if settings.undefined is not None:
        values, types = _filled(values, types, requested, settings.undefined)
    raise_global = functools.partial(rules.raise_first_global, prepared.tables, users)
    return Plan(
        prepared, requested, values, types, flags, raise_violation, raise_global, one_pass=one_pass
    )


def users_policy(settings: Settings, prepared: Judged) -> Users:
    """Return which users are averaged."""
    return settings.users or ("truth" if prepared.has_truth else "run")


class _Which(NamedTuple):
    """Which rows a metric reduces, and which of them are relevant to it."""

    scope: Scope | Kind
    relevant_at: float | None
    gains_from: GainsFrom | None


def _by_rows(
    requested: Sequence[RequestedMetric], prepared: Judged, settings: Settings
) -> dict[_Which, list[RequestedMetric]]:
    """Group metrics by the rows that they reduce; relevant rows come first, with the users."""
    by_rows: dict[_Which, list[RequestedMetric]] = {}
    for one in requested:
        scope = share_rows.kind_of(one) or _reading(one, prepared).scope
        level = settings.relevant_at if one.relevant_at is None else one.relevant_at
        gains_from = "relevant_at" if one.gains_from_there else settings.gains_from
        by_rows.setdefault(_Which(scope, level, gains_from), []).append(one)
    if not prepared.has_truth:
        return by_rows
    relevant = (which for which in by_rows if which.scope == "relevant")
    first = next(relevant, _Which("relevant", settings.relevant_at, settings.gains_from))
    return {first: by_rows.pop(first, []), **by_rows}


def _has_all_users(by_rows: Mapping[_Which, object]) -> bool:
    """Whether the first reduction has a row for each user of the truth, or else of the run."""
    return next(iter(by_rows)).scope in ("relevant", "listed")


def _reading(one: RequestedMetric, prepared: Judged) -> Reading:
    return registry.reading_of(
        one.reads, has_subtopics=prepared.has_subtopics, inputs=prepared.inputs
    )


def _names(requested: Iterable[RequestedMetric]) -> set[str]:
    return {name for one in requested for name in one.reads}


def _lists_alone(metric: RequestedMetric, given: Collection[str]) -> bool:
    """Whether a metric reads no truth."""
    return registry.reading_of(
        metric.reads, inputs=given
    ).lists_alone and not share_rows.needs_truth(metric.reads)


def _reduced(
    prepared: Judged,
    some: Sequence[RequestedMetric],
    settings: Settings,
    which: _Which,
    *,
    first: bool,
) -> _Reduction:
    """Reduce the rows of one scope, and check the relevant ones in the same pass.

    Only the ``first`` counts the relevant rows, for the sum over all flags.
    """
    table, keys = prepared.tables[0], prepared.tables[0].keys
    scope, relevant_at, gains_from = which
    if (relevant_at, gains_from) != (settings.relevant_at, settings.gains_from):
        settings = replace(settings, relevant_at=relevant_at, gains_from=gains_from)
        prepared = prepared._replace(settings=settings)
    reading = registry.reading_of(
        _names(some), has_subtopics=prepared.has_subtopics, inputs=prepared.inputs
    )
    ordered = scope == "relevant" and not prepared.tied and reading.in_order
    count = first and ordered and prepared.counts_show_duplicates and not settings.judged_only
    if isinstance(scope, Kind):
        rows = share_rows.rows_of_shares(prepared, reading.names, scope, by=table.by, users=None)
    else:
        rows = scope_rows.rows_of_scope(prepared, reading, alone=count)
    reduced = [one.expr for one in some]
    names = [one.name for one in some]
    if scope == "relevant":
        position = pl.col("block" if prepared.tied else "rank")
        shared = guards.shares_rank(tied=prepared.tied)
        if ordered:  # for 1 M users × 10, counting distinct ranks would take a tenth longer
            shared = pl.col(rank_order.SHARES_RANK).any()
        watched = guards.check_aggregates(table.item, hit=position, shared=shared, count=count)
        lists = rows.group_by(keys).agg(*reduced, *watched)
        types = _types_of(lists, rows, [*keys, *names], some, tied=prepared.tied)
        broken = pl.any_horizontal(guards.any_violation(count=count), *_infinite(types, keys))
        surplus = pl.col("__rankframe_rows").sum() if count else pl.lit(0)
        doubt = guards.any_doubt(prepared.tables, users_policy(settings, prepared))
        values = lists.select(*keys, *names)
        return _Reduction(values, types, lists, broken, surplus, doubt, counted=count)
    if scope == "listed":
        has_list = pl.col("listed").any()
        if settings.cuts_lists:
            has_list |= pl.col(terms.IS_EMPTIED).any()
        lists = rows.group_by(keys).agg(*reduced, has_list.alias(_HAS_LIST))
        values = lists.filter(pl.col(_HAS_LIST)).select(*keys, *names)
    else:
        values = rows.group_by(keys).agg(reduced)
    types = _types_of(values, rows, [*keys, *names], some, tied=prepared.tied)
    broken = pl.any_horizontal(pl.lit(value=False), *_infinite(types, keys))
    return _Reduction(values, types, values, broken, pl.lit(0), pl.lit(value=False))


def _types_of(
    reduced: pl.LazyFrame,
    rows: pl.LazyFrame,
    names: Sequence[str],
    requested: Sequence[RequestedMetric],
    *,
    tied: bool,
) -> dict[str, pl.DataType]:
    """Look up the types of the metrics; this is the only look-up of a call."""
    try:
        schema = reduced.collect_schema()
    except pl.exceptions.ColumnNotFoundError:
        _check_columns(rows, requested, tied=tied)
        raise
    return {name: schema[name] for name in names}


def _filled(
    values: pl.LazyFrame,
    types: Mapping[str, pl.DataType],
    requested: Sequence[RequestedMetric],
    undefined: float,
) -> tuple[pl.LazyFrame, dict[str, pl.DataType]]:
    """Replace nulls with ``undefined``."""
    numbers = [one.name for one in requested if types[one.name].is_numeric()]
    flags_of_users = [one.name for one in requested if types[one.name] == pl.Boolean]
    values = values.with_columns(pl.col(flags_of_users).cast(pl.Float64))
    values = values.with_columns(pl.col(numbers + flags_of_users).fill_null(undefined))
    return values, dict(values.collect_schema())


def _cut_blocks(prepared: Judged, depth: int | None) -> pl.LazyFrame | None:
    """Return the items whose block of ties a cut at ``depth`` would split."""
    if depth is None or not prepared.tied:
        return None
    last = pl.col("rank") + pl.col("tied") - 1
    torn = prepared.run.filter((pl.col("rank") <= depth) & (last > depth))
    return torn.select(*prepared.tables[0].keys, prepared.tables[0].item, "rank", "tied")


def _raise_cut(torn: pl.LazyFrame, depth: int | None) -> None:
    if not (row := torn.head(1).collect()).is_empty():
        msg = (
            f"column 'tied': depth={depth} cuts through a block of ties; ask for a metric "
            f"@{depth}, or rank with ties='item'. Offending row: {rules.format_row(row)}"
        )
        raise RankingDataError(msg)


def groups_of(prepared: Judged, names: Sequence[str]) -> pl.LazyFrame:
    """Return each group of the run or the truth once."""
    if prepared.groups is not None and not {*names} & {*prepared.tables[1].by}:
        return prepared.groups.select(names).unique()
    return pl.concat([prepared.run.select(names), prepared.truth.select(names)]).unique()


def _check_users(
    users: Users | None, prepared: Judged, segments: Sequence[str], *, judged_only: bool
) -> None:
    """Check that there is a truth to take users from, and that every user can be in a segment."""
    if not prepared.has_truth and users in ("truth", "judged", "both", "served"):
        msg = f"users={users!r} selects users of the truth, but there is no truth: pass truth="
        raise ValueError(msg)
    if not prepared.has_truth and judged_only:
        msg = "judged_only=True keeps judged items, but there is no truth: pass truth="
        raise ValueError(msg)
    if segments and users in ("run", "all"):
        msg = (
            f"users={users!r} includes users who are not in the truth, but only the truth has the "
            f"column {segments[0]!r} of by=: join it to the run"
        )
        raise ValueError(msg)


def _check_systems(prepared: Judged, segments: Sequence[str]) -> None:
    """Check that a column of ``by`` can identify the systems that serve a user."""
    system = _system_of(prepared.tables[0].by)
    if system in segments:
        msg = (
            f"users='served' selects users whom every system serves, but only the truth has the "
            f"column {system!r} of by=: name the column of the systems first, or pass users='both'"
        )
        raise ValueError(msg)


def check_served_in_parts(prepared: Judged) -> None:
    """Check that a part of the users shows all systems."""
    system = _system_of(prepared.tables[0].by)
    if system is not None and not _are_known(system, prepared):
        name = prepared.tables[-1].name
        msg = (
            f"users='served': the {name} has the column of the systems, {system!r}, so a part of "
            "its rows may not show all systems: pass a run and a truth without it, or collect "
            "the tables"
        )
        raise ValueError(msg)


def _system_of(by: Sequence[str]) -> str | None:
    """Name the column that identifies the systems, as ``compare`` does."""
    return keywords.MODEL if keywords.MODEL in by else by[0] if by else None


def _are_known(system: str, prepared: Judged) -> bool:
    """Whether the systems are known apart from the rows of the users."""
    return prepared.groups is not None and system not in prepared.tables[1].by


def _lists(prepared: Judged, settings: Settings) -> pl.LazyFrame:
    """Return each user of whose list something is left, in each group."""
    if not settings.cuts_lists:
        return prepared.run.select(prepared.tables[0].keys).unique()
    return scope_rows.users_with_lists(prepared)


def _served(prepared: Judged, lists: pl.LazyFrame) -> pl.LazyFrame:
    """Return each user who has a list in every system, within the groups of the other columns."""
    keys, by = prepared.tables[0].keys, prepared.tables[0].by
    system = _system_of(by)
    if system is None:
        return lists
    known = prepared.groups if _are_known(system, prepared) else groups_of(prepared, by)
    assert known is not None
    others = [name for name in known.collect_schema() if name != system]
    number = pl.col(system).n_unique().alias(_SYSTEMS)
    systems = known.group_by(others).agg(number) if others else known.select(number)
    own = [name for name in keys if name != system]
    counted = lists.group_by(own).agg(pl.len().alias(_NUMBER))
    on: dict[str, Any] = {"on": others} if others else {"how": "cross"}
    return counted.join(systems, **on).filter(pl.col(_NUMBER) == pl.col(_SYSTEMS)).select(own)


def _check_scope(one: RequestedMetric, prepared: Judged) -> None:
    """Check that a metric reduces rows of one kind, and that these are the intended ones."""
    reading = _reading(one, prepared)
    _check_tables(one, reading, prepared)
    if prepared.has_subtopics and reading.mixes_subtopics:
        msg = (
            f"metric {one.name!r} reads both columns of items and columns of their subtopics: "
            "split it into two metrics"
        )
        raise ValueError(msg)
    run, *truth = prepared.tables
    known = {run.item, *run.keys, *(truth[0].schema if truth else ())}
    if not (prepared.has_truth or reading.names_its_rows):
        known.update(run.schema)
    for name in reading.outside:
        if name in run.schema and name not in known and not reading.names_its_rows:
            msg = (
                f"metric {one.name!r} reads the column {name!r} of the {run.name}, but does not "
                "say which rows. Filter by pl.col('listed') to reduce the whole list, by "
                "pl.col('relevant') for only the relevant items, or by pl.col('judged'): "
                f"pl.col({name!r}).filter(pl.col('listed') & (pl.col('rank') <= 10)).mean()"
            )
            raise ValueError(msg)


def _check_outside(name: str, metric: str, prepared: Judged) -> None:
    """Check that one table has a column of the caller's, or that its table is passed."""
    run, items = prepared.tables[0], prepared.inputs.get("items")
    has = [name in table.schema for table in prepared.tables]
    roles = [*run.keys, run.item, run.rank, run.score, run.relevance]
    if items is not None and name in items.schema and name not in (*roles, *items.by):
        if any(has):
            msg = (
                f"column {name!r}: both items= and the {run.name} or the truth have it, and metric "
                f"{metric!r} reads it: rename or drop one"
            )
            raise RankingDataError(msg)
        return
    column = registry.COLUMNS.get(name.partition("(")[0])
    if column is not None and not any(has):
        tables = column.source.split(" or ")
        passed = " or ".join(f"{table}=, {side_tables.INPUT_MEANINGS[table]}" for table in tables)
        msg = f"metric {metric!r} reads {name!r}: pass {passed}"
        raise RankingDataError(msg)
    if not (prepared.has_truth or any(has) or name.startswith("^")):
        there = dict.fromkeys([*run.schema, *(() if items is None else items.schema)])
        msg = (
            f"metric {metric!r} reads a column {name!r}; the tables have "
            f"{', '.join(map(repr, there))}"
        )
        raise RankingDataError(msg)


def _check_tables(one: RequestedMetric, reading: Reading, prepared: Judged) -> None:
    """Check that the tables from which the columns of a metric come are passed."""
    for name in reading.outside:
        _check_outside(name, one.name, prepared)
    kind = share_rows.kind_of(one)
    if kind is None:
        return
    item = prepared.tables[0].item
    share_rows.check_shares(f"metric {one.name!r}", kind, reading.names, prepared.inputs, item)
    if share_rows.needs_truth(reading.names) and not prepared.has_truth:
        msg = f"metric {one.name!r} reads what is relevant: pass truth="
        raise RankingDataError(msg)
    if prepared.tied:
        share_rows.check_shares_in_ties(f"metric {one.name!r}", reading.names)
    others = [n for n, c in reading.columns.items() if c.scope != "shares"]
    if others or reading.outside:
        msg = (
            f"metric {one.name!r} reads columns of shares and {(others or reading.outside)[0]!r}, "
            "a column of rows: split it into two metrics"
        )
        raise ValueError(msg)


def _check_truth(frame: Frame, requested: Sequence[RequestedMetric], settings: Settings) -> None:
    """Check that a metric of lists that reads what is relevant has a truth."""
    for one in requested:
        reading = registry.reading_of(one.reads, inputs=settings.inputs)
        if reading.scope not in ("listed", "shares"):
            continue
        reads = [name for name, column in reading.columns.items() if not column.of_lists]
        reads += ["relevant"] if share_rows.needs_truth(reading.names) else []
        if reads and not readers.has_relevance(frame, settings.columns):
            msg = (
                f"metric {one.name!r} reads {reads[0]!r}: pass truth=, what users want (user, item)"
            )
            raise RankingDataError(msg)


def _check_means(requested: Sequence[RequestedMetric], settings: Settings) -> None:
    """Check that geometric means and levels of relevance are of metrics that can have them."""
    undefined = settings.undefined
    if undefined is not None and undefined < 0 and not all(one.per_user for one in requested):
        msg = f"undefined must be None or ≥ 0 for a geometric mean, not {undefined!r}"
        raise ValueError(msg)
    for one in requested:
        if system_metrics.is_of_all(one) and not one.per_user:
            msg = f"metric {one.name!r}: one number for all lists has no geometric mean"
            raise ValueError(msg)
        if system_metrics.is_of_all(one) and one.relevant_at is not None:
            msg = (
                f"metric {one.name!r} is one number for all lists and has no rel= of its own: pass "
                f"relevant_at={labels.as_text(one.relevant_at)}"
            )
            raise ValueError(msg)


def _check_no_gain_of_zero(one: RequestedMetric) -> None:
    """Check that a metric gives grade 0 no gain, where lower grades count as 0."""
    gain = labels.gain_asked(one.expr)
    if gain is not None and gain_functions.has_gain_of_zero(gain):
        msg = (
            f"metric {one.name!r} gives grade 0 a gain, but gains_from='relevant_at', like -l2 "
            "after a label, counts lower grades as 0: leave out one of the two"
        )
        raise ValueError(msg)


def _check_of_lists(of_lists: OfLists, settings: Settings, *, refused: bool) -> None:
    """Check that the call can return one number for all lists."""
    name = of_lists.requested[0].name
    if refused:
        msg = f"{name} is one number for all users: use evaluate"
        raise ValueError(msg)
    if settings.bounds or settings.scenarios:
        msg = (
            f"metric {name!r} has no bounds and no scenarios, since it is one number for all lists"
        )
        raise ValueError(msg)


def _selected(prepared: Judged, users: Users, settings: Settings) -> pl.LazyFrame:
    """Return the users who are averaged."""
    keys = prepared.tables[0].keys
    in_run, in_truth = prepared.run.select(keys).unique(), prepared.truth.select(keys).unique()
    if users == "truth":
        return prepared.truth.filter(pl.col("relevance") > 0).select(keys).unique()
    if users == "judged":
        return in_truth
    if users == "run":
        return in_run
    if users == "both":
        return in_truth.join(in_run, on=keys, how="semi")
    if users == "served":
        served = _served(prepared, _lists(prepared, settings))
        return in_truth.join(served, on=served.collect_schema().names(), how="semi")
    return pl.concat([in_run, in_truth]).unique()


def _check_columns(rows: pl.LazyFrame, requested: Sequence[RequestedMetric], *, tied: bool) -> None:
    """Check that the metrics read columns that are there."""
    try:
        names = rows.collect_schema().names()
    except pl.exceptions.ColumnNotFoundError as error:
        missing = str(error).partition("\n")[0]
        msg = (
            f"metric {', '.join(repr(one.name) for one in requested)}: a registered column is "
            f"derived from a column that the rows do not have ({missing}); name the columns of the "
            "vocabulary that it is derived from in reads="
        )
        raise RankingDataError(msg) from error
    for one in requested:
        for name in one.expr.meta.root_names():
            if tied and name not in names and name.partition("(")[0] in registry.COLUMNS:
                msg = (
                    f"metric {one.name!r} has no exact expectation under ties: it reads {name!r}, "
                    "which an item in a block of ties (column 'tied') does not have. Rank with "
                    "ties='item', or write a metric on 'block', 'tied' and 'hits_above'"
                )
                raise ValueError(msg)
            if name not in names and not name.startswith("^"):
                told = dict.fromkeys([*names, *registry.COLUMNS])
                has = ", ".join(
                    repr(column) for column in told if not column.startswith(labels.INNER)
                )
                msg = f"metric {one.name!r} reads a column {name!r}; the rows have {has}"
                raise RankingDataError(msg)


def _check_numeric(plan: Plan) -> None:
    """Check that a mean can be taken."""
    for one in plan.requested:
        dtype = plan.types[one.name]
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Duration | pl.Null)):
            msg = f"metric {one.name!r} is {dtype} for each user, which has no mean: use per_user"
            raise ValueError(msg)


def _infinite(types: Mapping[str, pl.DataType], keys: Sequence[str]) -> list[pl.Expr]:
    """Return for each metric whether its sum, and so its mean, is NaN or infinite."""
    floats = [name for name, dtype in types.items() if dtype.is_float() and name not in keys]
    return [(~pl.col(name).sum().is_finite()).alias(name) for name in floats]


def raise_infinite_mean(result: pl.LazyFrame, groups: Sequence[str]) -> None:
    """Raise if a mean of finite values is not finite."""
    found = result.select(_infinite(result.collect_schema(), groups)).collect()
    for name in found.columns:
        if found[name].item():
            msg = f"metric {name!r}: its mean over users is not a finite number"
            raise RankingDataError(msg)


#: The cure for a metric of this label that is not finite.
_CURES = {
    "snips_": "the column of propensity= must be a number > 0 in each row of a relevant item",
    "corrected(": "a list holds at most sampled + 1 items, so make sampled= the number of others",
}


def _raise_not_finite(values: pl.LazyFrame, prepared: Judged, keys: Sequence[str]) -> None:
    """Raise at the first metric that is NaN or infinite for a user."""
    schema = values.collect_schema()
    floats = [name for name, dtype in schema.items() if dtype.is_float() and name not in keys]
    found = values.select((~pl.col(name).is_finite()).any() for name in floats).collect()
    for name in floats:
        if found[name].item():
            infinite = values.filter(~pl.col(name).is_finite())
            row = infinite.sort(keys).select(*keys, name).head(1).collect()
            if not prepared.has_truth:
                msg = (
                    f"metric {name!r}: it is not a finite number for a user. An expression of your "
                    "own must be null where it is undefined. "
                    f"Offending row: {rules.format_row(row)}"
                )
                raise RankingDataError(msg)
            for label, cure in _CURES.items():
                if name.startswith(label):
                    msg = (
                        f"metric {name!r}: it is not a finite number for a user: {cure}. "
                        f"Offending row: {rules.format_row(row)}"
                    )
                    raise RankingDataError(msg)
            positive = prepared.judged.filter(pl.col("relevance") > 0)
            grades = positive.select(pl.col("relevance").unique().sort()).collect().to_series()
            msg = (
                f"metric {name!r}: it is not a finite number for a user. "
                f"The grades present are {', '.join(map(str, grades.head(10)))}: give each a "
                "finite gain, for example gain={1: 1, 2: 3}. "
                "With max_grade=, use one that no grade exceeds. "
                "With collection=, count at least the items of every user. "
                "An expression of your own must be null where it is undefined. "
                f"Offending row: {rules.format_row(row)}"
            )
            raise RankingDataError(msg)
