"""The verbs: one value per user, and the mean over users.

Stage of the pipeline: ``plan_values`` leads a ``Question`` through all stages to ``Values``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Unpack, cast

import polars as pl

from rankframe._evaluation import (
    averages,
    bounds,
    chance,
    group_means,
    kept_plans,
    ranges,
    reduction,
    refusals,
    segments,
    training_runs,
    user_choice,
    user_columns,
)
from rankframe._evaluation.values import Checks, Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns, Duplicates, Settings, Unjudged
from rankframe._request.labels import Metric
from rankframe._request.question import Question, ask
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, judgment, readers, run_dicts
from rankframe.errors import RankingDataError
from rankframe.presets import Preset, PresetName, Users


@adapters.takes_any_frame
def per_user(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    users: Users | None = None,
    relevant_at: float | None = None,
    undefined: float | None = None,
    unjudged: Unjudged = "miss",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    preset: PresetName | Preset | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
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
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    users
        Which users count: ``"truth"``, those with a relevant item (one missing from the run scores
        0); ``"judged"``, with any row in the truth; ``"both"``, in run and truth; ``"run"``; or
        ``"all"``. By default ``"truth"``, or ``"run"`` where nothing is judged. In a judged table
        of which no judged row lacks a rank, all count: one without a relevant item has the worst
        value of each metric, with a warning.
    relevant_at
        The lowest grade that is relevant to the binary measures; > 0. By default every grade > 0
        is. A label with ``rel=``, such as ``"ap(rel=2)"``, has its own, which does not change who
        counts.
    undefined
        The value where a metric is undefined, such as for a user without a relevant item. By
        default null, which a mean leaves out.
    unjudged
        Unjudged items of the lists, and those of negative grade, count as not relevant, ``"miss"``;
        or go, after ``exclude``, and the ranks close, ``"drop"`` (trec_eval ``-J``). ``"bounds"``
        adds ``<metric>_low`` and ``<metric>_high`` to ``"miss"``: the least and the greatest value
        if any of them are judged, with any grade up to the highest of the truth.
    duplicates
        What becomes of an item that comes several times in one list: ``"error"``; or its best place
        counts, and the items below its other places move up, ``"first"``, or these stay empty,
        ``"occupy"``. It comes before ``exclude``, ``depth`` and ``unjudged``. ``"error"`` sees
        relevant rows, and all where a metric or ``chance`` counts rows, or scores rank them.
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal stays whole (trec_eval
        ``-M``).
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of text), a provider or
        a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity, novelty and profiles. Distinct users count.
    preset
        The conventions of a tool, such as ``"ranx"``, or a dict with some of the keys ``users``,
        ``undefined``, ``defaults`` and ``single_precision``. A keyword that you pass wins over it,
        also None, and so does a parameter in a label.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores the run's.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, user and one column per metric (three with bounds), sorted by by… and user.

    Notes
    -----
    The notes of ``rf.evaluate`` on expressions of your own and bounds apply.

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
    frame, by, columns = run_dicts.as_frame(
        frame, by, columns, preset=preset, duplicates=duplicates
    )
    settings = Settings(
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        unjudged=unjudged,
        duplicates=duplicates,
        depth=depth,
        preset=preset,
        items=items,
        history=history,
        exclude=exclude,
        columns=columns,
    )
    question = ask(frame, metrics, truth, by, settings, per_user=True)
    return _result(question, frame, _user_rows)


@adapters.takes_any_frame
def evaluate(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    users: Users | None = None,
    relevant_at: float | None = None,
    undefined: float | None = None,
    weights: str | None = None,
    average: str = "users",
    unjudged: Unjudged = "miss",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    preset: PresetName | Preset | None = None,
    count_users: bool = False,
    chance: bool = False,
    **columns: Unpack[Columns],
) -> FrameT:
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
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    users
        Which users count: ``"truth"``, those with a relevant item (one missing from the run scores
        0); ``"judged"``, with any row in the truth; ``"both"``, in run and truth; ``"run"``; or
        ``"all"``. By default ``"truth"``, or ``"run"`` where nothing is judged. In a judged table
        of which no judged row lacks a rank, all count: one without a relevant item has the worst
        value of each metric, with a warning.
    relevant_at
        The lowest grade that is relevant to the binary measures; > 0. By default every grade > 0
        is. A label with ``rel=``, such as ``"ap(rel=2)"``, has its own, which does not change who
        counts.
    undefined
        The value where a metric is undefined, such as for a user without a relevant item. By
        default null, which a mean leaves out.
    weights
        The column of the truth or the run with the weight of each user, ≥ 0, for the mean Σ
        weight·value / Σ weight. It has one value per user, or per user and group if the truth has
        columns of ``by``. By default all weights are equal.
    average
        ``"users"``, the mean over users; ``"pooled"``, Σ numerators / Σ denominators over users
        (micro-average), for precision, recall, F, E and R-precision; or a column, such as
        ``"dataset"``: the mean of the means of its groups, in each of which a user counts apart.
    unjudged
        Unjudged items of the lists, and those of negative grade, count as not relevant, ``"miss"``;
        or go, after ``exclude``, and the ranks close, ``"drop"`` (trec_eval ``-J``). ``"bounds"``
        adds ``<metric>_low`` and ``<metric>_high`` to ``"miss"``: the least and the greatest value
        if any of them are judged, with any grade up to the highest of the truth.
    duplicates
        What becomes of an item that comes several times in one list: ``"error"``; or its best place
        counts, and the items below its other places move up, ``"first"``, or these stay empty,
        ``"occupy"``. It comes before ``exclude``, ``depth`` and ``unjudged``. ``"error"`` sees
        relevant rows, and all where a metric or ``chance`` counts rows, or scores rank them.
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal stays whole (trec_eval
        ``-M``).
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of text), a provider or
        a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity, novelty and profiles. Distinct users count.
    preset
        The conventions of a tool, such as ``"ranx"``, or a dict with some of the keys ``users``,
        ``undefined``, ``defaults`` and ``single_precision``. A keyword that you pass wins over it,
        also None, and so does a parameter in a label.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    chance
        Add ``<metric>_chance`` and ``<metric>_ceiling``: what a random order of each list gives, as
        an exact expectation, and what its ideal order gives, highest grade first.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores the run's.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, ``users`` (Int64, the number of users that ``users=`` selects) and one column per
        metric (three with bounds, one more with ``count_users``, two more with ``chance``); one
        row, or one per group, sorted, totals last. A group that the truth does not cover has 0
        users and nulls.

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

    A column of the users, such as country, belongs in the truth as well: each group has all users
    of a truth without it, which takes time and memory in proportion to groups × rows of the truth,
    with a warning from 50 times the rows of both tables on, unless ``users="both"`` or ``"run"``
    needs only the lists.

    ``by="activity"`` puts users into four quantile bins of their number of items in ``history``,
    ``"popularity"`` the items of the truth by their number of users there, and
    ``"relevant_items"`` users by that of their relevant items; users and items that are not there
    have 0. ``"activity(bins=3)"`` has three bins, and ``"activity(5,20)"`` those below 5, from 5 to
    19, and from 20. The column, an Enum, is called as you write it, and no table may have it. A
    column of ``by`` that the history has, such as day, limits the counts to its group. In the row
    of ``total``, a user counts once per bin of ``"popularity"`` with items that they want.

    A column of ``by`` that is called ``fold`` or ``split`` must be in the truth as well. Each call
    takes a few milliseconds before it reads a row, so stack many small tables, with a column for
    ``by``, and evaluate them in one call instead of a loop.

    A call that is not lazy warns of means over fewer than ``users``, unless it counts the users of
    each.

    With ``users="both"``, each system has a mean over its own users. If the run has one batch of
    users and the truth has all users, pass ``"both"``: otherwise the users of other batches count
    as misses. Only ``exclude`` removes users from the run, as in trec_eval: a list of which
    ``depth`` leaves nothing still is a list, so that ``depth=k`` and a metric at k have the same
    users.

    Precision, recall, F, hit, RR, DCG, RBP, ERR and counts have bounds; a metric without proven
    bounds raises an error. They are null where the metric is null. With ``depth``, items below it
    are not part of the list.

    Chance and ceiling are means over the same users as the metric, of lists with the same items: of
    a whole list, after ``exclude``, ``depth`` and ``unjudged``, of which each order is equally
    likely, or the items stand from rank 1 by grade, unjudged ones last. From one to the other is
    what a ranker of these items can change. The rest, up to 1 for nDCG, is what the list lacks.
    Metrics without an exact expectation, such as ERR, raise an error, as do those of subtopics and
    those that read no grade.

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
    frame, by, columns = run_dicts.as_frame(
        frame, by, columns, preset=preset, duplicates=duplicates
    )
    settings = Settings(
        users=users,
        undefined=undefined,
        weights=weights,
        average=average,
        relevant_at=relevant_at,
        unjudged=unjudged,
        duplicates=duplicates,
        depth=depth,
        count_users=count_users,
        chance=chance,
        preset=preset,
        items=items,
        history=history,
        exclude=exclude,
        columns=columns,
    )
    question = ask(frame, metrics, truth, by, settings)
    watches = not (count_users or isinstance(frame, pl.LazyFrame))
    return _result(question, frame, partial(_mean_rows, total=total, watches=watches), total)


def _result(
    question: Question,
    like: FrameT,
    plan: Callable[[Question], pl.LazyFrame],
    total: object = None,
) -> FrameT:
    """Answer a question in the caller's kind of frame."""
    key = kept_plans.key_of(question)
    if key is None:
        return adapters.to_caller_type(plan(question), like=like, beside=question.beside)
    tables = {"run": question.frame, "truth": question.truth}
    result = kept_plans.collected(
        (key, repr(total)),
        {name: table for name, table in tables.items() if isinstance(table, pl.DataFrame)},
        lambda frames: plan(question.of(frames["run"], frames.get("truth"))),
        grouped=bool(question.by),
    )
    return cast("FrameT", adapters.with_names_as_text(result, like))


def _user_rows(question: Question) -> pl.LazyFrame:
    values = plan_values(question)
    return values.checks.guarded(values.rows, values.types).sort(values.keys)


def _mean_rows(question: Question, *, total: bool, watches: bool) -> pl.LazyFrame:
    values = plan_means(question, total=total)
    values = group_means.watched(values, question) if watches else values
    return group_means.checked_means(values, total=total)


def plan_values(question: Question) -> Values:
    """Plan the values of every user."""
    question = segments.with_columns(question)
    if question.truth is None:
        refusals.check_truth(question)
    tables = readers.read_tables(question)
    refusals.refuse(question, tables)
    joined = judgment.judge(tables)
    requested = question.requested
    if joined.tables.tied:
        requested = [*map(labels.in_ties, requested)]
    beside = averages.divisors(joined, question.requested)
    values = reduction.reduced(joined, requested, beside)
    for step in (
        bounds.with_bounds,
        chance.with_chance,
        user_columns.with_columns_of_users,
        user_columns.with_missed,
    ):
        values = step(values, question)
    return averages.with_average(values, question)


def plan_means(question: Question, *, total: bool = False) -> Values:
    """Plan the values of every user, and check that means can be taken of them."""
    values = plan_values(question)
    keywords.check_total(values.by, total=total)
    if "users" in values.by:
        msg = "column 'users': evaluate counts users under this name: rename the column"
        raise RankingDataError(msg)
    settings = question.settings
    if settings.count_users:
        values = group_means.with_counts(values, question)
    labels.check_names(values.requested, [*values.by, "users"])
    group_means.check_numeric(values)
    group_means.check_weighted_means(values.requested, settings, values.types)
    if values.weights is not None and question.totals is None:  # another part may have the weight
        values = user_columns.with_weight_watched(values, values.weights)
    return values


def user_values(question: Question) -> Values:
    """Plan the values of every user, checked, for the statistics."""
    if question.columns is not None:
        from rankframe._evaluation import ready_values

        values = averages.with_average(ready_values.values_of(question), question)
        return training_runs.merged(values)
    return training_runs.merged(in_groups(plan_values(question)))


def in_groups(values: Values) -> Values:
    """Return the values of all users, checked, with at least one row per group."""
    group_means.check_numeric(values)
    values = ranges.with_registered_checked(values)
    rows, by = values.rows, values.by
    if by:
        rows = user_choice.groups_of(values.source, by).join(rows, on=by, how="left")
    rows = values.checks.guarded(rows)
    if values.system_metrics is None:
        return values._replace(rows=rows, checks=Checks())
    alone = values._replace(requested=[])
    numbers = group_means.means_of_groups(
        alone, by, [metric.name for metric in values.system_metrics.requested]
    )
    if "missed" in values.settings.counts:
        missed = group_means.over_users(values, [user_columns.number_missed()], by).drop("users")
        on: dict[str, Any] = {"on": by, "how": "left"} if by else {"how": "cross"}
        numbers = numbers.join(missed, **on).with_columns(pl.col("num_missed").fill_null(0))
    return values._replace(rows=rows, checks=Checks(), numbers=numbers)
