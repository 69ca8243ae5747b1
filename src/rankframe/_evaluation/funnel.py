"""Find where the loss of a metric is: ``Values`` of the same lists in better orders."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, Unpack

import polars as pl

from rankframe._evaluation import evaluation, group_means, reduction
from rankframe._evaluation.values import Values, users_of
from rankframe._request import keywords, labels
from rankframe._request.keywords import Options
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import Question, ask
from rankframe._request.types import Frame, FrameT, Runs, Truth
from rankframe._tables import adapters, judgment, readers, rules, run_dicts
from rankframe._tables.judgment import Joined
from rankframe._vocabulary import scope_rows, terms

#: From the list as it is to the best list: each stage loses its gap against the next.
STAGES = ("list", "top", "candidates", "truth")
_UNION = "union"  # of the sources
_COLUMNS = ("metric", "stage", "value", "gap", "alone", "users")


@adapters.takes_any_frame
def funnel(
    frame: Runs[FrameT],
    metric: Metric,
    /,
    *,
    truth: Truth | None = None,
    by: str | Sequence[str] = (),
    stages: Mapping[str, Frame] | None = None,
    **options: Unpack[Options],
) -> FrameT:
    """
    Find where a metric loses: in the order of the list, at its cut, or in retrieval.

    Parameters
    ----------
    frame
        A run with its ``truth``, or a judged table; or a dict of these by name: see ``runs.stack``.
        Scores without ranks are ranked as by ``with_rank``.
    metric
        A metric of ranks and grades, such as ``"ndcg@10"``, ``"recall@10"`` or ``"map"``.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    by
        Columns of segments, such as country, fold or day.
    stages
        The runs of the sources of candidates by name, such as ``{"bm25": …, "dense": …}``. They
        need no ranks, and a column of ``by`` limits a row to its group.
    **options
        The keywords of ``evaluate`` but ``total``, ``count_users``, ``chance`` and ``average``, and
        columns' roles: see ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per group and stage: by…, ``metric`` and ``stage`` (String), ``value`` (Float64, the
        mean over users), ``gap`` (Float64, the value of the next stage minus this one), ``alone``
        (Float64, only with ``stages``) and ``users`` (Int64, those with a value of the list). The
        stages are ``"list"``, the lists as they are; ``"top"``, their first k items in ideal order,
        k being the metric's cut-off; ``"candidates"``, all their items in ideal order, before the
        cut; and ``"truth"``, all relevant items in ideal order. The gaps are thus what the order of
        the first k loses, what the cut loses, and what retrieval loses.

        With ``stages``, the recall of each source, without a cut-off, comes first, and that of
        their ``"union"``: ``gap`` is what the union adds to a source, and ``alone`` what the union
        would lose without it. ``"candidates"`` are then the items of the lists and of all sources.

    Raises
    ------
    RankingDataError
        If equal scores form blocks of ties.
    ValueError
        If there are several metrics, or the metric reads more than ranks and grades of relevant
        items: scores, unjudged items, or the catalogue.

    Notes
    -----
    The ideal order has the highest grade first, and equal grades in the order of the list. An item
    takes the rank of another, so gaps in the ranks stay. For a metric without a cut-off, such as
    ``"map"``, ``"top"`` has all items of the list, and only sources add to it in ``"candidates"``.
    A source that has nothing for these users has a recall of 0. ``"truth"`` is 1 for nDCG, and less
    for precision@10 if a user has fewer than 10 relevant items. Values rise from stage to stage, or
    fall if lower is better. This does not always hold for ``auc`` and ``mean_hit_rank``, which read
    only retrieved items.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1] * 4, "item": [*"abcd"], "rank": [1, 2, 3, 4]})
    >>> truth = pl.DataFrame({"user": [1] * 3, "item": [*"bdz"]})
    >>> rf.stats.funnel(run, "precision@2", truth=truth)
    shape: (4, 5)
    ┌─────────────┬────────────┬───────┬──────┬───────┐
    │ metric      ┆ stage      ┆ value ┆ gap  ┆ users │
    │ ---         ┆ ---        ┆ ---   ┆ ---  ┆ ---   │
    │ str         ┆ str        ┆ f64   ┆ f64  ┆ i64   │
    ╞═════════════╪════════════╪═══════╪══════╪═══════╡
    │ precision@2 ┆ list       ┆ 0.5   ┆ 0.0  ┆ 1     │
    │ precision@2 ┆ top        ┆ 0.5   ┆ 0.5  ┆ 1     │
    │ precision@2 ┆ candidates ┆ 1.0   ┆ 0.0  ┆ 1     │
    │ precision@2 ┆ truth      ┆ 1.0   ┆ null ┆ 1     │
    └─────────────┴────────────┴───────┴──────┴───────┘
    """
    frame, by, options = run_dicts.as_frame(frame, by, options)
    sources = _sources(stages, options)
    question = ask(frame, [metric], truth, by, keywords.read_options(options, stages=sources))
    _check_metric(question)
    beside = [*question.beside, *sources.values()]
    return adapters.to_caller_type(_plan_of(question), like=frame, beside=beside)


def _sources(stages: object, columns: Mapping[str, Any]) -> dict[str, Frame]:
    """Open the runs of sources, and leave out what they did not retrieve."""
    if stages is None:
        return {}
    if not adapters.is_dict(stages) or not stages:
        kind = "an empty dict" if adapters.is_dict(stages) else adapters.kind(stages)
        msg = f"stages must be a dict of runs, {{name: run}}, not {kind}"
        raise TypeError(msg)
    if taken := [name for name in stages if name in (*STAGES, _UNION)]:
        msg = f"stages: the result has a stage {taken[0]!r} of its own: give the run another name"
        raise ValueError(msg)
    sources: dict[str, Frame] = {}
    for name, run in stages.items():
        opened = adapters.to_polars(run, readers.stage_name(name))
        schema = opened.collect_schema()
        placing = [columns.get(role, role) for role in ("rank", "score")]
        placing = [column for column in placing if column in schema][:1]
        placed = [pl.col(column).cast(pl.Float64, strict=False).is_not_nan() for column in placing]
        sources[name] = opened.filter(pl.lit(value=True), *placed)
    return sources


def _check_metric(question: Question) -> None:
    """Check that the one metric depends on nothing but where the relevant items are."""
    if len(question.requested) > 1:
        names = ", ".join(repr(metric.name) for metric in question.requested)
        msg = f"funnel takes one metric, not {names}: call it for each"
        raise ValueError(msg)
    reading, stages = question.reading, question.settings.stages
    others = reading.outside + [
        name
        for name, column in reading.columns.items()
        if column.source or column.scope != "relevant" or (stages and reading.counts_listed)
    ]
    if others:
        msg = (
            f"metric {question.requested[0].name!r} reads {max(others)!r}: the stages of a funnel "
            "differ in the ranks of relevant items alone: use a metric of these, such as 'ndcg@10'"
        )
        raise ValueError(msg)


def _plan_of(question: Question) -> pl.LazyFrame:
    """Plan a row per group and stage."""
    (metric,), settings = question.requested, question.settings
    values = evaluation.plan_means(question)
    rules.raise_if_taken("funnel", _COLUMNS, values.by)
    rules.raise_if_tied(values.source.tables.run, " to put in ideal order")
    (recall,) = labels.parse_metrics(["recall"], per_user=True, defaults=settings.defaults)
    recall = replace(recall, relevant_at=metric.relevant_at)
    of_list = pl.col(metric.name).cast(pl.Float64).alias(_column("list"))
    values = values._replace(rows=values.rows.with_columns(of_list))
    for stage, items in _items_of(values.source, metric.cut_off).items():
        values = _with_stage(values, stage, items, metric if stage in STAGES else recall)
    return _long(values, metric, [*settings.stages])


def _column(stage: str) -> str:
    """Name the column that has the values of a stage, one per user, or marks its items."""
    return f"{labels.PREFIX}stage {stage}"


def _items_of(joined: Joined, k: int | None) -> dict[str, pl.LazyFrame]:
    """Rank run and truth as each stage but the list has them, or a source."""
    items, keys = scope_rows.with_final_lists(joined), joined.keys
    marks: dict[str, pl.Expr] = {}
    for name in joined.tables.settings.stages:
        source, mark = (
            joined.inputs[readers.stage_name(name)],
            pl.lit(value=True).alias(_column(name)),
        )
        held = items.select(*keys, joined.item).join(source.frame, on=source.ids, how="semi")
        held = judgment.without_excluded(held, joined.tables, joined.inputs).with_columns(mark)
        items = items.join(held, on=[*keys, joined.item], how="left")
        marks[name] = pl.col(_column(name)).fill_null(value=False)

    def numbered(mark: pl.Expr) -> pl.Expr:
        return pl.when(mark).then(terms.count(mark.cast(pl.Int64).cum_sum().over(keys)))

    no = pl.lit(value=False)
    union = pl.any_horizontal(no, *marks.values())
    below = terms.rank.max().over(keys).fill_null(0) + numbered(union & ~terms.is_listed)
    candidates = in_ideal_order(items.with_columns(rank=pl.coalesce("rank", below)), keys)
    best = terms.count(terms.relevance.rank("ordinal", descending=True).over(keys))
    stages = {
        "top": in_ideal_order(items, keys, k),
        "candidates": candidates,
        "truth": items.with_columns(rank=pl.when(terms.is_graded).then(best)),
    }
    for name, mark in marks.items():
        others = [other for other in marks.values() if other is not mark]
        stages[name] = items.with_columns(rank=numbered(mark))
        only = mark & ~pl.any_horizontal(no, *others)
        stages[f"only {name}"] = items.with_columns(rank=numbered(only))
    return stages | ({_UNION: items.with_columns(rank=numbered(union))} if marks else {})


def in_ideal_order(items: pl.LazyFrame, keys: Sequence[str], k: int | None = None) -> pl.LazyFrame:
    """Put the items of each list, or only the first k, in the order of their grades."""
    # the keys of a sort need names of their own before Polars 2
    below = (pl.lit(value=False) if k is None else terms.rank > k).alias(_column("below"))
    order = [below, -terms.grade, terms.rank]
    ranked = items.filter(terms.is_listed)
    ranked = ranked.with_columns(terms.rank.sort().over(keys, order_by=order))
    return pl.concat([ranked, items.filter(~terms.is_listed)])


# ------------------------------------------------------------------ one row per user → per stage


def _with_stage(values: Values, stage: str, items: pl.LazyFrame, metric: RequestedMetric) -> Values:
    """Add the values of a stage, of those users who have one of the list."""
    joined, keys, name = values.source, values.keys, _column(stage)
    whole = replace(values.settings, depth=None)  # the lists are cut, and sources have no ranks
    joined = joined.with_plans(tables=replace(joined.tables, settings=whole))
    joined = judgment.with_items(joined, items).with_plans(placed=items.filter(terms.is_listed))
    other = reduction.reduced(joined, [metric])
    value = pl.col(metric.name).cast(pl.Float64).alias(name)
    rows = values.rows.join(other.rows.select(*keys, value), on=keys, how="left")
    if stage in STAGES:  # without a relevant item, every order has the value of the list
        of_list = pl.col(_column("list"))
        same = pl.when(of_list.is_not_null()).then(pl.coalesce(name, of_list))
        rows = rows.with_columns(same.alias(name))
    checks = values.checks.with_more(other.checks.flags, *other.checks.raisers)
    return values._replace(rows=rows, checks=checks)


def _long(values: Values, metric: RequestedMetric, sources: Sequence[str]) -> pl.LazyFrame:
    """Reduce values to means, checked when the plan runs, in one row per stage."""
    of_sources = [*sources, _UNION] if sources else []
    metrics = dict.fromkeys([*of_sources, *STAGES], metric)
    metrics |= {f"only {name}": metric for name in sources}
    requested = [replace(metric, name=_column(stage)) for stage in metrics]
    names = [metric.name for metric in requested]
    types = {**values.types, **dict.fromkeys(names, pl.Float64())}
    values = values._replace(requested=requested, types=types, counted=frozenset(names))
    means = group_means.checked_means(values, total=False)
    after = {**dict(pairwise(STAGES)), **dict.fromkeys(sources, _UNION)}

    def row(stage: str) -> pl.Expr:
        value, nothing = pl.col(_column(stage)), pl.lit(None, pl.Float64)
        return pl.struct(
            metric=pl.lit("recall" if stage in of_sources else metric.name),
            stage=pl.lit(stage),
            value=value,
            gap=pl.col(_column(after[stage])) - value if stage in after else nothing,
            alone=pl.col(_column(f"only {stage}")) if stage in sources else nothing,
            users=pl.col(users_of(_column(stage))),
        )

    rows = pl.concat_list(row(stage) for stage in (*of_sources, *STAGES)).alias(_column(""))
    long = (
        means.select(*values.by, rows).explode(_column(""), empty_as_null=True).unnest(_column(""))
    )
    return long if sources else long.drop("alone")
