"""Tests losses for gates: ``Pair`` records and rules in, one-sided p-values and evidence out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Any

import polars as pl

from rankframe._comparison import pair_tests, system_pairs, trials
from rankframe._comparison.system_pairs import Pair, Tested
from rankframe._comparison.trials import Rule, Trial
from rankframe._request import labels
from rankframe._request.labels import RequestedMetric

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Advance, Array, Rare, Sample

#: One-sided p-values: that the system is beyond the bound of a gate, and that it is within; what
#: decides instead of a test; and an interval, if the test has none.
P_BEYOND, P_WITHIN, EVIDENCE, LOW, HIGH = (
    f"{labels.INNER}{name}" for name in ("p_beyond", "p_within", "evidence", "low", "high")
)
COLUMNS = {
    **dict.fromkeys((P_BEYOND, P_WITHIN, LOW, HIGH), pl.Float64),
    EVIDENCE: pl.String,
}
_NOTHING: dict[str, Any] = dict.fromkeys((P_BEYOND, P_WITHIN, LOW, HIGH), nan)
_ALIKE = (trials.NOBODY_DIFFERS, trials.ALL_DIFFER_ALIKE)


def test_losses(
    pairs: Sequence[Pair],
    tested: Tested,
    trial: Trial,
    requested: Sequence[RequestedMetric],
    advance: Advance,
) -> list[dict[str, Any]]:
    """Test the loss of each pair whose metric is gated."""
    rows = [_NOTHING | {EVIDENCE: None} if pair.metric in trial.rules else {} for pair in pairs]
    trial = trial._replace(margin={name: rule.margin for name, rule in trial.rules.items()})
    metrics = {metric.name: metric for metric in requested}
    places = [place for place, row in enumerate(rows) if row]
    gated = [pairs[place] for place in places]
    for place, above in zip(places, _p_above(gated, trial, advance), strict=True):
        pair, row = pairs[place], rows[place]
        rule, least = trial.rules[pair.metric], 1 / (trial.resamples + 1)
        row[P_BEYOND] = 1 - above + (least if trial.test == "bootstrap" else 0)
        if trial.test in trials.OF_TWO_SIDES:
            row[P_BEYOND] = _p_of_loss(tested.outcome.p[place], pair, rule)
        if len(pair.sample.values) < 2:
            continue
        if rule.strict:
            row[P_WITHIN] = above
            metric = metrics[pair.metric]
            row |= _exact(pair, rule, trial, metric) or _unseen(pair, rule, trial, metric, above)
        if pair.undefined in _ALIKE and (row[EVIDENCE] is None or _is_beyond(pair, rule)):
            amount = pair.difference[0]
            row |= {LOW: amount, HIGH: amount, EVIDENCE: pair.undefined}
            if _is_beyond(pair, rule):  # the sign test: without spread, there is no other
                row[P_BEYOND] = 0.5 ** len(pair.sample.values)
    return rows


def _gain(values: Array, rule: Rule) -> Array:
    return values if rule.higher_is_better else -values


def _is_beyond(pair: Pair, rule: Rule) -> bool:
    """Return whether users who all differ by the same amount lose more than the margin."""
    from rankframe._comparison import statistics

    mean = float(statistics.weighted_mean(pair.of_baseline, pair.weights)) if rule.relative else 1
    margin = rule.margin * mean
    return bool(_gain(pair.difference, rule)[0] < -margin)


def _p_above(pairs: Sequence[Pair], trial: Trial, advance: Advance) -> Array:
    """Test whether the mean gain is above −margin; not for tests with intervals of their own."""
    import numpy as np

    if trial.test in (*trials.OF_TWO_SIDES, *trials.SIMULTANEOUS):
        return np.full(len(pairs), nan)
    samples = [_beside_margin(pair, trial.rules[pair.metric]) for pair in pairs]
    return pair_tests.p_above(samples, trial, advance)


def _beside_margin(pair: Pair, rule: Rule) -> Sample:
    """Return what users gain beside the margin: the loss is accepted if the mean is above 0."""
    return pair_tests.beside(pair, rule.tolerance, below=not rule.higher_is_better)


def _p_of_loss(p: float, pair: Pair, rule: Rule) -> float:
    """Return the one-sided p-value of a loss."""
    from rankframe._comparison import statistics

    mean = _gain(statistics.weighted_mean(pair.difference, pair.weights), rule)
    return p / 2 if mean < 0 else 1 - p / 2


def _exact(pair: Pair, rule: Rule, trial: Trial, metric: RequestedMetric) -> dict[str, Any]:
    """Bound the mean loss by the share of users who lose, where the test cannot be trusted."""
    from rankframe._comparison import statistics

    gain = _gain(pair.sample.values, rule)
    number, differ = len(gain), int((gain != 0).sum())
    if differ >= statistics.FEW_USERS and not (
        _are_lost_hits(pair, gain) or pair_tests.why_untested(pair, trial)
    ):
        return {}
    unit, width = pair.unit, labels.traits_of(metric).width
    few = differ >= statistics.FEW_USERS and pair_tests.too_few_to_resample(pair, trial)
    if not isfinite(width) or -gain.min() > width:
        why = f"{few}" if few else f"{differ:,} of {number:,} {unit} differ, too few for the test"
        why += ", and the metric has no finite range, which would bound the loss"
        return {P_WITHIN: nan, EVIDENCE: f"{why}: take test='t'" if few else why}
    tail, margin = trial.alpha / 2, rule.margin
    parts = 1
    if rule.relative:  # one half of the tail is for the share of losers, one for the baseline
        parts, tail = 2, tail / 2
        baseline = system_pairs.sample_of(pair.of_baseline, pair.weights, pair.clusters)
        margin *= max(_least_mean(baseline, tail), 0.0)
    lost, gained = (
        statistics.below(pair.sample._replace(values=values), 0.0) for values in (gain, -gain)
    )
    low, high = lost.least_mean(0.0, -width, tail), -gained.least_mean(0.0, -width, tail)
    losers = int((gain < 0).sum())
    verb = "loses" if losers == 1 else "lose"
    why = f"{losers:,} of {number:,} {unit} {verb}, so the mean loss is at most {-low:.4g}"
    return {
        P_WITHIN: min(parts * lost.p_above(-margin, 0.0, -width), 1.0),
        LOW: low if rule.higher_is_better else -high,
        HIGH: high if rule.higher_is_better else -low,
        EVIDENCE: f"{why}; {few}: take test='t'" if few else why,
    }


def _unseen(
    pair: Pair, rule: Rule, trial: Trial, metric: RequestedMetric, above: float
) -> dict[str, Any]:
    """Bound the mean loss by losses that are too rare for a test to see, if they decide."""
    from rankframe._comparison import statistics

    traits = labels.traits_of(metric)
    if not isfinite(traits.width) or (above != above and pair.undefined not in _ALIKE):
        return {}
    worst = rule.margin - traits.width
    if rule.relative:  # new − (1 − margin)·old, or (1 + margin)·old − new
        worst = rule.margin * (traits.greatest if rule.higher_is_better else traits.least)
        worst -= traits.width
    rare, tail = statistics.rare(_beside_margin(pair, rule), worst), trial.alpha / 2
    words = pair.unit, "lose far more than", "may"
    p, why = rare_p(rare, 0.0, worst, above, tail, words)
    return {P_WITHIN: p, EVIDENCE: why}


def rare_p(
    rare: Rare, bound: float, least: float, above: float, tail: float, words: tuple[str, str, str]
) -> tuple[float, str | None]:
    """Test a bound with values too rare for a test to see; say so in ``words`` if they decide."""
    p = rare.p_above(bound, least)
    if p < tail or above >= tail:
        return max(p, above) if above == above else p, None
    unit, far, may = words
    seen = f"{rare.below.lower:,.0f} of {rare.below.number:,.0f}"
    return p, f"too few {unit}: {seen} {far} the others, but {rare.below.most(tail):.2%} {may}"


def _least_mean(sample: Sample, tail: float) -> float:
    """Bound a mean from below by Student's t; without spread, it is that of all."""
    from rankframe._comparison import statistics

    estimate = statistics.estimate(sample)
    if not estimate.variance > 0:
        return estimate.mean
    return float(statistics.t_test_of_mean(sample, 1 - 2 * tail).low[0])


def _are_lost_hits(pair: Pair, gain: Array) -> bool:
    """Return whether values are hits, of which some are lost and none is gained."""
    from rankframe._comparison import statistics

    hits = statistics.are_hits(pair.of_system) and statistics.are_hits(pair.of_baseline)
    return hits and statistics.are_hits(-gain)
