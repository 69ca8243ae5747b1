"""The conformance suite: rankframe passes, the files are right, and known errors are caught."""

import json
import re
from itertools import chain, combinations
from math import isclose, log2

import pytest
from conformance import make, runner
from conformance.adapters import rankframe as adapter
from jsonschema import Draft202012Validator

CASES = {case["id"]: (case, tables) for path in runner.FILES for case, tables in runner.cases(path)}
of_each_file = pytest.mark.parametrize("path", runner.FILES, ids=lambda path: path.stem)


@of_each_file
def test_rankframe_passes(path):
    found = adapter.numbers(runner.cases(path))
    results = {
        case["id"]: runner.outcome(lambda case, _: found[case["id"]], case, tables)
        for case, tables in runner.cases(path)
    }
    assert {key: text for key, text in results.items() if text != "passed"} == {}


def test_values_of_users():
    for case, tables in runner.cases(runner.HERE / "who_counts.json"):
        if "per_user" in case:
            assert rounded(adapter.values(case, tables)) == rounded(case["per_user"]), case


def rounded(values):
    return {user: value if value is None else round(value, 12) for user, value in values.items()}


def test_files_fit_the_schema():
    validator = Draft202012Validator(json.loads((runner.HERE / "schema.json").read_text()))
    for path in runner.FILES:
        file = json.loads(path.read_text())
        assert [error.message for error in validator.iter_errors(file)] == []
        assert {case["tables"] for case in file["cases"]} == set(file["tables"])
        assert all(case["id"].startswith(f"{path.stem}-") for case in file["cases"])


def test_no_case_is_there_twice():
    ids = [case["id"] for path in runner.FILES for case, _ in runner.cases(path)]
    reasons = [case["why"] for case, _ in CASES.values()]
    assert len(set(ids)) == len(ids)
    assert sorted(reasons) == sorted(set(reasons))
    questions = [
        json.dumps([tables, {key: x for key, x in case.items() if key not in ("id", "why")}])
        for case, tables in CASES.values()
    ]
    assert len(set(questions)) == len(questions)


@of_each_file
def test_numbers_follow_from_tables(path):
    """The files are what the definitions in make.py give."""
    assert make.completed(path.read_text()) == path.read_text()


def test_derivations_give_their_numbers():
    def mean(*values):
        return sum(values) / len(values)

    for case, _ in CASES.values():
        if case["expect"] is None:
            assert case["derivation"] == "undefined"
            continue
        expression = case["derivation"].replace("^", "**")
        assert not re.search(r"[\d)]\.|\.\d", expression)
        value = eval(expression, {"__builtins__": {}, "log2": log2, "mean": mean})
        assert isclose(value, case["expect"], rel_tol=1e-14), case


FIELDS = (
    *("users", "undefined", "average", "ties", "score_order", "score_precision", "duplicates"),
    *("unjudged", "first_rank", "gaps", "divide_by", "gain", "ideal", "discount", "points"),
)


def number_with(case, tables, field, value):
    """Derive the number with another value of a field; None if it does not fit the tables."""
    metric = case["metric"] | ({} if field in case else {field: value})
    try:
        return make.complete(case | {field: value, "metric": metric}, tables)["expect"]
    except (TypeError, ValueError):  # ids that are no numbers, ties without a rule
        return case["expect"]


@pytest.mark.thorough
def test_each_choice_changes_a_number():
    """Of any two values of a field, some case has one, and another number with the other."""
    having = {}
    for case, tables in CASES.values():
        metric = case["metric"]
        for field in FIELDS:
            owner, holder = (None, case) if field in case else (metric["name"], metric)
            if field in holder and not isinstance(holder[field], dict):
                of_field = having.setdefault((owner, field), {})
                if holder[field] is not None or field == "undefined":  # else the tables have none
                    of_field.setdefault(holder[field], []).append((case, tables))
    for where, values in having.items():
        for one, other in combinations(values, 2):
            changes = chain(
                ((*pair, other) for pair in values[one]), ((*pair, one) for pair in values[other])
            )
            assert any(
                number_with(case, tables, where[1], value) != case["expect"]
                for case, tables, value in changes
            ), (where, one, other)
