"""pytrec_eval, in the fork that is kept up to date: trec_eval 9 on dicts."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["pytrec_eval-terrier==0.5.11", "polars==2.1.0"]
# ///

import numpy as np
import pytrec_eval

from benchmarks.peers.nested import Nested, Tables, nested
from benchmarks.peers.nested import read as read

DIFFERS: dict[str, str] = {}
NAMES = {
    "precision": ("P", None),
    "precision(divide_by=attainable)": ("relative_P", None),
    "recall": ("recall", "set_recall"),
    "hit": ("success", None),
    "ap": ("map_cut", "map"),
    "rr": (None, "recip_rank"),
    "ndcg": ("ndcg_cut", "ndcg"),
}


def metric(measure: str, k: int | None) -> str | None:
    """Name the measure as trec_eval does."""
    cut, whole = NAMES.get(measure, (None, None))
    if k is None:
        return whole
    return cut and f"{cut}_{k}"


def convert(tables: Tables) -> tuple[Nested, Nested]:
    """Nest both tables."""
    run, truth = tables
    return nested(run, "score"), nested(truth, "relevance")


def compute(inputs: tuple[Nested, Nested], metrics: dict[str, str]) -> dict[str, float]:
    """Evaluate, and take the means."""
    run, truth = inputs
    users = pytrec_eval.RelevanceEvaluator(truth, set(metrics.values())).evaluate(run).values()
    return {
        label: float(np.mean([user[name] for user in users])) for label, name in metrics.items()
    }
