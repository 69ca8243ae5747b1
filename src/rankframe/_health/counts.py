"""What ``health`` counts in each table, and in two side by side."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import polars as pl

from rankframe._health import inputs
from rankframe._health.inputs import Part
from rankframe._tables import rank_order, rules

#: If a truth has more grades than this, only their number is reported.
_MOST_GRADES = 20

_user, _item, _rank, _given = pl.col("user"), pl.col("item"), pl.col("rank"), pl.col("given")
_score, _relevance, _time = pl.col("score"), pl.col("relevance"), pl.col("time")
_all, _met, _surplus = pl.len(), pl.col("met"), pl.col("surplus")


class _Sample(NamedTuple):
    """The candidates for an example: those of ``rows`` that are ``broken``.

    If a row is broken together with others, ``among`` defines these rows of a user.
    """

    part: Part
    rows: pl.LazyFrame
    broken: pl.Expr
    among: pl.Expr | None = None


class Measure(NamedTuple):
    """A count, its total, and the least id that is counted."""

    what: str
    number: pl.Expr
    of: pl.Expr | None = None
    least: pl.Expr | None = None
    role: str = "user"  # of the id
    sample: _Sample | None = None
    name: str = ""  # the caller's name of the id


class Section(NamedTuple):
    """Measures of one frame, by groups."""

    table: str
    frame: pl.LazyFrame
    groups: list[str]
    measures: list[Measure]


def _among(what: str, broken: pl.Expr, part: Part, role: str, of: pl.Expr = _all) -> Measure:
    """Count the ids, one per row, for which a condition holds; by default as a share of all."""
    least = pl.col(role).filter(broken).min()
    return Measure(what, broken.sum(), of, least, role, name=part.names[role])


def _of_rows(what: str, broken: pl.Expr, part: Part, rows: pl.LazyFrame | None = None) -> Measure:
    """Count rows for which a condition holds, as a share of all."""
    role = next((role for role in inputs.IDS if part.has(role) and what != f"null_{role}s"), "")
    sample = _Sample(part, part.rows if rows is None else rows, broken) if role else None
    least = pl.col(role).filter(broken).min() if role else None
    return Measure(what, broken.sum(), _all, least, role, sample)


def _nulls(part: Part) -> Iterator[Measure]:
    """Count missing ids."""
    if part.groups:
        broken = pl.any_horizontal(part.missing(group) for group in part.groups)
        yield _of_rows("null_groups", broken, part)
    for role in inputs.IDS:
        if part.has(role):
            yield _of_rows(f"null_{role}s", part.missing(role), part)


def _duplicates(part: Part, rows: pl.LazyFrame) -> Measure:
    twice = pl.struct([*part.keys, *_row(part)]).is_duplicated()
    sample = _Sample(part, rows, ~part.missing("item"), twice)
    least = _user.filter(_surplus > 0).min()
    return Measure("duplicates", _surplus.sum(), pl.col("rows").sum(), least, "user", sample)


def _row(part: Part) -> list[str]:
    """Return the columns that identify a row of a list."""
    return [role for role in ("item", "subtopic") if part.has(role)]


def _repeated(part: Part) -> list[pl.Expr]:
    """Count the rows of a list beyond the first of each item, if the table has items."""
    if not part.has("item"):
        return []
    columns = _row(part)
    row = pl.col(columns[0]) if len(columns) == 1 else pl.struct(columns)
    rows = row.filter(~part.missing("item"))
    return [(rows.len() - rows.n_unique()).cast(pl.Int64).alias("surplus")]


def _ids(part: Part, role: str) -> pl.LazyFrame:
    """Return each id once per group."""
    return part.rows_with(role).select(*part.groups, role).unique()


def _items(table: str, part: Part) -> Iterator[Section]:
    if part.has("item"):
        yield Section(table, _ids(part, "item"), part.groups, [Measure("items", _all)])


def sections(parts: dict[str, Part], k: int, groups: pl.LazyFrame | None) -> Iterator[Section]:
    """Yield everything that can be counted, table by table."""
    run, truth = parts.get("run"), parts.get("truth")
    items, history = parts.get("items"), parts.get("history")
    if run is not None and run.has("relevance"):
        yield from _of_judged(run)
        run, truth = _split(run)
    if run is not None:
        run = _listed(run)
        yield from _of_run(run, k)
        run = _lists_alone(run)
    if truth is not None:
        yield from _of_truth(truth)
    if run is not None and truth is not None:
        yield from _of_both(run, truth, k, groups)
    if items is not None:
        yield from _of_items(items, run, groups)
    if history is not None:
        yield from _of_history(history, run, k)
    if history is not None and truth is not None:
        yield from _leaks(truth, history)


def _of_judged(part: Part) -> Iterator[Section]:
    """Count what needs all rows of a judged table."""
    placing = [pl.col(name).is_null() for name in ("given", "score") if part.has(name)]
    if placing:
        broken = placing[0] & _relevance.is_null()
        if part.has("item"):  # without an item, the user has neither a list nor judgments
            broken &= _item.is_not_null()
        neither = _of_rows("neither_rank_nor_relevance", broken, part)
        yield Section("judged table", part.rows, part.groups, [neither])
        yield _beyond_lists(part)
    if part.has(*inputs.IDS):
        rows = part.rows_with(*inputs.IDS)
        lists = rows.group_by(part.keys).agg(*_repeated(part), rows=_all)
        yield Section("judged table", lists, part.groups, [_duplicates(part, rows)])


def _beyond_lists(part: Part) -> Section:
    """Count relevant rows of a table of which no judged row lacks a rank: recall knows no more."""
    floats = part.types["relevance"].is_float()
    grade = _relevance.fill_nan(None) if floats else _relevance
    missed = (grade.is_not_null() & ~_is_placed(part)).any()
    relevant = (grade > 0).fill_null(value=False)
    rows = part.rows.with_columns(missed=missed)
    count = _of_rows("relevant_only_from_lists", relevant & ~pl.col("missed"), part, rows)
    return Section("judged table", rows, part.groups, [count._replace(of=relevant.sum())])


def _is_placed(part: Part) -> pl.Expr:
    """Whether a row has a rank or, in a table without ranks, a score."""
    if part.has("given"):
        return _given.is_not_null()
    return (_score.fill_nan(None) if part.types["score"].is_float() else _score).is_not_null()


def _split(part: Part) -> tuple[Part, Part]:
    """Split a judged table into its lists and its judgments."""
    of_truth = {role: name for role, name in part.names.items() if role not in ("given", "score")}
    rows = part.rows
    if part.has("given") or part.has("score"):
        rows = rows.filter(_is_placed(part))
    run_names = {role: name for role, name in part.names.items() if role != "relevance"}
    truth = part._replace(rows=part.rows.filter(_relevance.is_not_null()), names=of_truth)
    return part._replace(rows=rows, names=run_names), truth


def _listed(part: Part) -> Part:
    """Mark the rows that are in a list, and compute ranks if there are only scores."""
    if part.has("given"):
        return part._replace(rows=part.rows.with_columns(listed=_given.is_not_null()))
    if not part.has("score"):
        return part._replace(rows=part.rows.with_columns(listed=pl.lit(value=True)))
    floats = part.types["score"].is_float()
    score = _score.fill_nan(None) if floats else _score
    rows = part.rows.with_columns(listed=score.is_not_null())
    if not part.has(*inputs.IDS):
        return part._replace(rows=rows)
    rankable = pl.col("listed") & ~part.missing("user") & ~part.missing("item")
    schema = part.rows.collect_schema()
    ranked = rank_order.with_positions(rows.filter(rankable), part.keys, schema, _score, _item)
    rest = rows.filter(~rankable).with_columns(rank=pl.lit(None, pl.Int64))
    return part._replace(rows=pl.concat([ranked, rest.select(ranked.collect_schema().names())]))


def _lists_alone(run: Part) -> Part:
    return run._replace(rows=run.rows.filter("listed"))


def _has_rank(run: Part) -> bool:
    return "rank" in run.rows.collect_schema()


def _of_run(run: Part, k: int) -> Iterator[Section]:
    """Count rows, lists and items of a run."""
    measures = [Measure("rows", _all), *_nulls(run)]
    if run.has("given"):
        measures.append(_of_rows("null_ranks", _given.is_null(), run))
        broken = _given.is_not_null() & _rank.is_null()
        measures.append(_of_rows("invalid_ranks", broken, run))
    elif run.has("score"):
        measures.append(_of_rows("null_scores", _score.is_null(), run))
        if run.types["score"].is_float():
            measures.append(_of_rows("nan_scores", _score.is_nan(), run))
            measures.append(_of_rows("infinite_scores", _score.is_infinite(), run))
    yield Section("run", run.rows, run.groups, measures)
    if run.has("user"):
        yield Section("run", _lists(run, k), run.groups, list(_of_lists(run, k)))
    yield from _items("run", _lists_alone(run))


def _lists(run: Part, k: int) -> pl.LazyFrame:
    """Return one row per list: its length, its duplicates, and the items at its cut-off."""
    aggregates = [_all.alias("rows"), pl.col("listed").sum().alias("listed"), *_repeated(run)]
    if _has_rank(run):
        top, crowded = _rank.max(), (_rank <= k).sum() > k
        covered = _rank.drop_nulls().n_unique()
        if run.has("tied"):
            top, covered = (_rank + rules.as_rank("tied") - 1).max(), _rank.count()
        if run.has("score"):
            at, below = (pl.when(_rank == place).then(_score).max() for place in (k, k + 1))
            crowded = crowded | (at == below)
        aggregates += [(top > covered).alias("gap"), crowded.alias("crowded")]
        aggregates.append((_rank.count() - _rank.drop_nulls().n_unique()).alias("shared"))
    if run.has("score") and not run.has("given"):
        score = _score.filter("listed")
        aggregates.append(((score.len() > 1) & (score.min() == score.max())).alias("constant"))
    return run.rows_with("user").group_by(run.keys).agg(aggregates)


def _of_lists(run: Part, k: int) -> Iterator[Measure]:
    listed = pl.col("listed") > 0
    of = listed.sum()
    yield Measure("users", of)
    rows = run.rows_with("user")
    if run.has("item"):
        yield _duplicates(run, rows)
    if run.has("given") and not run.has("tied"):
        twice = pl.struct([*run.keys, "rank"]).is_duplicated() & _rank.is_not_null()
        sample = _Sample(run, rows, _rank.is_not_null(), twice)
        shared = pl.col("shared")
        least = _user.filter(shared > 0).min()
        yield Measure("shared_ranks", shared.sum(), pl.col("rows").sum(), least, "user", sample)
    yield _among("short_lists", listed & (pl.col("listed") < k), run, "user", of)
    if _has_rank(run):
        yield _among("gaps", pl.col("gap"), run, "user", of)
        yield _among("ties_at_the_cut", pl.col("crowded"), run, "user", of)
    if run.has("score") and not run.has("given"):
        several = (pl.col("listed") > 1).sum()
        yield _among("constant_scores", pl.col("constant"), run, "user", several)


def _of_truth(truth: Part) -> Iterator[Section]:
    """Count rows, grades and users of a truth."""
    groups = truth.groups
    measures = [Measure("rows", _all), *_nulls(truth)]
    if truth.has("relevance"):
        measures.append(_of_rows("null_relevances", _relevance.is_null(), truth))
        if truth.types["relevance"].is_float():
            measures.append(_of_rows("nonfinite_relevances", ~_relevance.is_finite(), truth))
        measures.append(_of_rows("negative_grades", _relevance < 0, truth))
    yield Section("truth", truth.rows, groups, measures)
    if truth.has("user"):
        rows = truth.rows_with("user")
        aggregates = [_all.alias("rows"), _is_relevant(truth), *_repeated(truth)]
        counts = [Measure("users", _all)]
        counts.append(_among("users_without_relevant", ~pl.col("relevant"), truth, "user"))
        if truth.has("item"):
            counts.append(_duplicates(truth, rows))
        yield Section("truth", rows.group_by(truth.keys).agg(aggregates), groups, counts)
    yield from _items("truth", truth)
    yield from _of_grades(truth)


def _is_relevant(truth: Part) -> pl.Expr:
    """Return whether a user has an item of grade > 0."""
    if not truth.has("relevance"):
        return pl.lit(value=True).alias("relevant")
    floats = truth.types["relevance"].is_float()  # NaN is greater than any number
    grade = _relevance.fill_nan(None) if floats else _relevance
    return (grade > 0).any().alias("relevant")


def _of_grades(truth: Part) -> Iterator[Section]:
    """Count the rows of each grade, or if there are many grades, only the grades."""
    rows = truth.rows
    if not truth.has("relevance"):
        rows = rows.with_columns(relevance=pl.lit(1))
    part = truth._replace(rows=rows)
    grades = rows.select(_relevance.unique()).filter(_relevance.is_not_null()).sort("relevance")
    first = grades.head(_MOST_GRADES + 2).collect(engine="streaming").to_series()
    finite = [grade for grade in first.to_list() if math.isfinite(grade)]
    distinct = _relevance.drop_nulls().n_unique()
    yield Section("truth", rows, truth.groups, [Measure("grades", distinct)])
    if len(finite) <= _MOST_GRADES:
        measures = [
            _of_rows(_grade_name(grade), (_relevance == grade).fill_null(value=False), part)
            for grade in finite
        ]
        yield Section("truth", rows, truth.groups, measures)


def _grade_name(grade: float) -> str:
    return f"grade_{int(grade) if grade == int(grade) else grade!r}"


# ------------------------------------------------------------------ tables side by side


def _marked(
    left: pl.LazyFrame, right: pl.LazyFrame, on: Sequence[str], flag: str, *, apart: bool
) -> pl.LazyFrame:
    """Mark the rows that are in the other table; none if types are incompatible."""
    if apart:
        return left.with_columns(pl.lit(value=False).alias(flag))
    flags = right.select(on).unique().with_columns(pl.lit(value=True).alias(flag))
    marked = left.join(flags, on=on, how="left", nulls_equal=True)
    return marked.with_columns(pl.col(flag).fill_null(value=False))


def common_groups(left: Part, right: Part) -> list[str]:
    """Return the groups by which both tables are split."""
    both = [group for group in left.groups if group in right.groups]
    return [group for group in both if not inputs.apart(left, right, group)]


def _spread(
    ids: pl.LazyFrame, left: Part, right: Part, groups: pl.LazyFrame | None
) -> pl.LazyFrame:
    """Return the ids of the other table for each group of the run."""
    shared = common_groups(left, right)
    rest = [group for group in right.groups if group not in shared]
    ids = ids.drop(rest).unique() if rest else ids
    if groups is None or shared == left.groups:
        return ids
    if not shared:
        return groups.join(ids, how="cross")
    return groups.join(ids, on=shared, nulls_equal=True)


def _in_other(rows: pl.LazyFrame, part: Part, other: Part, *roles: str) -> pl.LazyFrame:
    """Mark the rows of a table whose ids are in another one, in the groups of both."""
    apart = any(inputs.apart(part, other, role) for role in roles)
    on = [*common_groups(part, other), *roles]
    return _marked(rows, other.rows_with(*roles), on, "met", apart=apart)


def _unknown(part: Part, other: Part, role: str, table: str, what: str) -> Iterator[Section]:
    """Count the ids of a table that another one lacks."""
    if part.has(role) and other.has(role):
        marked = _in_other(_ids(part, role), part, other, role)
        yield Section(table, marked, part.groups, [_among(what, ~_met, part, role)])


def _unknown_to_truth(run: Part, truth: Part, role: str) -> Iterator[Section]:
    """Count the ids of the run that the truth lacks, or has in another form."""
    for section in _unknown(run, truth, role, "both", f"{role}s_unknown_to_truth"):
        marked, measures = section.frame, section.measures
        on, rows = [*common_groups(run, truth), "form"], truth.rows_with(role)
        comparable = pl.String in (_plain_type(run, role), _plain_type(truth, role))
        comparable = comparable or inputs.apart(run, truth, role)
        for difference, form in (("case", _folded), ("type", _as_text)):
            own_form, other_form = form(role, run.types[role]), form(role, truth.types[role])
            alike = pl.lit(value=False)
            if comparable and own_form is not None and other_form is not None:
                marked = marked.with_columns(own_form.alias("form"))
                forms = rows.with_columns(other_form.alias("form"))
                marked = _marked(marked, forms, on, difference, apart=False)
                alike = pl.col(difference) & ~_met
            measures.append(_among(f"{role}_ids_differ_in_{difference}", alike, run, role))
        yield section._replace(frame=marked)


def _plain_type(part: Part, role: str) -> pl.DataType:
    categories = isinstance(part.types[role], pl.Categorical | pl.Enum)
    return pl.String() if categories else part.types[role]


def _folded(role: str, dtype: pl.DataType) -> pl.Expr | None:
    """Normalize case and surrounding spaces of an id, if it is text."""
    if not isinstance(dtype, pl.String | pl.Categorical | pl.Enum):
        return None
    return pl.col(role).str.strip_chars().str.to_lowercase()


def _as_text(role: str, dtype: pl.DataType) -> pl.Expr | None:
    """Convert an id to text, and whole floats like integers."""
    if isinstance(dtype, pl.Duration | pl.Binary):
        return None
    return pl.col(role).cast(pl.String, strict=False).str.replace(r"^(-?\d+)\.0+$", "${1}")


def _pairs(
    part: Part, other: Part, table: str, what: str, broken: pl.Expr, k: int | None = None
) -> Iterator[Section]:
    """Count rows, perhaps among the first k, whose pairs of ids are in another table or not."""
    ids = inputs.IDS
    if part.has(*ids) and other.has(*ids) and (k is None or _has_rank(part)):
        rows = part.rows_with(*ids)
        rows = rows if k is None else rows.filter(_rank <= k)
        marked = _in_other(rows, part, other, *ids)
        yield Section(table, marked, part.groups, [_of_rows(what, broken, part, marked)])


def _of_both(run: Part, truth: Part, k: int, groups: pl.LazyFrame | None) -> Iterator[Section]:
    """Count ids of the truth missing from the run, and ids of the run missing from the truth."""
    shared = common_groups(run, truth)
    if run.has("user") and truth.has("user"):
        users = truth.rows_with("user").group_by([*shared, "user"]).agg(_is_relevant(truth))
        users = _spread(users, run, truth._replace(groups=shared), groups)
        on, apart = [*run.groups, "user"], inputs.apart(run, truth, "user")
        users = _marked(users, run.rows_with("user"), on, "met", apart=apart)
        relevant = pl.col("relevant")
        missed = _among("missed_users", relevant & ~_met, truth, "user", relevant.sum())
        yield Section("both", users, run.groups, [Measure("users", _met.sum(), _all), missed])
        if groups is not None and run.groups == groups.collect_schema().names():
            both = users.filter(_met).select(run.groups)
            marked = _marked(groups, both, run.groups, "met", apart=False)
            alone = _among("groups_without_common_users", ~_met, run, run.groups[-1])
            yield Section("both", marked, run.groups, [alone])
    for role in inputs.IDS:
        yield from _unknown_to_truth(run, truth, role)
    yield from _unlisted(run, truth, "both", "items_unknown_to_run", groups)
    yield from _pairs(run, truth, "both", f"unjudged_at_{k}", ~_met, k)


def _unlisted(
    run: Part, other: Part, table: str, what: str, groups: pl.LazyFrame | None
) -> Iterator[Section]:
    """Count the items of another table that are in no list."""
    if not (run.has("item") and other.has("item")):
        return
    ids = _spread(_ids(other, "item"), run, other, groups)
    on, apart = [*run.groups, "item"], inputs.apart(run, other, "item")
    marked = _marked(ids, run.rows_with("item"), on, "met", apart=apart)
    yield Section(table, marked, run.groups, [_among(what, ~_met, other, "item")])


def _of_items(items: Part, run: Part | None, groups: pl.LazyFrame | None) -> Iterator[Section]:
    """Count the items in the catalogue, and those missing from it."""
    yield Section("items", items.rows, items.groups, [Measure("rows", _all), *_nulls(items)])
    if not items.has("item"):
        return
    rows = items.rows_with("item").group_by(*items.groups, "item")
    counts = rows.agg(rows=_all, surplus=(_all - 1).cast(pl.Int64))
    least, name = _item.filter(_surplus > 0).min(), items.names["item"]
    of = pl.col("rows").sum()
    duplicates = Measure("duplicates", _surplus.sum(), of, least, "item", name=name)
    yield Section("items", counts, items.groups, [Measure("items", _all), duplicates])
    if run is not None:
        yield from _unknown(run, items, "item", "items", "items_unknown_to_catalogue")
        yield from _unlisted(run, items, "items", "items_never_listed", groups)


def _of_history(history: Part, run: Part | None, k: int) -> Iterator[Section]:
    """Count earlier events, and new users and items."""
    groups = history.groups
    yield Section("history", history.rows, groups, [Measure("rows", _all), *_nulls(history)])
    if history.has(*inputs.IDS):
        rows = history.rows_with("user")
        lists = rows.group_by(history.keys).agg(*_repeated(history), rows=_all)
        counts = [Measure("users", _all), _duplicates(history, rows)]
        yield Section("history", lists, groups, counts)
    yield from _items("history", history)
    if run is not None:
        for role in inputs.IDS:
            yield from _unknown(run, history, role, "history", f"{role}s_unknown_to_history")
        yield from _pairs(run, history, "history", f"seen_at_{k}", _met, k)


def _leaks(truth: Part, history: Part) -> Iterator[Section]:
    """Count judgments that the history has, ids that it lacks, and events not before judgments."""
    yield from _pairs(truth, history, "history", "truth_in_history", _met)
    for role in inputs.IDS:
        what = f"truth_{role}s_unknown_to_history"
        yield from _unknown(truth, history, role, "history", what)
    if not (truth.has("user", "time") and history.has("user", "time")):
        return
    shared, first, own_first = common_groups(truth, history), "first of all", "first"
    rows, judgments = history.rows_with("user"), truth.rows_with("user")
    if inputs.apart(truth, history, "user"):
        rows = rows.with_columns(pl.lit(None, truth.types["time"]).alias(own_first))
    else:
        of_users = judgments.group_by(*shared, "user").agg(_time.min().alias(own_first))
        rows = rows.join(of_users, on=[*shared, "user"], how="left", nulls_equal=True)
    of_all = judgments.group_by(shared or pl.lit(0).alias("all")).agg(_time.min().alias(first))
    if shared:
        rows = rows.join(of_all, on=shared, how="left", nulls_equal=True)
    else:
        rows = rows.join(of_all, how="cross")
    measures = [
        _of_rows("not_before_the_users_truth", _time >= pl.col(own_first), history, rows),
        _of_rows("not_before_the_truth", _time >= pl.col(first), history, rows),
    ]
    yield Section("history", rows, history.groups, measures)
