"""The matcher for CUDA GPUs."""

from __future__ import annotations

import os
from threading import Lock
from typing import Any

import numpy as np

from tamis.encode.batch import EventBatch
from tamis.encode.terms import Terms
from tamis.errors import MatcherError, counted
from tamis.files.arrays import Int64s
from tamis.match.answers import Matches
from tamis.match.base import Matcher, Slots
from tamis.match.gpu import GPU_VARIABLE, SIMULATED
from tamis.match.gpu.columns import SAMPLE, plan_columns
from tamis.match.gpu.device import Device, FoundSlots, joined
from tamis.match.gpu.gpu_index import GpuIndex
from tamis.match.gpu.layout import WORDS
from tamis.match.gpu.simulated_device import SimulatedDevice
from tamis.match.options import choice, whole_number

_OF_A_MACHINE = {"_opened", "_lock"}
_EVENTS = 1 << 13  # matched at a time
_SMALL = 256  # clauses: a plan for fewer is not worth renewing


class TamisGpu(Matcher):
    """Bitmaps by attribute and cell in the shared memory of a GPU, for a whole batch.

    The values of the attributes that most clauses use are cut into cells of equal depth. A line of
    bits says which clauses of a tile allow a cell, or an event without the attribute; more may
    hold than is true. A block of threads keeps the lines of a tile in shared memory, where all
    events of the batch combine them by `and`. What is left is compared with bounds: the ranks of
    the ends of intervals among all ends, in 16 bits. Only where a rank says too little, and for
    terms other than one interval, the clause itself is verified. Rare attributes have no lines.

    add O(attributes × cells) and remove O(1) amortised: they change single words of lines, with
    the next match. match O(subscriptions / 2^12) with a small constant, and what matches.

    The first match is the first to use the GPU. So an engine can be filled, saved and pickled on a
    machine without a GPU.
    """

    device = choice("cuda", "what computes: a GPU, or NumPy in its place", "cuda", SIMULATED)
    number = whole_number(
        -1,
        "number of the GPU; -1 means what TAMIS_GPU says, else 0",
        least=-1,
        most=1023,
        saved=False,
    )

    def clear(self) -> None:
        self._index: GpuIndex | None = None
        self._changed: list[Slots] = []  # slots since the last match
        self._planned = 0  # clauses at the last plan
        self._added = 0  # clauses since then

    def __init__(self, **options: Any) -> None:
        self._opened: Device | None = None
        self._lock = Lock()  # of the device and the index: a match changes both
        super().__init__(**options)

    def __getstate__(self) -> dict[str, Any]:
        kept = {name: value for name, value in vars(self).items() if name not in _OF_A_MACHINE}
        return kept | {"_index": None, "_changed": []}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._opened, self._lock = None, Lock()

    def find(self, batch: EventBatch) -> Matches:
        with self._lock, self._device().current():
            found = self._find(batch)
            return Matches(found.host_starts, self._device().host(found.slots))

    def find_on_device(self, batch: EventBatch) -> FoundSlots:
        """The answer to a batch, left in the memory of the GPU, as arrays of CuPy.

        The batch must have events, and the matcher clauses.
        """
        self.tally.events += len(batch)
        with self._lock, self._device().current():
            return self._find(batch)

    def rebuild(self) -> None:
        self.clear()  # the next match builds the index from the table

    def check(self) -> None:
        super().check()
        if self._index is None or self._changed:
            return
        index, live = self._index, self.clauses.live_slots()
        assert (index.live_slots() == live).all(), "the bits are of the clauses that are there"
        with self._lock, self._device().current():
            written = index.on_host(index.lines)
            assert not written[index.tiles :].any()
            every = self._device().xp.arange(index.tiles * WORDS)
            self._device().write_lines(index, every)
            assert (written == index.on_host(index.lines)).all(), "lines follow from bounds"

    def index_clauses(self, slots: Slots, terms: Terms) -> None:
        self._changed.append(slots.copy())
        self._added += len(slots)

    def drop_clauses(self, slots: Slots) -> None:
        self._changed.append(slots.copy())

    def _device(self) -> Device:
        if self._opened is None:
            self._opened = _opened(self.device, self.number)
        return self._opened

    def _find(self, batch: EventBatch) -> FoundSlots:
        device = self._device()
        try:
            index = self._current_index()
            self.tally.nodes += len(batch) * index.tiles
            parts = [
                device.find(index, batch[first : first + _EVENTS].pairs)
                for first in range(0, len(batch), _EVENTS)
            ]
            return joined(device.xp, parts)
        except MemoryError as why:
            self._index = None  # it may be half done; the next match builds it again
            raise MatcherError(
                f"the GPU has too little memory for {counted(len(self), 'clause')}, or for the "
                f"answer to {counted(len(batch), 'event')} ({why}); match fewer at a time, or "
                "share the subscriptions among several GPUs"
            ) from why

    def _current_index(self) -> GpuIndex:
        """The index with all changes since the last match."""
        live, planned = self.clauses.live, max(self._planned, _SMALL)
        if self._index is None or self._added > planned or live * 4 < self._planned:
            self._index = None  # gives the memory back first
            self._build()
        elif self._changed:
            slots = np.unique(np.concatenate(self._changed))
            self._index.take(slots, self.clauses.view)
            self._write(self._index, slots)
        self._changed = []
        assert self._index is not None
        return self._index

    def _build(self) -> None:
        live = self.clauses.live_slots()
        sample = live[:: -(-len(live) // SAMPLE)]
        device = self._device()
        plan = plan_columns(self.terms(sample), self.clauses.width, device.shared_bytes)
        self._index = GpuIndex(device.xp, plan, self.clauses.view)
        self._planned, self._added = len(live), 0
        self._write(self._index, np.arange(self.clauses.slots))

    def _write(self, index: GpuIndex, slots: Int64s) -> None:
        """Write the bounds and bits of slots, whose rows are there."""
        device = self._device()
        words = np.unique(slots >> 5)
        device.bound_clauses(index, device.xp.asarray(slots))
        device.write_lines(index, device.xp.asarray(words))


def _opened(device: str, number: int) -> Device:
    given = os.environ.get(GPU_VARIABLE, "")
    if device == SIMULATED or (number < 0 and given == SIMULATED):
        return SimulatedDevice()
    from tamis.match.gpu.cuda_device import CudaDevice

    if number < 0 and given:
        if not given.isdecimal():
            raise MatcherError(
                f"{GPU_VARIABLE} is the number of a GPU, from 0, or '{SIMULATED}'; got {given!r}"
            )
        number = int(given)
    return CudaDevice(max(number, 0))
