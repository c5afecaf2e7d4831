"""Which attributes of clauses get bitmaps, and where their values are cut.

A plan is made from a sample of clauses. Clauses that come later are placed by the same plan: an end
of an interval that is not an edge only makes a few more comparisons.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.terms import Terms
from tamis.files.arrays import Int32s, Int64s, UInt16s, offsets
from tamis.index.clauses import SOME
from tamis.match.gpu.layout import (
    FIRST_GAP,
    LAST_RANK,
    MOST_EDGES,
    OPEN_HIGH,
    QUEUE_BYTES,
    TILE,
    WARPS,
    WORDS,
)

SAMPLE = 1 << 18  # clauses: so many show nearly all edges, and are sorted in a second
_MOST_COLUMNS = 24
_MOST_LINES = 256
_ENOUGH_LINES = 32  # of a column: then the rest of the shared memory is better spent on bounds
_RARE = 64  # an attribute of fewer than one clause in so many gets no column
_LOWEST, _HIGHEST = -(2**63), 2**63 - 1


class ColumnPlan(NamedTuple):
    """The columns of an index. Their number is even; an attribute of -1 fills up."""

    attributes: Int32s
    column_of: Int32s  # by attribute; -1 for one without a column
    edges: Int64s  # ascending within each column
    edge_starts: Int32s
    cell_edges: UInt16s  # per column, ranks: cell k ends before edge k
    lines: int  # of a column: its cells, and last the line of events that do not bind it
    shared_bounds: bool  # whether the bounds of a tile fit into shared memory, beside its lines

    @property
    def width(self) -> int:
        """The number of columns."""
        return len(self.attributes)

    @property
    def all_lines(self) -> int:
        """The lines of a tile. The last one says which clauses are verified by rows."""
        return self.width * self.lines + 1

    @property
    def shared_bytes(self) -> int:
        """The bytes of a tile that go into shared memory, without queues."""
        return self.all_lines * WORDS * 4 + (TILE * self.width * 4 if self.shared_bounds else 0)


def plan_columns(terms: Terms, width: int, shared_bytes: int) -> ColumnPlan:
    """Columns for clauses like these, over `width` attributes, for so much shared memory."""
    attributes = _popular(terms, width)
    column_of = np.full(max(width, 1), -1, np.int32)
    used = np.flatnonzero(attributes >= 0)
    column_of[attributes[used]] = used
    lines, shared_bounds = _lines(len(attributes), shared_bytes)
    edges: list[Int64s] = []
    cell_edges = np.full((len(attributes), lines - 2), OPEN_HIGH, np.uint16)
    for column, attribute in enumerate(attributes):
        mine = (terms.attribute == attribute) & (terms.kind == SOME)
        low, high = terms.low[mine], terms.high[mine]
        low, high = low[low > _LOWEST], high[high < _HIGHEST]
        edges.append(_spread(np.unique(np.concatenate([low, high])), MOST_EDGES))
        begin = np.concatenate([ranks(edges[-1], low), ranks(edges[-1], high) + 1])
        cut = _cells(begin, lines - 1)
        cell_edges[column, : len(cut)] = cut
    starts = offsets(np.array([len(each) for each in edges], np.int64))
    return ColumnPlan(
        attributes,
        column_of,
        np.concatenate([*edges, np.zeros(1, np.int64)]),  # never empty: kernels get its address
        starts.astype(np.int32),
        cell_edges,
        lines,
        shared_bounds,
    )


def ranks(edges: Int64s, codes: Int64s) -> Int64s:
    """The ranks of codes among the edges of a column."""
    at = np.searchsorted(edges, codes)
    exact = np.zeros(len(codes), np.int64)
    inside = np.flatnonzero(at < len(edges))
    exact[inside] = edges[at[inside]] == codes[inside]
    return FIRST_GAP + 2 * at + exact


def _popular(terms: Terms, width: int) -> Int32s:
    """The attributes that most clauses ask about, an even number of them."""
    clause = np.repeat(np.arange(terms.clauses), np.diff(terms.starts))
    first = np.ones(len(clause), np.bool_)
    first[1:] = (clause[1:] != clause[:-1]) | (terms.attribute[1:] != terms.attribute[:-1])
    uses = np.bincount(terms.attribute[first], minlength=width)
    order = np.argsort(-uses, kind="stable")[:_MOST_COLUMNS]
    chosen = np.sort(order[uses[order] * _RARE > terms.clauses])
    fill = 2 if not len(chosen) else len(chosen) % 2
    return np.concatenate([chosen, np.full(fill, -1)]).astype(np.int32)


def _lines(columns: int, shared_bytes: int) -> tuple[int, bool]:
    """Lines for each column, and whether bounds have room beside them."""
    free = shared_bytes - WARPS * QUEUE_BYTES
    line = WORDS * 4
    with_bounds = ((free - TILE * columns * 4) // line - 1) // columns
    if with_bounds >= _ENOUGH_LINES:
        return min(with_bounds, _MOST_LINES), True
    return max(3, min((free // line - 1) // columns, _MOST_LINES)), False


def _spread(values: Int64s, most: int) -> Int64s:
    """At most so many of the values, evenly."""
    if len(values) <= most:
        return values
    return values[np.arange(most) * len(values) // most]


def _cells(begin: Int64s, cells: int) -> UInt16s:
    """At most `cells - 1` edges, where intervals begin or have ended: cells of equal depth."""
    distinct = np.unique(begin[begin <= LAST_RANK])
    if len(distinct) >= cells:
        ordered = np.sort(begin)
        distinct = np.unique(ordered[np.arange(1, cells) * len(ordered) // cells])
    return distinct[: cells - 1].astype(np.uint16)
