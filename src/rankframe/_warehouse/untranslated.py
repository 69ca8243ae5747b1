"""What has no form in SQL: the reason, and what works instead."""

from __future__ import annotations

from rankframe._request import keywords, registry
from rankframe._request.labels import RequestedMetric
from rankframe._tables.table import Tables
from rankframe.errors import Problem


def error(name: str, reason: str) -> ValueError:
    """Make the error of a metric that SQL cannot say."""
    msg = f"metric {name!r} cannot be written in SQL: {reason}; use rf.evaluate"
    return ValueError(Problem(msg))


def refuse_metric(metric: RequestedMetric) -> None:
    """Raise for a metric that reads what a query does not have."""
    if metric.distribution is not None:
        raise error(metric.name, "it reads shares of all lists")
    reading = registry.reading_of(metric.reads, inputs=keywords.INPUTS)
    for name, column in reading.columns.items():
        if column.source:
            raise error(metric.name, f"it reads {name!r}, from {' or '.join(column.source)}=")
        if column.scope == "subtopic":
            raise error(metric.name, f"it reads {name!r}, a column of subtopics")
        if column.join is not None and column.form is None:
            raise error(metric.name, f"it reads {name!r}, a joined column that SQL does not have")


def refuse_tables(read: Tables) -> None:
    """Raise for tables with ties as blocks, or with subtopics."""
    if read.tied:
        msg = "run, column 'tied': SQL cannot express expectations over ties: rank with ties='item'"
        raise ValueError(msg)
    if read.has_subtopics:
        msg = (
            "truth, column 'subtopic': SQL cannot express rows per subtopic: select one row per "
            "item, as in SELECT user, item, MAX(relevance)"
        )
        raise ValueError(msg)
