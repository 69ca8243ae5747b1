"""Adds values by human labels to those of a judge's truth: a second evaluation, joined per user."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import comb
from typing import cast

import polars as pl

from rankframe._evaluation import evaluation, user_columns
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.question import Question
from rankframe._request.types import Frame, Truth
from rankframe._tables import adapters, column_roles, rules
from rankframe._tables.table import HUMAN, TRUTHS, Table
from rankframe.errors import Problem, RankingDataError, option, table_code

#: Whether a user has human labels.
LABELLED = f"{labels.PREFIX}labelled"
_KNOWN = f"{labels.PREFIX}known"
#: Of a random sample, below which it is none.
_LEAST_CHANCE = 0.001


def column_of(metric: str) -> str:
    """Name the column of a metric's values by human labels."""
    return f"{labels.PREFIX}human_{metric}"


def with_human(values: Values, question: Question, human: Truth) -> Values:
    """Add to the values of each user those by human labels, null for users without labels."""
    _check_forms(values, question)
    table = adapters.to_lazy(human, HUMAN)
    settings = replace(question.settings, weights=None, cluster=None)
    names = values.names_per_user
    schema: dict[str, pl.DataType] = dict(values.rows.collect_schema())
    schema |= {LABELLED: pl.Boolean(), **{column_of(name): pl.Float64() for name in names}}

    def joined(rows: pl.DataFrame) -> pl.DataFrame:
        _check_names(table, values)
        labels_of = _with_groups(_drawn(table), question, values.user)
        of_labels = replace(question, truth=labels_of, truth_name=HUMAN, settings=settings)
        of_human = evaluation.plan_values(of_labels)
        rules.raise_in_tables([cast("Table", of_human.source.tables.truth)])
        _check_grades(values, of_human)
        _check_users(table, values)
        own = of_human.checks.guarded(of_human.rows).collect()
        _check_depth(values, of_human)
        keys = [pl.col(name).cast(schema[name]) for name in values.keys]
        labelled = of_human.source.truth.select(*keys).unique().collect()
        has = [user_columns.MISSED] * (user_columns.MISSED in own.columns)
        numbers = [pl.col(name).cast(pl.Float64).alias(column_of(name)) for name in names]
        by_human = own.select(*keys, *numbers, *has).join(labelled, on=values.keys, how="semi")
        both = rows.join(by_human, on=values.keys, how="full", coalesce=True)
        _check_counted(both.join(rows, on=values.keys, how="anti"), values)
        labelled = labelled.with_columns(pl.lit(value=True).alias(LABELLED))
        both = both.join(labelled, on=values.keys, how="left", nulls_equal=True)
        both = both.with_columns(pl.col(LABELLED).fill_null(value=False))
        if has:
            missed = pl.coalesce(user_columns.MISSED, f"{user_columns.MISSED}_right")
            both = both.with_columns(missed.alias(user_columns.MISSED))
            _check_served(both, values.user)
        return both.select(list(schema))

    return values._replace(rows=values.rows.map_batches(joined, schema=schema), has_human=True)


def _check_forms(values: Values, question: Question) -> None:
    """Check that a judge's truth is corrected, in means over users."""
    human, settings = option("human"), values.settings
    if values.joined is None or question.truth is None:
        msg = f"{human} corrects the means of a judge: pass its labels in {option('truth')}"
        raise ValueError(Problem(msg))
    for name in ("over", "average"):
        if (value := getattr(settings, name)) not in (None, "users"):
            msg = f"{option(name, value)} is not supported with {human}: leave it out"
            raise ValueError(Problem(msg))
    tables = [question.frame, cast("Frame", question.truth)]
    has = {name for table in tables for name in adapters.column_names(table, "table")}
    if lacking := [name for name in question.by if name not in has]:
        name = f"{option('by')}: {lacking[0]!r} is made of each truth"
        msg = f"{name}, and is not supported with {human}: join its column to the truth"
        raise ValueError(Problem(msg))
    for metric in values.all_requested:
        if metric.is_of_all_lists or not metric.per_user:
            kind = "one number for all lists" if metric.is_of_all_lists else "not a mean of values"
            msg = f"metric {metric.name!r} is {kind}, and {human} corrects means: leave it out"
            raise ValueError(Problem(msg))


def _drawn(table: pl.LazyFrame) -> pl.LazyFrame:
    """Check that a column of the labels that says how their users came says at random."""
    if "drawn" in table.collect_schema():
        is_chosen = pl.col("drawn").cast(pl.String).ne_missing("random")
        calls = '.filter(pl.col("drawn") == "random")', '[human["drawn"] == "random"]'
        text = "the users must be a random sample, and rows were chosen: keep the others"
        text += table_code(HUMAN, *calls)
        rules.raise_if_any(table.filter(is_chosen), HUMAN, "drawn", text)
    return table


def _check_grades(values: Values, of_human: Values) -> None:
    """Check that both tables have grades, or neither: without any, every pair is relevant."""
    truths = [cast("Table", side.source.tables.truth) for side in (values, of_human)]
    graded = [truth.relevance for truth in truths]
    if None in graded and any(graded):
        lacking, other = TRUTHS if graded[0] is None else TRUTHS[::-1]
        name = next(filter(None, graded))
        msg = (
            f"{lacking}: there is no column of grades, and {other} has {name!r}: every pair would "
            f"be relevant: give both tables a column {name!r}, such as 1 for relevant and 0"
        )
        raise RankingDataError(msg)


def _refuse(rows: pl.DataFrame | pl.LazyFrame, keys: Sequence[str], text: str) -> None:
    """Raise for the first of the rows, if there are any."""
    row = rows.lazy().sort(keys).head(1).collect()
    if not row.is_empty():
        msg = f"{HUMAN}: {text}. Offending row: {rules.format_row(row)}"
        raise RankingDataError(Problem(msg))


def _check_names(human: pl.LazyFrame, values: Values) -> None:
    """Check that the labels have the columns of the truth, under its names."""
    schema, columns = human.collect_schema(), values.settings.columns
    named = {role: name for role, name in columns.items() if role in ("relevance", "subtopic")}
    named = {"user": values.user, "item": values.source.item, **named}
    for role, name in named.items():
        if name in schema:
            continue
        fit = [role] * (role in schema) or column_roles.fitting(role, {}, (), schema)
        lists = [name for name, dtype in schema.items() if isinstance(dtype, pl.List)]
        if role == "item" and len(lists) == 1:
            fit = lists
        names = {fit[0]: name} if len(fit) == 1 else {}
        explode = f".explode({lists[0]!r})" if fit == lists else ""
        cure = "name it as in the truth"
        if names:
            of_pandas = f"{explode}.rename(columns={names})"
            cure += table_code(HUMAN, f"{explode}.rename({names})", of_pandas)
        has = ", ".join(map(repr, schema))
        msg = f"{HUMAN}: no column {name!r} for {role}; it has {has}: {cure}"
        raise RankingDataError(Problem(msg))


def _check_users(human: pl.LazyFrame, values: Values) -> None:
    """Check that the truth has all users."""
    user, dtype = values.user, values.types[values.user]
    key = pl.col(user).cast(dtype)
    unknown = human.select(key).join(values.source.truth.select(key), on=user, how="anti")
    on, truth = repr(user), cast("Table", values.source.tables.truth)
    if truth.schema[user] != human.collect_schema()[user]:
        on = f"pl.col({on}).cast(pl.{dtype})"
    calls = f".join(truth, on={on}, how='semi')", f"[human[{user!r}].isin(truth[{user!r}])]"
    text = (
        "a user without a row in the truth: labels are of a random sample of the users of the "
        f"truth: leave others out{table_code(HUMAN, *calls)}"
    )
    _refuse(unknown, [user], text)


def _with_groups(human: pl.LazyFrame, question: Question, user: str) -> pl.LazyFrame:
    """Take the columns of ``by`` that the truth alone has."""
    truth = adapters.to_lazy(cast("Truth", question.truth), "truth")
    types = truth.collect_schema()
    key = pl.col(user).cast(pl.String)  # whether both have one type, the evaluation says
    others = adapters.column_names(question.frame, "run")
    lacking = [name for name in question.by if name in types and name not in others]
    if not lacking:
        return human
    human = human.drop(lacking, strict=False)  # a user is in the segment of the truth
    groups = truth.select(key.alias(_KNOWN), *lacking).unique()
    with_groups = human.with_columns(key.alias(_KNOWN)).join(groups, on=_KNOWN)
    return with_groups.drop(_KNOWN)


def _check_depth(values: Values, of_human: Values) -> None:
    """Check that no item of a list, down to the cut-off of the metrics, is judged by one alone.

    Nor any relevant item, of which ideals and divisors are made. An item without a row is judged as
    well in a truth of relevant items alone.
    """
    judge = values.source
    both = [
        source.truth.select(*values.keys, source.item, "relevance").unique().collect()
        for source in (judge, of_human.source)
    ]
    both[1] = both[1].cast({name: both[0].schema[name] for name in (*values.keys, judge.item)})
    depths = [metric.cut_off for metric in values.requested]
    depth = None if None in depths else max(cast("list[int]", depths), default=None)
    if (most := values.settings.depth) is not None:
        depth = min(depth or most, most)
    rank, keys = pl.col("rank"), values.keys
    lists = judge.run if depth is None else judge.run.filter(rank <= depth)
    listed = lists.select(*keys, judge.item).collect()
    listed = listed.join(both[1], on=keys, how="semi")
    for names, (first, second) in zip((TRUTHS, TRUTHS[::-1]), (both, both[::-1]), strict=True):
        if not (second["relevance"] <= 0).any():
            continue
        on = [*keys, judge.item]
        to = "" if depth is None else f" to rank {depth}"
        text = (
            f"an item of a list is judged in {names[0]}, and not in {names[1]}: judge all items of "
            f"the lists{to} in both, or use metrics with a smaller cut-off"
        )
        alone = listed.join(first, on=on, how="semi").join(second, on=on, how="anti")
        _refuse(alone, on, text)
        text = (
            f"a relevant item in {names[0]} is not judged in {names[1]}: judge it, or keep in both "
            "tables the pairs of one pool, such as the first 10 of all systems"
        )
        wanted = first.filter(pl.col("relevance") > 0).join(second, on=keys, how="semi")
        _refuse(wanted.join(second, on=on, how="anti"), on, text)


def _check_served(rows: pl.DataFrame, user: str) -> None:
    """Check that users without a list are among those with human labels, if there are many."""
    is_labelled, is_missed = pl.col(LABELLED).any(), pl.col(user_columns.MISSED).all()
    users = rows.group_by(user).agg(is_labelled, is_missed)
    drawn = users.filter(LABELLED)
    missed = int(users[user_columns.MISSED].sum())
    if drawn[user_columns.MISSED].any() or not missed:
        return
    # the chance that a random sample has none of them
    if comb(users.height - missed, drawn.height) < _LEAST_CHANCE * comb(users.height, drawn.height):
        msg = (
            f"{HUMAN}: {missed} of {users.height} users have no list, and none of the "
            f"{drawn.height} users with human labels: this is not a random sample of all users: "
            f"label items of such users as well, or leave them out: {option('users', 'both')}"
        )
        raise RankingDataError(Problem(msg))


def _check_counted(alone: pl.DataFrame, values: Values) -> None:
    """Check that users who count by human labels alone need no weight and no cluster."""
    if not values.settings.of_users:
        return
    cure = f"{option('users', 'all')}, {option('undefined', 0.0)} counts all users by both"
    column = option("weights" if values.weights is not None else "cluster")
    text = "a user counts by human labels, and not by the truth, which has no"
    _refuse(alone.select(values.keys), values.keys, f"{text} {column} of them: {cure}")
