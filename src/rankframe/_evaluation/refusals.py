"""Before the reduction: refusals of a request against its tables, one clear error for each."""

from __future__ import annotations

from rankframe import errors
from rankframe._evaluation import bounds, chance
from rankframe._request import keywords, registry, share_names
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Question
from rankframe._request.registry import Reading
from rankframe._tables import readers, side_tables
from rankframe._tables.table import Tables
from rankframe._vocabulary import share_rows
from rankframe.errors import Problem, RankingDataError, option


def refuse(question: Question, tables: Tables) -> None:
    """Raise for the first thing that is asked and that these tables cannot answer."""
    settings = question.settings
    _check_users(question, tables)
    _check_means(question)
    for metric in question.requested:
        reading = registry.reading_of(
            metric.reads, has_subtopics=tables.has_subtopics, inputs=tables.beside
        )
        _check_scope(metric, reading, tables)
        _check_abstention(metric, tables)
        if metric.is_own:
            _check_missed_items(metric, reading, tables)
        if settings.chance:
            chance.check(metric, tables)
        if settings.unjudged == "bounds" and tables.has_subtopics:
            _check_no_subtopics(metric)
    of_all = [metric.name for metric in question.requested if metric.is_of_all_lists]
    if of_all:
        _check_of_all_lists(of_all[0], question)
    if settings.unjudged == "bounds":
        for metric in question.requested:
            bounds.extreme_judgments(metric, tied=tables.tied)


def check_truth(question: Question) -> None:
    """Check, before the tables are read, that a metric that reads what is relevant has a truth."""
    for metric in question.requested:
        reading = registry.reading_of(metric.reads, inputs=question.settings.inputs)
        if reading.scope not in ("listed", "shares"):
            continue
        reads = [name for name, column in reading.columns.items() if not column.known_without_truth]
        reads += ["relevant"] if share_names.needs_truth(reading.names) else []
        if reads and not readers.has_relevance(
            question.frame, question.by, question.settings.columns
        ):
            msg = (
                f"metric {metric.name!r}: pass {option('truth')}, what users want (user, item); it "
                f"reads {reads[0]!r}"
            )
            raise RankingDataError(msg)


def _check_users(question: Question, tables: Tables) -> None:
    """Check that there is a truth to take users from, and that every user can be in a segment."""
    settings, users = question.settings, question.settings.users
    if not tables.has_truth and users in ("truth", "judged", "both"):
        why = "selects users of the truth, but there is no truth"
        raise ValueError(Problem(f"{option('users', users)} {why}: pass {option('truth')}"))
    if not tables.has_truth and settings.unjudged != "miss":
        why = f"{option('unjudged', settings.unjudged)}: nothing is judged without a truth"
        raise ValueError(Problem(f"{why}: pass {option('truth')}"))
    if users in ("run", "all") and (segments := readers.segments_of(question.frame, tables.run)):
        msg = (
            f"{option('users', users)} includes users who are not in the truth, but only the truth "
            f"has the column {segments[0]!r} of {option('by')}: join it to the run"
        )
        raise ValueError(Problem(msg))


def _check_means(question: Question) -> None:
    """Check that geometric means and levels of relevance are of metrics that can have them."""
    requested, undefined = question.requested, question.settings.undefined
    if undefined is not None and undefined < 0 and not all(metric.per_user for metric in requested):
        msg = f"undefined must be {keywords.UNSET} or ≥ 0 for a geometric mean, not {undefined!r}"
        raise ValueError(Problem(msg))
    for metric in [metric for metric in requested if metric.is_of_all_lists]:
        if metric.relevant_at is not None:
            msg = (
                f"metric {metric.name!r} is one number for all lists and has no rel= of its own: "
                f"pass {option('relevant_at', metric.relevant_at)}"
            )
            raise ValueError(Problem(msg))


def _check_scope(metric: RequestedMetric, reading: Reading, tables: Tables) -> None:
    """Check that a metric reduces rows of one kind, and that these are the intended ones."""
    _check_tables(metric, reading, tables)
    if tables.has_subtopics and reading.mixes_subtopics:
        msg = (
            f"metric {metric.name!r} reads both columns of items and columns of their subtopics: "
            "split it into two metrics"
        )
        raise ValueError(msg)
    run, truth = tables.run, tables.truth
    columns = {*run.ids, *(() if truth is None else truth.schema)}
    if not (tables.has_truth or reading.names_its_rows):
        columns.update(run.schema)
    for name in reading.outside:
        if name in run.schema and name not in columns and not reading.names_its_rows:
            msg = (
                f"metric {metric.name!r} reads the column {name!r} of the {run.name}, but does not "
                "say which rows. Filter by pl.col('listed') to reduce the whole list, by "
                "pl.col('relevant') for only the relevant items, or by pl.col('judged'): "
                f"pl.col({name!r}).filter(pl.col('listed') & (pl.col('rank') <= 10)).mean()"
            )
            raise ValueError(msg)


def _check_abstention(metric: RequestedMetric, tables: Tables) -> None:
    """Warn of a metric of users without a relevant item, of whom none counts."""
    is_abstention = metric.call is not None and metric.call.entry.label == "abstention_recall"
    if is_abstention and tables.users == "truth" and metric.relevant_at is None:
        errors.warn(
            f"metric {metric.name!r} is null for users with a relevant item, and only they count "
            f"with {option('users', 'truth')}: pass {option('users', 'judged')}"
        )


def _check_missed_items(metric: RequestedMetric, reading: Reading, tables: Tables) -> None:
    """Warn of an own expression that leaves out missed items, though they are among its rows."""
    from rankframe._evaluation import missed_items

    if reading.scope in ("listed", "shares"):
        return
    run, truth = tables.run, tables.truth
    of_run: set[str] = set() if truth is None else {*run.schema} - {*truth.schema}
    null = {*missed_items.NULL, *of_run.intersection(reading.outside)}
    left_out = missed_items.leaving_out(metric.expr, null)
    if left_out is None:
        return
    function, column, k = left_out
    msg = (
        f"metric {metric.name!r}: {function}() over a comparison of {column!r} leaves out the "
        f"items that were not retrieved, where it is null: read pl.col('within({k})'), which is "
        f"never null, or add .fill_null(False) before .{function}(); if only retrieved items are "
        "meant, say so with .filter(pl.col('rank').is_not_null())"
    )
    errors.warn(msg)


def _check_outside(name: str, metric: str, tables: Tables) -> None:
    """Check that one table has a column of the caller's, or that its table is passed."""
    run, items = tables.run, tables.beside.get("items")
    has = [name in table.schema for table in tables.both]
    roles = [*run.keys, run.item, run.rank, run.score, run.relevance]
    if items is not None and name in items.schema and name not in (*roles, *items.by):
        if any(has):
            msg = (
                f"column {name!r}: both {option('items')} and the {run.name} or the truth have it, "
                f"and metric {metric!r} reads it: rename or drop one"
            )
            raise RankingDataError(msg)
        return
    column = registry.COLUMNS.get(name.partition("(")[0])
    if column and column.source not in ((), registry.SHARES) and not any(has):
        msg = f"metric {metric!r}: pass {side_tables.meanings(column.source)}; it reads {name!r}"
        raise RankingDataError(msg)
    if not (tables.has_truth or any(has) or name.startswith("^")):
        columns = dict.fromkeys([*run.schema, *(() if items is None else items.schema)])
        msg = (
            f"metric {metric!r} reads a column {name!r}; the tables have "
            f"{', '.join(map(repr, columns))}"
        )
        raise RankingDataError(msg)


def _check_tables(metric: RequestedMetric, reading: Reading, tables: Tables) -> None:
    """Check that the tables from which the columns of a metric come are passed."""
    for name in reading.outside:
        _check_outside(name, metric.name, tables)
    kind = metric.distribution
    if kind is None:
        return
    item = tables.run.item
    if item == readers.ROW_NUMBER:
        raise readers.without_items(repr(metric.name))
    share_rows.check_shares(f"metric {metric.name!r}", kind, reading.names, tables.beside, item)
    if share_names.needs_truth(reading.names) and not tables.has_truth:
        msg = f"metric {metric.name!r} reads relevant items: pass {option('truth')}"
        raise RankingDataError(msg)
    if tables.tied:
        share_names.check_shares_in_ties(f"metric {metric.name!r}", reading.names)
    row_columns = [n for n, c in reading.columns.items() if c.scope != "shares"]
    if row_columns or reading.outside:
        msg = (
            f"metric {metric.name!r} reads columns of shares and "
            f"{(row_columns or reading.outside)[0]!r}, a column of rows: split it into two metrics"
        )
        raise ValueError(msg)


def _check_no_subtopics(metric: RequestedMetric) -> None:
    if registry.reading_of(metric.reads, has_subtopics=True).scope == "subtopic":
        msg = f"metric {metric.name!r} has no bounds, since an unjudged item may have any subtopics"
        raise ValueError(msg)


def _check_of_all_lists(name: str, question: Question) -> None:
    """Check that the call can return one number for all lists."""
    settings = question.settings
    if question.per_user:
        msg = f"{name} is one number for all users: use evaluate"
        raise ValueError(msg)
    if settings.unjudged == "bounds":
        msg = f"metric {name!r} has no bounds, since it is one number for all lists: leave it out"
        raise ValueError(msg)
    of_means = {"weights": settings.weights, "cluster": settings.cluster}
    for column, value in {**of_means, "average": settings.averaged_by}.items():
        if value is not None:
            msg = (
                f"metric {name!r} is one number for all lists, and {option(column)} is for means "
                "over users"
            )
            raise ValueError(Problem(msg))
