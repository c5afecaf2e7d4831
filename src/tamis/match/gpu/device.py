"""What the matcher asks of a device."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import Pairs
from tamis.files.arrays import Int64s, offsets
from tamis.match.gpu.gpu_index import GpuIndex


class FoundSlots(NamedTuple):
    """The answer to a batch in the memory of the device: as `Matches`, with slots of 32 bits."""

    starts: Any
    slots: Any
    host_starts: Int64s  # the same starts, in the memory of the host


class Device(ABC):
    """Computes on arrays of `xp`, which is NumPy or CuPy. One thread at a time."""

    xp: Any
    shared_bytes: int  # of shared memory that a block may take

    @abstractmethod
    def bound_clauses(self, index: GpuIndex, slots: Any) -> None:
        """Write the bounds and the state of slots, from their rows."""

    @abstractmethod
    def write_lines(self, index: GpuIndex, words: Any) -> None:
        """Write words of all lines: word w has the bits of slots 32 w to 32 w + 31."""

    @abstractmethod
    def find(self, index: GpuIndex, events: Pairs) -> FoundSlots:
        """The slots whose clause holds, for each event. There is at least one event."""

    def host(self, array: Any) -> NDArray[Any]:
        """An array in the memory of the host. The caller owns it, and not the one on the device."""
        same: NDArray[Any] = array
        return same

    def current(self) -> AbstractContextManager[Any]:
        """While this lasts, arrays are made on this device."""
        return nullcontext()


def joined(xp: Any, parts: Sequence[FoundSlots]) -> FoundSlots:
    """The answer to the events of all parts, one after the other."""
    if len(parts) == 1:
        return parts[0]
    totals = offsets(np.array([part.host_starts[-1] for part in parts], np.int64))[:-1].tolist()
    return FoundSlots(
        _continued(xp, [part.starts for part in parts], totals),
        xp.concatenate([part.slots for part in parts]),
        _continued(np, [part.host_starts for part in parts], totals),
    )


def _continued(xp: Any, starts: list[Any], totals: list[int]) -> Any:
    later = [each[1:] + total for each, total in zip(starts, totals, strict=True)]
    return xp.concatenate([starts[0][:1], *later])
