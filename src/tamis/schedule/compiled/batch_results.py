"""A kernel that records several results: one call of an operator answers several predicates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.index.array_types import Int8s, Int32s, Int64s
from tamis.index.kernel import kernel

if TYPE_CHECKING:
    from numba import Dispatcher

OPEN, COMPLETED = 0, 1  # items of `RunState.now`
UNKNOWN = -1  # the outcome of a predicate without a result


def batch_recorder(step: Dispatcher[..., int]) -> Dispatcher[..., Int32s]:
    """The kernel that has `step` record one result after the other.

    `more` are the last arrays that the step takes. Their types have to differ between any two of
    these kernels: the cache of compiled code tells functions apart by place and by types.
    """

    def record_all(
        graph: Int64s,
        edges: Int32s,
        octets: Int8s,
        ints: Int32s,
        longs: Int64s,
        predicates: Int64s,
        outcomes: Int8s,
        more: tuple[Any, ...],
    ) -> Int32s:
        """Record results of predicates, by local number; returns the clauses they complete."""
        completed = ints[graph[0] : 2 * graph[0]]
        found = np.empty(longs[OPEN], np.int32)
        count = 0
        for i in range(len(predicates)):
            t = predicates[i]
            if octets[t] == UNKNOWN:
                step(graph, edges, octets, ints, longs, outcomes[:0], t, outcomes[i], *more)
                for j in range(longs[COMPLETED]):
                    found[count] = completed[j]
                    count += 1
        return found[:count]

    return kernel(record_all)
