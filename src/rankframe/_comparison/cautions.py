"""Notes cautions: what to doubt in the numbers of a pair, each beyond a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rankframe._comparison import notes
from rankframe._comparison.notes import Note
from rankframe._comparison.system_pairs import Pair
from rankframe._comparison.trials import Trial
from rankframe._request.labels import RequestedMetric

#: With fewer users, a test depends on the distribution of the differences.
FEWEST_USERS = 5
#: The level at which the sign test contradicts the mean.
SIGN_LEVEL = 0.05
#: With this many users, an effect below the second is found that rarely matters.
MANY_USERS, SMALL_EFFECT = 10_000, 0.02
#: A mean difference below this share of the greatest value may be rounding alone.
_ROUNDING = 1e-12


def cautions_of(
    pair: Pair, numbers: Mapping[str, Any], trial: Trial, metric: RequestedMetric
) -> list[Note]:
    """Note what to doubt in the numbers of a pair."""
    if pair.undefined is not None:
        return []
    users = len(pair.difference)
    higher_is_better = metric.traits.higher_is_better
    return [
        *_few(users, clustered=pair.clusters is not None),
        *_contrary_signs(pair, numbers["difference"], higher_is_better=higher_is_better),
        *_small(users, numbers["effect_size"], trial, metric),
    ]


def cautions_of_groups(
    users: int, effect_size: float, trial: Trial, metric: RequestedMetric
) -> list[Note]:
    """Note what to doubt in the numbers of two groups of different users, by the smaller one."""
    few = _few(users, clustered=trial.cluster is not None)
    return [*few, *_small(users, effect_size, trial, metric)]


def _few(users: int, *, clustered: bool) -> list[Note]:
    few = users < FEWEST_USERS and not clustered
    return [notes.note("few_users", number=users)] if few else []


def _small(users: int, effect_size: float, trial: Trial, metric: RequestedMetric) -> list[Note]:
    """Note that many users find an effect that rarely matters, if no margin was given."""
    if metric.name in trial.margins or metric.over_users.epsilon is not None or trial.test != "t":
        return []
    if users < MANY_USERS or not abs(effect_size) < SMALL_EFFECT:
        return []
    return [notes.note("small_effect", number=users, effect=effect_size)]


def _contrary_signs(pair: Pair, difference: float, *, higher_is_better: bool | None) -> list[Note]:
    """Note that most users change against the mean, if the sign test shows it."""
    rising, falling = pair.signs
    if (rising - falling) * difference >= 0:
        return []
    scale = max(abs(pair.of_system).max(), abs(pair.of_baseline).max())
    if abs(difference) <= _ROUNDING * scale:
        return []
    from scipy import stats

    most = max(rising, falling)
    if not 2 * stats.binom.sf(most - 1, rising + falling, 0.5) < SIGN_LEVEL:
        return []
    word = "better" if (rising > falling) is higher_is_better else "worse"
    if higher_is_better is None:
        word = "higher" if rising > falling else "lower"
    direction = "rises" if difference > 0 else "falls"
    of = {"most": most, "number": len(pair.changes), "unit": pair.unit}
    return [notes.note("contrary", word=word, direction=direction, **of)]
