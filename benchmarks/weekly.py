"""A year of weekly tests: how often a year without a change has an alarm, and what a test sees.

``python -m benchmarks.weekly`` (no times; ten seconds). Half of a week's users return next week,
and their values correlate. Each week is tested against the one before, as ``compare(paired=False)``
does and as Welch's test of a log does, which knows means, spreads and counts only.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import stats

Array = NDArray[np.float64]
WEEKS, LEVEL = 52, 0.05


class Year(NamedTuple):
    """P-values and differences of weekly tests, years × weeks."""

    compare: Array
    welch: Array
    difference: Array


def years(
    rng: np.random.Generator, number: int, users: int, *, weeks: int = WEEKS, drop: float = 0.0
) -> Year:
    """Test each week against the one before; the last mean is lower by the share ``drop``."""
    half, rows = users // 2, []
    taste = rng.normal(size=(number, users))
    before = values(rng, taste)
    for week in range(weeks):
        taste = np.concatenate([taste[:, half:], rng.normal(size=(number, half))], axis=1)
        now = values(rng, taste) * (1 - drop * (week == weeks - 1))
        rows.append(tests(before, now, half))
        before = now
    return Year(*np.array(rows).transpose(1, 2, 0))


def values(rng: np.random.Generator, taste: Array) -> Array:
    """Draw the values of a week, such as nDCG: half of the users at 0, skewed, from 0 to 1."""
    now = (taste + rng.normal(size=taste.shape)) / np.sqrt(2)
    return np.clip(0.35 * now, 0, 1)


def tests(before: Array, now: Array, common: int) -> tuple[Array, Array, Array]:
    """Return p of partially overlapping samples, p of Welch, and the difference of the means.

    The last ``common`` users of ``before`` are the first of ``now``.
    """
    users = before.shape[1]
    first, second = (x.var(axis=1, ddof=1) / users for x in (now, before))
    difference = now.mean(axis=1) - before.mean(axis=1)
    one, other = (x - x.mean(axis=1, keepdims=True) for x in (now[:, :common], before[:, -common:]))
    r = (one * other).sum(axis=1) / np.sqrt((one**2).sum(axis=1) * (other**2).sum(axis=1))
    welch = (first + second) ** 2 / (first**2 + second**2) * (users - 1)
    alone = 1 - common / users
    freedom = common - 1 + (welch - common + 1) * alone
    variance = first + second - 2 * r * np.sqrt(first * second) * common / users
    p_overlap = 2 * stats.t.sf(np.abs(difference) / np.sqrt(variance), freedom)
    p_welch = 2 * stats.t.sf(np.abs(difference) / np.sqrt(first + second), welch)
    return p_overlap, p_welch, difference


def report(number: int = 1000) -> None:
    """Print both tables of the page of benchmarks."""
    print("| users per week | test | level per week | years with an alarm |")
    print("|---|---|---|---|")
    for users in (200, 1000, 5000):
        rng = np.random.default_rng(1)
        made = years(rng, number, users)
        for name, p in (("compare", made.compare), ("Welch, of a log", made.welch)):
            for level, text in ((LEVEL / WEEKS, "0.05/52"), (LEVEL, "0.05")):
                alarmed = (p < level).any(axis=1).mean()
                print(f"| {users} | {name} | {text} | {alarmed:.3f} |")
    print()
    print("| users per week | drop | found by compare | found by Welch |")
    print("|---|---|---|---|")
    for users in (200, 1000, 5000):
        for drop in (0.05, 0.1, 0.2, 0.3, 0.5):
            made = years(np.random.default_rng(2), number, users, weeks=1, drop=drop)
            worse = made.difference[:, -1] < 0
            found = [
                ((p[:, -1] < LEVEL / WEEKS) & worse).mean() for p in (made.compare, made.welch)
            ]
            print(f"| {users} | {drop:.0%} | {found[0]:.2f} | {found[1]:.2f} |")


if __name__ == "__main__":
    report()
