"""Families of bitmaps: what they are sure of holds, and what holds is not lost."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.encode.terms import Row
from tamis.index.clauses import MISSING, NONE, SOME
from tamis.match.default.passes.buffers import empty_buffers, fitting_buffers
from tamis.match.default.passes.event_arrays import Doubts, Events, find_cells
from tamis.match.default.passes.family_pass import CandidateBlocks, pass_sparse, sight
from tamis.match.default.structure.cells import HIGHEST, LOWEST
from tamis.match.default.structure.family import (
    BLOCK,
    COLUMNS,
    LIVE,
    TOP,
    blocks_of,
    family_with_room,
    is_dense,
    make_family,
)
from tamis.match.lesubscribe.naive import Naive
from tamis.testing.matcher_checks import (
    PlainEvent,
    add,
    batch_of,
    clause_holds,
    random_clause,
    random_event,
)
from tests.unit.match.default.families import (
    Clause,
    Filled,
    cells_for,
    index_of,
    single,
    single_event,
    table_of,
    true_pairs,
)

NO_ONE = np.zeros(0, np.int32)
BOTH = pytest.mark.parametrize("dense", [False, True], ids=["sparse", "dense"])


def agree(filled: Filled, clauses: list[Clause], events: list[PlainEvent]) -> None:
    """Sure is right, and right is sure or in doubt; several values are always in doubt."""
    right = true_pairs(clauses, filled.place_of, events)
    sure, doubts = filled.say(events)
    assert not sure & doubts
    wrong = sorted(sure - right)[:3]
    assert not wrong, f"sure of {[(events[e], clauses[s]) for e, s in wrong]}"
    lost = sorted(right - sure - doubts)[:3]
    assert not lost, f"lost {[(events[e], clauses[s]) for e, s in lost]}"
    assert all(single(events[event]) for event, _ in sure)


@BOTH
@pytest.mark.parametrize("columns", [range(6), [0, 3], [5], []], ids=str)
@pytest.mark.parametrize("cut_by", [1, 5, 0], ids=["exact", "inexact", "uncut"])
def test_any_clauses_and_events(dense: bool, columns: range | list[int], cut_by: int) -> None:
    """Of every kind: NONE, MISSING, several intervals, two terms on an attribute, all ends."""
    chance = random.Random(1)
    clauses: list[Clause] = [random_clause(chance) for _ in range(150)]
    events = [random_event(chance) for _ in range(40)]
    cells = cells_for(6, clauses[::cut_by] if cut_by else [])
    filled = Filled(table_of(clauses), cells, list(columns), dense=dense)
    filled.put(range(len(clauses)))
    agree(filled, clauses, events)
    agree(filled, clauses, events[:1])
    agree(filled, clauses, [{}])


@BOTH
@pytest.mark.parametrize("columns", [COLUMNS, COLUMNS + 1, 2 * COLUMNS, 2 * COLUMNS + 7])
def test_many_columns(dense: bool, columns: int) -> None:
    """Two and three lines of a record, and events that fail in the last column only."""
    chance = random.Random(2)
    clauses: list[Clause] = [
        [(a, 0, SOME, 3, 5)] for a in range(columns)
    ]  # fmt: skip
    for _ in range(60):
        some = sorted(chance.sample(range(columns), 4))
        low = [chance.randrange(6) for _ in some]
        clauses.append([(a, t, SOME, low[t], low[t] + 4) for t, a in enumerate(some)])
    events: list[PlainEvent] = [
        {a: [chance.randrange(10)] for a in range(columns) if chance.random() < 0.9}
        for _ in range(50)
    ]
    filled = Filled(
        table_of(clauses), cells_for(columns, clauses), range(columns), dense=dense
    )  # fmt: skip
    filled.put(range(len(clauses)))
    agree(filled, clauses, events)
    if not dense:
        right = true_pairs(clauses, range(len(clauses)), events)
        assert filled.say(events).sure == right, "cells and records decide all"
        assert len(right) > 200


def plain_clause(chance: random.Random, attributes: int) -> list[Row]:
    """One interval or `missing` for some of the attributes: cells decide such terms fully."""
    rows: list[Row] = []
    for attribute in sorted(chance.sample(range(attributes), chance.randint(1, attributes))):
        low, high = sorted(chance.choices((LOWEST, -3, 0, 2, 4, 7, HIGHEST), k=2))
        term = len(rows)
        missing = chance.random() < 0.1
        rows.append(
            (attribute, term, MISSING, 0, -1) if missing else (attribute, term, SOME, low, high)
        )
    return rows


@BOTH
def test_where_cells_tell_all_nothing_is_in_doubt(dense: bool) -> None:
    chance = random.Random(3)
    clauses: list[Clause] = [plain_clause(chance, 4) for _ in range(200)]
    events = [single_event(chance, 4) for _ in range(60)]
    filled = Filled(table_of(clauses), cells_for(4, clauses), range(4), dense=dense)
    filled.put(range(len(clauses)))
    sure, doubts = filled.say(events)
    assert not doubts
    assert sure == true_pairs(clauses, range(len(clauses)), events)


@BOTH
def test_what_ends_within_a_cell_is_in_doubt_there_and_only_there(dense: bool) -> None:
    known: Clause = [(0, 0, SOME, 10, 19)]
    later: Clause = [(0, 0, SOME, 5, 14)]
    filled = Filled(table_of([known, later]), cells_for(1, [known]), [0], dense=dense)
    filled.put([0, 1])
    events: list[PlainEvent] = [{0: [value]} for value in (3, 5, 9, 10, 14, 15, 19, 20)]
    sure, doubts = filled.say(events)
    assert sure == {(3, 0), (4, 0), (5, 0), (6, 0)}
    assert doubts == {(e, 1) for e in range(7)}, "in both cells, but not in the third"


def test_lines_that_are_coarser_than_records_leave_work_to_these() -> None:
    """Hundreds of ends: the lines let through more than holds, the records know all of it."""
    chance = random.Random(4)
    clauses: list[Clause] = []
    for _ in range(700):
        low = chance.randrange(10_000)
        clauses.append([(0, 0, SOME, low, low + chance.randrange(1, 300))])
    events: list[PlainEvent] = [{0: [chance.randrange(10_300)]} for _ in range(300)]
    right = true_pairs(clauses, range(700), events)
    said = {}
    for dense in (False, True):
        filled = Filled(table_of(clauses), cells_for(1, clauses), [0], dense=dense)
        filled.put(range(700))
        agree(filled, clauses, events)
        said[dense] = filled.say(events)
    assert said[False].sure == right
    assert len(said[False].doubts) < len(right) / 5, "of cells just outside an interval"
    assert said[True].doubts & right, "what edges cannot decide"
    assert len(said[True].sure | said[True].doubts) < 3 * len(right)


@BOTH
def test_places_are_left_and_taken_again(dense: bool) -> None:
    chance = random.Random(5)
    clauses: list[Clause] = [random_clause(chance, 4) for _ in range(300)]
    events = [random_event(chance, 4) for _ in range(12)]
    filled = Filled(table_of(clauses), cells_for(4, clauses[::3]), range(4), dense=dense)
    filled.put(range(150))
    for _ in range(8):
        filled.take(chance.sample(sorted(filled.place_of), 60))
        agree(filled, clauses, events)
        free = [slot for slot in range(300) if slot not in filled.place_of]
        filled.put(chance.sample(free, 60))
        agree(filled, clauses, events)
        assert filled.family.head[TOP] == 150, "places that were left are taken first"
        used = {slot: place for place, slot in enumerate(filled.family.slot_of) if slot >= 0}
        assert used == filled.place_of
    filled.take(sorted(filled.place_of))
    assert filled.family.head[LIVE] == 0
    assert (filled.family.slot_of < 0).all()
    filled.put(range(300))
    agree(filled, clauses, events)


@BOTH
def test_a_place_taken_again_keeps_nothing_of_who_was_there(dense: bool) -> None:
    """A clause that must be verified leaves its place to one that need not be."""
    strange: Clause = [(0, 0, NONE, 3, 3), (1, 1, SOME, 0, 0), (1, 1, SOME, 2, 2)]
    plain: Clause = [(0, 0, SOME, 1, 5)]
    cells = cells_for(2, [strange, plain])
    filled = Filled(table_of([strange, plain]), cells, [0, 1], dense=dense)
    filled.put([0])
    filled.take([0])
    filled.put([1])
    assert filled.say([{0: [3], 1: [2]}]) == ({(0, 1)}, set())


@BOTH
@pytest.mark.parametrize("size", [1, 5, 300])
@pytest.mark.slow
def test_many_blocks_and_batches_of_any_size(dense: bool, size: int) -> None:
    """More blocks than a word of zones has bits, and more events than a round takes."""
    chance = random.Random(6)
    many = 65 * BLOCK + 3
    clauses: dict[int, Clause] = {}
    for slot in range(many):
        low = slot * 10 // BLOCK + chance.randrange(5)
        clauses[slot] = [(0, 0, SOME, low, low + chance.randrange(40)), (1, 1, SOME, 0, slot % 7)]
    events: list[PlainEvent] = [
        {0: [chance.randrange(700)], 1: [chance.randrange(8)]} for _ in range(size)
    ]
    rows = list(clauses.values())
    filled = Filled(table_of(rows), cells_for(2, rows), [0, 1], dense=dense)
    filled.family = family_with_room(filled.family, many)
    filled.put(clauses)
    assert blocks_of(filled.family) == 66
    naive = Naive()
    add(naive, clauses)
    found = naive.match(batch_of(events))
    right = set(zip(found.events.tolist(), found.slots.tolist(), strict=True))
    sure, doubts = filled.say(events)
    assert sure <= right <= sure | doubts
    assert dense or sure == right


def test_growing_keeps_what_is_there() -> None:
    chance = random.Random(7)
    clauses: list[Clause] = [random_clause(chance) for _ in range(3 * BLOCK)]
    events = [random_event(chance) for _ in range(3)]
    for dense in (False, True):
        filled = Filled(table_of(clauses), cells_for(6, clauses), range(6), dense=dense)
        filled.put(range(BLOCK - 1))  # one by one: whenever it is full it grows
        agree(filled, clauses, events)
        filled.put(range(BLOCK - 1, 3 * BLOCK))
        agree(filled, clauses, events)
        grown = family_with_room(filled.family, 10 * BLOCK)
        assert is_dense(grown) is dense
        assert len(grown.slot_of) >= 13 * BLOCK
        assert family_with_room(grown, BLOCK) is grown


def test_attributes_past_the_cells_are_left_to_verification() -> None:
    """Clauses that came after the cells were cut may ask about attributes nobody knew."""
    clauses: list[Clause] = [[(0, 0, SOME, 1, 1), (7, 1, SOME, 2, 2)], [(7, 0, MISSING, 0, -1)]]
    events: list[PlainEvent] = [{0: [1], 7: [2]}, {0: [1], 7: [3]}, {0: [2], 7: [2]}, {0: [1]}, {}]
    for dense in (False, True):
        filled = Filled(table_of(clauses), cells_for(1, clauses[:1], events[:1]), [0], dense=dense)
        filled.put([0, 1])
        agree(filled, clauses, events)
        assert not filled.say(events).sure


def test_a_family_knows_its_sort() -> None:
    cells = cells_for(3, [[(0, 0, SOME, 1, 3), (2, 1, SOME, 4, 4)]])
    for attributes in ([0, 2], []):
        chosen = np.array(attributes, np.int32)
        assert is_dense(make_family(chosen, cells, dense=True))
        assert not is_dense(make_family(chosen, cells, dense=False))
        assert blocks_of(make_family(chosen, cells, dense=True)) == 0


def test_a_clause_without_terms_is_in_every_answer() -> None:
    for dense in (False, True):
        filled = Filled(table_of([[], [(0, 0, SOME, 1, 1)]]), cells_for(1, []), [0], dense=dense)
        filled.put([0, 1])
        events: list[PlainEvent] = [{}, {0: [5]}, {3: [1, 2]}]
        sure, doubts = filled.say(events)
        assert {(0, 0), (1, 0)} <= sure
        assert (2, 0) in doubts
        assert all(clause_holds([], event) for event in events)


@pytest.mark.parametrize("size", [3, 256, 600])
def test_rooms_are_large_enough_when_everything_is_let_through(size: int) -> None:
    """All clauses of all blocks for every event: nothing is written past what a room has."""
    many = 3 * BLOCK
    clauses: list[Clause] = [[(0, 0, SOME, 0, 9)]] * many
    filled = Filled(table_of(clauses), cells_for(1, clauses[:1]), [0], dense=False)
    filled.put(range(many))
    events: list[PlainEvent] = [{0: [5]}] * size
    starts, attribute, code = batch_of(events).pairs
    index = index_of(filled.cells, filled.family, make_family(NO_ONE, filled.cells, dense=True))
    buffers = fitting_buffers(empty_buffers(), index, 1, size, size)
    batch = Events(starts, attribute, code, buffers.cell, buffers.several[:size])
    each = find_cells(filled.cells, batch)
    sight(filled.cells, filled.family, batch, each, buffers.sparse)
    behind = []

    def guarded(array: NDArray[Any]) -> NDArray[Any]:
        longer = np.full(len(array) + 64, 77, array.dtype)
        behind.append(longer[len(array) :])
        return longer[: len(array)]

    candidates = CandidateBlocks(*(guarded(each) for each in buffers.candidates))
    event, slot = (guarded(np.empty(size * many, np.int32)) for _ in range(2))
    found = pass_sparse(
        filled.family,
        buffers.sparse,
        batch.several,
        (0, 3),
        candidates,
        event,
        slot,
        buffers.doubts,
    )
    if size > 4:  # fewer are taken one by one, and need little room at a time
        assert found == -2, "what is in doubt needs as much room, in case"
    one, two, three = (guarded(np.empty(size * many, np.int32)) for _ in range(3))
    doubts = Doubts(one, two, three, np.zeros_like(buffers.doubts.many))
    found = pass_sparse(
        filled.family, buffers.sparse, batch.several, (0, 3), candidates, event, slot, doubts
    )
    assert found == size * many
    assert (np.bincount(event) == many).all()
    assert (np.bincount(slot) == size).all()
    assert all((each == 77).all() for each in behind)
