"""Events as kernels see them: pairs with their cells, and one event indexed by attribute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s, UInt8s
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

_AHEAD = 8  # pairs to prefetch: enough to cover the memory latency
_MANY = 16  # minimum events for which going attribute by attribute pays off
# Positions of the step counters in `Doubts.many`; `WorkTally` explains them.
LINES, PROBES, VISITS, CHECKS, VERIFIED = range(1, 6)


class Events(NamedTuple):
    """A batch as kernels see it: event i has the pairs `starts[i]:starts[i + 1]`.

    `cell` is the cell of each pair's code, counted from 1, or 0 if the attribute has no cells.
    `several` marks events with several values of an attribute.
    """

    starts: Int64s
    attribute: Int32s
    code: Int64s
    cell: Int32s
    several: UInt8s


class Binding(NamedTuple):
    """The values of one event, by attribute. Scratch space, kept between calls.

    The values of attribute a are `code[span[2 a]:span[2 a + 1]]`. `here[a]` is the cell of its only
    value, 0 if it has no value, -1 if it has several.
    """

    span: Int32s
    here: Int32s


@kernel
def alike(events: Events) -> int:
    """The number of pairs per event if all events bind the same attributes once each; else 0.

    This is the case for most publishers. Work can then go attribute by attribute, with the data of
    one attribute in registers and in the L1 cache.
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
    """Fill in `cell` for all pairs and `several` for all events.

    Returns the result of `alike`, or 0 if there are few events.
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
    """Fill in the cells of one attribute that every event binds: every `each`-th pair."""
    start, known = cells.start, attribute < len(cells.start) - 1
    if not known or start[attribute] == start[attribute + 1]:
        for i in range(many):
            cell[i * each] = known
        return
    slots = slots_of(cells.guide, start, cells.cuts, attribute)
    # Two loops: the first has no branches and is vectorised.
    for i in range(many):
        slot[i] = slot_of(slots, code[i * each])
    for i in range(many):
        at = np.uint64(i * each)
        cell[at] = cell_in(slots, np.uint64(slot[i]), code[at]) + 1


@inlined
def bind(attribute: Int32s, cell: Int32s, begin: int, end: int, span: Int32s, here: Int32s) -> None:
    """Record where the values of an event are."""
    for pair in range(begin, end):
        a = attribute[pair]
        if a < len(here):  # no clause constrains attributes past the end
            if span[2 * a] == span[2 * a + 1]:
                span[2 * a] = pair
                here[a] = cell[pair]
            else:
                here[a] = -1
            span[2 * a + 1] = pair + 1


@inlined
def unbind(attribute: Int32s, begin: int, end: int, span: Int32s, here: Int32s) -> None:
    """Clear an event again. The cost depends on its pairs, not on the width of the schema."""
    for pair in range(begin, end):
        a = attribute[pair]
        if a < len(here):
            span[2 * a] = 0
            span[2 * a + 1] = 0
            here[a] = 0


class Doubts(NamedTuple):
    """Pairs of event and slot that still have to be verified, `many[0]` of them, in any order.

    `order` is scratch space for sorting them by event. Every pass writes to `many`, so it also
    holds the work counters of a chunk, at `LINES` to `VERIFIED`.
    """

    event: Int32s
    slot: Int32s
    order: Int32s
    many: Int64s


@kernel
def verify(events: Events, clauses: PackedClauses, binding: Binding, doubts: Doubts) -> int:
    """Keep only the pairs whose clause holds, sorted by event. Returns their number.

    Clauses are scattered in memory, so each is prefetched some pairs ahead. An event with several
    values may have found a clause more than once; such a pair is kept once.
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
