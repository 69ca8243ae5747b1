"""Summarizes metrics: ``Values`` in, a row per group and metric, with its interval, out."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, cast, get_args

import polars as pl

from rankframe._comparison import decision, notes, sentences, trials
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import human_labels, np, run_variance, statistics
from rankframe._comparison.trials import Correction, Resampling, Test, Trial
from rankframe._evaluation import (
    averages,
    evaluation,
    group_means,
    human_values,
    ready_values,
    system_metrics,
    training_runs,
    user_columns,
)
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Options, StatisticsOptions
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.errors import Problem, RankingDataError, option

if TYPE_CHECKING:
    from rankframe._comparison.run_variance import RunError
    from rankframe._comparison.statistics import Advance, Array, Outcome, Places, Sample

Method: TypeAlias = Literal["t", "auto"]
#: What "auto" chooses: itself is the farther ends of Student's and the studentized interval.
Chosen: TypeAlias = Literal["t", "auto", "wilson", "exact"]

_MOST_RESAMPLES = 10_000_000  # their shifts are held in memory

#: The first four columns and the last four are the answer: add others between.
_SUMMARY = {
    "metric": pl.String,
    **dict.fromkeys(("users", "num_left_out"), pl.Int64),
    "mean": pl.Float64,
    "num_missed": pl.Int64,
    **dict.fromkeys(("min", "p10", "median", "max", "std", "ci_low", "ci_high"), pl.Float64),
    "note": pl.String,
}
#: Columns of a row that human labels correct.
HUMAN = {"users_human": pl.Int64, "correction": pl.Float64}
#: Who counts, of rows of a summary: a metric of all lists leaves out no user.
SELECTED = pl.col("users") + pl.col("num_left_out").fill_null(0)
#: Columns of a row of totals: one vote per group.
_VOTES = {"groups": pl.Int64, "groups_mean": pl.Float64, "groups_std": pl.Float64}
#: Columns of a row over training runs.
RUNS = {"runs": pl.Int64, "runs_std": pl.Float64}
_ORDER = "__rankframe_order"


@adapters.takes_any_frame
def summarize(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    confidence: float = 0.95,
    method: Method = "auto",
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    over: str | None = None,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Summarize metrics over users: mean, spread and a confidence interval of the mean.

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
        A truth with labels by humans; ``truth`` then has the labels of a judge, such as a language
        model. It has a random sample of the users of ``truth``, and all their labels down to the
        depth of the metrics.
    by
        Columns of segments, such as country, fold or day.
    total
        Add a row over all groups, whose ``by`` columns are null, as in ``evaluate``, and the
        columns ``groups``, ``groups_mean`` and ``groups_std``: for ``by=["model", "fold"]`` the
        number of folds with a value, and the mean and standard deviation of the fold means.
    confidence
        The probability that a single interval covers the true value.
    method
        ``"auto"``: chosen by the number and the values of the users, which ``note`` reports;
        ``"t"``: Student's interval.
    resamples
        The number of resamples, for the tests and intervals that draw them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    over
        A column of the run, such as ``"seed"``, whose values are training runs of one system for
        the same users: each user's value is the mean over runs, and users and runs are two sources
        of error of the interval.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per group and metric:

        - by…, ``metric``
        - ``users``: the number behind the mean
        - ``num_left_out``: users who count, by ``users=``, but have no value
        - ``mean``
        - ``num_missed``: how many of these two kinds of users have no list, so that most metrics
          are 0 for them
        - ``min``, ``p10`` (a tenth of the values are lower), ``median``, ``max``
        - with ``total``, its columns; with ``over``, ``runs`` and ``runs_std``: the number of
          training runs, and the standard deviation of their means
        - ``std``: over users
        - ``ci_low``, ``ci_high``: the interval of the mean, which ends at the metric's range
        - ``note``: why a number is null, that an interval was cut, and how many users have no list
          if they are at least 5%

        Counts such as ``num_hits`` are averaged. With ``weights``, ``mean``, ``std`` and the
        interval are weighted, and ``note`` reports the effective number of users. With ``cluster``,
        it reports the number of clusters. With ``"auto"``, ``note`` reports resamples without
        spread: these have no t statistic and are ignored (if their share is above (1 − confidence)
        / 2, the interval is Student's). It also reports fewer than 20 users, or, if a quarter of
        the users or more share one value such as 0, fewer than 20 users with other values: the
        interval may then cover less often than stated. With ``cluster``, these counts are of
        clusters and their means, by which ``"auto"`` chooses. For a geometric mean such as
        ``gmap@10``, ``mean`` is that mean, and its interval is that of the mean of ln(x + ε),
        transformed back to the scale of the metric; the other columns describe the users' values x.

        With ``human``, there are also ``users_human`` (Int64, users with human labels and a value)
        and ``correction`` (Float64, the judge's mean minus ``mean``, also in ``note``). Then
        ``min`` to ``std`` are of values by humans. Without such a user, these, ``mean`` and
        ``correction`` are null.

    Raises
    ------
    RankingDataError
        If there is only one cluster, or a user has no cluster or several. If ``human`` has a user
        whom ``truth`` does not have, or a pair twice, an item is judged in only one of the two, its
        column ``drawn`` is not "random" in every row, or a cluster has labels for only some of its
        users.
    ValueError
        If ``human`` is combined with ``over``, ``average`` or a metric that do not support it.

    Notes
    -----
    ``"auto"`` is Wilson's interval where values are 0 and 1, without weights and clusters. Where
    all are equal, to x, in a finite range, at most the share u = 1 − ((1 − confidence)/2)^(1/n) of
    the users may have another value (Clopper and Pearson), so the mean is from x − u · (x − least
    value) to x + u · (greatest value − x). It is ``"t"`` for fewer than 5 users, where the skewness
    is within twice its standard error √(6(n − 2)/((n + 1)(n + 3))) of 0, and for at least 200 users
    if it is at most √users / 10. Otherwise each end is the farther one of Student's interval and
    the studentized bootstrap, which has the best coverage for few users with skewed values, but is
    too short for symmetric values with heavy tails. ``note`` reports the choice.

    P. Hall, *Annals of Statistics* 16, 1988, for the studentized bootstrap; E. B. Wilson, *JASA*
    22, 1927; C. J. Clopper and E. S. Pearson, *Biometrika* 26, 1934. Wilson's interval covers 95%
    on average over rates, and at least 92% at a rate of 0.02; its coverage is lowest, 84 to 86%,
    near a rate of 0.2 / users.

    With weights w, SE² = (n − 1)/n · Σ (x̄₋ − x̄)² over the n users of weight > 0, where x̄₋ is
    the mean without a user (the jackknife, CR3), and t has n′ − 1 degrees of freedom, n′ = (Σ
    w)² / Σ w² (L. Kish, *Survey Sampling*, 1965), the effective number of users; the bootstrap
    draws users with equal probability, then weights them. In a row of totals a user who is in
    several groups is one observation: the mean of the user's values, whose weight is their
    number, or the sum of their weights.

    A pooled mean has these formulas, with each user's denominator, times ``weights``, as weight: it
    is a ratio of sums, and SE² is its jackknife. A mean of groups has SE² = Σ s²/n / G² over the G
    groups of n users with the variance s², as the users are drawn, and the groups are fixed: the
    interval says nothing about other data sets. It is Student's, by any ``method``, with as many
    degrees of freedom as n′ of the weights 1/n has, and null if a group has one user.

    With clusters, these are the observations: the mean of a cluster's users, with the sum of their
    weights; the bootstrap draws whole clusters. J. G. MacKinnon, M. Ø. Nielsen and M. D. Webb, *J.
    Applied Econometrics* 38, 2023; see ``compare`` for their coverage.

    With ``human``, the mean is λ·(mean of F over the users without human labels) + mean of (Y − λF)
    over the n with them, F by the judge and Y by humans: however wrong the judge is, it has no
    bias. λ, from 0 (human labels alone) to 1, is tuned for the least error. A. N. Angelopoulos, J.
    C. Duchi and T. Zrnic, *PPI++*, arXiv 2311.01453, 2023. The interval is Student's, by any
    ``method``, with n − 1 degrees of freedom (n counts clusters, if there are any), and the error
    is the jackknife's, with λ tuned anew. In simulations of 30 users with human labels it covers 91
    to 97% (human labels alone: 92 to 96%), and is 14 to 54% shorter with a judge whose values
    correlate with theirs by 0.58 to 0.95, and 1% longer with one who guesses. With weights, or
    where a user has a value by one alone, it is a ratio of two such means. If all human values are
    equal, they are the mean, without an interval. The sample must be random: users whom somebody
    chose, such as those with the worst lists, bias the mean, and no test finds it.

    With ``over``, other columns describe the users' means over runs, ``num_missed`` has users
    without a list in one run or more, and an end of the interval is the farther one of that of
    users alone and of Student's with the error of both, as in ``compare``.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7], "rank": [1, 2, 4]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> rf.summarize(run, "rr", truth=truth).select("metric", "users", "mean", "ci_low", "ci_high")
    shape: (1, 5)
    ┌────────┬───────┬──────────┬────────┬─────────┐
    │ metric ┆ users ┆ mean     ┆ ci_low ┆ ci_high │
    │ ---    ┆ ---   ┆ ---      ┆ ---    ┆ ---     │
    │ str    ┆ i64   ┆ f64      ┆ f64    ┆ f64     │
    ╞════════╪═══════╪══════════╪════════╪═════════╡
    │ rr     ┆ 3     ┆ 0.583333 ┆ 0.0    ┆ 1.0     │
    └────────┴───────┴──────────┴────────┴─────────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options)
    settings = keywords.read_options(
        options, cluster=cluster, over=over, counts=["missed"], takes_average=True
    )
    describe = partial(
        summary_of,
        total=total,
        confidence=confidence,
        method=method,
        resamples=resamples,
        seed=seed,
    )
    question = ready_values.ask(frame, metrics, truth, by, settings)
    return described(frame, question, describe, human=human)


def described(
    frame: FrameT,
    question: Question,
    describe: Callable[[Values], pl.LazyFrame],
    *,
    noted: bool = True,
    human: Truth | None = None,
) -> FrameT:
    """Describe the values of a question, in the kind of its frame."""
    description = describe(values_of(question, human))
    description = notes.rendered(description) if noted else description
    beside = [*question.beside, cast("Frame | None", human)]
    return adapters.to_caller_type(description, like=frame, beside=beside)


def values_of(question: Question, human: Truth | None) -> Values:
    """Return the values of all users, and those by human labels."""
    values = evaluation.user_values(question)
    return values if human is None else human_values.with_human(values, question, human)


def summary_of(
    values: Values,
    *,
    confidence: float,
    method: Method,
    resamples: int,
    seed: int,
    total: bool = False,
    verb: str = "summarize",
) -> pl.LazyFrame:
    """Plan a summary of values per user."""
    keywords.check_confidence(confidence)
    keywords.check_choice("method", method, get_args(Method))
    resampling = read_resampling(resamples, seed)
    check_values(values, total=total, least=1)
    check_plain(Trial(total=total), values)
    schema = result_schema(verb, values, _columns(values, total=total))

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        check_rows(rows, values)
        if not values.requested:
            return pl.DataFrame(schema=schema)
        samples, summary = sampled(rows, values, method, total=total)
        outcome = _intervals(samples, confidence, resampling)
        said = [
            notes.packed(
                [*sample.notes, *_notes_of_resamples(dropped, resampling.times, confidence)]
            )
            for sample, dropped in zip(samples, outcome.dropped.tolist(), strict=True)
        ]
        summary = summary.with_columns(
            pl.Series("ci_low", outcome.low, pl.Float64).fill_nan(None),
            pl.Series("ci_high", outcome.high, pl.Float64).fill_nan(None),
            pl.Series("note", said, pl.String),
        )
        ends = [from_logarithms(name, values.requested) for name in ("ci_low", "ci_high")]
        summary = summary.with_columns(ends).select(list(schema))
        summary = summary.with_columns(cut_at(ranges_of(values.requested)))
        return summary.sort(values.by, nulls_last=True, maintain_order=True) if total else summary

    summary = values.rows.map_batches(reduce, schema=schema)
    return _with_lists(summary, values, schema, confidence, seed)


def description_of(values: Values) -> pl.LazyFrame:
    """Plan a summary without intervals and notes, which needs no SciPy."""
    check_numbers(values)
    schema = result_schema("summarize", values, _columns(values, total=False))
    empty = {n: pl.lit(None, dtype=_SUMMARY[n]) for n in ("ci_low", "ci_high", "note")}

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        check_sizes(rows, values)
        description = _describe(rows, values, values.by)
        if values.has_human:
            description = sampled(rows, values, "t", total=False)[1]
        return description.with_columns(**empty).select(list(schema))

    description = values.rows.map_batches(reduce, schema=schema)
    return _with_lists(description, values, schema, None, 0)


def in_requested_order(names: Sequence[str]) -> pl.Expr:
    """Return the place of each metric in the call."""
    return pl.col("metric").replace_strict(names, list(range(len(names))))


def _with_lists(
    summary: pl.LazyFrame,
    values: Values,
    schema: dict[str, Any],
    confidence: float | None,
    seed: int,
) -> pl.LazyFrame:
    """Add the metrics of all lists: one number per group, without a spread over users.

    Without a confidence, they have no interval.
    """
    metrics, numbers = values.system_metrics, values.numbers
    if metrics is None or numbers is None:
        return summary
    names = [metric.name for metric in metrics.requested]
    numbers = numbers.with_columns(pl.col(names).cast(pl.Float64))
    counts = [name for name in ("users", "num_missed") if name in numbers.collect_schema()]
    rows = numbers.unpivot(
        on=names, index=[*values.by, *counts], variable_name="metric", value_name="mean"
    )
    if confidence is not None:
        level, errors = confidence, system_metrics.errors(metrics, seed)
        rows = rows.join(errors, on=[*values.by, "metric"], how="left", nulls_equal=True)
        reach = pl.col("number").map_batches(
            lambda number: pl.Series(decision.quantile(level, number.to_numpy() - 1.0)),
            return_dtype=pl.Float64,
        )
        rows = rows.with_columns(margin=(pl.col("error") * reach).fill_nan(None))
    else:
        rows = rows.with_columns(margin=pl.lit(None, pl.Float64))
    note = notes.note("jackknife")
    fixed = [
        metric.name for metric in metrics.requested if not system_metrics.is_of_targets(metric)
    ]
    has_interval = pl.col("metric").is_in(fixed)
    mean, margin = pl.col("mean"), pl.when(has_interval).then("margin")
    fixed_note, moving_note = (pl.lit(notes.packed([n])) for n in (note, notes.note("moving")))
    said = pl.when(has_interval).then(fixed_note).otherwise(moving_note)
    rows = rows.with_columns(ci_low=mean - margin, ci_high=mean + margin, note=said)
    if "num_missed" in counts:
        missed = pl.struct("num_missed", "users").map_elements(
            lambda row: notes.packed(sentences.notes_of_missed(row["num_missed"], row["users"])),
            return_dtype=pl.String,
        )
        rows = rows.with_columns(notes.noted(missed))
    rows = rows.with_columns(cut_at(ranges_of(metrics.requested)))
    missing = [name for name in schema if name not in rows.collect_schema()]
    nulls = {name: pl.lit(None, schema[name]) for name in missing}
    rows = rows.with_columns(**nulls).select(list(schema)).cast(pl.Schema(schema))
    return pl.concat([summary, rows]).sort(*values.by, in_requested_order(metrics.names))


def _columns(values: Values, *, total: bool) -> dict[str, Any]:
    """Name the columns of a summary besides those of ``by``."""
    more = {**(_VOTES if total else {}), **(RUNS if values.settings.over is not None else {})}
    more |= HUMAN if values.has_human else {}
    last = {name: _SUMMARY[name] for name in ("std", "ci_low", "ci_high", "note")}
    first = {name: dtype for name, dtype in _SUMMARY.items() if name not in last}
    return {**first, **more, **last}


class Sampled(NamedTuple):
    """The values of a metric in a group, the method of its interval, and its notes."""

    sample: Sample
    method: Chosen
    notes: list[Note]
    limits: tuple[float, float] = (-inf, inf)  # of the metric
    runs: RunError | None = None
    human: tuple[int, float, Sample] | None = (
        None  # users with labels, the correction, their values
    )


def sampled(
    rows: pl.DataFrame, values: Values, method: Method, *, total: bool
) -> tuple[list[Sampled], pl.DataFrame]:
    """Take the values of each group and metric, and describe them in a row each."""
    by = values.by
    rows = rows.sort(*by, values.user)
    samples = _samples(rows, values, by, method, pooled=False)
    if total:
        samples += _samples(rows, values, group_means.total_by(by), method, pooled=True)
    corrections = None
    if values.has_human:
        numbers = [
            (float(statistics.mean_of(of.sample)), *of.human[:2]) for of in samples if of.human
        ]
        schema = {"mean": pl.Float64, **HUMAN}
        corrections = pl.DataFrame(numbers, schema=schema, orient="row").fill_nan(None)
    return samples, descriptions(rows, values, total=total, corrections=corrections)


def descriptions(
    rows: pl.DataFrame, values: Values, *, total: bool, corrections: pl.DataFrame | None = None
) -> pl.DataFrame:
    """Describe each group and metric in a row, with corrected means, without intervals."""
    corrections = pl.DataFrame() if corrections is None else corrections
    summary = _describe(rows, values, values.by)
    summary = summary.with_columns(corrections.head(summary.height))
    if not total:
        return summary
    whole = group_means.total_by(values.by)
    totals = _describe(rows, values, whole)
    totals = totals.with_columns(corrections.tail(totals.height)).join(
        _votes(summary, whole), on=[*whole, _ORDER], how="left", maintain_order="left"
    )
    return pl.concat([summary, totals], how="diagonal")


def _intervals(samples: Sequence[Sampled], confidence: float, resampling: Resampling) -> Outcome:
    """Compute all intervals of one method together."""
    outcome = statistics.undefined(len(samples))
    methods: list[Chosen] = [sample.method for sample in samples]
    with statistics.progress(resampling.times * methods.count("auto")) as advance:
        for method in dict.fromkeys(methods):
            places = [place for place, sample in enumerate(samples) if sample.method == method]
            if method == "exact":
                for place in places:
                    ends = _exact(samples[place], confidence)
                    outcome.low[place], outcome.high[place] = ends
                continue
            reduce = partial(_interval, method, confidence, resampling)
            of_method = [samples[place].sample for place in places]
            part = statistics.in_matrices(of_method, reduce, advance)
            for into, values in zip(outcome, part, strict=True):
                into[places] = values
    for place, sample in enumerate(samples):
        if sample.runs is not None:
            sample.runs.widen(outcome, place, statistics.estimate(sample.sample), confidence)
    return outcome


def _exact(sampled: Sampled, confidence: float) -> tuple[float, float]:
    """Bound the mean of values that are all equal by the share of users who may have another."""
    value, (least, greatest) = float(sampled.sample.values[0]), sampled.limits
    tail, others = keywords.alpha_of(confidence) / 2, statistics.below(sampled.sample, value)
    ends = [
        sign * others.least_mean(sign * value, sign * end, tail) + 0.0
        for sign, end in ((1, least), (-1, greatest))
    ]
    low, high = statistics.rounded(np.array(ends)).tolist()
    return low, high


def _interval(
    method: Chosen, confidence: float, resampling: Resampling, sample: Sample, advance: Advance
) -> Outcome:
    if method == "auto":
        return statistics.widened(sample, confidence, resampling, advance)
    return (statistics.wilson if method == "wilson" else statistics.t_test)(sample, confidence)


class _Group(NamedTuple):
    """The rows of a group, and who is in them."""

    rows: pl.DataFrame
    users: Places | None  # of each row, if users may have several
    clusters: Places | None
    averaged: Places | None  # the group of each row, if the mean is that of groups
    lacking: list[Note]  # of users without a list
    weights: Array | None = None  # in the mean of a metric


def _samples(
    rows: pl.DataFrame, values: Values, by: Sequence[str], method: Method, *, pooled: bool
) -> list[Sampled]:
    """Take the values of each group and metric, and note why a number is null."""
    groups = rows.partition_by(by, maintain_order=True) if by else [rows]
    of_recall = {metric.name: notes_of_recall(values, metric) for metric in values.requested}
    samples: list[Sampled] = []
    for group in (_group_of(group, values, pooled=pooled) for group in groups):
        for metric in values.requested:
            weight = averages.weight_of(values, metric.name)
            weights = None if weight is None else group.rows[weight].to_numpy()
            of_metric = group._replace(weights=weights)
            sampled = _sampled(of_metric, metric, method, values.weights, by)
            if values.has_human:
                sampled = _with_human(of_metric, metric, values)
            samples.append(sampled._replace(notes=[*sampled.notes, *of_recall[metric.name]]))
    return samples


def _group_of(rows: pl.DataFrame, values: Values, *, pooled: bool) -> _Group:
    if pooled and values.cluster is not None:
        user_columns.check_one_cluster(rows, [values.user], values.cluster)
    if values.has_human:
        check_labelled(rows, values, pooled=pooled)
    lacking: list[Note] = []
    if user_columns.MISSED in rows.columns:
        missed, users = rows[user_columns.MISSED].sum(), rows[values.user].count()
        lacking = sentences.notes_of_missed(int(missed), users)
    return _Group(
        rows,
        places_of_users(rows[values.user]) if pooled else None,
        None if values.cluster is None else places_of_users(rows[user_columns.CLUSTER]),
        places_of_users(rows[averages.GROUP]) if values.in_groups else None,
        lacking,
    )


def _sampled(
    group: _Group,
    metric: RequestedMetric,
    method: Method,
    weights: str | None,
    by: Sequence[str],
) -> Sampled:
    unit = "user" if group.clusters is None else "cluster"
    column = _column(group.rows, metric)
    of_users, returning, of_group, averaged = _sample(column, group)
    if weights is not None and not len(of_users.values) and not np.isnan(column).all():
        row = group.rows.select(by).head(1) if by else None
        user_columns.raise_no_weight(weights, metric.name, row)
    sample = of_users if averaged is None else statistics.within_groups(averaged, of_users)
    if of_group is not None and _has_interval(metric, of_users):
        sample = statistics.of_clusters(of_group, sample)
    limits = metric.traits.least, metric.traits.greatest
    if group.rows.schema[metric.name] == pl.Boolean:
        limits = 0.0, 1.0
    of_sample, reasons = _method_of(sample, metric, method, unit, limits)
    if averaged is not None:
        of_sample, reasons = "t", []
    why = _why_null(metric, of_users, of_sample)
    if averaged is not None and not why and not statistics.differs(sample.values):
        why = [notes.note(trials.ALIKE_IN_GROUPS, lead="no interval")]
    if of_sample not in _OF_ALIKE and _why_null(metric, sample, of_sample):
        reasons = []
    elif of_group is None or len(sample.values) >= sentences.FEW_CLUSTERS:  # else noted below
        reasons += _notes_of_few(sample, of_sample, unit)
    weights_of_notes = None if group.weights is None else of_users.weights
    counted = notes_of_users(of_users.values, weights_of_notes, returning) + group.lacking
    counted += notes_of_groups(group.averaged, averaged)
    if not _has_interval(metric, sample):
        sample = sample._replace(values=column[:0], weights=None)
    elif of_group is not None:
        counted += sentences.notes_of_clusters(of_users, sample)
    runs = None
    if of_runs := training_runs.values_of(group.rows, metric.name):
        kept = [_sample(of_run.to_numpy(), group)[0].values for of_run in of_runs]
        runs = run_variance.error_of(np.stack(kept)[:, :, None], [0], of_users.weights, of_group)
        counted += [notes.note("one_run")] * (runs.numbers == [1])
    return Sampled(sample, of_sample, [*why, *counted, *reasons], limits, runs)


def _with_human(group: _Group, metric: RequestedMetric, values: Values) -> Sampled:
    """Correct the mean by human labels; the notes are of the users who have them."""
    rows, human = group.rows, pl.col(human_values.column_of(metric.name))
    of_human = rows.with_columns(human.alias(metric.name))
    seen = _sampled(group._replace(rows=of_human), metric, "t", values.weights, values.by)
    both = human_labels.Both(_column(rows, metric), _column(of_human, metric))
    units = group.users if group.clusters is None else group.clusters
    labelled = rows[human_values.LABELLED].to_numpy()
    estimates = human_labels.corrected([both], labelled, group.weights, units)
    sample = seen.sample if estimates is None else estimates[0]
    number = rows.filter(human.is_not_null())[values.user].n_unique()
    correction = human_labels.mean_by(both.judge, group.weights) - float(statistics.mean_of(sample))
    said = [sentences.note_of_judge(number, correction, "mean")]
    is_said = {said[0].kind} if estimates is None else {trials.ONE_USER, trials.NO_VALUE}
    said += [notes.of_human(note) for note in seen.notes if note.kind not in is_said]
    return seen._replace(sample=sample, notes=said, human=(number, correction, seen.sample))


#: Methods that need no spread.
_OF_ALIKE = ("wilson", "exact")


def _method_of(
    sample: Sample,
    metric: RequestedMetric,
    method: Method,
    unit: str,
    limits: tuple[float, float],
) -> tuple[Chosen, list[Note]]:
    """Return the method of an interval, and for "auto" the reason."""
    if method != "auto":
        return method, []
    if not len(sample.values) or not _has_interval(metric, sample):
        return "t", []
    low, high = float(sample.values.min()), float(sample.values.max())
    width = limits[1] - limits[0]
    if low == high and isfinite(width) and metric.per_user and limits[0] <= low <= limits[1]:
        return "exact", [notes.note("auto_exact", value=low)]
    may_be_hits = unit == "user" and low < high and (limits == (0.0, 1.0) or not isfinite(width))
    chosen, reason = statistics.chosen_method(
        sample, unit, may_be_hits=may_be_hits and metric.per_user
    )
    return cast("Chosen", chosen), [reason]


def _notes_of_few(sample: Sample, method: Chosen, unit: str) -> list[Note]:
    """Note that an interval may cover less often than stated."""
    if method in _OF_ALIKE:
        return []
    telling, rest = statistics.telling_users(sample)
    if telling >= statistics.FEW_USERS:
        return []
    number = len(sample.values) if rest else None
    return [notes.note("few_values", unit=unit, telling=telling, number=number)]


def _notes_of_resamples(dropped: float, times: int, confidence: float) -> list[Note]:
    """Note how many resamples do not count."""
    if not dropped > 0:  # NaN: there are none
        return []
    none = dropped > times * keywords.alpha_of(confidence) / 2 or dropped == times
    instead = "Student's t alone" if none else None
    return [notes.note("resamples", instead=instead, dropped=dropped, times=times)]


def _sample(column: Array, group: _Group) -> tuple[Sample, int, Places | None, Places | None]:
    """Keep the users whose value counts; return how many had several rows, clusters and groups."""
    counts, weights, users = ~np.isnan(column), group.weights, group.users
    if weights is not None:
        counts &= weights > 0
        weights = statistics.shares(weights[counts])
    column = column[counts]
    clusters = None if group.clusters is None else group.clusters[counts]
    averaged = None if group.averaged is None else group.averaged[counts]
    if averaged is not None:
        weights = statistics.shares_of_groups(averaged, weights)
    if users is None or not counts.any():
        return statistics.Sample(column, weights), 0, clusters, averaged
    (merged,), weights, (clusters, averaged) = statistics.of_users(
        users[counts], [column], weights, clusters, averaged
    )
    returning = len(column) - len(merged)
    column = statistics.rounded(merged) if returning else column
    return statistics.Sample(column, weights), returning, clusters, averaged


def _describe(rows: pl.DataFrame, values: Values, by: Sequence[str]) -> pl.DataFrame:
    """Describe each metric in each group, except for its interval."""
    rows = rows.with_columns(averages.shares_of(values, by))
    tables: list[pl.DataFrame] = []
    missed = pl.lit(None, pl.Int64).alias("num_missed")
    if user_columns.MISSED in rows.columns:
        missed = user_columns.number_missed()
    for place, metric in enumerate(values.requested):
        weight = averages.weight_with_shares(values, metric.name)
        spread = human_values.column_of(metric.name) if values.has_human else metric.name
        columns = [*_numbers(metric, values.user, weight, spread), pl.lit(place).alias(_ORDER)]
        columns += [missed, *_of_runs(rows, metric, values)]
        tables.append(rows.group_by(by).agg(columns) if by else rows.select(columns))
    if not tables:
        return pl.DataFrame(schema=result_schema("summarize", values, _SUMMARY))
    return pl.concat(tables).sort(*by, _ORDER)


def _votes(summary: pl.DataFrame, by: Sequence[str]) -> pl.DataFrame:
    """Describe the means of groups, each of which counts equally."""
    mean = pl.col("mean")
    return summary.group_by(*by, _ORDER).agg(
        mean.count().cast(pl.Int64).alias("groups"),
        mean.mean().alias("groups_mean"),
        mean.std().alias("groups_std"),
    )


def _numbers(metric: RequestedMetric, user: str, weight: str | None, spread: str) -> list[pl.Expr]:
    value = pl.col(metric.name).cast(pl.Float64)
    users = value.count().cast(pl.Int64)
    over_users = pl.Expr.mean if weight is None else group_means.by_weight(weight)
    if metric.per_user:
        mean = over_users(value)
    else:
        mean = metric.over_users(value, over_users).cast(pl.Float64)
    seen = pl.col(spread).cast(pl.Float64)
    return [
        pl.lit(metric.name).alias("metric"),
        users.alias("users"),
        (pl.col(user).count() - users).alias("num_left_out"),
        mean.alias("mean"),
        (seen.std() if weight is None else _deviation(seen, weight)).alias("std"),
        seen.min().alias("min"),
        seen.quantile(0.1, "linear").alias("p10"),
        seen.median().alias("median"),
        seen.max().alias("max"),
    ]


def _of_runs(rows: pl.DataFrame, metric: RequestedMetric, values: Values) -> list[pl.Expr]:
    """Count the training runs, and take the standard deviation of their means."""
    if values.settings.over is None:
        return []
    mean = pl.Expr.mean if values.weights is None else group_means.by_weight(user_columns.WEIGHT)
    means = [mean(run) for run in training_runs.columns_of(rows, metric.name)]
    of_runs = pl.concat_list([pl.lit(None, pl.Float64), *means]).list.drop_nulls()
    return [of_runs.list.len().cast(pl.Int64).alias("runs"), of_runs.list.std().alias("runs_std")]


def _column(group: pl.DataFrame, metric: RequestedMetric) -> Array:
    """Return the numbers to average: values of users, or their logarithms for a geometric mean."""
    if metric.over_users.epsilon is not None:
        return in_logarithms(group, [metric])[metric.name].to_numpy()
    return statistics.rounded(group[metric.name].cast(pl.Float64).to_numpy())


def _has_interval(metric: RequestedMetric, sample: Sample) -> bool:
    geometric = metric.over_users.epsilon is not None
    return metric.per_user or (geometric and -inf not in sample.values)


def _deviation(value: pl.Expr, weight: str) -> pl.Expr:
    """s² = n/(n − 1) · Σ w(x − x̄)² / Σ w; null for one user."""
    number = (value.is_not_null() & (pl.col(weight) > 0)).sum().cast(pl.Float64)
    mean_of = group_means.by_weight(weight)
    variance = mean_of((value - mean_of(value)) ** 2) * number / (number - 1)
    return pl.when(number > 1).then(variance.sqrt())


def _why_null(metric: RequestedMetric, sample: Sample, method: Chosen) -> list[Note]:
    """Note why a number is null."""
    values = sample.values
    if len(values) < 2:
        return [notes.note(trials.ONE_USER if len(values) else trials.NO_VALUE)]
    if not _has_interval(metric, sample):
        kind = "no_mean" if metric.over_users.epsilon is None else "no_logarithm"
        return [notes.note(kind, lead="no interval")]
    same = method not in _OF_ALIKE and not values.min() < values.max()
    return [notes.note("same_value")] if same else []


# ------------------------------------------------------------------ shared with compare


def places_of_users(users: pl.Series) -> Places:
    """Number users, each by one number in all of their rows."""
    place = "__rankframe_place"
    numbers = users.unique(maintain_order=True).to_frame().with_row_index(place)
    rows = users.to_frame().join(
        numbers, on=users.name, how="left", nulls_equal=True, maintain_order="left"
    )
    return np.asarray(rows[place].to_numpy(), np.int64)


def notes_of_users(values: Array, weights: Array | None, returning: int) -> list[Note]:
    """Note how many users make a weighted mean, and how many rows a row of totals has merged."""
    said: list[Note] = []
    if weights is not None and len(values):
        said.append(notes.note("effective_users", number=statistics.effective_size(weights)))
    if returning:
        said.append(notes.note("several_groups", number=len(values)))
    return said


def notes_of_groups(groups: Places | None, counted: Places | None) -> list[Note]:
    """Note how many groups of a mean over groups have no user who counts."""
    if groups is None or counted is None or not len(counted):
        return []
    whole, left = len(np.unique(groups)), len(np.unique(counted))
    return [notes.note("groups_left_out", number=whole - left, of=whole)] * (left < whole)


def notes_of_recall(values: Values, metric: RequestedMetric) -> list[Note]:
    """Note that a share of all relevant items is of those that the lists of the table have."""
    return [notes.note("recall_of_lists")] * values.is_of_listed(metric)


# ------------------------------------------------------------------ ranges of metrics


class Range(NamedTuple):
    """The ends of the interval of a metric, and a note that they cut it."""

    least: float
    greatest: float
    note: Note


def ranges_of(requested: Sequence[RequestedMetric]) -> dict[str, Range]:
    """Return the range of each metric; a sum over users has none."""
    ranges: dict[str, Range] = {}
    for metric in requested:
        traits = metric.traits
        if metric.over_users.aggregate != "sum":
            least, greatest = float(traits.least), float(traits.greatest)
            said = notes.note("cut", least=least, greatest=greatest)
            ranges[metric.name] = Range(least, greatest, said)
    return ranges


def cut_at(ranges: Mapping[str, Range]) -> list[pl.Expr]:
    """Cut intervals at the ends of their metric's range, and note this."""
    metric = pl.col("metric")

    def of_metric(
        values: dict[str, Any], default: float | None, dtype: type[pl.DataType]
    ) -> pl.Expr:
        return metric.replace_strict(values, default=default, return_dtype=dtype)

    least = of_metric({name: end.least for name, end in ranges.items()}, -inf, pl.Float64)
    most = of_metric({name: end.greatest for name, end in ranges.items()}, inf, pl.Float64)
    lines = {name: notes.packed([end.note]) for name, end in ranges.items()}
    low, high = pl.col("ci_low"), pl.col("ci_high")
    cut = (low < least - trials.NOTHING) | (high > most + trials.NOTHING)
    said = pl.when(cut).then(of_metric(lines, None, pl.String))
    return [
        low.clip(lower_bound=least),
        high.clip(upper_bound=most),
        notes.noted(said),
    ]


# ------------------------------------------------------------------ geometric means


def in_logarithms(rows: pl.DataFrame, requested: Sequence[RequestedMetric]) -> pl.DataFrame:
    """Take the logarithms of values whose geometric mean is asked for.

    They are rounded to 13 decimals: a value of 14 digits supports no more.
    """
    return rows.with_columns(
        metric.over_users.transform(pl.col(metric.name).cast(pl.Float64)).round(13)
        for metric in requested
        if metric.over_users.epsilon is not None
    )


def from_logarithms(column: str, requested: Sequence[RequestedMetric]) -> pl.Expr:
    """Transform a mean of logarithms back to the scale of its metric."""
    value = pl.col(column)
    for metric in requested:
        if metric.over_users.epsilon is not None:
            value = (
                pl.when(pl.col("metric") == metric.name)
                .then(metric.over_users.inverse(pl.col(column)))
                .otherwise(value)
            )
    return value.alias(column)


# ------------------------------------------------------------------ checks of every verb here


def result_schema(verb: str, values: Values, columns: dict[str, Any]) -> dict[str, Any]:
    """Put the columns of ``by`` before those that the verb makes."""
    types = values.rows.collect_schema()
    for name in values.by:
        if name in columns:
            msg = f"column {name!r}: {verb} adds a column with this name: rename yours"
            raise RankingDataError(msg)
    return {**{name: types[name] for name in values.by}, **columns}


def check_unweighted(verb: str, options: Options) -> None:
    """Check that a verb without a weighted form has no weights."""
    if options.get("weights") is not None:
        msg = f"{verb} does not support weights: leave out {option('weights')}"
        raise ValueError(Problem(msg))


def check_values(values: Values, *, total: bool, least: int) -> None:
    """Check metrics; for a total, that there are groups, and that every metric can be combined."""
    check_numbers(values)
    keywords.check_total(values.by[least - 1 :], total=total)
    if total and values.system_metrics is not None:
        name = values.system_metrics.requested[0].name
        msg = (
            f"metric {name!r}: it is one number for all lists, and here "
            f"{option('total', value=True)} cannot compute it: use another call with fewer columns "
            f"in {option('by')}"
        )
        raise ValueError(Problem(msg))


def check_plain(trial: Trial, values: Values) -> None:
    """Check that a mean of groups or of runs is compared by t, of pairs, and without a margin."""
    settings, names = values.settings, ["test", "margin", "paired"]
    if settings.over is not None:
        of, names = f"{option('over', settings.over)}, several training runs", [*names, "total"]
    elif values.in_groups:
        of = f"{option('average', settings.average)}, means of groups"
    elif values.has_human:
        of, names = option("human"), ["test", "paired"]
    else:
        return
    for name in names:
        if (value := getattr(trial, name)) != getattr(Trial(), name):
            msg = f"{option(name, value=value)} is not supported with {of}: leave it out"
            raise ValueError(Problem(msg))


def check_rows(rows: pl.DataFrame, values: Values, names: Sequence[str] | None = None) -> None:
    """Check sizes, and that each user with a value, or one of ``names``, has a cluster."""
    check_sizes(rows, values)
    if values.cluster is not None:
        user_columns.check_clusters(rows, values.cluster, names or values.names_per_user)


def check_labelled(rows: pl.DataFrame, values: Values, *, pooled: bool) -> None:
    """Check that all users of an observation have human labels, or none."""
    name, unit = values.cluster, user_columns.CLUSTER
    if name is None:
        if not pooled:
            return
        name = unit = values.user
    mixed = rows.group_by(unit).agg(pl.col(human_values.LABELLED).n_unique())
    row = mixed.filter(pl.col(human_values.LABELLED) > 1).select(unit).sort(unit).head(1)
    if not row.is_empty():
        msg = (
            f"human: labels of some lists, and none of others, with {name}={row.item()!r}, which "
            f"is one observation: draw a random sample of whole ones, and label all their lists"
        )
        raise RankingDataError(msg)


def check_sizes(rows: pl.DataFrame, values: Values) -> None:
    """Check that values are small enough to be squared: otherwise the variance is infinite."""
    for metric in values.requested:
        greatest = rows.select(pl.col(metric.name).cast(pl.Float64).abs().max()).item()
        if greatest is not None and greatest > 1e100:
            msg = (
                f"metric {metric.name!r}: a value as large as {greatest:.0e} has no finite "
                "variance: rescale the metric"
            )
            raise RankingDataError(msg)


def check_numbers(values: Values) -> None:
    """Check that every metric is a number for each user."""
    types = values.rows.collect_schema()
    for metric in values.requested:
        dtype = types[metric.name]
        if not (dtype.is_numeric() or isinstance(dtype, pl.Boolean | pl.Null)):
            msg = f"metric {metric.name!r} is {dtype} for each user; statistics need numbers"
            raise ValueError(msg)


def read_resampling(resamples: object, seed: object) -> Resampling:
    """Read the options of resampling, and check that the packages are installed."""
    times = keywords.whole_number("resamples", resamples)
    if times > _MOST_RESAMPLES:
        msg = f"resamples must not be above {_MOST_RESAMPLES:,}, not {times:,}"
        raise ValueError(msg)
    start = keywords.whole_number("seed", seed, least=0)
    check_packages()
    return Resampling(times, start)


def check_trial(trial: Trial) -> Resampling:
    """Check the options that verbs of several tests have in common."""
    keywords.check_confidence(trial.confidence)
    keywords.check_choice("test", trial.test, get_args(Test))
    keywords.check_choice("correction", trial.correction, (*get_args(Correction), None))
    return read_resampling(trial.resamples, trial.seed)


def check_packages() -> None:
    """Check that the packages of the statistics are installed."""
    if missing := [name for name in ("numpy", "scipy") if find_spec(name) is None]:
        msg = f"statistics need {' and '.join(missing)}: pip install 'rankframe[stats]'"
        raise ImportError(msg)
