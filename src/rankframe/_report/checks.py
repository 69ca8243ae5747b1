"""Counts the checks of the data, and names those that found a problem."""

from __future__ import annotations

import re

import polars as pl

from rankframe._comparison import notes, numerals
from rankframe._report import verdict
from rankframe._report.facts import Numbers


def number_of(numbers: Numbers) -> tuple[int, int]:
    """Count the checks of the data, and those that found a problem."""
    checks = numbers.health.filter(pl.col("problem").is_not_null())
    of_both = (checks, checks.filter("problem"))
    number, problems = (table.select("table", "what").n_unique() for table in of_both)
    return number, problems


def found(numbers: Numbers, said: tuple[str, ...]) -> list[str]:
    """Name the problems, the greatest first, with their share and the system that alone has it."""
    by = numbers.call.by
    groups = numbers.health.filter("problem").group_by("table", "what")
    problems = groups.agg(pl.col("share").max(), by)
    worst = problems.sort(-pl.col("share"), "table", "what", nulls_last=False)
    names: list[str] = []
    for table, what, share, systems in worst.rows():
        if what.startswith(said):
            continue
        shown = [] if share is None else [numerals.percent(share)]
        if len(systems) == 1 and len(numbers.systems) > 1 and systems[0] is not None:
            shown.append(verdict.text_of(systems[0]))
        names.append(words(numbers, table, what) + (f" ({' of '.join(shown)})" if shown else ""))
    return names


def words(numbers: Numbers, table: str, what: str) -> str:
    """Name what a check counts."""
    kind = re.sub(r"_at_\d+$", "", what)
    template = notes.templates("checks").get(kind, what.replace("_", " "))
    return numbers.nouns.write(template, table=table)
