"""Why one clause is placed where it is: its cost in every other place.

The deciding function is called once per place, each time with only that place to choose from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tamis.files.arrays import Int32s, Int64s
from tamis.index.clauses import ClauseStorage
from tamis.match.default.planning.survey import cells_of, expect
from tamis.match.default.structure import routes
from tamis.match.default.structure.buckets import COMBINED, GRAINS
from tamis.match.default.structure.routes import (
    DENSE_FROM,
    DENSE_LINES,
    SPARSE_LINES,
    WHOLE,
    RoutedIndex,
    Schemes,
    schemes_of,
)
from tamis.match.plan import ANY, CELLS, COMBINATION, DENSE, SPARSE, VALUE, Choice, Placement

_NEVER, _ALWAYS = np.inf, -1.0  # thresholds (share of events) for the dense family
_FAR = 1e18  # a cost above any other


def choices(
    clauses: ClauseStorage, indexes: Sequence[RoutedIndex], slots: Int64s
) -> tuple[Choice, ...]:
    """The choice made for the clause in each slot."""
    return tuple(
        _choice(index, clauses, np.array([slot]))
        for slot in slots.tolist()
        for index in indexes
        if slot < len(index.kind) and index.kind[slot] != routes.NOWHERE
    )


def _choice(index: RoutedIndex, clauses: ClauseStorage, slot: Int64s) -> Choice:
    here = expect(index, clauses, slot)
    kind, scheme = int(here.kind[0]), int(here.scheme[0])
    taken = Placement(*place_of(index, kind, scheme), float(here.cost[0]), planned=True)
    ways = sorted(_ways(index, clauses, slot), key=lambda way: (not way.planned, way.ns))
    others = tuple(way for way in ways if _where(way) != _where(taken))
    return Choice(float(here.likely[0]), taken, others)


def _where(way: Placement) -> tuple[object, ...]:
    return way.sort, way.attributes, way.cells


def place_of(index: RoutedIndex, kind: int, scheme: int) -> tuple[str, tuple[int, ...], int]:
    """The sort, attributes and cells of a route."""
    if kind != routes.BUCKET:
        return (DENSE if kind == routes.DENSE else SPARSE), (), 0
    if scheme >= COMBINED:
        start = index.schemes.start
        run = slice(int(start[scheme - COMBINED]), int(start[scheme - COMBINED + 1]))
        return COMBINATION, tuple(index.schemes.attribute[run].tolist()), 0
    grain = scheme % GRAINS
    sort = VALUE if grain == 0 else ANY if grain == WHOLE else CELLS
    return sort, (scheme // GRAINS,), cells_of(grain)


def _ways(index: RoutedIndex, clauses: ClauseStorage, slot: Int64s) -> Iterator[Placement]:
    """Both families, every single-attribute key, and every combination in the plan."""
    width = len(index.cells.bound)
    nothing = np.zeros(width, np.int64)
    none = _only(index, nothing, ())
    for sort, since in ((SPARSE, _NEVER), (DENSE, _ALWAYS)):
        costs = index.costs.copy()
        costs[DENSE_FROM] = since
        found = expect(index._replace(schemes=none, costs=costs), clauses, slot)
        planned = sort == SPARSE or bool(index.costs[DENSE_FROM] <= 1)
        yield Placement(sort, (), 0, float(found.cost[0]), planned)
    costs = index.costs.copy()
    costs[SPARSE_LINES] = costs[DENSE_LINES] = _FAR
    keyed = index._replace(costs=costs)
    mentioned = np.unique(clauses.terms(slot)[1][0])
    for a in mentioned[mentioned < width].tolist():
        for grain in range(WHOLE + 1):
            allowed = nothing.copy()
            allowed[a] = 1 << grain
            found = expect(keyed._replace(schemes=_only(index, allowed, ())), clauses, slot)
            if found.kind[0] == routes.BUCKET:
                planned = bool(index.schemes.allowed[a] >> grain & 1)
                place = place_of(index, routes.BUCKET, GRAINS * a + grain)
                yield Placement(*place, float(found.cost[0]), planned)
    for c in _within(index.schemes, mentioned):
        place = place_of(index, routes.BUCKET, COMBINED + c)
        found = expect(keyed._replace(schemes=_only(index, nothing, place[1])), clauses, slot)
        if found.kind[0] == routes.BUCKET:
            yield Placement(*place, float(found.cost[0]), planned=True)


def _within(schemes: Schemes, attributes: Int32s) -> list[int]:
    """The combinations whose attributes are all among these."""
    if len(schemes.start) == 1:
        return []
    inside = np.logical_and.reduceat(np.isin(schemes.attribute, attributes), schemes.start[:-1])
    return np.flatnonzero(inside).tolist()


def _only(index: RoutedIndex, allowed: Int64s, combined: tuple[int, ...]) -> Schemes:
    """Schemes with only these grains, and one combination or none."""
    return schemes_of(allowed, [combined] if combined else [], index.cells.bound)
