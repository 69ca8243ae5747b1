"""``df.rank``: sugar over the functions, one line each."""

import functools
import importlib
import inspect
import textwrap
import warnings
from collections.abc import Callable, Mapping
from typing import Any, Generic

import polars as pl

from rankframe._evaluation import evaluation
from rankframe._request import keywords, labels, registration, wrong_keywords
from rankframe._request.types import Frame, FrameT

#: The verbs, and the module of each, which is imported when the verb is first used.
VERBS = {
    "judge": "_tables.verbs",
    "with_rank": "_tables.verbs",
    "relevant": "_evaluation.row_verbs",
    "from_lists": "_tables.verbs",
    "check": "_evaluation.row_verbs",
    "health": "_tables.health",
    "lists": "_tables.side_by_side",
    "per_user": "_evaluation.evaluation",
    "evaluate": "_evaluation.evaluation",
    "at_k": "_comparison.cutoff_curves",
    "summarize": "_comparison.summaries",
    "compare": "_comparison.comparison",
    "compare_segments": "_comparison.segments",
    "diagnose": "_comparison.diagnosis",
    "summarize_values": "_comparison.summaries",
    "compare_values": "_comparison.comparison",
    "power": "_comparison.power",
    "overlap": "_evaluation.overlap",
    "rbo": "_evaluation.overlap",
    "fuse": "_tables.fusion",
    "listed": "_evaluation.row_verbs",
    "shares": "_evaluation.row_verbs",
    "anova": "_comparison.many_systems",
    "best_systems": "_comparison.many_systems",
    "letters": "_comparison.many_systems",
    "agreement": "_comparison.system_agreement",
    "discriminative_power": "_comparison.system_agreement",
    "report": "_report.report",
    "table": "_report.results",
    "gate": "_comparison.gate",
    "provenance": "_evaluation.provenance",
    "harm": "_comparison.harm",
}
CHARTS = {
    "at_k": "plot._of_cutoffs",
    "precision_recall": "plot._of_cutoffs",
    "users": "plot._of_users",
    "compare": "plot._of_pairs",
    "change": "plot._of_users",
    "heatmap": "plot._of_segments",
    "shares": "plot._of_exposure",
    "trade_off": "plot._of_exposure",
    "lorenz": "plot._of_exposure",
    "critical_difference": "plot._of_pairs",
    "agreement": "plot._of_pairs",
    "trend": "plot._of_days",
}


class RankFrame(Generic[FrameT]):
    """
    Ranking metrics of a frame: ``df.rank`` in polars, ``pdf.ranking`` in pandas.

    The verbs ``judge``, ``with_rank``, ``relevant``, ``from_lists``, ``check``, ``health``,
    ``lists``, ``per_user``, ``evaluate``, ``at_k``, ``summarize``, ``compare``,
    ``compare_segments``, ``diagnose``, ``power``, ``summarize_values``, ``compare_values``,
    ``overlap``, ``rbo``, ``fuse``, ``listed``, ``shares``, ``anova``, ``best_systems``,
    ``letters``, ``agreement``, ``discriminative_power``, ``table``, ``gate``, ``harm`` and
    ``report`` take the frame as their first argument. Each metric function, such as
    ``precision_at``, returns the per-user frame of that one metric, and takes the keywords of
    ``per_user`` in addition to its own. Type checkers cannot see namespaces: typed code writes
    ``rf.RankFrame(df).evaluate(…)`` or ``rf.evaluate(df, …)``.
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
            from difflib import get_close_matches

            close = get_close_matches(name, [*VERBS, *labels.METRICS], n=1)
            hint = f"; did you mean {close[0]!r}?" if close else ""
            msg = f"rankframe has no verb and no metric {name!r}{hint}"
            raise AttributeError(msg)
        return functools.partial(_metric(function), self)

    def __dir__(self) -> list[str]:
        return sorted([*VERBS, "plot", *labels.METRICS])

    def __repr__(self) -> str:
        kind = type(self.frame).__name__
        verbs = textwrap.fill(", ".join(VERBS), 78, subsequent_indent="         ")
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

    def __repr__(self) -> str:
        charts = [name for name in dir(self) if not name.startswith("_") and name != "frame"]
        names = textwrap.fill(", ".join(charts), 78, subsequent_indent="          ")
        return f"rankframe.plot on a {type(self.frame).__name__}\n  charts: {names}"


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
        wrong_keywords.check(method, options)
        mine = {name: options.pop(name) for name in own if name in options}
        defaults = keywords.read_preset(options.get("preset")).get("defaults")
        metric = labels.call_with_defaults(function, args, mine, defaults)
        return evaluation.per_user(self.frame, metric, **options)

    first, _, rest = (inspect.getdoc(function) or "").partition("\n")
    method.__doc__ = f"{first}\n\n{_METHOD}\n{rest}"
    parameters = sorted([*own.values(), *shared], key=lambda parameter: parameter.kind)
    return _signed(method, parameters, verb.return_annotation)


class _Method:
    """A method that is made at its first use: making all of them takes 10 ms, and more modules."""

    def __init__(self, make: Callable[[], Callable[..., Any]]) -> None:
        self._make = make

    def __set_name__(self, owner: type, name: str) -> None:
        self._owner, self._name = owner, name

    def __get__(self, frame: Any, owner: type) -> Any:
        setattr(self._owner, self._name, self._make())
        return getattr(owner if frame is None else frame, self._name)


def _attach_methods(owner: type, makers: Mapping[str, Callable[[], Callable[..., Any]]]) -> None:
    for name, make in makers.items():
        method = _Method(make)
        method.__set_name__(owner, name)
        setattr(owner, name, method)


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


def function_of(name: str, module: str) -> Any:
    """Import the module of a public name when the name is first used."""
    return getattr(importlib.import_module(f"rankframe.{module}"), name)


def _late_verb(name: str, module: str) -> Callable[..., Any]:
    return _verb(function_of(name, module))


registration.reserve_methods([*VERBS, "plot", "frame"])
_attach_methods(RankFrame, {n: functools.partial(_late_verb, n, m) for n, m in VERBS.items()})
_attach_methods(RankPlot, {n: functools.partial(_late_verb, n, m) for n, m in CHARTS.items()})
_attach_methods(
    RankFrame, {name: functools.partial(_metric, f) for name, f in labels.METRICS.items()}
)
