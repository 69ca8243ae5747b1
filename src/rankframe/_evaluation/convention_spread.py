"""How far the value of a metric depends on its convention: a row per choice (``conventions``)."""

from __future__ import annotations

from typing import Unpack

import polars as pl

from rankframe._evaluation import convention_words
from rankframe._evaluation.conventions import Grid, grids
from rankframe._request import keywords
from rankframe._request.keywords import Options
from rankframe._request.question import ask
from rankframe._request.types import FrameT, Runs, Truth
from rankframe._tables import adapters, rules, run_dicts

_ALL = "all"
_SAME = 1e-12  # values that differ by less are equal
_OTHER = "other "  # prefix of the columns of the second system of a pair
#: Names of columns of the result, and of those that it is made of.
_TAKEN = (
    *("choice", "least", "value", "greatest", "least_setting", "greatest_setting", "width"),
    *("conventions", "turned", f"{_OTHER}value", "convention", "departures", "users", "label"),
    *("own", "place", "undefined", "average", "change"),
)


@adapters.takes_any_frame
def conventions(
    frame: Runs[FrameT],
    metric: str,
    /,
    *,
    truth: Truth | None = None,
    **options: Unpack[Options],
) -> FrameT:
    """Return how much the value of a metric depends on its conventions, and whether systems swap
    places.

    Parameters
    ----------
    frame
        A judged table, or a run with its ``truth``; or a dict of these by name: see ``runs.stack``.
        A LazyFrame is computed at the call, and the result is lazy.
    metric
        The label of a metric, such as ``"ndcg@10"``.
    truth
        The relevant items: the columns user, item and relevance, which is 1 in every row if the
        column is missing. Or a dict, as ``from_grades`` takes it, or the column of relevant items
        beside lists.
    **options
        The keywords of ``evaluate`` that you use yourself, and columns' roles: see
        ``rankframe.typing.Options``. Other conventions depart from these.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per system and choice, with systems in your order. The first is ``"all"``, over
        every convention of ``rf.explain``; then come single choices, with all others as yours, the
        greatest width first:

        - if there are several systems, the system (in the column of the model)
        - ``choice`` (String): a parameter of the metric, such as ``"gain"``, or ``"users"``,
          ``"undefined"``, ``"average"``, ``"relevant_at"``, ``"ties"``, ``"duplicates"``,
          ``"depth"``, ``"unjudged"`` or ``"ranks"``; those without another value have no row
        - ``least``, ``value``, ``greatest`` (Float64): yours is ``value``, null if it is undefined
        - ``least_setting``, ``greatest_setting`` (String): what gives them, in words; for
          ``"all"``, the fewest departures from yours that do
        - ``width`` (Float64): greatest − least
        - ``conventions`` (Int64): the number of conventions that have a value, with yours
        - ``turned`` (List of String), if there are several systems: those that are above this one
          under some of these conventions and below it under others; empty if there are none

    Raises
    ------
    RankingDataError
        If the column of the systems has the name of one of the result.
    ValueError
        If there are several metrics, or the metric is not a label.

    Notes
    -----
    Values under several conventions are not a sample: the width is not an interval, and says
    nothing about other users. Values that differ by less than 1e-12 are equal.

    Examples
    --------
    >>> run = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abab"], "rank": [1, 2, 1, 2]})
    >>> truth = pl.DataFrame({"user": [1, 2, 3], "item": [*"bab"]})
    >>> runs = {"new": run, "old": run.filter(user=2)}
    >>> spread = rf.stats.conventions(runs, "rr", truth=truth).filter(model="new")
    >>> spread.select("choice", "least", "value", "greatest", "turned")
    shape: (4, 5)
    ┌───────────┬──────────┬───────┬──────────┬───────────┐
    │ choice    ┆ least    ┆ value ┆ greatest ┆ turned    │
    │ ---       ┆ ---      ┆ ---   ┆ ---      ┆ ---       │
    │ str       ┆ f64      ┆ f64   ┆ f64      ┆ list[str] │
    ╞═══════════╪══════════╪═══════╪══════════╪═══════════╡
    │ all       ┆ 0.277778 ┆ 0.5   ┆ 0.75     ┆ ["old"]   │
    │ users     ┆ 0.5      ┆ 0.5   ┆ 0.75     ┆ ["old"]   │
    │ ranks     ┆ 0.277778 ┆ 0.5   ┆ 0.5      ┆ []        │
    │ undefined ┆ 0.5      ┆ 0.5   ┆ 0.5      ┆ []        │
    └───────────┴──────────┴───────┴──────────┴───────────┘
    """
    run, by, options = run_dicts.as_frame(frame, (), options)
    table = adapters.to_polars(run, "run").lazy().collect()
    several = by if by and table[by[0]].n_unique() > 1 else []
    rules.raise_if_taken("conventions", _TAKEN, several)
    settings = keywords.read_options(options, takes_average=True)
    if adapters.is_frame(truth):
        truth = adapters.to_polars(truth, "truth").lazy().collect()
    (grid,) = grids(ask(table, [metric], truth, several, settings))
    systems = table.select(several).unique(maintain_order=True)
    return adapters.to_caller_type(_spread(grid, systems).lazy(), like=run)


def _spread(grid: Grid, systems: pl.DataFrame) -> pl.DataFrame:
    """Reduce the values of all conventions to a row per system and choice."""
    by, value, number, rows = systems.columns, pl.col("value"), pl.col("convention"), _rows(grid)
    if by:
        rows = systems.join(rows, on=by, nulls_equal=True, maintain_order="left_right")
    close, width = value.round(12), value.max() - value.min()
    spread = rows.group_by(*by, "choice").agg(
        least=value.min(),
        value=value.filter(number == 0).first(),
        greatest=value.max(),
        least_setting=number.sort_by(close, "departures", number).first(),
        greatest_setting=number.sort_by(-close, "departures", number).first(),
        width=pl.when(width > _SAME).then(width).otherwise(0.0),
        conventions=pl.len().cast(pl.Int64),
    )
    spread = spread.sort(pl.col("choice") != _ALL, -pl.col("width"), "choice")
    ends = ("least_setting", "greatest_setting")
    spread = spread.with_columns(_in_words(grid, spread, name) for name in ends)
    if not by:
        return spread
    spread = spread.join(_turned(rows, by[0]), on=[*by, "choice"], how="left", nulls_equal=True)
    spread = systems.join(spread, on=by, nulls_equal=True, maintain_order="left_right")
    return spread.with_columns(pl.col("turned").fill_null(pl.lit([], pl.List(pl.String))))


def _turned(rows: pl.DataFrame, system: str) -> pl.DataFrame:
    """Name the systems that are above another under some conventions, and below under others."""
    other = rows.select("choice", "convention", pl.col(system, "value").name.prefix(_OTHER))
    pairs = rows.join(other, on=["choice", "convention"], maintain_order="left_right")
    gap, name = pl.col("value") - pl.col(f"{_OTHER}value"), pl.col(f"{_OTHER}{system}")
    turns = (gap.min() < -_SAME) & (gap.max() > _SAME)
    pairs = pairs.group_by(system, "choice", name, maintain_order=True).agg(turns.alias("value"))
    turned = pairs.filter("value").group_by(system, "choice", maintain_order=True)
    return turned.agg(name.cast(pl.String).alias("turned"))


def _rows(grid: Grid) -> pl.DataFrame:
    """Return the values of each choice, in which only this one is not the caller's, and of all."""
    own, names = grid.choices(0), dict[int, str]()
    for number in grid.values.filter(pl.col("departures") == 1)["convention"].unique():
        (names[number],) = convention_words.departures(grid.choices(number), own)
    pairs = [*names.items(), *((0, name) for name in {*names.values()})]
    choices = pl.DataFrame(pairs, {"convention": pl.Int64, "choice": pl.String}, orient="row")
    every = grid.values.with_columns(choice=pl.lit(_ALL))
    return pl.concat([every, grid.values.join(choices, on="convention")])


def _in_words(grid: Grid, spread: pl.DataFrame, name: str) -> pl.Series:
    """Write the settings of a column of conventions."""
    own, texts = grid.choices(0), list[str]()
    for choice, number in spread.select("choice", name).iter_rows():
        choices = grid.choices(number)
        departures = convention_words.departures(choices, own)
        of_row = departures if choice == _ALL else {choice: choices[choice]}
        texts.append(convention_words.words(of_row) or "your convention")
    return pl.Series(name, texts, pl.String)
