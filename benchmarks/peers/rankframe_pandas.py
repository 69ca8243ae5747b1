"""rankframe on pandas frames, where RecTools lives."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["rankframe", "polars==2.1.0", "pandas", "pyarrow==25.0.1"]
# [tool.uv.sources]
# rankframe = { path = "../..", editable = true }
# ///

from pathlib import Path

import pandas as pd

import rankframe as rf
from benchmarks.peers.rankframe import DIFFERS, metric

__all__ = ["DIFFERS", "compute", "convert", "metric", "read"]

Tables = tuple[pd.DataFrame, pd.DataFrame]


def read(run: Path, truth: Path) -> Tables:
    """Read pandas frames."""
    return pd.read_parquet(run, columns=["user", "item", "rank"]), pd.read_parquet(truth)


def convert(tables: Tables) -> Tables:
    """Take the tables as they are."""
    return tables


def compute(inputs: Tables, metrics: dict[str, str]) -> dict[str, float]:
    """Evaluate: pandas frames in, a pandas frame out."""
    run, truth = inputs
    means = rf.evaluate(run, *metrics.values(), truth=truth)
    return {label: float(means[name].iloc[0]) for label, name in metrics.items()}
