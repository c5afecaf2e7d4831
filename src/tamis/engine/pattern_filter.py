"""Text patterns, tested only on the candidates of the matcher.

Many subscriptions share a pattern, and many events share a text. Each (pattern, text) is tested
once per batch, and the candidates look up the result without a Python object each.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.encode.batch import EventBatch, Texts
from tamis.encode.clause import Constraint, constraint_from_json, constraint_to_json
from tamis.encode.codes import TextCodec
from tamis.engine.lazy_dict import Interner, LazyDict
from tamis.engine.saved.saved_part import SavedPart, texts
from tamis.errors import SavedIndexError
from tamis.files.arrays import Bools, Int32s, Int64s
from tamis.files.saved_checks import array_of, require, rising, whole, within
from tamis.index.growth import grown
from tamis.match.answers import FoundSlots, Matches
from tamis.match.bitmaps import Bitmaps

_NO_TEST, _SEVERAL = -1, -2
_STEP = 1 << 20  # candidates examined together
_FEW = 4  # texts for each test, below which the tests are not tried one after the other
_TABLE = 8  # bytes of a table of all tests and texts, for each pair that asks


class PatternFilter:
    """The constraints with patterns, by slot. Equal constraints are interned as one test."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self._numbers: Interner[Constraint] = Interner()
        self._uses: list[int] = []  # by number, as the next two
        self._tests: list[Constraint | str | None] = []  # text: as saved, not parsed yet
        self._functions: dict[int, Callable[[str], bool]] = {}  # of tests, built lazily
        self._attribute = np.zeros(0, np.int64)
        self._of: LazyDict[int, tuple[int, ...]] = LazyDict()  # slot -> its tests
        # The test of each slot, or _NO_TEST, or _SEVERAL. The last entry is _NO_TEST: slots beyond
        # the end read it.
        self._test = np.full(1, _NO_TEST, np.int32)

    def __len__(self) -> int:
        return len(self._of)

    def add(self, slot: int, constraints: Sequence[Constraint]) -> None:
        """Keep the constraints of a clause that intervals do not express."""
        tests = [self._intern(each) for each in constraints if each.patterns]
        if not tests:
            return
        self._of[slot] = tuple(tests)
        self._test = grown(self._test, slot + 2, _NO_TEST)
        self._test[slot] = tests[0] if len(tests) == 1 else _SEVERAL

    def remove(self, slot: int) -> tuple[Constraint, ...]:
        """Remove a slot; return its constraints."""
        numbers = self._of.find(slot)
        if numbers is None:
            return ()
        del self._of[slot]
        self._test[slot] = _NO_TEST
        gone = tuple(self._known(number) for number in numbers)
        for number, test in zip(numbers, gone, strict=True):
            self._uses[number] -= 1
            if not self._uses[number]:
                self._numbers.remove(test)
                self._tests[number] = None
                self._functions.pop(number, None)
        if not self._of:
            self._clear()
        return gone

    def check(self) -> dict[int, tuple[Constraint, ...]]:
        """Raise if an invariant is broken; return the tests of each slot."""
        uses = Counter(number for numbers in self._of.values() for number in numbers)
        assert uses == {number: many for number, many in enumerate(self._uses) if many}
        for number in self._numbers:
            test = self._known(number)
            assert self._numbers[test] == number
            assert self._attribute[number] == test.attribute
            assert uses[number]
        live = [number for number, test in enumerate(self._tests) if test is not None]
        assert sorted(self._numbers) == live
        expected = {s: run[0] if len(run) == 1 else _SEVERAL for s, run in self._of.items()}
        found = np.flatnonzero(self._test != _NO_TEST).tolist()
        assert {slot: int(self._test[slot]) for slot in found} == expected
        return {slot: tuple(map(self._known, numbers)) for slot, numbers in self._of.items()}

    def asks(self, slots: FoundSlots) -> Bools:
        """Whether each slot has patterns."""
        asks: Bools = self._test.take(slots, mode="clip") != _NO_TEST
        return asks

    def filter(self, batch: EventBatch, found: Matches) -> Matches:
        """The candidates whose texts match the patterns."""
        if not self._of:
            return found
        patterned = [np.zeros(0, np.int64)]
        for first in range(0, len(found.slots), _STEP):  # bounds the temporary arrays
            part = found.slots[first : first + _STEP]
            patterned.append(np.flatnonzero(self.asks(part)) + first)
        pairs = np.concatenate(patterned)
        events = np.searchsorted(found.starts, pairs, side="right") - 1
        return found.without(pairs[~self._fitting(batch, events, found.slots[pairs])])

    def filter_bits(self, batch: EventBatch, found: Bitmaps) -> None:
        """Clear the bits of candidates whose texts do not match the patterns."""
        if not self._of:
            return
        tests = self._test[np.minimum(found.slots, len(self._test) - 1)]
        bits = np.flatnonzero(tests != _NO_TEST)
        events, which = found.pairs(bits)
        unfit = ~self._fitting(batch, events, found.slots[bits[which]])
        found.clear(events[unfit], bits[which[unfit]])

    def _fitting(self, batch: EventBatch, events: Int64s, slots: FoundSlots) -> Bools:
        """For each (event, slot) with tests, whether the event's texts pass them."""
        tests = self._test[slots]
        several = np.flatnonzero(tests == _SEVERAL)
        theirs = [self._of[slot] for slot in slots[several].tolist()]
        pairs = np.concatenate(
            [np.flatnonzero(tests >= 0), np.repeat(several, [len(each) for each in theirs])]
        )
        tests = np.concatenate([tests[tests >= 0], np.array([*chain(*theirs)], np.int32)])
        attributes = self._attribute[tests]
        fits = np.ones(len(slots), np.bool_)
        for at in np.unique(attributes).tolist():
            mine = np.flatnonzero(attributes == at)
            passed = self._fits(batch.texts[at], tests[mine], events[pairs[mine]])
            fits[pairs[mine[~passed]]] = False
        return fits

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_functions": {}}

    def saved(self) -> SavedPart:
        """All tests as text, and the tests of each slot."""
        tests = [
            constraint_to_json(test) if isinstance(test, Constraint) else test
            for test in self._tests
        ]
        several = np.flatnonzero(self._test == _SEVERAL)
        numbers = [self._of[slot] for slot in several.tolist()]
        return SavedPart(
            {
                "test": self._test,
                "attribute": self._attribute[: len(tests)],
                "uses": np.array(self._uses, np.int64),
                "several": several,
                "several_starts": np.cumsum([0, *map(len, numbers)], dtype=np.int64),
                "several_tests": np.array([n for each in numbers for n in each], np.int64),
            },
            {"slots": len(self._of)},
            {"tests": {"test": pa.array(tests, pa.large_string())}},
        )

    def restore(self, saved: SavedPart, *, verify: bool = True) -> None:
        """Restore what `saved` returned. Tests are parsed lazily."""
        arrays = saved.arrays
        self._tests, self._functions = texts(saved, "tests", "test").to_pylist(), {}
        uses, self._attribute = array_of(arrays, "uses"), array_of(arrays, "attribute")
        free = [number for number, test in enumerate(self._tests) if test is None]
        self._test = array_of(arrays, "test", np.int32)
        several, runs, starts = (
            array_of(arrays, name) for name in ("several", "several_tests", "several_starts")
        )
        self._uses, slots = uses.tolist(), whole(saved.facts, "slots")
        if verify:
            known = np.array([test is not None for test in self._tests], np.bool_)
            fits = len(known) == len(uses) == len(self._attribute)
            require(fits, "each test has an attribute and its uses")
            within("test", self._test, _SEVERAL, len(known))
            within("several_tests", runs, 0, len(known))
            rising("several_starts", starts, len(several), len(runs))
            single = self._test[self._test >= 0]
            right = np.bincount(np.concatenate([single, runs]), minlength=len(known))
            require(np.array_equal(uses, right) and not uses[~known].any(), "'uses' counts tests")
            fits = np.array_equal(several, np.flatnonzero(self._test == _SEVERAL))
            require(fits and bool((self._test[-1:] == _NO_TEST).all()), "'several' are slots")
            fits = slots == len(single) + len(several) and len(self._test) > 0
            require(fits, "'slots' counts the slots with tests")

        def numbers() -> dict[Constraint, int]:
            live = (n for n, test in enumerate(self._tests) if test is not None)
            return {self._known(n): n for n in live}

        def of() -> dict[int, tuple[int, ...]]:
            single = np.flatnonzero(self._test >= 0)
            tests = self._test[single].tolist()
            found: dict[int, tuple[int, ...]] = {
                slot: (test,) for slot, test in zip(single.tolist(), tests, strict=True)
            }
            for slot, run in zip(several.tolist(), np.split(runs, starts[1:-1]), strict=False):
                found[slot] = tuple(run.tolist())
            return found

        top = len(self._tests)
        self._numbers = Interner(LazyDict(numbers, top - len(free)), free, top)
        self._of = LazyDict(of, slots)

    def counts(self) -> dict[int, int]:
        """The number of constraints with patterns, by attribute."""
        used = self._attribute[: len(self._uses)]
        return {
            at: int(np.array(self._uses)[used == at].sum())
            for at in np.unique(used[np.array(self._uses, np.int64) > 0]).tolist()
        }

    def _intern(self, test: Constraint) -> int:
        number = self._numbers.intern(test)
        if number == len(self._tests):
            self._tests.append(None)
            self._uses.append(0)
        if self._tests[number] is None:
            self._tests[number] = test
            self._attribute = grown(self._attribute, number + 1)
            self._attribute[number] = test.attribute
        self._uses[number] += 1
        return number

    def _known(self, number: int) -> Constraint:
        test = self._tests[number]
        if isinstance(test, str):
            test = self._tests[number] = _parsed(test, int(self._attribute[number]))
        assert test is not None
        return test

    def _fits(self, column: Texts, tests: Int32s, events: Int64s) -> Bools:
        """For each (test, event), whether one of the event's texts passes."""
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
        passed = np.zeros(len(events), np.bool_)
        passed[pair[self._verdicts(column.texts, tests[pair], which)]] = True
        return passed

    def _function(self, number: int) -> Callable[[str], bool]:
        found = self._functions.get(number)
        if found is None:
            found = self._functions[number] = _compiled(self._known(number))
        return found

    def _verdicts(self, texts: list[str], tests: Int32s, which: Int64s) -> Bools:
        """For each (test, text), whether the text passes. Each of them is tested once."""
        numbers, row = np.unique(tests, return_inverse=True)
        size = len(numbers) * len(texts)
        keys = row.astype(np.int64) * len(texts) + which
        if size <= _TABLE * len(keys):  # a table of all is smaller than the work of sorting
            asked = np.zeros(size, np.bool_)
            asked[keys] = True
            tried, at = np.flatnonzero(asked), keys
        else:
            tried, at = np.unique(keys, return_inverse=True)
        functions = [self._function(number) for number in numbers.tolist()]
        if len(tried) < _FEW * len(numbers):  # one event, or few
            pairs = (divmod(key, len(texts)) for key in tried.tolist())
            found = np.array([functions[place](texts[each]) for place, each in pairs], np.bool_)
        else:
            found = np.zeros(len(tried), np.bool_)
            ends = np.searchsorted(tried, np.arange(len(numbers) + 1) * len(texts))
            for place, holds in enumerate(functions):
                mine = slice(ends[place], ends[place + 1])
                chosen = (tried[mine] - place * len(texts)).tolist()
                found[mine] = [holds(texts[each]) for each in chosen]
        if at is keys:
            every = np.zeros(size, np.bool_)
            every[tried] = found
            found = every
        verdicts: Bools = found[at]
        return verdicts


def _parsed(text: str, attribute: int) -> Constraint:
    """A constraint as it was saved."""
    try:
        found = constraint_from_json(text)
        if found.attribute != attribute:
            raise ValueError("it is about another attribute")
    except (TypeError, ValueError, RecursionError) as why:
        raise SavedIndexError(f"the saved index is inconsistent: a text pattern: {why}") from None
    return found


def _compiled(test: Constraint) -> Callable[[str], bool]:
    """The function of a test: whether a text is in the intervals and passes all checks."""
    checks = [(check.compiled(), positive) for check, positive in test.patterns]
    intervals = test.intervals
    if intervals == TextCodec.texts and len(checks) == 1:  # most tests
        ((holds, positive),) = checks
        return holds if positive else lambda text: not holds(text)
    return lambda text: (
        all(holds(text) == positive for holds, positive in checks)
        and any(low <= (0, text, 0) < high for low, high in intervals)
    )
