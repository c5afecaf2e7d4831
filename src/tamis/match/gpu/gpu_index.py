"""The index in the memory of a device: rows of clauses, bounds, and lines of bits.

The slot of a clause is its place: slot s is bit `s % TILE` of tile `s // TILE`. So a clause that
comes or goes changes its own bounds and one word of each line of its tile, and nothing moves.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tamis.files.arrays import Int64s, runs
from tamis.index.clauses import ClauseArrays
from tamis.index.growth import HoldsArrays
from tamis.match.gpu.columns import ColumnPlan
from tamis.match.gpu.layout import DEAD, TILE, WORDS

_ROW_COLUMNS = ("attribute", "term", "kind", "low", "high")


class GpuIndex(HoldsArrays):
    """All arrays of the index, of NumPy or CuPy: `xp` is that module.

    `start`, `count` and the rows mirror the table of clauses, in places of their own. `bounds` has
    the lowest and highest rank that a clause allows in each column, `lines` the bits of each tile,
    `state` how a slot is verified.
    """

    def __init__(self, xp: Any, plan: ColumnPlan, clauses: ClauseArrays) -> None:
        self.xp, self.plan = xp, plan
        self.attributes = xp.asarray(plan.attributes)
        self.column_of = xp.asarray(plan.column_of)
        self.edges = xp.asarray(plan.edges)
        self.edge_starts = xp.asarray(plan.edge_starts)
        self.cell_edges = xp.asarray(plan.cell_edges)
        self.tiles = -(-len(clauses.size) // TILE)
        slots = self.tiles * TILE
        self.start = self._padded(xp.asarray(clauses.start), slots)
        self.count = self._padded(xp.asarray(clauses.size), slots, -1)
        self.rows = [xp.array(getattr(clauses, name)) for name in _ROW_COLUMNS]
        self.top = len(self.rows[0])  # rows in use, holes included
        self.bounds = xp.zeros((slots, plan.width), np.uint32)
        self.state = xp.zeros(slots, np.uint8)
        self.lines = xp.zeros((self.tiles, plan.all_lines, WORDS), np.uint32)

    @property
    def nbytes(self) -> int:
        arrays = [each for each in vars(self).values() if hasattr(each, "nbytes")]
        return sum(int(each.nbytes) for each in [*arrays, *self.rows])

    def take(self, slots: Int64s, clauses: ClauseArrays) -> None:
        """Copy the rows of slots from the table. Slots without a clause have none."""
        xp = self.xp
        self._reserve(-(-len(clauses.size) // TILE))
        live = slots[clauses.size[slots] >= 0]
        starts, rows = runs(clauses.start[live], clauses.size[live])
        top = self.top + len(rows)
        if top > len(self.rows[0]):
            self.rows = [self._padded(each, max(top, self.top * 3 // 2)) for each in self.rows]
        for column, name in zip(self.rows, _ROW_COLUMNS, strict=True):
            column[self.top : top] = xp.asarray(getattr(clauses, name)[rows])
        self.count[xp.asarray(slots)] = -1
        where = xp.asarray(live)
        self.start[where] = xp.asarray(starts[:-1] + self.top)
        self.count[where] = xp.asarray(clauses.size[live])
        self.top = top

    def live_slots(self) -> Int64s:
        """The slots that have bits, for checks."""
        found: Int64s = np.flatnonzero(self.on_host(self.state) != DEAD)
        return found

    def on_host(self, array: Any) -> Any:
        """A copy of an array in the memory of the host."""
        return array.copy() if self.xp is np else array.get()

    def _reserve(self, tiles: int) -> None:
        self.tiles = max(self.tiles, tiles)
        if tiles <= len(self.lines):
            return
        tiles = max(tiles, len(self.lines) * 3 // 2)
        self.lines = self._padded(self.lines, tiles)
        self.start, self.bounds, self.state = (
            self._padded(each, tiles * TILE) for each in (self.start, self.bounds, self.state)
        )
        self.count = self._padded(self.count, tiles * TILE, -1)

    def _padded(self, array: Any, size: int, fill: int = 0) -> Any:
        longer = self.xp.full((size, *array.shape[1:]), fill, array.dtype)
        longer[: len(array)] = array
        return longer
