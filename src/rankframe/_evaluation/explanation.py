"""Explain a number: which conventions of its metric give it on these tables (``Explanation``)."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple, Unpack, cast, overload

import polars as pl

from rankframe._evaluation import convention_words, conventions
from rankframe._evaluation.conventions import SINGLE, Grid
from rankframe._request import keywords, labels
from rankframe._request.keywords import Options
from rankframe._request.question import ask
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, rank_order, run_dicts
from rankframe.errors import RankingDataError, table_code

_NEAREST = 3  # rows where no convention fits
_SAME = 1e-12  # values that differ by less are one
_MOST_TOOLS = 3  # in a sentence
_SHOWN: Mapping[str, Any] = {
    "tbl_rows": -1,
    "tbl_cols": -1,
    "tbl_width_chars": 1000,
    "fmt_str_lengths": 300,
    "tbl_hide_dataframe_shape": True,
}
_UNSET: Mapping[str, object] = {
    "undefined": None,
    "average": "users",
    "relevant_at": None,
    "duplicates": "error",
    "depth": None,
    "unjudged": "miss",
}


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The conventions that give a number, which ``explain`` finds."""

    sentence: str
    frame: pl.DataFrame
    choices: pl.DataFrame
    users: pl.DataFrame | None = None

    def __repr__(self) -> str:
        with pl.Config(**_SHOWN, tbl_hide_column_data_types=True):  # type: ignore[arg-type]
            return f"{self.sentence}\n{self.frame.drop('call')}\n{self.frame['call'][0]}"

    def _repr_html_(self) -> str:
        with pl.Config(**_SHOWN):  # type: ignore[arg-type]
            return f"<p>{html.escape(self.sentence)}</p>\n{self.frame._repr_html_()}"


class _Printed(NamedTuple):
    """A number of a metric, as it was printed."""

    value: float
    digits: int

    @property
    def half(self) -> float:
        """How far a value that is printed like this may be away."""
        return 0.5 * 10.0**-self.digits * (1 + 1e-9) + _SAME

    def __str__(self) -> str:
        return f"{self.value:.{self.digits}f}"


@overload
def explain(
    number: float,
    metric: str,
    run: Runs[Frame],
    /,
    *,
    truth: Truth | None = None,
    digits: int | None = None,
    **options: Unpack[Options],
) -> Explanation: ...
@overload
def explain(
    number: Mapping[str, float],
    run: Runs[Frame],
    /,
    *,
    truth: Truth | None = None,
    digits: int | None = None,
    **options: Unpack[Options],
) -> Explanation: ...
@adapters.takes_arrow
def explain(
    number: Any,
    metric: Any,
    run: Any = None,
    /,
    *,
    truth: Truth | None = None,
    digits: int | None = None,
    **options: Unpack[Options],
) -> Explanation:
    """
    Find the conventions that give a number.

    Parameters
    ----------
    number
        What someone printed, such as 0.3812; or several numbers of one tool by their labels, such
        as ``{"ndcg@10": 0.3812, "map": 0.21}``, without ``metric``.
    metric
        The label of the number, such as ``"ndcg@10"``.
    run
        A judged table, or a run with its ``truth``, of one system. A LazyFrame is computed at once.
    truth
        The truth that judges the run: user, item and, unless it is 1 in every row, relevance.
        Or a dict, as ``from_grades`` takes it, or the column of relevant items beside lists.
    digits
        Decimal places of the number, if zeros at its end were cut: 0.38 may be 0.3800. By default
        those that it shows.
    **options
        The keywords of ``evaluate`` that you use yourself, and columns' roles: see
        ``rankframe.typing.Options``. Other conventions depart from these.

    Returns
    -------
    Explanation
        ``.sentence`` says what the number is, and what yours is. ``.frame`` (polars) has a row per
        class of conventions that have the same values on these tables and give the number, or, if
        none does, the nearest three: ``preset`` (String, the tools with this convention, null if
        none is known), ``words`` (String, its departures from yours), ``call`` (String, code that
        gives the value, with the names run and truth), a column per metric (Float64),
        ``difference`` (Float64, the value minus the number; of several, the greatest),
        ``departures`` (Int64, the choices that differ from yours), ``equivalent`` (Int64, the
        conventions in the class) and ``fits`` (Boolean). Yours comes first, then those of tools,
        then those with the fewest departures. ``.choices`` has a row per single choice: ``metric``,
        ``choice`` and ``words`` (String), ``value`` and ``change`` (Float64), the value with this
        choice alone, minus yours.

        A value fits if it rounds to the number. A convention has a value of each parameter of the
        metric with named values (and no cut-off), of ``users``, ``undefined`` (null, 0, 1) and
        ``average`` (pooled), and at most one change of the tables: another ``relevant_at``, order
        of equal scores, ``duplicates`` or ``depth``, ``unjudged="drop"``, or all ranks one lower.
        Those of presets are among them. A single number that no preset gives is called
        "consistent with" a convention, since one of so many may fit by chance: the sentence says
        how often a number that is drawn at random between the least and the greatest value would.

    Raises
    ------
    ValueError
        If the number is no value that the metric can have, or ``digits`` is no whole number.
    RankingDataError
        If the run has several systems.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abab"], "rank": [1, 2, 1, 2]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [*"bab"], "relevance": [3, 1, 1]})
    >>> explanation = rf.explain(0.8155, "ndcg@2", run, truth=truth)
    >>> explanation.frame["call"].item()
    "rf.evaluate(run, 'ndcg@2', truth=truth, users='both')"
    """
    printed: Any = number
    if run is None:
        run = metric
    else:
        printed = {metric: number}
    numbers = {label: _read(label, value, digits) for label, value in printed.items()}
    grids = _grids(run, names=[*numbers], truth=truth, **options)
    classes = _classes(grids, [*numbers.values()])
    frame = _frame(classes, grids, _Caller(run, truth, options))
    sentence = _sentence(classes, grids, [*numbers.values()])
    return Explanation(sentence, frame, _choices(grids))


def _read(label: object, number: object, digits: object) -> _Printed:
    """Check a number, and read its digits."""
    if not isinstance(label, str):
        msg = (
            f"metric {label!r}: explain takes a label, such as 'ndcg@10', whose parameters it knows"
        )
        raise TypeError(msg)
    if not keywords.is_number(number) or not math.isfinite(number):
        msg = f"metric {label!r}: the number must be finite, such as 0.3812, not {number!r}"
        raise (ValueError if isinstance(number, float) else TypeError)(msg)
    if len(labels.parse_metrics([label], per_user=False)) > 1:
        msg = f"metric {label!r} has several cut-offs, and the number has one: name it"
        raise ValueError(msg)
    places = -cast("int", Decimal(str(number)).as_tuple().exponent)
    places = max(places, 0) if digits is None else keywords.whole_number("digits", digits, least=0)
    printed = _Printed(float(number), places)
    traits = labels.traits_of_name(label)
    if not traits.least - printed.half <= printed.value <= traits.greatest + printed.half:
        percent = Decimal(str(number)) / 100
        ends = f"{traits.least:g} to {traits.greatest:g}"
        msg = f"metric {label!r}: {number} is outside of its range, {ends}"
        is_percent = traits.greatest == 1 and 0 <= percent <= 1
        msg += f": pass {percent}, if it is in percent" if is_percent else ""
        raise ValueError(msg)
    return printed


@adapters.takes_any_frame
def _grids(
    run: Runs[Frame],
    /,
    *,
    names: Sequence[str],
    truth: Truth | None = None,
    **options: Unpack[Options],
) -> list[Grid]:
    """Compute all conventions of one system."""
    run, by, options = run_dicts.as_frame(run, (), options)
    frame = adapters.to_polars(run, "run").lazy().collect()
    if by and (number := frame[by[0]].n_unique()) > 1:
        first = frame[by[0]][0]
        cure = table_code(
            "run", f".filter(pl.col({by[0]!r}) == {first!r})", f".query('{by[0]} == {first!r}')"
        )
        msg = f"run, column {by[0]!r}: {number:,} systems, and explain takes one{cure}"
        raise RankingDataError(msg)
    if isinstance(truth, pl.LazyFrame):
        truth = truth.collect()
    elif adapters.is_frame(truth):
        truth = adapters.to_polars(truth, "truth")
    settings = keywords.read_options(options, takes_average=True)
    return conventions.grids(ask(frame, names, truth, by, settings))


# ------------------------------------------------------------------ classes


class _Cells(NamedTuple):
    """The values of a metric: a row per class of labels that share the other choices."""

    rows: pl.DataFrame
    presets: Mapping[str, tuple[int, int]]  # what each shares, and its class
    printed: _Printed
    least: float
    greatest: float

    def share(self, kinds: pl.DataFrame) -> float:
        """Return how often a number between the least and the greatest value meets a class."""
        width, values = 2 * self.printed.half, kinds["value"].sort()
        covered = values.diff().drop_nulls().clip(upper_bound=width).sum() + width
        return covered / (self.greatest - self.least + width)


def _cells(grid: Grid, printed: _Printed) -> _Cells:
    first, value = grid.parameters[0], pl.col("value")
    own = [sum(of[name] != first[name] for name in first) for of in grid.parameters]
    label = pl.col("convention") % len(grid.labels)
    step = pl.max_horizontal(value.abs(), 1) * _SAME
    cells = grid.values.sort("value", "convention").with_columns(
        shared=pl.col("convention") // len(grid.labels),
        label=label,
        own=label.replace_strict(dict(enumerate(own)), return_dtype=pl.Int64),
        kind=(value.diff() > step).cum_sum().fill_null(0),
        miss=value - printed.value,
        fits=(value - printed.value).abs() <= printed.half,
        unnamed=~pl.col("convention").is_in([*grid.presets.values()]),
    )
    places = dict(zip(cells["convention"], cells.select("shared", "kind").iter_rows(), strict=True))
    presets = {name: places[number] for name, number in grid.presets.items() if number in places}
    columns = ("label", "own", "unnamed", "departures", "value", "miss", "fits", "users")
    simplest = [pl.col(name).sort_by("own", "unnamed", "label").first() for name in columns]
    rows = cells.group_by("shared", "kind").agg(simplest, equivalent=pl.len().cast(pl.Int64))
    ends = cells["value"].head(1), cells["value"].tail(1)
    return _Cells(rows, presets, printed, *(float(end.sum()) for end in ends))


class _Classes(NamedTuple):
    """The classes of conventions that fit, or the nearest, and how often chance would fit."""

    rows: pl.DataFrame
    fits: bool
    chance: float
    of_presets: float  # the same, of their values alone


def _classes(grids: Sequence[Grid], printed: Sequence[_Printed]) -> _Classes:
    cells = [_cells(grid, number) for grid, number in zip(grids, printed, strict=True)]
    places = range(len(cells))
    rows = _joined([of.rows.filter("fits") for of in cells])
    if not (fits := not rows.is_empty()):
        nearest = pl.col("miss").abs() == pl.col("miss").abs().min().over("shared")
        rows = _joined([of.rows.filter(nearest) for of in cells])
    kinds, misses = [f"kind {n}" for n in places], pl.concat_list(f"miss {n}" for n in places)
    equivalent = reduce(lambda x, y: x * y, (pl.col(f"equivalent {n}") for n in places))
    shared = pl.col("departures 0") - pl.col("own 0")
    rows = rows.with_columns(
        departures=shared + pl.sum_horizontal(f"own {n}" for n in places),
        equivalent=equivalent,
        difference=misses.list.get(misses.list.eval(pl.element().abs()).list.arg_max()),
    )
    unnamed = [f"unnamed {n}" for n in places]
    rows = rows.sort("departures", *unnamed, "shared", *(f"label {n}" for n in places))
    first = pl.all().exclude(*kinds, "equivalent").first()
    rows = rows.group_by(kinds, maintain_order=True).agg(first, pl.col("equivalent").sum())
    held: dict[tuple[int, ...], list[str]] = {}
    for name in cells[0].presets:
        of_each = [of.presets.get(name) for of in cells]
        if None not in of_each:
            held.setdefault(tuple(pair[1] for pair in of_each if pair), []).append(name)
    tools = [held.get(key) for key in rows.select(kinds).iter_rows()]
    names = [convention_words.tools(of) if of else None for of in tools]
    rows = rows.with_columns(preset=pl.Series(names, dtype=pl.String))
    order = [pl.col("departures") > 0, pl.col("preset").is_null()]
    rows = rows.sort(*([] if fits else [pl.col("difference").abs()]), *order, maintain_order=True)
    of_presets = len(held) * math.prod(of.share(of.rows.head(1)) for of in cells)
    return _Classes(rows if fits else rows.head(_NEAREST), fits, _chance(cells), min(1, of_presets))


def _joined(frames: Sequence[pl.DataFrame]) -> pl.DataFrame:
    """Combine the classes of metrics that share the other choices."""
    named = [
        frame.rename({name: f"{name} {place}" for name in frame.columns if name != "shared"})
        for place, frame in enumerate(frames)
    ]
    return reduce(lambda x, y: x.join(y, on="shared"), named)


def _chance(cells: Sequence[_Cells]) -> float:
    """Return at most how often numbers between the least and the greatest values would fit."""
    if len(cells) == 1:
        return cells[0].share(cells[0].rows)
    parts = [of.rows.partition_by("shared", as_dict=True) for of in cells]
    seen: dict[tuple[tuple[int, ...], ...], float] = {}
    for shared in parts[0]:
        rows = [part[shared] for part in parts if shared in part]
        if len(rows) == len(cells):
            key = tuple(tuple(of["kind"].sort()) for of in rows)
            seen[key] = math.prod(of.share(row) for of, row in zip(cells, rows, strict=True))
    return min(1, sum(seen.values()))


# ------------------------------------------------------------------ in words and code


def _conventions(grids: Sequence[Grid], row: Mapping[str, Any]) -> list[dict[str, object]]:
    """Return the choices of each metric in a class."""
    return [
        grid.choices(row["shared"] * len(grid.labels) + row[f"label {place}"])
        for place, grid in enumerate(grids)
    ]


def _words(
    grids: Sequence[Grid],
    classes: Sequence[Mapping[str, object]],
    than: Sequence[Mapping[str, object]],
) -> str:
    """Write the choices in which conventions differ from others, first those of each metric."""
    texts: list[str] = []
    shared: Mapping[str, object] = {}
    for grid, choices, others in zip(grids, classes, than, strict=True):
        differing = convention_words.departures(choices, others)
        own = {name: value for name, value in differing.items() if name in grid.parameters[0]}
        shared = {name: value for name, value in differing.items() if name not in own}
        if own:
            metric = f"{grid.label}: " if len(grids) > 1 else ""
            texts.append(metric + convention_words.words(own))
    return (", " if len(grids) == 1 else "; ").join(
        [*texts, *([convention_words.words(shared)] if shared else [])]
    )


class _Caller(NamedTuple):
    """What the caller passed, as code names it."""

    run: object
    truth: object
    options: Mapping[str, Any]


def _code(
    caller: _Caller, grids: Sequence[Grid], row: Mapping[str, Any], verb: str = "evaluate"
) -> str:
    """Write the call that has the conventions of a class, with the names run and truth."""
    axes, choices = grids[0].axes, _conventions(grids, row)[0]
    texts = [grid.labels[row[f"label {place}"]] for place, grid in enumerate(grids)]
    own = {"preset", "users", *_UNSET}
    options = {name: value for name, value in caller.options.items() if name not in own}
    run, single = "run", choices["ties"] == SINGLE
    moved = choices["ranks"] != 1
    if axes.is_scored and (moved or choices["ties"] not in (SINGLE, "item")):
        roles = {n: x for n, x in options.items() if n in keywords.ROLES and n != "rank"}
        ties = {} if choices["ties"] in (SINGLE, "item") else {"ties": choices["ties"]}
        more = {"truth": caller.truth} if choices["ties"] in rank_order.BY_GRADE else {}
        more |= {"preset": {"single_precision": True}} if single else {}
        if axes.own["duplicates"] != "error":
            more["duplicates"] = axes.own["duplicates"]
        run = f"rf.with_rank({_arguments(['run'], {**ties, **more, **roles})})"
        options.pop("score", None)
        single = False
    if moved:
        rank = options.get("rank", "rank")
        is_polars = isinstance(caller.run, pl.DataFrame | pl.LazyFrame | Mapping)
        run += (
            f".with_columns(pl.col({rank!r}) + 1)"
            if is_polars
            else f".assign(**{{{rank!r}: lambda table: table[{rank!r}] + 1}})"
        )
    options = {"truth": caller.truth, **options}
    if choices["users"] != axes.default:
        options["users"] = choices["users"]
    options |= {name: choices[name] for name, unset in _UNSET.items() if choices[name] != unset}
    if single:
        options["preset"] = {"single_precision": True}
    return f"rf.{verb}({_arguments([run, *map(repr, texts)], options)})"


def _arguments(texts: Sequence[str], options: Mapping[str, Any]) -> str:
    """Write the arguments of a call; tables have the names of their keywords."""
    simple = (str, int, float, list, tuple, type(None))
    passed = {
        n: repr(x) if isinstance(x, simple) or n == "preset" else n for n, x in options.items()
    }
    return ", ".join(
        [*texts, *(f"{n}={x}" for n, x in passed.items() if (n, x) != ("truth", "None"))]
    )


def _frame(classes: _Classes, grids: Sequence[Grid], caller: _Caller) -> pl.DataFrame:
    rows = [*classes.rows.iter_rows(named=True)]
    yours = [grid.choices(0) for grid in grids]
    values = [pl.col(f"value {place}").alias(grid.label) for place, grid in enumerate(grids)]
    return classes.rows.select(
        "preset",
        pl.Series(
            "words", [_words(grids, _conventions(grids, row), yours) for row in rows], pl.String
        ),
        pl.Series("call", [_code(caller, grids, row) for row in rows], pl.String),
        *values,
        "difference",
        "departures",
        "equivalent",
        pl.lit(classes.fits).alias("fits"),
    )


def _choices(grids: Sequence[Grid]) -> pl.DataFrame:
    """Return what each single choice changes, the greatest change first."""
    rows: list[dict[str, object]] = []
    for grid in grids:
        yours, own = grid.choices(0), grid.own["value"]
        for convention, value in (
            grid.values.filter(pl.col("departures") == 1).select("convention", "value").iter_rows()
        ):
            other = convention_words.departures(grid.choices(convention), yours)
            for name in other:
                change = None if own is None else value - own
                rows.append(
                    {
                        "metric": grid.label,
                        "choice": name,
                        "words": convention_words.words(other),
                        "value": value,
                        "change": change,
                    }
                )
    text = dict.fromkeys(("metric", "choice", "words"), pl.String)
    frame = pl.DataFrame(rows, {**text, "value": pl.Float64, "change": pl.Float64})
    return frame.sort(pl.col("change").abs(), descending=True, nulls_last=True, maintain_order=True)


def _sentence(classes: _Classes, grids: Sequence[Grid], printed: Sequence[_Printed]) -> str:
    """Say what the numbers are, what the caller's are, and how often chance would fit."""
    several, names = len(grids) > 1, ", ".join(grid.label for grid in grids)
    pairs = zip(printed, grids, strict=True)
    numbers = " and ".join(
        f"{number} ({grid.label})" if several else str(number) for number, grid in pairs
    )
    row = classes.rows.row(0, named=True)
    theirs, yours = _conventions(grids, row), [grid.choices(0) for grid in grids]
    words = _words(grids, theirs, yours) or "your convention"
    own = ", ".join(
        _text_of(grid.own["value"], number) for grid, number in zip(grids, printed, strict=True)
    )
    yours_is = f"Yours ({own}): {_words(grids, yours, theirs)}{_more_users(grids, row)}."
    if not classes.fits:
        nearest = f"the nearest is {abs(row['difference']):.2g} away: {words}{_tools(row)}"
        return f"No convention of {names} gives {numbers}; {nearest}. {yours_is} {_hint(grids)}"
    others = classes.rows.height - 1
    more = f" {others:,} other class{'es' * (others > 1)} of conventions fit{'s' * (others == 1)}."
    more = more if others else ""
    if row["departures"] == 0:
        return (
            f"{numbers} {'are' if several else 'is'} {names} as you compute it{_tools(row)}.{more}"
        )
    by_preset = row["preset"] is not None
    verb = "explained by" if by_preset or several else "consistent with"
    chance = classes.of_presets if by_preset else classes.chance
    return (
        f"{numbers} {'are' if several else 'is'} {verb} {names}: {words}{_tools(row)}. {yours_is}"
        f"{more} {_percent(chance)} of numbers drawn at random from the spread would fit "
        f"{'a preset' if by_preset else 'some convention'}."
    )


def _percent(share: float) -> str:
    return "Less than 0.1%" if share < 0.001 else f"{share:.1%}"


def _text_of(value: float | None, like: _Printed) -> str:
    return "no value" if value is None else f"{value:.{like.digits}f}"


def _tools(row: Mapping[str, Any]) -> str:
    if row["preset"] is None:
        return ""
    names = row["preset"].split(", ")
    more = f" and {len(names) - _MOST_TOOLS} more" if len(names) > _MOST_TOOLS else ""
    return f" (the convention of {', '.join(names[:_MOST_TOOLS])}{more})"


def _more_users(grids: Sequence[Grid], row: Mapping[str, Any]) -> str:
    """Say how many users more or fewer the caller counts than a class."""
    theirs, own = row["users 0"], grids[0].own["users"]
    if own is None or own == theirs:
        return ""
    number = abs(own - theirs)
    return f", {number:,} user{'s' * (number > 1)} {'more' if own > theirs else 'fewer'}"


def _hint(grids: Sequence[Grid]) -> str:
    names = {name for change in grids[0].axes.changes for name in change}
    order = "the order of equal scores" if "ties" in names else "the order of the lists"
    return f"The tables may differ: other users or items, repeated items, or {order}."
