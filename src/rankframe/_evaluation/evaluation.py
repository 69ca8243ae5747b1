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
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    users
        Which users count: ``"truth"``, those with a relevant item (a user missing from the run
        scores 0); ``"judged"``, those with any row in the truth; ``"both"``, those in run and
        truth; ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` if nothing is judged.
        If every judged row of a judged table has a rank, all users count, with a warning: a user
        without a relevant item has the worst value of each metric.
    relevant_at
        The lowest grade that counts as relevant in binary metrics; > 0. By default every grade > 0.
        A label with ``rel=``, such as ``"ap(rel=2)"``, has its own threshold, which does not change
        who counts.
    undefined
        The value of a metric where it is undefined, as for a user without a relevant item. By
        default null, and the mean leaves the user out.
    unjudged
        What happens to items of the lists without a judgment, or with a negative grade. ``"miss"``:
        they count as not relevant. ``"drop"``: they are removed after ``exclude``, and the items
        below move up (trec_eval ``-J``). ``"bounds"`` is ``"miss"`` with ``<metric>_low`` and
        ``<metric>_high``: the least and the greatest value that the metric could have if these
        items were judged, with any grade up to the highest of the truth.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``, ``depth`` and
        ``unjudged``. ``"error"`` checks relevant rows, and all rows if a metric or ``chance``
        counts rows, or if ranks come from scores.
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal list stays whole (trec_eval
        ``-M``).
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    preset
        The conventions of a tool, such as ``"ranx"``, or a dict with some of the keys ``users``,
        ``undefined``, ``defaults`` and ``single_precision``. A keyword that you pass takes
        precedence, even None, and so does a parameter in a label.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

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
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    users
        Which users count: ``"truth"``, those with a relevant item (a user missing from the run
        scores 0); ``"judged"``, those with any row in the truth; ``"both"``, those in run and
        truth; ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` if nothing is judged.
        If every judged row of a judged table has a rank, all users count, with a warning: a user
        without a relevant item has the worst value of each metric.
    relevant_at
        The lowest grade that counts as relevant in binary metrics; > 0. By default every grade > 0.
        A label with ``rel=``, such as ``"ap(rel=2)"``, has its own threshold, which does not change
        who counts.
    undefined
        The value of a metric where it is undefined, as for a user without a relevant item. By
        default null, and the mean leaves the user out.
    weights
        The column of the truth or the run with the weight of each user, ≥ 0, for the mean Σ
        weight·value / Σ weight. It has one value per user, or per user and group if the truth has
        columns of ``by``. By default all weights are equal.
    average
        ``"users"``, the mean over users; ``"pooled"``, Σ numerators / Σ denominators over users
        (micro-average), for precision, recall, F, E and R-precision; or a column, such as
        ``"dataset"``: the mean of the means of its groups. A user counts once in each group.
    unjudged
        What happens to items of the lists without a judgment, or with a negative grade. ``"miss"``:
        they count as not relevant. ``"drop"``: they are removed after ``exclude``, and the items
        below move up (trec_eval ``-J``). ``"bounds"`` is ``"miss"`` with ``<metric>_low`` and
        ``<metric>_high``: the least and the greatest value that the metric could have if these
        items were judged, with any grade up to the highest of the truth.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``, ``depth`` and
        ``unjudged``. ``"error"`` checks relevant rows, and all rows if a metric or ``chance``
        counts rows, or if ranks come from scores.
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal list stays whole (trec_eval
        ``-M``).
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    preset
        The conventions of a tool, such as ``"ranx"``, or a dict with some of the keys ``users``,
        ``undefined``, ``defaults`` and ``single_precision``. A keyword that you pass takes
        precedence, even None, and so does a parameter in a label.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    chance
        Add ``<metric>_chance`` and ``<metric>_ceiling``: what a random order of each list gives, as
        an exact expectation, and what its ideal order gives, highest grade first.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

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

    A column that describes users, such as country, belongs in the truth as well. Without it, each
    group has all users of the truth, which takes time and memory in proportion to groups × rows of
    the truth. At 50 times the rows of both tables this gives a warning, unless ``users="both"`` or
    ``"run"`` needs only the lists.

    ``by="activity"`` puts users into four quantile bins by their number of items in ``history``,
    and ``"popularity"`` puts the items of the truth into bins by their number of users there. Users
    and items that the history does not have count 0. ``"relevant_items"`` puts users into bins by
    their number of relevant items. ``"activity(bins=3)"`` makes three bins, and
    ``"activity(5,20)"`` bins below 5, from 5 to 19, and from 20. The column is an Enum with the
    name that you write, which no table may have. A column of ``by`` that the history has, such as
    day, limits the counts to its group. In the row of ``total``, a user counts once per bin of
    ``"popularity"`` with items that they want.

    A column of ``by`` that is called ``fold`` or ``split`` must be in the truth as well. Each call
    takes a few milliseconds before it reads a row, so stack many small tables, with a column for
    ``by``, and evaluate them in one call instead of a loop.

    An eager call warns if a mean is over fewer users than ``users``, unless ``count_users`` reports
    them.

    With ``users="both"``, each system has a mean over its own users. If the run has one batch of
    users and the truth has all users, pass ``"both"``: otherwise the users of other batches count
    as misses. Only ``exclude`` removes users from the run, as in trec_eval: a list that ``depth``
    leaves empty is still a list, so that ``depth=k`` and a metric at k have the same users.

    Precision, recall, F, hit, RR, DCG, RBP, ERR and counts have bounds; a metric without proven
    bounds raises an error. Bounds are null where the metric is null. With ``depth``, items below it
    are not part of the list.

    Chance and ceiling are means over the same users as the metric, for lists with the same items,
    after ``exclude``, ``depth`` and ``unjudged``. For chance, all orders of a list are equally
    likely. For the ceiling, its items are sorted by grade from rank 1, with unjudged items last. A
    ranker of these items can reach values between the two. The rest, up to 1 for nDCG, is what the
    list lacks. Metrics without an exact expectation, such as ERR, raise an error, as do metrics of
    subtopics and metrics that read no grade.

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
