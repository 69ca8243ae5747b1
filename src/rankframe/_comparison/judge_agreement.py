"""Compares judges: judgments of several in, their agreement on grades and on systems out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import inf, isnan
from typing import TYPE_CHECKING, Any, Unpack, cast

import polars as pl

from rankframe._comparison import notes, summaries, system_agreement, system_pairs
from rankframe._comparison.decision import Estimate
from rankframe._comparison.packages import np
from rankframe._comparison.trials import ONE_USER, Trial
from rankframe._evaluation import evaluation
from rankframe._inputs import dicts
from rankframe._request import keywords, labels
from rankframe._request.keywords import Columns, Options
from rankframe._request.labels import Metric
from rankframe._request.types import Frame, FrameT, Runs, Types
from rankframe._tables import adapters, column_roles, readers, rules, run_dicts
from rankframe._tables.table import Table
from rankframe.errors import RankingDataError

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array

_MEASURES = ("exact", "bias", "kappa", "kappa_linear", "kappa_quadratic", "alpha")
#: The last columns are the answer, which narrow prints show.
_MADE: Types = {
    **dict.fromkeys(("users", "pairs", "unpaired"), pl.Int64()),
    "note": pl.String(),
    **dict.fromkeys(("value", "ci_low", "ci_high"), pl.Float64()),
}
_OWN, _BASE = (f"__rankframe_{name}" for name in ("own", "base"))
#: More grades than of a scale from 0 to 100 are measurements, and no categories.
_MOST_GRADES = 101
#: Cells of the tables of users that are in memory at once.
_CELLS = 1_000_000
_ROUNDING = 1e-12  # an error as small is none


@adapters.takes_arrow
def judges(
    judgments: Runs[FrameT],
    /,
    systems: Runs[Frame] | None = None,
    *metrics: Metric,
    judge: str = "judge",
    baseline: object = None,
    by: str | Sequence[str] = (),
    confidence: float = 0.95,
    confusion: bool = False,
    **options: Unpack[Options],
) -> FrameT:
    """
    Compare judges with one of them: on grades, on the order of systems, and on each metric.

    Parameters
    ----------
    judgments
        One row per judge, user and item: user, item, relevance and the column ``judge``; or a dict
        of the truths by judge, such as ``{"human": labels, "llm": answers}``, in which a column
        that is missing from a truth is null. A LazyFrame is computed at the call, and the result is
        lazy.
    systems
        The runs that are judged: a table with the column ``model``, or a dict of runs by name.
        Without them, only the grades are compared.
    *metrics
        Labels such as ``"ndcg@10"`` or expressions, of the systems.
    judge
        The column that names the judges.
    baseline
        The judge that the others are compared with, such as ``"human"``; by default the first one
        of a dict or an Enum. For a column of text, which has no order, name the baseline.
    by
        Columns of the judgments, such as a class of length or the place at which the judge saw the
        item. The segment of a pair is that of the judge's row, or where it is null, of the
        baseline's.
    confidence
        The probability that a single interval covers the true value.
    confusion
        Return the table of confusion instead.
    **options
        All other keywords of ``evaluate``, for the metrics, and the columns of both tables: see
        ``rankframe.typing.Options``.

    Returns
    -------
    DataFrame, LazyFrame or pandas.DataFrame
        One row per judge, segment and measure: the judge, segments…, ``measure``, ``users`` and
        ``pairs`` (of user and item, which both judged: all measures are of these), ``unpaired``
        (which only one of the two judged), ``note``, which explains why a value or its interval is
        null, ``value``, and its interval ``ci_low`` to ``ci_high``. The measures are

        - ``"exact"``, the share of pairs with equal grades
        - ``"bias"``, the mean of the judge's grade minus the baseline's: above 0, the judge is
          generous
        - ``"kappa"``, Cohen's κ = 1 − Σ w·observed / Σ w·expected, where w is 1 for two grades that
          differ; ``"kappa_linear"``, where it is their distance; ``"kappa_quadratic"``, its square
        - ``"alpha"``, Krippendorff's α of the two judges, for ordered grades

        With ``systems`` there are columns ``metric`` and ``model`` after ``measure``, null above,
        and for each metric ``"kendall_tau"`` and ``"tau_ap"`` of the order of systems, as
        ``stats.metric_agreement`` has them with the baseline as the truth; and per system
        ``"change"``, the mean under the judge − that under the baseline. These have no interval;
        they are null if a mean is, and τ if all systems tie.

        With ``confusion=True``: the judge, segments…, ``baseline_grade``, ``grade`` (of the judge)
        and ``pairs``, a row per two grades that a pair has.

    Raises
    ------
    RankingDataError
        If a judge judged an item of a user twice, a grade is null, there are more than 101 grades,
        or a column is missing.
    ValueError
        If the baseline is not a judge, or only one of systems and metrics is passed.

    Notes
    -----
    A distance is that of the grades themselves, so a grade that nobody gave has its place; they
    need not be integers. If both gave one and the same grade, κ and α are null: nothing could
    disagree. If one of them gave the same grade everywhere, κ is 0, and ``note`` says so.

    Grades of one user or query depend on each other. So an interval is Student's, with the
    jackknife's error over users: SE² = (n − 1)/n · Σ (value without one user − value)². It is null
    if all users leave the value as it is, as where the judges agree everywhere. If each user has
    one pair, it is near the large-sample error of J. L. Fleiss, J. Cohen and B. S. Everitt,
    *Psychological Bulletin* 72, 1969. Where ten pairs of each of 20 to 80 queries depend on each
    other, simulated intervals of κ cover in 93 to 95%, and those of that error in 78%. α: K.
    Krippendorff, *Content Analysis*, 2018.

    Metrics read the pairs that both judged, as the truth of each judge. Who counts is decided by
    each judge, as in ``evaluate``: a query with a relevant item for one of them alone counts only
    there. With ``users="judged", undefined=0.0`` all count for both.

    Examples
    --------
    >>> human = pl.DataFrame({"user": [1, 1, 2, 2], "item": [*"abab"], "relevance": [2, 0, 1, 0]})
    >>> llm = human.with_columns(relevance=pl.Series([2, 1, 2, 0]))
    >>> found = rf.stats.judges({"human": human, "llm": llm})
    >>> found.select("judge", "measure", "pairs", pl.col("value").round(3))
    shape: (6, 4)
    ┌───────┬─────────────────┬───────┬───────┐
    │ judge ┆ measure         ┆ pairs ┆ value │
    │ ---   ┆ ---             ┆ ---   ┆ ---   │
    │ str   ┆ str             ┆ i64   ┆ f64   │
    ╞═══════╪═════════════════╪═══════╪═══════╡
    │ llm   ┆ exact           ┆ 4     ┆ 0.5   │
    │ llm   ┆ bias            ┆ 4     ┆ 0.5   │
    │ llm   ┆ kappa           ┆ 4     ┆ 0.273 │
    │ llm   ┆ kappa_linear    ┆ 4     ┆ 0.5   │
    │ llm   ┆ kappa_quadratic ┆ 4     ┆ 0.692 │
    │ llm   ┆ alpha           ┆ 4     ┆ 0.708 │
    └───────┴─────────────────┴───────┴───────┘
    """
    keywords.check_confidence(confidence)
    summaries.check_packages()
    if (systems is None) != (not metrics):
        msg = 'systems and metrics go together: judges(judgments, systems, "ndcg@10")'
        raise ValueError(msg)
    segments = [name for name in keywords.group_names(by) if name != judge]
    frame, table = _read(judgments, judge, segments, options)
    pairs, keys = _pairs(table, Trial(baseline, needed_by="judges")), [judge, *segments]
    common = pairs.drop_nulls([_OWN, _BASE])
    grades = pl.concat([common[_OWN], common[_BASE]]).unique().sort()
    if len(grades) > _MOST_GRADES:
        msg = (
            f"judgments, column {table.relevance!r}: {len(grades):,} different grades, and at most "
            f"{_MOST_GRADES} can agree: round them, or cut them into classes"
        )
        raise RankingDataError(msg)
    if confusion:
        cells = common.group_by(*keys, baseline_grade=_BASE, grade=_OWN)
        counts = cells.agg(pairs=pl.len().cast(pl.Int64)).sort(pl.all(), nulls_last=True)
        as_given = pl.col("baseline_grade", "grade").cast(pairs.schema[str(table.relevance)])
        return adapters.to_caller_type(counts.with_columns(as_given).lazy(), like=frame)
    means = None
    if systems is not None and len(common):
        means = _means(common, table, systems, metrics, options)
    parts = {} if means is None else means.partition_by(keys, as_dict=True)
    rows: list[dict[str, Any]] = []
    for key, group in pairs.group_by(keys, maintain_order=True):
        both = group.drop_nulls([_OWN, _BASE])
        row: dict[str, Any] = dict(zip(keys, key, strict=True))
        row |= {"users": both[table.user].n_unique(), "pairs": len(both)}
        row |= {"unpaired": len(group) - len(both)}
        measured = [*_of_grades(both, table.user, grades, confidence)]
        if systems is not None:
            of_key = parts[key] if key in parts else _without_means(means, metrics)
            measured += _of_systems(of_key, len(both))
        rows += [row | numbers for numbers in measured]
    types: dict[str, Any] = {name: pairs.schema[name] for name in keys} | {"measure": pl.String}
    if systems is not None:
        model = pl.String if means is None else means.schema["model"]
        types |= {"metric": pl.String, "model": model}
    result = pl.DataFrame(rows, {**types, **_MADE}).fill_nan(None).lazy()
    return adapters.to_caller_type(notes.rendered(result), like=frame)


def _read(
    judgments: Runs[FrameT], judge: str, by: Sequence[str], options: Mapping[str, Any]
) -> tuple[FrameT, Table]:
    """Stack a dict of judges, and read the table: each judge judged an item of a user once."""
    roles = {role: options[role] for role in ("user", "item", "relevance") if role in options}
    roles |= {r: options[f"truth_{r}"] for r in ("user", "item") if f"truth_{r}" in options}
    frame: Any = judgments
    if adapters.is_dict(frame):
        columns = [str(roles.get(role, role)) for role in ("user", "item", "relevance")]
        opened: dict[str, Any] = {
            name: dicts.truth_of("truth", of, columns) if adapters.is_dict(of) else of
            for name, of in frame.items()
        }
        tables = {name: adapters.to_lazy(of, f"judgments {name!r}") for name, of in opened.items()}
        types = {name: dict(of.collect_schema()) for name, of in tables.items()}
        every = {column: dtype for of in types.values() for column, dtype in of.items()}
        every.pop(judge, None)  # a column that a judge has is an error
        grades = [n for n in (columns[2], *column_roles.COMMON_NAMES["relevance"]) if n in every]
        floats = [n for n in grades if any(n in of and of[n].is_float() for of in types.values())]
        for name, of in tables.items():
            lacking = [pl.lit(None, every[c]).alias(c) for c in every if c not in types[name]]
            whole = [n for n in floats if n in types[name] and types[name][n].is_integer()]
            tables[name] = of.with_columns(*lacking, pl.col(whole).cast(pl.Float64))
        stacked = run_dicts.with_names(tables, judge, "judge")
        frame = adapters.to_caller_type(stacked, like=next(iter(opened.values())))
        adapters.note_order(frame, judge, [*opened])
    rows: Any = adapters.to_polars(frame, "judgments").lazy().collect()
    if (order := adapters.order_of(frame)) is not None:
        rows = adapters.with_order_of_names(rows, *order)
    for name in (judge, *by):
        if name not in rows.columns:
            has = ", ".join(map(repr, rows.columns))
            msg = f"judgments: no column {name!r}; it has {has}"
            raise RankingDataError(msg)
    table = readers.read("truth", rows, [judge], cast("Columns", roles), reads=by)
    if table.relevance is None or table.subtopic is not None:
        has = "no column 'relevance'" if table.relevance is None else f"column {table.subtopic!r}"
        msg = f"judgments: {has}: agreement is of one grade per judge, user and item"
        raise RankingDataError(msg)
    rules.raise_in_tables([table])
    names = [*_MADE, "measure", "metric", "model", "baseline_grade", "grade"]
    rules.raise_if_taken("judges", names, [judge, *by])
    return frame, replace(table, by=[judge, *by])


def _pairs(table: Table, trial: Trial) -> pl.DataFrame:
    """Put the grades of each judge beside those of the baseline, which may lack a pair or have it.

    A pair has the columns of the judge's row, and where they are null, those of the baseline's.
    """
    judge, on = table.by[0], [table.user, table.item]
    rows = table.frame.collect()
    names = system_pairs.systems_in(rows, judge, trial)
    grade = pl.col(str(table.relevance)).cast(pl.Float64)
    base = rows.filter(pl.col(judge) == names.baseline).with_columns(grade.alias(_BASE))
    rows, judged = rows.with_columns(grade.alias(_OWN)), list[pl.DataFrame]()
    for name in names.systems.filter(names.systems != names.baseline):
        own = rows.filter(pl.col(judge) == name).join(base, on=on, how="full", coalesce=True)
        others = [pl.coalesce(n, f"{n}_right") for n in rows.columns if n not in (judge, *on, _OWN)]
        named = pl.lit(name, rows.schema[judge]).alias(judge)
        judged.append(own.select(named, *on, _OWN, _BASE, *others))
    return pl.concat(judged).sort(*table.by, *on, nulls_last=True)


def _of_grades(
    common: pl.DataFrame, user: str, grades: pl.Series, confidence: float
) -> Iterator[dict[str, Any]]:
    """Measure the agreement of two judges; its error is the jackknife's, over users."""
    values, users = grades.to_numpy(), summaries.places_of_users(common[user])
    size, number = len(values), common[user].n_unique()
    own, base = (np.searchsorted(values, common[name].to_numpy()) for name in (_OWN, _BASE))
    whole, step = np.zeros((size, size)), max(1, _CELLS // max(1, size**2))
    np.add.at(whole, (base, own), 1)
    of_all, squares = measures(whole, values), np.zeros(len(_MEASURES))
    for first in range(0, number, step):
        inside = (users >= first) & (users < first + step)
        others = np.tile(whole, (min(step, number - first), 1, 1))
        np.subtract.at(others, (users[inside] - first, base[inside], own[inside]), 1)
        squares += ((measures(others, values) - of_all) ** 2).sum(axis=0)
    error = np.sqrt(squares * (number - 1) / max(1, number))
    constant = 1 in (common[_OWN].n_unique(), common[_BASE].n_unique())  # κ is 0 by its definition
    spread, freedom = np.where(error > _ROUNDING, error, np.nan), np.full(len(error), number - 1.0)
    low, high = Estimate(of_all, spread, freedom, freedom).interval(confidence)
    for place, name in enumerate(_MEASURES):
        why = None
        if np.isnan(spread[place]):
            few = notes.note("no_reach", what="users")
            why = notes.note("same_value") if error[place] <= _ROUNDING else few
            why = notes.note("constant_judge") if constant and "kappa" in name else why
            why = notes.note(ONE_USER) if number == 1 else why
            why = notes.note("one_grade") if np.isnan(of_all[place]) else why
            why = why if number else notes.note("no_common_pair")
        least, greatest = (0 if name == "exact" else -inf), (inf if name == "bias" else 1)
        yield {
            "measure": name,
            "note": notes.packed([why]),
            "value": float(of_all[place]),
            "ci_low": max(float(low[place]), least),
            "ci_high": min(float(high[place]), greatest),
        }


def measures(tables: Array, grades: Array) -> Array:
    """Return the measures of tables of confusion: a row per grade of the baseline."""
    distance = grades - grades[:, None]
    pairs, last = tables.sum(axis=(-2, -1)), (-2, -1)
    rows, columns = tables.sum(axis=-1), tables.sum(axis=-2)
    expected = rows[..., :, None] * columns[..., None, :]
    both = rows + columns
    middle = both.cumsum(axis=-1) - both / 2  # ranks of grades: α's distance of ordered ones
    ranks = (middle[..., :, None] - middle[..., None, :]) ** 2
    by_chance = (both[..., :, None] * both[..., None, :] * ranks).sum(axis=last)
    with np.errstate(invalid="ignore", divide="ignore"):
        kappas = [
            1 - (tables * apart).sum(axis=last) * pairs / (expected * apart).sum(axis=last)
            for apart in (distance != 0, np.abs(distance), distance**2)
        ]
        alpha = 1 - (2 * pairs - 1) * 2 * (tables * ranks).sum(axis=last) / by_chance
        exact = (tables * (distance == 0)).sum(axis=last) / pairs
        bias = (tables * distance).sum(axis=last) / pairs
    return np.stack([exact, bias, *kappas, alpha], axis=-1)


def _means(
    common: pl.DataFrame,
    table: Table,
    systems: Any,
    metrics: Sequence[Metric],
    options: Mapping[str, Any],
) -> pl.DataFrame:
    """Return the mean of each metric and system under each judge, and under the baseline."""
    by, both = table.by, list[pl.DataFrame]()
    for grade in (_OWN, _BASE):
        truth = common.drop(str(table.relevance), _OWN, _BASE, strict=False)
        truth = truth.with_columns(common[grade].alias(str(table.relevance)))
        of_judge: Any = evaluation.evaluate(systems, *metrics, truth=truth, by=by, **options)
        means = adapters.to_polars(of_judge, "means").lazy().collect()
        place = means.columns.index("users")
        index, names = means.columns[:place], means.columns[place + 1 :]
        both.append(means.unpivot(names, index=index, variable_name="metric", value_name=grade))
    joined = both[0].join(both[1], on=both[0].columns[:-1], nulls_equal=True, maintain_order="left")
    models = [name for name in joined.columns if name not in (*by, "metric", _OWN, _BASE)]
    model = pl.col(models[0]) if models else pl.lit(None, pl.String)
    return joined.select(*by, "metric", model.alias("model"), _OWN, _BASE)


def _without_means(means: pl.DataFrame | None, metrics: Sequence[Metric]) -> pl.DataFrame:
    """Return the rows of a judge and segment without a common pair, whose means are null."""
    if means is None:
        names = [metric.name for metric in labels.parse_metrics(metrics, per_user=False)]
        rows = pl.DataFrame({"metric": names}).with_columns(pl.lit(None, pl.String).alias("model"))
    else:
        rows = means.select("metric", "model").unique(maintain_order=True)
    return rows.with_columns(pl.lit(None, pl.Float64).alias(name) for name in (_OWN, _BASE))


def _of_systems(means: pl.DataFrame, pairs: int) -> Iterator[dict[str, Any]]:
    """Compare the means of one judge and segment with those of the baseline."""
    for (metric,), part in means.group_by("metric", maintain_order=True):
        names, both = (str(metric), str(metric)), part.select(_OWN, _BASE)
        systems, *taus = system_agreement.agreement(both, names)
        no_mean = notes.note("no_mean_of_judge" if pairs else "no_common_pair")
        no_order = notes.note("systems_tie" if systems > 1 else "one_system")
        why = no_order if systems else no_mean
        for name, tau in zip(("kendall_tau", "tau_ap"), taus, strict=True):
            said = notes.packed([why if isnan(tau) else None])
            yield {"measure": name, "metric": metric, "note": said, "value": tau}
        changes = part.select("model", change=pl.col(_OWN) - pl.col(_BASE))
        for model, change in changes.iter_rows():
            said = notes.packed([no_mean if change is None else None])
            of_model = {"metric": metric, "model": model, "note": said, "value": change}
            yield {"measure": "change", **of_model}
