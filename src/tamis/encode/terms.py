"""Terms: encoded clauses as flat arrays, the only form of subscriptions that matchers see.

A row is one closed interval of codes. The rows of a clause are contiguous and sorted by attribute;
rows with the same `term` number form one constraint of the clause. Most terms have one row.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from tamis.files.arrays import Int8s, Int16s, Int32s, Int64s, runs


class Terms(NamedTuple):
    """The terms of `len(starts) - 1` clauses: clause i has the rows `starts[i]:starts[i + 1]`."""

    starts: Int64s
    attribute: Int32s
    term: Int16s
    kind: Int8s
    low: Int64s
    high: Int64s

    @property
    def clauses(self) -> int:
        """The number of clauses."""
        return len(self.starts) - 1

    def take(self, which: Int64s) -> Terms:
        """The clauses at the given positions, in that order."""
        starts, rows = runs(self.starts[which], np.diff(self.starts)[which])
        columns: list[Any] = [column[rows] for column in self[1:]]
        return Terms(starts, *columns)


def joined(parts: Iterable[Terms]) -> Terms:
    """The clauses of all parts, one after the other."""
    each = list(parts)
    starts = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(p.starts) for p in each]))])
    columns: list[Any] = [
        np.concatenate(column) for column in zip(*(p[1:] for p in each), strict=True)
    ]
    return Terms(starts.astype(np.int64), *columns)


Row = tuple[int, int, int, int, int]
"""attribute, term, kind, low, high"""


def from_rows(clauses: Sequence[Sequence[Row]]) -> Terms:
    """Terms from Python rows, for single subscriptions."""
    starts = [*accumulate(map(len, clauses), initial=0)]
    rows = clauses[0] if len(clauses) == 1 else [row for clause in clauses for row in clause]
    return Terms(
        np.array(starts, np.int64),
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int16),
        np.array([row[2] for row in rows], np.int8),
        np.array([row[3] for row in rows], np.int64),
        np.array([row[4] for row in rows], np.int64),
    )
