"""Rows in steps: windows cannot be nested in SQL, so a column is made after those that it reads."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from rankframe._vocabulary import trees
from rankframe._vocabulary.trees import (
    AGGREGATES,
    WINDOWED,
    Call,
    Cast,
    Column,
    Literal,
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


class Sum(NamedTuple):
    """A column that is a sum over other rows of the list: a join of two rows of it."""

    column: str
    rows: str  # the CTE of the other rows
    keys: Sequence[str]
    value: str
    where: str
    absent: str | None


@dataclass
class Steps:
    """The rows of one scope, and the columns that are derived on them."""

    name: str
    comment: str
    dialect: Dialect
    keys: Sequence[str]  # of a list, as far as these rows have them
    item: str
    base: str  # the first SELECT
    dictionary: MutableMapping[str, ColumnText]
    groups: frozenset[Node] = frozenset()  # of lists, all of which have these rows
    facts: dict[Node, Node] = field(default_factory=dict[Node, Node])
    step_of: dict[str, int] = field(default_factory=dict[str, int])
    columns: dict[int, list[str]] = field(default_factory=dict[int, list[str]])
    sums: dict[int, list[Sum]] = field(default_factory=dict[int, list[Sum]])
    windows: dict[Node, Column] = field(default_factory=dict[Node, Column])
    truth: Steps | None = None  # the rows that these are some of

    @property
    def printer(self) -> Printer:
        """Print what reads these rows."""
        return Printer(self.dialect, self.dictionary)

    def add(self, name: str, node: Node, *, of_all: bool = False) -> None:
        """Derive a column, unless it is the same for all rows.

        An aggregate in it is one of each list, or ``of_all`` rows.
        """
        self._derive(name, self.ready(node, of_all=of_all))

    def _derive(self, name: str, node: Node) -> None:
        if isinstance(node, Literal | Column):  # no column of its own
            self.facts[Column(name)] = node
            self.dictionary[name] = ColumnText(self.printer.sql(node), self.printer.dtype(node))
            return
        dictionary = ColumnText(
            self.dialect.name_of(self._free(name)),
            self.printer.dtype(node),
            self.printer.nullable(node),
        )
        step = self._after(node)
        self.columns.setdefault(step, []).append(f"{self.printer.column(node)} AS {dictionary.sql}")
        self.dictionary[name], self.step_of[name] = dictionary, step

    def add_sum(self, column: str, total: Sum, reads: Collection[Node], dtype: str) -> None:
        """Join a sum over rows of the same list."""
        step = max(map(self._after, reads), default=1)
        dictionary = ColumnText(
            self.dialect.name_of(self._free(column)), dtype, total.absent is None
        )
        self.sums.setdefault(step, []).append(total._replace(column=dictionary.sql))
        self.dictionary[column], self.step_of[column] = dictionary, step

    def ready(self, node: Node, *, of_all: bool = False) -> Node:
        """Simplify a node on these rows, and put windows inside windows into columns."""
        keys = () if of_all else tuple(map(Column, self.keys))
        node = self._of_truth(node, keys)
        return self._flat(simplified(node, self.printer, self.facts), keys)

    def _of_truth(self, node: Node, keys: tuple[Node, ...]) -> Node:
        """Take the windows that read the truth alone over all of its rows, before the join."""
        if self.truth is None:
            return node
        window = Over(node, keys) if isinstance(node, Call) and node.name in AGGREGATES else node
        if isinstance(window, Over) and self.truth.has(window):
            return self.truth.in_column(self.truth.ready(window))
        inputs = tuple(self._of_truth(below, keys) for below in trees.inputs_of(node))
        return trees.rebuilt(node, inputs)

    def ctes(self) -> list[Cte]:
        """Write all steps; the last one has the name of the rows."""
        last = max([0, *self.columns, *self.sums])
        bodies: list[tuple[str, str]] = [(self.base, "")]
        for step in range(1, last + 1):
            if columns := self.columns.get(step):
                listed = ",\n".join(f"    {column}" for column in columns)
                bodies.append((f"  SELECT\n    *,\n{listed}\n  FROM {{before}}", ""))
            if sums := self.sums.get(step):
                bodies.append((self._joined(sums), ""))
        names = [f"{self.name}_step_{place}" for place in range(1, len(bodies))]
        ctes: list[Cte] = []
        for place, (body, _) in enumerate(bodies):
            name = [*names, self.name][place]
            comment = self.comment if place == 0 else "the same, with columns derived on them"
            before = names[place - 1] if place else ""
            ctes.append(Cte(name, comment, body.replace("{before}", before)))
        return ctes

    def _joined(self, sums: Sequence[Sum]) -> str:
        """Join two rows of each list, once for each sum."""
        row = self.dialect.names_of([*self.keys, self.item])
        columns: list[str] = []
        joins: list[str] = []
        for number, total in enumerate(sums, 1):
            other = "{before}" if total.rows == self.name else total.rows
            same = self.dialect.names_of(total.keys)
            on = [f"o.{key} = a.{key}" for key in same] + ([total.where] if total.where else [])
            names = ", ".join(f"a.{name}" for name in row)
            joins.append(
                f"  LEFT JOIN (\n    SELECT {names}, SUM({total.value}) AS {total.column}\n"
                f"    FROM {{before}} AS a JOIN {other} AS o ON {' AND '.join(on)}\n"
                f"    GROUP BY {names}\n"
                f"  ) AS s{number} ON {' AND '.join(f's{number}.{n} = r.{n}' for n in row)}"
            )
            value = f"s{number}.{total.column}"
            if total.absent is not None:
                value = f"COALESCE({value}, {total.absent})"
            columns.append(f",\n    {value} AS {total.column}")
        return f"  SELECT\n    r.*{''.join(columns)}\n  FROM {{before}} AS r\n" + "\n".join(joins)

    def _after(self, node: Node) -> int:
        return 1 + max((self.step_of.get(name, 0) for name in trees.columns_of(node)), default=0)

    def _free(self, name: str) -> str:
        """Write a name of the vocabulary as one word that no other column has."""
        word = re.sub(r"\W+", "_", name).strip("_")
        taken = {dictionary.sql.lower() for dictionary in self.dictionary.values()}
        while self.dialect.name_of(word).lower() in taken:
            word += "_"
        return word

    def _flat(self, node: Node, rest: tuple[Node, ...]) -> Node:
        """Put a window around what needs other rows: where none is named, those of ``rest``."""
        if isinstance(node, Over):
            order = tuple(self._flat(below, rest) for below in node.order)
            return self._pushed(node.value, node.keys, order, rest)
        if isinstance(node, Call) and node.name in AGGREGATES | {"rank", "is_duplicated"}:
            return self._pushed(node, rest, (), rest)
        if isinstance(node, Call) and node.name in WINDOWED:
            msg = f"it has {node.name!r} in no order: add .over(…, order_by=…)"
            raise ValueError(msg)
        inputs = tuple(self._flat(below, rest) for below in trees.inputs_of(node))
        return trees.rebuilt(node, inputs)

    def has(self, window: Over) -> bool:
        """Whether these rows have what a window reads, beside the groups that it is in."""
        groups = {key.name for key in self.groups if isinstance(key, Column)}
        return {*trees.columns_of(window)} - groups <= {*self.dictionary}

    def _own_keys(self, keys: tuple[Node, ...]) -> tuple[Node, ...]:
        """Leave out the groups that these rows do not have yet, since all have the same rows."""
        lists = {Column(name) for name in self.keys}
        return tuple(key for key in keys if key in lists or key not in self.groups)

    def _pushed(
        self, node: Node, keys: tuple[Node, ...], order: tuple[Node, ...], rest: tuple[Node, ...]
    ) -> Node:
        """Move a window down to the functions that need other rows."""
        if isinstance(node, Call) and node.name in AGGREGATES | WINDOWED:
            keys = self._own_keys(keys)
            inputs = tuple(self.in_column(self._flat(below, rest)) for below in node.inputs)
            if node.name == "is_duplicated":
                keys = ()
            return Over(Call(node.name, inputs, node.option), keys, order)
        if isinstance(node, Over):
            return self._flat(node, rest)
        inputs = tuple(self._pushed(below, keys, order, rest) for below in trees.inputs_of(node))
        return trees.rebuilt(node, inputs)

    def in_column(self, node: Node) -> Node:
        """Put what has a window into a column of its own."""
        if not any(isinstance(below, Over) for below in trees.every_node(node)):
            return node
        if node not in self.windows:
            name = f"{self.name} window {len(self.windows) + 1}"
            self._derive(name, node)
            self.windows[node] = Column(name)
        return self.windows[node]


def simplified(node: Node, printer: Printer, facts: Mapping[Node, Node]) -> Node:
    """Leave out what is the same for all of the rows."""
    inputs = tuple(simplified(below, printer, facts) for below in trees.inputs_of(node))
    node = trees.rebuilt(node, inputs)
    if node in facts:
        return facts[node]
    if isinstance(node, Cast) and isinstance(node.value, Literal):
        if isinstance(node.value.value, bool) and node.dtype != "bool":
            return Literal(int(node.value.value))
        return node.value if node.value.value is None else node
    if isinstance(node, Cast) and printer.dtype(node.value) == node.dtype:
        return node.value
    if not isinstance(node, Call):
        return node
    return _simplified_call(node, printer)


def _simplified_call(node: Call, printer: Printer) -> Node:
    match node:
        case Call("when", (Literal(condition), value, otherwise)):
            return value if condition else otherwise
        case Call("and" | "or", (left, right)):
            decides = node.name == "or"  # true decides or, and false decides and
            for side, other in ((left, right), (right, left)):
                if isinstance(side, Literal) and isinstance(side.value, bool):
                    return side if side.value is decides else other
        case Call("is_null" | "is_not_null", (value,)) if not printer.nullable(value):
            return Literal(node.name == "is_not_null")
        case Call("coalesce", (value, *_)) if not printer.nullable(value):
            return value
        case Call("sum", (Literal(1),)):
            return Call("len", ())
        case Call("sum", (Literal(float() | int() as number),)):
            return Call("times", (Call("len", ()), Literal(number)))
        case Call("cum_sum", (Literal(1),)):
            return Call("place", ())
        case _:
            pass
    return node
