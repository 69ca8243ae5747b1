"""Analyzes many systems at once: ``Values`` in, variances, best systems, ranks, letters out.

The users are blocks: every system has a value for each user.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from string import ascii_letters
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, Unpack, get_args

import polars as pl

from rankframe._comparison import comparison, sentences, summaries, system_pairs
from rankframe._comparison.trials import Trial
from rankframe._evaluation import evaluation
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.keywords import Options, StatisticsOptions
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Lead
    from rankframe._comparison.system_pairs import Matrix

BestMethod: TypeAlias = Literal["pairs", "bootstrap", "mcb"]

_Columns: TypeAlias = Mapping[str, Sequence[Any]]
#: A function that describes a metric's matrix; one of its columns may be the indices of systems.
_Describe: TypeAlias = "Callable[[Matrix], _Columns]"

_SYSTEM = "__rankframe_system"
_SOURCES = ["system", "user", "residual"]
_PAIR = ("mean", "baseline_mean", "p_adjusted")
_VARIANCE = {
    "source": pl.String,
    "users": pl.Int64,
    "sum_of_squares": pl.Float64,
    "freedom": pl.Int64,
    **dict.fromkeys(("mean_square", "f", "epsilon", "p_value"), pl.Float64),
    "note": pl.String,
}
_BEST_NUMBERS = ("mean", "difference", "ci_low", "ci_high", "p_value")
_BEST = {
    "users": pl.Int64,
    **dict.fromkeys(_BEST_NUMBERS, pl.Float64),
    "may_be_best": pl.Boolean,
    "note": pl.String,
}
_RANKS = {
    "users": pl.Int64,
    **dict.fromkeys(("mean_rank", "critical_difference"), pl.Float64),
    "note": pl.String,
}


@adapters.takes_any_frame
def anova(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Two-way analysis of variance: value = mean + system effect + user effect + residual.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        Three rows per segment and metric, whose ``source`` is "system", "user" or "residual":
        segments…, ``metric``, ``source``, ``users`` (for whom every system has a value; the others
        are left out), ``sum_of_squares``, ``freedom`` (degrees of freedom), ``mean_square`` (their
        ratio), ``f`` (mean square / residual mean square), ``epsilon`` (of systems), ``p_value``
        and ``note``, which explains why a number is null.

    Notes
    -----
    There is one value per system and user (no replication), so the interaction of the two is part
    of the residual. T. Sakai, *Laboratory Experiments in Information Retrieval*, Springer, 2018. To
    find out which systems differ, call ``compare(test="max_t")``.

    The p-value of systems is that of F with ε times both degrees of freedom, where ε is Greenhouse
    and Geisser's: 1 if all pairs of systems vary alike, less if not, as for near copies beside
    another system. S. W. Greenhouse and S. Geisser, *Psychometrika* 24, 1959.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> table = rf.stats.anova(run, "rr", truth=truth)
    >>> table.select("source", pl.col("sum_of_squares").round(4), "freedom", pl.col("f").round(4))
    shape: (3, 4)
    ┌──────────┬────────────────┬─────────┬────────┐
    │ source   ┆ sum_of_squares ┆ freedom ┆ f      │
    │ ---      ┆ ---            ┆ ---     ┆ ---    │
    │ str      ┆ f64            ┆ i64     ┆ f64    │
    ╞══════════╪════════════════╪═════════╪════════╡
    │ system   ┆ 0.0567         ┆ 1       ┆ 1.5806 │
    │ user     ┆ 0.2106         ┆ 2       ┆ 2.9355 │
    │ residual ┆ 0.0718         ┆ 2       ┆ null   │
    └──────────┴────────────────┴─────────┴────────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="anova")
    question = _ask("anova", frame, metrics, truth, by, options)
    describe = partial(_plan_of, "anova", describe=_variance, columns=_VARIANCE)
    return summaries.described(frame, question, describe)


@adapters.takes_any_frame
def best_systems(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    method: BestMethod = "pairs",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Find the systems that may be the best, by each mean − the best of the other means.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, whose columns of numbers are the metrics; null is undefined.
    *metrics
        Labels such as ``"ndcg@10"`` or ``"ndcg@5,10"`` (two metrics), expressions such as
        ``rf.metrics.ndcg_at(10)``, or any aliased expression on the vocabulary and your columns.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    by
        Columns of segments, such as country, fold or day.
    method
        ``"pairs"``: paired t tests against each other system, with Bonferroni's correction for
        their number; ``"bootstrap"``: users are resampled, and each system is compared with the
        greatest lead that the others have by chance; ``"mcb"``: Hsu's multiple comparisons with the
        best, with one residual variance for all systems, which near copies make too small for other
        systems: ``note`` reports this.
    confidence
        The probability that ``may_be_best`` is true for the best system, and that all intervals of
        a metric cover.
    resamples
        Number of resamples: bootstrap samples, permutations or patterns of signs.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and system, best mean first: the system (in the column of
        the model), segments…, ``metric``, ``users`` (for whom every system has a value; the others
        are left out), ``mean``, ``difference`` = mean − the best mean of the other systems, its
        interval ``ci_low`` to ``ci_high`` (constrained: it contains 0 or ends at 0),
        ``p_value`` of the hypothesis that no system is better, ``may_be_best`` (False if another
        system is better, with this confidence) and ``note``, which explains why a number is null.

    Raises
    ------
    ValueError
        If a metric has no better direction, or ``cluster`` is given with another method than
        ``"pairs"``.

    Notes
    -----
    The best is the lowest where lower is better, and the highest for an expression of your own. All
    metrics share the resamples.

    J. C. Hsu, *Multiple Comparisons*, 1996; D. G. Edwards and J. C. Hsu, *JASA* 78, 1983, for the
    intervals. For ``"mcb"``, p-values are those of Dunnett's one-sided test against the system as a
    control. ``"pairs"`` leaves out pairs whose users all differ alike. If ``ci_low`` is 0, only
    this system may be the best.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [9, 5, 8, 1, 1, 2]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> best = rf.stats.best_systems(run, "rr", truth=truth)
    >>> best.select("model", pl.col("difference", "ci_low", "ci_high").round(4), "may_be_best")
    shape: (2, 5)
    ┌───────┬────────────┬────────┬─────────┬─────────────┐
    │ model ┆ difference ┆ ci_low ┆ ci_high ┆ may_be_best │
    │ ---   ┆ ---        ┆ ---    ┆ ---     ┆ ---         │
    │ str   ┆ f64        ┆ f64    ┆ f64     ┆ bool        │
    ╞═══════╪════════════╪════════╪═════════╪═════════════╡
    │ new   ┆ 0.688      ┆ 0.0    ┆ 1.151   ┆ true        │
    │ old   ┆ -0.688     ┆ -1.151 ┆ 0.0     ┆ false       │
    └───────┴────────────┴────────┴─────────┴─────────────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="best_systems")
    keywords.check_choice("method", method, get_args(BestMethod))
    keywords.check_confidence(confidence)
    resampling = summaries.read_resampling(resamples, seed)
    if cluster is not None and method != "pairs":
        msg = f"method={method!r} takes users for independent: with cluster=, take 'pairs'"
        raise ValueError(msg)
    question = _ask("best_systems", frame, metrics, truth, by, options, cluster)
    lowest = _lowest_is_best(question.requested)

    def describe(matrix: Matrix) -> _Columns:
        from rankframe._comparison import statistics, system_statistics

        sign = -1.0 if lowest[matrix.metric] else 1.0
        values = sign * matrix.values
        note = None
        if method == "pairs":
            lead, note = _lead_by_pairs(matrix, sign, confidence)
        elif method == "mcb":
            lead = system_statistics.lead(values, confidence)
            note = system_statistics.note_of_variances(values, "method='pairs'")
        else:
            with statistics.progress(resampling.times) as advance:
                lead = system_statistics.lead_by_bootstrap(values, confidence, resampling, advance)
        return _leads(matrix.values, sign, lead, note)

    plan = partial(_plan_of, "best_systems", describe=describe, columns=_BEST, system=True)
    return summaries.described(frame, question, plan)


def leaders_of(values: Values, confidence: float) -> pl.DataFrame | None:
    """Return which systems may be the best per metric, by ``best_systems``; None with weights."""
    directions = {m.name: m.traits.higher_is_better for m in values.requested}
    rated = [m for m in values.requested if m.per_user and directions[m.name] is not None]
    if values.weights is not None or not rated:
        return None

    def describe(matrix: Matrix) -> _Columns:
        sign = 1.0 if directions[matrix.metric] else -1.0
        return _leads(matrix.values, sign, *_lead_by_pairs(matrix, sign, confidence))

    only = values._replace(requested=rated, of_lists=None)
    plan = _plan_of("table", only, describe, _BEST, system=True)
    return plan.select(*values.by, "metric", "may_be_best").collect()


@adapters.takes_any_frame
def letters(
    comparison: FrameT,
    /,
    *,
    model: str = "model",
    by: str | Sequence[str] = (),
    confidence: float = 0.95,
) -> FrameT:
    """
    Assign letters for a table of means: systems that share a letter do not differ significantly.

    Parameters
    ----------
    comparison
        A frame of ``compare`` with every pair of systems, made without ``baseline=``.
    model
        The column that names the systems.
    by
        Columns of segments, such as country, fold or day.
    confidence
        Two systems differ if their ``p_adjusted`` is below 1 − confidence. A pair with null does
        not differ.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and system, greatest mean first: the system (in the column
        of the model), segments…, ``metric``, ``mean`` (the average over its pairs, which may
        have different users) and ``letters``, such as "ab": each letter is a group of systems of
        which no two differ and to which no other can be added; "a" contains the greatest mean.
        After z come A to Z, and then the same letters with a dot before them.

    Raises
    ------
    RankingDataError
        If the frame lacks a column of ``compare`` or a pair, or has a duplicate pair.

    Notes
    -----
    H.-P. Piepho, *Journal of Computational and Graphical Statistics* 13, 2004: insert and absorb.

    Examples
    --------
    >>> pairs = pl.DataFrame(
    ...     {
    ...         "metric": ["rr"] * 3,
    ...         "model": ["knn", "pop", "pop"],
    ...         "baseline": ["als", "als", "knn"],
    ...         "mean": [0.3, 0.2, 0.2],
    ...         "baseline_mean": [0.4, 0.4, 0.3],
    ...         "p_adjusted": [0.3, 0.01, 0.2],
    ...     }
    ... )
    >>> rf.stats.letters(pairs).rows()
    [('als', 'rr', 0.4, 'a'), ('knn', 'rr', 0.3, 'ab'), ('pop', 'rr', 0.2, 'b')]
    """
    keywords.check_confidence(confidence)
    lazy = adapters.to_lazy(comparison, "comparison")
    types = lazy.collect_schema()
    _check_columns(types, ("metric", "baseline", *_PAIR))
    segments = [name for name in keywords.group_names(by) if name != model]
    needed = (model, *segments, "metric", "baseline", *_PAIR)
    _check_columns(types, needed)
    texts = {"mean": pl.Float64, "letters": pl.String}
    schema: dict[str, Any] = {name: types[name] for name in (model, *segments, "metric")} | texts
    keys = [*segments, "metric"]

    def reduce(pairs: pl.DataFrame) -> pl.DataFrame:
        tables = [
            _of_family(family, model, confidence).join(family.select(keys).head(1), how="cross")
            for family in pairs.partition_by(keys, maintain_order=True)
        ]
        if not tables:
            return pl.DataFrame(schema=schema)
        return pl.concat(tables).select(list(schema)).cast(pl.Schema(schema))

    table = lazy.select(needed).map_batches(reduce, schema=schema)
    return adapters.to_caller_type(table, like=comparison)


def _check_columns(types: pl.Schema, names: Sequence[str]) -> None:
    for name in names:
        if name not in types:
            msg = f"comparison: no column {name!r}; letters takes a frame of compare"
            raise RankingDataError(msg)


def mean_ranks(
    frame: pl.LazyFrame,
    /,
    *metrics: Metric,
    truth: Truth | None,
    by: Sequence[str],
    confidence: float,
    **options: Unpack[StatisticsOptions],
) -> pl.LazyFrame:
    """Rank the systems for each user, best first, and plan the means of their ranks."""
    keywords.check_confidence(confidence)
    question = _ask("critical_difference", frame, metrics, truth, by, options)
    lowest = _lowest_is_best(question.requested)

    def describe(matrix: Matrix) -> _Columns:
        from rankframe._comparison import system_statistics

        sign = -1.0 if lowest[matrix.metric] else 1.0
        users, systems = matrix.values.shape
        ranks, distance, test = system_statistics.mean_ranks(sign * matrix.values, confidence)
        return {
            _SYSTEM: range(systems),
            "users": [users] * systems,
            "mean_rank": ranks.tolist(),
            "critical_difference": [distance] * systems,
            "note": [_reason(matrix.values) or test] * systems,
        }

    values = evaluation.user_values(question)
    return _plan_of("critical_difference", values, describe, _RANKS, system=True)


# ------------------------------------------------------------------ one matrix per metric


def _ask(
    verb: str,
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Truth | None,
    by: Sequence[str],
    options: Options,
    cluster: str | None = None,
) -> Question:
    summaries.check_packages()
    summaries.check_unweighted(verb, options)
    trial = Trial(cluster=cluster)
    return comparison.ask_systems(frame, metrics, truth, by, options, trial, per_user=True)


def _plan_of(
    verb: str,
    values: Values,
    describe: _Describe,
    columns: dict[str, Any],
    *,
    system: bool = False,
) -> pl.LazyFrame:
    """Plan the description of each segment and metric, with one row per system if requested."""
    summaries.check_numbers(values)
    model, *segments = values.by
    types = summaries.result_schema(verb, values, {"metric": pl.String, **columns})
    order = [*(values.by if system else segments), "metric", *columns]
    schema = {name: types[name] for name in order}

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        shared, matrices = system_pairs.open_matrices(rows, values, Trial(), complete=True)
        tables: list[pl.DataFrame] = []
        for matrix in matrices:
            table = pl.DataFrame(describe(matrix))
            table = table.with_columns(shared.keys([matrix] * len(table)))
            if system:
                table = table.with_columns(shared.systems.gather(table[_SYSTEM]).alias(model))
            numbers = table.with_columns(pl.selectors.float().exclude(values.by).fill_nan(None))
            tables.append(numbers.select(list(schema)).cast(pl.Schema(schema)))
        return pl.concat(tables)

    return values.rows.map_batches(reduce, schema=schema)


def _variance(matrix: Matrix) -> _Columns:
    from rankframe._comparison import system_statistics

    variance = system_statistics.two_way(matrix.values)
    names = ("sum_of_squares", "freedom", "mean_square", "f", "epsilon", "p_value")
    columns = {name: numbers.tolist() for name, numbers in zip(names, variance, strict=True)}
    return {
        "source": _SOURCES,
        "users": [len(matrix.values)] * 3,
        **columns,
        "note": [_reason(matrix.values)] * 3,
    }


def _lead_by_pairs(matrix: Matrix, sign: float, confidence: float) -> tuple[Lead, str | None]:
    """Compare all pairs as ``compare`` does, each system as if it were the best."""
    import numpy as np

    from rankframe._comparison import statistics, system_statistics

    systems = matrix.values.shape[1]
    places = system_pairs.pairs_of_places([*range(systems)], None)
    pairs = list(system_pairs.pairs_of(matrix, places))
    varied = [pair for pair in pairs if system_pairs.why_undefined(pair.sample.values) is None]
    if not varied:
        return system_statistics.no_lead(matrix.values), None
    errors = np.full((systems, systems), np.nan)
    for pair in varied:
        error = statistics.standard_error(*pair.sample)
        errors[pair.system, pair.baseline] = errors[pair.baseline, pair.system] = error
    means = np.asarray(sign * matrix.values.mean(axis=0), np.float64)
    freedom = statistics.number_of(varied[0].sample) - 1
    lead = system_statistics.lead_by_pairs(means, errors, freedom, confidence)
    alike = len(pairs) - len(varied)
    notes = [f"{alike} of {len(pairs)} pairs left out: all users differ alike"] if alike else []
    if (pair := varied[0]).clusters is not None:
        notes += sentences.notes_of_clusters(statistics.Sample(pair.difference), pair.sample)
    return lead, "; ".join(notes) or None


def _leads(matrix: Array, sign: float, lead: Lead, note: str | None) -> _Columns:
    """Describe the systems, best mean first; ``sign`` is −1 where the lowest is best."""
    users, systems = matrix.shape
    means = matrix.mean(axis=0) if users else lead.difference
    order = (-sign * means).argsort(kind="stable")
    ends = (lead.low, lead.high) if sign > 0 else (-lead.high, -lead.low)
    columns = (means, sign * lead.difference, *ends, lead.p)
    reason = _reason(matrix)
    best = [None] * systems if reason else lead.may_be_best[order].tolist()
    return {
        _SYSTEM: order.tolist(),
        "users": [users] * systems,
        **{
            name: (column[order] + 0.0).tolist()
            for name, column in zip(_BEST_NUMBERS, columns, strict=True)
        },
        "may_be_best": best,
        "note": [reason or note] * systems,
    }


def _reason(matrix: Array) -> str | None:
    """Return why a number is undefined."""
    from rankframe._comparison import statistics, system_statistics

    if len(matrix) < 2:
        return "one user" if len(matrix) else "no user has a value in every system"
    if system_statistics.residuals(matrix).any():
        return None
    if statistics.differences(matrix.max(axis=1), matrix.min(axis=1)).any():
        return "the systems differ by the same amounts for every user"
    return "no user differs"


def _lowest_is_best(requested: Sequence[RequestedMetric]) -> dict[str, bool]:
    """Return for each metric whether the lowest mean is the best."""
    lowest: dict[str, bool] = {}
    for metric in requested:
        if metric.is_column:
            lowest[metric.name] = not labels.direction_of(metric)
            continue
        entry = None if metric.call is None else metric.call.entry
        if entry is not None and entry.higher_is_better is None:
            msg = f"metric {metric.name!r} has no best system: neither higher nor lower is better"
            raise ValueError(msg)
        lowest[metric.name] = entry is not None and not entry.higher_is_better
    return lowest


# ------------------------------------------------------------------ letters


def _of_family(family: pl.DataFrame, model: str, confidence: float) -> pl.DataFrame:
    """Assign the letters of one metric in one segment."""
    keys = pl.col(model), pl.col("baseline").alias(model)
    means = pl.col("mean"), pl.col("baseline_mean").alias("mean")
    sides = pl.concat(family.select(name, mean) for name, mean in zip(keys, means, strict=True))
    systems = sides.group_by(model).agg(pl.col("mean").mean()).sort(model)
    systems = systems.sort("mean", descending=True, nulls_last=True, maintain_order=True)
    names = systems[model].to_list()
    separated = _separated_pairs(family, model, names, confidence)
    groups = _maximal_groups(separated, len(names))
    texts = [
        "".join(_letter(place) for place, group in enumerate(groups) if system in group)
        for system in range(len(names))
    ]
    return systems.with_columns(letters=pl.Series(texts, dtype=pl.String))


def _separated_pairs(
    family: pl.DataFrame, model: str, names: Sequence[object], confidence: float
) -> list[tuple[int, int]]:
    """Return the pairs of systems that differ, and check that every pair is present once."""
    metric = family["metric"][0]
    places = {name: place for place, name in enumerate(names)}
    seen: dict[tuple[int, int], float | None] = {}
    for system, baseline, p in family.select(model, "baseline", "p_adjusted").iter_rows():
        pair = min(places[system], places[baseline]), max(places[system], places[baseline])
        if pair in seen:
            msg = (
                f"comparison, metric {metric!r}: duplicate pair {system!r}, {baseline!r}: name the "
                "columns of the segments in by="
            )
            raise RankingDataError(msg)
        seen[pair] = p
    for first, system in enumerate(names):
        for second in range(first + 1, len(names)):
            if (first, second) not in seen:
                msg = (
                    f"comparison, metric {metric!r}: no pair {system!r}, {names[second]!r}: call "
                    "compare without baseline=, for every pair"
                )
                raise RankingDataError(msg)
    alpha = keywords.alpha_of(confidence)
    return [pair for pair, p in sorted(seen.items()) if p is not None and p < alpha]


def _maximal_groups(separated: Sequence[tuple[int, int]], systems: int) -> list[frozenset[int]]:
    """Split groups at each pair that differs, and absorb those inside another (Piepho 2004)."""
    groups = [frozenset(range(systems))]
    for pair in separated:
        kept = [group for group in groups if not group.issuperset(pair)]
        parts = [group - {system} for group in groups if group.issuperset(pair) for system in pair]
        for part in sorted({*parts}, key=len, reverse=True):
            if not any(part <= group for group in kept):
                kept.append(part)
        groups = kept
    return sorted(groups, key=sorted)


def _letter(place: int) -> str:
    return "." * (place // len(ascii_letters)) + ascii_letters[place % len(ascii_letters)]
