"""To time two things against each other."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter


def alternate(
    baseline: Callable[[], object], candidate: Callable[[], object], rounds: int
) -> tuple[float, float]:
    """Give the median seconds of both, run in turn after one run of each that does not count."""
    seconds(baseline)
    seconds(candidate)
    pairs = [(seconds(baseline), seconds(candidate)) for _ in range(rounds)]
    return median(pair[0] for pair in pairs), median(pair[1] for pair in pairs)


def seconds(call: Callable[[], object]) -> float:
    """Time one call."""
    start = perf_counter()
    result = call()
    spent = perf_counter() - start
    del result  # to free it is no part of the call
    return spent
