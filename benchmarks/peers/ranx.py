"""ranx: dicts too, turned into arrays, and loops compiled by numba."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["ranx==0.3.21", "polars==2.1.0"]
# ///

from ranx import Qrels, Run, evaluate

from benchmarks.peers.nested import Tables, nested
from benchmarks.peers.nested import read as read

DIFFERS: dict[str, str] = {}
NAMES = {
    "precision": "precision",
    "recall": "recall",
    "f1": "f1",
    "hit": "hit_rate",
    "ap": "map",
    "rr": "mrr",
    "dcg": "dcg",
    "ndcg": "ndcg",
    "ndcg(gain=exponential)": "ndcg_burges",
}


def metric(measure: str, k: int | None) -> str | None:
    """Name the measure as ranx does."""
    name = NAMES.get(measure)
    return f"{name}@{k}" if name and k else name


def convert(tables: Tables) -> tuple[Qrels, Run]:
    """Make ranx's own tables."""
    run, truth = tables
    return Qrels(nested(truth, "relevance")), Run(nested(run, "score"))


def compute(inputs: tuple[Qrels, Run], metrics: dict[str, str]) -> dict[str, float]:
    """Evaluate; one metric alone comes back as a bare number."""
    truth, run = inputs
    names = list(metrics.values())
    means = evaluate(truth, run, names, save_results_in_run=False)
    if len(names) == 1:
        means = {names[0]: means}
    return {label: float(means[name]) for label, name in metrics.items()}
