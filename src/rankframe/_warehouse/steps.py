"""Rows in steps: windows cannot be nested in SQL, so a column is made after those that it reads."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from rankframe._evaluation import trees
from rankframe._evaluation.trees import (
    AGGREGATES,
    WINDOWED,
    CallNode,
    Cast,
    ColumnNode,
    LiteralNode,
    Node,
    Over,
)
from rankframe._warehouse.dialects import Dialect
from rankframe._warehouse.printing import ColumnText, Printer


class Cte(NamedTuple):
    """One named step of the query, and what it holds in one line."""

    name: str
    comment: str
    body: str


#: Writes a step after another one, of which it takes the name.
Join: TypeAlias = Callable[[str], str]


@dataclass
class Steps:
    """Rows of the truth or of hits, and the columns that are derived on them."""

    name: str
    comment: str
    dialect: Dialect
    keys: Sequence[str]  # of a list, as far as these rows have them
    source: str  # what follows SELECT *
    columns: MutableMapping[str, ColumnText]
    unshadowed: Callable[[str], str] = str  # makes a name that hides no table
    reserved: Sequence[str] = ()  # names that no derived column has
    facts: dict[Node, Node] = field(default_factory=dict[Node, Node])
    groups: frozenset[str] = frozenset()  # of lists, all of which have these rows
    truth: Steps | None = None  # the rows that these are some of
    step_of: dict[str, int] = field(default_factory=dict[str, int])
    derived: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    joined: dict[int, dict[str, Join]] = field(default_factory=dict[int, "dict[str, Join]"])
    windows: dict[Node, ColumnNode] = field(default_factory=dict[Node, ColumnNode])

    @property
    def printer(self) -> Printer:
        """Print what reads these rows."""
        return Printer(self.dialect, self.columns)

    @property
    def last(self) -> str:
        """The name of the step that has all columns."""
        return self.ctes()[-1].name

    def ctes(self) -> list[Cte]:
        """Write all steps."""
        source = self.source if self.truth is None else f"FROM {self.truth.last}\n  {self.source}"
        ctes = [Cte(self.name, self.comment, select(["*", *self.derived.get(1, [])], source))]
        for step in range(1, 1 + max([0, *self.derived, *self.joined])):
            columns, joined = self.derived.get(step, []), self.joined.get(step, {})
            if step > 1 and columns:
                words = [re.findall(r"\w+", column, re.ASCII)[-1] for column in columns]
                body = select(["*", *columns], f"FROM {ctes[-1].name}")
                ctes.append(self._after(ctes, words, body))
            for word, join in joined.items():
                ctes.append(self._after(ctes, [word], join(ctes[-1].name)))
        return ctes

    def _after(self, ctes: Sequence[Cte], words: Sequence[str], body: str) -> Cte:
        """Name a step after the first column that it adds."""
        name = self.unshadowed(f"{self.name}_with_{words[0]}")
        while name in [cte.name for cte in ctes]:
            name += "_"
        return Cte(name, f"the same, with {', '.join(words)}", body)

    def add(self, name: str, node: Node) -> None:
        """Derive a column, unless it is the same for all rows; aggregates are of all rows."""
        self._derive(name, self.prepare(node, of_all=True))

    def _derive(self, name: str, node: Node) -> None:
        printer = self.printer
        if isinstance(node, LiteralNode | ColumnNode):  # no column of its own
            self.facts[ColumnNode(name)] = node
            self.columns[name] = ColumnText(printer.sql(node), printer.dtype(node))
            return
        text = ColumnText(self._free(name), printer.dtype(node), printer.nullable(node))
        step = self.step_after(node)
        self.derived.setdefault(step, []).append(f"{printer.column(node)} AS {text.sql}")
        self.columns[name], self.step_of[name] = text, step

    def add_sum(self, name: str, value: Node, where: str, item: str) -> None:
        """Join a sum over rows of the truth."""
        assert self.truth is not None
        quoted, word = self.dialect.names_of, self._free(name)
        own = quoted([*self.keys, item])
        on = " AND ".join([f"o.{key} = a.{key}" for key in quoted(self.truth.keys)] + [where])
        columns = ", ".join(f"a.{key}" for key in own)
        printer = self.truth.prefixed("o")
        total = f"SUM({printer.column(value)}) AS {word}"
        rows = self.truth.last

        def join(before: str) -> str:
            return (
                f"  SELECT *\n  FROM {before}\n  LEFT JOIN (\n    SELECT {columns}, {total}\n"
                f"    FROM {before} AS a\n    JOIN {rows} AS o ON {on}\n"
                f"    GROUP BY {columns}\n  ) AS sums USING ({', '.join(own)})"
            )

        self.joined.setdefault(1, {})[word[1:-1]] = join
        self.columns[name], self.step_of[name] = ColumnText(word, printer.dtype(value)), 1

    def prefixed(self, table: str) -> Printer:
        """Print what reads these rows as another table; a constant has no column."""
        columns = dict(self.columns)
        for name, text in columns.items():
            if text.sql.startswith(self.dialect.quote):
                columns[name] = text._replace(sql=f"{table}.{text.sql}")
        return Printer(self.dialect, columns)

    def prepare(self, node: Node, *, of_all: bool = False) -> Node:
        """Simplify a node on these rows, and put windows inside windows into columns."""
        keys = () if of_all else tuple(map(ColumnNode, self.keys))
        node = self._of_truth(node, keys)
        return self._flatten_windows(simplified(node, self.printer, self.facts), keys)

    def _of_truth(self, node: Node, keys: tuple[Node, ...]) -> Node:
        """Take the windows that read the truth alone over all of its rows, before the join."""
        if self.truth is None:
            return node
        window = (
            Over(node, keys) if isinstance(node, CallNode) and node.name in AGGREGATES else node
        )
        read = {*trees.columns_of(window)} - self.truth.groups
        if isinstance(window, Over) and read <= {*self.truth.columns}:
            return self.truth.in_column(self.truth.prepare(window))
        return trees.changed(node, lambda below: self._of_truth(below, keys))

    def step_after(self, node: Node) -> int:
        """Tell the step in which a column that reads others can be made."""
        return 1 + max((self.step_of.get(name, 0) for name in trees.columns_of(node)), default=0)

    def _free(self, name: str) -> str:
        """Write a name of the vocabulary as one word that no other column has."""
        word = re.sub(r"\W+", "_", name).strip("_")
        taken = {text.sql.lower() for text in self.columns.values()}
        taken |= {name.lower() for name in self.dialect.names_of(self.reserved)}
        while self.dialect.name_of(word).lower() in taken:
            word += "_"
        return self.dialect.name_of(word)

    def _flatten_windows(self, node: Node, rest: tuple[Node, ...]) -> Node:
        """Put a window around what needs other rows: where none is named, those of ``rest``."""
        if isinstance(node, Over):
            order = tuple(self._flatten_windows(below, rest) for below in node.order)
            return self._push_window_down(node.value, node.keys, order, rest)
        if isinstance(node, CallNode) and node.name in AGGREGATES | {"rank", "is_duplicated"}:
            return self._push_window_down(node, rest, (), rest)
        if isinstance(node, CallNode) and node.name in WINDOWED:
            msg = f"it has {node.name!r} in no order: add .over(…, order_by=…)"
            raise ValueError(msg)
        return trees.changed(node, lambda below: self._flatten_windows(below, rest))

    def _push_window_down(
        self, node: Node, keys: tuple[Node, ...], order: tuple[Node, ...], rest: tuple[Node, ...]
    ) -> Node:
        """Move a window down to the functions that need other rows."""
        if isinstance(node, Over):
            return self._flatten_windows(node, rest)
        if isinstance(node, CallNode) and node.name in AGGREGATES | WINDOWED:
            # groups that these rows do not have yet all have the same rows
            own = (k for k in keys if not (isinstance(k, ColumnNode) and k.name in self.groups))
            inputs = tuple(
                self.in_column(self._flatten_windows(below, rest)) for below in node.inputs
            )
            return Over(CallNode(node.name, inputs, node.option), tuple(own), order)
        return trees.changed(node, lambda below: self._push_window_down(below, keys, order, rest))

    def in_column(self, node: Node) -> Node:
        """Put what has a window into a column of its own."""
        over = [below for below in trees.every_node(node) if isinstance(below, Over)]
        if over and node not in self.windows:
            value = over[0].value
            function = value.name if isinstance(value, CallNode) else "window"
            name = " ".join([function, *trees.columns_of(value)])
            while name in self.columns:
                name += " "
            self._derive(name, node)
            self.windows[node] = ColumnNode(name)
        return self.windows[node] if over else node


def select(columns: Sequence[str], source: str) -> str:
    """Write the body of a step: columns, and what follows them."""
    listed = ",\n    ".join(columns)
    return f"  SELECT *\n  {source}" if listed == "*" else f"  SELECT\n    {listed}\n  {source}"


def simplified(node: Node, printer: Printer, facts: Mapping[Node, Node]) -> Node:
    """Leave out what is the same for all of the rows."""
    node = trees.changed(node, lambda below: simplified(below, printer, facts))
    return facts[node] if node in facts else _number(_condition(node, printer), printer)


def _condition(node: Node, printer: Printer) -> Node:
    """Simplify conditions, and what depends on one."""
    match node:
        case CallNode("when", (LiteralNode(condition), value, otherwise)):
            return value if condition else otherwise
        case CallNode("greater", (LiteralNode(1 | 1.0), LiteralNode(0))):
            return LiteralNode(value=True)
        case CallNode("and" | "or", (left, right)):
            decides = node.name == "or"  # true decides or, and false decides and
            for side, other in ((left, right), (right, left)):
                if isinstance(side, LiteralNode) and isinstance(side.value, bool):
                    return side if side.value is decides else other
        case CallNode("is_null" | "is_not_null", (value,)) if not printer.nullable(value):
            return LiteralNode(node.name == "is_not_null")
        case CallNode("coalesce", (value, *_)) if not printer.nullable(value):
            return value
        case CallNode("any", (LiteralNode(False) as none,)):
            return none
        case _:
            pass
    return node


def _number(node: Node, printer: Printer) -> Node:
    """Simplify casts, products and sums."""
    match node:
        case Cast(LiteralNode(bool() as value), dtype) if dtype != "bool":
            return LiteralNode(int(value))
        case Cast(LiteralNode(None) as value, _):
            return value
        case Cast(value, dtype) if printer.dtype(value) == dtype:
            return value
        case CallNode("times", (LiteralNode(1 | 1.0), value) | (value, LiteralNode(1 | 1.0))):
            return value
        case CallNode("divide", (value, LiteralNode(1 | 1.0))):
            return Cast(value, "float")
        case CallNode("plus", (value, LiteralNode(int(0)))) if printer.dtype(value) == "int":
            return value
        case CallNode("sum" | "cum_sum", (LiteralNode(1),)):
            return CallNode("len" if node.name == "sum" else "place", ())
        case CallNode("sum", (LiteralNode(float() | int() as number),)):
            return CallNode("times", (CallNode("len", ()), LiteralNode(number)))
        case _:
            return node
