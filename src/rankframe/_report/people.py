"""Computes what single users got: their lists side by side, and what they had before."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from rankframe._evaluation import user_columns
from rankframe._report.call import Measurement, ReportCall
from rankframe._tables import column_roles, judgment, side_tables
from rankframe._tables.table import Table, Tables

_MOST = 4  # users with the greatest loss, and as many with the greatest gain: without a script
SHOWN = 2 * _MOST  # users by default
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
    text: str = ""  # of a query

    @property
    def unjudged(self) -> list[int]:
        """The number of items of each list that nobody judged."""
        return [sum(item.grade is None for item in items) for items in self.lists]

    @property
    def share_unjudged(self) -> float:
        return sum(self.unjudged) / max(1, sum(map(len, self.lists)))


class People(NamedTuple):
    """Users whom both systems serve: some of them with their lists, and the changes of all."""

    persons: list[Person]  # from the greatest loss to the greatest gain
    lost: list[Person]
    gained: list[Person]
    to_judge: list[Person]  # those with the most unjudged items
    chosen: tuple[int, int, int]  # the greatest losses and gains of ``persons``, and others
    changes: pl.Series  # of all, without the last digits
    missed: int  # without a list of one or both
    undefined: int  # with lists, and without a value of one or both
    titles: Mapping[object, str]
    relevant_at: float
    has_misses: bool  # whether the truth has judged items that are not relevant
    k: int  # the length of the lists


def people_of(
    values: Measurement,
    name: str,
    chosen: object,
    segments: Mapping[str, pl.DataFrame],
    to_judge: Sequence[object],
    *,
    has_misses: bool,
) -> People:
    """Find the users who lost and gained most, and some of all."""
    call, user, by = values.call, values.values.user, values.call.by
    value = pl.col(name).cast(pl.Float64).alias("value")
    before, after = (
        values.rows.filter(pl.col(by) == pl.lit(system, dtype=values.rows.schema[by])).select(
            user, value, missed=user_columns.MISSED
        )
        for system in (call.trial.baseline, chosen)
    )
    pairs = before.join(after.drop_nulls(user), on=user, suffix=" after")
    listed = pairs.remove(pl.col("missed") | pl.col("missed after"))
    served = listed.drop_nulls()
    sign = -1 if values.directions.get(name) is False else 1
    gain = ((pl.col("value after") - pl.col("value")) * sign).round(12)
    served = served.select(user, "value", "value after", gain=gain).sort("gain", user)
    losers = served.filter(pl.col("gain") < 0)
    winners = served.filter(pl.col("gain") > 0).sort("gain", user, descending=[True, False])
    explored, counts = _drawn(served, losers, winners, to_judge, call)
    judged = _judged(values, explored[user], chosen)
    persons = {} if judged is None else _persons(explored, judged, values, segments)
    lost, gained = (
        [persons[name] for name in table[user].head(min(_MOST, count)) if name in persons]
        for table, count in zip((losers, winners), counts, strict=False)
    )
    items: set[object] = set()
    for person in persons.values():
        items.update(entry.item for entries in person.lists for entry in entries)
        items.update(person.missed, person.history)
    return People(
        [*persons.values()],
        lost,
        gained,
        [persons[name] for name in to_judge if name in persons],
        counts,
        served["gain"] * sign,
        len(pairs) - len(listed),
        len(listed) - len(served),
        _titles(values.tables.beside.get("items"), items),
        call.settings.relevant_at or 0,
        has_misses,
        _length(call),
    )


def _drawn(
    served: pl.DataFrame,
    losers: pl.DataFrame,
    winners: pl.DataFrame,
    to_judge: Sequence[object],
    call: ReportCall,
) -> tuple[pl.DataFrame, tuple[int, int, int]]:
    """Choose the greatest losses and gains, 30% each, draw others, and add those to judge."""
    user, number = served.columns[0], call.explore
    most = max(number * 3 // 10, min(_MOST, number // 2))
    extremes = pl.concat([losers.head(most), winners.head(most)])
    rest = served.join(extremes, on=user, how="anti", maintain_order="left").sort(user)
    others = min(number - len(extremes), len(rest))
    drawn = random.Random(call.trial.seed).sample(range(len(rest)), others)
    wanted = pl.col(user).is_in([*to_judge] if number else [])
    kept = rest.filter(wanted | pl.int_range(pl.len()).is_in(drawn))
    counts = min(most, len(losers)), min(most, len(winners)), others
    return pl.concat([extremes, kept]).sort("gain", user), counts


def _judged(values: Measurement, users: pl.Series, chosen: object) -> pl.DataFrame | None:
    """Join the lists of both systems for some users; None without ranks of single items."""
    call, tables = values.call, values.tables
    if not len(users) or tables.tied or not tables.has_truth:
        return None
    of_them = pl.col(values.values.user).is_in(users.to_list())
    sides = pl.col(call.by).is_in([call.trial.baseline, chosen])
    run, *truth = (
        replace(table, frame=table.frame.filter(kept), rows=None)
        for table, kept in zip(tables.both, (of_them & sides, of_them), strict=False)
    )
    # the tables were checked with all rows: a few are no evidence of what a column means
    few = replace(tables, run=run, truth=truth[0] if truth else None, reads=None)
    return (
        judgment.judge(few)
        .rows("listed")
        .filter(sides)
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
    histories = _histories(values.tables, users)
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
            values.texts.get(str(name), ""),
        )
    return persons


def _moved(rank: int, other: int | None, k: int, *, is_left: bool) -> str:
    """Write how many ranks an item moved from the other list, or where it left the first k."""
    if other is None:
        return "out" if is_left else "new"
    if is_left:
        return f"▼\N{NO-BREAK SPACE}to {other}" if other > k else ""  # "▼ " is not heard
    return f"▲{other - rank}" if other > rank else f"▼{rank - other}" if other < rank else ""


def _histories(tables: Tables, users: pl.Series) -> dict[object, list[object]]:
    """Return the last items that each user had before, by time if there is a column of it."""
    if "history" not in tables.beside:
        return {}
    history = tables.beside["history"]
    time = next((name for name in history.schema if name.lower() in _TIMES), None)
    user, ids = pl.col(history.user).cast(pl.String), {str(name): name for name in users}
    rows = history.frame.filter(user.is_in([*ids]))
    if time is not None:
        rows = rows.sort(time, maintain_order=True)
    last = rows.group_by(user).agg(pl.col(history.item).tail(_LAST)).collect()
    return {ids[name]: items for name, items in last.rows()}


def _segments(segments: Mapping[str, pl.DataFrame], users: pl.Series) -> dict[object, list[str]]:
    """Return the segments of each user in words."""
    words: dict[object, list[str]] = {}
    for name, rows in segments.items():
        for user, value in rows.filter(pl.col(users.name).is_in(users.to_list())).iter_rows():
            words.setdefault(user, []).append(f"{name}: {column_roles.in_words(value)}")
    return words


def _titles(catalogue: Table | None, items: set[object]) -> dict[object, str]:
    """Return the title of each item, or another text that describes it, or its id."""
    texts = {} if catalogue is None else side_tables.text_of_ids(catalogue)
    return {item: texts.get(str(item), column_roles.in_words(item)) for item in items}
