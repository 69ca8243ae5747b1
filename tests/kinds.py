"""Frames of each kind, and back to Polars."""

import polars as pl


def given(frame, kind):
    """Bring a frame to a kind: eager, lazy or pandas."""
    if kind == "pandas":
        return frame.to_pandas()
    return frame.lazy() if kind == "lazy" else frame


def eager(frame):
    """Bring a frame of any kind to an eager one of Polars."""
    return pl.DataFrame(frame.collect() if isinstance(frame, pl.LazyFrame) else frame)
