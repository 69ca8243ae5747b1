"""The doors: any frame in as a LazyFrame, the same kind of frame out."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeGuard, TypeVar, cast

import polars as pl

from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pd.DataFrame"
FrameT = TypeVar("FrameT", bound="pl.DataFrame | pl.LazyFrame | pd.DataFrame")


def enter(frame: Frame, table: str) -> pl.LazyFrame:
    """Turn the caller's frame into a LazyFrame; ``table`` is what errors call it."""
    if isinstance(frame, pl.LazyFrame):
        return frame.clone()  # what we make keeps the plan, not the caller's object
    if isinstance(frame, pl.DataFrame):
        return frame.lazy()
    if _is_pandas(frame):
        return _from_pandas(frame, table).lazy()
    msg = (
        f"the {table} must be a polars DataFrame or LazyFrame or a pandas DataFrame, "
        f"not {type(frame).__name__}"
    )
    raise TypeError(msg)


def leave(
    result: pl.LazyFrame, like: FrameT, *, sort: Sequence[str] = (), same_rows: bool = False
) -> FrameT:
    """Give the result as the kind of frame that came in.

    An eager one is sorted by ``sort``; a pandas one with ``same_rows`` keeps its index.
    """
    if isinstance(like, pl.LazyFrame):
        return cast("FrameT", result)
    collected = (result.sort(sort, nulls_last=True) if sort else result).collect()
    if not _is_pandas(like):
        return cast("FrameT", collected)
    if not same_rows:
        return cast("FrameT", collected.to_pandas())
    labelled = collected.drop(_levels(like)).to_pandas()
    labelled.index = like.index
    return cast("FrameT", labelled)


def _is_pandas(frame: object) -> TypeGuard["pd.DataFrame"]:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(frame, pandas.DataFrame)


def _from_pandas(frame: "pd.DataFrame", table: str) -> pl.DataFrame:
    """Convert, with the named levels of the index as columns; NaN becomes null."""
    labels = [str(label) for label in frame.columns]
    for label in labels:
        if labels.count(label) > 1:
            msg = f"{table}, column {label!r}: two columns have this name"
            raise RankingDataError(msg)
    try:
        converted = pl.from_pandas(frame, include_index=bool(_levels(frame)))
    except Exception as error:
        for label in frame.columns:
            try:
                pl.from_pandas(frame[[label]])
            except Exception:  # noqa: BLE001  (whatever pandas or pyarrow says of this column)
                msg = f"{table}, column {str(label)!r}: its values are not of one type ({error})"
                raise RankingDataError(msg) from None
        raise
    # pandas has no type for "no value at all", and calls it object or float
    untyped = [name for name in labels if frame[name].dtype == object or frame.empty]
    return converted.with_columns(
        pl.col(name).cast(pl.Null) for name in untyped if converted[name].null_count() == len(frame)
    )


def _levels(frame: "pd.DataFrame") -> list[str]:
    """Name the index levels that serve as columns: all, if they have names of their own."""
    names = [str(name) for name in frame.index.names if name is not None]
    usable = len(names) == frame.index.nlevels and not set(names) & set(map(str, frame.columns))
    return names if usable else []
