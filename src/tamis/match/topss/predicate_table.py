"""Predicates in tables: one cell per attribute, comparator and constant (TOPSS, section 3.2)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.files.arrays import Bools, Int32s, Int64s
from tamis.index.bits import Words, clear_bit, lowest, mask, set_bit
from tamis.index.blocks import Blocks, Lists
from tamis.index.elementary_predicates import AT_LEAST, AT_MOST, BOUND, COMPARATORS, EQUAL, UNEQUAL
from tamis.index.growth import grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import bisect_left
from tamis.match.topss.predicate_vector import PredicateVector

_SHIFTED = 16  # up to one new constant in 16 shifts the cells; more cause a new layout


class Domains(NamedTuple):
    """The meaning of each attribute's cells.

    Without ranks, cell i stands for the constant `base + i`. With ranks, it stands for the i-th
    constant in the attribute's ascending list.
    """

    base: Int64s
    span: Int64s  # number of cells per comparator
    ranked: Bools
    lists: Lists
    constants: Int64s


class TableCells(NamedTuple):
    """View for kernels: list `cluster` has the ids of its cells, -1 for an empty cell."""

    domains: Domains
    lists: Lists
    ids: Int32s
    word_lists: Lists
    occupied: Words  # one bit per cell


class PredicateTable(PredicateVector):
    """Tables over the finite domain of each attribute, indexed by the event's value.

    The domain comes from the data. It extends from the lowest to the highest constant if that is at
    most `domain` cells; otherwise it has only the constants that occur, by rank. `skip_empty` uses
    a bitmap to jump to the next occupied cell instead of visiting every cell.

    add, remove O(1) within the domain. A new constant outside the domain causes a new layout of the
    attribute's cells; a new constant between ranks shifts the cells behind it. evaluate: O(domain)
    per attribute when all cells are visited, O(satisfied + domain / 64) otherwise.
    """

    def __init__(self, domain: int, skip_empty: bool = True) -> None:
        self._domain = domain
        self._skip = skip_empty
        super().__init__()

    def clear(self) -> None:
        super().clear()
        self._base = np.zeros(0, np.int64)
        self._span = np.zeros(0, np.int64)
        self._ranked = np.zeros(0, np.bool_)
        self._live = np.zeros(0, np.int64)  # number of predicates by attribute
        self._constants = Blocks(np.int64)
        self._cells = Blocks(np.int32)
        self._occupied = Blocks(np.uint64)

    @property
    def view(self) -> TableCells:
        """The arrays for kernels."""
        domains = Domains(
            self._base, self._span, self._ranked, self._constants.lists, self._constants.pools[0]
        )
        return TableCells(
            domains,
            self._cells.lists,
            self._cells.pools[0],
            self._occupied.lists,
            self._occupied.pools[0],
        )

    def evaluate(
        self, starts: Int64s, attribute: Int32s, code: Int64s, bits: Words
    ) -> tuple[int, int]:
        looked, cells = _evaluate(self.view, starts, attribute, code, bits, self._skip)
        return looked, cells

    def check(self) -> None:
        super().check()
        for part in (self._constants, self._cells, self._occupied):
            part.check()
        held = 0
        for a in range(len(self._span)):
            (constants,) = self._constants.items(a)
            assert len(constants) == (self._span[a] if self._ranked[a] else 0)
            assert (constants[1:] > constants[:-1]).all(), "constants ascend"
            mine = 0
            for cluster in range(a * COMPARATORS, (a + 1) * COMPARATORS):
                (ids,), (words,) = self._cells.items(cluster), self._occupied.items(cluster)
                span = 1 if cluster % COMPARATORS == BOUND else self._span[a]
                assert len(ids) in (0, span), "a comparator has all cells or none"
                assert (words == _bitmap(ids)).all(), "the bitmap marks the occupied cells"
                mine += int((ids >= 0).sum())
            assert mine == self._live[a]
            held += mine
        assert held == len(self)

    def _find(self, cluster: Int64s, constant: Int64s) -> Int64s:
        return _find_all(self.view, cluster, constant)

    def _insert(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        attribute = cluster // COMPARATORS
        self._fit(int(attribute.max()) + 1)
        np.add.at(self._live, attribute, 1)
        homeless = np.flatnonzero(~_put_all(self.view, cluster, constant, ids))
        if len(homeless):
            breaks = np.flatnonzero(np.diff(attribute[homeless])) + 1
            for part in np.split(homeless, breaks):
                self._widen(int(attribute[part[0]]), cluster[part], constant[part], ids[part])

    def _delete(self, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        _clear_all(self.view, cluster, constant)
        attribute = cluster // COMPARATORS
        np.subtract.at(self._live, attribute, 1)
        touched = np.unique(attribute)
        # A span keeps its unused cells; ranks are assigned again when three in four are unused.
        sparse = self._ranked[touched] & (4 * self._live[touched] < self._span[touched])
        for a in touched[sparse | (self._live[touched] == 0)].tolist():
            none = np.zeros(0, np.int64)
            self._lay_out(a, none, none, none)

    def _fit(self, attributes: int) -> None:
        if attributes > len(self._span):
            for name in ("_base", "_span", "_live", "_ranked"):
                setattr(self, name, grown(getattr(self, name), attributes))
            self._constants.number(len(self._span))
            self._cells.number(len(self._span) * COMPARATORS)
            self._occupied.number(len(self._span) * COMPARATORS)

    def _widen(self, a: int, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        """Create cells for predicates of one attribute that have none."""
        bound = cluster % COMPARATORS == BOUND
        for at, id in zip(cluster[bound].tolist(), ids[bound].tolist(), strict=True):
            self._set_cells(at, np.array([id], np.int32))
        cluster, constant, ids = cluster[~bound], constant[~bound], ids[~bound]
        if len(ids) == 0:
            return
        places = _places(self.view, a, constant)
        fresh = np.unique(constant[places < 0])
        if self._ranked[a] and len(fresh) * _SHIFTED <= self._span[a]:
            self._open(a, fresh)
        elif len(fresh):
            self._lay_out(a, cluster, constant, ids)
            return
        for at in np.unique(cluster).tolist():
            if self._cells.size[at] == 0:
                self._set_cells(at, np.full(self._span[a], -1, np.int32))
        assert _put_all(self.view, cluster, constant, ids).all()

    def _open(self, a: int, fresh: Int64s) -> None:
        """Insert cells for new constants between the ranks."""
        if len(fresh) == 0:
            return
        (constants,) = self._constants.items(a)
        gaps = np.searchsorted(constants, fresh)
        _insert_items(self._constants, a, gaps, fresh)
        self._span[a] += len(fresh)
        for cluster in range(a * COMPARATORS, (a + 1) * COMPARATORS):
            if cluster % COMPARATORS != BOUND and self._cells.size[cluster]:
                _insert_items(self._cells, cluster, gaps, np.full(len(gaps), -1, np.int32))
                _set_items(self._occupied, cluster, _bitmap(self._cells.items(cluster)[0]))

    def _lay_out(self, a: int, cluster: Int64s, constant: Int64s, ids: Int64s) -> None:
        """Rebuild the layout of an attribute's cells and add some predicates."""
        comparators = [at for at in range(COMPARATORS) if at != BOUND]
        for comparator in comparators:
            (held,) = self._cells.items(a * COMPARATORS + comparator)
            mine = held[held >= 0].astype(np.int64)
            ids = np.concatenate([ids, mine])
            constant = np.concatenate([constant, self._constant[mine]])
            cluster = np.concatenate([cluster, self._cluster[mine]])
        low, high = (int(constant.min()), int(constant.max())) if len(ids) else (0, -1)
        ranked = high - low >= self._domain
        constants = np.unique(constant) if ranked else np.zeros(0, np.int64)
        self._base[a], self._ranked[a] = low, ranked
        self._span[a] = len(constants) if ranked else high - low + 1
        _set_items(self._constants, a, constants)
        places = np.searchsorted(constants, constant) if ranked else constant - low
        for comparator in comparators:
            mine = cluster == a * COMPARATORS + comparator
            cells = np.full(self._span[a] if mine.any() else 0, -1, np.int32)
            cells[places[mine]] = ids[mine]
            self._set_cells(a * COMPARATORS + comparator, cells)
        if self._live[a] == 0:
            self._set_cells(a * COMPARATORS + BOUND, np.zeros(0, np.int32))

    def _set_cells(self, cluster: int, ids: Int32s) -> None:
        _set_items(self._cells, cluster, ids)
        _set_items(self._occupied, cluster, _bitmap(ids))


def _set_items(blocks: Blocks, number: int, items: NDArray[Any]) -> None:
    """Set the contents of a list."""
    have = int(blocks.size[number])
    if len(items) > have:
        blocks.append(np.full(len(items) - have, number), items[have:])
    elif len(items) < have:
        blocks.size[number] = len(items)
        blocks.removed(have - len(items))
    blocks.items(number)[0][:] = items


def _insert_items(blocks: Blocks, number: int, gaps: Int64s, items: NDArray[Any]) -> None:
    """Insert item i before position `gaps[i]` of a list; the gaps ascend."""
    have = int(blocks.size[number])
    blocks.append(np.full(len(items), number), items)
    _shift(blocks.items(number)[0], have, gaps, items)


@kernel
def _shift(items: NDArray[Any], have: int, gaps: Int64s, fresh: NDArray[Any]) -> None:
    """Shift the first `have` items up, last to first, and insert the new ones."""
    end = have
    for i in range(len(gaps) - 1, -1, -1):
        for place in range(end - 1, gaps[i] - 1, -1):
            items[place + i + 1] = items[place]
        items[gaps[i] + i] = fresh[i]
        end = gaps[i]


@kernel
def _bitmap(ids: Int32s) -> Words:
    words = np.zeros((len(ids) + 63) // 64, np.uint64)
    for place in range(len(ids)):
        if ids[place] >= 0:
            set_bit(words, place)
    return words


@kernel
def _bounds(domains: Domains, a: int, v: int) -> tuple[int, int]:
    """Cells before the first position are less than v, cells from the second on greater."""
    if domains.ranked[a]:
        start = domains.lists.start[a]
        end = start + domains.lists.size[a]
        place = bisect_left(domains.constants, start, end, v)
        found = place < end and domains.constants[place] == v
        return place - start, place - start + int(found)
    span = domains.span[a]
    if span == 0 or v < domains.base[a]:
        return 0, 0
    if v > domains.base[a] + (span - 1):
        return span, span
    return v - domains.base[a], v - domains.base[a] + 1


@kernel
def _cell(cells: TableCells, cluster: int, constant: int) -> int:
    """The position of a predicate's cell in its list, or -1."""
    if cluster >= len(cells.lists.size) or cells.lists.size[cluster] == 0:
        return -1
    if cluster % COMPARATORS == BOUND:
        return 0
    left, right = _bounds(cells.domains, cluster // COMPARATORS, constant)
    return left if left < right else -1


@kernel
def _places(cells: TableCells, a: int, constant: Int64s) -> Int64s:
    """The cell of each constant in the domain of an attribute, or -1."""
    places = np.full(len(constant), -1, np.int64)
    for i in range(len(constant)):
        left, right = _bounds(cells.domains, a, constant[i])
        if left < right:
            places[i] = left
    return places


@kernel
def _find_all(cells: TableCells, cluster: Int64s, constant: Int64s) -> Int64s:
    found = np.full(len(cluster), -1, np.int64)
    for i in range(len(cluster)):
        place = _cell(cells, cluster[i], constant[i])
        if place >= 0:
            found[i] = cells.ids[cells.lists.start[cluster[i]] + place]
    return found


@kernel
def _put_all(cells: TableCells, cluster: Int64s, constant: Int64s, ids: Int64s) -> Bools:
    """Write ids into their cells; returns a mask of those that have a cell."""
    done = np.zeros(len(ids), np.bool_)
    for i in range(len(ids)):
        place = _cell(cells, cluster[i], constant[i])
        if place >= 0:
            cells.ids[cells.lists.start[cluster[i]] + place] = ids[i]
            set_bit(cells.occupied[cells.word_lists.start[cluster[i]] :], place)
            done[i] = True
    return done


@kernel
def _clear_all(cells: TableCells, cluster: Int64s, constant: Int64s) -> None:
    for i in range(len(cluster)):
        place = _cell(cells, cluster[i], constant[i])
        cells.ids[cells.lists.start[cluster[i]] + place] = -1
        clear_bit(cells.occupied[cells.word_lists.start[cluster[i]] :], place)


@kernel
def _evaluate(
    cells: TableCells, starts: Int64s, attribute: Int32s, code: Int64s, bits: Words, skip: bool
) -> tuple[int, int]:
    looked = 0
    visited = 0
    for event in range(len(bits)):
        satisfied = bits[event]
        satisfied[:] = np.uint64(0)
        for at in range(starts[event], starts[event + 1]):
            a = attribute[at]
            if a >= len(cells.domains.span):
                continue
            left, right = _bounds(cells.domains, a, code[at])
            span = cells.domains.span[a]
            base = a * COMPARATORS
            # Most of the time goes here. Satisfied constants: for v <= c those from v on, for
            # v >= c those up to v, for v != c all but v.
            for comparator, start, end in (
                (EQUAL, left, right),
                (AT_MOST, left, span),
                (AT_LEAST, 0, right),
                (UNEQUAL, 0, left),
                (UNEQUAL, right, span),
                (BOUND, 0, 1),
            ):
                if cells.lists.size[base + comparator] > 0:
                    if skip:
                        seen, many = _skim(cells, base + comparator, start, end, satisfied)
                    else:
                        seen, many = _visit(cells, base + comparator, start, end, satisfied)
                    looked += seen
                    visited += many
    return looked, visited


@kernel
def _visit(
    cells: TableCells, cluster: int, start: int, end: int, satisfied: Words
) -> tuple[int, int]:
    """Set the bits of the predicates in a run of cells; visits every cell."""
    looked = 0
    first = cells.lists.start[cluster]
    for place in range(first + start, first + end):
        if cells.ids[place] >= 0:
            set_bit(satisfied, cells.ids[place])
            looked += 1
    return looked, end - start


@kernel
def _skim(
    cells: TableCells, cluster: int, start: int, end: int, satisfied: Words
) -> tuple[int, int]:
    """Like `_visit`, but visits only the cells that the bitmap marks as occupied."""
    looked = 0
    if start >= end:
        return 0, 0
    first = cells.lists.start[cluster]
    words = cells.word_lists.start[cluster]
    for number in range(start >> 6, ((end - 1) >> 6) + 1):
        base = number << 6
        word = cells.occupied[words + number] & mask(max(start - base, 0), min(end - base, 64))
        while word != 0:
            set_bit(satisfied, cells.ids[first + base + lowest(word)])
            word &= word - np.uint64(1)
            looked += 1
    return looked, looked
