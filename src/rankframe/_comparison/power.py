"""Plans evaluations: ``Values`` in, detectable differences and the users they need out."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import partial
from math import ceil, isfinite, nan, sqrt
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import (
    comparison,
    gate_power,
    margins,
    notes,
    sentences,
    summaries,
    system_pairs,
    trials,
)
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import (
    human_labels,
    np,
    power_statistics,
    statistics,
)
from rankframe._comparison.system_pairs import Corrected, Pair
from rankframe._comparison.trials import Bound, Margin, Size, Trial
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import Count, StatisticsOptions
from rankframe._request.labels import Metric, Traits
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.errors import Problem, option

if TYPE_CHECKING:
    from rankframe._comparison.power_statistics import Design


#: The first column and the last two are the answer, which narrow prints show: add others between.
_MADE = {
    "users": pl.Int64,
    "baseline_mean": pl.Float64,
    "note": pl.String,
    **dict.fromkeys(("std", "target", "detectable", "passes"), pl.Float64),
    "needed": pl.Int64,
}
_HUMAN = {"users_human": pl.Int64, "needed_human": pl.Int64}


@adapters.takes_any_frame
def power(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    power: float = 0.8,
    confidence: float = 0.95,
    difference: Size | Mapping[str, Size] | None = None,
    margin: Margin | None = None,
    comparisons: int = 1,
    cluster: str | None = None,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Report which true difference these users can detect, and how many users a difference needs.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    human
        A truth with labels by humans for a random sample of the users of ``truth``, as in
        ``compare``. From this pilot, ``power`` plans how many human labels a difference needs.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    power
        The probability of finding a true difference, above 1 − ``confidence``.
    confidence
        1 − α, where α is the probability that a two-sided test finds a difference where there is
        none, in any of the ``comparisons``.
    difference
        The difference to detect, > 0: on the scale of the metric (``0.01``), or relative to the
        mean of the baseline (``"1%"``); one for all metrics, or a mapping such as
        ``{"ndcg@10": "1%"}``.
    margin
        The accepted loss of a planned ``gate``, as it takes it, in place of ``difference``:
        ``passes`` says how often a system that equals the baseline would pass.
    comparisons
        The number m of comparisons that are corrected together, such as 4 systems · 5 metrics: the
        level of the test is α / m, so after Holm's correction the power is at least that.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and pair:

        - the system (in the column of the model), segments…, ``metric``, ``baseline``
        - ``users``: those with both values
        - ``baseline_mean``
        - ``note``: why a number is null
        - ``std``: σ
        - ``target``: the difference to detect, on the scale of the metric
        - ``detectable``: the smallest true difference that these users detect with this power
        - ``needed``: the least number of users that detect the target with it

        With ``margin``, ``target`` is the margin. ``passes`` (Float64, before ``needed``) is the
        share of equal systems that pass ``gate`` with ``undecided="fail"``, and ``needed`` is the
        number of users with whom this share is ``power``. Both are null, and ``note`` says so,
        where no user gains or none loses. ``needed`` alone is null, with a note, where ``gate``
        takes those who lose far more than others for users who lose all that a value can.

        With ``human``, there are also ``users_human`` (Int64, users with human labels and both
        values) and, last, ``needed_human`` (Int64): the least number of these users whose human
        labels detect the target, together with the judge's labels of all; null, with a note, if
        human labels of all do not. Then ``needed`` is another plan: more users, and the same share
        of them with human labels. ``std`` is that of differences by humans.

    Raises
    ------
    ValueError
        If ``difference`` or ``margin`` names a metric that is not requested, or both are given; if
        a metric with a margin has no better direction, or is a geometric mean.

    Notes
    -----
    The test is the paired t of two systems with n users: the noncentral t with n − 1 degrees of
    freedom at δ·√n/σ, σ the standard deviation of the users' differences. σ is an estimate, so
    ``detectable`` and ``needed`` are, too: with few users, they are rough. Plan with runs that
    resemble the future ones. J. Cohen, *Statistical Power Analysis*, 1988; T. Sakai, *Information
    Retrieval Journal* 19, 2016.

    With ``human``, the squared error of n human labels of N users is (σ² − 2·λ·c + λ²·s²/r)/n, with
    n − 1 degrees of freedom: σ² the variance of the differences by humans, s² by the judge, c their
    covariance, r = 1 − n/N, and λ = r·c/s², from 0 to 1 and taken as known: with fewer than 50
    labels the true power is lower, in simulations with 40 of them 0.76 instead of 0.8. See
    ``summarize``.

    With clusters, the error and the degrees of freedom are those of ``compare``; ``needed`` users
    are in clusters of like sizes, and ``note`` has the design effect: the squared error divided by
    that of independent users.

    With ``margin``, an equal system has users like those of the pair, drawn with chances in
    proportion to e^(θ·gain), whose θ makes the mean gain 0: values, ties and skewness stay real. A
    seeded simulation of 1,000 such systems asks the rules of ``gate``: t and Hall's t, few losers,
    rare losses. The standard error of ``passes`` is 0.016 at most; ``needed`` is that of the normal
    t test if these rules agree within 0.03 there, and else found by halving, within about 5%.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> planned = rf.stats.power(run, "rr", truth=truth, baseline="old", difference=0.1)
    >>> planned.select("users", "std", "detectable", "target", "needed")
    shape: (1, 5)
    ┌───────┬──────────┬────────────┬────────┬────────┐
    │ users ┆ std      ┆ detectable ┆ target ┆ needed │
    │ ---   ┆ ---      ┆ ---        ┆ ---    ┆ ---    │
    │ i64   ┆ f64      ┆ f64        ┆ f64    ┆ i64    │
    ╞═══════╪══════════╪════════════╪════════╪════════╡
    │ 3     ┆ 0.267879 ┆ 0.874369   ┆ 0.1    ┆ 59     │
    └───────┴──────────┴────────────┴────────┴────────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="power")
    summaries.check_unweighted("power", options)
    keywords.check_confidence(confidence)
    number = keywords.whole_number("comparisons", comparisons)
    others = {"difference": difference, "human": human, "comparisons": number > 1 or None}
    if margin is not None and (
        other := [key for key, value in others.items() if value is not None]
    ):
        msg = f"{option('margin')} is not supported with {option(other[0])}: leave out one of them"
        raise ValueError(Problem(msg))
    counts: list[Count] = ["missed"] if margin is not None else []
    trial = Trial(
        baseline, confidence=confidence, cluster=cluster, margin=margin, needed_by="power"
    )
    question = comparison.ask_systems(
        frame, metrics, truth, by, options, trial, per_user=True, counts=counts
    )
    describe = partial(plan_of, trial=trial, power=power, difference=difference, comparisons=number)
    return summaries.described(frame, question, describe, human=human)


def plan_of(
    values: Values,
    trial: Trial,
    power: float,
    difference: Size | Mapping[str, Size] | None,
    comparisons: int,
) -> pl.LazyFrame:
    _check_power(power, trial.confidence)
    differences = comparison.per_metric("difference", difference, values.names_per_user)
    wanted = {name: _read_wanted(name, value) for name, value in differences.items()}
    for metric in values.requested:
        if (bound := wanted.get(metric.name)) is not None:
            width = metric.traits.width
            trials.check_below_width("difference", metric.name, bound, width)
    summaries.check_packages()
    sizes = comparison.per_metric("margin", trial.margin, values.names_per_user)
    trial = trial._replace(margins=margins.read_margins(sizes, values.requested))
    for metric in values.requested:
        if metric.name in trial.margins:
            labels.direction_of(metric)  # which it must have
    traits = {metric.name: metric.traits for metric in values.requested}
    left_out = () if trial.margin is not None else ("passes",)
    schema = {name: t for name, t in _MADE.items() if name not in left_out} | (
        _HUMAN if values.has_human else {}
    )

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        paired = system_pairs.paired_users(rows, values, trial)
        level = power_statistics.of_family(float(trial.confidence), comparisons)
        design = power_statistics.Design(level, float(power))
        numbers = [_numbers_of_pair(pair, wanted.get(pair.metric), design) for pair in paired.pairs]
        for row, pair in zip(numbers, paired.pairs, strict=True):
            row |= _numbers_of_gate(row, pair, trial, traits[pair.metric], design.power)
        lines = [{name: row[name] for name in schema} for row in numbers]
        return paired.table(values.by[0], lines, schema)

    return system_pairs.plan_of("power", values, schema, reduce)


def _check_power(power: object, confidence: float) -> None:
    if not (keywords.is_number(power) and 0 < power < 1):
        msg = f"power must be a number between 0 and 1, not {power!r}"
        raise ValueError(msg)
    if power <= (alpha := keywords.alpha_of(confidence)):
        msg = (
            f"power={power!r} must be above 1 − confidence = {alpha:.3g}, the probability "
            "that a test finds a difference where there is none"
        )
        raise ValueError(msg)


def _read_wanted(name: str, value: Size) -> Bound:
    """Read a difference: a number, or a percentage."""
    bound = trials.bound_of(value)
    if bound is None or bound.size <= 0:
        msg = (
            f"difference of {name!r} must be a finite number > 0, or a share of the baseline's "
            f"mean such as '1%', not {value!r}"
        )
        raise ValueError(msg)
    return bound


# ------------------------------------------------------------------ one row per user → per pair


def _numbers_of_pair(pair: Pair, wanted: Bound | None, design: Design) -> dict[str, Any]:
    """Return the detectable difference, and the number of users that the target needs."""
    sure, more = pair.sure, list[Note]()
    change = sure.difference
    why = pair.reason()
    users, of_mean = len(pair.difference), pair.of_mean
    error, number = float(of_mean.error), float(of_mean.freedom) + 1
    own = float(sure.of_mean.error)
    deviation = float(change.std(ddof=1)) if why is None else 0.0 if len(change) > 1 else nan
    mean = float(pair.of_baseline.mean()) if users else nan
    mean = mean if pair.human is None else pair.human.numbers["baseline_mean"]
    if pair.clusters is not None and why is None:
        more = sentences.notes_of_clusters(statistics.Sample(change), sure.sample)
        if own > 0:
            more.append(notes.note("design_effect", effect=len(change) * (own / deviation) ** 2))
        else:
            why = more.pop()
    target, needed = nan, None
    if wanted is not None:
        target = wanted.size * abs(mean) if wanted.relative else wanted.size
    if why is None and target == 0:
        why = notes.note("baseline_is_0")
    elif why is None and isfinite(target):
        observations = power_statistics.needed_users(target, error * sqrt(number), design)
        if observations is None:
            why = notes.note("too_many")
        else:
            needed = ceil(observations * users / number)
    of_human: dict[str, Any] = {}
    if pair.human is not None:
        of_human = {"users_human": len(change), "needed_human": None}
        if needed is not None:
            of_human["needed_human"] = _needed_human(pair.human, target, own, design)
            if of_human["needed_human"] is None:
                more.append(notes.note("all_human"))
    return {
        "users": users,
        "baseline_mean": mean,
        "note": notes.packed([why, *more]),
        "std": deviation,
        "target": target if isfinite(target) else None,
        "detectable": power_statistics.detectable(error, number, design),
        "passes": None,
        "needed": needed,
        **of_human,
    }


def _needed_human(human: Corrected, target: float, error: float, design: Design) -> int | None:
    """Return how many of the judge's users need human labels; None if there are too few users."""
    deviation = error * sqrt(len(human.alone.difference))  # with clusters, that of their users

    def detects(number: int) -> bool:
        planned = human_labels.planned_error(human.both, number, deviation)
        return power_statistics.least_distance(number, design) * planned <= target

    numbers = range(2, int((~np.isnan(human.both.judge)).sum()) + 1)
    place = bisect_left(numbers, x=True, key=detects)
    return numbers[place] if place < len(numbers) else None


def _numbers_of_gate(
    numbers: Mapping[str, Any], pair: Pair, trial: Trial, traits: Traits, power: float
) -> dict[str, Any]:
    """Return how often an equal system passes a gate with a margin, and the users it needs."""
    margin = trial.margins.get(pair.metric)
    if margin is None or not len(pair.difference):
        return {}
    mean = float(pair.of_baseline.mean())
    why = margins.no_share_of(mean, margin)
    equal = None if why else gate_power.equal_system(pair, margin, traits, trial)
    said = notes.unpacked(numbers["note"])
    if equal is None:
        said += [] if pair.undefined else [why or notes.note("no_equal")]
        return {"note": notes.packed(said)}
    needed = equal.needed(power)
    return {
        "note": notes.packed([*said, notes.note("no_number") if needed is None else None]),
        "target": margin.size * mean if margin.relative else margin.size,
        "passes": equal.passes(equal.observations),
        "needed": needed,
    }
