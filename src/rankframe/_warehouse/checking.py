"""``check=True``: the rules that a query assumes, as one SELECT with a row per broken rule."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from rankframe import _sizes, errors
from rankframe._evaluation import trees
from rankframe._request import labels, parameters
from rankframe._request.keywords import Columns
from rankframe._request.labels import Metric
from rankframe._tables import readers, rules
from rankframe._tables.rules import Rule
from rankframe._tables.table import Table
from rankframe._warehouse import dialects, headers, tables
from rankframe._warehouse.dialects import Dialect, DialectName
from rankframe._warehouse.printing import ColumnText
from rankframe._warehouse.steps import Steps
from rankframe._warehouse.tables import TableName, TableSchema


def query_of_rules(
    metrics: Sequence[Metric],
    run: TableName,
    truth: TableName,
    by: str | Sequence[str],
    dialect: DialectName,
    schema: Mapping[str, TableSchema] | None,
    columns: Columns,
    *,
    once: bool,
) -> str:
    """Write a SELECT of source, field, problem and num_rows: one row per broken rule."""
    written = dialects.dialect_named(dialect)
    named = {"run": run, "truth": truth}
    empty = tables.empty_tables(schema, [*named], by, columns, rank=pl.Float64())
    frames, more, paths = empty.frames, empty.more, empty.paths(written, named)
    both = readers.read_run_and_truth(
        frames["run"], frames["truth"], empty.by, empty.columns, run_alone=False
    )
    selects: list[str] = []
    for table in both:
        own = replace(table, by=[name for name in table.by if name not in table.truth_groups])
        if once and table.name == "run":
            own = replace(own, passed=table.frame)
        selects += _of_rows(own, more, paths[table.name], metrics, written)
        selects.append(_of_emptiness(own, paths[table.name], written))
    selects += _of_users(both[0], both[1], more, paths, written)
    names = written.listed(("source", "field", "problem", "num_rows"))
    every = "\n  UNION ALL\n".join(selects)
    head = headers.comments(written.name, ["each row is a rule that the tables break"])
    count = written.name_of("num_rows")
    return f"{head}SELECT {names}\nFROM (\n{every}\n) AS broken\nWHERE {count} > 0\n"


def _of_rows(
    table: Table, more: Sequence[str], path: str, metrics: Sequence[Metric], dialect: Dialect
) -> Iterator[str]:
    """Count the rows that break each rule of the library."""
    dictionary = {
        name: ColumnText(f"r.{dialect.name_of(name)}", tables.type_of(dtype))
        for name, dtype in table.schema.items()
    }
    rows = Steps("rows", "", dialect, table.keys, "", dictionary)
    every = [*rules.row_rules(table), *rules.table_rules(table), *_of_gains(table, metrics)]
    for rule in every:
        if rule.column in more:
            rule = rule._replace(text=rule.text.replace("group", "user"))
        if rule.text == rules.NO_RANK and table.schema[rule.column].is_float():
            # infinity is equal to what is left without its fraction
            rule = rule._replace(broken=rule.broken | (pl.col(rule.column) > _sizes.WHOLE))
        broken = rows.printer.sql(rows.prepare(trees.read(rule.broken)))
        source = f"SELECT {broken} AS b FROM {path} AS r"
        yield _row(dialect, (rule.table, rule.column, rule.text), "b", source)


def _row(
    dialect: Dialect, rule: tuple[str, str, str], where: str, source: str = "SELECT 1 AS b"
) -> str:
    """Select the table, column and text of a rule, and how many rows break it."""
    names = dialect.names_of(("source", "field", "problem", "num_rows"))
    texts = [*(dialect.literal(errors.rendered(text, "sql")) for text in rule), "COUNT(*)"]
    columns = [f"{text} AS {name}" for text, name in zip(texts, names, strict=True)]
    return f"  SELECT {', '.join(columns)}\n  FROM ({source}) AS r\n  WHERE {where}"


def _of_gains(table: Table, metrics: Sequence[Metric]) -> Iterator[Rule]:
    """Check that every grade has a gain, and that none is above the scale."""
    if table.name != "truth" or table.relevance is None:
        return
    grade = pl.col(table.relevance)
    for metric in labels.parse_metrics(metrics, per_user=False) if metrics else ():
        gain = metric.option("gain")
        if gain is not None and not isinstance(gain, str):
            dictionary = pl.any_horizontal(*(grade == level for level in gain))
            text = f"a grade without a gain in {parameters.as_text(gain)}: give each a finite gain"
            yield Rule(table.name, table.relevance, text, (grade > 0) & ~dictionary)
        most = metric.option("max_grade")
        if most is not None:
            text = f"a grade above max_grade={parameters.as_text(most)}: use one that none exceeds"
            yield Rule(table.name, table.relevance, text, grade > most)


def _of_emptiness(table: Table, path: str, dialect: Dialect) -> str:
    """Check that a run has lists, and a truth what is relevant."""
    column = table.relevance or table.rank or table.score or table.item
    value = f"r.{dialect.name_of(column)}"
    null, needed = f"{column!r} is null in every row", f"{value} IS NOT NULL"
    if column == table.relevance:
        null, needed = "no grade is > 0", f"{value} > 0"
        if table.schema[column] == pl.Boolean:
            needed = value
    rule = table.name, column, f"it is empty, or {null}"
    return _row(dialect, rule, f"NOT EXISTS (SELECT 1 FROM {path} AS r WHERE {needed})")


def _of_users(
    run: Table, truth: Table, more: Sequence[str], paths: Mapping[str, str], dialect: Dialect
) -> Iterator[str]:
    """Check that the tables share users and items, also within groups."""
    own_user = [*more, run.user]
    user, item = dialect.names_of((run.user, run.item))
    both = f"SELECT 1 FROM {paths['run']} AS l JOIN {paths['truth']} AS t ON"
    met = f"{both} {' AND '.join(f'l.{name} = t.{name}' for name in dialect.names_of(own_user))}"
    no_user = run.name, " and ".join(own_user), f"no user of the {run.name} is in the {truth.name}"
    yield _row(dialect, no_user, f"NOT EXISTS ({met})")
    no_item = run.name, run.item, f"no item of the {run.name} is in the {truth.name}"
    yield _row(dialect, no_item, f"NOT EXISTS ({both} l.{item} = t.{item})")
    own = [name for name in run.by if name not in (*run.truth_groups, *more)]
    shared = [name for name in own if name in truth.by]
    for table, other, by in ((run, truth, own), (truth, run, shared)):
        if by:
            where = "both tables" if shared else f"the {run.name}"
            alone = table.name, by[-1], rules.lone_group_text(other, where)
            groups = ", ".join(f"r.{name}" for name in dialect.names_of(by))
            on = [f"r.{name} = o.{name}" for name in dialect.names_of([*shared, *own_user])]
            users = dialect.listed([*shared, *own_user])
            others = f"(SELECT DISTINCT {users} FROM {paths[other.name]} AS a) AS o"
            source = f"SELECT 1 AS b FROM {paths[table.name]} AS r LEFT JOIN {others}"
            source += f" ON {' AND '.join(on)} GROUP BY {groups} HAVING COUNT(o.{user}) = 0"
            yield _row(dialect, alone, f"EXISTS ({met})", source)
    for name in run.by:
        if name not in truth.by:
            number, lists = f"COUNT(DISTINCT r.{dialect.name_of(name)})", f"{paths['run']} AS r"
            several = f"(SELECT {number} FROM {lists}) > 1"
            users = ", ".join(f"r.{name}" for name in dialect.names_of(own_user))
            in_two = f"EXISTS (SELECT 1 FROM {lists} GROUP BY {users} HAVING {number} > 1)"
            split = run.name, name, rules.split_users_text(truth.name)
            yield _row(dialect, split, f"{several} AND NOT {in_two}")
            if rules.is_fold(name):
                folds = run.name, name, rules.shared_folds_text(truth.name)
                yield _row(dialect, folds, in_two)
