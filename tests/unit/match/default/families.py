"""Families of bitmaps with clauses in them, and what they say of events."""

from __future__ import annotations

import random
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.terms import Row, from_rows
from tamis.index.clauses import SOME
from tamis.match.default.passes.batch_pass import pass_several
from tamis.match.default.passes.buffers import (
    DOUBTS,
    PAIRS,
    ChunkBuffers,
    empty_buffers,
    fitting_buffers,
    larger_buffers,
)
from tamis.match.default.passes.event_arrays import Events, find_cells
from tamis.match.default.passes.family_pass import pass_dense, pass_sparse, sight
from tamis.match.default.passes.vector import WORDS
from tamis.match.default.structure.cells import ValueCells, cut
from tamis.match.default.structure.family import (
    LIVE,
    Family,
    blocks_of,
    family_with_room,
    is_dense,
    leave_place,
    make_family,
    take_place,
    write,
)
from tamis.match.default.structure.packed_clauses import PackedTable
from tamis.match.default.structure.routes import RoutedIndex, empty_index, schemes_of
from tamis.testing.matcher_checks import PlainEvent, batch_of, clause_holds, random_event

Clause = Sequence[Row]
Pair = tuple[int, int]
"""event, slot"""
Int64s = NDArray[np.int64]


def table_of(clauses: Sequence[Clause]) -> PackedTable:
    """Clause i in slot i."""
    table = PackedTable()
    terms = from_rows(clauses)
    table.add(np.arange(len(clauses)), terms.starts, terms[1:])
    return table


def cells_for(
    width: int, clauses: Iterable[Clause], events: Sequence[PlainEvent] = ()
) -> ValueCells:  # fmt: skip
    """Cells cut where these clauses begin and end."""
    rows = [row for rows in clauses for row in rows if row[2] == SOME]
    seen = batch_of(events).pairs
    return cut(
        width,
        np.array([row[0] for row in rows], np.int32),
        np.array([row[3] for row in rows], np.int64),
        np.array([row[4] for row in rows], np.int64),
        seen.attribute,
        seen.code,
        len(events),
    )


def index_of(cells: ValueCells, sparse: Family, dense: Family, slots: int = 0) -> RoutedIndex:
    """An index of these families, without any keys."""
    schemes = schemes_of(np.zeros(len(cells.bound), np.int64), [], cells.bound)
    none = np.zeros(0, np.int32)
    index = empty_index(cells, schemes, np.zeros(9), none, none, slots)
    return index._replace(sparse=sparse, dense=dense)


class Said(NamedTuple):
    """Pairs that a family is sure of, and those that are to be verified."""

    sure: set[Pair]
    doubts: set[Pair]


class Filled:
    """A family, the cells it stands on, and a table of clauses, some of which are in it."""

    def __init__(
        self, table: PackedTable, cells: ValueCells, attributes: Sequence[int], *, dense: bool
    ) -> None:
        self.table, self.cells = table, cells
        self.family = make_family(np.array(attributes, np.int32), cells, dense=dense)
        self.place_of: dict[int, int] = {}

    def put(self, slots: Iterable[int]) -> None:
        for slot in slots:
            self.family = family_with_room(self.family, 1)
            place = take_place(self.family.slot_of, self.family.head)
            write(self.family, self.cells, *self.table.view, place, slot)
            self.place_of[slot] = place

    def take(self, slots: Iterable[int]) -> None:
        for slot in slots:
            leave_place(self.family, self.place_of.pop(slot))

    def say(self, events: Sequence[PlainEvent]) -> Said:
        """What the family says of events. Each pair is said once."""
        dense = is_dense(self.family)
        none = make_family(np.zeros(0, np.int32), self.cells, dense=not dense)
        families = (none, self.family) if dense else (self.family, none)
        index = index_of(self.cells, *families)
        starts, attribute, code = batch_of(events).pairs
        width = max(self.table.width, len(self.cells.bound))
        buffers = fitting_buffers(empty_buffers(), index, width, len(events), len(code))
        batch = Events(starts, attribute, code, buffers.cell, buffers.several[: len(events)])
        self._each = find_cells(self.cells, batch)
        assert self.family.head[LIVE] == len(self.place_of)
        if not self.place_of:
            return Said(set(), set())
        while True:
            buffers.doubts.many[0] = 0
            sure = self._pass_dense(batch, buffers) if dense else self._pass_sparse(batch, buffers)
            lacking = sure if isinstance(sure, int) else self._pass_several(batch, buffers)
            if not lacking:
                break
            buffers = larger_buffers(buffers, lacking)
        assert isinstance(sure, list)
        many = int(buffers.doubts.many[0])
        event, slot = (each[:many].tolist() for each in buffers.doubts[:2])
        doubts = list(zip(event, slot, strict=True))
        assert len(set(sure)) == len(sure)
        assert len(set(doubts)) == len(doubts)
        return Said(set(sure), set(doubts))

    def _pass_sparse(self, events: Events, buffers: ChunkBuffers) -> list[Pair] | int:
        sight(self.cells, self.family, events, self._each, buffers.sparse)
        many = pass_sparse(
            self.family, buffers.sparse, events.several, (0, blocks_of(self.family)),
            buffers.candidates, buffers.event, buffers.slot, buffers.doubts,
        )  # fmt: skip
        if many < 0:
            return PAIRS if many == -1 else DOUBTS
        return list(zip(buffers.event[:many].tolist(), buffers.slot[:many].tolist(), strict=True))

    def _pass_dense(self, events: Events, buffers: ChunkBuffers) -> list[Pair] | int:
        sight(self.cells, self.family, events, self._each, buffers.dense)
        blocks = blocks_of(self.family)
        width, many = WORDS * blocks + 3, len(events.several)
        words = np.full(many * width, 2**63, np.uint64)
        counts = np.full(many, 7, np.int64)
        if pass_dense(
            self.family, buffers.dense, events.several, blocks, words, width, counts, buffers.doubts
        ):
            return DOUBTS
        rows = words.reshape(many, width)
        assert (rows[:, WORDS * blocks :] == 2**63).all(), "written past the bitmap of an event"
        bits = np.unpackbits(
            np.ascontiguousarray(rows[:, : WORDS * blocks]).view(np.uint8), axis=1,
            bitorder="little",
        )  # fmt: skip
        event, place = np.nonzero(bits)
        np.testing.assert_array_equal(counts - 7, bits.sum(axis=1))
        return list(zip(event.tolist(), self.family.slot_of[place].tolist(), strict=True))

    def _pass_several(self, events: Events, buffers: ChunkBuffers) -> int:
        for e in np.flatnonzero(events.several).tolist():
            blocks = (0, blocks_of(self.family))
            if pass_several(self.family, self.cells, events, e, blocks, buffers.doubts):
                return DOUBTS
        return 0


def true_pairs(
    clauses: Sequence[Clause], slots: Iterable[int], events: Sequence[PlainEvent]
) -> set[Pair]:
    """Who holds, as terms mean it."""
    return {
        (number, slot)
        for slot in slots
        for number, event in enumerate(events)
        if clause_holds(clauses[slot], event)
    }


def single(event: PlainEvent) -> bool:
    """Whether an event has one value at most of each attribute."""
    return all(len(values) < 2 for values in event.values())


def single_event(chance: random.Random, attributes: int) -> PlainEvent:
    """An event with one value at most of each attribute."""
    event = random_event(chance, attributes)
    return {attribute: values[:1] for attribute, values in event.items()}
