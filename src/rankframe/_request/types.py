"""The types of frames that a call takes and returns."""

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, TypeAlias

import polars as pl

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar  # its default needs Python 3.13

    FrameT = TypeVar(
        "FrameT", bound="pl.DataFrame | pl.LazyFrame | pd.DataFrame", default=pl.DataFrame
    )
else:
    from typing import TypeVar

    FrameT = TypeVar("FrameT", bound="pl.DataFrame | pl.LazyFrame | pd.DataFrame")

Frame: TypeAlias = "pl.DataFrame | pl.LazyFrame | pd.DataFrame"

#: A run, or runs by name: frames, ``{user: {item: score}}`` or ``{user: [items]}``.
Runs: TypeAlias = (
    FrameT | Mapping[str, FrameT] | Mapping[Any, Mapping[Any, Any]] | Mapping[Any, Sequence[Any]]
)

#: A frame, ``{user: {item: grade}}``, the relevant items per user, or a column of lists of them.
Truth: TypeAlias = (
    "Frame | Mapping[Any, Mapping[Any, Any] | Sequence[Any] | AbstractSet[Any]] | str"
)

#: One column of groups, or several.
By: TypeAlias = str | Sequence[str]

#: The types of columns by their names.
Types: TypeAlias = Mapping[str, pl.DataType]
