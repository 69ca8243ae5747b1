"""Nodes as SQL text: one fixed form for each thing in which warehouses differ."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from rankframe._vocabulary.trees import AGGREGATES, Call, Cast, Column, Literal, Node, Over
from rankframe._warehouse.dialects import Dialect


class ColumnText(NamedTuple):
    """How a column is written, and what is sure of its values."""

    sql: str
    dtype: str  # int, float, bool, or other
    nullable: bool = True


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
            case Column(name):
                return self.columns[name].dtype
            case Literal(value):
                return _type_of(value)
            case Cast(_, dtype):
                return dtype
            case Over(value, _, _):
                return self.dtype(value)
            case Call(name, inputs, _):
                return self._type_of_call(name, inputs)

    def nullable(self, node: Node) -> bool:
        """Whether a node may be null where no column is that must not be."""
        match node:
            case Column(name):
                return self.columns[name].nullable
            case Literal(value):
                return value is None
            case Cast(value, _):
                return self.nullable(value)
            case Over(Call(name, inputs, _), _, _):
                never = name in _NEVER_NULL
                return name == "shift" or (not never and any(map(self.nullable, inputs)))
            case Call("when", (_, *values), _):
                return any(map(self.nullable, values))
            case Call("coalesce", inputs, _):
                return all(map(self.nullable, inputs))
            case Call("divide", (part, whole), _):
                return any(map(self.nullable, (part, whole))) or not _is_positive(whole)
            case Call(name, inputs, _) if name in _NEVER_NULL:
                return False
            case Call(name, inputs, _) if name not in AGGREGATES:
                return any(map(self.nullable, inputs))
            case _:
                return True

    def _type_of_call(self, name: str, inputs: tuple[Node, ...]) -> str:
        if name in _BOOLEAN:
            return "bool"
        if name in _WHOLE:
            return "int"
        if name in _FLOATING:
            return "float"
        values = inputs[1:] if name == "when" else inputs
        types = {self.dtype(value) for value in values} - {"null"}
        if name not in ("when", "coalesce", "max", "min", "shift"):
            types = {"int" if dtype == "bool" else dtype for dtype in types}
        if len(types) == 1:
            return types.pop()
        return "float" if types <= {"int", "float"} else "other"

    # -------------------------------------------------------------- writing

    def _written(self, node: Node) -> tuple[str, int]:
        match node:
            case Column(name):
                return self.columns[name].sql, _ATOM
            case Literal(value):
                negative = isinstance(value, int | float) and value < 0
                return self.dialect.literal(value), _UNARY if negative else _ATOM
            case Cast(value, dtype):
                return self._cast(value, dtype)
            case Over(value, keys, order):
                return self._window(value, keys, order)
            case Call(name, _, _) if name in _OPERATORS:
                return self._operation(node)
            case Call(name, _, _) if name in AGGREGATES:
                return self.aggregate(node), _ATOM
            case Call(name, inputs, _) if name in _PLAIN:
                return f"{_PLAIN[name]}({', '.join(map(self.sql, inputs))})", _ATOM
            case Call(name, inputs, _) if name in _WRITERS:
                return _WRITERS[name](self, inputs)
            case _:
                msg = f"it has {node.name!r} where SQL has no form for it"
                raise ValueError(msg)

    def _operation(self, node: Call) -> tuple[str, int]:
        sign, strength = _OPERATORS[node.name]
        left, right = node.inputs
        # of equal strength, what stands right needs parentheses, and comparisons on both sides
        comparison = strength == _COMPARISON
        texts = self.sql(left, strength + comparison), self.sql(right, strength + 1)
        return f"{texts[0]} {sign} {texts[1]}", strength

    def _cast(self, value: Node, dtype: str) -> tuple[str, int]:
        before = self.dtype(value)
        if before == "bool" and dtype != "bool":
            return self._as_number(value), _ATOM
        if before == dtype or (before == "int" and dtype == "float"):
            return self._written(value)  # where it matters, a division casts it
        if dtype == "int" and before == "float":  # CAST would round in most of them
            whole = f"CASE WHEN {self.sql(value, 6)} < 0 THEN CEIL({self.sql(value)}) "
            return f"{whole}ELSE FLOOR({self.sql(value)}) END", _ATOM
        if dtype == "bool":
            return f"{self.sql(value, 5)} <> 0", _COMPARISON
        return f"CAST({self.sql(value)} AS {self.dialect.types[dtype == 'int']})", _ATOM

    def _as_number(self, value: Node) -> str:
        if isinstance(value, Literal):
            return "NULL" if value.value is None else str(int(bool(value.value)))
        if self.nullable(value):
            return f"CASE WHEN {self.sql(value)} THEN 1 WHEN {self._not(value)} THEN 0 END"
        return f"CASE WHEN {self.sql(value)} THEN 1 ELSE 0 END"

    def _not(self, value: Node) -> str:
        return f"NOT {self.sql(value, _UNARY)}"

    def number(self, value: Node) -> str:
        """Write a value of which a mean or a division is taken."""
        if self.dtype(value) == "bool":
            return f"CAST({self._as_number(value)} AS {self.dialect.types[0]})"
        if self.is_double(value):
            return self.sql(value, 6)
        return f"CAST({self.sql(value)} AS {self.dialect.types[0]})"

    def is_double(self, value: Node) -> bool:
        """Whether a value is a double in SQL, too: whole numbers are written without a point."""
        match value:
            case Column(name):
                return self.columns[name].dtype == "float"
            case Literal(number):
                return isinstance(number, float) and self._written(value)[0].startswith("CAST")
            case Cast(inner, "float"):
                return self.dtype(inner) != "bool" and self.is_double(inner)
            case Call("when" | "coalesce", inputs, _):
                values = inputs[value.name == "when" :]
                dictionary = [node for node in values if not isinstance(node, Literal)]
                return all(map(self.is_double, dictionary)) and any(map(self.is_double, values))
            case Call(name, inputs, _) if name in _LIKE_INPUTS:
                return any(map(self.is_double, inputs))
            case Call(name, _, _):
                return name in _FLOATING
            case Over(inner, _, _):
                return self.is_double(inner)
            case _:
                return False

    def branch(self, value: Node, *, double: bool) -> str:
        """Write what stands for a value; beside doubles, a whole number has a point.

        SQLite has a type for each value, and would divide whole numbers as integers.
        """
        text = self.sql(value)
        return f"{text}.0" if double and re.fullmatch(r"-?\d+", text) else text

    def column(self, value: Node) -> str:
        """Write a value as a column, of which the type says what it is."""
        return self.number(value) if self.dtype(value) == "float" else self.sql(value)

    def aggregate(self, node: Call) -> str:
        """Write an aggregate of a group that has rows."""
        if node.name == "len":
            return "COUNT(*)"
        (value,) = node.inputs
        text, nullable = self.sql(value), self.nullable(value)
        if self.dtype(value) == "bool":
            if node.name in ("any", "sum"):  # null counts as false
                text = f"CASE WHEN {text} THEN 1 ELSE 0 END"
                return f"MAX({text}) = 1" if node.name == "any" else f"SUM({text})"
            if node.name == "all":
                return f"MIN(CASE WHEN {self._not(value)} THEN 0 ELSE 1 END) = 1"
            if node.name != "count":
                text = self._as_number(value)
        elif self.dtype(value) == "float" and not self.is_double(value):
            text = self.number(value)
        match node.name:
            case "sum":
                none = self.branch(Literal(0), double=self.dtype(value) == "float")
                return f"COALESCE(SUM({text}), {none})" if nullable else f"SUM({text})"
            case "mean":
                return f"AVG({self.number(value)})"
            case "n_unique":
                return f"COUNT(DISTINCT {text})"
            case name:
                return f"{name.upper()}({text})"

    def _window(
        self, value: Node, keys: tuple[Node, ...], order: tuple[Node, ...]
    ) -> tuple[str, int]:
        assert isinstance(value, Call)
        within = [f"PARTITION BY {', '.join(map(self.sql, keys))}"] if keys else []
        if order:
            within.append(f"ORDER BY {', '.join(map(self._null_last, order))}")
        over, down = f"OVER ({' '.join(within)})", "ROWS BETWEEN UNBOUNDED PRECEDING AND"
        match value:
            case Call("cum_sum", (number,), _):
                number = Cast(number, "int") if self.dtype(number) == "bool" else number
                running = f"SUM({self.sql(number)}) {over[:-1]} {down} CURRENT ROW)"
                if self.nullable(number):
                    running = f"CASE WHEN {self.sql(number, 5)} IS NOT NULL THEN {running} END"
                return running, _ATOM
            case Call("place", _, _):
                return f"ROW_NUMBER() {over}", _ATOM
            case Call("product_above", (factor,), _):
                text, above = self.sql(factor, 5), f"{over[:-1]} {down} 1 PRECEDING)"
                logs = f"SUM(CASE WHEN {text} <= 0 THEN NULL ELSE LN({text}) END) {above}"
                zeros = f"MAX(CASE WHEN {text} <= 0 THEN 1 ELSE 0 END) {above}"
                product = f"COALESCE(EXP({logs}), 1.0)"
                return f"CASE WHEN {zeros} = 1 THEN 0.0 ELSE {product} END", _ATOM
            case Call("shift", (number, by), _):
                assert isinstance(by, Literal)
                assert isinstance(by.value, int)
                lag = "LAG" if by.value > 0 else "LEAD"
                return f"{lag}({self.sql(number)}, {abs(by.value)}) {over}", _ATOM
            case Call("rank", (number,), (method, falls)):
                place = self._null_last(number) + " DESC" * falls
                over = f"OVER ({' '.join([*within, f'ORDER BY {place}'])})"
                ranked = f"{_RANKS[method]}() {over}"
                if self.nullable(number):
                    ranked = f"CASE WHEN {self.sql(number, 5)} IS NOT NULL THEN {ranked} END"
                return ranked, _ATOM
            case Call("is_duplicated", columns, _):
                equal = f"PARTITION BY {', '.join(map(self.sql, columns))}"
                return f"COUNT(*) OVER ({equal}) > 1", _COMPARISON
            case Call(name, _, _) if name in AGGREGATES - {"n_unique"} and not order:
                return self._aggregate_over(value, over)
            case Call(name, _, _):
                msg = f"it has {name!r} over a window, which has no form in SQL"
                raise ValueError(msg)

    def _aggregate_over(self, value: Call, over: str) -> tuple[str, int]:
        text = self.aggregate(value)
        if text.startswith("COALESCE("):
            total, _, none = text[9:-1].rpartition(", ")
            return f"COALESCE({total} {over}, {none})", _ATOM
        if text.endswith(" = 1"):
            return f"{text[:-4]} {over} = 1", _COMPARISON
        return f"{text} {over}", _ATOM

    def _null_last(self, node: Node) -> str:
        """Order by a value, null last in every dialect."""
        text = self.sql(node)
        null = f"CASE WHEN {self.sql(node, 5)} IS NULL THEN 1 ELSE 0 END"
        return f"{null}, {text}" if self.nullable(node) else text


def _type_of(value: bool | float | str | None) -> str:  # noqa: FBT001
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float" if isinstance(value, float) else "other"


#: columns that begin at 1, and the number of rows of a group
_POSITIVE = {"rank", "ideal_rank", "ideal_place", "s COUNT(*)"}
_COMPARISON, _UNARY, _ATOM = 4, 7, 9
_OPERATORS = {
    "or": ("OR", 1),
    "and": ("AND", 2),
    "equal": ("=", _COMPARISON),
    "not_equal": ("<>", _COMPARISON),
    "less": ("<", _COMPARISON),
    "less_equal": ("<=", _COMPARISON),
    "greater": (">", _COMPARISON),
    "greater_equal": (">=", _COMPARISON),
    "plus": ("+", 5),
    "minus": ("-", 5),
    "times": ("*", 6),
}
_PLAIN = {
    "abs": "ABS",
    "ceil": "CEIL",
    "exp": "EXP",
    "floor": "FLOOR",
    "power": "POWER",
    "sqrt": "SQRT",
}
_RANKS = {"dense": "DENSE_RANK", "min": "RANK", "ordinal": "ROW_NUMBER"}
_BOOLEAN = {*_OPERATORS} - {"plus", "minus", "times"} | {
    *("not", "is_null", "is_not_null", "is_nan", "is_finite", "is_infinite", "is_duplicated"),
    *("any", "all"),
}
_WHOLE = {"count", "n_unique", "len", "rank", "place"}
_FLOATING = {"divide", "exp", "floor", "ceil", "log", "mean", "power", "product_above", "sqrt"}
_LIKE_INPUTS = {
    *("plus", "minus", "times", "negate", "abs", "sum", "max", "min", "cum_sum", "shift"),
}
_NEVER_NULL = {
    *("sum", "count", "n_unique", "len", "any", "all", "place", "product_above"),
    *("is_null", "is_not_null", "is_duplicated"),
}


def _when(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    condition, value, otherwise = inputs
    double = printer.is_double(Call("when", inputs))
    text = f"CASE WHEN {printer.sql(condition)} THEN {printer.branch(value, double=double)}"
    if otherwise != Literal(None):
        text += f" ELSE {printer.branch(otherwise, double=double)}"
    return f"{text} END", _ATOM


def _coalesce(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    double = printer.is_double(Call("coalesce", inputs))
    return f"COALESCE({', '.join(printer.branch(node, double=double) for node in inputs)})", _ATOM


def _divide(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    """Divide as doubles; null, not an error or infinity, if the divisor is 0."""
    part, whole = inputs
    divisor = f"NULLIF({printer.sql(whole)}, 0)"
    if _is_positive(whole):
        divisor = printer.sql(whole, _UNARY)
    return f"{printer.number(part)} / {divisor}", 6


def _is_positive(node: Node) -> bool:
    """Whether a divisor cannot be 0, since ranks and places begin at 1."""
    match node:
        case Literal(value):
            return isinstance(value, int | float) and value > 0
        case Cast(value, _):
            return _is_positive(value)
        case Call("log", (Call("plus", (value, Literal(1))), base), _):
            return _is_positive(value) and _is_positive(base)
        case Call("plus" | "times" | "power", inputs, _):
            return all(map(_is_positive, inputs))
        case _:
            return isinstance(node, Column) and node.name in _POSITIVE


def _log(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    """Take a logarithm; the order of LOG's arguments differs."""
    value, base = inputs
    natural = isinstance(base, Literal) and base.value == 2.718281828459045
    text = f"LN({printer.sql(value)})"
    return (text, _ATOM) if natural else (f"{text} / LN({printer.sql(base)})", 6)


def _extreme(name: str) -> Callable[[Printer, tuple[Node, ...]], tuple[str, int]]:
    def write(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
        """Take the least or greatest value that is not null; some functions return null."""
        text, *others = map(printer.sql, inputs)
        function = getattr(printer.dialect, name)
        nullable = any(map(printer.nullable, inputs))
        for other in others:
            pair = f"{text}, {other}"
            text = f"{function}({pair})"
            text = f"COALESCE({text}, {pair})" if nullable else text
        return text, _ATOM

    return write


def _null(test: str) -> Callable[[Printer, tuple[Node, ...]], tuple[str, int]]:
    def write(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
        return f"{printer.sql(inputs[0], 5)} IS {test}", _COMPARISON

    return write


def _not(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    return f"NOT {printer.sql(inputs[0], _UNARY)}", 3


def _negate(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    return f"-{printer.sql(inputs[0], _ATOM)}", _UNARY


def _is_nan(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    dialect = printer.dialect
    return dialect.is_nan.format(printer.sql(inputs[0], 5), dialect.nan), _COMPARISON


def _is_infinite(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    greatest = f"CAST(1.7976931348623157e308 AS {printer.dialect.types[0]})"
    test = f"ABS({printer.sql(inputs[0])}) > {greatest}"
    return f"{test} AND NOT {_is_nan(printer, inputs)[0]}", 2


def _is_finite(printer: Printer, inputs: tuple[Node, ...]) -> tuple[str, int]:
    greatest = f"CAST(1.7976931348623157e308 AS {printer.dialect.types[0]})"
    # NaN is the greatest number in most of them, and no comparison with it is true in BigQuery
    return f"ABS({printer.sql(inputs[0])}) <= {greatest}", _COMPARISON


_WRITERS: Mapping[str, Callable[[Printer, tuple[Node, ...]], tuple[str, int]]] = {
    "coalesce": _coalesce,
    "divide": _divide,
    "greatest": _extreme("greatest"),
    "is_finite": _is_finite,
    "is_infinite": _is_infinite,
    "is_nan": _is_nan,
    "is_not_null": _null("NOT NULL"),
    "is_null": _null("NULL"),
    "least": _extreme("least"),
    "log": _log,
    "negate": _negate,
    "not": _not,
    "when": _when,
}
