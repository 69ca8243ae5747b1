"""Lists who gained and who lost: ``Values`` in, a row per user, the greatest loss first, out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Unpack

import polars as pl

from rankframe._comparison import comparison, summaries, system_pairs, trials
from rankframe._comparison.packages import np
from rankframe._comparison.trials import Trial
from rankframe._evaluation.values import Values
from rankframe._request import keywords
from rankframe._request.keywords import StatisticsOptions
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, run_dicts, side_tables
from rankframe._tables.table import Table
from rankframe.errors import Problem, RankingDataError, option

_CHANGES = dict.fromkeys(("value", "baseline_value", "difference", "weight", "share"), pl.Float64())
_GAIN, _SEGMENT, _SYSTEM = (f"__rankframe_{name}" for name in ("gain", "segment", "system"))


@adapters.takes_any_frame
def differences(
    frame: Runs[FrameT],
    metric: Metric,
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    baseline: object = None,
    n: int | None = None,
    queries: Frame | None = None,
    **options: Unpack[StatisticsOptions],
) -> FrameT:
    """
    Return each user's difference between two systems, the greatest loss first.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth`` (metrics of lists alone need none); or a dict of
        these by name: see ``runs.stack``. Scores without ranks are ranked as by ``with_rank``. A
        frame without a column of items, and without ``truth``, is a table of values: one row per
        user and group of ``by``, with a numeric column per metric, where null means undefined.
    metric
        A label or an expression, as in ``per_user``.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    baseline
        The system that the others are compared with; by default the first one of a dict or an Enum.
        For a column of text, which has no order, name the baseline.
    n
        Return only the n greatest losses and the n greatest gains of each segment and system. By
        default all users are returned, also those without a change.
    queries
        The texts of the queries (or of other users), one row per query: its columns of text follow
        the user.
    **options
        All other keywords of ``evaluate``, and those of a table of values: see
        ``rankframe.typing.StatisticsOptions``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per user whom ``compare`` counts, which means a value of both systems and a weight
        above 0. Sorted by segment and system, then from the greatest loss of weight · difference to
        the greatest gain, then by user:

        - segments…; if there are more than two systems, the system (in the column of the model);
          the user
        - with ``queries``, its columns of text, null for a query that it lacks
        - ``value``, ``baseline_value``: those of ``per_user``, as Float64
        - ``difference``: value − baseline_value, whose weighted mean is ``difference`` of
          ``compare``
        - ``weight`` (Float64): that of ``weights=``, else 1
        - ``share`` (Float64): weight · difference / Σ weight · difference of all users of this
          segment and system; below 0 for a user against the trend, null if the sum is 0

        A loss is a fall where higher is better or neither direction is, and a rise where lower is.

    Raises
    ------
    RankingDataError
        If ``queries`` has no column of text, has two rows of one query, or has a column of text
        with the name of a column of the result.
    ValueError
        If the call names several metrics, or one without a value per user.

    Notes
    -----
    Single users differ by chance, too: ``compare`` says what their mean shows.
    ``runs.side_by_side`` has both lists of one user, ``plot.per_user`` draws the values of all
    users, and ``plot.compare`` the mean differences. For a LazyFrame, the column of the systems is
    read at the call, since a third system adds a column.

    Examples
    --------
    >>> queries = ["shoes", "hats", "bags"]
    >>> runs = {
    ...     "old": pl.DataFrame({"user": queries, "item": 7, "rank": [1, 2, 4]}),
    ...     "new": pl.DataFrame({"user": queries, "item": 7, "rank": [2, 1, 1]}),
    ... }
    >>> truth = pl.DataFrame({"user": queries, "item": 7})
    >>> rf.stats.differences(runs, "rr", truth=truth).drop("weight")
    shape: (3, 5)
    ┌───────┬───────┬────────────────┬────────────┬───────────┐
    │ user  ┆ value ┆ baseline_value ┆ difference ┆ share     │
    │ ---   ┆ ---   ┆ ---            ┆ ---        ┆ ---       │
    │ str   ┆ f64   ┆ f64            ┆ f64        ┆ f64       │
    ╞═══════╪═══════╪════════════════╪════════════╪═══════════╡
    │ shoes ┆ 0.5   ┆ 1.0            ┆ -0.5       ┆ -0.666667 │
    │ hats  ┆ 1.0   ┆ 0.5            ┆ 0.5        ┆ 0.666667  │
    │ bags  ┆ 1.0   ┆ 0.25           ┆ 0.75       ┆ 1.0       │
    └───────┴───────┴────────────────┴────────────┴───────────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options, compares="differences")
    n = None if n is None else keywords.whole_number("n", n)
    trial = Trial(baseline, needed_by="differences")
    question = comparison.ask_systems(frame, [metric], truth, by, options, trial, per_user=True)
    if len(names := [metric.name for metric in question.requested]) > 1:
        msg = f"differences takes one metric, not {', '.join(map(repr, names))}"
        raise ValueError(msg)
    shown = [*by[1:], *by[:1]] if _has_several(frame, by[0]) else by[1:]
    describe = partial(_plan_of, trial=trial, n=n, queries=queries, groups=shown)
    return summaries.described(frame, question, describe, noted=False)


def _has_several(frame: Frame, model: str) -> bool:
    """Whether more than one system is compared with the baseline."""
    if (order := adapters.order_of(frame)) is not None:
        return len(order[1].categories) > 2
    names = adapters.to_lazy(frame, "run").select(pl.col(model).drop_nulls().n_unique())
    return bool(names.collect().item() > 2)


def _plan_of(
    values: Values, *, trial: Trial, n: int | None, queries: Frame | None, groups: Sequence[str]
) -> pl.LazyFrame:
    """Plan a row per segment, system and user, of which the columns ``groups`` are shown."""
    summaries.check_packages()
    summaries.check_numbers(values)
    types = values.rows.collect_schema()
    run = Table("run", values.rows, types, values.by, values.user, values.user)
    table, texts = None, list[str]()
    if queries is not None:
        table = side_tables.read_queries(queries, run, values.settings.columns)
        texts = side_tables.texts_of(table)
    if taken := [name for name in texts if name in _CHANGES]:
        msg = f"{option('queries')}: differences adds a column {taken[0]!r}: rename yours"
        raise RankingDataError(Problem(msg))
    of_texts = {name: table.schema[name] for name in texts} if table is not None else {}
    keyed = values._replace(by=values.keys)
    schema = summaries.result_schema("differences", keyed, of_texts | _CHANGES)
    columns = [*groups, *(name for name in schema if name not in values.by)]

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        users = of_pairs(rows, values, trial, n)
        if table is not None:
            side_tables.check_queries(table, replace(run, frame=rows.lazy().sort(values.keys)))
            keys = [pl.col(name).cast(types[name], strict=False) for name in table.keys]
            of_queries = table.frame.select(*keys, *texts).collect()
            users = users.join(of_queries, on=table.keys, how="left", maintain_order="left")
        return users.select(columns)

    return values.rows.map_batches(reduce, schema={name: schema[name] for name in columns})


def of_pairs(
    rows: pl.DataFrame, values: Values, trial: Trial, n: int | None = None
) -> pl.DataFrame:
    """Make a row per segment, system and user who counts in both, the greatest loss first."""
    paired, matrices = system_pairs.open_matrices(rows, values, trial)
    systems = system_pairs.pairs_of_places(paired.systems.to_list(), paired.baseline)
    tables: list[pl.DataFrame] = []
    for matrix in matrices:
        for pair in system_pairs.pairs_of(matrix, systems):
            weights = None if matrix.weights is None else matrix.weights[pair.counts]
            table = matrix.names.filter(pl.Series(pair.counts)).to_frame(values.user)
            columns = pair.of_system, pair.of_baseline, pair.difference
            named: dict[str, pl.Series] = {}
            named |= zip(_CHANGES, map(pl.Series, columns), strict=False)
            named["weight"] = pl.Series(np.ones(len(table)) if weights is None else weights)
            named[_GAIN] = system_pairs.gains(pair, weights, values.requested[0])
            places = {_SEGMENT: pl.lit(pair.segment), _SYSTEM: pl.lit(pair.system)}
            tables.append(table.with_columns(**named, **places))
    impact, pairs = pl.col("weight") * pl.col("difference"), [_SEGMENT, _SYSTEM]
    total, size = impact.sum().over(pairs), impact.abs().sum().over(pairs)
    # 0 / total is -0.0 if the total is below 0
    share = pl.when(impact != 0).then(impact / total).otherwise(0.0)
    share = pl.when(total.abs() > trials.NOTHING * size).then(share)
    users = pl.concat(tables).with_columns(share=share)
    users = users.sort(*pairs, _GAIN, values.user)
    if n is not None:
        gain = pl.col(_GAIN)
        lost, won = (gain.rank("ordinal", descending=x).over(pairs) for x in (False, True))
        users = users.filter(((gain < 0) & (lost <= n)) | ((gain > 0) & (won <= n)))
    return users.with_columns(
        paired.systems.gather(users[_SYSTEM]).alias(values.by[0]),
        *(column.gather(users[_SEGMENT]) for column in paired.segments),
    )
