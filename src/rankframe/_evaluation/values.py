"""One row per user: the record between the reduction and all that describes users (``Values``)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

import polars as pl

from rankframe._evaluation.system_metrics import SystemMetrics
from rankframe._request import labels
from rankframe._request.keywords import Settings
from rankframe._request.labels import RequestedMetric
from rankframe._tables import guards
from rankframe._tables.guards import Notice
from rankframe._tables.judgment import Joined

#: Shares of all relevant items, by their plain labels.
_OF_RECALL = frozenset(
    "recall all r_precision f1 e(beta=1) average_recall snips_recall subtopic_recall "
    "interpolated_precision eleven_point_precision".split()
)
#: The numbers of users behind the means of a call that warns if they are smaller than ``users``.
SEEN = f"{labels.PREFIX}seen"


class Flag(NamedTuple):
    """A flag that is made of the rows of users (see ``guards.flag``)."""

    frame: pl.LazyFrame
    suspect: pl.Expr
    balance: pl.Expr
    doubt: pl.Expr


class Checks(NamedTuple):
    """Flags of rules that values may break, and what raises, in the order of reported faults."""

    of_tables: Sequence[pl.LazyFrame] = ()
    of_users: Sequence[Flag] = ()  # if there is only one, means and flag share a pass
    raisers: Sequence[Callable[[], None]] = ()
    raise_global: Callable[[], None] | None = None  # if only a rule on whole tables is in doubt
    notices: Sequence[Notice] = ()  # what is said once, and raises nothing

    @property
    def flags(self) -> list[pl.LazyFrame]:
        """All flags, each a plan of one row."""
        return [*self.of_tables, *(guards.flag(*flag) for flag in self.of_users)]

    def raise_violation(self) -> None:
        """Raise for the first broken rule."""
        for raise_broken in self.raisers:
            raise_broken()

    def with_more(self, flags: Iterable[pl.LazyFrame], *raisers: Callable[[], None]) -> Checks:
        """Add flags and raisers; flags of users become plans apart, since the rows have changed."""
        raised = [*self.raisers, *raisers]
        return Checks([*self.flags, *flags], (), raised, self.raise_global, self.notices)

    def guarded(
        self, result: pl.LazyFrame, types: Mapping[str, pl.DataType] | None = None
    ) -> pl.LazyFrame:
        """Return what is made of the values, checked when it is collected."""
        return guards.guarded(
            result, self.flags, self.raise_violation, types, self.raise_global, self.notices
        )


class Values(NamedTuple):
    """One row per user: the values of metrics, and columns of users."""

    requested: list[RequestedMetric]  # those with a value per user
    by: list[str]
    user: str
    rows: pl.LazyFrame
    settings: Settings
    types: Mapping[str, pl.DataType] = {}  # of the keys and the metrics
    joined: Joined | None = None  # None: ready values
    checks: Checks = Checks()
    system_metrics: SystemMetrics | None = None  # the metrics that are one number for all lists
    numbers: pl.LazyFrame | None = None  # of all lists, with users, one row per group
    counted: frozenset[str] = frozenset()  # the metrics whose users are counted
    watched: Sequence[str] = ()  # those of which a mean over fewer users is warned of
    pooled: Mapping[str, str] = {}  # of metrics that are pooled: the column of their weights
    has_human: bool = False  # whether human labels correct those of a judge

    def is_of_listed(self, metric: RequestedMetric) -> bool:
        """Whether a share of all relevant items is of those that the lists of the table have."""
        joined, call = self.joined, metric.call
        if joined is None or call is None or call.entry.plain not in _OF_RECALL:
            return False
        if not joined.tables.from_judged or joined.tables.run.totals is not None:
            return False
        missed = joined.rows_as_passed.filter((pl.col("relevance") > 0) & pl.col("rank").is_null())
        return missed.head(1).collect().is_empty()

    @property
    def weights(self) -> str | None:
        """The column of the users' weights."""
        return self.settings.weights

    @property
    def in_groups(self) -> bool:
        """Whether the mean is that of the means of groups."""
        return self.settings.averaged_by is not None

    @property
    def has_weights(self) -> bool:
        """Whether users count differently in the mean of a metric."""
        return self.in_groups or self.weights is not None or bool(self.pooled)

    @property
    def cluster(self) -> str | None:
        """The column of clusters: users who depend on each other."""
        return self.settings.cluster

    @property
    def names_per_user(self) -> list[str]:
        """The names of the metrics with a value per user."""
        return [metric.name for metric in self.requested]

    @property
    def all_requested(self) -> list[RequestedMetric]:
        """The metrics with a value per user, and after them those of all lists."""
        return [*self.requested, *(self.system_metrics.requested if self.system_metrics else ())]

    @property
    def names(self) -> list[str]:
        """The names of all metrics, in the order of the call."""
        return self.names_per_user if self.system_metrics is None else self.system_metrics.names

    @property
    def columns(self) -> list[str]:
        """The columns of the means, in the order of the call."""
        columns: list[str] = []
        for name in self.names:
            columns += [name, users_of(name)] if name in self.counted else [name]
        return [*columns, SEEN] if self.watched else columns

    @property
    def keys(self) -> list[str]:
        """The columns of by and the user."""
        return [*self.by, self.user]

    @property
    def source(self) -> Joined:
        """The tables of values that are not ready ones."""
        assert self.joined is not None
        return self.joined


def users_of(name: str) -> str:
    """Name the column that counts the users of a metric."""
    return f"{name}_users"
