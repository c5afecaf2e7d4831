"""Match a chunk of events in one call: cells, buckets, families, and the answer."""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.bits import Words
from tamis.index.kernel import inlined, kernel
from tamis.match.default.passes.answer import count_pairs, place_bits, place_pairs, place_runs
from tamis.match.default.passes.bucket_pass import pass_buckets
from tamis.match.default.passes.buffers import DONE, DOUBTS, KEYS, MET, OUT, PAIRS, ChunkBuffers
from tamis.match.default.passes.event_arrays import VERIFIED, Events, find_cells, verify
from tamis.match.default.passes.family_pass import pass_dense, pass_sparse, sight
from tamis.match.default.passes.frame import Frame, buffers_in, index_in
from tamis.match.default.passes.several_pass import pass_several
from tamis.match.default.passes.vector import PACKED, WORDS
from tamis.match.default.structure.buckets import LIVE as ENTRIES
from tamis.match.default.structure.family import BLOCK, LIVE, TOP
from tamis.match.default.structure.insertion import insert, take_out
from tamis.match.default.structure.packed_clauses import PackedClauses
from tamis.match.default.structure.routes import RoutedIndex


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
def take_out_framed(frame: Frame, clauses: PackedClauses, slots: Int64s) -> None:
    """`take_out`, for an index given by its frame."""
    take_out(index_in(frame), clauses, slots)
