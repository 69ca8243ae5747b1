"""Arranges the table of a page: metrics, systems, and groups of users, each with its interval."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from statistics import median, median_high
from typing import Any

import polars as pl

from rankframe._comparison import decision, notes, numerals, segments, sentences
from rankframe._report import facts, nouns, results, strips, verdict
from rankframe._report.facts import Numbers
from rankframe._report.markup import Block, Row, Table
from rankframe._report.strips import Change
from rankframe._request import keywords
from rankframe.plot import _colors, _names

_PAIR = 2
_MOST_ROWS = 40  # of the groups of a segment
_FIRST = 8  # of these, beside those that are folded
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
        _mean(row, Row(row["metric"], _asks(numbers, row["metric"])))
        for row in numbers.means.to_dicts()
    ]
    widths = [numbers.values.metric(row.name).traits.width for row in rows]
    shares = [row for row, width in zip(rows, widths, strict=True) if width <= 1]
    others = [row for row in rows if row not in shares]  # each has a scale of its own
    head, caption = ["metric", "mean"], say(numbers, "means")
    return [
        *(_drawn(Block(head, shares, caption=caption)) if shares else []),
        *([Block(head, others, caption=caption)] if others else []),
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
    tested = {name: numbers.row(numbers.compared, name) for name in systems}
    in_percent = _in_percent([*tested.values()])
    best = numbers.leaders if 1 < len(numbers.leaders) < len(systems) - 1 else ()
    rows: list[Row] = []
    for name in systems:
        row = Row(nouns.named(short.of(texts[name])), values=[numerals.number(means[name], 3)])
        row = row._replace(full=texts[name] * (texts[name] in short.short))
        if name == numbers.trial.baseline:
            rows.append(row._replace(tag="baseline"))
            continue
        more = _metrics(numbers, name) if len(numbers.names) > 1 else []
        tag = say(numbers, "may_lead") if name in best else ""
        row = row._replace(tag=tag, blocks=[*more, *_groups(numbers, name)])
        rows.append(_tested(numbers, tested[name], row, in_percent=in_percent))
    adjusted = say(numbers, "tests", number=numbers.family)
    tests = "; ".join(filter(None, (_lower(numbers, numbers.decides), adjusted, short.key)))
    head = ["system", numbers.decides, _change(numbers, in_percent=in_percent)]
    return _drawn(Block(head, rows, None, tests, caption=say(numbers, "of_systems")))


def _metrics(numbers: Numbers, system: object) -> list[Block]:
    """Compare a system with the baseline by each metric."""
    rows: list[Row] = []
    for name in numbers.names:
        tested = numbers.row(numbers.compared, system, name)
        means = [numerals.number(tested.get(of), 3) for of in ("baseline_mean", "mean")]
        tag = "decides" if name == numbers.trial.primary and len(numbers.names) > 1 else ""
        rows.append(_tested(numbers, tested, Row(name, _asks(numbers, name), tag, means)))
    head = ["metric", verdict.baseline_of(numbers), verdict.text_of(system), "change"]
    caption = say(numbers, "of_metrics", system=verdict.text_of(system))
    return _drawn(Block(head, rows, None, _tests(numbers, numbers.compared), caption=caption))


def _groups(numbers: Numbers, system: object) -> list[Block]:
    """Compare a system with the baseline in the groups of each segment, or average it there."""
    blocks: list[Block] = []
    tables = {**numbers.segments, facts.RELEVANT: numbers.of_relevant}
    groups = {
        name: _sorted_table(table.filter(pl.col(by) == pl.lit(system, table.schema[by])), name)
        for by in [numbers.call.by]
        for name, table in tables.items()
        if table is not None and not table.is_empty()
    }
    units: set[bool] = set()
    for name, table in groups.items():
        rows: list[Row] = []
        in_percent = numbers.pairs and _in_percent(table.to_dicts())
        units.add(in_percent)
        for record in table.head(_MOST_ROWS).to_dicts():
            row = Row(verdict.text_of(record[name]), values=[numerals.number(record["users"])])
            row = row._replace(small=_shrunken(numbers, record))
            is_tested = "difference" in record
            rows.append(
                _tested(numbers, record, row, in_percent=in_percent)
                if is_tested
                else _mean(record, row)
            )
        segment = verdict.name_of(numbers, name)
        head = [f"{numbers.decides}, by {segment}", numbers.nouns.words["users"]]
        head += [_change(numbers, in_percent=in_percent) if numbers.pairs else "mean"]
        left = table.height - _MOST_ROWS
        left_out = say(numbers, "more", number=left) if left > 0 else ""
        more = ". ".join(filter(None, (_alike(numbers, table, system), left_out)))
        kind = "of_groups" if numbers.pairs else "means_of_groups"
        caption = say(numbers, kind, system=verdict.text_of(system), segment=segment)
        # of all systems, as the p-values are adjusted
        tests = _tests(numbers, tables[name], name)
        block = Block(head, rows, None, tests, more, caption)
        if len(rows) > _FIRST:
            folded = say(numbers, "folded", number=len(rows) - _FIRST)
            block = block._replace(first=_FIRST, folded=folded)
        blocks.append(block)
    if len(units) > 1:
        return [drawn for block in blocks for drawn in _drawn(block)]
    return _drawn(*blocks)


def _shrunken(numbers: Numbers, record: Mapping[str, Any]) -> str:
    """Write the shrunken difference of a group, in the unit of the metric, with its interval."""
    value, low, high = (record.get(of) for of in segments.SHRUNKEN)
    if value is None:
        return ""
    change = strips.number_of(value, low, high, "shrunken", has_sign=True)
    return say(numbers, "shrunken", change=change.text, ends=" to ".join(change.ends or ()))


def _alike(numbers: Numbers, table: pl.DataFrame, system: object) -> str:
    """Write that no group is shown to differ from the whole, or that nothing is shrunken."""
    trial, has = numbers.trial, {"difference", segments.SHRUNKEN[0]} & {*table.columns}
    if table.height > 1 and has == {"difference"} and (trial.cluster or not trial.paired):
        why = "clusters" if trial.cluster else f"unpaired {numbers.nouns.words['users']}"
        return say(numbers, "unshrunken", why=why)
    p = table[facts.DIFFERS].drop_nulls() if facts.DIFFERS in table.columns else pl.Series([])
    alpha = keywords.alpha_of(numbers.trial.confidence)
    whole = numbers.row(numbers.compared, system)
    change = strips.change_of(whole) if whole else None
    if p.is_empty() or change is None or decision.shows(p, alpha).any():
        return ""
    return say(numbers, "alike", change=change.text)


def _sorted_table(table: pl.DataFrame, name: str) -> pl.DataFrame:
    """Sort numbers that are text as numbers."""
    if table.schema[name] != pl.String:
        return table
    number = pl.col(name).cast(pl.Float64, strict=False)
    whole = table.filter(pl.col(name).is_not_null()).select(number.is_not_null().all()).item()
    return table.sort(number, maintain_order=True, nulls_last=True) if whole else table


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
    return _drawn(Block([name, *head, "median"], rows, caption=name))[0]


# ------------------------------------------------------------------ rows


def _in_percent(records: Sequence[Mapping[str, Any]]) -> bool:
    """Return whether the changes of one metric are in percent: then all of them can be."""
    changes = (strips.change_of(record) for record in records if record)
    return all(change.in_percent for change in changes if change is not None)


def _tested(
    numbers: Numbers, record: Mapping[str, Any], row: Row, *, in_percent: bool = True
) -> Row:
    """Add a difference, what it shows, and why an interval without 0 may show nothing."""
    if not record:
        return row
    said, why = verdict.said_of(record, numbers), ""
    low, high, p = record["ci_low"], record["ci_high"], record["p_adjusted"]
    if said == "undecided" and low is not None and not low <= 0 <= high:
        why = say(numbers, "p", p=p)
    return row._replace(
        change=strips.change_of(record, in_percent=in_percent),
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


def _asks(numbers: Numbers, metric: str) -> str:
    """Write what a metric asks, and whether less of it is better."""
    return "; ".join(filter(None, (verdict.question(numbers, metric), _lower(numbers, metric))))


def _lower(numbers: Numbers, metric: str) -> str:
    return say(numbers, "lower") if numbers.values.directions.get(metric) is False else ""


def _change(numbers: Numbers, *, in_percent: bool) -> str:
    """Write the head of changes, with their unit unless each has a sign of percent."""
    return say(numbers, "change" if in_percent else "points")


def say(numbers: Numbers, kind: str, **values: Any) -> str:
    """Write what stands in the table and in the parts below it."""
    return verdict.say(numbers, "page", kind, **values)


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
    values = numbers.values.only([numbers.decides])
    reach = results.reach(values, numbers.decides, numbers.means, numbers.nouns)
    return [*(f"{line}." for line in lines), *reach]
