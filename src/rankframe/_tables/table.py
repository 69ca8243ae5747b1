"""The record of a table that came in: its frame, and the columns that play a role."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import polars as pl

from rankframe._request.question import Totals


class Table(NamedTuple):
    """A table from the caller and the names of the columns that play a role in it."""

    name: str
    frame: pl.LazyFrame
    schema: pl.Schema
    by: list[str]
    user: str
    item: str
    rank: str | None
    score: str | None
    relevance: str | None
    # columns of by that only the truth has; they are joined to the run by user
    truth_groups: Sequence[str] = ()
    subtopic: str | None = None
    rows: pl.DataFrame | None = None  # of a table in memory, as passed
    totals: Totals | None = None  # set for a part, which may break rules on whole tables
    # of a truth without a relevance: the columns that may be grades under another name
    ungraded: pl.LazyFrame | None = None

    @property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return [*self.by, self.user]

    @property
    def tied(self) -> bool:
        """Whether equal scores form blocks: rank is the first position, ``tied`` the size."""
        return self.rank is not None and "tied" in self.schema

    @property
    def row(self) -> list[str]:
        """The columns that identify a row: the list, the item and, of a judgment, the subtopic."""
        return [*self.keys, self.item, *([] if self.subtopic is None else [self.subtopic])]


class Input(NamedTuple):
    """A table besides run and truth: its rows, and the columns of ``by`` that it has."""

    frame: pl.LazyFrame
    schema: pl.Schema
    by: list[str]
