"""Edges between the cells of an attribute: of equal depth, or of equal width as in the papers.

The papers cut a domain like [0, 1] into cells of equal width. Codes have no such domain (the codes
of decimals are images of floats, those of text are labels). By default we therefore cut where the
intervals of clauses begin and end, so that each cell has the same number of ends. Cells of equal
width lie between the lowest and the highest end.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Floats, Int64s
from tamis.index.elementary_predicates import HIGHEST, LOWEST

EQUAL_DEPTH, EQUAL_WIDTH = "equal-depth", "equal-width"
_DECIMAL = 1 << 52  # the least code of a normal double; whole numbers and times are below
_CAST = float(2**63 - 1024)  # the greatest double that an integer of 64 bits can hold


def sorted_ends(low: Int64s, high: Int64s) -> Int64s:
    """The codes where closed intervals begin or have just ended; ascending, with duplicates.

    An interval is exactly a union of cells if both its ends are edges.
    """
    return np.sort(np.concatenate([low[low > LOWEST], high[high < HIGHEST] + 1]))


def cut(ends: Int64s, cells: int, edges: str) -> Int64s:
    """At most `cells - 1` edges between cells.

    Cell k holds the codes from edge k - 1 (inclusive) to edge k (exclusive). With equal depth, all
    distinct ends are edges if they are few enough.
    """
    if edges == EQUAL_WIDTH:
        return (
            equal_width(int(ends[0]), int(ends[-1]), min(cells, len(ends))) if len(ends) else ends
        )
    distinct = np.unique(ends)
    if len(distinct) < cells:
        return distinct
    return np.unique(ends[np.arange(1, cells) * len(ends) // cells])


def equal_width(first: int, last: int, cells: int) -> Int64s:
    """At most `cells - 1` edges that cut what lies between two codes into cells of equal width."""
    edges = np.unique(between(first, last, np.arange(1, cells) / cells))
    return edges[edges > first]


def between(first: int, last: int, shares: Floats) -> Int64s:
    """The codes at some shares (0 to 1) of the way between two codes.

    The way is measured in values: if a code is too large for a whole number or a time, both are
    taken for images of doubles. A wrong guess makes cells uneven and nothing else.
    """
    ends = np.array([first, last], np.int64)
    values = np.copysign(np.abs(ends).view(np.float64), ends)
    decimal = max(abs(first), abs(last)) >= _DECIMAL and bool(np.isfinite(values).all())
    low, high = (values if decimal else ends.astype(np.float64)).tolist()
    points = low * (1 - shares) + high * shares
    if decimal:
        codes = np.abs(points).view(np.int64)
        codes = np.where(points < 0, -codes, codes)
    else:
        codes = np.clip(np.rint(points), -_CAST, _CAST).astype(np.int64)
    within: Int64s = np.clip(codes, first, last)
    return within
