"""Terms as the papers' elementary predicates: attribute, comparator, constant.

The papers count satisfied predicates. A term of one interval is one predicate (an equality or an
inequality) or two (the ends of a range). The complement of one value is one `!=`. All other terms
(several intervals, `excludes`, `missing`) are left out, and their clause is marked for
verification. The remaining predicates may let through too many clauses, never too few.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int8s, Int32s, Int64s, offsets
from tamis.index.clauses import SOME, ClauseArrays
from tamis.index.kernel import kernel

LOWEST, HIGHEST = -(2**63), 2**63 - 1

EQUAL, AT_MOST, AT_LEAST, UNEQUAL, BOUND = 0, 1, 2, 3, 4
"""Comparators: v = c, v <= c, v >= c, v != c, and "is bound" (its constant is 0)."""
COMPARATORS = 5

EXACT, IF_SINGLE, VERIFY = 0, 1, 2
"""How well the predicates express a clause. EXACT: fully. IF_SINGLE: fully, unless the event has
several values of an attribute (two values might satisfy the two ends of a range). VERIFY: not
fully."""


class ElementaryPredicates(NamedTuple):
    """The predicates of clause i are `starts[i]:starts[i + 1]`."""

    starts: Int64s
    attribute: Int32s
    comparator: Int8s
    constant: Int64s
    exact: Int8s  # per clause


def clauses_of(found: ElementaryPredicates, which: Bools) -> ElementaryPredicates:
    """Select some of the clauses."""
    counts = np.diff(found.starts)
    return _chosen(found, np.repeat(which, counts), which)


def predicates_of(found: ElementaryPredicates, which: Bools) -> ElementaryPredicates:
    """Keep all clauses, but select some of their predicates."""
    return _chosen(found, which, np.ones(len(found.exact), np.bool_))


def _chosen(found: ElementaryPredicates, predicates: Bools, clauses: Bools) -> ElementaryPredicates:
    ahead = offsets(predicates)[found.starts]
    return ElementaryPredicates(
        np.append(0, ahead[1:][clauses]),
        found.attribute[predicates],
        found.comparator[predicates],
        found.constant[predicates],
        found.exact[clauses],
    )


@kernel
def elementary_predicates(clauses: ClauseArrays, slots: Int64s) -> ElementaryPredicates:
    """The elementary predicates of the clauses in these slots."""
    most = 0
    for slot in slots:
        most += 2 * clauses.size[slot]
    starts = np.zeros(len(slots) + 1, np.int64)
    attribute = np.empty(most, np.int32)
    comparator = np.empty(most, np.int8)
    constant = np.empty(most, np.int64)
    exact = np.zeros(len(slots), np.int8)
    n = 0
    for i in range(len(slots)):
        row = clauses.start[slots[i]]
        end = row + clauses.size[slots[i]]
        while row < end:
            after = row + 1
            while after < end and clauses.term[after] == clauses.term[row]:
                after += 1
            low, high = clauses.low[row], clauses.high[row]
            a = clauses.attribute[row]
            if clauses.kind[row] != SOME:
                exact[i] = VERIFY
            elif after - row == 2 and is_complement(clauses, row):
                attribute[n], comparator[n], constant[n] = a, UNEQUAL, high + 1
                n += 1
            elif after - row > 1:
                exact[i] = VERIFY
            elif low == high:
                attribute[n], comparator[n], constant[n] = a, EQUAL, low
                n += 1
            elif low == LOWEST and high == HIGHEST:
                attribute[n], comparator[n], constant[n] = a, BOUND, 0
                n += 1
            else:
                if low != LOWEST and high != HIGHEST:
                    exact[i] = max(exact[i], IF_SINGLE)
                if low != LOWEST:
                    attribute[n], comparator[n], constant[n] = a, AT_LEAST, low
                    n += 1
                if high != HIGHEST:
                    attribute[n], comparator[n], constant[n] = a, AT_MOST, high
                    n += 1
            row = after
        starts[i + 1] = n
    return ElementaryPredicates(starts, attribute[:n], comparator[:n], constant[:n], exact)


@kernel
def key_predicates(found: ElementaryPredicates) -> Bools:
    """Which predicates form the keys: the first equality on each attribute of a clause.

    Another value of the event may satisfy a second equality on the same attribute (`contains`
    twice), so it cannot be part of the key.
    """
    keyed = np.zeros(len(found.attribute), np.bool_)
    for i in range(len(found.starts) - 1):
        last = -1
        for at in range(found.starts[i], found.starts[i + 1]):
            if found.comparator[at] == EQUAL and found.attribute[at] != last:
                keyed[at] = True
                last = found.attribute[at]
    return keyed


@kernel
def is_complement(clauses: ClauseArrays, row: int) -> bool:
    """Whether two rows cover everything except one value."""
    return bool(
        clauses.low[row] == LOWEST
        and clauses.high[row + 1] == HIGHEST
        and clauses.low[row + 1] - clauses.high[row] == 2
    )


@kernel
def has_several(attribute: Int32s, start: int, end: int) -> bool:
    """Whether an event, with the pairs `start:end`, has several values of some attribute."""
    several = False
    for at in range(start + 1, end):
        several |= attribute[at] == attribute[at - 1]
    return several
