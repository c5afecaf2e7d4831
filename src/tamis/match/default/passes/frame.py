"""Frames: many arrays passed to a kernel as one.

Numba takes about 0.2 µs to unbox each array argument. An index has some forty arrays, and the
buffers of a chunk as many again. A call with all of them would take longer than matching a single
event. A frame is one array with the addresses and lengths of all the others. A kernel rebuilds the
arrays from it (`index_in`, `buffers_in`) at almost no cost.

An address is valid only while its array is alive. So a frame is stored together with its record,
an immutable named tuple that keeps the arrays alive: see `Framed`.
"""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numba import carray, types
from numba.extending import intrinsic
from numpy.typing import NDArray

from tamis.files.arrays import Floats, Int8s, Int16s, Int32s, Int64s, UInt8s, UInt16s
from tamis.index.bits import Words
from tamis.index.kernel import inlined
from tamis.match.default.passes.bucket_pass import Keys
from tamis.match.default.passes.buffers import ChunkBuffers
from tamis.match.default.passes.event_arrays import Binding, Doubts
from tamis.match.default.passes.family_pass import CandidateBlocks, Sight
from tamis.match.default.structure.buckets import Buckets
from tamis.match.default.structure.cells import ValueCells
from tamis.match.default.structure.family import Family
from tamis.match.default.structure.guide import Guide
from tamis.match.default.structure.routes import RoutedIndex, Schemes

Frame = Int64s
_T = TypeVar("_T")


class Framed(Generic[_T]):
    """A record and its frame. The record keeps the arrays alive that the frame points to."""

    def __init__(self, record: _T) -> None:
        self.record = record
        self.frame = frame(record)


def frame(record: Any) -> Frame:
    """Address and length of each array in a named tuple, in order, nested ones included."""
    return np.array([(each.ctypes.data, len(each)) for each in arrays_in(record)]).reshape(-1)


def own(record: _T) -> _T:
    """The record with read-only arrays copied. Kernels write by address and bypass the flag.

    Unpickled arrays may be in shared memory, which must not be changed.
    """
    assert isinstance(record, tuple)
    parts = [
        own(each) if isinstance(each, tuple) else each if each.flags.writeable else each.copy()
        for each in record
    ]
    return type(record)(*parts)


def arrays_in(record: Any) -> list[NDArray[Any]]:
    """The arrays in a named tuple, nested ones included."""
    found: list[NDArray[Any]] = []
    for each in record:
        found.extend(arrays_in(each) if isinstance(each, tuple) else [each])
    return found


def _pointer_to(kind: Any) -> Any:
    @intrinsic
    def pointer(context: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

        return types.CPointer(kind)(types.int64), build

    return pointer


_long = _pointer_to(types.int64)
_int = _pointer_to(types.int32)
_word = _pointer_to(types.uint64)
_byte = _pointer_to(types.uint8)
_signed = _pointer_to(types.int8)
_lane = _pointer_to(types.int16)
_line = _pointer_to(types.uint16)
_float = _pointer_to(types.float64)


@inlined
def _longs(frame: Frame, i: int) -> Int64s:
    array: Int64s = carray(_long(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _ints(frame: Frame, i: int) -> Int32s:
    array: Int32s = carray(_int(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _words(frame: Frame, i: int) -> Words:
    array: Words = carray(_word(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _bytes(frame: Frame, i: int) -> UInt8s:
    array: UInt8s = carray(_byte(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _small(frame: Frame, i: int) -> Int8s:
    array: Int8s = carray(_signed(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _lanes(frame: Frame, i: int) -> Int16s:
    array: Int16s = carray(_lane(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _lines(frame: Frame, i: int) -> UInt16s:
    array: UInt16s = carray(_line(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _floats(frame: Frame, i: int) -> Floats:
    array: Floats = carray(_float(frame[2 * i]), frame[2 * i + 1])
    return array


@inlined
def _family(f: Frame, i: int) -> Family:
    return Family(
        _ints(f, i), _ints(f, i + 1), _ints(f, i + 2), _words(f, i + 3), _words(f, i + 4),
        _words(f, i + 5), _lanes(f, i + 6), _ints(f, i + 7), _longs(f, i + 8),
    )  # fmt: skip


@inlined
def index_in(f: Frame) -> RoutedIndex:
    """Rebuild the index from its frame."""
    cells = ValueCells(
        _longs(f, 0), _longs(f, 1), _longs(f, 2), _longs(f, 3),
        _bytes(f, 4), _floats(f, 5), _floats(f, 6), _floats(f, 7), _floats(f, 8),
        Guide(_longs(f, 9), _longs(f, 10), _longs(f, 11), _ints(f, 12)),
    )  # fmt: skip
    schemes = Schemes(
        _longs(f, 13), _longs(f, 14), _longs(f, 15), _longs(f, 16), _longs(f, 17), _longs(f, 18)
    )
    buckets = Buckets(
        _longs(f, 20), _longs(f, 21), _longs(f, 22), _longs(f, 23), _longs(f, 24), _longs(f, 25)
    )
    return RoutedIndex(
        cells, schemes, _floats(f, 19), buckets, _family(f, 26), _family(f, 35),
        _small(f, 44), _longs(f, 45), _longs(f, 46),
    )  # fmt: skip


@inlined
def buffers_in(f: Frame) -> ChunkBuffers:
    """Rebuild the buffers from their frame."""
    return ChunkBuffers(
        Binding(_ints(f, 0), _ints(f, 1)),
        _ints(f, 2),
        _bytes(f, 3),
        Keys(_longs(f, 4), _ints(f, 5), _longs(f, 6), _longs(f, 7), _longs(f, 8)),
        _ints(f, 9),
        _ints(f, 10),
        _ints(f, 11),
        Doubts(_ints(f, 12), _ints(f, 13), _ints(f, 14), _longs(f, 15)),
        Sight(_lines(f, 16), _lanes(f, 17)),
        Sight(_lines(f, 18), _lanes(f, 19)),
        CandidateBlocks(
            _words(f, 20), _ints(f, 21), _words(f, 22), _longs(f, 23), _ints(f, 24), _ints(f, 25)
        ),
        _words(f, 26),
        _longs(f, 27),
        _longs(f, 28),
    )
