"""Clauses as spans: for each term the one interval that it lies within.

Structures that rule clauses out by the ends of intervals need one interval a term. A term of
several intervals is given by its hull, everything but one value by that value; what a span does
not tell whole is marked for verification. `excludes` tells only that the attribute must be bound,
`missing` tells nothing.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.clauses import MISSING, SOME, ClauseArrays
from tamis.index.elementary_predicates import EXACT, HIGHEST, IF_SINGLE, LOWEST, VERIFY
from tamis.index.kernel import kernel

Int64s = NDArray[np.int64]


class Spans(NamedTuple):
    """One interval of one clause each; every span needs its attribute to be bound.

    Where `unequal`, low and high are the one value that is not allowed.
    """

    slot: NDArray[np.int32]
    attribute: NDArray[np.int32]
    low: Int64s
    high: Int64s
    unequal: NDArray[np.bool_]
    exact: NDArray[np.int8]  # of each clause: EXACT, IF_SINGLE (it has an unequal), or VERIFY


@kernel
def spans_of(clauses: ClauseArrays, slots: Int64s) -> Spans:
    """The spans of the clauses in some slots, clause by clause."""
    most = 0
    for slot in slots:
        most += clauses.size[slot]
    of_slot = np.empty(most, np.int32)
    attribute = np.empty(most, np.int32)
    low = np.empty(most, np.int64)
    high = np.empty(most, np.int64)
    unequal = np.zeros(most, np.bool_)
    exact = np.full(len(slots), EXACT, np.int8)
    n = 0
    for i in range(len(slots)):
        begin = clauses.start[slots[i]]
        end = begin + clauses.size[slots[i]]
        row = begin
        while row < end:
            after = row + 1
            while after < end and clauses.term[after] == clauses.term[row]:
                after += 1
            if row > begin and clauses.attribute[row] == clauses.attribute[row - 1]:
                exact[i] = VERIFY  # two terms on one attribute: two values may meet them
            if clauses.kind[row] != SOME:
                exact[i] = VERIFY
            if clauses.kind[row] != MISSING:
                of_slot[n] = slots[i]
                attribute[n] = clauses.attribute[row]
                low[n], high[n] = LOWEST, HIGHEST
                if clauses.kind[row] == SOME:
                    low[n] = clauses.low[row:after].min()
                    high[n] = clauses.high[row:after].max()
                    if after - row == 2 and _all_but_one(clauses, row):
                        unequal[n] = True
                        low[n] = high[n] = clauses.high[row] + 1
                        exact[i] = max(exact[i], IF_SINGLE)
                    elif after - row > 1:
                        exact[i] = VERIFY
                n += 1
            row = after
    return Spans(of_slot[:n], attribute[:n], low[:n], high[:n], unequal[:n], exact)


@kernel
def _all_but_one(clauses: ClauseArrays, row: int) -> bool:
    """Whether two rows are everything but one value."""
    return bool(
        clauses.low[row] == LOWEST
        and clauses.high[row + 1] == HIGHEST
        and clauses.low[row + 1] - clauses.high[row] == 2
    )
