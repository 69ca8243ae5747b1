"""How a report looks, measured in a real browser: the card of each outcome, tables, print."""

import html
import json
import re
import subprocess
from pathlib import Path

import polars as pl
import pytest

from tests.report.looks import OLD, OUTCOMES, drawn, of_places, report_of

pytest.importorskip("altair")
pytest.importorskip("vl_convert")

WIDE, PHONE = 1280, 390
MOST_WORDS, MOST_NUMBERS, MOST_HIGH = 80, 22, {WIDE: 320, PHONE: 460}
#: of each doubt
WORDS, NUMBERS, HIGH = 25, 4, {WIDE: 60, PHONE: 90}
SCREEN = 800
NUMBER = r"\d[\d.,]*"
SYSTEMS = 20

#: What the page of frames measures in each of them.
MEASURE = Path(__file__).with_name("looks.js").read_text(encoding="utf-8")


def three_doubts():
    """A third of the users have no list, without whom the answer is another; some items tie."""
    call = of_places(old=OLD, new=OLD)
    missing = (pl.col("model") == "new") & (pl.col("user") % 3 == 0)
    scores = pl.when(pl.col("user") % 4 == 1).then(1.0).otherwise(-pl.col("rank").cast(pl.Float64))
    return {**call, "run": call["run"].remove(missing).with_columns(score=scores).drop("rank")}


def twenty():
    systems = {"popularity": OLD}
    for place in range(1, SYSTEMS):
        odds = [1, 2, 2, 3, 4, 5, None][: 3 + place % 5]
        systems[f"system {place}"] = drawn(place, len(OLD), odds)
    return of_places(**systems)


def search():
    """Queries with texts, and documents with long names, as in public collections."""
    rows = [
        (model, query, f"clueweb09-en{query:04d}-{(place + shift) % 12:02d}-27209", place)
        for model, shifts in {"old": [5, 3, 4], "new": [0, 1, 4, 5]}.items()
        for query, shift in enumerate(shifts * (48 // len(shifts)))
        for place in range(1, 11)
    ]
    truth = [(query, f"clueweb09-en{query:04d}-0{n}-27209") for query in range(48) for n in (1, 6)]
    texts = [
        (query, f"what is the best way to reach topic {query} by train?") for query in range(48)
    ]
    return ("ndcg@10",), {
        "run": pl.DataFrame(rows, schema=["model", "query", "doc", "rank"], orient="row"),
        "truth": pl.DataFrame(truth, schema=["query", "doc"], orient="row"),
        "user": "query",
        "item": "doc",
        "queries": pl.DataFrame(texts, schema=["query", "title"], orient="row"),
        "baseline": "old",
    }


@pytest.fixture(scope="module")
def reports():
    made = {kind: report_of(*asked) for kind, asked in OUTCOMES.items()}
    made["three doubts"] = report_of(["rr", "hit@1"], three_doubts())
    made["twenty"] = report_of(
        ["ndcg@5", "rr"],
        twenty(),
    )
    return made


def opened(browser, folder, *more):
    call = [
        *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--disable-background-networking", "--disable-component-update", "--no-first-run"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"),
        *more,
    ]
    return subprocess.run(call, capture_output=True, text=True, check=True, timeout=300).stdout


@pytest.fixture(scope="module")
def seen(browser, reports, tmp_path_factory):
    """What one process of a browser measures on one page of frames: report, width, scheme."""
    folder, frames = tmp_path_factory.mktemp("looks"), []
    for name, report in reports.items():
        text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", report.html())
        text = text.replace("&", "&amp;").replace('"', "&quot;")
        for width in (WIDE, PHONE):
            for scheme in ("light", "dark"):
                look = f"width: {width}px; height: {SCREEN}px; color-scheme: {scheme}; border: 0"
                key = f"{name} {width} {scheme}"
                frames.append(f'<iframe id="{key}" style="{look}" srcdoc="{text}"></iframe>')
    page = folder / "frames.html"
    page.write_text(f"<body>{''.join(frames)}<script>{MEASURE}</script>", encoding="utf-8")
    told = opened(
        browser,
        folder,
        "--virtual-time-budget=60000",
        "--window-size=1400,900",
        "--dump-dom",
        page.as_uri(),
    )
    found = re.search(r'<pre id="said">(.*?)</pre>', told, re.DOTALL)
    assert found, told[-2000:]
    return json.loads(html.unescape(found[1]))


def words_of(text):
    return [word for word in text.split() if re.search(r"\w", word)]


@pytest.mark.parametrize("kind", OUTCOMES)
def test_a_card_is_short(seen, kind):
    for width, most in MOST_HIGH.items():
        card = seen[f"{kind} {width} light"]
        assert card["kind"] == f"card {kind}"
        assert card["doubts"] == []
        assert len(words_of(card["text"])) <= MOST_WORDS, card["text"]
        assert len(re.findall(NUMBER, card["text"])) <= MOST_NUMBERS, card["text"]
        assert card["high"] <= most


def test_each_doubt_stands_in_full(seen, reports):
    for width, most in MOST_HIGH.items():
        card = seen[f"three doubts {width} light"]
        assert len(card["doubts"]) >= 3
        told = reports["three doubts"].verdict.splitlines()
        doubts = [line[2:] for line in told if line.startswith("⚠ ")]
        assert [line.strip() for line in card["doubts"]] == doubts
        for line in card["doubts"]:
            assert len(words_of(line)) <= WORDS, line
            assert len(re.findall(NUMBER, line)) <= NUMBERS, line
        assert card["doubtsHigh"] <= HIGH[width] * len(card["doubts"])
        assert card["high"] <= most + HIGH[width] * len(card["doubts"])


def test_all_text_can_be_read(seen):
    for key, look in seen.items():
        assert look["dark"] == key.endswith("dark")
        assert look["fonts"] >= 10, key
        assert not look["pale"], (key, look["pale"])


def test_no_table_is_wider_than_its_box(seen):
    for key, look in seen.items():
        assert look["over"] <= int(key.split()[-2]), key
        assert not look["wide"], (key, look["wide"])


def test_twenty_systems_fit_on_two_screens(seen):
    assert seen[f"twenty {WIDE} light"]["lists"] <= 2 * SCREEN


@pytest.mark.parametrize(("name", "most"), [("better", 3), ("twenty", 4), ("search", 3)])
def test_a_report_is_printed_on_few_pages(browser, reports, tmp_path, name, most):
    page, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    made = report_of(*search()) if name == "search" else reports[name]
    made.save(page)
    opened(browser, tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={printed}", page.as_uri())
    assert 0 < len(re.findall(rb"/Type /Page\b", printed.read_bytes())) <= most


def test_a_report_of_two_systems_is_small(reports):
    assert len(reports["better"].html().encode()) <= 300_000
