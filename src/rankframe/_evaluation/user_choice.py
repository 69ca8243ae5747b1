"""For the reduction: the users that a policy selects, and the groups that they are in (frames)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import polars as pl

from rankframe import errors
from rankframe._request import labels
from rankframe._request.labels import RequestedMetric
from rankframe._tables import rank_order
from rankframe._tables.guards import Notice
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Policy
from rankframe.errors import option

#: Columns of ``by_rows``.
LISTED, ALONE, JUDGED, TOP = (
    f"{labels.PREFIX}{name}" for name in ("listed", "alone", "judged", "top")
)
_MOST_NAMES = 3  # of metrics, in a warning


def is_relevant(level: float | None, grade: str = "relevance") -> pl.Expr:
    """Whether a grade is relevant: at or above ``relevant_at``, and > 0."""
    return pl.col(grade) > 0 if level is None else pl.col(grade) >= level


def worst_of(metric: RequestedMetric) -> float | None:
    """Return the worst value of the range of a metric, if it has a direction and such an end.

    Equal grades have no correlation, so -1, the reverse of the right order, would be made up.
    """
    traits = metric.traits
    if traits.higher_is_better is None or traits.least < 0 < traits.greatest < math.inf:
        return None
    worst = traits.least if traits.higher_is_better else traits.greatest
    return worst if math.isfinite(worst) else None


def left_out(joined: Joined) -> str | None:
    """Say of a judged table how many users have no relevant item, and whether they count."""
    if not joined.tables.from_judged or joined.tables.users not in ("rows", "truth"):
        return None
    lacks = ~is_relevant(joined.tables.settings.relevant_at).fill_null(value=False)
    user, listed = pl.col(joined.keys[-1]), pl.col(LISTED).all()
    lacking = user.filter(lacks & pl.col(JUDGED)).n_unique()
    facts = by_rows(joined).select(listed, lacking=lacking, users=user.n_unique()).collect()
    listed_alone, number, users = facts.row(0)
    if not number:
        return None
    counts = listed_alone and joined.tables.settings.users is None
    what = "count with the worst value" if counts else "are left out"
    return f"{number:,} of {users:,} users have judged items, none relevant, and {what}."


def notice(joined: Joined, metrics: Sequence[RequestedMetric]) -> Notice:
    """Say whom the rows of a judged table count without a relevant item, or leave out."""
    user, (*by, _) = pl.col(joined.keys[-1]), joined.keys
    lacks = ~is_relevant(joined.tables.settings.relevant_at).fill_null(value=False)
    lost = lacks & pl.col(ALONE) & pl.col(JUDGED)
    facts = by_rows(joined).select(
        listed=pl.col(LISTED).all(),
        users=user.n_unique(),
        lacking=user.filter(lacks).n_unique(),
        lost=user.filter(lost).n_unique(),
        example=user.filter(lost).min(),
        unjudged=(lacks & ~pl.col(JUDGED)).any(),
    )
    undefined = joined.tables.settings.undefined
    values = {m.name: worst_of(m) if undefined is None else undefined for m in metrics}
    return Notice(facts, partial(_say, values=values, by=by))


def _say(
    facts: Mapping[str, Any], *, values: Mapping[str, float | None], by: Sequence[str]
) -> None:
    number = facts["lacking" if facts["listed"] else "lost"]
    if not number:
        return
    plural = "" if facts["users"] == 1 else "s"
    has = "has" if number == 1 else "have"
    what = (
        "no relevant item"
        if facts["listed"] and facts["unjudged"]
        else ("judged items, none relevant")
    )
    where = f", in a group of {', '.join(map(repr, by))}" if by else ""
    who = f"{number:,} of {facts['users']:,} user{plural} {has} {what}{where}"
    if not facts["listed"]:
        is_out = "is left out" if number == 1 else "are left out"
        errors.warn(
            f"{who}, and {is_out}, such as {facts['example']!r}, though all their judged items "
            f"are in the lists: {option('users', 'all')}, {option('undefined', 0.0)} counts each "
            f"as 0; {option('users', 'truth')} leaves them out without this warning"
        )
        return
    named: dict[float | None, list[str]] = {}
    for name, value in values.items():
        named.setdefault(value, []).append(repr(name))
    usual = max(named, key=lambda value: len(named[value]), default=None)
    counts = [_number(usual)]
    for value, names in named.items():
        if value != usual:
            more = ", …" if len(names) > _MOST_NAMES else ""
            counts.append(f"{_number(value)} in {', '.join(names[:_MOST_NAMES])}{more}")
    text = f"{who}: each counts as {', and as '.join(counts)}"
    errors.warn(f"{text}; {option('users', 'truth')} leaves them out")


def _number(value: float | None) -> str:
    return "null" if value is None else f"{value:g}"


def by_rows(joined: Joined) -> pl.LazyFrame:
    """Return each user of a judged table, with the highest grade as relevance.

    ``LISTED``: if no judged row of the whole table lacks a rank, the judgments were made from the
    lists; the user counts without a relevant item, too. ``ALONE``: no judged row of this user lacks
    one. ``JUDGED``: there is one.
    """
    rows = joined.rows_as_passed
    if joined.tables.truth is not None:  # a lazy judge: a full join would hold the run
        both = joined.rows("judged"), joined.placed
        rows = pl.concat(
            [
                part.select(*joined.keys, "rank", *name)
                for part, name in zip(both, (["relevance"], []), strict=True)
            ],
            how="diagonal",
        )
    judged = rows.drop_nulls("relevance").group_by(joined.keys)
    grades = judged.agg(
        pl.col("relevance").max(),
        pl.col("rank").is_null().any().alias(LISTED),
        pl.lit(value=True).alias(JUDGED),
    )
    users = rank_order.distinct(rows, joined.keys).join(
        grades, on=joined.keys, how="left", nulls_equal=True
    )
    users = users.with_columns(pl.col(LISTED, JUDGED).fill_null(value=False))
    totals = joined.tables.run.totals
    if totals is None:
        all_listed = ~pl.col(LISTED).any()
    elif totals.misses_none is None:
        msg = (
            "parts of a judged table: who counts depends on whether a judged row of any part lacks "
            "a rank: pass users='all', undefined=0.0 if the lists were judged, or users='truth' "
            "for users with a relevant item"
        )
        raise ValueError(msg)
    else:
        all_listed = pl.lit(totals.misses_none)
    return users.with_columns((~pl.col(LISTED)).alias(ALONE), all_listed.alias(LISTED))


def groups_of(joined: Joined, names: Sequence[str]) -> pl.LazyFrame:
    """Return each group of the run or the truth once."""
    groups, truth = joined.groups, joined.tables.truth
    if groups is None or truth is None:
        return _of_all_rows(joined, names)
    if not (shared := [name for name in names if name in truth.by]):
        return groups.select(names).unique()
    of_truth = truth.frame.select(pl.col(name).cast(joined.types[name]) for name in shared).unique()
    crossed = of_truth.join(groups, how="cross")
    return pl.concat([joined.run.select(names), crossed.select(names)]).unique()


def _of_all_rows(joined: Joined, names: Sequence[str]) -> pl.LazyFrame:
    """Return what the rows of both tables have in these columns, or those of a judged table."""
    if joined.tables.truth is None:  # a row may have its user alone
        return joined.rows("subtopic").select(names).unique()
    rows = pl.concat([joined.run.select(names), joined.truth.select(names)])
    return rank_order.distinct(rows, names)


def selected(joined: Joined, users: Policy) -> pl.LazyFrame:
    """Return the users who are averaged.

    Those of the truth or of the run come with the first reduction (``reduction._has_all_users``).
    """
    keys, relevant = joined.keys, is_relevant(joined.tables.settings.relevant_at)
    if users == "rows":
        return by_rows(joined).filter(pl.col(LISTED) | relevant).select(keys)
    in_run, in_truth = (rank_order.distinct(rows, keys) for rows in (joined.run, joined.truth))
    if users == "truth":
        return rank_order.distinct(joined.truth.filter(relevant), keys)
    if users == "judged":
        return in_truth
    if users == "run":
        return in_run
    if users == "both":
        return in_truth.join(in_run, on=keys, how="semi")
    return _of_all_rows(joined, keys)
