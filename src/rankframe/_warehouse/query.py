"""``sql``: a call of ``evaluate`` as one SELECT, each metric translated from its own expression."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal, Unpack, cast, get_args

import polars as pl

from rankframe._evaluation import averages, group_means, reduction, refusals, trees
from rankframe._evaluation.trees import CallNode, Cast, ColumnNode
from rankframe._request import keywords, labels, wrong_keywords
from rankframe._request.keywords import Columns, Duplicates, Settings, Unjudged
from rankframe._request.labels import Metric
from rankframe._request.question import Question, ask
from rankframe._tables import judgment, readers
from rankframe._vocabulary.scope_rows import Rows
from rankframe._warehouse import arrays, checking, dialects, headers, scopes, tables, untranslated
from rankframe._warehouse.dialects import Dialect, DialectName
from rankframe._warehouse.printing import ColumnText, Printer
from rankframe._warehouse.scopes import Values
from rankframe._warehouse.steps import Cte
from rankframe._warehouse.tables import Sources, TableName, TableSchema
from rankframe.errors import Problem, option
from rankframe.presets import Preset, PresetName, Users


@wrong_keywords.checked
def sql(
    *metrics: Metric,
    run: TableName = "run",
    truth: TableName = "truth",
    by: str | Sequence[str] = (),
    dialect: DialectName = "duckdb",
    per_user: bool = False,
    names: Literal["label", "snake"] | None = None,
    schema: Mapping[str, TableSchema] | None = None,
    users: Users | None = None,
    relevant_at: float | None = None,
    undefined: float | None = None,
    average: str = "users",
    unjudged: Unjudged = "miss",
    duplicates: Duplicates = "error",
    depth: int | None = None,
    exclude: TableName | None = None,
    preset: PresetName | Preset | None = None,
    check: bool = False,
    as_function: bool = False,
    **columns: Unpack[Columns],
) -> str:
    r"""
    Write the call of ``evaluate`` or ``per_user`` as one SELECT, to run where the tables are.

    Parameters
    ----------
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    run
        The name of the table: a dotted path such as ``"analytics.recs"``, whose parts are quoted; a
        tuple of parts; or one Jinja expression, ``'{{ ref("recs") }}'``.
    truth
        The name of the truth, in the same forms.
    by
        Columns of segments, such as country, fold or day.
    dialect
        The SQL of DuckDB, Spark and Databricks, Postgres, SQLite, BigQuery or Snowflake.
    per_user
        One row per user, as ``per_user`` returns, instead of means.
    names
        The columns of metrics: ``"label"``, or ``"snake"``, such as ndcg_at_10, which is the
        default in BigQuery, where a name cannot have an @.
    schema
        The columns of the tables by ``"run"``, ``"truth"`` and ``"exclude"``: a frame (only its
        types count), a schema, or a dict of types. By default the run has its keys, item and rank,
        and the truth user, item and a relevance, a number, without the columns of ``by``.
    users
        Which users count: ``"truth"``, those with a relevant item (a user missing from the run
        scores 0); ``"judged"``, those with any row in the truth; ``"both"``, those in run and
        truth; ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` if nothing is judged.
        If every judged row of a judged table has a rank, all users count, with a warning: a user
        without a relevant item has the worst value of each metric.
    relevant_at
        The lowest grade that counts as relevant in binary metrics; > 0. By default every grade > 0.
        A label with ``rel=``, such as ``"ap(rel=2)"``, has its own threshold, which does not change
        who counts.
    undefined
        The value of a metric where it is undefined, as for a user without a relevant item. By
        default null, and the mean leaves the user out.
    average
        ``"users"``, the mean over users; ``"pooled"``, Σ numerators / Σ denominators over users
        (micro-average), for precision, recall, F, E and R-precision; or a column, such as
        ``"dataset"``: the mean of the means of its groups. A user counts once in each group.
    unjudged
        What happens to items of the lists without a judgment, or with a negative grade. ``"miss"``:
        they count as not relevant. ``"drop"``: they are removed after ``exclude``, and the items
        below move up (trec_eval ``-J``).
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``, ``depth`` and
        ``unjudged``.
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal list stays whole (trec_eval
        ``-M``).
    exclude
        The name of a table of rows to remove from the lists, one per user and item.
    preset
        The conventions of a tool, such as ``"ranx"``, or a dict with some of the keys ``users``,
        ``undefined``, ``defaults`` and ``single_precision``. A keyword that you pass takes
        precedence, even None, and so does a parameter in a label.
    check
        Write the query that looks for rows of run and truth that break the assumptions of the other
        query: a SELECT of source, field, problem and num_rows with one row per broken rule, and no
        row if all hold, as a dbt test expects. Metrics may be left out; only their gains are read,
        since every grade needs one. Options such as ``users`` change no rule.
    as_function
        Write a function per metric, for arrays in one row, in DuckDB (a macro), Postgres or
        BigQuery: ``"ndcg@10"`` gives ``ndcg_at_10(items, relevant)``, where ``items`` are the items
        of one list, best first, and ``relevant`` the items that are relevant to its user, with
        grade 1 each. The value is that of ``per_user`` with ``users="all"``. A repeated item counts
        once, at its first place, as with ``duplicates="occupy"``, or ``"first"``. A null item is an
        empty place, and a null array is an empty list. Such a function takes ``undefined``,
        ``depth``, ``preset`` and ``duplicates``. Names are as with ``names="snake"``; ``.alias(…)``
        of an expression chooses another. Quote a name that SQL reserves, such as ``all``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

    Returns
    -------
    str
        One SELECT with the columns of ``evaluate``, by…, users and metrics, in any order of rows.
        The comment above it tells what it assumes of the tables; ``check`` looks for rows that
        break this. With ``as_function``, one CREATE per metric.

    Raises
    ------
    ValueError
        If a metric has no form in SQL; the message names the reason, and what works instead. With
        ``as_function``, also if the dialect is Spark, SQLite or Snowflake, where a function cannot
        read arrays as tables.

    Notes
    -----
    Values differ from those of ``evaluate`` in the last digits: sums are taken in another order.
    Each metric is translated from its own expression, and so are expressions of your own.

    Examples
    --------
    >>> query = rf.sql("ndcg@10", "map", run="recs", truth="labels", by="model")
    >>> print(query[query.rindex("\nSELECT") :].strip())
    SELECT
      "model",
      COUNT(*) AS "users",
      AVG("ndcg@10") AS "ndcg@10",
      AVG("map") AS "map"
    FROM relevant_values
    GROUP BY "model"
    >>> print(rf.sql(run="recs", truth="labels", check=True).splitlines()[2])
    SELECT "source", "field", "problem", "num_rows"
    >>> print(rf.sql("ndcg@10", as_function=True, dialect="bigquery").splitlines()[7])
    CREATE OR REPLACE FUNCTION `ndcg_at_10`(`items` ANY TYPE, `relevant` ANY TYPE) AS ((
    """
    named = {"run": run, "truth": truth} | ({} if exclude is None else {"exclude": exclude})
    tables.check_paths(named)
    if check and not as_function:
        once = keywords.check_choice("duplicates", duplicates, get_args(Duplicates)) != "error"
        return checking.query_of_rules(metrics, run, truth, by, dialect, schema, columns, once=once)
    plain = {n: p.default for n, p in inspect.signature(sql).parameters.items()}
    call = {n: v for n, v in locals().items() if n in plain and n not in ("metrics", "columns")}
    call = {n: v for n, v in call.items() if n != "schema" and v not in (plain[n], [])} | columns
    written = dialects.dialect_named(dialect)
    if keywords.check_switch("as_function", as_function):
        arrays.check({**call, "schema": schema}, written)
        users, per_user = "all", True
        duplicates = "occupy" if duplicates == "error" else duplicates
    ids = {n: columns.get(n) for n in ("user", "item") if isinstance(columns.get(n), str)}
    groups = Settings(average=average, columns=cast("Columns", ids)).groups(by)
    empty = tables.empty_tables(schema, [*named], groups, columns)
    frames = empty.frames
    settings = Settings(
        users=users,
        undefined=undefined,
        average=average,
        relevant_at=relevant_at,
        unjudged=unjudged,
        duplicates=duplicates,
        depth=depth,
        preset=preset,
        exclude=frames.get("exclude"),
        columns=empty.columns,
    )
    if settings.unjudged == "bounds":
        bounds = option("unjudged", "bounds")
        msg = f"{bounds} cannot be written in SQL: use rf.evaluate or rf.per_user"
        raise ValueError(Problem(msg))
    if settings.single_precision:
        msg = "preset: single_precision cannot be written in SQL, which adds doubles: pass a dict "
        msg += "without it, such as {'users': 'both', 'undefined': 0.0}"
        raise ValueError(msg)
    if per_user and average != "users":
        msg = f"{option('average', average)} is an option of means, and per_user=True has none"
        raise ValueError(Problem(msg))
    lists = [name for name in empty.by if name != settings.averaged_by]
    question = ask(frames["run"], metrics, frames.get("truth"), lists, settings, per_user=per_user)
    if as_function:
        return _functions(question, written, call)
    paths = empty.paths(written, named)
    is_typed = schema is not None and "run" in schema
    query = _Query(question, written, paths, empty.more, is_typed=is_typed)
    output_names = _output_names(question, [*query.sources.keys, "users"], names, written)
    own = {averages.divisor_name(name): f"divisor_of_{out}" for name, out in output_names.items()}
    text = query.text(output_names | own)
    read = query.joined.tables
    return headers.header(written.name, question, read, empty.more, call) + text


def _output_names(
    question: Question,
    keys: Sequence[str],
    names: Literal["label", "snake"] | None,
    dialect: Dialect,
) -> dict[str, str]:
    """Name the columns of the metrics, as neither the keys nor other metrics are in any case."""
    snake = dialect.name == "bigquery" if names is None else names == "snake"
    if names not in (None, "label", "snake"):
        msg = f"names must be 'label' or 'snake', not {names!r}"
        raise ValueError(msg)
    if dialect.name == "bigquery" and not snake:
        msg = "names='label': BigQuery allows no @ in the name of a column: use names='snake'"
        raise ValueError(msg)
    metrics = [metric.name for metric in question.requested]
    written = {name: scopes.snake_name(name) if snake else name for name in metrics}
    output = [*keys, *written.values()]
    lowered = [name.lower() for name in output]
    for place, name in enumerate(output):
        if name.lower() in lowered[:place]:
            cure = "rename one with .alias(…)" if place >= len(keys) else "rename the column"
            msg = f"two output columns are called {name!r} in SQL, which ignores case: {cure}"
            raise ValueError(msg)
    return written


def _functions(question: Question, dialect: Dialect, call: Mapping[str, object]) -> str:
    """Write a function of arrays for each metric."""
    written = _output_names(question, arrays.ARRAYS, "snake", dialect)
    arrays.check_names(written, dialect)
    texts = [headers.of_functions(dialect.name, question, call)]
    for metric in question.requested:
        own, paths = replace(question, columns=[metric]), arrays.tables(dialect)
        query = _Query(own, dialect, paths, (), is_typed=False, arrays=arrays.ARRAYS)
        texts.append(arrays.function(dialect, written[metric.name], query.value()))
    return "\n".join(texts)


class _Query:
    """The parts of one query."""

    def __init__(
        self,
        question: Question,
        dialect: Dialect,
        paths: Mapping[str, str],
        more: Sequence[str],
        *,
        is_typed: bool,
        arrays: Sequence[str] = (),
    ) -> None:
        self.question, self.dialect = question, dialect
        for metric in question.requested:
            untranslated.refuse_metric(metric)
        read = readers.read_tables(question)
        untranslated.refuse_tables(read)
        refusals.refuse(question, read)
        self.joined = judgment.judge(read).with_plans(top="relevance")  # of the whole truth
        self.settings = question.settings
        self.users = read.users
        labels.check_names(question.requested, [*read.run.keys, "users"])
        group_means.check_weighted_means(question.requested, self.settings, {})
        divisors = averages.divisors(self.joined, question.requested)
        self.columns = [*question.requested, *divisors]
        own = question.reading.outside
        self.sources = Sources(dialect, read, paths, more, own, is_typed, arrays)
        self.keys = self.sources.list_keys

    def text(self, names: Mapping[str, str]) -> str:
        """Write the query."""
        every = self._values()
        ctes, spine = [cte for values in every for cte in values.ctes], every[0].name
        of_level = self.settings.relevant_at is not None
        if self.users != "truth" or of_level or not every[0].all_users:
            spine = self.sources.name("users")
            ctes.append(Cte(spine, f"who counts: users={self.users}", self._who()))
        per_user, texts = self._per_user(every, spine, names)
        final = per_user
        if not self.question.per_user:
            table = self.sources.name("per_user")
            if len(every) == 1 and spine == every[0].name and self.settings.undefined is None:
                table = spine  # it has all of it, under the names of the labels
                texts = {n: t._replace(sql=self.dialect.name_of(n)) for n, t in texts.items()}
            else:
                ctes.append(Cte(table, "one row per user", _indented(per_user)))
            final, more = self._means(table, names, texts)
            ctes += more
            if self.settings.averaged_by is not None:
                ctes.append(
                    Cte(self.sources.name("of_groups"), "means of groups", _indented(final))
                )
                final = self._of_groups(names)
        return self._with(ctes, final)

    def value(self) -> ColumnText:
        """Write the one metric of the one user as an expression."""
        (values,), (metric,) = self._values(), self.question.requested
        final = f"SELECT {self.dialect.name_of(metric.name)}\nFROM {values.name}"
        query, dtype = self._with(values.ctes, final), values.types[metric.name]
        return self._defined(ColumnText(f"(\n{query})", dtype))

    def _with(self, ctes: Sequence[Cte], final: str) -> str:
        """Write the steps above what reads them."""
        every = [*self.sources.ctes(), *ctes]
        steps = ",\n".join(f"-- {c.comment}\n{c.name} AS (\n{c.body}\n)" for c in every)
        return f"WITH\n{steps}\n{final}\n"

    def _values(self) -> list[Values]:
        """Translate the metrics of each scope."""
        every: list[Values] = []
        by_rows = reduction.metrics_by_rows(self.columns, self.joined)
        for choice, metrics in by_rows.items():
            joined = self.joined.with_level(choice.relevant_at)
            # in "judged", hits are counted, not taken from the order of the rows
            rows = Rows(joined, "judged", joined.truth)
            suffix = f"_{len(every) + 1}" if every else ""
            every.append(scopes.values_of(self.sources, rows, metrics, suffix))
        return every

    def _who(self) -> str:
        """Select the users who count, once each."""
        sources, users = self.sources, self.users
        lists = f"SELECT DISTINCT {self.keys} FROM {sources.lists}"
        if users == "run":
            return f"  {lists}"
        level = self.settings.relevant_at
        above = "> 0" if level is None else f">= {level!r}"
        where = f" WHERE {self.dialect.name_of('relevance')} {above}" if users == "truth" else ""
        judged = f"SELECT DISTINCT {self.keys} FROM {sources.name('judgments')}"
        if sources.lacking:
            judged += f" CROSS JOIN {sources.name('all_groups')}"
        judged += where
        if users in ("truth", "judged"):
            return f"  {judged}"
        if users == "all":
            either = f"{lists}\n    UNION ALL\n    {judged}"
            return f"  SELECT DISTINCT {self.keys}\n  FROM (\n    {either}\n  ) AS either"
        join = f"JOIN ({lists}) AS listed USING ({self.keys})"
        return f"  SELECT {self.keys}\n  FROM ({judged}) AS judged\n  {join}"

    def _groups(self, names: Sequence[str]) -> str:
        """Select each group of the run and the truth once."""
        columns, sources = self.dialect.listed(names), self.sources
        groups = f" CROSS JOIN {sources.name('all_groups')}" if sources.lacking else ""
        if {*names} <= {*sources.lacking}:
            return f"SELECT DISTINCT {columns} FROM {sources.name('all_groups')}"
        both = f"SELECT {columns} FROM {sources.lists} UNION ALL "
        both += f"SELECT {columns} FROM {sources.name('judgments')}{groups}"
        return f"SELECT DISTINCT {columns} FROM ({both}) AS both_tables"

    def _per_user(
        self, every: Sequence[Values], spine: str, names: Mapping[str, str]
    ) -> tuple[str, dict[str, ColumnText]]:
        """Join the values of all scopes, for the users who count."""
        quoted = self.dialect.name_of
        columns, texts = [self.keys], dict[str, ColumnText]()
        types = {name: dtype for values in every for name, dtype in values.types.items()}
        for metric in self.columns:
            value = ColumnText(quoted(metric.name), types[metric.name])
            name = quoted(names[metric.name])
            value = self._defined(value) if metric in self.question.requested else value
            texts[metric.name] = ColumnText(name, value.dtype)
            columns.append(name if value.sql == name else f"{value.sql} AS {name}")
        joins = [f"\nLEFT JOIN {v.name} USING ({self.keys})" for v in every if v.name != spine]
        return f"SELECT\n  {_on_lines(columns)}\nFROM {spine}{''.join(joins)}", texts

    def _defined(self, value: ColumnText) -> ColumnText:
        """Put ``undefined=`` in the place of null."""
        if self.settings.undefined is None or value.dtype not in ("int", "float", "bool"):
            return value
        fill = trees.LiteralNode(float(self.settings.undefined))
        node = CallNode("coalesce", (Cast(ColumnNode(""), "float"), fill))
        text = Printer(self.dialect, {"": value}).sql(node)
        return ColumnText(text, "float" if value.dtype == "bool" else value.dtype)

    def _means(
        self, per_user: str, names: Mapping[str, str], texts: Mapping[str, ColumnText]
    ) -> tuple[str, list[Cte]]:
        """Reduce the values of users to one row per group."""
        sources, users = self.sources, self.dialect.name_of("users")
        by, printer = sources.groups, Printer(self.dialect, texts)
        columns = [f"COUNT(*) AS {users}"]
        pooled = averages.of_users(self.question.requested, self.settings, self.joined)
        of_all = {metric.name: averages.pooled_mean(metric.name, of.unmet) for metric, of in pooled}
        for metric in self.question.requested:
            expr = of_all.get(metric.name, metric.over_users(pl.col(metric.name)))
            mean = printer.sql(trees.read(expr))
            columns.append(f"{mean} AS {self.dialect.name_of(names[metric.name])}")
        keys = self.dialect.listed(by)
        if not by:
            return f"SELECT\n  {_on_lines(columns)}\nFROM {per_user}", []
        final = f"SELECT\n  {_on_lines([keys, *columns])}\nFROM {per_user}\nGROUP BY {keys}"
        lacks_all = {*by} == {*sources.lacking}
        if self.users in ("truth", "judged") and lacks_all:
            return final, []  # each group has all users of the truth, so that none is without users
        means, groups = sources.name("means"), sources.name("all_groups")
        ctes = [Cte(means, "means over users", _indented(final))]
        if not lacks_all:
            groups, comment = sources.name("every_group"), "also groups in which no user counts"
            ctes.append(Cte(groups, comment, f"  {self._groups(by)}"))
        columns = [keys, f"COALESCE({users}, 0) AS {users}"]
        columns += self.dialect.names_of(names[m.name] for m in self.question.requested)
        text = f"SELECT\n  {_on_lines(columns)}\nFROM {groups}\nLEFT JOIN {means} USING ({keys})"
        return text, ctes

    def _of_groups(self, names: Mapping[str, str]) -> str:
        """Take the mean of the means of groups, of which those without users are null."""
        *by, _ = self.sources.groups
        users, keys = self.dialect.name_of("users"), self.dialect.names_of(by)
        printer = Printer(self.dialect, {"users": ColumnText(users, "int")})
        total = printer.sql(Cast(trees.read(pl.col("users").sum()), "int"))
        columns = [f"{total} AS {users}"]
        for metric in self.question.requested:
            name = self.dialect.name_of(names[metric.name])
            columns.append(f"AVG({name}) AS {name}")
        end = f"\nGROUP BY {', '.join(keys)}" if by else ""
        text = f"SELECT\n  {_on_lines([*keys, *columns])}\nFROM {self.sources.name('of_groups')}"
        return text + end


def _on_lines(columns: Sequence[str]) -> str:
    return ",\n  ".join(columns)


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())
