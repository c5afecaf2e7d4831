"""The grid of H-Tree: a few attributes, each cut into overlapping cells.

On each level of the tree, a clause is in some branches and an event follows some; both are bit
sets. Bit 0 is for clauses that do not constrain the attribute of the level. Then each cell has one
bit for clauses that cover at least part of it. One more bit per cell stands for the cell extended
on both sides; it is for clauses that lie within the extended cell and cross an edge of the cell.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.clauses import SOME, ClauseArrays
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import bisect_right
from tamis.match.dexin.edges import EQUAL_WIDTH, between, cut, sorted_ends

CELLS = 31  # maximum: two bits per cell plus one fit into a word
ANY = 1  # the branch of clauses that do not constrain the attribute


class CellGrid(NamedTuple):
    """View for kernels: one row per level. Entries after the last cell are unused."""

    level: Int64s  # by attribute; -1: no level
    attribute: Int64s  # by level
    cells: Int64s  # number of cells by level
    edge: Int64s  # cell i ends below edge i
    lower: Int64s  # the first code of the extended cell i
    upper: Int64s  # the last code of the extended cell i


def empty_grid(levels: int, width: int) -> CellGrid:
    """Levels of one cell and without an attribute: every clause goes to `ANY`."""
    return CellGrid(
        np.full(width, -1, np.int64),
        np.full(levels, -1, np.int64),
        np.ones(levels, np.int64),
        np.zeros((levels, CELLS), np.int64),
        np.full((levels, CELLS), LOWEST, np.int64),
        np.full((levels, CELLS), HIGHEST, np.int64),
    )


class GridShape(NamedTuple):
    """How a grid is cut: levels, cells of a level, overlap of cells, sort of edges."""

    levels: int
    cells: int
    overlap: float
    edges: str


def choose(attribute: Int32s, low: Int64s, high: Int64s, shape: GridShape) -> CellGrid:
    """A grid over the attributes whose cells rule out the most intervals, best first.

    Only the most frequent attributes are considered.
    """
    levels = shape.levels
    grid = empty_grid(levels, int(attribute.max(initial=-1)) + 1)
    uses = np.bincount(attribute)
    frequent = np.argsort(-uses, kind="stable")[: 4 * levels]
    ranked: list[tuple[float, int, Int64s, Int64s]] = []
    for a in frequent[uses[frequent] > 0].tolist():
        mine = attribute == a
        ends = sorted_ends(low[mine], high[mine])
        edges = cut(ends, shape.cells, shape.edges)
        first = np.searchsorted(edges, low[mine], side="right")
        last = np.searchsorted(edges, high[mine], side="right")
        share = (last - first + 1) / (len(edges) + 1)
        ranked.append((float((1 - share).sum()), a, ends, edges))
    ranked.sort(key=lambda rank: (-rank[0], rank[1]))
    for level, (_, a, ends, edges) in enumerate(ranked[:levels]):
        grid.level[a] = level
        grid.attribute[level] = a
        grid.cells[level] = len(edges) + 1
        grid.edge[level, : len(edges)] = edges
        extend = _extend_by_width if shape.edges == EQUAL_WIDTH else _extend_by_rank
        extend(ends, edges, shape.overlap, grid.lower[level], grid.upper[level])
    return grid


def _extend_by_rank(
    ends: Int64s, edges: Int64s, overlap: float, lower: Int64s, upper: Int64s
) -> None:
    """Extend both neighbours of each edge by a share of the other's ends."""
    # Ranks of the edges among the ends, and of both sides of the domain.
    ranks = np.concatenate([[0], np.searchsorted(ends, edges), [len(ends)]])
    reach = (overlap * np.diff(ranks)).astype(np.int64)
    for cell in range(len(edges)):
        lower[cell + 1] = ends[ranks[cell + 1] - reach[cell]]
        beyond = ranks[cell + 1] + reach[cell + 1]
        upper[cell] = ends[min(beyond, len(ends) - 1)] - 1


def _extend_by_width(
    ends: Int64s, edges: Int64s, overlap: float, lower: Int64s, upper: Int64s
) -> None:
    """Extend both neighbours of each edge by a share of the other's width."""
    if len(edges):
        limits = [int(ends[0]), *edges.tolist(), int(ends[-1])]
        for cell, edge in enumerate(edges.tolist()):
            lower[cell + 1] = between(limits[cell], edge, np.array([1 - overlap]))[0]
            upper[cell] = between(edge, limits[cell + 2], np.array([overlap]))[0] - 1


@kernel
def branches_of(clauses: ClauseArrays, slot: int, grid: CellGrid, most: float, out: Int64s) -> None:
    """Write the branches of a clause on each level, for at most `most` paths.

    If there are more paths, the clause goes to `ANY` on the level with the most branches; this
    repeats until the limit holds.
    """
    out[:] = ANY
    row = clauses.start[slot]
    end = row + clauses.size[slot]
    while row < end:
        after = row + 1
        while after < end and clauses.term[after] == clauses.term[row]:
            after += 1
        level = (
            grid.level[clauses.attribute[row]] if clauses.attribute[row] < len(grid.level) else -1
        )
        if level >= 0 and clauses.kind[row] == SOME and out[level] == ANY:
            out[level] = _cover(clauses, row, after, grid, level)
        row = after
    while True:
        paths = 1.0  # a float: 31 cells on 16 levels overflow an integer
        widest = 0
        for level in range(len(out)):
            paths *= count_branches(out[level])
            if count_branches(out[level]) > count_branches(out[widest]):
                widest = level
        if paths <= most:
            break
        out[widest] = ANY


@kernel
def _cover(clauses: ClauseArrays, row: int, after: int, grid: CellGrid, level: int) -> int:
    """The branches of one term: a single one if its only interval lies within an extended cell."""
    cells = grid.cells[level]
    covered = 0
    for r in range(row, after):
        low, high = clauses.low[r], clauses.high[r]
        first = bisect_right(grid.edge[level], 0, cells - 1, low)
        last = bisect_right(grid.edge[level], 0, cells - 1, high)
        for cell in range(first, last + 1):
            within = grid.lower[level, cell] <= low and high <= grid.upper[level, cell]
            if within and first < last and after - row == 1:
                return 1 << (1 + CELLS + cell)
            covered |= 1 << (1 + cell)
    if count_branches(covered) == cells:
        return ANY  # every value meets it
    return covered


@kernel
def count_branches(bits: int) -> int:
    """The number of branches in a set."""
    n = 0
    while bits:
        bits &= bits - 1
        n += 1
    return n


@kernel
def branches_met(grid: CellGrid, level: int, code: Int64s, begin: int, end: int) -> int:
    """The branches that an event follows; its values of the attribute are `code[begin:end]`."""
    cells = grid.cells[level]
    met = ANY
    for at in range(begin, end):
        own = bisect_right(grid.edge[level], 0, cells - 1, code[at])
        met |= 1 << (1 + own)
        for cell in range(max(own - 1, 0), min(own + 2, cells)):
            if grid.lower[level, cell] <= code[at] <= grid.upper[level, cell]:
                met |= 1 << (1 + CELLS + cell)
    return met
