"""Index attributes: select the trees for a clause or an event.

There is one tree for each combination of the values of a few attributes. Values are ranked from 1
on; rank 0 stands for any other value and for a missing value.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel
from tamis.index.pair_map import PairCells, PairMap, find

_CANDIDATES = 16  # attributes considered, most popular first
_ROOTS = 4  # limit on the total number of trees, per clause


class Factored(NamedTuple):
    """View for kernels: the tree of ranks r has the number `(r * stride).sum()`."""

    attribute: Int64s
    size: Int64s  # number of ranks per attribute, including rank 0
    stride: Int64s
    cells: PairCells  # (number of index attribute, value) to rank


class Factoring(HoldsArrays):
    """The choice of index attributes, made once for the current clauses."""

    def __init__(self) -> None:
        self._attribute: list[int] = []
        self._size: list[int] = []
        self._ranks = PairMap()
        self.roots = 1
        self.view = self._view()

    def choose(
        self, starts: Int64s, attribute: Int64s, value: Int64s, most: int, limit: float
    ) -> None:
        """Choose up to `most` attributes that few clauses leave unconstrained.

        The arrays are the equalities of the clauses. A clause that does not constrain an index
        attribute is in one tree per rank of that attribute. Attributes that would put a clause into
        more than `limit` trees on average are skipped.
        """
        counts = np.diff(starts)
        clause = np.repeat(np.cumsum(counts > 0) - 1, counts)  # without equalities: excluded
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
