"""Answers as bitmaps: one row of words per event, one bit per subscription.

If many subscriptions match, a bitmap is smaller than a list: 64 subscriptions take the space of one
or two slots. Counting matches, or combining the answers to several events, takes a few instructions
per word.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Int32s, Int64s, offsets
from tamis.index.bits import Words, clear_bit, lowest, set_bit
from tamis.index.kernel import kernel
from tamis.match.answers import FoundSlots, Matches, SlotIds, position

_PAIRS = 1 << 20  # (event, bit) pairs examined at a time when single bits are extracted


class Bitmaps:
    """The answer to a batch, as bitmaps.

    Event i matched bit b if `words[i, b // 64] >> (b % 64) & 1`. In the answer of an engine, bit b
    is the subscription `subscriptions[b]`. In the answer of a matcher, it is the slot `slots[b]`. A
    bit whose slot is -1 is unused and never set. Each matcher numbers the bits in its own way, so
    bit numbers are valid within one answer only.

    As with `Matches`, ids are as of the match and are resolved lazily.
    """

    def __init__(self, words: Words, slots: Int32s, ids: SlotIds | None = None) -> None:
        self.words, self.slots = words, slots
        self._ids = ids
        self._subscriptions: NDArray[Any] | None = None

    @classmethod
    def of(cls, matches: Matches, live: Int64s) -> Bitmaps:
        """The answer of a matcher with these live slots: bit b is slot b."""
        slots = np.full(int(live.max(initial=-1)) + 1, -1, np.int32)
        slots[live] = live
        words = np.zeros((len(matches), -(-len(slots) // 64)), np.uint64)
        _set(words, matches.starts, matches.slots)
        return cls(words, slots)

    def __len__(self) -> int:
        return len(self.words)

    @property
    def total(self) -> int:
        """The number of (event, subscription) pairs."""
        return int(self.counts().sum())

    @property
    def subscriptions(self) -> NDArray[Any]:
        """The subscription id of each bit; 0 or None for an unused bit."""
        if self._ids is None:
            return self.slots
        if self._subscriptions is None:
            used = np.flatnonzero(self.slots >= 0)
            ids = self._ids.of(self.slots[used])
            every = np.full(len(self.slots), None if ids.dtype == object else 0, ids.dtype)
            every[used] = ids
            self._subscriptions = every
        return self._subscriptions

    def __getitem__(self, event: int) -> list[Any]:
        """The ids that matched one event, in no particular order."""
        at = position(event, len(self))
        return self._with(self.words[at : at + 1]).matches()[0]

    def __iter__(self) -> Iterator[list[Any]]:
        return (self[event] for event in range(len(self)))

    def counts(self) -> Int64s:
        """The number of subscriptions that each event matched."""
        counts: Int64s = np.bitwise_count(self.words).sum(axis=1, dtype=np.int64)
        return counts

    def per_subscription(self) -> tuple[NDArray[Any], Int64s]:
        """The ids of all subscriptions, and the number of events that each matched."""
        counts = np.zeros(64 * self.words.shape[1], np.int64)
        _count(self.words, counts)
        used = np.flatnonzero(self.slots >= 0)
        return self.subscriptions[used], counts[used]

    def union(self, events: Sequence[int] | Int64s | None = None) -> Bitmaps:
        """One row: what at least one of the events matched. Default: all events."""
        return self._with(np.bitwise_or.reduce(self._rows(events), axis=0, keepdims=True))

    def intersection(self, events: Sequence[int] | Int64s | None = None) -> Bitmaps:
        """One row: what every one of the events matched. Default: all events."""
        rows = self._rows(events)
        if not len(rows):
            raise ValueError("an intersection needs at least one event")
        return self._with(np.bitwise_and.reduce(rows, axis=0, keepdims=True))

    def matches(self) -> Matches:
        """The same answer, with one list per event."""
        starts = offsets(self.counts())
        slots = np.empty(starts[-1], np.int32)
        _list(self.words, self.slots, slots)
        return Matches(starts, slots, self._ids)

    def _rows(self, events: Sequence[int] | Int64s | None) -> Words:
        if events is None:
            return self.words
        return self.words[[position(event, len(self)) for event in events]]

    def _with(self, words: Words) -> Bitmaps:
        return Bitmaps(words, self.slots, self._ids)

    # -- for the engine ----------------------------------------------------------------------------

    def pairs(self, bits: Int64s) -> tuple[Int64s, Int64s]:
        """Where any of `bits` is set: the event of each hit, and its position in `bits`."""
        step = max(1, _PAIRS // max(len(bits), 1))
        events, which = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        word, shift = bits >> 6, (bits & 63).astype(np.uint64)
        for first in range(0, len(self), step):
            picked = self.words[first : first + step, word] >> shift & np.uint64(1)
            event, bit = np.nonzero(picked)
            events.append(event + first)
            which.append(bit)
        return np.concatenate(events), np.concatenate(which)

    def clear(self, events: Int64s, bits: Int64s) -> None:
        """Remove pairs from the answer: clear bit `bits[i]` of event `events[i]`."""
        gone = ~(np.uint64(1) << (bits & 63).astype(np.uint64))
        np.bitwise_and.at(self.words, (events, bits >> 6), gone)

    def fold(self, bits: Int64s, onto: Int64s) -> Bitmaps:
        """Merge each of `bits` into the bit in `onto`; the merged bits become unused."""
        _fold(self.words, bits, onto)
        slots = self.slots.copy()
        slots[bits] = -1
        return Bitmaps(self.words, slots, self._ids)


@kernel
def _set(words: Words, starts: Int64s, slots: FoundSlots) -> None:
    for event in range(len(words)):
        row = words[event]
        for slot in slots[starts[event] : starts[event + 1]]:
            set_bit(row, slot)


@kernel
def _fold(words: Words, bits: Int64s, onto: Int64s) -> None:
    for event in range(len(words)):
        row = words[event]
        for which in range(len(bits)):
            bit = bits[which]
            if row[bit >> 6] >> np.uint64(bit & 63) & np.uint64(1):
                clear_bit(row, bit)
                set_bit(row, onto[which])


@kernel
def _count(words: Words, counts: Int64s) -> None:
    for event in range(len(words)):
        for at in range(words.shape[1]):
            word = words[event, at]
            while word:
                counts[64 * at + lowest(word)] += 1
                word &= word - np.uint64(1)


@kernel
def _list(words: Words, slots: Int32s, found: Int32s) -> None:
    many = 0
    for event in range(len(words)):
        for at in range(words.shape[1]):
            word = words[event, at]
            while word:
                found[many] = slots[64 * at + lowest(word)]
                many += 1
                word &= word - np.uint64(1)
