"""The numbers of a report: one pass of values per user, and the statistics made from it."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import polars as pl

from rankframe._comparison import comparison, cutoff_curves, diagnosis, pair_tests, summaries
from rankframe._comparison.trials import Correction, Margin, Test
from rankframe._evaluation import evaluation
from rankframe._evaluation.evaluation import UserValues
from rankframe._report import results
from rankframe._request import labels
from rankframe._request.keywords import Options, Settings
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._tables import column_roles, health, judgment, side_by_side, verbs
from rankframe.errors import RankingDataError
from rankframe.metrics import core, trec

_DIGITS = 4  # of the means on the page
#: The least share of users without a list of a system that matters.
MATTERS = 0.05
OWN = "report: "  # prefix of columns that are computed in addition to the metrics
_LISTED = f"{OWN}listed"
_LEVELS: dict[str, Callable[[int], pl.Expr]] = {
    "total": lambda k: trec.num_relevant(),  # noqa: ARG005  (all have one form)
    "hits": lambda k: trec.num_hits(k),
    "precision": lambda k: core.precision_at(k),
    "recall": lambda k: core.recall_at(k),
    "attainable_precision": core.attainable_precision_at,
    "attainable_recall": core.attainable_recall_at,
}
_STEPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_MOST_STEPS = 10
#: Names for the systems of the lists side by side, whatever their own names.
_BEFORE, _AFTER = "before", "after"
_PEOPLE = 4  # users with the greatest loss, and as many with the greatest gain
_SHOWN_ALL = 4  # at most so many other systems are all described in words


class Asked(NamedTuple):
    """The parameters of a report, checked."""

    run: pl.LazyFrame
    truth: pl.LazyFrame | None
    metrics: Sequence[Metric]
    by: str
    baseline: object
    segments: Sequence[str]
    k: int
    test: Test
    correction: Correction | None
    confidence: float
    margin: Margin | None
    primary: str | None
    resamples: int
    seed: int
    settings: Settings
    options: Options

    @property
    def judged(self) -> str:
        """The name of the first frame in errors."""
        return "judged table" if self.truth is None else "run"


class Values(NamedTuple):
    """The values of all users, and their metrics."""

    values: UserValues
    rows: pl.DataFrame
    requested: Sequence[RequestedMetric]
    directions: Mapping[str, bool | None]
    cuts: pl.DataFrame  # label, metric, k

    def only(self, names: Sequence[str], rows: pl.DataFrame | None = None) -> UserValues:
        """Return the values of some metrics."""
        of_users = {one.name: one for one in self.values.requested}
        found = [of_users[name] for name in names if name in of_users]
        rows = self.rows if rows is None else rows
        asked = {one.name for one in self.requested}
        lists = self.values.of_lists if asked <= {*names} else None
        return self.values._replace(requested=found, rows=rows.lazy(), of_lists=lists)


class Person(NamedTuple):
    """A user, the values of both systems, and the first items of both lists."""

    user: object
    before: float
    after: float
    gain: float
    relevant: int
    in_neither: int
    rows: list[dict[str, Any]]  # as ``lists`` shows them
    kept: set[object]  # the items of the whole new list
    relevant_at: float


class People(NamedTuple):
    """Users whom both systems serve: those who lost and gained most, and their numbers."""

    lost: list[Person]
    gained: list[Person]
    losers: int
    winners: int
    same: int
    missed: int


class Numbers(NamedTuple):
    """All numbers of a report; None for a missing part."""

    asked: Asked
    names: list[str]  # of the metrics
    decides: str  # the metric of the verdict
    user_metric: str | None  # the first metric that is a value per user
    directions: Mapping[str, bool | None]
    systems: list[object]  # the baseline first, then the best first
    chosen: object  # the system whose lists are shown
    shown: list[object]  # the systems that are described in words
    users: int
    missed: Mapping[object, int]
    means: pl.DataFrame
    bold: frozenset[tuple[object, str]]  # systems and metrics
    compared: pl.DataFrame | None
    served: pl.DataFrame | None
    cut_means: pl.DataFrame | None  # of labels, as ``means_of`` has them
    cuts: pl.DataFrame | None
    diagnosis: pl.DataFrame | None
    spread: pl.DataFrame | None
    segments: Mapping[str, pl.DataFrame]
    people: People | None
    health: pl.DataFrame
    sources: pl.DataFrame
    values: Values

    @property
    def pairs(self) -> bool:
        """Return whether systems are compared with a baseline."""
        return self.compared is not None


def default_metrics(k: int) -> list[str]:
    """Return the metrics of a report for which none are named."""
    return [f"ndcg@{k}", f"recall@{k}", f"precision@{k}", "map", "mrr"]


def numbers_of(asked: Asked) -> Numbers:
    """Compute all numbers of a report."""
    values = _read(asked)
    rows, names = values.rows, [one.name for one in values.requested]
    decides = asked.primary if asked.primary in names else names[0]
    of_users = [one.name for one in values.requested if one.name in rows.columns]
    user_metric = next(
        (name for name in (decides, *names) if name in of_users and rows[name].count()), None
    )
    means = summaries.summary_of(
        values.only(names),
        confidence=asked.confidence,
        method="t",
        resamples=asked.resamples,
        seed=asked.seed,
    ).collect()
    systems = _ordered(means, asked, decides, values.directions)
    compared = served = people = diagnosis = None
    several = asked.baseline is not None and len(systems) > 1
    counts = _missed(rows, asked.by, values.values.user)
    chosen = systems[1] if several else None
    shown: list[object] = []
    if several:
        shown = systems[1:] if len(systems) <= _SHOWN_ALL + 1 else [chosen]
        compared = _compared(values.only(names), asked)
        if any(counts["num_missed"]):
            served = _compared(values.only(of_users, _of_served(rows, of_users, asked.by)), asked)
        if _has_levels(rows) and asked.settings.weights is None:
            diagnosis = _diagnosis(values, asked, shown)
        if user_metric is not None:
            people = _people(values, asked, user_metric, chosen)
    cut_means = _cut_means(values, asked)
    return Numbers(
        asked=asked,
        names=names,
        decides=decides,
        user_metric=user_metric,
        directions=values.directions,
        systems=systems,
        chosen=chosen,
        shown=shown,
        users=max(counts["users"], default=0),
        missed=dict(counts.select(asked.by, "num_missed").iter_rows()),
        means=means,
        bold=_bold(means, compared, values, asked),
        compared=compared,
        served=served,
        cut_means=cut_means,
        cuts=None if cut_means is None else _over_cuts(values, asked, cut_means),
        diagnosis=diagnosis,
        spread=None if user_metric is None else _spread(rows, asked.by, user_metric),
        segments={name: _in_segments(values, asked, name, decides) for name in asked.segments},
        people=people,
        health=_health(asked),
        sources=_sources(asked),
        values=values,
    )


# ------------------------------------------------------------------ one pass of values per user


def _read(asked: Asked) -> Values:
    """Compute the values of all users that any part of the report needs."""
    defaults = asked.settings.defaults
    requested = labels.parse_metrics(asked.metrics, per_user=False, defaults=defaults)
    names = {one.name for one in requested}
    if asked.primary is not None and asked.primary not in names:
        there = ", ".join(repr(one.name) for one in requested)
        msg = f"primary names {asked.primary!r}; the metrics are {there}"
        raise ValueError(msg)
    cuts = _cuts(requested, asked)
    added: list[Metric] = [label for label in cuts["label"] if label not in names]
    if asked.truth is not None or _is_judged(asked):
        added += [make(asked.k).alias(OWN + name) for name, make in _LEVELS.items()]
        added.append(trec.num_retrieved().alias(_LISTED))
    values = evaluation.user_values(
        asked.run,
        [*asked.metrics, *added],
        asked.truth,
        [asked.by],
        asked.settings,
        per_user=False,
        all_lists=True,
    )
    rows = values.rows.collect().sort(asked.by, values.user)
    return Values(values, rows, requested, pair_tests.directions_of(requested), cuts)


def _is_judged(asked: Asked) -> bool:
    columns = asked.settings.columns
    return columns.get("relevance", "relevance") in asked.run.collect_schema().names()


def _cuts(requested: Sequence[RequestedMetric], asked: Asked) -> pl.DataFrame:
    """Return the labels at several cut-offs, for metrics with a cut-off."""
    bases: dict[str, int] = {}
    for one in requested:
        base, at, cut = one.name.rpartition("@")
        if at and cut.isdigit() and one.per_user and _is_label(one, asked):
            bases.setdefault(base, int(cut))
    deepest = max([asked.k, *bases.values()])
    steps = [k for k in _STEPS if k <= 2 * deepest][-_MOST_STEPS:]
    return cutoff_curves.labels_at([*bases], sorted({*steps, *bases.values(), asked.k}))


def _is_label(one: RequestedMetric, asked: Asked) -> bool:
    """Return whether a name is the metric's label, so that its other cut-offs have labels, too."""
    try:
        (meant,) = labels.parse_metrics([one.name], per_user=True, defaults=asked.settings.defaults)
    except ValueError:
        return False
    return meant.expr.meta.eq(one.expr) and meant.relevant_at == one.relevant_at


def _has_levels(rows: pl.DataFrame) -> bool:
    return f"{OWN}total" in rows.columns


def _missed(rows: pl.DataFrame, by: str, user: str) -> pl.DataFrame:
    """Count the users of each system, and those without a list."""
    counts = pl.col(user).count().alias("users"), evaluation.number_missed()
    return rows.group_by(by).agg(counts).sort(by)


def _of_served(rows: pl.DataFrame, names: Sequence[str], by: str) -> pl.DataFrame:
    """Leave out users without a list, so that pairs contain only users of both.

    A system that serves nobody keeps its users, without values: it is compared, and not tested.
    """
    missed = pl.col(evaluation.MISSED)
    served = [pl.when(~missed).then(pl.col(name)).alias(name) for name in names]
    return rows.with_columns(served).remove(missed & ~missed.all().over(by))


# ------------------------------------------------------------------ statistics


def _compared(values: UserValues, asked: Asked) -> pl.DataFrame:
    names = {one.name for one in values.requested}
    return comparison.comparison_of(
        values,
        baseline=asked.baseline,
        test=asked.test,
        correction=asked.correction,
        confidence=asked.confidence,
        margin=_known(asked.margin, names),
        primary=asked.primary if asked.primary in names else None,
        resamples=asked.resamples,
        seed=asked.seed,
    ).collect()


def _bold(
    means: pl.DataFrame, compared: pl.DataFrame | None, values: Values, asked: Asked
) -> frozenset[tuple[object, str]]:
    """Find the systems that are not significantly worse than the best, per metric."""

    def compare_with(name: object) -> pl.DataFrame:
        if compared is None or name == asked.baseline:
            return cast("pl.DataFrame", compared)
        only = values.only([one.name for one in values.requested])
        return _compared(only, asked._replace(baseline=name))

    tested = None if compared is None else compare_with
    best = results.best_or_tied(means, [asked.by], values.directions, _DIGITS, tested)
    return frozenset(means.filter(best).select(asked.by, "metric").iter_rows())


def _known(margin: Margin | None, names: set[str]) -> Margin | None:
    """Remove the margins of metrics that are not compared here."""
    if not isinstance(margin, Mapping):
        return margin
    return {name: value for name, value in margin.items() if name in names} or None


def _ordered(
    means: pl.DataFrame, asked: Asked, decides: str, directions: Mapping[str, bool | None]
) -> list[object]:
    """Order the systems: the baseline, then best first; by name if no direction is better."""
    higher_is_better = directions.get(decides)
    of_metric = means.filter(pl.col("metric") == decides)
    if higher_is_better is not None:
        of_metric = of_metric.sort(
            "mean", asked.by, descending=[higher_is_better, False], nulls_last=True
        )
    names = of_metric[asked.by].to_list()
    if asked.baseline is None:
        return names
    if isinstance(asked.baseline, pl.Expr | pl.Series):
        msg = f"baseline must be the name of a system, not {type(asked.baseline).__name__}"
        raise TypeError(msg)
    if asked.baseline not in names:
        there = sorted(names, key=str)[:10]
        msg = f"baseline must be one of {', '.join(map(repr, there))}, not {asked.baseline!r}"
        raise ValueError(msg)
    return [asked.baseline, *(name for name in names if name != asked.baseline)]


def _cut_means(values: Values, asked: Asked) -> pl.DataFrame | None:
    """Average each metric at several cut-offs, up to the length of the lists."""
    if values.cuts.is_empty():
        return None
    cuts = values.cuts
    longest = values.rows[_LISTED].max() if _LISTED in values.rows.columns else None
    if longest is not None:
        cuts = cuts.filter((pl.col("k") <= longest) | (pl.col("k") <= asked.k))
    only = values.only(cuts["label"].to_list())
    return cutoff_curves.means_of(only, interval=True, confidence=asked.confidence).collect()


def _over_cuts(values: Values, asked: Asked, means: pl.DataFrame) -> pl.DataFrame:
    """Split each label into its metric and its cut-off."""
    table = means.rename({"metric": "label"}).join(values.cuts, on="label", maintain_order="left")
    return table.select(asked.by, "metric", "k", "users", "mean", "ci_low", "ci_high").sort(
        asked.by, "metric", "k"
    )


def _diagnosis(values: Values, asked: Asked, shown: Sequence[object]) -> pl.DataFrame:
    """Compute which users gained, by number of relevant items, for the described systems."""
    rows = values.rows.filter(pl.col(asked.by).is_in([asked.baseline, *shown]))
    levels = {OWN + name: name for name in _LEVELS}
    rows = rows.select(asked.by, values.values.user, evaluation.MISSED, *levels).rename(levels)
    return diagnosis.diagnosis_of(rows, values=values.values, baseline=asked.baseline, bins=4)


def _spread(rows: pl.DataFrame, by: str, name: str) -> pl.DataFrame:
    """Describe the distribution of the users' values."""
    value = pl.col(name).cast(pl.Float64)
    shares = {f"p{share}": value.quantile(share / 100, "linear") for share in (10, 25, 50, 75, 90)}
    return (
        rows.filter(pl.col(name).is_not_null())
        .group_by(by)
        .agg(users=pl.len(), mean=value.mean(), zero=(value == 0).mean(), **shares)
        .sort(by)
    )


def _in_segments(values: Values, asked: Asked, name: str, decides: str) -> pl.DataFrame:
    """Compare the systems per segment by the metric that decides; without a baseline, average."""
    within = _values_in_segments(values, asked, name, decides)
    if asked.baseline is not None and within.rows.select(asked.by).unique().collect().height > 1:
        return _compared(within, asked)
    return summaries.summary_of(
        within, confidence=asked.confidence, method="t", resamples=1, seed=0
    ).collect()


def _values_in_segments(values: Values, asked: Asked, name: str, decides: str) -> UserValues:
    """Add the segment of each user to the values; if users have several, recompute the values."""
    source = asked.run if asked.truth is None else asked.truth
    kind = "judged table" if asked.truth is None else "truth"
    known = source.collect_schema().names()
    if name not in known:
        there = ", ".join(map(repr, known))
        msg = f"{kind}: no column {name!r} for segments=; it has {there}"
        raise RankingDataError(msg)
    user = values.values.user
    segments = source.select(user, name).unique().collect().sort(user, name)
    whole = values.only([decides])
    if not whole.requested:
        msg = f"metric {decides!r} is one number of all lists: leave out segments="
        raise ValueError(msg)
    if segments[user].is_duplicated().any() or segments[name].null_count():
        return evaluation.user_values(
            asked.run,
            list(asked.metrics),
            asked.truth,
            [asked.by, name],
            asked.settings,
            per_user=False,
        )._replace(requested=list(whole.requested))
    segments = segments.cast({user: values.rows.schema[user]})
    rows = values.rows.join(segments, on=user, maintain_order="left")
    return whole._replace(by=[asked.by, name], rows=rows.lazy())


# ------------------------------------------------------------------ lists side by side


def _people(values: Values, asked: Asked, name: str, chosen: object) -> People | None:
    """Find the users who lost and gained most among those whom both systems serve."""
    user, by = values.values.user, asked.by
    value = pl.col(name).cast(pl.Float64).alias("value")
    before, after = (
        values.rows.filter(pl.col(by) == pl.lit(one, dtype=values.rows.schema[by])).select(
            user, value, missed=evaluation.MISSED
        )
        for one in (asked.baseline, chosen)
    )
    pairs = before.join(after.drop_nulls(user), on=user, suffix=" after")
    served = pairs.remove(pl.col("missed") | pl.col("missed after")).drop_nulls()
    sign = -1 if values.directions.get(name) is False else 1
    gain = ((pl.col("value after") - pl.col("value")) * sign).round(12)
    served = served.select(user, "value", "value after", gain=gain).sort("gain", user)
    losers = served.filter(pl.col("gain") < 0)
    winners = served.filter(pl.col("gain") > 0).sort("gain", user, descending=[True, False])
    found = losers.head(_PEOPLE), winners.head(_PEOPLE)
    judged = _judged(asked, user, [*found[0][user], *found[1][user]], chosen)
    if judged is None:
        return None
    lost, gained = ([_person(one, judged, asked) for one in some.rows()] for some in found)
    return People(
        lost,
        gained,
        losers=len(losers),
        winners=len(winners),
        same=len(served) - len(losers) - len(winners),
        missed=len(pairs) - len(served),
    )


def _judged(
    asked: Asked, user: str, users: Sequence[object], chosen: object
) -> pl.DataFrame | None:
    """Judge the lists of both systems for some users; None if items have several ranks."""
    by, of_them = asked.by, pl.col(user).is_in(list(users))
    if not users or "tied" in asked.run.collect_schema():
        return None
    before, after = (pl.col(by) == one for one in (asked.baseline, chosen))
    run = asked.run.filter(of_them & (before | after))
    side = pl.when(before).then(pl.lit(_BEFORE)).otherwise(pl.lit(_AFTER))
    if asked.truth is None:
        return run.with_columns(side.alias(by)).collect()
    truth, exclude = asked.truth.filter(of_them), asked.settings.exclude
    rows = verbs.judge(run, truth, exclude=exclude, by=by, **_columns(asked))
    return rows.with_columns(side.alias(by)).collect()


def _person(row: tuple[Any, ...], judged: pl.DataFrame, asked: Asked) -> Person:
    """Put the first items of both lists of a user side by side."""
    user, before, after, gain = row
    columns = {**_columns(asked)}
    name, item = columns.get("user", "user"), columns.get("item", "item")
    grade = columns.get("relevance", "relevance") if asked.truth is None else "relevance"
    mine = judged.filter(pl.col(name) == pl.lit(user, dtype=judged.schema[name]))
    items = asked.settings.items
    roles: Any = columns if asked.truth is None else {**columns, "relevance": "relevance"}
    if asked.truth is not None:
        roles = {key: value for key, value in roles.items() if key not in ("rank", "score")}
    shown = side_by_side.lists(
        mine, user, asked.k, by=asked.by, baseline=_BEFORE, system=_AFTER, items=items, **roles
    )
    depth = asked.settings.depth
    if depth is not None:
        shown = shown.filter(pl.col("rank") <= depth)
    rank = columns.get("rank", "rank") if asked.truth is None else "rank"
    kept = mine.filter((pl.col(asked.by) == _AFTER) & pl.col(rank).is_not_null())
    least = asked.settings.relevant_at or 0
    wanted = mine.filter((pl.col(grade) > 0) & (pl.col(grade) >= least))[item].unique()
    first = {*shown[_BEFORE], *shown[_AFTER]}
    missing = sum(one not in first for one in wanted)
    return Person(
        user, before, after, gain, len(wanted), missing, shown.to_dicts(), {*kept[item]}, least
    )


# ------------------------------------------------------------------ tables of the call


def _health(asked: Asked) -> pl.DataFrame:
    """Return the counts of ``health``."""
    settings = asked.settings
    counted = health.health(
        asked.run,
        truth=asked.truth,
        by=asked.by,
        k=asked.k,
        items=settings.items,
        history=settings.history,
        **settings.columns,
    )
    return counted.collect()


def _sources(asked: Asked) -> pl.DataFrame:
    """Count the rows of run and truth, and compute checksums that ignore the order of rows."""
    tables = judgment.prepare_tables(asked.run, asked.truth, [asked.by], _columns(asked)).tables
    made: list[tuple[str, int, str]] = []
    for table in tables:
        roles = (table.rank or table.score, table.relevance)
        names = [*table.row, *(name for name in roles if name is not None)]
        names = [name for name in names if name not in table.truth_groups]
        rows = table.frame.select([*dict.fromkeys(names)]).sort(names, nulls_last=True)
        digest, count = hashlib.sha256(), 0
        for batch in rows.collect_batches(maintain_order=True):
            digest.update(batch.write_csv(include_header=False).encode())
            count += len(batch)
        made.append((table.name, count, digest.hexdigest()))
    schema = {"table": pl.String, "rows": pl.Int64, "sha256": pl.String}
    return pl.DataFrame(made, schema=schema, orient="row")


def _columns(asked: Asked) -> Any:
    """Return the columns that play the roles, including those found by their common names."""
    tables = {asked.judged: asked.run, "truth": asked.truth}
    return column_roles.with_ids(asked.settings.columns, asked.by, tables)
