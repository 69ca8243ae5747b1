"""One row per user → one row per pair of systems: what a difference means, and who gained.

The rows are collected once, and SciPy computes the statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, get_args

import polars as pl

from rankframe._all_lists import OfLists, Swaps, is_of_targets, swapped
from rankframe._checks import format_row
from rankframe._evaluate import UserValues, user_values
from rankframe._frames import Frame, FrameT, column_names, to_caller_type, to_polars
from rankframe._labels import Metric, RequestedMetric, not_per_user
from rankframe._options import (
    INPUTS,
    MODEL,
    Options,
    check_choice,
    check_confidence,
    read_options,
    systems_groups,
    whole_number,
)
from rankframe._runs import as_frame
from rankframe._shares import Kind
from rankframe._summarize import (
    asked_resampling,
    check_hits,
    check_no_logarithms,
    check_numbers,
    check_sizes,
    check_total,
    given_back,
    in_logarithms,
    made_schema,
    notes_of_users,
    places_of_users,
)
from rankframe._values import TABLE, ready_values
from rankframe._weights import WEIGHT, raise_no_weight
from rankframe.errors import RankingDataError
from rankframe.metrics.core import (
    attainable_precision_at,
    attainable_recall_at,
    precision_at,
    recall_at,
)
from rankframe.metrics.trec import num_relevant

if TYPE_CHECKING:
    from rankframe._statistics import Array, Joint, Outcome, Places, Resampling, Sample

Test: TypeAlias = Literal[
    "t", "wilcoxon", "randomization", "bootstrap", "mcnemar", "tukey", "friedman"
]
Correction: TypeAlias = Literal["holm", "bonferroni", "bh"]

_UNWEIGHTED = ("wilcoxon", "mcnemar", "tukey", "friedman")

_COMPARISON = {
    "users": pl.Int64,
    **dict.fromkeys(("mean", "baseline_mean", "difference", "ci_low", "ci_high"), pl.Float64),
    **dict.fromkeys(("p_value", "p_adjusted", "effect_size"), pl.Float64),
    **dict.fromkeys(("wins", "ties", "losses"), pl.Int64),
    "note": pl.String,
}
_CHANGES = ("hits_change", "precision_change", "recall_change")
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
    resamples: int = 10_000,
    seed: int = 0,
    **options: Unpack[Options],
) -> FrameT:
    """
    Compare systems on the users that they share: differences, intervals and tests.

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
        columns, the one called ``model`` identifies the systems, else the one that has the
        ``baseline`` (of a LazyFrame, whose values are not read at the call, the first one), else
        the first one.
    total
        Add the comparison over all segments, such as folds, whose columns are null: one test of
        the differences within segments.
    baseline
        The system that the others are compared with; by default every pair is compared, each system
        with those before it in sorted order (of an Enum, in the order of its categories).
    test
        ``"t"``: paired t; ``"wilcoxon"``: signed ranks; ``"randomization"``: signs of the
        differences flipped, p = (b + 1)/(n + 1), exact if there are no more patterns than
        ``resamples``; ``"bootstrap"``: the t statistic of shifted resamples; ``"mcnemar"``: for
        values that are all 0 or 1, such as hits, McNemar's exact test. For many systems at once, on
        the users that all share: ``"tukey"``: honest significant differences; ``"friedman"``:
        Friedman's test, reported in ``note``, and Nemenyi's comparison. No test is chosen by the
        values: choose it before you see them.
    correction
        For the number of comparisons in this call: ``"holm"``, ``"bonferroni"``, ``"bh"``
        (Benjamini and Hochberg), or None; a comparison without a p-value does not count.
        ``"tukey"`` and ``"friedman"`` have their own correction, over all pairs for one metric in
        one segment. Rows of ``total`` count as comparisons.
    confidence
        The probability that an interval, by itself, covers the true difference; for ``"tukey"``,
        that all intervals of a metric do.
    resamples
        Number of sign patterns or bootstrap resamples; all metrics and systems share them.
    seed
        Seed of the resamples; one seed produces the same numbers everywhere.
    **options
        All other keywords of ``evaluate``: ``users``, ``undefined``, ``weights``…, and the columns
        that play the roles.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and pair: segments…, ``metric``, the system (in a column named
        as in ``by``), ``baseline``, ``users`` (for whom both values are defined; the other columns
        describe these users), ``mean``, ``baseline_mean``, ``difference``, its interval ``ci_low``
        to ``ci_high`` (BCa for ``"bootstrap"``, Newcombe's for ``"mcnemar"``, simultaneous for
        ``"tukey"``, else Student's), ``p_value``, ``p_adjusted``, ``effect_size`` (Cohen's d of
        paired data: mean / standard deviation of the differences), ``wins``, ``ties``, ``losses``
        (users whose value is higher, equal, lower) and ``note``, which explains why a number is
        null. With ``weights``, users of weight 0 are left out, means, interval, p-value and effect
        size are weighted, and ``note`` has the effective number of users.

        Geometric means are compared on the logarithms ln(x + ε), ``effect_size`` included. ``note``
        has the ratio of the two, (mean + ε) / (baseline_mean + ε), and its interval; ``ci_low`` and
        ``ci_high`` are what these ratios make of the baseline: (baseline_mean + ε) · (ratio − 1).

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), a metric is not a finite number, or with
        ``"mcnemar"`` neither 0 nor 1, or there are fewer than two systems.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, ``baseline`` is not a
        system or is in two columns of ``by``, a metric is neither a value per user nor a geometric
        mean, such as ``num_users``, ``weights`` are given to ``"wilcoxon"``, ``"mcnemar"``,
        ``"tukey"`` or ``"friedman"``, or a geometric mean to ``"mcnemar"``.
    ImportError
        Without SciPy: ``pip install 'rankframe[stats]'``.

    Notes
    -----
    With ``users="truth"``, a user who is missing from a run scores 0. M. D. Smucker, J. Allan and
    B. Carterette, *CIKM* 2007; T. Sakai, *SIGIR* 2006, for the bootstrap; J. Demšar, *JMLR* 7,
    2006, for Friedman and Nemenyi, here with the variance of tied ranks; R. G. Newcombe,
    *Statistics in Medicine* 17, 1998, pp. 2635–2650, method 10, for hits. Values that differ only
    from the fourteenth digit on are equal. Wilcoxon leaves out users who tie, as in SciPy.

    With weights, intervals are those of ``summarize`` for the differences, and ``"randomization"``
    flips the signs of weight · difference. In a row of ``total``, a user who is in several segments
    is one observation: the mean of the user's differences, whose weight is their number, or the sum
    of their weights. So the difference is that of ``evaluate(total=True)`` where both systems are
    defined, and users who return are not taken for several users. If their numbers differ, a test
    without a weighted form is null.

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
            frame, metrics, truth, groups, read_options(options), per_user=False, all_lists=True
        ),
        total=total,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
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
    total: bool = False,
    baseline: object = None,
    test: Test = "t",
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
) -> FrameT:
    """
    Compare systems by ready values of users, such as RMSE or watch time, as ``compare`` does.

    Parameters
    ----------
    frame
        One row per system and user (and segment): any numbers, from wherever they come, such as
        what ``per_user`` returned, joined with a table of users.
    *columns
        The columns of values, numbers or booleans; null is undefined.
    by
        The column that identifies the systems, by default ``"model"``, and segments, as in
        ``compare``.
    user
        The column of the user.
    weights
        A column, ≥ 0, that says how much each user counts: the same in the rows of all systems.
    total, baseline, test, correction, confidence, resamples, seed
        As in ``compare``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        The frame of ``compare``; ``metric`` has the names of the columns. Users who have values of
        both systems are paired; who lacks a row for one of them is left out.

    Raises
    ------
    RankingDataError
        If a column is missing or not a number, an id is null, a user has several rows of a system,
        a value is NaN or infinite, ``weights`` are null, negative, all 0 or differ between systems,
        or there are fewer than two systems.
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
        ready_values(frame, columns, groups, user, weights),
        verb="compare_values",
        total=total,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
    )
    return to_caller_type(comparison, like=frame)


def groups_by_systems(
    frame: Frame, truth: Frame | None, by: str | Sequence[str] | None, baseline: object
) -> list[str]:
    """Read ``by=`` with the column of the systems first: called model, or with the baseline."""
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
    if len(eager) < len(opened):  # ``_systems`` tells, once the values are read
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
    resamples: int,
    seed: int,
    total: bool = False,
    verb: str = "compare",
) -> pl.LazyFrame:
    """Plan a comparison of values per user."""
    check_confidence(confidence)
    check_choice("test", test, get_args(Test))
    if values.weights is not None and test in _UNWEIGHTED:
        msg = f"test={test!r} has no weighted form: take 't', 'randomization' or 'bootstrap'"
        raise ValueError(msg)
    check_choice("correction", correction, (*get_args(Correction), None))
    resampling = asked_resampling(resamples, seed)
    _check_systems(verb, values)
    _check_means(values)
    if test == "mcnemar":
        check_no_logarithms(values, "test='mcnemar'")
    check_numbers(values)
    check_total(values, total=total, least=2)
    made = made_schema(verb, values, {"metric": pl.String, "baseline": None, **_COMPARISON})
    model, *segments = values.by
    order = [*segments, "metric", model, "baseline", *_COMPARISON]
    schema = {name: made[model if name == "baseline" else name] for name in order}
    reduce = partial(
        _compared,
        values=values,
        total=total,
        baseline=baseline,
        test=test,
        correction=correction,
        confidence=confidence,
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
            test=test,
            resampling=resampling,
            schema=schema,
        )
        tables.append(of_lists.exposures(kind).map_batches(reduce_lists, schema=schema))
    asked = pl.col("metric").replace_strict(of_lists.asked, list(range(len(of_lists.asked))))
    both = pl.concat(tables).sort(*segments, asked, maintain_order=True)
    if test != "randomization":
        return both
    return both.map_batches(partial(_corrected_together, correction=correction), schema=schema)


def _compared_lists(
    lists: pl.DataFrame,
    *,
    of_lists: OfLists,
    kind: Kind,
    baseline: object,
    test: Test,
    resampling: Resampling,
    schema: Mapping[str, Any],
) -> pl.DataFrame:
    """Compare metrics of all lists: by swapping whole lists, or without a test."""
    from rankframe._statistics import progress

    model, *segments = of_lists.by
    systems = _systems(lists, model, baseline, segments).to_list()
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
                        "mean": one.system,
                        "baseline_mean": one.baseline,
                        "difference": _difference(one),
                        "p_value": one.p if times and one.metric not in moving else None,
                        "note": _note_of(one, moving, tested=times > 0),
                    }
                    for one in found
                ]
    empty = dict.fromkeys(schema)
    return pl.DataFrame([{**empty, **row} for row in made], schema=dict(schema))


def _note_of(one: Swaps, moving: Collection[str], *, tested: bool) -> str | None:
    """Return why a number is null."""
    if one.metric in moving:
        return "one number of all lists; no test: its target changes with the users"
    if not one.users:
        return "no user has a list in both"
    return None if tested else _UNTESTED


_UNTESTED = "one number of all lists: test='randomization' swaps the lists of users"


def _difference(one: Swaps) -> float | None:
    if one.system is None or one.baseline is None:
        return None
    return one.system - one.baseline


def _corrected_together(table: pl.DataFrame, *, correction: Correction | None) -> pl.DataFrame:
    """Adjust the p-values of all comparisons of a call."""
    from rankframe._statistics import corrected

    p = table["p_value"].fill_null(float("nan")).to_numpy()
    adjusted = pl.Series("p_adjusted", corrected(p, correction)).fill_nan(None)
    return table.with_columns(adjusted)


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
        The greatest number of bins. Users of equal R, the number of their relevant items, are in
        the same bin.
    **options
        All other keywords of ``per_user``: ``users``, ``relevant_at``…, and the columns that play
        the roles.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per system, segment and bin, and a last one per system and segment for all users,
        whose bounds are null: by…, ``relevant_low`` and ``relevant_high`` (least and greatest R),
        ``users``, the mean ``hits_change``, ``precision_change`` and ``recall_change``, and their
        ``reading``: "better overall", "worse overall", "unchanged", "better for users with few
        relevant items, worse for users with many", or "better for users with many relevant items,
        worse for users with few". Then the system's mean ``precision`` and ``recall``, and the best
        means that the users' R allow, ``attainable_precision`` and ``attainable_recall``.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), or there are fewer than two systems.
    ValueError
        If k or ``bins`` is not an integer ≥ 1, ``baseline`` is not a system, an option is unknown
        or out of range, or ``weights`` are given, since bins have no weighted form.

    Notes
    -----
    For one user recall@k and precision@k rise and fall together, since both count the same hits.
    Their means can move in opposite directions: mean recall gives more weight to users with few
    relevant items, mean precision to those with many.

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
    >>> change["reading"].last()
    'better for users with few relevant items, worse for users with many'
    """
    frame, by = as_frame(frame, by)
    k, bins = whole_number("k", k), whole_number("bins", bins)
    if baseline is None:
        msg = "diagnose needs a system to compare with: name it in baseline="
        raise ValueError(msg)
    measures = (precision_at, recall_at, attainable_precision_at, attainable_recall_at)
    levels = [measure(k).alias(name) for measure, name in zip(measures, _LEVELS, strict=True)]
    metrics = [num_relevant().alias("total"), *levels]
    if options.get("weights") is not None:
        msg = "diagnose describes users in bins, which have no weighted form: leave out weights="
        raise ValueError(msg)
    groups = groups_by_systems(frame, truth, by, baseline)
    values = user_values(frame, metrics, truth, groups, read_options(options))
    _check_systems("diagnose", values)
    schema = made_schema("diagnose", values, _DIAGNOSIS)
    reduce = partial(_diagnosed, values=values, k=k, baseline=baseline, bins=bins)
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
    """Check that no value is 0 whose logarithm is to be compared."""
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


def _check_systems(verb: str, values: UserValues) -> None:
    if not values.by:
        msg = f"{verb} needs the column that identifies the systems: name it in by="
        raise ValueError(msg)


# ------------------------------------------------------------------ one row per user → per pair


class _Matrix(NamedTuple):
    """A metric in a segment: one row per user, one column per system, NaN where undefined."""

    segment: int
    metric: str
    values: Array
    weights: Array | None = None
    users: Places | None = None  # of all segments together: whose row it is


class _Pair(NamedTuple):
    """A system and its baseline on the users that they share."""

    segment: int
    metric: str
    system: int
    baseline: int
    of_system: Array
    of_baseline: Array
    difference: Array
    weights: Array | None
    returning: int  # rows beyond one per user, which were merged

    @property
    def sample(self) -> Sample:
        """The differences as a sample of users."""
        from rankframe._statistics import Sample

        return Sample(self.difference, self.weights)


class _Tested(NamedTuple):
    """Numbers and a note per pair."""

    outcome: Outcome
    adjusted: Array
    notes: list[str | None]


def _compared(
    rows: pl.DataFrame,
    *,
    values: UserValues,
    total: bool,
    baseline: object,
    test: Test,
    correction: Correction | None,
    confidence: float,
    resampling: Resampling,
) -> pl.DataFrame:
    check_sizes(rows, values)
    if test == "mcnemar":
        check_hits(rows, values, "test='mcnemar'")
    rows = in_logarithms(rows, values.requested)
    _check_logarithms(rows, values)
    model, *segments = values.by
    systems = _systems(rows, model, baseline, segments)
    joint = test in ("tukey", "friedman")
    matrices = list(_matrices(rows, values, systems, complete=joint, total=total))
    places = _pairs_of_places(systems.to_list(), baseline)
    pairs = [_pair(matrix, *pair, values.weights) for matrix in matrices for pair in places]
    if joint:
        tested = _test_jointly(matrices, pairs, test, correction, confidence)
    else:
        tested = _test_pairs(pairs, test, correction, confidence, resampling)
    notes = [
        _with_notes(note, pair, weighted=values.weights is not None)
        for note, pair in zip(tested.notes, pairs, strict=True)
    ]
    of_segments = rows.select(segments).unique().sort(segments) if segments else pl.DataFrame()
    if total:
        of_segments = pl.concat([of_segments, of_segments.clear(1)])
    return (
        pl.DataFrame([_numbers(pair) for pair in pairs])
        .select(
            *(of_segments[name].gather([pair.segment for pair in pairs]) for name in segments),
            pl.Series("metric", [pair.metric for pair in pairs]),
            systems.gather([pair.system for pair in pairs]).alias(model),
            systems.gather([pair.baseline for pair in pairs]).alias("baseline"),
            *("users", "mean", "baseline_mean", "difference"),
            pl.Series("ci_low", tested.outcome.low),
            pl.Series("ci_high", tested.outcome.high),
            pl.Series("p_value", tested.outcome.p),
            pl.Series("p_adjusted", tested.adjusted),
            *("effect_size", "wins", "ties", "losses"),
            pl.Series("note", notes, pl.String),
        )
        .with_columns(pl.selectors.float().exclude(segments, model, "baseline").fill_nan(None))
        .pipe(_with_ratios, values.requested, confidence)
    )


def _with_ratios(
    table: pl.DataFrame, requested: Sequence[RequestedMetric], confidence: float
) -> pl.DataFrame:
    """Give what was computed of logarithms back on the scale of the metric, and note the ratio."""
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
    """Pair the places of the systems: with the baseline, or each with those before it."""
    places = range(len(systems))
    if baseline is None:
        return [(place, other) for other in places for place in places[other + 1 :]]
    of_baseline = systems.index(baseline)
    return [(place, of_baseline) for place in places if place != of_baseline]


def _matrices(
    rows: pl.DataFrame, values: UserValues, systems: pl.Series, *, complete: bool, total: bool
) -> Iterator[_Matrix]:
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
        placed = group.join(users.with_row_index("__rankframe_row"), on=keys)
        placed = placed.join(columns, on=model)
        cube = np.full((len(users), len(systems), len(names)), np.nan)
        where = placed["__rankframe_row"].to_numpy(), placed["__rankframe_column"].to_numpy()
        cube[where] = placed.select(pl.col(names).cast(pl.Float64)).to_numpy()
        weights = None if values.weights is None else users[WEIGHT].to_numpy()
        whose = places_of_users(users[values.user]) if pooled else None
        for place, name in enumerate(names):
            matrix = _Matrix(segment, name, cube[:, :, place], weights, whose)
            yield _complete(matrix) if complete else matrix


def _users_of(group: pl.DataFrame, keys: Sequence[str], values: UserValues) -> pl.DataFrame:
    """Give each user of a segment once, with the weight."""
    weight = [] if values.weights is None else [WEIGHT]
    users = group.drop_nulls(values.user).select(*keys, *weight).unique().sort(keys)
    twice = users.filter(pl.struct(keys).is_duplicated()).select(keys).head(1)
    if not twice.is_empty():
        msg = (
            f"column {values.weights!r}: several weights of one user: a pair of systems needs one. "
            f"Offending row: {format_row(twice)}"
        )
        raise RankingDataError(msg)
    return users


def _complete(matrix: _Matrix) -> _Matrix:
    """Keep the users for whom every system is defined."""
    import numpy as np

    keep = ~np.isnan(matrix.values).any(axis=1)
    users = None if matrix.users is None else matrix.users[keep]
    return matrix._replace(values=matrix.values[keep], users=users)


def _pair(matrix: _Matrix, system: int, baseline: int, column: str | None) -> _Pair:
    """Pair two systems; ``column`` is the name of the weights."""
    import numpy as np

    from rankframe._statistics import differences, of_users, rounded, shares

    weights = matrix.weights
    of_system, of_baseline = matrix.values[:, system], matrix.values[:, baseline]
    counts = ~np.isnan(of_system - of_baseline)
    if column is not None and weights is not None:
        if counts.any() and not (counts & (weights > 0)).any():
            raise_no_weight(column, matrix.metric)
        counts &= weights > 0
        weights = shares(weights[counts])
    of_system, of_baseline = of_system[counts], of_baseline[counts]
    change = differences(of_system, of_baseline)
    number = len(change)
    if matrix.users is not None and number:
        merged, weights = of_users(matrix.users[counts], [of_system, of_baseline, change], weights)
        of_system, of_baseline, change = merged
        change = change if len(change) == number else rounded(change)
    return _Pair(
        segment=matrix.segment,
        metric=matrix.metric,
        system=system,
        baseline=baseline,
        of_system=of_system,
        of_baseline=of_baseline,
        difference=change,
        weights=weights,
        returning=number - len(change),
    )


def _test_pairs(
    pairs: Sequence[_Pair],
    test: Test,
    correction: Correction | None,
    confidence: float,
    resampling: Resampling,
) -> _Tested:
    from rankframe import _statistics as st

    if test == "mcnemar":
        return _test_hits(pairs, correction, confidence)

    def reduce(sample: Sample, advance: st.Advance) -> Outcome:
        if test == "randomization":
            return st.randomization(sample, confidence, resampling, advance)
        if test == "bootstrap":
            return st.bootstrap(sample, confidence, resampling, advance)
        return (st.wilcoxon if test == "wilcoxon" else st.t_test)(sample, confidence)

    outcome = st.in_matrices([pair.sample for pair in pairs], reduce, resampling.times)
    notes = [_reason(pair.difference) for pair in pairs]
    if test == "wilcoxon":
        notes = [
            note if pair.weights is None else note or _UNEVEN
            for note, pair in zip(notes, pairs, strict=True)
        ]
    return _Tested(outcome, st.corrected(outcome.p, correction), notes)


def _test_hits(pairs: Sequence[_Pair], correction: Correction | None, confidence: float) -> _Tested:
    import numpy as np

    from rankframe import _statistics as st

    outcome = st.Outcome(*(np.full(len(pairs), nan) for _ in st.Outcome._fields))
    notes = [_reason(pair.difference) for pair in pairs]
    for place, pair in enumerate(pairs):
        hits = np.concatenate([pair.of_system, pair.of_baseline])
        if pair.weights is not None or not st.are_hits(hits):
            notes[place] = _NO_HITS
        elif len(hits):
            found = st.mcnemar(pair.of_system, pair.of_baseline, confidence)
            outcome.p[place], outcome.low[place], outcome.high[place] = found
    return _Tested(outcome, st.corrected(outcome.p, correction), notes)


_NO_HITS = "no test: users are in several segments, and the mean of their values is no hit"


def _test_jointly(
    matrices: Sequence[_Matrix],
    pairs: Sequence[_Pair],
    test: Test,
    correction: Correction | None,
    confidence: float,
) -> _Tested:
    from rankframe import _statistics as st

    joint = {
        (matrix.segment, matrix.metric): _family(matrix, test, confidence) for matrix in matrices
    }
    tested = _test_pairs(pairs, "t", None, confidence, st.Resampling(0, 0))
    for place, pair in enumerate(pairs):
        family, systems = joint[pair.segment, pair.metric], (pair.system, pair.baseline)
        tested.outcome.p[place] = family.p(systems)
        alone = correction is None
        tested.adjusted[place] = family.p(systems) if alone else family.adjusted(systems)
        if test == "tukey" and len(pair.difference):
            tested.outcome.low[place] = pair.difference.mean() - family.margin
            tested.outcome.high[place] = pair.difference.mean() + family.margin
        notes = [note for note in (family.note, tested.notes[place]) if note]
        tested.notes[place] = "; ".join(notes) or None
    return tested


_UNEVEN = "no test: it has no weighted form, and users are in different numbers of segments"


def _family(matrix: _Matrix, test: Test, confidence: float) -> Joint:
    """Test all systems of a segment at once."""
    import numpy as np

    from rankframe import _statistics as st

    values = matrix.values
    if matrix.users is not None and len(values):
        columns, weights = st.of_users(matrix.users, list(values.T), None)
        if weights is not None:
            return st.no_joint(values.shape[1], _UNEVEN)
        values = np.column_stack(columns)
    return st.tukey(values, confidence) if test == "tukey" else st.friedman(values)


def _with_notes(note: str | None, pair: _Pair, *, weighted: bool) -> str | None:
    """Add to what explains a null of how many users the numbers are made."""
    weights = pair.weights if weighted else None
    more = notes_of_users(pair.difference, weights, pair.returning)
    return "; ".join([*([note] if note else []), *more]) or None


def _reason(difference: Array) -> str | None:
    """Return why a number is undefined."""
    if len(difference) < 2:
        return "one user" if len(difference) else "no user has a value in both"
    if not difference.any():
        return "no user differs"
    return None if difference.min() < difference.max() else "every user differs by the same amount"


def _numbers(pair: _Pair) -> dict[str, float]:
    """Describe a pair without a test."""
    from rankframe._statistics import deviation, weighted_mean

    change, weights = pair.difference, pair.weights
    has_users, varied = len(change) > 0, _reason(change) is None
    difference = float(weighted_mean(change, weights)) if has_users else nan
    return {
        "users": len(change),
        "mean": float(weighted_mean(pair.of_system, weights)) if has_users else nan,
        "baseline_mean": float(weighted_mean(pair.of_baseline, weights)) if has_users else nan,
        "difference": difference,
        "effect_size": difference / float(deviation(change, weights)) if varied else nan,
        "wins": (change > 0).sum(),
        "ties": (change == 0).sum(),
        "losses": (change < 0).sum(),
    }


# ------------------------------------------------------------------ one row per user → per bin


def _diagnosed(
    rows: pl.DataFrame, *, values: UserValues, k: int, baseline: object, bins: int
) -> pl.DataFrame:
    model, *segments = values.by
    _systems(rows, model, baseline, segments)
    of_baseline = pl.col(model) == pl.lit(baseline, dtype=rows.schema[model])
    users = [*segments, values.user]
    known = rows.filter(pl.col("total") > 0)
    before = known.filter(of_baseline).drop(model)
    paired = known.filter(~of_baseline).join(before, on=users, suffix=" before")
    smaller = pl.col("total before").rank("min").cast(pl.Int64) - 1
    place = (smaller * bins // pl.len()).over(values.by).alias("__rankframe_bin")
    bounds = pl.col("total before").min(), pl.col("total before").max()
    precision, recall = (pl.col(name) - pl.col(f"{name} before") for name in _LEVELS[:2])
    changes = (precision * k, precision, recall)
    means = [change.mean().alias(name) for change, name in zip(changes, _CHANGES, strict=True)]
    means += [pl.col(name).mean() for name in _LEVELS]
    counted = [pl.len().cast(pl.Int64).alias("users"), *means]
    in_bins = paired.group_by(*values.by, place).agg(
        bounds[0].alias("relevant_low"), bounds[1].alias("relevant_high"), *counted
    )
    systems = rows.filter(~of_baseline).select(values.by).unique()
    overall = systems.join(paired.group_by(values.by).agg(counted), on=values.by, how="left")
    table = pl.concat([in_bins, overall], how="diagonal_relaxed").with_columns(
        pl.col("users").fill_null(0), reading=_reading()
    )
    table = table.sort(*values.by, "__rankframe_bin", nulls_last=True)
    return table.select(*values.by, *(pl.col(name).cast(_DIAGNOSIS[name]) for name in _DIAGNOSIS))


def _reading() -> pl.Expr:
    """Read the signs of both changes: if they differ, users with few and with many items differ."""
    precision, recall = (
        pl.when(pl.col(name).abs() > 1e-12).then(pl.col(name).sign()).otherwise(0.0 * pl.col(name))
        # hits have the sign of precision, and do not look like rounding errors if k is large
        for name in ("hits_change", "recall_change")
    )
    return (
        pl.when(precision > recall)
        .then(pl.lit("better for users with many relevant items, worse for users with few"))
        .when(precision < recall)
        .then(pl.lit("better for users with few relevant items, worse for users with many"))
        .when(precision > 0)
        .then(pl.lit("better overall"))
        .when(precision < 0)
        .then(pl.lit("worse overall"))
        .when(precision == 0)
        .then(pl.lit("unchanged"))
    )
