"""Lays out the strip of users, and writes what the page's script reads: lists as JSON."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from rankframe._comparison import numerals
from rankframe._report import nouns, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Dot, Strip
from rankframe._report.people import Item, People, Person

_WIDTH, _ABOVE, _BELOW = 640, 120, 44  # pixels: the strip, its dots, and the bars under them
_BINS = 41  # an odd number: 0 is in the middle of one
_RADIUS = 5
_MOST_TITLES = 20  # of relevant items in neither list
_VERBS = {"better": " gains: ", "worse": " loses: "}


def strip_of(numbers: Numbers) -> Strip | None:
    """Lay out the users that ``explore`` chose; None if it chose nobody."""
    people = numbers.people
    if people is None or not people.explored:
        return None
    changes: list[float] = people.changes.to_list()
    reach = max(map(abs, changes)) or 1.0

    def place(change: float) -> int:
        return min(_BINS - 1, int((change / reach + 1) / 2 * _BINS))

    counts = [0] * _BINS
    for change in changes:
        counts[place(change)] += 1
    step = _WIDTH / _BINS
    number = len(people.explored)
    is_all = number == len(changes)
    below = 0 if is_all else _BELOW
    bars = [
        (place * step, step - 1, round(below * count / max(counts), 1))
        for place, count in enumerate(counts)
        if count and not is_all
    ]
    stacks: dict[int, list[Person]] = {}
    for person in people.explored:
        stacks.setdefault(place(person.after - person.before), []).append(person)
    noun = numbers.nouns.user
    dots = {
        id(person): _dot(person, number, len(stack), (bin_ + 0.5) * step, noun)
        for bin_, stack in stacks.items()
        for number, person in enumerate(stack)
    }
    write = numbers.nouns.write
    text = f"{numerals.counted(len(changes), 'user')} with a list from both"
    text = f"All {text}." if is_all else f"{number:,} of {text}: {_chosen(numbers, people)}"
    names = {name: None for person in people.explored for name in person.segments}
    return Strip(
        title=write(f"Change of {numbers.user_metric}, one dot per user"),
        text=write(text),
        dots=[dots[id(person)] for person in people.explored],
        bars=bars,
        ends=(numerals.signed(-reach, 2), numerals.signed(reach, 2)),
        segments=sorted(names),
        data=as_json(_data(numbers, people)),
        size=(_WIDTH, _ABOVE + below, _ABOVE, _RADIUS),
    )


def _chosen(numbers: Numbers, people: People) -> str:
    """Write how many users were chosen why; a part without users is left out."""
    losses, gains, others = people.chosen
    parts = [
        (losses, "the greatest loss" if losses == 1 else f"the {losses:,} greatest losses"),
        (gains, "the greatest gain" if gains == 1 else f"the {gains:,} greatest gains"),
        (others, f"{others:,} of the others, drawn at random (seed {numbers.trial.seed})"),
    ]
    words = numerals.listed([words for count, words in parts if count])
    return f"{words}. Bars below: all of them."


def key_of(user: object) -> str:
    """Write the fragment of a user's lists."""
    return f"user={quote(nouns.plain(verdict.text_of(user)), safe='')}"


def _dot(person: Person, number: int, stack: int, x: float, noun: str) -> Dot:
    """Stack the dots of a bin, closer together and in two columns if they are many."""
    room = _ABOVE - 2 * _RADIUS
    rows = max(1, room // (2 * _RADIUS))
    aside = 0.0 if stack <= rows else -3.5 if number % 2 else 3.5
    gap = min(2 * _RADIUS, room / max(1, stack - 1))
    kind = kind_of(person)
    change = f"{_VERBS[kind]}{_change(person)}" if kind in _VERBS else ": same"
    return Dot(
        key_of(person.user),
        round(x + aside, 1),
        round(_ABOVE - _RADIUS - number * gap, 1),
        kind,
        f"{noun} {verdict.text_of(person.user)}{change}",
    )


def kind_of(person: Person) -> str:
    return "better" if person.gain > 0 else "worse" if person.gain < 0 else "same"


def summary_of(person: Person) -> tuple[str, str]:
    """Write the values of a user, and the change."""
    values = f"{numerals.number(person.before, 3)} → {numerals.number(person.after, 3)}"
    return values, f"({_change(person)})"


def _change(person: Person) -> str:
    return numerals.signed(person.after - person.before, 3)


def note_of(person: Person, people: People) -> str:
    parts = [numerals.counted(person.relevant, "relevant item")]
    parts += [f"{len(person.missed):,} in neither first {people.k}"] if person.missed else []
    return " · ".join([", ".join(parts), *map(nouns.named, person.segments)])


def look_of(item: Item, people: People) -> str:
    """Return the class of an item: a hit, an unjudged one, or a judged miss."""
    if item.grade is None:
        return "unjudged" if people.has_misses else ""
    return "hit" if item.grade > 0 and item.grade >= people.relevant_at else ""


def mark_of(item: Item) -> str:
    """Write the grade of an item, and where the other list has it."""
    grade = f"★{item.grade:g}" if item.grade is not None and item.grade > 0 else ""
    return " ".join(filter(None, (grade, item.moved)))


def _data(numbers: Numbers, people: People) -> dict[str, Any]:
    titles: dict[object, int] = {}

    def number(item: object) -> int:
        return titles.setdefault(item, len(titles))

    persons = [
        {
            "id": nouns.plain(verdict.text_of(person.user)),
            "head": " ".join(summary_of(person)),
            "note": nouns.plain(numbers.nouns.write(note_of(person, people))),
            "kind": kind_of(person),
            "relevant": person.relevant,
            "segments": person.segments,
            "lists": [
                [[number(item.item), look_of(item, people), mark_of(item)] for item in items]
                for items in person.lists
            ],
            "missed": [number(item) for item in person.missed[:_MOST_TITLES]],
            "more": f" and {more:,} more"
            if (more := len(person.missed) - _MOST_TITLES) > 0
            else "",
            "history": [number(item) for item in person.history],
        }
        for person in people.explored
    ]
    return {
        "systems": [
            nouns.plain(verdict.text_of(n)) for n in (numbers.trial.baseline, numbers.chosen)
        ],
        "user": numbers.nouns.user,
        "first": numbers.nouns.write("First items of user"),
        "before": "Before:",
        "missed": f"Relevant, in neither first {people.k}:",
        "people": persons,
        "titles": [people.titles[item] for item in titles],
    }


def as_json(value: object) -> str:
    """Write JSON that no HTML parser mistakes for markup."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for sign in ("<", ">", "&", "\u2028", "\u2029"):
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text
