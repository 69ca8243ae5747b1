"""The types of frames that a call takes and returns."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypeAlias, TypeVar

import polars as pl

if TYPE_CHECKING:
    import pandas as pd

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pd.DataFrame"

#: One column of groups, or several.
By: TypeAlias = str | Sequence[str]

#: The types of columns by their names.
Types: TypeAlias = Mapping[str, pl.DataType]

FrameT = TypeVar("FrameT", bound="pl.DataFrame | pl.LazyFrame | pd.DataFrame")
