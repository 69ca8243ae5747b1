"""The tables of a warehouse: what they have is said, and read as empty frames.

So roles, types and groups are checked by the rules of every call. The lists and the judgments that
all scopes read are CTEs here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, cast

import polars as pl

from rankframe._request.keywords import Columns, Settings
from rankframe._request.types import Frame
from rankframe._tables import adapters
from rankframe._tables.table import Table, Tables
from rankframe._warehouse.dialects import Dialect
from rankframe._warehouse.printing import ColumnText
from rankframe._warehouse.steps import Cte

#: A table's name as a dotted path or a tuple of parts, or one Jinja expression.
TableName: TypeAlias = str | tuple[str, ...]
#: The columns of a table: a frame, a schema, or a type by name.
TableSchema: TypeAlias = "Frame | pl.Schema | Mapping[str, Any]"

NAMES = ("run", "truth", "exclude")


def empty_frames(
    schema: Mapping[str, TableSchema] | None,
    named: Collection[str],
    by: Sequence[str],
    columns: Columns,
    *,
    rank: pl.DataType = pl.Int64(),  # noqa: B008  (it never changes)
) -> dict[str, pl.LazyFrame]:
    """Make an empty frame of each table, with the columns that it is said to have."""
    schema = {} if schema is None else schema
    for name in schema:
        if name not in named:
            msg = f"schema: {name!r} is not one of the tables of this call: {', '.join(named)}"
            raise ValueError(msg)
    frames = {name: _empty(table) for name, table in schema.items()}
    types = {n: t for frame in frames.values() for n, t in frame.collect_schema().items()}
    role = cast("Mapping[str, str]", columns)
    # ids that one table is said to have have the same type in the others
    user, item, *groups = (
        {name: types.get(name, pl.String())}
        for name in (role.get("user", "user"), role.get("item", "item"), *by)
    )
    placing = "score" if "score" in columns else "rank"
    number = pl.Float64() if placing == "score" else rank
    ids = {**user, **item}
    every: Mapping[str, pl.DataType] = {name: t for group in groups for name, t in group.items()}
    default: dict[str, Mapping[str, Any]] = {
        "run": {**every, **ids, role.get(placing, placing): number},
        "truth": {**ids, role.get("relevance", "relevance"): pl.Float64()},
        "exclude": ids,
    }
    return {name: frames[name] if name in frames else _empty(default[name]) for name in named}


def _empty(table: TableSchema) -> pl.LazyFrame:
    if isinstance(table, Mapping):
        return pl.LazyFrame(schema=cast("Mapping[str, Any]", table))
    frame = adapters.to_polars(table, "schema=")
    return pl.LazyFrame(schema=frame.collect_schema())


def type_of(dtype: pl.DataType) -> str:
    """Name the kind of a column's values."""
    if dtype == pl.Boolean:
        return "bool"
    return "int" if dtype.is_integer() else "float" if dtype.is_numeric() else "other"


@dataclass
class Sources:
    """The tables of a call: their names, columns and roles, and the CTEs that read them."""

    dialect: Dialect
    tables: Tables
    paths: Mapping[str, str]  # as they are written in SQL
    own: Sequence[str]  # columns of the caller's that metrics read
    is_typed: bool  # whether the columns of the run were named

    def __post_init__(self) -> None:
        words = {word.lower() for path in self.paths.values() for word in re.findall(r"\w+", path)}
        self._taken = words
        self.lengths: dict[str, str] = {}  # columns of the lengths of lists, as scopes need them
        run, truth = self.tables.run, self.tables.truth
        self.keys, self.item = run.keys, run.item
        self.truth_keys = run.keys if truth is None else truth.keys
        self.lacking = [] if truth is None else self.tables.lacking
        self.own_of_truth = [n for n in self.own if truth is not None and n in truth.schema]
        self.own_of_run = [n for n in self.own if n in run.schema and n not in self.own_of_truth]
        names = [*self.keys, self.item, "rank", "relevance", *self.own_of_truth, *self.own_of_run]
        lowered = [name.lower() for name in dict.fromkeys(names)]
        if twice := [name for place, name in enumerate(lowered) if name in lowered[:place]]:
            msg = f"two columns are called {twice[0]!r} in SQL, which ignores case: rename one"
            raise ValueError(msg)
        settings = self.settings
        self.lists = self.name("lists" if "exclude" not in self.paths else "lists_left")
        self.cut = self.lists
        if settings.cuts_lists:
            self.cut = self.name("judged_lists" if settings.judged_only else "lists_to_depth")

    @property
    def settings(self) -> Settings:
        """The options of the call."""
        return self.tables.settings

    def name(self, word: str) -> str:
        """Name a CTE as no table is called, since it would hide that table."""
        return f"{word}_" if word in self._taken else word

    def dictionary(self, names: Sequence[str]) -> dict[str, ColumnText]:
        """Describe columns of the tables; keys are never null."""
        schema = {**self.tables.run.schema}
        schema |= {} if self.tables.truth is None else self.tables.truth.schema
        ids = [*self.keys, self.item]
        return {
            name: ColumnText(self.dialect.name_of(name), type_of(schema[name]), name not in ids)
            for name in names
        }

    def ctes(self, *, groups: bool) -> list[Cte]:
        """Read the run and the truth."""
        ctes = [self._lists()]
        if self.tables.truth is not None:
            ctes.append(self._judgments(self.tables.truth))
        if self.tables.run.truth_groups:
            ctes[0] = ctes[0]._replace(name=self.name("whole_lists"))
            ctes.append(self._with_truth_groups())
        if self.lacking and groups:
            groups_ = ", ".join(self.dialect.names_of(self.lacking))
            # from the table itself: DuckDB would keep all rows of a step that is read twice
            source = ctes[0].body[ctes[0].body.index("\n  FROM") :]
            body = f"  SELECT DISTINCT {groups_}{source}"
            ctes.append(Cte(self.name("all_groups"), "each group has all of the truth", body))
        if "exclude" in self.paths:
            last = self.name("lists_of_segments" if self.tables.run.truth_groups else "lists")
            ctes += self._without_excluded(last)
        if self.settings.cuts_lists:
            ctes.append(self._cut())
        if self.lengths:
            keys = self.dialect.names_of(self.keys)
            columns = [*keys, *(f"{text} AS {name}" for name, text in self.lengths.items())]
            body = "  SELECT\n    " + ",\n    ".join(columns)
            body += f"\n  FROM {self.cut}\n  GROUP BY {', '.join(keys)}"
            ctes.append(Cte(self.name("list_lengths"), "how many items each list has", body))
        return ctes

    def _lists(self) -> Cte:
        run, quoted = self.tables.run, self.dialect.name_of
        own_keys = [name for name in self.keys if name not in run.truth_groups]
        ids = self.dialect.names_of([*own_keys, self.item, *self.own_of_run])
        if run.rank is not None:
            rank = f"CAST({quoted(run.rank)} AS {self.dialect.types[1]})"
            where = f"{quoted(run.rank)} IS NOT NULL"
        else:
            assert run.score is not None
            score, item = quoted(run.score), quoted(self.item)
            if self.dialect.collation:
                item += self._collation(run)
            keys = ", ".join(self.dialect.names_of(own_keys))
            rank = f"ROW_NUMBER() OVER (PARTITION BY {keys} ORDER BY {score} DESC, {item} DESC)"
            where = f"{score} IS NOT NULL"
            if run.schema[run.score].is_float() and self.dialect.is_nan != "FALSE":
                nan = self.dialect.is_nan.format(
                    f"CAST({score} AS {self.dialect.types[0]})", self.dialect.nan
                )
                where += f" AND NOT {nan}"
        columns = ",\n    ".join([*ids, f"{rank} AS {quoted('rank')}"])
        body = f"  SELECT\n    {columns}\n  FROM {self.paths['run']}\n  WHERE {where}"
        return Cte(self.name("lists"), "the items that each list returned, with their ranks", body)

    def _collation(self, run: Table) -> str:
        """Order ids of text by their bytes; only the type of the ids tells whether they are."""
        if not self.is_typed:
            msg = (
                f"score={run.score!r}: equal scores are ordered by item, and the order depends on "
                f"whether {run.item} is text: say what the run has, as in schema={{'run': {{…, "
                f"{run.item!r}: pl.String, {run.score!r}: pl.Float64}}}}"
            )
            raise ValueError(msg)
        return self.dialect.collation if run.schema[run.item] == pl.String else ""

    def _judgments(self, truth: Table) -> Cte:
        quoted = self.dialect.name_of
        ids = self.dialect.names_of([*truth.keys, self.item, *self.own_of_truth])
        grade, where = f"CAST(1 AS {self.dialect.types[0]})", ""
        if truth.relevance is not None:
            name = quoted(truth.relevance)
            value = name
            if truth.schema[truth.relevance] == pl.Boolean:
                value = f"CASE WHEN {name} THEN 1 ELSE 0 END"
            grade = f"CAST({value} AS {self.dialect.types[0]})"
            where = f"\n  WHERE {name} IS NOT NULL"
        columns = ",\n    ".join([*ids, f"{grade} AS {quoted('relevance')}"])
        body = f"  SELECT\n    {columns}\n  FROM {self.paths['truth']}{where}"
        return Cte(self.name("judgments"), "what users want, with grades as numbers", body)

    def _with_truth_groups(self) -> Cte:
        """Put the list of a user into each group that only the truth has."""
        groups, shared = self.tables.run.truth_groups, self.tables.run.truth_groups
        shared = [name for name in self.truth_keys if name not in groups]
        segment = ", ".join(f"t.{name}" for name in self.dialect.names_of(groups))
        keys = ", ".join(self.dialect.names_of(self.truth_keys))
        on = " AND ".join(f"t.{n} = l.{n}" for n in self.dialect.names_of(shared))
        body = f"  SELECT l.*, {segment}\n  FROM {self.name('whole_lists')} AS l\n  JOIN (\n"
        body += f"    SELECT DISTINCT {keys} FROM {self.name('judgments')}\n  ) AS t ON {on}"
        name = "lists_of_segments" if "exclude" in self.paths else "lists"
        return Cte(self.name(name), "the same, in the groups that the truth has for the user", body)

    def _without_excluded(self, last: str) -> list[Cte]:
        """Remove rows from the lists, and move up those below; gaps in the ranks stay."""
        keys = ", ".join(self.dialect.names_of(self.keys))
        rank, gap = self.dialect.names_of(["rank", "gap"])
        ids = [n for n in self.tables.beside["exclude"].ids if n in (*self.keys, self.item)]
        place = f"DENSE_RANK() OVER (PARTITION BY {keys} ORDER BY {rank})"
        on = " AND ".join(f"x.{n} = l.{n}" for n in self.dialect.names_of(ids))
        columns = self.dialect.names_of([*self.keys, self.item, *self.own_of_run])
        before = self.name("lists_with_gaps")
        body = f"  SELECT\n    {', '.join(columns)},\n    {gap} + {place} AS {rank}\n"
        body += f"  FROM {before} AS l\n"
        body += f"  WHERE NOT EXISTS (SELECT 1 FROM {self.paths['exclude']} AS x WHERE {on})"
        return [
            Cte(
                before,
                "how many empty places are above",
                f"  SELECT *, {rank} - {place} AS {gap}\n  FROM {last}",
            ),
            Cte(self.lists, "the lists without excluded items; those below move up", body),
        ]

    def _cut(self) -> Cte:
        """Cut the lists to a depth, and leave out the items without a judgment."""
        rank, relevance = self.dialect.names_of(["rank", "relevance"])
        depth = self.settings.depth
        where = [] if depth is None else [f"l.{rank} <= {depth}"]
        if not self.settings.judged_only:
            body = f"  SELECT *\n  FROM {self.lists} AS l\n  WHERE {where[0]}"
            return Cte(self.cut, "the lists to this depth", body)
        row = self.dialect.names_of([*self.keys, self.item])
        own = self.dialect.names_of(self.own_of_run)
        shared = self.dialect.names_of([*self.truth_keys, self.item])
        keys = ", ".join(f"l.{name}" for name in self.dialect.names_of(self.keys))
        place = f"RANK() OVER (PARTITION BY {keys} ORDER BY l.{rank})"
        columns = ", ".join(f"l.{name}" for name in [*row, *own])
        on = " AND ".join(f"t.{n} = l.{n}" for n in shared)
        body = f"  SELECT\n    {columns},\n    {place} AS {rank}\n  FROM {self.lists} AS l\n"
        body += f"  JOIN {self.name('judgments')} AS t ON {on}\n  WHERE "
        body += " AND ".join([*where, f"t.{relevance} >= 0"])
        return Cte(self.cut, "the judged items of the lists, with ranks without gaps", body)
