"""The buffers for matching a chunk of events, kept from one chunk to the next."""

from __future__ import annotations

import sys
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int32s, Int64s, UInt8s, zeros
from tamis.index.bits import Words
from tamis.match.default.passes.bucket_pass import Keys
from tamis.match.default.passes.event_arrays import VERIFIED, Binding, Doubts
from tamis.match.default.passes.family_pass import CANDIDATES, ROUND, CandidateBlocks, Sight
from tamis.match.default.passes.vector import LANES, WORDS
from tamis.match.default.structure.family import BLOCK, COLUMNS, LIVE, aligned, blocks_of
from tamis.match.default.structure.routes import RoutedIndex

# The status of a chunk: done, or which buffer was too small.
DONE, MET, PAIRS, DOUBTS, KEYS, OUT = range(6)
_FIRST = 256  # initial size of buffers for pairs and keys
_KEPT = 1 << 24  # slots: a longer buffer is released once answers are short


class ChunkBuffers(NamedTuple):
    """The buffers of one thread for a chunk of events. Kept between chunks."""

    binding: Binding
    cell: Int32s
    several: UInt8s
    keys: Keys
    met: Int32s  # slots from buckets, event by event
    event: Int32s  # pairs from the sparse family
    slot: Int32s
    doubts: Doubts
    sparse: Sight
    dense: Sight
    candidates: CandidateBlocks
    words: Words  # bitmaps from the dense family
    runs: Int64s  # per event: its number of slots in `met`
    ends: Int64s  # per event: where its slots start in the output


def empty_buffers() -> ChunkBuffers:
    """Initial buffers, mostly empty."""
    met, event, slot = (np.zeros(_FIRST, np.int32) for _ in range(3))
    return zeros(ChunkBuffers)._replace(
        keys=_keys(_FIRST), met=met, event=event, slot=slot, doubts=doubts_for(2 * BLOCK)
    )


def fitting_buffers(
    buffers: ChunkBuffers, index: RoutedIndex, width: int, events: int, pairs: int
) -> ChunkBuffers:
    """Buffers large enough for `events` events, `pairs` pairs and `width` attributes."""
    if width > len(buffers.binding.here):
        binding = Binding(np.zeros(2 * width, np.int32), np.zeros(width, np.int32))
        buffers = buffers._replace(binding=binding)
    if pairs > len(buffers.cell):
        buffers = buffers._replace(cell=np.empty(max(pairs, 64), np.int32))
    if events > len(buffers.runs):
        some = max(events, 16)
        buffers = buffers._replace(
            several=np.empty(some, np.uint8),
            runs=np.empty(some, np.int64),
            ends=np.empty(some, np.int64),
            candidates=buffers.candidates._replace(
                mask=np.empty(some, np.uint64), whom=np.empty(some, np.int32)
            ),
        )
    if index.sparse.head[LIVE]:
        columns = len(index.sparse.attribute)
        lanes = LANES * -(-columns // COLUMNS)
        if events * lanes > len(buffers.sparse.lanes) or events * columns > len(
            buffers.sparse.lines
        ):
            seen = Sight(np.empty(events * columns, np.uint16), aligned(events * lanes, np.int16))
            buffers = buffers._replace(sparse=seen)
        if not len(buffers.candidates.event):
            buffers = buffers._replace(
                candidates=buffers.candidates._replace(
                    line=aligned((ROUND + 1) * WORDS, np.uint64),
                    words=np.empty(ROUND + 1, np.int64),
                    event=np.empty(CANDIDATES, np.int32),
                    place=np.empty(CANDIDATES, np.int32),
                )
            )
    if index.dense.head[LIVE]:
        columns, words = len(index.dense.attribute), events * WORDS * blocks_of(index.dense)
        if events * columns > len(buffers.dense.lines):
            seen = Sight(np.empty(events * columns, np.uint16), np.zeros(0, np.int16))
            buffers = buffers._replace(dense=seen)
        if words > len(buffers.words):
            buffers = buffers._replace(words=aligned(words, np.uint64))
    return buffers


def larger_buffers(buffers: ChunkBuffers, lacking: int) -> ChunkBuffers:
    """The buffers, with the one that was too small doubled."""
    if lacking == MET:
        return buffers._replace(met=np.empty(2 * len(buffers.met), np.int32))
    if lacking == PAIRS:
        size = 2 * len(buffers.event)
        return buffers._replace(event=np.empty(size, np.int32), slot=np.empty(size, np.int32))
    if lacking == DOUBTS:
        size = 2 * len(buffers.doubts.event)
        return buffers._replace(doubts=doubts_for(size)._replace(many=buffers.doubts.many))
    return buffers._replace(keys=_keys(2 * len(buffers.keys.at)))


def _keys(size: int) -> Keys:
    return zeros(Keys, size)._replace(values=np.zeros(3 * size, np.int64))


def doubts_for(size: int) -> Doubts:
    """Buffers for `size` pairs to be verified, and work counters at 0."""
    return zeros(Doubts, size)._replace(many=np.zeros(1 + VERIFIED, np.int64))


class AnswerBuffers:
    """The arrays of the last two answers.

    Answers are views of these arrays; an array with a live view is not reused. There are two,
    because a caller in a loop still holds one answer while the next is computed.
    """

    def __init__(self, kind: Any = np.int32) -> None:
        self._kind = kind
        self._last = np.empty(0, kind)
        self._other = np.empty(0, kind)
        self._used = 0

    def take(self, size: int = 0) -> NDArray[Any]:
        """An unreferenced array, at least as large as `size` and as the last answer."""
        if sys.getrefcount(self._last) > 2:  # the attribute and the argument of the call
            self._last, self._other = self._other, self._last
        least = max(size, self._used)  # the next answer is probably as large as the last
        if sys.getrefcount(self._last) > 2 or len(self._last) < least:
            self._last = np.empty(max(size, least + least // 4), self._kind)
        return self._last

    def keep(self, array: NDArray[Any], used: int) -> None:
        """Remember the array of the last answer, and how much of the array it used."""
        most = max(_KEPT, 8 * used)
        self._last = array if len(array) < most else np.empty(0, self._kind)
        if len(self._other) >= most:
            self._other = np.empty(0, self._kind)
        self._used = used
