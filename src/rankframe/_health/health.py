"""Counts of what is in the tables: missed users, short lists, duplicates, ids that never match."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Unpack, cast

import polars as pl

from rankframe._health import counts, inputs
from rankframe._health.counts import Measure, Section
from rankframe._health.inputs import Call, Part
from rankframe._request import keywords
from rankframe._request.keywords import Columns
from rankframe._request.types import Frame, FrameT, Runs, Truth, Types
from rankframe._tables import adapters, column_roles, readers, rules, run_dicts
from rankframe.errors import Problem, option

_MADE: dict[str, pl.DataType] = {
    "what": pl.String(),
    "count": pl.Int64(),
    "share": pl.Float64(),
    "problem": pl.Boolean(),
    "example": pl.String(),
}


@partial(adapters.takes_any_frame, counts=True)
def health(
    frame: Runs[FrameT],
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    k: int = 10,
    items: Frame | None = None,
    history: Frame | None = None,
    time: str | None = None,
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Count what is in the tables, and what is wrong with them; bad data never raise an error.

    Parameters
    ----------
    frame
        A run (user, item, rank or score), or a judged table; or a dict of these by name, as
        ``runs.stack`` takes it, but with any columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments of the run, such as fold or day. A truth with these columns is split,
        too.
    k
        The cut-off for short lists, ties at the cut, unjudged and seen items.
    items
        The catalogue: one row per item, with columns such as genres (a list of text), a provider or
        a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity, novelty and profiles. Distinct users count.
    time
        The column of the truth and the history with the time of a row.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores the run's.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per table, group and count: ``table`` (String: "run", "judged table", "truth",
        "both" = run and truth, "items", "history"), by… (null if the table is not split),
        ``what`` (String), ``count`` (Int64), ``share`` (Float64, null if ``what`` is a size or
        there is nothing to divide by), ``problem`` (Boolean: whether something was found that is
        worth a look, null of sizes) and ``example`` (String: the least id or row that is counted,
        null if ``count`` is 0 or a size). Rows with a problem come first.

    Raises
    ------
    RankingDataError
        If a column of ``by`` has the name of a column of the result.

    Notes
    -----
    A row with count 0 means that nothing was found. Sizes (``rows``, ``users``, ``items``,
    ``grades``) and the rows of each grade describe the tables; all other counts are worth a look:
    ``found.filter("problem")``. What is unknown to another table, never listed or unjudged is a
    problem only if all of it is, as where ids differ. A count is left out if its columns are
    missing or have a type that cannot play their role; the row ``unreadable`` then has the error
    that other functions raise. Null and NaN ids are only in their own counts. A user has a list if
    at least one of the user's rows has a rank, or a score that is not NaN.

    *Run.* Sizes: ``rows``, ``users`` with a list, ``items`` in the lists. Of the rows:
    ``null_groups``, ``null_users``, ``null_items``, ``null_ranks`` or ``null_scores`` (not
    retrieved), ``nan_scores``, ``infinite_scores``, ``invalid_ranks`` (not an integer ≥ 1),
    ``duplicates`` (rows of an item beyond its first in the list) and ``shared_ranks`` (rows of a
    rank beyond its first). Of the lists: ``short_lists`` (fewer than k items), ``gaps`` (a rank is
    skipped), ``ties_at_the_cut`` (scores or ranks do not determine the first k items) and
    ``constant_scores`` (all items have one score, share of the lists of two or more).

    *Judged table.* The same counts, of its rows with a rank as table "run", and of its judgments as
    table "truth". Of all rows: ``duplicates``, ``neither_rank_nor_relevance`` and, if no judged row
    of the whole table lacks a rank, ``relevant_only_from_lists`` (rows of grade > 0, share of
    these: no relevant item is known beyond the lists, so that recall is too high).

    *Truth.* Sizes: ``rows``, ``users``, ``items``, ``grades`` (distinct ones). Of the rows:
    ``null_users``, ``null_items``, ``null_relevances``, ``nonfinite_relevances`` (NaN or infinite),
    ``negative_grades``, ``duplicates``, and one count per grade, such as ``grade_0`` (of at most 20
    grades). Of the users: ``users_without_relevant`` (no grade > 0).

    *Both.* ``users`` in both (share of the truth's), ``missed_users`` (without a list, share of the
    truth's users with a grade > 0), ``groups_without_common_users`` (1 for a group of ``by`` in
    which no user is in both tables), ``users_unknown_to_truth`` and ``items_unknown_to_truth``
    (share of the run's users and items), ``items_unknown_to_run`` (share of the truth's items),
    ``unjudged_at_10`` (rows among the first k without a judgment, share of these rows). Of the
    run's users or items: ``user_ids_differ_in_case`` (unknown to the truth, which has the same text
    in another case or with different surrounding spaces), ``user_ids_differ_in_type`` (unknown to
    the truth, which has the same id in another type, 7 and "7", or as text of a float, "7" and
    "7.0"), and the same two for items.

    *Items.* Sizes: ``rows``, ``items``. Of the rows: ``null_items``, ``duplicates``.
    ``items_unknown_to_catalogue`` (share of the run's items), ``items_never_listed`` (share of the
    catalogue's).

    *History.* Sizes: ``rows``, ``users``, ``items``. Of the rows: ``null_users``, ``null_items``,
    ``duplicates`` (repeated events). ``users_unknown_to_history`` and ``items_unknown_to_history``
    (share of the run's), ``seen_at_10`` (rows among the first k with an item that the user had
    before, share of these rows).

    *Leakage*, with a truth and a history, in table "history". Of the truth: ``truth_in_history``
    (rows whose user and item are in the history), ``truth_users_unknown_to_history`` and
    ``truth_items_unknown_to_history`` (new users and items). With ``time``, of the rows of the
    history: ``not_before_the_users_truth`` (at or after the user's first row in the truth) and
    ``not_before_the_truth`` (at or after the first of all, or of those of its group).

    The counts need a few streaming passes. Memory grows with the number of lists, ids and
    judgments, not of rows, unless ranks are computed from scores.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": ["a", "b", "A"], "rank": [1, 3, 1]})
    >>> truth = pl.DataFrame({"user": [1, 3], "item": ["a", "b"]})
    >>> found = rf.health(run, truth=truth, k=1)
    >>> found.filter("problem").select("what", "count", "share", "example")
    shape: (3, 4)
    ┌─────────────────────────┬───────┬──────────┬──────────┐
    │ what                    ┆ count ┆ share    ┆ example  │
    │ ---                     ┆ ---   ┆ ---      ┆ ---      │
    │ str                     ┆ i64   ┆ f64      ┆ str      │
    ╞═════════════════════════╪═══════╪══════════╪══════════╡
    │ gaps                    ┆ 1     ┆ 0.5      ┆ user=1   │
    │ missed_users            ┆ 1     ┆ 0.5      ┆ user=3   │
    │ item_ids_differ_in_case ┆ 1     ┆ 0.333333 ┆ item='A' │
    └─────────────────────────┴───────┴──────────┴──────────┘
    """
    run = cast("FrameT | Mapping[str, FrameT]", frame)
    truth = cast("Frame | None", truth)
    k = keywords.whole_number("k", k)
    keywords.check_name("time", time)
    if time is not None and history is None:
        past = f"compares the truth with past events: pass {option('history')}"
        msg = f"{option('time', time)} {past}"
        raise ValueError(Problem(msg))
    if isinstance(by, list | tuple):
        by = [name for place, name in enumerate(by) if name not in by[:place]]
    if isinstance(run, Mapping):
        model = run_dicts.model_of_dict(columns)
        run_dicts.check_runs(run)
        like = next(iter(run.values()))
        names = [model]
    else:
        like, names = run, adapters.column_names(run, "run")
    groups, columns = run_dicts.with_model(names, by, columns)
    rules.raise_if_taken("health", groups, ("table", *_MADE), "run, ")
    columns = column_roles.with_ids(columns, groups, {"run": like, "truth": truth})
    runs_of_call: Frame | Mapping[str, Frame] = run
    if truth is None:
        runs_of_call, columns = _numbered(runs_of_call, like, groups, columns)
    tables = {"run": runs_of_call, "truth": truth, "items": items, "history": history}
    opened, problems = inputs.opened(tables, groups, columns)
    runs = [*run] if isinstance(run, Mapping) else []
    orders = inputs.orders_of(groups, runs, like, opened.get("run"))
    call = Call(opened, problems, runs, groups, columns, k, time, orders)
    schema = {
        "table": pl.String(),
        **inputs.types_of_groups(groups, opened),
        **_MADE,
    }
    row = pl.LazyFrame({"row": [0]})
    plan = adapters.in_one_step(row, partial(_counted, call, schema), schema)
    return adapters.to_caller_type(plan, like=like)


def _numbered(
    frame: Frame | Mapping[str, Frame], first: Frame, groups: Sequence[str], columns: Columns
) -> tuple[Frame | Mapping[str, Frame], Columns]:
    """Number rows without items, as in learning to rank, and name their columns."""
    number = partial(readers.with_items, truth=None, by=groups, options=columns)
    numbered = number(first)
    if numbered is first:
        return frame, columns
    columns = column_roles.with_ids(columns, groups, {"run": numbered})
    names = adapters.column_names(numbered, "run")
    columns = column_roles.with_roles(columns, groups, names, ["relevance"])
    if isinstance(frame, Mapping):
        return {name: number(run) for name, run in frame.items()}, columns
    return numbered, columns


# ------------------------------------------------------------------ from plans to rows


def _counted(call: Call, schema: Types, _: pl.DataFrame) -> pl.DataFrame:
    """Run all plans, and return one row per count."""
    parts, problems = inputs.parts(call)
    groups = _groups(call, parts)
    rows: list[pl.DataFrame] = [_unreadable(table, text) for table, text in problems]
    whole = None if groups is None else groups.lazy()
    sections = [section for section in counts.sections(parts, call.k, whole) if section.measures]
    firsts = pl.collect_all(map(_plan, sections), engine="streaming")
    filled = [
        _filled(first, groups) if groups is not None and section.groups == groups.columns else first
        for section, first in zip(sections, firsts, strict=True)
    ]
    examples = _examples(sections, filled)
    for place, (section, values) in enumerate(zip(sections, filled, strict=True)):
        numbers = range(len(section.measures))
        rows += [_rows_of(section, values, n, examples.get((place, n))) for n in numbers]
    return _in_order(rows, call, schema)


def _groups(call: Call, parts: Mapping[str, Part]) -> pl.DataFrame | None:
    """List the groups of the run and the truth, for a dict also runs without a row."""
    run, truth = parts.get("run"), parts.get("truth")
    if run is None or not run.groups:
        return None
    groups = run.rows.select(run.groups).unique()
    if truth is not None and counts.common_groups(run, truth) == run.groups:
        groups = pl.concat([groups, truth.rows.select(run.groups)]).unique()
    result = groups.collect(engine="streaming")
    if call.runs and len(run.groups) == 1:
        runs = pl.DataFrame({run.groups[0]: call.runs}, schema=result.schema)
        result = pl.concat([result, runs]).unique()
    return result.sort(run.groups, nulls_last=True)


def _plan(section: Section) -> pl.LazyFrame:
    aggregates: list[pl.Expr] = []
    for number, measure in enumerate(section.measures):
        aggregates.append(measure.number.cast(pl.Int64).alias(f"count {number}"))
        if measure.of is not None:
            aggregates.append(measure.of.cast(pl.Int64).alias(f"of {number}"))
        if measure.least is not None:
            aggregates.append(measure.least.alias(f"least {number}"))
    if not section.groups:
        return section.frame.select(aggregates)
    return section.frame.group_by(section.groups).agg(aggregates)


def _filled(values: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Add the groups without a count."""
    joined = groups.join(values, on=groups.columns, how="left", nulls_equal=True)
    return joined.with_columns(pl.col("^(count|of) .*$").fill_null(0))


def _examples(
    sections: Sequence[Section], values: Sequence[pl.DataFrame]
) -> dict[tuple[int, int], pl.DataFrame]:
    """Fetch the rows that are examples: the least row of the least id."""
    places: list[tuple[int, int]] = []
    plans: list[pl.LazyFrame] = []
    for place, section in enumerate(sections):
        for number, measure in enumerate(section.measures):
            nonzero = values[place].filter(pl.col(f"count {number}") > 0)
            if measure.sample is not None and not nonzero.is_empty():
                sample, groups = measure.sample, section.groups
                least = nonzero.select(*groups, pl.col(f"least {number}").alias(measure.role))
                rows = sample.rows.filter(sample.broken)
                on = [*groups, measure.role]
                rows = rows.join(least.lazy(), on=on, how="semi", nulls_equal=True)
                if sample.among is None:
                    rows = rows.select(_shown(sample.part)).unique()
                places.append((place, number))
                plans.append(rows)
    fetched = zip(places, pl.collect_all(plans, engine="streaming"), strict=True)
    return {
        (place, number): _first(sections[place].measures[number], sections[place].groups, rows)
        for (place, number), rows in fetched
    }


def _shown(part: Part) -> list[str]:
    """Return the columns of an example."""
    placing = "given" if part.has("given") else "score"
    roles = ("user", "item", "subtopic", placing, "relevance", "time")
    by_name = {part.names[role]: role for role in (*part.groups, *roles) if part.has(role)}
    return list(by_name.values())


def _first(measure: Measure, groups: list[str], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the example of each group as text."""
    assert measure.sample is not None
    part, among = measure.sample.part, measure.sample.among
    shown = _shown(part)
    rows = (rows if among is None else rows.filter(among)).sort(shown, nulls_last=True)
    rows = rows.unique(groups, keep="first", maintain_order=True) if groups else rows.head(1)
    plain = rows.select(pl.col(name).alias(part.names[name]) for name in shown)
    texts = [rules.format_row(plain[place]) for place in range(plain.height)]
    return rows.select(*groups, pl.Series("example", texts, dtype=pl.String))


def _rows_of(
    section: Section, values: pl.DataFrame, number: int, examples: pl.DataFrame | None
) -> pl.DataFrame:
    measure = section.measures[number]
    count, of = pl.col(f"count {number}"), pl.col(f"of {number}")
    share = pl.lit(None, pl.Float64)
    if measure.of is not None:
        share = pl.when(of > 0).then(count / of)
    rows = values.select(
        *section.groups,
        pl.lit(section.table).alias("table"),
        pl.lit(measure.what).alias("what"),
        count.alias("count"),
        share.alias("share"),
    )
    if examples is not None:
        if not section.groups:
            return rows.hstack(examples)
        return rows.join(examples, on=section.groups, how="left", nulls_equal=True)
    texts: list[str | None] = [None] * rows.height
    if measure.least is not None and measure.sample is None:
        ids = values.select(pl.col(f"least {number}").alias(measure.name))
        texts = [
            rules.format_row(ids[place]) if values.item(place, f"count {number}") else None
            for place in range(rows.height)
        ]
    return rows.with_columns(pl.Series("example", texts, dtype=pl.String))


def _unreadable(table: str, text: str) -> pl.DataFrame:
    row = {"table": table, "what": "unreadable", "count": 1, "share": None, "example": text}
    return pl.DataFrame(row, schema_overrides=_MADE)


_ORDER = ("unreadable", "rows", "users", "items", "null_groups")
_SIZES = "^(rows|users|items|grades|grade_.*)$"
#: How far tables overlap: sound ones seldom do so entirely, and broken ids not at all.
_OVERLAPS = "(_unknown_to_|_never_listed$|^unjudged_at_)"


def _in_order(frames: Sequence[pl.DataFrame], call: Call, schema: Types) -> pl.DataFrame:
    """Sort problems, tables, groups and counts, and restore the caller's names of groups."""
    groups = {f"group {place}": name for place, name in enumerate(call.by)}
    rows = pl.concat(frames, how="diagonal_relaxed")
    absent = [name for name in groups if name not in rows.columns]
    rows = rows.with_columns(pl.lit(None).alias(name) for name in absent)
    tables = {name: place for place, name in enumerate(inputs.TABLES)}
    whats = {what: place for place, what in enumerate(_ORDER)}
    order = pl.col("what").replace_strict(whats, default=len(whats), return_dtype=pl.Int64)
    place = pl.col("table").replace_strict(tables, default=len(tables), return_dtype=pl.Int64)
    least = pl.when(pl.col("what").str.contains(_OVERLAPS)).then(1.0).otherwise(0.0)
    is_problem = (pl.col("count") > 0) & (pl.col("share").fill_null(1.0) >= least)
    is_size = pl.col("what").str.contains(_SIZES)
    rows = rows.with_columns(problem=pl.when(~is_size).then(is_problem))
    fine = ~pl.col("problem").fill_null(value=False)
    keys: list[pl.Expr] = []
    for group, name in groups.items():
        levels = call.orders.get(name, ())
        level = pl.col(group).replace_strict(levels, range(len(levels)), default=len(levels))
        keys += [pl.when(pl.col(group).is_not_null()).then(level), pl.col(group)]
    rows = rows.with_row_index("row").sort(fine, place, *keys, order, "row", nulls_last=False)
    result = rows.select("table", *(pl.col(a).alias(b) for a, b in groups.items()), *_MADE)
    return result.cast(pl.Schema(schema))
