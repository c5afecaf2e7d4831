"""Clauses as spans: one enclosing interval per term.

Structures that rule out clauses by the ends of intervals need one interval per term. A term of
several intervals becomes its hull; a term of all but one value becomes that value. Clauses that
their spans do not represent exactly are marked for verification. `excludes` only requires the
attribute to be bound; `missing` has no span.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int8s, Int32s, Int64s
from tamis.index.clauses import MISSING, SOME, ClauseArrays
from tamis.index.elementary_predicates import (
    EXACT,
    HIGHEST,
    IF_SINGLE,
    LOWEST,
    VERIFY,
    is_complement,
)
from tamis.index.kernel import kernel


class Spans(NamedTuple):
    """Each span is one interval of one clause and requires its attribute to be bound.

    If `unequal`, low and high are the single excluded value.
    """

    slot: Int32s
    attribute: Int32s
    low: Int64s
    high: Int64s
    unequal: Bools
    exact: Int8s  # by clause: EXACT, IF_SINGLE (it has an unequal span), or VERIFY


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
                exact[i] = VERIFY  # two terms on one attribute: one value each may meet them
            if clauses.kind[row] != SOME:
                exact[i] = VERIFY
            if clauses.kind[row] != MISSING:
                of_slot[n] = slots[i]
                attribute[n] = clauses.attribute[row]
                low[n], high[n] = LOWEST, HIGHEST
                if clauses.kind[row] == SOME:
                    low[n] = clauses.low[row:after].min()
                    high[n] = clauses.high[row:after].max()
                    if after - row == 2 and is_complement(clauses, row):
                        unequal[n] = True
                        low[n] = high[n] = clauses.high[row] + 1
                        exact[i] = max(exact[i], IF_SINGLE)
                    elif after - row > 1:
                        exact[i] = VERIFY
                n += 1
            row = after
    return Spans(of_slot[:n], attribute[:n], low[:n], high[:n], unequal[:n], exact)
