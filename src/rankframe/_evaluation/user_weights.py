"""Weights of users (``Weights``): a column of the truth or the run, how much each user counts.

``evaluate("auc", weights="impressions")`` is the mean Σ weight·value / Σ weight over users.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

import polars as pl

from rankframe._request import labels
from rankframe._tables import guards, rules
from rankframe._tables.judgment import Judged
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError

WEIGHT = f"{labels.INNER}weight"
_LEAST = f"{labels.INNER}least_weight"


class Weights(NamedTuple):
    """One weight per user, and where it comes from."""

    column: str
    table: str  # what errors call it
    on: list[str]  # the user, and the groups if the truth has them
    table_rows: pl.LazyFrame  # the rows of the table
    nullable: bool  # whether rows may lack it: those of a judged table come from two tables

    @property
    def rows(self) -> pl.LazyFrame:
        """One row per user."""
        return self._users().select(*self.on, WEIGHT)

    @property
    def flag(self) -> pl.LazyFrame:
        """Flag weights that are not one number ≥ 0 per user."""
        broken = [rule.any() for _, rule in self._rules()]
        differ = (pl.col(_LEAST) != pl.col(WEIGHT)).any()
        rule_flag = guards.flag(self.table_rows, pl.any_horizontal(broken))
        return guards.gathered_flags([rule_flag, guards.flag(self._users(), differ)])

    def raise_first_broken(self) -> None:
        """Raise for the first row that breaks a rule."""
        for text, broken in self._rules():
            self._raise_at(self.table_rows.filter(broken), text)
        differ = self._users().filter(pl.col(_LEAST) != pl.col(WEIGHT)).select(*self.on, _LEAST)
        several = self.table_rows.join(differ, on=self.on)
        text = "several weights of one user: give each user the same weight in all rows"
        self._raise_at(several.filter(pl.col(WEIGHT) != pl.col(_LEAST)).drop(_LEAST), text)

    def raise_if_any(self, lacking: pl.LazyFrame) -> None:
        """Raise if a user in the mean has no weight."""
        row = lacking.sort(pl.all()).head(1).collect()
        if not row.is_empty():
            msg = (
                f"{self.table}, column {self.column!r}: a user in the mean has no weight: "
                f"{_CURES[self.table]}. Offending row: {rules.format_row(row)}"
            )
            raise RankingDataError(msg)

    def _users(self) -> pl.LazyFrame:
        ends = pl.col(WEIGHT).max(), pl.col(WEIGHT).min().alias(_LEAST)
        return self.table_rows.group_by(self.on).agg(ends)

    def _rules(self) -> Iterator[tuple[str, pl.Expr]]:
        yield from weight_rules(pl.col(WEIGHT), nullable=self.nullable)

    def _raise_at(self, rows: pl.LazyFrame, text: str) -> None:
        row = rows.head(1).collect()
        if not row.is_empty():
            shown = rules.format_row(row.rename({WEIGHT: self.column}))
            msg = f"{self.table}, column {self.column!r}: {text}. Offending row: {shown}"
            raise RankingDataError(msg)


_CURES = {
    "run": "join the weights to the truth, or leave out users missing from the run: users='both'",
    "truth": "only the truth has weights: use users='truth', or join the weights to the run",
    "judged table": "fill in the column for every user",
}


def weights_of(prepared: Judged, column: str) -> Weights:
    """Read the weights of users."""
    table = table_with(prepared.tables.both, "weights", column)
    check_weight(table.name, column, table.schema[column])
    is_truth = table.name == "truth"
    on = [*(table.by if is_truth else ()), table.user]
    keys = [pl.col(name).cast(prepared.types[name]) for name in on]
    rows = table.frame.select(*keys, pl.col(column).cast(pl.Float64).alias(WEIGHT))
    judged = table.name == "judged table"
    return Weights(column, table.name, on, rows, nullable=judged)


def check_weight(table: str, column: str, dtype: pl.DataType) -> None:
    """Check that a column can be a weight."""
    if not (dtype.is_numeric() or dtype == pl.Null):
        msg = f"{table}, column {column!r}: {dtype} cannot be a weight: cast it to numbers"
        raise RankingDataError(msg)


def weight_rules(weight: pl.Expr, *, nullable: bool = False) -> Iterator[tuple[str, pl.Expr]]:
    """Yield each rule of a weight: the text of its error, and the rows that break it."""
    cure = "a weight is a finite number ≥ 0"
    if not nullable:
        yield f"null weight: {cure}", weight.is_null()
    yield f"NaN or infinite weight: {cure}", ~weight.is_finite()
    yield f"negative weight: {cure}", weight < 0


def is_unweighted(names: Sequence[str]) -> pl.Expr:
    """Whether a user has a value but no weight, per user."""
    defined = [pl.col(name).is_not_null() for name in names]
    return pl.any_horizontal(defined) & pl.col(WEIGHT).is_null()


def has_no_weight(names: Sequence[str]) -> list[pl.Expr]:
    """Whether a metric has values, but all of their weights are 0, per metric."""
    weights = [(name, pl.when(pl.col(name).is_not_null()).then(WEIGHT)) for name in names]
    return [(weight.max() == 0).fill_null(value=False).alias(name) for name, weight in weights]


def raise_no_weight(column: str, metric: str, group: pl.DataFrame | None = None) -> NoReturn:
    """Raise because the weights of all averaged users are 0."""
    where = "" if group is None else f". Offending row: {rules.format_row(group)}"
    msg = (
        f"column {column!r}: every user with a value of {metric!r} has the weight 0, so there is "
        f"no weighted mean: give at least one user a weight > 0{where}"
    )
    raise RankingDataError(msg)


def table_with(tables: Sequence[Table], option: str, column: str) -> Table:
    """Find the table that has the column of an option."""
    for table in tables:
        if column in table.schema:
            roles = (*table.row, table.rank, table.score, table.relevance)
            if column in roles:
                msg = f"{option}={column!r}: this column has another role in the {table.name}"
                raise ValueError(msg)
            return table
    names = " or ".join(f"the {table.name}" for table in tables)
    has = dict.fromkeys(name for table in tables for name in table.schema)
    columns = ", ".join(map(repr, has))
    msg = f"{option}={column!r}: {names} must have this column; the columns are {columns}"
    raise RankingDataError(msg)
