"""A chunk of events through everything, in one call: cells, buckets, families, and the answer."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.answer import count_pairs, place_bits, place_pairs, place_runs
from tamis.index.bound import Binding, Doubts, Events, find_cells, verify
from tamis.index.bucket_pass import Keys, pass_buckets
from tamis.index.buckets import LIVE as ENTRIES
from tamis.index.family import BLOCK, COLUMNS, LIVE, TOP, aligned
from tamis.index.family_pass import (
    CANDIDATES,
    ROUND,
    Candidates,
    Sight,
    pass_dense,
    pass_several,
    pass_sparse,
    sight,
)
from tamis.index.kernel import inlined, kernel
from tamis.index.packed import Packed
from tamis.index.routes import Index
from tamis.index.vector import LANES, PACKED, WORDS

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Words = NDArray[np.uint64]
DONE, MET, PAIRS, DOUBTS, KEYS, OUT = range(6)  # what a chunk ended with: of what there is too little


class Room(NamedTuple):
    """What a chunk of events works with. Kept between chunks, one for each thread."""

    binding: Binding
    cell: Int32s
    several: NDArray[np.uint8]
    keys: Keys
    met: Int32s  # slots from buckets, event by event
    event: Int32s  # pairs from the sparse family
    slot: Int32s
    doubts: Doubts
    sparse: Sight
    dense: Sight
    candidates: Candidates
    words: Words  # bitmaps from the dense family
    runs: Int64s  # by event: how many of `met`
    ends: Int64s  # by event


def no_room() -> Room:
    """For nothing yet."""

    def ints() -> Int32s:
        return np.zeros(0, np.int32)

    def longs(size: int = 0) -> Int64s:
        return np.zeros(size, np.int64)

    return Room(
        Binding(ints(), ints()),
        ints(),
        np.zeros(0, np.uint8),
        Keys(longs(256), np.zeros(256, np.int32), longs(256), longs(256), longs(3 * 256)),
        np.zeros(256, np.int32),
        np.zeros(256, np.int32),
        np.zeros(256, np.int32),
        Doubts(*(np.zeros(2 * BLOCK, np.int32) for _ in range(3)), longs(1)),
        Sight(np.zeros(0, np.uint16), np.zeros(0, np.int16)),
        Sight(np.zeros(0, np.uint16), np.zeros(0, np.int16)),
        Candidates(
            np.zeros(0, np.uint64), ints(), np.zeros(0, np.uint64), longs(), ints(), ints()
        ),
        np.zeros(0, np.uint64),
        longs(),
        longs(),
    )


def blocks_of(family: Any) -> int:
    """How many blocks a family has."""
    return -(-int(family.head[TOP]) // BLOCK)


def room_for(room: Room, index: Index, width: int, events: int, pairs: int) -> Room:
    """Room for so many events with so many pairs, of a schema of that width."""
    if width > len(room.binding.here):
        binding = Binding(np.zeros(2 * width, np.int32), np.zeros(width, np.int32))
        room = room._replace(binding=binding)
    if pairs > len(room.cell):
        room = room._replace(cell=np.empty(max(pairs, 64), np.int32))
    if events > len(room.runs):
        some = max(events, 16)
        room = room._replace(
            several=np.empty(some, np.uint8),
            runs=np.empty(some, np.int64),
            ends=np.empty(some, np.int64),
            candidates=room.candidates._replace(
                mask=np.empty(some, np.uint64), whom=np.empty(some, np.int32)
            ),
        )
    if index.sparse.head[LIVE]:
        columns = len(index.sparse.attribute)
        lanes = LANES * -(-columns // COLUMNS)
        if events * lanes > len(room.sparse.lanes) or events * columns > len(room.sparse.lines):
            seen = Sight(np.empty(events * columns, np.uint16), aligned(events * lanes, np.int16))
            room = room._replace(sparse=seen)
        if not len(room.candidates.event):
            room = room._replace(
                candidates=room.candidates._replace(
                    line=aligned((ROUND + 1) * WORDS, np.uint64),
                    words=np.empty(ROUND + 1, np.int64),
                    event=np.empty(CANDIDATES, np.int32),
                    place=np.empty(CANDIDATES, np.int32),
                )
            )
    if index.dense.head[LIVE]:
        columns, words = len(index.dense.attribute), events * WORDS * blocks_of(index.dense)
        if events * columns > len(room.dense.lines):
            seen = Sight(np.empty(events * columns, np.uint16), np.zeros(0, np.int16))
            room = room._replace(dense=seen)
        if words > len(room.words):
            room = room._replace(words=aligned(words, np.uint64))
    return room


def more_room(room: Room, lacking: int) -> Room:
    """Twice as much of what there was too little."""
    if lacking == MET:
        return room._replace(met=np.empty(2 * len(room.met), np.int32))
    if lacking == PAIRS:
        size = 2 * len(room.event)
        return room._replace(event=np.empty(size, np.int32), slot=np.empty(size, np.int32))
    if lacking == DOUBTS:
        size = 2 * len(room.doubts.event)
        grown = (np.empty(size, np.int32) for _ in range(3))
        return room._replace(doubts=Doubts(*grown, room.doubts.many))
    size = 2 * len(room.keys.at)
    return room._replace(
        keys=Keys(
            np.empty(size, np.int64),
            np.empty(size, np.int32),
            np.empty(size, np.int64),
            np.empty(size, np.int64),
            np.empty(3 * size, np.int64),
        )
    )


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
    find_cells(index.cells, events)
    doubts = room.doubts
    doubts.many[0] = 0
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
        sight(index.cells, index.sparse, events, room.sparse)
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
        sight(index.cells, index.dense, events, room.dense)
        if pass_dense(
            index.dense, room.dense, events.several, dense, words, width, counts, doubts
        ):
            return DOUBTS, 0, 0
        for e in range(many):
            if events.several[e] and pass_several(
                index.dense, index.cells, events, e, (0, dense), doubts
            ):
                return DOUBTS, 0, 0
    verified = verify(events, clauses, room.binding, doubts)
    count_pairs(room.event[:pairs], counts)
    count_pairs(doubts.event[:verified], counts)
    return DONE, pairs, verified


@kernel
def place(
    room: Room, slot_of: Int32s, found: tuple[int, int, int], counts: Int64s, starts: Int64s,
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
    index: Index,
    clauses: Packed,
    starts: Int64s,
    attribute: NDArray[np.int32],
    code: Int64s,
    room: Room,
    counts: Int64s,
    out: Int32s,
    used: int,
) -> tuple[int, int]:
    """`find` and `place` in one call: all slots of a chunk, to `out` from `used` on.

    Gives `DONE` and where the slots end, or what there was too little of, and then nothing is done;
    for `OUT`, how long it must be.
    """
    blocks = -(-index.sparse.head[TOP] // BLOCK)
    width = -(-index.dense.head[TOP] // BLOCK) * WORDS if index.dense.head[LIVE] > 0 else 0
    status, pairs, verified = find(
        index, clauses, starts, attribute, code, room, (0, blocks), room.words, width, counts
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
