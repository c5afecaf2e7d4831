"""Events as compiled code sees them: their pairs with cells, and one event by attribute."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.cells import Cells
from tamis.index.guide import guided
from tamis.index.kernel import inlined, kernel
from tamis.index.packed import COUNT_BITS, ROW, Packed, packed_holds
from tamis.index.vector import prefetch

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
_AHEAD = 8  # pairs: as long as memory takes to answer


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
def find_cells(cells: Cells, events: Events) -> None:
    """Fill in the cells of all pairs, and which events have several values of an attribute."""
    start, cuts, guide = cells.start, cells.cuts, cells.guide
    starts, attribute, code, cell, several = events
    width = len(start) - 1
    for e in range(len(starts) - 1):
        several[e] = 0
        before = -1
        for pair in range(starts[e], starts[e + 1]):
            a = attribute[pair]
            cell[pair] = guided(guide, start, cuts, a, code[pair]) + 1 if a < width else 0
            several[e] |= a == before
            before = a


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

    `order` is room to bring them into the order of events.
    """

    event: Int32s
    slot: Int32s
    order: Int32s
    many: Int64s


@kernel
def verify(events: Events, clauses: Packed, binding: Binding, doubts: Doubts) -> int:
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
