"""Ranking metrics as polars expressions.

``import rankframe as rf`` registers ``df.rank`` on polars DataFrames and LazyFrames.

Calls from several threads are safe. Start processes by ``spawn`` or ``forkserver``: polars hangs in
a process that was forked after polars had computed anything.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

import polars as pl

from rankframe._evaluation.evaluation import evaluate, per_user
from rankframe._namespace import VERBS as _VERBS
from rankframe._namespace import RankFrame
from rankframe._namespace import attach as _attach
from rankframe._request.keywords import Columns as Names
from rankframe._request.keywords import Options
from rankframe._request.labels import METRICS as _METRICS
from rankframe._request.labels import metric
from rankframe._request.registration import register_metric
from rankframe._request.registry import register_column
from rankframe._tables.run_dicts import from_runs
from rankframe._tables.verbs import from_dict, from_lists, judge, with_rank
from rankframe.errors import RankingDataError, RankingWarning
from rankframe.metrics.core import *  # noqa: F403
from rankframe.metrics.diversity import *  # noqa: F403
from rankframe.metrics.exposure import *  # noqa: F403
from rankframe.metrics.lists import *  # noqa: F403
from rankframe.metrics.order import *  # noqa: F403
from rankframe.metrics.trec import *  # noqa: F403
from rankframe.metrics.unbiased import *  # noqa: F403
from rankframe.metrics.user_models import *  # noqa: F403

if _TYPE_CHECKING:  # the rest is imported when it is first used: see _LATER
    from rankframe import parts, plot, presets
    from rankframe._comparison.comparison import compare, compare_values
    from rankframe._comparison.cutoff_curves import at_k
    from rankframe._comparison.diagnosis import diagnose
    from rankframe._comparison.gate import gate
    from rankframe._comparison.harm import harm
    from rankframe._comparison.many_systems import anova, best_systems, letters
    from rankframe._comparison.power import power
    from rankframe._comparison.segments import compare_segments
    from rankframe._comparison.summaries import summarize, summarize_values
    from rankframe._comparison.system_agreement import agreement, discriminative_power
    from rankframe._evaluation.overlap import overlap, rbo
    from rankframe._evaluation.provenance import provenance
    from rankframe._evaluation.row_verbs import check, listed, relevant, shares
    from rankframe._evaluation.trackers import as_dict
    from rankframe._report.report import Report, report
    from rankframe._report.results import ResultsTable, table
    from rankframe._tables.fusion import fuse
    from rankframe._tables.health import health
    from rankframe._tables.judgment_files import read_judgments
    from rankframe._tables.matrices import from_matrix, from_scores
    from rankframe._tables.side_by_side import lists
    from rankframe._warehouse.checking import sql_check
    from rankframe._warehouse.query import sql
    from rankframe.parts._meter import Meter

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  (by topic)
    # tables in
    "from_dict",
    "from_lists",
    "from_matrix",
    "from_runs",
    "from_scores",
    "judge",
    "read_judgments",
    "with_rank",
    "fuse",
    # what is in them
    "check",
    "health",
    "listed",
    "lists",
    "overlap",
    "rbo",
    "relevant",
    "shares",
    # numbers out
    "at_k",
    "evaluate",
    "per_user",
    "as_dict",
    "provenance",
    "metric",
    "register_column",
    "register_metric",
    # what a difference means
    "agreement",
    "anova",
    "best_systems",
    "compare",
    "compare_segments",
    "compare_values",
    "diagnose",
    "discriminative_power",
    "gate",
    "harm",
    "letters",
    "power",
    "summarize",
    "summarize_values",
    # for people
    "Report",
    "ResultsTable",
    "plot",
    "report",
    "table",
    # past one table
    "Meter",
    "parts",
    "sql",
    "sql_check",
    # types
    "Names",
    "Options",
    "RankFrame",
    "RankingDataError",
    "RankingWarning",
    "presets",
]
__all__ += [*_METRICS]  # pyright: ignore[reportUnsupportedDunderAll]


#: The modules of the names that are imported when they are first used; None is a module itself.
_LATER = _VERBS | {
    "Meter": "parts._meter",
    "Report": "_report.report",
    "ResultsTable": "_report.results",
    "as_dict": "_evaluation.trackers",
    "from_matrix": "_tables.matrices",
    "from_scores": "_tables.matrices",
    "parts": None,
    "plot": None,
    "presets": None,
    "read_judgments": "_tables.judgment_files",
    "sql": "_warehouse.query",
    "sql_check": "_warehouse.checking",
}


def __getattr__(name: str) -> _Any:
    if name not in _LATER:
        msg = f"module 'rankframe' has no attribute {name!r}"
        raise AttributeError(msg)
    module = _LATER[name]
    value = _import_module(f"rankframe.{module or name}")
    globals()[name] = value = getattr(value, name) if module else value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)


_attach("rank", pl.DataFrame, pl.api.register_dataframe_namespace)
_attach("rank", pl.LazyFrame, pl.api.register_lazyframe_namespace)
