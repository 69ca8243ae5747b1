"""Compares systems: ``Values`` in, a row per segment, metric and pair out.

The rows are collected once, and SciPy computes the statistics.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import isinf, isnan, nan
from typing import TYPE_CHECKING, Any, Unpack, cast

import polars as pl

from rankframe import _sizes
from rankframe._comparison import (
    cautions,
    decision,
    gate_power,
    margins,
    notes,
    numerals,
    pair_tests,
    sentences,
    summaries,
    system_pairs,
    trials,
    unpaired,
)
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import np, statistics
from rankframe._comparison.system_pairs import Matrix, Pair, Place, Tested
from rankframe._comparison.trials import Bound, Correction, Margin, Test, Trial
from rankframe._evaluation import averages, ready_values
from rankframe._evaluation.system_metrics import OfPair, SystemMetrics
from rankframe._evaluation.values import Values
from rankframe._inputs import several_users
from rankframe._request import keywords, labels
from rankframe._request.keywords import Count, Options, StatisticsOptions
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question
from rankframe._request.share_names import Distribution
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.errors import Problem, keyword, option

if TYPE_CHECKING:
    from rankframe._comparison.run_variance import RunError
    from rankframe._comparison.statistics import Advance, Array

_COMPARISON = {
    **dict.fromkeys(("difference", "relative"), pl.Float64),
    **dict.fromkeys(("users", "baseline_users", "num_left_out", "num_missed"), pl.Int64),
    "baseline_num_missed": pl.Int64,
    **dict.fromkeys(("mean", "baseline_mean", *trials.RELATIVE[1:]), pl.Float64),
    **dict.fromkeys(("p_value", "effect_size"), pl.Float64),
    **dict.fromkeys(("higher", "equal", "lower"), pl.Int64),
    **dict.fromkeys(("detectable", "p_equivalent"), pl.Float64),
    "note": pl.String,
    **dict.fromkeys(("ci_low", "ci_high", "p_adjusted", "p_not_worse"), pl.Float64),
    "verdict": pl.String,
}
#: The answer, for which a page has room; the others are details.
_ANSWER = (
    *("difference", "relative", "users", "note", "ci_low", "ci_high", "p_adjusted"),
    *("p_not_worse", "verdict"),
)
_MOST_NAMED = 3  # users who lost most, in the note of a gate
CONFIDENCE = 0.95  # of the readings


@adapters.takes_any_frame
def compare(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    human: Truth | None = None,
    by: str | Sequence[str] = (),
    total: bool = False,
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    paired: bool = True,
    over: str | None = None,
    details: bool = False,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Compare systems on the users they share: differences, intervals and tests.

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
        Add the comparison over all segments, such as folds, with null in the segment columns: one
        test of the differences within segments.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        ``"t"`` (paired), ``"randomization"``, ``"max_t"`` (all systems at once) or
        ``"sequential"`` (valid at every look). The notes of ``rf.compare`` describe them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bh"`` (Benjamini
        and Hochberg), or None. ``"max_t"`` corrects by itself, and takes no other.
    confidence
        The probability that a single interval covers the true value.
    margin
        A difference too small to matter, > 0, on the scale of the metric, or a share of the
        baseline's values such as ``"1%"``: one for all metrics, or a mapping such as
        ``{"ndcg@10": 0.01, "mrr": "2%"}``; metrics missing from the mapping have no margin.
    primary
        The metric that decides, such as ``"ndcg@10"``, chosen before the values are seen. Its
        p-value is not corrected for the other metrics.
    resamples
        The number of resamples, for the tests and intervals that draw them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    paired
        False: compare groups of different users, such as weeks or cohorts with ``model="week"``, by
        Welch's t test on all users of each group. Users in both groups enter with their covariance.
    over
        A column of the run, such as ``"seed"``, whose values are training runs of one system for
        the same users: each user's value is the mean over runs, and users and runs are two sources
        of error. With ``test="t"`` only, and without ``margin`` and ``total``.
    details
        True: return all columns, such as both means.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and pair, null where a number is undefined:

        - segments…, the system (in the column of the model), ``metric``, ``baseline``
        - ``difference``: the mean difference over ``users``; all other columns describe these users
        - ``relative``: difference / baseline_mean, 0.02 for +2%
        - ``users``: those with a value of both (with ``paired=False``, those of the system)
        - ``note``: why a number is null, how many users are left out or have no list, and reasons
          for caution, such as few users or an effect too small to matter
        - ``ci_low``, ``ci_high``: the interval of the difference
        - ``p_adjusted``: the p-value of ``test`` after ``correction``
        - ``p_not_worse``: with a margin, one-sided, corrected like p
        - ``verdict``: the first that holds, with α = 1 − ``confidence``, of "worse, by less than
          the margin" (a loss is proved, and one of the margin excluded); "equivalent"
          (``p_equivalent`` < α/2, as in ``gate``); "better" or "worse" (``p_adjusted`` < α), or,
          without a better direction, "higher" or "lower"; "not worse" (``p_not_worse`` < α/2);
          "undecided"

        With ``details``, also, after ``users``:

        - ``baseline_users``: the users of the baseline
        - ``num_left_out``: those with a value in only one of the groups, or in none
        - ``num_missed``, ``baseline_num_missed``: those of ``users`` without a list
        - ``mean``, ``baseline_mean``
        - ``relative_low``, ``relative_high``: Fieller's interval of ``relative``
        - ``p_value``: of ``test``, without ``correction``
        - ``effect_size``: mean / standard deviation of the differences (Cohen's d of paired data)
        - ``higher``, ``equal``, ``lower``: the numbers of users whose value is higher, equal or
          lower
        - ``detectable``: the smallest true difference that these users show with power 0.8 (see
          ``power``), at the level α / m of one of the m comparisons that are corrected together
        - ``p_equivalent``: with a margin, one-sided, corrected like p

        With ``human``, also, after ``users``:

        - ``users_human`` (Int64): those with human labels and a value of both
        - ``correction`` (Float64): the judge's difference minus ``difference``, also in ``note``

        Then ``higher``, ``equal`` and ``lower`` count by the judge's values.

    Raises
    ------
    RankingDataError
        If there is only one cluster, or a user has no cluster or several; or ``human`` breaks a
        rule of ``summarize``.
    ValueError
        If a metric has no value per user and is not a geometric mean; if the ``test`` or ``over``
        does not support an option, such as weights, clusters, a margin or a correction; if
        ``margin`` or ``primary`` names a metric that is not tested; or if a metric has no finite
        range with ``"sequential"``.

    Notes
    -----
    Choose the test before you see the values. The page on comparing shows how well each one holds.

    - ``"t"``: where fewer than 20 users differ, the exact test (all patterns of signs of the
      differences; for hits, McNemar's), and ``note`` says so; not with weights, clusters of several
      users or ``paired=False``. An end of the interval that contradicts an exact p is moved. Where
      all users differ by one amount, p = 2/2ⁿ of n users or clusters, whatever their weights.
    - ``"randomization"``: flips the signs of the differences, exact for few users.
    - ``"sequential"``: p-value and interval are valid at every look, if each look includes all
      earlier users. I. Waudby-Smith and A. Ramdas, *J. Royal Statistical Society B* 86, 2024.
    - ``"max_t"``: flips the signs of all systems of a user together, step-down; its intervals cover
      all differences at once, and an end that contradicts ``p_adjusted`` is moved. P. H. Westfall
      and S. S. Young, *Resampling-Based Multiple Testing*, 1993.

    Without ``baseline``, each system is compared with those before it: in the order of a dict or an
    Enum, else by name, and ``note`` says so. Rows of ``total`` count in ``correction``; in them, a
    user of several segments is one observation. Users missing from a run score 0, unless ``users=``
    says otherwise. With ``primary``, ``p_adjusted`` of other metrics is at least that of the
    primary one for the same pair. Geometric means are compared on logarithms, and ``note`` has the
    ratio. With ``average="pooled"``, each user's denominator is the weight of the value, so the
    difference is that of two ratios of sums, and the error is the jackknife's, near that of the
    delta method; where systems have denominators of their own, ``paired=False`` compares the
    ratios. With ``average`` of a column, ``difference`` is the mean of the differences of its
    groups, with SE² = Σ s²/n / G² over G groups of n users with the variance s² of differences:
    users are drawn, and groups are fixed, so it says nothing about other groups; only ``"t"``
    supports this. A margin of ``"1%"`` tests new − 0.99 · old and new − 1.01 · old, per user, whose
    baseline must be above 0; D. J. Schuirmann, *J. Pharmacokinet. Biopharm.* 15, 1987.

    With ``human``, the difference is estimated from those of the judge and of humans as the mean in
    ``summarize`` is, with its λ also for both means, and tested by t: so ``mean`` and
    ``baseline_mean`` are not those of ``summarize``, which tunes a λ for each. Where fewer than 20
    users with human labels differ, ``margin`` is tested by their share alone.

    With ``over``, SE² is that of the users' differences, plus Σ (s² − r)/m, if it is above 0: s² is
    the variance of the means of a system's m runs, and r what it would be if runs differed by their
    users alone, the mean square of user × run, divided by the users. Degrees of freedom are
    Satterthwaite's, with s² for each term, and at least those of the fewest runs. The larger p and
    the farther ends of this and of the test of users alone count. A user counts if there is a value
    in every run of both systems. A user whose list is missing from a run scores 0 there, as
    everywhere. For a system with a single run, s² − r is pooled from the runs of all systems; if no
    system has several, the test is of users alone. ``note`` says so. Few runs tell little of their
    variance: 2 runs against a single one reject in 11% of simulations without a true difference,
    instead of 5%. R. L. Brennan, *Generalizability Theory*, 2001; F. E. Satterthwaite, *Biometrics
    Bulletin* 2, 1946.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> found = rf.compare(run, "rr", truth=truth, baseline="old")
    >>> found.select("model", "difference", "p_adjusted", "verdict")
    shape: (1, 4)
    ┌───────┬────────────┬────────────┬───────────┐
    │ model ┆ difference ┆ p_adjusted ┆ verdict   │
    │ ---   ┆ ---        ┆ ---        ┆ ---       │
    │ str   ┆ f64        ┆ f64        ┆ str       │
    ╞═══════╪════════════╪════════════╪═══════════╡
    │ new   ┆ 0.194444   ┆ 0.5        ┆ undecided │
    └───────┴────────────┴────────────┴───────────┘
    """
    trial = Trial(
        baseline,
        test,
        correction,
        confidence,
        margin,
        primary,
        resamples,
        seed,
        cluster,
        total,
        paired,
        over,
    )
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="compare")
    question = ask_systems(frame, metrics, truth, by, options, trial, counts=["missed"])
    describe = partial(comparison_of, trial=trial, details=details)
    return summaries.described(frame, question, describe, human=human)


def planned(
    frame: pl.LazyFrame,
    metrics: Sequence[Metric],
    trial: Trial,
    *,
    truth: Truth | None,
    by: Sequence[str],
    human: Truth | None = None,
    **options: Unpack[StatisticsOptions],
) -> pl.LazyFrame:
    """Plan a comparison with all columns, and its notes as they are packed."""
    frame, by, columns = run_dicts.as_frame(frame, by, options, compares="compare")
    question = ask_systems(frame, metrics, truth, by, columns, trial, counts=["missed"])
    return comparison_of(summaries.values_of(question, human), trial, details=True)


def ask_systems(
    frame: Frame,
    metrics: Sequence[Metric],
    truth: Truth | None,
    by: Sequence[str],
    options: Options,
    trial: Trial,
    *,
    per_user: bool = False,
    counts: Sequence[Count] = (),
    takes_average: bool = True,
) -> Question:
    """Ask for the values of systems, whose column comes first in ``by``."""
    takes, cluster, over = takes_average and not per_user, trial.cluster, trial.over
    settings = keywords.read_options(
        options, cluster=cluster, over=over, counts=counts, takes_average=takes
    )
    return ready_values.ask(frame, metrics, truth, by, settings, per_user=per_user)


def comparison_of(values: Values, trial: Trial, *, details: bool) -> pl.LazyFrame:
    """Plan a comparison with the columns that a caller sees."""
    keywords.check_switch("details", details)
    human = values.has_human
    columns = columns_of(values.by, trial, details=details, human=human)
    return rows_of(values, trial).select(columns)


def columns_of(by: Sequence[str], trial: Trial, *, details: bool, human: bool = False) -> list[str]:
    """Name the columns that a caller sees, whatever the data."""
    model, *segments = by
    left_out = trials.OF_MARGIN if trial.margin is None else ()
    shown = [name for name in _COMPARISON if (details or name in _ANSWER) and name not in left_out]
    if human:
        place = shown.index("users") + 1
        shown[place:place] = summaries.HUMAN
    return [*segments, model, "metric", "baseline", *shown]


def rows_of(values: Values, trial: Trial, verb: str = "compare") -> pl.LazyFrame:
    """Plan a comparison with all columns, and the hidden ones of ``decision``."""
    trial = _read_trial(trial, values)
    columns = {**_COMPARISON, **(summaries.HUMAN if values.has_human else {}), **decision.HIDDEN}
    schema = system_pairs.schema_of(verb, values, columns)
    segments = values.by[1:]
    reduce = partial(_comparison_table, values=values, trial=trial)
    comparison = values.rows.map_batches(
        reduce if values.requested else lambda _: pl.DataFrame(schema=schema), schema=schema
    )
    if values.system_metrics is None:
        return comparison
    metrics = values.system_metrics
    of_kinds = [_comparison_of_lists(metrics, kind, trial, schema) for kind in metrics.kinds()]
    tables = [comparison, *of_kinds]
    position = summaries.in_requested_order(metrics.names)
    return pl.concat(tables).sort(*segments, position, maintain_order=True)


def _read_trial(trial: Trial, values: Values) -> Trial:
    """Check the options of a comparison, and read the margin of each metric."""
    test = trial.test
    resampling = summaries.check_trial(trial)
    if values.has_weights and test not in trials.WITH_T:
        msg = f"{option('test', test)} does not support weights: use 't' or 'randomization'"
        raise ValueError(Problem(msg))
    summaries.check_plain(trial, values)
    if values.cluster is not None and test == "sequential":
        msg = (
            f"{option('test', test)} assumes independent users: with {option('cluster')}, use "
            "'t', 'randomization' or 'max_t'"
        )
        raise ValueError(Problem(msg))
    if test == "max_t" and trial.correction != Trial().correction:
        msg = (
            f"{option('correction', trial.correction)}: {option('test', test)} tests all systems "
            f"at once and corrects by itself: leave out {option('correction')}"
        )
        raise ValueError(Problem(msg))
    _check_means(values)
    summaries.check_values(values, total=trial.total, least=2)
    bounds = trial.margins or _read_margins(trial.margin, values, test)  # of a gate, they are read
    _check_primary(trial.primary, values)
    _check_paired(trial, values)
    widths = pair_tests.widths_of(values.requested)
    if test == "sequential" and (endless := [x for x, width in widths.items() if isinf(width)]):
        msg = (
            f"{option('test', test)} needs a metric with a finite range, and "
            f"{endless[0]!r} has none: use {option('test', 't')}"
        )
        raise ValueError(Problem(msg))
    return trial._replace(
        confidence=float(trial.confidence),
        margins=bounds,
        resamples=resampling.times,
        seed=resampling.seed,
        widths=widths,
    )


def _check_paired(trial: Trial, values: Values) -> None:
    """Check that groups of different users are compared by their means."""
    keywords.check_switch("paired", trial.paired)
    if trial.paired:
        return
    if trial.test != "t":
        msg = f"paired=False uses Welch's t test: test={trial.test!r} needs paired values"
        raise ValueError(msg)
    if values.system_metrics is not None:
        name = values.system_metrics.requested[0].name
        msg = f"paired=False: metric {name!r} is one number for all lists: name metrics per user"
        raise ValueError(msg)


def _comparison_of_lists(
    metrics: SystemMetrics, kind: Distribution, trial: Trial, schema: Mapping[str, Any]
) -> pl.LazyFrame:
    """Compare metrics of all lists, without a test."""
    model, *segments = metrics.by
    names = [metric.name for metric in metrics.kinds()[kind]]

    def reduce(lists: pl.DataFrame) -> pl.DataFrame:
        ordered = system_pairs.systems_in(lists, model, trial)
        systems = ordered.systems.to_list()
        groups = lists.partition_by(segments, maintain_order=True) if segments else [lists]
        rows: list[dict[str, Any]] = []
        for group in groups:
            of_segment = group.select(segments).row(0, named=True) if segments else {}
            for system, other in system_pairs.pairs_of_places(systems, ordered.baseline):
                pair = systems[system], systems[other]
                numbers = metrics.of_pair(group, kind, pair)
                keys = {**dict.fromkeys(schema), **of_segment, model: pair[0], "baseline": pair[1]}
                rows += [keys | _row_of_lists(name, numbers) for name in names]
        table = pl.DataFrame(rows, schema=dict(schema))
        table = table.with_columns(_numbers(metrics.by).fill_nan(None), notes.noted(ordered.note))
        return decision.decide(table, trial.alpha, pair_tests.directions_of(metrics.requested))

    return metrics.exposures(kind).map_batches(reduce, schema=dict(schema))


def _row_of_lists(metric: str, numbers: OfPair) -> dict[str, Any]:
    """Describe the numbers of two systems."""
    mean, baseline_mean = numbers.means[metric]
    difference, users, left_out = mean - baseline_mean, numbers.users, numbers.left_out
    why = notes.note("no_test_of_lists" if users else "no_list_in_both")
    said = [why, *_left_out("without_lists", left_out, users, left_out)]
    return {
        "metric": metric,
        **dict.fromkeys(("users", "baseline_users"), users),
        "num_left_out": left_out,
        "num_missed": 0,  # users without one of the two lists are left out
        "baseline_num_missed": 0,
        "mean": mean,
        "baseline_mean": baseline_mean,
        "difference": difference,
        "relative": difference / baseline_mean if baseline_mean > 0 else nan,
        "note": notes.packed(said),
    }


def _numbers(by: Sequence[str]) -> pl.Expr:
    """Select the columns of floats that do not name a group."""
    return pl.selectors.float().exclude(*by, "baseline")


def _in_families(p: Array, metrics: Sequence[str], trial: Trial) -> Array:
    """Adjust the p-values of the primary metric, and those of all others."""
    adjusted = p.copy()
    of_primary = np.array([metric == trial.primary for metric in metrics], dtype=bool)
    for family in (of_primary, ~of_primary):
        adjusted[family] = statistics.corrected(p[family], trial.correction)
    return adjusted


def _apply_gate(table: pl.DataFrame, by: Sequence[str], primary: str | None) -> pl.DataFrame:
    """Raise the adjusted p-values to that of the primary metric for the same pair."""
    if primary is None:
        return table
    decides, adjusted = pl.col("metric") == primary, pl.col("p_adjusted")
    gate = adjusted.filter(decides).first().over([*by, "baseline"])
    closed = ~decides & adjusted.is_not_null() & gate.is_null()
    kind = pl.when(decides).then(pl.lit("primary")).when(closed).then(pl.lit("no_primary"))
    kind = kind.when(adjusted.is_not_null()).then(pl.lit("secondary"))
    kinds = table.select(kind.alias("kind"))["kind"]
    said = [None if kind is None else notes.note(kind, primary=primary) for kind in kinds]
    return notes.with_note(table, said).with_columns(
        pl.when(~closed & adjusted.is_not_null())
        .then(pl.max_horizontal(adjusted, pl.when(~decides).then(gate)))
        .alias("p_adjusted"),
    )


def _check_means(values: Values) -> None:
    """Check that each metric is a value per user, or a geometric mean of one."""
    for metric in values.requested:
        if not metric.per_user and metric.over_users.epsilon is None:
            raise ValueError(labels.not_per_user(metric))


def per_metric(option: str, value: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the option of each metric: one value for all, or a mapping that names them."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        return dict.fromkeys(names, value)
    values = dict(cast("Mapping[str, Any]", value))
    check_names(option, values, names)
    return values


def check_names(
    option: str, names: Iterable[str], metrics: Sequence[str], columns: Sequence[str] = ()
) -> None:
    """Check that an option names metrics of the call, or columns that it may name too."""
    for name in names:
        if name not in metrics and name not in columns:
            from difflib import get_close_matches

            near = get_close_matches(str(name), [*metrics, *columns], n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            has = ", ".join(map(repr, metrics))
            msg = f"{keyword(option)} names {name!r}; the metrics are {has}{hint}"
            raise ValueError(Problem(msg))


def _read_margins(margin: Margin | None, values: Values, test: Test) -> dict[str, Bound]:
    if margin is None:
        return {}
    if test != "t":
        msg = (
            f"margin bounds a difference of means, and {option('test', test)} supports none: "
            "use 't'"
        )
        raise ValueError(Problem(msg))
    sizes = per_metric("margin", margin, [metric.name for metric in values.all_requested])
    return margins.read_margins(sizes, values.all_requested)


def _check_primary(primary: str | None, values: Values) -> None:
    """Check that the primary metric is compared and tested."""
    if primary is None:
        return
    if not isinstance(cast("object", primary), str):
        kind = type(primary).__name__
        msg = f"primary must be the name of a metric, such as 'ndcg@10', not a value of type {kind}"
        raise TypeError(msg)
    check_names("primary", [primary], [metric.name for metric in values.all_requested])
    if primary not in values.names_per_user:
        msg = f"primary: metric {primary!r} is one number for all lists, which has no test"
        raise ValueError(msg)


def _comparison_table(rows: pl.DataFrame, *, values: Values, trial: Trial) -> pl.DataFrame:
    joint = trial.test == "max_t"
    paired, matrices = system_pairs.open_matrices(rows, values, trial)
    systems = system_pairs.pairs_of_places(paired.systems.to_list(), paired.baseline)
    number = len(values.requested) * max(1, len(paired.segments))
    per_matrix = 2 if joint else len(systems)
    test = _test_jointly if joint else pair_tests.test_in_batches
    places: list[Place] = []
    numbers: list[dict[str, Any]] = []
    simulated = iter(range(_sizes.ROWS_SIMULATED))
    with statistics.progress(trial.resamples * number * per_matrix) as advance:
        if not trial.paired:
            for place, row in unpaired.rows_of(matrices, systems, values, trial, paired.systems):
                places.append(place)
                numbers.append(row)
        for pairs, tested in test(matrices, systems, trial, advance):
            places += [pair.place for pair in pairs]
            numbers += _numbers_of(pairs, tested, trial, paired.systems, values, simulated)
    hidden: dict[str, Any] = {trials.NUMBER: pl.Float64}
    directions = pair_tests.directions_of(values.requested)
    of_human = summaries.HUMAN if values.has_human else {}
    schema = {**_COMPARISON, **of_human, **decision.HIDDEN, **hidden}
    table = pl.DataFrame(numbers, schema=schema)
    metrics = [place.metric for place in places]

    def adjusted(name: str) -> pl.Series:
        return pl.Series(name, _in_families(table[name].to_numpy(), metrics, trial))

    table = table.with_columns(
        adjusted("p_equivalent"),
        adjusted("p_not_worse"),
        table["p_adjusted"] if joint else adjusted("p_adjusted"),
    )
    table = (
        table.select(*paired.pair_keys(values.by[0], places), *schema)
        .with_columns(_numbers(values.by).fill_nan(None))
        .pipe(_apply_gate, values.by, trial.primary)
        .pipe(decision.decide, trial.alpha, directions, paired=trial.paired)
        .pipe(pair_tests.of_families, trial)
        .pipe(_with_ratios, values.requested, trial.confidence)
    )
    table = table.with_columns(summaries.cut_at(_widths_of(values.requested)))
    return table.with_columns(notes.noted(paired.order)).drop(hidden)


def _widths_of(requested: Sequence[RequestedMetric]) -> dict[str, summaries.Range]:
    """Return between which values the difference of two means is."""
    widths = {metric.name: float(metric.traits.width) for metric in requested}
    return {
        name: summaries.Range(-width, width, notes.note("cut_difference", width=width))
        for name, width in widths.items()
    }


def _test_jointly(
    matrices: Iterator[Matrix],
    systems: Sequence[tuple[int, int]],
    trial: Trial,
    advance: Advance,
) -> Iterator[tuple[list[Pair], Tested]]:
    """Test all systems of a metric at once."""
    for matrix in matrices:
        pairs = list(system_pairs.pairs_of(matrix, systems))
        yield pairs, pair_tests.test_jointly(pairs, trial, advance)


def _numbers_of(
    pairs: Sequence[Pair],
    tested: Tested,
    trial: Trial,
    systems: pl.Series,
    values: Values,
    simulated: Iterator[int],
) -> Iterator[dict[str, Any]]:
    """Describe each pair, with the numbers of its tests."""
    metrics = {metric.name: metric for metric in values.requested}
    of_recall = {name: summaries.notes_of_recall(values, m) for name, m in metrics.items()}
    bounded = margins.test_margins(pairs, tested, trial, values.requested)
    for place, (pair, within) in enumerate(zip(pairs, bounded, strict=True)):
        numbers, of_mean = pair_tests.numbers(pair), pair_tests.estimate(pair)
        has_power = trial.test in trials.WITH_T
        ends = float(tested.outcome.low[place]), float(tested.outcome.high[place])
        shares, doubt = pair_tests.relative(pair, trial, ends, tested.reach)
        if metrics[pair.metric].over_users.epsilon is not None:
            doubt = None  # a ratio has no relative difference
        names = systems[pair.system], systems[pair.baseline]
        missed = pair.missed or (0, 0)
        said = [
            _note_of_judge(pair),
            *tested.notes[place],
            *notes_of_users(pair, weighted=averages.weight_of(values, pair.metric) is not None),
            *sentences.notes_of_lists(missed, len(pair.difference), names, least=0),
            _note_of_runs(pair.runs, names),
            None if trial.undecided else margins.note_of_evidence(within),  # a gate says why
            doubt,
        ]
        if pair.metric in trial.margins:
            said.append(margins.note_of_unserved(pair))
        said += of_recall[pair.metric]
        said += cautions.cautions_of(pair.sure, numbers, trial, metrics[pair.metric])
        yield {
            **numbers,
            **shares,
            "ci_low": ends[0],
            "ci_high": ends[1],
            "p_value": tested.outcome.p[place],
            "p_adjusted": tested.adjusted[place],
            "detectable": of_mean.detectable(trial.confidence) if has_power else nan,
            **within,
            "note": notes.packed(said),
            decision.LOST: _note_of_losses(pair.sure, metrics[pair.metric])
            if trial.undecided
            else None,
            decision.EQUAL: _passes_of(pair, within, trial, metrics[pair.metric], simulated),
            trials.NUMBER: float(of_mean.freedom) + 1,
        }


def _with_ratios(
    table: pl.DataFrame, requested: Sequence[RequestedMetric], confidence: float
) -> pl.DataFrame:
    """Transform results for logarithms back to the scale of the metric, and note the ratio."""
    names = [metric.name for metric in requested if metric.over_users.epsilon is not None]
    if not names:
        return table
    of_logarithms = pl.col("metric").is_in(names)
    ends = ("difference", "ci_low", "ci_high")
    changes = [pl.col("baseline_mean").exp() * (pl.col(name).exp() - 1) for name in ends]
    ratios = table.select(of_logarithms, *(pl.col(name).exp() for name in ends))
    said = [
        None
        if ratio is None or not geometric
        else notes.note("ratio", ratio=ratio, sure=100 * confidence, low=low, high=high)
        for geometric, ratio, low, high in ratios.iter_rows()
    ]
    return notes.with_note(table, said, first=True).with_columns(
        *(
            pl.when(~of_logarithms).then(name).alias(name)
            for name in ("detectable", *trials.RELATIVE)
        ),
        *(summaries.from_logarithms(name, requested) for name in ("mean", "baseline_mean")),
        *(
            pl.when(of_logarithms).then(change).otherwise(name).alias(name)
            for name, change in zip(ends, changes, strict=True)
        ),
    )


def _passes_of(
    pair: Pair,
    within: Mapping[str, Any],
    trial: Trial,
    metric: RequestedMetric,
    simulated: Iterator[int],
) -> str | None:
    """Note of a system that a gate leaves undecided how often an equal one passes, if counted."""
    beside = [within.get(name, nan) for name in (decision.P_BEYOND, decision.P_WITHIN)]
    decides = [p for p in beside if not isnan(p)]
    if trial.undecided != "fail" or pair.human is not None or not decides:
        return None
    if not trial.margins[pair.metric].size:  # of a primary metric, which must be better
        return None
    if decision.shows(min(decides), trial.alpha / 2) or next(simulated, None) is None:
        return None
    return notes.packed([gate_power.note_of(pair, trial, metric.traits)])


def notes_of_users(pair: Pair, *, weighted: bool) -> list[Note]:
    """Note how many users the numbers of a pair describe."""
    weights = pair.weights if weighted else None
    said = summaries.notes_of_users(pair.difference, weights, pair.returning)
    if pair.clusters is not None:
        of_users = statistics.Sample(pair.difference, pair.weights)
        said += sentences.notes_of_clusters(of_users, pair.sample)
    said += summaries.notes_of_groups(pair.groups, pair.averaged)
    counted = len(pair.difference), pair.left_out
    kind = "left_out_of_some" if pair.joint else "left_out"
    said += _left_out(kind, pair.left_out - pair.valueless, *counted)
    return said + _left_out("left_out_of_all", pair.valueless, *counted)


def _note_of_judge(pair: Pair) -> Note | None:
    """Note how far the judge's difference is from that of human labels."""
    if pair.human is None or pair.undefined == trials.NO_VALUE:
        return None
    number, correction = (pair.human.numbers[name] for name in summaries.HUMAN)
    return sentences.note_of_judge(number, correction, "difference")


def _note_of_runs(runs: RunError | None, systems: Sequence[object]) -> Note | None:
    """Note how many runs are compared, and whether the variance of a single one is known."""
    if runs is None or (1 in runs.numbers and not runs.is_pooled):
        return None if runs is None else notes.note("one_run")
    of = dict(zip(("system", "baseline"), map(sentences.name_in_note, systems), strict=True))
    kind = "pooled_runs" if runs.is_pooled else "runs"
    return notes.note(kind, number=runs.numbers[0], others=runs.numbers[1], **of)


def _note_of_losses(pair: Pair, metric: RequestedMetric) -> str | None:
    """Name the users who lost most, for a gate that fails."""
    names = pair.names.filter(pl.Series(pair.counts))
    if len(names) != len(pair.difference) or metric.over_users.epsilon is not None:
        return None  # users of several segments or runs became one, or values their logarithms
    gain = system_pairs.gains(pair, pair.weights, metric)
    users = pl.DataFrame({"gain": gain, "name": names, "change": pair.difference})
    lost = users.filter(pl.col("gain") < 0).sort("gain", "name").head(_MOST_NAMED)
    said = [
        f"{sentences.name_in_note(several_users.text_of(name, names.name))} "
        f"({numerals.signed(change)})"
        for _, name, change in lost.iter_rows()
    ]
    return notes.packed([notes.note("lost_most", names=", ".join(said)) if said else None])


def _left_out(kind: str, number: int, users: int, left_out: int) -> list[Note]:
    """Note how many users are left out."""
    return [notes.note(kind, number=number, of=users + left_out)] if number and users else []
