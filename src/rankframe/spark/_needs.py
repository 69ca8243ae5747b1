"""What must go into a shuffle: the rows and columns that metrics read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rankframe._evaluation.values import Values
from rankframe._request import labels, registry
from rankframe._request.keywords import Settings
from rankframe._request.labels import RequestedMetric
from rankframe._request.registry import Reading

_OF_LISTS = ("missed", "num_missed")


class Needs(NamedTuple):
    """What the requested metrics need."""

    columns: set[str]  # those that they read
    top_grade: bool
    depth: int | None = None  # of the run: only ranks down to it; None: all
    relevant: bool = False  # of the truth: only grades > 0
    judged: bool = False  # of the run: only items that the truth has
    lists: bool = False  # also send one row per list, so that workers know it exists


def needs_of(plan: Values, settings: Settings) -> Needs:
    """Return what must go into a shuffle; the rest changes no result."""
    requested = [*plan.requested, *(plan.system_metrics.requested if plan.system_metrics else ())]
    reading = _reading(requested, settings)
    other_judgments = settings.unjudged == "bounds"
    needs = Needs(set(reading.names), top_grade=other_judgments or reading.top_grade)
    if settings.weights is not None:
        needs.columns.add(settings.weights)
    return needs if _needs_all_rows(plan, settings) else _thinned(needs, plan, requested, settings)


def _reading(metrics: Sequence[RequestedMetric], settings: Settings) -> Reading:
    reads = {name for metric in metrics for name in metric.reads}
    return registry.reading_of(reads, inputs=settings.inputs)


def _needs_all_rows(plan: Values, settings: Settings) -> bool:
    source, tables = plan.source, plan.source.tables.both
    reasons = [
        settings.weights is not None,  # an idle row may be the only one with the weight
        settings.unjudged == "bounds",
        settings.duplicates != "error",  # places depend on all rows
        source.tables.tied or tables[0].rank is None,
        not source.tables.has_truth,
        settings.inputs or plan.system_metrics is not None,
        tables[-1].by,  # a group may have no other rows, but it is in the result
    ]
    return any(reasons)


def _thinned(
    needs: Needs, plan: Values, requested: Sequence[RequestedMetric], settings: Settings
) -> Needs:
    """Leave out ranks, grades and items that no metric reads."""
    users = settings.users or "truth"
    more = [metric for metric in requested if not _needs_lists_alone(metric)]
    reading = _reading(more, settings)
    lists = (
        "missed" in plan.source.tables.settings.counts
        or len(more) < len(requested)
        or users not in ("truth", "judged")
    )
    all_count = settings.unjudged == "drop" or reading.counts_judged
    relevant = users == "truth" and not all_count and reading.scope != "listed"
    if plan.source.tables.truth is None:
        relevant = relevant and not reading.counts_listed
        return needs._replace(relevant=relevant, lists=lists and relevant)
    depth = _depth(more, reading, settings)
    judged = not (all_count or reading.counts_listed)
    thinned = depth is not None or judged
    return needs._replace(depth=depth, relevant=relevant, judged=judged, lists=lists and thinned)


def _depth(metrics: Sequence[RequestedMetric], reading: Reading, settings: Settings) -> int | None:
    """Return the deepest rank that is read; None if all are."""
    if settings.depth is not None or settings.unjudged == "drop" or reading.depends_on_below:
        return settings.depth
    cuts = [metric.cut_off for metric in metrics]
    return max((k for k in cuts if k), default=None) if all(cuts) else None


def _needs_lists_alone(metric: RequestedMetric) -> bool:
    """Whether a metric needs nothing of the run but who has a list."""
    expr = metric.expr.meta.undo_aliases()
    return any(expr.meta.eq(labels.of_label(label).meta.undo_aliases()) for label in _OF_LISTS)
