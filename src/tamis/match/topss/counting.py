"""The common part of TOPSS's counting matchers: all but the map from predicates to subscriptions.

Matching has two stages. The first records in a bit vector which predicates the event satisfies; the
second counts them for each subscription. A third stage, which the paper does not need, verifies
clauses that elementary predicates do not cover. The first two can be run and measured apart:
`evaluate_predicates`, `count_predicates`, `part_sizes`.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.terms import Terms
from tamis.errors import MatcherError
from tamis.files.arrays import Bools, Int64s
from tamis.index.bits import Words
from tamis.index.elementary_predicates import (
    ElementaryPredicates,
    elementary_predicates,
    predicates_of,
)
from tamis.index.growth import grown
from tamis.match.base import Matches, Slots
from tamis.match.options import choice, flag, whole_number
from tamis.match.topss.byte_counts import MOST
from tamis.match.topss.predicate_lists import PredicateLists
from tamis.match.topss.predicate_table import PredicateTable
from tamis.match.topss.predicate_vector import PredicateVector, distinct
from tamis.match.topss.verification import CandidateMatcher

DOMAIN = 16_384  # the paper says "several thousand values"
LIMIT = 4 << 30
_VECTORS = 4 << 20  # bytes of bit vectors per chunk: they stay in cache until stage 2 reads them


class PartSizes(NamedTuple):
    """Bytes of the parts of a counting matcher."""

    predicates: int  # what stage 1 reads
    counting: int  # what stage 2 reads: associations, numbers of predicates, counters
    deletion: int  # the table of clauses, which says which predicates a subscription has


class CountingMatcher(CandidateMatcher):
    """Stage 1, the targets of the byte counters, and the clauses that a byte cannot count.

    Tally: `predicates` has the constants that stage 1 examines, `nodes` the cells or lists that it
    visits and the rows or lists that stage 2 reads.
    """

    predicates = choice("table", "what holds the predicates", "table", "ordered-list")
    domain = whole_number(DOMAIN, "cells of the table for an attribute and comparator", least=1)
    skip_empty = flag(True, "pass over cells of the table that hold no predicate")
    search = choice("bisect", "how the ordered list is searched", "bisect", "linear")

    def clear(self) -> None:
        super().clear()
        self._vector = self._new_vector()
        self._wanted = np.zeros(0, np.uint8)  # number of predicates by slot; 0 if it is not counted
        self._bits = np.zeros((0, 0), np.uint64)

    def _new_vector(self) -> PredicateVector:
        if self.predicates == "table":
            return PredicateTable(self.domain, self.skip_empty)
        return PredicateLists(self.search == "linear")

    def chunk_size(self) -> int:
        return max(1, _VECTORS // (8 * max(1, self._vector.words)))

    def evaluate_predicates(self, batch: EventBatch) -> Words:
        """Stage 1 alone: row i has a bit for each predicate that event i satisfies.

        The rows are overwritten by the next call and by the next match.
        """
        return self._evaluated(batch.pairs)

    def count_predicates(self, bits: Words) -> Matches:
        """Stage 2 alone: the slots whose predicates all have their bit set, for each row.

        Clauses that elementary predicates do not represent exactly are not verified, and those
        without such predicates are missing. `match` does both.
        """
        return Matches(*self._counted(bits))

    @property
    def part_sizes(self) -> PartSizes:
        """Bytes of the parts.

        The paper counts what a deletion needs apart. Here it is the table of clauses, which every
        matcher has. A matrix could do without: clearing a column deletes a subscription.
        """
        return PartSizes(self._vector.nbytes, self._counting_bytes, self.clauses.nbytes)

    @property
    def _counting_bytes(self) -> int:
        return self._wanted.nbytes

    def candidates(self, pairs: Pairs) -> tuple[Int64s, Int64s]:
        return self._counted(self._evaluated(pairs))

    def _evaluated(self, pairs: Pairs) -> Words:
        bits = self._vectors(len(pairs.starts) - 1)
        looked, visited = self._vector.evaluate(pairs.starts, pairs.attribute, pairs.code, bits)
        self.tally.predicates += looked
        self.tally.nodes += visited
        return bits

    def _counted(self, bits: Words) -> tuple[Int64s, Int64s]:
        starts, slots, rows, raised = self._count(bits)
        self.tally.nodes += rows
        self.tally.subscriptions += raised
        return starts, slots

    def _vectors(self, events: int) -> Words:
        words = self._vector.words
        if events > self._bits.shape[0] or words > self._bits.shape[1]:
            rows, width = max(events, self._bits.shape[0]), words + words // 4
            self._bits = np.zeros((rows, width), np.uint64)
        return self._bits[:events, :words]

    @abstractmethod
    def _count(self, bits: Words) -> tuple[Int64s, Int64s, int, int]:
        """Stage 2: starts and slots of full counters, rows or lists read, counters raised."""

    @abstractmethod
    def _associate(self, ids: Int64s, slots: Slots) -> None:
        """Associate predicate `ids[i]` with `slots[i]`."""

    @abstractmethod
    def _dissociate(self, ids: Int64s, slots: Slots) -> None:
        """Undo `_associate`."""

    def _admit(self, predicates: int, slots: int) -> None:
        """Raise if these numbers of predicates and slots exceed a limit."""

    def check(self) -> None:
        super().check()
        self._vector.check()
        live = self.clauses.live_slots()
        counted = np.setdiff1d(live, self._always.slots)
        assert (self._wanted[counted] > 0).all()
        assert np.count_nonzero(self._wanted) == len(counted)

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        found, counted = self._countable(slots)
        plan = self._vector.plan(found)
        size = int(slots.max()) + 1
        self._admit(self._vector.top_after(plan), size)
        starts, ids = distinct(found.starts, self._vector.add(plan), self._vector.top)
        self._wanted = grown(self._wanted, size)
        wanted = np.diff(starts)
        self._wanted[slots] = wanted
        self._note(slots, counted, found.exact)
        self._associate(ids, np.repeat(slots, wanted))

    def drop_clauses(self, slots: Slots) -> None:
        found, counted = self._countable(slots)
        every = self._vector.find(found)
        starts, ids = distinct(found.starts, every, self._vector.top)
        self._dissociate(ids, np.repeat(slots, np.diff(starts)))
        self._vector.remove(every)
        self._wanted[slots] = 0
        self._forget(slots, counted)

    def _countable(self, slots: Slots) -> tuple[ElementaryPredicates, Bools]:
        """The predicates of clauses that fit into a byte counter, and a mask of these clauses."""
        found = elementary_predicates(self.clauses.view, slots)
        counts = np.diff(found.starts)
        counted = (counts > 0) & (counts <= MOST)
        if (counts > MOST).any():
            kept = np.repeat(counted, counts)
            found = predicates_of(found, kept)
        return found, counted


class MatrixCounting(CountingMatcher):
    """Associations as a matrix: one row per predicate, one column per subscription.

    The matrix grows in both directions and takes rows × columns, however few associations it holds.
    A limit protects the machine's memory.
    """

    name = "counting"  # as in the registry, for error messages
    kind: Any = np.uint8
    packed = 1  # slots per matrix item

    max_bytes = whole_number(LIMIT, "bytes of the matrix at most", least=1, most=1 << 40)

    def clear(self) -> None:
        super().clear()
        self._matrix: NDArray[Any] = np.zeros((0, 0), self.kind)

    @property
    def _counting_bytes(self) -> int:
        return super()._counting_bytes + self._matrix.nbytes

    def _admit(self, predicates: int, slots: int) -> None:
        """Grow the matrix if needed; raise if it would exceed the limit."""
        have_rows, have_columns = self._matrix.shape
        columns = max(-(-slots // self.packed), have_columns)
        rows = max(predicates, have_rows)
        if (rows, columns) == self._matrix.shape:
            return
        needed = self._bytes(rows, columns)
        if needed > self.max_bytes:
            raise MatcherError(
                f"{self.name} keeps a matrix of predicates × subscriptions, and "
                f"{predicates:,} × {slots:,} take {needed / 2**30:.2f} GiB, more than "
                f"max_bytes={self.max_bytes} allows; raise max_bytes, or use counting-list, "
                "which stores only the associations"
            )
        # Spare capacity: adding one by one then copies each item only a few times.
        roomy_rows = max(rows, have_rows * 3 // 2) if rows > have_rows else rows
        roomy_columns = max(columns, have_columns * 3 // 2) if columns > have_columns else columns
        if self._bytes(roomy_rows, roomy_columns) <= self.max_bytes:
            rows, columns = roomy_rows, roomy_columns
        wider = np.zeros((rows, columns), self.kind)
        wider[:have_rows, :have_columns] = self._matrix
        self._matrix = wider

    def _associate(self, ids: Int64s, slots: Slots) -> None:
        by_row = np.argsort(ids, kind="stable")  # touch the memory of a large matrix in order
        self._mark(ids[by_row], slots[by_row], True)

    def _dissociate(self, ids: Int64s, slots: Slots) -> None:
        self._mark(ids, slots, False)

    @abstractmethod
    def _mark(self, ids: Int64s, slots: Slots, on: bool) -> None:
        """Write the entries in rows `ids` and columns `slots`."""

    def _bytes(self, rows: int, columns: int) -> int:
        return rows * columns * int(np.dtype(self.kind).itemsize)

    def check(self) -> None:
        super().check()
        live = np.flatnonzero(self._wanted)
        assert self._total() == int(self._wanted.sum()), "one mark for each predicate of each slot"
        assert len(live) == 0 or live.max() < self._matrix.shape[1] * self.packed

    @abstractmethod
    def _total(self) -> int:
        """The number of associations in the matrix."""
