"""Decides what numbers show: the ``Estimate`` of a mean, and the outcome of a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import polars as pl

from rankframe._comparison import notes, trials
from rankframe._request import labels

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array: TypeAlias = npt.NDArray[np.float64]

#: Hidden columns of a comparison's rows: what they show; the one-sided p-values that a system is
#: beyond its margin, and within, before any correction; and what decides these beside a test.
#: And of a gate, the users who lost most, and how often an equal system passes.
OUTCOME, P_BEYOND, P_WITHIN, EVIDENCE, LOST, EQUAL = (
    f"{labels.PREFIX}{name}"
    for name in ("outcome", "p_beyond", "p_within", "evidence", "lost", "equal")
)
HIDDEN: Mapping[str, Any] = {
    **dict.fromkeys((OUTCOME, EVIDENCE, LOST, EQUAL), pl.String),
    **dict.fromkeys((P_BEYOND, P_WITHIN), pl.Float64),
}
_VERDICTS = {"same": "equivalent", "worse within the margin": trials.LESS_THAN_MARGIN}


def shows(p: Any, level: float) -> Any:
    """Return whether p-values, or a column of them, are below a level: the only place that does."""
    return p < level


def decide(
    table: pl.DataFrame, alpha: float, directions: Mapping[str, bool | None], *, paired: bool = True
) -> pl.DataFrame:
    """Add the outcome of each row of a comparison, and the verdict, which has no "identical"."""
    rises = pl.col("difference") > 0
    higher_is_better = pl.col("metric").replace_strict(
        directions, default=None, return_dtype=pl.Boolean
    )
    change = (
        pl.when(higher_is_better.is_null())
        .then(pl.when(rises).then(pl.lit("higher")).otherwise(pl.lit("lower")))
        .when(rises == higher_is_better)
        .then(pl.lit("better"))
        .otherwise(pl.lit("worse"))
    )
    differs = shows(pl.col("p_adjusted"), alpha)
    same, not_worse = (shows(pl.col(name), alpha / 2) for name in trials.OF_MARGIN)
    shown = (
        pl.when(differs & not_worse & (change == "worse"))
        .then(pl.lit("worse within the margin"))
        .when(same)
        .then(pl.lit("same"))
        .when(differs & (pl.col("difference") != 0))
        .then(change)
        .when(not_worse)
        .then(pl.lit("not worse"))
        .when(pl.col("p_adjusted").is_not_null())
        .then(pl.lit("undecided"))
    )
    changed = pl.sum_horizontal("higher", "lower") > 0
    identical = (pl.col("users") > 0) & (pl.col("difference") == 0) & ~changed & paired
    outcome = pl.when(identical).then(pl.lit("identical")).otherwise(shown)
    return table.with_columns(
        outcome.fill_null("untested").alias(OUTCOME), shown.replace(_VERDICTS).alias("verdict")
    )


def outcome_of_bound(alpha: float) -> pl.Expr:
    """Return the outcome of a row of a gate, by its bound; ``P_BEYOND`` may be corrected."""
    return (
        pl.when(shows(pl.col(P_BEYOND), alpha / 2))
        .then(pl.lit("worse"))
        .when(shows(pl.col(P_WITHIN), alpha / 2))
        .then(pl.lit("not worse"))
        .when(pl.any_horizontal(pl.col(P_BEYOND, P_WITHIN).is_not_null()))
        .then(pl.lit("undecided"))
        .when(pl.col(EVIDENCE) == notes.packed([notes.note(trials.NOBODY_DIFFERS)]))
        .then(pl.lit("identical"))
        .otherwise(pl.lit("untested"))
    )


class Estimate(NamedTuple):
    """A mean, its standard error (NaN without a spread) and its freedom; or arrays of these.

    ``skew`` is that of the mean, not of the values: γ/√n.
    """

    mean: Array
    error: Array
    freedom: Array
    skew: Array

    def p(self) -> Array:
        """Return the two-sided p-value of Student's t, that the mean is 0."""
        return 2 * _beyond(abs(self.mean) / self.error, self.freedom)

    def p_above(self, bound: float = 0.0, *, cautious: bool = True) -> Array:
        """Return the one-sided p-value that the mean is above a bound.

        If ``cautious``, the larger one of Student's t and of Hall's, which allows for skewness:
        h = t + γ(t²/3 + 1/6)/√n + γ²t³/(27n). P. Hall, *J. Royal Statistical Society B* 54, 1992.
        """
        import numpy as np

        t = (self.mean - bound) / self.error
        if cautious:
            skew = self.skew
            t = np.fmin(t, t + skew * (t**2 / 3 + 1 / 6) + skew**2 * t**3 / 27)
        return _beyond(t, self.freedom)

    def interval(self, confidence: float) -> tuple[Array, Array]:
        """Return Student's interval; NaN where it has no end, as of hardly one user."""
        import numpy as np

        margin = quantile(confidence, self.freedom) * self.error
        margin = np.where(np.isfinite(margin), margin, np.nan)
        return self.mean - margin, self.mean + margin

    def detectable(self, confidence: float) -> float:
        """Return the smallest true difference that the observations detect; NaN if none."""
        from rankframe._comparison import power_statistics

        design = power_statistics.Design(confidence, trials.POWER)
        return power_statistics.detectable(float(self.error), float(self.freedom) + 1, design)

    def mirrored(self) -> Estimate:
        """Return the estimate of the values with the other sign."""
        return self._replace(mean=-self.mean, skew=-self.skew)

    def minus(self, other: Estimate) -> Estimate:
        """Return the difference from another, independent mean, with Welch's freedom."""
        first, second = self.error**2, other.error**2
        freedom = (first + second) ** 2 / (first**2 / self.freedom + second**2 / other.freedom)
        error = (first + second) ** 0.5
        return Estimate(self.mean - other.mean, error, freedom, 0.0 * error)


def quantile(confidence: float, freedom: Array | float) -> Array:
    """Return how many standard errors Student's interval reaches."""
    import numpy as np
    from scipy import special

    return np.asarray(special.stdtrit(freedom, (1 + confidence) / 2), np.float64)


def _beyond(t: Array, freedom: Array) -> Array:
    import numpy as np
    from scipy import special

    return np.asarray(special.stdtr(freedom, -t), np.float64)
