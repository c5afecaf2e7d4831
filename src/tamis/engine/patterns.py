"""Text patterns, checked on the pairs that the matcher let through, and on no others.

Many subscriptions share a pattern and many events a text: each (pattern, text) is tried once a
batch, and the pairs take the verdict from there without a Python object each.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Texts
from tamis.encode.clause import Constraint
from tamis.encode.intervals import before
from tamis.match.base import Matches

Int64s = NDArray[np.int64]
_NO_TEST, _SEVERAL = -1, -2


class PatternTests:
    """The constraints with patterns, by slot. Equal constraints are one test, kept once."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._number: dict[Constraint, int] = {}
        self._uses: list[int] = []
        self._tests: list[Constraint | None] = []
        self._attribute = np.zeros(0, np.int64)  # of each test
        self._free: list[int] = []
        self._of: dict[int, tuple[int, ...]] = {}  # slot -> its tests
        self._test = np.zeros(0, np.int64)  # of each slot: its one test, or one of the above

    def add(self, slot: int, constraints: Sequence[Constraint]) -> None:
        """Keep those constraints of a clause that intervals do not tell whole."""
        tests = tuple(self._intern(each) for each in constraints if each.patterns)
        if not tests:
            return
        self._of[slot] = tests
        if slot >= len(self._test):
            grow = max(slot + 1, 2 * len(self._test)) - len(self._test)
            self._test = np.append(self._test, np.full(grow, _NO_TEST))
        self._test[slot] = tests[0] if len(tests) == 1 else _SEVERAL

    def remove(self, slot: int) -> tuple[Constraint, ...]:
        """Forget a slot; gives what was kept of it."""
        numbers = self._of.pop(slot, ())
        if numbers:
            self._test[slot] = _NO_TEST
        gone = tuple(self._known(number) for number in numbers)
        for number, test in zip(numbers, gone, strict=True):
            self._uses[number] -= 1
            if not self._uses[number]:
                del self._number[test]
                self._tests[number] = None
                self._free.append(number)
        if not self._of:
            self._clear()
        return gone

    def filter(self, batch: EventBatch, matches: Matches) -> Matches:
        """The matches whose texts fit as well."""
        if not self._of:
            return matches
        slots = matches.slots
        tests = np.full(len(slots), _NO_TEST, np.int64)
        known = slots < len(self._test)
        tests[known] = self._test[slots[known]]
        if (tests == _NO_TEST).all():
            return matches
        events = matches.events
        keep = np.ones(len(slots), np.bool_)
        single = np.flatnonzero(tests >= 0)
        attributes = self._attribute[tests[single]]
        for at in np.unique(attributes).tolist():
            mine = single[attributes == at]
            keep[mine] = self._fits(batch.texts[at], tests[mine], events[mine])
        for pair in np.flatnonzero(tests == _SEVERAL).tolist():
            event = events[pair : pair + 1]
            keep[pair] = all(
                self._fits(batch.texts[self._known(number).attribute], np.array([number]), event)[0]
                for number in self._of[int(slots[pair])]
            )
        counts = np.bincount(events[keep], minlength=len(matches))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Matches(starts, slots[keep])

    def _intern(self, test: Constraint) -> int:
        number = self._number.get(test)
        if number is None:
            number = self._free.pop() if self._free else len(self._tests)
            if number == len(self._tests):
                self._tests.append(test)
                self._uses.append(0)
            self._tests[number] = test
            self._number[test] = number
            if number >= len(self._attribute):
                self._attribute = np.append(self._attribute, np.zeros(number + 16, np.int64))
            self._attribute[number] = test.attribute
        self._uses[number] += 1
        return number

    def _known(self, number: int) -> Constraint:
        test = self._tests[number]
        assert test is not None
        return test

    def _fits(self, column: Texts, tests: Int64s, events: Int64s) -> NDArray[np.bool_]:
        """For each pair of test and event, whether one of the event's texts passes."""
        if column.rows is None:
            pair, which = np.arange(len(events)), column.which[events]
        else:
            first, last = (
                np.searchsorted(column.rows, events),
                np.searchsorted(column.rows, events + 1),
            )
            pair = np.repeat(np.arange(len(events)), last - first)
            offset = np.arange(len(pair)) - np.searchsorted(pair, pair)
            which = column.which[first[pair] + offset]
        tried, at = np.unique(tests[pair] * len(column.texts) + which, return_inverse=True)
        verdicts = np.array(
            [
                _passes(
                    self._known(key // len(column.texts)), column.texts[key % len(column.texts)]
                )
                for key in tried.tolist()
            ],
            np.bool_,
        )
        passed = np.zeros(len(events), np.bool_)
        passed[pair[verdicts[at]]] = True
        return passed


def _passes(test: Constraint, text: str) -> bool:
    """Whether a text lies in the intervals and passes all patterns."""
    cut = before(text)
    return any(low <= cut < high for low, high in test.intervals) and all(
        pattern.matches(text) == positive for pattern, positive in test.patterns
    )
