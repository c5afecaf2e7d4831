"""The node tables of a BE-tree, and what their columns mean."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]

# Columns of the three node tables.
FIRST, BUCKET, CAPACITY = 0, 1, 2  # cell: first partition, owning bucket, leaf capacity
ATTRIBUTE, NEXT, TOP, OWNER, COUNT = 0, 1, 2, 3, 4  # partition: … top bucket, cell, clauses below
LOW, HIGH, LEFT, RIGHT, CELL, PARTITION, UP = 0, 1, 2, 3, 4, 5, 6  # bucket


class Tree(NamedTuple):
    """The nodes as kernels see them."""

    cell: Int64s
    partition: Int64s
    bucket: Int64s


class Nodes:
    """Rows of integers that are taken and given back."""

    def __init__(self, columns: int) -> None:
        self.rows = np.full((0, columns), -1, np.int64)
        self._free: list[int] = []
        self._top = 0

    def take(self, *values: int) -> int:
        """A row with these values."""
        if self._free:
            at = self._free.pop()
        else:
            at = self._top
            self._top += 1
            if at == len(self.rows):
                more = np.full((max(16, len(self.rows)), self.rows.shape[1]), -1, np.int64)
                self.rows = np.concatenate([self.rows, more])
        self.rows[at] = values
        return at

    def give(self, at: int) -> None:
        """Give a row back."""
        self.rows[at] = -1
        self._free.append(at)

    def __len__(self) -> int:
        return self._top - len(self._free)
