"""Metrics of all lists together: coverage, Gini, personalization and what else is of nobody alone.

They are reductions of shares (:mod:`rankframe._shares`), one number per group of ``by``. Their
intervals come of leaving out groups of users, their tests of swapping whole lists.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from rankframe._labels import RequestedMetric
from rankframe._options import Settings
from rankframe._shares import Kind, completed, exposures, kind_of, rows_of_shares
from rankframe._table import JudgedTables
from rankframe._vocabulary import Sources


class OfLists(NamedTuple):
    """What a call asks of all lists, and what that is made of."""

    requested: list[RequestedMetric]
    asked: list[str]  # the names of all metrics of the call
    sources: Sources
    users: pl.LazyFrame | None  # whose lists count; None: everybody's
    by: list[str]

    def values(self, by: Sequence[str]) -> pl.LazyFrame:
        """Give one row per group of ``by``, or one row."""
        frames = [
            _reduced(
                rows_of_shares(self.sources, _names(some), kind, by=by, users=self.users), by, some
            )
            for kind, some in self.kinds().items()
        ]
        return _side_by_side(frames, by)

    def kinds(self) -> dict[Kind, list[RequestedMetric]]:
        """Group the metrics by the shares that they reduce."""
        kinds: dict[Kind, list[RequestedMetric]] = {}
        for one in self.requested:
            kind = kind_of(one.expr)
            assert kind is not None
            kinds.setdefault(kind, []).append(one)
        return kinds

    def exposures(self, kind: Kind) -> pl.LazyFrame:
        """Give what each list by itself gives to each value."""
        names = _names(self.kinds()[kind])
        return exposures(self.sources, names, kind, by=self.by, users=self.users, per_list=True)

    def resampled(self, kind: Kind, sums: pl.LazyFrame, part: str) -> pl.LazyFrame:
        """Reduce exposures that are made anew, one row per ``part`` and group."""
        some = self.kinds()[kind]
        groups = sums.select(part, *self.by).unique()
        rows = completed(
            sums,
            self.sources,
            _names(some),
            kind,
            by=self.by,
            users=self.users,
            parts=[part],
            groups=groups,
        )
        return _reduced(rows, [part, *self.by], some)


def of_all_lists(
    prepared: JudgedTables,
    requested: Sequence[RequestedMetric],
    settings: Settings,
    users: pl.LazyFrame | None,
) -> OfLists | None:
    """Take the metrics of all lists out of a call; None where there are none."""
    found = [one for one in requested if is_of_all(one.expr)]
    if not found:
        return None
    asked = [one.name for one in requested]
    return OfLists(found, asked, prepared.sources(settings), users, prepared.tables[0].by)


def is_of_all(metric: pl.Expr) -> bool:
    """Tell if a metric is one number of all lists."""
    kind = kind_of(metric)
    return kind is not None and kind.over == "all"


def _names(some: Sequence[RequestedMetric]) -> list[str]:
    return sorted({name for one in some for name in one.expr.meta.root_names()})


def _reduced(
    rows: pl.LazyFrame, keys: Sequence[str], some: Sequence[RequestedMetric]
) -> pl.LazyFrame:
    metrics = [one.expr for one in some]
    return rows.group_by(keys).agg(metrics) if keys else rows.select(metrics)


def _side_by_side(frames: Sequence[pl.LazyFrame], by: Sequence[str]) -> pl.LazyFrame:
    first, *others = frames
    for each in others:
        if by:
            first = first.join(each, on=by, how="full", coalesce=True, nulls_equal=True)
        else:
            first = pl.concat([first, each], how="horizontal")
    return first
