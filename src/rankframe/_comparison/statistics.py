"""Computes statistics: a ``Sample`` of numpy arrays in, an ``Outcome`` with p and interval out.

Distributions are SciPy's; resampling is matrix algebra.
Callers import this module only when they need it: numpy and SciPy are of the extra ``stats``.
Undefined values are NaN here, and null in the frames.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from math import nan
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy import stats

from rankframe import _sizes
from rankframe._comparison import notes
from rankframe._comparison.decision import Estimate, shows
from rankframe._comparison.notes import Note
from rankframe._comparison.trials import Resampling
from rankframe._request import keywords

Array: TypeAlias = npt.NDArray[np.float64]
Bits: TypeAlias = npt.NDArray[np.bool_]
Places: TypeAlias = npt.NDArray[np.int64]
Advance: TypeAlias = Callable[[int], object]


class Outcome(NamedTuple):
    """A p-value and the ends of an interval, for each column of a matrix."""

    p: Array
    low: Array
    high: Array
    dropped: Array  # the number of resamples left out because they have no spread


#: The progress bar appears when a call takes longer than this, in seconds.
PATIENCE = 2.0

#: Sums that differ by less than this share of Σ|d| may differ only by summation order.
ROUNDING = 1e-10

#: If the error of a resample is a smaller share of its shift, its spread is only rounding.
_SPREAD = 1e-5

#: With fewer users, an interval may cover less often than its confidence.
FEW_USERS = 20

#: How often an interval between a rejected and an accepted mean is halved.
_HALVINGS = 40

#: With fewer users, the skewness cannot be estimated.
_FEWEST_USERS = 5

#: With at least this many users, Student's t is used if the skewness is at most √users / 10.
_MANY_USERS = 200


class Sample(NamedTuple):
    """One value per user, and the weight of each; without weights, all users count equally."""

    values: Array
    weights: Array | None = None  # all > 0
    freedom: float | None = None  # of its mean, if the number of values does not tell it


#: The unit of the last of 14 digits, by its power of ten; −300 comes first.
_UNITS = 10.0 ** np.arange(-300.0, 301.0)


def differences(system: Array, baseline: Array, units: tuple[Array, Array] | None = None) -> Array:
    """Subtract, and remove rounding errors of sums, so that ties are exactly 0.

    ``units`` are those of both arrays, if they are known.
    """
    unit = np.maximum(*(units or (units_of(system), units_of(baseline))))
    change = np.asarray(system - baseline, np.float64)
    change /= unit  # in place: memory that is new for each step takes three times as long
    np.round(change, out=change)
    change *= unit
    return change


def units_of(values: Array) -> Array:
    """Return the unit of the last of 14 significant digits; for 0 the least."""
    size = np.abs(values)
    digits = np.floor(np.log10(np.where(size > 0, size, 1e-300)))
    return _UNITS[np.asarray(np.clip(digits - 13, -300, 300) + 300, np.int64)]


def rounded(values: Array, sizes: Array | None = None) -> Array:
    """Round to 14 significant digits, so that values differing only by summation order are equal.

    ``sizes`` are the numbers whose digits are counted; by default the values.
    """
    size = values if sizes is None else sizes
    unit = units_of(np.where(size == 0, 1.0, size))
    return np.asarray(np.round(values / unit) * unit, np.float64)


def differs(matrix: Array, counts: Places | None = None) -> Bits:
    """Return whether each column has a variance, perhaps of values that count so often."""
    has: Any = True if counts is None else counts > 0
    low = matrix.min(axis=0, initial=np.inf, where=has)
    return np.asarray(low < matrix.max(axis=0, initial=-np.inf, where=has), np.bool_)


def in_matrices(
    samples: Sequence[Sample], reduce: Callable[[Sample, Advance], Outcome], advance: Advance
) -> Outcome:
    """Reduce samples of one length as columns of one matrix, so that they share each resample.

    Each resample of each sample advances by one.
    """
    outcome = undefined(len(samples))
    alike: dict[tuple[int, bool, float | None], list[int]] = {}
    for place, (values, weights, freedom) in enumerate(samples):
        alike.setdefault((len(values), weights is None, freedom), []).append(place)
    for (_, _, freedom), places in alike.items():
        # of a column in one piece, the sum is that of the sample alone, and takes a fifth as long
        values = np.stack([samples[place].values for place in places]).T
        columns = [w for w in (samples[place].weights for place in places) if w is not None]
        weights = np.stack(columns).T if columns else None
        part = reduce(Sample(values, weights, freedom), _times(advance, len(places)))
        for into, values in zip(outcome, part, strict=True):
            into[places] = values
    return outcome


def _times(advance: Advance, number: int) -> Advance:
    return lambda resamples: advance(resamples * number)


@contextmanager
def progress(total: int) -> Generator[Advance]:
    """Show a progress bar on a terminal if a call takes long, and tqdm is installed."""
    if not total or find_spec("tqdm") is None:
        yield lambda _: None
        return
    from tqdm import tqdm

    # with 0 for miniters, an advance by 0 shows the time
    with tqdm(total=total, delay=PATIENCE, leave=False, disable=None, miniters=0) as bar:
        yield bar.update


# ------------------------------------------------------------------ tests of paired differences


def estimate(sample: Sample, counts: Places | None = None) -> Estimate:
    """Estimate the mean of each column; its error is NaN without a spread.

    With ``counts``, one column of values is that of many draws, in each of whose columns a value
    counts so often.
    """
    values, weights, _ = sample
    values = values if counts is None else np.broadcast_to(values[:, None], counts.shape)
    unknown = np.full(values.shape[1:], np.nan)
    if len(values) < 2:
        mean = weighted_mean(values, weights) if len(values) else unknown
        return Estimate(mean, unknown, np.zeros_like(unknown), unknown)
    mean = weighted_mean(values, weights if counts is None else counts)
    number = np.asarray(_users(values, counts), np.float64)
    freedom = number - 1 + np.zeros_like(unknown)
    if weights is not None:
        number = effective_sizes(weights)
        freedom = np.maximum(number - 1, 1e-9)
    if sample.freedom is not None:
        freedom = sample.freedom + np.zeros_like(unknown)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = influences(values, weights, counts)
        error = np.where(differs(values, counts), _jackknife_error(parts, counts), np.nan)
        if weights is not None:  # else, their mean is 0
            parts -= weighted_mean(parts, None)
        squares = parts**2  # a power of 3 takes ten times as long as two products
        second, third = weighted_mean(squares, counts), weighted_mean(squares * parts, counts)
        skew = third / second**1.5 / np.sqrt(number)
    return Estimate(mean, error, freedom, skew)


def p_above(sample: Sample) -> Array:
    """Test whether each mean is above 0; values that are all one size have the sign test."""
    p, sizes = estimate(sample).p_above(), sample.values
    if len(sizes) < 2:
        return p
    by_chance = 0.5 ** len(sizes)
    of_signs = np.where(sizes[0] > 0, by_chance, 1 - by_chance)
    return np.where(~differs(sizes) & (sizes[0] != 0), of_signs, p)


def t_test(sample: Sample, confidence: float) -> Outcome:
    """Student's paired t, and its interval of the mean."""
    return outcome_of(estimate(sample), confidence)


def outcome_of(of_means: Estimate, confidence: float) -> Outcome:
    """Return Student's t and interval of estimates of columns."""
    return Outcome(
        of_means.p(), *of_means.interval(confidence), undefined(len(of_means.mean)).dropped
    )


def _users(values: Array, counts: Places | None) -> Any:
    return len(values) if counts is None else counts.sum(axis=0)


def weighted_mean(values: Array, weights: Array | Places | None) -> Array:
    """Take the mean over users, the rows."""
    if weights is None:
        return np.asarray(values.mean(axis=0), np.float64)
    return np.asarray((weights * values).sum(axis=0) / weights.sum(axis=0), np.float64)


def mean_of(sample: Sample) -> Array:
    """Take the mean of a sample; NaN of none."""
    if not len(sample.values):
        return np.full(sample.values.shape[1:], np.nan)
    return weighted_mean(sample.values, sample.weights)


def standard_error(values: Array, weights: Array | None) -> Array:
    """Return the jackknife's error (CR3) of the weighted mean; with equal weights Student's.

    SE² = (n − 1)/n · Σ (x̄ without one user − x̄)².
    """
    return _jackknife_error(influences(values, weights))


def _jackknife_error(parts: Array, counts: Places | None = None) -> Array:
    users, squares = _users(parts, counts), parts**2 if counts is None else counts * parts**2
    return np.asarray(np.sqrt((users - 1) / users * squares.sum(axis=0)), np.float64)


def influences(values: Array, weights: Array | None, counts: Places | None = None) -> Array:
    """Return how far the mean of the others is from that of all users: s·(x − x̄)/(1 − s).

    s is the share of a user's weight.
    """
    shares = 1 / _users(values, counts) if weights is None else weights / weights.sum(axis=0)
    mean = weighted_mean(values, weights if counts is None else counts)
    parts = np.asarray(values - mean, np.float64)
    parts *= shares / (1 - shares)
    return parts


def deviation(values: Array, weights: Array | None) -> Array:
    """s² = n/(n − 1) · Σ w(x − x̄)² / Σ w, the variance over users."""
    if weights is None:
        return np.asarray(values.std(axis=0, ddof=1), np.float64)
    users, squares = len(values), (values - weighted_mean(values, weights)) ** 2
    return np.asarray(np.sqrt(users / (users - 1) * weighted_mean(squares, weights)), np.float64)


def of_users(
    users: Places,
    columns: Sequence[Array],
    weights: Array | None,
    *places: Places | None,
) -> tuple[list[Array], Array | None, list[Places | None]]:
    """Return one value per user: the mean of the user's rows, with the sum of their weights.

    So the mean over users is the mean over rows, and its standard error counts each user once. Each
    user is at one of the ``places`` of each kind, such as in one cluster.
    """
    present = np.bincount(users) > 0
    place = users if present.all() else np.asarray(np.cumsum(present) - 1, np.int64)[users]
    row_weights = np.ones(len(users)) if weights is None else weights
    sizes = np.bincount(place, row_weights)
    if len(sizes) == len(users):
        return [*columns], weights, [*places]
    means = [np.bincount(place, row_weights * column) / sizes for column in columns]
    alike = weights is None and sizes.min() == sizes.max()
    first = np.unique(place, return_index=True)[1]
    of_users = [None if of_rows is None else of_rows[first] for of_rows in places]
    return means, None if alike else sizes.astype(np.float64), of_users


def of_clusters(clusters: Places, sample: Sample) -> Sample:
    """Return one value per cluster: the mean of its users, with the sum of their weights.

    So the mean is unchanged, and the weighted tests become tests of clusters: SE² is that of CR3,
    the jackknife over clusters; a resample draws clusters; one sign applies to all differences of a
    cluster.
    """
    values, weights, _ = sample
    (means, sizes), merged, _ = of_users(clusters, [values, np.abs(values)], weights)
    return sample if len(means) == len(values) else Sample(rounded(means, sizes), merged)


def shares_of_groups(groups: Places, weights: Array | None) -> Array:
    """Weigh users so that all groups count alike: 1 / size, or the share of a group's weights."""
    own = np.ones(len(groups)) if weights is None else weights
    return np.asarray(own / np.bincount(groups, own)[groups], np.float64)


def within_groups(groups: Places, sample: Sample) -> Sample:
    """Give each user the mean of all, and how far the user is from the mean of their group.

    So the squared error is Σ s²/n / G² over the G groups of n users, which are fixed: the mean of
    their means does not vary with them. Without a group that varies, or with one user in a group,
    all values are the mean, and there is no error.
    """
    values, weights, _ = sample
    own = np.ones(len(values)) if weights is None else weights
    counts, users, mean = np.bincount(groups), len(values), weighted_mean(values, weights)
    sizes, number = counts[groups], np.count_nonzero(counts)
    if not users or sizes.min() < 2:
        return Sample(mean + 0 * values, weights)
    means = np.bincount(groups, own * values)[groups] / np.bincount(groups, own)[groups]
    # ``standard_error`` has factors for one sample, which those of each group replace
    factors = (1 - 1 / (number * sizes)) * np.sqrt(users / (users - 1) * sizes / (sizes - 1))
    far = rounded(factors * (values - means), np.maximum(np.abs(values), np.abs(mean)))
    return Sample(np.asarray(mean + far, np.float64), weights)


def shares(weights: Array) -> Array:
    """Divide weights by the greatest, so that their squares are finite; only ratios matter."""
    return weights / weights.max() if len(weights) else weights


def effective_size(weights: Array) -> float:
    """(Σ w)² / Σ w², the number of equally weighted users whose mean would be as precise."""
    return float(effective_sizes(weights))


def effective_sizes(weights: Array) -> Array:
    """Return the effective number of each column."""
    return np.asarray(weights.sum(axis=0) ** 2 / (weights**2).sum(axis=0), np.float64)


def number_of(sample: Sample) -> float:
    """Return the number of observations, or with weights the effective number."""
    if sample.freedom is not None:
        return sample.freedom + 1
    return len(sample.values) if sample.weights is None else effective_size(sample.weights)


def randomization(sample: Sample, advance: Advance, resampling: Resampling) -> Outcome:
    """Fisher's randomization: the share of sign patterns whose sum is at least as far from 0.

    Σ w does not change with the signs, so the sum Σ w·d replaces the weighted mean. It has no
    interval.
    """
    outcome = undefined(sample.values.shape[1])
    matrix = sample.values if sample.weights is None else sample.values * sample.weights
    exact = np.count_nonzero(matrix, axis=0) <= max(np.log2(resampling.times), FEW_USERS - 1)
    for place in np.flatnonzero(exact & (len(matrix) > 0)):
        outcome.p[place] = exact_p(matrix[:, place])
    if not exact.all():
        sampled = matrix[:, ~exact]
        least = np.abs(sampled.sum(axis=0)) - ROUNDING * np.abs(sampled).sum(axis=0)
        as_far = np.zeros(sampled.shape[1], int)
        for signs in drawn_signs(sampled.shape, resampling, advance):
            as_far += (np.abs(signs @ sampled) >= least).sum(axis=0)
        outcome.p[~exact] = (as_far + 1) / (resampling.times + 1)
    return outcome


def exact_p(change: Array) -> float:
    """Return the share of all sign patterns whose sum is at least as far from 0.

    Each half of the differences has few sums: a sum of the first needs one of the second.
    """
    differ = change[change != 0]
    first, second = (_all_sums(half) for half in np.array_split(differ, 2))
    reached: float = abs(differ.sum()) - ROUNDING * np.abs(differ).sum()
    nearer = np.searchsorted(np.sort(second), reached - first)
    return min(1.0, 2 * (1 - float(nearer.mean()) / len(second)))


def agreeing(sample: Sample, p: float, ends: tuple[float, float], alpha: float) -> Array:
    """Move the end of an interval that contradicts an exact p: to 0 if no difference is shown.

    If one is shown, it is the nearest mean that the exact test of the users who differ accepts.
    """
    low, high = ends
    if not shows(p, alpha):
        return np.array([np.minimum(low, 0), np.maximum(high, 0)])
    if not low <= 0 <= high:
        return np.array(ends)
    values, weights, _ = sample
    weights = np.ones(len(values)) if weights is None else weights
    differ = values != 0
    rejected, accepted = 0.0, float(weighted_mean(values[differ], weights[differ]))
    sign = np.sign(accepted)
    for _ in range(_HALVINGS):
        middle = (rejected + accepted) / 2
        if shows(exact_p(weights[differ] * (values[differ] - middle)), alpha):
            rejected = middle
        else:
            accepted = middle
    nearest = accepted * weights[differ].sum() / weights.sum()
    return np.array([nearest, high] if sign > 0 else [low, nearest])


def widened(sample: Sample, confidence: float, resampling: Resampling, advance: Advance) -> Outcome:
    """Take the farther of each end of the studentized bootstrap's and Student's interval.

    The first one is too short for symmetric values with heavy tails, or is absent: resamples
    without spread have no t and are left out, and if their share exceeds one tail, there is none.
    """
    outcome = t_test(sample, confidence)
    varied = np.flatnonzero(differs(sample.values))
    if not len(varied):
        return outcome
    values, weights = sample.values[:, varied], sample.weights
    if weights is not None:
        weights = weights[:, varied] / weights[:, varied].mean(axis=0)
    mean = weighted_mean(values, weights)
    blocks = [
        _shifts(drawn, values - mean, weights) for drawn in counts(len(values), resampling, advance)
    ]
    shifts, errors = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    own = _shifts(np.ones((1, len(values))), values - mean, weights)[1][0]
    tail = keywords.alpha_of(confidence) / 2
    for column, place in enumerate(varied):
        shift, error = shifts[:, column], errors[:, column]
        spread = error > _SPREAD * np.abs(shift)
        dropped = outcome.dropped[place] = len(spread) - np.count_nonzero(spread)
        if dropped < len(spread) and dropped <= tail * len(spread):
            t = shift[spread] / error[spread]
            below, above = np.quantile(t, [1 - tail, tail]) * own[column]
            # ten digits: the division amplifies the rounding differences of matrix products
            margins = rounded(np.array([below, above]), np.array(1e4 * max(abs(below), abs(above))))
            low, high = rounded(mean[column] - margins)
            outcome.low[place] = min(outcome.low[place], low)
            outcome.high[place] = max(outcome.high[place], high)
    return outcome


def _shifts(counts: Array, centered: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return each resample's mean minus that of all users, and its standard error.

    A factor common to all errors is left out. The weights have the mean 1.
    """
    if weights is None:
        shifts = counts @ centered / len(centered)
        squares = counts @ centered**2 / len(centered)
        return shifts, np.sqrt(np.maximum(squares - shifts**2, 0))
    products = weights**2 * centered
    total = counts @ weights
    shifts = counts @ (weights * centered) / total
    squares = counts @ (products * centered)
    squares += shifts * (shifts * (counts @ weights**2) - 2 * (counts @ products))
    return shifts, np.sqrt(np.maximum(squares, 0)) / total


def undefined(number: int) -> Outcome:
    """Return an outcome that is still to be filled in."""
    return Outcome(*(np.full(number, np.nan) for _ in Outcome._fields))


def _all_sums(column: Array) -> Array:
    """Return the sum of every pattern of signs; a difference of 0 has no sign."""
    sums = np.zeros(1)
    for value in column[column != 0]:
        sums = np.concatenate([sums + value, sums - value])
    return sums


def all_signs(shape: tuple[int, ...]) -> Iterator[Array]:
    """Make blocks of all rows of +1 and −1, for a matrix of few users."""
    users, first = shape[0], 0
    for rows in block_sizes(max(shape), 2**users):
        patterns = np.arange(first, first + rows)[:, None] >> np.arange(users)
        yield np.asarray(np.where(patterns & 1, -1.0, 1.0), np.float64)
        first += rows


def drawn_signs(
    shape: tuple[int, ...], resampling: Resampling, advance: Advance
) -> Iterator[Array]:
    """Draw blocks of rows of +1 and −1, one row per resample, for a matrix of users."""
    source = np.random.PCG64(resampling.seed)
    users = shape[0]
    words = -(-users // 64)
    for rows in block_sizes(max(shape), resampling.times):
        # raw bits are the same on every machine and in every version of numpy
        drawn = source.random_raw(rows * words).astype("<u8").view(np.uint8).reshape(rows, -1)
        bits = np.unpackbits(drawn, axis=1, count=users, bitorder="little").view(np.int8)
        yield (bits * 2 - 1).astype(np.float64)
        advance(rows)


def counts(users: int, resampling: Resampling, advance: Advance) -> Iterator[Array]:
    """Draw blocks of rows: how many times each user is in a resample.

    The draws are those of ``scipy.stats.bootstrap(…, rng=seed)``.
    """
    generator = np.random.default_rng(resampling.seed)
    for rows in block_sizes(users, resampling.times):
        drawn = generator.integers(0, users, (rows, users))
        counts = np.empty(drawn.shape)
        few = max(1, _sizes.CELLS_COUNTED // users)
        for part, into in ((drawn[i : i + few], counts[i : i + few]) for i in range(0, rows, few)):
            places = part + users * np.arange(len(part))[:, None]
            into[:] = np.bincount(places.ravel(), minlength=part.size).reshape(part.shape)
        yield counts
        advance(rows)


def block_sizes(users: int, times: int) -> Iterator[int]:
    """Return how many resamples each block has: so many that all their cells fit, or one."""
    rows = max(1, _sizes.CELLS_RANDOM // users)
    for start in range(0, times, rows):
        yield min(rows, times - start)


# ------------------------------------------------------------------ values that are 0 or 1


def are_hits(values: Array) -> bool:
    """Return whether every value is 0 or 1."""
    return bool(((values == 0) | (values == 1)).all())


def wilson(sample: Sample, confidence: float) -> Outcome:
    """Wilson's interval of a share of users, without a weighted form.

    Over rates up to ½, it covers .95 on average, at rate .02 .92 or more with 10 to 200 users, and
    least, .84 to .86, for rates near 0.2 / users. Agresti and Coull's covers .925 or more, but
    is 7 to 15 % wider at rate .02, where it covers .98.
    """
    outcome = undefined(sample.values.shape[1])
    for place, hits in enumerate(sample.values.sum(axis=0)):
        test = stats.binomtest(round(hits), len(sample.values))
        ends = test.proportion_ci(confidence, method="wilson")
        outcome.low[place], outcome.high[place] = ends
    return outcome


class Below(NamedTuple):
    """How many of a sample are below an amount that most reach."""

    lower: float | Places | Array
    number: float | Places | Array

    def most(self, tail: float) -> float:
        """Clopper–Pearson's upper limit of the share below: too low with a probability of tail."""
        if self.lower >= self.number:
            return 1.0
        limit = stats.beta.ppf(1 - tail, self.lower + 1, self.number - self.lower)  # pyright: ignore
        return float(limit)

    def least_mean(self, amount: float, least: float, tail: float) -> float:
        """Bound the mean from below, if no value is below ``least``, by the share that may be."""
        return least + (1 - self.most(tail)) * (amount - least)

    def p_above(self, mean: float | Array, amount: float | Array, least: float) -> Array:
        """Test whether the mean is above another: p < tail exactly where its bound is above."""
        is_sure = np.asarray((self.lower >= self.number) | (np.asarray(amount) <= least))
        reach = np.where(is_sure, 1.0, amount - np.asarray(least))
        share, others = (
            (amount - np.asarray(mean)) / reach,
            np.where(is_sure, 1, self.number - self.lower),
        )
        p = stats.beta.sf(share, self.lower + 1, others)  # pyright: ignore
        return np.where(is_sure, np.where(np.asarray(mean) < least, 0.0, 1.0), p)


def below(sample: Sample, amount: float | Array, counts: Places | None = None) -> Below:
    """Count the values below an amount; with weights, their share of the effective number."""
    values, weights, _ = sample
    if counts is not None:
        return Below((counts * (values[:, None] < amount)).sum(axis=0), counts.sum(axis=0))
    lower = values < amount
    if weights is None or lower.all():
        return Below(int(lower.sum()), len(values))
    number = effective_size(weights)
    return Below(number * float(weights[lower].sum() / weights.sum()), number)


class Rare(NamedTuple):
    """How many values are far below the mean of the others."""

    below: Below
    mean: float | Array

    def p_above(self, bound: float, least: float) -> Array:
        """Test whether the mean is above a bound."""
        return np.where(self.mean <= bound, 1.0, self.below.p_above(bound, self.mean, least))


def rare(sample: Sample, least: float, counts: Places | None = None) -> Rare:
    """Count the values nearer to ``least`` than to the mean, which may be too rare to be seen.

    A t test believes the spread that it sees, and a normal shape. Where values lie as far above
    the mean, it is right to, and only values that nobody has are left to doubt.
    ``counts`` are those of ``estimate``.
    """
    values, weights, _ = sample
    values = values if counts is None else values[:, None]
    sizes: Array | Places | None = weights if counts is None else counts
    mean = weighted_mean(values, sizes)
    sizes = np.ones(len(values)) if sizes is None else sizes
    reach = (mean - least) / 2
    far, lower = values < mean - reach, below(sample, mean - reach, counts)
    others = weighted_mean(values, sizes * ~far)
    has_above = ((sizes > 0) & (values > mean + reach)).any(axis=0)
    few = lower._replace(lower=np.where(has_above, 0, lower.lower))
    return Rare(few, np.where(has_above, mean, others))


# ------------------------------------------------------------------ which interval


def chosen_method(sample: Sample, unit: str = "user", *, may_be_hits: bool) -> tuple[str, Note]:
    """Choose the method of an interval of the mean of users or clusters; also return a reason."""
    values, users = sample.values, len(sample.values)
    if may_be_hits and sample.weights is None and are_hits(values):
        return "wilson", notes.note("auto_hits")
    if users < _FEWEST_USERS:
        return "t", notes.note("auto_few", fewest=_FEWEST_USERS, unit=unit)
    skew = skewness(sample)
    error = np.sqrt(6 * (users - 2) / ((users + 1) * (users + 3)))  # in a normal sample
    seen = {"number": users, "unit": unit, "skewness": round(skew, 2) + 0.0}  # no −0
    if abs(skew) <= 2 * error or (users >= _MANY_USERS and abs(skew) <= np.sqrt(users) / 10):
        return "t", notes.note("auto_t", **seen)
    return "auto", notes.note("auto_widened", **seen)


def skewness(sample: Sample) -> float:
    """Return the skewness of the users' contributions to the mean; 0 if all are equal."""
    values, weights, _ = sample
    added = values - weighted_mean(values, weights)
    if weights is not None:
        added = weights * added
    squares = (added**2).mean()
    return float((added * added**2).mean() / squares**1.5) if squares else 0.0


def telling_users(sample: Sample) -> tuple[float, bool]:
    """Return the number of users, or with weights the effective number.

    If a quarter of the users or more share one value, they are left out, and the flag is True.
    """
    values, weights, _ = sample
    different, counts = np.unique(values, return_counts=True)
    frequent = counts.max() > 1 and 4 * counts.max() >= len(values)
    tell = values != different[counts.argmax()] if frequent else np.ones(len(values), np.bool_)
    if weights is None or not tell.any():
        return float(tell.sum()), bool(frequent)
    return effective_size(weights[tell]), bool(frequent)


# ------------------------------------------------------------------ corrections


def corrected(p: Array, correction: str | None) -> Array:
    """Adjust p-values for their number; NaN is not counted."""
    adjusted = p.copy()
    values = p[~np.isnan(p)]
    number = len(values)
    if correction == "bh" and number:
        values = stats.false_discovery_control(values)
    elif correction == "holm":
        order = np.argsort(values)
        steps = values[order] * np.arange(number, 0, -1)
        values[order] = np.minimum(np.maximum.accumulate(steps), 1)
    adjusted[~np.isnan(p)] = values
    return adjusted


# ------------------------------------------------------------------ agreement of two orders


def kendall_tau(values: Array, other: Array) -> float:
    """Kendall's τ_b; NaN if all systems of an order tie."""
    if len(values) < 2 or not (differs(values[:, None]) & differs(other[:, None])).all():
        return nan
    first, second = (np.sign(np.subtract.outer(of, of)) for of in (values, other))
    untied = (first**2).sum() * (second**2).sum()  # whole numbers: equal orders have 1 exactly
    return float((first * second).sum() / np.sqrt(untied))


def tau_ap(values: Array, truth: Array) -> float:
    """AP correlation: 2 · (mean share of systems correctly placed above a system) − 1.

    It is the mean over all orders of systems that tie in ``values``; a pair that ties in ``truth``
    counts as half correct. NaN if all systems of an order tie.
    """
    number = len(values)
    if number < 2 or not (differs(values[:, None]) & differs(truth[:, None])).all():
        return nan
    right = (np.sign(np.subtract.outer(truth, truth)) + 1) / 2  # [i, j]: i is above j
    total = 0.0
    for place, value in enumerate(values):
        above, beside = values > value, values == value
        beside[place] = False
        first, tied = int(above.sum()), int(beside.sum())
        sure = right[above, place].sum()
        share = right[beside, place].mean() if tied else 0.0
        for ahead in range(tied + 1):  # of the systems that tie
            if first + ahead:
                total += (sure + ahead * share) / (first + ahead) / (tied + 1)
    return 2 * total / (number - 1) - 1
