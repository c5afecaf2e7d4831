"""A chunk of events through everything, in one call: cells, buckets, families, and the answer."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tamis.index.answer import count_pairs, place_bits, place_pairs, place_runs
from tamis.index.bound import COUNTS, VERIFIED, Events, find_cells, verify
from tamis.index.bucket_pass import pass_buckets
from tamis.index.buckets import LIVE as ENTRIES
from tamis.index.family import BLOCK, LIVE, TOP
from tamis.index.family_pass import pass_dense, pass_sparse, sight
from tamis.index.frame import Frame, index_in, room_in
from tamis.index.insertion import insert, take_out
from tamis.index.kernel import inlined, kernel
from tamis.index.packed import Packed
from tamis.index.room import DONE, DOUBTS, KEYS, MET, OUT, PAIRS, Room
from tamis.index.routes import Index
from tamis.index.several_pass import pass_several
from tamis.index.vector import PACKED, WORDS

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]


@inlined
def _none() -> int:
    """0, but a number like others: for the literal, all that is called would be compiled again."""
    return int(np.int64(0))


@kernel
def find(
    index: Index,
    clauses: Packed,
    starts: Int64s,
    attribute: NDArray[np.int32],
    code: Int64s,
    room: Room,
    blocks: tuple[int, int],
    words: Words,
    width: int,
    counts: Int64s,
) -> tuple[int, int, int]:
    """What each event of a chunk matches, left in `room`; `counts` says how many of each.

    `blocks` are those of the sparse family to look at; the buckets and the dense family belong to
    the first of them. The bitmap of event e goes to `words[e * width:]`. Gives `DONE` or what there
    was too little of, how many pairs are certain, and how many were verified.
    """
    many = len(starts) - 1
    events = Events(starts, attribute, code, room.cell, room.several[:many])
    each = find_cells(index.cells, events)
    doubts = room.doubts
    doubts.many[: 1 + COUNTS] = 0
    runs = room.runs[:many]
    runs[:] = 0
    met, pairs = 0, 0
    if blocks[0] == 0 and index.buckets.head[ENTRIES] > 0:
        met = pass_buckets(
            events, index.buckets, index.schemes, room.binding, room.keys, room.met, runs, doubts
        )
        if met < 0:
            return (MET if met == -1 else DOUBTS if met == -2 else KEYS), 0, 0
    counts[:] = runs
    if index.sparse.head[LIVE] > 0:
        sight(index.cells, index.sparse, events, each, room.sparse)
        pairs = pass_sparse(
            index.sparse, room.sparse, events.several, blocks,
            room.candidates, room.event, room.slot, doubts,
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
        sight(index.cells, index.dense, events, each, room.dense)
        if pass_dense(index.dense, room.dense, events.several, dense, words, width, counts, doubts):
            return DOUBTS, 0, 0
        for e in range(many):
            if events.several[e] and pass_several(
                index.dense, index.cells, events, e, (_none(), dense), doubts
            ):
                return DOUBTS, 0, 0
    doubts.many[VERIFIED] = doubts.many[0]
    verified = verify(events, clauses, room.binding, doubts)
    count_pairs(room.event[:pairs], counts)
    count_pairs(doubts.event[:verified], counts)
    for i in range(1, 1 + COUNTS):
        doubts.many[COUNTS + i] += doubts.many[i]
    return DONE, pairs, verified


@kernel
def place(
    room: Room,
    slot_of: Int32s,
    found: tuple[int, int, int],
    counts: Int64s,
    starts: Int64s,
    out: Int32s,
) -> None:
    """Write what `find` left to `out`: that of event e from `starts[e]` on, `counts[e]` slots.

    `found` has how many pairs are certain, how many were verified, and the words of a bitmap.
    """  # fmt: skip
    pairs, verified, width = found
    cursor = starts.copy()
    place_runs(room.met, room.runs[: len(counts)], cursor, out)
    place_pairs(room.event[:pairs], room.slot[:pairs], cursor, out)
    place_pairs(room.doubts.event[:verified], room.doubts.slot[:verified], cursor, out)
    if width:
        words = room.words[: len(counts) * width]
        place_bits(words, width, slot_of, cursor, starts + counts, out)


@kernel
def sift(
    frames: tuple[Frame, Frame],
    clauses: Packed,
    starts: Int64s,
    attribute: NDArray[np.int32],
    code: Int64s,
    counts: Int64s,
    out: Int32s,
    used: int,
) -> tuple[int, int]:
    """`find` and `place` in one call: all slots of a chunk, to `out` from `used` on.

    `frames` are those of the index and of the room. Gives `DONE` and where the slots end, or what
    there was too little of, and then nothing is done; for `OUT`, how long it must be.
    """
    index, room = index_in(frames[0]), room_in(frames[1])
    blocks = -(-index.sparse.head[TOP] // BLOCK)
    width = -(-index.dense.head[TOP] // BLOCK) * WORDS if index.dense.head[LIVE] > 0 else 0
    status, pairs, verified = find(
        index,
        clauses,
        starts,
        attribute,
        code,
        room,
        (_none(), blocks),
        room.words,
        width,
        counts,
    )
    if status != DONE:
        return status, 0
    firsts = room.ends[: len(counts)]
    end = used
    for e in range(len(counts)):
        firsts[e] = end
        end += counts[e]
    if end + PACKED > len(out):
        return OUT, end + PACKED
    place(room, index.dense.slot_of, (pairs, verified, width), counts, firsts, out)
    return DONE, end


@kernel
def mark(
    room: Room, found: tuple[int, int], bit_of: Int32s, words: Words, width: int, events: int
) -> None:
    """Set the bits of all slots that `find` left beside the bitmaps."""
    at = 0
    for e in range(events):
        for _ in range(room.runs[e]):
            _set(words, e * width, bit_of[room.met[at]])
            at += 1
    for i in range(found[0]):
        _set(words, room.event[i] * width, bit_of[room.slot[i]])
    for i in range(found[1]):
        _set(words, room.doubts.event[i] * width, bit_of[room.doubts.slot[i]])


@inlined
def _set(words: Words, at: int, bit: int) -> None:
    words[at + (bit >> 6)] |= np.uint64(1) << np.uint64(bit & 63)


@kernel
def insert_framed(frame: Frame, clauses: Packed, slots: Int64s, begin: int) -> tuple[int, int]:
    """`insert`, for an index given by its frame."""
    return insert(index_in(frame), clauses, slots, begin)


@kernel
def take_out_framed(frame: Frame, clauses: Packed, slots: Int64s) -> None:
    """`take_out`, for an index given by its frame."""
    take_out(index_in(frame), clauses, slots)
