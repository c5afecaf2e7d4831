"""Cells: the values of each attribute, cut where the intervals of clauses begin and end.

Each attribute has up to 30,000 fine cells, and some rows, which are runs of fine cells. If every
distinct interval end has its own cut, each cell is entirely inside or outside every interval, and
the cell is as precise as the value. Otherwise the cuts are spread evenly over the interval ends
(equi-depth), so that skewed clauses get the same share of precision as uniform ones.

The structure also holds statistics of events: how often each attribute is bound, and where its
values fall. The planner needs them to estimate how often a clause will be met.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Floats, Int32s, Int64s, UInt8s, offsets, zeros
from tamis.index.kernel import inlined, kernel
from tamis.match.default.structure.guide import Guide, make_guide

LOWEST, HIGHEST = -(2**63), 2**63 - 1
FINE = 30_000  # maximum cells: with two to spare they fit signed 16-bit lanes
LINES = 320  # lines per block, divided among the attributes: 20 KB, which fit in the L1 cache
ROWS = 200  # maximum rows per attribute
_FEW = 8  # minimum rows per attribute, if it has that many cuts
_HOT = 0.02  # a value that occurs in more than this share of events gets its own row
_PRIOR = 4.0  # weight of the prior, in events


class ValueCells(NamedTuple):
    """Cuts by attribute, as kernels see them.

    Attribute a has the cuts `cuts[start[a]:start[a + 1]]`. The cell of a value is the number of
    cuts at or below it, so there is one cell more than cuts. Rows have the cuts
    `row_cuts[row_start[a]:row_start[a + 1]]`, a subset. Row 0 is "not bound", so values are in row
    1 or above.

    The statistics of events: `bound` is how often each attribute is bound. The others are
    conditional on that. `below` is the probability that the value is below each cell, and below the
    end. `row_below` is the same for rows. `single` is the probability of one particular value in a
    cell, among those that clauses require.
    """

    start: Int64s
    cuts: Int64s
    row_start: Int64s
    row_cuts: Int64s
    row_of_cell: UInt8s  # those of attribute a begin at `start[a] + a`
    bound: Floats
    below: Floats  # those of attribute a begin at `start[a] + 2 * a`
    row_below: Floats  # those of attribute a begin at `row_start[a] + 2 * a`, with row 1
    single: Floats  # those of attribute a begin at `start[a] + a`
    guide: Guide  # speeds up the search among the cuts


def no_cells() -> ValueCells:
    """Cells without attributes."""
    start, none = np.zeros(1, np.int64), zeros(ValueCells)
    return none._replace(start=start, row_start=start.copy(), guide=make_guide(start, none.cuts))


def cut(
    width: int,
    attribute: Int32s,
    low: Int64s,
    high: Int64s,
    bound_attribute: Int32s,
    bound_code: Int64s,
    events: int,
) -> ValueCells:
    """Build cells from the intervals of clauses (rows of `SOME` terms) and from pairs of events.

    O(rows log rows).
    """
    order = np.argsort(attribute, kind="stable")
    low, high = low[order], high[order]
    edge = np.searchsorted(attribute[order], np.arange(width + 1))
    event_order = np.argsort(bound_attribute, kind="stable")
    codes = bound_code[event_order]
    event_edge = np.searchsorted(bound_attribute[event_order], np.arange(width + 1))
    uses = np.diff(edge)
    likely = uses / max(1, int(uses.max(initial=1)))
    # Rows separate ranges, so attributes with more ranges get more rows.
    ranges = np.bincount(attribute[order][low < high], minlength=width)
    rows = (LINES * ranges / max(1, int(ranges.sum()))).astype(np.int64).clip(_FEW, ROWS)
    parts: list[_Part] = []
    bound = np.zeros(width)
    for a in range(width):
        mine = slice(edge[a], edge[a + 1])
        seen = codes[event_edge[a] : event_edge[a + 1]]
        parts.append(_cut_one(low[mine], high[mine], seen, int(rows[a])))
        # Prior: publishers bind the attributes that subscribers constrain.
        bound[a] = (min(len(seen), events) + _PRIOR * likely[a]) / (events + _PRIOR)
    if not parts:
        return no_cells()
    starts = offsets([len(part.cuts) for part in parts])
    row_starts = offsets([len(part.row_cuts) for part in parts])
    cuts, row_cuts, row_of_cell, below, row_below, single = map(
        np.concatenate, zip(*parts, strict=True)
    )
    guide = make_guide(starts, cuts)
    return ValueCells(
        starts, cuts, row_starts, row_cuts, row_of_cell, bound, below, row_below, single, guide
    )


class _Part(NamedTuple):
    """The part of `ValueCells` for one attribute."""

    cuts: Int64s
    row_cuts: Int64s
    row_of_cell: UInt8s
    below: Floats
    row_below: Floats
    single: Floats


_UNUSED = _Part(
    np.zeros(0, np.int64),
    np.zeros(0, np.int64),
    np.ones(1, np.uint8),
    np.arange(2.0),
    np.arange(2.0),
    np.ones(1),
)


def _cut_one(low: Int64s, high: Int64s, seen: Int64s, rows: int) -> _Part:
    if not len(low):
        return _UNUSED
    ends = np.concatenate([low[low != LOWEST], high[high != HIGHEST] + 1])
    values, counts = np.unique(ends, return_counts=True)
    met, times = np.unique(seen, return_counts=True)
    hot = met[times > max(2, _HOT * len(seen))]
    hot = np.intersect1d(np.concatenate([hot, hot[hot != HIGHEST] + 1]), values)[: rows // 2]
    cuts = np.union1d(_spread(values, counts, FINE - 1 - len(hot)), hot)
    weights = np.bincount(
        np.searchsorted(cuts, values, side="right").clip(1) - 1, counts, len(cuts)
    )
    row_cuts = _spread(cuts, weights, rows - 2)
    if len(hot) and len(cuts) > rows - 2:
        row_cuts = np.union1d(_spread(cuts, weights, rows - 2 - len(hot)), hot)
    opened = np.searchsorted(cuts, row_cuts) + 1  # the first cell of each row
    row = np.searchsorted(opened, np.arange(len(cuts) + 1), side="right")
    # There are too few events to estimate each cell: the share of a row is spread over its cells.
    sizes = np.bincount(row, minlength=len(row_cuts) + 1)
    mass = np.bincount(np.searchsorted(row_cuts, seen, side="right"), minlength=len(sizes))
    share = (mass + _PRIOR / len(sizes)) / (len(seen) + _PRIOR)
    points = np.unique(low[low == high])
    asked = np.bincount(np.searchsorted(row_cuts, points, side="right"), minlength=len(sizes))
    below = np.zeros(len(cuts) + 2)
    np.cumsum((share / sizes)[row], out=below[1:])
    row_below = np.concatenate([[0.0], np.cumsum(share)])
    single = (share / np.maximum(1, asked))[row]
    return _Part(cuts, row_cuts, (row + 1).astype(np.uint8), below, row_below, single)


def _spread(values: Int64s, counts: NDArray[Any], most: int) -> Int64s:
    """At most `most` of the values, with about the same number of ends between any two."""
    if len(values) <= most:
        return values
    ends = np.cumsum(counts)
    wanted = np.arange(1, most + 1) * (float(ends[-1]) / (most + 1))
    chosen: Int64s = values[np.unique(np.searchsorted(ends, wanted).clip(0, len(values) - 1))]
    return chosen


@kernel
def cell_of(start: Int64s, cuts: Int64s, attribute: int, value: int) -> int:
    """The fine cell of a value. O(log cells)."""
    low = start[attribute]
    size = start[attribute + 1] - low
    first = low
    while size > 0:  # no branch on the comparison, which is unpredictable
        half = size >> 1
        step = half + 1 if cuts[low + half] <= value else 0
        low += step
        size = size - step if step else half
    return int(low - first)


@inlined
def opens(start: Int64s, cuts: Int64s, attribute: int, cell: int, value: int) -> bool:
    """Whether a value is the first of its cell."""
    return bool(cell > 0 and cuts[start[attribute] + cell - 1] == value)


@inlined
def closes(start: Int64s, cuts: Int64s, attribute: int, cell: int, value: int) -> bool:
    """Whether a value is the last of its cell."""
    after = start[attribute] + cell
    return bool(after < start[attribute + 1] and cuts[after] == value + 1)
