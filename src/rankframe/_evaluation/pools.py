"""The pairs of user and item that several systems retrieved, and which of them to judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import polars as pl

from rankframe._request import gain_functions, keywords, labels
from rankframe._request.keywords import Columns, Duplicates
from rankframe._request.question import Totals
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import (
    adapters,
    guards,
    judgment,
    rank_order,
    readers,
    repeated_items,
    rules,
    run_dicts,
)
from rankframe._tables.table import Table

_SYSTEMS, _PLACE, _JUDGED, _SIZE, _DRAW, _ORDER = (
    f"{labels.PREFIX}{name}" for name in ("systems", "place", "judged", "size", "draw", "order")
)


@adapters.takes_any_frame
def to_judge(
    systems: Runs[FrameT],
    /,
    k: int = 10,
    *,
    budget: int,
    truth: Truth | None = None,
    random: float = 0.5,
    seed: int = 0,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Return the pairs of user and item to judge next: whole users at random, and pairs by weight.

    Parameters
    ----------
    systems
        A dict of runs by name, as ``runs.stack`` takes it; a run (user, item, rank or score) with
        the column that names the systems, or of one system; or a judged table.
    k
        The depth of the lists to judge.
    budget
        The number of rows to return, or fewer if no more can be chosen. Users drawn at random come
        whole, so with ``random`` near 1 there may be a few more.
    truth
        What was judged before, by the same judge: user, item and, unless it is 1 in every row,
        relevance. Or a dict, as ``from_grades`` takes it.
    random
        The share of the budget for users drawn at random, from 0 to 1. Each of them comes with all
        items down to k of any system. Their number is fixed before the draw: how many users of the
        mean number of items fit into the share, so all users are equally likely, those with many
        items, too. The draw may need more rows than its share, or fewer: chosen pairs are the rest
        of the budget. With 1, no pair is chosen, so a part of the budget may be left.
    seed
        The seed of the draw, ≥ 0. With the same version of Polars, users are drawn in the same
        order for any order of the rows, so a larger budget adds users to those of a smaller one.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per pair, the one to judge first on top: user, item, ``drawn`` (String) and
        ``weight`` (Float64). First come the rows ``"random"``, user by user in the order of the
        draw, also pairs that were judged before. Then come the rows ``"chosen"``, unjudged pairs of
        other users with a weight > 0, the greatest weight first. Equal weights are in the order of
        the ids.

        ``weight`` is how much a grade of 1 moves the verdict: the mean difference of d between two
        systems, over all pairs of them, where d = 1 / log2(rank + 1) down to rank k, else 0, is
        what the item adds to DCG@k. It is 0 if all have the item at the same rank. For a single
        system, it is d.

    Raises
    ------
    RankingDataError
        If the run is empty, or rows break a rule (see ``check``).

    Notes
    -----
    Only the users drawn at random represent all users with a list: keep them with
    ``human.filter(pl.col("drawn") == "random")`` before they are ``human=``, and pass
    ``users="both"`` where users have no list. Chosen labels extend the truth where it matters most,
    and are not a sample. Users who are judged down to k are not drawn again, so draw before you
    choose: a user whose pairs were all chosen is missing from later draws.

    Examples
    --------
    >>> runs = {"old": {"q": ["a", "b", "c"]}, "new": {"q": ["d", "b", "a"]}}
    >>> rf.runs.to_judge(runs, 3, truth={"q": {"a": 1}}, budget=4, random=0)
    shape: (2, 4)
    ┌──────┬──────┬────────┬────────┐
    │ user ┆ item ┆ drawn  ┆ weight │
    │ ---  ┆ ---  ┆ ---    ┆ ---    │
    │ str  ┆ str  ┆ str    ┆ f64    │
    ╞══════╪══════╪════════╪════════╡
    │ q    ┆ d    ┆ chosen ┆ 1.0    │
    │ q    ┆ c    ┆ chosen ┆ 0.5    │
    └──────┴──────┴────────┴────────┘

    Both have b at rank 2, so it is not chosen. A user drawn at random comes with all items:

    >>> pairs = rf.runs.to_judge(runs, 3, budget=8)
    >>> pairs.select("item", "drawn").rows()
    [('d', 'random'), ('a', 'random'), ('c', 'random'), ('b', 'random')]

    With the grades of a person, the rows are a truth, and extend another one:

    >>> human = pairs.with_columns(relevance=pl.Series([1, 0, 2, 0]))
    """
    k, budget = keywords.whole_number("k", k), keywords.whole_number("budget", budget)
    seed = keywords.whole_number("seed", seed, least=0)
    if not (keywords.is_number(random) and 0 <= random <= 1):
        msg = f"random must be a number from 0 to 1, the share of the budget, not {random!r}"
        raise ValueError(msg)
    frame, groups, columns = run_dicts.as_frame(systems, (), columns, duplicates=duplicates)
    run, *truths = readers.read_run_and_truth(
        frame, truth, groups, columns, reads=(), run_alone=True, any_name=True
    )
    if run.item == readers.ROW_NUMBER:
        raise readers.without_items(what="to_judge")
    rules.raise_if_tied(run, " to judge")
    rules.raise_if_taken("to_judge", ("drawn", "weight"), (run.user, run.item))
    # what was judged before may be of other users, and may have nothing relevant yet
    judged = [replace(table, totals=Totals(None, None)) for table in truths]
    tables = [repeated_items.once(run, duplicates), *judged]
    share = int(budget * random + 1e-9)  # 100 * 0.29 is below 29
    pairs = _in_order_of_draw(_pairs(tables, k), tables[0], share, seed)
    is_drawn = pl.col(_ORDER).is_not_null()
    order = [pl.col(_ORDER), -pl.col("weight").round(12)]  # equal weights differ in the last bit
    order += [rank_order.as_comparable(name, run.schema[name]) for name in (run.user, run.item)]
    chosen = pairs.filter(~is_drawn, ~pl.col(_JUDGED), pl.col("weight") > 0)
    chosen = chosen.sort(order, nulls_last=True).head(budget if random < 1 else 0)
    flags = [flag(table) for flag in (guards.table_flag, guards.lists_flag) for table in tables]
    flags += [guards.table_flag(table) for table in truths if table.ungraded is not None]
    result = guards.guarded(
        pl.concat([pairs.filter(is_drawn), chosen]), flags, partial(_raise_broken, tables)
    ).sort(order, nulls_last=True)
    result = result.filter(is_drawn | (pl.int_range(pl.len()) < budget))
    drawn = pl.when(is_drawn).then(pl.lit("random")).otherwise(pl.lit("chosen"))
    result = result.select(run.user, run.item, drawn.alias("drawn"), "weight")
    return adapters.to_caller_type(result, like=frame, beside=[truth])


def _pairs(tables: Sequence[Table], k: int) -> pl.LazyFrame:
    """Return each pair down to k of any system once, its weight, and whether it is judged."""
    run, *truth = tables
    pair = [run.user, run.item]
    types = [pl.col(n).cast(t) for n, t in readers.common_types(run, truth).items() if n in pair]
    rows = judgment.normalize_columns(run)
    judged = judgment.normalize_columns(truth[0]) if truth else rows
    has_grades = bool(truth) or run.relevance is not None
    is_judged = pl.col("relevance") >= 0 if has_grades else pl.lit(value=False)
    judged = judged.filter(is_judged).with_columns(types).select(pair).unique()
    number = pl.lit(1) if run.model is None else pl.col(run.model).n_unique()
    # one system is compared with an empty list
    number = number.cast(pl.Int64).clip(lower_bound=2).alias(_SYSTEMS)
    rows = rows.filter(pl.col("rank").is_not_null()).with_columns(types)
    rows = rows.join(rows.select(number), how="cross").filter(pl.col("rank") <= k)
    # Σ |d − d'| over pairs of systems is Σ d·(2·place − m − 1), d ascending from the zeros of
    # systems without the item; a sort of all rows takes a seventh of the time of one per pair
    rows = rows.sort(*pair, "rank", descending=[False, False, True])
    row = pl.int_range(pl.len(), dtype=pl.Int64)
    first = pl.any_horizontal(pl.col(name).ne_missing(pl.col(name).shift(1)) for name in pair)
    rows = rows.with_columns((row - pl.when(first).then(row).forward_fill()).alias(_PLACE))
    gain, every = gain_functions.discount(pl.col("rank")), pl.col(_SYSTEMS).first()
    size = pl.len().cast(pl.Int64)
    summed = 2 * (gain * pl.col(_PLACE)).sum() + (every - 2 * size + 1) * gain.sum()
    is_same = (size == every) & (pl.col("rank").min() == pl.col("rank").max())
    weight = pl.when(is_same).then(0.0).otherwise(summed / (every * (every - 1) / 2))
    pairs = rows.group_by(pair).agg(weight.alias("weight"))
    marked = judged.with_columns(pl.lit(value=True).alias(_JUDGED))
    return pairs.join(marked, on=pair, how="left").with_columns(
        pl.col(_JUDGED).fill_null(value=False)
    )


def _in_order_of_draw(pairs: pl.LazyFrame, run: Table, share: int, seed: int) -> pl.LazyFrame:
    """Number the users drawn, as many as fit on average into a share of the budget; else null."""
    user = rank_order.as_comparable(run.user, run.schema[run.user])
    size = pl.len().cast(pl.Int64).alias(_SIZE)
    users = pairs.group_by(run.user).agg(size, pl.col(_JUDGED).all()).filter(~pl.col(_JUDGED))
    users = users.with_columns(user.hash(seed).hash(seed).alias(_DRAW)).sort(pl.col(_DRAW), user)
    # a draw that ends before the budget does has too few users with many pairs
    number = pl.len().cast(pl.Int64)
    users = users.filter(pl.int_range(number) < share * number // pl.col(_SIZE).sum())
    return pairs.join(users.select(run.user, pl.col(_DRAW).alias(_ORDER)), on=run.user, how="left")


def _raise_broken(tables: Sequence[Table]) -> None:
    for table in tables:
        rules.raise_if_ungraded(table)
        rules.raise_in_tables([table])  # alone: they need no common users
