"""Reduce: the rows of each scope become one row per user, with flags (``Values``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from rankframe import errors
from rankframe._evaluation import user_choice
from rankframe._evaluation.system_metrics import SystemMetrics
from rankframe._evaluation.values import Checks, Flag, Values
from rankframe._request import labels, registry
from rankframe._request.labels import RequestedMetric
from rankframe._request.registry import Reading, Scope
from rankframe._request.share_names import Distribution
from rankframe._tables import doubts, guards, judgment, rank_order, rules
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Policy
from rankframe._vocabulary import scope_rows, share_rows
from rankframe._vocabulary.share_rows import Shares
from rankframe.errors import Problem, RankingDataError, option


class _Reduction(NamedTuple):
    """Metrics of one scope, reduced to one row per user."""

    rows: pl.LazyFrame
    types: dict[str, pl.DataType]
    flag: Flag
    counted: bool = False  # whether the balance counts the relevant rows


class RowChoice(NamedTuple):
    """Which rows a metric reduces, and which of them are relevant to it."""

    scope: Scope | Distribution  # of shares, those of which attribute
    relevant_at: float | None


def reduced(
    joined: Joined,
    requested: Sequence[RequestedMetric],
    beside: Sequence[RequestedMetric] = (),
) -> Values:
    """Reduce the rows of each scope that metrics name, and join the results.

    The rows also have the columns ``beside`` the metrics.
    """
    settings, keys = joined.tables.settings, joined.keys
    labels.check_names(requested, keys)
    of_users = [metric for metric in requested if not metric.is_of_all_lists]
    users = joined.tables.users
    by_rows = _relevant_first(metrics_by_rows([*of_users, *beside], joined), joined)
    reductions = [
        _reduced(joined, choice, metrics, first=place == 0)
        for place, (choice, metrics) in enumerate(by_rows.items())
    ]
    checks = _checks(
        joined,
        names_read(requested),
        reductions,
        reads_relevance=any(map(partial(is_of_truth, joined), of_users)),
    )
    frames = [reduction.rows for reduction in reductions]
    if not _has_all_users(by_rows, users, joined):
        frames.insert(0, user_choice.selected(joined, users))
    if len(frames) > 1:
        checks = checks.with_more(())
    rows, *others = frames
    for other in others:
        rows = rows.join(other, on=keys, how="left")
    types = dict(joined.types)
    for reduction in reductions:
        types |= reduction.types
    names = [*keys, *(metric.name for metric in of_users)]
    if users == "rows":
        if settings.undefined is None:
            rows = with_worst(rows, joined, of_users)
        checks = checks._replace(notices=[user_choice.notice(joined, of_users)])
    *by, user = keys
    more = [guards.HIT] if _keeps_hits(joined) else []
    more += [column.name for column in beside]
    values = Values(
        of_users,
        by,
        user,
        rows.select([*names, *more]),
        settings,
        {name: types[name] for name in names},
        joined,
        checks,
        _system_metrics(joined, requested, users) if len(of_users) < len(requested) else None,
    )
    return values if settings.undefined is None else _filled(values, settings.undefined)


def _system_metrics(
    joined: Joined, requested: Sequence[RequestedMetric], users: Policy
) -> SystemMetrics:
    """Return the metrics of all lists of a call."""
    selected = None if users == "run" else user_choice.selected(joined, users)
    metrics = [metric for metric in requested if metric.is_of_all_lists]
    names = [metric.name for metric in requested]
    return SystemMetrics(metrics, names, joined, selected, joined.tables.run.by)


def metrics_by_rows(
    requested: Sequence[RequestedMetric], joined: Joined
) -> dict[RowChoice, list[RequestedMetric]]:
    """Group metrics by the rows that they reduce."""
    level = joined.tables.settings.relevant_at
    by_rows: dict[RowChoice, list[RequestedMetric]] = {}
    for metric in requested:
        scope = metric.distribution or _reading(joined, metric.reads).scope
        choice = RowChoice(scope, level if metric.relevant_at is None else metric.relevant_at)
        by_rows.setdefault(choice, []).append(metric)
    return by_rows


def _relevant_first(
    by_rows: dict[RowChoice, list[RequestedMetric]], joined: Joined
) -> dict[RowChoice, list[RequestedMetric]]:
    """Begin with relevant rows, which have the users."""
    if not joined.tables.has_truth:
        return by_rows
    relevant = (choice for choice in by_rows if choice.scope == "relevant")
    first = next(relevant, RowChoice("relevant", joined.tables.settings.relevant_at))
    return {first: by_rows.pop(first, []), **by_rows}


def _has_all_users(by_rows: Mapping[RowChoice, object], users: Policy, joined: Joined) -> bool:
    """Whether the first reduction has a row for each of the users, and for no other."""
    tables = joined.tables
    if users != ("truth" if tables.has_truth else "run") or not by_rows:
        return False
    if users == "truth" and tables.settings.relevant_at is not None:
        return False  # the rows are those of grade > 0
    return next(iter(by_rows)).scope not in ("judged", "subtopic")


def is_of_truth(joined: Joined, metric: RequestedMetric) -> bool:
    """Whether a metric reads relevance, so that it means nothing where no list meets the truth."""
    if not joined.tables.has_truth or metric.distribution is not None:
        return False
    return _reading(joined, metric.reads).scope != "listed" or "relevance" in metric.reads


def names_read(requested: Iterable[RequestedMetric]) -> set[str]:
    return {name for metric in requested for name in metric.reads}


def _reading(joined: Joined, names: Iterable[str]) -> Reading:
    return registry.reading_of(
        names, has_subtopics=joined.tables.has_subtopics, inputs=joined.inputs
    )


def _checks(
    joined: Joined,
    names: Iterable[str],
    reductions: Sequence[_Reduction],
    *,
    reads_relevance: bool,
) -> Checks:
    """Return the checks of the tables that metrics read, and of the values."""
    settings, tables, users = joined.tables.settings, joined.tables.both, joined.tables.users
    reading = registry.reading_of(names, inputs=joined.inputs)
    counted = [reduction for reduction in reductions if reduction.counted]
    flags = judgment.table_flags(joined, count=bool(counted))
    flags += judgment.input_flags(joined)
    raisers: list[Callable[[], None]] = [
        partial(rules.raise_in_tables, tables, users),
        partial(judgment.raise_broken_input, joined),
    ]
    if settings.unjudged == "drop" or reading.counts_judged:
        flags += [guards.lists_flag(table) for table in tables]
    elif reading.counts_listed or settings.chance:  # these count rows that are not relevant
        flags.append(guards.lists_flag(tables[0]))
    if settings.depth is not None and joined.tables.tied:
        cut = _cut_blocks(joined, settings.depth)
        flags.append(guards.flag(cut, pl.len() > 0))
        raisers.append(partial(_raise_cut, cut, settings.depth))
    raisers += [partial(raise_not_finite, reduction.rows, joined) for reduction in reductions]

    def raise_global() -> None:
        rules.raise_first_global(tables, users)
        warn_of_rows()

    def warn_of_rows() -> None:
        if tables[0].totals is not None:  # a part
            return
        doubts.warn_of_equal_scores(tables[0])
        if reads_relevance:
            for system, error in rules.unmatched_systems(tables):
                of = "" if system is None else f"{tables[0].model} {system!r}: "
                errors.warn(of + errors.marked(error))

    raisers.append(warn_of_rows)
    return Checks(flags, [reduction.flag for reduction in reductions], raisers, raise_global)


# ------------------------------------------------------------------ the rows of one scope


def _reduced(
    joined: Joined, choice: RowChoice, metrics: Sequence[RequestedMetric], *, first: bool
) -> _Reduction:
    """Reduce the rows of one scope, and check the relevant ones in the same pass.

    Only the ``first`` counts the relevant rows, for the sum over all flags.
    """
    scope, relevant_at = choice
    joined = joined.with_level(relevant_at)
    reading = _reading(joined, names_read(metrics))
    if scope == "relevant":
        return _of_relevant_rows(joined, reading, metrics, first=first)
    if isinstance(scope, Distribution):
        shares = Shares(joined, scope, joined.tables.run.by)
        rows = share_rows.rows_of_shares(shares, reading.names)
    else:
        rows = scope_rows.rows_of_scope(joined, reading)
    names = [*joined.keys, *(metric.name for metric in metrics)]
    aggregates = [metric.expr for metric in metrics]
    values = rows.group_by(joined.keys).agg(aggregates)
    types = _types_of(values, rows, names, metrics, tied=joined.tables.tied)
    emptied = scope_rows.emptied_lists(joined) if scope == "listed" else None
    if emptied is not None:  # each has the value of no rows
        of_nothing = rows.clear().select(metric.expr.alias(metric.name) for metric in metrics)
        emptied = emptied.join(of_nothing, how="cross")
        emptied = emptied.select(pl.col(name).cast(types[name]) for name in names)
        values = pl.concat([values.select(names), emptied])
    broken = pl.any_horizontal(pl.lit(value=False), *infinite(types, joined.keys))
    return _Reduction(values, types, Flag(values, broken, pl.lit(0), pl.lit(value=False)))


def _of_relevant_rows(
    joined: Joined, reading: Reading, metrics: Sequence[RequestedMetric], *, first: bool
) -> _Reduction:
    by_rank = reading.needs_rank_order and not joined.tables.tied
    counts = joined.counts_show_duplicates and joined.tables.settings.unjudged != "drop"
    count = first and by_rank and counts
    rows = scope_rows.rows_of_scope(joined, reading)
    position = pl.col("block" if joined.tables.tied else "rank")
    if by_rank:  # for 1 M users × 10, counting distinct ranks would take a tenth longer
        shared = pl.col(rank_order.SHARES_RANK).any()
    else:
        shared = guards.shares_rank(tied=joined.tables.tied)
    watched = guards.check_aggregates(joined.item, hit=position, shared=shared, count=count)
    aggregates = [*(metric.expr for metric in metrics), *watched]
    lists = rank_order.grouped_by_list(rows, joined.keys, joined.types, aggregates)
    names = [*joined.keys, *(metric.name for metric in metrics)]
    types = _types_of(lists, rows, names, metrics, tied=joined.tables.tied)
    broken = pl.any_horizontal(guards.any_violation(count=count), *infinite(types, joined.keys))
    balance = pl.col(guards.ROWS).sum() if count else pl.lit(0)
    doubt = guards.any_doubt(joined.tables.both, joined.tables.users)
    if first and _keeps_hits(joined):
        names.append(guards.HIT)
    return _Reduction(lists.select(names), types, Flag(lists, broken, balance, doubt), count)


def _keeps_hits(joined: Joined) -> bool:
    """Whether the rows of users tell who has a hit, as gates need it."""
    return joined.tables.has_truth and "hits" in joined.tables.settings.counts


def _types_of(
    reduced: pl.LazyFrame,
    rows: pl.LazyFrame,
    names: Sequence[str],
    requested: Sequence[RequestedMetric],
    *,
    tied: bool,
) -> dict[str, pl.DataType]:
    """Look up the types of the metrics; this is the only look-up of a scope."""
    try:
        schema = reduced.collect_schema()
    except pl.exceptions.ColumnNotFoundError:
        _check_columns(rows, requested, tied=tied)
        raise
    return {name: schema[name] for name in names}


def _check_columns(rows: pl.LazyFrame, requested: Sequence[RequestedMetric], *, tied: bool) -> None:
    """Check that the metrics read columns that are there."""
    try:
        names = rows.collect_schema().names()
    except pl.exceptions.ColumnNotFoundError as error:
        missing = str(error).partition("\n")[0]
        msg = (
            f"metric {', '.join(repr(metric.name) for metric in requested)}: a registered column "
            f"is derived from a column that the rows do not have ({missing}); name the columns of "
            "the vocabulary that it is derived from in reads="
        )
        raise RankingDataError(msg) from error
    for metric in requested:
        for name in metric.expr.meta.root_names():
            if tied and name not in names and name.partition("(")[0] in registry.COLUMNS:
                msg = (
                    f"metric {metric.name!r} has no exact expectation under ties: it reads "
                    f"{name!r}, which an item in a block of ties (column 'tied') does not have. "
                    f"Rank with {option('ties', 'item')}, or write a metric on 'block', 'tied' and "
                    "'hits_above'"
                )
                raise ValueError(Problem(msg))
            if name not in names and not name.startswith("^"):
                columns = dict.fromkeys([*names, *registry.COLUMNS])
                has = ", ".join(
                    repr(column) for column in columns if not column.startswith(labels.PREFIX)
                )
                msg = f"metric {metric.name!r} reads a column {name!r}; the rows have {has}"
                raise RankingDataError(msg)


def with_worst(
    rows: pl.LazyFrame, joined: Joined, metrics: Sequence[RequestedMetric]
) -> pl.LazyFrame:
    """Replace nulls of users without a relevant item with the worst value, if they count."""
    columns: list[pl.Expr] = []
    for metric in metrics:
        worst = user_choice.worst_of(metric)
        if worst is None or _reading(joined, metric.reads).lists_alone:
            continue
        level = (
            joined.tables.settings.relevant_at if metric.relevant_at is None else metric.relevant_at
        )
        lacks = ~user_choice.is_relevant(level, user_choice.TOP).fill_null(value=False)
        value = pl.col(metric.name)
        unmet = pl.col(user_choice.LISTED) & lacks & value.is_null()
        columns.append(pl.when(unmet).then(worst).otherwise(value).alias(metric.name))
    users = user_choice.by_rows(joined).select(*joined.keys, user_choice.LISTED, "relevance")
    grades = users.rename({"relevance": user_choice.TOP})
    return rows.join(grades, on=joined.keys, how="left").with_columns(columns)


def _filled(values: Values, undefined: float) -> Values:
    """Replace nulls with ``undefined``."""
    types, names = values.types, values.names_per_user
    numbers = [name for name in names if types[name].is_numeric()]
    flags_of_users = [name for name in names if types[name] == pl.Boolean]
    rows = values.rows.with_columns(pl.col(flags_of_users).cast(pl.Float64))
    rows = rows.with_columns(pl.col(numbers + flags_of_users).fill_null(undefined))
    return values._replace(
        rows=rows, types=rows.collect_schema(), checks=values.checks.with_more(())
    )


def _cut_blocks(joined: Joined, depth: int) -> pl.LazyFrame:
    """Return the items whose block of ties a cut at ``depth`` splits."""
    last = pl.col("rank") + pl.col("tied") - 1
    torn = joined.run.filter((pl.col("rank") <= depth) & (last > depth))
    return torn.select(*joined.keys, joined.item, "rank", "tied")


def _raise_cut(torn: pl.LazyFrame, depth: int) -> None:
    if not (row := torn.head(1).collect()).is_empty():
        msg = (
            f"column 'tied': {option('depth', depth)} cuts through a block of ties; ask for a "
            f"metric @{depth}, or rank with {option('ties', 'item')}. Offending row: "
            f"{rules.format_row(row)}"
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


def raise_not_finite(values: pl.LazyFrame, joined: Joined) -> None:
    """Raise at the first metric that is NaN or infinite for a user."""
    keys, schema = joined.keys, values.collect_schema()
    floats = [name for name, dtype in schema.items() if dtype.is_float() and name not in keys]
    violations = values.select((~pl.col(name).is_finite()).any() for name in floats).collect()
    for name in floats:
        if violations[name].item():
            rows = values.filter(~pl.col(name).is_finite())
            row = rows.sort(keys).select(*keys, name).head(1).collect()
            msg = (
                f"metric {name!r}: it is not a finite number for a user{_cure(name, joined)}. "
                f"Offending row: {rules.format_row(row)}"
            )
            raise RankingDataError(msg)


def _cure(metric: str, joined: Joined) -> str:
    of_expressions = "An expression of your own must be null where it is undefined"
    if not joined.tables.has_truth:
        return f". {of_expressions}"
    for label, cure in _CURES.items():
        if metric.startswith(label):
            return f": {cure}"
    parsed = labels.look_up(metric)
    if parsed is None or parsed.entry.registered:
        return f". {of_expressions}, and a renamed metric with gain= needs a gain of each grade"
    positive = joined.rows("judged").filter(pl.col("relevance") > 0)
    grades = positive.select(pl.col("relevance").unique().sort()).collect().to_series()
    return (
        f". The grades present are {', '.join(map(str, grades.head(10)))}: give each a "
        "finite gain, for example gain={1: 1, 2: 3}. "
        "With max_grade=, use one that no grade exceeds. "
        f"With collection=, count at least the items of every user. {of_expressions}"
    )
