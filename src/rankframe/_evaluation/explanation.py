"""Explain a number: which conventions of its metric give it on these tables (``Explanation``)."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import reduce
from typing import Any, NamedTuple, Unpack, cast

import polars as pl

from rankframe._evaluation import convention_words, conventions
from rankframe._evaluation.conventions import PRINTED, SINGLE, Grid, Printed
from rankframe._request import keywords, labels
from rankframe._request.keywords import Options
from rankframe._request.question import Question, ask
from rankframe._request.types import Frame, Runs, Truth
from rankframe._tables import adapters, rank_order, run_dicts
from rankframe.errors import RankingDataError, option, table_code

_NEAREST = 3  # rows where no convention fits
_MOST_ROWS = 10  # in print
_RARE = 0.01  # up to this chance, a preset that fits explains a number
_SAME = 1e-12  # values that differ by less are one
_SHOWN_DIGITS = 4
_MOST_TOOLS = 3  # in a sentence
_SHOWN: Mapping[str, Any] = {
    "tbl_rows": 20,
    "tbl_cols": -1,
    "tbl_width_chars": 1000,
    "fmt_str_lengths": 120,
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
        with pl.Config(**_SHOWN, tbl_hide_column_data_types=True):
            table = str(self.frame.drop("call").head(_MOST_ROWS))
        return f"{self.sentence}\n{table}\n{self._rest}{self.frame['call'][0]}"

    def _repr_html_(self) -> str:
        with pl.Config(**_SHOWN):
            table = self.frame.head(_MOST_ROWS)._repr_html_()  # pyright: ignore
        return f"<p>{html.escape(self.sentence)}</p>\n{table}{self._rest}"

    @property
    def _rest(self) -> str:
        more = len(self.frame) - _MOST_ROWS
        return f"and {more:,} more: see .frame\n" if more > 0 else ""


class _Number(NamedTuple):
    """A number of a metric, as it was printed."""

    value: float
    digits: int
    text: str
    is_cut: bool = False  # off, not rounded

    @property
    def half(self) -> float:
        """How far a value that is printed like this may be away."""
        return _half(self.digits)


def _half(digits: int) -> float:
    return 0.5 * 10.0**-digits * (1 + 1e-9) + _SAME


@adapters.takes_arrow
def explain(
    number: float | Decimal | Mapping[str, float | Decimal] | Frame,
    metric: str | Runs[Frame],
    run: Runs[Frame] | None = None,
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
        What someone printed, such as 0.3812. Or, without ``metric``, several numbers of one tool by
        their labels, such as ``{"ndcg@10": 0.3812, "map": 0.21}``, or a frame of values per user:
        the column of the user, and one per label, as ``per_user`` returns it.
    metric
        The label of the number, such as ``"ndcg@10"``.
    run
        A judged table, or a run with its ``truth``, of one system. A LazyFrame is computed at once.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    digits
        Decimal places of the number, if zeros at its end were cut: 0.38 may be 0.3800, or
        ``Decimal("0.3800")``. By default those that it shows; for values per user, the most that
        any of them shows.
    **options
        The keywords of ``evaluate`` that you use yourself, and columns' roles: see
        ``rankframe.typing.Options``. Other conventions depart from these.

    Returns
    -------
    Explanation
        ``.sentence`` says what the number is, and what yours is. ``.frame`` (polars) has a row per
        class of conventions with the same values on these tables: those that give the number, or,
        if none does, the nearest three. Yours comes first, then those of tools, then those with the
        fewest departures. Its columns are

        - ``preset`` (String): the tools with this convention, null if none is known
        - ``words`` (String): its departures from yours
        - ``call`` (String): code that gives the value, with the names run and truth
        - a column per metric (Float64)
        - ``difference`` (Float64): the value minus the number; for several numbers, the greatest
        - ``departures`` (Int64): the choices that differ from yours
        - ``equivalent`` (Int64): the conventions in the class
        - ``fits`` (Boolean)

        ``.choices`` has a row per single choice: ``metric``, ``choice`` and ``words`` (String),
        ``value`` and ``change`` (Float64), the value with this choice alone, minus yours.

        Values per user fit a convention that gives the value of each user. If some convention
        counts exactly these users, others do not fit. Then the column of the metric is the mean
        over all its users, ``difference`` is the number of users with another value, and ``.users``
        lists them for the first row: the user, ``metric`` (String), ``printed`` and ``value``
        (Float64).

        A value fits if it rounds to the number. A convention sets each parameter of the metric that
        has named values (not the cut-off), ``users``, ``undefined`` (null, 0, 1) and ``average``
        (pooled), and makes at most one change to the tables: another ``relevant_at``, order of
        equal scores, ``duplicates`` or ``depth``, ``unjudged="drop"``, or all ranks one lower. The
        conventions of presets are among them. A single number that no preset gives is called
        "consistent with" a convention, since one of so many may fit by chance. So is a number if
        more than 1% of random numbers between the least and the greatest value would fit as well;
        the sentence says how many. If nothing fits, the number may have been cut off, such as
        0.6416 for 0.641667: then a value fits if it begins with the number.

    Raises
    ------
    ValueError
        If the metric cannot have this value, or ``digits`` is not a whole number.
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
    table: Any = metric if run is None else run
    printed: Mapping[str, _Number | Printed]
    if run is not None:
        label = _label(metric)
        printed = {label: _read(label, number, digits)}
    elif adapters.is_frame(number):
        printed = _read_values(number, digits, options)
    elif adapters.is_dict(number) and number:
        printed = {_label(name): _read(name, value, digits) for name, value in number.items()}
    else:
        msg = (
            "explain takes a number, its label and the run, as in explain(0.3812, 'ndcg@10', run, "
            f"truth=truth), a dict of numbers, or a frame of values per user, not {number!r} alone"
        )
        raise TypeError(msg)
    caller = _Caller(table, truth, options, "per_user" if adapters.is_frame(number) else "evaluate")
    question, grids = _asked(
        table,
        printed=printed,
        can_rank=_can_rank(caller),
        of_dict=adapters.is_dict(table),
        truth=truth,
        **options,
    )
    numbers = [*printed.values()]
    classes = _classes(grids, numbers)
    if not classes.fits:
        cut = [n._replace(is_cut=True) if isinstance(n, _Number) else n for n in numbers]
        if (of_cut := _classes(grids, cut)).fits:
            classes, numbers = of_cut, cut
    users = _users(question, grids, classes.rows.row(0, named=True), numbers)
    sentence = _sentence(classes, grids, numbers)
    return Explanation(sentence, _frame(classes, grids, caller), _choices(grids), users)


# ------------------------------------------------------------------ what was printed


def _label(metric: object) -> str:
    """Check that a metric is a label."""
    if not isinstance(metric, str):
        msg = f"explain takes the label of a number, such as 'ndcg@10', not {type(metric).__name__}"
        raise TypeError(msg)
    return metric


def _read(label: str, number: Any, digits: int | None) -> _Number:
    """Check a number, and read its digits."""
    is_number = keywords.is_number(number) or isinstance(number, Decimal)
    if not is_number or not math.isfinite(number):
        simple = isinstance(number, str | int | float | Decimal | None)
        what = repr(number) if simple else type(number).__name__
        msg = f"metric {label!r}: the number must be finite, such as 0.3812, not {what}"
        raise (ValueError if isinstance(number, float) else TypeError)(msg)
    value = _Number(
        float(number), _places(number) if digits is None else _whole(digits), str(number)
    )
    traits = labels.traits_of_name(label)
    if not traits.least - value.half <= value.value <= traits.greatest + value.half:
        share = Decimal(str(number)) / 100
        msg = (
            f"metric {label!r}: {number} is outside of its range, "
            f"{traits.least:g} to {traits.greatest:g}"
        )
        msg += f": pass {share}, if it is in percent" if 0 <= share <= traits.greatest == 1 else ""
        raise ValueError(msg)
    return value


def _places(number: object) -> int:
    """Count the decimal places that a number shows."""
    return max(0, -cast("int", Decimal(str(number)).as_tuple().exponent))


def _whole(digits: object) -> int:
    return keywords.whole_number("digits", digits, least=0)


def _read_values(
    frame: Frame, digits: int | None, options: Mapping[str, Any]
) -> dict[str, Printed]:
    """Check a frame of values per user, and read it by its labels."""
    opened = adapters.to_polars(frame, "frame of values").lazy().collect()
    user, model = options.get("user", "user"), options.get("model", keywords.MODEL)
    names = [name for name in opened.columns if name not in (user, model)]
    if not isinstance(user, str) or user not in opened.columns or not names:
        has = ", ".join(map(repr, opened.columns))
        msg = (
            f"frame of values: no column {user!r} of users beside one per label; it has {has}: "
            f"name it with {option('user')}"
        )
        raise RankingDataError(msg)
    if opened[user].has_nulls() or opened[user].is_duplicated().any():
        msg = f"frame of values, column {user!r}: a null, or a user who comes twice: drop the row"
        raise RankingDataError(msg)
    printed: dict[str, Printed] = {}
    for name in names:
        if not (opened.schema[name].is_numeric() or opened.schema[name] == pl.Null):
            msg = (
                f"frame of values, column {name!r}: it is {opened.schema[name]}: cast it to Float64"
            )
            raise RankingDataError(msg)
        labels.parse_metrics([name], per_user=True)
        numbers = opened[name].cast(pl.Float64).fill_nan(None)
        most = max(map(_places, numbers.drop_nulls()), default=0)
        values = opened.select(user, numbers.alias(PRINTED))
        printed[name] = Printed(values, _half(most if digits is None else _whole(digits)))
    return printed


def _can_rank(caller: _Caller) -> bool:
    """Whether code can rank the run: a table without lists, or a dict of scores."""
    run = caller.run
    if adapters.is_dict(run):
        return True
    names = adapters.column_names(run, "run") if adapters.is_frame(run) else []
    has_lists = any(adapters.has_lists(cast("Frame", run), name) for name in names)
    return not (has_lists or isinstance(caller.truth, str))


@adapters.takes_any_frame
def _asked(
    run: Runs[Frame],
    /,
    *,
    printed: Mapping[str, Any],
    can_rank: bool,
    of_dict: bool,
    truth: Truth | None = None,
    **options: Unpack[Options],
) -> tuple[Question, list[Grid]]:
    """Compute all conventions of one system."""
    run, by, options = run_dicts.as_frame(run, (), options)
    frame = adapters.to_polars(run, "run").lazy().collect()
    if by and (number := frame[by[0]].n_unique()) > 1:
        name, first = by[0], frame[by[0]][0]
        cure = table_code(
            "run", f".filter(pl.col({name!r}) == {first!r})", f"[run[{name!r}] == {first!r}]"
        )
        msg = f"run, column {name!r}: {number:,} systems, and explain takes one"
        raise RankingDataError(f"{msg}: pass one of the dict" if of_dict else msg + cure)
    if adapters.is_frame(truth):
        truth = adapters.to_polars(truth, "truth").lazy().collect()
    settings = keywords.read_options(options, takes_average=True)
    values = [value for value in printed.values() if isinstance(value, Printed)]
    question = ask(frame, [*printed], truth, (), settings, per_user=bool(values))
    has_ranks = options.get("rank", "rank") in frame.columns
    can_rank = can_rank and not (of_dict and has_ranks)
    return question, conventions.grids(question, values, can_rank=can_rank)


def _users(
    question: Question, grids: Sequence[Grid], row: Mapping[str, Any], printed: Sequence[Any]
) -> pl.DataFrame | None:
    """Return the users whose printed values a class does not give."""
    frames: list[pl.DataFrame] = []
    for place, (grid, values) in enumerate(zip(grids, printed, strict=True)):
        if not isinstance(values, Printed):
            return None
        number = row["shared"] * len(grid.labels) + row[f"label {place}"]
        of_class = conventions.values_of_users(question, grid, number)
        (user, _), text, value = of_class.columns, pl.col(PRINTED), pl.col("value")
        texts = values.values.with_columns(pl.col(user).cast(of_class.schema[user], strict=False))
        fits = ((value - text).abs() <= values.half).fill_null(value.is_null() & text.is_null())
        other = texts.join(of_class, on=user, how="left", maintain_order="left").filter(~fits)
        metric = pl.lit(grid.label).alias("metric")
        frames.append(other.select(user, metric, text.alias("printed"), value))
    return pl.concat(frames)


# ------------------------------------------------------------------ classes


class _Cells(NamedTuple):
    """The values of a metric: a row per class of labels that share the other choices."""

    rows: pl.DataFrame
    presets: Mapping[str, tuple[int, int]]  # what each shares, and its class
    half: float
    least: float
    greatest: float

    def share(self, kinds: pl.DataFrame) -> float:
        """Return how often a number between the least and the greatest value meets a class."""
        width, values = 2 * self.half, kinds["value"].sort()
        gaps = map(float, values.diff().drop_nulls())
        return (sum(min(gap, width) for gap in gaps) + width) / (self.greatest - self.least + width)


def _cells(grid: Grid, printed: _Number | Printed) -> _Cells:
    first, values = grid.parameters[0], grid.values
    own = [sum(of[name] != first[name] for name in first) for of in grid.parameters]
    label, kind = pl.col("convention") % len(grid.labels), pl.col("value")
    if isinstance(printed, Printed):
        kind, number = pl.col("mark"), len(printed.values)
        is_whole = values.filter(more=0, users=number).height > 0  # a convention has these users
        miss = (pl.col("misses") + pl.col("more") * is_whole).cast(pl.Float64)
        fits = miss == 0
    else:
        miss = kind - printed.value
        fits = (miss - printed.half * printed.is_cut).abs() <= printed.half
    step = pl.max_horizontal(kind.abs(), 1) * _SAME
    cells = values.sort(kind, "convention").with_columns(
        shared=pl.col("convention") // len(grid.labels),
        label=label,
        own=label.replace_strict(dict(enumerate(own)), return_dtype=pl.Int64),
        kind=(kind.diff() > step).cum_sum().fill_null(0),
        miss=miss,
        fits=fits,
        unnamed=~pl.col("convention").is_in([*grid.presets.values()]),
    )
    places = dict(zip(cells["convention"], cells.select("shared", "kind").iter_rows(), strict=True))
    presets = {name: places[number] for name, number in grid.presets.items() if number in places}
    columns = ("label", "own", "unnamed", "departures", "value", "miss", "fits", "users")
    simplest = [pl.col(name).sort_by("own", "unnamed", "label").first() for name in columns]
    rows = cells.group_by("shared", "kind").agg(simplest, equivalent=pl.len().cast(pl.Int64))
    least, greatest = cells.select(pl.col("value").min(), b=pl.col("value").max()).row(0)
    # a number that is cut off had a second chance, half of which is the first
    half = printed.half * (1.5 if _is_cut(printed) else 1)
    return _Cells(rows, presets, half, least, greatest)


class _Classes(NamedTuple):
    """The classes of conventions that fit, or the nearest, and how often chance would fit."""

    rows: pl.DataFrame
    fits: bool
    chance: float
    of_presets: float  # the same, of their values alone


def _classes(grids: Sequence[Grid], printed: Sequence[_Number | Printed]) -> _Classes:
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
    verb: str


def _code(caller: _Caller, grids: Sequence[Grid], row: Mapping[str, Any]) -> str:
    """Write the call that has the conventions of a class, with the names run and truth."""
    axes, choices = grids[0].axes, _conventions(grids, row)[0]
    texts = [grid.labels[row[f"label {place}"]] for place, grid in enumerate(grids)]
    own = {"preset", "users", *_UNSET}
    options = {name: value for name, value in caller.options.items() if name not in own}
    run, single = "run", choices["ties"] == SINGLE
    moved = choices["ranks"] != 1
    if axes.is_scored and (moved or choices["ties"] not in (SINGLE, "item")):
        of_truth = ("truth_user", "truth_item") if choices["ties"] in rank_order.BY_GRADE else ()
        names = {*keywords.ROLES, *of_truth} - {"rank"}
        roles = {name: value for name, value in options.items() if name in names}
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
    return f"rf.{caller.verb}({_arguments([run, *map(repr, texts)], options)})"


def _arguments(texts: Sequence[str], options: Mapping[str, Any]) -> str:
    """Write the arguments of a call; tables have the names of their keywords."""
    written: list[str] = [*texts]
    for name, value in options.items():
        is_table = (
            not isinstance(value, str | int | float | list | tuple | None) and name != "preset"
        )
        if is_table or (name, value) != ("truth", None):
            written.append(f"{name}={name}" if is_table else f"{name}={cast('object', value)!r}")
    return ", ".join(written)


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


def _sentence(
    classes: _Classes, grids: Sequence[Grid], printed: Sequence[_Number | Printed]
) -> str:
    """Say what the numbers are, what the caller's are, and how often chance would fit."""
    row, names = classes.rows.row(0, named=True), ", ".join(grid.label for grid in grids)
    theirs, yours = _conventions(grids, row), [grid.choices(0) for grid in grids]
    numbers, of_users = _numbers(grids, printed), isinstance(printed[0], Printed)
    words = _words(grids, theirs, yours) or "your convention"
    own = ", ".join(map(_own, grids, printed))
    yours_is = f"Yours ({own}): {_words(grids, yours, theirs)}{_more_users(grids, row)}."
    if not classes.fits:
        away = f"{row['difference']:,.0f} values differ" if of_users else ""
        away = away or f"{abs(row['difference']):.2g} away"
        nearest = f"the nearest ({away}): {words}{_tools(row)}."
        nearest += f" {yours_is}" if row["departures"] else ""
        return f"No convention of {names} gives {numbers}; {nearest} {_hint(grids)}"
    others = classes.rows.height - 1
    more = f" {others:,} other class{'es' * (others > 1)} of conventions fit{'s' * (others == 1)}."
    more = more if others else ""
    verb = "are" if of_users or len(grids) > 1 else "is"
    if row["departures"] == 0:
        text = f"{numbers} {verb} {names} as you compute it{_tools(row)}.{more}"
        return text[:1].upper() + text[1:]
    by_preset = row["preset"] is not None
    chance = classes.of_presets if by_preset else classes.chance
    is_rare = verb == "are" or (by_preset and chance <= _RARE)
    verb += " explained by" if is_rare else " consistent with"
    what = f" {names}" if len(grids) == 1 else ""
    text = f"{numbers} {verb}{what}: {words}{_tools(row)}. {yours_is}{more}"
    if of_users:
        return text[:1].upper() + text[1:]
    what = "a preset" if by_preset else "some convention"
    share = "Less than 0.1%" if chance < 0.001 else f"{chance:.1%}"
    return f"{text} {share} of numbers drawn at random from the spread would fit {what}."


def _numbers(grids: Sequence[Grid], printed: Sequence[_Number | Printed]) -> str:
    """Write what was printed."""
    texts: list[str] = []
    for grid, value in zip(grids, printed, strict=True):
        if isinstance(value, Printed):
            return f"the values of {len(value.values):,} users"
        text = max(value.text, f"{value.value:.{value.digits}f}", key=len)
        texts.append(text + f" ({grid.label})" * (len(grids) > 1))
    return convention_words.enumeration(texts) + ", cut off and not rounded," * _is_cut(printed[0])


def _is_cut(printed: _Number | Printed) -> bool:
    return isinstance(printed, _Number) and printed.is_cut


def _own(grid: Grid, printed: _Number | Printed) -> str:
    """Write the caller's own value."""
    if grid.own["value"] is None:
        return "no value"
    if isinstance(printed, Printed):
        return f"{len(printed.values) - grid.own['misses']:,} of {len(printed.values):,} values"
    return f"{grid.own['value']:.{max(printed.digits, _SHOWN_DIGITS)}f}"


def _tools(row: Mapping[str, Any]) -> str:
    if row["preset"] is None:
        return ""
    names = row["preset"].split(", ")
    if (more := len(names) - _MOST_TOOLS) > 0:
        names = [*names[:_MOST_TOOLS], f"{more} more"]
    return f" (the convention of {convention_words.enumeration(names)})"


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
