"""What each metric is, in words and columns: for ``describe`` and the reference."""

import inspect
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import chain
from typing import Any, Literal, get_args, get_origin

import polars as pl

from rankframe._request import labels, registry, wrong_keywords
from rankframe._request.labels import Entry, Mean
from rankframe.presets import PRESETS

_TYPES = {
    "label": pl.String(),
    "definition": pl.String(),
    "question": pl.String(),
    "low": pl.Float64(),
    "high": pl.Float64(),
    "direction": pl.String(),
    "reads": pl.List(pl.String()),
    "aliases": pl.List(pl.String()),
    "presets": pl.List(pl.String()),
}


@wrong_keywords.checked
def describe() -> pl.DataFrame:
    """
    Describe all metrics, also those that you registered: one row per metric.

    Returns
    -------
    DataFrame
        - ``label``: as it is requested, with ``@k`` if it has a cut-off;
        - ``definition``: the first line of its docstring;
        - ``question``: what it answers, for a reader who knows no metrics;
        - ``low``, ``high``: the range of its values;
        - ``direction``: "higher" or "lower" is better, null if neither;
        - ``reads``: the columns that it reads, unless options add others;
        - ``aliases``: its other names, such as those of other tools;
        - ``presets``: the tools that compute it with options of their own.

    Examples
    --------
    >>> metrics = rf.metrics.describe()
    >>> metrics.filter(label="popularity@k").select("low", "high", "direction").rows()
    [(0.0, inf, None)]
    """
    differing = _differing()
    rows = [_row(entry, differing) for entry in labels.every_entry()]
    return pl.DataFrame(rows, schema=_TYPES, orient="row")


def _row(entry: Entry, differing: Mapping[str, set[Callable[..., Any]]]) -> tuple[object, ...]:
    better = {True: "higher", False: "lower", None: None}[entry.higher_is_better]
    aliases = [alias for alias, _ in entry.aliases if alias.isidentifier()]
    texts = label_of(entry), first_line(entry.function), entry.in_words or None
    presets = [name for name, functions in differing.items() if entry.function in functions]
    reads = sorted(columns_read(entry))
    return *texts, *entry.value_range, better, reads, aliases, presets


def _differing() -> dict[str, set[Callable[..., Any]]]:
    """Return the metrics to which each preset gives options of their own."""
    return {
        preset: {labels.function_of(name.partition("@")[0]) for name in own.get("defaults", {})}
        for preset, own in PRESETS.items()
    }


def label_of(entry: Entry) -> str:
    """The label with its required parameters only."""
    parameters = inspect.signature(entry.function).parameters
    needed = [p.name for p in parameters.values() if p.default is p.empty and p.name != "k"]
    arguments = f"({', '.join(f'{name}=…' for name in needed)})" if needed else ""
    return entry.plain + arguments + ("@k" if "k" in parameters else "")


def first_line(function: Callable[..., Any]) -> str:
    """Return the definition, the first line of a docstring."""
    return (inspect.getdoc(function) or "").partition("\n")[0].replace("``", "`")


#: Values for parameters without a default.
SAMPLES: Mapping[str, object] = {
    "k": 10,
    "recall": 0.5,
    "collection": 1000,
    "sampled": 100,
}


#: Other values, of which some are for a flag, a gain or a discount.
_TRIED = (None, True, "exponential", "binary", {0: 1.0, 1: 0.5}, "log2", "hit")


def columns_read(entry: Entry) -> set[str]:
    """Return the columns that the expression reads."""
    return _columns_read(entry, _needed(entry))


def other_columns(entry: Entry) -> set[str]:
    """Return the columns that it reads with other options alone."""
    read = set[str]()
    for parameter in inspect.signature(entry.function).parameters.values():
        kinds = [parameter.annotation, *get_args(parameter.annotation)]  # a choice, or none
        choices = [get_args(kind) for kind in kinds if get_origin(kind) is Literal]
        for value in (*_TRIED, SAMPLES.get(parameter.name), *chain(*choices)):
            with suppress(TypeError, ValueError):  # no value of this parameter
                read |= _columns_read(entry, {**_needed(entry), parameter.name: value})
    return {*registry.COLUMNS} & read - columns_read(entry)  # not a text that names a column


def _needed(entry: Entry) -> dict[str, object]:
    parameters = inspect.signature(entry.function).parameters.values()
    names = [p.name for p in parameters if p.default is p.empty or p.name == "k"]
    return {name: SAMPLES.get(name, 1) for name in names}


def _columns_read(entry: Entry, options: Mapping[str, object]) -> set[str]:
    result = entry.function(**options)
    expr = result.metric if isinstance(result, Mean) else result
    return {name.partition("(")[0] for name in expr.meta.root_names()}
