"""Frames: many arrays passed to a kernel as one.

Numba takes about 0.2 µs to unbox each array argument. An index has some forty arrays, and the
buffers of a chunk as many again. A call with all of them would take longer than matching a single
event. A frame is one array with the addresses and lengths of all the others. A kernel rebuilds the
arrays from it (`index_in`, `buffers_in`) at almost no cost.

An address is valid only while its array is alive. So a frame is stored together with its record,
an immutable named tuple that keeps the arrays alive: see `Framed`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import count
from typing import Any, Generic, TypeVar

import numpy as np
from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array

from tamis.files.arrays import Int64s, dtype_of, fields_of, flatten
from tamis.match.default.passes.buffers import ChunkBuffers
from tamis.match.default.structure.routes import RoutedIndex

Frame = Int64s
_T = TypeVar("_T")


class Framed(Generic[_T]):
    """A record and its frame. The record keeps the arrays alive that the frame points to."""

    def __init__(self, record: _T) -> None:
        self.record = record
        self.frame = frame(record)


def frame(record: Any) -> Frame:
    """Address and length of each array in a named tuple, in order, nested ones included."""
    return np.array([(each.ctypes.data, len(each)) for each in flatten(record).values()]).ravel()


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


def reader(kind: type[_T]) -> Callable[[Frame], _T]:
    """A function for kernels that rebuilds a record of this kind from its frame."""
    layout = _layout(kind)

    @intrinsic
    def read(context: Any, frame: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            numbers = context.make_array(signature.args[0])(context, builder, args[0]).data
            number, places = partial(context.get_constant, types.intp), count()

            def rebuilt(kind: Any) -> Any:
                if isinstance(kind, types.BaseTuple):
                    return context.make_tuple(builder, kind, [*map(rebuilt, kind.types)])
                address, length = (
                    builder.load(builder.gep(numbers, [number(next(places))])) for _ in range(2)
                )
                array = context.make_array(kind)(context, builder)
                data = builder.inttoptr(address, array.data.type)
                item = kind.dtype.bitwidth // 8
                populate_array(array, data, [length], [number(item)], item, None)
                return array._getvalue()

            return rebuilt(layout)

        return layout(frame), build

    return read


def _layout(hint: Any) -> Any:
    """The type of a record or array, as Numba sees it."""
    if hasattr(hint, "_fields"):
        fields = tuple(_layout(each) for _, each in fields_of(hint))
        return types.BaseTuple.from_types(fields, hint)
    return types.Array(getattr(types, dtype_of(hint).name), 1, "C")


index_in = reader(RoutedIndex)
buffers_in = reader(ChunkBuffers)
