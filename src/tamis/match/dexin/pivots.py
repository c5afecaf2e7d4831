"""Predicates partitioned twice, as in OpIndex: by pivot, then by comparator and attribute.

A pivot is an attribute under which whole clauses are stored. Each pivot has one list of predicates
per attribute and comparator, and one per value for equalities. Signatures, a few bits per pivot and
comparator, avoid the look-up of most lists that do not exist.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.files.arrays import Bools, Int32s, Int64s
from tamis.index.blocks import Lists
from tamis.index.elementary_predicates import (
    AT_LEAST,
    AT_MOST,
    BOUND,
    COMPARATORS,
    EQUAL,
    HIGHEST,
    LOWEST,
    UNEQUAL,
    ElementaryPredicates,
)
from tamis.index.growth import HoldsArrays, grown
from tamis.index.kernel import kernel
from tamis.index.ordered_lists import KeyedLists
from tamis.index.tuple_map import TupleMap, Tuples, find

_PIVOT = 35  # a key has a pivot's row above these bits, attribute and comparator below


class Pivots(NamedTuple):
    """View for kernels. A list can exist only if its bit is set in the signature."""

    row: Int64s  # by attribute; -1: not a pivot
    clauses: Int64s  # number of clauses by row
    signs: Int64s  # signature words by row and comparator
    bits: int  # bits used per word
    used: Bools  # by comparator: whether any list exists
    keys: Tuples  # (row, attribute, comparator) and the value of an equality -> list
    lists: Lists
    constants: Int64s
    slots: Int32s


class Probes(NamedTuple):
    """The look-ups of one event under each pivot: the list, and the constants that satisfy it."""

    key: Int64s  # attribute and comparator
    constant: Int64s  # the value of an equality, else 0
    spot: Int64s  # the bit of the signature
    low: Int64s  # constants from here ...
    high: Int64s  # ... to here are satisfied, or all others if `inverts`


class PivotLists(HoldsArrays):
    """The lists, with add and remove. Bits of removed lists stay set; they only cost time."""

    def __init__(self, segments: int, signature: int) -> None:
        self._bits = signature
        self._keys = TupleMap()
        self._lists = KeyedLists()
        self._row = np.zeros(0, np.int64)
        self._clauses = np.zeros(0, np.int64)
        self._signs = np.zeros((0, COMPARATORS, segments), np.int64)
        self._used = np.zeros(COMPARATORS, np.bool_)

    @property
    def view(self) -> Pivots:
        """The arrays for kernels."""
        return Pivots(
            self._row,
            self._clauses,
            self._signs,
            self._bits,
            self._used,
            self._keys.view,
            self._lists.lists,
            *self._lists.pools,
        )

    def add(self, slots: Int64s, predicates: ElementaryPredicates, pivot: Int32s) -> None:
        """Store clauses, which must have predicates, under their pivots."""
        self._make_rows(np.unique(pivot))
        np.add.at(self._clauses, self._row[pivot], 1)
        ids, fresh = self._keys.add(*self._keys_of(predicates, pivot))
        self._lists.append(ids, predicates.constant, np.repeat(slots, np.diff(predicates.starts)))
        _sign(self.view, fresh)

    def remove(self, slots: Int64s, predicates: ElementaryPredicates, pivot: Int32s) -> None:
        """Remove clauses from their pivots."""
        np.subtract.at(self._clauses, self._row[pivot], 1)
        ids = self._keys.find(*self._keys_of(predicates, pivot))
        gone = np.repeat(slots, np.diff(predicates.starts))
        self._lists.remove(ids, predicates.constant, gone)
        self._keys.remove(ids)

    def check(self, slots: Int64s, predicates: ElementaryPredicates, pivot: Int32s) -> None:
        """Raise unless exactly these clauses are stored."""
        self._keys.check()
        self._lists.check()
        assert (np.bincount(self._row[pivot], minlength=len(self._clauses)) == self._clauses).all()
        ids = self._keys.find(*self._keys_of(predicates, pivot))
        columns = (ids, predicates.constant, np.repeat(slots, np.diff(predicates.starts)))
        held = zip(*self._lists.flat(), strict=True)
        assert sorted(held) == sorted(zip(*columns, strict=True))
        before = self._signs.copy()
        _sign(self.view, ids)
        assert (before == self._signs).all(), "the bits of all lists are set"

    def _keys_of(self, predicates: ElementaryPredicates, pivot: Int32s) -> tuple[Int64s, Int64s]:
        """The list key of each predicate, in the form that `TupleMap` takes."""
        keys = np.zeros((len(predicates.attribute), 2), np.int64)
        keys[:, 0] = np.repeat(self._row[pivot], np.diff(predicates.starts)) << _PIVOT
        keys[:, 0] |= predicates.attribute.astype(np.int64) << 3 | predicates.comparator
        equal = predicates.comparator == EQUAL
        keys[equal, 1] = predicates.constant[equal]
        return np.arange(0, 2 * len(keys) + 1, 2), keys.reshape(-1)

    def _make_rows(self, pivots: Int32s) -> None:
        """Ensure that each of the attributes has a row."""
        self._row = grown(self._row, int(pivots.max(initial=-1)) + 1, -1)
        fresh = pivots[self._row[pivots] < 0]
        have = int(self._row.max(initial=-1)) + 1
        self._row[fresh] = np.arange(have, have + len(fresh))
        self._clauses = grown(self._clauses, have + len(fresh))
        self._signs = grown(self._signs, have + len(fresh))


@kernel
def _spot(key: int, constant: int, bits: int) -> int:
    """The position of a list's bit in a signature of `bits` bits."""
    x = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15) ^ np.uint64(constant)
    x = (x ^ (x >> np.uint64(32))) * np.uint64(0xBF58476D1CE4E5B9)
    return int(np.int64(x >> np.uint64(33)) % bits)


@kernel
def _sign(pivots: Pivots, ids: Int64s) -> None:
    """Set the signature bits of lists."""
    bits = pivots.signs.shape[2] * pivots.bits
    for id in ids:
        at = pivots.keys.start[id]
        key, constant = pivots.keys.values[at], pivots.keys.values[at + 1]
        spot = _spot(key & ((1 << _PIVOT) - 1), constant, bits)
        pivots.signs[key >> _PIVOT, key & 7, spot // pivots.bits] |= 1 << (spot % pivots.bits)
        pivots.used[key & 7] = True


@kernel
def no_probes(size: int) -> Probes:
    """Allocate space for `size` probes."""
    return Probes(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int64),
    )


@kernel
def probe(
    attribute: Int32s, code: Int64s, begin: int, end: int, pivots: Pivots, out: Probes
) -> int:
    """Write the probes of an event (its pairs are `begin:end`); returns their number.

    An attribute with several values is one probe per comparator: its smallest and largest values
    determine which constants some value satisfies.
    """
    bits = pivots.signs.shape[2] * pivots.bits
    n = 0
    at = begin
    while at < end:
        stop = at
        least, most = code[at], code[at]
        while stop < end and attribute[stop] == attribute[at]:
            least, most = min(least, code[stop]), max(most, code[stop])
            stop += 1
        for comparator in (AT_MOST, AT_LEAST, UNEQUAL, BOUND):
            if not pivots.used[comparator]:
                continue
            out.key[n] = attribute[at] << 3 | comparator
            out.constant[n] = 0
            out.spot[n] = _spot(out.key[n], 0, bits)
            out.low[n], out.high[n] = LOWEST, HIGHEST
            if comparator == AT_MOST or (comparator == UNEQUAL and least == most):
                out.low[n] = least
            if comparator == AT_LEAST or (comparator == UNEQUAL and least == most):
                out.high[n] = most
            n += 1
        for value in range(at, stop):
            again = not pivots.used[EQUAL]
            for other in range(at, value):
                again |= code[other] == code[value]
            if not again:
                out.key[n] = attribute[at] << 3 | EQUAL
                out.constant[n] = code[value]
                out.spot[n] = _spot(out.key[n], code[value], bits)
                out.low[n] = out.high[n] = code[value]
                n += 1
        at = stop
    return n


@kernel
def inverts(probes: Probes, i: int) -> bool:
    """Whether the constants outside the bounds are satisfied, instead of those inside."""
    return bool(probes.key[i] & 7 == UNEQUAL and probes.low[i] == probes.high[i])


@kernel
def lists_under(
    pivots: Pivots, row: int, probes: Probes, many: int, ids: Int64s, which: Int64s
) -> int:
    """The existing lists under a pivot for the first `many` probes, and the probe of each."""
    key = np.empty(2, np.int64)
    n = 0
    for i in range(many):
        spot = probes.spot[i]
        word = pivots.signs[row, probes.key[i] & 7, spot // pivots.bits]
        if not (word >> (spot % pivots.bits)) & 1:
            continue
        key[0] = row << _PIVOT | probes.key[i]
        key[1] = probes.constant[i]
        id = find(pivots.keys, key, 0, 2)
        if id >= 0:
            ids[n] = id
            which[n] = i
            n += 1
    return n
