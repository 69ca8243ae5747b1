"""Explain a metric in a terminal, from its docstring."""

import inspect
import itertools
import re
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from rankframe._report import tabular

_SHORT = 60  # characters of a call in one line, and of a line after which a sentence ends


def explanation(function: Callable[..., Any], width: int) -> str:
    """Write what a metric is, in lines of at most ``width`` characters."""
    text = re.sub(r"\n-{3,}\n", ":\n", inspect.getdoc(function) or "")
    whole: list[str] = []
    for before, line in itertools.pairwise(["", *text.splitlines()]):
        is_filled = len(before) > _SHORT and _indent(before) == _indent(line)
        if is_filled and line.strip() and not before.startswith((">>>", "...")):
            whole[-1] += f" {line.strip()}"
        else:
            whole.append(line)
    lines = [*_signature_of(function), "", *(line.replace("``", "`") for line in whole)]
    return "".join(f"{_wrapped(line, width)}\n" for line in lines)


def _wrapped(line: str, width: int) -> str:
    indent = _indent(line) + 4 * line.startswith((">>>", "..."))
    return tabular.wrapped(line, width, after=" " * indent)


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _signature_of(function: Callable[..., Any]) -> list[str]:
    """Write the call of a function with its types, one line per parameter if it is long."""
    signature = inspect.signature(function)
    parts: list[str] = []
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        parts.append(f"{parameter.name}: {_type_in_words(parameter.annotation)}{default}")
    name = getattr(function, "__name__", "")
    line = f"{name}({', '.join(parts)})"
    if len(line) <= _SHORT:
        return [line]
    return [f"{name}(", *(f"    {part}," for part in parts), ")"]


def _type_in_words(annotation: Any) -> str:
    """Write a type without its modules and the remarks of ``Annotated``."""
    origin, inside = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _type_in_words(inside[0])
    if origin is Literal:
        return " | ".join(map(repr, inside))
    if origin in (Union, UnionType):
        return " | ".join(map(_type_in_words, inside))
    if annotation is NoneType:
        return "None"
    name = getattr(origin or annotation, "__name__", str(annotation))
    return f"{name}[{', '.join(map(_type_in_words, inside))}]" if inside else name
