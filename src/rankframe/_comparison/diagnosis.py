"""Diagnoses a change: ``Values`` in, a row per bin of relevant items, with its reading, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, Unpack

import polars as pl

from rankframe._comparison import (
    comparison,
    decision,
    notes,
    sentences,
    summaries,
    system_pairs,
    trials,
)
from rankframe._comparison.decision import Estimate
from rankframe._comparison.packages import np, segment_statistics, statistics
from rankframe._comparison.trials import Trial
from rankframe._evaluation import segments as segments_of
from rankframe._evaluation import sums, user_columns
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts
from rankframe.metrics import core, trec

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Places
#: What changes, and the columns of its change.
_CHANGING = ("hits", "precision", "recall")
_CHANGES = ("hits_change", "precision_change", "recall_change")
_TESTED = _CHANGES[1:]
_CHANGED = ("__rankframe_precision", "__rankframe_recall")  # of each user
_SHRUNKEN = [[f"{name}_shrunken{end}" for end in ("", "_low", "_high")] for name in _CHANGING[1:]]
_BIN = "__rankframe_bin"
#: The users without a list of the system, of the baseline, of both.
_WITHOUT = ("__rankframe_none", "__rankframe_none_before", "__rankframe_neither")
_LEVELS = ("precision", "recall", "attainable_precision", "attainable_recall")
_DIAGNOSIS = {
    **dict.fromkeys(("relevant_low", "relevant_high", "users"), pl.Int64),
    **dict.fromkeys((*_CHANGES, *chain(*_SHRUNKEN)), pl.Float64),
    **dict.fromkeys(("reading", "signs"), pl.String),
    **dict.fromkeys(_LEVELS, pl.Float64),
}


@adapters.takes_any_frame
def who_gained(
    frame: Runs[FrameT],
    /,
    k: int,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    bins: int = 4,
    cluster: str | None = None,
    **options: Unpack[Options],
) -> FrameT:
    """
    Show which users gained when mean recall@k and mean precision@k change: users in bins of R.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    k
        Cut-off.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    bins
        The greatest number of bins. Users with the same R, their number of relevant items, are in
        the same bin.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per system, segment and bin of the users with a list of both systems; one row for
        the users without a list of one or both, if there are any; and a last row per system and
        segment for all users, with null bounds:

        - by…, ``relevant_low``, ``relevant_high``: the least and the greatest R
        - ``users``
        - ``hits_change``, ``precision_change``, ``recall_change``: mean changes
        - ``precision_shrunken``, ``recall_shrunken``: the changes, pulled toward those of all bins
          as far as chance explains their distance; their 95% intervals are
          ``precision_shrunken_low`` to ``precision_shrunken_high``, and so for recall
        - ``reading`` of both changes, and ``signs``: the same reading by their signs, without a
          test
        - ``precision``, ``recall``: the system's means
        - ``attainable_precision``, ``attainable_recall``: the best means that the users' R allow

        The shrunken columns are null in the row of all users and in that of users without a list,
        with fewer than two bins, and where no bin has a spread.

        ``reading`` reports what the paired t tests of both changes show, p < 0.05 after Holm's
        correction for the two: "better overall" or "worse overall", if both rise or fall; "better
        for users with few relevant items, worse for users with many", if recall rises and precision
        falls, and the reverse; "higher recall, no difference seen in precision" and similar
        readings, if one change is shown; "no difference seen"; "unchanged", if every user has as
        many hits as before; "no test: …" with the reason. Each row is tested on its own: about 1
        bin in 20 shows a difference by chance alone. For users without a list it is "no list of
        knn: 192 users"; if these are at least 5%, the reading of all users names them as well:
        "worse overall; 192 of 301 users have no list of knn". Without a user in both it is "no user
        has a value in both".

    Notes
    -----
    For one user recall@k and precision@k rise and fall together, since both count the same hits.
    Their means can move in opposite directions: mean recall weights users with few relevant items
    more, mean precision those with many.

    Shrunken changes are those of ``compare_segments``, per system and segment, precision and recall
    apart. Bins have an order, which shrinkage does not use: it treats all bins alike, so a change
    that grows with R is pulled toward the mean at both ends, too. ``reading`` decides whether a
    change is shown, by the changes themselves. A shrunken value says how large it may be, and
    decides nothing, even if its interval excludes 0.

    Examples
    --------
    >>> old = pl.DataFrame({"user": ["A", "A", "B"], "item": [1, 2, 9], "rank": [1, 2, 1]})
    >>> new = pl.DataFrame({"user": ["A", "B"], "item": [101, 101], "rank": [1, 1]})
    >>> run = pl.concat([f.with_columns(model=pl.lit(m)) for f, m in [(old, "old"), (new, "new")]])
    >>> truth = pl.DataFrame({"user": ["A"] * 100 + ["B"] * 20, "item": range(1, 121)})
    >>> change = rf.stats.who_gained(run, 10, truth=truth, baseline="old")
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
    >>> change["signs"].last()
    'better for users with few relevant items, worse for users with many'
    >>> change["reading"].last()  # two users show nothing
    'no difference seen'
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="who_gained")
    k, bins = keywords.whole_number("k", k), keywords.whole_number("bins", bins)
    measures = (
        core.precision_at,
        core.recall_at,
        core.attainable_precision_at,
        core.attainable_recall_at,
    )
    levels = [measure(k).alias(name) for measure, name in zip(measures, _LEVELS, strict=True)]
    metrics = [trec.num_relevant().alias("total"), trec.num_hits(k).alias("hits"), *levels]
    summaries.check_unweighted("who_gained", options)
    trial = Trial(baseline, cluster=cluster, needed_by="who_gained")
    question = comparison.ask_systems(
        frame, metrics, truth, by, options, trial, per_user=True, counts=["missed"]
    )

    def describe(values: Values) -> pl.LazyFrame:
        summaries.check_packages()
        schema = summaries.result_schema("who_gained", values, _DIAGNOSIS)
        reduce = partial(diagnosis_of, values=values, trial=trial, bins=bins)
        return values.rows.map_batches(reduce, schema=schema)

    return summaries.described(frame, question, describe, noted=False)


# ------------------------------------------------------------------ one row per user → per bin


def diagnosis_of(rows: pl.DataFrame, *, values: Values, trial: Trial, bins: int) -> pl.DataFrame:
    model, *segments = values.by
    _, baseline, order = system_pairs.systems_in(rows, model, trial)
    if values.cluster is not None:
        user_columns.check_clusters(rows, values.cluster, _LEVELS)
        user_columns.check_one_cluster(rows, [values.user], values.cluster)
    of_baseline = pl.col(model) == pl.lit(baseline, dtype=rows.schema[model])
    users = [*segments, values.user]
    relevant_rows = rows.filter(pl.col("total") > 0).sort(*values.by, values.user)
    before = relevant_rows.filter(of_baseline).drop(model)
    paired = relevant_rows.filter(~of_baseline).join(
        before, on=users, suffix=" before", maintain_order="left"
    )
    place = segments_of.number_of_bin(pl.col("total before"), bins).over(values.by).alias(_BIN)
    low, high = pl.col("total before").min(), pl.col("total before").max()
    sides = [(pl.col(name), pl.col(f"{name} before")) for name in _CHANGING]
    changes = [new.cast(pl.Float64) - old.cast(pl.Float64) for new, old in sides]
    means = [
        sums.order_free_mean(value).alias(name)
        for name, value in zip(
            (*_CHANGES, *_LEVELS), (*changes, *map(pl.col, _LEVELS)), strict=True
        )
    ]
    of_users = [
        statistics.differences(paired[name].to_numpy(), paired[f"{name} before"].to_numpy())
        for name in _CHANGING[1:]
    ]
    paired = paired.with_columns(map(pl.Series, _CHANGED, of_users))
    clusters = [] if values.cluster is None else [user_columns.CLUSTER]
    means += [pl.col(name) for name in (*_CHANGED, *clusters)]
    counted = [pl.len().cast(pl.Int64).alias("users"), *means]
    described = [low.alias("relevant_low"), high.alias("relevant_high"), *counted]
    misses = pl.col(user_columns.MISSED), pl.col(f"{user_columns.MISSED} before")
    without = [
        sum_.sum().cast(pl.Int64).alias(name)
        for name, sum_ in zip(_WITHOUT, (*misses, misses[0] & misses[1]), strict=True)
    ]
    unserved = pl.any_horizontal(misses)
    in_bins = paired.filter(~unserved).group_by(*values.by, place).agg(described)
    in_order = in_bins.sort(*values.by, _BIN).partition_by(values.by)
    parts = map(_with_shrunken, in_order)
    lacking = paired.filter(unserved).group_by(values.by).agg(*described, *without)
    lacking = lacking.with_columns(pl.lit(bins, pl.Int64).alias(_BIN))
    systems = rows.filter(~of_baseline).select(values.by).unique()
    of_all = paired.group_by(values.by).agg(*counted, *without)
    overall = systems.join(of_all, on=values.by, how="left")
    overall = overall.with_columns(pl.lit(None).alias(name) for name in chain(*_SHRUNKEN))
    table = pl.concat([*parts, lacking, overall], how="diagonal_relaxed")
    readings = [
        _reading_of_row(row, row[model], baseline, missing=row[_BIN] == bins)
        for row in table.iter_rows(named=True)
    ]
    table = table.drop(_CHANGED, _WITHOUT).with_columns(
        pl.col("users").fill_null(0), reading=pl.Series(readings, dtype=pl.String)
    )
    table = table.with_columns(signs=_signs()).sort(*values.by, _BIN, nulls_last=True)
    said = pl.when(pl.col(_BIN).is_null()).then(pl.lit(notes.text([order]), pl.String))
    both = pl.concat_str("reading", said, separator="; ", ignore_nulls=True)
    table = table.with_columns(reading=pl.when(said.is_null()).then("reading").otherwise(both))
    return table.select(*values.by, *(pl.col(name).cast(_DIAGNOSIS[name]) for name in _DIAGNOSIS))


def _with_shrunken(bins: pl.DataFrame) -> pl.DataFrame:
    """Shrink the changes of the bins of one system and segment toward their mean."""
    columns: list[pl.Series] = []
    in_rows = [_changes_of_row(row) for row in bins.iter_rows(named=True)]
    for place, names in enumerate(_SHRUNKEN):
        estimates = [
            statistics.estimate(system_pairs.sample_of(changes[place], None, clusters))
            for changes, clusters in in_rows
        ]
        of_bins = Estimate(*map(np.array, zip(*estimates, strict=True)))
        shrunken = segment_statistics.shrunken(of_bins, comparison.CONFIDENCE)
        columns += map(pl.Series, names, shrunken)
    return bins.with_columns(column.fill_nan(None) for column in columns)


def _changes_of_row(row: Mapping[str, Any]) -> tuple[list[Array], Places | None]:
    """Return the users' changes of precision and of recall, and their clusters."""
    clusters = row.get(user_columns.CLUSTER)
    places = None if clusters is None else summaries.places_of_users(pl.Series("", clusters))
    return [pl.Series(row[name]).to_numpy() for name in _CHANGED], places


def _reading_of_row(
    row: Mapping[str, Any], system: object, baseline: object, *, missing: bool
) -> str | None:
    """Read a bin, the users without a list, or all users."""
    users, without = row["users"], [row[name] or 0 for name in _WITHOUT]
    if users is None:
        return _NO_PAIR
    if missing:
        return _reading_of_missed(without, system, baseline)
    changes, places = _changes_of_row(row)
    read = _paired_reading(changes, places) if len(changes[0]) else _NO_PAIR
    lists = notes.text(sentences.notes_of_lists(without[:2], users, (system, baseline)))
    return "; ".join(filter(None, [read, lists])) or None


def _reading_of_missed(without: Sequence[int], system: object, baseline: object) -> str:
    """Write which list is missing: the system's, the baseline's, or both."""
    of_system, of_baseline, both = without
    counts = [
        (sentences.name_in_note(system), of_system - both),
        (sentences.name_in_note(baseline), of_baseline - both),
        ("either", both),
    ]
    return "; ".join(
        f"{trials.NO_LIST} of {name}: {count:,} user{'s' * (count != 1)}"
        for name, count in counts
        if count
    )


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


def _signs() -> pl.Expr:
    """Read the signs of the mean changes of precision and recall."""
    signs = [
        pl.when(pl.col(name).abs() < trials.NOTHING).then(0).otherwise(pl.col(name).sign())
        for name in _TESTED
    ]
    key = pl.format("{} {}", *(sign.cast(pl.Int8) for sign in signs))
    texts = {f"{precision} {recall}": text for (precision, recall), text in _READINGS.items()}
    texts |= {
        "0 0": "unchanged",
        **{f"{sign} 0": f"{word} precision, equal recall" for sign, word in _WORDS.items()},
        **{f"0 {sign}": f"{word} recall, equal precision" for sign, word in _WORDS.items()},
    }
    return key.replace_strict(texts, default=None, return_dtype=pl.String)


_WORDS = {1: "higher", -1: "lower"}


_NO_PAIR = notes.text([notes.note(trials.NO_PAIR)]) or ""


def _paired_reading(changes: Sequence[Array], clusters: Places | None) -> str:
    """Test the changes of precision and recall by the paired t, and return the reading."""
    if not any(change.any() for change in changes):
        return "unchanged"
    samples = [system_pairs.sample_of(change, None, clusters) for change in changes]
    for sample in samples:
        if why := system_pairs.why_undefined(sample.values):
            one_cluster = clusters is not None and len(sample.values) == 1
            return f"no test: {notes.text([notes.note('one_cluster' if one_cluster else why)])}"
    p = [float(statistics.estimate(sample).p()) for sample in samples]
    alpha = keywords.alpha_of(comparison.CONFIDENCE)
    shown = decision.shows(statistics.corrected(np.array(p), "holm"), alpha)
    means = [float(statistics.mean_of(sample)) for sample in samples]
    signs = [(mean > 0) - (mean < 0) for mean in means]
    precision, recall = (sign if sure else 0 for sign, sure in zip(signs, shown, strict=True))
    return _READINGS[precision, recall]
