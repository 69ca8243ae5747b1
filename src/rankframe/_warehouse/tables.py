"""The tables of a warehouse: what they have is said, and read as empty frames.

So roles, types and groups are checked by the rules of every call. The lists and the judgments that
all scopes read are CTEs here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe._inputs import arguments, several_users
from rankframe._request import keywords, segment_names
from rankframe._request.keywords import Columns, Settings
from rankframe._request.types import Frame
from rankframe._tables import adapters, run_dicts
from rankframe._tables.table import Table, Tables
from rankframe._warehouse.dialects import Dialect
from rankframe._warehouse.printing import ColumnText
from rankframe._warehouse.steps import Cte, select
from rankframe.errors import Problem, option, wording

#: A table's name as a dotted path or a tuple of parts, or one Jinja expression.
TableName: TypeAlias = str | tuple[str, ...]
#: The columns of a table: a frame, a schema, or a type by name.
TableSchema: TypeAlias = "Frame | pl.Schema | Mapping[str, Any]"

_JUDGED = (
    "SQL reads the lists and the judgments as two tables: for a judged table, name it twice, as in "
    "run='judged', truth='judged', and leave relevance out of schema['run']; users with a relevant "
    "item count then, and with users='judged', undefined=0.0 every user with a judged item; "
    "check=True counts the rows of a user without an item, which are in neither table"
)


class EmptyTables(NamedTuple):
    """Tables without rows, and the columns that tell lists apart."""

    frames: dict[str, pl.LazyFrame]
    by: list[str]  # with the columns of a user, but for the last
    columns: Columns
    more: Sequence[str]  # these columns of a user
    change: Mapping[str, str]  # new names of columns of the truth

    def paths(self, dialect: Dialect, named: Mapping[str, TableName]) -> dict[str, str]:
        """Write the names of the tables; a truth with other names gets those of the run."""
        paths = {name: dialect.table(path) for name, path in named.items()}
        if self.change:
            old = {new: dialect.name_of(name) for name, new in self.change.items()}
            own = {name: dialect.name_of(name) for name in self.frames["truth"].collect_schema()}
            every = ", ".join(f"t.{old.get(name, text)} AS {text}" for name, text in own.items())
            paths["truth"] = f"(SELECT {every} FROM {paths['truth']} AS t)"
        return paths


def empty_tables(
    schema: Mapping[str, TableSchema] | None,
    named: Collection[str],
    by: str | Sequence[str],
    columns: Columns,
    *,
    rank: pl.DataType = pl.Int64(),  # noqa: B008  (it never changes)
) -> EmptyTables:
    """Make an empty frame of each table; columns of a user tell lists apart, as groups do."""
    groups, passed, more = keywords.group_names(by), dict[str, Any](columns), list[str]()
    segment_names.refuse_segments(groups)
    said = _frames_of_schema(schema, named)
    has = {name: frame.collect_schema().names() for name, frame in said.items()}
    own = [passed[name] for name in ("truth_user", "truth_item") if name in passed]
    of_truth = [name for x in own for name in ([x] if isinstance(x, str) else x)]
    change = arguments.name_truth(passed, has.get("run", ()), has.get("truth", of_truth))
    if "truth" in said:
        said["truth"] = said["truth"].rename(change)
    if isinstance(passed.get("user"), list | tuple):
        *more, passed["user"] = several_users.Users(passed["user"], {**passed, "by": by})
    for name, frame in said.items():
        several_users.check_columns(more, frame.collect_schema().names(), name)
    keywords.check_columns(passed)
    frames = _empty_frames(said, named, groups, cast("Columns", passed), more, rank)
    run, every = frames["run"], [*groups, *more]
    _, every, columns = run_dicts.as_frame(run, every, cast("Columns", passed))
    return EmptyTables(frames, every, columns, more, change)


def _frames_of_schema(
    schema: Mapping[str, TableSchema] | None, named: Collection[str]
) -> dict[str, pl.LazyFrame]:
    if not isinstance(cast("object", schema), Mapping | None):
        msg = f"schema= is a dict by table, as in {{'run': …}}, not {adapters.kind(schema)}"
        raise TypeError(msg)
    for name in schema or {}:
        if name not in named:
            msg = f"schema: {name!r} is not one of the tables of this call: {', '.join(named)}"
            raise ValueError(msg)
    return {name: _empty(_without_rows(table)) for name, table in (schema or {}).items()}


def _empty_frames(
    frames: Mapping[str, pl.LazyFrame],
    named: Collection[str],
    by: Sequence[str],
    columns: Columns,
    more: Sequence[str],
    rank: pl.DataType,
) -> dict[str, pl.LazyFrame]:
    """Make the frames of which no schema is said, with the columns that they must have."""
    types = {n: t for frame in frames.values() for n, t in frame.collect_schema().items()}
    role = cast("Mapping[str, str]", columns)
    # ids that one table is said to have have the same type in the others
    ids, groups = (
        {name: types.get(name, pl.String()) for name in names}
        for names in ((*more, keywords.user_of(columns), role.get("item", "item")), by)
    )
    grade_name = role.get("relevance", "relevance")
    if "run" in frames and grade_name in frames["run"].collect_schema():
        msg = f"schema['run'], column {grade_name!r}: a relevance in a run: {_JUDGED}"
        raise ValueError(msg)
    number = {role["score"]: pl.Float64()} if "score" in role else {role.get("rank", "rank"): rank}
    grade = {grade_name: pl.Float64()}
    if role.get("model") is not None:
        groups = {role["model"]: types.get(role["model"], pl.String())} | groups
    default = {"run": groups | ids | number, "truth": ids | grade, "exclude": ids}
    return {name: frames[name] if name in frames else _empty(default[name]) for name in named}


def check_paths(paths: Mapping[str, object]) -> None:
    """Check that tables are named by a text or by texts."""
    for name, path in paths.items():
        if name == "truth" and path is None:
            msg = f"truth=None: {_JUDGED}"
            raise ValueError(msg)
        parts = cast("Sequence[object]", path) if isinstance(path, tuple | list) else (path,)
        if not parts or not all(isinstance(part, str) for part in parts):
            of = adapters.kind(cast("Any", path)) if parts else "an empty tuple"
            msg = (
                f"{name}= is the name of a table, such as 'analytics.recs', or a tuple of its "
                f"parts, not {of}; schema={{{name!r}: …}} describes the table"
            )
            raise TypeError(msg)


def _without_rows(table: Any) -> Any:
    """Leave the rows of a query where they are: only the types count."""
    is_query = hasattr(table, "__arrow_c_stream__") and hasattr(table, "limit")
    return table.limit(0) if is_query else table


@adapters.takes_arrow
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
    more: Sequence[str]  # columns of the user, but for the last
    own: Sequence[str]  # columns of the caller's that metrics read
    is_typed: bool  # whether the columns of the run were named
    arrays: Sequence[str] = ()  # parameters of a function, which no column is called

    def __post_init__(self) -> None:
        words = {word.lower() for path in self.paths.values() for word in re.findall(r"\w+", path)}
        self._taken = words
        self.own = [*self.own, *self.arrays]
        self.lengths: dict[str, str] = {}  # columns of the lengths of lists, as scopes need them
        run, truth = self.tables.both
        self.keys, self.item, self.truth_keys = run.keys, run.item, truth.keys
        self.groups = [name for name in run.by if name not in self.more]
        self.list_keys = self.dialect.listed(self.keys)
        self.lacking = self.tables.lacking
        self.own_of_truth = [n for n in self.own if n in truth.schema]
        self.own_of_run = [n for n in self.own if n in run.schema and n not in self.own_of_truth]
        names = [*self.keys, self.item, "rank", "relevance", *self.own_of_truth, *self.own_of_run]
        lowered = [name.lower() for name in dict.fromkeys(names)]
        if twice := [name for place, name in enumerate(lowered) if name in lowered[:place]]:
            msg = f"two columns are called {twice[0]!r} in SQL, which ignores case: rename one"
            raise ValueError(msg)
        self.lists = self.cut = self.name("lists" if "exclude" not in self.paths else "lists_left")
        if self.settings.cuts_lists:
            only = self.settings.unjudged == "drop"
            self.cut = self.name("judged_lists" if only else "lists_to_depth")

    @property
    def settings(self) -> Settings:
        """The options of the call."""
        return self.tables.settings

    def name(self, word: str) -> str:
        """Name a CTE as no table is called, since it would hide that table."""
        return f"{word}_" if word in self._taken else word

    def texts(self, names: Sequence[str]) -> dict[str, ColumnText]:
        """Describe columns of the tables; keys are never null."""
        schema = {n: t for table in self.tables.both for n, t in table.schema.items()}
        quoted, ids = self.dialect.name_of, [*self.keys, self.item]
        return {n: ColumnText(quoted(n), type_of(schema[n]), n not in ids) for n in names}

    def ctes(self) -> list[Cte]:
        """Read the run and the truth."""
        segments, excludes = self.tables.run.truth_groups, "exclude" in self.paths
        repeats = self.settings.duplicates != "error"
        lists = self._lists(self.name("whole_lists" if segments or repeats else "lists"))
        ctes = [lists, self._judgments()]
        last = lists.name
        if segments:
            last = self.name("lists_of_segments" if repeats or excludes else "lists")
            ctes.append(self._with_segments(last, lists.name))
        if self.lacking:
            # from the table itself: DuckDB would keep all rows of a step that is read twice
            groups = ", ".join(f"r.{name}" for name in self.dialect.names_of(self.lacking))
            source = lists.body[lists.body.index("\n  FROM") :]
            comment = "the groups of the run; the whole truth judges each"
            body = f"  SELECT DISTINCT {groups}{source}"
            ctes.append(Cte(self.name("all_groups"), comment, body))
        if repeats:
            ctes += self._once(last, self.name("lists_once" if excludes else "lists"))
            last = ctes[-1].name
        if excludes:
            ctes += self._without_excluded(last)
        if self.settings.cuts_lists:
            ctes.append(self._cut())
        if self.lengths:
            columns = [f"{text} AS {name}" for name, text in self.lengths.items()]
            source = f"FROM {self.cut}\n  GROUP BY {self.list_keys}"
            body = select([self.list_keys, *columns], source)
            ctes.append(Cte(self.name("list_lengths"), "how many items each list has", body))
        return ctes

    def _lists(self, name: str) -> Cte:
        run = self.tables.run
        keys = [name for name in self.keys if name not in run.truth_groups]

        def quoted(name: str) -> str:  # SQLite would read a name that a table lacks as a text
            return f"r.{self.dialect.name_of(name)}"

        if run.rank is not None:
            value = quoted(run.rank)
            rank, where = f"CAST({value} AS {self.dialect.types[1]})", f"{value} IS NOT NULL"
        else:
            assert run.score is not None
            score, item = quoted(run.score), quoted(self.item) + self._collation(run)
            lists = ", ".join(map(quoted, keys))
            order = f"PARTITION BY {lists} ORDER BY {score} DESC, {item} DESC"
            rank, where = f"ROW_NUMBER() OVER ({order})", f"{score} IS NOT NULL"
            if run.schema[run.score].is_float() and self.dialect.is_nan != "FALSE":
                number = f"CAST({score} AS {self.dialect.types[0]})"
                where += f" AND NOT {self.dialect.is_nan_of(number)}"
        ids = [quoted(name) for name in dict.fromkeys([*keys, self.item, *self.own_of_run])]
        ids.append(f"{rank} AS {self.dialect.name_of('rank')}")
        body = select(ids, f"FROM {self.paths['run']} AS r\n  WHERE {where}")
        return Cte(name, "the items that each list returned, with their ranks", body)

    def _collation(self, run: Table) -> str:
        """Order ids of text by their bytes; only the type of the ids tells whether they are."""
        if not (self.is_typed or not self.dialect.collation):
            schema = wording(
                f"schema={{'run': {{…, {run.item!r}: pl.String, {run.score!r}: pl.Float64}}}}",
                command=f"--schema run=…,{run.item}:str,{run.score}:float",
            )
            msg = (
                f"{option('score', run.score)}: equal scores are ordered by item, and the order "
                f"depends on whether {run.item} is text: say what the run has, as in {schema}"
            )
            raise ValueError(Problem(msg))
        return self.dialect.collation if run.schema[run.item] == pl.String else ""

    def _judgments(self) -> Cte:
        truth, value, where = self.tables.both[-1], "1", ""
        if truth.relevance is not None:
            value = f"t.{self.dialect.name_of(truth.relevance)}"
            where = f"\n  WHERE {value} IS NOT NULL"
            if truth.schema[truth.relevance] == pl.Boolean:
                value = f"CASE WHEN {value} THEN 1 ELSE 0 END"
        names = self.dialect.names_of(dict.fromkeys([*truth.keys, self.item, *self.own_of_truth]))
        ids = [f"t.{name}" for name in names]
        relevance = self.dialect.name_of("relevance")
        grade = f"CAST({value} AS {self.dialect.types[0]}) AS {relevance}"
        body = select([*ids, grade], f"FROM {self.paths['truth']} AS t{where}")
        return Cte(self.name("judgments"), "the judged items, with grades as numbers", body)

    def _with_segments(self, name: str, lists: str) -> Cte:
        """Put the list of a user into each group that only the truth has."""
        shared = [n for n in self.truth_keys if n not in self.tables.run.truth_groups]
        keys = self.dialect.listed(self.truth_keys)
        judged = f"SELECT DISTINCT {keys} FROM {self.name('judgments')}"
        body = f"  SELECT *\n  FROM {lists}\n  JOIN ({judged}) AS judged_users "
        comment = "the same, in the groups that the truth has for the user"
        return Cte(name, comment, f"{body}USING ({self.dialect.listed(shared)})")

    def _once(self, last: str, name: str) -> list[Cte]:
        """Keep the best place of each item; its others stay empty, or those below move up."""
        rank, item = self.dialect.names_of(["rank", self.item])
        place = f"DENSE_RANK() OVER (PARTITION BY {self.list_keys} ORDER BY {rank})"
        number = f"ROW_NUMBER() OVER (PARTITION BY {self.list_keys}, {item} ORDER BY {rank})"
        before = self.name("repeated_items")
        numbered = f"  SELECT *, {rank} - {place} AS gap, {number} AS repetition\n  FROM {last}"
        moved = f"gap + {place} AS {rank}" if self.settings.duplicates == "first" else rank
        columns = self.dialect.names_of(dict.fromkeys([*self.keys, self.item, *self.own_of_run]))
        body = select([*columns, moved], f"FROM {before}\n  WHERE repetition = 1")
        comment = "the places of each item, numbered"
        return [Cte(before, comment, numbered), Cte(name, "each item at its best place", body)]

    def _without_excluded(self, last: str) -> list[Cte]:
        """Remove rows from the lists, and move up those below; gaps in the ranks stay."""
        rank, before = self.dialect.name_of("rank"), self.name("lists_with_gaps")
        ids = [n for n in self.tables.beside["exclude"].ids if n in (*self.keys, self.item)]
        place = f"DENSE_RANK() OVER (PARTITION BY {self.list_keys} ORDER BY {rank})"
        on = " AND ".join(f"x.{name} = l.{name}" for name in self.dialect.names_of(ids))
        columns = self.dialect.names_of(dict.fromkeys([*self.keys, self.item, *self.own_of_run]))
        source = f"FROM {before} AS l\n"
        source += f"  WHERE NOT EXISTS (SELECT 1 FROM {self.paths['exclude']} AS x WHERE {on})"
        body = select([*columns, f"gap + {place} AS {rank}"], source)
        gaps = f"  SELECT *, {rank} - {place} AS gap\n  FROM {last}"
        comment = "the lists without excluded items; those below move up"
        return [
            Cte(before, "how many empty places are above", gaps),
            Cte(self.lists, comment, body),
        ]

    def _cut(self) -> Cte:
        """Cut the lists to a depth, and leave out the items without a judgment."""
        rank, relevance = self.dialect.names_of(["rank", "relevance"])
        where = [] if self.settings.depth is None else [f"{rank} <= {self.settings.depth}"]
        if self.settings.unjudged != "drop":
            body = f"  SELECT *\n  FROM {self.lists}\n  WHERE {where[0]}"
            return Cte(self.cut, "the lists to this depth", body)
        columns = self.dialect.names_of(dict.fromkeys([*self.keys, self.item, *self.own_of_run]))
        place = f"RANK() OVER (PARTITION BY {self.list_keys} ORDER BY {rank})"
        using = self.dialect.listed([*self.truth_keys, self.item])
        source = f"FROM {self.lists}\n  JOIN {self.name('judgments')} USING ({using})"
        source += f"\n  WHERE {' AND '.join([*where, f'{relevance} >= 0'])}"
        body = select([*columns, f"{place} AS {rank}"], source)
        return Cte(self.cut, "the judged items of the lists, with ranks without gaps", body)
