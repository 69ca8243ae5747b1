"""Numbers of conventions that are drawn, computed by a reference in plain Python, and explained.

``python -m tests.evaluation.test_explain_draws 1000`` prints how often the answers hold.
"""

import contextlib
import functools
import itertools
import json
import math
import random
import re
import sys
import time
from collections import Counter
from pathlib import Path

import convention_reference
import polars as pl
import pytest

import rankframe as rf
from rankframe._evaluation import conventions, convention_words, explanation
from rankframe._request import keywords
from rankframe._request.question import ask
from rankframe.presets import PRESETS

#: labels, and what the reference calls their metric
METRICS = {
    "precision@3": "precision",
    "recall@3": "recall",
    "hit@3": "hit",
    "rr": "rr",
    "ap@3": "ap",
    "map": "ap",
    "ndcg@3": "ndcg",
    "ndcg": "ndcg",
    "dcg@3": "dcg",
    "r_precision": "r_precision",
    "f1@3": "f",
    "rbp@3": "rbp",
}
KINDS = ("scores", "binary", "repeats")


class Drawn:
    """Tables of a kind: with equal scores, with scores and one grade, or with repeated items."""

    def __init__(self, seed, kind, *, users=7, items=12, longest=6):
        draw = random.Random(f"{seed}{kind}")
        self.kind, self.run, self.truth = kind, [], []
        self.scored = kind != "repeats"
        for user in range(users):
            listed = draw.sample(range(items), draw.randint(1, longest))
            if kind == "repeats":
                listed = [*listed, *draw.sample(listed, min(2, len(listed)))]
                draw.shuffle(listed)
            scores = [draw.choice([1.0, 2.0, 3.0, 2 + 1e-9]) for _ in listed]
            numbers = scores if self.scored else range(1, len(listed) + 1)
            self.run += [(user, *row) for row in zip(listed, numbers, strict=True)]
        grades = [1] if kind == "binary" else [0, 0, 1, 1, 2, 3]
        for user in range(1, users + 2):
            for item in draw.sample(range(items), draw.randint(1, longest)):
                grade = 0 if user == users // 2 and kind != "binary" else draw.choice(grades)
                self.truth.append((user, item, grade))
        draw.shuffle(self.run)
        self.options = {"duplicates": "first"} if kind == "repeats" else {}

    @functools.cached_property
    def frames(self):
        placing = "score" if self.scored else "rank"
        return [
            pl.DataFrame(rows, schema=["user", "item", name], orient="row")
            for rows, name in ((self.run, placing), (self.truth, "relevance"))
        ]

    def grids(self, *labels):
        settings = keywords.read_options(self.options, takes_average=True)
        return conventions.grids(ask(self.frames[0], labels, self.frames[1], (), settings))

    def value(self, label, choices):
        name = METRICS[label]
        return convention_reference.mean(
            name, self.run, self.truth, choices, scored=self.scored
        )

    def explained(self, number, *label, digits=4):
        run, truth = self.frames
        return rf.explain(number, *label, run, truth=truth, digits=digits, **self.options)


@contextlib.contextmanager
def computed(*grids):
    """Let ``explain`` take these conventions, where many numbers of the same tables are explained."""
    kept = explanation._grids
    explanation._grids = lambda *_, **__: [*grids]
    try:
        yield
    finally:
        explanation._grids = kept


def number_of(grid):
    """Return how many conventions there are, also those without a value."""
    return len(grid.labels) * math.prod(grid.axes.sizes)


def is_refused(label, choices):
    """Whether ``evaluate`` refuses a convention that the reference can compute."""
    name, by = METRICS[label], choices.get("divide_by")
    if choices["average"] == "pooled":
        if name not in ("precision", "recall", "f", "r_precision"):
            return True
        by_length = name in ("precision", "f") and (choices["k"] is None or by == "returned")
        # the length of the list of a user without a relevant item is not known
        if by_length and by != "attainable" and choices["undefined"] is not None:
            return True
    return choices["ties"] == "expected" and by == "hits" and choices["k"] is not None


def is_same(value, other):
    return math.isclose(value, other, rel_tol=1e-9, abs_tol=1e-9)


# ------------------------------------------------------------------ the grid


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_the_grid_are_those_of_the_reference(kind, draws=60):
    tables = Drawn(1, kind)
    for label, grid in zip(METRICS, tables.grids(*METRICS), strict=True):
        found = dict(grid.values.select("convention", "value").rows())
        every = number_of(grid)
        for number in random.Random(label).sample(range(every), min(every, draws)):
            choices = grid.choices(number)
            value, has = tables.value(label, choices), found.get(number)
            if value is None or has is None:
                assert has is None, (label, choices)
                assert value is None or is_refused(label, choices), (label, choices)
            else:
                assert is_same(has, value), (label, choices)


# ------------------------------------------------------------------ one number


def drawn_number(tables, grid, draw):
    """Draw a convention, and compute its value by the reference."""
    numbers = [*grid.values["convention"]]
    while True:
        choices = grid.choices(draw.choice(numbers))
        value = tables.value(grid.label, choices)
        if value is not None:
            return choices, value


def recovered(tables, grid, draw):
    """Explain a drawn number: where its class is among the answers, and how many these are."""
    choices, value = drawn_number(tables, grid, draw)
    with computed(grid):
        answer = tables.explained(round(value, 4), grid.label)
    values = answer.frame[grid.label]
    places = [place for place, other in enumerate(values) if is_same(other, value)]
    assert len(places) == 1, (grid.label, choices, value, answer)
    assert answer.frame["fits"].all()
    return places[0], len(values)


@pytest.mark.parametrize("kind", KINDS)
def test_class_of_a_drawn_convention_is_among_the_answers(kind, draws=3):
    draw = random.Random(kind)
    tables = Drawn(2, kind)
    for grid in tables.grids(*draw.sample([*METRICS], 4)):
        for _ in range(draws):
            recovered(tables, grid, draw)


if __name__ == "__main__":
    start, found = time.process_time(), []
    for seed in itertools.count():
        for kind in KINDS:
            tables, draw = Drawn(f"drawn {seed}", kind), random.Random(f"{seed}{kind}")
            for grid in tables.grids(*METRICS):
                found += [recovered(tables, grid, draw) for _ in range(4)]
        if len(found) >= int(sys.argv[1]):
            break
    alone, first = (sum(x) / len(found) for x in ([n == 1 for _, n in found], [p == 0 for p, _ in found]))
    print(f"{len(found):,} conventions drawn: all among the answers; alone {alone:.1%}, first {first:.1%}")
    print(f"{time.process_time() - start:.0f} s CPU")
