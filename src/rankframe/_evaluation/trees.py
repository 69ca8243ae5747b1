"""Expressions as trees of our own nodes, read from the JSON of ``meta.serialize``.

The JSON differs between versions of Polars, and nothing else in the library knows it. A node that
is not in the tables below raises an error that names it.
"""

from __future__ import annotations

import json
import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn, TypeAlias, cast

import polars as pl


@dataclass(frozen=True)
class ColumnNode:
    """A column by its name."""

    name: str


@dataclass(frozen=True)
class LiteralNode:
    """A constant: a boolean, a number (also NaN), text, or None."""

    value: bool | float | str | None


@dataclass(frozen=True)
class Cast:
    """A value as a number or a boolean: ``dtype`` is int, float or bool."""

    value: Node
    dtype: str


@dataclass(frozen=True)
class CallNode:
    """A function or an aggregate of its inputs."""

    name: str
    inputs: tuple[Node, ...]
    option: Any = None


@dataclass(frozen=True)
class Over:
    """A window: a value within the rows of equal keys, in the order of a column (null last)."""

    value: Node
    keys: tuple[Node, ...]
    order: tuple[Node, ...] = ()


Node: TypeAlias = ColumnNode | LiteralNode | Cast | CallNode | Over

#: The functions that reduce many rows to one value.
AGGREGATES = frozenset({"sum", "max", "min", "mean", "count", "any", "all", "n_unique", "len"})
#: Those that need the other rows of a window.
WINDOWED = frozenset({"cum_sum", "product_above", "rank", "place", "shift", "is_duplicated"})


class UnknownNodeError(ValueError):
    """A part of an expression for which there is no node."""


def read(expr: pl.Expr) -> Node:
    """Read an expression."""
    tree = _tree(expr)
    literals = (node.value for node in every_node(tree) if isinstance(node, LiteralNode))
    if any(isinstance(value, float) and math.isnan(value) for value in literals):
        _refuse_infinity(expr)
    for node in every_node(tree):
        if isinstance(node, CallNode) and node.name in _SEEN_ONLY:
            _unknown(_SEEN_ONLY[node.name])
    return tree


def _refuse_infinity(expr: pl.Expr) -> None:
    """Raise for an infinite constant: in JSON, it is null like NaN."""
    if expr.meta.is_literal():
        value = pl.select(expr).item()
        if isinstance(value, float) and math.isinf(value):
            _unknown("Literal", value)
    for part in expr.meta.pop():
        _refuse_infinity(part)


def _tree(expr: pl.Expr) -> Node:
    with warnings.catch_warnings():  # what Polars says of the format is the reason for this module
        warnings.simplefilter("ignore")
        text = expr.meta.serialize(format="json")
    return _read(json.loads(text))


def readable(expr: pl.Expr) -> Iterator[Node]:
    """Yield the largest parts of an expression for which there are nodes."""
    try:
        yield _tree(expr)
    except UnknownNodeError:
        for part in expr.meta.pop():
            yield from readable(part)


def inputs_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes right below a node."""
    if isinstance(node, CallNode):
        return node.inputs
    if isinstance(node, Cast):
        return (node.value,)
    return (node.value, *node.keys, *node.order) if isinstance(node, Over) else ()


def changed(node: Node, change: Callable[[Node], Node]) -> Node:
    """Return a node with changed nodes right below it."""
    if isinstance(node, CallNode):
        return CallNode(node.name, tuple(map(change, node.inputs)), node.option)
    if isinstance(node, Cast):
        return Cast(change(node.value), node.dtype)
    if isinstance(node, Over):
        keys, order = (tuple(map(change, nodes)) for nodes in (node.keys, node.order))
        return Over(change(node.value), keys, order)
    return node


def every_node(node: Node) -> Iterator[Node]:
    """Yield a node, and all below it."""
    yield node
    for below in inputs_of(node):
        yield from every_node(below)


def columns_of(node: Node) -> list[str]:
    """Name the columns that a tree reads, each once."""
    names = (below.name for below in every_node(node) if isinstance(below, ColumnNode))
    return list(dict.fromkeys(names))


# ------------------------------------------------------------------ reading the JSON

_OPERATORS = {
    "And": "and",
    "Divide": "divide",
    "Eq": "equal",
    "Gt": "greater",
    "GtEq": "greater_equal",
    "Lt": "less",
    "LtEq": "less_equal",
    "Minus": "minus",
    "Multiply": "times",
    "NotEq": "not_equal",
    "Or": "or",
    "Plus": "plus",
    "TrueDivide": "divide",
}
#: What Polars names otherwise than here.
_RENAMED = {"FillNull": "coalesce", "MaxHorizontal": "greatest", "MinHorizontal": "least"}
_FUNCTIONS = {
    *("Abs", "Ceil", "Coalesce", "Exp", "Floor", "IsDuplicated", "IsFinite", "IsInfinite"),
    *("IsNan", "IsNotNull", "IsNull", "Log", "Negate", "Not", "Sqrt", *_RENAMED),
}
_AGGREGATES = {"Count", "Max", "Mean", "Median", "Min", "NUnique", "Sum"}
#: What is known where an expression is looked at, and unknown where it is translated.
_SEEN_ONLY = {"median": "Median", "is_in": "IsIn"}
_TYPES = {"Boolean": "bool", "Float32": "float", "Float64": "float"}
_RANKS = {"Dense": "dense", "Min": "min", "Ordinal": "ordinal"}


def _read(tree: Any) -> Node:
    kind, value = _only(tree)
    reader = _READERS.get(kind)
    if reader is None:
        _unknown(kind)
    return reader(value)


def _only(tree: Any) -> tuple[str, Any]:
    """Take the name of a node and what it holds; some are a name alone."""
    if isinstance(tree, str):
        return tree, None
    if not isinstance(tree, Mapping) or len(cast("Mapping[str, Any]", tree)) != 1:
        _unknown(str(cast("object", tree))[:40])
    return next(iter(cast("Mapping[str, Any]", tree).items()))


def _named(kind: str) -> str:
    """Write the name of a node as Polars writes that of its function: IsNotNull is is_not_null."""
    return _RENAMED.get(kind) or re.sub("(?<!^)(?=[A-Z])", "_", kind).lower()


def _unknown(kind: str, option: object = None) -> NoReturn:
    name = kind if option is None else f"{kind}({option})"
    msg = f"it has a node {name!r}, which cannot be translated"
    raise UnknownNodeError(msg)


def _literal(value: Any) -> Node:
    of, scalar = _only(value)
    if of not in ("Dyn", "Scalar"):
        _unknown("Literal", of)
    dtype, number = _only(scalar)
    if dtype == "Null":
        return LiteralNode(None)
    if number is None and dtype.startswith("Float"):  # JSON has no NaN
        return LiteralNode(float("nan"))
    if isinstance(number, bool | int | float | str) and dtype not in ("Date", "Datetime", "Time"):
        return LiteralNode(number)
    _unknown("Literal", dtype)


def _cast(value: Any) -> Node:
    _, dtype = _only(value["dtype"])
    dtype, _ = _only(dtype)
    if dtype not in _TYPES and "Int" not in dtype:
        _unknown("Cast", dtype)
    return Cast(_read(value["expr"]), _TYPES.get(dtype, "int"))


def _ternary(value: Any) -> Node:
    return CallNode("when", tuple(_read(value[key]) for key in ("predicate", "truthy", "falsy")))


def _operation(value: Any) -> Node:
    name, (left, right) = _OPERATORS.get(value["op"]), (_read(value[s]) for s in ("left", "right"))
    if name is None:
        _unknown(value["op"])
    # x / (x·0 + k) is x / k, written so for the last bit in Polars
    if name == "divide" and isinstance(right, CallNode) and right.name == "plus":
        zero, whole = right.inputs
        if zero == CallNode("times", (left, LiteralNode(0))):
            return CallNode("divide", (left, whole))
    return CallNode(name, (left, right))


def _aggregate(value: Any) -> Node:
    kind, inner = _only(value)
    if kind not in _AGGREGATES:
        _unknown(kind)
    if isinstance(inner, Mapping) and "input" in inner:
        every_row = cast("Mapping[str, Any]", inner).get("include_nulls")
        inner = cast("Mapping[str, Any]", inner)["input"]
        if every_row:
            kind, kept = _only(inner)
            if not columns_of(_read(inner if kind != "Filter" else kept["by"])):
                _unknown("Len", "of a constant")  # one value in Polars, and one per row in SQL
            return (
                CallNode("sum", (_read(kept["by"]),)) if kind == "Filter" else CallNode("len", ())
            )
    return _reduced(_named(kind), inner)


def _reduced(name: str, inner: Any) -> CallNode:
    """Reduce a value, or those rows of it that a filter keeps: null counts in n_unique alone."""
    kind, rows = _only(inner)
    value = kept = _read(rows["input"] if kind == "Filter" else inner)
    is_null: Node = CallNode("is_null", (value,))
    if kind == "Filter":
        condition = _read(rows["by"])
        kept = CallNode("when", (condition, value, LiteralNode(None)))
        is_null = CallNode("and", (condition, is_null))
    reduced = CallNode(name, (kept,))
    if name == "n_unique":  # Polars counts null as a value
        return CallNode("plus", (reduced, Cast(CallNode("any", (is_null,)), "int")))
    return reduced


def _function(value: Any) -> Node:
    inner = value["function"]
    kind, option = _only(inner)
    if kind == "Boolean":
        kind, option = _only(option)
    inputs = value["input"]
    if kind in ("Any", "All"):
        reduced = _reduced(kind.lower(), inputs[0])
        return reduced if option["ignore_nulls"] else replace(reduced, option="ignore_nulls=False")
    if kind == "ShiftAndFill":
        return _product_above(inputs)
    if kind == "IsDuplicated" and "Function" in inputs[0]:
        inputs = inputs[0]["Function"]["input"]  # of a struct: its fields
    if kind == "IsIn" and not option["nulls_equal"]:
        return CallNode("is_in", (_read(inputs[0]),))
    nodes = tuple(map(_read, inputs))
    if kind in _FUNCTIONS:
        return CallNode(_named(kind), nodes)
    if kind not in _WITH_OPTIONS:
        _unknown(kind)
    return _WITH_OPTIONS[kind](nodes, option)


def _product_above(inputs: Any) -> Node:
    """Read ``cum_prod().shift(1, fill_value=1.0)``, the only shift with a value to fill."""
    product, by, first = inputs
    if by == {"Literal": {"Dyn": {"Int": 1}}} and first == {"Literal": {"Dyn": {"Float": 1.0}}}:
        function = product.get("Function", {"function": ""})
        if function["function"] == {"CumProd": {"reverse": False}}:
            return CallNode("product_above", (_read(function["input"][0]),))
    _unknown("ShiftAndFill")


def _clip(nodes: tuple[Node, ...], option: Any) -> Node:
    value, *ends = nodes
    clipped = value
    if option["has_max"]:
        clipped = CallNode("when", (CallNode("greater", (value, ends[-1])), ends[-1], clipped))
    if option["has_min"]:
        clipped = CallNode("when", (CallNode("less", (value, ends[0])), ends[0], clipped))
    return clipped


def _between(nodes: tuple[Node, ...], option: Any) -> Node:
    value, least, most = nodes
    above = "greater_equal" if option["closed"] in ("Both", "Left") else "greater"
    below = "less_equal" if option["closed"] in ("Both", "Right") else "less"
    return CallNode("and", (CallNode(above, (value, least)), CallNode(below, (value, most))))


def _rank(nodes: tuple[Node, ...], option: Any) -> Node:
    method, falls = option["options"]["method"], option["options"]["descending"]
    if method not in _RANKS:
        _unknown("Rank", method)
    return CallNode("rank", nodes, (_RANKS[method], falls))


def _cumulated(nodes: tuple[Node, ...], option: Any) -> Node:
    if option["reverse"]:
        _unknown("CumSum", "reverse")
    return CallNode("cum_sum", nodes)


def _chained(name: str, nodes: tuple[Node, ...]) -> Node:
    first, *rest = nodes
    for node in rest:
        first = CallNode(name, (first, node))
    return first


def _sum_of(nodes: tuple[Node, ...], _: Any) -> Node:
    """Add columns up, null as 0."""
    return _chained("plus", tuple(CallNode("coalesce", (node, LiteralNode(0))) for node in nodes))


def _mean_of(nodes: tuple[Node, ...], option: Any) -> Node:
    number = [
        CallNode("when", (CallNode("is_null", (node,)), LiteralNode(0), LiteralNode(1)))
        for node in nodes
    ]
    return CallNode("divide", (_sum_of(nodes, option), _chained("plus", tuple(number))))


_WITH_OPTIONS: Mapping[str, Callable[[tuple[Node, ...], Any], Node]] = {
    "AllHorizontal": lambda nodes, _: _chained("and", nodes),
    "AnyHorizontal": lambda nodes, _: _chained("or", nodes),
    "Clip": _clip,
    "CumSum": _cumulated,
    "IsBetween": _between,
    "MeanHorizontal": _mean_of,
    "Pow": lambda nodes, option: CallNode("sqrt" if option == "Sqrt" else "power", nodes),
    "Rank": _rank,
    "Shift": lambda nodes, _: CallNode("shift", nodes),
    "SumHorizontal": _sum_of,
}


def _over(value: Any) -> Node:
    order = value["order_by"]
    if order and (order[1]["descending"] or value["mapping"] != "GroupsToRows"):
        _unknown("Over", order[1])
    keys = tuple(map(_read, value["partition_by"]))
    return Over(_read(value["function"]), keys, (_read(order[0]),) if order else ())


_READERS: Mapping[str, Callable[[Any], Node]] = {
    "Agg": _aggregate,
    "Alias": lambda value: _read(value[0]),
    "BinaryExpr": _operation,
    "Cast": _cast,
    "Column": ColumnNode,
    "Function": _function,
    "Len": lambda _: CallNode("len", ()),
    "Literal": _literal,
    "Over": _over,
    "Ternary": _ternary,
}
