"""scikit-learn: nDCG and DCG of dense matrices, a row a user."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["scikit-learn==1.9.1", "polars==2.1.0"]
# ///

from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
from sklearn.metrics import dcg_score, ndcg_score

DIFFERS: dict[str, str] = {}
METRICS = {"dcg": dcg_score, "ndcg": ndcg_score}
Tables = tuple[pl.DataFrame, pl.DataFrame]
Matrices = tuple[np.ndarray, np.ndarray]


def read(run: Path, truth: Path) -> Tables:
    """Read polars frames."""
    return pl.read_parquet(run, columns=["user", "item", "score"]), pl.read_parquet(truth)


def metric(measure: str, k: int | None) -> Callable[[np.ndarray, np.ndarray], float] | None:
    """Set the cut-off; there are no ties to average over."""
    return partial(METRICS[measure], k=k, ignore_ties=True) if measure in METRICS else None


def convert(tables: Tables) -> Matrices:
    """Give each user a row: items of run and truth, those not retrieved with the lowest score."""
    run, truth = tables
    pairs = run.lazy().join(truth.lazy(), on=["user", "item"], how="full", coalesce=True)
    pairs = pairs.select(
        "relevance",
        "score",
        row=pl.col("user").rank("dense") - 1,
        column=pl.int_range(pl.len()).over("user"),
    ).collect()
    row, column = pairs["row"].to_numpy(), pairs["column"].to_numpy()
    grades = np.zeros((row.max() + 1, column.max() + 1))
    scores = np.full_like(grades, -1.0)
    grades[row, column] = pairs["relevance"].fill_null(0).to_numpy()
    scores[row, column] = pairs["score"].fill_null(-1.0).to_numpy()
    return grades, scores


def compute(
    inputs: Matrices, metrics: dict[str, Callable[[np.ndarray, np.ndarray], float]]
) -> dict[str, float]:
    """Compute one after the other."""
    return {label: float(value(*inputs)) for label, value in metrics.items()}
