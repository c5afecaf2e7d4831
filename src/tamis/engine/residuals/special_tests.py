"""Tests of residuals that are no intervals: they read values as published, not codes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.clause import Constraint, constraint_from_json, constraint_to_json
from tamis.encode.intervals import before
from tamis.engine.lazy_dict import Interner, LazyDict
from tamis.files.arrays import Int64s

NO, YES, UNDECIDED = 0, 1, 2


class SpecialTest(NamedTuple):
    """A constraint with text patterns, on a value of one attribute."""

    attribute: str
    constraint: Constraint

    def answer(self, values: Mapping[str, tuple[Any, ...]]) -> int:
        """YES or NO for an event; UNDECIDED if it depends on the value that is chosen."""
        bound = values.get(self.attribute, ())
        found = {self.holds(text) for text in bound}
        if len(found) > 1:
            return UNDECIDED
        return YES if True in found else NO

    def holds(self, text: Any) -> bool:
        """Whether a text is in the intervals and matches all patterns."""
        cut = before(text)
        return any(low <= cut < high for low, high in self.constraint.intervals) and all(
            pattern.matches(text) == positive for pattern, positive in self.constraint.patterns
        )


    def to_json(self) -> str:
        """The test as text."""
        return json.dumps([self.attribute, constraint_to_json(self.constraint)])

    @classmethod
    def from_json(cls, text: str) -> SpecialTest:
        """The test from its text."""
        attribute, constraint = json.loads(text)
        return cls(attribute, constraint_from_json(constraint))


class SpecialTests:
    """Tests by number. Equal tests have one number."""

    def __init__(self) -> None:
        self._numbers: Interner[SpecialTest] = Interner()
        self._tests: list[SpecialTest | None] = []
        self._uses: list[int] = []

    def __len__(self) -> int:
        return len(self._tests)

    def __getitem__(self, number: int) -> SpecialTest:
        found = self._tests[number]
        assert found is not None
        return found

    def intern(self, test: SpecialTest) -> int:
        """The number of a test; counts its uses."""
        number = self._numbers.intern(test)
        if number == len(self._tests):
            self._tests.append(None)
            self._uses.append(0)
        self._tests[number] = test
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Release one use of a test."""
        self._uses[number] -= 1
        if not self._uses[number]:
            self._numbers.remove(self[number])
            self._tests[number] = None

    def column(self) -> pa.Array:
        """All tests as text, by number; null for a free number."""
        texts = [None if each is None else each.to_json() for each in self._tests]
        return pa.array(texts, pa.large_string())

    def restore(self, column: pa.Array, in_use: Int64s) -> None:
        """Restore what `column` returned; `in_use` has a number for each use of a test."""
        texts = column.to_pylist()
        self._tests = [None if text is None else SpecialTest.from_json(text) for text in texts]
        self._uses = np.bincount(in_use, minlength=len(texts)).tolist()
        numbers = {test: at for at, test in enumerate(self._tests) if test is not None}
        free = [at for at, test in enumerate(self._tests) if test is None]
        self._numbers = Interner(LazyDict(lambda: numbers, len(numbers)), free, len(texts))

    def check(self, in_use: Int64s) -> None:
        """Raise if uses are miscounted."""
        assert np.bincount(in_use, minlength=len(self._tests)).tolist() == self._uses
        assert all((test is None) == (not uses) for test, uses in zip(self._tests, self._uses))
