"""Fuse several runs into one: reciprocal ranks, Borda counts, sums of scores."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal, TypeAlias, Unpack, cast, get_args

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns, Duplicates
from rankframe._request.types import FrameT, Runs
from rankframe._tables import (
    adapters,
    column_roles,
    guards,
    judgment,
    rank_order,
    readers,
    repeated_items,
    rules,
    run_dicts,
)
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError

Method: TypeAlias = Literal[
    "rrf",
    "isr",
    "rbc",
    "borda",
    "comb_sum",
    "comb_mnz",
    "comb_max",
    "comb_min",
    "comb_med",
    "comb_anz",
]
Norm: TypeAlias = Literal["min_max", "zmuv", "sum", "rank"]

_rank, _value = pl.col("rank"), pl.col("__rankframe_value")
_weight = pl.col("__rankframe_weight")
_FLOOR = 1e-9  # the smallest divisor of a norm


@adapters.takes_any_frame
def fuse(
    runs: Runs[FrameT],
    /,
    method: Method = "rrf",
    *,
    by: str | Sequence[str] = (),
    smoothing: float = 60,
    phi: float = 0.8,
    weights: Mapping[object, float] | None = None,
    norm: Norm | None = None,
    duplicates: Duplicates = "error",
    **columns: Unpack[Columns],
) -> FrameT:
    """
    Fuse several runs into one: score each item of a user by its ranks or scores in all runs.

    Parameters
    ----------
    runs
        One row per item of each list, with the column that names the system: user, item, and rank
        (1 = first) or score; or a dict of runs by name, as ``runs.stack`` takes it.
    method
        From ranks: ``"rrf"`` = Σ 1/(smoothing + rank), reciprocal rank fusion; ``"isr"`` = m·Σ
        1/rank², m = the runs that have the item; ``"rbc"`` = Σ (1 − φ)·φ^(rank − 1); ``"borda"`` =
        Σ (N + 1 − rank), N = the user's items in all runs; the items that a run does not have share
        the points of the places after its list. From scores: ``"comb_sum"``, ``"comb_mnz"`` = m·Σ,
        ``"comb_max"``, ``"comb_min"``, ``"comb_med"`` and ``"comb_anz"`` = the mean.
    by
        Columns of segments, such as fold or day, which are fused separately.
    smoothing
        The constant of ``"rrf"``; ≥ 0.
    phi
        φ of ``"rbc"``, between 0 and 1.
    weights
        The weight of each system: a mapping from all systems to numbers ≥ 0. It multiplies the
        (normalized) scores, or the term of a rank.
    norm
        How the scores of each list are normalized: ``"min_max"`` to [0, 1]; ``"zmuv"`` to mean 0
        and standard deviation 1; ``"sum"``: minus the minimum, then divided by their sum; or
        ``"rank"`` = 1 − (rank − 1)/n, which needs no score.
    duplicates
        What happens if a list has an item several times. ``"error"`` raises an error. ``"first"``
        keeps its best place, and the items below its other places move up. ``"occupy"`` keeps its
        best place, and its other places stay empty.
    **columns
        ``model=``, ``user=``, ``item=``, ``rank=``, ``relevance=``, ``score=``, ``subtopic=``: the
        columns that play these roles, if they have other names. ``user=`` may be a list of columns.
        ``model=None`` ignores a column ``model`` of the run.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        A run: groups…, user, item, ``score`` (Float64) and ``rank`` (Int64, highest score first,
        equal scores by item id, descending), sorted unless lazy.

    Raises
    ------
    RankingDataError
        If a method needs scores and the run has none.
    ValueError
        If ``weights`` misses a system.

    Notes
    -----
    Cormack, Clarke and Büttcher, *SIGIR* 2009, for RRF; Bailey, Moffat, Scholer and Thomas, *SIGIR*
    2017, for RBC; Fox and Shaw, *TREC-2*, 1994, for the combinations of scores.

    Examples
    --------
    >>> runs = pl.DataFrame(
    ...     {
    ...         "model": ["a", "a", "b", "b"],
    ...         "user": 1,
    ...         "item": ["x", "y", "y", "z"],
    ...         "rank": [1, 2, 1, 2],
    ...     }
    ... )
    >>> rf.runs.fuse(runs, "isr").rows()
    [(1, 'y', 2.5, 1), (1, 'x', 1.0, 2), (1, 'z', 0.25, 3)]
    """
    runs, groups, columns = run_dicts.as_frame(
        runs, by, columns, compares="fuse", duplicates=duplicates
    )
    keywords.check_choice("method", method, get_args(Method))
    keywords.check_choice("norm", norm, (*get_args(Norm), None))
    _check_numbers(smoothing, phi, weights)
    table = readers.read("run", runs, groups, columns)
    score = column_roles.with_roles(columns, groups, table.schema, ["score"]).get("score", "score")
    scores = [score] if method.startswith("comb") and norm != "rank" else []
    _check(table, method, scores)
    table = repeated_items.once(table, duplicates)
    system, *outer_groups = groups
    rows = judgment.normalize_columns(table).filter(_rank.is_not_null())
    rows = rows.with_columns(_of_list(table, method, norm, score).alias("__rankframe_value"))
    rows = rows.with_columns(_weights(weights, system))
    fused = _fused(rows, table, method, smoothing, phi)
    ranked = rank_order.with_positions(
        fused, [*outer_groups, table.user], table.schema, pl.col("score"), rank_order.tie_of(table)
    )
    ranked = ranked.select(*outer_groups, table.user, table.item, "score", "rank")

    finite = [pl.col(name).cast(pl.Float64).is_finite() for name in scores]
    bad = ~pl.all_horizontal(pl.lit(value=True), *finite).fill_null(value=False)

    def raise_broken() -> None:
        rules.raise_in_tables([table])
        lacking = rows.filter(_weight.is_null()).select(system).head(1).collect()
        if not lacking.is_empty():
            msg = f"weights: no weight for the system {lacking.item()!r}: add one, or 0"
            raise ValueError(msg)
        systems = rows.select(pl.col(system).cast(pl.String).unique()).collect().to_series()
        if unknown := [name for name in weights or () if str(name) not in systems]:
            msg = f"weights names {unknown[0]!r}, which is not a system of column {system!r}"
            raise ValueError(msg)
        broken = rows.filter(bad).select(*table.keys, table.item, *scores)
        text = "a score that is null or not finite: drop the row, or fuse ranks"
        rules.raise_if_any(broken, table.name, score, text)

    flags = [guards.table_flag(table), guards.lists_flag(table), guards.flag(rows, bad.any())]
    if weights is not None:
        systems = pl.col(system).n_unique()
        flags.append(guards.flag(rows, _weight.is_null().any() | (systems != len(weights))))
    checked = guards.guarded(ranked, flags, raise_broken)
    return adapters.to_caller_type(checked, like=runs, sort=[*outer_groups, table.user, "rank"])


def _of_list(table: Table, method: Method, norm: Norm | None, score: str) -> pl.Expr:
    """Return the value of an item in its list, on the requested scale."""
    if norm == "rank":
        return 1 - (_rank - 1) / pl.len().over(table.keys)
    if not method.startswith("comb"):
        return pl.lit(0.0)
    value = pl.col(score).cast(pl.Float64)
    if norm is None:
        return value
    least = value.min().over(table.keys)
    if norm == "min_max":
        return (value - least) / (value.max().over(table.keys) - least).clip(lower_bound=_FLOOR)
    if norm == "sum":
        return (value - least) / (value - least).sum().over(table.keys).clip(lower_bound=_FLOOR)
    spread = value.std(ddof=0).over(table.keys).clip(lower_bound=_FLOOR)
    return (value - value.mean().over(table.keys)) / spread


def _weights(weights: Mapping[object, float] | None, system: str) -> pl.Expr:
    if weights is None:
        return pl.lit(1.0).alias("__rankframe_weight")
    mapping = [str(name) for name in weights], [float(weight) for weight in weights.values()]
    name = pl.col(system).cast(pl.String)
    chosen = name.replace_strict(*mapping, default=None, return_dtype=pl.Float64)
    return chosen.alias("__rankframe_weight")


def _fused(
    rows: pl.LazyFrame, table: Table, method: Method, smoothing: float, phi: float
) -> pl.LazyFrame:
    """Reduce the rows of each (user, item) to one score."""
    keys = [*table.by[1:], table.user, table.item]
    if method == "borda":
        return _borda(rows, keys, table)
    number, value = pl.len().cast(pl.Float64), _value * _weight
    scores = {
        "rrf": (_weight / (smoothing + _rank)).sum(),
        "isr": (_weight / _rank.cast(pl.Float64) ** 2).sum() * number,
        "rbc": (_weight * (1 - phi) * pl.lit(phi).pow(_rank - 1)).sum(),
        "comb_sum": value.sum(),
        "comb_mnz": value.sum() * number,
        "comb_max": value.max(),
        "comb_min": value.min(),
        "comb_med": value.median(),
        "comb_anz": value.mean(),
    }
    return rows.group_by(keys).agg(score=scores[method])


def _borda(rows: pl.LazyFrame, keys: Sequence[str], table: Table) -> pl.LazyFrame:
    """Add up N + 1 − rank; items that a list lacks share the points of the places after it."""
    of_user, item = list(keys[:-1]), keys[-1]
    every, points = pl.col("__rankframe_every"), pl.col("__rankframe_points")
    items = rows.group_by(of_user).agg(
        pl.col(item).n_unique().cast(pl.Float64).alias("__rankframe_every")
    )
    lists = rows.group_by(table.keys).agg(_weight.first(), pl.len().alias("__rankframe_length"))
    rest = (every - pl.col("__rankframe_length") + 1) / 2
    rests = lists.join(items, on=of_user).with_columns(rest.alias("__rankframe_rest"))
    left = pl.col("__rankframe_rest")
    whole = rests.group_by(of_user).agg((left * _weight).sum().alias("__rankframe_whole"))
    rows = rows.join(rests.select(*table.keys, left, every), on=table.keys)
    surplus = (every - _rank + 1 - left) * _weight
    rows = rows.with_columns(surplus.alias("__rankframe_points"))
    sums = rows.group_by(keys).agg(points.sum())
    score = points + pl.col("__rankframe_whole")
    return sums.join(whole, on=of_user).select(*keys, score=score)


def _check(table: Table, method: Method, scores: Sequence[str]) -> None:
    """Check the columns that a method reads, and the names that it adds."""
    for score in scores:
        if score not in table.schema:
            msg = (
                f"run: no column {score!r} for score: {method} adds up scores; name it with "
                "score=, use norm='rank', or fuse ranks, for example with 'rrf'"
            )
            raise RankingDataError(msg)
        if not (dtype := table.schema[score]).is_numeric():
            msg = f"run, column {score!r}: {dtype} cannot be a score: cast it to numbers"
            raise RankingDataError(msg)
    rules.raise_if_tied(table, " to fuse")
    rules.raise_if_taken("fuse", ("score", "rank"), (*table.by[1:], table.user, table.item))


def _check_numbers(smoothing: object, phi: object, weights: object) -> None:
    if not (keywords.is_number(smoothing) and 0 <= smoothing < math.inf):
        msg = f"smoothing must be a number ≥ 0, not {smoothing!r}"
        raise ValueError(msg)
    keywords.check_fraction("phi", phi)
    if weights is None:
        return
    mapping = cast("dict[object, object]", weights if isinstance(weights, Mapping) else {})
    good = all(keywords.is_number(weight) and 0 <= weight < math.inf for weight in mapping.values())
    if not mapping or not good:
        msg = f"weights must map systems to numbers ≥ 0, not {weights!r}"
        raise ValueError(msg)
