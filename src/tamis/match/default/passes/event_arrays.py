"""Events as compiled code sees them: their pairs with cells, and one event by attribute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.kernel import inlined, kernel
from tamis.match.default.passes.vector import prefetch
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.guide import cell_in, slot_of, slots_of
from tamis.match.default.structure.packed_clauses import (
    COUNT_BITS,
    ROW,
    PackedClauses,
    packed_holds,
)

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
_AHEAD = 8  # pairs: as long as memory takes to answer
_MANY = 16  # events from which on it is worth to go attribute by attribute
# Where `Doubts.many` counts the steps of the cost model; `WorkTally` says what they are.
LINES, PROBES, VISITS, CHECKS, VERIFIED = range(1, 6)


class Events(NamedTuple):
    """A batch as kernels see it: event i has the pairs `starts[i]:starts[i + 1]`.

    `cell` is the cell of each pair's code, from 1, or 0 where the attribute has none. `several`
    marks events that have several values of an attribute.
    """

    starts: Int64s
    attribute: NDArray[np.int32]
    code: Int64s
    cell: Int32s
    several: NDArray[np.uint8]


class Binding(NamedTuple):
    """Where the values of one event are, by attribute; room for it, kept between calls.

    The values of attribute a are `code[span[2 a]:span[2 a + 1]]`. `here[a]` is the cell of the one
    value, 0 where there is none, -1 where there are several.
    """

    span: Int32s
    here: Int32s


@kernel
def alike(events: Events) -> int:
    """How many pairs each event has, where all bind the same attributes, each once; or else 0.

    So are those of most publishers, and then work can be done attribute by attribute, with all that
    belongs to one in registers and in the first-level cache.
    """
    starts, attribute, _, _, _ = events
    many = len(starts) - 1
    each = starts[1] - starts[0] if many else 0
    for j in range(1, each):
        if attribute[j] <= attribute[j - 1]:
            return 0
    for e in range(many):
        if starts[e + 1] - starts[e] != each:
            return 0
    different = 0
    for at in range(each, many * each):
        different |= attribute[at] ^ attribute[at - each]
    return int(each) if different == 0 else 0


@kernel
def find_cells(cells: ValueCells, events: Events) -> int:
    """Fill in the cells of all pairs, and which events have several values of an attribute.

    Gives what `alike` says, or 0 where events are few.
    """
    start, cuts, guide = cells.start, cells.cuts, cells.guide
    starts, attribute, code, cell, several = events
    width = len(start) - 1
    many = len(starts) - 1
    each = alike(events) if many >= _MANY else 0
    if each > 0:
        several[:many] = 0
        slot = np.empty(many, np.int32)
        for j in range(each):
            _find_column(cells, attribute[j], code[j:], cell[j:], slot, each, many)
        return each
    for e in range(many):
        several[e] = 0
        before = -1
        for pair in range(starts[e], starts[e + 1]):
            a = attribute[pair]
            cell[pair] = a < width
            if a < width and start[a] < start[a + 1]:
                slots = slots_of(guide, start, cuts, a)
                cell[pair] += cell_in(slots, slot_of(slots, code[pair]), code[pair])
            several[e] |= a == before
            before = a
    return 0


@inlined
def _find_column(
    cells: ValueCells,
    attribute: int,
    code: Int64s,
    cell: Int32s,
    slot: Int32s,
    each: int,
    many: int,
) -> None:
    """The cells of one attribute, of which every event has a value: one in `each` of the pairs."""
    start, known = cells.start, attribute < len(cells.start) - 1
    if not known or start[attribute] == start[attribute + 1]:
        for i in range(many):
            cell[i * each] = known
        return
    slots = slots_of(cells.guide, start, cells.cuts, attribute)
    # In two loops: the first has nothing to guess, and is done for several values at once.
    for i in range(many):
        slot[i] = slot_of(slots, code[i * each])
    for i in range(many):
        at = np.uint64(i * each)
        cell[at] = cell_in(slots, np.uint64(slot[i]), code[at]) + 1


@inlined
def bind(
    attribute: NDArray[np.int32],
    cell: Int32s,
    begin: int,
    end: int,
    span: Int32s,
    here: Int32s,
) -> None:
    """Note where the values of an event are."""
    for pair in range(begin, end):
        a = attribute[pair]
        if a < len(here):  # no clause asks about attributes past the end
            if span[2 * a] == span[2 * a + 1]:
                span[2 * a] = pair
                here[a] = cell[pair]
            else:
                here[a] = -1
            span[2 * a + 1] = pair + 1


@inlined
def unbind(attribute: NDArray[np.int32], begin: int, end: int, span: Int32s, here: Int32s) -> None:
    """Forget an event again; costs what it binds, not the width of the schema."""
    for pair in range(begin, end):
        a = attribute[pair]
        if a < len(here):
            span[2 * a] = 0
            span[2 * a + 1] = 0
            here[a] = 0


class Doubts(NamedTuple):
    """Pairs of event and slot that are still to be verified, `many[0]` of them, in any order.

    `order` is room to bring them into the order of events. Every pass writes to `many`, so it also
    counts the work for a chunk of events, at `LINES` to `VERIFIED`.
    """

    event: Int32s
    slot: Int32s
    order: Int32s
    many: Int64s


@kernel
def verify(events: Events, clauses: PackedClauses, binding: Binding, doubts: Doubts) -> int:
    """Leave the pairs whose clause holds, in the order of events; gives how many.

    Clauses lie anywhere in memory: each is asked for some pairs before it is looked at. An event
    with several values may have met a clause more than once: it is left once.
    """
    starts, attribute, code, cell, several = events
    where, rows = clauses
    span, here = binding
    event, slot, order, many = doubts
    total = many[0]
    place = np.zeros(len(starts) + 1, np.int64)
    for i in range(total):
        place[event[i] + 1] += 1
    for e in range(len(starts) - 1):
        place[e + 1] += place[e]
    for i in range(total):
        order[place[event[i]]] = slot[i]
        place[event[i]] += 1
    found, at = 0, 0
    for e in range(len(starts) - 1):
        end = place[e]
        if at == end:
            continue
        if several[e]:
            order[at:end].sort()
        bind(attribute, cell, starts[e], starts[e + 1], span, here)
        for i in range(at, end):
            if i + 2 * _AHEAD < total:
                prefetch(where, order[i + 2 * _AHEAD])
            if i + _AHEAD < total:
                prefetch(rows, ROW * (where[order[i + _AHEAD]] >> COUNT_BITS))
            if several[e] and i > at and order[i] == order[i - 1]:
                continue
            event[found] = e
            slot[found] = order[i]
            found += packed_holds(where, rows, order[i], span, code)
        at = end
        unbind(attribute, starts[e], starts[e + 1], span, here)
    return found
