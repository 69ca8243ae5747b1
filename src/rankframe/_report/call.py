"""The call of a report, checked, and the values that it measures per user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from rankframe._comparison.trials import Trial
from rankframe._evaluation.values import Values
from rankframe._request.keywords import Options, Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.types import Frame, Truth
from rankframe._tables.table import Tables


class ReportCall(NamedTuple):
    """The parameters of a report, checked."""

    run: pl.DataFrame | pl.LazyFrame
    truth: pl.DataFrame | pl.LazyFrame | None
    metrics: Sequence[Metric]
    by: str
    segments: Sequence[str]
    k: int
    trial: Trial
    settings: Settings
    options: Options
    queries: Frame | None  # the texts of users
    explore: int  # users whose lists the page includes
    note: str | None  # below the title
    nouns: tuple[str, str] | None  # for user and item
    human: Truth | None = None  # labels that correct the verdict and the table


class Measurement(NamedTuple):
    """The values of all users, collected, and their metrics."""

    call: ReportCall
    values: Values
    rows: pl.DataFrame
    requested: Sequence[RequestedMetric]
    directions: Mapping[str, bool | None]
    cuts: pl.DataFrame  # label, metric, k
    texts: Mapping[str, str]  # of queries, by their ids as text

    @property
    def decides(self) -> str:
        """The metric of the verdict."""
        return self.call.trial.primary or self.requested[0].name

    @property
    def tables(self) -> Tables:
        """The tables that the values are of, with the columns of all roles."""
        return self.values.source.tables

    def metric(self, name: str) -> RequestedMetric:
        """Return a metric of the call by its name."""
        return next(metric for metric in self.requested if metric.name == name)

    def only(
        self, names: Sequence[str], rows: pl.DataFrame | None = None, *, corrected: bool = False
    ) -> Values:
        """Return the values of some metrics, perhaps with those that correct them."""
        of_users = {metric.name: metric for metric in self.values.requested}
        metrics = [of_users[name] for name in names if name in of_users]
        rows = self.rows if rows is None else rows
        all_names = {metric.name for metric in self.requested}
        lists = self.values.system_metrics if all_names <= {*names} else None
        values = self.values._replace(requested=metrics, rows=rows.lazy(), system_metrics=lists)
        return values._replace(has_human=corrected and values.has_human)
