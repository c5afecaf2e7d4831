"""H-Tree: a tree of overlapping cells over a few attributes, with buckets of subscriptions."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import Int32s, Int64s, zeros
from tamis.index.blocks import Lists
from tamis.index.clauses import SOME, ClauseArrays, bind, holds, unbind
from tamis.index.counters import Counters
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import ensure_capacity, grown
from tamis.index.kernel import kernel
from tamis.index.postings import Postings
from tamis.index.tuple_map import TupleMap, Tuples, find
from tamis.index.verification import answer_arrays
from tamis.match.base import Matcher, Matches, Slots
from tamis.match.dexin.clones import admit, branches_of_all, parts, paths_to_levels, step
from tamis.match.dexin.edges import EQUAL_DEPTH, EQUAL_WIDTH
from tamis.match.dexin.grid import ANY, CELLS, CellGrid, GridShape, branches_met, choose, empty_grid
from tamis.match.options import choice, real_number, whole_number

Ids = Callable[[Int64s, Int64s], Int64s]
Steps = list[tuple[Int64s, Int64s]]
_ATTRIBUTES = 16  # maximum
_LIMIT = 4 << 30


class Guards(NamedTuple):
    """By slot, one interval that the event must satisfy; attribute -1 means no guard."""

    attribute: Int32s
    low: Int64s
    high: Int64s


class HTree(Matcher):
    """Cut a few attributes into overlapping cells; a path of cells leads to a bucket of clauses.

    A range within one cell, extended on both sides by the overlap, goes into that cell. A wider
    range is cloned into every cell that it meets. On each level, an event follows the one or two
    cells that contain its value, and it verifies the clauses of the buckets that it reaches.

    add, remove O(clones) plus, for remove, a search of their buckets; match O(nodes met, at worst
    4 ** attributes, + clauses in their buckets).

    H-Tree, TPDS 2015, as outlined in DEXIN; the rest is a reconstruction. The `attributes` levels
    are the attributes that rule out the most clauses, with `cells` cells each, extended by
    `overlap` of the next cell. Cells are equi-depth over the ends of the terms, unless
    `edges="equal-width"`. Clauses that do not constrain a level have a separate branch instead of a
    clone in every cell. A clause with more than `max_clones` clones also uses that branch, on its
    widest level first; a clause that is wide on every level thus ends in a bucket that every event
    reaches. `max_clones=0` sets no cap, as in the paper. The clones of wide ranges multiply over
    the levels, so subscriptions are then refused if, by an upper estimate, the tree would need more
    than `max_bytes`. Cells covered by clones and cells that enclose ranges are separate, so that an
    event meets no clause twice, unless it has several values. Each clause keeps its narrowest term,
    if possible on an attribute without a level, as a guard beside its slot; the guard is tested
    before the whole clause. Levels are chosen again after as many additions as there were clauses.
    It is slower than `scan` when ranges are wide (DEXIN's workload) or clauses constrain few
    attributes: an event then reaches many buckets, and verifying clauses one by one costs more than
    comparing columns.

    Tally: `predicates` has the guards and terms compared, `nodes` the nodes visited,
    `subscriptions` the clauses verified.
    """

    attributes = whole_number(6, "attributes that become levels", least=1, most=_ATTRIBUTES)
    cells = whole_number(6, "cells of a level", least=1, most=CELLS)
    overlap = real_number(
        0.25, "share of the next cell by which a cell is extended", least=0, most=1
    )
    max_clones = whole_number(64, "buckets that a clause may be in; 0 means any number", least=0)
    edges = choice(EQUAL_DEPTH, "where cells are cut", EQUAL_DEPTH, EQUAL_WIDTH)
    max_bytes = whole_number(
        _LIMIT, "bytes of the tree at most, if clones have no cap", least=1, most=1 << 40
    )
    _bounded = True  # whether `max_bytes` holds

    def clear(self) -> None:
        self._clear_tree(empty_grid(self.attributes, 0))
        self._counters = Counters()
        self._since_choice = 0  # clauses added since the levels were chosen
        self._at_choice = 0  # number of clauses at that time

    def _clear_tree(self, grid: CellGrid) -> None:
        self._grid = grid
        self._nodes = TupleMap()  # (node, branch) -> id; the child node is id + 1
        self._buckets = Postings()  # by id; only the last level has entries
        self._guards = zeros(Guards)

    def find(self, batch: EventBatch) -> Matches:
        return self.run(
            _match,
            batch,
            self._grid,
            self._nodes.view,
            (self._buckets.lists, self._buckets.slots, self._guards),
            self._counters.fit(0, self.clauses.slots).seen,
            self._counters.stamps(len(batch)),
        )

    def check(self) -> None:
        super().check()
        self._nodes.check()
        self._buckets.check()
        live = self.clauses.live_slots()
        wanted: list[tuple[int, int]] = []
        for part, steps in self._walk(live, self._nodes.find):
            ids, clause = steps[-1]
            wanted += zip(ids, part[clause], strict=True)
            assert np.bincount(clause, minlength=1).max() <= self._most_clones
        assert sorted(zip(*self._buckets.flat(), strict=True)) == sorted(wanted)

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        due = self._since_choice + len(slots) > max(64, self._at_choice)
        if due:
            due = self._choose(slots)
        elif self.max_clones == 0:
            self._admit(self._grid, slots, self._buckets.total)
        if due:
            slots = self.clauses.live_slots()
            self._since_choice, self._at_choice = 0, len(slots)
        else:
            self._since_choice += len(slots)
        self._guards = Guards(*(grown(each, self.clauses.slots, -1) for each in self._guards))
        _guard(self.clauses.view, slots, self._grid, self._guards)
        for part, steps in self._walk(slots, lambda *keys: self._nodes.add(*keys)[0]):
            ids, clause = steps[-1]
            self._buckets.append(ids, part[clause])

    def drop_clauses(self, slots: Slots) -> None:
        for part, steps in self._walk(slots, self._nodes.find):
            ids, clause = steps[-1]
            self._buckets.remove(ids, part[clause])
            for ids, _ in steps:
                self._nodes.remove(ids)

    def rebuild(self) -> None:
        self._bounded = False  # what was accepted once must not be refused
        try:
            super().rebuild()
        finally:
            self._bounded = True

    def _choose(self, slots: Slots) -> bool:
        """Choose the levels for all clauses. False if only the present levels hold the new ones."""
        live = self.clauses.live_slots()
        terms = self.terms(live)
        some = terms.kind == SOME
        rows = (terms.attribute[some], terms.low[some], terms.high[some])
        shape = GridShape(self.attributes, self.cells, self.overlap, self.edges)
        grid = choose(*rows, shape)
        if self.max_clones == 0:
            try:
                self._admit(grid, live, 0)
            except MatcherError:
                if not self._at_choice:
                    raise
                self._admit(self._grid, slots, self._buckets.total)
                return False
        self._clear_tree(grid)
        return True

    def _admit(self, grid: CellGrid, slots: Slots, held: int) -> None:
        """Raise if a tree with `held` clones and those of the clauses would exceed the limit."""
        if self._bounded:
            branches = branches_of_all(self.clauses.view, slots, grid, self._most_clones)
            admit(grid, paths_to_levels(branches), held, self.max_bytes)

    @property
    def _most_clones(self) -> float:
        return float(self.max_clones) if self.max_clones else np.inf

    def _walk(self, slots: Slots, ids_of: Ids) -> Iterator[tuple[Slots, Steps]]:
        """Parts of the slots with, for each level, the nodes that the clauses of a part reach.

        A step has the ids of the nodes, and the position in the part that each belongs to.
        """
        branches = branches_of_all(self.clauses.view, slots, self._grid, self._most_clones)
        for part in parts(paths_to_levels(branches)[:, -1]):
            clause = np.arange(part.stop - part.start)
            nodes = np.zeros(len(clause), np.int64)
            steps = []
            for level in range(self.attributes):
                keys, clause = step(nodes, clause, branches[part, level])
                ids = ids_of(np.arange(0, len(keys) + 1, 2), keys)
                steps.append((ids, clause))
                nodes = ids + 1
            yield slots[part], steps


@kernel
def _guard(clauses: ClauseArrays, slots: Int64s, grid: CellGrid, guards: Guards) -> None:
    """Choose each clause's guard: a point, else a range, else a half-line; best off the levels."""
    for slot in slots:
        start = clauses.start[slot]
        end = start + clauses.size[slot]
        best = 0
        guards.attribute[slot] = -1
        for row in range(start, end):
            alone = (row == start or clauses.term[row - 1] != clauses.term[row]) and (
                row + 1 == end or clauses.term[row + 1] != clauses.term[row]
            )
            if clauses.kind[row] != SOME or not alone:
                continue
            a, low, high = clauses.attribute[row], clauses.low[row], clauses.high[row]
            worth = 1 + (low > LOWEST) + (high < HIGHEST) + (low == high)
            if a >= len(grid.level) or grid.level[a] < 0:
                worth += 4
            if worth > best:
                best = worth
                guards.attribute[slot], guards.low[slot], guards.high[slot] = a, low, high


@kernel
def _match(
    events: Pairs,
    clauses: ClauseArrays,
    width: int,
    grid: CellGrid,
    nodes: Tuples,
    buckets: tuple[Lists, Int32s, Guards],
    seen: Int64s,
    stamp: int,
) -> tuple[Int64s, Int64s, Int64s]:
    lists, pool, guards = buckets
    levels = len(grid.cells)
    # `work`: terms verified, nodes visited, clauses verified
    starts, out, work, first, last = answer_arrays(events.starts, width)
    found = 0
    met = np.empty(levels, np.int64)
    ids = np.empty(64, np.int64)
    for event in range(len(starts) - 1):
        begin, end = events.starts[event], events.starts[event + 1]
        several = bind(events.attribute, begin, end, first, last)
        for level in range(levels):
            a = grid.attribute[level]
            if a < 0 or a >= width:
                met[level] = ANY
            else:
                met[level] = branches_met(grid, level, events.code, first[a], last[a])
        ids, many = _descend(nodes, met, ids, work)
        for i in range(many):
            out = ensure_capacity(out, found, lists.size[ids[i]])
            block = pool[lists.start[ids[i]] : lists.start[ids[i]] + lists.size[ids[i]]]
            if several:
                block = _unseen(block, seen, stamp + event)
            found = _verify(clauses, guards, block, (first, last, events.code), (out, found), work)
        unbind(events.attribute, begin, end, first, last)
        starts[event + 1] = found
    return starts, out[:found], work


@kernel
def _descend(nodes: Tuples, met: Int64s, ids: Int64s, work: Int64s) -> tuple[Int64s, int]:
    """The buckets at the ends of all paths along the branches met; the array may be new."""
    levels = len(met)
    key = np.zeros(2, np.int64)
    node = np.zeros(levels, np.int64)  # the path: the node on each level ...
    left = np.zeros(levels, np.int64)  # ... and the branches still to follow from it
    left[0] = met[0]
    level = n = visited = 0
    while level >= 0:
        if left[level] == 0:
            level -= 1
            continue
        key[0], key[1] = node[level], left[level] & -left[level]
        left[level] &= left[level] - 1
        id = find(nodes, key, 0, 2)
        if id < 0:
            continue
        visited += 1
        if level + 1 < levels:
            level += 1
            node[level] = id + 1
            left[level] = met[level]
        else:
            ids = ensure_capacity(ids, n, 1)
            ids[n] = id
            n += 1
    work[1] += visited
    return ids, n


@kernel
def _unseen(slots: Int32s, seen: Int64s, stamp: int) -> Int32s:
    """The slots that the event, which has several values, has not met yet."""
    fresh = np.empty(len(slots), np.int32)
    n = 0
    for slot in slots:
        fresh[n] = slot
        n += seen[slot] != stamp
        seen[slot] = stamp
    return fresh[:n]


@kernel
def _verify(
    clauses: ClauseArrays,
    guards: Guards,
    slots: Int32s,
    event: tuple[Int64s, Int64s, Int64s],
    answer: tuple[Int64s, int],
    work: Int64s,
) -> int:
    """Append the slots of a bucket whose clauses hold to the answer; returns its new length.

    Most of the time goes here: the clauses of a bucket are scattered over the table. The guards
    avoid this access for most clauses that do not hold.
    """
    first, last, code = event
    out, found = answer
    looked = len(slots)
    for slot in slots:
        a = guards.attribute[slot]
        low, high = guards.low[slot], guards.high[slot]
        agrees = a < 0
        if not agrees:
            for at in range(first[a], last[a]):
                agrees |= (low <= code[at]) & (code[at] <= high)
        if agrees:
            ok, terms = holds(clauses, slot, first, last, code)
            looked += terms
            out[found] = slot
            found += ok
    work[0] += looked
    work[2] += len(slots)
    return found
