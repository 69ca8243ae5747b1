"""An accumulator for loops: batches of users in, the metrics of all of them out."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Unpack, cast

import polars as pl

from rankframe._evaluation import evaluation, kept_plans
from rankframe._evaluation.values import Values, users_of
from rankframe._inputs import arguments, several_users
from rankframe._request import keywords, labels, registry
from rankframe._request.keywords import Columns, Options, Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Totals, ask
from rankframe._request.types import Frame, Truth
from rankframe._tables import adapters, judgment, readers, rules, run_dicts
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.parts import _groups, _numbers, _partitions, _recipes
from rankframe.parts._partitions import Needs

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar  # its default needs Python 3.13

    MeterFrameT = TypeVar("MeterFrameT", pl.DataFrame, pd.DataFrame, default=pl.DataFrame)
else:
    from typing import TypeVar

    MeterFrameT = TypeVar("MeterFrameT")

_CODE = "__rankframe_code"
#: Numbers of this many batches are added up at once: a batch takes 1 ms less.
_WAITING = 64


class _Rows(NamedTuple):
    """The rows of a batch that wait for facts of the whole, with users numbered from 0."""

    run: pl.DataFrame
    truth: pl.DataFrame | None
    roles: Columns
    users: int


class _State(NamedTuple):
    """What a meter has kept of its batches."""

    user: str
    units: pl.DataFrame  # each user, per group of the columns of by that both tables have
    types: dict[str, pl.DataType]  # of the columns of by
    groups: pl.DataFrame  # those of the columns of by that the truth lacks
    grade: float | None  # the highest of the truth
    numbers: list[pl.DataFrame]  # not added up yet
    absent: pl.DataFrame  # the sums of a group in which no user has a list
    rows: list[_Rows]


class Meter(Generic[MeterFrameT]):
    """
    Add up metrics batch by batch, and compute those of all users: ``evaluate`` for loops.

    Parameters
    ----------
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    by
        Columns of segments, such as country, fold or day.
    count_users
        Add ``<metric>_users``: the number of users with a value of the metric, which is less than
        ``users`` if it is undefined for some. A metric of all lists has no such column.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Notes
    -----
    A batch has all rows of its users, those of the run and those of the truth. With a column of
    ``by`` that both tables have, such as day, it has all rows of its (day, user), and a user may
    return on another day. The numbers are those of ``evaluate`` for all batches together, also if a
    model or the highest grade appears in a later batch. Means have the same bits: see
    ``rf.parts.combine``. Of metrics that read the highest grade (``err``, ``nerr``,
    ``rbp(gain=graded)``, ``inst``, ``insq``, ``ndcg(ideal=perfect)``), of ``compatibility`` and of
    ``alpha_ndcg``, the last bit may differ: rows are kept in another order.

    Type checkers take it to be for batches of Polars; ``rf.Meter[pd.DataFrame](…)`` is for pandas.

    It keeps sums: a few numbers per group and metric, one per item for metrics of all lists, and
    the ids of the users. Metrics that read the highest grade of the truth, such as ``err``, and
    all metrics with ``unjudged="bounds"`` need rows until ``compute``: those of the lists and the
    truth that can change a value, with the item and the user as numbers, which takes up to 40 bytes
    per row (with up to three columns of ``by``; columns that your own expressions read come on top,
    and so do ids where ``items``, ``history`` or ``other`` are passed). ``err(max_grade=4)`` keeps
    sums.

    It can be pickled, and meters of several processes can be merged.

    Examples
    --------
    >>> meter = rf.Meter("rr", "hit@1")
    >>> for user in (1, 2):
    ...     run = pl.DataFrame({"user": [user, user], "item": [7, 8], "rank": [1, 2]})
    ...     meter.update(run, pl.DataFrame({"user": [user], "item": [6 + user]}))
    >>> meter.compute().rows()
    [(2, 0.75, 0.5)]
    """

    @adapters.takes_arrow
    def __init__(
        self,
        *metrics: Metric,
        by: str | Sequence[str] = (),
        count_users: bool = False,
        **options: Unpack[Options],
    ) -> None:
        metrics = tuple(labels.flat(metrics))
        # roles as passed: each batch may have a column model, or not
        roles = Columns.__annotations__
        self._roles: dict[str, Any] = {n: v for n, v in options.items() if n in roles}
        plain: dict[str, Any] = {n: v for n, v in options.items() if not n.startswith("truth_")}
        if isinstance(user := options.get("user"), list | tuple):
            users = several_users.Users(user, {**options, "by": by})
            self._roles["user"] = plain["user"] = users
            several_users.with_one("Meter", plain)
        settings = keywords.read_options(plain, takes_bounds=True, count_users=count_users)
        tables: dict[str, Any] = {
            name: adapters.to_lazy(getattr(settings, name), f"{name}= table").collect()
            for name in keywords.INPUTS
            if getattr(settings, name) is not None
        }
        self._settings = replace(settings, **tables)
        self._by = keywords.group_names(by)
        self._names = [metric.name for metric in _requested(metrics, settings)]
        late = [_reads_whole(metric, settings) for metric in metrics]
        self._late = [metric for metric, waits in zip(metrics, late, strict=True) if waits]
        self._settled = [metric for metric, waits in zip(metrics, late, strict=True) if not waits]
        self._state: _State | None = None
        self._like: Frame | None = None
        self._systems: list[str] = []  # the names of the dicts of runs, in their order
        of_all = any(metric.is_of_all_lists for metric in _requested(metrics, settings))
        self._keeps_plan = not (settings.inputs or of_all)
        self._key = object()

    def __repr__(self) -> str:
        names, state = ", ".join(map(repr, self._names)), self._state
        users = 0 if state is None else state.units.height
        return f"Meter({names}): {users} user{'' if users == 1 else 's'}"

    def reset(self) -> None:
        """Forget all batches."""
        self._state, self._systems = None, []

    @adapters.takes_arrow
    def update(
        self,
        frame: MeterFrameT | pl.LazyFrame | Mapping[str, MeterFrameT | pl.LazyFrame],
        /,
        truth: Truth | None = None,
    ) -> None:
        """
        Add a batch of users.

        Parameters
        ----------
        frame
            All rows of some users of a run or a judged table, as ``evaluate`` takes it.
        truth
            All rows of the same users of the truth.

        Raises
        ------
        RankingDataError
            If a user was in another batch, in the same group of the columns of ``by`` that both
            tables have. After any error the meter is as before.
        """
        roles = copy.deepcopy(self._roles)
        opened = arguments.opened(
            "update", ["run", "truth"], [frame, truth], {"by": self._by, **roles}, counts=False
        )
        (runs, judged), columns = opened.args, cast("Columns", opened.options)
        del opened.options["by"]
        table, by, columns = run_dicts.as_frame(runs, self._by, columns, whole=False)
        items = readers.with_items(table, judged, by, columns)
        run = _eager(items, "run" if judged is not None else "judged table")
        judgments = None if judged is None else _eager(judged, "truth")
        before, self._settings = self._settings, replace(self._settings, columns=columns)
        try:
            batch = self._batch(run, judgments, by)
            state = batch if self._state is None else _merged(self._state, batch, by)
        except BaseException:
            self._settings = before
            raise
        self._by, self._state, self._like = by, state, _without_rows(table)
        self._roles = roles
        if isinstance(runs, Mapping):
            self._add_systems(cast("Mapping[str, object]", runs))

    def merge(self, other: Meter[MeterFrameT]) -> None:
        """
        Add the batches of another meter, which stays as it is.

        Parameters
        ----------
        other
            A meter of the same metrics and options, such as one of another process.

        Raises
        ------
        RankingDataError
            If a user is in both, in the same group.
        ValueError
            If metrics or options differ.
        """
        if not isinstance(cast("object", other), Meter):
            msg = f"merge takes a Meter, not {type(other).__name__}"
            raise TypeError(msg)
        calls = [
            (meter._names, meter._by, _recipes.shared_options(meter._settings))
            for meter in (self, other)
        ]
        by = self._common_by(other)
        if by is None or calls[0][::2] != calls[1][::2]:
            msg = f"the meters differ in metrics, by= or options: {calls[0]} and {calls[1]}"
            raise ValueError(msg)
        if other._state is None:
            return
        users, theirs = self._roles.get("user"), other._roles.get("user")
        if isinstance(users, several_users.Users) and isinstance(theirs, several_users.Users):
            users.note_types(theirs.types, "other meter")
        self._by, state = by, self._state
        if state is None:
            self._settings = replace(self._settings, columns=other._settings.columns)
        self._state = other._state if state is None else _merged(state, other._state, self._by)
        self._like = other._like if self._like is None else self._like
        self._add_systems(other._systems)

    def _add_systems(self, names: Iterable[str]) -> None:
        self._systems = list(dict.fromkeys([*self._systems, *names]))

    def _common_by(self, other: Meter[Any]) -> list[str] | None:
        """Return ``by`` of both; a meter without a batch may be for dicts of runs."""
        if self._by == other._by:
            return self._by
        full = self if other._state is None else other
        empty = other if other._state is None else self
        if full._state is None or empty._state is not None:
            return None
        groups, _ = run_dicts.with_model(full._by, empty._by, full._settings.columns)
        return full._by if groups == full._by else None

    def compute(self, *, total: bool = False) -> MeterFrameT:
        """
        Compute the metrics of all users so far.

        Parameters
        ----------
        total
            Add a row for all users, in which the column ``by`` is null. With several columns the
            first one stays: ``by=["model", "country"]`` adds one row per model, in which the
            country is null.

        Returns
        -------
        DataFrame or pandas.DataFrame
            The frame of ``evaluate``; of pandas if the batches are.

        Raises
        ------
        RankingDataError
            If there was no batch, or all batches together break a rule.
        """
        keywords.check_flag("total", total)
        state = self._state
        if state is None or self._like is None:
            msg = "the Meter has no batch: call update first"
            raise RankingDataError(msg)
        keywords.check_total(self._by, total=total)
        numbers = _recipes.added(pl.concat(state.numbers))
        _recipes.raise_if_whole_is_broken(numbers, state.groups, policy=self._settings.users)
        frames = [_recipes.means_of(numbers, total=total)] if self._settled else []
        if self._late:
            frames.append(_recipes.means_of(self._numbers_of_rows(state), total=total))
        means, like = self._in_call_order(frames), self._like
        if self._systems:
            order = self._by[0], pl.Enum(self._systems)
            means = adapters.in_order(means, *order).sort(self._by, nulls_last=True)
            adapters.note_order(like, order[0], self._systems)
        return cast("MeterFrameT", adapters.to_caller_type(means.lazy(), like=like))

    def _batch(self, run: pl.DataFrame, truth: pl.DataFrame | None, by: list[str]) -> _State:
        """Return the state of a meter that has only this batch."""
        settings = self._settings
        tables = _partitions.tables_of(run, truth, by, settings.columns)
        lacking = _partitions.lacking_of(tables)
        groups = _partitions.groups_of(tables[0], lacking).collect() if lacking else pl.DataFrame()
        grade = _partitions.top_grade_of(tables).collect().item() if self._late else None
        totals = Totals(grade, groups if lacking else None)
        numbers: list[pl.DataFrame] = []
        absent = pl.DataFrame(schema=_numbers.SCHEMA)
        rows: list[_Rows] = []
        units = _units(tables)
        types = {name: dtype for table in tables for name, dtype in table.schema.items()}
        if self._settled:
            frames = {"run": run, "truth": truth, "units": units}
            present = {name: frame for name, frame in frames.items() if frame is not None}
            numbers = [self._settled_numbers(present, by, totals.groups)]
            if lacking:
                absent = self._absent(run, tables, truth, by)
        if self._late:
            plan = evaluation.plan_means(ask(run, self._late, truth, by, settings, totals=totals))
            height = run.height + (0 if truth is None else truth.height)
            checked = adapters.collected(_recipes.small_frame(plan, settings, None), height)
            numbers = numbers or [checked.filter(entry=_numbers.SEEN)]
            rows = [_kept(plan, settings, units.height)]
        return _State(
            user=tables[0].user,
            units=units,
            types={name: types[name] for name in by},
            groups=groups,
            grade=grade,
            numbers=numbers,
            absent=absent,
            rows=rows,
        )

    def _settled_numbers(
        self, tables: Mapping[str, pl.DataFrame], by: Sequence[str], groups: pl.DataFrame | None
    ) -> pl.DataFrame:
        """Add up the metrics that need no facts of the whole."""

        def plan(frames: Mapping[str, pl.DataFrame | pl.LazyFrame]) -> pl.LazyFrame:
            run, truth, settings = frames["run"], frames.get("truth"), self._settings
            totals = Totals(None, groups)
            question = ask(run, self._settled, truth, by, settings, totals=totals)
            values = evaluation.plan_means(question)
            return _recipes.small_frame(values, settings, None, frames["units"].lazy())

        if groups is None and self._keeps_plan:
            return kept_plans.collected((self._key, *by), tables, plan, grouped=bool(by))
        return adapters.collected(plan(tables), sum(map(len, tables.values())))

    def _absent(
        self,
        run: pl.DataFrame,
        tables: Sequence[Table],
        truth: pl.DataFrame | None,
        by: Sequence[str],
    ) -> pl.DataFrame:
        """Add up the values of users without a list, for models that appear in a later batch."""
        weights = self._settings.weights
        if weights is not None and truth is not None and weights not in truth.columns:
            msg = (
                f"weights={weights!r}: a later batch may have a new group of by=, for whose users "
                "the weights must be in the truth: join the column to the truth"
            )
            raise ValueError(msg)
        lacking = _partitions.lacking_of(tables)
        shared = [name for name in by if name not in lacking]
        empty = run.clear().drop(lacking)
        totals = Totals(None, None)
        plan = evaluation.plan_means(
            ask(empty, self._settled, truth, shared, self._settings, totals=totals)
        )
        inputs = plan.source.inputs.values()
        if plan.of_lists is not None and any(
            name in table.schema for table in inputs for name in lacking
        ):
            msg = (
                f"metric {plan.of_lists.requested[0].name!r}: items= or history= has a column of "
                "by= that the truth lacks, and a later batch may have a new group: use rf.parts, "
                "with facts"
            )
            raise ValueError(msg)
        numbers = _numbers.numbers_alone(_recipes.small_frame(plan, self._settings, None).collect())
        return numbers.filter(pl.col("entry") != _numbers.SEEN)

    def _numbers_of_rows(self, state: _State) -> pl.DataFrame:
        """Add up the metrics of the rows that have waited."""
        settings = replace(self._settings, exclude=None, columns=state.rows[0].roles)
        types = pl.Schema(state.types)
        user = state.user
        runs: list[pl.DataFrame] = []
        truths: list[pl.DataFrame] = []
        first = 0
        for rows in state.rows:
            numbered = pl.col(user).cast(pl.Int64) + first if rows.users else pl.col(user)
            first += rows.users
            runs.append(_restored(rows.run.with_columns(numbered), types))
            if rows.truth is not None:
                truths.append(_restored(rows.truth.with_columns(numbered), types))
        run = pl.concat(runs, how="vertical_relaxed")
        truth = pl.concat(truths, how="vertical_relaxed") if truths else None
        groups = state.groups if state.groups.columns else None
        totals = Totals(state.grade, groups)
        plan = evaluation.plan_means(ask(run, self._late, truth, self._by, settings, totals=totals))
        return _recipes.added(_recipes.small_frame(plan, settings, None).collect())

    def _in_call_order(self, frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
        result, *rest = frames
        for other in rest:
            more = other.drop("users")
            if self._by:
                result = result.join(
                    more, on=self._by, how="left", nulls_equal=True, maintain_order="left"
                )
            else:
                result = result.hstack(more)
        if not rest:
            return result
        names = [column for name in self._names for column in (name, users_of(name))]
        return result.select(
            *self._by, "users", *(column for column in names if column in result.columns)
        )


def _requested(metrics: Sequence[Metric], settings: Settings) -> list[RequestedMetric]:
    return labels.parse_metrics(metrics, per_user=False, defaults=settings.defaults)


def _reads_whole(metric: Metric, settings: Settings) -> bool:
    """Whether a metric needs rows until all batches are there."""
    if settings.unjudged == "bounds":
        return True
    reads = {name for entry in _requested([metric], settings) for name in entry.reads}
    return registry.reading_of(reads, inputs=settings.inputs).top_grade


def _eager(frame: Frame, table: str) -> pl.DataFrame:
    polars = adapters.to_polars(frame, table)
    # a copy of a frame has no notes of judge
    return polars.collect() if isinstance(polars, pl.LazyFrame) else polars.clone()


def _without_rows(frame: Frame) -> Frame:
    if isinstance(frame, pl.LazyFrame):
        return pl.DataFrame()
    return frame.clear() if isinstance(frame, pl.DataFrame) else frame.iloc[:0]


# ------------------------------------------------------------------ users


def _units(tables: Sequence[Table]) -> pl.DataFrame:
    """List what one batch alone may have, with text for categories, whose codes may differ."""
    height = sum(table.rows.height for table in tables if table.rows is not None)
    units = adapters.collected(_partitions.units_of(tables), height)
    text = [n for n, t in units.schema.items() if isinstance(t, pl.Categorical | pl.Enum)]
    return units.with_columns(pl.col(text).cast(pl.String)) if text else units


def _united(left: _State, right: _State) -> pl.DataFrame:
    """List the users of both, or raise for one who is in both, in the same group."""
    names = left.units.columns
    if names != right.units.columns:
        msg = (
            f"run: it has the columns {names} in some batches and {right.units.columns} in "
            "others: give it the same columns of by= in all batches"
        )
        raise RankingDataError(msg)
    old, new = left.units, right.units
    if old.schema != new.schema:
        types = pl.Schema(_groups.common_types_of_groups(old.schema, new.schema))
        old, new = old.cast(types), new.cast(types)
    again = old.join(new, on=names, how="semi", nulls_equal=True)
    if again.height:
        again = again.sort(names).head(1)
        cure = "put all rows of a user into one"
        if len(names) == 1:
            column = "the column of both tables that tells their lists apart, such as day"
            cure += f", or name in by= {column}"
        msg = (
            f"column {left.user!r}: a user is in two batches: {cure}. "
            f"Offending row: {rules.format_row(again)}"
        )
        raise RankingDataError(msg)
    return pl.concat([old, new], rechunk=old.n_chunks() >= _WAITING)


# ------------------------------------------------------------------ putting together


def _merged(left: _State, right: _State, by: Sequence[str]) -> _State:
    """Put the batches of two meters together; add the absent users of a group that only one has."""
    lacking = left.groups.columns
    if lacking != right.groups.columns:
        msg = (
            f"truth: it lacks {lacking} of by= in some batches, and {right.groups.columns} in "
            "others: give it the same columns in all"
        )
        raise RankingDataError(msg)
    types = _groups.common_types_of_groups(left.types, right.types)
    numbers = [*left.numbers, *right.numbers]
    groups, absent = left.groups, left.absent
    if lacking:
        wide = pl.Schema({name: types[name] for name in lacking})
        ours, theirs = groups.cast(wide), right.groups.cast(wide)
        new, old = (
            side.join(other, on=lacking, how="anti")
            for side, other in ((theirs, ours), (ours, theirs))
        )
        groups = pl.concat([ours, new])
        numbers.append(_recipes.of_late_groups(left.absent, new, by, lacking))
        numbers.append(_recipes.of_late_groups(right.absent, old, by, lacking))
        absent = _numbers.numbers_alone(pl.concat([left.absent, right.absent]))
    if len(numbers) > _WAITING or _recipe(left) != _recipe(right):
        numbers = [_recipes.added(pl.concat(numbers))]
    grades = [grade for grade in (left.grade, right.grade) if grade is not None]
    return left._replace(
        units=_united(left, right),
        types=types,
        groups=groups,
        grade=max(grades, default=None),
        numbers=numbers,
        absent=absent,
        rows=[*left.rows, *right.rows],
    )


def _recipe(state: _State) -> str:
    _, entry, of, _ = state.numbers[0].row(0)
    return of if entry == _numbers.RECIPE else ""


# ------------------------------------------------------------------ rows that wait


def _kept(plan: Values, settings: Settings, users: int) -> _Rows:
    """Keep the rows that can change a value, as small as can be."""
    source, needs = plan.source, _partitions.needs_of(plan, settings)
    run, *truths = source.tables.both
    placed = ["rank", *(["tied"] if source.tables.tied else [])]
    roles: Columns = {"model": run.model, "user": run.user, "item": run.item, "rank": "rank"}
    graded = ["relevance", *(["subtopic"] if source.tables.has_subtopics else [])]
    if source.tables.has_truth:
        roles["relevance"] = "relevance"
    if truths:
        frames = _kept_of_both(source, needs, placed, graded)
    else:
        judged = source.rows("subtopic")
        if needs.relevant:
            is_first = _is_first(run.keys) if needs.lists else False
            judged = judged.filter((pl.col("relevance") > 0).fill_null(value=False) | is_first)
        frames = [_own(judged, [*run.keys, run.item, *placed, *graded], needs)]
    beside = settings.inputs - {"exclude"}
    if not beside and {run.user, run.item}.isdisjoint(needs.columns):
        frames = _numbered(_numbered(frames, run.user), run.item)
    else:
        users = 0  # they have their own ids
    kept = [_narrowed(frame, placed, run.by) for frame in frames]
    return _Rows(kept[0], kept[1] if truths else None, roles, users)


def _kept_of_both(
    source: Joined, needs: Needs, placed: Sequence[str], graded: Sequence[str]
) -> list[pl.DataFrame]:
    """Keep rows of the run and of the truth."""
    run, of_truth = source.tables.both
    ids = [pl.col(n).cast(source.types[n]) for n in (*of_truth.keys, of_truth.item)]
    truth = judgment.normalize_columns(of_truth).with_columns(ids)
    lists = source.run
    if needs.relevant:
        truth = truth.filter(pl.col("relevance") > 0)
    if needs.depth is not None:
        lists = lists.filter(pl.col("rank") <= needs.depth)
    if needs.judged:
        lists = lists.join(truth, on=[*of_truth.keys, of_truth.item], how="semi")
    if needs.lists:  # read apart: the optimizer of Polars 1.44 fails on two uses of one run
        rows, first = lists.collect(), source.run.filter(_is_first(run.keys)).collect()
        more = first.join(rows, on=[*run.keys, run.item], how="anti")
        lists = pl.concat([rows, more]).lazy()
    return [
        _own(lists, [*run.keys, run.item, *placed], needs),
        _own(truth, [*of_truth.keys, of_truth.item, *graded], needs),
    ]


def _is_first(keys: Sequence[str]) -> pl.Expr:
    """Whether a row has the least rank of its list."""
    first = pl.col("rank") == pl.col("rank").min().over(keys)
    return first.fill_null(value=False)


def _own(frame: pl.LazyFrame, names: Sequence[str], needs: Needs) -> pl.DataFrame:
    """Keep the columns that play a role, and those that metrics read."""
    columns = frame.collect_schema().names()
    return frame.select(n for n in columns if n in names or n in needs.columns).collect()


def _numbered(frames: Sequence[pl.DataFrame], name: str) -> list[pl.DataFrame]:
    """Replace ids with numbers, the same in all frames."""
    ids = pl.concat([frame.select(name) for frame in frames]).unique()
    codes = ids.with_columns(pl.int_range(pl.len(), dtype=pl.UInt32).alias(_CODE))
    return [
        frame.join(codes, on=name, how="left", maintain_order="left")
        .with_columns(pl.col(_CODE).alias(name))
        .drop(_CODE)
        for frame in frames
    ]


def _narrowed(frame: pl.DataFrame, placed: Sequence[str], by: Sequence[str]) -> pl.DataFrame:
    """Use small types for ranks and groups."""
    small = [pl.col(name).cast(pl.UInt32) for name in placed if name in frame.columns]
    text = [name for name in by if frame.schema.get(name) == pl.String]
    return frame.with_columns(*small, pl.col(text).cast(pl.Categorical)).rechunk()


def _restored(frame: pl.DataFrame, types: pl.Schema) -> pl.DataFrame:
    return frame.with_columns(pl.col(n).cast(t) for n, t in types.items() if n in frame.columns)
