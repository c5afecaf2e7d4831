"""Several results at once, compiled: what one call of an operator answers comes out together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tamis.index.kernel import kernel
from tamis.schedule.compiled.graph import Int8s, Int32s, Int64s

if TYPE_CHECKING:
    from numba import Dispatcher

OPEN, COMPLETED = 0, 1  # in `now`, as `steps` has it
UNKNOWN = -1  # outcome


def telling(step: Dispatcher[..., int]) -> Dispatcher[..., Int32s]:
    """The kernel that has `step` tell of one predicate after the other.

    `more` are the arrays that the step takes at its end. They have to differ between any two of
    these kernels: compiled code is kept by where a function is written, and by its types.
    """

    def tell(
        known: Int64s,
        who: Int32s,
        octets: Int8s,
        ints: Int32s,
        longs: Int64s,
        places: Int64s,
        outcomes: Int8s,
        more: tuple[Any, ...],
    ) -> Int32s:
        """Tell of several predicates, by number within the event; the clauses that it completes."""
        completed = ints[known[0] : 2 * known[0]]
        found = np.empty(longs[OPEN], np.int32)
        count = 0
        for i in range(len(places)):
            if octets[places[i]] == UNKNOWN:
                step(known, who, octets, ints, longs, outcomes[:0], places[i], outcomes[i], *more)
                for j in range(longs[COMPLETED]):
                    found[count] = completed[j]
                    count += 1
        return found[:count]

    return kernel(tell)
