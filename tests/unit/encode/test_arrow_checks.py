"""Long columns of text are looked at in a faster way, which finds the same damage."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from tamis.encode.arrow_checks import _LONG, check_table
from tamis.errors import StoreError

TEXTS = [f"text {number}" for number in range(_LONG + 100)]
KINDS: dict[pa.DataType, Any] = {pa.string(): np.int32, pa.large_string(): np.int64}


def _array(kind: pa.DataType, damage: Callable[[NDArray[Any], NDArray[Any]], None]) -> pa.Array:
    """Texts, of which the offsets and the content were changed."""
    _, starts, content = pa.array(TEXTS, kind).buffers()
    assert starts is not None
    assert content is not None
    offsets = np.frombuffer(memoryview(starts), KINDS[kind], len(TEXTS) + 1).copy()
    letters = np.frombuffer(memoryview(content), np.uint8).copy()
    damage(offsets, letters)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(letters)]
    return pa.Array.from_buffers(kind, len(TEXTS), buffers)


def _keep(offsets: NDArray[Any], letters: NDArray[Any]) -> None:
    pass


def _far_offset(offsets: NDArray[Any], letters: NDArray[Any]) -> None:
    offsets[2000] ^= 1 << 30


def _earlier_offset(offsets: NDArray[Any], letters: NDArray[Any]) -> None:
    offsets[2000] = offsets[1990]


def _no_utf8(offsets: NDArray[Any], letters: NDArray[Any]) -> None:
    letters[-3] = 0xFF


def _half_letters(offsets: NDArray[Any], letters: NDArray[Any]) -> None:
    letters[offsets[500] - 1 : offsets[500] + 1] = list("é".encode())  # one letter in two texts


def _letters(offsets: NDArray[Any], letters: NDArray[Any]) -> None:
    letters[offsets[500] : offsets[500] + 2] = list("é".encode())


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize(
    "damage",
    [_far_offset, _earlier_offset, _no_utf8, _half_letters],  # others cannot be made
)
def test_damaged_texts_are_refused(
    kind: pa.DataType, damage: Callable[[NDArray[Any], NDArray[Any]], None]
) -> None:
    array = _array(kind, damage)
    good = pa.array(TEXTS, kind)
    for given in (
        pa.table({"text": array}),
        pa.record_batch({"text": array}),
        pa.table({"good": pa.chunked_array([good, good]), "t": pa.chunked_array([good, array])}),
    ):
        with pytest.raises(StoreError, match="the table is damaged"):
            check_table(given, StoreError)


@pytest.mark.parametrize("kind", KINDS, ids=str)
@pytest.mark.parametrize("change", [_keep, _letters])
def test_sound_texts_pass(
    kind: pa.DataType, change: Callable[[NDArray[Any], NDArray[Any]], None]
) -> None:
    array = _array(kind, change)
    for given in (array, array.slice(50), array[:0], pa.array([None, *TEXTS], kind)):
        check_table(pa.table({"text": given}), StoreError)
    check_table(pa.table({"text": pa.array([""] * (_LONG + 1), kind)}), StoreError)


def test_damage_before_a_slice_is_not_part_of_it() -> None:
    array = _array(pa.string(), lambda offsets, _: offsets.__setitem__(10, 1 << 30))
    check_table(pa.table({"text": array.slice(50)}), StoreError)
    with pytest.raises(StoreError, match="the table is damaged"):
        check_table(pa.table({"text": array.slice(5)}), StoreError)
