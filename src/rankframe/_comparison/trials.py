"""Names the tests and corrections, and keeps the options of a comparison in a ``Trial``."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Resampling

Test: TypeAlias = Literal[
    "t",
    "wilcoxon",
    "randomization",
    "bootstrap",
    "mcnemar",
    "sequential",
    "tukey",
    "max_t",
    "friedman",
]
Correction: TypeAlias = Literal["holm", "bonferroni", "bh"]
Margin: TypeAlias = float | Mapping[str, float]

#: Tests of all systems at once, which have their own correction.
JOINT_TESTS = ("tukey", "max_t", "friedman")

UNWEIGHTED = ("wilcoxon", "mcnemar", "sequential", *JOINT_TESTS)
CLUSTERED = ("t", "randomization", "bootstrap", "max_t")
SIMULTANEOUS = ("tukey", "max_t")  # their intervals cover all differences at once
OF_MARGIN = ("p_equivalent", "p_not_worse")
#: The tests of a mean difference: a margin bounds it, and Student's t approximates their power.
OF_MEANS = ("t", "randomization", "bootstrap")
#: Tests that take a margin: flipped signs test symmetry about it, not the mean.
OF_MARGINS = ("t", "bootstrap")
#: Why there is no interval though the differences are known.
NOBODY_DIFFERS = "no user differs"
NO_PAIR = "no user has a value in both"
ALL_DIFFER_ALIKE = "every user differs by the same amount"
ONE_USER = "one user"
RESAMPLING = ("randomization", "bootstrap")
SIGN = "__rankframe_sign"  # of the effect that a test of ranks finds
POWER = 0.8  # of the column ``detectable``
#: How the readings of users without a list begin.
NO_LIST = "no list"
NOTHING = 1e-12  # what a change of 0 may be after rounding


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
    widths: Mapping[str, float] = MappingProxyType({})  # of each metric's range, once they are read
    hint: str | None = None  # a column that may be the clusters
    implied: bool = False  # no caller named the baseline: a segment of its name is no ambiguity

    @property
    def margins(self) -> Mapping[str, float]:
        """The margin of each metric that has one, once the options are read."""
        return self.margin if isinstance(self.margin, Mapping) else {}

    @property
    def resampling(self) -> Resampling:
        from rankframe._comparison.statistics import Resampling

        return Resampling(self.resamples, self.seed)


UNEVEN = "no test: it has no weighted form, and users are in different numbers of segments"
