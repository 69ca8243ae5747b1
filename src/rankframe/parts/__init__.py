"""Metrics of tables in parts: for Dask, Ray, mapped tasks, processes or days.

All rows of a user are in one part, those of the run and those of the truth. Then ``sums`` of each
part, put together by ``combine``, are what ``evaluate`` returns for the whole tables, and the rows
of ``values`` are what ``summarize`` and ``compare`` take. ``facts`` are what a part must know about
the whole.

``items=`` and ``history=`` are facts of the whole as well: pass them whole to each part. A part may
be empty, may lack a model, and may share no user with its truth. ``part=`` gives it a key, such as
its day, by which a part that was computed again is known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, TypeVar, Unpack, cast, get_args, overload

import polars as pl

from rankframe._evaluation import evaluation, user_columns
from rankframe._evaluation.values import Values
from rankframe._request import keywords, wrong_keywords
from rankframe._request.keywords import Options, Settings
from rankframe._request.labels import Metric
from rankframe._request.question import Totals, ask
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, readers, rules, run_dicts
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.parts import _groups, _numbers, _partitions, _recipes
from rankframe.parts._recipes import Duplicates
from rankframe.presets import Users

__all__ = ["combine", "facts", "merge", "sums", "values"]


def __dir__() -> list[str]:
    return [*__all__]


#: What ``facts`` returns: a dict that JSON can hold.
Facts: TypeAlias = dict[str, Any]
T = TypeVar("T")

_FACTS = ("users", "top_grade", "by", "groups")
_UNGRADED = "ungraded"  # counts of values, if the truth has no relevance, but may have grades


@adapters.takes_any_frame
def facts(
    frame: Runs[Frame],
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[Options],
) -> Facts:
    """
    Return what parts must know about the whole tables: top grade, groups and number of users.

    Parameters
    ----------
    frame
        The whole run or judged table, as ``evaluate`` takes it, or a part of it: see ``merge``.
    truth
        The truth that judges the run: whole, or of the same part.
    by
        Columns of segments, such as country, fold or day.
    **options
        The keywords of ``sums``, so that both take the same ones; only the columns that play the
        roles are read.

    Returns
    -------
    dict
        ``users``, their number in either table, where each (day, user) counts as one if both tables
        have the column of ``by``; ``top_grade``, the highest grade of the truth; ``by``, the
        columns of ``by`` that the truth lacks, with their types; ``groups``, the values of these
        columns. For a truth without a relevance, ``ungraded`` has the number of values 0 and 1 of
        its other numeric columns, which are grades if they have both and no other value.
        It can be stored as JSON.

    Raises
    ------
    RankingDataError
        If columns do not fit.

    Examples
    --------
    >>> run = pl.DataFrame(
    ...     {"model": ["a", "b", "b"], "user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 1, 1]}
    ... )
    >>> truth = pl.DataFrame({"user": [1, 3], "item": [8, 7], "relevance": [2, 1]})
    >>> rf.parts.facts(run, truth=truth, by="model")
    {'users': 3, 'top_grade': 2, 'by': {'model': 'String'}, 'groups': [['a'], ['b']]}
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, whole=False)
    columns = keywords.read_options(options).columns
    tables = _partitions.tables_of(frame, truth, by, columns)
    lacking = _partitions.lacking_of(tables)
    groups = _partitions.groups_of(tables[0], lacking).sort(lacking)
    possible = rules.candidates(tables[-1])
    names = [name for pair in possible.items() for name in rules.count_names(*pair)]
    counts = _partitions.seen_of(tables).filter(pl.col("of").is_in(["users", *names]))
    frames = [counts, _partitions.top_grade_of(tables), *([groups] if lacking else [])]
    counted, grades, *group_frames = pl.collect_all(frames)
    grade = grades.item()
    grade = int(grade) if isinstance(grade, int) else grade
    numbers = {of: int(number) for of, number in counted.iter_rows()}
    types = {name: tables[0].schema[name] for name in lacking}
    return _facts(numbers, grade, types, group_frames[0] if group_frames else pl.DataFrame())


@overload
def merge(parts: Iterable[Facts]) -> Facts: ...
@overload
def merge(parts: Iterable[FrameT], *, duplicates: Duplicates = "error") -> FrameT: ...
@wrong_keywords.checked
def merge(parts: Iterable[Any], *, duplicates: Duplicates = "error") -> Any:
    """
    Merge facts of parts into facts of the whole, or sums of parts into sums of them together.

    Parameters
    ----------
    parts
        What ``facts`` returned for each part, if no process sees the whole; or what ``sums``
        returned, for a tree of tasks; or what ``values`` returned with ``part=``. Merged ones can
        be merged again, in any order.
    duplicates
        What happens to a part that comes twice. Parts with keys are the same if their keys are;
        where one has no key, if their groups and users are the same. ``"error"`` raises an error;
        with ``"last"``, the frame that comes later replaces the earlier one, wholly. Facts have no
        keys.

    Returns
    -------
    dict, DataFrame, LazyFrame or pandas.DataFrame
        Facts as ``facts`` returns them, sums as ``sums`` does, which ``combine`` takes and which
        keep the keys of all parts, or the rows of all values. For a LazyFrame, a LazyFrame of what
        was collected at the call.

    Raises
    ------
    RankingDataError
        If the parts are from different calls, or a part comes twice.
    ValueError
        If there is no part.

    Examples
    --------
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7], "relevance": [2, 1]})
    >>> run = truth.select("user", "item", rank=1)
    >>> days = [rf.parts.facts(run.filter(user=u), truth=truth.filter(user=u)) for u in (1, 2)]
    >>> rf.parts.merge(days)
    {'users': 2, 'top_grade': 2, 'by': {}, 'groups': []}
    """
    keywords.check_choice("duplicates", duplicates, get_args(Duplicates))
    several: list[Any] = [parts] if adapters.is_frame(parts) else list(parts)
    if any(isinstance(part, Mapping) for part in several):
        if duplicates != "error":
            msg = f"duplicates={duplicates!r}: facts have no key: leave out those that come twice"
            raise ValueError(msg)
        return _merged_facts([_checked_facts(part) for part in several])
    if several and all(adapters.is_frame(part) and _are_values(part) for part in several):
        return _merged_values(several, duplicates)
    small, first = _stacked(several, duplicates)
    return adapters.to_caller_type(_recipes.added(small).lazy(), like=first)


@adapters.takes_any_frame
def sums(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    facts: Facts | None = None,
    part: str | None = None,
    count_users: bool = False,
    **options: Unpack[Options],
) -> FrameT:
    """
    Add up the metrics of a part of the users, for ``combine`` to add up all parts.

    Parameters
    ----------
    frame
        All rows of some users of a run or a judged table, as ``evaluate`` takes it.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        All rows of the same users of the truth.
    by
        Columns of segments, such as country, fold or day.
    facts
        The facts of the whole tables. They may be left out where no metric reads the highest grade
        of the truth, and the truth has the columns ``by``.
    part
        The key of the part, such as its day: ``part="2026-11-01"``. ``combine`` and ``merge`` know
        by it a part that was computed again, also with other users. Without a key, they know only a
        part with the same groups and users.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.
        ``items`` and ``history`` are whole tables.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        A small frame, one row per number: ``group`` (the values of ``by`` as JSON), ``entry`` (what
        the number is), ``of`` (the metric, or the value of an item's column) and ``number``
        (Float64), with one row for the recipe, and one for the part: its key, and a hash of its
        groups and users in either table. Its size depends on the groups and metrics, and for
        metrics of all lists on the catalogue. No value is null, so it survives Parquet, Arrow, CSV
        and pandas. Several can be concatenated into one.

    Raises
    ------
    RankingDataError
        If the part has a grade or a group that the facts lack.
    ValueError
        If facts are needed and not passed.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> small = rf.parts.sums(run.filter(user=1), "rr", truth=truth.filter(user=1))
    >>> small.filter(pl.col("entry").is_in(["users", "count", "sum"])).rows()
    [('[]', 'users', '', 1.0), ('[]', 'count', 'rr', 1.0), ('[]', 'sum', 'rr', 0.5)]
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, whole=False)
    settings = keywords.read_options(options, takes_bounds=True, count_users=count_users)
    _check_part(part)
    own = _part(frame, truth, by, settings, facts)
    question = ask(own.frame, metrics, truth, by, settings, totals=own.totals)
    plan = evaluation.plan_means(question)
    _check_needs(plan, settings, facts)
    key = _recipes.of_part(plan.source.tables.both, part)
    small = pl.concat(
        [_recipes.small_frame(plan, settings, facts), key, *own.checks(_numbers.SCHEMA)]
    )
    return adapters.to_caller_type(small, like=frame, beside=question.beside)


@adapters.takes_any_frame
def combine(
    parts: FrameT | Iterable[FrameT], *, total: bool = False, duplicates: Duplicates = "error"
) -> FrameT:
    """
    Return the means over all users from the sums of all parts.

    Parameters
    ----------
    parts
        What ``sums`` returned for each part, in any order, or ``merge`` for some of them; or one
        frame of them all, such as ``pl.read_parquet("sums/*.parquet")``.
    total
        Add a row for all users, in which the column ``by`` is null. With several columns the first
        one stays: ``by=["model", "country"]`` adds one row per model, in which the country is null.
    duplicates
        What happens to a part that comes twice. Parts with keys are the same if their keys are;
        where one has no key, if their groups and users are the same. ``"error"`` raises an error;
        with ``"last"``, the frame that comes later replaces the earlier one, wholly.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The frame of ``evaluate`` for the whole tables: the same rows, users and counts, and the
        same bits of means. For a LazyFrame, a LazyFrame of what was collected at the call.

    Raises
    ------
    RankingDataError
        If the parts are from different calls, a part comes twice, a table is empty in all of them,
        no user is in both tables, or the number of users differs from that in the facts: a part is
        missing, or a user is in several parts.
    ValueError
        If there is no part.

    Notes
    -----
    Without facts of the whole, or with facts that were merged from the same parts, a user in
    several parts that differ otherwise is not detected: split by a hash of the user, never by rows.

    Parts have exact sums, which are rounded once, as in ``evaluate``. Means agree in about 15
    significant digits only where these do not fit: the sizes of all values add up to more than
    2^38, or their mean size is below 2^-36; or a weight times its value is below 2^-35 of the
    greatest weight. Metrics of all lists agree in about 15 digits as well.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> parts = [
    ...     rf.parts.sums(run.filter(user=user), "rr", truth=truth.filter(user=user))
    ...     for user in (1, 2)
    ... ]
    >>> rf.parts.combine(parts).equals(rf.evaluate(run, "rr", truth=truth))
    True
    """
    keywords.check_flag("total", total)
    keywords.check_choice("duplicates", duplicates, get_args(Duplicates))
    several = [parts] if adapters.is_frame(parts) else list(cast("Iterable[Any]", parts))
    small, first = _stacked(several, duplicates)
    small = _recipes.added(small)
    recipe = _recipes.recipe_of(small)
    keywords.check_total(recipe.request.by, total=total)
    if total and recipe.grouped and recipe.labels:
        name = next(iter(recipe.labels))
        msg = (
            f"metric {name!r}: items= or history= has a column of by=, and parts keep no number of "
            "all groups: ask for it in a call with fewer columns in by="
        )
        raise ValueError(msg)
    users = None if recipe.facts is None else recipe.facts["users"]
    policy = cast("Users", recipe.options.get("users", "'truth'").strip("'"))
    _recipes.raise_if_whole_is_broken(
        small, _numbers.groups_of_numbers(small, recipe.request.types), users, policy=policy
    )
    return cast(
        "FrameT",
        adapters.to_caller_type(_recipes.means_of(small, total=total).lazy(), like=first),
    )


@adapters.takes_any_frame
def values(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    facts: Facts | None = None,
    part: str | None = None,
    cluster: str | None = None,
    **options: Unpack[Options],
) -> FrameT:
    """
    Compute the metrics of a part of the users, one row per user.

    Parameters
    ----------
    frame
        All rows of some users of a run or a judged table, as ``evaluate`` takes it.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        All rows of the same users of the truth.
    by
        Columns of segments, such as country, fold or day.
    facts
        The facts of the whole tables. They may be left out where no metric reads the highest grade
        of the truth, and the truth has the columns ``by``.
    part
        The key of the part, such as its day, for the last column, ``part``: ``merge`` concatenates
        the rows of several parts, and knows by it a part that was computed again.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.
        ``items`` and ``history`` are whole tables.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        by…, user and one column per metric, sorted; with ``weights``, ``cluster`` and ``part`` also
        these columns. The concatenated rows of all parts are those of ``per_user`` for the whole
        tables, and what ``summarize`` and ``compare`` take, which also detect a user in two parts.
        Their ``num_missed`` is null, and their notes name no missed users: values do not show who
        has no list. Nor do they show days of the run that do not meet those of the
        truth, for which ``combine`` raises an error.

    Raises
    ------
    RankingDataError
        As in ``sums``.
    ValueError
        As in ``sums``, and for metrics that have no value per user.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "rank": [1, 2, 4]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> rows = pl.concat(
    ...     rf.parts.values(run.filter(user=user), "rr", truth=truth.filter(user=user))
    ...     for user in (1, 2, 3)
    ... )
    >>> rows.sort("user").equals(rf.per_user(run, "rr", truth=truth))
    True
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, whole=False)
    settings = keywords.read_options(options, cluster=cluster, takes_bounds=True)
    _check_part(part)
    own = _part(frame, truth, by, settings, facts)
    question = ask(own.frame, metrics, truth, by, settings, per_user=True, totals=own.totals)
    plan = evaluation.plan_values(question)
    _check_needs(plan, settings, facts)
    names = {user_columns.WEIGHT: settings.weights, user_columns.CLUSTER: settings.cluster}
    rows = plan.rows.rename({key: name for key, name in names.items() if name is not None})
    checked = plan.checks.guarded(rows)
    schema = checked.collect_schema()
    result = pl.concat([checked, *own.checks(dict(schema))]).sort(plan.keys)
    if part is not None:
        if _numbers.PART in schema:
            msg = "part= makes a column 'part', and the values already have one: rename that one"
            raise ValueError(msg)
        result = result.with_columns(pl.lit(part).alias(_numbers.PART))
    return adapters.to_caller_type(result, like=frame, beside=question.beside)


# ------------------------------------------------------------------ facts of the whole


def _merged_facts(several: Sequence[Facts]) -> Facts:
    first, *rest = several
    types = _types_of(first)
    for other in rest:
        if [*types] != [*_types_of(other)]:
            msg = (
                f"facts: they are of the columns {[*types]} and {[*_types_of(other)]}: make all "
                "with the same by= and truth="
            )
            raise RankingDataError(msg)
        types = _groups.common_types_of_groups(types, _types_of(other))
    grades = [part["top_grade"] for part in several if part["top_grade"] is not None]
    frames = [_groups.groups_from_json(part["groups"], types) for part in several]
    groups = pl.concat(frames).unique().sort([*types]) if types else pl.DataFrame()
    numbers: Counter[str] = Counter()
    for part in several:
        numbers.update({"users": part["users"], **part.get(_UNGRADED, {})})
    return _facts(dict(numbers), max(grades, default=None), types, groups)


def _facts(
    numbers: Mapping[str, int],
    grade: float | None,
    types: Mapping[str, pl.DataType],
    groups: pl.DataFrame,
) -> Facts:
    """Write facts; ``numbers`` are those of the users, and of values that may be grades."""
    ungraded = {of: number for of, number in numbers.items() if of != "users"}
    return {
        "users": numbers["users"],
        "top_grade": grade,
        "by": {name: _groups.type_in_json(dtype) for name, dtype in types.items()},
        "groups": _groups.groups_in_json(groups),
    } | ({_UNGRADED: ungraded} if ungraded else {})


def _checked_facts(value: object) -> Facts:
    facts, kind = cast("Facts", value), adapters.kind(value)
    if isinstance(value, Mapping) and all(name in facts for name in _FACTS):
        return facts
    msg = f"facts are what rf.parts.facts or rf.parts.merge returned, not {kind}"
    raise TypeError(msg)


def _types_of(facts: Facts) -> dict[str, pl.DataType]:
    return {name: _groups.type_from_json(dtype) for name, dtype in facts["by"].items()}


class _Part(NamedTuple):
    """A part of the run, and what it knows of the whole."""

    frame: pl.DataFrame | pl.LazyFrame
    totals: Totals
    tables: list[Table]
    facts: Facts | None

    def checks(self, schema: Mapping[str, Any]) -> list[pl.LazyFrame]:
        """Check that the facts are those of the whole: return no rows, or raise."""
        if self.facts is None:
            return []
        grades = _partitions.top_grade_of(self.tables)
        check = partial(_check_grade, greatest=self.facts["top_grade"], schema=schema)
        watched = [grades.map_batches(check, schema=dict(schema))]
        if self.totals.groups is not None:
            columns = self.totals.groups.columns
            groups = _partitions.groups_of(self.tables[0], columns)
            other = groups.join(self.totals.groups.lazy(), on=columns, how="anti")
            check = partial(_check_groups, schema=schema)
            watched.append(other.map_batches(check, schema=dict(schema)))
        return watched


def _part(
    frame: Frame,
    truth: Truth | None,
    by: str | Sequence[str],
    settings: Settings,
    facts: Facts | None,
) -> _Part:
    """Read a part, with its columns of ``by`` in the types of the whole."""
    frame = readers.with_items(frame, truth, by, settings.columns)
    opened = adapters.to_polars(frame, "run" if truth is not None else "judged table")
    tables = _partitions.tables_of(opened, truth, by, settings.columns)
    lacking = _partitions.lacking_of(tables)
    if facts is None:
        if lacking:
            msg = (
                f"by={keywords.group_names(by)!r}: the truth lacks {lacking[0]!r}, so a part must "
                "know the groups of all parts: pass facts=rf.parts.facts(run, truth=truth, by=…)"
            )
            raise ValueError(msg)
        return _Part(opened, Totals(None, None), tables, None)
    facts = _checked_facts(facts)
    types = _types_of(facts)
    if [*types] != lacking:
        msg = (
            f"facts= are of the columns {[*types]}, and this call has {lacking} that its truth "
            "lacks: make the facts with the same by= and truth="
        )
        raise ValueError(msg)
    if not lacking:
        return _Part(opened, Totals(facts["top_grade"], None), tables, facts)
    opened, groups = _groups.with_types_of_groups(
        opened, _groups.groups_from_json(facts["groups"], types)
    )
    tables = _partitions.tables_of(opened, truth, by, settings.columns)
    return _Part(opened, Totals(facts["top_grade"], groups), tables, facts)


def _check_needs(plan: Values, settings: Settings, facts: Facts | None) -> None:
    """Check that a part knows the highest grade and the systems, where these matter."""
    if facts is not None:
        rules.raise_if_counted_ungraded(
            facts.get(_UNGRADED, {}), [*rules.candidates(plan.source.tables.both[-1])]
        )
    if facts is None and _partitions.needs_of(plan, settings).top_grade:
        msg = (
            "a metric reads the highest grade of the truth, which may be in another part: pass "
            "facts=rf.parts.facts(run, truth=truth, by=…)"
        )
        raise ValueError(msg)


def _check_grade(grades: pl.DataFrame, *, greatest: float | None, schema: Any) -> pl.DataFrame:
    grade = grades.item() if grades.height else None
    is_new = grade is not None and (greatest is None or grade > greatest)
    problem = f"their highest grade is {greatest}, and this part has {grade}" if is_new else ""
    return _no_row(schema, problem)


def _check_groups(other: pl.DataFrame, *, schema: Any) -> pl.DataFrame:
    row = None if other.is_empty() else other.row(0, named=True)
    return _no_row(schema, f"they lack a group of this part, {row}" if row else "")


def _no_row(schema: Any, problem: str) -> pl.DataFrame:
    """Return no rows, or raise if the facts have a problem."""
    if problem:
        msg = f"facts=: {problem}: make the facts of the whole tables, or merge those of all parts"
        raise RankingDataError(msg)
    return pl.DataFrame(schema=schema)


# ------------------------------------------------------------------ keys and values


def _check_part(part: object) -> None:
    if part is not None and not (isinstance(part, str) and part):
        msg = f"part must be text, such as '2026-11-01', not {part!r}"
        raise TypeError(msg) if not isinstance(part, str) else ValueError(msg)


def _are_values(frame: Frame) -> bool:
    """Whether a frame is what ``values`` returned with a key, its last column."""
    schema = adapters.to_lazy(frame, "part").collect_schema()
    return schema.names()[-1:] == [_numbers.PART] and schema[_numbers.PART] == pl.String


def _merged_values(several: Sequence[Frame], duplicates: Duplicates) -> Frame:
    """Concatenate the values of parts, each key from one frame."""
    frames = [adapters.to_lazy(frame, "part").collect() for frame in several]
    first, *rest = frames
    for frame in rest:
        types = [
            run_dicts.common_type(*pair) for pair in zip(first.dtypes, frame.dtypes, strict=False)
        ]
        if frame.columns != first.columns or None in types:
            ours, theirs = (
                ", ".join(
                    repr(name) if frame.columns != first.columns else f"{name!r} ({dtype})"
                    for name, dtype in table.schema.items()
                )
                for table in (first, frame)
            )
            msg = (
                f"parts: values have the columns {ours} and {theirs}: make all parts with the same "
                "call"
            )
            raise RankingDataError(msg)
    later: set[str] = set()
    kept: list[pl.DataFrame] = []
    for frame in reversed(frames):
        keys = set(frame[_numbers.PART].unique())
        again = sorted(keys & later)
        if again and duplicates == "error":
            part = f"part {again[0]!r}"
            raise _recipes.comes_twice(part)
        kept.append(frame.filter(~pl.col(_numbers.PART).is_in(again)))
        later |= keys
    return adapters.to_caller_type(
        pl.concat(kept[::-1], how="vertical_relaxed").lazy(), like=several[0]
    )


# ------------------------------------------------------------------ frames


def _stacked(several: Sequence[Any], duplicates: Duplicates) -> tuple[pl.DataFrame, Any]:
    """Concatenate small frames without parts that come twice, and return one of the caller's."""
    if not several:
        msg = "there is no part: pass what facts or sums returned for each"
        raise ValueError(msg)
    frames = [adapters.to_lazy(part, "part") for part in several]
    for place, frame in enumerate(frames):
        lacking = [name for name in _numbers.SCHEMA if name not in frame.collect_schema()]
        if lacking:
            msg = (
                f"part {place}: no column {lacking[0]!r}: parts are what rf.parts.sums returned; "
                "to merge values, make them with part=, or put them together with pl.concat"
            )
            raise RankingDataError(msg)
    stacked = [
        frame.select(pl.col(name).cast(t) for name, t in _numbers.SCHEMA.items())
        for frame in frames
    ]
    small = pl.concat(stacked).collect()
    if small.is_empty():
        msg = "the parts have no row: pass what rf.parts.sums returned for each"
        raise RankingDataError(msg)
    return _recipes.single_parts(small, duplicates), several[0]
