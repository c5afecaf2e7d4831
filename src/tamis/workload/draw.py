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

SUBSCRIPTIONS, EVENTS = 0, 1  # first step of a stream's path, one per kind of draw


def require(holds: bool, message: str) -> None:
    """Refuse a parameter that makes no workload, saying what would."""
    if not holds:
        raise TamisError(message)


def stream(seed: int, *path: int) -> np.random.Generator:
    """The generator at `path` below `seed`.

    A path names the same child that `SeedSequence.spawn` would hand out, but by its place rather
    than by how often one has spawned: asking for events never disturbs the subscriptions.
    """
    require(seed >= 0 and all(step >= 0 for step in path), "a seed is a whole number from 0 up")
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=path))


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

    `last` cuts the law off, draw by draw: only indexes up to and including `last` can come out, in
    their old proportions.
    """
    total = cumulative[-1] if last is None else cumulative[last]
    picks = np.searchsorted(cumulative, rng.random(size) * total, side="right")
    # A product of a number below 1 and the total can round up to the total itself.
    return np.minimum(picks, len(cumulative) - 1 if last is None else last)


def distinct(
    rng: np.random.Generator, n: int, k: int, draw: Callable[[np.random.Generator, int], Ints]
) -> Ints:
    """For each of `n` rows `k` different indexes, as an (n, k) matrix; `draw(rng, size)` draws.

    A pick that repeats an earlier one of its row is drawn again until it does not. An earlier pick
    never gives way to a later one, so a pick is thrown away exactly when an earlier *final* pick
    has its value: that is successive sampling without replacement, whatever the weights, and the
    first l columns are such a sample of length l. Rows that are done leave the loop, so the cost
    is about k²/2 comparisons of columns.
    """
    picks = draw(rng, n * k).reshape(k, n)  # a pick per row, contiguous: rows are compared at once
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


def first(lengths: Ints, k: int) -> Bools:
    """Mask of an (n, k) matrix that keeps the first `lengths[i]` entries of row i."""
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
