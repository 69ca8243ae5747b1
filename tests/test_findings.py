"""The page of findings is what its script writes from the values beside it."""

from benchmarks import findings


def test_page_is_what_its_script_writes():
    page = findings.PAGE.read_text()
    assert findings.filled(page) == page


def test_sentences_are_those_of_the_tables():
    page = findings.PAGE.read_text()
    overview, gaps = (
        [line.strip("| ").split(" | ") for line in part.splitlines()[2:]]
        for part in (
            page.split(f"<!-- {name} -->\n")[1].split("<!--")[0] for name in ("overview", "gaps")
        )
    )
    web = [row for row in overview if row[0].startswith("Web")]
    for row in web:
        best, systems = map(int, row[8].split(" of "))
        assert best > systems / 2
        assert 0.2 < int(row[5]) / int(row[4]) < 0.3
    assert all(row[7].startswith("0 of") for row in overview if row[1] == "50")
    assert all(float(row[6]) > 0.05 for row in gaps if row[2] == "2")
