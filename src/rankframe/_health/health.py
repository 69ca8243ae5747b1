"""Counts of what is in the tables: missed users, short lists, duplicates, ids that never match."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Unpack

import polars as pl

from rankframe._health import counts
from rankframe._health.counts import Measure, Section
from rankframe._request import keywords
from rankframe._request.keywords import Columns, Duplicates, Settings
from rankframe._request.labels import PREFIX
from rankframe._request.types import Frame, FrameT, Runs, Truth, Types
from rankframe._tables import adapters, rank_order, readers, rules, run_dicts
from rankframe._tables.table import Table, Tables
from rankframe.errors import Problem, RankingDataError, option

_MADE: dict[str, pl.DataType] = {
    "what": pl.String(),
    "count": pl.Int64(),
    "share": pl.Float64(),
    "problem": pl.Boolean(),
    "example": pl.String(),
}


@adapters.takes_any_frame
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
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """Count what is in the tables and what is wrong with them, without an error for broken rules.

    Parameters
    ----------
    frame
        A run (user, item, rank or score), or a judged table; or a dict of these by name, as
        ``runs.stack`` takes it. It may be empty.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments of the run, such as fold or day. A truth with these columns is split,
        too.
    k
        The cut-off for short lists, ties at the cut, unjudged and seen items.
    items
        The catalogue: one row per item, with columns such as genres (a list of strings), a provider
        or a vector (a list of numbers).
    history
        Past interactions (user, item), for popularity (in distinct users), novelty and profiles.
    time
        The column of the truth and the history with the time of a row.
    duplicates
        ``"error"`` counts ``duplicates``. ``"first"`` and ``"occupy"`` count the lists with each
        item at its best place only: the items below its other places move up, or these places stay
        empty.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``truth_user=``, ``truth_item=``:
        those of the truth. ``user=`` may be a list of columns. ``model=None`` ignores a column
        ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per table, group and count: ``table`` (String: "run", "judged table", "truth",
        "both" = run and truth, "items", "history"), by… (null if the table is not split), ``what``
        (String), ``count`` (Int64), ``share`` (Float64, null if ``what`` is a size or there is
        nothing to divide by), ``problem`` (Boolean: whether something was found that is worth a
        look, null for sizes) and ``example`` (String: the least id or row that is counted, null if
        ``count`` is 0 or a size). Rows with a problem come first.

    Raises
    ------
    RankingDataError
        If a column is missing, has two roles or a type that cannot play its role, as in ``check``,
        or if a column of ``by`` has the name of a column of the result.

    Notes
    -----
    A row with count 0 means that nothing was found. Sizes (``rows``, ``users``, ``items``,
    ``grades``) and the rows of each grade describe the tables; all other counts are worth a look:
    ``found.filter("problem")``. Ids that are unknown to another table, never listed or unjudged are
    a problem only if all of them are, as when ids differ in type. Each rule on rows is counted;
    ``check`` raises an error for the first that is broken. Null and NaN ids are only in their own
    counts. A user has a list if at least one of the user's rows has a rank, or a score that is not
    NaN.

    *Run.* Sizes: ``rows``, ``users`` with a list, ``items`` in the lists. Of the rows:
    ``null_groups``, ``null_users``, ``null_items``, ``null_ranks`` or ``null_scores`` (not
    retrieved), ``nan_scores``, ``infinite_scores``, ``invalid_ranks`` (not an integer ≥ 1, or above
    2^53), ``duplicates`` (rows of an item beyond its first in the list) and ``shared_ranks`` (rows
    of a rank beyond its first); of blocks of ties, ``invalid_sizes_of_blocks``,
    ``wrong_sizes_of_blocks`` and ``ranks_inside_blocks``. Of the lists: ``short_lists`` (fewer than
    k items), ``gaps`` (a rank is skipped), ``ties_at_the_cut`` (scores or ranks do not determine
    the first k items) and ``constant_scores`` (all items have one score, share of the lists of two
    or more).

    *Judged table.* The same counts, of its rows with a rank as table "run", and of its judgments as
    table "truth"; rows without user or group that have neither are in "run". Of all rows:
    ``duplicates``, ``neither_rank_nor_relevance`` and, if no judged row of the whole table lacks a
    rank, ``relevant_only_from_lists`` (rows of grade > 0, share of these: no relevant item is known
    beyond the lists, so that recall is too high).

    *Truth.* Sizes: ``rows``, ``users``, ``items``, ``grades`` (distinct ones). Of the rows:
    ``null_users``, ``null_items``, ``null_relevances``, ``nonfinite_relevances`` (NaN or infinite),
    ``negative_grades``, ``duplicates``, and one count per grade, such as ``grade_0`` (of at most 20
    grades); without a relevance, ``unread_grades`` (0 or False, in a column of 0 and 1 or of
    booleans that plays no role). Of the users: ``users_without_relevant`` (no grade > 0).

    *Both.* ``users`` in both (share of the truth's), ``missed_users`` (without a list, share of the
    truth's users with a grade > 0), ``groups_without_common_users`` (1 for a group of ``by`` in
    which no user is in both tables), ``users_unknown_to_truth`` and ``items_unknown_to_truth``
    (share of the run's users and items), ``items_unknown_to_run`` (share of the truth's items),
    ``unjudged_at_10`` (rows among the first k without a judgment, share of these rows). Of the
    run's users or items: ``user_ids_differ_in_case`` (unknown to the truth, which has the same text
    in another case or with different surrounding spaces), ``user_ids_differ_in_type`` (unknown to
    the truth, which has the same id as text of a float, "7" and "7.0"), and the same two for items.
    With a column of folds that the truth lacks, ``users_in_several_folds``.

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
    judgments, not of rows, unless rows are in memory or ranks are computed from scores.

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
    k = keywords.whole_number("k", k)
    keywords.check_name("time", time)
    if time is not None and history is None:
        past = f"compares the truth with past events: pass {option('history')}"
        msg = f"{option('time', time)} {past}"
        raise ValueError(Problem(msg))
    run, groups, columns = run_dicts.as_frame(
        frame, by, columns, duplicates=duplicates, may_be_empty=True
    )
    rules.raise_if_taken("health", groups, ("table", *_MADE), "run, ")
    settings = Settings(items=items, history=history, duplicates=duplicates, columns=columns)
    both = _read(run, truth, groups, columns, time)
    tables = readers.with_tables_beside(both, settings)
    if time is not None:
        _check_time(time, tables.both[-1], tables.beside["history"])
    types = {name: tables.types[name] for name in tables.run.by}
    schema = {"table": pl.String(), **types, **_MADE}
    order = adapters.order_of(run)
    counted = partial(_counted, tables, k, time, schema, order)
    plan = adapters.in_one_step(pl.LazyFrame({"row": [0]}), counted, schema)
    return adapters.to_caller_type(plan, like=run)


def _read(
    run: Frame, truth: Truth | None, by: Sequence[str], columns: Columns, time: str | None
) -> list[Table]:
    """Read run and truth; a column of times that both have is the truth's."""
    if time is not None and truth is not None:
        opened = adapters.to_polars(run, "run")
        run = opened.drop(time) if time in opened.collect_schema() else opened
    reads, alone = [] if time is None else [time], truth is None
    return readers.read_run_and_truth(run, truth, by, columns, reads=reads, run_alone=alone)


def _check_time(time: str, judged: Table, history: Table) -> None:
    """Check that judgments and events have times, which can be compared."""
    for table in (judged, history):
        if time not in table.schema:
            has = ", ".join(map(repr, table.schema.names()))
            msg = f"{table.name}: no column {time!r} for {option('time')}; it has {has}"
            raise RankingDataError(msg)
    left, right = judged.schema[time], history.schema[time]
    try:
        empty = pl.LazyFrame(schema={"left": left, "right": right})
        empty.select(pl.col("left") >= pl.col("right")).collect()
    except pl.exceptions.PolarsError:
        msg = (
            f"column {time!r}: it is {left} in the {judged.name} and {right} in the history: cast "
            "one"
        )
        raise RankingDataError(msg) from None


# ------------------------------------------------------------------ from plans to rows


def _counted(
    tables: Tables,
    k: int,
    time: str | None,
    schema: Types,
    order: tuple[str, pl.Enum] | None,
    _: pl.DataFrame,
) -> pl.DataFrame:
    """Run all plans, and return one row per count."""
    groups = _groups(tables, order)
    whole = None if groups is None else groups.lazy()
    sections = list(counts.sections(tables, k, time, whole))
    # plans on frames do not share their steps, which takes 0.6 of the time
    flags = pl.QueryOptFlags(comm_subplan_elim=tables.run.rows is None or tables.run.rank is None)
    firsts = pl.collect_all(map(_plan, sections), engine="streaming", optimizations=flags)
    filled = [
        _filled(first, groups) if groups is not None and section.groups == groups.columns else first
        for section, first in zip(sections, firsts, strict=True)
    ]
    examples = _examples(sections, filled)
    rows: list[pl.DataFrame] = []
    for place, (section, values) in enumerate(zip(sections, filled, strict=True)):
        numbers = range(len(section.measures))
        rows += [_rows_of(section, values, n, examples.get((place, n))) for n in numbers]
    return _sorted_rows(rows, tables.run.by, schema)


def _groups(tables: Tables, order: tuple[str, pl.Enum] | None) -> pl.DataFrame | None:
    """List the groups of the run and the truth, for a dict also runs without a row."""
    by = tables.run.by
    if not by:
        return None
    types = {name: tables.types[name] for name in by}
    both = [table for table in tables.both if table.by == by]
    frames = [table.frame.select(pl.col(n).cast(t) for n, t in types.items()) for table in both]
    if order is not None and by == [order[0]]:
        frames.append(pl.LazyFrame({by[0]: order[1].categories}, schema=types))
    return rank_order.distinct(pl.concat(frames), by).sort(by).collect(engine="streaming")


def _plan(section: Section) -> pl.LazyFrame:
    aggregates: list[pl.Expr] = []
    for number, measure in enumerate(section.measures):
        aggregates.append(measure.number.cast(pl.Int64).alias(f"{PREFIX}count {number}"))
        if measure.of is not None:
            aggregates.append(measure.of.cast(pl.Int64).alias(f"{PREFIX}of {number}"))
        if measure.least is not None:
            aggregates.append(measure.least.alias(f"{PREFIX}least {number}"))
    if not section.groups:
        return section.frame.select(aggregates)
    return section.frame.group_by(section.groups).agg(aggregates)


def _filled(values: pl.DataFrame, groups: pl.DataFrame) -> pl.DataFrame:
    """Add the groups without a count."""
    joined = _joined(groups, values, groups.columns)
    return joined.with_columns(pl.col(f"^{PREFIX}(count|of) .*$").fill_null(0))


def _joined(left: pl.DataFrame, right: pl.DataFrame, groups: list[str]) -> pl.DataFrame:
    """Join by groups; the join of sorted keys in memory finds no NaN."""
    plan = left.lazy().join(
        right.lazy(), on=groups, how="left", nulls_equal=True, maintain_order="left"
    )
    return plan.collect(engine="streaming")


def _examples(
    sections: Sequence[Section], values: Sequence[pl.DataFrame]
) -> dict[tuple[int, int], pl.DataFrame]:
    """Fetch the rows that are examples: the least row of the least id."""
    places: list[tuple[int, int]] = []
    plans: list[pl.LazyFrame] = []
    for place, section in enumerate(sections):
        for number, measure in enumerate(section.measures):
            nonzero = values[place].filter(pl.col(f"{PREFIX}count {number}") > 0)
            if measure.sample is not None and not nonzero.is_empty():
                sample, groups = measure.sample, section.groups
                least = nonzero.select(
                    *groups, pl.col(f"{PREFIX}least {number}").alias(measure.of_id)
                )
                # the ids alone pass joins, which then read few rows: 0.03
                ids = pl.col(measure.of_id).is_in(least[measure.of_id].implode(), nulls_equal=True)
                rows = sample.rows.filter(sample.broken, ids)
                if groups:
                    on = [*groups, measure.of_id]
                    rows = rows.join(least.lazy(), on=on, how="semi", nulls_equal=True)
                if sample.among is None:
                    rows = rows.select(sample.columns).unique()
                places.append((place, number))
                plans.append(rows)
    fetched = zip(places, pl.collect_all(plans, engine="streaming"), strict=True)
    return {
        (place, number): _first(sections[place].measures[number], sections[place].groups, rows)
        for (place, number), rows in fetched
    }


def _first(measure: Measure, groups: list[str], rows: pl.DataFrame) -> pl.DataFrame:
    """Return the example of each group as text."""
    assert measure.sample is not None
    shown, among = measure.sample.columns, measure.sample.among
    rows = (rows if among is None else rows.filter(among)).sort(shown, nulls_last=True)
    rows = rows.unique(groups, keep="first", maintain_order=True) if groups else rows.head(1)
    plain = rows.select(shown)
    texts = [rules.format_row(plain[place]) for place in range(plain.height)]
    return rows.select(*groups, pl.Series("example", texts, dtype=pl.String))


def _rows_of(
    section: Section, values: pl.DataFrame, number: int, examples: pl.DataFrame | None
) -> pl.DataFrame:
    measure = section.measures[number]
    counts = values[f"{PREFIX}count {number}"]
    shares: list[float | None] = [None] * len(counts)
    if measure.of is not None:
        of = values[f"{PREFIX}of {number}"]
        shares = [count / total if total else None for count, total in zip(counts, of, strict=True)]
    columns = [
        *values.select(section.groups),
        pl.repeat(section.table, len(counts), eager=True).alias("table"),
        pl.repeat(measure.what, len(counts), eager=True).alias("what"),
        counts.alias("count"),
        pl.Series("share", shares, dtype=pl.Float64),
    ]
    if examples is not None:
        if not section.groups:
            return pl.DataFrame([*columns, *examples])
        return _joined(pl.DataFrame(columns), examples, section.groups)
    texts: list[str | None] = [None] * len(counts)
    if measure.least is not None and measure.sample is None:
        ids = values.select(pl.col(f"{PREFIX}least {number}").alias(measure.of_id))
        texts = [
            rules.format_row(ids[place]) if count else None for place, count in enumerate(counts)
        ]
    return pl.DataFrame([*columns, pl.Series("example", texts, dtype=pl.String)])


#: The first tables, and the first counts of a table.
_TABLES = ("run", "judged table", "truth", "both", "items", "history")
_NULLS = ("null_groups", "null_users", "null_items", "null_ranks", "null_scores", "nan_scores")
_WHATS = ("rows", "users", "items", *_NULLS)
_SIZES = "^(rows|users|items|grades|grade_.*)$"
#: How far tables overlap: sound ones seldom do so entirely, and broken ids not at all.
_OVERLAPS = "(_unknown_to_|_never_listed$|^unjudged_at_)"


def _sorted_rows(frames: Sequence[pl.DataFrame], by: Sequence[str], schema: Types) -> pl.DataFrame:
    """Sort problems, tables, groups and counts."""
    rows = pl.concat(frames, how="diagonal_relaxed")
    absent = [name for name in by if name not in rows.columns]
    rows = rows.with_columns(pl.lit(None).alias(name) for name in absent)
    places = [
        pl.col(name).replace_strict(
            dict(zip(words, range(len(words)), strict=True)),
            default=len(words),
            return_dtype=pl.Int64,
        )
        for name, words in (("table", _TABLES), ("what", _WHATS))
    ]
    least = pl.when(pl.col("what").str.contains(_OVERLAPS)).then(1.0).otherwise(0.0)
    is_problem = (pl.col("count") > 0) & (pl.col("share").fill_null(1.0) >= least)
    is_size = pl.col("what").str.contains(_SIZES)
    rows = rows.with_columns(problem=pl.when(~is_size).then(is_problem))
    fine = ~pl.col("problem").fill_null(value=False)
    order = [fine, places[0], *map(pl.col, by), places[1]]
    rows = rows.select(*schema).cast(pl.Schema(schema))
    return rows.sort(order, nulls_last=False, maintain_order=True)
