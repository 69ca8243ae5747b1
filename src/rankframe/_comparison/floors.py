"""Tests floors of gates: ``Values`` and bounds of means in, a row per group and bound out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isfinite, log, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import polars as pl

from rankframe._comparison import decision, margins, notes, sentences, summaries, trials
from rankframe._comparison.margins import Side
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import np, statistics
from rankframe._comparison.summaries import Sampled
from rankframe._comparison.trials import Trial
from rankframe._evaluation.values import Values
from rankframe._request import keywords, labels
from rankframe._request.labels import RequestedMetric
from rankframe.errors import Problem, keyword

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Sample

#: The columns of a floor, beside those of ``by`` and the hidden ones of ``decision``.
COLUMNS = {
    "metric": pl.String,
    **dict.fromkeys(("users", "num_left_out"), pl.Int64),
    **dict.fromkeys(("mean", "at_least", "at_most"), pl.Float64),
    "note": pl.String,
    **dict.fromkeys(("ci_low", "ci_high"), pl.Float64),
}


OPTIONS = ("at_least", "at_most")
_NUMBERS = ("mean", "ci_low", "ci_high", decision.P_BEYOND, decision.P_WITHIN)


class Floor(NamedTuple):
    """A bound of the mean of a metric: it must be at least, or at most, an amount."""

    metric: str
    amount: float
    option: str
    interval: bool = False  # whether the interval of the mean decides, or the mean

    @property
    def is_least(self) -> bool:
        """Whether it bounds the mean from below."""
        return self.option == "at_least"

    def decide(self, mean: float | None, note: str | None) -> tuple[bool, str]:
        """Compare a mean with the bound, and say it."""
        if mean is None:
            why = notes.unpacked(note) or [notes.note(trials.NO_VALUE)]
            return False, f"cannot be judged: {notes.text(why)}"
        beyond = self.amount - mean if self.is_least else mean - self.amount
        digits = (f"{mean:.{number}g}" for number in range(4, 18))
        text = next(digit for digit in digits if (float(digit) == self.amount) <= (beyond == 0))
        fails = beyond > trials.NOTHING
        low, side = ("low", "below") if self.is_least else ("high", "above")
        passes = "high enough" if self.is_least else "low enough"
        verdict = f"too {low}: the mean is" if fails else f"{passes}: the mean is"
        return not fails, f"{verdict} {text}, {'' if fails else 'not '}{side} {self.amount:.10g}"


def floors_of(
    requested: Sequence[RequestedMetric],
    amounts: Mapping[str, float],
    option: str,
    *,
    interval: bool,
) -> list[Floor]:
    """Read the bounds of ``at_least=`` or ``at_most=``."""
    floors: list[Floor] = []
    name = keyword(option)
    for metric in requested:
        if (amount := amounts.get(metric.name)) is None:
            continue
        if not (keywords.is_number(amount) and isfinite(amount)):
            msg = f"{name} of {metric.name!r} must be a finite number, not {amount!r}"
            raise ValueError(Problem(msg))
        if metric.is_of_all_lists:
            msg = (
                f"{name}: metric {metric.name!r} is one number for all lists, without a value per "
                "user to test: gate a metric per user"
            )
            raise ValueError(Problem(msg))
        if not metric.per_user and metric.over_users.epsilon is None:
            raise ValueError(labels.not_per_user(metric))
        traits = metric.traits
        floor = Floor(metric.name, float(amount), option, interval)
        if amount > traits.greatest if floor.is_least else amount < traits.least:
            msg = (
                f"{name} of {metric.name!r} is {amount!r}, which no mean reaches: its values are "
                f"from {traits.least:g} to {traits.greatest:g}"
            )
            raise ValueError(Problem(msg))
        floors.append(floor)
    return floors


def means_of(values: Values, trial: Trial, floors: Sequence[Floor]) -> pl.LazyFrame:
    """Plan the means, and if these decide, their intervals and the tests of their bounds."""
    interval = any(floor.interval for floor in floors)
    of_human = summaries.HUMAN if values.has_human else {}
    if interval:
        summaries.check_trial(trial)
    summaries.check_values(values, total=trial.total, least=2)
    schema = summaries.result_schema("gate", values, {**COLUMNS, **of_human, **decision.HIDDEN})
    names = [floor.metric for floor in floors]
    metrics = {metric.name: metric for metric in values.requested if metric.name in names}
    of_floors = values._replace(requested=[*metrics.values()])

    def reduce(rows: pl.DataFrame) -> pl.DataFrame:
        summaries.check_rows(rows, values, names)
        samples: Sequence[Sampled | None]
        if interval or of_human:
            samples, summary = summaries.sampled(rows, of_floors, "t", total=trial.total)
        else:
            summary = summaries.descriptions(rows, of_floors, total=trial.total)
            samples = [None] * summary.height
        tested: list[dict[str, Any]] = []
        for group, sampled in zip(summary.iter_rows(named=True), samples, strict=True):
            metric = metrics[group["metric"]]
            tested += [
                _row(group, sampled, floor, trial, metric.over_users.epsilon)
                for floor in floors
                if floor.metric == metric.name
            ]
        tested += _without_users(rows, of_floors, floors)
        table = pl.DataFrame([{n: row.get(n) for n in schema} for row in tested], schema=schema)
        table = table.with_columns(pl.col(name).fill_nan(None) for name in _NUMBERS)
        ends = [summaries.from_logarithms(n, of_floors.requested) for n in ("ci_low", "ci_high")]
        place = summaries.in_requested_order([*metrics])
        by = [*values.by[1:], place, *values.by[:1]]
        return table.with_columns(ends).sort(by, nulls_last=True, maintain_order=True)

    return values.rows.map_batches(reduce, schema=schema)


def _row(
    group: Mapping[str, Any],
    sampled: Sampled | None,
    floor: Floor,
    trial: Trial,
    epsilon: float | None,
) -> dict[str, Any]:
    said = [] if sampled is None else sampled.notes
    if not floor.interval:
        said = said[:1]  # of human labels
        if group["num_missed"]:
            selected = group["users"] + group["num_left_out"]
            said = [*said, *sentences.notes_of_missed(group["num_missed"], selected)]
    return {
        **group,
        **_amounts(floor),
        "note": notes.packed([*said, *_notes_of_undefined(group)]),
        **(_tested(sampled, floor, trial, epsilon) if sampled and floor.interval else {}),
    }


def _notes_of_undefined(group: Mapping[str, Any]) -> list[Note]:
    """Note how many users have no value, if they are many, but not all."""
    left_out = group["num_left_out"]
    selected = group["users"] + left_out
    if not notes.WORTH_A_NOTE * selected <= left_out < selected or not left_out:
        return []
    return [notes.note("undefined", number=left_out, of=selected)]


def _amounts(floor: Floor) -> dict[str, float | None]:
    return {option: floor.amount if option == floor.option else None for option in OPTIONS}


def _without_users(
    rows: pl.DataFrame, values: Values, floors: Sequence[Floor]
) -> Iterator[dict[str, Any]]:
    """Make rows of systems that have no user in a segment, so that they do not pass unseen."""
    if len(values.by) < 2:
        return
    model, *segments = values.by
    groups = rows.select(model).unique().join(rows.select(segments).unique(), how="cross")
    lacking = groups.join(rows, on=values.by, how="anti", nulls_equal=True).sort(values.by)
    for group in lacking.iter_rows(named=True):
        for floor in floors:
            yield {
                **group,
                "metric": floor.metric,
                "users": 0,
                "num_left_out": 0,
                "note": notes.packed([notes.note(trials.NO_VALUE)]),
                **_amounts(floor),
            }


def _tested(sampled: Sampled, floor: Floor, trial: Trial, epsilon: float | None) -> dict[str, Any]:
    """Test the mean of a group against its floor; a mirrored sample has its ceiling as a floor."""
    least, greatest, amount = *sampled.limits, floor.amount
    if epsilon is not None:
        least, greatest, amount = (_logarithm(x + epsilon) for x in (least, greatest, amount))
    sample = sampled.sample if sampled.human is None else sampled.human[2]
    values = sample.values
    if len(values) < 2:
        return {}
    if values.min() < least or values.max() > greatest:
        least, greatest = -float("inf"), float("inf")
    if not floor.is_least:
        values, least, greatest, amount = -values, -greatest, -least, -amount
    sample, mirrored = sample._replace(values=values), sample._replace(values=-values)
    of_mean, tail, usual = statistics.estimate(sample), trial.alpha / 2, _most_frequent(values)
    if sampled.human is not None:
        of_mean = statistics.estimate(sampled.sample)
        of_mean = of_mean if floor.is_least else of_mean.mirrored()
    low, high = (
        min(max(float(end), least), greatest) for end in of_mean.interval(trial.confidence)
    )
    side, below = Side(float(of_mean.p_above(amount))), float(of_mean.mirrored().p_above(-amount))
    are_hits = isfinite(greatest - least) and bool(((values == least) | (values == greatest)).all())
    are_hits = are_hits and sampled.human is None  # whose exact bounds leave out the judge
    if are_hits or values.min() == values.max():
        low, side = _exact(sample, greatest if are_hits else usual, least, amount, floor, tail)
        lowest = least if are_hits else usual
        high, (below, _) = _exact(mirrored, -lowest, -greatest, -amount, floor, tail)
        high = -high
    elif (values != usual).sum() < statistics.FEW_USERS:
        _, side = _exact(sample, usual, least, amount, floor, tail)
    elif isfinite(least):
        said = notes.note("rare_values", far="below" if floor.is_least else "above")
        rare = statistics.rare(sample, least)
        side = margins.rare_side(rare, amount, least, side.p, tail, said)
    why = side.why if side.why is None or sampled.human is None else notes.of_human(side.why)
    return {
        "ci_low": low if floor.is_least else -high,
        "ci_high": high if floor.is_least else -low,
        decision.P_BEYOND: below,
        decision.P_WITHIN: side.p,
        decision.EVIDENCE: notes.packed([why]),
    }


def _logarithm(value: float) -> float:
    return log(value) if value > 0 else -float("inf")


def _exact(
    sample: Sample, reached: float, least: float, amount: float, floor: Floor, tail: float
) -> tuple[float, Side]:
    """Bound the mean from below by the share that reaches a value; test the bound, and say it."""
    if not isfinite(least):
        return nan, Side(why=notes.note("no_range_of_values"))
    fewer = statistics.below(sample, reached)
    low = fewer.least_mean(reached, least, tail)
    number, reach = len(sample.values), int((sample.values >= reached).sum())
    sign, more, least_or_most = (1, "more", "least") if floor.is_least else (-1, "less", "most")
    ends = {"value": sign * reached + 0.0, "end": sign * low + 0.0}
    words = {"more": more, "least": least_or_most}
    evidence = notes.note("reached", reach=reach, number=number, **ends, **words)
    return low, Side(float(fewer.p_above(amount, reached, least)), evidence)


def _most_frequent(values: Array) -> float:
    """Return the value of more than half of the sample, or the least, which all reach."""
    amounts, counts = np.unique(values, return_counts=True)
    return float(amounts[counts.argmax()] if 2 * counts.max() > len(values) else amounts[0])
