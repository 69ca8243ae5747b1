"""RePlay, on polars frames; it needs polars 1."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["replay-rec==0.22.0", "polars==1.44.2"]
# ///

from collections import defaultdict
from pathlib import Path

import polars as pl
from replay.metrics import MAP, MRR, NDCG, HitRate, OfflineMetrics, Precision, Recall
from replay.metrics.base_metric import Metric

#: A list is never longer.
WHOLE = 100
#: The ideal is binary, and AP divides by min(k, R).
DIFFERS = {"ndcg": "ndcg(gain=1:1;2:1;3:1)", "ap": "ap(divide_by=attainable)"}
METRICS = {
    "precision": Precision,
    "recall": Recall,
    "hit": HitRate,
    "ap": MAP,
    "rr": MRR,
    "ndcg": NDCG,
}
Tables = tuple[pl.DataFrame, pl.DataFrame]


def read(run: Path, truth: Path) -> Tables:
    """Read polars frames."""
    return (
        pl.read_parquet(run, columns=["user", "item", "score"]),
        pl.read_parquet(truth, columns=["user", "item"]),
    )


def metric(measure: str, k: int | None) -> tuple[type[Metric], int] | None:
    """Name class and cut-off; one object takes all cut-offs of a class."""
    return (METRICS[measure], k or WHOLE) if measure in METRICS else None


def convert(tables: Tables) -> Tables:
    """Take the tables as they are."""
    return tables


def compute(inputs: Tables, metrics: dict[str, tuple[type[Metric], int]]) -> dict[str, float]:
    """Compute all in one call."""
    cuts: dict[type[Metric], list[int]] = defaultdict(list)
    for kind, k in metrics.values():
        cuts[kind].append(k)
    objects = [kind(topk=ks) for kind, ks in cuts.items()]
    columns = {"query_column": "user", "item_column": "item", "rating_column": "score"}
    means = OfflineMetrics(objects, **columns)(*inputs)
    return {label: means[f"{kind.__name__}@{k}"] for label, (kind, k) in metrics.items()}
