"""All predicates that one call of an operator answers, and which of them its rows make true.

Thousands may depend on one call: `faceCount(?n) and ?n > K`, each with its own K. Tested one by one
they would cost more than the operator. But most only compare values with constants. These are
grouped:

- A constant that a value must equal, in the call or in `?n = K`, is a hash key. A row leads to the
  groups of its own values; other groups are not visited.
- Limits such as `?n > K and ?n <= L` are a closed interval of doubles. A group keeps its intervals
  as arrays and compares them all at once.

The rest (arithmetic, `!=`, ordered text, limits that are not doubles) is tested one by one.
"""

from __future__ import annotations

from collections.abc import KeysView, Sequence
from math import inf, nan, nextafter
from typing import Any, NamedTuple

import numpy as np

from tamis.engine.calls.clause_calls import CONSTANT, CallPredicate
from tamis.engine.calls.join import Bound, Row, plain
from tamis.files.arrays import Bools, Int64s
from tamis.model.operator import Rows, Signature

_FEW = 16  # up to this many are tested one by one, without building groups
_MANY = 64  # intervals that an array compares in the time of one test
_NONE = np.zeros(0, np.int64)
_ROOM = 4  # initial capacity of a group; it doubles


class CallGroup:
    """The predicates that one call answers, by number. Add and remove take constant time."""

    def __init__(self, signature: Signature) -> None:
        self._signature = signature
        self._free = signature.free
        self._predicates: dict[int, CallPredicate] = {}
        self._groups: _IntervalGroups | None = None  # built when more than a few are tested

    def __len__(self) -> int:
        return len(self._predicates)

    @property
    def numbers(self) -> KeysView[int]:
        """The numbers of all predicates."""
        return self._predicates.keys()

    def add(self, number: int, predicate: CallPredicate) -> None:
        """Add a predicate under a number that is not in use."""
        self._predicates[number] = predicate
        if self._groups is not None:
            self._groups.add(number, _form(predicate, self._free))

    def remove(self, number: int) -> None:
        """Remove a predicate."""
        predicate = self._predicates.pop(number)
        if self._groups is not None:
            self._groups.remove(number, _form(predicate, self._free))

    def answer(self, rows: Rows, numbers: Int64s) -> Bools:
        """For each of the given predicates, whether some row satisfies it.

        The arrays compare all their predicates at once, wanted or not, so they are used only if
        many are wanted. The time is proportional to the number of wanted predicates.
        """
        few = len(numbers) <= _FEW or _MANY * len(numbers) < len(self._predicates)
        if few:
            holds = (self._holds(number, rows) for number in numbers.tolist())
            return np.fromiter(holds, np.bool_, len(numbers))
        if self._groups is None:
            groups = _IntervalGroups()
            for number, predicate in self._predicates.items():
                groups.add(number, _form(predicate, self._free))
            self._groups = groups  # at the end: an interrupt must not leave some of them
        sure, unsure = self._groups.holding(rows)
        if any(unsure):
            wanted = set(numbers.tolist())
            open_ = (number for each in unsure for number in each & wanted)
            alone = [number for number in open_ if self._holds(number, rows)]
            sure.append(np.array(alone, np.int64))
        return np.isin(numbers, np.concatenate([_NONE, *sure]))

    def _holds(self, number: int, rows: Rows) -> bool:
        return self._predicates[number].holds(self._signature, rows)


class _Shape(NamedTuple):
    """The columns of a row that the predicates of a group test, whatever their constants."""

    same: tuple[tuple[int, int], ...]  # pairs that must be equal
    fixed: tuple[int, ...]  # must equal a constant
    limited: tuple[int, ...]  # must lie within limits


class _Form(NamedTuple):
    """A predicate that only compares values with constants."""

    shape: _Shape
    key: Row  # the constants of the fixed columns, as `plain` returns them
    low: tuple[float, ...]  # of each limited column, inclusive
    high: tuple[float, ...]


def _form(predicate: CallPredicate, free: tuple[int, ...]) -> _Form | None:
    """A predicate in this form, or None if it has none. `free` maps columns to arguments."""
    fixed: dict[int, Any] = {}
    first: dict[int, int] = {}  # the first column of each variable
    same: list[tuple[int, int]] = []
    for column, at in enumerate(free):
        variable = predicate.pattern[at]
        if variable == CONSTANT:
            fixed[column] = plain(predicate.arguments[at])
        elif variable in first:
            same.append((first[variable], column))
        else:
            first[variable] = column
    limits: dict[int, tuple[float, float]] = {}
    for test in predicate.tests:
        if test.bound is None:
            return None
        column, constant = first[test.bound.variable], plain(test.bound.constant)
        if test.bound.comparator == "=":
            if fixed.setdefault(column, constant) != constant:
                return None
        else:
            span = _interval(test.bound)
            if span is None:
                return None
            low, high = limits.get(column, (-inf, inf))
            limits[column] = max(low, span[0]), min(high, span[1])
    fixed = dict(sorted(fixed.items()))
    limits = dict(sorted(limits.items()))
    shape = _Shape(tuple(same), tuple(fixed), tuple(limits))
    lows, highs = (tuple(span[end] for span in limits.values()) for end in (0, 1))
    return _Form(shape, tuple(fixed.values()), lows, highs)


def _interval(bound: Bound) -> tuple[float, float] | None:
    """The closed interval of doubles that satisfy an inequality."""
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
    """The double that equals a number, or None."""
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
    """Predicates grouped by shape and key; those without a form are kept apart."""

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
        """The predicates that rows make true, and those that must be tested one by one."""
        sure: list[Int64s] = []
        unsure: list[KeysView[int]] = [self._alone.keys()]
        for shape, by_key in self._by_shape.items():
            found: dict[Row, list[Row]] = {}
            for row in rows:
                key = tuple(plain(row[column]) for column in shape.fixed)
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
    """Predicates that differ only in their limits: an array of intervals per limited column."""

    def __init__(self, limited: int) -> None:
        self._at: dict[int, int] = {}  # position in the arrays, by number
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
        """Move the last predicate into the gap; shrink the arrays when they are mostly empty."""
        at, last = self._at.pop(number), len(self._at)
        if at < last:
            moved = int(self._number[last])
            self._at[moved], self._number[at] = at, moved
            self._low[:, at], self._high[:, at] = self._low[:, last], self._high[:, last]
        room = len(self._number) // 2
        if room >= _ROOM and last <= room // 2:  # with hysteresis
            self._number = self._number[:room].copy()
            self._low, self._high = self._low[:, :room].copy(), self._high[:, :room].copy()

    def holding(self, rows: Sequence[Row]) -> Int64s | None:
        """The predicates with a row within their limits; None if doubles are not exact enough."""
        count = len(self._at)
        numbers, low, high = self._number[:count], self._low[:, :count], self._high[:, :count]
        if not len(low):
            return numbers  # any row satisfies them
        doubles: set[tuple[float, ...]] = set()
        for row in rows:
            if all(map(_number, row)):  # text and booleans are never within limits
                found = tuple(double for double in map(_double, row) if double is not None)
                if len(found) < len(row):
                    return None
                doubles.add(found)
        within: Bools
        if len(low) == 1:
            # The lowest value that is high enough decides. NaN is at most nothing.
            values = np.array([*sorted(value for (value,) in doubles), nan])
            within = values[np.searchsorted(values[:-1], low[0])] <= high[0]
        else:
            within = np.zeros(count, np.bool_)
            for row in doubles:
                column = np.array(row)[:, None]
                within |= ((low <= column) & (column <= high)).all(axis=0)
        holding: Int64s = numbers[within]
        return holding
