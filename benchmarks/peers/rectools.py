"""RecTools: pandas frames with columns of fixed names."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["rectools==0.19.0", "pyarrow==25.0.1"]
# ///

from collections.abc import Callable
from pathlib import Path

import pandas as pd
from rectools import Columns
from rectools.metrics import MAP, MRR, NDCG, F1Beta, HitRate, Precision, Recall, calc_metrics
from rectools.metrics.base import MetricAtK

#: A list is never longer.
WHOLE = 100
#: The ideal is binary.
DIFFERS = {"ndcg": "ndcg(gain=1:1;2:1;3:1)"}
METRICS: dict[str, Callable[[int], MetricAtK]] = {
    "precision": Precision,
    "precision(divide_by=attainable)": lambda k: Precision(k, r_precision=True),
    "recall": Recall,
    "f1": F1Beta,
    "hit": HitRate,
    "ap": MAP,
    "rr": MRR,
    "ndcg": lambda k: NDCG(k, divide_by_achievable=True),
}
Tables = tuple[pd.DataFrame, pd.DataFrame]


def read(run: Path, truth: Path) -> Tables:
    """Read pandas frames with RecTools' names."""
    names = {"user": Columns.User, "item": Columns.Item, "rank": Columns.Rank}
    return (
        pd.read_parquet(run, columns=["user", "item", "rank"]).rename(columns=names),
        pd.read_parquet(truth, columns=["user", "item"]).rename(columns=names),
    )


def metric(measure: str, k: int | None) -> MetricAtK | None:
    """Make the metric object."""
    return METRICS[measure](k or WHOLE) if measure in METRICS else None


def convert(tables: Tables) -> Tables:
    """Take the tables as they are."""
    return tables


def compute(inputs: Tables, metrics: dict[str, MetricAtK]) -> dict[str, float]:
    """Compute all in one call, which joins the tables once."""
    run, truth = inputs
    return {label: float(x) for label, x in calc_metrics(metrics, run, truth).items()}
