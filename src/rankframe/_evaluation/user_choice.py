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


def users_policy(settings: Settings, judged: Judged) -> Users:
    """Return which users are averaged."""
    return settings.users or ("truth" if judged.has_truth else "run")


def groups_of(judged: Judged, names: Sequence[str]) -> pl.LazyFrame:
    """Return each group of the run or the truth once."""
    if judged.groups is not None and {*names} <= {*judged.tables.lacking}:
        return judged.groups.select(names).unique()
    return _of_all_rows(judged, names)


def _of_all_rows(judged: Judged, names: Sequence[str]) -> pl.LazyFrame:
    """Return what the rows of both tables have in these columns, or those of a judged table."""
    if judged.tables.truth is None:  # a row may have its user alone
        return judged.judged.select(names).unique()
    return pl.concat([judged.run.select(names), judged.truth.select(names)]).unique()


def system_of(by: Sequence[str]) -> str | None:
    """Name the column that identifies the systems, as ``compare`` does."""
    return keywords.MODEL if keywords.MODEL in by else by[0] if by else None


def _served(judged: Judged, lists: pl.LazyFrame) -> pl.LazyFrame:
    """Return each user who has a list in every system, within the groups of the other columns."""
    keys, by = judged.keys, judged.tables.run.by
    system = system_of(by)
    if system is None:
        return lists
    groups = judged.groups if system in judged.tables.lacking else groups_of(judged, by)
    assert groups is not None
    rest = [name for name in groups.collect_schema() if name != system]
    number = pl.col(system).n_unique().alias(_SYSTEMS)
    systems = groups.group_by(rest).agg(number) if rest else groups.select(number)
    own = [name for name in keys if name != system]
    counted = lists.group_by(own).agg(pl.len().alias(_NUMBER))
    on: dict[str, Any] = {"on": rest} if rest else {"how": "cross"}
    return counted.join(systems, **on).filter(pl.col(_NUMBER) == pl.col(_SYSTEMS)).select(own)


def selected(judged: Judged, users: Users) -> pl.LazyFrame:
    """Return the users who are averaged.

    Those of the truth or of the run come with the first reduction (``reduction._has_all_users``).
    """
    keys = judged.keys
    in_run, in_truth = judged.run.select(keys).unique(), judged.truth.select(keys).unique()
    if users == "truth":
        return judged.truth.filter(pl.col("relevance") > 0).select(keys).unique()
    if users == "judged":
        return in_truth
    if users == "run":
        return in_run
    if users == "both":
        return in_truth.join(in_run, on=keys, how="semi")
    if users == "served":
        cut = judged.settings.cuts_lists  # something is left of the list of each user
        served = _served(judged, scope_rows.users_with_lists(judged) if cut else in_run)
        return in_truth.join(served, on=served.collect_schema().names(), how="semi")
    return _of_all_rows(judged, keys)
