"""Timing of repeated runs, within a time budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter

import numpy as np


@dataclass(frozen=True)
class TimingSample:
    """Seconds of a run: the median of some repeats, and the extremes."""

    seconds: float
    low: float
    high: float
    repeats: int

    @classmethod
    def of(cls, seconds: Sequence[float]) -> TimingSample:
        """The sample of some runs, at least one."""
        return cls(median(seconds), min(seconds), max(seconds), len(seconds))


@dataclass(frozen=True)
class Spread:
    """Microseconds of single calls. Percentiles are nearest ranks, so each value was measured."""

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
    """Seconds of one call."""
    begun = perf_counter()
    run()
    return perf_counter() - begun


def repeated(
    run: Callable[[], object],
    *,
    repeats: int,
    budget: float,
    prepare: Callable[[], object] | None = None,
) -> TimingSample:
    """Time `run` up to `repeats` times, or until `budget` seconds are spent.

    The median rather than the minimum: the noise of a machine is part of what a user gets.
    `prepare` runs before each repeat and is not timed.
    """
    taken: list[float] = []
    while len(taken) < repeats and (not taken or sum(taken) + taken[-1] <= budget):
        if prepare is not None:
            prepare()
        taken.append(timed(run))
    return TimingSample.of(taken)


def fitting(one: Callable[[], object], *, most: int, budget: float) -> int:
    """How often `one` fits into `budget` seconds, from 1 to `most`.

    The second of two runs decides: the first may compile or fill a cache.
    """
    one()
    return max(1, min(most, int(budget / max(timed(one), 1e-9))))
