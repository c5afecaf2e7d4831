"""All predicates that one call of an operator answers, and which of them its rows make true.

Thousands may hang on one call: `faceCount(?n) and ?n > K`, each with a K of its own. Asked one by
one they would cost more than the operator does. But most compare what is given with constants and
do nothing else, and such ones are sorted into groups:

- A constant to be equal to, at a place of the call or in `?n = K`, is a key. A row leads to the
  groups of its own values; no others are looked at, however many there are.
- Limits, as in `?n > K and ?n <= L`, are a closed interval of doubles. A group keeps its intervals
  as arrays, and compares them all at once.

What is left (arithmetic, `!=`, text in an order, a limit that is no double) is asked by itself.
"""

from __future__ import annotations

from collections.abc import KeysView, Sequence
from math import inf, nan, nextafter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tamis.engine.calls.clause_calls import CONSTANT, CallPredicate
from tamis.engine.calls.join import Bound, Row, plain
from tamis.model.operator import Rows, Signature

Int64s = NDArray[np.int64]
Bools = NDArray[np.bool_]
_FEW = 16  # up to so many are asked one by one, and nothing is built for them
_MANY = 64  # in an array so many are compared in the time in which one is asked by itself
_NONE = np.zeros(0, np.int64)
_ROOM = 4  # members that a group begins with room for; it doubles


class CallGroup:
    """The predicates that one call answers, by number. Adding and removing take constant time."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._free = signature.free
        self._predicates: dict[int, CallPredicate] = {}
        self._groups: _IntervalGroups | None = None  # built when there are more than a few

    def __len__(self) -> int:
        return len(self._predicates)

    @property
    def numbers(self) -> KeysView[int]:
        """Those of all its predicates."""
        return self._predicates.keys()

    def add(self, number: int, predicate: CallPredicate) -> None:
        """A predicate that the call answers, under a number that is not taken."""
        self._predicates[number] = predicate
        if self._groups is not None:
            self._groups.add(number, _form(predicate, self._free))

    def remove(self, number: int) -> None:
        """Forget one."""
        predicate = self._predicates.pop(number)
        if self._groups is not None:
            self._groups.remove(number, _form(predicate, self._free))

    def answer(self, rows: Rows, numbers: Int64s) -> Bools:
        """For each of some of its predicates, by number, whether `bindings` would have a row.

        What is in the arrays is compared all at once, whether it was asked for or not; that is for
        when many of them were. So the time it takes is in proportion to what was asked for.
        """
        few = len(numbers) <= _FEW or _MANY * len(numbers) < len(self._predicates)
        if few:
            holds = (self._holds(number, rows) for number in numbers.tolist())
            return np.fromiter(holds, np.bool_, len(numbers))
        if self._groups is None:
            self._groups = _IntervalGroups()
            for number, predicate in self._predicates.items():
                self._groups.add(number, _form(predicate, self._free))
        sure, unsure = self._groups.holding(rows)
        if any(unsure):
            wanted = set(numbers.tolist())
            asked = (number for each in unsure for number in each & wanted)
            alone = [number for number in asked if self._holds(number, rows)]
            sure.append(np.array(alone, np.int64))
        return np.isin(numbers, np.concatenate([_NONE, *sure]))

    def _holds(self, number: int, rows: Rows) -> bool:
        return self._predicates[number].holds(self._signature, rows)


class _Shape(NamedTuple):
    """Places of a row: what all predicates of some groups look at, whatever the constants are."""

    same: tuple[tuple[int, int], ...]  # pairs that have one variable
    fixed: tuple[int, ...]  # have to be equal to a constant
    limited: tuple[int, ...]  # have to lie within limits


class _Form(NamedTuple):
    """A predicate that only compares with constants."""

    shape: _Shape
    key: Row  # the constants of the fixed places, plain
    low: tuple[float, ...]  # of each limited place, inclusive
    high: tuple[float, ...]


def _form(predicate: CallPredicate, free: tuple[int, ...]) -> _Form | None:
    """A predicate in this form, or None where it has none. `free` are the places of a row."""
    fixed: dict[int, Any] = {}
    first: dict[int, int] = {}  # of each variable, its first place
    same: list[tuple[int, int]] = []
    for place, at in enumerate(free):
        variable = predicate.pattern[at]
        if variable == CONSTANT:
            fixed[place] = plain(predicate.arguments[at])
        elif variable in first:
            same.append((first[variable], place))
        else:
            first[variable] = place
    limits: dict[int, tuple[float, float]] = {}
    for test in predicate.tests:
        if test.bound is None:
            return None
        place, constant = first[test.bound.variable], plain(test.bound.constant)
        if test.bound.comparator == "=":
            if fixed.setdefault(place, constant) != constant:
                return None
        else:
            span = _interval(test.bound)
            if span is None:
                return None
            low, high = limits.get(place, (-inf, inf))
            limits[place] = max(low, span[0]), min(high, span[1])
    fixed = dict(sorted(fixed.items()))
    limits = dict(sorted(limits.items()))
    shape = _Shape(tuple(same), tuple(fixed), tuple(limits))
    lows, highs = (tuple(span[end] for span in limits.values()) for end in (0, 1))
    return _Form(shape, tuple(fixed.values()), lows, highs)


def _interval(bound: Bound) -> tuple[float, float] | None:
    """The doubles that satisfy an inequality, ends included."""
    constant = _double(bound.constant)
    if constant is None:
        return None
    match bound.comparator:
        case "<":
            return -inf, nextafter(constant, -inf)
        case "<=":
            return -inf, constant
        case ">":
            return nextafter(constant, inf), inf
        case ">=":
            return constant, inf
    return None


def _double(value: Any) -> float | None:
    """A number as the double that it equals, if there is one."""
    if not _number(value):
        return None
    try:
        double = float(value)
    except OverflowError:
        return None
    return double if double == value else None


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


class _IntervalGroups:
    """Predicates in groups, by shape and then by key; apart from them, those that have no form."""

    def __init__(self) -> None:
        self._by_shape: dict[_Shape, dict[Row, _IntervalGroup]] = {}
        self._alone: dict[int, None] = {}

    def add(self, number: int, form: _Form | None) -> None:
        if form is None:
            self._alone[number] = None
            return
        by_key = self._by_shape.setdefault(form.shape, {})
        group = by_key.get(form.key)
        if group is None:
            group = by_key[form.key] = _IntervalGroup(len(form.low))
        group.add(number, form.low, form.high)

    def remove(self, number: int, form: _Form | None) -> None:
        if form is None:
            del self._alone[number]
            return
        by_key = self._by_shape[form.shape]
        group = by_key[form.key]
        group.remove(number)
        if not len(group):
            del by_key[form.key]
        if not by_key:
            del self._by_shape[form.shape]

    def holding(self, rows: Rows) -> tuple[list[Int64s], list[KeysView[int]]]:
        """The numbers of predicates that rows make true, and of those to be asked one by one."""
        sure: list[Int64s] = []
        unsure: list[KeysView[int]] = [self._alone.keys()]
        for shape, by_key in self._by_shape.items():
            found: dict[Row, list[Row]] = {}
            for row in rows:
                key = tuple(plain(row[place]) for place in shape.fixed)
                if key in by_key and all(plain(row[a]) == plain(row[b]) for a, b in shape.same):
                    found.setdefault(key, []).append(tuple(row[at] for at in shape.limited))
            for key, limited in found.items():
                holding = by_key[key].holding(limited)
                if holding is None:
                    unsure.append(by_key[key].numbers)
                else:
                    sure.append(holding)
        return sure, unsure


class _IntervalGroup:
    """Predicates that differ only in their limits: an array of intervals for each limited place."""

    def __init__(self, limited: int) -> None:
        self._at: dict[int, int] = {}  # of each number, its column
        self._number = np.zeros(_ROOM, np.int64)
        self._low = np.zeros((limited, _ROOM))
        self._high = np.zeros((limited, _ROOM))

    def __len__(self) -> int:
        return len(self._at)

    @property
    def numbers(self) -> KeysView[int]:
        return self._at.keys()

    def add(self, number: int, low: Sequence[float], high: Sequence[float]) -> None:
        at = len(self._at)
        if at == len(self._number):
            self._number = np.resize(self._number, 2 * at)
            self._low, self._high = (np.hstack([each, each]) for each in (self._low, self._high))
        self._at[number] = at
        self._number[at] = number
        self._low[:, at], self._high[:, at] = low, high

    def remove(self, number: int) -> None:
        """The last one takes its column. Room that is not needed any more is given back."""
        at, last = self._at.pop(number), len(self._at)
        if at < last:
            moved = int(self._number[last])
            self._at[moved], self._number[at] = at, moved
            self._low[:, at], self._high[:, at] = self._low[:, last], self._high[:, last]
        room = len(self._number) // 2
        if room >= _ROOM and last <= room // 2:  # not at once: the next may come back
            self._number = self._number[:room].copy()
            self._low, self._high = self._low[:, :room].copy(), self._high[:, :room].copy()

    def holding(self, rows: Sequence[Row]) -> Int64s | None:
        """The numbers of those with a row within their limits; None where doubles cannot tell."""
        count = len(self._at)
        numbers, low, high = self._number[:count], self._low[:, :count], self._high[:, :count]
        if not len(low):
            return numbers  # any row will do
        doubles: set[tuple[float, ...]] = set()
        for row in rows:
            if all(map(_number, row)):  # text and booleans lie within no limits
                found = tuple(double for double in map(_double, row) if double is not None)
                if len(found) < len(row):
                    return None
                doubles.add(found)
        within: Bools
        if len(low) == 1:
            # Of the values that are not too low, the lowest decides. Nothing is at most NaN.
            values = np.array([*sorted(value for (value,) in doubles), nan])
            within = values[np.searchsorted(values[:-1], low[0])] <= high[0]
        else:
            within = np.zeros(count, np.bool_)
            for row in doubles:
                column = np.array(row)[:, None]
                within |= ((low <= column) & (column <= high)).all(axis=0)
        holding: Int64s = numbers[within]
        return holding
