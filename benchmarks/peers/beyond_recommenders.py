"""Recommenders beyond accuracy, on pandas frames: its values alone."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["recommenders==1.2.1", "pyarrow==25.0.1"]
# ///

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from recommenders.evaluation.python_evaluation import (
    catalog_coverage,
    distributional_coverage,
    diversity,
)

DIFFERS: dict[str, str] = {}
NAMES = {"col_user": "user", "col_item": "item"}
#: A list is never longer than 10.
METRICS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "coverage": lambda tables: catalog_coverage(tables["train"], tables["run"], **NAMES),
    "entropy": lambda tables: distributional_coverage(tables["train"], tables["run"], **NAMES),
    "ild(of=vector)": lambda tables: diversity(
        tables["train"],
        tables["run"],
        item_feature_df=tables["vectors"],
        item_sim_measure="item_feature_vector",
        **NAMES,
    ),
}


def read(run: Path, _other: Path, _truth: Path, _history: Path, items: Path) -> dict[str, Any]:
    """Read pandas frames.

    Of the history only the items count here, and it may have no pair that is listed.
    """
    vectors = pd.read_parquet(items, columns=["item", "vector"])
    return {
        "run": pd.read_parquet(run, columns=["user", "item"]),
        "train": vectors[["item"]].assign(user=-1),
        "vectors": vectors.rename(columns={"vector": "features"}),
    }


def metric(measure: str, k: int | None) -> str | None:
    """Name the metric."""
    return measure if measure in METRICS and k else None


def convert(tables: dict[str, Any]) -> dict[str, Any]:
    """Take the tables as they are."""
    return tables


def compute(tables: dict[str, Any], metrics: dict[str, str]) -> dict[str, float]:
    """Compute one by one."""
    return {label: float(METRICS[name](tables)) for label, name in metrics.items()}
