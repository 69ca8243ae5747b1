"""Plans of small calls, kept for the next calls of the same metrics, options and types.

With 100 rows, a plan takes as long as running it. The second such call makes a plan without ranges
of ids (a tenth slower if run once). A call takes it out while running it, so threads do not share
it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import fields
from functools import partial
from typing import TypeAlias

import polars as pl

from rankframe import _sizes
from rankframe._request import registry, segment_names
from rankframe._request.keywords import Settings
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question
from rankframe._request.types import Truth
from rankframe._tables import adapters, column_roles
from rankframe.errors import RankingDataError

_Kept: TypeAlias = tuple[dict[str, pl.DataFrame], pl.LazyFrame]
_PLANS: dict[Hashable, _Kept | None] = {}  # None: of one call so far


def collected(
    key: Hashable,
    tables: Mapping[str, pl.DataFrame],
    make: Callable[[Mapping[str, pl.DataFrame | pl.LazyFrame]], pl.LazyFrame],
    *,
    grouped: bool,
) -> pl.DataFrame:
    """Run a plan on tables: the one that is kept under ``key`` and their types, or a new one."""
    types = tuple((name, *table.schema.items()) for name, table in tables.items())
    key = (key, types, registry.registrations())
    rows = sum(map(len, tables.values()))
    kept = None
    if key not in _PLANS:
        result = adapters.collected(make(tables), rows)
    else:
        held, plan = kept = _PLANS.pop(key, None) or _made(tables, make)
        held.update(tables)
        try:
            result = adapters.collected(plan, rows, unoptimized=_few_rows(grouped=grouped))
        except RankingDataError:  # the same error as a call that is not repeated, or none
            result = adapters.collected(make(tables), rows)
        finally:
            held.clear()
    _PLANS[key] = kept
    for oldest in [*_PLANS][: -_sizes.PLANS_KEPT]:
        _PLANS.pop(oldest, None)
    return result


def key_of(question: Question) -> Hashable:
    """Return what the plan of a question depends on, except types; None if on more than that."""
    frame, settings = question.frame, question.settings
    tables = [frame, *([] if question.truth is None else [question.truth])]
    eager = [table for table in tables if isinstance(table, pl.DataFrame)]
    more = [
        len(eager) < len(tables),
        any(metric.call is None for metric in question.requested),
        settings.inputs,
        getattr(frame, "_rankframe_segments", ()),
        # whose levels a plan of other rows lacks
        any(_is_enum_and_text(tables, name) for name in question.by),
        any(map(segment_names.segment_of, question.by)),
        # whose rows are numbered
        column_roles.lacks_items(settings.columns, question.by, eager[0].columns if eager else ()),
    ]
    if any(more) or sum(map(len, eager)) > _few_rows(grouped=bool(question.by)):
        return None
    if any(metric.is_of_all_lists for metric in question.requested):
        return None
    read = {name for metric in question.requested for name in metric.reads}
    # a registered function may read what changes
    if any(column.registered for name, column in registry.COLUMNS.items() if name in read):
        return None
    names = {field.name for field in fields(Settings)} - {"preset", "defaults"}  # read into others
    options = [repr(getattr(settings, name)) for name in sorted(names)]
    return (question.per_user, *map(_key_of, question.requested), tuple(question.by), *options)


def _key_of(metric: RequestedMetric) -> Hashable:
    """Return what tells a metric from others that have calls."""
    label = metric.call.label if metric.call else None
    return metric.name, label, metric.per_user, metric.over_users.epsilon, metric.relevant_at


def _is_enum_and_text(tables: Sequence[Truth], name: str) -> bool:
    types = [table.schema.get(name) for table in tables if isinstance(table, pl.DataFrame)]
    return any(isinstance(dtype, pl.Enum) for dtype in types) and pl.String in types


def _few_rows(*, grouped: bool) -> int:
    return _sizes.ROWS_KEPT_IN_GROUPS if grouped else _sizes.ROWS_KEPT


def _made(
    tables: Mapping[str, pl.DataFrame],
    make: Callable[[Mapping[str, pl.DataFrame | pl.LazyFrame]], pl.LazyFrame],
) -> _Kept:
    held = dict(tables)
    sources = {
        name: pl.LazyFrame(schema=table.schema).map_batches(
            partial(_held, held, name), schema=table.schema
        )
        for name, table in tables.items()
    }
    return held, make(sources)


def _held(held: Mapping[str, pl.DataFrame], name: str, _: pl.DataFrame) -> pl.DataFrame:
    return held[name]
