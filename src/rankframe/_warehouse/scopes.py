"""The values of the metrics of one scope: rows, sums, and one value per user, as CTEs.

Sums of the truth alone are taken before it is joined. The others are sums of the hits, unless a
metric counts items that were not retrieved.
"""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rankframe._evaluation import trees
from rankframe._evaluation.trees import (
    AGGREGATES,
    CallNode,
    Cast,
    ColumnNode,
    LiteralNode,
    Node,
    Over,
)
from rankframe._request import registry
from rankframe._request.labels import RequestedMetric
from rankframe._request.registry import Reading, SumOfTruth
from rankframe._vocabulary.scope_rows import Rows
from rankframe._warehouse import untranslated
from rankframe._warehouse.dialects import Dialect
from rankframe._warehouse.printing import ColumnText, Printer
from rankframe._warehouse.steps import Cte, Steps, select, simplified
from rankframe._warehouse.tables import Sources
from rankframe.errors import marked

#: Metrics, and values of options, in which items that were not retrieved count; tests hold the
#: others to their values.
_OF_ALL_ROWS = {"err", "nerr", "insq", "num_nonrelevant", "utility", "attainable", "same_length"}
_GRADED = CallNode("greater", (ColumnNode("relevance"), LiteralNode(0)))
_BELOW_0 = CallNode("less", (ColumnNode("relevance"), LiteralNode(0)))
_HAS_ROWS: Mapping[Node, Node] = {
    CallNode("greater", (ColumnNode("truth COUNT(*)"), LiteralNode(0))): LiteralNode(value=True)
}
#: What an aggregate of no rows is; the others are null.
_OF_NOTHING = {"any": "FALSE", "all": "TRUE"} | dict.fromkeys(
    ("sum", "len", "count", "n_unique"), "0"
)

#: The aggregates of what is the same in all rows that are that number itself.
_OF_A_NUMBER = ("any", "max", "min", "mean")
#: Columns that are a pair: any row may hold it.
_PAIRED = {"ideal_place", "ideal_relevance", "ideal_gain", "place_discount"}
#: Columns that are one number of each user.
_OF_A_USER = {"total", "graded", "nonrelevant", "retrieved", "top_grade"}


class Values(NamedTuple):
    """A CTE with one row per user, and the columns of metrics in it."""

    name: str
    ctes: list[Cte]
    types: dict[str, str]
    all_users: bool  # whether it has each user of grade > 0, and no other


def values_of(
    sources: Sources, rows: Rows, metrics: Sequence[RequestedMetric], suffix: str
) -> Values:
    """Translate the metrics of one scope, each from its own expression."""
    reading = registry.reading_of({name for metric in metrics for name in metric.reads})
    scope = _Scope(sources, rows, reading, suffix, only_hits=all(map(_reads_hits, metrics)))
    reduced: dict[str, Node] = {}
    for metric in metrics:
        try:
            tree = _with_keys(trees.read(metric.expr), tuple(map(ColumnNode, sources.keys)))
            reduced[metric.name] = scope.reduced(tree, metric.name)
        except ValueError as error:
            raise untranslated.error(metric.name, marked(error)) from None
    return scope.values(reduced)


def _with_keys(node: Node, keys: tuple[Node, ...]) -> Node:
    """Take the windows of an expression within one user's list, as ``evaluate`` does."""
    node = trees.changed(node, lambda below: _with_keys(below, keys))
    if isinstance(node, Over):
        return Over(node.value, (*keys, *(k for k in node.keys if k not in keys)), node.order)
    if isinstance(node, CallNode) and node.name == "is_duplicated":
        return CallNode(node.name, (*keys, *(k for k in node.inputs if k not in keys)))
    return node


def _reads_hits(metric: RequestedMetric) -> bool:
    """Whether only items that were retrieved count; of expressions of others, this is not known."""
    call = metric.call
    if call is None or call.entry.registered:
        return False
    return _OF_ALL_ROWS.isdisjoint([call.entry.plain, *re.findall(r"\w+", call.label)])


def _refuse_unpaired(names: Sequence[str]) -> None:
    """Raise where an aggregate pairs a place of the ideal list with one item: rows differ."""
    paired = [name for name in names if name.partition("(")[0] in _PAIRED]
    others = [n for n in names if n.partition("(")[0] not in _PAIRED | _OF_A_USER]
    if paired and others:
        msg = (
            f"it reads {min(paired)!r} beside {others[0]!r} in one aggregate: which item holds a "
            "place of the ideal list is not the same in SQL"
        )
        raise ValueError(msg)


def snake_name(label: str) -> str:
    """Write a label as one word: ndcg_at_10."""
    text = label.replace("@", "_at_").replace("=", "_").replace("-", "_minus_")
    return re.sub(r"_+", "_", re.sub(r"\W+", "_", text)).strip("_")


class _Scope:
    """The rows of one scope while metrics are translated."""

    def __init__(
        self, sources: Sources, rows: Rows, reading: Reading, suffix: str, *, only_hits: bool
    ) -> None:
        self.sources, self.rows, self.reading, self.suffix = sources, rows, reading, suffix
        self.dialect: Dialect = sources.dialect
        self.only_hits = only_hits
        self.counts_judged = reading.counts_judged
        self.forms: dict[str, Node | SumOfTruth] = {}
        # by table and text: how each sum is written there, and how it is read
        self.sums: dict[tuple[str, str], tuple[ColumnText, ColumnText]] = {}
        self.lengths: dict[str, ColumnText] = {}  # of lists, that values read
        self.listed = reading.scope == "listed"
        if self.listed:
            lists = self._steps("listed", "the whole lists", f"FROM {sources.cut}", {"rank": False})
            self.truth = self.hits = lists
        else:
            self.truth = self._steps_of_truth()
            self.hits = self._steps_of_hits()

    # -------------------------------------------------------------- the rows

    def _steps(self, name: str, comment: str, source: str, of: Mapping[str, bool]) -> Steps:
        """Begin with rows, of which some columns may be null."""
        sources, quoted = self.sources, self.dialect.name_of
        own = sources.own_of_truth if "relevance" in of else sources.own_of_run
        keys = sources.truth_keys if "relevance" in of else sources.keys
        columns = sources.texts([*keys, sources.item, *own])
        for column, nullable in of.items():
            dtype = "int" if column == "rank" else "float"
            columns[column] = ColumnText(quoted(column), dtype, nullable)
        unshadowed = sources.name
        name = unshadowed(f"{name}{self.suffix}")
        return Steps(name, comment, self.dialect, keys, source, columns, unshadowed, sources.own)

    def _steps_of_truth(self) -> Steps:
        """Begin with the rows of the truth: of grade > 0 unless others count."""
        sources, graded = self.sources, not self.counts_judged
        source = sources.name("judgments")
        where = f"\n  WHERE {self.dialect.name_of('relevance')} > 0" if graded else ""
        name, comment = ("relevant", "items of grade > 0") if graded else ("judged", "judged items")
        steps = self._steps(name, comment, f"FROM {source}{where}", {"relevance": False})
        if graded:
            steps.facts |= {_GRADED: LiteralNode(value=True), _BELOW_0: LiteralNode(value=False)}
        steps.groups = frozenset(sources.lacking)
        return steps

    def _steps_of_hits(self) -> Steps:
        """Join the ranks: only the items that were retrieved, or null for the others."""
        sources, truth, listed = self.sources, self.truth, self.dialect.listed
        using = listed([*sources.truth_keys, sources.item])
        name, comment = "hits", f"{truth.name} items that are in the list"
        join = f"JOIN {sources.cut} USING ({using})"
        if not self.only_hits:
            name = "ranked"
            comment = f"{truth.name} items, with their ranks; null if not in the list"
            using = listed([*sources.keys, sources.item])
            groups = f"CROSS JOIN {sources.name('all_groups')}\n  " if sources.lacking else ""
            join = f"{groups}LEFT JOIN {sources.cut} USING ({using})"
        steps = self._steps(name, comment, join, {"rank": not self.only_hits})
        steps.columns = ChainMap(steps.columns, truth.columns)  # more may be added to the truth
        steps.facts, steps.truth = truth.facts, truth
        return steps

    # -------------------------------------------------------------- columns of the vocabulary

    def _form(self, name: str) -> Node | SumOfTruth:
        """Look up how a column is derived."""
        if name not in self.forms:
            column = self.reading.columns[name]
            values = registry.read_parameters(name)
            if column.form is not None:
                form = column.form(self.rows.keys, *values)
            else:
                assert column.derive is not None
                form = column.derive(self.rows, *values)
            self.forms[name] = form if isinstance(form, SumOfTruth) else trees.read(form)
        return self.forms[name]

    def _is_base(self, name: str) -> bool:
        return name in ("rank", "relevance") or name not in self.reading.columns

    def _is_of_list(self, name: str) -> bool:
        """Whether a column is one number of each list."""
        return not self._is_base(name) and self.reading.columns[name].derived_over == "listed"

    def _needs_rank(self, name: str) -> bool:
        """Whether a column is there only after the join."""
        if self._is_base(name):
            return name == "rank" or name in self.sources.own_of_run
        form = self._form(name)
        if isinstance(form, SumOfTruth) or self._is_of_list(name):
            return True
        return any(map(self._needs_rank, trees.columns_of(form)))

    def _derive_columns(self, node: Node, steps: Steps) -> None:
        """Derive the columns that a node reads."""
        for name in trees.columns_of(node):
            if name in [*steps.columns, *self.sources.lacking, "own rank"]:
                continue
            if self.listed and (name == "relevance" or name in self.sources.own_of_truth):
                msg = f"it reads {name!r} of the truth beside 'listed', the whole lists"
                raise ValueError(msg)
            if self._is_base(name):
                lacks = "no array has" if self.sources.arrays else "schema= does not name"
                msg = f"it reads the column {name!r}, which {lacks}"
                raise ValueError(msg)
            form, home = self._form(name), steps if self._needs_rank(name) else self.truth
            if self._is_of_list(name):
                join = self._join_of_lengths()
                self.hits.source += "" if join in self.hits.source else join
                self.hits.columns[name] = self._length(name)
            elif isinstance(form, SumOfTruth):
                value = trees.read(form.value)
                where = CallNode("and", (_GRADED, trees.read(form.where)))
                self._derive_columns(CallNode("", (value, where)), self.hits)
                value = self.truth.in_column(self.truth.prepare(value))
                printer = self.truth.prefixed("o")
                own_rank = ColumnText(f"a.{self.dialect.name_of('rank')}", "int")
                printer = printer._replace(columns={**printer.columns, "own rank": own_rank})
                condition = printer.sql(simplified(where, printer, self.truth.facts), 2)
                self.hits.add_sum(name, value, condition, self.sources.item)
            else:
                self._derive_columns(form, home)
                home.add(name, form)

    def _length(self, name: str) -> ColumnText:
        """Read a number of the list, from the CTE that has these of all lists."""
        word = self.dialect.name_of(snake_name(name))
        rank = ColumnText(self.dialect.name_of("rank"), "int", nullable=False)
        form = self._form(name)
        assert not isinstance(form, SumOfTruth)
        self.sources.lengths[word] = Printer(self.dialect, {"rank": rank}).sql(form)
        return ColumnText(f"COALESCE({word}, 0)", "int", nullable=False)

    def _join_of_lengths(self) -> str:
        return f"\n  LEFT JOIN {self.sources.name('list_lengths')} USING ({self.sources.list_keys})"

    # -------------------------------------------------------------- sums and values

    def reduced(self, node: Node, label: str) -> Node:
        """Put each aggregate into a column of sums: of the truth alone, or of rows with ranks."""
        if isinstance(node, CallNode) and node.name in AGGREGATES:
            names = trees.columns_of(node)
            groups = not {*names}.isdisjoint(self.sources.lacking)
            home = self.hits if groups or any(map(self._needs_rank, names)) else self.truth
            _refuse_unpaired(names)
            if not (names and node.name in _OF_A_NUMBER and all(map(self._is_of_list, names))):
                self._derive_columns(node, home)
            return self._sum(home, node, label)
        if isinstance(node, ColumnNode):
            msg = f"it reads {node.name!r} outside an aggregate, so a user has several values"
            raise ValueError(msg)  # noqa: TRY004  (of the expression, not of an argument)
        return trees.changed(node, lambda below: self.reduced(below, label))

    def _sum(self, home: Steps, node: Node, label: str) -> Node:
        if isinstance(node, CallNode) and node.name in AGGREGATES:
            node = simplified(node, home.printer, home.facts)
        if not isinstance(node, CallNode) or node.name not in AGGREGATES:  # it was simplified
            return trees.changed(node, lambda below: self._sum(home, below, label))
        table = "truth" if home is self.truth and not self.listed else "hits"
        if node.name in ("max", "min", "mean") and node.inputs[0] == LiteralNode(None):
            msg = f"it computes the {node.name} of rows that a constant filter removes"
            raise ValueError(msg)
        if node.name in _OF_A_NUMBER:
            names = trees.columns_of(node)
            if names and all(map(self._is_of_list, names)):
                self.lengths |= {name: self._length(name) for name in names}
                return node.inputs[0]
            if table == "truth" and isinstance(node.inputs[0], LiteralNode):  # a user has rows
                return node.inputs[0]
        inputs = tuple(home.in_column(home.prepare(below)) for below in node.inputs)
        total = CallNode(node.name, inputs, node.option)
        text = home.printer.aggregate(total)
        if (table, text) not in self.sums:
            name = self._name_of_sum(table, total, label)
            printer = home.printer
            there = ColumnText(name, printer.dtype(total), printer.nullable(total))
            read, none = there, _OF_NOTHING.get(total.name)
            if table == "hits" and none is not None:
                none += ".0" if there.dtype == "float" else ""
                read = there._replace(sql=f"COALESCE({name}, {none})")
            elif table == "hits":
                read = there._replace(nullable=True)
            self.sums[table, text] = there, read
        return ColumnNode(f"{table} {text}")

    def _name_of_sum(self, table: str, node: CallNode, label: str) -> str:
        """Name a sum after what it counts, or else after the first metric that reads it."""
        rows = self.hits.name if table == "hits" else "relevant"
        inner = node.inputs[0] if node.inputs else node
        inner = inner.value if isinstance(inner, Cast) else inner
        match inner:
            case CallNode("len", ()):
                name = "num_rows" if self.counts_judged else f"num_{rows}"
            case CallNode("less_equal", (ColumnNode("rank"), LiteralNode(cut))) if (
                not self.counts_judged
            ):
                name = f"{rows}_at_{cut}"
            case ColumnNode(column):
                is_flag = self.hits.printer.dtype(inner) == "bool" and node.name == "sum"
                name = f"{'num' if is_flag else node.name}_{snake_name(column)}"
            case _:
                name = f"{snake_name(label)}_{'truth_' * (table == 'truth')}{node.name}"
        taken = [*self.hits.columns, *(there.sql[1:-1] for there, _ in self.sums.values())]
        number, stem, taken = 1, name, [other.lower() for other in taken]
        while name.lower() in taken:
            number += 1
            name = f"{stem}_{number}"
        return self.dialect.name_of(name)

    def values(self, reduced: Mapping[str, Node]) -> Values:
        """Write rows, sums and values."""
        sources, quoted = self.sources, self.dialect.name_of
        texts = {f"{table} {text}": read for (table, text), (_, read) in self.sums.items()}
        printer = Printer(self.dialect, {**texts, **self.lengths})
        source, ctes = (
            f"FROM (SELECT DISTINCT {self.sources.list_keys} FROM {sources.lists}) AS s",
            list[Cte](),
        )
        if not self.listed:
            ctes = [*self.truth.ctes(), self._sums_of("truth", self.truth)]
            source = f"FROM {ctes[-1].name}"
        if sources.lacking and not self.listed:
            source += f"\n  CROSS JOIN {sources.name('all_groups')}"
        if any(table == "hits" for table, _ in self.sums):
            ctes += [*self.hits.ctes(), self._sums_of("hits", self.hits)]
            source += f"\n  LEFT JOIN {ctes[-1].name} USING ({self.sources.list_keys})"
        if self.lengths:
            source += self._join_of_lengths()
        columns, types = self.dialect.names_of(sources.keys), dict[str, str]()
        for name, node in reduced.items():
            node = simplified(node, printer, _HAS_ROWS)
            types[name] = printer.dtype(node)
            columns.append(f"{self._typed(node, printer)} AS {quoted(name)}")
        body = select(columns, source)
        name = sources.name(f"{self.truth.name}_values")
        row = "one row per user in each group" if sources.lacking else "one row per user"
        ctes.append(Cte(name, f"the value of each metric, {row}, also of those without hits", body))
        return Values(name, ctes, types, self.reading.scope == "relevant")

    def _typed(self, node: Node, printer: Printer) -> str:
        dtype = printer.dtype(node)
        if dtype == "float":
            return printer.number(node)
        if dtype == "int":  # sums of integers are wider in some
            return f"CAST({printer.sql(node)} AS {self.dialect.types[1]})"
        return printer.sql(node)

    def _sums_of(self, table: str, home: Steps) -> Cte:
        """Write the sums over rows, of which only those of users' wants count."""
        columns = [f"{text} AS {of[0].sql}" for (at, text), of in self.sums.items() if at == table]
        keys = self.dialect.names_of(home.keys)
        body = select([*keys, *columns], f"FROM {home.last}")
        if self.counts_judged and self.reading.scope == "relevant":
            body += f"\n  WHERE {self.dialect.name_of('relevance')} > 0"
        row = "one row per user" if table == "truth" else "one row per list"
        name, comment = self.sources.name(f"{home.name}_sums"), f"sums over the rows of {home.name}"
        return Cte(name, f"{comment}, {row}", f"{body}\n  GROUP BY {', '.join(keys)}")
