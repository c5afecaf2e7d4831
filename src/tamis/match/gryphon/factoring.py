"""Index attributes: select the trees for a clause or an event.

There is one tree for each combination of the values of a few attributes. Values are ranked from 1
on; rank 0 stands for any other value and for a missing value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int64s
from tamis.index.clauses import ClauseArrays
from tamis.index.elementary_predicates import (
    EXACT,
    elementary_predicates,
    key_predicates,
    predicates_of,
)
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel
from tamis.index.pair_map import PairCells, PairMap, find

_CANDIDATES = 16  # attributes considered, most popular first
_ROOTS = 4  # limit on the total number of trees, per clause


class EdgeLabels(NamedTuple):
    """The equalities of clause i are `starts[i]:starts[i + 1]`, one per attribute."""

    starts: Int64s
    attribute: Int64s
    value: Int64s
    whole: Bools  # whether the clause has no other predicates


class Factored(NamedTuple):
    """View for kernels: the tree of ranks r has the number `(r * stride).sum()`."""

    attribute: Int64s
    size: Int64s  # number of ranks per attribute, including rank 0
    stride: Int64s
    cells: PairCells  # (number of index attribute, value) to rank
    values: Int64s  # the values of all ranks from 1 on ...
    before: Int64s  # ... and how many there are of the index attributes before each


class Factoring(HoldsArrays):
    """The choice of index attributes, made once for the current clauses."""

    def __init__(self) -> None:
        self._attribute: list[int] = []
        self._size: list[int] = []
        self._ranks = PairMap()
        self._values = np.zeros(0, np.int64)
        self.roots = 1
        self.view = self._view()

    def choose(self, labels: EdgeLabels, most: int, limit: float, all_clauses: bool) -> None:
        """Choose up to `most` attributes that few clauses leave unconstrained.

        `all_clauses` says if clauses without equalities are in trees, too. A clause that does not
        constrain an index attribute is in one tree per rank of that attribute. Attributes that
        would put a clause into more than `limit` trees on average are skipped.
        """
        attribute, value = labels.attribute, labels.value
        counts = np.diff(labels.starts)
        placed = (counts > 0) | all_clauses
        clause = np.repeat(np.cumsum(placed) - 1, counts)
        copies = np.ones(int(placed.sum()), np.int64)
        uses = np.bincount(attribute)
        for candidate in np.argsort(-uses, kind="stable")[:_CANDIDATES].tolist():
            if len(self._attribute) == most or uses[candidate] == 0:
                break
            mine = attribute == candidate
            values = np.unique(value[mine])
            size = len(values) + 1
            more = np.full(len(copies), size)
            more[clause[mine]] = 1
            many = self.roots * size > _ROOTS * len(copies) + 64
            if many or (copies * more).mean() > limit:
                continue
            number = np.full(len(values), len(self._attribute))
            self._ranks.put(number, values, np.arange(1, size))
            self._attribute.append(candidate)
            self._size.append(size)
            self._values = np.concatenate([self._values, values])
            self.roots *= size
            copies *= more
        self.view = self._view()

    def _view(self) -> Factored:
        size = np.array(self._size, np.int64)
        stride = np.cumprod(np.concatenate([[1], size]))[: len(size)].astype(np.int64)
        before = np.cumsum(size - 1) - (size - 1)
        return Factored(
            np.array(self._attribute, np.int64),
            size,
            stride,
            self._ranks.cells,
            self._values,
            before,
        )


def labels_of(clauses: ClauseArrays, slots: Int64s) -> EdgeLabels:
    """The equalities of some clauses; of several on one attribute (`contains`), the first."""
    found = elementary_predicates(clauses, slots)
    keys = predicates_of(found, key_predicates(found))
    whole = (np.diff(keys.starts) == np.diff(found.starts)) & (found.exact == EXACT)
    return EdgeLabels(keys.starts, keys.attribute.astype(np.int64), keys.constant, whole)


@kernel
def factor_of(factored: Factored, a: int) -> int:
    """The number of an index attribute; -1 for any other attribute."""
    for f in range(len(factored.attribute)):
        if factored.attribute[f] == a:
            return f
    return -1


@kernel
def rank_of(factored: Factored, f: int, value: int) -> int:
    """The rank of a value of index attribute number f."""
    return max(0, find(factored.cells, f, value))


@kernel
def roots_of(factored: Factored, first: Int64s, last: Int64s, code: Int64s, out: Int64s) -> int:
    """Write the trees that an event searches to `out`; returns their number.

    Several values of an index attribute mean several trees, which may contain the same clause.
    """
    many = 1
    out[0] = 0
    for f in range(len(factored.attribute)):
        a = factored.attribute[f]
        stride = factored.stride[f]
        begin, end = first[a], last[a]
        if end - begin == 1:
            step = rank_of(factored, f, code[begin]) * stride
            for i in range(many):
                out[i] += step
        elif end > begin:
            met = np.zeros(factored.size[f], np.bool_)
            before = many
            for at in range(begin, end):
                rank = rank_of(factored, f, code[at])
                if not met[rank]:
                    met[rank] = True
                    for i in range(before):
                        out[many] = out[i] + rank * stride
                        many += 1
            for i in range(many - before):  # drop the entries without this attribute's rank
                out[i] = out[i + before]
            many -= before
    return many


@kernel
def root_of(factored: Factored, rank: Int64s, copy: int) -> int:
    """The number of the root for one copy of a clause."""
    root = 0
    for f in range(len(rank)):
        if rank[f] >= 0:
            root += rank[f] * factored.stride[f]
        else:
            root += copy % factored.size[f] * factored.stride[f]
            copy //= factored.size[f]
    return root
