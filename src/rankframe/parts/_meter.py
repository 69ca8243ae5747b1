"""An accumulator for loops: batches of users in, the metrics of all of them out."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Unpack, cast

import polars as pl

from rankframe import _sizes
from rankframe._evaluation import evaluation, kept_plans
from rankframe._inputs import arguments, several_users
from rankframe._request import keywords, labels, segment_names
from rankframe._request.keywords import Columns, Options
from rankframe._request.labels import Metric
from rankframe._request.question import ask
from rankframe._request.types import Frame, Truth
from rankframe._tables import adapters, readers, rules, run_dicts
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.parts import _facts, _groups, _numbers, _partitions, _recipes
from rankframe.parts._facts import Facts

if TYPE_CHECKING:
    import pandas as pd
    from typing_extensions import TypeVar  # its default needs Python 3.13

    MeterFrameT = TypeVar("MeterFrameT", pl.DataFrame, pd.DataFrame, default=pl.DataFrame)
else:
    from typing import TypeVar

    MeterFrameT = TypeVar("MeterFrameT")

ChangeT = TypeVar("ChangeT", bound=Callable[..., None])


def _by_one_thread(change: ChangeT) -> ChangeT:
    """Let threads that change a meter wait for each other: a change reads the state first."""

    @functools.wraps(change)
    def call(self: Meter[Any], *args: Any, **options: Any) -> None:
        with self._lock:  # pyright: ignore[reportPrivateUsage]
            change(self, *args, **options)

    return cast("ChangeT", call)


class _State(NamedTuple):
    """What a meter has kept of its batches."""

    user: str
    units: pl.DataFrame  # each user, per group of the columns of by that both tables have
    facts: Facts | None  # given to the meter, or the groups of its first batch
    numbers: list[pl.DataFrame]  # not added up yet


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
    facts
        What ``rf.parts.facts`` returned for the tables of all batches. They may be left out if no
        metric reads the highest grade of the truth, and the first batch has all groups of those
        columns of ``by`` that the truth does not have, such as all models. Their number of users is
        not read.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Notes
    -----
    A batch has all rows of its users, those of the run and those of the truth. With a column of
    ``by`` that both tables have, such as day, it has all rows of its (day, user), and a user may
    return on another day. The numbers are those of ``evaluate`` for all batches together, to the
    last bit: see ``rf.parts.combine``.

    Metrics that read the highest grade of the truth (``err``, ``nerr``, ``rbp(gain=graded)``,
    ``inst``, ``insq``, ``ndcg(ideal=perfect)``) and ``unjudged="bounds"`` need it before the first
    batch: name it, as in ``err(max_grade=4)``, or pass ``facts``.

    It keeps sums and no rows: a few numbers per group and metric, one per item for metrics of all
    lists, and the ids of the users, which reveal a user who comes twice.

    Type checkers assume batches of Polars; write ``rf.Meter[pd.DataFrame](…)`` for pandas.

    Several threads may update it. It can be pickled, and meters of several processes can be merged.

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
        facts: Facts | None = None,
        **options: Unpack[Options],
    ) -> None:
        self._lock = threading.Lock()
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
        segment_names.refuse_segments(self._by)
        requested = labels.parse_metrics(metrics, per_user=False, defaults=settings.defaults)
        self._facts = None if facts is None else _facts.checked(facts)
        _facts.check_needs(requested, settings, facts)
        self._metrics, self._names = metrics, [metric.name for metric in requested]
        self._state: _State | None = None
        self._like: Frame | None = None
        self._systems: list[str] = []  # the names of the dicts of runs, in their order
        of_all = any(metric.is_of_all_lists for metric in requested)
        self._keeps_plan = not (settings.inputs or of_all)
        self._key = object()  # of kept plans, which know the groups of the first batch

    def __repr__(self) -> str:
        names, state = ", ".join(map(repr, self._names)), self._state
        users = 0 if state is None else state.units.height
        return f"Meter({names}): {users} user{'' if users == 1 else 's'}"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        vars(self).update(state, _lock=threading.Lock())

    @_by_one_thread
    def reset(self) -> None:
        """Forget all batches."""
        self._state, self._systems, self._key = None, [], object()

    @adapters.takes_arrow
    @_by_one_thread
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
            tables have, or a group of the columns that the truth lacks was not in the first batch.
            After any error the meter is as before.
        """
        roles = copy.deepcopy(self._roles)
        opened = arguments.opened(
            "update", ["run", "truth"], [frame, truth], {"by": self._by, **roles}
        )
        (runs, truth), columns = opened.args, cast("Columns", opened.options)
        del opened.options["by"]
        table, by, columns = run_dicts.as_frame(runs, self._by, columns, whole=False)
        items = readers.with_items(table, truth, by, columns)
        run = _eager(items, "run" if truth is not None else "judged table")
        judgments = None if truth is None else _eager(truth, "truth")
        before, self._settings = self._settings, replace(self._settings, columns=columns)
        try:
            batch = self._batch(run, judgments, by)
            state = batch if self._state is None else _merged(self._state, batch)
        except BaseException:
            self._settings = before
            raise
        self._by, self._state, self._like = by, state, _without_rows(table)
        self._roles = roles
        if isinstance(runs, Mapping):
            self._add_systems(cast("Mapping[str, object]", runs))

    @_by_one_thread
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
        if self._facts != other._facts:
            msg = "the meters differ in facts=: pass the same ones to both"
            raise ValueError(msg)
        if other._state is None:
            return
        users, theirs = self._roles.get("user"), other._roles.get("user")
        if isinstance(users, several_users.Users) and isinstance(theirs, several_users.Users):
            users.note_types(theirs.types, "other meter")
        self._by, state = by, self._state
        if state is None:
            self._settings = replace(self._settings, columns=other._settings.columns)
        self._state = other._state if state is None else _merged(state, other._state)
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
        keywords.check_switch("total", total)
        state = self._state
        if state is None or self._like is None:
            msg = "the Meter has no batch: call update first"
            raise RankingDataError(msg)
        keywords.check_total(self._by, total=total)
        numbers, like = _recipes.added(pl.concat(state.numbers)), self._like
        with adapters.cures_of_caller([like], {}):
            _recipes.raise_if_whole_is_broken(numbers, policy=self._settings.users)
        means = _recipes.means_of(numbers, total=total)
        if self._systems:
            order = self._by[0], pl.Enum(self._systems)
            means = adapters.with_order_of_names(means, *order).sort(self._by, nulls_last=True)
            adapters.note_order(like, order[0], self._systems)
        return cast("MeterFrameT", adapters.to_caller_type(means.lazy(), like=like))

    def _batch(self, run: pl.DataFrame, truth: pl.DataFrame | None, by: list[str]) -> _State:
        """Return the state of a meter that has only this batch."""
        settings = self._settings
        tables = _partitions.tables_of(run, truth, by, settings.columns)
        lacking = _partitions.lacking_of(tables)
        facts = self._facts if self._state is None else self._state.facts
        if facts is None and lacking:
            facts = _facts.first_groups(tables, lacking)

        def plan(frames: Mapping[str, pl.DataFrame | pl.LazyFrame]) -> pl.LazyFrame:
            of_users = frames.get("truth")
            part: _facts.Part = _facts.part_of(frames["run"], of_users, by, settings, facts)
            question = ask(part.frame, self._metrics, of_users, by, settings, totals=part.totals)
            values = evaluation.plan_means(question)
            _facts.check_grades(values, facts)
            small = _recipes.small_frame(values, settings, None)
            return pl.concat([*part.checks(_numbers.SCHEMA), small])

        frames = {"run": run} if truth is None else {"run": run, "truth": truth}
        if self._keeps_plan:
            numbers = kept_plans.collected((self._key, *by), frames, plan, grouped=bool(by))
        else:
            numbers = adapters.collected(plan(frames), sum(map(len, frames.values())))
        return _State(tables[0].user, _units(tables), facts, [numbers])


def _eager(frame: Truth, table: str) -> pl.DataFrame:
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
        types = pl.Schema(_groups.common_types(old.schema, new.schema))
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
    return pl.concat([old, new], rechunk=old.n_chunks() >= _sizes.BATCHES_ADDED)


def _merged(left: _State, right: _State) -> _State:
    """Put the batches of two meters together."""
    if left.facts != right.facts:
        ours, theirs = (
            _facts.groups_of(state.facts) if state.facts else pl.DataFrame()
            for state in (left, right)
        )
        if ours.columns != theirs.columns:
            msg = (
                f"truth: it lacks {ours.columns} of by= in some batches, and {theirs.columns} in "
                "others: give it the same columns in all"
            )
            raise RankingDataError(msg)
        if len(_groups.united([ours, theirs])) != len(ours) or len(ours) != len(theirs):
            msg = (
                f"the first batches of the meters have other groups of {ours.columns}: pass "
                "facts=rf.parts.facts(run, truth=truth, by=…) to both"
            )
            raise RankingDataError(msg)
    numbers = [*left.numbers, *right.numbers]
    if len(numbers) > _sizes.BATCHES_ADDED:
        numbers = [_recipes.added(pl.concat(numbers))]
    return left._replace(units=_united(left, right), numbers=numbers)
