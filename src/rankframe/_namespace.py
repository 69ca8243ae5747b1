"""``df.rank``: sugar over the functions, one line each."""

import functools
import inspect
import textwrap
import warnings
from collections.abc import Callable
from difflib import get_close_matches
from typing import Any, Generic

import polars as pl

from rankframe._comparison import (
    comparison,
    cutoff_curves,
    diagnosis,
    gate,
    many_systems,
    power,
    segments,
    summaries,
    system_agreement,
)
from rankframe._evaluation import evaluation, overlap, row_verbs
from rankframe._report import report, results
from rankframe._request import labels, registration
from rankframe._request.types import Frame, FrameT
from rankframe._tables import fusion, health, side_by_side, verbs
from rankframe.plot import _of_cutoffs, _of_exposure, _of_pairs, _of_segments, _of_users


class RankFrame(Generic[FrameT]):
    """
    Ranking metrics of a frame: ``df.rank`` in polars, ``pdf.ranking`` in pandas.

    The verbs ``judge``, ``with_rank``, ``relevant``, ``from_lists``, ``check``, ``health``,
    ``lists``, ``per_user``, ``evaluate``, ``at_k``, ``summarize``, ``compare``,
    ``compare_segments``, ``diagnose``, ``power``, ``summarize_values``, ``compare_values``,
    ``overlap``, ``rbo``, ``fuse``, ``listed``, ``shares``, ``anova``, ``best_systems``,
    ``letters``, ``agreement``, ``discriminative_power``, ``table``, ``gate`` and ``report`` take
    the frame as their first argument. Each metric function, such as ``precision_at``, returns the
    per-user frame of that one metric, and takes the keywords of ``per_user`` in addition to its
    own. Type checkers cannot see namespaces: typed code calls the functions,
    ``rf.evaluate(df, …)``.
    """

    def __init__(self, frame: FrameT) -> None:
        self.frame = frame

    @property
    def plot(self) -> "RankPlot":
        """Charts of the frame, which need ``rankframe[plot]``."""
        return RankPlot(self.frame)

    def __getattr__(self, name: str) -> Any:
        """Look up a metric that was registered after the import."""
        function = labels.METRICS.get(name)
        if function is None:
            close = get_close_matches(name, [*_verb_names(), *labels.METRICS], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            msg = f"rankframe has no verb and no metric {name!r}{hint}"
            raise AttributeError(msg)
        return functools.partial(_metric(function), self)

    def __dir__(self) -> list[str]:
        return sorted([*_verb_names(), "plot", *labels.METRICS])

    def __repr__(self) -> str:
        kind = type(self.frame).__name__
        verbs = textwrap.fill(", ".join(_verb_names()), 78, subsequent_indent="         ")
        return (
            f"rankframe on a {kind}\n"
            f"  verbs: {verbs}\n"
            f"  charts: .plot\n"
            f"  metrics: {len(labels.METRICS)}, such as precision_at, ndcg_at; "
            "rankframe.metric(label)"
        )


class RankPlot:
    """Charts of a frame: ``df.rank.plot.at_k(…)`` is ``rf.plot.at_k(df, …)``."""

    def __init__(self, frame: Frame) -> None:
        self.frame = frame


class _Namespace:
    """Builds the namespace at each access.

    The official descriptor stores it on the frame. This reference cycle would keep dropped frames
    in memory until the garbage collector runs.
    """

    def __init__(self, namespace: type[RankFrame[Any]]) -> None:
        self._namespace = namespace

    def __get__(self, frame: Any, owner: type) -> Any:
        return self._namespace if frame is None else self._namespace(frame)


def attach(name: str, owner: type, register: Callable[[str], Callable[[type], type]]) -> None:
    """Register the namespace officially, then build it at each access."""
    if type(vars(owner).get(name)).__qualname__ != _Namespace.__qualname__:  # else: a reload
        try:
            register(name)(RankFrame)
        except AttributeError as error:
            msg = f"df.{name} is not available ({error}): call the functions, rf.evaluate(df, …)"
            warnings.warn(msg, RuntimeWarning, stacklevel=3)
            return
    setattr(owner, name, _Namespace(RankFrame))


def _verb(function: Callable[..., Any]) -> Callable[..., Any]:
    """``df.rank.evaluate(…)`` is ``evaluate(df, …)``."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def method(self: RankFrame[Any] | RankPlot, *args: Any, **options: Any) -> Any:
        return function(self.frame, *args, **options)

    _, *rest = signature.parameters.values()
    return _signed(method, rest, signature.return_annotation)


_METHOD = """\
As a method it returns the frame of ``per_user``: by…, user and this metric. It takes the keywords
of ``per_user`` in addition to those of the function, which follow."""


def _metric(function: Callable[..., pl.Expr]) -> Callable[..., Any]:
    """``df.rank.precision_at(10, …)`` is ``per_user(df, precision_at(10), …)``, with presets."""
    own = inspect.signature(function).parameters
    verb = inspect.signature(evaluation.per_user)
    shared = [p for p in verb.parameters.values() if p.name not in ("frame", "metrics")]

    @functools.wraps(function)
    def method(self: RankFrame[Any], *args: Any, **options: Any) -> Any:
        mine = {name: options.pop(name) for name in own if name in options}
        metric = labels.call_with_defaults(function, args, mine, options.get("defaults"))
        return evaluation.per_user(self.frame, metric, **options)

    first, _, rest = (inspect.getdoc(function) or "").partition("\n")
    method.__doc__ = f"{first}\n\n{_METHOD}\n{rest}"
    parameters = sorted([*own.values(), *shared], key=lambda parameter: parameter.kind)
    return _signed(method, parameters, verb.return_annotation)


class _Method:
    """The method of a metric, made at its first use: making all of them takes 10 ms."""

    def __init__(self, name: str, function: Callable[..., pl.Expr]) -> None:
        self._name, self._function = name, function

    def __get__(self, frame: RankFrame[Any] | None, owner: type) -> Any:
        setattr(RankFrame, self._name, _metric(self._function))
        return getattr(owner if frame is None else frame, self._name)


def _signed(
    method: Callable[..., Any], parameters: list[inspect.Parameter], returns: Any
) -> Callable[..., Any]:
    first = parameters[0].kind if parameters else inspect.Parameter.POSITIONAL_OR_KEYWORD
    kind = min(inspect.Parameter.POSITIONAL_OR_KEYWORD, first)
    self = inspect.Parameter("self", kind)
    signature = inspect.Signature([self, *parameters], return_annotation=returns)
    method.__signature__ = signature  # type: ignore[attr-defined]
    method.__qualname__ = f"RankFrame.{method.__name__}"
    return method


_VERBS: tuple[Callable[..., Any], ...] = (
    verbs.judge,
    verbs.with_rank,
    row_verbs.relevant,
    verbs.from_lists,
    row_verbs.check,
    health.health,
    side_by_side.lists,
    evaluation.per_user,
    evaluation.evaluate,
    cutoff_curves.at_k,
    summaries.summarize,
    comparison.compare,
    segments.compare_segments,
    diagnosis.diagnose,
    summaries.summarize_values,
    comparison.compare_values,
    power.power,
    overlap.overlap,
    overlap.rbo,
    fusion.fuse,
    row_verbs.listed,
    row_verbs.shares,
    many_systems.anova,
    many_systems.best_systems,
    many_systems.letters,
    system_agreement.agreement,
    system_agreement.discriminative_power,
    report.report,
    results.table,
    gate.gate,
)


def _verb_names() -> list[str]:
    return [verb.__name__ for verb in _VERBS]


registration.reserve_methods([*_verb_names(), "plot", "frame"])
for _function in _VERBS:
    setattr(RankFrame, _function.__name__, _verb(_function))
for _function in (
    _of_cutoffs.at_k,
    _of_cutoffs.precision_recall,
    _of_users.users,
    _of_pairs.compare,
    _of_users.change,
    _of_segments.heatmap,
    _of_exposure.shares,
    _of_exposure.trade_off,
    _of_exposure.lorenz,
    _of_pairs.critical_difference,
    _of_pairs.agreement,
):
    setattr(RankPlot, _function.__name__, _verb(_function))
for _name, _metric_function in labels.METRICS.items():
    setattr(RankFrame, _name, _Method(_name, _metric_function))
