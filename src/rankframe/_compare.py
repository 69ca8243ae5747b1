"""One row per user → one row per pair of systems: what a difference means, and who gained.

The rows are collected once, and SciPy computes the statistics.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from math import isfinite, isnan, nan
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Unpack, get_args

import polars as pl

from rankframe._all_lists import OfLists, Swaps, is_of_targets, swapped
from rankframe._evaluate import UserValues, user_values
from rankframe._frames import Frame, FrameT, to_caller_type
from rankframe._labels import Metric
from rankframe._options import (
    INPUTS,
    Options,
    check_choice,
    check_confidence,
    read_options,
    whole_number,
)
from rankframe._shares import Kind
from rankframe._summarize import asked_resampling, check_numbers, check_sizes, made_schema
from rankframe.errors import RankingDataError
from rankframe.metrics.core import (
    attainable_precision_at,
    attainable_recall_at,
    precision_at,
    recall_at,
)
from rankframe.metrics.trec import num_relevant

if TYPE_CHECKING:
    from rankframe._statistics import Array, Outcome, Resampling

Test: TypeAlias = Literal[
    "t", "wilcoxon", "randomization", "bootstrap", "tukey", "randomized_tukey", "friedman"
]
Correction: TypeAlias = Literal["holm", "bonferroni", "bh"]

#: Tests of all systems at once, which have their own correction.
JOINT_TESTS = ("tukey", "randomized_tukey", "friedman")

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
    frame: FrameT,
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
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
        A judged table, or with ``truth`` a run.
    *metrics
        Labels or expressions, as in ``per_user``.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems; further columns are segments, and the systems are
        compared in each: ``by=["model", "country"]``.
    baseline
        The system that the others are compared with; by default every pair is compared, each system
        with those before it in sorted order (of an Enum, in the order of its categories).
    test
        ``"t"``: paired t; ``"wilcoxon"``: signed ranks; ``"randomization"``: signs of the
        differences flipped, p = (b + 1)/(n + 1), exact if there are no more patterns than
        ``resamples``; ``"bootstrap"``: the t statistic of shifted resamples. For many systems at
        once, on the users that all share: ``"tukey"``: honest significant differences;
        ``"randomized_tukey"``: each user's values permuted over the systems, and every difference
        compared with the range of the means, exact as above; ``"friedman"``: Friedman's test,
        reported in ``note``, and Nemenyi's comparison.
    correction
        For the number of comparisons in this call: ``"holm"``, ``"bonferroni"``, ``"bh"``
        (Benjamini and Hochberg), or None; a comparison without a p-value does not count.
        ``"tukey"``, ``"randomized_tukey"`` and ``"friedman"`` have their own correction, over all
        pairs for one metric in one segment.
    confidence
        The probability that an interval, by itself, covers the true difference; for ``"tukey"``
        and ``"randomized_tukey"``, that all intervals of a metric do.
    resamples
        Number of sign patterns, permutations or bootstrap resamples; all metrics and systems share
        them.
    seed
        Seed of the resamples; one seed produces the same numbers everywhere.
    **options
        All other keywords of ``per_user``: ``users``, ``undefined``, ``relevant_at``…, and the
        columns that play the roles.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and pair: segments…, ``metric``, the system (in a column named
        as in ``by``), ``baseline``, ``users`` (for whom both values are defined; the other columns
        describe these users), ``mean``, ``baseline_mean``, ``difference``, its interval ``ci_low``
        to ``ci_high`` (BCa for ``"bootstrap"``, simultaneous for ``"tukey"`` and
        ``"randomized_tukey"``, else Student's), ``p_value``, ``p_adjusted``, ``effect_size``
        (Cohen's d of paired data: mean / standard deviation of the differences), ``wins``,
        ``ties``, ``losses`` (users whose value is higher, equal, lower) and ``note``, which
        explains why a number is null.

    Raises
    ------
    RankingDataError
        If a table breaks a rule (see ``check``), a metric is not a finite number, or there are
        fewer than two systems.
    ValueError
        If a metric, a parameter or an option is unknown or out of range, ``baseline`` is not a
        system, or a metric is not a value per user, such as ``gmap``.
    ImportError
        Without SciPy: ``pip install 'rankframe[stats]'``.

    Notes
    -----
    With ``users="truth"``, a user who is missing from a run scores 0. M. D. Smucker, J. Allan and
    B. Carterette, *CIKM* 2007; T. Sakai, *SIGIR* 2006, for the bootstrap; J. Demšar, *JMLR* 7,
    2006, for Friedman and Nemenyi, here with the variance of tied ranks; B. Carterette, *ACM TOIS*
    30(1), 2012, for the randomized Tukey test. Values that differ only from the fourteenth digit on
    are equal. Wilcoxon leaves out users who tie, as in SciPy.

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
    comparison = comparison_of(
        user_values(frame, metrics, truth, by, read_options(options), all_lists=True),
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


def comparison_of(
    values: UserValues,
    *,
    baseline: object,
    test: Test,
    correction: Correction | None,
    confidence: float,
    resamples: int,
    seed: int,
) -> pl.LazyFrame:
    """Plan a comparison of values per user."""
    check_confidence(confidence)
    check_choice("test", test, get_args(Test))
    check_choice("correction", correction, (*get_args(Correction), None))
    resampling = asked_resampling(resamples, seed)
    _check_systems("compare", values)
    check_numbers(values)
    made = made_schema("compare", values, {"metric": pl.String, "baseline": None, **_COMPARISON})
    model, *segments = values.by
    order = [*segments, "metric", model, "baseline", *_COMPARISON]
    schema = {name: made[model if name == "baseline" else name] for name in order}
    reduce = partial(
        _compared,
        values=values,
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
    systems = _systems(lists, model, baseline).to_list()
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
    frame: FrameT,
    /,
    k: int,
    *,
    truth: Frame | None = None,
    by: str | Sequence[str] = "model",
    baseline: object,
    bins: int = 4,
    **options: Unpack[Options],
) -> FrameT:
    """
    Show which users gained when mean recall@k and mean precision@k change: users in bins of R.

    Parameters
    ----------
    frame
        A judged table, or with ``truth`` a run.
    k
        Cut-off.
    truth
        The truth that judges the run.
    by
        The column that identifies the systems; further columns are segments.
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
        If k or ``bins`` is not an integer ≥ 1, ``baseline`` is not a system, or an option is
        unknown or out of range.

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
    k, bins = whole_number("k", k), whole_number("bins", bins)
    if baseline is None:
        msg = "diagnose needs a system to compare with: name it in baseline="
        raise ValueError(msg)
    measures = (precision_at, recall_at, attainable_precision_at, attainable_recall_at)
    levels = [measure(k).alias(name) for measure, name in zip(measures, _LEVELS, strict=True)]
    metrics = [num_relevant().alias("total"), *levels]
    values = user_values(frame, metrics, truth, by, read_options(options))
    _check_systems("diagnose", values)
    schema = made_schema("diagnose", values, _DIAGNOSIS)
    reduce = partial(_diagnosed, values=values, k=k, baseline=baseline, bins=bins)
    diagnosis = values.rows.map_batches(reduce, schema=schema)
    return to_caller_type(
        diagnosis, like=frame, beside=(truth, *(options.get(name) for name in INPUTS))
    )


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


class _Pair(NamedTuple):
    """A system and its baseline on the users that they share."""

    segment: int
    metric: str
    system: int
    baseline: int
    of_system: Array
    of_baseline: Array
    difference: Array


class _Tested(NamedTuple):
    """Numbers and a note per pair."""

    outcome: Outcome
    adjusted: Array
    notes: list[str | None]


def _compared(
    rows: pl.DataFrame,
    *,
    values: UserValues,
    baseline: object,
    test: Test,
    correction: Correction | None,
    confidence: float,
    resampling: Resampling,
) -> pl.DataFrame:
    check_sizes(rows, values)
    model, *segments = values.by
    systems = _systems(rows, model, baseline)
    joint = test in JOINT_TESTS
    matrices = list(_matrices(rows, values, systems, complete=joint))
    places = _pairs_of_places(systems.to_list(), baseline)
    pairs = [_pair(matrix, *pair) for matrix in matrices for pair in places]
    if joint:
        tested = _test_jointly(matrices, pairs, test, correction, confidence, resampling)
    else:
        tested = _test_pairs(pairs, test, correction, confidence, resampling)
    of_segments = rows.select(segments).unique().sort(segments) if segments else pl.DataFrame()
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
            pl.Series("note", tested.notes, pl.String),
        )
        .with_columns(pl.selectors.float().exclude(segments, model, "baseline").fill_nan(None))
    )


def _systems(rows: pl.DataFrame, model: str, baseline: object) -> pl.Series:
    systems = rows[model].unique().sort()
    names = systems.to_list()
    if len(names) < 2:
        msg = f"column {model!r}: only one system, {names[0]!r}: a comparison needs two"
        raise RankingDataError(msg)
    if isinstance(baseline, pl.Expr | pl.Series):
        msg = f"baseline must be the name of a system, not {type(baseline).__name__}"
        raise TypeError(msg)
    if baseline is not None and baseline not in names:
        msg = f"baseline must be one of {', '.join(map(repr, names[:10]))}, not {baseline!r}"
        raise ValueError(msg)
    return systems


def shared_matrices(
    rows: pl.DataFrame, values: UserValues
) -> tuple[pl.Series, list[tuple[int, str, Array]]]:
    """Return the systems, and per segment and metric the values of users whom all systems share."""
    check_sizes(rows, values)
    systems = _systems(rows, values.by[0], None)
    return systems, list(_matrices(rows, values, systems, complete=True))


def _pairs_of_places(systems: list[object], baseline: object) -> list[tuple[int, int]]:
    """Pair the places of the systems: with the baseline, or each with those before it."""
    places = range(len(systems))
    if baseline is None:
        return [(place, other) for other in places for place in places[other + 1 :]]
    of_baseline = systems.index(baseline)
    return [(place, of_baseline) for place in places if place != of_baseline]


def _matrices(
    rows: pl.DataFrame, values: UserValues, systems: pl.Series, *, complete: bool
) -> Iterator[_Matrix]:
    """Make matrices of the rows; ``complete`` drops users for whom a system is undefined."""
    import numpy as np

    model, *segments = values.by
    names = [metric.name for metric in values.requested]
    columns = systems.to_frame().with_row_index("__rankframe_column")
    rows = rows.sort(segments) if segments else rows
    groups = rows.partition_by(segments, maintain_order=True) if segments else [rows]
    for segment, group in enumerate(groups):
        users = group.select(values.user).drop_nulls().unique().sort(values.user)
        placed = group.join(users.with_row_index("__rankframe_row"), on=values.user)
        placed = placed.join(columns, on=model)
        cube = np.full((len(users), len(systems), len(names)), np.nan)
        where = placed["__rankframe_row"].to_numpy(), placed["__rankframe_column"].to_numpy()
        cube[where] = placed.select(pl.col(names).cast(pl.Float64)).to_numpy()
        for place, name in enumerate(names):
            matrix = cube[:, :, place]
            keep = ~np.isnan(matrix).any(axis=1) if complete else slice(None)
            yield _Matrix(segment, name, matrix[keep])


def _pair(matrix: _Matrix, system: int, baseline: int) -> _Pair:
    import numpy as np

    from rankframe._statistics import differences

    of_system, of_baseline = matrix.values[:, system], matrix.values[:, baseline]
    shared = ~np.isnan(of_system - of_baseline)
    of_system, of_baseline = of_system[shared], of_baseline[shared]
    change = differences(of_system, of_baseline)
    return _Pair(matrix.segment, matrix.metric, system, baseline, of_system, of_baseline, change)


def _test_pairs(
    pairs: Sequence[_Pair],
    test: Test,
    correction: Correction | None,
    confidence: float,
    resampling: Resampling,
) -> _Tested:
    from rankframe import _statistics as st

    def reduce(matrix: Array, advance: st.Advance) -> Outcome:
        if test == "randomization":
            return st.randomization(matrix, confidence, resampling, advance)
        if test == "bootstrap":
            return st.bootstrap(matrix, confidence, resampling, advance)
        return (st.wilcoxon if test == "wilcoxon" else st.t_test)(matrix, confidence)

    vectors = [pair.difference for pair in pairs]
    outcome = st.in_matrices(vectors, reduce, resampling.times)
    notes = [_reason(vector) for vector in vectors]
    return _Tested(outcome, st.corrected(outcome.p, correction), notes)


def _test_jointly(
    matrices: Sequence[_Matrix],
    pairs: Sequence[_Pair],
    test: Test,
    correction: Correction | None,
    confidence: float,
    resampling: Resampling,
) -> _Tested:
    from rankframe import _statistics as st

    def tested_jointly(matrix: Array, advance: st.Advance) -> st.Joint | st.Permuted:
        if test == "randomized_tukey":
            return st.randomized_tukey(matrix, confidence, resampling, advance)
        return st.tukey(matrix, confidence) if test == "tukey" else st.friedman(matrix)

    times = resampling.times if test == "randomized_tukey" else 0
    with st.progress(times * len(matrices)) as advance:
        joint = {
            (matrix.segment, matrix.metric): tested_jointly(matrix.values, advance)
            for matrix in matrices
        }
    tested = _test_pairs(pairs, "t", None, confidence, st.Resampling(0, 0))
    for place, pair in enumerate(pairs):
        family, systems = joint[pair.segment, pair.metric], (pair.system, pair.baseline)
        tested.outcome.p[place] = family.p(systems)
        alone = correction is None
        tested.adjusted[place] = family.p(systems) if alone else family.adjusted(systems)
        if not isnan(family.margin):
            margin = family.margin if isfinite(family.margin) else nan
            tested.outcome.low[place] = pair.difference.mean() - margin
            tested.outcome.high[place] = pair.difference.mean() + margin
        notes = [note for note in (family.note, tested.notes[place]) if note]
        tested.notes[place] = "; ".join(notes) or None
    return tested


def _reason(difference: Array) -> str | None:
    """Return why a number is undefined."""
    if len(difference) < 2:
        return "one user" if len(difference) else "no user has a value in both"
    if not difference.any():
        return "no user differs"
    return None if difference.min() < difference.max() else "every user differs by the same amount"


def _numbers(pair: _Pair) -> dict[str, float]:
    """Describe a pair without a test."""
    change = pair.difference
    has_users, varied = len(change) > 0, _reason(change) is None
    return {
        "users": len(change),
        "mean": pair.of_system.mean() if has_users else nan,
        "baseline_mean": pair.of_baseline.mean() if has_users else nan,
        "difference": change.mean() if has_users else nan,
        "effect_size": change.mean() / change.std(ddof=1) if varied else nan,
        "wins": (change > 0).sum(),
        "ties": (change == 0).sum(),
        "losses": (change < 0).sum(),
    }


# ------------------------------------------------------------------ one row per user → per bin


def _diagnosed(
    rows: pl.DataFrame, *, values: UserValues, k: int, baseline: object, bins: int
) -> pl.DataFrame:
    model, *segments = values.by
    _systems(rows, model, baseline)
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
