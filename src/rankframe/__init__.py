"""Ranking metrics as polars expressions.

``import rankframe as rf`` registers ``df.rank`` on polars DataFrames and LazyFrames.
"""

import polars as pl

from rankframe.checks import check
from rankframe.errors import RankingDataError
from rankframe.evaluate import TREC_EVAL, TREC_EVAL_9, evaluate, per_user
from rankframe.labels import metric
from rankframe.metrics import (
    attainable_precision_at,
    attainable_recall_at,
    average_precision,
    binary_g_measure,
    bpref,
    cg_at,
    dcg_at,
    e_at,
    eleven_point_precision,
    f_at,
    g_measure,
    hit_at,
    inferred_average_precision,
    interpolated_precision,
    ndcg_at,
    ndcg_at_levels,
    ndcg_at_relevant,
    num_hits,
    num_nonrelevant,
    num_relevant,
    num_retrieved,
    precision_at,
    r_precision,
    rank_biased_precision,
    rank_biased_residual,
    recall_at,
    reciprocal_rank,
    set_average_precision,
    unjudged_at,
    utility,
    yaap,
)
from rankframe.namespace import RankFrame, attach
from rankframe.table import from_dict, from_lists, judge, relevant, with_rank

__all__ = [
    "TREC_EVAL",
    "TREC_EVAL_9",
    "RankFrame",
    "RankingDataError",
    "attainable_precision_at",
    "attainable_recall_at",
    "average_precision",
    "binary_g_measure",
    "bpref",
    "cg_at",
    "check",
    "dcg_at",
    "e_at",
    "eleven_point_precision",
    "evaluate",
    "f_at",
    "from_dict",
    "from_lists",
    "g_measure",
    "hit_at",
    "inferred_average_precision",
    "interpolated_precision",
    "judge",
    "metric",
    "ndcg_at",
    "ndcg_at_levels",
    "ndcg_at_relevant",
    "num_hits",
    "num_nonrelevant",
    "num_relevant",
    "num_retrieved",
    "per_user",
    "precision_at",
    "r_precision",
    "rank_biased_precision",
    "rank_biased_residual",
    "recall_at",
    "reciprocal_rank",
    "relevant",
    "set_average_precision",
    "unjudged_at",
    "utility",
    "with_rank",
    "yaap",
]

attach("rank", pl.DataFrame, pl.api.register_dataframe_namespace)
attach("rank", pl.LazyFrame, pl.api.register_lazyframe_namespace)
