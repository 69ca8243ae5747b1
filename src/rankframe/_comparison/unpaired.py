"""Compares groups of different users, such as weeks: ``Matrix`` records in, rows of numbers out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import comb, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rankframe._comparison import (
    cautions,
    decision,
    margins,
    notes,
    pair_tests,
    sentences,
    summaries,
    system_pairs,
    trials,
)
from rankframe._comparison.margins import Side
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import np, overlapping_samples, statistics
from rankframe._comparison.system_pairs import Matrix, Place
from rankframe._comparison.trials import Bound, Trial
from rankframe._evaluation.values import Values
from rankframe._request.labels import RequestedMetric, Traits

if TYPE_CHECKING:
    from rankframe._comparison.decision import Estimate
    from rankframe._comparison.overlapping_samples import Overlap
    from rankframe._comparison.statistics import Below, Places, Sample


class Group(NamedTuple):
    """The users of one system who have a value."""

    users: Sample  # one value per user
    of_users: Places  # who they are
    units: Sample  # independent observations: users or clusters
    of_units: Places
    returning: int  # rows beyond one per user, which were merged
    missed: int | None  # users without a list


def rows_of(
    matrices: Iterator[Matrix],
    systems: Sequence[tuple[int, int]],
    values: Values,
    trial: Trial,
    names: pl.Series,
) -> Iterator[tuple[Place, dict[str, Any]]]:
    """Describe and test each pair of systems."""
    metrics = {metric.name: metric for metric in values.requested}
    for matrix in matrices:
        groups: dict[int, Group] = {}
        for pair in systems:
            for column in pair:
                if column not in groups:
                    groups[column] = _group_of(matrix, column)
            place = Place(matrix.segment, matrix.metric, *pair)
            both = groups[pair[0]], groups[pair[1]]
            yield place, _row(place, both, trial, names, metrics[place.metric])


def _row(
    place: Place,
    groups: tuple[Group, Group],
    trial: Trial,
    names: pl.Series,
    metric: RequestedMetric,
) -> dict[str, Any]:
    new, old = groups
    _, *common = np.intersect1d(new.of_units, old.of_units, return_indices=True)
    overlap = overlapping_samples.overlap(new.units, old.units, (common[0], common[1]))
    traits = metric.traits
    margin = trial.margins.get(place.metric)
    of_groups = [names[place.system], names[place.baseline]]
    said: list[Note | None] = [*_notes(groups, of_groups, overlap)]
    p = _exact_p(*groups) if overlap is None else nan
    numbers: dict[str, Any] = {**_numbers(*groups), "p_value": p, "p_adjusted": p}
    interval = nan, nan
    if overlap is not None:
        numbers |= _tests(overlap, trial)
        interval = overlap.relative_interval(trial.confidence)
        users = min(len(group.users.values) for group in groups)
        said += cautions.cautions_of_groups(users, numbers["effect_size"], trial, metric)
        if trial.undecided != "fail":  # there, the rule of the margin says what decides
            said.append(_no_exact_test(groups, of_groups))
    if margin is not None:
        numbers |= _of_margin(overlap, groups, of_groups, margin, traits, numbers, trial)
        if trial.undecided is None and overlap is not None:
            said.append(margins.note_of_evidence(numbers))
    means = numbers["difference"], numbers["baseline_mean"]
    shares, doubt = pair_tests.shares_of(*means, interval)
    numbers |= shares
    if metric.over_users.epsilon is None:  # a ratio has no relative difference
        said.append(doubt)
    return {**numbers, "note": notes.packed(said)}


def _group_of(matrix: Matrix, column: int) -> Group:
    """Return the users whose value of a system is defined, each of them once."""
    if matrix.weights is not None and matrix.weights.ndim > 1:
        matrix = matrix._replace(weights=matrix.weights[:, column])
    values, weights = matrix.values[:, column], matrix.weights
    counts = system_pairs.with_weight(matrix, ~np.isnan(values))
    if weights is not None:
        weights = statistics.shares(weights[counts])
    ids = np.arange(len(values)) if matrix.users is None else matrix.users
    ids, kept = ids[counts], [values[counts]]
    if matrix.missed is not None:
        kept.append(matrix.missed[counts, column])
    number = len(ids)
    clusters = None if matrix.clusters is None else matrix.clusters[counts]
    if number:
        kept, weights, (clusters,) = statistics.of_users(ids, kept, weights, clusters)
    users = statistics.Sample(kept[0], weights)
    of_users = ids if len(kept[0]) == number else np.unique(ids)
    units, of_units = users, of_users
    if clusters is not None and len(clusters):
        units, of_units = statistics.of_clusters(clusters, users), clusters
        if len(units.values) < len(clusters):
            of_units = np.unique(clusters)
    missed = None if matrix.missed is None else system_pairs.number_without(kept[1])
    return Group(users, of_users, units, of_units, number - len(users.values), missed)


def _numbers(system: Group, baseline: Group) -> dict[str, Any]:
    """Describe two groups without a test."""
    means = [
        float(statistics.mean_of(group.users)) if len(group.users.values) else nan
        for group in (system, baseline)
    ]
    effect = nan
    if min(len(group.users.values) for group in (system, baseline)) > 1:
        squares = [
            float(statistics.deviation(*group.users[:2])) ** 2 * _varies(group)  # else of rounding
            for group in (system, baseline)
        ]
        if spread := (sum(squares) / 2) ** 0.5:
            effect = (means[0] - means[1]) / spread
    return {
        "users": len(system.users.values),
        "baseline_users": len(baseline.users.values),
        "num_left_out": 0,
        "num_missed": system.missed,
        "baseline_num_missed": baseline.missed,
        "mean": means[0],
        "baseline_mean": means[1],
        "difference": means[0] - means[1],
        "effect_size": effect,
    }


def _tests(overlap: Overlap, trial: Trial) -> dict[str, Any]:
    """Test the difference."""
    of_mean = overlap.estimate()
    low, high = of_mean.interval(trial.confidence)
    return {
        "difference": float(of_mean.mean),
        "p_value": (p := float(of_mean.p())),
        "p_adjusted": p,
        "ci_low": float(low),
        "ci_high": float(high),
        trials.NUMBER: float(of_mean.freedom) + 1,
        "detectable": of_mean.detectable(trial.confidence),
    }


def _of_margin(
    overlap: Overlap | None,
    groups: Sequence[Group],
    names: Sequence[object],
    margin: Bound,
    traits: Traits,
    numbers: Mapping[str, Any],
    trial: Trial,
) -> dict[str, Any]:
    """Test whether the difference is within the margin, and whether it is beyond."""
    if min(len(group.units.values) for group in groups) < 2:
        return {}
    higher = traits.higher_is_better
    sign = -1 if higher is False else 1
    of_zero = margins.numbers_without_margin(numbers["p_value"], sign * numbers["difference"])
    beyond = of_zero[decision.P_BEYOND]
    share, size = (margin.size, 0.0) if margin.relative else (0.0, margin.size)
    alike = _no_spread(groups, names) if overlap is None else None
    if not margin.size and not isnan(beyond):
        return {**of_zero, decision.EVIDENCE: notes.packed([alike])}
    if alike is not None and trial.undecided == "pass" and not numbers["difference"]:
        return margins.numbers_of((Side(why=alike),) * 2, 1.0, higher_is_better=higher)
    if why := margins.no_share_of(numbers["baseline_mean"], margin):
        return margins.numbers_of((Side(why=why),) * 2, nan, higher_is_better=higher)
    if overlap is None:  # without a spread, the exact test of the difference is that of its bound
        assert alike is not None
        loss = -sign * numbers["difference"] - share * numbers["baseline_mean"]
        sides = [_side_of_alike(groups, alike, margin, side, traits, trial) for side in (1, -1)]
        if loss > size:
            sides = [side._replace(why=alike) for side in sides]
        elif isfinite(traits.width) or numbers["difference"] or not margin.size:
            beyond = 1.0  # else, nothing bounds what the mean may be
        return margins.numbers_of(sides, beyond, higher_is_better=higher)
    why = _untested(groups, names)
    of_mean = overlap.estimate(-share), overlap.estimate(share).mirrored()
    own = of_mean[sign < 0].mirrored()
    beyond = max(float(own.p_above(size)), beyond)
    above, below = (
        Side(why=why) if why else _side(of, size, margin, groups, side, traits, trial)
        for of, side in zip(of_mean, (1, -1), strict=True)
    )
    return margins.numbers_of((above, below), beyond, higher_is_better=higher)


def _side(
    of_mean: Estimate,
    size: float,
    margin: Bound,
    groups: Sequence[Group],
    sign: int,
    traits: Traits,
    trial: Trial,
) -> Side:
    """Test one side of the margin, and values too rare for a t test: low new ones, high old."""
    p = float(of_mean.p_above(-size))
    if not isfinite(traits.width):
        return Side(p)
    turned = _turned(groups, margin, sign, traits)
    means = [float(statistics.mean_of(sample)) for sample, _ in turned]
    unseen = max(
        float(statistics.rare(sample, least).p_above(-other - size, least))
        for (sample, least), other in zip(turned, reversed(means), strict=True)
    )
    rare = decision.shows(p, trial.alpha / 2) and not decision.shows(unseen, trial.alpha / 2)
    return Side(max(p, unseen), notes.note("rare_in_groups") if rare else None)


def _turned(
    groups: Sequence[Group], margin: Bound, sign: int, traits: Traits
) -> list[tuple[Sample, float]]:
    """Return the units of both groups, and their least value, so that all of them may be too low.

    Those of the baseline have the other sign.
    """
    share = 1 - sign * margin.size if margin.relative else 1.0
    new, old = (
        group.units._replace(values=factor * group.units.values)
        for group, factor in zip(groups, (sign, -sign * share), strict=True)
    )
    ends = sorted((sign * traits.least, sign * traits.greatest))
    return [(new, ends[0]), (old, -share * ends[1])]


def _side_of_alike(
    groups: Sequence[Group], alike: Note, margin: Bound, sign: int, traits: Traits, trial: Trial
) -> Side:
    """Test one side of the margin without a spread, by the share of users who may have less."""
    new, old = (group.units for group in groups)
    tail, unit = trial.alpha / 2, "cluster" if trial.cluster else "user"
    if not margin.size:
        return Side(why=alike)
    if alike.kind == trials.NOBODY_DIFFERS:
        same = new._replace(values=0 * new.values)
        return margins.exact_side(same, old, margin, traits.width, tail, unit)
    if not isfinite(traits.width) or alike.kind == "exact_alike":
        return Side(why=alike)

    def bounds(margin: Bound) -> list[tuple[Below, float, float, float]]:
        """Return who has less, the value of a group, what it must reach, and the least value."""
        turned = _turned(groups, margin, sign, traits)
        amounts = [float(sample.values[0]) for sample, _ in turned]
        return [
            (statistics.Below(0.0, statistics.number_of(sample)), amount, -other, least)
            for (sample, least), amount, other in zip(
                turned, amounts, reversed(amounts), strict=True
            )
        ]

    size = 0.0 if margin.relative else margin.size
    p = max(
        float(statistics.Rare(less, amount).p_above(bound - size, least))
        for less, amount, bound, least in bounds(margin)
    )
    loss = max(
        bound - less.least_mean(amount, least, tail)
        for less, amount, bound, least in bounds(Bound(0.0))
    )
    numbers = {"number": len(new.values), "others": len(old.values), "unit": unit}
    return Side(p, notes.note("loss_of_groups", **numbers, loss=max(loss, 0.0)))


def _exact_p(system: Group, baseline: Group) -> float:
    """Permute users of two groups without spread, and the values of those in both.

    Only one way has a difference as great, and one its negative. NaN where there is no difference.
    """
    new, old = system.units.values, baseline.units.values
    if min(len(new), len(old)) < 2 or new[0] == old[0]:
        return nan
    common = len(np.intersect1d(system.of_units, baseline.of_units))
    ways = comb(len(new) + len(old) - 2 * common, len(new) - common)
    return min(1.0, 2 / ((1 << common) * ways))


def _varies(group: Group) -> bool:
    return bool(group.users.values.min() < group.users.values.max())


def _no_spread(groups: Sequence[Group], names: Sequence[object]) -> Note:
    """Note that two groups have one value each, or that all users differ alike."""
    if any(_varies(group) for group in groups):
        first, second = (group.units.values[0] for group in groups)
        return notes.note("exact_alike" if first != second else trials.NOBODY_DIFFERS)
    system, baseline = map(sentences.name_in_note, names)
    (number, value), (others, other) = (
        (len(group.users.values), group.users.values[0]) for group in groups
    )
    of_system = {"system": system, "number": number, "value": value}
    of_baseline = {"baseline": baseline, "others": others, "other": other}
    kind = "all_have" if value == other else "exact_groups"
    return notes.note(kind, **of_system, **of_baseline)


def _no_exact_test(groups: Sequence[Group], names: Sequence[object]) -> Note | None:
    """Note that so few users tell that paired users would have an exact test."""
    for group, name in zip(groups, names, strict=True):
        telling, frequent = statistics.telling_users(group.units)
        if telling < statistics.FEW_USERS:
            of = {"frequent" if frequent else "group": sentences.name_in_note(name)}
            return notes.note("no_exact_of_groups", number=telling, **of)
    return None


def _untested(groups: Sequence[Group], names: Sequence[object]) -> Note | None:
    """Note why a margin cannot be tested: nearly all users of a group have the same value."""
    for of_group, name in zip(groups, names, strict=True):
        amounts, counts = np.unique(of_group.units.values, return_counts=True)
        alike, number = int(counts.max()), len(of_group.units.values)
        if 2 * alike > number and number - alike < statistics.FEW_USERS:
            value, group = amounts[counts.argmax()] + 0.0, sentences.name_in_note(name)
            counted = {"alike": alike, "number": number, "value": value}
            return notes.note("nearly_alike", group=group, **counted)
    return None


def _notes(groups: Sequence[Group], names: Sequence[object], overlap: Overlap | None) -> list[Note]:
    """Note who is compared, and why there is no test."""
    said: list[Note] = []
    system, baseline = of_names = [*map(sentences.name_in_note, names)]
    numbers = [len(group.users.values) for group in groups]
    if overlap is None:
        said = [
            notes.note("one_user_of" if number else "no_value_of", system=name)
            for name, number in zip(of_names, numbers, strict=True)
            if number < 2
        ] or [_no_spread(groups, names)]
    common = len(np.intersect1d(groups[0].of_users, groups[1].of_users))
    counts = dict(zip(("number", "others", "common"), (*numbers, common), strict=True))
    said.append(notes.note("groups", system=system, baseline=baseline, **counts))
    for group, name in zip(groups, of_names, strict=True):
        more = summaries.notes_of_users(group.users.values, group.users.weights, group.returning)
        if group.units is not group.users:
            more += sentences.notes_of_clusters(group.users, group.units)
        said += [notes.note(kind, **values, group=name) for kind, values in more]
        said += sentences.notes_of_missed(group.missed or 0, len(group.users.values), name, least=0)
    return said
