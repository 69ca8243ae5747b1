"""The conventions of metrics, and the values that they give on the tables of a call (``Grid``).

A convention is a mapping of choices to values: the parameters of a metric, ``users``,
``undefined``, ``average``, and at most one change of the tables: ``relevant_at``, ``ties``,
``duplicates``, ``depth``, ``ranks`` or ``unjudged``. The rows of all users are made once for each
change of the tables, with the columns of all labels; means are sums over sets of users.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Literal, NamedTuple, get_args, get_origin

import polars as pl

from rankframe._evaluation import evaluation, group_means, reduction, user_choice
from rankframe._evaluation.user_columns import WEIGHT
from rankframe._evaluation.values import Values
from rankframe._request import labels
from rankframe._request.keywords import Columns, Settings
from rankframe._request.labels import Divisor, MetricCall, RequestedMetric
from rankframe._request.question import Question
from rankframe._tables import adapters, rank_order, readers, verbs
from rankframe._tables.judgment import Joined
from rankframe._tables.table import Policy, Tables
from rankframe.errors import RankingWarning
from rankframe.presets import PRESETS, PresetName, Users

_FEW_GRADES = 4
_MOST_LABELS = 100  # with the parameters of a metric: those with the fewest departures
_DEPTHS = (5, 10, 20, 50, 100, 200, 500, 1000)
_SHARED = ("users", "undefined", "average")
#: What a change may replace: options of the call, and of the run before it.
_OPTIONS = ("relevant_at", "duplicates", "depth", "unjudged")
BY_GRADE = ("pessimistic", "optimistic")
#: Scores as trec_eval 9 ranks them.
SINGLE = "32-bit"


class Axes(NamedTuple):
    """The choices that all metrics of a call share; those of the caller come first."""

    own: Mapping[str, object]  # what the caller's tables have in place of a change
    changes: Sequence[Mapping[str, object]]  # of the tables; of one choice, or empty
    users: Sequence[Policy]
    undefined: Sequence[float | None]
    averages: Sequence[str]
    default: Policy  # the users of a call that names none
    is_scored: bool  # whether scores are ranked

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of values of each."""
        return tuple(map(len, self[1:5]))

    def choices(self, shared: int) -> dict[str, object]:
        """Return the choices of a number of these."""
        places: list[int] = []
        for size in reversed(self.sizes):
            shared, place = divmod(shared, size)
            places.append(place)
        average, undefined, users, change = places
        values = (self.users[users], self.undefined[undefined], self.averages[average])
        return {**dict(zip(_SHARED, values, strict=True)), **self.own, **self.changes[change]}


class Grid(NamedTuple):
    """The conventions of one metric, by number; 0 is the caller's own."""

    label: str  # as the caller wrote it
    labels: Sequence[str]  # with all parameters of each, those of the caller first
    parameters: Sequence[Mapping[str, object]]
    axes: Axes
    presets: Mapping[str, int]  # the convention of each
    #: by…, ``convention``, ``departures`` (the choices that are not the caller's), ``value`` and
    #: ``users`` (how many count)
    values: pl.DataFrame

    @property
    def own(self) -> float | None:
        """The caller's own value, of one group."""
        return self._first("value")

    @property
    def users(self) -> int | None:
        """The number of users whom the caller counts, of one group."""
        return self._first("users")

    def _first(self, name: str) -> Any:
        rows = self.values.filter(pl.col("convention") == 0)
        return rows[name][0] if len(rows) else None

    def choices(self, convention: int) -> dict[str, object]:
        """Return every choice of a convention."""
        shared, label = divmod(convention, len(self.labels))
        return {**self.parameters[label], **self.axes.choices(shared)}


def grids(question: Question) -> list[Grid]:
    """Compute the values of all conventions of each metric of a question about Polars frames."""
    tables = readers.read_tables(question)
    metrics = [_variants(label, question.settings) for label in question.metrics]
    axes = _axes(question, tables, metrics)
    texts = [*dict.fromkeys(text for variants in metrics for text in variants.labels)]
    frames: list[pl.DataFrame] = []
    for place, changed in enumerate(changed_questions(question, tables, axes)):
        values = [*_values(changed, texts, axes, is_own=place == 0)]
        frames += [frame.with_columns(change=pl.lit(place, pl.Int64)) for frame in values]
    return [_numbered(variants, axes, pl.concat(frames), question) for variants in metrics]


# ------------------------------------------------------------------ choices


class _Variants(NamedTuple):
    """A metric with each combination of its parameters, that of the caller first."""

    label: str
    labels: list[str]
    parameters: list[Mapping[str, object]]
    presets: dict[str, int]  # the place of each


def _variants(label: object, settings: Settings) -> _Variants:
    if not isinstance(label, str):
        msg = f"metric {label!r}: its parameters are not known: take a label, such as 'ndcg@10'"
        raise TypeError(msg)
    own = labels.call_of(label, settings.defaults)
    level = labels.parse_metric(label).relevant_at
    calls = {
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
    presets: dict[str, int] = {}
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


def _axes(question: Question, tables: Tables, variants: Sequence[_Variants]) -> Axes:
    settings, own = question.settings, tables.users
    users: list[Policy] = [own]
    if tables.has_truth:
        users += [policy for policy in get_args(Users) if policy != own]
    undefined = [settings.undefined, None, 0.0, 1.0]
    means = [settings.average]
    has_divisor = any(_has_divisor(labels.parse_metric(of.labels[0])) for of in variants)
    if settings.averaged_by is None and has_divisor:
        means += [mean for mean in ("users", "pooled") if mean != settings.average]
    is_scored = tables.run.rank is None and tables.run.score is not None
    single = is_scored and settings.single_precision
    has: dict[str, object] = {name: getattr(settings, name) for name in _OPTIONS}
    has |= {"ties": SINGLE if single else "item", "ranks": 1}
    uncut = any(of.parameters[0].get("k") is None for of in variants)
    changes = [{name: value} for name, value in _changes(tables, uncut=uncut) if value != has[name]]
    default = replace(tables, settings=replace(settings, users=None, preset=None)).users
    places = [*dict.fromkeys(undefined)]
    return Axes(has, [{}, *changes], users, places, means, default, is_scored)


def _changes(tables: Tables, *, uncut: bool) -> Iterator[tuple[str, object]]:
    """Yield what may be changed of the tables, where it can change a value."""
    run = tables.run
    rows = run.rows_passed.filter(pl.col(run.placing).is_not_null())
    facts = [
        pl.struct(run.keys).value_counts().struct.field("count").max().alias("longest"),
        pl.struct(run.row).is_duplicated().any().alias("repeats"),
    ]
    is_scored = run.rank is None and run.score is not None
    if is_scored:
        for name, score in (
            ("ties", pl.col(run.score)),
            (SINGLE, pl.col(run.score).cast(pl.Float32)),
        ):
            places = pl.struct(*run.keys, score).n_unique()
            facts.append(places.alias(name))
    lists = rows.select(pl.len(), *facts).collect().row(0, named=True)
    if tables.has_truth:
        judged = tables.both[-1]
        if judged.relevance is not None:
            grades = judged.frame.select(pl.col(judged.relevance).unique().sort()).collect()
            levels = [float(x) for x in grades.to_series().drop_nulls() if x > 0]
            yield from (("relevant_at", x) for x in (None, *levels[1 : _FEW_GRADES + 1]))
            if any(x <= 0 for x in grades.to_series().drop_nulls()):
                yield from (("unjudged", what) for what in ("miss", "drop"))
    if is_scored and lists["ties"] < lists["len"]:
        yield from (("ties", how) for how in get_args(rank_order.Ties))
    if is_scored and lists[SINGLE] < lists["ties"]:
        yield "ties", SINGLE
    if lists["repeats"] and tables.settings.duplicates == "error":
        yield from (("duplicates", what) for what in ("first", "occupy"))
    if uncut:
        yield from (("depth", depth) for depth in _DEPTHS if depth < (lists["longest"] or 0))
    yield "ranks", 2


def _has_divisor(metric: RequestedMetric) -> bool:
    call = metric.call
    return call is not None and metric.over_users.epsilon is None and call.entry.divisor is not None


# ------------------------------------------------------------------ changes of the tables


def changed_questions(question: Question, tables: Tables, axes: Axes) -> Iterator[Question]:
    """Yield the question about all users for each change of the tables."""
    for change in axes.changes:
        frame, columns = question.frame, question.settings.columns
        if "ranks" in change or change.get("ties") in get_args(rank_order.Ties):
            frame, columns = _ranked(question, tables, change)
        single = {**axes.own, **change}["ties"] == SINGLE
        options: Any = {name: value for name, value in change.items() if name in _OPTIONS}
        settings = replace(
            question.settings,
            preset={"single_precision": single},
            users="all",
            undefined=None,
            columns=columns,
            **options,
        )
        yield replace(question, frame=frame, settings=settings)


def _ranked(
    question: Question, tables: Tables, change: Mapping[str, object]
) -> tuple[pl.LazyFrame | pl.DataFrame, Columns]:
    """Rank the run in another way."""
    settings, columns = question.settings, dict(question.settings.columns)
    frame: Any = question.frame
    if tables.run.rank is None:
        options: Any = {name: value for name, value in columns.items() if name != "rank"}
        ties: Any = change.get("ties", "item")
        if ties in BY_GRADE and question.truth is not None:
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

_TEXT = "label"
_AVERAGE, _UNDEFINED, _USERS = "average", "undefined", "set"  # places in axes


def _values(
    question: Question, texts: Sequence[str], axes: Axes, *, is_own: bool
) -> Iterator[pl.DataFrame]:
    """Yield the means of labels on the tables of a question, for all that they share."""
    kinds: dict[Callable[..., pl.DataFrame], list[str]] = {}
    for text in texts:
        metric = labels.parse_metric(text)
        make = _with_pooled if "pooled" in axes.averages and _has_divisor(metric) else _of_users
        kinds.setdefault(_of_lists if metric.is_of_all_lists else make, []).append(text)
    with warnings.catch_warnings():
        if not is_own:  # the caller question for none of them
            warnings.simplefilter("ignore", RankingWarning)
        for make, names in kinds.items():
            yield from _tried(partial(make, question, axes), names, is_own=is_own)


def _tried(
    make: Callable[[Sequence[str]], pl.DataFrame], names: Sequence[str], *, is_own: bool
) -> Iterator[pl.DataFrame]:
    """Yield the values of labels, without those that the tables do not allow."""
    try:
        yield make(names)
    except ValueError:
        if len(names) > 1 and [*_tried(make, names[:1], is_own=is_own)]:
            middle = len(names) // 2
            for half in (names[:middle], names[middle:]):
                yield from _tried(make, half, is_own=False)
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
        by = [name for name in means.columns if name not in ("users", *names)]
        numbers = pl.col(*names).cast(pl.Float64)
        long = means.with_columns(numbers).unpivot(names, index=[*by, "users"], variable_name=_TEXT)
        frames.append(long.with_columns(_place(_USERS, place), _place(_AVERAGE, 0)))
    undefined = _undefined(axes)
    filled = pl.col("value").fill_null(pl.col("filled"))
    means = pl.concat(frames).join(undefined, how="cross").with_columns(filled)
    return means.select(*question.by, _TEXT, _USERS, _UNDEFINED, _AVERAGE, "users", "value")


def _undefined(axes: Axes) -> pl.DataFrame:
    places = pl.int_range(len(axes.undefined), eager=True)
    return pl.DataFrame(
        {_UNDEFINED: places, "filled": axes.undefined}, {_UNDEFINED: pl.Int64, "filled": pl.Float64}
    )


def _place(name: str, place: int) -> pl.Expr:
    return pl.lit(place, pl.Int64).alias(name)


def _with_pooled(question: Question, axes: Axes, names: Sequence[str]) -> pl.DataFrame:
    return _of_users(question, axes, names, average="pooled")


def _of_users(
    question: Question, axes: Axes, names: Sequence[str], *, average: str = "users"
) -> pl.DataFrame:
    """Return means over each set of users, of sums over users who are in the same sets."""
    settings = replace(question.settings, average=average)
    values = evaluation.plan_values(replace(question, metrics=names, settings=settings))
    sums = _sums(values, values.rows, axes.users)
    means = _means(values, sums, axes, _undefined(axes))
    if "rows" in axes.users:  # here, what is undefined may be the worst value
        rows = reduction.with_worst(values.rows, values.source, values.requested)
        nothing = _undefined(axes).filter(pl.col("filled").is_null())
        worst = _means(values, _sums(values, rows, ["rows"]), axes, nothing)
        keys = [name for name in means.columns if name not in ("value", "users")]
        means = pl.concat([means.join(worst, on=keys, how="anti", nulls_equal=True), worst])
    if question.settings.averaged_by is not None:
        by = [n for n in means.columns if n not in (question.by[-1], "users", "value")]
        means = means.group_by(by).agg(pl.col("users").sum(), pl.col("value").mean())
    return means


def members(joined: Joined, rows: pl.LazyFrame, users: Sequence[Policy]) -> pl.LazyFrame:
    """Mark for each set of users whether it has a user of these rows."""
    for policy in users:
        if policy == "all":
            rows = rows.with_columns(pl.lit(value=True).alias(in_set(policy)))
            continue
        selected = user_choice.selected(joined, policy)
        selected = selected.with_columns(pl.lit(value=True).alias(in_set(policy)))
        rows = rows.join(selected, on=joined.keys, how="left")
    return rows


def in_set(policy: Policy) -> str:
    """Name the column that marks the users of a set."""
    return f"{labels.PREFIX}in {policy}"


def _sums(values: Values, rows: pl.LazyFrame, policies: Sequence[Policy]) -> pl.DataFrame:
    """Add up values and weights of each label and mean, over users who are in the same sets."""
    weight = pl.lit(1.0) if values.weights is None else pl.col(WEIGHT)
    sums: list[pl.Expr] = []
    structs: list[pl.Expr] = []
    for place, metric in enumerate(values.requested):
        value = metric.over_users.transform(pl.col(metric.name).cast(pl.Float64))
        is_defined = value.is_not_null()
        weights = {"users": weight}
        if values.settings.average == "pooled":
            weights["pooled"] = weight
        if metric.name in values.pooled:
            unmet = _divisor(values, metric).unmet
            own = pl.col(values.pooled[metric.name])
            weights["pooled"] = pl.when(is_defined).then(own).otherwise((unmet or 0) * weight)
        for average, of_user in weights.items():
            of_user = of_user.cast(pl.Float64)
            parts = {
                "sum": (value * of_user).sum(),
                "weight": pl.when(is_defined).then(of_user).sum(),
                "lacking": pl.when(~is_defined).then(of_user).sum(),
            }
            named = {part: f"{place} {average} {part}" for part in parts}
            sums += [parts[part].alias(name) for part, name in named.items()]
            columns = {part: pl.col(name) for part, name in named.items()}
            structs.append(pl.struct(metric=pl.lit(place), average=pl.lit(average), **columns))
    sets = [in_set(policy) for policy in policies]
    marked = members(values.source, rows, policies)
    users = pl.len().cast(pl.Int64).alias("users")
    added = marked.group_by(*values.by, *sets).agg(users, *sums)
    checked = values.checks.guarded(added).collect()
    long = checked.select(*values.by, *sets, "users", pl.concat_list(structs).alias("long"))
    return long.explode("long", empty_as_null=True).unnest("long")


def _divisor(values: Values, metric: RequestedMetric) -> Divisor:
    return labels.divisor_of(metric, tied=values.source.tables.tied)


def _means(values: Values, sums: pl.DataFrame, axes: Axes, undefined: pl.DataFrame) -> pl.DataFrame:
    """Divide sums, for each set of users and each value of what is undefined."""
    by, keys = values.by, ["metric", "average"]
    frames: list[pl.DataFrame] = []
    for place, policy in enumerate(axes.users):
        if in_set(policy) in sums.columns:
            counted = sums.filter(pl.col(in_set(policy))).group_by(*by, *keys)
            added = counted.agg(pl.col("users", "sum", "weight", "lacking").sum())
            frames.append(added.with_columns(_place(_USERS, place)))
    means = pl.concat(frames).join(undefined, how="cross")
    own = pl.col("filled")
    for place, metric in enumerate(values.requested):
        if metric.over_users.epsilon is not None:
            of_metric = pl.col("metric") == place
            own = (
                pl.when(of_metric)
                .then(metric.over_users.transform(pl.col("filled")))
                .otherwise(own)
            )
    is_filled = pl.col("filled").is_not_null()
    total = pl.col("sum") + pl.when(is_filled).then(own * pl.col("lacking")).otherwise(0)
    whole = pl.col("weight") + pl.when(is_filled).then(pl.col("lacking")).otherwise(0)
    are_sums = [n for n, m in enumerate(values.requested) if m.over_users.aggregate == "sum"]
    value = pl.when(pl.col("metric").is_in(are_sums)).then(total)
    value = value.otherwise(pl.when(whole > 0).then(total / whole))
    for place, metric in enumerate(values.requested):
        if metric.over_users.epsilon is not None:
            of_metric = pl.col("metric") == place
            value = pl.when(of_metric).then(metric.over_users.inverse(value)).otherwise(value)
    if values.pooled:  # the length of a list is not known where nothing is relevant
        unknown = [
            place
            for place, metric in enumerate(values.requested)
            if metric.name in values.pooled and _divisor(values, metric).unmet is None
        ]
        is_pooled = (pl.col("average") == "pooled") & pl.col("metric").is_in(unknown)
        rows = [n for n, policy in enumerate(axes.users) if policy == "rows"]
        means = means.filter(~(is_pooled & (is_filled | pl.col(_USERS).is_in(rows))))
    texts = [metric.name for metric in values.requested]
    place_of = {average: place for place, average in enumerate(axes.averages)}
    if values.settings.average == "users":
        place_of.setdefault("users", 0)  # that of groups
    return means.select(
        *by,
        pl.col("metric")
        .replace_strict(dict(enumerate(texts)), return_dtype=pl.String)
        .alias(_TEXT),
        _USERS,
        _UNDEFINED,
        pl.col("average").replace_strict(place_of, return_dtype=pl.Int64),
        "users",
        value.alias("value"),
    )


def _numbered(variants: _Variants, axes: Axes, values: pl.DataFrame, question: Question) -> Grid:
    """Number the conventions of a metric, and count their departures from the caller's."""
    by = [name for name in question.by if name in values.columns]
    of_label = pl.DataFrame(
        {
            _TEXT: variants.labels,
            "place": range(len(variants.labels)),
            "own": [*map(partial(_departures, variants.parameters[0]), variants.parameters)],
        },
        schema_overrides={"place": pl.Int64, "own": pl.Int64},
    )
    places = ["change", _USERS, _UNDEFINED, _AVERAGE]
    number, departures = pl.lit(0, pl.Int64), pl.col("own")
    for name, size in zip(places, axes.sizes, strict=True):
        number = number * size + pl.col(name)
        departures = departures + (pl.col(name) > 0)
    cells = values.join(of_label, on=_TEXT).drop_nulls("value")
    number = number * len(variants.labels) + pl.col("place")
    frame = cells.select(
        *by,
        number.alias("convention"),
        departures.cast(pl.Int64).alias("departures"),
        "value",
        "users",
    )
    presets = {
        name: _shared_of(name, axes) * len(variants.labels) + place
        for name, place in variants.presets.items()
    }
    frame = frame.sort(*by, "convention")
    return Grid(variants.label, variants.labels, variants.parameters, axes, presets, frame)


def _shared_of(preset: PresetName, axes: Axes) -> int:
    """Return the number of what a preset shares; a mean of groups stays the caller's."""
    own, set_by = axes.own["ties"], PRESETS[preset]
    ties = SINGLE if set_by.get("single_precision") else "item"
    change = {"ties": ties} if own != ties and SINGLE in (own, ties) else {}
    places = (
        axes.changes.index(change) if change in axes.changes else 0,
        axes.users.index(set_by.get("users") or axes.users[0]),
        axes.undefined.index(set_by.get("undefined")),
        axes.averages.index("users") if "users" in axes.averages else 0,
    )
    number = 0
    for place, size in zip(places, axes.sizes, strict=True):
        number = number * size + place
    return number
