"""For the reduction: the users that a policy selects, and the groups that they are in (frames)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import polars as pl

from rankframe._request import keywords, labels
from rankframe._request.keywords import Settings, Users
from rankframe._tables.judgment import Judged
from rankframe._vocabulary import scope_rows

_SYSTEMS, _NUMBER = f"{labels.INNER}systems", f"{labels.INNER}number"


def users_policy(settings: Settings, prepared: Judged) -> Users:
    """Return which users are averaged."""
    return settings.users or ("truth" if prepared.has_truth else "run")


def groups_of(prepared: Judged, names: Sequence[str]) -> pl.LazyFrame:
    """Return each group of the run or the truth once."""
    if prepared.groups is not None and {*names} <= {*prepared.tables.lacking}:
        return prepared.groups.select(names).unique()
    return pl.concat([prepared.run.select(names), prepared.truth.select(names)]).unique()


def system_of(by: Sequence[str]) -> str | None:
    """Name the column that identifies the systems, as ``compare`` does."""
    return keywords.MODEL if keywords.MODEL in by else by[0] if by else None


def are_known(system: str, prepared: Judged) -> bool:
    """Whether the systems are known apart from the rows of the users."""
    return prepared.groups is not None and system in prepared.tables.lacking


def _lists(prepared: Judged, settings: Settings) -> pl.LazyFrame:
    """Return each user of whose list something is left, in each group."""
    if not settings.cuts_lists:
        return prepared.run.select(prepared.keys).unique()
    return scope_rows.users_with_lists(prepared)


def _served(prepared: Judged, lists: pl.LazyFrame) -> pl.LazyFrame:
    """Return each user who has a list in every system, within the groups of the other columns."""
    keys, by = prepared.keys, prepared.tables.run.by
    system = system_of(by)
    if system is None:
        return lists
    groups = prepared.groups if are_known(system, prepared) else groups_of(prepared, by)
    assert groups is not None
    rest = [name for name in groups.collect_schema() if name != system]
    number = pl.col(system).n_unique().alias(_SYSTEMS)
    systems = groups.group_by(rest).agg(number) if rest else groups.select(number)
    own = [name for name in keys if name != system]
    counted = lists.group_by(own).agg(pl.len().alias(_NUMBER))
    on: dict[str, Any] = {"on": rest} if rest else {"how": "cross"}
    return counted.join(systems, **on).filter(pl.col(_NUMBER) == pl.col(_SYSTEMS)).select(own)


def selected(prepared: Judged, users: Users, settings: Settings) -> pl.LazyFrame:
    """Return the users who are averaged."""
    keys = prepared.keys
    in_run, in_truth = prepared.run.select(keys).unique(), prepared.truth.select(keys).unique()
    if users == "truth":
        return prepared.truth.filter(pl.col("relevance") > 0).select(keys).unique()
    if users == "judged":
        return in_truth
    if users == "run":
        return in_run
    if users == "both":
        return in_truth.join(in_run, on=keys, how="semi")
    if users == "served":
        served = _served(prepared, _lists(prepared, settings))
        return in_truth.join(served, on=served.collect_schema().names(), how="semi")
    return pl.concat([in_run, in_truth]).unique()
