"""The README and the pages of the guide: their code runs, and prints the text below it.

``python -m tests.pages`` writes what the code prints into the pages.
"""

import re
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

TOP = Path(__file__).parents[1]
GUIDE = sorted((TOP / "notebooks").glob("*.md"))
PAGES = [TOP / "README.md", TOP / "src" / "rankframe" / "SKILL.md", *GUIDE]

#: A block of code, and the text that it prints, if it prints any.
BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$(?:\n\n```text\n(?P<shown>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)


def printed(page: Path) -> list[tuple[str, str]]:
    """Run the blocks of a page in one namespace: the text shown below each, and what it prints."""
    names: dict[str, object] = {}
    pairs: list[tuple[str, str]] = []
    for block in BLOCK.finditer(page.read_text()):
        out = StringIO()
        with redirect_stdout(out):
            exec(compile(block["code"], str(page), "exec"), names)
        pairs.append((block["shown"] or "", out.getvalue()))
    return pairs


def written(page: Path) -> str:
    """Write the page with what its code prints."""
    outputs = iter([text for _, text in printed(page)])

    def block(found: re.Match[str]) -> str:
        code = f"```python\n{found['code']}```"
        text = next(outputs)
        return f"{code}\n\n```text\n{text}```" if text else code

    return BLOCK.sub(block, page.read_text())


if __name__ == "__main__":
    for path in PAGES:
        path.write_text(written(path))
