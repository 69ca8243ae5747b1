"""rankframe itself."""

# /// script
# requires-python = ">=3.11"
# dependencies = ["rankframe", "polars==2.1.0"]
# [tool.uv.sources]
# rankframe = { path = "../..", editable = true }
# ///

from pathlib import Path

import polars as pl

import rankframe as rf

DIFFERS: dict[str, str] = {}
Tables = tuple[pl.DataFrame, pl.DataFrame]


def read(run: Path, truth: Path) -> Tables:
    """Read polars frames."""
    return pl.read_parquet(run, columns=["user", "item", "rank"]), pl.read_parquet(truth)


def metric(measure: str, k: int | None) -> str:
    """Take the label."""
    return measure if k is None else f"{measure}@{k}"


def convert(tables: Tables) -> Tables:
    """Take the tables as they are."""
    return tables


def compute(inputs: Tables, metrics: dict[str, str]) -> dict[str, float]:
    """Evaluate."""
    run, truth = inputs
    return rf.evaluate(run, *metrics.values(), truth=truth).drop("users").row(0, named=True)
