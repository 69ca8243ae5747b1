"""Computes how often an equal system passes a gate: a ``Pair`` and its margin in, shares out.

Its users are drawn from those of the pair, with chances that make the mean gain 0, so that all
values, ties and skewness stay real (exponential tilting).
"""

from __future__ import annotations

from math import ceil, inf, isfinite, sqrt
from typing import TYPE_CHECKING, NamedTuple

from rankframe._comparison import decision, margins, notes
from rankframe._comparison.notes import Note
from rankframe._comparison.packages import np, power_statistics, statistics
from rankframe._comparison.system_pairs import Pair
from rankframe._comparison.trials import POWER, Bound, Trial
from rankframe._request.labels import Traits

if TYPE_CHECKING:
    from rankframe._comparison.statistics import Array, Places

_DRAWS = 1000  # whose share has a standard error of at most 0.016
_DRAWS_OF_A_STEP = 400  # of a search
_NEAR = 0.03
_MOST_USERS = 10**12
_CELLS = 48  # of users who are drawn as one: few in each tail
_STEEPEST = 1e9


class Equal(NamedTuple):
    """A system that equals its baseline: cells of users in order of gain, and their chances."""

    gains: Array
    surplus: Array  # the gains plus the margin
    baseline: Array
    chances: Array
    margin: Bound
    width: float  # how much one user can lose; without a range infinite
    worst: float  # the least surplus
    are_hits: bool
    trial: Trial
    users: int
    observations: int  # of these users: with clusters or weights the effective number

    def passes(self, observations: int, draws: int = _DRAWS) -> float:
        """Return the share of equal systems that pass, by the rule of ``margins`` for one."""
        random = np.random.default_rng(self.trial.seed)
        counts = random.multinomial(observations, self.chances, size=draws).T.copy()
        return float(decision.shows(self.p_within(counts), self.trial.alpha / 2).mean())

    def needed(self, power: float) -> int | None:
        """Return with how many users they pass so often, within 5%; None means too many."""
        mean = self.chances @ self.surplus
        design = power_statistics.Design(1 - self.trial.alpha, power)
        deviation = sqrt(self.chances @ (self.surplus - mean) ** 2)
        number = power_statistics.needed_users(float(mean), deviation, design)
        if number is None or number > _MOST_USERS:
            return None
        if abs(self.passes(number) - power) > _NEAR:  # t alone does not decide

            def suffices(observations: int) -> bool:
                return self.passes(observations, _DRAWS_OF_A_STEP) >= power

            low = number
            while low > 2 and suffices(low):
                low //= 2
            number = 2 * low
            while not suffices(number):
                low, number = number, 2 * number
                if number > _MOST_USERS:
                    return None
            while number - low > 1 + 0.03 * low:
                middle = (low + number) // 2
                low, number = (low, middle) if suffices(middle) else (middle, number)
        return ceil(number * self.users / self.observations)

    def p_within(self, counts: Places) -> Array:
        """Return the p-value of each column, which has the number of users in each cell."""
        gains, surplus, number = self.gains, statistics.Sample(self.surplus), counts.sum(axis=0)
        differ, lost, won = (counts[x].sum(axis=0) for x in (gains != 0, gains < 0, gains > 0))
        starts = np.unique(gains, return_index=True)[1]
        alike = np.add.reduceat(counts, starts).max(axis=0)
        few = margins.is_exact(number, differ, alike) | (self.are_hits & (won == 0))
        above = statistics.estimate(surplus, counts).p_above()
        if not isfinite(self.width):
            return np.where(few, 1.0, above)
        exact, tail = np.ones(len(number)), self.trial.alpha / 2
        if few.any():
            of_baseline = statistics.estimate(statistics.Sample(self.baseline), counts[:, few])
            losers = statistics.Below(lost[few], number[few])
            exact[few] = margins.p_of_losers(losers, self.margin, of_baseline, self.width, tail)
        rare = statistics.rare(surplus, self.worst, counts).p_above(0.0, self.worst)
        return np.where(few, exact, np.fmax(above, rare))


def equal_system(pair: Pair, margin: Bound, traits: Traits, trial: Trial) -> Equal | None:
    """Make the system of a pair equal to its baseline; None if no user gains, or none loses."""
    pair = margins.served(pair)
    sign = -1 if traits.higher_is_better is False else 1
    gains, weights = sign * pair.sample.values, pair.sample.weights
    if not len(gains) or not gains.min() < 0 < gains.max():
        return None
    surplus = margins.surplus_of(pair, margin, sign).values
    columns = gains, surplus, pair.baseline_sample.values
    chances = _tilted(gains, np.ones(len(gains)) if weights is None else weights)
    cells = _cells(gains, surplus, chances)
    of_cells = np.bincount(cells, chances)
    gain, beyond, base = (
        statistics.rounded(np.bincount(cells, chances * x) / of_cells) for x in columns
    )
    return Equal(
        gain,
        beyond,
        base,
        of_cells / of_cells.sum(),
        margin,
        traits.width if -gains.min() <= traits.width else inf,
        margins.worst_surplus(margin, traits, sign),
        statistics.are_hits(pair.of_system) and statistics.are_hits(pair.of_baseline),
        trial,
        len(pair.difference),
        max(round(statistics.number_of(pair.sample)), 2),
    )


def note_of(pair: Pair, trial: Trial, traits: Traits) -> Note | None:
    """Note how often an equal system passes, and with how many users it would in 8 of 10 cases."""
    equal = equal_system(pair, trial.margins[pair.metric], traits, trial)
    if equal is None:
        return None
    share, most = equal.passes(equal.observations), None
    if share < POWER:
        needed, most = equal.needed(POWER), "no number is enough"
        if needed is not None:
            unit = 10 ** max(len(str(needed)) - 2, 0)
            most = f"{ceil(needed / unit) * unit:,} are needed"
    return notes.note("equal_passes", times=round(100 * share), number=equal.users, needed=most)


def _tilted(gains: Array, weights: Array) -> Array:
    """Return the chances in proportion to weight · exp(slope · gain) whose mean gain is 0."""
    from scipy import optimize

    scaled = gains / np.abs(gains).max()

    def chances(slope: float) -> Array:
        far = slope * scaled
        tilted = weights * np.exp(far - far.max())
        return np.asarray(tilted / tilted.sum(), np.float64)

    slope = optimize.brentq(lambda x: float(chances(x) @ scaled), -_STEEPEST, _STEEPEST)
    return chances(float(slope))


def _cells(gains: Array, surplus: Array, chances: Array) -> Places:
    """Number the cells in order of gain: users alike, or if there are many, users nearly alike."""
    both = np.column_stack([gains, surplus])
    alike, cells = np.unique(both, axis=0, return_inverse=True)
    if len(alike) > _CELLS:
        order = np.lexsort((surplus, gains))
        below = np.empty(len(gains))
        below[order] = np.cumsum(chances[order])
        ends = (1 - np.cos(np.pi * np.arange(1, _CELLS) / _CELLS)) / 2
        part = 3 * np.searchsorted(ends, below) + np.sign(gains)  # a user who differs stays apart
        cells = np.unique(part, return_inverse=True)[1]
    return np.asarray(cells.reshape(-1), np.int64)
