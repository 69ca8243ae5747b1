"""The tables that came in: their frames, and the columns that play a role (``Tables``)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

import polars as pl

from rankframe._request.keywords import Settings
from rankframe._request.question import Totals
from rankframe._request.types import Types
from rankframe.errors import option
from rankframe.presets import Users

#: Who counts: a choice of the caller, or "rows", what the rows of a judged table decide.
Policy: TypeAlias = Users | Literal["rows"]
#: What errors call tables of judgments; the second corrects the first.
TRUTHS = TRUTH, HUMAN = "truth", "human labels"


@dataclass(frozen=True, eq=False, repr=False)
class Table:
    """A table from the caller and the names of the columns that play a role in it."""

    name: str
    frame: pl.LazyFrame
    schema: pl.Schema
    by: list[str]
    user: str
    item: str
    rank: str | None = None
    score: str | None = None
    relevance: str | None = None
    # columns of by that only the truth has; they are joined to the run by user
    truth_groups: Sequence[str] = ()
    subtopic: str | None = None
    rows: pl.DataFrame | None = None  # of a table in memory, as passed
    totals: Totals | None = None  # set if this is a part; rules on whole tables are then off
    # of a truth without a relevance: the columns that may be grades under another name
    ungraded: pl.LazyFrame | None = None
    passed: pl.LazyFrame | None = None  # the rows that came, if ``frame`` has each item once
    model: str | None = None  # the column of ``by`` that names the systems

    @property
    def segments(self) -> list[str]:
        """The columns of ``by`` beside that of the systems."""
        return [name for name in self.by if name != self.model]

    @cached_property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return [*self.by, self.user]

    @cached_property
    def ids(self) -> list[str]:
        """The columns whose types are common to all tables: the list and the item."""
        return list(dict.fromkeys([*self.keys, self.item]))

    @cached_property
    def placing(self) -> str:
        """The column whose null means that an item was not retrieved."""
        return next(name for name in (self.rank, self.score, self.item) if name is not None)

    @property
    def rows_passed(self) -> pl.LazyFrame:
        """The rows that came, with all those of an item."""
        return self.frame if self.passed is None else self.passed

    @cached_property
    def tied(self) -> bool:
        """Whether equal scores form blocks: rank is the first position, ``tied`` the size."""
        return self.rank is not None and "tied" in self.schema

    @cached_property
    def row(self) -> list[str]:
        """The columns that identify a row: the list, the item and, of a judgment, the subtopic."""
        return [*self.keys, self.item, *([] if self.subtopic is None else [self.subtopic])]


@dataclass(frozen=True, eq=False, repr=False)
class Tables:
    """The tables of a call, with the types that their ids have in common."""

    run: Table  # or a judged table
    truth: Table | None
    beside: Mapping[str, Table]  # those passed as items=, history= and exclude=
    types: Types  # of the ids and of the relevance
    settings: Settings
    reads: Collection[str] | None = None  # by metrics, if nothing else is returned
    from_judged: bool = False  # whether the caller passed a judged table

    @cached_property
    def both(self) -> list[Table]:
        """Run and truth, or the only table."""
        return [self.run] if self.truth is None else [self.run, self.truth]

    @cached_property
    def lacking(self) -> list[str]:
        """Columns of ``by`` that only the run has; the whole truth judges each of their groups."""
        return [name for name in self.run.by if name not in self.both[-1].by]

    @cached_property
    def exclusions(self) -> list[str]:
        """Names of the tables whose rows are removed from the lists; a lazy ``judge`` has one."""
        return [name for name, table in self.beside.items() if table.name == option("exclude")]

    @cached_property
    def has_truth(self) -> bool:
        """Whether anything is judged; metrics of lists alone need only a run."""
        return self.truth is not None or self.run.relevance is not None

    @cached_property
    def has_subtopics(self) -> bool:
        """Whether an item may have several rows."""
        return self.both[-1].subtopic is not None

    @cached_property
    def tied(self) -> bool:
        """Whether the lists have blocks of ties, so that metrics are expectations."""
        return self.run.tied

    @cached_property
    def users(self) -> Policy:
        """Which users are averaged."""
        if self.settings.users is not None:
            return self.settings.users
        if not self.has_truth:
            return "run"
        return "rows" if self.from_judged else "truth"
