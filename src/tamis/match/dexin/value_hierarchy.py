"""The hierarchical index table of TAMA: each attribute's codes are halved level by level.

A cell has a list of the intervals that cover it but not its parent cell. An interval is therefore
in at most two lists per level, and a value meets it in exactly one. A bottom cell has a second
list for intervals that cover only part of it. This module numbers the lists; it does not store
them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s, zeros
from tamis.index.blocks import Lists
from tamis.index.clauses import SOME, ClauseArrays
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.growth import HoldsArrays
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import bisect_right
from tamis.match.dexin.edges import cut, sorted_ends

LEVELS = 20  # maximum; level 20 has half a million cells


class Tables(NamedTuple):
    """View for kernels: one table per attribute.

    The table of attribute a has `depth[a]` levels (0: no table) and `2 ** (depth[a] - 1)` bottom
    cells between the edges `edge[start[a]:start[a] + size[a]]`. List `first[a] + i` belongs to cell
    i, numbered as in a heap from 1 for the whole domain. The lists of intervals that cover only
    part of a bottom cell follow.
    """

    depth: Int64s
    first: Int64s
    start: Int64s
    size: Int64s
    edge: Int64s


class ValueHierarchy(HoldsArrays):
    """The tables of all attributes, each built when its attribute first occurs, then fixed.

    Cells hold about the same number of interval ends; an attribute with fewer distinct ends than
    bottom cells gets a table just deep enough that every interval is a union of cells. Or cells are
    of equal width (see `edges`).
    """

    def __init__(self, levels: int, edges: str) -> None:
        self._cells = 1 << (levels - 1)
        self._edges = edges
        self.view = zeros(Tables)
        self.lists = 0  # number of lists

    def cut(self, attribute: Int32s, low: Int64s, high: Int64s) -> None:
        """Build tables for attributes without one, from the given intervals."""
        if not len(attribute):
            return
        depth = self.view.depth
        known = np.zeros(max(len(depth), int(attribute.max()) + 1), np.bool_)
        known[: len(depth)] = depth > 0
        fresh = np.flatnonzero(~known[attribute])
        if not len(fresh):
            return
        grow = np.zeros(len(known) - len(depth), np.int64)
        depth, first, start, size = (np.concatenate([part, grow]) for part in self.view[:4])
        edges = [self.view.edge]
        top = len(edges[0])
        order = fresh[np.argsort(attribute[fresh], kind="stable")]
        attributes, begin = np.unique(attribute[order], return_index=True)
        for a, rows in zip(attributes.tolist(), np.split(order, begin[1:]), strict=True):
            found = cut(sorted_ends(low[rows], high[rows]), self._cells, self._edges)
            edges.append(found)
            start[a], size[a] = top, len(found)
            depth[a] = 1 + len(found).bit_length()
            first[a] = self.lists
            top += len(found)
            self.lists += 3 << (int(depth[a]) - 1)
        self.view = Tables(depth, first, start, size, np.concatenate(edges))

    def check(self) -> None:
        """Raise if edges do not ascend or do not fit their table."""
        depth, _, start, size, edge = self.view
        for a in np.flatnonzero(depth).tolist():
            mine = edge[start[a] : start[a] + size[a]]
            assert (mine[1:] > mine[:-1]).all(), "edges ascend"  # a difference might overflow
            assert size[a] < 1 << (int(depth[a]) - 1) <= self._cells


@kernel
def lists_of(
    clauses: ClauseArrays, slot: int, tables: Tables, out: Int64s, n: int
) -> tuple[int, int, bool]:
    """Append the lists of a clause to `out[:n]`.

    Returns the new n, the number of terms that the lists represent, and whether other terms remain.
    """
    row = clauses.start[slot]
    end = row + clauses.size[slot]
    terms = 0
    left = False
    last = -1  # attribute of the last counted term
    while row < end:
        after = row + 1
        ascend = True
        while after < end and clauses.term[after] == clauses.term[row]:
            ascend &= clauses.high[after - 1] < clauses.low[after]
            after += 1
        if clauses.kind[row] != SOME or clauses.attribute[row] == last or not ascend:
            left = True
        else:
            last = clauses.attribute[row]
            terms += 1
            n = _cover(clauses, row, after, tables, out, n)
        row = after
    return n, terms, left


@kernel
def _cover(clauses: ClauseArrays, row: int, after: int, tables: Tables, out: Int64s, n: int) -> int:
    """Append the fewest cells that cover the intervals of one term."""
    a = clauses.attribute[row]
    start, stop = tables.start[a], tables.start[a] + tables.size[a]
    leaves = 1 << (tables.depth[a] - 1)
    part = tables.first[a] + 2 * leaves
    met = -1  # the last partly covered cell: the next interval may begin in it
    for r in range(row, after):
        low, high = clauses.low[r], clauses.high[r]
        left = bisect_right(tables.edge, start, stop, low) - start
        right = bisect_right(tables.edge, start, stop, high) - start
        left_whole = low == LOWEST or (left > 0 and tables.edge[start + left - 1] == low)
        right_whole = high == HIGHEST or (
            start + right < stop and tables.edge[start + right] - 1 == high
        )
        if high == HIGHEST:
            right = leaves - 1  # the cells behind the last edge are empty
        within = left == right
        if not left_whole or (within and not right_whole):
            if left != met:
                out[n] = part + left
                n += 1
            met = left
            left += 1
        if not right_whole and not within:
            out[n] = part + right
            n += 1
            met = right
            right -= 1
        i, j = left + leaves, right + leaves + 1
        while i < j:
            if i & 1:
                out[n] = tables.first[a] + i
                n += 1
                i += 1
            if j & 1:
                j -= 1
                out[n] = tables.first[a] + j
                n += 1
            i >>= 1
            j >>= 1
    return n


@kernel
def cells_of(tables: Tables, lists: Lists, a: int, v: int, out: Int64s, n: int) -> int:
    """Append the non-empty lists that value v of attribute a meets to `out[:n]`.

    There is at most one per level, and one more for the intervals that cover only part of the
    bottom cell. Those may not contain v; their list is given as its complement (`~number`).
    """
    if a >= len(tables.depth) or tables.depth[a] == 0:
        return n
    start = tables.start[a]
    leaf = bisect_right(tables.edge, start, start + tables.size[a], v) - start
    leaves = 1 << (tables.depth[a] - 1)
    number = tables.first[a] + 2 * leaves + leaf
    if lists.size[number] > 0:
        out[n] = ~number
        n += 1
    cell = leaves + leaf
    while cell > 0:
        number = tables.first[a] + cell
        if lists.size[number] > 0:
            out[n] = number
            n += 1
        cell >>= 1
    return n
