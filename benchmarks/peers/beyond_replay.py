"""RePlay beyond accuracy, on polars frames; it needs polars 1."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["replay-rec==0.22.0", "polars==1.44.2"]
# ///

from pathlib import Path

import polars as pl
from replay.metrics import (
    CategoricalDiversity,
    Coverage,
    Novelty,
    OfflineMetrics,
    Surprisal,
)

DIFFERS: dict[str, str] = {}
METRICS = {
    "novelty(normalize=true, divide_by=k)": Surprisal,
    "unseen": Novelty,
    "coverage": Coverage,
    "categories(of=main)": CategoricalDiversity,
}
COLUMNS = {
    "query_column": "user",
    "item_column": "item",
    "category_column": "main",
    "rating_column": "score",
}
Metrics = dict[str, tuple[str, int]]


def read(run: Path, _: Path, truth: Path, history: Path, items: Path) -> list[pl.DataFrame]:
    """Read polars frames; the rows of the run have the category of their items."""
    columns = ["user", "item", "score"]
    categories = pl.read_parquet(items, columns=["item", "main"])
    listed = pl.read_parquet(run, columns=columns).join(categories, on="item")
    return [listed, pl.read_parquet(truth), pl.read_parquet(history)]


def metric(measure: str, k: int | None) -> tuple[str, int] | None:
    """Name the metric."""
    return (measure, k) if measure in METRICS and k else None


def convert(tables: list[pl.DataFrame]) -> list[pl.DataFrame]:
    """Take the tables as they are."""
    return tables


def compute(tables: list[pl.DataFrame], metrics: Metrics) -> dict[str, float]:
    """Compute all in one call."""
    run, truth, history = tables
    asked = {label: METRICS[name] for label, (name, _) in metrics.items()}
    objects = [asked[label](topk=k) for label, (_, k) in metrics.items()]
    # what is not asked for is not passed: it would be checked
    train = history if {*asked.values()} & {Surprisal, Novelty, Coverage} else None
    means = OfflineMetrics(objects, **COLUMNS)(run, truth, train)
    return {
        label: next(
            float(mean)
            for name, mean in means.items()
            if name.startswith(asked[label].__name__) and name.endswith(f"@{k}")
        )
        for label, (_, k) in metrics.items()
    }
