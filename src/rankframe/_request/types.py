"""The types of frames that a call takes and returns."""

from typing import TYPE_CHECKING, TypeAlias, TypeVar

import polars as pl

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pd.DataFrame"

FrameT = TypeVar("FrameT", bound="pl.DataFrame | pl.LazyFrame | pd.DataFrame")
