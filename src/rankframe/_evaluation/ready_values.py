"""Ready values of users, from any source: read and checked for statistics (``Values``)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import polars as pl

from rankframe._evaluation import user_columns
from rankframe._evaluation.user_columns import Purpose
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns
from rankframe._request.labels import RequestedMetric
from rankframe._request.types import Frame
from rankframe._tables import adapters, column_roles, guards, rules
from rankframe._tables.rules import Rule
from rankframe.errors import RankingDataError

#: The name of the caller's table in errors.
TABLE = "table of values"


def ready_values(
    frame: Frame,
    columns: Sequence[str],
    by: str | Sequence[str],
    user: str,
    weights: str | None,
    cluster: str | None,
) -> Values:
    """Return the input of the statistics, from columns of ready values."""
    keywords.check_name("weights", weights)
    keywords.check_name("cluster", cluster)
    groups, lazy = keywords.group_names(by), adapters.to_lazy(frame, TABLE)
    schema = lazy.collect_schema()
    if (
        user == "user"
        and len(users := column_roles.fitting("user", Columns(), groups, schema)) == 1
    ):
        user = users[0]
    keys = [*groups, user]
    of_users = {
        purpose: name
        for purpose, name in ((user_columns.WEIGHTS, weights), (user_columns.CLUSTERS, cluster))
        if name is not None
    }
    _check_columns(schema, columns, keys, of_users)
    row_rules = list(_rules(schema, columns, keys))
    extras: list[pl.Expr] = []
    for purpose, name in of_users.items():
        value = user_columns.as_value(purpose, TABLE, name, schema[name])
        extras.append(value.alias(purpose.column))
        row_rules += user_columns.value_rules(purpose, TABLE, name, value)
    rows = guards.guarded(
        lazy.select(*keys, *columns, *extras),
        guards.rule_flags(lazy, row_rules, empty=True),
        partial(_raise_first_broken, lazy, row_rules, keys),
    )
    requested = [
        RequestedMetric(name, pl.col(name), labels.MEAN, per_user=True, reads=frozenset([name]))
        for name in columns
    ]
    return Values(requested, groups, user, rows, weights=weights, cluster=cluster)


def _check_columns(
    schema: pl.Schema,
    columns: Sequence[object],
    keys: Sequence[object],
    of_users: Mapping[Purpose, str],
) -> None:
    """Check that the columns are there, differ, and have types that fit."""
    if not columns:
        msg = 'name at least one column of values, for example "rmse"'
        raise ValueError(msg)
    names = _names(keys, columns)
    ids, values = names[: len(keys)], names[len(keys) :]
    for purpose, name in of_users.items():
        if name in ids:
            option = purpose.option
            msg = f"{option}={name!r}: this column has another role: name a different one"
            raise ValueError(msg)
    if missing := [name for name in (*names, *of_users.values()) if name not in schema]:
        has = ", ".join(map(repr, schema))
        msg = f"{TABLE}: no column {', '.join(map(repr, missing))}; it has {has}"
        if keys[-1] in missing:
            msg += "; name the column of the user with user="
        raise RankingDataError(msg)
    _check_types(schema, ids, values)


def _check_types(schema: pl.Schema, ids: Sequence[str], values: Sequence[str]) -> None:
    for name in (*ids, *values):
        if name.startswith(labels.INNER) or column_roles.is_pattern(name):
            msg = f"{TABLE}, column {name!r}: this name is reserved: rename it"
            raise RankingDataError(msg)
    for name in ids:
        if not column_roles.can_be_id(schema[name]):
            msg = f"{TABLE}, column {name!r}: {schema[name]} cannot be an id or group: use text"
            raise RankingDataError(msg)
    for name in values:
        if not (schema[name].is_numeric() or isinstance(schema[name], pl.Boolean | pl.Null)):
            msg = f"{TABLE}, column {name!r}: {schema[name]} is not a number: cast it"
            raise RankingDataError(msg)


def _names(*columns: Sequence[object]) -> list[str]:
    """Check that each column is named once, as text."""
    names: list[str] = []
    for name in itertools.chain(*columns):
        if not isinstance(name, str):
            msg = f"the name of a column of values must be text, not {name!r}"
            raise TypeError(msg)
        if name in names:
            msg = f"column {name!r} is named twice: each column has one role"
            raise ValueError(msg)
        names.append(name)
    return names


def _rules(schema: pl.Schema, columns: Sequence[str], keys: Sequence[str]) -> Iterator[Rule]:
    for name in keys:
        role = "user" if name == keys[-1] else "group"
        cure = f"drop the row, or fill in the {role}"
        yield Rule(TABLE, name, f"null {role}: {cure}", pl.col(name).is_null())
        if schema[name].is_float():
            yield Rule(TABLE, name, f"NaN {role}: {cure}", pl.col(name).is_nan())
    text = (
        f"duplicate ({', '.join(keys)}): keep one row per user, or name the columns of groups in "
        "by="
    )
    yield Rule(TABLE, keys[-1], text, pl.struct(keys).is_duplicated())
    for name in columns:
        if schema[name].is_float():
            text = "NaN or infinite value: use null where it is undefined"
            yield Rule(TABLE, name, text, ~pl.col(name).is_finite())


def _raise_first_broken(
    table: pl.LazyFrame, row_rules: Sequence[Rule], keys: Sequence[str]
) -> None:
    if table.head(1).collect().is_empty():
        msg = f"{TABLE}: it is empty"
        raise RankingDataError(msg)
    for rule in row_rules:
        rules.raise_first([rule], table, list(dict.fromkeys([*keys, rule.column])))
