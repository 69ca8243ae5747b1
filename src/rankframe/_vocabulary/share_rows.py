"""Before the reduction: shares, one row per item, genre or provider, with its exposure in lists.

A metric of shares reads ``exposure(of;over;weight;k)``, ``share(…)`` and ``target(of;over;what)``.
``over`` defines one distribution: the lists of ``all`` users of a group, or the list of each user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import polars as pl

from rankframe._request import registry, share_names
from rankframe._request.parameters import OptionalColumn, Weight
from rankframe._request.share_names import Distribution, Over, ShareName, Target
from rankframe._tables import side_tables
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Table
from rankframe._vocabulary import derived_columns, list_columns, scope_rows
from rankframe.errors import RankingDataError, option
from rankframe.metrics import _building_blocks

VALUE, _PART = "__rankframe_value", "__rankframe_part"
_HAD, _THERE, _LISTS = "__rankframe_had", "__rankframe_there", "__rankframe_lists"
_rank = pl.col("rank")


_column = partial(
    registry.given_column,
    scope="shares",
    source=registry.SHARES,
    derived_on="lists",
    in_ties="both",
)
_OF: Mapping[str, tuple[Any, ...]] = {"of": (OptionalColumn, None)}
_DISTRIBUTION: Mapping[str, tuple[Any, ...]] = {**_OF, "over": (Over,)}
_EXPOSURE = {**_DISTRIBUTION, "weight": (Weight,), **derived_columns.CUT}
_column(
    "exposure",
    "Σ of the weights of the ranks at which the value is listed, 0 if it is not listed: "
    "exposure(genre;all;log2;10)",
    parameters=_EXPOSURE,
)
_column("share", "Exposure / Σ exposure: share(genre;all;log2;10)", parameters=_EXPOSURE)
_column(
    "target",
    "The share that the value should have: target(genre;all;catalogue)",
    parameters={**_DISTRIBUTION, "what": (Literal[Target, "judged"],)},
)
_column("values", "Number of values in the catalogue: values(genre)", parameters=_OF)
_column(
    "lists",
    "Number of lists; of those that have an item down to rank 10: lists(10)",
    parameters=derived_columns.CUT,
)


class Shares(NamedTuple):
    """What is shared out, and in whose lists."""

    joined: Joined
    kind: Distribution
    by: Sequence[str]
    users: pl.LazyFrame | None = None  # whose lists count; None: everybody's

    @property
    def keys(self) -> list[str]:
        """The columns that identify one distribution."""
        return self.joined.keys if self.kind.over == "user" else [*self.by]

    @property
    def whole(self) -> bool:
        """Whether exposure goes to items, not to values of a column."""
        return self.kind.of in ("item", "shown")

    @property
    def single(self) -> bool:
        """Whether no item has several values, so that each of its parts is 1."""
        if self.whole:
            return True
        items = self.joined.inputs["items"]
        return not items.schema[_of(self.joined, self.kind.of)].is_nested()

    def lists(self) -> pl.LazyFrame:
        """Return the users whose lists count, once."""
        return self.of_users(scope_rows.users_of_run(self.joined))

    def of_users(self, rows: pl.LazyFrame) -> pl.LazyFrame:
        """Keep the rows of the users whose lists count."""
        if self.users is None:
            return rows
        return rows.join(self.users, on=self.joined.keys, how="semi")


def rows_of_shares(shares: Shares, names: Iterable[str]) -> pl.LazyFrame:
    """Return the rows that metrics of shares reduce: ``by``, possibly the user, and the value."""
    return completed(exposures(shares, names), shares, names)


def exposures(shares: Shares, names: Iterable[str], *, per_list: bool = False) -> pl.LazyFrame:
    """Sum the exposure of each value over the lists, or with ``per_list`` per user.

    A list, or a group of lists, without any has one row without a value.
    """
    keys, kind = shares.joined.keys if per_list else shares.keys, shares.kind
    columns = [share for share in share_names.parsed(names) if share.word in ("exposure", "share")]
    columns = columns or [ShareName("", "exposure", kind.of, kind.over)]
    weights = {share.exposure: share for share in columns}
    rows = _with_values(_listed(shares, list(weights.values())), shares)
    part = pl.lit(1.0) if shares.single else pl.col(_PART)
    sums = [_sum_of(share, part, single=shares.single).alias(n) for n, share in weights.items()]
    exposed = rows.group_by(*keys, VALUE).agg(sums)
    if not keys:
        return exposed
    lists = shares.lists()
    lists = lists if keys == shares.joined.keys else lists.select(keys).unique()
    return lists.join(exposed, on=keys, how="left")


def completed(
    sums: pl.LazyFrame,
    shares: Shares,
    names: Iterable[str],
    *,
    parts: Sequence[str] = (),
    groups: pl.LazyFrame | None = None,
    complete: bool = False,
) -> pl.LazyFrame:
    """Add to exposures the values that are in no list, targets, shares and counts.

    ``parts`` are further columns that split the exposures, as resamples do; ``groups`` then lists
    all groups. ``complete`` exposures already have the values that are in no list.
    """
    names = sorted(names)
    rows = with_targets(sums, shares, names, parts=parts, groups=groups, complete=complete)
    return with_counts(with_shares(rows, names, [*parts, *shares.keys]), shares, names)


def with_targets(
    sums: pl.LazyFrame,
    shares: Shares,
    names: Iterable[str],
    *,
    parts: Sequence[str] = (),
    groups: pl.LazyFrame | None = None,
    complete: bool = False,
) -> pl.LazyFrame:
    """Add to exposures the values that are in no list, and targets, which are still counts."""
    keys = [*parts, *shares.keys]
    rows = sums
    if shares.kind.over == "all" and shares.kind.of != "shown" and not complete:
        rows = _with_unlisted(rows, shares, keys, groups)
    for share in share_names.parsed(names):
        if share.word == "target":
            rows = _with_target(rows, shares, share, keys)
    columns = [name for name in rows.collect_schema() if name.startswith(("exposure(", "target("))]
    return rows.with_columns(pl.col(columns).fill_null(0.0))


def with_shares(rows: pl.LazyFrame, names: Iterable[str], keys: Sequence[str]) -> pl.LazyFrame:
    """Add shares to exposures, and divide targets by their sum."""
    columns = [share for share in share_names.parsed(names) if share.word in ("share", "target")]
    return rows.with_columns(
        _normed(pl.col(_name_of_sum(share)), keys).alias(share.name) for share in columns
    )


def with_counts(rows: pl.LazyFrame, shares: Shares, names: Iterable[str]) -> pl.LazyFrame:
    """Add the number of values and of lists."""
    by, number = shares.by, pl.len().cast(pl.Int64)
    for name in names:
        if name.startswith("values("):
            (of,) = registry.read_parameters(name)
            values = values_of(shares.joined, of or shares.kind.of, by)
            groups = [n for n in by if n in values.collect_schema()]
            rows = list_columns.with_numbers(rows, values, groups, [number.alias(name)])
        if name.startswith("lists("):
            (k,) = registry.read_parameters(name)
            lists = shares.lists()
            if k is not None:
                lists = _lists(shares).filter(_down_to(k))
                lists = lists.select(shares.joined.keys).unique()
            rows = list_columns.with_numbers(rows, lists, by, [number.alias(name)])
    return rows


def columns_of_sums(names: Iterable[str]) -> list[str]:
    """Return the names of the exposures and targets from which the shares are made."""
    return list(map(_name_of_sum, share_names.parsed(names)))


def _name_of_sum(share: ShareName) -> str:
    return share.name if share.word == "target" else share.exposure


def values_of(joined: Joined, of: str, by: Sequence[str]) -> pl.LazyFrame:
    """Return each value of the catalogue once, per group if the catalogue has groups."""
    items = _catalogue(joined, of)
    groups = [name for name in items.by if name in by]
    if of in ("item", "shown"):
        values = items.frame.select(*groups, pl.col(joined.item).alias(VALUE))
    else:
        values = _parts(joined, of).select(*groups, VALUE)
    return values.unique()


def public_name(of: str, inputs: Mapping[str, Table], item: str) -> str:
    """Return the name of the column of values in the caller's tables."""
    if of in ("item", "shown"):
        return item
    return list_columns.column_of_values(inputs["items"], item, of)


def _of_shown(whose: str) -> str:
    """Write the label that covers what is shown: all of it is covered, so only its count tells."""
    parts = re.search(r"'(\w+)(?:\((.*)\))?(@.*)?'", whose)
    if parts is None:
        return "of=shown"
    name, options, cut = (part or "" for part in parts.groups())
    chosen = [part.strip() for part in options.split(",") if part.strip()]
    chosen = [part for part in chosen if not part.startswith("of=")] + ["of=shown"]
    if name == "coverage" and not any(part.startswith("count=") for part in chosen):
        chosen.append("count=true")
    return repr(f"{name}({', '.join(chosen)}){cut}")


def check_shares(
    whose: str, kind: Distribution, names: Iterable[str], inputs: Mapping[str, Table], item: str
) -> None:
    """Check that the tables and the column whose shares are measured are present."""
    if lacking := _missing_tables(kind, names, inputs):
        of = kind.of or f"a column of {option('items')}"
        msg = f"{whose} needs shares of {of}: pass {side_tables.meanings(lacking)}"
        if "history" in lacking and kind.of == "item":
            msg += f"; or measure only items that are shown: {_of_shown(whose)}"
        raise RankingDataError(msg)
    if kind.of in ("item", "shown"):
        return
    of = list_columns.column_of_values(inputs["items"], item, kind.of)
    dtype = inputs["items"].schema[of]
    inner = dtype.inner if isinstance(dtype, pl.List | pl.Array) else dtype
    if not isinstance(inner, pl.DataType) or inner.is_nested() or inner.is_float():
        msg = f"of={of}: the column is {dtype}, but shares need text, or a list of text: cast it"
        raise RankingDataError(msg)


# ------------------------------------------------------------------ exposure


def _listed(shares: Shares, columns: Sequence[ShareName]) -> pl.LazyFrame:
    """Return the rows of the lists, no deeper than the greatest cut-off."""
    names = ["relevant"] if any(share.weight == "hit" for share in columns) else []
    rows = _lists(shares, *names)
    cuts = [share.k for share in columns]
    if all(cuts):
        rows = rows.filter(_rank <= max(k for k in cuts if k))
    for share in columns:
        if share.weight in ("norm", "inverse"):
            length = pl.len() if share.k is None else _down_to(share.k).sum()
            rows = rows.with_columns(length.over(shares.joined.keys).alias(_length(share)))
    return rows


def _lists(shares: Shares, *names: str) -> pl.LazyFrame:
    joined = shares.joined
    reading = registry.reading_of({"listed", "rank", *names}, inputs=joined.inputs)
    rows = scope_rows.rows_of_scope(joined, reading)
    return shares.of_users(rows.rename({"block": "rank"}) if joined.tables.tied else rows)


def _sum_of(share: ShareName, part: pl.Expr, *, single: bool) -> pl.Expr:
    """Sum the weights of the ranks of a value."""
    if single and share.weight == "none":  # counting takes half the time
        return _down_to(share.k).sum().cast(pl.Float64) if share.k else pl.len().cast(pl.Float64)
    return (_weight(share) * part).filter(_down_to(share.k)).sum()


def _weight(share: ShareName) -> pl.Expr:
    if share.weight in ("norm", "inverse"):  # 1/√n and 1/n, n = length of the list
        return 1 / pl.col(_length(share)).pow(0.5 if share.weight == "norm" else 1)
    return _building_blocks.discount_of_place(share.weight)


def _down_to(k: int | None) -> pl.Expr:
    return pl.lit(value=True) if k is None else _rank <= k


def _length(share: ShareName) -> str:
    return f"__rankframe_length_{share.k}"


def _with_values(rows: pl.LazyFrame, shares: Shares) -> pl.LazyFrame:
    """Return one row per value of an item; what is not in the catalogue is left out."""
    joined, kind = shares.joined, shares.kind
    if shares.whole:
        rows = rows.with_columns(pl.col(joined.item).alias(VALUE))
    if not _is_joined(kind, joined.inputs):
        return rows
    items, has = _catalogue(joined, kind.of), rows.collect_schema()
    values = items.frame.select(*items.by, joined.item).unique()
    values = values if shares.whole else _parts(joined, kind.of)
    on = [*(name for name in items.by if name in has), joined.item]
    return rows.join(values, on=on)


def _parts(joined: Joined, of: str) -> pl.LazyFrame:
    """Return the values of each item, and the part of each value."""
    items, of = joined.inputs["items"], _of(joined, of)
    keys = [*items.by, joined.item]
    values = items.frame.select(*keys, pl.col(of).alias(VALUE)).drop_nulls(VALUE)
    dtype = items.schema[of]
    if not isinstance(dtype, pl.List | pl.Array):
        return values.with_columns(pl.lit(1.0).alias(_PART))
    if isinstance(dtype, pl.Array):
        values = values.with_columns(pl.col(VALUE).arr.to_list())
    values = values.with_columns(pl.col(VALUE).list.drop_nulls().list.unique())
    values = values.with_columns((1 / pl.col(VALUE).list.len()).alias(_PART))
    return values.explode(VALUE, empty_as_null=False)


def _of(joined: Joined, of: str) -> str:
    return list_columns.column_of_values(joined.inputs["items"], joined.item, of)


def _catalogue(joined: Joined, of: str) -> Table:
    """Return the table of what could be shown."""
    if of not in ("item", "shown"):
        return joined.inputs["items"]
    return list_columns.catalogue(joined.inputs)


# ------------------------------------------------------------------ targets and counts


def _with_unlisted(
    sums: pl.LazyFrame, shares: Shares, keys: Sequence[str], groups: pl.LazyFrame | None
) -> pl.LazyFrame:
    """Add the values of the catalogue that are in no list."""
    by = shares.by
    values = values_of(shares.joined, shares.kind.of, by)
    if groups is None and by:
        groups = shares.lists().select(by).unique()
    if groups is not None:
        shared = [name for name in by if name in values.collect_schema()]
        values = _beside(groups, values, shared)
    return values.join(sums, on=[*keys, VALUE], how="left")


def _with_target(
    rows: pl.LazyFrame, shares: Shares, share: ShareName, keys: Sequence[str]
) -> pl.LazyFrame:
    if share_names.is_even(share):
        return rows.with_columns(pl.lit(1.0).alias(share.name))
    counts = _target_counts(shares, share)
    has = counts.collect_schema()
    shared = [name for name in keys if name in has]
    if shares.kind.over == "all":
        return rows.join(counts, on=[*shared, VALUE], how="left")
    counts = _beside(shares.lists(), counts, shared)
    how: Any = "left" if shares.kind.of == "shown" and share.weight != "judged" else "full"
    return rows.join(counts, on=[*keys, VALUE], how=how, coalesce=True)


def _target_counts(shares: Shares, share: ShareName) -> pl.LazyFrame:
    """Count the targets of the shares."""
    joined, kind, by = shares.joined, shares.kind, shares.by
    per_user = joined.keys[-1:] if kind.over == "user" else []
    if share.weight in ("truth", "judged"):
        reading = registry.reading_of({"judged", "relevant"}, inputs=joined.inputs)
        rows = scope_rows.rows_of_scope(joined, reading).filter(
            "relevant" if share.weight == "truth" else "judged"
        )
        users = shares.lists() if shares.users is None else shares.users
        rows = rows.join(users, on=joined.keys, how="semi")
        return _counted(rows, shares, [*by, *per_user], share.name)
    if share.weight == "uniform":
        return values_of(joined, kind.of, by).with_columns(pl.lit(1.0).alias(share.name))
    items = _catalogue(joined, kind.of)
    if share.weight == "history":
        history = joined.inputs["history"]
        split_by = items.by if _is_joined(kind, joined.inputs) else []
        groups = [name for name in by if name in (*history.by, *split_by)]
        return _counted(history.frame, shares, [*groups, *per_user], share.name)
    catalogue = items.frame.select(*items.by, joined.item).unique()
    if share.weight == "catalogue":
        in_items = [name for name in items.by if name in by]
        return _counted(catalogue, shares, in_items, share.name)
    return _candidates(shares, items.by, catalogue, share.name)


def _candidates(
    shares: Shares, items_by: Sequence[str], catalogue: pl.LazyFrame, name: str
) -> pl.LazyFrame:
    """Count the items that the users of the lists have not had."""
    joined, own, lists = shares.joined, shares.keys, shares.lists()
    history = joined.inputs["history"]
    had = history.frame.select(*history.by, joined.keys[-1], joined.item).unique()
    had = lists.join(had, on=[*history.by, joined.keys[-1]])
    had = had.join(catalogue, on=[*items_by, joined.item], how="semi")
    number = pl.len().alias(_LISTS)
    numbers = lists.group_by(own).agg(number) if own else lists.select(number)
    in_items = [name for name in items_by if name in shares.by]
    counts = _beside(numbers, _counted(catalogue, shares, in_items, _THERE), in_items)
    left = pl.col(_THERE) * pl.col(_LISTS) - pl.col(_HAD).fill_null(0.0)
    both = counts.join(_counted(had, shares, own, _HAD), on=[*own, VALUE], how="left")
    return both.select(*own, VALUE, left.alias(name))


def _counted(rows: pl.LazyFrame, shares: Shares, keys: Sequence[str], name: str) -> pl.LazyFrame:
    """Count the items of rows by their values."""
    count = pl.len().cast(pl.Float64) if shares.single else pl.col(_PART).sum()
    return _with_values(rows, shares).group_by(*keys, VALUE).agg(count.alias(name))


def _beside(left: pl.LazyFrame, right: pl.LazyFrame, on: Sequence[str]) -> pl.LazyFrame:
    """Join on the common columns, or without any, join each row with each."""
    return left.join(right, on=on) if on else left.join(right, how="cross")


def _normed(value: pl.Expr, keys: Sequence[str]) -> pl.Expr:
    """Divide by the sum; null if that is 0."""
    total = value.sum().over(keys) if keys else value.sum()
    return pl.when(total > 0).then(value / total)


def _missing_tables(
    kind: Distribution, names: Iterable[str], inputs: Mapping[str, Table]
) -> tuple[str, ...]:
    """Name the tables, one of which shares need, if all are missing."""
    names = list(names)
    targets = [share for share in share_names.parsed(names) if share.word == "target"]
    whats = {share.weight for share in targets if not share_names.is_even(share)}
    if kind.of not in ("item", "shown") and "items" not in inputs:
        return ("items",)
    if whats & {"history", "candidates"} and "history" not in inputs:
        return ("history",)
    counts = whats & {"catalogue", "uniform", "candidates"}
    counts |= {name for name in names if name.startswith("values(")}
    if (counts or (kind.over == "all" and kind.of != "shown")) and not _has_catalogue(inputs):
        return ("items", "history")
    return ()


def _is_joined(kind: Distribution, inputs: Mapping[str, Table]) -> bool:
    """Whether rows are joined to the catalogue; items over all lists are joined to it later."""
    if kind.of in ("item", "shown"):
        return kind == Distribution("item", "user") and _has_catalogue(inputs)
    return True


def _has_catalogue(inputs: Mapping[str, Table]) -> bool:
    return not {"items", "history"}.isdisjoint(inputs)
