"""The conventions of metrics, and the values that they give on the tables of a call (``Grid``).

A convention is a mapping of choices to values: the parameters of a metric, ``users``,
``undefined``, ``average``, and at most one change of the tables: ``relevant_at``, ``ties``,
``duplicates``, ``depth``, ``ranks`` or ``unjudged``. For each change of the tables, the values of
all users and labels are made in one pass; all means are of these.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin

import polars as pl

from rankframe._evaluation import evaluation, group_means, reduction, user_choice
from rankframe._evaluation.user_columns import WEIGHT
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.keywords import Columns, Settings
from rankframe._request.labels import MetricCall, RequestedMetric
from rankframe._request.question import Question
from rankframe._tables import adapters, rank_order, readers, verbs
from rankframe._tables.table import Policy, Tables
from rankframe.errors import RankingWarning
from rankframe.presets import PRESETS, Preset, PresetName, Users

T = TypeVar("T")
_FEW_GRADES = 4
_MOST_LABELS = 100  # with the parameters of a metric: those with the fewest departures
_DEPTHS = (5, 10, 20, 50, 100, 200, 500, 1000)
_OPTIONS = ("relevant_at", "duplicates", "depth", "unjudged")  # that change tables
_SHARED = ("change", "users", "undefined", "average")
#: Scores as trec_eval 9 ranks them.
SINGLE = "32-bit"
_TEXT, _COUNTED = "label", "counted"
PRINTED, _IS_PRINTED = (f"{labels.PREFIX}{name}" for name in ("printed", "is_printed"))


class Axes(NamedTuple):
    """The choices that all metrics of a call share; those of the caller come first."""

    changes: Sequence[Mapping[str, object]]  # of the tables; of one choice, or empty
    users: Sequence[Policy]
    undefined: Sequence[float | None]
    averages: Sequence[str]
    own: Mapping[str, object]  # what the caller's tables have in place of a change
    default: Policy  # the users of a call that names none
    is_scored: bool  # whether scores are ranked

    def choices(self, shared: int) -> dict[str, object]:
        """Return the choices of a number of these."""
        values: list[Any] = []
        for axis in reversed(self[:4]):
            shared, place = divmod(shared, len(axis))
            values.append(axis[place])
        average, undefined, users, change = values
        return {"users": users, "undefined": undefined, "average": average, **self.own, **change}

    def number(self, places: Iterable[Any]) -> Any:
        """Return the number of these places, which may be expressions."""
        number: Any = 0
        for axis, place in zip(self[:4], places, strict=True):
            number = number * len(axis) + place
        return number


class Grid(NamedTuple):
    """The conventions of one metric, by number; 0 is the caller's own."""

    label: str  # as the caller wrote it
    labels: Sequence[str]  # with all parameters of each, those of the caller first
    parameters: Sequence[Mapping[str, object]]
    axes: Axes
    presets: Mapping[str, int]  # the convention of each
    #: by…, ``convention``, ``departures`` (the choices that are not the caller's), ``value`` and
    #: ``users`` (how many count); of printed values also what ``_compared`` makes
    values: pl.DataFrame

    @property
    def own(self) -> dict[str, Any]:
        """The row of the caller's own convention, of one group."""
        rows = self.values.filter(pl.col("convention") == 0)
        return rows.row(0, named=True) if len(rows) else dict.fromkeys(rows.columns)

    def choices(self, convention: int) -> dict[str, object]:
        """Return every choice of a convention."""
        shared, label = divmod(convention, len(self.labels))
        return {**self.parameters[label], **self.axes.choices(shared)}


class Printed(NamedTuple):
    """Values of a metric that somebody printed for users: columns user and ``PRINTED``."""

    values: pl.DataFrame
    half: float  # how far a value may be away


def grids(
    question: Question, printed: Sequence[Printed] = (), *, can_rank: bool = True
) -> list[Grid]:
    """Compute all conventions of each metric of a question about Polars frames.

    With ``printed`` values of users, each convention is compared with these. Without ``can_rank``,
    the ranks of the run stay.
    """
    tables = readers.read_tables(question)
    metrics = [_variants(label, question.settings) for label in question.metrics]
    axes = _axes(question, tables, metrics, can_rank=can_rank, is_mean=not printed)
    every = [*dict.fromkeys(text for of in metrics for text in of.labels)]
    parts: list[tuple[Printed | None, list[str]]] = [(None, every)]
    if printed:
        parts = [(values, of.labels) for values, of in zip(printed, metrics, strict=True)]
    frames: list[list[pl.DataFrame]] = [[] for _ in parts]
    problem: ValueError | None = None
    for place, change in enumerate(axes.changes):
        try:
            changed = changed_question(question, tables, axes, change)
            for frame, (values, texts) in zip(frames, parts, strict=True):
                of_change = _values(changed, axes, texts, values, is_own=place == 0)
                frame += [means.with_columns(change=pl.lit(place, pl.Int64)) for means in of_change]
        except ValueError as error:
            if place == 0 and {"duplicates": "first"} not in axes.changes:
                raise
            problem = problem or error  # items come several times, unless a change takes one
    if not any(frames):
        raise cast("ValueError", problem)
    cells = [pl.concat(frame) for frame in frames] * (1 if printed else len(metrics))
    return [_numbered(of, axes, frame) for of, frame in zip(metrics, cells, strict=True)]


def values_of_users(question: Question, grid: Grid, convention: int) -> pl.DataFrame:
    """Return the value of each user under a convention."""
    choices, axes = grid.choices(convention), grid.axes
    change = {name: choices[name] for name in axes.own if choices[name] != axes.own[name]}
    changed = changed_question(question, readers.read_tables(question), axes, change)
    users: Any = None if choices["users"] == "rows" else choices["users"]
    undefined: Any = choices["undefined"]
    settings = replace(changed.settings, users=users, undefined=undefined)
    label = grid.labels[convention % len(grid.labels)]
    values = evaluation.plan_values(replace(changed, metrics=[label], settings=settings))
    value = pl.col(label).cast(pl.Float64).alias("value")
    return values.checks.guarded(values.rows).collect().select(values.user, value)


# ------------------------------------------------------------------ choices


class _Variants(NamedTuple):
    """A metric with each combination of its parameters, that of the caller first."""

    label: str
    labels: list[str]
    parameters: list[Mapping[str, object]]
    presets: dict[PresetName, int]  # the place of each


def _variants(label: object, settings: Settings) -> _Variants:
    if not isinstance(label, str):
        msg = f"metric {label!r}: its parameters are not known: use a label, such as 'ndcg@10'"
        raise TypeError(msg)
    if len(labels.parse_metrics([label], per_user=False)) > 1:
        msg = f"metric {label!r} has several cut-offs: name one"
        raise ValueError(msg)
    own = labels.call_of(label, settings.defaults)
    level = labels.parse_metric(label).relevant_at
    calls: dict[PresetName, MetricCall] = {
        name: labels.call_of(label, preset.get("defaults")) for name, preset in PRESETS.items()
    }
    choices = {name: [*_values_of(name, own, [*calls.values()])] for name in own.options}
    parameters: dict[str, Mapping[str, object]] = {}
    every = [
        dict(zip(choices, values, strict=True)) for values in itertools.product(*choices.values())
    ]
    every.sort(key=partial(_departures, every[0]))
    for options in every[:_MOST_LABELS]:
        text = labels.with_level(MetricCall(own.entry, options).label, level)
        try:
            labels.parse_metric(text)
            same = labels.call_of(text).options == options
        except ValueError:
            continue
        if same:
            parameters.setdefault(text, options)
    texts = [*parameters]
    presets: dict[PresetName, int] = {}
    for name, call in calls.items():
        text = labels.with_level(call.label, level)
        if text in parameters and _means_same(label, text, PRESETS[name].get("defaults")):
            presets[name] = texts.index(text)
    if not _means_same(label, texts[0], settings.defaults):
        msg = f"metric {label!r}: no label has what this preset sets inside it: leave out preset="
        raise ValueError(msg)
    return _Variants(label, texts, [*parameters.values()], presets)


def _departures(own: Mapping[str, object], other: Mapping[str, object]) -> int:
    """Count the parameters that are not the caller's."""
    return sum(other[name] != own[name] for name in own)


def _means_same(label: str, text: str, defaults: Any) -> bool:
    """Whether a label with defaults is another label; one of a mean may hold a metric with them."""
    (requested,) = labels.parse_metrics([label], per_user=False, defaults=defaults)
    other = labels.parse_metric(text)
    return requested.expr.meta.undo_aliases().meta.eq(other.expr.meta.undo_aliases())


def _values_of(name: str, own: MetricCall, calls: Sequence[MetricCall]) -> Iterator[object]:
    """Yield the values of a parameter, first that of the caller, each once."""
    parameter = labels.signature_of(own.entry.function).parameters[name]
    values = [own.options[name]]
    if name == "k":
        values += [None] if type(None) in get_args(parameter.annotation) else []
    else:
        if parameter.default is not parameter.empty:
            values.append(parameter.default)
        values += [*_words(parameter.annotation), *(call.options[name] for call in calls)]
    for place, value in enumerate(values):
        if value not in values[:place]:
            yield value


def _words(annotation: Any) -> list[object]:
    """Return the choices that an annotation names."""
    if annotation is bool:
        return [False, True]
    if get_origin(annotation) is Literal:
        return [*get_args(annotation)]
    return [word for part in get_args(annotation) for word in _words(part)]


def _axes(
    question: Question,
    tables: Tables,
    metrics: Sequence[_Variants],
    *,
    can_rank: bool,
    is_mean: bool,
) -> Axes:
    settings, run = question.settings, tables.run
    every: tuple[Policy, ...] = get_args(Users) if tables.has_truth else ()
    users: list[Policy] = [tables.users, *every]
    undefined = [settings.undefined, None, 0.0, 1.0]
    means = [settings.average] if is_mean else ["users"]
    has_divisor = any(_has_divisor(labels.parse_metric(of.labels[0])) for of in metrics)
    if is_mean and settings.averaged_by is None and has_divisor:
        means += ["users", "pooled"]
    is_scored = run.rank is None and run.score is not None
    own: dict[str, object] = {name: getattr(settings, name) for name in _OPTIONS}
    own |= {"ties": SINGLE if is_scored and settings.single_precision else "item", "ranks": 1}
    uncut = any(of.parameters[0].get("k") is None for of in metrics)
    pairs = _changes(tables, is_scored=is_scored, can_rank=can_rank, uncut=uncut)
    changes = [{}, *({name: value} for name, value in pairs if value != own[name])]
    default = replace(tables, settings=replace(settings, users=None, preset=None)).users
    return Axes(
        changes, _once(users), _once(undefined), _once(means), own, default, is_scored=is_scored
    )


def _once(values: Iterable[T]) -> list[T]:
    return list(dict.fromkeys(values))


def _changes(
    tables: Tables, *, is_scored: bool, can_rank: bool, uncut: bool
) -> Iterator[tuple[str, object]]:
    """Yield what may be changed of the tables, where it can change a value."""
    run = tables.run
    rows = run.rows_passed.filter(pl.col(run.placing).is_not_null())
    facts = [
        pl.struct(run.keys).value_counts().struct.field("count").max().alias("longest"),
        pl.struct(run.row).is_duplicated().any().alias("repeats"),
    ]
    if is_scored:
        score = pl.col(run.placing)
        pairs = {"ties": score, SINGLE: score.cast(pl.Float32)}
        facts += [pl.struct(*run.keys, x).n_unique().alias(name) for name, x in pairs.items()]
    lists = rows.select(pl.len(), *facts).collect().row(0, named=True)
    if (relevance := tables.both[-1].relevance) is not None:
        rows = tables.both[-1].frame.select(pl.col(relevance).cast(pl.Float64).unique().sort())
        grades = rows.collect()[relevance].drop_nulls().to_list()
        levels = [grade for grade in grades if grade > 0]
        yield from (("relevant_at", level) for level in (None, *levels[1 : _FEW_GRADES + 1]))
        if len(levels) < len(grades):
            yield from (("unjudged", what) for what in ("miss", "drop"))
    if is_scored and can_rank and lists["ties"] < lists["len"]:
        yield from (("ties", how) for how in get_args(rank_order.Ties))
    if is_scored and lists[SINGLE] < lists["ties"]:
        yield "ties", SINGLE
    if lists["repeats"] and tables.settings.duplicates == "error":
        yield from (("duplicates", what) for what in ("first", "occupy"))
    if uncut:
        yield from (("depth", depth) for depth in _DEPTHS if depth < (lists["longest"] or 0))
    if can_rank:
        yield "ranks", 2


def _has_divisor(metric: RequestedMetric) -> bool:
    call = metric.call
    return call is not None and metric.over_users.epsilon is None and call.entry.divisor is not None


# ------------------------------------------------------------------ changes of the tables


def changed_question(
    question: Question, tables: Tables, axes: Axes, change: Mapping[str, object]
) -> Question:
    """Return the question about all users of the tables with a change."""
    frame, columns = question.frame, question.settings.columns
    if "ranks" in change or change.get("ties") in get_args(rank_order.Ties):
        frame, columns = _ranked(question, tables, change)
    options: Any = {name: value for name, value in change.items() if name in _OPTIONS}
    single = {**axes.own, **change}["ties"] == SINGLE
    preset: Preset = {"single_precision": single}  # the labels have all of its parameters
    settings = replace(
        question.settings, preset=preset, users="all", undefined=None, columns=columns, **options
    )
    return replace(question, frame=frame, settings=settings)


def _ranked(
    question: Question, tables: Tables, change: Mapping[str, object]
) -> tuple[pl.LazyFrame | pl.DataFrame, Columns]:
    """Rank the run in another way."""
    settings, columns = question.settings, dict(question.settings.columns)
    frame: Any = question.frame
    if tables.run.rank is None:
        options: Any = {name: value for name, value in columns.items() if name != "rank"}
        ties: Any = change.get("ties", "item")
        if ties in rank_order.BY_GRADE and question.truth is not None:
            options["truth"] = question.truth
        if settings.single_precision and "ties" not in change:
            options["preset"] = {"single_precision": True}
        by = [name for name in question.by if name in adapters.column_names(frame, "run")]
        frame = verbs.with_rank(frame, by=by, ties=ties, duplicates=settings.duplicates, **options)
        columns.pop("score", None)
    if "ranks" in change:
        frame = frame.with_columns(pl.col(str(columns.get("rank", "rank"))) + 1)
    return frame, Columns(**columns)  # type: ignore[typeddict-item]


# ------------------------------------------------------------------ values


def _values(
    question: Question,
    axes: Axes,
    texts: Sequence[str],
    printed: Printed | None,
    *,
    is_own: bool,
) -> Iterator[pl.DataFrame]:
    """Yield the values of labels on the tables of a question, for all that they share."""
    kinds: dict[Callable[..., pl.DataFrame], list[str]] = {}
    of_users = {mean: partial(_of_users, average=mean, printed=printed) for mean in axes.averages}
    of_users.setdefault("users", partial(_of_users, average="users"))
    for text in texts:
        metric = labels.parse_metric(text)
        may_pool = axes.averages[0] == "pooled" or _has_divisor(metric)  # the caller's may fail
        mean = "pooled" if "pooled" in of_users and may_pool else "users"
        kinds.setdefault(_of_lists if metric.is_of_all_lists else of_users[mean], []).append(text)
    with warnings.catch_warnings():
        if not is_own:  # they would be of tables that the caller does not have
            warnings.simplefilter("ignore", RankingWarning)
        for make, names in kinds.items():
            yield from _tried(partial(make, question, axes), names, is_own=is_own)


def _tried(
    make: Callable[[Sequence[str]], pl.DataFrame],
    names: Sequence[str],
    *,
    is_own: bool,
    is_half: bool = False,
) -> Iterator[pl.DataFrame]:
    """Yield the values of labels, without those that the tables do not allow."""
    try:
        yield make(names)
    except ValueError:
        # if the caller's label fails, so do all others
        if len(names) > 1 and (is_half or [*_tried(make, names[:1], is_own=is_own)]):
            middle = len(names) // 2
            for half in (names[:middle], names[middle:]):
                yield from _tried(make, half, is_own=False, is_half=True)
        elif is_own:
            raise


def _of_lists(question: Question, axes: Axes, names: Sequence[str]) -> pl.DataFrame:
    """Return metrics of all lists together, each set of users by itself."""
    average = "users" if question.settings.average == "pooled" else question.settings.average
    frames: list[pl.DataFrame] = []
    for place, policy in enumerate(axes.users):
        users = None if policy == "rows" else policy
        settings = replace(question.settings, users=users, average=average)
        call = replace(question, metrics=names, settings=settings)
        means = group_means.checked_means(evaluation.plan_means(call), total=False).collect()
        means = means.rename({"users": _COUNTED}).with_columns(pl.col(*names).cast(pl.Float64))
        for undefined, filled in enumerate(axes.undefined):
            numbers = (
                means if filled is None else means.with_columns(pl.col(*names).fill_null(filled))
            )
            frames.append(_long(numbers, names, users=place, undefined=undefined, average=0))
    return pl.concat(frames)


def _long(frame: pl.DataFrame, names: Sequence[str], **places: int) -> pl.DataFrame:
    """Return one row per label, with places in the axes."""
    index = [name for name in frame.columns if name not in names]
    columns = {name: pl.lit(place, pl.Int64) for name, place in places.items()}
    return frame.unpivot(names, index=index, variable_name=_TEXT).with_columns(**columns)


def _of_users(
    question: Question,
    axes: Axes,
    names: Sequence[str],
    *,
    average: str,
    printed: Printed | None = None,
) -> pl.DataFrame:
    """Return means over each set of users, or what differs from printed values."""
    settings = replace(question.settings, average=average)
    values = evaluation.plan_values(replace(question, metrics=names, settings=settings))
    users = _in_sets(values, values.rows, axes.users, printed)
    worst = users
    if "rows" in axes.users:  # here, what is undefined may be the worst value
        rows = reduction.with_worst(values.rows, values.source, values.requested)
        worst = _in_sets(values, rows, axes.users, printed)
    frames: list[pl.DataFrame] = []
    for (place, policy), (undefined, filled), mean in itertools.product(
        enumerate(axes.users), enumerate(axes.undefined), dict.fromkeys(["users", average])
    ):
        inside = (worst if policy == "rows" and filled is None else users).filter(_in_set(policy))
        columns = _means(values, mean, filled, policy)
        if printed is not None:
            columns = _compared(values, filled, printed)
        counted = pl.len().cast(pl.Int64).alias(_COUNTED)
        if values.by:
            of_set = inside.group_by(values.by).agg(counted, **columns)
        else:
            of_set = inside.select(counted, **columns)
        at = axes.averages.index(mean) if mean in axes.averages else 0
        frames.append(_long(of_set, [*columns], users=place, undefined=undefined, average=at))
    cells = pl.concat(frames)
    if printed is not None:
        return cells.unnest("value")
    if question.settings.averaged_by is not None:
        by = [name for name in cells.columns if name not in (question.by[-1], "value", _COUNTED)]
        cells = cells.group_by(by).agg(pl.col("value").mean(), pl.col(_COUNTED).sum())
    return cells


def _in_set(policy: Policy) -> str:
    """Name the column that marks the users of a set."""
    return f"{labels.PREFIX}in {policy}"


def _in_sets(
    values: Values, rows: pl.LazyFrame, sets: Sequence[Policy], printed: Printed | None
) -> pl.DataFrame:
    """Return all users, with the sets that they are in, and what was printed for them."""
    for policy in sets:
        member = pl.lit(value=True).alias(_in_set(policy))
        if policy == "all":
            rows = rows.with_columns(member)
        else:
            selected = user_choice.selected(values.source, policy).with_columns(member)
            rows = rows.join(selected, on=values.keys, how="left")
    users = values.checks.guarded(rows).collect().sort(values.keys)  # sums in one order
    if printed is None:
        return users
    user = pl.col(values.user).cast(users.schema[values.user], strict=False)
    texts = printed.values.with_columns(user, pl.lit(value=True).alias(_IS_PRINTED))
    is_printed = pl.col(_IS_PRINTED).fill_null(value=False)
    return users.join(texts, on=values.user, how="left").with_columns(is_printed)


def _means(values: Values, mean: str, filled: float | None, policy: Policy) -> dict[str, pl.Expr]:
    """Return the mean of each label over users, with a value where it is undefined."""
    means: dict[str, pl.Expr] = {}
    for metric in values.requested:
        value = pl.col(metric.name).cast(pl.Float64)
        value = value if filled is None else value.fill_null(filled)
        weight = None if values.weights is None else pl.col(WEIGHT)
        if mean == "pooled" and metric.name in values.pooled:
            unmet = labels.divisor_of(metric, tied=values.source.tables.tied).unmet
            if unmet is None and (policy == "rows" or filled is not None):
                continue  # the length of a list is not known where nothing is relevant
            unmet_weight = (unmet or 0) * (pl.lit(1.0) if weight is None else weight)
            weight = pl.col(values.pooled[metric.name]).fill_null(unmet_weight)
        weighted = pl.Expr.mean if weight is None else partial(_weighted_mean, weights=weight)
        means[metric.name] = metric.over_users(value, weighted)
    return means


def _weighted_mean(values: pl.Expr, weights: pl.Expr) -> pl.Expr:
    """Take the mean of a few sums; that of ``sums``, of the same bits in all orders, is slow."""
    whole = pl.when(values.is_not_null()).then(weights).sum()
    return pl.when(whole > 0).then((values * weights).sum() / whole)


def _compared(values: Values, filled: float | None, printed: Printed) -> dict[str, pl.Expr]:
    """Return the mean of each label, and for how many users it is not what was printed.

    ``more`` counts users with a value who were not printed, and equal values have equal ``mark``.
    """
    text, is_printed = pl.col(PRINTED), pl.col(_IS_PRINTED)
    place = pl.col(values.user).hash(seed=0).cast(pl.Float64) / 2.0**64
    columns: dict[str, pl.Expr] = {}
    for metric in values.requested:
        value = pl.col(metric.name).cast(pl.Float64)
        value = value if filled is None else value.fill_null(filled)
        fits = ((value - text).abs() <= printed.half).fill_null(value.is_null() & text.is_null())
        columns[metric.name] = pl.struct(
            value=value.mean(),
            misses=len(printed.values) - (is_printed & fits).sum().cast(pl.Int64),
            more=(~is_printed & value.is_not_null()).sum(),
            mark=((value.fill_null(-7) + 3) * place).sum(),
        )
    return columns


def _numbered(variants: _Variants, axes: Axes, cells: pl.DataFrame) -> Grid:
    """Number the conventions of a metric, and count their departures from the caller's."""
    texts, parameters = variants.labels, variants.parameters
    of_label = pl.DataFrame(
        {
            _TEXT: texts,
            "place": [*range(len(texts))],
            "own": [_departures(parameters[0], other) for other in parameters],
        }
    )
    number = axes.number(map(pl.col, _SHARED)) * len(texts) + pl.col("place")
    departures = pl.sum_horizontal("own", *(pl.col(name) > 0 for name in _SHARED)).cast(pl.Int64)
    cells = cells.join(of_label, on=_TEXT).drop_nulls("value")
    values = cells.select(
        pl.exclude(_TEXT, "place", "own", _COUNTED, *_SHARED),
        number.alias("convention"),
        departures.alias("departures"),
        pl.col(_COUNTED).alias("users"),
    ).sort("convention", maintain_order=True)
    presets: dict[str, int] = {
        name: _shared_of(name, axes) * len(texts) + place
        for name, place in variants.presets.items()
        if PRESETS[name].get("users", axes.users[0]) in axes.users
    }
    return Grid(variants.label, texts, parameters, axes, presets, values)


def _shared_of(name: PresetName, axes: Axes) -> int:
    """Return the number of what a preset shares; the average stays the caller's."""
    preset = PRESETS[name]
    ties = SINGLE if preset.get("single_precision") and axes.is_scored else "item"
    change = {"ties": ties} if SINGLE in (ties, axes.own["ties"]) else {}
    number: int = axes.number(
        (
            axes.changes.index(change) if change in axes.changes else 0,
            axes.users.index(preset.get("users") or axes.users[0]),
            axes.undefined.index(preset.get("undefined")),
            0,
        )
    )
    return number
