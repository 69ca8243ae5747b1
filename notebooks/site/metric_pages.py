"""The pages of all metrics, made from their docstrings: an index, and a page per family.

``python notebooks/site/metric_pages.py`` writes the index for readers of the repository.
"""

import inspect
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any

from rankframe._evaluation import convention_words
from rankframe._request import descriptions, labels, registry, share_names
from rankframe._request.labels import Alias, Entry
from rankframe.presets import PRESETS, Preset, PresetName

PAGE = Path(__file__).parents[1] / "metrics.md"
TOOLS = PAGE.with_name("other_tools.md")
_INTRODUCTION = """\
# Metrics

This page is generated from the docstrings by `python notebooks/site/metric_pages.py`. On the
command line, `rankframe metrics ndcg@10` explains a metric; `rf.metrics.describe()` is a frame.

A metric reduces the rows of one user to a number. Most metrics read the items of grade > 0,
retrieved or not. You request a metric by its label, `name(param=value)@k`, or as the expression
that its function returns.

- A *grade* is the `relevance` of an item in the truth. An item is *relevant* if its grade is > 0,
  or at least `relevant_at`. A *gain* is the value of a grade.
- R is the number of relevant items of the user, and n the length of the list. *hits* is the number
  of relevant items at or above a rank, and hits@k their number among the first k.
- *Null* means undefined, and is left out of means.
- *Equal scores as blocks* is what the metric does after `with_rank(ties="expected")`: it computes
  its mean over [all orders of equal scores](conventions.md#equal-scores), or raises an error. Some
  options, such as weights of places, raise an error too.
- *Reads* names columns of the [vocabulary](#vocabulary), and the tables
  [beside the run](beyond_accuracy.md#tables-beside-the-run): `items=` and `history=`.
- Sources are in the [bibliography](bibliography.md).

Below the metrics: [Vocabulary](#vocabulary). What each preset sets:
[which tool does what](other_tools.md#which-tool-does-what).
"""
_VOCABULARY = """\
The columns that metrics read, including [your own](your_own.md). `rf.metrics.rows`
returns them. Each is derived only if an expression reads it.
"""


def in_repository(entry: Entry) -> str:
    """Link a metric to its source, which has the whole text."""
    return f"../src/rankframe/metrics/{_stem(entry)}.py"


def _on_site(entry: Entry) -> str:
    return f"metrics/{_stem(entry)}.md#{entry.function.__name__}"


def _stem(entry: Entry) -> str:
    return entry.function.__module__.rpartition(".")[2]


def families() -> dict[str, list[Entry]]:
    """Return the metrics of each family, by the name of its page."""
    found: dict[str, list[Entry]] = {}
    for entry in labels.every_entry():
        found.setdefault(_stem(entry), []).append(entry)
    return found


def title(entries: Sequence[Entry]) -> str:
    """Return the first line of a family's docstring, up to its first colon or comma."""
    text = (inspect.getdoc(sys.modules[entries[0].function.__module__]) or "").partition("\n")[0]
    return re.split("[:,]|[.]$", text)[0]


def pages() -> dict[str, str]:
    """Write the pages of the site."""
    of_families = {
        f"metrics/{stem}.md": "\n".join([f"# {title(entries)}\n", *map(_section, entries)])
        for stem, entries in families().items()
    }
    return {"metrics.md": index(_on_site), **of_families}


def navigation() -> str:
    """Write the entries of the pages in the navigation."""
    entries = [f'"{title(entries)}" = "metrics/{stem}.md"' for stem, entries in families().items()]
    return "".join(f"      {{ {entry} }},\n" for entry in entries)


def index(link: Callable[[Entry], str]) -> str:
    """Write what is common to all metrics, and a line for each."""
    parts = [_INTRODUCTION]
    for entries in families().values():
        rows = [
            (
                f"[`{descriptions.label_of(entry)}`]({link(entry)})",
                descriptions.first_line(entry.function),
            )
            for entry in entries
        ]
        parts += [f"## {title(entries)}\n", _table(("label", "what"), rows)]
    words = [(f"`{name}`", meaning) for name, (_, meaning, *_) in registry.COLUMNS.items()]
    parts += ["## Vocabulary\n", _VOCABULARY, _table(("column", "meaning"), words)]
    return "\n".join(parts)


def _section(entry: Entry) -> str:
    name = entry.function.__name__
    sections = _sections(entry)
    spellings = ", ".join(f"`{_spelling(*alias)}`" for alias in entry.aliases)
    lines = [f"## {name}\n", f"{sections['']}\n"]
    lines += [f"*{entry.in_words}*\n"] if entry.in_words else []
    lines += [
        f"- **Label:** `{descriptions.label_of(entry)}`"
        + (f", also {spellings}" if spellings else "")
    ]
    if "Parameters" in sections:
        lines.append(f"- **Call:** `{name}{_call(entry)}`")
        lines += [f"  - `{names}`: {text}" for names, text in _items(sections["Parameters"])]
    if "Returns" in sections:
        lines += [f"- **Value:** {text}" for _, text in _items(sections["Returns"])]
    lines.append(f"- **Range:** {_range(entry)}")
    lines.append(f"- **Equal scores as blocks:** {_in_ties(entry)}")
    if "Notes" in sections:
        lines += ["", _joined(sections["Notes"])]
    lines += ["", _reads(entry)]
    return "\n".join(lines) + "\n"


def _range(entry: Entry) -> str:
    """Write the range of the values, and which are better."""
    least, greatest = entry.value_range
    better = {True: "; higher is better", False: "; lower is better", None: ""}
    opened, closed = "(" if least == -inf else "[", ")" if greatest == inf else "]"
    ends = (f"{end:g}".replace("inf", "∞").replace("-", "−") for end in entry.value_range)
    return f"{opened}{', '.join(ends)}{closed}{better[entry.higher_is_better]}"


def _in_ties(entry: Entry) -> str:
    """Whether there is an expectation over orders of equal scores, with or without a cut-off."""
    parameters = inspect.signature(entry.function).parameters
    needed = {
        p.name: descriptions.SAMPLES.get(p.name, 1)
        for p in parameters.values()
        if p.default is p.empty
    }
    cuts: list[Any] = [{**needed, "k": 10}] if "k" in parameters else []
    cuts += [{**needed, "k": None}] if "k" in parameters and "k" not in needed else []
    exact = [_is_exact_in_ties(entry, options) for options in cuts or [needed]]
    if len({*exact}) == 2:
        return f"the exact expectation {'with' if exact[0] else 'without'} k, else an error"
    return "the exact expectation" if exact[0] else "an error"


def _is_exact_in_ties(entry: Entry, options: Mapping[str, object]) -> bool:
    try:
        names = labels.columns_in_ties(entry.function, **options)
        share_names.check_shares_in_ties(f"metric {entry.plain!r}", names)
    except ValueError:
        return False
    columns = (registry.COLUMNS.get(name.partition("(")[0]) for name in names)
    return all(column is None or column.in_ties != "ranks" for column in columns)


def _reads(entry: Entry) -> str:
    """Name the columns that the expression reads, and those that other options add."""
    if not (first := descriptions.columns_read(entry)):
        return "Reads what `metric` reads."
    also = descriptions.other_columns(entry)
    text = f"Reads {_names(first)}"
    return f"{text}; with other options also {_names(also)}." if also else f"{text}."


def _names(columns: Collection[str]) -> str:
    first, *rest = (f"`{name}`" for name in registry.COLUMNS if name in columns)
    return f"{', '.join([first, *rest[:-1]])} and {rest[-1]}" if rest else first


def _sections(entry: Entry) -> dict[str, str]:
    """Split a numpydoc docstring at its headings; the text before them has the key ''."""
    text = (inspect.getdoc(entry.function) or "").replace("``", "`")
    pieces = re.split(r"^(\w+)\n-{3,}\n", text, flags=re.MULTILINE)
    headed = dict(zip(pieces[1::2], pieces[2::2], strict=True))
    return {"": pieces[0].strip(), **{name: body.strip("\n") for name, body in headed.items()}}


def _items(body: str) -> list[tuple[str, str]]:
    """Read a numpydoc list: a name, and its text indented below."""
    pieces = re.split(r"^(?=\S)", body, flags=re.MULTILINE)
    return [
        (name.strip(), _joined(text))
        for name, _, text in (piece.partition("\n") for piece in pieces if piece)
    ]


def _joined(text: str) -> str:
    return " ".join(text.split())


def _call(entry: Entry) -> str:
    signature = inspect.signature(entry.function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _spelling(alias: str, target: Alias) -> str:
    """An alias with k and x for its numbers."""
    for place in re.findall(r"@?\{\}", target) if isinstance(target, str) else []:
        alias = alias.replace("{}", "k" if place.startswith("@") else "x", 1)
    return alias.replace("{}", "x").replace("{*}", "…")


def with_presets(page: str) -> str:
    """Write the table of what each preset sets; tools with equal ones share a row."""
    groups: list[list[PresetName]] = []
    for name, preset in PRESETS.items():
        if equal := next((group for group in groups if PRESETS[group[0]] == preset), None):
            equal.append(name)
        else:
            groups.append([name])
    table = _table(
        ("tool", "`preset=`", "a mean is", "metrics that differ"), [*map(_tools, groups)]
    )
    above, _, below = page.partition("<!-- presets -->\n")
    below = below.partition("<!-- end of presets -->")[2]
    return f"{above}<!-- presets -->\n{table}<!-- end of presets -->{below}"


def _tools(names: Sequence[PresetName]) -> tuple[str, ...]:
    preset: Preset = {"users": None, "undefined": None, **PRESETS[names[0]]}
    shared = {name: value for name, value in preset.items() if name != "defaults"}
    metrics = [
        f"`{metric}`: {convention_words.words(options)}"
        for metric, options in preset.get("defaults", {}).items()
    ]
    codes = ", ".join(f"`{name}`" for name in names)
    words = convention_words.words(shared)
    return convention_words.tools(names), codes, words, "; ".join(metrics)


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


if __name__ == "__main__":
    PAGE.write_text(index(in_repository), encoding="utf-8")
    TOOLS.write_text(with_presets(TOOLS.read_text(encoding="utf-8")), encoding="utf-8")
