"""Answers put together from what the passes found, each slot in its event's place and no other."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.match.default.passes.batch_pass import count_pairs, place_bits, place_pairs, place_runs
from tamis.match.default.passes.vector import PACKED, WORDS

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
MARK = -9  # in places that nobody may write to


def starts_of(counts: Int64s) -> Int64s:
    return np.cumsum(counts) - counts


def test_pairs_are_counted_and_placed_whether_or_not_they_stand_together() -> None:
    rng = np.random.default_rng(1)
    for size in (0, 1, 300):
        event = rng.integers(0, 7, size).astype(np.int32)
        event[size // 2 :].sort()
        slot = np.arange(size, dtype=np.int32)
        counts = np.full(7, 2, np.int64)
        count_pairs(event, counts)
        assert counts.tolist() == [2 + int((event == e).sum()) for e in range(7)]
        cursor, out = starts_of(counts), np.full(counts.sum(), MARK, np.int32)
        place_pairs(event, slot, cursor, out)
        for e, first in enumerate(starts_of(counts).tolist()):
            mine = slot[event == e].tolist()
            assert out[first : first + counts[e]].tolist() == [*mine, MARK, MARK]
            assert cursor[e] == first + len(mine)


def test_runs_are_copied_event_by_event() -> None:
    runs = np.array([3, 0, 1, 2], np.int64)
    slots = np.array([5, 6, 7, 1, 8, 9], np.int32)
    cursor, out = np.array([4, 0, 0, 10], np.int64), np.full(13, MARK, np.int32)
    place_runs(slots, runs, cursor, out)
    assert out.tolist() == [1, *[MARK] * 3, 5, 6, 7, *[MARK] * 3, 8, 9, MARK]
    assert cursor.tolist() == [7, 0, 1, 12]


@pytest.mark.parametrize("blocks", [1, 3, 9, 20])
@pytest.mark.parametrize("thick", [0.001, 0.05, 0.5, 1.0])
def test_bits_are_written_to_the_end_of_an_event_and_not_further(
    blocks: int, thick: float
) -> None:  # fmt: skip
    """Bits by the tile, sixteen at a time: what stands before and behind stays as it is."""
    rng = np.random.default_rng(blocks)
    many, width = 12, WORDS * blocks
    bits = rng.random((many, 64 * width)) < thick
    bits[rng.random(many) < 0.2] = False
    words = np.packbits(bits, axis=1, bitorder="little").view("<u8").ravel()
    slot_of = rng.permutation(64 * width).astype(np.int32)
    before = rng.integers(0, 4, many)  # slots that others wrote, at the beginning of each event
    counts = bits.sum(axis=1) + before
    starts = starts_of(counts) + 3
    out = np.full(3 + counts.sum() + PACKED, MARK, np.int32)
    cursor = starts + before
    for e in range(many):
        out[starts[e] : cursor[e]] = 1_000_000 + e
    place_bits(words, width, slot_of, cursor, starts + counts, out)
    for e in range(many):
        mine = out[starts[e] : starts[e] + counts[e]].tolist()
        assert mine[: before[e]] == [1_000_000 + e] * int(before[e])
        assert mine[before[e] :] == slot_of[bits[e]].tolist()
    assert (out[:3] == MARK).all()
    assert (out[3 + counts.sum() :] == MARK).all()
