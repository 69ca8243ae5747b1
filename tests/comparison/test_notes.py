"""Notes are kinds and values, and their templates one page."""

import re
from pathlib import Path
from string import Formatter

import polars as pl
import pytest

import rankframe as rf
from rankframe._comparison import notes
from rankframe._comparison.notes import Nouns

SOURCE = Path(rf.__file__).parent
TEMPLATES = {**notes.templates("notes")}


def test_templates_are_used_and_notes_have_one():
    source = "".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    assert {*TEMPLATES} <= {*re.findall(r'"(\w+)"', source)}
    kinds = {*re.findall(r'\bnote\(\s*"(\w+)"', source)}
    assert len(kinds) > 20
    assert kinds <= {*TEMPLATES}


def sample(spec):
    """Return a value that a field may have."""
    return "NAME" if not spec else 1_234.5 if spec[-1] in "gf%" else 1_234


@pytest.mark.parametrize("kind", TEMPLATES)
def test_template_has_the_nouns_of_the_caller(kind):
    fields = [(name, spec) for _, name, spec, _ in Formatter().parse(TEMPLATES[kind]) if name]
    nouns = Nouns("query", "document")
    values = {name: sample(spec) for name, spec in fields if name not in nouns.words}
    text = nouns.write(TEMPLATES[kind], unit="user", **values)
    assert not re.search(r"\b(users?|items?)\b|[{}\[\]]", text)


def test_one_user_is_no_evidence():
    text = Nouns().write(TEMPLATES["unserved"], number=1)
    assert text == "1 user has no list of either system, and is no evidence for the margin"


def test_template_counts_chooses_and_leaves_out():
    write = Nouns("query").write
    template = "{number:user} {number:has|have} no list[ of {system}][ in {group}]"
    assert write(template, number=1) == "1 query has no list"
    assert write(template, number=1200, system="a") == "1,200 queries have no list of a"
    assert write("{number:unit}", number=2, unit="cluster") == "2 clusters"


def test_notes_pass_through_a_column():
    made = [
        notes.note("few_users", number=3),
        notes.note("no_list", missed=1, number=3, system="a; [b]"),
    ]
    table = pl.DataFrame({"note": [None, notes.packed(made)]}, schema={"note": pl.String})
    table = table.with_columns(notes.noted(notes.note("primary")))
    assert notes.unpacked(table["note"][1]) == [*made, notes.note("primary")]
    left = notes.without(table["note"], ["primary"])
    assert left.to_list() == [None, notes.packed(made)]
    few = "3 users, too few for a sure test; 1 of 3 users has no list of a; [b]"
    assert notes.in_words(left).to_list() == [None, few]
