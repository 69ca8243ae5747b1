"""Finds who is harmed: ``Values`` in, the share of users who lose out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, nan
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import comparison, notes, summaries, system_pairs, trials
from rankframe._comparison.system_pairs import Pair
from rankframe._comparison.trials import Bound, Trial
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts

if TYPE_CHECKING:
    pass

#: The first column and the last three are the answer, which narrow prints show.
COLUMNS = {
    "users": pl.Int64,
    "note": pl.String,
    "more_than": pl.Float64,
    **dict.fromkeys(("share", "share_low", "share_high"), pl.Float64),
}


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
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Report how many users lose more than an amount.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or expressions such as ``rf.metrics.ndcg_at(10)``, of metrics
        with a direction: higher is better, or lower is.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    more_than
        The loss that a user must exceed to count, ≥ 0, on the scale of the metric: one number for
        all metrics, or a mapping such as ``{"ndcg@10": 0.1}``; metrics missing from the mapping
        have 0.
    confidence
        The probability that a single interval covers the true value.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and system: the system (in the column of the model), segments…,
        ``metric``, ``baseline``, ``users`` (with a value of both), ``note``, which explains why a
        number is null and, from 5% on, names users with a value of only one of the two,
        ``more_than``, ``share`` (of the users who lose more than that), and its interval
        ``share_low`` to ``share_high``.

    Raises
    ------
    TypeError
        If there are clusters: users are assumed to be independent.
    ValueError
        If a metric has no better direction, ``more_than`` is negative or names a metric that is not
        requested, or there are weights: all users count the same.

    Notes
    -----
    A loss is a fall where higher is better, and a rise where lower is. The interval of
    ``share`` is that of C. J. Clopper and E. S. Pearson, *Biometrika* 26, 1934.

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
    trial = Trial(baseline, confidence=confidence, needed_by="harm")
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
        paired = system_pairs.paired_users(rows, values, trial)
        numbers = [
            _numbers_of(pair, amounts[pair.metric], trial, higher_is_better=directions[pair.metric])
            for pair in paired.pairs
        ]
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
    pair: Pair, amount: float, trial: Trial, *, higher_is_better: bool
) -> dict[str, Any]:
    """Describe the losses of a pair."""
    losses = -pair.difference if higher_is_better else pair.difference
    users, number = len(losses), int((losses > amount).sum())
    low, high = interval_of_share(number, users, trial.confidence)
    why = None if users else notes.note(pair.undefined or trials.NO_PAIR)
    return {
        "users": users,
        "note": notes.packed([why, *comparison.notes_of_users(pair, weighted=False)]),
        "more_than": amount,
        "share": number / users if users else nan,
        "share_low": low,
        "share_high": high,
    }


def interval_of_share(number: int, users: int, confidence: float) -> tuple[float, float]:
    """Return the exact interval of a share, Clopper and Pearson's."""
    from scipy import stats

    if not users:
        return nan, nan
    low, high = stats.binomtest(number, users).proportion_ci(confidence)
    return float(low), float(high)
