"""Text patterns, checked on the pairs that the matcher let through, and on no others."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from tamis.encode.batch import EventBatch, Texts
from tamis.encode.clause import Constraint
from tamis.encode.intervals import before
from tamis.match.base import Matches


class PatternTests:
    """The constraints with patterns, by slot."""

    def __init__(self) -> None:
        self._of: dict[int, tuple[Constraint, ...]] = {}
        self._has = np.zeros(0, np.bool_)

    def add(self, slot: int, constraints: Sequence[Constraint]) -> None:
        """Keep those constraints of a clause that intervals do not tell whole."""
        tests = tuple(constraint for constraint in constraints if constraint.patterns)
        if not tests:
            return
        self._of[slot] = tests
        if slot >= len(self._has):
            self._has = np.append(self._has, np.zeros(slot + 1, np.bool_))
        self._has[slot] = True

    def remove(self, slot: int) -> tuple[Constraint, ...]:
        """Forget a slot; gives what was kept of it."""
        if slot < len(self._has):
            self._has[slot] = False
        return self._of.pop(slot, ())

    def filter(self, batch: EventBatch, matches: Matches) -> Matches:
        """The matches whose texts fit as well."""
        if not self._of:
            return matches
        slots = matches.slots
        known = slots < len(self._has)
        tested = np.zeros(len(slots), np.bool_)
        tested[known] = self._has[slots[known]]
        at = np.flatnonzero(tested)
        if not len(at):
            return matches
        events = matches.events
        keep = np.ones(len(slots), np.bool_)
        verdicts: dict[tuple[Constraint, str], bool] = {}  # each (pattern, text) once a batch
        for pair in at.tolist():
            keep[pair] = all(
                self._fits(test, _texts(batch.texts[test.attribute], int(events[pair])), verdicts)
                for test in self._of[int(slots[pair])]
            )
        counts = np.bincount(events[keep], minlength=len(matches))
        starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return Matches(starts, slots[keep])

    @staticmethod
    def _fits(
        test: Constraint, texts: list[str], verdicts: dict[tuple[Constraint, str], bool]
    ) -> bool:
        """Whether one of the texts lies in the intervals and passes all patterns."""
        for text in texts:
            key = (test, text)
            if key not in verdicts:
                cut = before(text)
                verdicts[key] = any(low <= cut < high for low, high in test.intervals) and all(
                    pattern.matches(text) == positive for pattern, positive in test.patterns
                )
            if verdicts[key]:
                return True
        return False


def _texts(column: Texts, event: int) -> list[str]:
    if column.rows is None:
        return [column.texts[int(column.which[event])]]
    first, last = np.searchsorted(column.rows, (event, event + 1))
    found: NDArray[np.int64] = column.which[first:last]
    return [column.texts[i] for i in found.tolist()]
