"""Evaluating partitions: all rows of a user are in the same partition.

The values of a user depend only on the rows of that user, and on the facts about all users in
``Totals``. So an engine that moves all rows of a user into one partition can evaluate each
partition by itself, with the plans and checks of one machine.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import polars as pl

from rankframe._evaluation import evaluation
from rankframe._evaluation.values import Values
from rankframe._request import labels, registry
from rankframe._request.keywords import Columns, Settings
from rankframe._request.labels import Entry
from rankframe._request.question import Question, Totals
from rankframe._request.registry import Column
from rankframe._request.types import Frame, Truth
from rankframe._tables import judgment, readers, rules, verbs
from rankframe._tables.table import Table


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


def seen_of(tables: Sequence[Table], *, users: bool = False) -> pl.LazyFrame:
    """Return counts whose sums over all parts show whether the whole tables obey the rules.

    ``run`` and ``truth`` are rows, ``shared`` the rows of the truth whose user has a list,
    ``pairs`` those whose user has one in the same group, ``several: name`` the users in several
    groups of a column that the truth lacks, ``users`` the units of either table if they are asked
    for, and the names of ``grade_counts`` the values of what may be grades.
    """
    run, *truths = tables
    lists = rules.retrieved(run)
    counts = {"run": lists.select(pl.len())}
    if users:
        counts["users"] = units_of(tables).select(pl.len())
    if truths:
        (truth,) = truths
        types = rules.same_types(run, truth)
        counts["truth"] = truth.frame.select(pl.len())
        for of, names in {"shared": [run.user], "pairs": truth.keys}.items():
            if of == "shared" or truth.by:
                keys = [pl.col(name).cast(types[name]) for name in names]
                meeting = truth.frame.select(keys).join(lists.select(keys), on=names, how="semi")
                counts[of] = meeting.select(pl.len())
        for candidate in rules.candidates(truth).items():
            assert truth.ungraded is not None
            for count in rules.grade_counts(*candidate):
                counts[count.meta.output_name()] = truth.ungraded.select(count)
        for name in lacking_of(tables):
            groups = lists.group_by(run.user).agg(several=pl.col(name).n_unique() > 1)
            counts[f"several: {name}"] = groups.select(pl.col("several").sum())
    return pl.concat(
        count.select(pl.lit(of).alias("metric"), pl.all().cast(pl.Int64).alias("count"))
        for of, count in counts.items()
    )


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
