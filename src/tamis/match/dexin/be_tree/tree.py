"""The structure of a BE-tree: space is cut by attribute and by value in turn.

`nodes` defines the nodes; this module decides where clauses go. Buckets are cut when their leaves
overflow, and are balanced as in scapegoat trees. If a cut is too deep, we search for the highest
bucket above it with a half that is too heavy. We rebuild that bucket's subtree, cut at
medians. A subtree that was built evenly becomes so uneven only after additions in proportion to its
clauses, so the amortised cost is O(log n) per addition. No method recurses: the depth of cuts
and of nested partitions depends on the data.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.clauses import ClauseStorage, finite_ends
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import grown
from tamis.match.dexin.be_tree.check import check
from tamis.match.dexin.be_tree.hulls import SAMPLES, hulls, weigh
from tamis.match.dexin.be_tree.nodes import (
    ATTRIBUTE,
    BUCKET,
    CAPACITY,
    CELL,
    COUNT,
    DEPTH,
    LEFT,
    PARTITION,
    PEAK,
    RIGHT,
    UP,
    WEIGHT,
    TreeNodes,
    deepest,
    enter,
)

# A half with more than this share of its bucket's clauses is too heavy. If no half is too heavy, n
# clauses are at most 2 log2(n) steps deep.
_HEAVY = 0.5**0.5


class BeTree(TreeNodes):
    """Insert, remove and restructure. `share` weighs the attributes when space is cut."""

    def __init__(self, clauses: ClauseStorage, capacity: int, least: int) -> None:
        super().__init__(capacity)
        self._clauses = clauses
        self._least = least  # minimum number of clauses for a partition
        self.samples = np.zeros((0, SAMPLES), np.int64)  # boundaries by attribute
        self.share = np.zeros(0)  # learned: share of a partition's clauses that a visit passes
        self._sampled = 0

    @property
    def nbytes(self) -> int:
        """Size of all arrays except the table of clauses, which the matcher owns."""
        return super().nbytes - self._clauses.nbytes

    def insert(self, slots: Int64s) -> None:
        """Insert clauses, which must be in the table already."""
        if len(slots) == 0:
            return
        self.cell_of = grown(self.cell_of, int(slots.max()) + 1)
        if len(self._clauses) > 2 * self._sampled or self._clauses.width > len(self.samples):
            self._sample()
        self._insert(slots)

    def remove(self, slots: Int64s) -> None:
        """Remove clauses, and drop the nodes that become empty."""
        shrunk = self.take_out(slots)
        for cell in np.unique(self.cell_of[slots]).tolist():
            self.prune(cell)
        self._renew(shrunk)

    def dissolve(self, partition: int) -> None:
        """Dissolve a partition and insert its clauses again with the current statistics."""
        _, _, top, owner, _, _ = self.partitions.rows[partition].tolist()
        slots = self.below(top)
        shrunk = self.take_out(slots)
        self.unlink(partition)
        self.prune(owner)
        self._insert(slots)
        self._renew(shrunk)

    def adjust(self, visits: Int64s, passed: Int64s) -> bool:
        """Learn from the visits; dissolve the worst partition if another attribute would be better.

        Returns whether any clause moved.
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
        attribute, _, top, owner, count, _ = rows[worst].tolist()
        if loss.max() < 0.5 or count <= self._capacity:
            return False
        score, counts = weigh(self._clauses.view, self.below(top), self.samples, self.share)
        score[self.attributes_above(owner)] = 0
        score[counts < count] = 0  # only attributes that all of them have
        if score.max() <= 1.1 * score[attribute]:
            return False
        self.dissolve(worst)
        return True

    def check(self) -> None:
        """Raise if a clause is not where insertion would put it, or the tree is unbalanced."""
        check(self, self._clauses)

    # -- inserting ---------------------------------------------------------------------------------

    def _insert(self, slots: Int64s) -> None:
        # Insert all clauses into the current tree first; only then restructure.
        cells = self._route(slots)
        self.append(cells, slots)
        deep: list[int] = []
        for cell in np.unique(cells).tolist():
            deep += self._restructure(cell)
        for bucket in deep:
            self._balance(bucket)

    def _route(self, slots: Int64s) -> Int64s:
        """The cell of each clause, through the best partition of each cell on the path."""
        where = np.empty(len(slots), np.int64)
        stack = [(self.root, np.arange(len(slots)))]
        while stack:
            cell, rest = stack.pop()
            for partition in self._ranked(cell):
                attribute = int(self.partitions.rows[partition, ATTRIBUTE])
                has, low, high = hulls(self._clauses.view, slots[rest], attribute)
                if has.any():
                    inner = enter(self.view, partition, low[has], high[has])
                    stack += _groups(inner, rest[has])
                    rest = rest[~has]
                    if not len(rest):
                        break
            where[rest] = cell
        return where

    def _ranked(self, cell: int) -> list[int]:
        """The partitions of a cell, the one that lets the least through first."""
        return sorted(
            self.of(cell), key=lambda at: (self.share[self.partitions.rows[at, ATTRIBUTE]], at)
        )

    # -- restructuring -----------------------------------------------------------------------------

    def _restructure(self, cell: int) -> list[int]:
        """Cut space until the leaf of a cell and the leaves of all resulting cells fit.

        Buckets are cut by value first; the clauses that stay in a leaf are then cut by the next
        attribute. Returns the buckets that are too deep in their partition.
        """
        deep: list[int] = []
        stack = [cell]
        while stack:
            cell = stack.pop()
            if not self.overflows(cell):
                continue
            bucket = int(self.cells.rows[cell, BUCKET])
            if bucket >= 0 and self.buckets.rows[bucket, LEFT] < 0:
                made = self._cluster(bucket)
                limit = deepest(
                    int(self.partitions.rows[self.buckets.rows[bucket, PARTITION], PEAK])
                )
                deep += [half for half in made if self.buckets.rows[half, DEPTH] > limit]
                stack += self.buckets.rows[made, CELL].tolist()
            if self.overflows(cell):
                stack += self._partition(cell)
        return deep

    def _partition(self, cell: int) -> list[int]:
        """Space partitioning: give the best attribute a partition until the leaf fits.

        Returns the cells of the new partitions.
        """
        used = self.attributes_above(cell)
        slots = self.take_leaf(cell)
        made: list[int] = []
        while len(slots) > self.cells.rows[cell, CAPACITY]:
            score, counts = weigh(self._clauses.view, slots, self.samples, self.share)
            score[used] = 0
            score[counts < self._least] = 0
            attribute = int(np.argmax(score)) if len(score) else 0
            if not len(score) or score[attribute] <= 0:
                whole = -(-len(slots) // self._capacity) * self._capacity
                self.cells.rows[cell, CAPACITY] = whole
                break
            has, _, _ = hulls(self._clauses.view, slots, attribute)
            top = self.new_partition(cell, attribute, LOWEST, HIGHEST, int(has.sum()))
            made.append(int(self.buckets.rows[top, CELL]))
            self.fill(made[-1], slots[has])
            slots = slots[~has]
        self.fill(cell, slots)
        return made

    def _cluster(self, bucket: int) -> list[int]:
        """Space clustering: halve a bucket and its halves while leaves overflow.

        Codes have no width that could be halved (they are images of bits, or labels), so a bucket
        is cut at the median of the ends inside it. Each half has at most half of these ends, so the
        halves of n clauses are at most log2(n) + 4 steps deep. Returns the halves.
        """
        attribute = int(self.partitions.rows[self.buckets.rows[bucket, PARTITION], ATTRIBUTE])
        slots = self.take_leaf(int(self.buckets.rows[bucket, CELL]))
        _, low, high = hulls(self._clauses.view, slots, attribute)
        halves: list[int] = []
        cells, kept = [], []
        stack = [(bucket, slots, low, high)]
        while stack:
            bucket, slots, low, high = stack.pop()
            least, most, _, _, cell = self.buckets.rows[bucket, : CELL + 1].tolist()
            fits = len(slots) <= self.cells.rows[cell, CAPACITY]
            cut = None if fits else _cut(low, high, least, most)
            if cut is not None:
                left, right = high <= cut, low > cut
                ends = (LEFT, left, least, cut), (RIGHT, right, cut + 1, most)
                for side, inside, first, last in ends:
                    half = self.new_half(bucket, side, first, last, int(inside.sum()))
                    halves.append(half)
                    stack.append((half, slots[inside], low[inside], high[inside]))
                slots = slots[~(left | right)]
            cells.append(np.full(len(slots), cell))
            kept.append(slots)
        self.append(np.concatenate(cells), np.concatenate(kept))
        return halves

    def _balance(self, bucket: int) -> None:
        """Rebuild the highest bucket with a too heavy half above a bucket that is too deep.

        Such a bucket exists: if no half were too heavy, less than one clause would be left at the
        cut. It suffices: no half above it is too heavy, so its depth plus log2 of its clauses, cut
        at medians, stays within the bound.
        """
        partition, depth = self.buckets.rows[bucket, [PARTITION, DEPTH]].tolist()
        if partition < 0 or depth <= deepest(int(self.partitions.rows[partition, PEAK])):
            return  # rebuilding another deep bucket already removed or raised this one
        highest = -1
        while (above := int(self.buckets.rows[bucket, UP])) >= 0:
            if self.buckets.rows[bucket, WEIGHT] > _HEAVY * self.buckets.rows[above, WEIGHT]:
                highest = above
            bucket = above
        self._rebuild(highest)

    def _rebuild(self, bucket: int) -> None:
        """Rebuild a bucket and everything below it."""
        slots = self.empty(bucket)
        if self.buckets.rows[bucket, UP] < 0:
            self.partitions.rows[self.buckets.rows[bucket, PARTITION], PEAK] = len(slots)
        cell = int(self.buckets.rows[bucket, CELL])
        self.fill(cell, slots)
        self._restructure(cell)

    def _renew(self, shrunk: Int64s) -> None:
        """Rebuild partitions that have lost half of their clauses: they may be too deep now."""
        for partition in shrunk.tolist():
            _, _, top, _, count, peak = self.partitions.rows[partition].tolist()
            if 0 < 2 * count < peak:  # else it is gone or has grown again
                self._rebuild(top)

    def _sample(self) -> None:
        """Sample the boundaries of each attribute again from the ends of the clauses."""
        self._sampled = len(self._clauses)
        width = self._clauses.width
        some = self._clauses.live_slots()[:: max(1, len(self._clauses) // 20_000)]
        attribute, ends = finite_ends(*self._clauses.terms(some)[1])
        samples = np.zeros((width, SAMPLES), np.int64)
        firsts = np.searchsorted(attribute, np.arange(width + 1))
        for a in np.unique(attribute).tolist():
            mine = ends[firsts[a] : firsts[a + 1]]
            samples[a] = mine[np.linspace(0, len(mine) - 1, SAMPLES).astype(np.int64)]
        share = np.full(width, 0.5)
        share[: len(self.share)] = self.share
        self.samples, self.share = samples, share


def _groups(cells: Int64s, items: Int64s) -> list[tuple[int, Int64s]]:
    """Group items by cell; item i goes to cell i."""
    if len(cells) == 1:
        return [(int(cells[0]), items)]
    order = np.argsort(cells, kind="stable")
    which, firsts = np.unique(cells[order], return_index=True)
    return list(zip(which.tolist(), np.split(items[order], firsts[1:]), strict=True))


def _cut(low: Int64s, high: Int64s, least: int, most: int) -> int | None:
    """The last code of a bucket's left half, or None if no interval fits into a half.

    The cut is before or after the median of the ends inside the bucket, whichever leaves more in
    the smaller half. If there are no such ends, it is next to an outermost code of the bucket. A
    value that many clauses share thus gets its own bucket and does not move when its neighbours do.
    """
    if least == most:
        return None
    ends = np.concatenate([low, high])
    ends = ends[(ends > least) & (ends < most)]
    if len(ends):
        median = int(np.partition(ends, len(ends) // 2)[len(ends) // 2])
        cuts = [median, median - 1]
    else:
        cuts = [most - 1 if (low == most).any() else least]
    best, most_even = None, (0, 0)
    for cut in cuts:
        left, right = int((high <= cut).sum()), int((low > cut).sum())
        if (even := (min(left, right), left + right)) > most_even:
            best, most_even = cut, even
    return best
