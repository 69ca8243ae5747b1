"""The reference of the site: a page per public name, a table of all, the gallery, and llms.txt."""

import functools
import pprint
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import griffe
from live_report import CHARTS, alt_of

import rankframe as rf
from rankframe import _rooms
from rankframe.presets import PRESETS

#: What people look for, and the names that serve it; a name that is in no group is under More.
GROUPS = {
    "Evaluate": "evaluate per_user judge with_rank as_dict provenance sql",
    "Compare": "compare summarize gate stats",
    "Show": "report table plot",
    "Read": "from_scores from_grades from_lists runs trec",
    "Big": "Meter parts spark",
    "Check": "check health RankingDataError",
    "Own metrics": "register_metric metrics.register_column metrics.of_label "
    "metrics.rows metrics.describe",
    "Types": "typing",
}
SOURCES = Path(__file__).parents[2] / "src"
#: Rooms of which each function has a page, and those that are imported by name.
_BY_IMPORT = ("trec", "spark", "typing")
_ROOMS = ("stats", "runs", "plot", "parts", *_BY_IMPORT)
_COLUMNS = 98  # of a block of code at 1280 px
_NO_PAGE = ("metrics", "presets", *_ROOMS)


def write_pages(pages: Path) -> str:
    """Write all pages of the reference; return their entries in the navigation."""
    folder = pages / "reference"
    folder.mkdir(exist_ok=True)
    overview = [
        "# Reference\n",
        "One page per function, and [all metrics](../metrics.md) by family.\n",
    ]
    navigation: list[str] = []
    for group, names in _groups().items():
        overview += [f"## {group}\n", "| name | what |", "|---|---|"]
        navigation.append(f'    {{ "{group}" = [')
        for name in names:
            folder.joinpath(f"{name}.md").write_text(_page(name, pages))
            overview.append(f"| [`{_shown(name)}`]({name}.md) | {_first_line(name)} |")
            navigation.append(f'      {{ "{_shown(name)}" = "reference/{name}.md" }},')
        overview.append("")
        navigation.append("    ] },")
    folder.joinpath("index.md").write_text("\n".join(overview))
    folder.joinpath("presets.md").write_text(_presets())
    pages.joinpath("gallery.md").write_text(_gallery(pages))
    return "\n".join([*navigation, ""])


def for_language_models(pages: Path) -> str:
    """List all pages in one line each, as https://llmstxt.org has it."""
    about = (
        "Ranking metrics for recommenders and search as Polars expressions: evaluate(run, "
        '"ndcg@10", truth=truth) takes two tables (run: user, item, rank or score; truth: user, '
        "item, relevance) and returns the means; compare, report, plot and gate follow."
    )
    lines = ["# rankframe\n", f"> {about}\n"]
    lines.append("What an agent has to know is in the package: `rankframe/SKILL.md`.\n")
    lines.append("## Guide\n")
    guide = sorted(path for path in pages.glob("*.md") if path.stem != "index")
    for path in guide:
        title = re.search(r"^# (.+)$", path.read_text(), re.MULTILINE)
        lines.append(f"- [{title[1] if title else path.stem}]({path.name})")
    lines.append("\n## Reference\n")
    for names in _groups().values():
        lines += [f"- [{_shown(name)}](reference/{name}.md): {_first_line(name)}" for name in names]
    return "\n".join([*lines, ""])


def write_texts(pages: Path, site: Path) -> None:
    """Write each page of the site as Markdown beside it, docstrings included."""
    for path in pages.rglob("*.md"):
        text = re.sub(r"(?m)^::: rankframe\.(\S+)(?:\n    .*)*", _signed, path.read_text())
        place = site / path.relative_to(pages)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)


def _signed(found: re.Match[str]) -> str:
    """Return the signature of a public name, and its docstring."""
    entry = _package()[found[1]]
    entry = entry.final_target if isinstance(entry, griffe.Alias) else entry
    call = entry.signature() if isinstance(entry, griffe.Function) else _shown(found[1])
    docstring = entry.docstring.value if entry.docstring else ""
    return f"# {_shown(found[1])}\n\n```python\n{call}\n```\n\n{docstring}"


def _groups() -> dict[str, list[str]]:
    """Return the names of each group, those of modules written out."""
    groups = {group: [*_written_out(names.split())] for group, names in GROUPS.items()}
    known = {name for names in groups.values() for name in names}
    more = [*_written_out(name for name in rf.__all__ if name not in (*known, *_NO_PAGE))]
    rest = [name for name in more if name not in known]
    return groups | ({"More": rest} if rest else {})


def _written_out(names: Iterable[str]) -> Iterator[str]:
    for name in names:
        if name in _ROOMS:
            inside = _package()[name].exports or _rooms.homes_of(name)
            yield from (f"{name}.{inner}" for inner in inside)
        else:
            yield name


@functools.cache
def _package() -> griffe.Object:
    """Read the sources: importing rankframe.spark would need Spark."""
    loaded = griffe.load("rankframe", search_paths=[SOURCES], resolve_aliases=True)
    assert isinstance(loaded, griffe.Object)
    return loaded


def _page(name: str, pages: Path) -> str:
    """Write a page: for a chart, its picture and its code stand first."""
    module, _, chart = name.rpartition(".")
    lines = [f"::: rankframe.{name}"]
    if module == "plot" and chart in CHARTS:
        lines = [f"# {_shown(name)}\n", *_picture(chart, pages, ".."), *lines, "    options:"]
        lines.append("      heading_level: 2")
    return "\n".join([f"---\ntitle: {_shown(name)}\n---\n", *lines, ""])


def _picture(chart: str, pages: Path, top: str) -> list[str]:
    """Write the picture of a chart, and the code that drew it."""
    said = alt_of(pages.joinpath(f"{chart}.svg").read_text())
    picture, code = f"![{said}]({top}/{chart}.svg)", CHARTS[chart][1]
    return [
        f'<div class="gallery" markdown>\n\n{picture}\n\n</div>\n',
        f"```python\n{code}\n```\n",
    ]


def _gallery(pages: Path) -> str:
    about = (
        "Each of recommenders on MovieLens, with the code that drew it. [The guide](charts.md) "
        "explains how to change, combine and save them."
    )
    lines = ["# Charts\n", f"{about}\n"]
    for chart, (question, _) in CHARTS.items():
        lines += [f"## {question}\n", *_picture(chart, pages, ".")]
        lines.append(
            f"[`rf.plot.{chart}`](reference/plot.{chart}.md): {_first_line(f'plot.{chart}')}\n"
        )
    return "\n".join(lines)


def _presets() -> str:
    """Write what each preset sets."""
    about = (
        'The conventions of other tools: `rf.evaluate(run, "map@10", truth=truth, '
        'preset="replay")`. In words: [what each does](../other_tools.md#which-tool-does-what).'
    )
    lines = ["# Presets\n", f"{about}\n"]
    for name, preset in PRESETS.items():
        code = pprint.pformat(preset, width=_COLUMNS, sort_dicts=False)
        lines += [f"## {name}\n", f"```python\n{code}\n```\n"]
    return "\n".join(lines)


def _shown(name: str) -> str:
    package = "rankframe" if name.partition(".")[0] in _BY_IMPORT else "rf"
    return f"{package}.{name}"


def _first_line(name: str) -> str:
    """Return the first line of a docstring, as a cell of a table."""
    docstring = _package()[name].docstring
    text = docstring.value.strip().partition("\n")[0] if docstring else ""
    text = text.replace("``", "`").replace(":func:", "")
    return text.replace("|", "\\|")
