"""The reference of all metrics as a Markdown page, made from their docstrings."""

import inspect
import re
import sys
from collections.abc import Collection, Mapping, Sequence
from math import inf
from typing import Any, Literal, get_args, get_origin

from rankframe._labels import (
    Alias,
    AnyGain,
    Entry,
    Gain,
    Mean,
    MetricName,
    Weight,
    as_text,
    every_entry,
)
from rankframe._vocabulary import COLUMNS
from rankframe.presets import PRESETS, Preset

_INTRODUCTION = """\
# Metrics

This page is made from the docstrings, by `rankframe metrics --markdown`.

A metric is one reduction over the rows of one user: the items of grade > 0, retrieved or not. It
is asked for by its label, `name(param=value)@k`, or as the expression that its function gives. R is
the number of the user's relevant items, n the length of the list, hits the relevant items at or
above a rank, hits@k those among the first k. Null means undefined, and is left out of means.

[All metrics](#all-metrics) · [Vocabulary](#vocabulary) · [Presets](#presets)
"""
_VOCABULARY = """\
The columns that metrics are written on, and those of your own may be: `rf.relevant(judged)` gives
them. Each is derived only where an expression reads it.
"""
_PRESETS = """\
The conventions of other tools, as keywords: `rf.evaluate(run, "map@10", truth=truth, **rf.REPLAY)`.
"""


def reference_page() -> str:
    """Write the page."""
    entries = every_entry()
    parts = [_INTRODUCTION, "## All metrics\n", _contents(entries)]
    family = ""
    for entry in entries:
        if entry.function.__module__ != family:
            family = entry.function.__module__
            parts.append(f"## {_title(family)}\n")
        parts.append(_section(entry))
    words = [(f"`{name}`", meaning) for name, (_, meaning, *_) in COLUMNS.items()]
    parts += ["## Vocabulary\n", _VOCABULARY, _table(("column", "meaning"), words)]
    presets = [_preset_row(name, preset) for name, preset in PRESETS.items()]
    heads = ("preset", "whose mean", "undefined is", "metrics that differ", "scores")
    parts += ["## Presets\n", _PRESETS, _table(heads, presets)]
    return "\n".join(parts)


def _contents(entries: list[Entry]) -> str:
    rows = [
        (f"`{_label(e)}`", _first_line(e), f"[{e.function.__name__}](#{e.function.__name__})")
        for e in entries
    ]
    return _table(("label", "what", "function"), rows)


def _section(entry: Entry) -> str:
    name = entry.function.__name__
    sections = _sections(entry)
    spellings = ", ".join(f"`{_spelling(*alias)}`" for alias in entry.aliases)
    lines = [f"### {name}\n", f"{sections['']}\n"]
    lines += [f"- **Label:** `{_label(entry)}`" + (f", also {spellings}" if spellings else "")]
    if "Parameters" in sections:
        lines.append(f"- **Call:** `{name}{_call(entry)}`")
        lines += [f"  - `{names}`: {text}" for names, text in _items(sections["Parameters"])]
    if "Returns" in sections:
        lines += [f"- **Value:** {text}" for _, text in _items(sections["Returns"])]
    lines.append(f"- **Range:** {_range(entry)}")
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


#: What is given for a parameter that has no default.
_SAMPLES: Mapping[str, object] = {
    "k": 10,
    "recall": 0.5,
    "collection": 1000,
    "catalogue": 1000,
    "sampled": 100,
}


def _reads(entry: Entry) -> str:
    """Name the columns that the expression reads, and those that it may with other options."""
    parameters = inspect.signature(entry.function).parameters.values()
    if any(parameter.annotation == MetricName for parameter in parameters):
        return "Reads what `metric` reads."
    given = {
        p.name: _SAMPLES.get(p.name, 1) for p in parameters if p.default is p.empty or p.name == "k"
    }
    first = _columns_read(entry, given)
    others: set[str] = set()
    for parameter in parameters:
        for value in _choices(parameter):
            others |= _columns_read(entry, {**given, parameter.name: value})
    also = others - first
    text = f"Reads {_names(first)}"
    return f"{text}; with other options also {_names(also)}." if also else f"{text}."


def _choices(parameter: inspect.Parameter) -> tuple[object, ...]:
    """List the values of a parameter that may read other columns."""
    annotation = parameter.annotation
    if parameter.name == "k":
        return (None,) if parameter.default is None else ()
    if annotation == int | None:
        return (_SAMPLES[parameter.name],)
    if annotation in (Gain, AnyGain):
        falling: tuple[object, ...] = ({0: 1.0, 1: 0.5},) if annotation == AnyGain else ()
        return ("exponential", "binary", *falling)
    if annotation is bool:
        return (True,)
    if annotation == Weight:
        return ("log", "hit")
    kinds = [annotation, *get_args(annotation)]  # a choice, or none
    return next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())


def _columns_read(entry: Entry, options: Mapping[str, object]) -> set[str]:
    made = entry.function(**options)
    expr = made.metric if isinstance(made, Mean) else made
    return {name.partition("(")[0] for name in expr.meta.root_names()}


def _names(columns: Collection[str]) -> str:
    first, *others = (f"`{name}`" for name in COLUMNS if name in columns)
    return f"{', '.join([first, *others[:-1]])} and {others[-1]}" if others else first


def _sections(entry: Entry) -> dict[str, str]:
    """Split a numpydoc docstring at its headings; what comes before them is called ''."""
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


def _first_line(entry: Entry) -> str:
    return _sections(entry)[""].partition("\n")[0]


def _title(module: str) -> str:
    """The first line of a family's docstring."""
    return (inspect.getdoc(sys.modules[module]) or "").partition("\n")[0].rstrip(".")


def _label(entry: Entry) -> str:
    """The label without options, with what must be given."""
    parameters = inspect.signature(entry.function).parameters
    needed = [p.name for p in parameters.values() if p.default is p.empty and p.name != "k"]
    given = f"({', '.join(f'{name}=…' for name in needed)})" if needed else ""
    return entry.plain + given + ("@k" if "k" in parameters else "")


def _call(entry: Entry) -> str:
    signature = inspect.signature(entry.function)
    bare = [p.replace(annotation=p.empty) for p in signature.parameters.values()]
    return str(signature.replace(parameters=bare, return_annotation=signature.empty))


def _spelling(alias: str, target: Alias) -> str:
    """An alias with k and x for its numbers."""
    for place in re.findall(r"@?\{\}", target) if isinstance(target, str) else []:
        alias = alias.replace("{}", "k" if place.startswith("@") else "x", 1)
    return alias.replace("{}", "x").replace("{*}", "…")


def _preset_row(name: str, preset: Preset) -> tuple[str, ...]:
    undefined = f"`{preset['undefined']:g}`" if "undefined" in preset else "null"
    defaults = [_with_options(label, p) for label, p in preset.get("defaults", {}).items()]
    single = "32-bit" if preset.get("single_precision") else ""
    return f"`rf.{name}`", f"`{preset.get('users')}`", undefined, ", ".join(defaults), single


def _with_options(label: str, options: Mapping[str, Any]) -> str:
    """Write ``ap@k`` with its options as a label."""
    name, at, k = label.partition("@")
    inside = ", ".join(f"{option}={as_text(value)}" for option, value in options.items())
    return f"`{name}({inside}){at}{k}`"


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
