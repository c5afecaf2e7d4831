"""Distinct predicates as the bits of a vector: the first of the two stages of counting.

Subclasses decide how to find the predicates that an event satisfies: see `predicate_table` and
`predicate_lists`.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.bits import Words
from tamis.index.kernel import kernel
from tamis.index.predicate_ids import PredicateIds


class PredicateVector(PredicateIds):
    """Interned predicates, one bit each; subclasses store and evaluate them."""

    @property
    def words(self) -> int:
        """Length of the bit vector in 64-bit words."""
        return (self.top + 63) // 64

    @abstractmethod
    def evaluate(
        self, starts: Int64s, attribute: Int32s, code: Int64s, bits: Words
    ) -> tuple[int, int]:
        """Write the predicates that event i satisfies to row i of `bits`.

        The pairs of event i are `starts[i]:starts[i + 1]`. Returns the number of predicates
        examined and the number of cells or lists.
        """


@kernel
def distinct(starts: Int64s, ids: Int64s, top: int) -> tuple[Int64s, Int64s]:
    """Remove duplicates from lists of ids (list i is `starts[i]:starts[i + 1]`)."""
    seen = np.full(top, -1, np.int64)
    kept = np.empty(len(ids), np.int64)
    ends = np.zeros(len(starts), np.int64)
    n = 0
    for i in range(len(starts) - 1):
        for at in range(starts[i], starts[i + 1]):
            if seen[ids[at]] != i:
                seen[ids[at]] = i
                kept[n] = ids[at]
                n += 1
        ends[i + 1] = n
    return ends, kept[:n]
