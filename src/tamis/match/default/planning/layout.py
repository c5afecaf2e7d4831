"""The layout: cells, keys and columns chosen for the current clauses and the events seen.

A sample of the clauses is routed with all keys and columns allowed. Those that do not pay off are
then removed. A key that few clauses use costs every event a look-up and saves little. A column that
few clauses constrain costs every block a line and rules out little.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Floats, Int32s, Int64s
from tamis.index.clauses import SOME, ClauseStorage
from tamis.match.default.planning.event_sample import EventSample
from tamis.match.default.planning.survey import nearness, rarest_points, survey
from tamis.match.default.structure.buckets import COMBINED, GRAINS
from tamis.match.default.structure.cells import ValueCells, cut
from tamis.match.default.structure.family import BLOCK, Family, family_with_room, make_family
from tamis.match.default.structure.packed_clauses import (
    COUNT_BITS,
    COUNT_MASK,
    ROW,
    PackedClauses,
    PackedTable,
)
from tamis.match.default.structure.routes import (
    BUCKET,
    DENSE,
    DENSE_FROM,
    DENSE_LINES,
    LINE,
    PROBE,
    SPARSE,
    SPARSE_LINES,
    VERIFY,
    VISIT,
    WHOLE,
    RoutedIndex,
    empty_index,
    schemes_of,
)

_SURVEYED = 50_000  # maximum clauses in a sample
_FEW = 512  # up to this many clauses fit in one block, and keys gain nothing
_SHARE = 1 / 50  # minimum share of a family's clauses that constrain a column
_COLUMNS = 30  # maximum columns: two lines of a record
_SPARE = 1.05  # spare capacity: 5 % above the expected number
_LOOKED_AT = 256  # maximum combinations, and attributes, to test for independence
_BY_CHANCE = 4.0  # values that co-occur up to this many times the expected rate are independent
_RARE = 1e-3  # a combination met less often than this is rare enough in any case
_COMBINED = 3  # maximum attributes of a key
_GRAINS = (1 << (WHOLE + 1)) - 1


class SurveyedClauses(NamedTuple):
    """A sample of clauses, copied to its own table so that any thread can plan from it."""

    clauses: PackedTable
    live: int  # the number of clauses sampled from

    @staticmethod
    def of(clauses: ClauseStorage) -> SurveyedClauses:
        """A sample of the current clauses."""
        live = clauses.live_slots()
        rng = np.random.default_rng(len(live))
        some = live if len(live) <= _SURVEYED else rng.choice(live, _SURVEYED, replace=False)
        copied = PackedTable()
        copied.add(np.arange(len(some)), *clauses.terms(some))
        return SurveyedClauses(copied, len(live))


def lay_out(
    asked: SurveyedClauses, sample: EventSample, costs: Floats, width: int, slots: int
) -> RoutedIndex:
    """An empty index with a layout for clauses like these."""
    clauses = asked.clauses
    some = clauses.live_slots()
    starts, (attribute, _, kind, low, high) = clauses.terms(some)
    wanted = kind == SOME
    cells = cut(
        width,
        attribute[wanted],
        low[wanted],
        high[wanted],
        sample.attribute,
        sample.code,
        sample.events,
    )
    used = np.bincount(attribute, minlength=width)
    columns, costs = _columns(used, len(some)), costs.copy()
    costs[SPARSE_LINES] = costs[DENSE_LINES] = max(1, len(columns)) * costs[LINE] / BLOCK
    schemes = schemes_of(np.zeros(width, np.int64), [], cells.bound)
    index = empty_index(cells, schemes, costs, columns, columns, slots)
    if asked.live <= _FEW:
        return index
    scale = asked.live / len(some)
    index = _with_schemes(index, clauses, some, scale, sample)
    surveyed = survey(index, clauses.view, some)
    if int((surveyed.kind == DENSE).sum()) * scale < BLOCK:
        index.costs[DENSE_FROM] = np.inf  # too few clauses for a separate pass
        surveyed = survey(index, clauses.view, some)
    owner = np.repeat(surveyed.kind, np.diff(starts))
    families: list[Family] = []
    for which in (SPARSE, DENSE):
        count = int((surveyed.kind == which).sum())
        columns = _columns(np.bincount(attribute[owner == which], minlength=width), count)
        if which == SPARSE:
            columns = _ordered(columns, cells)
        # Reserve the full expected capacity now: untouched memory costs nothing.
        family = make_family(columns, cells, dense=which == DENSE)
        families.append(family_with_room(family, int(count * scale * _SPARE)))
    return index._replace(sparse=families[0], dense=families[1])


def in_order(index: RoutedIndex, clauses: PackedClauses) -> Int64s:
    """All live slots, clauses with similar intervals together, so that blocks can be skipped.

    If another thread changes the clauses meanwhile, this may read overwritten rows and misplace a
    clause in the order. That affects only speed.
    """
    where = clauses.where.copy()
    # Clauses added since may be in newer memory, past the end of these rows.
    ends = ROW * ((where >> COUNT_BITS) + (where & COUNT_MASK))
    live = np.flatnonzero((where >= 0) & (ends <= len(clauses.rows)))
    clauses = clauses._replace(where=where)
    first = index.sparse.attribute[index.sparse.attribute >= 0][:2].astype(np.int64)
    attributes = np.stack([first, np.diff(index.cells.row_start)[first] + 1], axis=1).ravel()
    if len(live) <= _FEW or not len(attributes):
        return live
    keys = np.empty(len(live), np.int64)
    nearness(index.cells, clauses, live, attributes, keys)
    return live[np.argsort(keys, kind="stable")]


def _columns(asked: Int64s, clauses: int) -> Int32s:
    """The attributes that enough clauses constrain, at most `_COLUMNS`, ascending."""
    enough = np.flatnonzero(asked >= max(1, _SHARE * clauses))
    most = enough[np.argsort(-asked[enough], kind="stable")][:_COLUMNS]
    return np.sort(most).astype(np.int32)


def _ordered(columns: Int32s, cells: ValueCells) -> Int32s:
    """The columns, those with the most rows first: they separate clauses best."""
    rows = np.diff(cells.row_start)[columns]
    return columns[np.argsort(-rows, kind="stable")]


def _with_schemes(
    index: RoutedIndex, clauses: PackedTable, some: Int64s, scale: float, sample: EventSample
) -> RoutedIndex:
    """The index with only the keys that pay off."""
    bound = index.cells.bound
    every = np.full(len(bound), _GRAINS, np.int64)
    open_to_all = index._replace(schemes=schemes_of(every, [], bound))
    combined = _combinations(open_to_all, clauses, some, scale, sample)
    index = index._replace(schemes=schemes_of(every, combined, bound))
    for _ in range(2):  # removing a key moves its clauses to other keys, which may then pay off
        routed = survey(index, clauses.view, some)
        keyed = routed.kind == BUCKET
        names, which = np.unique(routed.scheme[keyed], return_inverse=True)
        saved = scale * np.bincount(which, (routed.in_family - routed.cost)[keyed], len(names))
        pays = np.zeros(len(names), np.bool_)
        # A key outside the survey stays allowed if a single clause is worth its look-up.
        single = index.costs[PROBE] * bound < routed.in_family.mean()
        allowed = np.where(single, _GRAINS, 0)
        kept: list[tuple[int, ...]] = []
        for i, name in enumerate(names.tolist()):
            if name >= COMBINED:
                attributes = combined[name - COMBINED]
                pays[i] = saved[i] > _looked_up(index, attributes)
                if pays[i]:
                    kept.append(attributes)
            else:
                pays[i] = saved[i] > _looked_up(index, (name // GRAINS,))
                allowed[name // GRAINS] &= ~(1 << (name % GRAINS))
                allowed[name // GRAINS] |= int(pays[i]) << (name % GRAINS)
        combined = kept
        index = index._replace(schemes=schemes_of(allowed, combined, bound))
    return index


def _looked_up(index: RoutedIndex, attributes: tuple[int, ...]) -> float:
    """The cost of a key per event, whether found or not.

    A combination is considered whenever its rarest attribute is bound.
    """
    bound = index.cells.bound[list(attributes)]
    considered = index.costs[VISIT] * bound.min() if len(attributes) > 1 else 0.0
    return float(index.costs[PROBE] * bound.prod() + considered)


def _combinations(
    index: RoutedIndex, clauses: PackedTable, some: Int64s, scale: float, sample: EventSample
) -> list[tuple[int, ...]]:
    """Sets of attributes whose combined values form a key that saves more than it costs."""
    attribute = np.empty(len(some) * _COMBINED, np.int64)
    chance = np.empty(len(some) * _COMBINED)
    rarest_points(index, clauses.view, some, _COMBINED, attribute, chance)
    table, met = attribute.reshape(-1, _COMBINED), chance.reshape(-1, _COMBINED)
    found: list[tuple[int, ...]] = []
    for many in range(2, _COMBINED + 1):
        rows = np.flatnonzero(table[:, many - 1] >= 0)
        sets, which = np.unique(np.sort(table[rows, :many], axis=1), axis=0, return_inverse=True)
        fewer = met[rows, 0] - met[rows, :many].prod(axis=1)
        each = index.costs[VISIT] + 0.25 * index.costs[VERIFY]
        saved = scale * each * np.bincount(which.ravel(), fewer, len(sets))
        for attributes, gain in zip(sets.tolist(), saved.tolist(), strict=True):
            if gain > _looked_up(index, tuple(attributes)):
                found.append(tuple(attributes))
    return _independent(found, index.cells, clauses, sample)


def _independent(
    combined: list[tuple[int, ...]], cells: ValueCells, clauses: PackedTable, sample: EventSample
) -> list[tuple[int, ...]]:
    """The combinations whose values do not occur together more often than by chance.

    If the values of two attributes are correlated, in clauses and in events, a key of both is met
    as often as a key of one and gains nothing. The test is skipped if it would take too long.
    """
    width = len(cells.bound)
    if not combined or len(combined) > _LOOKED_AT or width > _LOOKED_AT:
        return combined
    starts, (attribute, _, kind, low, high) = clauses.terms(clauses.live_slots())
    clause = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    point = (kind == SOME) & (low == high)
    asked = _table(clause[point], attribute[point], low[point], len(starts) - 1, width)
    # A sample does not record event boundaries. Attributes ascend within an event, so a descent
    # marks most boundaries.
    event = np.cumsum(np.diff(sample.attribute, prepend=sample.attribute[:1]) < 0, dtype=np.int64)
    seen = _table(event, sample.attribute, sample.code, sample.events, width)
    kept: list[tuple[int, ...]] = []
    for attributes in combined:
        single = [_together(asked, seen, (a,)) for a in attributes]
        both = _together(asked, seen, attributes)
        if both <= _BY_CHANCE * float(np.prod(single)) + _RARE:
            kept.append(attributes)
    return kept


_Values = tuple[Int64s, Bools]


def _table(row: Int64s, attribute: Int32s, value: Int64s, rows: int, width: int) -> _Values:
    """Values by row and attribute, and where they exist. Of several values, one is kept."""
    inside = (attribute < width) & (row < rows)
    values, there = np.zeros((rows, width), np.int64), np.zeros((rows, width), np.bool_)
    values[row[inside], attribute[inside]] = value[inside]
    there[row[inside], attribute[inside]] = True
    return values, there


def _together(asked: _Values, seen: _Values, attributes: tuple[int, ...]) -> float:
    """The probability that an event has the values that a clause requires."""
    keys = []
    for values, there in (asked, seen):
        whole = there[:, attributes].all(axis=1)
        weights = np.array([0x9E3779B97F4A7C15 >> (7 * i) | 1 for i in range(len(attributes))])
        some = values[whole][:, attributes].view(np.uint64)
        keys.append((some * weights.astype(np.uint64)).sum(axis=1, dtype=np.uint64))
    mine, events = keys
    if not len(mine) or not len(events):
        return 0.0
    ordered = np.sort(events)
    met = np.searchsorted(ordered, mine, side="right") - np.searchsorted(ordered, mine)
    return float(met.mean()) / max(1, len(seen[0]))
