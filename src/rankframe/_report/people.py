"""Computes what single users got: their lists side by side, and what they had before."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import user_columns
from rankframe._report.call import Measurement, ReportCall
from rankframe._tables import adapters, column_roles, judgment, side_tables
from rankframe._tables.table import Table

_MOST = 4  # users with the greatest loss, and as many with the greatest gain
_LAST = 5  # items of a history
_TIMES = ("time", "timestamp", "date", "datetime", "day")


class Item(NamedTuple):
    """An item of a list: its grade, None if nobody judged it, and where the other list has it."""

    item: object
    grade: float | None
    moved: str


class Person(NamedTuple):
    """A user: the values of both systems, and the first items of both lists."""

    user: object
    before: float
    after: float
    gain: float
    relevant: int
    lists: Sequence[Sequence[Item]]
    missed: list[object]  # relevant items in neither of them
    history: list[object]
    segments: list[str]


class People(NamedTuple):
    """Users whom both systems serve: those who lost and gained most, some of all, and counts."""

    lost: list[Person]
    gained: list[Person]
    explored: list[Person]
    chosen: tuple[int, int, int]  # the greatest losses and gains of ``explored``, and others
    changes: pl.Series  # of all
    missed: int
    titles: Mapping[object, str]
    relevant_at: float
    has_misses: bool  # whether the truth has judged items that are not relevant
    k: int  # the length of the lists

    @property
    def users(self) -> list[object]:
        """The ids on the page."""
        return [person.user for person in (*self.lost, *self.gained, *self.explored)]


def people_of(
    values: Measurement,
    name: str,
    chosen: object,
    segments: Mapping[str, pl.DataFrame],
    *,
    has_misses: bool,
) -> People | None:
    """Find the users who lost and gained most, and some of all; None without lists."""
    call, user, by = values.call, values.values.user, values.call.by
    value = pl.col(name).cast(pl.Float64).alias("value")
    before, after = (
        values.rows.filter(pl.col(by) == pl.lit(system, dtype=values.rows.schema[by])).select(
            user, value, missed=user_columns.MISSED
        )
        for system in (call.trial.baseline, chosen)
    )
    pairs = before.join(after.drop_nulls(user), on=user, suffix=" after")
    served = pairs.remove(pl.col("missed") | pl.col("missed after")).drop_nulls()
    sign = -1 if values.directions.get(name) is False else 1
    gain = ((pl.col("value after") - pl.col("value")) * sign).round(12)
    served = served.select(user, "value", "value after", gain=gain).sort("gain", user)
    losers = served.filter(pl.col("gain") < 0)
    winners = served.filter(pl.col("gain") > 0).sort("gain", user, descending=[True, False])
    explored, counts = _drawn(served, losers, winners, call)
    tables = losers.head(_MOST), winners.head(_MOST), explored
    users = pl.concat([table[user] for table in tables]).unique(maintain_order=True)
    judged = _judged(values, users, chosen)
    if judged is None:
        return None
    table = pl.concat(tables).unique(user, maintain_order=True)
    persons = _persons(table, judged, values, segments)
    lost, gained, persons_explored = ([persons[name] for name in table[user]] for table in tables)
    items: set[object] = set()
    for person in persons.values():
        items.update(entry.item for entries in person.lists for entry in entries)
        items.update(person.missed, person.history)
    return People(
        lost,
        gained,
        persons_explored,
        counts,
        served["value after"] - served["value"],
        len(pairs) - len(served),
        _titles(call, values.tables.run.item, items),
        call.settings.relevant_at or 0,
        has_misses,
        _length(call),
    )


def _drawn(
    served: pl.DataFrame, losers: pl.DataFrame, winners: pl.DataFrame, call: ReportCall
) -> tuple[pl.DataFrame, tuple[int, int, int]]:
    """Choose 30% greatest losses, 30% greatest gains, and draw the others."""
    user, third = served.columns[0], call.explore * 3 // 10
    extremes = pl.concat([losers.head(third), winners.head(third)])
    rest = served.join(extremes, on=user, how="anti", maintain_order="left").sort(user)
    number = min(call.explore - len(extremes), len(rest))
    places = sorted(random.Random(call.trial.seed).sample(range(len(rest)), number))
    counts = min(third, len(losers)), min(third, len(winners)), number
    return pl.concat([extremes, rest[places]]).sort("gain", user), counts


def _judged(values: Measurement, users: pl.Series, chosen: object) -> pl.DataFrame | None:
    """Join the lists of both systems for some users; None without ranks of single items."""
    call, tables = values.call, values.tables
    if not len(users) or tables.tied or not tables.has_truth:
        return None
    of_them = pl.col(values.values.user).is_in(users.to_list())
    sides = pl.col(call.by).is_in([call.trial.baseline, chosen])
    run, *truth = (
        table._replace(frame=table.frame.filter(kept), rows=None)
        for table, kept in zip(tables.both, (of_them & sides, of_them), strict=False)
    )
    # the tables were checked with all rows: a few are no evidence of what a column means
    few = tables._replace(run=run, truth=truth[0] if truth else None, reads=None)
    return (
        judgment.judge(few)
        .items.filter(sides)
        .select(
            user=values.values.user,
            item=run.item,
            side=pl.col(call.by).ne(pl.lit(call.trial.baseline)).cast(pl.Int8),
            rank="rank",
            grade=pl.col("relevance").cast(pl.Float64),
        )
        .collect()
    )


def _length(call: ReportCall) -> int:
    return min(call.k, call.settings.depth or call.k)


def _persons(
    table: pl.DataFrame,
    judged: pl.DataFrame,
    values: Measurement,
    segments: Mapping[str, pl.DataFrame],
) -> dict[object, Person]:
    call = values.call
    k, least = _length(call), call.settings.relevant_at or 0
    users = table.to_series()
    histories = _histories(call, values.tables.run, users)
    words = _segments(segments, users)
    groups = judged.sort("rank", nulls_last=True).partition_by("user", as_dict=True)
    persons: dict[object, Person] = {}
    for name, before, after, gain in table.rows():
        rows: list[tuple[int, object, int | None, float | None]]
        rows = groups[(name,)].select("side", "item", "rank", "grade").rows()
        ranks: list[dict[object, int]] = [{}, {}]
        for side, item, rank, _ in rows:
            if rank is not None:
                ranks[side].setdefault(item, rank)
        lists: list[list[Item]] = [[], []]
        for side, item, rank, grade in rows:
            if rank is not None and rank <= k:
                moved = _moved(rank, ranks[1 - side].get(item), k, is_left=side == 0)
                lists[side].append(Item(item, grade, moved))
        shown = {entry.item for entries in lists for entry in entries}
        wanted = {
            item: None for *_, item, _, grade in rows if grade and grade > 0 and grade >= least
        }
        missed = sorted((item for item in wanted if item not in shown), key=str)
        persons[name] = Person(
            *(name, before, after, gain, len(wanted), lists, missed),
            histories.get(name, []),
            words.get(name, []),
        )
    return persons


def _moved(rank: int, other: int | None, k: int, *, is_left: bool) -> str:
    """Write how many ranks an item moved from the other list, or where it left the first k."""
    if other is None:
        return "out" if is_left else "new"
    if is_left:
        return f"▼\N{NO-BREAK SPACE}to {other}" if other > k else ""  # "▼ " is not heard
    return f"▲{other - rank}" if other > rank else f"▼{rank - other}" if other < rank else ""


def _histories(call: ReportCall, run: Table, users: pl.Series) -> dict[object, list[object]]:
    """Return the last items that each user had before, by time if there is a column of it."""
    if call.settings.history is None:
        return {}
    frame = adapters.to_lazy(call.settings.history, "history")
    names, user, item = frame.collect_schema().names(), run.user, run.item
    if not {user, item} <= {*names}:
        return {}
    time = next((name for name in names if name.lower() in _TIMES), None)
    ids = {str(name): name for name in users}
    rows = frame.filter(pl.col(user).cast(pl.String).is_in([*ids]))
    if time is not None:
        rows = rows.sort(time, maintain_order=True)
    last = rows.group_by(pl.col(user).cast(pl.String)).agg(pl.col(item).tail(_LAST)).collect()
    return {ids[name]: items for name, items in last.rows()}


def _segments(segments: Mapping[str, pl.DataFrame], users: pl.Series) -> dict[object, list[str]]:
    """Return the segments of each user in words."""
    words: dict[object, list[str]] = {}
    for name, rows in segments.items():
        for user, value in rows.filter(pl.col(users.name).is_in(users.to_list())).iter_rows():
            words.setdefault(user, []).append(f"{name}: {column_roles.in_words(value)}")
    return words


def _titles(call: ReportCall, name: str, items: set[object]) -> dict[object, str]:
    """Return the title of each item, or another text that describes it, or its id."""
    titles = {item: column_roles.in_words(item) for item in items}
    if call.settings.items is None:
        return titles
    frame = adapters.to_lazy(call.settings.items, "items")
    texts = [
        column
        for column, dtype in frame.collect_schema().items()
        if isinstance(dtype, pl.String | pl.Categorical | pl.Enum)
    ]
    order = [text for text in dict.fromkeys(("title", "name", *texts)) if text in texts]
    order = [text for text in order if text not in (name, side_tables.LONG)]
    if not order or name not in frame.collect_schema():
        return titles
    key = pl.col(name).cast(pl.String)
    rows = frame.select(key, pl.coalesce(pl.col(order).cast(pl.String))).drop_nulls().collect()
    of_ids = dict(reversed(rows.rows()))
    return {item: of_ids.get(str(item), title) for item, title in titles.items()}
