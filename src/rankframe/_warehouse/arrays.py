"""``as_function=``: the tables of one user are read from arrays, and the query is a function."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

from rankframe._warehouse import dialects
from rankframe._warehouse.dialects import Dialect, DialectName
from rankframe._warehouse.printing import ColumnText
from rankframe.errors import Problem, option

#: The list, best first, and the items that are relevant to its user.
ARRAYS = ("items", "relevant")
#: The options that a function has; the others are of tables, or of grades.
_OPTIONS = ("dialect", "as_function", "undefined", "depth", "preset", "duplicates")


def check(passed: Mapping[str, object], dialect: Dialect) -> None:
    """Raise for a warehouse without such functions, and for options of tables."""
    wrong = [name for name, value in passed.items() if value and name not in _OPTIONS]
    alone = f"or leave out {option('as_function')} for the SELECT"
    if not dialect.function:
        able = [n for n in get_args(DialectName) if dialects.dialect_named(n).function]
        msg = f"{option('dialect', dialect.name)}: a function there cannot read arrays as tables: "
        msg += f"use {' or '.join(map(repr, able))}, {alone}"
    elif wrong:
        msg = f"{option(wrong[0])} applies to tables, and a function reads arrays: "
        msg += f"leave it out, {alone}"
    else:
        return
    raise ValueError(Problem(msg))


def check_names(written: Mapping[str, str], dialect: Dialect) -> None:
    """Raise for a function that would stand before DuckDB's own ``map()`` in the whole database."""
    for metric, name in written.items():
        if dialect.name == "duckdb" and name.lower() == "map":
            cure = (
                "use 'ap', which is the same for one list" if metric == "map" else "choose another"
            )
            msg = (
                f"metric {metric!r}: DuckDB has its own function map(), which a macro with this "
                f"name would hide: {cure}"
            )
            raise ValueError(msg)


def tables(dialect: Dialect) -> dict[str, str]:
    """Read the arrays as the tables of one user; a relevant item has one row, of grade 1."""
    user, item, rank, grade = map(dialect.name_of, ("user", "item", "rank", "relevance"))
    # DuckDB puts the words of the caller for the parameters: no column of theirs has these names
    own, place = dialect.names_of(("array_item", "array_place"))

    def table(array: str, value: str) -> str:
        source = dialect.unnest.format(dialect.name_of(array), own, place)
        columns = f"1 AS {user}, {own} AS {item}, {value}"
        return f"SELECT {columns} FROM {source} WHERE {own} IS NOT NULL"

    run, truth = table(ARRAYS[0], f"{place} AS {rank}"), table(ARRAYS[1], f"1 AS {grade}")
    return {"run": f"({run})", "truth": f"({truth} GROUP BY {own})"}


def function(dialect: Dialect, name: str, value: ColumnText) -> str:
    """Write the function of a value."""
    return dialect.function.format(
        name=dialect.name_of(name),
        parameters=", ".join(f"{array}{dialect.array}" for array in dialect.names_of(ARRAYS)),
        returned="BOOLEAN" if value.dtype == "bool" else dialect.types[0],
        body=value.sql,
        text=dialect.literal(f"SELECT {value.sql}"),
    )
