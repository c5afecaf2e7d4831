"""Equal events of a batch ("twins"): one is matched, and the answer is copied to the others.

Publishers repeat themselves: a sensor reports the same reading, a price is quoted again, a message
is retried. Detecting this takes some 0.1 µs per event. Copying an answer takes a fraction of the
time to compute it.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.kernel import kernel
from tamis.match.default.structure.buckets import first_hash, last_hash, next_hash


@kernel
def find_twins(
    starts: Int64s, attribute: Int32s, code: Int64s, table: Int32s, twin: Int32s, seed: int
) -> int:
    """Number the distinct events, and write the number of each event to `twin`.

    `table` is scratch space. Its length is a power of two, at least twice the number of events.
    Returns the number of distinct events.
    """
    table[:] = -1
    mask = len(table) - 1
    different = 0
    first = np.empty(len(starts), np.int32)  # the position of each distinct event
    for e in range(len(starts) - 1):
        hash = first_hash(starts[e + 1] - starts[e], seed)
        for pair in range(starts[e], starts[e + 1]):
            hash = next_hash(hash, code[pair] ^ (np.int64(attribute[pair]) << 40))
        at = last_hash(hash) & mask
        while table[at] >= 0 and not _same(starts, attribute, code, e, first[table[at]]):
            at = (at + 1) & mask
        if table[at] < 0:
            table[at] = different
            first[different] = e
            different += 1
        twin[e] = table[at]
    return different


@kernel
def _same(starts: Int64s, attribute: Int32s, code: Int64s, one: int, other: int) -> bool:
    size = starts[one + 1] - starts[one]
    if starts[other + 1] - starts[other] != size:
        return False
    for i in range(size):
        if attribute[starts[one] + i] != attribute[starts[other] + i]:
            return False
        if code[starts[one] + i] != code[starts[other] + i]:
            return False
    return True


@kernel
def copy_twins(
    twin: Int32s, starts: Int64s, slots: Int32s, out_starts: Int64s, out: Int32s
) -> None:
    """Copy to each event the slots of its twin. `starts` is for the distinct events."""
    for e in range(len(twin)):
        begin, to = starts[twin[e]], out_starts[e]
        for i in range(out_starts[e + 1] - to):
            out[to + i] = slots[begin + i]
