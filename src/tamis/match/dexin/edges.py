"""Equi-depth edges: where to cut an attribute's codes into cells that are met about equally often.

Papers cut a domain such as [0, 1] into cells of equal width. Codes have no such domain (those of
decimals are images of floats, those of text are labels), so cells are cut where clauses begin and
end: as many ends to a cell as to any other.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


def sorted_ends(low: Int64s, high: Int64s) -> Int64s:
    """The codes at which closed intervals begin, or have just ended; ascending, with repeats.

    An interval whose ends are both edges is a union of cells, exactly.
    """
    return np.sort(np.concatenate([low[low > _LOWEST], high[high < _HIGHEST] + 1]))


def cut(ends: Int64s, cells: int) -> Int64s:
    """At most `cells - 1` edges between cells: all ends, where there are no more distinct ones.

    Cell k holds the codes from edge k - 1 on, below edge k.
    """
    distinct = np.unique(ends)
    if len(distinct) < cells:
        return distinct
    return np.unique(ends[np.arange(1, cells) * len(ends) // cells])
