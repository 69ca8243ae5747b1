"""The verbs that make tables: judge, with_rank, from_lists."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Unpack, cast, get_args

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns, ListColumns, Settings
from rankframe._request.question import Totals
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import (
    adapters,
    column_roles,
    dicts,
    guards,
    judgment,
    rank_order,
    readers,
    rules,
    run_dicts,
    several_users,
)
from rankframe._tables.rank_order import Ties
from rankframe.errors import RankingDataError
from rankframe.presets import Preset, PresetName


@adapters.takes_any_frame
def judge(
    run: Runs[FrameT],
    /,
    truth: Truth,
    *,
    by: str | Sequence[str] = (),
    exclude: Frame | None = None,
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
        One row per judged item: user, item, relevance. Without a relevance column every row
        has relevance 1; then no other column may hold 0 and 1, or False and True, and nothing else
        but null, since it would be grades that nobody reads. With a column ``subtopic``, one row
        per subtopic of an item.
    by
        Columns of segments, such as country, fold or day. A truth that has the column is joined on
        it too. A truth that lacks it judges every group, so a user whom a model misses counts as a
        miss of that model; for folds (a column ``fold`` or ``split``) this would be wrong and
        raises an error. A column that only the truth has, such as the user's country, puts each
        list into the groups that the truth has for its user; lists of users who are not in the
        truth are left out.
    exclude
        Rows to remove from the lists, one per user and item, such as past interactions; a column of
        ``by`` limits a row to its group. The rows below move up, and gaps in the ranks stay. An
        excluded item that is in the truth is a miss.
    preset
        ``"trec_eval_9"`` or ``"pytrec_eval"`` round scores to 32-bit floats before they are ranked,
        and so does ``{"single_precision": True}``. No other rule of a preset changes rows.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores the run's.

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
    run, by, columns = run_dicts.as_frame(run, by, columns, preset=preset)
    settings = Settings(preset=preset, exclude=exclude, columns=columns)
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
    exclude: Frame | None = None,
    close_gaps: bool = False,
    preset: PresetName | Preset | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Make the rank from the score, or close the gaps of a rank.

    Parameters
    ----------
    run
        One row per item of each list: user, item, score. A null or NaN score means that the
        item was not retrieved. Or a dict of runs by name, as ``runs.stack`` takes it.
    by
        Columns of segments, such as country, fold or day.
    descending
        True if the highest score is the best; False for distances.
    ties
        ``"item"``: equal scores are ordered by item id, descending, which is trec_eval's rule
        (text, categorical and enum by bytes, integers by value). ``"order"``: by input order.
        ``"expected"``: equal scores stay one block, ``rank`` is its first position and ``tied`` its
        size, and metrics are exact expectations over all orders of the block (McSherry and Najork,
        *ECIR* 2008); metrics without a closed form raise an error.
    exclude
        Rows to drop before ranks are made, one per user and item, such as past interactions. A
        column of ``by`` limits a row to its group. Rows that the run lacks are ignored.
    close_gaps
        Read the rank, not the score, and number the items of each list from 1 in the same order.
        Use it after rows were dropped from a ranked run, or together with ``exclude``. Blocks of
        ties stay blocks.
    preset
        ``"trec_eval_9"`` or ``"pytrec_eval"`` round scores to 32-bit floats before they are ranked,
        and so does ``{"single_precision": True}``. No other rule of a preset changes rows.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores the run's.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The run, its rows unchanged and in the same order, without those of ``exclude``, with
        ``rank`` (Int64, 1 = best, null = not retrieved) added or replaced, and with ``"expected"``
        also ``tied`` (Int64).

    Raises
    ------
    RankingDataError
        If an id is null, a score is infinite, or a list has a duplicate item; with ``close_gaps``,
        if a rank is not an integer ≥ 1, or two items have the same.
    ValueError
        If ``ties`` is unknown, or ``close_gaps`` is combined with an option that reads the score.

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
    run, by, columns = run_dicts.as_frame(run, by, columns)
    ranked = plan_ranks(
        run,
        by,
        columns,
        descending=descending,
        ties=ties,
        exclude=exclude,
        close_gaps=close_gaps,
        preset=preset,
    )
    new_columns = ["rank", "tied"] if "tied" in ranked.collect_schema() else ["rank"]
    return adapters.to_caller_type(
        ranked, like=run, beside=[exclude], new_columns=new_columns if exclude is None else ()
    )


@adapters.takes_arrow
def from_lists(
    frame: FrameT | Mapping[str, FrameT] | Mapping[Any, Sequence[Any]],
    /,
    *,
    truth: str | None = None,
    by: str | Sequence[str] = (),
    **columns: Unpack[ListColumns],
) -> FrameT:
    """
    Make a long run of lists in order: one row per user with a list of items, or a dict.

    With ``truth``, the column of what is expected, make the judged table.

    Parameters
    ----------
    frame
        One row per list: user, item (a list, best first), any other columns, and perhaps
        score (a list of equal length). Or a dict of such frames by name, as ``runs.stack`` takes
        it: the names are the column ``model``, in the order of the dict. Or ``{user: [items]}``, in
        which a user without an item has no row, and counts as one whom the run lacks.
    truth
        The column of the relevant items: a list of ids, or of structs of an id and a grade. Then
        the items may be structs of an id and a score, too, in the order of the list.
    by
        Columns of segments that, with the user and the model, tell lists apart, such as day.
    **columns
        ``user=``, ``item=``, ``score=``: the columns that play these roles, if they have other
        names. ``user=`` may be a list of columns.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per item, with ``rank`` (Int64, from 1, in the order of the list). With ``truth``,
        one row per item of either list: ``user``, ``item``, ``rank`` (null = not retrieved),
        ``relevance`` (null = not expected), of structs ``score``, then the other columns of the
        frame. ``score`` is Float64, and more is better: a field ``distance`` has its sign turned.
        Of ``{user: [items]}``, a polars DataFrame.

    Raises
    ------
    RankingDataError
        If a role has no column, items are not a list, a list is empty or null (without
        ``truth``), or the numbers of scores and items differ. With ``truth`` or ``by``, if two rows
        are of one user. If the scores of a list ascend somewhere, or its distances descend.

    Notes
    -----
    A long run cannot represent an empty list. Drop such lists with
    ``lists.filter(pl.col("item").list.len() > 0)``. The default ``users="truth"`` and ``"judged"``
    still count their users as misses; ``"run"`` and ``"both"`` leave them out.

    With ``truth``, an empty or null list of items is a miss, and an empty list of relevant items is
    a user without any, who counts or not as ``users`` says. Two empty lists are a row of the user
    alone, whose item, rank and relevance are null: ``users="all"`` counts each question.

    Examples
    --------
    >>> lists = pl.DataFrame({"user": [1, 2], "item": [["a", "b"], ["c"]]})
    >>> rf.from_lists(lists).rows()
    [(1, 'a', 1), (1, 'b', 2), (2, 'c', 1)]
    >>> rf.from_lists({"q1": ["d2", "d1"]}).rows()
    [('q1', 'd2', 1), ('q1', 'd1', 2)]
    >>> answers = pl.DataFrame({"question": ["q"], "found": [["a", "b"]], "expected": [["b", "c"]]})
    >>> rf.from_lists(answers, user="question", item="found", truth="expected").rows()
    [('q', 'a', 1, None), ('q', 'b', 2, 1), ('q', 'c', None, 1)]
    """
    if isinstance(columns.get("user"), list | tuple):
        call: dict[str, Any] = {"run": frame, "by": by, **columns}
        close = several_users.with_one("from_lists", call)
        table = from_lists(call.pop("run"), truth=truth, **call)
        own = {} if truth is None else {"user": call["user"]}
        return cast("FrameT", close(adapters.renamed(table, own)))
    keywords.check_columns(columns)
    keywords.check_name("truth", truth)
    if isinstance(frame, Mapping) and not any(map(adapters.is_frame, frame.values())):
        run_dicts.check_columns_of_dict(frame)
        if truth is not None or by or {"model", "score"} & {*columns}:
            msg = "from_lists: a dict of lists has a user and items: leave out all but user=, item="
            raise ValueError(msg)
        of_dict = (keywords.user_of(columns), columns.get("item", "item"), "rank")
        return cast("FrameT", dicts.lists_of("from_lists", frame, of_dict))
    runs = cast("FrameT | Mapping[str, FrameT]", frame)
    if isinstance(runs, Mapping):
        columns["model"] = model = run_dicts.model_of_dict(columns)
        runs = run_dicts.stack(runs, model=model)
    checks = truth is not None or "model" in columns or bool(by)
    columns = column_roles.with_ids(cast("Columns", columns), (), {"frame of lists": runs})
    lazy = adapters.to_lazy(runs, "frame of lists")
    schema = lazy.collect_schema()
    groups, columns = run_dicts.with_model(schema, by, columns)
    columns.pop("model", None)
    user, item = keywords.user_of(columns), columns.get("item", "item")
    score = columns.get("score", "score")
    names = {"user": user, "item": item, **columns, **({} if truth is None else {"truth": truth})}
    _check_names_of_lists(names, groups, schema)
    if adapters.has_sets(runs, item):
        msg = f"frame of lists, column {item!r}: a set has no order: make a list, best first"
        raise RankingDataError(msg)
    arrays = {name for name, dtype in schema.items() if isinstance(dtype, pl.Array)}
    arrays &= {*map(str, names.values()), score}
    lazy = lazy.with_columns(pl.col(name).arr.to_list() for name in arrays)
    from rankframe._tables import two_lists

    if checks:
        keys = two_lists.rule_of_keys(groups, user)
        lazy = two_lists.checked(lazy, [keys], [*groups, user])
        if truth is not None:
            return adapters.to_caller_type(two_lists.judged(lazy, user, item, truth), like=runs)
    schema = lazy.collect_schema()
    lists = [name for name in (item, score) if isinstance(schema.get(name), pl.List)]
    if item not in lists:
        msg = f"frame of lists, column {item!r}: {schema[item]} is not a list of items"
        raise RankingDataError(msg)
    if "rank" in schema:
        msg = (
            "frame of lists, column 'rank': from_lists makes the rank from the order of the list: "
            "drop the column"
        )
        raise RankingDataError(msg)
    size = pl.col(item).list.len()
    uneven = pl.any_horizontal(pl.col(name).list.len().ne_missing(size) for name in lists)

    empty_text = (
        "empty or null list, for which a long run has no row: drop it with "
        f".filter(pl.col({item!r}).list.len() > 0). users='truth' and 'judged' still count its "
        "user as a miss, 'run' and 'both' leave the user out"
    )
    in_order = [two_lists.rule_of_scores(name, name, pl.element()) for name in lists[1:]]
    uneven_text = "scores and items differ in number: give each item one score"

    def checked(rows: pl.DataFrame) -> pl.DataFrame:
        empty = rows.filter(size.fill_null(0) == 0).select(user)
        rules.raise_if_any(empty, "frame of lists", item, empty_text)
        rules.raise_if_any(rows.filter(uneven).select(user), "frame of lists", score, uneven_text)
        for rule in in_order:
            broken = rows.filter(rule.broken).select(user)
            rules.raise_if_any(broken, rule.table, rule.column, rule.text)
        return rows

    # check before explode, which fails on uneven lists, and makes a row of nulls of an empty one
    lazy = lazy.map_batches(checked, schema=dict(schema), streamable=True)
    ranks = pl.int_ranges(1, size.cast(pl.Int64) + 1).alias("rank")
    # no list is empty here, but Polars 1 warns unless the call sets both options
    long = lazy.with_columns(ranks).explode(*lists, "rank", empty_as_null=False, keep_nulls=True)
    return adapters.to_caller_type(long, like=runs)


def _check_names_of_lists(
    names: Mapping[str, object], groups: Sequence[str], schema: pl.Schema
) -> None:
    """Check that each role and group has a column of its own."""
    for role, name in names.items():
        if name not in schema:
            has = ", ".join(map(repr, schema))
            msg = (
                f"frame of lists: no column {name!r} for {role}; it has {has}; name it with {role}="
            )
            raise RankingDataError(msg)
    truth = names.get("truth")
    if truth in (names["user"], names["item"]):
        msg = f"frame of lists: truth={truth!r} names a column that has another role: name another"
        raise ValueError(msg)
    if truth is not None and "score" in names:
        msg = "from_lists: the order of the list is its rank: leave out score= beside truth="
        raise ValueError(msg)
    for name in groups:
        if name not in schema or name in names.values():
            why = "names a column that has another role" if name in schema else "names no column"
            msg = f"frame of lists: by={name!r} {why}: name another"
            raise RankingDataError(msg)


def plan_ranks(
    run: Frame,
    by: str | Sequence[str],
    columns: Columns,
    *,
    descending: bool,
    ties: Ties,
    exclude: Frame | None,
    close_gaps: bool,
    preset: PresetName | Preset | None = None,
    totals: Totals | None = None,
) -> pl.LazyFrame:
    """Plan ``with_rank``; with ``totals``, for a part of the users."""
    keywords.check_flag("descending", descending)
    keywords.check_flag("close_gaps", close_gaps)
    keywords.check_choice("with_rank: ties", ties, get_args(Ties))
    if close_gaps and (not descending or ties != "item" or "score" in columns):
        msg = (
            "with_rank(close_gaps=True) reads the rank, not a score: leave out score=, "
            "descending= and ties="
        )
        raise ValueError(msg)
    table = (readers.read_ranked if close_gaps else readers.read_scored)(run, by, columns)
    table = table._replace(totals=totals)
    settings = Settings(preset=preset, exclude=exclude, columns=columns)
    lists = judgment.unranked(readers.with_tables_beside([table], settings))
    rows = lists.run
    if close_gaps:
        rows = judgment.renamed(rows, table.rank or "rank", "rank")
        rows = rows.with_columns(rules.as_rank("rank"))
        ranked = rank_order.with_places(rows, table.keys, tied=table.tied)
    else:
        rows = rows.drop(columns.get("rank", "rank"), "tied", strict=False)
        single = settings.single_precision
        ranked = rank_order.ranked(
            rows, table, descending=descending, ties=ties, single_precision=single
        )
    ranked = ranked.sort(rank_order.INDEX).drop(rank_order.INDEX)
    flags = [guards.table_flag(table), guards.lists_flag(table), *judgment.input_flags(lists)]
    if table.tied:
        flags.append(guards.table_rules_flag(table))
    return guards.guarded(ranked, flags, partial(judgment.raise_broken, lists))
