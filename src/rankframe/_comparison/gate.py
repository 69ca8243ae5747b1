"""Gates pipelines: a comparison and a ``Rule`` per metric in, which systems pass, and why, out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from math import inf
from typing import NamedTuple, Unpack

import polars as pl

from rankframe._comparison import comparison, pair_tests, summaries, trials
from rankframe._comparison.trials import Margin, Test, Trial
from rankframe._evaluation import system_metrics
from rankframe._evaluation.values import Values
from rankframe._request import keywords, parameters
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.types import Frame, FrameT
from rankframe._tables import adapters, run_dicts


@adapters.takes_any_frame
def gate(
    frame: FrameT | Mapping[str, FrameT],
    /,
    *metrics: Metric,
    truth: Frame | None = None,
    by: str | Sequence[str] | None = None,
    baseline: object,
    margin: Margin = 0.0,
    strict: bool = False,
    total: bool = False,
    test: Test = "t",
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int = 0,
    cluster: str | None = None,
    **options: Unpack[Options],
) -> FrameT:
    """
    Decide whether systems pass: a system fails if the interval of its difference is below −margin.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``from_runs``. Scores without ranks are ranked as by ``with_rank``.
    *metrics
        Labels such as ``"ndcg@10"`` or expressions such as ``rf.ndcg_at(10)``, of metrics with a
        direction: higher is better, or lower is.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
    by
        The column that identifies the systems, by default ``"model"``; further columns are
        segments: ``by=["model", "country"]``. Of several columns, the one called ``model``
        identifies the systems, else the one that contains the ``baseline``, unless a table is lazy,
        else the first one.
    baseline
        The system that the others are compared with.
    margin
        The accepted loss, ≥ 0, on the scale of the metric: one number for all metrics, or a mapping
        such as ``{"ndcg@10": 0.01}``; metrics missing from the mapping have 0.
    strict
        False: fail if the whole interval is beyond the margin, so the system is worse, or if there
        is no interval. True: also fail if the interval is undecided, so only a system that is not
        worse passes.
    total
        Add the decision over all segments, with null in the segment columns.
    test
        The test whose interval decides; the notes of ``rf.compare`` describe the tests.
    confidence
        The probability that a single interval covers the true value.
    resamples
        Number of resamples: bootstrap samples, permutations or patterns of signs.
    seed
        Seed of the resamples; the same seed produces the same numbers on every machine.
    cluster
        A column of the truth or the run, such as the customer of a session or query: users of one
        cluster depend on each other, and clusters are the observations.
    **options
        All other keywords of ``evaluate``, and columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per segment, metric and system: segments…, ``metric``, the system (in a column named
        as in ``by``), ``baseline``, ``users``, ``num_left_out`` and ``note``, as in ``compare``,
        ``margin``, ``difference``, its interval ``ci_low`` to ``ci_high``, ``passed`` (Boolean,
        never null) and ``why``, which begins with "worse", "not worse", "undecided" or "no
        interval".

    Raises
    ------
    ValueError
        If ``margin`` names a metric that is not requested, or a metric cannot be decided: neither
        direction is better, it is a single number for all lists, which has no interval of a
        difference, or it is a geometric mean with a margin (its ratio is tested, not its
        difference).

    Notes
    -----
    If all users differ by the same amount, such as 0, there is no spread: the interval is that
    amount. Without an interval, as with no users or one, nothing is known, and a system fails.
    Intervals are not corrected for their number: at confidence 0.95, a system as good as the
    baseline fails each metric of margin 0 with probability 0.025; with ``strict``, a system that is
    worse by exactly the margin passes with the same probability.

    Examples
    --------
    >>> ranks = {"old": [1, 1, 2, 1], "new": [2, 2, 3, 3], "same": [1, 1, 2, 1]}
    >>> runs = {
    ...     name: pl.DataFrame({"user": [*"abcd"], "item": 7, "rank": of_users})
    ...     for name, of_users in ranks.items()
    ... }
    >>> truth = pl.DataFrame({"user": [*"abcd"], "item": [7] * 4})
    >>> decided = rf.gate(runs, "rr", truth=truth, baseline="old", margin=0.01)
    >>> decided.select("model", "margin", "difference", "passed", "why")
    shape: (2, 5)
    ┌───────┬────────┬────────────┬────────┬─────────────────────────────┐
    │ model ┆ margin ┆ difference ┆ passed ┆ why                         │
    │ ---   ┆ ---    ┆ ---        ┆ ---    ┆ ---                         │
    │ str   ┆ f64    ┆ f64        ┆ bool   ┆ str                         │
    ╞═══════╪════════╪════════════╪════════╪═════════════════════════════╡
    │ new   ┆ 0.01   ┆ -0.458333  ┆ false  ┆ worse: interval below -0.01 │
    │ same  ┆ 0.01   ┆ 0.0        ┆ true   ┆ not worse: no user differs  │
    └───────┴────────┴────────────┴────────┴─────────────────────────────┘
    """
    trial = Trial(baseline, test, None, confidence, None, None, resamples, seed, cluster, total)
    keywords.check_flag("strict", strict)
    frame, by = run_dicts.as_frame(frame, by)
    if baseline is None:
        msg = "gate without a baseline: name the system to compare with in baseline="
        raise ValueError(msg)
    question = comparison.ask_systems(frame, metrics, truth, by, options, trial)
    describe = partial(_decisions, trial=trial, margin=margin, strict=strict)
    return summaries.described(frame, question, describe)


#: The columns of a decision, beside segments, metric and system.
DECISION = (
    *("baseline", "users", "num_left_out", "margin", "difference", "note"),
    *("ci_low", "ci_high", "passed", "why"),
)


def _decisions(values: Values, *, trial: Trial, margin: Margin, strict: bool) -> pl.LazyFrame:
    """Compare the systems, and decide by the rule of each metric."""
    summaries.result_schema(
        "gate", values, {"margin": pl.Float64, "passed": pl.Boolean, "why": pl.String}
    )
    lists = [] if values.of_lists is None else values.of_lists.requested
    requested = [*values.requested, *lists]
    names = [metric.name for metric in requested]
    margins = comparison.per_metric("margin", margin, names)
    rules = rules_of(requested, margins, strict=names if strict else ())
    compared = comparison.comparison_of(values, trial, "gate")
    model, *segments = values.by
    return decision_of(compared, rules).select(*segments, "metric", model, *DECISION)


class Rule(NamedTuple):
    """The rule of a metric: the accepted loss, and whether it must be excluded."""

    margin: float
    strict: bool
    higher_is_better: bool

    @property
    def bound(self) -> float:
        """The difference that the margin accepts."""
        return (-self.margin if self.higher_is_better else self.margin) + 0.0


def rules_of(
    requested: Sequence[RequestedMetric], margins: Mapping[str, float], *, strict: Sequence[str]
) -> dict[str, Rule]:
    """Read the rule of each metric; one that is not in ``margins`` has the margin 0."""
    directions = pair_tests.directions_of(requested)
    rules: dict[str, Rule] = {}
    for metric in requested:
        margin, higher_is_better = margins.get(metric.name, 0.0), directions[metric.name]
        if not (keywords.is_number(margin) and 0 <= margin < inf):
            msg = f"margin of {metric.name!r} must be a finite number ≥ 0, not {margin!r}"
            raise ValueError(msg)
        if system_metrics.is_of_all(metric):
            msg = (
                f"metric {metric.name!r}: it is one number of all lists, which has no interval of "
                "a difference: gate a metric per user"
            )
            raise ValueError(msg)
        if higher_is_better is None:
            msg = (
                f"metric {metric.name!r}: neither direction is declared better: gate another "
                "metric, or declare it with rf.register_metric(…, higher_is_better=…)"
            )
            raise ValueError(msg)
        if margin and metric.over_users.epsilon is not None:
            msg = (
                f"margin: metric {metric.name!r} is a geometric mean, whose ratio is tested: set 0"
            )
            raise ValueError(msg)
        rules[metric.name] = Rule(float(margin), metric.name in strict, higher_is_better)
    return rules


def decision_of(compared: pl.LazyFrame, rules: Mapping[str, Rule]) -> pl.LazyFrame:
    """Add margin, passed and why to a comparison; a metric without a rule has nulls.

    If all users differ by the same amount, both ends of the interval are that amount.
    """

    def of_rules(values: Sequence[object], dtype: type[pl.DataType]) -> pl.Expr:
        return pl.col("metric").replace_strict(
            list(rules), values, default=None, return_dtype=dtype
        )

    margin = of_rules([rule.margin for rule in rules.values()], pl.Float64)
    strict = of_rules([rule.strict for rule in rules.values()], pl.Boolean)
    higher_is_better = of_rules([rule.higher_is_better for rule in rules.values()], pl.Boolean)
    bound = of_rules([parameters.as_text(rule.bound) for rule in rules.values()], pl.String)
    alike = pl.any_horizontal(
        pl.col("note").str.contains(text, literal=True)
        for text in (trials.NOBODY_DIFFERS, trials.ALL_DIFFER_ALIKE)
    ).fill_null(value=False)
    one_amount = pl.col("ci_low").is_null() & alike & margin.is_not_null()
    ends = {
        name: pl.when(one_amount).then("difference").otherwise(name)
        for name in ("ci_low", "ci_high")
    }
    low, high = ends["ci_low"], ends["ci_high"]
    least = pl.when(higher_is_better).then(low).otherwise(-high)
    greatest = pl.when(higher_is_better).then(high).otherwise(-low)
    nothing = low.is_null() | high.is_null()
    worse = (greatest < -margin).fill_null(value=False)
    not_worse = (least >= -margin).fill_null(value=False)
    below = pl.when(higher_is_better).then(pl.lit("below ")).otherwise(pl.lit("above "))
    above = pl.when(higher_is_better).then(pl.lit("above ")).otherwise(pl.lit("below "))
    why = (
        pl.when(one_amount)
        .then("note")
        .when(worse)
        .then(pl.concat_str(pl.lit("interval "), below, bound))
        .when(not_worse)
        .then(pl.concat_str(pl.lit("interval "), above, bound))
        .when(nothing)
        .then(pl.col("note").fill_null("the test has none"))
        .otherwise(pl.concat_str(bound, pl.lit(" in interval")))
    )
    verdict = (
        pl.when(worse)
        .then(pl.lit("worse: "))
        .when(not_worse)
        .then(pl.lit("not worse: "))
        .when(nothing)
        .then(pl.lit("no interval: "))
        .otherwise(pl.lit("undecided: "))
    )
    has_rule = margin.is_not_null()
    passed = pl.when(strict).then(not_worse).otherwise(~worse) & ~nothing
    return compared.with_columns(
        **ends,
        margin=margin,
        passed=pl.when(has_rule).then(passed),
        why=pl.when(has_rule).then(pl.concat_str(verdict, why)),
    )
