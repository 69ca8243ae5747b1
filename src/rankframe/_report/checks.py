"""Counts the checks of the data, and finds those that may do harm."""

from __future__ import annotations

import polars as pl

from rankframe._report import facts
from rankframe._report.facts import Numbers

#: Counts that are wrong if above 0, and counts that may do harm if they are large.
_WRONG = r"^(null_|invalid_|nonfinite_|duplicates|shared_ranks|user_ids|item_ids)"
_MAY_HARM = (
    r"^(missed_users|groups_without|short_lists|gaps|ties_at_the_cut|users_unknown|truth_in_history"
)


def number_of(numbers: Numbers) -> tuple[int, int]:
    """Count the checks of the data, and those that found what may do harm."""
    checks = numbers.health.filter(pl.col("problem").is_not_null())
    of_both = (checks, checks.filter(harms(numbers)))
    number, problems = (table.select("table", "what").n_unique() for table in of_both)
    return number, problems


def found(numbers: Numbers, said: tuple[str, ...]) -> list[tuple[str, float | None]]:
    """Name the checks that found what may do harm, and their greatest share, except those said."""
    harmful = numbers.health.filter(harms(numbers))
    shares = harmful.group_by("what", maintain_order=True).agg(pl.col("share").max())
    return [
        (words(numbers, what), share) for what, share in shares.rows() if not what.startswith(said)
    ]


def harms(numbers: Numbers) -> pl.Expr:
    """Return whether a problem is wrong in any number, or so large that it may do harm."""
    # without judged misses, an unjudged item was judged
    may_harm = f"{_MAY_HARM}{'|unjudged_at' * bool(numbers.unjudged)})"
    is_large = pl.col("what").str.contains(may_harm) & (pl.col("share") >= facts.MATTERS)
    is_wrong = pl.col("what").str.contains(_WRONG)
    return (pl.col("problem") & (is_large | is_wrong)).fill_null(value=False)


def words(numbers: Numbers, name: str) -> str:
    nouns = numbers.nouns.words
    return " ".join(nouns.get(word, word) for word in name.split("_"))
