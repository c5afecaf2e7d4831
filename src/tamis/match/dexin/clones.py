"""Clones of H-Tree: the paths of cells that lead to the buckets of a clause, and their limit."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tamis.errors import MatcherError
from tamis.files.arrays import Floats, Int64s
from tamis.index.clauses import ClauseArrays
from tamis.index.kernel import kernel
from tamis.match.dexin.grid import CellGrid, branches_of, count_branches

_PART = 1 << 19  # clones inserted at a time, to bound the temporary memory
_CLONE, _NODE = 8, 96  # bytes at most of a clone in a bucket and of a node, with spare capacity


def admit(grid: CellGrid, paths: Floats, held: int, limit: int) -> None:
    """Raise if `held` clones and those of more clauses would exceed a limit in bytes.

    `paths` are those of the clauses to each level; the paths to the last one are the clones.
    """
    more = paths.sum(axis=0)
    clones = held + more[-1]
    # A level has no more nodes than paths, nor than its branches make with those above it.
    nodes = np.minimum(held + more, np.cumprod(2.0 * grid.cells + 1)).sum()
    needed = _CLONE * clones + _NODE * nodes
    if needed > limit:
        raise MatcherError(
            "h-tree clones a subscription into every path of cells that it meets, and "
            f"{clones:,.0f} clones take up to {needed / 2**30:,.2f} GiB, more than "
            f"max_bytes={limit} allows; raise max_bytes, set max_clones, or take fewer attributes "
            "or cells"
        )


def parts(clones: Floats) -> Iterator[slice]:
    """Runs of clauses whose clones fit into the temporary memory of an insertion."""
    ends = np.cumsum(clones)
    start = 0
    while start < len(clones):
        before = ends[start - 1] if start else 0.0
        stop = max(start + 1, int(np.searchsorted(ends, before + _PART, side="right")))
        yield slice(start, stop)
        start = stop


@kernel
def branches_of_all(clauses: ClauseArrays, slots: Int64s, grid: CellGrid, most: float) -> Int64s:
    """The branches of each clause on each level."""
    out = np.empty((len(slots), len(grid.cells)), np.int64)
    for i in range(len(slots)):
        branches_of(clauses, slots[i], grid, most, out[i])
    return out


@kernel
def paths_to_levels(branches: Int64s) -> Floats:
    """For each clause and level, the number of its paths from the root to the level."""
    paths = np.empty(branches.shape, np.float64)
    for i in range(len(branches)):
        above = 1.0
        for level in range(branches.shape[1]):
            above *= count_branches(branches[i, level])
            paths[i, level] = above
    return paths


@kernel
def step(nodes: Int64s, clause: Int64s, branches: Int64s) -> tuple[Int64s, Int64s]:
    """Step from each node into each branch of its clause: (node, branch) pairs, and the clauses."""
    steps = 0
    for i in range(len(nodes)):
        left = branches[clause[i]]
        while left:
            left &= left - 1
            steps += 1
    keys = np.empty(2 * steps, np.int64)
    clauses = np.empty(steps, np.int64)
    n = 0
    for i in range(len(nodes)):
        left = branches[clause[i]]
        while left:
            keys[2 * n], keys[2 * n + 1] = nodes[i], left & -left
            clauses[n] = clause[i]
            left &= left - 1
            n += 1
    return keys, clauses
