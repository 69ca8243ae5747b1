"""The verbs: one value a user, and the mean over users.

``relevant rows → expressions → numbers``: the second half of the street.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

import polars as pl

from rankframe._frames import Frame, FrameT, leave
from rankframe.checks import (
    Columns,
    check_flag,
    guarded,
    raise_first_broken,
    shown,
    suspicion,
    unique_flag,
    watch,
)
from rankframe.errors import RankingDataError
from rankframe.labels import Asked, Defaults, Metric, ask_all, check_names, is_number
from rankframe.table import (
    Street,
    enter_street,
    table_flags,
)
from rankframe.vocabulary import VOCABULARY, reads_subtopics, vocabulary_rows

Users: TypeAlias = Literal["truth", "judged", "both", "run", "all"]


class Preset(TypedDict, total=False):
    """The keywords that stand for the conventions of another tool."""

    users: Users
    undefined: float
    defaults: Defaults
    single_precision: bool


_RBP = {
    "rbp": {"p": 0.9, "gain": "user"},
    "rbp_residual": {"p": 0.9, "counts": "unjudged"},
}
_FLOOR = {
    "interpolated_precision": {"points": "floor"},
    "eleven_point_precision": {"points": "floor"},
}

#: ``trec_eval -c`` of version 10: every judged user counts, and what is undefined is 0. (Without
#: ``-c`` trec_eval leaves out users that are absent from the run: ``users="both"``.)
TREC_EVAL: Preset = {"users": "judged", "undefined": 0.0, "defaults": _RBP}

#: ``trec_eval -c`` of version 9, of pytrec_eval and ir_measures: scores are 32-bit floats, and
#: recall levels are reached by ⌊recall·R + 0.9⌋ hits.
TREC_EVAL_9: Preset = {
    "users": "judged",
    "undefined": 0.0,
    "defaults": _FLOOR,
    "single_precision": True,
}


def per_user(
    frame: FrameT,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    users: Users = "truth",
    undefined: float | None = None,
    relevant_at: float | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    defaults: Defaults | None = None,
    single_precision: bool = False,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Compute metrics for every user.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run. A run with a score and no rank is ranked on the
        way, by ``with_rank``'s defaults.
    *metrics
        Labels such as ``"ndcg@10"``, metric functions' expressions such as ``rf.ndcg_at(10)``, or
        any aliased expression of your own on the vocabulary and the columns that ride along. It
        reduces the user's rows of grade > 0, retrieved or not, so ``pl.len()`` counts these.
    truth
        The truth that judges the run.
    by
        Columns that split the run into separate lists, such as model, fold or day.
    users
        Whose rows come out: ``"truth"``, every user with an item of grade > 0 (one whom the run
        misses has 0); ``"judged"``, with any row in the truth; ``"both"``, with a row in the run
        and one in the truth; ``"run"``; or ``"all"``.
    undefined
        What stands where a metric (a number or a boolean) is undefined, for example for a user
        without a relevant item. By default null, which means leave out.
    relevant_at
        The grade from which an item is relevant to the binary measures; > 0. By default every
        grade > 0 is.
    judged_only
        Drop unjudged items from the lists and close the ranks (trec_eval ``-J``).
    depth
        Cut the lists to this depth first; the ideal stays whole (trec_eval ``-M``).
    defaults
        Parameters for metrics asked for by label that leave them open, for example
        ``{"map": {"divide_by": "attainable"}}``; by any name of the metric.
    single_precision
        Make ranks from scores as 32-bit floats, which ties some of them (trec_eval 9).
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, where they are not called so.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, user and one column a metric, sorted by by… and user.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or a metric is not a finite number.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [8, 7, 9]})
    >>> rf.per_user(run, "precision@2", "rr", truth=truth)
    shape: (3, 3)
    ┌──────┬─────────────┬─────┐
    │ user ┆ precision@2 ┆ rr  │
    │ ---  ┆ ---         ┆ --- │
    │ i64  ┆ f64         ┆ f64 │
    ╞══════╪═════════════╪═════╡
    │ 1    ┆ 0.5         ┆ 0.5 │
    │ 2    ┆ 0.5         ┆ 1.0 │
    │ 3    ┆ 0.0         ┆ 0.0 │
    └──────┴─────────────┴─────┘
    """
    asked = ask_all(metrics, per_user=True, defaults=defaults)
    _check_options(users, undefined, judged_only, single_precision)
    street = enter_street(frame, truth, by, columns, single_precision=single_precision)
    keys = street.tables[0].keys
    check_names(asked, keys)
    plan = _plan(
        street,
        asked,
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        judged_only=judged_only,
        depth=depth,
    )
    result = guarded(plan.values, plan.flags, plan.explain)
    return leave(result.sort(keys), like=frame)


def evaluate(
    frame: FrameT,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    users: Users = "truth",
    undefined: float | None = None,
    relevant_at: float | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    defaults: Defaults | None = None,
    single_precision: bool = False,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Compute the mean of metrics over users.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run. A run with a score and no rank is ranked on the
        way, by ``with_rank``'s defaults.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"gmap"``, metric functions' expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression of your own on the vocabulary and the columns
        that ride along. It reduces the user's rows of grade > 0, retrieved or not, so ``pl.len()``
        counts these.
    truth
        The truth that judges the run.
    by
        Columns that split the run into separate lists, such as model, fold or day; one row each.
    users
        Whose mean: ``"truth"``, every user with an item of grade > 0 (one whom the run misses
        has 0); ``"judged"``, with any row in the truth; ``"both"``, with a row in the run and one
        in the truth; ``"run"``; or ``"all"``.
    undefined
        What stands where a metric (a number or a boolean) is undefined, for example for a user
        without a relevant item. By default null, which the mean leaves out.
    relevant_at
        The grade from which an item is relevant to the binary measures; > 0. By default every
        grade > 0 is. It never changes whose mean it is.
    judged_only
        Drop unjudged items from the lists and close the ranks (trec_eval ``-J``).
    depth
        Cut the lists to this depth first; the ideal stays whole (trec_eval ``-M``).
    defaults
        Parameters for metrics asked for by label that leave them open, for example
        ``{"map": {"divide_by": "attainable"}}``; by any name of the metric.
    single_precision
        Make ranks from scores as 32-bit floats, which ties some of them (trec_eval 9).
    **columns
        ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the columns that
        play these roles, where they are not called so.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, ``users`` (Int64, how many the policy selects) and one column a metric; one row, or
        one for each group, sorted. A group that the truth knows nothing of has 0 users and nulls.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or a metric is not a finite number.
    ValueError
        If a metric, a parameter or an option is unknown or out of range.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [8, 7, 9]})
    >>> rf.evaluate(run, "precision@2", "mrr", truth=truth)
    shape: (1, 3)
    ┌───────┬─────────────┬─────┐
    │ users ┆ precision@2 ┆ mrr │
    │ ---   ┆ ---         ┆ --- │
    │ i64   ┆ f64         ┆ f64 │
    ╞═══════╪═════════════╪═════╡
    │ 3     ┆ 0.333333    ┆ 0.5 │
    └───────┴─────────────┴─────┘
    """
    asked = ask_all(metrics, per_user=False, defaults=defaults)
    _check_options(users, undefined, judged_only, single_precision)
    street = enter_street(frame, truth, by, columns, single_precision=single_precision)
    groups = street.tables[0].by
    if "users" in groups:
        msg = "column 'users': evaluate counts users under this name: rename the column"
        raise RankingDataError(msg)
    check_names(asked, [*groups, "users"])
    if undefined is not None and undefined < 0 and not all(one.per_user for one in asked):
        msg = f"a geometric mean takes no value below 0, so undefined cannot be {undefined!r}"
        raise ValueError(msg)
    plan = _plan(
        street,
        asked,
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        judged_only=judged_only,
        depth=depth,
    )
    _check_numeric(plan.values, asked)
    count = pl.len().cast(pl.Int64).alias("users")
    means = [one.over_users(pl.col(one.name)).alias(one.name) for one in asked]
    if groups:
        every = pl.concat([street.run.select(groups), street.truth.select(groups)]).unique()
        result = every.join(plan.values.group_by(groups).agg(count, *means), on=groups, how="left")
        result = result.with_columns(pl.col("users").fill_null(0))
    else:
        result = plan.values.select(count, *means)

    def explain() -> None:
        plan.explain()
        _raise_infinite_mean(result, groups)

    checked = guarded(result, plan.flags, explain)
    return leave(checked.sort(groups) if groups else checked, like=frame)


class _Plan(NamedTuple):
    """The values of every user, what to watch while they are computed, and how to tell."""

    values: pl.LazyFrame
    flags: list[pl.LazyFrame]
    explain: Callable[[], None]


def _plan(
    street: Street,
    asked: Sequence[Asked],
    *,
    users: Users,
    undefined: float | None,
    relevant_at: float | None,
    judged_only: bool,
    depth: int | None,
) -> _Plan:
    """Walk the street: judged table → relevant rows → one row a user."""
    table = street.tables[0]
    keys = table.keys

    def reduce(some: Sequence[Asked], *watched: pl.Expr) -> pl.LazyFrame:
        reads = {name for one in some for name in one.expr.meta.root_names()}
        rows = vocabulary_rows(
            street, reads, relevant_at=relevant_at, judged_only=judged_only, depth=depth
        )
        _check_columns(rows, some)
        return rows.group_by(keys).agg(*(one.expr for one in some), *watched)

    # what reads the judged rows reduces them all, and leaves the rows of the others as they are;
    # what reads subtopics, where there are some, reduces a row for each of an item
    split = [one for one in asked if street.has_subtopics and reads_subtopics(one.expr)]
    items = [one for one in asked if one not in split]
    broad = [one for one in items if "judged" in one.expr.meta.root_names()]
    narrow = [one for one in items if one not in broad]
    lists = reduce(narrow, *watch(table.item))
    found = [lists.select(*keys, *(one.name for one in narrow))]
    suspect = pl.any_horizontal(suspicion(street.tables), *_infinite(found[0], keys))
    flags = [*table_flags(street), lists.select(suspect=suspect)]
    for some in filter(None, (broad, split)):
        found.append(reduce(some))
        infinite = _infinite(found[-1], keys)
        flags.append(found[-1].select(suspect=pl.any_horizontal(pl.lit(value=False), *infinite)))
    if any("retrieved" in one.expr.meta.root_names() for one in asked):
        flags.append(unique_flag(table))  # these count rows that no relevant row shows
    if judged_only:
        flags += [unique_flag(each) for each in street.tables]

    values, *others = found if users == "truth" else [_selected(street, users), *found]
    for other in others:
        values = values.join(other, on=keys, how="left")
    values = values.select(*keys, *(one.name for one in asked))
    if undefined is not None:
        schema = values.collect_schema()
        numbers = [one.name for one in asked if schema[one.name].is_numeric()]
        flags_of_users = [one.name for one in asked if schema[one.name] == pl.Boolean]
        values = values.with_columns(pl.col(flags_of_users).cast(pl.Float64))
        values = values.with_columns(pl.col(numbers + flags_of_users).fill_null(undefined))

    def explain() -> None:
        raise_first_broken(street.tables)
        positive = street.judged.filter(pl.col("relevance") > 0)
        for frame in found:
            _raise_not_finite(frame, positive, keys)

    return _Plan(values, flags, explain)


def _check_options(
    users: object, undefined: object, judged_only: object, single_precision: object
) -> None:
    check_flag("judged_only", judged_only)
    check_flag("single_precision", single_precision)
    if users not in get_args(Users):
        msg = f"users must be one of {', '.join(map(repr, get_args(Users)))}, not {users!r}"
        raise ValueError(msg)
    if undefined is not None and not (is_number(undefined) and isfinite(undefined)):
        msg = f"undefined must be None or a finite number, not {undefined!r}"
        raise ValueError(msg)


def _selected(street: Street, users: Users) -> pl.LazyFrame:
    """Give the users whose mean it is."""
    keys = street.tables[0].keys
    in_run, in_truth = street.run.select(keys).unique(), street.truth.select(keys).unique()
    if users == "judged":
        return in_truth
    if users == "run":
        return in_run
    if users == "both":
        return in_truth.join(in_run, on=keys, how="semi")
    return pl.concat([in_run, in_truth]).unique()


def _check_columns(rows: pl.LazyFrame, asked: Sequence[Asked]) -> None:
    """Check that the metrics read columns that are there."""
    names = rows.collect_schema().names()
    for one in asked:
        for name in one.expr.meta.root_names():
            if name not in names and not name.startswith("^"):
                has = ", ".join(map(repr, dict.fromkeys([*names, *VOCABULARY])))
                msg = f"metric {one.name!r} reads a column {name!r}; the rows have {has}"
                raise RankingDataError(msg)


def _check_numeric(values: pl.LazyFrame, asked: Sequence[Asked]) -> None:
    """Check that a mean can be taken."""
    schema = values.collect_schema()
    for one in asked:
        dtype = schema[one.name]
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Duration | pl.Null)):
            msg = f"metric {one.name!r} is {dtype} for each user, which has no mean: use per_user"
            raise ValueError(msg)


def _infinite(values: pl.LazyFrame, keys: Sequence[str]) -> list[pl.Expr]:
    """Tell of each metric whether its sum is NaN or infinite, and with it every mean."""
    schema = values.collect_schema()
    floats = [name for name, dtype in schema.items() if dtype.is_float() and name not in keys]
    return [(~pl.col(name).sum().is_finite()).alias(name) for name in floats]


def _raise_infinite_mean(result: pl.LazyFrame, groups: Sequence[str]) -> None:
    """Raise if finite values of users make a mean that is not."""
    for broken in _infinite(result, groups):
        name = broken.meta.output_name()
        if result.select(broken).collect().item():
            msg = f"metric {name!r}: its mean over users is not a finite number"
            raise RankingDataError(msg)


def _raise_not_finite(values: pl.LazyFrame, positive: pl.LazyFrame, keys: Sequence[str]) -> None:
    """Raise at the first metric that is NaN or infinite for a user."""
    for name, dtype in values.collect_schema().items():
        if name in keys or not dtype.is_float():
            continue
        first = values.filter(~pl.col(name).is_finite()).sort(keys).select(*keys, name).head(1)
        if not (row := first.collect()).is_empty():
            grades = positive.select(pl.col("relevance").unique().sort()).collect().to_series()
            msg = (
                f"metric {name!r}: it is not a finite number. Each grade present "
                f"({', '.join(map(str, grades.head(10)))}) needs a finite gain, a collection must "
                "hold the items of every user, and an expression of your own must be null where it "
                f"is undefined. Offending row: {shown(row)}"
            )
            raise RankingDataError(msg)
