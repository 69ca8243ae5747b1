"""Names the tests and corrections, and keeps the options of a comparison in a ``Trial``."""

from __future__ import annotations

from collections.abc import Mapping
from math import isfinite
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, cast

from rankframe._request import keywords

if TYPE_CHECKING:
    from rankframe._request.labels import Traits

Test: TypeAlias = Literal["t", "randomization", "max_t", "sequential"]
#: Tests whose interval or p-value decides a gate; flipped signs would have Student's interval.
GateTest: TypeAlias = Literal["t", "max_t", "sequential"]
Correction: TypeAlias = Literal["holm", "bh"]
#: A number on the scale of the metric, or a share of the baseline's values such as ``"1%"``.
Size: TypeAlias = float | str
Margin: TypeAlias = Size | Mapping[str, Size]
#: What becomes of a system that is neither shown to be worse nor shown not to be.
Undecided: TypeAlias = Literal["fail", "pass"]

RELATIVE = ("relative", "relative_low", "relative_high")
OF_MARGIN = ("p_equivalent", "p_not_worse")
#: Their intervals are Student's, but where few users differ, an end may move.
WITH_T = ("t", "randomization")
#: Kinds of notes: of an exact test; why there is no interval or no difference.
EXACT = ("exact", "exact_alike", "exact_groups")
NOBODY_DIFFERS, ALL_DIFFER_ALIKE, ONE_USER = UNTESTED = "nobody_differs", "all_alike", "one_user"
NO_PAIR, NO_VALUE, ALIKE_IN_GROUPS = "no_pair", "no_value", "alike_in_groups"
LESS_THAN_MARGIN = "worse, by less than the margin"
NUMBER = "__rankframe_number"  # of independent observations: users or clusters
POWER = 0.8  # of the column ``detectable``
#: How the readings of users without a list begin.
NO_LIST = "no list"
NOTHING = 1e-12  # what a change of 0 may be after rounding


class Bound(NamedTuple):
    """A size as a number: on the scale of the metric, or as a share of the baseline's values."""

    size: float
    relative: bool = False

    def __str__(self) -> str:
        """Write it as a caller does."""
        return f"{100 * self.size:.10g}%" if self.relative else f"{self.size:g}"


def bound_of(size: object) -> Bound | None:
    """Read a number or a percentage; None if it is neither, or not finite."""
    relative = isinstance(size, str) and size.strip().endswith("%")
    if relative:
        try:
            size = float(cast("str", size).strip()[:-1]) / 100
        except ValueError:
            return None
    return Bound(float(size), relative) if keywords.is_number(size) and isfinite(size) else None


def check_below_width(
    option: str, name: str, bound: Bound, width: float, cure: str = "'5%', a share of the baseline"
) -> None:
    """Check that a size is not as large as the greatest difference of a metric's values."""
    if isfinite(width) and not bound.relative and bound.size >= width:
        msg = (
            f"{option} of {name!r} is {bound}, but no two values differ by more than {width:.10g}: "
            f"use a smaller one, such as {cure}"
        )
        raise ValueError(msg)


def check_margin(name: str, bound: Bound, traits: Traits) -> None:
    """Check that a margin does not accept every loss: the whole range, or the whole mean."""
    check_below_width("margin", name, bound, traits.width)
    if bound.relative and bound.size >= 1 and traits.higher_is_better is not False:
        msg = (
            f"margin of {name!r} is '{bound}', the whole mean of the baseline: use a smaller one, "
            "such as '5%'"
        )
        raise ValueError(msg)


class Resampling(NamedTuple):
    """How many resamples, and their seed."""

    times: int
    seed: int


class Trial(NamedTuple):
    """The options of a comparison; verbs that take them have the same defaults."""

    baseline: object = None
    test: Test = "t"
    correction: Correction | None = "holm"
    confidence: float = 0.95
    margin: Margin | None = None
    primary: str | None = None
    resamples: int = 10_000
    seed: int = 0
    cluster: str | None = None
    total: bool = False
    paired: bool = True
    over: str | None = None
    widths: Mapping[str, float] = MappingProxyType({})  # of each metric's range, once they are read
    margins: Mapping[str, Bound] = MappingProxyType({})  # of each metric that has one, likewise
    undecided: Undecided | None = None  # of a gate: what becomes of what is not shown
    needed_by: str | None = None  # the verb that compares with the first system, if none is named

    @property
    def alpha(self) -> float:
        """The level of a two-sided test."""
        return keywords.alpha_of(self.confidence)

    @property
    def resampling(self) -> Resampling:
        return Resampling(self.resamples, self.seed)
