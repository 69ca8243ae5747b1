"""Ranking metrics as polars expressions.

``import rankframe as rf`` registers ``df.rank`` on polars DataFrames and LazyFrames.

Calls from several threads are safe. Start processes by ``spawn`` or ``forkserver``: polars hangs in
a process that was forked after polars had computed anything.
"""

from typing import TYPE_CHECKING

import polars as _pl

from rankframe import _namespace, _rooms, metrics
from rankframe._evaluation.evaluation import evaluate, per_user
from rankframe._inputs.item_lists import from_lists
from rankframe._request.registration import register_metric
from rankframe._tables.verbs import judge, with_rank
from rankframe.errors import RankingDataError

#: The modules of the names that are imported when they are first used; None is a module itself.
_LATER = _rooms.VERBS | {
    "Meter": "parts._meter",
    "as_dict": "_evaluation.trackers",
    "from_grades": "_inputs.matrices",
    "from_scores": "_inputs.matrices",
    "parts": None,
    "plot": None,
    "presets": None,
    "runs": None,
    "sql": "_warehouse.query",
    "stats": None,
}

if TYPE_CHECKING:
    from rankframe import parts, plot, presets, runs, stats
    from rankframe._comparison.comparison import compare
    from rankframe._comparison.gate import gate
    from rankframe._comparison.summaries import summarize
    from rankframe._evaluation.provenance import provenance
    from rankframe._evaluation.row_verbs import check
    from rankframe._evaluation.trackers import as_dict
    from rankframe._health.health import health
    from rankframe._inputs.matrices import from_grades, from_scores
    from rankframe._report.report import report
    from rankframe._report.results import table
    from rankframe._warehouse.query import sql
    from rankframe.parts._meter import Meter
else:
    __getattr__, __dir__ = _rooms.doors(__name__, _LATER)

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  (by topic)
    # numbers, and what a difference means
    "evaluate",
    "per_user",
    "summarize",
    "compare",
    "gate",
    "report",
    "table",
    # tables
    "check",
    "health",
    "judge",
    "with_rank",
    # tables in
    "from_lists",
    "from_grades",
    "from_scores",
    # pipelines
    "Meter",
    "as_dict",
    "provenance",
    "sql",
    # your own metrics, and the one error
    "RankingDataError",
    "register_metric",
    # rooms
    "metrics",
    "parts",
    "plot",
    "presets",
    "runs",
    "stats",
]

_namespace.attach("rank", _pl.DataFrame, _pl.api.register_dataframe_namespace)
_namespace.attach("rank", _pl.LazyFrame, _pl.api.register_lazyframe_namespace)
_namespace.attach("ranking", _pl.DataFrame, _pl.api.register_dataframe_namespace)  # as in pandas
_namespace.attach("ranking", _pl.LazyFrame, _pl.api.register_lazyframe_namespace)
