"""Writes cautions: what to doubt in the numbers of a pair, each beyond a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import polars as pl

from rankframe._comparison import trials
from rankframe._comparison.system_pairs import Pair
from rankframe._comparison.trials import Trial
from rankframe._request.labels import RequestedMetric, traits_of
from rankframe._request.question import Question
from rankframe._tables import adapters, column_roles

#: With fewer users, a test depends on the distribution of the differences.
FEWEST_USERS = 5
#: The level at which the sign test contradicts the mean.
SIGN_LEVEL = 0.05
#: With this many users, an effect below the second is found that rarely matters.
MANY_USERS, SMALL_EFFECT = 10_000, 0.02
#: Groups of users that may be clusters: at least so many, of at least so many users on average.
FEWEST_GROUPS, FEWEST_MEMBERS = 10, 2
#: A mean difference below this share of the greatest value may be rounding alone.
_ROUNDING = 1e-12
#: A larger truth is not searched for clusters.
_MOST_ROWS = 1_000_000
#: Rows that rule out most columns.
_FIRST_ROWS = 10_000


def cautions_of(
    pair: Pair, numbers: Mapping[str, Any], trial: Trial, metric: RequestedMetric
) -> list[str]:
    """Write what to doubt in the numbers of a pair."""
    if pair.undefined is not None:
        return []
    users = len(pair.difference)
    higher_is_better = traits_of(metric).higher_is_better
    return [
        *_few(users, clustered=pair.clusters is not None),
        *_contrary_signs(pair, numbers["difference"], higher_is_better=higher_is_better),
        *_small(users, numbers["effect_size"], trial, metric),
    ]


def cautions_of_groups(
    users: int, effect_size: float, trial: Trial, metric: RequestedMetric
) -> list[str]:
    """Write what to doubt in the numbers of two groups of different users, by the smaller one."""
    few = _few(users, clustered=trial.cluster is not None)
    return [*few, *_small(users, effect_size, trial, metric)]


def _few(users: int, *, clustered: bool) -> list[str]:
    few = users < FEWEST_USERS and not clustered
    return [f"{users} users, too few for a sure test"] if few else []


def _small(users: int, effect_size: float, trial: Trial, metric: RequestedMetric) -> list[str]:
    """Write that many users find an effect that rarely matters, if no margin was given."""
    bounded = metric.name in trial.margins or metric.name in trial.rules
    if bounded or metric.over_users.epsilon is not None or trial.test not in trials.OF_MARGINS:
        return []
    if users < MANY_USERS or not abs(effect_size) < SMALL_EFFECT:
        return []
    effect = f"{effect_size:.2g} standard deviations"
    return [f"no margin was given: of {users:,} users, the effect is {effect}"]


def _contrary_signs(pair: Pair, difference: float, *, higher_is_better: bool | None) -> list[str]:
    """Write that most users change against the mean, if the sign test shows it."""
    values = pair.sample.values
    rising, falling = int((values > 0).sum()), int((values < 0).sum())
    scale = max(abs(pair.of_system).max(), abs(pair.of_baseline).max())
    if (rising - falling) * difference >= 0 or abs(difference) <= _ROUNDING * scale:
        return []
    from scipy import stats

    most = max(rising, falling)
    if not 2 * stats.binom.sf(most - 1, rising + falling, 0.5) < SIGN_LEVEL:
        return []
    verb = "gain" if (rising > falling) is higher_is_better else "lose"
    if higher_is_better is None:
        verb = f"have a {'higher' if rising > falling else 'lower'} value"
    direction = "rises" if difference > 0 else "falls"
    return [f"{most:,} of {len(values):,} {pair.unit} {verb}, the mean {direction}"]


def clusters_in(question: Question) -> str | None:
    """Name a column that may group dependent users, of a table in memory that is not too large."""
    settings, table = question.settings, question.truth
    if question.columns is not None:
        table = question.frame
    if settings.cluster is not None or table is None:
        return None
    if isinstance(table, pl.LazyFrame) or len(table) > _MOST_ROWS:
        return None
    frame = adapters.to_polars(table, "truth")
    if not isinstance(frame, pl.DataFrame):
        return None
    columns = column_roles.with_ids(settings.columns, question.by, {"truth": frame})
    user = columns.get("user", "user")
    used = {"item", "relevance", *columns.values(), *question.by, *settings.of_users}
    used |= {name for metric in question.requested for name in metric.reads}
    used |= {name for names in column_roles.COMMON_NAMES.values() for name in names}
    for name in frame.columns:
        if user in frame.columns and name not in {user, *used} and _groups(frame, user, name):
            return (
                f"users of one {column_roles.in_words(name)} may depend on each other: "
                f"cluster={name!r}?"
            )
    return None


def _groups(frame: pl.DataFrame, user: str, name: str) -> bool:
    """Whether a column has few values, one per user, each of several users."""
    dtype = frame.schema[name]
    if not (
        dtype.is_integer() or isinstance(dtype, pl.String | pl.Categorical | pl.Enum | pl.Date)
    ):
        return False
    if _varies(frame.head(_FIRST_ROWS), user, name) or frame[name].null_count():
        return False
    groups = frame[name].n_unique()
    users = frame[user].n_unique()
    if not FEWEST_GROUPS <= groups <= users / FEWEST_MEMBERS:
        return False
    return not _varies(frame, user, name)


def _varies(frame: pl.DataFrame, user: str, name: str) -> bool:
    """Whether a user has several values."""
    value = pl.col(name).hash()  # faster than text
    varies = frame.group_by(user).agg((value.min() != value.max()).alias("varies"))["varies"]
    return bool(varies.any())
