"""The page "Who computes what" is current, and what tools offer is written in the suite's words."""

import json

import pytest
from conformance import page
from conformance.adapters import peers

SCHEMA = (page.HERE / "schema.json").read_text(encoding="utf-8")
OTHER = {"distribution", "changed", "names", "one_table"}


def test_page_is_current():
    assert page.page() == page.PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("tool", page.OFFERS)
def test_offers_are_written_as_in_the_schema(tool):
    """A misspelled name would count as not offered."""
    offers = page.OFFERS[tool]
    words = {key for key in offers if key not in OTHER} | {*offers.get("names", ())}
    words = {word.removesuffix("@k") for text in words for word in text.split()}
    words |= {*offers.get("changed", ())}
    for key, values in offers.items():
        words |= {x for x in values if isinstance(x, str)} if key in words else set()
    assert [word for word in words if json.dumps(word) not in SCHEMA] == []


def test_each_tool_has_an_adapter():
    for tool in page.TOOLS:
        assert callable(getattr(peers, tool.lower().replace("-", "_")))
