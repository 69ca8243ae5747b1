"""The page "Who computes what" is current, and what tools offer is written in the suite's words."""

import pytest
from conformance import page, runner
from conformance.adapters import peers

CASES = [case for path in runner.FILES for case, _ in runner.cases(path)]
OTHER = {"distribution", "changed", "names", "one_table"}


def test_page_is_current():
    assert page.page() == page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", page.OFFERS)
def test_offers_are_fields_and_values_of_cases(tool):
    """A misspelled one would count as not offered."""
    seen = {}
    for case in CASES:
        for field, value in (case | case["metric"]).items():
            seen.setdefault(field, []).append(value)
    for key, values in page.OFFERS[tool].items():
        if key not in OTHER:
            *_, field = key.split()
            assert [value for value in values if value not in seen[field]] == [], key
    named = {
        name.partition(" ")[0].removesuffix("@k") for name in page.OFFERS[tool].get("names", [])
    }
    assert named <= {case["metric"]["name"] for case in CASES}


def test_each_tool_has_an_adapter():
    for tool in page.TOOLS:
        assert callable(getattr(peers, tool.lower().replace("-", "_")))
