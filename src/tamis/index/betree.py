"""The structure of a BE-tree: space cut first by attribute, then by value, in turns.

A *cell* holds a leaf list of slots and any number of partitions. A *partition* belongs to one
attribute; it owns a binary tree of *buckets*, each an interval of that attribute's codes, and each
bucket owns a cell for the clauses whose own interval it encloses and neither half does. Nodes are
rows of flat arrays; what is emptied is recycled.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.betree_nodes import (
    ATTRIBUTE,
    BUCKET,
    CAPACITY,
    CELL,
    COUNT,
    FIRST,
    HIGH,
    LEFT,
    LOW,
    NEXT,
    OWNER,
    PARTITION,
    RIGHT,
    TOP,
    UP,
    Nodes,
    Tree,
)
from tamis.index.clauses import ClauseTable
from tamis.index.hulls import HIGHEST, LOWEST, SAMPLES, hulls, some_ends, weigh
from tamis.index.postings import Postings

Int64s = NDArray[np.int64]


class BeTree:
    """Insert, remove and restructure. `score` weighs attributes when space is cut."""

    def __init__(self, clauses: ClauseTable, capacity: int, least: int) -> None:
        self._clauses = clauses
        self._capacity = capacity
        self._least = least
        self.cells, self.partitions, self.buckets = Nodes(3), Nodes(5), Nodes(7)
        self.leaves = Postings()  # list i is the leaf of cell i
        self.cell_of = np.zeros(0, np.int64)  # of each slot
        self.samples = np.zeros((0, SAMPLES), np.int64)  # boundaries of each attribute
        self.share = np.zeros(0)  # learned: part of a partition's clauses that a visit lets through
        self._sampled = 0
        self.root = self._new_cell(-1)

    @property
    def view(self) -> Tree:
        """For kernels."""
        return Tree(self.cells.rows, self.partitions.rows, self.buckets.rows)

    @property
    def nbytes(self) -> int:
        """Bytes of all arrays."""
        tables = (self.cells.rows, self.partitions.rows, self.buckets.rows)
        other = (self.cell_of, self.samples, self.share)
        return self.leaves.nbytes + sum(part.nbytes for part in (*tables, *other))

    def insert(self, slots: Int64s) -> None:
        """Put clauses, which are in the table already, where they belong."""
        if len(slots) == 0:
            return
        if int(slots.max()) >= len(self.cell_of):
            size = max(int(slots.max()) + 1, 2 * len(self.cell_of), 64)
            self.cell_of = np.concatenate(
                [self.cell_of, np.zeros(size - len(self.cell_of), np.int64)]
            )
        if self._clauses.live > 2 * self._sampled or self._clauses.width > len(self.samples):
            self._sample()
        self._insert(self.root, slots)

    def remove(self, slots: Int64s) -> None:
        """Take clauses out, and drop the nodes that nothing is left in."""
        cells = self.cell_of[slots]
        self.leaves.remove(cells, slots)
        for cell in cells.tolist():
            bucket = int(self.cells.rows[cell, BUCKET])
            while bucket >= 0:
                partition = int(self.buckets.rows[bucket, PARTITION])
                self.partitions.rows[partition, COUNT] -= 1
                bucket = int(self.cells.rows[self.partitions.rows[partition, OWNER], BUCKET])
        for cell in np.unique(cells).tolist():
            self._prune(cell)

    def dissolve(self, partition: int) -> None:
        """Take a partition apart and insert its clauses again, by what is known now."""
        owner = int(self.partitions.rows[partition, OWNER])
        slots = self._below(int(self.partitions.rows[partition, TOP]))
        self.leaves.remove(self.cell_of[slots], slots)
        bucket = int(self.cells.rows[owner, BUCKET])
        while bucket >= 0:  # they leave the counts above, and come back through insert
            above = int(self.buckets.rows[bucket, PARTITION])
            self.partitions.rows[above, COUNT] -= len(slots)
            bucket = int(self.cells.rows[self.partitions.rows[above, OWNER], BUCKET])
        self._unlink(partition)
        self._insert(self.root, slots)

    def adjust(self, visits: Int64s, passed: Int64s) -> bool:
        """Learn from what visits let through; take apart the worst partition if another attribute
        would serve its clauses better. Tells whether anything was moved.
        """
        rows = self.partitions.rows
        seen = np.flatnonzero((visits > 0) & (rows[:, COUNT] > 0))
        if not len(seen):
            return False
        offered = (visits[seen] * rows[seen, COUNT]).astype(np.float64)
        for attribute in np.unique(rows[seen, ATTRIBUTE]).tolist():
            mine = rows[seen, ATTRIBUTE] == attribute
            observed = passed[seen][mine].sum() / offered[mine].sum()
            self.share[attribute] = 0.5 * self.share[attribute] + 0.5 * min(observed, 1.0)
        loss = np.where(visits[seen] >= 16, passed[seen] / offered, 0.0)
        worst = int(seen[np.argmax(loss)])
        attribute, _, top, owner, count = rows[worst].tolist()
        if loss.max() < 0.5 or count <= self._capacity:
            return False
        score, counts = weigh(self._clauses.view, self._below(top), self.samples, self.share)
        score[self._used_above(owner)] = 0
        score[counts < count] = 0  # an attribute that all of them have
        if score.max() <= 1.1 * score[attribute]:
            return False
        self.dissolve(worst)
        return True

    # -- inserting ---------------------------------------------------------------------------------

    def _insert(self, cell: int, slots: Int64s) -> None:
        """Route clauses through the partitions of a cell, best attribute first."""
        for partition in self._ranked(cell):
            if not len(slots):
                return
            attribute = int(self.partitions.rows[partition, ATTRIBUTE])
            has, low, high = hulls(self._clauses.view, slots, attribute)
            if has.any():
                self.partitions.rows[partition, COUNT] += int(has.sum())
                top = int(self.partitions.rows[partition, TOP])
                self._descend(top, slots[has], low[has], high[has])
                slots = slots[~has]
        self._append(cell, slots)
        if self.leaves.size[cell] > self.cells.rows[cell, CAPACITY]:
            self._overflow(cell)

    def _descend(self, bucket: int, slots: Int64s, low: Int64s, high: Int64s) -> None:
        """Each clause to the smallest bucket that encloses its interval."""
        for side in (LEFT, RIGHT):
            half = int(self.buckets.rows[bucket, side])
            if half >= 0 and len(slots):
                fits = (low >= self.buckets.rows[half, LOW]) & (
                    high <= self.buckets.rows[half, HIGH]
                )
                if fits.any():
                    self._descend(half, slots[fits], low[fits], high[fits])
                    slots, low, high = slots[~fits], low[~fits], high[~fits]
        if len(slots):
            self._insert(int(self.buckets.rows[bucket, CELL]), slots)

    def _overflow(self, cell: int) -> None:
        bucket = int(self.cells.rows[cell, BUCKET])
        if bucket < 0:
            self._partition(cell)
        else:
            self._cluster(bucket)

    def _partition(self, cell: int) -> None:
        """Space partitioning: give the best attribute a partition, until the leaf fits."""
        used = self._used_above(cell)
        while self.leaves.size[cell] > self.cells.rows[cell, CAPACITY]:
            slots = self.leaves.items(cell)[0].astype(np.int64)
            score, counts = weigh(self._clauses.view, slots, self.samples, self.share)
            score[used] = 0
            score[counts < max(self._least, 1)] = 0
            attribute = int(np.argmax(score)) if len(score) else 0
            if not len(score) or score[attribute] <= 0:
                many = int(self.leaves.size[cell])
                self.cells.rows[cell, CAPACITY] = -(-many // self._capacity) * self._capacity
                return
            has, _, _ = hulls(self._clauses.view, slots, attribute)
            moved = slots[has]
            self.leaves.remove(np.full(len(moved), cell), moved)
            partition = self.partitions.take(
                attribute, self.cells.rows[cell, FIRST], -1, cell, len(moved)
            )
            self.cells.rows[cell, FIRST] = partition
            bucket = self._new_bucket(LOWEST, HIGHEST, partition, -1)
            self.partitions.rows[partition, TOP] = bucket
            self._append(int(self.buckets.rows[bucket, CELL]), moved)
            used.append(attribute)
            self._cluster(bucket)

    def _cluster(self, bucket: int) -> None:
        """Space clustering: halve a bucket whose leaf overflows.

        Codes have no width that could be halved (they are images of bits, or labels), so a bucket
        is cut at the median of the ends that lie in it.
        """
        row = self.buckets.rows[bucket]
        cell = int(row[CELL])
        if self.leaves.size[cell] <= self.cells.rows[cell, CAPACITY]:
            return
        slots = self.leaves.items(cell)[0].astype(np.int64)
        attribute = int(self.partitions.rows[row[PARTITION], ATTRIBUTE])
        _, low, high = hulls(self._clauses.view, slots, attribute)
        cut = None if row[LEFT] >= 0 else _median(low, high, int(row[LOW]), int(row[HIGH]))
        if cut is not None:
            left, right = high <= cut, low > cut
            if not (left.any() or right.any()):
                cut = None
        if cut is None:
            self._partition(cell)
            return
        ends = (int(row[LOW]), cut), (cut + 1, int(row[HIGH]))
        halves = [self._new_bucket(a, b, int(row[PARTITION]), bucket) for a, b in ends]
        self.buckets.rows[bucket, LEFT], self.buckets.rows[bucket, RIGHT] = halves
        for half, inside in zip(halves, (left, right), strict=True):
            moved = slots[inside]
            self.leaves.remove(np.full(len(moved), cell), moved)
            self._append(int(self.buckets.rows[half, CELL]), moved)
        if self.leaves.size[cell] > self.cells.rows[cell, CAPACITY]:
            self._partition(cell)
        for half in halves:
            self._cluster(half)

    # -- nodes -------------------------------------------------------------------------------------

    def _new_cell(self, bucket: int) -> int:
        cell = self.cells.take(-1, bucket, self._capacity)
        self.leaves.number(cell + 1)
        return cell

    def _new_bucket(self, low: int, high: int, partition: int, up: int) -> int:
        bucket = self.buckets.take(low, high, -1, -1, -1, partition, up)
        self.buckets.rows[bucket, CELL] = self._new_cell(bucket)
        return bucket

    def _append(self, cell: int, slots: Int64s) -> None:
        self.leaves.append(np.full(len(slots), cell, np.int64), slots)
        self.cell_of[slots] = cell

    def _of(self, cell: int) -> list[int]:
        """The partitions of a cell."""
        found, at = [], int(self.cells.rows[cell, FIRST])
        while at >= 0:
            found.append(at)
            at = int(self.partitions.rows[at, NEXT])
        return found

    def _ranked(self, cell: int) -> list[int]:
        """The partitions of a cell, the one that lets least through first."""
        found = self._of(cell)
        shares = [self.share[self.partitions.rows[at, ATTRIBUTE]] for at in found]
        return [at for _, at in sorted(zip(shares, found, strict=True))]

    def _used_above(self, cell: int) -> list[int]:
        used: list[int] = []
        while (bucket := int(self.cells.rows[cell, BUCKET])) >= 0:
            partition = self.partitions.rows[self.buckets.rows[bucket, PARTITION]]
            used.append(int(partition[ATTRIBUTE]))
            cell = int(partition[OWNER])
        return used

    def _prune(self, cell: int) -> None:
        """Drop an empty cell with its bucket, and what that leaves empty above it."""
        while self.cells.rows[cell, CAPACITY] >= 0 and self.leaves.size[cell] == 0:
            bucket = int(self.cells.rows[cell, BUCKET])
            if bucket < 0 or self.cells.rows[cell, FIRST] >= 0:
                return
            row = self.buckets.rows[bucket]
            if row[LEFT] >= 0 and not self._drop_halves(bucket):
                return
            up, partition = int(row[UP]), int(row[PARTITION])
            if up >= 0:
                if not self._drop_halves(up):
                    return
                cell = int(self.buckets.rows[up, CELL])
            else:
                cell = int(self.partitions.rows[partition, OWNER])
                self._unlink(partition)

    def _drop_halves(self, bucket: int) -> bool:
        """Undo the cut of a bucket whose halves are both empty."""
        halves = [int(self.buckets.rows[bucket, side]) for side in (LEFT, RIGHT)]
        for half in halves:
            row = self.buckets.rows[half]
            if (
                row[LEFT] >= 0
                or self.leaves.size[row[CELL]]
                or self.cells.rows[row[CELL], FIRST] >= 0
            ):
                return False
        for half in halves:
            self.cells.give(int(self.buckets.rows[half, CELL]))
            self.buckets.give(half)
        self.buckets.rows[bucket, LEFT] = self.buckets.rows[bucket, RIGHT] = -1
        return True

    def _unlink(self, partition: int) -> None:
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
        stack = [int(self.partitions.rows[partition, TOP])]
        while stack:
            bucket = stack.pop()
            row = self.buckets.rows[bucket]
            stack.extend(int(row[side]) for side in (LEFT, RIGHT) if row[side] >= 0)
            for inner in self._of(int(row[CELL])):
                self._unlink(inner)
            self.cells.give(int(row[CELL]))
            self.buckets.give(bucket)
        self.partitions.give(partition)

    def _below(self, bucket: int) -> Int64s:
        """All clauses in a bucket's subtree."""
        row = self.buckets.rows[bucket]
        cell = int(row[CELL])
        below = [int(row[side]) for side in (LEFT, RIGHT) if row[side] >= 0]
        below += [int(self.partitions.rows[p, TOP]) for p in self._of(cell)]
        own = self.leaves.items(cell)[0].astype(np.int64)
        return np.concatenate([own, *(self._below(each) for each in below)])

    def _sample(self) -> None:
        """Take boundaries of each attribute anew from the ends that clauses mention."""
        view = self._clauses.view
        self._sampled = self._clauses.live
        width = self._clauses.width
        rows = some_ends(view, self._clauses.live_slots()[:: max(1, self._clauses.live // 20_000)])
        samples = np.zeros((width, SAMPLES), np.int64)
        order = np.lexsort((rows[1], rows[0]))
        attribute, ends = rows[0][order], rows[1][order]
        firsts = np.searchsorted(attribute, np.arange(width + 1))
        for a in np.unique(attribute).tolist():
            mine = ends[firsts[a] : firsts[a + 1]]
            samples[a] = mine[np.linspace(0, len(mine) - 1, SAMPLES).astype(np.int64)]
        share = np.full(width, 0.5)
        share[: len(self.share)] = self.share
        self.samples, self.share = samples, share

    def check(self) -> None:
        """Raise if a clause is not where insertion would have put it, or counts are off."""
        self.leaves.check()
        seen = 0
        stack: list[tuple[int, dict[int, tuple[int, int]]]] = [(self.root, {})]
        while stack:
            cell, path = stack.pop()
            slots = self.leaves.items(cell)[0].astype(np.int64)
            seen += len(slots)
            assert (self.cell_of[slots] == cell).all()
            for attribute, (low, high) in path.items():
                has, lows, highs = hulls(self._clauses.view, slots, attribute)
                assert has.all()
                assert ((lows >= low) & (highs <= high)).all(), "buckets enclose their clauses"
            for partition in self._of(cell):
                attribute, _, top, owner, count = self.partitions.rows[partition].tolist()
                assert owner == cell
                assert attribute not in path, "an attribute is used once on a path"
                below = self._check_bucket(top, partition, path | {attribute: (0, 0)}, stack)
                assert below == count
        assert seen == self._clauses.live

    def _check_bucket(
        self,
        bucket: int,
        partition: int,
        path: dict[int, tuple[int, int]],
        stack: list[tuple[int, dict[int, tuple[int, int]]]],
    ) -> int:
        low, high, left, right, cell, owner, _ = self.buckets.rows[bucket].tolist()
        assert owner == partition
        attribute = int(self.partitions.rows[partition, ATTRIBUTE])
        stack.append((cell, path | {attribute: (low, high)}))
        below = int(self.leaves.size[cell])
        below += sum(int(self.partitions.rows[p, COUNT]) for p in self._of(cell))
        for half in (left, right):
            if half >= 0:
                assert low <= self.buckets.rows[half, LOW] <= self.buckets.rows[half, HIGH] <= high
                below += self._check_bucket(half, partition, path, stack)
        return below


def _median(low: Int64s, high: Int64s, least: int, most: int) -> int | None:
    """A code that cuts the bucket in two, with half of the ends on either side."""
    ends = np.concatenate([low, high])
    ends = ends[(ends > least) & (ends < most)]
    if not len(ends):
        return None
    cut = int(np.partition(ends, len(ends) // 2)[len(ends) // 2])
    return cut if least <= cut < most else None
