"""Read a configuration file: TOML in, the words of command lines out.

A key is an option of ``evaluate``, ``compare`` or ``report``, as it is called in Python. The file
is data: it holds no expression, module, variable or command of a shell.
"""

import argparse
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from difflib import get_close_matches
from math import isfinite
from pathlib import Path
from typing import NamedTuple, cast

from rankframe._command import inputs, options
from rankframe._command.inputs import Input
from rankframe._request import keywords

_OWN = ("run", "truth", "metrics", "gates", "report")
_GATE = ("metrics", "margin", "at_least", "at_most")
_OF_ALL_GATES = ("baseline", "interval", "undecided", "most_missed", "systems")
#: Options of a command that keys replace, or that are for a person who looks at a terminal.
_NO_KEYS = ("help", "metrics", "json", "details", "form", "per_query", "at_least", "at_most")
#: The keys that add each command.
_ADDED_BY = {
    "evaluate": "no baseline and no gates",
    "compare": "baseline without gates",
    "gate": "gates",
    "report": "report",
}
_MOST_NAMES = 8  # of keys in an error
_SHARE = re.compile(r"\d+(\.\d+)?%")
_RUN_NAME = re.compile(r"(?!-)[^=/\\*?\[]+")  # neither an option nor a path


class Key(NamedTuple):
    """A value of the file, and where it is."""

    path: str  # such as gates[1].at_least
    value: object
    folder: Path

    @property
    def text(self) -> str:
        """A text, or a number as a command line has it."""
        self.check(isinstance(self.value, str) or self.is_number, "a text or a number")
        return str(self.value)

    @property
    def number(self) -> str:
        """A number."""
        self.check(self.is_number, "a number")
        return str(self.value)

    @property
    def size(self) -> str:
        """A number, or a share such as 1%."""
        is_share = isinstance(self.value, str) and _SHARE.fullmatch(self.value)
        self.check(self.is_number or is_share, "a number, or a share such as '1%'")
        return str(self.value)

    @property
    def flag(self) -> bool:
        """True or false."""
        self.check(isinstance(self.value, bool), "true or false")
        return bool(self.value)

    @property
    def is_number(self) -> bool:
        """Whether the value is a finite number; in TOML, true and false are none."""
        return keywords.is_number(self.value) and isfinite(self.value)

    @property
    def items(self) -> list["Key"]:
        """The values of a list, or a single value as a list of itself."""
        value = self.value
        if not isinstance(value, list):
            return [self]
        values = cast("list[object]", value)
        return [Key(f"{self.path}[{n}]", item, self.folder) for n, item in enumerate(values)]

    @property
    def output(self) -> str:
        """The path of a file; relative ones start at the folder of the configuration."""
        path = self.text if "://" in self.text else str(self.folder / self.text)
        return f"./{path}" if path.startswith("-") else path  # neither an option nor a stream

    @property
    def input(self) -> str:
        """The path of an input, which must exist."""
        try:
            inputs.check_inputs([Input(self.output)])
        except ValueError as error:
            msg = f"{self.path}: {error}"
            raise ValueError(msg) from None
        return self.output

    def table(self, names: Collection[str] | None = None) -> dict[str, "Key"]:
        """Return the keys of a table, which may be any or those of ``names``."""
        self.check(isinstance(self.value, Mapping), "a table")
        prefix = f"{self.path}." if self.path else ""
        keys = {
            name: Key(prefix + name, value, self.folder)
            for name, value in cast("Mapping[str, object]", self.value).items()
        }
        for name, key in keys.items():
            if names is not None and name not in names:
                near = get_close_matches(name, names, n=1, cutoff=0.5)
                first = ", ".join([*names][:_MOST_NAMES])
                more = " and options of the commands" if len(names) > _MOST_NAMES else ""
                hint = f"did you mean {near[0]}?" if near else f"the keys are {first}{more}"
                msg = f"{key.path}: unknown key: {hint}"
                raise ValueError(msg)
        return keys

    def check(self, condition: object, kind: str) -> None:
        """Raise unless the value is of a kind."""
        if not condition:
            msg = f"{self.path}: {self.value!r} is not {kind}"
            raise ValueError(msg)


def command_lines(path: Path) -> list[list[str]]:
    """Return the command lines of a file: one that evaluates or compares, and one of a report."""
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, OSError) as error:  # also bytes that are no text
        msg = f"{path}: {getattr(error, 'strerror', None) or error}"
        raise ValueError(msg) from None
    command = "gate" if "gates" in values else "compare" if "baseline" in values else "evaluate"
    commands = [command, *(["report"] if "report" in values else [])]
    actions = {command: _actions(command) for command in _ADDED_BY}
    names = dict.fromkeys([*_OWN, *(name for of_one in actions.values() for name in of_one)])
    keys = Key("", values, path.parent).table(names)
    used = {*_OWN, *(name for command in commands for name in actions[command])}
    used |= {"margin"} if command == "gate" else set()
    if unused := [name for name in keys if name not in used]:
        needs = ", or ".join(_ADDED_BY[name] for name in actions if unused[0] in actions[name])
        msg = f"{unused[0]}: nothing here reads it: it needs {needs}"
        raise ValueError(msg)
    for name in ("run", "truth"):
        if name not in keys and (name == "run" or command != "evaluate" or "report" in keys):
            msg = f"{name}: missing: name its file, as in {name} = '{name}.parquet'"
            raise ValueError(msg)
    for name in ("run", "metrics", "gates"):
        if name in values and values[name] in ([], {}):
            msg = f"{name}: it is empty: name one or more" + ", or leave it out" * (name != "run")
            raise ValueError(msg)
    tables = [*_runs(keys["run"])] + ([keys["truth"].input] if "truth" in keys else [])
    labels = keys["metrics"].items if "metrics" in keys else []
    lines: list[list[str]] = []
    for name in commands:
        line = [name, *tables]
        line += _gates(keys) if name == "gate" else (f"--metric={key.text}" for key in labels)
        for option, action in actions[name].items():
            line += _words(action, keys[option]) if option in keys else []
        lines.append(line)
    if "report" in keys:
        lines[-1].append(f"--out={keys['report'].output}")
    return lines


def _actions(command: str) -> dict[str, argparse.Action]:
    """Return the options of a command that have a key, by their names in Python."""
    parser = options.parser_of_command(command)
    left_out = (*_NO_KEYS, *_OWN, {"report": "out", "gate": "margin"}.get(command))
    return {
        action.dest: action
        for action in parser._actions  # argparse has no public list
        if action.option_strings and action.dest not in left_out
    }


def _words(action: argparse.Action, key: Key) -> Iterator[str]:
    """Write an option as a command line does: name and value in one word."""
    option = action.option_strings[-1]
    if action.nargs == 0:
        yield from [option] if key.flag else []
        return
    for item in key.items if isinstance(action.default, list) else [key]:
        _check_value(action, item)
        value = item.text
        if action.type in (Input, inputs.output_of):
            value = item.input if action.type is Input else item.output
        yield f"{option}={value}"


def _check_value(action: argparse.Action, key: Key) -> None:
    """Check that a value has the type of an option, and is one of its choices."""
    kind = action.metavar if isinstance(action.metavar, str) else ""
    if action.choices is not None:
        key.check(key.value in action.choices, f"one of {', '.join(action.choices)}")
    elif kind in ("N", "K"):
        key.check(key.is_number and isinstance(key.value, int), "an integer")
    elif kind in ("X", "G"):
        key.check(key.is_number, "a number")
    elif kind == "M":
        key.check(key.size, "a size")
    elif kind != "SYSTEM":
        key.check(isinstance(key.value, str), "a text")


def _runs(key: Key) -> Iterator[str]:
    """Write the runs: a file, several, or a table of files by name."""
    if isinstance(key.value, Mapping):
        for name, run in key.table().items():
            if not _RUN_NAME.fullmatch(name):
                msg = f"{run.path}: a name of a run has none of = / * ? [, and no - as its first"
                raise ValueError(msg)
            yield f"{name}={run.input}"
    else:
        for run in key.items:
            yield run.input


def _gates(keys: Mapping[str, Key]) -> Iterator[str]:
    """Write what the metrics of each gate must keep; the file has metrics and a margin for all."""
    for gate in keys["gates"].items:
        if shared := [name for name in _OF_ALL_GATES if name in gate.table()]:
            msg = f"{gate.path}.{shared[0]}: it is of all gates: write it above [[gates]]"
            raise ValueError(msg)
        own = gate.table(_GATE)
        labels = own.get("metrics", keys.get("metrics"))
        if labels is None:
            msg = f"{gate.path}.metrics: missing: name a metric, such as 'ndcg@10'"
            raise ValueError(msg)
        bounds = {name: key for name, key in own.items() if name != "metrics"}
        if not bounds and "margin" in keys:
            bounds = {"margin": keys["margin"]}
        for label in labels.items:
            yield f"--metric={label.text}"
            for name, key in bounds.items():
                value = key.size if name == "margin" else key.number
                yield f"--{name.replace('_', '-')}={label.text}:{value}"
