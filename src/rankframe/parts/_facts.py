"""Facts of whole tables, as JSON: what a part, or a batch of a ``Meter``, must know of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeAlias, cast

import polars as pl

from rankframe._evaluation.values import Values
from rankframe._request import keywords, registry
from rankframe._request.keywords import Settings
from rankframe._request.labels import RequestedMetric
from rankframe._request.question import Totals
from rankframe._request.types import Truth
from rankframe._tables import adapters, rules
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError
from rankframe.parts import _groups, _partitions
from rankframe.parts._groups import GROUP

#: What ``rf.parts.facts`` returns: a dict that JSON can hold.
Facts: TypeAlias = dict[str, Any]

_NAMES = ("users", "top_grade", "by", "groups")
_UNGRADED = "ungraded"  # counts of values, if the truth has no relevance, but may have grades


def facts_of(tables: Sequence[Table]) -> Facts:
    """Read the facts from a run and its truth, or a judged table."""
    lacking = _partitions.lacking_of(tables)
    possible = rules.candidates(tables[-1])
    names = [name for pair in possible.items() for name in rules.count_names(*pair)]
    seen = _partitions.seen_of(tables, users=True)
    counts = seen.filter(pl.col("metric").is_in(["users", *names]))
    plans = [_partitions.groups_of(tables[0], lacking)] if lacking else []
    counted, grades, *groups = pl.collect_all([counts, _partitions.top_grade_of(tables), *plans])
    grade = grades.item()
    grade = int(grade) if isinstance(grade, int) else grade  # True is an int
    return _written(dict(counted.iter_rows()), grade, groups)


def merged(several: Sequence[Facts]) -> Facts:
    """Make the facts of the whole from those of all parts."""
    by = several[0]["by"]
    for other in several:
        if other["by"] != by:
            msg = (
                f"facts: made for different by= columns, {by} and {other['by']}: use the same by= "
                "and truth= for all parts"
            )
            raise RankingDataError(msg)
    grades = [part["top_grade"] for part in several if part["top_grade"] is not None]
    numbers: Counter[str] = Counter()
    for part in several:
        numbers.update({"users": part["users"], **part.get(_UNGRADED, {})})
    return _written(dict(numbers), max(grades, default=None), map(groups_of, several if by else []))


def _written(numbers: dict[str, int], grade: float | None, groups: Any) -> Facts:
    """Write facts; ``numbers`` are those of the users, and of values that may be grades."""
    tables = list(groups)
    united = _groups.united(tables).drop(GROUP) if tables else pl.DataFrame()
    facts: Facts = {"users": numbers.pop("users"), "top_grade": grade}
    facts |= {"by": united.columns, "groups": _groups.as_text(united)}
    return facts | ({_UNGRADED: numbers} if numbers else {})


def checked(value: object) -> Facts:
    facts, kind = cast("Facts", value), adapters.kind(value)
    if isinstance(value, Mapping) and all(name in facts for name in _NAMES):
        return facts
    msg = f"facts are what rf.parts.facts or rf.parts.merge returned, not {kind}"
    raise TypeError(msg)


def groups_of(facts: Facts) -> pl.DataFrame:
    return _groups.from_text(facts["groups"])


# ------------------------------------------------------------------ a part that knows them


class Part(NamedTuple):
    """A part of the run, and what it knows of the whole."""

    frame: pl.DataFrame | pl.LazyFrame
    totals: Totals
    tables: list[Table]
    facts: Facts | None

    def checks(self, schema: Mapping[str, Any]) -> list[pl.LazyFrame]:
        """Check that the facts are those of the whole: return no rows, or raise."""
        if self.facts is None:
            return []
        watched: list[pl.LazyFrame] = []
        is_first = self.facts["users"] is None
        if not is_first:
            grades = _partitions.top_grade_of(self.tables)
            check = partial(_check_grade, greatest=self.facts["top_grade"], schema=schema)
            watched.append(grades.map_batches(check, schema=dict(schema)))
        if self.totals.groups is not None:
            columns = self.totals.groups.columns
            groups = _partitions.groups_of(self.tables[0], columns)
            other = groups.join(self.totals.groups.lazy(), on=columns, how="anti")
            check = partial(_check_groups, schema=schema, is_first=is_first)
            watched.append(other.map_batches(check, schema=dict(schema)))
        return watched


def first_groups(tables: Sequence[Table], lacking: Sequence[str]) -> Facts:
    """Make facts of the groups of a first batch alone, which later ones must not add to."""
    groups = _partitions.groups_of(tables[0], lacking).collect()
    return {"users": None, "top_grade": None, "by": [*lacking], "groups": _groups.as_text(groups)}


def part_of(
    frame: pl.DataFrame | pl.LazyFrame,
    truth: Truth | None,
    by: str | Sequence[str],
    settings: Settings,
    facts: Facts | None,
) -> Part:
    """Read a part, with its columns of ``by`` in the types of the whole."""
    tables = _partitions.tables_of(frame, truth, by, settings.columns)
    lacking = _partitions.lacking_of(tables)
    if facts is None:
        if lacking:
            msg = (
                f"by={keywords.group_names(by)!r}: the truth lacks {lacking[0]!r}, so a part must "
                "know the groups of all parts: pass facts=rf.parts.facts(run, truth=truth, by=…)"
            )
            raise ValueError(msg)
        return Part(frame, Totals(None, None), tables, None)
    facts = checked(facts)
    if facts["by"] != lacking:
        msg = (
            f"facts= were made for the columns {facts['by']}, but the truth of this call has no "
            f"{lacking}: make the facts with the same by= and truth="
        )
        raise ValueError(msg)
    if not lacking:
        return Part(frame, Totals(facts["top_grade"], None), tables, facts)
    frame, groups = _groups.in_common_types(frame, groups_of(facts))
    tables = _partitions.tables_of(frame, truth, by, settings.columns)
    return Part(frame, Totals(facts["top_grade"], groups), tables, facts)


def check_grades(plan: Values, facts: Facts | None) -> None:
    """Check that no column that is not read has grades in the whole truth."""
    if facts is not None:
        names = [*rules.candidates(plan.source.tables.both[-1])]
        rules.raise_if_counted_ungraded(facts.get(_UNGRADED, {}), names)


def check_needs(
    requested: Sequence[RequestedMetric], settings: Settings, facts: Facts | None
) -> None:
    """Check that a part knows the highest grade, if a metric reads it."""
    if facts is not None:
        return
    cure = "pass facts=rf.parts.facts(run, truth=truth)"
    for metric in requested:
        if settings.unjudged == "bounds" or top_grade_is_read(metric, settings):
            if metric.call is not None and "max_grade" in metric.call.options:
                options = {**metric.call.options, "max_grade": 4.0}
                label = metric.call._replace(options=options).label
                cure = f"name it, such as {label!r}, or {cure}"
            reads = "its bounds read" if settings.unjudged == "bounds" else "it reads"
            msg = (
                f"metric {metric.name!r}: {reads} the highest grade of the whole truth, which may "
                f"be in another part: {cure}"
            )
            raise ValueError(msg)


def top_grade_is_read(metric: RequestedMetric, settings: Settings) -> bool:
    return registry.reading_of(metric.reads, inputs=settings.inputs).top_grade


def _check_grade(grades: pl.DataFrame, *, greatest: float | None, schema: Any) -> pl.DataFrame:
    grade = grades.item() if grades.height else None
    is_new = grade is not None and (greatest is None or grade > greatest)
    problem = f"their highest grade is {greatest}, and this part has {grade}" if is_new else ""
    return _no_row(schema, problem)


def _check_groups(other: pl.DataFrame, *, schema: Any, is_first: bool) -> pl.DataFrame:
    row = rules.format_row(other.head(1)) if other.height else ""
    if row and is_first:
        msg = (
            f"run: {row} is in this batch and not in the first, so its misses there are not "
            "counted: give the first batch all groups, or pass them to the Meter in "
            "facts=rf.parts.facts(run, truth=truth, by=…)"
        )
        raise RankingDataError(msg)
    return _no_row(schema, f"they lack a group of this part, {row}" if row else "")


def _no_row(schema: Any, problem: str) -> pl.DataFrame:
    """Return no rows, or raise if the facts have a problem."""
    if problem:
        msg = f"facts=: {problem}: make the facts of the whole tables, or merge those of all parts"
        raise RankingDataError(msg)
    return pl.DataFrame(schema=schema)
