"""Evaluating partitions: all rows of a user are in the same partition.

The values of a user depend only on the rows of that user, and on the facts about all users in
``Totals``. So an engine that moves all rows of a user into one partition can evaluate each
partition by itself, with the plans and checks of one machine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from rankframe._evaluation import evaluation
from rankframe._evaluation.values import Values
from rankframe._request import labels, registry
from rankframe._request.keywords import Columns, Settings
from rankframe._request.labels import Entry, RequestedMetric
from rankframe._request.question import Question, Totals
from rankframe._request.registry import Column, Reading
from rankframe._request.types import Frame, Truth
from rankframe._tables import judgment, readers, rules, verbs
from rankframe._tables.table import Table

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
    tables = readers.read_all(run, truth, by, settings, totals=totals)
    return judgment.guarded_judged(judgment.judge(tables))


def ranked_of(
    run: pl.LazyFrame, _: pl.LazyFrame | None, totals: Totals | None, **options: Any
) -> pl.LazyFrame:
    """Rank the lists of some users."""
    return verbs.plan_ranks(run, totals=totals, **options)


def values_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Compute the metrics of some users."""
    values = evaluation.plan_values(question.of(frame, truth, totals))
    return values.checks.guarded(values.rows, values.types)


def rows_of(
    question: Question, frame: pl.LazyFrame, truth: pl.LazyFrame | None, totals: Totals | None
) -> pl.LazyFrame:
    """Compute the input of the statistics, for some users; ``gathered`` puts it together."""
    return evaluation.user_values(question.of(frame, truth, totals)).rows


def gathered(parts: pl.DataFrame, plan: Values) -> Values:
    """Put the rows of all users together; only a group without users has a row without one."""
    values = evaluation.in_groups(plan)
    users = parts.filter(pl.col(values.user).is_not_null())
    if values.by:
        bare = parts.join(users, on=values.by, how="anti").unique(values.by)
        users = pl.concat([users, bare])
    return values._replace(rows=users.lazy())


def seen_of(tables: Sequence[Table], units: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Count what proves, added up over all parts, that the whole tables keep their rules.

    ``run`` and ``truth`` are rows, ``users`` the units of either, ``shared`` the users of both,
    ``pairs`` those of both in the same group, ``several: name`` those who are in several groups of
    a column that the truth lacks, and the names of ``grade_counts`` the values of what may be
    grades.
    """
    run, *truths = tables
    users = (units_of(tables) if units is None else units).select(pl.len())
    if not truths:
        return _counts({"run": rules.retrieved(run).select(pl.len()), "users": users})
    (truth,) = truths
    lacking = lacking_of(tables)
    types = rules.same_types(run, truth)
    user = pl.col(run.user).cast(types[run.user])
    lists = rules.retrieved(run).select(user, *lacking).unique()
    of_run, of_truth = lists.select(run.user).unique(), truth.frame.select(user)
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
    for candidate in rules.candidates(truth).items():
        assert truth.ungraded is not None
        for count in rules.grade_counts(*candidate):
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
    if not truths:
        return run.frame.select(keys).unique()
    (truth,) = truths
    types = [pl.col(name).cast(rules.same_types(run, truth)[name]) for name in keys]
    return pl.concat([rules.retrieved(run).select(types), truth.frame.select(types)]).unique()


def tables_of(
    run: Frame, truth: Truth | None, by: str | Sequence[str], columns: Columns
) -> list[Table]:
    """Read a run and its truth, or a judged table, before it is known which columns are read."""
    return readers.read_run_and_truth(
        run, truth, by, columns, reads=(), run_alone=True, any_name=True
    )


def groups_of(run: Table, names: Sequence[str]) -> pl.LazyFrame:
    """List the groups of some columns of ``by`` in which there are lists."""
    return rules.retrieved(run).select(names).unique()


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
    return pl.concat(
        count.select(pl.lit(of).alias("of"), number=pl.all().cast(pl.Float64))
        for of, count in counts.items()
    )


def needs_of(plan: Values, settings: Settings) -> Needs:
    """Return what must go into a shuffle; the rest changes no result."""
    requested = [*plan.requested, *(plan.of_lists.requested if plan.of_lists else ())]
    reading = _reading(requested, settings)
    other_judgments = settings.unjudged == "bounds"
    needs = Needs(set(reading.names), top_grade=other_judgments or reading.top_grade)
    if settings.weights is not None:
        needs.columns.add(settings.weights)
    return needs if _needs_all_rows(plan, settings) else _thinned(needs, plan, requested, settings)


def _reading(metrics: Sequence[RequestedMetric], settings: Settings) -> Reading:
    reads = {name for metric in metrics for name in metric.reads}
    return registry.reading_of(reads, inputs=settings.inputs)


def _needs_all_rows(plan: Values, settings: Settings) -> bool:
    source, tables = plan.source, plan.source.tables.both
    reasons = [
        settings.weights is not None,  # an idle row may be the only one with the weight
        settings.unjudged == "bounds",
        source.tables.tied or tables[0].rank is None,
        not source.tables.has_truth,
        settings.inputs or plan.of_lists is not None,
        tables[-1].by,  # a group may have no other rows, but it is in the result
    ]
    return any(reasons)


def _thinned(
    needs: Needs, plan: Values, requested: Sequence[RequestedMetric], settings: Settings
) -> Needs:
    """Leave out ranks, grades and items that no metric reads."""
    users = settings.users or "truth"
    more = [metric for metric in requested if not _asks_for_a_list(metric)]
    reading = _reading(more, settings)
    lists = (
        "missed" in plan.source.tables.settings.counts
        or len(more) < len(requested)
        or users not in ("truth", "judged")
    )
    all_count = settings.unjudged == "drop" or reading.counts_judged
    relevant = users == "truth" and not all_count and reading.scope != "listed"
    if plan.source.tables.truth is None:
        relevant = relevant and not reading.counts_listed
        return needs._replace(relevant=relevant, lists=lists and relevant)
    depth = _depth(more, reading, settings)
    judged = not (all_count or reading.counts_listed)
    thinned = depth is not None or judged
    return needs._replace(depth=depth, relevant=relevant, judged=judged, lists=lists and thinned)


def _depth(metrics: Sequence[RequestedMetric], reading: Reading, settings: Settings) -> int | None:
    """Return the deepest rank that is read; None if all are."""
    if settings.depth is not None or settings.unjudged == "drop" or reading.depends_on_below:
        return settings.depth
    cuts = [metric.cut_off for metric in metrics]
    return max((k for k in cuts if k), default=None) if all(cuts) else None


def _asks_for_a_list(metric: RequestedMetric) -> bool:
    """Whether of the run a metric reads only who has a list."""
    expr = metric.expr.meta.undo_aliases()
    return any(expr.meta.eq(labels.of_label(label).meta.undo_aliases()) for label in _OF_LISTS)
