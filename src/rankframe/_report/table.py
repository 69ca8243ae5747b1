"""Arranges the table of a page: metrics, systems, and groups of users, each with its interval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median, median_high
from typing import Any

import polars as pl

from rankframe._comparison import notes, numerals, sentences
from rankframe._report import facts, nouns, results, strips, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Block, Row, Table
from rankframe._report.strips import Change
from rankframe.plot import _colors, _names

_PAIR = 2
_MOST_ROWS = 40  # of the groups of a segment
_ROOM = 34  # letters of a system's name
_MARKS = {"not worse": "◆", "equivalent": "■"}
_BEYOND = 3  # times the usual reach of an interval: an axis ends there


def table_of(numbers: Numbers) -> Table:
    """Arrange all systems, best first; of one system or a pair, the metrics and the groups."""
    if not numbers.pairs:
        title, kind, blocks = "All metrics", "point_mean", _means(numbers)
    elif len(numbers.systems) > _PAIR:
        title, kind, blocks = "All systems, best first", "point_systems", _systems(numbers)
    else:
        title, kind, blocks = "Does it hold everywhere?", "point", _metrics(numbers, numbers.chosen)
    if kind != "point_systems":
        blocks += _groups(numbers, (numbers.systems if kind == "point_mean" else numbers.shown)[0])
    adjusted = any(row.why for block in blocks for row in block.rows)
    text = say(numbers, kind, adjusted="" if adjusted else None)
    return Table(title, text, blocks, _notes(numbers))


# ------------------------------------------------------------------ blocks


def _means(numbers: Numbers) -> list[Block]:
    """Describe one system by each metric."""
    rows = [
        _mean(row, Row(row["metric"], verdict.question(numbers, row["metric"])))
        for row in numbers.means.to_dicts()
    ]
    widths = [numbers.values.metric(row.name).traits.width for row in rows]
    shares = [row for row, width in zip(rows, widths, strict=True) if width <= 1]
    others = [row for row in rows if row not in shares]  # each has a scale of its own
    head = ["metric", "mean"]
    return [
        *(_drawn(Block(head, shares)) if shares else []),
        *([Block(head, others)] if others else []),
    ]


def _systems(numbers: Numbers) -> list[Block]:
    """Compare all systems by the metric that decides; each opens its other metrics and groups."""
    means = {name: numbers.row(numbers.means, name).get("mean") for name in numbers.systems}
    direction = numbers.values.directions.get(numbers.decides)
    systems = numbers.systems
    if direction is not None:
        undefined = float("-inf" if direction else "inf")
        value = {name: undefined if mean is None else mean for name, mean in means.items()}
        systems = sorted(systems, key=value.__getitem__, reverse=direction)
    texts = {name: nouns.plain(verdict.text_of(name)) for name in systems}
    short = _names.short([*texts.values()], _ROOM)
    rows: list[Row] = []
    for name in systems:
        row = Row(nouns.named(short.of(texts[name])), values=[numerals.number(means[name], 3)])
        row = row._replace(full=texts[name] * (texts[name] in short.short))
        if name == numbers.trial.baseline:
            rows.append(row._replace(tag="baseline"))
            continue
        more = _metrics(numbers, name) if len(numbers.names) > 1 else []
        row = row._replace(blocks=[*more, *_groups(numbers, name)])
        rows.append(_tested(numbers, numbers.row(numbers.compared, name), row, raw=True))
    tests = say(numbers, "tests", number=numbers.family)
    tests = "; ".join(filter(None, (tests, short.key)))
    return _drawn(Block(["system", numbers.decides, "change"], rows, None, tests))


def _metrics(numbers: Numbers, system: object) -> list[Block]:
    """Compare a system with the baseline by each metric."""
    rows: list[Row] = []
    for name in numbers.names:
        tested = numbers.row(numbers.compared, system, name)
        means = [numerals.number(tested.get(of), 3) for of in ("baseline_mean", "mean")]
        tag = "decides" if name == numbers.decides and len(numbers.names) > 1 else ""
        rows.append(
            _tested(numbers, tested, Row(name, verdict.question(numbers, name), tag, means))
        )
    head = ["metric", verdict.baseline_of(numbers), verdict.text_of(system), "change"]
    return _drawn(Block(head, rows, None, _tests(numbers, numbers.compared)))


def _groups(numbers: Numbers, system: object) -> list[Block]:
    """Compare a system with the baseline in the groups of each segment, or average it there."""
    blocks: list[Block] = []
    for name, table in {**numbers.segments, facts.RELEVANT: numbers.of_relevant}.items():
        if table is None or table.is_empty():
            continue
        of_system = pl.col(numbers.call.by) == pl.lit(system, table.schema[numbers.call.by])
        rows: list[Row] = []
        for record in table.filter(of_system).head(_MOST_ROWS).to_dicts():
            row = Row(verdict.text_of(record[name]), values=[numerals.number(record["users"])])
            is_tested = "difference" in record
            rows.append(
                _tested(numbers, record, row, raw=True) if is_tested else _mean(record, row)
            )
        head = [f"{numbers.decides}, by {verdict.name_of(numbers, name)}"]
        head += [numbers.nouns.words["users"], "change" if numbers.pairs else "mean"]
        left = table.filter(of_system).height - _MOST_ROWS
        more = say(numbers, "more", number=left) if left > 0 else ""
        blocks.append(Block(head, rows, None, _tests(numbers, table, name), more))
    return _drawn(*blocks)


def users_of(numbers: Numbers) -> Block | None:
    """Describe how the values of users change, or how they lie where nothing is paired."""
    table, by, name = numbers.moves, numbers.call.by, numbers.user_metric
    table = numbers.spread if table is None else table
    if table is None or name is None:
        return None
    head = ["exactly 0"] if numbers.moves is None else ["lower", "equal", "higher"]
    rows: list[Row] = []
    for record in table.to_dicts():
        counts = [record[of] for of in head] if numbers.moves is not None else []
        values = [*map(numerals.number, counts)] or [numerals.percent(record["zero"])]
        middle, low, high = (record[of] for of in ("p50", "p10", "p90"))
        has_sign = numbers.moves is not None
        change = strips.number_of(middle, low, high, "median", has_sign=has_sign)
        rows.append(Row(verdict.text_of(record[by]), values=values, change=change))
    return _drawn(Block([name, *head, "median"], rows))[0]


# ------------------------------------------------------------------ rows


def _tested(numbers: Numbers, record: Mapping[str, Any], row: Row, *, raw: bool = False) -> Row:
    """Add a difference, what it shows, and why an interval without 0 may show nothing."""
    if not record:
        return row
    said, why = verdict.said_of(record, numbers), ""
    low, high, p = record["ci_low"], record["ci_high"], record["p_adjusted"]
    if said == "undecided" and low is not None and not low <= 0 <= high:
        why = say(numbers, "p", p=p)
    return row._replace(
        change=strips.change_of(record, in_percent=not raw),
        kind=re.split(r"\W", said)[0],
        said=f"{_colors.mark_of(said) or _MARKS.get(said, '●')} {said}",
        why=why,
    )


def _mean(record: Mapping[str, Any], row: Row) -> Row:
    """Add a mean with its interval."""
    mean, low, high = (record[of] for of in ("mean", "ci_low", "ci_high"))
    return row if mean is None else row._replace(change=strips.number_of(mean, low, high, "mean"))


def _drawn(*blocks: Block) -> list[Block]:
    """Give blocks one axis, of most intervals, and one number of decimals.

    It is in percent, if any change is; far longer intervals are cut.
    """
    changes = [row.change for block in blocks for row in block.rows if row.change is not None]
    percent = any(change.in_percent for change in changes)
    drawn = [change for change in changes if change.in_percent == percent]
    if not drawn:
        return [*blocks]
    values = [abs(change.value) for change in drawn]
    reaches = [max(abs(change.low or 0), abs(change.high or 0)) for change in drawn]
    most = max(_BEYOND * median(reaches), *values)
    axis = strips.axis_of(drawn, most=most or None)
    decimals = median_high([change.decimals or 0 for change in drawn])
    return [
        block._replace(axis=axis, rows=[_with_decimals(row, drawn, decimals) for row in block.rows])
        for block in blocks
    ]


def _with_decimals(row: Row, drawn: Sequence[Change], decimals: int) -> Row:
    if row.change is None or row.change not in drawn:
        return row
    return row._replace(change=row.change._replace(decimals=decimals))


# ------------------------------------------------------------------ words


def say(numbers: Numbers, kind: str, **values: Any) -> str:
    fields: dict[str, Any] = {
        "metric": numbers.decides,
        "sure": f"{100 * numbers.trial.confidence:.10g}%",
    }
    fields["baseline"] = verdict.baseline_of(numbers)
    return numbers.nouns.write(notes.templates("page")[kind], **{**fields, **values})


def _tests(numbers: Numbers, table: pl.DataFrame | None, name: str | None = None) -> str:
    """Write for how many tests the p-values of metrics are adjusted, or those of groups."""
    if table is None or "p_value" not in table.columns:
        return ""
    if why := sentences.untested(table, numbers.nouns):
        return say(numbers, "untested", why=why)
    number = sentences.tests_of(table, None if name else numbers.trial.primary)
    others = table["p_value"].count() - number
    kind = "tests" if number > 1 else "tests_of_others" if others > 1 else ""
    if numbers.trial.correction is None and numbers.trial.test != "max_t":
        kind = "tests_alone" if number > 1 else ""
    systems, of = table[numbers.call.by].n_unique(), {"number": number, "others": others or None}
    if name and systems > 1:
        of |= {"systems": systems, "groups": table[name].n_unique()}
    return say(numbers, kind, **of) if kind else ""


def _notes(numbers: Numbers) -> list[str]:
    """Write the notes of the rows that the page does not say elsewhere."""
    table = numbers.compared
    if table is None:
        return []
    left = notes.without(results.unsaid(table), ["small_effect"])
    names = [numbers.call.by] if len(numbers.systems) > _PAIR else []
    lines = results.lines_of_notes(table.with_columns(notes.in_words(left, numbers.nouns)), names)
    return [f"{line}." for line in lines]
