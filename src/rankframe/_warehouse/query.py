"""``sql``: a call of ``evaluate`` as one SELECT, each metric translated from its own expression."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

import polars as pl

from rankframe._evaluation import refusals, user_choice
from rankframe._request import keywords, labels, registry, share_names
from rankframe._request.keywords import Columns, Defaults, GainsFrom, Settings, Users
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question, ask
from rankframe._tables import judgment, readers
from rankframe._vocabulary import trees
from rankframe._vocabulary.scope_rows import Rows
from rankframe._warehouse import dialects, headers, scopes, tables
from rankframe._warehouse.dialects import Dialect, DialectName
from rankframe._warehouse.printing import ColumnText, Printer
from rankframe._warehouse.scopes import Values
from rankframe._warehouse.steps import Cte
from rankframe._warehouse.tables import Sources, TableName, TableSchema


def sql(
    *metrics: Metric,
    run: TableName = "run",
    truth: TableName | None = "truth",
    by: str | Sequence[str] = (),
    dialect: DialectName = "duckdb",
    per_user: bool = False,
    names: Literal["label", "snake"] | None = None,
    schema: Mapping[str, TableSchema] | None = None,
    users: Users | None = None,
    undefined: float | None = None,
    relevant_at: float | None = None,
    gains_from: GainsFrom | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    defaults: Defaults | None = None,
    exclude: TableName | None = None,
    **columns: Unpack[Columns],
) -> str:
    r"""
    Write the call of ``evaluate`` or ``per_user`` as one SELECT, to run where the tables are.

    Parameters
    ----------
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    run
        The name of the table: a dotted path such as ``"analytics.recs"``, whose parts are quoted; a
        tuple of parts; or one Jinja expression, ``'{{ ref("recs") }}'``.
    truth
        The name of the truth, in the same forms. Without one (None), metrics of lists alone remain.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    dialect
        The SQL of DuckDB, Spark and Databricks, Postgres, SQLite, BigQuery or Snowflake.
    per_user
        One row per user, as ``per_user`` returns, instead of means.
    names
        The columns of metrics: ``"label"``, or ``"snake"``, such as ndcg_at_10, which is the
        default in BigQuery, where a name cannot have an @.
    schema
        The columns of the tables by ``"run"``, ``"truth"`` and ``"exclude"``: a frame, of which
        only the types count, a schema, or a dict of types. By default the run has its keys, item
        and rank, and the truth user, item and a relevance, a number, without the columns of ``by``.
    users
        Which users count: ``"truth"``, every user with an item of grade > 0 (a user missing from
        the run scores 0); ``"judged"``, with any row in the truth; ``"both"``, with a row in the
        run and one in the truth; ``"served"``, with a row in the truth and a list of every system
        of ``by``; ``"run"``; or ``"all"``. By default ``"truth"``, or ``"run"`` where there is no
        truth.
    undefined
        The value where a metric (a number or a boolean) is undefined, for example for a user
        without a relevant item or, if the metric reads the list, without a list. By default null,
        which a mean leaves out.
    relevant_at
        The lowest grade that is relevant to the binary measures; > 0. By default every grade > 0
        is. It never changes which users count. A label with ``rel=``, such as ``"ap(rel=2)"``, has
        its own.
    gains_from
        ``"relevant_at"``: grades below ``relevant_at`` count as 0, so that they have no gain in any
        metric, nor in its ideal list. Users with only such grades stay, as with ``relevant_at``. By
        default every grade > 0 has a gain.
    judged_only
        Drop unjudged items and those of negative grade from the lists, after ``exclude``, and close
        the ranks (trec_eval ``-J``).
    depth
        Cut the lists to this depth first, after ``exclude``; the ideal stays whole (trec_eval
        ``-M``).
    defaults
        Parameters for labels that leave them out, for example
        ``{"map": {"divide_by": "attainable"}}``, by any name of the metric.
    exclude
        The name of a table of rows to remove from the lists, one per user and item.
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, if they have other names.

    Returns
    -------
    str
        One SELECT with the columns of ``evaluate``, by…, users and metrics, in any order of rows.
        The comment above it tells what it assumes of the tables; ``sql_check`` looks for rows that
        break this.

    Raises
    ------
    ValueError
        If a metric has no form in SQL; the message names the reason, and what works instead.

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
    FROM values_of_relevant
    GROUP BY "model"
    """
    plain = {n: p.default for n, p in inspect.signature(sql).parameters.items()}
    call = {n: v for n, v in locals().items() if n in plain and n not in ("metrics", "columns")}
    call = {n: v for n, v in call.items() if n != "schema" and v != plain[n]} | columns
    groups = keywords.group_names(by)
    paths = {"run": run, "truth": truth, "exclude": exclude}
    named = {name: path for name, path in paths.items() if path is not None}
    written = dialects.dialect_named(dialect)
    frames = tables.empty_frames(schema, [*named], groups, columns)
    settings = Settings(
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        gains_from=gains_from,
        judged_only=judged_only,
        depth=depth,
        defaults=defaults,
        exclude=frames.get("exclude"),
        columns=columns,
    )
    question = ask(frames["run"], metrics, frames.get("truth"), groups, settings, per_user=per_user)
    tables_of_query = {name: written.table(path) for name, path in named.items()}
    is_typed = schema is not None and "run" in schema
    query = _Query(question, written, tables_of_query, is_typed=is_typed)
    output_names = _output_names(question, names, written)
    text = query.text(output_names)
    return headers.header(question, query.judged.tables, call, output_names) + text


def _output_names(
    question: Question, names: Literal["label", "snake"] | None, dialect: Dialect
) -> dict[str, str]:
    """Name the columns of the metrics."""
    snake = dialect.name == "bigquery" if names is None else names == "snake"
    if names not in (None, "label", "snake"):
        msg = f"names must be 'label' or 'snake', not {names!r}"
        raise ValueError(msg)
    if dialect.name == "bigquery" and not snake:
        msg = "names='label': BigQuery allows no @ in the name of a column: use names='snake'"
        raise ValueError(msg)
    written: dict[str, str] = {}
    for metric in question.requested:
        name = snake_name(metric.name) if snake else metric.name
        if name.lower() in (other.lower() for other in written.values()):
            msg = f"two output columns are called {name!r} in SQL: rename one with .alias(…)"
            raise ValueError(msg)
        written[metric.name] = name
    return written


def snake_name(label: str) -> str:
    """Write a label as one word: ndcg_at_10."""
    text = label.replace("@", "_at_").replace("=", "_").replace("-", "_minus_")
    return re.sub(r"_+", "_", re.sub(r"\W+", "_", text)).strip("_")


class _Query:
    """The parts of one query."""

    def __init__(
        self, question: Question, dialect: Dialect, paths: Mapping[str, str], *, is_typed: bool
    ) -> None:
        self.question, self.dialect = question, dialect
        for metric in question.requested:
            refuse(metric)
        if question.truth is None:
            refusals.check_truth(question)
        read = readers.read_tables(question)
        _refuse_tables(read)
        refusals.refuse(question, read)
        self.judged = judgment.judge(read)
        self.settings = question.settings
        labels.check_names(question.requested, [*read.run.keys, "users"])
        self.sources = Sources(dialect, read, paths, question.reading.outside, is_typed)

    def text(self, names: Mapping[str, str]) -> str:
        """Write the query."""
        every = self._values()
        spine, ctes = self._spine(every)
        per_user, types = self._users(every, spine, names)
        groups = bool(self.sources.lacking)
        ctes = [*self.sources.ctes(groups=groups), *(c for v in every for c in v.ctes), *ctes]
        if self.question.per_user:
            final = per_user
        else:
            per_user_name = self.sources.name("per_user")
            if len(every) == 1 and spine == every[0].name and self.settings.undefined is None:
                per_user_name = spine  # it has all of it, under the names of the labels
                types = {n: t._replace(sql=self.dialect.name_of(n)) for n, t in types.items()}
            else:
                ctes.append(Cte(per_user_name, "one row per user", _indented(per_user)))
            final, more = self._means(per_user_name, names, types)
            ctes += more
        steps = ",\n".join(f"-- {c.comment}\n{c.name} AS (\n{c.body}\n)" for c in ctes)
        return f"WITH\n{steps}\n{final}\n"

    def _values(self) -> list[Values]:
        """Translate the metrics of each scope."""
        by_rows: dict[tuple[Any, ...], list[RequestedMetric]] = {}
        for metric in self.question.requested:
            scope = registry.reading_of(metric.reads).scope
            level = self.settings.relevant_at if metric.relevant_at is None else metric.relevant_at
            gains = "relevant_at" if metric.gains_from_there else self.settings.gains_from
            by_rows.setdefault((scope, level, gains), []).append(metric)
        every: list[Values] = []
        for number, ((_, level, gains), metrics) in enumerate(by_rows.items()):
            settings = replace(self.settings, relevant_at=level, gains_from=gains)
            judged = self.judged._replace(settings=settings)
            frame = judged.truth
            # in "judged", hits are counted, not taken from the order of the rows
            rows = Rows(judged, frame, frame, "judged", frame)
            reading = registry.reading_of({n for m in metrics for n in m.reads})
            suffix = f"_{number + 1}" if number else ""
            try:
                every.append(scopes.values_of(self.sources, rows, reading, metrics, suffix))
            except ValueError:
                for metric in metrics:  # find the one that cannot be said
                    alone = registry.reading_of(metric.reads)
                    try:
                        scopes.values_of(self.sources, rows, alone, [metric], suffix)
                    except ValueError as error:
                        raise refused(metric.name, str(error)) from None
                raise
        return every

    def _spine(self, every: Sequence[Values]) -> tuple[str, list[Cte]]:
        """Name the CTE that has the users who count, once each."""
        users = user_choice.users_policy(self.settings, self.judged)
        if users == "truth" and every[0].all_users:
            return every[0].name, []
        name = self.sources.name("users")
        return name, [Cte(name, f"who counts: users={users}", self._who(users))]

    def _who(self, users: Users) -> str:
        sources = self.sources
        keys = ", ".join(self.dialect.names_of(sources.keys))
        of_lists = f"SELECT DISTINCT {keys} FROM {sources.lists}"
        if users == "run":
            return f"  {of_lists}"
        relevance = self.dialect.name_of("relevance")
        where = f"\n    WHERE {relevance} > 0" if users == "truth" else ""
        own = ", ".join(self.dialect.names_of(sources.truth_keys))
        crossed = f" CROSS JOIN {sources.name('all_groups')} AS g" if sources.lacking else ""
        tables = {name: "g" if name in sources.lacking else "t" for name in sources.keys}
        listed = ", ".join(f"{tables[n]}.{self.dialect.name_of(n)}" for n in sources.keys)
        judged = f"  SELECT {listed}\n  FROM (\n    SELECT DISTINCT {own} FROM "
        judged += f"{sources.name('judgments')}{where}\n  ) AS t{crossed}"
        if users in ("truth", "judged"):
            return judged
        if users == "all":
            either = f"    {of_lists.replace('DISTINCT ', '')}\n    UNION ALL\n{_indented(judged)}"
            return f"  SELECT DISTINCT {keys}\n  FROM (\n{either}\n  ) AS u"
        same = [(n, f"{tables[n]}.{self.dialect.name_of(n)}") for n in sources.keys]
        if users == "both":
            on = " AND ".join(f"l.{self.dialect.name_of(n)} = {of}" for n, of in same)
            return f"{judged}\n  WHERE EXISTS (SELECT 1 FROM {sources.lists} AS l WHERE {on})"
        return judged + self._served(dict(same))

    def _served(self, places: Mapping[str, str]) -> str:
        """Keep users with a list in every system, within the groups of the other columns."""
        sources, quoted = self.sources, self.dialect.name_of
        system = user_choice.system_of(self.judged.tables.run.by)
        own = [name for name in sources.keys if name != system]
        lists = (
            f"SELECT DISTINCT {', '.join(self.dialect.names_of(sources.keys))} FROM {sources.cut}"
        )
        keys = ", ".join(self.dialect.names_of(own))
        on = " AND ".join(f"l.{quoted(name)} = {places[name]}" for name in own)
        served = f"    SELECT {keys}, COUNT(*) AS n FROM ({lists}) AS d GROUP BY {keys}"
        joined = f"\n  JOIN (\n{served}\n  ) AS l ON {on}"
        if system is None:
            return joined
        of_groups = sources.lacking if system in sources.lacking else sources.keys[:-1]
        rest = self.dialect.names_of(name for name in of_groups if name != system)
        number = f"COUNT(DISTINCT {quoted(system)}) AS n FROM ({self._groups(of_groups)}) AS e"
        if not rest:
            return f"{joined}\n  CROSS JOIN (SELECT {number}) AS y\n  WHERE l.n = y.n"
        on = " AND ".join(f"y.{quoted(n)} = {places[n]}" for n in of_groups if n != system)
        systems = f"SELECT {', '.join(rest)}, {number} GROUP BY {', '.join(rest)}"
        return f"{joined}\n  JOIN (\n    {systems}\n  ) AS y ON {on}\n  WHERE l.n = y.n"

    def _groups(self, names: Sequence[str]) -> str:
        """Select each group of the run and the truth once."""
        columns = ", ".join(self.dialect.names_of(names))
        sources = self.sources
        if {*names} <= {*sources.lacking}:
            return f"SELECT DISTINCT {columns} FROM {sources.name('all_groups')}"
        if not sources.tables.has_truth:
            return f"SELECT DISTINCT {columns} FROM {sources.lists}"
        crossed = f" CROSS JOIN {sources.name('all_groups')}" if sources.lacking else ""
        both = f"SELECT {columns} FROM {sources.lists} UNION ALL "
        both += f"SELECT {columns} FROM {sources.name('judgments')}{crossed}"
        return f"SELECT DISTINCT {columns} FROM ({both}) AS b"

    def _users(
        self, every: Sequence[Values], spine: str, names: Mapping[str, str]
    ) -> tuple[str, dict[str, ColumnText]]:
        """Join the values of all scopes, for the users who count."""
        quoted, keys = self.dialect.name_of, self.sources.keys
        home = {name: f"v{n}" for n, values in enumerate(every, 1) for name in values.types}
        types = {name: dtype for values in every for name, dtype in values.types.items()}
        first = home[next(iter(every[0].types))] if spine == every[0].name else "u"
        columns = [f"{first}.{quoted(name)}" for name in keys]
        dictionary: dict[str, ColumnText] = {}
        for metric in self.question.requested:
            name, dtype = metric.name, types[metric.name]
            text = f"{home[name]}.{quoted(name)}"
            dictionary[name] = ColumnText(quoted(names[name]), dtype)
            if self.settings.undefined is not None and dtype in ("int", "float", "bool"):
                fill = self.dialect.literal(float(self.settings.undefined))
                if dtype == "bool":
                    text = f"CASE WHEN {text} THEN 1 WHEN NOT {text} THEN 0 END"
                    text = f"CAST({text} AS {self.dialect.types[0]})"
                    dictionary[name] = ColumnText(quoted(names[name]), "float")
                text = f"COALESCE({text}, {fill})"
            columns.append(f"{text} AS {quoted(names[name])}")
        body = "SELECT\n  " + ",\n  ".join(columns) + f"\nFROM {spine} AS {first}"
        for number, values in enumerate(every, 1):
            if values.name != spine:
                on = " AND ".join(f"v{number}.{quoted(n)} = {first}.{quoted(n)}" for n in keys)
                body += f"\nLEFT JOIN {values.name} AS v{number} ON {on}"
        return body, dictionary

    def _means(
        self, per_user: str, names: Mapping[str, str], dictionary: Mapping[str, ColumnText]
    ) -> tuple[str, list[Cte]]:
        """Reduce the values of users to one row per group."""
        quoted, sources = self.dialect.name_of, self.sources
        by = sources.keys[:-1]
        printer = Printer(self.dialect, dictionary)
        users = quoted("users")
        columns = [f"COUNT(*) AS {users}"]
        for metric in self.question.requested:
            mean = printer.sql(trees.read(metric.over_users(pl.col(metric.name))))
            columns.append(f"{mean} AS {quoted(names[metric.name])}")
        if not by:
            listed = ",\n  ".join(columns)
            return f"SELECT\n  {listed}\nFROM {per_user}", []
        keys = self.dialect.names_of(by)
        policy = user_choice.users_policy(self.settings, self.judged)
        if policy in ("truth", "judged") and {*by} == {*sources.lacking}:
            # each group has all users of the truth, so that none is without users
            listed = ",\n  ".join([*keys, *columns])
            return f"SELECT\n  {listed}\nFROM {per_user}\nGROUP BY {', '.join(keys)}", []
        body = "  SELECT\n    " + ",\n    ".join([*keys, *columns])
        body += f"\n  FROM {per_user}\n  GROUP BY {', '.join(keys)}"
        means, groups = sources.name("means"), sources.name("all_groups")
        ctes = [Cte(means, "means over users", body)]
        if {*by} != {*sources.lacking}:
            groups = sources.name("every_group")
            rows = f"  {self._groups(by)}"
            ctes.append(Cte(groups, "also groups in which no user counts", rows))
        final = [f"g.{key}" for key in keys] + [f"COALESCE(m.{users}, 0) AS {users}"]
        final += [f"m.{quoted(names[m.name])}" for m in self.question.requested]
        on = " AND ".join(f"m.{key} = g.{key}" for key in keys)
        text = "SELECT\n  " + ",\n  ".join(final) + f"\nFROM {groups} AS g\n"
        return f"{text}LEFT JOIN {means} AS m ON {on}", ctes


def _indented(text: str) -> str:
    return "\n".join(f"  {line}" for line in text.splitlines())


# ------------------------------------------------------------------ refusals


#: The nearest label that has a form in SQL.
_NEAREST = {
    "alpha_dcg": "dcg(gain=binary)",
    "alpha_ndcg": "ndcg(gain=binary)",
    "ap_ia": "ap",
    "err_ia": "err",
    "nerr_ia": "nerr",
    "nnrbp": "rbp",
    "nrbp": "rbp",
    "precision_ia": "precision",
    "subtopic_recall": "recall",
    "compatibility": "rbp",
    "corrected": "ndcg",
    "coverage": "hit",
    "snips_dcg": "dcg",
    "snips_recall": "recall",
}


def refused(name: str, reason: str) -> ValueError:
    """Make the error of a metric that SQL cannot say."""
    parsed = labels.look_up(name)
    near = None if parsed is None else _NEAREST.get(parsed.entry.plain)
    if parsed is not None and near is not None and parsed.parts["k"]:
        near += f"@{parsed.parts['k']}"
    instead = "" if near is None else f"the nearest label is {near!r}; "
    msg = f"metric {name!r} has no form in SQL: {reason}; {instead}rf.evaluate computes it"
    return ValueError(msg)


def refuse(metric: RequestedMetric) -> None:
    """Raise for a metric that reads what this query does not have."""
    if share_names.kind_of(metric) is not None:
        raise refused(metric.name, "it reads shares of all lists")
    reading = registry.reading_of(metric.reads, inputs=keywords.INPUTS)
    for name, column in reading.columns.items():
        if column.source:
            raise refused(metric.name, f"it reads {name!r}, from {column.source}=")
        if column.scope == "subtopic":
            raise refused(metric.name, f"it reads {name!r}, a column of subtopics")


def _refuse_tables(read: Any) -> None:
    if read.tied:
        msg = "run, column 'tied': SQL has no form of expectations over ties: rank with ties='item'"
        raise ValueError(msg)
    if read.has_subtopics:
        msg = (
            "truth, column 'subtopic': SQL has no form of rows per subtopic: select one row per "
            "item, as in SELECT user, item, MAX(relevance)"
        )
        raise ValueError(msg)
