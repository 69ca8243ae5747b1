"""Lists of items, best first, to a long run: one row per list, or a dict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Unpack, cast

import polars as pl

from rankframe._inputs import dicts, several_users
from rankframe._request import keywords
from rankframe._request.keywords import Columns, ListColumns
from rankframe._request.types import Frame, FrameT
from rankframe._tables import adapters, column_roles, rules, run_dicts
from rankframe.errors import RankingDataError, table_code


@adapters.takes_arrow
def from_lists(
    frame: FrameT | Mapping[str, FrameT] | Mapping[Any, Sequence[Any]],
    /,
    *,
    truth: str | None = None,
    by: str | Sequence[str] = (),
    parent: Mapping[Any, Any] | Frame | None = None,
    **columns: Unpack[ListColumns],
) -> FrameT:
    """Make a long run from ordered lists: one row per user with a list of items, or a dict.

    With ``truth``, the column of the expected items, make the judged table.

    Parameters
    ----------
    frame
        One row per list: user, item (a list, best first, or a string of ids separated by spaces,
        such as Kaggle's ``"10 11 12"``), any other columns, and perhaps score (a list of equal
        length). Or a dict of such frames by name, as ``runs.stack`` takes it: the names are the
        column ``model``, in the order of the dict. Or ``{user: [items]}``, in which a user without
        an item has no row, like a user missing from the run.
    truth
        The column of the relevant items: a list of ids, or of structs of an id and a grade, or a
        string of ids. The items may then also be structs of an id and a score, in the order of the
        list.
    by
        Columns of segments that, with the user and the model, tell lists apart, such as day.
    parent
        The parent of each item, such as the document of a chunk: ``{item: parent}``, or a table
        with the column of the items and ``parent``. Each item becomes its parent, which keeps its
        best place; the items below its other places move up. The expected items, in ``truth``, are
        parents.
    **columns
        ``user=``, ``item=``, ``score=``: the columns that play these roles, if they have other
        names. ``user=`` may be a list of columns.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per item, with ``rank`` (Int64, from 1, in the order of the list). With ``truth``,
        one row per item of either list: ``user``, ``item``, ``rank`` (null = not retrieved),
        ``relevance`` (null = not expected), ``score`` if the items are structs, then the other
        columns of the frame. ``score`` is Float64, and higher is better: the sign of a field
        ``distance`` is reversed. For ``{user: [items]}``, a polars DataFrame.

    Raises
    ------
    RankingDataError
        If a role has no column, items are not a list, a list is empty or null (without ``truth``),
        or the numbers of scores and items differ. If two rows are of one user, with ``truth``,
        ``by`` or strings of ids. If such a string has a comma or a semicolon, or begins with a
        bracket. If the scores of a list ascend somewhere, or its distances descend.

    Notes
    -----
    A long run cannot represent an empty list. Drop such lists with
    ``lists.filter(pl.col("item").list.len() > 0)``. The default ``users="truth"`` and ``"judged"``
    still count their users as misses; ``"run"`` and ``"both"`` leave them out.

    The ids in a string remain strings, a single id is a list of one, and an empty string is an
    empty list.

    With ``truth``, an empty or null list of items is a miss, and an empty list of relevant items is
    a user without any; ``users`` says whether this user counts. Two empty lists are a row of the
    user alone, whose item, rank and relevance are null: ``users="all"`` counts each question.

    Examples
    --------
    >>> lists = pl.DataFrame({"user": [1, 2], "item": [["a", "b"], ["c"]]})
    >>> rf.from_lists(lists).rows()
    [(1, 'a', 1), (1, 'b', 2), (2, 'c', 1)]
    >>> rf.from_lists(pl.DataFrame({"user": [1, 2], "item": ["10 11", "7"]})).rows()
    [(1, '10', 1), (1, '11', 2), (2, '7', 1)]
    >>> rf.from_lists({"q1": ["d2", "d1"]}).rows()
    [('q1', 'd2', 1), ('q1', 'd1', 2)]
    >>> answers = pl.DataFrame({"question": ["q"], "found": [["a", "b"]], "expected": [["b", "c"]]})
    >>> rf.from_lists(answers, user="question", item="found", truth="expected").rows()
    [('q', 'a', 1, None), ('q', 'b', 2, 1), ('q', 'c', None, 1)]
    """
    if isinstance(columns.get("user"), list | tuple):
        call: dict[str, Any] = {"run": frame, "by": by, **columns}
        close = several_users.with_one("from_lists", call)
        table = from_lists(call.pop("run"), truth=truth, parent=parent, **call)
        own = {} if truth is None else {"user": call["user"]}
        return cast("FrameT", close(adapters.renamed(table, own)))
    from rankframe._inputs import item_parents, two_lists  # most calls need neither

    keywords.check_columns(columns)
    keywords.check_name("truth", truth)
    if isinstance(frame, Mapping) and not any(map(adapters.is_frame, frame.values())):
        run_dicts.check_columns_of_dict(frame)
        if truth is not None or by or {"model", "score"} & {*columns}:
            msg = "from_lists: a dict of lists has a user and items: leave out all but user=, item="
            raise ValueError(msg)
        user, item = keywords.user_of(columns), columns.get("item", "item")
        rows = dicts.lists_of("from_lists", frame, (user, item, "rank")).lazy()
        rows = item_parents.in_place(rows, parent, item, user, item, "rank")
        return cast("FrameT", rows.collect())
    runs = cast("FrameT | Mapping[str, FrameT]", frame)
    if isinstance(runs, Mapping):
        columns["model"] = model = run_dicts.model_of_dict(columns)
        runs = run_dicts.with_names(runs, model)
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
    texts = [name for name in (item, truth) if name and schema[name] == pl.String]
    lazy = two_lists.of_texts(lazy, texts, user)
    if checks or texts:
        keys = two_lists.rule_of_keys(groups, user)
        lazy = rules.checked(lazy, [keys], [*groups, user])
        if truth is not None:
            judged = two_lists.judged(lazy, user, item, truth, parent)
            return adapters.to_caller_type(judged, like=runs)
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

    cure = _without_empty(item, is_text=bool(texts))
    empty_text = (
        f"empty or null list, for which a long run has no row: drop it{cure}. "
        "users='truth' and 'judged' still count its user as a miss, 'run' and 'both' leave the "
        "user out"
    )
    score_rules = [two_lists.rule_of_scores(name, name, pl.element()) for name in lists[1:]]
    uneven_text = "scores and items differ in number: give each item one score"

    def checked(rows: pl.DataFrame) -> pl.DataFrame:
        empty = rows.filter(size.fill_null(0) == 0).select(user)
        rules.raise_if_any(empty, "frame of lists", item, empty_text)
        rules.raise_if_any(rows.filter(uneven).select(user), "frame of lists", score, uneven_text)
        for rule in score_rules:
            broken = rows.filter(rule.broken).select(user)
            rules.raise_if_any(broken, rule.table, rule.column, rule.text)
        return rows

    # check before explode, which fails on uneven lists, and makes a row of nulls of an empty one
    lazy = lazy.map_batches(checked, schema=dict(schema), streamable=True)
    if parent is not None:
        lazy = lazy.with_row_index(two_lists.ROW)
    ranks = pl.int_ranges(1, size.cast(pl.Int64) + 1).alias("rank")
    # no list is empty here, but Polars 1 warns unless the call sets both options
    long = lazy.with_columns(ranks).explode(*lists, "rank", empty_as_null=False, keep_nulls=True)
    long = item_parents.in_place(long, parent, item, two_lists.ROW, item, "rank")
    return adapters.to_caller_type(long.drop(two_lists.ROW, strict=False), like=runs)


def _without_empty(item: str, *, is_text: bool) -> str:
    """Write the code that drops empty lists, or texts without an id."""
    kept, rows = "list.len() > 0", "str.len() > 0"
    if is_text:
        kept, rows = "str.strip_chars() != ''", "str.strip().fillna('') != ''"
    rows = f".loc[lambda frame: frame[{item!r}].{rows}]"
    return table_code("lists", f".filter(pl.col({item!r}).{kept})", rows)


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
            why = "names a column that has another role" if name in schema else "is not a column"
            msg = f"frame of lists: by={name!r} {why}: name another"
            raise RankingDataError(msg)
