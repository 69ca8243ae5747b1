"""Compares many systems at once: which may be the best, and letters of those that do not differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isnan
from string import ascii_letters

import polars as pl

from rankframe._comparison import decision, pair_tests, summaries, system_pairs, trials
from rankframe._comparison.packages import statistics
from rankframe._comparison.system_pairs import Place
from rankframe._comparison.trials import Trial
from rankframe._evaluation.values import Values


def leaders_of(
    values: Values, confidence: float, rows: pl.DataFrame | None, *, letters: bool = False
) -> pl.DataFrame | None:
    """Return per metric which systems may be the best: those that no other one beats.

    Each pair has half the p-value of ``compare``, with Bonferroni's correction for the other
    systems; with ``letters``, for both sides of all pairs. No system that is worse in the ``rows``
    of a comparison may be the best. Pairs without a test are left out, unless they are identical,
    metrics without a direction, and systems of which no pair is tested.
    """
    directions = pair_tests.directions_of(values.requested)
    rated = [m for m in values.requested if m.per_user and directions[m.name] is not None]
    if not rated:
        return None
    values = values._replace(requested=rated, of_lists=None)
    summaries.check_numbers(values)
    paired = system_pairs.paired_users(values.rows.collect(), values, Trial())
    trial = Trial(confidence=confidence)
    tested = pair_tests.test_pairs(paired.pairs, trial, lambda _: None)
    rivals = len(paired.systems) - 1
    sides = rivals * (rivals + 1) if letters else rivals
    level = 2 * trial.alpha / max(1, sides)
    leads: dict[Place, bool] = {}
    gains: dict[Place, float] = {}
    apart: list[Place] = []
    for pair, of_test in zip(paired.pairs, tested.outcome.p.tolist(), strict=True):
        p = 1.0 if pair.undefined == trials.NOBODY_DIFFERS else of_test
        if isnan(p):
            continue
        gain = float(statistics.weighted_mean(*pair.sample))
        gain = gain if directions[pair.metric] else -gain
        differ = decision.shows(p, level)
        for system, won in ((pair.system, gain), (pair.baseline, -gain)):
            place = Place(pair.segment, pair.metric, system, system)
            leads[place] = leads.get(place, True) and not (differ and won < 0)
            gains[place] = gains.get(place, 0.0) + won
        if differ:
            apart.append(pair.place)
    names = paired.systems.gather([place.system for place in leads]).alias(values.by[0])
    may_be_best = pl.Series("may_be_best", [*leads.values()], pl.Boolean)
    texts = _letters(gains, apart) if letters else {}
    shown = pl.Series("letters", [*map(texts.get, leads)], pl.String)
    leaders = pl.DataFrame([names, *paired.keys([*leads]), may_be_best, shown])
    if rows is None:
        return leaders
    keys = [*values.by, "metric"]
    outcomes = leaders.join(rows, on=keys, how="left", nulls_equal=True, maintain_order="left")
    not_worse = outcomes[decision.OUTCOME].ne_missing("worse")
    return leaders.with_columns(pl.col("may_be_best") & not_worse)


def _letters(gains: Mapping[Place, float], apart: Sequence[Place]) -> dict[Place, str]:
    """Return the letters of each system: the first ones are those of the best."""
    families: dict[tuple[int, str], list[Place]] = {}
    for place in sorted(gains, key=gains.__getitem__, reverse=True):
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
