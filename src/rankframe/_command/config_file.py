"""Read a configuration file, whose keys are keywords of calls as in Python: data, no program."""

import argparse
import os
import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rankframe._command import options
from rankframe._command.inputs import Input

_TEXT, _NUMBER, _INTEGER = ((str,), "a text"), ((int, float), "a number"), ((int,), "an integer")
#: The types of values, and their words, by the names that values have in the help.
_KINDS: dict[object, tuple[tuple[type, ...], str]] = {
    "N": _INTEGER,
    "X": _NUMBER,
    "M": ((int, float, str), "a number, or a share such as '1%'"),
    "SYSTEM": ((int, str), "a text or a number"),
}


def calls_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the options of each command: one that evaluates, compares or gates, and a report."""
    try:
        keys: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:  # also bytes that are no text
        msg = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise ValueError(msg) from None
    command = "gate" if "gates" in keys else "compare" if "baseline" in keys else "evaluate"
    commands = [command, *(["report"] if "report" in keys else [])]
    every = {name: options.actions_of(name) for name in ("evaluate", "compare", "gate", "report")}
    actions = {name: every[name] for name in commands}
    names = ["run", "truth", "metrics", "gates", "report", *(["margin"] * (command == "gate"))]
    names += [key for of_one in actions.values() for key in of_one]
    for key in {*keys}.difference(names):
        if others := [name for name, of_one in every.items() if key in of_one]:
            msg = f"{key}: {command} does not read it, but {' and '.join(others)}"
            raise ValueError(msg)
    _check_keys("", keys, names)
    for name in ("run", *(["truth"] * (commands != ["evaluate"])), *keys):
        if keys.get(name, []) in ([], {}):
            msg = f"{name}: missing or empty: name one or more, as in {name} = '…'"
            raise ValueError(msg)
    run = keys["run"] if isinstance(keys["run"], dict) else {None: keys["run"]}
    runs = [(name, file) for name, files in run.items() for file in _listed(files)]
    shared: dict[str, Any] = {
        "runs": [Input(_path("run", file, path), name) for name, file in runs],
        "truth": Input(_path("truth", keys["truth"], path)) if "truth" in keys else None,
        "metrics": [_checked("metrics", label) for label in _listed(keys.get("metrics", []))],
    }
    calls = {name: options.defaults_of(name) | shared for name in commands}
    for name, of_one in actions.items():
        for key in of_one.keys() & keys:
            calls[name][key] = _value(key, keys[key], of_one[key], path)
    if command == "gate":
        calls["gate"] |= _gates(keys)
    if "report" in keys:
        calls["report"]["out"] = Path(_path("report", keys["report"], path))
    return calls


def _gates(keys: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what the metrics of each gate must keep; the file has metrics and a margin for all."""
    kinds = {"margin": _KINDS["M"], "at_least": _NUMBER, "at_most": _NUMBER}
    read: dict[str, list[Any]] = {name: [] for name in ("metrics", *kinds)}
    for place, gate in enumerate(_listed(keys["gates"])):
        where = f"gates[{place}]"
        own = _checked(where, gate, ((dict,), "a table"))
        _check_keys(f"{where}.", own, read)
        whole = {name: keys[name] for name in ("metrics", "margin") if name in keys}
        own = own if own.keys() & kinds else {**whole, **own}
        labels = _listed(own.get("metrics", whole.get("metrics", [])))
        if not labels:
            msg = f"{where}.metrics: missing: name a metric, such as 'ndcg@10'"
            raise ValueError(msg)
        for label in labels:
            read["metrics"].append(_checked(f"{where}.metrics", label))
            for name in own.keys() & kinds:
                read[name].append((label, _checked(f"{where}.{name}", own[name], kinds[name])))
    return read


def _value(key: str, value: Any, action: argparse.Action, path: Path) -> Any:
    """Read a value of the type of an option."""
    kind = ((bool,), "true or false") if action.nargs == 0 else _KINDS.get(action.metavar, _TEXT)
    several = isinstance(action.default, list)
    values = [_checked(key, item, kind) for item in (_listed(value) if several else [value])]
    if action.metavar == "SYSTEM":
        values = [*map(str, values)]
    elif action.metavar == "FILE":
        read = Input if action.type is Input else Path
        values = [read(_path(key, item, path)) for item in values]
    elif action.metavar == "NAME,..." and callable(action.type):
        values = [action.type(item) for item in values]
    for item in values:
        if action.choices is not None and item not in action.choices:
            msg = f"{key}: {item!r} is not one of {', '.join(action.choices)}"
            raise ValueError(msg)
    return values if several else values[0]


def _checked(key: str, value: Any, kind: tuple[tuple[type, ...], str] = _TEXT) -> Any:
    types, words = kind
    if not isinstance(value, types) or isinstance(value, bool) != (bool in types):
        msg = f"{key}: {value!r} is not {words}"
        raise ValueError(msg)
    return value


def _check_keys(table: str, keys: Collection[str], names: Collection[str]) -> None:
    if unknown := [name for name in keys if name not in names]:
        near = get_close_matches(unknown[0], names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join([*names][:5])}, …"
        hint += " (keys of all gates stand above [[gates]])" * bool(table and not near)
        msg = f"{table}{unknown[0]}: unknown key: {hint}"
        raise ValueError(msg)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _path(key: str, value: Any, config: Path) -> str:
    """Return the path of a file; relative ones start at the folder of the configuration."""
    text: str = _checked(key, value)
    return text if "://" in text else os.path.join(config.parent, text)  # noqa: PTH118  ./- is a file
