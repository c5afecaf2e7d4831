"""Index attributes: which of several trees a clause, or an event, goes to.

For each combination of the values of a few attributes there is a tree. Values are ranked from 1 on;
rank 0 stands for any other value, and for no value at all.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel
from tamis.index.pair_map import PairCells, PairMap, find

Int64s = NDArray[np.int64]
_CANDIDATES = 16  # attributes looked at, the most popular first
_ROOTS = 4  # trees for each clause, at most


class Factored(NamedTuple):
    """As kernels see it: the tree of ranks r is number `(r * stride).sum()`."""

    attribute: Int64s
    size: Int64s  # ranks of each, rank 0 included
    stride: Int64s
    cells: PairCells  # (number of index attribute, value) to rank


class Factoring(HoldsArrays):
    """Chosen once, for the clauses at hand."""

    def __init__(self) -> None:
        self._attribute: list[int] = []
        self._size: list[int] = []
        self._ranks = PairMap()
        self.roots = 1
        self.view = self._view()

    def choose(
        self, starts: Int64s, attribute: Int64s, value: Int64s, most: int, limit: float
    ) -> None:
        """Take up to `most` attributes that clauses (of these equalities) rarely leave open.

        A clause is in as many trees as there are ranks, for each index attribute that it leaves
        open. An attribute for which that were more than `limit` trees in the mean is passed over.
        """
        counts = np.diff(starts)
        clause = np.repeat(np.cumsum(counts > 0) - 1, counts)  # those without equalities stay out
        copies = np.ones(int((counts > 0).sum()), np.int64)
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
            self.roots *= size
            copies *= more
        self.view = self._view()

    def _view(self) -> Factored:
        size = np.array(self._size, np.int64)
        stride = np.cumprod(np.concatenate([[1], size]))[: len(size)].astype(np.int64)
        return Factored(np.array(self._attribute, np.int64), size, stride, self._ranks.cells)


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
    """Write the trees that an event goes to into `out`; gives how many.

    Several values of an index attribute mean several trees, in which a clause may be met again.
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
            for i in range(many - before):  # those without this attribute's rank fall away
                out[i] = out[i + before]
            many -= before
    return many
