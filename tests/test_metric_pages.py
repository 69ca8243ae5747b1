"""The pages of all metrics are made from the docstrings, are current, and leave nothing out."""

import re

import metric_pages
import polars as pl
import pytest

from rankframe import metrics
from rankframe._request.labels import every_entry
from rankframe._request.registry import COLUMNS
from rankframe.presets import PRESETS


@pytest.fixture(scope="module")
def page():
    return "\n".join(metric_pages.pages().values())


def test_index_is_current():
    index = metric_pages.index(metric_pages.in_repository)
    assert metric_pages.PAGE.read_text(encoding="utf-8") == index


def test_frame_of_metrics_says_what_the_page_says(page):
    frame = metrics.describe()
    assert [*frame["label"]] == re.findall(r"^- \*\*Label:\*\* `(.*?)`", page, re.MULTILINE)
    better = re.findall(r"^- \*\*Range:\*\* .*?(?:; (\w+) is better)?$", page, re.MULTILINE)
    assert [direction or "" for direction in frame["direction"]] == better
    assert frame["definition"].null_count() == frame["question"].null_count() == 0
    read = frame.filter(label="precision@k").row(0, named=True)
    assert (read["low"], read["high"], read["reads"]) == (0, 1, ["rank", "relevant"])
    assert read["presets"] == ["lenskit", "elasticsearch", "implicit", "surprise"]


def test_index_links_each_metric_to_its_section():
    index, *families = metric_pages.pages().items()
    pages = dict(families)
    links = re.findall(r"\]\((metrics/\w+\.md)#(\w+)\)", index[1])
    for family, function in links:
        assert f"\n## {function}\n" in pages[family]
    assert [function for _, function in links] == [e.function.__name__ for e in every_entry()]
    assert max(len(text.splitlines()) for text in pages.values()) < 400
    assert all(f'"{name}"' in metric_pages.navigation() for name in pages)


def test_section_has_label_spellings_parameters_value_and_what_is_read(page):
    assert "``" not in page
    sections = dict(part.partition("\n")[::2] for part in page.split("\n## ")[1:])
    for entry in every_entry():
        name = entry.function.__name__
        section = sections[name]
        assert f"**Label:** `{entry.plain}" in section
        assert re.search(r"\n\*[A-Z][^*]+[.?]\*\n", section), f"{name}: in_words"
        spellings = section.split("**Label:**")[1].split("\n")[0]
        assert spellings.count("`") == 2 * (1 + len(entry.aliases)), name
        if name in ("gm_map", "gm_bpref", "num_users"):  # means over users of trec_eval
            continue
        assert "**Value:**" in section, name
        assert re.search("Null (for|where)", section), name
        assert "\nReads `" in section or "\nReads what `" in section, name
        for parameter in entry.function.__wrapped__.__annotations__.keys() - {"return"}:
            entry_of = rf"^  - `[\w, ]*\b{parameter}\b"
            assert re.search(entry_of, section, re.MULTILINE), (name, parameter)


def test_vocabulary_is_whole(page):
    for name, column in COLUMNS.items():
        assert f"| `{name}` | {column.meaning} |" in page


def test_table_of_presets_is_current_and_whole():
    page = metric_pages.TOOLS.read_text(encoding="utf-8")
    assert page == metric_pages.with_presets(page)
    for name, preset in PRESETS.items():
        row = re.search(rf"^\| .*`{name}`.* \|$", page, re.MULTILINE)[0]
        assert all(f"`{label}`: " in row for label in preset.get("defaults", {}))


@pytest.mark.parametrize(
    ("name", "in_ties"),
    [
        ("gini_at", "the exact expectation without k, else an error"),
        ("category_count_at", "an error"),
        ("popularity_at", "the exact expectation"),
    ],
)
def test_section_has_what_equal_scores_do(page, name, in_ties):
    section = page.split(f"\n## {name}\n")[1].split("\n## ")[0]
    assert f"\n- **Equal scores as blocks:** {in_ties}\n" in section
    entry = next(entry for entry in every_entry() if entry.function.__name__ == name)
    run = pl.DataFrame({"user": [1, 1], "item": ["a", "b"], "score": 1.0})
    tied = run.rank.with_rank(ties="expected")
    tables = {
        "items": pl.DataFrame({"item": ["a", "b"], "genre": [["x"], ["y"]]}),
        "history": pl.DataFrame({"user": [1], "item": ["a"]}),
    }
    for label, cut in ((entry.plain, False), (f"{entry.plain}@1", True)):
        if name == "category_count_at" and not cut:
            continue
        if in_ties == "an error" or (cut and "without k" in in_ties):
            with pytest.raises(ValueError, match="no exact expectation under ties"):
                tied.rank.evaluate(label, **tables)
        else:
            assert tied.rank.evaluate(label, **tables).height == 1
