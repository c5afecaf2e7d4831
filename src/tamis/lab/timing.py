"""Medians of repeated runs, within a budget of time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np


@dataclass(frozen=True)
class Sample:
    """Seconds a run took: the median of some repeats, and the extremes."""

    seconds: float
    low: float
    high: float
    repeats: int


@dataclass(frozen=True)
class Spread:
    """Microseconds that single calls took. Nearest ranks: each of the numbers was measured."""

    p50: float
    p99: float
    most: float
    count: int

    @classmethod
    def of(cls, seconds: Iterable[float]) -> Spread:
        """The spread of some calls, at least one."""
        taken = np.array(list(seconds)) * 1e6
        p50, p99, most = np.percentile(taken, (50, 99, 100), method="inverted_cdf").tolist()
        return cls(p50, p99, most, len(taken))


def timed(run: Callable[[], object]) -> float:
    """Seconds that one call takes."""
    begun = perf_counter()
    run()
    return perf_counter() - begun


def repeated(
    run: Callable[[], object],
    *,
    repeats: int,
    budget: float,
    prepare: Callable[[], object] | None = None,
) -> Sample:
    """Time `run` up to `repeats` times, but stop once `budget` seconds are spent on it.

    The median rather than the least: the machine's usual weather is part of what a user gets.
    `prepare` runs before each repeat and is not timed.
    """
    taken: list[float] = []
    while len(taken) < repeats and (not taken or sum(taken) + taken[-1] <= budget):
        if prepare is not None:
            prepare()
        begun = perf_counter()
        run()
        taken.append(perf_counter() - begun)
    return Sample(median(taken), min(taken), max(taken), len(taken))


def fitting(one: Callable[[], object], *, most: int, budget: float) -> int:
    """How many times `one` fits into `budget` seconds, from 1 to `most`, judged by two runs.

    Two, since the first may compile, lay out or fill a cache.
    """
    one()
    begun = perf_counter()
    one()
    each = perf_counter() - begun
    return max(1, min(most, int(budget / max(each, 1e-9))))
