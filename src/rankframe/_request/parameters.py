"""The types of metrics' parameters: how labels read and write their values, and what is checked."""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast, get_args, get_origin

from rankframe._request import keywords
from rankframe.errors import Problem, table_code

Gain: TypeAlias = Literal["linear", "exponential", "binary"] | Mapping[float, float]
Discount: TypeAlias = Literal["log2", "rank"] | Sequence[float]
Levels: TypeAlias = Annotated[Sequence[float], "from 0 to 1"]
Signed: TypeAlias = Annotated[float, "of any sign"]
#: The name of one of the caller's columns.
ColumnName: TypeAlias = Annotated[str, "the name of a column"]
OptionalColumn: TypeAlias = Annotated[str | None, "the name of a column"]
#: The weight of a rank in an exposure; a number p is p^(rank − 1).
Weight: TypeAlias = Annotated[
    Literal["none", "log2", "clipped", "hit", "norm", "inverse"] | float,
    "of the list's length, too",
]
PlaceDiscount: TypeAlias = Annotated[
    Literal["none", "log2", "clipped", "hit"] | float, "or a number p between 0 and 1"
]


_PLACE_DISCOUNTS = ("none", "log2", "clipped", "hit")
_WEIGHTS = (*_PLACE_DISCOUNTS, "norm", "inverse")


class Interval(NamedTuple):
    """The numbers that a parameter may have, as its annotation declares them."""

    least: float
    greatest: float = math.inf
    is_open: bool = False  # whether both ends are outside


Fraction: TypeAlias = Annotated[float, Interval(0, 1, is_open=True)]


class ParameterType(NamedTuple):
    """What the annotation of a parameter stands for."""

    check: Callable[[str, Any], Any]  # of its name and its value; returns the value as it is used
    read: Callable[[str], Any] = str  # from the text in a label


def type_of(annotation: Any) -> ParameterType:
    """Look up an annotation; raise LookupError if labels cannot read it."""
    if isinstance(annotation, ParameterType):
        return annotation
    inner = get_args(annotation)
    if inner and isinstance(inner[-1], Interval):
        return ParameterType(partial(_check_inside, interval=inner[-1]), float)
    if get_origin(annotation) is Literal and all(isinstance(choice, str) for choice in inner):
        return ParameterType(partial(keywords.check_choice, choices=inner))
    if type(None) in inner and get_origin(inner[0]) is Literal:
        return ParameterType(_or_none(type_of(inner[0]).check))
    return _TYPES[annotation]


def gain_from(text: str) -> Gain:
    """Read a gain as labels write it."""
    if ":" not in text:
        return cast("Gain", text)
    pairs = [pair.split(":") for pair in text.split(";")]
    gains = {float(grade): float(gain) for grade, gain in pairs}
    if len(gains) < len(pairs):
        msg = "duplicate grade"
        raise ValueError(msg)
    return gains


def as_text(value: object) -> str:
    """Write a parameter as labels do."""
    if isinstance(value, Mapping):
        gains = cast("Mapping[float, float]", value)
        return ";".join(f"{as_text(grade)}:{as_text(gain)}" for grade, gain in gains.items())
    if isinstance(value, tuple | list):
        return ";".join(map(as_text, cast("Sequence[float]", value)))
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value).removesuffix(".0") if isinstance(value, float) else str(value)


def check_gain(name: str, value: Any) -> Any:
    """Sort a gain by grade; it must not fall as the grade rises, and no grade ≤ 0 has one."""
    if not isinstance(value, Mapping):
        choices = get_args(get_args(Gain)[0])
        return keywords.check_choice(name, value, choices, " or a mapping of grades to gains")
    gains = cast("Mapping[float, float]", value)
    if not gains or not all(keywords.is_number(x) for pair in gains.items() for x in pair):
        msg = f"{name} must map grades to gains, both numbers, not {gains!r}"
        raise ValueError(msg)
    by_grade = {float(grade): float(gains[grade]) for grade in sorted(gains)}
    values = list(by_grade.values())
    if not all(0 <= value < math.inf for value in values):
        msg = f"{name} must be finite and ≥ 0, not {gains!r}"
        raise ValueError(msg)
    falls = values != sorted(values)
    if falls or any(gain > 0 for grade, gain in by_grade.items() if grade <= 0):
        what = "must not fall as the grade rises" if falls else "must be of grades > 0"
        call = f".with_columns(pl.col('relevance').cast(pl.Float64).replace({by_grade}))"
        call = table_code("truth", call, f".replace({{'relevance': {by_grade}}})")
        cure = f"Put the gains into the truth, and use the linear gain{call}"
        msg = f"{name} {what}: {gains!r}. {cure}"
        raise ValueError(Problem(msg))
    return by_grade


def check_place_discount(
    name: str, value: object, choices: Sequence[str] = _PLACE_DISCOUNTS
) -> str | float:
    if keywords.is_number(value) and 0 < value < 1:
        return float(value)
    return keywords.check_choice(name, value, choices, " or a number between 0 and 1")


def _read_switch(text: str) -> bool:
    return {"true": True, "false": False}[text.lower()]


def _check_number(name: str, value: Any, *, least: float = 0) -> float:
    if not keywords.is_number(value) or not math.isfinite(value) or value < least:
        msg = f"{name} must be a {'finite number' if least < 0 else 'number ≥ 0'}, not {value!r}"
        raise ValueError(msg)
    return float(value)


def _check_inside(name: str, value: Any, *, interval: Interval) -> float:
    least, greatest, is_open = interval
    fits = keywords.is_number(value) and least <= value <= greatest
    if not fits or (is_open and value in (least, greatest)):
        msg = f"{name} must be a number {'between' if is_open else 'from'} {least:g} "
        msg += f"{'and' if is_open else 'to'} {greatest:g}, not {value!r}"
        raise ValueError(msg)
    return float(value)


def _check_positive(name: str, value: Any) -> float:
    if value == 0:
        msg = f"{name} must be a number > 0, not {value!r}"
        raise ValueError(msg)
    return _check_number(name, value)


def _check_column(name: str, value: Any) -> str:
    """Check that a label can carry the name of a column."""
    if not isinstance(value, str) or not value or set(value) & set("(),;@=^*"):
        msg = f"{name} must be the name of a column, without any of ( ) , ; @ = ^ *, not {value!r}"
        raise ValueError(msg)
    return value


def _check_levels(name: str, value: Any) -> tuple[float, ...]:
    """Sort recall levels; each is from 0 to 1 and occurs only once."""
    values = cast("Sequence[object]", value) if isinstance(value, Sequence) else ()
    levels = [float(level) for level in values if keywords.is_number(level) and 0 <= level <= 1]
    if not levels or len(levels) < len(values):
        msg = f"{name} must be one or more numbers from 0 to 1, not {value!r}"
        raise ValueError(msg)
    if len(set(levels)) < len(levels):
        msg = f"{name} has a duplicate: {value!r}"
        raise ValueError(msg)
    return tuple(sorted(levels))


def _check_discount(name: str, value: Any) -> str | tuple[float, ...]:
    """Check the name of a discount, or its weights: ≥ 0, the first > 0, not rising."""
    if isinstance(value, str):
        return keywords.check_choice(name, value, ("log2", "rank"), " or a list of weights")
    listed = value.tolist() if hasattr(value, "tolist") else value  # of NumPy
    values = cast("Sequence[object]", listed) if isinstance(listed, Sequence) else ()
    weights = [float(weight) for weight in values if keywords.is_number(weight)]
    falls = weights == sorted(weights, reverse=True)
    if not weights or len(weights) < len(values) or not (falls and 0 < weights[0] < math.inf):
        weights = [-1]
    if weights[-1] < 0:
        msg = f"{name} must be weights ≥ 0 that do not rise, the first > 0, not {value!r}"
        raise ValueError(msg)
    return tuple(weights)


def _read_discount(text: str) -> str | tuple[float, ...]:
    return text if text[:1].isalpha() else _read_levels(text)


def _read_levels(text: str) -> tuple[float, ...]:
    return tuple(map(float, text.split(";")))


def _read_place_discount(text: str) -> str | float:
    return text if text[:1].isalpha() else float(text)


def _or_none(check: Callable[[str, Any], Any]) -> Callable[[str, Any], Any]:
    return lambda name, value: None if value is None else check(name, value)


_TYPES: Mapping[Any, ParameterType] = {
    int: ParameterType(keywords.whole_number, int),
    int | None: ParameterType(_or_none(keywords.whole_number), int),
    float: ParameterType(_check_number, float),
    float | None: ParameterType(_or_none(_check_positive), float),
    Signed: ParameterType(partial(_check_number, least=-math.inf), float),
    bool: ParameterType(keywords.check_switch, _read_switch),
    Gain: ParameterType(check_gain, gain_from),
    Discount: ParameterType(_check_discount, _read_discount),
    Levels: ParameterType(_check_levels, _read_levels),
    ColumnName: ParameterType(_check_column),
    OptionalColumn: ParameterType(_or_none(_check_column)),
    Weight: ParameterType(partial(check_place_discount, choices=_WEIGHTS), _read_place_discount),
    PlaceDiscount: ParameterType(check_place_discount, _read_place_discount),
}
