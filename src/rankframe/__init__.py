"""Ranking metrics as polars expressions.

``import rankframe as rf`` registers ``df.rank`` on polars DataFrames and LazyFrames.

Calls from several threads are safe. Start processes by ``spawn`` or ``forkserver``: polars hangs in
a process that was forked after polars had computed anything.
"""

import polars as pl

from rankframe import parts as parts
from rankframe import plot as plot
from rankframe._comparison.comparison import compare as compare
from rankframe._comparison.comparison import compare_values as compare_values
from rankframe._comparison.cutoff_curves import at_k as at_k
from rankframe._comparison.diagnosis import diagnose as diagnose
from rankframe._comparison.gate import gate as gate
from rankframe._comparison.many_systems import anova as anova
from rankframe._comparison.many_systems import best_systems as best_systems
from rankframe._comparison.many_systems import letters as letters
from rankframe._comparison.power import power as power
from rankframe._comparison.segments import compare_segments as compare_segments
from rankframe._comparison.summaries import summarize as summarize
from rankframe._comparison.summaries import summarize_values as summarize_values
from rankframe._comparison.system_agreement import agreement as agreement
from rankframe._comparison.system_agreement import discriminative_power as discriminative_power
from rankframe._evaluation.evaluation import evaluate as evaluate
from rankframe._evaluation.evaluation import per_user as per_user
from rankframe._evaluation.overlap import overlap as overlap
from rankframe._evaluation.overlap import rbo as rbo
from rankframe._evaluation.row_verbs import check as check
from rankframe._evaluation.row_verbs import listed as listed
from rankframe._evaluation.row_verbs import relevant as relevant
from rankframe._evaluation.row_verbs import shares as shares
from rankframe._evaluation.trackers import as_dict as as_dict
from rankframe._namespace import RankFrame as RankFrame
from rankframe._namespace import attach as _attach
from rankframe._report.report import Report as Report
from rankframe._report.report import report as report
from rankframe._report.results import ResultsTable as ResultsTable
from rankframe._report.results import table as table
from rankframe._request.labels import METRICS as _METRICS
from rankframe._request.labels import metric as metric
from rankframe._request.labels import register_metric as register_metric
from rankframe._request.registry import register_column as register_column
from rankframe._tables.fusion import fuse as fuse
from rankframe._tables.health import health as health
from rankframe._tables.matrices import from_matrix as from_matrix
from rankframe._tables.matrices import from_scores as from_scores
from rankframe._tables.run_dicts import from_runs as from_runs
from rankframe._tables.side_by_side import lists as lists
from rankframe._tables.verbs import from_dict as from_dict
from rankframe._tables.verbs import from_lists as from_lists
from rankframe._tables.verbs import judge as judge
from rankframe._tables.verbs import with_rank as with_rank
from rankframe.errors import RankingDataError as RankingDataError
from rankframe.metrics.core import *  # noqa: F403
from rankframe.metrics.diversity import *  # noqa: F403
from rankframe.metrics.exposure import *  # noqa: F403
from rankframe.metrics.lists import *  # noqa: F403
from rankframe.metrics.order import *  # noqa: F403
from rankframe.metrics.trec import *  # noqa: F403
from rankframe.metrics.unbiased import *  # noqa: F403
from rankframe.metrics.user_models import *  # noqa: F403
from rankframe.parts._meter import Meter as Meter
from rankframe.presets import LENSKIT as LENSKIT
from rankframe.presets import PRESETS as _PRESETS
from rankframe.presets import PYTREC_EVAL as PYTREC_EVAL
from rankframe.presets import RANX as RANX
from rankframe.presets import RECOMMENDERS as RECOMMENDERS
from rankframe.presets import RECTOOLS as RECTOOLS
from rankframe.presets import REPLAY as REPLAY
from rankframe.presets import SCIKIT_LEARN as SCIKIT_LEARN
from rankframe.presets import SPARK as SPARK
from rankframe.presets import TREC_EVAL as TREC_EVAL
from rankframe.presets import TREC_EVAL_9 as TREC_EVAL_9

__version__ = "0.1.0"

_own = ["RankFrame", "RankingDataError", "check", "compare", "diagnose", "evaluate", "fuse"]
_own += ["health", "lists"]
_own += [
    "from_dict",
    "from_lists",
    "from_matrix",
    "from_scores",
    "from_runs",
    "judge",
    "metric",
    "overlap",
    "parts",
    "per_user",
    "plot",
    "power",
    "rbo",
    "relevant",
]
_own += ["register_column", "register_metric", "summarize", "with_rank"]
_own += ["compare_segments", "compare_values", "summarize_values"]
_own += ["at_k", "listed", "shares"]
_own += ["Report", "report"]
_own += ["ResultsTable", "gate", "table"]
_own += ["Meter", "as_dict"]
_own += ["agreement", "anova", "best_systems", "discriminative_power", "letters"]
__all__ = sorted([*_own, *_PRESETS, *_METRICS])  # pyright: ignore[reportUnsupportedDunderAll]


def __dir__() -> list[str]:
    return __all__


_attach("rank", pl.DataFrame, pl.api.register_dataframe_namespace)
_attach("rank", pl.LazyFrame, pl.api.register_lazyframe_namespace)
