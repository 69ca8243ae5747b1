"""What differs between warehouses: quotes, names of types, and a few functions."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple, TypeAlias, get_args

from rankframe import _sizes

DialectName: TypeAlias = Literal["duckdb", "spark", "postgres", "sqlite", "bigquery", "snowflake"]


class Dialect(NamedTuple):
    """One warehouse's SQL."""

    name: DialectName
    quote: str = '"'
    types: tuple[str, str] = ("DOUBLE", "BIGINT")
    backslash: bool = False  # whether it escapes the next character of a text
    least: str = "LEAST"
    greatest: str = "GREATEST"
    nan: str = "'NaN'"  # before it is cast
    is_nan: str = "{0} = {1}"
    #: whether a row after the last in text order may differ from the order of the bytes
    collation: str = ""
    #: how an array is read with the places of its items, from 1
    unnest: str = "UNNEST({0}) WITH ORDINALITY AS x({1}, {2})"
    #: a function of arrays, and the type of these; "": it cannot read arrays as tables
    function: str = ""
    array: str = ""

    def name_of(self, name: str) -> str:
        """Quote the name of a column, or of a part of a table's name."""
        if not name or re.search(r"[\x00-\x1f\x7f\x85\u2028\u2029]", name):
            msg = f"{name!r} cannot be a name in SQL: it is empty, or has a line break or NUL"
            raise ValueError(msg)
        if self.name == "bigquery" and re.search(r"[`\\]", name):
            msg = f"{name!r} cannot be a name in BigQuery, which allows no ` and no \\ in it"
            raise ValueError(msg)
        if self.name == "sqlite" and name.lower() in ("true", "false"):  # it renames such columns
            msg = f"{name!r} cannot be a name in SQLite, which reads it as a boolean: rename it"
            raise ValueError(msg)
        return f"{self.quote}{name.replace(self.quote, self.quote * 2)}{self.quote}"

    def names_of(self, names: Iterable[str]) -> list[str]:
        """Quote names."""
        return [self.name_of(name) for name in names]

    def listed(self, names: Iterable[str]) -> str:
        """Quote names, with commas between them."""
        return ", ".join(map(self.name_of, names))

    def table(self, name: str | Sequence[str]) -> str:
        """Quote a dotted path, or a tuple of parts; a Jinja expression stays as it is."""
        if isinstance(name, str) and is_jinja(name):
            return name.strip()
        parts = name.split(".") if isinstance(name, str) else name
        return ".".join(map(self.name_of, parts))

    def literal(self, value: bool | float | str | None) -> str:  # noqa: FBT001
        """Write a constant; a number with a point would be a decimal in four of the dialects."""
        if value is None:
            return "NULL"
        if isinstance(value, bool):
            return "TRUE" if value else "FALSE"
        if isinstance(value, str):
            return self._text(value)
        if isinstance(value, int):
            return str(value)
        if math.isnan(value):
            return f"CAST({self.nan} AS {self.types[0]})"
        if value.is_integer() and abs(value) < _sizes.WHOLE:
            return str(int(value))
        return f"CAST({value!r} AS {self.types[0]})"

    def is_nan_of(self, number: str) -> str:
        """Write whether a number is NaN."""
        return self.is_nan.format(number, self.literal(math.nan))

    def _text(self, value: str) -> str:
        if "\0" in value:
            msg = f"{value!r} cannot be a text in SQL: it has NUL"
            raise ValueError(msg)
        if not self.backslash:
            return "'" + value.replace("'", "''") + "'"
        escapes = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\r": "\\r"}
        return "'" + "".join(escapes.get(sign, sign) for sign in value) + "'"


_DIALECTS = {
    "duckdb": Dialect(
        "duckdb", function="CREATE OR REPLACE MACRO {name}({parameters}) AS {body};\n"
    ),
    "spark": Dialect("spark", quote="`", backslash=True),
    "postgres": Dialect(
        "postgres",
        types=("DOUBLE PRECISION", "BIGINT"),
        collation=' COLLATE "C"',
        function="CREATE OR REPLACE FUNCTION {name}({parameters}) RETURNS {returned}\n"
        "LANGUAGE SQL IMMUTABLE PARALLEL SAFE AS {text};\n",
        array=" anycompatiblearray",
    ),
    "sqlite": Dialect(
        "sqlite",
        types=("REAL", "INTEGER"),
        least="MIN",
        greatest="MAX",
        nan="NULL",  # it has no NaN
        is_nan="FALSE",
    ),
    "bigquery": Dialect(
        "bigquery",
        quote="`",
        types=("FLOAT64", "INT64"),
        backslash=True,
        is_nan="IS_NAN({0})",  # no number is equal to NaN there
        unnest="(SELECT {1}, {2} + 1 AS {2} FROM UNNEST({0}) AS {1} WITH OFFSET AS {2}) AS x",
        function="CREATE OR REPLACE FUNCTION {name}({parameters}) AS ({body});\n",
        array=" ANY TYPE",
    ),
    "snowflake": Dialect("snowflake", backslash=True),
}


_OTHER_NAMES = {"databricks": "spark", "postgresql": "postgres", "sqlite3": "sqlite"}


def dialect_named(name: str) -> Dialect:
    """Look up a dialect."""
    if name not in _DIALECTS:
        msg = f"dialect must be one of {', '.join(map(repr, get_args(DialectName)))}, not {name!r}"
        if nearest := _OTHER_NAMES.get(str(name).lower()):
            msg = f"dialect {name!r}: use {nearest!r}"
        raise ValueError(msg)
    return _DIALECTS[name]


def is_jinja(name: str) -> bool:
    """Whether a text is wholly one Jinja expression, such as ``{{ ref("recs") }}``."""
    text = name.strip()
    inner = text[2:-2]
    whole = len(text) > 4 and text.startswith("{{") and text.endswith("}}")
    return whole and not re.search(r"\}\}|;|--|/\*|\{\{|[\x00-\x1f\x7f\x85\u2028\u2029]", inner)
