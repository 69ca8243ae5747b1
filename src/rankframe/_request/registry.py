"""The register of columns: which columns metrics may read, and what reading them takes.

Stage of the pipeline: the columns that expressions name are looked up, and make a ``Reading``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from types import MappingProxyType
from typing import Any, Literal, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe._request import keywords, parameters, wrong_keywords
from rankframe._request.parameters import ParameterType

#: The rows of one user that a metric reduces: the items of grade > 0, retrieved or not; all rows of
#: the truth; the rows of the list alone; one row per subtopic of an item of grade > 0; or one per
#: value of an attribute, such as a genre, with its share of the exposure. The widest scope of the
#: columns that a metric reads is its own (``reading_of``); which shares, ``distribution_of`` finds.
Scope: TypeAlias = Literal["relevant", "judged", "listed", "subtopic", "shares"]
#: Whether a column exists both with ranks and with blocks of equal scores, or with only one of
#: them.
InTies: TypeAlias = Literal["both", "ranks", "blocks"]

#: The source of columns of shares; callers may have columns called ``share`` or ``target``.
SHARES = ("shares",)

#: The columns that the sort by rank makes.
_MADE_IN_ORDER = ("ideal_place", "ideal_relevance")
_WIDTHS: Mapping[Scope, int] = {"relevant": 0, "subtopic": 0, "judged": 1, "listed": 2, "shares": 3}

#: Derives a column: of the rows and its parameters.
Derive: TypeAlias = Callable[..., pl.Expr]
#: The columns that one join adds: the parameters of each by its name.
Names: TypeAlias = Mapping[str, tuple[Any, ...]]
#: Adds columns of one kind by a join, or in several steps: of the frame, the rows and the names.
Join: TypeAlias = Callable[..., pl.LazyFrame]


#: The rank of the row for which a ``SumOfTruth`` is taken.
OWN_RANK = pl.col("own rank")


class SumOfTruth(NamedTuple):
    """What a join adds, as a sum over items of grade > 0 in the truth of the same user."""

    value: pl.Expr
    where: pl.Expr


#: A joined column without its join: such a sum, or an expression, in which windows may stand in
#: windows. One ``derived_over`` the list reduces it. Of the keys and the parameters.
Form: TypeAlias = Callable[..., "pl.Expr | SumOfTruth"]


class Column(NamedTuple):
    """A column of the vocabulary, and everything known about it."""

    name: str
    meaning: str
    scope: Scope = "relevant"  # of a metric that reads it
    derived_over: Scope = "relevant"  # the rows that it is derived from, if wider
    reads: tuple[str, ...] = ()  # what it is derived from; ``*`` stands for the same parameters
    in_ties: InTies = "ranks"
    down_to_rank: bool = False  # of run and truth: a value does not depend on items below it
    beside_subtopics: bool = False  # it is defined for a row of a subtopic
    # the rows that have it: relevant or judged ones, all, or, without a truth, those of lists
    derived_on: Literal["truth", "all rows", "lists"] = "truth"
    # in parentheses, by name: the type, as labels have it, and the default if it may be left out;
    # only the last may be a list
    parameters: Mapping[str, tuple[Any, ...]] = MappingProxyType({})
    derive: Derive | None = None
    join: Join | None = None
    form: Form | None = None  # what a join adds, for SQL; held to the join by tests
    in_parentheses: bool = False  # tables may have a column of the word alone
    registered: bool = False  # by a user: the name is reserved only if a metric reads it
    # the tables besides run and truth of which one must be passed; the name is reserved then
    source: tuple[str, ...] = ()

    @property
    def known_without_truth(self) -> bool:
        return self.derived_on == "lists"

    @property
    def always_reserved(self) -> bool:
        """Whether no table may have a column of this name."""
        return not (self.registered or self.source or self.in_parentheses)


COLUMNS: dict[str, Column] = {}


def given_column(name: str, meaning: str, **fields: Any) -> None:
    """Declare a column that the rows have already."""
    _declare(Column(name, meaning, **fields))


def column(**fields: Any) -> Callable[[Derive], Derive]:
    """Declare a column by the function that derives it, which has its name and its meaning."""

    def declare(derive: Derive) -> Derive:
        name, meaning = _described(derive)
        _declare(Column(name, meaning, derive=derive, **fields))
        return derive

    return declare


def joined_column(name: str = "", meaning: str = "", **fields: Any) -> Callable[[Join], Join]:
    """Declare a column that a join adds; one that adds several is decorated with each."""

    def declare(join: Join) -> Join:
        own = (name, meaning) if name else _described(join)
        _declare(Column(*own, join=join, **fields))
        return join

    return declare


def _declare(column: Column) -> None:
    for key, (annotation, *_) in column.parameters.items():
        try:
            parameters.type_of(annotation)
        except (LookupError, TypeError):
            msg = f"column {column.name!r}, parameter {key!r}: labels cannot read {annotation!r}: "
            msg += "take a type of _request/parameters.py"
            raise TypeError(msg) from None
    COLUMNS[column.name] = column


def _described(function: Callable[..., Any]) -> tuple[str, str]:
    return function.__name__, " ".join((function.__doc__ or "").split()).removesuffix(".")


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """What metrics read: their needs, found in one place, and once for the same names."""

    names: frozenset[str]  # what expressions name, and what registered columns read
    columns: dict[str, Column]  # those of the vocabulary, and what these are derived from
    scope: Scope

    @cached_property
    def outside(self) -> list[str]:
        """The columns that are not of the vocabulary."""
        return sorted(name for name in self.names if name not in self.columns)

    @cached_property
    def reserved(self) -> list[str]:
        """The names that tables may have unless a metric reads them."""
        columns = self.columns.values()
        return sorted({column.name for column in columns if column.registered or column.source})

    @cached_property
    def names_its_rows(self) -> bool:
        """Whether the expressions name the rows that they reduce."""
        row_columns = {"listed", "judged", "relevant"}
        return not row_columns.isdisjoint(self.names) or any(
            column.scope != "relevant" for column in self.columns.values()
        )

    @cached_property
    def lists_alone(self) -> bool:
        """Whether what is read needs no truth."""
        of_lists = self.scope in ("listed", "shares")
        return of_lists and all(column.known_without_truth for column in self.columns.values())

    @cached_property
    def mixes_subtopics(self) -> bool:
        """Whether columns of subtopics are mixed with columns counted by item."""
        columns = [self.columns[name] for name in self.names if name in self.columns]
        return any(column.scope == "subtopic" for column in columns) and not all(
            column.beside_subtopics or column.scope == "subtopic" for column in columns
        )

    @cached_property
    def counts_judged(self) -> bool:
        """Whether judged items that are not relevant count."""
        return self._derives_from("judged")

    @cached_property
    def counts_listed(self) -> bool:
        """Whether unjudged items of the list count."""
        return self._derives_from("listed") or self._derives_from("shares")

    @cached_property
    def depends_on_below(self) -> bool:
        """Whether what is read of an item may depend on the items below it."""
        return bool(self.outside) or any(not self.columns[name].down_to_rank for name in self.names)

    @cached_property
    def needs_rank_order(self) -> bool:
        """Whether the rows are sorted by rank anyway."""
        return not self.columns.keys().isdisjoint(_MADE_IN_ORDER)

    @cached_property
    def top_grade(self) -> bool:
        """Whether the highest grade of all users matters."""
        return "top_grade" in self.columns

    def _derives_from(self, scope: Scope) -> bool:
        return any(scope in (c.scope, c.derived_over) for c in self.columns.values())


def reading_of(
    names: Iterable[str], *, has_subtopics: bool = False, inputs: Collection[str] = ()
) -> Reading:
    """Return what metrics that name these columns need.

    ``inputs`` names the tables besides run and truth; without its table, a column is the caller's.
    """
    return _reading(frozenset(names), has_subtopics, frozenset(inputs))


@functools.lru_cache(maxsize=1024)  # until a column is registered
def _reading(read: frozenset[str], has_subtopics: bool, inputs: frozenset[str]) -> Reading:  # noqa: FBT001
    columns: dict[str, Column] = {}
    outside: set[str] = set()
    pending = sorted(read)
    while pending:
        name = pending.pop()
        column = COLUMNS.get(name.partition("(")[0])
        if column is None or not _is_given(name, column, inputs):
            outside.add(name)
        elif name not in columns:
            read_parameters(name)  # raises for one that cannot be read
            columns[name] = column
            pending += sources_of(name)
    scopes: list[Scope] = ["relevant", *(column.scope for column in columns.values())]
    scope = max(scopes, key=lambda scope: _WIDTHS[scope])  # the first of several
    if has_subtopics and "subtopic" in scopes:
        scope = "subtopic"
    return Reading(read | outside, columns, scope)


def _is_given(name: str, column: Column, inputs: Collection[str]) -> bool:
    """Whether the name means the column, and the call passes the table that it comes from."""
    if column.in_parentheses or column.source == SHARES:
        return "(" in name
    return not column.source or not {*column.source}.isdisjoint(inputs)


@wrong_keywords.checked
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
    >>> @rf.metrics.register_column(
    ...     "gap_above", "rank minus the rank of the relevant item above, or 0"
    ... )
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
    if name in keywords.ROLES or (name in COLUMNS and not COLUMNS[name].registered):
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

        new_column = Column(
            name,
            meaning,
            scope=scope,
            reads=tuple(dict.fromkeys([*reads, *_named_in(function, parameter, default)])),
            in_ties="both" if in_ties else "ranks",
            derived_on="lists" if scope == "listed" else "truth",
            parameters={} if parameter is None else {"text": (_type_of_text(parameter), default)},
            derive=derive,
            registered=True,
        )
        restore_columns([new_column])
        return function

    return register


@functools.cache
def registrations() -> object:
    """Return a token that changes with each registration."""
    return object()


def restore_columns(columns: Iterable[Column]) -> None:
    """Register columns, here or as they were registered in another process."""
    COLUMNS.update({column.name: column for column in columns})
    _reading.cache_clear()
    read_parameters.cache_clear()
    sources_of.cache_clear()
    registrations.cache_clear()


def _named_in(
    function: Callable[..., pl.Expr], parameter: Callable[[str], object] | None, default: str
) -> list[str]:
    """Return the columns that the expression of a registered column reads, except its keys."""
    if parameter is not None and not default:  # no valid text is known
        return []
    key = "__rankframe_key"
    result = cast("object", function([key]) if parameter is None else function([key], default))
    if not isinstance(result, pl.Expr):
        msg = f"{function.__name__} must return a polars expression, not {type(result).__name__}"
        raise TypeError(msg)
    return [name for name in result.meta.root_names() if name != key]


#: The columns that ``relevant`` always returns.
BASIC = (
    *("rank", "relevance", "relevant", "hits", "total"),
    *("ideal_rank", "ideal_place", "ideal_relevance"),
    *("rank_discount", "place_discount"),
)


# ------------------------------------------------------------------ names with parameters


def name(word: str, **values: object) -> str:
    """Write the name of a column with its parameters: ``gains``, or ``gains(exponential)``."""
    declared = COLUMNS[word].parameters
    if unknown := sorted(values.keys() - declared.keys()):
        keys = ", ".join(declared) or "none"
        msg = f"column {word!r} has no parameter {unknown[0]!r}: it has {keys}"
        raise TypeError(msg)
    return _written(word, [values.get(key, *default) for key, (_, *default) in declared.items()])


def _written(word: str, values: Sequence[object]) -> str:
    column = COLUMNS[word]
    texts = [
        "" if value is None or [value] == default else parameters.as_text(value)
        for value, (_, *default) in zip(values, column.parameters.values(), strict=True)
    ]
    text = ";".join(texts).rstrip(";")
    return f"{word}({text})" if text or column.source == SHARES else word


@functools.lru_cache(maxsize=4096)  # until a column is registered
def read_parameters(name: str) -> tuple[Any, ...]:
    """Read the parameters of a column from its name, defaults included."""
    word, opened, rest = name.partition("(")
    column, text = COLUMNS[word], rest.removesuffix(")")
    types, values = column.parameters, list[Any]()
    texts = text.split(";", len(types) - 1) if len(types) > 1 else [text]
    msg = f"column {name!r}: {text!r} is not a parameter of {word!r}, {column.meaning}"
    if opened and not (types and rest.endswith(")")):
        raise ValueError(msg)
    try:
        for key, part in zip_longest(types, texts[: len(types)], fillvalue=""):
            annotation, *default = types[key]
            if not part and default:
                values.append(*default)
            else:
                kind = parameters.type_of(annotation)
                values.append(kind.check(key, kind.read(part)))
    except (KeyError, ValueError):
        raise ValueError(msg) from None
    return tuple(values)


@functools.lru_cache(maxsize=4096)  # until a column is registered
def sources_of(name: str) -> Sequence[str]:
    """Name what a column is derived from."""
    column, values = COLUMNS[name.partition("(")[0]], read_parameters(name)
    top = ["top_grade"] if "max_grade" in column.parameters and values[-1] is None else []
    starred = {read: read.removesuffix("(*)") for read in column.reads}
    return [*(r if r == word else _written(word, values) for r, word in starred.items()), *top]


def _type_of_text(check: Callable[[str], object]) -> ParameterType:
    """Return the type of a registered column's parameter, which stays text."""

    def checked(_name: str, text: str) -> str:
        check(text)
        return text

    return ParameterType(checked)
