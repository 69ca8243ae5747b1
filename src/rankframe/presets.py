"""Presets: the conventions of other tools, as ``preset=`` of every verb takes them.

``run.rank.evaluate("map@10", "ndcg@10", truth=truth, preset="replay")`` gives RePlay's numbers. A
preset sets the formulas, not the order of ties: rank a run with tied scores beforehand.
"""

from collections.abc import Mapping
from typing import Any, Literal, TypeAlias, TypedDict

__all__ = ["PRESETS", "Preset", "PresetName"]

Users: TypeAlias = Literal["truth", "judged", "both", "run", "all"]
Defaults: TypeAlias = Mapping[str, Mapping[str, Any]]
PresetName: TypeAlias = Literal[
    "trec_eval",
    "trec_eval_9",
    "pytrec_eval",
    "ranx",
    "rectools",
    "replay",
    "spark",
    "lenskit",
    "recommenders",
    "scikit_learn",
    "lightgbm",
    "xgboost",
    "catboost",
    "elasticsearch",
    "sentence_transformers",
    "implicit",
    "surprise",
    "torchmetrics",
    "beir",
    "mteb",
]


class Preset(TypedDict, total=False):
    """The conventions of another tool, or your own."""

    users: Users | None
    """Which users count, as ``users=``."""
    undefined: float | None
    """The value where a metric is undefined, as ``undefined=``."""
    defaults: Defaults
    """Parameters for labels that leave them out, for example ``{"map": {"divide_by":
    "attainable"}}``, by any name of the metric.
    """
    single_precision: bool
    """Round scores to 32-bit floats before ranking, which ties some of them (trec_eval 9)."""


_BINARY = {"gain": "binary"}
_ATTAINABLE = {"divide_by": "attainable"}
_RETURNED = {"divide_by": "returned"}
_TREC_EVAL_9: Preset = {
    "users": "judged",
    "undefined": 0.0,
    "defaults": {
        "interpolated_precision": {"points": "floor"},
        "eleven_point_precision": {"points": "floor"},
    },
    "single_precision": True,
}
#: pytrec_eval wraps trec_eval 9, of users of both tables.
_PYTREC_EVAL: Preset = {**_TREC_EVAL_9, "users": "both"}
#: Other items than the returned ones do not exist.
_RETURNED_ITEMS: Preset = {
    "users": "run",
    "undefined": 0.0,
    "defaults": {"ap": {"divide_by": "hits"}, "ndcg": {"ideal": "returned"}},
}
_BOOSTED: Preset = {
    "users": "judged",
    "undefined": 1.0,
    "defaults": {"ap@k": _ATTAINABLE, "ndcg": {"gain": "exponential"}},
}

#: All of them, by name.
PRESETS: dict[PresetName, Preset] = {
    # ``trec_eval -c`` of version 10: every judged user counts, and what is undefined is 0. (Without
    # ``-c`` trec_eval leaves out users that are absent from the run: ``users="both"``.)
    "trec_eval": {
        "users": "judged",
        "undefined": 0.0,
        "defaults": {
            "rbp": {"p": 0.9, "gain": "user"},
            "rbp_residual": {"p": 0.9, "counts": "unjudged"},
        },
    },
    # ``trec_eval -c`` of version 9, and ir_measures (whose ``RR@k`` and ``Judged@k`` order equal
    # scores the other way round): scores are 32-bit floats, and recall levels are reached by
    # ⌊recall·R + 0.9⌋ hits.
    "trec_eval_9": _TREC_EVAL_9,
    "pytrec_eval": _PYTREC_EVAL,
    # ranx with ``make_comparable=True``: grades count in RBP as they are. (``ndcg_burges`` is
    # ``ndcg(gain=exponential)``.)
    "ranx": {
        "users": "judged",
        "undefined": 0.0,
        "defaults": {"rbp": {"gain": "graded", "max_grade": 1.0}},
    },
    # RecTools: nDCG is binary, and its ideal is k hits for every user. (``divide_by_achievable`` is
    # ``ndcg(ideal=truth)@k``, ``r_precision`` is ``precision(divide_by=attainable)@k``, MAP's
    # ``divide_by_k`` is ``map(divide_by=k)@k``.)
    "rectools": {
        "users": "truth",
        "defaults": {"ndcg": {**_BINARY, "ideal": "perfect"}},
    },
    # RePlay: MAP divides by min(k, R), and nDCG is binary.
    "replay": {
        "users": "truth",
        "undefined": 0.0,
        "defaults": {"ap@k": _ATTAINABLE, "ndcg": _BINARY, "auc": {"only_hits": "one"}},
    },
    # Spark's RankingMetrics of an inner join of lists and truth: ``meanAveragePrecisionAt(k)``
    # divides by min(k, R), ``meanAveragePrecision`` by R, and nDCG is binary.
    "spark": {
        "users": "both",
        "undefined": 0.0,
        "defaults": {"ap@k": _ATTAINABLE, "ndcg": _BINARY},
    },
    # LensKit: divides by what was returned or attainable, and discounts from rank 3 on. (Its
    # ``gain=`` is ``ndcg(gain=linear)@k``, RBP's ``normalize`` is ``rbp(divide_by=attainable)@k``.)
    "lenskit": {
        "users": "both",
        "defaults": {
            "precision": _RETURNED,
            "recall@k": _ATTAINABLE,
            "ap": _RETURNED,
            "dcg": {**_BINARY, "base": 2},
            "ndcg": {**_BINARY, "base": 2},
            "rbp": {"p": 0.85},
        },
    },
    # Recommenders: ``map@k`` is its ``map_at_k``; its ``map`` is ``map(divide_by=relevant)@k``. Its
    # nDCG is a mean over ``users="truth"``, unlike the rest.
    "recommenders": {
        "users": "both",
        "defaults": {"ap@k": _ATTAINABLE, "ndcg": _BINARY},
    },
    # scikit-learn, with a matrix of the returned items.
    "scikit_learn": _RETURNED_ITEMS,
    # LightGBM's ``ndcg`` and ``map``, for a judged table of query, label and score: a group without
    # a positive label scores 1. Equal scores keep the order of rows.
    "lightgbm": _BOOSTED,
    # XGBoost's ``ndcg`` and ``map``. (With ``ndcg_exp_gain=False``, it is ``ndcg(gain=linear)@k``.)
    "xgboost": _BOOSTED,
    # CatBoost's ``NDCG:top=k`` and ``MAP:top=k``. (``type=Exp`` is ``ndcg(gain=exponential)@k``,
    # ``denominator=Position`` is ``ndcg(discount=rank)@k``. A group without a positive label scores
    # 0 in MAP: ``undefined=0.0``.)
    "catboost": {
        "users": "judged",
        "undefined": 1.0,
        "defaults": {"ap@k": _ATTAINABLE},
    },
    # Elasticsearch's ``_rank_eval``, as its code was in July 2026: precision divides by the number
    # of hits returned, and nDCG's ideal list ends there, so that a short list can score 1. (Its
    # pull request 154362 ends the ideal at k instead: ``ndcg(ideal=truth)@k``.)
    "elasticsearch": {
        "users": "judged",
        "undefined": 0.0,
        "defaults": {
            "precision": _RETURNED,
            "dcg": {"gain": "exponential"},
            "ndcg": {"gain": "exponential", "ideal": "same_length"},
        },
    },
    # ``InformationRetrievalEvaluator`` of sentence-transformers, version 5: MAP divides by min(k,
    # R), and nDCG is binary. (``cosine_accuracy@k`` is ``hit@k``.)
    "sentence_transformers": {
        "users": "truth",
        "defaults": {"ap@k": _ATTAINABLE, "ndcg": _BINARY},
    },
    # implicit's ``ranking_metrics_at_k``: MAP divides by min(k, R), and nDCG is binary. (Its
    # precision is pooled, Σ hits / Σ min(k, R): ``average="pooled"`` for this metric.)
    "implicit": {
        "users": "truth",
        "defaults": {"precision": _ATTAINABLE, "ap@k": _ATTAINABLE, "ndcg": _BINARY},
    },
    # ``precision_recall_at_k`` of Surprise's FAQ: the run is the predictions from the threshold on,
    # the truth all of them, ``relevant_at`` the threshold.
    "surprise": {
        "users": "judged",
        "undefined": 0.0,
        "defaults": {"precision": _RETURNED},
    },
    # torchmetrics' ``retrieval``, for one table of scores and targets: nDCG averages over ties.
    "torchmetrics": _RETURNED_ITEMS,
    # BEIR's ``evaluate``, and the labels of MTEB's retrieval tasks, call pytrec_eval. (BEIR's own
    # MRR, R_cap and Accuracy divide by all judged queries: ``users="judged"``.)
    "beir": _PYTREC_EVAL,
    "mteb": _PYTREC_EVAL,
}


def __dir__() -> list[str]:
    return sorted(__all__)
