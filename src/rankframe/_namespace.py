"""``df.rank``: sugar over the functions, one line each."""

import functools
import inspect
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping
from types import MethodType
from typing import Any, Generic

import polars as pl

from rankframe import _rooms
from rankframe._evaluation import evaluation
from rankframe._request import keywords, labels, registration, wrong_keywords
from rankframe._request.types import Frame, FrameT

#: The metrics that ``dir`` shows, of all that are methods.
SHOWN = ["precision_at", "recall_at", "hit_at", "ap_at", "rr_at", "ndcg_at"]


class RankFrame(Generic[FrameT]):
    """
    Ranking metrics of a frame: ``df.rank`` in polars, ``pdf.ranking`` in pandas.

    The verbs, such as ``evaluate``, take the frame as their first argument, as do the functions of
    the rooms ``plot``, ``stats`` and ``runs``. Each metric function, such as ``precision_at``,
    returns the per-user frame of that one metric, and takes the keywords of ``per_user`` in
    addition to its own. Type checkers cannot see namespaces: typed code writes
    ``rankframe.typing.RankFrame(df).evaluate(…)`` or ``rf.evaluate(df, …)``.
    """

    def __init__(self, frame: FrameT) -> None:
        self.frame = frame

    @property
    def plot(self) -> "RoomOfFrame":
        """Charts of the frame, which need ``rankframe[plot]``."""
        return RoomOfFrame("plot", self.frame)

    @property
    def stats(self) -> "RoomOfFrame":
        """Statistics of the frame, which need ``rankframe[stats]``."""
        return RoomOfFrame("stats", self.frame)

    @property
    def runs(self) -> "RoomOfFrame":
        """The systems of the frame: their lists side by side, overlap and fusion."""
        return RoomOfFrame("runs", self.frame)

    def __getattr__(self, name: str) -> Any:
        """Look up a metric that was registered after the import, or a label."""
        if function := labels.METRICS.get(name):
            return MethodType(_metric(function), self)
        if label := labels.of_method(name):
            return MethodType(_by_label(name, label), self)
        doors = {verb: f"{room}.{verb}" for room in _rooms.ROOMS for verb in _rooms.ROOMS[room]}
        doors |= {verb: verb for verb in _rooms.VERBS}
        raise AttributeError(labels.unknown_method(name, doors))

    def __dir__(self) -> list[str]:
        return sorted([*_rooms.VERBS, *_rooms.ROOMS, *SHOWN])

    def __repr__(self) -> str:
        rooms = (_filled(f".{room}", names) for room, names in _rooms.ROOMS.items())
        lines = [
            f"rankframe on a {type(self.frame).__name__}",
            _filled("verbs", _rooms.VERBS),
            *rooms,
            f"  metrics: {len(labels.METRICS)}, such as precision_at, ndcg_at; by label: evaluate",
        ]
        return "\n".join(lines)


class RoomOfFrame:
    """Functions of a room: ``df.rank.stats.power(…)`` is ``rf.stats.power(df, …)``."""

    def __init__(self, room: str, frame: Frame) -> None:
        self._room, self.frame = room, frame

    def __getattr__(self, name: str) -> Any:
        homes = _rooms.ROOMS.get(vars(self).get("_room", ""), {})
        if name not in homes:
            room = vars(self).get("_room")
            msg = f"rankframe.{room} has no function {name!r}{_rooms.hint(name, homes)}"
            raise AttributeError(msg)
        return MethodType(_room_verb(name, homes[name]), self)

    def __dir__(self) -> list[str]:
        return sorted(_rooms.ROOMS[self._room])

    def __repr__(self) -> str:
        functions = _filled("functions", _rooms.ROOMS[self._room])
        return f"rankframe.{self._room} on a {type(self.frame).__name__}\n{functions}"


def _filled(title: str, names: Iterable[str]) -> str:
    start = f"  {title}: "
    return textwrap.fill(start + ", ".join(names), 78, subsequent_indent=" " * len(start))


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
    def method(self: RankFrame[Any] | RoomOfFrame, *args: Any, **options: Any) -> Any:
        return function(self.frame, *args, **options)

    _, *rest = signature.parameters.values()
    return _signed(method, rest, signature.return_annotation)


_METHOD = """\
As a method it returns the frame of ``per_user``: by…, user and this metric. It takes the keywords
of ``per_user`` in addition to those of the function, which follow. Of a judged table, R is the
number of its relevant rows: no other relevant item is known."""


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


@functools.cache
def _by_label(name: str, label: str) -> Callable[..., Any]:
    """``df.rank.map_at(10, …)`` is ``per_user(df, "map@10", …)``."""
    of_function = _metric(labels.function_of(label))
    parameters = dict(inspect.signature(labels.function_of(label)).parameters)
    if name != label and "k" in parameters:  # the cut-off stands first
        k = inspect.Parameter("k", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        parameters = {"k": k} | parameters | {"k": k}
    signature = inspect.Signature([*parameters.values()])

    @functools.wraps(of_function)
    def method(self: RankFrame[Any], *args: Any, **options: Any) -> Any:
        wrong_keywords.check(method, options)
        mine = {key: options.pop(key) for key in parameters if key in options}
        try:
            bound = signature.bind_partial(*args, **mine).arguments
        except TypeError as error:
            msg = f"{name}: {error}"
            raise TypeError(msg) from None
        return evaluation.per_user(self.frame, labels.with_options(label, bound), **options)

    _, *every = inspect.signature(of_function).parameters.values()
    method.__name__ = name
    every = [*parameters.values(), *(p for p in every if p.name not in parameters)]
    every.sort(key=lambda parameter: parameter.kind)
    return _signed(method, every, inspect.signature(of_function).return_annotation)


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


@functools.cache
def _room_verb(name: str, module: str) -> Callable[..., Any]:
    return _verb(_rooms.function_of(name, module))


registration.reserve_methods([*_rooms.VERBS, *_rooms.ROOMS, "frame"])
_attach_methods(
    RankFrame,
    {name: functools.partial(_room_verb, name, home) for name, home in _rooms.VERBS.items()},
)
_attach_methods(
    RankFrame, {name: functools.partial(_metric, f) for name, f in labels.METRICS.items()}
)
