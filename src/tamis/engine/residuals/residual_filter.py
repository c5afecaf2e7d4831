"""Residuals, verified only on the candidates of the matcher.

A residual is the part of a condition that is not indexed (`language.normal_form`). Its program runs
in a kernel, over codes. Tests that are no intervals are answered before, once for each event.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np

from tamis.encode.batch import EventBatch
from tamis.encode.encoder import Encoder
from tamis.encode.labels import Moved
from tamis.encode.terms import Terms
from tamis.engine.residuals.ages import FIRST, LAST
from tamis.engine.residuals.evaluation import run_in_python, run_programs
from tamis.engine.residuals.program import SPECIAL, Program, Step
from tamis.engine.residuals.program_table import ProgramTable
from tamis.engine.residuals.special_tests import UNDECIDED, YES, SpecialTests
from tamis.engine.saved.saved_part import SavedPart
from tamis.files.arrays import Bools, Int8s, Int64s, runs
from tamis.match.answers import FoundSlots, Matches
from tamis.match.bitmaps import Bitmaps
from tamis.model.times.moments import NO_MOMENT

_STEP = 1 << 20  # candidates examined together


class ResidualFilter:
    """The programs of slots that have a residual."""

    def __init__(self) -> None:
        self._programs = ProgramTable()
        self._tests = SpecialTests()
        self.undecided = 0  # candidates given up, because an event has too many values

    def __len__(self) -> int:
        return self._programs.live

    def add(self, programs: Mapping[int, Program], terms: Terms) -> None:
        """Keep the programs of slots, at least one; `terms` are those of their constraints."""
        tests = [self._tests.intern(test) for each in programs.values() for test in each.tests]
        self._programs.add({slot: each.steps for slot, each in programs.items()}, terms, tests)

    @property
    def nbytes(self) -> int:
        """The bytes of all programs, without their special tests."""
        return self._programs.nbytes

    def remove(self, slot: int) -> Terms | None:
        """Remove a slot; return the terms of its program if it has one."""
        found = self._programs.remove(slot)
        if found is None:
            return None
        terms, tests = found
        for number in tests:
            self._tests.release(number)
        return terms

    def follow(self, attribute: int, moved: Moved) -> None:
        """Labels of a text attribute were renumbered."""
        self._programs.follow(attribute, moved)

    def forget_evaluators(self) -> None:
        """The domains of attributes have changed."""
        self._tests.forget_evaluators()

    @property
    def timed(self) -> bool:
        """Whether a residual depends on the moment of the event."""
        return self._programs.timed > 0 or self._tests.timed

    def _moments(self, batch: EventBatch, now: int | None) -> Int64s:
        """The moments of the events, if they are needed: their own, or else one for all."""
        if not self.timed:
            return np.zeros(0, np.int64)
        if batch.moments is None:
            assert now is not None
            return np.full(batch.size, now, np.int64)
        inside = (batch.moments >= FIRST) & (batch.moments <= LAST)
        return np.where(inside, batch.moments, NO_MOMENT)

    def filter(
        self, batch: EventBatch, found: Matches, encoder: Encoder, now: int | None = None
    ) -> Matches:
        """The candidates whose residual holds; `now` is the moment of events that have none."""
        if not self._programs.live:
            return found
        moments = self._moments(batch, now)
        gone = [np.zeros(0, np.int64)]
        for first in range(0, len(found.slots), _STEP):  # bounds the temporary arrays
            places = np.flatnonzero(self.asks(found.slots[first : first + _STEP])) + first
            events = np.searchsorted(found.starts, places, side="right") - 1
            slots = found.slots[places].astype(np.int64)
            gone.append(places[~self._holding(batch, events, slots, encoder, moments)])
        return found.without(np.concatenate(gone))

    def filter_bits(
        self, batch: EventBatch, found: Bitmaps, encoder: Encoder, now: int | None = None
    ) -> None:
        """Clear the bits of candidates whose residual does not hold."""
        if not self._programs.live:
            return
        used = found.slots >= 0
        bits = np.flatnonzero(used & self.asks(np.where(used, found.slots, 0)))
        events, which = found.pairs(bits)
        slots = found.slots[bits[which]].astype(np.int64)
        failed = ~self._holding(batch, events, slots, encoder, self._moments(batch, now))
        found.clear(events[failed], bits[which[failed]])

    def asks(self, slots: FoundSlots) -> Bools:
        """Whether each slot has a residual."""
        size = self._programs.view.size
        return (size.take(slots, mode="clip") > 0) & (slots < len(size))

    def _holding(
        self, batch: EventBatch, events: Int64s, slots: Int64s, encoder: Encoder, moments: Int64s
    ) -> Bools:
        """For each (event, slot), by ascending event, whether the residual of the slot holds."""
        if not len(events):
            return np.zeros(0, np.bool_)
        asked, answers, open_pairs = self._answers(batch, events, slots, encoder, moments)
        view, width = self._programs.view, len(encoder.codecs)
        verdicts = run_programs(
            batch.pairs, events, slots, view, width, asked, answers, len(self._tests), moments
        )
        for place in open_pairs:
            event, slot = int(events[place]), int(slots[place])
            moment = int(moments[event]) if len(moments) else NO_MOMENT
            verdicts[place] = self._in_python(batch, event, slot, encoder, moment)
        self.undecided += int(np.count_nonzero(verdicts == UNDECIDED))
        holding: Bools = verdicts == YES
        return holding

    def _answers(
        self, batch: EventBatch, events: Int64s, slots: Int64s, encoder: Encoder, moments: Int64s
    ) -> tuple[Int64s, Int8s, list[int]]:
        """The special tests of candidates, answered; candidates whose answers depend on a choice.

        The answers come with sorted keys, as `run_programs` takes them.
        """
        if not len(self._tests):  # most residuals are intervals
            return np.zeros(0, np.int64), np.zeros(0, np.int8), []
        view, many = self._programs.view, len(self._tests)
        starts, rows = runs(view.start[slots], view.size[slots].astype(np.int64))
        special = np.flatnonzero(view.kind[rows] == SPECIAL)
        candidate = np.searchsorted(starts, special, side="right") - 1
        keys = events[candidate] * many + view.low[rows[special]]
        asked = np.unique(keys)
        answers = np.zeros(len(asked), np.int8)
        for at, key in enumerate(asked.tolist()):
            event, number = divmod(key, many)
            moment = int(moments[event]) if len(moments) else NO_MOMENT
            answers[at] = self._tests.answer(number, batch.raw_values(event), encoder, moment)
        undecided = answers[np.searchsorted(asked, keys)] == UNDECIDED
        return asked, answers, np.unique(candidate[undecided]).tolist()

    def _in_python(
        self, batch: EventBatch, event: int, slot: int, encoder: Encoder, moment: int
    ) -> int:
        raw, names = batch.raw_values(event), list(encoder.schema.attributes)

        @cache  # it is asked for each choice of values
        def values(attribute: int) -> list[int]:
            if attribute in encoder.elements:
                return batch.codes_of(event, attribute)
            # The codes of the batch may repeat a value that an event has once.
            return encoder.codes(attribute, raw.get(names[attribute], ()))

        def special(number: int, place: Any) -> bool:
            test = self._tests[number]
            lacks_moment = test.timed and moment == NO_MOMENT
            if lacks_moment or not all(raw.get(name) for name in test.attributes):
                return False
            chosen = [raw[name][place(encoder.positions[name])] for name in test.attributes]
            if test.timed:
                chosen.append(moment)
            return self._tests.evaluate(number, encoder)(chosen)

        return run_in_python(self._programs.rows(slot), values, special, moment)

    # -- saving ------------------------------------------------------------------------------------

    def saved(self) -> SavedPart:
        """All programs, and the special tests as text."""
        return SavedPart(
            dict(self._programs.arrays()), {}, {"tests": {"test": self._tests.column()}}
        )

    def restore(self, saved: SavedPart, width: int, live: Int64s | None) -> None:
        """Restore what `saved` returned; check values against the slots in use, if given."""
        tests = saved.columns["tests"]["test"]
        self._programs.restore(dict(saved.arrays), width, len(tests), live)
        self._tests.restore(tests, self._programs.tests_in_use())

    def steps(self, slot: int) -> list[Step]:
        """The steps of a slot's program."""
        return self._programs.steps(slot)

    def terms(self) -> Terms:
        """The terms of all programs, as those of one clause."""
        return self._programs.terms_in_use()

    def mentioned(self, names: Sequence[str]) -> set[str]:
        """The attributes that programs look at, of those with these names by position."""
        found = {names[at] for at in np.unique(self.terms().attribute).tolist()}
        tests = np.unique(self._programs.tests_in_use()).tolist()
        return found.union(*(self._tests[number].attributes for number in tests))

    def check(self, live: Int64s) -> list[Terms]:
        """Raise if an invariant is broken; the terms of all programs. `live`: the slots in use."""
        self._tests.check(self._programs.tests_in_use())
        return self._programs.check(live)
