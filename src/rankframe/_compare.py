"""One row per user → one row per pair of systems: what a difference means, and which users gained.

The rows are collected once, and SciPy computes the statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import inf, isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, cast, get_args

import polars as pl

from rankframe._all_lists import OfLists, Swaps, is_of_targets, swapped
from rankframe._checks import format_row
from rankframe._clusters import CLUSTER, check_clusters, check_one_cluster, notes_of_clusters
from rankframe._evaluate import MISSED, UserValues, user_values
from rankframe._frames import Frame, FrameT, column_names, to_caller_type, to_polars
from rankframe._labels import Metric, RequestedMetric, entry_of, not_per_user
from rankframe._names import in_words
from rankframe._options import (
    INPUTS,
    MODEL,
    Options,
    check_choice,
    check_confidence,
    is_number,
    read_options,
    systems_groups,
    whole_number,
)
from rankframe._runs import as_frame
from rankframe._shares import Kind
from rankframe._summarize import (
    WORTH_A_NOTE,
    asked_resampling,
    check_hits,
    check_no_logarithms,
    check_numbers,
    check_packages,
    check_sizes,
    check_total,
    given_back,
    in_logarithms,
    made_schema,
    notes_of_missed,
    notes_of_users,
    places_of_users,
)
from rankframe._sums import order_free_mean
from rankframe._values import TABLE, ready_values
from rankframe._weights import WEIGHT, raise_no_weight
from rankframe.errors import RankingDataError
from rankframe.metrics.core import (
    attainable_precision_at,
    attainable_recall_at,
    precision_at,
    recall_at,
)
from rankframe.metrics.trec import num_hits, num_relevant

if TYPE_CHECKING:
    from rankframe._statistics import Advance, Array, Bits, Outcome, Places, Resampling, Sample

Test: TypeAlias = Literal[
    "t",
    "wilcoxon",
    "randomization",
    "bootstrap",
    "mcnemar",
    "sequential",
    "tukey",
    "randomized_tukey",
    "friedman",
]
Correction: TypeAlias = Literal["holm", "bonferroni", "bh"]
Margin: TypeAlias = float | Mapping[str, float]

#: Tests of all systems at once, which have their own correction.
JOINT_TESTS = ("tukey", "randomized_tukey", "friedman")

_UNWEIGHTED = ("wilcoxon", "mcnemar", "sequential", *JOINT_TESTS)
_CLUSTERED = ("t", "randomization", "bootstrap")
SIMULTANEOUS = ("tukey", "randomized_tukey")  # their intervals cover all differences at once

#: The first column and the last four are the answer, which narrow prints show: add others between.
_COMPARISON = {
    "difference": pl.Float64,
    **dict.fromkeys(("users", "num_left_out", "num_missed", "baseline_num_missed"), pl.Int64),
    **dict.fromkeys(("mean", "baseline_mean", "p_value", "effect_size"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses"), pl.Int64),
    **dict.fromkeys(("detectable", "p_equivalent", "p_not_worse"), pl.Float64),
    "note": pl.String,
    **dict.fromkeys(("ci_low", "ci_high", "p_adjusted"), pl.Float64),
    "verdict": pl.String,
}
_OF_MARGIN = ("p_equivalent", "p_not_worse")
#: The tests of a mean difference: a margin bounds it, and Student's t approximates their power.
_OF_MEANS = ("t", "randomization", "bootstrap")
#: Tests that take a margin: flipped signs test symmetry about it, not the mean.
_OF_MARGINS = ("t", "bootstrap")
#: Why there is no interval though the differences are known.
NOBODY_DIFFERS = "no user differs"
_NO_PAIR = "no user has a value in both"
ALL_DIFFER_ALIKE = "every user differs by the same amount"
ONE_USER = "one user"
_RESAMPLING = ("randomization", "bootstrap")
_SIGN = "__rankframe_sign"  # of the effect that a test of ranks finds
#: Number of differences tested at a time; they share each resample.
_TESTED_CELLS, _RESAMPLED_CELLS = 2**20, 2**24
_POWER = 0.8  # of the column ``detectable``
#: What changes, and the columns of its change.
_CHANGING = ("hits", "precision", "recall")
_CHANGES = ("hits_change", "precision_change", "recall_change")
#: How the readings of users without a list begin.
NO_LIST = "no list"
_NOTHING = 1e-12  # what a change of 0 may be after rounding
_CHANGED = ("__rankframe_precision", "__rankframe_recall")  # of each user
_BIN = "__rankframe_bin"
#: The users without a list of the system, of the baseline, of both.
_WITHOUT = ("__rankframe_none", "__rankframe_none_before", "__rankframe_neither")
_CONFIDENCE = 0.95  # of the readings
_LEVELS = ("precision", "recall", "attainable_precision", "attainable_recall")
_DIAGNOSIS = {
    **dict.fromkeys(("relevant_low", "relevant_high", "users"), pl.Int64),
    **dict.fromkeys(_CHANGES, pl.Float64),
    "reading": pl.String,
    **dict.fromkeys(_LEVELS, pl.Float64),
}


def compare(
    frame: FrameT | Mapping[str, FrameT],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
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
    **options: Unpack[Options],
) -> FrameT:
    """
    Compare systems on the users they share: differences, intervals and tests.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    *metrics
        Labels or expressions, as in ``per_user``, and geometric means such as ``gmap@10``.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments, and the systems are compared in each: ``by=["model", "country"]``. Of several
        columns, the one called ``model`` identifies the systems, else the one that contains the
        ``baseline``, else the first one. The values of a LazyFrame are not read at the call, so
        without a column ``model``, the first column of ``by`` identifies the systems.
    total
        Add the comparison over all segments, such as folds, with null in the segment columns: one
        test of the differences within segments.
    baseline
        The system that the others are compared with; by default every pair is compared, each system
        with those before it in sorted order (of an Enum, in the order of its categories).
    test
        ``"t"``: paired t; ``"wilcoxon"``: signed ranks; ``"randomization"``: signs of the
        differences flipped, p = (b + 1)/(n + 1) where b of n patterns are at least as extreme as
        the data, exact if there are at most ``resamples`` patterns; ``"bootstrap"``: the t
        statistic of shifted resamples; ``"mcnemar"``: for values that are all 0 or 1, such as hits,
        McNemar's exact test; ``"sequential"``: for experiments that are inspected every day while
        users arrive, a p-value and an interval that are valid at every look (see Notes). For many
        systems at once, on the users shared by all: ``"tukey"``: honest significant differences;
        ``"randomized_tukey"``: each user's values permuted over the systems, and every difference
        compared with the range of the means, exact as above; ``"friedman"``: Friedman's test,
        reported in ``note``, and Nemenyi's comparison. Choose the test before you see the values:
        none is chosen from them.
    correction
        The correction for the number of comparisons in this call: ``"holm"``, ``"bonferroni"``,
        ``"bh"`` (Benjamini and Hochberg), or None; a comparison without a p-value does not count.
        ``"tukey"``, ``"randomized_tukey"`` and ``"friedman"`` have their own correction, over all
        pairs for one metric in one segment. Rows of ``total`` count as comparisons.
    confidence
        The probability that a single interval covers the true difference; for ``"tukey"`` and
        ``"randomized_tukey"``, that all intervals of a metric cover.
    margin
        A difference too small to matter, > 0, on the scale of the metric: one number for all
        metrics, or a mapping such as ``{"ndcg@10": 0.01, "mrr": 0.02}``; metrics missing from the
        mapping have no margin. It bounds a difference of means, so ``test`` must be ``"t"`` or
        ``"bootstrap"``. If more than half of the users change by the same amount, such as 0, and
        fewer than 20 change by other amounts, the margin is not tested, and ``note`` reports this.
    primary
        The metric that decides, such as ``"ndcg@10"``, chosen before the values are seen. Its
        p-value is not corrected for the other metrics. The other metrics count only where the
        primary metric shows a difference: their ``p_adjusted``, corrected without the primary
        metric, is at least that of the primary metric for the same pair (and segment).
    resamples
        Number of sign patterns, permutations or bootstrap resamples; all metrics and systems share
        them.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations. Only for ``"t"``,
        ``"randomization"`` and ``"bootstrap"``.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and pair: segments…, ``metric``, the system (in a column named
        as in ``by``), ``baseline``, ``difference``, ``users`` (for whom both values are defined;
        the other columns describe these users), ``num_left_out`` (users with a value in one of the
        two groups who are not in the other), ``num_missed`` and ``baseline_num_missed`` (how many
        of ``users`` have no list of the system, and of the baseline), ``mean``, ``baseline_mean``,
        ``p_value``, ``effect_size`` (Cohen's d of paired data: mean / standard deviation of the
        differences), ``wins``, ``ties``, ``losses`` (users whose value is higher, equal, lower),
        ``detectable``, with a margin ``p_equivalent`` and ``p_not_worse``, ``note``, the interval
        of the difference ``ci_low`` to ``ci_high`` (BCa for ``"bootstrap"``, Newcombe's for
        ``"mcnemar"``, simultaneous for ``"tukey"`` and ``"randomized_tukey"``, a confidence
        sequence for ``"sequential"``, else Student's), ``p_adjusted`` and ``verdict``. A print that
        is too narrow leaves out the columns in the middle, and shows the answer.

        ``note`` explains why a number is null, names each system that has no list for 5% of the
        users or more, and reports users who are left out, if they are 5% or more: a test of paired
        values cannot use them, so the difference may not be that of the groups' means. For tests of
        all systems at once, these are users who are not in all systems; in a row of ``total``, they
        are left out in each of their segments. With ``weights``, users of weight 0 are left out
        uncounted, means, interval, p-value and effect size are weighted, and ``note`` reports the
        effective number of users. With ``cluster``, ``note`` reports the number of clusters.

        Geometric means are compared on the logarithms ln(x + ε), ``effect_size`` included. ``note``
        reports the ratio (mean + ε) / (baseline_mean + ε) and its interval; ``ci_low`` and
        ``ci_high`` apply the ends of that interval to the baseline: (baseline_mean + ε) · (ratio −
        1).

        ``detectable`` is the smallest true difference that this number of users detects with power
        0.8: a difference of this size is found 8 times in 10, a smaller one less often. It is
        computed for the paired t test at this confidence, without correction (see ``power``), and
        is null for ``"wilcoxon"``, ``"mcnemar"``, ``"sequential"``, tests of all systems at once
        and geometric means. With ``weights`` or ``cluster``, it is computed for the weighted mean
        or the clusters.

        ``verdict`` is the first that holds at α = 1 − ``confidence``: "equivalent", if the
        difference is within ± margin (``p_equivalent`` < α); "higher" or "lower" (``p_adjusted`` <
        α); "not worse", if it is not worse by the margin (``p_not_worse`` < α); "undecided". It is
        null where there is no test. "higher" and "lower" refer to the values; the metric declares
        which of them is worse.

        ``p_equivalent`` and ``p_not_worse`` are one-sided, so they decide like an interval of
        confidence 1 − 2α; they are null for a metric without a margin. ``p_not_worse`` is also null
        for a metric without a better direction, and for an expression of your own. The two are not
        corrected for each other; ``correction`` adjusts each of them over metrics and pairs, and
        with ``primary``, separately over the pairs of that metric and over all others.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), a metric is not a finite number, or with
        ``"mcnemar"`` neither 0 nor 1, there are fewer than two systems or clusters, or a user has
        no cluster or several.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, ``baseline`` is not a
        system or is in two columns of ``by``, a metric such as ``num_users`` is neither a value per
        user nor a geometric mean, ``weights`` or ``cluster`` are combined with ``"wilcoxon"``,
        ``"mcnemar"``, ``"sequential"`` or a test of all systems at once, a geometric mean is
        combined with ``"mcnemar"``, ``margin`` is not a number > 0, names a metric that is not
        compared, or is combined with a geometric mean or a test that takes no margin, or
        ``primary`` is not a tested metric.
    ImportError
        Without SciPy: ``pip install 'rankframe[stats]'``.

    Notes
    -----
    With ``users="truth"``, a user missing from a run scores 0, so a difference may come from
    missing lists. With ``users="both"``, each pair is compared on the users whom both systems
    serve; with ``users="served"``, all pairs on the users whom every system serves. M. D. Smucker,
    J. Allan and B. Carterette, *CIKM* 2007; T. Sakai, *SIGIR* 2006, for the bootstrap; J. Demšar,
    *JMLR* 7, 2006, for Friedman and Nemenyi, here with the variance of tied ranks; R. G. Newcombe,
    *Statistics in Medicine* 17, 1998, pp. 2635–2650, method 10, for hits; B. Carterette, *ACM TOIS*
    30(1), 2012, for the randomized Tukey test; D. J. Schuirmann, *J. Pharmacokinet. Biopharm.* 15,
    1987, for the two one-sided tests of equivalence. Values that agree to 14 significant digits are
    equal. Wilcoxon leaves out users with a difference of 0, as in SciPy. If ranks and means have
    opposite signs, the verdict of a rank test is "undecided".

    With ``primary`` and one pair in one segment, the probability of any false difference, among all
    metrics, is at most α (P. H. Westfall and A. Krishen, *J. Statistical Planning and Inference*
    99, 2001). With more pairs, this holds separately for the primary metric and for the others.

    ``"sequential"`` is a mixture sequential probability ratio test of the mean: under equal means,
    the probability that p < α at any look is at most α. This is exact for normal differences, and
    asymptotic for others. It mixes the t tests of effects δ ~ N(0, ρ²), in standard deviations of
    the differences, ρ = 0.1; so the interval is tightest near 900 users, where it is 1.55 times as
    wide as Student's, and fewer than 27 users have no interval at confidence 0.95. Each look must
    include all users of earlier looks, with unchanged values; new users must arrive in an order
    that does not depend on the values. Then the least p of all looks and the intersection of all
    intervals are valid, too. H. Robbins, *Annals of Mathematical Statistics* 41, 1970; R. Johari,
    L. Pekelis and D. J. Walsh, *KDD* 2017; I. Waudby-Smith et al., *Annals of Statistics* 52, 2024;
    H. Wang and A. Ramdas, *Sequential Analysis* 44, 2025, for the unknown variance.

    With weights, intervals are those of ``summarize`` for the differences, and ``"randomization"``
    flips the signs of weight · difference. In a row of ``total``, a user who is in several segments
    is one observation: the mean of the user's differences, whose weight is their number, or the sum
    of their weights. So the difference equals that of ``evaluate(total=True)`` where both systems
    are defined, and a returning user does not count as several users. If users are in different
    numbers of segments, a test without a weighted form is null.

    With clusters, means, ``users``, ``effect_size``, wins, ties and losses still refer to users.
    The standard error is robust to dependence within G clusters (CR1): SE² = G/(G − 1) · Σ u² / (Σ
    w)², where u is the sum Σ w(d − d̄) of a cluster, and t has G − 1 degrees of freedom; the
    bootstrap draws whole clusters, and ``"randomization"`` flips all differences of a cluster
    together. A. C. Cameron and D. L. Miller, *J. Human Resources* 50, 2015. Simulated with 20
    clusters of 1 to 9 users, correlated by 0.3, 95% intervals cover 94% (t) and 92% (BCa); with
    fewer clusters, or one with most of the users, they are too short.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3] * 2, "item": [7] * 6, "rank": [2, 2, 4, 1, 2, 3]})
    >>> run = run.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [7, 7, 7]})
    >>> rf.compare(run, "rr", truth=truth, baseline="old").select("model", "difference", "p_value")
    shape: (1, 3)
    ┌───────┬────────────┬──────────┐
    │ model ┆ difference ┆ p_value  │
    │ ---   ┆ ---        ┆ ---      │
    │ str   ┆ f64        ┆ f64      │
    ╞═══════╪════════════╪══════════╡
    │ new   ┆ 0.194444   ┆ 0.335589 │
    └───────┴────────────┴──────────┘
    """
    frame, by = as_frame(frame, by)
    groups = groups_by_systems(frame, truth, by, baseline)
    comparison = comparison_of(
        user_values(
            frame,
            metrics,
            truth,
            groups,
            read_options(options, cluster=cluster, count_missed=True),
            per_user=False,
            all_lists=True,
        ),
        total=total,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        margin=margin,
        primary=primary,
        resamples=resamples,
        seed=seed,
    )
    return to_caller_type(
        comparison, like=frame, beside=(truth, *(options.get(name) for name in INPUTS))
    )


def compare_values(
    frame: FrameT,
    /,
    *columns: str,
    by: str | Sequence[str] | None = None,
    user: str = "user",
    weights: str | None = None,
    cluster: str | None = None,
    total: bool = False,
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    margin: Margin | None = None,
    primary: str | None = None,
    resamples: int = 10_000,
    seed: int = 0,
) -> FrameT:
    """
    Compare systems by precomputed values per user, such as RMSE, as ``compare`` does metrics.

    Parameters
    ----------
    frame
        One row per system and user (and segment): any numbers from any source, such as the result
        of ``per_user`` joined with a table of users.
    *columns
        The columns of values, numbers or booleans; null is undefined.
    by
        The column that identifies the systems, by default ``"model"``, and segments, as in
        ``compare``.
    user
        The column of the user.
    weights
        A column of weights ≥ 0: how much each user counts, the same in the rows of all systems.
    cluster
        A column that names the cluster of each user, as in ``compare``: the same in the rows of all
        systems.
    total
        Add the comparison over all segments, as in ``compare``.
    baseline
        The system that the others are compared with; by default every pair is compared.
    test
        The test, as in ``compare``.
    correction
        The correction for the number of comparisons, as in ``compare``.
    confidence
        The probability that a single interval covers the true difference.
    margin
        A difference too small to matter, as in ``compare``.
    primary
        The metric that decides, whose p-value is not corrected for the others, as in ``compare``.
    resamples
        Number of sign patterns, permutations or bootstrap resamples.
    seed
        Seed of the resamples.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The frame of ``compare``; ``metric`` contains the column names. Users with values of both
        systems are paired; a user without a row for one of them is left out, and counts in
        ``num_left_out``. ``num_missed`` and
        ``baseline_num_missed`` are null: values do not show which users have a list.

    Raises
    ------
    RankingDataError
        If a column is missing or not a number, an id is null, a user has several rows of a system,
        a value is NaN or infinite, ``weights`` are null, negative, all 0 or differ between systems,
        a cluster is null or differs between systems, or there are fewer than two systems or
        clusters.
    ValueError
        If a parameter is unknown or out of range, or ``baseline`` is not a system.
    ImportError
        Without SciPy: ``pip install 'rankframe[stats]'``.

    Examples
    --------
    >>> errors = pl.DataFrame({"user": [1, 2, 3] * 2, "rmse": [0.5, 0.7, 0.9, 0.4, 0.7, 0.7]})
    >>> errors = errors.with_columns(model=pl.Series(["old"] * 3 + ["new"] * 3))
    >>> change = rf.compare_values(errors, "rmse", baseline="old")
    >>> change.select("metric", "model", "difference", "p_value")
    shape: (1, 4)
    ┌────────┬───────┬────────────┬──────────┐
    │ metric ┆ model ┆ difference ┆ p_value  │
    │ ---    ┆ ---   ┆ ---        ┆ ---      │
    │ str    ┆ str   ┆ f64        ┆ f64      │
    ╞════════╪═══════╪════════════╪══════════╡
    │ rmse   ┆ new   ┆ -0.1       ┆ 0.225403 │
    └────────┴───────┴────────────┴──────────┘
    """
    groups = _systems_first(by, [(TABLE, frame)], baseline)
    comparison = comparison_of(
        ready_values(frame, columns, groups, user, weights, cluster),
        verb="compare_values",
        total=total,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        margin=margin,
        primary=primary,
        resamples=resamples,
        seed=seed,
    )
    return to_caller_type(comparison, like=frame)


def groups_by_systems(
    frame: Frame, truth: Frame | None, by: str | Sequence[str] | None, baseline: object
) -> list[str]:
    """Read ``by=``, and put the column of the systems first: called model, or with the baseline."""
    tables = [("judged table", frame)] if truth is None else [("run", frame), ("truth", truth)]
    return _systems_first(by, tables, baseline)


def _systems_first(
    by: str | Sequence[str] | None, tables: Sequence[tuple[str, Frame]], baseline: object
) -> list[str]:
    kind, frame = tables[0]
    groups = systems_groups(by, column_names(frame, kind))
    if len(groups) < 2 or groups[0] == MODEL or isinstance(baseline, pl.Expr | pl.Series | None):
        return groups
    opened = [to_polars(table, kind) for kind, table in tables]
    eager = [table for table in opened if isinstance(table, pl.DataFrame)]
    if len(eager) < len(opened):  # ``_systems`` raises once the values are read
        return groups
    has = [name for name in groups if any(_has(table, name, baseline) for table in eager)]
    if len(has) > 1:
        raise _ambiguous(baseline, has)
    return [*has, *(name for name in groups if name not in has)]


def _has(table: pl.DataFrame, name: str, baseline: object) -> bool:
    return name in table.columns and baseline in table[name].unique().to_list()


def _ambiguous(baseline: object, names: Sequence[str]) -> ValueError:
    columns = " and ".join(map(repr, names))
    return ValueError(
        f"baseline {baseline!r} is in the columns {columns} of by=: rename the one that identifies "
        f"the systems to {MODEL!r}"
    )


def comparison_of(
    values: UserValues,
    *,
    baseline: object,
    test: Test,
    correction: Correction | None,
    confidence: float,
    margin: Margin | None,
    primary: str | None,
    resamples: int,
    seed: int,
    total: bool = False,
    known: bool = False,
    verb: str = "compare",
) -> pl.LazyFrame:
    """Plan a comparison of values per user.

    A ``known`` baseline is not the caller's, so that a segment of its name is no ambiguity.
    """
    check_confidence(confidence)
    confidence = float(confidence)
    check_choice("test", test, get_args(Test))
    if values.weights is not None and test in _UNWEIGHTED:
        msg = f"test={test!r} has no weighted form: take 't', 'randomization' or 'bootstrap'"
        raise ValueError(msg)
    if values.cluster is not None and test not in _CLUSTERED:
        msg = (
            f"test={test!r} takes users for independent: with cluster=, take 't', 'randomization' "
            "or 'bootstrap'"
        )
        raise ValueError(msg)
    check_choice("correction", correction, (*get_args(Correction), None))
    resampling = asked_resampling(resamples, seed)
    check_systems(verb, values.by)
    _check_means(values)
    if test == "mcnemar":
        check_no_logarithms(values, "test='mcnemar'")
    check_numbers(values)
    check_total(values, total=total, least=2)
    margins = _read_margins(margin, values, test)
    _check_primary(primary, values, test)
    made = made_schema(verb, values, {"metric": pl.String, "baseline": None, **_COMPARISON})
    model, *segments = values.by
    order = [*segments, "metric", model, "baseline", *_columns(margins)]
    schema = {name: made[model if name == "baseline" else name] for name in order}
    reduce = partial(
        _compared,
        values=values,
        total=total,
        baseline=baseline,
        known=known,
        test=test,
        correction=correction,
        confidence=confidence,
        margins=margins,
        primary=primary,
        resampling=resampling,
    )
    comparison = values.rows.map_batches(
        reduce if values.requested else lambda _: pl.DataFrame(schema=schema), schema=schema
    )
    if values.of_lists is None:
        return comparison
    of_lists = values.of_lists
    tables = [comparison]
    for kind in of_lists.kinds():
        reduce_lists = partial(
            _compared_lists,
            of_lists=of_lists,
            kind=kind,
            baseline=baseline,
            known=known,
            test=test,
            resampling=resampling,
            schema=schema,
        )
        tables.append(of_lists.exposures(kind).map_batches(reduce_lists, schema=schema))
    asked = pl.col("metric").replace_strict(of_lists.asked, list(range(len(of_lists.asked))))
    both = pl.concat(tables).sort(*segments, asked, maintain_order=True)
    if test != "randomization":
        return both
    correct = partial(
        _corrected_together,
        by=values.by,
        correction=correction,
        confidence=confidence,
        primary=primary,
    )
    return both.map_batches(correct, schema=schema)


def _columns(margins: Mapping[str, float]) -> list[str]:
    """Name the columns of a comparison after those of the pair."""
    return [name for name in _COMPARISON if margins or name not in _OF_MARGIN]


def _compared_lists(
    lists: pl.DataFrame,
    *,
    of_lists: OfLists,
    kind: Kind,
    baseline: object,
    known: bool,
    test: Test,
    resampling: Resampling,
    schema: Mapping[str, Any],
) -> pl.DataFrame:
    """Compare metrics of all lists: by swapping whole lists, or without a test."""
    from rankframe._statistics import progress

    model, *segments = of_lists.by
    systems = _systems(lists, model, baseline, [] if known else segments).to_list()
    groups = lists.partition_by(segments, maintain_order=True) if segments else [lists]
    pairs = _pairs_of_places(systems, baseline)
    times = resampling.times if test == "randomization" else 0
    moving = [one.name for one in of_lists.kinds()[kind] if is_of_targets(one)]
    made: list[dict[str, Any]] = []
    with progress(times * len(pairs) * len(groups)) as advance:
        for group in groups:
            of_segment = group.select(segments).row(0, named=True) if segments else {}
            for system, other in pairs:
                pair = systems[system], systems[other]
                found = swapped(group, of_lists, kind, pair, times, resampling.seed, advance)
                made += [
                    {
                        **of_segment,
                        "metric": one.metric,
                        model: pair[0],
                        "baseline": pair[1],
                        "users": one.users,
                        "num_left_out": one.left_out,
                        "num_missed": 0,  # users without one of the two lists are left out
                        "baseline_num_missed": 0,
                        "mean": one.system,
                        "baseline_mean": one.baseline,
                        "difference": _difference(one),
                        "p_value": one.p if times and one.metric not in moving else None,
                        "note": "; ".join(_notes_of(one, moving, tested=times > 0)) or None,
                    }
                    for one in found
                ]
    empty = dict.fromkeys(schema)
    return pl.DataFrame([{**empty, **row} for row in made], schema=dict(schema))


def _notes_of(one: Swaps, moving: Collection[str], *, tested: bool) -> list[str]:
    """Write why a number is null, and how many users are left out."""
    notes: list[str] = []
    if one.metric in moving:
        notes = ["one number of all lists; no test: its target changes with the users"]
    elif not one.users:
        notes = ["no user has a list in both"]
    elif not tested:
        notes = [_UNTESTED]
    return [*notes, *_notes_of_left_out(one.left_out, one.users)]


_UNTESTED = "one number of all lists: test='randomization' swaps the lists of users"


def _difference(one: Swaps) -> float | None:
    if one.system is None or one.baseline is None:
        return None
    return one.system - one.baseline


def _corrected_together(
    table: pl.DataFrame,
    *,
    by: Sequence[str],
    correction: Correction | None,
    confidence: float,
    primary: str | None,
) -> pl.DataFrame:
    """Adjust the p-values of all comparisons of a call."""
    p = table["p_value"].fill_null(nan).to_numpy()
    adjusted = _in_families(p, table["metric"].to_list(), primary, correction)
    table = table.with_columns(pl.Series("p_adjusted", adjusted).fill_nan(None))
    return table.pipe(_gated, by, primary).pipe(_with_verdict, confidence)


def _in_families(
    p: Array, metrics: Sequence[str], primary: str | None, correction: Correction | None
) -> Array:
    """Adjust the p-values of the primary metric, and those of all others."""
    import numpy as np

    from rankframe._statistics import corrected

    adjusted = p.copy()
    of_primary = np.array([metric == primary for metric in metrics], dtype=bool)
    for family in (of_primary, ~of_primary):
        adjusted[family] = corrected(p[family], correction)
    return adjusted


def _gated(table: pl.DataFrame, by: Sequence[str], primary: str | None) -> pl.DataFrame:
    """Raise the adjusted p-values to that of the primary metric for the same pair."""
    if primary is None:
        return table
    decides, adjusted = pl.col("metric") == primary, pl.col("p_adjusted")
    gate = adjusted.filter(decides).first().over([*by, "baseline"])
    closed = ~decides & adjusted.is_not_null() & gate.is_null()
    said = (
        pl.when(decides)
        .then(pl.lit("primary metric: not corrected for the other metrics"))
        .when(closed)
        .then(pl.lit(f"no p_adjusted: the primary metric {primary} has none"))
        .when(adjusted.is_not_null())
        .then(pl.lit(f"secondary metric: p_adjusted is at least that of {primary}"))
    )
    return table.with_columns(
        pl.when(~closed & adjusted.is_not_null())
        .then(pl.max_horizontal(adjusted, pl.when(~decides).then(gate)))
        .alias("p_adjusted"),
        pl.when(said.is_null())
        .then("note")
        .otherwise(pl.concat_str("note", said, separator="; ", ignore_nulls=True))
        .alias("note"),
    )


def diagnose(
    frame: FrameT | Mapping[str, FrameT],
    /,
    k: int,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    baseline: object,
    bins: int = 4,
    **options: Unpack[Options],
) -> FrameT:
    """
    Show which users gained when mean recall@k and mean precision@k change: users in bins of R.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run; or a dict of these by name, as ``from_runs``
        takes it.
    k
        Cut-off.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments, as in ``compare``.
    baseline
        The system that the others are compared with.
    bins
        The greatest number of bins. Users with the same R, their number of relevant items, are in
        the same bin.
    **options
        All other keywords of ``per_user``: ``users``, ``relevant_at``…, and the columns that play
        the roles.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per system, segment and bin of the users with a list of both systems; one row for
        the users without a list of one or both, if there are any; and a last row per system and
        segment for all users, with null bounds; with segments, also one row per system with null
        segments: by…, ``relevant_low`` and ``relevant_high`` (least and greatest R), ``users``, the
        mean ``hits_change``, ``precision_change`` and ``recall_change``, and their ``reading``.
        Then the system's mean ``precision`` and ``recall``, and the best means that the users' R
        allow, ``attainable_precision`` and ``attainable_recall``.

        ``reading`` reports what the paired t tests of both changes show, p < 0.05 after Holm's
        correction for the two: "better overall" or "worse overall", if both rise or fall; "better
        for users with few relevant items, worse for users with many", if recall rises and precision
        falls, and the reverse; "higher recall, no difference seen in precision" and similar
        readings, if one change is shown; "no difference seen"; "unchanged", if every user has as
        many hits as before; "no test: …" with the reason. Each row is tested on its own: about 1
        bin in 20 shows a difference by chance alone. For users without a list it is "no list of
        knn: 192 users"; if these are at least 5%, the reading of all users names them, too: "worse
        overall; 192 of 301 users have no list of knn". It also counts users whom only one of the
        two systems has, as with ``users="run"``: "unchanged; 38 of 40 users of knn are left out".
        Without a common user it is "no user has a value in both".

        The row of all segments compares what ``evaluate`` reports: the mean of each system over its
        own users with relevant items, while all other rows describe users of both systems. If the
        two have different users, as with ``users="run"``, the test is Welch's t, and ``reading``
        names Simpson's reversals of the means, without a test: "better in each country, worse
        overall, each system over its own users: the mix changed".

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or there are fewer than two systems.
    ValueError
        If k or ``bins`` is not an integer ≥ 1, ``baseline`` is not a system, an option is unknown
        or out of range, or ``weights`` are given, since bins have no weighted form.
    ImportError
        Without SciPy: ``pip install 'rankframe[stats]'``.

    Notes
    -----
    For one user recall@k and precision@k rise and fall together, since both count the same hits.
    Their means can move in opposite directions: mean recall weights users with few relevant items
    more, mean precision those with many.

    Examples
    --------
    >>> old = pl.DataFrame({"user": ["A", "A", "B"], "item": [1, 2, 9], "rank": [1, 2, 1]})
    >>> new = pl.DataFrame({"user": ["A", "B"], "item": [101, 101], "rank": [1, 1]})
    >>> run = pl.concat([f.with_columns(model=pl.lit(m)) for f, m in [(old, "old"), (new, "new")]])
    >>> truth = pl.DataFrame({"user": ["A"] * 100 + ["B"] * 20, "item": range(1, 121)})
    >>> change = rf.diagnose(run, 10, truth=truth, baseline="old")
    >>> change.select("relevant_low", "users", "hits_change", "precision_change", "recall_change")
    shape: (3, 5)
    ┌──────────────┬───────┬─────────────┬──────────────────┬───────────────┐
    │ relevant_low ┆ users ┆ hits_change ┆ precision_change ┆ recall_change │
    │ ---          ┆ ---   ┆ ---         ┆ ---              ┆ ---           │
    │ i64          ┆ i64   ┆ f64         ┆ f64              ┆ f64           │
    ╞══════════════╪═══════╪═════════════╪══════════════════╪═══════════════╡
    │ 20           ┆ 1     ┆ 1.0         ┆ 0.1              ┆ 0.05          │
    │ 100          ┆ 1     ┆ -2.0        ┆ -0.2             ┆ -0.02         │
    │ null         ┆ 2     ┆ -0.5        ┆ -0.05            ┆ 0.015         │
    └──────────────┴───────┴─────────────┴──────────────────┴───────────────┘
    >>> change["reading"].last()  # two users show nothing
    'no difference seen'
    """
    frame, by = as_frame(frame, by)
    k, bins = whole_number("k", k), whole_number("bins", bins)
    if baseline is None:
        msg = "diagnose needs a system to compare with: name it in baseline="
        raise ValueError(msg)
    measures = (precision_at, recall_at, attainable_precision_at, attainable_recall_at)
    levels = [measure(k).alias(name) for measure, name in zip(measures, _LEVELS, strict=True)]
    metrics = [num_relevant().alias("total"), num_hits(k).alias("hits"), *levels]
    if options.get("weights") is not None:
        msg = "diagnose describes users in bins, which have no weighted form: leave out weights="
        raise ValueError(msg)
    groups = groups_by_systems(frame, truth, by, baseline)
    settings = read_options(options, count_missed=True)
    values = user_values(frame, metrics, truth, groups, settings)
    check_systems("diagnose", values.by)
    check_packages()
    schema = made_schema("diagnose", values, _DIAGNOSIS)
    reduce = partial(diagnosed, values=values, baseline=baseline, bins=bins)
    diagnosis = values.rows.map_batches(reduce, schema=schema)
    return to_caller_type(
        diagnosis, like=frame, beside=(truth, *(options.get(name) for name in INPUTS))
    )


def _check_means(values: UserValues) -> None:
    """Check that each metric is a value per user, or a geometric mean of one."""
    for one in values.requested:
        if not one.per_user and one.over_users.epsilon is None:
            raise ValueError(not_per_user(one))


def _check_logarithms(rows: pl.DataFrame, values: UserValues) -> None:
    """Check that no value is 0 if its logarithm is compared."""
    for one in values.requested:
        if one.over_users.epsilon is None:
            continue
        wrong = rows.filter(pl.col(one.name).is_infinite()).select(*values.by, values.user)
        if not wrong.is_empty():
            row = format_row(wrong.sort(*values.by, values.user).head(1))
            msg = (
                f"metric {one.name!r}: a value of 0, which has no logarithm to compare: ask for it "
                f"with epsilon > 0. Offending row: {row}"
            )
            raise RankingDataError(msg)


def check_systems(verb: str, by: Sequence[str]) -> None:
    """Check that there is a column that identifies the systems."""
    if not by:
        msg = f"{verb} needs the column that identifies the systems: name it in by="
        raise ValueError(msg)


def check_independent(verb: str, options: Options) -> None:
    """Check that a verb that takes users for independent has no clusters."""
    if "cluster" in options:
        msg = (
            f"{verb} has no cluster=, since it takes users for independent: compare and summarize "
            "take it"
        )
        raise TypeError(msg)


def check_unweighted(verb: str, options: Options) -> None:
    """Check that a verb without a weighted form has no weights."""
    if options.get("weights") is not None:
        msg = f"{verb} has no weighted form, users count alike: leave out weights="
        raise ValueError(msg)


def of_metrics(option: str, given: Any, names: Sequence[str]) -> dict[str, Any]:
    """Return the option of each metric: one value for all, or a mapping that names them."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        return dict.fromkeys(names, given)
    found = dict(cast("Mapping[str, Any]", given))
    for name in found:
        if name not in names:
            msg = f"{option} names {name!r}; the metrics are {', '.join(map(repr, names))}"
            raise ValueError(msg)
    return found


def _read_margins(margin: Margin | None, values: UserValues, test: Test) -> dict[str, float]:
    """Read the margin of each metric."""
    if margin is None:
        return {}
    if test not in _OF_MARGINS:
        msg = (
            f"margin bounds a difference of means, and test={test!r} takes no margin: "
            f"take one of {', '.join(map(repr, _OF_MARGINS))}"
        )
        raise ValueError(msg)
    lists = [] if values.of_lists is None else [one.name for one in values.of_lists.requested]
    names = [one.name for one in values.requested]
    geometric = {one.name for one in values.requested if one.over_users.epsilon is not None}
    margins = of_metrics("margin", margin, [*names, *lists])
    for name, value in margins.items():
        if not (is_number(value) and 0 < value < inf):
            msg = f"margin of {name!r} must be a finite number > 0, not {value!r}"
            raise ValueError(msg)
        if name in geometric:
            msg = (
                f"margin: metric {name!r} is a geometric mean, whose ratio is tested: name the "
                f"others, such as margin={{'ndcg@10': {value!r}}}"
            )
            raise ValueError(msg)
        if name in lists:
            msg = (
                f"margin: metric {name!r} is one number of all lists, which has no margin: name "
                f"the others, such as margin={{{names[0] if names else 'ndcg@10'!r}: {value!r}}}"
            )
            raise ValueError(msg)
    return {name: float(value) for name, value in margins.items()}


def _check_primary(primary: str | None, values: UserValues, test: Test) -> None:
    """Check that the primary metric is compared and tested."""
    if primary is None:
        return
    if not isinstance(cast("object", primary), str):
        kind = type(primary).__name__
        msg = f"primary must be the name of a metric, such as 'ndcg@10', not a value of type {kind}"
        raise TypeError(msg)
    lists = [] if values.of_lists is None else [one.name for one in values.of_lists.requested]
    names = [*(one.name for one in values.requested), *lists]
    if primary not in names:
        msg = f"primary names {primary!r}; the metrics are {', '.join(map(repr, names))}"
        raise ValueError(msg)
    if primary in lists and test != "randomization":
        msg = f"primary: metric {primary!r} is one number of all lists: take test='randomization'"
        raise ValueError(msg)


# ------------------------------------------------------------------ one row per user → per pair


class Matrix(NamedTuple):
    """A metric in a segment: one row per user, one column per system, NaN where undefined."""

    segment: int
    metric: str
    values: Array
    weights: Array | None = None
    users: Places | None = None  # of all segments together: the user of each row
    clusters: Places | None = None
    missed: Array | None = None  # 1 where the system has no list for the user, else 0
    absent: Bits | None = None  # where the system has no row of the user; None if there is none
    left_out: int | None = None  # of a complete matrix: users with a value, but not in all systems


class Place(NamedTuple):
    """Which systems are compared, by which metric, in which segment."""

    segment: int
    metric: str
    system: int
    baseline: int


class Pair(NamedTuple):
    """A system and its baseline on the users they share."""

    segment: int
    metric: str
    system: int
    baseline: int
    of_system: Array
    of_baseline: Array
    difference: Array
    weights: Array | None
    returning: int  # rows beyond one per user, which were merged
    clusters: Places | None
    sample: Sample  # the differences of independent observations: users or clusters
    undefined: str | None  # why the differences have no test
    missed: tuple[int, int] | None = None  # users without a list of the system, of the baseline
    left_out: int = 0  # users with a value in one group who are not in the other
    joint: bool = False  # the users are those of all systems

    @property
    def place(self) -> Place:
        """Name the pair, without its values."""
        return Place(self.segment, self.metric, self.system, self.baseline)


class Paired(NamedTuple):
    """The segments, systems and metrics that are compared."""

    segments: pl.DataFrame  # one row per segment; with a total, the last one is null
    systems: pl.Series
    matrices: list[Matrix]
    pairs: list[Pair]

    def named(self, model: str, of: Sequence[Pair] | Sequence[Place]) -> list[pl.Series]:
        """Return the columns that name the segment, the metric and the systems of each pair."""
        systems = [self.systems.gather([pair.system for pair in of]).alias(model)]
        systems += [self.systems.gather([pair.baseline for pair in of]).alias("baseline")]
        return [*self.keys(of), *systems]

    def keys(self, of: Sequence[Pair] | Sequence[Place] | Sequence[Matrix]) -> list[pl.Series]:
        """Return the columns that name the segment and the metric."""
        segments = [column.gather([one.segment for one in of]) for column in self.segments]
        return [*segments, pl.Series("metric", [one.metric for one in of])]


class _Tested(NamedTuple):
    """Numbers and a note per pair; and the direction that a test of ranks finds."""

    outcome: Outcome
    adjusted: Array
    notes: list[str | None]
    signs: list[float | None]


class _Asked(NamedTuple):
    """How pairs are tested."""

    test: Test
    correction: Correction | None
    confidence: float
    margins: Mapping[str, float]
    directions: Mapping[str, bool | None]
    resampling: Resampling
    advance: Advance
    geometric: Collection[str]
    weighted: bool
    systems: pl.Series


def _compared(
    rows: pl.DataFrame,
    *,
    values: UserValues,
    total: bool,
    baseline: object,
    known: bool,
    test: Test,
    correction: Correction | None,
    confidence: float,
    margins: Mapping[str, float],
    primary: str | None,
    resampling: Resampling,
) -> pl.DataFrame:
    from rankframe import _statistics as st

    if test == "mcnemar":
        check_hits(rows, values, "test='mcnemar'")
    joint = test in JOINT_TESTS
    paired, matrices = _opened(rows, values, baseline, complete=joint, total=total, known=known)
    systems = _pairs_of_places(paired.systems.to_list(), baseline)
    number = len(values.requested) * max(1, len(paired.segments))
    per_matrix = 1 if test == "randomized_tukey" else len(systems)
    bounded = 2 * len(margins) / len(values.requested)
    with st.progress(round(resampling.times * number * per_matrix * (1 + bounded))) as advance:
        asked = _Asked(
            test,
            correction,
            confidence,
            margins,
            directions_of(values.requested),
            resampling,
            advance,
            {one.name for one in values.requested if one.over_users.epsilon is not None},
            values.weights is not None,
            paired.systems,
        )
        tested = _jointly if joint else _in_batches
        places: list[Place] = []
        numbers: list[dict[str, Any]] = []
        for pairs, found in tested(matrices, systems, values.weights, asked):
            places += [pair.place for pair in pairs]
            numbers += _numbers_of(pairs, found, asked)
    table = pl.DataFrame(numbers, schema={**_COMPARISON, _SIGN: pl.Float64})
    metrics = [place.metric for place in places]

    def adjusted(name: str) -> pl.Series:
        return pl.Series(name, _in_families(table[name].to_numpy(), metrics, primary, correction))

    # metrics of all lists, which also count, are not here yet
    gate = primary if values.of_lists is None or test != "randomization" else None
    table = table.with_columns(
        adjusted("p_equivalent"),
        adjusted("p_not_worse"),
        table["p_adjusted"] if joint else adjusted("p_adjusted"),
    )
    table = (
        table.select(*paired.named(values.by[0], places), *_columns(margins), _SIGN)
        .with_columns(pl.selectors.float().exclude(*values.by, "baseline").fill_nan(None))
        .pipe(_gated, values.by, gate)
        .pipe(_with_verdict, confidence)
        .pipe(_with_ratios, values.requested, confidence)
    )
    if test in ("wilcoxon", "friedman"):
        table = _unless_contrary(table)
    return table.drop(_SIGN)


def _in_batches(
    matrices: Iterator[Matrix],
    systems: Sequence[tuple[int, int]],
    column: str | None,
    asked: _Asked,
) -> Iterator[tuple[list[Pair], _Tested]]:
    """Test each pair on its own, as many at a time as memory has room for."""
    room = _RESAMPLED_CELLS if asked.test in _RESAMPLING else _TESTED_CELLS
    batch: list[Pair] = []
    cells = 0
    for matrix in matrices:
        for pair in _pairs_of(matrix, systems, column):
            cells += len(pair.difference)
            if batch and cells > room:
                yield batch, _test_pairs(batch, asked)
                batch, cells = [], len(pair.difference)
            batch.append(pair)
    if batch:
        yield batch, _test_pairs(batch, asked)


def _jointly(
    matrices: Iterator[Matrix],
    systems: Sequence[tuple[int, int]],
    column: str | None,
    asked: _Asked,
) -> Iterator[tuple[list[Pair], _Tested]]:
    """Test all systems of a metric at once."""
    for matrix in matrices:
        pairs = list(_pairs_of(matrix, systems, column))
        yield pairs, _test_jointly(matrix, pairs, asked)


def _numbers_of(pairs: Sequence[Pair], tested: _Tested, asked: _Asked) -> Iterator[dict[str, Any]]:
    """Describe each pair, with the numbers of its test."""
    few = [_few_differ(pair) if pair.metric in asked.margins else None for pair in pairs]
    within = _test_margins(pairs, few, asked)
    for place, pair in enumerate(pairs):
        note = with_notes(tested.notes[place], pair, weighted=asked.weighted)
        lacking = notes_of_lists(pair, asked.systems)
        yield {
            **_numbers(pair),
            "ci_low": tested.outcome.low[place],
            "ci_high": tested.outcome.high[place],
            "p_value": tested.outcome.p[place],
            "p_adjusted": tested.adjusted[place],
            "detectable": nan if pair.metric in asked.geometric else _detectable(pair, asked),
            "p_equivalent": within.equivalent[place],
            "p_not_worse": within.not_worse[place],
            "note": "; ".join(filter(None, (note, *lacking, few[place]))) or None,
            _SIGN: tested.signs[place],
        }


def paired_users(
    rows: pl.DataFrame, values: UserValues, baseline: object, *, complete: bool, total: bool = False
) -> Paired:
    """Pair the users of two systems; ``complete`` drops users for whom a system is undefined."""
    shared = shared_users(rows, values, baseline, complete=complete, total=total)
    systems = _pairs_of_places(shared.systems.to_list(), baseline)
    pairs = [
        pair for matrix in shared.matrices for pair in _pairs_of(matrix, systems, values.weights)
    ]
    return shared._replace(pairs=pairs)


def shared_users(
    rows: pl.DataFrame,
    values: UserValues,
    baseline: object = None,
    *,
    complete: bool = True,
    total: bool = False,
) -> Paired:
    """Prepare the values of all systems, without pairs; ``complete`` as in ``paired_users``."""
    shared, matrices = _opened(rows, values, baseline, complete=complete, total=total)
    return shared._replace(matrices=list(matrices))


def _opened(
    rows: pl.DataFrame,
    values: UserValues,
    baseline: object,
    *,
    complete: bool,
    total: bool,
    known: bool = False,
) -> tuple[Paired, Iterator[Matrix]]:
    """Find the systems and the segments, and return the matrices one after the other."""
    check_sizes(rows, values)
    if values.cluster is not None:
        check_clusters(rows, values.cluster, [one.name for one in values.requested])
    rows = in_logarithms(rows, values.requested)
    _check_logarithms(rows, values)
    model, *segments = values.by
    systems = _systems(rows, model, baseline, [] if known else segments)
    matrices = _matrices(rows, values, systems, complete=complete, total=total)
    of_segments = rows.select(segments).unique().sort(segments) if segments else pl.DataFrame()
    if total:
        of_segments = pl.concat([of_segments, of_segments.clear(1)])
    return Paired(of_segments, systems, [], []), matrices


def _with_ratios(
    table: pl.DataFrame, requested: Sequence[RequestedMetric], confidence: float
) -> pl.DataFrame:
    """Transform results for logarithms back to the scale of the metric, and note the ratio."""
    names = [one.name for one in requested if one.over_users.epsilon is not None]
    if not names:
        return table
    of_logarithms = pl.col("metric").is_in(names)
    ends = ("difference", "ci_low", "ci_high")
    changes = [pl.col("baseline_mean").exp() * (pl.col(name).exp() - 1) for name in ends]
    ratios = table.select("note", of_logarithms, *(pl.col(name).exp() for name in ends))
    notes = [
        _ratio_note(ratio, low, high, note, confidence) if geometric else note
        for note, geometric, ratio, low, high in ratios.iter_rows()
    ]
    return table.with_columns(
        pl.Series("note", notes, pl.String),
        *(given_back(name, requested) for name in ("mean", "baseline_mean")),
        *(
            pl.when(of_logarithms).then(change).otherwise(name).alias(name)
            for name, change in zip(ends, changes, strict=True)
        ),
    )


def _ratio_note(
    ratio: float | None, low: float | None, high: float | None, note: str | None, confidence: float
) -> str | None:
    if ratio is None:
        return note
    told = f"ratio {ratio:.3g}"
    if low is not None and high is not None:
        told += f", {confidence * 100:.10g}% interval {low:.3g} to {high:.3g}"
    return told if note is None else f"{told}; {note}"


def _systems(
    rows: pl.DataFrame, model: str, baseline: object, segments: Sequence[str]
) -> pl.Series:
    systems = rows[model].unique().sort()
    names = systems.to_list()
    if len(names) < 2:
        msg = f"column {model!r}: only one system, {names[0]!r}: a comparison needs two"
        raise RankingDataError(msg)
    if isinstance(baseline, pl.Expr | pl.Series):
        msg = f"baseline must be the name of a system, not {type(baseline).__name__}"
        raise TypeError(msg)
    if baseline is None:
        return systems
    others = [name for name in segments if model != MODEL and _has(rows, name, baseline)]
    if baseline not in names:
        msg = f"baseline must be one of {', '.join(map(repr, names[:10]))}, not {baseline!r}"
        if others:
            msg += f"; column {others[0]!r} has it: name that first in by="
        raise ValueError(msg)
    if others:
        raise _ambiguous(baseline, [model, *others])
    return systems


def _pairs_of_places(systems: list[object], baseline: object) -> list[tuple[int, int]]:
    """Return the pairs of systems by place: with the baseline, or each with those before it."""
    places = range(len(systems))
    if baseline is None:
        return [(place, other) for other in places for place in places[other + 1 :]]
    of_baseline = systems.index(baseline)
    return [(place, of_baseline) for place in places if place != of_baseline]


_PLACED = ("__rankframe_at", "__rankframe_row", "__rankframe_column")


def _matrices(
    rows: pl.DataFrame, values: UserValues, systems: pl.Series, *, complete: bool, total: bool
) -> Iterator[Matrix]:
    """Make matrices of the rows; ``complete`` drops users for whom a system is undefined.

    With ``total``, the last ones have the rows of all segments.
    """
    import numpy as np

    model, *segments = values.by
    names = [metric.name for metric in values.requested]
    columns = systems.to_frame().with_row_index("__rankframe_column")
    rows = rows.sort(segments) if segments else rows
    groups = rows.partition_by(segments, maintain_order=True) if segments else [rows]
    for segment, group in enumerate([*groups, rows] if total else groups):
        pooled = segment == len(groups)
        keys = [*segments, values.user] if pooled else [values.user]
        users = _users_of(group, keys, values)
        placed = (
            group.select(*keys, model)
            .with_row_index("__rankframe_at")
            .join(users.with_row_index("__rankframe_row"), on=keys)
            .join(columns, on=model)
        )
        at, row, column = (placed[name].to_numpy() for name in _PLACED)
        present = np.zeros((len(systems), len(users)), np.bool_)
        present[column, row] = True
        absent = None if present.all() else ~present.T
        missed = None
        if MISSED in group.columns:
            of_lists = np.zeros((len(systems), len(users)))
            of_lists[column, row] = group[MISSED].cast(pl.Float64).to_numpy()[at]
            missed = of_lists.T
        weights = None if values.weights is None else users[WEIGHT].to_numpy()
        whose = places_of_users(users[values.user]) if pooled else None
        clusters = None if values.cluster is None else places_of_users(users[CLUSTER])
        if values.cluster is not None and pooled:
            check_one_cluster(users, [values.user], values.cluster)
        for name in names:
            of_systems = np.full((len(systems), len(users)), np.nan)
            of_systems[column, row] = group[name].cast(pl.Float64).to_numpy()[at]
            matrix = Matrix(segment, name, of_systems.T, weights, whose, clusters, missed, absent)
            yield _complete(matrix) if complete else matrix


def _users_of(group: pl.DataFrame, keys: Sequence[str], values: UserValues) -> pl.DataFrame:
    """Return each user of a segment once, with the weight and the cluster."""
    group = group.drop_nulls(values.user)
    if values.cluster is not None:
        check_one_cluster(group, keys, values.cluster)
    of_users = [(values.weights, WEIGHT), (values.cluster, CLUSTER)]
    known = [name for column, name in of_users if column is not None]
    users = group.select(*keys, *known).unique().sort(keys)
    twice = users.filter(pl.struct(keys).is_duplicated()).select(keys).head(1)
    if not twice.is_empty():
        msg = (
            f"column {values.weights!r}: several weights of one user: a pair of systems needs one. "
            f"Offending row: {format_row(twice)}"
        )
        raise RankingDataError(msg)
    return users


def _complete(matrix: Matrix) -> Matrix:
    """Keep the users for whom every system is defined."""
    import numpy as np

    keep = np.asarray(~np.isnan(matrix.values).any(axis=1), np.bool_)
    users = None if matrix.users is None else matrix.users[keep]
    missed = None if matrix.missed is None else matrix.missed[keep]
    left_out = 0
    if matrix.absent is not None:
        some = ~np.isnan(matrix.values).all(axis=1) & matrix.absent.any(axis=1)
        left_out = _count_left_out(np.asarray(some, np.bool_), keep, matrix.users)
    return matrix._replace(
        values=np.ascontiguousarray(matrix.values[keep]),
        users=users,
        missed=missed,
        absent=None,
        left_out=left_out,
    )


def _count_left_out(left_out: Bits, kept: Bits, users: Places | None) -> int:
    """Count users; over all segments, those who are kept in none."""
    import numpy as np

    return int(left_out.sum()) if users is None else len(np.setdiff1d(users[left_out], users[kept]))


class _Column(NamedTuple):
    """The values of a system, where they are defined, and the places of their last digits."""

    values: Array
    known: Bits
    scales: Places


def _pairs_of(
    matrix: Matrix, systems: Sequence[tuple[int, int]], column: str | None
) -> Iterator[Pair]:
    """Pair systems; ``column`` is the name of the weights."""
    import numpy as np

    from rankframe._statistics import scales_of

    columns = [
        _Column(values, ~np.isnan(values), scales_of(values))
        for values in np.ascontiguousarray(matrix.values.T)
    ]
    for system, baseline in systems:
        place = Place(matrix.segment, matrix.metric, system, baseline)
        yield _pair(matrix, place, columns[system], columns[baseline], column)


def _pair(matrix: Matrix, place: Place, one: _Column, other: _Column, column: str | None) -> Pair:
    from rankframe._statistics import differences, of_merged, of_users, rounded, shares

    weights, clusters, users = matrix.weights, matrix.clusters, matrix.users
    counts = one.known & other.known
    left_out = matrix.left_out or 0
    if matrix.absent is not None:
        alone = one.known & matrix.absent[:, place.baseline]
        alone |= other.known & matrix.absent[:, place.system]
        alone &= True if weights is None else weights > 0
        left_out = _count_left_out(alone, counts, users)
    if column is not None and weights is not None:
        if counts.any() and not (counts & (weights > 0)).any():
            raise_no_weight(column, matrix.metric)
        counts &= weights > 0
    kept = slice(None) if counts.all() else counts
    if column is not None and weights is not None:
        weights = shares(weights[kept])
    of_system, of_baseline = one.values[kept], other.values[kept]
    change = differences(of_system, of_baseline, (one.scales[kept], other.scales[kept]))
    number = len(change)
    clusters = None if clusters is None else clusters[kept]
    lists = [] if matrix.missed is None else [matrix.missed[kept, at] for at in place[2:]]
    if users is not None and number:
        columns = [of_system, of_baseline, change, *lists]
        merged, weights = of_users(users[kept], columns, weights)
        of_system, of_baseline, change, *lists = merged
        change = change if len(change) == number else rounded(change)
        clusters = of_merged(users[kept], clusters)
    return Pair(
        *place,
        of_system=of_system,
        of_baseline=of_baseline,
        difference=change,
        weights=weights,
        returning=number - len(change),
        clusters=clusters,
        sample=sample_of(change, weights, clusters),
        undefined=why_undefined(change),
        missed=_without_lists(*lists) if lists else None,
        left_out=left_out,
        joint=matrix.left_out is not None,
    )


def _without_lists(system: Array, baseline: Array) -> tuple[int, int]:
    """Count the users who have no list, in none of their segments."""
    return int((system > 1 - _NOTHING).sum()), int((baseline > 1 - _NOTHING).sum())


def sample_of(difference: Array, weights: Array | None, clusters: Places | None) -> Sample:
    """Take the differences as a sample of independent observations: users or clusters."""
    from rankframe._statistics import Sample, of_clusters

    sample = Sample(difference, weights)
    return sample if clusters is None else of_clusters(clusters, sample)


def _test_pairs(pairs: Sequence[Pair], asked: _Asked) -> _Tested:
    """Test each pair on its own; nothing is corrected yet."""
    from rankframe import _statistics as st

    test, confidence, resampling = asked.test, asked.confidence, asked.resampling
    if test == "mcnemar":
        return _test_hits(pairs, confidence)

    def reduce(sample: Sample, advance: st.Advance) -> Outcome:
        if test == "randomization":
            return st.randomization(sample, confidence, resampling, advance)
        if test == "bootstrap":
            return st.bootstrap(sample, confidence, resampling, advance)
        if test == "sequential":
            return st.sequential(sample, confidence)
        return (st.wilcoxon if test == "wilcoxon" else st.t_test)(sample, confidence)

    if test == "wilcoxon":
        pairs = [_with_ties(pair) for pair in pairs]
    outcome = st.in_matrices([pair.sample for pair in pairs], reduce, asked.advance)
    notes: list[str | None] = [pair.undefined for pair in pairs]
    signs: list[float | None] = [None] * len(pairs)
    if test in _UNWEIGHTED:
        notes = [
            note if pair.weights is None else note or _UNEVEN
            for note, pair in zip(notes, pairs, strict=True)
        ]
    if test == "sequential":
        lows = outcome.low.tolist()
        notes = [note or _note_of_looks(low) for note, low in zip(notes, lows, strict=True)]
    if test == "wilcoxon":
        signs = [st.signed_ranks(pair.difference) for pair in pairs]
    return _Tested(outcome, outcome.p.copy(), notes, signs)


def _with_ties(pair: Pair) -> Pair:
    """Make differences equal that differ only by rounding: their ranks tie."""
    from rankframe._statistics import scales_of, tied

    change = tied(pair.difference, (scales_of(pair.of_system), scales_of(pair.of_baseline)))
    return pair._replace(difference=change, sample=pair.sample._replace(values=change))


def _note_of_looks(low: float) -> str:
    """Explain a sequential test, and why it has no interval."""
    valid = "always valid: look as often as you like"
    return f"{valid}; too few users for an interval" if isnan(low) else valid


def _test_hits(pairs: Sequence[Pair], confidence: float) -> _Tested:
    import numpy as np

    from rankframe import _statistics as st

    outcome = st.Outcome(*(np.full(len(pairs), nan) for _ in st.Outcome._fields))
    notes = [pair.undefined for pair in pairs]
    for place, pair in enumerate(pairs):
        hits = np.concatenate([pair.of_system, pair.of_baseline])
        if pair.weights is not None or not st.are_hits(hits):
            notes[place] = _NO_HITS
        elif len(hits):
            found = st.mcnemar(pair.of_system, pair.of_baseline, confidence)
            outcome.p[place], outcome.low[place], outcome.high[place] = found
    return _Tested(outcome, outcome.p.copy(), notes, [None] * len(pairs))


_NO_HITS = "no test: users are in several segments, and the mean of their values is no hit"


def _test_jointly(matrix: Matrix, pairs: Sequence[Pair], asked: _Asked) -> _Tested:
    from rankframe import _statistics as st

    test, confidence = asked.test, asked.confidence
    values = _per_observation(matrix)
    family: st.Joint | st.Permuted
    if values is None:
        family = st.no_joint(matrix.values.shape[1], _UNEVEN)
    elif test == "randomized_tukey":
        family = st.randomized_tukey(values, confidence, asked.resampling, asked.advance)
    else:
        family = st.tukey(values, confidence) if test == "tukey" else st.friedman(values)
    tested = _test_pairs(pairs, asked._replace(test="t"))
    for place, pair in enumerate(pairs):
        systems = pair.system, pair.baseline
        tested.outcome.p[place] = family.p(systems)
        alone = asked.correction is None
        tested.adjusted[place] = family.p(systems) if alone else family.adjusted(systems)
        if test in SIMULTANEOUS and len(pair.difference):
            margin = family.margin if isfinite(family.margin) else nan
            tested.outcome.low[place] = pair.difference.mean() - margin
            tested.outcome.high[place] = pair.difference.mean() + margin
        notes = [note for note in (family.note, tested.notes[place]) if note]
        tested.notes[place] = "; ".join(notes) or None
        if test == "friedman" and isinstance(family, st.Joint):
            tested.signs[place] = float(family.centers[pair.system] - family.centers[pair.baseline])
    return tested


_UNEVEN = "no test: it has no weighted form, and users are in different numbers of segments"


def _per_observation(matrix: Matrix) -> Array | None:
    """Merge the rows of each user; None if the users would have to be weighted."""
    import numpy as np

    from rankframe._statistics import of_users

    values = matrix.values
    if matrix.users is None or not len(values):
        return values
    columns, weights = of_users(matrix.users, list(values.T), None)
    return None if weights is not None else np.column_stack(columns)


def with_notes(note: str | None, pair: Pair, *, weighted: bool) -> str | None:
    """Add to a note how many users the numbers describe."""
    from rankframe._statistics import Sample

    weights = pair.weights if weighted else None
    more = notes_of_users(pair.difference, weights, pair.returning)
    if pair.clusters is not None:
        more += notes_of_clusters(Sample(pair.difference, pair.weights), pair.sample)
    more += _notes_of_left_out(pair.left_out, len(pair.difference), joint=pair.joint)
    return "; ".join([*([note] if note else []), *more]) or None


def _notes_of_left_out(left_out: int, users: int, *, joint: bool = False) -> list[str]:
    """Write how many users are in one of two groups only, if they are many."""
    if not left_out or left_out < WORTH_A_NOTE * (users + left_out):
        return []
    who = "is left out: this user is" if left_out == 1 else "are left out: they are"
    where = "not in all groups" if joint else "in one group only"
    return [f"{left_out:,} of {users + left_out:,} users {who} {where}"]


def notes_of_lists(pair: Pair, systems: pl.Series) -> list[str]:
    """Write how many of the users have no list of the system, and of the baseline."""
    if pair.missed is None:
        return []
    users, names = len(pair.difference), (systems[pair.system], systems[pair.baseline])
    return [
        note
        for missed, name in zip(pair.missed, names, strict=True)
        for note in notes_of_missed(missed, users, name)
    ]


def why_undefined(difference: Array) -> str | None:
    """Return why a number is undefined."""
    if len(difference) < 2:
        return ONE_USER if len(difference) else _NO_PAIR
    low, high = difference.min(), difference.max()
    if low == high == 0:
        return NOBODY_DIFFERS
    return None if low < high else ALL_DIFFER_ALIKE


def _numbers(pair: Pair) -> dict[str, float | None]:
    """Describe a pair without a test."""
    from rankframe._statistics import deviation, weighted_mean

    change, weights = pair.difference, pair.weights
    has_users, varied = len(change) > 0, pair.undefined is None
    wins, losses = int((change > 0).sum()), int((change < 0).sum())
    difference = float(weighted_mean(change, weights)) if has_users else nan
    missed, of_baseline = pair.missed or (None, None)
    return {
        "users": len(change),
        "num_left_out": pair.left_out,
        "num_missed": missed,
        "baseline_num_missed": of_baseline,
        "mean": float(weighted_mean(pair.of_system, weights)) if has_users else nan,
        "baseline_mean": float(weighted_mean(pair.of_baseline, weights)) if has_users else nan,
        "difference": difference,
        "effect_size": difference / float(deviation(change, weights)) if varied else nan,
        "wins": wins,
        "ties": len(change) - wins - losses,
        "losses": losses,
    }


# ------------------------------------------------------------------ verdicts


class _Within(NamedTuple):
    """P-values for each pair; NaN without a margin."""

    equivalent: Array
    not_worse: Array


def _test_margins(pairs: Sequence[Pair], untested: Sequence[str | None], asked: _Asked) -> _Within:
    """Test whether differences are above −margin, and whether they are below margin."""
    import numpy as np

    from rankframe import _statistics as st

    margins = asked.margins

    def reduce(sample: Sample, advance: st.Advance) -> Outcome:
        if asked.test == "bootstrap":
            return st.bootstrap(sample, 0.95, asked.resampling, advance, one_sided=True)
        outcome = st.t_test(sample, 0.95)
        values, weights = sample
        sums = (values if weights is None else weights * values).sum(axis=0)
        return outcome._replace(p=st.above_zero(outcome.p, sums))

    within = _Within(*(np.full(len(pairs), np.nan) for _ in _Within._fields))
    places = [
        place
        for place, pair in enumerate(pairs)
        if pair.metric in margins and untested[place] is None
    ]
    if not places:
        return within
    known = [(pairs[place].sample, margins[pairs[place].metric]) for place in places]
    shifted = [sample._replace(values=sample.values + margin) for sample, margin in known]
    shifted += [sample._replace(values=margin - sample.values) for sample, margin in known]
    above, below = np.split(st.in_matrices(shifted, reduce, asked.advance).p, 2)
    within.equivalent[places] = np.maximum(above, below)
    for place, over, under in zip(places, above, below, strict=True):
        higher_is_better = asked.directions[pairs[place].metric]
        if higher_is_better is not None:
            within.not_worse[place] = over if higher_is_better else under
    return within


def _few_differ(pair: Pair) -> str | None:
    """Return why a margin cannot be tested: nearly all users change by one amount, such as 0.

    Their differences have almost no spread, whatever the rare ones are.
    """
    import numpy as np

    from rankframe._statistics import FEW_USERS

    values = pair.sample.values
    if why_undefined(values) is not None:
        return None
    amounts, counts = np.unique(values, return_counts=True)
    alike = counts.max()
    others = len(values) - alike
    if 2 * alike <= len(values) or others >= FEW_USERS:
        return None
    unit = "users" if pair.clusters is None else "clusters"
    rest = "1 changes by another amount" if others == 1 else f"{others} change by other amounts"
    return (
        f"margin not tested: {alike} of {len(values)} {unit} change by the same amount, "
        f"{amounts[counts.argmax()] + 0.0:.3g}; only {rest}"
    )


def directions_of(requested: Sequence[RequestedMetric]) -> dict[str, bool | None]:
    """Return for each metric whether higher is better; None if neither is, or if undeclared."""
    entries = {one.name: entry_of(one.expr) for one in requested}
    return {name: entry.higher_is_better if entry else None for name, entry in entries.items()}


def _detectable(pair: Pair, asked: _Asked) -> float:
    """Return the smallest true difference that the users or clusters of a pair detect."""
    from rankframe import _statistics as st

    values, weights = pair.sample
    if asked.test not in _OF_MEANS or why_undefined(values) is not None:
        return nan
    number, design = len(values), st.Design(asked.confidence, _POWER)
    if weights is not None:
        return st.detectable_at(float(st.standard_error(values, weights)), number, design)
    return st.detectable(float(values.std(ddof=1)), number, design)


def _with_verdict(table: pl.DataFrame, confidence: float) -> pl.DataFrame:
    """Read the adjusted p-values; the first verdict that holds counts."""
    alpha = 1 - confidence
    differs = pl.col("p_adjusted") < alpha
    nowhere = pl.lit(value=False)
    equivalent, not_worse = (
        pl.col(name) < alpha if name in table.columns else nowhere for name in _OF_MARGIN
    )
    return table.with_columns(
        pl.when(equivalent)
        .then(pl.lit("equivalent"))
        .when(differs & (pl.col("difference") > 0))
        .then(pl.lit("higher"))
        .when(differs & (pl.col("difference") < 0))
        .then(pl.lit("lower"))
        .when(not_worse)
        .then(pl.lit("not worse"))
        .when(pl.col("p_adjusted").is_not_null())
        .then(pl.lit("undecided"))
        .alias("verdict")
    )


def _unless_contrary(table: pl.DataFrame) -> pl.DataFrame:
    """Remove a verdict of ranks that the means contradict, and note it."""
    contrary = (pl.col("difference").sign() * pl.col(_SIGN).sign() < 0).fill_null(value=False)
    said = pl.lit("the ranks and the means have opposite signs")
    return table.with_columns(
        pl.when(contrary & pl.col("verdict").is_in(["higher", "lower"]))
        .then(pl.lit("undecided"))
        .otherwise("verdict")
        .alias("verdict"),
        pl.when(contrary)
        .then(pl.concat_str("note", said, separator="; ", ignore_nulls=True))
        .otherwise("note")
        .alias("note"),
    )


# ------------------------------------------------------------------ one row per user → per bin


def diagnosed(
    rows: pl.DataFrame, *, values: UserValues, baseline: object, bins: int
) -> pl.DataFrame:
    model, *segments = values.by
    from rankframe._statistics import differences

    _systems(rows, model, baseline, segments)
    of_baseline = pl.col(model) == pl.lit(baseline, dtype=rows.schema[model])
    users = [*segments, values.user]
    known = rows.filter(pl.col("total") > 0).sort(*values.by, values.user)
    before = known.filter(of_baseline).drop(model)
    paired = known.filter(~of_baseline).join(
        before, on=users, suffix=" before", maintain_order="left"
    )
    smaller = pl.col("total before").rank("min").cast(pl.Int64) - 1
    place = (smaller * bins // pl.len()).over(values.by).alias(_BIN)
    bounds = pl.col("total before").min(), pl.col("total before").max()
    means = [order_free_mean(change) for change in _changes()]
    means += [order_free_mean(pl.col(name)).alias(name) for name in _LEVELS]
    paired = paired.with_columns(
        pl.Series(
            changed, differences(paired[name].to_numpy(), paired[f"{name} before"].to_numpy())
        )
        for name, changed in zip(_LEVELS, _CHANGED, strict=False)
    )
    means += [pl.col(name) for name in _CHANGED]
    counted = [pl.len().cast(pl.Int64).alias("users"), *means]
    described = [bounds[0].alias("relevant_low"), bounds[1].alias("relevant_high"), *counted]
    misses = pl.col(MISSED), pl.col(f"{MISSED} before")
    without = [
        sum_.sum().cast(pl.Int64).alias(name)
        for name, sum_ in zip(_WITHOUT, (*misses, misses[0] & misses[1]), strict=True)
    ]
    unserved = pl.any_horizontal(misses)
    in_bins = paired.filter(~unserved).group_by(*values.by, place).agg(described)
    lacking = paired.filter(unserved).group_by(values.by).agg(*described, *without)
    lacking = lacking.with_columns(pl.lit(bins, pl.Int64).alias(_BIN))
    systems = rows.filter(~of_baseline).select(values.by).unique()
    of_all = paired.group_by(values.by).agg(*counted, *without)
    overall = systems.join(of_all, on=values.by, how="left")
    table = pl.concat([in_bins, lacking, overall], how="diagonal_relaxed")
    own = {tuple(key): users for *key, users in known.group_by(values.by).len().iter_rows()}
    readings = [
        _reading_of_row(row, row[model], baseline, missing=row[_BIN] == bins)
        if row[_BIN] is not None
        else _reading_of_users(row, values.by, baseline, own)
        for row in table.iter_rows(named=True)
    ]
    table = table.drop(_CHANGED, _WITHOUT).with_columns(
        pl.col("users").fill_null(0), reading=pl.Series(readings, dtype=pl.String)
    )
    if segments:
        systems = rows.select(model).unique()
        whole = _of_all_segments(known, systems, values, baseline)
        table = pl.concat([table, whole], how="diagonal_relaxed")
    table = table.sort(*values.by, _BIN, nulls_last=True)
    return table.select(*values.by, *(pl.col(name).cast(_DIAGNOSIS[name]) for name in _DIAGNOSIS))


def _reading_of_row(
    row: Mapping[str, Any], system: object, baseline: object, *, missing: bool
) -> str | None:
    """Read a bin, the users without a list, or all users."""
    users, without = row["users"], [row[name] or 0 for name in _WITHOUT]
    if users is None:
        return _NO_PAIR
    if missing:
        return _reading_of_missed(without, system, baseline)
    read = _paired_reading([pl.Series(row[name]).to_numpy() for name in _CHANGED])
    notes = [
        note
        for missed, name in zip(without, (system, baseline), strict=False)
        for note in notes_of_missed(missed, users, name)
    ]
    return "; ".join(filter(None, [read, *notes])) or None


def _reading_of_users(
    row: Mapping[str, Any],
    by: Sequence[str],
    baseline: object,
    own: Mapping[tuple[object, ...], int],
) -> str | None:
    """Read all users of a system, and count those whom only one of the two has."""
    model, *segments = by
    notes = [_reading_of_row(row, row[model], baseline, missing=False)]
    for system in (row[model], baseline):
        users = own.get((system, *(row[name] for name in segments)), 0)
        alone = users - (row["users"] or 0)
        if alone:
            verb = "is" if alone == 1 else "are"
            notes.append(f"{alone:,} of {users:,} users of {in_words(system)} {verb} left out")
    return "; ".join(filter(None, notes)) or None


def _reading_of_missed(without: Sequence[int], system: object, baseline: object) -> str:
    """Write which list is missing: the system's, the baseline's, or both."""
    of_system, of_baseline, both = without
    counts = [
        (in_words(system), of_system - both),
        (in_words(baseline), of_baseline - both),
        ("either", both),
    ]
    return "; ".join(
        f"{NO_LIST} of {name}: {count:,} user{'s' * (count != 1)}"
        for name, count in counts
        if count
    )


def _of_all_segments(
    known: pl.DataFrame, systems: pl.DataFrame, values: UserValues, baseline: object
) -> pl.DataFrame:
    """Compare the means of each system over its own users, and name Simpson's reversals."""
    by = values.by
    model, *segments = by
    everywhere = systems.join(known.select(segments).unique(), how="cross")
    within = _changes_of_means(known, everywhere, by, baseline)
    within = within.filter(pl.len().over(model) > 1)
    signs = {"rises": pl.Expr.gt, "falls": pl.Expr.lt}
    of_each = within.group_by(model).agg(
        compared(pl.col(name), end).all(ignore_nulls=False).alias(f"{name} {sign}")
        for name in _CHANGES[1:]
        for (sign, compared), end in zip(signs.items(), (_NOTHING, -_NOTHING), strict=True)
    )
    whole = _changes_of_means(known, systems, [model], baseline)
    whole = whole.join(of_each, on=model, how="left")
    readings = [
        _reading_of_all(known, values, system=system, baseline=baseline) for system in whole[model]
    ]
    notes = [_note_of_all(known, values, system, baseline) for system in whole[model]]
    read = pl.coalesce(_reversal(" and ".join(segments)), pl.Series(readings, dtype=pl.String))
    told = pl.Series(notes, dtype=pl.String)
    return whole.with_columns(
        pl.col("users").fill_null(0),
        reading=pl.when(read.is_not_null()).then(
            pl.concat_str(read, told, separator="; ", ignore_nulls=True)
        ),
    ).drop(of_each.columns[1:])


def _note_of_all(
    known: pl.DataFrame, values: UserValues, system: object, baseline: object
) -> str | None:
    """Write how many users of all segments have no list of a system, and of the baseline."""
    model = values.by[0]
    notes: list[str] = []
    for name in (system, baseline):
        own = known.filter(pl.col(model) == pl.lit(name, dtype=known.schema[model]))
        users = own.group_by(values.user).agg(pl.col(MISSED).all())
        notes += notes_of_missed(int(users[MISSED].sum()), users.height, name)
    return "; ".join(notes) or None


def _reading_of_all(
    known: pl.DataFrame, values: UserValues, *, system: object, baseline: object
) -> str | None:
    """Test a system over all segments: paired if it has the users of the baseline."""
    from rankframe._statistics import differences

    model, *segments = values.by
    after, before = (
        known.filter(pl.col(model) == pl.lit(name, dtype=known.schema[model]))
        for name in (system, baseline)
    )
    paired = after.join(
        before, on=[*segments, values.user], suffix=" before", maintain_order="left"
    )
    names = _LEVELS[:2]
    if len(paired) < max(len(after), len(before)):
        return _unpaired_reading(
            [before[name].to_numpy() for name in names], [after[name].to_numpy() for name in names]
        )
    changes = [
        differences(paired[name].to_numpy(), paired[f"{name} before"].to_numpy()) for name in names
    ]
    return _paired_reading(changes, places_of_users(paired[values.user]))


def _changes_of_means(
    known: pl.DataFrame, groups: pl.DataFrame, by: Sequence[str], baseline: object
) -> pl.DataFrame:
    """Subtract the means of the baseline, each over its own users."""
    model, *segments = by
    means = known.group_by(by).agg(
        pl.len().cast(pl.Int64).alias("users"),
        *(order_free_mean(pl.col(name)).alias(name) for name in ("hits", *_LEVELS)),
    )
    of_baseline = pl.col(model) == pl.lit(baseline, dtype=known.schema[model])
    means = groups.join(means, on=by, how="left")
    before = means.filter(of_baseline).select(*segments, *_CHANGING)
    after = means.filter(~of_baseline)
    if segments:
        both = after.join(before, on=segments, how="left", suffix=" before")
    else:
        both = after.join(before, how="cross", suffix=" before")
    return both.with_columns(_changes()).drop("hits", *(f"{name} before" for name in _CHANGING))


def _changes() -> list[pl.Expr]:
    """Return the changes from the values of the baseline, which are called "before"."""
    return [
        (pl.col(name).cast(pl.Float64) - pl.col(f"{name} before").cast(pl.Float64)).alias(change)
        for name, change in zip(_CHANGING, _CHANGES, strict=True)
    ]


_MIX = ", each system over its own users: the mix changed"


def _reversal(segments: str) -> pl.Expr:
    """Name changes that have one sign in each segment, and the other one overall."""
    texts: list[pl.Expr] = []
    for name in _CHANGES[1:]:
        change = pl.col(name)
        better = pl.col(f"{name} rises") & (change < -_NOTHING)
        worse = pl.col(f"{name} falls") & (change > _NOTHING)
        texts.append(
            pl.when(better)
            .then(pl.lit(f"better in each {segments}, worse overall"))
            .when(worse)
            .then(pl.lit(f"worse in each {segments}, better overall"))
        )
    precision, recall = texts
    named = pl.format("precision: {}", precision), pl.format("recall: {}", recall)
    told = (
        pl.when(precision == recall)
        .then(precision)
        .otherwise(pl.concat_str(named, separator="; ", ignore_nulls=True))
    )
    known = precision.is_not_null() | recall.is_not_null()
    return pl.when(known).then(pl.concat_str(told, pl.lit(_MIX)))


_READINGS = {
    # signs of the changes of precision and recall that the tests show
    (1, 1): "better overall",
    (-1, -1): "worse overall",
    (0, 0): "no difference seen",
    (1, -1): "better for users with many relevant items, worse for users with few",
    (-1, 1): "better for users with few relevant items, worse for users with many",
    (1, 0): "higher precision, no difference seen in recall",
    (-1, 0): "lower precision, no difference seen in recall",
    (0, 1): "higher recall, no difference seen in precision",
    (0, -1): "lower recall, no difference seen in precision",
}


def _paired_reading(changes: Sequence[Array], users: Places | None = None) -> str | None:
    """Test the changes of precision and recall by the paired t, and return the reading."""
    import numpy as np

    from rankframe import _statistics as st

    if not len(changes[0]):
        return _NO_PAIR
    weights = None
    if users is not None:
        changes, weights = st.of_users(users, changes, None)
    if not any(change.any() for change in changes):
        return "unchanged"
    for change in changes:
        if why := why_undefined(change):
            return f"no test: {why}"
    matrix = np.column_stack(changes)
    columns = None if weights is None else np.column_stack([weights, weights])
    p = st.t_test(st.Sample(matrix, columns), _CONFIDENCE).p
    return _read(p, st.weighted_mean(matrix, columns))


def _unpaired_reading(before: Sequence[Array], after: Sequence[Array]) -> str | None:
    """Test by Welch's t where the users of the systems differ, and return the reading."""
    import numpy as np

    from rankframe import _statistics as st

    if not (len(before[0]) and len(after[0])):
        return "no test: a system has no user"
    if min(len(before[0]), len(after[0])) < 2:
        return "no test: one user"
    p = [st.welch(one, other) for one, other in zip(after, before, strict=True)]
    if np.isnan(p).any():
        return "no test: the users of each system have the same value"
    changes = [one.mean() - other.mean() for one, other in zip(after, before, strict=True)]
    return _read(np.array(p), np.array(changes))


def _read(p: Array, changes: Array) -> str:
    """Read two p-values after Holm's correction, and the signs of the changes."""
    from rankframe._statistics import corrected

    shown = corrected(p, "holm") < 1 - _CONFIDENCE
    precision, recall = (
        (change > 0) - (change < 0) if sure else 0
        for change, sure in zip(changes.tolist(), shown, strict=True)
    )
    return _READINGS[precision, recall]
