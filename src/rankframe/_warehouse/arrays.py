"""``as_function=``: the tables of one user are read from arrays, and the query is a function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import get_args

from rankframe._warehouse import dialects
from rankframe._warehouse.dialects import Dialect, DialectName
from rankframe._warehouse.printing import ColumnText
from rankframe.errors import Problem, option

#: The list, best first, the items that are relevant to its user, and their grades.
ARRAYS = ("items", "relevant", "grades")
#: The options that change the value of a list; the first two need grades to do so.
_OPTIONS = "relevant_at unjudged dialect as_function undefined depth preset duplicates".split()


def check(form: object, passed: Mapping[str, object], dialect: Dialect) -> None:
    """Raise for a warehouse without such functions, and for options of tables."""
    taken = _OPTIONS if form == "graded" else _OPTIONS[2:]
    wrong = [name for name, value in passed.items() if value and name not in taken]
    alone = f"or leave out {option('as_function')} for the SELECT"
    if form not in (True, "graded"):
        msg = f"as_function must be True, False or 'graded', not {form!r}"
    elif not dialect.function:
        able = [n for n in get_args(DialectName) if dialects.dialect_named(n).function]
        msg = f"{option('dialect', dialect.name)}: a function there cannot read arrays as tables: "
        msg += f"take {' or '.join(map(repr, able))}, {alone}"
    elif wrong and wrong[0] in _OPTIONS:
        msg = f"{option(wrong[0])} needs grades, and all are 1: add an array of them, as in "
        msg += option("as_function", "graded")
    elif wrong:
        msg = f"{option(wrong[0])} is of tables, and a function reads arrays: leave it out, {alone}"
    else:
        return
    raise ValueError(Problem(msg))


def tables(dialect: Dialect, arrays: Sequence[str]) -> dict[str, str]:
    """Read the arrays as the tables of one user; of a relevant item, the greatest grade counts."""
    user, item, rank, grade = map(dialect.name_of, ("user", "item", "rank", "relevance"))
    # DuckDB puts the words of the caller for the parameters: no column of theirs has these names
    own, place = dialect.names_of(("array_item", "array_place"))
    grades = [f"MAX({dialect.element.format(dialect.name_of(name), place)})" for name in arrays[2:]]

    def table(array: str, value: str) -> str:
        source = dialect.unnest.format(dialect.name_of(array), own, place)
        columns = f"1 AS {user}, {own} AS {item}, {value}"
        return f"SELECT {columns} FROM {source} WHERE {own} IS NOT NULL"

    truth = table(arrays[1], f"{[*grades, '1'][0]} AS {grade}")
    run = table(arrays[0], f"{place} AS {rank}")
    return {"run": f"({run})", "truth": f"({truth} GROUP BY {own})"}


def function(dialect: Dialect, name: str, arrays: Sequence[str], value: ColumnText) -> str:
    """Write the function of a value."""
    types = zip(dialect.names_of(arrays), dialect.array_types, strict=False)
    return dialect.function.format(
        name=dialect.name_of(name),
        parameters=", ".join(" ".join(pair).strip() for pair in types),
        returned="BOOLEAN" if value.dtype == "bool" else dialect.types[0],
        body=value.sql,
        text=dialect.literal(f"SELECT {value.sql}"),
    )
