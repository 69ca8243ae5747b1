"""The verbs that judge and rank: judge, with_rank."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Unpack, cast, get_args

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns, Duplicates, Settings
from rankframe._request.question import Totals
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import (
    adapters,
    column_roles,
    guards,
    judgment,
    rank_order,
    readers,
    repeated_items,
    rules,
    run_dicts,
)
from rankframe._tables.rank_order import Ties
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError, option, wording
from rankframe.presets import Preset, PresetName


@adapters.takes_any_frame
def judge(
    run: Runs[FrameT],
    /,
    truth: Truth,
    *,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
    duplicates: Duplicates = "error",
    preset: PresetName | Preset | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Join a run and its truth into the judged table.

    Parameters
    ----------
    run
        One row per item of each list: user, item, and rank (1 = first) or score; or a dict of runs
        by name, as ``runs.stack`` takes it.
    truth
        One row per judged item: user, item, relevance. Without a relevance column every row has
        relevance 1; then no other column may hold 0 and 1, or False and True, and nothing else but
        null, since these would be grades that are not read. With a column ``subtopic``, one row per
        subtopic of an item.
    by
        Columns of segments, such as country, fold or day. A truth that has the column is joined on
        it too. A truth that lacks it judges every group, so a user whom a model misses counts as a
        miss of that model; for folds (a column ``fold`` or ``split``) this would be wrong and
        raises an error. A column that only the truth has, such as the user's country, puts each
        list into the groups that the truth has for its user; lists of users who are not in the
        truth are dropped.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    preset
        ``"trec_eval_9"`` or ``"pytrec_eval"`` round scores to 32-bit floats before they are ranked,
        and so does ``{"single_precision": True}``. No other setting of a preset changes rows.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The full outer join: by…, user, item, ``rank`` (null = judged, not retrieved),
        ``relevance`` (null = retrieved, unjudged), then all other columns. Sorted unless lazy.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1], "item": [7, 8], "rank": [1, 2]})
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [8, 9], "relevance": [2, 1]})
    >>> rf.judge(run, truth)
    shape: (3, 4)
    ┌──────┬──────┬──────┬───────────┐
    │ user ┆ item ┆ rank ┆ relevance │
    │ ---  ┆ ---  ┆ ---  ┆ ---       │
    │ i64  ┆ i64  ┆ i64  ┆ i64       │
    ╞══════╪══════╪══════╪═══════════╡
    │ 1    ┆ 7    ┆ 1    ┆ null      │
    │ 1    ┆ 8    ┆ 2    ┆ 2         │
    │ 1    ┆ 9    ┆ null ┆ 1         │
    └──────┴──────┴──────┴───────────┘
    """
    run, by, columns = run_dicts.as_frame(run, by, columns, preset=preset, duplicates=duplicates)
    settings = Settings(preset=preset, duplicates=duplicates, exclude=exclude, columns=columns)
    tables = readers.read_all(run, truth, by, settings)
    subtopic = ["subtopic"] if tables.has_subtopics else []
    result = adapters.to_caller_type(
        judgment.guarded_judged(judgment.judge(tables)),
        like=run,
        beside=[truth, exclude],
        sort=[*tables.run.keys, "rank", tables.run.item, *subtopic],
    )
    readers.remember(result, tables)
    return result


@adapters.takes_any_frame
def with_rank(
    run: Runs[FrameT],
    /,
    *,
    by: str | Sequence[str] = (),
    descending: bool = True,
    ties: Ties = "item",
    truth: Truth | None = None,
    exclude: Frame | None = None,
    close_gaps: bool = False,
    duplicates: Duplicates = "error",
    preset: PresetName | Preset | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Make the rank from the score, or close the gaps of a rank.

    Parameters
    ----------
    run
        One row per item of each list: user, item, score. A null or NaN score means that the item
        was not retrieved. Or a dict of runs by name, as ``runs.stack`` takes it. A DataFrame with
        grades needs no column of items: its rows are its items.
    by
        Columns of segments, such as country, fold or day.
    descending
        True if the highest score is the best; False for distances.
    ties
        ``"item"``: equal scores are ordered by item id, descending, which is trec_eval's rule
        (text, categorical and enum by bytes, integers by value). ``"order"``: by input order.
        ``"expected"``: equal scores stay one block, ``rank`` is its first position and ``tied`` its
        size, and metrics are exact expectations over all orders of the block (McSherry and Najork,
        *ECIR* 2008); metrics without a closed form raise an error. ``"pessimistic"``: the lowest
        grade first, then item id descending; ``"optimistic"``: the highest first. No other order of
        equal scores gives a lower, or a higher, value of a metric that never falls when a better
        item moves up, such as precision, recall, RR, AP and nDCG, except with ``divide_by="hits"``.
    truth
        The grades for ``"pessimistic"`` and ``"optimistic"``, as ``judge`` takes them; it may have
        columns of ``by``. An item without one, or with one below 0, has grade 0. Without it, the
        run must have a column of grades.
    exclude
        Rows to drop before ranks are made, one per user and item, such as past interactions. A
        column of ``by`` limits a row to its group. Rows that are not in the run are ignored.
    close_gaps
        Read the rank, not the score, and number the items of each list from 1 in the same order.
        Use it after rows were dropped from a ranked run, or together with ``exclude``. Blocks of
        ties stay blocks.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty. This happens before ``exclude``.
    preset
        ``"trec_eval_9"`` or ``"pytrec_eval"`` round scores to 32-bit floats before they are ranked,
        and so does ``{"single_precision": True}``. No other setting of a preset changes rows.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The run, its rows unchanged and in the same order, without those of ``exclude`` and, with
        ``duplicates``, only the best of each item, with ``rank`` (Int64, 1 = best, null = not
        retrieved) added or replaced, and with ``"expected"`` also ``tied`` (Int64).

    Raises
    ------
    RankingDataError
        If an id is null, a score is infinite, or a list has a duplicate item; with ``close_gaps``,
        if a rank is not an integer ≥ 1, or two items share a rank; if there are no grades for
        ``"pessimistic"`` or ``"optimistic"``, or the truth breaks a rule of ``judge``.
    ValueError
        If ``ties`` is unknown, ``truth`` is not read, ``close_gaps`` is combined with an option
        that reads the score, or ``"occupy"`` with ``close_gaps`` or blocks of ties, which have no
        single places.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 1], "item": ["a", "b", "c"], "score": [0.5, 0.9, 0.5]})
    >>> rf.with_rank(run)
    shape: (3, 4)
    ┌──────┬──────┬───────┬──────┐
    │ user ┆ item ┆ score ┆ rank │
    │ ---  ┆ ---  ┆ ---   ┆ ---  │
    │ i64  ┆ str  ┆ f64   ┆ i64  │
    ╞══════╪══════╪═══════╪══════╡
    │ 1    ┆ a    ┆ 0.5   ┆ 3    │
    │ 1    ┆ b    ┆ 0.9   ┆ 1    │
    │ 1    ┆ c    ┆ 0.5   ┆ 2    │
    └──────┴──────┴───────┴──────┘
    """
    run, by, columns = run_dicts.as_frame(run, by, columns, preset=preset, duplicates=duplicates)
    ranked = plan_ranks(
        run,
        by,
        columns,
        descending=descending,
        ties=ties,
        truth=truth,
        exclude=exclude,
        close_gaps=close_gaps,
        duplicates=duplicates,
        preset=preset,
    )
    new_columns = ["rank", "tied"] if "tied" in ranked.collect_schema() else ["rank"]
    if exclude is not None or duplicates != "error":  # rows go
        new_columns = []
    return adapters.to_caller_type(
        ranked, like=run, beside=[exclude, truth], new_columns=new_columns
    )


def plan_ranks(
    run: Frame,
    by: str | Sequence[str],
    columns: Columns,
    *,
    descending: bool,
    ties: Ties,
    exclude: Frame | None,
    close_gaps: bool,
    duplicates: Duplicates,
    preset: PresetName | Preset | None = None,
    truth: Truth | None = None,
    totals: Totals | None = None,
) -> pl.LazyFrame:
    """Plan ``with_rank``; with ``totals``, for a part of the users."""
    keywords.check_switch("descending", descending)
    keywords.check_switch("close_gaps", close_gaps)
    keywords.check_choice("with_rank: ties", ties, get_args(Ties))
    if close_gaps and (not descending or ties != "item" or "score" in columns):
        msg = (
            "with_rank(close_gaps=True) reads the rank, not a score: leave out score=, "
            "descending= and ties="
        )
        raise ValueError(msg)
    if duplicates == "occupy" and (close_gaps or ties == "expected"):
        msg = (
            "with_rank(duplicates='occupy') keeps places empty, which close_gaps=True closes, and "
            "ties='expected' does not number: use 'first'"
        )
        raise ValueError(msg)
    graded = ties in rank_order.BY_GRADE
    if truth is not None and not graded:
        msg = f"with_rank(ties={ties!r}) reads no grade: leave out truth=, or use 'pessimistic'"
        raise ValueError(msg)
    settings = Settings(preset=preset, duplicates=duplicates, exclude=exclude, columns=columns)
    single = settings.single_precision
    ranking: Any = {"descending": descending, "ties": ties, "single_precision": single}
    if graded:
        table, *judged = _read_graded(run, truth, by, columns, ties)
    else:
        is_judged = not close_gaps and readers.lacks_items_but_grades(run, by, columns)
        kind = "graded run" if is_judged else "ranked run" if close_gaps else "scored run"
        table, judged = readers.read(kind, run, by, columns), []
    old = [] if close_gaps else [columns.get("rank", "rank"), "tied"]
    table = replace(table, frame=table.frame.drop(old, strict=False), totals=totals)
    table = repeated_items.once(table, duplicates, **ranking)
    lists = judgment.unranked(readers.with_tables_beside([table], settings))
    rows = lists.run
    if close_gaps:
        rows = judgment.renamed(rows, table.rank or "rank", "rank")
        rows = rows.with_columns(rules.as_rank("rank"))
        ranked = rank_order.with_places(rows, table.keys, tied=table.tied)
    else:
        ranked = rows if duplicates == "occupy" else rank_order.ranked(rows, table, **ranking)
    ranked = ranked.sort(rank_order.INDEX).drop(rank_order.INDEX)
    numbers = (
        [readers.ROW_NUMBER] if table.item == readers.ROW_NUMBER != columns.get("item") else []
    )
    ranked = ranked.drop(*numbers, *([rank_order.GRADE] if graded else []))
    flags = [guards.table_flag(table), guards.lists_flag(table), *judgment.input_flags(lists)]
    flags += [flag(truth_) for truth_ in judged for flag in (guards.table_flag, guards.lists_flag)]
    if table.tied:
        flags.append(guards.table_rules_flag(table))
    if judged:
        none_meets = pl.col(rank_order.GRADE).is_null().all()
        flags.append(guards.flag(table.frame, pl.lit(value=False), doubt=none_meets))
    return guards.guarded(ranked, flags, partial(_raise_broken, lists, judged))


def _read_graded(
    run: Frame, truth: Truth | None, by: str | Sequence[str], columns: Columns, ties: Ties
) -> list[Table]:
    """Read a run with scores, add ``GRADE`` to it, its own or that of a truth, and return both."""
    if truth is None:
        if not readers.has_relevance(run, by, columns, any_name=True):
            cure = wording(
                "pass truth=, or name its column of grades in relevance=",
                command="name the file of the truth last",
            )
            msg = f"run: no grades, but {option('ties', ties)} orders equal scores by them: {cure}"
            raise RankingDataError(msg)
        table = readers.read("graded run", run, by, columns)
        return [replace(table, frame=table.frame.with_columns(_grade(table)))]
    frame = cast("Frame", truth)  # of another kind, it is refused when it is opened
    columns = column_roles.with_ids(columns, by, {"run": run, "truth": frame})
    table = readers.read("scored run", run, by, columns, beside=("truth", frame))
    judged = readers.read("truth", frame, by, columns, beside=("run", run))
    types = readers.common_types(table, [judged])
    ids = [pl.col(name).cast(types[name]) for name in judged.ids]
    # the truth may have several rows of an item: of subtopics, or against the rules
    grades = judged.frame.group_by(ids).agg(_grade(judged).max())
    rows = table.frame.join(
        grades, left_on=ids, right_on=judged.ids, how="left", maintain_order="left"
    )
    return [replace(table, frame=rows.select(*table.schema, rank_order.GRADE)), judged]


def _grade(table: Table) -> pl.Expr:
    """Return the grade of each row; without a relevance, it is 1."""
    grade = pl.lit(1.0) if table.relevance is None else pl.col(table.relevance).cast(pl.Float64)
    return grade.alias(rank_order.GRADE)


def _raise_broken(lists: judgment.Joined, judged: Sequence[Table]) -> None:
    """Raise for the first rule that a run, its truth or a table beside it breaks."""
    rules.raise_in_tables(judged)
    judgment.raise_broken(lists)
    for truth in judged:  # its groups may be fewer
        rules.raise_if_no_match(*(replace(t, by=[]) for t in (lists.tables.run, truth)))
