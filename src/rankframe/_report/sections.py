"""Put the numbers of a report in words and tables, section by section: the contents of a page."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

import polars as pl

from rankframe._comparison import sentences, trials
from rankframe._report import facts, markup, results
from rankframe._report.facts import Numbers, Person
from rankframe._report.markup import Cell, Figure, Grid, Group, Lists, Page, Section, Verdict
from rankframe._request.keywords import Users
from rankframe._tables import column_roles
from rankframe.plot import _marks

_USERS: Mapping[Users, str] = {
    "truth": "every user with an item of grade > 0; a user without a list counts as 0",
    "judged": "every user with a row in the truth; a user without a list counts as 0",
    "both": "users with a list and a row in the truth",
    "served": "users with a row in the truth and a list of every system",
    "run": "users with a list",
    "all": "users with a list or a row in the truth",
}
_MARKS = {"better": "▲", "worse": "▼", "higher": "▲", "lower": "▼"}
_FEW_USERS = 30
_MOST_ROWS = 40  # of a table on the page
_PAIR = 2
_NO_CHANGE = ("no difference seen", "unchanged")  # readings that claim nothing
_MANY = 6  # systems that fit beside each other
#: Counts that are wrong if above 0, and counts that may do harm if they are large.
_WRONG = ("null_", "invalid_", "nonfinite_", "duplicates", "shared_ranks", "user_ids", "item_ids")
_MAY_HARM = (
    *("missed_users", "groups_without", "short_lists", "gaps", "ties_at_the_cut"),
    "users_unknown",
)


def page_of(numbers: Numbers, charts: Sequence[str], title: str | None) -> Page:
    parts = [
        _systems(numbers),
        _cuts(numbers, charts),
        _gained(numbers, charts),
        _distribution(numbers, charts),
        _segments(numbers, charts),
        _lists(numbers),
        _health(numbers),
        _conventions(numbers),
    ]
    return Page(
        title=title or _title(numbers),
        subtitle=_subtitle(numbers),
        verdicts=_verdicts(numbers),
        warnings=_warnings(numbers),
        sections=[section for section in parts if section is not None],
    )


def verdict_of(page: Page) -> str:
    """Write the verdicts as lines of text."""
    lines = [
        line
        for verdict in page.verdicts
        for line in (verdict.lead, verdict.served, *verdict.text)
        if line
    ]
    return "\n".join(lines)


def _title(numbers: Numbers) -> str:
    names = [_text(name) for name in numbers.systems]
    if not numbers.pairs:
        return names[0] if len(names) == 1 else f"{len(names)} systems"
    first, *rest = names
    what = markup.listed_words(rest) if len(rest) <= 2 else f"{len(rest)} systems"
    return f"{what} against {first}"


def _subtitle(numbers: Numbers) -> str:
    rows = {row["table"]: row["rows"] for row in numbers.sources.to_dicts()}
    parts = [markup.counted(numbers.users, "user")]
    parts += [f"{markup.counted(count, 'row')} in the {name}" for name, count in rows.items()]
    if numbers.call.settings.relevant_at is not None:
        parts.append(f"relevant: grade ≥ {numbers.call.settings.relevant_at:g}")
    return " · ".join(parts)


# ------------------------------------------------------------------ the verdict


def _read(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Call higher and lower values better or worse if the metric has a better direction."""
    verdict = row["verdict"] or "no test"
    direction = numbers.directions.get(row["metric"])
    if direction is None or verdict not in ("higher", "lower"):
        return verdict
    return "better" if (verdict == "higher") is direction else "worse"


def _row(table: pl.DataFrame, numbers: Numbers, system: object, metric: str) -> dict[str, Any]:
    by = numbers.call.by
    of_system = pl.col(by) == pl.lit(system, dtype=table.schema[by])
    rows = table.filter(of_system & (pl.col("metric") == metric)).to_dicts()
    return rows[0] if rows else {}


def _verdicts(numbers: Numbers) -> list[Verdict]:
    if not numbers.pairs:
        return [_best(numbers)]
    summary = [_summary(numbers)] if _several(numbers) else []
    return summary + [_verdict(numbers, system) for system in numbers.shown]


def _several(numbers: Numbers) -> bool:
    return len(numbers.systems) > _PAIR


def _best(numbers: Numbers) -> Verdict:
    """Report which mean is best if nothing is compared."""
    name, metric = numbers.systems[0], numbers.decides
    row = _row(numbers.means, numbers, name, metric)
    ends = markup.interval(row["ci_low"], row["ci_high"])
    mean = f"{markup.number(row['mean'])}{f' ({ends})' if ends else ''}"
    if len(numbers.systems) == 1:
        alone = "No comparison: there is only one system."
        return Verdict("open", f"{_text(name)} has a mean {metric} of {mean}.", [alone])
    which = _extreme(numbers)
    lead = f"{_text(name)} has the {which} mean {metric}, {mean}."
    if which is None:
        lead = f"{len(numbers.systems)} systems, not compared."
    return Verdict("open", lead, ["No test: name a system in baseline= to compare the others."])


def _summary(numbers: Numbers) -> Verdict:
    """Count the verdicts of many systems."""
    assert numbers.compared is not None
    rows = numbers.compared.filter(pl.col("metric") == numbers.decides).to_dicts()
    counts: dict[str, int] = {}
    for row in rows:
        counts[_read(row, numbers)] = counts.get(_read(row, numbers), 0) + 1
    order = (
        "better",
        "higher",
        "not worse",
        "equivalent",
        "undecided",
        "worse",
        "lower",
        "no test",
    )
    words = [f"{counts[verdict]} {verdict}" for verdict in order if verdict in counts]
    lead = (
        f"Of {len(rows)} systems against {_text(numbers.call.baseline)} in {numbers.decides}: "
        f"{markup.listed_words(words)}."
    )
    corrected = [f"{why}." for why in [_corrected(numbers)] if why]
    if len(numbers.shown) == len(numbers.systems) - 1:
        return Verdict("open", lead, corrected)
    which = _extreme(numbers)
    why = f"has the {which} mean of them" if which else "is the first of them by name"
    text = f"{_text(numbers.chosen)} {why}; the details below are for this system."
    return Verdict("open", lead, [text, *corrected])


def _corrected(numbers: Numbers) -> str:
    """Write for how many comparisons the p of the verdict is corrected; intervals are not."""
    assert numbers.compared is not None
    call, family = numbers.call, sentences.tests_of(numbers.compared, numbers.call.primary)
    tests = numbers.compared["p_value"].count()
    if tests < 2 or not family:
        return ""
    if call.correction is None:
        return f"p is without correction for {tests} comparisons"
    if family < 2:
        return (
            f"{call.primary} is the primary metric: its p is not corrected for the others, which "
            "count only where it shows a difference"
        )
    alone = "the interval is of this comparison alone"
    if _several(numbers):
        alone = "each interval is of its comparison alone"
    if call.test in trials.JOINT_TESTS:
        alone = "" if call.test in trials.SIMULTANEOUS else f"; {alone}"
        return f"p is corrected over all pairs{alone}"
    of_primary = "" if call.primary is None else f" in {call.primary}, the primary metric"
    words = f"{sentences.CORRECTIONS[call.correction]} for {family} comparisons{of_primary}"
    return f"p is after {words}; {alone}"


def _is_corrected(numbers: Numbers) -> bool:
    assert numbers.compared is not None
    family = sentences.tests_of(numbers.compared, numbers.call.primary)
    return numbers.call.correction is not None and family > 1


def _extreme(numbers: Numbers) -> str | None:
    """Return the better end of the metric, if there is one."""
    direction = numbers.directions.get(numbers.decides)
    return None if direction is None else "highest" if direction else "lowest"


def _verdict(numbers: Numbers, system: object) -> Verdict:
    """Report how a system compares with the baseline, also on the users whom both serve."""
    assert numbers.compared is not None
    row = _row(numbers.compared, numbers, system, numbers.decides)
    said = _read(row, numbers)
    kind = said if said in ("better", "worse") else "open"
    parts = [f"{_claim(row, numbers)}: {_difference(row, numbers, share=True)}."]
    served, turned = _served(numbers, system, said)
    corrected = "" if _several(numbers) else _corrected(numbers)
    lines = [f"{line}." for line in [corrected] if line]
    lines += [*_wins(row), *_other_verdicts(numbers, system), *_by_relevant(numbers, system, said)]
    if served and not turned:
        lines = [served, *lines]
    return Verdict(kind, " ".join(parts), lines, served if turned else "")


def _claim(row: Mapping[str, Any], numbers: Numbers) -> str:
    """Write the verdict as a sentence, without its numbers."""
    system, baseline = _text(row[numbers.call.by]), _text(row["baseline"])
    metric = row["metric"]
    return {
        "better": f"{system} is better than {baseline} in {metric}",
        "worse": f"{system} is worse than {baseline} in {metric}",
        "higher": f"{system} has a higher {metric} than {baseline}",
        "lower": f"{system} has a lower {metric} than {baseline}",
        "equivalent": f"{system} is equivalent to {baseline} in {metric}, within the margin",
        "not worse": f"{system} is not worse than {baseline} in {metric} by the margin",
        "undecided": f"No difference between {system} and {baseline} is shown in {metric}",
        "no test": f"{system} and {baseline} are not tested in {metric}",
    }[_read(row, numbers)]


def _difference(row: Mapping[str, Any], numbers: Numbers, *, share: bool = False) -> str:
    base = row["baseline_mean"]
    of_base = ""
    if share and base and row["difference"] is not None:
        part = row["difference"] / abs(base)
        of_base = f" ({'+' if part > 0 else ''}{markup.percent(part)})"
    parts = [f"{markup.signed(row['difference'])}{of_base}"]
    if ends := markup.interval(row["ci_low"], row["ci_high"], sign=True):
        parts.append(f"{100 * numbers.call.confidence:.10g}% interval {ends}")
    if row["p_adjusted"] is not None:
        p = "corrected p" if _is_corrected(numbers) else "p"
        overruled = row["p_value"] < 1 - numbers.call.confidence <= row["p_adjusted"]
        alone = f" ({markup.p_value(row['p_value'])} without correction)" if overruled else ""
        parts.append(f"{p} {markup.p_value(row['p_adjusted'])}{alone}".replace("p <", "p < "))
    elif row["note"]:
        parts.append(row["note"].partition("; primary metric: ")[0])
    return ", ".join(parts)


def _wins(row: Mapping[str, Any]) -> list[str]:
    if row["wins"] is None:
        return []
    return [
        (
            f"Of {markup.counted(row['users'], 'user')}, its value is higher for {row['wins']:,}, "
            f"lower for {row['losses']:,} and equal for {row['ties']:,}."
        )
    ]


def _served(numbers: Numbers, system: object, said: str) -> tuple[str, bool]:
    """Compare on the users whom both serve, and return whether this changes the verdict."""
    if numbers.served is None or numbers.compared is None:
        return "", False
    row = _row(numbers.served, numbers, system, numbers.decides)
    whole = _row(numbers.compared, numbers, system, numbers.decides)
    if not row or row["users"] == whole["users"]:
        return "", False
    verdict = _read(row, numbers)
    turned = verdict != said
    few = row["users"] > (1 - facts.MATTERS) * whole["users"]
    if few and not turned:
        return "", False
    also = "" if turned else "also "
    word = {
        "undecided": "no difference is shown",
        "no test": "there is no test",
        "equivalent": f"it is {also}equivalent",
        "not worse": f"it is {also}not worse by the margin",
    }.get(verdict, f"it is {also}{verdict}")
    users = markup.counted(row["users"], "user")
    return f"On the {users} whom both serve, {word}: {_difference(row, numbers)}.", turned


def _other_verdicts(numbers: Numbers, system: object) -> list[str]:
    """List the verdicts in the other metrics."""
    assert numbers.compared is not None
    metrics_by_verdict: dict[str, list[str]] = {}
    for metric in numbers.names:
        row = _row(numbers.compared, numbers, system, metric)
        if metric != numbers.decides and row:
            metrics_by_verdict.setdefault(_read(row, numbers), []).append(metric)
    if not metrics_by_verdict:
        return []
    words = [
        f"{verdict} in {markup.listed_words(metrics)}"
        for verdict, metrics in metrics_by_verdict.items()
    ]
    return [f"By the other metrics: {'; '.join(words)}."]


def _by_relevant(numbers: Numbers, system: object, said: str) -> list[str]:
    """Report the reading of ``diagnose``, whose tests are corrected over two changes only."""
    if numbers.diagnosis is None:
        return []
    by = numbers.call.by
    of_system = pl.col(by) == pl.lit(system, dtype=numbers.diagnosis.schema[by])
    overall = numbers.diagnosis.filter(of_system & pl.col("relevant_low").is_null())
    reading = next(iter(overall["reading"].to_list()[::-1]), None)
    k = numbers.call.k
    if not reading:
        return []
    alone = ""
    if said == "undecided" and _is_corrected(numbers) and not reading.startswith(_NO_CHANGE):
        alone = ", by tests that are not corrected for the comparisons above"
    return [f"By precision@{k} and recall@{k} together{alone}: {reading}."]


# ------------------------------------------------------------------ warnings


def _warnings(numbers: Numbers) -> list[str]:
    """Report what may mislead: users without a list, few users, undefined values."""
    lines: list[str] = []
    users = numbers.users
    lacking = [
        (name, numbers.missed.get(name, 0))
        for name in numbers.systems
        if users and numbers.missed.get(name, 0) >= facts.MATTERS * users
    ]
    zero = ""
    if (numbers.call.settings.users or "truth") in ("truth", "judged"):
        zero = " Each counts as 0 in the means."
    for name, missed in lacking[:4]:
        lines.append(
            f"{_text(name)} has no list for {missed:,} of {markup.counted(users, 'user')} "
            f"({markup.percent(missed / users)}).{zero}"
        )
    if len(lacking) > 4:
        rest = markup.counted(len(lacking) - 4, "more system")
        lines.append(f"{rest} without a list for at least 5% of the users: see Data health.")
    if users < _FEW_USERS:
        lines.append(f"Only {markup.counted(users, 'user')}: intervals and tests are rough.")
    undefined = numbers.means.filter(
        pl.col("undefined") >= facts.MATTERS * pl.col("users"), pl.col("undefined") > 0
    )
    most = undefined.group_by("metric", maintain_order=True).agg(pl.col("undefined").max())
    for name, number_of_users in most.rows():
        users_left = markup.counted(number_of_users, "user")
        lines.append(
            f"{name} is undefined for up to {users_left} per system; its mean leaves them out."
        )
    return lines


# ------------------------------------------------------------------ sections


def _systems(numbers: Numbers) -> Section:
    """Show systems and metrics in one table, and the differences in another."""
    grids = [_means_grid(numbers)]
    text: list[str] = []
    call = numbers.call
    sure = f"{100 * call.confidence:.10g}%"
    if numbers.compared is not None:
        alpha = f"{1 - call.confidence:.2g}"
        text.append(
            f"Means with {sure} intervals; below them the difference from "
            f"{_text(call.baseline)}. ▲ ▼: shown at p < {alpha} ({_tested(numbers)}); "
            f"·: undecided. {_bold_words(numbers)}"
        )
        grids.append(_differences_grid(numbers, numbers.compared, "All differences"))
        if numbers.served is not None:
            caption = "The same differences on the users whom both serve"
            grids.append(_differences_grid(numbers, numbers.served, caption))
    else:
        bold = _bold_words(numbers) if len(numbers.systems) > 1 else ""
        text.append(f"Means with {sure} intervals. {bold}".rstrip())
    return Section("systems", "Systems", text, grids=grids)


def _tested(numbers: Numbers) -> str:
    assert numbers.compared is not None
    call = numbers.call
    return sentences.tested_in_words(call.test, call.correction, numbers.compared, call.primary)


def _bold_words(numbers: Numbers) -> str:
    """Write what is bold; nothing if no metric has a better direction."""
    if not numbers.bold:
        return ""
    if numbers.compared is None or sentences.untested(numbers.compared):
        return "Bold: the best mean, not tested."
    return "Bold: not significantly worse than the best."


def _means_grid(numbers: Numbers) -> Grid:
    compared, by = numbers.compared, numbers.call.by
    noted: set[tuple[object, str]] = set() if compared is None else _noted(compared, by)
    rows = [
        [
            Cell(_text(system), "baseline" if numbers.pairs and place == 0 else ""),
            *(_mean_cell(numbers, system, metric, noted) for metric in numbers.names),
        ]
        for place, system in enumerate(numbers.systems)
    ]
    notes = [] if compared is None else _notes(numbers, compared)
    return Grid("Mean of each metric over users", ["system", *numbers.names], rows, notes=notes)


def _notes(numbers: Numbers, table: pl.DataFrame) -> list[str]:
    """Write the notes of a comparison that the page does not say elsewhere."""
    lines = results.lines_of_notes(table.with_columns(results.unsaid(table)), [numbers.call.by])
    return [f"* {line}." for line in lines]


def _noted(table: pl.DataFrame, by: str) -> set[tuple[object, str]]:
    """Return the systems and metrics that have such a note."""
    noted = table.with_columns(results.unsaid(table)).drop_nulls("note")
    return {*noted.select(by, "metric").iter_rows()}


def _mean_cell(
    numbers: Numbers, system: object, metric: str, noted: Collection[tuple[object, str]]
) -> Cell:
    row = _row(numbers.means, numbers, system, metric)
    if not row:
        return Cell(markup.DASH)
    kind = "best" if (system, metric) in numbers.bold else ""
    small = markup.interval(row["ci_low"], row["ci_high"])
    mark = ""
    if numbers.compared is not None and system != numbers.call.baseline:
        tested = _row(numbers.compared, numbers, system, metric)
        if tested:
            said = _read(tested, numbers)
            star = " *" * ((system, metric) in noted)
            mark = f"{_MARKS.get(said, '·')} {markup.signed(tested['difference'])}{star}"
            kind = f"{kind} {said}" if said in ("better", "worse") else kind
    text = markup.number(row["mean"])
    return Cell(text, small, kind.strip(), mark)


def _differences_grid(numbers: Numbers, table: pl.DataFrame, caption: str) -> Grid:
    rows: list[list[Cell]] = []
    many = _marks.are_many([*map(_text, numbers.systems)])
    noted = _noted(table, numbers.call.by)
    for metric in [numbers.decides] if many else numbers.names:
        for system in numbers.systems[1:]:
            row = _row(table, numbers, system, metric)
            if not row:
                continue
            said = _read(row, numbers)
            counts = [row[name] for name in ("wins", "ties", "losses")]
            won = " / ".join(map(markup.number, counts)) if counts[0] is not None else markup.DASH
            rows.append(
                [
                    Cell(metric, _text(system)),
                    Cell(markup.number(row["users"])),
                    Cell(markup.number(row["baseline_mean"])),
                    Cell(markup.number(row["mean"])),
                    Cell(
                        markup.signed(row["difference"]),
                        markup.interval(row["ci_low"], row["ci_high"], sign=True),
                    ),
                    Cell(markup.p_value(row["p_adjusted"])),
                    Cell(won),
                    Cell(
                        f"{_MARKS.get(said, '·')} {said}" + " *" * ((system, metric) in noted),
                        "",
                        said,
                    ),
                ]
            )
    drawn = table.filter(metric=numbers.decides) if many else table
    caption = f"{caption} in {numbers.decides}" if many else caption
    head = ["metric", "users", _text(numbers.call.baseline), "system", "difference", "p"]
    head += ["higher / equal / lower", "verdict"]
    return Grid(caption, head, rows, folded=True, notes=_notes(numbers, drawn))


def _cuts(numbers: Numbers, charts: Sequence[str]) -> Section | None:
    if numbers.cuts is None:
        return None
    cuts = numbers.cuts
    ks = cuts["k"].unique().sort().to_list()
    order = numbers.values.cuts["metric"].unique(maintain_order=True).to_list()
    names = [name for name in order if name in set(cuts["metric"])]
    by = numbers.call.by
    lookup = {(row[by], row["metric"], row["k"]): row["mean"] for row in cuts.to_dicts()}
    rows = [
        [
            Cell(f"{name}@k", _text(system)),
            *(Cell(markup.number(lookup.get((system, name, k)), 3)) for k in ks),
        ]
        for name in names
        for system in numbers.systems
    ]
    grid = Grid("Means at each k", ["metric", *(f"k = {k}" for k in ks)], rows, folded=True)
    figures: list[Figure] = []
    for place, name in enumerate(names):
        alt = (
            f"Mean {name}@k of {_system_names(numbers)} over k = {ks[0]} to {ks[-1]}, "
            "with intervals."
        )
        figures += _figures(charts, f"cut-{place}", alt)
    text = ["Overlapping bands are not a test: the table of differences has the tests."]
    if not numbers.pairs:
        text = ["Overlapping bands are not a test."] if len(numbers.systems) > 1 else []
    return Section(
        "over-k",
        "Over k",
        text,
        figures,
        [grid],
        single=_marks.are_many([*map(_text, numbers.systems)]),
    )


def _gained(numbers: Numbers, charts: Sequence[str]) -> Section | None:
    if not numbers.pairs or numbers.diagnosis is None:
        return None
    table, k, by = numbers.diagnosis, numbers.call.k, numbers.call.by
    rows: list[list[Cell]] = []
    for row in table.to_dicts():
        low, high = row["relevant_low"], row["relevant_high"]
        users = "all users" if low is None else _range(low, high)
        if row["reading"] is not None and row["reading"].startswith(trials.NO_LIST):
            users = "users without a list"
        if (low is None) and row.get("reading") is None:
            continue
        rows.append(
            [
                Cell(users, _text(row[by]) if len(numbers.shown) > 1 else ""),
                Cell(markup.number(row["users"])),
                Cell(markup.signed(row["hits_change"], 3)),
                Cell(markup.signed(row["precision_change"])),
                Cell(markup.signed(row["recall_change"])),
                Cell(row["reading"] or markup.DASH, "", "text"),
            ]
        )
    head = ["relevant items of a user", "users", "hits", f"precision@{k}", f"recall@{k}"]
    grid = Grid(
        f"Mean change from {_text(numbers.call.baseline)}",
        [*head, "reading"],
        rows,
        words=["reading"],
    )
    alt = (
        f"Change of precision@{k} and recall@{k} from {_text(numbers.call.baseline)} user by "
        "user, over the number of relevant items of the user; the table has the means."
    )
    text = ["Users by the number of their relevant items. Each row is tested on its own."]
    return Section("gained", "Who gained", text, _figures(charts, "change", alt), [grid])


def _range(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _distribution(numbers: Numbers, charts: Sequence[str]) -> Section | None:
    if numbers.spread is None or numbers.user_metric is None:
        return None
    by = numbers.call.by
    rows_by_system = {row[by]: row for row in numbers.spread.to_dicts()}
    shares = ("p10", "p25", "p50", "p75", "p90")
    rows = [
        [
            Cell(_text(system)),
            Cell(markup.number(row["users"])),
            Cell(markup.percent(row["zero"])),
            *(Cell(markup.number(row[name], 3)) for name in shares),
            Cell(markup.number(row["mean"])),
        ]
        for system in numbers.systems
        if (row := rows_by_system.get(system)) is not None
    ]
    head = ["system", "users", "exactly 0", "10%", "25%", "median", "75%", "90%", "mean"]
    grid = Grid(f"{numbers.user_metric}: users below each value", head, rows)
    alt = f"How {numbers.user_metric} is distributed over users, for {_system_names(numbers)}."
    figures = _figures(charts, "distribution", alt)
    return Section("distribution", "User by user", (), figures, [grid])


def _segments(numbers: Numbers, charts: Sequence[str]) -> Section | None:
    if not numbers.segments:
        return None
    grids: list[Grid] = []
    figures: list[Figure] = []
    for place, (name, table) in enumerate(numbers.segments.items()):
        grids.append(_segment_grid(numbers, name, table))
        alt = f"{numbers.decides} by {name}; the table has the numbers."
        figures += _figures(charts, f"segment-{place}", alt)
    families = [_family(numbers, name, table) for name, table in numbers.segments.items()]
    text = " ".join([f"{numbers.decides} by segment.", *filter(None, families)])
    return Section("segments", "Segments", [text], figures, grids)


def _family(numbers: Numbers, name: str, table: pl.DataFrame) -> str:
    """Write over which comparisons the p of a table of segments is corrected."""
    call = numbers.call
    tests = table["p_value"].count() if "p_value" in table.columns else 0
    if tests < 2:
        return ""
    of_table = f"By {name}, p" if len(numbers.segments) > 1 else "p"
    if call.correction is None:
        return f"{of_table} is without correction for {tests} comparisons."
    if call.test in trials.JOINT_TESTS:
        return f"{of_table} is corrected over all pairs of each segment."
    systems, segments = table[call.by].n_unique(), table[name].n_unique()
    family = f"{markup.counted(systems, 'system')} × {markup.counted(segments, 'segment')}"
    of_all = f"all {tests} comparisons: {family}"
    if tests < systems * segments:
        of_all = f"{tests} comparisons, those with a test of {family}"
    return f"{of_table} is after {sentences.CORRECTIONS[call.correction]} for {of_all}."


def _segment_grid(numbers: Numbers, name: str, table: pl.DataFrame) -> Grid:
    by = numbers.call.by
    shown = [numbers.call.baseline, *numbers.shown] if numbers.pairs else numbers.systems
    rows: list[list[Cell]] = []
    kept = [row for row in table.to_dicts() if row[by] in shown]
    for row in kept[:_MOST_ROWS]:
        label = _text(row[name])
        if "difference" not in row:
            cells = [
                Cell(label, _text(row[by])),
                Cell(markup.number(row["users"])),
                Cell(markup.number(row["mean"]), markup.interval(row["ci_low"], row["ci_high"])),
            ]
            rows.append(cells)
            continue
        said = _read(row, numbers)
        ends = markup.interval(row["ci_low"], row["ci_high"], sign=True)
        rows.append(
            [
                Cell(label, _text(row[by]) if len(numbers.shown) > 1 else ""),
                Cell(markup.number(row["users"])),
                Cell(markup.number(row["baseline_mean"])),
                Cell(markup.number(row["mean"])),
                Cell(markup.signed(row["difference"]), ends),
                Cell(markup.p_value(row["p_adjusted"])),
                Cell(f"{_MARKS.get(said, '·')} {said}", "", said),
            ]
        )
    head = [name, "users", "mean"]
    if numbers.pairs:
        baseline = _text(numbers.call.baseline)
        system = "system" if len(numbers.shown) > 1 else _text(numbers.chosen)
        head = [name, "users", baseline, system, "difference", "p", "verdict"]
    more = f", the first {_MOST_ROWS} of {len(kept)} rows" if len(kept) > _MOST_ROWS else ""
    return Grid(f"{numbers.decides} by {name}{more}", head, rows)


def _lists(numbers: Numbers) -> Section | None:
    people = numbers.people
    if people is None or not (people.lost or people.gained):
        return None
    before, after = _text(numbers.call.baseline), _text(numbers.chosen)
    metric = numbers.user_metric
    text = [
        (
            f"Users whom both {before} and {after} serve, with the greatest loss and gain in "
            f"{metric}. Colored: relevant; ★: its grade; ▲ ▼: ranks moved from the other list; "
            "new, out: in only one of the two lists."
        ),
        (
            f"Of {markup.counted(people.losers + people.winners + people.same, 'user')} whom both "
            f"serve, {people.losers:,} lost, {people.winners:,} gained and {people.same:,} have "
            f"the same {metric}. {markup.counted(people.missed, 'more user')} without a list of "
            "one or both."
        ),
    ]
    groups = [
        Group(
            f"{verb} most with {after}", [_lists_of_person(numbers, person) for person in persons]
        )
        for verb, persons in (("Lost", people.lost), ("Gained", people.gained))
        if persons
    ]
    return Section("lists", "Lists side by side", text, groups=groups)


def _lists_of_person(numbers: Numbers, person: Person) -> Lists:
    before, after = _text(numbers.call.baseline), _text(numbers.chosen)
    rows = [
        [
            Cell(f"{row['rank']}"),
            _item_cell(row, "before", person),
            _item_cell(row, "after", person),
        ]
        for row in person.rows
    ]
    user = _text(person.user)
    return Lists(
        summary=f"user {user}: {markup.number(person.before, 3)} → "
        f"{markup.number(person.after, 3)}",
        change=f"({markup.signed(person.after - person.before, 3)})",
        kind="better" if person.gain > 0 else "worse",
        note=f"{markup.counted(person.relevant, 'relevant item')}, "
        f"{person.in_neither:,} in neither list",
        grid=Grid(f"First items of user {user}", ["", before, after], rows, kind="lists"),
    )


def _item_cell(row: Mapping[str, Any], side: str, person: Person) -> Cell:
    """Write an item with its grade, if it is relevant, and its rank in the other list."""
    item = row[side]
    if item is None:
        return Cell(markup.DASH)
    new = side == "after"
    grade = row["grade" if new else "before_grade"]
    hit = grade is not None and grade > 0 and grade >= person.relevant_at
    marks = [f"★{grade:g}"] if grade is not None and grade > 0 else []
    moved = row["moved"]
    if new:
        marks += ["new"] if moved is None else []
        marks += [f"▲{moved}" if moved > 0 else f"▼{-moved}"] if moved else []
    elif item not in person.kept:
        marks.append("out")
    texts = [f"{side}_{name}" for name in ("title", "name")]
    texts += [name for name in row if name.startswith(f"{side}_") and name != "before_grade"]
    title = next((row[name] for name in texts if row.get(name) is not None), None)
    return Cell(_text(item) if title is None else title, " ".join(marks), "hit" if hit else "")


def _health(numbers: Numbers) -> Section:
    """Show the counts of each system, and list the problems that were checked and not found."""
    table, by = numbers.health, numbers.call.by
    zero = table.group_by("table", "what", maintain_order=True).agg(pl.col("count").max() == 0)
    none = zero.filter(pl.col("count"))
    counts = table.join(none, on=["table", "what"], how="anti", maintain_order="left")
    grids: list[Grid] = []
    split = counts.filter(pl.col(by).is_not_null())
    if not split.is_empty():
        grids.append(_health_by_system(numbers, split))
    whole = counts.filter(pl.col(by).is_null())
    if not whole.is_empty():
        rows = [
            [
                Cell(f"{row['table']}: {_words(row['what'])}"),
                Cell(markup.number(row["count"]), *_share_of(row)),
                Cell(row["example"] or markup.DASH, "", "text"),
            ]
            for row in whole.to_dicts()
        ]
        grids.append(Grid("All systems", ["what", "count", "example"], rows, words=["example"]))
    names = dict.fromkeys(_words(name) for name in none["what"])
    text = [f"Checked and not found: {', '.join(names)}."] if names else []
    return Section("health", "Data health", text, grids=grids)


def _health_by_system(numbers: Numbers, table: pl.DataFrame) -> Grid:
    """Put systems in columns, or in rows if there are many."""
    by = numbers.call.by
    rows_by_key = {(row["table"], row["what"], row[by]): row for row in table.to_dicts()}
    whats = [*dict.fromkeys((table_name, what) for table_name, what, _ in rows_by_key)]

    def cell(table_name: str, what: str, system: object) -> Cell:
        row = rows_by_key.get((table_name, what, system))
        return (
            Cell(markup.DASH) if row is None else Cell(markup.number(row["count"]), *_share_of(row))
        )

    if len(numbers.systems) > _MANY:
        head = ["system", *(f"{table_name}: {_words(what)}" for table_name, what in whats)]
        by_system = [
            [Cell(_text(system)), *(cell(table_name, what, system) for table_name, what in whats)]
            for system in numbers.systems
        ]
        return Grid("Per system", head, by_system)
    rows: list[list[Cell]] = []
    for table_name, what in whats:
        examples = (rows_by_key.get((table_name, what, system), {}) for system in numbers.systems)
        example = next((row["example"] for row in examples if row.get("example")), markup.DASH)
        cells = [cell(table_name, what, system) for system in numbers.systems]
        rows.append([Cell(f"{table_name}: {_words(what)}"), *cells, Cell(example, "", "text")])
    head = ["what", *map(_text, numbers.systems), "example"]
    return Grid("Per system", head, rows, words=["example"])


def _share_of(row: Mapping[str, Any]) -> tuple[str, str]:
    """Write the share of a count, and mark it if it may do harm."""
    share, what = row["share"], row["what"]
    harms = what.startswith(_WRONG) and row["count"]
    harms = harms or (what.startswith(_MAY_HARM) and share is not None and share >= facts.MATTERS)
    return "" if share is None else markup.percent(share), "warn" if harms else ""


def _words(name: str) -> str:
    return name.replace("_", " ")


# ------------------------------------------------------------------ conventions


def _conventions(numbers: Numbers) -> Section:
    """Write how the numbers are made, and how to reproduce them."""
    rows = [[Cell(name), Cell(text, "", "text")] for name, text in _rules(numbers)]
    sources = [
        [Cell(row["table"]), Cell(markup.number(row["rows"])), Cell(row["sha256"], "", "text")]
        for row in numbers.sources.to_dicts()
    ]
    grids = [
        Grid("How the numbers are made", ["what", "how"], rows, words=["how"]),
        Grid(
            "Input: SHA-256 of the sorted rows as CSV without a header",
            ["table", "rows", "SHA-256"],
            sources,
            words=["SHA-256"],
        ),
    ]
    return Section("conventions", "How to reproduce this", grids=grids, code=_call(numbers))


def _rules(numbers: Numbers) -> list[tuple[str, str]]:
    call, settings = numbers.call, numbers.call.settings
    has_truth = call.truth is not None or settings.users is not None
    users = settings.users or ("truth" if has_truth else "run")
    relevant = "grade > 0"
    if settings.relevant_at is not None:
        relevant = f"grade ≥ {settings.relevant_at:g} for binary metrics"
        relevant += (
            "; lower grades have no gain" if settings.gains_from else "; every grade > 0 has a gain"
        )
    rules = [
        ("users", _USERS[users]),
        ("relevant", relevant),
        ("unjudged items", "left out of lists" if settings.judged_only else "not relevant"),
        (
            "undefined values",
            "left out of means"
            if settings.undefined is None
            else f"count as {settings.undefined:g}",
        ),
        ("intervals", f"{100 * call.confidence:.10g}%, Student's t for means, not corrected"),
    ]
    if numbers.pairs:
        rules.append(("test", _tested(numbers)))
        if call.margin is not None:
            rules.append(("margin", _plain(call.margin)))
        if call.test not in ("t", "wilcoxon", "mcnemar", "tukey", "friedman"):
            rules.append(("resamples", f"{call.resamples:,}, seed {call.seed}"))
    if call.settings.cluster is not None:
        rules.append(("clusters", call.settings.cluster))
    if settings.weights is not None:
        rules.append(("weights", settings.weights))
    import platform
    from importlib.metadata import version

    packages = ("rankframe", "polars", "numpy", "scipy", "altair")
    versions = [f"{name} {version(name)}" for name in packages]
    rules.append(("versions", ", ".join([*versions, f"Python {platform.python_version()}"])))
    return rules


def _call(numbers: Numbers) -> str:
    """Write the call as code, with frames and expressions by their names."""
    call = numbers.call
    first = "run" if call.truth is not None else "judged"
    names = [
        repr(metric) if isinstance(metric, str) else metric.meta.output_name()
        for metric in call.metrics
    ]
    parts = [", ".join([first, *names])]
    if call.truth is not None:
        parts.append("truth=truth")
    arguments: dict[str, Any] = {"by": call.by}
    if call.baseline is not None:
        arguments["baseline"] = call.baseline
    if call.segments:
        arguments["segments"] = [*call.segments]
    arguments["k"] = call.k
    plain = {"test": "t", "correction": "holm", "confidence": 0.95, "margin": None}
    plain |= {"primary": None, "resamples": 10_000, "seed": 0}
    arguments |= {n: getattr(call, n) for n, value in plain.items() if getattr(call, n) != value}
    if call.settings.cluster is not None:
        arguments["cluster"] = call.settings.cluster
    tables = ("items", "history", "other", "exclude")
    arguments |= {n: v for n, v in call.options.items() if v is not None and n not in tables}
    parts += [f"{name}={value!r}" for name, value in arguments.items()]
    parts += [f"{name}={name}" for name in tables if call.options.get(name) is not None]
    return "rf.report(\n    " + ",\n    ".join(parts) + ",\n)"


def _plain(value: object) -> str:
    if isinstance(value, Mapping):
        margins = cast("Mapping[str, float]", value)
        return ", ".join(f"{name}: {margin:g}" for name, margin in margins.items())
    return f"{value:g}" if isinstance(value, float | int) else str(value)


def _figures(charts: Sequence[str], name: str, alt: str) -> list[Figure]:
    return [Figure(name, alt)] if name in charts else []


def _system_names(numbers: Numbers) -> str:
    names = [_text(name) for name in numbers.systems]
    return markup.listed_words(names) if len(names) <= 3 else f"{len(names)} systems"


def _text(value: object) -> str:
    return "none" if value is None else column_roles.in_words(value)
