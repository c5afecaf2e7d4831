"""How the kernels of `kernels.cu` are launched, whatever runs them."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tamis.encode.batch import Pairs
from tamis.match.gpu.device import Device, FoundSlots, joined
from tamis.match.gpu.gpu_index import GpuIndex
from tamis.match.gpu.layout import QUEUE_BYTES, stride

SOURCE = Path(__file__).with_name("kernels.cu")
_THREADS = 256
_FEW = 16  # events: up to here each line is read from memory once, and not into shared memory
_ROUNDS = 4  # blocks for each place on the device: the last ones to end leave few places idle
_LEAST_RUN = 64  # events of a block, for which it reads the lines of its tile
_LEAST_PIECE, _MOST_PIECE = 64, 1024  # pairs that a warp reserves at a time, 32 at least
_FIRST_PAIRS = 1 << 20
_MOST_PAIRS = 1 << 28  # at a time: 2 GB, and 1 GB of slots


class KernelVariant(NamedTuple):
    """What the kernels are compiled with."""

    columns: int
    shared_lines: bool = True
    shared_bounds: bool = False


class KernelDevice(Device):
    """Launches the kernels. A subclass says how."""

    warps: int  # of a block of `find`
    places: int  # for such blocks, on the whole device

    def __init__(self) -> None:
        self._capacity = _FIRST_PAIRS  # pairs that the last answers had room for
        self._most = _MOST_PAIRS

    @abstractmethod
    def launch(
        self, kernel: str, variant: KernelVariant, grid: tuple[int, ...], threads: int, shared: int,
        arguments: tuple[Any, ...],
    ) -> None:  # fmt: skip
        """Start a kernel with so many blocks, threads of each, and bytes of shared memory."""

    def bound_clauses(self, index: GpuIndex, slots: Any) -> None:
        attribute, _, kind, low, high = index.rows
        self._spread(
            "bound_clauses", index, len(slots),
            slots, np.int32(len(slots)), index.start, index.count, attribute, kind, low, high,
            index.column_of, np.int32(len(index.column_of)), index.edges, index.edge_starts,
            index.bounds, index.state,
        )  # fmt: skip

    def write_lines(self, index: GpuIndex, words: Any) -> None:
        self._spread(
            "write_lines", index, len(words) * (index.plan.width + 1) * 32,
            words, np.int32(len(words)), index.bounds, index.state, index.cell_edges,
            np.int32(index.plan.lines), index.lines,
        )  # fmt: skip

    def find(self, index: GpuIndex, events: Pairs) -> FoundSlots:
        xp, width, many = self.xp, index.plan.width, len(events.starts) - 1
        given = Pairs(*map(xp.asarray, events))
        places = xp.zeros((many, stride(width)), np.uint16)
        ranks = xp.empty((many, width), np.uint16)
        value_places = xp.empty(len(events.code) + 1, np.uint16)
        self._spread(
            "place_events", index, many * width,
            *given, np.int32(many), index.attributes, index.edges, index.edge_starts,
            index.cell_edges, np.int32(index.plan.lines), places, ranks, value_places,
        )  # fmt: skip
        while True:
            pairs = xp.empty((self._capacity, 2), np.uint32)
            counts = xp.zeros(many + 2, np.uint32)  # first the pairs that were reserved, 64 bits
            reserved, counts = counts[:2], counts[2:]
            self._launch_find(
                index, many, given, places, ranks, value_places, pairs, reserved, counts
            )
            starts = xp.empty(many + 2, np.int64)
            self.launch(
                "add_up",
                KernelVariant(width),
                (1,),
                32,
                0,
                (counts, np.int32(many), reserved, starts),
            )
            ends = self.host(starts)
            taken = int(ends[-1])
            if taken <= self._capacity:
                break
            del pairs
            if taken > self._most and many > 1:
                return self._halves(index, events, many // 2)
            self._capacity = taken + taken // 8
        slots = xp.empty(int(ends[-2]), np.int32)
        filled = xp.zeros(many, np.uint32)
        blocks = max(1, min(-(-taken // _THREADS), 8 * self.places))
        self.launch(
            "gather", KernelVariant(width), (blocks,), _THREADS, 0,
            (pairs, np.uint64(taken), starts, filled, slots),
        )  # fmt: skip
        return FoundSlots(starts[:-1], slots, ends[:-1])

    def _launch_find(
        self, index: GpuIndex, events: int, given: Pairs, places: Any, ranks: Any,
        value_places: Any, pairs: Any, reserved: Any, counts: Any,
    ) -> None:  # fmt: skip
        plan = index.plan
        shared = self.warps * QUEUE_BYTES
        runs, variant = 1, KernelVariant(plan.width, shared_lines=False)
        if events > _FEW:
            variant = KernelVariant(plan.width, shared_bounds=plan.shared_bounds)
            shared += plan.shared_bytes
            wanted = -(-_ROUNDS * self.places // index.tiles)
            runs = max(1, min(wanted, events // _LEAST_RUN))
        run = -(-events // runs)
        grid = -(-events // run), index.tiles
        # Warps take turns at one counter: so they reserve more where much matches.
        warps = grid[0] * grid[1] * self.warps
        piece = min(_MOST_PIECE, max(_LEAST_PIECE, self._capacity // (8 * warps)))
        self.launch(
            "find", variant, grid, self.warps * 32, shared,
            (
                index.lines, index.bounds, index.start, index.count, *index.rows, *given,
                places, ranks, value_places, index.attributes, np.int32(plan.lines),
                np.int32(events), np.int32(run), pairs, np.uint64(len(pairs)), reserved, counts,
                np.int32(piece),
            ),
        )  # fmt: skip

    def _halves(self, index: GpuIndex, events: Pairs, middle: int) -> FoundSlots:
        starts, attribute, code = events
        at = starts[middle]
        first = self.find(index, Pairs(starts[: middle + 1], attribute[:at], code[:at]))
        second = self.find(index, Pairs(starts[middle:] - at, attribute[at:], code[at:]))
        return joined(self.xp, [first, second])

    def _spread(self, kernel: str, index: GpuIndex, tasks: int, *arguments: Any) -> None:
        """Start a kernel with one thread for each task."""
        blocks = -(-tasks // _THREADS)
        if blocks:
            plan = index.plan
            variant = KernelVariant(plan.width, shared_bounds=plan.shared_bounds)
            self.launch(kernel, variant, (blocks,), _THREADS, 0, arguments)
