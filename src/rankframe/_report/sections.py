"""Put the numbers of a report in words and tables: the contents of a page."""

from __future__ import annotations

import polars as pl

from rankframe._comparison import numerals
from rankframe._report import card, checks, conventions, explorer, nouns, verdict
from rankframe._report import table as page_table
from rankframe._report.facts import Numbers
from rankframe._report.markup import Figure, Page, Section
from rankframe._report.tabular import Cell, Grid


def page_of(numbers: Numbers, title: str | None) -> Page:
    sections = [make(numbers) for make in (explorer.section, _over_k, _users, _made)]
    return Page(
        title=nouns.named(title) if title else _title(numbers),
        users=_header(numbers),
        note=numbers.call.note or "",
        nouns=numbers.nouns,
        card=card.card_of(numbers),
        table=page_table.table_of(numbers),
        sections=[section for section in sections if section is not None],
        footer=conventions.provenance(numbers),
    )


def _header(numbers: Numbers) -> str:
    """Count the users, and name the baseline that nobody named."""
    first = verdict.baseline_of(numbers) if numbers.pairs and numbers.trial.needed_by else None
    return page_table.say(numbers, "header", number=numbers.users, first=first)


def _title(numbers: Numbers) -> str:
    names = [verdict.text_of(name) for name in numbers.systems]
    if not numbers.pairs:
        return names[0]
    first, *rest = names
    what = numerals.listed(rest) if len(rest) <= 2 else f"{len(rest)} systems"
    return f"{what} against {first}"


def _over_k(numbers: Numbers) -> Section | None:
    """Show the changes at each cut-off of the systems that are described, or the means of one."""
    if numbers.cuts is None or numbers.over_k is None:
        return None
    ks = numbers.cuts["k"]
    kind = "over_k" if numbers.pairs and numbers.trial.paired else "over_k_means"
    text = page_table.say(numbers, kind, first=ks.min(), last=ks.max())
    figure = Figure("over-k", "", text, _ends_over_k(numbers, numbers.over_k))
    return Section("over-k", "Over k", [text], [figure], folded=True)


def _ends_over_k(numbers: Numbers, drawn: pl.DataFrame) -> dict[str, str]:
    """Write what each panel of a chart over k shows at the first and at the last k."""
    by, changes = numbers.call.by, numbers.pairs and numbers.trial.paired
    write = numerals.signed_percent if changes else numerals.number
    rows = drawn.rename({"metric": "label"}).join(numbers.values.cuts, on="label")
    if changes:
        rows = rows.filter(pl.col(by).is_in(numbers.shown))
    rows = rows.drop_nulls("mean").sort("metric", by, "k")
    ends = pl.col("mean").first().alias("first"), pl.col("mean").last()
    parts: dict[str, list[str]] = {}
    for name, system, *values in rows.group_by("metric", by, maintain_order=True).agg(ends).rows():
        of_system = f"{verdict.text_of(system)} {' to '.join(map(write, values))}"
        parts.setdefault(f"{name}@k: ", []).append(of_system)
    texts = {name: f" {numerals.listed(of)}." for name, of in parts.items()}
    return texts if len(texts) > 1 else {"": "".join(texts.values())}


def _users(numbers: Numbers) -> Section | None:
    if (block := page_table.users_of(numbers)) is None:
        return None
    title, text = numbers.nouns.write("{User} by {user}"), page_table.say(numbers, "users")
    return Section("users", title, [text], blocks=[block], folded=True)


def _made(numbers: Numbers) -> Section:
    """Show the checks that found a problem, and how the numbers are made."""
    section = conventions.conventions(numbers)
    number, problems = checks.number_of(numbers)
    passed = None if problems else ""
    text = page_table.say(
        numbers, "checks", number=number, problems=problems or None, passed=passed
    )
    grids = [_health_grid(numbers)] if problems else []
    return section._replace(text=[text], grids=[*grids, *section.grids], folded=True)


def _health_grid(numbers: Numbers) -> Grid:
    rows = [
        [
            Cell(checks.words(numbers, row["table"], row["what"])),
            Cell("" if row[numbers.call.by] is None else verdict.text_of(row[numbers.call.by])),
            Cell(
                numerals.number(row["count"]),
                "" if row["share"] is None else numerals.percent(row["share"]),
            ),
            Cell(nouns.named(row["example"]) if row["example"] else numerals.DASH, "", "text data"),
        ]
        for row in numbers.health.filter("problem").to_dicts()
    ]
    head = ["what", "system", "count", "example"]
    return Grid("Counts that are worth a look", head, rows, words=["system", "example"])
