"""NEON's operations by event type: an operation is a type, an attribute and a comparator.

The type of a clause is the value that it asks of the attribute of event types. The table keeps that
value with each predicate of the clause, in place of a predicate on the type. A clause that asks for
no single type, or for nothing but a type, has the operations of events of any type.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.elementary_predicates import (
    COMPARATORS,
    ElementaryPredicates,
    key_predicates,
    predicates_of,
)
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel
from tamis.index.tuple_map import TupleMap, Tuples, find_in

_KEY = 3  # 1 and a type, or 0 and 0 for any type; then the attribute and comparator


class TypedOperations(HoldsArrays):
    """The numbers of operations, counted by the predicates that have them."""

    def __init__(self, attribute: int) -> None:
        self._attribute = attribute
        super().__init__()

    def clear(self) -> None:
        self.operations = TupleMap()

    def add(self, found: ElementaryPredicates) -> tuple[ElementaryPredicates, Int64s]:
        """The predicates without those on types, and their operations, which may be new."""
        rest, keys = self._keys(found)
        return rest, self.operations.add(np.arange(0, len(keys) + 1, _KEY), keys)[0]

    def find(self, found: ElementaryPredicates) -> tuple[ElementaryPredicates, Int64s]:
        """Like `add`, for predicates that have been added."""
        rest, keys = self._keys(found)
        return rest, self.operations.find(np.arange(0, len(keys) + 1, _KEY), keys)

    def _keys(self, found: ElementaryPredicates) -> tuple[ElementaryPredicates, Int64s]:
        counts = np.diff(found.starts)
        clause = np.repeat(np.arange(len(counts)), counts)
        on_type = key_predicates(found) & (found.attribute == self._attribute)
        on_type &= counts[clause] > 1
        typed = np.zeros((len(counts), 2), np.int64)
        typed[clause[on_type], 0] = 1
        typed[clause[on_type], 1] = found.constant[on_type]
        rest = predicates_of(found, ~on_type)
        operation = rest.attribute.astype(np.int64) * COMPARATORS + rest.comparator
        return rest, np.column_stack([typed[clause[~on_type]], operation]).ravel()


@kernel
def operations_of(
    operations: Tuples, operation: int, types: Int64s, key: Int64s, out: Int64s
) -> int:
    """Write the numbers of an operation for any type and for some types to `out`.

    Returns how many there are. `key` is scratch space. A type that occurs twice counts once.
    """
    cells, start, sizes, values = (
        operations.cells,
        operations.start,
        operations.size,
        operations.values,
    )
    key[0] = key[1] = 0
    key[2] = operation
    n = 0
    number = find_in(cells, start, sizes, values, key, _KEY)
    if number >= 0:
        out[n] = number
        n += 1
    key[0] = 1
    for i in range(len(types)):
        again = False
        for k in range(i):
            again |= types[k] == types[i]
        if not again:
            key[1] = types[i]
            number = find_in(cells, start, sizes, values, key, _KEY)
            if number >= 0:
                out[n] = number
                n += 1
    return n
