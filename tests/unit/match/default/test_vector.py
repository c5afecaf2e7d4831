"""The steps that take 512 bits at once, beside NumPy, and within the places they may write to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tamis.index.kernel import kernel
from tamis.match.default.passes.vector import (
    LANES,
    PACKED,
    WORDS,
    above,
    and_lines,
    or_lines,
    pack,
    popcount,
    positions,
    prefetch,
    repeat,
    trailing,
)

Words = NDArray[np.uint64]
Lines = NDArray[np.uint16]
Int32s = NDArray[np.int32]
Int64s = NDArray[np.int64]
Lanes = NDArray[np.int16]
MARK = -77  # in places that nobody may write to


@kernel
def _and(
    words: Words, base: int, lines: Lines, first: int, count: int, out: Words, at: int
) -> int:  # fmt: skip
    return and_lines(words, base, lines, first, count, out, at)  # type: ignore[no-any-return]


@kernel
def _or(
    words: Words, base: int, lines: Lines, first: int, count: int, out: Words, at: int
) -> int:  # fmt: skip
    return or_lines(words, base, lines, first, count, out, at)  # type: ignore[no-any-return]


@kernel
def _pack(slots: Int32s, at: int, mask: int, out: Int32s, to: int) -> None:
    pack(slots, at, np.uint64(mask), out, to)


@kernel
def _positions(words: Words, which: int, first: int, out: Int32s, at: int) -> int:
    return positions(words[which], first, out, at)  # type: ignore[no-any-return]


@kernel
def _repeat(value: int, out: Int32s, at: int) -> None:
    repeat(np.int32(value), out, at)


@kernel
def _above(left: Lanes, at: int, right: Lanes, to: int) -> int:
    return above(left, at, right, to)  # type: ignore[no-any-return]


@kernel
def _count(words: Words, counts: Int64s, lowest: Int64s) -> None:
    for i in range(len(words)):
        counts[i] = popcount(words[i])
        lowest[i] = trailing(words[i])


@kernel
def _fetch(words: Words, at: int) -> int:
    prefetch(words, at)
    prefetch(words, at + 10_000)  # past the end: no more than a hint
    return at


def random_words(rng: np.random.Generator, size: int, thick: float) -> Words:
    bits = rng.random((size, 64)) < thick
    words: Words = np.packbits(bits, axis=1, bitorder="little").view("<u8").ravel()
    return words


def unaligned(array: NDArray[Any], skip: int) -> NDArray[Any]:
    """The same, beginning `skip` items into other memory."""
    room = np.empty(len(array) + skip, array.dtype)
    room[skip:] = array
    return room[skip:]


@pytest.mark.parametrize("thick", [0.5, 0.95])
@pytest.mark.parametrize(("combine", "reduce"), [(_and, np.bitwise_and), (_or, np.bitwise_or)])
def test_lines_are_combined(combine: Any, reduce: np.ufunc, thick: float) -> None:
    rng = np.random.default_rng(1)
    for skip in range(9):
        words = unaligned(random_words(rng, 300 * WORDS, thick), skip)
        for count in (0, 1, 2, 3, 10, 31):
            base, first, at = (int(each) for each in rng.integers(0, 40, 3))
            lines = rng.integers(0, 280, count + first + 5).astype(np.uint16)
            out = unaligned(np.full(at + WORDS + 3, 5, np.uint64), skip)
            some = combine(words, base, lines, first, count, out, at)
            rows = [words[base + WORDS * line :][:WORDS] for line in lines[first : first + count]]
            whole = np.uint64(0) if reduce is np.bitwise_or else ~np.uint64(0)
            right = reduce.reduce([np.full(WORDS, whole), *rows])
            np.testing.assert_array_equal(out[at : at + WORDS], right)
            assert some == sum(1 << w for w in range(WORDS) if right[w])
            assert (out[:at] == 5).all()
            assert (out[at + WORDS :] == 5).all()


def test_line_numbers_have_no_sign() -> None:
    words = np.zeros(WORDS * 65_536, np.uint64)
    words[WORDS * 65_535 :] = 3
    words[WORDS * 40_000 :][:WORDS] = 6
    out = np.zeros(WORDS, np.uint64)
    assert _and(words, 0, np.array([65_535, 40_000], np.uint16), 0, 2, out, 0) == 255
    assert out.tolist() == [2] * WORDS


def test_slots_are_packed_in_order_and_sixteen_places_are_written() -> None:
    rng = np.random.default_rng(2)
    masks = [0, 1, 1 << 15, 0xFFFF, *rng.integers(0, 1 << 16, 50).tolist()]
    for number, mask in enumerate(masks):
        at, to, skip = number % 5, number % 7, number % 9
        slots = unaligned(rng.integers(-(2**31), 2**31, at + PACKED + 3).astype(np.int32), skip)
        out = unaligned(np.full(to + PACKED + 5, MARK, np.int32), skip)
        _pack(slots, at, mask, out, to)
        right = [slots[at + i] for i in range(PACKED) if mask >> i & 1]
        assert out[to : to + len(right)].tolist() == right
        assert (out[:to] == MARK).all()
        assert (out[to + PACKED :] == MARK).all()


def test_bits_are_told_and_at_most_sixteen_places_more_are_written() -> None:
    rng = np.random.default_rng(4)
    odd = np.array([0, 1, 1 << 63, (1 << 64) - 1, 0xFFFF, 0xFFFF << 48, 1 << 16], np.uint64)
    words = np.concatenate([odd, random_words(rng, 40, 0.5), random_words(rng, 40, 0.04)])
    for number in range(len(words)):
        word = int(words[number])
        at, skip, first = number % 7, number % 9, int(rng.integers(0, 2**30))
        right = [first + i for i in range(64) if word >> i & 1]
        out = unaligned(np.full(at + len(right) + PACKED + 20, MARK, np.int32), skip)
        end = _positions(words, number, first, out, at)
        assert end == at + len(right)
        assert out[at:end].tolist() == right
        assert (out[:at] == MARK).all()
        assert (out[end + PACKED :] == MARK).all()


def test_a_value_is_repeated_sixteen_times() -> None:
    for value in (0, 7, -1, 2**31 - 1, -(2**31)):
        for skip in range(9):
            out = unaligned(np.full(3 + PACKED + 9, MARK, np.int32), skip)
            _repeat(value, out, 3)
            assert out.tolist() == [MARK] * 3 + [value] * PACKED + [MARK] * 9


def test_lanes_are_compared() -> None:
    rng = np.random.default_rng(5)
    seen = set()
    for number in range(300):
        at, to, skip = number % 4, number % 3, number % 9
        left = unaligned(rng.integers(-32_767, 32_768, at + LANES).astype(np.int16), skip)
        step = rng.integers(0, 3, LANES)
        if number % 3:  # mostly below, so that all three answers come up
            step = np.maximum(step, number % 3)
        right = unaligned(np.full(to + LANES, MARK, np.int16), skip)
        right[to:] = np.clip(left[at:].astype(np.int64) - step + (number % 5 == 4), -32_768, 32_767)
        mine, other = left[at : at + LANES], right[to : to + LANES]
        wanted = 2 if (mine > other).all() else 1 if (mine >= other).all() else 0
        assert _above(left, at, right, to) == wanted
        seen.add(wanted)
    assert seen == {0, 1, 2}


@pytest.mark.parametrize("lane", range(LANES))
def test_one_lane_decides(lane: int) -> None:
    left, right = np.full(LANES, 100, np.int16), np.full(LANES, -32_768, np.int16)
    assert _above(left, 0, right, 0) == 2
    right[lane] = 100
    assert _above(left, 0, right, 0) == 1
    right[lane] = 101
    assert _above(left, 0, right, 0) == 0
    left[lane], right[lane] = -32_768, 32_767
    assert _above(left, 0, right, 0) == 0, "lanes have a sign"


def test_bits_of_a_word() -> None:
    rng = np.random.default_rng(6)
    single = np.uint64(1) << np.arange(64, dtype=np.uint64)
    words = np.concatenate([single, random_words(rng, 100, 0.5), random_words(rng, 100, 0.1)])
    words = words[words != 0]
    counts, lowest = np.zeros(len(words), np.int64), np.zeros(len(words), np.int64)
    _count(words, counts, lowest)
    assert counts.tolist() == [int(word).bit_count() for word in words]
    assert lowest.tolist() == [(int(word) & -int(word)).bit_length() - 1 for word in words]


def test_fetching_is_a_hint_that_may_be_wrong() -> None:
    assert _fetch(np.zeros(8, np.uint64), 3) == 3
