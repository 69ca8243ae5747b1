"""Flags: cheap checks inside a plan, which raise the thorough message when the plan runs.

Stage of the pipeline: rules become flags, plans of one row, and ``guarded`` adds them to a result.
A flag has three columns: ``suspect``, a rule may be broken; ``balance``, a number of rows whose sum
over all flags is 0 unless a row counts twice; ``doubt``, no row proves a rule on whole tables.

How a duplicate is detected, the cheapest first:

====================== =======================================================================
``balance``            in rows of grade > 0 in rank order, first of all: the join has more rows than
                       the truth; one in the truth is a neighbor of its like (``SHARES_RANK``)
``_has_duplicate``     in other rows of grade > 0: each list is counted
``lists_flag``         in all rows, where others count: scores become ranks, ``listed`` or
                       ``judged`` is read, ``unjudged="drop"``, verbs of lists alone
``table_rules_flag``   in blocks of ties and rows of subtopics, which become one per item
====================== =======================================================================
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import polars as pl

from rankframe._request import labels
from rankframe._request.types import Types
from rankframe._tables import adapters, doubts, rank_order, rules
from rankframe._tables.rules import Rule
from rankframe._tables.table import Policy, Table

#: The flag of a result of one row: suspect, balance, doubt.
OWN = tuple(f"{labels.PREFIX}{name}" for name in ("suspect", "balance", "doubt"))
#: Whether a list has a relevant item of its user, its rows, whether two have one item, or one rank.
HIT, ROWS, DUPLICATE, SHARED = (
    f"{labels.PREFIX}{name}" for name in ("hit", "rows", "duplicate", "shared")
)


class Notice(NamedTuple):
    """What is perhaps said when a plan runs, of facts that are a plan of one row."""

    facts: pl.LazyFrame
    say: Callable[[Mapping[str, Any]], None]


def guarded(
    result: pl.LazyFrame,
    flags: Iterable[pl.LazyFrame],
    raise_violation: Callable[[], None],
    schema: Types | None = None,
    raise_global: Callable[[], None] | None = None,
    notices: Iterable[Notice] = (),
) -> pl.LazyFrame:
    """Call ``raise_violation`` when the plan runs and one of the flags is raised.

    If no row is suspect, but a rule on whole tables is not proved, call ``raise_global``, which
    reads only keys. Only a callback on these few rows lets our error leave a lazy plan with its
    type and text. It adds no row to the result, and it comes first, so that head() cannot skip it.
    ``schema`` is that of the result, where it is known.
    """
    types = dict(result.collect_schema() if schema is None else schema)

    def verdict(raised: pl.DataFrame) -> pl.DataFrame:
        if raised["suspect"].any() or raised["balance"].sum() != 0:
            raise_violation()
        elif raised["doubt"].any():
            (raise_global or raise_violation)()
        return pl.DataFrame(schema=types)

    def noticed(notice: Notice) -> pl.LazyFrame:
        def said(facts: pl.DataFrame) -> pl.DataFrame:
            notice.say(facts.row(0, named=True))
            return pl.DataFrame(schema=types)

        return notice.facts.map_batches(said, schema=types)

    checked = pl.concat(flags).map_batches(verdict, schema=types)
    return pl.concat([checked, *map(noticed, notices), result])


def guarded_row(
    row: pl.LazyFrame,
    flags: Iterable[pl.LazyFrame],
    raise_violation: Callable[[], None],
    schema: Types,
    raise_global: Callable[[], None],
) -> pl.LazyFrame:
    """Guard a result of one row, which has its own flag, ``OWN``, after the columns of ``schema``.

    Its input is then read once; reading it twice would cost as much as a small table.
    """
    raised = gathered_flags(flags)

    def verdict(both: pl.DataFrame) -> pl.DataFrame:
        *_, suspect, balance, doubt, suspects, sum_of_balances, suspected = both.row(0)
        if suspect or suspects or balance + sum_of_balances != 0:
            raise_violation()
        elif doubt or suspected:
            raise_global()
        return both[:, : len(schema)]

    both = row.select(*schema, *OWN).join(raised, how="cross")
    return adapters.in_one_step(both, verdict, schema)


def flag(
    frame: pl.LazyFrame,
    suspect: pl.Expr,
    balance: pl.Expr | None = None,
    doubt: pl.Expr | None = None,
) -> pl.LazyFrame:
    """Make a flag of one row."""
    part = pl.lit(0) if balance is None else balance
    unproved = pl.lit(value=False) if doubt is None else doubt
    return frame.select(suspect=suspect, balance=part.cast(pl.Int64), doubt=unproved)


def gathered_flags(flags: Iterable[pl.LazyFrame]) -> pl.LazyFrame:
    """Make one flag of several."""
    sums = pl.col("suspect").any(), pl.col("balance").sum(), pl.col("doubt").any()
    return pl.concat(flags).select(sums)


def rule_flags(
    rows: pl.LazyFrame, row_rules: Sequence[Rule], *, empty: bool = False
) -> list[pl.LazyFrame]:
    """Flag rows that break rules, and with ``empty`` also that there are none."""
    own = [rule.flag for rule in row_rules if rule.flag is not None]
    broken = [rule.broken.any() for rule in row_rules if rule.flag is None]
    broken += [pl.len() == 0] if empty else []
    return [*([flag(rows, pl.any_horizontal(broken))] if broken else []), *own]


def table_flag(table: Table, *, count: bool = False) -> pl.LazyFrame:
    """Flag rows that break a rule by themselves, and emptiness.

    ``count`` subtracts the number of rows of grade > 0 from the sum; the join adds its own number.
    """
    broken = [rule.broken.any() for rule in rules.row_rules(table)]
    frame = table.frame
    if table.totals is None:
        broken.append(pl.len() == 0)
        if table.ungraded is not None:  # it has the columns of the rules as well
            frame = table.ungraded
            broken += [
                rules.are_two_grades(*rules.grade_counts(*candidate))
                for candidate in rules.candidates(table).items()
            ]
        # a run with only null scores has no hit, which ``any_doubt`` flags
        if table.rank is not None or table.name == "judged table":
            broken.append(~rules.is_retrieved(table).any())
    doubt = doubts.scores_may_be_equal(table)
    return flag(frame, pl.any_horizontal(broken), -_positive(table) if count else None, doubt)


def _positive(table: Table) -> pl.Expr:
    """Count the rows of grade > 0."""
    if table.relevance is None:
        return pl.len().cast(pl.Int64)
    grade = pl.col(table.relevance)
    positive = grade if table.schema[table.relevance] == pl.Boolean else grade > 0
    return positive.sum().cast(pl.Int64)


def table_rules_flag(table: Table) -> pl.LazyFrame:
    """Flag rules that rows break together, over every row.

    Blocks of ties and rows of subtopics need it: once a table has one row per item, no other flag
    can detect what was wrong.
    """
    return rule_flags(table.frame, list(rules.table_rules(table)))[0]


def lists_flag(table: Table, sorted_lists: pl.LazyFrame | None = None) -> pl.LazyFrame:
    """Flag duplicate items of a list, and items that share a rank, over every row.

    ``sorted_lists`` has the same rows in ascending order of users, which takes a tenth of the time.
    """
    if rank_order.are_distinct(table):
        return flag(table.frame.head(0), pl.lit(value=False))
    # 10 M rows: 0.2 s in order of users, 0.7 s shuffled; grouped by item too, 1.3 and 0.6 s
    if sorted_lists is not None:
        # 0.4 of the time; groups with many aggregates take three times as long if sorted
        sorted_lists = sorted_lists.with_columns(pl.col(table.user).set_sorted())
        # the greatest rank is read so that the optimizer leaves the rows in order
        held = pl.col("rank").max().alias("__rankframe_held")
        lists = sorted_lists.group_by(table.keys).agg(_has_duplicate(table.item), held)
        return flag(lists, (pl.col(DUPLICATE) & (pl.col("__rankframe_held") > 0)).any())
    # equal hashes of other values only raise a flag, rarely; 12 M rows of text: 4 times as fast
    texts = [pl.col(name).hash() for name in table.row if table.schema[name] == pl.String]
    table = replace(table, frame=table.frame.with_columns(texts))
    aggregates = [_has_duplicate(*table.row[len(table.keys) :])]
    if table.rank is not None and not table.tied and table.subtopic is None:
        aggregates.append(shares_rank(table.rank, tied=False).alias(SHARED))
    lists = table.frame.group_by(table.keys).agg(aggregates)
    broken = flag(lists, pl.any_horizontal(pl.exclude(table.keys).any()))
    return _flag_of_blocks(table, aggregates, broken) if table.rows is None else broken


def _flag_of_blocks(
    table: Table, aggregates: Sequence[pl.Expr], broken: pl.LazyFrame
) -> pl.LazyFrame:
    """Look for what is broken in rows of a list that follow each other.

    ``broken``, which holds all rows, settles a doubt: lists lie apart, or a rule may be broken.
    """
    # (c) 1.3 in November 2026; 10 M rows in order: 0.1 instead of 0.5 GB
    block = pl.struct(table.keys).rle_id().alias("__rankframe_block")
    blocks = table.frame.with_columns(block).group_by("__rankframe_block")
    lists = blocks.agg(pl.col(table.keys).first(), *aggregates)
    apart = (pl.struct(table.keys).n_unique() < pl.len()).alias("__rankframe_apart")
    doubt = flag(
        lists, pl.any_horizontal(apart, pl.exclude("__rankframe_block", *table.keys).any())
    )
    return doubt.map_batches(
        lambda row: broken.collect(engine="streaming") if row["suspect"].item() else row
    )


def check_aggregates(
    item: str, *, hit: pl.Expr, shared: pl.Expr, count: bool = False
) -> list[pl.Expr]:
    """Reductions over a user's relevant rows that ``any_violation`` and ``any_doubt`` read.

    With ``count``, duplicates show in the number of rows, or as neighbors in the order.
    """
    return [
        pl.len().cast(pl.Int64).alias(ROWS) if count else _has_duplicate(item),
        shared.alias(SHARED),
        (hit.count() > 0).alias(HIT),
    ]


def shares_rank(name: str = "rank", *, tied: bool) -> pl.Expr:
    """Whether two of a user's rows, in any order, have the same rank."""
    rank = pl.col(name)
    return pl.lit(value=False) if tied else rank.drop_nulls().n_unique() < rank.count()


def _has_duplicate(*columns: str) -> pl.Expr:
    row = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    return (row.n_unique() < pl.len()).alias(DUPLICATE)


def any_violation(*, count: bool = False) -> pl.Expr:
    """Whether, by the reductions of ``check_aggregates``, a rule may be broken.

    A list has a duplicate item, or two items at one rank.
    """
    names = [SHARED, *([] if count else [DUPLICATE])]
    return pl.any_horizontal([pl.col(name).any() for name in names])


def any_doubt(tables: Sequence[Table], users: Policy = "truth") -> pl.Expr:
    """Whether it is still open that both tables share a user, or that a user is in two groups.

    One group needs no proof. A part of the tables cannot break these rules. A system without a hit
    is in doubt, too.
    """
    if tables[0].totals is not None:
        return pl.lit(value=False)
    run, truth = tables[0], tables[-1]
    hit = pl.col(HIT)
    reasons = [~hit.any()]
    if run.model is not None:
        system = pl.col(run.model)
        reasons.append(system.filter(hit).n_unique() < system.n_unique())
    if len(tables) < 2:
        return pl.any_horizontal(reasons)
    for name in run.by:
        if name not in truth.by:
            ids, pairs = pl.col(run.user), pl.struct(run.user, name)
            alone = ids.filter(hit).n_unique() == pairs.filter(hit).n_unique()
            doubt = pl.lit(value=True) if rules.is_fold(name) else alone
            if rules.is_fold(name) or rules.counts_misses(users):
                reasons.append((pl.col(name).n_unique() > 1) & doubt)
    return pl.any_horizontal(reasons)
