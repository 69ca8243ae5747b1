"""Ranking metrics as polars expressions.

``import rankframe as rf`` registers ``df.rank`` on polars DataFrames and LazyFrames.
"""

import polars as pl

from rankframe.checks import check
from rankframe.errors import RankingDataError
from rankframe.evaluate import TREC_EVAL, evaluate, per_user
from rankframe.labels import metric
from rankframe.metrics import (
    attainable_precision_at,
    attainable_recall_at,
    average_precision,
    cg_at,
    dcg_at,
    e_at,
    f_at,
    hit_at,
    ndcg_at,
    precision_at,
    r_precision,
    recall_at,
    reciprocal_rank,
)
from rankframe.namespace import RankFrame, attach
from rankframe.table import from_dict, from_lists, judge, relevant, with_rank

__all__ = [
    "TREC_EVAL",
    "RankFrame",
    "RankingDataError",
    "attainable_precision_at",
    "attainable_recall_at",
    "average_precision",
    "cg_at",
    "check",
    "dcg_at",
    "e_at",
    "evaluate",
    "f_at",
    "from_dict",
    "from_lists",
    "hit_at",
    "judge",
    "metric",
    "ndcg_at",
    "per_user",
    "precision_at",
    "r_precision",
    "recall_at",
    "reciprocal_rank",
    "relevant",
    "with_rank",
]

attach("rank", pl.DataFrame, pl.api.register_dataframe_namespace)
attach("rank", pl.LazyFrame, pl.api.register_lazyframe_namespace)
