"""Tests losses for gates: ``Pair`` records and rules in, one-sided p-values and evidence out."""

from __future__ import annotations

from collections.abc import Sequence
from math import isfinite, nan
from typing import TYPE_CHECKING, Any, NamedTuple

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


class Within(NamedTuple):
    """P-values for each pair, NaN without a margin; and what decides instead of a test."""

    equivalent: Array
    not_worse: Array
    evidence: list[str | None]


def test_margins(
    pairs: Sequence[Pair], trial: Trial, requested: Sequence[RequestedMetric], advance: Advance
) -> Within:
    """Test whether differences are above −margin, and whether they are below margin.

    The rule is that of a gate.
    """
    import numpy as np

    from rankframe._comparison import statistics

    within = Within(np.full(len(pairs), nan), np.full(len(pairs), nan), [None] * len(pairs))
    metrics = {metric.name: metric for metric in requested}
    directions = pair_tests.directions_of(requested)
    places = [place for place, pair in enumerate(pairs) if pair.metric in trial.margins]
    tested = [served(pairs[place]) for place in places]
    no_share = {
        place: pair_tests.no_share_of(
            float(statistics.weighted_mean(pair.of_baseline, pair.weights)),
            trial.margins[pair.metric],
        )
        if len(pair.difference) > 1
        else ""
        for place, pair in zip(places, tested, strict=True)
    }
    sides: list[list[dict[str, Any]]] = []
    for higher in (True, False):
        rules = {
            name: Rule(
                bound.size, fails_undecided=True, higher_is_better=higher, relative=bound.relative
            )
            for name, bound in trial.margins.items()
        }
        of_side = trial._replace(rules=rules)  # with the margins of the trial
        numbers = _p_above(tested, of_side, advance, cautious=True)
        sides.append(
            [
                _within(pair, of_side, metrics[pair.metric], p)
                for pair, p in zip(tested, numbers, strict=True)
            ]
        )
    for at, place in enumerate(places):
        above, below = (side[at] for side in sides)
        p, q = above[P_WITHIN], below[P_WITHIN]
        within.equivalent[place] = max(p, q) if p == p and q == q else nan
        rises = directions[pairs[place].metric]
        if rises is not None:
            within.not_worse[place] = p if rises else q
        side = below if rises is False else above
        why = no_share[place] or side[EVIDENCE]
        if no_share[place]:
            within.equivalent[place] = within.not_worse[place] = nan
        elif why and side[P_WITHIN] != side[P_WITHIN]:
            why = f"margin not tested: {why}"
        within.evidence[place] = why
    return within


def _within(pair: Pair, trial: Trial, metric: RequestedMetric, above: float) -> dict[str, Any]:
    """Test whether a loss is below the margin: exactly, where the test cannot be trusted."""
    if len(pair.sample.values) < 2:
        return {P_WITHIN: nan, EVIDENCE: None}
    rule = trial.rules[pair.metric]
    numbers: dict[str, Any] = {P_WITHIN: above, EVIDENCE: None}
    exact = _exact(pair, rule, trial, metric)
    return numbers | (exact or _unseen(pair, rule, trial, metric, above))


def served(pair: Pair) -> Pair:
    """Leave out the users whom neither system serves: their differences of 0 are no evidence."""
    if pair.unserved is None:
        return pair
    kept = ~pair.unserved
    weights = None if pair.weights is None else pair.weights[kept]
    clusters = None if pair.clusters is None else pair.clusters[kept]
    change = pair.difference[kept]
    return pair._replace(
        of_system=pair.of_system[kept],
        of_baseline=pair.of_baseline[kept],
        difference=change,
        weights=weights,
        clusters=clusters,
        sample=system_pairs.sample_of(change, weights, clusters),
        undefined=system_pairs.why_undefined(change),
        unserved=None,
    )


def note_of_unserved(pair: Pair) -> str | None:
    """Write how many users the test of a margin leaves out."""
    number = 0 if pair.unserved is None else int(pair.unserved.sum())
    have = "user has" if number == 1 else "users have"
    return f"{number:,} {have} no list of either: no evidence for the margin" if number else None


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
    gated = [served(pairs[place]) for place in places]
    cautious = _p_above(gated, trial, advance, cautious=True)
    lost = [_mirrored(_beside_margin(pair, trial.rules[pair.metric])) for pair in gated]
    hall = pair_tests.p_above(lost, advance, cautious=True)
    for place, pair, above, sure, beyond in zip(
        places, gated, _p_above(gated, trial, advance), cautious, hall, strict=True
    ):
        row = rows[place]
        rule = trial.rules[pair.metric]
        row[P_BEYOND] = 1 - above
        if len(pair.sample.values) < 2:
            continue
        if trial.test in ("t", "sequential"):  # as compare decides
            row[P_BEYOND] = _p_of_loss(tested.outcome.p[place], pair, rule)
        if trial.test == "t" and rule.margin:  # and beyond the margin, by both t and Hall's t
            row[P_BEYOND] = max(beyond, row[P_BEYOND])
        if rule.fails_undecided:
            row |= _within(pair, trial, metrics[pair.metric], sure)
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


def _p_above(
    pairs: Sequence[Pair], trial: Trial, advance: Advance, *, cautious: bool = False
) -> Array:
    """Test whether the mean gain is above −margin; not for tests with intervals of their own."""
    import numpy as np

    if trial.test != "t":
        return np.full(len(pairs), nan)
    samples = [_beside_margin(pair, trial.rules[pair.metric]) for pair in pairs]
    return pair_tests.p_above(samples, advance, cautious=cautious)


def _beside_margin(pair: Pair, rule: Rule) -> Sample:
    """Return what users gain beside the margin: the loss is accepted if the mean is above 0."""
    return pair_tests.beside(pair, rule.tolerance, below=not rule.higher_is_better)


def _mirrored(sample: Sample) -> Sample:
    return sample._replace(values=-sample.values)


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
    unit, width = pair.unit, metric.traits.width
    if not isfinite(width) or -gain.min() > width:
        why = f"{differ:,} of {number:,} {unit} differ, too few for the test"
        why += ", and the metric has no finite range, which would bound the loss"
        return {P_WITHIN: nan, EVIDENCE: why}
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
        EVIDENCE: why,
    }


def _unseen(
    pair: Pair, rule: Rule, trial: Trial, metric: RequestedMetric, above: float
) -> dict[str, Any]:
    """Bound the mean loss by losses that are too rare for a test to see, if they decide."""
    from rankframe._comparison import statistics

    traits = metric.traits
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
