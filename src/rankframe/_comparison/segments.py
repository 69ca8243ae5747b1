"""Compares segments: ``Values`` in, a row per segment, metric and pair, and the test of all out."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import isnan, nan
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import comparison, notes, summaries, system_pairs, trials
from rankframe._comparison.decision import Estimate
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import np, segment_statistics, statistics
from rankframe._comparison.system_pairs import Pair, Paired
from rankframe._comparison.trials import Correction, Trial
from rankframe._evaluation import user_columns
from rankframe._evaluation.values import Values
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, rules, run_dicts
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Advance, Sample

SHRUNKEN = ("shrunken", "shrunken_low", "shrunken_high")
#: The last four columns are the answer, which narrow prints show: add others before.
_MADE = {
    "users": pl.Int64,
    "difference": pl.Float64,
    "rest_users": pl.Int64,
    **dict.fromkeys(("rest_difference", "f", "p_value", *SHRUNKEN), pl.Float64),
    "note": pl.String,
    **dict.fromkeys(("contrast", "ci_low", "ci_high", "p_adjusted"), pl.Float64),
}


@adapters.takes_any_frame
def compare_segments(
    frame: Runs[FrameT],
    /,
    *metrics: Metric,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    correction: Correction | None = "holm",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Test whether the difference of two systems varies between segments, and in which.

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
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default every pair is compared.
    correction
        ``"holm"``, ``"bh"`` or None: tests of segments are corrected for the number of segments,
        within a metric and pair, and tests of all segments for the number of metrics and pairs.
    confidence
        The probability that a single interval covers the true value.
    resamples
        The number of resamples, for the tests and intervals that draw them.
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
        One row per segment, metric and pair, and a last one per metric and pair for all segments,
        with null segments:

        - the system (in the column of the model), segments…, ``metric``, ``baseline``
        - ``users``, and ``difference``: their mean difference
        - ``rest_users``, ``rest_difference``: those of the users of all other segments
        - ``f``, ``p_value``
        - ``shrunken``: the difference, pulled toward that of all segments as far as chance explains
          its distance; its interval is ``shrunken_low`` to ``shrunken_high``
        - ``note``: why a number is null
        - ``contrast``: difference − rest_difference; its interval is ``ci_low`` to ``ci_high``
        - ``p_adjusted``

        ``shrunken`` is the better guess of what a segment's next users will see: the lowest of many
        differences is mostly chance. A truly bad segment is pulled, too: ``p_adjusted`` decides.
        The shrunken columns are null in the row of all segments, in a segment without a user, and
        where no segment has a spread.

        In the row of all segments, ``p_value`` tests whether any of the differences differ, by
        permutation (``f`` is Welch's F); in the row of a segment, whether it differs from the rest
        (Welch's t). Read the row of all segments first: one of many segments stands out by chance.

    Raises
    ------
    RankingDataError
        If there are fewer than two segments, or a user or a cluster is in several segments.
    ValueError
        If ``by`` has no segments.

    Notes
    -----
    B. L. Welch, *Biometrika* 38, 1951, for F, applied to the users' differences. p is (b + 1)/(n +
    1), where F is as great in b of n permutations of the users (or clusters) over the segments,
    which assume that under equal means the differences of all segments have one distribution. n is
    ``resamples``; of more than 10⁸ / ``resamples`` users, n is 10⁸ / users, or 999, and ``note``
    says so. Segments with one user, or in which every user differs by the same amount, have no
    variance, and F leaves them out. With weights or clusters, the squared errors and degrees of
    freedom are those of ``compare``. With two segments, both contrasts are the same test, which is
    not corrected.

    ``shrunken`` = μ + (difference − μ) · τ²/(τ² + s²), where s is the standard error, τ² the
    variance of the true differences by R. C. Paule and J. Mandel, *J. Research of the National
    Bureau of Standards* 87, 1982, and μ the mean with weights 1/(τ² + s²). Each s² is averaged with
    that of the pooled variance of the users of all segments, as f s² + 30 s_pooled² over f + 30 (f:
    degrees of freedom), so that a segment of one user, or of equal differences, has a value. The
    intervals allow for the estimated μ and τ². They cover on average over the segments, not each
    segment: in simulations 92% to 100%, with the lowest coverage where few users of small segments
    differ. They cover one large segment less often, where τ is as small as its s.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 2, 3, 4, 5, 6] * 2, "item": [7] * 12})
    >>> ranks = [2, 2, 4, 1, 1, 2, 1, 1, 1, 2, 1, 4]
    >>> run = run.with_columns(rank=pl.Series(ranks), model=pl.Series(["old"] * 6 + ["new"] * 6))
    >>> truth = pl.DataFrame({"user": range(1, 7), "item": [7] * 6, "land": ["no", "se"] * 3})
    >>> found = rf.stats.compare_segments(
    ...     run, "rr", truth=truth, by=["model", "land"], baseline="old"
    ... )
    >>> found.select("land", "difference", "contrast", "f", "p_value")
    shape: (3, 5)
    ┌──────┬────────────┬──────────┬──────┬──────────┐
    │ land ┆ difference ┆ contrast ┆ f    ┆ p_value  │
    │ ---  ┆ ---        ┆ ---      ┆ ---  ┆ ---      │
    │ str  ┆ f64        ┆ f64      ┆ f64  ┆ f64      │
    ╞══════╪════════════╪══════════╪══════╪══════════╡
    │ no   ┆ 0.416667   ┆ 0.5      ┆ null ┆ 0.256709 │
    │ se   ┆ -0.083333  ┆ -0.5     ┆ null ┆ 0.256709 │
    │ null ┆ 0.166667   ┆ null     ┆ 1.8  ┆ 0.30217  │
    └──────┴────────────┴──────────┴──────┴──────────┘
    """
    trial = Trial(
        baseline,
        correction=correction,
        confidence=confidence,
        resamples=resamples,
        seed=seed,
        cluster=cluster,
        total=True,
    )
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="compare_segments")
    summaries.check_trial(trial)
    question = comparison.ask_systems(frame, metrics, truth, by, options, trial, per_user=True)
    return summaries.described(frame, question, partial(_plan_of, trial=trial))


def rows_without_f(values: Values, trial: Trial) -> pl.LazyFrame:
    """Compare each segment with the rest, as ``compare_segments``, without its permutations."""
    plain = Trial(trial.baseline, confidence=trial.confidence, resamples=0, total=True)
    return _plan_of(values, trial=plain)


def _plan_of(values: Values, *, trial: Trial) -> pl.LazyFrame:
    if len(values.by) == 1:
        msg = (
            "compare_segments needs segments in addition to the systems: name their columns, such "
            f"as by={[*values.by, 'country']!r}"
        )
        raise ValueError(msg)

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        _check_segments(rows, values)
        paired = system_pairs.paired_users(rows, values, trial)._replace(order=None)
        rows_of_pairs = _rows_of_pairs(paired, trial, weighted=values.weights is not None)
        return paired.table(values.by[0], rows_of_pairs, _MADE)

    return system_pairs.plan_of("compare_segments", values, _MADE, reduce)


# ------------------------------------------------------------------ one row per user → per segment


def _rows_of_pairs(paired: Paired, trial: Trial, *, weighted: bool) -> list[dict[str, Any]]:
    """Make one row per segment, metric and pair, and one for all segments together."""
    results: list[dict[str, Any]] = [{} for _ in paired.pairs]
    same_pairs = _same_pairs(paired.pairs)
    with statistics.progress(trial.resamples * len(same_pairs)) as advance:
        for places in same_pairs:
            pairs = [paired.pairs[place] for place in places]
            rows = _rows(pairs, trial, advance, weighted=weighted)
            tested = np.array([row["p_value"] for row in rows[:-1]], np.float64)
            number, users = np.count_nonzero(~np.isnan(tested)), [row["users"] for row in rows[:-1]]
            alone = number == 2 == np.count_nonzero(users)
            adjusted = statistics.corrected(tested, None if alone else trial.correction)
            for place, row, p in zip(places, rows, [*adjusted, nan], strict=True):
                results[place] = {**row, "p_adjusted": p}
    wholes = [places[-1] for places in same_pairs]
    p_values = np.array([results[place]["p_value"] for place in wholes])
    of_all = statistics.corrected(p_values, trial.correction)
    for place, p in zip(wholes, of_all, strict=True):
        results[place]["p_adjusted"] = p
    return results


def _same_pairs(pairs: Sequence[Pair]) -> list[list[int]]:
    """Return the indices of each metric and pair of systems, in the order of segments."""
    places: dict[tuple[str, int, int], list[int]] = {}
    for place, pair in enumerate(pairs):
        places.setdefault((pair.metric, pair.system, pair.baseline), []).append(place)
    return list(places.values())


def _rows(
    pairs: Sequence[Pair], trial: Trial, advance: Advance, *, weighted: bool
) -> list[dict[str, Any]]:
    """Describe and test one pair: in each segment, and in all of them."""
    *of_segments, whole = pairs
    number = len(whole.difference)
    ends = np.cumsum([len(pair.difference) for pair in of_segments])
    samples: list[Sample] = []
    estimates: list[Estimate] = []
    rows: list[dict[str, Any]] = []
    for pair, end in zip(of_segments, ends, strict=True):
        inside = np.zeros(number, np.bool_)
        inside[end - len(pair.difference) : end] = True  # users of a segment are adjacent
        parts = system_pairs.among(whole, inside), system_pairs.among(whole, ~inside)
        own, rest = (part.of_mean for part in parts)
        samples.append(parts[0].sample)
        estimates.append(own)
        contrast = own.minus(rest)
        low, high = contrast.interval(trial.confidence)
        rows.append(
            {
                "users": len(pair.difference),
                "difference": float(own.mean),
                "rest_users": number - len(pair.difference),
                "rest_difference": float(rest.mean),
                "contrast": float(contrast.mean),
                "ci_low": float(low),
                "ci_high": float(high),
                "p_value": float(contrast.p()),
                "note": notes.packed(
                    [*_reason(pair, own, rest), *comparison.notes_of_users(pair, weighted=weighted)]
                ),
            }
        )
    of_all = Estimate(*map(np.array, zip(*estimates, strict=True)))
    shrunken = segment_statistics.shrunken(of_all, trial.confidence)
    for row, values in zip(rows, zip(*shrunken, strict=True), strict=True):
        row.update(zip(SHRUNKEN, map(float, values), strict=True))
    f, p, permutations = segment_statistics.permuted(samples, trial.resampling, advance)
    said = [_reason_of_all(estimates)]
    if 0 < permutations < trial.resamples:
        said.append(notes.note("permuted", number=permutations))
    overall = {
        "users": number,
        "difference": float(whole.of_mean.mean),
        "f": f,
        "p_value": p,
        "note": notes.packed([*said, *comparison.notes_of_users(whole, weighted=weighted)]),
    }
    return [*rows, overall]


def _reason(pair: Pair, own: Estimate, rest: Estimate) -> list[Note]:
    """Note why a segment is not compared with the rest."""
    if isnan(own.mean):
        return [notes.note(trials.NO_PAIR)]
    if not own.freedom:
        few = len(pair.difference) < 2
        return [notes.note(trials.ONE_USER)] if few else []  # or the one cluster is noted
    if not rest.freedom:
        return [notes.note("no_value_elsewhere" if isnan(rest.mean) else "one_elsewhere")]
    where = [
        name
        for name, estimate in (("here", own), ("in the other segments", rest))
        if not estimate.error > 0
    ]
    return [notes.note("no_spread_in", where=" and ".join(where))] if where else []


def _reason_of_all(estimates: Sequence[Estimate]) -> Note | None:
    """Note which segments are not in the overall test."""
    left_out = sum(not estimate.error > 0 for estimate in estimates)
    if len(estimates) - left_out < 2:
        return notes.note("few_segments")
    number = {"number": left_out, "of": len(estimates)}
    return notes.note("segments_left_out", **number) if left_out else None


def _check_segments(rows: pl.DataFrame, values: Values) -> None:
    """Check that there are segments, and that these are independent of each other."""
    _, *segments = values.by
    groups = rows.select(segments).unique()
    if len(groups) < 2:
        names = " and ".join(map(repr, segments))
        msg = (
            f"column {names}: only one segment, {rules.format_row(groups)}: a comparison needs two"
        )
        raise RankingDataError(msg)
    _check_one_segment(rows, values.user, segments, "user")
    if values.cluster is not None:
        rows = rows.drop_nulls(user_columns.CLUSTER).select(
            *segments, pl.col(user_columns.CLUSTER).alias(values.cluster)
        )
        _check_one_segment(rows, values.cluster, segments, "cluster")


def _check_one_segment(rows: pl.DataFrame, column: str, segments: Sequence[str], kind: str) -> None:
    places = rows.drop_nulls(column).select(column, *segments).unique().sort(pl.all())
    several = places.filter(pl.col(column).is_duplicated())
    if not several.is_empty():
        msg = (
            f"column {column!r}: a {kind} is in several segments, which must be independent: use "
            f"segments in which a {kind} stays, such as a country. Offending row: "
            f"{rules.format_row(several[1:2])}"
        )
        raise RankingDataError(msg)
