"""The comments above a query: what was asked and assumed, in the library's words, one line each."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import version

from rankframe._request.question import Question
from rankframe._tables.table import Table, Tables

#: Which users have a value, by ``users=``.
_USERS = {
    "truth": "all with an item of grade > 0; one without a list counts, as a miss",
    "judged": "all with a row in the truth; one without a list counts, as a miss",
    "both": "those with a row in the run and one in the truth",
    "run": "all with a list",
    "all": "all with a row in either table",
}


def comments(dialect: str, lines: Iterable[str]) -> str:
    """Write lines as comments, after the version."""
    first = f"rankframe {version('rankframe')}, for {dialect}"
    return "".join(f"-- {line}\n" for line in [first, *lines])


def plain(value: object) -> str:
    """Show a text of the caller's only if it cannot end a comment, nor be read by Jinja."""
    text = repr(value)
    return text if re.fullmatch(r"['\w.,:;=()\[\]@+* -]*", text, re.ASCII) else "'…'"


def header(
    dialect: str,
    question: Question,
    tables: Tables,
    more: Sequence[str],
    call: Mapping[str, object],
) -> str:
    """Tell the call, what the tables must hold, and who counts."""
    lines = [
        _written(question, call),
        "Assumed, and checked by rf.sql(…, check=True):",
    ]
    lines += [f"  {line}" for table in tables.both for line in _assumed(table, more)]
    if tables.lacking:
        groups = ", ".join(plain(name)[1:-1] for name in tables.lacking)
        lines.append(f"  {groups}: users are in several groups, and the whole truth judges each")
    lines.append("Assumed, and not checked: the types that schema= says, by default numbers for")
    lines.append("  ranks and grades; ids have the same type in both tables.")
    lines.append(f"Users: {_USERS[tables.users]}.")
    return comments(dialect, lines)


def of_functions(dialect: str, question: Question, call: Mapping[str, object]) -> str:
    """Tell the call, what the arrays hold, and what becomes of items that come again."""
    value, first = question.settings.undefined, question.settings.duplicates == "first"
    moved = "the items below its other places move up" if first else "its other places stay empty"
    lines = [
        _written(question, call),
        "items: one list, best first; relevant: the items that are relevant to its user.",
        f"An item that comes again counts once, at its first place; {moved}.",
        "The place of a null is empty, and so is a null array, with a type: CAST(NULL AS …).",
        f"The value is {'null' if value is None else plain(value)} where the metric is undefined.",
    ]
    return comments(dialect, lines)


def _written(question: Question, call: Mapping[str, object]) -> str:
    metrics = [plain(metric.name) for metric in question.requested]
    options = [f"{name}={plain(value)}" for name, value in call.items()]
    return f"rf.sql({', '.join([*metrics, *options])})"


def _assumed(table: Table, more: Sequence[str]) -> list[str]:
    ids, row = ("groups, user", "group, user") if {*table.by} - {*more} else ("user", "user")
    once = f"; one row per {row} and item" if table.passed is None else ""
    lines = [f"{table.name}: {ids} and item are never null{once}"]
    if table.name == "truth":
        grade = "a finite number, never null" if table.relevance else "1 in every row"
        lines.append(f"truth: the relevance is {grade}, > 0 in some")
        lines.append("truth: some users of each group are in the run, and some items")
    elif table.rank is not None:
        lines.append("run: ranks are integers from 1, each once in a list; null is not retrieved")
    else:
        lines.append("run: the highest score is first; equal scores by item, the greatest first")
    return lines
