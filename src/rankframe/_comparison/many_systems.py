"""Compares many systems at once: which may be the best, and letters of those that do not differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan, nan
from string import ascii_letters

import polars as pl

from rankframe._comparison import decision, pair_tests, summaries, system_pairs, trials
from rankframe._comparison.packages import np, statistics
from rankframe._comparison.system_pairs import Place
from rankframe._comparison.trials import Trial
from rankframe._evaluation.values import Values

_VERDICTS = ("better", "worse", "worse within the margin")


def leaders_of(
    values: Values, confidence: float, rows: pl.DataFrame | None, *, letters: bool = False
) -> pl.DataFrame | None:
    """Return per metric which systems may be the best: those not shown to be worse than the best.

    Pairs in the ``rows`` of a comparison have its outcomes, and all others have the p-values of
    ``compare`` with Holm's correction for all pairs of all metrics and segments. No system that is
    worse in the rows may be the best. Pairs without a test are left out, unless they are identical,
    metrics without a direction, and systems of which the pair with the best is not tested.
    """
    directions = pair_tests.directions_of(values.requested)
    rated = [m for m in values.requested if m.per_user and directions[m.name] is not None]
    if not rated:
        return None
    values = values._replace(requested=rated, system_metrics=None)
    summaries.check_numbers(values)
    paired, matrices = system_pairs.open_matrices(values.rows.collect(), values, Trial())
    systems = system_pairs.pairs_of_places(paired.systems.to_list(), None)
    trial = Trial(confidence=confidence)
    compared: list[tuple[Place, float, float]] = []
    for pairs, tested in pair_tests.test_in_batches(matrices, systems, trial, lambda _: None):
        for pair, p in zip(pairs, tested.outcome.p.tolist(), strict=True):
            is_tested = pair.undefined == trials.NOBODY_DIFFERS or not isnan(p)
            compared.append((pair.place, p, float(pair.of_mean.mean) if is_tested else nan))
    p_values = np.array([p for _, p, _ in compared], np.float64)
    differ = decision.shows(statistics.corrected(p_values, "holm"), trial.alpha)
    keys = pl.DataFrame(paired.pair_keys(values.by[0], [pair for pair, _, _ in compared]))
    sides = _outcomes(keys, rows, values), _outcomes(keys, rows, values, swapped=True)
    lost: dict[tuple[Place, Place], bool] = {}  # whether the first one is worse than the second
    worst: set[Place] = set()
    for row, (place, _, gain) in enumerate(compared):
        system, other = (
            Place(place.segment, place.metric, side, side)
            for side in (place.system, place.baseline)
        )
        of_rows, of_swapped = (outcomes[row] for outcomes in sides)
        if of_rows is None and of_swapped is not None:
            system, other, of_rows = other, system, of_swapped
        if of_rows is not None:
            if of_rows == "worse":
                worst.add(system)
            if of_rows != "untested":
                lost[system, other] = of_rows in _VERDICTS[1:]
                lost[other, system] = of_rows == "better"
        elif not isnan(gain):
            gain = gain if directions[place.metric] else -gain
            lost[system, other] = bool(differ[row]) and gain < 0
            lost[other, system] = bool(differ[row]) and gain > 0
    places = [*dict.fromkeys(first for first, _ in lost)]
    names = paired.systems.gather([place.system for place in places]).alias(values.by[0])
    leaders = pl.DataFrame([names, *paired.keys(places)])
    means = summaries.description_of(values).select(*leaders.columns, "mean").collect()
    joined = leaders.join(means, leaders.columns, "left", nulls_equal=True, maintain_order="left")
    ratings = {
        place: mean if directions[place.metric] else -mean
        for place, mean in zip(places, joined["mean"], strict=True)
    }
    greatest: dict[tuple[int, str], float] = {}
    for place, rating in ratings.items():
        family = place.segment, place.metric
        greatest[family] = max(greatest.get(family, rating), rating)
    best = {place for place in places if ratings[place] == greatest[place[:2]]}
    leads = dict.fromkeys(best, True)
    for (loser, rival), is_worse in lost.items():
        if rival in best and loser not in best:
            leads[loser] = leads.get(loser, False) or not is_worse
    kept = [leads.get(place) and place not in worst for place in places]
    apart = [first._replace(baseline=second.system) for (first, second), x in lost.items() if x]
    texts = _letters(ratings, apart) if letters else {}
    shown = pl.Series("letters", [*map(texts.get, places)], pl.String)
    return leaders.with_columns(pl.Series("may_be_best", kept, pl.Boolean), shown)


def _outcomes(
    keys: pl.DataFrame, rows: pl.DataFrame | None, values: Values, *, swapped: bool = False
) -> list[str | None]:
    """Return the outcome of each pair in a comparison, or of each with its sides swapped."""
    if rows is None:
        return [None] * keys.height
    model = values.by[0]
    rows = rows.select(*keys.columns, decision.OUTCOME)
    if swapped:
        rows = rows.rename({model: "baseline", "baseline": model})
    joined = keys.join(rows, keys.columns, "left", nulls_equal=True, maintain_order="left")
    return joined[decision.OUTCOME].to_list()


def _letters(ratings: Mapping[Place, float], apart: Sequence[Place]) -> dict[Place, str]:
    """Return the letters of each system: the first ones are those of the best."""
    families: dict[tuple[int, str], list[Place]] = {}
    for place in sorted(ratings, key=ratings.__getitem__, reverse=True):
        families.setdefault((place.segment, place.metric), []).append(place)
    ranks = {place: rank for of in families.values() for rank, place in enumerate(of)}
    separated: dict[tuple[int, str], list[tuple[int, int]]] = {}
    for pair in apart:
        first, second = sorted(
            ranks[pair._replace(system=side, baseline=side)]
            for side in (pair.system, pair.baseline)
        )
        separated.setdefault((pair.segment, pair.metric), []).append((first, second))
    return {
        place: text
        for family, places in families.items()
        for place, text in zip(
            places, letters_of(len(places), sorted(separated.get(family, []))), strict=True
        )
    }


def letters_of(systems: int, separated: Sequence[tuple[int, int]]) -> list[str]:
    """Return the letters of each system, by place: those that share one are not separated.

    Each letter is a group to which no other system can be added: split groups at each pair that
    differs, and absorb those inside another (Piepho 2004). After z come A to Z, then dots before.
    """
    groups = [frozenset(range(systems))]
    for pair in separated:
        kept = [group for group in groups if not group.issuperset(pair)]
        parts = [group - {system} for group in groups if group.issuperset(pair) for system in pair]
        for part in sorted({*parts}, key=len, reverse=True):
            if not any(part <= group for group in kept):
                kept.append(part)
        groups = kept
    letters = [
        "." * (place // len(ascii_letters)) + ascii_letters[place % len(ascii_letters)]
        for place in range(len(groups))
    ]
    ordered = sorted(groups, key=sorted)
    return [
        "".join(letter for letter, group in zip(letters, ordered, strict=True) if system in group)
        for system in range(systems)
    ]
