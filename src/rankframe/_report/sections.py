"""Put the numbers of a report in words and tables, section by section: the contents of a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import polars as pl

from rankframe._comparison import notes, numerals, sentences
from rankframe._report import card, checks, conventions, explorer, facts, nouns, results, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Figure, Page, Section
from rankframe._report.tabular import Cell, Grid
from rankframe._request import keywords
from rankframe.plot import _colors

_UNTESTED = "Bold: the best mean, not tested."
_BOTH = "The same differences on {users} with a list from both"
_MANY = 6  # systems that fit beside each other
_MOST_ROWS = 40  # of a table on the page


def page_of(numbers: Numbers, title: str | None) -> Page:
    parts = (_systems, _cuts, _gained, _distribution, _segments, explorer.section, _health)
    sections = [make(numbers) for make in (*parts, conventions.conventions)]
    return Page(
        title=nouns.named(title) if title else _title(numbers),
        users=numbers.nouns.counted(numbers.users),
        note=numbers.call.note or "",
        nouns=numbers.nouns,
        card=card.card_of(numbers),
        sections=[section for section in sections if section is not None],
    )


def _title(numbers: Numbers) -> str:
    names = [verdict.text_of(name) for name in numbers.systems]
    if not numbers.pairs:
        return names[0]
    first, *rest = names
    what = numerals.listed(rest) if len(rest) <= 2 else f"{len(rest)} systems"
    return f"{what} against {first}"


def _system_names(numbers: Numbers) -> str:
    names = [verdict.text_of(name) for name in numbers.systems]
    return numerals.listed(names) if len(names) <= 3 else f"{len(names)} systems"


def _systems(numbers: Numbers) -> Section:
    """Show systems and metrics in one table, and the differences in another."""
    grids = _means_grids(numbers)
    text: list[str] = []
    confidence = numbers.trial.confidence
    sure = f"{100 * confidence:.10g}%"
    if numbers.compared is not None:
        below = f"below them the difference from {verdict.baseline_of(numbers)}"
        below_alpha = f"p\u00a0<\u00a0{keywords.alpha_of(confidence):.2g}"
        marks = f"▲ better, ▼ worse: shown at {below_alpha}; · undecided or open."
        text.append(
            f"Means with {sure} intervals; {below}. {marks} {_bold_words(numbers)}".rstrip()
        )
        grids.append(_differences_grid(numbers, numbers.compared, "All differences"))
        if numbers.served is not None:
            caption = numbers.nouns.write(_BOTH)
            grids.append(_differences_grid(numbers, numbers.served, caption))
    else:
        text.append(f"Means with {sure} intervals.")
    return Section("systems", "Systems", text, grids=grids)


def _bold_words(numbers: Numbers) -> str:
    """Write what is bold; nothing if no metric has a better direction."""
    if not numbers.bold:
        return ""
    tested = numbers.compared is not None and not sentences.untested(numbers.compared)
    if not _is_bold(numbers):
        which = numbers.trial.primary or "any metric"
        return f"No system is significantly worse than the best in {which}." if tested else ""
    return "Bold: the best, or not significantly worse than it." if tested else _UNTESTED


def _is_bold(numbers: Numbers) -> bool:
    """Return whether bold tells systems apart: it says nothing where every mean would be."""
    directed = [
        metric for metric in numbers.names if numbers.values.directions.get(metric) is not None
    ]
    return len(numbers.bold) < len(directed) * len(numbers.systems)


def _means_grids(numbers: Numbers) -> list[Grid]:
    noted = _noted(numbers, numbers.compared)
    rows = [
        [
            Cell(verdict.text_of(system), "baseline" if numbers.pairs and place == 0 else ""),
            *(_mean_cell(numbers, system, metric, noted) for metric in numbers.names),
        ]
        for place, system in enumerate(numbers.systems)
    ]
    below = _notes(numbers, numbers.compared)
    kind = "means" if len(rows) <= _MANY else ""
    head, users = ["system", *numbers.names], numbers.nouns.words["users"]
    return _in_two(Grid(f"Mean of each metric over {users}", head, rows, kind=kind, notes=below))


def _in_two(grid: Grid) -> list[Grid]:
    """Fold the systems after the first ones of many."""
    shown, rest = grid.rows[: _MANY + 1], grid.rows[_MANY + 1 :]
    caption = f"{grid.caption}: {numerals.counted(len(rest), 'more system')}"
    more = [grid._replace(caption=caption, rows=rest, folded=True, notes=())] if rest else []
    return [grid._replace(rows=shown), *more]


def _unsaid(table: pl.DataFrame) -> pl.Series:
    """Return the notes of a comparison without what the page says elsewhere."""
    return notes.without(results.unsaid(table), ["small_effect"])


def _notes(numbers: Numbers, table: pl.DataFrame | None) -> list[str]:
    """Write the notes of a comparison that the page does not say elsewhere."""
    if table is None:
        return []
    texts = notes.in_words(_unsaid(table), numbers.nouns)
    lines = results.lines_of_notes(table.with_columns(texts), [numbers.call.by])
    return [f"* {line}." for line in lines]


def _noted(numbers: Numbers, table: pl.DataFrame | None) -> set[tuple[object, str]]:
    """Return the systems and metrics that have such a note."""
    if table is None:
        return set()
    noted = table.with_columns(_unsaid(table)).drop_nulls("note")
    return {*noted.select(numbers.call.by, "metric").iter_rows()}


def _mean_cell(
    numbers: Numbers, system: object, metric: str, noted: Collection[tuple[object, str]]
) -> Cell:
    row = numbers.row(numbers.means, system, metric)
    if not row:
        return Cell(numerals.DASH)
    kind = "best" if (system, metric) in numbers.bold and _is_bold(numbers) else ""
    small = numerals.interval(row["ci_low"], row["ci_high"])
    mark = said = ends = ""
    if tested := numbers.row(numbers.compared, system, metric):
        said = verdict.said_of(tested, numbers)
        ends = numerals.interval(tested["ci_low"], tested["ci_high"], sign=True)
        star = " *" * ((system, metric) in noted)
        mark = f"{_mark(said)} {numerals.signed(tested['difference'])}{star}"
        kind = f"{kind} {_color(said)}"
    return Cell(numerals.number(row["mean"]), small, kind.strip(), mark, said, ends)


def _differences_grid(numbers: Numbers, table: pl.DataFrame, caption: str) -> Grid:
    rows: list[list[Cell]] = []
    many = len(numbers.systems) > _colors.MOST_COLORED
    noted = _noted(numbers, table)
    for metric in [numbers.decides] if many else numbers.names:
        for system in numbers.systems[1:]:
            row = numbers.row(table, system, metric)
            if not row:
                continue
            counts, won = [row[name] for name in ("higher", "equal", "lower")], numerals.DASH
            if counts[0] is not None:
                won = " / ".join(map(numerals.number, counts))
            cells = _tested_cells(numbers, row, " *" * ((system, metric) in noted))
            rows.append([Cell(metric, verdict.text_of(system)), *cells, Cell(won)])
    drawn = table.filter(metric=numbers.decides) if many else table
    caption = f"{caption} in {numbers.decides}" if many else caption
    head = ["metric", *_tested_heads(numbers, "system"), "higher / equal / lower"]
    return Grid(caption, head, rows, folded=True, notes=_notes(numbers, drawn))


def _tested_cells(numbers: Numbers, row: Mapping[str, Any], star: str = "") -> list[Cell]:
    """Write a difference, its interval and its verdict; users, both means, and p."""
    said = verdict.said_of(row, numbers)
    ends = numerals.interval(row["ci_low"], row["ci_high"], sign=True)
    if said == "undecided" and ends and not row["ci_low"] <= 0 <= row["ci_high"]:
        said = "undecided after correction"
    mark = f"{_mark(said)} {said}{star}"
    change = Cell(numerals.signed(row["difference"]), ends, _color(said), mark)
    counts = [Cell(numerals.number(row[name])) for name in ("users", "baseline_mean", "mean")]
    return [change, *counts, Cell(numerals.p_value(row["p_adjusted"]))]


def _tested_heads(numbers: Numbers, system: str) -> list[str]:
    users = numbers.nouns.words["users"]
    return ["difference", users, verdict.baseline_of(numbers), system, "p"]


def _cuts(numbers: Numbers) -> Section | None:
    if (cuts := numbers.cuts) is None:
        return None
    ks = cuts["k"].unique().sort().to_list()
    order = numbers.values.cuts["metric"].unique(maintain_order=True).to_list()
    names = [name for name in order if name in set(cuts["metric"])]
    by = numbers.call.by
    lookup = {(row[by], row["metric"], row["k"]): row["mean"] for row in cuts.to_dicts()}
    rows = [
        [
            Cell(f"{name}@k", verdict.text_of(system)),
            *(Cell(numerals.number(lookup.get((system, name, k)), 3)) for k in ks),
        ]
        for name in names
        for system in numbers.systems
    ]
    grid = Grid("Means at each k", ["metric", *(f"k = {k}" for k in ks)], rows, folded=True)
    figures: list[Figure] = []
    for place, name in enumerate(names):
        what = f"Mean {name}@k of {_system_names(numbers)}"
        alt = f"{what} over k = {ks[0]} to {ks[-1]}, with intervals."
        figures.append(Figure(f"cut-{place}", _lead_of(numbers, cuts, name), alt))
    text = ["Bands may overlap where a difference is shown."] if len(numbers.systems) > 1 else []
    return Section("over-k", "Over k", text, figures, [grid])


def _lead_of(numbers: Numbers, cuts: pl.DataFrame, name: str) -> str:
    """Write at how many k the mean of the chosen system is higher."""
    if not numbers.pairs:
        return f"{name}@k"
    by = numbers.call.by
    before, after = (
        cuts.filter(pl.col("metric") == name, pl.col(by) == system).sort("k")["mean"]
        for system in (numbers.trial.baseline, numbers.chosen)
    )
    higher, lower, number = (after > before).sum(), (after < before).sum(), len(after)
    baseline = verdict.baseline_of(numbers)
    where = f"above {baseline} at {higher} and below it at {lower} of {number} cut-offs"
    of_all = {higher: f"above {baseline} at every k", lower: f"below {baseline} at every k"}
    return f"{name}@k: {verdict.text_of(numbers.chosen)} is {of_all.get(number, where)}"


def _gained(numbers: Numbers) -> Section | None:
    """Show the differences in groups of users by their relevant items, in the deciding metric."""
    table = numbers.of_relevant
    if table is None:
        return None
    figures = [_segment_figure(numbers, facts.RELEVANT, "relevant")]
    grids = [_segment_grid(numbers, facts.RELEVANT, table)]
    text = [_tests_of(numbers, facts.RELEVANT, table)]
    return Section("gained", "Who gained", text, figures, grids)


def _mark(said: str) -> str:
    return _colors.mark_of(said) or "·"


def _color(said: str) -> str:
    """Return the class of a verdict's color: that of its first word, with a margin or without."""
    word = said.partition(",")[0]
    return word if word in ("better", "worse") else ""


def _distribution(numbers: Numbers) -> Section | None:
    if numbers.spread is None or numbers.user_metric is None:
        return None
    by = numbers.call.by
    rows_by_system = {row[by]: row for row in numbers.spread.to_dicts()}
    shares, users = ("p10", "p25", "p50", "p75", "p90"), numbers.nouns.words["users"]
    rows = [
        [
            *(Cell(verdict.text_of(system)), Cell(numerals.number(row["users"]))),
            Cell(numerals.percent(row["zero"])),
            *(Cell(numerals.number(row[name], 3)) for name in shares),
            Cell(numerals.number(row["mean"])),
        ]
        for system in numbers.systems
        if (row := rows_by_system.get(system)) is not None
    ]
    head = ["system", users, "exactly 0", "10%", "25%", "median", "75%", "90%", "mean"]
    grid = Grid(f"Percentiles of {numbers.user_metric} over {users}", head, rows)
    alt = f"How {numbers.user_metric} is distributed for {_system_names(numbers)}."
    zero = [f"{row[2].text} of {users} with {row[0].text}" for row in rows[:2]]
    has_zeros = any(row["zero"] for row in rows_by_system.values())
    whose = numerals.listed(zero) if has_zeros else f"no {numbers.nouns.user}"
    title = f"{numbers.user_metric} is 0 for {whose}"
    figure = Figure("distribution", title, alt)
    text = "Line: 5% to 95%; bar: 25% to 75%; gap: the median; at the right, the mean."
    if has_zeros:
        text += f" The box: the share of {users} at exactly 0."
    title = numbers.nouns.write("{User} by {user}")
    return Section("distribution", title, [text], [figure], _in_two(grid))


def _segments(numbers: Numbers) -> Section | None:
    if not numbers.segments:
        return None
    grids = [_segment_grid(numbers, name, table) for name, table in numbers.segments.items()]
    without = numbers.nouns.write("{Users} without a list")
    figures: list[Figure] = []
    for place, name in enumerate(numbers.segments):
        figures.append(_segment_figure(numbers, name, f"segment-{place}"))
        shown = verdict.name_of(numbers, name)
        alt = numbers.nouns.write("Share of {users} without a list by {name}.", name=shown)
        figures.append(Figure(f"segment-{place}-missed", without, alt))
    tables = numbers.segments.items() if numbers.pairs else ()
    of_tables = [_tests_of(numbers, name, table) for name, table in tables]
    return Section("segments", "Segments", of_tables, figures, grids)


def _segment_figure(numbers: Numbers, name: str, chart: str) -> Figure:
    """Describe the chart of a deciding metric by segment."""
    of = f"{numbers.decides} by {verdict.name_of(numbers, name)}"
    what = "Difference" if numbers.pairs else "Mean"
    title = f"{what} in {numbers.decides}, by {verdict.name_of(numbers, name)}"
    return Figure(chart, title, f"{of}; the table has the numbers.")


def _tests_of(numbers: Numbers, name: str, table: pl.DataFrame) -> str:
    """Write which test the verdicts of groups are of."""
    how = sentences.tested_in_words(numbers.trial, table, numbers.nouns)
    alone = "" if numbers.trial.test == "max_t" else "; intervals are not corrected"
    systems, groups = table[numbers.call.by].n_unique(), table[name].n_unique()
    of = f" ({systems} systems × {groups} groups)" if systems > 1 and not table.is_empty() else ""
    return f"{numbers.decides} by {verdict.name_of(numbers, name)}: {how}{of}{alone}."


def _segment_grid(numbers: Numbers, name: str, table: pl.DataFrame) -> Grid:
    by = numbers.call.by
    shown = [numbers.trial.baseline, *numbers.shown] if numbers.pairs else numbers.systems
    rows: list[list[Cell]] = []
    kept = [row for row in table.to_dicts() if row[by] in shown]
    places = {value: place for place, value in enumerate(dict.fromkeys(table[name]))}
    kept.sort(key=lambda row: (places[row[name]], shown.index(row[by])))  # as all tables have them
    for row in kept[:_MOST_ROWS]:
        label = verdict.text_of(row[name])
        if "difference" not in row:
            ends = numerals.interval(row["ci_low"], row["ci_high"])
            cells = [Cell(numerals.number(row["users"])), Cell(numerals.number(row["mean"]), ends)]
            rows.append([Cell(label, verdict.text_of(row[by])), *cells])
            continue
        system = verdict.text_of(row[by]) if len(numbers.shown) > 1 else ""
        rows.append([Cell(label, system), *_tested_cells(numbers, row)])
    shown_name, users = verdict.name_of(numbers, name), numbers.nouns.words["users"]
    head = [shown_name, users, "mean"]
    if numbers.pairs:
        system = "system" if len(numbers.shown) > 1 else verdict.text_of(numbers.chosen)
        head = [shown_name, *_tested_heads(numbers, system)]
    more = f", the first {_MOST_ROWS} of {len(kept)} rows" if len(kept) > _MOST_ROWS else ""
    return Grid(f"{numbers.decides} by {shown_name}{more}", head, rows)


def _health(numbers: Numbers) -> Section:
    """Show the counts that may do harm, and fold all others."""
    table, keys = numbers.health, ["table", "what"]
    number, problems = checks.number_of(numbers)
    text = f"No problem found in {number} checks."
    if problems:
        text = f"{problems} of {number} checks found what may do harm."
    is_found = pl.col("count").max().over(keys) > 0
    may_harm = checks.harms(numbers).any().over(keys)
    shown, rest = table.filter(is_found, may_harm), table.filter(is_found, ~may_harm)
    none = dict.fromkeys(checks.words(numbers, what) for what in table.remove(is_found)["what"])
    absent = [f"Checked and not found: {', '.join(none)}."] if none else []
    grids = [_health_grid(numbers, shown, "Counts that may do harm")] if problems else []
    others = _health_grid(numbers, rest, f"The {number} checks")
    grids.append(others._replace(folded=True, notes=absent))
    return Section("health", "Data health", [text], grids=grids)


def _health_grid(numbers: Numbers, table: pl.DataFrame, caption: str) -> Grid:
    rows = [
        [
            Cell(": ".join(checks.words(numbers, row[name]) for name in ("table", "what"))),
            Cell("" if row[numbers.call.by] is None else verdict.text_of(row[numbers.call.by])),
            Cell(
                numerals.number(row["count"]),
                "" if row["share"] is None else numerals.percent(row["share"]),
                "warn" * harms,
            ),
            Cell(nouns.named(row["example"]) if row["example"] else numerals.DASH, "", "text data"),
        ]
        for row, harms in zip(
            table.to_dicts(), table.select(checks.harms(numbers)).to_series(), strict=True
        )
    ]
    head = ["what", "system", "count", "example"]
    return Grid(caption, head, rows, words=["system", "example"])
