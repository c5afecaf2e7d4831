"""Match one event with one call of a kernel that has two arguments.

A kernel takes about 0.2 µs for each array that it is given, and NumPy 1 µs for each that it makes:
together more than the work for an event over a thousand clauses. So all arrays of the index, the
buffers and the clauses are in one frame, and those of the event in another. Both are kept until an
array is replaced.
"""

from __future__ import annotations

from typing import NamedTuple

from tamis.files.arrays import Int32s, Int64s, UInt8s
from tamis.index.kernel import kernel
from tamis.match.default.passes.batch_pass import match_into
from tamis.match.default.passes.buffers import DONE, ChunkBuffers
from tamis.match.default.passes.event_arrays import LINES, VERIFIED
from tamis.match.default.passes.frame import Frame, reader
from tamis.match.default.structure.cells import HIGHEST
from tamis.match.default.structure.packed_clauses import PackedClauses
from tamis.match.default.structure.routes import RoutedIndex


class OwnArrays(NamedTuple):
    """The clauses, and where the answer goes.

    `work` counts the events and their steps, as `WorkTally` explains them. `needed` is the length
    of `out` that the last event needs.
    """

    clauses: PackedClauses
    counts: Int64s
    work: Int64s
    needed: Int64s
    out: Int32s


class MatchArrays(NamedTuple):
    """All that an event is matched with."""

    of: RoutedIndex
    buffers: ChunkBuffers
    own: OwnArrays


class ShapeArrays(NamedTuple):
    """The arrays of an `EventShape`, and room for codes."""

    starts: Int64s
    attribute: Int32s
    decimal: UInt8s
    given: Int64s
    code: Int64s


arrays_in = reader(MatchArrays)
shape_in = reader(ShapeArrays)


@kernel
def match_event(arrays: Frame, shape: Frame) -> int:
    """Write the slots that one event matches to `out`. Returns their number.

    If a buffer is too small, returns -1 - which one.
    """
    index, buffers, (clauses, counts, work, needed, out) = arrays_in(arrays)
    starts, attribute, decimal, given, code = shape_in(shape)
    for i in range(len(given)):
        value = given[i]
        if decimal[i] and value < 0:  # the bits of a negative double: order its magnitude
            value = -(value & HIGHEST)
        code[i] = value
    status, end = match_into(index, clauses, starts, attribute, code, buffers, counts, out, 0)
    if status != DONE:
        needed[0] = end
        return -1 - status
    work[0] += 1
    for step in range(LINES, VERIFIED + 1):
        work[step] += buffers.doubts.many[step]
    return int(end)
