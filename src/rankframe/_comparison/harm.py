"""Finds who is harmed: ``Values`` in, the share of users who lose and the worst losses out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import comparison, summaries, system_pairs, trials
from rankframe._comparison.system_pairs import Pair
from rankframe._comparison.trials import Bound, Trial
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Advance, Array

#: The first column and the last six are the answer, which narrow prints show.
COLUMNS = {
    "users": pl.Int64,
    "note": pl.String,
    "more_than": pl.Float64,
    **dict.fromkeys(("share", "share_low", "share_high"), pl.Float64),
    **dict.fromkeys(("worst_mean", "worst_low", "worst_high"), pl.Float64),
}
#: The worst differences are one of so many; fewer users have too few of them, for a mean and for
#: its interval, which needs 20.
WORST_OF, FEWEST_USERS, FEWEST_OF_INTERVAL = 20, 100, 400


@adapters.takes_any_frame
def harm(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    more_than: float | Mapping[str, float] = 0.0,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Report how many users lose more than an amount, and the mean of the worst 5% of differences.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or expressions such as ``rf.metrics.ndcg_at(10)``, of metrics
        with a direction: higher is better, or lower is.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an
        Enum. A column of text has no order, and needs a name.
    more_than
        The loss that a user must exceed to count, ≥ 0, on the scale of the metric: one number for
        all metrics, or a mapping such as ``{"ndcg@10": 0.1}``; metrics missing from the mapping
        have 0.
    confidence
        The probability that a single interval covers the true value.
    resamples
        Number of resamples: bootstrap samples, permutations or patterns of signs.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and system: the system (in the column of the model), segments…,
        ``metric``, ``baseline``, ``users`` (with a value of both), ``note``, which explains why a
        number is null and names users with a value in only one of the two, from 5% on,
        ``more_than``, ``share`` (of the users who lose more than that), its interval ``share_low``
        to ``share_high``, ``worst_mean`` (the mean of the ⌈0.05 · users⌉ worst differences, with
        their sign) and its interval ``worst_low`` to ``worst_high``. The mean is null for fewer
        than 100 users, and its interval for fewer than 400, whose worst 5% are fewer than 20.

    Raises
    ------
    TypeError
        If there are clusters: users are taken for independent.
    ValueError
        If a metric has no better direction, ``more_than`` is negative or names a metric that is not
        requested, or there are weights: users count alike.

    Notes
    -----
    A loss is a fall where higher is better, and a rise where lower is. The interval of
    ``share`` is that of C. J. Clopper and E. S. Pearson, *Biometrika* 26, 1934; that of
    ``worst_mean`` is BCa (B. Efron, *JASA* 82, 1987). At confidence 0.95, it covers 94% of nDCG and
    93% of exponential losses for 400 users, 95% and 96% for 1,000; of heavy tails (Student's t with
    3 degrees of freedom), 89% and 93%. All metrics and systems share the resamples.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3, 4] * 2, "item": [7] * 8})
    >>> run = run.with_columns(rank=pl.Series([2, 2, 1, 1, 1, 2, 2, 3]))
    >>> run = run.with_columns(model=pl.Series(["old"] * 4 + ["new"] * 4))
    >>> truth = pl.DataFrame({"user": [1, 2, 3, 4], "item": [7] * 4})
    >>> lost = rf.stats.harm(run, "rr", truth=truth, baseline="old", more_than=0.1)
    >>> lost.select("model", "users", "share", pl.col("share_low", "share_high").round(4)).rows()
    [('new', 4, 0.5, 0.0676, 0.9324)]
    """
    trial = Trial(baseline, confidence=confidence, resamples=resamples, seed=seed, needed_by="harm")
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="harm")
    summaries.check_trial(trial)
    summaries.check_unweighted("harm", options)
    question = comparison.ask_systems(frame, metrics, truth, by, options, trial, per_user=True)
    return summaries.described(frame, question, partial(plan_of, trial=trial, more_than=more_than))


def plan_of(
    values: Values, *, trial: Trial, more_than: float | Mapping[str, float]
) -> pl.LazyFrame:
    """Plan a row per segment, metric and system."""
    amounts = _amounts(values, more_than)
    directions = {metric.name: labels.direction_of(metric) for metric in values.requested}

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        from rankframe._comparison import statistics

        paired = system_pairs.paired_users(rows, values, trial)
        large = [pair for pair in paired.pairs if len(pair.difference) >= FEWEST_OF_INTERVAL]
        numbers: list[dict[str, Any]] = []
        with statistics.progress(trial.resamples * len(large)) as advance:
            for pair in paired.pairs:
                amount, rises = amounts[pair.metric], directions[pair.metric]
                numbers.append(_numbers_of(pair, amount, trial, advance, higher_is_better=rises))
        return paired.table(values.by[0], numbers, COLUMNS)

    return system_pairs.plan_of("harm", values, COLUMNS, reduce)


def _amounts(values: Values, more_than: float | Mapping[str, float]) -> dict[str, float]:
    """Read the loss that a user of each metric must exceed."""
    names = values.names_per_user
    amounts = dict.fromkeys(names, 0.0) | comparison.per_metric("more_than", more_than, names)
    for name, amount in amounts.items():
        if not (keywords.is_number(amount) and 0 <= amount < inf):
            msg = f"more_than of {name!r} must be a finite number ≥ 0, not {amount!r}"
            raise ValueError(msg)
    for metric in values.requested:
        width = metric.traits.width
        bound = Bound(float(amounts[metric.name]))
        trials.check_below_width("more_than", metric.name, bound, width, f"{width / 20:g}")
    return {name: float(amount) for name, amount in amounts.items()}


# ------------------------------------------------------------------ one row per user → per pair


def _numbers_of(
    pair: Pair, amount: float, trial: Trial, advance: Advance, *, higher_is_better: bool
) -> dict[str, Any]:
    """Describe the losses of a pair."""
    import numpy as np

    losses = -pair.difference if higher_is_better else pair.difference
    users = len(losses)
    number = int((losses > amount).sum())
    low, high = interval_of_share(number, users, trial.confidence)
    worst, note = [nan] * 3, None if users else pair.undefined
    if users >= FEWEST_USERS:
        worst = _worst(np.sort(losses)[::-1], trial, advance)
        if higher_is_better:  # the differences, whose greatest loss is the least of them
            worst = [-worst[0] + 0.0, -worst[2] + 0.0, -worst[1] + 0.0]
    if 0 < users < FEWEST_OF_INTERVAL:
        of_what, least = "an interval of the worst 5%", FEWEST_OF_INTERVAL
        if users < FEWEST_USERS:
            of_what, least = "the worst 5%", FEWEST_USERS
        note = f"{users} users, too few for {of_what}: it needs {least}"
    return {
        "users": users,
        "note": comparison.with_notes(note, pair, weighted=False),
        "more_than": amount,
        "share": number / users if users else nan,
        "share_low": low,
        "share_high": high,
        **dict(zip(("worst_mean", "worst_low", "worst_high"), worst, strict=True)),
    }


def interval_of_share(number: int, users: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a share."""
    from scipy import stats

    if not users:
        return nan, nan
    tail, others = keywords.alpha_of(confidence) / 2, users - number
    low = float(stats.beta.ppf(tail, number, others + 1)) if number else 0.0
    high = float(stats.beta.isf(tail, number + 1, others)) if others else 1.0
    return low, high


def _worst(losses: Array, trial: Trial, advance: Advance) -> list[float]:
    """Return the mean of the worst losses, which come first, and its BCa interval."""
    import numpy as np

    from rankframe._comparison import statistics

    users = len(losses)
    number = -(-users // WORST_OF)
    mean = losses[:number].mean()
    if users < FEWEST_OF_INTERVAL:
        return [float(statistics.rounded(mean)), nan, nan]
    means = [
        _means_of_worst(counts, losses, number)
        for counts in statistics.counts(users, trial.resampling, advance)
    ]
    shifts = np.concatenate(means) - mean
    # leaving out one user: of the worst, the next one takes the place
    rest = -(-(users - 1) // WORST_OF)
    left = np.full(users, losses[:rest].mean())
    left[:rest] = (losses[: rest + 1].sum() - losses[:rest]) / rest
    influences = left.mean() - left
    if not np.ptp(losses[: rest + 1]):
        influences = np.array([-1.0, 1.0])  # no acceleration
    tails = statistics.bca_tails(trial.alpha / 2, shifts, influences)
    ends = np.array([mean, *(mean + np.quantile(shifts, tails))])
    return [float(end) for end in statistics.rounded(ends)]


def _means_of_worst(counts: Array, losses: Array, number: int) -> Array:
    """Take the mean of the worst losses of each resample, a row of how often each user is in it."""
    import numpy as np

    near = counts[:, : 2 * number + 50]  # nearly always enough
    total = near.cumsum(axis=1)
    if (total[:, -1] < number).any():
        near, total = counts, counts.cumsum(axis=1)
    taken = np.minimum(np.clip(number - (total - near), 0, None), near)
    return np.asarray(taken @ losses[: near.shape[1]] / number, np.float64)
