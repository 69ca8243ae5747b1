"""Read what a chart is drawn of, and refuse what cannot be drawn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.util import find_spec
from typing import Any, NamedTuple, cast

import polars as pl

from rankframe._evaluation import evaluation, ready_values
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Columns, Options, Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, readers, run_dicts
from rankframe.errors import RankingDataError

MOST_ROWS = 4_000  # of a chart's data: less than a megabyte, and below Altair's limit
MOST_PANELS = 12  # rows of panels


class Call(NamedTuple):
    """What a chart is drawn of; the first of ``groups`` is the column of the systems."""

    frame: pl.LazyFrame
    truth: Truth | None
    groups: list[str]
    options: Options | Columns

    def compute(self, verb: Callable[..., Any], *args: Any, **options: Any) -> pl.DataFrame:
        """Compute the numbers of a verb."""
        options |= {"truth": self.truth, "by": self.groups, **self.options}
        numbers: pl.LazyFrame = verb(self.frame, *args, **options)
        return numbers.collect()

    def values(
        self, metrics: Sequence[Metric], *, per_user: bool = False, cluster: str | None = None
    ) -> Values:
        options = cast("Options", self.options)
        settings = keywords.read_options(options, cluster=cluster, counts=["missed"])
        return evaluation.user_values(self._question(metrics, settings, per_user=per_user))

    def requested(self, metrics: Sequence[Metric]) -> list[RequestedMetric]:
        """Read the metrics, or columns of a table of values."""
        return self._question(
            metrics, keywords.read_options(cast("Options", self.options))
        ).requested

    def _question(
        self, metrics: Sequence[Metric], settings: Settings, *, per_user: bool = False
    ) -> Question:
        return ready_values.ask(
            self.frame, metrics, self.truth, self.groups, settings, per_user=per_user
        )


def read_call(
    frame: Runs[Frame],
    truth: Truth | None,
    by: str | Sequence[str],
    options: Options,
    compares: str | None = None,
) -> Call:
    check_call()
    table, groups, options = run_dicts.as_frame(frame, by, options, compares=compares)
    kind = "judged table" if truth is None else "run"
    table = readers.with_items(table, truth, groups, options)
    return Call(adapters.to_lazy(table, kind), truth, groups, options)


def check_call() -> None:
    """Check that Altair is installed."""
    if find_spec("altair") is None:
        msg = "charts need altair: pip install 'rankframe[plot]'"
        raise ImportError(msg)


def check_values(values: pl.Series, name: str) -> None:
    if values.null_count() == len(values):
        msg = f"metric {name!r}: no user has a value to draw"
        raise RankingDataError(msg)


def check_rows(table: pl.DataFrame, what: str, remedy: str) -> None:
    if len(table) > MOST_ROWS:
        msg = f"{len(table):,} {what} are too many for one chart: choose {remedy}"
        raise ValueError(msg)


def check_panels(panels: Sequence[str], what: str = "segments") -> None:
    if len(panels) > MOST_PANELS:
        msg = f"{len(panels)} {what} are too many for one chart: filter the frame"
        raise ValueError(msg)
