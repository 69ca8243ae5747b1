"""Plans evaluations: ``Values`` in, detectable differences and the users they need out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf, isfinite, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, get_args

import polars as pl

from rankframe._comparison import comparison, summaries, system_pairs
from rankframe._comparison.system_pairs import Matrix, Pair
from rankframe._comparison.trials import Trial
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, FrameT
from rankframe._tables import adapters, run_dicts

if TYPE_CHECKING:
    from rankframe._comparison.power_statistics import Design

#: A number on the scale of the metric, or a share of the baseline's mean such as ``"1%"``.
Target: TypeAlias = float | str
Kind: TypeAlias = Literal["pairs", "anova"]

#: The first column and the last two are the answer, which narrow prints show: add others between.
_MADE = {
    "users": pl.Int64,
    "baseline_mean": pl.Float64,
    "note": pl.String,
    **dict.fromkeys(("deviation", "target", "detectable"), pl.Float64),
    "needed": pl.Int64,
}


@adapters.takes_any_frame
def power(
    frame: FrameT | Mapping[str, FrameT],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    baseline: object = None,
    power: float = 0.8,
    confidence: float = 0.95,
    difference: Target | Mapping[str, Target] | None = None,
    design: Kind = "pairs",
    **options: Unpack[Options],
) -> FrameT:
    """
    Report which true difference these users can detect, and how many users a difference needs.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments: ``by=["model", "country"]``. Of several columns, the one called ``model``
        identifies the systems, else the one that contains the ``baseline``, unless a table is lazy,
        else the first one.
    baseline
        The system that the others are compared with; by default every pair is compared.
    power
        The probability of finding a true difference, above 1 − ``confidence``.
    confidence
        1 − α, where α is the probability that a two-sided test finds a difference where there is
        none. It is not corrected for the number of comparisons.
    difference
        The difference to detect, > 0: on the scale of the metric (``0.01``), or relative to the
        mean of the baseline (``"1%"``); one for all metrics, or a mapping such as
        ``{"ndcg@10": "1%"}``.
    design
        ``"pairs"``: the paired t test of two systems, with n users: the noncentral t with
        n − 1 degrees of freedom at δ·√n/σ, σ the standard deviation of the users' differences.
        ``"anova"``: one-way analysis of variance of all m systems, where the best and the worst
        differ by δ: the noncentral F(m − 1, m·(n − 1)) at λ = n·δ²/(2σ²), σ² the mean variance
        within a system. It is for systems with different users; if all systems serve the same
        users, pairs need fewer.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and pair: segments…, ``metric``, the system (in a column named
        as in ``by``), ``baseline``, ``users`` (for whom both values are defined),
        ``baseline_mean``, ``note``, which explains why a number is null, ``deviation`` (σ),
        ``target`` (the difference to detect, on the scale of the metric), ``detectable`` (the
        smallest true difference that these users detect with this power) and ``needed`` (the least
        number of users that detect the target with it). For ``"anova"``, one row per segment and
        metric, with the number of ``systems`` instead of the system and ``baseline``; ``users`` are
        those for whom every system is defined.

    Raises
    ------
    ValueError
        If ``difference`` names a metric that is not requested or is relative without a ``baseline``
        for ``"anova"``.

    Notes
    -----
    σ is an estimate, so ``detectable`` and ``needed`` are, too: with few users, they are rough.
    Plan with runs that resemble the future ones. J. Cohen, *Statistical Power Analysis*, 1988;
    T. Sakai, *Information Retrieval Journal* 19, 2016, for the design by analysis of variance.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> planned = rf.power(run, "rr", truth=truth, baseline="old", difference=0.1)
    >>> planned.select("users", "deviation", "detectable", "target", "needed")
    shape: (1, 5)
    ┌───────┬───────────┬────────────┬────────┬────────┐
    │ users ┆ deviation ┆ detectable ┆ target ┆ needed │
    │ ---   ┆ ---       ┆ ---        ┆ ---    ┆ ---    │
    │ i64   ┆ f64       ┆ f64        ┆ f64    ┆ i64    │
    ╞═══════╪═══════════╪════════════╪════════╪════════╡
    │ 3     ┆ 0.267879  ┆ 0.874369   ┆ 0.1    ┆ 59     │
    └───────┴───────────┴────────────┴────────┴────────┘
    """
    frame, by = run_dicts.as_frame(frame, by)
    summaries.check_independent("power", options)
    if options.get("weights") is not None:
        msg = "weights= given to power, which counts users equally: leave it out"
        raise ValueError(msg)
    trial = Trial(baseline, confidence=confidence)
    question = comparison.ask_systems(frame, metrics, truth, by, options, trial, per_user=True)
    describe = partial(_plan_of, trial=trial, power=power, difference=difference, design=design)
    return summaries.described(frame, question, describe)


class _Wanted(NamedTuple):
    """A difference to detect."""

    size: float
    relative: bool


def _plan_of(
    values: Values,
    trial: Trial,
    power: float,
    difference: Target | Mapping[str, Target] | None,
    design: Kind,
) -> pl.LazyFrame:
    keywords.check_confidence(trial.confidence)
    _check_power(power, trial.confidence)
    keywords.check_choice("design", design, get_args(Kind))
    summaries.check_systems("power", values.by)
    summaries.check_numbers(values)
    differences = comparison.per_metric(
        "difference", difference, [metric.name for metric in values.requested]
    )
    wanted = {name: _read_wanted(name, value) for name, value in differences.items()}
    if (
        design == "anova"
        and trial.baseline is None
        and any(target.relative for target in wanted.values())
    ):
        msg = "difference is relative to the mean of the baseline: name the system in baseline="
        raise ValueError(msg)
    summaries.check_packages()
    model, *segments = values.by
    own = {"baseline": None} if design == "pairs" else {"systems": pl.Int64}
    types = summaries.result_schema("power", values, {"metric": pl.String, **own, **_MADE})
    pair_columns = [model, "baseline"] if design == "pairs" else ["systems"]
    order = [*segments, "metric", *pair_columns, *_MADE]
    schema = {name: types[model if name == "baseline" else name] for name in order}
    reduce = partial(
        _of_pairs if design == "pairs" else _of_systems,
        values=values,
        trial=trial._replace(confidence=float(trial.confidence)),
        power=float(power),
        wanted=wanted,
    )
    return values.rows.map_batches(reduce, schema=schema)


def _check_power(power: object, confidence: float) -> None:
    if not (keywords.is_number(power) and 0 < power < 1):
        msg = f"power must be a number between 0 and 1, not {power!r}"
        raise ValueError(msg)
    if power <= 1 - confidence:
        msg = (
            f"power={power!r} must be above 1 − confidence = {1 - confidence:.3g}, the probability "
            "that a test finds a difference where there is none"
        )
        raise ValueError(msg)


def _read_wanted(name: str, value: object) -> _Wanted:
    """Read a difference: a number, or a percentage."""
    size, relative = value, False
    if isinstance(value, str) and value.strip().endswith("%"):
        relative = True
        try:
            size = float(value.strip()[:-1]) / 100
        except ValueError:
            size = nan
    if not (keywords.is_number(size) and 0 < size < inf):
        msg = (
            f"difference of {name!r} must be a finite number > 0, or a share of the baseline's "
            f"mean such as '1%', not {value!r}"
        )
        raise ValueError(msg)
    return _Wanted(float(size), relative)


# ------------------------------------------------------------------ one row per user → per pair


def _of_pairs(
    rows: pl.DataFrame,
    *,
    values: Values,
    trial: Trial,
    power: float,
    wanted: Mapping[str, _Wanted],
) -> pl.DataFrame:
    from rankframe._comparison.power_statistics import Design

    paired = system_pairs.paired_users(rows, values, trial)
    design = Design(trial.confidence, power)
    numbers = [_numbers_of_pair(pair, wanted.get(pair.metric), design) for pair in paired.pairs]
    return pl.DataFrame(numbers, schema=_MADE).select(
        *paired.pair_keys(values.by[0], paired.pairs), *_MADE
    )


def _of_systems(
    rows: pl.DataFrame,
    *,
    values: Values,
    trial: Trial,
    power: float,
    wanted: Mapping[str, _Wanted],
) -> pl.DataFrame:
    from rankframe._comparison.power_statistics import Design

    paired = system_pairs.shared_users(rows, values, trial)
    design = Design(trial.confidence, power, len(paired.systems))
    place = None
    if trial.baseline is not None:
        place = paired.systems.to_list().index(trial.baseline)
    numbers = [
        _numbers_of_systems(matrix, place, wanted.get(matrix.metric), design)
        for matrix in paired.matrices
    ]
    systems = pl.lit(len(paired.systems), pl.Int64).alias("systems")
    return pl.DataFrame(numbers, schema=_MADE).select(
        *paired.keys(paired.matrices), systems, *_MADE
    )


def _numbers_of_pair(pair: Pair, wanted: _Wanted | None, design: Design) -> dict[str, Any]:
    change = pair.difference
    note = pair.undefined
    deviation = float(change.std(ddof=1)) if note is None else 0.0 if len(change) > 1 else nan
    mean = float(pair.of_baseline.mean()) if len(change) else nan
    return _numbers(len(change), mean, deviation, note, wanted, design)


def _numbers_of_systems(
    matrix: Matrix, place: int | None, wanted: _Wanted | None, design: Design
) -> dict[str, Any]:
    from rankframe._comparison import statistics

    values = statistics.rounded(matrix.values)
    users = len(values)
    mean = float(values[:, place].mean()) if place is not None and users else nan
    if users < 2:
        few = "one user" if users else "no user has a value in all"
        return _numbers(users, mean, nan, few, wanted, design)
    varied = (values.min(axis=0) < values.max(axis=0)).any()
    deviation = float(values.var(axis=0, ddof=1).mean() ** 0.5) if varied else 0.0
    note = None if deviation else "within each system, every user has the same value"
    return _numbers(users, mean, deviation, note, wanted, design)


def _numbers(
    users: int,
    mean: float,
    deviation: float,
    note: str | None,
    wanted: _Wanted | None,
    design: Design,
) -> dict[str, Any]:
    """Return the detectable difference, and the number of users that the target needs."""
    from rankframe._comparison import power_statistics

    target, needed = nan, None
    if wanted is not None:
        target = wanted.size * abs(mean) if wanted.relative else wanted.size
    if note is None and target == 0:
        note = "the baseline's mean is 0, so a share of it is not a difference"
    elif note is None and isfinite(target):
        needed = power_statistics.needed_users(target, deviation, design)
        if needed is None:
            note = "more than 10¹⁵ users are needed"
    numbers = {
        "baseline_mean": mean,
        "deviation": deviation,
        "detectable": power_statistics.detectable(deviation, users, design),
        "target": target,
    }
    finite_numbers = {
        name: number if isfinite(number) else None for name, number in numbers.items()
    }
    return {"users": users, **finite_numbers, "needed": needed, "note": note}
