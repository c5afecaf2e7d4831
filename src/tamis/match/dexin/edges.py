"""Equi-depth edges: cut an attribute's codes into cells that are met about equally often.

The papers cut a domain like [0, 1] into cells of equal width. Codes have no such domain (the codes
of decimals are images of floats, those of text are labels). We therefore cut where the intervals of
clauses begin and end, so that each cell has the same number of ends.
"""

from __future__ import annotations

import numpy as np

from tamis.files.arrays import Int64s
from tamis.index.elementary_predicates import HIGHEST, LOWEST


def sorted_ends(low: Int64s, high: Int64s) -> Int64s:
    """The codes where closed intervals begin or have just ended; ascending, with duplicates.

    An interval is exactly a union of cells if both its ends are edges.
    """
    return np.sort(np.concatenate([low[low > LOWEST], high[high < HIGHEST] + 1]))


def cut(ends: Int64s, cells: int) -> Int64s:
    """At most `cells - 1` edges between cells; all distinct ends if they are few enough.

    Cell k holds the codes from edge k - 1 (inclusive) to edge k (exclusive).
    """
    distinct = np.unique(ends)
    if len(distinct) < cells:
        return distinct
    return np.unique(ends[np.arange(1, cells) * len(ends) // cells])
