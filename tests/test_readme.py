"""What the README prints is what its code prints, and it names every metric."""

import re
from contextlib import redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path

from rankframe.labels import METRICS

README = (Path(__file__).parents[1] / "README.md").read_text()
BLOCKS = re.findall(
    r"^```python\n(.*?)^```\n\n```text\n(.*?)^```$", README, re.DOTALL | re.MULTILINE
)


def test_the_code_prints_what_is_shown():
    assert README.count("```python") == len(BLOCKS) > 2
    names: dict[str, object] = {}
    for code, shown in BLOCKS:
        if ".style" in code and find_spec("great_tables") is None:
            continue
        printed = StringIO()
        with redirect_stdout(printed):
            exec(code, names)
        assert printed.getvalue() == shown


def test_every_metric_is_in_the_table():
    table = README.split("## Metrics")[1].split("## Conventions")[0]
    for name in METRICS:
        assert f"`{name}`" in table


def test_every_public_name_is_told():
    import rankframe as rf

    for name in rf.__all__:
        if name not in ("RankFrame", "metric"):
            assert name in README, name
