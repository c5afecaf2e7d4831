"""The BE-tree: cuts space by attribute and by value in turn, and adapts to the events."""

from __future__ import annotations

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.files.arrays import Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.clauses import ClauseArrays, bind, holds, unbind
from tamis.index.growth import ensure_capacity
from tamis.index.kernel import kernel
from tamis.index.verification import answer_arrays
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.dexin.be_tree.nodes import (
    ATTRIBUTE,
    BUCKET,
    CELL,
    COUNT,
    FIRST,
    HIGH,
    LEFT,
    NEXT,
    PARTITION,
    RIGHT,
    TOP,
    BeTreeArrays,
)
from tamis.match.dexin.be_tree.tree import BeTree
from tamis.match.options import whole_number


class BETree(Matcher):
    """Cut space in two alternating phases: by the most selective attribute, then by value.

    A leaf that overflows is partitioned by the best attribute of its clauses; within a partition,
    buckets of values are halved when they overflow. In each partition whose attribute it binds, an
    event visits the buckets along its value and verifies the clauses in their leaves. Every
    `window` events, the tree checks how much its partitions let through. It dissolves the worst one
    if another attribute would serve better (self-adjustment).

    add O(depth) amortised, remove O(depth), match O(nodes on the event's paths + clauses in them).

    Sadoghi and Jacobsen, SIGMOD 2011 and TODS 2013. Differences: buckets are cut at the median of
    their ends, not in the middle (codes have no width). Their subtrees are rebuilt when values that
    arrive in order would form a chain (the depth is O(log n)). The score of an attribute is the
    share of events that its intervals rule out, estimated from the clauses and corrected by what
    visits let through, instead of the papers' gain and loss. The papers do not give capacities. On
    wide ranges over all attributes (DEXIN), small leaves only add nodes, and most clauses fit into
    no half of any bucket: there it cannot beat a scan.
    """

    capacity = whole_number(64, "clauses of a leaf before it is cut", least=1)
    min_partition = whole_number(2, "clauses that make a partition worth while", least=1)
    window = whole_number(1000, "events between two looks at what partitions let through", least=1)

    def clear(self) -> None:
        self._tree = BeTree(self.clauses, self.capacity, self.min_partition)
        self._visits = np.zeros(0, np.int64)
        self._passed = np.zeros(0, np.int64)
        self._seen = np.zeros(0, np.int64)
        self._events = 0
        self._stamp = 0

    def find(self, batch: EventBatch) -> Matches:
        tree = self._tree
        if len(self._visits) < len(tree.partitions.rows):
            self._visits = np.zeros(len(tree.partitions.rows), np.int64)
            self._passed = np.zeros(len(tree.partitions.rows), np.int64)
        if len(self._seen) < len(tree.cells.rows):
            self._seen = np.full(len(tree.cells.rows), -1, np.int64)
        starts, slots, work = _match(
            batch.pairs,
            self.clauses.view,
            self.clauses.width,
            (tree.view, tree.root, tree.leaves.lists, tree.leaves.slots),
            (self._visits, self._passed),
            self._seen,
            self._stamp,
        )
        self._stamp += len(batch)
        self._events += len(batch)
        self.tally.count(work)
        if self._events >= self.window:
            self._adjust()
        return Matches(starts, slots)

    def _adjust(self) -> None:
        if len(self._visits) == len(self._tree.partitions.rows):
            self._tree.adjust(self._visits, self._passed)
        self._visits[:] = 0
        self._passed[:] = 0
        self._events = 0

    def check(self) -> None:
        super().check()
        self._tree.check()

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._tree.insert(slots)

    def drop_clauses(self, slots: Slots) -> None:
        self._tree.remove(slots)


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    nodes: tuple[BeTreeArrays, int, Lists, Int32s],
    learned: tuple[Int64s, Int64s],
    seen: Int64s,
    stamp: int,
) -> tuple[Int64s, Int64s, Int64s]:
    tree, root, leaves, pool = nodes
    visits, passed = learned
    # `work`: terms compared, nodes visited, clauses verified
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    stack = np.empty(len(tree.cell), np.int64)  # each cell at most once per event
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        bind(events.attribute, begin, end, first, last)
        stack[0] = root
        depth = 1
        while depth:
            depth -= 1
            cell = stack[depth]
            work[1] += 1
            # Verifying the clauses of the leaves dominates; the tree only reduces their number.
            out = ensure_capacity(out, found, leaves.size[cell])
            for place in range(leaves.start[cell], leaves.start[cell] + leaves.size[cell]):
                slot = pool[place]
                ok, looked = holds(clauses, slot, first, last, events.code)
                work[0] += looked
                work[2] += 1
                if ok:
                    out[found] = slot
                    found += 1
            through = leaves.size[cell]
            partition = tree.cell[cell, FIRST]
            while partition >= 0:
                through += tree.partition[partition, COUNT]
                a = tree.partition[partition, ATTRIBUTE]
                visits[partition] += last[a] > first[a]
                for at in range(first[a], last[a]):
                    bucket = tree.partition[partition, TOP]
                    while bucket >= 0:
                        inner = tree.bucket[bucket, CELL]
                        if seen[inner] != stamp + event:  # another value may have been here
                            seen[inner] = stamp + event
                            stack[depth] = inner
                            depth += 1
                        left = tree.bucket[bucket, LEFT]
                        if left >= 0 and events.code[at] > tree.bucket[left, HIGH]:
                            bucket = tree.bucket[bucket, RIGHT]
                        else:
                            bucket = left
                partition = tree.partition[partition, NEXT]
            above = tree.cell[cell, BUCKET]
            if above >= 0:
                passed[tree.bucket[above, PARTITION]] += through
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work
