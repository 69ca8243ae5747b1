"""Ready values of users, from any source: read and checked for statistics (``UserValues``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import user_clusters, user_weights
from rankframe._evaluation.evaluation import UserValues
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns
from rankframe._request.labels import RequestedMetric
from rankframe._request.types import Frame
from rankframe._tables import adapters, column_roles, guards
from rankframe._tables.rules import format_row
from rankframe.errors import RankingDataError

#: The name of the caller's table in errors.
TABLE = "table of values"


class _Rule(NamedTuple):
    """A rule: the column that breaks it, what errors say, and its rows."""

    column: str
    text: str
    broken: pl.Expr


def ready_values(
    frame: Frame,
    columns: Sequence[str],
    by: str | Sequence[str],
    user: str,
    weights: str | None,
    cluster: str | None,
) -> UserValues:
    """Return the input of the statistics, from columns of ready values."""
    keywords.check_weights(weights)
    keywords.check_cluster(cluster)
    groups, lazy = keywords.group_names(by), adapters.to_lazy(frame, TABLE)
    schema = lazy.collect_schema()
    if (
        user == "user"
        and len(users := column_roles.fitting("user", Columns(), groups, schema)) == 1
    ):
        user = users[0]
    keys = [*groups, user]
    of_users = {"weights": weights, "cluster": cluster}
    _check_columns(schema, columns, keys, of_users)
    rules = list(_rules(schema, columns, keys, weights))
    extras = (
        [] if weights is None else [pl.col(weights).cast(pl.Float64).alias(user_weights.WEIGHT)]
    )
    if cluster is not None:
        extras.append(user_clusters.as_cluster(TABLE, cluster, schema[cluster]))
        cluster_rules = user_clusters.cluster_rules(TABLE, cluster, schema[cluster])
        rules += [_Rule(cluster, *rule) for rule in cluster_rules]
    broken = pl.any_horizontal(rule.broken.any() for rule in rules)
    rows = guards.guarded(
        lazy.select(*keys, *columns, *extras),
        [guards.flag(lazy, broken | (pl.len() == 0))],
        partial(_raise_first_broken, lazy, rules, keys),
    )
    requested = [
        RequestedMetric(name, pl.col(name), labels.MEAN, per_user=True, reads=frozenset([name]))
        for name in columns
    ]
    return UserValues(requested, groups, user, rows, weights=weights, cluster=cluster)


def _check_columns(
    schema: pl.Schema,
    columns: Sequence[object],
    keys: Sequence[object],
    of_users: Mapping[str, str | None],
) -> None:
    """Check that the columns are there, differ, and have types that fit."""
    if not columns:
        msg = 'name at least one column of values, for example "rmse"'
        raise ValueError(msg)
    taken: list[str] = []
    for name in (*keys, *columns):
        if not isinstance(name, str):
            msg = f"the name of a column of values must be text, not {name!r}"
            raise TypeError(msg)
        if name in taken:
            msg = f"column {name!r} is named twice: each column has one role"
            raise ValueError(msg)
        taken.append(name)
    for option, name in of_users.items():
        if name in taken[: len(keys)]:
            msg = f"{option}={name!r}: this column has another role: name a different one"
            raise ValueError(msg)
    missing = [
        name for name in (*taken, *of_users.values()) if name is not None and name not in schema
    ]
    if missing:
        has = ", ".join(map(repr, schema))
        msg = f"{TABLE}: no column {', '.join(map(repr, missing))}; it has {has}"
        if keys[-1] in missing:
            msg += "; name the column of the user with user="
        raise RankingDataError(msg)
    for name in taken:
        if (
            name.startswith(labels.INNER)
            or name == "*"
            or (name.startswith("^") and name.endswith("$"))
        ):
            msg = f"{TABLE}, column {name!r}: this name is reserved: rename it"
            raise RankingDataError(msg)
    for name in taken[: len(keys)]:
        if schema[name].is_nested() or schema[name].is_object():
            msg = f"{TABLE}, column {name!r}: {schema[name]} cannot be an id or group: use text"
            raise RankingDataError(msg)
    for name in taken[len(keys) :]:
        if not (schema[name].is_numeric() or isinstance(schema[name], pl.Boolean | pl.Null)):
            msg = f"{TABLE}, column {name!r}: {schema[name]} is not a number: cast it"
            raise RankingDataError(msg)
    weights = of_users["weights"]
    if weights is not None:
        user_weights.check_weight(TABLE, weights, schema[weights])


def _rules(
    schema: pl.Schema, columns: Sequence[str], keys: Sequence[str], weights: str | None
) -> Iterator[_Rule]:
    for name in keys:
        role = "user" if name == keys[-1] else "group"
        cure = f"drop the row, or fill in the {role}"
        yield _Rule(name, f"null {role}: {cure}", pl.col(name).is_null())
        if schema[name].is_float():
            yield _Rule(name, f"NaN {role}: {cure}", pl.col(name).is_nan())
    row = ", ".join(keys)
    text = f"duplicate ({row}): keep one row per user, or name the columns of groups in by="
    yield _Rule(keys[-1], text, pl.struct(keys).is_duplicated())
    for name in columns:
        if schema[name].is_float():
            text = "NaN or infinite value: use null where it is undefined"
            yield _Rule(name, text, ~pl.col(name).is_finite())
    if weights is not None:
        for text, broken in user_weights.weight_rules(pl.col(weights).cast(pl.Float64)):
            yield _Rule(weights, text, broken)


def _raise_first_broken(table: pl.LazyFrame, rules: Sequence[_Rule], keys: Sequence[str]) -> None:
    if table.head(1).collect().is_empty():
        msg = f"{TABLE}: it is empty"
        raise RankingDataError(msg)
    for rule in rules:
        shown = [*keys, *([] if rule.column in keys else [rule.column])]
        row = table.filter(rule.broken).select(shown).head(1).collect()
        if not row.is_empty():
            msg = f"{TABLE}, column {rule.column!r}: {rule.text}. Offending row: {format_row(row)}"
            raise RankingDataError(msg)
