"""The values of the metrics of one scope: rows, sums, and one value per user, as CTEs.

Sums of the truth alone are taken before it is joined. The others are sums of the hits, unless an
item that was not retrieved counts in one of them.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rankframe._request import registry
from rankframe._request.labels import RequestedMetric
from rankframe._request.registry import OWN, Reading, SumOver
from rankframe._vocabulary import trees
from rankframe._vocabulary.scope_rows import Rows
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
from rankframe._warehouse.steps import Cte, Steps, Sum, simplified
from rankframe._warehouse.tables import Sources

_GRADED = Call("greater", (Column("relevance"), Literal(0)))
_BELOW_0 = Call("less", (Column("relevance"), Literal(0)))
_HAS_ROWS: Mapping[Node, Node] = {
    Call("greater", (Column("s COUNT(*)"), Literal(0))): Literal(value=True)
}
_NULL, _ZERO, _OTHER = "null", "zero", "other"


class Values(NamedTuple):
    """A CTE with one row per user, and the columns of metrics in it."""

    name: str
    ctes: list[Cte]
    types: dict[str, str]
    all_users: bool  # whether it has each user of grade > 0, and no other


def values_of(
    sources: Sources, rows: Rows, reading: Reading, metrics: Sequence[RequestedMetric], suffix: str
) -> Values:
    """Translate the metrics of one scope."""
    return _Scope(sources, rows, reading, suffix).values(metrics)


class _Scope:
    """The rows of one scope while metrics are translated."""

    def __init__(self, sources: Sources, rows: Rows, reading: Reading, suffix: str) -> None:
        self.sources, self.rows, self.reading, self.suffix = sources, rows, reading, suffix
        self.dialect: Dialect = sources.dialect
        self.settings = rows.judged.settings
        columns = reading.columns.values()
        self.whole = any("judged" in (c.scope, c.derived_over) for c in columns)
        self.graded = not self.whole and reading.scope == "relevant"
        self.listed = reading.scope == "listed"
        self.forms: dict[str, Node | SumOver] = {}
        # by table and text: how each sum is written there, and where it is read
        self.sums: dict[tuple[str, str], tuple[ColumnText, ColumnText]] = {}
        self.lengths: list[str] = []  # the lengths of lists that are read here
        self.truth = self.hits = self._steps_of_truth()

    # -------------------------------------------------------------- the rows

    def _steps_of_truth(self) -> Steps:
        """Begin with the rows of the truth: of grade > 0 unless others count."""
        sources = self.sources
        names = sources.dialect.names_of([*sources.truth_keys, sources.item])
        relevance, least = sources.dialect.name_of("relevance"), self.settings.least_gain
        gain, facts = relevance, dict[Node, Node]()
        if least is not None:
            line = sources.dialect.literal(float(least))
            gain = f"CASE WHEN {relevance} > 0 AND {relevance} < {line} THEN 0 ELSE {relevance} END"
            gain = f"{gain} AS {relevance},\n    {relevance} > 0 AS {self._was_graded}"
        elif self.graded:
            facts[_GRADED] = Literal(value=True)
            facts[_BELOW_0] = Literal(value=False)
        own = sources.dialect.names_of(sources.own_of_truth)
        columns = ",\n    ".join([*names, gain, *own])
        base = f"  SELECT\n    {columns}\n  FROM {sources.name('judgments')}"
        base += f"\n  WHERE {relevance} > 0" if self.graded else ""
        dictionary = sources.dictionary([*sources.truth_keys, sources.item, *sources.own_of_truth])
        dictionary["relevance"] = ColumnText(relevance, "float", nullable=False)
        return Steps(
            sources.name(f"{'relevant' if self.graded else 'judged'}{self.suffix}"),
            "items of grade > 0" if self.graded else "all judged items",
            sources.dialect,
            sources.truth_keys,
            sources.item,
            base,
            dictionary,
            frozenset(map(Column, sources.lacking)),
            facts,
        )

    @property
    def _was_graded(self) -> str:
        return self.dialect.name_of("was_graded")

    def _steps_of_hits(self, *, only_hits: bool) -> Steps:
        """Join the ranks: only the items that were retrieved, or null for the others."""
        sources, truth = self.sources, self.truth
        quoted, lists, rows = self.dialect.name_of, sources.cut, truth.name
        row = [*sources.keys, sources.item]
        source = {name: "t" if name in truth.dictionary else "g" for name in row}
        listed = [*(["rank"]), *sources.own_of_run]
        if only_hits:
            source = {name: "t" if name in truth.dictionary else "l" for name in row}
            shared = [name for name in row if name in truth.dictionary]
            base = f"  FROM {rows} AS t\n  JOIN {lists} AS l ON {self._on('l', 't', shared)}"
        else:
            groups = f" CROSS JOIN {sources.name('all_groups')} AS g" if sources.lacking else ""
            on = " AND ".join(f"l.{quoted(n)} = {source[n]}.{quoted(n)}" for n in row)
            base = f"  FROM {rows} AS t{groups}\n  LEFT JOIN {lists} AS l ON {on}"
        dictionary = sources.dictionary([*row, *sources.own_of_run])
        dictionary["rank"] = ColumnText(quoted("rank"), "int", nullable=not only_hits)
        of_groups = [f"{'l' if only_hits else 'g'}.{quoted(n)}" for n in sources.lacking]
        columns = [*of_groups, "t.*", *(f"l.{quoted(name)}" for name in listed)]
        for name in self.lengths:
            columns.append(f"{self._length_of(name)} AS {self._word(name)}")
            dictionary[name] = ColumnText(self._word(name), "int", nullable=False)
        if self.lengths:
            on = " AND ".join(f"n.{quoted(k)} = {source[k]}.{quoted(k)}" for k in sources.keys)
            base += f"\n  LEFT JOIN {sources.name('list_lengths')} AS n ON {on}"
        return Steps(
            sources.name(f"{'hits' if only_hits else 'ranked'}{self.suffix}"),
            f"those in the lists, of {rows}" if only_hits else f"{rows}, with ranks",
            self.dialect,
            sources.keys,
            sources.item,
            f"  SELECT\n    {', '.join(columns)}\n{base}",
            ChainMap(dictionary, truth.dictionary),  # columns may be added to the truth
            facts=truth.facts,
            truth=truth,
        )

    def _steps_of_lists(self) -> Steps:
        """Begin with the whole lists, and if the truth is read, its rows that are in none."""
        sources, quoted = self.sources, self.dialect.name_of
        row = [*sources.keys, sources.item]
        columns = [*row, "rank", *sources.own_of_run]
        dictionary = sources.dictionary([*row, *sources.own_of_run])
        dictionary["rank"] = ColumnText(quoted("rank"), "int")
        base = ", ".join(self.dialect.names_of(columns)) + f"\n  FROM {sources.cut}"
        if self.reading.lists_alone and not sources.own_of_truth:
            dictionary["rank"] = ColumnText(quoted("rank"), "int", nullable=False)
        else:
            truth = self.dialect.names_of([*sources.truth_keys, sources.item])
            groups = self.dialect.names_of(sources.lacking)
            crossed = f" CROSS JOIN {sources.name('all_groups')}" if groups else ""
            wanted = self.dialect.names_of(["relevance", *sources.own_of_truth])
            source = f"SELECT {', '.join([*groups, *truth, *wanted])}"
            ids = [f"COALESCE(l.{n}, t.{n}) AS {n}" for n in self.dialect.names_of(row)]
            own = [f"l.{name}" for name in self.dialect.names_of(["rank", *sources.own_of_run])]
            base = ", ".join([*ids, *own, *(f"t.{name}" for name in wanted)])
            base += f"\n  FROM {sources.cut} AS l\n  FULL JOIN (\n    {source}\n    FROM "
            base += f"{sources.name('judgments')}{crossed}\n  ) AS t ON {self._on('l', 't', row)}"
            dictionary |= sources.dictionary(sources.own_of_truth)
            dictionary["relevance"] = ColumnText(quoted("relevance"), "float")
        return Steps(
            sources.name(f"listed{self.suffix}"),
            "the whole lists",
            self.dialect,
            sources.keys,
            sources.item,
            f"  SELECT {base}",
            dictionary,
        )

    def _on(self, left: str, right: str, names: Sequence[str]) -> str:
        quoted = self.dialect.names_of(names)
        return " AND ".join(f"{left}.{name} = {right}.{name}" for name in quoted)

    # -------------------------------------------------------------- columns of the vocabulary

    def _form(self, name: str) -> Node | SumOver:
        """Look up how a column is derived."""
        if name not in self.forms:
            column = self.reading.columns[name]
            text = [] if column.parameter is None else [registry.parameter_text(name, column)]
            if column.form is not None:
                form = column.form(self.rows.keys, *text)
                self.forms[name] = form if isinstance(form, SumOver) else trees.read(form)
            elif column.derive is not None:
                self.forms[name] = trees.read(column.derive(self.rows, *text))
            else:
                msg = f"it reads {name!r}, which a join adds that has no form in SQL"
                raise ValueError(msg)
        return self.forms[name]

    def _is_base(self, name: str) -> bool:
        return name in ("rank", "relevance") or name not in self.reading.columns

    def _is_of_list(self, name: str) -> bool:
        """Whether a column is one number of each list."""
        if self._is_base(name):
            return False
        form = self._form(name)
        return isinstance(form, SumOver) and form.rows == "list"

    def _needs_rank(self, name: str) -> bool:
        """Whether a column is there only after the join."""
        if self._is_base(name):
            return self.listed or name == "rank" or name in self.sources.own_of_run
        form = self._form(name)
        return isinstance(form, SumOver) or any(map(self._needs_rank, trees.columns_of(form)))

    def _made(self, node: Node, steps: Steps) -> None:
        """Derive the columns that a node reads."""
        for name in trees.columns_of(node):
            home = steps if self._needs_rank(name) else self.truth
            if name in home.dictionary or name in steps.dictionary:
                continue
            if name in self.sources.lacking:  # a window over all groups
                continue
            if self._is_base(name):
                self._refuse_unknown(name)
            form = self._form(name)
            if isinstance(form, SumOver):
                self._add_sum(name, form)
                continue
            if self.listed and not self.reading.columns[name].of_all_rows:
                msg = f"it reads 'listed' and {name!r}, a column of fewer rows"
                raise ValueError(msg)
            self._made(form, home)
            home.add(name, form, of_all=True)

    def _refuse_unknown(self, name: str) -> None:
        msg = f"it reads the column {name!r}, which schema= does not name"
        raise ValueError(msg)

    def _add_sum(self, name: str, form: SumOver) -> None:
        """Add up over the rows of the same list, in a join of the hits with these."""
        own = [Column(n.removeprefix(OWN)) for n in _read_by(form) if n.startswith(OWN)]
        others = [Column(n) for n in _read_by(form) if not n.startswith(OWN)]
        of_truth = form.rows == "truth"
        other = self.truth if of_truth else self.hits
        value, where = trees.read(form.value), form.where
        for node in own:
            self._made(node, self.hits)
        for node in others:
            self._made(node, other)
        if any(isinstance(node, Over) for node in trees.every_node(value)):
            other.add(f"{name} step", value)
            value = Column(f"{name} step")
        prefixed = {n: self._of("o", k) for n, k in other.dictionary.items()}
        prefixed |= {f"{OWN}{n}": self._of("a", k) for n, k in self.hits.dictionary.items()}
        printer = Printer(self.dialect, prefixed)
        condition = "" if where is None else printer.sql(self._plain(where, printer), 2)
        value = simplified(value, printer, self.truth.facts)
        text = printer.column(value)
        none, double = Literal(form.absent), printer.dtype(value) == "float"
        absent = None if form.absent is None else printer.branch(none, double=double)
        self.hits.add_sum(
            name,
            Sum("", other.name, other.keys, text, condition, absent),
            own if of_truth else [*own, *others],
            printer.dtype(value),
        )

    def _of(self, table: str, dictionary: ColumnText) -> ColumnText:
        """Read a column of this table; what is the same for all rows has no column."""
        is_name = dictionary.sql.startswith(self.dialect.quote)
        return dictionary._replace(sql=f"{table}.{dictionary.sql}") if is_name else dictionary

    def _plain(self, where: object, printer: Printer) -> Node:
        return simplified(trees.read(where), printer, {})  # type: ignore[arg-type]

    # -------------------------------------------------------------- sums and values

    def values(self, metrics: Sequence[RequestedMetric]) -> Values:
        """Translate the metrics, each from its own expression."""
        nodes = {metric.name: trees.read(metric.expr) for metric in metrics}
        for node in nodes.values():
            self._note_lengths(node)
        if self.listed:
            self.truth = self.hits = self._steps_of_lists()
        else:
            inner = all(self._vanishes(node) and self._is_steady(node) for node in nodes.values())
            self.hits = self._steps_of_hits(only_hits=inner)
        return self._written({name: self._reduced(node) for name, node in nodes.items()})

    def _note_lengths(self, node: Node) -> None:
        """Find the lengths of lists that are read on rows or, of all rows, as their maximum."""
        for name in trees.columns_of(node):
            if name.startswith(OWN) or self._is_base(name):
                continue
            form = self._form(name)
            if not isinstance(form, SumOver):
                self._note_lengths(form)
            elif form.rows == "list" and name not in self.lengths:
                rank = ColumnText(self.dialect.name_of("rank"), "int", nullable=False)
                printer = Printer(self.dialect, {"rank": rank})
                total = simplified(Call("sum", (trees.read(form.value),)), printer, {})
                self.lengths.append(name)
                self.sources.lengths[self._word(name)] = printer.sql(total)

    def _word(self, name: str) -> str:
        return self.dialect.name_of(name.replace("(", "_").replace(")", ""))

    def _length_of(self, name: str) -> str:
        return f"COALESCE(n.{self._word(name)}, 0)"

    def _reduced(self, node: Node) -> Node:
        """Put each aggregate into a column of sums."""
        if isinstance(node, Call) and node.name in AGGREGATES:
            return self._sum(node)
        if isinstance(node, Column):
            msg = f"it reads {node.name!r} outside an aggregate, so a user has several values"
            raise ValueError(msg)  # noqa: TRY004  (of the expression, not of an argument)
        return trees.rebuilt(node, tuple(map(self._reduced, trees.inputs_of(node))))

    def _sum(self, node: Call) -> Node:
        """Choose the rows of an aggregate: those of the truth alone, or with ranks."""
        names = trees.columns_of(node)
        groups = not {*names}.isdisjoint(self.sources.lacking)
        of_hits = any(map(self._needs_rank, names)) or self.listed or groups
        home = self.hits if of_hits else self.truth
        self._made(Call("", tuple(Column(n) for n in names if not self._is_of_list(n))), home)
        return self._sum_of(home, node)

    def _sum_of(self, home: Steps, node: Node) -> Node:
        if not isinstance(node, Call):
            return node
        if node.name not in AGGREGATES:  # what a sum became
            return trees.rebuilt(node, tuple(self._sum_of(home, n) for n in node.inputs))
        of_lists = {n: ColumnText(self._length_of(n), "int", nullable=False) for n in self.lengths}
        printer = Printer(self.dialect, {**of_lists, **home.dictionary})
        plain = simplified(node, printer, home.facts)
        if not isinstance(plain, Call) or plain.name not in AGGREGATES:
            return self._sum_of(home, plain)
        names, of_truth = trees.columns_of(plain), home is self.truth and not self.listed
        if plain.name in ("any", "max", "min", "mean"):  # of one value, where there are rows
            constant = of_truth and isinstance(plain.inputs[0], Literal)
            if constant or (names and all(map(self._is_of_list, names))):
                return plain.inputs[0]
        inputs = tuple(home.in_column(home.ready(n)) for n in trees.inputs_of(plain))
        total = Call(plain.name, inputs, plain.option)
        text, table = home.printer.aggregate(total), "s" if of_truth else "h"
        if (table, text) not in self.sums:
            self.sums[table, text] = self._named(table, total, home)
        return Column(f"{table} {text}")

    def _named(self, table: str, node: Call, home: Steps) -> tuple[ColumnText, ColumnText]:
        """Name a sum after what it reads, and tell what it is for a user without rows."""
        words = [home.dictionary[name].sql[1:-1] for name in trees.columns_of(node)]
        words += [cut for below in trees.every_node(node) for cut in _cuts_in(below)]
        stem = "_".join(dict.fromkeys([node.name, *words])) if words else "num_rows"
        stem = re.sub("^sum_rank(?=_to|$)", "hits", stem)[:50]
        taken = {there.sql for there, _ in self.sums.values()}
        name, number = stem, 1
        while self.dialect.name_of(name) in taken:
            number += 1
            name = f"{stem}_{number}"
        printer = home.printer
        there = ColumnText(self.dialect.name_of(name), printer.dtype(node), printer.nullable(node))
        read = there._replace(sql=f"{table}.{there.sql}")
        if table == "s":
            return there, read
        absent = {"sum": "0", "len": "0", "count": "0", "n_unique": "0", "any": "FALSE"}
        absent["all"] = "TRUE"
        if node.name not in absent:
            return there, read._replace(nullable=True)
        none = absent[node.name] + ".0" * (there.dtype == "float")
        return there, read._replace(sql=f"COALESCE({read.sql}, {none})")

    def _written(self, reduced: Mapping[str, Node]) -> Values:
        """Write rows, sums and values."""
        sources, quoted = self.sources, self.dialect.name_of
        dictionary = {f"{table} {text}": read for (table, text), (_, read) in self.sums.items()}
        dictionary |= {
            name: ColumnText(self._length_of(name), "int", nullable=False) for name in self.lengths
        }
        printer = Printer(self.dialect, dictionary)
        ctes: list[Cte] = []
        parts = [("s", self.truth)] if not self.listed else []
        if any(table == "h" for table, _ in self.sums):
            parts.append(("h", self.hits))
        for table, home in parts:
            ctes += home.ctes()
            ctes.append(self._sums_of(table, home))
        columns: list[str] = []
        types: dict[str, str] = {}
        for name, node in reduced.items():
            node = simplified(node, printer, _HAS_ROWS)
            types[name] = printer.dtype(node)
            columns.append(f"{self._typed(node, printer)} AS {quoted(name)}")
        source, tables = self._source_of_values()
        keys = [f"{tables[name]}.{quoted(name)}" for name in sources.keys]
        body = "  SELECT\n    " + ",\n    ".join([*keys, *columns]) + f"\n  {source}"
        for table, home in parts:
            if table == "h":
                on = " AND ".join(f"h.{quoted(n)} = {tables[n]}.{quoted(n)}" for n in sources.keys)
                body += f"\n  LEFT JOIN {home.name}_sums AS h ON {on}"
        if self.lengths:
            on = " AND ".join(f"n.{quoted(n)} = {tables[n]}.{quoted(n)}" for n in sources.keys)
            body += f"\n  LEFT JOIN {sources.name('list_lengths')} AS n ON {on}"
        name = sources.name(f"values_of_{self.hits.name if self.listed else self.truth.name}")
        ctes.append(Cte(name, "one row per user, with the value of each metric", body))
        all_users = not self.listed and (self.graded or self.reading.scope == "relevant")
        return Values(name, ctes, types, all_users)

    def _typed(self, node: Node, printer: Printer) -> str:
        dtype = printer.dtype(node)
        if dtype == "float":
            return printer.number(node)
        if dtype == "int":  # sums of integers are wider in some
            return f"CAST({printer.sql(node)} AS {self.dialect.types[1]})"
        return printer.sql(node)

    def _source_of_values(self) -> tuple[str, dict[str, str]]:
        """Name the rows that have all users of the scope, and the table that has each key."""
        sources = self.sources
        if self.listed:
            keys = ", ".join(self.dialect.names_of(sources.keys))
            return f"FROM (SELECT DISTINCT {keys} FROM {sources.lists}) AS s", dict.fromkeys(
                sources.keys, "s"
            )
        crossed = f" CROSS JOIN {sources.name('all_groups')} AS g" if sources.lacking else ""
        tables = {name: "g" if name in sources.lacking else "s" for name in sources.keys}
        return f"FROM {self.truth.name}_sums AS s{crossed}", tables

    def _sums_of(self, table: str, home: Steps) -> Cte:
        keys = self.dialect.names_of(home.keys)
        columns = [f"{text} AS {of[0].sql}" for (at, text), of in self.sums.items() if at == table]
        body = "  SELECT\n    " + ",\n    ".join([*keys, *columns]) + f"\n  FROM {home.name}"
        if self.whole and self.reading.scope == "relevant":
            graded = self._was_graded if self.settings.least_gain is not None else None
            body += f"\n  WHERE {graded or self.dialect.name_of('relevance') + ' > 0'}"
        comment = "sums of the truth, one row per user" if table == "s" else "sums of the lists"
        return Cte(f"{home.name}_sums", comment, f"{body}\n  GROUP BY {', '.join(keys)}")

    # -------------------------------------------------------------- which join

    def _vanishes(self, node: Node) -> bool:
        """Whether items that were not retrieved count in no sum over ranks."""
        if isinstance(node, Call) and node.name in AGGREGATES:
            names = trees.columns_of(node)
            if not any(map(self._needs_rank, names)) or all(map(self._is_of_list, names)):
                return True
            empty = {_NULL, _ZERO} if node.name in ("sum", "any") else {_NULL}
            return self._unlisted(node.inputs[0]) <= empty
        return all(map(self._vanishes, trees.inputs_of(node)))

    def _is_steady(self, node: Node, *, in_aggregate: bool = False) -> bool:
        """Whether windows give the items of a list the same where the other items are left out."""
        match node:
            case Column(name) if not self._is_base(name) and not self._is_of_list(name):
                form = self._form(name)
                return isinstance(form, SumOver) or self._is_steady(form, in_aggregate=True)
            case Over(Call(name, _, _) as value, _, order):
                by_rank = order == (Column("rank"),) and name in ("cum_sum", "product_above")
                return by_rank or self._is_steady(value, in_aggregate=True)
            case Call(name, inputs, _) if in_aggregate and name in AGGREGATES | WINDOWED:
                if any(map(self._needs_rank, trees.columns_of(node))):
                    empty = {_NULL, _ZERO} if name in ("sum", "any") else {_NULL}
                    return name != "shift" and self._unlisted(inputs[0]) <= empty
            case Call(name, _, _):
                in_aggregate = in_aggregate or name in AGGREGATES
            case _:
                pass
        return all(self._is_steady(n, in_aggregate=in_aggregate) for n in trees.inputs_of(node))

    def _unlisted(self, node: Node) -> set[str]:
        """Return what a value can be in the row of an item that was not retrieved."""
        match node:
            case Literal(value):
                return {_NULL if value is None else _ZERO if not value else _OTHER}
            case Column(name):
                if name == "rank" or name in self.sources.own_of_run:
                    return {_NULL}
                form = None if self._is_base(name) else self._form(name)
                if isinstance(form, SumOver):
                    return {_ZERO, _OTHER} if form.rows == "list" else {_NULL}
                if form is not None:
                    return self._unlisted(form)
                return {_ZERO, _OTHER} | ({_NULL} if name != "relevance" else set[str]())
            case Cast(value, _):
                return self._unlisted(value)
            case Call(name, inputs, _):
                return self._unlisted_call(name, inputs)
            case _:
                return {_NULL, _ZERO, _OTHER}

    def _unlisted_call(self, name: str, inputs: tuple[Node, ...]) -> set[str]:
        values = [self._unlisted(below) for below in inputs]
        match name:
            case "when":
                chosen = values[1] if _OTHER in values[0] else set[str]()
                return chosen | (values[2] if values[0] & {_NULL, _ZERO} else set[str]())
            case "is_not_null" | "is_null":
                is_null = (
                    {_OTHER if name == "is_null" else _ZERO} if _NULL in values[0] else set[str]()
                )
                is_there = (
                    {_ZERO if name == "is_null" else _OTHER} if values[0] - {_NULL} else set[str]()
                )
                return is_null | is_there
            case "coalesce":
                first, second = values[0], values[1]
                return (first - {_NULL}) | second if _NULL in first else first
            case "and":
                if any(value == {_ZERO} for value in values):
                    return {_ZERO}
                return {_NULL, _ZERO} if {_NULL} in values else {_NULL, _ZERO, _OTHER}
            case "times" if {_ZERO} in values and not any(map(_may_be_nan, inputs)):
                return {_ZERO} if not any(_NULL in value for value in values) else {_NULL, _ZERO}
            case "or" | "least" | "greatest" | "sum" | "any" | "len" | "count" | "not":
                return {_NULL, _ZERO, _OTHER}
            case _ if name in AGGREGATES:
                return {_NULL, _ZERO, _OTHER}
            case _:
                return {_NULL} if {_NULL} in values else {_NULL, _ZERO, _OTHER}


def _read_by(form: SumOver) -> list[str]:
    nodes = [trees.read(form.value)] + ([] if form.where is None else [trees.read(form.where)])
    return list(dict.fromkeys(name for node in nodes for name in trees.columns_of(node)))


def _may_be_nan(node: Node) -> bool:
    return any(
        (isinstance(below, Literal) and below.value != below.value)
        or (isinstance(below, Call) and below.name in ("divide", "log"))
        or (isinstance(below, Call) and below.name == "power" and not _has_positive_base(below))
        for below in trees.every_node(node)
    )


def _has_positive_base(node: Call) -> bool:
    base = node.inputs[0]
    return isinstance(base, Literal) and isinstance(base.value, int | float) and base.value > 0


def _cuts_in(node: Node) -> list[str]:
    """Name the cut-off that a comparison of the rank has."""
    match node:
        case Call("less_equal", (Column("rank"), Literal(cut))):
            return [f"to_{cut}"]
        case _:
            return []
