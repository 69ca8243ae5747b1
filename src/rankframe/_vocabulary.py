"""The vocabulary: every column that metrics are written on, each a record in one place.

A metric reduces the rows of one user, and its scope says which: the relevant items, retrieved or
not; all judged items; the whole list; or one row per subtopic of an item. The scope follows from
the columns that the metric's expression reads (``reading_of``). ``rows_of_scope`` gives the rows,
with the columns that are read and no others.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from math import ceil, log
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe._labels import INNER, check_gain, gain_from
from rankframe._options import ROLES, Settings
from rankframe._rank_order import SHARES_RANK, Bounds, in_rank_order
from rankframe.metrics._gains import (
    discount,
    gain_of,
    has_gain_of_zero,
    need,
    stop_chance,
    usefulness,
)

#: The rows that a metric reduces. Each of the first three contains the one before; shares are those
#: of an attribute's values in the lists.
Scope: TypeAlias = Literal["relevant", "judged", "listed", "subtopic", "shares"]
#: Whether a column exists both with ranks and with blocks of equal scores, or with only one of
#: them.
InTies: TypeAlias = Literal["both", "ranks", "blocks"]

_WIDTHS: Mapping[Scope, int] = {
    "relevant": 0,
    "subtopic": 0,
    "judged": 1,
    "listed": 2,
    "shares": 3,
}

#: The prefixes of the names of the columns of shares.
_WORDS_OF_SHARES = ("exposure(", "share(", "target(", "values(", "lists(")

_rank = pl.col("rank")
_relevance = pl.col("relevance")
_relevant = pl.col("relevant")
_is_judged = _relevance >= 0
_is_graded = _relevance > 0
_is_listed = _rank.is_not_null()

#: true in the row of a list of which ``depth`` or ``judged_only`` leaves nothing
IS_EMPTIED = f"{INNER}is_emptied"

#: whether the grade was > 0 before grades below ``gains_from`` became 0
_WAS_GRADED = f"{INNER}was_graded"


class Input(NamedTuple):
    """A table besides run and truth: its rows, and the columns of ``by`` that it has."""

    frame: pl.LazyFrame
    schema: pl.Schema
    by: list[str]


class Sources(NamedTuple):
    """What the columns are derived from: plain frames and their keys."""

    items: pl.LazyFrame  # one row per item of the lists and the truth
    ranked_truth: pl.LazyFrame  # the same without unjudged items
    judgments: pl.LazyFrame  # the same, or one row per subtopic of an item
    ranked: pl.LazyFrame  # the rows of the lists alone
    lists: pl.LazyFrame  # the same with only keys and rank
    keys: list[str]
    item: str
    types: Mapping[str, pl.DataType]  # of the keys, the item and the relevance
    bounds: Bounds
    tied: bool
    has_subtopics: bool
    top_grade: pl.Expr
    of_lists: frozenset[str]  # the caller's columns that only the lists have
    settings: Settings
    inputs: Mapping[str, Input]  # by the name of the keyword: items, history, other


class Rows(NamedTuple):
    """The rows on which columns are derived, and what their derivation may need."""

    sources: Sources
    ranked: pl.LazyFrame  # the lists, cut and condensed
    lists: pl.LazyFrame  # the same with only keys and rank
    scope: Scope
    unjoined: pl.LazyFrame  # the rows before the joins of a step: a plan joined with itself doubles
    alone: bool = False  # whether only keys, rank and relevance are read

    @property
    def keys(self) -> list[str]:
        """The columns that identify a list: the groups and the user."""
        return self.sources.keys

    @property
    def block(self) -> list[str]:
        """The columns that identify a block of ties."""
        return [*self.sources.keys, "rank"]

    @property
    def aspect(self) -> list[str]:
        """The columns that identify a subtopic; without subtopics, all items are of one."""
        return [*self.keys, "subtopic"] if self.scope == "subtopic" else self.keys


#: Derives a column: of the rows and, where it takes one, the text of its parameter.
Derive: TypeAlias = Callable[..., pl.Expr]
#: Adds columns of one kind by a join, or in several steps: of the frame, the rows, and the text of
#: the parameter by name.
Join: TypeAlias = Callable[..., pl.LazyFrame]


class Column(NamedTuple):
    """A column of the vocabulary, and everything known about it."""

    name: str
    meaning: str
    scope: Scope = "relevant"  # of a metric that reads it
    derived_over: Scope = "relevant"  # the rows that it is derived from, if wider
    reads: tuple[str, ...] = ()  # what it is derived from; ``*`` stands for the same parameter
    in_ties: InTies = "ranks"
    down_to_rank: bool = False  # an item's value does not depend on items below it
    in_order: bool = False  # its derivation needs the rows in rank order
    beside_subtopics: bool = False  # it is defined for a row of a subtopic
    of_lists: bool = False  # it is known without a truth
    of_all_rows: bool = False  # it is derived on all rows, not on relevant ones
    parameter: Callable[[str], object] | None = None  # checks the text of the parameter
    default: str = ""
    derive: Derive | None = None
    join: Join | None = None
    registered: bool = False  # by a user: the name is reserved only if a metric reads it
    source: str = ""  # its table besides run and truth; reserved if that is passed

    @property
    def always_reserved(self) -> bool:
        """Whether no table may have a column of this name."""
        return not (self.registered or self.source)


COLUMNS: dict[str, Column] = {}


def given_column(name: str, meaning: str, **known: Any) -> None:
    """Declare a column that exists before any is derived."""
    COLUMNS[name] = Column(name, meaning, **known)


def column(**known: Any) -> Callable[[Derive], Derive]:
    """Declare a column by the function that derives it, which has its name and its meaning."""

    def declare(derive: Derive) -> Derive:
        name, meaning = _described(derive)
        COLUMNS[name] = Column(name, meaning, derive=derive, **known)
        return derive

    return declare


def joined_column(name: str = "", meaning: str = "", **known: Any) -> Callable[[Join], Join]:
    """Declare a column that a join adds; one that adds several is decorated with each."""

    def declare(join: Join) -> Join:
        own = (name, meaning) if name else _described(join)
        COLUMNS[own[0]] = Column(*own, join=join, **known)
        return join

    return declare


def _described(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__name__, " ".join((function.__doc__ or "").split()).removesuffix(".")


class Reading(NamedTuple):
    """What metrics read: their needs, found in one place."""

    names: frozenset[str]  # what expressions name, and what registered columns read
    columns: dict[str, Column]  # those of the vocabulary, and what these are derived from
    scope: Scope

    @property
    def outside(self) -> list[str]:
        """The columns that are not of the vocabulary."""
        return sorted(name for name in self.names if name not in self.columns)

    @property
    def names_its_rows(self) -> bool:
        """Whether the expressions name the rows that they reduce."""
        named = {"listed", "judged", "relevant"}
        return not named.isdisjoint(self.names) or any(
            known.scope != "relevant" for known in self.columns.values()
        )

    @property
    def lists_alone(self) -> bool:
        """Whether what is read needs no truth."""
        of_lists = self.scope in ("listed", "shares")
        return of_lists and all(known.of_lists for known in self.columns.values())

    @property
    def mixes_subtopics(self) -> bool:
        """Whether columns of subtopics are mixed with columns counted by item."""
        named = [self.columns[name] for name in self.names if name in self.columns]
        return any(known.scope == "subtopic" for known in named) and not all(
            known.beside_subtopics or known.scope == "subtopic" for known in named
        )

    @property
    def counts_judged(self) -> bool:
        """Whether judged items that are not relevant count."""
        return self._derives_from("judged")

    @property
    def counts_listed(self) -> bool:
        """Whether unjudged items of the list count."""
        return self._derives_from("listed") or self._derives_from("shares")

    @property
    def depends_on_below(self) -> bool:
        """Whether what is read of an item may depend on the items below it."""
        return bool(self.outside) or any(not self.columns[name].down_to_rank for name in self.names)

    @property
    def in_order(self) -> bool:
        """Whether the rows are sorted by rank anyway."""
        return any(known.in_order for known in self.columns.values())

    @property
    def top_grade(self) -> bool:
        """Whether the highest grade of all users matters."""
        return "top_grade" in self.columns

    def _derives_from(self, scope: Scope) -> bool:
        return any(scope in (c.scope, c.derived_over) for c in self.columns.values())


def reading_of(
    names: Iterable[str], *, has_subtopics: bool = False, given: Collection[str] = ()
) -> Reading:
    """Return what metrics that name these columns need.

    ``given`` names the tables besides run and truth; without its table, a column is the caller's.
    """
    return _reading(frozenset(names), has_subtopics, frozenset(given))


@functools.lru_cache(maxsize=1024)  # until a column is registered
def _reading(read: frozenset[str], has_subtopics: bool, given: frozenset[str]) -> Reading:  # noqa: FBT001
    if any(name.startswith(_WORDS_OF_SHARES) for name in read):
        given = given | {"shares"}
    columns: dict[str, Column] = {}
    outside: set[str] = set()
    pending = sorted(read)
    while pending:
        name = pending.pop()
        known = COLUMNS.get(name.partition("(")[0])
        if known is None or not is_given(known, given):
            outside.add(name)
        elif name not in columns:
            columns[name] = known
            pending += _reads(name, known)
    scopes: list[Scope] = ["relevant", *(known.scope for known in columns.values())]
    widest = max(scopes, key=lambda scope: _WIDTHS[scope])
    split = has_subtopics and "subtopic" in scopes
    scope: Scope = "subtopic" if split else "relevant" if widest == "subtopic" else widest
    return Reading(read | outside, columns, scope)


def is_given(column: Column, given: Collection[str]) -> bool:
    """Whether the call passes the table that a column comes from."""
    return not column.source or any(name in given for name in column.source.split(" or "))


def rows_of_scope(sources: Sources, reading: Reading, *, alone: bool = False) -> pl.LazyFrame:
    """Return the rows that metrics reduce, with the columns that they read.

    With ``alone``, the caller reads no other column.

    Unread rows and joins are left out here: the optimizer cannot know that they are unread.
    """
    for name, known in reading.columns.items():
        _check_parameter(name, known)
    _check_gains_of_zero(reading)
    settings = sources.settings
    items, ranked_truth, ranked = (
        _cut(_with_columns_of_items(frame, sources, reading), settings.depth)
        for frame in (sources.items, sources.ranked_truth, sources.ranked)
    )
    if settings.judged_only:
        items = ranked_truth = ranked = _condensed(items, sources.keys, tied=sources.tied)
    alone = alone and not (reading.outside or reading.counts_judged or sources.inputs)
    lists = ranked if settings.judged_only else _cut(sources.lists, settings.depth)
    rows = Rows(sources, ranked, lists, reading.scope, ranked_truth, alone=alone)
    absent = "ranks" if sources.tied else "blocks"
    columns = {name: c for name, c in reading.columns.items() if c.in_ties != absent}
    if reading.scope == "listed":
        frame = _list_rows(items, rows, reading, columns)
    else:
        frame = _truth_rows(items if reading.scope == "subtopic" else ranked_truth, rows, columns)
    return frame.rename({"rank": "block"}) if sources.tied else frame


def users_of_run(sources: Sources) -> pl.LazyFrame:
    """Return each user with a list, of which ``depth`` and ``judged_only`` may leave nothing."""
    return sources.lists.select(sources.keys).unique()


def users_with_lists(sources: Sources) -> pl.LazyFrame:
    """Return each user with a nonempty list once, with the groups."""
    settings = sources.settings
    listed = _is_listed if settings.depth is None else _rank <= settings.depth
    if settings.judged_only:
        return sources.items.filter(listed & _is_judged).select(sources.keys).unique()
    return sources.lists.filter(listed).select(sources.keys).unique()


def register_column(
    name: str,
    meaning: str,
    *,
    scope: Scope = "relevant",
    reads: Sequence[str] = (),
    parameter: Callable[[str], object] | None = None,
    default: str = "",
    in_ties: bool = False,
) -> Callable[[Callable[..., pl.Expr]], Callable[..., pl.Expr]]:
    """
    Add a derived column to the vocabulary, on which metrics can be written.

    Parameters
    ----------
    name
        The name of the column. A table that already has it raises an error only if a metric of the
        call reads it.
    meaning
        What it holds, in one line, for the reference.
    scope
        The rows that a metric that reads it reduces: ``"relevant"``, the items of grade > 0;
        ``"judged"``, all rows of the truth; or ``"listed"``, the whole list.
    reads
        Columns that it is derived from, in addition to those that its expression names.
    parameter
        If the column takes a parameter, as in ``gap_above(2)``: a function that raises ValueError
        if the text in parentheses is not valid.
    default
        The text of the parameter if it is left out.
    in_ties
        Whether it can be derived if equal scores form blocks, where ``rank`` is the first position
        of the item's block.

    Returns
    -------
    Callable
        A decorator for the function that returns the column as an expression. The function takes
        the columns that identify a list (by… and user), and the text of the parameter if there is
        one. The expression sees the rows of the widest scope that the metric reads: filter by
        ``relevant`` if other rows would change it. In a metric that reads ``listed``, the column is
        null on rows outside its own scope.

    Raises
    ------
    ValueError
        If the name is taken or cannot be the name of a column, or the column reads itself.

    Examples
    --------
    >>> @rf.register_column("gap_above", "rank minus the rank of the relevant item above, or 0")
    ... def gap_above(keys):
    ...     hit = pl.when("relevant").then("rank")
    ...     above = hit.shift(1).forward_fill().over(keys, order_by="rank", nulls_last=True)
    ...     return pl.col("rank") - above.fill_null(0)
    >>> run = pl.DataFrame({"user": [1, 1, 1], "item": [7, 8, 9], "rank": [1, 2, 3]})
    >>> truth = pl.DataFrame({"user": [1, 1], "item": [7, 9]})
    >>> widest = pl.col("gap_above").filter("relevant").max().alias("widest gap")
    >>> rf.evaluate(run, widest, truth=truth).item(0, "widest gap")
    2.0
    """
    if not name.isidentifier():
        msg = f"column {name!r}: the name of a column must be one word, like gap_above"
        raise ValueError(msg)
    if name in ROLES or (name in COLUMNS and not COLUMNS[name].registered):
        msg = f"column {name!r}: a role or a column of the vocabulary has this name: choose another"
        raise ValueError(msg)
    if scope not in ("relevant", "judged", "listed"):
        msg = f"scope must be one of 'relevant', 'judged', 'listed', not {scope!r}"
        raise ValueError(msg)
    if name in reads:
        msg = f"column {name!r} reads itself"
        raise ValueError(msg)

    def register(function: Callable[..., pl.Expr]) -> Callable[..., pl.Expr]:
        def derive(rows: Any, *text: str) -> pl.Expr:
            return function(rows.keys, *text)

        known = Column(
            name,
            meaning,
            scope=scope,
            reads=tuple(dict.fromkeys([*reads, *_named_in(function, parameter, default)])),
            in_ties="both" if in_ties else "ranks",
            of_lists=scope == "listed",
            of_all_rows=scope == "listed",
            parameter=parameter,
            default=default,
            derive=derive,
            registered=True,
        )
        restore_columns([known])
        return function

    return register


def restore_columns(columns: Iterable[Column]) -> None:
    """Register columns, here or as they were registered in another process."""
    COLUMNS.update({one.name: one for one in columns})
    _reading.cache_clear()


def _named_in(
    function: Callable[..., pl.Expr], parameter: Callable[[str], object] | None, default: str
) -> list[str]:
    """Return the columns that the expression of a registered column reads, except its keys."""
    if parameter is not None and not default:  # no valid text is known
        return []
    key = "__rankframe_key"
    made = cast("object", function([key]) if parameter is None else function([key], default))
    if not isinstance(made, pl.Expr):
        msg = f"{function.__name__} must return a polars expression, not {type(made).__name__}"
        raise TypeError(msg)
    return [name for name in made.meta.root_names() if name != key]


# ------------------------------------------------------------------ the columns

given_column(
    "rank",
    "1-based position in the list; null = not retrieved",
    down_to_rank=True,
    beside_subtopics=True,
    of_lists=True,
    of_all_rows=True,
)
given_column(
    "relevance",
    "The grade",
    in_ties="both",
    down_to_rank=True,
    beside_subtopics=True,
    of_all_rows=True,
)


@column(beside_subtopics=True, of_all_rows=True, down_to_rank=True, in_ties="both")
def relevant(rows: Rows) -> pl.Expr:
    """The grade reaches relevant_at (by default: is > 0)."""
    line = rows.sources.settings.relevant_at
    reached = _is_graded if line is None else _relevance >= line
    return reached.fill_null(value=False) if rows.scope == "listed" else reached


@column(reads=("relevant", "ideal_place"), in_order=True, down_to_rank=True)
def hits(rows: Rows) -> pl.Expr:
    """Relevant items at or above this rank; null without a rank."""
    if rows.sources.settings.relevant_at is None and rows.scope != "judged":
        # if all rows are relevant, their number is the running count, at half the cost
        return pl.when(_is_listed).then("ideal_place")
    return _running(_relevant.cast(pl.Int64), rows.keys)


def _any_order_gain(text: str) -> None:
    check_gain(gain_from(text), any_order=True)


def _ideal_position(among: pl.Expr, text: str, keys: Sequence[str]) -> pl.Expr:
    """Position by gain, highest first, among these items."""
    gain = gain_of(gain_from(text))
    return _count(pl.when(gain > 0, among).then(gain).rank("ordinal", descending=True).over(keys))


@column(parameter=_any_order_gain, default="linear", down_to_rank=True, in_ties="both")
def ideal_rank(rows: Rows, gain: str) -> pl.Expr:
    """Position in the ideal list, highest grade first; null where the grade is ≤ 0; in the order
    of another gain, null where that is 0: ideal_rank(1:3;2:9;4:4.5).
    """
    if gain != "linear":
        return _ideal_position(pl.lit(value=True), gain, rows.keys)
    position = _count(_relevance.rank("ordinal", descending=True).over(rows.keys))
    return pl.when(_is_graded).then(position)


@column(parameter=_any_order_gain, default="linear", in_ties="both")
def returned_ideal_rank(rows: Rows, gain: str) -> pl.Expr:
    """Position among the items of grade > 0 of the list, highest grade first; in the order of
    another gain: returned_ideal_rank(1:3;2:9;4:4.5).
    """
    if gain != "linear":
        return _ideal_position(_is_listed, gain, rows.keys)
    returned = pl.when(_is_graded & _is_listed).then(_relevance)
    return _count(returned.rank("ordinal", descending=True).over(rows.keys))


given_column(
    "ideal_place",
    "Number of the row among the user's rows in rank order, as a position in the ideal list",
    in_ties="both",
    down_to_rank=True,
    in_order=True,
)
given_column(
    "ideal_relevance",
    "The grade at that position of the ideal list; 0 past its end",
    in_ties="both",
    down_to_rank=True,
    in_order=True,
)


# Both discounts are made once for all metrics and cut-offs of a call; inside a sum, they would be
# made once per metric.


@column(beside_subtopics=True, of_lists=True, of_all_rows=True, down_to_rank=True)
def rank_discount(_rows: Rows) -> pl.Expr:
    """1 / log2(rank + 1); null without a rank."""
    return discount(_rank)


@column(reads=("ideal_place",), in_order=True, down_to_rank=True, in_ties="both")
def place_discount(_rows: Rows) -> pl.Expr:
    """1 / log2(ideal_place + 1)."""
    return discount(pl.col("ideal_place"))


@column(reads=("relevant",), of_all_rows=True, down_to_rank=True, in_ties="both")
def total(rows: Rows) -> pl.Expr:
    """R, the number of relevant items of the user."""
    return _count(_relevant.sum().over(rows.keys))


@column(of_all_rows=True, down_to_rank=True, in_ties="both")
def graded(rows: Rows) -> pl.Expr:
    """Number of items of grade > 0 of the user."""
    return _count(_is_graded.sum().over(rows.keys))


def check_cut(text: str) -> None:
    """Check the text of a cut-off; empty for the whole list."""
    if text and int(text) < 1:
        raise ValueError


@joined_column(
    parameter=check_cut,
    derived_over="listed",
    beside_subtopics=True,
    of_lists=True,
    of_all_rows=True,
    in_ties="both",
)
def retrieved(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """n, the length of the user's list; 0 where there is none; its items at rank ≤ 10:
    retrieved(10).
    """
    tied = rows.sources.tied
    lengths = [_length(int(k) if k else None, tied=tied).alias(n) for n, k in names.items()]
    ranked = rows.lists.filter(_is_listed).group_by(rows.keys).agg(lengths)
    frame = frame.join(ranked, on=rows.keys, how="left")
    return frame.with_columns(pl.col(list(names)).fill_null(0))


def _length(k: int | None, *, tied: bool) -> pl.Expr:
    """Number of items at rank ≤ k; a block of ties gives as many as it has places there."""
    if k is None:
        return _count(pl.len())
    if not tied:
        return _count((_rank <= k).sum())
    return _count(((k - _rank + 1).clip(0, pl.col("tied")) / pl.col("tied")).sum().round())


@column(scope="judged", of_all_rows=True, down_to_rank=True, in_ties="both")
def judged(_rows: Rows) -> pl.Expr:
    """The grade is ≥ 0; null where there is none; a metric that reads it reduces all rows of the
    truth.
    """
    return _is_judged


@column(scope="listed", of_lists=True, of_all_rows=True, in_ties="both")
def listed(_rows: Rows) -> pl.Expr:
    """The item is in the list; a metric that reads it reduces the whole list."""
    return _is_listed


@column(derived_over="judged", down_to_rank=True)
def judged_hits(rows: Rows) -> pl.Expr:
    """Judged items at or above this rank; null without a rank."""
    return _running(_is_judged.cast(pl.Int64), rows.keys)


@column(derived_over="judged", down_to_rank=True)
def pooled_hits(rows: Rows) -> pl.Expr:
    """Judged items and items of negative grade at or above this rank."""
    return _running(_relevance.is_not_null().cast(pl.Int64), rows.keys)


@column(
    derived_over="judged", reads=("relevant",), of_all_rows=True, down_to_rank=True, in_ties="both"
)
def nonrelevant(rows: Rows) -> pl.Expr:
    """Number of judged items of the user that are not relevant."""
    return _count((_is_judged & ~_relevant).sum().over(rows.keys))


@column(scope="judged", in_ties="both")
def lower_graded(rows: Rows) -> pl.Expr:
    """Judged items of the list that have a lower grade than this one; null without a rank; a metric
    that reads it reduces all rows of the truth.
    """
    grades = pl.when(_is_listed & _is_judged).then(_relevance)
    return _count(grades.rank("min").over(rows.keys)) - 1


@joined_column(scope="judged", in_ties="both")
def lower_graded_below(frame: pl.LazyFrame, rows: Rows, _names: Mapping[str, str]) -> pl.LazyFrame:
    """Judged items of lower grade below this one; with ties, one in its block counts one half."""
    counted = _lower_below(rows.unjoined, rows.keys, rows.sources.item, tied=rows.sources.tied)
    return frame.join(counted, on=[*rows.keys, rows.sources.item], how="left")


def _gain(text: str) -> None:
    check_gain(gain_from(text))


@column(reads=("relevant",), parameter=_gain, default="linear", down_to_rank=True)
def gains(rows: Rows, gain: str) -> pl.Expr:
    """Cumulated gain at this rank; null without a rank; of another gain: gains(exponential)."""
    return _running(gain_of(gain_from(gain)), rows.keys)


@column(down_to_rank=True)
def discounted_gains(rows: Rows) -> pl.Expr:
    """Discounted cumulated gain at this rank; null without a rank."""
    return _running(gain_of("linear") * discount(_rank), rows.keys)


@joined_column(
    "level_weight",
    "Σ 1/IDCG(p) over the ends p ≥ rank of the grades in the ideal list",
    reads=("relevant", "ideal_rank", "graded"),
    down_to_rank=True,
)
@joined_column(
    "ideal_discounted_gains",
    "Discounted cumulated gain of the ideal list, down to this rank",
    reads=("relevant", "ideal_rank", "graded"),
    down_to_rank=True,
)
@joined_column(
    "ideal_gains",
    "The same of the ideal list, down to this rank: ideal_gains(exponential)",
    reads=("relevant", "ideal_rank", "graded"),
    parameter=_gain,
    default="linear",
    down_to_rank=True,
)
def _ideal_columns(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """Look up the sums of the ideal list at each rank; past its end, the final ones."""
    depth = pl.when(_is_listed).then(pl.min_horizontal("rank", "graded"))
    joined = frame.with_columns(depth.alias("__rankframe_depth")).join(
        _ideal(rows.unjoined, rows.keys, names),
        left_on=[*rows.keys, "__rankframe_depth"],
        right_on=[*rows.keys, "ideal_rank"],
        how="left",
    )
    beyond = _rank > pl.col("graded")
    weight = pl.when(beyond).then(0.0).otherwise("level_weight").alias("level_weight")
    return joined.with_columns(weight).drop("__rankframe_depth")


@column(of_all_rows=True, down_to_rank=True, in_ties="both")
def top_grade(rows: Rows) -> pl.Expr:
    """The highest grade of the whole truth."""
    return rows.sources.top_grade


@joined_column()
def best_rank(frame: pl.LazyFrame, rows: Rows, _names: Mapping[str, str]) -> pl.LazyFrame:
    """The first rank of the highest grade in the user's list."""
    best = _relevance.filter(_is_listed).max().over(rows.keys).alias("__rankframe_best")
    first = _rank.filter(_relevance == pl.col("__rankframe_best")).min().over(rows.keys)
    return frame.with_columns(best).with_columns(best_rank=first).drop("__rankframe_best")


def _top(text: str) -> None:
    if text != "top" and not float(text) > 0:
        raise ValueError


@column(parameter=_top, default="top", down_to_rank=True)
def survival(rows: Rows, top: str) -> pl.Expr:
    """ERR's probability of reaching this rank; for a highest grade of 4: survival(4)."""
    return _product_above(1 - stop_chance(top), rows.keys, "rank")


@column(reads=("ideal_rank",), parameter=_top, default="top", down_to_rank=True, in_ties="both")
def ideal_survival(rows: Rows, top: str) -> pl.Expr:
    """The same in the ideal list: ideal_survival(4)."""
    return _product_above(1 - stop_chance(top), rows.keys, "ideal_rank")


@joined_column(reads=("relevant",), parameter=_gain, default="linear", down_to_rank=True)
def shared(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """Σ of the smaller gain of each pair of this item and one at or above: shared(exponential)."""
    down = _count(_rank.rank("max").over([*rows.keys, "relevance"]))
    return _with_shared(frame, rows, names, down)


def _goals_and_top(text: str) -> None:
    goals, _, top = text.partition(";")
    if not float(goals) >= 0.5:
        raise ValueError
    _top(top)


@joined_column(parameter=_goals_and_top, default="1;top", down_to_rank=True)
def eagerness(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """INST's Π (1 − gain / need) over the items above; of 2 goals and a highest grade of 4:
    eagerness(2;4).
    """
    gains = _running(gain_of("linear"), rows.keys).alias("__rankframe_gains")
    columns: list[pl.Expr] = []
    for name, text in names.items():
        goals, _, top = text.partition(";")
        kept = 1 - usefulness(top) / need(float(goals), top, pl.col("__rankframe_gains"))
        columns.append(_product_above(kept, rows.keys, "rank").alias(name))
    return frame.with_columns(gains).with_columns(columns).drop("__rankframe_gains")


def _persistence(text: str) -> None:
    if not 0 < float(text) < 1:
        raise ValueError


def overlap_tails(p: float) -> pl.LazyFrame:
    """Σ p^(d − 1)/d over all depths d from a ``place`` on, as far down as it is more than 0."""
    deepest = ceil(log(1e-18) / log(p)) + 1
    if deepest > 1_000_000:
        msg = f"p={p} reads deeper than 1,000,000 ranks: use a smaller p"
        raise ValueError(msg)
    place = pl.int_range(1, deepest + 1)
    tail = (pl.lit(p).pow(place - 1) / place).cum_sum(reverse=True)
    return pl.select(place=place, tail=tail).lazy()


def with_tail(rows: pl.LazyFrame, tails: pl.LazyFrame, place: str, name: str) -> pl.LazyFrame:
    """Look up the tail from a place on."""
    rows = rows.join(tails.rename({"place": place, "tail": name}), on=place, how="left")
    return rows.with_columns(pl.when(pl.col(place).is_not_null()).then(pl.col(name).fill_null(0.0)))


@joined_column(
    "ideal_weight",
    "The same of the ideal list alone: ideal_weight(0.9)",
    reads=("retrieved", "graded"),
    parameter=_persistence,
    default="0.95",
)
@joined_column(
    "common_weight",
    "Σ p^(d − 1)/d over the depths d at which this list and the ideal list both hold the item, "
    "equal grades in the order of this list; for p = 0.9: common_weight(0.9)",
    reads=("retrieved", "graded"),
    parameter=_persistence,
    default="0.95",
)
def _overlap_columns(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """Compare with the ideal list nearest to this one: equal grades in the order of this list."""
    # Polars 1 ignores nulls_last where order_by has several columns: no null is left in them
    order = [-_relevance.cast(pl.Float64).fill_null(0), _rank.fill_null((1 << 63) - 1)]
    nearest = pl.int_range(1, pl.len() + 1).over(rows.keys, order_by=order)
    ideal, both, end = (f"__rankframe_{place}" for place in ("ideal", "both", "end"))
    frame = frame.with_columns(
        pl.when(_is_graded).then(_count(nearest)).alias(ideal),
        (pl.max_horizontal("retrieved", "graded") + 1).alias(end),
    )
    listed = pl.when(_is_listed, _is_graded)  # max_horizontal passes over nulls
    frame = frame.with_columns(listed.then(pl.max_horizontal("rank", ideal)).alias(both))
    for name, p in names.items():
        tails = overlap_tails(float(p))
        frame = with_tail(frame, tails, both if name.startswith("common") else ideal, name)
        frame = with_tail(frame, tails, end, "__rankframe_tail")
        within = (pl.col(name) - pl.col("__rankframe_tail")).clip(lower_bound=0)
        frame = frame.with_columns(within.alias(name)).drop("__rankframe_tail")
    return frame.drop(ideal, both, end)


given_column(
    "subtopic",
    "The subtopic of the row, if the truth has one row per subtopic of an item",
    scope="subtopic",
    in_ties="ranks",
    beside_subtopics=True,
)


@column(scope="subtopic", reads=("relevant",))
def subtopics(rows: Rows) -> pl.Expr:
    """S, the number of subtopics with a relevant item; 1 where the truth has none."""
    split = rows.scope == "subtopic"
    some = pl.col("subtopic").filter(_relevant).n_unique() if split else _relevant.any()
    return _count(some.over(rows.keys))


@column(scope="subtopic", reads=("relevant",))
def subtopic_hits(rows: Rows) -> pl.Expr:
    """Relevant items of the subtopic at or above this rank; null without a rank."""
    return _running(_relevant.cast(pl.Int64), rows.aspect)


@column(scope="subtopic", reads=("relevant",))
def subtopic_total(rows: Rows) -> pl.Expr:
    """Number of relevant items of the subtopic."""
    return _count(_relevant.sum().over(rows.aspect))


def _alpha_and_depth(text: str) -> None:
    alpha, _, depth = text.partition(";")
    if not (0 <= float(alpha) <= 1 and (not depth or int(depth) > 0)):
        raise ValueError


@joined_column(
    scope="subtopic", reads=("relevant", "ideal_rank"), parameter=_alpha_and_depth, default="0.5"
)
def diverse_rank(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """Position in alpha-nDCG's greedy ideal list; for another alpha, down to rank 20:
    diverse_rank(0.7;20).
    """
    if rows.scope != "subtopic":  # any order is ideal
        any_order = pl.when(_relevant).then("ideal_rank")
        return frame.with_columns(any_order.alias(name) for name in names)
    item = rows.sources.item
    ideals = _greedy_ideals(frame.filter(_relevant), rows.keys, item, names)
    return frame.join(ideals, on=[*rows.keys, item], how="left")


@column(
    scope="subtopic",
    reads=("relevant", "diverse_rank(*)"),
    parameter=_alpha_and_depth,
    default="0.5",
)
def diverse_hits(rows: Rows, text: str) -> pl.Expr:
    """Items of the subtopic at or above this one in that list: diverse_hits(0.7;20)."""
    return _running(_relevant.cast(pl.Int64), rows.aspect, f"diverse_rank({text})")


@column(of_all_rows=True, in_ties="blocks", of_lists=True)
def tied(_rows: Rows) -> pl.Expr:
    """Size of the item's block of equal scores, in a table with rank."""
    return pl.when(_is_listed).then("tied")


given_column(
    "block",
    "With ties, instead of rank: first position of the block; null = not retrieved",
    in_ties="blocks",
    of_lists=True,
    of_all_rows=True,
)


@column(reads=("relevant",), in_ties="blocks")
def tied_hits(rows: Rows) -> pl.Expr:
    """With ties: relevant items in the block."""
    return _relevant.cast(pl.Int64).sum().over(rows.block)


@joined_column(reads=("relevant",), in_ties="blocks")
def hits_above(frame: pl.LazyFrame, rows: Rows, _names: Mapping[str, str]) -> pl.LazyFrame:
    """With ties: relevant items above the block."""
    return _with_above(frame, _relevant.cast(pl.Int64), rows, "hits_above")


@column(derived_over="judged", reads=("relevant",), in_ties="blocks")
def tied_nonrelevant(rows: Rows) -> pl.Expr:
    """With ties: judged items in the block that are not relevant."""
    return (_is_judged & ~_relevant).cast(pl.Int64).sum().over(rows.block)


@joined_column(derived_over="judged", reads=("relevant",), in_ties="blocks")
def nonrelevant_above(frame: pl.LazyFrame, rows: Rows, _names: Mapping[str, str]) -> pl.LazyFrame:
    """With ties: judged items above the block that are not relevant."""
    nonrelevant = (_is_judged & ~_relevant).cast(pl.Int64)
    return _with_above(frame, nonrelevant, rows, "nonrelevant_above")


_OF_A_BLOCK: Mapping[str, Any] = {
    "reads": ("relevant",),
    "in_ties": "blocks",
    "parameter": _gain,
    "default": "linear",
}


@column(**_OF_A_BLOCK)
def tied_gains(rows: Rows, gain: str) -> pl.Expr:
    """With ties: gain of the items in the block: tied_gains(exponential)."""
    return gain_of(gain_from(gain)).sum().over(rows.block)


@joined_column(**_OF_A_BLOCK)
def gains_above(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """With ties: gain of the items above the block: gains_above(exponential)."""
    for name, gain in names.items():
        frame = _with_above(frame, gain_of(gain_from(gain)), rows, name)
    return frame


@joined_column(**_OF_A_BLOCK)
def tied_shared(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """With ties: Σ of the smaller gain of each pair of the item and one in its block."""
    inside = _count(pl.len().over([*rows.keys, "relevance", "rank"]))
    return _with_shared(frame, rows, names, inside)


@joined_column(**_OF_A_BLOCK)
def shared_above(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """With ties: the same with the items above the block: shared_above(exponential)."""
    above = _count(_rank.rank("min").over([*rows.keys, "relevance"])) - 1
    return _with_shared(frame, rows, names, above)


@joined_column(
    "level_weight_along",
    "With ties: level_weight at each position of the block, as a list",
    reads=("relevant", "tied", "ideal_rank", "graded"),
    in_ties="blocks",
)
@joined_column(
    "ideal_gains_along",
    "With ties: ideal_gains at each position of the block, as a list",
    reads=("relevant", "tied", "ideal_rank", "graded"),
    parameter=_gain,
    default="linear",
    in_ties="blocks",
)
def _columns_along(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    blocks = _blocks(rows)
    for name, text in names.items():
        frame = frame.join(_along(blocks, rows, name, text), on=rows.block, how="left")
    return frame


def _cut_and_base(text: str) -> None:
    cut, _, base = text.partition(";")
    if not ((not cut or int(cut) > 0) and (not base or float(base) > 1)):
        raise ValueError


@joined_column(reads=("tied", "graded"), parameter=_cut_and_base, in_ties="blocks")
def discounts(frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str]) -> pl.LazyFrame:
    """With ties: Σ 1/log2(i + 1) over the block's positions; down to rank 10: discounts(10), with
    base 2: discounts(;2).
    """
    blocks = _blocks(rows)
    for name, text in names.items():
        sums = blocks.select(*rows.block, _discounts(text).alias(name))
        frame = frame.join(sums, on=rows.block, how="left")
    return frame


#: The columns that ``relevant`` always returns.
BASIC = (
    *("rank", "relevance", "relevant", "hits", "total"),
    *("ideal_rank", "ideal_place", "ideal_relevance"),
    *("rank_discount", "place_discount"),
)


# ------------------------------------------------------------------ deriving what is read


def _truth_rows(items: pl.LazyFrame, rows: Rows, columns: Mapping[str, Column]) -> pl.LazyFrame:
    """Return the relevant or judged rows, or those of subtopics, with their columns."""
    if rows.scope == "subtopic":
        items = _split(rows.sources, items)
    over_judged = {n: c for n, c in columns.items() if "judged" in (c.scope, c.derived_over)}
    frame = items.filter(_relevance.is_not_null() if over_judged else _is_graded)
    sources = rows.sources
    was_graded, bounds = _is_graded, sources.bounds
    if sources.settings.least_gain is not None:  # a user with lower grades alone keeps the rows
        frame = _from_least_gain(frame.with_columns(_is_graded.alias(_WAS_GRADED)), sources)
        was_graded, bounds = pl.col(_WAS_GRADED), _with_grade_0(bounds)
    relevant = _expression("relevant", rows).alias("relevant")
    if over_judged:
        frame = _with_columns(frame.with_columns(relevant), rows, over_judged)
        if rows.scope != "judged":
            frame = frame.filter(was_graded)
    if sources.settings.least_gain is not None:
        frame = frame.drop(_WAS_GRADED)
    frame = in_rank_order(frame, rows.keys, sources.item, sources.types, bounds, alone=rows.alone)
    if not over_judged:
        frame = frame.with_columns(relevant)
    others = {n: c for n, c in columns.items() if n not in over_judged and n != "relevant"}
    return _with_columns(frame, rows, others)


def _list_rows(
    items: pl.LazyFrame, rows: Rows, reading: Reading, columns: Mapping[str, Column]
) -> pl.LazyFrame:
    """Return the rows of the list, and if the truth is read, its rows that were not retrieved.

    Running counts are derived on the relevant or judged rows, and null on the others.
    """
    sources = rows.sources
    of_lists = sources.of_lists.union(sources.keys, [sources.item], _of_items(sources, reading))
    of_lists |= {name for name, known in columns.items() if known.of_lists}
    everywhere = {name: c for name, c in columns.items() if c.of_all_rows}
    everywhere["listed"] = COLUMNS["listed"]
    inner = {name: c for name, c in columns.items() if not c.of_all_rows}
    if not sources.settings.judged_only and of_lists.issuperset([*columns, *reading.outside]):
        frame = _with_emptied(rows.ranked.filter(_is_listed), sources)
        return _with_columns(frame, rows, everywhere)
    frame = items.filter(_is_listed | _relevance.is_not_null())
    if inner:
        known = {name: c for name, c in columns.items() if c.scope != "listed"}
        wide = any(c.scope == "judged" for c in known.values())
        scope: Scope = "judged" if wide else "relevant"
        reduced = _relevance.is_not_null() if wide else _is_graded
        narrow = _truth_rows(items, rows._replace(scope=scope), known)
        narrow = narrow.drop(SHARES_RANK, *everywhere.keys() - {"rank", "relevance"}, strict=False)
        others = frame.filter(~reduced.fill_null(value=False))
        frame = pl.concat([narrow, others], how="diagonal")
    frame = _with_emptied(_from_least_gain(frame, sources), sources)
    return _with_columns(frame, rows, everywhere)


def _with_emptied(frame: pl.LazyFrame, sources: Sources) -> pl.LazyFrame:
    """Add a row without an item for each list of which nothing is left: it still is a list."""
    if not sources.settings.cuts_lists:
        return frame
    emptied = users_of_run(sources).join(users_with_lists(sources), on=sources.keys, how="anti")
    emptied = emptied.with_columns(pl.lit(value=True).alias(IS_EMPTIED))
    return pl.concat([frame, emptied], how="diagonal")


def _from_least_gain(frame: pl.LazyFrame, sources: Sources) -> pl.LazyFrame:
    """Set grades below the first one with a gain to 0."""
    least = sources.settings.least_gain
    if least is None:
        return frame
    kept = pl.when(_is_graded & (_relevance < least)).then(0).otherwise(_relevance)
    return frame.with_columns(kept.cast(sources.types["relevance"]).alias("relevance"))


def _with_grade_0(bounds: Bounds) -> Bounds:
    """Return the bounds of grades, some of which become 0."""
    if "relevance" not in bounds:
        return bounds
    least, most = bounds["relevance"]
    return {**bounds, "relevance": (min(least, 0), most)}


def _of_items(sources: Sources, reading: Reading) -> list[str]:
    """Name the columns of the catalogue that metrics read."""
    items = sources.inputs.get("items")
    return [] if items is None else [name for name in reading.outside if name in items.schema]


def _with_columns_of_items(frame: pl.LazyFrame, sources: Sources, reading: Reading) -> pl.LazyFrame:
    """Join the columns of the catalogue that metrics read."""
    names = [n for n in _of_items(sources, reading) if n not in (*sources.keys, sources.item)]
    if not names:
        return frame
    keys, items = [*sources.inputs["items"].by, sources.item], sources.inputs["items"].frame
    return frame.join(items.select(*keys, *names), on=keys, how="left")


def _with_columns(frame: pl.LazyFrame, rows: Rows, columns: Mapping[str, Column]) -> pl.LazyFrame:
    """Derive the columns level by level, each after those that it reads."""
    pending = {n: c for n, c in columns.items() if c.derive is not None or c.join is not None}
    while pending:
        ready = [n for n, c in pending.items() if pending.keys().isdisjoint(_reads(n, c))]
        ready.sort()  # the same order in every call
        if not ready:
            msg = f"the columns {', '.join(map(repr, sorted(pending)))} are derived from each other"
            raise ValueError(msg)
        if derived := [name for name in ready if pending[name].derive]:
            frame = frame.with_columns(_expression(name, rows).alias(name) for name in derived)
            ready = derived  # joins come after the columns that need none
        joins: dict[Join, dict[str, str]] = {}
        for name in ready:
            if (join := pending.pop(name).join) is not None:
                joins.setdefault(join, {})[name] = _text(name, columns[name])
        rows = rows._replace(unjoined=frame)
        for join, names in joins.items():
            frame = join(frame, rows, names)
    return frame


def _expression(name: str, rows: Rows) -> pl.Expr:
    known = COLUMNS[name.partition("(")[0]]
    assert known.derive is not None
    return known.derive(rows) if known.parameter is None else known.derive(rows, _text(name, known))


def _reads(name: str, known: Column) -> list[str]:
    """Name what a column is derived from."""
    text = _text(name, known)
    top = ["top_grade"] if text.endswith("top") and not known.registered else []
    return [*(read.replace("*", text) for read in known.reads), *top]


def _text(name: str, known: Column) -> str:
    """Read the parameter of ``gains(exponential)``, or of plain ``gains`` the default."""
    return name.removesuffix(")").partition("(")[2] or known.default


def _check_parameter(name: str, known: Column) -> None:
    """Check what a column of the vocabulary carries in its name."""
    _, given, _ = name.partition("(")
    if not given:
        return
    text = _text(name, known)
    good = name.endswith(")") and known.parameter is not None
    if good and known.parameter is not None:
        try:
            known.parameter(text)
        except ValueError:
            good = False
    if not good:
        msg = f"column {name!r}: {text!r} is not a parameter of {known.name!r}, {known.meaning}"
        raise ValueError(msg)


def _check_gains_of_zero(reading: Reading) -> None:
    """Check that the rows of grade 0 are there for the columns in which they have a gain."""
    if reading.counts_judged and "judged" in reading.columns:
        return
    for name, known in reading.columns.items():
        if known.parameter is _any_order_gain and has_gain_of_zero(gain_from(_text(name, known))):
            msg = (
                f"column {name!r} gives grade 0 a gain, but the rows of grade 0 are there "
                "only if the metric reads 'judged': let it read that, too"
            )
            raise ValueError(msg)


def _split(sources: Sources, items: pl.LazyFrame) -> pl.LazyFrame:
    """Return one row per subtopic of an item, at the item's rank."""
    item = [*sources.keys, sources.item]
    subtopics = sources.judgments.filter(_relevance.is_not_null()).drop("rank")
    return subtopics.join(items.select(*item, "rank"), on=item, how="left")


def _cut(frame: pl.LazyFrame, depth: int | None) -> pl.LazyFrame:
    """Cut the lists to ``depth``: what is below was not retrieved."""
    if depth is None:
        return frame
    return frame.with_columns(pl.when(_rank <= depth).then("rank").alias("rank"))


def _condensed(items: pl.LazyFrame, keys: Sequence[str], *, tied: bool) -> pl.LazyFrame:
    """Remove the unjudged items and those of negative grade from the lists, and close the ranks."""
    kept = items.filter(_relevance.is_not_null())
    kept = kept.with_columns(pl.when(_is_judged).then("rank").alias("rank"))
    # "min", not "ordinal": two items at one rank must stay so, for the checks to see them
    closed = kept.with_columns(_count(_rank.rank("min").over(keys)))
    return closed.with_columns(tied=_count(pl.len().over(*keys, "rank"))) if tied else closed


# ------------------------------------------------------------------ steps of derivations


def _with_above(frame: pl.LazyFrame, value: pl.Expr, rows: Rows, name: str) -> pl.LazyFrame:
    """Sum a value over the items above each block."""
    frame = frame.with_columns(_running(value, rows.keys).alias(name))
    return frame.with_columns(pl.col(name).max().over(rows.block) - value.sum().over(rows.block))


def _blocks(rows: Rows) -> pl.LazyFrame:
    """Return each block of ties once."""
    return rows.unjoined.filter(_is_listed).select(*rows.block, "tied", "graded").unique()


def _along(blocks: pl.LazyFrame, rows: Rows, name: str, text: str) -> pl.LazyFrame:
    """List the values of a column of the ideal list at each position of a block."""
    keys, position = rows.keys, "__rankframe_position"
    column = name.replace("_along", "")
    ideal = _ideal(rows.unjoined, keys, {column: text}).select(*keys, "ideal_rank", column)
    ranges = pl.int_ranges(_rank, _rank + pl.col("tied"))
    places = blocks.with_columns(ranges.alias(position)).explode(position, empty_as_null=False)
    deep = pl.min_horizontal(position, "graded").alias("ideal_rank")
    values = places.with_columns(deep).join(ideal, on=[*keys, "ideal_rank"])
    if column == "level_weight":
        inside = pl.col(position) <= pl.col("graded")
        values = values.with_columns(pl.when(inside).then(column).otherwise(0.0))
    return values.group_by(*keys, "rank").agg(pl.col(column).sort_by(position).alias(name))


def _discounts(parameter: str) -> pl.Expr:
    """Sum the discount over the positions of a block, down to the cut."""
    cut, _, base = parameter.partition(";")
    end = _rank + pl.col("tied")
    end = end.clip(upper_bound=int(cut) + 1) if cut else end
    places = pl.int_ranges(_rank, pl.max_horizontal(end, "rank"))
    return places.list.eval(discount(pl.element(), float(base) if base else None)).list.sum()


def _with_shared(
    frame: pl.LazyFrame, rows: Rows, names: Mapping[str, str], number: pl.Expr
) -> pl.LazyFrame:
    """Two items share the gain of the lower grade: the sum of the steps that both reach.

    ``number`` counts the other items that reach a level, over the items that reach it.
    """
    grade, others = "__rankframe_grade", "__rankframe_others"
    gains = {name: gain_of(gain_from(gain)) for name, gain in names.items()}
    keys = rows.keys
    listed = rows.unjoined.filter(_is_listed, _is_graded)
    levels = (
        listed.select(*keys, "relevance", "relevant")
        .unique()
        .with_columns(
            (gain - gain.shift(1, fill_value=0.0).over(keys, order_by="relevance")).alias(name)
            for name, gain in gains.items()
        )
    )
    shared = (
        listed.select(*keys, "rank", _relevance.alias(grade))
        .join(levels, on=keys)
        .filter(_relevance <= pl.col(grade))
        .with_columns(number.alias(others))
        .unique([*keys, "rank", grade, "relevance"])  # equal grades in a block share alike
        .group_by(*keys, "rank", grade)
        .agg((pl.col(name) * pl.col(others)).sum() for name in gains)
    )
    left, right = [*keys, "rank", "relevance"], [*keys, "rank", grade]
    return frame.join(shared, left_on=left, right_on=right, how="left")


def _ideal(frame: pl.LazyFrame, keys: Sequence[str], names: Mapping[str, str]) -> pl.LazyFrame:
    """Return the ideal list, one row for each position, with what is cumulated down to it."""

    def down(value: pl.Expr, *, reverse: bool = False) -> pl.Expr:
        return value.cum_sum(reverse=reverse).over(keys, order_by="ideal_rank")

    last = (
        (_relevance != _relevance.shift(-1)).over(keys, order_by="ideal_rank").fill_null(value=True)
    )
    level = pl.when("__rankframe_last").then(1 / pl.col("ideal_discounted_gains")).otherwise(0.0)
    gains = (
        down(gain_of(gain_from(gain))).alias(name)
        for name, gain in names.items()
        if name.startswith("ideal_gains")
    )
    return (
        frame.filter(_is_graded)
        .select(*keys, "relevance", "relevant", "ideal_rank")
        .with_columns(
            *gains,
            ideal_discounted_gains=down(gain_of("linear") * discount(pl.col("ideal_rank"))),
            __rankframe_last=last,
        )
        .with_columns(level_weight=down(level, reverse=True))
        .drop("relevance", "relevant", "__rankframe_last")
    )


def _greedy_ideals(
    relevant: pl.LazyFrame, keys: list[str], item: str, names: Mapping[str, str]
) -> pl.LazyFrame:
    """Order the items of each user by what they add to those above, for each alpha and depth.

    This is the only column that is not an expression: what an item adds depends on all items taken
    before it. It is made only if a metric reads it.
    """
    subtopics = relevant.select(*keys, item, "subtopic")
    schema = subtopics.collect_schema()
    ordered = {name: schema[name] for name in (*keys, item)}

    def order(rows: pl.DataFrame) -> pl.DataFrame:
        ideals = rows.select(*ordered).unique()
        for name, parameter in names.items():
            alpha, _, depth = parameter.partition(";")
            deepest = int(depth) if depth else rows.height
            ideal = _greedy_ideal(rows, keys, item, float(alpha), deepest)
            ideals = ideals.join(ideal.rename({"place": name}), on=[*ordered], how="left")
        return ideals

    return subtopics.map_batches(
        order,
        schema={**ordered, **dict.fromkeys(names, pl.Int64())},
        predicate_pushdown=False,
        projection_pushdown=False,
        slice_pushdown=False,
    )


def _greedy_ideal(
    left: pl.DataFrame, keys: list[str], item: str, alpha: float, depth: int
) -> pl.DataFrame:
    """Take the next item of all users in one pass; of equal ones the higher one, as in ndeval."""
    tie = pl.col(item)
    if isinstance(left.schema[item], pl.Categorical | pl.Enum):
        tie = tie.cast(pl.String)
    taken = [left.select(*keys, item, place=pl.lit(0, pl.Int64)).clear()]
    left = left.with_columns(gain=1.0)
    while not left.is_empty() and len(taken) <= depth:
        # summation order changes the last bits of equal sums
        adds = left.group_by(*keys, item).agg(pl.col("gain").sum().round(12))
        best = adds.sort("gain", tie, descending=True).unique(
            keys, keep="first", maintain_order=True
        )
        best = best.select(*keys, item, place=pl.lit(len(taken), pl.Int64))
        taken.append(best)
        covered = left.join(best, on=[*keys, item]).select(*keys, "subtopic", covered=True)
        left = left.join(best, on=[*keys, item], how="anti")
        left = left.join(covered, on=[*keys, "subtopic"], how="left").with_columns(
            pl.when("covered").then(pl.col("gain") * (1 - alpha)).otherwise("gain").alias("gain")
        )
        left = left.drop("covered")
    return pl.concat(taken)


def _lower_below(frame: pl.LazyFrame, keys: list[str], item: str, *, tied: bool) -> pl.LazyFrame:
    """Count the items of lower grade below each judged item of the lists, for any grades.

    Two grades differ first in one binary digit of their places among the user's grades. So each row
    appears once per digit, and counts the pairs that this digit decides.
    """
    place, digits, power, count = (f"{INNER}{x}" for x in ("place", "digits", "power", "count"))
    number = _count(_relevance.rank("dense").over(keys)) - 1
    # if a logarithm rounds up, one more digit decides nothing
    most = (pl.col(place).max().over(keys) + 1).log(2).floor().cast(pl.Int64) + 1
    by_digit = (
        frame.filter(_is_listed & _is_judged)
        .select(*keys, item, "rank", number.alias(place))
        .with_columns(pl.int_ranges(0, most).alias(digits))
        .explode(digits, empty_as_null=False)
        .with_columns(pl.lit(2, pl.Int64).pow(digits).alias(power))
    )
    same = [*keys, digits, pl.col(place) // (2 * pl.col(power))]
    is_lower = 1 - pl.col(place) // pl.col(power) % 2
    below = is_lower.cum_sum(reverse=True).over(same, order_by="rank")
    by_digit = by_digit.with_columns(below.cast(pl.Float64).alias(count))
    if tied:
        block = [*same, "rank"]
        half = is_lower.sum().over(block) / 2
        by_digit = by_digit.with_columns(pl.col(count).max().over(block) - half)
    decided = pl.when(is_lower == 0).then(count)
    return by_digit.group_by(*keys, item).agg(decided.sum().alias("lower_graded_below"))


def _running(value: pl.Expr, keys: Sequence[str], order: str = "rank") -> pl.Expr:
    """Running sum in the order of a rank, null where the item has none."""
    above = value.cum_sum().over(keys, order_by=order, nulls_last=True)
    return pl.when(pl.col(order).is_not_null()).then(above)


def _product_above(factor: pl.Expr, keys: Sequence[str], order: str) -> pl.Expr:
    """Product over the rows above this one."""
    return factor.cum_prod().shift(1, fill_value=1.0).over(keys, order_by=order, nulls_last=True)


def _count(number: pl.Expr) -> pl.Expr:
    """Counts are unsigned in polars, and wrap."""
    return number.cast(pl.Int64)
