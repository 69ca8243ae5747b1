"""Clusters (``Clusters``): a column of the truth or the run, whose values depend on each other.

``compare("rr", cluster="customer")`` treats the sessions of one customer as one observation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import user_weights
from rankframe._request import labels
from rankframe._tables import guards, rules
from rankframe._tables.judgment import Judged
from rankframe.errors import RankingDataError

CLUSTER = f"{labels.INNER}cluster"

_SEVERAL = "several clusters of one user: give each user the same cluster in all rows"


class Clusters(NamedTuple):
    """One cluster per user, and where it comes from."""

    column: str
    table: str  # what errors call it
    on: list[str]  # the user, and the groups if the truth has them
    table_rows: pl.LazyFrame  # the rows of the table
    nullable: bool  # whether rows may lack it: those of a judged table come from two tables

    @property
    def rows(self) -> pl.LazyFrame:
        """One row per user."""
        return self._pairs().unique(self.on, keep="any")

    @property
    def flag(self) -> pl.LazyFrame:
        """Flag clusters that are not one per user."""
        several = self._pairs().group_by(self.on).len().select(pl.col("len") > 1)
        lacking = self.table_rows.select(self._lacks().alias("len"))
        return guards.flag(pl.concat([several, lacking]), pl.col("len").any())

    def raise_first_broken(self) -> None:
        """Raise for the first row that breaks a rule."""
        self._raise_at(self.table_rows.filter(self._lacks()), f"null cluster: {_NULL_CURE}")
        first = self._pairs().group_by(self.on).agg(pl.len(), pl.col(CLUSTER).min().alias("first"))
        several = self.table_rows.join(first.filter(pl.col("len") > 1).drop("len"), on=self.on)
        self._raise_at(several.filter(pl.col(CLUSTER) != pl.col("first")).drop("first"), _SEVERAL)

    def raise_if_any(self, lacking: pl.LazyFrame) -> None:
        """Raise if a user with a value has no cluster."""
        row = lacking.sort(pl.all()).head(1).collect()
        if not row.is_empty():
            msg = (
                f"{self.table}, column {self.column!r}: a user with a value has no cluster: "
                f"{_CURES[self.table]}. Offending row: {rules.format_row(row)}"
            )
            raise RankingDataError(msg)

    def _pairs(self) -> pl.LazyFrame:
        """Return each pair of user and cluster once."""
        return self.table_rows.drop_nulls(CLUSTER).unique()

    def _lacks(self) -> pl.Expr:
        return pl.lit(value=False) if self.nullable else pl.col(CLUSTER).is_null()

    def _raise_at(self, rows: pl.LazyFrame, text: str) -> None:
        row = rows.head(1).collect()
        if not row.is_empty():
            shown = rules.format_row(row.rename({CLUSTER: self.column}))
            msg = f"{self.table}, column {self.column!r}: {text}. Offending row: {shown}"
            raise RankingDataError(msg)


_NULL_CURE = "fill it in; a user who depends on no other user is a cluster of one"

_CURES = {
    "run": "join the clusters to the truth, or leave out users missing from the run: users='both'",
    "truth": "only the truth has clusters: use users='truth', or join the clusters to the run",
    "judged table": "fill in the column for every user",
}


def clusters_of(prepared: Judged, column: str) -> Clusters:
    """Read the clusters of users."""
    table = user_weights.table_with(prepared.tables.both, "cluster", column)
    is_truth = table.name == "truth"
    on = [*(table.by if is_truth else ()), table.user]
    keys = [pl.col(name).cast(prepared.types[name]) for name in on]
    cluster = as_cluster(table.name, column, table.schema[column])
    nullable = table.name == "judged table"
    return Clusters(column, table.name, on, table.frame.select(*keys, cluster), nullable=nullable)


def as_cluster(table: str, column: str, dtype: pl.DataType) -> pl.Expr:
    """Check that a column can name clusters, and read it; NaN is null."""
    if dtype.is_nested() or dtype.is_object():
        msg = f"{table}, column {column!r}: {dtype} cannot be a cluster: use text or numbers"
        raise RankingDataError(msg)
    cluster = pl.col(column)
    return (cluster.fill_nan(None) if dtype.is_float() else cluster).alias(CLUSTER)


def cluster_rules(table: str, column: str, dtype: pl.DataType) -> Iterator[tuple[str, pl.Expr]]:
    """Yield each rule of a cluster: the text of its error, and the rows that break it."""
    yield f"null cluster: {_NULL_CURE}", as_cluster(table, column, dtype).is_null()


def has_no_cluster(names: Sequence[str]) -> pl.Expr:
    """Whether a user has a value but no cluster, per user."""
    defined = [pl.col(name).is_not_null() for name in names]
    return pl.any_horizontal(defined) & pl.col(CLUSTER).is_null()


# ------------------------------------------------------------------ what the statistics need


def check_clusters(rows: pl.DataFrame, column: str, names: Sequence[str]) -> None:
    """Check that users with values are in at least two clusters."""
    defined = [pl.col(name).is_not_null() for name in names]
    clusters = rows.filter(pl.any_horizontal(defined))[CLUSTER].drop_nulls().unique()
    if len(clusters) == 1:
        msg = (
            f"column {column!r}: only one cluster, {clusters.item()!r}: clusters are the "
            "observations, and an interval needs two: leave out cluster=, or name the column that "
            "groups users"
        )
        raise RankingDataError(msg)


def check_one_cluster(rows: pl.DataFrame, keys: Sequence[str], column: str) -> None:
    """Check that a user is in the same cluster for all systems and segments."""
    pairs = rows.select(*keys, CLUSTER).drop_nulls().unique().sort(pl.all())
    twice = pairs.filter(pl.struct(keys).is_duplicated()).rename({CLUSTER: column})
    if not twice.is_empty():
        shown = rules.format_row(twice[1:2])
        msg = f"column {column!r}: {_SEVERAL}. Offending row: {shown}"
        raise RankingDataError(msg)
