"""Clauses as atoms on levels: the constraint on each attribute, in a given attribute order.

For structures that test one attribute after another. An atom is a union of intervals, or requires
that the attribute be missing. `excludes` becomes the intervals between its values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int64s
from tamis.index.clauses import MISSING, NONE, ClauseArrays
from tamis.index.elementary_predicates import HIGHEST, LOWEST
from tamis.index.kernel import kernel


class Atoms(NamedTuple):
    """Clauses by level: clause i has the atoms `starts[i]:starts[i + 1]`, in ascending order.

    Atom j covers the disjoint intervals `rows[j]:rows[j + 1]`, or requires a missing attribute.
    """

    starts: Int64s
    level: Int64s
    missing: Bools
    rows: Int64s
    low: Int64s
    high: Int64s


@kernel
def atoms_of(clauses: ClauseArrays, slots: Int64s, level_of: Int64s) -> Atoms:
    """The atoms of clauses with at most one term per attribute; `level_of` is by attribute."""
    most = 0
    for slot in slots:
        most += clauses.size[slot]
    starts = np.zeros(len(slots) + 1, np.int64)
    level = np.empty(most, np.int64)
    missing = np.zeros(most, np.bool_)
    rows = np.zeros(most + 1, np.int64)
    low = np.empty(2 * most, np.int64)
    high = np.empty(2 * most, np.int64)
    term_row = np.empty(most, np.int64)  # the first row of each atom
    n = 0
    many = 0
    for i in range(len(slots)):
        row = clauses.start[slots[i]]
        end = row + clauses.size[slots[i]]
        begin = n
        while row < end:
            place = n  # insertion sort by level: a clause has few atoms
            at = level_of[clauses.attribute[row]]
            while place > begin and level[place - 1] > at:
                level[place] = level[place - 1]
                term_row[place] = term_row[place - 1]
                place -= 1
            level[place] = at
            term_row[place] = row
            n += 1
            term = clauses.term[row]
            while row < end and clauses.term[row] == term:
                row += 1
        for atom in range(begin, n):
            row = term_row[atom]
            term, kind = clauses.term[row], clauses.kind[row]
            missing[atom] = kind == MISSING
            gap = LOWEST  # where the next interval of the complement begins
            open_ended = True
            while row < end and clauses.term[row] == term and kind != MISSING:
                if kind == NONE:
                    if clauses.low[row] > gap:
                        low[many], high[many] = gap, clauses.low[row] - 1
                        many += 1
                    if clauses.high[row] == HIGHEST:
                        open_ended = False
                    elif clauses.high[row] >= gap:
                        gap = clauses.high[row] + 1
                else:
                    low[many], high[many] = clauses.low[row], clauses.high[row]
                    many += low[many] <= high[many]
                row += 1
            if kind == NONE and open_ended:
                low[many], high[many] = gap, HIGHEST
                many += 1
            rows[atom + 1] = many
        starts[i + 1] = n
    return Atoms(starts, level[:n], missing[:n], rows[: n + 1], low[:many], high[:many])
