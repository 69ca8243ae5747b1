"""Computes means at each cut-off: ``Values`` in, the frame that ``plot.at_k`` draws out."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Unpack, cast

import polars as pl

from rankframe._comparison import comparison, summaries
from rankframe._comparison.trials import RELATIVE, Trial
from rankframe._evaluation import ready_values
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts

_MADE = {
    "metric": pl.String,
    **dict.fromkeys(("k", "users"), pl.Int64),
    **dict.fromkeys(("mean", "ci_low", "ci_high"), pl.Float64),
}
#: What is drawn of a summary.
DRAWN = (
    *("metric", "users", summaries.SELECTED.alias("selected"), "num_missed"),
    *("mean", "ci_low", "ci_high"),
)


@adapters.takes_any_frame
def at_k(
    frame: Runs[FrameT],
    /,
    *names: str,
    k: Iterable[int] = range(1, 21),
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    interval: bool = True,
    confidence: float = 0.95,
    **options: Unpack[Options],
) -> FrameT:
    """
    Compute the mean of metrics at each of several cut-offs, with its interval, one row each.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``.
    *names
        Metrics without their cut-off: ``"ndcg"``, ``"precision(divide_by=returned)"``, ``"gmap"``.
    k
        The cut-offs.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    interval
        Compute the interval of the mean as ``summarize`` does by default, which needs SciPy.
        Without it both ends are null.
    confidence
        The probability that a single interval covers the true value.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per group, metric and cut-off, in this order: by…, ``metric`` (without its cut-off),
        ``k``, ``users`` (who have a value), ``mean``, ``ci_low`` and ``ci_high``. Counts
        such as ``num_hits`` are averaged.

    Raises
    ------
    ValueError
        If a name has a cut-off already or takes none.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rank": [1, 2, 1]})
    >>> truth = pl.DataFrame({"user": [1, 2], "item": [8, 7]})
    >>> rf.stats.at_k(run, "recall", "mrr", k=[1, 2], truth=truth).select(
    ...     "metric", "k", "users", "mean"
    ... )
    shape: (4, 4)
    ┌────────┬─────┬───────┬──────┐
    │ metric ┆ k   ┆ users ┆ mean │
    │ ---    ┆ --- ┆ ---   ┆ ---  │
    │ str    ┆ i64 ┆ i64   ┆ f64  │
    ╞════════╪═════╪═══════╪══════╡
    │ recall ┆ 1   ┆ 2     ┆ 0.5  │
    │ recall ┆ 2   ┆ 2     ┆ 1.0  │
    │ mrr    ┆ 1   ┆ 2     ┆ 0.5  │
    │ mrr    ┆ 2   ┆ 2     ┆ 0.75 │
    └────────┴─────┴───────┴──────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options)
    labels = labels_at(names, cutoffs(k))

    def describe(values: Values) -> pl.LazyFrame:
        schema = summaries.result_schema("at_k", values, _MADE)
        means = means_of(values, interval=interval, confidence=confidence)
        means = means.rename({"metric": "label"})
        table = means.join(labels.lazy(), on="label", how="left", maintain_order="left")
        return table.select(list(schema))

    settings = keywords.read_options(options)
    question = ready_values.ask(frame, labels["label"].to_list(), truth, by, settings)
    return summaries.described(frame, question, describe, noted=False)


def means_of(values: Values, *, interval: bool, confidence: float) -> pl.LazyFrame:
    """Plan the means of labels; without intervals they need no SciPy."""
    keywords.check_switch("interval", interval)
    keywords.check_confidence(confidence)
    summary = (
        summaries.summary_of(values, confidence=confidence, method="auto", resamples=10_000, seed=0)
        if interval
        else summaries.description_of(values)
    )
    return summary.select(*values.by, *DRAWN)


def changes_of(values: Values, baseline: object, confidence: float) -> pl.LazyFrame:
    """Plan the paired differences from a baseline, as shares of its mean, like ``means_of``."""
    trial = Trial(baseline, correction=None, confidence=confidence)
    ends = zip(("mean", "ci_low", "ci_high"), RELATIVE, strict=True)
    missed = (
        summaries.SELECTED.alias("selected"),
        pl.max_horizontal("num_missed", "baseline_num_missed"),
    )
    return comparison.rows_of(values, trial).select(
        *values.by, "metric", "users", *missed, **dict(ends)
    )


def cutoffs(ks: Iterable[int]) -> list[int]:
    """Read cut-offs, in order and without duplicates."""
    value = cast("object", ks)
    if isinstance(value, int):
        such_as = f"range(1, {value + 1}) or [{value}]"
        msg = f"k takes the cut-offs themselves, such as {such_as}, not {value}"
        raise TypeError(msg)
    if isinstance(value, str) or not isinstance(value, Iterable):
        msg = f"k takes the cut-offs themselves, such as [5, 10], not {ks!r}"
        raise TypeError(msg)
    read = sorted({keywords.whole_number("k", k) for k in ks})
    if not read:
        msg = "k has no cut-off: name one, for example k=range(1, 21)"
        raise ValueError(msg)
    return read


def labels_at(names: Sequence[object], ks: Sequence[int]) -> pl.DataFrame:
    """Write the label of each metric at each cut-off."""
    for name in names:
        if not isinstance(name, str) or "@" in name:
            msg = f"at_k takes a metric's name without its cut-off, such as 'ndcg', not {name!r}"
            raise ValueError(msg)
    rows = [(f"{name}@{k}", name, k) for name in names for k in ks]
    schema = {"label": pl.String, "metric": pl.String, "k": pl.Int64}
    return pl.DataFrame(rows, schema=schema, orient="row")
