"""One row, one decision: every verb reads the outcome of a row, and nobody decides it again."""

import ast
import functools
from pathlib import Path

import polars as pl
import pytest

import rankframe as rf

ROOMS = ("_comparison", "_report", "plot")
SOURCE = Path(rf.__file__).parent
#: Comparisons with a level that are of no p-value: of numbers of resamples, and of power.
NO_P_VALUES = {
    "dropped <= tail * len(spread)",
    "dropped > times * keywords.alpha_of(confidence) / 2",
    "power <= (alpha := keywords.alpha_of(confidence))",
    "design.power <= keywords.alpha_of(design.confidence)",
    "trial.confidence < 0.5",
}
_LEVELS = {"alpha", "tail", "level", "confidence", "alpha_of"}


def _names(node):
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | {
        part.attr for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }


@functools.cache
def _every_node():
    paths = [path for room in ROOMS for path in sorted((SOURCE / room).glob("*.py"))]
    return [(p.name, node) for p in paths for node in ast.walk(ast.parse(p.read_text("utf-8")))]


def _nodes(kind):
    return [(name, node) for name, node in _every_node() if isinstance(node, kind)]


def test_p_values_meet_levels_in_one_place():
    orders = ast.Lt | ast.LtE | ast.Gt | ast.GtE
    compared = [
        (name, ast.unparse(node))
        for name, node in _nodes(ast.Compare)
        if _names(node) & _LEVELS and any(isinstance(op, orders) for op in node.ops)
    ]
    of_p = [place for place in compared if place[1] not in NO_P_VALUES]
    assert of_p == [("decision.py", "p < level")]
    assert {text for _, text in compared} >= NO_P_VALUES


def test_levels_are_made_of_confidences_by_one_function():
    """1 − 0.95 is above 0.05 in floats."""
    differences = [
        (name, ast.unparse(node))
        for name, node in _nodes(ast.BinOp)
        if isinstance(node.op, ast.Sub)
        and ast.unparse(node.left) in ("1", "1.0")
        and "confidence" in _names(node.right)
        and "alpha_of" not in _names(node.right)
    ]
    assert differences == []


def values(old, new, **columns):
    users = {"user": range(len(old)), **columns}
    return pl.concat(
        pl.DataFrame({"model": name, **users, "rr": of_users})
        for name, of_users in (("old", old), ("new", new))
    )


def of_ranks(old, new, **columns):
    """The same as lists, whose reciprocal ranks are the values."""
    runs = {
        name: pl.DataFrame({"user": range(len(ranks)), "item": "a", "rank": ranks})
        for name, ranks in (("old", old), ("new", new))
    }
    return runs, pl.DataFrame({"user": range(len(old)), "item": "a", **columns})


ALIKE = [1] * 40, [2] * 40
CASES = {
    "all lose alike": (*ALIKE, {}, "worse"),
    "all gain alike": (*ALIKE[::-1], {}, "better"),
    "two of three lose alike": ([1] * 3, [2] * 3, {}, "undecided"),
    "two shops lose alike": (*ALIKE, {"shop": ["a", "b"] * 20}, "undecided"),
    "eight shops lose alike": (*ALIKE, {"shop": [*"abcdefgh"] * 5}, "worse"),
    "few differ": ([1] * 60, [2] * 5 + [1] * 55, {}, "undecided"),
    "six of sixty lose": ([1] * 60, [2] * 6 + [1] * 54, {}, "worse"),
    "many lose": ([1, 2] * 30, [2, 3, 1] * 20, {}, "worse"),
    "identical": ([1, 2] * 20, [1, 2] * 20, {}, None),
}


@pytest.mark.parametrize("name", CASES)
def test_compare_gate_table_and_report_have_one_answer(name):
    old, new, columns, verdict = CASES[name]
    runs, truth = of_ranks(old, new, **columns)
    options = {"truth": truth, "baseline": "old"} | ({"cluster": "shop"} if columns else {})
    (row,) = rf.compare(runs, "rr", **options).rows(named=True)
    assert row["verdict"] == verdict
    (gated,) = rf.gate(runs, "rr", undecided="pass", **options).rows(named=True)
    assert gated["passed"] is (verdict != "worse"), gated["why"]
    assert gated["why"].startswith("worse: ") is (verdict == "worse")
    (marked,) = rf.table(runs, "rr", **options).frame.filter(model="new").rows(named=True)
    assert (marked["better"], marked["worse"]) == (verdict == "better", verdict == "worse")
    text = str(rf.report(runs, "rr", **options))
    for word in ("better", "worse"):
        assert (f"new is {word} than old." in text) is (verdict == word), text
    assert ("new and old are identical." in text) is (verdict is None)


@pytest.mark.parametrize("correction", ["holm", None])
@pytest.mark.parametrize("lost", [0, 1, 3, 19, 30, 400])
def test_margin_has_one_answer_in_compare_and_in_gates(lost, correction):
    """Also where the share of losers bounds the loss; both at one level."""
    table = values([1.0] * 1000, [0.5] * lost + [1.0] * (1000 - lost))
    options = {"baseline": "old", "margin": 0.02, "correction": correction}
    (row,) = rf.compare(table, "rr", **options, confidence=0.975).rows(named=True)
    (gated,) = rf.gate(table, "rr", **options, confidence=0.95).rows(named=True)
    within = ("equivalent", "not worse", "worse, by less than the margin")
    assert gated["passed"] is (row["verdict"] in within), (gated["why"], row["verdict"])
    if 0 < lost < 20:
        assert row["note"].endswith(gated["why"].partition(": ")[2].partition(" so the")[0]) or (
            "users lose" in row["note"] or "user" in row["note"]
        )


def test_outcome_of_a_gain_within_the_margin_is_one():
    """A gain that is proved and too small to matter is the same for compare, table and report."""
    runs, truth = of_ranks([2] * 3000, [1] * 40 + [2] * 2960)
    options = {"truth": truth, "baseline": "old"}
    (row,) = rf.compare(runs, "rr", margin=0.05, **options).rows(named=True)
    assert row["p_adjusted"] < 0.05
    assert row["verdict"] == "equivalent"
    assert "the same for practical purposes" in str(rf.report(runs, "rr", margin=0.05, **options))
