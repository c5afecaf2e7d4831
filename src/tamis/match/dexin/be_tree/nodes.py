"""The nodes of a BE-tree: linked rows of flat arrays, and the clauses in them.

A *cell* has a leaf list of slots and any number of partitions. A *partition* belongs to one
attribute and owns a binary tree of *buckets*; a bucket is an interval of the attribute's codes.
Each bucket owns a cell for the clauses whose interval fits into the bucket but into neither half.
Buckets and partitions store the number of clauses below them. Emptied nodes are recycled.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int64s, runs
from tamis.index.growth import HoldsArrays, ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.postings import Postings

# Columns of the three node tables.
FIRST, BUCKET, CAPACITY = range(3)  # cell: first partition, owning bucket, leaf capacity
# Partition: … top bucket, owning cell, clauses below, their peak since the top was built.
ATTRIBUTE, NEXT, TOP, OWNER, COUNT, PEAK = range(6)
# Bucket: … parent bucket, steps below the top, clauses below.
LOW, HIGH, LEFT, RIGHT, CELL, PARTITION, UP, DEPTH, WEIGHT = range(9)


def deepest(clauses: int) -> int:
    """Maximum depth of buckets in a partition of `clauses` clauses: at most 2 log2(clauses) + 4."""
    return 2 * clauses.bit_length() + 2


class BeTreeArrays(NamedTuple):
    """The nodes for kernels."""

    cell: Int64s
    partition: Int64s
    bucket: Int64s


class NodeRows(HoldsArrays):
    """Rows of integers that can be allocated and freed."""

    def __init__(self, columns: int) -> None:
        self.rows = np.full((0, columns), -1, np.int64)
        self._free: list[int] = []
        self._top = 0

    def take(self, *values: int) -> int:
        """Allocate a row with these values."""
        if self._free:
            at = self._free.pop()
        else:
            at = self._top
            self._top += 1
            self.rows = grown(self.rows, self._top, -1)
        self.rows[at] = values
        return at

    def give(self, rows: Int64s) -> None:
        """Free rows, each once."""
        self.rows[rows] = -1
        self._free.extend(rows.tolist())

    def __len__(self) -> int:
        return self._top - len(self._free)


class TreeNodes(HoldsArrays):
    """Linked cells, partitions and buckets; subclasses decide where clauses go."""

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity  # capacity of new leaves
        self.cells, self.partitions, self.buckets = NodeRows(3), NodeRows(6), NodeRows(9)
        self.leaves = Postings()  # list i is the leaf of cell i
        self.cell_of = np.zeros(0, np.int64)  # by slot
        self.root = self.new_cell(-1)

    @property
    def view(self) -> BeTreeArrays:
        """The arrays for kernels."""
        return BeTreeArrays(self.cells.rows, self.partitions.rows, self.buckets.rows)

    # -- growing -----------------------------------------------------------------------------------

    def new_cell(self, bucket: int) -> int:
        """Create an empty cell of a bucket, or the root cell (-1)."""
        cell = self.cells.take(-1, bucket, self._capacity)
        self.leaves.number(cell + 1)
        return cell

    def new_partition(self, cell: int, attribute: int, low: int, high: int, count: int) -> int:
        """Create a partition of a cell with one bucket from `low` to `high`; returns the bucket."""
        first = self.cells.rows[cell, FIRST]
        partition = self.partitions.take(attribute, first, -1, cell, count, count)
        self.cells.rows[cell, FIRST] = partition
        top = self.buckets.take(low, high, -1, -1, -1, partition, -1, 0, count)
        self.buckets.rows[top, CELL] = self.new_cell(top)
        self.partitions.rows[partition, TOP] = top
        return top

    def new_half(self, up: int, side: int, low: int, high: int, count: int) -> int:
        """Create the left or right half of a bucket."""
        partition, depth = self.buckets.rows[up, PARTITION], self.buckets.rows[up, DEPTH] + 1
        half = self.buckets.take(low, high, -1, -1, -1, partition, up, depth, count)
        self.buckets.rows[half, CELL] = self.new_cell(half)
        self.buckets.rows[up, side] = half
        return half

    def append(self, cells: Int64s, slots: Int64s) -> None:
        """Put each clause into the leaf of its cell."""
        self.leaves.append(cells, slots)
        self.cell_of[slots] = cells

    def fill(self, cell: int, slots: Int64s) -> None:
        """Put clauses into the leaf of one cell."""
        self.append(np.full(len(slots), cell, np.int64), slots)

    # -- looking -----------------------------------------------------------------------------------

    def of(self, cell: int) -> Iterator[int]:
        """The partitions of a cell."""
        at = int(self.cells.rows[cell, FIRST])
        while at >= 0:
            yield at
            at = int(self.partitions.rows[at, NEXT])

    def overflows(self, cell: int) -> bool:
        """Whether the leaf exceeds its capacity."""
        return bool(self.leaves.size[cell] > self.cells.rows[cell, CAPACITY])

    def attributes_above(self, cell: int) -> list[int]:
        """The attributes that partition the path to a cell."""
        used: list[int] = []
        while (bucket := int(self.cells.rows[cell, BUCKET])) >= 0:
            partition = self.partitions.rows[self.buckets.rows[bucket, PARTITION]]
            used.append(int(partition[ATTRIBUTE]))
            cell = int(partition[OWNER])
        return used

    def below(self, bucket: int) -> Int64s:
        """All clauses in a bucket's subtree."""
        cells = self.buckets.rows[_subtree(self.view, bucket), CELL]
        _, places = runs(self.leaves.start[cells], self.leaves.size[cells])
        slots: Int64s = self.leaves.slots[places].astype(np.int64)
        return slots

    # -- shrinking ---------------------------------------------------------------------------------

    def take_out(self, slots: Int64s) -> Int64s:
        """Remove clauses from leaves and counts; returns the partitions that have lost half."""
        self.leaves.remove(self.cell_of[slots], slots)
        return _leave(self.view, self.cell_of[slots])

    def take_leaf(self, cell: int) -> Int64s:
        """Empty the leaf of a cell; returns its clauses, which stay counted above."""
        slots = self.leaves.items(cell)[0].astype(np.int64)
        self.leaves.size[cell] = 0
        self.leaves.removed(len(slots))
        return slots

    def empty(self, bucket: int) -> Int64s:
        """Reset a bucket to an empty leaf without children; returns its clauses.

        The clauses stay counted in this bucket and above, because they will be put back.
        """
        slots, nodes = self.below(bucket), _subtree(self.view, bucket)
        cell = int(self.buckets.rows[bucket, CELL])
        self.leaves.size[self.buckets.rows[nodes, CELL]] = 0
        self.leaves.removed(len(slots))
        self._drop(nodes[nodes != bucket], int(self.buckets.rows[bucket, PARTITION]))
        self.buckets.rows[bucket, [LEFT, RIGHT]] = -1
        self.cells.rows[cell] = -1, bucket, self._capacity
        return slots

    def prune(self, cell: int) -> None:
        """Undo the cut that made a cell if both halves are empty, and so on upwards."""
        bucket = int(self.cells.rows[cell, BUCKET])
        while bucket >= 0 and self.buckets.rows[bucket, WEIGHT] == 0:
            partition, up = self.buckets.rows[bucket, [PARTITION, UP]].tolist()
            if up < 0:
                owner = int(self.partitions.rows[partition, OWNER])
                self.unlink(partition)
                bucket = int(self.cells.rows[owner, BUCKET])
                continue
            left, right = self.buckets.rows[up, [LEFT, RIGHT]].tolist()
            if self.buckets.rows[[left, right], WEIGHT].any():
                return
            for half in (left, right):
                self._drop(_subtree(self.view, half), partition)
            self.buckets.rows[up, [LEFT, RIGHT]] = -1
            bucket = up

    def unlink(self, partition: int) -> None:
        """Drop a partition, whose leaves are empty, with all its nodes."""
        owner = int(self.partitions.rows[partition, OWNER])
        before, at = -1, int(self.cells.rows[owner, FIRST])
        while at != partition:
            before, at = at, int(self.partitions.rows[at, NEXT])
        after = self.partitions.rows[partition, NEXT]
        if before < 0:
            self.cells.rows[owner, FIRST] = after
        else:
            self.partitions.rows[before, NEXT] = after
        self._drop(_subtree(self.view, int(self.partitions.rows[partition, TOP])), -1)

    def _drop(self, buckets: Int64s, kept: int) -> None:
        """Drop buckets with their cells and all their partitions except `kept`."""
        partitions = np.unique(self.buckets.rows[buckets, PARTITION])
        self.partitions.give(partitions[partitions != kept])
        self.cells.give(self.buckets.rows[buckets, CELL])
        self.buckets.give(buckets)


@kernel
def enter(tree: BeTreeArrays, partition: int, low: Int64s, high: Int64s) -> Int64s:
    """Count intervals on their way down a partition; returns the cell of each."""
    cells = np.empty(len(low), np.int64)
    for i in range(len(low)):
        bucket = tree.partition[partition, TOP]
        while True:  # to the smallest bucket that encloses the interval
            tree.bucket[bucket, WEIGHT] += 1
            left, right = tree.bucket[bucket, LEFT], tree.bucket[bucket, RIGHT]
            if left >= 0 and high[i] <= tree.bucket[left, HIGH]:
                bucket = left
            elif right >= 0 and low[i] >= tree.bucket[right, LOW]:
                bucket = right
            else:
                break
        cells[i] = tree.bucket[bucket, CELL]
    count = tree.partition[partition, COUNT] + len(low)
    tree.partition[partition, COUNT] = count
    tree.partition[partition, PEAK] = max(count, tree.partition[partition, PEAK])
    return cells


@kernel
def _leave(tree: BeTreeArrays, cells: Int64s) -> Int64s:
    """Lower the counts on the path to the root, once per occurrence of a cell.

    Returns the partitions that thereby fell below half of their peak.
    """
    shrunk = np.empty(len(tree.partition), np.int64)
    n = 0
    for cell in cells:
        bucket = tree.cell[cell, BUCKET]
        while bucket >= 0:
            tree.bucket[bucket, WEIGHT] -= 1
            above = tree.bucket[bucket, UP]
            if above < 0:
                partition = tree.bucket[bucket, PARTITION]
                count = tree.partition[partition, COUNT] - 1
                tree.partition[partition, COUNT] = count
                if 2 * count < tree.partition[partition, PEAK] <= 2 * (count + 1):
                    shrunk[n] = partition  # only once, because counts only fall here
                    n += 1
                above = tree.cell[tree.partition[partition, OWNER], BUCKET]
            bucket = above
    return shrunk[:n].copy()


@kernel
def _subtree(tree: BeTreeArrays, bucket: int) -> Int64s:
    """A bucket and all buckets below it, including those of nested partitions."""
    found = np.empty(16, np.int64)
    found[0] = bucket
    n = 1
    at = 0
    while at < n:
        bucket = found[at]
        at += 1
        found = ensure_capacity(found, n, 2)
        if tree.bucket[bucket, LEFT] >= 0:
            found[n] = tree.bucket[bucket, LEFT]
            found[n + 1] = tree.bucket[bucket, RIGHT]
            n += 2
        partition = tree.cell[tree.bucket[bucket, CELL], FIRST]
        while partition >= 0:
            found = ensure_capacity(found, n, 1)
            found[n] = tree.partition[partition, TOP]
            n += 1
            partition = tree.partition[partition, NEXT]
    return found[:n].copy()
