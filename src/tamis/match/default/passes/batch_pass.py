"""Match a chunk of events in one call: cells, buckets, families, and the answer."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.bits import Words
from tamis.index.kernel import inlined, kernel
from tamis.match.default.passes.bucket_pass import pass_buckets
from tamis.match.default.passes.buffers import DONE, DOUBTS, KEYS, MET, OUT, PAIRS, ChunkBuffers
from tamis.match.default.passes.event_arrays import (
    LINES,
    VERIFIED,
    Doubts,
    Events,
    find_cells,
    verify,
)
from tamis.match.default.passes.family_pass import pass_dense, pass_sparse, sight
from tamis.match.default.passes.frame import Frame, buffers_in, index_in
from tamis.match.default.passes.vector import PACKED, WORDS, or_lines, pack, popcount, trailing
from tamis.match.default.structure.buckets import LIVE as ENTRIES
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.family import BLOCK, LIVE, TOP, Family
from tamis.match.default.structure.insertion import insert, take_out
from tamis.match.default.structure.packed_clauses import PackedClauses
from tamis.match.default.structure.routes import RoutedIndex

_TILE = 8  # blocks whose slots stay in the L1 cache while all events pass
_CROWDED = 5  # with at least this many bits set in a word, packing beats extracting one by one


@inlined
def _none() -> int:
    """0 as a variable: for a literal, Numba would compile all callees a second time."""
    return int(np.int64(0))


@kernel
def find_matches(
    index: RoutedIndex,
    clauses: PackedClauses,
    starts: Int64s,
    attribute: Int32s,
    code: Int64s,
    buffers: ChunkBuffers,
    blocks: tuple[int, int],
    words: Words,
    width: int,
    counts: Int64s,
) -> tuple[int, int, int]:
    """Find the matches of each event. Leaves them in `buffers`, and their number in `counts`.

    `blocks` is the range of sparse blocks to search. The call whose range starts at 0 also searches
    the buckets and the dense family. The bitmap of event e goes to `words[e * width:]`. Returns
    `DONE`, or the buffer that was too small; the number of certain pairs; the number of verified
    pairs.
    """
    many = len(starts) - 1
    events = Events(starts, attribute, code, buffers.cell, buffers.several[:many])
    each = find_cells(index.cells, events)
    doubts = buffers.doubts
    doubts.many[:] = 0
    runs = buffers.runs[:many]
    runs[:] = 0
    met, pairs = 0, 0
    if blocks[0] == 0 and index.buckets.head[ENTRIES] > 0:
        met = pass_buckets(
            events,
            index.buckets,
            index.schemes,
            buffers.binding,
            buffers.keys,
            buffers.met,
            runs,
            doubts,
        )
        if met < 0:
            return (MET if met == -1 else DOUBTS if met == -2 else KEYS), 0, 0
    counts[:] = runs
    if index.sparse.head[LIVE] > 0:
        sight(index.cells, index.sparse, events, each, buffers.sparse)
        pairs = pass_sparse(
            index.sparse, buffers.sparse, events.several, blocks,
            buffers.candidates, buffers.event, buffers.slot, doubts,
        )  # fmt: skip
        if pairs < 0:
            return (PAIRS if pairs == -1 else DOUBTS), 0, 0
        for e in range(many):
            if events.several[e] and pass_several(
                index.sparse, index.cells, events, e, blocks, doubts
            ):
                return DOUBTS, 0, 0
    if blocks[0] == 0 and index.dense.head[LIVE] > 0:
        dense = -(-index.dense.head[TOP] // BLOCK)
        sight(index.cells, index.dense, events, each, buffers.dense)
        if pass_dense(
            index.dense, buffers.dense, events.several, dense, words, width, counts, doubts
        ):
            return DOUBTS, 0, 0
        for e in range(many):
            if events.several[e] and pass_several(
                index.dense, index.cells, events, e, (_none(), dense), doubts
            ):
                return DOUBTS, 0, 0
    doubts.many[VERIFIED] = doubts.many[0]
    verified = verify(events, clauses, buffers.binding, doubts)
    count_pairs(buffers.event[:pairs], counts)
    count_pairs(doubts.event[:verified], counts)
    return DONE, pairs, verified


@kernel
def write_matches(
    buffers: ChunkBuffers,
    slot_of: Int32s,
    found: tuple[int, int, int],
    counts: Int64s,
    starts: Int64s,
    out: Int32s,
) -> None:
    """Write the results of `find_matches`: the `counts[e]` slots of event e to `out[starts[e]:]`.

    `found` has the number of certain pairs, of verified pairs, and of words per bitmap.
    """  # fmt: skip
    pairs, verified, width = found
    cursor = starts.copy()
    place_runs(buffers.met, buffers.runs[: len(counts)], cursor, out)
    place_pairs(buffers.event[:pairs], buffers.slot[:pairs], cursor, out)
    place_pairs(buffers.doubts.event[:verified], buffers.doubts.slot[:verified], cursor, out)
    if width:
        words = buffers.words[: len(counts) * width]
        place_bits(words, width, slot_of, cursor, starts + counts, out)


@kernel
def match_chunk(
    frames: tuple[Frame, Frame],
    clauses: PackedClauses,
    starts: Int64s,
    attribute: Int32s,
    code: Int64s,
    counts: Int64s,
    out: Int32s,
    used: int,
) -> tuple[int, int]:
    """Match a chunk in one call: `find_matches`, then `write_matches` to `out[used:]`.

    `frames` are the frames of the index and of the buffers. Returns `DONE` and the end of the
    slots. If a buffer is too small, writes nothing and returns which one; for `OUT`, also the
    length it needs.
    """
    index, buffers = index_in(frames[0]), buffers_in(frames[1])
    return match_into(index, clauses, starts, attribute, code, buffers, counts, out, used)


@kernel
def match_into(
    index: RoutedIndex,
    clauses: PackedClauses,
    starts: Int64s,
    attribute: Int32s,
    code: Int64s,
    buffers: ChunkBuffers,
    counts: Int64s,
    out: Int32s,
    used: int,
) -> tuple[int, int]:
    """`match_chunk` without frames, for other kernels."""
    blocks = -(-index.sparse.head[TOP] // BLOCK)
    width = -(-index.dense.head[TOP] // BLOCK) * WORDS if index.dense.head[LIVE] > 0 else 0
    status, pairs, verified = find_matches(
        index,
        clauses,
        starts,
        attribute,
        code,
        buffers,
        (_none(), blocks),
        buffers.words,
        width,
        counts,
    )
    if status != DONE:
        return status, 0
    firsts = buffers.ends[: len(counts)]
    end = used
    for e in range(len(counts)):
        firsts[e] = end
        end += counts[e]
    if end + PACKED > len(out):
        return OUT, end + PACKED
    write_matches(buffers, index.dense.slot_of, (pairs, verified, width), counts, firsts, out)
    return DONE, end


@kernel
def mark_bits(
    buffers: ChunkBuffers,
    found: tuple[int, int],
    bit_of: Int32s,
    words: Words,
    width: int,
    events: int,
) -> None:
    """Set the bits of all slots that `find_matches` found outside the dense family."""
    at = 0
    for e in range(events):
        for _ in range(buffers.runs[e]):
            _set(words, e * width, bit_of[buffers.met[at]])
            at += 1
    for i in range(found[0]):
        _set(words, buffers.event[i] * width, bit_of[buffers.slot[i]])
    for i in range(found[1]):
        _set(words, buffers.doubts.event[i] * width, bit_of[buffers.doubts.slot[i]])


@inlined
def _set(words: Words, at: int, bit: int) -> None:
    words[at + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def insert_framed(
    frame: Frame, clauses: PackedClauses, slots: Int64s, begin: int
) -> tuple[int, int]:
    """`insert`, for an index given by its frame."""
    return insert(index_in(frame), clauses, slots, begin)


@kernel
def take_out_framed(frame: Frame, clauses: PackedClauses, slots: Int64s) -> bool:
    """`take_out`, for an index given by its frame."""
    return take_out(index_in(frame), clauses, slots)


@kernel
def pass_several(
    family: Family,
    cells: ValueCells,
    events: Events,
    e: int,
    blocks: tuple[int, int],
    doubts: Doubts,
) -> int:
    """The candidates of an event with several values of some attribute. All must be verified.

    For each column, takes the OR of the lines of its values, or the "not bound" line. Returns 0, or
    -2 if `doubts` is full.
    """
    starts, attribute, _, cell, _ = events
    base, column_of, slot_of, bits = family.base, family.column_of, family.slot_of, family.bits
    start, row_of_cell = cells.start, cells.row_of_cell
    doubt_event, doubt_slot, _, doubt_many = doubts
    each = int(base[-1])
    columns = len(family.attribute)
    rows = np.empty(starts[e + 1] - starts[e] + columns, np.uint16)  # of all columns
    first = np.zeros(columns + 1, np.int64)
    for k in range(columns):
        first[k + 1] = first[k]
        for pair in range(starts[e], starts[e + 1]):
            a = attribute[pair]
            if a < len(column_of) and column_of[a] == k:
                rows[first[k + 1]] = base[k] + row_of_cell[start[a] + a + cell[pair] - 1]
                first[k + 1] += 1
        if first[k + 1] == first[k]:
            rows[first[k]] = base[k]
            first[k + 1] += 1
    line, left = np.empty(WORDS, np.uint64), np.empty(WORDS, np.uint64)
    doubtful = doubt_many[0]
    doubt_many[LINES] += (blocks[1] - blocks[0]) * first[columns]
    for block in range(blocks[0], blocks[1]):
        if doubtful + BLOCK > len(doubt_event):
            return -2
        left[:] = ~np.uint64(0)
        for k in range(columns):
            many = first[k + 1] - first[k]
            or_lines(bits, WORDS * block * each, rows, first[k], many, line, 0)
            for w in range(WORDS):
                left[w] &= line[w]
        for w in range(WORDS):
            word = left[w]
            while word != 0:
                doubt_event[doubtful] = e
                doubt_slot[doubtful] = slot_of[BLOCK * block + 64 * w + trailing(word)]
                doubtful += 1
                word &= word - np.uint64(1)
    doubt_many[0] = doubtful
    return 0


@kernel
def count_pairs(event: Int32s, counts: Int64s) -> None:
    """Add pairs to the counts of their events. Pairs of one event are mostly adjacent."""
    i = 0
    while i < len(event):
        e, first = event[i], i
        while i < len(event) and event[i] == e:
            i += 1
        counts[e] += i - first


@kernel
def place_runs(slots: Int32s, counts: Int64s, cursor: Int64s, out: Int32s) -> None:
    """Copy the slots of events. In `slots` they are contiguous, event by event."""
    at = 0
    for e in range(len(counts)):
        to = cursor[e]
        for i in range(counts[e]):
            out[to + i] = slots[at + i]
        cursor[e] += counts[e]
        at += counts[e]


@kernel
def place_pairs(event: Int32s, slot: Int32s, cursor: Int64s, out: Int32s) -> None:
    """Write the slot of each pair at the cursor of its event."""
    i = 0
    while i < len(event):
        e = event[i]
        to = cursor[e]
        while i < len(event) and event[i] == e:
            out[to] = slot[i]
            to += 1
            i += 1
        cursor[e] = to


@kernel
def place_bits(
    words: Words, width: int, slot_of: Int32s, cursor: Int64s, ends: Int64s, out: Int32s
) -> None:
    """Write the slots of all set bits. Each event has `width` words.

    The slots of event e end before `ends[e]`. Sixteen are packed at a time if that does not
    overwrite the slots of the next event.
    """
    for tile in range(0, width, _TILE * WORDS):
        stop = min(tile + _TILE * WORDS, width)
        for e in range(len(cursor)):
            to, end = cursor[e], ends[e]
            for w in range(tile, stop):
                word = words[e * width + w]
                if word == 0:
                    continue
                many = popcount(word)
                if many >= _CROWDED and to + many + PACKED <= end:
                    for part in range(0, 64, PACKED):
                        some = (word >> np.uint64(part)) & np.uint64(0xFFFF)
                        pack(slot_of, 64 * w + part, some, out, to)
                        to += popcount(some)
                else:
                    while word != 0:
                        out[to] = slot_of[64 * w + trailing(word)]
                        to += 1
                        word &= word - np.uint64(1)
            cursor[e] = to
