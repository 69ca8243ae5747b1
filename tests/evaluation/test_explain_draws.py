"""Numbers of conventions that are drawn, computed by a reference in plain Python, and explained.

``python -m tests.evaluation.test_explain_draws 1000`` prints how often the answers hold.
"""

import bisect
import contextlib
import functools
import itertools
import json
import math
import random
import sys
from pathlib import Path

import convention_reference
import polars as pl
import pytest

import rankframe as rf
from rankframe._evaluation import convention_words, conventions, explanation
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
    "ndcg(discount=rank)@3": "ndcg",
    "rbp@3": "rbp",
}
RANKERS = Path(__file__).parents[2] / "benchmarks" / "rankers.json"
#: the kinds of tables, with some labels of each for the fast tier
KINDS = {
    "scores": ["precision@3", "rr", "ap@3"],
    "binary": ["recall@3", "f1@3", "ndcg(discount=rank)@3"],
    "repeats": ["hit@3", "r_precision", "rbp@3"],
}


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

    def question(self, *labels):
        settings = keywords.read_options(self.options, takes_average=True)
        return ask(self.frames[0], labels, self.frames[1], (), settings)

    def grids(self, *labels):
        return conventions.grids(self.question(*labels))

    def value(self, label, choices):
        name = METRICS[label]
        return convention_reference.mean(name, self.run, self.truth, choices, scored=self.scored)

    def explained(self, number, *label, digits=4):
        run, truth = self.frames
        return rf.explain(number, *label, run, truth=truth, digits=digits, **self.options)


@contextlib.contextmanager
def computed(tables, *grids):
    """Let ``explain`` take these conventions: computing them takes most of its time."""
    kept = explanation._asked
    explanation._asked = lambda *_, **__: (tables.question(*(g.label for g in grids)), [*grids])
    try:
        yield
    finally:
        explanation._asked = kept


def number_of(grid):
    """Return how many conventions there are, also those without a value."""
    return len(grid.labels) * math.prod(map(len, grid.axes[:4]))


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


@functools.cache
def known(kind):
    """Draw tables of a kind, and compute all conventions of its labels."""
    tables = Drawn(1, kind)
    return tables, dict(zip(KINDS[kind], tables.grids(*KINDS[kind]), strict=True))


# ------------------------------------------------------------------ the grid


@pytest.mark.parametrize("kind", KINDS)
def test_values_of_the_grid_are_those_of_the_reference(kind):
    tables, grids = known(kind)
    for label, grid in grids.items():
        compare(tables, grid, 100, random.Random(label))


def test_one_label_without_a_form_under_ties_hides_no_other():
    grid = known("scores")[1]["ap@3"]
    found = [*map(grid.choices, grid.values["convention"])]
    names = {choices["divide_by"] for choices in found if choices["ties"] == "expected"}
    assert names == {"relevant", "attainable", "returned", "hits", "k"}
    cut = {x["divide_by"] for x in found if x["ties"] == "expected" and x["k"] == 3}
    assert cut == names - {"hits"}


def compare(tables, grid, draws, draw):
    """Compare the values of some conventions with those of the reference."""
    found = dict(grid.values.select("convention", "value").rows())
    every = number_of(grid)
    for number in draw.sample(range(every), min(every, draws)):
        choices = grid.choices(number)
        value, has = tables.value(grid.label, choices), found.get(number)
        if value is None or has is None:
            assert has is None, (grid.label, choices)
            assert value is None or is_refused(grid.label, choices), (grid.label, choices)
        else:
            assert is_same(has, value), (grid.label, choices)


# ------------------------------------------------------------------ numbers


def drawn_number(tables, grid, draw):
    """Draw a convention, and compute its value by the reference."""
    choices = grid.choices(draw.choice(grid.values["convention"].to_list()))
    return choices, tables.value(grid.label, choices)


def recovered(tables, grid, draw):
    """Explain a drawn number: where its class is among the answers, and how many these are."""
    choices, value = drawn_number(tables, grid, draw)
    with computed(tables, grid):
        answer = tables.explained(round(value, 4), grid.label)
    values = answer.frame[grid.label]
    places = [place for place, other in enumerate(values) if is_same(other, value)]
    assert len(places) == 1, (grid.label, choices, value, answer)
    assert answer.frame["fits"].all()
    return places[0], len(values)


@pytest.mark.parametrize("kind", KINDS)
def test_class_of_a_drawn_convention_is_among_the_answers(kind):
    tables, grids = known(kind)
    for label, grid in grids.items():
        for _ in range(2):
            recovered(tables, grid, random.Random(label))


def recovered_together(tables, grids, draw):
    """Explain numbers that share all but the parameters of their metrics; the same."""
    choices, value = drawn_number(tables, grids[0], draw)
    shared = {name: x for name, x in choices.items() if name not in grids[0].parameters[0]}
    values = {grids[0].label: value}
    for grid in grids[1:]:
        own = {**draw.choice(grid.parameters), **shared}
        if is_refused(grid.label, own):
            return None
        values[grid.label] = tables.value(grid.label, own)
    if None in values.values():
        return None
    with computed(tables, *grids):
        answer = tables.explained({name: round(value, 4) for name, value in values.items()})
    rows = answer.frame.select(*values).rows()
    found = [place for place, row in enumerate(rows) if all(map(is_same, row, values.values()))]
    assert len(found) == 1, (choices, values, answer)
    return found[0], len(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_of_one_tool(kind):
    tables, grids = known(kind)
    draw = random.Random(kind)
    answers = [
        recovered_together(tables, draw.sample([*grids.values()], 2), draw) for _ in range(4)
    ]
    assert any(answers)


@pytest.mark.parametrize("kind", KINDS)
def test_conventions_with_equal_values_are_one_class(kind):
    tables, grids = known(kind)
    for label, grid in grids.items():
        numbers = sorted(grid.values["value"])
        with computed(tables, grid):
            answer = tables.explained(round(numbers[len(numbers) // 2], 4), label)
        values = answer.frame[label].sort()
        assert not any(map(is_same, values, values[1:]))
        held = sum(any(is_same(value, other) for other in values) for value in numbers)
        assert answer.frame["equivalent"].sum() == held > len(values)


def test_gains_of_one_grade_are_one_class():
    label = "ndcg(discount=rank)@3"
    tables, grids = known("binary")
    grid = grids[label]
    with computed(tables, grid):
        answer = tables.explained(grid.own["value"], label, digits=9)
    assert answer.frame["words"][0] == ""
    gains = {choices["gain"] for choices in map(grid.choices, of_value(grid, grid.own["value"]))}
    assert {"linear", "exponential", "binary"} <= gains


def of_value(grid, value):
    return grid.values.filter((pl.col("value") - value).abs() < 1e-12)["convention"]


# ------------------------------------------------------------------ tools


@pytest.mark.parametrize("kind", KINDS)
def test_presets_are_found_on_tables_that_nobody_saw(kind):
    tables, grids = known(kind)
    run, truth = tables.frames
    draw = random.Random(kind)
    for preset in PRESETS:
        label = draw.choice([*grids])
        options = {"preset": preset, **tables.options}
        number = rf.evaluate(run, label, truth=truth, **options)[label].item()
        with computed(tables, grids[label]):
            answer = tables.explained(round(number, 4), label)
        tools = ", ".join(answer.frame["preset"].drop_nulls())
        assert convention_words.tools([preset]) in tools.split(", "), (preset, label)


@pytest.mark.parametrize("tool", ["lightgbm", "catboost"])
def test_numbers_of_tools_are_explained(tool):
    printed = json.loads(RANKERS.read_text())
    groups = pl.DataFrame(
        {"qid": number, "label": label, "score": score}
        for number, group in enumerate(printed["groups"])
        for label, score in zip(group["label"], group["score"], strict=True)
    )
    label = next(name for name in printed[tool]["all"] if name.startswith("ndcg"))
    answer = rf.explain(round(printed[tool]["all"][label], 4), label, groups)
    tools = ", ".join(answer.frame["preset"].drop_nulls()).split(", ")
    assert convention_words.tools([tool]) in tools
    assert answer.frame["fits"].all()


# ------------------------------------------------------------------ chance


@pytest.mark.parametrize("digits", [1, 2, 3])
@pytest.mark.parametrize("label", KINDS["scores"])
def test_said_chance_is_the_rate_of_drawn_numbers(label, digits):
    tables, grids = known("scores")
    said, rate = chances(tables, grids[label], digits, 20_000)
    assert said == pytest.approx(rate, abs=0.03)


def chances(tables, grid, digits, draws):
    """Return how often a drawn number matches some convention: as explain says, and in fact."""
    values, half = sorted(grid.values["value"]), 0.5 * 10**-digits
    found = explanation._classes([grid], [explanation._Number(values[0], digits, "")])
    met, draw = 0, random.Random(digits)
    for _ in range(draws):
        number = round(draw.uniform(values[0] - half, values[-1] + half), digits)
        met += bisect.bisect(values, number - half) < bisect.bisect(values, number + half)
    return found.chance, met / draws


def test_number_without_a_preset_is_never_called_explained():
    tables, grids = known("scores")
    for label, grid in grids.items():
        presets = grid.values.filter(pl.col("convention").is_in([*grid.presets.values()]))
        others = [x for x in grid.values["value"] if (presets["value"] - x).abs().min() > 1e-4]
        with computed(tables, grid):
            answer = tables.explained(round(random.Random(label).choice(others), 4), label)
        assert answer.frame["preset"].is_null().all()
        assert "consistent with" in answer.sentence
        assert "explained by" not in answer.sentence


# ------------------------------------------------------------------ the figures of many draws


def of_draws(number):
    """Yield how often drawn conventions are among the answers, alone and first."""
    one, two = [], []
    for seed in itertools.count():
        for kind in KINDS:
            tables, draw = Drawn(f"drawn {seed}", kind), random.Random(f"{seed}{kind}")
            grids = tables.grids(*METRICS)
            for grid in grids:
                compare(tables, grid, 20, draw)
                one += [recovered(tables, grid, draw) for _ in range(4)]
                pair = [grid, draw.choice([x for x in grids if x is not grid])]
                two.append(recovered_together(tables, pair, draw))
        if len(one) >= number:
            break
    for what, found in (("one number", one), ("two numbers", [*filter(None, two)])):
        alone, first = sum(n == 1 for _, n in found), sum(place == 0 for place, _ in found)
        rates = f"alone {alone / len(found):.1%}, first {first / len(found):.1%}"
        yield f"{what}: {len(found):,} drawn, all found; {rates}"


def of_other_tables(number, *, users):
    """Yield how often numbers of presets on other tables are explained on these."""
    names, half = ["precision@3", "recall@3", "rr", "map", "ap@3", "ndcg@3"], 0.5e-4
    draw, single, several, pairs = random.Random(users), [], [], []
    every = []
    for seed in range(number):
        sizes = {"items": 30, "longest": 12, "users": users}
        if users == 0:  # of tables of all shapes
            sizes = {"items": draw.randint(14, 60), "longest": draw.randint(4, 14)}
            sizes |= {"users": draw.randint(30, 600)}
        every.append(
            dict(zip(names, Drawn(f"other {seed}", "scores", **sizes).grids(*names), strict=True))
        )
    for here, there in itertools.permutations(every, 2):
        for label, preset in itertools.product(names, PRESETS):
            other = draw.choice([name for name in names if name != label])
            fit = []
            for name in (label, other):
                theirs = value_of(there[name], there[name].presets[preset])
                misses = (pl.col("value") - round(theirs, 4)).abs()
                shared = pl.col("convention") // len(here[name].labels)
                fit.append(here[name].values.filter(misses <= half).with_columns(shared=shared))
            single.append(fit[0]["convention"].is_in([*here[label].presets.values()]).any())
            several.append(len(fit[0]) > 0)
            pairs.append(not set(fit[0]["shared"]).isdisjoint(fit[1]["shared"]))
    rates = [f"{sum(x) / len(x):.2%}" for x in (single, pairs, several)]
    yield f"{len(single):,} numbers of other tables, {users or 'any number of'} users: "
    yield f"  a preset {rates[0]}, two numbers {rates[1]}, one number of the whole grid {rates[2]}"


def value_of(grid, convention):
    return grid.values.filter(convention=convention)["value"].item()


if __name__ == "__main__":
    number = int(sys.argv[1])
    figures = [of_draws(number), *(of_other_tables(12, users=n) for n in (0, 100, 1000))]
    for line in itertools.chain.from_iterable(figures):
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()
