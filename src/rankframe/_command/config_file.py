"""Read a configuration file, whose keys are keywords of calls as in Python: data, no program."""

import argparse
import os
import tomllib
from collections.abc import Collection
from difflib import get_close_matches
from pathlib import Path
from typing import Any, cast

from rankframe import errors
from rankframe._command import options, trec
from rankframe._command.inputs import Input
from rankframe._comparison import floors, margins
from rankframe._request import keywords, labels
from rankframe.errors import Problem

_WORDS = {str: "a text", bool: "true or false", dict: "a table"}
_NUMBERS = ("N", "X", "M", "SYSTEM")  # which functions check, by their names in the help


def calls_of(path: Path) -> dict[str, dict[str, Any]]:
    """Return the options of each command: one that evaluates, compares or gates, and a report."""
    try:
        keys: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:  # also bytes that are no text
        msg = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise ValueError(msg) from None
    command = "gate" if "gates" in keys else "compare" if "baseline" in keys else "evaluate"
    every = {name: options.actions_of(name) for name in ("evaluate", "compare", "gate", "report")}
    actions = {name: every[name] for name in (command, *({"report"} & keys.keys()))}
    names = ["run", "truth", "metrics", "gates", "report", *(["margin"] * (command == "gate"))]
    names += [key for of_command in actions.values() for key in of_command]
    for key in keys.keys() - {*names}:
        if others := [name for name, of_command in every.items() if key in of_command]:
            msg = f"{key}: {command} does not read it, but {' and '.join(others)}"
            raise ValueError(msg)
    _check_keys("", keys, names)
    for name in ("run", *(["truth"] * (actions.keys() != {"evaluate"})), *keys):
        if keys.get(name, []) in ([], {}):
            msg = f"{name}: missing or empty: name one or more, as in {name} = '…'"
            raise ValueError(msg)
    run = keys["run"]
    runs: Any = getattr(run, "items", lambda: [(None, run)])()  # of a table of names, or none
    shared: dict[str, Any] = {
        "runs": [
            Input(_path("run", x, path), name) for name, files in runs for x in _list_of(files)
        ],
        "truth": Input(_path("truth", keys["truth"], path)) if "truth" in keys else None,
        "metrics": [_checked("metrics", label, str) for label in _list_of(keys.get("metrics", []))],
    }
    calls = {name: options.defaults_of(name) | shared for name in actions}
    for name, of_command in actions.items():
        for key in of_command.keys() & keys:
            calls[name][key] = _value(key, keys[key], of_command[key], path)
    if command == "gate":
        calls["gate"] |= _gates(keys)
    if "report" in keys:
        calls["report"]["out"] = Path(_path("report", keys["report"], path))
    return calls


def _gates(keys: dict[str, Any]) -> dict[str, list[Any]]:
    """Return what the metrics of each gate must keep; the file has metrics and a margin for all."""
    read: dict[str, Any] = {"metrics": [], "margin": [], "at_least": [], "at_most": []}
    roles: dict[str, Any] = {"primary": None, "guardrails": []}
    for place, gate in enumerate(_list_of(keys["gates"])):
        where = f"gates[{place}]"
        own = cast("dict[str, Any]", _checked(where, gate, dict))
        _check_keys(f"{where}.", own, [*read, *roles])
        if own.keys() & roles:
            roles = _launch(where, own, alone=len(_list_of(keys["gates"])) == 1)
            continue
        bounds = {name: amount for name, amount in own.items() if name != "metrics"}
        for name, amount in bounds.items():
            is_share = name == "margin" and isinstance(amount, str)
            if not (is_share or keywords.is_number(amount)):
                msg = f"{where}.{name}: it must be a finite number, not {amount!r}"
                raise TypeError(msg)
        bounds = bounds or {name: keys[name] for name in ("margin",) if name in keys}
        metrics = _list_of(own.get("metrics", keys.get("metrics", [])))
        if not metrics:
            msg = f"{where}.metrics: missing: name a metric, such as 'ndcg@10'"
            raise ValueError(msg)
        read["metrics"] += [_checked(f"{where}.metrics", label, str) for label in metrics]
        for name, amount in bounds.items():
            read[name] += [(label, amount) for label in metrics]
        try:
            _check_bounds(metrics, bounds)
        except ValueError as error:
            raise ValueError(Problem(f"{where}: {errors.marked(error)}")) from None
    return read | roles


def _launch(where: str, own: dict[str, Any], *, alone: bool) -> dict[str, Any]:
    """Return the primary metric and the guardrails of the only gate of a file."""
    if other := next((name for name in own if name not in ("primary", "guardrails")), None):
        msg = f"{where}.{other}: primary and guardrails name their metrics: leave it out"
        raise ValueError(msg)
    if not alone:
        msg = f"{where}.primary: it decides alone: leave out the other gates of the file"
        raise ValueError(msg)
    primary = _checked(f"{where}.primary", own.get("primary"), str)
    guardrails: Any = _checked(f"{where}.guardrails", own.get("guardrails", {}), dict)
    return {"primary": primary, "guardrails": [*guardrails.items()]}


def _check_bounds(metrics: list[str], bounds: dict[str, Any]) -> None:
    """Check that the metrics of one gate can reach its bounds."""
    requested = labels.parse_metrics(trec.spelled_out(metrics), per_user=False)
    for option, amount in bounds.items():
        amounts = {metric.name: amount for metric in requested}
        if option == "margin":
            margins.read_margins(amounts, requested, of_gate=True)
        else:
            floors.floors_of(requested, amounts, option, interval=False)


def _value(key: str, value: Any, action: argparse.Action, path: Path) -> Any:
    """Read a value of an option, or several; files start at the folder of the configuration."""
    several = isinstance(action.default, list)
    values: list[Any] = _list_of(value) if several else [value]
    if action.metavar not in _NUMBERS:
        values = [_checked(key, item, str if action.nargs is None else bool) for item in values]
    if action.choices is not None and not {*values} <= {*action.choices}:
        msg = f"{key}: {value!r} is not one of {', '.join(action.choices)}"
        raise ValueError(msg)
    if action.metavar in ("FILE", "SYSTEM", "NAME,..."):
        is_file, read = action.metavar == "FILE", cast("Any", action.type or str)
        values = [read(_path(key, item, path) if is_file else item) for item in values]
    return values if several else values[0]


def _checked(key: str, value: Any, kind: type) -> Any:
    if not isinstance(value, kind):
        msg = f"{key}: {value!r} is not {_WORDS[kind]}"
        raise TypeError(msg)
    return value


def _check_keys(table: str, keys: Collection[str], names: Collection[str]) -> None:
    if unknown := [name for name in keys if name not in names]:
        near = get_close_matches(unknown[0], names, n=1, cutoff=0.5)
        hint = f"did you mean {near[0]}?" if near else f"the keys are {', '.join([*names][:5])}, …"
        msg = f"{table}{unknown[0]}: unknown key: {hint}"
        raise ValueError(msg)


def _list_of(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]  # pyright: ignore[reportUnknownVariableType]


def _path(key: str, value: Any, config: Path) -> str:
    """Return the path of a file, of which - is a file, too: ./-."""
    is_address = "://" in _checked(key, value, str)
    return value if is_address else os.path.join(config.parent, value)  # noqa: PTH118
