"""What ``health`` counts in each table, and in two side by side.

Columns that are made here begin with ``PREFIX``, as no column of the caller does.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import polars as pl

from rankframe._health import blocks
from rankframe._request.labels import PREFIX
from rankframe._request.types import Types
from rankframe._tables import rank_order, readers, rules, side_tables
from rankframe._tables.rules import Rule
from rankframe._tables.table import Table, Tables

#: If a truth has more grades than this, only their number is reported.
_MOST_GRADES = 20

_RANK, _LISTED, _ROWS, _MET = (f"{PREFIX}{name}" for name in ("rank", "listed", "rows", "met"))
_GAP, _CROWDED, _CONSTANT = (f"{PREFIX}{name}" for name in ("gap", "crowded", "constant"))
_RELEVANT, _FORM, _ALIKE = (f"{PREFIX}{name}" for name in ("relevant", "form", "alike"))
_FIRST, _FIRST_OF_ALL, _PAIR = (f"{PREFIX}{name}" for name in ("first", "first_of_all", "pair"))
_all, _rank, _listed, _rows = pl.len(), pl.col(_RANK), pl.col(_LISTED), pl.col(_ROWS)
_met, _relevant = pl.col(_MET), pl.col(_RELEVANT)


class Sample(NamedTuple):
    """The candidates for an example: those of ``rows`` that are ``broken``, with these columns.

    If a row is broken together with others, ``among`` defines these rows of a user.
    """

    columns: Sequence[str]
    rows: pl.LazyFrame
    broken: pl.Expr
    among: pl.Expr | None = None


class Measure(NamedTuple):
    """A count, its total, and the least id that is counted, in the column ``of_id``."""

    what: str
    number: pl.Expr
    of: pl.Expr | None = None
    least: pl.Expr | None = None
    of_id: str = ""
    sample: Sample | None = None


class Section(NamedTuple):
    """Measures of one frame, by groups."""

    table: str
    frame: pl.LazyFrame
    groups: list[str]
    measures: list[Measure]


class Reduced(NamedTuple):
    """A table with its lists, and its users and items, which several counts read."""

    table: Table
    lists: Section
    of: dict[str, Table]


# ------------------------------------------------------------------ tables, ids and rows


def prepared(table: Table, types: Types, time: str | None = None) -> Table:
    """Keep the columns that are counted or shown; ids have common types, and numbers plain ones."""
    schema, casts = table.schema, {name: types[name] for name in table.ids}
    for name in (table.user, table.item):
        if isinstance(casts[name], pl.Categorical | pl.Enum):
            casts[name] = pl.String()
    wide = pl.Decimal | pl.Null | pl.Int128 | pl.UInt128
    for number in (table.rank, table.score, _second_score(table)):
        if number is not None and isinstance(schema[number], wide):
            casts[number] = pl.Float64()
    if table.relevance is not None:
        casts[table.relevance] = readers.type_of_relevance(table)
    names = [*rules.role_columns(table), *(["tied"] if table.tied else []), _second_score(table)]
    names += [time] if time in schema else []
    kept = {name: casts.get(name, schema[name]) for name in names if name is not None}
    places = ["rank"] if table.passed is not None and table.rank is None else []
    casted = [pl.col(name).cast(dtype) for name, dtype in kept.items()]
    frame = table.frame.select(*casted, *places)
    ungraded = table.ungraded
    if ungraded is not None:
        ungraded = ungraded.with_columns(pl.col(name).cast(types[name]) for name in table.by)
    return replace(table, frame=frame, schema=pl.Schema(kept), ungraded=ungraded)


def _second_score(table: Table) -> str | None:
    """Name the score of a table that has ranks, too, which shows what is a matter of ties."""
    has_score = table.rank is not None and table.schema.get("score", pl.String()).is_numeric()
    return "score" if has_score and "score" not in rules.role_columns(table) else None


def _ids(table: Table) -> dict[str, str]:
    """Return the columns of the user and the item; a catalogue has only items."""
    ids = {"user": table.user, "item": table.item}
    return {"item": table.item} if table.user == table.item else ids


def _rows_with(table: Table, *names: str) -> pl.LazyFrame:
    """Keep the rows whose ids are present."""
    return table.frame.filter(rules.is_present(table, name) for name in names)


def _distinct(table: Table, name: str) -> pl.LazyFrame:
    """Return each id once per group."""
    return _rows_with(table, name).select(*table.by, name).unique()


def _among(what: str, broken: pl.Expr, name: str, of: pl.Expr = _all) -> Measure:
    """Count the ids, one per row, for which a condition holds; by default as a share of all."""
    return Measure(what, broken.sum(), of, _least(name, broken), name)


def _least(name: str, broken: pl.Expr) -> pl.Expr:
    """Return the least id for which a condition holds; filter() is slow in groups."""
    return pl.when(broken).then(pl.col(name)).min()


def _of_rows(what: str, broken: pl.Expr, table: Table, rows: pl.LazyFrame | None = None) -> Measure:
    """Count rows for which a condition holds, as a share of all."""
    names = [name for role, name in _ids(table).items() if what != f"null_{role}s"]
    if not names:
        return Measure(what, broken.sum(), _all)
    name = names[0]
    sample = Sample(_shown(table), table.frame if rows is None else rows, broken)
    return Measure(what, broken.sum(), _all, _least(name, broken), name, sample)


def _shown(table: Table) -> list[str]:
    """Return the columns of an example."""
    hidden = {"tied", _second_score(table), _RANK, _LISTED}
    return [name for name in table.schema if name not in hidden]


# ------------------------------------------------------------------ rules


def _of_rules(table: Table, broken_rules: Iterable[Rule]) -> list[Measure]:
    """Count the rows that break a rule by themselves."""
    conditions: dict[str, list[pl.Expr]] = {}
    for rule in broken_rules:
        conditions.setdefault(rule.what, []).append(rule.broken)
    return [_of_rows(what, pl.any_horizontal(of), table) for what, of in conditions.items()]


def _of_lists_and_rules(
    table: Table,
    broken_rules: Iterable[Rule],
    aggregates: Sequence[pl.Expr] = (),
    measures: Sequence[Measure] = (),
) -> Section:
    """Count in lists, also the rows that break a rule together; of several, all but one."""
    columns, counted = [_all.alias(_ROWS), *aggregates], list[Measure]()
    rows, of = _rows_with(table, table.user), _rows.sum()
    for rule in broken_rules:
        if rule.surplus is not None:
            number = pl.col(f"{PREFIX}{rule.what}")
            columns.append(rule.surplus.cast(pl.Int64).alias(f"{PREFIX}{rule.what}"))
            # null items are only in their own count
            held = rules.is_present(table, rule.column if rule.column == table.item else table.user)
            sample = Sample(_shown(table), rows, held, rule.broken)
            least = _least(table.user, number > 0)
            counted.append(Measure(rule.what, number.sum(), of, least, table.user, sample))
    lists = rows.group_by(table.keys).agg(columns)
    return Section(table.name, lists, table.by, [*counted, *measures])


def _of_blocks(table: Table) -> Iterator[Section]:
    """Count the rows that break rules on blocks of ties."""
    for rule in rules.table_rules(table):
        if rule.surplus is None:
            rows = table.frame.with_columns(rule.broken.alias(_MET))
            yield Section(table.name, rows, table.by, [_of_rows(rule.what, _met, table, rows)])


# ------------------------------------------------------------------ each table


def sections(
    tables: Tables, k: int, time: str | None, groups: pl.LazyFrame | None
) -> Iterator[Section]:
    """Yield everything that can be counted, table by table."""
    judged = tables.truth is None and tables.has_truth
    run = prepared(tables.run, tables.types, time if judged else None)
    truth = None if tables.truth is None else prepared(tables.truth, tables.types, time)
    if judged:
        yield from _of_judged(run)
        run, truth = _split(run)
    ranked, placed = _ranked(run), replace(run, frame=run.frame.filter(_is_placed(run)))
    yield from _of_run(ranked)
    listed = _reduced(placed, _lists(ranked, k), _listed, **{_CROWDED: _is_tied_below(run, k)})
    listed = listed._replace(table=replace(ranked, frame=ranked.frame.filter(_listed)))
    yield listed.lists
    yield from _of_blocks(ranked)
    yield _items(listed)
    judgments = None
    if truth is not None:
        judgments = _reduced(truth, _users(truth), **{_RELEVANT: _grade(truth) > 0})
    if judgments is not None:
        yield from _of_truth(judgments)
        yield from _of_both(listed, judgments, k, groups)
    if (items := tables.beside.get("items")) is not None:
        yield from _of_items(prepared(items, tables.types), listed.of["item"], groups)
    if (history := tables.beside.get("history")) is not None:
        history = prepared(replace(history, name="history"), tables.types, time)
        lists = _of_lists_and_rules(
            history, rules.table_rules(history), (), [Measure("users", _all)]
        )
        events = _reduced(history, lists)
        yield from _of_history(events, listed, k)
        if judgments is not None:
            yield from _leaks(judgments, events, time)


def _of_judged(table: Table) -> Iterator[Section]:
    """Count what needs all rows of a judged table; run and truth have the rest."""
    neither = [rule for rule in rules.row_rules(table) if rule.what.startswith("neither")]
    yield Section(table.name, table.frame, table.by, _of_rules(table, neither))
    # if no judged row lacks a rank, recall knows of no item but those of the lists
    grade = _grade(table)
    missed, is_missed = (grade.is_not_null() & ~_is_placed(table)).any(), pl.col(_MET)
    rows = table.frame.with_columns(missed.alias(_MET))
    only = (grade > 0).fill_null(value=False) & ~is_missed
    count = _of_rows("relevant_only_from_lists", only, table, rows)
    yield Section(table.name, rows, table.by, [count._replace(of=(grade > 0).sum())])
    duplicates = [rule for rule in rules.table_rules(table) if rule.what == "duplicates"]
    items = replace(table, frame=_rows_with(table, table.item))
    yield _of_lists_and_rules(items, duplicates)


def _grade(table: Table) -> pl.Expr:
    """Return the relevance without NaN, which is greater than any number."""
    if table.relevance is None:
        return pl.lit(1)
    grade = pl.col(table.relevance)
    return grade.fill_nan(None) if table.schema[table.relevance].is_float() else grade


def _is_placed(table: Table) -> pl.Expr:
    """Whether a row has a rank, also one that is none, or a score."""
    return rules.is_retrieved(table) if table.rank is None else pl.col(table.rank).is_not_null()


def _split(table: Table) -> tuple[Table, Table]:
    """Split a judged table into its lists and its judgments."""
    assert table.relevance is not None
    of_run = {n: t for n, t in table.schema.items() if n != table.relevance}
    of_truth = {n: t for n, t in table.schema.items() if n not in (table.rank, table.score)}
    is_judged = pl.col(table.relevance).is_not_null()
    lacks_key = pl.any_horizontal(~rules.is_present(table, key) for key in table.keys)
    rows = {"run": _is_placed(table) | (lacks_key & ~is_judged), "truth": is_judged}
    run, truth = (replace(table, name=n, frame=table.frame.filter(of)) for n, of in rows.items())
    return (
        replace(run, schema=pl.Schema(of_run), relevance=None, rows=None),
        replace(truth, schema=pl.Schema(of_truth), rank=None, score=None, rows=None),
    )


def _ranked(run: Table) -> Table:
    """Mark the rows that are in a list, and compute ranks if there are only scores."""
    rows = run.frame.with_columns(_is_placed(run).alias(_LISTED))
    if run.rank is not None:
        rank = rules.as_rank(run.rank)
        is_rank = (rank == pl.col(run.rank)) & (rank >= 1)
        return replace(run, frame=rows.with_columns(pl.when(is_rank).then(rank).alias(_RANK)))
    if run.passed is not None:
        return replace(run, frame=rows.rename({"rank": _RANK}))
    rankable = pl.all_horizontal(_listed, *(rules.is_present(run, n) for n in (run.user, run.item)))
    score, item = pl.col(run.score or ""), pl.col(run.item)
    ranked = rank_order.with_positions(rows.filter(rankable), run.keys, run.schema, score, item)
    rest = rows.filter(~rankable).with_columns(rank=pl.lit(None, pl.Int64))
    every = pl.concat([ranked, rest.select(ranked.collect_schema().names())])
    return replace(run, frame=every.rename({"rank": _RANK}))


def _reduced(table: Table, lists: Section, number: pl.Expr = _rows, **any_of: pl.Expr) -> Reduced:
    """Reduce a table to its lists, and to the users and items of these.

    In lists that lie together, all columns are 0 but the number of rows and ``any_of`` rows.
    """
    frames = [_distinct(table, table.item), lists.frame]
    if table.rank is None and table.score is not None:
        # lists need ranks, which would be computed twice, or all rows be in memory
        frames[0] = frames[0].collect(engine="streaming").lazy()
    elif (together := blocks.items_and_lists(table, **any_of)) is None:
        frames = [frame.lazy() for frame in pl.collect_all(frames, engine="streaming")]
    else:
        types = [frame.collect_schema() for frame in frames]
        whole = together[1].with_columns(_rows.alias(_LISTED))
        absent = [pl.lit(0).alias(name) for name in types[1] if name not in whole.columns]
        whole = whole.with_columns(absent).select(*types[1])
        frames = [together[0].cast(types[0]).lazy(), whole.cast(types[1]).lazy()]
    ids = {"user": frames[1].filter(number > 0), "item": frames[0]}
    of = {role: replace(table, frame=ids[role]) for role in _ids(table)}
    return Reduced(table, lists._replace(frame=frames[1]), of)


def _items(of: Reduced) -> Section:
    """Count the items of a table."""
    return Section(of.table.name, of.of["item"].frame, of.table.by, [Measure("items", _all)])


def _of_run(run: Table) -> Iterator[Section]:
    """Count rows of a run."""
    measures = [Measure("rows", _all), *_of_rules(run, rules.row_rules(run))]
    if run.rank is not None:
        measures.append(_of_rows("null_ranks", pl.col(run.rank).is_null(), run))
    elif run.score is not None:
        score = pl.col(run.score)
        measures.append(_of_rows("null_scores", score.is_null(), run))
        if run.schema[run.score].is_float():
            measures.append(_of_rows("nan_scores", score.is_nan(), run))
    yield Section("run", run.frame, run.by, measures)


def _lists(run: Table, k: int) -> Section:
    """Count lists, and those worth a look for their length or what is at the cut-off."""
    top, covered = _rank.max(), _rank.drop_nulls().n_unique()
    if run.tied:
        top, covered = (_rank + rules.as_rank("tied") - 1).max(), _rank.count()
    crowded = (_rank <= k).sum() > k
    score = run.score or _second_score(run)
    if score is not None:
        at, below = (pl.when(_rank == place).then(pl.col(score)).max() for place in (k, k + 1))
        crowded |= at == below
    aggregates = [_listed.sum(), (top > covered).alias(_GAP), crowded.alias(_CROWDED)]
    user, has_list = run.user, _listed > 0
    of = has_list.sum()
    measures = [
        Measure("users", of),
        _among("short_lists", has_list & (_listed < k), user, of),
        _among("gaps", pl.col(_GAP), user, of),
        _among("ties_at_the_cut", pl.col(_CROWDED), user, of),
    ]
    if run.score is not None:
        value = pl.col(run.score).filter(_listed)
        constant = (value.len() > 1) & (value.min() == value.max())
        aggregates.append(constant.alias(_CONSTANT))
        of = (_listed > 1).sum()
        measures.append(_among("constant_scores", pl.col(_CONSTANT), user, of))
    return _of_lists_and_rules(run, rules.table_rules(run), aggregates, measures)


def _is_tied_below(run: Table, k: int) -> pl.Expr:
    """Whether a row, in lists in rank order, is the first below the cut-off and has its score."""
    score = run.score or _second_score(run)
    if score is None or run.rank is None:
        return pl.lit(value=False)
    return (rules.as_rank(run.rank) == k + 1) & (pl.col(score) == pl.col(score).shift(1))


def _users(truth: Table) -> Section:
    """Count the users of a truth."""
    counted = [Measure("users", _all), _among("users_without_relevant", ~_relevant, truth.user)]
    any_relevant = (_grade(truth) > 0).any().alias(_RELEVANT)
    return _of_lists_and_rules(truth, rules.table_rules(truth), [any_relevant], counted)


def _of_truth(of: Reduced) -> Iterator[Section]:
    """Count rows, grades and users of a truth."""
    truth = of.table
    measures = [Measure("rows", _all), *_of_rules(truth, rules.row_rules(truth))]
    if truth.relevance is not None:
        measures.append(_of_rows("negative_grades", pl.col(truth.relevance) < 0, truth))
    yield Section("truth", truth.frame, truth.by, measures)
    if truth.relevance is None:
        yield _unread(truth, truth.frame if truth.ungraded is None else truth.ungraded)
    yield of.lists
    yield _items(of)
    yield from _of_grades(truth)


def _unread(truth: Table, rows: pl.LazyFrame) -> Section:
    """Count the rows of 0, or False, in a column of two grades that nobody reads."""
    zeros = [pl.lit(value=False)]
    for name, dtype in rules.candidates(truth).items():
        zero = ~pl.col(name) if dtype == pl.Boolean else pl.col(name) == 0
        zeros.append(zero & rules.are_two_grades(*rules.grade_counts(name, dtype)))
    rows = rows.with_columns(pl.any_horizontal(zeros).alias(_MET))
    names = rows.collect_schema()
    columns = [name for name in [*_shown(truth), *rules.candidates(truth)] if name in names]
    measure = _of_rows("unread_grades", _met, truth, rows)
    sample = Sample(columns, rows, _met)
    return Section("truth", rows, truth.by, [measure._replace(sample=sample)])


def _of_grades(truth: Table) -> Iterator[Section]:
    """Count the rows of each grade, or if there are many grades, only the grades."""
    if truth.relevance is None:
        grades = replace(truth, frame=truth.frame.with_columns(pl.lit(1).alias(_MET)))
        name = _MET
    else:
        grades, name = truth, truth.relevance
    grade, rows = pl.col(name), grades.frame
    values = rows.select(grade.unique()).filter(grade.is_not_null()).sort(name)
    first = values.head(_MOST_GRADES + 2).collect(engine="streaming").to_series()
    finite = [grade for grade in first.to_list() if math.isfinite(grade)]
    measures = [Measure("grades", grade.drop_nulls().n_unique())]
    if len(finite) <= _MOST_GRADES:
        measures += [
            _of_rows(_grade_name(value), (grade == value).fill_null(value=False), grades)
            for value in finite
        ]
    yield Section("truth", rows, truth.by, measures)


def _grade_name(grade: float) -> str:
    return f"grade_{int(grade) if grade == int(grade) else grade!r}"


# ------------------------------------------------------------------ tables side by side


def _marked(
    left: pl.LazyFrame, right: pl.LazyFrame | pl.DataFrame, on: Sequence[str], flag: str = _MET
) -> pl.LazyFrame:
    """Mark the rows that are in the other table, which has each row once."""
    if isinstance(right, pl.DataFrame) and len(on) == 1:
        # 0.2 to 0.6 of the time of a join (November 2026)
        ids = right[on[0]].implode()
        return left.with_columns(pl.col(on[0]).is_in(ids, nulls_equal=True).alias(flag))
    flags = right.lazy().select(*on, pl.lit(value=True).alias(flag))
    marked = left.join(flags, on=on, how="left", nulls_equal=True)
    return marked.with_columns(pl.col(flag).fill_null(value=False))


def common_groups(left: Table, right: Table) -> list[str]:
    """Return the groups by which both tables are split."""
    return [name for name in left.by if name in right.by]


def _spread(
    ids: pl.LazyFrame, left: Table, right: Table, groups: pl.LazyFrame | None
) -> pl.LazyFrame:
    """Return the ids of the other table for each group of the run."""
    shared = common_groups(left, right)
    if groups is None or shared == left.by:
        return ids
    if not shared:
        return groups.join(ids, how="cross")
    return groups.join(ids, on=shared, nulls_equal=True)


def _unknown(table: Table, other: Table, role: str, name: str, what: str) -> Section:
    """Count the ids of a table that another one lacks."""
    shared, id_ = common_groups(table, other), _ids(table)[role]
    rows = other.frame.select(*shared, id_)
    ids = (rows if shared == other.by else rows.unique()).collect()
    marked = _marked(table.frame, ids, ids.columns)
    return Section(name, marked, table.by, [_among(what, ~_met, id_)])


def _unknown_to_truth(run: Table, truth: Table, role: str) -> Section:
    """Count the ids of the run that the truth lacks, or has in another form."""
    section, name = _unknown(run, truth, role, "both", f"{role}s_unknown_to_truth"), _ids(run)[role]
    marked, text = section.frame, pl.col(name)
    is_text = run.schema[name] == pl.String
    forms = {
        "case": text.str.strip_chars().str.to_lowercase(),
        "type": text.str.replace(r"^(-?\d+)\.0+$", "${1}"),
    }
    for difference, form in forms.items():
        measure = Measure(f"{role}_ids_differ_in_{difference}", pl.lit(0), _all)
        if is_text:
            on, flag = [*common_groups(run, truth), _FORM], f"{_ALIKE}_{difference}"
            rows = truth.frame.with_columns(form.alias(_FORM)).select(on).unique().collect()
            marked = _marked(marked.with_columns(form.alias(_FORM)), rows, on, flag)
            measure = _among(measure.what, pl.col(flag) & ~_met, name)
        section.measures.append(measure)
    return section._replace(frame=marked)


def _pairs(
    table: Table, other: Reduced, name: str, what: str, broken: pl.Expr, k: int | None = None
) -> Section:
    """Count rows, perhaps among the first k, whose pairs of ids are in another table or not."""
    ids, shared = (table.user, table.item), common_groups(table, other.table)
    rows, pairs = _rows_with(table, *ids), _rows_with(other.table, *ids)
    rows, on = rows if k is None else rows.filter(_rank <= k), [*shared, *ids]
    joined = _marked(rows, pairs.select(on).unique(), on)
    measure, marked = _of_rows(what, broken, table, joined), joined
    id_ranges = rank_order.id_ranges_of(table, other.table)
    codes = rank_order.pair_codes(*ids, table.schema, id_ranges)
    if codes is not None and not shared:  # 0.6 of the time of a join (November 2026)
        numbers = pairs.select(codes[1].alias(_PAIR))
        numbers = numbers.unique() if other.table.rows is None else numbers
        coded = rows.with_columns(codes[0].alias(_PAIR))
        marked = _marked(coded, numbers.collect(engine="streaming"), [_PAIR])
    return Section(name, marked, table.by, [measure])


def _of_both(
    listed: Reduced, judgments: Reduced, k: int, groups: pl.LazyFrame | None
) -> Iterator[Section]:
    """Count ids of the truth missing from the run, and ids of the run missing from the truth."""
    run, truth, of, of_truth = listed.table, judgments.table, listed.of, judgments.of
    user, users = run.user, of_truth["user"].frame
    users = _marked(_spread(users, run, truth, groups), of["user"].frame, run.keys)
    missed = _among("missed_users", _relevant & ~_met, user, _relevant.sum())
    yield Section("both", users, run.by, [Measure("users", _met.sum(), _all), missed])
    if groups is not None:
        marked = _marked(groups, users.filter(_met).select(run.by).unique(), run.by)
        alone = _among("groups_without_common_users", ~_met, run.by[-1])
        yield Section("both", marked, run.by, [alone])
    for fold in run.by:
        if fold not in truth.by and rules.is_fold(fold):
            several = of["user"].frame.group_by(user).agg(pl.col(fold).n_unique() > 1)
            several = several.rename({fold: _MET})
            yield Section("both", several, [], [_among("users_in_several_folds", _met, user)])
    unknown = [_unknown_to_truth(of[role], of_truth[role], role) for role in _ids(run)]
    yield from unknown
    yield _unlisted(unknown[-1], run, of_truth["item"], "items_unknown_to_run", groups)
    yield _pairs(run, judgments, "both", f"unjudged_at_{k}", ~_met, k)


def _unlisted(
    unknown: Section, run: Table, other: Table, what: str, groups: pl.LazyFrame | None
) -> Section:
    """Count the items of another table that are in no list, by those of the run it has."""
    ids = unknown.frame.filter(_met).select(*run.by, run.item).collect()
    marked = _marked(_spread(other.frame, run, other, groups), ids, ids.columns)
    return Section(unknown.table, marked, run.by, [_among(what, ~_met, run.item)])


def _of_items(items: Table, run: Table, groups: pl.LazyFrame | None) -> Iterator[Section]:
    """Count the items in the catalogue, and those missing from it."""
    of_items = list(side_tables.rules_of(items))
    items = replace(items, name="items")
    rows = _of_rules(items, [rule for rule in of_items if rule.surplus is None])
    yield Section("items", items.frame, items.by, [Measure("rows", _all), *rows])
    catalogue = _of_lists_and_rules(items, of_items, (), [Measure("items", _all)])
    yield catalogue
    items = replace(items, frame=catalogue.frame)
    unknown = _unknown(run, items, "item", "items", "items_unknown_to_catalogue")
    yield unknown
    yield _unlisted(unknown, run, items, "items_never_listed", groups)


def _of_history(events: Reduced, listed: Reduced, k: int) -> Iterator[Section]:
    """Count earlier events, and new users and items."""
    history, run = events.table, listed.table
    rows = _of_rules(history, side_tables.rules_of(history))
    yield Section("history", history.frame, history.by, [Measure("rows", _all), *rows])
    yield events.lists
    yield _items(events)
    for role in _ids(run):
        yield _unknown(
            listed.of[role], events.of[role], role, "history", f"{role}s_unknown_to_history"
        )
    yield _pairs(run, events, "history", f"seen_at_{k}", _met, k)


def _leaks(judgments: Reduced, events: Reduced, time: str | None) -> Iterator[Section]:
    """Count judgments that the history has, ids that it lacks, and events not before judgments."""
    truth, history = judgments.table, events.table
    yield _pairs(truth, events, "history", "truth_in_history", _met)
    for role in _ids(truth):
        what = f"truth_{role}s_unknown_to_history"
        yield _unknown(judgments.of[role], events.of[role], role, "history", what)
    if time is None:
        return
    user, shared, at = truth.user, common_groups(truth, history), pl.col(time)
    judged = _rows_with(truth, user)
    of_users = judged.group_by(*shared, user).agg(at.min().alias(_FIRST))
    rows = _rows_with(history, user).join(
        of_users, on=[*shared, user], how="left", nulls_equal=True
    )
    of_all = judged.group_by(shared or pl.lit(0).alias(_MET)).agg(at.min().alias(_FIRST_OF_ALL))
    if shared:
        rows = rows.join(of_all, on=shared, how="left", nulls_equal=True)
    else:
        rows = rows.join(of_all, how="cross")
    measures = [
        _of_rows("not_before_the_users_truth", at >= pl.col(_FIRST), history, rows),
        _of_rows("not_before_the_truth", at >= pl.col(_FIRST_OF_ALL), history, rows),
    ]
    yield Section("history", rows, history.by, measures)
