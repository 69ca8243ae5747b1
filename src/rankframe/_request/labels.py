"""Labels and expressions: ``"ndcg(gain=exponential)@10"`` ↔ ``ndcg_at(10, gain="exponential")``.

``labelled`` turns a function of :mod:`rankframe.metrics` into a metric: it checks the parameters
against the annotations, and names the expression with its canonical label.

Stage of the pipeline: ``parse_metric`` reads each label or expression of a call into a
``RequestedMetric``.
"""

import contextlib
import contextvars
import functools
import inspect
import math
import re
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, NamedTuple, ParamSpec, TypeAlias, cast

import polars as pl

from rankframe._request import keywords, parameters, registry, share_names, wrong_keywords
from rankframe._request.share_names import Distribution
from rankframe.errors import Problem, code, marked, option, wording
from rankframe.presets import Defaults

Metric: TypeAlias = str | pl.Expr | Sequence[str | pl.Expr]
Alias: TypeAlias = str | Callable[[str], str]
#: Which judgments of the unjudged items make a metric least and greatest: none or all of them are
#: relevant; or those below k alone, and those above alone. The metric must not fall as more of the
#: list's items (down to k) are relevant; then ``undefined=0`` is the least value for a user without
#: one.
Extremes: TypeAlias = Literal["none or all", "above or below k"]

#: The prefix of the names of internal columns.
PREFIX = "__rankframe_"

_TIE_MODE = contextvars.ContextVar("_TIE_MODE", default=False)

P = ParamSpec("P")
MetricFunction: TypeAlias = Callable[..., pl.Expr]


def _as_it_is(value: pl.Expr) -> pl.Expr:
    return value


class Aggregate(NamedTuple):
    """An aggregate over users: transform each value, take the mean or sum, apply the inverse."""

    transform: Callable[[pl.Expr], pl.Expr] = _as_it_is
    inverse: Callable[[pl.Expr], pl.Expr] = _as_it_is
    aggregate: Literal["mean", "sum"] = "mean"
    #: what a geometric mean adds before the logarithm; None for other means
    epsilon: float | None = None

    def __call__(
        self,
        values: pl.Expr,
        mean: Callable[[pl.Expr], pl.Expr] = pl.Expr.mean,
        total: Callable[[pl.Expr], pl.Expr] = pl.Expr.sum,
    ) -> pl.Expr:
        """Reduce the values of all users."""
        reduce = total if self.aggregate == "sum" else mean
        return self.inverse(reduce(self.transform(values)))


MEAN = Aggregate()
SUM = Aggregate(aggregate="sum")


class Mean(NamedTuple):
    """A mean over users that is not the arithmetic one: a per-user metric and its aggregate."""

    metric: pl.Expr
    over_users: Aggregate
    label: str | None = None  # of the metric, if it has defaults


def geometric_mean_of(metric: pl.Expr, label: str, epsilon: float) -> Mean:
    """Make exp(mean(ln(x + ε))) − ε of a metric."""

    def logarithm(value: pl.Expr) -> pl.Expr:
        return (value + epsilon).log()

    def inverse(mean: pl.Expr) -> pl.Expr:
        return undo_logarithm(mean, epsilon)

    over_users = Aggregate(transform=logarithm, inverse=inverse, epsilon=epsilon)
    return Mean(metric, over_users, label)


def undo_logarithm(mean: pl.Expr, epsilon: float) -> pl.Expr:
    """Return a mean of logarithms of x + ε on the scale of x."""
    return (mean.exp() - epsilon).clip(0)  # for zeros, rounding can make it negative


class Traits(NamedTuple):
    """Which values of a user a metric can have, and which are better."""

    higher_is_better: bool | None = None  # None: neither is, or it is not declared
    least: float = -math.inf
    greatest: float = math.inf

    @property
    def width(self) -> float:
        """The greatest difference of two values."""
        return self.greatest - self.least


UNDECLARED = Traits()


class Divisor(NamedTuple):
    """What the value of a user is divided by: the weight of the user in the pooled mean."""

    of_user: pl.Expr
    unmet: int | None  # of a user without a relevant item; None: the relevant rows do not tell


class Entry(NamedTuple):
    """Everything declared about a metric: its names, its range and direction, its bounds."""

    function: Callable[..., Any]
    label: str
    plain: str  # the label where every option has its default
    aliases: tuple[tuple[str, Alias], ...] = ()
    over_users: Aggregate = MEAN
    extremes: Extremes | Callable[..., Extremes | None] | None = None  # None: no proven bounds
    value_range: tuple[float, float] = (0, 1)
    higher_is_better: bool | None = True  # None: neither is
    cut: Literal["rank", "misses"] = "rank"  # what its k counts
    registered: bool = False
    in_words: str = ""  # the question that it answers, for a reader who knows no metrics
    divisor: Callable[..., Divisor] | None = None  # of its options; None: no pooled mean

    @property
    def traits(self) -> Traits:
        return Traits(self.higher_is_better, *self.value_range)


class MetricCall(NamedTuple):
    """What a label or an expression means: a metric function with all its options, checked."""

    entry: Entry
    options: Mapping[str, Any]

    @property
    def expr(self) -> pl.Expr:
        """The metric, as the present mode of ties makes it."""
        result: pl.Expr = self.entry.function(**self.options)
        return result

    @property
    def label(self) -> str:
        """The canonical label."""
        return _canonical(self.entry, self.options)


@dataclass(frozen=True, eq=False)
class RequestedMetric:
    """One output column: a reduction over a user's rows, and its mean over users."""

    name: str
    expr: pl.Expr
    over_users: Aggregate
    per_user: bool
    call: MetricCall | None = None  # of a geometric mean, the metric inside; None: of the caller's
    traits: Traits = UNDECLARED
    relevant_at: float | None = None  # for this label alone; None: that of the call
    is_column: bool = False  # of ready values, which no expression computes

    @cached_property
    def reads(self) -> frozenset[str]:
        """The columns that the expression names."""
        return frozenset(self.expr.meta.root_names())

    @cached_property
    def distribution(self) -> Distribution | None:
        """Which shares it reduces; None if it reduces other rows."""
        return share_names.distribution_of(self.name, self.reads)

    @cached_property
    def is_of_all_lists(self) -> bool:
        """Whether it is one number for all lists."""
        return self.distribution is not None and self.distribution.over == "all"

    @property
    def is_own(self) -> bool:
        """Whether the caller wrote the expression, perhaps under a label."""
        return self.call is None or self.call.entry.registered

    @property
    def cut_off(self) -> int | None:
        """The rank at which a metric of ours is cut off; it may read the whole list as well."""
        is_rank = self.call is not None and self.call.entry.cut == "rank"
        return self.option("k") if is_rank else None

    def option(self, name: str) -> Any:
        """Return the value of a parameter of a metric of ours, or None."""
        return None if self.call is None else self.call.options.get(name)


_NO_GEOMETRIC_MEAN = "a geometric mean has no exact expectation under ties"

METRICS: dict[str, MetricFunction] = {}
_ENTRIES: dict[str, Entry] = {}
_ALIASES: dict[str, Alias] = {}


@functools.cache  # saves 4 of 12 ms with 50 labels
def signature_of(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function, eval_str=True)


def labelled(
    label: str,
    *,
    plain: str | None = None,
    aliases: Mapping[str, Alias] | None = None,
    **declared: Any,
) -> Callable[[Callable[P, pl.Expr]], Callable[P, pl.Expr]]:
    """Make a function a metric called ``label`` (``plain`` when every option has its default).

    ``aliases`` maps other spellings to labels; ``{}`` stands for a number in both, ``{*}`` for
    anything. The other parameters are fields of ``Entry``.
    """

    def decorate(function: Callable[P, pl.Expr]) -> Callable[P, pl.Expr]:
        @functools.wraps(function)
        def metric_function(*args: P.args, **kwargs: P.kwargs) -> pl.Expr:
            options = _checked(function, args, kwargs)
            return function(**options).alias(_canonical(entry, options))  # type: ignore[call-arg]

        spellings = tuple((aliases or {}).items())
        entry = _register(Entry(metric_function, label, plain or label, spellings, **declared))
        METRICS[function.__name__] = metric_function
        return metric_function

    return decorate


def labelled_mean(
    label: str,
    *,
    aliases: Mapping[str, Alias] | None = None,
    **declared: Any,
) -> Callable[[Callable[P, Mean]], Callable[P, Mean]]:
    """Make a function a mean over users of its own, asked for by label only."""

    def decorate(function: Callable[P, Mean]) -> Callable[P, Mean]:
        @functools.wraps(function)
        def mean_function(*args: P.args, **kwargs: P.kwargs) -> Mean:
            return function(**_checked(function, args, kwargs))  # type: ignore[call-arg]

        spellings = tuple((aliases or {}).items())
        _register(Entry(mean_function, label, label, spellings, **declared))
        return mean_function

    return decorate


@wrong_keywords.checked
def of_label(label: str) -> pl.Expr:
    """
    Give the expression behind a label.

    Parameters
    ----------
    label
        ``name[(param=value, …)][@k]``, for example ``"ndcg(gain=exponential)@10"``, or an
        alias such as ``"map"`` or trec_eval's ``"ndcg_cut_10"``; with one cut-off.

    Returns
    -------
    Expr
        The metric function's expression, named as it was requested.

    Raises
    ------
    ValueError
        If the label is unknown (the message names the nearest ones), if a parameter is bad, or if
        the label does not name one expression on a user's rows: several cut-offs (``ndcg@5,10``), a
        mean over users (``gmap``) or a level of relevance (``ap(rel=2)``).

    Examples
    --------
    >>> rf.metrics.of_label("ndcg@10").meta.eq(rf.metrics.ndcg_at(10))
    True
    >>> rf.metrics.of_label("P_10").meta.output_name()
    'P_10'
    """
    if len(labels := _at_each_cut(label)) > 1:
        msg = (
            f"metric {label!r} has {len(labels)} cut-offs, but an expression has one: use "
            f"{_one_of(labels[:2])}"
        )
        raise ValueError(msg)
    requested = parse_metric(label)
    if not requested.per_user:
        raise ValueError(not_per_user(requested))
    if requested.relevant_at is not None:
        level = parameters.as_text(requested.relevant_at)
        msg = (
            f"metric {label!r} has its own level of relevance, which no expression can hold: "
            f"pass the label to the verb, or pass relevant_at={level}"
        )
        raise ValueError(msg)
    return requested.expr


@dataclass(frozen=True)
class _CheckedDefaults:
    """Parameters for labels that leave them out, by label alone or with ``@k``."""

    options: Mapping[str, Mapping[str, Any]] = field(compare=False)
    text: str  # the same in one text, by which metrics are kept


_NO_DEFAULTS = _CheckedDefaults({}, "")


def parse_metric(metric: object, defaults: _CheckedDefaults = _NO_DEFAULTS) -> RequestedMetric:
    """Read a label or an expression into an output column."""
    if isinstance(metric, pl.Expr):
        name, call = _output_name(metric), _call_of(metric)
        return _requested(name, metric, call.entry.over_users if call else MEAN, call)
    if isinstance(metric, str):
        return _by_label(metric, defaults)
    kind = type(metric).__name__
    hint = ""
    if name := next((name for name in METRICS if METRICS[name] is metric), ""):
        label = _example_of(_ENTRIES[name])
        cut = "10" if label.endswith("@10") else ""
        hint = f": call it, rf.metrics.{name}({cut}), or request its label, {label!r}"
    if isinstance(metric, list | tuple | set | frozenset):
        hint = ": unpack it with *, as in evaluate(*metrics)"
    msg = f"a metric is a label or a polars expression, not {kind}{hint}"
    raise TypeError(msg)


@functools.lru_cache(maxsize=4096)  # until a metric is registered; 0.1 ms each
def _by_label(label: str, defaults: _CheckedDefaults) -> RequestedMetric:
    parsed = _parsed(label)
    result, level = _result(parsed, defaults), _level(parsed)
    call: MetricCall | None
    if per_user := isinstance(result, pl.Expr):
        expr, over_users = result, parsed.entry.over_users
        call = _called(parsed, defaults)
    else:
        expr, over_users, inner = result
        call = _call_of(expr) if inner is None else _called(_parsed(inner), defaults)
    expr = expr if expr.meta.output_name() == label else expr.alias(label)
    requested = _requested(label, expr, over_users, call, per_user=per_user)
    if level and _LEVEL_AT_END.fullmatch(label.strip()) and _reads_grades(requested):
        msg = (
            f"metric {label!r}: in ranx, -l also removes the gain of lower grades: leave it out, "
            f"and pass truth=truth.filter(pl.col('relevance') >= {parameters.as_text(level)})"
        )
        raise ValueError(msg)
    return replace(requested, relevant_at=level)


def _reads_grades(metric: RequestedMetric) -> bool:
    """Whether a metric has gains, or another use of grades than as relevant or not."""
    return any(name.startswith(("relevance", "gain", "lower_graded")) for name in metric.reads)


def _requested(
    name: str, expr: pl.Expr, mean: Aggregate, call: MetricCall | None, *, per_user: bool = True
) -> RequestedMetric:
    return RequestedMetric(
        name, expr, mean, per_user, call, call.entry.traits if call else UNDECLARED
    )


def parse_metrics(
    metrics: Sequence[Metric], *, per_user: bool, defaults: Defaults | None = None
) -> list[RequestedMetric]:
    """Read all metrics of a call; ``defaults`` are for labels that leave a parameter open."""
    if not metrics:
        msg = 'pass at least one metric, for example "ndcg@10"'
        raise ValueError(msg)
    options = _read_defaults(defaults)
    requested = [parse_metric(metric, options) for metric in _one_by_one(metrics)]
    if per_user and (means := [metric for metric in requested if not metric.per_user]):
        raise ValueError(not_per_user(means[0]))
    return requested


def flat(metrics: Sequence[Metric]) -> list[str | pl.Expr]:
    """Return the metrics of a call, of which some may be in lists."""
    lists = [metric if isinstance(metric, list | tuple) else [metric] for metric in metrics]
    return [cast("str | pl.Expr", metric) for several in lists for metric in several]


def call_with_defaults(
    function: MetricFunction,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    defaults: Defaults | None,
) -> pl.Expr:
    """Call a metric function, with ``defaults`` for what is not passed, as labels take them."""
    plain = function(*args, **kwargs)
    arguments = signature_of(function).bind(*args, **kwargs).arguments
    entry = next(candidate for candidate in every_entry() if candidate.function is function)
    filled = _with_defaults(entry, _read_defaults(defaults), arguments)
    return function(**filled).alias(plain.meta.output_name())


def in_ties(metric: RequestedMetric) -> RequestedMetric:
    """Take the exact expectation of a metric that reads positions, for a table with ties."""
    if metric.call is None:
        return metric
    with _tie_mode():
        expr = metric.call.expr
    if metric.per_user:
        return replace(metric, expr=expr.alias(metric.name))
    if expr.meta.eq(metric.call.expr):
        return metric
    msg = f"metric {metric.name!r}: {_NO_GEOMETRIC_MEAN}"
    raise ValueError(msg)


def in_tie_mode() -> bool:
    """Return whether the metric is being made for a table with ties."""
    return _TIE_MODE.get()


def columns_in_ties(function: Callable[..., Any], **options: object) -> frozenset[str]:
    """Name the columns that a metric reads where equal scores stand as blocks."""
    plain = function(**options)
    with _tie_mode():
        result = function(**options)
    if isinstance(result, pl.Expr):
        return frozenset(result.meta.root_names())
    if not result.metric.meta.eq(plain.metric):
        raise ValueError(_NO_GEOMETRIC_MEAN)
    return frozenset(plain.metric.meta.root_names())


def check_names(requested: Sequence[RequestedMetric], taken: Sequence[str]) -> None:
    """Check that each output name, and each name in ``taken``, occurs only once."""
    seen = set(taken)
    for metric in requested:
        if not metric.name:
            msg = "metric '': its column would have no name: give it one with .alias(…)"
            raise ValueError(msg)
        if metric.name.startswith(PREFIX):
            msg = (
                f"metric {metric.name!r}: names that begin with {PREFIX!r} are reserved for "
                "internal columns: rename it"
            )
            raise ValueError(msg)
        if metric.name in seen:
            msg = f"two output columns are called {metric.name!r}: rename one with .alias(…)"
            raise ValueError(msg)
        seen.add(metric.name)


def every_label() -> dict[str, Callable[..., Any]]:
    """Return each label as it is written without options, with its function."""
    return {entry.plain: entry.function for entry in _ENTRIES.values()}


def direction_of(metric: RequestedMetric) -> bool:
    """Look up whether higher is better; an error says how to declare it."""
    higher_is_better = metric.traits.higher_is_better
    if higher_is_better is None:
        name = metric.name
        how = f"higher_is_better={{{name!r}: True}} or False"
        if not metric.is_column:
            how = wording(
                "rf.register_metric(…, higher_is_better=…)",
                command="higher_is_better in a module for --import",
            )
        msg = (
            f"metric {name!r}: it is not declared whether higher or lower is better: use another "
            f"metric, or declare it with {how}"
        )
        raise ValueError(Problem(msg))
    return higher_is_better


def traits_of_name(name: str) -> Traits:
    """Look up what is declared of the metric that has a name, such as that of a column."""
    parsed = look_up(name)
    return parsed.entry.traits if parsed else UNDECLARED


def extremes_of(metric: RequestedMetric) -> Extremes | None:
    """Return the judgments that bound a metric, None if none are proven."""
    if metric.call is None:
        return None
    entry, options = metric.call
    return entry.extremes(**options) if callable(entry.extremes) else entry.extremes


def divisor_of(metric: RequestedMetric, *, tied: bool) -> Divisor:
    """Return what the values of a metric are divided by; an error names the metrics with one."""
    call = None if metric.over_users.epsilon is not None else metric.call
    if call is None or call.entry.divisor is None:
        names = ", ".join(entry.plain for entry in every_entry() if entry.divisor)
        msg = (
            f"metric {metric.name!r} is not declared as a ratio of two sums, which "
            f"{option('average', 'pooled')} needs: {names} are; use {option('average', 'users')} "
            f"for the others, in another call"
        )
        raise ValueError(Problem(msg))
    with _tie_mode() if tied else contextlib.nullcontext():
        return call.entry.divisor(**call.options)


def every_entry() -> list[Entry]:
    """Return each metric once, in the order of its family."""
    return list(dict.fromkeys(_ENTRIES.values()))


def registered_metrics() -> list[Entry]:
    """List the metrics that others have registered."""
    return [entry for entry in every_entry() if entry.registered]


def restore_metrics(entries: Sequence[Entry]) -> None:
    """Register, in another process, what was registered in this one."""
    for entry in entries:
        METRICS[entry.function.__name__] = entry.function
        _register(entry)


def spelled_out(metrics: Sequence[Metric], *, defaults: Defaults | None = None) -> dict[str, str]:
    """Write each metric of a call with all its options; an own expression as Polars prints it."""
    options = _read_defaults(defaults)
    return {
        metric if isinstance(metric, str) else _output_name(metric): _spelled_out(metric, options)
        for metric in _one_by_one(metrics)
    }


def function_of(label: str) -> Callable[..., Any]:
    """Return the function that a label calls."""
    return _parsed(label).entry.function


def of_method(name: str) -> str | None:
    """Return the label of a method: that of ``map_at`` and ``map`` is map."""
    return next(filter(look_up, (name.removesuffix("_at"), name)), None)


def unknown_method(name: str, doors: Mapping[str, str]) -> str:
    """Return the error for an unknown method, with what it means, else with the nearest one.

    ``doors`` says where each verb is, such as ``stats.power``.
    """
    from difflib import get_close_matches

    label = name.removesuffix("_at")
    if label in _ELSEWHERE:
        return _unknown(label)
    ending = name.removeprefix(label)
    named = {f"{low}{ending}": f"{own}{ending}" for low, own in _spellings().items()}
    named = {low: own for low, own in named.items() if own.isidentifier()}
    names = {**named, **{function: function for function in METRICS}, **doors}
    near = get_close_matches(name.lower(), names, n=1, cutoff=0.8)
    hint = f"; did you mean {names[near[0]]!r}?" if near else ""
    return f"rankframe has no verb and no metric {name!r}{hint}"


# ------------------------------------------------------------------ reading labels

_LONGEST = 1_000
#: The text in parentheses; it may hold the label of another metric with its own parentheses.
_INSIDE = r"\((?P<options>(?:[^()]|\([^()]*\))*)\)"
_LABEL = re.compile(rf"(?P<name>[^@()]+?)\s*(?:{_INSIDE})?\s*(?:@\s*(?P<k>.+))?")
_SEVERAL_CUTS = re.compile(r"(?P<head>.+)@(?P<cuts>[^@()]*,[^@()]*?)(?P<level>-l[\d.]+)?")
_LEVEL_AT_END = re.compile(r"(?P<label>.+?)-l(?P<level>\d+(?:\.\d+)?)\s*(?P<cut>@.+)?")


class ParsedLabel(NamedTuple):
    """A label taken apart."""

    label: str
    entry: Entry
    parts: re.Match[str]
    levels: tuple[str, ...]  # the grade from which an item is relevant to it, if any


def _one_by_one(metrics: Sequence[Metric]) -> list[str | pl.Expr]:
    """Name each cut-off of a label by itself."""
    return [
        cut
        for metric in flat(metrics)
        for cut in (_at_each_cut(metric) if isinstance(metric, str) else [metric])
    ]


def call_of(label: str, defaults: Defaults | None = None) -> MetricCall:
    """Return what a label calls, with all options; of a mean of its own, the mean."""
    return _called(_parsed(label), _read_defaults(defaults))


def with_level(label: str, level: float | None) -> str:
    """Give a label its own level of relevance."""
    if level is None:
        return label
    head, at, cut = label.partition("@")
    level_ = f"rel={parameters.as_text(level)}"
    head = f"{head[:-1]}, {level_})" if head.endswith(")") else f"{head}({level_})"
    return head + at + cut


def _at_each_cut(label: str) -> Sequence[str]:
    """Read ``ndcg@5,10`` as ``ndcg@5`` and ``ndcg@10``."""
    parts = _SEVERAL_CUTS.fullmatch(label.strip())
    if parts is None:
        return [label]
    ending = parts["level"] or ""
    return [f"{parts['head'].rstrip()}@{cut.strip()}{ending}" for cut in parts["cuts"].split(",")]


def _parsed(label: str) -> ParsedLabel:
    """Take a label apart, or raise an error that names the nearest ones."""
    if len(label) > _LONGEST:
        msg = (
            f"metric {label!r}: a label of {len(label):,} characters: at most {_LONGEST:,} are read"
        )
        raise ValueError(Problem(msg))
    parsed = look_up(label)
    if parsed is None:
        raise ValueError(Problem(_unknown(label)))
    return parsed


def _result(parsed: ParsedLabel, defaults: _CheckedDefaults) -> pl.Expr | Mean:
    """Call the metric function that a label names."""
    result: pl.Expr | Mean = parsed.entry.function(**_called(parsed, defaults).options)
    if isinstance(result, Mean) and result.label is not None:
        return result._replace(metric=cast("pl.Expr", _result(_parsed(result.label), defaults)))
    return result


def _level(parsed: ParsedLabel) -> float | None:
    """Read the grade from which an item is relevant to this label alone."""
    if not parsed.levels:
        return None
    text, *duplicates = parsed.levels
    if duplicates:
        msg = f"metric {parsed.label!r}: duplicate parameter 'rel'"
        raise ValueError(msg)
    level = _read(parsed.label, "rel", text, float)
    if not (level > 0 and math.isfinite(level)):
        msg = f"metric {parsed.label!r}: rel must be a number > 0, not {text!r}"
        raise ValueError(msg)
    return float(level)


def _read_options(parsed: ParsedLabel) -> dict[str, Any]:
    label, entry, parts = parsed.label, parsed.entry, parsed.parts
    arguments = signature_of(entry.function).parameters
    options: dict[str, Any] = {}
    if parts["k"] is not None:
        if "k" not in arguments:
            msg = f"metric {label!r}: {entry.plain} takes no cut-off @k"
            raise ValueError(msg)
        cut, opened, inside = parts["k"].partition("(")
        if opened:
            right = f"{parts['name']}({inside}@{cut}"
            msg = f"metric {label!r}: options stand before the @, as in {right!r}"
            raise ValueError(msg)
        options["k"] = _read(label, "k", parts["k"])
    for part in _split(parts["options"] or ""):
        name, _, text = (piece.strip() for piece in part.partition("="))
        if name in options:
            msg = f"metric {label!r}: duplicate parameter {name!r}"
            raise ValueError(msg)
        if "k" in arguments and (name == "k" or name.isdigit()):
            right = f"{parts['name']}@{text or name}"
            msg = f"metric {label!r}: the cut-off stands behind the @, as in {right!r}"
            raise ValueError(msg)
        if name not in arguments:
            takes = ", ".join(p for p in arguments if p != "k") or "no parameters"
            msg = f"metric {label!r}: unknown parameter {name!r}; {entry.label} takes {takes}"
            raise ValueError(msg)
        options[name] = _read(label, name, text, arguments[name].annotation)
    return options


def _called(parsed: ParsedLabel, defaults: _CheckedDefaults = _NO_DEFAULTS) -> MetricCall:
    """Check all options of a label, defaults included."""
    options = _with_defaults(parsed.entry, defaults, _read_options(parsed))
    try:
        return MetricCall(parsed.entry, _checked(parsed.entry.function, (), options))
    except TypeError as error:  # a cut-off or parameter that the label leaves out
        needed = signature_of(parsed.entry.function).parameters.items()
        lacks = {n for n, p in needed if p.default is p.empty and n not in options}
        right = _written(parsed.entry, {n: _USUAL[n] for n in lacks & {*_USUAL}} | options)
        as_in = f", as in {right!r}" if lacks and lacks <= {*_USUAL} else ""
        msg = f"metric {parsed.label!r}: {marked(error)}{as_in}"
        raise ValueError(Problem(msg)) from None


def _with_defaults(
    entry: Entry, defaults: _CheckedDefaults, options: Mapping[str, Any]
) -> dict[str, Any]:
    """Fill in what a label leaves out; with a cut-off, ``ap@k`` takes precedence over ``ap``."""
    names = [entry.label, *([f"{entry.label}@k"] if "k" in options else [])]
    filled: dict[str, Any] = {}
    for layer in (*(defaults.options.get(name, {}) for name in names), options):
        # either is the discount: that of a label replaces that of a preset
        for name, other in (("base", "discount"), ("discount", "base")):
            if name in layer and entry.label in ("dcg", "ndcg"):
                filled.pop(other, None)
        filled.update(layer)
    return filled


def _call_of(expr: pl.Expr) -> MetricCall | None:
    """Find the call that makes an expression, renamed or not; None for one of the caller's own."""
    for earlier in _before_renaming(expr):
        call, result = _named(earlier.meta.output_name())
        if isinstance(result, pl.Expr) and result.meta.eq(earlier):
            return call
    return None


@functools.lru_cache(maxsize=4096)  # as above; 0.3 ms each
def _named(label: str) -> tuple[MetricCall | None, pl.Expr | Mean | None]:
    """Return the call that has a label, and what it makes; None where there is none."""
    parsed = look_up(label)
    try:
        call = None if parsed is None else _called(parsed)
        return call, None if call is None else call.entry.function(**call.options)
    except ValueError:
        return None, None


@contextlib.contextmanager
def _tie_mode() -> Generator[None, None, None]:
    token = _TIE_MODE.set(True)
    try:
        yield
    finally:
        _TIE_MODE.reset(token)


def _before_renaming(expr: pl.Expr) -> Generator[pl.Expr, None, None]:
    """Yield an expression, and what it was before each renaming."""
    while True:
        yield expr
        inner = expr.meta.pop()
        if len(inner) != 1 or not expr.meta.undo_aliases().meta.eq(inner[0].meta.undo_aliases()):
            return
        expr = inner[0]


def _read_defaults(defaults: Defaults | None) -> _CheckedDefaults:
    """Find the metrics that ``defaults`` names, by any of their names, alone or with ``@k``."""
    if not defaults and isinstance(defaults, dict | None):
        return _NO_DEFAULTS
    read: dict[str, Mapping[str, Any]] = {}
    for name, options in _mapping_of_mappings(defaults).items():
        parsed = _parsed(name)
        entry, parts = parsed.entry, parsed.parts
        msg = f"preset: defaults of {name!r}: "
        arguments = set(signature_of(entry.function).parameters)
        names = [entry.label, *([f"{entry.label}@k"] if "k" in arguments else [])]
        key = entry.label if parts["k"] is None else f"{entry.label}@{parts['k']}"
        if key not in names or parts["options"] is not None or parsed.levels:
            msg += f"name only the metric, {_one_of(names)}"
            raise ValueError(msg)
        if unknown := set(options) - (arguments - {"k"}):
            msg += f"unknown parameter {min(unknown)!r}"
            raise ValueError(msg)
        if key in read:
            msg += "duplicate entry for this metric"
            raise ValueError(msg)
        types = signature_of(entry.function).parameters
        read[key] = {
            option: parameters.type_of(types[option].annotation).check(f"{msg}{option}", value)
            for option, value in options.items()
        }
    texts = (
        f"{key}:{o}={parameters.as_text(x)}" for key, of in read.items() for o, x in of.items()
    )
    return _CheckedDefaults(read, " ".join(texts))


def _mapping_of_mappings(defaults: Any) -> Defaults:
    """Check that the defaults are mappings in a mapping."""
    if isinstance(defaults, Mapping):
        mapping = cast("Mapping[object, object]", defaults)
        if all(isinstance(name, str) and isinstance(mapping[name], Mapping) for name in mapping):
            return cast("Defaults", defaults)
    msg = f"preset: defaults are like {{'map': {{'divide_by': 'attainable'}}}}, not {defaults!r}"
    raise TypeError(msg)


@functools.lru_cache(maxsize=4096)  # as above; 0.05 ms each
def look_up(label: str) -> ParsedLabel | None:
    """Take a label apart, if its name is known."""
    rest, levels = _without_levels(_unaliased_whole(label.strip()))
    parts = _LABEL.fullmatch(_unaliased(rest))
    entry = _ENTRIES.get(parts["name"].lower()) if parts else None
    return ParsedLabel(label, entry, parts, levels) if parts and entry else None


def _without_levels(label: str) -> tuple[str, tuple[str, ...]]:
    """Take ir_measures' ``rel=2`` and ranx's ``-l2`` off a label."""
    levels: list[str] = []
    if at_end := _LEVEL_AT_END.fullmatch(label):
        label = at_end["label"] + (at_end["cut"] or "")
        levels.append(at_end["level"])
    if parts := re.fullmatch(rf"(?P<head>[^@()]+){_INSIDE}(?P<rest>[^()]*)", label):
        options = [part.partition("=") for part in _split(parts["options"])]
        inside = [value.strip() for name, _, value in options if name.strip() == "rel"]
        if inside:
            kept = ", ".join(
                "".join(option).strip() for option in options if option[0].strip() != "rel"
            )
            label = parts["head"] + (f"({kept})" if kept else "") + parts["rest"]
            levels += inside
    return label, tuple(levels)


def _split(options: str) -> list[str]:
    """Split what stands in parentheses at its commas, but not inside further ones."""
    return [part for part in re.split(r",(?![^()]*\))", options) if part.strip()]


def _unaliased_whole(label: str) -> str:
    """Rewrite an alias that has parameters or a cut-off of its own."""
    plain = label.lower().replace(" ", "")
    for alias, target in _ALIASES.items():
        if ("(" in alias or "@" in alias) and (parts := _pattern(alias).fullmatch(plain)):
            make = target.format if isinstance(target, str) else target
            return make(*parts.groups())
    return label


def _unaliased(label: str) -> str:
    """Rewrite an alias as the label it stands for."""
    label = _unaliased_whole(label)
    head = re.match(r"[^@(]+", label)
    target = _ALIASES.get(head[0].strip().lower()) if head else None
    if head and isinstance(target, str):
        rest = label[head.end() :]
        if target.endswith(")") and rest.startswith("("):  # more options than those of the alias
            return f"{target[:-1]}, {rest[1:]}"
        return target + rest
    for alias, target in _ALIASES.items():
        if parts := _pattern(alias).fullmatch(label.lower()):
            make = target.format if isinstance(target, str) else target
            return make(*parts.groups())
    spoken = _SPOKEN_CUT.fullmatch(label)
    if spoken and spoken["name"].strip().lower() in {*_ENTRIES, *_ALIASES}:
        return _unaliased(f"{spoken['name']}@{spoken['k']}")
    return label


#: As MTEB writes a cut-off.
_SPOKEN_CUT = re.compile(r"(?P<name>.+)_at_(?P<k>\d+)")


@functools.cache
def _pattern(alias: str) -> re.Pattern[str]:
    pattern = re.escape(alias).replace(r"\{\}", r"(-?\d+(?:\.\d+)?)").replace(r"\{\*\}", "(.+)")
    return re.compile(pattern)


def _read(label: str, name: str, text: str, annotation: Any = int) -> Any:
    """Turn the text of a parameter into a value of the annotated type."""
    try:
        return parameters.type_of(annotation).read(text)
    except KeyError:
        msg = f"metric {label!r}: {name} must be true or false, not {text!r}"
        raise ValueError(msg) from None
    except ValueError:
        msg = f"metric {label!r}: {name} cannot be read from {text!r}"
        raise ValueError(msg) from None


#: Values in the example of a label that leaves out what its metric needs.
_USUAL = {"recall": 0.1, "collection": 1000, "sampled": 100, "k": 10}
#: Names without a metric: what to request instead, and how it differs.
_ELSEWHERE = {
    "gauc": f"the AUC weighted by user: use 'auc{{k}}' with {option('weights')}, the column of the "
    "weights" + code(", as in evaluate('auc{k}', weights='impressions')"),
    "hole": "a share of the results of all queries together: use 'unjudged{k}', which is per query",
    "mean_rank": "a mean over all relevant items: use 'mean_hit_rank{k}', which is over a user's "
    "retrieved ones, and then over users",
    "context_precision": "one of two metrics: use 'precision{k}', the relevant share of the first, "
    "or 'ap(divide_by=hits){k}', the mean of precision at each relevant one",
    "context_recall": "the share of the relevant items that are retrieved: use 'recall{k}'",
    "hits": "one of two metrics: use 'hit{k}', the share of users with a relevant item there, or "
    "'num_hits{k}', the number of these items, which evaluate sums over users",
    "user_coverage": "the share of users with a list: use 'missed', the share without one",
}
_ELSEWHERE["mr"] = _ELSEWHERE["mean_rank"]
#: What sentence-transformers writes before its labels.
_SIMILARITY = re.compile(r"(?:cosine|dot|euclidean|manhattan)_(?P<label>.+)")


def _unknown(label: str) -> str:
    """Return the error for an unknown label, with the nearest known ones."""
    from difflib import get_close_matches  # importing it takes 0.7 ms

    spoken = _SPOKEN_CUT.fullmatch(label.strip())
    head, _, k = label.partition("@") if spoken is None else (spoken["name"], "", spoken["k"])
    name = head.partition("(")[0].strip().lower()
    if instead := _ELSEWHERE.get(name):
        return Problem(f"metric {label!r} is {instead.format(k=f'@{k.strip()}' if k else '')}")
    similarity = _SIMILARITY.fullmatch(label.strip())
    if similarity and _can_be_read(similarity["label"]):
        return (
            f"metric {label!r} has the name of a similarity, which the scores have already: use "
            f"{similarity['label']!r}"
        )
    spellings = _spellings()
    ending = f"@{k}" if k.strip().isdigit() else ""
    near = [spellings[spelling] + ending for spelling in get_close_matches(name, spellings, 5, 0.5)]
    if cut := re.fullmatch(r"(.*\D)(\d+)", label):
        near.insert(0, f"{cut[1]}@{cut[2]}")
    nearest = [*filter(_can_be_read, near)][:3] or ["precision@10"]
    verb = "is" if len(nearest) == 1 else "are"
    return f"unknown metric {label!r}; the nearest {verb} {_one_of(nearest)}"


def _spellings() -> dict[str, str]:
    """Return every label and alias that an error may propose, by its lower-case spelling."""
    plain = [entry.plain for entry in _ENTRIES.values()]
    labels = [name for name in (*plain, *_ENTRIES) if not name.endswith("_at")]
    aliases = [alias for alias in _ALIASES if not any(part in alias for part in ("{*}", "(", "@"))]
    written = [name.replace("{}", "10") for name in (*labels, *aliases)]
    return {name.lower(): name for name in written}


def _can_be_read(label: str) -> bool:
    parsed = look_up(label)
    if parsed is None:
        return False
    if parsed.parts["options"]:
        try:
            _result(parsed, _NO_DEFAULTS)
        except ValueError:
            return False
    return parsed.parts["k"] is None or "k" in signature_of(parsed.entry.function).parameters


def _one_of(names: Sequence[str]) -> str:
    return " or ".join(map(repr, names))


def not_per_user(requested: RequestedMetric) -> str:
    """Return the error for a mean over users where values per user are needed."""
    begin = f"{requested.name!r} is a mean over users, not a value per user: "
    if requested.over_users.epsilon is None:
        return f"{begin}use evaluate or summarize"
    (inner,) = requested.expr.meta.pop()
    return (
        f"{begin}use evaluate, summarize, compare or at_k; it is the geometric mean of "
        f"{inner.meta.output_name()!r}"
    )


# ------------------------------------------------------------------ making labels


def _register(entry: Entry) -> Entry:
    _ENTRIES[entry.label] = _ENTRIES[entry.plain] = entry
    name = entry.function.__name__  # the function's name is read as a label, too
    _ENTRIES.setdefault(name, entry)
    _ENTRIES.setdefault(name.removesuffix("_at"), entry)
    _ALIASES.update({alias.lower(): target for alias, target in entry.aliases})
    _clear_caches()
    return entry


def forget(entry: Entry) -> None:
    for name in [name for name, value in _ENTRIES.items() if value is entry]:
        del _ENTRIES[name]
    for alias, _ in entry.aliases:
        _ALIASES.pop(alias.lower(), None)
    METRICS.pop(entry.function.__name__, None)
    _clear_caches()


def _clear_caches() -> None:
    for cached in (look_up, _by_label, _named, registry.registrations):
        cached.cache_clear()


def _canonical(entry: Entry, options: Mapping[str, Any]) -> str:
    """Write the label: every option that differs from its default, then the cut-off."""
    arguments = signature_of(entry.function).parameters
    shown = {n: x for n, x in options.items() if n == "k" or x != arguments[n].default}
    return _written(entry, shown)


def _written(entry: Entry, options: Mapping[str, Any]) -> str:
    """Write a label with all of these options."""
    return with_options(entry.label if {*options} - {"k"} else entry.plain, options)


def with_options(label: str, options: Mapping[str, Any]) -> str:
    """Write options and the cut-off behind a label; None leaves an option out."""
    texts = {n: parameters.as_text(x) for n, x in options.items() if x is not None}
    cut = f"@{texts.pop('k')}" if "k" in texts else ""
    inside = ", ".join(f"{name}={text}" for name, text in texts.items())
    return f"{label}({inside}){cut}" if inside else f"{label}{cut}"


def _spelled_out(metric: str | pl.Expr, defaults: _CheckedDefaults) -> str:
    parsed = _parsed(metric) if isinstance(metric, str) else None
    call = _called(parsed, defaults) if parsed else _call_of(cast("pl.Expr", metric))
    if call is None:
        return str(metric)
    options = {**call.options, "rel": _level(parsed) if parsed else None}
    options = {name: keywords.plain_number(x) for name, x in options.items() if x is not None}
    return _written(call.entry, options)


def _checked(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Bind the arguments, defaults included, and check each against its annotation."""
    name = function.__name__
    signature = signature_of(function)
    if any(wrong_keywords.is_frame(value) for value in (*args, *kwargs.values())):
        cut, ten = ("k", "10, ") if "k" in signature.parameters else ("", "")
        label = _example_of(_ENTRIES[name])
        msg = (
            f"{name}({cut}) makes an expression and takes no frame: df.rank.{name}({ten}truth=…), "
            f"or rf.evaluate(df, {label!r}, truth=…)"
        )
        raise TypeError(msg)
    wrong_keywords.check(function, kwargs)
    try:
        bound = signature.bind(*args, **kwargs)
    except TypeError as error:
        msg = f"{name}: {error}"
        raise TypeError(msg) from None
    bound.apply_defaults()
    return {
        option: parameters.type_of(signature.parameters[option].annotation).check(
            f"{name}: {option}", value
        )
        for option, value in bound.arguments.items()
    }


def _example_of(entry: Entry) -> str:
    return entry.plain + ("@10" if "k" in signature_of(entry.function).parameters else "")


def _output_name(expr: pl.Expr) -> str:
    if expr.meta.has_multiple_outputs():
        msg = f"a metric is one column, but this expression makes several: {expr}"
        raise ValueError(msg)
    try:
        return expr.meta.output_name()
    except pl.exceptions.PolarsError:
        msg = f"a metric needs a name: add .alias(…) to {expr}"
        raise ValueError(msg) from None
