"""The rows that metrics of lists and of shares reduce, as tables for people; and ``check``."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack, get_args

import polars as pl

from rankframe._request import keywords, labels, parameters, registry, share_names
from rankframe._request.keywords import Columns, Duplicates, Settings
from rankframe._request.labels import Metric
from rankframe._request.share_names import Distribution, Over, Target
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import (
    adapters,
    doubts,
    guards,
    judgment,
    rank_order,
    readers,
    rules,
    run_dicts,
    side_tables,
)
from rankframe._tables.judgment import Joined
from rankframe._vocabulary import scope_rows, share_rows
from rankframe._vocabulary.share_rows import Shares
from rankframe.errors import RankingDataError, option


@adapters.takes_any_frame
def rows(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    relevant_at: float | None = None,
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Return the rows that metrics reduce, with the vocabulary in which they are written.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth``; or the lists of a run without judgments; or a
        dict of these by name, as ``runs.stack`` takes it.
    *metrics
        Metrics that you will compute from the rows, such as ``"novelty@10"``: columns that they
        read are derived in addition, or joined from ``items``. With a metric that reads ``judged``,
        all rows of the truth are returned, and with one that reads ``listed`` all rows of the
        lists, too.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    relevant_at
        The lowest grade that counts as relevant in binary metrics; > 0. By default every grade > 0.
        A label with ``rel=``, such as ``"ap(rel=2)"``, has its own threshold, which does not change
        who counts.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The rows of grade > 0, retrieved or not, with all their columns and ``relevant`` (Boolean),
        ``hits``, ``ideal_rank``, ``ideal_place``, ``total`` (Int64), ``ideal_relevance``,
        ``rank_discount`` and ``place_discount`` (Float64). Where nothing is judged, the rows of the
        lists, with ``listed`` (Boolean) and ``rank`` (Int64). Group them by by… and user, and
        aggregate them. Sorted unless lazy.

    Raises
    ------
    RankingDataError
        If a table that a metric reads is missing.

    Notes
    -----
    Ranks and derived columns are those of the user's whole list. You may group the rows finer than
    by by… and user, for example by an item's category. Then ``precision_at``, ``recall_at``,
    ``hit_at``, ``reciprocal_rank``, ``dcg_at`` and your own sums show what the items of each group
    contribute. ``average_precision``, ``ndcg_at`` and ``r_precision`` compare with the whole list,
    so they have no meaning there.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2]})
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [8, 9], "relevance": [1, 3]})
    >>> rows = rf.metrics.rows(run, truth=truth)
    >>> rows.group_by("user").agg(rf.metrics.average_precision(), rf.metrics.ndcg_at(2)).rows()
    [(1, 0.25, 0.17376534287144)]
    >>> history = pl.DataFrame({"user": [1, 2], "item": [7, 7]})
    >>> rows = rf.metrics.rows(run, "popularity@2", "unseen@2", history=history)
    >>> rows.select("item", "popularity", "seen").rows()
    [(7, 2, True), (8, 0, False)]
    """
    frame, by, columns = run_dicts.as_frame(frame, by, columns, duplicates=duplicates)
    settings = Settings(
        relevant_at=relevant_at,
        items=items,
        history=history,
        exclude=exclude,
        duplicates=duplicates,
        columns=columns,
    )
    requested = labels.parse_metrics(metrics, per_user=True) if metrics else []
    own = {name for metric in requested for name in metric.reads}
    of_lists = registry.reading_of({"listed", "rank", *own}, inputs=settings.inputs)
    if of_lists.scope == "shares":
        msg = "one of these metrics reads shares: call rf.stats.exposure"
        raise ValueError(msg)
    reads = {*registry.BASIC, *own}
    alone = of_lists.lists_alone
    tables = readers.read_all(frame, truth, by, settings, reads=reads, run_alone=alone)
    cure = "use per_user or evaluate, which take expectations"
    rules.raise_if_tied(tables.run, " to compose metrics on", cure)
    split = tables.has_subtopics
    scopes = {registry.reading_of(metric.reads, has_subtopics=split).scope for metric in requested}
    if "subtopic" in scopes and len(scopes) > 1:
        msg = (
            "some of these metrics reduce items, others the subtopics of items: call rows for "
            "each kind separately"
        )
        raise ValueError(msg)
    reading = of_lists
    if tables.has_truth:
        reading = registry.reading_of(reads, has_subtopics=split, inputs=settings.inputs)
    for name in reading.outside:
        if name in registry.COLUMNS and (source := registry.COLUMNS[name].source):
            tables_of = " or ".join(map(option, source))
            msg = f"a metric reads {name!r}: pass {tables_of}"
            raise RankingDataError(msg)
    joined, table = judgment.judge(tables), tables.run
    kept = scope_rows.rows_of_scope(joined, reading, missed=tables.has_truth)
    unread = {name for name, column in registry.COLUMNS.items() if column.always_reserved}
    unread -= {*registry.BASIC, *reading.names, "subtopic"}
    kept = kept.drop(*rank_order.ORDER_COLUMNS, *unread, strict=False)
    flags = _lists_flags(joined) if reading.counts_judged or reading.counts_listed else []
    if tables.has_truth:
        flags.append(
            judgment.rows_flag(joined, joined.rows("relevant", graded=not reading.counts_judged))
        )
    checked = _guarded(kept, joined, flags)
    beside = (truth, items, history, exclude)
    return adapters.to_caller_type(
        checked, like=frame, beside=beside, sort=[*table.keys, "rank", table.item]
    )


@adapters.takes_any_frame
def exposure(
    run: Runs[FrameT],
    /,
    *,
    of: str | None = None,
    over: Over = "all",
    k: int | None = None,
    discount: str | float = "none",
    target: Target | None = "catalogue",
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Return how the exposure in lists is divided among items, genres or providers.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    of
        A column of ``items`` whose values divide the exposure; an item with several values counts
        in equal parts for each; ``"item"``; or ``"shown"``, the items that are shown at all. May be
        left out where ``items`` has one column of lists.
    over
        ``"all"`` lists of a group together, or each ``"user"``'s.
    k
        Cut-off; None means the whole list.
    discount
        The discount of a position: ``"none"`` = 1, ``"log2"`` = 1/log2(rank + 1), ``"clipped"`` =
        1/log2(max(rank, 2)), ``"hit"`` = 1 if the item is relevant, or a number p: p^(rank − 1).
    target
        What a share should be: the share in the ``"catalogue"``, ``"uniform"``, the share in the
        ``"history"``, in the relevant items of the ``"truth"``, among ``"candidates"`` (the
        catalogue without each user's past items), or None.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per group (with ``over="user"`` per user) and value: by…, the value in a column
        named as in ``of``, ``exposure``, ``share`` and, with a target, ``target`` (Float64).
        Sorted by exposure, highest first, unless lazy.

    Raises
    ------
    RankingDataError
        If a table that is needed is missing.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "a"], "rank": [1, 2, 1]})
    >>> items = pl.DataFrame({"item": [*"abc"], "genre": [["x"], ["x", "y"], ["z"]]})
    >>> rf.stats.exposure(run, of="genre", items=items)
    shape: (3, 4)
    ┌───────┬──────────┬──────────┬──────────┐
    │ genre ┆ exposure ┆ share    ┆ target   │
    │ ---   ┆ ---      ┆ ---      ┆ ---      │
    │ str   ┆ f64      ┆ f64      ┆ f64      │
    ╞═══════╪══════════╪══════════╪══════════╡
    │ x     ┆ 2.5      ┆ 0.833333 ┆ 0.5      │
    │ y     ┆ 0.5      ┆ 0.166667 ┆ 0.166667 │
    │ z     ┆ 0.0      ┆ 0.0      ┆ 0.333333 │
    └───────┴──────────┴──────────┴──────────┘
    """
    run, by, columns = run_dicts.as_frame(run, by, columns, duplicates=duplicates)
    settings = Settings(
        items=items, history=history, exclude=exclude, duplicates=duplicates, columns=columns
    )
    keywords.check_choice("over", over, get_args(Over))
    keywords.check_choice("target", target, (*get_args(Target), None))
    weight = parameters.check_place_discount("discount", discount)
    cut = None if k is None else keywords.whole_number("k", k)
    kind = Distribution(of or "", over)
    share_columns = share_names.share_columns(kind, weight, cut, target)
    if truth is None and share_names.needs_truth(share_columns):
        msg = "exposure reads relevant items: pass truth= (user, item)"
        raise RankingDataError(msg)
    tables = readers.read_all(run, truth, by, settings, reads=(), run_alone=truth is None)
    joined, table = judgment.judge(tables), tables.run
    share_rows.check_shares("exposure", kind, share_columns, joined.inputs, table.item)
    if tables.tied:
        share_names.check_shares_in_ties("exposure", share_columns)
    shares = share_rows.rows_of_shares(Shares(joined, kind, table.by), share_columns)
    keys = [*(table.keys if over == "user" else table.by)]
    value = share_rows.public_name(kind.of, joined.inputs, table.item)
    names = dict(zip(share_columns, ("exposure", "share", "target"), strict=False))
    taken = {value, *names.values()} & {*keys} or {value} & {*names.values()}
    rules.raise_if_taken("exposure", sorted(taken), taken)
    # a list without a known value has a row without a value
    shares = shares.filter(pl.col(share_rows.VALUE).is_not_null())
    kept = shares.select(*keys, pl.col(share_rows.VALUE).alias(value), *share_columns).rename(names)
    if not isinstance(run, pl.LazyFrame):
        down = [*(False for _ in keys), True, False]
        kept = kept.sort(*keys, "exposure", value, descending=down)
    checked = _guarded(kept, joined, _lists_flags(joined))
    return adapters.to_caller_type(checked, like=run, beside=(truth, items, history, exclude))


@adapters.takes_any_frame
def check(
    frame: Runs[FrameT],
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    items: Frame | None = None,
    history: Frame | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Check every rule on every row of all tables, and return the frame.

    Parameters
    ----------
    frame
        A run (user, item, rank or score), or a judged table; or a dict of these by name, as
        ``runs.stack`` takes it.
    truth
        The truth (user, item and, unless it is 1 in every row, relevance). Without a relevance, a
        column of 0 and 1, or of False and True, breaks a rule.
    by
        Columns of segments, such as country, fold or day.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The frame itself; for a dict, the table that ``runs.stack`` makes; for a LazyFrame, one that
        runs the check when it is collected.

    Raises
    ------
    RankingDataError
        At the first broken rule. Rules of the run come first, then those of the truth, which must
        have a grade > 0. Then come those of both: they share an item, and a user in each group of
        ``by`` that the run has. Then follow those of ``items``, which must have every item of the
        run, of ``history``, which must have no duplicates, and of ``exclude``.

    Notes
    -----
    Every call checks types, ranks, scores, relevances and null ids on every row, and duplicates and
    shared ranks on the relevant rows, or on all rows if the metric counts rows or judgments
    (duplicates also if ranks come from scores). Otherwise only ``check`` detects a duplicate among
    irrelevant items, an irrelevant item that shares its rank, one of several groups in which no
    user is in both tables, that run and truth have no item in common, and an item that is missing
    from the catalogue, which counts in no share.

    With ``items``, ``history`` or ``exclude``, a run needs no truth.

    What breaks no rule but is probably wrong gives a ``RankingWarning``: scores that are NaN or, in
    a run, null; at least 5% of a system's lists of two or more items with the same score for all
    items; ids that are floats in all tables.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 1]})
    >>> truth = pl.DataFrame({"user": [1], "item": [7]})
    >>> rf.check(run, truth=truth)
    Traceback (most recent call last):
        ...
    rankframe.errors.RankingDataError: run, column 'rank': two items of one user have the same \
rank: name a column of models in model=, of folds or days in by=; otherwise make ranks without \
ties, as rank('ordinal') does. Offending row: user=1, item=7, rank=1
    """
    frame, by, columns = run_dicts.as_frame(frame, by, columns, duplicates=duplicates)
    settings = Settings(
        items=items, history=history, exclude=exclude, duplicates=duplicates, columns=columns
    )
    alone = bool(settings.inputs) and truth is None
    both = readers.read_run_and_truth(frame, truth, by, columns, reads=(), run_alone=alone)
    tables = readers.with_tables_beside(both, settings)

    def raise_broken() -> None:
        doubts.warn_of_float_ids(tables)  # first: they make duplicates
        rules.raise_in_tables(tables.both)
        if tables.truth is not None:
            rules.raise_if_none_relevant(tables.truth)
            rules.raise_if_lone_group(tables.run, tables.truth)
            rules.raise_if_no_item_meets(tables.run, tables.truth)
        if tables.beside:
            joined = judgment.judge(tables)
            judgment.raise_broken_input(joined)
            side_tables.raise_if_unknown(joined.inputs, tables.run, joined.run)
        doubts.warn_of_missing_scores(tables.run)
        doubts.warn_of_equal_scores(tables.run)

    if isinstance(frame, pl.LazyFrame):
        always = pl.LazyFrame({"suspect": [True], "balance": [0]})
        return adapters.to_caller_type(guards.guarded(frame, [always], raise_broken), like=frame)
    raise_broken()
    return adapters.with_names_as_text(frame, frame)


def _lists_flags(joined: Joined) -> list[pl.LazyFrame]:
    return [guards.lists_flag(table) for table in joined.tables.both]


def _guarded(rows: pl.LazyFrame, joined: Joined, flags: Sequence[pl.LazyFrame]) -> pl.LazyFrame:
    every = [*judgment.table_flags(joined), *flags, *judgment.input_flags(joined)]
    return guards.guarded(rows, every, partial(judgment.raise_broken, joined))
