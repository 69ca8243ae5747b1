"""Columns of users, one value each: weights, clusters (``UserColumn``) and who is missed.

``evaluate("auc", weights="impressions")`` is the mean Σ weight·value / Σ weight over users.
``compare("rr", cluster="customer")`` treats the sessions of one customer as one observation.
Stage of the pipeline: after the reduction, they become columns of ``Values``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple, NoReturn

import polars as pl

from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.keywords import Settings
from rankframe._request.question import Question
from rankframe._tables import column_roles, guards, rules
from rankframe._tables.rules import Rule
from rankframe._tables.table import Table
from rankframe._vocabulary import scope_rows
from rankframe.errors import Problem, RankingDataError, option

#: Whether the run has no list for the user.
MISSED = f"{labels.PREFIX}missed"
WEIGHT = f"{labels.PREFIX}weight"
CLUSTER = f"{labels.PREFIX}cluster"
_LEAST = f"{labels.PREFIX}least"


class Purpose(NamedTuple):
    """What a column of users is for, and in which words errors speak of it."""

    noun: str
    option: str
    column: str  # its name in the rows of users
    user: str  # a user who must have a value
    null_cure: str
    type_cure: str
    fits: Callable[[pl.DataType], bool]


WEIGHTS = Purpose(
    noun="weight",
    option="weights",
    column=WEIGHT,
    user="a user in the mean",
    null_cure="a weight is a finite number ≥ 0",
    type_cure="cast it to numbers",
    fits=partial(column_roles.can_be_number, role="weight"),
)
CLUSTERS = Purpose(
    noun="cluster",
    option="cluster",
    column=CLUSTER,
    user="a user with a value",
    null_cure="fill it in; a user who depends on no other user is a cluster of one",
    type_cure="use text or numbers",
    fits=column_roles.can_be_id,
)


# ------------------------------------------------------------------ added to values


def with_missed(values: Values, question: Question) -> Values:
    """Mark the users for whom the run has no list, if these are counted."""
    if "missed" not in question.settings.counts:
        return values
    lists = scope_rows.users_with_lists(values.source)
    lists = lists.with_columns(pl.lit(value=False).alias(MISSED))
    rows = values.rows.join(lists, on=values.keys, how="left")
    rows = rows.with_columns(pl.col(MISSED).fill_null(value=True))
    return values._replace(rows=rows, checks=values.checks.with_more(()))


def number_missed() -> pl.Expr:
    """Count the users without a list."""
    return pl.col(MISSED).sum().cast(pl.Int64).alias("num_missed")


def purposes_in(settings: Settings) -> dict[Purpose, str]:
    """Return the columns of users that a call names."""
    columns = {WEIGHTS: settings.weights, CLUSTERS: settings.cluster}
    return {purpose: column for purpose, column in columns.items() if column is not None}


def with_columns_of_users(values: Values, question: Question) -> Values:
    """Add the weight and the cluster of each user, and flag users with a value but none of them."""
    for purpose, name in purposes_in(question.settings).items():
        values = _with_column(values, purpose, name)
    return values


def with_weight_watched(values: Values, column: str) -> Values:
    """Flag groups in which no averaged user has a weight above 0."""
    names, by = values.names_per_user, values.by
    by = by if values.settings.averaged_by is None else [*by, values.settings.averaged_by]
    weights = [(name, pl.when(pl.col(name).is_not_null()).then(WEIGHT)) for name in names]
    zero = [(weight.max() == 0).fill_null(value=False).alias(name) for name, weight in weights]
    groups = values.rows.group_by(by).agg(zero) if by else values.rows.select(zero)

    def raise_violation() -> None:
        for name in names:
            unweighted = groups.filter(pl.col(name)).collect()
            if not unweighted.is_empty():
                row = unweighted.select(by).sort(by).head(1) if by else None
                raise_no_weight(column, name, row)

    watched = guards.flag(groups, pl.any_horizontal(pl.col(names).any()))
    return values._replace(checks=values.checks.with_more([watched], raise_violation))


# ------------------------------------------------------------------ read from the tables


def _with_column(values: Values, purpose: Purpose, column: str) -> Values:
    """Read one value per user from the table that has the column."""
    joined = values.source
    table = _table_with(joined.tables.both, purpose.option, column)
    on = [*(table.by if table.name == "truth" else ()), table.user]
    keys = [pl.col(name).cast(joined.types[name]) for name in on]
    value, least = pl.col(column), pl.col(_LEAST)
    dtype = table.schema[column]
    table_rows = table.frame.select(*keys, as_value(purpose, table.name, column, dtype))
    users = table_rows.group_by(on).agg(value.max(), value.min().alias(_LEAST))
    one_value = Rule(
        table.name,
        column,
        several(purpose),
        broken=value != value.min().over(on),
        flag=guards.flag(users, (least != value).any()),
    )
    # a judged table comes from two tables, so its rows may lack a value
    nullable = table.name == "judged table"
    row_rules = [*value_rules(purpose, table.name, column, value, nullable=nullable), one_value]
    of_users = users.select(*on, value.alias(purpose.column))
    rows = values.rows.join(of_users, on=on, how="left")
    lacks = _has_value(values.names_per_user) & pl.col(purpose.column).is_null()

    def raise_in_columns() -> None:
        rules.raise_first(row_rules, table_rows, [*on, column])
        row = rows.filter(lacks).select(values.keys).sort(pl.all()).head(1).collect()
        if not row.is_empty():
            raise rules.broken_row(table.name, column, _lacking(purpose, table.name), row)

    flags = [guards.gathered_flags(guards.rule_flags(table_rows, row_rules))]
    flags.append(guards.flag(rows, lacks.any()))
    return values._replace(rows=rows, checks=values.checks.with_more(flags, raise_in_columns))


def _lacking(purpose: Purpose, table: str) -> str:
    """Write that a user has no value, and what to do about it."""
    noun = purpose.noun
    cures = {
        "run": f"join the {noun}s to the truth, or leave out users missing from the run: "
        f"{option('users', 'both')}",
        "truth": f"only the truth has {noun}s: use {option('users', 'truth')}, or join the {noun}s "
        "to the run",
        "judged table": "fill in the column for every user",
    }
    return f"{purpose.user} has no {noun}: {cures[table]}"


def several(purpose: Purpose) -> str:
    """Write that a user has several values, and what to do about it."""
    noun = purpose.noun
    return f"several {noun}s of one user: give each user the same {noun} in all rows"


def as_value(purpose: Purpose, table: str, column: str, dtype: pl.DataType) -> pl.Expr:
    """Check that a column can be of this purpose, and read it; NaN is no cluster."""
    if not purpose.fits(dtype):
        msg = f"{table}, column {column!r}: {dtype} cannot be a {purpose.noun}: {purpose.type_cure}"
        raise RankingDataError(msg)
    if purpose.column == WEIGHT:
        return pl.col(column).cast(pl.Float64)
    return pl.col(column).fill_nan(None) if dtype.is_float() else pl.col(column)


def value_rules(
    purpose: Purpose, table: str, column: str, value: pl.Expr, *, nullable: bool = False
) -> Iterator[Rule]:
    """Yield the rules of each value by itself."""
    if not nullable:
        yield Rule(table, column, f"null {purpose.noun}: {purpose.null_cure}", value.is_null())
    if purpose.column == WEIGHT:
        text = f"NaN or infinite weight: {purpose.null_cure}"
        yield Rule(table, column, text, ~value.is_finite())
        yield Rule(table, column, f"negative weight: {purpose.null_cure}", value < 0)


def _has_value(names: Sequence[str]) -> pl.Expr:
    return pl.any_horizontal(pl.col(name).is_not_null() for name in names)


def _table_with(tables: Sequence[Table], keyword: str, column: str) -> Table:
    """Find the table that has the column of an option."""
    name = option(keyword, column)
    for table in tables:
        if column in table.schema:
            roles = (*table.row, table.rank, table.score, table.relevance)
            if column in roles:
                msg = f"{name}: this column has another role in the {table.name}"
                raise ValueError(Problem(msg))
            return table
    names = " or ".join(f"the {table.name}" for table in tables)
    has = dict.fromkeys(name for table in tables for name in table.schema)
    columns = ", ".join(map(repr, has))
    msg = f"{name}: {names} must have this column; the columns are {columns}"
    raise RankingDataError(msg)


# ------------------------------------------------------------------ what the means need


def raise_no_weight(column: str, metric: str, group: pl.DataFrame | None = None) -> NoReturn:
    """Raise because the weights of all averaged users are 0."""
    where = "" if group is None else f". Offending row: {rules.format_row(group)}"
    msg = (
        f"column {column!r}: every user with a value of {metric!r} has the weight 0, so there is "
        f"no weighted mean: give at least one user a weight > 0{where}"
    )
    raise RankingDataError(msg)


# ------------------------------------------------------------------ what the statistics need


def check_clusters(rows: pl.DataFrame, column: str, names: Sequence[str]) -> None:
    """Check that users with values are in at least two clusters."""
    clusters = rows.filter(_has_value(names))[CLUSTER].drop_nulls().unique()
    if len(clusters) == 1:
        msg = (
            f"column {column!r}: only one cluster, {clusters.item()!r}: clusters are the "
            "observations, and an interval needs two: leave out "
            f"{option('cluster')}, or name the column that groups users"
        )
        raise RankingDataError(msg)


def check_one_cluster(rows: pl.DataFrame, keys: Sequence[str], column: str) -> None:
    """Check that a user is in the same cluster for all systems and segments."""
    pairs = rows.select(*keys, CLUSTER).drop_nulls().unique().sort(pl.all())
    twice = pairs.filter(pl.struct(keys).is_duplicated()).rename({CLUSTER: column})
    if not twice.is_empty():
        shown = rules.format_row(twice[1:2])
        msg = f"column {column!r}: {several(CLUSTERS)}. Offending row: {shown}"
        raise RankingDataError(msg)
