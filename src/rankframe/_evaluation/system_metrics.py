"""Reduce: metrics of all lists together, such as coverage and personalization (``SystemMetrics``).

They are reductions of shares (:mod:`rankframe._vocabulary.share_rows`), one number per group of
``by``. Intervals come from leaving out groups of users.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import nan
from typing import NamedTuple

import polars as pl

from rankframe import _sizes
from rankframe._request.labels import RequestedMetric
from rankframe._request.share_names import Distribution
from rankframe._tables.judgment import Joined
from rankframe._vocabulary import share_rows
from rankframe._vocabulary.share_rows import Shares

_GROUPS = 200  # of users, in the jackknife
LISTS = "lists()"  # the column of shares that counts all lists
_PART, _RIGHT = "__rankframe_part", "__rankframe_right"


class SystemMetrics(NamedTuple):
    """The metrics of all lists that a call requests, and their input."""

    requested: list[RequestedMetric]
    names: list[str]  # the names of all metrics of the call
    joined: Joined
    users: pl.LazyFrame | None  # whose lists count; None: everybody's
    by: list[str]

    def values(self, by: Sequence[str]) -> pl.LazyFrame:
        """Return one row per group of ``by``, or one row."""
        frames = [
            _reduced(
                share_rows.rows_of_shares(self._shares(kind, by), _names(metrics)), by, metrics
            )
            for kind, metrics in self.kinds().items()
        ]
        return _side_by_side(frames, by)

    def kinds(self) -> dict[Distribution, list[RequestedMetric]]:
        """Group the metrics by the shares that they reduce."""
        kinds: dict[Distribution, list[RequestedMetric]] = {}
        for metric in self.requested:
            kind = metric.distribution
            assert kind is not None
            kinds.setdefault(kind, []).append(metric)
        return kinds

    def exposures(self, kind: Distribution) -> pl.LazyFrame:
        """Return the exposure of each value in each list."""
        names = _names(self.kinds()[kind])
        return share_rows.exposures(self._shares(kind, self.by), names, per_list=True)

    def additive(self, kind: Distribution, groups: pl.LazyFrame) -> pl.LazyFrame:
        """Return sums over users, and the number of lists, per group of ``groups`` and value."""
        names, shares = [*_names(self.kinds()[kind]), LISTS], self._shares(kind, self.by)
        sums = share_rows.exposures(shares, names)
        every = groups if self.by else None
        rows = share_rows.with_targets(sums, shares, names, groups=every)
        return share_rows.with_counts(rows, shares, names)

    def catalogue(self, kind: Distribution) -> pl.DataFrame | None:
        """Return the values of each group; None if these differ, or only shown ones count."""
        if kind.of == "shown":
            return None
        values = share_rows.values_of(self.joined, kind.of, self.by)
        if not {*self.by}.isdisjoint(values.collect_schema()):
            return None
        return values.collect().sort(share_rows.VALUE)

    def resampled(
        self, kind: Distribution, sums: pl.LazyFrame, part: str, *, complete: bool
    ) -> pl.LazyFrame:
        """Reduce exposures that are made anew, one row per ``part`` and group.

        They are ``complete`` if each group has all values of the catalogue, and no others.
        """
        metrics = self.kinds()[kind]
        groups = sums.select(part, *self.by).unique()
        rows = share_rows.completed(
            sums,
            self._shares(kind, self.by),
            _names(metrics),
            parts=[part],
            groups=groups,
            complete=complete,
        )
        return _reduced(rows, [part, *self.by], metrics)

    def of_pair(
        self, lists: pl.DataFrame, kind: Distribution, pair: tuple[object, object]
    ) -> OfPair:
        """Reduce the ``lists`` of users who have one of both systems, in one segment."""
        model, user = self.by[0], self.joined.keys[-1]
        of_pair = lists.filter(pl.col(model).is_in(list(pair)))
        both = of_pair.filter(pl.col(model).n_unique().over(user) == 2)
        exposed = [name for name in lists.columns if name.startswith("exposure(")]
        keys = [*self.by, share_rows.VALUE]
        ordered = both.drop_nulls(share_rows.VALUE).sort(*keys, user)  # sums in one order
        sums = ordered.group_by(keys, maintain_order=True).agg(pl.col(exposed).sum())
        sums = sums.with_columns(pl.lit(0).alias(_PART))
        numbers = self.resampled(kind, sums.lazy(), _PART, complete=False).collect()
        of_systems = [numbers.filter(pl.col(model) == system) for system in pair]
        means = {
            metric.name: [
                nan if (value := next(iter(system[metric.name]), None)) is None else float(value)
                for system in of_systems
            ]
            for metric in self.kinds()[kind]
        }
        users = both[user].n_unique()
        return OfPair(means, users, of_pair[user].n_unique() - users)

    def _shares(self, kind: Distribution, by: Sequence[str]) -> Shares:
        return Shares(self.joined, kind, by, self.users)


class OfPair(NamedTuple):
    """Each metric of a system and of its baseline, NaN if undefined; users with both lists."""

    means: dict[str, list[float]]
    users: int
    left_out: int  # users with one of the two lists


def numbers_of_sums(
    sums: pl.DataFrame, counts: pl.DataFrame, metrics: Sequence[RequestedMetric], by: Sequence[str]
) -> pl.DataFrame:
    """Reduce the sums of ``SystemMetrics.additive`` to one row per group of ``by``.

    ``sums`` has a row per group and value, ``counts`` one per group.
    """
    rows = share_rows.with_shares(sums.lazy(), _names(metrics), by)
    if by:  # a group without a list has no number
        listed = counts.lazy().filter(pl.col(LISTS) > 0)
        rows = rows.join(listed, on=by, nulls_equal=True)
    else:
        rows = rows.join(counts.lazy(), how="cross")
    # in order, so that the order of parts does not change the last bits
    rows = rows.sort(*by, share_rows.VALUE)
    return _reduced(rows, by, metrics, in_order=True).collect()


def _names(metrics: Sequence[RequestedMetric]) -> list[str]:
    return sorted({name for metric in metrics for name in metric.reads})


def _reduced(
    rows: pl.LazyFrame,
    keys: Sequence[str],
    metrics: Sequence[RequestedMetric],
    *,
    in_order: bool = False,
) -> pl.LazyFrame:
    values = [metric.expr for metric in metrics]
    if not keys:  # Polars 1.44 repeats two Gini coefficients that are null per row
        return rows.select(values).head(1)
    return rows.group_by(keys, maintain_order=in_order).agg(values)


def _side_by_side(frames: Sequence[pl.LazyFrame], by: Sequence[str]) -> pl.LazyFrame:
    first, *rest = frames
    for other in rest:
        if by:
            first = first.join(other, on=by, how="full", coalesce=True, nulls_equal=True)
        else:
            first = first.join(other, how="cross")
    return first


# ------------------------------------------------------------------ intervals: leaving out users


def errors(metrics: SystemMetrics, seed: int) -> pl.LazyFrame:
    """Return each metric's standard error, by a jackknife over groups of users, and their number.

    A bootstrap of users would draw some twice and others not at all, and so only lose items.
    """
    schema = _error_schema(metrics)
    frames = [
        metrics.exposures(kind).map_batches(
            partial(_errors, metrics=metrics, kind=kind, seed=seed),
            schema=schema,
        )
        for kind in metrics.kinds()
    ]
    return pl.concat(frames)


def _errors(
    lists: pl.DataFrame, *, metrics: SystemMetrics, kind: Distribution, seed: int
) -> pl.DataFrame:
    import numpy as np

    by, keys = metrics.by, metrics.joined.keys
    names = [metric.name for metric in metrics.kinds()[kind]]
    exposed = [name for name in lists.columns if name.startswith("exposure(")]
    users = lists.select(keys).unique().sort(keys)
    order = pl.int_range(pl.len())
    place = (order.over(by) if by else order).alias(_PART)
    users = users.with_columns(place)
    largest = int(users[_PART].max() or 0) + 1 if len(users) else 0  # type: ignore[arg-type]
    shuffled = pl.Series(np.random.default_rng(seed).permutation(largest) % _GROUPS)
    users = users.with_columns(shuffled.gather(users[_PART]).alias(_PART))
    valued = lists.drop_nulls(share_rows.VALUE).join(users, on=keys)
    valued = valued.sort(*by, _PART, share_rows.VALUE, keys[-1])  # sums in one order
    parts = valued.group_by(*by, _PART, share_rows.VALUE, maintain_order=True).agg(
        pl.col(exposed).sum()
    )
    whole = parts.group_by(*by, share_rows.VALUE, maintain_order=True).agg(pl.col(exposed).sum())
    catalogue = metrics.catalogue(kind)
    if catalogue is not None:  # joined once here, which saves a join per slice
        every = whole.select(by).unique().join(catalogue, how="cross") if by else catalogue
        whole = every.join(whole, on=[*by, share_rows.VALUE], how="left")
        whole = whole.with_columns(pl.col(exposed).fill_null(0.0))
    groups = users.select(*by, _PART).unique().sort(*by, _PART)
    without: list[pl.DataFrame] = []
    for slice_ in groups.iter_slices(_sizes.GROUPS_LEFT_OUT):
        left = slice_.join(whole, on=by) if by else slice_.join(whole, how="cross")
        left = left.join(parts, on=[*by, _PART, share_rows.VALUE], how="left", suffix=_RIGHT)
        rest = [pl.col(name) - pl.col(f"{name}{_RIGHT}").fill_null(0.0) for name in exposed]
        sums = left.select(
            *by, _PART, share_rows.VALUE, *(value.clip(lower_bound=0) for value in rest)
        )
        numbers = metrics.resampled(kind, sums.lazy(), _PART, complete=catalogue is not None)
        without.append(numbers.collect())
    if not without:  # an empty run, for which the checks raise
        return pl.DataFrame(schema=_error_schema(metrics))
    rows = pl.concat(without).unpivot(
        on=names, index=[*by, _PART], variable_name="metric", value_name="value"
    )
    rows = rows.with_columns(pl.col("value").cast(pl.Float64))
    number, value = pl.len().cast(pl.Float64), pl.col("value")
    error = ((number - 1) * value.var(ddof=0)).sqrt()
    return rows.group_by(*by, "metric").agg(error.alias("error"), number.alias("number"))


def is_of_targets(metric: RequestedMetric) -> bool:
    """Return whether the target of a metric depends on the users whose lists count."""
    ends = (";truth)", ";candidates)")
    return any(name.startswith("lists") or name.endswith(ends) for name in metric.reads)


def _error_schema(metrics: SystemMetrics) -> dict[str, pl.DataType]:
    types = metrics.joined.run.collect_schema()
    groups = {name: types[name] for name in metrics.by}
    return {**groups, "metric": pl.String(), "error": pl.Float64(), "number": pl.Float64()}
