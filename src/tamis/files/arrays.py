"""Types of arrays, and arrays by name: those of a whole and its parts, and of a named tuple."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np
from numpy.typing import NDArray

from tamis.errors import SavedIndexError

Int64s = NDArray[np.int64]
Int32s = NDArray[np.int32]
Int16s = NDArray[np.int16]
Int8s = NDArray[np.int8]
UInt16s = NDArray[np.uint16]
UInt8s = NDArray[np.uint8]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Record = TypeVar("Record", bound=tuple[Any, ...])


class Arrays(dict[str, NDArray[Any]]):
    """Arrays by name. A missing one is a fault of the saved index that they come from."""

    def __missing__(self, name: str) -> NDArray[Any]:
        raise SavedIndexError(f"the saved index has no array {name!r}")


def add_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Name the arrays of a part as the whole names them.

    >>> add_prefix("tree", {"low": np.zeros(1)}).keys()
    dict_keys(['tree.low'])
    """
    return Arrays({f"{prefix}.{name}": array for name, array in arrays.items()})


def take_prefix(prefix: str, arrays: Mapping[str, NDArray[Any]]) -> Arrays:
    """Pick the arrays of one part, named as the part names them.

    >>> take_prefix("tree", {"tree.low": np.zeros(1), "size": np.zeros(1)}).keys()
    dict_keys(['low'])
    """
    stem = f"{prefix}."
    return Arrays(
        {name.removeprefix(stem): each for name, each in arrays.items() if name.startswith(stem)}
    )


def flatten(record: Any) -> Arrays:
    """Return the arrays of a named tuple, and of the named tuples in it."""
    found = Arrays()
    for name, each in record._asdict().items():
        found.update(add_prefix(name, flatten(each)) if isinstance(each, tuple) else {name: each})
    return found


def unflatten(kind: type[Record], arrays: Mapping[str, NDArray[Any]]) -> Record:
    """Build a named tuple from the arrays that `flatten` returned."""
    return kind(
        *(
            unflatten(hint, take_prefix(name, arrays))
            if hasattr(hint, "_fields")
            else _checked(name, arrays[name], hint)
            for name, hint in fields_of(kind)
        )
    )


def zeros(kind: type[Record], size: int = 0) -> Record:
    """A named tuple with arrays of zeros, all of one size."""
    return kind(
        *(
            zeros(hint, size) if hasattr(hint, "_fields") else np.zeros(size, dtype_of(hint))
            for _, hint in fields_of(kind)
        )
    )


def offsets(counts: Any) -> Int64s:
    """Where each run starts if runs of these sizes stand in a row, and where the last one ends.

    >>> offsets([2, 0, 3]).tolist()
    [0, 2, 2, 5]
    """
    starts = np.zeros(len(counts) + 1, np.int64)
    np.cumsum(counts, out=starts[1:])
    return starts


def runs(first: Int64s, counts: NDArray[Any]) -> tuple[Int64s, Int64s]:
    """The positions of the runs `first[i] : first[i] + counts[i]`, and where each run starts.

    >>> starts, rows = runs(np.array([7, 3]), np.array([2, 1]))
    >>> starts.tolist(), rows.tolist()
    ([0, 2, 3], [7, 8, 3])
    """
    starts = offsets(counts)
    return starts, np.repeat(first - starts[:-1], counts) + np.arange(starts[-1])


@cache
def fields_of(kind: type) -> tuple[tuple[str, Any], ...]:
    """The fields of a named tuple, with their types."""
    return tuple(get_type_hints(kind).items())


def dtype_of(hint: Any) -> np.dtype[Any]:
    """The type of the items of an array, from the hint for the array."""
    kind: np.dtype[Any] = np.dtype(get_args(get_args(hint)[1])[0])
    return kind


def _checked(name: str, array: NDArray[Any], hint: Any) -> NDArray[Any]:
    """Refuse an array of another type than the hint says: kernels take the type for granted."""
    kind = dtype_of(hint)
    if array.ndim != 1 or array.dtype != kind:
        raise SavedIndexError(f"{name} is {array.ndim} × {array.dtype}, not 1 × {kind}")
    return array
