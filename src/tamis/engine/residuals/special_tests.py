"""Tests of residuals that are no intervals: they read values as published, not codes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.encode.clause import Constraint, constraint_from_json, constraint_to_json
from tamis.encode.codes import NameCodec, TimestampCodec, timestamp_code
from tamis.encode.dynamic_codes import key_of
from tamis.encode.encoder import Encoder
from tamis.encode.intervals import before
from tamis.engine.calls.join import compile_constraint
from tamis.engine.lazy_dict import Interner, LazyDict
from tamis.files.arrays import Int64s
from tamis.language import parse, to_text
from tamis.model.condition import (
    Arithmetic,
    AttributeValue,
    Comparison,
    Duration,
    Expression,
    Literal,
    Now,
    Predicate,
    ValueConstraint,
    attributes_of,
)
from tamis.model.times.moments import NO_MOMENT, compares_now

NO, YES, UNDECIDED = 0, 1, 2
_MOMENT = ""  # no attribute has this name
Evaluate = Callable[[Sequence[Any]], bool]


class SpecialTest(NamedTuple):
    """A test of one value of each of its attributes: text patterns, or a comparison.

    `constraint` has the patterns. Without it, `comparison` is the text of a comparison of
    attributes, to hold if `positive`.
    """

    attributes: tuple[str, ...]
    constraint: Constraint | None = None
    comparison: str = ""
    positive: bool = True
    timed: bool = False  # whether the moment of the event comes after the values

    @classmethod
    def of_comparison(cls, comparison: Comparison, positive: bool) -> SpecialTest:
        """The test of a comparison or its complement."""
        names = attributes_of(comparison)
        timed = compares_now(comparison)
        return cls(names, comparison=to_text(comparison), positive=positive, timed=timed)

    def to_json(self) -> str:
        """The test as text."""
        constraint = None if self.constraint is None else constraint_to_json(self.constraint)
        timed = (True,) if self.timed else ()  # earlier versions read what they can evaluate
        return json.dumps([self.attributes, constraint, self.comparison, self.positive, *timed])

    @classmethod
    def from_json(cls, text: str) -> SpecialTest:
        """The test from its text."""
        attributes, constraint, comparison, positive, *timed = json.loads(text)
        made = None if constraint is None else constraint_from_json(constraint)
        return cls(tuple(attributes), made, comparison, positive, *timed)


class SpecialTests:
    """Tests by number. Equal tests have one number."""

    def __init__(self) -> None:
        self._numbers: Interner[SpecialTest] = Interner()
        self._tests: list[SpecialTest | None] = []
        self._uses: list[int] = []
        self._timed = 0  # tests that depend on the moment
        self._evaluate: dict[int, Evaluate] = {}  # built lazily

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
        self._timed += test.timed and self._tests[number] is None
        self._tests[number] = test
        self._uses[number] += 1
        return number

    def release(self, number: int) -> None:
        """Release one use of a test."""
        self._uses[number] -= 1
        if not self._uses[number]:
            self._numbers.remove(self[number])
            self._timed -= self[number].timed
            self._tests[number] = None
            self._evaluate.pop(number, None)

    def evaluate(self, number: int, encoder: Encoder) -> Evaluate:
        """The function of a test: from a value of each of its attributes to true or false."""
        found = self._evaluate.get(number)
        if found is None:
            found = self._evaluate[number] = _evaluate(self[number], encoder)
        return found

    @property
    def timed(self) -> bool:
        """Whether a test depends on the moment of the event."""
        return self._timed > 0

    def answer(
        self,
        number: int,
        values: Mapping[str, tuple[Any, ...]],
        encoder: Encoder,
        moment: int = NO_MOMENT,
    ) -> int:
        """YES or NO for an event; UNDECIDED if it depends on the values that are chosen."""
        bound = [values.get(name, ()) for name in self[number].attributes]
        if self[number].timed:
            bound.append(() if moment == NO_MOMENT else (moment,))
        evaluate = self.evaluate(number, encoder)
        found = {evaluate(choice) for choice in product(*bound)}
        if len(found) > 1:
            return UNDECIDED
        return YES if True in found else NO

    def forget_evaluators(self) -> None:
        """Build evaluators again: the domains of attributes have changed."""
        self._evaluate.clear()

    # -- saving ------------------------------------------------------------------------------------

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_evaluate": {}}

    def column(self) -> pa.Array:
        """All tests as text, by number; null for a free number."""
        texts = [None if each is None else each.to_json() for each in self._tests]
        return pa.array(texts, pa.large_string())

    def restore(self, column: pa.Array, in_use: Int64s) -> None:
        """Restore what `column` returned; `in_use` has a number for each use of a test."""
        texts = column.to_pylist()
        self._tests = [None if text is None else SpecialTest.from_json(text) for text in texts]
        self._timed = sum(each is not None and each.timed for each in self._tests)
        self._uses = np.bincount(in_use, minlength=len(texts)).tolist()
        numbers = {test: at for at, test in enumerate(self._tests) if test is not None}
        free = [at for at, test in enumerate(self._tests) if test is None]
        self._numbers = Interner(LazyDict(lambda: numbers, len(numbers)), free, len(texts))

    def check(self, in_use: Int64s) -> None:
        """Raise if uses are miscounted."""
        assert self._timed == sum(each is not None and each.timed for each in self._tests)
        assert np.bincount(in_use, minlength=len(self._tests)).tolist() == self._uses
        for test, uses in zip(self._tests, self._uses, strict=True):
            assert (test is None) == (not uses)


def _evaluate(test: SpecialTest, encoder: Encoder) -> Evaluate:
    if test.constraint is not None:
        holds_text = _match_text(test.constraint)
        if test.constraint.attribute in encoder.dynamic:
            return lambda values: holds_text([*map(key_of, values)])
        return holds_text
    comparison = parse(test.comparison, limit=None)
    assert isinstance(comparison, Comparison)
    codecs = [encoder.codecs[encoder.positions[name]] for name in test.attributes]
    if isinstance(codecs[0], NameCodec):
        return _compare_names(comparison, test.positive, codecs[0])
    number = {name: at for at, name in enumerate((*test.attributes, _MOMENT))}
    left, right = _in_numbers(comparison.left), _in_numbers(comparison.right)
    constraint = ValueConstraint(left, comparison.comparator, right)
    holds = compile_constraint(constraint, test.positive, number).holds
    if isinstance(codecs[0], TimestampCodec):  # then all are
        return lambda values: holds(
            [each if type(each) is int else timestamp_code(each) for each in values]
        )
    return holds


def _in_numbers(expression: Expression) -> Expression:
    """Durations in microseconds, and the moment as the value of one more attribute."""
    if isinstance(expression, Arithmetic):
        left, right = _in_numbers(expression.left), _in_numbers(expression.right)
        return Arithmetic(expression.sign, left, right)
    if isinstance(expression, Now):
        return AttributeValue(_MOMENT)
    return expression.microseconds if isinstance(expression, Duration) else expression


def _match_text(constraint: Constraint) -> Evaluate:
    checks = [(check.compiled(), positive) for check, positive in constraint.patterns]

    def holds(values: Sequence[Any]) -> bool:
        (text,) = values
        cut = before(text)
        return any(low <= cut < high for low, high in constraint.intervals) and all(
            check(text) == positive for check, positive in checks
        )

    return holds


def _compare_names(comparison: Comparison, positive: bool, codec: NameCodec) -> Evaluate:
    """A comparison of two attributes of one enumerated or hierarchical domain."""
    left, right = comparison.left, comparison.right
    assert isinstance(left, AttributeValue)
    assert isinstance(right, AttributeValue)
    same = left == right

    def holds(values: Sequence[Any]) -> bool:
        one, other = values[0], values[0] if same else values[1]
        wanted = Literal(Predicate(left.name, comparison.comparator, other), positive)
        code = codec.code(one)
        return any(low <= code < high for low, high in codec.satisfying(wanted))

    return holds
