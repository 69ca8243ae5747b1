"""Tests pairs of systems: ``Pair`` records and a ``Trial`` in, p-values and verdicts out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import inf, isfinite, isnan, log, nan
from typing import TYPE_CHECKING

import polars as pl

from rankframe import _sizes
from rankframe._comparison import decision, notes, system_pairs, trials
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import (
    always_valid,
    np,
    power_statistics,
    relative_differences,
    statistics,
    system_statistics,
)
from rankframe._comparison.system_pairs import Matrix, Pair, Tested
from rankframe._comparison.trials import Trial
from rankframe._request.labels import RequestedMetric
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from rankframe._comparison.decision import Estimate
    from rankframe._comparison.statistics import Advance, Array, Outcome, Sample


def test_in_batches(
    matrices: Iterator[Matrix],
    systems: Sequence[tuple[int, int]],
    trial: Trial,
    advance: Advance,
) -> Iterator[tuple[list[Pair], Tested]]:
    """Test each pair on its own, as many at a time as memory has room for."""
    room = _sizes.CELLS_RESAMPLED if trial.test == "randomization" else _sizes.CELLS_TESTED
    batch: list[Pair] = []
    cells = 0
    for matrix in matrices:
        for pair in system_pairs.pairs_of(matrix, systems):
            cells += len(pair.difference)
            if batch and cells > room:
                yield batch, test_pairs(batch, trial, advance)
                batch, cells = [], len(pair.difference)
            batch.append(pair)
    if batch:
        yield batch, test_pairs(batch, trial, advance)


def test_pairs(pairs: Sequence[Pair], trial: Trial, advance: Advance) -> Tested:
    """Test each pair on its own; nothing is corrected yet."""
    if trial.test == "sequential":
        return _test_looks(pairs, trial, advance)

    of_means = zip(*(pair.of_mean for pair in pairs), strict=True)
    outcome = statistics.outcome_of(decision.Estimate(*map(np.array, of_means)), trial.confidence)
    if trial.test == "randomization":
        samples = [pair.sample for pair in pairs]
        reduce = partial(statistics.randomization, resampling=trial.resampling)
        outcome = outcome._replace(p=statistics.in_matrices(samples, reduce, advance).p)
    said = [_undefined(pair) for pair in pairs]
    for place, pair in enumerate(pairs):
        if pair.undefined == trials.NOBODY_DIFFERS:  # by no test: it would count in a correction
            outcome.p[place] = nan
        elif trial.test in trials.WITH_T or pair.undefined == trials.ALL_DIFFER_ALIKE:
            few = _where_few_differ(outcome, place, pair, trial)
            if trial.undecided != "fail":  # there, the rule of the margin says what decides
                said[place] = few or said[place]
        if pair.runs is not None:
            pair.runs.widen(outcome, place, pair.of_mean, trial.confidence)
    return Tested(outcome, outcome.p.copy(), said)


def estimate(pair: Pair) -> Estimate:
    """Estimate the mean difference, with the error of its users and of its training runs."""
    return pair.of_mean if pair.runs is None else pair.runs.added_to(pair.of_mean)


def _undefined(pair: Pair) -> list[Note]:
    """Note why the differences of a pair have no test."""
    said = pair.reason(cure="paired=False" if pair.undefined == trials.NO_PAIR else None)
    return [said] if said else []


def _where_few_differ(outcome: Outcome, place: int, pair: Pair, trial: Trial) -> list[Note]:
    """Take the exact test where few users differ, with an interval that agrees; note it."""
    if pair.undefined == trials.ALL_DIFFER_ALIKE and len(pair.sample.values) > 1:
        outcome.p[place] = 0.5 ** (len(pair.sample.values) - 1)  # whatever the weights
        return [notes.note("exact_alike")]
    differ = sum(pair.sure.signs)
    if isnan(outcome.p[place]) or differ >= statistics.FEW_USERS:
        return []
    said: list[Note] = []
    if trial.test == "t":
        few = {"number": differ, "unit": pair.unit}
        merged = len(pair.sample.values) < len(pair.difference)
        weights = pair.sample.weights
        uneven = weights is not None and weights.min() < weights.max()
        if merged or uneven or pair.averaged is not None or pair.human is not None:
            what = "of clusters" if merged else "with weights" if uneven else "of groups"
            what = what if pair.human is None else "with human labels"
            return [notes.note("no_exact", what=what, **few)]
        outcome.p[place] = statistics.exact_p(pair.sample.values)
        said = [notes.note("exact", **few)]
    ends = float(outcome.low[place]), float(outcome.high[place])
    agreeing = statistics.agreeing(pair.sample, float(outcome.p[place]), ends, trial.alpha)
    outcome.low[place], outcome.high[place] = agreeing
    return said


def _test_looks(pairs: Sequence[Pair], trial: Trial, advance: Advance) -> Tested:
    """Test by bets, within the range of the metric."""
    widths = np.array([trial.widths[pair.metric] for pair in pairs])
    outcome = statistics.in_matrices(
        [_in_units(pair, width) for pair, width in zip(pairs, widths.tolist(), strict=True)],
        lambda sample, _: always_valid.bets(sample, trial.confidence),
        advance,
    )
    outcome = outcome._replace(low=outcome.low * widths, high=outcome.high * widths)
    return Tested(outcome, outcome.p.copy(), [*map(_notes_of_looks, pairs)])


def _notes_of_looks(pair: Pair) -> list[Note]:
    if pair.weights is not None:
        return [notes.note("uneven")]
    return [*_undefined(pair), *[notes.note("looks")] * (len(pair.difference) > 0)]


def _in_units(pair: Pair, width: float) -> Sample:
    """Divide differences by the width of the range, so that they are in [−1, 1]."""
    values = pair.sample.values / width
    if len(values) and not (abs(values) <= 1 + trials.NOTHING).all():
        farthest = float(abs(pair.sample.values).max())
        msg = (
            f"metric {pair.metric!r}: two values of one user differ by {farthest:.6g}, but its "
            f"range has the width {width:.6g}: declare a range that has all values"
        )
        raise RankingDataError(msg)
    return pair.sample._replace(values=values.clip(-1, 1))


def test_jointly(pairs: Sequence[Pair], trial: Trial, advance: Advance) -> Tested:
    """Test all pairs of a metric at once by flipped signs; pairs without spread are left out."""
    tested = test_pairs(pairs, trial, advance)
    samples = [pair.sample for pair in pairs]
    varied = [
        place
        for place, sample in enumerate(samples)
        if system_pairs.why_undefined(sample.values) is None
    ]
    tested = tested._replace(adjusted=np.minimum(tested.adjusted * len(pairs), 1))  # those left out
    if not varied:
        return tested
    changes: list[Array] = []
    centered: list[Array] = []
    for values, weights, _ in (samples[place] for place in varied):
        of_units = 1.0 if weights is None else weights
        changes.append(of_units * values)
        centered.append(of_units * (values - statistics.weighted_mean(values, weights)))
    flips = system_statistics.max_t(np.column_stack(changes), trial.resampling, advance)
    reach, why = system_statistics.max_t_reach(
        np.column_stack(centered), trial.confidence, trial.resampling, advance
    )
    tested = tested._replace(reach=reach)
    tested.outcome.p[varied], tested.adjusted[varied] = flips
    for place in varied:
        mean = statistics.mean_of(samples[place])
        margin = reach * statistics.standard_error(*samples[place][:2])
        ends = np.array([mean - margin, mean + margin]) if isfinite(margin) else np.full(2, nan)
        low, high = statistics.rounded(ends, np.abs(mean) + margin)
        if not decision.shows(tested.adjusted[place], trial.alpha):
            low, high = np.minimum(low, 0), np.maximum(high, 0)
        elif low <= 0 <= high:  # stepping down shows on which side of 0, and not how far
            nearest = statistics.ROUNDING * mean
            low, high = (nearest, high) if mean > 0 else (low, nearest)
        tested.outcome.low[place], tested.outcome.high[place] = low, high
        if why:
            tested.notes[place].insert(0, notes.note("no_reach", what=why))
    return tested


def numbers(pair: Pair) -> dict[str, float | None]:
    """Describe a pair without a test."""
    change, weights = pair.difference, pair.weights
    has_users, varied = len(change) > 0, pair.undefined is None and pair.human is None
    difference, mean, baseline_mean = pair.means
    higher, lower = pair.signs_of_users
    if has_users and weights is not None:  # what rounding leaves of 0 is 0
        size = statistics.weighted_mean(abs(change), weights)
        difference = 0.0 if abs(difference) <= trials.NOTHING * size else difference
    missed, of_baseline = pair.missed or (None, None)
    return {
        **dict.fromkeys(("users", "baseline_users"), len(change)),
        "num_left_out": pair.left_out,
        "num_missed": missed,
        "baseline_num_missed": of_baseline,
        "mean": mean,
        "baseline_mean": baseline_mean,
        "difference": difference,
        "effect_size": difference / float(statistics.deviation(change, weights)) if varied else nan,
        "higher": higher,
        "equal": len(change) - higher - lower,
        "lower": lower,
        **({} if pair.human is None else pair.human.numbers),
    }


def relative(
    pair: Pair, trial: Trial, ends: tuple[float, float], reach: float | None = None
) -> tuple[dict[str, float], Note | None]:
    """Divide the difference by the mean of the baseline; note why there is no number.

    ``ends`` are those of the difference: both intervals have 0, or none has.
    """
    if not len(pair.difference):
        return dict.fromkeys(trials.RELATIVE, nan), None
    difference, _, mean = pair.means
    if pair.human is not None:
        difference, mean = (pair.human.numbers[name] for name in ("difference", "baseline_mean"))
    low = high = nan
    if pair.undefined is None and trial.test != "sequential":
        baseline = pair.baseline_sample.values
        low, high = relative_differences.paired_interval(
            estimate(pair), pair.sample, baseline, trial.confidence, reach, pair.runs
        )
        if mean > 0 and not isnan(sum(ends)):
            least, greatest = (end / mean for end in ends)
            if least <= 0 <= greatest:
                low, high = min(low, 0.0), max(high, 0.0)
            elif low <= 0 <= high:
                low, high = (least, high) if least > 0 else (low, greatest)
    return shares_of(difference, mean, (low, high))


def shares_of(
    difference: float, mean: float, interval: tuple[float, float]
) -> tuple[dict[str, float], Note | None]:
    """Return the relative difference and its interval, and note why there is none."""
    low, high = interval
    if not mean > 0:  # it would turn the sign
        note = notes.note("negative_baseline", mean=mean) if mean < 0 else None
        return dict.fromkeys(trials.RELATIVE, nan), note
    note = None
    if low == high:
        low, high, note = nan, nan, notes.note("one_share")
    return dict(zip(trials.RELATIVE, (difference / mean, low, high), strict=True)), note


def directions_of(requested: Sequence[RequestedMetric]) -> dict[str, bool | None]:
    """Return for each metric whether higher is better; None if neither is, or if undeclared."""
    return {metric.name: metric.traits.higher_is_better for metric in requested}


def widths_of(requested: Sequence[RequestedMetric]) -> dict[str, float]:
    """Return for each metric how far two users' values can differ; of a geometric mean, in ln."""
    widths: dict[str, float] = {}
    for metric in requested:
        traits, epsilon = metric.traits, metric.over_users.epsilon
        widths[metric.name] = traits.width
        if epsilon is not None and isfinite(traits.width):
            least, greatest = traits.least + epsilon, traits.greatest + epsilon
            widths[metric.name] = log(greatest / least) if least > 0 else inf
    return widths


def of_families(table: pl.DataFrame, trial: Trial) -> pl.DataFrame:
    """Take ``detectable`` at the level of one of all comparisons that are corrected together."""
    if trial.correction is None or not table["detectable"].count():
        return table
    family = pl.col("metric").eq_missing(pl.lit(trial.primary, pl.String))
    sizes = table.select(pl.col("p_value").count().over(family))["p_value"]
    alone = power_statistics.Design(trial.confidence, trials.POWER)

    def ratio(users: float, comparisons: int) -> float:
        level = power_statistics.of_family(trial.confidence, max(1, comparisons))
        of_one = power_statistics.least_distance(users, alone)
        design = power_statistics.Design(level, trials.POWER)
        return power_statistics.least_distance(users, design) / of_one

    ratios = [
        None if value is None else ratio(users, size)
        for value, users, size in zip(table["detectable"], table[trials.NUMBER], sizes, strict=True)
    ]
    return table.with_columns(pl.col("detectable") * pl.Series(ratios, dtype=pl.Float64))
