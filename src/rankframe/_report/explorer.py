"""Lays out the users of a report: the changes of all, and the lists of some, side by side."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import zip_longest
from typing import Any
from urllib.parse import quote

from rankframe._comparison import notes, numerals
from rankframe._inputs import several_users
from rankframe._report import nouns, strips, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Bar, Group, Histogram, Lists, Section, Users
from rankframe._report.people import Item, People, Person
from rankframe._report.strips import Axis, Change
from rankframe._report.tabular import Cell, Grid

_HEIGHT = 110  # pixels of the histogram
_BINS = 10  # between two ticks
_MOST_SAME = 2  # the bar of users without a change is cut above so many times the tallest other
_CUT = 1.4  # of the tallest other bar: its height then
_SAME = 1.2  # percent of the width: that bar
_MOST_TITLES = 20  # of relevant items in neither list


def say(numbers: Numbers, kind: str, **values: Any) -> str:
    """Write a text of this section by its template, with the names of both systems."""
    fields: dict[str, Any] = {
        "baseline": verdict.baseline_of(numbers),
        "system": verdict.text_of(numbers.chosen),
        "metric": numbers.user_metric,
    }
    if (people := numbers.people) is not None:
        fields |= {"k": people.k, "whole": numbers.nouns.counted(len(people.changes))}
    return numbers.nouns.write(notes.templates("lists")[kind], **fields, **values)


def section(numbers: Numbers) -> Section | None:
    """Show the changes of all users, and the lists of some; None if they tell nothing."""
    people = numbers.people
    if people is None or not ((people.changes != 0).any() or people.to_judge):
        return None
    ends = people.changes.sort()[[0, -1]].to_list()
    axis = strips.axis_of(Change(end, None, None, in_percent=False, decimals=None) for end in ends)
    names = sorted({name for person in people.persons for name in person.segments})
    lists = {
        person.user: _lists_of(numbers, people, person, axis, names) for person in people.persons
    }
    orders = _orders(numbers, people)
    groups = [
        Group(title, [lists[person.user] for person in persons])
        for title, persons in zip(orders, (people.lost, people.gained), strict=False)
        if persons
    ]
    judged = "" if people.has_misses else None
    users = Users(
        histogram=_histogram(numbers, people, axis),
        chosen=_chosen(numbers, people) if lists else "",
        key=say(numbers, "key", judged=judged) if lists else "",
        groups=groups,
        caption=say(numbers, "lists"),
        heads=[verdict.baseline_of(numbers), verdict.text_of(numbers.chosen)],
        orders=[*orders],
        segments=names,
        data=_data([*lists.values()], [*orders.values()]) if lists else "",
        to_judge=[(lists[person.user], _unjudged(numbers, person)) for person in people.to_judge],
        k=people.k,
    )
    return Section("lists", say(numbers, "title"), users=users)


# ------------------------------------------------------------------ the changes of all users


def _kind(numbers: Numbers, change: float) -> str:
    """Return what a change of a value is, in the direction of its metric."""
    is_better = numbers.values.directions.get(numbers.user_metric or "")
    if not change:
        return "same"
    if is_better is None:
        return "higher" if change > 0 else "lower"
    return "better" if (change > 0) == is_better else "worse"


def _histogram(numbers: Numbers, people: People, axis: Axis) -> Histogram:
    """Draw the changes of all users: bars to the left and to the right of 0, and one at 0."""
    changes, step = people.changes, axis.step / _BINS
    bins = (changes.abs() / step).round(9).ceil() * changes.sign()
    counts: dict[float, int] = dict(bins.value_counts().sort(bins.name).iter_rows())
    tallest, same = max((counts[place] for place in counts if place), default=0), counts.get(0, 0)
    top = _CUT * tallest if same > _MOST_SAME * tallest > 0 else max(same, tallest)
    kinds = [_kind(numbers, sign) for sign in (-1, 0, 1)]
    numbers_of = [(changes < 0).sum(), same, (changes > 0).sum()]
    texts = [say(numbers, k, number=n) for k, n in zip(kinds, numbers_of, strict=True)]
    bars: list[Bar] = []
    for place, count in counts.items():
        side = (place > 0) - (place < 0)
        ends = sorted((place * step, (place - side) * step))
        low, high = (axis.place(end) + side * _SAME / 2 * (not end) for end in ends)
        text = say(numbers, "bar", number=count, low=ends[0], high=ends[1])
        if not place:
            low, high, text = low - _SAME / 2, high + _SAME / 2, texts[1]
        height = round(min(1, count / top) * _HEIGHT, 1)
        bars.append(Bar(_kind(numbers, place), round(low, 2), round(high - low, 2), height, text))
    spread = {"low": changes.min(), "median": changes.median(), "high": changes.max()}
    return Histogram(
        title=say(
            *(numbers, "histogram"),
            missed=people.missed or None,
            undefined=people.undefined or None,
            value="" if people.undefined else None,
        ),
        alt=say(numbers, "alt", **spread, counts=numerals.listed(texts)),
        bars=bars,
        height=_HEIGHT,
        scale=strips.scale(axis),
        counts=[
            (kind, text + say(numbers, "cut") * (kind == "same" and same > top))
            for kind, text in zip(kinds, texts, strict=True)
        ],
    )


# ------------------------------------------------------------------ the lists of some


def _chosen(numbers: Numbers, people: People) -> str:
    """Write whose lists the page has; a part without users is left out."""
    if len(people.persons) == len(people.changes):
        return say(numbers, "all")
    more = len(people.persons) - sum(people.chosen)  # who are in no other part
    counts, seed = (*people.chosen, more), numbers.trial.seed
    parts = zip(("losses", "gains", "drawn", "judge"), counts, strict=True)
    words = [say(numbers, kind, number=number, seed=seed) for kind, number in parts if number]
    return say(numbers, "chosen", number=len(people.persons), parts=numerals.listed(words))


def _orders(numbers: Numbers, people: People) -> dict[str, list[int]]:
    """Order the users whose lists the page includes, in several ways: their places by name."""
    persons, places = people.persons, [*range(len(people.persons))]
    is_better = numbers.values.directions.get(numbers.user_metric or "")
    ways = ["fell", "rose", "lowest"] if is_better is None else ["lost", "gained", "worst"]
    sign = -1 if is_better is False else 1
    orders = [
        places,
        sorted(places, key=lambda place: -persons[place].gain),
        sorted(places, key=lambda place: sign * persons[place].after),
    ]
    if people.has_misses:
        ways.append("unjudged")
        orders.append(sorted(places, key=lambda place: -persons[place].share_unjudged))
    return {say(numbers, way): order for way, order in zip(ways, orders, strict=True)}


def _name(numbers: Numbers, user: object) -> str:
    """Write the id of a user, of several columns their values."""
    return verdict.text_of(several_users.text_of(user, numbers.values.values.user))


def change_of(person: Person) -> str:
    """Write the change of a user's value."""
    return numerals.signed(person.after - person.before, 3)


def _unjudged(numbers: Numbers, person: Person) -> str:
    """Write how many of the first items of both lists nobody judged."""
    names = ("before", "after", "of_before", "of_after")
    counts = (*person.unjudged, *map(len, person.lists))
    return say(numbers, "never_judged", **dict(zip(names, counts, strict=True)))


def look_of(item: Item, people: People) -> str:
    """Return the class of an item: a hit, an unjudged one, or a judged miss."""
    if item.grade is None:
        return "unjudged" if people.has_misses else ""
    return "hit" if item.grade > 0 and item.grade >= people.relevant_at else ""


def _lists_of(
    numbers: Numbers, people: People, person: Person, axis: Axis, segments: Sequence[str]
) -> Lists:
    """Write the lists of a user; ``segments`` are those among which the page finds users."""
    name = _name(numbers, person.user)
    named = f"{numbers.nouns.user} {name}"
    neither, whose = len(person.missed), named if person.text else None
    note = say(numbers, "note", number=person.relevant, missed=neither or None, whose=whose)
    rows = [
        [Cell(f"{rank}"), *(_cell(item, people) for item in pair)]
        for rank, pair in enumerate(zip_longest(*person.lists), 1)
    ]
    head = ["rank", verdict.baseline_of(numbers), verdict.text_of(numbers.chosen)]
    caption = numbers.nouns.write("First {items} of ") + named
    return Lists(
        name=nouns.named(person.text) if person.text else named,
        key=f"user={quote(nouns.plain(name), safe='')}",  # the fragment of the page
        values=" → ".join(numerals.number(value, 3) for value in (person.before, person.after)),
        change=change_of(person),
        kind=_kind(numbers, round(person.after - person.before, 12)),
        note=" · ".join([note, *map(nouns.named, person.segments)]),
        unjudged=say(numbers, "share", share=person.share_unjudged) if people.has_misses else "",
        history=[nouns.named(people.titles[item]) for item in person.history],
        grid=Grid(caption, head, rows, kind="lists"),
        missed=[nouns.named(people.titles[item]) for item in person.missed[:_MOST_TITLES]],
        more=max(0, neither - _MOST_TITLES),
        place=axis.place(person.after - person.before),
        segments=[segments.index(name) for name in person.segments],
    )


def _cell(item: Item | None, people: People) -> Cell:
    """Write the title of an item, its grade, and where the other list has it."""
    if item is None:
        return Cell(numerals.DASH)
    title, look = nouns.named(people.titles[item.item]), look_of(item, people)
    grade = f"★{item.grade:g}" if item.grade is not None and item.grade > 0 else ""
    mark = " ".join(filter(None, (grade, item.moved)))
    return Cell(title, "", look, mark, "relevant," * (look == "hit"))


def _data(lists: Sequence[Lists], orders: Sequence[Sequence[int]]) -> str:
    """Write the lists for the script, each title once, as JSON that HTML does not end."""
    titles: dict[str, int] = {}

    def place(title: str) -> int:
        return titles.setdefault(nouns.plain(title), len(titles))

    def cell(entry: Cell) -> list[int | str]:
        if entry.text == numerals.DASH:
            return []
        parts = (place(entry.text), entry.mark, entry.kind)
        return [*parts[: 3 if entry.kind else 2 if entry.mark else 1]]

    people = [
        {
            **{name: getattr(entry, name) for name in ("name", "key", "values", "change", "kind")},
            **{name: getattr(entry, name) for name in ("note", "unjudged", "place", "segments")},
            "history": [*map(place, entry.history)],
            "rows": [[*map(cell, row[1:])] for row in entry.grid.rows],
            "missed": [*map(place, entry.missed)],
            "more": entry.more,
        }
        for entry in lists
    ]
    data = {"people": people, "titles": [*titles], "orders": orders}
    return json.dumps(data, ensure_ascii=False, separators=(",", ":"))
