"""Nodes as SQL text: one fixed form for each thing in which warehouses differ."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from rankframe._evaluation.trees import (
    AGGREGATES,
    CallNode,
    Cast,
    ColumnNode,
    LiteralNode,
    Node,
    Over,
)
from rankframe._warehouse.dialects import Dialect


class ColumnText(NamedTuple):
    """How a column is written, and what is sure of its values."""

    sql: str
    dtype: str  # int, float, bool, or other
    nullable: bool = True


class Form(NamedTuple):
    """How a function is written: its inputs stand in the holes."""

    text: str
    dtype: str = ""  # "": that of its inputs
    strength: int = 9  # how strongly it binds
    needed: tuple[int, ...] = ()  # by inputs, to stand without parentheses


def _sign(sign: str, strength: int, dtype: str = "") -> Form:
    # of equal strength, what stands right needs parentheses, and comparisons on both sides
    left = strength + (strength == _COMPARISON)
    return Form(f"{{}} {sign} {{}}", dtype, strength, (left, strength + 1))


_COMPARISON, _DIVISION, _ATOM = 4, 6, 9
_GREATEST = "CAST(1.7976931348623157e308 AS {double})"
_FORMS = {
    "or": _sign("OR", 1, "bool"),
    "and": _sign("AND", 2, "bool"),
    "not": Form("NOT {}", "bool", 3, (7,)),
    "equal": _sign("=", _COMPARISON, "bool"),
    "not_equal": _sign("<>", _COMPARISON, "bool"),
    "less": _sign("<", _COMPARISON, "bool"),
    "less_equal": _sign("<=", _COMPARISON, "bool"),
    "greater": _sign(">", _COMPARISON, "bool"),
    "greater_equal": _sign(">=", _COMPARISON, "bool"),
    "is_null": Form("{} IS NULL", "bool", _COMPARISON, (5,)),
    "is_not_null": Form("{} IS NOT NULL", "bool", _COMPARISON, (5,)),
    "is_nan": Form("{is_nan}", "bool", _COMPARISON, (5,)),
    # NaN is the greatest number in most of them, and no comparison with it is true in BigQuery
    "is_finite": Form(f"ABS({{}}) <= {_GREATEST}", "bool", _COMPARISON),
    "is_infinite": Form(f"ABS({{}}) > {_GREATEST} AND NOT {{is_nan}}", "bool", 2, (5,)),
    "plus": _sign("+", 5),
    "minus": _sign("-", 5),
    "times": _sign("*", _DIVISION),
    "divide": Form("{} / {}", "float", _DIVISION),
    "negate": Form("-{}", "", 7, (_ATOM,)),
    "abs": Form("ABS({})"),
    "ceil": Form("CEIL({})", "float"),
    "exp": Form("EXP({})", "float"),
    "floor": Form("FLOOR({})", "float"),
    "log": Form("LN({}) / LN({})", "float", _DIVISION),  # the order of LOG's arguments differs
    "power": Form("POWER({}, {})", "float"),
    "sqrt": Form("SQRT({})", "float"),
}
_RANKS = {"dense": "DENSE_RANK", "min": "RANK", "ordinal": "ROW_NUMBER"}
#: The types of what needs other rows; those of the rest have the type of their inputs.
_TYPES = (
    {name: form.dtype for name, form in _FORMS.items() if form.dtype}
    | {"mean": "float", "product_above": "float"}
    | dict.fromkeys(("any", "all", "is_duplicated"), "bool")
    | dict.fromkeys(("count", "n_unique", "len", "rank", "place"), "int")
)
_TYPES_OF_LITERALS: dict[type, str] = {bool: "bool", int: "int", float: "float", type(None): "null"}
_NEVER_NULL = {
    *("sum", "count", "n_unique", "len", "any", "all", "place", "product_above"),
    *("is_null", "is_not_null", "is_duplicated"),
}
#: Columns that begin at 1, and the number of rows of a user in the truth.
_POSITIVE = {"rank", "ideal_rank", "ideal_place", "truth COUNT(*)"}


class Printer(NamedTuple):
    """Prints trees whose columns are in a dictionary."""

    dialect: Dialect
    columns: Mapping[str, ColumnText]

    def sql(self, node: Node, above: int = 0) -> str:
        """Write a node, in parentheses where what is above binds more strongly."""
        text, strength = self._written(node)
        return f"({text})" if strength < above else text

    def dtype(self, node: Node) -> str:
        """Tell the type of a node's values."""
        match node:
            case ColumnNode(name):
                return self.columns[name].dtype
            case LiteralNode(value):
                return _TYPES_OF_LITERALS.get(type(value), "other")
            case Cast(_, dtype):
                return dtype
            case Over(value, _, _):
                return self.dtype(value)
            case CallNode(name, inputs, _):
                values = inputs[1:] if name == "when" else inputs
                types = {self.dtype(value) for value in values} - {"null"}
                if name not in ("when", "coalesce", "max", "min", "shift"):
                    types = {"int" if dtype == "bool" else dtype for dtype in types}
                mixed = "float" if types <= {"int", "float"} else "other"
                return _TYPES.get(name) or (types.pop() if len(types) == 1 else mixed)

    def nullable(self, node: Node) -> bool:
        """Whether a node may be null where no column is that must not be."""
        match node:
            case ColumnNode(name):
                return self.columns[name].nullable
            case LiteralNode(value):
                return value is None
            case Cast(value, _) | Over(Cast(value, _), _, _):
                return self.nullable(value)
            case Over(CallNode(name, inputs, _), _, _):
                never = name in _NEVER_NULL
                return name == "shift" or (not never and any(map(self.nullable, inputs)))
            case CallNode("coalesce", inputs, _):
                return all(map(self.nullable, inputs))
            case CallNode("divide", (part, whole), _):
                return any(map(self.nullable, (part, whole))) or not _is_positive(whole)
            case CallNode(name, inputs, _) if name not in AGGREGATES:
                values = inputs[1:] if name == "when" else inputs
                return name not in _NEVER_NULL and any(map(self.nullable, values))
            case _:
                return not (isinstance(node, CallNode) and node.name in _NEVER_NULL)

    # -------------------------------------------------------------- writing

    def _written(self, node: Node) -> tuple[str, int]:
        match node:
            case ColumnNode(name):
                return self.columns[name].sql, _ATOM
            case LiteralNode(value):
                negative = isinstance(value, int | float) and value < 0
                return self.dialect.literal(value), 7 if negative else _ATOM
            case Cast(value, dtype):
                return self._cast(value, dtype)
            case Over(CallNode() as value, keys, order):
                return self._window(value, keys, order), _ATOM
            case CallNode("when", (condition, *values), _):
                first, *other = self._branches(node, values)
                otherwise = f" ELSE {other[0]}" if values[1] != LiteralNode(None) else ""
                return f"CASE WHEN {self.sql(condition)} THEN {first}{otherwise} END", _ATOM
            case CallNode("coalesce", inputs, _):
                return f"COALESCE({', '.join(self._branches(node, inputs))})", _ATOM
            case CallNode("least" | "greatest" as name, inputs, _):
                return self._extreme(getattr(self.dialect, name), inputs), _ATOM
            case CallNode("divide", (part, whole), _):  # null, not an error or infinity, by 0
                by = self.sql(whole, 7) if _is_positive(whole) else f"NULLIF({self.sql(whole)}, 0)"
                return f"{self.number(part)} / {by}", _DIVISION
            case CallNode("log", (value, LiteralNode(2.718281828459045)), _):
                return f"LN({self.sql(value)})", _ATOM
            case CallNode(name, _, _) if name in AGGREGATES:
                return self.aggregate(node), _ATOM
            case CallNode(name, inputs, _) if name in _FORMS:
                form = _FORMS[name]
                needed = form.needed or (0,) * len(inputs)
                texts = [self.sql(*pair) for pair in zip(inputs, needed, strict=True)]
                is_nan = self.dialect.is_nan_of(texts[0])
                text = form.text.format(*texts, is_nan=is_nan, double=self.dialect.types[0])
                return text, form.strength
            case _:
                name = node.name if isinstance(node, CallNode) else "over"
                msg = f"it has {name!r} where SQL cannot express it"
                raise ValueError(msg)

    def _extreme(self, function: str, inputs: tuple[Node, ...]) -> str:
        """Take the least or greatest value that is not null; some functions return null."""
        text, *others = map(self.sql, inputs)
        nullable = any(map(self.nullable, inputs))
        for other in others:
            pair = f"{text}, {other}"
            text = f"COALESCE({function}({pair}), {pair})" if nullable else f"{function}({pair})"
        return text

    def _branches(self, node: Node, values: tuple[Node, ...] | list[Node]) -> list[str]:
        """Write what stands for a value; beside doubles, a whole number has a point.

        SQLite has a type for each value, and would divide whole numbers as integers.
        """
        double = self._is_double(node)
        return [self._pointed(self.sql(value), double=double) for value in values]

    def _pointed(self, text: str, *, double: bool) -> str:
        return f"{text}.0" if double and re.fullmatch(r"-?\d+", text) else text

    def _cast(self, value: Node, dtype: str) -> tuple[str, int]:
        before = self.dtype(value)
        if before == "bool" and dtype != "bool":
            return self._as_number(value), _ATOM
        if before == dtype or (before == "int" and dtype == "float"):
            return self._written(value)  # where it matters, a division casts it
        if dtype == "int" and before == "float":  # CAST would round in most of them
            text = self.sql(value)
            return f"CASE WHEN {text} < 0 THEN CEIL({text}) ELSE FLOOR({text}) END", _ATOM
        if dtype == "bool":
            return f"{self.sql(value, 5)} <> 0", _COMPARISON
        return f"CAST({self.sql(value)} AS {self.dialect.types[dtype == 'int']})", _ATOM

    def _as_number(self, value: Node) -> str:
        text = self.sql(value)
        if self.nullable(value):
            return f"CASE WHEN {text} THEN 1 WHEN NOT {self.sql(value, 7)} THEN 0 END"
        return f"CASE WHEN {text} THEN 1 ELSE 0 END"

    def number(self, value: Node) -> str:
        """Write a value of which a mean or a division is taken."""
        if self._is_double(value):
            return self.sql(value, _DIVISION)
        text = self._as_number(value) if self.dtype(value) == "bool" else self.sql(value)
        return f"CAST({text} AS {self.dialect.types[0]})"

    def _is_double(self, node: Node) -> bool:
        """Whether a value is a double in SQL, too: whole numbers are written without a point."""
        match node:
            case ColumnNode(name):
                return self.columns[name].dtype == "float"
            case LiteralNode(value):
                return isinstance(value, float) and not value.is_integer()
            case Cast(value, dtype):
                return dtype == "float" and self.dtype(value) != "bool" and self._is_double(value)
            case Over(value, _, _):
                return self._is_double(value)
            case CallNode("when" | "coalesce" as name, inputs, _):
                values = inputs[name == "when" :]
                others = [value for value in values if not isinstance(value, LiteralNode)]
                return all(map(self._is_double, others)) and any(map(self._is_double, values))
            case CallNode(name, inputs, _):
                of_name = _TYPES.get(name, "")
                return of_name == "float" or (not of_name and any(map(self._is_double, inputs)))

    def column(self, value: Node) -> str:
        """Write a value as a column, of which the type says what it is."""
        return self.number(value) if self.dtype(value) == "float" else self.sql(value)

    def aggregate(self, node: CallNode, over: str = "") -> str:
        """Write an aggregate of a group that has rows, or of a window."""
        if node.name == "len":
            return f"COUNT(*){over}"
        if node.option is not None:
            msg = f"it has {f'{node.name}({node.option})'!r}, which SQL cannot express"
            raise ValueError(msg)
        (value,) = node.inputs
        text = self.column(value)
        if self.dtype(value) == "bool" and node.name != "count":
            if node.name == "all":
                return f"MIN(CASE WHEN NOT {self.sql(value, 7)} THEN 0 ELSE 1 END){over} = 1"
            if node.name in ("any", "sum"):  # null counts as false
                text = f"CASE WHEN {text} THEN 1 ELSE 0 END"
                return f"MAX({text}){over} = 1" if node.name == "any" else f"SUM({text}){over}"
            text = self._as_number(value)
        match node.name:
            case "sum":
                none = self._pointed("0", double=self.dtype(value) == "float")
                total = f"SUM({text}){over}"
                return f"COALESCE({total}, {none})" if self.nullable(value) else total
            case "mean":
                return f"AVG({self.number(value)}){over}"
            case "n_unique":
                return f"COUNT(DISTINCT {text}){over}"
            case name:
                return f"{name.upper()}({text}){over}"

    def _window(self, value: CallNode, keys: tuple[Node, ...], order: tuple[Node, ...]) -> str:
        if value.name == "is_duplicated":
            keys = value.inputs
        if value.name == "rank":
            order = value.inputs
        within = [f"PARTITION BY {', '.join(map(self.sql, keys))}"] if keys else []
        if order:
            falls = " DESC" if value.name == "rank" and value.option[1] else ""
            within.append(f"ORDER BY {', '.join(map(self._null_last, order))}{falls}")
        over = f" OVER ({' '.join(within)})"
        down = f"{over[:-1]} ROWS BETWEEN UNBOUNDED PRECEDING AND"
        match value:
            case CallNode("cum_sum", (number,), _):
                number = Cast(number, "int") if self.dtype(number) == "bool" else number
                return self._where_there(number, f"SUM({self.sql(number)}){down} CURRENT ROW)")
            case CallNode("rank", (number,), (method, _)):
                return self._where_there(number, f"{_RANKS[method]}(){over}")
            case CallNode("place", _, _):
                return f"ROW_NUMBER(){over}"
            case CallNode("product_above", (factor,), _):
                text, above = self.sql(factor, 5), f"{down} 1 PRECEDING)"
                logs = f"SUM(CASE WHEN {text} <= 0 THEN NULL ELSE LN({text}) END){above}"
                zeros = f"MAX(CASE WHEN {text} <= 0 THEN 1 ELSE 0 END){above}"
                return f"CASE WHEN {zeros} = 1 THEN 0.0 ELSE COALESCE(EXP({logs}), 1.0) END"
            case CallNode("shift", (number, LiteralNode(int() as by)), _):
                return f"{'LAG' if by > 0 else 'LEAD'}({self.sql(number)}, {abs(by)}){over}"
            case CallNode("is_duplicated", _, _):
                return f"(COUNT(*){over} > 1)"
            case CallNode(name, _, _) if name in AGGREGATES - {"n_unique"} and not order:
                text = self.aggregate(value, over)
                return f"({text})" if text.endswith(" = 1") else text
            case CallNode(name, _, _):
                msg = f"it has {name!r} over a window, which SQL cannot express"
                raise ValueError(msg)

    def _where_there(self, value: Node, text: str) -> str:
        is_there = f"{self.sql(value, 5)} IS NOT NULL"
        return f"CASE WHEN {is_there} THEN {text} END" if self.nullable(value) else text

    def _null_last(self, node: Node) -> str:
        """Order by a value, null last in every dialect."""
        text = self.sql(node)
        null = f"CASE WHEN {self.sql(node, 5)} IS NULL THEN 1 ELSE 0 END"
        return f"{null}, {text}" if self.nullable(node) else text


def _is_positive(node: Node) -> bool:
    """Whether a divisor cannot be 0, since ranks and places begin at 1."""
    match node:
        case LiteralNode(value):
            return isinstance(value, int | float) and value > 0
        case Cast(value, _):
            return _is_positive(value)
        case CallNode("log", (CallNode("plus", (value, LiteralNode(1))), base), _):
            return _is_positive(value) and _is_positive(base)
        case CallNode("plus" | "times" | "power", inputs, _):
            return all(map(_is_positive, inputs))
        case _:
            return isinstance(node, ColumnNode) and node.name in _POSITIVE
