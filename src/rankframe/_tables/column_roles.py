"""Common names of columns, used if the plain ones are absent and only one name fits.

What is found here is used as if the caller had named it: ``user="user_id"``. Stage of the pipeline:
``Columns`` are completed here, before ``readers`` makes a ``Table``.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import cast

import polars as pl

from rankframe._request import keywords
from rankframe._request.keywords import Columns
from rankframe._request.types import By, Truth
from rankframe._tables import adapters

#: Other names of the roles.
COMMON_NAMES: Mapping[str, tuple[str, ...]] = {
    "user": ("user_id", "userId", "query_id", "qid", "query-id"),
    "item": ("item_id", "itemId", "doc_id", "docid", "docno", "movieId", "corpus-id"),
    "rank": ("position",),
    "score": ("prediction",),
    "relevance": ("rel", "grade", "label"),
}
#: Names that may hold ids or their text, used only where no other name fits.
TEXT_NAMES: Mapping[str, tuple[str, ...]] = {
    "user": ("query", "question"),
    "item": ("doc", "document", "passage", "row_from_end"),
}
#: The columns of judgments that other tools write, Quepid and BEIR, with the one of the grades.
_WRITTEN = {("query", "docid", "rating"): "rating", ("query-id", "corpus-id", "score"): "score"}
#: Names that are relevance only if the caller says so: every rating would count as relevant.
RATINGS = ("rating", "ratings", "stars", "Rating", "Ratings", "Stars")
#: Other such names: every judgment would count as relevant.
GRADES = (
    *("judgment", "judgement", "judgments", "judgements", "grades", "labels", "gain", "gains"),
    *("Relevance", "Rel", "Grade", "Label", "Judgment", "Judgement", "Gain"),
    *("relevance_label", "relevance_grade", "relevance_score", "rel_label", "rel_grade"),
)
#: Characters that end a line or a text, turn its direction, or are no text; joiners are text.
HIDDEN = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufeff\ufffe\uffff]"
)
_PLACING = ("rank", "score")
_NAMES = (*COMMON_NAMES.values(), *TEXT_NAMES.values())
#: All names that are recognized without a keyword.
SEARCHED = frozenset((*RATINGS, *GRADES, *(name for names in _NAMES for name in names)))


def in_words(name: object) -> str:
    """Write a name in a sentence: in quotes if it is empty or has signs that do not show."""
    text = str(name)
    return text if text and text == text.strip() and not HIDDEN.search(text) else repr(name)


def fitting(role: str, columns: Columns, by: By, names: Collection[str]) -> list[str]:
    """Return the columns that may play a role; none if its keyword or its plain name is used."""
    if role in columns or role in names:
        return []
    for common in (COMMON_NAMES.get(role, ()), TEXT_NAMES.get(role, ())):
        fit = [name for name in common if name in names and is_free(name, columns, by)]
        if fit:
            return fit
    return []


def lacks_items(columns: Columns, by: By, names: Collection[str]) -> bool:
    """Whether no column can be that of the items."""
    plain = "item" in columns or ("item" in names and is_free("item", columns, by))
    return not plain and not fitting("item", columns, by, names)


def is_free(name: str, columns: Columns, by: By) -> bool:
    """Whether the caller has given a column no role."""
    return name not in columns.values() and name not in keywords.group_names(by)


def is_pattern(name: str) -> bool:
    """Whether Polars reads a name as a pattern of names."""
    return name == "*" or (name.startswith("^") and name.endswith("$"))


def can_be_id(dtype: pl.DataType) -> bool:
    """Whether values of a type identify users, items or groups."""
    return not (dtype.is_nested() or dtype.is_object())


def can_be_number(dtype: pl.DataType, role: str) -> bool:
    """Whether values of a type can be ranks, scores or relevances."""
    return dtype.is_numeric() or dtype == pl.Null or (role == "relevance" and dtype == pl.Boolean)


def with_ids(columns: Columns, by: By, tables: Mapping[str, Truth | None]) -> Columns:
    """Check the keywords, and add the names of user and item; all tables have the same."""
    keywords.check_columns(columns)
    if "user" in columns and "item" in columns:
        return columns
    names = [
        name
        for table, frame in tables.items()
        if frame is not None
        for name in adapters.column_names(frame, table)
    ]
    return _with_found(columns, by, names, ["user"], ["item"])


def with_roles(columns: Columns, by: By, names: Collection[str], roles: Collection[str]) -> Columns:
    """Add the names of these roles where one column fits; a placing is a rank or a score."""
    if "relevance" in roles:
        ids = columns.get("user"), columns.get("item")
        for written, grade in _WRITTEN.items():
            if ids == written[:2] and grade in names and "relevance" not in names:
                columns = {"relevance": grade, **columns}
    alternatives = [_PLACING if role == "placing" else (role,) for role in roles]
    return _with_found(columns, by, names, *alternatives)


def _with_found(columns: Columns, by: By, names: Collection[str], *roles: Sequence[str]) -> Columns:
    """Add the one column that may play one of the roles, for each sequence of these."""
    additions, taken = dict[str, str](), {*columns, *names}
    for alternatives in roles:
        if not taken.isdisjoint(alternatives):
            continue
        fit = {(role, name) for role in alternatives for name in fitting(role, columns, by, names)}
        additions.update(fit if len(fit) == 1 else ())
    return cast("Columns", {**columns, **additions}) if additions else columns
