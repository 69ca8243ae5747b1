"""RecTools beyond accuracy: pandas frames with columns of fixed names."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["rectools==0.19.0", "pyarrow==25.0.1"]
# ///

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from rectools import Columns
from rectools.metrics import (
    AvgRecPopularity,
    CatalogCoverage,
    IntraListDiversity,
    MeanInvUserFreq,
    PairwiseHammingDistanceCalculator,
    Serendipity,
    calc_metrics,
)

DIFFERS: dict[str, str] = {}
_FEATURES = "features"
METRICS: dict[str, Callable[[int, dict[str, Any]], Any]] = {
    "novelty": lambda k, _: MeanInvUserFreq(k),
    "popularity": lambda k, _: AvgRecPopularity(k),
    "serendipity": lambda k, _: Serendipity(k),
    "ild(of=genre, distance=hamming)": lambda k, tables: IntraListDiversity(
        k, PairwiseHammingDistanceCalculator(tables[_FEATURES])
    ),
    "coverage": lambda k, _: CatalogCoverage(k, normalize=True),
}


def read(run: Path, _other: Path, truth: Path, history: Path, items: Path) -> dict[str, Any]:
    """Read pandas frames with RecTools' names; the genres as columns of 0 and 1."""
    names = {"user": Columns.User, "item": Columns.Item, "rank": Columns.Rank}
    genres = pd.read_parquet(items, columns=["item", "genre"]).set_index("item")["genre"].explode()
    return {
        "run": pd.read_parquet(run, columns=["user", "item", "rank"]).rename(columns=names),
        "truth": pd.read_parquet(truth).rename(columns=names),
        "history": pd.read_parquet(history).rename(columns=names),
        _FEATURES: pd.crosstab(genres.index, genres).astype(float),
    }


def metric(measure: str, k: int | None) -> tuple[str, int] | None:
    """Name the metric; it is made where the tables are known."""
    return (measure, k) if measure in METRICS and k else None


def convert(tables: dict[str, Any]) -> dict[str, Any]:
    """Take the tables as they are."""
    return tables


def compute(tables: dict[str, Any], metrics: dict[str, tuple[str, int]]) -> dict[str, float]:
    """Compute all in one call."""
    made = {label: METRICS[name](k, tables) for label, (name, k) in metrics.items()}
    catalogue = tables[_FEATURES].index.to_numpy()
    means = calc_metrics(made, tables["run"], tables["truth"], tables["history"], catalogue)
    return {label: float(mean) for label, mean in means.items()}
