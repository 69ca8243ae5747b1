"""Compute the numbers of a report: one pass of values per user, and statistics of these."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import polars as pl

from rankframe._comparison import (
    comparison,
    cutoff_curves,
    differences,
    harm,
    many_systems,
    pair_tests,
    sentences,
    summaries,
    system_pairs,
)
from rankframe._comparison import segments as segments_tests
from rankframe._comparison.notes import Nouns
from rankframe._comparison.trials import Margin, Trial
from rankframe._evaluation import (
    evaluation,
    human_values,
    provenance,
    reduction,
    user_choice,
    user_columns,
)
from rankframe._evaluation import segments as segments_of
from rankframe._evaluation.values import Values
from rankframe._health import health
from rankframe._report import people, results
from rankframe._report.call import Measurement, ReportCall
from rankframe._report.nouns import nouns_of
from rankframe._report.people import People
from rankframe._request import labels
from rankframe._request.labels import Metric, RequestedMetric
from rankframe._request.question import ask
from rankframe._tables import adapters, judgment, rules, side_tables
from rankframe._tables.table import Tables
from rankframe.errors import Problem, RankingDataError, option
from rankframe.metrics import trec

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Advance

#: The least share of users without a list of a system that matters.
MATTERS = 0.05
_TOTAL = "report: total"  # a column that is computed in addition to the metrics
RELEVANT = "number of relevant items"
DIFFERS = "__rankframe_differs"  # p that a segment differs from the rest
#: The groups of a truth of which a part was in the history.
SEEN, _SEEN, _UNSEEN = "relevant items", "seen before", "not seen before"
_BINS = 4  # of users, by their number of relevant items
_STEPS = (1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700, 1000)
_MOST_STEPS = 10
_MOST_JUDGED = 10  # users whose items are to be judged first
_SHOWN_ALL = 4  # at most so many other systems are all described in words


class Unjudged(NamedTuple):
    """The share of the first items that nobody judged, and a mean if each were relevant."""

    share: float
    value: float | None = None  # with the smallest relevant grade


class Numbers(NamedTuple):
    """All numbers of a report; None for a missing part."""

    values: Measurement
    call: ReportCall
    names: list[str]  # of the metrics
    user_metric: str | None  # the first metric that is a value per user
    systems: list[object]  # the baseline first, then the best first
    shown: list[object]  # the systems that are described in words
    users: int
    missed: Mapping[object, int]
    means: pl.DataFrame
    leaders: frozenset[object]  # not shown to be worse than the best, in what decides
    compared: pl.DataFrame | None
    served: pl.DataFrame | None
    over_k: pl.DataFrame | None  # what is drawn of labels: changes from the baseline, or means
    cuts: pl.DataFrame | None
    harm: pl.DataFrame | None  # in the metric that decides
    spread: pl.DataFrame | None
    moves: pl.DataFrame | None  # as the spread, of the changes from the baseline
    segments: Mapping[str, pl.DataFrame]
    of_relevant: pl.DataFrame | None  # as of segments, by the number of relevant items
    people: People | None
    unjudged: Mapping[object, Unjudged]
    to_judge: Sequence[object]  # the users with the most unjudged items in both lists
    tied: Mapping[object, float]  # the share of lists with equal scores, where it matters
    health: pl.DataFrame
    sources: pl.DataFrame
    nouns: Nouns  # what the page calls users and items

    @property
    def trial(self) -> Trial:
        return self.call.trial

    @property
    def decides(self) -> str:
        return self.values.decides

    @property
    def pairs(self) -> bool:
        """Return whether systems are compared with a baseline."""
        return self.compared is not None

    @property
    def chosen(self) -> object:
        """The system whose lists are shown: the best one that is compared."""
        return self.shown[0] if self.shown else None

    @property
    def family(self) -> int:
        """The number of comparisons for which p is adjusted."""
        return 0 if self.compared is None else sentences.tests_of(self.compared, self.trial.primary)

    @property
    def groups(self) -> Mapping[str, pl.DataFrame]:
        """The comparisons in segments and, without any or of one system, by relevant items."""
        if not self.pairs:
            return {}
        tables = dict(self.segments)
        if self.of_relevant is not None and (not tables or len(self.shown) == 1):
            tables[RELEVANT] = self.of_relevant
        return {name: table for name, table in tables.items() if "difference" in table.columns}

    def row(
        self, table: pl.DataFrame | None, system: object, metric: str | None = None
    ) -> dict[str, Any]:
        """Return the row of a system, by default in the metric that decides; empty without one."""
        if table is None:
            return {}
        of_system = pl.col(self.call.by) == pl.lit(system, dtype=table.schema[self.call.by])
        rows = table.filter(of_system & (pl.col("metric") == (metric or self.decides))).to_dicts()
        return rows[0] if rows else {}


def default_metrics(k: int) -> list[str]:
    """Return the metrics of a report for which none are named."""
    return [f"ndcg@{k}", f"recall@{k}", f"precision@{k}", "map", "mrr"]


#: The last one, the checksums, ends with the bar.
STEPS = 5


def numbers_of(call: ReportCall, advance: Advance) -> Numbers:
    """Compute all numbers, in steps by which the progress bar advances."""
    values = _read(call)
    advance(1)
    call, rows, names = values.call, values.rows, [metric.name for metric in values.requested]
    decides, by = values.decides, call.by
    of_users = [name for name in names if name in rows.columns]
    with_values = [name for name in [decides, *names] if name in of_users and rows[name].count()]
    user_metric = with_values[0] if with_values else None
    means, cut_means = _means(values, names)
    systems = _ordered(means, values)
    compared = served = listed = harmed = of_relevant = moves = None
    users = pl.col(values.values.user).count().alias("users")
    has_weights = call.settings.weights is not None
    of_weight = rows.filter(pl.col(user_columns.WEIGHT) > 0) if has_weights else rows
    of_all = of_weight[values.values.user].drop_nulls().n_unique()
    counts = of_weight.group_by(by).agg(users, user_columns.number_missed()).sort(by)
    counted, has_misses = _health(call), _has_misses(values)
    advance(1)
    users_in = {name: _users_in(values, name) for name in call.segments}
    segments = {name: _in_segments(values, users_of) for name, users_of in users_in.items()}
    if decides in of_users and (split := _with_seen(values, counted)) is not None:
        segments[SEEN] = _in_segments(split, _users_in(split, SEEN))
    others = [] if call.trial.baseline is None else systems[1:]
    shown = others if len(others) <= _SHOWN_ALL else others[:1]
    described = [*systems[:1], *shown]
    unjudged, to_judge = _unjudged(values, counted, described, has_misses=has_misses)
    unjudged = unjudged if call.human is None else {}  # these means are the judge's
    if others:
        compared = _compared(values.only(names, corrected=True), call.trial)
    if others and call.trial.paired:
        if any(counts["num_missed"]):
            served = _compared(values.only(of_users, _of_served(rows, of_users, by)), call.trial)
        if call.settings.weights is None:
            of_relevant = _by_relevant(values)
        harmed = _harm(values, shown)
        if user_metric is not None:
            moves = _moves(values, user_metric, systems)
            listed = people.people_of(
                values, user_metric, shown[0], users_in, to_judge, has_misses=has_misses
            )
    if listed is not None and listed.to_judge:  # those with lists on the page
        to_judge = [person.user for person in listed.to_judge]
    advance(1)
    over_k = cut_means
    if cut_means is not None and others and call.trial.paired:
        names_at_k = cut_means["metric"].unique(maintain_order=True).to_list()
        over_k = _cut_changes(values, names_at_k, [call.trial.baseline, *shown])
    advance(1)
    return Numbers(
        values=values,
        call=call,
        names=names,
        user_metric=user_metric,
        systems=systems,
        shown=shown,
        users=of_all if call.trial.paired else max(counts["users"], default=0),
        missed=dict(counts.select(by, "num_missed").iter_rows()),
        means=means,
        leaders=_leaders(compared, values),
        compared=compared,
        served=served,
        over_k=over_k,
        cuts=_over_cuts(values, cut_means),
        harm=harmed,
        spread=None if user_metric is None else _spread(_value_of(rows, user_metric), by),
        moves=moves,
        segments=segments,
        of_relevant=of_relevant,
        people=listed,
        unjudged=unjudged,
        to_judge=to_judge,
        tied=_tied(values),
        health=counted,
        sources=_sources(values),
        nouns=nouns_of(call.nouns, values.values.user, values.tables.run.item),
    )


# ------------------------------------------------------------------ one pass of values per user


def _read(call: ReportCall) -> Measurement:
    """Compute the values of all users that any part of the report needs."""
    defaults = call.settings.defaults
    requested = labels.parse_metrics(call.metrics, per_user=False, defaults=defaults)
    names = {metric.name for metric in requested}
    primary = call.trial.primary
    if primary is not None and primary not in names:
        choices = ", ".join(repr(metric.name) for metric in requested)
        msg = f"primary names {primary!r}; the metrics are {choices}"
        raise ValueError(msg)
    comparison.per_metric("margin", call.trial.margin, [metric.name for metric in requested])
    cuts = _cuts(requested, call)
    added: list[Metric] = [label for label in cuts["label"] if label not in names]
    columns, names_of_run = call.settings.columns, call.run.collect_schema().names()
    if call.truth is not None or columns.get("relevance", "relevance") in names_of_run:
        added.append(trec.num_relevant().alias(_TOTAL))
    question = ask(call.run, [*call.metrics, *added], call.truth, call.by, call.settings)
    values = evaluation.user_values(question)
    if call.human is not None:
        own = ask(call.run, call.metrics, call.truth, call.by, call.settings)
        of_names = values._replace(requested=[m for m in values.requested if m.name in names])
        corrected = human_values.with_human(of_names, own, call.human)
        values = values._replace(rows=corrected.rows, has_human=True)
    texts = _texts_of_queries(values.source.tables, call)
    rows = values.rows.collect().sort(call.by, values.user)
    if _TOTAL in rows.columns and not rows[_TOTAL].sum():
        rules.raise_if_none_relevant(values.source.tables.both[-1])
    systems = rows[call.by].unique().to_list()
    if len(systems) > 1 or call.trial.baseline not in (None, *systems):
        baseline = system_pairs.systems_in(rows, call.by, call.trial).baseline
        call = call._replace(trial=call.trial._replace(baseline=baseline))
    directions = pair_tests.directions_of(requested)
    return Measurement(call, values, rows, requested, directions, cuts, texts)


def _texts_of_queries(tables: Tables, call: ReportCall) -> Mapping[str, str]:
    """Return the text of each query by its id, checked."""
    if call.queries is None:
        return {}
    run = tables.run
    table = side_tables.read_queries(call.queries, run, call.settings.columns)
    side_tables.check_queries(table, run)
    return side_tables.text_of_ids(table)


def _cuts(requested: Sequence[RequestedMetric], call: ReportCall) -> pl.DataFrame:
    """Return the labels at several cut-offs, for metrics with a cut-off."""
    bases: dict[str, int] = {}
    for metric in requested:
        base, at, cut = metric.name.rpartition("@")
        if at and cut.isdigit() and metric.per_user and is_label(metric, call):
            bases.setdefault(base, int(cut))
    deepest = max([call.k, *bases.values()])
    steps = [k for k in _STEPS if k <= 2 * deepest][-_MOST_STEPS:]
    return cutoff_curves.labels_at([*bases], sorted({*steps, *bases.values(), call.k}))


def is_label(metric: RequestedMetric, call: ReportCall) -> bool:
    """Return whether a name is the metric's label, so that its other cut-offs have labels, too."""
    try:
        (meant,) = labels.parse_metrics(
            [metric.name], per_user=True, defaults=call.settings.defaults
        )
    except ValueError:
        return False
    return meant.expr.meta.eq(metric.expr) and meant.relevant_at == metric.relevant_at


def _of_served(rows: pl.DataFrame, names: Sequence[str], by: str) -> pl.DataFrame:
    """Leave out users without a list, so that pairs contain only users of both.

    A system that serves nobody keeps its users, without values: it is compared, and not tested.
    """
    missed = pl.col(user_columns.MISSED)
    served = [pl.when(~missed).then(pl.col(name)).alias(name) for name in names]
    return rows.with_columns(served).remove(missed & ~missed.all().over(by))


# ------------------------------------------------------------------ statistics


def _compared(values: Values, trial: Trial) -> pl.DataFrame:
    names = {metric.name for metric in values.requested}
    primary = trial.primary if trial.primary in names else None
    trial = trial._replace(margin=_margins_of(trial.margin, names), primary=primary)
    return comparison.rows_of(values, trial, "report").collect()


def _leaders(compared: pl.DataFrame | None, values: Measurement) -> frozenset[object]:
    """Find the systems that are not significantly worse than the best."""
    if compared is None:
        return frozenset()
    of_metric = compared.filter(metric=values.decides)
    confidence = values.call.trial.confidence
    table = many_systems.leaders_of(
        values.only([values.decides], corrected=True), confidence, of_metric
    )
    if table is None:
        return frozenset()
    return frozenset(table.filter("may_be_best")[values.call.by])


def _margins_of(margin: Margin | None, names: set[str]) -> Margin | None:
    """Remove the margins of metrics that are not compared here."""
    if not isinstance(margin, Mapping):
        return margin
    return {name: value for name, value in margin.items() if name in names} or None


def _ordered(means: pl.DataFrame, values: Measurement) -> list[object]:
    """Order the systems: the baseline, then best first; by name if no direction is better."""
    by, baseline = values.call.by, values.call.trial.baseline
    higher_is_better = values.directions.get(values.decides)
    of_metric = means.filter(pl.col("metric") == values.decides)
    if higher_is_better is not None:
        of_metric = of_metric.sort(
            "mean", by, descending=[higher_is_better, False], nulls_last=True
        )
    names = of_metric[by].to_list()
    if baseline is None:
        return names
    return [baseline, *(name for name in names if name != baseline)]


def _labels_of_cuts(values: Measurement) -> list[str]:
    """Return the labels at several cut-offs, up to the length of the lists."""
    call, run, last = values.call, values.tables.run, pl.col("last").max()
    places = run.frame.group_by(run.keys).agg(last=pl.len())
    if run.rank is not None:
        tied = pl.col("tied") - 1 if run.tied else 0
        places = run.frame.select(last=rules.as_rank(run.rank) + tied)
    longest = places.select(pl.min_horizontal(last, call.settings.depth)).collect().item()
    return values.cuts.filter(pl.col("k") <= max(longest or 0, call.k))["label"].to_list()


def _means(values: Measurement, names: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame | None]:
    """Average the metrics, and each at several cut-offs: together, they share each resample."""
    call, at_cuts = values.call, _labels_of_cuts(values) if len(values.cuts) else []
    groups = [[*dict.fromkeys([*names, *at_cuts])]] if call.human is None else [names, at_cuts]
    tables = [
        results.means_of(values.only(group, corrected=place == 0), call.trial, "report").collect()
        for place, group in enumerate(groups)
    ]
    means, cut_means = (
        table.filter(pl.col("metric").is_in(of)).sort(call.by, summaries.in_requested_order(of))
        for table, of in ((tables[0], names), (tables[-1], at_cuts))
    )
    return means, cut_means.select(call.by, *cutoff_curves.DRAWN) if at_cuts else None


def _cut_changes(
    values: Measurement, names: Sequence[str], systems: Sequence[object]
) -> pl.DataFrame:
    """Compute the paired changes of some systems at several cut-offs."""
    trial = values.call.trial
    only = values.only(names, values.rows.filter(pl.col(values.call.by).is_in(systems)))
    return cutoff_curves.changes_of(only, trial.baseline, trial.confidence).collect()


def _over_cuts(values: Measurement, means: pl.DataFrame | None) -> pl.DataFrame | None:
    """Split each label into its metric and its cut-off."""
    if means is None:
        return None
    keys = [values.call.by, "metric", "k"]
    table = means.rename({"metric": "label"}).join(values.cuts, on="label", maintain_order="left")
    return table.select(*keys, "users", "mean", "ci_low", "ci_high").sort(keys)


def _harm(values: Measurement, shown: Sequence[object]) -> pl.DataFrame | None:
    """Compute who loses more than a tenth of the metric's range, or at all if it has none."""
    call, decides = values.call, values.decides
    traits = values.metric(decides).traits
    independent = values.values.weights is None and values.values.cluster is None
    if traits.higher_is_better is None or decides not in values.rows.columns or not independent:
        return None
    rows = values.rows.filter(pl.col(call.by).is_in([call.trial.baseline, *shown]))
    return harm.plan_of(
        values.only([decides], rows),
        trial=call.trial._replace(cluster=None, total=False),
        more_than=traits.width / 10 if isfinite(traits.width) else 0.0,
    ).collect()


def _changed(values: Measurement, name: str) -> pl.DataFrame:
    """Return each user's change from the baseline, as the value."""
    trial = Trial(values.call.trial.baseline)
    table = differences.of_pairs(values.rows, values.only([name]), trial)
    return table.with_columns(value=pl.col("difference").round(12))


def _value_of(rows: pl.DataFrame, name: str) -> pl.DataFrame:
    return rows.with_columns(value=pl.col(name).cast(pl.Float64)).drop_nulls("value")


def _spread(rows: pl.DataFrame, by: str) -> pl.DataFrame:
    """Describe the distribution of the users' values."""
    value = pl.col("value")
    shares = {f"p{share}": value.quantile(share / 100, "linear") for share in (10, 25, 50, 75, 90)}
    counts = {"users": pl.len(), "mean": value.mean(), "zero": (value == 0).mean()}
    return rows.group_by(by).agg(**counts, **shares).sort(by)


def _moves(values: Measurement, name: str, systems: Sequence[object]) -> pl.DataFrame:
    """Describe how the users' values change with each system."""
    by, value = values.call.by, pl.col("value")
    rows = _changed(values, name)
    signs = {"lower": value < 0, "equal": value == 0, "higher": value > 0}
    counts = rows.group_by(by).agg(**{what: sign.sum() for what, sign in signs.items()})
    table = _spread(rows, by).join(counts, on=by)
    return table.sort(pl.Series([systems.index(system) for system in table[by]]))


def _in_segments(values: Measurement, segments: pl.DataFrame) -> pl.DataFrame:
    """Compare the systems per segment by the metric that decides; without a baseline, average."""
    by, trial = values.call.by, values.call.trial
    within = _values_in_segments(values, segments)
    if trial.baseline is not None and within.rows.select(by).unique().collect().height > 1:
        return _with_shrunken(_compared(within, trial), within, segments, trial)
    return results.means_of(within, trial, "report").collect()


def _with_shrunken(
    table: pl.DataFrame, within: Values, segments: pl.DataFrame, trial: Trial
) -> pl.DataFrame:
    """Add the shrunken differences, and p of each segment against the rest, of separate users."""
    user, name = segments.columns
    if (
        not trial.paired
        or within.cluster is not None
        or within.requested[0].over_users.epsilon is not None  # a ratio
        or segments[user].is_duplicated().any()
        or segments[name].null_count()
        or table[name].n_unique() == 1
    ):
        return table
    keys = [*within.by, "baseline"]
    p = pl.col("p_adjusted").alias(DIFFERS)
    rows = segments_tests.rows_without_f(within, trial).collect()
    rows = rows.select(*keys, *segments_tests.SHRUNKEN, p)
    return table.join(rows, on=keys, how="left", maintain_order="left")


def _with_seen(values: Measurement, counted: pl.DataFrame) -> Measurement | None:
    """Split the truth by whether the history has its rows; None if it has hardly any."""
    shares = counted.filter(pl.col("what") == "truth_in_history", pl.col("share") >= MATTERS)
    call, source = values.call, values.call.settings.history
    if call.truth is None or source is None or shares.is_empty():
        return None
    if call.settings.users in ("run", "all") or call.settings.unjudged != "miss":
        return None  # of items, as segments of popularity
    run = values.tables.run
    keys = [run.user, run.item]
    history = adapters.to_lazy(source, "history").select(keys).unique()
    schema = call.truth.collect_schema()
    history = history.cast({key: schema[key] for key in keys}).with_columns(pl.lit(1).alias(SEEN))
    truth = call.truth.lazy().join(history, on=keys, how="left", maintain_order="left")
    group = pl.when(pl.col(SEEN) == 1).then(pl.lit(_SEEN)).otherwise(pl.lit(_UNSEEN))
    truth = truth.with_columns(group.cast(pl.Enum([_SEEN, _UNSEEN])).alias(SEEN))
    return values._replace(call=call._replace(truth=truth))


def nothing_judged(numbers: Numbers) -> bool:
    """Return whether no first item of any list is judged."""
    shares = numbers.health.filter(what=f"unjudged_at_{numbers.call.k}")["share"]
    return bool(len(shares)) and bool((shares == 1).all())


def same_lists(numbers: Numbers, system: object) -> bool:
    """Return whether a system has the lists of the baseline."""
    run, by = numbers.values.tables.run, numbers.call.by
    names = [*filter(None, (run.user, run.item, run.rank, run.score))]
    lists, others = (
        run.frame.filter(pl.col(by) == name).select(names).sort(names).collect()
        for name in (system, numbers.trial.baseline)
    )
    return lists.equals(others)


def _by_relevant(values: Measurement) -> pl.DataFrame | None:
    """Compare the systems by the metric that decides, in bins of the number of relevant items."""
    whole, total = values.only([values.decides]), pl.col(_TOTAL)
    if not whole.requested or _TOTAL not in values.rows.columns:
        return None
    served = values.rows.filter(total > 0)
    if served.is_empty():
        return None
    totals = served.unique(values.values.user)[_TOTAL]
    places = (totals.rank("min").cast(pl.Int64) - 1) * _BINS // max(1, len(totals))
    lows = totals.to_frame("low").group_by(place=places).agg(pl.col("low").min())
    starts = _without_single(sorted(lows["low"]), totals)
    if len(starts) < 2:
        return None
    place = pl.sum_horizontal(total >= low for low in starts[1:]).alias("place")
    rows = served.with_columns(place)
    ends = rows.group_by("place").agg(low=total.min(), high=total.max()).sort("place")
    names = [range_of(low, high) for _, low, high in ends.rows()]
    name = pl.col("place").replace_strict(ends["place"], names, return_dtype=pl.Enum(names))
    rows, by = rows.with_columns(name.alias(RELEVANT)).drop("place"), [values.call.by, RELEVANT]
    return _compared(whole._replace(by=by, rows=rows.lazy()), values.call.trial)


def _without_single(lows: Sequence[int], totals: pl.Series) -> list[int]:
    """Merge a group of one user with the one before it, or the first one with the next."""
    starts: list[int] = []
    for low, high in zip(lows, [*lows[1:], inf], strict=True):
        if not starts or ((totals >= low) & (totals < high)).sum() > 1:
            starts.append(low)
    if len(starts) > 1 and (totals < starts[1]).sum() < 2:
        del starts[1]
    return starts


def range_of(low: int, high: int) -> str:
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


def _users_in(values: Measurement, name: str) -> pl.DataFrame:
    """Return each user with a segment; a user may have several."""
    call = values.call
    question = ask(call.run, call.metrics, call.truth, [name], call.settings)
    question = segments_of.with_columns(question)
    source, kind = cast("pl.LazyFrame | pl.DataFrame | None", question.truth), "truth"
    if source is None:
        source, kind = cast("pl.LazyFrame | pl.DataFrame", question.frame), "judged table"
    columns = source.collect_schema().names()
    if name not in columns:
        choices = ", ".join(map(repr, columns))
        msg = f"{kind}: no column {name!r} for {option('by')}; it has {choices}"
        raise RankingDataError(msg)
    user = values.values.user
    if name == user:
        msg = f"{option('by', name)} names the column of the users: name one that splits them"
        raise ValueError(Problem(msg))
    return source.lazy().select(user, name).unique().collect().sort(user, name)


def _values_in_segments(values: Measurement, segments: pl.DataFrame) -> Values:
    """Add the segment of each user to the values; if users have several, recompute the values."""
    call, (user, name) = values.call, segments.columns
    whole = values.only([values.decides])
    if not whole.requested:
        msg = f"metric {values.decides!r} is one number for all lists: leave out {option('by')}"
        raise ValueError(Problem(msg))
    has_nan = segments[name].dtype.is_float() and segments[name].is_nan().any()  # an error there
    if segments[user].is_duplicated().any() or segments[name].null_count() or has_nan:
        question = ask(call.run, call.metrics, call.truth, [call.by, name], call.settings)
        return evaluation.user_values(question)._replace(requested=list(whole.requested))
    segments = segments.cast({user: values.rows.schema[user]})
    rows = values.rows.join(segments, on=user, maintain_order="left")
    return whole._replace(by=[call.by, name], rows=rows.lazy())


# ------------------------------------------------------------------ tables of the call


def _health(call: ReportCall) -> pl.DataFrame:
    settings = call.settings
    counted = health.health(
        call.run,
        truth=call.truth,
        by=call.by,
        k=call.k,
        items=settings.items,
        history=settings.history,
        duplicates=settings.duplicates,
        **settings.columns,
    )
    # the call has read the grades; a column of 0 and 1 that is left is a cluster or a weight
    return adapters.to_lazy(counted, "health").filter(pl.col("what") != "unread_grades").collect()


def _unjudged(
    values: Measurement, counted: pl.DataFrame, systems: Sequence[object], *, has_misses: bool
) -> tuple[dict[object, Unjudged], Sequence[object]]:
    """Compare how many of the first items were judged; empty if that hardly differs.

    The users with the most unjudged items in the lists of the first two systems come with it.
    """
    call = values.call
    if not has_misses:
        return {}, []
    rows = counted.filter(pl.col("what") == f"unjudged_at_{call.k}").select(call.by, "share")
    if values.tables.from_judged:
        first = values.values.source.run.filter(pl.col("rank") <= call.k).group_by(call.by)
        rows = first.agg(pl.col("relevance").is_null().mean()).collect()
    shares = {name: share for name, share in rows.rows() if name in systems and share is not None}
    least, most = (end(shares.values(), default=0) for end in (min, max))
    if most - least < MATTERS or call.settings.unjudged == "drop":
        return {}, []
    raised, users = _if_relevant(values, systems)
    named = {name: Unjudged(shares[name], raised.get(name)) for name in systems if name in shares}
    return named, users


def _if_relevant(
    values: Measurement, systems: Sequence[object]
) -> tuple[dict[object, float | None], list[object]]:
    """Average a metric with the smallest relevant grade for each unjudged item of the first k.

    The users with the most such items in the lists of the first two systems come with it.
    """
    call, decides = values.call, values.decides
    judged, (by, user) = values.values.source, values.values.keys
    of_systems = pl.col(by).is_in(systems)
    rows = judged.rows("listed").filter(of_systems)
    grade = pl.col("relevance")
    relevant = user_choice.is_relevant(call.settings.relevant_at)
    counts = (pl.col("rank") <= call.k) & grade.is_null() & relevant.any().over(by, user)
    of_two = rows.filter(counts, pl.col(by).is_in(systems[:2])).group_by(user).len()
    most = of_two.sort("len", user, descending=[True, False]).head(_MOST_JUDGED)
    users = most.collect()[user].to_list()
    if decides not in values.rows.columns:
        return {}, users
    changed = judgment.with_grades(
        judged, pl.when(counts).then(grade.filter(relevant).min()).otherwise(grade), of_systems
    )
    only = values.only([decides])
    raised = reduction.reduced(changed, only.requested).rows.select(by, user, decides).collect()
    of_users = values.rows.filter(pl.col(by).is_in(systems)).drop(decides)
    means = summaries.description_of(
        only._replace(rows=of_users.join(raised, on=[by, user], how="left").lazy())
    )
    return dict(means.select(by, "mean").collect().iter_rows()), users


def _tied(values: Measurement) -> dict[object, float]:
    """Compute in which share of lists the scores do not determine the order of the first items."""
    call, run = values.call, values.tables.run
    if run.score is None or run.rank is not None:
        return {}
    score = pl.col(run.score).drop_nulls()
    first = score.filter(~score.is_nan()).sort(descending=True).head(call.k + 1)
    lists = run.frame.group_by(run.keys).agg((first.n_unique() < first.len()).alias("tied"))
    shares = lists.group_by(call.by).agg(pl.col("tied").mean()).sort(call.by).collect()
    return {name: share for name, share in shares.rows() if share >= MATTERS}


def _has_misses(values: Measurement) -> bool:
    """Return whether items were judged that are not relevant: without any, an absent one is."""
    table = values.tables.both[-1]
    if table.relevance is None:
        return False
    return not table.frame.filter(pl.col(table.relevance) <= 0).head(1).collect().is_empty()


def _sources(values: Measurement) -> pl.DataFrame:
    """Count the rows of the tables, and compute checksums that ignore the order of rows."""
    tables, human = values.tables, values.call.human
    of_human = [] if human is None else [provenance.table_of_human(human, tables)]
    sources = [(table.name, *provenance.checksum(table)) for table in [*tables.both, *of_human]]
    schema = {"table": pl.String, "rows": pl.Int64, "checksum": pl.String}
    return pl.DataFrame(sources, schema=schema, orient="row")
