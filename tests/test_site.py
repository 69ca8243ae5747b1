"""The sources of the site, and the README's picture; ``notebooks/site/build.py`` makes pages."""

import json
import random
import re
import struct
import tomllib

import live_report
import metric_pages
import numpy as np
import pages
import polars as pl
import pytest
from requirements import lacking

import rankframe as rf
from rankframe import trec
from rankframe._command.main import main

SITE = pages.TOP / "notebooks" / "site"


def test_picture_says_the_verdict_of_its_report():
    try:
        picture = live_report.picture()
    except FileNotFoundError as error:
        lacking(str(error))
    assert picture in pages.PAGES[0].read_text()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_picture_is_small(scheme):
    content = (pages.TOP / "notebooks" / f"report-{scheme}.png").read_bytes()
    width, height, _, kind = struct.unpack(">IIBB", content[16:26])
    assert (width, kind) == (2 * 760, 3)  # a palette
    assert height < width
    assert len(content) < 60_000


def test_pictures_have_words():
    for page in pages.PAGES:
        for alt in re.findall(r"!\[(.*?)\]\(", page.read_text()):
            assert len(alt.split()) > 3, page
    for path in (pages.TOP / "notebooks").glob("*.ipynb"):
        for cell in json.loads(path.read_text())["cells"]:
            for output in cell.get("outputs", []):
                if svg := "".join(output.get("data", {}).get("image/svg+xml", [])):
                    assert len(live_report.alt_of(svg).split()) > 3, path


def test_situations_of_the_front_page_have_calls_that_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(0)
    scores = {f"q{q}": {f"d{d}": drawn.random() for d in range(20)} for q in range(40)}
    truth = rf.from_grades({q: {f"d{d}": 1 for d in range(int(q[1:]) % 5 + 1)} for q in scores})
    run = rf.from_scores(scores)
    table = SITE.joinpath("index.md").read_text().split("| page |\n")[1].split("\n\n")[0]
    calls = [row.split(" | ")[2].strip("`") for row in table.splitlines()[1:]]
    assert len(calls) == 10
    names = {"rf": rf, "pl": pl, "run": run, "truth": truth, "llm": truth, "S": np.eye(3)}
    names["labels"] = truth.filter(pl.col("user").str.ends_with("5"))
    names["runs"] = {"old": run, "new": run.with_columns(-pl.col("score"))}
    names["answers"] = pl.DataFrame({"question": ["q"], "found": [["a"]], "expected": [["a"]]})
    trec.write_run(run, "run.txt")
    trec.write_qrels(truth, "qrels.txt")
    for call in calls:
        if call.startswith("rankframe "):
            assert main(call.split()[1:]) == 0
        else:
            eval(call, names)


def test_guide_is_in_groups_of_what_a_reader_wants_with_every_page():
    text = (
        (SITE / "zensical.toml").read_text().replace("    # METRICS\n", metric_pages.navigation())
    )
    navigation = {}
    for part in tomllib.loads(text)["project"]["nav"]:
        navigation |= part
    guide = {name: of_one for group in navigation["Guide"] for name, of_one in group.items()}
    assert all(name.startswith(("I have ", "I want ")) for name in guide)
    named = {*re.findall(r'"([\w/]+\.md)"', text)}
    assert {page.name for page in pages.GUIDE} <= named
    assert {*metric_pages.pages()} <= named
