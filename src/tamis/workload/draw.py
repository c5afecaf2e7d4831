"""The random draws that several papers share: streams, Zipf weights, distinct picks.

Everything here works on whole columns. A workload of a million subscriptions is a handful of calls,
never a loop over subscriptions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tamis.errors import TamisError

Ints = npt.NDArray[np.integer[Any]]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

SUBSCRIPTIONS, EVENTS = 0, 1  # first step of a path of `stream`


def require(holds: bool, message: str) -> None:
    """Refuse a wrong parameter. The message says what would be right."""
    if not holds:
        raise TamisError(message)


def require_count(n: int, what: str = "subscriptions") -> None:
    """Refuse a negative number of things."""
    require(n >= 0, f"the number of {what} is 0 or more, got {n}")


def stream(seed: int, *path: int) -> np.random.Generator:
    """The random generator at `path` below `seed`.

    A path names the same child as `SeedSequence.spawn`, but by its place, not by the number of
    earlier calls: drawing events never changes the subscriptions.
    """
    require(seed >= 0 and all(step >= 0 for step in path), "a seed is a whole number from 0")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


def event_stream(seed: int, other: int | None = None) -> np.random.Generator:
    """The random generator of the events of a workload; `other` chooses other events."""
    return stream(seed, EVENTS) if other is None else stream(seed, EVENTS, other)


def zipf_weights(count: int, exponent: float) -> Floats:
    """Weights 1/rank^exponent of ranks 1..count, not normalised. Exponent 0 is uniform."""
    require(count >= 1, f"a Zipf law needs at least one rank, got {count}")
    require(exponent >= 0, f"a Zipf exponent is 0 or more, got {exponent}")
    return np.arange(1, count + 1, dtype=np.float64) ** -exponent


def weighted(
    rng: np.random.Generator,
    cumulative: Floats,
    size: int | tuple[int, ...],
    last: Ints | None = None,
) -> Ints:
    """Indexes drawn in proportion to weights whose running sum is `cumulative`.

    `last` truncates the distribution of each draw: only indexes up to `last` come out, in their old
    proportions.
    """
    total = cumulative[-1] if last is None else cumulative[last]
    picks = np.searchsorted(cumulative, rng.random(size) * total, side="right")
    # The product of a number below 1 and the total can round up to the total.
    return np.minimum(picks, len(cumulative) - 1 if last is None else last)


def by_weight(
    cumulative: Floats, dtype: type[np.integer[Any]] = np.int64
) -> Callable[[np.random.Generator, int], Ints]:
    """A function that draws indexes as `weighted` does; for `distinct`."""
    return lambda rng, size: weighted(rng, cumulative, size).astype(dtype, copy=False)


def distinct(
    rng: np.random.Generator, n: int, k: int, draw: Callable[[np.random.Generator, int], Ints]
) -> Ints:
    """For each of `n` rows, `k` different indexes from `draw(rng, size)`, as an (n, k) matrix.

    A pick that repeats an earlier pick of its row is drawn again. An earlier pick never gives way
    to a later one, so a pick is rejected only if an earlier *final* pick has its value. That is
    successive sampling without replacement for any weights, and the first l columns are such a
    sample of length l. Finished rows leave the loop, so the cost is about k²/2 comparisons of
    columns.
    """
    picks = draw(rng, n * k).reshape(k, n)  # a row for each place: comparisons are contiguous
    rows = np.arange(n)
    while rows.size:
        block = picks[:, rows]
        repeated = np.zeros(block.shape, dtype=np.bool_)
        for j in range(1, k):
            repeated[j] = (block[:j] == block[j]).any(axis=0)
        block[repeated] = draw(rng, int(repeated.sum()))
        picks[:, rows] = block
        rows = rows[repeated.any(axis=0)]
    return picks.T


def nonempty(rng: np.random.Generator, n: int, probabilities: Floats) -> Bools:
    """`n` random sets, as rows of a mask; `probabilities` by member. Empty sets are drawn again."""
    chosen = rng.random((n, len(probabilities))) < probabilities
    while (empty := ~chosen.any(axis=1)).any():
        chosen[empty] = rng.random((int(empty.sum()), len(probabilities))) < probabilities
    return chosen


def first(lengths: Ints, k: int) -> Bools:
    """A mask of an (n, k) matrix: the first `lengths[i]` entries of row i."""
    return np.arange(k) < lengths[:, None]


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Where a falling function crosses zero between `low` and `high`, by bisection."""
    for _ in range(100):
        middle = (low + high) / 2
        if function(middle) > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
