"""Compiled tests: does one clause lie in another, and does a point lie in a clause?

The clause that may lie in others is *laid out*: for each attribute, the place of its rows. A
*point* is laid out in the same way, as rows of single values; attributes that it leaves unbound
have a row on the attribute of `missing`.
"""

from __future__ import annotations

import numpy as np

from tamis.encode.terms import Terms
from tamis.files.arrays import Int32s, Int64s
from tamis.index.clauses import NONE, SOME
from tamis.index.kernel import inlined, kernel

LEAST, MOST = -(2**63), 2**63 - 1


@kernel
def _ends(rows: Terms, start: int, end: int, spans: Int64s) -> tuple[int, int]:
    """What a clause asks of an attribute, as an interval that contains each first term."""
    attribute = rows.attribute[start]
    if rows.kind[start] == NONE:
        return spans[attribute, 0], spans[attribute, 1]
    low, high, row = rows.low[start], rows.high[start], start
    while row < end and rows.term[row] == rows.term[start]:
        low, high = min(low, rows.low[row]), max(high, rows.high[row])
        row += 1
    return low, high


@kernel
def hulls(rows: Terms, spans: Int64s) -> tuple[Int64s, Int32s, Int64s, Int64s]:
    """Of each clause and attribute, the interval that a clause in it must reach within."""
    clauses = len(rows.starts) - 1
    starts = np.zeros(clauses + 1, np.int64)
    size = len(rows.attribute)
    attribute, low, high = (
        np.empty(size, np.int32),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )
    many = 0
    for clause in range(clauses):
        row, end = rows.starts[clause], rows.starts[clause + 1]
        while row < end:
            after = row
            while after < end and rows.attribute[after] == rows.attribute[row]:
                after += 1
            attribute[many] = rows.attribute[row]
            low[many], high[many] = _ends(rows, row, after, spans)
            many += 1
            row = after
        starts[clause + 1] = many
    return starts, attribute[:many].copy(), low[:many].copy(), high[:many].copy()


@kernel
def lay_out(
    rows: Terms, clause: int, spans: Int64s, first: Int64s, last: Int64s, low: Int64s, high: Int64s
) -> None:
    """Lay out a clause. On an attribute, a clause that it lies in reaches from low to high."""
    row, end = rows.starts[clause], rows.starts[clause + 1]
    while row < end:
        a, start = rows.attribute[row], row
        least, most = LEAST, MOST  # the highest low end, the lowest high end of a term
        bottom, top, some = spans[a, 0], spans[a, 1], False
        while row < end and rows.attribute[row] == a:
            term, begin = rows.term[row], row
            while row < end and rows.attribute[row] == a and rows.term[row] == term:
                row += 1
            if rows.kind[begin] == SOME:
                least = max(least, rows.low[begin])
                most = min(most, rows.high[row - 1])
                some = True
            else:
                if rows.low[begin] == bottom:
                    bottom = rows.high[begin] + 1
                if rows.high[row - 1] == top:
                    top = rows.low[row - 1] - 1
        first[a], last[a] = start, row
        low[a], high[a] = (least, most) if some else (bottom, top)


@kernel
def clear(rows: Terms, clause: int, first: Int64s, last: Int64s, low: Int64s, high: Int64s) -> None:
    """Take the layout of a clause back."""
    for row in range(rows.starts[clause], rows.starts[clause + 1]):
        a = rows.attribute[row]
        first[a] = last[a] = 0
        low[a], high[a] = LEAST, MOST


@inlined
def _inside(low: int, high: int, rows: Terms, start: int, end: int) -> bool:
    """Whether one of the rows contains an interval: between two rows of a term lies a code."""
    row = start
    while row < end and not (rows.low[row] <= low and high <= rows.high[row]):
        row += 1
    return row < end


@kernel
def _allowed_inside(
    mine: Terms, begin: int, stop: int, bottom: int, top: int, rows: Terms, start: int, end: int
) -> bool:
    """Whether all values that a NONE term leaves are in the rows."""
    at = bottom
    for row in range(begin, stop):
        if at < mine.low[row] and not _inside(at, mine.low[row] - 1, rows, start, end):
            return False
        if mine.high[row] == top:
            return True
        at = mine.high[row] + 1
    return _inside(at, top, rows, start, end)


@kernel
def _term_holds(
    mine: Terms, first: int, last: int, spans: Int64s, rows: Terms, start: int, end: int
) -> bool:
    """Whether the rows of one attribute imply a term on it."""
    wanted = rows.kind[start]
    row = first
    while row < last:
        term, begin = mine.term[row], row
        while row < last and mine.term[row] == term:
            row += 1
        if wanted == SOME and mine.kind[begin] == SOME:
            fits = True
            for at in range(begin, row):
                if not _inside(mine.low[at], mine.high[at], rows, start, end):
                    fits = False
                    break
            if fits:
                return True
        elif wanted == SOME:
            a = mine.attribute[begin]
            if _allowed_inside(mine, begin, row, spans[a, 0], spans[a, 1], rows, start, end):
                return True
        elif mine.kind[begin] == NONE:
            fits = True
            for at in range(start, end):
                if not _inside(rows.low[at], rows.high[at], mine, begin, row):
                    fits = False
                    break
            if fits:
                return True
    return False


@kernel
def lies_in(
    mine: Terms, first: Int64s, last: Int64s, spans: Int64s, rows: Terms, clause: int
) -> bool:
    """Whether the clause that is laid out lies in another one."""
    row, end = rows.starts[clause], rows.starts[clause + 1]
    while row < end:
        a, start, term = rows.attribute[row], row, rows.term[row]
        while row < end and rows.attribute[row] == a and rows.term[row] == term:
            row += 1
        if first[a] == last[a]:
            return False
        if row - start == 1 and last[a] - first[a] == 1:  # nearly always
            at = first[a]
            if rows.kind[start] == SOME and mine.kind[at] == SOME:
                if rows.low[start] <= mine.low[at] and mine.high[at] <= rows.high[start]:
                    continue
                return False
        if not _term_holds(mine, first[a], last[a], spans, rows, start, row):
            return False
    return True


@kernel
def contains_point(mine: Terms, first: Int64s, last: Int64s, rows: Terms, clause: int) -> bool:
    """Whether the point that is laid out lies in a clause."""
    row, end = rows.starts[clause], rows.starts[clause + 1]
    while row < end:
        a, start, term = rows.attribute[row], row, rows.term[row]
        while row < end and rows.attribute[row] == a and rows.term[row] == term:
            row += 1
        found = False
        for at in range(first[a], last[a]):
            if _inside(mine.low[at], mine.low[at], rows, start, row):
                found = True
                break
        if first[a] == last[a] or found != (rows.kind[start] == SOME):
            return False
    return True
