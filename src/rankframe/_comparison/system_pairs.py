"""Puts systems side by side: ``Values`` in, ``Matrix`` and ``Pair`` records out."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import nan
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rankframe._comparison import notes, summaries, trials
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import human_labels, np, run_variance, statistics
from rankframe._comparison.trials import Trial
from rankframe._evaluation import averages, human_values, training_runs, user_columns
from rankframe._evaluation.values import Values
from rankframe._request.labels import RequestedMetric
from rankframe._tables import rules
from rankframe.errors import Problem, RankingDataError, option

if TYPE_CHECKING:
    from rankframe._comparison.decision import Estimate
    from rankframe._comparison.human_labels import Both
    from rankframe._comparison.run_variance import RunError
    from rankframe._comparison.statistics import Array, Bits, Outcome, Places, Sample


def _check_logarithms(rows: pl.DataFrame, values: Values) -> None:
    """Check that no value is 0 if its logarithm is compared."""
    for metric in values.requested:
        if metric.over_users.epsilon is None:
            continue
        wrong = rows.filter(pl.col(metric.name).is_infinite()).select(*values.by, values.user)
        if not wrong.is_empty():
            row = rules.format_row(wrong.sort(*values.by, values.user).head(1))
            msg = (
                f"metric {metric.name!r}: a value of 0, which has no logarithm to compare: ask for "
                f"it with epsilon > 0. Offending row: {row}"
            )
            raise RankingDataError(msg)


class Matrix(NamedTuple):
    """A metric in a segment: one row per user, one column per system, NaN where undefined."""

    segment: int
    metric: str
    values: Array
    names: pl.Series  # of the users; of several segments together, one may be in several rows
    weights: Array | None = None  # of pooled users who are not paired, a column per system
    weighted_by: str | None = None  # the column of the weights
    users: Places | None = None  # of all segments together: the user of each row
    clusters: Places | None = None
    missed: Array | None = None  # 1 where the system has no list for the user, else 0
    left_out: int | None = None  # of a complete matrix: users without values in all systems
    valueless: int = 0  # of these, users without a value in any system
    averaged: Places | None = None  # the group of each user, if the mean is that of groups
    row: pl.DataFrame | None = None  # the segment in words, if there are any
    runs: Array | None = None  # of each training run, user and system
    human: Array | None = None  # values by human labels, NaN of other users
    labelled: Bits | None = None  # who has them


class Place(NamedTuple):
    """Which systems are compared, by which metric, in which segment."""

    segment: int
    metric: str
    system: int
    baseline: int


class Corrected(NamedTuple):
    """A pair of the users with human labels, and what they correct in that of all users."""

    alone: Pair
    baseline: Sample  # as the differences are corrected
    numbers: dict[str, Any]  # columns of the comparison
    both: Both  # the differences by the judge and by humans


@dataclass(frozen=True)
class Pair:
    """A system and its baseline on the users they share; what several verbs need is kept."""

    segment: int
    metric: str
    system: int
    baseline: int
    of_system: Array
    of_baseline: Array
    difference: Array
    weights: Array | None
    returning: int  # rows beyond one per user, which were merged
    clusters: Places | None
    sample: Sample  # the differences of independent observations: users or clusters
    undefined: str | None  # the kind of the note why the differences have no test
    counts: Bits  # the rows of the matrix that are compared
    names: pl.Series  # of the users in all of its rows
    missed: tuple[int, int] | None = None  # users without a list of the system, of the baseline
    left_out: int = 0  # users with a value in one group only, or in no group at all
    valueless: int = 0  # of these, users for whom no system has a value
    joint: bool = False  # the users are those of all systems
    unserved: Bits | None = None  # users without a list of both; None if there is none
    averaged: Places | None = None  # the group of each user, if the mean is that of groups
    groups: Places | None = None  # those of all users
    runs: RunError | None = None  # what the training runs add to the error
    human: Corrected | None = None  # then the sample is corrected; other values are the judge's

    @cached_property
    def of_mean(self) -> Estimate:
        """The mean difference, with the error of its users."""
        return statistics.estimate(self.sample)

    @cached_property
    def means(self) -> tuple[float, float, float]:
        """The means over users: of the differences, the system and the baseline."""
        first, second, third = (
            float(statistics.mean_of(statistics.Sample(values, self.weights)))
            for values in (self.difference, self.of_system, self.of_baseline)
        )
        return first, second, third

    @cached_property
    def signs(self) -> tuple[int, int]:
        """How many observations rise, and how many fall, whatever their groups."""
        return self.signs_of_users if self.changes is self.difference else _signs_of(self.changes)

    @cached_property
    def signs_of_users(self) -> tuple[int, int]:
        """How many users rise, and how many fall."""
        return _signs_of(self.difference)

    @cached_property
    def baseline_sample(self) -> Sample:
        """The values of the baseline, as the differences are taken."""
        if self.human is not None:
            return self.human.baseline
        return sample_of(self.of_baseline, self.weights, self.clusters, self.averaged)

    @property
    def sure(self) -> Pair:
        """The pair whose values are true ones: of the users with human labels, if a judge's are."""
        return self if self.human is None else self.human.alone

    def reason(self, **values: object) -> Note | None:
        """Note why the differences have no test; None if they have one."""
        if not self.undefined:
            return None
        said = notes.note(self.undefined, **values)
        alike = self.undefined == trials.NOBODY_DIFFERS and not self.difference.any()
        return said if self.human is None or alike else notes.of_human(said)

    @property
    def changes(self) -> Array:
        """The differences of the observations, whatever their groups."""
        return self.sample.values if self.averaged is None else self.difference

    @property
    def unit(self) -> str:
        """What the observations are."""
        return "user" if self.clusters is None else "cluster"

    @property
    def place(self) -> Place:
        """Name the pair, without its values."""
        return Place(self.segment, self.metric, self.system, self.baseline)


class Paired(NamedTuple):
    """The segments, systems and metrics that are compared."""

    segments: pl.DataFrame  # one row per segment; with a total, the last one is null
    systems: pl.Series
    baseline: object
    order: Note | None  # about it
    pairs: list[Pair]

    def pair_keys(self, model: str, of: Sequence[Pair] | Sequence[Place]) -> list[pl.Series]:
        """Return the columns that name the system, the segment, the metric and the baseline."""
        system = self.systems.gather([pair.system for pair in of]).alias(model)
        baseline = self.systems.gather([pair.baseline for pair in of]).alias("baseline")
        return [system, *self.keys(of), baseline]

    def keys(self, of: Sequence[Pair] | Sequence[Place] | Sequence[Matrix]) -> list[pl.Series]:
        """Return the columns that name the segment and the metric."""
        segments = [column.gather([item.segment for item in of]) for column in self.segments]
        return [*segments, pl.Series("metric", [item.metric for item in of], pl.String)]

    def table(
        self, model: str, numbers: Sequence[Mapping[str, Any]], columns: Mapping[str, Any]
    ) -> pl.DataFrame:
        """Make a row per pair of its numbers, in which NaN is null."""
        table = pl.DataFrame(numbers, schema=dict(columns))
        table = table.with_columns(pl.selectors.float().fill_nan(None))
        table = table.with_columns(notes.noted(self.order))
        return table.select(*self.pair_keys(model, self.pairs), *columns)


class Tested(NamedTuple):
    """Numbers and notes per pair."""

    outcome: Outcome
    adjusted: Array
    notes: list[list[Note]]
    reach: float | None = None  # standard errors of all intervals of a joint test


def schema_of(verb: str, values: Values, columns: Mapping[str, Any]) -> dict[str, Any]:
    """Put the columns that name a pair before those that the verb makes."""
    keys: dict[str, Any] = {"metric": pl.String, "baseline": None}
    types = summaries.result_schema(verb, values, {**keys, **columns})
    return types | {"baseline": types[values.by[0]]}


def plan_of(
    verb: str,
    values: Values,
    columns: Mapping[str, Any],
    reduce: Callable[[pl.DataFrame], pl.DataFrame],
) -> pl.LazyFrame:
    """Plan a row per segment, metric and pair."""
    summaries.check_numbers(values)
    return values.rows.map_batches(reduce, schema=schema_of(verb, values, columns))


def paired_users(rows: pl.DataFrame, values: Values, trial: Trial) -> Paired:
    """Pair the users of two systems."""
    paired, matrices = open_matrices(rows, values, trial)
    systems = pairs_of_places(paired.systems.to_list(), paired.baseline)
    pairs = [pair for matrix in matrices for pair in pairs_of(matrix, systems)]
    return paired._replace(pairs=pairs)


def open_matrices(
    rows: pl.DataFrame, values: Values, trial: Trial
) -> tuple[Paired, Iterator[Matrix]]:
    """Find the systems and the segments, and return the matrices one after the other."""
    summaries.check_rows(rows, values)
    rows = summaries.in_logarithms(rows, values.requested)
    _check_logarithms(rows, values)
    model, *segments = values.by
    systems, baseline, order = systems_in(rows, model, trial)
    matrices = _matrices(rows, values, systems, trial)
    of_segments = rows.select(segments).unique().sort(segments) if segments else pl.DataFrame()
    if trial.total:
        of_segments = pl.concat([of_segments, of_segments.clear(1)])
    return Paired(of_segments, systems, baseline, order, []), matrices


class Ordered(NamedTuple):
    """The systems in their order, the one that all others are compared with, and a note on it."""

    systems: pl.Series
    baseline: object
    note: Note | None = None


def systems_in(rows: pl.DataFrame, model: str, trial: Trial) -> Ordered:
    """Order the systems, and find the baseline, which is the first one where a verb needs it.

    A dict of runs and the files of a command are an Enum here; a column of text has no order.
    """
    systems, baseline = rows[model].unique().sort(), trial.baseline
    names = systems.to_list()
    if len(names) < 2:
        msg = f"column {model!r}: only one system, {names[0]!r}: a comparison needs two"
        raise RankingDataError(msg)
    if isinstance(baseline, pl.Expr | pl.Series):
        msg = f"baseline must be the name of a system, not {type(baseline).__name__}"
        raise TypeError(msg)
    if baseline is not None:
        if baseline not in names:
            msg = f"baseline must be one of {', '.join(map(repr, names[:10]))}, not {baseline!r}"
            raise ValueError(msg)
        return Ordered(systems, baseline)
    if trial.needed_by is None:
        by_name = isinstance(systems.dtype, pl.String | pl.Categorical)
        return Ordered(systems, None, notes.note("by_name") if by_name else None)
    if isinstance(systems.dtype, pl.Enum):
        return Ordered(systems, names[0], notes.note("first_system", name=repr(names[0])))
    cures = [option("baseline", name) for name in names[:2]]
    msg = (
        f"column {model!r} has {', '.join(map(repr, names[:10]))}, but not which of them is the "
        f"baseline of {trial.needed_by}: name it, {' or '.join(cures)}"
    )
    raise ValueError(Problem(msg))


def pairs_of_places(systems: list[object], baseline: object) -> list[tuple[int, int]]:
    """Return the pairs of systems by place: with the baseline, or each with those before it."""
    places = range(len(systems))
    if baseline is None:
        return [(place, other) for other in places for place in places[other + 1 :]]
    of_baseline = systems.index(baseline)
    return [(place, of_baseline) for place in places if place != of_baseline]


_PLACED = ("__rankframe_at", "__rankframe_row", "__rankframe_column")


def _matrices(
    rows: pl.DataFrame, values: Values, systems: pl.Series, trial: Trial
) -> Iterator[Matrix]:
    """Make matrices of the rows; with a total, the last ones have the rows of all segments.

    A test of all systems at once drops users for whom a system is undefined.
    """
    segments = values.by[1:]
    rows = rows.sort(segments) if segments else rows
    groups = rows.partition_by(segments, maintain_order=True) if segments else [rows]
    for segment, group in enumerate([*groups, rows] if trial.total else groups):
        pooled = segment == len(groups)
        for matrix in _matrices_of(segment, group, values, systems, pooled=pooled):
            matrix = _with_one_weight(matrix) if trial.paired else matrix
            yield _complete(matrix) if trial.test == "max_t" else matrix


def _matrices_of(
    segment: int, rows: pl.DataFrame, values: Values, systems: pl.Series, *, pooled: bool
) -> Iterator[Matrix]:
    """Make one matrix per metric of the rows of a segment, or ``pooled`` of all segments."""
    model, *segments = values.by
    keys = [*segments, values.user] if pooled else [values.user]
    placed, users = _users_of(rows, keys, values)
    placed = placed.join(systems.to_frame().with_row_index("__rankframe_column"), on=model)
    at, row, column = (placed[name].to_numpy() for name in _PLACED)

    def arranged(numbers: Array, empty: float) -> Array:
        table = np.full((len(systems), len(users)), empty)
        table[column, row] = numbers
        return table.T

    def of_rows(name: str, empty: float) -> Array:
        return arranged(rows[name].cast(pl.Float64).to_numpy()[at], empty)

    clusters = None
    if values.cluster is not None:
        clusters = summaries.places_of_users(users[user_columns.CLUSTER])
        if pooled:
            user_columns.check_one_cluster(users, [values.user], values.cluster)
    matrix = partial(
        Matrix,
        segment,
        names=users[values.user],
        weighted_by=values.weights,
        row=rows.select(segments).head(1) if segments and not pooled else None,
        users=summaries.places_of_users(users[values.user]) if pooled else None,
        clusters=clusters,
        missed=of_rows(user_columns.MISSED, 0) if user_columns.MISSED in rows.columns else None,
        averaged=summaries.places_of_users(users[averages.GROUP]) if values.in_groups else None,
    )
    if values.has_human:
        summaries.check_labelled(rows, values, pooled=pooled)
        labels = of_rows(human_values.LABELLED, 0).any(axis=1)
        matrix = partial(matrix, labelled=np.asarray(labels, np.bool_))
    own = None if values.weights is None else users[user_columns.WEIGHT].to_numpy()
    for metric in values.requested:
        weights = own
        if metric.name in values.pooled:
            weights = of_rows(values.pooled[metric.name], nan)
        of_runs = [
            arranged(run.to_numpy()[at], nan) for run in training_runs.values_of(rows, metric.name)
        ]
        runs = np.stack(of_runs) if of_runs else None
        of_users, human = of_rows(metric.name, nan), None
        if values.has_human:
            human = of_rows(human_values.column_of(metric.name), nan)
        yield matrix(metric=metric.name, values=of_users, weights=weights, runs=runs, human=human)


def _with_one_weight(matrix: Matrix) -> Matrix:
    """Give each user one weight, in which the systems agree."""
    weights = matrix.weights
    if weights is None or weights.ndim == 1:
        return matrix
    of_user = np.fmax.reduce(weights, axis=1)  # of systems without a value it is NaN
    differ = (weights < of_user[:, None]).any(axis=1)
    if differ.any():
        pooled, cure = option("average", "pooled"), option("paired", value=False)
        msg = (
            f"metric {matrix.metric!r}, {pooled}: the systems have denominators of their own, as "
            f"for user {matrix.names[int(differ.argmax())]!r}, and a pair needs one: {cure} "
            "compares the pooled means of each, with the covariance of users in both"
        )
        raise RankingDataError(Problem(msg))
    return matrix._replace(weights=of_user)


def _users_of(
    group: pl.DataFrame, keys: Sequence[str], values: Values
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Number the users in each row, and return each one once, with the weight and the cluster."""
    at, row, _ = _PLACED
    if values.cluster is not None:
        user_columns.check_one_cluster(group.drop_nulls(values.user), keys, values.cluster)
    of_users = [(values.weights, user_columns.WEIGHT), (values.cluster, user_columns.CLUSTER)]
    columns = [name for column, name in of_users if column is not None]
    columns += [averages.GROUP] * values.in_groups
    # one sort takes a third of the time of a join with distinct users
    rows = group.select(values.by[0], *keys, *columns).with_row_index(at).drop_nulls(values.user)
    rows = rows.sort(*keys, *columns).with_columns(_runs_of(keys).alias(row))
    changes = _runs_of([row, *columns]).diff().fill_null(1) > 0
    users = rows.filter(changes).select(row, *keys, *columns)
    if columns and len(twice := users.filter(pl.col(row).is_duplicated()).select(keys).head(1)):
        msg = (
            f"column {values.weights!r}: several weights of one user: a pair of systems needs one. "
            f"Offending row: {rules.format_row(twice)}"
        )
        raise RankingDataError(msg)
    return rows.drop_nulls(keys), users


def _runs_of(keys: Sequence[str]) -> pl.Expr:
    """Number the runs of equal keys in rows that are in their order."""
    return (pl.struct(keys) if len(keys) > 1 else pl.col(keys)).rle_id()


def _complete(matrix: Matrix) -> Matrix:
    """Keep the users for whom every system is defined."""
    keep = np.asarray(~np.isnan(matrix.values).any(axis=1), np.bool_)
    users = None if matrix.users is None else matrix.users[keep]
    clusters = None if matrix.clusters is None else matrix.clusters[keep]
    missed = None if matrix.missed is None else matrix.missed[keep]
    left_out = _count_left_out(~keep, keep, matrix.users)
    valueless = _count_left_out(_without_values(matrix), keep, matrix.users)
    return matrix._replace(
        values=np.ascontiguousarray(matrix.values[keep]),
        names=matrix.names.filter(pl.Series(keep)),
        users=users,
        clusters=clusters,
        missed=missed,
        left_out=left_out,
        valueless=valueless,
    )


def _count_left_out(left_out: Bits, kept: Bits, users: Places | None) -> int:
    """Count users; over all segments, those who are kept in none."""
    if users is None:
        return int(np.count_nonzero(left_out))
    return len(np.setdiff1d(users[left_out], users[kept]))


class _Column(NamedTuple):
    """The values of a system, where they are defined, and the units of their last digits."""

    values: Array
    defined: Bits
    units: Array


def gains(pair: Pair, weights: Array | None, metric: RequestedMetric) -> pl.Series:
    """Return each user's weighted change for the better, which lists users from the worst on."""
    sign = -1 if metric.traits.higher_is_better is False else 1
    of_users = pair.difference if weights is None else weights * pair.difference
    return pl.Series(sign * of_users).round_sig_figs(12)


def pairs_of(matrix: Matrix, systems: Sequence[tuple[int, int]]) -> Iterator[Pair]:
    """Pair systems."""
    alone = None
    if matrix.human is not None:
        alone = pairs_of(matrix._replace(values=matrix.human, human=None), systems)
    columns = [
        _Column(values, ~np.isnan(values), statistics.units_of(values))
        for values in np.ascontiguousarray(matrix.values.T)
    ]
    without = _without_values(matrix)
    for system, baseline in systems:
        place = Place(matrix.segment, matrix.metric, system, baseline)
        pair = _pair(matrix, place, columns[system], columns[baseline], without)
        yield pair if alone is None else _corrected(pair, next(alone), matrix)


def _corrected(pair: Pair, alone: Pair, matrix: Matrix) -> Pair:
    """Correct the means of a pair by the human labels of the users who have them."""
    assert matrix.human is not None
    assert matrix.labelled is not None
    new, old = pair.place[2:]
    by_both: list[list[Array]] = []
    for values in (matrix.values, matrix.human):
        change = statistics.differences(values[:, new], values[:, old])
        by_both.append([change, np.where(np.isnan(change), nan, values[:, old])])
    columns = [human_labels.Both(*column) for column in zip(*by_both, strict=True)]
    units = matrix.users if matrix.clusters is None else matrix.clusters
    estimates = human_labels.corrected(columns, matrix.labelled, matrix.weights, units)
    samples = [alone.sample, alone.baseline_sample] if estimates is None else estimates
    difference, baseline_mean = (float(statistics.mean_of(sample)) for sample in samples)
    numbers = {
        "users_human": len(alone.difference),
        "correction": human_labels.mean_by(columns[0].judge, matrix.weights) - difference,
        "difference": difference,
        "mean": baseline_mean + difference,
        "baseline_mean": baseline_mean,
    }
    if alone.undefined is None:
        spread = statistics.deviation(alone.difference, alone.weights)
        numbers["effect_size"] = difference / float(spread)
    undefined = alone.undefined if len(alone.difference) else trials.NO_VALUE
    human = Corrected(alone, samples[1], numbers, columns[0])
    return replace(pair, sample=samples[0], undefined=undefined, unserved=None, human=human)


def _pair(matrix: Matrix, place: Place, system: _Column, baseline: _Column, without: Bits) -> Pair:
    """Pair two systems; ``without`` are the users for whom no system has a value."""
    weights, clusters, users = matrix.weights, matrix.clusters, matrix.users
    counts, left_out = _who_counts(matrix, system, baseline, without)
    valueless = matrix.valueless  # or, if the matrix has all users:
    if matrix.left_out is None:
        valueless = _count_left_out(without, counts, matrix.users)
    kept = slice(None) if counts.all() else counts
    if weights is not None:
        weights = statistics.shares(weights[kept])
    of_system, of_baseline = system.values[kept], baseline.values[kept]
    change = statistics.differences(
        of_system, of_baseline, (system.units[kept], baseline.units[kept])
    )
    number = len(change)
    clusters = None if clusters is None else clusters[kept]
    averaged = None if matrix.averaged is None else matrix.averaged[kept]
    if averaged is not None:
        weights = statistics.shares_of_groups(averaged, weights)
    runs = None
    if matrix.runs is not None:
        runs = run_variance.error_of(matrix.runs[:, kept], place[2:], weights, clusters)
    lists = [] if matrix.missed is None else [matrix.missed[kept, at] for at in place[2:]]
    if users is not None and number:
        columns = [of_system, of_baseline, change, *lists]
        merged, weights, (clusters, averaged) = statistics.of_users(
            users[kept], columns, weights, clusters, averaged
        )
        of_system, of_baseline, change, *lists = merged
        change = change if len(change) == number else statistics.rounded(change)
    sample = sample_of(change, weights, clusters, averaged)
    undefined = why_undefined(change) if number else _why_no_pair(matrix, system, baseline)
    if averaged is not None and undefined is None and not statistics.differs(sample.values):
        undefined = trials.ALIKE_IN_GROUPS
    return Pair(
        *place,
        of_system=of_system,
        of_baseline=of_baseline,
        difference=change,
        weights=weights,
        returning=number - len(change),
        clusters=clusters,
        sample=sample,
        undefined=undefined,
        counts=counts,
        names=matrix.names,
        missed=(number_without(lists[0]), number_without(lists[1])) if lists else None,
        left_out=left_out,
        valueless=valueless,
        joint=matrix.left_out is not None,
        unserved=_unserved(*lists) if lists else None,
        averaged=averaged,
        groups=matrix.averaged,
        runs=runs,
    )


def among(pair: Pair, kept: Bits) -> Pair:
    """Keep some users of a pair."""
    weights = None if pair.weights is None else pair.weights[kept]
    clusters = None if pair.clusters is None else pair.clusters[kept]
    change = pair.difference[kept]
    return replace(
        pair,
        of_system=pair.of_system[kept],
        of_baseline=pair.of_baseline[kept],
        difference=change,
        weights=weights,
        clusters=clusters,
        sample=sample_of(change, weights, clusters),
        undefined=why_undefined(change),
        unserved=None,
    )


def _who_counts(
    matrix: Matrix, system: _Column, baseline: _Column, without: Bits
) -> tuple[Bits, int]:
    """Find the users for whom both systems are defined; count those of one, or of none at all."""
    counts, left_out = system.defined & baseline.defined, matrix.left_out
    if left_out is None:
        alone = _with_weight_only(matrix, system.defined ^ baseline.defined)
        left_out = _count_left_out(alone | without, counts, matrix.users)
    return with_weight(matrix, counts), left_out


def _without_values(matrix: Matrix) -> Bits:
    """Find the users whom no system can satisfy, such as those without an item at ``rel=``."""
    return _with_weight_only(matrix, np.asarray(np.isnan(matrix.values).all(axis=1), np.bool_))


def _with_weight_only(matrix: Matrix, users: Bits) -> Bits:
    return users if matrix.weights is None else users & (matrix.weights > 0)


def with_weight(matrix: Matrix, counts: Bits) -> Bits:
    """Leave out users of weight 0, of whom there must be others."""
    if matrix.weights is None:
        return counts
    weighted = counts & (matrix.weights > 0)
    if matrix.weighted_by is not None and counts.any() and not weighted.any():
        user_columns.raise_no_weight(matrix.weighted_by, matrix.metric, matrix.row)
    return weighted


def _unserved(missed: Array, of_baseline: Array) -> Bits | None:
    """Return which users have no list of either system, in none of their segments."""
    unserved = np.asarray(np.minimum(missed, of_baseline) > 1 - trials.NOTHING, np.bool_)
    return unserved if unserved.any() else None


def number_without(missed: Array) -> int:
    """Count the users who have no list, in none of their segments."""
    return int(np.count_nonzero(missed > 1 - trials.NOTHING))


def _signs_of(changes: Array) -> tuple[int, int]:
    return int(np.count_nonzero(changes > 0)), int(np.count_nonzero(changes < 0))


def sample_of(
    difference: Array,
    weights: Array | None,
    clusters: Places | None,
    averaged: Places | None = None,
) -> Sample:
    """Take the differences as a sample of independent observations: users or clusters."""
    sample = statistics.Sample(difference, weights)
    if averaged is not None:
        sample = statistics.within_groups(averaged, sample)
    return sample if clusters is None else statistics.of_clusters(clusters, sample)


def _why_no_pair(matrix: Matrix, system: _Column, baseline: _Column) -> str:
    """Return the kind of the note why no user is compared; the users of two groups may differ."""
    with_values = [bool(column.defined.any()) for column in (system, baseline)]
    if (matrix.left_out or 0) > matrix.valueless or all(with_values):
        return trials.NO_PAIR
    return "no_value_in_one" if any(with_values) else trials.NO_VALUE


def why_undefined(difference: Array) -> str | None:
    """Return the kind of the note why a number is undefined."""
    if len(difference) < 2:
        return trials.ONE_USER if len(difference) else trials.NO_PAIR
    low, high = difference.min(), difference.max()
    if low == high == 0:
        return trials.NOBODY_DIFFERS
    return None if low < high else trials.ALL_DIFFER_ALIKE
