"""Before the reduction: the rows of a scope, with the columns that metrics read and no others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import polars as pl

from rankframe._request import registry
from rankframe._request.registry import Column, Join, Reading, Scope
from rankframe._tables import rank_order
from rankframe._tables.judgment import Joined
from rankframe._vocabulary import terms


class Rows(NamedTuple):
    """The rows on which columns are derived, and what their derivation may need."""

    joined: Joined
    scope: Scope
    unjoined: pl.LazyFrame  # before the joins of a step: joining a plan with itself plans it twice
    condensed: pl.LazyFrame | None = None  # the lists without unjudged items, if these go
    numbered: Sequence[str] = ()  # the groups that a column of the rows numbers

    @property
    def lists(self) -> pl.LazyFrame:
        """The keys and ranks of the lists, cut and condensed."""
        if self.condensed is not None:
            return self.condensed
        return _cut(self.joined.placed, self.joined.tables.settings.depth)

    @property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return self.joined.keys

    @property
    def block(self) -> list[str]:
        """The columns that identify a block of ties."""
        return [*self.joined.keys, "rank"]

    @property
    def aspect(self) -> list[str]:
        """The columns that identify a subtopic; without subtopics, all items are of one."""
        return [*self.keys, "subtopic"] if self.scope == "subtopic" else self.keys


def rows_of_scope(joined: Joined, reading: Reading, *, missed: bool = False) -> pl.LazyFrame:
    """Return the rows that metrics reduce, with the columns that they read.

    With ``missed``, lists keep the rows of the
    truth that were not retrieved.

    Unread rows and joins are left out here: the optimizer cannot know that they are unread.
    """
    scope, condensed = reading.scope, None
    of_truth = scope in ("relevant", "judged")
    if joined.tables.settings.unjudged == "drop":
        items = _with_depth(joined.rows("listed"), joined, reading)
        frame = condensed = _condensed(items, joined.keys, tied=joined.tables.tied)
    else:
        frame = joined.rows(scope if of_truth else "listed", graded=not reading.counts_judged)
        frame = _with_depth(frame, joined, reading)
    rows = Rows(joined, scope, frame, condensed)
    if of_truth and condensed is None:
        rows = rows._replace(numbered=joined.numbered)
    absent = "ranks" if joined.tables.tied else "blocks"
    columns = {name: c for name, c in reading.columns.items() if c.in_ties != absent}
    if reading.scope == "listed":
        frame = _list_rows(frame, rows, reading, columns, missed=missed)
    else:
        frame = _truth_rows(frame, rows, columns)
    return frame.rename({"rank": "block"}) if joined.tables.tied else frame


def with_final_lists(joined: Joined) -> pl.LazyFrame:
    """Return the rows of lists and truth after ``depth`` and ``unjudged`` took items away."""
    settings = joined.tables.settings
    rows = _cut(joined.rows("listed"), settings.depth)
    if settings.unjudged != "drop":
        return rows
    return _condensed(rows, joined.keys, tied=joined.tables.tied)


def users_of_run(joined: Joined) -> pl.LazyFrame:
    """Return each user with a list, of which ``depth`` and ``unjudged`` may leave nothing."""
    return joined.placed.select(joined.keys).unique()


def emptied_lists(joined: Joined) -> pl.LazyFrame | None:
    """Return the users whose list is now empty; they keep a list, of no rows."""
    if not joined.tables.settings.cuts_lists:
        return None
    return users_of_run(joined).join(users_with_lists(joined), on=joined.keys, how="anti")


def users_with_lists(joined: Joined) -> pl.LazyFrame:
    """Return each user with a nonempty list once, with the groups."""
    settings = joined.tables.settings
    listed = terms.is_listed if settings.depth is None else terms.rank <= settings.depth
    rows = joined.placed.filter(listed)
    if settings.unjudged == "drop":
        rows = joined.rows("listed").filter(listed & terms.is_judged)
    return rank_order.distinct(rows, joined.keys)


# ------------------------------------------------------------------ deriving what is read


def _truth_rows(items: pl.LazyFrame, rows: Rows, columns: Mapping[str, Column]) -> pl.LazyFrame:
    """Return the relevant or judged rows, or those of subtopics, with their columns."""
    if rows.scope == "subtopic":
        items = _split(rows.joined, items)
    over_judged = {n: c for n, c in columns.items() if "judged" in (c.scope, c.derived_over)}
    frame = items.filter(terms.relevance.is_not_null() if over_judged else terms.is_graded)
    joined = rows.joined
    relevant = _expression("relevant", rows).alias("relevant")
    if over_judged:
        frame = _with_columns(frame.with_columns(relevant), rows, over_judged)
        if rows.scope != "judged":
            frame = frame.filter(terms.is_graded)
    frame = rank_order.in_rank_order(
        frame, rows.keys, joined.item, joined.types, joined.id_ranges, numbered=rows.numbered
    )
    if not over_judged:
        frame = frame.with_columns(relevant)
    rest = {n: c for n, c in columns.items() if n not in over_judged and n != "relevant"}
    return _with_columns(frame, rows, rest)


def _list_rows(
    items: pl.LazyFrame,
    rows: Rows,
    reading: Reading,
    columns: Mapping[str, Column],
    *,
    missed: bool,
) -> pl.LazyFrame:
    """Return the rows of the list, whatever is read of the truth.

    Counts of the truth are taken before its other rows go. Running counts are derived on the
    relevant or judged rows, and null on the others.
    """
    joined = rows.joined
    of_lists = joined.columns_of_lists.union(joined.keys, [joined.item], _of_items(joined, reading))
    of_lists |= {name for name, column in columns.items() if column.known_without_truth}
    everywhere = {name: c for name, c in columns.items() if c.derived_on != "truth"}
    everywhere["listed"] = registry.COLUMNS["listed"]
    inner = {name: c for name, c in columns.items() if c.derived_on == "truth"}
    if joined.tables.settings.unjudged != "drop" and of_lists.issuperset(
        [*columns, *reading.outside]
    ):
        ranked = _with_depth(joined.run, joined, reading)
        return _with_columns(ranked.filter(terms.is_listed), rows, everywhere)
    frame = items.filter(terms.is_listed | terms.relevance.is_not_null())
    if inner:
        truth_columns = {name: c for name, c in columns.items() if c.scope != "listed"}
        wide = any(c.scope == "judged" for c in truth_columns.values())
        scope: Scope = "judged" if wide else "relevant"
        reduced = terms.relevance.is_not_null() if wide else terms.is_graded
        narrow = _truth_rows(items, rows._replace(scope=scope), truth_columns)
        narrow = narrow.drop(
            *rank_order.ORDER_COLUMNS, *everywhere.keys() - {"rank", "relevance"}, strict=False
        )
        rest = frame.filter(~reduced.fill_null(value=False))
        frame = pl.concat([narrow, rest], how="diagonal")
    of_truth = {name: c for name, c in everywhere.items() if not c.known_without_truth}
    frame = _with_columns(frame, rows, of_truth)
    alone = {name: c for name, c in everywhere.items() if c.known_without_truth}
    return _with_columns(frame if missed else frame.filter(terms.is_listed), rows, alone)


def _of_items(joined: Joined, reading: Reading) -> list[str]:
    """Name the columns of the catalogue that metrics read."""
    items = joined.inputs.get("items")
    return [] if items is None else [name for name in reading.outside if name in items.schema]


def _with_columns_of_items(frame: pl.LazyFrame, joined: Joined, reading: Reading) -> pl.LazyFrame:
    """Join the columns of the catalogue that metrics read."""
    ids = (*joined.keys, joined.item)
    if not (names := [name for name in _of_items(joined, reading) if name not in ids]):
        return frame
    keys, items = [*joined.inputs["items"].by, joined.item], joined.inputs["items"].frame
    return frame.join(items.select(*keys, *names), on=keys, how="left")


def _with_columns(frame: pl.LazyFrame, rows: Rows, columns: Mapping[str, Column]) -> pl.LazyFrame:
    """Derive the columns level by level, each after those that it reads."""
    pending = {n: c for n, c in columns.items() if c.derive is not None or c.join is not None}
    while pending:
        ready = [n for n in pending if pending.keys().isdisjoint(registry.sources_of(n))]
        ready.sort()  # the same order in every call
        if not ready:
            msg = f"the columns {', '.join(map(repr, sorted(pending)))} are derived from each other"
            raise ValueError(msg)
        if derived := [name for name in ready if pending[name].derive]:
            frame = frame.with_columns([_expression(name, rows).alias(name) for name in derived])
            ready = derived  # joins come after the columns that need none
        joins: dict[Join, dict[str, tuple[Any, ...]]] = {}
        for name in ready:
            if (join := pending.pop(name).join) is not None:
                joins.setdefault(join, {})[name] = registry.read_parameters(name)
        rows = rows._replace(unjoined=frame)
        for join, names in joins.items():
            frame = join(frame, rows, names)
    return frame


def _expression(name: str, rows: Rows) -> pl.Expr:
    column = registry.COLUMNS[name.partition("(")[0]]
    assert column.derive is not None
    return column.derive(rows, *registry.read_parameters(name))


def _split(joined: Joined, items: pl.LazyFrame) -> pl.LazyFrame:
    """Return one row per subtopic of an item, at the item's rank."""
    item = [*joined.keys, joined.item]
    subtopics = joined.rows("subtopic").filter(terms.relevance.is_not_null()).drop("rank")
    return subtopics.join(items.select(*item, "rank"), on=item, how="left")


def _with_depth(frame: pl.LazyFrame, joined: Joined, reading: Reading) -> pl.LazyFrame:
    """Add the columns of the catalogue that are read, and cut the lists."""
    return _cut(_with_columns_of_items(frame, joined, reading), joined.tables.settings.depth)


def _cut(frame: pl.LazyFrame, depth: int | None) -> pl.LazyFrame:
    """Cut the lists to ``depth``: what is below was not retrieved."""
    if depth is None:
        return frame
    return frame.with_columns(pl.when(terms.rank <= depth).then("rank").alias("rank"))


def _condensed(items: pl.LazyFrame, keys: Sequence[str], *, tied: bool) -> pl.LazyFrame:
    """Remove the unjudged items and those of negative grade from the lists, and close the ranks."""
    kept = items.filter(terms.relevance.is_not_null())
    kept = kept.with_columns(pl.when(terms.is_judged).then("rank").alias("rank"))
    # "min", not "ordinal": two items at one rank must stay so, for the checks to see them
    closed = kept.with_columns(terms.count(terms.rank.rank("min").over(keys)))
    return closed.with_columns(tied=terms.count(pl.len().over(*keys, "rank"))) if tied else closed
