"""Judgments in JSON: rows, and what Elasticsearch and OpenSearch take."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Mapping
from math import isfinite, nan
from pathlib import Path
from typing import Any, cast

import polars as pl

from rankframe import _sizes
from rankframe._request import wrong_keywords
from rankframe._tables import adapters, column_roles
from rankframe.errors import RankingDataError

#: The field of the queries, and those of the ids of a query and of a document.
_SHAPES = {"requests": ("id", "_id"), "judgmentRatings": ("query", "docId")}
MOST_UNPACKED = 1 << 28
IN_WORDS = (
    "judgments are a list of rows, [{'user': …, 'item': …, 'relevance': …}], a request of "
    "Elasticsearch's _rank_eval, {'requests': [{'id': …, 'ratings': [{'_id': …, 'rating': …}]}]}, "
    "or those of OpenSearch, {'judgmentRatings': [{'query': …, 'ratings': [{'docId': …, 'rating': "
    "…}]}]}"
)


@wrong_keywords.checked
def read_judgments(path: str | Path) -> pl.DataFrame:
    """
    Read judgments from a JSON file, in one of three shapes.

    Parameters
    ----------
    path
        A file with a list of rows (user, item, relevance, under any of their common names), a
        request of Elasticsearch's ``_rank_eval``, or ``judgmentRatings`` of OpenSearch; perhaps
        compressed with gzip, of at most 256 MB when unpacked.

    Returns
    -------
    DataFrame
        A truth: ``user`` and ``item`` (String) and ``relevance`` (Int64, or Float64 if a grade has
        a fraction), in the order of the file.

    Raises
    ------
    RankingDataError
        If the file has another shape, a field is missing, or it rates one ``_id`` of several
        indices.

    Examples
    --------
    >>> import json, pathlib, tempfile
    >>> ratings = [{"_index": "shop", "_id": "d1", "rating": 3}]
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "judgments.json"
    >>> _ = path.write_text(json.dumps({"requests": [{"id": "q1", "ratings": ratings}]}))
    >>> rf.trec.read_judgments(path).rows()
    [('q1', 'd1', 3)]
    """
    if not isinstance(cast("object", path), str | Path):
        msg = (
            f"read_judgments takes the path of a JSON file, not {adapters.kind(path)}: save it "
            "with json.dump, or make a truth with rf.from_grades or pl.DataFrame"
        )
        raise TypeError(msg)
    content: Any = _parsed(str(path), Path(path).read_bytes())
    nested = of_search(str(path), content)
    if nested is not None:
        return nested
    rows = _list(str(path), "its content", content)
    if not rows:
        raise _wrong(str(path), "its content", "is an empty list")
    return _of_rows(str(path), rows)


def read_nested(name: str, content: bytes) -> pl.DataFrame | None:
    """Read judgments that are no rows; None if the content is rows."""
    try:
        return of_search(name, _parsed(name, content))
    except ValueError as error:
        if isinstance(error, RankingDataError):
            raise
        return None  # several lines, each of which may be JSON


def of_search(name: str, content: Any) -> pl.DataFrame | None:
    """Read the shapes of search engines; None if no field of the content is nested."""
    if isinstance(content, list):
        for place, row in enumerate(cast("list[object]", content)):
            if not isinstance(row, Mapping):
                raise _wrong(name, f"[{place}]", f"is {row!r:.50}, not a row")
    if not isinstance(content, Mapping):
        return None
    fields = cast("Mapping[str, Any]", content)
    shape = next((shape for shape in _SHAPES if shape in fields), None)
    if shape is None:
        inner = [field for field in fields if isinstance(fields[field], list | dict)]
        if not inner:
            return None
        raise _wrong(name, repr(inner[0]), f"is not one of {', '.join(map(repr, _SHAPES))}")
    user, item = _SHAPES[shape]
    rows: list[tuple[str, str, float]] = []
    indices: dict[tuple[str, str], Any] = {}
    for place, query in enumerate(_list(name, shape, fields[shape])):
        where = f"{shape}[{place}]"
        ratings = _list(name, f"{where}.ratings", _field(name, where, query, "ratings"))
        for number, rating in enumerate(ratings):
            at = f"{where}.ratings[{number}]"
            ids = _id(name, where, query, user), _id(name, at, rating, item)
            index = rating.get("_index")
            if indices.setdefault(ids, index) != index:
                msg = (
                    f"{name}: {at}._index is {index!r}, and that of another rating of this query "
                    f"and _id {ids[1]!r} is {indices[ids]!r}: ids must be unique: write the index "
                    "into the ids of judgments and runs, or judge each index alone"
                )
                raise RankingDataError(msg)
            rows.append((*ids, _grade(name, at, rating)))
    table = pl.DataFrame(
        rows, {"user": pl.String, "item": pl.String, "relevance": pl.Float64}, orient="row"
    )
    grades = table["relevance"]
    whole = ((grades == grades.round()) & (grades.abs() < _sizes.WHOLE)).all()
    return table.with_columns(grades.cast(pl.Int64)) if whole else table


def _of_rows(name: str, rows: list[Any]) -> pl.DataFrame:
    table = pl.DataFrame(rows, infer_schema_length=None)
    columns = column_roles.with_ids({}, (), {"judgments": table})
    columns = column_roles.with_roles(columns, (), table.columns, ["relevance"])
    names: dict[str, str] = {role: str(columns.get(role, role)) for role in ("user", "item")}
    for role, column in names.items():
        if column not in table.columns:
            fit = column_roles.fitting(role, {}, (), table.columns)
            if fit:
                text = f"and {fit[1]!r} both may be the {role} (drop or rename one)"
                raise _wrong(name, f"[0]: {fit[0]!r}", text)
            has = ", ".join(map(repr, table.columns))
            raise _wrong(name, f"[0].{column}", f"is missing, the {role}; it has {has}")
        if not column_roles.can_be_id(table.schema[column]):
            raise _wrong(name, f"[0].{column}", f"is {rows[0].get(column)!r:.50}, not an id")
    grade = columns.get("relevance", "relevance")
    own = [pl.col(column).cast(pl.String).alias(role) for role, column in names.items()]
    graded = [pl.col(grade).alias("relevance")] if grade in table.columns else []
    return table.select(*own, *graded, pl.exclude(*names.values(), grade, "relevance"))


class TooLargeError(ValueError):
    """What gzip has packed is larger than what is read."""


def unpacked(content: bytes) -> bytes:
    """Unpack what gzip has packed piece by piece, up to a size: few bytes may hold many."""
    if not content.startswith(b"\x1f\x8b"):
        return content
    whole = bytearray()
    with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
        while piece := file.read(_sizes.BYTES_READ):
            whole += piece
            if len(whole) > MOST_UNPACKED:
                msg = (
                    f"unpacked, it has more than {MOST_UNPACKED >> 20} MB: unpack it first, or "
                    "save it as Parquet"
                )
                raise TooLargeError(msg)
    return bytes(whole)


def _parsed(name: str, content: bytes) -> Any:
    try:
        return json.loads(unpacked(content))
    except TooLargeError as error:
        msg = f"{name}: {error}"
        raise ValueError(msg) from None
    except RecursionError:
        msg = f"{name}: it is nested too deeply: {IN_WORDS}"
        raise RankingDataError(msg) from None
    except ValueError as error:
        msg = f"{name}: it is not JSON ({error}); pl.read_ndjson reads rows in lines"
        raise ValueError(msg) from None


def _id(name: str, where: str, value: Any, field: str) -> str:
    number = _field(name, where, value, field)
    if isinstance(number, bool) or not isinstance(number, str | int):
        raise _wrong(name, f"{where}.{field}", f"is {number!r:.50}, not an id")
    return str(number)


def _grade(name: str, where: str, value: Any) -> float:
    grade = _field(name, where, value, "rating")
    try:
        number = float(grade)
    except (TypeError, ValueError):
        number = nan
    if not isfinite(number):
        raise _wrong(name, f"{where}.rating", f"is {grade!r:.50}, not a number")
    return number


def _field(name: str, where: str, value: Any, field: str) -> Any:
    if not isinstance(value, Mapping) or field not in value:
        raise _wrong(name, f"{where}.{field}", "is missing")
    return cast("Mapping[str, Any]", value)[field]


def _list(name: str, where: str, value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _wrong(name, where, "is not a list")
    return value  # pyright: ignore[reportUnknownVariableType]


def _wrong(name: str, field: str, problem: str) -> RankingDataError:
    return RankingDataError(f"{name}: {field} {problem}: {IN_WORDS}")
