"""Evaluating partitions: all rows of a user are in the same partition.

The values of a user depend only on the rows of that user, and on the facts about all users in
``Totals``. So an engine that moves all rows of a user into one partition can evaluate each
partition by itself, with the plans and checks of one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import polars as pl

from rankframe._evaluation import evaluation, group_means, reduction, sums, user_columns
from rankframe._evaluation.evaluation import UserValues
from rankframe._evaluation.reduction import Plan
from rankframe._request import labels, registry
from rankframe._request.keywords import Settings
from rankframe._request.labels import Entry, RequestedMetric
from rankframe._request.question import Question, Totals
from rankframe._request.registry import Column
from rankframe._tables import guards, judgment, rules, verbs
from rankframe._tables.table import Table

SUM, COUNT = "__rankframe_sum", "__rankframe_count"
KNOWN = "__rankframe_known"  # the number of users with a value, if the count is of weights
_PROVED = "__rankframe_proved"
_OF_LISTS = ("missed", "num_missed")


class Registered(NamedTuple):
    """The registered metrics and columns, for a process that lacks them."""

    metrics: list[Entry]
    columns: list[Column]


def registered() -> Registered:
    """List what has been registered here."""
    columns = [column for column in registry.COLUMNS.values() if column.registered]
    return Registered(labels.registered_metrics(), columns)


def restore(registration: Registered) -> None:
    """Register what has been registered elsewhere."""
    labels.restore_metrics(registration.metrics)
    registry.restore_columns(registration.columns)


class Needs(NamedTuple):
    """What the requested metrics need."""

    columns: set[str]  # those that they read
    top_grade: bool
    depth: int | None = None  # of the run: only ranks down to it; None: all
    relevant: bool = False  # of the truth: only grades > 0
    judged: bool = False  # of the run: only items that the truth has
    lists: bool = False  # beside these rows, one of each list: it shows that there is a list


def judged_of(
    run: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    by: str | Sequence[str],
    settings: Settings,
) -> pl.LazyFrame:
    """Join the run and the truth of some users."""
    prepared = judgment.prepare_tables(run, truth, by, settings.columns, totals=totals)
    return judgment.guarded_judged(judgment.with_inputs(prepared, settings))


def ranked_of(
    run: pl.LazyFrame, _: pl.LazyFrame | None, totals: Totals | None, **options: Any
) -> pl.LazyFrame:
    """Rank the lists of some users."""
    return verbs.plan_ranks(run, totals=totals, **options)


def values_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Compute the metrics of some users."""
    return evaluation.plan_values(question.of(frame, truth, totals)).guarded()


def rows_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Compute the input of the statistics, for some users; ``gathered`` puts it together."""
    return evaluation.user_values(question.of(frame, truth, totals)).rows


def gathered(parts: pl.DataFrame, plan: Plan) -> UserValues:
    """Put the rows of all users together; only a group without users has a row without one."""
    values = evaluation.in_groups(plan)
    users = parts.filter(pl.col(values.user).is_not_null())
    if values.by:
        bare = parts.join(users, on=values.by, how="anti").unique(values.by)
        users = pl.concat([users, bare])
    return values._replace(rows=users.lazy())


def sums_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Add up the metrics of some users, for ``means_of`` to add up all."""
    plan = evaluation.plan_means(question.of(frame, truth, totals))
    proved = pl.lit(rules.proves_global_rules(plan.prepared.tables)).alias(_PROVED)
    return summed(plan).with_columns(proved)


def summed(plan: Plan) -> pl.LazyFrame:
    """Add up the values of users, one row per group."""
    exprs = [
        column
        for place, metric in enumerate(plan.requested)
        for column in _summed(
            metric, place, plan.types[metric.name], weighted=plan.weights is not None
        )
    ]
    exprs += [group_means.counted_users(name) for name in sorted(plan.counted)]
    return guards.guarded(
        group_means.over_users(plan, exprs, plan.by), plan.flags, plan.raise_violation
    )


def exposures_of(
    question: Question,
    frame: pl.LazyFrame,
    truth: pl.LazyFrame | None,
    totals: Totals | None,
    *,
    place: int,
) -> pl.LazyFrame:
    """Add up the exposures in the lists of some users, for metrics of all lists."""
    plan = evaluation.plan_means(question.of(frame, truth, totals))
    assert plan.of_lists is not None
    return plan.of_lists.exposures(list(plan.of_lists.kinds())[place], per_list=False)


class RequestedMean(NamedTuple):
    """A requested mean over users, and its type."""

    name: str
    aggregate: Literal["mean", "sum"]
    epsilon: float | None  # of a geometric mean
    dtype: pl.DataType


class Request(NamedTuple):
    """What is requested from the sums of all parts."""

    by: list[str]
    means: list[RequestedMean]
    columns: list[str]  # in the order of the call
    counted: list[str]  # the metrics whose users are counted
    weights: str | None
    undefined: float | None


#: Returns the metrics of all lists, one row per group of some columns of ``by``.
Numbers: TypeAlias = Callable[[Sequence[str]], pl.DataFrame]


def request_of(plan: Plan) -> Request:
    """Read from a plan what the sums of parts are for."""
    mean = pl.Expr.mean if plan.weights is None else group_means.by_weight
    means = [
        metric.over_users(pl.col(metric.name), mean).alias(metric.name) for metric in plan.requested
    ]
    types = group_means.over_users(plan, means, plan.by).collect_schema()
    records = [
        RequestedMean(
            metric.name, metric.over_users.aggregate, metric.over_users.epsilon, types[metric.name]
        )
        for metric in plan.requested
    ]
    undefined = None if plan.of_lists is None else plan.of_lists.judged.settings.undefined
    return Request(plan.by, records, plan.columns, sorted(plan.counted), plan.weights, undefined)


def means_of(
    parts: pl.DataFrame,
    plan: Plan,
    exposures: Sequence[pl.DataFrame] = (),
    *,
    total: bool = False,
) -> pl.DataFrame:
    """Return the means over all users, from the sums of each part; ``plan`` has what is asked."""
    of_lists = plan.of_lists
    if of_lists is None:
        return means_of_sums(parts, request_of(plan), total=total)

    def numbers(by: Sequence[str]) -> pl.DataFrame:
        return of_lists.numbers_of(exposures, by).collect()

    return means_of_sums(parts, request_of(plan), numbers, total=total)


def means_of_sums(
    parts: pl.DataFrame, request: Request, numbers: Numbers | None = None, *, total: bool = False
) -> pl.DataFrame:
    """Return the means over all users, from the sums of each part."""
    if request.weights is not None:
        _check_weights(parts, request, request.weights)
    columns = [_added(mean, place) for place, mean in enumerate(request.means)]
    counts = [pl.col(reduction.users_of(name)).sum() for name in request.counted]
    columns = [pl.col("users").sum(), *columns, *counts]
    result = _with_numbers(_over(parts, columns, request.by), request, numbers, request.by)
    if total:
        by = group_means.total_by(request.by)
        whole = _with_numbers(_over(parts, columns, by), request, numbers, by)
        result = pl.concat([result, whole], how="diagonal")
    result = result.select(*request.by, "users", *request.columns)
    group_means.raise_infinite_mean(result.lazy(), request.by)
    return result.sort(request.by, nulls_last=True) if request.by else result


def _with_numbers(
    result: pl.DataFrame, request: Request, numbers: Numbers | None, by: Sequence[str]
) -> pl.DataFrame:
    """Add the numbers of all lists."""
    if numbers is None:
        return result
    frame = numbers(by)
    result = result.join(frame, on=by, how="left") if by else result.join(frame, how="cross")
    if request.undefined is not None:
        names = [name for name in frame.columns if name not in by]
        result = result.with_columns(pl.col(names).fill_null(request.undefined))
    return result.select(*by, "users", *request.columns)


def seen_of(tables: Sequence[Table]) -> pl.LazyFrame:
    """Count what proves, added up over all parts, that the whole tables keep their rules.

    ``run`` and ``truth`` are rows, ``users`` the units of either, ``shared`` the users of both,
    ``pairs`` those of both in the same group, ``several: name`` those who are in several groups of
    a column that the truth lacks, and the names of ``grade_counts`` the values of what may be
    grades.
    """
    run, *truths = tables
    users = units_of(tables).select(pl.len())
    if not truths:
        return _counts({"run": rules.retrieved(run).select(pl.len()), "users": users})
    (truth,) = truths
    lacking = lacking_of(tables)
    types = rules.same_types(run, truth)
    user = pl.col(run.user).cast(types[run.user])
    lists = rules.retrieved(run).select(user, *lacking).unique()
    of_run, of_truth = lists.select(run.user).unique(), truth.frame.select(user).unique()
    counts = {
        "run": rules.retrieved(run).select(pl.len()),
        "truth": truth.frame.select(pl.len()),
        "users": users,
        "shared": of_run.join(of_truth, on=run.user, how="semi").select(pl.len()),
    }
    if truth.by:
        keys = [pl.col(name).cast(types[name]) for name in truth.keys]
        of_run, of_truth = rules.retrieved(run).select(keys).unique(), truth.frame.select(keys)
        counts["pairs"] = of_run.join(of_truth, on=truth.keys, how="semi").select(pl.len())
    for each in rules.candidates(truth).items():
        assert truth.ungraded is not None
        for count in rules.grade_counts(*each):
            counts[count.meta.output_name()] = truth.ungraded.select(count)
    for name in lacking:
        several = lists.group_by(run.user).agg(pl.col(name).n_unique() > 1)
        counts[f"several: {name}"] = several.select(pl.col(name).sum())
    return _counts(counts)


def units_of(tables: Sequence[Table]) -> pl.LazyFrame:
    """List what one part alone may have: each user, per group of the columns that both tables have.

    A user's lists in groups that the truth lacks are judged together, so they stay together. So do
    judgments in groups that only the truth has: the user's one list is judged in each of them.
    """
    run, *truths = tables
    own = [name for name in run.keys if name not in run.truth_groups]
    keys = [name for name in own if name in tables[-1].keys]
    of_run = rules.retrieved(run) if truths else run.frame
    if not truths:
        return of_run.select(keys).unique()
    (truth,) = truths
    types = [pl.col(name).cast(rules.same_types(run, truth)[name]) for name in keys]
    return pl.concat([of_run.select(types), truth.frame.select(types)]).unique()


def lacking_of(tables: Sequence[Table]) -> list[str]:
    """Name the columns of ``by`` that the truth lacks: it judges each of their groups."""
    return [name for name in tables[0].by if name not in tables[-1].by]


def top_grade_of(tables: Sequence[Table]) -> pl.LazyFrame:
    """Return the highest grade as the one row of a frame."""
    table = tables[-1]
    if table.relevance is None:
        return pl.LazyFrame({"grade": [1 if table.name == "truth" else None]})
    grade = pl.col(table.relevance).max()
    dtype = table.schema[table.relevance]
    if dtype == pl.Boolean:
        grade = grade.cast(pl.Int8)
    return table.frame.select(
        (grade.cast(pl.Float64) if dtype.is_decimal() else grade).alias("grade")
    )


def _counts(counts: Mapping[str, pl.LazyFrame]) -> pl.LazyFrame:
    columns = ["number"]
    return pl.concat(
        [
            count.rename(lambda _: columns[0]).select(
                pl.lit(of).alias("of"), pl.col("number").cast(pl.Float64)
            )
            for of, count in counts.items()
        ]
    )


def is_proved(parts: pl.DataFrame) -> bool:
    """Return whether one of the parts proves that all tables keep the rules on whole tables."""
    return bool(parts[_PROVED].any())


def needs_of(plan: Plan, settings: Settings) -> Needs:
    """Return what must go into a shuffle; the rest changes no result."""
    prepared, tables = plan.prepared, plan.prepared.tables
    requested = [*plan.requested, *(plan.of_lists.requested if plan.of_lists else ())]
    reads = (name for metric in requested for name in metric.reads)
    reading = registry.reading_of(reads, inputs=settings.inputs)
    other_judgments = settings.bounds or settings.scenarios
    needs = Needs(set(reading.names), top_grade=other_judgments or reading.top_grade)
    if (
        settings.weights is not None
    ):  # a row that changes no value may be the only one with the weight
        needs.columns.add(settings.weights)
        return needs
    if other_judgments or prepared.tied or tables[0].rank is None or not prepared.has_truth:
        return needs
    if settings.inputs or plan.of_lists is not None:
        return needs
    if tables[-1].by:  # a group may have no other rows, but it is in the result
        return needs
    users = settings.users or "truth"
    more = [metric for metric in requested if not _asks_for_a_list(metric)]
    reading = registry.reading_of(
        {name for metric in more for name in metric.reads}, inputs=settings.inputs
    )
    lists = plan.marks_missed or len(more) < len(requested) or users not in ("truth", "judged")
    all_count = settings.judged_only or reading.counts_judged
    relevant = users == "truth" and not all_count and reading.scope != "listed"
    if len(tables) == 1:
        relevant = relevant and not reading.counts_listed
        return needs._replace(relevant=relevant, lists=lists and relevant)
    depth = settings.depth
    if depth is None and more and not (settings.judged_only or reading.depends_on_below):
        cuts = [labels.cut_off(metric.expr) for metric in more]
        depth = max((k for k in cuts if k), default=None) if all(cuts) else None
    judged = not (all_count or reading.counts_listed)
    thinned = depth is not None or judged
    return needs._replace(depth=depth, relevant=relevant, judged=judged, lists=lists and thinned)


def _asks_for_a_list(metric: RequestedMetric) -> bool:
    """Whether of the run a metric reads only who has a list."""
    expr = metric.expr.meta.undo_aliases()
    return any(expr.meta.eq(labels.metric(label).meta.undo_aliases()) for label in _OF_LISTS)


def _check_weights(parts: pl.DataFrame, request: Request, column: str) -> None:
    """Check that of the users averaged in each group one has a weight above 0."""
    for place, mean in enumerate(request.means):
        users, weight = pl.col(f"{KNOWN}{place}").sum(), pl.col(f"{COUNT}{place}").sum()
        zero = _over(parts, [((users > 0) & (weight == 0)).alias(KNOWN)], request.by).filter(KNOWN)
        if not zero.is_empty():
            row = zero.select(request.by).sort(request.by).head(1) if request.by else None
            user_columns.raise_no_weight(column, mean.name, row)


def _summed(
    metric: RequestedMetric, place: int, dtype: pl.DataType, *, weighted: bool
) -> list[pl.Expr]:
    each = metric.over_users.transform(pl.col(metric.name))
    if weighted:
        weight = pl.when(each.is_not_null()).then(user_columns.WEIGHT)
        return [
            sums.order_free_sum(each.cast(pl.Float64) * weight).alias(f"{SUM}{place}"),
            sums.order_free_sum(weight).alias(f"{COUNT}{place}"),
            each.count().cast(pl.Int64).alias(f"{KNOWN}{place}"),
        ]
    total = each.cast(pl.Int64) if isinstance(dtype, pl.Duration) else each
    # a sum over no users has a count of 1, since without groups it is 0
    of_sum = metric.over_users.aggregate == "sum"
    total = total.sum() if of_sum else sums.order_free_sum(total.cast(pl.Float64))
    count = pl.lit(1) if of_sum else each.count()
    return [total.alias(f"{SUM}{place}"), count.cast(pl.Int64).alias(f"{COUNT}{place}")]


def _over(parts: pl.DataFrame, columns: Sequence[pl.Expr], by: Sequence[str]) -> pl.DataFrame:
    return parts.group_by(by).agg(columns) if by else parts.select(columns)


def _added(mean: RequestedMean, place: int) -> pl.Expr:
    # sorted, so that the order of parts does not change the last bits
    total, count = pl.col(f"{SUM}{place}").sort().sum(), pl.col(f"{COUNT}{place}").sort().sum()
    result = total if mean.aggregate == "sum" else total / count
    value: pl.Expr = pl.when(count > 0).then(result)
    if mean.epsilon is not None:
        value = labels.off_logarithm(value, mean.epsilon)
    if isinstance(mean.dtype, pl.Duration):
        value = value.cast(pl.Int64)
    return value.cast(mean.dtype).alias(mean.name)
