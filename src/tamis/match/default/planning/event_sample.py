"""The events a plan is based on, the events seen since, and when to compare the two."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tamis.encode.batch import EventBatch, Pairs
from tamis.encode.shapes.shape_code import EventShape
from tamis.files.arrays import Floats, Int32s, Int64s

_EVENTS = 1024  # maximum size of a sample
_TOO_FEW = 64  # a plan based on fewer events is replaced once there are this many
_LOOK = 32_768  # maximum number of events between two comparisons
_RECENT = 256  # batches remembered until the next comparison
_DRIFT = 0.25  # two samples differ much if a share differs by more than this
_ENOUGH = 64  # minimum values of an attribute to compare quartiles


class EventSample(NamedTuple):
    """The pairs of some events."""

    attribute: Int32s
    code: Int64s
    events: int

    @staticmethod
    def of(pairs: Pairs) -> EventSample:
        """The first events of a batch."""
        events = min(len(pairs.starts) - 1, _EVENTS)
        part = slice(int(pairs.starts[0]), int(pairs.starts[events]))
        return EventSample(pairs.attribute[part].copy(), pairs.code[part].copy(), events)

    def joined(self, *others: EventSample) -> EventSample:
        """This sample and the others together, cut to the last events."""
        kept: list[EventSample] = []
        room = _EVENTS
        for each in (*others[::-1], self):
            keep = min(each.events, room)
            part = slice(len(each.code) - len(each.code) * keep // max(1, each.events), None)
            kept.append(EventSample(each.attribute[part], each.code[part], keep))
            room -= keep
        kept.reverse()
        return EventSample(
            np.concatenate([each.attribute for each in kept]),
            np.concatenate([each.code for each in kept]),
            _EVENTS - room,
        )

    def differs(self, other: Outline) -> bool:
        """Whether events have changed so much that the plan for the old ones may be bad.

        Compares how often each attribute is bound, and the quartiles of its values.
        """
        width = len(other.many)
        asked = self.attribute < width
        attribute, code = self.attribute[asked], self.code[asked]
        many = np.bincount(attribute, minlength=width)
        share = many / max(1, self.events) - other.many / max(1, other.events)
        # Two samples of the same distribution also differ, more so if they are small.
        chance = 2 / max(1, min(self.events, other.events)) ** 0.5
        if (np.abs(share) > _DRIFT + chance).any():
            return True
        enough = np.minimum(many, other.many) >= _ENOUGH
        for cuts, below in zip(other.quartiles, other.below, strict=True):
            here = np.bincount(attribute, code < cuts[attribute], width)
            if (np.abs(here / np.maximum(many, 1) - below)[enough] > _DRIFT).any():
                return True
        return False


class Outline(NamedTuple):
    """The reference for later samples, by attribute. Computed once per plan."""

    events: int
    many: Int64s  # number of values
    quartiles: Int64s  # one row for each of the three
    below: Floats  # the share of values below each

    @staticmethod
    def of(sample: EventSample, width: int) -> Outline:
        """The outline of a sample, for a clause table with `width` attributes."""
        many = np.bincount(sample.attribute[sample.attribute < width], minlength=width)
        quartiles, below = np.zeros((3, width), np.int64), np.zeros((3, width))
        for a in np.flatnonzero(many).tolist():
            code = np.sort(sample.code[sample.attribute == a])
            quartiles[:, a] = code[[len(code) // 4, len(code) // 2, 3 * len(code) // 4]]
            below[:, a] = np.searchsorted(code, quartiles[:, a]) / len(code)
        return Outline(sample.events, many, quartiles, below)


def no_sample() -> EventSample:
    """An empty sample."""
    return EventSample(np.zeros(0, np.int32), np.zeros(0, np.int64), 0)


class EventWatch:
    """Watches the events of a matcher and decides whether its plan still suits them."""

    def __init__(self) -> None:
        self.planned_for = self.sample = no_sample()
        self._recent: list[EventSample] = []  # samples since the last comparison
        self._seen = 0  # events since the last comparison
        self._matched = 0  # events since the plan
        self._unwatched = 0  # events that need only be counted until the next comparison
        self._outline: Outline | None = None  # of the events the plan is based on

    def see(self, batch: EventBatch, *, must: bool) -> bool:
        """Record a batch. Returns whether a comparison is due; it always is with `must`."""
        self._seen += len(batch)
        self._matched += len(batch)
        due = self._due()
        self._unwatched = due - _EVENTS
        if (must or self._seen >= due - _EVENTS) and len(self._recent) < _RECENT:
            self._recent.append(EventSample.of(batch.pairs))
        if not must and self._seen < due:
            return False
        self.sample = self.sample.joined(*self._recent)
        self._seen = self._unwatched = 0
        self._recent.clear()
        return True

    def is_due(self, events: int) -> bool:
        """Whether a comparison is due with so many more events."""
        return self._seen + events >= self._due()

    def see_some(self, batch: EventBatch) -> None:
        """Record a batch that comes before a comparison.

        Several threads may do this at once, as in `see_one`. A count that is lost between them only
        puts off the comparison.
        """
        self._unwatched = self._due() - _EVENTS
        if self._seen + len(batch) >= self._unwatched and len(self._recent) < _RECENT:
            self._recent.append(EventSample.of(batch.pairs))
        self._seen += len(batch)
        self._matched += len(batch)

    def see_one(self, shape: EventShape) -> bool:
        """Record the event in a shape, if no comparison is due. Returns whether it was recorded.

        Most events are only counted. Those before a comparison are kept for it.
        """
        if self._seen >= self._unwatched:
            if self._seen + 1 >= self._due():
                return False
            if len(self._recent) < _RECENT:
                self._recent.append(EventSample(shape.attribute, shape.pairs().code, 1))
        self._seen += 1
        self._matched += 1
        return True

    def planned(self, sample: EventSample) -> None:
        """Record that a plan was made for these events."""
        self.planned_for, self._outline, self._matched = sample, None, 0
        self._unwatched = 0

    @property
    def enough(self) -> bool:
        """Whether the plan is based on too few events and there are enough events now."""
        return self.planned_for.events < _TOO_FEW <= self.sample.events

    def differs(self, width: int) -> bool:
        """Whether events have drifted. `width` is the number of attributes in the clause table."""
        if self._outline is None or len(self._outline.many) != width:
            self._outline = Outline.of(self.planned_for, width)
        return self.sample.differs(self._outline)

    def _due(self) -> int:
        """The number of events until the next comparison.

        The first batches may have any size, and a plan based on too few events must not outlive
        them. Later, the comparison should cost little compared with matching: the longer a plan has
        been good, the longer the wait.
        """
        if self.planned_for.events < _TOO_FEW:
            return _TOO_FEW - self.sample.events
        return min(max(2 * self.sample.events, self._matched // 4), _LOOK)
