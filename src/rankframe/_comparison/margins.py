"""Tests margins: ``Pair`` records in, one-sided p-values, and what decides beside a test, out.

Where a test cannot be trusted, the share of users who lose bounds the loss: in a comparison as in a
gate, which have one answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, NamedTuple

from rankframe._comparison import decision, notes, system_pairs, trials
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import np, statistics
from rankframe._comparison.system_pairs import Pair, Tested
from rankframe._comparison.trials import Bound, Size, Trial
from rankframe._request.labels import RequestedMetric, Traits
from rankframe.errors import Problem, option, wording

if TYPE_CHECKING:
    from rankframe._comparison.decision import Estimate
    from rankframe._comparison.statistics import Array, Below, Rare, Sample


class Side(NamedTuple):
    """The p-value that the loss in one direction is below the margin, and what decides it.

    ``why`` is None if a test of means does; without a p-value, it is why there is none.
    """

    p: float = nan
    why: Note | None = None


def read_margins(
    sizes: Mapping[str, Size], requested: Sequence[RequestedMetric], *, of_gate: bool = False
) -> dict[str, Bound]:
    """Read the margin of each metric that has one; a gate also takes 0."""
    bounds: dict[str, Bound] = {}
    for metric in requested:
        if (size := sizes.get(metric.name)) is None:
            continue
        name, bound = metric.name, trials.bound_of(size)
        if bound is None or bound.size < 0 or not (bound.size or of_gate):
            msg = (
                f"margin of {name!r} must be a finite number {'≥' if of_gate else '>'} 0, or a "
                f"share of the baseline's values such as '1%', not {size!r}"
            )
            raise ValueError(msg)
        why = ""
        if metric.is_of_all_lists:
            why = "one number for all lists, which has no interval of a difference"
        elif metric.over_users.epsilon is not None and bound.size:
            why = "a geometric mean, whose ratio is tested"
        if why:
            cure = wording(
                "name others, as in margin={'rr': 0.01}", command=f"leave out {option('margin')}"
            )
            msg = f"margin: metric {name!r} is {why}: {cure}"
            raise ValueError(Problem(msg))
        trials.check_margin(name, bound, metric.traits)
        bounds[name] = bound
    return bounds


def test_margins(
    pairs: Sequence[Pair], tested: Tested, trial: Trial, requested: Sequence[RequestedMetric]
) -> Iterator[dict[str, Any]]:
    """Test whether each pair is within its margin, and whether it is beyond."""
    metrics = {metric.name: metric for metric in requested}
    p_values = (tested.adjusted if trial.test == "max_t" else tested.outcome.p).tolist()
    for pair, p in zip(pairs, p_values, strict=True):
        margin, traits = trial.margins.get(pair.metric), metrics[pair.metric].traits
        yield {} if margin is None else _numbers_of(served(pair), margin, traits, p, trial)


def _numbers_of(
    pair: Pair, margin: Bound, traits: Traits, p: float, trial: Trial
) -> dict[str, Any]:
    sign = -1 if traits.higher_is_better is False else 1
    if len(pair.sample.values) < 2:
        return {}
    gain = sign * float(statistics.mean_of(pair.sample))
    alike = notes.packed([pair.reason()])
    if not margin.size:
        return {**numbers_without_margin(p, gain), decision.EVIDENCE: alike}
    if trial.test != "t" and not (trial.test == "max_t" and alike):
        return {}  # its interval decides
    if why := no_share_of(float(statistics.mean_of(pair.baseline_sample)), margin):
        return numbers_of((Side(why=why),) * 2, nan, higher_is_better=traits.higher_is_better)
    sides = _side(pair, margin, 1, traits, trial), _side(pair, margin, -1, traits, trial)
    surplus = surplus_of(pair, margin, sign)
    beyond = _p_above(surplus._replace(values=-surplus.values))
    lost = numbers_without_margin(p, gain)[decision.P_BEYOND]
    beyond = max(lost, beyond)  # NaN if no user differs, which is no decision
    numbers = numbers_of(sides, beyond, higher_is_better=traits.higher_is_better)
    if alike and (beyond < 0.5 or not numbers[decision.EVIDENCE]):
        numbers[decision.EVIDENCE] = alike
    return numbers


def numbers_without_margin(p: float, gain: float) -> dict[str, float]:
    """Turn the p-value of a difference into that of a loss, and of a gain."""
    shown, other = p / 2, 1 - p / 2
    lost, won = (shown, other) if gain < 0 else (other, shown)
    return {decision.P_BEYOND: lost, decision.P_WITHIN: won}


def numbers_of(
    sides: Sequence[Side], beyond: float, *, higher_is_better: bool | None
) -> dict[str, Any]:
    """Return the columns of a margin; ``sides`` are above −margin, and below margin."""
    above, below = sides
    own = below if higher_is_better is False else above
    within = nan if higher_is_better is None else own.p
    return {
        "p_equivalent": nan if isnan(above.p) else max(below.p, above.p),
        "p_not_worse": within,
        decision.P_WITHIN: within,
        decision.P_BEYOND: beyond,
        decision.EVIDENCE: notes.packed([own.why]),
    }


def note_of_evidence(numbers: dict[str, Any]) -> Note | None:
    """Note what decides a margin beside a test, or why it is not tested."""
    said = notes.unpacked(numbers.get(decision.EVIDENCE))
    if not said or said[0].kind in trials.UNTESTED:  # the row has such a note
        return None
    untested = isnan(numbers["p_equivalent"])
    return notes.with_lead(said[0], "margin not tested") if untested else said[0]


def no_share_of(mean: float, margin: Bound) -> Note | None:
    """Note why a share of the baseline is no margin."""
    if not margin.relative or mean > 0:
        return None
    return notes.note("no_share", margin=str(margin), mean=mean)


def served(pair: Pair) -> Pair:
    """Leave out the users whom neither system serves: their differences of 0 are no evidence."""
    return pair if pair.unserved is None else system_pairs.among(pair, ~pair.unserved)


def note_of_unserved(pair: Pair) -> Note | None:
    """Note how many users the test of a margin leaves out."""
    number = 0 if pair.unserved is None else int(pair.unserved.sum())
    return notes.note("unserved", number=number) if number else None


# ------------------------------------------------------------------ one side of a pair


def surplus_of(pair: Pair, margin: Bound, sign: int) -> Sample:
    """Return what each user gains, plus the margin, or a share of the baseline's value.

    With the sign −1, a fall is a gain.
    """
    sizes = margin.size + 0 * pair.sample.values
    if margin.relative:
        sizes = margin.size * _baseline(pair).values
    return pair.sample._replace(values=sign * pair.sample.values + sizes)


def _baseline(pair: Pair) -> Sample:
    return pair.baseline_sample


def _p_above(sample: Sample) -> float:
    """Test whether a mean is above 0; values that are all 0 are not."""
    p = float(statistics.p_above(sample))
    return 1.0 if isnan(p) else p


def _side(pair: Pair, margin: Bound, sign: int, traits: Traits, trial: Trial) -> Side:
    """Test whether the loss is below the margin: exactly, where a test cannot be trusted."""
    surplus, tail, sure = surplus_of(pair, margin, sign), trial.alpha / 2, served(pair.sure)
    gain = sure.sample._replace(values=sign * sure.sample.values)
    alike = int(np.unique(gain.values, return_counts=True)[1].max())
    few = is_exact(len(gain.values), (gain.values != 0).sum(), alike)
    if few or _are_lost_hits(sure, gain):
        side = exact_side(gain, _baseline(sure), margin, traits.width, tail, sure.unit)
        gains = int((gain.values > 0).sum())
        if trial.undecided == "fail" and gains and not decision.shows(side.p, tail):
            side = _with_gains(side, gains)
        if pair.human is not None and side.why is not None:
            side = side._replace(why=notes.of_human(side.why))
        return side
    above = _p_above(surplus)
    if not isfinite(traits.width):
        return Side(above)
    worst = worst_surplus(margin, traits, sign)
    said, own = notes.note("rare_losses", unit=pair.unit), surplus_of(sure, margin, sign)
    return rare_side(statistics.rare(own, worst), 0.0, worst, above, tail, said)


def exact_side(
    gain: Sample, baseline: Sample, margin: Bound, width: float, tail: float, unit: str
) -> Side:
    """Bound the mean loss by the share of users who lose (Clopper and Pearson)."""
    values = gain.values
    counted = {"number": len(values), "unit": unit}
    if not isfinite(width) or -values.min() > width:
        return Side(why=notes.note("no_range", differ=int((values != 0).sum()), **counted))
    lost, losers = statistics.below(gain, 0.0), int((values < 0).sum())
    loss = -lost.least_mean(0.0, -width, tail / (1 + margin.relative))
    why = notes.note("most_lost", losers=losers, loss=loss, **counted)
    p = float(p_of_losers(lost, margin, statistics.estimate(baseline), width, tail))
    return Side(p, why)


def _with_gains(side: Side, winners: int) -> Side:
    """Say in a strict gate that gains do not count, which nothing bounds."""
    assert side.why is not None
    return side._replace(why=notes.note("most_lost", **side.why.values, winners=winners))


def p_of_losers(
    lost: Below, margin: Bound, of_baseline: Estimate, width: float, tail: float
) -> Array:
    """Test the margin with the share of losers, who lose ``width`` at most."""
    parts, size = 1 + margin.relative, np.asarray(margin.size)
    if margin.relative:  # one half of the tail is for the share of losers, one for the baseline
        low = of_baseline.interval(1 - 2 * (tail / parts))[0]
        least = np.where(of_baseline.error > 0, low, of_baseline.mean)
        size = size * np.maximum(least, 0.0)
    return np.minimum(parts * lost.p_above(-size, 0.0, -width), 1.0)


def rare_side(
    rare: Rare, bound: float, least: float, above: float, tail: float, said: Note
) -> Side:
    """Test a bound with values too rare for a test to see, which are ``said`` if they decide."""
    p, shown = float(rare.p_above(bound, least)), decision.shows(above, tail)
    if decision.shows(p, tail) or not shown:
        return Side(max(p, above))
    below = rare.below
    seen = {"seen": below.lower, "of": below.number, "most": below.most(tail)}
    return Side(p, Note(said.kind, {**said.values, **seen}))


def _are_lost_hits(pair: Pair, gain: Sample) -> bool:
    """Return whether values are hits, of which some are lost and none is gained."""
    hits = statistics.are_hits(pair.of_system) and statistics.are_hits(pair.of_baseline)
    return hits and statistics.are_hits(-gain.values)


def is_exact(number: Any, differ: Any, alike: Any) -> Any:
    """Return whether few users differ, or nearly all by one amount, whatever the rare ones do."""
    others = number - alike
    few = (others > 0) & (2 * others < number) & (others < statistics.FEW_USERS)
    return few | (differ < statistics.FEW_USERS)


def worst_surplus(margin: Bound, traits: Traits, sign: int) -> float:
    """Return the least gain, plus the margin, that the range of a metric allows."""
    size = margin.size
    if margin.relative:  # new − (1 − margin)·old, or (1 + margin)·old − new
        size *= traits.greatest if sign > 0 else traits.least
    return size - traits.width
