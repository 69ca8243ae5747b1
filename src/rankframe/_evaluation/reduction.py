"""Reduce: the rows of each scope become one row per user, with flags (``Plan``)."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import refusals, system_metrics, user_choice
from rankframe._evaluation.system_metrics import OfLists
from rankframe._request import labels, registry, share_names
from rankframe._request.keywords import GainsFrom, Settings
from rankframe._request.labels import RequestedMetric
from rankframe._request.registry import Scope
from rankframe._request.share_names import Kind
from rankframe._tables import guards, judgment, rank_order, rules
from rankframe._tables.judgment import Judged
from rankframe._vocabulary import scope_rows, share_rows, terms
from rankframe.errors import RankingDataError

_HAS_LIST = f"{labels.INNER}has_list"


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
    def names(self) -> list[str]:
        """The names of all metrics, in the order of the call."""
        if self.of_lists is None:
            return [metric.name for metric in self.requested]
        return self.of_lists.names

    @property
    def columns(self) -> list[str]:
        """The columns of the means, in the order of the call."""
        columns: list[str] = []
        for name in self.names:
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


def users_of(name: str) -> str:
    """Name the column that counts the users of a metric."""
    return f"{name}_users"


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


def plan(prepared: Judged, requested: list[RequestedMetric], settings: Settings) -> Plan:
    """Reduce the rows of each scope that metrics name, and join the results."""
    prepared = prepared._replace(settings=settings)
    keys = prepared.tables[0].keys
    labels.check_names(requested, keys)
    reading = registry.reading_of(names_read(requested), inputs=prepared.inputs)
    requested = [metric for metric in requested if not system_metrics.is_of_all(metric)]
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
    users = user_choice.users_policy(settings, prepared)
    first = "truth" if prepared.has_truth else "run"  # the table of the first reduction
    all_there = users == first and frames and _has_all_users(by_rows)
    values, *rest = (
        frames if all_there else [user_choice.selected(prepared, users, settings), *frames]
    )
    for other in rest:
        values = values.join(other, on=keys, how="left")
    one_pass = None
    if all_there and len(reductions) == 1 and settings.undefined is None:
        only = reductions[0]
        one_pass = OnePass(only.lists, only.suspect, only.surplus, only.doubt, flags)
    own = (guards.flag(each.lists, each.suspect, each.surplus, each.doubt) for each in reductions)
    flags = [*flags, *own]
    names = [*keys, *(metric.name for metric in requested)]
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
    for metric in requested:
        scope = share_names.kind_of(metric) or refusals.reading_in(metric, prepared).scope
        level = settings.relevant_at if metric.relevant_at is None else metric.relevant_at
        gains_from = "relevant_at" if metric.gains_from_there else settings.gains_from
        by_rows.setdefault(_Which(scope, level, gains_from), []).append(metric)
    if not prepared.has_truth:
        return by_rows
    relevant = (which for which in by_rows if which.scope == "relevant")
    first = next(relevant, _Which("relevant", settings.relevant_at, settings.gains_from))
    return {first: by_rows.pop(first, []), **by_rows}


def _has_all_users(by_rows: Mapping[_Which, object]) -> bool:
    """Whether the first reduction has a row for each user of the truth, or else of the run."""
    return next(iter(by_rows)).scope in ("relevant", "listed")


def names_read(requested: Iterable[RequestedMetric]) -> set[str]:
    return {name for metric in requested for name in metric.reads}


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
        names_read(some), has_subtopics=prepared.has_subtopics, inputs=prepared.inputs
    )
    ordered = scope == "relevant" and not prepared.tied and reading.in_order
    count = first and ordered and prepared.counts_show_duplicates and not settings.judged_only
    if isinstance(scope, Kind):
        rows = share_rows.rows_of_shares(prepared, reading.names, scope, by=table.by, users=None)
    else:
        rows = scope_rows.rows_of_scope(prepared, reading, alone=count)
    reduced = [metric.expr for metric in some]
    names = [metric.name for metric in some]
    if scope == "relevant":
        position = pl.col("block" if prepared.tied else "rank")
        shared = guards.shares_rank(tied=prepared.tied)
        if ordered:  # for 1 M users × 10, counting distinct ranks would take a tenth longer
            shared = pl.col(rank_order.SHARES_RANK).any()
        watched = guards.check_aggregates(table.item, hit=position, shared=shared, count=count)
        lists = rows.group_by(keys).agg(*reduced, *watched)
        types = _types_of(lists, rows, [*keys, *names], some, tied=prepared.tied)
        broken = pl.any_horizontal(guards.any_violation(count=count), *infinite(types, keys))
        surplus = pl.col("__rankframe_rows").sum() if count else pl.lit(0)
        doubt = guards.any_doubt(prepared.tables, user_choice.users_policy(settings, prepared))
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
    broken = pl.any_horizontal(pl.lit(value=False), *infinite(types, keys))
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
        refusals.check_columns(rows, requested, tied=tied)
        raise
    return {name: schema[name] for name in names}


def _filled(
    values: pl.LazyFrame,
    types: Mapping[str, pl.DataType],
    requested: Sequence[RequestedMetric],
    undefined: float,
) -> tuple[pl.LazyFrame, dict[str, pl.DataType]]:
    """Replace nulls with ``undefined``."""
    numbers = [metric.name for metric in requested if types[metric.name].is_numeric()]
    flags_of_users = [metric.name for metric in requested if types[metric.name] == pl.Boolean]
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


def infinite(types: Mapping[str, pl.DataType], keys: Sequence[str]) -> list[pl.Expr]:
    """Return for each metric whether its sum, and so its mean, is NaN or infinite."""
    floats = [name for name, dtype in types.items() if dtype.is_float() and name not in keys]
    return [(~pl.col(name).sum().is_finite()).alias(name) for name in floats]


#: The cure for a metric of this label that is not finite.
_CURES = {
    "snips_": "the column of propensity= must be a number > 0 in each row of a relevant item",
    "corrected(": "a list holds at most sampled + 1 items, so make sampled= the number of others",
}


def _raise_not_finite(values: pl.LazyFrame, prepared: Judged, keys: Sequence[str]) -> None:
    """Raise at the first metric that is NaN or infinite for a user."""
    schema = values.collect_schema()
    floats = [name for name, dtype in schema.items() if dtype.is_float() and name not in keys]
    violations = values.select((~pl.col(name).is_finite()).any() for name in floats).collect()
    for name in floats:
        if violations[name].item():
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
