"""The verbs: one value a user, and the mean over users.

``relevant rows → expressions → numbers``: the second half of the street.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack, get_args

import polars as pl

from rankframe._frames import Frame, FrameT, leave
from rankframe._order import SHARES_RANK
from rankframe._sums import order_free_mean
from rankframe.checks import (
    Columns,
    Whole,
    check_flag,
    guarded,
    lists_flag,
    raise_first_broken,
    shares_rank,
    shown,
    suspicion,
    watch,
)
from rankframe.errors import RankingDataError
from rankframe.labels import (
    INNER,
    Asked,
    Defaults,
    Metric,
    ask_all,
    check_names,
    extremes_of,
    in_ties,
    is_number,
)
from rankframe.table import (
    Street,
    enter_street,
    segments_of_truth,
    table_flags,
)
from rankframe.vocabulary import (
    VOCABULARY,
    mixes_subtopics,
    reads_irrelevant,
    reads_rank_order,
    reads_subtopics,
    top_grade,
    vocabulary_rows,
)

Users: TypeAlias = Literal["truth", "judged", "both", "run", "all"]


class Options(Columns, total=False):
    """The keywords of ``per_user`` that verbs built on it hand through."""

    users: Users
    undefined: float | None
    relevant_at: float | None
    judged_only: bool
    depth: int | None
    defaults: Defaults | None
    single_precision: bool


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
    bounds: bool = False,
    scenarios: bool = False,
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
    bounds
        Add ``<metric>_low`` and ``<metric>_high``: the least and the greatest value that judgments
        of the unjudged items of the list (and of those of negative grade) can give, whichever of
        them are judged, with any grade up to the highest of the truth; null where the metric is.
        With ``depth``, what is below it is not of the list.
        Precision, recall, F, hit, RR, DCG, RBP, ERR and counts have bounds; a metric without a
        proven form raises.
    scenarios
        Add ``<metric>_if_none`` and ``<metric>_if_all``, for any metric but those of diversity: its
        value if all of these items are judged not relevant, and if all have the highest grade of
        the truth; null where one of the two is undefined. Other judgments may give values outside.
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
        by…, user and one column a metric (with ``bounds`` three), sorted by by… and user.

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
    plan = plan_values(
        frame,
        metrics,
        per_user=True,
        truth=truth,
        by=by,
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        judged_only=judged_only,
        depth=depth,
        bounds=bounds,
        scenarios=scenarios,
        defaults=defaults,
        single_precision=single_precision,
        **columns,
    )
    return leave(plan.guarded().sort(plan.keys), like=frame)


def evaluate(
    frame: FrameT,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    users: Users = "truth",
    undefined: float | None = None,
    relevant_at: float | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    bounds: bool = False,
    scenarios: bool = False,
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
    total
        Add the row of all users, whose column ``by`` is null. Of several columns the first stays:
        ``by=["model", "country"]`` adds a row for each model, whose country is null.
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
    bounds
        Add ``<metric>_low`` and ``<metric>_high``: the least and the greatest value that judgments
        of the unjudged items of the list (and of those of negative grade) can give, whichever of
        them are judged, with any grade up to the highest of the truth; null where the metric is.
        With ``depth``, what is below it is not of the list.
        Precision, recall, F, hit, RR, DCG, RBP, ERR and counts have bounds; a metric without a
        proven form raises.
    scenarios
        Add ``<metric>_if_none`` and ``<metric>_if_all``, for any metric but those of diversity: its
        value if all of these items are judged not relevant, and if all have the highest grade of
        the truth; null where one of the two is undefined. Other judgments may give values outside.
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
        by…, ``users`` (Int64, how many the policy selects) and one column a metric (with ``bounds``
        three); one row, or one for each group, sorted, totals last. A group that the truth knows
        nothing of has 0 users and nulls.

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
    plan = plan_means(
        frame,
        metrics,
        truth=truth,
        by=by,
        total=total,
        users=users,
        undefined=undefined,
        relevant_at=relevant_at,
        judged_only=judged_only,
        depth=depth,
        bounds=bounds,
        scenarios=scenarios,
        defaults=defaults,
        single_precision=single_precision,
        **columns,
    )
    types = plan.values.collect_schema()
    means = [
        one.over_users(
            pl.col(one.name), order_free_mean if types[one.name] == pl.Float64 else pl.Expr.mean
        ).alias(one.name)
        for one in plan.asked
    ]
    result = over_users(plan, means, plan.by)
    if total:
        result = pl.concat([result, over_users(plan, means, total_by(plan.by))], how="diagonal")

    def explain() -> None:
        plan.explain()
        raise_infinite_mean(result, plan.by)

    checked = guarded(result, plan.flags, explain)
    return leave(checked.sort(plan.by, nulls_last=True) if plan.by else checked, like=frame)


# ------------------------------------------------------------------ plans


class Plan(NamedTuple):
    """The values of every user, what to watch while they are computed, and how to tell."""

    street: Street
    asked: list[Asked]
    values: pl.LazyFrame
    flags: list[pl.LazyFrame]
    explain: Callable[[], None]

    @property
    def by(self) -> list[str]:
        """The columns that split the run into lists."""
        return self.street.tables[0].by

    @property
    def keys(self) -> list[str]:
        """The columns of by and the user."""
        return self.street.tables[0].keys

    def guarded(self) -> pl.LazyFrame:
        """Give the values, checked when the plan runs."""
        return guarded(self.values, self.flags, self.explain)


def plan_values(
    frame: Frame,
    metrics: Sequence[Metric],
    *,
    per_user: bool,
    truth: Frame | None,
    by: str | Sequence[str],
    whole: Whole | None = None,
    users: Users = "truth",
    undefined: float | None = None,
    relevant_at: float | None = None,
    judged_only: bool = False,
    depth: int | None = None,
    bounds: bool = False,
    scenarios: bool = False,
    defaults: Defaults | None = None,
    single_precision: bool = False,
    **columns: Unpack[Columns],
) -> Plan:
    """Plan the values of every user; ``per_user=False`` takes geometric means, too."""
    asked = ask_all(metrics, per_user=per_user, defaults=defaults)
    flags = {
        "judged_only": judged_only,
        "bounds": bounds,
        "scenarios": scenarios,
        "single_precision": single_precision,
    }
    _check_options(users, undefined, flags)
    street = enter_street(
        frame,
        truth,
        by,
        columns,
        reads={name for one in asked for name in one.expr.meta.root_names()},
        single_precision=single_precision,
        whole=whole,
    )
    _check_users(users, segments_of_truth(frame, street))
    if bounds and judged_only:
        msg = "bounds=True: judged_only=True drops the unjudged items, so ask for one of the two"
        raise ValueError(msg)
    if bounds and undefined:
        msg = (
            f"bounds=True: no bounds are proven with undefined={undefined!r}; it must be None or 0"
        )
        raise ValueError(msg)
    if (bounds or scenarios) and street.has_subtopics:
        _check_no_subtopics(asked)
    extremes = [_worlds_of(one, tied=street.tied) for one in asked] if bounds else []
    if street.tied:
        asked = in_ties(asked, metrics, defaults=defaults)
    options: _Options = {
        "users": users,
        "undefined": undefined,
        "relevant_at": relevant_at,
        "depth": depth,
    }
    plan = _plan(street, asked, judged_only=judged_only, **options)
    if not (bounds or scenarios):
        return plan
    return _with_worlds(plan, extremes, scenarios=scenarios, **options)


def plan_means(
    frame: Frame,
    metrics: Sequence[Metric],
    *,
    truth: Frame | None,
    by: str | Sequence[str],
    total: bool = False,
    bounds: bool = False,
    scenarios: bool = False,
    whole: Whole | None = None,
    **options: Unpack[Options],
) -> Plan:
    """Plan the values of every user, of which means can be taken."""
    plan = plan_values(
        frame,
        metrics,
        per_user=False,
        truth=truth,
        by=by,
        bounds=bounds,
        scenarios=scenarios,
        whole=whole,
        **options,
    )
    check_flag("total", total)
    if total and not plan.by:
        msg = "total=True adds a row to the groups of by=: name their columns"
        raise ValueError(msg)
    if "users" in plan.by:
        msg = "column 'users': evaluate counts users under this name: rename the column"
        raise RankingDataError(msg)
    check_names(plan.asked, [*plan.by, "users"])
    undefined = options.get("undefined")
    if undefined is not None and undefined < 0 and not all(one.per_user for one in plan.asked):
        msg = f"a geometric mean takes no value below 0, so undefined cannot be {undefined!r}"
        raise ValueError(msg)
    _check_numeric(plan.values, plan.asked)
    return plan


def over_users(plan: Plan, aggregates: Sequence[pl.Expr], by: Sequence[str]) -> pl.LazyFrame:
    """Reduce the values of users to one row a group, or to one."""
    aggregates = [pl.len().cast(pl.Int64).alias("users"), *aggregates]
    if not by:
        return plan.values.select(aggregates)
    reduced = plan.values.group_by(by).agg(aggregates)
    joined = _groups(plan.street, by).join(reduced, on=by, how="left")
    return joined.with_columns(pl.col("users").fill_null(0))


def total_by(by: Sequence[str]) -> Sequence[str]:
    """Name the columns of ``by`` that stay in the row of all users."""
    return by[:1] if len(by) > 1 else []


class UserValues(NamedTuple):
    """One row a user; a group without users has one row of nulls."""

    asked: list[Asked]
    by: list[str]
    user: str
    rows: pl.LazyFrame


def user_values(
    frame: Frame,
    metrics: Sequence[Metric],
    *,
    per_user: bool = True,
    truth: Frame | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[Options],
) -> UserValues:
    """Give what statistics are made of; ``per_user=False`` takes geometric means, too."""
    if alien := {"bounds", "scenarios"} & {*options}:
        msg = f"unknown argument {min(alien)!r}; per_user and evaluate take it"
        raise TypeError(msg)
    return in_groups(plan_values(frame, metrics, per_user=per_user, truth=truth, by=by, **options))


def in_groups(plan: Plan) -> UserValues:
    """Give the values of all users, and each group a row."""
    _check_numeric(plan.values, plan.asked)
    rows = plan.values
    if plan.by:
        rows = _groups(plan.street, plan.by).join(rows, on=plan.by, how="left")
    *_, user = plan.keys
    return UserValues(plan.asked, plan.by, user, guarded(rows, plan.flags, plan.explain))


class _Options(TypedDict):
    """What a plan is made for, whether or not unjudged items stay in the lists."""

    users: Users
    undefined: float | None
    relevant_at: float | None
    depth: int | None


def _check_no_subtopics(asked: Sequence[Asked]) -> None:
    for one in asked:
        if reads_subtopics(one.expr):
            msg = (
                f"metric {one.name!r}: an unjudged item may be of any subtopics, so it has no "
                "bounds and no scenarios"
            )
            raise ValueError(msg)


class _World(NamedTuple):
    """Which of the unjudged items of the lists are relevant: those down to k, those below."""

    inside: bool
    below: bool
    k: int | None = None


_NONE, _ALL = _World(inside=False, below=False), _World(inside=True, below=True)


def _worlds_of(asked: Asked, *, tied: bool) -> tuple[_World, _World]:
    """Name the judgments that make a metric least and greatest, in either order."""
    kind, k = extremes_of(asked.expr)
    if kind == "none or all":
        return _NONE, _ALL
    if kind == "above or below k" and not tied:
        inside, below = _World(inside=True, below=False, k=k), _World(inside=False, below=True, k=k)
        return (_NONE, _ALL) if k is None else (below, inside)
    under = " under ties" if kind and tied else ""
    msg = (
        f"metric {asked.name!r}: no bounds are proven for it{under}; scenarios=True gives its "
        "values if none and if all of the unjudged items are relevant"
    )
    raise ValueError(msg)


def _with_worlds(
    plan: Plan,
    extremes: Sequence[tuple[_World, _World]],
    *,
    scenarios: bool,
    **options: Unpack[_Options],
) -> Plan:
    """Add what metrics are under other judgments of the unjudged items."""
    keys, street = plan.keys, plan.street
    columns: list[pl.Expr] = []
    asked: list[Asked] = []
    read: dict[_World, list[Asked]] = {}
    for place, one in enumerate(plan.asked):
        made = {one.name: pl.col(one.name)}
        if extremes:
            pair = [_in_world(world, one) for world in extremes[place]]
            defined = pl.when(pl.col(one.name).is_not_null())
            made[f"{one.name}_low"] = defined.then(pl.min_horizontal(one.name, *pair))
            made[f"{one.name}_high"] = defined.then(pl.max_horizontal(one.name, *pair))
        if scenarios:
            pair = [_in_world(world, one) for world in (_NONE, _ALL)]
            # null unless both are defined: their means must be over the same users
            both = pl.when(*(pl.col(name).is_not_null() for name in pair))
            made[f"{one.name}_if_none"], made[f"{one.name}_if_all"] = map(both.then, pair)
        worlds = (*(extremes[place] if extremes else ()), *((_NONE, _ALL) * scenarios))
        for world in dict.fromkeys(worlds):
            read.setdefault(world, []).append(one)
        columns += [value.alias(name) for name, value in made.items()]
        asked += [one._replace(name=name) for name in made]
    check_names(asked, keys)
    values, others = plan.values, list[Plan]()
    for world, some in read.items():
        other = _plan(
            _judged_in(world, street, options["depth"]), some, judged_only=False, **options
        )
        named = {one.name: _in_world(world, one) for one in some}
        values = values.join(other.values.rename(named), on=keys, how="left")
        others.append(other)

    def explain() -> None:
        for each in (plan, *others):
            each.explain()

    flags = [flag for each in (plan, *others) for flag in each.flags]
    return Plan(street, asked, values.select(*keys, *columns), flags, explain)


def _in_world(world: _World, asked: Asked) -> str:
    """Name the column of a metric in another world."""
    return f"{INNER}{world.inside}_{world.below}_{world.k}_{asked.name}"


def _judged_in(world: _World, street: Street, depth: int | None) -> Street:
    """Give the unjudged items of the lists the highest grade, or 0."""
    grade, rank = pl.col("relevance"), pl.col("rank")
    listed = rank.is_not_null() if depth is None else (rank <= depth)
    unjudged = listed & ~(grade >= 0).fill_null(value=False)
    inside = pl.lit(value=True) if world.k is None else rank <= world.k
    top = top_grade(street)
    given = pl.when(inside).then(top if world.inside else 0).otherwise(top if world.below else 0)
    filled = pl.when(unjudged).then(given).otherwise(grade).alias("relevance")
    judged = street.judged.with_columns(filled)
    if not street.has_subtopics:
        return street._replace(judged=judged, items=judged)
    return street._replace(judged=judged, items=street.items.with_columns(filled))


def _plan(
    street: Street, asked: list[Asked], *, judged_only: bool, **options: Unpack[_Options]
) -> Plan:
    """Walk the street: judged table → relevant rows → one row a user."""
    table, depth = street.tables[0], options["depth"]
    keys = table.keys
    check_names(asked, keys)

    def reduce(some: Sequence[Asked], *watched: pl.Expr) -> pl.LazyFrame:
        reads = {name for one in some for name in one.expr.meta.root_names()}
        line = options["relevant_at"]
        rows = vocabulary_rows(
            street, reads, relevant_at=line, judged_only=judged_only, depth=depth
        )
        _check_columns(rows, some, tied=street.tied)
        return rows.group_by(keys).agg(*(one.expr for one in some), *watched)

    # what reads the judged rows reduces them all, and leaves the rows of the others as they are;
    # what reads subtopics, where there are some, reduces a row for each of an item
    split = [one for one in asked if street.has_subtopics and reads_subtopics(one.expr)]
    for one in split:
        if mixes_subtopics(one.expr):
            msg = f"metric {one.name!r}: it mixes items and subtopics of items: ask for them apart"
            raise ValueError(msg)
    items = [one for one in asked if one not in split]
    broad = [one for one in items if "judged" in one.expr.meta.root_names()]
    narrow = [one for one in items if one not in broad]
    position = pl.col("block" if street.tied else "rank")
    shared = shares_rank(tied=street.tied)
    if not street.tied and any(reads_rank_order(one.expr) for one in narrow):
        # rows that are in order anyway: to count distinct ranks takes 1 M users × 10 a tenth longer
        shared = pl.col(SHARES_RANK).any()
    lists = reduce(narrow, *watch(table.item, hit=position, shared=shared))
    found = [lists.select(*keys, *(one.name for one in narrow))]
    suspect = pl.any_horizontal(suspicion(street.tables), *_infinite(found[0], keys))
    flags = [*table_flags(street), lists.select(suspect=suspect)]
    for some in filter(None, (broad, split)):
        found.append(reduce(some))
        infinite = _infinite(found[-1], keys)
        flags.append(found[-1].select(suspect=pl.any_horizontal(pl.lit(value=False), *infinite)))
    reads = {name for one in asked for name in one.expr.meta.root_names()}
    if judged_only or reads_irrelevant(reads):
        flags += [lists_flag(each) for each in street.tables]
    elif "retrieved" in reads:
        flags.append(lists_flag(table))  # these count rows that no relevant row shows
    cut = _cut_blocks(street, depth)
    if cut is not None:
        flags.append(cut.select(suspect=pl.len() > 0))

    users, undefined = options["users"], options["undefined"]
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
        if cut is not None:
            _raise_cut(cut, depth)
        positive = street.judged.filter(pl.col("relevance") > 0)
        for frame in found:
            _raise_not_finite(frame, positive, keys)

    return Plan(street, asked, values, flags, explain)


def _cut_blocks(street: Street, depth: int | None) -> pl.LazyFrame | None:
    """Give the items whose block of ties a cut at ``depth`` would tear."""
    if depth is None or not street.tied:
        return None
    last = pl.col("rank") + pl.col("tied") - 1
    torn = street.run.filter((pl.col("rank") <= depth) & (last > depth))
    return torn.select(*street.tables[0].keys, street.tables[0].item, "rank", "tied")


def _raise_cut(torn: pl.LazyFrame, depth: int | None) -> None:
    if not (row := torn.head(1).collect()).is_empty():
        msg = (
            f"column 'tied': depth={depth} cuts through a block of ties; ask for a metric "
            f"@{depth}, or rank with ties='item'. Offending row: {shown(row)}"
        )
        raise RankingDataError(msg)


def _groups(street: Street, names: Sequence[str]) -> pl.LazyFrame:
    """Give each group of the run or the truth once."""
    return pl.concat([street.run.select(names), street.truth.select(names)]).unique()


def _check_options(users: object, undefined: object, flags: Mapping[str, object]) -> None:
    for name, flag in flags.items():
        check_flag(name, flag)
    if users not in get_args(Users):
        msg = f"users must be one of {', '.join(map(repr, get_args(Users)))}, not {users!r}"
        raise ValueError(msg)
    if undefined is not None and not (is_number(undefined) and isfinite(undefined)):
        msg = f"undefined must be None or a finite number, not {undefined!r}"
        raise ValueError(msg)


def _check_users(users: Users, segments: Sequence[str]) -> None:
    """Check that every user whose mean it is can be in a segment."""
    if segments and users in ("run", "all"):
        msg = (
            f"users={users!r} takes in users whom the truth does not know, and the "
            f"column {segments[0]!r} of by= is in the truth alone: join it to the run"
        )
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


def _check_columns(rows: pl.LazyFrame, asked: Sequence[Asked], *, tied: bool) -> None:
    """Check that the metrics read columns that are there."""
    names = rows.collect_schema().names()
    for one in asked:
        for name in one.expr.meta.root_names():
            if tied and name not in names and name.partition("(")[0] in VOCABULARY:
                msg = (
                    f"metric {one.name!r} has no exact expectation under ties: it reads {name!r}, "
                    "which an item in a block of ties (column 'tied') does not have. Rank with "
                    "ties='item', or write a metric on 'block', 'tied' and 'hits_above'"
                )
                raise ValueError(msg)
            if name not in names and not name.startswith("^"):
                told = dict.fromkeys([*names, *VOCABULARY])
                has = ", ".join(repr(column) for column in told if column != SHARES_RANK)
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


def raise_infinite_mean(result: pl.LazyFrame, groups: Sequence[str]) -> None:
    """Raise if finite values of users make a mean that is not."""
    found = result.select(_infinite(result, groups)).collect()
    for name in found.columns:
        if found[name].item():
            msg = f"metric {name!r}: its mean over users is not a finite number"
            raise RankingDataError(msg)


def _raise_not_finite(values: pl.LazyFrame, positive: pl.LazyFrame, keys: Sequence[str]) -> None:
    """Raise at the first metric that is NaN or infinite for a user."""
    schema = values.collect_schema()
    floats = [name for name, dtype in schema.items() if dtype.is_float() and name not in keys]
    found = values.select((~pl.col(name).is_finite()).any() for name in floats).collect()
    for name in floats:
        if found[name].item():
            infinite = values.filter(~pl.col(name).is_finite())
            row = infinite.sort(keys).select(*keys, name).head(1).collect()
            grades = positive.select(pl.col("relevance").unique().sort()).collect().to_series()
            msg = (
                f"metric {name!r}: it is not a finite number. Each grade present "
                f"({', '.join(map(str, grades.head(10)))}) needs a finite gain "
                "(a mapping names each: gain={1: 1, 2: 3}), and none may be above max_grade; "
                "a collection must hold the items of every user, and an expression of your own "
                "must be null where it is undefined. "
                f"Offending row: {shown(row)}"
            )
            raise RankingDataError(msg)
