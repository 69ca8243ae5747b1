"""Writes the lists of single users side by side, and lays out the strip of users."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from urllib.parse import quote

from rankframe._comparison import numerals
from rankframe._comparison.notes import Nouns
from rankframe._report import nouns, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Dot, Lists, Strip
from rankframe._report.people import Item, People, Person
from rankframe._report.tabular import Cell, Grid

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
    called = numbers.nouns
    dots = {
        id(person): _dot(person, number, len(stack), (bin_ + 0.5) * step, called.user)
        for bin_, stack in stacks.items()
        for number, person in enumerate(stack)
    }
    text = f"{called.counted(len(changes))} with a list from both"
    text = f"All {text}." if is_all else f"{number:,} of {text}: {_chosen(numbers, people)}"
    names = sorted({name for person in people.explored for name in person.segments})
    return Strip(
        title=f"Change of {numbers.user_metric}, one dot per {called.user}",
        text=text,
        dots=[dots[id(person)] for person in people.explored],
        bars=bars,
        ends=(numerals.signed(-reach, 2), numerals.signed(reach, 2)),
        segments=names,
        people=[lists_of(numbers, people, person, names) for person in people.explored],
        size=(_WIDTH, _ABOVE + below, _ABOVE, _RADIUS),
        k=people.k,
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


def note_of(person: Person, people: People, called: Nouns) -> str:
    parts = [called.write("{n} relevant {n:{item}|{items}}", n=person.relevant)]
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


def lists_of(
    numbers: Numbers, people: People, person: Person, segments: Sequence[str] = ()
) -> Lists:
    """Write the lists of a user; ``segments`` are those among which the page finds users."""
    user, missed = verdict.text_of(person.user), person.missed[:_MOST_TITLES]
    sides = verdict.baseline_of(numbers), verdict.text_of(numbers.chosen)
    rows = [
        [Cell(f"{rank}"), *(_item_cell(item, people) for item in pair)]
        for rank, pair in enumerate(zip_longest(*person.lists), 1)
    ]
    more = len(person.missed) - len(missed)
    first = numbers.nouns.write("First {items} of {user}")
    return Lists(
        user,
        key_of(person.user),
        *summary_of(person),
        kind_of(person),
        note_of(person, people, numbers.nouns),
        _titles(person.history, people),
        Grid(f"{first} {user}", ["rank", *sides], rows, kind="lists"),
        _titles(missed, people) + (f" and {more:,} more" if more else ""),
        person.relevant,
        [segments.index(name) for name in person.segments if name in segments],
    )


def _titles(items: Sequence[object], people: People) -> str:
    return " · ".join(nouns.named(people.titles[item]) for item in items)


def _item_cell(item: Item | None, people: People) -> Cell:
    if item is None:
        return Cell(numerals.DASH)
    title, look = nouns.named(people.titles[item.item]), look_of(item, people)
    return Cell(title, "", look, mark_of(item), "relevant," * (look == "hit"))
