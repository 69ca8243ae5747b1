"""Ranking metrics as polars expressions.

``import rankframe as rf`` registers ``df.rank`` on polars DataFrames and LazyFrames.

Calls from several threads are safe. Start processes by ``spawn`` or ``forkserver``: polars hangs in
a process that was forked after polars had computed anything.
"""

import polars as pl

from rankframe import parts as parts
from rankframe import plot as plot
from rankframe._agreement import agreement as agreement
from rankframe._agreement import discriminative_power as discriminative_power
from rankframe._compare import compare as compare
from rankframe._compare import compare_values as compare_values
from rankframe._compare import diagnose as diagnose
from rankframe._cutoffs import at_k as at_k
from rankframe._evaluate import evaluate as evaluate
from rankframe._evaluate import per_user as per_user
from rankframe._fusion import fuse as fuse
from rankframe._gate import gate as gate
from rankframe._health import health as health
from rankframe._labels import METRICS as _METRICS
from rankframe._labels import metric as metric
from rankframe._labels import register_metric as register_metric
from rankframe._matrices import from_matrix as from_matrix
from rankframe._matrices import from_scores as from_scores
from rankframe._meter import Meter as Meter
from rankframe._namespace import RankFrame as RankFrame
from rankframe._namespace import attach as _attach
from rankframe._overlap import overlap as overlap
from rankframe._overlap import rbo as rbo
from rankframe._power import power as power
from rankframe._report import Report as Report
from rankframe._report import report as report
from rankframe._results import ResultsTable as ResultsTable
from rankframe._results import table as table
from rankframe._rows import check as check
from rankframe._rows import listed as listed
from rankframe._rows import shares as shares
from rankframe._runs import from_runs as from_runs
from rankframe._segments import compare_segments as compare_segments
from rankframe._side_by_side import lists as lists
from rankframe._summarize import summarize as summarize
from rankframe._summarize import summarize_values as summarize_values
from rankframe._systems import anova as anova
from rankframe._systems import best_systems as best_systems
from rankframe._systems import letters as letters
from rankframe._table import from_dict as from_dict
from rankframe._table import from_lists as from_lists
from rankframe._table import judge as judge
from rankframe._table import relevant as relevant
from rankframe._table import with_rank as with_rank
from rankframe._trackers import as_dict as as_dict
from rankframe._vocabulary import register_column as register_column
from rankframe.errors import RankingDataError as RankingDataError
from rankframe.metrics.core import *  # noqa: F403
from rankframe.metrics.diversity import *  # noqa: F403
from rankframe.metrics.exposure import *  # noqa: F403
from rankframe.metrics.lists import *  # noqa: F403
from rankframe.metrics.order import *  # noqa: F403
from rankframe.metrics.trec import *  # noqa: F403
from rankframe.metrics.unbiased import *  # noqa: F403
from rankframe.metrics.user_models import *  # noqa: F403
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
