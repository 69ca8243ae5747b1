"""The sources of the site, and the README's picture; ``notebooks/site/build.py`` makes pages."""

import json
import re
import struct
import tomllib

import live_report
import metric_pages
import pages
import pytest
from requirements import lacking

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


def test_guide_is_in_four_groups_with_every_page():
    text = (
        (SITE / "zensical.toml").read_text().replace("    # METRICS\n", metric_pages.navigation())
    )
    navigation = {}
    for part in tomllib.loads(text)["project"]["nav"]:
        navigation |= part
    guide = {name: of_one for group in navigation["Guide"] for name, of_one in group.items()}
    assert [*guide] == ["Start", "Decide", "Every day", "Under the hood"]
    named = {*re.findall(r'"([\w/]+\.md)"', text)}
    assert {page.name for page in pages.GUIDE} <= named
    assert {*metric_pages.pages()} <= named
