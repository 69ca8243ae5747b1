"""Ready values of users, from any source: read and checked for statistics (``Values``)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import isfinite
from typing import Any, cast

import polars as pl

from rankframe._evaluation import provenance, ranges, user_columns
from rankframe._evaluation.user_columns import Purpose
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels, question
from rankframe._request.keywords import Columns, Options, Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question
from rankframe._request.types import Frame, Truth
from rankframe._tables import adapters, column_roles, guards, readers, rules
from rankframe._tables.rules import Rule
from rankframe.errors import Problem, RankingDataError, option, table_code

#: The name of the caller's table in errors.
TABLE = "table of values"


def ask(
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Truth | None,
    by: str | Sequence[str],
    settings: Settings,
    *,
    per_user: bool = False,
) -> Question:
    """Ask for metrics of tables, or, without items and truth, for columns of a table of values."""
    names = has = adapters.column_names(frame, "judged table")
    if truth is not None or has_lists(names, by, settings.columns, metrics):
        if truth is None:
            _check_not_values(names, metrics, by, settings)
        return question.ask(frame, metrics, truth, by, settings, per_user=per_user)
    _check_options(settings)
    names = _names(metrics)
    if not names:
        msg = 'name at least one column of values, for example "rmse"'
        raise ValueError(msg)
    choices = names if {*names} <= {*has} else [*names, *has]  # a column that is absent comes first
    own = {
        option: _of_columns(option, getattr(settings, option), choices)
        for option in ("higher_is_better", "value_range")
    }
    columns = [_column(name, **own) for name in names]
    groups = settings.groups(by)
    return Question(frame, metrics, None, groups, settings, per_user, columns=columns)


def _check_not_values(
    names: Collection[str], metrics: Sequence[Metric], by: str | Sequence[str], settings: Settings
) -> None:
    """Check that a table of lists is not one of values that has a column of items by chance."""
    placing = column_roles.with_roles(settings.columns, by, names, ["placing"])
    are_lists = any(placing.get(role, role) in names for role in ("rank", "score"))
    if are_lists or not all(isinstance(metric, str) and metric in names for metric in metrics):
        return
    item = settings.columns.get("item", "item")
    items = [item] if item in names else column_roles.fitting("item", settings.columns, by, names)
    msg = (
        f"judged table: it has items, in column {next(iter(items), item)!r}, but neither rank nor "
        f"score. If {metrics[0]!r} is a column of values, drop the column of items: a table of "
        f"values has one row per user. If the table has lists, name their {option('rank')} or "
        f"{option('score')}, and pass {option('truth')}"
    )
    raise RankingDataError(msg)


def check_lists(
    verb: str, names: Collection[str], by: str | Sequence[str], columns: Columns
) -> None:
    """Check that a table without a truth has lists, which a verb shows."""
    if not has_lists(names, by, columns, ()):
        msg = (
            f"{verb} shows lists, and a frame without items and without truth= is a table of "
            f"values, of which compare, summarize, table and charts are: {_IF_LISTS}"
        )
        raise ValueError(Problem(msg))


def has_lists(
    names: Collection[str], by: str | Sequence[str], columns: Columns, metrics: Sequence[Metric]
) -> bool:
    """Whether columns are those of lists; without items and a truth, a table is one of values.

    Without items, scores and grades are lists too, unless all metrics are columns.
    """
    names = [name for name in names if name != readers.ROW_NUMBER]
    if not column_roles.lacks_items(columns, by, names):
        return True
    roles = column_roles.with_roles(columns, by, names, ["placing", "relevance"])
    graded = {roles.get("score", "score"), roles.get("relevance", "relevance")} <= {*names}
    are_columns = [isinstance(metric, str) and metric in names for metric in metrics]
    return graded and not (metrics and all(are_columns))


def values_of(call: Question) -> Values:
    """Return the input of the statistics, from columns of a table of values."""
    settings, groups = call.settings, call.by
    columns = [metric.name for metric in call.requested]
    lazy = adapters.to_lazy(call.frame, TABLE)
    schema = lazy.collect_schema()
    requested = [_of_type(metric, schema.get(metric.name)) for metric in call.requested]
    users = column_roles.fitting("user", settings.columns, groups, schema)
    user = keywords.user_of(settings.columns, users[0] if len(users) == 1 else "user")
    keys = [*groups, user]
    of_users = user_columns.purposes_in(settings)
    _check_columns(schema, columns, keys, of_users)
    row_rules = [*_rules(schema, columns, keys), *_range_rules(requested)]
    extras: list[pl.Expr] = []
    for purpose, name in of_users.items():
        value = user_columns.as_value(purpose, TABLE, name, schema[name])
        extras.append(value.alias(purpose.column))
        row_rules += user_columns.value_rules(purpose, TABLE, name, value)
        if settings.over is not None:
            of_user = pl.col(name).min().over([key for key in keys if key != settings.over])
            several = user_columns.several(purpose)
            row_rules.append(Rule(TABLE, name, several, pl.col(name) != of_user))
    flags = guards.rule_flags(lazy, row_rules, empty=True)
    if provenance.COLUMN in schema and provenance.COLUMN not in keys:
        flags.append(guards.flag(lazy, pl.col(provenance.COLUMN).n_unique() > 1))
    rows = guards.guarded(
        lazy.select(*keys, *columns, *extras),
        flags,
        partial(_raise_in_values, lazy, row_rules, keys),
    )
    return Values(requested, groups, user, rows, settings)


# ------------------------------------------------------------------ what is asked of a column


def _check_options(settings: Settings) -> None:
    """Check that no option is of lists, which a table of values lacks."""
    plain = Settings()
    options = [
        name
        for name in Options.__annotations__
        if name not in (*Columns.__annotations__, "weights", "average")
        and getattr(settings, name) is not getattr(plain, name)  # None or False: may be a table
    ]
    roles = [role for role in settings.columns if role not in ("model", "user")]
    if lists := [*options, *roles]:
        msg = (
            f"{option(lists[0])} needs lists of items; this frame has no item and no "
            f"{option('truth')}, so it is read as a table of values: {_IF_LISTS}"
        )
        raise ValueError(Problem(msg))


_IF_LISTS = (
    f"if it has lists, name the column of their items in {option('item')}, or number the rows of a "
    "log without items"
) + table_code("frame", ".with_row_index('item')", ".reset_index(names='item')")


def _of_columns(option: str, values: object, names: Sequence[str]) -> Mapping[str, Any]:
    """Check that an option is a mapping from columns that are asked for."""
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        msg = f"{option} must be a mapping such as {_EXAMPLES[option]}, not {values!r}"
        raise TypeError(msg)
    of_names = cast("Mapping[str, Any]", values)
    for name in of_names:
        if name not in names:
            msg = f"{option} names {name!r}; the columns are {', '.join(map(repr, names))}"
            raise ValueError(msg)
    return of_names


_EXAMPLES = {"higher_is_better": "{'revenue': True}", "value_range": "{'revenue': (0, 500)}"}


def _column(
    name: str, higher_is_better: Mapping[str, Any], value_range: Mapping[str, Any]
) -> RequestedMetric:
    """Make a metric of a column, with the direction and range that are declared of its name."""
    traits = labels.traits_of_name(name)
    if name in higher_is_better:
        direction = higher_is_better[name]
        if not (direction is None or isinstance(direction, bool)):
            msg = f"higher_is_better of {name!r} must be True, False or None, not {direction!r}"
            raise TypeError(msg)
        traits = traits._replace(higher_is_better=direction)
    if name in value_range:
        least, greatest = _pair(name, value_range[name])
        traits = traits._replace(least=least, greatest=greatest)
    return RequestedMetric(
        name, pl.col(name), labels.MEAN, per_user=True, traits=traits, is_column=True
    )


def _of_type(metric: RequestedMetric, dtype: pl.DataType | None) -> RequestedMetric:
    """Give a Boolean column the range 0 to 1, unless it has another."""
    traits = metric.traits
    if dtype != pl.Boolean or isfinite(traits.width):
        return metric
    return replace(metric, traits=traits._replace(least=0.0, greatest=1.0))


def _pair(name: str, value_range: object) -> tuple[float, float]:
    """Read the least and the greatest value of a column."""
    if isinstance(value_range, tuple | list):
        ends = cast("Sequence[object]", value_range)
        numbers = [float(end) for end in ends if keywords.is_number(end)]
        if len(numbers) == len(ends) == 2 and numbers[0] < numbers[1]:
            return numbers[0], numbers[1]
    msg = (
        f"value_range of {name!r} must be two numbers, the least first, such as (0, 500), not "
        f"{value_range!r}"
    )
    raise ValueError(msg)


# ------------------------------------------------------------------ what its rows must be


def _check_columns(
    schema: pl.Schema,
    columns: Sequence[object],
    keys: Sequence[object],
    of_users: Mapping[Purpose, str],
) -> None:
    """Check that the columns are there, differ, and have types that fit."""
    names = _names([*keys, *columns])
    ids, values = names[: len(keys)], names[len(keys) :]
    for purpose, name in of_users.items():
        if name in ids:
            msg = f"{option(purpose.option, name)}: this column has another role: name another"
            raise ValueError(Problem(msg))
    if missing := [name for name in (*ids, *of_users.values()) if name not in schema]:
        has = ", ".join(map(repr, schema))
        msg = f"{TABLE}: no column {', '.join(map(repr, missing))}; it has {has}"
        if keys[-1] in missing:
            msg += f"; name the column of the user with {option('user')}"
        raise RankingDataError(msg)
    if missing := [name for name in values if name not in schema]:
        taken = {*ids, *of_users.values()}
        numeric = [name for name in schema if name not in taken and _is_numeric(schema[name])]
        has = (
            f"its columns of numbers are {', '.join(map(repr, numeric))}"
            if numeric
            else "it has no column of numbers"
        )
        msg = f"{TABLE}: no column {', '.join(map(repr, missing))}; {has}; {_IF_LISTS}"
        raise RankingDataError(msg)
    _check_types(schema, ids, values)


def _check_types(schema: pl.Schema, ids: Sequence[str], values: Sequence[str]) -> None:
    for name in (*ids, *values):
        if name.startswith(labels.PREFIX) or column_roles.is_pattern(name):
            msg = f"{TABLE}, column {name!r}: this name is reserved: rename it"
            raise RankingDataError(msg)
    for name in ids:
        if not column_roles.can_be_id(schema[name]):
            msg = f"{TABLE}, column {name!r}: {schema[name]} cannot be an id or group: use text"
            raise RankingDataError(msg)
    for name in values:
        if not _is_numeric(schema[name]):
            msg = f"{TABLE}, column {name!r}: {schema[name]} is not a number: cast it"
            raise RankingDataError(msg)


def _is_numeric(dtype: pl.DataType) -> bool:
    return dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)


def _names(columns: Sequence[object]) -> list[str]:
    """Check that each column is named once, as text."""
    names: list[str] = []
    for name in columns:
        if isinstance(name, pl.Expr):
            msg = (
                f"a table of values takes the names of its columns, not an expression: {_IF_LISTS}"
            )
            raise TypeError(Problem(msg))
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
        f"{option('by')}"
    )
    yield Rule(TABLE, keys[-1], text, pl.struct(keys).is_duplicated())
    for name in columns:
        if schema[name].is_float():
            text = "NaN or infinite value: use null where it is undefined"
            yield Rule(TABLE, name, text, ~pl.col(name).is_finite())


def _range_rules(requested: Sequence[RequestedMetric]) -> Iterator[Rule]:
    """Yield the rule of each column that has a range, which rounding may exceed."""
    for metric in requested:
        if (outside := ranges.outside(metric)) is not None:
            range_ = f"value_range={{{metric.name!r}: (…, …)}}"
            cure = f"correct it, or declare another range, {range_}"
            text = f"a value outside {ranges.span(metric)}, the range of {metric.name!r}: {cure}"
            yield Rule(TABLE, metric.name, text, outside)


def _raise_in_values(table: pl.LazyFrame, row_rules: Sequence[Rule], keys: Sequence[str]) -> None:
    if table.head(1).collect().is_empty():
        msg = f"{TABLE}: it is empty"
        raise RankingDataError(msg)
    for rule in row_rules:
        rules.raise_first([rule], table, list(dict.fromkeys([*keys, rule.column])))
    provenance.raise_if_mixed(table.collect(), TABLE, keys)
