"""What pytrec_eval and ranx take: dicts in a dict, with text for ids."""

from pathlib import Path

import polars as pl

Tables = tuple[pl.DataFrame, pl.DataFrame]
Nested = dict[str, dict[str, float]]


def read(run: Path, truth: Path) -> Tables:
    """Read polars frames."""
    return pl.read_parquet(run, columns=["user", "item", "score"]), pl.read_parquet(truth)


def nested(frame: pl.DataFrame, value: str) -> Nested:
    """Nest rows as {user: {item: value}}; the quickest way found."""
    texts = frame.with_columns(pl.col("user", "item").cast(pl.String))
    lists = texts.group_by("user", maintain_order=True).agg("item", value)
    return {
        user: dict(zip(items, values, strict=True)) for user, items, values in lists.iter_rows()
    }
