"""Terms: encoded clauses as flat arrays, the only form in which matchers see subscriptions.

A row is one closed interval of codes. The rows of a clause stand together, sorted by attribute; the
rows with the same `term` number belong to one constraint of the clause. Most terms have one row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


class Terms(NamedTuple):
    """The terms of `len(starts) - 1` clauses: clause i has the rows `starts[i]:starts[i + 1]`."""

    starts: NDArray[np.int64]
    attribute: NDArray[np.int32]
    term: NDArray[np.int16]
    kind: NDArray[np.int8]
    low: NDArray[np.int64]
    high: NDArray[np.int64]

    @property
    def clauses(self) -> int:
        """How many clauses there are."""
        return len(self.starts) - 1

    def take(self, which: NDArray[np.int64]) -> Terms:
        """The clauses at the given positions, in that order."""
        counts = np.diff(self.starts)[which]
        starts = np.zeros(len(which) + 1, np.int64)
        np.cumsum(counts, out=starts[1:])
        rows = np.repeat(self.starts[which] - starts[:-1], counts) + np.arange(starts[-1])
        return Terms(starts, *(column[rows] for column in self[1:]))


Row = tuple[int, int, int, int, int]
"""attribute, term, kind, low, high"""


def from_rows(clauses: Sequence[Sequence[Row]]) -> Terms:
    """Terms from Python rows, for subscriptions that come one by one."""
    starts = np.zeros(len(clauses) + 1, np.int64)
    np.cumsum([len(clause) for clause in clauses], out=starts[1:])
    flat = [row for clause in clauses for row in clause]
    table = np.array(flat, np.int64).reshape(len(flat), 5)
    return Terms(
        starts,
        table[:, 0].astype(np.int32),
        table[:, 1].astype(np.int16),
        table[:, 2].astype(np.int8),
        np.ascontiguousarray(table[:, 3]),
        np.ascontiguousarray(table[:, 4]),
    )
