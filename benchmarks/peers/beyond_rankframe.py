"""rankframe beyond accuracy."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["rankframe", "polars==2.1.0", "numpy", "scipy", "tqdm"]
# [tool.uv.sources]
# rankframe = { path = "../..", editable = true }
# ///

from pathlib import Path

import polars as pl

import rankframe as rf

DIFFERS: dict[str, str] = {}
Tables = dict[str, pl.DataFrame]


def read(run: Path, other: Path, truth: Path, history: Path, items: Path) -> Tables:
    """Read polars frames."""
    columns = ["user", "item", "rank"]
    return {
        "run": pl.read_parquet(run, columns=columns),
        "other": pl.read_parquet(other, columns=columns),
        "truth": pl.read_parquet(truth),
        "history": pl.read_parquet(history),
        "items": pl.read_parquet(items),
    }


def metric(measure: str, k: int | None) -> str:
    """Take the label."""
    return f"{measure}@{k}"


def convert(tables: Tables) -> Tables:
    """Take the tables as they are."""
    return tables


def compute(tables: Tables, metrics: dict[str, str]) -> dict[str, float]:
    """Evaluate with the tables that are read."""
    labels = list(metrics.values())
    read = {"items", "history"}
    read |= {"truth"} if any(label.startswith("serendipity") for label in labels) else set()
    row = rf.evaluate(tables["run"], *labels, **{name: tables[name] for name in read})
    return row.drop("users").row(0, named=True)
