"""A call as one record: which metrics it asks for, of which tables, with which options.

Stage of the pipeline: ``ask`` reads and checks the labels and options of a call, and no row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import polars as pl

from rankframe._request import labels, registry, share_names
from rankframe._request.keywords import Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.registry import Reading
from rankframe._request.types import Frame, Truth


class Totals(NamedTuple):
    """Facts about all users that a part of the tables needs; it has all rows of its users."""

    top_grade: float | None
    groups: pl.DataFrame | None  # the groups of ``by`` that the truth lacks
    misses_none: bool | None = None  # whether no judged row of any part lacks a rank; None: unknown


@dataclass(frozen=True, repr=False, eq=False)
class Question:
    """The tables, metrics and options of one call; a pickle has the metrics as they were passed."""

    frame: Frame
    metrics: Sequence[Metric]  # as the caller wrote them
    truth: Truth | None
    by: list[str]
    settings: Settings
    per_user: bool  # whether each metric must have a value per user
    totals: Totals | None = None  # of a part
    columns: Sequence[RequestedMetric] | None = None  # those asked for, of a table of values
    truth_name: str = "truth"  # what errors call the truth

    @cached_property
    def requested(self) -> list[RequestedMetric]:
        """The metrics, parsed where they are computed."""
        if self.columns is not None:
            return [*self.columns]
        return labels.parse_metrics(
            self.metrics, per_user=self.per_user, defaults=self.settings.defaults
        )

    @cached_property
    def reading(self) -> Reading:
        """What all metrics read."""
        names = {name for metric in self.requested for name in metric.reads}
        return registry.reading_of(names, inputs=self.settings.inputs)

    @property
    def lists_alone(self) -> bool:
        """Whether no metric reads the truth."""
        readings = [
            registry.reading_of(metric.reads, inputs=self.settings.inputs)
            for metric in self.requested
        ]
        needs = [reading for reading in readings if not reading.lists_alone]
        return not needs and not share_names.needs_truth(self.reading.names)

    @property
    def beside(self) -> list[Frame | None]:
        """All tables of the call except the run."""
        truth = cast("Frame | None", self.truth)  # other kinds were opened before
        return [truth, self.settings.items, self.settings.history, self.settings.exclude]

    def of(self, frame: Frame, truth: Truth | None, totals: Totals | None = None) -> Question:
        """Return the same question about other tables."""
        other = replace(self, frame=frame, truth=truth, totals=totals)
        vars(other)["requested"] = self.requested
        return other

    def __getstate__(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}


def ask(
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Truth | None,
    by: str | Sequence[str],
    settings: Settings,
    *,
    per_user: bool = False,
    totals: Totals | None = None,
) -> Question:
    """Read the metrics and groups of a call; with ``per_user`` each metric has a value per user."""
    for option in ("higher_is_better", "value_range"):
        if getattr(settings, option) is not None:
            msg = (
                f"{option}= applies only to a table of values (one row per user): a metric "
                "declares its direction and range in rf.register_metric"
            )
            raise ValueError(msg)
    groups = settings.groups(by)
    question = Question(frame, metrics, truth, groups, settings, per_user, totals)
    _ = question.requested  # raises for labels that cannot be read
    return question
