"""How to reproduce a report: the conventions of its call, and the call itself."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any

from rankframe._comparison import numerals, sentences, trials
from rankframe._comparison.trials import Trial
from rankframe._evaluation import convention_words
from rankframe._report import people
from rankframe._report.call import ReportCall
from rankframe._report.facts import Numbers
from rankframe._report.markup import Section
from rankframe._report.tabular import Cell, Grid
from rankframe._request import keywords, labels


def conventions(numbers: Numbers) -> Section:
    """Write how the numbers are made, and how to reproduce them."""
    rows = [[Cell(name), Cell(text, "", "text")] for name, text in _rules(numbers)]
    sources = [
        [Cell(row["table"]), Cell(numerals.number(row["rows"])), Cell(row["checksum"], "", "text")]
        for row in numbers.sources.to_dicts()
    ]
    of_rows = "Input: checksums of the rows in any order, those of rf.provenance"
    grids = [
        Grid("Rules", ["what", "how"], rows, words=["how"]),
        Grid(of_rows, ["table", "rows", "checksum"], sources, words=["checksum"]),
    ]
    return Section("made", "How the numbers are made", grids=grids, code=_call(numbers))


def provenance(numbers: Numbers) -> str:
    """Write in one line which input the numbers are of."""
    tables = [
        f"{row['table']}: {numerals.counted(row['rows'], 'row')}, checksum {row['checksum']}"
        for row in numbers.sources.to_dicts()
    ]
    return " · ".join([_versions("rankframe"), *tables])


@functools.cache  # metadata are long to parse: a tenth of a small report
def _versions(*packages: str) -> str:
    from importlib.metadata import version

    return ", ".join(f"{name} {version(name)}" for name in packages)


def _rules(numbers: Numbers) -> list[tuple[str, str]]:
    settings, trial = numbers.call.settings, numbers.trial
    nouns = numbers.nouns
    rules = [
        ("convention", _convention(numbers)),
        ("intervals", f"{100 * trial.confidence:.10g}%, of means as in summarize, not corrected"),
        ("intervals in percent", "with the error of the baseline's mean"),
    ]
    if numbers.compared is not None:
        rules.append(("test", sentences.tested_in_words(trial, numbers.compared, nouns)))
        if (margin := trial.margin) is not None:
            margins = margin.items() if isinstance(margin, Mapping) else [("", margin)]
            texts = [f"{name}: " * bool(name) + f"{trials.bound_of(of)}" for name, of in margins]
            rules.append(("margin", ", ".join(texts)))
        if trial.test in ("randomization", "max_t"):
            rules.append(("resamples", f"{trial.resamples:,}, seed {trial.seed}"))
    columns = ("clusters", trial.cluster), ("weights", settings.weights)
    rules += [(name, column) for name, column in columns if column is not None]
    import platform

    versions = _versions("rankframe", "polars", "numpy", "scipy", "altair")
    rules.append(("versions", f"{versions}, Python {platform.python_version()}"))
    return rules


def _convention(numbers: Numbers) -> str:
    """Name in one sentence what every mean follows, and the tool whose preset it is."""
    settings = numbers.call.settings
    common = {name: getattr(settings, name) for name in ("undefined", "relevant_at", "unjudged")}
    rare = {name: getattr(settings, name) for name in ("duplicates", "depth")}
    convention = {"users": numbers.values.tables.users, **common}
    convention |= convention_words.departures(rare, {"duplicates": "error"})
    text = convention_words.words(convention, write=numbers.nouns.write)
    preset = settings.preset
    return f"{text} ({convention_words.tools([preset])})" if isinstance(preset, str) else text


def _call(numbers: Numbers) -> str:
    """Write the call as code, with frames and expressions by their names."""
    call = numbers.call
    first = "run" if call.truth is not None else "judged"
    names = [
        repr(metric) if isinstance(metric, str) else metric.meta.output_name()
        for metric in labels.flat(call.metrics)
    ]
    parts = [", ".join([first, *names])]
    if call.truth is not None:
        parts.append("truth=truth")
    if call.human is not None:
        parts.append("human=human")
    beside = {**call.options, "queries": call.queries}
    tables = [name for name in (*keywords.INPUTS, "queries") if beside.get(name) is not None]
    parts += [f"{name}={value!r}" for name, value in _arguments(call).items()]
    parts += [f"{name}={name}" for name in tables]
    return "rf.report(\n    " + ",\n    ".join(parts) + ",\n)"


def _arguments(call: ReportCall) -> dict[str, Any]:
    """Return the keywords of a call that are not the defaults, without tables."""
    options = {n: v for n, v in call.options.items() if n not in keywords.INPUTS}
    arguments: dict[str, Any] = {
        "model": None if call.by == keywords.MODEL else call.by,
        "by": [*call.segments] or None,
        "baseline": None,
        "k": call.k,
        "note": call.note,
        "nouns": call.nouns,
        "explore": None if call.explore == people.SHOWN else call.explore,
        **call.trial._replace(needed_by=None)._asdict(),
        **{name: value for name, value in options.items() if name != "model"},
    }
    defaults = Trial._field_defaults
    return {name: value for name, value in arguments.items() if value != defaults.get(name)}
