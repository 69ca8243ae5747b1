"""The page of findings is what its script writes from the values beside it."""

from benchmarks import findings


def test_page_is_what_its_script_writes():
    page = findings.PAGE.read_text()
    assert findings.filled(page) == page
