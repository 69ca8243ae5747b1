"""What a real browser shows of reports: one page of frames, and several looks at it.

The card of each outcome, tables, names, keys, requests, print.
"""

import functools
import html
import json
import re
import shutil
import subprocess
from pathlib import Path
from urllib.parse import quote

import polars as pl
import pytest
import requirements

import rankframe as rf
from tests.report import samples
from tests.report.elements import Elements, listed, people_of
from tests.report.looks import OLD, OUTCOMES, drawn, of_places, report_of

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


@functools.cache
def reports():
    asked = {**OUTCOMES, "three doubts": (["rr", "hit@1"], three_doubts())}
    asked["twenty"] = (["ndcg@5", "rr"], twenty())
    return {kind: report_of(*one) for kind, one in asked.items()}


def of_long_items():
    long = pl.concat_str(pl.col("item").cast(pl.String), pl.lit("x" * 200))
    run, truth = (frame.with_columns(item=long) for frame in (samples.RUN, samples.TRUTH))
    return rf.report(run, "map", truth=truth, baseline="old")


#: What a page does before it is looked at, and keeps in ``data-said`` of its root.
KEYS = Path(__file__).with_name("keys.js").read_text(encoding="utf-8")
THEFT = """addEventListener("load", () =>
  document.documentElement.setAttribute("data-said", String(window.stolen)));"""
WIDE_LISTS = """addEventListener("load", () => {
  for (const one of document.querySelectorAll(".people details")) one.open = true;
  const lists = [...document.querySelectorAll(".people .wide")];
  const wide = lists.filter((one) => one.scrollWidth > one.clientWidth + 1).length;
  document.documentElement.setAttribute("data-said", `${wide} of ${lists.length}`);
});"""
REQUEST = "http://example.invalid/one.png"
#: pages with a script of the test
DOERS = ("keys", "hostile", "hostile static", "long items")


def frames():
    """The pages of a session by name, and its frames: page, fragment, width, scheme."""
    pages, shown = {"control": f"<img src={REQUEST}>"}, {"control": ("control", "", WIDE, "light")}
    for place, (name, report) in enumerate({**reports(), "segments": samples.report()}.items()):
        pages[name] = samples.page_of(report)
        for width, scheme in (
            [(WIDE, "light"), (PHONE, "dark")] if place % 2 else [(WIDE, "dark"), (PHONE, "light")]
        ):
            shown[f"{name} {width} {scheme}"] = (name, "", width, scheme)
    explored, hostile = samples.page_of(samples.explored()), samples.page_of(samples.hostile())
    keys = KEYS.replace("USER", people_of(explored)[7]["user"])
    pages["keys"] = f"{explored}<script>{keys}</script>"
    pages["hostile"] = f"{hostile}<script>{THEFT}</script>"
    static = samples.page_of(samples.hostile(), static=True)
    pages["hostile static"] = f"{static}<script>{THEFT}</script>"
    static = samples.page_of(of_long_items(), static=True)
    pages["long items"] = f"{static}<script>{WIDE_LISTS}</script>"
    for name in DOERS:
        shown[name] = (name, "", WIDE, "light")
    shown["long items, narrow"] = ("long items", "", 500, "light")
    key = quote(people_of(hostile)[7]["user"], safe="")
    shown["hostile, a user"] = ("hostile", f"#user={key}", WIDE, "light")
    shown["hostile, no user"] = ("hostile", f"#user={quote(samples.WORSE, safe='')}", WIDE, "light")
    return pages, shown


def opened(folder, *more):
    """Open a page in a browser: what it writes, and what the console says."""
    browser = next(
        filter(None, map(shutil.which, ["chromium", "chromium-browser", "chrome"])), None
    )
    if browser is None:
        requirements.lacking("there is no Chromium: apt-get install chromium")
    call = [
        *(browser, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"),
        *("--disable-background-networking", "--disable-component-update", "--no-first-run"),
        *("--host-resolver-rules=MAP * ~NOTFOUND", f"--user-data-dir={folder / 'profile'}"),
        *("--enable-logging=stderr", "--allow-file-access-from-files", *more),
    ]
    done = subprocess.run(call, capture_output=True, text=True, check=True, timeout=300)
    return done.stdout, [line for line in done.stderr.splitlines() if "CONSOLE" in line]


@pytest.fixture(scope="module")
def session(tmp_path_factory):
    """What one process of a browser shows in each frame, and asks of the network."""
    folder, (pages, shown) = tmp_path_factory.mktemp("looks"), frames()
    for name, text in pages.items():
        if name in DOERS:  # without the policy, whose refusal would hide a hole
            text = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
        (folder / f"{name}.html").write_text(text, encoding="utf-8")
    marks = [
        f'<iframe id="{key}" class="{"doer" if page in DOERS else ""}" '
        f'src="{quote(page)}.html{fragment}" style="width: {width}px; '
        f'height: {SCREEN}px; color-scheme: {scheme}; border: 0"></iframe>'
        for key, (page, fragment, width, scheme) in shown.items()
    ]
    host, log = folder / "frames.html", folder / "net.json"
    host.write_text(f"<body>{''.join(marks)}<script>{MEASURE}</script>", encoding="utf-8")
    dom, console = opened(
        folder, "--virtual-time-budget=60000", "--window-size=1400,900", f"--log-net-log={log}",
        "--dump-dom", host.as_uri(),
    )  # fmt: skip
    found = re.search(r'<pre id="said">(.*?)</pre>', dom, re.DOTALL)
    assert found, dom[-2000:]
    events = [one.get("params", {}) for one in json.loads(log.read_text("utf-8"))["events"]]
    # the browser asks for updates of its own, which no page has initiated
    asked = {
        one["url"] for one in events if "url" in one and "file:" in one.get("site_for_cookies", "")
    }
    return {"seen": json.loads(html.unescape(found[1])), "console": console, "asked": asked}


@pytest.fixture(scope="module")
def looks(session):
    """What each frame of a report looks like."""
    return {
        key: one for key, one in session["seen"].items() if key.split()[-1] in ("light", "dark")
    }


@pytest.fixture(scope="module")
def roots(session):
    """The pages that do something, as they are then."""
    return {key: one for key, one in session["seen"].items() if isinstance(one, str)}


def words_of(text):
    return [word for word in text.split() if re.search(r"\w", word)]


def root_of(roots, name):
    return Elements(roots[name]).all("html")[0]


def looks_of(looks, name):
    """The look of a report at each width."""
    return {
        width: look
        for key, look in looks.items()
        for width in MOST_HIGH
        if key.startswith(f"{name} {width} ")
    }


@pytest.mark.parametrize("kind", OUTCOMES)
def test_card_is_short(looks, kind):
    for width, card in looks_of(looks, kind).items():
        assert card["kind"] == f"card {kind}"
        assert card["doubts"] == []
        assert len(words_of(card["text"])) <= MOST_WORDS, card["text"]
        assert len(re.findall(NUMBER, card["text"])) <= MOST_NUMBERS, card["text"]
        assert card["high"] <= MOST_HIGH[width]


def test_doubts_stand_in_full(looks):
    told = reports()["three doubts"].verdict.splitlines()
    for width, card in looks_of(looks, "three doubts").items():
        assert len(card["doubts"]) >= 3
        assert [f"⚠ {line.strip()}" for line in card["doubts"]] == [
            line for line in told if line.startswith("⚠ ")
        ]
        for line in card["doubts"]:
            assert len(words_of(line)) <= WORDS, line
            assert len(re.findall(NUMBER, line)) <= NUMBERS, line
        assert card["doubtsHigh"] <= HIGH[width] * len(card["doubts"])
        assert card["high"] <= MOST_HIGH[width] + HIGH[width] * len(card["doubts"])


def test_text_can_be_read_in_light_and_dark(looks):
    assert len(looks) == 2 * (len(reports()) + 1)
    for key, look in looks.items():
        assert look["dark"] == key.endswith("dark")
        assert look["fonts"] >= 10, key
        assert not look["pale"], (key, look["pale"])


def test_tables_are_no_wider_than_their_box(looks):
    for key, look in looks.items():
        assert look["over"] <= int(key.split()[-2]), key
        assert not look["wide"], (key, look["wide"])


def test_twenty_systems_fit_on_two_screens(looks):
    assert looks_of(looks, "twenty")[WIDE]["lists"] <= 2 * SCREEN


def test_page_has_each_section_and_no_error(session, looks):
    parts = {"lists", "made", "over-k", "table", "users", "verdict"}
    assert {*looks_of(looks, "segments")[WIDE]["parts"]} >= parts
    assert [line for line in session["console"] if REQUEST not in line] == []


def test_page_asks_nobody(session):
    assert {url for url in session["asked"] if not url.startswith(("file:", "data:"))} == {REQUEST}


@pytest.mark.parametrize("name", ["hostile", "hostile static"])
def test_names_do_not_run(roots, name):
    assert root_of(roots, name)["data-said"] == "undefined"


def test_fragment_is_a_key_to_look_up(roots):
    people = people_of(samples.page_of(samples.hostile()))
    for name, user in [("hostile, a user", people[7]), ("hostile, no user", people[0])]:
        elements = Elements(roots[name])
        assert not elements.all("img")
        assert not any(key.startswith("on") for one in elements.found for key in one)
        (panel,) = elements.all("article")
        assert user["user"] in panel["text"]


def test_users_are_filtered_and_walked_by_keys(roots):
    people = people_of(samples.page_of(samples.explored()))
    said = json.loads(root_of(roots, "keys")["data-said"])

    def names(*lines):
        return [line.split(":")[0] for line in lines]

    first = f"user {people[0]['user']}"
    assert names(*said[:3]) == [f"user {people[place]['user']}" for place in (0, 1, 2)]
    swedish = [f"user {one['user']}" for one in people if one["segments"] == ["country: SE"]]
    assert said[3] == f"{len(swedish)} of 12"
    assert names(said[4])[0] in swedish
    film = [
        f"user {one['user']}"
        for one in people
        if any("film 7" in title for title in (*one["history"], *one["missed"], *listed(one)))
    ]
    assert said[5:7] == ["12 of 12", f"{len(film)} of 12"]
    assert len(said[7]) == 1  # one tab stop
    assert {*said[7]} <= {*film}
    assert 1 < len(film) < 12
    assert said[8:12] == ["0 of 12", False, 0, "12 of 12"]  # no lists of another user, no entry
    assert said[12] == said[14] == "12 of 12"
    assert names(said[13], said[15]) == [f"user {people[-1]['user']}", first]
    assert names(said[16]) == [f"user {people[7]['user']}"]
    assert said[17:] == [f"#user={people[7]['user']}", people[7]["place"], 0]


@pytest.mark.parametrize("name", ["long items", "long items, narrow"])
def test_long_items_leave_room_for_the_other_list(roots, name):
    assert re.fullmatch(r"0 of [1-9]\d*", root_of(roots, name)["data-said"])


@pytest.mark.parametrize(("name", "most"), [("twenty", 4), ("search", 3)])
def test_report_is_printed_on_few_pages(tmp_path, name, most):
    page, printed = tmp_path / "report.html", tmp_path / "report.pdf"
    made = report_of(*search()) if name == "search" else reports()[name]
    made.save(page)
    opened(tmp_path, "--no-pdf-header-footer", f"--print-to-pdf={printed}", page.as_uri())
    assert 0 < len(re.findall(rb"/Type /Page\b", printed.read_bytes())) <= most


def test_report_of_two_systems_is_small():
    assert len(samples.page_of(reports()["better"]).encode()) <= 300_000
